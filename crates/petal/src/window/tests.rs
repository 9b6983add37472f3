//! A window against an exact list of times and keys, its error, and the work
//! of its insertions.

mod late;

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::AnyFilter;
use crate::hash::{Digests, Int, KeyType};
use crate::mix_int;
use crate::sizing::{generation_keys, window_error};
use crate::traits::{Insert, mask_words};

fn time(ticks: u64, overload: Overload) -> WindowSpan {
    WindowSpan::Time { ticks, overload }
}

fn window(span: WindowSpan, items: u64, error: f64, generations: u32) -> Window {
    let promise = Promise { items, error };
    Window::sized(Identity::new(KeyType::Int), span, promise, generations).unwrap()
}

fn through_a_file(window: Window) -> Window {
    let bytes = AnyFilter::from(window).to_bytes().unwrap();
    Window::try_from(AnyFilter::from_bytes(&bytes, None).unwrap()).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Insert(i64),
    Fresh(u16),
    Wait(u64),
    Late(i64, u64),
    Tend(u64),
    File,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0i64..60).prop_map(Step::Insert),
        6 => (1u16..40).prop_map(Step::Fresh),
        4 => (0u64..30).prop_map(Step::Wait),
        1 => (0u64..3000).prop_map(Step::Wait),
        4 => ((0i64..60), (0u64..400)).prop_map(|(key, before)| Step::Late(key, before)),
        1 => (0u64..5000).prop_map(Step::Tend),
        1 => Just(Step::File),
    ];
    proptest::collection::vec(step, 1..150)
}

/// When each key came last: the number of the insertion, the time, and whether
/// that was an earlier one than now.
type Model = HashMap<i64, (u64, u64, bool)>;

struct Run {
    filter: Window,
    items: u64,
    model: Model,
    insertions: u64,
}

impl Run {
    fn must_find(&self, key: i64) -> bool {
        let Some(&(number, at, _)) = self.model.get(&key) else {
            return false;
        };
        match self.filter.span() {
            WindowSpan::Keys => self.insertions - number < self.items,
            WindowSpan::Time { .. } => at >= self.filter.complete_since(),
        }
    }

    fn insert(&mut self, key: i64) {
        self.insert_at(key, self.filter.now());
    }

    fn insert_at(&mut self, key: i64, time: u64) {
        let digest = mix_int(key, 0);
        let certain = self.must_find(key);
        let late = time < self.filter.now();
        let inserted = match late {
            true => self.filter.insert_bits_at(digest, time),
            false => self.filter.insert_bits(digest),
        };
        match inserted {
            Ok(new) => {
                assert!(!(new && certain), "{key} was in the window");
                if self.filter.is_past(time) {
                    assert_eq!(new, !self.filter.contains_bits(digest));
                    return;
                }
                self.insertions += 1;
                let before = self.model.get(&key).map_or(0, |&(_, at, _)| at);
                // An earlier time makes no key older.
                if time >= before {
                    self.model.insert(key, (self.insertions - 1, time, late));
                }
            }
            Err(error) => {
                let refusing = matches!(
                    self.filter.span(),
                    WindowSpan::Time {
                        overload: Overload::Refuse,
                        ..
                    }
                );
                assert!(refusing && matches!(error, Error::Full { .. }), "{error}");
                assert!(!self.filter.ring.has_room());
            }
        }
    }

    fn check(&self) {
        let filter = &self.filter;
        for (&key, &(_, at, late)) in &self.model {
            let age = filter.age_bits(mix_int(key, 0));
            if self.must_find(key) {
                assert!(age.is_some(), "{key} is missed");
            }
            // The error is so small that what is found was inserted.
            let Some(age) = age else { continue };
            let generation = filter.generation(age).unwrap();
            // A late one may have come to a newer generation, where that of
            // its time was full.
            assert!(at <= generation.last && (late || generation.first <= at));
        }
        let full = u64::from(filter.geometry().generations()) + 1;
        assert!(filter.held() <= full * filter.generation_keys());
        if let WindowSpan::Time { ticks, overload } = filter.span() {
            let since = filter.now().saturating_sub(ticks);
            assert!(filter.complete_since() >= since);
            if filter.shortened() == 0 || overload == Overload::Refuse {
                assert_eq!(filter.complete_since(), since);
            }
        }
    }
}

