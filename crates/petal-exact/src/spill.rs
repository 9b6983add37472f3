//! Fingerprints on disk, in partitions: one temporary file, written and read in chunks.
//!
//! Owns the chunks and what is in them. An entry is a fingerprint of 16 bytes and, where records
//! may be kept, the distance of its number from that of the entry before it (LEB128: 1 or 2
//! bytes, since a partition takes a fixed share of the records). What entries mean is the
//! caller's.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::scratch::Scratch;

/// Most bytes of an entry: a fingerprint and a number of 64 bits in groups of 7.
const MOST_ENTRY: usize = 16 + 10;

/// A chunk is long beside what is remembered of it, and at most as long as a device likes.
const LEAST_CHUNK: u64 = 1 << 10;
const MOST_CHUNK: u64 = 1 << 18;

/// A temporary file that several writers share.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    end: AtomicU64,
    read: AtomicU64,
}

/// Where a chunk is.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    offset: u64,
    len: usize,
}

/// The entries of one source in one partition, in the order of the source.
#[derive(Debug, Default, Clone)]
pub(crate) struct Run {
    chunks: Vec<Chunk>,
    pub(crate) entries: u64,
}

/// Entries of a chunk, to be used again.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    pub(crate) fingerprints: Vec<Fingerprint>,
    /// Empty where entries have none.
    pub(crate) numbers: Vec<u64>,
}

impl SpillFile {
    pub(crate) fn new(scratch: &Scratch) -> Result<Self, Error> {
        Ok(Self {
            file: scratch.file()?,
            end: AtomicU64::new(0),
            read: AtomicU64::new(0),
        })
    }

    /// Bytes written so far.
    pub(crate) fn written(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// Bytes read so far.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Appends bytes; tells where they are.
    pub(crate) fn append(&self, bytes: &[u8]) -> Result<u64, Error> {
        let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file
            .write_all_at(bytes, offset)
            .map_err(|error| Error::io("write a temporary file", error))?;
        Ok(offset)
    }

    /// Fills a buffer with the bytes at a place.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), Error> {
        self.read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file
            .read_exact_at(bytes, offset)
            .map_err(|error| Error::io("read a temporary file", error))
    }
}

/// Distributes the entries of one source among partitions, which are buffered.
pub(crate) struct Writer<'f> {
    file: &'f SpillFile,
    /// Bits of the fingerprint's high half that were used by those before, and that number
    /// the partitions here.
    used: u32,
    bits: u32,
    numbered: bool,
    /// Bytes of a chunk.
    room: usize,
    parts: Vec<Part>,
}

#[derive(Default)]
struct Part {
    buffer: Vec<u8>,
    last: u64,
    run: Run,
}

impl<'f> Writer<'f> {
    /// For 2^`bits` partitions by the bits of the high half after the first `used`, with
    /// `memory` bytes for buffers.
    pub(crate) fn new(
        file: &'f SpillFile,
        used: u32,
        bits: u32,
        numbered: bool,
        memory: u64,
    ) -> Self {
        let parts = 1usize << bits;
        let room = (memory >> bits).clamp(LEAST_CHUNK, MOST_CHUNK);
        Self {
            file,
            used,
            bits,
            numbered,
            room: usize::try_from(room).unwrap_or(1 << 16),
            parts: std::iter::repeat_with(Part::default).take(parts).collect(),
        }
    }

    /// Bytes that buffers take if they may take `memory`.
    pub(crate) fn memory(bits: u32, memory: u64) -> u64 {
        (memory >> bits).clamp(LEAST_CHUNK, MOST_CHUNK) << bits
    }

    /// Bytes of buffers that are needed at least.
    pub(crate) const fn least_memory(bits: u32) -> u64 {
        LEAST_CHUNK << bits
    }

    /// Appends an entry. Numbers must not fall.
    #[inline]
    pub(crate) fn push(&mut self, fingerprint: Fingerprint, number: u64) -> Result<(), Error> {
        let index = index(fingerprint, self.used, self.bits);
        let part = &mut self.parts[index];
        if part.buffer.len() + MOST_ENTRY > self.room {
            flush(self.file, part, self.room)?;
        } else if part.buffer.capacity() == 0 {
            part.buffer.reserve_exact(self.room);
        }
        part.buffer
            .extend_from_slice(bytemuck::bytes_of(&fingerprint));
        if self.numbered {
            push_varint(&mut part.buffer, number - part.last);
            part.last = number;
        }
        part.run.entries += 1;
        Ok(())
    }

