//! What a front answers, and what it asks the store.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use petal::Secret;
use petal_front::{Batch, Change, Front, Mark, Opened, Options, Over, Store, Visit, VisitEntry};

use crate::engines::{Engine, Place, check_all, on_both, small};

on_both! {
    absent_keys_are_not_looked_up;
    rows_are_asked_in_the_filter;
    a_front_over_keys_has_no_rows;
    the_error_is_kept_while_the_filter_grows;
    a_rebuilt_filter_forgets_removed_keys;
    readers_and_a_writer_run_at_once;
    strangers_need_a_secret;
}

/// Counts the questions that reach a store.
struct Counted<S> {
    store: S,
    asked: AtomicU64,
}

impl<S: Store> Store for Counted<S> {
    type Error = S::Error;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, S::Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.store.get(key)
    }

    fn scan(&self, prefix: &[u8], visit: &mut VisitEntry<'_>) -> Result<(), S::Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.store.scan(prefix, visit)
    }

    fn keys(&self, visit: &mut Visit<'_>) -> Result<(), S::Error> {
        self.store.keys(visit)
    }

    fn apply(&self, changes: &[Change], trim: Option<u64>) -> Result<(), S::Error> {
        self.store.apply(changes, trim)
    }

    fn mark(&self) -> Result<Mark, S::Error> {
        self.store.mark()
    }

    fn keys_since(&self, mark: Mark, visit: &mut Visit<'_>) -> Result<Option<Mark>, S::Error> {
        self.store.keys_since(mark, visit)
    }

    fn restart_log(&self) -> Result<(), S::Error> {
        self.store.restart_log()
    }

    fn len_hint(&self) -> Result<u64, S::Error> {
        self.store.len_hint()
    }
}

fn counted<S: Engine>(place: &Place, options: Options) -> Front<Counted<S>> {
    let store = Counted {
        store: S::open(&place.store()),
        asked: AtomicU64::new(0),
    };
    Front::open(store, place.filter(), options).unwrap()
}

impl<S: Store> Counted<S> {
    fn take(&self) -> u64 {
        self.asked.swap(0, Ordering::Relaxed)
    }
}

fn absent_keys_are_not_looked_up<S: Engine>() {
    let place = Place::new();
    let front = counted::<S>(&place, small());
    let mut batch = Batch::new();
    batch.put("here", "value");
    batch.put("", "of the empty key");
    front.write(&batch).unwrap();
    for i in 0..1000 {
        assert_eq!(front.get(format!("absent {i}")).unwrap(), None);
    }
    assert_eq!(front.store().take(), 0);
    assert_eq!(front.get("here").unwrap().as_deref(), Some(&b"value"[..]));
    assert_eq!(
        front.get("").unwrap().as_deref(),
        Some(&b"of the empty key"[..])
    );
    assert_eq!(front.store().take(), 2);
}

fn rows_are_asked_in_the_filter<S: Engine>() {
    let delimiter = b'/';
    for over in [Over::Rows { delimiter }, Over::RowsAndKeys { delimiter }] {
        let place = Place::new();
        let front = counted::<S>(&place, Options { over, ..small() });
        let mut batch = Batch::new();
        for key in [
            "org.example/title",
            "org.example/links/1",
            "org.example0",
            "com/a",
            "bare",
        ] {
            batch.put(key, "x");
        }
        front.write(&batch).unwrap();

        let mut found = Vec::new();
        front
            .row("org.example", &mut |key, _| {
                found.push(String::from_utf8(key.to_vec()).unwrap());
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(found, ["org.example/links/1", "org.example/title"]);
        assert_eq!(front.store().take(), 1);

        for row in ["org.exampl", "org.example0", "bare", ""] {
            front
                .row(row, &mut |key, _| panic!("{key:?} is not of {row}"))
                .unwrap();
            assert!(!front.may_contain_row(row));
        }
        assert_eq!(front.store().take(), 0);

        assert_eq!(front.get("org.example/absent").unwrap(), None);
        let spared = over == Over::RowsAndKeys { delimiter };
        assert_eq!(front.store().take(), u64::from(!spared));
        assert_eq!(front.get("net.example/title").unwrap(), None);
        assert_eq!(front.store().take(), 0);
        assert!(front.get("bare").unwrap().is_some());
    }
}

fn a_front_over_keys_has_no_rows<S: Engine>() {
    let front = Place::new().front::<S>(small());
    let error = front
        .row("a", &mut |_, _| ControlFlow::Continue(()))
        .unwrap_err();
    assert!(error.to_string().contains("over whole keys"), "{error}");
    assert!(front.may_contain_row("a"));
}

fn the_error_is_kept_while_the_filter_grows<S: Engine>() {
    let place = Place::new();
    let options = Options {
        items: 500,
        error: 0.02,
        ..small()
    };
    let front = place.front::<S>(options);
    let mut batch = Batch::new();
    for i in 0..5000 {
        batch.put(format!("key {i}"), "");
    }
    front.write(&batch).unwrap();
    assert!(front.status().stages > 2);
    let asked = 20_000;
    let in_vain = (0..asked)
        .filter(|i| front.may_contain(format!("absent {i}")))
        .count();
    let most = f64::from(asked) * 0.02;
    assert!(
        (in_vain as f64) < most + 5.0 * most.sqrt(),
        "{in_vain} of {asked}"
    );
    front.rebuild().unwrap();
    assert_eq!(front.status().stages, 1);
    assert_eq!(check_all(&front), 5000);
}

fn a_rebuilt_filter_forgets_removed_keys<S: Engine>() {
    let place = Place::new();
    let front = place.front::<S>(small());
    let mut batch = Batch::new();
    for i in 0..100 {
        batch.put(format!("key {i}"), "");
    }
    front.write(&batch).unwrap();
    batch.clear();
    for i in 50..100 {
        batch.remove(format!("key {i}"));
    }
    batch.remove("never there");
    front.write(&batch).unwrap();
    assert!(front.may_contain("key 70"));
    assert_eq!(front.get("key 70").unwrap(), None);
    front.rebuild().unwrap();
    assert!(!front.may_contain("key 70"));
    assert_eq!(check_all(&front), 50);
}

fn readers_and_a_writer_run_at_once<S: Engine>() {
    const LAST: u64 = 150;
    let place = Place::new();
    let front = place.front::<S>(Options {
        save_every: 50,
        ..small()
    });
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..LAST {
                let mut batch = Batch::new();
                batch.put(format!("key {i}"), "");
                front.write(&batch).unwrap();
                written.store(i + 1, Ordering::Release);
                if i % 40 == 20 {
                    front.rebuild().unwrap();
                }
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while written.load(Ordering::Acquire) < LAST {
                    for i in 0..written.load(Ordering::Acquire) {
                        assert!(front.may_contain(format!("key {i}")), "wrong absent: {i}");
                    }
                }
            });
        }
    });
    assert_eq!(check_all(&front), LAST);
}

fn strangers_need_a_secret<S: Engine>() {
    let place = Place::new();
    let keyed = |secret: u8| Options {
        secret: Some(Secret::new([secret; 16])),
        ..small()
    };
    let front = place.front::<S>(keyed(1));
    let mut batch = Batch::new();
    batch.put("key", "");
    front.write(&batch).unwrap();
    front.save().unwrap();
    drop(front);
    assert_eq!(place.front::<S>(keyed(1)).status().opened, Opened::UpToDate);
    for other in [keyed(2), small()] {
        let front = place.front::<S>(other);
        assert!(matches!(
            front.status().opened,
            Opened::Rebuilt { keys: 1, .. }
        ));
        assert_eq!(check_all(&front), 1);
    }
}
