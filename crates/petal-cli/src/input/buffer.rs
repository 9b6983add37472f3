//! Bytes that go back to the system when they are large.
//!
//! Owns where the bytes of a block lie. Small buffers come from the heap and
//! are used again. A large one, for a line of megabytes, is a mapping of its
//! own: what the heap gets back on one thread it may keep from the others, and
//! such buffers would add up to more than any plan of the memory says.

use std::io;
use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// Longer buffers are mapped.
const MOST_ON_HEAP: usize = 256 << 10;

/// See the module.
#[derive(Debug)]
pub(super) enum Buffer {
    Heap(Vec<u8>),
    Mapped(MmapMut),
}

impl Buffer {
    /// Zeros, pages of which are untouched until they are written.
    pub(super) fn zeroed(len: usize) -> io::Result<Self> {
        if len > MOST_ON_HEAP {
            return Ok(Self::Mapped(MmapMut::map_anon(len)?));
        }
        Ok(Self::Heap(vec![0; len]))
    }

    /// A longer one with the same first `kept` bytes. For a moment both exist:
    /// of the new one only the pages that are copied.
    pub(super) fn grow(&mut self, len: usize, kept: usize) -> io::Result<()> {
        let mut grown = Self::zeroed(len)?;
        grown[..kept].copy_from_slice(&self[..kept]);
        *self = grown;
        Ok(())
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::Heap(Vec::new())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Mapped(bytes) => bytes,
        }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Mapped(bytes) => bytes,
        }
    }
}
