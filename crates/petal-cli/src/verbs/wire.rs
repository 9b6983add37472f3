//! `petal pack`, `unpack`, `delta`, `apply-delta`: filters as they travel.
//!
//! All work on files as they are: no key is asked about, and no secret needed.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use petal::{Error, Overwrite};

use crate::args::{ApplyDeltaArgs, DeltaArgs, PackArgs, RunArgs, TargetArgs, UnpackArgs};
use crate::budget;
use crate::filters::{self, named};
use crate::os::display_name;
use crate::params;
use crate::report::{Table, figure};
use crate::units::format_size;

/// A filter as few bytes.
pub(crate) fn pack(args: &PackArgs) -> Result<ExitCode> {
    Job::of(None, &args.filter, &args.target, &args.run).run(petal::wire::pack_file)
}

/// The filter again.
pub(crate) fn unpack(args: &UnpackArgs) -> Result<ExitCode> {
    Job::of(None, &args.packed, &args.target, &args.run).run(petal::wire::unpack_file)
}

/// What has changed.
pub(crate) fn delta(args: &DeltaArgs) -> Result<ExitCode> {
    let old = args.old.as_path();
    Job::of(Some(old), &args.new, &args.target, &args.run)
        .run(|new, to, overwrite| petal::wire::delta_file(old, new, to, overwrite))
}

/// The next version.
pub(crate) fn apply_delta(args: &ApplyDeltaArgs) -> Result<ExitCode> {
    let old = args.old.as_path();
    Job::of(Some(old), &args.delta, &args.target, &args.run)
        .run(|delta, to, overwrite| petal::wire::apply_delta_file(old, delta, to, overwrite))
}

/// Files that become a file.
struct Job<'a> {
    /// The filter that was there before, for a delta.
    base: Option<&'a Path>,
    /// What is read; its size stands beside that of the output.
    input: &'a Path,
    target: &'a TargetArgs,
    run: &'a RunArgs,
}

impl<'a> Job<'a> {
    const fn of(
        base: Option<&'a Path>,
        input: &'a Path,
        target: &'a TargetArgs,
        run: &'a RunArgs,
    ) -> Self {
        Self {
            base,
            input,
            target,
            run,
        }
    }

    /// Both files that are read.
    fn inputs(&self) -> impl Iterator<Item = &'a Path> {
        self.base.into_iter().chain([self.input])
    }

    /// Calls `work` with the input, the output, and whether that may be there.
    fn run(
        self,
        work: impl FnOnce(&'a Path, &'a Path, Overwrite) -> petal::Result<u64>,
    ) -> Result<ExitCode> {
        let started = Instant::now();
        let (target, force) = (self.target.output.as_path(), self.target.force);
        let overwrite = filters::check_target(target, force)?;
        self.check_budget()?;
        let before = size_of(self.input)?;
        let bytes = work(self.input, target, overwrite).map_err(|error| self.explain(error))?;
        let mut table = Table::default();
        table.row("bytes_before", "size before", format_size(before), before);
        table.row("bytes", "size", format_size(bytes), bytes);
        let share = bytes as f64 / before.max(1) as f64;
        table.row("share", "", "", share);
        let seconds = started.elapsed().as_secs_f64();
        table.row("seconds", "seconds", figure(seconds), seconds);
        if let Some(peak) = petal::memory::peak_resident() {
            table.row("peak_memory", "peak memory", format_size(peak), peak);
        }
        table.print(self.run);
        Ok(ExitCode::SUCCESS)
    }

    /// Refuses what an explicit `--memory` does not hold: the inputs, and the
    /// filter that comes out, or as much again for what is coded.
    fn check_budget(&self) -> Result<()> {
        let Some(text) = &self.run.memory else {
            return Ok(());
        };
        let allowed = params::size("--memory", text)?;
        let mut needed = budget::OVERHEAD;
        for path in self.inputs() {
            let made = match petal::wire::inspect(path) {
                Ok(info) => info.filter_bytes,
                Err(_) => size_of(path)?,
            };
            needed = needed.saturating_add(size_of(path)?.saturating_add(made));
        }
        if needed > allowed {
            bail!(
                "--memory {text} is too little: these files need up to {}; allow more",
                format_size(needed)
            );
        }
        Ok(())
    }

    /// With the names of the files, unless it names the one to blame.
    fn explain(&self, error: Error) -> anyhow::Error {
        if self.base.is_none() {
            return named(self.input, error);
        }
        match error {
            Error::Io { path: Some(_), .. }
            | Error::NotAFile { .. }
            | Error::Exists { .. }
            | Error::NoRoom { .. } => named(&self.target.output, error),
            error => {
                let names: Vec<_> = self.inputs().map(display_name).collect();
                anyhow!("{}: {error}", names.join(" and "))
            }
        }
    }
}

fn size_of(path: &Path) -> Result<u64> {
    let facts = path.metadata().with_context(|| display_name(path))?;
    Ok(facts.len())
}
