//! Lines copied from batches to an output.
//!
//! Owns the choice of how much is copied at once: whole runs of lines. No
//! byte of a line is changed; only between a last line without its terminator
//! and a line of the next input one is added.

use std::ops::Range;

use anyhow::Result;

use crate::input::Batch;
use crate::mask;
use crate::output::Output;

/// An output and whether its last line is complete.
pub(crate) struct LineCopier {
    output: Output,
    terminator: u8,
    open_line: bool,
}

impl LineCopier {
    pub(crate) const fn new(output: Output, terminator: u8) -> Self {
        Self {
            output,
            terminator,
            open_line: false,
        }
    }

    /// For an output that may end with a line without its terminator.
    pub(crate) fn after_open_line(self, open_line: bool) -> Self {
        Self { open_line, ..self }
    }

    /// Whether the last line so far lacks its terminator.
    pub(crate) const fn has_open_line(&self) -> bool {
        self.open_line
    }

    /// Copies the lines of a batch whose bits are set.
    pub(crate) fn lines(&mut self, batch: &Batch, wanted: &[u64]) -> Result<()> {
        for run in mask::runs(wanted, batch.len()) {
            self.run(batch, run)?;
        }
        Ok(())
    }

    /// Copies a line with something before it.
    pub(crate) fn prefixed(&mut self, prefix: &[u8], batch: &Batch, line: usize) -> Result<()> {
        self.close_line()?;
        self.output.write(prefix)?;
        self.run(batch, line..line + 1)
    }

    #[inline]
    fn run(&mut self, batch: &Batch, run: Range<usize>) -> Result<()> {
        self.close_line()?;
        let last = run.end - 1;
        self.output.write(batch.raw(run))?;
        self.open_line = !batch.is_terminated(last);
        Ok(())
    }

    fn close_line(&mut self) -> Result<()> {
        if std::mem::take(&mut self.open_line) {
            self.output.write(&[self.terminator])?;
        }
        Ok(())
    }

    /// The output, to be asked or written to between batches.
    pub(crate) const fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Completes the output.
    pub(crate) fn finish(self) -> Result<()> {
        Ok(self.output.finish()?)
    }
}
