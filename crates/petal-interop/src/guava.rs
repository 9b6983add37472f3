//! Guava's `BloomFilter`: `writeTo` and `readFrom`.
//!
//! A byte for the strategy, a byte k, a big-endian count of words, the words
//! big-endian. The file says nothing of the funnel, that is, of what bytes a
//! key is: text is its UTF-8 here (`Funnels.stringFunnel(UTF_8)`), UTF-16 units
//! are two bytes each (`unencodedCharsFunnel`), integers 4 or 8, all
//! little-endian; bytes are as they are, which also serves funnels of one's
//! own.
//!
//! Source: Guava 31.1 and 33.6, `BloomFilter` and `BloomFilterStrategies`.

use std::f64::consts::LN_2;
use std::io::Write;

use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, exactly};
use crate::filter::{Flat, Parameters, same};
use crate::format::{Encoding, Format};
use crate::hash::{low32, murmur3_x64_128};
use crate::key::ForeignKey;
use crate::sizing::{check_error, ideal_bits, truncate};

const HEADER: usize = 6;

/// How Guava gets from a hash to positions. The number is the one in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuavaStrategy {
    /// `MURMUR128_MITZ_32`: of old versions; positions stay below 2^31.
    Mitz32 = 0,
    /// `MURMUR128_MITZ_64`: what `create` makes.
    Mitz64 = 1,
}

impl GuavaStrategy {
    const fn name(self) -> &'static str {
        match self {
            Self::Mitz32 => "MURMUR128_MITZ_32",
            Self::Mitz64 => "MURMUR128_MITZ_64",
        }
    }
}

/// A filter of Guava.
#[derive(Debug, Clone)]
pub struct Guava {
    strategy: GuavaStrategy,
    k: u8,
    bits: BitArray,
}

impl Guava {
    /// An empty filter as `BloomFilter.create(funnel, items, error)` makes it.
    ///
    /// # Errors
    /// Where `create` throws: if the error is not between 0 and 1, or so
    /// small or large that there would be more than 255 positions, no bit, or
    /// more than 2^31 - 1 words; or if the memory cannot be had.
    pub fn create(strategy: GuavaStrategy, items: u64, error: f64) -> Result<Self> {
        check_error(error)?;
        let items = items.max(1);
        let bits = truncate(ideal_bits(items, error));
        // Java's Math.round: the nearest, a half up.
        let k = truncate((bits as f64 / items as f64 * LN_2 + 0.5).floor()).max(1);
        let words = bits.div_ceil(64);
        let (Ok(k), Ok(words @ 1..)) = (u8::try_from(k), i32::try_from(words)) else {
            return Err(Error::parameter(
                "n and p",
                format!("{items} and {error}"),
                "Guava has 1 to 2^31 - 1 words and 1 to 255 positions",
            ));
        };
        Ok(Self {
            strategy,
            k,
            bits: BitArray::zeroed(u64::from(words.unsigned_abs()) * 8, Order::BigEndianWords)?,
        })
    }

    /// How it gets from a hash to positions.
    #[must_use]
    pub const fn strategy(&self) -> GuavaStrategy {
        self.strategy
    }

    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self> {
        let mut cursor = Cursor::new(Format::Guava, &bytes);
        let invalid =
            |name, got: i64, expected| Err(Error::field(Format::Guava, name, got, expected));
        let strategy = match cursor.u8()? {
            0 => GuavaStrategy::Mitz32,
            1 => GuavaStrategy::Mitz64,
            other => return invalid("strategy", other.into(), "0 or 1"),
        };
        let k = cursor.u8()?;
        if k == 0 {
            return invalid("positions (k)", 0, "1 to 255");
        }
        let words = cursor.i32_be()?;
        if words <= 0 {
            return invalid("number of words", words.into(), "1 to 2^31 - 1");
        }
        cursor.take(u64::from(words.unsigned_abs()) * 8)?;
        cursor.end()?;
        let end = cursor.at();
        Ok(Self {
            strategy,
            k,
            bits: BitArray::of_file(bytes, HEADER, end, Order::BigEndianWords),
        })
    }
}

/// How long a file with this head is.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    let &[strategy, k, a, b, c, d] = head.first_chunk::<HEADER>()?;
    let words = u64::from(u32::from_be_bytes([a, b, c, d]));
    let valid = strategy <= 1 && k > 0 && (1..=i32::MAX as u64).contains(&words);
    valid.then(|| exactly(HEADER as u64 + words * 8))
}

/// Whether the header is valid and accounts for the length.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    let Some((&[strategy, k, a, b, c, d], words)) = bytes.split_first_chunk::<HEADER>() else {
        return false;
    };
    let count = u32::from_be_bytes([a, b, c, d]);
    strategy <= 1 && k > 0 && count > 0 && u64::from(count) * 8 == words.len() as u64
}

impl Flat for Guava {
    const FORMAT: Format = Format::Guava;

    fn array(&self) -> &BitArray {
        &self.bits
    }

    fn array_mut(&mut self) -> &mut BitArray {
        &mut self.bits
    }

    fn m(&self) -> u64 {
        self.bits.room()
    }

    fn k(&self) -> u64 {
        self.k.into()
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        let (h1, h2) = murmur3_x64_128(&key.plain());
        let (strategy, k, m) = (self.strategy, u32::from(self.k), Flat::m(self));
        Ok((0..k).map(move |i| match strategy {
            GuavaStrategy::Mitz32 => linear_i32(low32(h1), low32(h1 >> 32), i + 1) % m,
            GuavaStrategy::Mitz64 => {
                let sum = h1.wrapping_add(u64::from(i).wrapping_mul(h2));
                (sum & (u64::MAX >> 1)) % m
            }
        }))
    }

    fn described(&self) -> Parameters {
        Parameters {
            bits: Flat::m(self),
            positions: self.k.into(),
            details: vec![("strategy", self.strategy.name().to_owned())],
            ..Parameters::default()
        }
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        same("strategy", self.strategy.name(), other.strategy.name())
    }

    fn encode(&self, _: Encoding, out: &mut dyn Write) -> Result<()> {
        // At most 2^31 - 1.
        let words = low32(self.bits.room() / 64);
        put(out, &[self.strategy as u8, self.k])?;
        put(out, &words.to_be_bytes())?;
        put(out, self.bits.as_bytes())
    }
}

/// `a + i b` in 32 bits, complemented if it is negative as a signed number.
pub(crate) const fn linear_i32(a: u32, b: u32, i: u32) -> u64 {
    let sum = a.wrapping_add(i.wrapping_mul(b));
    (if sum >> 31 == 1 { !sum } else { sum }) as u64
}
