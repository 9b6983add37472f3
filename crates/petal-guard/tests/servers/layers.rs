//! What the layers answer while everything works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use futures_util::future::join_all;
use petal_guard::{Error, Guard, Layer};
use tokio::time::sleep;

use crate::harness::{Redis, Sqlite, builder, fill, filters, until};

pub(crate) async fn layer(guard: &Guard, key: &[u8]) -> Layer {
    guard.get_traced(key).await.unwrap().layer
}

pub(crate) async fn value(guard: &Guard, key: &[u8]) -> Option<Vec<u8>> {
    guard.get(key).await.unwrap().map(|value| value.to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_layer_answers_what_it_knows() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    let one = builder(&redis.url()).build(storage.clone()).await.unwrap();
    let other = builder(&redis.url()).build(storage.clone()).await.unwrap();
    assert!(one.needs_warm_up() && other.needs_warm_up());
    assert_eq!(layer(&one, b"nobody").await, Layer::Storage);
    fill(&one, &storage).await;
    until("both use the filter", async || !other.needs_warm_up()).await;
    storage.take_loads();

    for guard in [&one, &other] {
        filters(guard).await;
    }
    assert_eq!(layer(&one, b"alice").await, Layer::Storage);
    assert_eq!(layer(&one, b"alice").await, Layer::Local);
    assert_eq!(layer(&other, b"alice").await, Layer::Shared);
    assert_eq!(layer(&other, b"alice").await, Layer::Local);
    assert_eq!(storage.take_loads(), 1);

    // Written by one, seen by the other.
    one.put(b"bob", b"2").await.unwrap();
    one.put(b"alice", b"3").await.unwrap();
    assert_eq!(value(&one, b"alice").await.unwrap(), b"3");
    until("the message arrives", async || {
        value(&other, b"alice").await.unwrap() == b"3"
    })
    .await;
    assert_eq!(value(&other, b"bob").await.unwrap(), b"2");
    storage.take_loads();

    // Removed: it passes the filter for ever, and "absent" is cached.
    one.remove(b"bob").await.unwrap();
    assert_eq!(layer(&one, b"bob").await, Layer::Storage);
    assert_eq!(layer(&other, b"bob").await, Layer::Shared);
    assert_eq!(value(&other, b"bob").await, None);
    assert_eq!(storage.take_loads(), 1);
    let keys: [&[u8]; 4] = [b"nobody", b"alice", b"bob", b"no one"];
    let many = other.get_many(&keys).await.unwrap();
    assert_eq!(many, [None, Some(b"3"[..].into()), None, None]);
    assert_eq!(storage.take_loads(), 0);
    // An empty value is not "absent".
    one.put(b"bob", b"").await.unwrap();
    for guard in [&one, &other] {
        assert_eq!(value(guard, b"bob").await, Some(Vec::new()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waiters_on_a_cold_key_are_one_load() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"hot", b"1");
    storage.set(b"gone", b"1");
    let guard = builder(&redis.url()).build(storage.clone()).await.unwrap();
    fill(&guard, &storage).await;
    storage.unset(b"gone");
    storage.delay_ms.store(50, SeqCst);
    let keys: [(&[u8], bool); 2] = [(b"hot", true), (b"gone", false)];
    for (key, there) in keys {
        let waiters = (0..1000).map(|_| {
            let guard = guard.clone();
            tokio::spawn(async move { guard.get(key).await.unwrap().is_some() })
        });
        for answer in join_all(waiters).await {
            assert_eq!(answer.unwrap(), there);
        }
        assert_eq!(storage.take_loads(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn made_up_keys_take_no_more_than_the_error() {
    const KEYS: u32 = 20_000;
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.load_rows((0..10_000_u32).map(|key| (key.to_le_bytes().to_vec(), vec![1])));
    let guard = builder(&redis.url()).build(storage.clone()).await.unwrap();
    fill(&guard, &storage).await;
    let made_up: Vec<String> = (0..KEYS).map(|key| format!("made up {key}")).collect();
    for keys in made_up.chunks(500) {
        assert!(
            guard
                .get_many(keys)
                .await
                .unwrap()
                .iter()
                .all(Option::is_none)
        );
    }
    let mean = f64::from(KEYS) * 0.01;
    let most = mean + 5.0 * (mean * 0.99).sqrt();
    let loads = storage.take_loads();
    assert!(
        loads > 0 && loads as f64 <= most,
        "{loads} of at most {most}"
    );
    assert_eq!(redis.keys("value").await.len() as u64, loads);
    let stats = guard.stats();
    assert_eq!(stats.false_positives, loads);
    assert_eq!(stats.filter + stats.false_positives, u64::from(KEYS));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_module_all_keys_pass() {
    let redis = Redis::plain().await;
    let storage = Sqlite::new();
    storage.set(b"alice", b"1");
    let guard = builder(&redis.url()).build(storage.clone()).await.unwrap();
    let refused = crate::harness::try_fill(&guard, &storage)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("BF.RESERVE"), "{refused}");
    assert_eq!(layer(&guard, b"nobody").await, Layer::Storage);
    assert_eq!(
        layer(&guard, b"nobody").await,
        Layer::Storage,
        "no filter let it pass"
    );
    assert_eq!(redis.keys("value").await, [""; 0]);
    assert_eq!(layer(&guard, b"alice").await, Layer::Storage);
    assert_eq!(layer(&guard, b"alice").await, Layer::Local);
    guard.put(b"alice", b"2").await.unwrap();
    assert_eq!(value(&guard, b"alice").await.unwrap(), b"2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_in_each_process_learns_of_others_writes() {
    let redis = Redis::plain().await;
    let storage = Sqlite::new();
    let guard = async || {
        let guard = builder(&redis.url()).local_filter(10_000, 0.001);
        let guard = guard.build(storage.clone()).await.unwrap();
        fill(&guard, &storage).await;
        guard
    };
    let (one, other) = (guard().await, guard().await);
    filters(&other).await;
    for key in 0..500_u32 {
        let key = key.to_le_bytes();
        one.put(&key, b"1").await.unwrap();
        // At once: the answer waits for what was said before.
        assert_eq!(value(&other, &key).await.unwrap(), b"1");
    }
    assert!(other.stats().filter > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_read_before_a_write_is_stored_after_it() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    storage.set(b"k", b"0");
    let one = builder(&redis.url()).build(storage.clone()).await.unwrap();
    let other = builder(&redis.url()).build(storage.clone()).await.unwrap();
    fill(&one, &storage).await;
    storage.delay_ms.store(30, SeqCst);
    for round in 1..=20_u64 {
        // Loads that have read the old value and are on their way back.
        let readers = [&one, &other].map(|guard| {
            let guard = guard.clone();
            tokio::spawn(async move { value(&guard, b"k").await })
        });
        sleep(Duration::from_millis(2 * round)).await;
        let new = round.to_string().into_bytes();
        one.put(b"k", &new).await.unwrap();
        assert_eq!(value(&one, b"k").await.unwrap(), new);
        for reader in readers {
            reader.await.unwrap();
        }
        let sees = async || value(&other, b"k").await.unwrap() == new;
        until("the other sees the write", sees).await;
        assert_eq!(value(&one, b"k").await.unwrap(), new);
        sleep(Duration::from_millis(10)).await;
        assert_eq!(value(&other, b"k").await.unwrap(), new);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_while_another_filter_is_filled_are_in_it() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    let one = builder(&redis.url()).build(storage.clone()).await.unwrap();
    let other = builder(&redis.url()).build(storage.clone()).await.unwrap();
    fill(&one, &storage).await;
    until("both use the filter", async || !other.needs_warm_up()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers = [(&one, 1_u8), (&other, 2)].map(|(guard, who)| {
        let (guard, stop) = (guard.clone(), stop.clone());
        tokio::spawn(async move {
            let mut number = 0_u32;
            while !stop.load(SeqCst) {
                number += 1;
                let key = [&[who], &number.to_le_bytes()[..]].concat();
                guard.put(&key, b"1").await.unwrap();
                assert!(guard.get(&key).await.unwrap().is_some());
            }
        })
    });
    for filled in 0..3 {
        fill(if filled % 2 == 0 { &one } else { &other }, &storage).await;
        let keys = storage.keys();
        for keys in keys.chunks(500) {
            let values = one.get_many(keys).await.unwrap();
            assert!(values.iter().all(Option::is_some), "after {filled}");
        }
    }
    stop.store(true, SeqCst);
    for writer in writers {
        writer.await.unwrap();
    }
    let there = redis.keys("filter").await;
    assert_eq!(there.len(), 1, "the filters before are gone");
    filters(&other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_warm_ups_the_later_one_wins() {
    let redis = Redis::with_module().await;
    let storage = Sqlite::new();
    let guard = builder(&redis.url()).build(storage.clone()).await.unwrap();
    let early = tokio::spawn({
        let (guard, storage) = (guard.clone(), storage.clone());
        async move { crate::harness::try_fill(&guard, &storage).await }
    });
    sleep(Duration::from_millis(50)).await;
    fill(&guard, &storage).await;
    assert!(matches!(early.await.unwrap(), Err(Error::WarmUp(_))));
    filters(&guard).await;
}

/// A cluster of three nodes.
#[cfg(feature = "cluster")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_spread_over_a_cluster() {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let module = std::env::var("PETAL_REDIS_MODULE").unwrap();
        let arguments = ["--cluster-enabled", "yes", "--loadmodule", &module];
        nodes.push(Redis::new(&arguments).await);
    }
    for (node, slots) in nodes.iter().zip([(0, 5460), (5461, 10922), (10923, 16383)]) {
        let (first, last) = (slots.0.to_string(), slots.1.to_string());
        node.say::<String>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])
            .await;
        let port = nodes[0].port.to_string();
        node.say::<String>(&["CLUSTER", "MEET", "127.0.0.1", &port])
            .await;
    }
    for node in &nodes {
        let is_up = async || {
            let info: String = node.say(&["CLUSTER", "INFO"]).await;
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        until("the cluster is up", is_up).await;
    }
    let storage = Sqlite::new();
    storage.load_rows((0..100_u8).map(|key| (vec![key], vec![key])));
    let urls: Vec<String> = nodes.iter().map(Redis::url).collect();
    let guard = async || {
        let guard = builder("redis://unused").redis_cluster(&urls);
        guard.build(storage.clone()).await.unwrap()
    };
    let (one, other) = (guard().await, guard().await);
    fill(&one, &storage).await;
    until("both use the filter", async || !other.needs_warm_up()).await;
    filters(&other).await;
    for key in 0..100 {
        assert_eq!(value(&one, &[key]).await.unwrap(), [key]);
        assert_eq!(layer(&other, &[key]).await, Layer::Shared);
    }
    let mut values = Vec::new();
    for node in &nodes {
        values.push(node.keys("value").await.len());
    }
    assert_eq!(values.iter().sum::<usize>(), 100);
    assert!(values.iter().all(|values| *values > 0), "{values:?}");
    one.put(&[7], b"new").await.unwrap();
    until("the message arrives", async || {
        value(&other, &[7]).await.unwrap() == b"new"
    })
    .await;
}
