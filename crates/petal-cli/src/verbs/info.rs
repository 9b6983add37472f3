//! `petal info`: what a filter is.
//!
//! Everything a file says of itself, and what its words say: fill, keys and
//! error. A secret is not needed for any of it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use petal::sizing::{self, Collisions};
use petal::wire::WireContent;
use petal::{
    Error, FileInfo, FormatError, HasherRecord, Increase, KeyType, Measure, Shape, WindowSpan,
};
use sha2::{Digest, Sha256};

use crate::args::InfoArgs;
use crate::filters::{self, named};
use crate::foreign;
use crate::os::display_name;
use crate::output::Output;
use crate::report::{self, Table, figure, probability};
use crate::time;
use crate::units::{format_count, format_micros, format_size};

/// A block of lines for each file on stdout, or a line of JSON.
pub(crate) fn run(args: &InfoArgs) -> Result<ExitCode> {
    let mut output = Output::stdout()?;
    let mut code = ExitCode::SUCCESS;
    let mut first = true;
    for path in &args.filters {
        match describe(path, args) {
            Ok(table) if args.json => output.write(format!("{}\n", table.json()).as_bytes())?,
            Ok(table) => {
                let gap = if first { "" } else { "\n" };
                let text = format!("{gap}{}\n{}", display_name(path), table.text_left("  "));
                output.write(text.as_bytes())?;
                first = false;
            }
            Err(error) => {
                output.flush()?;
                report::say(&format!("petal: {error:#}"));
                code = ExitCode::from(crate::ERROR);
            }
        }
    }
    output.finish()?;
    Ok(code)
}

fn describe(path: &Path, args: &InfoArgs) -> Result<Table> {
    // What cannot be looked at is for the readers to say.
    if std::fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo()) {
        bail!(
            "{} is a pipe, and a file is read more than once: write it to a file first",
            display_name(path)
        );
    }
    if let Some(other) = foreign::open(path, &args.foreign, None)? {
        foreign::check_flags(&args.foreign, &[Some(other.format())])?;
        let sha256 = sha256(path).with_context(|| display_name(path))?;
        return Ok(foreign::describe(path, &*other, sha256));
    }
    foreign::check_flags(&args.foreign, &[None])?;
    let info = match petal::inspect(path) {
        Err(Error::Format(FormatError::Wire)) => return describe_wire(path),
        other => other.map_err(|error| named(path, error))?,
    };
    // A file between two generations has no checksums to go by.
    if !info.dirty {
        petal::verify(path).map_err(|error| named(path, error))?;
    }
    let measure = petal::measure(path).map_err(|error| named(path, error))?;
    let sha256 = sha256(path).with_context(|| display_name(path))?;
    let mut table = Table::default();
    table.row("file", "", "", display_name(path));
    keys(&mut table, &info);
    shape(&mut table, &info);
    load(&mut table, &info, &measure);
    file(&mut table, &info, sha256);
    Ok(table)
}

/// The same of a packed filter or a delta.
fn describe_wire(path: &Path) -> Result<Table> {
    let info = petal::wire::inspect(path).map_err(|error| named(path, error))?;
    let mut table = Table::default();
    table.row("file", "", "", display_name(path));
    let (content, from) = match info.content {
        WireContent::Delta { from } => ("delta", Some(from)),
        _ => ("packed", None),
    };
    table.row("content", "content", content, content);
    let kind = info.kind.name();
    table.row("kind", "filter", kind, kind);
    let generation = match from {
        Some(from) => format!("{from} to {}", info.generation),
        None => info.generation.to_string(),
    };
    table.row("generation", "generation", generation, info.generation);
    table.row("from_generation", "", "", from);
    let (bytes, filter) = (info.bytes, info.filter_bytes);
    table.row("file_bytes", "file", format_size(bytes), bytes);
    table.row(
        "filter_bytes",
        "file of the filter",
        format_size(filter),
        filter,
    );
    Ok(table)
}

