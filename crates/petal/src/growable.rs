//! A filter for keys whose number is not known beforehand.
//!
//! Owns [`Growable`] and its typed form [`GrowableFilter`]: a chain of
//! [`Bloom`] stages, each twice as large as the one before. How the stages
//! share the error is [`crate::sizing::GrowthPlan`].
//!
//! After Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters"
//! (2007), but the sum of the stages' errors is at most `p`, where theirs
//! (and most implementations) let the first stage alone have all of it.

use crate::bloom::Bloom;
use crate::error::{Error, Result};
use crate::geometry::SplitGeometry;
use crate::hash::{Bytes, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::sizing::{GrowthPlan, Promise};
use crate::traits::{Bits, BitsMut};
use crate::typed::Typed;

/// A [`crate::BloomFilter`] that grows: the error stays at most `p` however
/// many keys come, and repeats never make it grow. A question costs one
/// look at each stage; there are about `log2(keys / first)` of them.
///
/// ```
/// let mut seen = petal::GrowableFilter::new(1000, 0.01)?;
/// for i in 0..10_000u32 {
///     seen.insert(&i.to_le_bytes())?;
/// }
/// assert!(seen.contains(&77u32.to_le_bytes()));
/// assert!(seen.stages().len() > 1);
/// # Ok::<(), petal::Error>(())
/// ```
pub type GrowableFilter<K = Bytes> = Typed<K, Growable>;

impl GrowableFilter<Bytes> {
    /// A filter of byte keys with an error of at most `error` at any size,
    /// whose first stage takes `first` keys.
    ///
    /// # Errors
    /// As for [`crate::BloomFilter::new`].
    pub fn new(first: u64, error: f64) -> Result<Self> {
        Self::with_hasher(GrowthPlan::open(first, error)?, KeyHasher::default())
    }
}

impl<K: KeyKind> GrowableFilter<K> {
    /// A filter of either kind of key that grows by a given plan.
    ///
    /// # Errors
    /// If the memory of the first stage cannot be had.
    pub fn with_hasher(plan: GrowthPlan, hasher: KeyHasher) -> Result<Self> {
        let identity = Identity::new(K::TYPE).with_hasher(hasher);
        Self::new_for(Growable::with_plan(identity, plan)?)
    }
}

/// [`GrowableFilter`] over digests.
#[derive(Debug)]
pub struct Growable {
    plan: GrowthPlan,
    /// At least one; only the last one takes keys.
    stages: Vec<Bloom>,
    /// Cleared by [`Growable::stop_growing`].
    grows: bool,
    about: About,
}

impl Growable {
    /// An empty filter that grows by a plan.
    ///
    /// # Errors
    /// If the memory of the first stage cannot be had.
    pub fn with_plan(identity: Identity, plan: GrowthPlan) -> Result<Self> {
        let mut filter = Self {
            about: About::new(identity, None),
            plan,
            stages: Vec::new(),
            grows: true,
        };
        filter.grow()?;
        Ok(filter)
    }

    /// Puts together what a file held: at least one stage.
    pub(crate) fn from_parts(about: About, plan: GrowthPlan, stages: Vec<Bloom>) -> Self {
        debug_assert!(!stages.is_empty());
        Self {
            plan,
            stages,
            grows: true,
            about,
        }
    }

    /// How the stages share the error.
    #[must_use]
    pub const fn plan(&self) -> &GrowthPlan {
        &self.plan
    }

    /// The stages, oldest first.
    #[must_use]
    pub fn stages(&self) -> &[Bloom] {
        &self.stages
    }

    /// Bytes of the stages' words.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.stages.iter().map(|s| s.geometry().bytes()).sum()
    }

    /// How many more keys fit before a stage is added.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.stages.last().map_or(0, |stage| {
            let items = Bits::meta(stage)
                .promise()
                .map_or(0, |promise| promise.items);
            // Stages are never merged, so their counts are known.
            items.saturating_sub(Bits::meta(stage).insertions().unwrap_or(u64::MAX))
        })
    }

    /// Bytes that the next stage will take.
    ///
    /// # Errors
    /// If the plan ends here.
    pub fn next_stage_bytes(&self) -> Result<u64> {
        Ok(self.stage_geometry()?.1.bytes())
    }

    /// From now on keys beyond the last stage's number go into that stage, and
    /// the error rises above what was promised: for when memory is short.
    pub const fn stop_growing(&mut self) {
        self.grows = false;
    }

    fn stage_geometry(&self) -> Result<(Promise, SplitGeometry)> {
        let stage = self
            .plan
            .stage(u32::try_from(self.stages.len()).unwrap_or(u32::MAX))?;
        let collisions = self.about.identity.collisions();
        let geometry = crate::sizing::split_for(stage.items, stage.error, collisions)?;
        let promise = Promise {
            items: stage.items,
            error: stage.error,
        };
        Ok((promise, geometry))
    }

    fn grow(&mut self) -> Result<()> {
        let (promise, geometry) = self.stage_geometry()?;
        let identity = self.about.identity.clone();
        let stage = Bloom::with_geometry(identity, geometry, promise)?;
        self.stages.push(stage);
        Ok(())
    }

    /// The error as the filter stands now, from all words of all stages, taken
    /// as independent. They share a digest's lanes, so they are not quite: for
    /// errors above 0.1 the figure is about 1 % too low. The promise does not
    /// rest on it: the sum of the stages' errors is at most p.
    #[must_use]
    pub fn error_now(&self) -> f64 {
        any_of(self.stages.iter().map(Bloom::error_now))
    }

    /// The same from a sample of each stage: see [`Bloom::sampled_error`].
    #[must_use]
    pub fn sampled_error(&self, blocks: u64, at: f64) -> f64 {
        any_of(self.stages.iter().map(|s| s.sampled_error(blocks, at)))
    }

    /// An estimate of the distinct keys, as [`Bloom::estimated_len`].
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        self.stages.iter().map(Bloom::estimated_len).sum()
    }

    /// The share of all bits that are set.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let bits = |stage: &Bloom| stage.geometry().bits() as f64;
        let ones: f64 = self.stages.iter().map(|s| s.fill() * bits(s)).sum();
        ones / self.stages.iter().map(bits).sum::<f64>()
    }

    /// Sets bit `i` of the mask for every digest that a stage before the last
    /// one may have.
    fn seen_before(&self, digests: &[u64], mask: &mut [u64]) {
        for stage in &self.stages[..self.stages.len() - 1] {
            stage.contains_all_bits(digests, mask);
        }
    }
}

