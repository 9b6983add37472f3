//! A quotient filter against an exact multiset of fingerprints, its error, and
//! its limits.

mod counts;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::AnyFilter;
use crate::hash::{Digests, Int, KeyType};
use crate::mix_int;
use crate::traits::{Count, Insert, Merge, Remove, mask_words};

fn identity() -> Identity {
    Identity::new(KeyType::Int)
}

fn shaped(slots: u64, bits: u32) -> Deletable {
    let geometry = DeletableGeometry::new(slots, bits).unwrap();
    let promise = Promise {
        items: slots,
        error: 0.5,
    };
    Deletable::with_geometry(identity(), geometry, promise).unwrap()
}

fn sized(items: u64, error: f64) -> Deletable {
    Deletable::sized(identity(), Promise { items, error }).unwrap()
}

fn through_a_file(filter: Deletable) -> Deletable {
    let bytes = AnyFilter::from(filter).to_bytes().unwrap();
    Deletable::try_from(AnyFilter::from_bytes(&bytes, None).unwrap()).unwrap()
}

/// The counts of fingerprints.
type Model = BTreeMap<u64, u64>;

fn fingerprint(filter: &Deletable, digest: u64) -> u64 {
    let (quotient, remainder) = filter.split(digest);
    (quotient as u64) << filter.layout.bits | remainder
}

/// The table is right in every bit, and holds what the model does.
fn assert_is(filter: &Deletable, model: &Model) {
    let totals = check(filter.table()).expect("a right table");
    assert_eq!(totals.used, filter.used_slots());
    assert_eq!(totals.len, filter.len());
    assert!(
        filter
            .iter()
            .eq(model.iter().map(|(&f, &count)| (f, count)))
    );
    let built = filter.build(filter.geometry, filter.iter()).unwrap();
    let (words, totals) = built.expect("room for what is there");
    assert_eq!(totals.used, filter.used);
    assert!(
        words.get() == filter.words.get(),
        "another table of the same keys"
    );
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u64),
    InsertTimes(u64, u64),
    Remove(usize, u64),
    Grow,
    Merge(Vec<u64>),
    Intersect(Vec<u64>),
    File,
}

/// Digests that are spread, or close together in few slots.
fn digest() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u64..200).prop_map(|key| key << 57),
        (0u64..1 << 12).prop_map(|low| low << 46),
        (0u64..1 << 12).prop_map(|low| u64::MAX - (low << 46)),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let several = || proptest::collection::vec(digest(), 0..100);
    let step = prop_oneof![
        30 => digest().prop_map(Step::Insert),
        5 => (digest(), prop_oneof![0u64..30, any::<u64>(), Just(u64::MAX)])
            .prop_map(|(digest, times)| Step::InsertTimes(digest, times)),
        20 => (any::<usize>(), 1u64..5).prop_map(|(which, times)| Step::Remove(which, times)),
        1 => Just(Step::Grow),
        1 => several().prop_map(Step::Merge),
        1 => several().prop_map(Step::Intersect),
        1 => Just(Step::File),
    ];
    proptest::collection::vec(step, 1..300)
}

struct Run {
    filter: Deletable,
    model: Model,
    /// One for each insertion that was not undone.
    members: Vec<u64>,
}

impl Run {
    fn insert(&mut self, digest: u64, times: u64) {
        let fingerprint = fingerprint(&self.filter, digest);
        let before = self.model.get(&fingerprint).copied();
        match self.filter.insert_times_bits(digest, times) {
            Ok(new) => {
                assert_eq!(new, before.is_none() && times > 0);
                if times > 0 {
                    let count = self.model.entry(fingerprint).or_insert(0);
                    *count = count.saturating_add(times);
                    self.members.push(digest);
                }
            }
            Err(error) => {
                let Error::Full { remedy, .. } = error else {
                    panic!("{error}");
                };
                assert_eq!(self.model.get(&fingerprint).copied(), before);
                // For no other reason than those that are told.
                let items = self.filter.meta().promise().unwrap().items;
                let more = self.model.len() as u64 + u64::from(before.is_none()) > items;
                let used = self.filter.used_slots();
                assert_eq!(remedy.contains("grow it"), more, "{remedy}");
                if remedy.contains("free") {
                    assert!(used <= self.filter.usable_slots() / 2 + 91);
                } else if !more {
                    assert!(remedy.contains("counts"), "{remedy}");
                    // Slots of one bit, as many as there can be, are in use to a third.
                    let geometry = self.filter.geometry();
                    let most = u64::try_from(geometry.fingerprints() / 2).unwrap();
                    let mut counts = self.model.clone();
                    let count = counts.entry(fingerprint).or_insert(0);
                    *count = count.saturating_add(times);
                    let needed: u64 = counts.values().map(|&c| entry::slots(1, c)).sum();
                    assert!(needed > most / 3, "{needed} of {most}");
                }
            }
        }
    }

