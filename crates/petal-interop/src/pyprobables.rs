//! `pyprobables` of Python: `export` of its Bloom, counting and expanding
//! filters.
//!
//! The bits come first, a footer behind them. Neither m nor k is stored: they
//! are computed from the capacity and the error, which is an `f32`, so the
//! roundings are part of the format. `export_hex` is the same in hexadecimal
//! with a big-endian footer.
//!
//! A `str` is hashed by its code points, `bytes` by its bytes:
//! [`ForeignKey::Text`] and [`ForeignKey::Bytes`] differ unless they are ASCII.
//!
//! Source: pyprobables 0.7.0.

mod counting;
mod expanding;

use std::f64::consts::LN_2;
use std::io::Write;

use crate::bits::{BitArray, Order, put, reserve};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::filter::{Count, Counted, Flat, MAX_POSITIONS, Parameters, same};
use crate::format::{Encoding, Format};
use crate::hash::{FNV_OFFSET, fnv1a_64_from};
use crate::key::ForeignKey;
use crate::sizing::{check_error, truncate};

pub use counting::PyprobablesCounting;
pub use expanding::PyprobablesExpanding;

const FORMAT: Format = Format::Pyprobables;
const FOOTER: usize = 20;
/// pyprobables' own constant, digit for digit.
const LN_2_SQUARED: f64 = 0.480_453_013_918_2;

/// What it was made for, and what follows from that.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Shape {
    items: u64,
    error: f32,
    m: u64,
    k: u64,
}

impl Shape {
    /// `None` where pyprobables refuses, or there are too many positions.
    fn new(items: u64, error: f32) -> Option<Self> {
        if items == 0 || !(error > 0.0 && error < 1.0) {
            return None;
        }
        let n = items as f64;
        let m = truncate((-n * f64::from(error).ln() / LN_2_SQUARED).ceil());
        let k = truncate((LN_2 * m as f64 / n).round_ties_even());
        (m > 0 && (1..=MAX_POSITIONS).contains(&k)).then_some(Self { items, error, m, k })
    }

    /// From what a user asks for.
    fn asked(items: u64, error: f64) -> Result<Self> {
        check_error(error)?;
        // Kept in 32 bits by pyprobables as well.
        #[expect(clippy::cast_possible_truncation, reason = "the nearest is meant")]
        let rounded = error as f32;
        Self::new(items, rounded).ok_or_else(|| {
            Error::parameter(
                "n and p",
                format!("{items} and {error}"),
                "use 1 or more items, and an error that takes a position and is not 0 as an f32",
            )
        })
    }

    fn read(items: u64, error: f32) -> Result<Self> {
        Self::new(items, error).ok_or_else(|| {
            Error::field(
                FORMAT,
                "capacity and error",
                format!("{items} and {error}"),
                "1 or more, and between 0 and 1",
            )
        })
    }

    const fn bytes(self) -> u64 {
        self.m.div_ceil(8)
    }

    /// Below m, one for each hash.
    fn positions(self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        let units: Vec<u32> = match key {
            ForeignKey::Text(text) => text.chars().map(u32::from).collect(),
            ForeignKey::Bytes(bytes) => bytes.iter().copied().map(u32::from).collect(),
            other => {
                return Err(Error::Key {
                    format: FORMAT,
                    got: other.type_name(),
                    expected: "text or bytes",
                });
            }
        };
        let m = self.m;
        Ok((0..self.k).map(move |i| {
            let start = FNV_OFFSET.wrapping_add(31 * i);
            fnv1a_64_from(start, units.iter().copied()) % m
        }))
    }

    fn described(self, kind: &str) -> Parameters {
        Parameters {
            bits: self.m,
            positions: self.k,
            items: Some(self.items),
            error: Some(self.error.into()),
            details: vec![("kind", kind.to_owned())],
        }
    }

    fn check_union(self, other: Self) -> Result<()> {
        same("capacity", self.items, other.items)?;
        same("error", self.error, other.error)
    }
}

/// Capacity, insertions and error at the end of a file, or of its bytes
/// unpacked from hexadecimal.
fn footer(bytes: &[u8], big_endian: bool) -> Option<(u64, u64, f32)> {
    let mut footer = *bytes.last_chunk::<FOOTER>()?;
    if big_endian {
        footer[..8].reverse();
        footer[8..16].reverse();
        footer[16..].reverse();
    }
    let mut cursor = Cursor::new(FORMAT, &footer);
    let (items, added) = (cursor.u64_le().ok()?, cursor.u64_le().ok()?);
    Some((items, added, f32::from_bits(cursor.u32_le().ok()?)))
}

/// Which of the four files it is, by exact length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    Bloom,
    Hex,
    Counting,
    Expanding,
}

/// Whether a file may be one by its last bytes and its length.
pub(crate) fn may_be(tail: &[u8], len: u64) -> bool {
    variant(tail, len).is_some()
}

/// Whether the footer accounts for the length, and as what.
pub(crate) fn recognise(bytes: &[u8]) -> Option<Variant> {
    variant(bytes, bytes.len() as u64)
}

