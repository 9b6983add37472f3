//! Reads of keys that are there and of keys that are not, with the front and without.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

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
    /// Reads of each kind.
    #[arg(long, default_value_t = 500_000)]
    reads: u64,
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

/// Nanoseconds a read, of each block of reads.
#[derive(Debug, Default)]
struct Timed {
    absent: Vec<f64>,
    present: Vec<f64>,
}

fn median(blocks: &mut [f64]) -> f64 {
    blocks.sort_by(f64::total_cmp);
    blocks.get(blocks.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn run(args: &ReadsArgs) -> Result<bool> {
    println!(
        "{} keys, values of 100 bytes, engine's cache {} MiB, filter at {}. CPU time a read, median of blocks \
         of {BLOCK} reads in turn, {} reads of each kind:\n",
        args.keys, args.cache, args.error, args.reads
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
    let mut with = Timed::default();
    let mut without = Timed::default();
    let mut held = Timed::default();
    for block in 0..args.blocks() {
        let mut keys = Questions::new(args, block);
        measure(&mut without, keys.next(), |key| {
            Ok(front.store().get(key)?.is_some())
        })?;
        measure(&mut with, keys.next(), |key| Ok(front.get(key)?.is_some()))?;
        // One transaction for all reads: cheaper, and blind to later writes.
        let table: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");
        let table = front.store().database().begin_read()?.open_table(table)?;
        measure(&mut held, keys.next(), |key| {
            Ok(table
                .get(key)?
                .map(|value| value.value().to_vec())
                .is_some())
        })?;
    }
    let passed = rows("redb", &mut without, &mut with, Some(20.0));
    rows("redb, one read transaction", &mut held, &mut with, None);
    note(&front);
    Ok(passed)
}

fn sqlite(args: &ReadsArgs, folder: &Path) -> Result<bool> {
    let front = filled::<SqliteStore>(args, folder)?;
    let mut with = Timed::default();
    let mut without = Timed::default();
    for block in 0..args.blocks() {
        let mut keys = Questions::new(args, block);
        measure(&mut without, keys.next(), |key| {
            Ok(front.store().get(key)?.is_some())
        })?;
        measure(&mut with, keys.next(), |key| Ok(front.get(key)?.is_some()))?;
    }
    rows("sqlite", &mut without, &mut with, None);
    note(&front);
    Ok(true)
}

fn rows(name: &str, without: &mut Timed, with: &mut Timed, absent_bound: Option<f64>) -> bool {
    let absent = [median(&mut without.absent), median(&mut with.absent)];
    let present = [median(&mut without.present), median(&mut with.present)];
    let (to_reach, present_bound) = match absent_bound {
        Some(bound) => (format!("≤ 1/{bound}"), "≤ 1.05"),
        None => (String::new(), ""),
    };
    let (times_less, times) = (absent[0] / absent[1], present[1] / present[0]);
    println!(
        "| {name} | absent keys | {:.0} | {:.0} | 1/{times_less:.1} | {to_reach} |",
        absent[0], absent[1]
    );
    println!(
        "| {name} | present keys | {:.0} | {:.0} | {times:.3} | {present_bound} |",
        present[0], present[1]
    );
    absent_bound.is_none_or(|bound| times_less >= bound && times <= 1.05)
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

/// The keys of a block: others for each who is asked, or the second would find them in the
/// engine's cache.
struct Questions {
    random: Random,
    keys: u64,
}

/// Absent and present keys.
type Asked = [Vec<Vec<u8>>; 2];

impl Questions {
    const fn new(args: &ReadsArgs, block: u64) -> Self {
        Self {
            random: Random(block << 32),
            keys: args.keys,
        }
    }

    fn next(&mut self) -> Asked {
        let mut some = |from: u64| {
            let numbers = (0..BLOCK).map(|_| from + self.random.below(self.keys));
            numbers.map(key).collect()
        };
        [some(self.keys), some(0)]
    }
}

/// Reads that are timed together, before it is the others' turn.
const BLOCK: u64 = 1000;

impl ReadsArgs {
    fn blocks(&self) -> u64 {
        self.reads.div_ceil(BLOCK)
    }
}

/// Of this thread: whatever else the machine does, as far as caches allow.
fn cpu_nanoseconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn measure(
    timed: &mut Timed,
    asked: Asked,
    mut ask: impl FnMut(&[u8]) -> Result<bool>,
) -> Result<()> {
    let [absent, present] = asked;
    for (blocks, keys, there) in [
        (&mut timed.absent, absent, false),
        (&mut timed.present, present, true),
    ] {
        let started = cpu_nanoseconds();
        let mut found = 0;
        for key in &keys {
            found += usize::from(black_box(ask(key)?));
        }
        blocks.push((cpu_nanoseconds() - started) / keys.len() as f64);
        ensure!(
            found == if there { keys.len() } else { 0 },
            "{found} keys were found"
        );
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
