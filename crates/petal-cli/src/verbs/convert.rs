//! `petal convert`: the filter of one system as a file of another.
//!
//! Owns when that is possible: bits are taken over between files of one
//! format; for another format the keys are needed again.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use petal::normalise::Normalisation;
use petal::{AnyFilter, Bloom, Identity, Overwrite, Promise};
use petal_interop::{Encoding, ForeignFilter, ForeignKey, Format};

use crate::args::{ConvertArgs, EncodingArg, ForeignForm};
use crate::filters;
use crate::foreign::{self, LineKeys};
use crate::input::{Batch, Input, Lines};
use crate::keys;
use crate::os::display_name;
use crate::params;
use crate::report::{Table, figure, probability};
use crate::units::format_count;
use crate::walk;

/// Bytes of a line that an error shows.
const SHOWN: usize = 60;

/// Runs the verb.
pub(crate) fn run(args: &ConvertArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let overwrite = filters::check_target(&args.output, args.force)?;
    let memory = args.run.memory.as_deref();
    let filter = foreign::open(&args.filter, &args.foreign, memory)?;
    let from = filter.as_ref().map(|filter| filter.format());
    let to = args.to.as_deref().map(foreign::target).transpose()?;
    let to = to.unwrap_or(from);
    foreign::check_flags(&args.foreign, &[from, to])?;
    let mut table = Table::default();
    if args.list.is_empty() {
        let Some(filter) = filter else {
            // Neither of which is what cannot be read.
            petal::inspect(&args.filter).map_err(|error| filters::named(&args.filter, error))?;
            bail!(
                "{} is a filter of petal, whose hash no other system has: give its keys again \
                 with --list",
                display_name(&args.filter)
            );
        };
        take_over(args, &*filter, to, overwrite)?;
    } else {
        let made_for = match &filter {
            Some(filter) => made_for(&**filter),
            None => {
                petal::inspect(&args.filter)
                    .map_err(|error| filters::named(&args.filter, error))?
                    .promise
            }
        };
        drop(filter);
        let promise = promise(args, made_for)?;
        let items = format_count(promise.items);
        table.row("items", "made for keys", items, promise.items);
        table.row(
            "error",
            "at an error of",
            probability(promise.error),
            promise.error,
        );
        let lines = match to {
            Some(format) => rebuild(args, format, promise, overwrite)?,
            None => rebuild_petal(args, promise, overwrite)?,
        };
        table.count("lines", "lines read", lines.read);
        table.count_if_any("bad", "not of the form (left out)", lines.bad);
    }
    let seconds = started.elapsed().as_secs_f64();
    table.row("seconds", "seconds", figure(seconds), seconds);
    table.print(&args.run);
    Ok(ExitCode::SUCCESS)
}

/// Writes the same bits.
fn take_over(
    args: &ConvertArgs,
    filter: &dyn ForeignFilter,
    to: Option<Format>,
    overwrite: Overwrite,
) -> Result<()> {
    let from = filter.format();
    if to != Some(from) {
        let (name, hash) = match to {
            Some(to) => (to.name(), to.hashing()),
            None => ("petal", "XXH3 of 64 bits into blocks of a cache line"),
        };
        bail!(
            "{}: bits of {from} say nothing to {name}: {from} places a key by {}, {name} by \
             {hash}, and a filter does not know its keys; give them again with --list",
            display_name(&args.filter),
            from.hashing()
        );
    }
    let encoding = encoding(args).unwrap_or(filter.encodings()[0]);
    foreign::save(filter, encoding, &args.output, overwrite)
}

const fn encoding(args: &ConvertArgs) -> Option<Encoding> {
    Some(match args.encoding {
        None => return None,
        Some(EncodingArg::Plain) => Encoding::Plain,
        Some(EncodingArg::Gzip) => Encoding::Gzip,
        Some(EncodingArg::Json) => Encoding::Json,
        Some(EncodingArg::Hex) => Encoding::Hex,
    })
}

/// What a filter was made for: as its file says, or what m bits and k positions
/// are best for, n = m ln 2 / k keys at an error of 2^-k.
fn made_for(filter: &dyn ForeignFilter) -> Option<Promise> {
    let parameters = filter.parameters();
    let positions = parameters.positions.max(1) as f64;
    let best = parameters.bits as f64 * std::f64::consts::LN_2 / positions;
    // An f64 that is too large becomes the largest integer.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and is never below 1"
    )]
    let best = best.max(1.0) as u64;
    Some(Promise {
        items: parameters.items.unwrap_or(best),
        error: parameters.error.unwrap_or_else(|| (-positions).exp2()),
    })
}