/// The same from the last bytes of so many.
fn variant(bytes: &[u8], len: u64) -> Option<Variant> {
    let fits = |bytes: &[u8], big_endian, factor: u64| {
        let (items, _, error) = footer(bytes, big_endian)?;
        let shape = Shape::new(items, error)?;
        let body = if factor == 1 {
            Some(shape.bytes())
        } else {
            shape.m.checked_mul(factor)
        };
        (body? == len - FOOTER as u64).then_some(())
    };
    if fits(bytes, false, 1).is_some() {
        return Some(Variant::Bloom);
    }
    if fits(bytes, false, 4).is_some() {
        return Some(Variant::Counting);
    }
    if expanding::fits(bytes, len) {
        return Some(Variant::Expanding);
    }
    let tail: &[u8; 2 * FOOTER] = bytes.trim_ascii_end().last_chunk()?;
    let (items, _, error) = footer(&unpack(tail).ok()?, true)?;
    let digits = 2 * (Shape::new(items, error)?.bytes() + FOOTER as u64);
    let blank = (bytes.len() - bytes.trim_ascii_end().len()) as u64;
    (digits == len - blank).then_some(Variant::Hex)
}

/// Bytes from hexadecimal digits.
fn unpack(digits: &[u8]) -> Result<Vec<u8>> {
    let invalid = || Error::field(FORMAT, "text", "no hexadecimal digits", "pairs of them");
    let (pairs, []) = digits.as_chunks::<2>() else {
        return Err(invalid());
    };
    let mut bytes = reserve(pairs.len() as u64)?;
    for pair in pairs {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
            return Err(invalid());
        };
        bytes.push(u8::try_from(16 * high + low).unwrap_or(0));
    }
    Ok(bytes)
}

/// A Bloom filter of pyprobables.
#[derive(Debug, Clone)]
pub struct Pyprobables {
    shape: Shape,
    added: u64,
    bits: BitArray,
    encoding: Encoding,
}

impl Pyprobables {
    /// An empty filter as `BloomFilter(items, error)` makes it.
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there are no items, or the memory
    /// cannot be had.
    pub fn new(items: u64, error: f64) -> Result<Self> {
        Self::of_shape(Shape::asked(items, error)?)
    }

    fn of_shape(shape: Shape) -> Result<Self> {
        Ok(Self {
            shape,
            added: 0,
            bits: BitArray::zeroed(shape.bytes(), Order::Lsb)?,
            encoding: Encoding::Plain,
        })
    }

    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self> {
        Self::of_bytes(bytes, Encoding::Plain)
    }

    pub(crate) fn decode_hex(bytes: &[u8]) -> Result<Self> {
        Self::of_bytes(unpack(bytes.trim_ascii_end())?, Encoding::Hex)
    }

    fn of_bytes(bytes: Vec<u8>, encoding: Encoding) -> Result<Self> {
        let (items, added, error) =
            footer(&bytes, encoding == Encoding::Hex).ok_or(Error::Length {
                format: FORMAT,
                expected: FOOTER as u64,
                got: bytes.len() as u64,
            })?;
        let shape = Shape::read(items, error)?;
        let mut cursor = Cursor::new(FORMAT, &bytes);
        cursor.take(shape.bytes())?;
        let end = cursor.at();
        cursor.take(FOOTER as u64)?;
        cursor.end()?;
        Ok(Self {
            shape,
            added,
            bits: BitArray::of_file(bytes, 0, end, Order::Lsb),
            encoding,
        })
    }
}

impl Flat for Pyprobables {
    const FORMAT: Format = FORMAT;
    const ENCODINGS: &'static [Encoding] = &[Encoding::Plain, Encoding::Hex];

    fn array(&self) -> &BitArray {
        &self.bits
    }

    fn array_mut(&mut self) -> &mut BitArray {
        &mut self.bits
    }

    fn m(&self) -> u64 {
        self.shape.m
    }

    fn k(&self) -> u64 {
        self.shape.k
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        self.shape.positions(key)
    }

    fn described(&self) -> Parameters {
        self.shape.described("bloom")
    }

    fn counted(&self) -> Option<Count> {
        Some(Count {
            keys: self.added,
            counted: Counted::Insertions,
        })
    }

    fn note(&mut self, _: bool) {
        self.added = self.added.saturating_add(1);
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        self.shape.check_union(other.shape)
    }

    // As `union`: an estimate takes the place of the count.
    fn join_counts(&mut self, _: &Self) {
        let estimate = crate::filter::estimate(self.share(), self.shape.m, self.shape.k);
        self.added = truncate(estimate);
    }

    fn encoding(&self) -> Encoding {
        self.encoding
    }

    fn encode(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        let (items, added) = (self.shape.items, self.added);
        let error = self.shape.error;
        if encoding == Encoding::Hex {
            put_hex(out, self.bits.as_bytes())?;
            put_hex(out, &items.to_be_bytes())?;
            put_hex(out, &added.to_be_bytes())?;
            return put_hex(out, &error.to_be_bytes());
        }
        put(out, self.bits.as_bytes())?;
        put(out, &items.to_le_bytes())?;
        put(out, &added.to_le_bytes())?;
        put(out, &error.to_le_bytes())
    }
}

fn put_hex(out: &mut dyn Write, bytes: &[u8]) -> Result<()> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for piece in bytes.chunks(4096) {
        let digits = |&byte: &u8| [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        let text: Vec<u8> = piece.iter().flat_map(digits).collect();
        put(out, &text)?;
    }
    Ok(())
}
