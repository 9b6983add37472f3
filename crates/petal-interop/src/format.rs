//! Whose file it is, and opening it.
//!
//! Owns the names of the formats, how they are told apart, and the way from
//! bytes, compressed or not, to a filter. Few of the formats have a magic:
//! a file is taken for one only if its header is valid and accounts for the
//! file's length exactly.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::str::FromStr;

use crate::bits::reserve;
use crate::bits_and_blooms::{self, BitsAndBlooms};
use crate::classic::{ClassicFilter, ClassicProgram, RawBits};
use crate::dcso::{self, Dcso};
use crate::error::{Error, Result};
use crate::extent;
use crate::filter::ForeignFilter;
use crate::guava::{self, Guava, GuavaStrategy};
use crate::gzip;
use crate::npm::{self, Npm};
use crate::parquet::{self, ParquetFilters, Selection};
use crate::poppy::{self, Poppy};
use crate::pybloom_live::{self, PybloomLive, ScalablePybloomLive};
use crate::pyprobables::{self, Pyprobables, PyprobablesCounting, PyprobablesExpanding, Variant};
use crate::rbloom::{Rbloom, RbloomHash};
use crate::redisbloom::{self, RedisBloom};
use crate::sbbf::{self, Sbbf};
use crate::spark::{self, Spark, SparkVersion};
use crate::squid::{self, Squid};

/// A system whose filters are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Guava, `BloomFilter.writeTo`.
    Guava,
    /// Spark, `BloomFilter.writeTo`, both versions.
    Spark,
    /// DCSO's `bloom`, `flor` and version 1 of `poppy`: one format.
    Dcso,
    /// `poppy`, version 2 (a file of version 1 is one of [`Self::Dcso`]).
    Poppy,
    /// `bits-and-blooms/bloom` of Go, version 3.
    BitsAndBlooms,
    /// RedisBloom, the pairs of `BF.SCANDUMP`.
    RedisBloom,
    /// Parquet: the filters in a file, or one with its header.
    Parquet,
    /// `bloom-filters` of npm.
    Npm,
    /// `pybloom_live` of Python.
    PybloomLive,
    /// `pyprobables` of Python.
    Pyprobables,
    /// The cache digest of Squid.
    Squid,
    /// `rbloom` of Python: not recognised, since its files say nothing.
    Rbloom,
    /// The raw bits of a [`ClassicProgram`]: not recognised.
    Classic,
}

impl Format {
    /// All of them, in the order in which a file is tried.
    pub const ALL: [Self; 13] = [
        Self::Parquet,
        Self::Guava,
        Self::Spark,
        Self::Dcso,
        Self::Poppy,
        Self::BitsAndBlooms,
        Self::RedisBloom,
        Self::Npm,
        Self::PybloomLive,
        Self::Pyprobables,
        Self::Squid,
        Self::Rbloom,
        Self::Classic,
    ];

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guava => "guava",
            Self::Spark => "spark",
            Self::Dcso => "dcso",
            Self::Poppy => "poppy",
            Self::BitsAndBlooms => "bits-and-blooms",
            Self::RedisBloom => "redisbloom",
            Self::Parquet => "parquet",
            Self::Npm => "npm",
            Self::PybloomLive => "pybloom-live",
            Self::Pyprobables => "pyprobables",
            Self::Squid => "squid",
            Self::Rbloom => "rbloom",
            Self::Classic => "classic",
        }
    }
}

impl Format {
    /// How its makers get from a key to positions, in a few words: two formats
    /// hold the same bits for the same keys only if this is the same.
    #[must_use]
    pub const fn hashing(self) -> &'static str {
        match self {
            Self::Guava => "MurmurHash3 of 128 bits, two halves combined",
            Self::Spark => "Spark's own MurmurHash3 of 32 bits, hashed twice",
            Self::Dcso => "FNV-1 of 64 bits and a multiplicative generator",
            Self::Poppy => "wyhash into buckets of 4 KiB",
            Self::BitsAndBlooms => "MurmurHash3 of 128 bits, of the key and of the key and a 1",
            Self::RedisBloom => "MurmurHash2, hashed twice",
            Self::Parquet => "XXH64 into split blocks",
            Self::Npm => "XXH64 under two seeds, cut to 32 bits",
            Self::PybloomLive => "XXH3 or SHA, salted, into slices",
            Self::Pyprobables => "FNV-1a with a start of its own for each position",
            Self::Squid => "MD5 of a method and a URL",
            Self::Rbloom => "a hash of the user's choice and a generator of 128 bits",
            Self::Classic => "the hashes of one program",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|format| format.name()).collect();
                Error::parameter("format", name, format!("use one of {}", names.join(", ")))
            })
    }
}