    fn remove(&mut self, which: usize, times: u64) {
        if self.members.is_empty() {
            return;
        }
        let digest = self.members[which % self.members.len()];
        let fingerprint = fingerprint(&self.filter, digest);
        for _ in 0..times {
            let known = self.model.get_mut(&fingerprint);
            let goes = known.as_ref().is_some_and(|count| **count < u64::MAX);
            if let Some(count) = known
                && goes
            {
                *count -= 1;
                if *count == 0 {
                    self.model.remove(&fingerprint);
                }
            }
            assert_eq!(self.filter.remove_bits(digest).unwrap(), goes);
        }
    }

    fn other(&self, digests: &[u64]) -> (Deletable, Model) {
        let geometry = self.filter.geometry;
        let mut other = shaped(geometry.slots(), geometry.remainder_bits());
        let mut model = Model::new();
        for &digest in digests {
            if other.insert_bits(digest).is_ok() {
                *model.entry(fingerprint(&other, digest)).or_insert(0) += 1;
            }
        }
        (other, model)
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]
    #[test]
    fn it_is_the_multiset_of_its_fingerprints(
        slots in prop_oneof![1u64..40, 40u64..400],
        bits in prop_oneof![1u32..10, 10u32..=48],
        steps in steps(),
    ) {
        let mut run = Run { filter: shaped(slots, bits), model: Model::new(), members: Vec::new() };
        for step in steps {
            match step {
                Step::Insert(digest) => run.insert(digest, 1),
                Step::InsertTimes(digest, times) => run.insert(digest, times),
                Step::Remove(which, times) => run.remove(which, times),
                Step::Grow => match run.filter.grow() {
                    Ok(()) => prop_assert!(run.filter.geometry.slots() >= 2),
                    Err(_) => prop_assert_eq!(run.filter.layout.bits, 1),
                },
                Step::Merge(digests) => {
                    let (other, theirs) = run.other(&digests);
                    if run.filter.union_with(&other).is_ok() {
                        for (fingerprint, count) in theirs {
                            let mine = run.model.entry(fingerprint).or_insert(0);
                            *mine = mine.saturating_add(count);
                        }
                        run.members.extend(digests);
                    }
                }
                Step::Intersect(digests) => {
                    let (other, theirs) = run.other(&digests);
                    run.filter.intersect_with(&other).unwrap();
                    run.model.retain(|fingerprint, count| {
                        *count = (*count).min(theirs.get(fingerprint).copied().unwrap_or(0));
                        *count > 0
                    });
                }
                Step::File => run.filter = through_a_file(run.filter),
            }
            assert_is(&run.filter, &run.model);
        }
        for &digest in &run.members {
            let count = run.model.get(&fingerprint(&run.filter, digest)).copied().unwrap_or(0);
            prop_assert_eq!(run.filter.count_bits(digest).unwrap(), count);
            prop_assert_eq!(run.filter.contains_bits(digest), count > 0);
        }
    }

