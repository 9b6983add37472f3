//! Keys with earlier times than the latest one.

use super::*;

/// Times out of order against exact ones: a key is there until its own time
/// leaves the window, and at most a generation longer.
#[test]
fn late_keys_are_forgotten_when_their_time_says() {
    for (ticks, seed) in [(1, 1), (5, 2), (100, 3), (1400, 4), (1401, 5)] {
        let mut filter = window(time(ticks, Overload::Shorten), 20_000, 1e-9, 14);
        let part = ticks.div_ceil(14);
        let mut times: HashMap<i64, u64> = HashMap::new();
        let (mut now, mut late, mut past) = (10_000u64, 0, 0);
        filter.advance(now);
        for step in 0..4000i64 {
            let random = mix_int(step, seed);
            now += match random % 100 {
                0 => ticks * (random >> 32) % (3 * ticks),
                1..10 => ticks / 10,
                _ => random >> 60,
            };
            let back = (random >> 8) % (ticks + ticks / 5 + 2);
            let at = now - if random.is_multiple_of(3) { back } else { 0 };
            let key = mix_int(step, seed + 100).cast_signed() % 700;
            filter.advance(now);
            while filter.tend(u64::MAX).unwrap() {}
            let known = times
                .get(&key)
                .is_some_and(|&at| at >= now.saturating_sub(ticks));
            let new = filter.insert_bits_at(mix_int(key, 0), at).unwrap();
            assert!(!(new && known));
            late += u64::from(at < now);
            if filter.is_past(at) {
                past += 1;
                assert!(at < now - ticks);
            } else {
                assert!(at >= now - ticks);
                let time = times.entry(key).or_insert(0);
                *time = at.max(*time);
            }
            if step % 5 == 0 {
                for (&key, &at) in &times {
                    let found = filter.contains_bits(mix_int(key, 0));
                    if at >= now - ticks {
                        assert!(found, "{ticks}: {} ticks ago", now - at);
                    } else if at + ticks + part <= now {
                        assert!(!found, "{ticks}: {} ticks ago", now - at);
                    }
                }
            }
        }
        assert!(late > 500 && past > 20, "{late} {past}");
        assert_eq!(filter.shortened(), 0);
    }
}

/// Without anybody who tends, few keys a generation leave clearing behind. A late key
/// then stays longer than its time says, but no longer than one that came at the
/// same moment with the present time; and a generation goes on for no more insertions
/// than a pass over the words takes.
#[test]
fn late_keys_of_a_window_that_nobody_tends_go_with_present_ones() {
    const TICKS: u64 = 1400;
    let mut filter = window(time(TICKS, Overload::Shorten), 100_000, 1e-9, 14);
    let pass = filter.geometry().words().div_ceil(4096);
    let (mut longer, mut overdue, mut most_overdue) = (0u64, 0u64, 0u64);
    let mut pairs: Vec<(i64, i64, u64)> = Vec::new();
    let mut now = 10_000;
    for step in 0..3000i64 {
        let random = mix_int(step, 7);
        now += random % 20;
        filter.advance(now);
        let (late, present) = (2 * step, 2 * step + 1);
        let at = now - (random >> 32) % TICKS;
        for (key, at) in [(late, at), (present, now)] {
            let due = filter.ring.is_due();
            filter.insert_bits_at(mix_int(key, 0), at).unwrap();
            overdue = if due && filter.ring.is_due() {
                overdue + 1
            } else {
                0
            };
            most_overdue = most_overdue.max(overdue);
        }
        pairs.push((late, present, at));
        // What is long gone is looked at once more, and then no longer.
        if step % 10 == 0 {
            pairs.retain(|&(late, present, at)| {
                let [late, present] =
                    [late, present].map(|key| filter.contains_bits(mix_int(key, 0)));
                assert!(late || at < now.saturating_sub(TICKS));
                assert!(present || !late, "a late key outlives a present one");
                longer += u64::from(late && at + TICKS + TICKS.div_ceil(14) <= now);
                late || present
            });
        }
    }
    assert!(longer > 100, "{longer}");
    assert!(
        (2..=pass).contains(&most_overdue),
        "{most_overdue} of {pass}"
    );
    assert_eq!(filter.shortened(), 0);
}

/// Late keys at the very edge of the window begin no generation each, all of which
/// would have to be cleared.
#[test]
fn keys_at_the_edge_of_the_window_are_not_cleared_one_by_one() {
    const TICKS: u64 = 1400;
    let mut filter = window(time(TICKS, Overload::Shorten), 20_000, 1e-6, 14);
    let mut cleared = 0;
    for i in 0..1000u64 {
        let now = 10_000 + i;
        filter.advance(now);
        cleared += u64::from(!filter.ring.is_clean());
        while filter.tend(u64::MAX).unwrap() {}
        for at in [now, now - TICKS, now - TICKS + i % 150] {
            let key = (i * 3 + at % 3).cast_signed();
            filter.insert_bits_at(mix_int(key, 4), at).unwrap();
        }
    }
    assert!((8..=12).contains(&cleared), "{cleared} times");
    assert_eq!(filter.shortened(), 0);
}

/// More late keys than a generation takes go on to newer ones, and past those the
/// window is overloaded.
#[test]
fn late_keys_find_room_in_newer_generations() {
    let mut filter = window(time(140, Overload::Refuse), 1400, 1e-9, 14);
    filter.advance(1000);
    assert_eq!(filter.room_at(1000), 100);
    let mut key = 0;
    let error = loop {
        match filter.insert_bits_at(mix_int(key, 0), 900) {
            Ok(new) => assert!(new),
            Err(error) => break error,
        }
        key += 1;
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(filter.room_at(900), 0);
    // The generation of that time, and all from then on.
    assert_eq!(key, 1100);
    assert!((0..key).all(|key| filter.contains_bits(mix_int(key, 0))));
    // A repeat takes no room; one from before the window neither.
    assert!(!filter.insert_bits_at(mix_int(5, 0), 900).unwrap());
    assert!(filter.insert_bits_at(mix_int(5, 0), 990).is_err());
    assert!(filter.insert_bits_at(mix_int(-5, 0), 859).unwrap());
    assert!(!filter.contains_bits(mix_int(-5, 0)));
    // In batches as well.
    let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
    for key in 0..100 {
        digests.push_int(key).unwrap();
    }
    let mut mask = [0; 2];
    filter.insert_digests_at(&digests, 900, &mut mask).unwrap();
    assert_eq!(mask, [0, 0]);
}
