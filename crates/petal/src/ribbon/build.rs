//! From digests to the words of a filter.
//!
//! Owns the order of the keys, the number of shards, and the threads. The
//! result is the same whatever the order of the digests, the repeats among
//! them, and the number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use super::Static;
use super::directory::{Shards, entry};
use super::entry::{Entry, Valued};
use super::place::shard_of;
use super::shape::Columns;
use super::shard::{Builder, Plan, Shard};
use crate::error::{Error, Result};
use crate::identity::{About, Identity};
use crate::sizing::{Promise, SHARD_KEYS, check_items, words_enough};
use crate::words::Words;

/// Digests that are collected before their shards are built, for each thread.
const PENDING: usize = 1 << 19;

/// The number of shards for so many distinct keys.
pub(super) const fn shards_for(keys: u64) -> u64 {
    let shards = keys.div_ceil(SHARD_KEYS);
    if shards == 0 { 1 } else { shards }
}

/// Sorts keys by their digests and leaves each once.
fn sort_distinct<E: Entry>(digests: &mut Vec<E>, threads: usize) {
    // Every thread gets a range of digests of its own; one pass for each halving is all that is
    // done by a single thread.
    let threads = threads.min(MOST_HALVED);
    let mut pieces = vec![digests.as_mut_slice()];
    let mut bits = 0;
    while pieces.len() < threads {
        bits += 1;
        pieces = pieces
            .into_iter()
            .flat_map(|piece| <[_; 2]>::from(halve(piece, bits)))
            .collect();
    }
    run(threads, pieces, |piece| sort_piece(piece, bits));
    digests.dedup();
}

/// Threads that sort, at most.
const MOST_HALVED: usize = 64;

/// Splits digests that agree in all bits above bit number `bit`, counted from the top and from 1,
/// by that bit.
fn halve<E: Entry>(digests: &mut [E], bit: u32) -> (&mut [E], &mut [E]) {
    let mut zeros = 0;
    for i in 0..digests.len() {
        let digest = digests[i];
        digests.swap(i, zeros);
        // No branch, which would be guessed wrongly half the time.
        zeros += usize::from(digest.digest() >> (64 - bit) & 1 == 0);
    }
    digests.split_at_mut(zeros)
}

/// Sorts digests that agree in the highest bits.
fn sort_piece<E: Entry>(digests: &mut [E], bits: u32) {
    // Parts that fit a cache.
    let parts = shards_for(digests.len() as u64);
    let mut start = 0;
    for end in partition(digests, parts, bits) {
        digests[start..end].sort_unstable();
        start = end;
    }
}

/// Brings digests into the order of their parts (as many as `parts`, each a
/// range of digests, of those that agree in the highest bits) and returns where
/// each part ends. In place: every digest is moved to its part in a chain of
/// exchanges ("American flag sort", McIlroy, Bostic and McIlroy, 1993).
fn partition<E: Entry>(digests: &mut [E], parts: u64, bits: u32) -> Vec<usize> {
    let part_of = |key: E| index(shard_of(key.digest() << bits, parts).0);
    let mut ends = vec![0usize; usize::try_from(parts).unwrap_or(usize::MAX)];
    if parts == 1 {
        return vec![digests.len()];
    }
    for &digest in &*digests {
        ends[part_of(digest)] += 1;
    }
    let mut total = 0;
    let mut next: Vec<usize> = Vec::with_capacity(ends.len());
    for end in &mut ends {
        next.push(total);
        total += *end;
        *end = total;
    }
    for part in 0..ends.len() {
        while next[part] < ends[part] {
            let mut digest = digests[next[part]];
            loop {
                let home = part_of(digest);
                if home == part {
                    break;
                }
                std::mem::swap(&mut digest, &mut digests[next[home]]);
                next[home] += 1;
            }
            digests[next[part]] = digest;
            next[part] += 1;
        }
    }
    ends
}

/// The columns for so many keys and an expected error of at most `error`; 1 is no promise at all.
pub(crate) fn columns_for(identity: &Identity, items: u64, error: f64) -> Result<Columns> {
    check_items(items.max(1))?;
    let collisions = identity.collisions();
    let least = collisions.least_error(items);
    if !(error >= least && error <= 1.0) {
        return Err(Error::parameter(
            "error",
            error,
            format!("use {least:e} to 1 for {items} keys"),
        ));
    }
    Ok(Columns::for_error(error - collisions.probability(items)))
}

