//! The memory of a run against an exact set.

use std::collections::HashSet;

use petal::normalise::{Form, Normalisation};
use petal::{KeyHasher, KeyType};
use proptest::prelude::*;

use super::*;

fn identity() -> Identity {
    Identity::new(KeyType::Int)
}

/// Whether bit `i` of a mask is set.
fn bit(mask: &[u64], i: usize) -> bool {
    mask[i / 64] >> (i % 64) & 1 == 1
}

fn digests(keys: &[i64]) -> Digests {
    let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
    for &key in keys {
        digests.push_int(key).unwrap();
    }
    digests
}

/// A memory so small that it is poured after a few hundred keys, and full
/// after a few thousand.
fn tiny(when_full: WhenFull) -> Seen {
    let set = DigestSet::with_slots(identity(), 64).unwrap();
    let filter_bytes = 8 << 10;
    Seen::around(
        set.into(),
        512 * 8 + filter_bytes,
        512,
        when_full,
        Loss::default(),
    )
}

fn plan(slots: u64) -> Plan {
    Plan::Digests {
        slots,
        most_slots: slots,
        usable: slots * 16,
        lines: None,
        peak: slots * 8,
        known: true,
    }
}

proptest! {
    #[test]
    fn it_answers_as_a_set(batches in proptest::collection::vec(
        proptest::collection::vec(0i64..2000, 0..300), 0..12,
    )) {
        let mut seen = tiny(WhenFull::Stop);
        let mut model = HashSet::new();
        let mut fresh = [0; 8];
        for keys in &batches {
            let taken = seen.take(&digests(keys), &mut fresh).unwrap();
            let handled = match taken {
                Taken::All => keys.len(),
                Taken::Only(count) => count,
            };
            for (i, &key) in keys[..handled].iter().enumerate() {
                // Poured or not, at 1e-9 nothing is mistaken here.
                prop_assert_eq!(bit(&fresh, i), model.insert(key));
            }
            for i in handled..keys.len() {
                prop_assert!(!bit(&fresh, i));
            }
            if let Taken::Only(count) = taken {
                prop_assert!(seen.is_full() && !model.contains(&keys[count]));
                break;
            }
        }
        prop_assert_eq!(seen.new_lines(), model.len() as u64);
    }
}

#[test]
fn digests_are_poured_and_nothing_is_forgotten() {
    let mut seen = tiny(WhenFull::Stop);
    let keys: Vec<i64> = (0..1000).collect();
    let mut fresh = [0; 16];
    assert_eq!(seen.take(&digests(&keys), &mut fresh).unwrap(), Taken::All);
    assert!(matches!(seen.filter(), Some(AnyFilter::Bloom(_))));
    assert_eq!(seen.new_lines(), 1000);
    seen.take(&digests(&keys), &mut fresh).unwrap();
    assert_eq!(fresh, [0; 16]);
    assert!(seen.expected_loss() < 1e-6);
}

#[test]
fn a_full_memory_stops_at_the_first_new_line() {
    let mut seen = tiny(WhenFull::Stop);
    let mut fresh = [0; 80];
    let keys: Vec<i64> = (0..5000).collect();
    let Taken::Only(count) = seen.take(&digests(&keys), &mut fresh).unwrap() else {
        panic!("the memory takes 5000 keys");
    };
    assert_eq!(seen.new_lines(), count as u64);
    assert_eq!(seen.filter().unwrap().room(), Some(0));
    // Repeats go on being answered.
    let repeats: Vec<i64> = (0..count as i64).collect();
    assert_eq!(
        seen.take(&digests(&repeats), &mut fresh).unwrap(),
        Taken::All
    );
    // And so they are up to the next new line.
    let mixed = [1, 2, 4999, 3];
    assert_eq!(
        seen.take(&digests(&mixed), &mut fresh).unwrap(),
        Taken::Only(2)
    );
}

