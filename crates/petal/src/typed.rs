//! Filters that know the type of their keys at compile time.
//!
//! Owns [`Typed`], one wrapper around every kind of filter. The kinds
//! themselves work on digests and are in modules of their own.

use std::marker::PhantomData;
use std::ops::Deref;

use crate::error::{Error, Result};
use crate::hash::{Key, KeyHasher, KeyKind};
use crate::identity::Labels;
use crate::traits::{Bits, BitsCount, BitsMut, BitsRemove, Merge, clear_mask};

/// A filter `F` for keys of kind `K` ([`crate::Bytes`] or [`crate::Int`]).
/// What does not depend on keys (`geometry`, `fill`, ...) is found on `F`.
#[derive(Debug)]
pub struct Typed<K, F> {
    filter: F,
    keys: PhantomData<fn() -> K>,
}

#[expect(private_bounds, reason = "the bound lists the kinds of this library")]
impl<K: KeyKind, F: Bits> Typed<K, F> {
    /// Gives a filter the type of its keys.
    ///
    /// # Errors
    /// If its keys are of the other type.
    pub fn new_for(filter: F) -> Result<Self> {
        let key_type = filter.meta().identity().key_type;
        if key_type != K::TYPE {
            return Err(Error::mismatch("key type", key_type, K::TYPE));
        }
        Ok(Self {
            filter,
            keys: PhantomData,
        })
    }

    /// The filter without the type of its keys, to be changed.
    pub(crate) const fn inner_mut(&mut self) -> &mut F {
        &mut self.filter
    }

    /// The filter without the type of its keys.
    #[must_use]
    pub fn into_inner(self) -> F {
        self.filter
    }

    /// Whether a key may have been inserted: always true for keys that were.
    #[inline]
    #[must_use]
    pub fn contains<Q: Key<K> + ?Sized>(&self, key: &Q) -> bool {
        let hasher = &self.filter.meta().identity.hasher;
        self.filter.contains_bits(key.digest_bits(hasher))
    }

    /// [`Self::contains`] for many keys, with the memory working in parallel:
    /// bit `i % 64` of word `i / 64` of the mask is the answer for key `i`.
    ///
    /// ```
    /// # let mut seen = petal::BloomFilter::new(1000, 0.01)?;
    /// seen.insert("b")?;
    /// let mut mask = [0; petal::mask_words(3)];
    /// seen.contains_batch(&["a", "b", "c"], &mut mask)?;
    /// assert_eq!(mask, [0b010]);
    /// # Ok::<(), petal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the mask is shorter than [`crate::mask_words`] says.
    pub fn contains_batch<Q: Key<K>>(&self, keys: &[Q], mask: &mut [u64]) -> Result<()> {
        let mask = clear_mask(mask, keys.len())?;
        let hasher = &self.filter.meta().identity.hasher;
        let mut digests = [0; BATCH];
        for (keys, mask) in keys.chunks(BATCH).zip(mask.chunks_mut(BATCH / 64)) {
            let digests = hash_all(hasher, keys, &mut digests);
            self.filter.contains_all_bits(digests, mask);
        }
        Ok(())
    }

    /// The labels, to be changed.
    pub fn labels_mut(&mut self) -> &mut Labels {
        &mut self.filter.meta_mut().labels
    }
}

#[expect(private_bounds, reason = "the bound lists the kinds of this library")]
impl<K: KeyKind, F: BitsMut> Typed<K, F> {
    /// Inserts a key. True if that changed a bit, so the key was certainly
    /// not in the filter before.
    ///
    /// # Errors
    /// If the filter was opened read-only, or has to grow and cannot.
    #[inline]
    pub fn insert<Q: Key<K> + ?Sized>(&mut self, key: &Q) -> Result<bool> {
        let bits = key.digest_bits(&self.filter.meta().identity.hasher);
        self.filter.insert_bits(bits)
    }

    /// [`Self::insert`] for many keys in order: bit `i % 64` of word `i / 64`
    /// of the mask tells whether key `i` was certainly new.
    ///
    /// # Errors
    /// As for one key, or if the mask is shorter than [`crate::mask_words`]
    /// says. After an error from growing, some of the keys may be inserted.
    pub fn insert_batch<Q: Key<K>>(&mut self, keys: &[Q], mask: &mut [u64]) -> Result<()> {
        let mask = clear_mask(mask, keys.len())?;
        let mut digests = [0; BATCH];
        for (keys, mask) in keys.chunks(BATCH).zip(mask.chunks_mut(BATCH / 64)) {
            let hasher = &self.filter.meta().identity.hasher;
            let digests = hash_all(hasher, keys, &mut digests);
            self.filter.insert_all_bits(digests, mask)?;
        }
        Ok(())
    }
}

