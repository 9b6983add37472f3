//! Reads of keys that are there and of keys that are not, with the front and without.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Args;
use petal_front::{Batch, Front, Options, RedbStore, SqliteStore, Store};
use redb::{ReadableDatabase, TableDefinition};

use crate::engine::{Engine, Named};
use crate::random::Random;

#[derive(Debug, Args)]
pub(crate) struct ReadsArgs {
    /// Keys in the store, each with a value of 100 bytes.
    #[arg(long, default_value_t = 2_000_000)]
    keys: u64,
    /// Cache of the engine, in MiB.
    #[arg(long, default_value_t = 64)]
    cache: usize,
    /// Reads a measurement.
    #[arg(long, default_value_t = 200_000)]
    reads: u64,
    /// Measurements of each kind, alternated; the least counts.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Error of the filter.
    #[arg(short = 'p', long, default_value_t = 0.01)]
    error: f64,
    /// One engine only.
    #[arg(long)]
    engine: Option<Named>,
    /// Folder for the stores, which are removed at the end.
    #[arg(long, default_value = "target/front-trials")]
    folder: PathBuf,
    /// Only say the figures: do not fail if they miss what is to be reached.
    #[arg(long)]
    no_bounds: bool,
}

/// Nanoseconds a read, the least so far.
#[derive(Debug, Clone, Copy)]
struct Least {
    absent: f64,
    present: f64,
}

impl Least {
    const fn none() -> Self {
        Self {
            absent: f64::INFINITY,
            present: f64::INFINITY,
        }
    }
}

pub(crate) fn run(args: &ReadsArgs) -> Result<bool> {
    println!(
        "{} keys, values of 100 bytes, engine's cache {} MiB, filter at {}, {} reads, least of {}:\n",
        args.keys, args.cache, args.error, args.reads, args.rounds
    );
    println!("| store | reads of | without, ns | with the front, ns | with / without | to reach |");
    println!("|---|---|---:|---:|---:|---:|");
    let mut passed = true;
    for engine in Named::ALL {
        if args.engine.is_some_and(|only| only != engine) {
            continue;
        }
        let folder = args.folder.join(engine.name());
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        passed &= match engine {
            Named::Redb => redb(args, &folder)?,
            Named::Sqlite => sqlite(args, &folder)?,
        };
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(passed || args.no_bounds)
}

fn redb(args: &ReadsArgs, folder: &Path) -> Result<bool> {
    let front = filled::<RedbStore>(args, folder)?;
    let mut with = Least::none();
    let mut without = Least::none();
    let mut held = Least::none();
    for round in 0..args.rounds {
        let keys = Questions::new(args, round);
        measure(&mut without, &keys, |key| {
            Ok(front.store().get(key)?.is_some())
        })?;
        measure(&mut with, &keys, |key| Ok(front.get(key)?.is_some()))?;
        // One transaction for all reads: cheaper, and blind to later writes.
        let table: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");
        let table = front.store().database().begin_read()?.open_table(table)?;
        measure(&mut held, &keys, |key| {
            Ok(table
                .get(key)?
                .map(|value| value.value().to_vec())
                .is_some())
        })?;
    }
    let passed = rows("redb", without, with, Some(20.0));
    rows("redb, one read transaction", held, with, None);
    note(&front);
    Ok(passed)
}

fn sqlite(args: &ReadsArgs, folder: &Path) -> Result<bool> {
    let front = filled::<SqliteStore>(args, folder)?;
    let mut with = Least::none();
    let mut without = Least::none();
    for round in 0..args.rounds {
        let keys = Questions::new(args, round);
        measure(&mut without, &keys, |key| {
            Ok(front.store().get(key)?.is_some())
        })?;
        measure(&mut with, &keys, |key| Ok(front.get(key)?.is_some()))?;
    }
    rows("sqlite", without, with, None);
    note(&front);
    Ok(true)
}

fn rows(name: &str, without: Least, with: Least, absent_bound: Option<f64>) -> bool {
    let absent = without.absent / with.absent;
    let present = with.present / without.present;
    let (to_reach, present_bound) = match absent_bound {
        Some(bound) => (format!("≤ 1/{bound}"), "≤ 1.05"),
        None => (String::new(), ""),
    };
    println!(
        "| {name} | absent keys | {:.0} | {:.0} | 1/{absent:.1} | {to_reach} |",
        without.absent, with.absent
    );
    println!(
        "| {name} | present keys | {:.0} | {:.0} | {present:.3} | {present_bound} |",
        without.present, with.present
    );
    absent_bound.is_none_or(|bound| absent >= bound && present <= 1.05)
}

fn note<S: Store>(front: &Front<S>) {
    let status = front.status();
    eprintln!(
        "filter: {} bytes, {} stages, error now {:.5}",
        status.filter_bytes, status.stages, status.error_now
    );
}

/// Keys of one form, so that absent ones fall anywhere between those that are there.
fn key(number: u64) -> Vec<u8> {
    format!("page/{:016x}", Random(number).next()).into_bytes()
}

/// The keys of a round: others in each.
struct Questions {
    absent: Vec<Vec<u8>>,
    present: Vec<Vec<u8>>,
}

impl Questions {
    fn new(args: &ReadsArgs, round: u32) -> Self {
        let mut random = Random(u64::from(round));
        let absent_from = args.keys + u64::from(round) * args.reads;
        Self {
            absent: (absent_from..absent_from + args.reads).map(key).collect(),
            present: (0..args.reads)
                .map(|_| key(random.below(args.keys)))
                .collect(),
        }
    }
}

fn measure(
    least: &mut Least,
    keys: &Questions,
    mut ask: impl FnMut(&[u8]) -> Result<bool>,
) -> Result<()> {
    for (nanoseconds, keys, there) in [
        (&mut least.absent, &keys.absent, false),
        (&mut least.present, &keys.present, true),
    ] {
        let started = Instant::now();
        let mut found = 0;
        for key in keys {
            found += usize::from(black_box(ask(key)?));
        }
        let took = started.elapsed().as_nanos() as f64 / keys.len() as f64;
        ensure!(
            found == if there { keys.len() } else { 0 },
            "{found} keys were found"
        );
        *nanoseconds = nanoseconds.min(took);
    }
    Ok(())
}

/// A store with all keys, warm, behind a front whose filter is saved.
fn filled<S: Engine>(args: &ReadsArgs, folder: &Path) -> Result<Front<S>> {
    let store = S::open(&folder.join("store"), args.cache << 20)?;
    let options = Options {
        items: args.keys,
        error: args.error,
        ..Options::default()
    };
    let front = Front::open(store, folder.join("filter.petal"), options)?;
    let mut batch = Batch::new();
    for number in 0..args.keys {
        batch.put(key(number), vec![b'v'; 100]);
        if batch.changes().len() == 100_000 {
            front.write(&batch)?;
            batch.clear();
        }
    }
    front.write(&batch)?;
    front.save()?;
    front.write(&Batch::new())?; // trims the log
    let mut keys = 0_u64;
    front.store().keys(&mut |_| {
        keys += 1;
        ControlFlow::Continue(())
    })?;
    ensure!(keys == args.keys, "{keys} keys are in the store");
    Ok(front)
}
