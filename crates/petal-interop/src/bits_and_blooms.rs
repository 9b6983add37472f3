//! `github.com/bits-and-blooms/bloom` of Go, version 3: `WriteTo` and JSON.
//!
//! Three big-endian words (m, k, the length of the bit set), then the words of
//! the bit set, big-endian. `MarshalBinary` and gob wrap the same bytes. In
//! JSON the bit set, with its length before it, is base64url.
//!
//! Source: `bloom.go` and `murmur.go` of the package, and its `bitset`.

use std::f64::consts::LN_2;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use base64::write::EncoderWriter;
use serde::Deserialize;

use crate::bits::{BitArray, Order, put, zeros};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, exactly, from};
use crate::filter::{Flat, Parameters, check_positions};
use crate::format::{Encoding, Format};
use crate::hash::murmur3_x64_128;
use crate::key::ForeignKey;
use crate::sizing::{check_error, ideal_bits, truncate};

const FORMAT: Format = Format::BitsAndBlooms;
const HEADER: usize = 24;

/// A filter of `bits-and-blooms/bloom`.
#[derive(Debug, Clone)]
pub struct BitsAndBlooms {
    m: u64,
    k: u64,
    /// Length of the bit set: m, or more in files of old versions.
    length: u64,
    bits: BitArray,
    encoding: Encoding,
}

impl BitsAndBlooms {
    /// An empty filter as `NewWithEstimates` makes it.
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there are no items, or the memory
    /// cannot be had.
    pub fn with_estimates(items: u64, error: f64) -> Result<Self> {
        check_error(error)?;
        if items == 0 {
            return Err(Error::parameter("n", 0, "use 1 or more"));
        }
        let m = truncate(ideal_bits(items, error).ceil());
        let k = truncate((LN_2 * m as f64 / items as f64).ceil());
        Self::new(m, k)
    }

    /// An empty filter as `New(m, k)` makes it: at least one of each.
    ///
    /// # Errors
    /// If there are too many positions, or the memory cannot be had.
    pub fn new(m: u64, k: u64) -> Result<Self> {
        let (m, k) = (m.max(1), k.max(1));
        check_positions(FORMAT, k)?;
        let bytes = m.div_ceil(64).saturating_mul(8);
        Ok(Self {
            m,
            k,
            length: m,
            bits: BitArray::zeroed(bytes, Order::BigEndianWords)?,
            encoding: Encoding::Plain,
        })
    }

    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self> {
        if is_json(&bytes) {
            return Self::decode_json(&bytes);
        }
        let mut cursor = Cursor::new(FORMAT, &bytes);
        let (m, k, length) = (cursor.u64_be()?, cursor.u64_be()?, cursor.u64_be()?);
        cursor.take(length.div_ceil(64) * 8)?;
        cursor.end()?;
        let end = cursor.at();
        let bits = BitArray::of_file(bytes, HEADER, end, Order::BigEndianWords);
        Self::of_parts(m, k, length, bits, Encoding::Plain)
    }

    fn decode_json(bytes: &[u8]) -> Result<Self> {
        let json: Json<'_> = serde_json::from_slice(bytes)
            .map_err(|error| Error::json(FORMAT, &error, "an object with m, k and b"))?;
        let text = json.b.trim_end_matches('=');
        let mut set = zeros(text.len() as u64 / 4 * 3 + 3)?;
        let len = URL_SAFE_NO_PAD
            .decode_slice(text, &mut set)
            .map_err(|_| Error::field(FORMAT, "b", "other text", "the bit set in base64url"))?;
        set.truncate(len);
        let mut cursor = Cursor::new(FORMAT, &set);
        let length = cursor.u64_be()?;
        cursor.take(length.div_ceil(64) * 8)?;
        cursor.end()?;
        let (start, end) = (8, cursor.at());
        let bits = BitArray::of_file(set, start, end, Order::BigEndianWords);
        Self::of_parts(json.m, json.k, length, bits, Encoding::Json)
    }

    fn of_parts(m: u64, k: u64, length: u64, bits: BitArray, encoding: Encoding) -> Result<Self> {
        check_positions(FORMAT, k)?;
        if m == 0 || m > length {
            return Err(Error::field(
                FORMAT,
                "bits (m)",
                m,
                format!("1 to the {length} of the bit set"),
            ));
        }
        Ok(Self {
            m,
            k,
            length,
            bits,
            encoding,
        })
    }