fn spans() -> impl Strategy<Value = WindowSpan> {
    prop_oneof![
        Just(WindowSpan::Keys),
        (1u64..300).prop_map(|ticks| time(ticks, Overload::Shorten)),
        (1u64..300).prop_map(|ticks| time(ticks, Overload::Refuse)),
    ]
}

proptest! {
    #![proptest_config(crate::testing::cases(192))]
    #[test]
    fn nothing_inside_of_the_window_is_missed(
        span in spans(),
        items in 1u64..400,
        generations in prop_oneof![Just(6u32), Just(14), Just(30), Just(62)],
        steps in steps(),
    ) {
        let filter = window(span, items, 1e-9, generations);
        let mut run = Run { filter, items, model: Model::new(), insertions: 0 };
        let mut now = 0;
        let mut fresh = 1000;
        for step in steps {
            match step {
                Step::Insert(key) => run.insert(key),
                Step::Fresh(count) => for _ in 0..count {
                    fresh += 1;
                    run.insert(fresh);
                },
                Step::Wait(ticks) => {
                    now += ticks;
                    let later = run.filter.ring.answered_at(now);
                    let found: Vec<_> = run.model.keys()
                        .filter(|&&key| run.filter.find(mix_int(key, 0), later) != 0)
                        .copied()
                        .collect();
                    run.filter.advance(now);
                    if span != WindowSpan::Keys {
                        prop_assert_eq!(run.filter.now(), now);
                        prop_assert!(found.iter().all(|&key| run.filter.contains_bits(mix_int(key, 0))));
                        prop_assert_eq!(found.len(), run.model.keys()
                            .filter(|&&key| run.filter.contains_bits(mix_int(key, 0))).count());
                    }
                }
                Step::Late(key, before) => {
                    let time = run.filter.now().saturating_sub(before);
                    if span == WindowSpan::Keys {
                        run.insert(key);
                    } else {
                        run.insert_at(key, time);
                    }
                }
                Step::Tend(words) => { run.filter.tend(words).unwrap(); }
                Step::File => {
                    let held = run.filter.held();
                    run.filter = through_a_file(run.filter);
                    prop_assert_eq!(run.filter.held(), held);
                }
            }
            run.check();
        }
    }

    #[test]
    fn batches_answer_as_single_calls(
        span in spans(),
        keys in proptest::collection::vec(0i64..2000, 0..1500),
        items in 100u64..1000,
        error in prop_oneof![Just(0.3), Just(0.01), Just(1e-7)],
    ) {
        let mut single = window(span, items, error, 14);
        let mut batch = window(span, items, error, 14);
        let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
        for &key in &keys {
            digests.push_int(key).unwrap();
        }
        let mut mask = vec![0; mask_words(keys.len())];
        let batched = batch.insert_digests(&digests, &mut mask);
        for (i, &bits) in digests.bits().iter().enumerate() {
            match single.insert_bits(bits) {
                Ok(new) => prop_assert_eq!(new, mask[i / 64] >> (i % 64) & 1 == 1),
                Err(_) => {
                    prop_assert!(batched.is_err());
                    break;
                }
            }
        }
        prop_assert_eq!(single.state(), batch.state());
        prop_assert!(single.words.get() == batch.words.get());
        batch.contains_digests(&digests, &mut mask).unwrap();
        for (i, &bits) in digests.bits().iter().enumerate() {
            prop_assert_eq!(single.contains_bits(bits), mask[i / 64] >> (i % 64) & 1 == 1);
        }
    }
}

