//! The filter that can forget and count: a counter for every bit of a Bloom
//! filter.
//!
//! Owns [`Counting`] and its typed form [`CountingBloomFilter`]: geometry,
//! words and description put together. The shape is in `geometry`, the
//! counters of a digest in `kernel`, passes over all counters in `cells`,
//! sizes and errors in [`crate::sizing`].

mod cells;
mod geometry;
mod kernel;
#[cfg(test)]
mod tests;

pub use geometry::{CounterBits, CountingGeometry, Increase};

use crate::bloom::{Bloom, BloomFilter, fill};
use crate::error::{Error, Result};
use crate::geometry::SplitGeometry;
use crate::hash::{Bytes, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::sizing::{self, Promise};
use crate::traits::{Bits, BitsCount, BitsMut, BitsRemove, Merge};
use crate::typed::Typed;
use crate::words::Words;

/// A Bloom filter that can forget keys, count them, and subtract others.
///
/// It has a counter where a [`BloomFilter`] has a bit, so it is 4 times as large
/// (with counters of 4 bits), answers as that one does, and turns into it by
/// [`Self::to_bloom`].
///
/// * A key that was inserted more often than it was removed is found, as long
///   as only keys are removed that were inserted.
/// * With at most `n` distinct keys in it, an absent key is found with an
///   expected probability of at most `p`, for the `n` and `p` given to `new`.
///   Repeats do not add to that.
/// * [`Self::insert`] is true if the key was certainly absent; the key is counted
///   in either case.
/// * [`Self::count`] is never below the truth, up to the most a counter can
///   hold, and above it at most as often as an absent key is found.
///
/// A counter that reaches its maximum is *saturated*: how often it was
/// increased is unknown from then on, so it never goes down, and its keys are
/// never quite forgotten. [`Counting::saturated`] tells how many are, and
/// [`sizing::saturated_counters`] how many to expect: of a million keys inserted
/// once each, with counters of 4 bits and an error of 1 % or less, 1 to 3 in 10^7,
/// so that one filter in millions has any. A key that is inserted 15 times
/// saturates its counters of 4 bits: removing it then changes nothing and is false,
/// though [`Self::contains`] is true.
///
/// After Fan, Cao, Almeida and Broder, "Summary cache" (2000).
///
/// ```
/// let mut online = petal::CountingBloomFilter::new(1_000_000, 0.01)?;
/// online.insert("ada")?;
/// online.insert("ada")?;
/// assert_eq!(online.count("ada")?, 2);
/// assert!(online.remove("ada")?);
/// assert!(online.contains("ada"));
/// assert!(online.remove("ada")?);
/// assert!(!online.contains("ada"));
/// assert!(!online.remove("ada")?); // it is not there
/// # Ok::<(), petal::Error>(())
/// ```
pub type CountingBloomFilter<K = Bytes> = Typed<K, Counting>;

impl CountingBloomFilter<Bytes> {
    /// A filter of byte keys with counters of 4 bits, sized for `items`
    /// distinct keys at a time and an expected error of at most `error`.
    ///
    /// # Errors
    /// As for [`BloomFilter::new`].
    pub fn new(items: u64, error: f64) -> Result<Self> {
        let counter = CounterBits::default();
        Self::with_options(items, error, KeyHasher::default(), counter, Increase::All)
    }
}

impl<K: KeyKind> CountingBloomFilter<K> {
    /// A filter of either kind of key, with a hasher, counters and a way of
    /// counting of the caller's choice.
    ///
    /// ```
    /// use petal::{CounterBits, CountingBloomFilter, Increase, Int, KeyHasher};
    /// let mut flows = CountingBloomFilter::<Int>::with_options(
    ///     10_000, 0.01, KeyHasher::default(), CounterBits::Sixteen, Increase::Minimal)?;
    /// for _ in 0..1000 {
    ///     flows.insert(&7)?;
    /// }
    /// assert_eq!(flows.count(&7)?, 1000);
    /// assert!(flows.remove(&7).is_err()); // minimal increase cannot
    /// # Ok::<(), petal::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`BloomFilter::new`].
    pub fn with_options(
        items: u64,
        error: f64,
        hasher: KeyHasher,
        counter: CounterBits,
        increase: Increase,
    ) -> Result<Self> {
        let identity = Identity::new(K::TYPE).with_hasher(hasher);
        let promise = Promise { items, error };
        Self::new_for(Counting::sized(identity, promise, counter, increase)?)
    }

    /// [`Counting::subtract`]
    ///
    /// # Errors
    /// As there.
    pub fn subtract(&mut self, other: &Self) -> Result<()> {
        self.filter_mut().subtract(other)
    }

    /// [`Counting::to_bloom`]
    ///
    /// # Errors
    /// As there.
    pub fn to_bloom(&self) -> Result<BloomFilter<K>> {
        BloomFilter::new_for(Counting::to_bloom(self)?)
    }
}

/// [`CountingBloomFilter`] over digests: the type of its keys is known at run
/// time.
#[derive(Debug)]
pub struct Counting {
    geometry: CountingGeometry,
    words: Words,
    about: About,
}

impl Counting {
    /// A filter for keys of the given identity, sized for a promise.
    ///
    /// # Errors
    /// As for [`BloomFilter::new`].
    pub fn sized(
        identity: Identity,
        promise: Promise,
        counter: CounterBits,
        increase: Increase,
    ) -> Result<Self> {
        let split = sizing::split_for(promise.items, promise.error, identity.collisions())?;
        let geometry = CountingGeometry::new(split, counter, increase)?;
        Self::with_geometry(identity, geometry, promise)
    }

    /// A filter of a given shape. The promise is recorded as it is: that the
    /// shape keeps it is the caller's word.
    ///
    /// # Errors
    /// If the memory cannot be had.
    pub fn with_geometry(
        identity: Identity,
        geometry: CountingGeometry,
        promise: Promise,
    ) -> Result<Self> {
        Ok(Self {
            geometry,
            words: Words::zeroed(geometry.words())?,
            about: About::new(identity, Some(promise)),
        })
    }

    /// Puts together what a file held. The words must fit the geometry.
    pub(crate) fn from_parts(about: About, geometry: CountingGeometry, words: Words) -> Self {
        debug_assert_eq!(words.get().len() as u64, geometry.words());
        Self {
            geometry,
            words,
            about,
        }
    }

    /// The shape.
    #[must_use]
    pub const fn geometry(&self) -> CountingGeometry {
        self.geometry
    }

    /// The share of counters that are not 0, 0 to 1.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let set: u64 = self.bits().map(|bits| u64::from(bits.count_ones())).sum();
        set as f64 / self.geometry.counters() as f64
    }

    /// How many counters are saturated: they never go down again.
    #[must_use]
    pub fn saturated(&self) -> u64 {
        cells::saturated(self.geometry.counter(), self.words.get())
    }

    /// An estimate of the distinct keys from the share of counters that are
    /// not 0; infinite if all are.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        let zeros = 1.0 - self.fill();
        sizing::estimated_len(self.geometry.split(), zeros).unwrap_or(f64::INFINITY)
    }

    /// The error as the filter stands now, from all of its counters: the
    /// chance that a random absent key is "seen".
    #[must_use]
    pub fn error_now(&self) -> f64 {
        fill::error_of(self.bits(), self.geometry.split())
    }

    /// The Bloom filter of the keys that are in this one: bit for bit the one
    /// that they would have been inserted into, unless counters are saturated,
    /// whose bits stay. A quarter of the size (of counters of 4 bits), and
    /// faster to ask; its insertions are unknown.
    ///
    /// # Errors
    /// If the memory cannot be had.
    pub fn to_bloom(&self) -> Result<Bloom> {
        let split: SplitGeometry = self.geometry.split();
        let mut words = Words::zeroed(split.words())?;
        for (word, bits) in words.get_mut()?.iter_mut().zip(self.bits()) {
            *word = bits;
        }
        let mut about = About::new(self.about.identity.clone(), self.about.promise);
        about.labels = self.about.labels.clone();
        about.insertions = None;
        Ok(Bloom::from_parts(about, split, words))
    }

    /// Takes the insertions of the other filter out of this one. They must
    /// all be in this one, such as those of an earlier copy of it: what the
    /// counters show not to be here is refused, the rest cannot be found out.
    /// What is saturated stays so.
    ///
    /// # Errors
    /// If geometry, hasher, key type or normalisation differ; if the filters
    /// count with minimal increase; if the other has a counter that is above
    /// this one's; or if this one is read-only. Nothing is changed then.
    pub fn subtract(&mut self, other: &Self) -> Result<()> {
        self.accept(other)?;
        self.refuse_minimal_increase()?;
        let counter = self.geometry.counter();
        if !cells::covers(counter, self.words.get(), other.words.get()) {
            return Err(Error::parameter(
                "the filter to subtract",
                "one with keys that this one lacks",
                "subtract only what was inserted here and not removed since",
            ));
        }
        cells::subtract(counter, self.words.get_mut()?, other.words.get());
        self.about.insertions = self
            .about
            .insertions
            .zip(other.about.insertions)
            .and_then(|(mine, theirs)| mine.checked_sub(theirs));
        Ok(())
    }

    pub(crate) const fn words(&self) -> &Words {
        &self.words
    }

    /// The words of the Bloom filter.
    fn bits(&self) -> impl Iterator<Item = u64> {
        cells::bits(self.geometry.counter(), self.words.get())
    }

    fn accept(&self, other: &Self) -> Result<()> {
        self.about.identity.accept(&other.about.identity)?;
        if self.geometry != other.geometry {
            return Err(Error::mismatch("geometry", self.geometry, other.geometry));
        }
        Ok(())
    }

    /// Refuses what needs to know which counters a key has increased.
    fn refuse_minimal_increase(&self) -> Result<()> {
        match self.geometry.increase() {
            Increase::All => Ok(()),
            Increase::Minimal => Err(Error::parameter(
                "removing",
                "from a filter with minimal increase",
                "an insertion increased only the least of a key's counters, nobody knows \
                 which: use a filter that increases all of them",
            )),
        }
    }
}

