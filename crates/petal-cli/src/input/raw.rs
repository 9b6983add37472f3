//! The bytes of an input as they are stored: reading them with a small look
//! ahead, counting them, skipping some. What they mean is decided in `decode`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::PollFlags;

use crate::os::{is_readable, persevere};

/// Bytes looked ahead at most: what a decoder is given at once.
const LOOK_AHEAD: usize = 128 << 10;

/// A file or a pipe, read once from its present position.
#[derive(Debug)]
pub(super) struct Raw {
    file: File,
    /// `buffer[start..end]` has been read but not used.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes used.
    position: u64,
    /// Bytes asked of the system so far, for those who watch.
    fetched: Arc<AtomicU64>,
}

impl Raw {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            buffer: vec![0; LOOK_AHEAD],
            start: 0,
            end: 0,
            position: 0,
            fetched: Arc::default(),
        }
    }

    /// Bytes used so far.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// A counter of the bytes read from the system so far, those skipped included.
    pub(super) fn fetched(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.fetched)
    }

    /// What has been read ahead and not been used.
    pub(super) fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads on until at least `want` bytes are ahead or the file ends. Not more than
    /// necessary: one read that brings enough is the last.
    pub(super) fn fill(&mut self, want: usize) -> io::Result<&[u8]> {
        debug_assert!(want <= LOOK_AHEAD);
        if self.buffer.len() - self.start < want || self.start == self.end {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end - self.start < want {
            let read = fetch(&mut self.file, &mut self.buffer[self.end..], &self.fetched)?;
            if read == 0 {
                break;
            }
            self.end += read;
        }
        Ok(self.ahead())
    }

    /// Marks the next `bytes` bytes of [`Raw::ahead`] as used.
    pub(super) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start);
        self.start += bytes;
        self.position += bytes as u64;
    }

    /// Reads once, past the look-ahead buffer if that is empty. 0 is the end.
    pub(super) fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.start < self.end {
            let len = out.len().min(self.end - self.start);
            out[..len].copy_from_slice(&self.buffer[self.start..self.start + len]);
            self.consume(len);
            return Ok(len);
        }
        let read = fetch(&mut self.file, out, &self.fetched)?;
        self.position += read as u64;
        Ok(read)
    }

    /// Whether the next read would wait: nothing is ahead, and the system has nothing either.
    pub(super) fn is_idle(&self) -> bool {
        self.start == self.end && !is_readable(&self.file)
    }

    /// Moves on by `bytes` without reading them. Only for a regular file that is known to
    /// have them.
    pub(super) fn seek_forward(&mut self, bytes: u64) -> io::Result<()> {
        let ahead = self.end - self.start;
        match usize::try_from(bytes) {
            Ok(within) if within <= ahead => self.start += within,
            _ => {
                let beyond = bytes - ahead as u64;
                let offset = i64::try_from(beyond).map_err(io::Error::other)?;
                self.file.seek(SeekFrom::Current(offset))?;
                self.fetched.fetch_add(beyond, Ordering::Relaxed);
                (self.start, self.end) = (0, 0);
            }
        }
        self.position += bytes;
        Ok(())
    }
}

/// One read from the system, counted.
fn fetch(file: &mut File, out: &mut [u8], fetched: &AtomicU64) -> io::Result<usize> {
    let fd = &*file;
    let read = persevere(fd, PollFlags::IN, || (&*fd).read(out))?;
    fetched.fetch_add(read as u64, Ordering::Relaxed);
    Ok(read)
}
