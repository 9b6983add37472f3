//! Where the parts of a file are.
//!
//! ```text
//! header | metadata | zeros | payload | checksum table
//! 0      | 192      |       | a multiple of 64
//! ```
//!
//! Everything follows from the lengths of metadata and payload. What the bytes
//! mean is not known here.

use super::{ALIGN, MIB};

/// Bytes of the header.
pub(super) const HEADER_LEN: usize = 192;

/// Offsets and lengths of the parts of a file, in bytes. No sum of them
/// passes 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sections {
    pub(super) metadata_len: u64,
    pub(super) payload_offset: u64,
    pub(super) payload_len: u64,
    pub(super) table_offset: u64,
    pub(super) file_len: u64,
}

impl Sections {
    /// The parts of a file with so much metadata and payload, or `None` past
    /// 2^64 bytes.
    pub(super) fn new(metadata_len: u64, payload_len: u64) -> Option<Self> {
        let payload_offset = (HEADER_LEN as u64)
            .checked_add(metadata_len)?
            .checked_next_multiple_of(ALIGN)?;
        let table_offset = payload_offset.checked_add(payload_len)?;
        let file_len = table_offset.checked_add(payload_len.div_ceil(MIB as u64) * 8)?;
        Some(Self {
            metadata_len,
            payload_offset,
            payload_len,
            table_offset,
            file_len,
        })
    }

    /// Parts of the payload that have a checksum of their own.
    pub(super) const fn mibs(&self) -> u64 {
        self.payload_len.div_ceil(MIB as u64)
    }

    /// Bytes of such a part: a MiB, or less for the last one.
    pub(super) fn mib_len(&self, index: u64) -> usize {
        let left = self
            .payload_len
            .saturating_sub(index.saturating_mul(MIB as u64));
        usize::try_from(left).map_or(MIB, |left| left.min(MIB))
    }

    /// Zeros between metadata and payload.
    pub(super) const fn padding(&self) -> u64 {
        self.payload_offset - HEADER_LEN as u64 - self.metadata_len
    }
}
