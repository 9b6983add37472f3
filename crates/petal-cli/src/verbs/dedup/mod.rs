//! `petal dedup`: the first occurrence of each line, in input order.
//!
//! Owns the run: batch by batch, in order, from digests to verdicts to
//! output. Reading and hashing are [`crate::walk`]'s and [`crate::keys`]', what
//! is remembered is [`crate::seen`]'s, where lines go [`emit`]'s, what survives
//! an interruption [`state`]'s. A run with `--window` is [`window`]'s.

mod emit;
mod places;
mod state;
mod window;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::{AnyFilter, Contains, Identity, memory};
use serde::{Deserialize, Serialize};

use crate::args::{DedupArgs, WhenFull};
use crate::budget;
use crate::input::{Batch, LineOptions};
use crate::keys::{self, KeyCounts, KeyedLines, Keys, NoKey, Part};
use crate::mask;
use crate::params;
use crate::report::{self, Table, figure};
use crate::sample::{self, Estimate};
use crate::seen::{Plan, Seen, Taken};
use crate::units::{format_count, format_size};
use crate::walk::{Flow, Place, Position, Visit, Walk};
use emit::{Emit, Reported, Verdicts};
pub(crate) use state::ATTACHMENT;
use state::State;

/// What a run has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Totals {
    lines: u64,
    repeated: u64,
    bytes: u64,
    keys: KeyCounts,
}

/// Runs the verb.
pub(crate) fn run(args: &DedupArgs) -> Result<ExitCode> {
    if let Some(span) = &args.window {
        return window::run(args, span);
    }
    let setup = Setup::new(args)?;
    let state = match &args.state {
        Some(path) => State::open(path, &setup, args)?,
        None => State::none(),
    };
    if state.is_done() {
        report::say("petal: nothing to do: the state has finished these inputs");
        return Ok(ExitCode::SUCCESS);
    }
    Run::start(args, setup, state)?.complete()
}

/// What the flags say, checked before anything is opened for writing.
struct Setup {
    identity: Identity,
    part: Option<Part>,
    budget: u64,
    error: Option<f64>,
    items: Option<u64>,
    keeps_state: bool,
    /// Files to read; none for stdin.
    inputs: Vec<PathBuf>,
    lines: LineOptions,
}

impl Setup {
    fn new(args: &DedupArgs) -> Result<Self> {
        let identity = keys::identity(&args.keys, &args.records, keys::secret(&args.secret)?)?;
        let part = args.part.as_deref().map(Part::parse).transpose()?;
        let budget = params::budget(args.run.memory.as_deref())?;
        let error = args.fpr.as_deref().map(params::fpr).transpose()?;
        let items = args.items.as_deref().map(params::items).transpose()?;
        if items.is_some() && error.is_none() {
            bail!("-n is for a filter of a given error: add -p, or leave it out");
        }
        if args.repeated && args.state.is_some() {
            bail!(
                "-d needs to know which repeats it has printed, which --state does not keep: use -D, or leave --state out"
            );
        }
        params::check_present(&args.files)?;
        places::check(args)?;
        Ok(Self {
            lines: params::line_options(
                keys::terminator(&args.records),
                budget,
                !identity.normalisation.is_plain(),
            ),
            identity,
            part,
            budget,
            error,
            items,
            keeps_state: args.state.is_some(),
            inputs: args.files.clone(),
        })
    }

    /// What a sample says about the inputs; nothing for pipes and compressed files.
    fn estimate(&self) -> Option<Estimate> {
        let estimate = sample::estimate_paths(&self.inputs, self.lines.terminator);
        estimate.map(|estimate| match self.part {
            Some(part) => estimate.divided_by(part.of()),
            None => estimate,
        })
    }

    fn plan(&self) -> Result<Plan> {
        let estimate = self.estimate();
        match self.error {
            // A state keeps digests.
            None if !self.keeps_state => {
                Plan::addresses(self.budget, &self.identity, estimate.as_ref())
            }
            None => Plan::digests(self.budget, estimate.as_ref()),
            Some(error) => Plan::filter(
                self.budget,
                error,
                self.items,
                estimate.as_ref(),
                self.identity.collisions(),
            ),
        }
    }
}

/// A run under way.
struct Run<'a> {
    args: &'a DedupArgs,
    setup: Setup,
    state: State,
    keys: Arc<Keys>,
    seen: Seen,
    /// For `-d`.
    reported: Option<Reported>,
    emit: Emit,
    totals: Totals,
    /// How far it has come.
    position: Position,
    /// Whether it ended early, for want of memory.
    full: bool,
    /// The digests of a batch that are new, and those that are not.
    fresh: Vec<u64>,
    old: Vec<u64>,
    first: Vec<u64>,
    verdicts: Verdicts,
    /// See [`State::read_again`].
    read_again: u64,
    started: Instant,
}

