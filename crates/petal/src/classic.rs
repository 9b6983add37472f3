//! The textbook filter: m bits, k positions a key, anywhere.
//!
//! Owns [`Classic`] and its typed form [`ClassicBloomFilter`]. It is the smallest insert-only Bloom layout
//! and a slow one: k cache misses a question. Here for comparison, for
//! teaching and as the target of other systems' formats;
//! [`crate::BloomFilter`] is the one to use.
//!
//! Position `i` of a digest is `mix(digest + (i + 1) * STEP) * m >> 64`, with
//! the finaliser of SplitMix64 (Steele, Lea and Flood, 2014) as `mix`: k
//! independent positions, drawn with replacement, as the formulas assume
//! (Bloom 1970; exact: Bose et al. 2008).

use std::fmt;

use crate::error::{Error, Result};
use crate::geometry::block_of;
use crate::hash::{Bytes, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::sizing::{self, Promise};
use crate::traits::{Bits, BitsMut, Merge};
use crate::typed::Typed;
use crate::words::{Words, and_words, ones, or_words};

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Shape of a classic filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassicGeometry {
    bits: u64,
    positions: u32,
}

impl ClassicGeometry {
    /// Most positions a key may have.
    pub const MAX_POSITIONS: u32 = 64;

    /// `bits` (m) from 1 to 2^63 and `positions` (k) from 1 to 64.
    ///
    /// # Errors
    /// If either is out of range.
    pub fn new(bits: u64, positions: u32) -> Result<Self> {
        if bits == 0 || bits > 1 << 63 {
            return Err(Error::parameter("m", bits, "use 1 to 2^63 bits"));
        }
        if !(1..=Self::MAX_POSITIONS).contains(&positions) {
            return Err(Error::parameter("k", positions, "use 1 to 64 positions"));
        }
        Ok(Self { bits, positions })
    }

    /// Bits, m.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// Positions a key, k.
    #[must_use]
    pub const fn positions(self) -> u32 {
        self.positions
    }

    /// The shape with half the bits; `None` if their number is odd. Because a
    /// position is a fastrange, bit `i` of the half is the OR of bits `2i` and
    /// `2i + 1`.
    #[must_use]
    pub const fn half(self) -> Option<Self> {
        if self.bits % 2 == 1 {
            return None;
        }
        Some(Self {
            bits: self.bits / 2,
            positions: self.positions,
        })
    }

    /// 64-bit words that hold the bits; the last one may be used in part.
    #[must_use]
    pub const fn words(self) -> u64 {
        self.bits.div_ceil(64)
    }

    /// The word and the bit of each position of a digest.
    #[inline(always)]
    pub(crate) fn positions_of(self, digest: u64) -> impl Iterator<Item = (usize, u64)> {
        (1..=u64::from(self.positions)).map(move |i| {
            let bit = block_of(mix(digest.wrapping_add(i.wrapping_mul(STEP))), self.bits);
            // The words are in memory, so their indices fit a usize.
            let word = (bit / 64) as usize;
            (word, 1 << (bit % 64))
        })
    }
}

impl fmt::Display for ClassicGeometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m = {}, k = {}", self.bits, self.positions)
    }
}

/// The finaliser of SplitMix64.
#[inline(always)]
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A classic Bloom filter with the guarantees of [`crate::BloomFilter`], at a
/// slightly smaller size and several times the cost of a question.
pub type ClassicBloomFilter<K = Bytes> = Typed<K, Classic>;

impl ClassicBloomFilter<Bytes> {
    /// A filter of byte keys with the fewest bits for `items` distinct keys
    /// and an expected error of at most `error`.
    ///
    /// # Errors
    /// As for [`crate::BloomFilter::new`].
    pub fn new(items: u64, error: f64) -> Result<Self> {
        Self::with_hasher(items, error, KeyHasher::default())
    }
}

impl<K: KeyKind> ClassicBloomFilter<K> {
    /// The same for either kind of key, under a hasher of the caller's choice.
    ///
    /// # Errors
    /// As for [`crate::BloomFilter::new`].
    pub fn with_hasher(items: u64, error: f64, hasher: KeyHasher) -> Result<Self> {
        let identity = Identity::new(K::TYPE).with_hasher(hasher);
        Self::new_for(Classic::sized(identity, Promise { items, error })?)
    }
}

/// [`ClassicBloomFilter`] over digests.
#[derive(Debug)]
pub struct Classic {
    geometry: ClassicGeometry,
    words: Words,
    about: About,
}

impl Classic {
    /// A filter for keys of the given identity, sized for a promise.
    ///
    /// # Errors
    /// As for [`crate::BloomFilter::new`].
    pub fn sized(identity: Identity, promise: Promise) -> Result<Self> {
        let plan = sizing::classic_for(promise.items, promise.error, identity.collisions())?;
        let geometry = ClassicGeometry::new(plan.bits, plan.hashes)?;
        Self::with_geometry(identity, geometry, promise)
    }

    /// A filter of a given shape. That the shape keeps the promise is the
    /// caller's word.
    ///
    /// # Errors
    /// If the memory cannot be had.
    pub fn with_geometry(
        identity: Identity,
        geometry: ClassicGeometry,
        promise: Promise,
    ) -> Result<Self> {
        Ok(Self {
            geometry,
            words: Words::zeroed(geometry.words())?,
            about: About::new(identity, Some(promise)),
        })
    }

    /// Puts together what a file held. The words must fit the geometry.
    pub(crate) fn from_parts(about: About, geometry: ClassicGeometry, words: Words) -> Self {
        debug_assert_eq!(words.get().len() as u64, geometry.words());
        Self {
            geometry,
            words,
            about,
        }
    }