/// The probability that at least one of independent events happens.
fn any_of(probabilities: impl Iterator<Item = f64>) -> f64 {
    -probabilities.map(|p| (-p).ln_1p()).sum::<f64>().exp_m1()
}

impl Bits for Growable {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    fn contains_bits(&self, digest: u64) -> bool {
        // The last stages hold the most keys.
        self.stages.iter().rev().any(|s| s.contains_bits(digest))
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        for stage in &self.stages {
            stage.contains_all_bits(digests, mask);
        }
    }
}

impl BitsMut for Growable {
    fn insert_bits(&mut self, digest: u64) -> Result<bool> {
        if self.contains_bits(digest) {
            return Ok(false);
        }
        if self.grows && self.room() == 0 {
            self.grow()?;
        }
        let changed = match self.stages.last_mut() {
            Some(stage) => stage.insert_bits(digest)?,
            None => return Err(Error::ReadOnly), // not reached: there is a stage
        };
        self.about.count(u64::from(changed));
        Ok(changed)
    }

    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        let chunks = digests.chunks(CHUNK).zip(mask.chunks_mut(CHUNK / 64));
        for (chunk, answers) in chunks {
            if self.grows && self.room() < chunk.len() as u64 {
                // The chain may grow within the chunk.
                for (i, &digest) in chunk.iter().enumerate() {
                    answers[i / 64] |= u64::from(self.insert_bits(digest)?) << (i % 64);
                }
                continue;
            }
            let mut seen = [0; CHUNK / 64];
            self.seen_before(chunk, &mut seen);
            let mut fresh = [0; CHUNK];
            let mut places = [0u16; CHUNK];
            let mut count = 0;
            for (i, &digest) in (0u16..).zip(chunk) {
                // Written in any case, kept only if it is fresh.
                (fresh[count], places[count]) = (digest, i);
                count += usize::from(seen[usize::from(i / 64)] >> (i % 64) & 1 == 0);
            }
            let Some(stage) = self.stages.last_mut() else {
                continue;
            };
            let mut changed = [0u64; CHUNK / 64];
            stage.insert_all_bits(&fresh[..count], &mut changed)?;
            for (i, &place) in places[..count].iter().enumerate() {
                let bit = changed[i / 64] >> (i % 64) & 1;
                answers[usize::from(place / 64)] |= bit << (place % 64);
            }
            let changed: u32 = changed.iter().map(|word| word.count_ones()).sum();
            self.about.count(u64::from(changed));
        }
        Ok(())
    }
}

