//! What can go wrong with an input, said in one line each: the file, the place,
//! what was found and how to go on.

use std::error::Error;
use std::fmt;
use std::io;

use crate::compression::Compression;
use crate::units::{format_count, format_size};

/// An error that names its input.
#[derive(Debug)]
pub(crate) struct InputError {
    /// The name of the input as messages show it.
    pub(crate) name: String,
    /// What happened.
    pub(crate) fault: Fault,
}

/// A place in an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Decoded bytes before it.
    pub(crate) decoded: u64,
    /// Bytes of the file before it; the same number if the file is not compressed.
    pub(crate) raw: u64,
}

/// The kinds of failure.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The file could not be opened or asked what it is.
    Open(io::Error),
    /// A directory where a file belongs.
    Directory,
    /// The system failed to read after this many decoded bytes.
    Read {
        /// Decoded bytes before the failure.
        at: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file ends inside a member, frame or stream.
    Truncated {
        /// The format of the file.
        format: Compression,
        /// Where the file ends.
        at: Place,
    },
    /// Compressed data that contradicts itself.
    Corrupt {
        /// The format of the file.
        format: Compression,
        /// How far decoding came.
        at: Place,
        /// What the decoder found.
        what: String,
    },
    /// Something else than a further member follows a complete one.
    Trailing {
        /// The format of the file.
        format: Compression,
        /// Where it starts.
        at: Place,
        /// Its first bytes, at most eight.
        found: Vec<u8>,
    },
    /// Decoding needs a larger window than [`super::WINDOW_LIMIT`].
    Window {
        /// The format of the file.
        format: Compression,
        /// How far decoding came.
        at: Place,
    },
    /// A record longer than the limit.
    TooLong {
        /// The decoded offset of its first byte.
        at: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// The system refused this many bytes for one long record.
    NoMemory {
        /// The decoded offset of the first byte of the record.
        at: u64,
        /// The bytes asked for.
        bytes: usize,
    },
    /// The input ends before the offset to skip to.
    Short {
        /// The offset wanted.
        wanted: u64,
        /// The decoded bytes there are.
        has: u64,
    },
    /// Reading ended earlier, by an error that has been reported, or the reading thread died.
    Stopped,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.fault)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (decoded, raw) = (format_count(self.decoded), format_count(self.raw));
        write!(f, "decoded byte {decoded} (byte {raw} of the file)")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(source) => write!(f, "cannot open: {source}"),
            Self::Directory => {
                f.write_str("is a directory; name a file, or - for the standard input")
            }
            Self::Read { at, source } => {
                write!(f, "cannot read on at byte {}: {source}", format_count(*at))
            }
            Self::Truncated { format, at } => write!(
                f,
                "cut short: it ends inside a {format} {unit}, at {at}; get the file again, or \
                 pass on what is whole with `{format} -dc`",
                unit = format.unit()
            ),
            Self::Corrupt { format, at, what } => {
                write!(
                    f,
                    "corrupt {format} data at {at}: {what}; get the file again"
                )
            }
            Self::Trailing { format, at, found } => {
                write!(
                    f,
                    "after a whole {format} {}, at {at}, comes",
                    format.unit()
                )?;
                for byte in found {
                    write!(f, " {byte:02x}")?;
                }
                write!(
                    f,
                    ", which starts no further {}; cut it off, or decode with `{format} -dc` first",
                    format.unit()
                )
            }
            Self::Window { format, at } => write!(
                f,
                "the {format} data at {at} needs more than the {} of memory that decoding may \
                 take; decode it first with {}",
                format_size(super::WINDOW_LIMIT),
                if *format == Compression::Zstd {
                    "`zstd -dc --long=31`"
                } else {
                    "`xz -dc`"
                }
            ),
            Self::TooLong { at, limit } => write!(
                f,
                "the record that starts at byte {} is longer than {} ({} bytes), the longest \
                 this memory budget allows; raise --memory, or check that the records really end \
                 as expected (-0 is for NUL)",
                format_count(*at),
                format_size(*limit as u64),
                format_count(*limit as u64)
            ),
            Self::NoMemory { at, bytes } => write!(
                f,
                "no memory for the record that starts at byte {}: the system refused {}",
                format_count(*at),
                format_size(*bytes as u64)
            ),
            Self::Short { wanted, has } => write!(
                f,
                "ends at byte {}, before byte {} where reading was to go on; the file has \
                 changed since",
                format_count(*has),
                format_count(*wanted)
            ),
            Self::Stopped => f.write_str("reading has already stopped"),
        }
    }
}

// The system's answer is part of the text: as a source it would come twice.
impl Error for InputError {}
