//! The first 192 bytes of a file.
//!
//! Owns the byte layout of the header and every check that needs nothing but
//! the header and the length of the file. `FORMAT.md` has the table.

use twox_hash::XxHash3_64;

use super::cursor::Cursor;
use super::image::FIELDS;
use super::sections::{HEADER_LEN, Sections};
use super::{MAX_METADATA, VERSION, WIRE_MAGIC};
use crate::any::Kind;
use crate::cascade::CascadeGeometry;
use crate::classic::ClassicGeometry;
use crate::counting::{CounterBits, CountingGeometry, Increase};
use crate::error::{Error, FormatError, Result};
use crate::geometry::deletable::DeletableGeometry;
use crate::geometry::window::WindowGeometry;
use crate::geometry::{BlockWords, SplitGeometry};
use crate::hash::{KeyHasher, KeyType, Secret};
use crate::ribbon::StaticGeometry;
use crate::sizing::Promise;

/// First bytes of every file. The first is no text; the line end is lost
/// where a transfer takes the file for text.
pub(super) const MAGIC: [u8; 8] = *b"\x89petal\r\n";

/// Bytes that the header's own checksum covers.
const CHECKED: usize = HEADER_LEN - 8;

const DIRTY: u32 = 1;
const INSERTIONS_UNKNOWN: u32 = 2;

/// How a file says that keys became digests: for a keyed filter it holds no
/// more than the check value of the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HasherRecord {
    /// [`KeyHasher::Portable`]
    Portable {
        /// Its seed.
        seed: u64,
    },
    /// [`KeyHasher::Keyed`]
    Keyed {
        /// [`Secret::check_value`] of its secret.
        check: u64,
    },
}

impl HasherRecord {
    pub(super) const fn of(hasher: &KeyHasher) -> Self {
        match hasher {
            KeyHasher::Portable { seed } => Self::Portable { seed: *seed },
            KeyHasher::Keyed { secret } => Self::Keyed {
                check: secret.check_value(),
            },
        }
    }

    /// The hasher, if the secret it needs is there. A secret that is not
    /// needed is no error: the answers do not depend on it.
    pub(super) fn hasher(self, secret: Option<&Secret>) -> Result<KeyHasher> {
        match (self, secret) {
            (Self::Portable { seed }, _) => Ok(KeyHasher::Portable { seed }),
            (Self::Keyed { check }, Some(secret)) if secret.check_value() == check => {
                Ok(KeyHasher::Keyed {
                    secret: secret.clone(),
                })
            }
            (Self::Keyed { check }, secret) => Err(Error::Secret {
                expected: check,
                got: secret.map(Secret::check_value),
            }),
        }
    }

    const fn record(self) -> (u16, u64) {
        match self {
            Self::Portable { seed } => (0, seed),
            Self::Keyed { check } => (1, check),
        }
    }
}

/// The shape of the payload: kind and geometry words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Geometry {
    DigestSet {
        slots: u64,
        spread: u64,
        has_zero: bool,
    },
    Bloom(SplitGeometry),
    Classic(ClassicGeometry),
    /// The shapes of the stages are in the metadata.
    Growable {
        stages: u64,
    },
    Counting(CountingGeometry),
    /// The generations are in the metadata.
    Window(WindowGeometry),
    Deletable {
        shape: DeletableGeometry,
        used: u64,
    },
    /// Where its shards are is in the payload.
    Static(StaticGeometry),
    /// The shapes of its filters are in the payload.
    Cascade(CascadeGeometry),
}

