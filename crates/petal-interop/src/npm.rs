//! `bloom-filters` of npm: `saveAsJSON` of its classic, partitioned and
//! counting filters.
//!
//! The bits are base64 of bytes, or, in exports of old versions, an array of 0
//! and 1. A key is text, hashed as UTF-8.
//!
//! Source: bloom-filters 3.0.4.

mod counting;
mod partitioned;

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use serde::Deserialize;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde_json::value::RawValue;
use twox_hash::XxHash64;

use crate::bits::{BitArray, Order, put, zeros};
use crate::error::{Error, Result};
use crate::extent::END;
use crate::filter::{Flat, ForeignFilter, Parameters, check_positions, same};
use crate::format::{Encoding, Format};
use crate::hash::low32;
use crate::key::ForeignKey;
use crate::sizing::{check_error, ideal_bits, truncate};

pub use counting::NpmCounting;
pub use partitioned::NpmPartitioned;

const FORMAT: Format = Format::Npm;
/// What the package starts its hashes from.
const DEFAULT_SEED: i64 = 78_187_493_520;
/// Characters of a wrong value that an error shows.
const SHOWN: usize = 40;
const WHOLE: &str = "an integer of 0 or more";

/// The fields as they stand there: whether each is what it should be is found
/// out one by one, so that an error names it.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<&'a RawValue>,
    #[serde(rename = "_size", borrow)]
    size: Option<&'a RawValue>,
    #[serde(rename = "_nbHashes", borrow)]
    hashes: Option<&'a RawValue>,
    #[serde(rename = "_filter", borrow)]
    filter: Option<&'a RawValue>,
    #[serde(rename = "_seed", borrow)]
    seed: Option<&'a RawValue>,
    #[serde(rename = "_loadFactor", borrow)]
    load_factor: Option<&'a RawValue>,
    #[serde(rename = "_m", borrow)]
    slice: Option<&'a RawValue>,
    #[serde(rename = "_capacity", borrow)]
    capacity: Option<&'a RawValue>,
    #[serde(rename = "_length", borrow)]
    length: Option<&'a RawValue>,
}

/// Everything but the bits.
struct Head<'a> {
    kind: &'a str,
    size: u64,
    hashes: u64,
    filter: &'a RawValue,
    seed: i64,
    load_factor: Option<f64>,
    slice: Option<u64>,
    capacity: Option<u64>,
    length: Option<i64>,
}

/// A field that need not be there.
fn optional<'a, T: Deserialize<'a>>(
    value: Option<&'a RawValue>,
    name: &'static str,
    expected: &'static str,
) -> Result<Option<T>> {
    let Some(value) = value else {
        return Ok(None);
    };
    serde_json::from_str(value.get()).map(Some).map_err(|_| {
        let text = value.get();
        let shown: String = text.chars().take(SHOWN).collect();
        let more = if shown.len() < text.len() { "..." } else { "" };
        Error::field(FORMAT, name, format!("{shown}{more}"), expected)
    })
}

fn required<'a, T: Deserialize<'a>>(
    value: Option<&'a RawValue>,
    name: &'static str,
    expected: &'static str,
) -> Result<T> {
    optional(value, name, expected)?.ok_or_else(|| Error::field(FORMAT, name, "missing", expected))
}

/// A set of bits in JSON.
#[derive(Deserialize)]
struct BitSet<'a> {
    size: u64,
    #[serde(borrow)]
    content: &'a str,
}

impl BitSet<'_> {
    /// Decodes it into `out`, whose length it has.
    fn unpack(&self, out: &mut [u8]) -> Result<()> {
        let len = out.len();
        let invalid = |got: String| {
            Error::field(
                FORMAT,
                "bit set",
                got,
                format!("{} bits in base64", 8 * len),
            )
        };
        if self.size.div_ceil(8) != len as u64 {
            return Err(invalid(format!("{} bits", self.size)));
        }
        match STANDARD.decode_slice(self.content, out) {
            Ok(decoded) if decoded == len => Ok(()),
            Ok(decoded) => Err(invalid(format!("{decoded} bytes"))),
            Err(_) => Err(invalid("other text".to_owned())),
        }
    }
}

/// What the bits come from.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Hashing {
    seed: i64,
    hashes: u64,
}

impl Hashing {
    fn new(seed: i64, hashes: u64) -> Result<Self> {
        check_positions(FORMAT, hashes)?;
        // What a number of JavaScript holds exactly.
        if seed.unsigned_abs() >= 1 << 53 {
            return Err(Error::field(FORMAT, "_seed", seed, "an integer below 2^53"));
        }
        Ok(Self { seed, hashes })
    }

