//! Two threads that insert into one filter.
//!
//! Owns the run: both threads start together, each on a core of its own, and the time is that from
//! the first start to the last end. Elapsed time, as nothing else shows what the threads cost each
//! other; a core that somebody else uses only adds to it.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use fastbloom::AtomicBloomFilter;
use foldhash::fast::FixedState;
use petal::{ConcurrentBloomFilter, Int, KeyHasher, mask_words};

use crate::filters::keys::{Ints, Source};
use crate::filters::measure::pin;
use crate::filters::petal::BATCH;

/// Threads, on the cores from 0.
const THREADS: usize = 2;

/// A filter that threads may insert into at once.
pub(crate) trait Shared: Sync {
    fn insert(&self, keys: &[i64]);
    fn contains(&self, key: i64) -> bool;
}

impl Shared for AtomicBloomFilter<FixedState> {
    fn insert(&self, keys: &[i64]) {
        for key in keys {
            self.insert(key);
        }
    }

    fn contains(&self, key: i64) -> bool {
        self.contains(&key)
    }
}

impl Shared for ConcurrentBloomFilter<Int> {
    fn insert(&self, keys: &[i64]) {
        let mut mask = [0; mask_words(BATCH)];
        for batch in keys.chunks(BATCH) {
            self.insert_batch(batch, &mut mask)
                .expect("the mask has a bit for each key");
        }
    }

    fn contains(&self, key: i64) -> bool {
        self.contains(&key)
    }
}

/// fastbloom's filter by its own sizing.
pub(crate) fn fastbloom(items: usize, error: f64) -> Box<dyn Shared> {
    Box::new(
        AtomicBloomFilter::with_false_pos(error)
            .hasher(FixedState::default())
            .expected_items(items),
    )
}

/// petal's filter, asked in batches.
///
/// # Errors
/// A message if it cannot be made.
pub(crate) fn petal(items: usize, error: f64) -> Result<Box<dyn Shared>, String> {
    ConcurrentBloomFilter::<Int>::with_hasher(items as u64, error, KeyHasher::default())
        .map(|filter| Box::new(filter) as Box<dyn Shared>)
        .map_err(|refused| refused.to_string())
}

/// The least nanoseconds a key, both threads together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedTimes {
    /// Keys the filter has not seen.
    pub(crate) new: f64,
    /// The same keys again.
    pub(crate) repeated: f64,
}

impl SharedTimes {
    pub(crate) const NONE: Self = Self {
        new: f64::INFINITY,
        repeated: f64::INFINITY,
    };

    /// Takes one more filter into account, empty and sized for `items` keys.
    ///
    /// # Errors
    /// If a core is missing or a key is not found.
    pub(crate) fn round(
        &mut self,
        filter: &dyn Shared,
        seed: u64,
        items: usize,
    ) -> Result<(), String> {
        let mut keys = Ints::default();
        Source::new(seed, items).members(0..items as u64, &mut keys);
        self.new = self.new.min(insert(filter, &keys.0)?);
        self.repeated = self.repeated.min(insert(filter, &keys.0)?);
        match keys.0.iter().filter(|&&key| !filter.contains(key)).count() {
            0 => Ok(()),
            lost => Err(format!("{lost} members were not found")),
        }
    }
}

/// Inserts the keys, each thread its share. Returns the nanoseconds a key.
fn insert(filter: &dyn Shared, keys: &[i64]) -> Result<f64, String> {
    let start = Barrier::new(THREADS);
    let shares = keys.chunks(keys.len().div_ceil(THREADS)).enumerate();
    let times = thread::scope(|scope| {
        let threads: Vec<_> = shares
            .map(|(core, share)| {
                let start = &start;
                scope.spawn(move || {
                    let pinned = pin(core);
                    start.wait();
                    let began = Instant::now();
                    filter.insert(share);
                    pinned.map(|()| (began, Instant::now()))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .map_err(|_| String::from("a thread panicked"))?
            })
            .collect::<Result<Vec<_>, String>>()
    })?;
    let began = times.iter().map(|&(began, _)| began).min();
    let ended = times.iter().map(|&(_, ended)| ended).max();
    match (began, ended) {
        (Some(began), Some(ended)) => Ok((ended - began).as_secs_f64() * 1e9 / keys.len() as f64),
        _ => Err("there were no keys to insert".into()),
    }
}
