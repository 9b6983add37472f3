//! `petal dedup --window`: lines that were not seen within the last lines, or
//! stretch of time.
//!
//! Owns the run: the plan, batch after batch from digests and times to
//! output, and the summary. What is remembered is [`memory`]'s, the times of
//! lines are [`stamp`]'s, where lines go is [`super::emit`]'s.

mod memory;
mod stamp;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::sizing::{DEFAULT_GENERATIONS, window_for};
use petal::{Identity, Overload, Promise, Window, WindowGeometry, WindowSpan};

use super::emit::{Emit, Verdicts};
use super::{Totals, places};
use crate::args::{DedupArgs, WhenFull};
use crate::input::Batch;
use crate::keys::{self, KeyedLines, Keys, NoKey, Part};
use crate::mask;
use crate::params;
use crate::report::{self, Table, figure, probability};
use crate::time;
use crate::units::{Span, format_count, format_micros, format_size};
use crate::walk::{Flow, Place, Position, Visit, Walk};
use memory::Memory;
use stamp::{StampedKeys, StampedLines, TimeField};

/// The error, if none is asked for.
const ERROR: f64 = 1e-6;

/// Lines that a window of time is for, if nothing is said and the memory holds
/// them: 49 MiB at the default error.
const ITEMS: u64 = 10_000_000;

/// Bytes of a line that a warning shows.
const SHOWN: usize = 80;

/// Runs the verb.
pub(super) fn run(args: &DedupArgs, span: &str) -> Result<ExitCode> {
    let plan = Plan::new(args, span)?;
    report::plan(&args.run, &plan.text());
    plan.check_fits()?;
    Run::start(args, plan)?.complete()
}

/// What the flags say, checked before anything is allocated or opened for
/// writing.
struct Plan {
    identity: Identity,
    part: Option<Part>,
    time: Option<TimeField>,
    span: Span,
    promise: Promise,
    geometry: WindowGeometry,
    budget: u64,
    usable: u64,
    when_full: WhenFull,
}

impl Plan {
    fn new(args: &DedupArgs, span: &str) -> Result<Self> {
        let parsed = params::span(span)?;
        let time = TimeField::parse(args)?;
        refuse(args, parsed)?;
        let mut key_flags = args.keys.clone();
        if key_flags.field.is_none() && time.is_some() {
            // It is the time's alone.
            key_flags.delimiter = None;
        }
        let identity = keys::identity(&key_flags, &args.records, keys::secret(&args.secret)?)?;
        let part = args.part.as_deref().map(Part::parse).transpose()?;
        let budget = params::budget(args.run.memory.as_deref())?;
        let usable = crate::budget::usable(budget)?;
        let error = args.fpr.as_deref().map(params::fpr).transpose()?;
        let error = error.unwrap_or(ERROR);
        let items = args.items.as_deref().map(params::items).transpose()?;
        let shape = |items| window_for(items, error, DEFAULT_GENERATIONS, identity.collisions());
        let (items, geometry) = match (parsed, items) {
            (Span::Lines(items), _) | (Span::Time(_), Some(items)) => (items, shape(items)?),
            (Span::Time(_), None) => {
                let mut items = ITEMS;
                while shape(items)?.bytes() > usable && items > 1000 {
                    items /= 2;
                }
                (items, shape(items)?)
            }
        };
        params::check_present(&args.files)?;
        places::check(args)?;
        Ok(Self {
            identity,
            part,
            time,
            span: parsed,
            promise: Promise { items, error },
            geometry,
            budget,
            usable,
            when_full: args.when_full.unwrap_or(WhenFull::Loosen),
        })
    }

    fn text(&self) -> String {
        let lines = format_count(self.promise.items);
        let span = match self.span {
            Span::Lines(_) => format!("the last {lines} lines"),
            Span::Time(micros) => format!(
                "the last {}, up to {lines} distinct lines",
                format_micros(micros)
            ),
        };
        format!(
            "memory {}: a window over {span}, at an error of {}",
            format_size(
                self.geometry
                    .bytes()
                    .saturating_add(crate::budget::OVERHEAD)
            ),
            probability(self.promise.error)
        )
    }

    fn check_fits(&self) -> Result<()> {
        if self.geometry.bytes() > self.usable {
            let fewer = match self.span {
                Span::Lines(_) => "a shorter --window",
                Span::Time(_) => "a smaller -n",
            };
            bail!(
                "the window needs {}, the memory budget is {}: allow more with --memory, or give \
                 {fewer} or a larger -p",
                format_size(crate::budget::needed(self.geometry.bytes())),
                format_size(self.budget)
            );
        }
        Ok(())
    }

