//! The default filter: split blocks, insert only.
//!
//! Owns [`Bloom`] and its typed form [`BloomFilter`]: geometry, words and
//! description put together. Measuring is in `fill`, the filter for many
//! threads in `concurrent`. The layout is in [`crate::geometry`], the bits and
//! batches of them in [`crate::arch`], sizes in [`crate::sizing`].

mod concurrent;
pub(crate) mod fill;
#[cfg(test)]
mod tests;

pub use concurrent::{ConcurrentBloom, ConcurrentBloomFilter};

use crate::arch::Kernel;
use crate::arch::probe::block_index;
use crate::error::{Error, Result};
use crate::geometry::{SplitGeometry, next_region};
use crate::hash::{Bytes, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::sizing::{self, Promise};
use crate::traits::{Bits, BitsMut, Merge};
use crate::typed::Typed;
use crate::words::{Words, and_words, ones, or_words};

/// A set of keys that may be asked "have I seen this one?", in a fixed
/// number of bits.
///
/// * A key that was inserted is always found.
/// * With at most `n` distinct keys inserted, a key that was not is found
///   with an expected probability of at most `p`, for the `n` and `p` given
///   to `new`: expected over seeds, so that one small filter scatters
///   around it.
/// * The same keys and parameters give the same bits, in whatever order.
///
/// Structure: split blocks in one to four regions (see [`SplitGeometry`]);
/// after Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom
/// filters" (2007), with one bit a word.
///
/// ```
/// let mut seen = petal::BloomFilter::new(1_000_000, 0.001)?;
/// assert!(seen.insert("https://example.org/")?);
/// assert!(seen.contains("https://example.org/"));
/// assert!(!seen.insert("https://example.org/")?);
/// # Ok::<(), petal::Error>(())
/// ```
pub type BloomFilter<K = Bytes> = Typed<K, Bloom>;

impl BloomFilter<Bytes> {
    /// A filter of byte keys, sized for `items` distinct keys and an expected
    /// error of at most `error`, under the default hasher. For integer keys
    /// and other hashers see [`Self::with_hasher`].
    ///
    /// # Errors
    /// If `items` is not from 1 to 10^12, `error` is not a number between
    /// 1e-12 and 1, digests of 64 bits cannot keep such an error for so many
    /// keys, or the memory cannot be had. Nothing is allocated then.
    pub fn new(items: u64, error: f64) -> Result<Self> {
        Self::with_hasher(items, error, KeyHasher::default())
    }
}

impl<K: KeyKind> BloomFilter<K> {
    /// A filter of either kind of key under a hasher of the caller's choice.
    ///
    /// ```
    /// use petal::{BloomFilter, Int, KeyHasher};
    /// let mut seen = BloomFilter::<Int>::with_hasher(1000, 0.01, KeyHasher::default())?;
    /// seen.insert(&42)?;
    /// assert!(seen.contains(&42));
    /// # Ok::<(), petal::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`BloomFilter::new`].
    pub fn with_hasher(items: u64, error: f64, hasher: KeyHasher) -> Result<Self> {
        let identity = Identity::new(K::TYPE).with_hasher(hasher);
        Self::new_for(Bloom::sized(identity, Promise { items, error })?)
    }
}

/// [`BloomFilter`] over digests: the type of its keys is known at run time.
#[derive(Debug)]
pub struct Bloom {
    geometry: SplitGeometry,
    words: Words,
    about: About,
    kernel: Kernel,
}

impl Bloom {
    /// A filter for keys of the given identity, sized for a promise.
    ///
    /// # Errors
    /// As for [`BloomFilter::new`].
    pub fn sized(identity: Identity, promise: Promise) -> Result<Self> {
        let geometry = sizing::split_for(promise.items, promise.error, identity.collisions())?;
        Self::with_geometry(identity, geometry, promise)
    }

    /// A filter of a given shape. The promise is recorded as it is: that the
    /// shape keeps it is the caller's word.
    ///
    /// # Errors
    /// If the memory cannot be had.
    pub fn with_geometry(
        identity: Identity,
        geometry: SplitGeometry,
        promise: Promise,
    ) -> Result<Self> {
        Ok(Self {
            geometry,
            words: Words::zeroed(geometry.words())?,
            about: About::new(identity, Some(promise)),
            kernel: Kernel::best(geometry),
        })
    }

    /// Puts together what a file held. The words must fit the geometry.
    pub(crate) fn from_parts(about: About, geometry: SplitGeometry, words: Words) -> Self {
        debug_assert_eq!(words.get().len() as u64, geometry.words());
        Self {
            geometry,
            words,
            about,
            kernel: Kernel::best(geometry),
        }
    }

    /// The shape.
    #[must_use]
    pub const fn geometry(&self) -> SplitGeometry {
        self.geometry
    }

    /// The share of bits that are set, 0 to 1.
    #[must_use]
    pub fn fill(&self) -> f64 {
        ones(self.words.get()) as f64 / self.geometry.bits() as f64
    }

    /// An estimate of the distinct keys from the share of bits that are set;
    /// infinite if all are.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        sizing::estimated_len(self.geometry, 1.0 - self.fill()).unwrap_or(f64::INFINITY)
    }

    /// The error as the filter stands now, from all of its words: the chance
    /// that a random absent key is "seen".
    #[must_use]
    pub fn error_now(&self) -> f64 {
        fill::error(self.words.get(), self.geometry)
    }

    /// [`Self::error_now`] from a run of at most `blocks` blocks of each
    /// region that begins at a fraction `at` (0 to 1) of it. For filters that
    /// are too large to be read often.
    #[must_use]
    pub fn sampled_error(&self, blocks: u64, at: f64) -> f64 {
        fill::sampled_error(self.words.get(), self.geometry, blocks, at)
    }

    /// A part of [`Merge::union_with`]: `count` words from number `from` on, or as many as
    /// there are. The parts together are the union. Until then this filter finds its
    /// own keys, and may find some of the other's: for a caller with others
    /// to serve meanwhile.
    ///
    /// # Errors
    /// As for [`Merge::union_with`].
    pub fn union_part(&mut self, other: &Self, from: u64, count: u64) -> Result<()> {
        self.accept(other)?;
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let part = |len: usize| {
            let from = place(from).min(len);
            from..from.saturating_add(place(count)).min(len)
        };
        let words = self.words.get_mut()?;
        let part = part(words.len());
        or_words(&mut words[part.clone()], &other.words.get()[part]);
        self.about.insertions = None;
        Ok(())
    }

    pub(crate) const fn words(&self) -> &Words {
        &self.words
    }

    /// Index of the first word of each block that a digest has bits in.
    pub(crate) fn block_starts(&self, digest: u64) -> impl Iterator<Item = usize> {
        let geometry = self.geometry;
        let words = geometry.block().count() as usize;
        let states = std::iter::successors(Some(digest), |&state| Some(next_region(state)));
        (0..geometry.regions() as usize)
            .zip(states)
            .map(move |(region, state)| block_index(geometry.blocks(), region, state) * words)
    }

    fn accept(&self, other: &Self) -> Result<()> {
        self.about.identity.accept(&other.about.identity)?;
        if self.geometry != other.geometry {
            return Err(Error::mismatch("geometry", self.geometry, other.geometry));
        }
        Ok(())
    }
}

