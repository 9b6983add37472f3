//! Filters in pieces: for a program that keeps or sends them where there is
//! no file, and does not want a whole one in memory beside the filter.
//!
//! Owns what such a program needs of a filter (its front, pieces of its
//! payload, the table behind it), [`Assembly`], which makes a filter of a front
//! and payload in pieces, and [`FileAssembly`], which makes one of the bytes of a
//! file as they come. How pieces are framed and checked on their way is the
//! program's.

use super::MIB;
use super::checksum::{sum, table_bytes};
use super::contents::{Contents, Stored, le_bytes};
use super::header::{Geometry, Header, field};
use super::payload::Runs;
use super::read::Front;
use super::sections::HEADER_LEN;
use super::source::Source;
use crate::any::AnyFilter;
use crate::deletable::Checking;
use crate::error::{Error, FormatError, Result};
use crate::hash::Secret;
use crate::words::Words;

impl AnyFilter {
    /// Header and metadata, by which an [`Assembly`] begins. Takes the same time for
    /// every size: the front is that of a file whose checksums are not known yet.
    ///
    /// # Errors
    /// If the filter is in a state that no file can hold.
    pub fn front(&self) -> Result<Vec<u8>> {
        let contents = self.contents()?;
        contents.front(&contents.plan()?, 0)
    }

    /// Bytes of the payload.
    ///
    /// # Errors
    /// As [`Self::front`].
    pub fn payload_len(&self) -> Result<u64> {
        Ok(self.contents()?.runs()?.len())
    }

    /// Bytes of the payload from an offset on: `most` of them, or fewer where it
    /// ends. Both are multiples of 8.
    ///
    /// # Errors
    /// As [`Self::front`], or if one is no multiple of 8.
    pub fn payload_piece(&self, offset: u64, most: usize) -> Result<Vec<u8>> {
        let contents = self.contents()?;
        let words: Vec<&[u64]> = contents.words.iter().map(|words| words.get()).collect();
        piece(&contents.runs()?, &words, offset, most)
    }

    /// What stands before and behind the payload in a file: all of it is read
    /// for its checksums.
    ///
    /// # Errors
    /// As [`Self::front`].
    pub fn file_ends(&self) -> Result<(Vec<u8>, Vec<u8>)> {
        let frame = self.contents()?.frame()?;
        Ok((frame.front, frame.table))
    }
}

impl Contents<'_> {
    fn runs(&self) -> Result<Runs> {
        Ok(Runs::new(&self.geometry, self.growth.as_ref())?)
    }
}

/// A piece of the payload that these words are.
fn piece(runs: &Runs, words: &[&[u64]], offset: u64, most: usize) -> Result<Vec<u8>> {
    if !offset.is_multiple_of(8) || !most.is_multiple_of(8) {
        let got = format!("{most} bytes from {offset}");
        return Err(Error::parameter("piece", got, "multiples of 8"));
    }
    let end = offset.saturating_add(most as u64).min(runs.len());
    let mut bytes = vec![0; place(end.saturating_sub(offset))];
    for (run, words) in runs.iter().zip(words) {
        let (from, to) = (run.offset.max(offset), run.end().min(end));
        if from < to {
            let words = &words[place((from - run.offset) / 8)..place((to - run.offset) / 8)];
            bytes[place(from - offset)..place(to - offset)].copy_from_slice(&le_bytes(words));
        }
    }
    Ok(bytes)
}

/// A place in what is in memory, so that it fits.
fn place(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// A front that stands alone: as long as it says the file is.
struct Alone<'a>(&'a [u8]);

/// Where the header has the length of the file.
const FILE_LEN_AT: usize = 128;

impl Source for Alone<'_> {
    fn len(&self) -> u64 {
        let claimed = self.0.get(FILE_LEN_AT..).and_then(<[u8]>::first_chunk);
        claimed.map_or(self.0.len() as u64, |&len| u64::from_le_bytes(len))
    }

    fn read<'a>(&'a self, offset: u64, len: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.0.read(offset, len, scratch)
    }

    fn is_hole(&self, _: u64, _: usize) -> bool {
        false
    }
}

/// Makes a filter of its front and its payload in pieces. Damage of the front is
/// found; damage of the payload, beyond what contradicts the front, is the
/// caller's to find.
#[derive(Debug)]
pub struct Assembly {
    bytes: Vec<u8>,
    front: Front,
    words: Vec<Words>,
    /// Bytes of the payload that came.
    come: u64,
    /// The check of a deletable filter, as far as it came: at the end it would
    /// take as long as all pieces before.
    checking: Option<Checking>,
}

