//! `petal build`: a filter from lists of lines.
//!
//! Owns the run: what is checked before anything is read, and the summary.
//! How keys are counted and put into a filter is [`fill`]'s.

mod cascade;
mod fill;
mod fixed;
mod sort;
mod target;
mod twice;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use petal::{
    AnyFilter, Contains, CounterBits, Identity, Increase, Labels, Overload, Overwrite, Promise,
    Secret, WindowSpan,
};

use crate::args::{BuildArgs, BuildKind};
use crate::filters;
use crate::intake::Intake;
use crate::keys;
use crate::os::{self, display_name};
use crate::params;
use crate::report::{Table, figure};
use crate::units::{Span, format_size};
use crate::walk::{Position, Walk};
use fill::{Fill, Filled};
use fixed::ValueField;
use target::Shape;

/// Runs the verb.
pub(crate) fn run(args: &BuildArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let secret = keys::secret(&args.secret)?;
    let like = match &args.like {
        Some(path) => Some(Model::read(path, secret.as_ref())?),
        None => None,
    };
    let (identity, error) = match &like {
        Some(model) => (model.identity.clone(), model.promise.error),
        None => (
            keys::identity(&args.keys, &args.records, secret)?,
            match args.kind {
                // Whatever makes it smallest.
                BuildKind::Cascade if args.fpr.parse() == Ok(1.0) => 1.0,
                _ => params::fpr(&args.fpr)?,
            },
        ),
    };
    if args.kind != BuildKind::Classic && args.positions.is_some() {
        bail!("-k belongs to the textbook filter: add --kind classic");
    }
    let counting = counting(args)?;
    let (span, items) = span_and_items(args)?;
    let fixed = matches!(args.kind, BuildKind::Static | BuildKind::Cascade);
    if fixed && items.is_some() {
        bail!("this kind takes no key later, and counts those that there are: leave -n out");
    }
    if !fixed && args.tmp.is_some() {
        bail!(
            "--tmp belongs to --kind static and cascade: the other kinds need no temporary files"
        );
    }
    check_lists(args)?;
    let value = value_field(args)?;
    let mut labels = labels(&args.label)?;
    if let WindowSpan::Time { .. } = span {
        let (name, value) = filters::CLOCK;
        if labels.get(name).is_some() {
            bail!("--label {name}=...: a window of time records that one itself");
        }
        labels.set(name, value)?;
    }
    let budget = params::budget(args.run.memory.as_deref())?;
    params::check_present(&args.files)?;
    params::check_present(&args.not_listed)?;
    refuse_as_input(args)?;
    let overwrite = filters::check_target(&args.output, args.force)?;
    let mut fill = Fill {
        args,
        walk: Walk {
            files: args.files.as_slice().into(),
            from: Position::default(),
            options: params::line_options(
                keys::terminator(&args.records),
                budget,
                !identity.normalisation.is_plain(),
            ),
            threads: params::threads(args.run.threads),
            label: "build",
            quiet: args.run.quiet,
            outputs: Vec::new(),
        },
        intake: Intake::new(identity, args.keys.skip_empty, args.skip_bad),
        error,
        usable: crate::budget::usable(budget)?,
        budget,
        counting,
        span,
        value,
    };
    let mut filled = match &like {
        Some(model) => fill.run_like(model.shape, model.promise.items)?,
        None => fill.run(items)?,
    };
    if let Some(model) = &like {
        filled
            .filter
            .set_generation(model.generation.saturating_add(1));
    }
    *filled.filter.labels_mut() = labels;
    save(&filled.filter, &args.output, overwrite)?;
    summary(args, &fill.intake, &filled, started).print(&args.run);
    Ok(ExitCode::SUCCESS)
}

/// Refuses lists that the kind does not take.
fn check_lists(args: &BuildArgs) -> Result<()> {
    if args.kind != BuildKind::Cascade {
        if !args.not_listed.is_empty() {
            bail!("--not-listed belongs to a filter of two lists: add --kind cascade");
        }
        return Ok(());
    }
    if args.not_listed.is_empty() {
        bail!(
            "--kind cascade is exact for two lists: give the lines that must not be found with \
             --not-listed"
        );
    }
    let stdin = [PathBuf::from("-")];
    let listed = match &args.files[..] {
        [] => &stdin,
        files => files,
    };
    // Named twice it is empty the second time.
    let listed: Vec<_> = listed.iter().filter_map(|path| os::pipe(path)).collect();
    let twice = |path: &&PathBuf| os::pipe(path).is_some_and(|pipe| listed.contains(&pipe));
    if let Some(path) = args.not_listed.iter().find(twice) {
        bail!(
            "{} cannot be both lists, since it can be read only once: put one of them into a file",
            display_name(path)
        );
    }
    Ok(())
}