    #[test]
    fn batches_answer_as_single_calls(
        keys in proptest::collection::vec(0i64..500, 0..700),
        items in 1u64..700,
    ) {
        let mut single = sized(items, 0.01);
        let mut batch = sized(items, 0.01);
        let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
        for &key in &keys {
            digests.push_int(key).unwrap();
        }
        let mut mask = vec![0; mask_words(keys.len())];
        let answers = |mask: &[u64], i: usize| mask[i / 64] >> (i % 64) & 1 == 1;
        let full = batch.insert_digests(&digests, &mut mask).is_err();
        for (i, &bits) in digests.bits().iter().enumerate() {
            match single.insert_bits(bits) {
                Ok(new) => prop_assert_eq!(new, answers(&mask, i)),
                Err(_) => { prop_assert!(full); break; }
            }
        }
        prop_assert!(single == batch);
        batch.contains_digests(&digests, &mut mask).unwrap();
        for (i, &bits) in digests.bits().iter().enumerate() {
            prop_assert_eq!(single.contains_bits(bits), answers(&mask, i));
        }
        batch.remove_digests(&digests, &mut mask).unwrap();
        for (i, &bits) in digests.bits().iter().enumerate() {
            prop_assert_eq!(single.remove_bits(bits).unwrap(), answers(&mask, i));
        }
        prop_assert!(single == batch && batch.is_empty());
        prop_assert!(batch.words.get().iter().all(|&word| word == 0));
    }
}

/// Offsets that a byte cannot hold come and go.
#[test]
fn long_runs_push_far_and_come_back() {
    for bits in [7u32, 13] {
        let mut filter = shaped(4000, bits);
        let mut model = Model::new();
        // Hundreds of remainders for each of a few neighbours.
        let unit = u128::from(u64::MAX) + 1;
        let digest_of = |quotient: u64, remainder: u64| {
            let fingerprint = u128::from(quotient << bits | remainder);
            let fingerprints = 4000u128 << bits;
            u64::try_from((fingerprint * unit).div_ceil(fingerprints)).unwrap()
        };
        let mut digests = Vec::new();
        for i in 0..1200u64 {
            let quotient = [700, 701, 703, 3990, 0, 1500 + i][(i % 6) as usize];
            let remainder = mix_int(i.cast_signed(), 1) % (1 << bits);
            digests.push(digest_of(quotient, remainder));
        }
        let mut inserted = Vec::new();
        for (i, &digest) in digests.iter().enumerate() {
            if filter.insert_bits(digest).is_ok() {
                *model.entry(fingerprint(&filter, digest)).or_insert(0) += 1;
                inserted.push(digest);
            }
            if i % 97 == 0 {
                assert_is(&filter, &model);
            }
        }
        assert_is(&filter, &model);
        assert!((0..filter.layout.blocks).any(|b| filter.table().recorded_offset(b) == 255));
        for (i, digest) in inserted.into_iter().enumerate() {
            assert!(filter.contains_bits(digest));
            assert!(filter.remove_bits(digest).unwrap());
            let fingerprint = fingerprint(&filter, digest);
            *model.get_mut(&fingerprint).unwrap() -= 1;
            model.retain(|_, count| *count > 0);
            if i % 97 == 0 {
                assert_is(&filter, &model);
            }
        }
        assert!(filter.words.get().iter().all(|&word| word == 0));
    }
}

/// At every load the error is that of the fingerprints, and at most p, and the
/// bits a key are few.
#[test]
fn the_error_is_kept_at_every_load() {
    for (items, error, most_bits) in [
        (1_000_000u64, 1e-2, 9.7),
        (300_000, 1e-4, 17.0),
        // Counts need as many bits as 1 % does, and the slots behind the last few.
        (1000, 0.2, 12.5),
    ] {
        let mut filter = sized(items, error);
        let bits = filter.geometry().bits() as f64 / items as f64;
        assert!(bits <= most_bits, "{bits}");
        let mut inserted = 0;
        for load in [0.25, 0.5, 1.0] {
            while (inserted as f64) < load * items as f64 {
                filter.insert_bits(mix_int(inserted, 5)).unwrap();
                inserted += 1;
            }
            let expected = sizing::deletable_error(filter.geometry(), inserted.unsigned_abs());
            assert!(expected <= error && filter.error_now() <= error);
            let asked = if error < 1e-3 { 4_000_000 } else { 500_000 };
            let hits = (0..asked)
                .filter(|&key| filter.contains_bits(mix_int(-1 - key, 5)))
                .count() as f64;
            let mean = expected * asked as f64;
            // The filter scatters, too: its distinct fingerprints do.
            let sigma = (mean + mean * mean / inserted as f64).sqrt();
            assert!(
                (hits - mean).abs() <= 5.0 * sigma,
                "{hits} for {mean} at {load}"
            );
        }
        assert!((0..inserted).all(|key| filter.contains_bits(mix_int(key, 5))));
        let lost = inserted.unsigned_abs() - filter.len();
        assert!(lost as f64 <= inserted as f64 * error);
    }
}

