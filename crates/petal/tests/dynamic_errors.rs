//! The error of each kind that forgets, at a quarter, half and all of its load,
//! asked from outside: the share of wrong answers of four filters, with hashers of
//! their own, is at most the error that was asked for and five standard deviations
//! of a share of so many questions.
//!
//! `cargo test -p petal --test dynamic_errors -- --nocapture` prints the figures.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use petal::{
    CounterBits, CountingBloomFilter, DeletableFilter, Increase, Int, KeyHasher, Promise,
    WindowFilter, WindowSpan,
};

const ITEMS: i64 = 100_000;

/// Filters of each kind, with hashers of their own.
const SEEDS: u64 = 4;

/// A filter of a kind, and how many keys came to it, from 0 on.
type Made = (Box<dyn Fn(&i64) -> bool>, i64);

fn promise(error: f64) -> Promise {
    Promise {
        items: ITEMS.unsigned_abs(),
        error,
    }
}

fn counting(error: f64, hasher: KeyHasher, keys: i64) -> Made {
    let items = ITEMS.unsigned_abs();
    let (bits, increase) = (CounterBits::Four, Increase::All);
    let made = CountingBloomFilter::<Int>::with_options(items, error, hasher, bits, increase);
    let mut filter = made.unwrap();
    for key in 0..keys {
        filter.insert(&key).unwrap();
    }
    (Box::new(move |key| filter.contains(key)), keys)
}

/// Every third key is there ten times: that must make no difference.
fn deletable(error: f64, hasher: KeyHasher, keys: i64) -> Made {
    let items = ITEMS.unsigned_abs();
    let mut filter = DeletableFilter::<Int>::with_hasher(items, error, hasher).unwrap();
    for key in 0..keys {
        let times = if key % 3 == 0 { 10 } else { 1 };
        filter.insert_times(&key, times).unwrap();
    }
    (Box::new(move |key| filter.contains(key)), keys)
}

/// At full load as full as it ever is: of a window and a generation less one
/// key, after several windows.
fn window(error: f64, hasher: KeyHasher, keys: i64) -> Made {
    let made = WindowFilter::<Int>::with_hasher(WindowSpan::Keys, promise(error), hasher);
    let mut filter = made.unwrap();
    let most = promise(error).items - 1 + filter.generation_keys();
    let mut key = 0;
    while key < keys || (keys == ITEMS && (key < 3 * ITEMS || filter.held() < most)) {
        filter.insert(&key).unwrap();
        key += 1;
    }
    (Box::new(move |key| filter.contains(key)), key)
}

#[test]
fn errors_at_each_load_are_at_most_those_asked_for() {
    println!("kind       p       load  measured   of p   false of asked");
    type Make = fn(f64, KeyHasher, i64) -> Made;
    let kinds: [(&str, Make); 3] = [
        ("counting", counting),
        ("deletable", deletable),
        ("window", window),
    ];
    for (kind, make) in kinds {
        for (error, asked) in [(1e-2, 200_000), (1e-4, 1_000_000)] {
            for quarters in [1, 2, 4] {
                let keys = ITEMS * quarters / 4;
                let mut found = 0u64;
                for seed in 0..SEEDS {
                    let (has, came) = make(error, KeyHasher::Portable { seed }, keys);
                    assert!((came - keys.min(came)..came).all(|key| has(&key)));
                    let absent = (0..asked).map(|i| -1 - i);
                    found += absent.filter(has).count() as u64;
                }
                let all = asked as f64 * SEEDS as f64;
                let measured = found as f64 / all;
                println!(
                    "{kind:<9}  {error:<6}  {:>3} %  {measured:<9.3e}  {:<5.3}  {found} of {all}",
                    25 * quarters,
                    measured / error,
                );
                let sigma = (error * (1.0 - error) / all).sqrt();
                assert!(
                    measured <= error + 5.0 * sigma,
                    "{kind}: {measured:e} for {error}"
                );
            }
        }
    }
}
