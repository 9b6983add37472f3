//! The Bloom filters inside of a .parquet file: one for each column of each
//! row group that has one.
//!
//! Only the footer and the filters are read. The crate `parquet` reads the
//! footer; the filters are [`Sbbf`]s. A key is present if a filter of any row
//! group that was asked for has it.

use std::io::Write;

use parquet::basic::Type;
use parquet::file::metadata::ParquetMetaDataReader;

use crate::error::{Error, Result};
use crate::filter::{Count, ForeignFilter, Parameters, check_encoding};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;
use crate::sbbf::{self, Sbbf};

const FORMAT: Format = Format::Parquet;
const MAGIC: &[u8; 4] = b"PAR1";

/// Bytes at an offset of a file. Asked only for what lies within the length.
pub(crate) type ReadAt<'a> = &'a dyn Fn(u64, usize) -> Result<Vec<u8>>;

/// Which filters of a file are asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// The column, by its path with dots.
    pub(crate) column: Option<String>,
    pub(crate) row_group: Option<usize>,
}

/// The filters of one column of a .parquet file.
#[derive(Debug, Clone)]
pub struct ParquetFilters {
    column: String,
    physical: Type,
    /// Bytes of a value, where all have as many.
    width: Option<usize>,
    /// Row group and filter.
    parts: Vec<(usize, Sbbf)>,
    /// All filters of the file: column and row group.
    available: Vec<(String, usize)>,
}

/// Whether the file starts as a .parquet file.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Whether the file starts and ends as a .parquet file.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    bytes.len() >= 12 && bytes.starts_with(MAGIC) && bytes.ends_with(MAGIC)
}

impl ParquetFilters {
    pub(crate) fn decode(bytes: &[u8], selection: &Selection) -> Result<Self> {
        let read_at = |offset: u64, len: usize| {
            // The caller looked at the length.
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            Ok(bytes[start..start + len].to_vec())
        };
        Self::read(bytes.len() as u64, &read_at, selection)
    }

    /// From a file of a given length.
    pub(crate) fn read(len: u64, read_at: ReadAt<'_>, selection: &Selection) -> Result<Self> {
        let short = |expected| Error::Length {
            format: FORMAT,
            expected,
            got: len,
        };
        let tail_at = len
            .checked_sub(8)
            .filter(|&at| at >= 4)
            .ok_or_else(|| short(12))?;
        let tail = read_at(tail_at, 8)?;
        let footer_len = tail
            .strip_suffix(MAGIC)
            .and_then(|len| Some(u32::from_le_bytes(len.try_into().ok()?)))
            .ok_or_else(|| {
                Error::field(
                    FORMAT,
                    "last bytes",
                    tail[4..].escape_ascii(),
                    "PAR1, unencrypted",
                )
            })?;
        let footer_at = tail_at
            .checked_sub(footer_len.into())
            .filter(|&at| at >= 4)
            .ok_or_else(|| short(u64::from(footer_len) + 12))?;
        let footer = read_at(footer_at, usize::try_from(footer_len).unwrap_or(0))?;
        let metadata = ParquetMetaDataReader::decode_metadata(&footer)
            .map_err(|_| Error::field(FORMAT, "footer", "damaged", "Parquet's metadata"))?;
        drop(footer);

        let mut found = Vec::new();
        for (row_group, group) in metadata.row_groups().iter().enumerate() {
            for column in group.columns() {
                if let Some(offset) = column.bloom_filter_offset() {
                    let name = column.column_path().string();
                    let width = match column.column_type() {
                        Type::FIXED_LEN_BYTE_ARRAY => {
                            usize::try_from(column.column_descr().type_length()).ok()
                        }
                        Type::INT96 => Some(12),
                        _ => None,
                    };
                    found.push((name, row_group, (column.column_type(), width), offset));
                }
            }
        }
        let available: Vec<_> = found
            .iter()
            .map(|(name, row, ..)| (name.clone(), *row))
            .collect();
        let column = choose_column(&available, selection.column.as_deref())?;
        let mut parts = Vec::new();
        let mut physical = None;
        for (name, row_group, kind, offset) in found {
            if name != column
                || selection
                    .row_group
                    .is_some_and(|wanted| wanted != row_group)
            {
                continue;
            }
            let offset = u64::try_from(offset)
                .ok()
                .filter(|&offset| offset < footer_at)
                .ok_or_else(|| {
                    Error::field(
                        FORMAT,
                        "bloom_filter_offset",
                        offset,
                        "a place before the footer",
                    )
                })?;
            let room = footer_at - offset;
            let head = read_at(
                offset,
                usize::try_from(room)
                    .unwrap_or(usize::MAX)
                    .min(sbbf::HEADER_MAX),
            )?;
            let (header, bits) = sbbf::header(&head)?;
            let whole = header as u64 + bits;
            let size = usize::try_from(whole)
                .ok()
                .filter(|_| whole <= room)
                .ok_or_else(|| short(offset.saturating_add(whole)))?;
            parts.push((row_group, Sbbf::decode(read_at(offset, size)?)?));
            physical = Some(kind);
        }
        let Some((physical, width)) = physical else {
            return Err(Error::parameter(
                "row group",
                selection.row_group.unwrap_or(0),
                format!("column {column} has filters in other row groups"),
            ));
        };
        Ok(Self {
            column,
            physical,
            width,
            parts,
            available,
        })
    }

