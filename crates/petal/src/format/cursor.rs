//! Reads little-endian values from bytes, one after another.

use crate::error::FormatError;

/// What is left of a run of bytes. Reading past its end is an error.
pub(crate) struct Cursor<'a> {
    name: &'static str,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte of what `FORMAT.md` calls `name`.
    pub(crate) const fn new(name: &'static str, bytes: &'a [u8]) -> Self {
        Self { name, rest: bytes }
    }

    /// Bytes that are left.
    pub(crate) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(FormatError::Field {
                name: self.name,
                got: format!("{} bytes at its end", self.rest.len()),
                expected: format!("{count} more"),
            }),
        }
    }

    /// All bytes that are left.
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Result<f64, FormatError> {
        self.array().map(f64::from_le_bytes)
    }

    pub(crate) fn words<const N: usize>(&mut self) -> Result<[u64; N], FormatError> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.u64()?;
        }
        Ok(words)
    }
}
