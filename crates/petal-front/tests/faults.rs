//! Files that are missing, stale, damaged, of another front, or cannot be saved; stores that were
//! set back.

use petal::{BloomFilter, Overwrite};
use petal_front::{Batch, Front, Opened, Options, Over};

use crate::engines::{Engine, Place, check_all, on_both, small};

on_both! {
    a_stale_filter_is_caught_up_with;
    a_missing_filter_is_rebuilt;
    a_damaged_filter_is_rebuilt;
    the_filter_of_something_else_is_rebuilt;
    an_older_filter_than_the_log_is_rebuilt;
    a_store_that_was_set_back_and_went_on_has_another_history;
    a_filter_that_cannot_be_saved_loses_nothing;
    one_front_has_the_filter;
}

fn put<S: Engine>(front: &Front<S>, keys: std::ops::Range<u32>) {
    let mut batch = Batch::new();
    for i in keys {
        batch.put(format!("key {i}"), "value");
    }
    front.write(&batch).unwrap();
}

fn a_stale_filter_is_caught_up_with<S: Engine>() {
    let place = Place::new();
    let front = place.front::<S>(small());
    assert!(matches!(
        front.status().opened,
        Opened::Rebuilt { keys: 0, .. }
    ));
    put(&front, 0..10);
    drop(front);
    let front = place.front::<S>(small());
    assert_eq!(front.status().opened, Opened::CaughtUp { keys: 10 });
    assert_eq!(check_all(&front), 10);
    // Trims the log, and is not trimmed by it.
    put(&front, 10..20);
    put(&front, 20..30);
    drop(front);
    let front = place.front::<S>(small());
    assert_eq!(front.status().opened, Opened::CaughtUp { keys: 20 });
    assert_eq!(check_all(&front), 30);
    drop(front);
    assert_eq!(place.front::<S>(small()).status().opened, Opened::UpToDate);
}

fn a_missing_filter_is_rebuilt<S: Engine>() {
    let place = Place::new();
    let front = place.front::<S>(small());
    put(&front, 0..10);
    front.save().unwrap();
    drop(front);
    std::fs::remove_file(place.filter()).unwrap();
    let front = place.front::<S>(small());
    assert!(matches!(
        front.status().opened,
        Opened::Rebuilt { keys: 10, .. }
    ));
    assert_eq!(check_all(&front), 10);
}

fn a_damaged_filter_is_rebuilt<S: Engine>() {
    let place = Place::new();
    let front = place.front::<S>(small());
    put(&front, 0..100);
    front.save().unwrap();
    drop(front);
    let good = std::fs::read(place.filter()).unwrap();
    let mut damages: Vec<Vec<u8>> = vec![Vec::new(), good[..good.len() / 2].to_vec()];
    for at in (0..good.len()).step_by(good.len() / 23) {
        let mut damaged = good.clone();
        damaged[at] ^= 0x10;
        damages.push(damaged);
    }
    for damaged in damages {
        std::fs::write(place.filter(), &damaged).unwrap();
        let front = place.front::<S>(small());
        let opened = front.status().opened;
        assert!(
            matches!(opened, Opened::Rebuilt { keys: 100, .. }),
            "{opened:?}"
        );
        assert_eq!(check_all(&front), 100);
    }
}

fn the_filter_of_something_else_is_rebuilt<S: Engine>() {
    let place = Place::new();
    drop(place.front::<S>(small()));
    let fronts_file = std::fs::read(place.filter()).unwrap();
    let rebuilt = |options: Options, why: &str| {
        let front = place.front::<S>(options);
        let Opened::Rebuilt { why: got, .. } = front.status().opened else {
            panic!("{why}: {:?}", front.status().opened);
        };
        assert!(got.contains(why), "{got}");
    };
    // A filter, but no front's.
    let bloom = BloomFilter::new(10, 0.1).unwrap();
    bloom.save(place.filter(), Overwrite::Replace).unwrap();
    rebuilt(small(), "kind bloom");
    // Other options.
    std::fs::write(place.filter(), &fronts_file).unwrap();
    rebuilt(
        Options {
            error: 1e-3,
            ..small()
        },
        "an error of 0.000000001",
    );
    let delimiter = b'/';
    let over = Over::Rows { delimiter };
    std::fs::write(place.filter(), &fronts_file).unwrap();
    rebuilt(
        Options { over, ..small() },
        "over keys, not over rows up to /",
    );
    // That of another store.
    let other = Place::new();
    drop(other.front::<S>(small()));
    std::fs::copy(other.filter(), place.filter()).unwrap();
    rebuilt(small(), "log does not go back");
}