impl Assembly {
    /// Begins with what [`AnyFilter::front`] gave. The memory of the payload is
    /// taken at once.
    ///
    /// # Errors
    /// If the front is none, or the payload is larger than `most` bytes or
    /// than the memory that can be had.
    pub fn new(front: &[u8], most: u64) -> Result<Self> {
        let bytes = front.to_vec();
        let front = Front::read(&Alone(front))?;
        let expected = front.header.sections.payload_offset;
        if bytes.len() as u64 != expected {
            return Err(FormatError::Length {
                expected,
                got: bytes.len() as u64,
            }
            .into());
        }
        front.refuse_dirty()?;
        let needed = front.runs.len();
        if needed > most {
            return Err(Error::TooLarge {
                needed,
                available: Some(most),
            });
        }
        let checking = match front.header.geometry {
            Geometry::Deletable { shape, .. } if cfg!(target_endian = "little") => {
                Some(Checking::new(shape))
            }
            _ => None,
        };
        Ok(Self {
            words: front.runs.allocate()?,
            checking,
            bytes,
            front,
            come: 0,
        })
    }

    /// The front it began with.
    #[must_use]
    pub fn front(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of the payload that came.
    #[must_use]
    pub const fn come(&self) -> u64 {
        self.come
    }

    /// Bytes of the whole payload.
    #[must_use]
    pub fn payload_len(&self) -> u64 {
        self.front.runs.len()
    }

    /// What came: as [`AnyFilter::payload_piece`], up to [`Self::come`].
    ///
    /// # Errors
    /// As there.
    pub fn payload_piece(&self, offset: u64, most: usize) -> Result<Vec<u8>> {
        let left = place(self.come.saturating_sub(offset));
        if cfg!(target_endian = "big") {
            // The words are as they came, and `piece` would turn them around.
            let native: Vec<Vec<u64>> = self
                .words
                .iter()
                .map(|words| words.get().iter().map(|&word| u64::from_le(word)).collect())
                .collect();
            let words: Vec<&[u64]> = native.iter().map(Vec::as_slice).collect();
            return piece(&self.front.runs, &words, offset, most.min(left));
        }
        let words: Vec<&[u64]> = self.words.iter().map(Words::get).collect();
        piece(&self.front.runs, &words, offset, most.min(left))
    }

    /// Takes the next piece, of a multiple of 8 bytes.
    ///
    /// # Errors
    /// If its length is no such multiple or too long, or bits are set that
    /// must not be. Nothing is taken then.
    pub fn push(&mut self, piece: &[u8]) -> Result<()> {
        let left = self.payload_len() - self.come;
        let len = piece.len() as u64;
        if !len.is_multiple_of(8) || len > left {
            let expected = format!("a multiple of 8 up to {left}");
            return Err(field("length of a piece", len, expected).into());
        }
        self.front.runs.check(self.come, piece)?;
        self.front.runs.copy(self.come, piece, &mut self.words)?;
        self.come += len;
        if let (Some(checking), [words]) = (&mut self.checking, self.words.as_slice()) {
            checking.advance(words.get(), place(self.come / 8));
        }
        Ok(())
    }

    /// The filter, when all of its payload came.
    ///
    /// # Errors
    /// If some is missing, the words are not those of a filter, or the secret
    /// that the filter needs is missing or another one.
    pub fn finish(mut self, secret: Option<&Secret>) -> Result<AnyFilter> {
        if self.come != self.payload_len() {
            return Err(FormatError::Length {
                expected: self.payload_len(),
                got: self.come,
            }
            .into());
        }
        for words in &mut self.words {
            words.make_native();
        }
        let hasher = self.front.unlock(secret)?;
        self.front
            .into_filter_checked(hasher, self.words, self.checking)
    }
}

/// Makes a filter of the bytes of a file, in pieces of any length, and checks all
/// of them, as [`AnyFilter::open`] does.
#[derive(Debug)]
pub struct FileAssembly {
    most: u64,
    /// What came of the front, then of the MiB that is being read, then of the table.
    pending: Vec<u8>,
    assembly: Option<Assembly>,
    sums: Vec<u64>,
    /// All bytes that came.
    come: u64,
}

impl FileAssembly {
    /// Begins with nothing. The payload may take `most` bytes.
    #[must_use]
    pub const fn new(most: u64) -> Self {
        Self {
            most,
            pending: Vec::new(),
            assembly: None,
            sums: Vec::new(),
            come: 0,
        }
    }

