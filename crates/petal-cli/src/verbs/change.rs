//! A filter that is changed by the lines of lists, as a whole.
//!
//! Owns what `add` and `remove` share: the filter is read, changed in memory
//! and replaced at the end, all under its lock. Whatever goes wrong, the file
//! is as it was.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use petal::{AnyFilter, Contains, FileLock, Overwrite, Secret};

use crate::args::{RecordArgs, RunArgs};
use crate::filters::{self, named};
use crate::intake::Intake;
use crate::keys;
use crate::os::display_name;
use crate::params;
use crate::report::{Table, figure};
use crate::units::format_size;
use crate::verbs::dedup;
use crate::walk::{Position, Walk};

/// What the flags say.
pub(super) struct Flags<'a> {
    pub(super) filter: &'a Path,
    pub(super) files: &'a [PathBuf],
    pub(super) skip_empty: bool,
    pub(super) skip_bad: bool,
    pub(super) records: &'a RecordArgs,
    pub(super) run: &'a RunArgs,
    /// The verb, for the line of progress.
    pub(super) verb: &'static str,
}

/// A filter under its lock, and the lists.
pub(super) struct Change<'a> {
    pub(super) path: &'a Path,
    pub(super) filter: AnyFilter,
    pub(super) walk: Walk,
    pub(super) intake: Intake,
    lock: FileLock,
}

impl<'a> Change<'a> {
    /// Opens it. `before` sees the path once it is known to be a filter, and
    /// before it is locked.
    pub(super) fn open(
        flags: &Flags<'a>,
        secret: Option<&Secret>,
        before: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let path = flags.filter;
        let budget = params::budget(flags.run.memory.as_deref())?;
        params::check_present(flags.files)?;
        if flags.files.iter().any(|file| is_same(file, path)) {
            bail!(
                "{} is a list to read and the filter to change: use two names",
                display_name(path)
            );
        }
        // What is no filter gets no lock file either.
        petal::inspect(path).map_err(|error| named(path, error))?;
        filters::check_budget(&[path], flags.run.memory.as_deref(), "allow more")?;
        before()?;
        let lock = FileLock::acquire(path).map_err(|error| named(path, error))?;
        filters::check_target(path, true)?;
        let mut filter = filters::open(path, secret)?;
        if filter.about().attachment(dedup::ATTACHMENT).is_some() {
            bail!(
                "{}: is the state of `petal dedup`, which would take lines added to it for \
                 printed ones; give them to `petal dedup --state` instead",
                display_name(path)
            );
        }
        filters::tell_time(path, &mut filter);
        let identity = filter.about().identity().clone();
        let terminator = keys::terminator(flags.records);
        let walk = Walk {
            files: flags.files.into(),
            from: Position::default(),
            options: params::line_options(terminator, budget, !identity.normalisation.is_plain()),
            threads: params::threads(flags.run.threads),
            label: flags.verb,
            quiet: flags.run.quiet,
            outputs: Vec::new(),
        };
        Ok(Self {
            path,
            intake: Intake::new(identity, flags.skip_empty, flags.skip_bad),
            filter,
            walk,
            lock,
        })
    }

    /// Replaces the file by its next generation if the filter has changed, and
    /// lets go of the lock.
    pub(super) fn finish(mut self, changed: bool) -> Result<(AnyFilter, Intake)> {
        if changed {
            let generation = self.filter.about().generation();
            self.filter.set_generation(generation.saturating_add(1));
            self.filter
                .save(self.path, Overwrite::Replace)
                .map_err(|error| named(self.path, error))?;
        }
        drop(self.lock);
        Ok((self.filter, self.intake))
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Adds to a summary what the filter has come to.
pub(super) fn state_of(filter: &AnyFilter, table: &mut Table) {
    match filters::counted_keys(filter) {
        Some(keys) => table.count("keys", "keys in the filter", keys),
        None => table.estimate("keys", "keys in the filter, about", filter.estimated_len()),
    }
    if let Some(promise) = filter.about().promise() {
        table.count("capacity", "made for", promise.items);
    }
    let error = filter.error_now();
    table.row("error", "error", figure(error), error);
    let bytes = filter.bytes();
    table.row("bytes", "size", format_size(bytes), bytes);
}
