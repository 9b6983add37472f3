//! The clock, and the rounds that alternate the filters.
//!
//! Owns how a time and an error are measured. Each round builds every filter anew, with keys that
//! are the same for all filters of the round and new in each; of all repetitions the least time
//! counts. Filling a buffer with keys is never timed.

use std::hint::black_box;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::filters::contestant::Contestant;
use crate::filters::keys::{Keys, Source};

/// Runs the calling thread on one core.
///
/// # Errors
/// A message if the system refuses.
pub fn pin(core: usize) -> Result<(), String> {
    let mut only = CpuSet::new();
    if core >= CpuSet::MAX_CPU {
        return Err(format!("there is no core {core}"));
    }
    only.set(core);
    sched_setaffinity(None, &only)
        .map_err(|refused| format!("cannot run on core {core}: {refused}"))
}

/// CPU time of the calling thread in nanoseconds.
fn thread_nanoseconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// What `work` returns, and the nanoseconds of CPU it took for each of `keys`.
pub(crate) fn timed<T>(keys: usize, work: impl FnOnce() -> T) -> (f64, T) {
    let start = thread_nanoseconds();
    let result = black_box(work());
    ((thread_nanoseconds() - start) / keys as f64, result)
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// New keys, one call each.
    Insert,
    /// Questions about members, one call each.
    Hit,
    /// Questions about others.
    Miss,
    /// Half of each, in random order.
    Half,
    /// New keys in batches.
    InsertBatch,
    /// Half of each in batches.
    HalfBatch,
    /// Members removed, one call each.
    Remove,
    /// Members removed in batches.
    RemoveBatch,
}

impl Op {
    /// All of them, in the order of the tables.
    pub(crate) const ALL: [Self; 8] = [
        Self::Insert,
        Self::Hit,
        Self::Miss,
        Self::Half,
        Self::InsertBatch,
        Self::HalfBatch,
        Self::Remove,
        Self::RemoveBatch,
    ];

    /// What the tables call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Half => "half hits",
            Self::InsertBatch => "batched insert",
            Self::HalfBatch => "batched half hits",
            Self::Remove => "remove",
            Self::RemoveBatch => "batched remove",
        }
    }
}

/// The least nanoseconds a key of each [`Op`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times([f64; Op::ALL.len()]);

impl Times {
    /// Nothing measured yet.
    pub(crate) const NONE: Self = Self([f64::INFINITY; Op::ALL.len()]);

    /// Takes a time into account.
    pub(crate) fn note(&mut self, op: Op, nanoseconds: f64) {
        let least = &mut self.0[op as usize];
        *least = least.min(nanoseconds);
    }

    /// The least time, if it was measured.
    pub(crate) fn get(&self, op: Op) -> Option<f64> {
        Some(self.0[op as usize]).filter(|least| least.is_finite())
    }
}

/// Runs the keys through the filter. Returns the time a key and, for questions, how many were "seen";
/// `None` if the filter has no such call.
fn run<K: Keys>(filter: &mut dyn Contestant<K>, op: Op, keys: &K) -> Option<(f64, usize)> {
    let keys = black_box(keys);
    Some(match op {
        Op::Insert => timed(keys.len(), || {
            filter.insert(keys);
            0
        }),
        Op::Hit | Op::Miss | Op::Half => timed(keys.len(), || filter.count(keys)),
        Op::InsertBatch => {
            let filter = filter.batches()?;
            timed(keys.len(), || {
                filter.insert(keys);
                0
            })
        }
        Op::HalfBatch => {
            let filter = filter.batches()?;
            timed(keys.len(), || filter.count(keys))
        }
        Op::Remove => {
            let (nanoseconds, removed) = timed(keys.len(), || filter.remove(keys));
            (nanoseconds, removed?)
        }
        Op::RemoveBatch => {
            let filter = filter.batches()?;
            let (nanoseconds, removed) = timed(keys.len(), || filter.remove(keys));
            (nanoseconds, removed?)
        }
    })
}

