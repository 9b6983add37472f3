//! The promise of the split-block filter, measured.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::geometry::{BlockWords, block_of, lane_bit, lanes, next_region};
use crate::hash::{Digests, Int, KeyType, mix_int};
use crate::sizing::split_error;
use crate::traits::{Contains, Insert, mask_words};

fn int_identity() -> Identity {
    Identity::new(KeyType::Int)
}

/// Digests of the keys `range` of a seed: a bijection of them, so distinct.
fn keys(seed: u64, range: std::ops::Range<i64>) -> impl Iterator<Item = u64> {
    range.map(move |key| mix_int(key, seed))
}

/// Mean and standard error of a sample.
fn mean_and_error(sample: &[f64]) -> (f64, f64) {
    let count = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / count;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// For every (n, p) of the table the computed expectation is at most p, and
/// so is the mean of what many filters really answer, within 5 sigma. Sigma
/// is that of the per-filter rates, so it has the scatter between filters in
/// it.
#[test]
fn the_error_is_at_most_what_was_asked() {
    for items in [1u64, 10, 1000, 100_000, 1_000_000] {
        for error in [0.5, 0.1, 0.01, 1e-3, 1e-4] {
            let promise = Promise { items, error };
            let mut rates = Vec::new();
            let (seeds, questions) = match items {
                1 | 10 => (1000u64, 20_000i64),
                1000 => (300, 50_000),
                _ => (100, 50_000),
            };
            for seed in 0..seeds {
                let mut filter = Bloom::sized(int_identity(), promise).unwrap();
                let expected = split_error(
                    filter.geometry(),
                    items,
                    filter.about().identity.collisions(),
                );
                assert!(expected <= error, "n = {items}, p = {error}: {expected}");
                let n = i64::try_from(items).unwrap();
                for digest in keys(seed, 0..n) {
                    filter.insert_bits(digest).unwrap();
                }
                let hits = keys(seed, n..n + questions)
                    .filter(|&digest| filter.contains_bits(digest))
                    .count();
                rates.push(hits as f64 / questions as f64);
            }
            let (mean, sigma) = mean_and_error(&rates);
            assert!(
                mean <= error + 5.0 * sigma,
                "n = {items}, p = {error}: mean {mean}, sigma {sigma}"
            );
        }
    }
}

/// Errors too small to be asked for: computed from the words that real keys
/// filled, over many filters.
#[test]
fn tiny_errors_are_kept_in_the_words() {
    for error in [1e-6, 1e-9, 1e-12] {
        let items = 100_000;
        let mut errors = Vec::new();
        for seed in 0..20 {
            let mut filter = Bloom::sized(int_identity(), Promise { items, error }).unwrap();
            for digest in keys(seed, 0..100_000) {
                filter.insert_bits(digest).unwrap();
            }
            errors.push(filter.error_now());
        }
        let (mean, sigma) = mean_and_error(&errors);
        assert!(mean <= error + 5.0 * sigma, "{error}: {mean} +- {sigma}");
        // And it is not far below either: the size is not wasted.
        assert!(mean >= 0.9 * error, "{error}: {mean}");
    }
}

/// The product over regions is the error only if a digest's hits in the
/// regions are independent. In an overfull filter hits are frequent enough
/// to see it: every pair, triple and quadruple of regions.
#[test]
fn hits_in_the_regions_are_independent() {
    let blocks = 300;
    let geometry = SplitGeometry::new(BlockWords::Eight, 4, blocks).unwrap();
    let promise = Promise {
        items: 1,
        error: 0.5,
    };
    let mut filter = Bloom::with_geometry(int_identity(), geometry, promise).unwrap();
    for digest in keys(7, 0..43_000) {
        filter.insert_bits(digest).unwrap();
    }
    let questions = 1_000_000u32;
    let mut counts = [0u32; 16];
    for digest in keys(7, 43_000..43_000 + i64::from(questions)) {
        let mut state = digest;
        let mut hit = 0usize;
        for region in 0..4u32 {
            let start = block_index(geometry.blocks(), region as usize, state) * 8;
            let lanes = lanes(state);
            let all =
                (0..8u32).all(|i| filter.words.get()[start + i as usize] & lane_bit(lanes, i) != 0);
            hit |= usize::from(all) << region;
            state = next_region(state);
        }
        for (set, count) in counts.iter_mut().enumerate() {
            *count += u32::from(hit & set == set);
        }
    }
    let share = |set: usize| f64::from(counts[set]) / f64::from(questions);
    for set in 0..16usize {
        let product: f64 = (0..4)
            .filter(|region| set >> region & 1 == 1)
            .map(|region| share(1 << region))
            .product();
        let sigma = (product * (1.0 - product) / f64::from(questions)).sqrt();
        assert!(
            (share(set) - product).abs() <= 5.0 * sigma,
            "regions {set:04b}: {} together, {product} by the product",
            share(set)
        );
    }
    assert!(share(1) > 0.2 && share(1) < 0.8, "{}", share(1));
}

/// A block is a uniform choice, and so is each lane, also given the block.
#[test]
fn blocks_and_lanes_are_uniform() {
    let blocks = 7;
    let mut table = vec![0u32; 7 * 8 * 64];
    let mut state_of_region = [0u64; 4];
    for digest in keys(1, 0..448_000) {
        let mut state = digest;
        for slot in &mut state_of_region {
            *slot = state;
            state = next_region(state);
        }
        // The last region has gone through every remix.
        let state = state_of_region[3];
        let block = usize::try_from(block_of(state, blocks)).unwrap();
        for word in 0..8usize {
            let lane = lane_bit(lanes(state), u32::try_from(word).unwrap());
            table[(block * 8 + word) * 64 + lane.trailing_zeros() as usize] += 1;
        }
    }
    // Chi-square with 8 * (7 * 64 - 1) degrees of freedom, as a normal.
    let expected = 1000.0;
    let chi: f64 = table
        .iter()
        .map(|&count| (f64::from(count) - expected).powi(2) / expected)
        .sum();
    let freedom = 8.0 * (7.0 * 64.0 - 1.0);
    let sigma = (2.0f64 * freedom).sqrt();
    assert!((chi - freedom).abs() <= 5.0 * sigma, "{chi} for {freedom}");
}

/// Counters as keys, in either byte order: what weak hashes stumble over.
#[test]
fn sequential_byte_keys_have_the_promised_error() {
    for big_endian in [true, false] {
        let bytes = |i: u32| {
            if big_endian {
                i.to_be_bytes()
            } else {
                i.to_le_bytes()
            }
        };
        let mut rates = Vec::new();
        for seed in 0..20 {
            let hasher = KeyHasher::Portable { seed };
            let mut filter = BloomFilter::<Bytes>::with_hasher(100_000, 0.01, hasher).unwrap();
            for i in 0..100_000 {
                filter.insert(&bytes(i)).unwrap();
            }
            let hits = (100_000..300_000)
                .filter(|&i| filter.contains(&bytes(i)))
                .count();
            rates.push(hits as f64 / 200_000.0);
        }
        let (mean, sigma) = mean_and_error(&rates);
        assert!(mean <= 0.01 + 5.0 * sigma, "{mean} +- {sigma}");
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]
    #[test]
    fn members_are_found_and_batches_agree(
        inserted in proptest::collection::vec(any::<i64>(), 0..400),
        asked in proptest::collection::vec(any::<i64>(), 0..400),
        regions in 1u32..=4,
        half: bool,
        // From filters in the cache to ones that are prefetched.
        blocks in prop_oneof![1u64..512, Just(16_384u64), Just(81_920u64)],
    ) {
        let block = if half { BlockWords::Four } else { BlockWords::Eight };
        let geometry = SplitGeometry::new(block, regions, blocks).unwrap();
        let promise = Promise { items: 1, error: 0.5 };
        let mut single = Bloom::with_geometry(int_identity(), geometry, promise).unwrap();
        let mut batched = Bloom::with_geometry(int_identity(), geometry, promise).unwrap();
        let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
        for &key in &inserted {
            digests.push_int(key).unwrap();
        }
        let mut mask = vec![0; mask_words(inserted.len())];
        batched.insert_digests(&digests, &mut mask).unwrap();
        let mut model = HashSet::new();
        for (i, (&key, &bits)) in inserted.iter().zip(digests.bits()).enumerate() {
            let changed = single.insert_bits(bits).unwrap();
            prop_assert_eq!(changed, mask[i / 64] >> (i % 64) & 1 == 1);
            // Whatever changed a bit was certainly new.
            prop_assert!(model.insert(key) || !changed);
        }
        prop_assert!(single == batched);
        prop_assert_eq!(single.about().insertions(), batched.about().insertions());
        digests.clear();
        for &key in inserted.iter().chain(&asked) {
            digests.push_int(key).unwrap();
        }
        let mut mask = vec![u64::MAX; mask_words(digests.len())];
        single.contains_digests(&digests, &mut mask).unwrap();
        for (i, &bits) in digests.bits().iter().enumerate() {
            let seen = mask[i / 64] >> (i % 64) & 1 == 1;
            prop_assert_eq!(seen, single.contains_bits(bits));
            prop_assert!(seen || i >= inserted.len());
        }
    }

    #[test]
    fn union_is_the_filter_of_both(
        ours in proptest::collection::vec(any::<i64>(), 0..200),
        theirs in proptest::collection::vec(any::<i64>(), 0..200),
    ) {
        let filter = |keys: &[&[i64]]| {
            let mut filter = BloomFilter::<Int>::with_hasher(300, 1e-5, KeyHasher::default()).unwrap();
            for key in keys.iter().copied().flatten() {
                filter.insert(key).unwrap();
            }
            filter
        };
        let mut union = filter(&[&ours]);
        union.union_with(&filter(&[&theirs])).unwrap();
        let (mut parts, other) = (filter(&[&ours]), filter(&[&theirs]));
        for from in (0..union.geometry().words() + 5).step_by(5) {
            parts.inner_mut().union_part(&other, from, 5).unwrap();
        }
        prop_assert!(*parts == *union);
        prop_assert!(union == filter(&[&ours, &theirs]));
        prop_assert_eq!(union.about().insertions(), None);
        let mut both = filter(&[&ours]);
        both.intersect_with(&filter(&[&theirs])).unwrap();
        for key in ours.iter().filter(|key| theirs.contains(key)) {
            prop_assert!(both.contains(key));
        }
    }
}

#[test]
fn filters_that_answer_other_questions_do_not_merge() {
    let filter = |items, error, seed| {
        BloomFilter::<Bytes>::with_hasher(items, error, KeyHasher::Portable { seed }).unwrap()
    };
    let mut mine = filter(50, 0.01, 0);
    mine.insert("a").unwrap();
    for other in [
        filter(62_500, 0.01, 0),
        filter(50, 1e-9, 0),
        filter(50, 0.01, 1),
    ] {
        let error = mine.union_with(&other).unwrap_err();
        assert!(matches!(error, Error::Mismatch { .. }), "{error}");
        assert!(mine.intersect_with(&other).is_err());
        assert!(*mine != *other);
    }
    assert!(mine.contains("a") && mine.about().insertions() == Some(1));
    let ints = BloomFilter::<Int>::with_hasher(50, 0.01, KeyHasher::default()).unwrap();
    assert!(mine.into_inner().union_with(&ints.into_inner()).is_err());
}

#[test]
fn estimates_and_measured_errors_follow_the_load() {
    let mut filter = Bloom::sized(
        int_identity(),
        Promise {
            items: 1000,
            error: 0.01,
        },
    )
    .unwrap();
    assert_eq!(filter.estimated_len().round(), 0.0);
    assert_eq!(filter.error_now(), 0.0);
    for digest in keys(3, 0..1000) {
        filter.insert_bits(digest).unwrap();
    }
    let estimate = filter.estimated_len();
    assert!((estimate - 1000.0).abs() < 30.0, "{estimate}");
    // Overfilled twentyfold: no silence about it.
    for digest in keys(3, 1000..20_000) {
        filter.insert_bits(digest).unwrap();
    }
    assert!(filter.error_now() > 0.9);
    filter.words.get_mut().unwrap().fill(u64::MAX);
    assert_eq!(filter.estimated_len(), f64::INFINITY);
    assert_eq!(filter.error_now(), 1.0);
}

#[test]
fn a_sample_of_the_blocks_tells_the_error_of_all() {
    let mut filter = Bloom::sized(
        int_identity(),
        Promise {
            items: 300_000,
            error: 1e-4,
        },
    )
    .unwrap();
    for digest in keys(5, 0..300_000) {
        filter.insert_bits(digest).unwrap();
    }
    let all = filter.error_now();
    let samples: Vec<f64> = (0..50)
        .map(|i| filter.sampled_error(1024, f64::from(i) / 49.0))
        .collect();
    let (mean, sigma) = mean_and_error(&samples);
    assert!(
        (mean - all).abs() <= 5.0 * sigma,
        "{mean} +- {sigma}, all {all}"
    );
    assert_eq!(filter.sampled_error(u64::MAX, 0.3), all);
}

#[test]
fn the_same_keys_give_the_same_bits_in_any_order() {
    let promise = Promise {
        items: 5000,
        error: 1e-7,
    };
    let mut forward = Bloom::sized(int_identity(), promise).unwrap();
    let mut backward = Bloom::sized(int_identity(), promise).unwrap();
    let digests: Vec<u64> = keys(9, 0..5000).collect();
    for (a, b) in digests.iter().zip(digests.iter().rev()) {
        forward.insert_bits(*a).unwrap();
        backward.insert_bits(*b).unwrap();
    }
    assert!(forward == backward);
}
