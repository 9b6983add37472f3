//! Whose file it is, and opening it.
//!
//! Owns the names of the formats, how they are told apart, and the way from
//! bytes, compressed or not, to a filter. Few of the formats have a magic:
//! a file is taken for one only if its header is valid and accounts for the
//! file's length exactly.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use crate::bits::reserve;
use crate::error::{Error, Result};
use crate::filter::ForeignFilter;
use crate::{bits_and_blooms, dcso, guava, gzip};

/// A system whose filters are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Guava, `BloomFilter.writeTo`.
    Guava,
    /// DCSO's `bloom`, `flor` and version 1 of `poppy`: one format.
    Dcso,
    /// `bits-and-blooms/bloom` of Go, version 3.
    BitsAndBlooms,
}

impl Format {
    /// All of them, in the order in which a file is tried.
    pub const ALL: [Self; 3] = [Self::Guava, Self::Dcso, Self::BitsAndBlooms];

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Guava => "guava",
            Self::Dcso => "dcso",
            Self::BitsAndBlooms => "bits-and-blooms",
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
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Gzip => "gzip",
            Self::Json => "json",
        })
    }
}

/// What a file does not say.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    format: Option<Format>,
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
}

/// Whose file these bytes are, once decompressed, if that can be told.
#[must_use]
pub fn recognise(bytes: &[u8]) -> Option<Format> {
    Format::ALL.into_iter().find(|format| match format {
        Format::Guava => guava::recognise(bytes),
        Format::Dcso => dcso::recognise(bytes),
        Format::BitsAndBlooms => bits_and_blooms::recognise(bytes),
    })
}

/// Opens a filter of another system: the whole file is read into memory and
/// its lengths are checked. A file that is compressed by gzip is decompressed.
///
/// # Errors
/// If the file cannot be read, is no filter of a known system (or not of the
/// one that was named), or memory is short.
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
    let mut bytes = reserve(metadata.len())?;
    // A file that grows meanwhile is read as it was, and found too short or
    // long if that was in the middle of a change.
    (&mut file)
        .take(metadata.len())
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
        gzip::decode(&bytes, |head| match options.format {
            None | Some(Format::Dcso) => dcso::longest(head),
            Some(_) => None,
        })?
    } else {
        bytes
    };
    let format = match options.format {
        Some(format) => format,
        None => recognise(&bytes).ok_or(Error::Unrecognised)?,
    };
    Ok(match format {
        Format::Guava => Box::new(guava::Guava::decode(bytes)?),
        Format::Dcso => Box::new(dcso::Dcso::decode(bytes, compressed)?),
        Format::BitsAndBlooms => Box::new(bits_and_blooms::BitsAndBlooms::decode(bytes)?),
    })
}
