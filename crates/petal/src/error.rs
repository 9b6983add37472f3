//! The one error type of the library.
//!
//! Owns every way in which a call can be refused, with texts that name what
//! was expected, what came, and the remedy. It does not print, log or exit:
//! fronts decide what to do with an [`Error`].

use std::fmt;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call was refused. Nothing was changed unless the variant says so.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside of what the call accepts.
    Parameter {
        /// The parameter's name in the documentation, such as `p`.
        name: &'static str,
        /// The value that came, as text.
        got: String,
        /// What is accepted, and how to go on.
        expected: String,
    },
    /// The memory for a filter cannot be had. Found out before allocating.
    TooLarge {
        /// Bytes the filter needs.
        needed: u64,
        /// Bytes this process may use, or `None` if the system refused.
        available: Option<u64>,
    },
    /// The filter takes no further key. Keys that it has are still found.
    Full {
        /// The kind of filter, such as `window`.
        kind: &'static str,
        /// Keys that it holds.
        keys: u64,
        /// How to go on.
        remedy: &'static str,
    },
    /// One digest is to have two answers: the same key came with both, or two
    /// keys share it.
    Ambiguous {
        /// The digest.
        digest: u64,
        /// The answers, such as `listed` and `not listed`.
        answers: [String; 2],
    },
    /// Two filters, or a filter and its caller, do not agree on something
    /// that decides the answers.
    Mismatch {
        /// What differs, such as `hasher`.
        what: &'static str,
        /// What the filter at hand has.
        expected: String,
        /// What the other side has.
        got: String,
    },
    /// The kind of filter cannot do what was asked.
    Unsupported {
        /// The operation, such as `remove`.
        operation: &'static str,
        /// The kind of filter, such as `bloom`.
        kind: &'static str,
    },
    /// A delta leads from another generation than that of the filter.
    OutOfOrder {
        /// The generation it leads from.
        from: u64,
        /// The generation it leads to.
        to: u64,
        /// That of the filter.
        got: u64,
    },
    /// A delta leads from other bits than those of the filter.
    WrongBase {
        /// The sum over the bits it leads from.
        expected: u64,
        /// That of the filter.
        got: u64,
    },
    /// The filter's words are read-only: opened mapped for reading.
    ReadOnly,
    /// A keyed filter was opened without its secret, or with another one.
    Secret {
        /// The check value that the file records.
        expected: u64,
        /// The check value of the secret that was given, if one was.
        got: Option<u64>,
    },
    /// Bytes that are not an intact petal file.
    Format(FormatError),
    /// What stands at the path is not a regular file.
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What is there, such as `a directory`.
        found: &'static str,
    },
    /// The file is there already and was not to be replaced.
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file system has not enough room. Found out before writing.
    NoRoom {
        /// The file that was to be written.
        path: PathBuf,
        /// Bytes the file needs.
        needed: u64,
        /// Bytes that are free to this process.
        free: u64,
    },
    /// Another process writes to the file.
    Locked {
        /// The lock file that it holds.
        lock: PathBuf,
    },
    /// The system refused an operation on a file.
    Io {
        /// What was attempted, such as `create`.
        action: &'static str,
        /// The file, where there is one.
        path: Option<PathBuf>,
        /// The system's answer.
        source: io::Error,
    },
}

/// What is wrong with the bytes of a petal file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes do not start with the magic of a petal file.
    NotPetal {
        /// The first bytes that came (up to eight).
        got: Vec<u8>,
    },
    /// A packed filter or a delta, which is no filter to be asked:
    /// [`crate::wire`] reads them.
    Wire,
    /// The bytes do not start with the magic of a packed filter or a delta.
    NotWire {
        /// The first bytes that came (up to eight).
        got: Vec<u8>,
    },
    /// Written by a later or unknown version of the format.
    Version {
        /// The version that came.
        got: u16,
        /// The newest version this library reads.
        newest: u16,
    },
    /// A kind, flag, hasher, key type or must-understand field that this
    /// library does not know.
    Unknown {
        /// Which of them.
        what: &'static str,
        /// The value that came.
        got: u64,
    },
    /// The file ends early, or goes on where it should end.
    Length {
        /// Bytes that the header accounts for.
        expected: u64,
        /// Bytes that are there.
        got: u64,
    },
    /// A checksum does not match what it covers.
    Checksum {
        /// The part of the file, such as `header` or `payload`.
        part: &'static str,
        /// Byte offset at which the covered part starts.
        offset: u64,
    },
    /// A field is out of range or contradicts another.
    Field {
        /// The field's name in `FORMAT.md`.
        name: &'static str,
        /// The value that came.
        got: String,
        /// What would be right.
        expected: String,
    },
    /// A writer in place was interrupted between two clean generations, or
    /// is still at work. [`crate::MappedWriter::recover`] goes on from here.
    Dirty {
        /// The last generation whose keys are all present.
        generation: u64,
    },
}

impl Error {
    /// Shorthand for a refused parameter.
    pub(crate) fn parameter(
        name: &'static str,
        got: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Parameter {
            name,
            got: got.to_string(),
            expected: expected.into(),
        }
    }

    /// Shorthand for a disagreement that would change answers.
    pub(crate) fn mismatch(
        what: &'static str,
        expected: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Self {
        Self::Mismatch {
            what,
            expected: expected.to_string(),
            got: got.to_string(),
        }
    }

    /// Wraps the system's answer with what was attempted on which file.
    pub(crate) fn io(action: &'static str, path: Option<&Path>, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.map(Path::to_path_buf),
            source,
        }
    }
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        Self::Format(error)
    }
}

