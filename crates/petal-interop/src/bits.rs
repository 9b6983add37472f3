//! The bits of a filter, in the bytes of its file.
//!
//! Owns both orders of bits in use: least significant bit first, byte after
//! byte (a little-endian word is the same), and words stored big-endian. It
//! does not own lengths from headers: whoever makes an array from a file has
//! compared them with the file.

use std::io::Write;
use std::ops::Range;

use crate::error::{Error, Result};

/// Which bit of the bytes is bit `i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Bit `i % 8` of byte `i / 8`.
    Lsb,
    /// Bit `i % 64` of the big-endian word `i / 64`.
    BigEndianWords,
    /// Bit `7 - i % 8` of byte `i / 8`.
    Msb,
    /// Bit `31 - i % 32` of the little-endian word of 32 bits `i / 32`.
    MsbOfLittleEndian32,
}

/// Bits in memory, perhaps with the header of their file before them and what
/// follows behind: a file that was read is kept as it is.
#[derive(Debug, Clone)]
pub(crate) struct BitArray {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    order: Order,
}

impl BitArray {
    /// So many zero bytes.
    pub(crate) fn zeroed(len: u64, order: Order) -> Result<Self> {
        let bytes = zeros(len)?;
        Ok(Self {
            start: 0,
            end: bytes.len(),
            bytes,
            order,
        })
    }

    /// The bits between two offsets, at most the length, of a file.
    pub(crate) fn of_file(bytes: Vec<u8>, start: usize, end: usize, order: Order) -> Self {
        let end = end.min(bytes.len());
        Self {
            start: start.min(end),
            end,
            bytes,
            order,
        }
    }

    /// The bytes as in the file.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The bytes of the file behind the bits.
    pub(crate) fn behind(&self) -> &[u8] {
        &self.bytes[self.end..]
    }

    /// Replaces the bytes of the file behind the bits.
    pub(crate) fn set_behind(&mut self, behind: &[u8]) {
        self.bytes.truncate(self.end);
        self.bytes.extend_from_slice(behind);
    }

    pub(crate) const fn order(&self) -> Order {
        self.order
    }

    /// Bits that the bytes have room for.
    pub(crate) const fn room(&self) -> u64 {
        (self.end - self.start) as u64 * 8
    }

    fn place(&self, bit: u64) -> (usize, u8) {
        let (byte, shift) = match self.order {
            Order::Lsb => (bit / 8, bit % 8),
            Order::BigEndianWords => (bit / 64 * 8 + 7 - bit % 64 / 8, bit % 8),
            Order::Msb => (bit / 8, 7 - bit % 8),
            Order::MsbOfLittleEndian32 => (bit / 32 * 4 + 3 - bit % 32 / 8, 7 - bit % 8),
        };
        // What does not fit is past the end: get and set check that.
        let byte = usize::try_from(byte).unwrap_or(usize::MAX);
        (self.start.saturating_add(byte), 1 << shift)
    }

    /// Whether a bit is set; false past the end.
    pub(crate) fn get(&self, bit: u64) -> bool {
        let (byte, mask) = self.place(bit);
        byte < self.end && self.bytes[byte] & mask != 0
    }

    /// Sets a bit. True if it was not set.
    pub(crate) fn set(&mut self, bit: u64) -> bool {
        let (byte, mask) = self.place(bit);
        if byte >= self.end {
            return false;
        }
        let changed = self.bytes[byte] & mask == 0;
        self.bytes[byte] |= mask;
        changed
    }

    /// How many of the bits below `bits` are set.
    pub(crate) fn ones(&self, bits: u64) -> u64 {
        self.ones_of(0..bits)
    }

    /// How many of a range of bits are set.
    pub(crate) fn ones_of(&self, bits: Range<u64>) -> u64 {
        let end = bits.end.min(self.room());
        let start = bits.start.min(end);
        let one_by_one = |bits: Range<u64>| bits.map(|bit| u64::from(self.get(bit))).sum::<u64>();
        // Whole words, whose order of bits does not matter.
        let (first, last) = (start.next_multiple_of(64), end / 64 * 64);
        if first >= last {
            return one_by_one(start..end);
        }
        let byte = |bit: u64| usize::try_from(bit / 8).unwrap_or(usize::MAX);
        let words = &self.as_bytes()[byte(first)..byte(last)];
        let counted: u64 = words.iter().map(|byte| u64::from(byte.count_ones())).sum();
        one_by_one(start..first) + counted + one_by_one(last..end)
    }

    /// Sets all bits of another array of the same length and order.
    pub(crate) fn union_with(&mut self, other: &Self) {
        for (ours, theirs) in self.bytes[self.start..self.end]
            .iter_mut()
            .zip(other.as_bytes())
        {
            *ours |= theirs;
        }
    }
}

/// An empty vector with room for exactly `len` bytes. Refused without
/// allocating if this process may not use as many.
pub(crate) fn reserve(len: u64) -> Result<Vec<u8>> {
    petal::memory::check(len)?;
    let mut bytes = Vec::new();
    usize::try_from(len)
        .ok()
        .and_then(|len| bytes.try_reserve_exact(len).ok())
        .ok_or(petal::Error::TooLarge {
            needed: len,
            available: None,
        })?;
    Ok(bytes)
}

/// So many zero bytes, which take memory only where they are written to.
pub(crate) fn zeros(len: u64) -> Result<Vec<u8>> {
    // Refused here if the system has no room for it; asked for anew because
    // only then its zeros need not be written.
    let len = reserve(len)?
        .capacity()
        .min(usize::try_from(len).unwrap_or(0));
    Ok(vec![0; len])
}

/// Writes, with the library's error.
pub(crate) fn put(out: &mut dyn Write, bytes: &[u8]) -> Result<()> {
    out.write_all(bytes)
        .map_err(|error| Error::io("write", None, error))
}
