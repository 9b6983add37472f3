//! `petal add`: further keys for a filter.
//!
//! The filter is changed as a whole: see [`super::change`].

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::{AnyFilter, Contains, Insert, MappedWriter, Secret, mask_words};

use super::change::{self, Change, Flags};
use crate::args::AddArgs;
use crate::budget;
use crate::filters::{self, named};
use crate::input::Batch;
use crate::intake::Intake;
use crate::keys::{self, KeyedLines};
use crate::mask;
use crate::os::display_name;
use crate::params;
use crate::report::{self, Table, figure};
use crate::units::{format_count, format_size};
use crate::walk::{Flow, Place};

/// Runs the verb.
pub(crate) fn run(args: &AddArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let path = args.filter.as_path();
    let secret = keys::secret(&args.secret)?;
    let flags = Flags {
        filter: path,
        files: &args.files,
        skip_empty: args.skip_empty,
        skip_bad: args.skip_bad,
        records: &args.records,
        run: &args.run,
        verb: "add",
    };
    let mut change = Change::open(&flags, secret.as_ref(), || match args.recover {
        true => recover(path, secret.as_ref()),
        false => Ok(()),
    })?;
    // Measured once: where the count of keys is unknown it takes a look at
    // every word.
    let room = change.filter.room();
    announce(args, &change.filter, room);
    let shortened = shortened(&change.filter);
    if let AnyFilter::Deletable(filter) = &mut change.filter {
        let budget = params::budget(args.run.memory.as_deref())?;
        filter.limit_memory(budget::room(budget));
    }
    let added = insert(&mut change, room.filter(|_| !args.overfill))?;
    let noted = filters::notes_repeats(&change.filter) && change.intake.keyed() > 0;
    let (filter, intake) = change.finish(added > 0 || noted)?;
    summary(&filter, &intake, added, started).print(&args.run);
    filters::warn_if_overfull(&filter, path);
    warn_if_shortened(&filter, path, shortened);
    Ok(ExitCode::SUCCESS)
}

fn announce(args: &AddArgs, filter: &AnyFilter, room: Option<u64>) {
    let room = match (filter, room) {
        (AnyFilter::Window(_), _) => "forgets what is old".to_owned(),
        (_, None) => "grows with its keys".to_owned(),
        (filter, Some(room)) => {
            let about = match filters::counted_keys(filter) {
                Some(_) => "",
                None => "about ",
            };
            format!("room for {about}{} more keys", format_count(room))
        }
    };
    let plan = format!(
        "{} of {}, {room}",
        filter.kind(),
        format_size(filter.bytes())
    );
    report::plan(&args.run, &plan);
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

/// Inserts all lines; how many of them were new. More than there is `room`
/// for are refused.
fn insert(change: &mut Change<'_>, room: Option<u64>) -> Result<u64> {
    let Change {
        path,
        filter,
        walk,
        intake,
        ..
    } = change;
    let promise = filter.about().promise();
    let items = promise.map_or(0, |promise| promise.items);
    let margin = match filters::counted_keys(filter) {
        Some(_) => 0.0,
        None => promise.map_or(0.0, filters::estimate_margin),
    };
    let mut added = 0;
    let mut mask = Vec::new();
    let kind = filter.kind();
    let keys = intake.keys();
    walk.each(&keys, &mut |batch: &Batch,
                           keyed: &mut KeyedLines,
                           place: &Place| {
        intake.take(batch, keyed, place)?;
        let digests = keyed.digests();
        mask.resize(mask_words(digests.len()), 0);
        filter
            .insert_digests(digests, &mut mask)
            .map_err(|error| filters::not_taken(kind, items, error).context(display_name(path)))?;
        added += mask::count(&mask);
        if let Some(room) = room.filter(|&room| added as f64 > room as f64 + margin) {
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

/// Generations that a window has forgotten before their time.
const fn shortened(filter: &AnyFilter) -> u64 {
    match filter {
        AnyFilter::Window(window) => window.shortened(),
        _ => 0,
    }
}

fn warn_if_shortened(filter: &AnyFilter, path: &Path, before: u64) {
    if shortened(filter) > before {
        report::warn(&format!(
            "{}: more lines came than its window takes: the oldest were forgotten before their \
             time; build it anew with a larger -n",
            display_name(path)
        ));
    }
}

fn summary(filter: &AnyFilter, intake: &Intake, added: u64, started: Instant) -> Table {
    let mut table = Table::default();
    table.count("lines", "lines read", intake.lines());
    table.count("added", "added", added);
    let present = intake.keyed().saturating_sub(added);
    let label = match filter {
        AnyFilter::Counting(_) | AnyFilter::Deletable(_) => "already present (counted)",
        AnyFilter::Window(_) => "already present (made new again)",
        _ => "already present",
    };
    table.count("present", label, present);
    intake.report(&mut table);
    change::state_of(filter, &mut table);
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    if let Some(peak) = petal::memory::peak_resident() {
        table.row("peak_memory", "peak memory", format_size(peak), peak);
    }
    table
}