/// The field with the value of each line.
fn value_field(args: &BuildArgs) -> Result<Option<ValueField>> {
    let Some(number) = args.value_field else {
        return Ok(None);
    };
    if args.kind != BuildKind::Static {
        bail!("--value-field belongs to a filter that keeps values: add --kind static");
    }
    let (Some(key), Some(delimiter)) = (args.keys.field, &args.keys.delimiter) else {
        bail!(
            "--value-field {number} needs a key that is another field: add --field and --delimiter"
        );
    };
    if number == 0 || number == key {
        bail!(
            "--value-field {number} is not possible: fields are numbered from 1, and {key} is the key"
        );
    }
    let delimiter = keys::delimiter_byte(delimiter)?;
    Ok(Some(ValueField { number, delimiter }))
}

/// What `--like` takes from a filter.
struct Model {
    identity: Identity,
    shape: Shape,
    promise: Promise,
    generation: u64,
}

impl Model {
    /// Looks at a filter without reading its payload.
    fn read(path: &Path, secret: Option<&Secret>) -> Result<Self> {
        let filter = filters::open_mapped(path, secret)?;
        let name = display_name(path);
        let shape = match &filter {
            AnyFilter::Bloom(filter) => Shape::Bloom(filter.geometry()),
            AnyFilter::Classic(filter) => Shape::Classic(filter.geometry()),
            AnyFilter::Counting(filter) => Shape::Counting(filter.geometry()),
            AnyFilter::Deletable(filter) => Shape::Deletable(filter.geometry()),
            other => bail!(
                "{name}: --like is for filters that merge only with those of their shape: bloom, \
                 classic, counting and deletable, not {}; use --kind",
                other.kind()
            ),
        };
        let about = filter.about();
        let Some(promise) = about.promise() else {
            bail!("{name}: does not say for how many keys it was made: use -n and -p");
        };
        Ok(Self {
            identity: about.identity().clone(),
            shape,
            promise,
            generation: about.generation(),
        })
    }
}

/// The counters of a counting filter.
fn counting(args: &BuildArgs) -> Result<(CounterBits, Increase)> {
    if args.kind != BuildKind::Counting && (args.counter_bits.is_some() || args.minimal) {
        bail!("--counter-bits and --minimal belong to counters: add --kind counting");
    }
    let bits = match args.counter_bits {
        None | Some(4) => CounterBits::Four,
        Some(8) => CounterBits::Eight,
        Some(16) => CounterBits::Sixteen,
        Some(bits) => bail!("--counter-bits {bits} is not possible: use 4, 8 or 16"),
    };
    let increase = match args.minimal {
        true => Increase::Minimal,
        false => Increase::All,
    };
    Ok((bits, increase))
}

/// What a window spans, and the number of keys: for a window of lines it is
/// the span.
fn span_and_items(args: &BuildArgs) -> Result<(WindowSpan, Option<u64>)> {
    let items = args.items.as_deref().map(params::items).transpose()?;
    if args.kind != BuildKind::Window {
        if args.window.is_some() {
            bail!("--window belongs to a filter that forgets: add --kind window");
        }
        return Ok((WindowSpan::Keys, items));
    }
    let Some(window) = &args.window else {
        bail!("--kind window needs --window: how many lines (1M) or how much time (24h) it spans");
    };
    match params::span(window)? {
        Span::Lines(_) if items.is_some() => {
            bail!("--window {window} is a number of lines already: leave -n out");
        }
        Span::Lines(lines) => Ok((WindowSpan::Keys, Some(lines))),
        Span::Time(_) if items.is_none() => bail!(
            "--window {window} is a time: say with -n how many distinct lines come within it at \
             most"
        ),
        Span::Time(micros) => {
            let span = WindowSpan::Time {
                ticks: micros.div_ceil(1000),
                overload: Overload::Shorten,
            };
            Ok((span, items))
        }
    }
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
    let mut inputs = args.files.iter().chain(&args.not_listed);
    if let Some(path) = inputs.find(|path| same(path)) {
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
    let mut repeated = intake.keyed().saturating_sub(filled.keys);
    if let AnyFilter::Cascade(cascade) = filter {
        let others = cascade.not_listed();
        table.count("not_listed", "distinct keys not listed", others);
        repeated = repeated.saturating_sub(others);
    }
    repeated = repeated.saturating_sub(filled.without_value);
    let label = match filter {
        AnyFilter::Counting(_) | AnyFilter::Deletable(_) => "repeated (counted)",
        _ => "repeated",
    };
    table.count("repeated", label, repeated);
    if let AnyFilter::Window(window) = filter {
        let (held, shortened) = (window.held(), window.shortened());
        table.count("held", "in the window", held);
        table.count_if_any("shortened", "generations forgotten early", shortened);
    }
    intake.report(&mut table);
    let without = filled.without_value;
    table.count_if_any("no_value", "without a value (left out)", without);
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