    fn window(&self) -> Result<Window> {
        // A window of lines has a clock that counts them: what the library calls a
        // window of keys does not count all repeats.
        let (Span::Lines(ticks) | Span::Time(ticks)) = self.span;
        let span = WindowSpan::Time {
            ticks,
            // What else is asked for is decided before it comes to that.
            overload: Overload::Shorten,
        };
        let identity = self.identity.clone();
        Ok(Window::with_geometry(
            identity,
            span,
            self.geometry,
            self.promise,
        )?)
    }
}

/// Refuses flags that do not go with a window.
fn refuse(args: &DedupArgs, span: Span) -> Result<()> {
    if args.state.is_some() {
        bail!(
            "--state does not go with --window: a later run could not tell how long the first one \
             is over; leave it out"
        );
    }
    if args.repeated {
        bail!(
            "-d does not go with --window, which forgets what groups there were: use -D for \
             all repeats"
        );
    }
    if let Span::Lines(_) = span {
        for (given, flag) in [
            (args.items.is_some(), "-n"),
            (args.time_field.is_some(), "--time-field"),
            (args.when_full.is_some(), "--when-full"),
        ] {
            if given {
                bail!(
                    "{flag} belongs to a window of time; this one is a number of lines: leave it \
                     out, or give a time such as 24h"
                );
            }
        }
    }
    Ok(())
}

/// A run under way.
struct Run<'a> {
    args: &'a DedupArgs,
    plan: Plan,
    keys: Arc<StampedKeys>,
    memory: Memory,
    emit: Emit,
    totals: Totals,
    position: Position,
    /// Lines without a readable time, and lines whose time lies more than a
    /// window before the latest.
    timeless: u64,
    late: u64,
    /// Whether a line with a time has come.
    dated: bool,
    /// The last line that was later than all before by more than a window, and
    /// its time.
    jump: Option<(String, u64)>,
    /// Whether it ended early, as the window is full.
    full: bool,
    warned_short: bool,
    /// The digests of a batch that are printed, and those that are not.
    fresh: Vec<u64>,
    old: Vec<u64>,
    verdicts: Verdicts,
    started: Instant,
}

impl<'a> Run<'a> {
    fn start(args: &'a DedupArgs, plan: Plan) -> Result<Self> {
        let started = Instant::now();
        let memory = Memory::new(plan.window()?, plan.when_full);
        let terminator = keys::terminator(&args.records);
        let keys = Keys::new(plan.identity.clone(), args.keys.skip_empty, plan.part);
        Ok(Self {
            emit: Emit::open(args, terminator, None)?,
            keys: Arc::new(StampedKeys {
                keys,
                time: plan.time,
            }),
            args,
            plan,
            memory,
            totals: Totals::default(),
            position: Position::default(),
            timeless: 0,
            late: 0,
            dated: false,
            jump: None,
            full: false,
            warned_short: false,
            fresh: Vec::new(),
            old: Vec::new(),
            verdicts: Verdicts::default(),
            started,
        })
    }

