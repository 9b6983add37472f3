//! The filter that many threads fill and ask at once.
//!
//! Owns [`ConcurrentBloom`], its typed form [`ConcurrentBloomFilter`], and the
//! ways from and to [`Bloom`]. The layout is that of [`crate::geometry`]; the
//! bits are set in [`crate::arch::atomic`], which also says why its memory
//! orderings suffice.

mod count;
#[cfg(test)]
#[cfg(loom)]
mod models;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;

use std::sync::atomic::Ordering::Relaxed;

use crate::arch::atomic;
use crate::bloom::concurrent::count::StripedCount;
use crate::bloom::{Bloom, BloomFilter};
use crate::error::Result;
use crate::geometry::SplitGeometry;
use crate::hash::{Bytes, Digest, Digests, Key, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::sizing::{self, Promise};
#[cfg(doc)]
use crate::traits::mask_words;
use crate::traits::{Bits, Contains, clear_mask};
use crate::typed::{BATCH, Typed, hash_all};
use crate::words::AtomicWords;

/// [`BloomFilter`] for many threads at once: they insert and ask through a
/// shared reference, without locks.
///
/// * A key is found from the moment its insertion returns: by the thread that
///   inserted it, and by every thread that learned of it through a channel, a
///   lock, a `join` or anything else that synchronises. Nothing is ever lost.
/// * Error, size and bits are those of a [`BloomFilter`] of the same keys,
///   whatever the order of insertions and the number of threads.
///
/// `insert` says whether *that call* changed a bit. Of several calls that
/// insert one key:
///
/// * More than one may say "new" if they run at the same time: each changed
///   some bits of the key. One that begins when another has returned, and
///   knows it as above, says "seen".
/// * All of them can say "seen" only if other keys cover every bit of the
///   key: a false answer, as rare as in a [`BloomFilter`].
///
/// So that each key is "new" at most once, give all its repeats to the same
/// thread, chosen by some bits of its digest.
///
/// "Seen" says nothing about what else the inserter wrote: that needs
/// synchronisation of its own.
///
/// [`Self::into_frozen`] gives a [`BloomFilter`], to be saved, merged, or asked
/// with vector instructions, which may not read words while others change
/// them.
///
/// ```
/// use petal::{ConcurrentBloomFilter, Int, KeyHasher};
///
/// let seen = ConcurrentBloomFilter::<Int>::with_hasher(4000, 0.001, KeyHasher::default())?;
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let seen = &seen;
///         scope.spawn(move || {
///             for key in 0..1000 {
///                 seen.insert(&(1000 * thread + key));
///             }
///         });
///     }
/// });
/// let seen = seen.into_frozen();
/// assert!((0..4000).all(|key| seen.contains(&key)));
/// # Ok::<(), petal::Error>(())
/// ```
pub type ConcurrentBloomFilter<K = Bytes> = Typed<K, ConcurrentBloom>;

impl ConcurrentBloomFilter<Bytes> {
    /// A filter of byte keys under the default hasher, sized as
    /// [`BloomFilter::new`] sizes it.
    ///
    /// # Errors
    /// As for [`BloomFilter::new`].
    pub fn new(items: u64, error: f64) -> Result<Self> {
        Self::with_hasher(items, error, KeyHasher::default())
    }
}

impl<K: KeyKind> ConcurrentBloomFilter<K> {
    /// A filter of either kind of key under a hasher of the caller's choice.
    ///
    /// # Errors
    /// As for [`BloomFilter::new`].
    pub fn with_hasher(items: u64, error: f64, hasher: KeyHasher) -> Result<Self> {
        BloomFilter::<K>::with_hasher(items, error, hasher)?.into_concurrent()
    }

    /// Inserts a key. True if this call changed a bit: see
    /// [`ConcurrentBloomFilter`] for what that says.
    #[inline]
    pub fn insert<Q: Key<K> + ?Sized>(&self, key: &Q) -> bool {
        let hasher = &self.about().identity.hasher;
        self.insert_bits(key.digest_bits(hasher))
    }

    /// [`Self::insert`] for many keys in order: bit `i % 64` of word `i / 64`
    /// of the mask is the answer for key `i`.
    ///
    /// # Errors
    /// If the mask is shorter than [`mask_words`] says.
    pub fn insert_batch<Q: Key<K>>(&self, keys: &[Q], mask: &mut [u64]) -> Result<()> {
        let mask = clear_mask(mask, keys.len())?;
        let hasher = &self.about().identity.hasher;
        let mut digests = [0; BATCH];
        for (keys, mask) in keys.chunks(BATCH).zip(mask.chunks_mut(BATCH / 64)) {
            self.insert_all_bits(hash_all(hasher, keys, &mut digests), mask);
        }
        Ok(())
    }

    /// The filter for one writer, with everything that was inserted. Nothing
    /// is copied.
    #[must_use]
    pub fn into_frozen(self) -> BloomFilter<K> {
        self.map(ConcurrentBloom::into_frozen)
    }
}

impl<K: KeyKind> BloomFilter<K> {
    /// The filter for many threads, with everything that is in it: see
    /// [`Bloom::into_concurrent`].
    ///
    /// # Errors
    /// As for [`Bloom::into_concurrent`].
    pub fn into_concurrent(self) -> Result<ConcurrentBloomFilter<K>> {
        Typed::new_for(self.into_inner().into_concurrent()?)
    }
}

impl Bloom {
    /// The filter for many threads, with everything that is in it. Its words
    /// are copied only if they are in a mapped file, which never changes by
    /// this.
    ///
    /// # Errors
    /// If they have to be copied, and the memory cannot be had.
    pub fn into_concurrent(self) -> Result<ConcurrentBloom> {
        let mut about = self.about;
        Ok(ConcurrentBloom {
            geometry: self.geometry,
            words: AtomicWords::new(self.words)?,
            before: about.insertions.take(),
            about,
            changed: StripedCount::new(),
        })
    }
}

/// [`ConcurrentBloomFilter`] over digests: the type of its keys is known at
/// run time.
#[derive(Debug)]
pub struct ConcurrentBloom {
    geometry: SplitGeometry,
    words: AtomicWords,
    /// Its own count of insertions is unknown meanwhile.
    about: About,
    /// The count of insertions when the filter became concurrent.
    before: Option<u64>,
    /// Those since.
    changed: StripedCount,
}

impl ConcurrentBloom {
    /// A filter for keys of the given identity, sized for a promise.
    ///
    /// # Errors
    /// As for [`BloomFilter::new`].
    pub fn sized(identity: Identity, promise: Promise) -> Result<Self> {
        Bloom::sized(identity, promise)?.into_concurrent()
    }

    /// The filter for one writer, with everything that was inserted. Nothing
    /// is copied.
    #[must_use]
    pub fn into_frozen(self) -> Bloom {
        let insertions = self.insertions();
        let mut about = self.about;
        about.insertions = insertions;
        Bloom::from_parts(about, self.geometry, self.words.into_words())
    }

    /// The shape.
    #[must_use]
    pub const fn geometry(&self) -> SplitGeometry {
        self.geometry
    }

    /// How many insertions changed a bit; `None` (unknown) if the filter was
    /// a union or an intersection. Calls that are under way may be missing.
    /// Several threads that insert one new key at the same moment may all be
    /// counted.
    #[must_use]
    pub fn insertions(&self) -> Option<u64> {
        Some(self.before? + self.changed.sum())
    }

    /// The share of bits that are set, 0 to 1. Insertions that are under way
    /// may be in it or not.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let words = self.words.get().iter();
        let ones: u64 = words
            .map(|word| u64::from(word.load(Relaxed).count_ones()))
            .sum();
        ones as f64 / self.geometry.bits() as f64
    }

    /// An estimate of the distinct keys from the share of bits that are set;
    /// infinite if all are.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        sizing::estimated_len(self.geometry, 1.0 - self.fill()).unwrap_or(f64::INFINITY)
    }

    /// Inserts a key. True if this call changed a bit: see
    /// [`ConcurrentBloomFilter`] for what that says.
    ///
    /// # Errors
    /// If the digest is of another origin.
    pub fn insert_digest(&self, digest: Digest) -> Result<bool> {
        self.origin().accept(digest.origin)?;
        Ok(self.insert_bits(digest.bits))
    }

    /// [`Self::insert_digest`] for a batch, in order: a repeat inside of the
    /// batch is "seen". The first [`mask_words`] words of `mask` receive the
    /// answers; further bits of the last word are 0.
    ///
    /// # Errors
    /// If the digests are of another origin or the mask is too short.
    pub fn insert_digests(&self, digests: &Digests, mask: &mut [u64]) -> Result<()> {
        self.origin().accept(digests.origin())?;
        let mask = clear_mask(mask, digests.len())?;
        self.insert_all_bits(digests.bits(), mask);
        Ok(())
    }

    /// The mask is clear and long enough.
    fn insert_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        let changed = atomic::insert_all(self.words.get(), self.geometry, digests, mask);
        if changed > 0 {
            self.changed.add(changed);
        }
    }

    #[inline]
    fn insert_bits(&self, digest: u64) -> bool {
        let changed = atomic::insert(self.words.get(), self.geometry, digest);
        if changed {
            self.changed.add(1);
        }
        changed
    }
}

impl Bits for ConcurrentBloom {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    #[inline]
    fn contains_bits(&self, digest: u64) -> bool {
        atomic::contains(self.words.get(), self.geometry, digest)
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        atomic::contains_all(self.words.get(), self.geometry, digests, mask);
    }
}