impl<'a> Run<'a> {
    fn start(args: &'a DedupArgs, mut setup: Setup, mut state: State) -> Result<Self> {
        let started = Instant::now();
        if args.repeated {
            // Two memories of half the size: lines seen, and repeats printed.
            setup.budget = budget::halved(setup.budget)?;
        }
        let mut reported = None;
        let seen = match state.take_filter() {
            Some(filter) => {
                let seen = Seen::resume(
                    filter,
                    setup.budget,
                    args.when_full.unwrap_or_default(),
                    state.loss(),
                )?;
                let most = format_size(setup.budget);
                report::plan(
                    &args.run,
                    &format!("memory at most {most}: goes on with the state"),
                );
                state.check_room(seen.filter().map_or(0, AnyFilter::bytes))?;
                seen
            }
            None => {
                let plan = setup.plan()?;
                if args.repeated {
                    report::plan(
                        &args.run,
                        &format!("two memories (lines, and repeats printed), each: {plan}"),
                    );
                    // It never holds more digests than the other, so it is
                    // never full before that one.
                    let seen = Seen::new(&plan, setup.identity.clone(), WhenFull::Pass)?;
                    reported = Some(seen);
                } else {
                    report::plan(&args.run, &plan);
                }
                state.check_room(plan.peak())?;
                Seen::new(
                    &plan,
                    setup.identity.clone(),
                    args.when_full.unwrap_or_default(),
                )?
            }
        };
        let emit = Emit::open(args, setup.lines.terminator, state.kept_outputs())?;
        let keys = Keys::new(setup.identity.clone(), args.keys.skip_empty, setup.part);
        Ok(Self {
            reported: reported.map(|seen| Reported::new(seen, keys.buffer().digests())),
            keys: Arc::new(keys),
            totals: state.totals(),
            position: state.position(),
            full: false,
            read_again: state.read_again(),
            args,
            setup,
            state,
            seen,
            emit,
            fresh: Vec::new(),
            old: Vec::new(),
            first: Vec::new(),
            verdicts: Verdicts::default(),
            started,
        })
    }

    fn complete(mut self) -> Result<ExitCode> {
        let walk = Walk {
            files: std::mem::take(&mut self.setup.inputs).into(),
            from: self.position,
            options: self.setup.lines.clone(),
            threads: params::threads(self.args.run.threads),
            label: "dedup",
            quiet: self.args.run.quiet || self.emit.is_terminal(),
            outputs: self.emit.ids(),
        };
        let keys = Arc::clone(&self.keys);
        walk.each(&keys, &mut self)?;
        self.finish(walk.files.len().max(1))
    }

    /// From which digests are new to which lines are what; returns how many
    /// lines of the batch were handled.
    fn judge(&mut self, batch: &Batch, keyed: &KeyedLines, taken: Taken) -> Result<usize> {
        let digests = keyed.digests().len();
        let (most, handled) = match taken {
            Taken::All => (digests, batch.len()),
            Taken::Only(count) => (count, keyed.line_of(count)),
        };
        self.old.clone_from(&self.fresh);
        mask::invert(&mut self.old, most);
        if let Some(reported) = &mut self.reported {
            reported.take(keyed.digests(), &self.old, &mut self.first)?;
        }
        let old = mask::count(&self.old);
        let again = old.min(self.read_again);
        self.read_again -= again;
        self.totals.repeated += old - again;
        let Verdicts {
            new,
            repeats,
            first_repeats,
        } = &mut self.verdicts;
        keyed.by_line(&self.fresh, handled, new);
        keyed.by_line(&self.old, handled, repeats);
        if self.reported.is_some() {
            keyed.by_line(&self.first, handled, first_repeats);
        }
        for &(line, why) in keyed.without().iter().take_while(|(at, _)| *at < handled) {
            if matches!(why, NoKey::NoField | NoKey::Bad(_)) {
                new[line / 64] |= 1 << (line % 64);
            }
        }
        Ok(handled)
    }

