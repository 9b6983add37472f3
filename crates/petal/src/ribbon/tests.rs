use super::*;
use crate::error::Error;
use crate::hash::{Int, KeyType};
use crate::mix_int;
use crate::sizing::Promise;
use crate::traits::Bits;

/// Digests like those of keys.
fn digests(seed: u64, count: u64) -> Vec<u64> {
    (0..count.cast_signed()).map(|i| mix_int(i, seed)).collect()
}

fn built(digests: &[u64], error: f64, threads: usize) -> Static {
    let identity = Identity::new(KeyType::Int);
    Static::build(identity, digests.to_vec(), error, threads).unwrap()
}

fn seen(filter: &Static, digests: &[u64]) -> u64 {
    let mut mask = vec![0; digests.len().div_ceil(64)];
    filter.contains_all_bits(digests, &mut mask);
    mask.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[test]
fn no_key_is_ever_lost() {
    for count in (0..200).chain([255, 256, 257, 1000, 3000, 8191, 8192, 50_000, 300_000]) {
        for error in [0.9, 0.5, 0.01, 1.0 / 256.0, 1e-6] {
            if count > 10_000 && error != 0.01 {
                continue;
            }
            let keys = digests(count, count);
            let filter = built(&keys, error, 1);
            assert_eq!(seen(&filter, &keys), count, "{count} keys at {error}");
        }
    }
}

#[test]
fn single_questions_are_those_of_a_batch() {
    let keys = digests(1, 20_000);
    let absent = digests(2, 20_000);
    let filter = built(&keys[..10_000], 0.1, 1);
    for asked in [&keys, &absent] {
        let mut mask = vec![0; asked.len().div_ceil(64)];
        filter.contains_all_bits(asked, &mut mask);
        for (i, &digest) in asked.iter().enumerate() {
            assert_eq!(
                mask[i / 64] >> (i % 64) & 1 == 1,
                filter.contains_bits(digest)
            );
        }
    }
}

#[test]
fn order_repeats_and_threads_change_nothing() {
    let mut keys = digests(3, 600_000);
    let one = built(&keys, 0.01, 1);
    keys.reverse();
    keys.extend_from_within(..1000);
    let other = built(&keys, 0.01, 3);
    assert_eq!(one.shards.count(), 3);
    assert!(one.words.get() == other.words.get());
    assert_eq!(
        one.about.promise,
        Some(Promise {
            items: 600_000,
            error: 0.01
        })
    );
}

/// Five sigma above the promise at most, and not far below it.
#[test]
fn the_error_is_what_was_asked_for() {
    let absent = digests(99, 4_000_000);
    for (count, error) in [
        (300, 0.01),
        (3000, 0.3),
        (3000, 0.01),
        (30_000, 0.01),
        (300_000, 0.01),
        (300_000, 1.0 / 256.0),
        (30_000, 1e-4),
    ] {
        let filter = built(&digests(5, count), error, 2);
        let share = seen(&filter, &absent) as f64 / absent.len() as f64;
        let sigma = (error / absent.len() as f64).sqrt();
        assert!(share <= error + 5.0 * sigma, "{count} at {error}: {share}");
        let least = if count < 10_000 { 0.8 } else { 0.98 };
        assert!(
            share >= error * least - 5.0 * sigma,
            "{count} at {error}: {share}"
        );
    }
}

/// Bits a key over log2(1/p), as the module promises.
#[test]
fn sizes_are_within_their_bounds() {
    for (count, error, most) in [
        (3000, 1.0 / 256.0, 1.03),
        (1_000_000, 1.0 / 256.0, 1.005),
        (1_000_000, 0.01, 1.017),
    ] {
        let filter = built(&digests(7, count), error, 2);
        let ratio = (filter.bytes() * 8) as f64 / count as f64 / -error.log2();
        assert!(ratio <= most, "{count} at {error}: {ratio}");
    }
}

#[test]
fn errors_that_cannot_be_kept_are_refused() {
    for error in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, 1e-13] {
        let identity = Identity::new(KeyType::Int);
        assert!(Static::build(identity, vec![1, 2, 3], error, 1).is_err());
    }
}

#[test]
fn typed_filters_take_keys() {
    let filter = StaticFilter::from_keys(["a", "b", "a"], 1e-6).unwrap();
    assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    let filter = StaticFilter::<Int>::with_hasher(0..1000, 1e-6, KeyHasher::default(), 1).unwrap();
    assert!((0..1000).all(|key| filter.contains(&key)));
    assert!(!(1000..2000).any(|key| filter.contains(&key)));
}

#[test]
fn places_kept_are_those_of_the_classes() {
    for start in 0..place::BUCKET {
        for threshold in 0..=place::KEEP_ALL {
            let bumped = place::bump_class(start) >= threshold;
            assert_eq!(place::is_bumped(start, 4 + threshold), bumped, "{start}");
        }
    }
}

fn value_of(i: usize, bits: u32) -> u16 {
    u16::try_from(mix_int(i64::try_from(i).unwrap(), 77) >> 8 & ((1 << bits) - 1)).unwrap()
}

