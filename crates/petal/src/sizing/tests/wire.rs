use super::super::*;

const ITEMS: u64 = 1_000_000;

fn bytes(bits_per_key: f64) -> u64 {
    let bytes = bits_per_key * ITEMS as f64 / 8.0;
    format!("{bytes:.0}").parse().unwrap()
}

/// Bits a key in memory and on the wire, for k positions and an error, as
/// `c = -k / ln(1 - p^(1/k))` and `c H(p^(1/k))` give them.
#[test]
fn the_table_of_packed_filters_comes_out() {
    for (hashes, error, memory, wire) in [
        (1, 0.01, 99.50, 8.039),
        (2, 0.01, 18.98, 8.903),
        (4, 0.01, 10.52, 9.473),
        (7, 0.01, 9.59, 9.584),
        (1, 0.001, 999.50, 11.402),
        (2, 0.001, 62.24, 12.602),
        (3, 0.001, 28.47, 13.354),
    ] {
        let plan = wire_with_hashes(
            ITEMS,
            bytes(wire * 1.01),
            bytes(memory),
            hashes,
            Collisions::Never,
        )
        .unwrap()
        .unwrap();
        assert!((plan.error / error - 1.0).abs() < 0.01, "{plan:?}");
        let bits = plan.wire_bytes * 8.0 / ITEMS as f64;
        assert!((bits / wire - 1.0).abs() < 0.005, "{plan:?}");
        assert!(plan.bytes() <= bytes(memory));
    }
}

#[test]
fn fewer_positions_are_better_the_more_memory_there_is() {
    let wire = bytes(9.6);
    let at = |memory| wire_for(ITEMS, wire, bytes(memory), Collisions::Never).unwrap();
    let plans: Vec<WirePlan> = [9.0, 12.0, 20.0, 60.0, 1000.0].map(at).into();
    for pair in plans.windows(2) {
        assert!(pair[1].error < pair[0].error);
        assert!(pair[1].hashes <= pair[0].hashes);
    }
    assert_eq!(plans[4].hashes, 1);
    // Ample memory: towards log2(e) bits above the bound, from below (1.421 at
    // an error of 2^-8, 1.436 at 0.001), and no more.
    let bits = plans[4].wire_bytes * 8.0 / ITEMS as f64;
    let above = bits + plans[4].error.log2();
    assert!(
        (1.421..std::f64::consts::LOG2_E).contains(&above),
        "{above}"
    );
    for plan in plans {
        assert!(plan.wire_bytes <= wire as f64);
        for hashes in 1..=20 {
            let other =
                wire_with_hashes(ITEMS, wire, plan.bytes(), hashes, Collisions::Never).unwrap();
            let better = other.filter(|other| other.error < plan.error * 0.999_999);
            assert!(better.is_none_or(|other| other.fill > 0.5), "{better:?}");
        }
    }
}

/// The search rests on it.
#[test]
fn more_bits_are_never_less_on_the_wire() {
    for hashes in [1, 2, 7, 20, 64] {
        for items in [1, 1000, ITEMS] {
            let plan =
                |wire| wire_with_hashes(items, wire, 1 << 40, hashes, Collisions::Never).unwrap();
            let mut last = 0;
            for wire in (0..60).map(|step| 1u64 << (step / 3)) {
                let bits = plan(wire).map_or(0, |plan| plan.bits);
                assert!(bits >= last, "{hashes} {items} {wire}");
                last = bits;
            }
        }
    }
}

#[test]
fn impossible_plans_are_refused() {
    for (items, wire, memory) in [
        (0, 1000, 1000),
        (MAX_ITEMS + 1, 1, 1),
        (1000, 10, 1000),
        (1000, 1000, 0),
    ] {
        let error = wire_for(items, wire, memory, Collisions::Never).unwrap_err();
        assert!(matches!(error, crate::Error::Parameter { .. }), "{error}");
    }
    assert!(wire_with_hashes(10, 1000, 1000, 0, Collisions::Never).is_err());
    assert!(wire_with_hashes(10, 1000, 1000, 65, Collisions::Never).is_err());
}