    /// Makes the output durable, then the state that speaks of it.
    fn save(&mut self, finished: bool) -> Result<()> {
        if !self.state.is_kept() {
            return Ok(());
        }
        let started = Instant::now();
        let outputs = self.emit.durable()?;
        let expected = self.seen.expected_loss();
        let new = self.seen.new_lines();
        self.state.save(
            &mut self.seen,
            self.totals,
            (new, expected),
            outputs,
            finished,
            started,
        )
    }

    fn finish(mut self, inputs: usize) -> Result<ExitCode> {
        let full = self.full;
        if !full {
            self.state.moved_to(Position {
                input: inputs,
                offset: 0,
            });
        }
        self.save(!full)?;
        let expected = self.seen.expected_loss();
        let table = self.summary(expected);
        self.emit.finish()?;
        table.print(&self.args.run);
        if full {
            let (complete, more) = match (&self.args.state, self.seen.filter()) {
                (None, _) => (
                    "the output is complete",
                    "allow more with --memory, split the work with --part, or",
                ),
                (Some(_), Some(AnyFilter::Bloom(_))) => (
                    "output and state are complete",
                    "its filter cannot be enlarged:",
                ),
                (Some(_), _) => (
                    "output and state are complete",
                    "allow more with --memory, or",
                ),
            };
            bail!(
                "the memory of {} is full after {} distinct lines, {complete} up to there; {more} \
                 go on with --when-full pass or loosen",
                format_size(self.setup.budget),
                format_count(self.seen.new_lines())
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    fn summary(&self, expected: f64) -> Table {
        let counts = self.totals.keys;
        let mut table = Table::default();
        table.count("lines", "lines read", self.totals.lines);
        let when_full = self.args.when_full.unwrap_or_default();
        let unique = if self.seen.is_full() && when_full == WhenFull::Pass {
            "unique, or not remembered"
        } else {
            "unique"
        };
        table.count("unique", unique, self.seen.new_lines());
        table.count("repeated", "repeated", self.totals.repeated);
        table.row(
            "bytes",
            "bytes read",
            format_size(self.totals.bytes),
            self.totals.bytes,
        );
        table.count_if_any("empty", "empty lines left out", counts.empty);
        table.count_if_any("elsewhere", "lines of other parts", counts.elsewhere);
        table.count_if_any("no_field", "without the field (kept)", counts.no_field);
        table.count_if_any("not_url", "not URLs (compared as they are)", counts.not_url);
        table.count_if_any("bad", "not of the form (kept)", counts.bad);
        table.row(
            "expected_dropped",
            "expected number wrongly dropped",
            figure(expected),
            expected,
        );
        if self.seen.is_full() && when_full != WhenFull::Stop {
            let error = self.seen.error_now();
            let label = match when_full {
                WhenFull::Pass => "memory full: later lines were not remembered; error",
                _ => "memory full: the error has come to",
            };
            table.row("error", label, figure(error), error);
        }
        let kind = self.seen.kind();
        table.row("memory", "", kind, kind);
        let promise = self
            .seen
            .filter()
            .and_then(|filter| filter.about().promise());
        let items = promise.map_or(0, |promise| promise.items);
        table.row("capacity", "", "", items);
        let seconds = self.started.elapsed().as_secs_f64();
        table.row("seconds", "seconds", figure(seconds), seconds);
        if let Some(peak) = memory::peak_resident() {
            table.row("peak_memory", "peak memory", format_size(peak), peak);
        }
        table
    }
}

impl Visit<KeyedLines> for Run<'_> {
    fn visit(&mut self, batch: &Batch, keyed: &mut KeyedLines, place: &Place) -> Result<Flow> {
        if place.input != self.position.input {
            self.position = Position {
                input: place.input,
                offset: 0,
            };
        }
        mask::clear(&mut self.fresh, keyed.digests().len());
        let taken = self.seen.take(keyed.digests(), &mut self.fresh)?;
        let handled = self.judge(batch, keyed, taken)?;
        self.emit.batch(batch, &self.verdicts)?;
        if handled < batch.len() {
            // Only what was handled counts; the rest will be read again.
            self.keys.read_first(batch, handled, keyed)?;
        }
        self.totals.lines += handled as u64;
        self.totals.keys += keyed.counts();
        if handled > 0 {
            let end = batch.end_offset(handled - 1);
            self.totals.bytes += end - self.position.offset;
            self.position.offset = end;
        }
        self.state.moved_to(self.position);
        if handled < batch.len() {
            self.full = true;
            return Ok(Flow::Stop);
        }
        if self.state.is_due() {
            self.save(false)?;
        }
        Ok(Flow::GoOn)
    }

    fn idle(&mut self) -> Result<()> {
        self.emit.flush()
    }
}
