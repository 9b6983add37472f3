//! `rbloom` of Python: `save` and `save_bytes`.
//!
//! A little-endian word k, then the bits to the end. Which hash fills it is the
//! user's choice and nowhere in the file: it has to be named. Text is its
//! UTF-8; a hash that pickles objects cannot be asked from outside of Python.
//!
//! Source: rbloom 1.5.4.

use std::f64::consts::LN_2;
use std::fmt;
use std::io::Write;
use std::str::FromStr;

use md5::Md5;
use sha2::{Digest, Sha256};
use twox_hash::{XxHash3_128, XxHash64};

use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, from};
use crate::filter::{Flat, Parameters, check_positions, same};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;
use crate::sizing::{check_error, ideal_bits, truncate};

const FORMAT: Format = Format::Rbloom;
const HEADER: usize = 8;
const FACTOR: u128 = 47_026_247_687_942_121_848_144_207_491_837_418_733;

/// A hash that users give to rbloom, as 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RbloomHash {
    /// The first 16 bytes of SHA-256, big-endian: `int.from_bytes(…, "big",
    /// signed=True)`.
    Sha256,
    /// MD5, big-endian in the same way.
    Md5,
    /// XXH64 under seed 0, a number below 2^64.
    Xxh64,
    /// XXH3 of 128 bits under seed 0, reinterpreted as signed.
    Xxh3,
}

impl RbloomHash {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sha256, Self::Md5, Self::Xxh64, Self::Xxh3];

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Md5 => "md5",
            Self::Xxh64 => "xxh64",
            Self::Xxh3 => "xxh3-128",
        }
    }

    fn hash(self, bytes: &[u8]) -> u128 {
        match self {
            Self::Sha256 => big_endian(&Sha256::digest(bytes)),
            Self::Md5 => big_endian(&Md5::digest(bytes)),
            Self::Xxh64 => XxHash64::oneshot(0, bytes).into(),
            Self::Xxh3 => XxHash3_128::oneshot(bytes),
        }
    }
}

/// The first 16 bytes as a number.
fn big_endian(digest: &[u8]) -> u128 {
    digest
        .first_chunk()
        .map_or(0, |bytes| u128::from_be_bytes(*bytes))
}

impl fmt::Display for RbloomHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RbloomHash {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|hash| hash.name() == name)
            .ok_or_else(|| {
                let names = Self::ALL.map(Self::name).join(", ");
                Error::parameter("hash", name, format!("use one of {names}"))
            })
    }
}

/// A filter of rbloom.
#[derive(Debug, Clone)]
pub struct Rbloom {
    hash: RbloomHash,
    k: u64,
    bits: BitArray,
}

impl Rbloom {
    /// An empty filter as `Bloom(items, error, hash)` makes it.
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there are no items, there would be
    /// no bit or position, or the memory cannot be had.
    pub fn new(hash: RbloomHash, items: u64, error: f64) -> Result<Self> {
        check_error(error)?;
        let bytes = truncate(ideal_bits(items, error)).div_ceil(8);
        let k = truncate(bytes.saturating_mul(8) as f64 / items as f64 * LN_2);
        if bytes == 0 || k == 0 {
            return Err(Error::parameter(
                "n and p",
                format!("{items} and {error}"),
                "use 1 or more items, and an error that takes a position",
            ));
        }
        Ok(Self {
            hash,
            k: check_positions(FORMAT, k)?,
            bits: BitArray::zeroed(bytes, Order::Lsb)?,
        })
    }

    pub(crate) fn decode(bytes: Vec<u8>, hash: RbloomHash) -> Result<Self> {
        let mut cursor = Cursor::new(FORMAT, &bytes);
        let k = check_positions(FORMAT, cursor.u64_le()?)?;
        if cursor.left() == 0 {
            return Err(Error::field(FORMAT, "bits (m)", 0, "8 or more"));
        }
        let end = bytes.len();
        Ok(Self {
            hash,
            k,
            bits: BitArray::of_file(bytes, HEADER, end, Order::Lsb),
        })
    }
}

/// How long a file with this head may be: the bits end where it ends.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    let k = Cursor::new(FORMAT, head).u64_le().ok()?;
    check_positions(FORMAT, k).ok()?;
    Some(from(HEADER as u64 + 1))
}

impl Flat for Rbloom {
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
        self.k
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        let mut state = self.hash.hash(key.bytes(FORMAT)?);
        let m = Flat::m(self);
        Ok((0..self.k).map(move |_| {
            state = state.wrapping_mul(FACTOR).wrapping_add(1);
            crate::hash::low64(state >> 32) % m
        }))
    }

    fn described(&self) -> Parameters {
        Parameters {
            bits: Flat::m(self),
            positions: self.k,
            details: vec![("hash (named by the user)", self.hash.to_string())],
            ..Parameters::default()
        }
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        same("hash", self.hash, other.hash)
    }

    fn encode(&self, _: Encoding, out: &mut dyn Write) -> Result<()> {
        put(out, &self.k.to_le_bytes())?;
        put(out, self.bits.as_bytes())
    }
}
