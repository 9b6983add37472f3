//! One member of gzip, one frame of zstd, one stream of xz: bytes in, bytes out.
//! What may stand between them, and where the bytes come from, is the affair of `decode`.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use liblzma::stream::{Action, Stream};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, Operation};

use super::{WINDOW_LIMIT, WINDOW_LOG_LIMIT};
use crate::compression::Compression;

/// What one step of decoding did.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Step {
    /// Bytes of the input used.
    pub(super) read: usize,
    /// Bytes of the output filled.
    pub(super) written: usize,
    /// The member is complete, its checksum right.
    pub(super) ended: bool,
}

/// Why a decoder cannot go on.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The data contradicts itself, in these words.
    Corrupt(String),
    /// Decoding would take more than [`WINDOW_LIMIT`].
    Window,
}

/// A decoder of one format. [`Codec::begin`] before each member, then [`Codec::step`]
/// until `ended`.
pub(super) enum Codec {
    Gzip(Box<Gzip>),
    Zstd(ZstdDecoder<'static>),
    Xz(Option<Stream>),
}

impl Codec {
    pub(super) fn new(format: Compression) -> Result<Self, Refusal> {
        Ok(match format {
            Compression::Gzip => Self::Gzip(Box::new(Gzip::new())),
            Compression::Zstd => {
                let mut decoder =
                    ZstdDecoder::new().map_err(|e| Refusal::Corrupt(e.to_string()))?;
                decoder
                    .set_parameter(DParameter::WindowLogMax(WINDOW_LOG_LIMIT))
                    .map_err(|e| Refusal::Corrupt(e.to_string()))?;
                Self::Zstd(decoder)
            }
            Compression::Xz => Self::Xz(None),
        })
    }

    pub(super) fn format(&self) -> Compression {
        match self {
            Self::Gzip(_) => Compression::Gzip,
            Self::Zstd(_) => Compression::Zstd,
            Self::Xz(_) => Compression::Xz,
        }
    }

    /// Gets ready for the next member.
    pub(super) fn begin(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Gzip(gzip) => gzip.begin(),
            Self::Zstd(decoder) => {
                decoder
                    .reinit()
                    .map_err(|e| Refusal::Corrupt(e.to_string()))?;
            }
            Self::Xz(stream) => {
                // The window, and the little that liblzma needs beside it.
                let limit = WINDOW_LIMIT + (1 << 20);
                *stream = Some(Stream::new_stream_decoder(limit, 0).map_err(xz_refusal)?);
            }
        }
        Ok(())
    }

    /// Decodes some of `input` into `output`, either of which may be empty. A step that
    /// neither reads nor writes nor ends needs more input.
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Refusal> {
        match self {
            Self::Gzip(gzip) => gzip.step(input, output),
            Self::Zstd(decoder) => {
                let status = decoder.run_on_buffers(input, output).map_err(|e| {
                    let what = e.to_string();
                    // libzstd gives words only.
                    if what.contains("too much memory") {
                        Refusal::Window
                    } else {
                        Refusal::Corrupt(what)
                    }
                })?;
                Ok(Step {
                    read: status.bytes_read,
                    written: status.bytes_written,
                    ended: status.remaining == 0,
                })
            }
            Self::Xz(stream) => {
                let Some(stream) = stream else {
                    return Err(Refusal::Corrupt("no stream was begun".to_owned()));
                };
                let (read, written) = (stream.total_in(), stream.total_out());
                let status = stream
                    .process(input, output, Action::Run)
                    .map_err(xz_refusal)?;
                Ok(Step {
                    read: difference(stream.total_in(), read),
                    written: difference(stream.total_out(), written),
                    ended: status == liblzma::stream::Status::StreamEnd,
                })
            }
        }
    }
}

/// How far a decoder's own count went on in one step, at most the length of a slice.
fn difference(after: u64, before: u64) -> usize {
    usize::try_from(after - before).unwrap_or(usize::MAX)
}

fn xz_refusal(error: liblzma::stream::Error) -> Refusal {
    use liblzma::stream::Error;
    Refusal::Corrupt(
        match error {
            Error::MemLimit => return Refusal::Window,
            Error::Data => "the compressed data or a checksum is wrong",
            Error::Options => "a header asks for options that no known version has",
            Error::Format => "no xz header",
            Error::Mem => "the system has no memory left for decoding",
            Error::Program | Error::NoCheck | Error::UnsupportedCheck => "the decoder failed",
        }
        .to_owned(),
    )
}

/// A decoder of gzip members (RFC 1952), which checks all there is to check: reserved
/// bits, the header's checksum, the checksum and the length of the data.
pub(super) struct Gzip {
    inflate: Decompress,
    part: Part,
    /// The bytes of a field of fixed length, as far as they have come.
    field: [u8; 10],
    filled: usize,
    /// The parts of the header still to come.
    flags: u8,
    header_sum: Crc,
    data_sum: Crc,
    /// Bytes of data in this member, modulo 2^32.
    length: u32,
}

/// Where in a member the decoder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Fixed,
    ExtraLength,
    Extra(u16),
    Name,
    Comment,
    HeaderSum,
    Data,
    Trailer,
}

/// Bits of the header's flag byte.
const HAS_HEADER_SUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;