impl Geometry {
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::DigestSet { .. } => Kind::DigestSet,
            Self::Bloom(_) => Kind::Bloom,
            Self::Classic(_) => Kind::Classic,
            Self::Growable { .. } => Kind::Growable,
            Self::Counting(_) => Kind::Counting,
            Self::Window(_) => Kind::Window,
            Self::Deletable { .. } => Kind::Deletable,
            Self::Static(_) => Kind::Static,
            Self::Cascade(_) => Kind::Cascade,
        }
    }

    fn record(self) -> (u16, [u64; 4]) {
        match self {
            Self::DigestSet {
                slots,
                spread,
                has_zero,
            } => (1, [slots, spread, has_zero.into(), 0]),
            Self::Bloom(shape) => {
                let [block, regions, blocks] = split_record(shape);
                (2, [block, regions, blocks, 0])
            }
            Self::Classic(shape) => (3, [shape.bits(), shape.positions().into(), 0, 0]),
            Self::Growable { stages } => (4, [stages, 0, 0, 0]),
            Self::Counting(shape) => {
                let [block, regions, blocks] = split_record(shape.split());
                (5, [block, regions, blocks, counter_record(shape)])
            }
            Self::Deletable { shape, used } => {
                (7, [shape.slots(), shape.remainder_bits().into(), used, 0])
            }
            Self::Static(shape) => (8, shape.record()),
            Self::Cascade(shape) => (9, shape.record()),
            Self::Window(shape) => (
                6,
                [
                    shape.lanes().into(),
                    shape.regions().into(),
                    shape.parts().into(),
                    shape.lines(),
                ],
            ),
        }
    }

    fn decode(kind: u16, words: [u64; 4]) -> Result<Self, FormatError> {
        let [a, b, c, d] = words;
        let unused = |rest: &[u64]| {
            if rest.iter().all(|&word| word == 0) {
                return Ok(());
            }
            Err(field("geometry", "unused words that are set", "zeros"))
        };
        match kind {
            1 => {
                unused(&[d])?;
                if c > 1 {
                    return Err(field("digest 0", c, "0 or 1"));
                }
                Ok(Self::DigestSet {
                    slots: a,
                    spread: b,
                    has_zero: c == 1,
                })
            }
            2 => {
                unused(&[d])?;
                Ok(Self::Bloom(split_decode([a, b, c])?))
            }
            3 => {
                unused(&[c, d])?;
                let positions = u32::try_from(b).unwrap_or(u32::MAX);
                ClassicGeometry::new(a, positions)
                    .map(Self::Classic)
                    .map_err(|error| field("geometry", format!("m = {a}, k = {b}"), error))
            }
            4 => {
                unused(&[b, c, d])?;
                Ok(Self::Growable { stages: a })
            }
            5 => Ok(Self::Counting(counting_decode([a, b, c, d])?)),
            6 => {
                let small = |word| u32::try_from(word).unwrap_or(u32::MAX);
                WindowGeometry::new(small(a), small(b), small(c), d)
                    .map(Self::Window)
                    .map_err(|error| {
                        field("geometry", format!("{a} lanes, {b} x {d} lines"), error)
                    })
            }
            7 => {
                unused(&[d])?;
                let bits = u32::try_from(b).unwrap_or(u32::MAX);
                let shape = DeletableGeometry::new(a, bits)
                    .map_err(|error| field("geometry", format!("{a} slots, {b} bits"), error))?;
                Ok(Self::Deletable { shape, used: c })
            }
            8 => Ok(Self::Static(StaticGeometry::decode(words)?)),
            9 => Ok(Self::Cascade(CascadeGeometry::decode(words)?)),
            _ => Err(FormatError::Unknown {
                what: "kind",
                got: kind.into(),
            }),
        }
    }
}

/// A split-block shape as three words: words a block, regions, blocks a region.
pub(super) fn split_record(shape: SplitGeometry) -> [u64; 3] {
    [
        shape.block().count().into(),
        shape.regions().into(),
        shape.blocks(),
    ]
}

/// The opposite of [`split_record`], with every check of the shape.
pub(super) fn split_decode(
    [block, regions, blocks]: [u64; 3],
) -> Result<SplitGeometry, FormatError> {
    let block = match block {
        4 => BlockWords::Four,
        8 => BlockWords::Eight,
        _ => return Err(field("words a block", block, "4 or 8")),
    };
    SplitGeometry::new(block, u32::try_from(regions).unwrap_or(u32::MAX), blocks).map_err(|error| {
        field(
            "geometry",
            format!("{regions} regions of {blocks} blocks"),
            error,
        )
    })
}

/// Set in the last geometry word of a counting filter with minimal increase.
const MINIMAL_INCREASE: u64 = 256;

/// How a filter counts, as a word.
fn counter_record(shape: CountingGeometry) -> u64 {
    let increase = match shape.increase() {
        Increase::All => 0,
        Increase::Minimal => MINIMAL_INCREASE,
    };
    u64::from(shape.counter().count()) | increase
}

/// The opposite of [`split_record`] and [`counter_record`].
fn counting_decode(
    [block, regions, blocks, counter]: [u64; 4],
) -> Result<CountingGeometry, FormatError> {
    let split = split_decode([block, regions, blocks])?;
    let increase = if counter & MINIMAL_INCREASE == 0 {
        Increase::All
    } else {
        Increase::Minimal
    };
    let bits = match counter & !MINIMAL_INCREASE {
        4 => CounterBits::Four,
        8 => CounterBits::Eight,
        16 => CounterBits::Sixteen,
        _ => {
            return Err(field(
                "bits a counter",
                counter,
                "4, 8 or 16, or that and 256",
            ));
        }
    };
    CountingGeometry::new(split, bits, increase).map_err(|error| field("geometry", split, error))
}

