//! What a filter under test can do.
//!
//! Owns [`Contestant`], which takes whole runs of keys so that the dynamic call costs nothing a key,
//! and [`Single`], from which it follows for filters that take one key at a time.

use crate::filters::keys::Keys;

/// A filter that takes runs of keys.
pub(crate) trait Contestant<K: Keys> {
    /// Inserts the keys, one call each.
    fn insert(&mut self, keys: &K);

    /// How many of the keys the filter says "seen" to, one call each.
    fn count(&mut self, keys: &K) -> usize;

    /// Removes the keys, one call each. How many the filter says were there; `None` if it forgets
    /// nothing.
    fn remove(&mut self, _keys: &K) -> Option<usize> {
        None
    }

    /// The same through the filter's calls for many keys; `None` if it has none.
    fn batches(&mut self) -> Option<&mut dyn Batches<K>> {
        None
    }

    /// Whether all keys have to come in one call of [`Contestant::insert`].
    fn takes_all_at_once(&self) -> bool {
        false
    }

    /// Bits of memory the filter takes.
    fn bits(&self) -> usize;

    /// The error that follows from the bits as they are, if it is known. For errors too small to be
    /// measured.
    fn error_from_bits(&self) -> Option<f64>;
}

/// A filter that takes many keys in one call.
pub(crate) trait Batches<K: Keys> {
    /// Inserts the keys.
    fn insert(&mut self, keys: &K);

    /// How many of the keys the filter says "seen" to.
    fn count(&mut self, keys: &K) -> usize;

    /// Removes the keys, as [`Contestant::remove`].
    fn remove(&mut self, _keys: &K) -> Option<usize> {
        None
    }
}

/// A filter that takes one key at a time.
pub(crate) trait Single<Q: ?Sized> {
    fn insert(&mut self, key: &Q);
    fn contains(&self, key: &Q) -> bool;
    fn bits(&self) -> usize;
    /// Whether the key was there; `None` if the filter forgets nothing.
    fn remove(&mut self, _key: &Q) -> Option<bool> {
        None
    }
    fn error_from_bits(&self) -> Option<f64> {
        None
    }
}

/// A [`Single`] filter as a contestant.
pub(crate) struct OneByOne<F>(pub(crate) F);

impl<K: Keys, F: Single<K::Key>> Contestant<K> for OneByOne<F> {
    fn insert(&mut self, keys: &K) {
        for key in keys.iter() {
            self.0.insert(key);
        }
    }

    fn count(&mut self, keys: &K) -> usize {
        keys.iter().filter(|key| self.0.contains(key)).count()
    }

    fn remove(&mut self, keys: &K) -> Option<usize> {
        let mut removed = 0;
        for key in keys.iter() {
            removed += usize::from(self.0.remove(key)?);
        }
        Some(removed)
    }

    fn bits(&self) -> usize {
        self.0.bits()
    }

    fn error_from_bits(&self) -> Option<f64> {
        self.0.error_from_bits()
    }
}
