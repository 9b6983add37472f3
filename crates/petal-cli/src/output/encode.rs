//! Writes bytes to a file, compressed or not, as a sequence of members, frames or streams.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;
use rustix::event::PollFlags;
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::compression::Compression;
use crate::os::persevere;

/// Bytes collected before the system is bothered.
pub(super) const BUFFER: usize = 256 << 10;

/// The default levels of `gzip` and `zstd`: encoders of 1 and 4 MiB.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;
/// Not the 6 that `xz` uses: what an encoder takes comes on top of the memory that a run has
/// planned, and this one would take 94 MiB. Level 0 takes 3 MiB, and is some 15 times as fast;
/// its files of URLs are two thirds larger, about those of `gzip`. Level 1 already takes 9 MiB.
const XZ_LEVEL: u32 = 0;

/// A file that is written to with patience, or no longer.
pub(super) struct Patient {
    file: File,
    /// Bytes are dropped: an encoder that goes away must not complete what has failed.
    abandoned: bool,
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.abandoned {
            return Ok(bytes.len());
        }
        persevere(&self.file, PollFlags::OUT, || (&self.file).write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

type Buffered = BufWriter<Patient>;

/// The writer. A frame begins with the first byte written and ends when asked.
pub(super) struct Frames {
    format: Option<Compression>,
    state: State,
    /// Bytes for the encoder, which gets them in pieces of [`BUFFER`]: what it makes of them
    /// may depend on the pieces.
    piece: Vec<u8>,
    /// There is no frame yet.
    empty: bool,
}

enum State {
    /// Between two frames, or not compressed.
    Plain(Buffered),
    Gzip(GzEncoder<Buffered>),
    Zstd(ZstdEncoder<'static, Buffered>),
    Xz(XzEncoder<Buffered>),
    /// Beginning or ending a frame has failed.
    Lost,
}

impl Frames {
    /// Writes to `file` from where it stands; `empty` says that it has no frames so far.
    pub(super) fn new(file: File, format: Option<Compression>, empty: bool) -> Self {
        let patient = Patient {
            file,
            abandoned: false,
        };
        Self {
            format,
            state: State::Plain(BufWriter::with_capacity(BUFFER, patient)),
            piece: Vec::new(),
            empty,
        }
    }

    /// Writes nowhere: to stand where frames were.
    pub(super) const fn lost() -> Self {
        Self {
            format: None,
            state: State::Lost,
            piece: Vec::new(),
            empty: false,
        }
    }

    /// Takes all of `bytes`.
    #[inline]
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let (State::Plain(file), None) = (&mut self.state, self.format) {
            return file.write_all(bytes);
        }
        self.write_compressed(bytes)
    }

    fn write_compressed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while self.piece.len() + bytes.len() >= BUFFER {
            let (fits, rest) = bytes.split_at(BUFFER - self.piece.len());
            bytes = rest;
            if self.piece.is_empty() {
                self.encode(fits)?;
                continue;
            }
            self.piece.extend_from_slice(fits);
            self.encode_piece()?;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    fn encode_piece(&mut self) -> io::Result<()> {
        let mut piece = std::mem::take(&mut self.piece);
        let encoded = self.encode(&piece);
        piece.clear();
        self.piece = piece;
        encoded
    }

    fn encode(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.begin_frame()?;
        self.writer()?.write_all(bytes)
    }

    /// Brings everything to the system. Inside a frame this costs some compression.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.encode_piece()?;
        self.writer()?.flush()
    }

    /// Begins a frame unless the writer is in one, or does not compress.
    fn begin_frame(&mut self) -> io::Result<()> {
        let (Some(format), State::Plain(_)) = (self.format, &self.state) else {
            return Ok(());
        };
        let State::Plain(file) = std::mem::replace(&mut self.state, State::Lost) else {
            return Ok(());
        };
        self.state = match format {
            Compression::Gzip => {
                State::Gzip(GzEncoder::new(file, flate2::Compression::new(GZIP_LEVEL)))
            }
            Compression::Zstd => {
                let mut encoder = ZstdEncoder::new(file, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                State::Zstd(encoder)
            }
            Compression::Xz => State::Xz(XzEncoder::new(file, XZ_LEVEL)),
        };
        self.empty = false;
        Ok(())
    }

    /// Ends the frame, if in one, and brings everything to the system. What is in the file
    /// is complete then, and another frame may follow. No frame at all would not decode, so
    /// there is one without any bytes at least.
    pub(super) fn end_frame(&mut self) -> io::Result<()> {
        self.encode_piece()?;
        if self.empty {
            self.begin_frame()?;
        }
        let mut file = match std::mem::replace(&mut self.state, State::Lost) {
            State::Plain(file) => file,
            State::Gzip(encoder) => encoder.finish()?,
            State::Zstd(encoder) => encoder.finish()?,
            State::Xz(encoder) => encoder.finish()?,
            State::Lost => return Err(lost()),
        };
        let flushed = file.flush();
        self.state = State::Plain(file);
        flushed
    }

    /// Writes nothing more, not even what has been buffered.
    pub(super) fn abandon(&mut self) {
        self.piece.clear();
        if let Some(file) = self.buffered() {
            file.get_mut().abandoned = true;
        }
    }

    /// The file, if no frame has been lost.
    pub(super) fn file(&self) -> io::Result<&File> {
        let file = match &self.state {
            State::Plain(file) => file,
            State::Gzip(encoder) => encoder.get_ref(),
            State::Zstd(encoder) => encoder.get_ref(),
            State::Xz(encoder) => encoder.get_ref(),
            State::Lost => return Err(lost()),
        };
        Ok(&file.get_ref().file)
    }

    fn buffered(&mut self) -> Option<&mut Buffered> {
        Some(match &mut self.state {
            State::Plain(file) => file,
            State::Gzip(encoder) => encoder.get_mut(),
            State::Zstd(encoder) => encoder.get_mut(),
            State::Xz(encoder) => encoder.get_mut(),
            State::Lost => return None,
        })
    }

    fn writer(&mut self) -> io::Result<&mut dyn Write> {
        Ok(match &mut self.state {
            State::Plain(file) => file,
            State::Gzip(encoder) => encoder,
            State::Zstd(encoder) => encoder,
            State::Xz(encoder) => encoder,
            State::Lost => return Err(lost()),
        })
    }
}

fn lost() -> io::Error {
    io::Error::other("writing has already failed")
}
