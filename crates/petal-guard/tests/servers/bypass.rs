//! A writer that goes past two guards, seen only through their feeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use petal_guard::{Guard, Layer};
use tokio::time::sleep;

use crate::harness::{FeedControl, Redis, Sqlite, builder, fill, filters};

pub(crate) async fn with_feed(url: &str, storage: &Sqlite) -> (Guard, FeedControl) {
    let feed = storage.feed();
    let control = feed.control.clone();
    let guard = builder(url)
        .feed(feed)
        .build(storage.clone())
        .await
        .unwrap();
    (guard, control)
}

/// What came of it.
pub(crate) struct Trial {
    /// Questions for keys that storage had when they were asked.
    pub(crate) asked: u64,
    /// Answered "absent".
    pub(crate) wrong: u64,
    /// Questions for other keys that the filter answered.
    pub(crate) filtered: u64,
}

/// Writes new keys, and at once asks both guards for each. Of some it asks before,
/// too, so that "absent" is cached where it may be.
async fn write_and_ask(storage: &Sqlite, guards: &[Guard], stop: &AtomicBool) -> (u64, u64) {
    let (mut asked, mut wrong) = (0, 0);
    let mut number = 0_u64;
    while !stop.load(SeqCst) {
        number += 1;
        let key = number.to_le_bytes();
        if number.is_multiple_of(3) {
            for guard in guards {
                assert_eq!(guard.get(&key).await.unwrap(), None);
            }
        }
        let writer = storage.clone();
        let write = tokio::task::spawn_blocking(move || writer.set(&key, b"1"));
        write.await.unwrap();
        for guard in guards {
            asked += 1;
            wrong += u64::from(guard.get(&key).await.unwrap().is_none());
        }
    }
    (asked, wrong)
}

/// Asks for keys that nobody has.
async fn strangers(guards: &[Guard], stop: &AtomicBool, filtered: &AtomicU64) {
    let mut number = 0_u64;
    while !stop.load(SeqCst) {
        number += 1;
        let key = format!("nobody {number}");
        for guard in guards {
            let traced = guard.get_traced(key.as_bytes()).await.unwrap();
            assert_eq!(traced.value, None);
            filtered.fetch_add(u64::from(traced.layer == Layer::Filter), SeqCst);
        }
    }
}

/// Eleven steps of this length: the feed of one guard, then of the other, is in
/// time, late, later than a request waits, cut, and late again.
pub(crate) async fn bypass(step: Duration) -> Trial {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    let (one, control_one) = with_feed(&redis.url(), &storage).await;
    let (other, control_other) = with_feed(&redis.url(), &storage).await;
    fill(&one, &storage).await;
    filters(&other).await;

    let guards = Arc::new([one, other]);
    let stop = Arc::new(AtomicBool::new(false));
    let filtered = Arc::new(AtomicU64::new(0));
    let asking = tokio::spawn({
        let (storage, guards, stop) = (storage.clone(), guards.clone(), stop.clone());
        async move { write_and_ask(&storage, &guards[..], &stop).await }
    });
    let strange = tokio::spawn({
        let (stop, filtered) = (stop.clone(), filtered.clone());
        async move { strangers(&guards[..], &stop, &filtered).await }
    });
    for control in [&control_one, &control_other] {
        for (delay, cut) in [
            (0, false),
            (20, false),
            (300, false),
            (0, true),
            (20, false),
        ] {
            control.delay_ms.store(delay, SeqCst);
            control.cut.store(cut, SeqCst);
            sleep(step).await;
        }
        control.delay_ms.store(0, SeqCst);
    }
    sleep(step).await;
    stop.store(true, SeqCst);
    strange.await.unwrap();
    let (asked, wrong) = asking.await.unwrap();
    Trial {
        asked,
        wrong,
        filtered: filtered.load(SeqCst),
    }
}