/// The last keys against a queue, for the smallest windows too: all of the window
/// are found, and none that is older by a generation.
#[test]
fn windows_of_keys_forget_no_later_than_a_generation() {
    for generations in [6, 14, 30] {
        for items in (1..=70).chain([99, 100, 101, 255, 1000]) {
            let mut filter = window(WindowSpan::Keys, items, 1e-9, generations);
            let capacity = filter.generation_keys();
            let mut most_held = 0;
            for key in 0..items.cast_signed() * 4 + 40 {
                let newest = mix_int(key, 0);
                // At the moment of its repeat, too.
                if let Some(oldest) = (key + 1).checked_sub_unsigned(items)
                    && oldest >= 0
                {
                    assert!(key == oldest || filter.contains_bits(mix_int(oldest, 0)));
                }
                assert!(filter.insert_bits(newest).unwrap());
                assert!(!filter.insert_bits(newest).unwrap());
                most_held = most_held.max(filter.held());
                if key % 7 == 0 {
                    filter = through_a_file(filter);
                }
                let queue = 0..=key;
                let (inside, outside) = (items.cast_signed(), (items + capacity).cast_signed() - 1);
                for age in queue.clone().filter(|&age| age < inside) {
                    let inside = mix_int(key - age, 0);
                    assert!(filter.contains_bits(inside), "{items}: {age} of {key}");
                }
                for age in queue.filter(|&age| age >= outside).step_by(3) {
                    let outside = mix_int(key - age, 0);
                    assert!(!filter.contains_bits(outside), "{items}: {age} of {key}");
                }
            }
            assert!(most_held < items + capacity, "{most_held} of {items}");
        }
    }
}

/// Hits among absent keys are as many as expected, within 5 sigma.
/// What repeats do to a window of keys: those within a generation do not count, those
/// in further ones do.
#[test]
fn repeats_count_once_a_generation_in_windows_of_keys() {
    let insertions_survived = |distinct: i64| {
        let mut filter = window(WindowSpan::Keys, 1400, 1e-9, 14);
        let first = mix_int(-1, 0);
        filter.insert_bits(first).unwrap();
        let came = (0..100_000i64).take_while(|i| {
            filter.insert_bits(mix_int(i % distinct, 0)).unwrap();
            filter.contains_bits(first)
        });
        came.count()
    };
    // Fewer than a generation: it is never full.
    assert_eq!(insertions_survived(50), 100_000);
    // More than a generation: each round of them counts in full, but for what a
    // generation has of it twice.
    for distinct in [101, 300, 1000, 5000] {
        let survived = insertions_survived(distinct);
        assert!((1400..=1500).contains(&survived), "{distinct}: {survived}");
    }
    // As a clock: all count, and a key is forgotten after the window and a
    // generation at the latest.
    for distinct in [1, 50, 300, 5000] {
        let mut filter = window(time(1400, Overload::Shorten), 1400, 1e-9, 14);
        let first = mix_int(-1, 0);
        filter.insert_bits_at(first, 0).unwrap();
        for i in 1..=1500u64 {
            let key = i.cast_signed() % distinct;
            filter.insert_bits_at(mix_int(key, 0), i).unwrap();
            while filter.tend(u64::MAX).unwrap() {}
            assert!(i > 1400 || filter.contains_bits(first), "{i}");
        }
        assert!(!filter.contains_bits(first));
        assert_eq!(filter.shortened(), 0);
    }
}

fn assert_error(filter: &Window, expected: f64, asked: i64, what: &str) {
    let hits = (0..asked)
        .filter(|&key| filter.contains_bits(mix_int(-1 - key, 5)))
        .count() as f64;
    let asked = asked as f64;
    let sigma = (expected * (1.0 - expected) * asked).sqrt();
    assert!(
        (hits - expected * asked).abs() <= 5.0 * sigma,
        "{what}: {hits} of {asked} for {expected:e}"
    );
}

