//! `petal dedup`: the first occurrence of each line, in input order.
//!
//! Owns the run: inputs one after the other, batch by batch, from lines to
//! digests to verdicts to output. What is remembered is [`crate::seen`]'s,
//! where lines go [`emit`]'s, what survives an interruption [`state`]'s.

mod emit;
mod places;
mod state;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::{AnyFilter, Contains, Identity, memory};
use serde::{Deserialize, Serialize};

use crate::args::{DedupArgs, WhenFull};
use crate::input::{Batch, Input, LineOptions, Lines, total_size};
use crate::keys::{self, KeyCounts, Keys, NoKey, Part};
use crate::params;
use crate::progress::Progress;
use crate::report::{self, Table, figure};
use crate::sample::{self, Estimate};
use crate::seen::{Plan, Seen, Taken, bit};
use crate::units::{format_count, format_size};
use emit::{Emit, Reported, Verdict};
pub(crate) use state::ATTACHMENT;
use state::{Position, State};

/// Lines a batch: enough to hide the latency of memory many times over, few
/// enough to stay in the L2 cache.
const BATCH: usize = 1024;

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
    /// Files to read; none for stdin.
    inputs: Vec<PathBuf>,
    lines: LineOptions,
}

impl Setup {
    fn new(args: &DedupArgs) -> Result<Self> {
        let identity = keys::identity(&args.keys, keys::secret(&args.secret)?)?;
        let part = args.part.as_deref().map(Part::parse).transpose()?;
        let budget = params::budget(args.run.memory.as_deref())?;
        let error = args.fpr.as_deref().map(params::fpr).transpose()?;
        let items = args.items.as_deref().map(params::items).transpose()?;
        if args.repeated && args.state.is_some() {
            bail!(
                "-d needs to know which repeats it has printed, which --state does not keep: use -D, or leave --state out"
            );
        }
        params::check_present(&args.files)?;
        places::check(args)?;
        Ok(Self {
            identity,
            part,
            budget,
            error,
            items,
            inputs: args.files.clone(),
            lines: params::line_options(keys::terminator(&args.records), budget, args.run.threads),
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
    keys: Keys,
    seen: Seen,
    /// For `-d`.
    reported: Option<Reported>,
    emit: Emit,
    totals: Totals,
    fresh: Vec<u64>,
    /// See [`State::read_again`].
    read_again: u64,
    started: Instant,
}

/// How reading an input ended.
enum Ended {
    AtItsEnd,
    MemoryFull,
}

impl<'a> Run<'a> {
    fn start(args: &'a DedupArgs, mut setup: Setup, mut state: State) -> Result<Self> {
        let started = Instant::now();
        if args.repeated {
            // Two memories of half the size: lines seen, and repeats printed.
            setup.budget /= 2;
        }
        let mut reported = None;
        let seen = match state.take_filter() {
            Some(filter) => {
                let seen = Seen::resume(filter, setup.budget, args.when_full, state.loss())?;
                let most = format_size(setup.budget);
                report::plan(
                    &args.run,
                    &format!("memory at most {most}: goes on with the state"),
                );
                state.check_room(seen.filter().bytes())?;
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
                Seen::new(&plan, setup.identity.clone(), args.when_full)?
            }
        };
        let emit = Emit::open(args, setup.lines.terminator, state.kept_outputs())?;
        let keys = Keys::new(setup.identity.clone(), args.keys.skip_empty, setup.part);
        Ok(Self {
            reported: reported.map(|seen| Reported::new(seen, keys.digests())),
            keys,
            totals: state.totals(),
            read_again: state.read_again(),
            args,
            setup,
            state,
            seen,
            emit,
            fresh: vec![0; BATCH.div_ceil(64)],
            started,
        })
    }

    fn complete(mut self) -> Result<ExitCode> {
        let quiet = self.args.run.quiet || self.emit.is_terminal();
        let from = self.state.position();
        let left = self.setup.inputs.get(from.input..).unwrap_or_default();
        let mut progress = Progress::start("dedup", total_size(left), quiet);
        let mut before = 0;
        let mut full = false;
        let inputs = std::mem::take(&mut self.setup.inputs);
        let count = inputs.len().max(1);
        for index in from.input..count {
            let mut input = match inputs.get(index) {
                Some(path) => Input::open(path)?,
                None => Input::stdin()?,
            };
            self.emit.refuse_input(&input)?;
            let place = Position {
                input: index,
                offset: if index == from.input { from.offset } else { 0 },
            };
            if place.offset > 0 {
                input.skip(place.offset)?;
            }
            let size = input.size().unwrap_or(0);
            let ended = self.read(input, place, before, &mut progress)?;
            before += size;
            if matches!(ended, Ended::MemoryFull) {
                full = true;
                break;
            }
        }
        self.setup.inputs = inputs;
        progress.finish();
        self.finish(count, full)
    }

    /// Reads one input to its end, or until the memory is full.
    fn read(
        &mut self,
        input: Input,
        mut place: Position,
        before: u64,
        progress: &mut Progress,
    ) -> Result<Ended> {
        let mut lines = Lines::new(input, &self.setup.lines);
        let mut batch = Batch::new(BATCH);
        while lines.next_batch(&mut batch)? {
            self.keys.forget_counts();
            self.keys.read(&batch)?;
            let taken = self.seen.take(self.keys.digests(), &mut self.fresh)?;
            let handled = self.emit_batch(&batch, taken)?;
            if handled > 0 {
                let end = batch.end_offset(handled - 1);
                self.totals.bytes += end - place.offset;
                place.offset = end;
            }
            self.state.moved_to(place);
            if handled < batch.len() {
                return Ok(Ended::MemoryFull);
            }
            if self.state.is_due() {
                self.save(false)?;
            }
            if lines.is_idle(&batch) {
                self.emit.flush()?;
            }
            progress.tick(before + lines.consumed());
        }
        Ok(Ended::AtItsEnd)
    }

    /// Writes what the verdicts say; returns how many lines were handled.
    fn emit_batch(&mut self, batch: &Batch, taken: Taken) -> Result<usize> {
        let digests = self.keys.digests().len();
        if let Some(reported) = &mut self.reported {
            reported.take(self.keys.digests(), &self.fresh)?;
        }
        let most = match taken {
            Taken::All => digests,
            Taken::Only(count) => count,
        };
        let mut without = self.keys.without().iter().peekable();
        let mut digest = 0;
        let mut handled = 0;
        for line in 0..batch.len() {
            let verdict = match without.next_if(|(at, _)| *at == line) {
                Some((_, NoKey::NoField | NoKey::Bad(_))) => Verdict::Kept,
                Some((_, NoKey::Empty | NoKey::Elsewhere)) => Verdict::LeftOut,
                None if digest == most => break,
                None => {
                    let i = digest;
                    digest += 1;
                    if bit(&self.fresh, i) {
                        Verdict::New
                    } else {
                        match self.read_again.checked_sub(1) {
                            Some(left) => self.read_again = left,
                            None => self.totals.repeated += 1,
                        }
                        Verdict::Repeat {
                            first: self.reported.as_ref().is_none_or(|r| r.is_first(i)),
                        }
                    }
                }
            };
            self.emit.line(batch, line, verdict)?;
            handled = line + 1;
        }
        self.emit.end_batch(batch)?;
        self.totals.lines += handled as u64;
        if handled < batch.len() {
            // Only what was handled counts; the rest will be read again.
            self.keys.recount(batch, handled)?;
        }
        self.totals.keys += self.keys.counts();
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

    fn finish(mut self, inputs: usize, full: bool) -> Result<ExitCode> {
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
                (Some(_), AnyFilter::Bloom(_)) => (
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
        let unique = if self.seen.is_full() && self.args.when_full == WhenFull::Pass {
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
        if self.seen.is_full() && self.args.when_full != WhenFull::Stop {
            let error = self.seen.error_now();
            let label = match self.args.when_full {
                WhenFull::Pass => "memory full: later lines were not remembered; error",
                _ => "memory full: the error has come to",
            };
            table.row("error", label, figure(error), error);
        }
        let kind = self.seen.filter().kind().name();
        table.row("memory", "", kind, kind);
        let items = Contains::about(self.seen.filter())
            .promise()
            .map_or(0, |promise| promise.items);
        table.row("capacity", "", "", items);
        let seconds = self.started.elapsed().as_secs_f64();
        table.row("seconds", "seconds", figure(seconds), seconds);
        if let Some(peak) = memory::peak_resident() {
            table.row("peak_memory", "peak memory", format_size(peak), peak);
        }
        table
    }
}
