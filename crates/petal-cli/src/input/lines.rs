//! Finds the records in an input: byte strings that end with LF or NUL, of any length
//! up to a limit, handed out in batches without copying them.
//!
//! Nothing is interpreted: a CR stays where it is, bytes need not be UTF-8, an empty
//! record is a record. Reading and decoding happen underneath, in `blocks` and `decode`.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Input;
use super::blocks::{Block, BlockReader, is_large};
use super::buffer::Buffer;
use super::error::InputError;
use super::scan::find_ends;

/// How an input is split and read.
#[derive(Debug, Clone)]
pub(crate) struct LineOptions {
    /// The byte that ends a record: `b'\n'`, or 0 for `-0`.
    pub(crate) terminator: u8,
    /// The most bytes one record may have without its terminator, at least `block - 1`.
    /// A buffer grows to this only if such a record comes.
    pub(crate) max_record: usize,
    /// Bytes asked of the system at once.
    pub(crate) block: usize,
}

/// Bytes asked of the system at once: enough that asking costs little, few enough that
/// several of them stay in the L2 cache.
pub(crate) const BLOCK: usize = 128 << 10;

impl Default for LineOptions {
    fn default() -> Self {
        Self {
            terminator: b'\n',
            max_record: 64 << 20,
            block: BLOCK,
        }
    }
}

/// The records of one input, in order.
pub(crate) struct Lines {
    reader: BlockReader,
    terminator: u8,
    block_size: usize,
    fetched: Arc<AtomicU64>,
    /// The block that is being split, and where the records found so far end.
    block: Option<Arc<Block>>,
    end: usize,
    /// To be used again, shared with nobody: no more than there are batches, and one.
    spare: Vec<Arc<Block>>,
}

/// Records that lie one after the other in one buffer, which the batch shares with others
/// that have further records of it.
///
/// A batch can be used over and over, for one input after the other.
/// Records are numbered from 0 within the batch.
#[derive(Debug)]
pub(crate) struct Batch {
    block: Option<Arc<Block>>,
    /// Record `i` starts at `starts[i]` and its terminator stands just before
    /// `starts[i + 1]`; for a last record without one that is one past the block.
    starts: Vec<usize>,
    max_records: usize,
}

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
        Self::from_reader(reader, options, fetched)
    }

    pub(super) fn from_reader(
        reader: BlockReader,
        options: &LineOptions,
        fetched: Arc<AtomicU64>,
    ) -> Self {
        Self {
            reader,
            terminator: options.terminator,
            block_size: options.block,
            fetched,
            block: None,
            end: 0,
            spare: Vec::new(),
        }
    }

    /// Replaces the contents of `batch` by the next records, at least one; false, and an
    /// empty batch, at the end of the input.
    ///
    /// Records are handed out as soon as they have been read, so a batch from a slow pipe
    /// may be small. An error comes after all complete records before it; the incomplete
    /// one at that place is not handed out. After an error there is only an error.
    pub(crate) fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, InputError> {
        batch.starts.clear();
        let used = batch.block.take();
        if !self.has_more() {
            let last = self.block.take();
            self.take_back(last);
            self.end = 0;
        }
        self.take_back(used);
        let block = match &self.block {
            Some(block) => Arc::clone(block),
            None => match self.read()? {
                Some(block) => Arc::clone(self.block.insert(block)),
                None => return Ok(false),
            },
        };
        self.end = batch.split(block, self.end, self.terminator);
        Ok(true)
    }

    /// Reads the next block, in a buffer that has been used before if there is one.
    fn read(&mut self) -> Result<Option<Arc<Block>>, InputError> {
        let mut spare = self.spare.pop().unwrap_or_default();
        let Some(block) = Arc::get_mut(&mut spare) else {
            return Ok(self.reader.next(Buffer::default())?.map(Arc::new));
        };
        match self.reader.next(std::mem::take(&mut block.bytes))? {
            Some(read) => *block = read,
            None => return Ok(None),
        }
        Ok(Some(spare))
    }

    /// Whether the next batch has to be waited for: the moment to flush the output of a slow
    /// pipe. False at the end of the input.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_more() && self.reader.is_idle()
    }

    /// Whether there are more records in the block.
    fn has_more(&self) -> bool {
        self.block
            .as_ref()
            .is_some_and(|block| self.end < block.len)
    }

    /// Keeps a block that nobody else has, unless it is large.
    fn take_back(&mut self, block: Option<Arc<Block>>) {
        if let Some(mut block) = block
            && Arc::get_mut(&mut block).is_some()
            && !is_large(block.bytes.len(), self.block_size)
        {
            self.spare.push(block);
        }
    }

    /// Bytes read from the file or pipe so far, compressed if it is: for progress, to be
    /// compared with [`Input::size`].
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
            block: None,
            starts,
            max_records,
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

    /// The buffer, and how many bytes of it count.
    #[inline]
    fn buffer(&self) -> (&[u8], usize) {
        match &self.block {
            Some(block) => (&block.bytes, block.len),
            None => (&[], 0),
        }
    }

    /// The bytes of its buffer, if that is far larger than a block of this size; else none.
    pub(crate) fn large_bytes(&self, block: usize) -> usize {
        let bytes = self.buffer().0.len();
        if is_large(bytes, block) { bytes } else { 0 }
    }

    /// Lets go of the buffer, and of the records.
    pub(crate) fn clear(&mut self) {
        self.block = None;
        self.starts.clear();
    }

    /// Record `i` without its terminator. Panics if there is none.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> &[u8] {
        &self.buffer().0[self.starts[i]..self.starts[i + 1] - 1]
    }

    /// All records, without their terminators.
    #[inline]
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let (bytes, _) = self.buffer();
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
        let (bytes, len) = self.buffer();
        &bytes[self.starts[range.start]..self.starts[range.end].min(len)]
    }

    /// Whether record `i` has its terminator: only the last one of an input may lack it.
    /// Panics if there is no such record.
    #[inline]
    pub(crate) fn is_terminated(&self, i: usize) -> bool {
        self.starts[i + 1] <= self.buffer().1
    }

    /// The decoded offset in the input just after record `i` and its terminator: where
    /// reading has to go on, see [`Input::skip`]. Panics if there is no such record.
    #[inline]
    pub(crate) fn end_offset(&self, i: usize) -> u64 {
        let (offset, len) = match &self.block {
            Some(block) => (block.offset, block.len),
            None => (0, 0),
        };
        offset + self.starts[i + 1].min(len) as u64
    }

    /// Finds the records of a block from the byte `first` on, of which there is at least
    /// one; tells where those it takes end.
    fn split(&mut self, block: Arc<Block>, first: usize, terminator: u8) -> usize {
        let rest = &block.bytes[first..block.len];
        self.starts.push(first);
        let most = self.max_records.saturating_add(1);
        find_ends(terminator, rest, first, most, &mut self.starts);
        let mut end = self.starts.last().copied().unwrap_or(first);
        if self.len() < self.max_records && end < block.len {
            debug_assert!(!block.terminated);
            end = block.len + 1;
            self.starts.push(end);
        }
        self.block = Some(block);
        end
    }
}
