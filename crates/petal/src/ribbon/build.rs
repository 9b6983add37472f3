//! From digests to the words of a filter.
//!
//! Owns the order of the digests, the number of shards, and the threads. The
//! result is the same whatever the order of the digests, the repeats among
//! them, and the number of threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use super::place::shard_of;
use super::shape::Columns;
use super::shard::{Builder, Shard};

/// Keys a shard has on average, at most: its matrix takes 4 MiB, and what is
/// lost at the ends of its layers is below a thousandth.
const SHARD_KEYS: u64 = 1 << 18;

/// The number of shards for so many distinct keys.
pub(super) const fn shards_for(keys: u64) -> u64 {
    let shards = keys.div_ceil(SHARD_KEYS);
    if shards == 0 { 1 } else { shards }
}

/// Sorts digests and leaves each once.
pub(super) fn sort_distinct(digests: &mut Vec<u64>, threads: usize) {
    // Parts that are sorted alone fit a cache, and every thread takes some.
    let parts = shards_for(digests.len() as u64);
    let ends = partition(digests, parts);
    let mut pieces = Vec::with_capacity(ends.len());
    let mut rest = digests.as_mut_slice();
    let mut start = 0;
    for &end in &ends {
        let (piece, behind) = rest.split_at_mut(end - start);
        pieces.push(piece);
        rest = behind;
        start = end;
    }
    run(threads, pieces, |piece| piece.sort_unstable());
    digests.dedup();
}

/// Brings digests into the order of their parts (as many as `parts`, each a
/// range of digests) and returns where each part ends. In place: every digest
/// is moved to its part in a chain of exchanges ("American flag sort",
/// McIlroy, Bostic and McIlroy, 1993).
fn partition(digests: &mut [u64], parts: u64) -> Vec<usize> {
    let part_of = |digest| shard_of(digest, parts).0 as usize;
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

/// The shards of sorted distinct digests.
pub(super) fn build_shards(digests: &[u64], columns: Columns, threads: usize) -> Vec<Shard> {
    let shards = shards_for(digests.len() as u64);
    let mut rest = digests;
    let ranges: Vec<&[u64]> = (0..shards)
        .map(|shard| {
            let count = rest.partition_point(|&digest| shard_of(digest, shards).0 <= shard);
            rest.split_off(..count).unwrap_or_default()
        })
        .collect();
    let builders = Mutex::new(Vec::new());
    run(threads, ranges, |range| {
        let spare = builders.lock().ok().and_then(|mut all| all.pop());
        let mut builder: Builder = spare.unwrap_or_default();
        let shard = builder.build(range, shards, columns);
        if let Ok(mut all) = builders.lock() {
            all.push(builder);
        }
        shard
    })
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