/// The same below 1, for a filter that has nothing else to say.
fn columns_below_1(identity: &Identity, items: u64, error: f64) -> Result<Columns> {
    let columns = columns_for(identity, items, error)?;
    if error < 1.0 {
        return Ok(columns);
    }
    let expected = "less: a filter that holds for everything says nothing";
    Err(Error::parameter("error", error, expected))
}

/// The same with a value for each key.
fn columns_with_values(identity: &Identity, items: u64, error: f64, bits: u32) -> Result<Columns> {
    if !(1..=Columns::MAX_VALUES).contains(&bits) {
        let expected = format!("use 1 to {} bits a key", Columns::MAX_VALUES);
        return Err(Error::parameter("value bits", bits, expected));
    }
    Ok(columns_for(identity, items, error)?.with_values(bits))
}

/// Words that a filter hardly ever passes.
fn expected_words(items: u64, columns: Columns) -> u64 {
    words_enough(items, columns.mean() + f64::from(columns.values))
}

/// Bytes that a filter hardly ever passes.
pub(crate) fn expected_bytes(items: u64, columns: Columns) -> u64 {
    8 * expected_words(items, columns)
}

/// Builds a [`Static`] from sorted digests, a few shards at a time: the memory
/// it takes beside the filter is some 16 MiB a thread (24 MiB with values),
/// however many keys there are. `E` is `u64`, a digest, or [`Valued`].
#[derive(Debug)]
pub struct StaticBuilder<E = u64> {
    about: About,
    columns: Columns,
    items: u64,
    /// How many shards there will be.
    count: u64,
    /// Those that were built.
    shards: Shards,
    /// Their words, behind the directory; what follows is 0.
    words: Words,
    threads: usize,
    builders: Vec<Builder>,
    /// Keys that are in no shard yet.
    pending: Vec<E>,
    taken: u64,
    last: Option<E>,
}

impl StaticBuilder<u64> {
    /// For so many digests of keys of an identity, and an expected error of at most
    /// `error`, on so many threads. Takes the memory of the filter.
    ///
    /// # Errors
    /// If `error` is not a number between 1e-12 and 1, digests of 64 bits
    /// cannot keep it for so many keys, there are more than 10^12, or the
    /// memory cannot be had.
    pub fn new(identity: Identity, items: u64, error: f64, threads: usize) -> Result<Self> {
        Self::with_shards(identity, items, error, threads, shards_for(items))
    }

    /// The same with a number of shards of the caller's choice, at least 1.
    pub(crate) fn with_shards(
        identity: Identity,
        items: u64,
        error: f64,
        threads: usize,
        count: u64,
    ) -> Result<Self> {
        let columns = columns_below_1(&identity, items, error)?;
        Self::create(
            identity,
            items,
            columns,
            promise(items, error),
            threads,
            count,
        )
    }

    /// Bytes that such a filter takes: a little more than it turns out to have.
    ///
    /// # Errors
    /// As for [`Self::new`], but for the memory.
    pub fn expected_bytes(identity: &Identity, items: u64, error: f64) -> Result<u64> {
        let columns = columns_below_1(identity, items, error)?;
        Ok(expected_bytes(items, columns))
    }
}

impl StaticBuilder<Valued> {
    /// For keys with a value of so many bits each: 1 to 16. With an error of 1 nothing tells
    /// whether a key is there, and only the bits of the values are stored.
    ///
    /// # Errors
    /// As for [`StaticBuilder::new`], or if there are other numbers of bits.
    pub fn with_values(
        identity: Identity,
        items: u64,
        error: f64,
        bits: u32,
        threads: usize,
    ) -> Result<Self> {
        let count = shards_for(items);
        Self::valued_with_shards(identity, items, error, bits, threads, count)
    }

    /// The same with a number of shards of the caller's choice, at least 1.
    pub(crate) fn valued_with_shards(
        identity: Identity,
        items: u64,
        error: f64,
        bits: u32,
        threads: usize,
        count: u64,
    ) -> Result<Self> {
        let columns = columns_with_values(&identity, items, error, bits)?;
        Self::create(
            identity,
            items,
            columns,
            promise(items, error),
            threads,
            count,
        )
    }

    /// Bytes that such a filter takes: a little more than it turns out to have.
    ///
    /// # Errors
    /// As for [`Self::with_values`], but for the memory.
    pub fn expected_bytes_with_values(
        identity: &Identity,
        items: u64,
        error: f64,
        bits: u32,
    ) -> Result<u64> {
        let columns = columns_with_values(identity, items, error, bits)?;
        Ok(expected_bytes(items, columns))
    }
}

