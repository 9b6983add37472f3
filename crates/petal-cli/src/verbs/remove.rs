//! `petal remove`: keys out of a filter that can forget.
//!
//! The filter is changed as a whole: see [`super::change`].

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::{AnyFilter, Contains, Increase, Remove, mask_words};

use super::change::{self, Change, Flags};
use crate::args::RemoveArgs;
use crate::input::Batch;
use crate::intake::Intake;
use crate::keys::{self, KeyedLines};
use crate::mask;
use crate::os::display_name;
use crate::report::{self, Table, figure};
use crate::units::format_size;
use crate::walk::{Flow, Place};

/// Runs the verb.
pub(crate) fn run(args: &RemoveArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let secret = keys::secret(&args.secret)?;
    let flags = Flags {
        filter: &args.filter,
        files: &args.files,
        skip_empty: args.skip_empty,
        skip_bad: args.skip_bad,
        records: &args.records,
        run: &args.run,
        verb: "remove",
    };
    let mut change = Change::open(&flags, secret.as_ref(), || Ok(()))?;
    if let Some(why) = refusal(&change.filter) {
        bail!("{}: {why}", display_name(change.path));
    }
    let filter = &change.filter;
    let plan = format!("{} of {}", filter.kind(), format_size(filter.bytes()));
    report::plan(&args.run, &plan);
    let done = remove(&mut change)?;
    let (filter, intake) = change.finish(done.removed > 0)?;
    summary(&filter, &intake, &done, started).print(&args.run);
    Ok(ExitCode::SUCCESS)
}

/// Why a filter forgets nothing, and how to get one that does.
fn refusal(filter: &AnyFilter) -> Option<String> {
    match filter {
        AnyFilter::Deletable(_) => None,
        AnyFilter::Counting(counting) => match counting.geometry().increase() {
            Increase::All => None,
            Increase::Minimal => Some(
                "was built with --minimal: an insertion increased only the least of a line's \
                 counters, nobody knows which; build it without"
                    .to_owned(),
            ),
        },
        AnyFilter::Window(_) => {
            Some("is a window: lines leave it by themselves, none can be taken out".to_owned())
        }
        filter => Some(format!(
            "a filter of kind {} cannot forget lines, as they share its bits; build one with \
             --kind deletable or counting",
            filter.kind()
        )),
    }
}

/// What became of the lines that are not absent.
#[derive(Debug, Default)]
struct Done {
    removed: u64,
    /// Their counts are at the most that the filter can hold, and stay there.
    stuck: u64,
}

/// Removes all lines.
fn remove(change: &mut Change<'_>) -> Result<Done> {
    let Change {
        filter,
        walk,
        intake,
        ..
    } = change;
    let mut done = Done::default();
    let (mut mask, mut left) = (Vec::new(), Vec::new());
    let keys = intake.keys();
    walk.each(&keys, &mut |batch: &Batch,
                           keyed: &mut KeyedLines,
                           place: &Place| {
        intake.take(batch, keyed, place)?;
        let digests = keyed.digests();
        mask.resize(mask_words(digests.len()), 0);
        filter.remove_digests(digests, &mut mask)?;
        done.removed += mask::count(&mask);
        // What was not removed, and is there, stays for good.
        left.resize(mask.len(), 0);
        filter.contains_digests(digests, &mut left)?;
        for (left, removed) in left.iter_mut().zip(&mask) {
            *left &= !removed;
        }
        done.stuck += mask::count(&left);
        Ok(Flow::GoOn)
    })?;
    intake.refuse_bad()?;
    Ok(done)
}

fn summary(filter: &AnyFilter, intake: &Intake, done: &Done, started: Instant) -> Table {
    let mut table = Table::default();
    table.count("lines", "lines read", intake.lines());
    table.count("removed", "removed", done.removed);
    let absent = intake
        .keyed()
        .saturating_sub(done.removed.saturating_add(done.stuck));
    table.count("absent", "absent", absent);
    table.count_if_any("stuck", "there for good (count at its end)", done.stuck);
    intake.report(&mut table);
    change::state_of(filter, &mut table);
    if let AnyFilter::Counting(counting) = filter {
        let saturated = counting.saturated();
        table.count_if_any("saturated", "counters that stay for good", saturated);
    }
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    if let Some(peak) = petal::memory::peak_resident() {
        table.row("peak_memory", "peak memory", format_size(peak), peak);
    }
    table
}
