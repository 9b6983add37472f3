//! Counts that need more slots: what they cost, and that they cost no error.

use super::*;

/// A filter for so many distinct keys takes them, however often each comes, and
/// its error is theirs alone.
#[test]
fn repeats_are_counted_and_fill_nothing() {
    const ITEMS: i64 = 4_000;
    let times = |shape: &str, key: i64| match shape {
        "twice" => 2,
        "one is half of all" => 1 + u64::from(key == 7) * ITEMS.unsigned_abs(),
        "a few are huge" => 1 + u64::from(key % 1000 == 0) * (u64::MAX / 2),
        "each up to a hundred" => 1 + (mix_int(key, 9) % 100),
        "each up to 2^20" => 1 << 20,
        _ => 1,
    };
    for error in [0.3, 1e-2, 1e-4, 1e-9] {
        for (shape, most) in [
            ("once", 1),
            ("twice", 2),
            ("one is half of all", 1),
            ("a few are huge", 2),
            ("each up to a hundred", 8),
            ("each up to 2^20", 64),
        ] {
            let what = format!("{shape} at {error}");
            let mut filter = sized(ITEMS.unsigned_abs(), error);
            let (before, error_before) = (filter.geometry(), error);
            for key in 0..ITEMS {
                let times = times(shape, key);
                let single = times.min(3);
                for _ in 0..single {
                    filter.insert_bits(mix_int(key, 0)).unwrap();
                }
                filter
                    .insert_times_bits(mix_int(key, 0), times - single)
                    .unwrap();
            }
            assert!(filter.len() <= ITEMS.unsigned_abs());
            for key in 0..ITEMS {
                let count = filter.count_bits(mix_int(key, 0)).unwrap();
                assert!(count >= times(shape, key), "{what}");
            }
            // The same fingerprints, so the same error, in so many more slots.
            let after = filter.geometry();
            assert_eq!(after.fingerprints(), before.fingerprints(), "{what}");
            assert!(filter.error_now() <= error_before, "{what}");
            assert_eq!(filter.meta().promise().unwrap().items, ITEMS.unsigned_abs());
            assert!(after.slots() <= most * before.slots(), "{what}: {after}");
            // Never more than four times those in use.
            assert!(
                after == before || filter.used_slots() * 4 > after.slots(),
                "{what}"
            );
            assert!(check(filter.table()).is_some());
        }
    }
}

/// Small filters are for few keys, which may each be as hot as can be.
#[test]
fn a_few_keys_may_come_as_often_as_can_be() {
    for items in [1u64, 2, 3, 7, 20] {
        for error in [0.5, 0.01, 1e-6] {
            let mut filter = sized(items, error);
            for key in 0..items.cast_signed() {
                filter.insert_times_bits(mix_int(key, 1), u64::MAX).unwrap();
            }
            for key in 0..items.cast_signed() {
                assert_eq!(filter.count_bits(mix_int(key, 1)).unwrap(), u64::MAX);
            }
        }
    }
}

/// The same keys, whatever their order, in the same slots; and filters that
/// differ in slots alone are equal, and are merged.
#[test]
fn filters_with_more_slots_are_those_of_the_same_keys() {
    let keys: Vec<i64> = (0..3000).flat_map(|key| [key, key, key % 10]).collect();
    let mut filter = sized(3000, 1e-3);
    let mut backwards = sized(3000, 1e-3);
    for (&key, &last) in keys.iter().zip(keys.iter().rev()) {
        filter.insert_bits(mix_int(key, 0)).unwrap();
        backwards.insert_bits(mix_int(last, 0)).unwrap();
    }
    let small = sized(3000, 1e-3).geometry();
    assert!(filter.geometry().slots() > small.slots());
    assert!(filter.geometry() == backwards.geometry() && filter == backwards);
    assert!(filter.words.get() == backwards.words.get());
    // Without the repeats they would have fewer slots.
    let mut once = sized(3000, 1e-3);
    for key in 0..3000 {
        once.insert_bits(mix_int(key, 0)).unwrap();
    }
    assert_eq!(once.geometry(), small);
    for (at, &key) in keys.iter().enumerate() {
        if at % 3 != 0 {
            assert!(backwards.remove_bits(mix_int(key, 0)).unwrap());
        }
    }
    assert_ne!(backwards.geometry(), once.geometry());
    assert!(backwards == once);
    assert!(once == backwards);
    assert!(filter != once);
    // Either way round, and through a file.
    let mut union = through_a_file(once);
    union.union_with(&through_a_file(backwards)).unwrap();
    for key in 0..3000 {
        assert!(union.count_bits(mix_int(key, 0)).unwrap() >= 2);
    }
    filter.union_with(&union).unwrap();
    for key in 10..3000 {
        assert!(filter.count_bits(mix_int(key, 0)).unwrap() >= 4);
    }
    union.intersect_with(&filter).unwrap();
    assert!(union.len() == filter.len() && union != filter);
    // More distinct keys than either was made for are too many.
    let mut other = sized(3000, 1e-3);
    for key in 3000..6000 {
        other.insert_bits(mix_int(key, 0)).unwrap();
    }
    let mut first = sized(3000, 1e-3);
    for key in 0..3000 {
        first.insert_bits(mix_int(key, 0)).unwrap();
    }
    let error = first.union_with(&other).unwrap_err();
    assert!(error.to_string().contains("for more keys"), "{error}");
    assert!((0..3000).all(|key| first.count_bits(mix_int(key, 0)).unwrap() > 0));
    // Others are of no kind to be merged.
    let error = first.union_with(&sized(3000, 1e-4)).unwrap_err();
    assert!(error.to_string().contains("geometry"), "{error}");
}

/// Repeats stop where the caller says that memory ends, and nothing is lost.
#[test]
fn the_memory_of_counts_can_be_bounded() {
    let mut filter = sized(10_000, 0.01);
    let bytes = filter.geometry().bytes();
    filter.limit_memory(2 * bytes);
    for key in 0..10_000 {
        filter.insert_bits(mix_int(key, 0)).unwrap();
    }
    let mut again = 0;
    let error = loop {
        match filter.insert_bits(mix_int(again, 0)) {
            Ok(_) => again += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    // And the same each time.
    let error = filter.insert_bits(mix_int(again, 0)).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(filter.geometry().bytes(), bytes);
    assert!((0..again).all(|key| filter.count_bits(mix_int(key, 0)).unwrap() >= 2));
    filter.limit_memory(3 * bytes);
    for key in again..10_000 {
        filter.insert_bits(mix_int(key, 0)).unwrap();
    }
    assert!((0..10_000).all(|key| filter.count_bits(mix_int(key, 0)).unwrap() >= 2));
}
