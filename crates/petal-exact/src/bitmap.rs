//! Which records of a source are kept: one bit each, set by many threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// A bit for each of a number of records.
#[derive(Debug, Default)]
pub(crate) struct Bitmap {
    words: Vec<AtomicU64>,
}

impl Bitmap {
    /// For so many records, of which those are kept whose bits are set in `kept`.
    pub(crate) fn new(mut kept: Vec<u64>, records: u64) -> Self {
        kept.resize(
            usize::try_from(records.div_ceil(64)).unwrap_or(usize::MAX),
            0,
        );
        Self {
            words: kept.into_iter().map(AtomicU64::new).collect(),
        }
    }

    /// Bytes that one for so many records takes.
    pub(crate) const fn bytes_for(records: u64) -> u64 {
        records.div_ceil(64) * 8
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Whether it has no bits at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Keeps a record. Threads that set bits are joined before bits are read, so no order is
    /// needed.
    pub(crate) fn set(&self, record: u64) {
        let word = usize::try_from(record / 64).unwrap_or(usize::MAX);
        self.words[word].fetch_or(1 << (record % 64), Ordering::Relaxed);
    }

    /// Whether a record is kept; false past the end.
    #[inline]
    pub(crate) fn get(&self, record: u64) -> bool {
        let word = usize::try_from(record / 64).ok();
        word.and_then(|word| self.words.get(word))
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (record % 64) & 1 == 1)
    }
}
