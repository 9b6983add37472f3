//! Redis stopped, slow, silent, emptied, set back; filters lost; storage failing.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use petal_guard::{Error, Guard, Layer};
use tokio::time::sleep;

use crate::harness::{Proxy, Redis, Sqlite, builder, fill, filters, until};
use crate::layers::{layer, value};

/// A guard whose filter is filled and has answered.
async fn filled(url: &str, storage: &Sqlite) -> Guard {
    let guard = builder(url).build(storage.clone()).await.unwrap();
    fill(&guard, storage).await;
    filters(&guard).await;
    storage.take_loads();
    guard
}

/// Keys that only storage has are found, and absent ones are not cached.
async fn fails_open(guard: &Guard, storage: &Sqlite) {
    storage.load_rows([(b"behind its back".to_vec(), b"1".to_vec())].into_iter());
    assert_eq!(value(guard, b"behind its back").await.unwrap(), b"1");
    for _ in 0..2 {
        assert_eq!(layer(guard, b"nobody").await, Layer::Storage);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_stopped_and_restarted_empty() {
    let mut redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    storage.set(b"bob", b"1");
    let guard = filled(&redis.url(), &storage).await;
    assert_eq!(value(&guard, b"alice").await.unwrap(), b"1");
    assert_eq!(layer(&guard, b"alice").await, Layer::Local);
    redis.kill();
    until("the cache is void", async || {
        layer(&guard, b"alice").await == Layer::Storage
    })
    .await;
    fails_open(&guard, &storage).await;
    let refused = guard.put(b"bob", b"2").await.unwrap_err();
    assert!(matches!(refused, Error::NotWritten(_)), "{refused}");
    assert_eq!(storage.value(b"bob").unwrap(), b"1");

    redis.start().await;
    until("it is back", async || guard.put(b"bob", b"2").await.is_ok()).await;
    assert!(guard.needs_warm_up());
    assert_eq!(
        redis.keys("filter").await,
        [""; 0],
        "a write makes no filter"
    );
    fails_open(&guard, &storage).await;
    assert_eq!(value(&guard, b"bob").await.unwrap(), b"2");
    assert_eq!(value(&guard, b"alice").await.unwrap(), b"1");
    fill(&guard, &storage).await;
    filters(&guard).await;
    assert_eq!(value(&guard, b"alice").await.unwrap(), b"1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_set_back_to_a_snapshot() {
    let mut redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    let guard = filled(&redis.url(), &storage).await;
    assert_eq!(value(&guard, b"alice").await.unwrap(), b"1");
    redis.say::<String>(&["SAVE"]).await;
    guard.put(b"alice", b"2").await.unwrap();
    guard.put(b"bob", b"2").await.unwrap();
    redis.kill();
    redis.start().await;
    // The filter is there and lacks bob; the cache is there with the old alice.
    assert_eq!(redis.keys("filter").await.len(), 1);
    assert_eq!(redis.keys("value").await.len(), 1);
    let fresh = builder(&redis.url()).build(storage.clone()).await.unwrap();
    for guard in [&guard, &fresh] {
        for _ in 0..50 {
            assert_eq!(value(guard, b"bob").await.unwrap(), b"2");
            assert_eq!(value(guard, b"alice").await.unwrap(), b"2");
            sleep(Duration::from_millis(5)).await;
        }
        assert!(guard.needs_warm_up());
    }
    fill(&fresh, &storage).await;
    until("both use the filter", async || !guard.needs_warm_up()).await;
    filters(&guard).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_slow() {
    let redis = Redis::with_module().await;
    let proxy = Proxy::to(redis.port).await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    let guard = filled(&proxy.url(), &storage).await;
    // Slow, and within its time.
    proxy.delay_ms.store(60, SeqCst);
    assert_eq!(layer(&guard, b"no one").await, Layer::Filter);
    assert_eq!(value(&guard, b"alice").await.unwrap(), b"1");
    // Slower than it may be.
    proxy.delay_ms.store(800, SeqCst);
    assert_eq!(layer(&guard, b"nobody").await, Layer::Storage);
    until("the cache is void", async || {
        layer(&guard, b"alice").await == Layer::Storage
    })
    .await;
    fails_open(&guard, &storage).await;
    proxy.delay_ms.store(0, SeqCst);
    filters(&guard).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_link_voids_what_is_cached_here() {
    let redis = Redis::with_module().await;
    let proxy = Proxy::to(redis.port).await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    storage.set(b"gone", b"1");
    let far = filled(&proxy.url(), &storage).await;
    let near = builder(&redis.url()).build(storage.clone()).await.unwrap();
    near.remove(b"gone").await.unwrap();
    for _ in 0..2 {
        assert_eq!(value(&far, b"alice").await.unwrap(), b"1");
        assert_eq!(value(&far, b"gone").await, None);
    }
    assert_eq!(layer(&far, b"alice").await, Layer::Local);
    // Messages are held back; the connection seems to be up.
    proxy.silent.store(true, SeqCst);
    near.put(b"gone", b"2").await.unwrap();
    near.put(b"alice", b"2").await.unwrap();
    // "Absent" is never wrong; a value is as old as silence may be.
    assert_eq!(value(&far, b"gone").await.unwrap(), b"2");
    until("the value is not used", async || {
        value(&far, b"alice").await.unwrap() == b"2"
    })
    .await;
    proxy.silent.store(false, SeqCst);
    filters(&far).await;
    assert_eq!(value(&far, b"alice").await.unwrap(), b"2");
    assert_eq!(value(&far, b"gone").await.unwrap(), b"2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_that_is_gone_or_something_else() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    const FILTER: &str = "petal:{test}:filter";
    const STATE: &str = "petal:{test}:state";
    let lose: [&[&str]; 5] = [
        &["DEL", FILTER],
        &["SET", FILTER, "x"],
        &["DEL", STATE],
        &["FLUSHALL"],
        // Full: it refuses the next key.
        &["CONFIG", "SET", "maxmemory", "1"],
    ];
    for (at, lose) in lose.iter().enumerate() {
        let guard = filled(&redis.url(), &storage).await;
        let other = builder(&redis.url()).build(storage.clone()).await.unwrap();
        filters(&other).await;
        redis.say::<redis::Value>(lose).await;
        let key = format!("written after {at}");
        let written = other.put(key.as_bytes(), b"1").await;
        if lose[0] == "CONFIG" {
            redis
                .say::<String>(&["CONFIG", "SET", "maxmemory", "0"])
                .await;
            // Whether or not Redis took what comes before a write.
            if written.is_err() {
                assert!(storage.value(key.as_bytes()).is_none());
                other.put(key.as_bytes(), b"1").await.unwrap();
            }
        } else {
            written.unwrap();
        }
        for guard in [&guard, &other] {
            assert_eq!(value(guard, key.as_bytes()).await.unwrap(), b"1");
            // The filter took the key, or answers nothing.
            if lose[1..] != [STATE] && lose[0] != "CONFIG" {
                assert_eq!(layer(guard, b"nobody").await, Layer::Storage, "{lose:?}");
                assert!(guard.needs_warm_up());
            }
        }
        redis.say::<String>(&["FLUSHALL"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_outlives_the_first_replica_and_not_a_change_of_roles() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    let guard = filled(&redis.url(), &storage).await;
    let replica = Redis::with_module().await;
    let port = redis.port.to_string();
    replica
        .say::<String>(&["REPLICAOF", "127.0.0.1", &port])
        .await;
    let follows = async || {
        let info: String = replica.say(&["INFO", "replication"]).await;
        info.contains("master_link_status:up")
    };
    until("the replica follows", follows).await;
    // The primary has given its data another name meanwhile.
    sleep(Duration::from_millis(500)).await;
    filters(&guard).await;
    guard.put(b"alice", b"1").await.unwrap();

    // A replica is not believed, nor what it becomes.
    let misled = builder(&replica.url())
        .build(storage.clone())
        .await
        .unwrap();
    fails_open(&misled, &storage).await;
    replica.say::<String>(&["REPLICAOF", "NO", "ONE"]).await;
    until("it is a primary", async || {
        misled.put(b"bob", b"1").await.is_ok()
    })
    .await;
    assert!(misled.needs_warm_up());
    fails_open(&misled, &storage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_storage_is_nowhere_cached() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    let guard = filled(&redis.url(), &storage).await;
    storage.fails.store(true, SeqCst);
    assert!(matches!(guard.get(b"alice").await, Err(Error::Storage(_))));
    assert_eq!(redis.keys("value").await, [""; 0], "no lease is left");
    filters(&guard).await;
    storage.fails.store(false, SeqCst);
    assert_eq!(layer(&guard, b"alice").await, Layer::Storage);
    assert_eq!(layer(&guard, b"alice").await, Layer::Local);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_breaks_off_leaves_nothing_old_behind() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    let guard = filled(&redis.url(), &storage).await;
    assert_eq!(value(&guard, b"alice").await.unwrap(), b"1");
    // Storage takes the write after it was given up.
    let late = storage.clone();
    let write = guard.write(b"alice", async move {
        tokio::spawn(async move {
            sleep(Duration::from_millis(300)).await;
            late.set(b"alice", b"2");
        });
        sleep(Duration::from_secs(10)).await;
        Ok(())
    });
    assert!(matches!(write.await, Err(Error::WriteTimeout(_))));
    assert_eq!(
        value(&guard, b"alice").await.unwrap(),
        b"1",
        "not written yet"
    );
    until("it is written", async || {
        value(&guard, b"alice").await.unwrap() == b"2"
    })
    .await;
    let failed = guard
        .write(b"alice", async { Err::<(), _>("no".into()) })
        .await;
    assert!(matches!(failed, Err(Error::Write(_))));
    let lost = guard.write(b"alice", async { panic!("as the test wants") });
    assert!(matches!(lost.await, Err::<(), _>(Error::WriteLost)));
    assert_eq!(value(&guard, b"alice").await.unwrap(), b"2");
}
