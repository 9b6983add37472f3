//! Folded filters are the ones that would have been built.

use proptest::prelude::*;

use super::*;
use crate::classic::ClassicGeometry;
use crate::geometry::{BlockWords, SplitGeometry};
use crate::hash::KeyType;
use crate::identity::Identity;
use crate::sizing::GrowthPlan;
use crate::testing::cases;
use crate::traits::{BitsMut, Merge};

const PROMISE: Promise = Promise {
    items: 1000,
    error: 0.3,
};

fn ints() -> Identity {
    Identity::new(KeyType::Int)
}

fn digests(count: u64, seed: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |i| crate::mix_int(i.cast_signed(), seed))
}

fn bloom(geometry: SplitGeometry, count: u64, seed: u64) -> Bloom {
    let mut filter = Bloom::with_geometry(ints(), geometry, PROMISE).unwrap();
    for digest in digests(count, seed) {
        filter.insert_bits(digest).unwrap();
    }
    filter
}

fn classic(bits: u64, positions: u32, count: u64, seed: u64) -> Classic {
    let geometry = ClassicGeometry::new(bits, positions).unwrap();
    let mut filter = Classic::with_geometry(ints(), geometry, PROMISE).unwrap();
    for digest in digests(count, seed) {
        filter.insert_bits(digest).unwrap();
    }
    filter
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_folded_filter_is_the_one_of_half_the_blocks(
        half_block: bool,
        regions in 1u32..=4,
        odd in 0u64..256,
        shift in 0u32..6,
        count in 0u64..2000,
        seed: u64,
    ) {
        let block = if half_block { BlockWords::Four } else { BlockWords::Eight };
        let blocks = (2 * odd + 1) << shift;
        prop_assume!(SplitGeometry::new(block, regions, blocks).is_ok());
        let large = SplitGeometry::new(block, regions, blocks).unwrap();
        let filter = bloom(large, count, seed);
        prop_assert_eq!(large.folds(), shift);
        for times in 0..=shift {
            let small = SplitGeometry::new(block, regions, blocks >> times).unwrap();
            let folded = filter.folded(times);
            // Refused only where the shape holds no key at all.
            let Ok(folded) = folded else {
                prop_assert!(sizing::split_error(small, 1, ints().collisions()) > PROMISE.error);
                continue;
            };
            prop_assert_eq!(folded.geometry(), small);
            let built = bloom(small, count, seed);
            prop_assert_eq!(folded.words().get(), built.words().get());
        }
        prop_assert!(filter.folded(shift + 1).is_err());
    }

    #[test]
    fn a_folded_classic_filter_is_the_one_of_half_the_bits(
        odd in 0u64..300,
        shift in 1u32..8,
        positions in 1u32..10,
        count in 0u64..300,
        seed: u64,
    ) {
        let bits = (2 * odd + 1) << shift;
        let mut filter = classic(bits, positions, count, seed);
        for times in 1..=shift {
            filter = filter.half().unwrap().unwrap();
            let built = classic(bits >> times, positions, count, seed);
            prop_assert_eq!(filter.geometry(), built.geometry());
            prop_assert_eq!(filter.words().get(), built.words().get());
        }
        prop_assert!(filter.half().unwrap().is_none());
    }

    /// As small as the error allows, and no smaller.
    #[test]
    fn a_shrunk_filter_keeps_its_error_and_half_of_it_would_not(
        exponent in 1i32..9,
        count in 1u64..3000,
        seed: u64,
    ) {
        let error = 0.1f64.powi(exponent);
        let promise = Promise { items: 100_000, error };
        let mut filter = Bloom::sized(ints(), promise).unwrap();
        for digest in digests(count, seed) {
            filter.insert_bits(digest).unwrap();
        }
        let small = filter.shrunk(None).unwrap();
        let collisions = ints().collisions();
        prop_assert!(sizing::split_error(small.geometry(), count, collisions) <= error);
        let now = small.meta().promise().unwrap();
        prop_assert!(now.error == error && now.items >= count);
        prop_assert_eq!(small.meta().insertions(), filter.meta().insertions());
        prop_assert!(digests(count, seed).all(|digest| small.contains_bits(digest)));
        if let Some(half) = small.half().unwrap() {
            let holds = sizing::capacity_of(half.geometry(), error, collisions).unwrap();
            prop_assert!(holds < filter.meta().insertions().unwrap());
        }
        let shape = small.geometry();
        let mut built = Bloom::with_geometry(ints(), shape, promise).unwrap();
        for digest in digests(count, seed) {
            built.insert_bits(digest).unwrap();
        }
        prop_assert!(built == small);
        // So it joins with one that was built so small.
        prop_assert!(small.shrunk(None).unwrap().union_with(&built).is_ok());
    }
}

