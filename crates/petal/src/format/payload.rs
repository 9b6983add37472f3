//! The words of a filter in the payload: which run of them is where.
//!
//! Owns the placement of runs (one a filter, one a stage of a growable
//! filter, three of a cascade) and what must be zero between and behind them.

use super::ALIGN;
use super::checksum::is_zero;
use super::header::{Geometry, field};
use super::metadata::{Growth, growth_missing};
use crate::error::{FormatError, Result};
use crate::words::Words;

/// A run of words at a multiple of 64 bytes in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// Bytes from the start of the payload.
    pub(super) offset: u64,
    pub(super) words: u64,
}

impl Run {
    pub(super) const fn end(self) -> u64 {
        self.offset + self.words * 8
    }
}

/// All runs of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Runs {
    runs: Vec<Run>,
    /// Bits of the last word that must be zero.
    unused_bits: u64,
}

impl Runs {
    /// Places the words of a filter.
    ///
    /// # Errors
    /// If there is no run, or they pass 2^64 bytes.
    pub(super) fn new(geometry: &Geometry, growth: Option<&Growth>) -> Result<Self, FormatError> {
        let mut unused_bits = 0;
        let words: Vec<u64> = match (geometry, growth) {
            (Geometry::DigestSet { slots, .. }, None) => vec![*slots],
            (Geometry::Bloom(shape), None) => vec![shape.words()],
            (Geometry::Counting(shape), None) => vec![shape.words()],
            (Geometry::Window(shape), None) => vec![shape.words()],
            (Geometry::Deletable { shape, .. }, None) => vec![shape.words()],
            (Geometry::Static(shape), None) => vec![shape.words()],
            (Geometry::Cascade(shape), None) => shape.runs().to_vec(),
            (Geometry::Classic(shape), None) => {
                let used = shape.bits() % 64;
                if used != 0 {
                    unused_bits = u64::MAX << used;
                }
                vec![shape.words()]
            }
            (Geometry::Growable { stages }, Some(growth)) => {
                if growth.stages.is_empty() || growth.stages.len() as u64 != *stages {
                    return Err(field("stages", growth.stages.len(), stages));
                }
                growth.stages.iter().map(|s| s.geometry.words()).collect()
            }
            (Geometry::Growable { .. }, None) => return Err(growth_missing()),
            (_, Some(_)) => {
                return Err(field("growth", "there", "none, as the kind does not grow"));
            }
        };
        let mut runs = Vec::with_capacity(words.len());
        let mut end = 0u64;
        for words in words {
            let place = || {
                let offset = end.checked_next_multiple_of(ALIGN)?;
                let end = offset.checked_add(words.checked_mul(8)?)?;
                Some((Run { offset, words }, end))
            };
            let Some((run, next)) = place() else {
                return Err(field("geometry", "more than 2^64 bytes", "fewer"));
            };
            runs.push(run);
            end = next;
        }
        Ok(Self { runs, unused_bits })
    }

    /// The runs in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Run> {
        self.runs.iter().copied()
    }

    /// Bytes of the whole payload.
    pub(super) fn len(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.end())
    }

    /// Checks that what must be zero is zero in a part of the payload.
    /// Parts start and end at multiples of 8.
    pub(super) fn check(&self, offset: u64, part: &[u8]) -> Result<(), FormatError> {
        for pair in self.runs.windows(2) {
            if !is_zero(within(part, offset, pair[0].end(), pair[1].offset)) {
                return Err(field("gap between runs", "set", "zeros"));
            }
        }
        let last = self.len().saturating_sub(8);
        if let Some(word) = within(part, offset, last, self.len()).first_chunk()
            && u64::from_le_bytes(*word) & self.unused_bits != 0
        {
            return Err(field("bits behind the last one", "set", "zeros"));
        }
        Ok(())
    }

    /// Memory for all words.
    pub(super) fn allocate(&self) -> Result<Vec<Words>> {
        self.iter().map(|run| Words::zeroed(run.words)).collect()
    }

    /// Copies a part of the payload to where it belongs in `words`, which
    /// [`Self::allocate`] made. Bytes stay little-endian.
    pub(super) fn copy(&self, offset: u64, part: &[u8], words: &mut [Words]) -> Result<()> {
        for (run, words) in self.iter().zip(words) {
            let bytes = within(part, offset, run.offset, run.end());
            if is_zero(bytes) {
                continue; // also keeps untouched memory untouched
            }
            let start = run.offset.max(offset) - run.offset;
            let start = usize::try_from(start).unwrap_or(usize::MAX); // fits: it is in memory
            words.bytes_mut()?[start..][..bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }
}

/// The bytes of `part`, which starts at `offset`, that are from `start` to `end`.
fn within(part: &[u8], offset: u64, start: u64, end: u64) -> &[u8] {
    let index = |at: u64| {
        let at = at.saturating_sub(offset).min(part.len() as u64);
        usize::try_from(at).unwrap_or(part.len())
    };
    let (start, end) = (index(start), index(end));
    part.get(start..end).unwrap_or(&[])
}