#[expect(private_bounds, reason = "the bound lists the kinds of this library")]
impl<K: KeyKind, F: BitsRemove> Typed<K, F> {
    /// Undoes one insertion of a key. False, and nothing is changed, if the
    /// filter shows that the key is absent. Remove only what was inserted:
    /// see [`crate::Remove`].
    ///
    /// # Errors
    /// If the filter was opened read-only, or its mode forgets nothing.
    #[inline]
    pub fn remove<Q: Key<K> + ?Sized>(&mut self, key: &Q) -> Result<bool> {
        let bits = key.digest_bits(&self.filter.meta().identity.hasher);
        self.filter.remove_bits(bits)
    }

    /// [`Self::remove`] for many keys in order: bit `i % 64` of word `i / 64`
    /// of the mask tells whether key `i` was removed.
    ///
    /// # Errors
    /// As for one key, or if the mask is shorter than [`crate::mask_words`]
    /// says.
    pub fn remove_batch<Q: Key<K>>(&mut self, keys: &[Q], mask: &mut [u64]) -> Result<()> {
        let mask = clear_mask(mask, keys.len())?;
        let mut digests = [0; BATCH];
        for (keys, mask) in keys.chunks(BATCH).zip(mask.chunks_mut(BATCH / 64)) {
            let hasher = &self.filter.meta().identity.hasher;
            let digests = hash_all(hasher, keys, &mut digests);
            self.filter.remove_all_bits(digests, mask)?;
        }
        Ok(())
    }
}

#[expect(private_bounds, reason = "the bound lists the kinds of this library")]
impl<K: KeyKind, F: BitsCount> Typed<K, F> {
    /// How often a key was inserted, less how often it was removed: see
    /// [`crate::Count`].
    ///
    /// # Errors
    /// If the kind does not count.
    #[inline]
    pub fn count<Q: Key<K> + ?Sized>(&self, key: &Q) -> Result<u64> {
        let hasher = &self.filter.meta().identity.hasher;
        self.filter.count_bits(key.digest_bits(hasher))
    }
}

/// Keys that are hashed before they are looked up: a multiple of 64, enough
/// for the look-ups to overlap, and small enough for the stack.
pub(crate) const BATCH: usize = 512;

/// The digests of at most [`BATCH`] keys.
#[inline(always)]
pub(crate) fn hash_all<'a, K: KeyKind, Q: Key<K>>(
    hasher: &KeyHasher,
    keys: &[Q],
    digests: &'a mut [u64; BATCH],
) -> &'a [u64] {
    // The usual hasher gets a loop of its own, without a question a key.
    if let KeyHasher::Portable { seed: 0 } = hasher {
        Q::digest_bits_of_all(keys, &KeyHasher::Portable { seed: 0 }, digests);
    } else {
        Q::digest_bits_of_all(keys, hasher, digests);
    }
    &digests[..keys.len()]
}

impl<K, F> Typed<K, F> {
    /// The filter, to be changed by its own module.
    pub(crate) const fn filter_mut(&mut self) -> &mut F {
        &mut self.filter
    }

    /// The filter in another form, with the same keys.
    pub(crate) fn map<G>(self, form: impl FnOnce(F) -> G) -> Typed<K, G> {
        Typed {
            filter: form(self.filter),
            keys: PhantomData,
        }
    }
}

impl<K, F: Merge> Merge for Typed<K, F> {
    fn union_with(&mut self, other: &Self) -> Result<()> {
        self.filter.union_with(&other.filter)
    }

    fn intersect_with(&mut self, other: &Self) -> Result<()> {
        self.filter.intersect_with(&other.filter)
    }
}

impl<K, F> Deref for Typed<K, F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.filter
    }
}

/// Equal if the filters are: the type of the keys has no value of its own.
impl<K, F: PartialEq> PartialEq for Typed<K, F> {
    fn eq(&self, other: &Self) -> bool {
        self.filter == other.filter
    }
}