impl Gzip {
    fn new() -> Self {
        Self {
            inflate: Decompress::new(false),
            part: Part::Fixed,
            field: [0; 10],
            filled: 0,
            flags: 0,
            header_sum: Crc::new(),
            data_sum: Crc::new(),
            length: 0,
        }
    }

    fn begin(&mut self) {
        self.inflate.reset(false);
        self.part = Part::Fixed;
        self.filled = 0;
        self.header_sum.reset();
        self.data_sum.reset();
        self.length = 0;
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, Refusal> {
        let mut step = Step::default();
        while self.part != Part::Data && !step.ended {
            let rest = &input[step.read..];
            if rest.is_empty() {
                return Ok(step);
            }
            match self.part {
                Part::Trailer => {
                    step.read += self.collect::<8>(rest);
                    step.ended = self.filled == 8;
                    if step.ended {
                        self.check_trailer()?;
                    }
                }
                _ => step.read += self.header(rest)?,
            }
        }
        if self.part == Part::Data {
            let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self
                .inflate
                .decompress(&input[step.read..], output, FlushDecompress::None)
                .map_err(|e| Refusal::Corrupt(e.message().unwrap_or("bad code").to_owned()))?;
            step.read += difference(self.inflate.total_in(), read);
            step.written = difference(self.inflate.total_out(), written);
            self.data_sum.update(&output[..step.written]);
            self.length = self.length.wrapping_add(low_32_bits(step.written));
            if status == Status::StreamEnd {
                self.enter(Part::Trailer);
            }
        }
        Ok(step)
    }

    fn enter(&mut self, part: Part) {
        self.part = part;
        self.filled = 0;
    }

    /// Takes bytes of a field of `N` bytes, as many as there are and it lacks.
    fn collect<const N: usize>(&mut self, input: &[u8]) -> usize {
        let taken = input.len().min(N - self.filled);
        self.field[self.filled..self.filled + taken].copy_from_slice(&input[..taken]);
        self.filled += taken;
        taken
    }

    /// Takes the next piece of the header and tells its length.
    fn header(&mut self, input: &[u8]) -> Result<usize, Refusal> {
        let part = self.part;
        let taken = match part {
            Part::Fixed => self.collect::<10>(input),
            Part::ExtraLength | Part::HeaderSum => self.collect::<2>(input),
            Part::Extra(left) => input.len().min(usize::from(left)),
            _ => memchr::memchr(0, input).map_or(input.len(), |at| at + 1),
        };
        if part != Part::HeaderSum {
            self.header_sum.update(&input[..taken]);
        }
        match part {
            Part::Fixed if self.filled == 10 => {
                let [_, _, method, flags, ..] = self.field;
                if method != 8 {
                    return Err(Refusal::Corrupt(format!(
                        "compression method {method}, where only 8 exists"
                    )));
                }
                if flags & RESERVED != 0 {
                    return Err(Refusal::Corrupt(format!(
                        "reserved bits set in flags {flags:#x}"
                    )));
                }
                self.flags = flags;
                self.next_part();
            }
            Part::ExtraLength if self.filled == 2 => {
                let length = u16::from_le_bytes([self.field[0], self.field[1]]);
                self.extra(length);
            }
            Part::Extra(left) => {
                // `taken` is at most `left`.
                self.extra(left - u16::try_from(taken).unwrap_or(left));
            }
            Part::Name | Part::Comment if input[taken - 1] == 0 => self.next_part(),
            Part::HeaderSum if self.filled == 2 => {
                let said = u16::from_le_bytes([self.field[0], self.field[1]]);
                let [low, high, ..] = self.header_sum.sum().to_le_bytes();
                let is = u16::from_le_bytes([low, high]);
                if said != is {
                    return Err(Refusal::Corrupt(format!(
                        "the checksum of the header is {is:04x}, but it says {said:04x}"
                    )));
                }
                self.next_part();
            }
            _ => {}
        }
        Ok(taken)
    }

    fn extra(&mut self, left: u16) {
        if left == 0 {
            self.next_part();
        } else {
            self.enter(Part::Extra(left));
        }
    }

    /// Enters the next part of the header that the flags announce, or the data.
    fn next_part(&mut self) {
        let announced = [
            (HAS_EXTRA, Part::ExtraLength),
            (HAS_NAME, Part::Name),
            (HAS_COMMENT, Part::Comment),
            (HAS_HEADER_SUM, Part::HeaderSum),
        ];
        let next = announced
            .into_iter()
            .find(|(flag, _)| self.flags & flag != 0);
        if let Some((flag, _)) = next {
            self.flags &= !flag;
        }
        self.enter(next.map_or(Part::Data, |(_, part)| part));
    }

    fn check_trailer(&self) -> Result<(), Refusal> {
        let [a, b, c, d, e, f, g, h, ..] = self.field;
        let (said, is) = (u32::from_le_bytes([a, b, c, d]), self.data_sum.sum());
        if said != is {
            return Err(Refusal::Corrupt(format!(
                "the checksum of the data is {is:08x}, but the member says {said:08x}"
            )));
        }
        let (said, is) = (u32::from_le_bytes([e, f, g, h]), self.length);
        if said != is {
            return Err(Refusal::Corrupt(format!(
                "the data is {is} bytes long, but the member says {said} (both modulo 2^32)"
            )));
        }
        Ok(())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "gzip counts its bytes modulo 2^32"
)]
fn low_32_bits(bytes: usize) -> u32 {
    bytes as u32
}
