//! `petal build`: a filter from lists of lines.
//!
//! Owns the run: what is checked before anything is read, and the summary.
//! How keys are counted and put into a filter is [`fill`]'s.

mod fill;
mod target;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::{AnyFilter, Contains, Labels, Overwrite};

use crate::args::BuildArgs;
use crate::filters;
use crate::intake::Intake;
use crate::keys;
use crate::os::display_name;
use crate::params;
use crate::report::{Table, figure};
use crate::units::format_size;
use crate::walk::{Position, Walk};
use fill::{Fill, Filled};

/// Runs the verb.
pub(crate) fn run(args: &BuildArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let identity = keys::identity(&args.keys, keys::secret(&args.secret)?)?;
    let error = params::fpr(&args.fpr)?;
    let items = args.items.as_deref().map(params::items).transpose()?;
    let labels = labels(&args.label)?;
    let budget = params::budget(args.run.memory.as_deref())?;
    params::check_present(&args.files)?;
    refuse_as_input(args)?;
    let overwrite = filters::check_target(&args.output, args.force)?;
    let mut fill = Fill {
        args,
        walk: Walk {
            files: args.files.as_slice().into(),
            from: Position::default(),
            options: params::line_options(keys::terminator(&args.records), budget),
            threads: params::threads(args.run.threads),
            label: "build",
            quiet: args.run.quiet,
            outputs: Vec::new(),
        },
        intake: Intake::new(identity, args.keys.skip_empty, args.skip_bad),
        error,
        usable: crate::seen::usable(budget)?,
        budget,
    };
    let mut filled = fill.run(items)?;
    *filled.filter.labels_mut() = labels;
    save(&filled.filter, &args.output, overwrite)?;
    summary(args, &fill.intake, &filled, started).print(&args.run);
    Ok(ExitCode::SUCCESS)
}

/// The labels, checked before anything is read.
fn labels(pairs: &[String]) -> Result<Labels> {
    let mut labels = Labels::default();
    for pair in pairs {
        let before = pair.split_once('=').and_then(|(name, _)| labels.get(name));
        if before.is_some() {
            bail!("--label {pair}: that name was given before; labels have one value");
        }
        labels.set_pair(pair)?;
    }
    Ok(labels)
}

/// Refuses to replace what is read.
fn refuse_as_input(args: &BuildArgs) -> Result<()> {
    let same = |path: &Path| match (path.canonicalize(), args.output.canonicalize()) {
        (Ok(input), Ok(output)) => input == output,
        _ => false,
    };
    if let Some(path) = args.files.iter().find(|path| same(path)) {
        bail!(
            "{} is a list to read and the filter to write: use two names",
            display_name(path)
        );
    }
    Ok(())
}

fn save(filter: &AnyFilter, path: &Path, overwrite: Overwrite) -> Result<()> {
    filter
        .save(path, overwrite)
        .map_err(|error| filters::named(path, error))
}

fn summary(args: &BuildArgs, intake: &Intake, filled: &Filled, started: Instant) -> Table {
    let filter = &filled.filter;
    let mut table = Table::default();
    table.count("lines", "lines read", intake.lines());
    table.count("keys", "distinct keys", filled.keys);
    let repeated = intake.keyed().saturating_sub(filled.keys);
    table.count("repeated", "repeated", repeated);
    intake.report(&mut table);
    let kind = filter.kind().name();
    table.row("kind", "kind", kind, kind);
    let bytes = filter.bytes();
    table.row("bytes", "size", format_size(bytes), bytes);
    let bits = bytes as f64 * 8.0 / filled.keys.max(1) as f64;
    table.row("bits_per_key", "bits a key", figure(bits), bits);
    let error = filter.error_now();
    table.row("error", "error", figure(error), error);
    let output = display_name(&args.output);
    table.row("output", "", "", output);
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    if let Some(peak) = petal::memory::peak_resident() {
        table.row("peak_memory", "peak memory", format_size(peak), peak);
    }
    table
}