/// At every load the error is the one that the bits say, and at most p; at the
/// worst moment it is the one that sizing says.
#[test]
fn the_error_is_kept_at_every_load() {
    const ITEMS: u64 = 100_000;
    for (error, asked) in [(0.3, 100_000), (1e-2, 400_000), (1e-4, 2_000_000)] {
        for generations in [6, 14, 62] {
            let mut filter = window(WindowSpan::Keys, ITEMS, error, generations);
            let geometry = filter.geometry();
            let capacity = filter.generation_keys();
            // One more and the oldest generation goes.
            let worst = ITEMS - 1 + capacity;
            let planned = window_error(geometry, capacity, filter.about.identity.collisions());
            assert!(planned <= error);
            let mut inserted = 0i64;
            for load in [0.25, 0.5, 1.0, 2.5] {
                while (inserted as f64) < load * ITEMS as f64 {
                    filter.insert_bits(mix_int(inserted, 5)).unwrap();
                    inserted += 1;
                }
                let now = filter.error_now();
                assert!(now <= error * 1.01, "{now} at {load}");
                assert_error(&filter, now, asked, "from the bits");
            }
            while filter.held() < worst {
                filter.insert_bits(mix_int(inserted, 5)).unwrap();
                inserted += 1;
            }
            let now = filter.error_now();
            assert_error(&filter, now, asked, "at the worst moment");
            // One filter scatters around what is expected, by less than this.
            assert!((now / planned - 1.0).abs() < 0.02, "{now} for {planned}");
        }
    }
}

/// The mean over seeds is the planned error, for windows small and large.
#[test]
fn the_expected_error_is_the_planned_one() {
    for (items, error, seeds) in [(1, 0.1, 4000), (50, 0.01, 2000), (3000, 1e-3, 200)] {
        let promise = Promise { items, error };
        let mut means = Vec::new();
        let mut planned = 0.0;
        for seed in 0..seeds {
            let identity = Identity::new(KeyType::Int);
            let mut filter = Window::sized(identity, WindowSpan::Keys, promise, 6).unwrap();
            let capacity = filter.generation_keys();
            planned = window_error(
                filter.geometry(),
                capacity,
                filter.about.identity.collisions(),
            );
            let mut key = 0;
            while filter.held() < items - 1 + capacity {
                filter.insert_bits(mix_int(key, seed)).unwrap();
                key += 1;
            }
            means.push(filter.error_now());
        }
        let count = means.len() as f64;
        let mean = means.iter().sum::<f64>() / count;
        let variance = means.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let sigma = (variance / count).sqrt();
        assert!(planned <= error);
        assert!(
            mean <= planned + 5.0 * sigma,
            "{items}: {mean} for {planned}"
        );
    }
}

/// 18.5 bits a key that is guaranteed, measured: the last million is there at
/// the moment when the fewest generations are.
#[test]
fn a_million_keys_take_few_bits_each() {
    const ITEMS: i64 = 1_000_000;
    let mut filter = WindowFilter::<Int>::with_hasher(
        WindowSpan::Keys,
        Promise {
            items: ITEMS.unsigned_abs(),
            error: 0.01,
        },
        KeyHasher::default(),
    )
    .unwrap();
    let bits = filter.geometry().bits() as f64 / ITEMS as f64;
    assert!(bits <= 18.5, "{bits}");
    let capacity = i64::try_from(filter.generation_keys()).unwrap();
    let mut inserted = 0;
    while inserted < 3 * ITEMS || filter.generation(0).unwrap().keys != 1 {
        filter.insert(&inserted).unwrap();
        inserted += 1;
    }
    assert!((inserted - ITEMS..inserted).all(|key| filter.contains(&key)));
    assert!(filter.error_now() <= 0.01);
    // And little more than the window and a generation, each counted with its
    // false positives, is remembered.
    let old = inserted - ITEMS - 2 * capacity;
    let stale = (old - 100_000..old)
        .filter(|key| filter.contains(key))
        .count();
    assert!(stale <= 1250, "{stale}"); // 1000 and 5 sigma, with some room
}

