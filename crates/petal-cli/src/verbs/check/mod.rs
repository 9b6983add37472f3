//! `petal check`: the lines that are in a filter, or in none of several.
//!
//! Owns the run and its counts. What the filters say of a batch is
//! [`ask`]'s. Key options come from the filters: two that were built with
//! different ones read each line in their own way.

mod ask;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::args::CheckArgs;
use crate::copy::LineCopier;
use crate::filters;
use crate::input::Batch;
use crate::keys;
use crate::os::display_name;
use crate::output::Output;
use crate::params;
use crate::report::{Table, figure};
use crate::units::format_size;
use crate::walk::Walk;
use ask::{Answer, Asked};

/// Exit status when nothing was printed.
const NOTHING: u8 = 1;

/// Runs the verb.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let secret = keys::secret(&args.secret)?;
    let budget = params::budget(args.run.memory.as_deref())?;
    params::check_present(&args.files)?;
    let mut paths = vec![args.filter.as_path()];
    paths.extend(args.more_filters.iter().map(|path| path.as_path()));
    if !args.mapped {
        let remedy = "allow more, or use --mapped";
        filters::check_budget(&paths, args.run.memory.as_deref(), remedy)?;
    }
    let mut asked = Asked::new(args.skip_empty);
    for path in &paths {
        let filter = if args.mapped {
            filters::open_mapped(path, secret.as_ref())?
        } else {
            filters::open(path, secret.as_ref())?
        };
        asked.add(filter);
    }
    let output = match &args.output {
        Some(path) => Output::create(path)?,
        None => Output::stdout()?,
    };
    let walk = Walk {
        files: &args.files,
        options: params::line_options(keys::terminator(&args.records), budget, args.run.threads),
        label: "check",
        // Where lines appear on the terminal, progress would be in their way.
        quiet: args.run.quiet || output.is_terminal(),
        output: output.id(),
    };
    let mut emit = Emit::new(args, &paths, output, walk.options.terminator);
    walk.each(|batch, place| {
        let answers = asked.read(batch)?;
        emit.batch(batch, answers, place.idle)
    })?;
    let printed = emit.finish()?;
    summary(args, &asked, printed, started).print(&args.run);
    Ok(match printed {
        0 => ExitCode::from(NOTHING),
        _ => ExitCode::SUCCESS,
    })
}

/// What goes to the output.
struct Emit<'a> {
    args: &'a CheckArgs,
    /// A name and a tab for each filter.
    names: Vec<Vec<u8>>,
    copier: LineCopier,
    printed: u64,
}

impl<'a> Emit<'a> {
    fn new(args: &'a CheckArgs, filters: &[&Path], output: Output, terminator: u8) -> Self {
        let name = |path: &&Path| format!("{}\t", display_name(path)).into_bytes();
        Self {
            args,
            names: filters.iter().map(name).collect(),
            copier: LineCopier::new(output, terminator),
            printed: 0,
        }
    }

    fn batch(&mut self, batch: &Batch, answers: &[Answer], idle: bool) -> Result<()> {
        for (line, answer) in answers.iter().enumerate() {
            let filter = match answer {
                Answer::LeftOut => continue,
                Answer::In(filter) => Some(*filter),
                Answer::Absent => None,
            };
            if filter.is_some() == self.args.invert {
                continue;
            }
            self.printed += 1;
            if self.args.count {
                continue;
            }
            match filter.and_then(|filter| self.names.get(filter)) {
                Some(name) if self.args.with_name => self.copier.prefixed(name, batch, line)?,
                _ => self.copier.line(batch, line)?,
            }
        }
        self.copier.end_batch(batch)?;
        if idle {
            self.copier.output().flush()?;
        }
        Ok(())
    }

    /// Completes the output; the number of lines printed, or counted.
    fn finish(mut self) -> Result<u64> {
        if self.args.count {
            let count = format!("{}\n", self.printed);
            self.copier.output().write(count.as_bytes())?;
        }
        self.copier.finish()?;
        Ok(self.printed)
    }
}

fn summary(args: &CheckArgs, asked: &Asked, printed: u64, started: Instant) -> Table {
    let counts = asked.counts();
    let error = asked.error(args.mapped);
    let false_hits = ask::expected_false(counts.asked(), counts.hits, error);
    let mut table = Table::default();
    table.count("lines", "lines read", counts.lines);
    table.count("hits", "in the filter", counts.hits);
    table.row(
        "expected_false",
        "of these expected to be false, about",
        figure(false_hits),
        false_hits,
    );
    table.count("absent", "not in the filter", counts.absent());
    table.count_if_any("empty", "empty lines left out", counts.left_out);
    table.count_if_any("no_key", "without a key (not in the filter)", counts.no_key);
    table.count_if_any("not_url", "not URLs (asked as they are)", asked.not_url());
    table.row("error", "error", figure(error), error);
    table.row("printed", "", "", printed);
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    if let Some(peak) = petal::memory::peak_resident() {
        table.row("peak_memory", "peak memory", format_size(peak), peak);
    }
    table
}
