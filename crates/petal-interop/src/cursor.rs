//! Reading fields one after another, in either byte order.

use crate::error::{Error, Result};
use crate::format::Format;

/// A place in the bytes of a file.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    format: Format,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(format: Format, bytes: &'a [u8]) -> Self {
        Self {
            format,
            bytes,
            at: 0,
        }
    }

    /// The offset of the next field.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    pub(crate) const fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let taken = usize::try_from(len)
            .ok()
            .and_then(|len| self.bytes.get(self.at..self.at.checked_add(len)?))
            .ok_or(Error::Length {
                format: self.format,
                expected: (self.at as u64).saturating_add(len),
                got: self.bytes.len() as u64,
            })?;
        self.at += taken.len();
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16_be(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32_le(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn i32_le(&mut self) -> Result<i32> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64_le(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn f64_le(&mut self) -> Result<f64> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i32_be(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64_be(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Refuses bytes that are left.
    pub(crate) const fn end(&self) -> Result<()> {
        if self.left() == 0 {
            return Ok(());
        }
        Err(Error::Length {
            format: self.format,
            expected: self.at as u64,
            got: self.bytes.len() as u64,
        })
    }
}