/// Words that an insertion may clear: its share of all that is to be cleared
/// while a generation fills, or that of eight of them.
fn share_of(filter: &Window) -> u64 {
    let keys = filter.generation_keys();
    let turns = if keys < 64 { keys } else { keys / 8 };
    filter.geometry().words().div_ceil(turns)
}

/// No insertion changes more words than its own bits and its share of what is
/// to be cleared; and there is always a lane when one is needed.
#[test]
fn the_work_of_an_insertion_is_bounded() {
    for (items, error, generations) in [(2000, 0.01, 14), (500, 1e-6, 6), (10, 0.01, 14)] {
        let mut filter = window(WindowSpan::Keys, items, error, generations);
        let geometry = filter.geometry();
        let share = share_of(&filter);
        let most = share + u64::from(geometry.regions() * geometry.parts());
        // So that whatever is cleared is a change.
        let mut before = vec![u64::MAX; filter.words.get().len()];
        let mut generations_begun = 0;
        for key in 0..6000 {
            let oldest = filter.ring.generations().len();
            let filled = filter.state().filling;
            filter.insert_bits(mix_int(key, 0)).unwrap();
            let after = filter.words.get().to_vec();
            if key > 0 {
                let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
                assert!(changed as u64 <= most, "{changed} words");
            }
            before = after;
            if filter.state().filling != filled {
                generations_begun += 1;
                assert!(filter.ring.generations().len() >= oldest);
            }
        }
        assert!(generations_begun > geometry.lanes());
    }
    // What is asked to be cleared, in a window of a realistic size.
    let mut filter = window(WindowSpan::Keys, 1_000_000, 0.01, 14);
    let share = share_of(&filter);
    assert_eq!(share, 32);
    for key in 0..2_500_000 {
        let from = filter.state().cleared;
        filter.insert_bits(mix_int(key, 0)).unwrap();
        let to = filter.state().cleared;
        assert!(to <= from + share);
        assert!(filter.words.get().len() as u64 > 100 * share);
    }
    assert!(filter.state().now == 0 && filter.shortened() == 0);
}

/// Even when the clock presses, an insertion clears a bounded run of words.
#[test]
fn overdue_work_is_bounded_and_tending_takes_it() {
    // Ten keys a generation where 7143 were planned.
    let run = |tended: bool| {
        let span = time(1400, Overload::Shorten);
        let mut filter = window(span, 100_000, 0.001, 14);
        let mut forgotten_late = 0u64;
        for key in 0..3000u64 {
            let now = key * 10;
            filter.advance(now);
            if tended {
                while filter.tend(500).unwrap() {}
            }
            let cleared = filter.state().cleared;
            filter.insert_bits(mix_int(key.cast_signed(), 0)).unwrap();
            assert!(filter.state().cleared.saturating_sub(cleared) <= 4096);
            // Everything inside is found ...
            for age in 0..=140 {
                if let Some(old) = key.checked_sub(age) {
                    assert!(filter.contains_bits(mix_int(old.cast_signed(), 0)), "{age}");
                }
            }
            // ... and what is older than the window and a generation is not.
            if let Some(old) = key.checked_sub(151) {
                forgotten_late += u64::from(filter.contains_bits(mix_int(old.cast_signed(), 0)));
            }
        }
        assert_eq!(filter.shortened(), 0);
        forgotten_late
    };
    assert_eq!(run(true), 0);
    assert!(run(false) > 0);
}