impl Bits for Counting {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    #[inline]
    fn contains_bits(&self, digest: u64) -> bool {
        self.geometry.contains(self.words.get(), digest)
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        self.geometry.contains_all(self.words.get(), digests, mask);
    }
}

impl BitsMut for Counting {
    /// True if one of the counters was 0, so that the key was certainly absent.
    #[inline]
    fn insert_bits(&mut self, digest: u64) -> Result<bool> {
        let new = self.geometry.insert(self.words.get_mut()?, digest);
        self.about.count(1);
        Ok(new)
    }

    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        self.geometry
            .insert_all(self.words.get_mut()?, digests, mask);
        self.about.count(digests.len() as u64);
        Ok(())
    }
}

impl BitsRemove for Counting {
    #[inline]
    fn remove_bits(&mut self, digest: u64) -> Result<bool> {
        self.refuse_minimal_increase()?;
        let removed = self.geometry.remove(self.words.get_mut()?, digest);
        self.about.uncount(u64::from(removed));
        Ok(removed)
    }

    fn remove_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        self.refuse_minimal_increase()?;
        let removed = self
            .geometry
            .remove_all(self.words.get_mut()?, digests, mask);
        self.about.uncount(removed);
        Ok(())
    }
}

impl BitsCount for Counting {
    /// The least of the counters. Their maximum means "that often or more".
    fn count_bits(&self, digest: u64) -> Result<u64> {
        Ok(self.geometry.count(self.words.get(), digest))
    }
}

/// Insertions add up in a union. An intersection has every key that is in
/// both, as often as in the one that has it more rarely.
impl Merge for Counting {
    fn union_with(&mut self, other: &Self) -> Result<()> {
        self.accept(other)?;
        let counter = self.geometry.counter();
        cells::add(counter, self.words.get_mut()?, other.words.get());
        self.about.insertions = self
            .about
            .insertions
            .zip(other.about.insertions)
            .and_then(|(mine, theirs)| mine.checked_add(theirs));
        Ok(())
    }

    fn intersect_with(&mut self, other: &Self) -> Result<()> {
        self.accept(other)?;
        let counter = self.geometry.counter();
        cells::keep_lesser(counter, self.words.get_mut()?, other.words.get());
        self.about.insertions = None;
        Ok(())
    }
}

/// Equal if they give the same answers to every key and hold the same
/// counters.
impl PartialEq for Counting {
    fn eq(&self, other: &Self) -> bool {
        self.accept(other).is_ok() && self.words.get() == other.words.get()
    }
}
