//! Saturation of counters.

use super::super::*;
use super::{assert_near, eight};

/// P(X ≥ least) for X ~ Binomial(n, 1/places), by going through the keys one at
/// a time: exact for small numbers.
fn tail(n: usize, places: f64, least: usize) -> f64 {
    let mut chances = vec![0.0; n + 2];
    chances[0] = 1.0;
    for _ in 0..n {
        for value in (0..=n).rev() {
            let below = if value == 0 { 0.0 } else { chances[value - 1] };
            chances[value] = chances[value] * (1.0 - 1.0 / places) + below / places;
        }
    }
    chances[least.min(n + 1)..].iter().sum()
}

#[test]
fn saturation_is_the_tail_of_a_binomial() {
    for blocks in [1u64, 3] {
        let geometry = eight(2, blocks);
        for n in [0u64, 1, 15, 100, 800, 3000] {
            for max in [1u64, 15, 40] {
                let n_here = usize::try_from(n).unwrap();
                let max_here = usize::try_from(max).unwrap();
                let expected =
                    geometry.bits() as f64 * tail(n_here, 64.0 * blocks as f64, max_here);
                let got = saturated_counters(geometry, max, n);
                if expected == 0.0 {
                    assert_eq!(got, 0.0, "n = {n}, max = {max}");
                } else {
                    assert_near(got, expected, 1e-9);
                }
            }
        }
    }
}

/// With the mean of ln 2 that free positions have at the best k: the tails of
/// a Poisson distribution, 1.6e-15 from 15 on. And what a filter has at 1 %.
#[test]
fn saturation_of_a_million_keys_is_negligible() {
    let blocks = 1 << 20;
    let geometry = eight(1, blocks);
    let items = rounded_items(64.0 * blocks as f64 * std::f64::consts::LN_2);
    let share = saturated_counters(geometry, 15, items) / geometry.bits() as f64;
    // e^-ln2 * sum of ln2^j / j! from 15 on.
    assert_near(share, 1.6365e-15, 1e-3);
    let share = saturated_counters(geometry, 16, items) / geometry.bits() as f64;
    assert!(share < 1.4e-15, "Fan et al. bound: {share:e}");

    for (error, most) in [(0.01, 1.1e-7), (1e-4, 2.2e-7), (1e-6, 2.2e-7), (0.5, 3e-3)] {
        let geometry = split_for(1_000_000, error, Collisions::Digest64).unwrap();
        let saturated = saturated_counters(geometry, 15, 1_000_000);
        assert!(
            saturated < most && saturated > 0.0,
            "{error}: {saturated:e}"
        );
        assert!(saturated_counters(geometry, 255, 1_000_000) < 1e-300);
    }
}

fn rounded_items(value: f64) -> u64 {
    super::rounded(value)
}

#[test]
fn saturation_has_limits() {
    let geometry = eight(1, 2);
    let all = geometry.bits() as f64;
    assert_eq!(saturated_counters(geometry, 0, 0), all);
    assert_eq!(saturated_counters(geometry, 15, 14), 0.0);
    assert_eq!(saturated_counters(geometry, 15, MAX_ITEMS), all);
    assert_eq!(saturated_counters(geometry, 65535, MAX_ITEMS), all);
    assert_eq!(saturated_counters(geometry, 65535, u64::MAX), all);
    // More keys, more saturated counters; also where the tail turns.
    let mut before = 0.0;
    for n in (0..5000).step_by(7) {
        let now = saturated_counters(geometry, 15, n);
        assert!(now >= before * (1.0 - 1e-12), "{n}");
        before = now;
    }
}