#[test]
fn passing_prints_new_lines_without_remembering() {
    let mut seen = tiny(WhenFull::Pass);
    let mut fresh = [0; 80];
    let keys: Vec<i64> = (0..5000).collect();
    assert_eq!(seen.take(&digests(&keys), &mut fresh).unwrap(), Taken::All);
    assert!(seen.is_full());
    let printed: u32 = fresh.iter().map(|word| word.count_ones()).sum();
    assert_eq!(printed, 5000);
    seen.take(&digests(&[0, 4999]), &mut fresh).unwrap();
    assert!(!bit(&fresh, 0) && bit(&fresh, 1));
    assert_eq!(seen.filter().unwrap().room(), Some(0));
}

#[test]
fn loosening_remembers_and_tells_the_error() {
    let mut seen = tiny(WhenFull::Loosen);
    let mut fresh = [0; 320];
    let keys: Vec<i64> = (0..20_000).collect();
    assert_eq!(seen.take(&digests(&keys), &mut fresh).unwrap(), Taken::All);
    assert!(seen.is_full());
    let printed: u32 = fresh.iter().map(|word| word.count_ones()).sum();
    let dropped = 20_000.0 - f64::from(printed);
    let expected = seen.expected_loss();
    let error = seen.error_now();
    assert!(error > 0.1, "{error}");
    // Between two printed lines a geometric number is dropped, with mean
    // f / (1 - f) = o and variance o (1 + o); f is largest at the end.
    let sigma = (expected / (1.0 - error)).sqrt();
    assert!(
        (dropped - expected).abs() <= 5.0 * sigma,
        "{dropped}, {expected} +- {sigma}"
    );
    seen.take(&digests(&keys), &mut fresh).unwrap();
    assert!(fresh.iter().all(|&word| word == 0));
}

#[test]
fn a_growing_filter_stays_in_its_memory() {
    for when_full in [WhenFull::Stop, WhenFull::Loosen] {
        let plan = petal::sizing::GrowthPlan::open(100, 0.01).unwrap();
        let growable = Growable::with_plan(identity(), plan).unwrap();
        let mut seen = Seen::around(growable.into(), 4096, 0, when_full, Loss::default());
        let mut fresh = [0; 80];
        let keys: Vec<i64> = (0..5000).collect();
        let taken = seen.take(&digests(&keys), &mut fresh).unwrap();
        assert_eq!(taken == Taken::All, when_full == WhenFull::Loosen);
        assert!(seen.is_full());
        assert!(seen.filter().unwrap().bytes() <= 4096);
    }
}

/// Sixteen seeds of a filter at 1e-3: what is lost is what is expected.
#[test]
fn the_expected_loss_is_the_loss() {
    let (mut lost, mut expected) = (0.0, 0.0);
    for seed in 0..16 {
        let identity = Identity::new(KeyType::Int).with_hasher(KeyHasher::Portable { seed });
        let plan = Plan::filter(64 << 20, 1e-3, Some(100_000), None, identity.collisions());
        let mut seen = Seen::new(&plan.unwrap(), identity.clone(), WhenFull::Stop).unwrap();
        let mut fresh = [0; 16];
        for start in (0..100_000).step_by(1000) {
            let mut batch = Digests::new(identity.hasher.clone(), KeyType::Int);
            for key in start..start + 1000 {
                batch.push_int(key).unwrap();
            }
            seen.take(&batch, &mut fresh).unwrap();
        }
        lost += 100_000.0 - seen.new_lines() as f64;
        expected += seen.expected_loss();
    }
    assert!(expected > 100.0 && expected <= 1e-3 * 1.6e6, "{expected}");
    assert!(
        (lost - expected).abs() <= 5.0 * expected.sqrt(),
        "{lost}, {expected}"
    );
}

