//! Spark's `org.apache.spark.util.sketch.BloomFilter`: `writeTo` and `readFrom`.
//!
//! Big-endian: version, k, in version 2 a seed, the number of words, the words.
//! Text is its UTF-8 (`putString`), bytes are `putBinary`, and Spark widens all
//! integers to 64 bits (`putLong`), so `i32` and `i64` are the same key.
//!
//! The filters of SQL's runtime joins hold `xxhash64(value)` as a long: such a
//! value has to be hashed by the caller.
//!
//! Source: Spark 4.3.0, `BloomFilterImpl`, `BloomFilterImplV2`.

use std::f64::consts::LN_2;
use std::io::Write;

use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, exactly};
use crate::filter::{Flat, Parameters, check_positions, same};
use crate::format::{Encoding, Format};
use crate::guava::linear_i32;
use crate::hash::{low32, spark_murmur3_32};
use crate::key::ForeignKey;
use crate::sizing::{check_error, ideal_bits, truncate};

const FORMAT: Format = Format::Spark;

/// Which of the two versions, and what it adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparkVersion {
    /// Version 1: no seed; positions stay below 2^31.
    V1,
    /// Version 2.
    V2 {
        /// What the hash starts from; Spark itself takes 0.
        seed: i32,
    },
}

/// A filter of Spark.
#[derive(Debug, Clone)]
pub struct Spark {
    version: SparkVersion,
    k: u64,
    bits: BitArray,
}

impl Spark {
    /// An empty filter as `BloomFilter.create(items, error)` makes it.
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there are no items, there would
    /// be too many positions or words, or the memory cannot be had.
    pub fn create(version: SparkVersion, items: u64, error: f64) -> Result<Self> {
        check_error(error)?;
        Self::with_bits(version, items, truncate(ideal_bits(items, error)))
    }

    /// An empty filter as `BloomFilter.create(items, bits)` makes it: with the
    /// number of positions that fits both.
    ///
    /// # Errors
    /// If there are no items or bits, there would be too many positions or
    /// words, or the memory cannot be had.
    pub fn with_bits(version: SparkVersion, items: u64, bits: u64) -> Result<Self> {
        if items == 0 || bits == 0 {
            return Err(Error::parameter(
                "n and m",
                format!("{items} and {bits}"),
                "use 1 or more of each",
            ));
        }
        // Java's Math.round: the nearest, a half up.
        let k = truncate((bits as f64 / items as f64 * LN_2 + 0.5).floor()).max(1);
        check_positions(FORMAT, k)?;
        let words = bits.div_ceil(64);
        if i32::try_from(words).is_err() {
            return Err(Error::parameter(
                "m",
                bits,
                "Spark has up to 2^31 - 1 words",
            ));
        }
        Ok(Self {
            version,
            k,
            bits: BitArray::zeroed(words * 8, Order::BigEndianWords)?,
        })
    }

    /// Version and seed.
    #[must_use]
    pub const fn version(&self) -> SparkVersion {
        self.version
    }

    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self> {
        let mut cursor = Cursor::new(FORMAT, &bytes);
        let (version, k) = (cursor.i32_be()?, cursor.i32_be()?);
        let version = match version {
            1 => SparkVersion::V1,
            2 => SparkVersion::V2 {
                seed: cursor.i32_be()?,
            },
            other => return Err(Error::field(FORMAT, "version", other, "1 or 2")),
        };
        let k = check_positions(FORMAT, u64::try_from(k).unwrap_or(0))?;
        let words = cursor.i32_be()?;
        if words <= 0 {
            return Err(Error::field(FORMAT, "number of words", words, "1 or more"));
        }
        let start = cursor.at();
        cursor.take(u64::from(words.unsigned_abs()) * 8)?;
        cursor.end()?;
        let end = cursor.at();
        Ok(Self {
            version,
            k,
            bits: BitArray::of_file(bytes, start, end, Order::BigEndianWords),
        })
    }
}

/// How long a file with this head is.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    let mut cursor = Cursor::new(FORMAT, head);
    let (version, k) = (cursor.i32_be().ok()?, cursor.i32_be().ok()?);
    if version == 2 {
        cursor.i32_be().ok()?;
    }
    let words = u64::try_from(cursor.i32_be().ok()?).ok()?;
    let k = u64::try_from(k).ok()?;
    let valid = (1..=2).contains(&version) && check_positions(FORMAT, k).is_ok() && words > 0;
    valid.then(|| exactly(cursor.at() as u64 + words * 8))
}

/// Whether the header is valid and accounts for the length.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    let mut cursor = Cursor::new(FORMAT, bytes);
    let mut header = || {
        let (version, k) = (cursor.i32_be().ok()?, cursor.i32_be().ok()?);
        if version == 2 {
            cursor.i32_be().ok()?;
        }
        let words = u64::try_from(cursor.i32_be().ok()?).ok()?;
        let valid = (1..=2).contains(&version) && k > 0 && words > 0;
        Some(valid && words * 8 == cursor.left())
    };
    header().unwrap_or(false)
}

impl Flat for Spark {
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
        let bytes = match key {
            ForeignKey::I32(value) => ForeignKey::I64(value.into()).plain(),
            ForeignKey::I64(_) | ForeignKey::Text(_) | ForeignKey::Bytes(_) => key.plain(),
            other => {
                return Err(Error::Key {
                    format: FORMAT,
                    got: other.type_name(),
                    expected: "text, bytes, or an integer",
                });
            }
        };
        let (version, m) = (self.version, Flat::m(self));
        let seed = match version {
            SparkVersion::V1 => 0,
            SparkVersion::V2 { seed } => seed,
        };
        let h1 = spark_murmur3_32(&bytes, seed.cast_unsigned());
        let h2 = spark_murmur3_32(&bytes, h1);
        Ok((1..=self.k).map(move |i| {
            match version {
                SparkVersion::V1 => linear_i32(h1, h2, low32(i)) % m,
                SparkVersion::V2 { .. } => {
                    let wide = |h: u32| i64::from(h.cast_signed());
                    // i is at most MAX_POSITIONS.
                    let steps = wide(h2).wrapping_mul(i.cast_signed());
                    let sum = wide(h1).wrapping_mul(i32::MAX.into()).wrapping_add(steps);
                    let index = if sum < 0 { !sum } else { sum };
                    index.cast_unsigned() % m
                }
            }
        }))
    }

    fn described(&self) -> Parameters {
        let details = match self.version {
            SparkVersion::V1 => vec![("version", "1".to_owned())],
            SparkVersion::V2 { seed } => {
                vec![("version", "2".to_owned()), ("seed", seed.to_string())]
            }
        };
        Parameters {
            bits: Flat::m(self),
            positions: self.k,
            details,
            ..Parameters::default()
        }
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        let name = |version| match version {
            SparkVersion::V1 => "version 1".to_owned(),
            SparkVersion::V2 { seed } => format!("version 2 with seed {seed}"),
        };
        same("version", name(self.version), name(other.version))
    }

    fn encode(&self, _: Encoding, out: &mut dyn Write) -> Result<()> {
        // Both are small: checked when the filter was made.
        let (k, words) = (low32(self.k), low32(self.bits.room() / 64));
        match self.version {
            SparkVersion::V1 => put(out, &1u32.to_be_bytes())?,
            SparkVersion::V2 { .. } => put(out, &2u32.to_be_bytes())?,
        }
        put(out, &k.to_be_bytes())?;
        if let SparkVersion::V2 { seed } = self.version {
            put(out, &seed.to_be_bytes())?;
        }
        put(out, &words.to_be_bytes())?;
        put(out, self.bits.as_bytes())
    }
}
