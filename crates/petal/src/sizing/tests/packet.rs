//! Packets lost on a path.

use super::super::*;
use super::assert_near;

/// Every path through every sequence of draws, for filters so small that they
/// can be listed.
fn listed(hops: u32, bits: u32, hashes: u32, set: u32) -> f64 {
    if hops == 0 {
        return 0.0;
    }
    let draws = bits.pow(hashes);
    (0..draws)
        .map(|draw| {
            let key = (0..hashes).fold(0, |key, i| key | 1 << (draw / bits.pow(i) % bits));
            if key & !set == 0 {
                1.0
            } else {
                listed(hops - 1, bits, hashes, set | key)
            }
        })
        .sum::<f64>()
        / f64::from(draws)
}

#[test]
fn losses_are_those_of_all_cases() {
    for (bits, hashes) in [(1, 1), (1, 3), (3, 2), (4, 1), (4, 3), (7, 2)] {
        for hops in 0..4 {
            let expected = listed(hops, bits, hashes, 0);
            let got = lost_on_path(hops.into(), bits.into(), hashes).unwrap();
            assert!(
                (got - expected).abs() < 1e-14,
                "{bits} {hashes} {hops}: {got} {expected}"
            );
        }
    }
}

/// The loss lies below the sum of the errors, and near it where both are small.
#[test]
fn losses_are_about_the_sum_of_the_errors() {
    for (bits, hashes, hops) in [
        (64u64, 4, 8u64),
        (128, 6, 10),
        (1024, 8, 60),
        (4096, 20, 100),
    ] {
        let sum: f64 = (0..hops)
            .map(|keys| classic_error(keys, bits, hashes, Collisions::Never).unwrap())
            .sum();
        let lost = lost_on_path(hops, bits, hashes).unwrap();
        assert!(lost < sum && lost > sum * (1.0 - sum), "{lost} {sum}");
    }
    assert_near(lost_on_path(2, 64, 1).unwrap(), 1.0 / 64.0, 1e-14);
    assert_near(lost_on_path(u64::MAX, 64, 3).unwrap(), 1.0, 1e-12);
    assert_near(
        lost_on_path(u64::MAX, 4096, MAX_HASHES).unwrap(),
        1.0,
        1e-12,
    );
}

#[test]
fn the_best_number_of_hashes_is_the_best_of_all() {
    for (hops, bits) in [(1, 64), (3, 32), (6, 64), (16, 128), (10, 512), (30, 64)] {
        let best = hashes_for_path(hops, bits).unwrap();
        let lost = lost_on_path(hops, bits, best).unwrap();
        for hashes in 1..=90 {
            let other = lost_on_path(hops, bits, hashes).unwrap();
            assert!(
                lost <= other,
                "{hops} {bits}: {best} {lost}, {hashes} {other}"
            );
        }
    }
    for (bits, hashes) in [(0, 1), (4097, 1), (64, 0), (64, 256)] {
        assert!(lost_on_path(3, bits, hashes).is_err());
    }
}
