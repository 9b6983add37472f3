//! `petal lab hash`: hashes measured on keys, as a table or JSON.

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use petal_interop::lab::{LabHash, LabKeys, LabPlan, LabResult, measure};
use serde_json::json;

use super::plot;
use crate::args::{KeyKindArg, LabHashArgs};
use crate::input::{Batch, Input, Lines};
use crate::os::display_name;
use crate::output::Output;
use crate::params;
use crate::report::{columns, figure};
use crate::walk;

/// Loads at which errors are measured.
const STEPS: usize = 20;

/// Keys that are inserted at most: all of them are in memory.
const MAX_ITEMS: u64 = 10_000_000;

/// Fewer say nothing.
const MIN_ITEMS: u64 = 50;

const MAX_POSITIONS: u32 = 64;

/// What the most keys have room for in 2^32 bits.
const MAX_BITS_PER_KEY: u64 = 400;

/// A row for each hash on stdout.
pub(crate) fn run(args: &LabHashArgs) -> Result<ExitCode> {
    let items = params::items(&args.items)?;
    let mut wrong = Vec::new();
    if !(MIN_ITEMS..=MAX_ITEMS).contains(&items) {
        wrong.push(format!(
            "-n {items}: {MIN_ITEMS} to {MAX_ITEMS} keys are measured"
        ));
    }
    if !(1..=MAX_POSITIONS).contains(&args.positions) {
        wrong.push(format!(
            "-k {}: use 1 to {MAX_POSITIONS} positions a key",
            args.positions
        ));
    }
    if !(1..=MAX_BITS_PER_KEY).contains(&args.bits_per_key) {
        wrong.push(format!(
            "--bits-per-key {}: use 1 to {MAX_BITS_PER_KEY}",
            args.bits_per_key
        ));
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("; "));
    }
    let wanted = usize::try_from(2 * items)?;
    let keys = match &args.keys {
        Some(path) => read(path, wanted)?,
        None => made(args.generate).make(wanted),
    };
    let plan = LabPlan {
        bits: (keys.len() as u64 / 2).saturating_mul(args.bits_per_key),
        positions: args.positions,
        steps: STEPS,
    };
    let hashes: Vec<LabHash> = match args.hashes.as_slice() {
        [] => LabHash::all().collect(),
        some => some.to_vec(),
    };
    let results = hashes.iter().map(|hash| measure(*hash, &keys, plan));
    let results: Vec<LabResult> = results.collect::<Result<_, _>>()?;
    if let Some(path) = &args.plot {
        let picture = plot::svg(&results).map_err(|error| anyhow!("cannot draw: {error}"))?;
        let mut output = Output::create(path)?;
        output.write(picture.as_bytes())?;
        output.finish()?;
    }
    let mut output = Output::stdout()?;
    let text = if args.json {
        results.iter().map(as_json).collect()
    } else {
        as_text(&results)
    };
    output.write(text.as_bytes())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

const fn made(kind: KeyKindArg) -> LabKeys {
    match kind {
        KeyKindArg::BigEndian => LabKeys::BigEndian,
        KeyKindArg::LittleEndian => LabKeys::LittleEndian,
        KeyKindArg::Urls => LabKeys::Urls,
        KeyKindArg::Short => LabKeys::Short,
    }
}

/// The first different lines of a file.
fn read(path: &Path, wanted: usize) -> Result<Vec<Vec<u8>>> {
    let options = params::line_options(b'\n', params::budget(None)?, true);
    let mut lines = Lines::new(Input::open(path)?, &options);
    let mut batch = Batch::new(walk::BATCH);
    let (mut seen, mut keys) = (HashSet::new(), Vec::new());
    while keys.len() < wanted && lines.next_batch(&mut batch)? {
        for line in batch.iter() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if keys.len() < wanted && seen.insert(line.to_vec()) {
                keys.push(line.to_vec());
            }
        }
    }
    if keys.len() < 100 {
        bail!(
            "{} has {} different lines: 100 or more are needed",
            display_name(path),
            keys.len()
        );
    }
    Ok(keys)
}

fn as_text(results: &[LabResult]) -> String {
    let heading = [
        "hash",
        "error",
        "theory",
        "ratio",
        "worst bit",
        "fair up to",
        "collisions",
        "by chance",
        "ns a key",
    ];
    let row = |result: &LabResult| {
        let (error, theory) = result
            .points
            .last()
            .map_or((0.0, 0.0), |p| (p.error, p.theory));
        vec![
            result.hash.name().to_owned(),
            figure(error),
            figure(theory),
            format!("{:.2}", error / theory),
            format!("{:.4}", result.worst_balance),
            format!("{:.4}", result.fair_balance),
            result.collisions.to_string(),
            figure(result.expected_collisions),
            format!("{:.1}", result.nanoseconds),
        ]
    };
    let rows: Vec<_> = std::iter::once(heading.map(str::to_owned).to_vec())
        .chain(results.iter().map(row))
        .collect();
    columns(&rows)
}

fn as_json(result: &LabResult) -> String {
    let points = result
        .points
        .iter()
        .map(|point| json!({ "items": point.items, "error": point.error, "theory": point.theory }));
    let value = json!({
        "hash": result.hash.name(),
        "bits": result.hash.bits(),
        "points": points.collect::<Vec<_>>(),
        "worst_balance": result.worst_balance,
        "fair_balance": result.fair_balance,
        "collisions": result.collisions,
        "expected_collisions": result.expected_collisions,
        "ns_per_key": result.nanoseconds,
    });
    format!("{value}\n")
}
