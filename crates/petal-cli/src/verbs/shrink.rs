//! `petal shrink`: a filter refitted to what it holds.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::{AnyFilter, Contains};

use crate::args::ShrinkArgs;
use crate::filters::{self, named};
use crate::keys;
use crate::os::display_name;
use crate::params;
use crate::report::{Table, figure, warn};
use crate::units::format_size;
use crate::verbs::change::state_of;
use crate::verbs::dedup;

/// Runs the verb.
pub(crate) fn run(args: &ShrinkArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let secret = keys::secret(&args.secret)?;
    let error = args.fpr.as_deref().map(params::fpr).transpose()?;
    let overwrite = filters::check_target(&args.target.output, args.target.force)?;
    // Beside the filter there are its half and a quarter of it.
    let path = args.filter.as_path();
    filters::check_budget(&[path, path], args.run.memory.as_deref(), "allow more")?;
    let filter = filters::open(path, secret.as_ref())?;
    if filter.about().attachment(dedup::ATTACHMENT).is_some() {
        bail!(
            "{}: is the state of `petal dedup`, which goes on with the size it planned",
            display_name(path)
        );
    }
    let small = filter.shrunk(error).map_err(|error| named(path, error))?;
    small
        .save(&args.target.output, overwrite)
        .map_err(|error| named(&args.target.output, error))?;
    summary(&filter, &small, started).print(&args.run);
    if small.bytes() == filter.bytes() {
        warn(&format!(
            "{}: cannot be folded and keep its error for what it holds: {} is as large",
            display_name(path),
            display_name(&args.target.output)
        ));
    }
    filters::warn_if_overfull(&small, &args.target.output);
    Ok(ExitCode::SUCCESS)
}

fn summary(filter: &AnyFilter, small: &AnyFilter, started: Instant) -> Table {
    let mut table = Table::default();
    let before = filter.bytes();
    table.row("bytes_before", "size before", format_size(before), before);
    state_of(small, &mut table);
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    if let Some(peak) = petal::memory::peak_resident() {
        table.row("peak_memory", "peak memory", format_size(peak), peak);
    }
    table
}
