use super::*;
use crate::error::Error;
use crate::hash::{Int, KeyType};
use crate::mix_int;
use crate::sizing::Promise;
use crate::testing::shared_digest;

fn digests(seed: u64, count: u64) -> Vec<u64> {
    let mut digests: Vec<u64> = (0..count.cast_signed()).map(|i| mix_int(i, seed)).collect();
    digests.sort_unstable();
    digests
}

fn built(listed: &Vec<u64>, others: &Vec<u64>, error: f64) -> Cascade {
    Cascade::build(&Identity::new(KeyType::Int), listed, others, error, 2).unwrap()
}

fn answers(filter: &Cascade, digests: &[u64]) -> Vec<bool> {
    let mut mask = vec![0; digests.len().div_ceil(64)];
    filter.contains_all_bits(digests, &mut mask);
    let used = digests.len() % 64;
    if let (Some(last), 1..) = (mask.last(), used) {
        assert_eq!(last >> used, 0, "bits behind the last answer");
    }
    let answer = |i: usize| mask[i / 64] >> (i % 64) & 1 == 1;
    (0..digests.len()).map(answer).collect()
}

fn found(filter: &Cascade, digests: &[u64]) -> f64 {
    answers(filter, digests).iter().filter(|&&yes| yes).count() as f64
}

#[test]
fn every_key_of_both_lists_has_its_answer() {
    for (listed, others) in [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (2, 1000),
        (1000, 2),
        (0, 5000),
        (5000, 0),
        (777, 777),
        (3000, 20_000),
        (20_000, 3000),
        (400_000, 300_000),
    ] {
        for error in [1.0, 0.6, 0.01, 1e-6, 1e-12] {
            if listed + others > 100_000 && error != 0.01 {
                continue;
            }
            let (yes, no) = (digests(1, listed), digests(2, others));
            let filter = built(&yes, &no, error);
            let name = format!("{listed} of {others} more at {error}");
            assert!(answers(&filter, &yes).iter().all(|&yes| yes), "{name}");
            assert!(answers(&filter, &no).iter().all(|&yes| !yes), "{name}");
            for (i, &digest) in yes.iter().chain(&no).enumerate() {
                assert_eq!(filter.contains_bits(digest), i < yes.len(), "{name}");
            }
            let absent = digests(3, 300);
            for (&digest, batch) in absent.iter().zip(answers(&filter, &absent)) {
                assert_eq!(filter.contains_bits(digest), batch, "{name}");
            }
            assert_eq!((filter.len(), filter.not_listed()), (listed, others));
            assert!(filter.error_now() <= error, "{name}");
            assert_eq!(
                filter.about.promise,
                (error < 1.0).then_some(Promise {
                    items: (listed + others).max(1),
                    error
                })
            );
            let identity = Identity::new(KeyType::Int);
            let expected = Cascade::expected_bytes(&identity, listed, others, error).unwrap();
            // Both filters have room for blocks that do not come out even.
            let least = expected.saturating_sub(2 << 10) * 10 / 12;
            assert!((least..=expected).contains(&filter.bytes()), "{name}");
        }
    }
}

/// Five sigma around what the filter says of itself, which is at most the promise.
#[test]
fn keys_of_neither_list_are_found_with_the_error() {
    let absent = digests(9, 1_000_000);
    for (listed, others, error) in [
        (3000, 1000, 0.01),
        (3000, 300_000, 1.0),
        (3000, 300_000, 1e-4),
        (100_000, 0, 0.1),
        (100_000, 30_000, 1.0),
        (100_000, 30_000, 0.5),
    ] {
        let filter = built(&digests(1, listed), &digests(2, others), error);
        let now = filter.error_now();
        let expected = now * absent.len() as f64;
        let off = found(&filter, &absent) - expected;
        let sigma = (expected * (1.0 - now)).sqrt().max(1.0);
        assert!(
            off.abs() < 5.0 * sigma,
            "{listed}, {others}, {error}: {off}"
        );
    }
    let inverted = built(&digests(1, 100_000), &digests(2, 30_000), 1.0);
    assert!(inverted.geometry().is_inverted() && inverted.error_now() > 0.5);
    let other = built(&digests(1, 100_000), &digests(2, 30_000), 0.5);
    assert!(!other.geometry().is_inverted());
}

/// The bit of a key of neither list is random also where few keys decide.
#[test]
fn the_error_is_kept_by_cascades_of_few_keys() {
    for listed in [1, 2, 30] {
        for others in [0, 3] {
            let (mut all, rounds) = (0.0, 300);
            for seed in 0..rounds {
                let yes = digests(100 + seed, listed);
                let filter = built(&yes, &digests(3000 + seed, others), 0.1);
                all += found(&filter, &digests(7000 + seed, 1000));
            }
            // A small filter is right or wrong for many keys at once: its share of 1000 keys
            // scatters by less than 1/2 around 1/10, so that 300 of them by 0.03.
            let share = all / (rounds as f64 * 1000.0);
            assert!(share < 0.1 + 5.0 * 0.03, "{listed}, {others}: {share}");
        }
    }
}

