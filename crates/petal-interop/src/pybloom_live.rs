//! `pybloom_live` of Python, version 4: `BloomFilter.tofile` and
//! `ScalableBloomFilter.tofile`.
//!
//! A header of five little-endian words, then k slices of bits without a gap;
//! hash i owns slice i. Python's `str` is its UTF-8. Anything else is hashed as
//! the UTF-8 of `str(object)`: integers as decimal text, and bytes as their
//! *literal* (`b'…'`), which is what [`ForeignKey::Bytes`] is here.
//!
//! Releases before 4 hashed with MD5 where there is XXH3 now, under the same
//! header, to the best of our knowledge: [`crate::ReadOptions::old_pybloom`].
//!
//! Source: pybloom_live 4.0.0.

mod scalable;

use std::fmt::Write as _;
use std::io::Write;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};
use twox_hash::XxHash3_128;

use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, exactly};
use crate::filter::{Count, Counted, Flat, Parameters, check_positions, same};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;
use crate::sizing::{check_error, truncate};

pub use scalable::ScalablePybloomLive;
pub(crate) use scalable::recognise as recognise_scalable;

const FORMAT: Format = Format::PybloomLive;
const HEADER: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha512,
    Sha384,
    Sha256,
    Sha1,
    Xxh3,
    Md5,
}

impl Hash {
    /// The smallest that gives `bits` bits.
    const fn for_bits(bits: u64, old: bool) -> Self {
        match bits {
            385.. => Self::Sha512,
            257.. => Self::Sha384,
            161.. => Self::Sha256,
            129.. => Self::Sha1,
            _ if old => Self::Md5,
            _ => Self::Xxh3,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Sha512 => "sha512",
            Self::Sha384 => "sha384",
            Self::Sha256 => "sha256",
            Self::Sha1 => "sha1",
            Self::Xxh3 => "XXH3_128",
            Self::Md5 => "md5",
        }
    }

    fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
            Self::Sha384 => Sha384::digest(bytes).to_vec(),
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha1 => Sha1::digest(bytes).to_vec(),
            Self::Xxh3 => XxHash3_128::oneshot(bytes).to_be_bytes().to_vec(),
            Self::Md5 => Md5::digest(bytes).to_vec(),
        }
    }
}

/// A filter of pybloom_live.
#[derive(Debug, Clone)]
pub struct PybloomLive {
    error: f64,
    slices: u64,
    bits_per_slice: u64,
    capacity: u64,
    count: u64,
    hash: Hash,
    bits: BitArray,
}

impl PybloomLive {
    /// An empty filter as `BloomFilter(items, error)` makes it.
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there are no items, or the memory
    /// cannot be had.
    pub fn new(items: u64, error: f64) -> Result<Self> {
        Self::sized(items, error, false)
    }

    /// The same, perhaps with the hash of old releases.
    fn sized(items: u64, error: f64, old: bool) -> Result<Self> {
        check_error(error)?;
        if items == 0 {
            return Err(Error::parameter("n", 0, "use 1 or more"));
        }
        let slices = check_positions(FORMAT, truncate((1.0 / error).log2().ceil()))?;
        let squared = std::f64::consts::LN_2 * std::f64::consts::LN_2;
        let wanted = items as f64 * error.ln().abs() / (slices as f64 * squared);
        let bits_per_slice = truncate(wanted.ceil());
        let bytes = slices.saturating_mul(bits_per_slice).div_ceil(8);
        let bits = BitArray::zeroed(bytes, Order::Lsb)?;
        Ok(Self {
            error,
            slices,
            bits_per_slice,
            capacity: items,
            count: 0,
            hash: choose(slices, bits_per_slice, old),
            bits,
        })
    }

    pub(crate) fn decode(bytes: Vec<u8>, old: bool) -> Result<Self> {
        let mut cursor = Cursor::new(FORMAT, &bytes);
        let (error, slices) = (cursor.f64_le()?, cursor.u64_le()?);
        let (bits_per_slice, capacity) = (cursor.u64_le()?, cursor.u64_le()?);
        let count = cursor.u64_le()?;
        if !(error > 0.0 && error < 1.0) {
            return Err(Error::field(FORMAT, "error", error, "between 0 and 1"));
        }
        check_positions(FORMAT, slices)?;
        let Some(bits) = slices.checked_mul(bits_per_slice).filter(|&bits| bits > 0) else {
            return Err(Error::field(
                FORMAT,
                "bits per slice",
                bits_per_slice,
                "1 or more, and as many as the file has",
            ));
        };
        cursor.take(bits.div_ceil(8))?;
        cursor.end()?;
        let end = cursor.at();
        Ok(Self {
            error,
            slices,
            bits_per_slice,
            capacity,
            count,
            hash: choose(slices, bits_per_slice, old),
            bits: BitArray::of_file(bytes, HEADER, end, Order::Lsb),
        })
    }

    /// Sets the bits of a key that is known to be absent.
    fn set(&mut self, key: ForeignKey<'_>) -> Result<()> {
        for bit in Flat::positions(self, key)? {
            self.bits.set(bit);
        }
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// Bytes of the file.
    fn len(&self) -> u64 {
        HEADER as u64 + self.bits.room() / 8
    }
}

/// Bytes of a digest that make a position.
const fn chunk(bits_per_slice: u64) -> usize {
    if bits_per_slice >= 1 << 31 {
        8
    } else if bits_per_slice >= 1 << 15 {
        4
    } else {
        2
    }
}

const fn choose(slices: u64, bits_per_slice: u64, old: bool) -> Hash {
    Hash::for_bits(8 * slices * chunk(bits_per_slice) as u64, old)
}

/// How long a file with this head may be.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    plain_length(head)
        .map(exactly)
        .or_else(|| scalable::lengths(head))
}

