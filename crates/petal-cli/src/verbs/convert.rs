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
use crate::report::{Table, figure};
use crate::walk;

/// Runs the verb.
pub(crate) fn run(args: &ConvertArgs) -> Result<ExitCode> {
    let started = Instant::now();
    let overwrite = filters::check_target(&args.output, args.force)?;
    let memory = args.run.memory.as_deref();
    let Some(filter) = foreign::open(&args.filter, &args.foreign, memory)? else {
        // Neither of which is what cannot be read.
        petal::inspect(&args.filter).map_err(|error| filters::named(&args.filter, error))?;
        bail!(
            "{} is a filter of petal, whose hash no other system has: build the other one from \
             the list of its keys",
            display_name(&args.filter)
        );
    };
    let to = args.to.as_deref().map(foreign::target).transpose()?;
    let to = to.unwrap_or(Some(filter.format()));
    let mut table = Table::default();
    if args.list.is_empty() {
        take_over(args, &*filter, to, overwrite)?;
    } else {
        let promise = promise(args, &*filter)?;
        let lines = match to {
            Some(format) => rebuild(args, format, promise, overwrite)?,
            None => rebuild_petal(args, promise, overwrite)?,
        };
        table.count("lines", "lines read", lines.read);
        table.count_if_any("no_key", "without a key (left out)", lines.without_key);
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

/// What the new filter is made for: what the flags say, or the old one.
fn promise(args: &ConvertArgs, filter: &dyn ForeignFilter) -> Result<Promise> {
    let parameters = filter.parameters();
    let missing = |what: &str, flag: &str| {
        anyhow!(
            "{}: a file of {} does not say {what}: give {flag}",
            display_name(&args.filter),
            filter.format()
        )
    };
    let items = match &args.items {
        Some(text) => params::items(text)?,
        None => parameters
            .items
            .ok_or_else(|| missing("for how many keys it was made", "-n"))?,
    };
    let error = match &args.fpr {
        Some(text) => params::fpr(text)?,
        None => parameters
            .error
            .ok_or_else(|| missing("for which error it was made", "-p"))?,
    };
    Ok(Promise { items, error })
}

/// Lines of the lists.
#[derive(Default)]
struct Read {
    read: u64,
    without_key: u64,
}

/// Calls with the key of every line of the lists.
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
        while lines.next_batch(&mut batch)? {
            for line in batch.iter() {
                done.read += 1;
                match keys.of(line, &mut units, &mut call) {
                    Some(result) => result?,
                    None => done.without_key += 1,
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
