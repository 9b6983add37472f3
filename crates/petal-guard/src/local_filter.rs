//! A filter in this process.
//!
//! Owns the filter that is asked and the one that is being filled. Whether its
//! "absent" may be believed is `hub`'s and `filter`'s to say.

use std::fmt;
use std::sync::{Arc, RwLock};

use petal::{Bytes, ConcurrentBloomFilter, KeyHasher, Secret};

use crate::error::Error;

type Bloom = ConcurrentBloomFilter<Bytes>;

pub(crate) struct LocalFilter {
    items: u64,
    error: f64,
    hasher: KeyHasher,
    sets: RwLock<Sets>,
}

#[derive(Default)]
struct Sets {
    live: Option<Arc<Bloom>>,
    shadow: Option<Arc<Bloom>>,
}

impl fmt::Debug for LocalFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalFilter")
            .field("items", &self.items)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl LocalFilter {
    /// # Errors
    /// If no filter can be sized so.
    pub(crate) fn new(items: u64, error: f64, secret: Secret) -> Result<Self, Error> {
        let filter = Self {
            items,
            error,
            hasher: KeyHasher::Keyed { secret },
            sets: RwLock::default(),
        };
        filter
            .empty()
            .map_err(|e| Error::Settings(format!("local filter: {e}")))?;
        Ok(filter)
    }

    fn empty(&self) -> petal::Result<Bloom> {
        Bloom::with_hasher(self.items, self.error, self.hasher.clone())
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Sets> {
        // Nothing panics under the lock.
        self.sets.read().unwrap_or_else(|e| e.into_inner())
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Sets> {
        self.sets.write().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether the key may be there; `None` if nobody knows.
    pub(crate) fn ask(&self, key: &[u8]) -> Option<bool> {
        self.read().live.as_ref().map(|filter| filter.contains(key))
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.read().live.is_some()
    }

    /// To the filter in use and to the one that is being filled.
    pub(crate) fn add(&self, key: &[u8]) {
        let sets = self.read();
        for filter in sets.live.iter().chain(&sets.shadow) {
            filter.insert(key);
        }
    }

    /// Keys were missed: nothing is known until it is filled again.
    pub(crate) fn lose(&self) {
        *self.write() = Sets::default();
    }

    /// From now on keys go to a second filter, too.
    pub(crate) fn begin(&self) -> Result<Shadow, Error> {
        let filter = self.empty().map_err(|e| Error::WarmUp(e.to_string()))?;
        let filter = Arc::new(filter);
        self.write().shadow = Some(filter.clone());
        Ok(Shadow(filter))
    }

    /// The second filter becomes the one in use.
    pub(crate) fn finish(&self, shadow: &Shadow) -> Result<(), Error> {
        let mut sets = self.write();
        match sets.shadow.take() {
            Some(filter) if Arc::ptr_eq(&filter, &shadow.0) => {
                sets.live = Some(filter);
                Ok(())
            }
            other => {
                sets.shadow = other;
                Err(Error::WarmUp(
                    "another warm-up began, or changes were missed meanwhile".into(),
                ))
            }
        }
    }
}

/// A filter that is being filled.
pub(crate) struct Shadow(Arc<Bloom>);

impl Shadow {
    pub(crate) fn add(&self, key: &[u8]) {
        self.0.insert(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> LocalFilter {
        LocalFilter::new(1000, 1e-6, Secret::new([7; 16])).unwrap()
    }

    #[test]
    fn knows_nothing_until_it_is_filled() {
        let filter = filter();
        assert_eq!(filter.ask(b"a"), None);
        filter.add(b"a");
        assert_eq!(filter.ask(b"a"), None);
        let shadow = filter.begin().unwrap();
        shadow.add(b"b");
        filter.add(b"c");
        assert_eq!(filter.ask(b"b"), None);
        filter.finish(&shadow).unwrap();
        let asked = [b"a", b"b", b"c"].map(|key| filter.ask(key));
        assert_eq!(asked, [Some(false), Some(true), Some(true)]);
        filter.lose();
        assert_eq!(filter.ask(b"b"), None);
    }

    #[test]
    fn a_filter_that_missed_changes_while_it_was_filled_is_not_used() {
        let filter = filter();
        let first = filter.begin().unwrap();
        filter.lose();
        assert!(filter.finish(&first).is_err());
        let first = filter.begin().unwrap();
        let second = filter.begin().unwrap();
        assert!(filter.finish(&first).is_err());
        filter.add(b"a");
        filter.finish(&second).unwrap();
        assert_eq!(filter.ask(b"a"), Some(true));
    }
}