    /// The shape.
    #[must_use]
    pub const fn geometry(&self) -> ClassicGeometry {
        self.geometry
    }

    /// The share of bits that are set, 0 to 1.
    #[must_use]
    pub fn fill(&self) -> f64 {
        ones(self.words.get()) as f64 / self.geometry.bits as f64
    }

    /// The error as the filter stands now: fill to the power k, exactly the
    /// chance that k random positions are set.
    #[must_use]
    pub fn error_now(&self) -> f64 {
        self.fill().powf(f64::from(self.geometry.positions))
    }

    /// An estimate of the distinct keys (Swamidass and Baldi 2007): infinite
    /// if all bits are set.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        let m = self.geometry.bits as f64;
        -m / f64::from(self.geometry.positions) * (-self.fill()).ln_1p()
    }

    pub(crate) const fn words(&self) -> &Words {
        &self.words
    }

    /// Index of the word of each bit of a digest.
    pub(crate) fn word_indices(&self, digest: u64) -> impl Iterator<Item = usize> {
        self.geometry.positions_of(digest).map(|(word, _)| word)
    }

    fn accept(&self, other: &Self) -> Result<()> {
        self.about.identity.accept(&other.about.identity)?;
        if self.geometry != other.geometry {
            return Err(Error::mismatch("geometry", self.geometry, other.geometry));
        }
        Ok(())
    }
}

impl Bits for Classic {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    fn contains_bits(&self, digest: u64) -> bool {
        let words = self.words.get();
        self.geometry
            .positions_of(digest)
            .all(|(word, bit)| words[word] & bit != 0)
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        for (i, &digest) in digests.iter().enumerate() {
            mask[i / 64] |= u64::from(self.contains_bits(digest)) << (i % 64);
        }
    }
}

impl BitsMut for Classic {
    fn insert_bits(&mut self, digest: u64) -> Result<bool> {
        let words = self.words.get_mut()?;
        let mut missing = 0;
        for (word, bit) in self.geometry.positions_of(digest) {
            missing |= !words[word] & bit;
            words[word] |= bit;
        }
        let changed = missing != 0;
        self.about.count(u64::from(changed));
        Ok(changed)
    }

    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        for (i, &digest) in digests.iter().enumerate() {
            mask[i / 64] |= u64::from(self.insert_bits(digest)?) << (i % 64);
        }
        Ok(())
    }
}

impl Merge for Classic {
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
impl PartialEq for Classic {
    fn eq(&self, other: &Self) -> bool {
        self.accept(other).is_ok() && self.words.get() == other.words.get()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::hash::Int;

    #[test]
    fn the_published_example_has_the_published_size() {
        let filter = ClassicBloomFilter::new(1000, 0.01).unwrap();
        assert!(filter.geometry().bits().abs_diff(9586) <= 64);
        assert_eq!(filter.geometry().positions(), 7);
    }

    /// Positions are independent: no digest has them on a short cycle, as
    /// double hashing with an even or zero step would.
    #[test]
    fn many_positions_are_as_good_as_the_formula() {
        let geometry = ClassicGeometry::new(1 << 15, 20).unwrap();
        let promise = Promise {
            items: 1,
            error: 0.5,
        };
        let identity = Identity::new(crate::KeyType::Int);
        let mut hits = 0u32;
        let mut expected = 0.0;
        for seed in 0..20 {
            let mut filter = Classic::with_geometry(identity.clone(), geometry, promise).unwrap();
            for key in 0..2500 {
                filter.insert_bits(crate::mix_int(key, seed)).unwrap();
            }
            expected += filter.error_now() * 100_000.0;
            hits += (2500..102_500)
                .map(|key| u32::from(filter.contains_bits(crate::mix_int(key, seed))))
                .sum::<u32>();
        }
        let sigma = expected.sqrt();
        assert!(
            (f64::from(hits) - expected).abs() <= 5.0 * sigma,
            "{hits}, {expected}"
        );
    }

    #[test]
    fn impossible_shapes_are_refused() {
        for (bits, positions) in [(0, 1), (1, 0), (1, 65), (u64::MAX, 1), ((1 << 63) + 1, 1)] {
            assert!(ClassicGeometry::new(bits, positions).is_err());
        }
        assert!(matches!(
            ClassicBloomFilter::new(1_000_000_000_000, 1e-6),
            Err(Error::TooLarge { .. })
        ));
    }

    proptest! {
        #![proptest_config(crate::testing::cases(256))]
        #[test]
        fn members_are_found(
            keys in proptest::collection::vec(any::<i64>(), 0..300),
            bits in 1u64..2000,
            positions in 1u32..=64,
        ) {
            let geometry = ClassicGeometry::new(bits, positions).unwrap();
            let promise = Promise { items: 1, error: 0.5 };
            let identity = Identity::new(crate::KeyType::Int);
            let filter = Classic::with_geometry(identity, geometry, promise).unwrap();
            let mut filter = ClassicBloomFilter::<Int>::new_for(filter).unwrap();
            let mut model = HashSet::new();
            for key in &keys {
                let changed = filter.insert(key).unwrap();
                prop_assert!(model.insert(*key) || !changed);
                prop_assert!(filter.contains(key));
            }
            prop_assert!(keys.iter().all(|key| filter.contains(key)));
            // No bit beyond m.
            let used = geometry.words() * 64 - bits;
            let last = filter.words().get().last().copied().unwrap();
            prop_assert!(used == 0 || last >> (64 - used) == 0);
        }
    }
}
