//! The counting filter against an exact multiset, and its promises, measured.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::geometry::BlockWords;
use crate::hash::{Digests, Int, KeyType, mix_int};
use crate::sizing::{Collisions, saturated_counters, split_error};
use crate::traits::{Contains, Count, Insert, Remove, mask_words};

const PROMISE: Promise = Promise {
    items: 1,
    error: 0.5,
};

fn ints() -> Identity {
    Identity::new(KeyType::Int)
}

fn split(block: BlockWords, regions: u32, blocks: u64) -> SplitGeometry {
    SplitGeometry::new(block, regions, blocks).unwrap()
}

fn shaped(split: SplitGeometry, counter: CounterBits, increase: Increase) -> Counting {
    let geometry = CountingGeometry::new(split, counter, increase).unwrap();
    Counting::with_geometry(ints(), geometry, PROMISE).unwrap()
}

fn sized(items: u64, error: f64) -> Counting {
    let promise = Promise { items, error };
    Counting::sized(ints(), promise, CounterBits::Four, Increase::All).unwrap()
}

/// Digests of the keys `range` of a seed: a bijection of them, so distinct.
fn keys(seed: u64, range: std::ops::Range<i64>) -> impl Iterator<Item = u64> {
    range.map(move |key| mix_int(key, seed))
}

fn hits(filter: &Counting, seed: u64, range: std::ops::Range<i64>) -> u32 {
    let digests: Vec<u64> = keys(seed, range).collect();
    let mut mask = vec![0; mask_words(digests.len())];
    filter.contains_all_bits(&digests, &mut mask);
    mask.iter().map(|word| word.count_ones()).sum()
}

fn counters() -> impl Strategy<Value = CounterBits> {
    proptest::sample::select(vec![
        CounterBits::Four,
        CounterBits::Eight,
        CounterBits::Sixteen,
    ])
}

/// Small shapes, so that keys meet.
fn shapes() -> impl Strategy<Value = SplitGeometry> {
    (any::<bool>(), 1u32..=4, 1u64..40).prop_map(|(half, regions, blocks)| {
        let block = if half {
            BlockWords::Four
        } else {
            BlockWords::Eight
        };
        split(block, regions, blocks)
    })
}

/// The shape made so large that batches fetch ahead.
fn enlarged(shape: SplitGeometry, counter: CounterBits) -> SplitGeometry {
    let words_of_one = shape.words() / shape.blocks() * u64::from(counter.count());
    let blocks = (2u64 << 20).div_ceil(8 * words_of_one) + 1;
    let blocks = crate::geometry::round_up_blocks(blocks).unwrap();
    split(shape.block(), shape.regions(), blocks)
}

/// A step of a model: keys are few, so that they come again.
#[derive(Debug, Clone)]
enum Step {
    Insert(i64),
    /// Removes the key of this rank among those that are there.
    Remove(usize),
    /// Adds a filter of these keys.
    Union(Vec<i64>),
    /// Takes out a filter of the keys of these ranks.
    Subtract(Vec<usize>),
    /// Keeps what is in a filter of these keys as well.
    Intersect(Vec<i64>),
}

fn steps(minimal: bool) -> impl Strategy<Value = Vec<Step>> {
    let key = -30i64..30;
    let some = proptest::collection::vec(key.clone(), 0..20);
    let ranks = proptest::collection::vec(any::<usize>(), 0..20);
    let forget = if minimal { 0 } else { 1 };
    let step = prop_oneof![
        12 => key.prop_map(Step::Insert),
        12 * forget => any::<usize>().prop_map(Step::Remove),
        1 => some.clone().prop_map(Step::Union),
        forget => ranks.prop_map(Step::Subtract),
        1 => some.prop_map(Step::Intersect),
    ];
    proptest::collection::vec(step, 0..150)
}

/// A multiset of keys beside a filter of them.
struct Model {
    filter: Counting,
    truth: HashMap<i64, u64>,
    insertions: Option<u64>,
}

impl Model {
    fn new(split: SplitGeometry, counter: CounterBits, increase: Increase) -> Self {
        Self {
            filter: shaped(split, counter, increase),
            truth: HashMap::new(),
            insertions: Some(0),
        }
    }

    fn other(&self, keys: impl IntoIterator<Item = i64>) -> Self {
        let geometry = self.filter.geometry();
        let mut other = Self::new(geometry.split(), geometry.counter(), geometry.increase());
        for key in keys {
            other.insert(key);
        }
        other
    }