/// What the new filter is made for: what the flags say, or the old one. All
/// that is wrong is said at once.
fn promise(args: &ConvertArgs, old: Option<Promise>) -> Result<Promise> {
    let missing = |flag: &str| {
        anyhow!(
            "{} does not say what it was made for: give {flag}",
            display_name(&args.filter)
        )
    };
    let items = match &args.items {
        Some(text) => params::items(text),
        None => old.map(|old| old.items).ok_or_else(|| missing("-n")),
    };
    let error = match &args.fpr {
        Some(text) => params::fpr(text),
        None => old.map(|old| old.error).ok_or_else(|| missing("-p")),
    };
    match (items, error) {
        (Err(one), Err(other)) => Err(anyhow!("{one:#}; {other:#}")),
        (items, error) => Ok(Promise {
            items: items?,
            error: error?,
        }),
    }
}

/// Lines of the lists.
#[derive(Default)]
struct Read {
    read: u64,
    bad: u64,
}

/// Calls with the key of every line of the lists. A line that is none is an
/// error, as it is to `build`, unless such lines are to be left out.
fn each_key(
    args: &ConvertArgs,
    mut call: impl FnMut(ForeignKey<'_>) -> Result<()>,
) -> Result<Read> {
    let terminator = keys::terminator(&args.records);
    let budget = params::budget(args.run.memory.as_deref())?;
    let keys = LineKeys::new(args.form, terminator);
    let (mut done, mut units) = (Read::default(), Vec::new());
    for path in &args.list {
        let options = params::line_options(terminator, budget, true);
        let mut lines = Lines::new(Input::open(path)?, &options);
        let mut batch = Batch::new(walk::BATCH);
        let mut number = 0u64;
        while lines.next_batch(&mut batch)? {
            for line in batch.iter() {
                done.read += 1;
                number += 1;
                match keys.of(line, &mut units, &mut call) {
                    Some(result) => result?,
                    None if args.skip_bad => done.bad += 1,
                    None => bail!(
                        "{}:{number}: not of the form {}: \"{}\"; nothing was written; leave such \
                         lines out with --skip-bad, or name their form with --as",
                        display_name(path),
                        args.form.name(),
                        line[..line.len().min(SHOWN)].escape_ascii()
                    ),
                }
            }
        }
    }
    Ok(done)
}

fn rebuild(
    args: &ConvertArgs,
    format: Format,
    promise: Promise,
    overwrite: Overwrite,
) -> Result<Read> {
    let failed = |error| foreign::named(&args.output, &error);
    let options = foreign::options(&args.foreign);
    let mut new =
        petal_interop::create(format, promise.items, promise.error, &options).map_err(failed)?;
    let lines = each_key(args, |key| new.insert(key).map(drop).map_err(failed))?;
    let encoding = encoding(args).unwrap_or(new.encodings()[0]);
    foreign::save(&*new, encoding, &args.output, overwrite)?;
    Ok(lines)
}

fn rebuild_petal(args: &ConvertArgs, promise: Promise, overwrite: Overwrite) -> Result<Read> {
    if args.form != ForeignForm::Line {
        bail!("--as is for filters of other systems: a filter of petal is built by `petal build`");
    }
    if args.encoding.is_some() {
        bail!("--encoding is for other systems: a filter of petal is written in one way");
    }
    let normalisation = Normalisation::lines().with_cr_trimmed(!args.records.null);
    let identity = Identity::new(normalisation.key_type()).with_normalisation(normalisation);
    let failed = |error| filters::named(&args.output, error);
    let mut new = AnyFilter::from(Bloom::sized(identity, promise).map_err(failed)?);
    let lines = each_key(args, |key| match key {
        ForeignKey::Text(text) => new.insert_bytes(text.as_bytes()).map(drop).map_err(failed),
        ForeignKey::Bytes(bytes) => new.insert_bytes(bytes).map(drop).map_err(failed),
        _ => Ok(()),
    })?;
    new.save(&args.output, overwrite).map_err(failed)?;
    filters::warn_if_overfull(&new, &args.output);
    Ok(lines)
}
