//! Errors and plans of classic filters.

use proptest::prelude::*;

use super::super::*;
use super::{any_error, any_items, assert_near};
use crate::testing::cases;

/// Exact errors of small filters: Bose et al., and by simulation.
#[test]
fn classic_errors_match_the_table() {
    for (bits, items, hashes, exact) in [
        (32, 4, 5, 2.522185e-02),
        (64, 8, 5, 2.341609e-02),
        (64, 10, 4, 4.914187e-02),
        (128, 16, 5, 2.253907e-02),
        (256, 32, 5, 2.210700e-02),
        (1024, 100, 7, 7.366258e-03),
        (1024, 128, 5, 2.178576e-02),
        (4096, 512, 5, 2.170583e-02),
        (10_000, 1000, 7, 8.200957e-03),
    ] {
        let error = classic_error(items, bits, hashes, Collisions::Never).unwrap();
        assert_near(error, exact, 2.5e-7);
    }
}

/// The best number of hashes and its error, and the error of eight hashes,
/// by bits a key, of large filters.
#[test]
fn classic_plans_match_the_table() {
    for (bits, hashes, error, with_eight) in [
        (6, 4, 5.6057e-02, 8.6482e-02),
        (7, 5, 3.4658e-02, 4.6308e-02),
        (8, 6, 2.1577e-02, 2.5492e-02),
        (9, 6, 1.3272e-02, 1.4463e-02),
        (10, 7, 8.1937e-03, 8.4555e-03),
        (12, 8, 3.1424e-03, 3.1424e-03),
        (16, 11, 4.5871e-04, 5.7450e-04),
        (20, 14, 6.7137e-05, 1.3955e-04),
        (24, 17, 9.8386e-06, 4.1691e-05),
    ] {
        let items = 1_000_000_000;
        let given = ClassicGiven {
            items: Some(items),
            bits: Some(items * bits),
            ..ClassicGiven::default()
        };
        let plan = plan_classic(given, Collisions::Never).unwrap();
        assert_eq!(plan.hashes, hashes);
        assert_near(plan.error, error, 1e-4);
        let eight = classic_error(items, items * bits, 8, Collisions::Never).unwrap();
        assert_near(eight, with_eight, 1e-4);
    }
}

/// A capacity formula that always gave 1 is what this number is known for.
#[test]
fn classic_size_of_a_thousand_keys() {
    let plan = classic_for(1000, 0.01, Collisions::Digest64).unwrap();
    assert!(plan.bits.abs_diff(9586) <= 64, "{plan:?}");
    assert_eq!(plan.hashes, 7);
    assert_eq!(plan.bytes(), plan.bits.div_ceil(8));
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn any_two_classic_values_give_the_rest(items in any_items(), error in any_error()) {
        let collisions = Collisions::Never;
        let plan = classic_for(items, error, collisions).unwrap();
        prop_assert!(plan.items == items && plan.error <= error);
        if plan.bits > 1 {
            // One bit less is too few for any number of hashes.
            let fewer = ClassicGiven {
                items: Some(items), bits: Some(plan.bits - 1), ..ClassicGiven::default()
            };
            prop_assert!(plan_classic(fewer, collisions).unwrap().error > error);
        }
        let given = ClassicGiven {
            error: Some(error), bits: Some(plan.bits), ..ClassicGiven::default()
        };
        let back = plan_classic(given, collisions).unwrap();
        prop_assert!(back.items >= items && back.error <= error, "{:?}", back);
        let given = ClassicGiven { hashes: Some(plan.hashes), ..given };
        let back = plan_classic(given, collisions).unwrap();
        prop_assert!(back.items >= items && back.error <= error, "{:?}", back);
        let given = ClassicGiven {
            items: Some(items), bits: Some(plan.bits), ..ClassicGiven::default()
        };
        prop_assert!(plan_classic(given, collisions).unwrap().error <= plan.error);
        let given = ClassicGiven {
            items: Some(items), error: Some(error), bits: None, hashes: Some(plan.hashes),
        };
        prop_assert_eq!(plan_classic(given, collisions).unwrap().bits, plan.bits);
    }

    #[test]
    fn hashes_fix_the_fill(items in 20u64..MAX_ITEMS / 100, hashes in 1u32..39) {
        let given = ClassicGiven {
            items: Some(items), hashes: Some(hashes), ..ClassicGiven::default()
        };
        let plan = plan_classic(given, Collisions::Never).unwrap();
        let textbook = items as f64 * f64::from(hashes) / std::f64::consts::LN_2;
        prop_assert!((plan.bits as f64 / textbook - 1.0).abs() < 0.05);
        let given = ClassicGiven {
            bits: Some(plan.bits), hashes: Some(hashes), ..ClassicGiven::default()
        };
        prop_assert!(plan_classic(given, Collisions::Never).unwrap().items >= items);
    }
}

#[test]
fn contradictions_and_gaps_are_refused() {
    let given = |items, error, bits, hashes| ClassicGiven {
        items,
        error,
        bits,
        hashes,
    };
    for impossible in [
        given(None, None, None, None),
        given(Some(10), None, None, None),
        given(None, None, Some(10), None),
        given(None, Some(0.1), None, Some(3)),
        given(None, None, None, Some(3)),
        given(Some(1000), Some(0.01), Some(9000), None),
        given(Some(1000), Some(0.01), Some(9600), Some(3)),
        given(Some(10), None, None, Some(60)),
        given(None, Some(1e-9), Some(8), None),
        given(Some(10), Some(0.1), None, Some(0)),
        given(Some(10), None, Some(100), Some(u32::MAX)),
        given(Some(10), None, Some(0), None),
        given(Some(0), None, Some(10), None),
        given(None, None, Some(u64::MAX), Some(3)),
    ] {
        assert!(
            plan_classic(impossible, Collisions::Never).is_err(),
            "{impossible:?}"
        );
    }
    assert!(
        plan_classic(
            given(Some(1000), Some(0.01), Some(9600), None),
            Collisions::Never
        )
        .is_ok()
    );
}
