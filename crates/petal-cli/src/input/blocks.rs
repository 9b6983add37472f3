//! Cuts a stream of bytes into blocks of whole records, each in one contiguous buffer.
//!
//! Where the records lie inside a block is found by `lines`.

use super::buffer::Buffer;
use super::decode::Source;
use super::error::{Fault, InputError};

/// A buffer that holds whole records.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The records are `bytes[..len]`.
    pub(super) bytes: Buffer,
    /// How many bytes of the buffer count.
    pub(super) len: usize,
    /// The decoded offset of `bytes[0]`.
    pub(super) offset: u64,
    /// The last record has its terminator: false only at the end of the input.
    pub(super) terminated: bool,
}

/// Whether a buffer is so much larger than a block that it is not kept.
pub(super) const fn is_large(buffer: usize, block: usize) -> bool {
    buffer > block.saturating_mul(2)
}

/// Makes blocks from a source.
///
/// A block ends with the last terminator that one read brought; what follows is carried
/// into the next one. So a record is handed on as soon as its terminator has been read.
pub(super) struct BlockReader {
    source: Box<dyn Source>,
    name: String,
    terminator: u8,
    /// Bytes read at once, and the usual size of a buffer.
    block: usize,
    /// The longest record allowed.
    limit: usize,
    /// The beginning of a record whose end has not been read.
    carry: Vec<u8>,
    /// The decoded offset of `carry[0]`.
    offset: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    Ended,
    Failed,
}

impl BlockReader {
    /// `offset` is the decoded offset at which the source stands.
    pub(super) fn new(
        source: Box<dyn Source>,
        name: String,
        terminator: u8,
        block: usize,
        limit: usize,
        offset: u64,
    ) -> Self {
        let block = block.max(1);
        // Buffers have to be a block long anyway. Limits below that change nothing.
        let limit = limit.max(block - 1);
        let state = State::Reading;
        Self {
            source,
            name,
            terminator,
            block,
            limit,
            carry: Vec::new(),
            offset,
            state,
        }
    }

    /// The next block, in `buffer` if that serves; None at the end of the input. Once this
    /// has been an error, it stays one.
    pub(super) fn next(&mut self, buffer: Buffer) -> Result<Option<Block>, InputError> {
        let result = match self.state {
            State::Reading => self.read(buffer),
            State::Ended => Ok(None),
            State::Failed => Err(Fault::Stopped),
        };
        result.map_err(|fault| {
            self.state = State::Failed;
            InputError {
                name: self.name.clone(),
                fault,
            }
        })
    }

    fn read(&mut self, mut buffer: Buffer) -> Result<Option<Block>, Fault> {
        // The carry is shorter than the block that brought it.
        if buffer.len() < self.block || is_large(buffer.len(), self.block) {
            // Fresh zero pages, untouched where a file is small.
            buffer = self.memory(self.block, Buffer::zeroed(self.block))?;
        }
        let mut end = self.carry.len();
        buffer[..end].copy_from_slice(&self.carry);
        self.carry.clear();
        loop {
            let room = self.make_room(&mut buffer, end)?;
            let read = self.source.read(&mut buffer[end..end + room])?;
            let new = end..end + read;
            end = new.end;
            if read == 0 {
                self.state = State::Ended;
                return Ok((end > 0).then(|| self.block(buffer, end, false)));
            }
            if let Some(last) = memchr::memrchr(self.terminator, &buffer[new.clone()]) {
                let len = new.start + last + 1;
                self.carry.extend_from_slice(&buffer[len..end]);
                return Ok(Some(self.block(buffer, len, true)));
            }
        }
    }

    /// Whether the next block has to be waited for.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Reading && self.source.is_idle()
    }

    fn block(&mut self, bytes: Buffer, len: usize, terminated: bool) -> Block {
        let offset = self.offset;
        self.offset += len as u64;
        Block {
            bytes,
            len,
            offset,
            terminated,
        }
    }

    /// Makes room after the first `end` bytes, which hold no terminator, and tells how much
    /// to read there: half a block or more, so that reads do not get small, but not past
    /// the one byte over the limit which shows that it is exceeded.
    fn make_room(&self, buffer: &mut Buffer, end: usize) -> Result<usize, Fault> {
        let most = self.limit.saturating_add(1);
        if end >= most {
            return Err(Fault::TooLong {
                at: self.offset,
                limit: self.limit,
            });
        }
        if buffer.len() - end < self.block.div_ceil(2) && buffer.len() < most {
            let doubled = buffer.len().saturating_mul(2).max(end + self.block);
            // Not twice within a few bytes of the limit: both buffers exist while one is copied.
            let len = if doubled > most / 2 { most } else { doubled };
            self.memory(len, buffer.grow(len, end))?;
        }
        Ok((buffer.len().min(most) - end).min(self.block))
    }

    /// What came of asking for so many bytes.
    fn memory<T>(&self, bytes: usize, got: std::io::Result<T>) -> Result<T, Fault> {
        let at = self.offset;
        got.map_err(|_| Fault::NoMemory { at, bytes })
    }
}