fn valued(digests: &[u64], bits: u32, error: f64) -> Static {
    let keys = digests.iter().enumerate().map(|(i, &digest)| Valued {
        digest,
        value: value_of(i, bits),
    });
    let identity = Identity::new(KeyType::Int);
    Static::build_with_values(identity, keys.collect(), error, bits, 2).unwrap()
}

#[test]
fn every_key_has_its_value() {
    for count in (0..130).chain([1000, 9000, 300_000]) {
        for (bits, error) in [(1, 1.0), (2, 0.3), (5, 0.01), (16, 1e-6), (16, 1e-12)] {
            if count > 10_000 && bits != 5 {
                continue;
            }
            let keys = digests(count, count);
            let filter = valued(&keys, bits, error);
            assert_eq!(filter.value_bits(), bits);
            assert_eq!(seen(&filter, &keys), count);
            let mut batch = Vec::new();
            filter.values_of_bits(&keys, |i, value| {
                assert_eq!(batch.len(), i);
                batch.push(value);
            });
            for (i, &digest) in keys.iter().enumerate() {
                let value = Some(value_of(i, bits));
                assert_eq!(batch[i], value, "{i} of {count}, {bits} bits at {error}");
                assert_eq!(filter.value_of_bits(digest), value);
                assert!(filter.contains_bits(digest));
            }
        }
    }
}

/// The values of absent keys that are found are random, even where few keys are.
#[test]
fn values_cost_no_error_and_those_of_absent_keys_are_random() {
    let absent = digests(98, 400_000);
    for (count, error) in [(1, 0.3), (40, 0.1), (3000, 0.03), (300_000, 0.01)] {
        let filter = valued(&digests(6, count), 2, error);
        let mut found = [0u32; 4];
        filter.values_of_bits(&absent, |_, value| {
            if let Some(value) = value {
                found[usize::from(value)] += 1;
            }
        });
        let all: u32 = found.iter().sum();
        assert_eq!(u64::from(all), seen(&filter, &absent));
        // One small filter scatters around its expectation; a large one does not.
        if count >= 3000 {
            let expected = error * absent.len() as f64;
            assert!(f64::from(all) < expected + 5.0 * expected.sqrt());
        }
        let quarter = f64::from(all) / 4.0;
        for value in found {
            let off = f64::from(value) - quarter;
            assert!(off.abs() < 5.0 * quarter.sqrt(), "{count}: {found:?}");
        }
    }
}

/// As much over the bits that are needed as without values.
#[test]
fn values_cost_their_own_size() {
    for (count, error, bits, most) in [
        (3000, 1.0 / 256.0, 4, 1.03),
        (1_000_000, 1.0 / 256.0, 4, 1.005),
        (1_000_000, 1.0 / 256.0, 16, 1.005),
        (1_000_000, 1.0, 8, 1.005),
    ] {
        let filter = valued(&digests(7, count), bits, error);
        let needed = -error.log2() + f64::from(bits);
        let ratio = (filter.bytes() * 8) as f64 / count as f64 / needed;
        assert!(ratio <= most, "{count} at {error}, {bits} bits: {ratio}");
    }
}

#[test]
fn two_values_of_a_key_are_refused() {
    let identity = || Identity::new(KeyType::Int);
    let keys = |values: [u16; 3]| {
        let digests = [5u64 << 40, 7, 5 << 40];
        let key = |(digest, value)| Valued { digest, value };
        digests.into_iter().zip(values).map(key).collect::<Vec<_>>()
    };
    let filter = Static::build_with_values(identity(), keys([3, 1, 3]), 0.01, 2, 1).unwrap();
    assert_eq!(filter.len(), 2);
    let error = Static::build_with_values(identity(), keys([3, 1, 2]), 0.01, 2, 1).unwrap_err();
    let Error::Ambiguous { digest, answers } = &error else {
        panic!("{error}");
    };
    assert_eq!(*digest, 5 << 40);
    assert_eq!(*answers, ["the value 2", "the value 3"]);
    assert!(error.to_string().contains("0000050000000000"), "{error}");
    for (values, bits, error) in [
        ([3, 4, 3], 2, 0.01),
        ([0, 0, 0], 0, 0.01),
        ([0, 0, 0], 17, 0.01),
        ([0, 0, 0], 1, 1.1),
        ([0, 0, 0], 1, f64::NAN),
    ] {
        let refused = Static::build_with_values(identity(), keys(values), error, bits, 1);
        assert!(matches!(refused, Err(Error::Parameter { .. })));
    }
}

#[test]
fn typed_filters_take_keys_with_values() {
    let pairs = (0..2000i32).map(|key| (key, value_of(usize::try_from(key).unwrap(), 3)));
    let filter = StaticFilter::<Int>::with_values(pairs, 3, 1e-9, KeyHasher::default(), 1).unwrap();
    let keys: Vec<i32> = (0..4000).collect();
    let mut values = vec![None; 7];
    filter.values(&keys, &mut values);
    assert_eq!(values.len(), keys.len());
    for (i, &value) in values.iter().enumerate() {
        let expected = (i < 2000).then(|| value_of(i, 3));
        assert_eq!(value, expected);
        assert_eq!(filter.value(&keys[i]), expected);
    }
}