/// How long a filter with this head is: one whose slices are as many as its
/// error takes, which hardly any other data say.
fn plain_length(head: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(FORMAT, head);
    let (error, slices) = (cursor.f64_le().ok()?, cursor.u64_le().ok()?);
    let bits_per_slice = cursor.u64_le().ok()?;
    let (capacity, count) = (cursor.u64_le().ok()?, cursor.u64_le().ok()?);
    let valid = error > 0.0
        && error < 1.0
        && check_positions(FORMAT, slices).is_ok()
        // Off by one where Python's logarithm rounds otherwise.
        && slices.abs_diff(truncate((1.0 / error).log2().ceil())) <= 1
        && capacity > 0
        && count <= capacity.saturating_add(1);
    let bits = slices
        .checked_mul(bits_per_slice)
        .filter(|&bits| bits > 0)?;
    valid.then(|| HEADER as u64 + bits.div_ceil(8))
}

/// Whether the header is valid and accounts for the length.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    plain_length(bytes) == Some(bytes.len() as u64)
}

/// The bytes that Python hashes.
fn key_bytes(key: ForeignKey<'_>) -> Result<Vec<u8>> {
    match key {
        ForeignKey::Text(text) => Ok(text.as_bytes().to_vec()),
        ForeignKey::Bytes(bytes) => Ok(literal(bytes).into_bytes()),
        ForeignKey::I32(value) => Ok(value.to_string().into_bytes()),
        ForeignKey::I64(value) => Ok(value.to_string().into_bytes()),
        other => Err(Error::Key {
            format: FORMAT,
            got: other.type_name(),
            expected: "text, bytes, or an integer",
        }),
    }
}

/// Python's `str(bytes)`.
fn literal(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') {
        '"'
    } else {
        '\''
    };
    let mut text = format!("b{quote}");
    for &byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            _ if char::from(byte) == quote => text.extend(['\\', quote]),
            b' '..=b'~' => text.push(byte.into()),
            // Writing to a string does not fail.
            _ => write!(text, "\\x{byte:02x}").unwrap_or(()),
        }
    }
    text.push(quote);
    text
}

impl Flat for PybloomLive {
    const FORMAT: Format = FORMAT;

    fn array(&self) -> &BitArray {
        &self.bits
    }

    fn array_mut(&mut self) -> &mut BitArray {
        &mut self.bits
    }

    fn m(&self) -> u64 {
        self.slices * self.bits_per_slice
    }

    fn k(&self) -> u64 {
        self.slices
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        let (hash, bits_per_slice) = (self.hash, self.bits_per_slice);
        let width = chunk(bits_per_slice);
        let key = key_bytes(key)?;
        // Digest number s is that of a salt of its own and the key.
        let digests = (0u32..).map(move |salt| {
            let mut salted = hash.digest(&salt.to_le_bytes());
            salted.extend_from_slice(&key);
            hash.digest(&salted)
        });
        let values = digests.flat_map(move |digest| {
            let value = |chunk: &[u8]| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            };
            digest.chunks_exact(width).map(value).collect::<Vec<_>>()
        });
        let slices = (0..self.slices).zip(values);
        Ok(slices.map(move |(slice, value)| slice * bits_per_slice + value % bits_per_slice))
    }

    fn described(&self) -> Parameters {
        Parameters {
            bits: Flat::m(self),
            positions: self.slices,
            items: Some(self.capacity),
            error: Some(self.error),
            details: vec![
                ("hash", self.hash.name().to_owned()),
                ("bits per slice", self.bits_per_slice.to_string()),
            ],
        }
    }

    fn counted(&self) -> Option<Count> {
        Some(Count {
            keys: self.count,
            counted: Counted::NewKeys,
        })
    }

    fn admit(&self) -> Result<()> {
        // One more than the capacity fits, in pybloom_live as well.
        if self.count > self.capacity {
            return Err(Error::Full {
                format: FORMAT,
                capacity: self.capacity,
            });
        }
        Ok(())
    }

    fn note(&mut self, changed: bool) {
        self.count = self.count.saturating_add(u64::from(changed));
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        same("capacity", self.capacity, other.capacity)?;
        same("error", self.error, other.error)?;
        same("hash", self.hash.name(), other.hash.name())
    }

    // As `union`, which starts from a new filter and counts nothing.
    fn join_counts(&mut self, _: &Self) {
        self.count = 0;
    }

    fn chance(&self) -> f64 {
        let per_slice = self.bits_per_slice;
        let ones = |slice| {
            let from = slice * per_slice;
            self.bits.ones_of(from..from + per_slice)
        };
        (0..self.slices)
            .map(|slice| crate::filter::share(ones(slice), per_slice))
            .product()
    }

    fn encode(&self, _: Encoding, out: &mut dyn Write) -> Result<()> {
        for word in [
            self.error.to_bits(),
            self.slices,
            self.bits_per_slice,
            self.capacity,
            self.count,
        ] {
            put(out, &word.to_le_bytes())?;
        }
        put(out, self.bits.as_bytes())
    }
}
