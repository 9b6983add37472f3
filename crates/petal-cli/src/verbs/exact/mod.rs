//! `petal common`, `petal except` and `petal dedup --exact`: exact answers on files of any size.
//!
//! Owns the run of these verbs: what the flags mean for the library's operation, and where its
//! answers go. Files become sources in `source`, what cannot be read twice is copied by `spool`,
//! `overlap` looks at samples, `texts` has the plan and the summary. The work itself is
//! `petal_exact`'s.

mod overlap;
mod source;
mod spool;
mod texts;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use petal_exact::{Error, Job, Method, Operation, Options, Which};

use crate::args::{CommonArgs, DedupArgs, ExactArgs, ExceptArgs, KeyArgs, RecordArgs, RunArgs};
use crate::budget;
use crate::copy::LineCopier;
use crate::input::LineOptions;
use crate::keys;
use crate::mask;
use crate::os::{self, display_name};
use crate::output::Output;
use crate::params;
use crate::units::format_size;
use source::{FileSource, Reading, Rules};

/// Whether `dedup` is asked for exact work.
pub(crate) const fn is_meant(args: &DedupArgs) -> bool {
    args.exact || args.exact_work.verify || args.exact_work.tmp.is_some()
}

/// Runs `dedup --exact`.
pub(crate) fn dedup(args: &DedupArgs) -> Result<ExitCode> {
    if !args.exact {
        bail!("--tmp and --verify belong to exact work: add --exact");
    }
    let which = if args.unique {
        Which::NeverRepeated
    } else if args.count {
        Which::Counted
    } else {
        Which::First
    };
    let stdin = [PathBuf::from("-")];
    Work {
        operation: Operation::Dedup(which),
        files: if args.files.is_empty() {
            &stdin
        } else {
            &args.files
        },
        multi: false,
        output: args.output.as_deref(),
        exact: &args.exact_work,
        keys: &args.keys,
        records: &args.records,
        run: &args.run,
    }
    .run()
}

/// Runs `common`.
pub(crate) fn common(args: &CommonArgs) -> Result<ExitCode> {
    let files = args.files.len();
    let at_least = args.at_least.unwrap_or(files);
    if !(1..=files).contains(&at_least) {
        bail!("--at-least {at_least} is not possible with {files} files: give 1 to {files}");
    }
    Work {
        operation: Operation::Common { at_least },
        files: &args.files,
        multi: args.sets.multi,
        output: args.sets.output.as_deref(),
        exact: &args.sets.exact_work,
        keys: &args.sets.keys,
        records: &args.sets.records,
        run: &args.sets.run,
    }
    .run()
}

/// Runs `except`.
pub(crate) fn except(args: &ExceptArgs) -> Result<ExitCode> {
    Work {
        operation: Operation::Except,
        files: &args.files,
        multi: args.sets.multi,
        output: args.sets.output.as_deref(),
        exact: &args.sets.exact_work,
        keys: &args.sets.keys,
        records: &args.sets.records,
        run: &args.sets.run,
    }
    .run()
}

/// What any of the verbs is asked to do.
struct Work<'a> {
    operation: Operation,
    files: &'a [PathBuf],
    multi: bool,
    output: Option<&'a Path>,
    exact: &'a ExactArgs,
    keys: &'a KeyArgs,
    records: &'a RecordArgs,
    run: &'a RunArgs,
}

/// Memory that reading, writing and the program itself take, at most; it is left out of what the
/// library may use.
const OVERHEAD: u64 = 12 << 20;