/// log2 of the ways to list so many keys of all.
fn entropy(listed: u64, all: u64) -> f64 {
    let (n, q) = (all as f64, listed as f64 / all as f64);
    let h = -q * q.log2() - (1.0 - q) * (1.0 - q).log2();
    n * h - 0.5 * (std::f64::consts::TAU * n * q * (1.0 - q)).log2()
}

/// Bits over the least there can be.
fn overhead(listed: u64, others: u64) -> f64 {
    let filter = built(&digests(1, listed), &digests(2, others), 1.0);
    (filter.bytes() * 8) as f64 / entropy(listed, listed + others)
}

#[test]
fn sizes_are_near_the_least_there_can_be() {
    for (listed, others, most) in [
        (10_000, 990_000, 1.1),
        (990_000, 10_000, 1.1),
        (100_000, 100_000, 1.035),
        (50_000, 150_000, 1.12),
        (50_000, 200_000, 1.13),
        (5_000, 995_000, 1.1),
    ] {
        let ratio = overhead(listed, others);
        println!("{listed} and {others}: {ratio}");
        assert!(ratio <= most);
    }
}

#[test]
#[ignore = "takes a minute and a gigabyte"]
fn a_million_of_a_hundred_million_are_near_the_least() {
    let ratio = overhead(1_000_000, 99_000_000);
    println!("1 M of 100 M: {ratio}");
    assert!(ratio <= 1.07);
}

#[test]
fn order_repeats_and_threads_change_nothing() {
    let hasher = KeyHasher::default;
    let filter = |listed: Vec<i64>, others: Vec<i64>, threads| {
        CascadeFilter::<Int>::with_hasher(listed, others, 0.01, hasher(), threads).unwrap()
    };
    let (listed, others): (Vec<i64>, Vec<i64>) = ((0..300_000).collect(), (-90_000..0).collect());
    let one = filter(listed.clone(), others.clone(), 1);
    let again = listed.iter().rev().chain(&listed[..99]).copied().collect();
    let other = filter(again, others.into_iter().rev().collect(), 3);
    for (a, b) in one.words().into_iter().zip(other.words()) {
        assert!(a.get() == b.get());
    }
    assert!(listed.iter().all(|key| one.contains(key)));
    assert!((-90_000..0i64).all(|key| !one.contains(&key)));
}

#[test]
fn a_key_of_both_lists_is_refused() {
    for (listed, others) in [
        (vec![1, 5, 9], vec![2, 9, 11]),
        (vec![9], vec![9]),
        ((0..9000).collect(), vec![9]),
    ] {
        let identity = Identity::new(KeyType::Int);
        let error = Cascade::build(&identity, &listed, &others, 1.0, 1).unwrap_err();
        let Error::Ambiguous { digest, answers } = &error else {
            panic!("{error}");
        };
        assert_eq!(*digest, 9);
        assert_eq!(*answers, ["listed", "not listed"]);
    }
}

/// Two keys that nobody can tell apart by their digests.
#[test]
fn keys_of_both_lists_that_share_a_digest_are_refused() {
    let [one, other] = shared_digest();
    let error = CascadeFilter::from_keys([&one], [&other], 1e-6).unwrap_err();
    assert!(error.to_string().contains("another seed"), "{error}");
    let seeded = KeyHasher::Portable { seed: 1 };
    let filter = CascadeFilter::<Bytes>::with_hasher([&one], [&other], 1e-6, seeded, 1).unwrap();
    assert!(filter.contains(&one) && !filter.contains(&other));
    // In one list they are one key.
    let filter = CascadeFilter::from_keys([&one, &other], ["x"], 1e-6).unwrap();
    assert!(filter.contains(&one) && filter.contains(&other) && !filter.contains("x"));
    assert_eq!(filter.len(), 1);
}

#[test]
fn errors_that_cannot_be_kept_are_refused() {
    let identity = Identity::new(KeyType::Bytes);
    for error in [0.0, -1.0, 1.1, f64::NAN, f64::INFINITY, 1e-13] {
        let built = Cascade::build(&identity, &vec![1], &vec![2], error, 1);
        assert!(matches!(built, Err(Error::Parameter { .. })), "{error}");
    }
    let built = Cascade::build(&identity, &vec![2, 1], &vec![3], 0.5, 1);
    assert!(built.is_err());
}