/// How the same filter is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// The maker's usual file.
    Plain,
    /// That file, compressed by gzip.
    Gzip,
    /// The maker's JSON.
    Json,
    /// The maker's file in hexadecimal digits.
    Hex,
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Json => "json",
            Self::Hex => "hex",
        })
    }
}

/// What a file does not say.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    format: Option<Format>,
    rbloom_hash: Option<RbloomHash>,
    old_pybloom: bool,
    column: Option<String>,
    row_group: Option<usize>,
    program: Option<ClassicProgram>,
    raw: RawBits,
    memory: Option<u64>,
}

impl ReadOptions {
    /// Nothing is known: the file has to tell.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whose file it is.
    #[must_use]
    pub const fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// The hash that a filter of rbloom was filled by.
    #[must_use]
    pub const fn rbloom_hash(mut self, hash: RbloomHash) -> Self {
        self.rbloom_hash = Some(hash);
        self
    }

    /// That a filter of pybloom_live was made by a release before 4.
    #[must_use]
    pub const fn old_pybloom(mut self) -> Self {
        self.old_pybloom = true;
        self
    }

    /// The column of a .parquet file, by its path with dots. It may be left
    /// out if only one has filters.
    #[must_use]
    pub fn column(mut self, path: impl Into<String>) -> Self {
        self.column = Some(path.into());
        self
    }

    /// The row group of a .parquet file, from 0; else all are asked.
    #[must_use]
    pub const fn row_group(mut self, number: usize) -> Self {
        self.row_group = Some(number);
        self
    }

    /// The classic program that raw bits are of, and how they were dumped.
    #[must_use]
    pub const fn classic(mut self, program: ClassicProgram, raw: RawBits) -> Self {
        self.program = Some(program);
        self.raw = raw;
        self
    }

    /// The most bytes that reading may take: twice those of a file, unpacked. A
    /// file that may need more is refused before they are taken. Else as many
    /// as the process may use.
    #[must_use]
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// The longest file, unpacked, that the memory holds.
    fn longest(&self) -> u64 {
        let usable = petal::memory::available().bytes;
        self.memory.map_or(usable, |memory| usable.min(memory / 2))
    }

    fn hash(&self) -> Result<RbloomHash> {
        self.rbloom_hash.ok_or_else(|| {
            Error::parameter(
                "hash",
                "unknown",
                "a file of rbloom does not say which hash fills it: name it",
            )
        })
    }

    fn program(&self) -> Result<ClassicProgram> {
        self.program.ok_or_else(|| {
            Error::parameter(
                "program",
                "unknown",
                "name the program whose bits these are",
            )
        })
    }

    fn selection(&self) -> Selection {
        Selection {
            column: self.column.clone(),
            row_group: self.row_group,
        }
    }
}

/// Whose file these bytes are, once decompressed, if that can be told.
#[must_use]
pub fn recognise(bytes: &[u8]) -> Option<Format> {
    Format::ALL.into_iter().find(|format| match format {
        Format::Parquet => parquet::recognise(bytes) || sbbf::recognise(bytes),
        Format::Guava => guava::recognise(bytes),
        Format::Spark => spark::recognise(bytes),
        Format::Dcso => dcso::recognise(bytes),
        Format::Poppy => poppy::recognise(bytes),
        Format::BitsAndBlooms => bits_and_blooms::recognise(bytes),
        Format::RedisBloom => redisbloom::recognise(bytes),
        Format::Npm => npm::recognise(bytes),
        Format::PybloomLive => {
            pybloom_live::recognise(bytes) || pybloom_live::recognise_scalable(bytes)
        }
        Format::Pyprobables => pyprobables::recognise(bytes).is_some(),
        Format::Squid => squid::recognise(bytes),
        Format::Rbloom | Format::Classic => false,
    })
}