/// Refuses a value with what would be right.
pub(crate) fn field(
    name: &'static str,
    got: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> FormatError {
    FormatError::Field {
        name,
        got: got.to_string(),
        expected: expected.to_string(),
    }
}

/// n and p: both 0 where nothing was promised.
pub(super) fn promise_record(promise: Option<Promise>) -> (u64, f64) {
    promise.map_or((0, 0.0), |promise| (promise.items, promise.error))
}

/// The opposite of [`promise_record`].
pub(super) fn promise_decode(items: u64, error: f64) -> Result<Option<Promise>, FormatError> {
    if items == 0 && error.to_bits() == 0 {
        return Ok(None);
    }
    if items == 0 {
        return Err(field("n", items, "at least 1, as there is a p"));
    }
    if !(error > 0.0 && error < 1.0) {
        return Err(field("p", format!("{error:?}"), "a number between 0 and 1"));
    }
    Ok(Some(Promise { items, error }))
}

/// What the header says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    pub(super) dirty: bool,
    pub(super) hasher: HasherRecord,
    pub(super) key_type: KeyType,
    pub(super) promise: Option<Promise>,
    pub(super) geometry: Geometry,
    pub(super) insertions: Option<u64>,
    pub(super) generation: u64,
    pub(super) sections: Sections,
    pub(super) metadata_sum: u64,
    pub(super) table_sum: u64,
}

impl Header {
    /// The 192 bytes.
    pub(super) fn encode(&self) -> [u8; HEADER_LEN] {
        let (kind, geometry) = self.geometry.record();
        let (hasher, seed_or_check) = self.hasher.record();
        let key_type: u16 = match self.key_type {
            KeyType::Bytes => 0,
            KeyType::Int => 1,
        };
        let mut flags = 0;
        if self.dirty {
            flags |= DIRTY;
        }
        if self.insertions.is_none() {
            flags |= INSERTIONS_UNKNOWN;
        }
        let (items, error) = promise_record(self.promise);

        let mut fields = Vec::with_capacity(FIELDS);
        fields.extend(VERSION.to_le_bytes());
        fields.extend(kind.to_le_bytes());
        fields.extend(flags.to_le_bytes());
        fields.extend(hasher.to_le_bytes());
        fields.extend(key_type.to_le_bytes());
        fields.extend([0; 4]);
        fields.extend(seed_or_check.to_le_bytes());
        fields.extend(items.to_le_bytes());
        fields.extend(error.to_le_bytes());
        for word in geometry {
            fields.extend(word.to_le_bytes());
        }
        fields.extend(self.insertions.unwrap_or(0).to_le_bytes());
        fields.extend(self.generation.to_le_bytes());
        let mut array = [0; FIELDS];
        array.copy_from_slice(&fields);
        Self::assemble(&array, &self.sections, self.metadata_sum, self.table_sum)
    }