/// Inserts every member. Runs of single calls and of batches take turns; `turn` says which begins.
///
/// The first 1/32 of the members are not timed: they give the filter's memory its pages.
pub(crate) fn fill<K: Keys>(
    filter: &mut dyn Contestant<K>,
    source: &Source,
    turn: usize,
    times: &mut Times,
) {
    let items = source.items();
    let (first, run_length) = match filter.takes_all_at_once() {
        true => (items, items),
        false => (items / 32, K::RUN as u64),
    };
    let mut keys = K::default();
    let (mut start, mut turn) = (0, turn);
    while start < items {
        let timed = start > 0 || first == items;
        let end = items.min(start + if start == 0 { first } else { run_length });
        source.members(start..end, &mut keys);
        let op = match turn % 2 == 1 && filter.batches().is_some() {
            true => Op::InsertBatch,
            false => Op::Insert,
        };
        if let Some((nanoseconds, _)) = run(filter, op, &keys)
            && timed
        {
            times.note(op, nanoseconds);
            turn += 1;
        }
        start = end;
    }
}

/// Asks the filled filter, each kind of question `runs` times.
///
/// # Errors
/// If a member is not found.
pub(crate) fn ask<K: Keys>(
    filter: &mut dyn Contestant<K>,
    source: &mut Source,
    runs: usize,
    times: &mut Times,
) -> Result<(), String> {
    let mut keys = K::default();
    for op in [Op::Hit, Op::Miss, Op::Half, Op::HalfBatch].repeat(runs) {
        let members = match op {
            Op::Hit => source.present(K::RUN, &mut keys),
            Op::Miss => source.absent(K::RUN, &mut keys),
            _ => source.half(K::RUN, &mut keys),
        };
        if let Some((nanoseconds, seen)) = run(filter, op, &keys) {
            times.note(op, nanoseconds);
            if seen < members {
                return Err(format!("{} members were not found", members - seen));
            }
        }
    }
    Ok(())
}

/// Removes every member, if the filter can. Runs of single calls and of batches take turns.
///
/// # Errors
/// If the filter says of a member that it is not there.
pub(crate) fn empty<K: Keys>(
    filter: &mut dyn Contestant<K>,
    source: &Source,
    turn: usize,
    times: &mut Times,
) -> Result<(), String> {
    let items = source.items();
    let mut keys = K::default();
    let (mut start, mut turn) = (0, turn);
    while start < items {
        let end = items.min(start + K::RUN as u64);
        source.members(start..end, &mut keys);
        let op = match turn % 2 == 1 && filter.batches().is_some() {
            true => Op::RemoveBatch,
            false => Op::Remove,
        };
        let Some((nanoseconds, removed)) = run(filter, op, &keys) else {
            return Ok(());
        };
        times.note(op, nanoseconds);
        if removed < keys.len() {
            return Err(format!("{} members were not there", keys.len() - removed));
        }
        start = end;
        turn += 1;
    }
    Ok(())
}

/// A share of absent keys that were "seen".
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) seen: u64,
    pub(crate) asked: u64,
}

impl Measured {
    /// The error.
    pub(crate) fn error(self) -> f64 {
        self.seen as f64 / self.asked as f64
    }

    /// Asks for `count` more absent keys.
    pub(crate) fn ask<K: Keys>(
        &mut self,
        filter: &mut dyn Contestant<K>,
        source: &mut Source,
        count: u64,
    ) {
        let mut keys = K::default();
        let end = self.asked + count;
        while self.asked < end {
            let left = usize::try_from(end - self.asked).unwrap_or(usize::MAX);
            source.absent(left.min(K::RUN), &mut keys);
            let seen = match filter.batches() {
                Some(filter) => filter.count(&keys),
                None => filter.count(&keys),
            };
            self.seen += seen as u64;
            self.asked += keys.len() as u64;
        }
    }
}
