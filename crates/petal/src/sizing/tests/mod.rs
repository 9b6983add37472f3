//! What all of sizing promises, and what its tests share.

mod classic;
mod counting;
mod fixed;
mod growable;
mod packet;
mod split;
mod wire;

use proptest::prelude::*;

use super::*;
use crate::geometry::{BlockWords, SplitGeometry};

/// Errors of p over the whole range, and keys up to the limit.
pub(super) fn any_error() -> impl Strategy<Value = f64> {
    (0.001f64..12.0).prop_map(|exponent| 10f64.powf(-exponent))
}

pub(super) fn any_items() -> impl Strategy<Value = u64> {
    (0u32..40, any::<u64>())
        .prop_map(|(bits, low)| ((1 << bits) + low % (1 << bits)).min(MAX_ITEMS))
}

pub(super) fn any_collisions() -> impl Strategy<Value = Collisions> {
    prop_oneof![Just(Collisions::Never), Just(Collisions::Digest64)]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the tests round positive numbers below 2^53"
)]
pub(in crate::sizing) fn rounded(value: f64) -> u64 {
    value.round() as u64
}

#[track_caller]
pub(super) fn assert_near(got: f64, expected: f64, relative: f64) {
    let off = (got / expected - 1.0).abs();
    assert!(
        off <= relative,
        "{got:e} is not {expected:e}: off by {off:e}"
    );
}

pub(super) fn eight(regions: u32, blocks: u64) -> SplitGeometry {
    SplitGeometry::new(BlockWords::Eight, regions, blocks).unwrap()
}

/// The errors of wrong parameters, by every way in.
#[test]
fn wrong_parameters_are_refused() {
    type Entry = fn(u64, f64) -> Result<u64>;
    let entries: [Entry; 6] = [
        |n, p| split_for(n, p, Collisions::Digest64).map(SplitGeometry::bits),
        |n, p| classic_for(n, p, Collisions::Digest64).map(|plan| plan.bits),
        |n, p| GrowthPlan::open(n, p).map(GrowthPlan::first),
        |n, p| GrowthPlan::ceiling(n, n, p).map(GrowthPlan::first),
        |n, p| capacity_of(eight(1, n.clamp(1, 9)), p, Collisions::Never),
        |n, p| best_split_within(n, p, Collisions::Never).map(|(_, items)| items),
    ];
    let wrong = [
        0.0,
        1.0,
        2.0,
        -0.1,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5.0,
        1e-300,
        f64::MIN_POSITIVE,
        9.9e-13,
    ];
    for entry in entries {
        for error in wrong {
            for items in [1000, 1, MAX_ITEMS] {
                let text = entry(items, error).unwrap_err().to_string();
                assert!(text.starts_with("p = ") && text.len() < 150, "{text}");
            }
        }
    }
    for entry in &entries[..4] {
        for items in [0, MAX_ITEMS + 1, u64::MAX] {
            let text = entry(items, 0.01).unwrap_err().to_string();
            assert!(text.starts_with("n = "), "{text}");
        }
    }
    let hint = split_for(1000, 5.0, Collisions::Never)
        .unwrap_err()
        .to_string();
    assert!(hint.contains("did you mean 0.05"), "{hint}");
}

/// Sizes that overflowed elsewhere: in 32 bits, in bytes times eight, and of
/// more keys than there is memory for.
#[test]
fn large_sizes_do_not_wrap() {
    for (items, error) in [
        (10_000_000, 0.001f64),
        (300_000_000, 1e-6),
        (MAX_ITEMS, 1e-6f64),
    ] {
        let least = items as f64 * (1.0 / error).log2();
        let split = split_for(items, error, Collisions::Digest64)
            .unwrap()
            .bits() as f64;
        let classic = classic_for(items, error, Collisions::Digest64)
            .unwrap()
            .bits as f64;
        assert!(split > 1.44 * least && split < 1.8 * least);
        assert!(classic > 1.44 * least && classic < 1.45 * least);
    }
    // 10^13 keys at 0.1 % are past the limit; the text says what they take.
    let text = split_for(10_000_000_000_000, 0.001, Collisions::Digest64)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("it would take 1972") && text.contains("10 parts"),
        "{text}"
    );
    let text = split_for(2_000_000_000_000, 0.01, Collisions::Digest64)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("it would take 25") && text.contains("2 parts"),
        "{text}"
    );
    let text = split_for(u64::MAX, 1e-12, Collisions::Digest64)
        .unwrap_err()
        .to_string();
    assert!(text.contains("it would take more than"), "{text}");
    for bytes in [u64::MAX, u64::MAX / 4, MAX_BYTES + 1] {
        assert!(best_split_within(bytes, 0.01, Collisions::Digest64).is_err());
        assert!(split_for_items_and_bytes(1000, bytes, Collisions::Digest64).is_err());
    }
    let (geometry, items) = best_split_within(MAX_BYTES, 0.01, Collisions::Digest64).unwrap();
    assert_eq!(items, MAX_ITEMS);
    assert_eq!(
        geometry,
        split_for(MAX_ITEMS, 0.01, Collisions::Digest64).unwrap()
    );
}
