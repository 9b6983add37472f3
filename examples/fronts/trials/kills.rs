//! A writing front is killed at random moments; then no key of its store may be "absent".
//!
//! Between kills the filter's file is removed, damaged or set back now and then, and so is the store.

use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use petal_front::{Batch, Front, Opened, Options, Over, RedbStore, SqliteStore, Store};

use crate::engine::{Engine, Named};
use crate::random::Random;

#[derive(Debug, Args)]
pub(crate) struct KillsArgs {
    /// Kills, shared among the engines.
    #[arg(long, default_value_t = 500)]
    count: u64,
    /// Which moments and faults.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One engine only.
    #[arg(long)]
    engine: Option<Named>,
    /// Folder for the stores, which are removed at the end.
    #[arg(long, default_value = "target/front-trials")]
    folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct WriterArgs {
    engine: Named,
    folder: PathBuf,
    seed: u64,
    /// Begins the keys of this run.
    run: u64,
}

/// The longest that a writer lives, in microseconds.
const LIFE: u64 = 80_000;
/// Kills after which a new store is begun, so that looking at all keys stays quick.
const RUNS_A_STORE: u64 = 25;
const CACHE_BYTES: usize = 4 << 20;

/// Every eighth key is removed again.
const REMOVED: u64 = 8;

fn key(run: u64, number: u64) -> Vec<u8> {
    format!("{run}-{}/{number}", number / 4).into_bytes()
}

fn options() -> Options {
    Options {
        over: Over::RowsAndKeys { delimiter: b'/' },
        items: 500, // so that it grows
        error: 1e-6,
        secret: None,
        save_every: 150,
    }
}

fn open<S: Engine>(folder: &Path) -> Result<Front<S>> {
    let store = S::open(&folder.join("store"), CACHE_BYTES)?;
    Ok(Front::open(store, folder.join("filter.petal"), options())?)
}

/// Writes until it is killed, and says after each commit how many keys are in.
pub(crate) fn write(args: &WriterArgs) -> Result<bool> {
    match args.engine {
        Named::Redb => write_to(&open::<RedbStore>(&args.folder)?, args),
        Named::Sqlite => write_to(&open::<SqliteStore>(&args.folder)?, args),
    }
}

fn write_to<S: Store>(front: &Front<S>, args: &WriterArgs) -> Result<bool> {
    let mut random = Random(args.seed);
    let mut out = std::io::stdout();
    let mut written = 0;
    loop {
        let mut batch = Batch::new();
        let first = written;
        written += 1 + random.below(40);
        for number in first..written {
            batch.put(key(args.run, number), "a value");
            if number > 0 && random.one_in(4) {
                batch.put(key(args.run, random.below(number) | 1), "another"); // never a removed one
            }
        }
        for number in written.saturating_sub(60)..written {
            if number % REMOVED == 0 && random.one_in(2) {
                batch.remove(key(args.run, number));
            }
        }
        front.write(&batch)?;
        writeln!(out, "{written}")?;
        out.flush()?;
        if random.one_in(12) {
            front.save()?;
        }
        if random.one_in(25) {
            front.rebuild()?;
        }
    }
}

/// What came of all kills of an engine.
#[derive(Debug, Default)]
struct Counts {
    kills: u64,
    /// Before the first commit, so in opening.
    early: u64,
    committed: u64,
    faults: u64,
    up_to_date: u64,
    caught_up: u64,
    rebuilt: u64,
    asked: u64,
    wrong: u64,
    lost: u64,
}

pub(crate) fn run(args: &KillsArgs) -> Result<bool> {
    println!(
        "| store | kills | while opening | keys committed | faults besides | opened: up to date | caught up | rebuilt | keys asked | wrong \"absent\" | committed keys lost |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let engines: Vec<_> = Named::ALL
        .into_iter()
        .filter(|engine| args.engine.is_none_or(|only| only == *engine))
        .collect();
    let mut passed = true;
    let mut left = args.count;
    for (index, engine) in engines.iter().enumerate() {
        let count = left / (engines.len() - index) as u64;
        left -= count;
        let folder = args.folder.join(format!("kills-{}", engine.name()));
        let counts = match engine {
            Named::Redb => kill_all::<RedbStore>(*engine, &folder, count, args.seed)?,
            Named::Sqlite => kill_all::<SqliteStore>(*engine, &folder, count, args.seed)?,
        };
        std::fs::remove_dir_all(&folder)?;
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            engine.name(),
            counts.kills,
            counts.early,
            counts.committed,
            counts.faults,
            counts.up_to_date,
            counts.caught_up,
            counts.rebuilt,
            counts.asked,
            counts.wrong,
            counts.lost
        );
        passed &= counts.wrong == 0 && counts.lost == 0;
    }
    Ok(passed)
}

/// Keys of each run that are known to be committed: their numbers are below this.
type Committed = Vec<(u64, u64)>;

/// The state of a store at some moment, to be put back.
struct Kept {
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
    committed: Committed,
}

fn kill_all<S: Engine>(engine: Named, folder: &Path, count: u64, seed: u64) -> Result<Counts> {
    let mut random = Random(seed);
    let mut counts = Counts::default();
    let mut committed = Committed::new();
    let mut stores: Vec<Kept> = Vec::new();
    let mut filters: Vec<Vec<u8>> = Vec::new();
    for run in 0..count {
        if run % RUNS_A_STORE == 0 {
            let _ = std::fs::remove_dir_all(folder);
            std::fs::create_dir_all(folder)?;
            committed.clear();
            stores.clear();
            filters.clear();
        }
        let written = kill_one(engine, folder, random.next(), run, random.below(LIFE))?;
        counts.kills += 1;
        counts.early += u64::from(written == 0);
        counts.committed += written;
        committed.push((run, written));

        let filter = folder.join("filter.petal");
        if random.one_in(4) {
            filters.extend(std::fs::read(&filter).ok());
            stores.push(Kept {
                files: S::files(&folder.join("store"))
                    .into_iter()
                    .map(|path| (path.clone(), std::fs::read(path).ok()))
                    .collect(),
                committed: committed.clone(),
            });
        }
        if random.one_in(4) {
            counts.faults += 1;
            match random.below(4) {
                0 => drop(std::fs::remove_file(&filter)),
                1 => damage(&filter, &mut random)?,
                2 if !filters.is_empty() => {
                    std::fs::write(&filter, &filters[pick(&mut random, filters.len())])?;
                }
                _ if !stores.is_empty() => {
                    let kept = &stores[pick(&mut random, stores.len())];
                    put_back(&kept.files)?;
                    committed.clone_from(&kept.committed);
                }
                _ => counts.faults -= 1,
            }
        }
        // Otherwise the next writer finds things as they are.
        if random.one_in(2) || run + 1 == count {
            look::<S>(folder, &committed, &mut counts)?;
        }
    }
    Ok(counts)
}

fn pick(random: &mut Random, len: usize) -> usize {
    usize::try_from(random.below(len as u64)).unwrap_or(0)
}

fn damage(filter: &Path, random: &mut Random) -> Result<()> {
    let Ok(mut bytes) = std::fs::read(filter) else {
        return Ok(()); // it was killed before it had one
    };
    if random.one_in(2) {
        bytes.truncate(pick(random, bytes.len()));
    } else {
        let at = pick(random, bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
    Ok(std::fs::write(filter, bytes)?)
}

fn put_back(files: &[(PathBuf, Option<Vec<u8>>)]) -> Result<()> {
    for (path, bytes) in files {
        match bytes {
            Some(bytes) => std::fs::write(path, bytes)?,
            None => drop(std::fs::remove_file(path)),
        }
    }
    Ok(())
}

/// Starts a writer and kills it; how many keys it said were committed.
fn kill_one(engine: Named, folder: &Path, seed: u64, run: u64, life: u64) -> Result<u64> {
    let mut writer = Command::new(std::env::current_exe()?)
        .args(["writer", engine.name()])
        .arg(folder)
        .args([seed.to_string(), run.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .context("start a writer")?;
    std::thread::sleep(Duration::from_micros(life));
    writer.kill()?; // SIGKILL
    let status = writer.wait()?;
    if let Some(code) = status.code() {
        bail!("the writer ended by itself, with {code}");
    }
    let said = writer.stdout.take().context("its output")?;
    let mut written = 0;
    for line in BufReader::new(said).split(b'\n') {
        let line = line?;
        // The last one may be cut off in the middle: then it is less, which is fine.
        if let Ok(number) = String::from_utf8_lossy(&line).parse() {
            written = number;
        }
    }
    Ok(written)
}

/// Opens the front and asks about everything.
fn look<S: Engine>(folder: &Path, committed: &Committed, counts: &mut Counts) -> Result<()> {
    let front = open::<S>(folder)?;
    match front.status().opened {
        Opened::UpToDate => counts.up_to_date += 1,
        Opened::CaughtUp { .. } => counts.caught_up += 1,
        _ => counts.rebuilt += 1,
    }
    let mut keys = Vec::new();
    front.store().keys(&mut |key| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    for key in &keys {
        let row = key.split(|&byte| byte == b'/').next().unwrap_or_default();
        let found = front.get(key)?.is_some() && front.may_contain_row(row);
        counts.asked += 1;
        counts.wrong += u64::from(!found);
    }
    for &(run, written) in committed {
        for number in (0..written).filter(|number| number % REMOVED != 0) {
            counts.lost += u64::from(front.store().get(&key(run, number))?.is_none());
        }
    }
    let status = front.status();
    ensure!(status.save_error.is_none(), "{:?}", status.save_error);
    Ok(())
}
