//! `petal completions`: what a shell needs to complete command lines.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::output::Output;

/// Prints the script for a shell.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "petal", &mut script);
    let mut output = Output::stdout()?;
    output.write(&script)?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
