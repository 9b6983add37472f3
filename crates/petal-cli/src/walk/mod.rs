//! All lines of several inputs, batch by batch, in order.
//!
//! Owns the walk and its two halves: [`Prepare`], what is made of a batch
//! alone and needs no order, and [`Visit`], what is done with batches one
//! after the other. With one thread both happen in turn; with more, helpers
//! read and prepare ahead ([`team`]), and the caller's thread visits. What is
//! visited, and in what order, is the same. Reading itself is [`source`]'s.

mod source;
mod team;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::input::{Batch, LineOptions, total_size};
use crate::os::FileId;
use crate::progress::Progress;
use source::Source;

/// Lines a batch: enough to hide the latency of memory many times over, few
/// enough to stay in the L2 cache.
pub(crate) const BATCH: usize = 2048;

/// What is read, and how.
pub(crate) struct Walk {
    /// Files in order; none for stdin.
    pub(crate) files: Arc<[PathBuf]>,
    /// Where to begin.
    pub(crate) from: Position,
    pub(crate) options: LineOptions,
    /// Threads that read, prepare and visit; at most [`team::MOST_THREADS`] are used.
    pub(crate) threads: usize,
    /// What the progress line says.
    pub(crate) label: &'static str,
    pub(crate) quiet: bool,
    /// Files that are written meanwhile, which cannot be read.
    pub(crate) outputs: Vec<FileId>,
}

/// A place in the inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Number of the input, from 0.
    pub(crate) input: usize,
    /// Decoded bytes of it that are done.
    pub(crate) offset: u64,
}

/// Where a batch comes from.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Number of the input, from 0.
    pub(crate) input: usize,
    /// The name of the input for messages.
    pub(crate) name: Arc<str>,
    /// The number of the batch's first line in it, from 1 (where reading
    /// began in the middle of it: from there).
    pub(crate) line: u64,
}

/// What is made of a batch without a look at any other.
pub(crate) trait Prepare: Send + Sync + 'static {
    /// What is made: a buffer, used again for later batches.
    type Ready: Send + 'static;

    /// An empty buffer.
    fn buffer(&self) -> Self::Ready;

    /// Sees every batch in order, before it is prepared: for what the first
    /// lines decide.
    fn look(&self, _batch: &Batch) -> Result<()> {
        Ok(())
    }

    /// Makes it.
    fn prepare(&self, batch: &Batch, ready: &mut Self::Ready) -> Result<()>;
}

/// What is done with the batches, in order.
pub(crate) trait Visit<R> {
    /// Takes the next batch.
    fn visit(&mut self, batch: &Batch, ready: &mut R, place: &Place) -> Result<Flow>;

    /// All batches so far were visited and the next has to be waited for: the
    /// moment to flush.
    fn idle(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<R, F: FnMut(&Batch, &mut R, &Place) -> Result<Flow>> Visit<R> for F {
    fn visit(&mut self, batch: &Batch, ready: &mut R, place: &Place) -> Result<Flow> {
        self(batch, ready, place)
    }
}

/// Whether there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    GoOn,
    /// What follows is not wanted.
    Stop,
}

/// A batch on its way: read, prepared, visited, and used again.
struct Unit<R> {
    batch: Batch,
    ready: R,
    place: Place,
    /// Bytes read from all inputs, once this had been read.
    consumed: u64,
}

impl<R> Unit<R> {
    fn new(ready: R) -> Self {
        Self {
            batch: Batch::new(BATCH),
            ready,
            place: Place {
                input: 0,
                name: Arc::from(""),
                line: 1,
            },
            consumed: 0,
        }
    }
}

impl Walk {
    /// Whether the same lines come when it is read again: not from a pipe.
    pub(crate) fn is_repeatable(&self) -> bool {
        total_size(&self.files).is_some()
    }

    /// Prepares every batch, and has it visited.
    ///
    /// An error, of reading, preparing or visiting, ends the walk; everything
    /// before it was visited.
    pub(crate) fn each<P: Prepare>(
        &self,
        work: &Arc<P>,
        visitor: &mut impl Visit<P::Ready>,
    ) -> Result<()> {
        let left = self.files.get(self.from.input..).unwrap_or_default();
        let mut progress = Progress::start(self.label, total_size(left), self.quiet);
        let source = Box::new(Source::new(self));
        match team::Team::assemble(source, work, self.threads) {
            Ok(mut team) => team.run(visitor, &mut progress)?,
            Err(mut source) => alone(&mut source, &**work, visitor, &mut progress)?,
        }
        progress.finish();
        Ok(())
    }
}

/// One batch after the other on this thread.
fn alone<P: Prepare>(
    source: &mut Source,
    work: &P,
    visitor: &mut impl Visit<P::Ready>,
    progress: &mut Progress,
) -> Result<()> {
    let mut unit = Unit::new(work.buffer());
    while source.next(&mut unit)? {
        work.look(&unit.batch)?;
        work.prepare(&unit.batch, &mut unit.ready)?;
        if visitor.visit(&unit.batch, &mut unit.ready, &unit.place)? == Flow::Stop {
            break;
        }
        if source.is_idle() {
            visitor.idle()?;
        }
        progress.tick(unit.consumed);
    }
    Ok(())
}