/// Digests that are looked up in the earlier stages before the rest goes into
/// the last one: many, so that the look-ups overlap.
const CHUNK: usize = 512;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hash::{Digests, Int, KeyType};
    use crate::traits::{Contains, Insert, mask_words};

    fn int_filter(first: u64, error: f64) -> Growable {
        let plan = GrowthPlan::open(first, error).unwrap();
        Growable::with_plan(Identity::new(KeyType::Int), plan).unwrap()
    }

    proptest! {
        #![proptest_config(crate::testing::cases(256))]
        #[test]
        fn batches_answer_as_single_calls(
            keys in proptest::collection::vec(0i64..3000, 0..2000),
            first in 1u64..500,
        ) {
            let mut single = int_filter(first, 1e-6);
            let mut batch = int_filter(first, 1e-6);
            let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
            for &key in &keys {
                digests.push_int(key).unwrap();
            }
            let mut mask = vec![0; mask_words(keys.len())];
            batch.insert_digests(&digests, &mut mask).unwrap();
            for (i, &bits) in digests.bits().iter().enumerate() {
                prop_assert_eq!(single.insert_bits(bits).unwrap(), mask[i / 64] >> (i % 64) & 1 == 1);
            }
            prop_assert!(single.stages == batch.stages);
            prop_assert_eq!(Contains::about(&single), Contains::about(&batch));
            batch.contains_digests(&digests, &mut mask).unwrap();
            prop_assert_eq!(mask.iter().map(|m| m.count_ones() as usize).sum::<usize>(), keys.len());
        }
    }

    #[test]
    fn the_error_stays_below_the_promise_while_it_grows() {
        for (first, error) in [(100, 0.01), (1000, 1e-3)] {
            let mut rates = Vec::new();
            for seed in 0..30 {
                let plan = GrowthPlan::open(first, error).unwrap();
                let hasher = KeyHasher::Portable { seed };
                let mut filter = GrowableFilter::<Int>::with_hasher(plan, hasher).unwrap();
                for key in 0..100_000i64 {
                    filter.insert(&key).unwrap();
                }
                let hits = (100_000..200_000i64)
                    .filter(|key| filter.contains(key))
                    .count();
                rates.push(hits as f64 / 1e5);
                assert!(filter.error_now() <= error);
            }
            let mean = rates.iter().sum::<f64>() / 30.0;
            let variance = rates.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / 29.0;
            assert!(mean <= error + 5.0 * (variance / 30.0).sqrt(), "{mean}");
        }
    }

    #[test]
    fn repeats_never_make_it_grow() {
        let mut filter = int_filter(100, 0.01);
        for _ in 0..1000 {
            for key in 0..90 {
                filter.insert_bits(crate::mix_int(key, 0)).unwrap();
            }
        }
        assert_eq!(filter.stages().len(), 1);
        assert!(filter.about.insertions().unwrap() <= 90);
    }

    /// From 100 keys to millions: the stages stay few and the count exact.
    #[test]
    fn growth_from_a_tiny_start_stays_bounded() {
        let mut filter = int_filter(100, 0.01);
        for key in 0..3_000_000 {
            filter.insert_bits(crate::mix_int(key, 0)).unwrap();
        }
        assert!(filter.stages().len() <= 16, "{}", filter.stages().len());
        assert!(filter.error_now() <= 0.01);
        let estimate = filter.estimated_len();
        assert!((estimate / 3e6 - 1.0).abs() < 0.02, "{estimate}");
    }

    #[test]
    fn a_filter_that_stopped_growing_takes_keys_and_tells_its_error() {
        let mut filter = int_filter(100, 0.01);
        filter.stop_growing();
        for key in 0..10_000 {
            filter.insert_bits(crate::mix_int(key, 0)).unwrap();
        }
        assert_eq!(filter.stages().len(), 1);
        assert!(filter.error_now() > 0.5);
        assert!((0..10_000).all(|key| filter.contains_bits(crate::mix_int(key, 0))));
    }
}
