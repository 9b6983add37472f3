//! What these verbs say on stderr: the plan before, the summary after.

use std::fmt;
use std::time::Instant;

use petal::memory;
use petal_exact::{Method, Options, Outcome, Plan};

use super::source::FileSource;
use crate::args::RunArgs;
use crate::keys::KeyCounts;
use crate::report::{self, Table, figure};
use crate::units::{format_count, format_size};

/// Prints the plan, unless the run is to be quiet.
pub(super) fn print_plan(run: &RunArgs, plan: &Plan, options: &Options) {
    report::plan(run, &PlanText { plan, options });
}

struct PlanText<'a> {
    plan: &'a Plan,
    options: &'a Options,
}

impl fmt::Display for PlanText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        f.write_str(&method(plan.method))?;
        // A table for an unknown number of lines begins small and grows.
        match plan.records {
            Some(_) => write!(f, ", memory {}", format_size(plan.memory))?,
            None => write!(f, ", memory at most {}", format_size(self.options.memory))?,
        }
        if plan.disk > 0 {
            let place = self.options.directory.display();
            write!(f, ", disk {} in {place}", format_size(plan.disk))?;
        }
        if let Some(records) = plan.records {
            write!(f, ": about {} lines", format_count(records))?;
        }
        for (number, step) in (1..).zip(&plan.steps) {
            write!(f, "\n  {number}. {}:", step.what)?;
            let mut comma = "";
            for (what, bytes) in [
                ("reads", step.sources),
                ("reads temporary", step.read),
                ("writes temporary", step.written),
            ] {
                if bytes > 0 {
                    write!(f, "{comma} {what} {}", format_size(bytes))?;
                    comma = ",";
                }
            }
        }
        Ok(())
    }
}

fn method(method: Method) -> String {
    match method {
        Method::Memory => "in memory".to_owned(),
        Method::Filtered { filter } => {
            format!("in memory, after a filter of {}", format_size(filter))
        }
        Method::Partitions { bits, filter: 0 } => format!("{} partitions on disk", 1u64 << bits),
        Method::Partitions { bits, filter } => format!(
            "{} partitions on disk, after a filter of {}",
            1u64 << bits,
            format_size(filter)
        ),
        _ => "in a way that this text does not know".to_owned(),
    }
}

/// The name of a method in JSON.
const fn name(method: Method) -> &'static str {
    match method {
        Method::Memory => "memory",
        Method::Filtered { .. } => "filtered",
        Method::Partitions { .. } => "partitions",
        _ => "other",
    }
}

/// The summary.
pub(super) fn summary(
    sources: &[FileSource],
    plan: &Plan,
    outcome: &Outcome,
    started: Instant,
) -> Table {
    let mut counts = KeyCounts::default();
    for source in sources {
        counts += source.counts();
    }
    let read = sources.first().map_or(0, FileSource::bytes_read);
    let mut table = Table::default();
    table.count("lines", "lines read", outcome.records.iter().sum());
    table.count("printed", "printed", outcome.kept);
    table.count_if_any("empty", "empty lines left out", counts.empty);
    table.count_if_any("no_field", "without the field", counts.no_field);
    table.count_if_any("not_url", "not URLs (compared as they are)", counts.not_url);
    table.count_if_any("bad", "not of the form", counts.bad);
    table.row("bytes", "bytes read", format_size(read), read);
    if outcome.written > 0 {
        let (written, again) = (outcome.written, outcome.read);
        table.row(
            "temporary_written",
            "temporary, written",
            format_size(written),
            written,
        );
        table.row(
            "temporary_read",
            "temporary, read",
            format_size(again),
            again,
        );
    } else {
        table.row("temporary_written", "", "", 0);
        table.row("temporary_read", "", "", 0);
    }
    table.row("planned", "", "", plan.traffic());
    table.row("method", "", "", name(outcome.method));
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    if let Some(peak) = memory::peak_resident() {
        table.row("peak_memory", "peak memory", format_size(peak), peak);
    }
    table
}
