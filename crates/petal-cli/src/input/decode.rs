//! Turns the stored bytes of an input into the bytes it means: every member of gzip,
//! every frame of zstd, every stream of xz, or the bytes themselves.
//!
//! Nothing is guessed about what comes between or after the members: only another
//! member, the zero bytes that the xz format allows, or the end.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::codec::{Codec, Refusal};
use super::error::{Fault, Place};
use super::raw::Raw;
use crate::compression::{Compression, Sniff};

/// Bytes read and dropped at once by [`Decoder::skip`].
const SKIP_BUFFER: usize = 64 << 10;

/// Where decoded bytes come from.
pub(super) trait Source: Send {
    /// Fills some of `out`, which is not empty, with what is there first; 0 is the end.
    /// After an error the source is of no more use.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault>;

    /// Whether nothing is there at the moment, so that the next read would wait.
    fn is_idle(&self) -> bool;
}

/// The decoded bytes of a file.
pub(super) struct Decoder {
    raw: Raw,
    /// None: the bytes stand for themselves.
    codec: Option<Codec>,
    /// Inside a member, not between two.
    inside: bool,
    /// Decoded bytes so far.
    decoded: u64,
}

impl Decoder {
    /// Looks at the first bytes and chooses. `named` is the format that the name of the file
    /// speaks of: it matters only for a file without any bytes, which no compressor writes.
    pub(super) fn new(mut raw: Raw, named: Option<Compression>) -> Result<Self, Fault> {
        let mut sniff = Sniff::Plain;
        for want in 1..=Compression::LONGEST_MARK {
            let head = raw
                .fill(want)
                .map_err(|source| Fault::Read { at: 0, source })?;
            sniff = Compression::sniff(head);
            if !matches!(sniff, Sniff::MayBe(_)) || head.len() < want {
                break;
            }
        }
        let head = raw.ahead();
        let cut = |format| {
            let at = Place {
                decoded: 0,
                raw: head.len() as u64,
            };
            Err(Fault::Truncated { format, at })
        };
        let format = match (sniff, named) {
            (Sniff::Is(format), _) => Some(format),
            // The beginning of a mark and no more: cut off, if it cannot be text.
            (Sniff::MayBe(format), _) if head.len() > 1 && str::from_utf8(head).is_err() => {
                return cut(format);
            }
            (_, Some(format)) if head.is_empty() => return cut(format),
            _ => None,
        };
        let mut decoder = Self {
            raw,
            codec: None,
            inside: false,
            decoded: 0,
        };
        if let Some(format) = format {
            let codec = Codec::new(format).map_err(|why| decoder.refusal(format, why))?;
            decoder.codec = Some(codec);
        }
        Ok(decoder)
    }

    /// The format, if the bytes do not stand for themselves.
    #[cfg(test)]
    pub(super) fn format(&self) -> Option<Compression> {
        self.codec.as_ref().map(Codec::format)
    }

    /// See [`Raw::fetched`].
    pub(super) fn fetched(&self) -> Arc<AtomicU64> {
        self.raw.fetched()
    }

    /// Decoded bytes so far, those skipped included.
    pub(super) fn decoded(&self) -> u64 {
        self.decoded
    }

    /// Moves on by `bytes` decoded bytes. `size` is the number of bytes that the file still
    /// has, if it is a regular one: then plain bytes are jumped over.
    pub(super) fn skip(&mut self, bytes: u64, size: Option<u64>) -> Result<(), Fault> {
        let wanted = self.decoded.saturating_add(bytes);
        if let (None, Some(size)) = (&self.codec, size) {
            if bytes > size {
                return Err(Fault::Short {
                    wanted,
                    has: self.decoded + size,
                });
            }
            self.raw
                .seek_forward(bytes)
                .map_err(|source| self.failed(source))?;
            self.decoded = wanted;
            return Ok(());
        }
        let mut scratch = vec![0; SKIP_BUFFER];
        while self.decoded < wanted {
            let left = usize::try_from(wanted - self.decoded).unwrap_or(usize::MAX);
            let len = scratch.len().min(left);
            if self.read(&mut scratch[..len])? == 0 {
                return Err(Fault::Short {
                    wanted,
                    has: self.decoded,
                });
            }
        }
        Ok(())
    }

