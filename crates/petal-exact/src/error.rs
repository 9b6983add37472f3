//! Every way in which the work of this crate can fail.
//!
//! Owns the texts: what was expected, what came, the remedy. Errors of sources and of those who
//! take the results are theirs (see [`crate::Source::Error`]).

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why an operation was refused or stopped.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    Io {
        /// What was attempted.
        action: String,
        /// What the system said.
        source: io::Error,
    },
    /// Temporary files would be kept in memory, which they are there to save.
    MemoryFileSystem {
        /// The directory.
        directory: PathBuf,
    },
    /// The plan needs more room for temporary files than there is.
    NoRoom {
        /// The directory.
        directory: PathBuf,
        /// Bytes the plan needs.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The memory allowed is too small for the work.
    NoMemory {
        /// Bytes needed at least.
        needed: u64,
        /// Bytes allowed.
        allowed: u64,
        /// What takes them.
        what: &'static str,
    },
    /// The operation makes no sense for these sources.
    Parameter {
        /// What was given.
        name: &'static str,
        /// Its value.
        got: u64,
        /// What was expected.
        expected: String,
    },
    /// A source gave another number of records when it was read again.
    Changed {
        /// Its number, from 0.
        source: usize,
        /// Records at first.
        before: u64,
        /// Records now, if fewer; else one more than at first.
        now: u64,
    },
    /// Two different keys have one fingerprint: only with `verify`, and by chance less than once
    /// in 10^18 runs.
    Collision,
}

impl Error {
    pub(crate) fn io(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            action: action.into(),
            source: source.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, source } => {
                write!(f, "cannot {action}: {source}")?;
                match source.kind() {
                    io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::FileTooLarge => {
                        f.write_str("; name another directory for temporary files (--tmp)")
                    }
                    _ => Ok(()),
                }
            }
            Self::MemoryFileSystem { directory } => write!(
                f,
                "{} is a file system in memory: temporary files there would take the memory that \
                 they are to save; name a directory on a disk (--tmp)",
                directory.display()
            ),
            Self::NoRoom {
                directory,
                needed,
                free,
            } => write!(
                f,
                "temporary files in {} would take {needed} bytes, but {free} are free: free some, \
                 name another directory (--tmp) or allow more memory (--memory)",
                directory.display()
            ),
            Self::NoMemory {
                needed,
                allowed,
                what,
            } => write!(
                f,
                "{what} takes {needed} bytes of memory, but {allowed} are allowed: allow more \
                 (--memory)"
            ),
            Self::Parameter {
                name,
                got,
                expected,
            } => write!(f, "{name} of {got}: expected {expected}"),
            Self::Changed {
                source,
                before,
                now,
            } => write!(
                f,
                "input {} changed while it was read: it had {before} records at first and {now} \
                 later; begin again when nobody writes to it",
                source + 1
            ),
            Self::Collision => f.write_str(
                "two different keys have one fingerprint: run it again, the next run uses another key",
            ),
        }
    }
}

// The system's answer is part of the text: as a source it would be printed twice.
impl std::error::Error for Error {}
