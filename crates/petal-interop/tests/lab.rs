//! What the measurements of hashes show.

use petal_interop::lab::{LabHash, LabKeys, LabPlan, measure};

/// A filter of 10 bits a key and the best k for it.
const PLAN: LabPlan = LabPlan {
    bits: 200_000,
    positions: 7,
    steps: 4,
};
const KEYS: usize = 40_000;

/// Good hashes keep to theory: within 5 sigma of a binomial, and of what the
/// formula itself is short of.
#[test]
fn good_hashes_keep_to_theory_on_all_keys() {
    for keys in LabKeys::ALL {
        let keys = keys.make(KEYS);
        for name in ["xxh3", "xxh64", "siphash", "murmur3", "md5", "sha1"] {
            let result = measure(name.parse().unwrap(), &keys, PLAN).unwrap();
            assert_eq!(result.points.len(), 4);
            for point in &result.points {
                let n = (KEYS / 2) as f64;
                let sigma = (point.theory * (1.0 - point.theory) / n).sqrt();
                let far = (point.error - point.theory).abs();
                assert!(
                    far < 5.0 * sigma + 1e-3 * point.theory + 1.0 / n,
                    "{name}: {point:?}"
                );
            }
            assert!(
                result.worst_balance < result.fair_balance,
                "{name}: {result:?}"
            );
            assert_eq!(result.collisions, 0, "{name}");
        }
    }
}

/// Sums of a few small numbers reach few positions.
#[test]
fn the_weighted_sum_fails_on_short_strings() {
    let keys = LabKeys::Short.make(KEYS);
    let result = measure(LabHash::WeightedSum, &keys, PLAN).unwrap();
    let last = result.points.last().unwrap();
    assert!(last.error > 5.0 * last.theory, "{last:?}");
    assert!(result.worst_balance > result.fair_balance);
    let xxh3 = measure(LabHash::Xxh3, &keys, PLAN).unwrap();
    assert!(xxh3.points.last().unwrap().error < 1.5 * last.theory);
}

#[test]
fn names_are_read_and_different() {
    let names: Vec<_> = LabHash::all().map(LabHash::name).collect();
    let different: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(different.len(), names.len());
    for name in &names {
        assert_eq!(name.parse::<LabHash>().unwrap().name(), *name);
    }
    assert!("sha3".parse::<LabHash>().is_err());
}

#[test]
fn keys_are_different() {
    for keys in LabKeys::ALL {
        let made = keys.make(30_000);
        let different: std::collections::HashSet<_> = made.iter().collect();
        assert_eq!(different.len(), made.len(), "{keys:?}");
    }
}

#[test]
fn plans_out_of_range_are_refused() {
    let keys = LabKeys::Urls.make(200);
    for wrong in [
        LabPlan { bits: 0, ..PLAN },
        LabPlan {
            positions: 0,
            ..PLAN
        },
        LabPlan {
            positions: 65,
            ..PLAN
        },
        LabPlan { steps: 0, ..PLAN },
    ] {
        assert!(measure(LabHash::Xxh3, &keys, wrong).is_err(), "{wrong:?}");
    }
    assert!(measure(LabHash::Xxh3, &keys[..99], PLAN).is_err());
}