#[test]
fn a_table_planned_for_all_lines_never_doubles() {
    let plan = plan(14_000);
    let mut seen = Seen::new(&plan, identity(), WhenFull::Stop).unwrap();
    let mut fresh = [0; 16];
    for start in (0..10_000).step_by(1000) {
        let keys: Vec<i64> = (start..start + 1000).collect();
        seen.take(&digests(&keys), &mut fresh).unwrap();
    }
    assert_eq!(seen.filter().unwrap().bytes(), 14_000 * 8);
}

fn addresses_plan(most_bytes: u64, usable: u64) -> Plan {
    Plan::Addresses {
        most_bytes,
        usable,
        lines: None,
    }
}

fn address_identity() -> Identity {
    let normalisation = Normalisation::lines().with_form(Form::Ipv4).unwrap();
    Identity::new(normalisation.key_type()).with_normalisation(normalisation)
}

/// A bitmap answers as a table does, and goes on in a filter as it does.
#[test]
fn addresses_are_seen_as_digests_are() {
    let far = |i: u32| i.wrapping_mul(0x9e37_79b9);
    // The most, and whether that is enough for all.
    for (most, usable, suffices) in [(1 << 30, 1 << 30, true), (100_000, 1 << 20, false)] {
        let mut seen = Seen::new(
            &addresses_plan(most, usable),
            address_identity(),
            WhenFull::Stop,
        )
        .unwrap();
        assert_eq!(seen.kind(), "bitmap");
        let mut table = Seen::new(&plan(1 << 16), address_identity(), WhenFull::Stop).unwrap();
        let (mut fresh, mut other) = ([0; 16], [0; 16]);
        for batch in 0..20u32 {
            let keys: Vec<i64> = (0..1000)
                .map(|i| far((batch * 7919 + i * i) % 12_000).into())
                .collect();
            let digests = digests(&keys);
            assert_eq!(seen.take(&digests, &mut fresh).unwrap(), Taken::All);
            assert_eq!(table.take(&digests, &mut other).unwrap(), Taken::All);
            assert_eq!(fresh, other, "{most}, {batch}");
        }
        assert_eq!(seen.kind() == "bitmap", suffices);
        assert_eq!(seen.filter().is_none(), suffices);
        assert_eq!(seen.new_lines(), table.new_lines());
        assert!(seen.expected_loss() < 1e-4);
        assert_eq!(seen.expected_loss() == 0.0, suffices);
    }
}

/// Where no filter would hold more, addresses go on in all of the memory, and
/// then it is full.
#[test]
fn addresses_close_together_take_all_of_the_memory() {
    // Blocks in full take 8320 bytes; no filter takes 2^16 keys in so few.
    let (most, usable) = (20_000, 40_000);
    let mut seen = Seen::new(
        &addresses_plan(most, usable),
        address_identity(),
        WhenFull::Stop,
    )
    .unwrap();
    let mut fresh = [0; 16];
    let mut taken = 0;
    while taken < 1 << 20 {
        let keys: Vec<i64> = (taken..taken + 1000).collect();
        match seen.take(&digests(&keys), &mut fresh).unwrap() {
            Taken::All => taken += 1000,
            Taken::Only(some) => {
                taken += i64::try_from(some).unwrap();
                break;
            }
        }
    }
    assert!(seen.is_full() && seen.kind() == "bitmap");
    assert_eq!(seen.new_lines(), u64::try_from(taken).unwrap());
    // Four blocks, and nearly all of a fifth by the bound.
    assert!((4 << 16..5 << 16).contains(&taken), "{taken}");
    // Without a way to go on but a filter of a larger error, that is taken.
    let mut loose = Seen::new(
        &addresses_plan(most, usable),
        address_identity(),
        WhenFull::Loosen,
    )
    .unwrap();
    for first in (0..200_000).step_by(1000) {
        let keys: Vec<i64> = (first..first + 1000).collect();
        assert_eq!(loose.take(&digests(&keys), &mut fresh).unwrap(), Taken::All);
    }
    assert_eq!(loose.kind(), "bloom");
    assert!(loose.filter().unwrap().bytes() <= usable);
}
