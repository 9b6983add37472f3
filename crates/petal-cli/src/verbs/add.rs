//! `petal add`: further keys for a filter.
//!
//! The filter is read, extended in memory, and replaced as a whole at the
//! end, all under its lock: whatever goes wrong, the file is as it was.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::{AnyFilter, Contains, FileLock, Insert, MappedWriter, Overwrite, Secret, mask_words};

use crate::args::AddArgs;
use crate::filters::{self, named};
use crate::input::Batch;
use crate::intake::Intake;
use crate::keys::{self, KeyedLines};
use crate::mask;
use crate::os::display_name;
use crate::params;
use crate::report::{self, Table, figure};
use crate::units::{format_count, format_size};
use crate::verbs::dedup;
use crate::walk::{Flow, Place, Position, Walk};

/// Runs the verb.
pub(crate) fn run(args: &AddArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let path = args.filter.as_path();
    let secret = keys::secret(&args.secret)?;
    let budget = params::budget(args.run.memory.as_deref())?;
    params::check_present(&args.files)?;
    if args.files.iter().any(|file| is_same(file, path)) {
        bail!(
            "{} is a list to read and the filter to extend: use two names",
            display_name(path)
        );
    }
    // What is no filter gets no lock file either.
    petal::inspect(path).map_err(|error| named(path, error))?;
    filters::check_budget(&[path], args.run.memory.as_deref(), "allow more")?;
    if args.recover {
        recover(path, secret.as_ref())?;
    }
    let lock = FileLock::acquire(path).map_err(|error| named(path, error))?;
    filters::check_target(path, true)?;
    let mut filter = filters::open(path, secret.as_ref())?;
    if filter.about().attachment(dedup::ATTACHMENT).is_some() {
        bail!(
            "{}: is the state of `petal dedup`, which would take lines added to it for printed \
             ones; give them to `petal dedup --state` instead",
            display_name(path)
        );
    }
    let plan = format!(
        "{} of {}, {}",
        filter.kind(),
        format_size(filter.bytes()),
        match filter.room() {
            Some(room) => format!("room for {} more keys", format_count(room)),
            None => "grows with its keys".to_owned(),
        }
    );
    report::plan(&args.run, &plan);

    let walk = Walk {
        files: args.files.as_slice().into(),
        from: Position::default(),
        options: params::line_options(keys::terminator(&args.records), budget),
        threads: params::threads(args.run.threads),
        label: "add",
        quiet: args.run.quiet,
        outputs: Vec::new(),
    };
    let identity = filter.about().identity().clone();
    let mut intake = Intake::new(identity, args.skip_empty, args.skip_bad);
    let added = insert(&walk, &mut intake, &mut filter, args.overfill)?;
    if added > 0 {
        filter
            .save(path, Overwrite::Replace)
            .map_err(|error| named(path, error))?;
    }
    drop(lock);
    summary(&filter, &intake, added, started).print(&args.run);
    warn_if_overfull(&filter, path);
    Ok(ExitCode::SUCCESS)
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Makes a file clean that a writer in place has left in between.
fn recover(path: &Path, secret: Option<&Secret>) -> Result<()> {
    let info = petal::inspect(path).map_err(|error| named(path, error))?;
    if !info.dirty {
        return Ok(());
    }
    let mut writer = MappedWriter::recover(path, secret).map_err(|error| named(path, error))?;
    writer.commit().map_err(|error| named(path, error))?;
    report::warn(&format!(
        "{}: recovered at generation {}: add again what was added later",
        display_name(path),
        info.generation
    ));
    Ok(())
}

/// Inserts all lines; how many of them changed a bit.
fn insert(walk: &Walk, intake: &mut Intake, filter: &mut AnyFilter, overfill: bool) -> Result<u64> {
    // Measured once: where the count of keys is unknown it takes a look at
    // every word.
    let room = filter.room().filter(|_| !overfill);
    let mut added = 0;
    let mut mask = Vec::new();
    let keys = intake.keys();
    walk.each(&keys, &mut |batch: &Batch,
                           keyed: &mut KeyedLines,
                           place: &Place| {
        intake.take(batch, keyed, place)?;
        let digests = keyed.digests();
        mask.resize(mask_words(digests.len()), 0);
        filter.insert_digests(digests, &mut mask)?;
        added += mask::count(&mask);
        if let Some(room) = room.filter(|&room| added > room) {
            let items = filter.about().promise().map_or(0, |promise| promise.items);
            bail!(
                "{}, up to line {}: the filter is made for {} keys and has room for {} more; \
                 nothing was written. --overfill adds them all the same, at a larger error; \
                 a filter built anew with -n keeps it",
                place.name,
                place.line + batch.len() as u64 - 1,
                format_count(items),
                format_count(room)
            );
        }
        Ok(Flow::GoOn)
    })?;
    intake.refuse_bad()?;
    Ok(added)
}

fn summary(filter: &AnyFilter, intake: &Intake, added: u64, started: Instant) -> Table {
    let mut table = Table::default();
    table.count("lines", "lines read", intake.lines());
    table.count("added", "added", added);
    let present = intake.keyed().saturating_sub(added);
    table.count("present", "already present", present);
    intake.report(&mut table);
    match filter.about().insertions() {
        Some(keys) => table.count("keys", "keys in the filter", keys),
        None => table.estimate("keys", "keys in the filter, about", filter.estimated_len()),
    }
    if let Some(promise) = filter.about().promise() {
        table.count("capacity", "made for", promise.items);
    }
    let error = filter.error_now();
    table.row("error", "error", figure(error), error);
    let bytes = filter.bytes();
    table.row("bytes", "size", format_size(bytes), bytes);
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    if let Some(peak) = petal::memory::peak_resident() {
        table.row("peak_memory", "peak memory", format_size(peak), peak);
    }
    table
}

/// Says that a filter holds more than it was made for.
fn warn_if_overfull(filter: &AnyFilter, path: &Path) {
    let (Some(promise), Some(0)) = (filter.about().promise(), filter.room()) else {
        return;
    };
    let keys = filter.about().insertions();
    if keys.is_none_or(|keys| keys > promise.items) {
        report::warn(&format!(
            "{} holds more keys than the {} it was made for: its error is now {}, not {}",
            display_name(path),
            format_count(promise.items),
            figure(filter.error_now()),
            report::probability(promise.error)
        ));
    }
}