    fn insert(&mut self, key: i64) {
        let was_there = self.filter.contains_bits(mix_int(key, 0));
        let new = self.filter.insert_bits(mix_int(key, 0)).unwrap();
        assert_eq!(new, !was_there);
        *self.truth.entry(key).or_default() += 1;
        self.insertions = self.insertions.map(|count| count + 1);
    }

    /// The member of a rank, each as often as it is in.
    fn member(&self, rank: usize, taken: &HashMap<i64, u64>) -> Option<i64> {
        let mut members: Vec<i64> = self
            .truth
            .iter()
            .filter(|(key, count)| **count > taken.get(*key).copied().unwrap_or(0))
            .map(|(&key, _)| key)
            .collect();
        members.sort_unstable();
        members.get(rank.checked_rem(members.len())?).copied()
    }

    fn forget(&mut self, key: i64, times: u64) {
        let count = self.truth.get_mut(&key).unwrap();
        *count -= times;
        if *count == 0 {
            self.truth.remove(&key);
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Insert(key) => self.insert(key),
            Step::Remove(rank) => {
                if let Some(key) = self.member(rank, &HashMap::new()) {
                    assert!(self.filter.remove_bits(mix_int(key, 0)).unwrap());
                    self.forget(key, 1);
                    self.insertions = self.insertions.map(|count| count - 1);
                }
            }
            Step::Union(keys) => {
                let other = self.other(keys);
                self.filter.union_with(&other.filter).unwrap();
                for (key, count) in other.truth {
                    *self.truth.entry(key).or_default() += count;
                }
                self.insertions = self
                    .insertions
                    .map(|count| count + other.insertions.unwrap());
            }
            Step::Subtract(ranks) => {
                let mut taken = HashMap::new();
                for rank in ranks {
                    if let Some(key) = self.member(rank, &taken) {
                        *taken.entry(key).or_default() += 1;
                    }
                }
                let keys = taken
                    .iter()
                    .flat_map(|(&key, &times)| (0..times).map(move |_| key));
                let other = self.other(keys);
                self.filter.subtract(&other.filter).unwrap();
                for (key, times) in taken {
                    self.forget(key, times);
                }
                self.insertions = self
                    .insertions
                    .map(|count| count - other.insertions.unwrap());
            }
            Step::Intersect(keys) => {
                let other = self.other(keys);
                self.filter.intersect_with(&other.filter).unwrap();
                self.truth.retain(|key, count| {
                    *count = other.truth.get(key).copied().unwrap_or(0).min(*count);
                    *count > 0
                });
                self.insertions = None;
            }
        }
    }

    /// No false negative, and no count below the truth.
    fn check(&self) {
        let most = self.filter.geometry().counter().max();
        for (&key, &count) in &self.truth {
            let digest = mix_int(key, 0);
            assert!(self.filter.contains_bits(digest), "{key} is missing");
            let counted = self.filter.count_bits(digest).unwrap();
            assert!(
                counted >= count.min(most),
                "{key}: counted {counted} of {count}"
            );
        }
        assert_eq!(self.filter.about().insertions(), self.insertions);
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]
    #[test]
    fn no_member_is_missed_or_counted_short(
        shape in shapes(),
        counter in counters(),
        steps in steps(false),
    ) {
        let mut model = Model::new(shape, counter, Increase::All);
        for step in steps {
            model.run(step);
            model.check();
        }
        // Without saturation and intersections the counters are those of what
        // is left, and the bits those of a Bloom filter of it.
        if model.insertions.is_some() && model.filter.saturated() == 0 {
            let left: Vec<i64> = model
                .truth
                .iter()
                .flat_map(|(&key, &count)| (0..count).map(move |_| key))
                .collect();
            prop_assert!(model.filter == model.other(left.iter().copied()).filter);
            let mut bloom = Bloom::with_geometry(ints(), shape, PROMISE).unwrap();
            for key in left {
                bloom.insert_bits(mix_int(key, 0)).unwrap();
            }
            prop_assert!(model.filter.to_bloom().unwrap() == bloom);
        }
    }