/// Rounds of removing and inserting at full load leave what they should, and
/// the same bits as a new filter of the same keys.
#[test]
fn nothing_wears_out() {
    const ITEMS: i64 = 20_000;
    let mut filter = sized(ITEMS.unsigned_abs(), 0.01);
    for key in 0..ITEMS {
        filter.insert_bits(mix_int(key, 0)).unwrap();
    }
    for round in 0..30 {
        for i in 0..ITEMS / 2 {
            let key = round * ITEMS / 2 + i;
            assert!(filter.remove_bits(mix_int(key, 0)).unwrap());
            filter.insert_bits(mix_int(key + ITEMS, 0)).unwrap();
        }
    }
    let mut anew = sized(ITEMS.unsigned_abs(), 0.01);
    for key in 30 * ITEMS / 2..30 * ITEMS / 2 + ITEMS {
        assert!(filter.contains_bits(mix_int(key, 0)));
        anew.insert_bits(mix_int(key, 0)).unwrap();
    }
    assert!(filter == anew);
    assert_eq!(filter.len(), anew.len());
}

#[test]
fn repeats_take_slots_by_the_logarithm_of_their_count() {
    let mut filter = sized(1000, 0.01);
    for round in 0..5000u64 {
        filter.insert_bits(mix_int(7, 0)).unwrap();
        let digits = 64 - round.leading_zeros();
        assert!(filter.used_slots() <= u64::from(4 + digits / 6));
    }
    assert_eq!(filter.count_bits(mix_int(7, 0)).unwrap(), 5000);
    filter.insert_times_bits(mix_int(7, 0), u64::MAX).unwrap();
    assert_eq!(filter.count_bits(mix_int(7, 0)).unwrap(), u64::MAX);
    // It cannot be known to have come down: nothing is removed.
    assert!(!filter.remove_bits(mix_int(7, 0)).unwrap());
    assert_eq!(filter.count_bits(mix_int(7, 0)).unwrap(), u64::MAX);
    assert_eq!(filter.len(), 1);
    assert!(filter.used_slots() <= 14);
}

#[test]
fn a_full_filter_refuses_and_grows() {
    let mut filter = DeletableFilter::<Int>::with_hasher(1000, 0.01, KeyHasher::default()).unwrap();
    let mut key = 0;
    let error = loop {
        match filter.insert(&key) {
            Ok(_) => key += 1,
            Err(error) => break error,
        }
    };
    assert!(key >= 1000);
    assert!(error.to_string().contains("grow it"), "{error}");
    let (kept, used, error_now) = (key, filter.used_slots(), filter.error_now());
    assert!(used <= filter.usable_slots());
    filter.grow().unwrap();
    assert_eq!(filter.used_slots(), used);
    assert_eq!(filter.error_now(), error_now);
    for key in kept..2 * kept - 50 {
        filter.insert(&key).unwrap();
    }
    assert!((0..2 * kept - 50).all(|key| filter.contains(&key)));
    let promise = filter.meta().promise().unwrap();
    assert_eq!(promise.items, 2000);
    assert!(filter.error_now() <= promise.error * 1.1 && promise.error <= 0.02);
    while filter.geometry().remainder_bits() > 1 {
        filter.grow().unwrap();
    }
    assert!((0..2 * kept - 50).all(|key| filter.contains(&key)));
    assert!(filter.grow().unwrap_err().to_string().contains("anew"));
}

