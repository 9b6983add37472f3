//! A guard in one process, with a paused clock: what needs no server.

#![expect(clippy::unwrap_used, reason = "a test helper fails as a test does")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use petal_guard::{BoxError, Error, Guard, Layer, Storage};
use tokio::sync::Mutex;
use tokio::time::{advance, sleep, timeout};

type Map = std::collections::BTreeMap<Vec<u8>, Vec<u8>>;

/// A map that takes a while.
#[derive(Clone, Default)]
struct Slow {
    map: Arc<Mutex<Map>>,
    loads: Arc<AtomicU32>,
    most: Arc<AtomicU32>,
    under_way: Arc<AtomicU32>,
    millis: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
    panics: Arc<AtomicBool>,
}

#[async_trait]
impl Storage for Slow {
    async fn load(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BoxError> {
        self.loads.fetch_add(1, SeqCst);
        let now = self.under_way.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
        // What is read is what was there at the beginning.
        let value = self.map.lock().await.get(key).cloned();
        sleep(Duration::from_millis(self.millis.load(SeqCst))).await;
        self.under_way.fetch_sub(1, SeqCst);
        assert!(!self.panics.load(SeqCst), "as the test wants");
        if self.fails.load(SeqCst) {
            return Err("storage is ill".into());
        }
        Ok(value)
    }

    async fn store(&self, key: &[u8], value: &[u8]) -> Result<(), BoxError> {
        sleep(Duration::from_millis(self.millis.load(SeqCst))).await;
        self.map.lock().await.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    async fn delete(&self, key: &[u8]) -> Result<(), BoxError> {
        self.map.lock().await.remove(key);
        Ok(())
    }
}

impl Slow {
    async fn with(keys: &[&str]) -> Self {
        let slow = Self::default();
        for key in keys {
            slow.set(key, "1").await;
        }
        slow
    }

    async fn set(&self, key: &str, value: &str) {
        self.map.lock().await.insert(key.into(), value.into());
    }

    fn loads(&self) -> u32 {
        self.loads.swap(0, SeqCst)
    }
}

async fn fill(guard: &Guard, keys: &[&str]) {
    let keys = keys.iter().map(|key| Ok::<_, BoxError>(*key));
    guard.warm_up(|| stream::iter(keys)).await.unwrap();
}

async fn value(guard: &Guard, key: &str) -> Option<String> {
    let value = guard.get(key.as_bytes()).await.unwrap();
    value.map(|value| String::from_utf8_lossy(&value).into_owned())
}

async fn layer(guard: &Guard, key: &str) -> Layer {
    guard.get_traced(key.as_bytes()).await.unwrap().layer
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_is_not_filled_lets_pass_and_one_that_is_answers() {
    let storage = Slow::with(&["here"]).await;
    let guard = Guard::builder("g").local_filter(100, 1e-6);
    let guard = guard.build(storage.clone()).await.unwrap();
    assert!(guard.needs_warm_up());
    assert_eq!(layer(&guard, "gone").await, Layer::Storage);
    assert_eq!(
        layer(&guard, "gone").await,
        Layer::Storage,
        "not cached: it passed no filter"
    );
    assert_eq!(value(&guard, "here").await.as_deref(), Some("1"));
    assert_eq!(storage.loads(), 3);

    fill(&guard, &["here"]).await;
    assert!(!guard.needs_warm_up());
    assert_eq!(layer(&guard, "gone").await, Layer::Filter);
    assert_eq!(layer(&guard, "here").await, Layer::Local);
    guard.put(b"gone", b"2").await.unwrap();
    assert_eq!(value(&guard, "gone").await.as_deref(), Some("2"));
    guard.remove(b"gone").await.unwrap();
    assert_eq!(value(&guard, "gone").await, None);
    assert_eq!(storage.loads(), 2);
    assert_eq!(layer(&guard, "gone").await, Layer::Local);

    let stats = guard.stats();
    assert_eq!(
        (stats.filter, stats.false_positives, stats.unanswered),
        (1, 2, 3)
    );
    assert_eq!(stats.false_positive_rate(), Some(2.0 / 3.0));
    let many = guard.get_many(&["here", "gone", "nobody"]).await.unwrap();
    assert_eq!(many, [Some(Arc::from(&b"1"[..])), None, None]);
}

#[tokio::test(start_paused = true)]
async fn absent_is_cached_for_its_time_and_spread() {
    let keys: Vec<String> = (0..200).map(|key| key.to_string()).collect();
    let names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let storage = Slow::default();
    let guard = Guard::builder("g").local_filter(1000, 1e-6);
    let guard = guard.build(storage.clone()).await.unwrap();
    // In the filter and not in storage: what a removed key looks like.
    fill(&guard, &names).await;
    guard.get_many(&names).await.unwrap();
    assert_eq!(storage.loads(), 200);
    advance(Duration::from_millis(269_900)).await;
    guard.get_many(&names).await.unwrap();
    assert_eq!(storage.loads(), 0);
    advance(Duration::from_secs(30)).await;
    guard.get_many(&names).await.unwrap();
    // Binomial with 200 and a half: five sigma are 35.4.
    let half = storage.loads();
    assert!((65..=135).contains(&half), "{half}");
    advance(Duration::from_secs(31)).await;
    guard.get_many(&names).await.unwrap();
    assert_eq!(storage.loads(), 200 - half);
}

#[tokio::test(start_paused = true)]
async fn a_stale_value_is_served_while_it_is_loaded_once() {
    let storage = Slow::with(&["k"]).await;
    let guard = Guard::builder("g");
    let guard = guard.build(storage.clone()).await.unwrap();
    assert_eq!(value(&guard, "k").await.as_deref(), Some("1"));
    storage.loads();
    storage.set("k", "2").await;
    storage.millis.store(10, SeqCst);
    advance(Duration::from_secs(301)).await;
    let answers = join_all((0..50).map(|_| guard.get_traced(b"k"))).await;
    for answer in answers {
        let answer = answer.unwrap();
        assert!(answer.stale);
        assert_eq!(answer.value.as_deref(), Some(&b"1"[..]));
    }
    sleep(Duration::from_millis(20)).await;
    assert_eq!(value(&guard, "k").await.as_deref(), Some("2"));
    assert_eq!(storage.loads(), 1);

    // Storage fails: the stale value lasts as long as it may, and storage is
    // asked once a second.
    storage.fails.store(true, SeqCst);
    advance(Duration::from_secs(301)).await;
    for _ in 0..50 {
        assert_eq!(value(&guard, "k").await.as_deref(), Some("2"));
        sleep(Duration::from_millis(100)).await;
    }
    assert!((4..=6).contains(&storage.loads()));
    advance(Duration::from_secs(60)).await;
    assert!(matches!(guard.get(b"k").await, Err(Error::Storage(_))));
}

#[tokio::test(start_paused = true)]
async fn an_error_reaches_all_waiters_and_is_not_cached() {
    let storage = Slow::with(&["k"]).await;
    storage.millis.store(10, SeqCst);
    storage.fails.store(true, SeqCst);
    let guard = Guard::builder("g");
    let guard = guard.build(storage.clone()).await.unwrap();
    let answers = join_all((0..100).map(|_| guard.get(b"k"))).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(Error::Storage(_))))
    );
    assert_eq!(storage.loads(), 1);
    storage.fails.store(false, SeqCst);
    assert_eq!(value(&guard, "k").await.as_deref(), Some("1"));
    let stats = guard.stats();
    assert_eq!((stats.loads, stats.errors), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_load_that_panics_leaves_nobody_waiting() {
    let storage = Slow::with(&["k"]).await;
    storage.millis.store(10, SeqCst);
    storage.panics.store(true, SeqCst);
    let guard = Guard::builder("g").max_loads(1);
    let guard = guard.build(storage.clone()).await.unwrap();
    let answers = join_all((0..10).map(|_| guard.get(b"k"))).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(Error::LoadLost)))
    );
    storage.panics.store(false, SeqCst);
    assert_eq!(value(&guard, "k").await.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn loads_have_limits() {
    let storage = Slow::default();
    storage.millis.store(600, SeqCst);
    let guard = Guard::builder("g")
        .max_loads(2)
        .load_timeout(Duration::from_secs(1));
    let guard = guard.build(storage.clone()).await.unwrap();
    let keys: Vec<String> = (0..5).map(|key| key.to_string()).collect();
    let answers = join_all(keys.iter().map(|key| guard.get(key.as_bytes()))).await;
    // Two at once; two after 600 ms, which run out of time; one never begins.
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 2);
    let late = |answer: &&Result<_, Error>| matches!(answer, Err(Error::LoadTimeout(_)));
    assert_eq!(answers.iter().filter(late).count(), 2);
    let full = |answer: &&Result<_, Error>| matches!(answer, Err(Error::Overloaded(_)));
    assert_eq!(answers.iter().filter(full).count(), 1);
    assert_eq!(storage.most.load(SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_a_write_is_not_served_after_it() {
    let storage = Slow::with(&["k"]).await;
    storage.millis.store(10, SeqCst);
    let guard = Guard::builder("g");
    let guard = guard.build(storage.clone()).await.unwrap();
    for round in 0..20 {
        let reader = tokio::spawn({
            let guard = guard.clone();
            async move { value(&guard, "k").await }
        });
        sleep(Duration::from_millis(round)).await;
        let new = round.to_string();
        guard.put(b"k", new.as_bytes()).await.unwrap();
        assert_eq!(value(&guard, "k").await.unwrap(), new);
        reader.await.unwrap();
        assert_eq!(value(&guard, "k").await.unwrap(), new);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_goes_on_without_its_caller() {
    let storage = Slow::with(&[]).await;
    let guard = Guard::builder("g").local_filter(100, 1e-6);
    let guard = guard.build(storage.clone()).await.unwrap();
    fill(&guard, &[]).await;
    storage.millis.store(10, SeqCst);
    let put = guard.put(b"k", b"1");
    assert!(timeout(Duration::from_millis(1), put).await.is_err());
    sleep(Duration::from_millis(20)).await;
    assert_eq!(value(&guard, "k").await.as_deref(), Some("1"));
    let slow = guard.write(b"k", async {
        sleep(Duration::from_secs(6)).await;
        Ok(())
    });
    assert!(matches!(slow.await, Err(Error::WriteTimeout(_))));
}

#[tokio::test(start_paused = true)]
async fn keys_written_while_the_filter_is_filled_are_in_it() {
    let storage = Slow::default();
    let guard = Guard::builder("g").local_filter(10_000, 1e-6);
    let guard = guard.build(storage.clone()).await.unwrap();
    fill(&guard, &[]).await;
    storage.millis.store(3, SeqCst);
    let writer = tokio::spawn({
        let guard = guard.clone();
        async move {
            for key in 0..300 {
                guard.put(format!("{key}").as_bytes(), b"1").await.unwrap();
            }
        }
    });
    for _ in 0..20 {
        sleep(Duration::from_millis(7)).await;
        let map = storage.map.clone();
        let scan = guard.warm_up(|| {
            stream::once(async move {
                let keys: Vec<Vec<u8>> = map.lock().await.keys().cloned().collect();
                // A scan that takes its time sees nothing newer.
                sleep(Duration::from_millis(20)).await;
                stream::iter(keys.into_iter().map(Ok::<_, BoxError>))
            })
            .flatten()
        });
        scan.await.unwrap();
        let keys: Vec<Vec<u8>> = storage.map.lock().await.keys().cloned().collect();
        for key in keys {
            assert!(guard.get(&key).await.unwrap().is_some());
        }
    }
    writer.await.unwrap();
    assert_eq!(layer(&guard, "another").await, Layer::Filter);
}

#[tokio::test]
async fn settings_that_do_not_fit_are_refused_with_the_remedy() {
    let refused = async |builder: petal_guard::Builder, words: &str| {
        let error = builder.build(Slow::default()).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(Guard::builder("g").remote_filter(1, 0.1), "set redis").await;
    refused(Guard::builder("g").redis("redis://127.0.0.1:1"), "secret").await;
    refused(Guard::builder("").local_filter(1, 0.1), "letters").await;
    refused(Guard::builder("g").local_filter(0, 0.1), "1 or more").await;
    refused(Guard::builder("g").local_filter(1, f64::NAN), "below 1").await;
    refused(
        Guard::builder("g").local_filter(u64::MAX, 0.1),
        "local filter",
    )
    .await;
    refused(Guard::builder("g").max_loads(0), "max_loads").await;
    refused(Guard::builder("g").jitter(-1.0), "jitter").await;
    refused(
        Guard::builder("g").load_timeout(Duration::ZERO),
        "load_timeout",
    )
    .await;
    refused(Guard::builder("g").max_lag(Duration::MAX), "ten years").await;
    refused(Guard::builder("g").redis("no").secret([1; 16]), "address").await;
    let none = Guard::builder("g").build(Slow::default()).await.unwrap();
    let keys = || stream::empty::<Result<&str, BoxError>>();
    assert!(matches!(none.warm_up(keys).await, Err(Error::Settings(_))));
}