/// What is promised, if it is anything.
fn promise(items: u64, error: f64) -> Option<Promise> {
    let items = items.max(1);
    (error < 1.0).then_some(Promise { items, error })
}

impl<E: Entry> StaticBuilder<E> {
    /// For so many columns.
    pub(crate) fn with_columns(
        identity: Identity,
        items: u64,
        columns: Columns,
        threads: usize,
    ) -> Result<Self> {
        Self::create(identity, items, columns, None, threads, shards_for(items))
    }

    fn create(
        identity: Identity,
        items: u64,
        columns: Columns,
        promise: Option<Promise>,
        threads: usize,
        count: u64,
    ) -> Result<Self> {
        let expected = expected_words(items, columns);
        Ok(Self {
            about: About::new(identity, promise),
            columns,
            items,
            count,
            shards: Shards::none_of(count),
            words: Words::zeroed(expected)?,
            threads: threads.max(1),
            builders: Vec::new(),
            pending: Vec::new(),
            taken: 0,
            last: None,
        })
    }

    /// Sorts keys by their digests and leaves each once, on so many threads: what
    /// [`Self::push`] takes. A digest with different values stays there with each.
    pub fn sort_distinct(keys: &mut Vec<E>, threads: usize) {
        sort_distinct(keys, threads);
    }

    /// Adds keys, by ascending digests and each once, behind those that were added before.
    ///
    /// # Errors
    /// If they are not in that order, a digest came with two values
    /// ([`Error::Ambiguous`]), a value has more bits than was said, there are more
    /// keys than was said, or the memory cannot be had.
    pub fn push(&mut self, keys: &[E]) -> Result<()> {
        for &key in keys {
            let digest = key.digest();
            if let Some(last) = self.last.filter(|last| last.digest() >= digest) {
                return Err(misplaced(last, key));
            }
            if u32::from(key.value()) >> self.columns.values != 0 {
                let bits = self.columns.values;
                let expected = format!("at most {}, in {bits} bits", (1u32 << bits) - 1);
                return Err(Error::parameter("value", key.value(), expected));
            }
            self.last = Some(key);
        }
        self.taken += keys.len() as u64;
        if self.taken > self.items {
            return Err(self.miscounted());
        }
        let most = PENDING * self.threads;
        let mut rest = keys;
        while !rest.is_empty() {
            let room = match most.saturating_sub(self.pending.len()) {
                0 => PENDING, // a shard that has more keys than that
                room => room,
            };
            let part = rest.split_off(..room.min(rest.len())).unwrap_or_default();
            // A vector that doubles would take twice as much.
            self.pending.reserve_exact(match self.pending.capacity() {
                0 => most.min(index(self.items)).max(part.len()),
                _ => part.len(),
            });
            self.pending.extend_from_slice(part);
            if self.pending.len() >= most {
                self.build_whole_shards()?;
            }
        }
        Ok(())
    }

    /// The filter.
    ///
    /// # Errors
    /// If fewer keys were added than was said, or the memory cannot be had.
    pub fn finish(mut self) -> Result<Static> {
        if self.taken != self.items {
            return Err(self.miscounted());
        }
        let pending = std::mem::take(&mut self.pending);
        self.build(&pending, self.count)?;
        self.into_filter()
    }

    fn miscounted(&self) -> Error {
        Error::parameter(
            "digests",
            self.taken,
            format!("the builder was made for {}", self.items),
        )
    }

