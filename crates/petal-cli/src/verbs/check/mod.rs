//! `petal check`: the lines that are in a filter, or in none of several.
//!
//! Owns the run and its counts. What the filters say of a batch is
//! [`ask`]'s. Key options come from the filters: two that were built with
//! different ones read each line in their own way.

mod allow;
mod ask;
mod others;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::AnyFilter;

use crate::args::CheckArgs;
use crate::copy::LineCopier;
use crate::filters;
use crate::foreign::{self, LineKeys};
use crate::input::Batch;
use crate::keys;
use crate::mask;
use crate::os::display_name;
use crate::output::Output;
use crate::params;
use crate::report::{Table, figure};
use crate::units::format_size;
use crate::walk::{Flow, Place, Position, Visit, Walk};
use ask::{Answers, Asked, Counts, Numbers};

/// Exit status when nothing was printed.
const NOTHING: u8 = 1;

/// Share of the memory that exceptions may take.
const ALLOW_SHARE: u64 = 2;

/// Runs the verb.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let secret = keys::secret(&args.secret)?;
    let budget = params::budget(args.run.memory.as_deref())?;
    params::check_present(&args.files)?;
    params::check_present(&args.allow)?;
    let mut paths = vec![args.filter.as_path()];
    paths.extend(args.more_filters.iter().map(|path| path.as_path()));
    let memory = args.run.memory.as_deref();
    let others = paths
        .iter()
        .map(|path| foreign::open(path, &args.foreign, memory));
    let others = others.collect::<Result<Vec<_>>>()?;
    let formats: Vec<_> = others
        .iter()
        .map(|other| other.as_ref().map(|other| other.format()))
        .collect();
    foreign::check_flags(&args.foreign, &formats)?;
    if !args.mapped {
        let petals = paths
            .iter()
            .zip(&others)
            .filter(|(_, other)| other.is_none());
        let petals: Vec<_> = petals.map(|(path, _)| *path).collect();
        filters::check_budget(&petals, memory, "allow more, or use --mapped")?;
    }
    let numbers = match (args.times, args.values) {
        (true, _) => Numbers::Times,
        (_, true) => Numbers::Values,
        _ => Numbers::None,
    };
    let mut asked = Asked::new(args.skip_empty, args.with_name, numbers);
    for (path, other) in paths.iter().zip(others) {
        if let Some(other) = other {
            if numbers == Numbers::Values {
                bail!(
                    "{}: this filter of {} keeps no values: --values needs a static filter of petal",
                    display_name(path),
                    other.format()
                );
            }
            if numbers == Numbers::Times && !other.is_counting() {
                bail!(
                    "{}: this filter of {} does not count: --times needs a counting one",
                    display_name(path),
                    other.format()
                );
            }
            let form = args.form.unwrap_or_default();
            asked.add_other(other, LineKeys::new(form, keys::terminator(&args.records)));
            continue;
        }
        let mut filter = if args.mapped {
            filters::open_mapped(path, secret.as_ref())?
        } else {
            filters::open(path, secret.as_ref())?
        };
        if args.times {
            check_counts(path, &filter)?;
        }
        if args.values {
            check_values(path, &filter)?;
        }
        filters::tell_time(path, &mut filter);
        asked.add(filter);
    }
    if asked.is_all_petal() {
        foreign::refuse_form(args.form)?;
    }
    if !args.allow.is_empty() {
        if !asked.is_all_petal() {
            bail!("--allow takes the keys of lines from petal's own filters: leave others out");
        }
        let terminator = keys::terminator(&args.records);
        let options = params::line_options(terminator, budget, asked.copies_lines());
        asked.allow(&args.allow, &options, budget / ALLOW_SHARE)?;
    }
    let output = match &args.output {
        Some(path) => Output::create(path)?,
        None => Output::stdout()?,
    };
    let threads = params::threads(args.run.threads);
    let output = output.write_behind(threads);
    let walk = Walk {
        files: args.files.as_slice().into(),
        from: Position::default(),
        options: params::line_options(
            keys::terminator(&args.records),
            budget,
            asked.copies_lines(),
        ),
        threads,
        label: "check",
        // Where lines appear on the terminal, progress would be in their way.
        quiet: args.run.quiet || output.is_terminal(),
        outputs: output.id().into_iter().collect(),
    };
    let terminator = walk.options.terminator;
    let mut emit = Emit::new(args, &paths, asked.most_times(), output, terminator);
    let asked = Arc::new(asked);
    walk.each(&asked, &mut emit)?;
    let found = emit.finish()?;
    summary(args, &asked, &found, started).print(&args.run);
    Ok(match found.printed {
        0 => ExitCode::from(NOTHING),
        _ => ExitCode::SUCCESS,
    })
}

