//! Trials of `petal-front`: what a front saves, and that it is right after kill -9.
//!
//!     front_trials reads                    2 M keys in redb and SQLite, a cache of 64 MiB
//!     front_trials kills --count 500        a writing front is killed so often, at random moments
//!
//! Rows of tables go to stdout. Exit status: 0 all that must be reached was, 1 something was not.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "rows of tables, and notes on them"
)]

mod engine;
mod kills;
mod random;
mod reads;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Trials of the key-value front
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    trial: Trial,
}

#[derive(Debug, Subcommand)]
enum Trial {
    /// Reads with the front and without
    Reads(reads::ReadsArgs),
    /// Kills a writing front again and again, and looks whether a key is missed
    Kills(kills::KillsArgs),
    /// What `kills` kills
    #[command(hide = true)]
    Writer(kills::WriterArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    let passed = match Args::parse().trial {
        Trial::Reads(args) => reads::run(&args)?,
        Trial::Kills(args) => kills::run(&args)?,
        Trial::Writer(args) => kills::write(&args)?,
    };
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
