//! What a question can be about: the key types that makers tell apart.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::format::Format;

/// A key as another system knows it. Which of them a filter was filled with
/// is known to its maker, and seldom in the file.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ForeignKey<'a> {
    /// Text. In most systems the same as its UTF-8 bytes; Python's libraries
    /// tell the two apart.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Units of UTF-16, as Java's `char`.
    Utf16(&'a [u16]),
    /// A 32-bit integer.
    I32(i32),
    /// A 64-bit integer.
    I64(i64),
    /// A 32-bit floating-point number, by its bits.
    F32(f32),
    /// A 64-bit floating-point number, by its bits.
    F64(f64),
}

impl<'a> ForeignKey<'a> {
    /// Bytes as text if they are UTF-8, else as bytes.
    #[must_use]
    pub fn of_line(line: &'a [u8]) -> Self {
        std::str::from_utf8(line).map_or(Self::Bytes(line), Self::Text)
    }

    /// The name of the type.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Utf16(_) => "utf16",
            Self::I32(_) => "i32",
            Self::I64(_) => "i64",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
        }
    }

    /// The bytes of text or bytes; other types are refused.
    pub(crate) const fn bytes(self, format: Format) -> Result<&'a [u8]> {
        match self {
            Self::Text(text) => Ok(text.as_bytes()),
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(Error::Key {
                format,
                got: other.type_name(),
                expected: "text or bytes",
            }),
        }
    }

    /// The bytes of text or bytes, or the little-endian bytes of the rest.
    pub(crate) fn plain(self) -> Cow<'a, [u8]> {
        match self {
            Self::Text(text) => Cow::Borrowed(text.as_bytes()),
            Self::Bytes(bytes) => Cow::Borrowed(bytes),
            Self::Utf16(units) => units.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
            Self::I32(value) => value.to_le_bytes().to_vec().into(),
            Self::I64(value) => value.to_le_bytes().to_vec().into(),
            Self::F32(value) => value.to_le_bytes().to_vec().into(),
            Self::F64(value) => value.to_le_bytes().to_vec().into(),
        }
    }
}