/// What the keys are.
fn keys(table: &mut Table, info: &FileInfo) {
    let kind = info.kind.name();
    table.row("kind", "kind", kind, kind);
    let keys = info.key_type.to_string();
    table.row("key_type", "keys", keys.clone(), keys);
    let flags = info.normalisation.to_string();
    table.row("normalisation", "read from lines", flags.clone(), flags);
    let (hasher, seed, check) = match info.hasher {
        HasherRecord::Portable { seed } => ("portable", Some(seed), None),
        HasherRecord::Keyed { check } => ("keyed", None, Some(format!("{check:016x}"))),
    };
    let text = match (seed, &check) {
        (Some(seed), _) => format!("{hasher}, seed {seed}"),
        (_, Some(check)) => format!("{hasher}, check value {check}"),
        _ => hasher.to_owned(),
    };
    table.row("hasher", "hasher", text, hasher);
    table.row("seed", "", "", seed);
    table.row("check_value", "", "", check);
    let labels: serde_json::Map<_, _> = info
        .labels
        .iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    for (name, value) in info.labels.iter() {
        let text = format!("{name}={}", value.escape_debug());
        table.text_row("label", text);
    }
    table.row("labels", "", "", labels);
}

/// What it was made for, and its shape.
fn shape(table: &mut Table, info: &FileInfo) {
    let promise = info.promise;
    if let Some(promise) = promise {
        let text = format!(
            "{} keys at an error of {}",
            format_count(promise.items),
            probability(promise.error)
        );
        table.text_row("made for", text);
    }
    table.row("items", "", "", promise.map(|promise| promise.items));
    table.row(
        "promised_error",
        "",
        "",
        promise.map(|promise| promise.error),
    );
    let (text, value) = match &info.shape {
        Shape::Bloom(shape) => (
            format!("{shape}, {} bits a key", shape.bits_per_key()),
            serde_json::json!({
                "regions": shape.regions(),
                "blocks": shape.blocks(),
                "block_words": shape.block().count(),
            }),
        ),
        Shape::Classic(shape) => (
            shape.to_string(),
            serde_json::json!({ "m": shape.bits(), "k": shape.positions() }),
        ),
        Shape::Growable { plan, stages } => (
            format!(
                "{} stages from {} keys on, at an error of {}",
                stages.len(),
                format_count(plan.first()),
                probability(plan.error())
            ),
            serde_json::json!({
                "stages": stages.len(),
                "first": plan.first(),
                "error": plan.error(),
                "ceiling": plan.declared_ceiling(),
            }),
        ),
        Shape::DigestSet { slots } => (
            format!("{} slots of 64 bits", format_count(*slots)),
            serde_json::json!({ "slots": slots }),
        ),
        Shape::Counting(shape) => (
            shape.to_string(),
            serde_json::json!({
                "regions": shape.split().regions(),
                "blocks": shape.split().blocks(),
                "block_words": shape.split().block().count(),
                "counter_bits": shape.counter().count(),
                "minimal": shape.increase() == Increase::Minimal,
            }),
        ),
        Shape::Deletable { geometry, used } => (
            format!(
                "{} slots with {} bits of a fingerprint",
                format_count(geometry.slots()),
                geometry.remainder_bits()
            ),
            serde_json::json!({
                "slots": geometry.slots(),
                "remainder_bits": geometry.remainder_bits(),
                "used": used,
            }),
        ),
        Shape::Static(geometry) => (
            format!(
                "{} bits of a fingerprint{}, in {}",
                figure(geometry.columns()),
                match geometry.value_bits() {
                    0 => String::new(),
                    bits => format!(" and {bits} of a value"),
                },
                match geometry.shards() {
                    1 => "1 shard".to_owned(),
                    shards => format!("{} shards", format_count(shards)),
                }
            ),
            serde_json::json!({
                "columns": geometry.columns(),
                "value_bits": geometry.value_bits(),
                "shards": geometry.shards(),
            }),
        ),
        Shape::Cascade(geometry) => (
            format!(
                "exact for these keys and {} that are not listed{}",
                format_count(geometry.not_listed()),
                match geometry.is_inverted() {
                    true => "; keys of neither list are mostly found",
                    false => "",
                }
            ),
            serde_json::json!({
                "not_listed": geometry.not_listed(),
                "inverted": geometry.is_inverted(),
            }),
        ),
        Shape::Window { geometry, .. } => (
            geometry.to_string(),
            serde_json::json!({
                "lanes": geometry.lanes(),
                "regions": geometry.regions(),
                "parts": geometry.parts(),
                "lines": geometry.lines(),
                "generations": geometry.generations(),
            }),
        ),
        _ => (String::new(), serde_json::Value::Null),
    };
    table.row("geometry", "geometry", text, value);
}

