//! petal, the command: de-duplicate, build, check and merge sets that are
//! too large to keep.
//!
//! `main` parses, runs the verb, and turns what it returns into an exit
//! status and at most one line on stderr. Verbs put `input`, `keys`, `seen`
//! and `output` together.

#[cfg(test)]
mod allocations;
mod args;
mod budget;
mod compression;
mod copy;
mod filters;
mod foreign;
mod input;
mod intake;
mod keys;
mod mask;
mod os;
mod output;
mod params;
mod progress;
mod report;
mod sample;
mod secret;
mod seen;
mod time;
mod units;
mod verbs;
mod walk;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Verb};

/// Exit status of an error.
const ERROR: u8 = 2;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no errors. A reader that
            // has gone is none either.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(ERROR)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    let done = match &cli.verb {
        Verb::Dedup(args) if verbs::exact::is_meant(args) => verbs::exact::dedup(args),
        Verb::Dedup(args) => verbs::dedup::run(args),
        Verb::Build(args) => verbs::build::run(args),
        Verb::Add(args) => verbs::add::run(args),
        Verb::Remove(args) => verbs::remove::run(args),
        Verb::Check(args) => verbs::check::run(args),
        Verb::Common(args) => verbs::exact::common(args),
        Verb::Except(args) => verbs::exact::except(args),
        Verb::Merge(args) => verbs::merge::run(args),
        Verb::Shrink(args) => verbs::shrink::run(args),
        Verb::Pack(args) => verbs::wire::pack(args),
        Verb::Unpack(args) => verbs::wire::unpack(args),
        Verb::Delta(args) => verbs::wire::delta(args),
        Verb::ApplyDelta(args) => verbs::wire::apply_delta(args),
        Verb::Info(args) => verbs::info::run(args),
        Verb::Verify(args) => verbs::verify::run(args),
        Verb::Plan(args) => verbs::plan::run(args),
        Verb::Convert(args) => verbs::convert::run(args),
        Verb::Lab(args) => verbs::lab::run(args),
        Verb::Completions(args) => verbs::completions::run(args),
        Verb::Man(args) => verbs::man::run(args),
    };
    match done {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report::say(&format!("petal: {error:#}"));
            ExitCode::from(ERROR)
        }
    }
}