    /// The four hashes that all positions come from.
    pub(crate) fn base_hashes(bytes: &[u8]) -> [u64; 4] {
        let (a, b) = murmur3_x64_128(bytes);
        let mut longer = Vec::with_capacity(bytes.len() + 1);
        longer.extend_from_slice(bytes);
        longer.push(1);
        let (c, d) = murmur3_x64_128(&longer);
        [a, b, c, d]
    }
}

/// Position `i` before it is reduced.
const fn location(hashes: [u64; 4], i: u64) -> u64 {
    let odd = i % 2;
    // Both indices are below 4.
    let step = hashes[2 + (((i + odd) % 4) / 2) as usize];
    hashes[odd as usize].wrapping_add(i.wrapping_mul(step))
}

#[derive(Deserialize)]
struct Json<'a> {
    m: u64,
    k: u64,
    #[serde(borrow)]
    b: &'a str,
}

fn is_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"{")
}

/// How long a file with this head may be.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    if is_json(head) {
        return Some(from(2));
    }
    let mut cursor = Cursor::new(FORMAT, head);
    let (m, k) = (cursor.u64_be().ok()?, cursor.u64_be().ok()?);
    let length = cursor.u64_be().ok()?;
    let valid = check_positions(FORMAT, k).is_ok() && (1..=length).contains(&m);
    valid.then(|| exactly(HEADER as u64 + length.div_ceil(64) * 8))
}

/// Whether the header is valid and accounts for the length, or the JSON has
/// the three names.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    if is_json(bytes) {
        return serde_json::from_slice::<Json<'_>>(bytes).is_ok();
    }
    let mut cursor = Cursor::new(FORMAT, bytes);
    let (Ok(m), Ok(k), Ok(length)) = (cursor.u64_be(), cursor.u64_be(), cursor.u64_be()) else {
        return false;
    };
    check_positions(FORMAT, k).is_ok()
        && (1..=length).contains(&m)
        && length.div_ceil(64) * 8 == cursor.left()
}

impl Flat for BitsAndBlooms {
    const FORMAT: Format = FORMAT;
    const ENCODINGS: &'static [Encoding] = &[Encoding::Plain, Encoding::Json];

    fn array(&self) -> &BitArray {
        &self.bits
    }

    fn array_mut(&mut self) -> &mut BitArray {
        &mut self.bits
    }

    fn m(&self) -> u64 {
        self.m
    }

    fn k(&self) -> u64 {
        self.k
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        let hashes = Self::base_hashes(key.bytes(FORMAT)?);
        let m = self.m;
        Ok((0..self.k).map(move |i| location(hashes, i) % m))
    }

    fn described(&self) -> Parameters {
        Parameters {
            bits: self.m,
            positions: self.k,
            ..Parameters::default()
        }
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        crate::filter::same("length of the bit set", self.length, other.length)
    }

    fn encoding(&self) -> Encoding {
        self.encoding
    }

    fn encode(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        if encoding == Encoding::Json {
            put(
                out,
                format!("{{\"m\":{},\"k\":{},\"b\":\"", self.m, self.k).as_bytes(),
            )?;
            let mut text = EncoderWriter::new(&mut *out, &URL_SAFE);
            put(&mut text, &self.length.to_be_bytes())?;
            put(&mut text, self.bits.as_bytes())?;
            text.finish()
                .map_err(|error| Error::io("write", None, error))?;
            drop(text);
            return put(out, b"\"}");
        }
        for word in [self.m, self.k, self.length] {
            put(out, &word.to_be_bytes())?;
        }
        put(out, self.bits.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_those_of_the_package() {
        let table = include_str!("../tests/vectors/foreign/bits-and-blooms/hash_vectors.tsv");
        let mut rows = 0;
        for row in table.lines().skip(1) {
            let (item, locations) = row.split_once('\t').unwrap();
            let item: Vec<u8> = (0..item.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&item[at..at + 2], 16).unwrap())
                .collect();
            let hashes = BitsAndBlooms::base_hashes(&item);
            let ours: Vec<_> = (0..8).map(|i| location(hashes, i).to_string()).collect();
            assert_eq!(format!("[{}]", ours.join(" ")), locations);
            rows += 1;
        }
        assert!(rows >= 3);
        let _ = URL_SAFE.encode([0]);
    }
}