    /// Builds the shards that will get no more digests.
    fn build_whole_shards(&mut self) -> Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let open = pending
            .last()
            .map_or(0, |last| shard_of(last.digest(), self.count).0);
        let whole = pending.partition_point(|key| shard_of(key.digest(), self.count).0 < open);
        self.build(&pending[..whole], open)?;
        pending.drain(..whole);
        self.pending = pending;
        Ok(())
    }

    /// Builds the shards up to `end` of the keys that belong to them.
    fn build(&mut self, keys: &[E], end: u64) -> Result<()> {
        let (count, columns) = (self.count, self.columns);
        let mut rest = keys;
        let mut at = self.shards.count();
        while at < end {
            // As many as there are results to be kept.
            let until = end.min(at + 4 * self.threads as u64);
            let plans: Vec<Plan<'_, E>> = (at..until)
                .map(|shard| {
                    let here = rest.partition_point(|key| shard_of(key.digest(), count).0 <= shard);
                    Plan {
                        keys: rest.split_off(..here).unwrap_or_default(),
                        shards: count,
                        columns,
                    }
                })
                .collect();
            let builders = Mutex::new(std::mem::take(&mut self.builders));
            let built = run(self.threads, plans.chunks(2).collect(), |plans| {
                let spare = builders.lock().ok().and_then(|mut all| all.pop());
                let mut builder: Builder = spare.unwrap_or_default();
                let shards = builder.build(plans);
                if let Ok(mut all) = builders.lock() {
                    all.push(builder);
                }
                shards
            });
            self.builders = builders.into_inner().unwrap_or_default();
            for shards in built {
                for shard in shards? {
                    self.append(&shard)?;
                }
            }
            at = until;
        }
        Ok(())
    }

    /// Puts a shard behind the others.
    fn append(&mut self, shard: &Shard) -> Result<()> {
        let (number, first) = (self.shards.count(), self.shards.next());
        let end = first + shard.words.len() as u64;
        if end > self.words.get().len() as u64 {
            // Rare: more keys were bumped than is usual.
            let mut larger = Words::zeroed(end + end / 8)?;
            let old = self.words.get();
            larger.get_mut()?[..old.len()].copy_from_slice(old);
            self.words = larger;
        }
        let words = self.words.get_mut()?;
        let at = index(first);
        words[at..at + shard.words.len()].copy_from_slice(&shard.words);
        if self.count > 1 {
            let entry = entry(first, shard.blocks);
            let at = index(number) * entry.len();
            words[at..at + entry.len()].copy_from_slice(&entry);
        }
        self.shards.push(self.columns, shard.blocks, end)?;
        Ok(())
    }

    fn into_filter(mut self) -> Result<Static> {
        self.about.insertions = Some(self.items);
        self.words.shorten(index(self.shards.end()));
        Ok(Static {
            columns: self.columns,
            shards: self.shards,
            words: self.words,
            about: self.about,
        })
    }
}

impl Static {
    /// A filter of the digests that keys of the identity have.
    pub(crate) fn build(
        identity: Identity,
        mut digests: Vec<u64>,
        error: f64,
        threads: usize,
    ) -> Result<Self> {
        sort_distinct(&mut digests, threads);
        let mut builder = StaticBuilder::new(identity, digests.len() as u64, error, threads)?;
        builder.build(&digests, builder.count)?;
        builder.into_filter()
    }

    /// The same with a value for each.
    pub(crate) fn build_with_values(
        identity: Identity,
        mut keys: Vec<Valued>,
        error: f64,
        bits: u32,
        threads: usize,
    ) -> Result<Self> {
        sort_distinct(&mut keys, threads);
        let items = keys.len() as u64;
        let mut builder = StaticBuilder::with_values(identity, items, error, bits, threads)?;
        builder.push(&keys)?;
        builder.finish()
    }
}

/// Why a key cannot stand behind another one.
fn misplaced<E: Entry>(last: E, key: E) -> Error {
    if last.digest() == key.digest() && last.value() != key.value() {
        return Error::Ambiguous {
            digest: key.digest(),
            answers: [last, key].map(|key| format!("the value {}", key.value())),
        };
    }
    Error::parameter(
        "digests",
        format!("{:#x} behind {:#x}", key.digest(), last.digest()),
        "give them in ascending order, each once",
    )
}

/// An index of words in memory.
#[expect(clippy::cast_possible_truncation, reason = "the words are in memory")]
const fn index(word: u64) -> usize {
    word as usize
}

/// Calls `work` for each item, on so many threads; the results are in order.
fn run<T: Send, R: Send>(threads: usize, items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = threads.clamp(1, items.len().max(1));
    if threads == 1 {
        return items.into_iter().map(work).collect();
    }
    let items: Vec<Mutex<(Option<T>, Option<R>)>> = items
        .into_iter()
        .map(|item| Mutex::new((Some(item), None)))
        .collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(place) = items.get(next.fetch_add(1, Relaxed)) {
                    // Nobody else comes to this place: the lock is free.
                    if let Ok(mut place) = place.lock()
                        && let Some(item) = place.0.take()
                    {
                        place.1 = Some(work(item));
                    }
                }
            });
        }
    });
    items
        .into_iter()
        .filter_map(|place| place.into_inner().ok()?.1)
        .collect()
}