    /// The 192 bytes around what stands from the version to the generation.
    pub(super) fn assemble(
        fields: &[u8; FIELDS],
        sections: &Sections,
        metadata_sum: u64,
        table_sum: u64,
    ) -> [u8; HEADER_LEN] {
        let mut bytes = Vec::with_capacity(HEADER_LEN);
        bytes.extend(MAGIC);
        bytes.extend(fields);
        for word in [
            sections.metadata_len,
            sections.payload_offset,
            sections.payload_len,
            sections.table_offset,
            sections.file_len,
            metadata_sum,
            table_sum,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(CHECKED, 0);
        let sum = XxHash3_64::oneshot(&bytes);
        bytes.extend(sum.to_le_bytes());
        let mut header = [0; HEADER_LEN];
        header.copy_from_slice(&bytes);
        header
    }

    /// Kind and shape among these bytes, of the version that is known.
    pub(super) fn geometry_of(fields: &[u8; FIELDS]) -> Result<Geometry, FormatError> {
        let mut cursor = Cursor::new("header", fields);
        let version = cursor.u16()?;
        if version != VERSION {
            return Err(FormatError::Version {
                got: version,
                newest: VERSION,
            });
        }
        let kind = cursor.u16()?;
        cursor.bytes(36)?; // flags to p
        Geometry::decode(kind, cursor.words()?)
    }

    /// Reads a header from the first bytes of a file (192, or as many as
    /// there are) and checks it against the length of the file.
    pub(super) fn decode(front: &[u8], file_len: u64) -> Result<Self, FormatError> {
        let front = &front[..front.len().min(HEADER_LEN)];
        let start = &front[..front.len().min(MAGIC.len())];
        if front.starts_with(&WIRE_MAGIC) {
            return Err(FormatError::Wire);
        }
        if !MAGIC.starts_with(start) {
            return Err(FormatError::NotPetal {
                got: start.to_vec(),
            });
        }
        let too_short = FormatError::Length {
            expected: HEADER_LEN as u64,
            got: file_len,
        };
        let mut cursor = Cursor::new("header", front);
        if cursor.bytes(MAGIC.len()).is_err() {
            return Err(too_short);
        }
        // Before the checksum: another version may have it elsewhere.
        match cursor.u16() {
            Ok(VERSION) => {}
            Ok(got) => {
                return Err(FormatError::Version {
                    got,
                    newest: VERSION,
                });
            }
            Err(_) => return Err(too_short),
        }
        let Some(header) = front.first_chunk::<HEADER_LEN>() else {
            return Err(too_short);
        };
        let sum = Cursor::new("header", &header[CHECKED..]).u64()?;
        if XxHash3_64::oneshot(&header[..CHECKED]) != sum {
            return Err(FormatError::Checksum {
                part: "header",
                offset: 0,
            });
        }

        let kind = cursor.u16()?;
        let flags = cursor.u32()?;
        let hasher = cursor.u16()?;
        let key_type = cursor.u16()?;
        let reserved = cursor.u32()?;
        let seed_or_check = cursor.u64()?;
        let (items, error) = (cursor.u64()?, cursor.f64()?);
        let geometry = cursor.words::<4>()?;
        let [insertions, generation] = cursor.words()?;
        let lengths = cursor.words::<5>()?;
        let [metadata_sum, table_sum] = cursor.words()?;
        let rest = cursor.bytes(cursor.left() - 8)?;

        if flags & !(DIRTY | INSERTIONS_UNKNOWN) != 0 {
            return Err(FormatError::Unknown {
                what: "flags",
                got: flags.into(),
            });
        }
        if reserved != 0 || rest.iter().any(|&byte| byte != 0) {
            return Err(field("reserved bytes of the header", "set", "zeros"));
        }
        let geometry = Geometry::decode(kind, geometry)?;
        let hasher = match hasher {
            0 => HasherRecord::Portable {
                seed: seed_or_check,
            },
            1 => HasherRecord::Keyed {
                check: seed_or_check,
            },
            _ => {
                return Err(FormatError::Unknown {
                    what: "hasher",
                    got: hasher.into(),
                });
            }
        };
        let key_type = match key_type {
            0 => KeyType::Bytes,
            1 => KeyType::Int,
            _ => {
                return Err(FormatError::Unknown {
                    what: "key type",
                    got: key_type.into(),
                });
            }
        };
        let insertions = match (flags & INSERTIONS_UNKNOWN, insertions) {
            (0, known) => Some(known),
            (_, 0) => None,
            (_, known) => return Err(field("insertions", known, "0, as they are unknown")),
        };
        Ok(Self {
            dirty: flags & DIRTY != 0,
            hasher,
            key_type,
            promise: promise_decode(items, error)?,
            geometry,
            insertions,
            generation,
            sections: sections(lengths, file_len)?,
            metadata_sum,
            table_sum,
        })
    }
}

/// Checks the five lengths and offsets against each other and the file.
fn sections(lengths: [u64; 5], file_len: u64) -> Result<Sections, FormatError> {
    let [
        metadata_len,
        payload_offset,
        payload_len,
        table_offset,
        total,
    ] = lengths;
    if metadata_len > MAX_METADATA {
        return Err(field(
            "length of the metadata",
            metadata_len,
            format!("at most {MAX_METADATA}"),
        ));
    }
    let Some(sections) = Sections::new(metadata_len, payload_len) else {
        return Err(field(
            "length of the payload",
            payload_len,
            "less than 2^64",
        ));
    };
    for (name, got, expected) in [
        (
            "offset of the payload",
            payload_offset,
            sections.payload_offset,
        ),
        (
            "offset of the checksum table",
            table_offset,
            sections.table_offset,
        ),
        ("length of the file", total, sections.file_len),
    ] {
        if got != expected {
            return Err(field(name, got, expected));
        }
    }
    if file_len != total {
        return Err(FormatError::Length {
            expected: total,
            got: file_len,
        });
    }
    Ok(sections)
}