// The system's answer is part of the text: as a source it would be printed
// twice by whoever prints a chain of errors.
/// Says what a path is that is no regular file.
pub(crate) fn not_a_file(path: &Path, found: std::fs::FileType) -> Error {
    Error::NotAFile {
        path: path.to_path_buf(),
        found: if found.is_dir() {
            "a directory"
        } else if found.is_fifo() {
            "a pipe"
        } else if found.is_socket() {
            "a socket"
        } else if found.is_char_device() || found.is_block_device() {
            "a device"
        } else {
            "no file"
        },
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter {
                name,
                got,
                expected,
            } => write!(f, "{name} = {got} is not possible: {expected}"),
            Self::TooLarge { needed, available } => {
                write!(f, "the filter needs {needed} bytes of memory, ")?;
                match available {
                    Some(bytes) => write!(f, "this process may use {bytes}")?,
                    None => write!(f, "which the system refuses")?,
                }
                write!(f, ": use fewer keys or a larger error")
            }
            Self::Full { kind, keys, remedy } => {
                write!(f, "the {kind} filter is full with {keys} keys: {remedy}")
            }
            Self::Ambiguous {
                digest,
                answers: [one, other],
            } => write!(
                f,
                "the digest {digest:016x} is given as {one} and as {other}: give each key with \
                 one answer; if two keys share the digest, use another seed, or a keyed hasher"
            ),
            Self::Mismatch {
                what,
                expected,
                got,
            } => write!(
                f,
                "{what} differs: this filter has {expected}, the other side {got}; \
                 build both with the same settings"
            ),
            Self::Unsupported { operation, kind } => {
                write!(
                    f,
                    "a filter of kind {kind} does not offer {operation}: take one of a kind that does"
                )
            }
            Self::OutOfOrder { from, to, got } => {
                write!(
                    f,
                    "the delta leads from generation {from} to {to} and the filter is of \
                     generation {got}: "
                )?;
                match got {
                    _ if got >= to => write!(f, "it was applied already"),
                    _ => write!(f, "apply the deltas in order, or fetch the whole filter"),
                }
            }
            Self::WrongBase { expected, got } => write!(
                f,
                "the delta is for another filter of that generation (checksum {expected:016x}, \
                 that of this one is {got:016x}): fetch the whole filter"
            ),
            Self::ReadOnly => write!(
                f,
                "the filter was opened read-only: open it for writing, or load it into memory"
            ),
            Self::Secret {
                expected,
                got: None,
            } => write!(
                f,
                "the filter is keyed (check value {expected:016x}): give the secret it was made with"
            ),
            Self::Secret {
                expected,
                got: Some(got),
            } => write!(
                f,
                "the filter was made with another secret (check value {expected:016x}, \
                 that of the given one is {got:016x}): give the secret it was made with"
            ),
            Self::Format(error) => error.fmt(f),
            Self::NotAFile { path, found } => {
                write!(
                    f,
                    "{} is {found}, expected a regular file: name one, or save what comes into one",
                    path.display()
                )
            }
            Self::Exists { path } => write!(
                f,
                "{} exists already and was not replaced: \
                 take another name, or ask for it to be replaced",
                path.display()
            ),
            Self::NoRoom { path, needed, free } => write!(
                f,
                "{} needs {needed} bytes and the file system has {free} free: \
                 make room, or write elsewhere",
                path.display()
            ),
            Self::Locked { lock } => write!(
                f,
                "another process is writing to this filter (it holds {}): \
                 wait until it is done",
                lock.display()
            ),
            Self::Io {
                action,
                path: Some(path),
                source,
            } => write!(f, "cannot {action} {}: {source}", path.display()),
            Self::Io {
                action,
                path: None,
                source,
            } => write!(f, "cannot {action}: {source}"),
        }
    }
}

impl std::error::Error for FormatError {}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPetal { got } => {
                write!(f, "not a petal file: it starts with {}", got.escape_ascii())
            }
            Self::Wire => write!(
                f,
                "a packed filter or a delta, not a filter: `petal unpack` or \
                 `petal apply-delta` makes one of it"
            ),
            Self::NotWire { got } => write!(
                f,
                "neither a packed filter nor a delta: it starts with {}",
                got.escape_ascii()
            ),
            Self::Version { got, newest } => write!(
                f,
                "unsupported version {got} of the file format (this petal reads up to {newest}): \
                 use a newer petal, or build the filter again"
            ),
            Self::Unknown { what, got } => write!(
                f,
                "unknown {what} {got} in the file: it was written by a newer petal; use that one"
            ),
            Self::Length { expected, got } if got < expected => write!(
                f,
                "truncated: the file should have {expected} bytes and has {got}; \
                 fetch or build it again"
            ),
            Self::Length { expected, got } => write!(
                f,
                "the file should have {expected} bytes and has {got}: \
                 something was appended to it; fetch or build it again"
            ),
            Self::Checksum { part, offset } => write!(
                f,
                "damaged: the checksum of the {part} at byte {offset} does not match; \
                 fetch or build it again"
            ),
            Self::Field {
                name,
                got,
                expected,
            } => write!(
                f,
                "invalid file: {name} is {got}, expected {expected}; fetch or build it again"
            ),
            Self::Dirty { generation } => write!(
                f,
                "a writer was interrupted, or is still at work: all keys of generation \
                 {generation} are there, later ones may be missing; wait for the writer, \
                 or open the file for writing with recovery and add the later keys again"
            ),
        }
    }
}