/// An empty filter as a system's own software makes it for so many items and
/// such an error, in its present version and with its usual settings.
/// [`ReadOptions`] name the hash of rbloom and the classic program, whose size
/// is fixed; what else they say is left aside.
///
/// # Errors
/// If the system refuses the numbers, something that it needs is not named,
/// or its filters are only read (poppy's version 2), or memory is short.
pub fn create(
    format: Format,
    items: u64,
    error: f64,
    options: &ReadOptions,
) -> Result<Box<dyn ForeignFilter>> {
    Ok(match format {
        Format::Guava => Box::new(Guava::create(GuavaStrategy::Mitz64, items, error)?),
        Format::Spark => Box::new(Spark::create(SparkVersion::V2 { seed: 0 }, items, error)?),
        Format::Dcso => Box::new(Dcso::new(items, error)?),
        Format::BitsAndBlooms => Box::new(BitsAndBlooms::with_estimates(items, error)?),
        Format::RedisBloom => Box::new(RedisBloom::reserve(items, error, 2)?),
        Format::Parquet => Box::new(Sbbf::new(items, error)?),
        Format::Npm => Box::new(Npm::create(items, error)?),
        Format::PybloomLive => Box::new(PybloomLive::new(items, error)?),
        Format::Pyprobables => Box::new(Pyprobables::new(items, error)?),
        Format::Squid => Box::new(Squid::create(items, error)?),
        Format::Rbloom => Box::new(Rbloom::new(options.hash()?, items, error)?),
        Format::Classic => Box::new(ClassicFilter::new(options.program()?)?),
        Format::Poppy => {
            return Err(Error::unsupported(
                format,
                "making a new filter",
                "version 2 is read and added to; poppy reads the format dcso as well: make that",
            ));
        }
    })
}