impl Bits for Bloom {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    #[inline]
    fn contains_bits(&self, digest: u64) -> bool {
        let blocks = self.geometry.blocks();
        self.kernel.contains(self.words.get(), blocks, digest)
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        let blocks = self.geometry.blocks();
        self.kernel
            .contains_all(self.words.get(), blocks, digests, mask);
    }
}

impl BitsMut for Bloom {
    #[inline]
    fn insert_bits(&mut self, digest: u64) -> Result<bool> {
        let words = self.words.get_mut()?;
        let changed = self.kernel.insert(words, self.geometry.blocks(), digest);
        self.about.count(u64::from(changed));
        Ok(changed)
    }

    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        let words = self.words.get_mut()?;
        let blocks = self.geometry.blocks();
        let changed = self.kernel.insert_all(words, blocks, digests, mask);
        self.about.count(changed);
        Ok(())
    }
}

impl Merge for Bloom {
    fn union_with(&mut self, other: &Self) -> Result<()> {
        self.accept(other)?;
        or_words(self.words.get_mut()?, other.words.get());
        self.about.insertions = None;
        Ok(())
    }

    fn intersect_with(&mut self, other: &Self) -> Result<()> {
        self.accept(other)?;
        and_words(self.words.get_mut()?, other.words.get());
        self.about.insertions = None;
        Ok(())
    }
}

/// Equal if they give the same answers to every key and hold the same bits.
impl PartialEq for Bloom {
    fn eq(&self, other: &Self) -> bool {
        self.accept(other).is_ok() && self.words.get() == other.words.get()
    }
}
