//! `petal lab`: experiments.

mod classic;
mod hash;
mod plot;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::{Experiment, LabArgs};

/// Runs the verb.
pub(crate) fn run(args: &LabArgs) -> Result<ExitCode> {
    match &args.experiment {
        Experiment::Hash(args) => hash::run(args),
        Experiment::Classic(args) => classic::run(args),
    }
}