    /// The column, by its path with dots.
    #[must_use]
    pub fn column(&self) -> &str {
        &self.column
    }

    /// The row groups whose filters are asked.
    pub fn row_groups(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().map(|(row_group, _)| *row_group)
    }

    /// Column and row group of every filter in the file.
    #[must_use]
    pub fn available(&self) -> &[(String, usize)] {
        &self.available
    }

    /// The filters themselves, with their row groups.
    #[must_use]
    pub fn parts(&self) -> &[(usize, Sbbf)] {
        &self.parts
    }

    /// Refuses a key whose type the column does not store.
    fn check(&self, key: ForeignKey<'_>) -> Result<()> {
        if let (Some(width), Ok(bytes)) = (self.width, key.bytes(FORMAT)) {
            // Another length is in no filter, except falsely.
            if bytes.len() == width {
                return Ok(());
            }
            return Err(Error::parameter(
                "a key",
                format!("{} bytes", bytes.len()),
                format!(
                    "column {} stores {} of {width} bytes: give them as they are stored, in \
                     hexadecimal if they are no text",
                    self.column, self.physical
                ),
            ));
        }
        let expected = match (self.physical, key) {
            (Type::BYTE_ARRAY, ForeignKey::Text(_) | ForeignKey::Bytes(_))
            | (Type::INT32, ForeignKey::I32(_))
            | (Type::INT64, ForeignKey::I64(_))
            | (Type::FLOAT, ForeignKey::F32(_))
            | (Type::DOUBLE, ForeignKey::F64(_)) => return Ok(()),
            (Type::INT32, _) => "an i32, as the column stores",
            (Type::INT64, _) => "an i64, as the column stores",
            (Type::FLOAT, _) => "an f32, as the column stores",
            (Type::DOUBLE, _) => "an f64, as the column stores",
            _ => "text or bytes, as the column stores",
        };
        Err(Error::Key {
            format: FORMAT,
            got: key.type_name(),
            expected,
        })
    }
}

/// The column that was asked for, or the only one.
fn choose_column(available: &[(String, usize)], wanted: Option<&str>) -> Result<String> {
    let mut names: Vec<&str> = available.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    match (wanted, names.as_slice()) {
        (_, []) => Err(Error::unsupported(
            FORMAT,
            "a question",
            "no column of the file has a Bloom filter; write it again with filters",
        )),
        (Some(wanted), names) if names.contains(&wanted) => Ok(wanted.to_owned()),
        (None, [only]) => Ok((*only).to_owned()),
        (wanted, names) => Err(Error::parameter(
            "column",
            wanted.unwrap_or("(none)"),
            format!("name one that has Bloom filters: {}", names.join(", ")),
        )),
    }
}

impl ForeignFilter for ParquetFilters {
    fn format(&self) -> Format {
        FORMAT
    }

    fn parameters(&self) -> Parameters {
        let numbers = |parts: Vec<String>| parts.join(", ");
        let filters = self.available.iter();
        Parameters {
            bits: self
                .parts
                .iter()
                .map(|(_, part)| part.parameters().bits)
                .sum(),
            positions: 8,
            items: None,
            error: None,
            details: vec![
                ("column", self.column.clone()),
                ("stored as", self.physical.to_string()),
                (
                    "row groups",
                    numbers(self.row_groups().map(|n| n.to_string()).collect()),
                ),
                (
                    "filters in the file",
                    numbers(
                        filters
                            .map(|(name, row)| format!("{name} of {row}"))
                            .collect(),
                    ),
                ),
            ],
        }
    }

    fn contains(&self, key: ForeignKey<'_>) -> Result<bool> {
        self.check(key)?;
        for (_, part) in &self.parts {
            if part.contains(key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn insert(&mut self, _: ForeignKey<'_>) -> Result<bool> {
        Err(Error::unsupported(
            FORMAT,
            "insert",
            "the filters belong to the data of the file; convert one to a filter of its own",
        ))
    }

    fn count(&self) -> Option<Count> {
        None
    }

    fn fill(&self) -> f64 {
        let bits = |part: &Sbbf| part.parameters().bits;
        let ones = |part: &Sbbf| part.fill() * bits(part) as f64;
        let ones: f64 = self.parts.iter().map(|(_, part)| ones(part)).sum();
        ones / self.parts.iter().map(|(_, part)| bits(part)).sum::<u64>() as f64
    }

    fn error_now(&self) -> f64 {
        let missed = self.parts.iter().map(|(_, part)| 1.0 - part.error_now());
        1.0 - missed.product::<f64>()
    }

    fn estimated_len(&self) -> Option<f64> {
        self.parts
            .iter()
            .map(|(_, part)| part.estimated_len())
            .sum()
    }

    fn union_with(&mut self, _: &dyn ForeignFilter) -> Result<()> {
        Err(Error::unsupported(
            FORMAT,
            "merge",
            "the filters belong to the data of the file; convert them to filters of their own",
        ))
    }

    /// One filter with its header, as it stands in the file.
    fn write_as(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        check_encoding(FORMAT, self.encodings(), encoding)?;
        match self.parts.as_slice() {
            [(_, part)] => part.write_as(encoding, out),
            parts => Err(Error::unsupported(
                FORMAT,
                "writing",
                format!("{} filters were read: choose one row group", parts.len()),
            )),
        }
    }
}