    #[test]
    fn minimal_increase_counts_no_member_short(
        shape in shapes(),
        counter in counters(),
        steps in steps(true),
    ) {
        let mut minimal = Model::new(shape, counter, Increase::Minimal);
        let mut plain = Model::new(shape, counter, Increase::All);
        let mut joined = false;
        for step in steps {
            joined |= !matches!(step, Step::Insert(_));
            minimal.run(step.clone());
            plain.run(step);
            minimal.check();
            // Counts are never above those of the plain filter.
            for key in -40..40 {
                let digest = mix_int(key, 0);
                let (least, most) = (
                    minimal.filter.count_bits(digest).unwrap(),
                    plain.filter.count_bits(digest).unwrap(),
                );
                prop_assert!(joined || least <= most);
            }
        }
        if !joined {
            prop_assert!(minimal.filter.to_bloom().unwrap() == plain.filter.to_bloom().unwrap());
        }
        let before = minimal.filter.words.get().to_vec();
        let error = minimal.filter.remove_bits(mix_int(1, 0)).unwrap_err().to_string();
        prop_assert!(error.contains("minimal increase") && error.contains("nobody knows"));
        let other = minimal.other([]);
        let error = minimal.filter.subtract(&other.filter).unwrap_err().to_string();
        prop_assert!(error.contains("minimal increase"));
        prop_assert!(minimal.filter.words.get() == before);
    }

    #[test]
    fn batches_do_what_single_calls_do(
        shape in shapes(),
        counter in counters(),
        large: bool,
        minimal: bool,
        inserted in proptest::collection::vec(-200i64..200, 0..400),
        removed in proptest::collection::vec(-200i64..200, 0..400),
    ) {
        let increase = if minimal { Increase::Minimal } else { Increase::All };
        let shape = if large { enlarged(shape, counter) } else { shape };
        let mut single = shaped(shape, counter, increase);
        let mut batched = shaped(shape, counter, increase);
        let digests = |keys: &[i64]| {
            let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
            for &key in keys {
                digests.push_int(key).unwrap();
            }
            digests
        };
        let bit = |mask: &[u64], i: usize| mask[i / 64] >> (i % 64) & 1 == 1;
        let mut mask = vec![u64::MAX; mask_words(400)];

        let batch = digests(&inserted);
        batched.insert_digests(&batch, &mut mask).unwrap();
        for (i, &digest) in batch.bits().iter().enumerate() {
            prop_assert_eq!(single.insert_bits(digest).unwrap(), bit(&mask, i));
        }
        prop_assert!(single == batched);
        prop_assert_eq!(single.about(), batched.about());

        let batch = digests(&removed);
        single.contains_digests(&batch, &mut mask).unwrap();
        for (i, &digest) in batch.bits().iter().enumerate() {
            prop_assert_eq!(single.contains_bits(digest), bit(&mask, i));
            prop_assert_eq!(single.count_bits(digest).unwrap() > 0, bit(&mask, i));
        }
        if minimal {
            prop_assert!(batched.remove_digests(&batch, &mut mask).is_err());
        } else {
            batched.remove_digests(&batch, &mut mask).unwrap();
            for (i, &digest) in batch.bits().iter().enumerate() {
                prop_assert_eq!(single.remove_bits(digest).unwrap(), bit(&mask, i));
            }
        }
        prop_assert!(single == batched);
        prop_assert_eq!(single.about(), batched.about());
    }
}