    fn complete(mut self) -> Result<ExitCode> {
        let terminator = keys::terminator(&self.args.records);
        let walk = Walk {
            files: self.args.files.as_slice().into(),
            from: Position::default(),
            options: params::line_options(
                terminator,
                self.plan.budget,
                !self.plan.identity.normalisation.is_plain(),
            ),
            threads: params::threads(self.args.run.threads),
            label: "dedup",
            quiet: self.args.run.quiet || self.emit.is_terminal(),
            outputs: self.emit.ids(),
        };
        let keys = Arc::clone(&self.keys);
        walk.each(&keys, &mut self)?;
        let table = self.summary();
        self.warn_of_late();
        let span = self.span();
        self.emit.finish()?;
        table.print(&self.args.run);
        if self.full {
            bail!(
                "the window of {span} is full: more than the {} distinct lines it is planned for \
                 come within it; the output is complete up to there: plan for more with -n, or \
                 go on with --when-full pass or loosen",
                format_count(self.plan.promise.items)
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    fn span(&self) -> String {
        match self.plan.span {
            Span::Lines(lines) => format!("{} lines", format_count(lines)),
            Span::Time(micros) => format_micros(micros),
        }
    }

    /// The time of arrival, if that is what counts: since the start, so that a
    /// clock that is set does no harm.
    fn arrival(&self) -> Option<u64> {
        let counts = matches!(self.plan.span, Span::Time(_)) && self.plan.time.is_none();
        counts.then(|| u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Takes the digests of a batch; how many, before the window was full.
    fn take(&mut self, batch: &Batch, lines: &StampedLines, place: &Place) -> Result<usize> {
        let digests = lines.keyed.digests();
        let count = digests.len();
        if let Span::Lines(_) = self.plan.span {
            self.take_by_number(&lines.keyed)?;
            return Ok(count);
        }
        if let Some(now) = self.arrival() {
            self.memory.advance(now)?;
            return self.memory.take(digests, 0..count, now, &mut self.fresh);
        }
        let mut done = 0;
        for same in lines.times.chunk_by(|a, b| a == b) {
            let run = done..done + same.len();
            done = run.end;
            let time = match same[0] {
                None => {
                    if self.timeless == 0 {
                        self.warn(
                            batch,
                            place,
                            lines.keyed.line_of(run.start),
                            "has no readable time",
                        );
                    }
                    self.timeless += same.len() as u64;
                    None
                }
                Some(time) if self.memory.window().is_past(time) => {
                    if self.late == 0 {
                        let why = "is older than the window of an earlier line";
                        self.warn(batch, place, lines.keyed.line_of(run.start), why);
                    }
                    self.late += same.len() as u64;
                    None
                }
                Some(time) => {
                    self.note_jump(time, lines.keyed.line_of(run.start), place);
                    self.memory.advance(time)?;
                    Some(time)
                }
            };
            let Some(time) = time else {
                for i in run {
                    self.fresh[i / 64] |= 1 << (i % 64);
                }
                continue;
            };
            let end = run.end;
            let taken = self.memory.take(digests, run, time, &mut self.fresh)?;
            if taken < end {
                return Ok(taken);
            }
        }
        Ok(count)
    }

    /// Takes the digests of a batch for a window of lines. The time of a line is its
    /// number in the whole input; those of lines that make no difference to each other
    /// are told at once.
    fn take_by_number(&mut self, keyed: &KeyedLines) -> Result<()> {
        let first = self.totals.lines;
        let mut numbers = keyed.lines().map(|line| first + line as u64).peekable();
        let mut start = 0;
        while let Some(number) = numbers.next() {
            self.memory.advance(number)?;
            let steady = self.memory.steady_until();
            let (mut last, mut end) = (number, start + 1);
            while let Some(number) = numbers.next_if(|&number| number < steady) {
                (last, end) = (number, end + 1);
            }
            self.memory.advance(last)?;
            let run = start..end;
            self.memory
                .take(keyed.digests(), run, last, &mut self.fresh)?;
            start = end;
        }
        Ok(())
    }

    /// Remembers the last line before any late one whose time put all before it out of the
    /// window: it is what makes lines late.
    fn note_jump(&mut self, time: u64, line: usize, place: &Place) {
        let Span::Time(ticks) = self.plan.span else {
            return;
        };
        let now = self.memory.window().now();
        if self.dated && self.late == 0 && time.saturating_sub(now) > ticks {
            let place = format!("{}:{}", place.name, place.line + line as u64);
            self.jump = Some((place, time));
        }
        self.dated = true;
    }

    /// Says at the end how many lines were older than the window, and what to do.
    fn warn_of_late(&self) {
        if self.late == 0 {
            return;
        }
        let jump = self.jump.as_ref().map_or_else(String::new, |(place, time)| {
            format!(
                "; {place} went ahead by more than a window, to {}: if that is wrong, leave the line \
                 out",
                time::format(*time)
            )
        });
        report::warn(&format!(
            "{} lines were older than a window of {} before the latest time: they are printed, and \
             were not remembered; sort the input by time, or give a longer --window{jump}",
            format_count(self.late),
            self.span()
        ));
    }

    /// Names the first line of a sort that is printed without being judged.
    fn warn(&self, batch: &Batch, place: &Place, line: usize, why: &str) {
        let bytes = batch.get(line);
        let shown = &bytes[..bytes.len().min(SHOWN)];
        let more = if shown.len() < bytes.len() { "..." } else { "" };
        report::warn(&format!(
            "{}:{}: {why}: \"{}{more}\"; such lines are printed, not remembered, and counted",
            place.name,
            place.line + line as u64,
            shown.escape_ascii()
        ));
    }

    /// Says once that lines are forgotten early.
    fn warn_if_short(&mut self) {
        if self.memory.shortest.is_some() && !self.warned_short {
            self.warned_short = true;
            report::warn(&format!(
                "more than the {} distinct lines come within {}: the oldest are forgotten early \
                 and printed again when they come back; plan for more with -n",
                format_count(self.plan.promise.items),
                self.span()
            ));
        }
    }

    /// From which digests are printed to which lines are what; returns how many
    /// lines of the batch were handled.
    fn judge(&mut self, batch: &Batch, lines: &StampedLines, taken: usize) -> usize {
        let keyed = &lines.keyed;
        let handled = match taken == keyed.digests().len() {
            true => batch.len(),
            false => keyed.line_of(taken),
        };
        self.old.clone_from(&self.fresh);
        mask::invert(&mut self.old, taken);
        self.totals.repeated += mask::count(&self.old);
        let Verdicts { new, repeats, .. } = &mut self.verdicts;
        keyed.by_line(&self.fresh, handled, new);
        keyed.by_line(&self.old, handled, repeats);
        for &(line, why) in keyed.without().iter().take_while(|(at, _)| *at < handled) {
            if matches!(why, NoKey::NoField | NoKey::Bad(_)) {
                new[line / 64] |= 1 << (line % 64);
            }
        }
        handled
    }

    fn summary(&mut self) -> Table {
        let counts = self.totals.keys;
        let mut table = Table::default();
        table.count("lines", "lines read", self.totals.lines);
        table.count("unique", "new within the window", self.memory.new_lines());
        table.count("repeated", "repeated", self.totals.repeated);
        let bytes = self.totals.bytes;
        table.row("bytes", "bytes read", format_size(bytes), bytes);
        table.count_if_any("empty", "empty lines left out", counts.empty);
        table.count_if_any("elsewhere", "lines of other parts", counts.elsewhere);
        table.count_if_any("no_field", "without the field (kept)", counts.no_field);
        table.count_if_any("not_url", "not URLs (compared as they are)", counts.not_url);
        table.count_if_any("bad", "not of the form (kept)", counts.bad);
        table.count_if_any("no_time", "without a readable time (kept)", self.timeless);
        table.count_if_any("late", "older than the window (kept)", self.late);
        let expected = self.memory.expected_loss();
        table.row(
            "expected_dropped",
            "expected number wrongly dropped",
            figure(expected),
            expected,
        );
        let passed = self.memory.passed;
        table.count_if_any("passed", "window full: lines not remembered", passed);
        let shortened = self.memory.window().shortened();
        table.count_if_any(
            "shortened",
            "fourteenths of the window forgotten early",
            shortened,
        );
        match self.memory.shortest {
            Some(micros) => table.row(
                "shortest",
                "the window at its shortest",
                format_micros(micros),
                micros as f64 / 1e6,
            ),
            None => table.row("shortest", "", "", serde_json::Value::Null),
        }
        table.row("memory", "", "", "window");
        table.row("capacity", "", "", self.plan.promise.items);
        let seconds = self.started.elapsed().as_secs_f64();
        table.row("seconds", "seconds", figure(seconds), seconds);
        if let Some(peak) = petal::memory::peak_resident() {
            table.row("peak_memory", "peak memory", format_size(peak), peak);
        }
        table
    }
}

impl Visit<StampedLines> for Run<'_> {
    fn visit(&mut self, batch: &Batch, lines: &mut StampedLines, place: &Place) -> Result<Flow> {
        if place.input != self.position.input {
            self.position = Position {
                input: place.input,
                offset: 0,
            };
        }
        mask::clear(&mut self.fresh, lines.keyed.digests().len());
        let taken = self.take(batch, lines, place)?;
        self.warn_if_short();
        let handled = self.judge(batch, lines, taken);
        self.emit.batch(batch, &self.verdicts)?;
        if handled < batch.len() {
            // Only what was handled counts.
            let keys = &self.keys.keys;
            keys.read_first(batch, handled, &mut lines.keyed)?;
        }
        self.totals.lines += handled as u64;
        self.totals.keys += lines.keyed.counts();
        if handled > 0 {
            let end = batch.end_offset(handled - 1);
            self.totals.bytes += end - self.position.offset;
            self.position.offset = end;
        }
        self.full = handled < batch.len();
        Ok(if self.full { Flow::Stop } else { Flow::GoOn })
    }

    fn idle(&mut self) -> Result<()> {
        self.emit.flush()?;
        if let Some(now) = self.arrival() {
            self.memory.advance(now)?;
        }
        Ok(())
    }
}
