//! What a store has to do to be fronted.
//!
//! Owns [`Store`], with the rules that the front's promise rests on, [`Batch`] and [`Mark`]. The
//! engines are in modules of their own.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::ControlFlow;

/// Gets a key at a time, and may break off.
pub type Visit<'a> = dyn FnMut(&[u8]) -> ControlFlow<()> + 'a;

/// Gets a key and its value at a time, and may break off.
pub type VisitEntry<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A key-value table with a log of the keys that were new, written in the transactions that
/// brought them.
///
/// The log has rows in ascending order of their generation, each with a random stamp and some
/// keys. There is always at least one; the last one's [`Mark`] is that of the table. Generations
/// are never used again, unless an older state of the whole store is put in its place.
pub trait Store: Send + Sync {
    /// What can go wrong.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The value of a key, in the newest committed state.
    ///
    /// # Errors
    /// If the engine refuses.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Visits all keys that begin with a prefix, and their values, in ascending order, in one
    /// committed state.
    ///
    /// # Errors
    /// If the engine refuses.
    fn scan(&self, prefix: &[u8], visit: &mut VisitEntry<'_>) -> Result<(), Self::Error>;

    /// Visits every key in one committed state, in any order.
    ///
    /// # Errors
    /// If the engine refuses.
    fn keys(&self, visit: &mut Visit<'_>) -> Result<(), Self::Error>;

    /// Makes changes in order in one transaction, which is durable when this returns. In the same
    /// transaction it adds rows to the log with every key that was not there before, and, if
    /// `trim` says so, removes the rows before that generation, but never the last row.
    ///
    /// # Errors
    /// If the engine refuses. All changes were made then, or none.
    fn apply(&self, changes: &[Change], trim: Option<u64>) -> Result<(), Self::Error>;

    /// The mark of the last row of the log.
    ///
    /// # Errors
    /// If the engine refuses.
    fn mark(&self) -> Result<Mark, Self::Error>;

    /// Visits the keys of all rows after that of a mark, and returns the last row's mark. `None` if
    /// the log has no row of exactly this mark, or is known not to have all keys: what was visited
    /// until then is of no use.
    ///
    /// # Errors
    /// If the engine refuses.
    fn keys_since(&self, mark: Mark, visit: &mut Visit<'_>) -> Result<Option<Mark>, Self::Error>;

    /// Empties the log in a transaction but for one new row without keys, with a later generation
    /// than any before: after that [`Self::keys_since`] knows no older mark.
    ///
    /// # Errors
    /// If the engine refuses.
    fn restart_log(&self) -> Result<(), Self::Error>;

    /// About how many keys there are, for the size of a filter.
    ///
    /// # Errors
    /// If the engine refuses.
    fn len_hint(&self) -> Result<u64, Self::Error>;
}

/// A row of a store's log: where a filter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Grows with every row.
    pub generation: u64,
    /// Random: tells rows of one generation in two histories of a store apart.
    pub stamp: u64,
}

impl Mark {
    /// A mark with a stamp of its own.
    #[must_use]
    pub fn fresh(generation: u64) -> Self {
        // Each has keys from the system's randomness.
        let stamp = RandomState::new().hash_one(generation);
        Self { generation, stamp }
    }
}

/// One change of a [`Batch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A key gets a value, whether it had one or not.
    Put {
        /// The key.
        key: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// A key goes, if it is there.
    Remove {
        /// The key.
        key: Vec<u8>,
    },
}

/// Changes that are made in one transaction, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    changes: Vec<Change>,
}

impl Batch {
    /// No change.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            changes: Vec::new(),
        }
    }

    /// Gives a key a value.
    pub fn put(&mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        let (key, value) = (key.into(), value.into());
        self.changes.push(Change::Put { key, value });
    }

    /// Removes a key.
    pub fn remove(&mut self, key: impl Into<Vec<u8>>) {
        self.changes.push(Change::Remove { key: key.into() });
    }

    /// The changes in order.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Forgets the changes and keeps the memory.
    pub fn clear(&mut self) {
        self.changes.clear();
    }
}
