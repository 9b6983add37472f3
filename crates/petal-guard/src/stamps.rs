//! Generations of keys: what makes an entry of the local cache invalid.
//!
//! Owns the counters. A lookup takes the [`Stamp`] of its key *before* it reads
//! anything, and what it finds is kept under that stamp. A change of the key
//! raises the counter, so that whatever was read before the change, and is stored
//! only after it, is never used: no lock is held while storage is read. Keys share
//! counters, which costs a reload now and then and is never wrong.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::item::Item;

const SLOTS: usize = 1 << 14;

/// A key as of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    epoch: u64,
    changes: u64,
}

#[derive(Debug)]
pub(crate) struct Stamps {
    /// Raised when changes of any key may have been missed.
    epoch: AtomicU64,
    changes: Box<[AtomicU64]>,
}

impl Stamps {
    pub(crate) fn new() -> Self {
        Self {
            epoch: AtomicU64::new(0),
            changes: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(crate) fn of(&self, item: &Item) -> Stamp {
        Stamp {
            epoch: self.epoch.load(SeqCst),
            changes: self.slot(item).load(SeqCst),
        }
    }

    pub(crate) fn changed(&self, item: &Item) {
        self.slot(item).fetch_add(1, SeqCst);
    }

    pub(crate) fn all_changed(&self) {
        self.epoch.fetch_add(1, SeqCst);
    }

    fn slot(&self, item: &Item) -> &AtomicU64 {
        &self.changes[usize::from(u16::from_le_bytes([item[0], item[1]])) % SLOTS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_of_no_use_after_a_change_of_its_key_or_of_all() {
        let stamps = Stamps::new();
        let (one, other) = ([1; 16], [2; 16]);
        let before = (stamps.of(&one), stamps.of(&other));
        stamps.changed(&one);
        assert_ne!(stamps.of(&one), before.0);
        assert_eq!(stamps.of(&other), before.1);
        stamps.all_changed();
        assert_ne!(stamps.of(&other), before.1);
    }
}
