//! All lines of several inputs, batch by batch, with progress.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::input::{Batch, Input, LineOptions, Lines, is_terminal, total_size};
use crate::os::FileId;
use crate::progress::Progress;
use crate::report;

/// Lines a batch: enough to hide the latency of memory many times over, few
/// enough to stay in the L2 cache.
const BATCH: usize = 1024;

/// What is read, and how.
pub(crate) struct Walk<'a> {
    /// Files in order; none for stdin.
    pub(crate) files: &'a [PathBuf],
    pub(crate) options: LineOptions,
    /// What the progress line says.
    pub(crate) label: &'static str,
    pub(crate) quiet: bool,
    /// A file that is written meanwhile, which cannot be read.
    pub(crate) output: Option<FileId>,
}

/// Where a batch comes from.
pub(crate) struct Place<'a> {
    /// The name of the input for messages.
    pub(crate) name: &'a str,
    /// The number of the batch's first line in it, from 1.
    pub(crate) line: u64,
    /// Whether the next batch has to be waited for: the moment to flush.
    pub(crate) idle: bool,
}

impl Walk<'_> {
    /// Whether the same lines come when it is read again: not from a pipe.
    pub(crate) fn is_repeatable(&self) -> bool {
        total_size(self.files).is_some()
    }

    /// Calls `visit` for every batch.
    pub(crate) fn each(
        &self,
        mut visit: impl FnMut(&Batch, &Place<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut progress = Progress::start(self.label, total_size(self.files), self.quiet);
        let mut batch = Batch::new(BATCH);
        let mut before = 0;
        for index in 0..self.files.len().max(1) {
            let path = self
                .files
                .get(index)
                .map_or(Path::new("-"), PathBuf::as_path);
            if is_terminal(path) && !self.quiet {
                report::say("petal: reading from the terminal; Ctrl-D ends the input");
            }
            let input = Input::open(path)?;
            if self.output == Some(input.id()) {
                anyhow::bail!(
                    "{} is the input and the output at the same time: write to another file",
                    input.name()
                );
            }
            let (name, size) = (input.name().to_owned(), input.size().unwrap_or(0));
            let mut lines = Lines::new(input, &self.options);
            let mut line = 1;
            while lines.next_batch(&mut batch)? {
                let idle = lines.is_idle(&batch);
                let name = &name;
                visit(&batch, &Place { name, line, idle })?;
                line += batch.len() as u64;
                progress.tick(before + lines.consumed());
            }
            before += size;
        }
        progress.finish();
        Ok(())
    }
}
