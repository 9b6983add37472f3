//! Why a call was refused.
//!
//! Owns the texts about other systems' files. What the system and the memory
//! refuse comes from [`petal::Error`].

use std::fmt;

use crate::format::Format;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call was refused. Nothing was changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are of no format that can be told by looking.
    Unrecognised {
        /// The first of them (up to eight).
        got: Vec<u8>,
    },
    /// A field of a file is out of range or contradicts another.
    Field {
        /// Whose file it was taken for.
        format: Format,
        /// The field.
        name: &'static str,
        /// The value that came.
        got: String,
        /// What would be right.
        expected: String,
    },
    /// A file ends early, or goes on where it should end.
    Length {
        /// Whose file it was taken for.
        format: Format,
        /// Bytes that its header accounts for.
        expected: u64,
        /// Bytes that are there.
        got: u64,
    },
    /// The compressed bytes are damaged or cut off.
    Compression(String),
    /// A parameter is outside of what the maker accepts.
    Parameter {
        /// Its name.
        name: &'static str,
        /// The value that came.
        got: String,
        /// What is accepted, and how to go on.
        expected: String,
    },
    /// A key is of a type that the filter's maker cannot ask for.
    Key {
        /// Whose filter it is.
        format: Format,
        /// The type that came.
        got: &'static str,
        /// The types that the maker has.
        expected: &'static str,
    },
    /// The filter, or its maker, does not offer what was asked.
    Unsupported {
        /// Whose filter it is.
        format: Format,
        /// What was asked, such as `insert`.
        operation: &'static str,
        /// Why not, and how to go on.
        why: String,
    },
    /// Two filters differ in something that decides their answers.
    Mismatch {
        /// What differs.
        what: &'static str,
        /// What this filter has.
        ours: String,
        /// What the other one has.
        theirs: String,
    },
    /// The filter holds as many keys as its maker lets it.
    Full {
        /// Whose filter it is.
        format: Format,
        /// Keys that it was made for.
        capacity: u64,
    },
    /// The file is larger than the memory that reading it may take.
    Memory {
        /// Bytes that it may take.
        needed: u64,
    },
    /// Memory that cannot be had, or a file that the system refuses.
    Petal(petal::Error),
}

impl Error {
    pub(crate) fn field(
        format: Format,
        name: &'static str,
        got: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Field {
            format,
            name,
            got: got.to_string(),
            expected: expected.into(),
        }
    }

    /// JSON that cannot be read, by where it is wrong.
    pub(crate) fn json(
        format: Format,
        error: &serde_json::Error,
        expected: impl Into<String>,
    ) -> Self {
        let got = if error.is_eof() {
            "cut off".to_owned()
        } else if error.is_data() {
            // What a value is, and what it should be: often in words of ours.
            error.to_string()
        } else {
            format!("wrong at line {}, column {}", error.line(), error.column())
        };
        Self::field(format, "the JSON", got, expected)
    }

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

    /// The same of a format that has another one's files.
    pub(crate) fn of(mut self, name: Format) -> Self {
        if let Self::Field { format, .. } | Self::Length { format, .. } = &mut self {
            *format = name;
        }
        self
    }

    pub(crate) fn unsupported(
        format: Format,
        operation: &'static str,
        why: impl Into<String>,
    ) -> Self {
        Self::Unsupported {
            format,
            operation,
            why: why.into(),
        }
    }

    pub(crate) fn mismatch(
        what: &'static str,
        ours: impl fmt::Display,
        theirs: impl fmt::Display,
    ) -> Self {
        Self::Mismatch {
            what,
            ours: ours.to_string(),
            theirs: theirs.to_string(),
        }
    }

    /// Wraps the system's answer with what was attempted.
    pub(crate) const fn io(
        action: &'static str,
        path: Option<std::path::PathBuf>,
        source: std::io::Error,
    ) -> Self {
        Self::Petal(petal::Error::Io {
            action,
            path,
            source,
        })
    }
}

impl From<petal::Error> for Error {
    fn from(error: petal::Error) -> Self {
        Self::Petal(error)
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrecognised { got } => write!(
                f,
                "not a filter of a known system, by its first bytes ({}) and its length: \
                 name the format if it is one that cannot be told by looking, \
                 or fetch the file again",
                got.escape_ascii()
            ),
            Self::Field {
                format,
                name,
                got,
                expected,
            } => write!(
                f,
                "no valid filter of {format}: {name} is {got}, expected {expected}; \
                 fetch it again, or name another format"
            ),
            Self::Length {
                format,
                expected,
                got,
            } => write!(
                f,
                "no valid filter of {format}: its header accounts for {expected} bytes and \
                 there are {got}; fetch it again, or name another format"
            ),
            Self::Compression(what) => {
                write!(f, "the gzip data are damaged: {what}; fetch the file again")
            }
            Self::Parameter {
                name,
                got,
                expected,
            } => write!(f, "{name} = {got} is not possible: {expected}"),
            Self::Key {
                format,
                got,
                expected,
            } => write!(
                f,
                "a filter of {format} has no keys of type {got}: give {expected}"
            ),
            Self::Unsupported {
                format,
                operation,
                why,
            } => write!(f, "{operation} is not possible with {format}: {why}"),
            Self::Mismatch { what, ours, theirs } => write!(
                f,
                "{what} differs: this filter has {ours}, the other {theirs}; \
                 build both with the same settings"
            ),
            Self::Full { format, capacity } => write!(
                f,
                "the filter of {format} is full with the {capacity} keys it was made for, and \
                 its maker refuses more: build a larger one"
            ),
            Self::Memory { needed } => write!(
                f,
                "reading it may take {needed} bytes, more than the memory that is allowed: \
                 allow more, or name the right format if it is another one"
            ),
            Self::Petal(error) => error.fmt(f),
        }
    }
}