#[test]
fn a_filter_at_its_load_and_one_that_is_overfull_stay_as_they_are() {
    let promise = Promise {
        items: 1024,
        error: 0.01,
    };
    for count in [1000, 5000] {
        let mut filter = Bloom::sized(ints(), promise).unwrap();
        for digest in digests(count, 1) {
            filter.insert_bits(digest).unwrap();
        }
        let same = filter.shrunk(None).unwrap();
        assert!(same == filter);
        assert_eq!(same.meta(), filter.meta());
    }
}

#[test]
fn another_error_folds_more_or_is_refused() {
    let mut filter = Bloom::sized(
        ints(),
        Promise {
            items: 100_000,
            error: 1e-6,
        },
    )
    .unwrap();
    for digest in digests(20_000, 1) {
        filter.insert_bits(digest).unwrap();
    }
    let strict = filter.shrunk(None).unwrap();
    let loose = filter.shrunk(Some(0.01)).unwrap();
    assert!(loose.geometry().bytes() < strict.geometry().bytes());
    assert_eq!(loose.meta().promise().unwrap().error, 0.01);
    assert!(loose.error_now() <= 0.01);
    let least = loose.error_now();
    for bad in [least * 0.9, 0.0, 1.0, f64::NAN] {
        let error = loose.shrunk(Some(bad)).unwrap_err();
        assert!(
            matches!(error, Error::Parameter { name: "p", .. }),
            "{error}"
        );
    }
}

#[test]
fn unions_of_unknown_count_fold_by_their_estimate() {
    let promise = Promise {
        items: 50_000,
        error: 1e-3,
    };
    let mut both = Bloom::sized(ints(), promise).unwrap();
    let mut other = Bloom::sized(ints(), promise).unwrap();
    for digest in digests(2000, 1) {
        both.insert_bits(digest).unwrap();
    }
    for digest in digests(2000, 2) {
        other.insert_bits(digest).unwrap();
    }
    both.union_with(&other).unwrap();
    let small = both.shrunk(None).unwrap();
    assert!(small.geometry().bytes() * 8 <= both.geometry().bytes());
    assert!(small.error_now() <= 1e-3);
    assert_eq!(small.meta().insertions(), None);
}

#[test]
fn the_last_stage_of_a_growable_filter_folds_and_growth_goes_on() {
    let plan = GrowthPlan::open(40_000, 0.01).unwrap();
    let mut filter = Growable::with_plan(ints(), plan).unwrap();
    for digest in digests(42_000, 3) {
        filter.insert_bits(digest).unwrap();
    }
    assert_eq!(filter.stages().len(), 2);
    let mut small = filter.shrunk().unwrap();
    assert_eq!(small.stages()[0].geometry(), filter.stages()[0].geometry());
    assert!(small.stages()[1].geometry().bytes() * 4 <= filter.stages()[1].geometry().bytes());
    let bytes = AnyFilter::from(small.shrunk().unwrap()).to_bytes().unwrap();
    assert!(AnyFilter::from_bytes(&bytes, None).is_ok());
    for digest in digests(200_000, 3) {
        small.insert_bits(digest).unwrap();
    }
    assert!(digests(200_000, 3).all(|digest| small.contains_bits(digest)));
    assert!(small.error_now() <= 0.01);
    assert!(small.stages().len() > 2);
}

#[test]
fn kinds_that_do_not_fold_say_so() {
    let set: AnyFilter = crate::DigestSet::with_slots(ints(), 8).unwrap().into();
    let error = set.shrunk(None).unwrap_err().to_string();
    assert!(
        error.contains("digests") && error.contains("shrinking"),
        "{error}"
    );
    let plan = GrowthPlan::open(10, 0.01).unwrap();
    let growable: AnyFilter = Growable::with_plan(ints(), plan).unwrap().into();
    assert!(growable.shrunk(Some(0.1)).is_err());
}