/// Opens a filter of another system: the whole file is read into memory and
/// its lengths are checked; of a .parquet file only the filters. A file that
/// is compressed by gzip is decompressed.
///
/// # Errors
/// If the file cannot be read, is no filter of a known system (or not of the
/// one that was named), does not say enough, or memory is short.
pub fn open(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Box<dyn ForeignFilter>> {
    let path = path.as_ref();
    let failed =
        |action| move |source: std::io::Error| Error::io(action, Some(path.to_path_buf()), source);
    let mut file = File::open(path).map_err(failed("open"))?;
    let metadata = file.metadata().map_err(failed("inspect"))?;
    if metadata.is_dir() {
        return Err(petal::Error::NotAFile {
            path: path.to_path_buf(),
            found: "a directory",
        }
        .into());
    }
    if metadata.file_type().is_char_device() || metadata.file_type().is_block_device() {
        // Some never end.
        return Err(petal::Error::NotAFile {
            path: path.to_path_buf(),
            found: "a device",
        }
        .into());
    }
    if !metadata.is_file() {
        // Of a pipe only the end tells the length.
        let limit = petal::memory::available().bytes / 2;
        let mut bytes = Vec::new();
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(failed("read"))?;
        return read(bytes, options);
    }
    let read_at = |offset: u64, len: usize| {
        let mut bytes = reserve(len as u64)?;
        bytes.resize(len, 0);
        file.read_exact_at(&mut bytes, offset)
            .map_err(failed("read"))?;
        Ok(bytes)
    };
    let len = metadata.len();
    let named = options
        .format
        .is_none_or(|format| format == Format::Parquet);
    if named && len >= 12 && parquet::recognise(&[read_at(0, 8)?, read_at(len - 8, 8)?].concat()) {
        let selection = options.selection();
        return Ok(Box::new(ParquetFilters::read(len, &read_at, &selection)?));
    }
    let end = len.min(extent::END as u64);
    let end_bytes = usize::try_from(end).unwrap_or(0);
    let (head, tail) = (read_at(0, end_bytes)?, read_at(len - end, end_bytes)?);
    if !gzip::is_gzip(&head) {
        let ends = extent::Ends {
            head: &head,
            tail: &tail,
            len,
        };
        ends.check(options.format)?;
        if let Some(format) = options.format
            && extent::of(format, &head).is_none()
        {
            // Its reader says what is wrong with the header, if anything is.
            match read(head, options) {
                Ok(_) => {}
                // More is needed, and is there.
                Err(Error::Length { expected, .. }) if expected > end && expected <= len => {}
                Err(Error::Length {
                    format, expected, ..
                }) => {
                    return Err(Error::Length {
                        format,
                        expected,
                        got: len,
                    });
                }
                wrong => return wrong,
            }
        }
        if let (Some(Format::Classic), Some(program)) = (options.format, options.program) {
            // Dumped as a byte for each bit at most.
            let most = program.bits();
            if len > most {
                return Err(Error::Length {
                    format: Format::Classic,
                    expected: most,
                    got: len,
                });
            }
        }
    }
    if len > options.longest() {
        return Err(Error::Memory {
            needed: len.saturating_mul(2),
        });
    }
    let mut bytes = reserve(len)?;
    // A file that grows meanwhile is read as it was, and found too short or
    // long if that was in the middle of a change.
    (&mut file)
        .take(len)
        .read_to_end(&mut bytes)
        .map_err(failed("read"))?;
    read(bytes, options)
}

/// [`open`] for bytes in memory.
///
/// # Errors
/// As there.
pub fn read(bytes: Vec<u8>, options: &ReadOptions) -> Result<Box<dyn ForeignFilter>> {
    let compressed = gzip::is_gzip(&bytes);
    let bytes = if compressed {
        let longest = |head: &[u8]| {
            let whole = extent::Ends::of(head);
            if head.len() < extent::END {
                whole.check(options.format)?;
            }
            if let Some(format) = options.format
                && extent::of(format, head).is_none()
            {
                // Its reader says what is wrong with the header.
                read(head.to_vec(), options)?;
            }
            let by_header = match options.format {
                None | Some(Format::Dcso | Format::Poppy) => dcso::longest(head),
                Some(format) => extent::of(format, head).map(|(_, most)| most),
            };
            Ok(by_header.map_or(options.longest(), |most| most.min(options.longest())))
        };
        gzip::decode(&bytes, longest, |ends| ends.check(options.format))?
    } else {
        extent::Ends::of(&bytes).check(options.format)?;
        bytes
    };
    let format = match options.format {
        Some(format) => format,
        None => recognise(&bytes).ok_or_else(|| extent::Ends::of(&bytes).unrecognised())?,
    };
    let old = options.old_pybloom;
    Ok(match format {
        Format::Guava => Box::new(Guava::decode(bytes)?),
        Format::Spark => Box::new(Spark::decode(bytes)?),
        Format::Poppy if bytes.first() != Some(&1) => Box::new(Poppy::decode(bytes)?),
        Format::Dcso | Format::Poppy => {
            Box::new(Dcso::decode(bytes, compressed).map_err(|error| error.of(format))?)
        }
        Format::BitsAndBlooms => Box::new(BitsAndBlooms::decode(bytes)?),
        Format::RedisBloom => Box::new(RedisBloom::decode(&bytes)?),
        Format::Parquet if bytes.starts_with(b"PAR1") => {
            Box::new(ParquetFilters::decode(&bytes, &options.selection())?)
        }
        Format::Parquet => Box::new(Sbbf::decode(bytes)?),
        Format::Npm => npm::decode(&bytes)?,
        Format::PybloomLive if pybloom_live::recognise_scalable(&bytes) => {
            Box::new(ScalablePybloomLive::decode(&bytes, old)?)
        }
        Format::PybloomLive => Box::new(PybloomLive::decode(bytes, old)?),
        Format::Pyprobables => match pyprobables::recognise(&bytes) {
            Some(Variant::Hex) => Box::new(Pyprobables::decode_hex(&bytes)?),
            Some(Variant::Counting) => Box::new(PyprobablesCounting::decode(bytes)?),
            Some(Variant::Expanding) => Box::new(PyprobablesExpanding::decode(&bytes)?),
            Some(Variant::Bloom) | None => Box::new(Pyprobables::decode(bytes)?),
        },
        Format::Squid => Box::new(Squid::decode(bytes)?),
        Format::Rbloom => Box::new(Rbloom::decode(bytes, options.hash()?)?),
        Format::Classic => {
            let program = options.program()?;
            Box::new(ClassicFilter::from_raw(program, options.raw, bytes)?)
        }
    })
}
