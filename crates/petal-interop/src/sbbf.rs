//! Parquet's split-block Bloom filter: the bits, and the header before them.
//!
//! A block is eight little-endian words of 32 bits; a key takes one block and
//! sets a bit in each of its words. The hash is XXH64 of the plain-encoded
//! value: text and bytes as they are, numbers as their little-endian bytes.
//!
//! Source: the Parquet format's `BloomFilter.md`; sizing as in parquet-java
//! 1.17.0.

use std::io::Write;

use twox_hash::XxHash64;

use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, exactly};
use crate::filter::{Flat, Parameters};
use crate::format::{Encoding, Format};
use crate::hash::low32;
use crate::key::ForeignKey;
use crate::sizing::{check_error, truncate};

const FORMAT: Format = Format::Parquet;
const BLOCK: u64 = 32;
/// Largest filter that writers make, in bytes.
const MAX_BYTES: u64 = 128 << 20;
/// What follows the size in a header: block algorithm, XXH64, no compression,
/// each a union of one empty struct, and the end, in Thrift's compact protocol.
const KINDS: [u8; 13] = [0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];
const SALT: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// A split-block filter of Parquet, with its header.
#[derive(Debug, Clone)]
pub struct Sbbf {
    bits: BitArray,
}

impl Sbbf {
    /// An empty filter as parquet-java sizes it for `items` distinct values: a
    /// power of two of bytes, from 32 to 128 MiB. (Its rounding of the number
    /// of bits has a slip, which is kept.)
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there are no items, or the memory
    /// cannot be had.
    pub fn new(items: u64, error: f64) -> Result<Self> {
        check_error(error)?;
        if items == 0 {
            return Err(Error::parameter("n", 0, "use 1 or more"));
        }
        let bits = -8.0 * items as f64 / (1.0 - error.powf(1.0 / 8.0)).ln();
        let bits = truncate(bits).min(8 * MAX_BYTES);
        let bits = ((bits + 255) & !256).max(8 * BLOCK);
        Self::with_bytes(bits.div_ceil(8).next_power_of_two().min(MAX_BYTES))
    }

    /// An empty filter of so many bytes.
    ///
    /// # Errors
    /// If they are no multiple of 32 from 32 to 128 MiB, or the memory cannot
    /// be had.
    pub fn with_bytes(bytes: u64) -> Result<Self> {
        if bytes == 0 || bytes > MAX_BYTES || !bytes.is_multiple_of(BLOCK) {
            return Err(Error::parameter(
                "bytes",
                bytes,
                format!("use a multiple of {BLOCK} up to {MAX_BYTES}"),
            ));
        }
        Ok(Self {
            bits: BitArray::zeroed(bytes, Order::Lsb)?,
        })
    }

    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self> {
        let (start, len) = header(&bytes)?;
        let mut cursor = Cursor::new(FORMAT, &bytes);
        cursor.take(start as u64 + len)?;
        cursor.end()?;
        let end = bytes.len();
        Ok(Self {
            bits: BitArray::of_file(bytes, start, end, Order::Lsb),
        })
    }

    const fn blocks(&self) -> u64 {
        self.bits.room() / (8 * BLOCK)
    }
}

/// Most bytes of a header.
pub(crate) const HEADER_MAX: usize = 1 + 5 + KINDS.len();

/// Length of the header, and of the bits behind it.
pub(crate) fn header(bytes: &[u8]) -> Result<(usize, u64)> {
    let mut cursor = Cursor::new(FORMAT, bytes);
    let invalid = |name, got: &dyn std::fmt::Display, expected| {
        Err(Error::field(FORMAT, name, got, expected))
    };
    // Field 1, a 32-bit integer.
    let field = cursor.u8()?;
    if field != 0x15 {
        return invalid("header", &format!("{field:#04x}"), "the field numBytes");
    }
    let mut coded = 0u64;
    for shift in (0..35).step_by(7) {
        let byte = cursor.u8()?;
        coded |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
        if shift == 28 {
            return invalid("numBytes", &"a longer number", "one of 32 bits");
        }
    }
    // Zigzag: odd numbers are negative.
    let len = coded / 2;
    if coded % 2 == 1 || len == 0 || !len.is_multiple_of(BLOCK) || len > i32::MAX as u64 {
        return invalid("numBytes", &coded, "a multiple of 32");
    }
    if cursor.take(KINDS.len() as u64)? != KINDS {
        return invalid(
            "algorithm, hash and compression",
            &"another",
            "BLOCK, XXHASH and UNCOMPRESSED",
        );
    }
    Ok((cursor.at(), len))
}

/// How long a file with this head is.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    let (start, len) = header(head).ok()?;
    Some(exactly(start as u64 + len))
}

/// Whether the header is valid and accounts for the length.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    header(bytes).is_ok_and(|(start, len)| start as u64 + len == bytes.len() as u64)
}

impl Flat for Sbbf {
    const FORMAT: Format = FORMAT;

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
        8
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        let hash = XxHash64::oneshot(0, &key.plain());
        // Both factors are below 2^32.
        let block = ((hash >> 32) * self.blocks()) >> 32;
        let low = low32(hash);
        Ok((0u64..).zip(SALT).map(move |(word, salt)| {
            let bit = low.wrapping_mul(salt) >> 27;
            block * 8 * BLOCK + word * 32 + u64::from(bit)
        }))
    }

    fn described(&self) -> Parameters {
        Parameters {
            bits: Flat::m(self),
            positions: 8,
            details: vec![("blocks", self.blocks().to_string())],
            ..Parameters::default()
        }
    }

    fn check_union(&self, _: &Self) -> Result<()> {
        Ok(())
    }

    // The mean over blocks of the chance to hit a set bit in each word.
    fn chance(&self) -> f64 {
        let words = self.bits.as_bytes().as_chunks::<4>().0.chunks(8);
        let of_block = |words: &[[u8; 4]]| {
            let fill = |word: &[u8; 4]| f64::from(u32::from_le_bytes(*word).count_ones()) / 32.0;
            words.iter().map(fill).product::<f64>()
        };
        words.map(of_block).sum::<f64>() / self.blocks() as f64
    }

    fn encode(&self, _: Encoding, out: &mut dyn Write) -> Result<()> {
        put(out, &[0x15])?;
        let mut coded = 2 * (self.bits.room() / 8);
        while coded >= 0x80 {
            put(out, &[coded.to_le_bytes()[0] | 0x80])?;
            coded >>= 7;
        }
        put(out, &[coded.to_le_bytes()[0]])?;
        put(out, &KINDS)?;
        put(out, self.bits.as_bytes())
    }
}
