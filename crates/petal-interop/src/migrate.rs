//! Moving from an old filter to a petal filter while work goes on.

use petal::AnyFilter;

use crate::error::Result;
use crate::filter::ForeignFilter;
use crate::key::ForeignKey;

/// An old filter that is asked and a new one that is filled.
///
/// Bits of the old filter cannot be carried over, since the hashes differ, and
/// its keys are not in it. So both are asked: what either has was seen; and
/// whatever is asked goes into the new one. Once the questions of interest have
/// all come by, the old filter is no longer needed.
///
/// A new key is taken for a known one with the errors of both filters.
#[derive(Debug)]
pub struct Migration<F> {
    old: F,
    new: AnyFilter,
    moved: u64,
}

impl<F: ForeignFilter> Migration<F> {
    /// From an old filter to a new one for byte keys.
    #[must_use]
    pub const fn new(old: F, new: AnyFilter) -> Self {
        Self { old, new, moved: 0 }
    }

    /// Whether a key was seen, by either filter; it has been from now on.
    ///
    /// # Errors
    /// If the old filter has no such key, or the new one takes none.
    pub fn seen(&mut self, key: ForeignKey<'_>) -> Result<bool> {
        let bytes = key.plain();
        if self.new.contains_bytes(&bytes)? {
            return Ok(true);
        }
        let seen = self.old.contains(key)?;
        self.new.insert_bytes(&bytes)?;
        self.moved += u64::from(seen);
        Ok(seen)
    }

    /// Keys that only the old filter had when they were asked for.
    #[must_use]
    pub const fn moved(&self) -> u64 {
        self.moved
    }

    /// The new filter, once the old one can go.
    #[must_use]
    pub fn into_new(self) -> AnyFilter {
        self.new
    }
}