impl Work<'_> {
    fn run(&self) -> Result<ExitCode> {
        let started = Instant::now();
        params::check_present(self.files)?;
        self.check_pipes()?;
        let budget = params::budget(self.run.memory.as_deref())?;
        let terminator = keys::terminator(self.records);
        let identity = keys::identity(self.keys, self.records, None)?;
        let threads = params::threads(self.run.threads).clamp(1, MOST_THREADS);
        // Of each file that is read at the same time there may be a long line.
        let at_once = MOST_THREADS.min(self.files.len()).max(1) as u64;
        let copied = !identity.normalisation.is_plain();
        let lines = params::line_options(terminator, budget / at_once, copied);
        let rules = Rules::new(identity.normalisation, self.keys.skip_empty);

        let mut options = Options::new(for_the_library(budget), self.scratch_directory());
        options.threads = threads;
        options.multi = self.multi;
        options.verify = self.exact.verify;
        // Opened first, so that what cannot be written is known before the work.
        let output = match self.output {
            Some(path) => Output::create(path)?,
            None => Output::stdout()?,
        };
        let reading = Arc::new(Reading::new(&output, self.run.quiet));
        let sources = self.sources(&lines, &rules, &reading, &options)?;

        let begin = |options: &Options| {
            Job::new(self.operation, &sources, options).map_err(|error| too_little(error, budget))
        };
        let mut job = begin(&options)?;
        if matches!(job.plan().method, Method::Partitions { .. })
            && let Some(overlap) = overlap::measure(self.operation, &sources)
        {
            options.overlap = Some(overlap);
            job = begin(&options)?;
        }
        let plan = job.plan().clone();
        texts::print_plan(self.run, &plan, &options);
        reading.begin(plan.sources());

        let mut copier = LineCopier::new(output, terminator);
        let counted = self.operation == Operation::Dedup(Which::Counted);
        let mut wanted = Vec::new();
        let outcome = job.run(&mut |batch, kept| {
            let lines = batch.lines();
            if counted {
                for (&line, &count) in kept.indices.iter().zip(kept.counts) {
                    copier.prefixed(format!("{count:>7} ").as_bytes(), lines, line)?;
                }
                return Ok(());
            }
            mask::clear(&mut wanted, lines.len());
            for &line in kept.indices {
                wanted[line / 64] |= 1 << (line % 64);
            }
            copier.lines(lines, &wanted)
        })?;
        reading.end();
        copier.finish()?;
        let table = texts::summary(&sources, &plan, &outcome, started);
        table.print(self.run);
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses what can be read only once and is named twice: before the first is read, which
    /// may take long, or for ever where its writer has gone.
    fn check_pipes(&self) -> Result<()> {
        let mut pipes = Vec::new();
        for path in self.files {
            if let Some(pipe) = os::pipe(path) {
                if pipes.contains(&pipe) {
                    let name = match path.to_str() {
                        Some("-") => "standard input".to_owned(),
                        _ => display_name(path),
                    };
                    bail!("{name} is named twice: it can be read only once");
                }
                pipes.push(pipe);
            }
        }
        Ok(())
    }

    /// The files as sources; those that cannot be read twice are copied.
    fn sources(
        &self,
        lines: &LineOptions,
        rules: &Rules,
        reading: &Arc<Reading>,
        options: &Options,
    ) -> Result<Vec<FileSource>> {
        let mut sources: Vec<FileSource> = Vec::new();
        for path in self.files {
            let is_stdin = path.as_os_str() == "-";
            let is_file = !is_stdin && path.metadata().is_ok_and(|facts| facts.is_file());
            let (rules, reading) = (rules.clone(), Arc::clone(reading));
            sources.push(if is_file {
                let mut source = FileSource::of_file(path, lines, rules, reading);
                if let Some(at) = self.files.iter().position(|other| other == path)
                    && let Some(same) = sources.get(at)
                {
                    source.same_as(same);
                }
                source
            } else {
                let copy = spool::spool(path, lines, &options.directory, self.run.quiet)?;
                FileSource::of_copy(copy, lines, rules, reading)
            });
        }
        Ok(sources)
    }

    /// Where temporary files go.
    fn scratch_directory(&self) -> PathBuf {
        if let Some(directory) = &self.exact.tmp {
            return directory.clone();
        }
        // Not beside /dev/stdout and the like.
        let is_file = |path: &&Path| path.metadata().map_or(true, |facts| facts.is_file());
        let beside = self.output.filter(|path| path.as_os_str() != "-");
        if let Some(parent) = beside.filter(is_file).and_then(Path::parent) {
            let here = parent.as_os_str().is_empty();
            return if here { ".".into() } else { parent.to_owned() };
        }
        match std::env::var_os("TMPDIR") {
            Some(directory) if !directory.is_empty() => directory.into(),
            _ => "/var/tmp".into(),
        }
    }
}

/// What the library may use of a budget.
fn for_the_library(budget: u64) -> u64 {
    let taken = OVERHEAD.saturating_add(budget / budget::SHARE_OF_LINES);
    budget - taken.min(budget / 2)
}

/// What is said of memory, in terms of the flag: the library knows only what it is given of it.
fn too_little(error: Error, budget: u64) -> anyhow::Error {
    let Error::NoMemory {
        needed,
        allowed,
        what,
    } = error
    else {
        return error.into();
    };
    // The least budget of which so much is for the library.
    let beside = needed.saturating_add(OVERHEAD);
    let least = beside.saturating_add(beside.div_ceil(budget::SHARE_OF_LINES - 1));
    anyhow!(
        "{what} takes {}, but of --memory {} it may use {}: allow {} or more",
        format_size(needed),
        format_size(budget),
        format_size(allowed),
        format_size(least.min(needed.saturating_mul(2)))
    )
}

/// More threads than this are not worth the memory they divide.
const MOST_THREADS: usize = 16;