/// Mean and standard error of a sample.
fn mean_and_error(sample: &[f64]) -> (f64, f64) {
    let count = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / count;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// At each load the error is the one that sizing states for it, within 5
/// sigma of the filters' own rates, and at most p; after a turnover of all
/// keys as well.
#[test]
fn the_error_at_each_load_is_the_stated_one() {
    let items = 20_000i64;
    for error in [1e-2, 1e-4] {
        let questions = if error < 1e-3 { 400_000 } else { 100_000 };
        for quarters in [1, 2, 4] {
            let n = items * quarters / 4;
            let mut rates = Vec::new();
            let mut stated = 0.0;
            for seed in 0..20 {
                let mut filter = sized(20_000, error);
                for digest in keys(seed, 0..n) {
                    filter.insert_bits(digest).unwrap();
                }
                // All keys leave, and as many others come.
                for (old, new) in keys(seed, 0..n).zip(keys(seed, n..2 * n)) {
                    filter.insert_bits(new).unwrap();
                    assert!(filter.remove_bits(old).unwrap());
                }
                assert!(keys(seed, n..2 * n).all(|digest| filter.contains_bits(digest)));
                let found = hits(&filter, seed, 2 * n..2 * n + questions);
                rates.push(f64::from(found) / questions as f64);
                let split = filter.geometry().split();
                stated = split_error(split, n.unsigned_abs(), Collisions::Never);
            }
            let (mean, sigma) = mean_and_error(&rates);
            // Few or no hits at a small load: at least the sigma of a count.
            let sigma = sigma.max((stated / (20.0 * questions as f64)).sqrt());
            assert!(
                (mean - stated).abs() <= 5.0 * sigma,
                "p = {error}, {n} keys: {mean:e} +- {sigma:e}, stated {stated:e}"
            );
            assert!(stated <= error && mean <= error, "{mean} {stated}");
        }
    }
}

/// Replaces all keys `rounds` times at a constant load of `items`, in batches;
/// the error after each round.
fn turnover(items: i64, rounds: i64, error: f64) -> (Vec<f64>, u64) {
    let mut filter =
        CountingBloomFilter::<Int>::new_for(sized(items.unsigned_abs(), error)).unwrap();
    let batch = 1000;
    let mut mask = vec![0; mask_words(1000)];
    let mut errors = Vec::new();
    let all = |mask: &[u64]| {
        mask.iter()
            .map(|word| u64::from(word.count_ones()))
            .sum::<u64>()
    };
    for start in (0..items).step_by(batch) {
        let new: Vec<i64> = (start..start + 1000).collect();
        filter.insert_batch(&new, &mut mask).unwrap();
    }
    for round in 1..=rounds {
        for start in (0..items).step_by(batch) {
            let new: Vec<i64> = (round * items + start..).take(batch).collect();
            let old: Vec<i64> = ((round - 1) * items + start..).take(batch).collect();
            filter.insert_batch(&new, &mut mask).unwrap();
            filter.remove_batch(&old, &mut mask).unwrap();
            assert_eq!(all(&mask), batch as u64, "every key was there");
        }
        errors.push(filter.error_now());
    }
    // Nothing is missing at the end.
    for start in (rounds * items..(rounds + 1) * items).step_by(batch) {
        let keys: Vec<i64> = (start..).take(batch).collect();
        filter.contains_batch(&keys, &mut mask).unwrap();
        assert_eq!(all(&mask), batch as u64);
    }
    assert_eq!(filter.about().insertions(), Some(items.unsigned_abs()));
    (errors, filter.saturated())
}

/// The errors before and after many rounds are the same, within 5 sigma of
/// those in the rounds.
fn assert_no_drift(errors: &[f64], error: f64) {
    let (early, late) = errors.split_at(errors.len() / 2);
    let (before, sigma_before) = mean_and_error(early);
    let (after, sigma_after) = mean_and_error(late);
    let sigma = sigma_before.hypot(sigma_after);
    assert!(
        (after - before).abs() <= 5.0 * sigma,
        "{before:e} before, {after:e} after, sigma {sigma:e}"
    );
    // Expected at most p: the filters scatter around it.
    let (mean, sigma) = mean_and_error(errors);
    assert!(mean <= error + 5.0 * sigma, "{mean:e} +- {sigma:e}");
}

#[test]
fn the_error_does_not_drift() {
    let (errors, saturated) = turnover(20_000, 100, 0.01);
    assert_no_drift(&errors, 0.01);
    assert_eq!(saturated, 0);
}

/// A million keys, a hundred times.
#[test]
#[ignore = "takes some ten seconds: ./test long runs it"]
fn the_error_of_a_million_keys_does_not_drift() {
    let (errors, saturated) = turnover(1_000_000, 100, 0.01);
    assert_no_drift(&errors, 0.01);
    // 1.1e-7 a round are expected.
    assert_eq!(saturated, 0);
}

/// What is saturated stays: as many as sizing says, and no key is lost by it.
#[test]
fn saturated_counters_stay_and_are_reported() {
    let shape = split(BlockWords::Eight, 2, 100);
    let n = 40_000i64; // a mean of 6.25 a counter
    let mut found = Vec::new();
    let stated = saturated_counters(shape, 15, n.unsigned_abs());
    for seed in 0..30 {
        let mut filter = shaped(shape, CounterBits::Four, Increase::All);
        for digest in keys(seed, 0..n) {
            filter.insert_bits(digest).unwrap();
        }
        let saturated = filter.saturated();
        found.push(saturated as f64);
        for digest in keys(seed, 1000..n) {
            filter.remove_bits(digest).unwrap();
        }
        assert_eq!(filter.saturated(), saturated);
        assert!(keys(seed, 0..1000).all(|digest| filter.contains_bits(digest)));
        for digest in keys(seed, 0..1000) {
            filter.remove_bits(digest).unwrap();
        }
        // Only the saturated counters are left.
        let left = filter.fill() * filter.geometry().counters() as f64;
        assert_eq!(left.round(), saturated as f64);
    }
    let (mean, sigma) = mean_and_error(&found);
    assert!(
        (mean - stated).abs() <= 5.0 * sigma,
        "{mean} +- {sigma}, stated {stated}"
    );
    assert!(stated > 100.0);
}

#[test]
fn counters_end_at_their_maximum() {
    for (counter, most) in [
        (CounterBits::Four, 15),
        (CounterBits::Eight, 255),
        (CounterBits::Sixteen, 65_535),
    ] {
        for increase in [Increase::All, Increase::Minimal] {
            let mut filter = shaped(split(BlockWords::Eight, 1, 3), counter, increase);
            let digest = mix_int(7, 0);
            for times in 1..=most + 3 {
                filter.insert_bits(digest).unwrap();
                assert_eq!(filter.count_bits(digest).unwrap(), times.min(most));
            }
            assert_eq!(filter.saturated(), 8);
            let mut both = shaped(split(BlockWords::Eight, 1, 3), counter, increase);
            both.insert_bits(digest).unwrap();
            both.union_with(&filter).unwrap();
            assert_eq!(
                (both.count_bits(digest).unwrap(), both.saturated()),
                (most, 8)
            );
            if increase == Increase::All {
                // It is stuck: nothing was removed, and it is there.
                let before = filter.meta().insertions();
                assert!(!filter.remove_bits(digest).unwrap());
                assert_eq!(filter.meta().insertions(), before);
                assert_eq!(filter.count_bits(digest).unwrap(), most);
                // Saturated minus saturated stays; minus anything as well.
                filter.subtract(&both).unwrap();
                assert_eq!(filter.count_bits(digest).unwrap(), most);
            }
        }
    }
}

#[test]
fn what_is_not_there_is_neither_removed_nor_subtracted() {
    let mut filter = CountingBloomFilter::new(1000, 1e-6).unwrap();
    filter.insert("a").unwrap();
    assert!(!filter.remove("b").unwrap());
    assert_eq!(filter.count("b").unwrap(), 0);
    let mut other = CountingBloomFilter::new(1000, 1e-6).unwrap();
    other.insert("a").unwrap();
    other.insert("b").unwrap();
    let error = filter.subtract(&other).unwrap_err().to_string();
    assert!(error.contains("keys that this one lacks"), "{error}");
    assert!(filter.contains("a") && filter.about().insertions() == Some(1));
    // A saturated counter of the other side, against one that is not.
    for _ in 0..20 {
        other.insert("a").unwrap();
    }
    assert!(filter.subtract(&other).is_err());
    assert_eq!(filter.count("a").unwrap(), 1);
    // Another shape, hasher, counter or way of counting.
    let with = |items, seed, counter, increase| {
        let hasher = KeyHasher::Portable { seed };
        CountingBloomFilter::<Bytes>::with_options(items, 1e-6, hasher, counter, increase).unwrap()
    };
    for other in [
        with(100, 0, CounterBits::Four, Increase::All),
        with(1000, 1, CounterBits::Four, Increase::All),
        with(1000, 0, CounterBits::Eight, Increase::All),
        with(1000, 0, CounterBits::Four, Increase::Minimal),
    ] {
        assert!(matches!(
            filter.subtract(&other),
            Err(Error::Mismatch { .. })
        ));
        assert!(matches!(
            filter.union_with(&other),
            Err(Error::Mismatch { .. })
        ));
        assert!(matches!(
            filter.intersect_with(&other),
            Err(Error::Mismatch { .. })
        ));
        assert!(filter != other);
    }
}

#[test]
fn the_bloom_filter_keeps_what_the_counting_one_says() {
    let mut counting = CountingBloomFilter::new(5000, 1e-3).unwrap();
    counting.labels_mut().set("source", "test").unwrap();
    let mut bloom = BloomFilter::new(5000, 1e-3).unwrap();
    for i in 0..5000u32 {
        counting.insert(&i.to_le_bytes()).unwrap();
        counting.insert(&i.to_be_bytes()).unwrap();
        bloom.insert(&i.to_le_bytes()).unwrap();
    }
    for i in 0..5000u32 {
        assert!(counting.remove(&i.to_be_bytes()).unwrap());
    }
    let converted = counting.to_bloom().unwrap();
    assert!(converted == bloom);
    assert_eq!(converted.about().labels().get("source"), Some("test"));
    assert_eq!(converted.about().promise(), bloom.about().promise());
    assert_eq!(converted.about().insertions(), None);
    assert_eq!(counting.fill(), bloom.fill());
    assert_eq!(counting.error_now(), bloom.error_now());
    assert_eq!(counting.estimated_len(), bloom.estimated_len());
    assert_eq!(counting.geometry().bytes(), 4 * bloom.geometry().bytes());
}

#[test]
fn sizes_are_refused_before_memory_is_taken() {
    for (items, error) in [(0, 0.01), (1000, 0.0), (1000, 1.0), (1000, f64::NAN)] {
        assert!(CountingBloomFilter::new(items, error).is_err());
    }
    let error = CountingBloomFilter::new(1_000_000_000_000, 0.01).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let huge = split(BlockWords::Eight, 4, 1 << 52);
    assert!(CountingGeometry::new(huge, CounterBits::Four, Increase::All).is_err());
    // As small and as large as it gets.
    for error in [0.5, 1e-12] {
        for items in [1, 10_000] {
            let mut filter = sized(items, error);
            filter.insert_bits(5).unwrap();
            assert!(filter.contains_bits(5) && filter.remove_bits(5).unwrap());
            assert_eq!(filter.fill(), 0.0);
        }
    }
}

/// At run time, by key and by digest, through the public traits.
#[test]
fn any_filter_counts_and_removes_or_says_that_it_cannot() {
    use crate::any::AnyFilter;
    let mut any: AnyFilter = sized(100, 0.01).into();
    any.insert_int(5).unwrap();
    any.insert_int(5).unwrap();
    assert_eq!(any.count_int(5).unwrap(), 2);
    assert!(any.remove_int(5).unwrap());
    assert_eq!(any.count_int(5).unwrap(), 1);
    assert!(any.remove_bytes(b"x").is_err() && any.count_bytes(b"x").is_err());
    assert_eq!(any.room(), Some(99));
    let digest = KeyHasher::default().digest_int(5);
    let remove: &mut dyn Remove = &mut any;
    assert!(remove.remove_digest(digest).unwrap());
    assert!(!remove.remove_digest(digest).unwrap());
    let count: &dyn Count = &any;
    assert_eq!(count.count_digest(digest).unwrap(), 0);
    assert!(
        count
            .count_digest(KeyHasher::default().digest_bytes(b"x"))
            .is_err()
    );

    let mut bloom: AnyFilter = sized(100, 0.01).to_bloom().unwrap().into();
    let error = bloom.remove_int(5).unwrap_err().to_string();
    assert!(
        error.contains("kind bloom does not offer removing keys"),
        "{error}"
    );
    assert!(matches!(bloom.count_int(5), Err(Error::Unsupported { .. })));
    assert!(bloom.union_with(&any).is_err());
}

/// In a file, mapped: answers, and no changes.
#[test]
fn saved_filters_count_on() {
    use crate::any::AnyFilter;
    use crate::atomic::Overwrite;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts");
    let mut filter = CountingBloomFilter::new(1000, 0.01).unwrap();
    filter.insert("a").unwrap();
    filter.insert("a").unwrap();
    filter.save(&path, Overwrite::Refuse).unwrap();
    let mut back = CountingBloomFilter::<Bytes>::open(&path, None).unwrap();
    assert!(back == filter);
    assert!(back.remove("a").unwrap());
    assert_eq!(back.count("a").unwrap(), 1);
    let mut mapped = AnyFilter::open_mapped(&path, None).unwrap();
    assert_eq!(mapped.count_bytes(b"a").unwrap(), 2);
    #[cfg(target_endian = "little")]
    {
        assert!(matches!(mapped.remove_bytes(b"a"), Err(Error::ReadOnly)));
        assert!(matches!(mapped.insert_bytes(b"a"), Err(Error::ReadOnly)));
    }
    // Counters go down, so that half-written ones would lose keys.
    assert!(matches!(
        crate::MappedWriter::open(&path, None),
        Err(Error::Unsupported { .. })
    ));
    let info = crate::verify(&path).unwrap();
    assert_eq!(info.shape, crate::Shape::Counting(filter.geometry()));
    assert_eq!(info.insertions, Some(2));
    assert!(crate::measure(&path).unwrap().estimated_len > 0.5);
}
