//! Trials of `petal-front`, what it saves and that it is right after kill -9; and of the mail list.
//!
//!     front_trials reads                    2 M keys in redb and SQLite, a cache of 64 MiB
//!     front_trials kills --count 500        a writing front is killed so often, at random moments
//!     front_trials mail --lists FOLDER      the mail list on real lists, under load
//!
//! Rows of tables go to stdout. Exit status: 0 all that must be reached was, 1 something was not.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "rows of tables, and notes on them"
)]

mod engine;
mod kills;
mod mail;
mod random;
mod reads;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Trials of the key-value front and the mail list
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
    /// The mail list on real lists
    Mail(mail::MailArgs),
    /// What `kills` kills
    #[command(hide = true)]
    Writer(kills::WriterArgs),
}

fn main() -> anyhow::Result<ExitCode> {
    let passed = match Args::parse().trial {
        Trial::Reads(args) => reads::run(&args)?,
        Trial::Kills(args) => kills::run(&args)?,
        Trial::Mail(args) => mail::run(&args)?,
        Trial::Writer(args) => kills::write(&args)?,
    };
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
