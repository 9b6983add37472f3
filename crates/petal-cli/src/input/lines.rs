//! Finds the records in an input: byte strings that end with LF or NUL, of any length
//! up to a limit, handed out in batches without copying them.
//!
//! Nothing is interpreted: a CR stays where it is, bytes need not be UTF-8, an empty
//! record is a record. Reading and decoding happen underneath, in `blocks` and `decode`.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Input;
use super::blocks::{Block, BlockReader, Blocks};
use super::error::InputError;
use super::scan::find_ends;

/// How an input is split and read.
#[derive(Debug, Clone)]
pub(crate) struct LineOptions {
    /// The byte that ends a record: `b'\n'`, or 0 for `-0`.
    pub(crate) terminator: u8,
    /// The most bytes one record may have without its terminator, at least `block - 1`.
    /// A buffer grows to this only if such a record comes; with `threads` of 2 or more
    /// there may be four such buffers at once, and one for each batch.
    pub(crate) max_record: usize,
    /// With 2 or more, reading and decompressing happen on a thread of their own.
    pub(crate) threads: usize,
    /// Bytes asked of the system at once.
    pub(crate) block: usize,
}

impl Default for LineOptions {
    fn default() -> Self {
        Self {
            terminator: b'\n',
            max_record: 64 << 20,
            threads: 1,
            block: 256 << 10,
        }
    }
}

/// The records of one input, in order.
pub(crate) struct Lines {
    blocks: Blocks,
    terminator: u8,
    fetched: Arc<AtomicU64>,
    /// Which reader a batch's left-over bytes belong to.
    id: u64,
}

/// Records that lie one after the other in one buffer, which the batch owns.
///
/// A batch can be used over and over, for one input after the other.
/// Records are numbered from 0 within the batch.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(super) block: Block,
    /// Record `i` starts at `starts[i]` and its terminator stands just before
    /// `starts[i + 1]`; for a last record without one that is one past `block.len`.
    starts: Vec<usize>,
    max_records: usize,
    owner: u64,
}

/// Hands out the ids of [`Lines`]; 0 is nobody's.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Lines {
    /// Splits what `input` has left.
    pub(crate) fn new(input: Input, options: &LineOptions) -> Self {
        let Input { name, decoder, .. } = input;
        let (fetched, offset) = (decoder.fetched(), decoder.decoded());
        let reader = BlockReader::new(
            Box::new(decoder),
            name,
            options.terminator,
            options.block,
            options.max_record,
            offset,
        );
        Self::from_blocks(
            Blocks::new(reader, options.threads),
            options.terminator,
            fetched,
        )
    }

    pub(super) fn from_blocks(blocks: Blocks, terminator: u8, fetched: Arc<AtomicU64>) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self {
            blocks,
            terminator,
            fetched,
            id,
        }
    }

    /// Replaces the contents of `batch` by the next records, at least one; false, and an
    /// empty batch, at the end of the input.
    ///
    /// Records are handed out as soon as they have been read, so a batch from a slow pipe
    /// may be small. An error comes after all complete records before it; the incomplete
    /// one at that place is not handed out. After an error there is only an error.
    pub(crate) fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, InputError> {
        if !self.has_more(batch) {
            batch.owner = self.id;
            batch.starts.clear();
            let buffer = std::mem::take(&mut batch.block).bytes;
            match self.blocks.next(buffer)? {
                Some(block) => batch.block = block,
                None => return Ok(false),
            }
        }
        batch.split(self.terminator);
        Ok(true)
    }

    /// Whether the next batch after `batch`, the last one, has to be waited for: the moment to
    /// flush the output of a slow pipe. False at the end of the input.
    pub(crate) fn is_idle(&mut self, batch: &Batch) -> bool {
        !self.has_more(batch) && self.blocks.is_idle()
    }

    /// Whether there are more records in the block of a batch.
    fn has_more(&self, batch: &Batch) -> bool {
        batch.owner == self.id && batch.end() < batch.block.len
    }

    /// Bytes read from the file or pipe so far, compressed if it is: for progress, to be
    /// compared with [`Input::size`]. With a reading thread this runs a little ahead.
    pub(crate) fn consumed(&self) -> u64 {
        self.fetched.load(Ordering::Relaxed)
    }
}

impl Batch {
    /// An empty batch that will take `max_records` records at most, and at least one.
    /// 64 to 4096 suit; with `usize::MAX` each batch is one whole read.
    pub(crate) fn new(max_records: usize) -> Self {
        let max_records = max_records.max(1);
        let starts = Vec::with_capacity(max_records.min(4096) + 1);
        Self {
            block: Block::default(),
            starts,
            max_records,
            owner: 0,
        }
    }

    /// The number of records.
    pub(crate) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Whether there is no record.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Record `i` without its terminator. Panics if there is none.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> &[u8] {
        &self.block.bytes[self.starts[i]..self.starts[i + 1] - 1]
    }

    /// All records, without their terminators.
    #[inline]
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let bytes = &self.block.bytes[..];
        self.starts
            .windows(2)
            .map(move |pair| &bytes[pair[0]..pair[1] - 1])
    }

    /// The bytes of the records `range` as they stand in the input, terminators included:
    /// to copy a run of records at once. Panics if the range goes past the batch.
    #[inline]
    pub(crate) fn raw(&self, range: Range<usize>) -> &[u8] {
        if range.is_empty() {
            return &[];
        }
        let end = self.starts[range.end].min(self.block.len);
        &self.block.bytes[self.starts[range.start]..end]
    }

    /// Whether record `i` has its terminator: only the last one of an input may lack it.
    /// Panics if there is no such record.
    #[inline]
    pub(crate) fn is_terminated(&self, i: usize) -> bool {
        self.starts[i + 1] <= self.block.len
    }

    /// The decoded offset in the input just after record `i` and its terminator: where
    /// reading has to go on, see [`Input::skip`]. Panics if there is no such record.
    #[inline]
    pub(crate) fn end_offset(&self, i: usize) -> u64 {
        self.block.offset + self.starts[i + 1].min(self.block.len) as u64
    }

    /// Where the records so far end in the block.
    fn end(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Finds the next records of the block. It has at least one more.
    fn split(&mut self, terminator: u8) {
        let first = self.end();
        let rest = &self.block.bytes[first..self.block.len];
        self.starts.clear();
        self.starts.push(first);
        let most = self.max_records.saturating_add(1);
        find_ends(terminator, rest, first, most, &mut self.starts);
        if self.len() < self.max_records && self.end() < self.block.len {
            debug_assert!(!self.block.terminated);
            self.starts.push(self.block.len + 1);
        }
    }
}