fn an_older_filter_than_the_log_is_rebuilt<S: Engine>() {
    let place = Place::new();
    let front = place.front::<S>(small());
    put(&front, 0..10);
    front.save().unwrap();
    let old = std::fs::read(place.filter()).unwrap();
    put(&front, 10..20);
    front.save().unwrap();
    put(&front, 20..30); // trims
    drop(front);
    std::fs::write(place.filter(), old).unwrap();
    let front = place.front::<S>(small());
    assert!(matches!(
        front.status().opened,
        Opened::Rebuilt { keys: 30, .. }
    ));
    assert_eq!(check_all(&front), 30);
}

fn a_store_that_was_set_back_and_went_on_has_another_history<S: Engine>() {
    let place = Place::new();
    let front = place.front::<S>(small());
    put(&front, 0..10);
    drop(front);
    let backup = place.keep_store::<S>();

    let front = place.front::<S>(small());
    for i in 10..15 {
        put(&front, i..i + 1);
    }
    front.save().unwrap();
    drop(front);
    let newer = std::fs::read(place.filter()).unwrap();

    // The store alone goes back; so the filter is newer than it.
    Place::put_back(&backup);
    let front = place.front::<S>(small());
    assert!(matches!(
        front.status().opened,
        Opened::Rebuilt { keys: 10, .. }
    ));
    // It goes on past the filter's generation, with other keys.
    for i in 100..120 {
        put(&front, i..i + 1);
    }
    drop(front);
    std::fs::write(place.filter(), newer).unwrap();
    let front = place.front::<S>(small());
    assert!(matches!(
        front.status().opened,
        Opened::Rebuilt { keys: 30, .. }
    ));
    assert_eq!(check_all(&front), 30);
}

fn a_filter_that_cannot_be_saved_loses_nothing<S: Engine>() {
    let place = Place::new();
    let front = place.front::<S>(Options {
        save_every: 1,
        ..small()
    });
    put(&front, 0..10);
    let good = std::fs::read(place.filter()).unwrap();
    // A folder is in the file's place.
    std::fs::remove_file(place.filter()).unwrap();
    std::fs::create_dir(place.filter()).unwrap();
    put(&front, 10..20);
    put(&front, 20..30);
    let said = front.status().save_error.unwrap();
    assert!(said.contains("directory"), "{said}");
    assert!(front.save().is_err());
    assert_eq!(check_all(&front), 30);
    drop(front);
    std::fs::remove_dir(place.filter()).unwrap();
    std::fs::write(place.filter(), good).unwrap();
    let front = place.front::<S>(small());
    assert_eq!(front.status().opened, Opened::CaughtUp { keys: 20 });
    assert_eq!(check_all(&front), 30);
    assert_eq!(front.status().save_error, None);
}

fn one_front_has_the_filter<S: Engine>() {
    let place = Place::new();
    let _front = place.front::<S>(small());
    let other = Place::new();
    let error = Front::open(S::open(&other.store()), place.filter(), small()).unwrap_err();
    assert!(error.to_string().contains("filter.petal.lock"), "{error}");
}

#[test]
fn a_redb_database_that_was_being_made_is_made_anew() {
    let place = Place::new();
    // What is left of a process that was killed in making one.
    let new = format!("{}.new", place.store().display());
    std::fs::write(&new, vec![0; 4096]).unwrap();
    let front = place.front::<petal_front::RedbStore>(small());
    put(&front, 0..10);
    assert_eq!(check_all(&front), 10);
    assert!(!std::path::Path::new(&new).exists());
}