/// Keys that somebody chose so that every slot is used by its own quotient:
/// an insertion at the start would have to move them all.
#[test]
fn chosen_keys_are_refused_before_they_are_slow() {
    let slots = 200_000u64;
    let unit = u128::from(u64::MAX) + 1;
    let digest_of = |quotient: u64| {
        u64::try_from((u128::from(quotient) * unit).div_ceil(u128::from(slots))).unwrap()
    };
    let step = u64::try_from(unit / (u128::from(slots) << 8)).unwrap();
    // While most slots are free, no more are taken for them.
    let mut filter = shaped(slots, 8);
    for quotient in 0..90_000 {
        filter.insert_bits(digest_of(quotient)).unwrap();
    }
    for quotient in [0, 10, 5000] {
        let error = filter
            .insert_bits(digest_of(quotient) + 3 * step)
            .unwrap_err();
        assert!(error.to_string().contains("under a secret"), "{error}");
    }
    assert_eq!(filter.geometry().slots(), slots);
    // Near the end there is a free slot close enough.
    assert!(filter.insert_bits(digest_of(89_000) + 3 * step).unwrap());
    assert!(check(filter.table()).is_some());
    // Pushed on one by one from the first on: each is near its slot, but to
    // remove the first would move them all.
    let mut pushed = shaped(slots, 8);
    pushed.insert_bits(digest_of(0) + 3 * step).unwrap();
    let taken = (0..90_000)
        .take_while(|&quotient| pushed.insert_bits(digest_of(quotient)).is_ok())
        .count();
    assert!((65_000..66_000).contains(&taken), "{taken}");
    assert!(pushed.remove_bits(digest_of(0)).unwrap());
    assert!(check(pushed.table()).is_some());
    // Where most are used they are spread over twice as many, once.
    for quotient in 90_000..150_000 {
        filter.insert_bits(digest_of(quotient)).unwrap();
    }
    assert!(filter.insert_bits(digest_of(0) + 3 * step).unwrap());
    assert_eq!(filter.geometry().slots(), 2 * slots);
    assert!(check(filter.table()).is_some());
    assert!((0..150_000).all(|quotient| filter.contains_bits(digest_of(quotient))));
}

/// Slots that were looked for in vain are not looked for at each insertion.
#[test]
fn slots_are_not_looked_for_over_and_over() {
    let mut filter = shaped(1000, 2);
    let unit = u128::from(u64::MAX) + 1;
    let digest_of =
        |fingerprint: u64| u64::try_from((u128::from(fingerprint) * unit).div_ceil(4000)).unwrap();
    // Half of the slots evenly; and large counts at the end, which take longer
    // to write in slots of one bit, and would be pushed out there.
    for fingerprint in (0..3000).step_by(6) {
        filter.insert_bits(digest_of(fingerprint)).unwrap();
    }
    let mut hot = 3999;
    let error = loop {
        match filter.insert_times_bits(digest_of(hot), u64::MAX) {
            Ok(_) => hot -= 1,
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("counts of its keys"), "{error}");
    assert_eq!(filter.geometry().slots(), 1000);
    let (from, _) = filter.retry.expect("they were looked for");
    assert!(from > filter.used_slots());
    let again = filter
        .insert_times_bits(digest_of(hot), u64::MAX)
        .unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
    assert!(filter.insert_bits(digest_of(3)).unwrap());
}

#[test]
fn typed_filters_and_digests_agree() {
    let mut filter = DeletableFilter::new(100, 1e-6).unwrap();
    assert!(filter.insert_times("a", 5).unwrap());
    assert!(!filter.insert("a").unwrap() && filter.insert("b").unwrap());
    assert!(!filter.insert_times("c", 0).unwrap() && !filter.contains("c"));
    let hasher = KeyHasher::default();
    let mut inner = filter.into_inner();
    let digest = hasher.digest_bytes(b"a");
    assert_eq!(inner.count_digest(digest).unwrap(), 6);
    let fingerprint = inner.fingerprint(digest).unwrap();
    assert!(inner.iter().any(|item| item == (fingerprint, 6)));
    assert_eq!((inner.len(), inner.used_slots()), (2, 5));
    for left in (0..6).rev() {
        assert!(inner.remove_digest(digest).unwrap());
        assert_eq!(inner.count_digest(digest).unwrap(), left);
    }
    assert!(!inner.remove_digest(digest).unwrap());
    assert!(inner.fingerprint(hasher.digest_int(1)).is_err());
    let other = sized(100, 1e-6);
    assert!(inner.union_with(&other).is_err());
}
