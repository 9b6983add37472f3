//! `petal merge`: one filter from several of the same shape.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow};
use petal::{AnyFilter, Contains, Merge};

use crate::args::MergeArgs;
use crate::filters::{self, named};
use crate::keys;
use crate::os::display_name;
use crate::report::{self, Table, figure};
use crate::units::{format_count, format_size};

/// Runs the verb.
pub(crate) fn run(args: &MergeArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let secret = keys::secret(&args.secret)?;
    let overwrite = filters::check_target(&args.output, args.force)?;
    let Some((first, others)) = args.filters.split_first() else {
        return Err(anyhow!("give two filters or more"));
    };
    for paths in others
        .iter()
        .map(|other| [first.as_path(), other.as_path()])
    {
        filters::check_budget(&paths, args.run.memory.as_deref(), "allow more")?;
    }
    let mut merged = filters::open(first, secret.as_ref())?;
    for path in others {
        let other = filters::open(path, secret.as_ref())?;
        let done = if args.intersection {
            merged.intersect_with(&other)
        } else {
            merged.union_with(&other)
        };
        done.map_err(|error| {
            anyhow!(
                "{} and {}: {error}",
                display_name(first),
                display_name(path)
            )
        })?;
    }
    merged
        .save(&args.output, overwrite)
        .map_err(|error| named(&args.output, error))?;
    summary(&merged, args.filters.len(), started).print(&args.run);
    warn_if_overfull(&merged, &args.output);
    Ok(ExitCode::SUCCESS)
}

fn summary(merged: &AnyFilter, filters: usize, started: Instant) -> Table {
    let mut table = Table::default();
    table.count("filters", "filters", filters as u64);
    table.estimate("estimated_keys", "keys, about", merged.estimated_len());
    if let Some(promise) = merged.about().promise() {
        table.count("capacity", "made for", promise.items);
    }
    let error = merged.error_now();
    table.row("error", "error", figure(error), error);
    let bytes = merged.bytes();
    table.row("bytes", "size", format_size(bytes), bytes);
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    if let Some(peak) = petal::memory::peak_resident() {
        table.row("peak_memory", "peak memory", format_size(peak), peak);
    }
    table
}

/// Says that together there are more keys than the filters were made for.
fn warn_if_overfull(merged: &AnyFilter, path: &Path) {
    let Some(promise) = merged.about().promise() else {
        return;
    };
    let keys = merged.estimated_len();
    if keys > promise.items as f64 {
        report::warn(&format!(
            "{} holds about {} keys and was made for {}: its error is now {}, not {}",
            display_name(path),
            report::estimate(keys),
            format_count(promise.items),
            figure(merged.error_now()),
            report::probability(promise.error)
        ));
    }
}