    /// Gets to the start of the next member; false at the end of the input.
    fn next_member(&mut self) -> Result<bool, Fault> {
        let Some(codec) = &mut self.codec else {
            return Ok(false);
        };
        let format = codec.format();
        if format == Compression::Xz && self.raw.position() > 0 {
            self.skip_padding()?;
        }
        let first = self.raw.position() == 0;
        let read = self.raw.fill(Compression::LONGEST_MARK);
        let head = read.map_err(|source| Fault::Read {
            at: self.decoded,
            source,
        })?;
        if head.is_empty() && !first {
            return Ok(false);
        }
        if Compression::sniff(head) != Sniff::Is(format) {
            let found = head[..head.len().min(8)].to_vec();
            return Err(Fault::Trailing {
                format,
                at: self.place(),
                found,
            });
        }
        if let Some(Err(why)) = self.codec.as_mut().map(Codec::begin) {
            return Err(self.refusal(format, why));
        }
        self.inside = true;
        Ok(true)
    }

    /// Passes over the zero bytes after a stream of xz, which come in fours.
    fn skip_padding(&mut self) -> Result<(), Fault> {
        let mut zeros = 0u64;
        loop {
            let read = self.raw.fill(1);
            let ahead = read.map_err(|source| Fault::Read {
                at: self.decoded,
                source,
            })?;
            let run = ahead.iter().take_while(|&&byte| byte == 0).count();
            let ended = ahead.is_empty() || run < ahead.len();
            self.raw.consume(run);
            zeros += run as u64;
            if ended {
                break;
            }
        }
        if !zeros.is_multiple_of(4) {
            let what =
                format!("{zeros} zero bytes after a stream, where a multiple of 4 may stand");
            return Err(self.refusal(Compression::Xz, Refusal::Corrupt(what)));
        }
        Ok(())
    }

    fn place(&self) -> Place {
        Place {
            decoded: self.decoded,
            raw: self.raw.position(),
        }
    }

    fn failed(&self, source: std::io::Error) -> Fault {
        Fault::Read {
            at: self.decoded,
            source,
        }
    }

    fn refusal(&self, format: Compression, why: Refusal) -> Fault {
        let at = self.place();
        match why {
            Refusal::Corrupt(what) => Fault::Corrupt { format, at, what },
            Refusal::Window => Fault::Window { format, at },
        }
    }
}

impl Source for Decoder {
    /// 0 also says that every checksum was right.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        debug_assert!(!out.is_empty());
        if self.codec.is_none() {
            let read = self.raw.read(out).map_err(|source| self.failed(source))?;
            self.decoded += read as u64;
            return Ok(read);
        }
        loop {
            if !self.inside && !self.next_member()? {
                return Ok(0);
            }
            let Some(codec) = &mut self.codec else {
                return Ok(0);
            };
            let format = codec.format();
            // The decoder may hold output back: ask it before waiting for more input.
            let starved = self.raw.ahead().is_empty();
            let step = match codec.step(self.raw.ahead(), out) {
                Ok(step) => step,
                Err(why) => return Err(self.refusal(format, why)),
            };
            self.raw.consume(step.read);
            self.decoded += step.written as u64;
            self.inside = !step.ended;
            if step.written > 0 {
                return Ok(step.written);
            }
            if step.read == 0 && !step.ended {
                if !starved {
                    let stuck = Refusal::Corrupt("the decoder makes no progress".to_owned());
                    return Err(self.refusal(format, stuck));
                }
                let more = self.raw.fill(1).map_err(|source| Fault::Read {
                    at: self.decoded,
                    source,
                })?;
                if more.is_empty() {
                    return Err(Fault::Truncated {
                        format,
                        at: self.place(),
                    });
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.raw.is_idle()
    }
}
