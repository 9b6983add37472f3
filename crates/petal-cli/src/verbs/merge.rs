//! `petal merge`: one filter from several of the same shape.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use petal::{AnyFilter, Contains, Error, Kind, Merge, Overwrite};
use petal_interop::ForeignFilter;

use crate::args::MergeArgs;
use crate::filters::{self, named};
use crate::foreign;
use crate::keys;
use crate::os::display_name;
use crate::report::{Table, figure};
use crate::units::{format_count, format_size};

/// Runs the verb.
pub(crate) fn run(args: &MergeArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let secret = keys::secret(&args.secret)?;
    let overwrite = filters::check_target(&args.output, args.force)?;
    let Some((first, others)) = args.filters.split_first() else {
        return Err(anyhow!("give two filters or more"));
    };
    if let Some(merged) = foreign::open(first, &args.foreign, args.run.memory.as_deref())? {
        foreign::check_flags(&args.foreign, &[Some(merged.format())])?;
        return merge_foreign(args, merged, overwrite);
    }
    foreign::check_flags(&args.foreign, &[None])?;
    for paths in others
        .iter()
        .map(|other| [first.as_path(), other.as_path()])
    {
        filters::check_budget(&paths, args.run.memory.as_deref(), "allow more")?;
    }
    let mut merged = filters::open(first, secret.as_ref())?;
    if merged.kind() == Kind::Window {
        bail!(
            "{}: windows are not merged, since the age of a line counts in each from its own \
             end; ask both with `petal check A -f B`",
            display_name(first)
        );
    }
    for path in others {
        let other = filters::open(path, secret.as_ref())?;
        let done = if args.intersection {
            merged.intersect_with(&other)
        } else {
            merged.union_with(&other)
        };
        done.map_err(|error| {
            let (first, path) = (display_name(first), display_name(path));
            match error {
                Error::Full { keys, .. } => anyhow!(
                    "{first} and {path}: together they have more than the {} keys that fit into \
                     the slots of one; build them with a larger -n",
                    format_count(keys)
                ),
                error => anyhow!("{first} and {path}: {error}"),
            }
        })?;
    }
    merged
        .save(&args.output, overwrite)
        .map_err(|error| named(&args.output, error))?;
    summary(&merged, args.filters.len(), started).print(&args.run);
    filters::warn_if_overfull(&merged, &args.output);
    Ok(ExitCode::SUCCESS)
}

/// The same for filters of another system, of one format and shape.
fn merge_foreign(
    args: &MergeArgs,
    mut merged: Box<dyn ForeignFilter>,
    overwrite: Overwrite,
) -> Result<ExitCode> {
    if args.intersection {
        bail!("--intersection is for filters of petal: the makers of others have none");
    }
    let first = &args.filters[0];
    for path in &args.filters[1..] {
        let Some(other) = foreign::open(path, &args.foreign, args.run.memory.as_deref())? else {
            // Neither of which is what cannot be read.
            petal::inspect(path).map_err(|error| named(path, error))?;
            bail!(
                "{} is a filter of {} and {} one of petal: build one from the lists",
                display_name(first),
                merged.format(),
                display_name(path)
            );
        };
        merged.union_with(&*other).map_err(|error| {
            anyhow!(
                "{} and {}: {error}",
                display_name(first),
                display_name(path)
            )
        })?;
    }
    foreign::save(&*merged, merged.encoding(), &args.output, overwrite)?;
    Ok(ExitCode::SUCCESS)
}

fn summary(merged: &AnyFilter, filters: usize, started: Instant) -> Table {
    let mut table = Table::default();
    table.count("filters", "filters", filters as u64);
    match filters::counted_keys(merged) {
        Some(keys) => table.count("estimated_keys", filters::counted_name(merged), keys),
        None => table.estimate("estimated_keys", "keys, about", merged.estimated_len()),
    }
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