    /// All bytes that came.
    #[must_use]
    pub const fn come(&self) -> u64 {
        self.come
    }

    /// Bytes of the whole file, once its header came.
    #[must_use]
    pub fn file_len(&self) -> Option<u64> {
        let assembly = self.assembly.as_ref()?;
        Some(assembly.front.header.sections.file_len)
    }

    /// Bytes of the file from an offset on, as far as they came: `most` of
    /// them or fewer, as they came. Empty past what is kept in pieces: ask for offsets in
    /// order.
    ///
    /// # Errors
    /// If `most` is no multiple of 8 or, for the payload, the offset none.
    pub fn piece(&self, offset: u64, most: usize) -> Result<Vec<u8>> {
        let part = |bytes: &[u8], from: u64| {
            let from = place(from).min(bytes.len());
            bytes[from..bytes.len().min(from.saturating_add(most))].to_vec()
        };
        let Some(assembly) = &self.assembly else {
            return Ok(part(&self.pending, offset));
        };
        let start = assembly.bytes.len() as u64;
        if offset < start {
            return Ok(part(&assembly.bytes, offset));
        }
        if offset - start < assembly.come {
            return assembly.payload_piece(offset - start, most);
        }
        Ok(part(&self.pending, offset - start - assembly.come))
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// If they are not those of an intact file. The assembly is of no use then.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.come = self.come.saturating_add(bytes.len() as u64);
        while !bytes.is_empty() {
            let wanted = self.wanted()?;
            if wanted == self.pending.len() {
                let expected = self.file_len().unwrap_or(0);
                return Err(FormatError::Length {
                    expected,
                    got: self.come,
                }
                .into());
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(wanted - self.pending.len()));
            self.pending.extend_from_slice(taken);
            bytes = rest;
            if self.pending.len() == wanted {
                self.take()?;
            }
        }
        Ok(())
    }

    /// How long what is pending has to be to be taken. The table stays.
    fn wanted(&self) -> Result<usize> {
        let Some(assembly) = &self.assembly else {
            if self.pending.len() < HEADER_LEN {
                return Ok(HEADER_LEN);
            }
            let header = Header::decode(&self.pending, Alone(&self.pending).len())?;
            return Ok(place(header.sections.payload_offset));
        };
        let sections = &assembly.front.header.sections;
        if assembly.come < assembly.payload_len() {
            return Ok(sections.mib_len(self.sums.len() as u64));
        }
        Ok(place(sections.file_len - sections.table_offset))
    }

    /// Takes what is pending as a whole.
    fn take(&mut self) -> Result<()> {
        let Some(assembly) = &mut self.assembly else {
            if self.wanted()? == self.pending.len() {
                self.assembly = Some(Assembly::new(&self.pending, self.most)?);
                self.pending.clear();
            }
            return Ok(());
        };
        if assembly.come < assembly.payload_len() {
            self.sums.push(sum(&self.pending));
            assembly.push(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Whether all of the file came.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.file_len() == Some(self.come)
    }

    /// The filter, when all bytes of the file came.
    ///
    /// # Errors
    /// If some are missing or damaged, or as [`Assembly::finish`].
    pub fn finish(self, secret: Option<&Secret>) -> Result<AnyFilter> {
        let Some(assembly) = self.assembly else {
            return Err(FormatError::Length {
                expected: HEADER_LEN as u64,
                got: self.come,
            }
            .into());
        };
        let sections = &assembly.front.header.sections;
        if self.come != sections.file_len {
            return Err(FormatError::Length {
                expected: sections.file_len,
                got: self.come,
            }
            .into());
        }
        if sum(&self.pending) != assembly.front.header.table_sum {
            return Err(FormatError::Checksum {
                part: "checksum table",
                offset: sections.table_offset,
            }
            .into());
        }
        let table = table_bytes(&self.sums);
        let differs = table
            .chunks(8)
            .zip(self.pending.chunks(8))
            .position(|(a, b)| a != b);
        if let Some(mib) = differs {
            return Err(FormatError::Checksum {
                part: "payload",
                offset: sections.payload_offset + (mib * MIB) as u64,
            }
            .into());
        }
        assembly.finish(secret)
    }
}