    /// The runs, one for each partition.
    pub(crate) fn finish(mut self) -> Result<Vec<Run>, Error> {
        for part in &mut self.parts {
            flush(self.file, part, 0)?;
        }
        Ok(self.parts.into_iter().map(|part| part.run).collect())
    }
}

/// The partition of a fingerprint.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most `bits` bits are left, which number a vector's elements"
)]
const fn index(fingerprint: Fingerprint, used: u32, bits: u32) -> usize {
    if bits == 0 {
        return 0;
    }
    (fingerprint.high << used >> (64 - bits)) as usize
}

/// Writes what a partition has as one chunk, whose numbers begin anew.
fn flush(file: &SpillFile, part: &mut Part, room: usize) -> Result<(), Error> {
    if !part.buffer.is_empty() {
        let offset = file.append(&part.buffer)?;
        let len = part.buffer.len();
        part.run.chunks.push(Chunk { offset, len });
    }
    part.last = 0;
    if room == 0 {
        part.buffer = Vec::new();
    } else {
        part.buffer.clear();
    }
    Ok(())
}

#[inline]
fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

impl Run {
    /// Hands all entries to `take`, chunk by chunk.
    pub(crate) fn each<E: From<Error>>(
        &self,
        file: &SpillFile,
        numbered: bool,
        entries: &mut Entries,
        mut take: impl FnMut(&Entries) -> Result<(), E>,
    ) -> Result<(), E> {
        for chunk in &self.chunks {
            entries.bytes.resize(chunk.len, 0);
            file.read_at(&mut entries.bytes, chunk.offset)?;
            entries.decode(numbered)?;
            take(entries)?;
        }
        Ok(())
    }
}

impl Entries {
    fn decode(&mut self, numbered: bool) -> Result<(), Error> {
        self.fingerprints.clear();
        self.numbers.clear();
        let mut rest = self.bytes.as_slice();
        let mut last = 0u64;
        while let Some((bytes, after)) = rest.split_first_chunk::<16>() {
            self.fingerprints.push(bytemuck::pod_read_unaligned(bytes));
            rest = after;
            if numbered {
                let (distance, after) = varint(rest).ok_or_else(torn)?;
                last = last.checked_add(distance).ok_or_else(torn)?;
                self.numbers.push(last);
                rest = after;
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(torn()) }
    }
}

#[inline]
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

/// A temporary file does not say what was written to it.
fn torn() -> Error {
    let text = "it does not hold what was written to it";
    Error::io(
        "read a temporary file",
        io::Error::new(io::ErrorKind::InvalidData, text),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spill_file() -> SpillFile {
        SpillFile {
            file: tempfile::tempfile().unwrap(),
            end: AtomicU64::new(0),
            read: AtomicU64::new(0),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_entry_comes_back_in_its_partition(
            entries in proptest::collection::vec((any::<u64>(), any::<u64>(), 0..300u64), 0..300),
            (used, bits) in (0u32..60, 0u32..5),
            numbered: bool,
            memory in 0u64..4000,
        ) {
            let file = spill_file();
            let mut writer = Writer::new(&file, used, bits, numbered, memory);
            let mut number = u64::from(u32::MAX);
            let mut expected = vec![Vec::new(); 1 << bits];
            for &(high, low, step) in &entries {
                number += step;
                let fingerprint = Fingerprint { high, low };
                writer.push(fingerprint, number).unwrap();
                let part = index(fingerprint, used, bits);
                expected[part].push((fingerprint, if numbered { number } else { 0 }));
            }
            let runs = writer.finish().unwrap();
            let mut buffer = Entries::default();
            for (run, expected) in runs.iter().zip(&expected) {
                let mut got = Vec::new();
                run.each::<Error>(&file, numbered, &mut buffer, |entries| {
                    for (i, &fingerprint) in entries.fingerprints.iter().enumerate() {
                        got.push((fingerprint, entries.numbers.get(i).copied().unwrap_or(0)));
                    }
                    Ok(())
                }).unwrap();
                prop_assert_eq!(&got, expected);
                prop_assert_eq!(run.entries, expected.len() as u64);
            }
            prop_assert_eq!(file.written(), file.read());
        }
    }

    #[test]
    fn damage_is_an_error() {
        let mut entries = Entries::default();
        for (bytes, numbered) in [
            (vec![1; 15], false),
            (vec![1; 16], true),
            (vec![0xff; 40], true),
            (vec![1; 33], false),
        ] {
            entries.bytes = bytes;
            assert!(entries.decode(numbered).is_err());
        }
    }
}