#[test]
fn an_overload_shortens_or_is_refused() {
    let mut filter = window(time(140, Overload::Shorten), 1400, 0.001, 14);
    // Three times the keys of the plan.
    let mut key = 0i64;
    for now in 0..1000 {
        filter.advance(now);
        for _ in 0..30 {
            filter.insert_bits(mix_int(key, 0)).unwrap();
            key += 1;
        }
        assert!(filter.error_now() <= 0.0011);
    }
    assert!(filter.shortened() > 100);
    let since = filter.complete_since();
    // A third of the window is left, within a generation.
    assert!(
        (999 - 140 / 3 - 10..=999 - 140 / 3 + 10).contains(&since),
        "{since}"
    );
    for age in 0..=(999 - since).cast_signed() {
        for i in 0..30 {
            assert!(filter.contains_bits(mix_int(key - 1 - age * 30 - i, 0)));
        }
    }
    // Back at the planned rate the whole window is there again.
    for now in 1000..1400 {
        filter.advance(now);
        for _ in 0..10 {
            filter.insert_bits(mix_int(key, 0)).unwrap();
            key += 1;
        }
    }
    assert_eq!(filter.complete_since(), 1399 - 140);

    let mut filter = window(time(140, Overload::Refuse), 1400, 0.001, 14);
    let (mut key, mut kept, mut refused) = (0i64, Vec::new(), 0);
    for now in 0..1000 {
        filter.advance(now);
        for _ in 0..30 {
            match filter.insert_bits(mix_int(key, 0)) {
                Ok(_) => kept.push((now, key)),
                Err(error) => {
                    assert!(error.to_string().contains("wait until time"), "{error}");
                    refused += 1;
                }
            }
            key += 1;
        }
        // A repeat of the newest generation takes no room.
        let &(_, last) = kept.last().unwrap();
        assert!(!filter.insert_bits(mix_int(last, 0)).unwrap());
    }
    assert_eq!(filter.shortened(), 0);
    assert_eq!(kept.len() + refused, 30_000);
    // A third is taken, as planned.
    assert!((9_900..=10_100).contains(&kept.len()), "{}", kept.len());
    for (at, key) in kept {
        if at >= 999 - 140 {
            assert!(filter.contains_bits(mix_int(key, 0)), "{at}");
        }
    }
}

#[test]
fn typed_windows_take_the_time_along() {
    let mut seen = WindowFilter::timed(100, 1000, 1e-6, Overload::Shorten).unwrap();
    assert!(seen.insert_at("a", 50).unwrap());
    assert!(seen.contains_at("a", 150) && !seen.contains_at("a", 151));
    assert!(seen.contains("a") && !seen.contains("b"));
    // Time does not go back, and what has an earlier one is forgotten earlier.
    assert!(seen.insert_at("b", 10).unwrap());
    assert_eq!(seen.now(), 50);
    assert!(seen.contains_at("b", 110) && !seen.contains_at("b", 120));
    seen.advance(140);
    while seen.tend(u64::MAX).unwrap() {}
    // In steps of 8 of 100.
    assert_eq!((seen.age("a"), seen.age("c")), (Some(11), None));
    assert!(!seen.contains("b"));
    assert!(!seen.insert_at("a", 141).unwrap());
    assert_eq!(seen.age("a"), Some(0));
    seen.advance(u64::MAX);
    assert!(!seen.contains("a"));
    assert!(seen.insert("a").unwrap());
    assert!(seen.contains("a"));
    seen.labels_mut().set("unit", "s").unwrap();
}

#[test]
fn impossible_windows_are_refused() {
    let promise = |items, error| Promise { items, error };
    let identity = || Identity::new(KeyType::Bytes);
    for (span, promise, generations) in [
        (WindowSpan::Keys, promise(0, 0.1), 14),
        (WindowSpan::Keys, promise(u64::MAX, 0.1), 14),
        (WindowSpan::Keys, promise(1, f64::NAN), 14),
        (WindowSpan::Keys, promise(1, 0.1), 0),
        (WindowSpan::Keys, promise(1, 0.1), 100),
        (time(0, Overload::Shorten), promise(1, 0.1), 14),
    ] {
        assert!(Window::sized(identity(), span, promise, generations).is_err());
    }
    let huge = Window::sized(identity(), WindowSpan::Keys, promise(1 << 39, 1e-6), 14);
    assert!(matches!(huge, Err(Error::TooLarge { .. })), "{huge:?}");
    let geometry = WindowGeometry::new(16, 1, 1, 1).unwrap();
    assert_eq!(generation_keys(geometry, 15), 2);
}
