//! Writers that go past the guards, seen only through the feed.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use petal_guard::Layer;
use tokio::time::sleep;

use crate::bypass::{bypass, with_feed};
use crate::harness::{Redis, Sqlite, builder, fill, filters, until};
use crate::layers::{layer, value};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_absent_is_wrong_while_the_feed_is_delayed_and_cut() {
    let trial = bypass(Duration::from_millis(500)).await;
    assert_eq!(trial.wrong, 0, "of {}", trial.asked);
    assert!(trial.asked > 100, "{}", trial.asked);
    assert!(
        trial.filtered > 100,
        "the filter did answer meanwhile: {}",
        trial.filtered
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cached_follows_the_feed() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    let (one, _) = with_feed(&redis.url(), &storage).await;
    let (other, _) = with_feed(&redis.url(), &storage).await;
    fill(&one, &storage).await;
    for guard in [&one, &other] {
        assert_eq!(value(guard, b"alice").await.unwrap(), b"1");
    }
    storage.set(b"alice", b"2");
    for guard in [&one, &other] {
        until("the change arrives", async || {
            value(guard, b"alice").await.unwrap() == b"2"
        })
        .await;
    }
    storage.unset(b"alice");
    for guard in [&one, &other] {
        until("the change arrives", async || {
            value(guard, b"alice").await.is_none()
        })
        .await;
    }
    storage.set(b"alice", b"3");
    for guard in [&one, &other] {
        assert_eq!(
            value(guard, b"alice").await.unwrap(),
            b"3",
            "at once: absent is never wrong"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_starts_later_catches_up_from_where_the_filter_is() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    let (first, _) = with_feed(&redis.url(), &storage).await;
    fill(&first, &storage).await;
    storage.set(b"bob", b"1");
    until("the change arrives", async || {
        value(&first, b"bob").await.is_some()
    })
    .await;
    drop(first);
    sleep(Duration::from_millis(50)).await;
    // Nobody is there to see this.
    storage.set(b"carol", b"1");
    let (later, control) = with_feed(&redis.url(), &storage).await;
    filters(&later).await;
    assert_eq!(value(&later, b"carol").await.unwrap(), b"1");

    // Changes are lost while the feed is cut.
    control.cut.store(true, SeqCst);
    sleep(Duration::from_millis(50)).await;
    storage.set(b"dave", b"1");
    storage.cut_changes();
    control.cut.store(false, SeqCst);
    until("the filter is given up", async || later.needs_warm_up()).await;
    assert_eq!(value(&later, b"dave").await.unwrap(), b"1");
    assert_eq!(layer(&later, b"nobody").await, Layer::Storage);
    fill(&later, &storage).await;
    filters(&later).await;
    assert_eq!(value(&later, b"dave").await.unwrap(), b"1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_filled_without_a_feed_is_not_believed_with_one() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    let plain = builder(&redis.url()).build(storage.clone()).await.unwrap();
    fill(&plain, &storage).await;
    storage.set(b"past it", b"1");
    let (guard, _) = with_feed(&redis.url(), &storage).await;
    for _ in 0..50 {
        assert_eq!(value(&guard, b"past it").await.unwrap(), b"1");
        assert_eq!(layer(&guard, b"nobody").await, Layer::Storage);
        sleep(Duration::from_millis(2)).await;
    }
    fill(&guard, &storage).await;
    filters(&guard).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_feed_writes_go_on_without_redis() {
    let mut redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    let (guard, _) = with_feed(&redis.url(), &storage).await;
    fill(&guard, &storage).await;
    redis.kill();
    until("storage is written", async || {
        guard.put(b"alice", b"2").await.is_ok()
    })
    .await;
    assert_eq!(value(&guard, b"alice").await.unwrap(), b"2");
    guard.put(b"bob", b"2").await.unwrap();
    assert_eq!(value(&guard, b"bob").await.unwrap(), b"2");
    redis.start().await;
    for _ in 0..50 {
        assert_eq!(value(&guard, b"bob").await.unwrap(), b"2");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cached_while_no_guard_runs_is_not_believed() {
    // With the position that the last guard left, and without it.
    for evicted in [false, true] {
        for local in [false, true] {
            let redis = Redis::with_module().await;
            let storage = Sqlite::new();
            storage.set(b"alice", b"1");
            storage.set(b"gone", b"1");
            let guard = async || {
                let guard = builder(&redis.url()).feed(storage.feed());
                let guard = match local {
                    true => guard.local_filter(10_000, 0.01),
                    false => guard,
                };
                guard.build(storage.clone()).await.unwrap()
            };
            let before = guard().await;
            fill(&before, &storage).await;
            storage.unset(b"gone");
            until("the change arrives", async || {
                value(&before, b"gone").await.is_none()
            })
            .await;
            until("both are cached", async || {
                value(&before, b"gone").await;
                value(&before, b"alice").await;
                redis.keys("value").await.len() == 2
            })
            .await;
            drop(before);
            sleep(Duration::from_millis(50)).await;
            storage.set(b"gone", b"2");
            storage.set(b"alice", b"2");
            if evicted {
                redis.say::<u64>(&["DEL", "petal:{test}:state"]).await;
            }
            let after = guard().await;
            for _ in 0..100 {
                assert_eq!(value(&after, b"gone").await.as_deref(), Some(&b"2"[..]));
                sleep(Duration::from_millis(2)).await;
            }
            until("the change arrives", async || {
                value(&after, b"alice").await.unwrap() == b"2"
            })
            .await;
        }
    }
}