/// How full it is, and what that means.
fn load(table: &mut Table, info: &FileInfo, measure: &Measure) {
    // The file has one number, and kinds count different things.
    let [mut distinct, mut insertions, mut new_keys] = [None; 3];
    let (counted, label, what) = match &info.shape {
        Shape::Counting(_) => (&mut insertions, "insertions", "with repeats, less removals"),
        Shape::Window { .. } => (&mut new_keys, "new keys", "of all time"),
        Shape::Deletable { .. } => (&mut distinct, "distinct keys", "different fingerprints"),
        Shape::Static(_) => (&mut distinct, "distinct keys", "different digests"),
        Shape::Cascade(_) => (&mut distinct, "listed keys", "different digests"),
        _ => (&mut distinct, "distinct keys", "that changed a bit"),
    };
    *counted = info.insertions;
    let text = match info.insertions {
        Some(count) => format!("{}, {what}", format_count(count)),
        None => "unknown".to_owned(),
    };
    table.text_row(label, text);
    table.row("distinct", "", "", distinct);
    table.row("insertions", "", "", insertions);
    table.row("new_keys", "", "", new_keys);
    let keys = measure.estimated_len;
    table.estimate("estimated_keys", "estimated keys", keys);
    let fill = format!("{:.1} %", measure.fill * 100.0);
    table.row("fill", "fill", fill, measure.fill);
    if let Some(saturated) = measure.saturated {
        let text = format!("{} (never go down)", format_count(saturated));
        table.row("saturated", "saturated counters", text, saturated);
    }
    if let Shape::Deletable { used, .. } = &info.shape {
        table.count("used_slots", "slots in use", *used);
    }
    window(table, info, measure);
    let error = measure.error_now;
    let label = match info.shape {
        Shape::Cascade(_) => "error for other keys",
        _ => "error now",
    };
    table.row("error_now", label, figure(error), error);
    let collisions = match (info.hasher, info.key_type) {
        (HasherRecord::Portable { .. }, KeyType::Int) => Collisions::Never,
        _ => Collisions::Digest64,
    };
    let items = info.promise.map(|promise| promise.items);
    let at_capacity = match (&info.shape, items) {
        (Shape::Bloom(shape), Some(items)) => Some(sizing::split_error(*shape, items, collisions)),
        (Shape::Classic(shape), Some(items)) => {
            sizing::classic_error(items, shape.bits(), shape.positions(), collisions).ok()
        }
        (Shape::Growable { plan, .. }, _) => Some(plan.error()),
        (Shape::Counting(shape), Some(items)) => {
            Some(sizing::split_error(shape.split(), items, collisions))
        }
        (Shape::Deletable { geometry, .. }, Some(items)) => {
            Some(sizing::deletable_error(*geometry, items))
        }
        // It is full.
        (Shape::Static(_) | Shape::Cascade(_), Some(_)) => Some(measure.error_now),
        (Shape::Window { geometry, .. }, Some(items)) => {
            let keys = sizing::generation_keys(*geometry, items);
            Some(sizing::window_error(*geometry, keys, collisions))
        }
        _ => None,
    };
    match at_capacity {
        Some(error) => table.row("error_at_capacity", "error when full", figure(error), error),
        None => table.row("error_at_capacity", "", "", serde_json::Value::Null),
    }
    // A window forgets what is too much.
    let forgets = matches!(info.shape, Shape::Window { .. });
    let is_over = |promise| filters::is_over(promise, distinct, keys);
    let over = !forgets && info.promise.is_some_and(is_over);
    let warning = if over {
        "more keys than it was made for"
    } else {
        ""
    };
    let label = if over { "over capacity" } else { "" };
    table.row("over_capacity", label, warning, over);
}

