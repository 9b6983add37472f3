use super::*;
use crate::testing::cases;
use crate::{Int, KeyHasher, StaticFilter};

#[test]
fn static_filters_have_the_size_and_error_that_are_planned() {
    for items in [1, 40, 255, 256, 700, 3000, 8192, 30_000, 300_000] {
        for error in [0.3, 0.01, 1.0 / 256.0, 1e-6, 1e-12] {
            let keys = (0..items).map(|i: u64| crate::mix_int(i.cast_signed(), 5).cast_signed());
            let filter = StaticFilter::<Int>::with_hasher(keys, error, KeyHasher::default(), 1)
                .unwrap()
                .into_inner();
            let plan = static_for(items, error, Collisions::Never).unwrap();
            let (bits, planned) = (filter.bytes() as f64 * 8.0, plan.bits as f64);
            assert!(
                (bits - planned).abs() <= 0.01 * bits + 96.0 * plan.columns,
                "{items} keys at {error}: {bits} of {planned} bits"
            );
            let columns = filter.geometry().columns();
            assert!((plan.columns - columns).abs() < 1e-6, "{plan:?} {columns}");
            assert!(plan.error <= error);
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn more_keys_and_smaller_errors_take_no_fewer_bits(
        items in any_items(),
        more in 0u64..1_000_000,
        error in any_error(),
        share in 0.5f64..1.0,
    ) {
        let at = |items, error| static_for(items, error, Collisions::Never).map(|plan| plan.bits);
        if let (Ok(few), Ok(many)) = (at(items, error), at(items + more, error)) {
            prop_assert!(few <= many);
            prop_assert!(few as f64 >= items as f64 * -error.log2());
        }
        if let (Ok(large), Ok(small)) = (at(items, error), at(items, error * share)) {
            prop_assert!(large <= small);
        }
    }
}

#[test]
fn keys_that_share_digests_are_part_of_the_error_of_a_static_filter() {
    let items = 1_000_000_000_000;
    let plan = static_for(items, 1e-6, Collisions::Digest64).unwrap();
    let alone = static_for(items, 1e-6, Collisions::Never).unwrap();
    assert!(
        plan.columns > alone.columns && plan.error <= 1e-6,
        "{plan:?}"
    );
    assert!(static_for(items, 1e-9, Collisions::Digest64).is_err());
    assert!(static_for(0, 0.1, Collisions::Never).is_err());
}