/// Refuses a filter that does not know how often a line was added.
fn check_counts(path: &Path, filter: &AnyFilter) -> Result<()> {
    if matches!(filter, AnyFilter::Counting(_) | AnyFilter::Deletable(_)) {
        return Ok(());
    }
    bail!(
        "{}: a filter of kind {} does not count: --times needs one that was built with --kind \
         counting or deletable",
        display_name(path),
        filter.kind()
    );
}

/// Refuses a filter that has no values.
fn check_values(path: &Path, filter: &AnyFilter) -> Result<()> {
    match filter {
        AnyFilter::Static(filter) if filter.value_bits() > 0 => Ok(()),
        _ => bail!(
            "{}: the filter keeps no values: --values needs one that was built with --kind static \
             --value-field",
            display_name(path)
        ),
    }
}

/// What a run has found.
#[derive(Debug, Default)]
struct Found {
    counts: Counts,
    /// Lines that were asked as they are, though a filter is of URLs: for
    /// each group of filters.
    not_url: Vec<u64>,
    /// Lines printed, or counted.
    printed: u64,
    /// Lines whose counters are at their maximum.
    at_most: u64,
}

/// What goes to the output.
struct Emit<'a> {
    args: &'a CheckArgs,
    /// A name and a tab for each filter.
    names: Vec<Vec<u8>>,
    copier: LineCopier,
    /// The count that means "or more".
    most: Option<u64>,
    wanted: Vec<u64>,
    found: Found,
}

impl<'a> Emit<'a> {
    fn new(
        args: &'a CheckArgs,
        filters: &[&Path],
        most: Option<u64>,
        output: Output,
        terminator: u8,
    ) -> Self {
        let name = |path: &&Path| format!("{}\t", display_name(path)).into_bytes();
        Self {
            args,
            names: filters.iter().map(name).collect(),
            copier: LineCopier::new(output, terminator),
            most,
            wanted: Vec::new(),
            found: Found::default(),
        }
    }

    /// Completes the output; what there was.
    fn finish(mut self) -> Result<Found> {
        if self.args.count {
            let count = format!("{}\n", self.found.printed);
            self.copier.output().write(count.as_bytes())?;
        }
        self.copier.finish()?;
        Ok(self.found)
    }
}

impl Visit<Answers> for Emit<'_> {
    fn visit(&mut self, batch: &Batch, answers: &mut Answers, _: &Place) -> Result<Flow> {
        self.found.counts += answers.counts;
        self.found.not_url.resize(answers.not_url().count(), 0);
        for (sum, more) in self.found.not_url.iter_mut().zip(answers.not_url()) {
            *sum += more;
        }
        self.wanted.clone_from(&answers.hits);
        if self.args.invert {
            mask::unite(&mut self.wanted, &answers.left_out);
            mask::invert(&mut self.wanted, batch.len());
        }
        self.found.printed += mask::count(&self.wanted);
        if self.args.count {
            return Ok(Flow::GoOn);
        }
        if self.args.with_name && !self.args.invert {
            for line in mask::runs(&self.wanted, batch.len()).flatten() {
                let name = self.names.get(answers.first[line]);
                let name = name.map_or(&[][..], Vec::as_slice);
                self.copier.prefixed(name, batch, line)?;
            }
            return Ok(Flow::GoOn);
        }
        if self.args.times || self.args.values {
            for line in mask::runs(&self.wanted, batch.len()).flatten() {
                let number = answers.numbers[line];
                self.found.at_most += u64::from(Some(number) == self.most);
                let number = format!("{number}\t");
                self.copier.prefixed(number.as_bytes(), batch, line)?;
            }
            return Ok(Flow::GoOn);
        }
        self.copier.lines(batch, &self.wanted)?;
        Ok(Flow::GoOn)
    }

    fn idle(&mut self) -> Result<()> {
        Ok(self.copier.output().flush()?)
    }
}

fn summary(args: &CheckArgs, asked: &Asked, found: &Found, started: Instant) -> Table {
    let counts = found.counts;
    let not_url = found.not_url.iter().copied().max().unwrap_or(0);
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
    table.count_if_any("allowed", "exceptions (--allow)", counts.allowed);
    table.count("absent", "not in the filter", counts.absent());
    table.count_if_any("empty", "empty lines left out", counts.left_out);
    table.count_if_any("no_key", "without a key (not in the filter)", counts.no_key);
    table.count_if_any("not_url", "not URLs (asked as they are)", not_url);
    if let Some(most) = asked.most_times() {
        let label = format!("counts of {most} (or more)");
        table.count_if_any("saturated", &label, found.at_most);
    }
    table.row("error", "error", figure(error), error);
    table.row("printed", "", "", found.printed);
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    if let Some(peak) = petal::memory::peak_resident() {
        table.row("peak_memory", "peak memory", format_size(peak), peak);
    }
    table
}