/// What a window spans, and what is in it.
fn window(table: &mut Table, info: &FileInfo, measure: &Measure) {
    let Shape::Window {
        span,
        now,
        shortened,
        ..
    } = &info.shape
    else {
        return;
    };
    // In milliseconds, if petal itself has made it; else nobody knows.
    let is_clock = info.labels.get(filters::CLOCK.0) == Some(filters::CLOCK.1);
    let length = |ticks: u64| match is_clock {
        true => format_micros(ticks.saturating_mul(1000)),
        false => format!("{} ticks", format_count(ticks)),
    };
    let (text, ticks) = match (*span, info.promise) {
        (WindowSpan::Time { ticks, .. }, _) => (length(ticks), Some(ticks)),
        (WindowSpan::Keys, promise) => {
            let items = promise.map_or(0, |promise| promise.items);
            (format!("the last {} keys", format_count(items)), None)
        }
    };
    table.row("window", "window", text.clone(), text);
    table.row("window_ticks", "", "", ticks);
    let mut live = measure.generations.iter().filter(|g| g.keys > 0);
    let count = live.clone().count() as u64;
    table.count("generations", "generations with keys", count);
    if ticks.is_none() {
        return;
    }
    let text = match is_clock {
        true => time::format(now.saturating_mul(1000)),
        false => format!("tick {}", format_count(*now)),
    };
    table.row("now", "time told last", text, *now);
    let oldest = live
        .next_back()
        .map(|oldest| now.saturating_sub(oldest.first));
    match oldest {
        Some(age) => table.row("oldest_age", "oldest generation", length(age), age),
        None => table.row("oldest_age", "", "", serde_json::Value::Null),
    }
    table.count_if_any("shortened", "generations forgotten early", *shortened);
}

/// The file itself.
fn file(table: &mut Table, info: &FileInfo, sha256: String) {
    let text = format!(
        "{} ({} bytes, payload {})",
        format_size(info.file_bytes),
        format_count(info.file_bytes),
        format_count(info.payload_bytes)
    );
    table.row("file_bytes", "file", text, info.file_bytes);
    table.row("payload_bytes", "", "", info.payload_bytes);
    let version = u64::from(info.version);
    table.row(
        "format_version",
        "format version",
        version.to_string(),
        version,
    );
    let generation = info.generation;
    let text = match info.dirty {
        true => format!("{generation}, and a writer was interrupted or is at work"),
        false => generation.to_string(),
    };
    table.row("generation", "generation", text, generation);
    table.row("dirty", "", "", info.dirty);
    for (name, bytes) in info.attachments.iter() {
        let size = format_size(bytes.len() as u64);
        table.text_row("attachment", format!("{name}, {size}"));
    }
    let attachments: serde_json::Map<_, _> = info
        .attachments
        .iter()
        .map(|(name, bytes)| (name.to_owned(), bytes.len().into()))
        .collect();
    table.row("attachments", "", "", attachments);
    table.row("sha256", "SHA-256", sha256.clone(), sha256);
}

/// The SHA-256 of a file, in hex.
fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => hasher.update(&buffer[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
