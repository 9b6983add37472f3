//! How long a file may be, by its first bytes.
//!
//! Owns the look at both ends of a file before it is read or unpacked, so that
//! what is of another system, cut off, or gone on is refused for a few
//! kilobytes. Whether the rest is valid is each format's.

use crate::error::{Error, Result};
use crate::format::Format;
use crate::{
    bits_and_blooms, dcso, guava, npm, parquet, poppy, pybloom_live, pyprobables, rbloom,
    redisbloom, sbbf, spark, squid,
};

/// Bytes of each end that are looked at: more than any fixed header.
pub(crate) const END: usize = 4096;

/// The least and the largest length.
pub(crate) type Lengths = (u64, u64);

/// A length without end, of at least so many bytes.
pub(crate) const fn from(least: u64) -> Lengths {
    (least, u64::MAX)
}

/// This length and no other.
pub(crate) const fn exactly(len: u64) -> Lengths {
    (len, len)
}

/// What there is of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends<'a> {
    /// The first [`END`] bytes, or all.
    pub(crate) head: &'a [u8],
    /// The last ones.
    pub(crate) tail: &'a [u8],
    pub(crate) len: u64,
}

impl<'a> Ends<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        Self {
            head: &bytes[..bytes.len().min(END)],
            tail: &bytes[bytes.len().saturating_sub(END)..],
            len: bytes.len() as u64,
        }
    }

    /// Refuses a file that is not of the named format, or of any, by its ends.
    pub(crate) fn check(self, named: Option<Format>) -> Result<()> {
        if let Some(format) = named {
            if format == Format::Pyprobables && self.len > END as u64 && !self.may_be(format) {
                return Err(Error::field(
                    format,
                    "footer",
                    "another",
                    format!("one that accounts for the {} bytes of the file", self.len),
                ));
            }
            // What is wrong with a header says its own reader.
            let lengths = of(format, self.head);
            return lengths.map_or(Ok(()), |lengths| self.within(format, lengths));
        }
        let mut known = Format::ALL
            .into_iter()
            .filter(|format| !matches!(format, Format::Rbloom | Format::Classic));
        if known.any(|format| self.may_be(format)) {
            return Ok(());
        }
        // The header of one is there, and the length is another.
        for format in BY_STRENGTH {
            if let Some(lengths) = of(format, self.head)
                && (format != Format::Guava || self.is_near(lengths))
            {
                self.within(format, lengths)?;
            }
        }
        if self.head.starts_with(b"PAR1") {
            return Err(Error::field(
                Format::Parquet,
                "last bytes",
                self.tail[self.tail.len().saturating_sub(4)..].escape_ascii(),
                "PAR1: the file is cut off",
            ));
        }
        Err(self.unrecognised())
    }

    pub(crate) fn unrecognised(self) -> Error {
        Error::Unrecognised {
            got: self.head.iter().copied().take(8).collect(),
        }
    }

    fn may_be(self, format: Format) -> bool {
        let fits = |(least, most)| (least..=most).contains(&self.len);
        match format {
            Format::Pyprobables => pyprobables::may_be(self.tail, self.len),
            Format::Parquet if self.head.starts_with(b"PAR1") => {
                self.len >= 12 && self.tail.ends_with(b"PAR1")
            }
            format => of(format, self.head).is_some_and(fits),
        }
    }

    /// Within a factor of two: else two bytes of a header say too little.
    const fn is_near(self, (least, _): Lengths) -> bool {
        self.len >= least / 2 && self.len / 2 <= least
    }

    fn within(self, format: Format, (least, most): Lengths) -> Result<()> {
        if (least..=most).contains(&self.len) {
            return Ok(());
        }
        Err(Error::Length {
            format,
            expected: self.len.clamp(least, most),
            got: self.len,
        })
    }
}

/// Formats whose header can be told from other data, the surest first.
const BY_STRENGTH: [Format; 9] = [
    Format::Squid,
    Format::Dcso,
    Format::Poppy,
    Format::RedisBloom,
    Format::Spark,
    Format::BitsAndBlooms,
    Format::PybloomLive,
    Format::Parquet,
    Format::Guava,
];

/// How long a file that begins so may be; `None` if it is none of the format.
pub(crate) fn of(format: Format, head: &[u8]) -> Option<Lengths> {
    match format {
        Format::Parquet if parquet::begins(head) => Some(from(12)),
        Format::Parquet => sbbf::lengths(head),
        Format::Guava => guava::lengths(head),
        Format::Spark => spark::lengths(head),
        Format::Poppy if head.first() != Some(&1) => poppy::lengths(head),
        Format::Dcso | Format::Poppy => dcso::lengths(head),
        Format::BitsAndBlooms => bits_and_blooms::lengths(head),
        Format::RedisBloom => redisbloom::lengths(head),
        Format::Npm => npm::begins(head).then_some(from(2)),
        Format::PybloomLive => pybloom_live::lengths(head),
        Format::Squid => squid::lengths(head),
        Format::Rbloom => rbloom::lengths(head),
        // Told by the end, and by the program.
        Format::Pyprobables | Format::Classic => Some(from(0)),
    }
}
