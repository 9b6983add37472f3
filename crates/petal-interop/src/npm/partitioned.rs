//! `PartitionedBloomFilter`: a set of bits for each hash.

use std::io::Write;

use serde::de::{DeserializeSeed, SeqAccess, Visitor};

use super::{BitSet, DEFAULT_SEED, FORMAT, Hashing, Head, put_set};
use crate::bits::{BitArray, Order, put, zeros};
use crate::error::{Error, Result};
use crate::filter::{Flat, Parameters, check_positions, same, share};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;
use crate::sizing::{check_error, truncate};

/// A partitioned filter of bloom-filters.
#[derive(Debug, Clone)]
pub struct NpmPartitioned {
    size: u64,
    load_factor: f64,
    capacity: Option<u64>,
    /// Bits of a set in use.
    slice: u64,
    hashing: Hashing,
    /// All sets, each rounded up to a byte.
    bits: BitArray,
}

impl NpmPartitioned {
    /// An empty filter as `PartitionedBloomFilter.create(items, error,
    /// load_factor)` makes it; the package's own load factor is 0.5.
    ///
    /// # Errors
    /// If error or load factor are not between 0 and 1, there are no items, or
    /// the memory cannot be had.
    pub fn create(items: u64, error: f64, load_factor: f64) -> Result<Self> {
        check_error(error)?;
        if !(load_factor > 0.0 && load_factor < 1.0) || items == 0 {
            return Err(Error::parameter(
                "n and load factor",
                format!("{items} and {load_factor}"),
                "use 1 or more, and a load between 0 and 1",
            ));
        }
        let cells = items as f64 * -error.ln() / (load_factor.ln() * (1.0 - load_factor).ln());
        let hashes = check_positions(FORMAT, truncate((error.ln() / load_factor.ln()).ceil()))?;
        let size = truncate(cells.ceil());
        let slice = size.div_ceil(hashes);
        Ok(Self {
            size,
            load_factor,
            capacity: Some(items),
            slice,
            hashing: Hashing::new(DEFAULT_SEED, hashes)?,
            bits: BitArray::zeroed(slice.div_ceil(8).saturating_mul(hashes), Order::Lsb)?,
        })
    }

    pub(super) fn decode(head: &Head<'_>) -> Result<Self> {
        let text = head.filter.get();
        let hashing = Hashing::new(head.seed, head.hashes)?;
        let (Some(load_factor), Some(slice)) = (head.load_factor, head.slice) else {
            return Err(Error::field(
                FORMAT,
                "_loadFactor and _m",
                "missing",
                "both",
            ));
        };
        if slice == 0 || !(load_factor > 0.0 && load_factor < 1.0) {
            return Err(Error::field(
                FORMAT,
                "_m and _loadFactor",
                format!("{slice} and {load_factor}"),
                "1 or more, and between 0 and 1",
            ));
        }
        let stride = slice.div_ceil(8);
        // Six bits a character.
        let len = stride
            .checked_mul(head.hashes)
            .filter(|&len| len <= text.len() as u64)
            .ok_or_else(|| Error::field(FORMAT, "_m", slice, "as many bits as the sets have"))?;
        let mut bytes = zeros(len)?;
        let sets = Sets {
            bytes: &mut bytes,
            stride: usize::try_from(stride).unwrap_or(usize::MAX),
        };
        sets.deserialize(&mut serde_json::Deserializer::from_str(text))
            .map_err(|error| Error::json(FORMAT, &error, "an array of bit sets in _filter"))?;
        let end = bytes.len();
        Ok(Self {
            size: head.size,
            load_factor,
            capacity: head.capacity,
            slice,
            hashing,
            bits: BitArray::of_file(bytes, 0, end, Order::Lsb),
        })
    }

    const fn stride(&self) -> u64 {
        self.slice.next_multiple_of(8)
    }

    /// The share of a set's bits that are set.
    fn load(&self, set: u64) -> f64 {
        let start = set * self.stride();
        share(self.bits.ones_of(start..start + self.slice), self.slice)
    }
}

/// Fills all sets from an array of them.
struct Sets<'a> {
    bytes: &'a mut [u8],
    stride: usize,
}

impl<'de> DeserializeSeed<'de> for Sets<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Sets<'_> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of bit sets")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        use serde::de::Error as _;
        let mut sets = self.bytes.chunks_exact_mut(self.stride);
        while let Some(set) = items.next_element::<BitSet<'de>>()? {
            let out = sets
                .next()
                .ok_or_else(|| A::Error::custom("too many sets"))?;
            set.unpack(out).map_err(A::Error::custom)?;
        }
        match sets.next() {
            None => Ok(()),
            Some(_) => Err(A::Error::custom("too few sets")),
        }
    }
}

impl Flat for NpmPartitioned {
    const FORMAT: Format = FORMAT;
    const ENCODINGS: &'static [Encoding] = &[Encoding::Json];

    fn array(&self) -> &BitArray {
        &self.bits
    }

    fn array_mut(&mut self) -> &mut BitArray {
        &mut self.bits
    }

    fn m(&self) -> u64 {
        self.slice * self.hashing.hashes
    }

    fn k(&self) -> u64 {
        self.hashing.hashes
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        let stride = self.stride();
        let places = self.hashing.positions(key, self.slice)?;
        Ok((0..)
            .zip(places)
            .map(move |(set, place): (u64, u64)| set * stride + place))
    }

    fn described(&self) -> Parameters {
        Parameters {
            bits: Flat::m(self),
            positions: self.hashing.hashes,
            items: self.capacity,
            error: None,
            details: vec![
                ("kind", "partitioned".to_owned()),
                ("seed", self.hashing.seed.to_string()),
                ("load factor", self.load_factor.to_string()),
            ],
        }
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        same("size", self.size, other.size)?;
        same("load factor", self.load_factor, other.load_factor)?;
        self.hashing.check_union(other.hashing)
    }

    fn share(&self) -> f64 {
        let hashes = self.hashing.hashes;
        (0..hashes).map(|set| self.load(set)).sum::<f64>() / hashes as f64
    }

    fn chance(&self) -> f64 {
        (0..self.hashing.hashes).map(|set| self.load(set)).product()
    }

    fn encode(&self, _: Encoding, out: &mut dyn Write) -> Result<()> {
        let (size, hashes, slice) = (self.size, self.hashing.hashes, self.slice);
        let load = self.load_factor;
        put(
            out,
            format!(
                "{{\"type\":\"PartitionedBloomFilter\",\"_size\":{size},\"_nbHashes\":{hashes},\
                 \"_loadFactor\":{load},\"_m\":{slice},\"_filter\":["
            )
            .as_bytes(),
        )?;
        // No set is empty.
        let stride = usize::try_from(self.stride() / 8).unwrap_or(usize::MAX);
        for (i, set) in self.bits.as_bytes().chunks(stride).enumerate() {
            if i > 0 {
                put(out, b",")?;
            }
            put_set(out, set)?;
        }
        put(out, b"]")?;
        if let Some(capacity) = self.capacity {
            put(out, format!(",\"_capacity\":{capacity}").as_bytes())?;
        }
        put(
            out,
            format!(",\"_seed\":{}}}", self.hashing.seed).as_bytes(),
        )
    }
}
