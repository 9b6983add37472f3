//! Stages and memory of growing filters.

use proptest::prelude::*;

use super::super::*;
use super::rounded;
use crate::testing::cases;

/// Bits of all stages up to and including the one at `last`, when full, and
/// the keys in them.
fn bits_when_full(plan: GrowthPlan, last: u32) -> (u64, u64) {
    let stages = (0..=last).map(|index| plan.stage(index).unwrap());
    stages.fold((0, 0), |(bits, items), stage| {
        let geometry = split_for(stage.items, stage.error, Collisions::Digest64).unwrap();
        (bits + geometry.bits(), items + stage.items)
    })
}

/// After ten doublings at 1 %, against one filter of the right size. Below
/// some fifty keys in the first stage whole blocks weigh too much.
#[test]
fn growth_costs_little_memory() {
    let firsts = std::iter::successors(Some(50u64), |first| Some(first + first / 40 + 1));
    for first in firsts.take_while(|&first| first < 100_000_000) {
        for (plan, most, most_bits) in [
            (GrowthPlan::open(first, 0.01).unwrap(), 1.75, 17.7),
            (
                GrowthPlan::ceiling(first, first * 2047, 0.01).unwrap(),
                1.35,
                13.7,
            ),
        ] {
            let (bits, items) = bits_when_full(plan, 10);
            assert_eq!(items, first * 2047);
            let whole = split_for(items, 0.01, Collisions::Digest64).unwrap().bits();
            let ratio = bits as f64 / whole as f64;
            assert!(ratio <= most, "{plan:?}: {ratio}");
            assert!(bits as f64 / items as f64 <= most_bits);
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn growth_never_passes_its_error(
        first in 1u64..1 << 30,
        factor in 1.0f64..5000.0,
        error in 1e-9f64..0.9,
        open: bool,
        by in prop_oneof![Just(2u32), 1u32..10, 1u32..70_000],
    ) {
        let ceiling = rounded(first as f64 * factor);
        let plan = if open {
            GrowthPlan::open(first, error).unwrap()
        } else {
            GrowthPlan::ceiling(first, ceiling.min(MAX_ITEMS), error).unwrap()
        };
        let Ok(plan) = plan.with_factor(by) else {
            // Refused are absurd factors, and too many stages up to a ceiling.
            prop_assert!(by > GrowthPlan::MAX_FACTOR || (by == 1 && !open));
            return Ok(());
        };
        let mut sum = 0.0;
        let mut items = 0;
        let mut nominal = first;
        let mut index = 0;
        while let Ok(stage) = plan.stage(index) {
            prop_assert!(stage.error >= MIN_ERROR);
            sum += stage.error;
            items += stage.items;
            if plan.declared_ceiling() == Some(items) {
                // The last stage below the ceiling takes what is left.
                prop_assert!(stage.items / 3 <= nominal / 2 + 1);
                prop_assert!(by > 2 || stage.items > nominal / 4);
            } else {
                prop_assert_eq!(stage.items, nominal);
            }
            nominal = nominal.saturating_mul(by.into());
            index += 1;
        }
        prop_assert!(sum <= error, "{} stages sum up to {}", index, sum);
        prop_assert!(items <= MAX_ITEMS);
        if let Some(ceiling) = plan.declared_ceiling() {
            prop_assert!(items >= ceiling);
        }
        // The end is an end, however far one asks.
        for far in [index, index + 1, index + 63, index + 200, u32::MAX] {
            prop_assert!(plan.stage(far).is_err());
        }
    }
}

#[test]
fn growth_needs_room_for_its_error() {
    assert!(GrowthPlan::open(1000, 1.001e-11).is_ok());
    assert!(GrowthPlan::open(1000, 0.999e-11).is_err());
    assert!(GrowthPlan::ceiling(1000, 999, 0.01).is_err());
    assert!(GrowthPlan::ceiling(0, 10, 0.01).is_err());
    assert!(GrowthPlan::ceiling(1000, MAX_ITEMS + 1, 0.01).is_err());
    assert!(
        GrowthPlan::ceiling(1000, 1000, 0.01)
            .unwrap()
            .stage(0)
            .unwrap()
            .items
            == 1000
    );
    assert!(GrowthPlan::ceiling(1, MAX_ITEMS, 1e-12).is_err());
}
