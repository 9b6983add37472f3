//! `petal lab classic`: a run of a classic program on a file.

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use petal_interop::{CharSign, ClassicProgram, UrlDedupRun, run_url_dedup};
use serde_json::json;

use crate::args::LabClassicArgs;
use crate::os::display_name;
use crate::output::Output;
use crate::report::columns;

/// Counts, right counts and differences on stdout.
pub(crate) fn run(args: &LabClassicArgs) -> Result<ExitCode> {
    let program = match args.program {
        ClassicProgram::UrlDedupC(_) if args.unsigned_char => {
            ClassicProgram::UrlDedupC(CharSign::Unsigned)
        }
        program @ ClassicProgram::UrlDedupC(_) => program,
        other => bail!("{other} reads no file: only url-dedup-c can be run"),
    };
    let mut file = Vec::new();
    let limit = petal::memory::available().bytes / 4;
    let mut read = |input: &mut dyn Read| input.take(limit + 1).read_to_end(&mut file);
    if args.file.as_os_str() == "-" {
        read(&mut std::io::stdin().lock())
    } else {
        std::fs::File::open(&args.file).and_then(|mut input| read(&mut input))
    }
    .with_context(|| format!("cannot read {}", display_name(&args.file)))?;
    if file.len() as u64 > limit {
        bail!(
            "{} is larger than a quarter of the memory: give a part of it",
            display_name(&args.file)
        );
    }
    let run = run_url_dedup(program, &file)?;
    if let Some(path) = &args.output {
        let mut output = Output::create(path)?;
        output.write(&run.duplicates)?;
        output.finish()?;
    }
    let mut output = Output::stdout()?;
    let text = if args.json {
        as_json(&run)
    } else {
        as_text(&run)
    };
    output.write(text.as_bytes())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(run: &UrlDedupRun) -> String {
    let names = ["", "program", "right"].map(str::to_owned).to_vec();
    let counts = [run.total, run.unique, run.repeated];
    let rows = ["lines", "not repeated", "repeated"]
        .iter()
        .zip(counts.iter().zip(run.correct));
    let row = |(name, (ours, right)): (&&str, (&u64, u64))| {
        vec![(*name).to_owned(), ours.to_string(), right.to_string()]
    };
    let table: Vec<_> = std::iter::once(names).chain(rows.map(row)).collect();
    let mut text = columns(&table);
    if run.crashed {
        text.push_str("\nThe program dies before it prints its counts.\n");
    }
    if run.differences.is_empty() {
        text.push_str("\nNothing goes wrong on this file.\n");
    } else {
        text.push_str("\nWhat goes wrong:\n");
    }
    for difference in &run.differences {
        text.push_str(&format!("* {difference}\n"));
    }
    text
}

fn as_json(run: &UrlDedupRun) -> String {
    let counts = |[total, unique, repeated]: [u64; 3]| json!({ "total": total, "unique": unique, "repeated": repeated });
    let differences: Vec<_> = run.differences.iter().map(ToString::to_string).collect();
    let value = json!({
        "program": counts([run.total, run.unique, run.repeated]),
        "correct": counts(run.correct),
        "crashed": run.crashed,
        "differences": differences,
    });
    format!("{value}\n")
}