    /// One position below `size` for each hash.
    fn positions(
        self,
        key: ForeignKey<'_>,
        size: u64,
    ) -> Result<impl Iterator<Item = u64> + use<>> {
        let bytes = key.bytes(FORMAT)?;
        // Seed and hash are cut to 32 bits.
        let hash = |plus: i64| {
            let seed = low32((self.seed + plus).cast_unsigned());
            u64::from(low32(XxHash64::oneshot(seed.into(), bytes)))
        };
        let (a, b) = (hash(1), hash(2));
        Ok((0..self.hashes).map(move |i| {
            // The quotient is exact: three numbers in a row.
            let cubic = i * (i * i).saturating_sub(1) / 6;
            (a + i * b + cubic) % size
        }))
    }

    fn check_union(self, other: Self) -> Result<()> {
        same("number of hashes", self.hashes, other.hashes)?;
        same("seed", self.seed, other.seed)
    }
}

fn parse(bytes: &[u8]) -> Result<Head<'_>> {
    let fields: Fields<'_> = serde_json::from_slice(bytes)
        .map_err(|error| Error::json(FORMAT, &error, "an exported filter of bloom-filters"))?;
    Ok(Head {
        kind: required(fields.kind, "type", "the name of a filter")?,
        size: required(fields.size, "_size", WHOLE)?,
        hashes: required(fields.hashes, "_nbHashes", WHOLE)?,
        filter: fields
            .filter
            .ok_or_else(|| Error::field(FORMAT, "_filter", "missing", "a bit set, or an array"))?,
        seed: optional(fields.seed, "_seed", "an integer")?.unwrap_or(DEFAULT_SEED),
        load_factor: optional(fields.load_factor, "_loadFactor", "a number")?,
        slice: optional(fields.slice, "_m", WHOLE)?,
        capacity: optional(fields.capacity, "_capacity", WHOLE)?,
        length: optional(fields.length, "_length", "an integer")?,
    })
}

/// Whether it begins as JSON.
pub(crate) fn begins(head: &[u8]) -> bool {
    head.trim_ascii_start().starts_with(b"{")
}

/// Whether it begins as JSON and has a name that only these filters have, so
/// that a damaged one is known as well.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    const NAMES: [&[u8]; 2] = [b"\"_nbHashes\"", b"BloomFilter\""];
    let head = &bytes[..bytes.len().min(END)];
    begins(bytes)
        && NAMES
            .iter()
            .any(|name| head.windows(name.len()).any(|window| window == *name))
}

/// Whichever of the three filters it is.
pub(crate) fn decode(bytes: &[u8]) -> Result<Box<dyn ForeignFilter>> {
    let head = parse(bytes)?;
    if head.size == 0 {
        return Err(Error::field(FORMAT, "_size", 0, "1 or more"));
    }
    Ok(match head.kind {
        "BloomFilter" => Box::new(Npm::decode(&head)?),
        "PartitionedBloomFilter" => Box::new(NpmPartitioned::decode(&head)?),
        "CountingBloomFilter" => Box::new(NpmCounting::decode(&head)?),
        other => {
            return Err(Error::field(
                FORMAT,
                "type",
                other,
                "BloomFilter, PartitionedBloomFilter or CountingBloomFilter",
            ));
        }
    })
}

/// A classic filter of bloom-filters.
#[derive(Debug, Clone)]
pub struct Npm {
    size: u64,
    hashing: Hashing,
    bits: BitArray,
}

/// m and k as the package computes them.
fn optimal(items: u64, error: f64) -> Result<(u64, u64)> {
    check_error(error)?;
    let size = truncate(ideal_bits(items, error).ceil());
    let hashes = truncate((size as f64 / items as f64 * std::f64::consts::LN_2).ceil());
    if size == 0 || hashes == 0 {
        return Err(Error::parameter("n", items, "use 1 or more"));
    }
    Ok((size, check_positions(FORMAT, hashes)?))
}

impl Npm {
    /// An empty filter as `BloomFilter.create(items, error)` makes it.
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there are no items, or the memory
    /// cannot be had.
    pub fn create(items: u64, error: f64) -> Result<Self> {
        let (size, hashes) = optimal(items, error)?;
        Ok(Self {
            size,
            hashing: Hashing::new(DEFAULT_SEED, hashes)?,
            bits: BitArray::zeroed(size.div_ceil(8), Order::Lsb)?,
        })
    }

