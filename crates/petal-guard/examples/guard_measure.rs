//! Measures the guard on real Redis and SQLite on loopback, and prints a table.
//!
//! ```console
//! $ bench/guard                 # writes bench/GUARD.md
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot go on has failed; the table is its output"
)]

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/servers/bypass.rs"]
mod bypass;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/servers/harness.rs"]
mod harness;

use std::future::Future;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use futures_util::future::join_all;
use petal_guard::{Guard, Storage};
use tokio::sync::mpsc;
use tokio::time::Instant;

use harness::{Redis, SECRET, Sqlite, fill};

const KEYS: u64 = 200_000;
const ERROR: f64 = 0.01;
const TASKS: usize = 64;
const RATE: u64 = 5_000;
const REQUESTS: u64 = 100_000;
const ATTACK: u64 = 1_000_000;

fn made_up(number: u64) -> Vec<u8> {
    format!("made up {number}").into_bytes()
}

/// A number between 0 and 1 of the sorted times.
fn quantile(times: &[Duration], at: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index"
    )]
    let at = ((times.len() - 1) as f64 * at) as usize;
    times[at].as_secs_f64() * 1e3
}

/// Absent keys at a fixed rate from 64 tasks. A thread of its own keeps the rate,
/// since tokio's clock counts milliseconds. Times count from when a request was due,
/// so that one that keeps others waiting is seen in theirs.
async fn at_a_rate<F: Future<Output = ()> + Send>(
    ask: impl Fn(Vec<u8>) -> F + Clone + Send + Sync + 'static,
) -> Vec<Duration> {
    let (senders, tasks): (Vec<_>, Vec<_>) = (0..TASKS)
        .map(|_| {
            let (sender, mut requests) = mpsc::unbounded_channel::<(Instant, u64)>();
            let ask = ask.clone();
            let task = tokio::spawn(async move {
                let mut times = Vec::new();
                while let Some((due, number)) = requests.recv().await {
                    ask(made_up(number)).await;
                    times.push(due.elapsed());
                }
                times
            });
            (sender, task)
        })
        .unzip();
    let pace = std::thread::spawn(move || {
        let begin = Instant::now();
        for (number, sender) in (0..REQUESTS).zip(senders.iter().cycle()) {
            let due = begin + Duration::from_micros(1_000_000 / RATE * number);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            sender.send((due, number)).unwrap();
        }
    });
    let times = join_all(tasks).await;
    pace.join().unwrap();
    let mut times: Vec<Duration> = times.into_iter().flat_map(Result::unwrap).collect();
    times.sort_unstable();
    times
}

async fn absent_reads(guard: &Guard, storage: &Sqlite) {
    storage.take_loads();
    let direct = at_a_rate({
        let storage = storage.clone();
        move |key| {
            let storage = storage.clone();
            async move { assert_eq!(storage.load(&key).await.unwrap(), None) }
        }
    })
    .await;
    let without = storage.take_loads();
    let guarded = at_a_rate({
        let guard = guard.clone();
        move |key| {
            let guard = guard.clone();
            async move { assert_eq!(guard.get(&key).await.unwrap(), None) }
        }
    })
    .await;
    let with = storage.take_loads();
    println!("| storage reads of {REQUESTS} requests for absent keys: loader only | | {without} |");
    println!(
        "| the same through the guard, filter at 1 % | at least 90 × fewer | {with}: {:.0} × fewer |",
        without as f64 / with as f64
    );
    for (what, least, times) in [
        ("through the guard", "99 %: under 2 ms", &guarded),
        ("loader only", "", &direct),
    ] {
        println!(
            "| time at {RATE} requests/s from {TASKS} tasks, {what} | {least} | 50 % {:.2} ms, 99 % {:.2} ms, 99.9 % {:.2} ms |",
            quantile(times, 0.5),
            quantile(times, 0.99),
            quantile(times, 0.999)
        );
    }
}

async fn waiters(guard: &Guard, storage: &Sqlite) {
    storage.take_loads();
    storage.delay_ms.store(50, SeqCst);
    let key = 7_u64.to_le_bytes();
    let waiters = (0..1000).map(|_| {
        let guard = guard.clone();
        tokio::spawn(async move { assert!(guard.get(&key).await.unwrap().is_some()) })
    });
    for waiter in join_all(waiters).await {
        waiter.unwrap();
    }
    storage.delay_ms.store(0, SeqCst);
    println!(
        "| loads for 1,000 waiters on a cold key | 1 | {} |",
        storage.take_loads()
    );
}

async fn attack(guard: &Guard, storage: &Sqlite, redis: &Redis) {
    storage.take_loads();
    let before = redis.keys("value").await.len();
    let next = Arc::new(AtomicU64::new(0));
    let begin = Instant::now();
    let tasks = (0..TASKS).map(|_| {
        let (guard, next) = (guard.clone(), next.clone());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, SeqCst);
                if number >= ATTACK {
                    return;
                }
                // Others than those of the rate.
                assert_eq!(guard.get(&made_up(REQUESTS + number)).await.unwrap(), None);
            }
        })
    });
    for task in join_all(tasks).await {
        task.unwrap();
    }
    let took = begin.elapsed();
    let mean = ERROR * ATTACK as f64;
    let most = mean + 5.0 * (mean * (1.0 - ERROR)).sqrt();
    println!(
        "| storage reads in an attack of {ATTACK} made-up keys | at most {most:.0} | {} |",
        storage.take_loads()
    );
    println!(
        "| keys that the shared cache has more after it | at most {most:.0} | {} |",
        redis.keys("value").await.len() - before
    );
    println!(
        "| requests/s of that attack, as fast as {TASKS} tasks go | | {:.0} |",
        ATTACK as f64 / took.as_secs_f64()
    );
}

fn line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::main]
async fn main() {
    let cpu = line(
        "sh",
        &[
            "-c",
            "sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1",
        ],
    );
    let redis = Redis::with_module().await;
    println!(
        "{}; {cpu}, {} cores; {}.",
        line("date", &["+%F"]),
        line("nproc", &[]),
        line("sh", &["-c", "redis-server --version | cut -d ' ' -f 1-3"])
    );
    println!("Guard, load generator, Redis and SQLite ({KEYS} keys) share the machine.");
    println!();
    println!("| | wanted | measured |");
    println!("|---|---|---|");
    let storage = Sqlite::new();
    storage.load_rows((0..KEYS).map(|key| (key.to_le_bytes().to_vec(), vec![1; 100])));
    let guard = Guard::builder("measure")
        .secret(SECRET)
        .redis(&redis.url())
        .remote_filter(KEYS, ERROR)
        .build(storage.clone())
        .await
        .unwrap();
    fill(&guard, &storage).await;
    absent_reads(&guard, &storage).await;
    waiters(&guard, &storage).await;
    attack(&guard, &storage, &redis).await;
    let rate = guard.stats().false_positive_rate().unwrap_or(0.0);
    println!(
        "| observed error of the filter | at most 1 % | {:.3} % |",
        rate * 100.0
    );
    let trial = bypass::bypass(Duration::from_secs(2)).await;
    println!(
        "| wrong \"absent\", two guards and a writer past them, feeds delayed and cut | 0 | {} of {} |",
        trial.wrong, trial.asked
    );
    println!(
        "| keys nobody has that the filter answered meanwhile | | {} |",
        trial.filtered
    );
}