    /// The same with another seed: an integer of less than 2^53.
    ///
    /// # Errors
    /// If the seed is larger.
    pub fn with_seed(mut self, seed: i64) -> Result<Self> {
        self.hashing = Hashing::new(seed, self.hashing.hashes)?;
        Ok(self)
    }

    fn decode(head: &Head<'_>) -> Result<Self> {
        let text = head.filter.get();
        let len = head.size.div_ceil(8);
        // Six bits a character, or a character a bit.
        if len > text.len() as u64 {
            return Err(Error::field(
                FORMAT,
                "_size",
                head.size,
                "as many bits as _filter has",
            ));
        }
        let hashing = Hashing::new(head.seed, head.hashes)?;
        let mut bytes = zeros(len)?;
        let end = bytes.len();
        if text.starts_with('[') {
            let mut bits = BitArray::of_file(bytes, 0, end, Order::Lsb);
            fill(
                &mut serde_json::Deserializer::from_str(text),
                &mut bits,
                head.size,
            )?;
            return Ok(Self {
                size: head.size,
                hashing,
                bits,
            });
        }
        let set: BitSet<'_> = serde_json::from_str(text).map_err(|error| {
            Error::json(FORMAT, &error, "a bit set of size and content in _filter")
        })?;
        set.unpack(&mut bytes)?;
        Ok(Self {
            size: head.size,
            hashing,
            bits: BitArray::of_file(bytes, 0, end, Order::Lsb),
        })
    }
}

/// Sets the bits that an array of 0 and 1 has, which must be `size` long.
fn fill<'de, D>(from: D, bits: &mut BitArray, size: u64) -> Result<()>
where
    D: serde::Deserializer<'de>,
    D::Error: std::fmt::Display,
{
    struct Bits<'a>(&'a mut BitArray);

    impl<'de> DeserializeSeed<'de> for Bits<'_> {
        type Value = u64;
        fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<u64, D::Error> {
            from.deserialize_seq(self)
        }
    }

    impl<'de> Visitor<'de> for Bits<'_> {
        type Value = u64;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an array of 0 and 1")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<u64, A::Error> {
            let mut len = 0;
            while let Some(bit) = items.next_element::<u8>()? {
                if bit != 0 {
                    self.0.set(len);
                }
                len += 1;
            }
            Ok(len)
        }
    }

    let wrong = |got: String| Error::field(FORMAT, "_filter", got, format!("{size} of 0 and 1"));
    match Bits(bits).deserialize(from) {
        Ok(len) if len == size || len == size.next_multiple_of(8) => Ok(()),
        Ok(len) => Err(wrong(format!("{len} elements"))),
        Err(_) => Err(wrong("an array with something else".to_owned())),
    }
}

/// Writes bytes as the package writes a bit set.
fn put_set(out: &mut dyn Write, bytes: &[u8]) -> Result<()> {
    let size = 8 * bytes.len();
    put(out, format!("{{\"size\":{size},\"content\":\"").as_bytes())?;
    let mut text = EncoderWriter::new(&mut *out, &STANDARD);
    put(&mut text, bytes)?;
    text.finish()
        .map_err(|error| Error::io("write", None, error))?;
    drop(text);
    put(out, b"\"}")
}

impl Flat for Npm {
    const FORMAT: Format = FORMAT;
    const ENCODINGS: &'static [Encoding] = &[Encoding::Json];

    fn array(&self) -> &BitArray {
        &self.bits
    }

    fn array_mut(&mut self) -> &mut BitArray {
        &mut self.bits
    }

    fn m(&self) -> u64 {
        self.size
    }

    fn k(&self) -> u64 {
        self.hashing.hashes
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        self.hashing.positions(key, self.size)
    }

    fn described(&self) -> Parameters {
        Parameters {
            bits: self.size,
            positions: self.hashing.hashes,
            details: vec![
                ("kind", "classic".to_owned()),
                ("seed", self.hashing.seed.to_string()),
            ],
            ..Parameters::default()
        }
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        self.hashing.check_union(other.hashing)
    }

    fn encode(&self, _: Encoding, out: &mut dyn Write) -> Result<()> {
        let (size, hashes) = (self.size, self.hashing.hashes);
        put(
            out,
            format!(
                "{{\"type\":\"BloomFilter\",\"_size\":{size},\"_nbHashes\":{hashes},\"_filter\":"
            )
            .as_bytes(),
        )?;
        put_set(out, self.bits.as_bytes())?;
        put(
            out,
            format!(",\"_seed\":{}}}", self.hashing.seed).as_bytes(),
        )
    }
}
