//! The format of DCSO's `bloom`, `flor` (Python) and version 1 of `poppy`.
//!
//! Six little-endian words of header, the bits, then bytes that the user has
//! attached. Keys are bytes. Lines are the caller's: DCSO's command drops a
//! carriage return before the line feed.
//!
//! The hash is FNV-1 of 64 bits, then a multiplicative generator whose product
//! wraps at 2^64 *before* it is reduced: not what was meant, but the format.
//!
//! Source: the Go package `github.com/DCSO/bloom`, `flor`, and the crate
//! `poppy-filters` 0.2.1.

use std::f64::consts::LN_2;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, from};
use crate::filter::{Count, Counted, Flat, Parameters, check_positions, same};
use crate::format::{Encoding, Format};
use crate::hash::fnv1_64;
use crate::key::ForeignKey;
use crate::sizing::{check_error, ideal_bits, truncate};

const FORMAT: Format = Format::Dcso;
const HEADER: usize = 48;
const MODULUS: u64 = 18_446_744_073_709_551_557;
const FACTOR: u64 = 18_446_744_073_709_550_147;

/// Most attached bytes of a compressed file: how many are to come is not
/// known before they are there.
pub const MAX_COMPRESSED_DATA: u64 = 64 << 20;

/// A filter of DCSO's `bloom`, of `flor`, or of `poppy` version 1.
#[derive(Debug, Clone)]
pub struct Dcso {
    flags: u64,
    items: u64,
    error: f64,
    k: u64,
    m: u64,
    count: u64,
    bits: BitArray,
    encoding: Encoding,
}

impl Dcso {
    /// An empty filter as all three programs make it.
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there are no items or too many
    /// positions, or the memory cannot be had.
    pub fn new(items: u64, error: f64) -> Result<Self> {
        check_error(error)?;
        if items == 0 {
            return Err(Error::parameter("n", 0, "use 1 or more"));
        }
        let m = truncate(ideal_bits(items, error));
        let k = truncate((LN_2 * m as f64 / items as f64).ceil());
        if m == 0 {
            return Err(Error::parameter(
                "p",
                error,
                "use an error that takes a bit",
            ));
        }
        check_positions(FORMAT, k)?;
        let bytes = m.div_ceil(64).saturating_mul(8);
        Ok(Self {
            flags: 1,
            items,
            error,
            k,
            m,
            count: 0,
            bits: BitArray::zeroed(bytes, Order::Lsb)?,
            encoding: Encoding::Plain,
        })
    }

    /// The bytes that the user has attached.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.bits.behind()
    }

    /// Attaches bytes in place of those that were attached.
    pub fn set_data(&mut self, data: &[u8]) {
        self.bits.set_behind(data);
    }

    /// Sets [`Encoding::Gzip`] or [`Encoding::Plain`] for the next writing in
    /// the filter's own encoding.
    #[must_use]
    pub const fn compressed(mut self, yes: bool) -> Self {
        self.encoding = encoding(yes);
        self
    }

    pub(crate) fn decode(bytes: Vec<u8>, compressed: bool) -> Result<Self> {
        Cursor::new(FORMAT, &bytes).take(HEADER as u64)?;
        let mut cursor = Cursor::new(FORMAT, &bytes);
        let flags = cursor.u64_le()?;
        let (items, error) = (cursor.u64_le()?, cursor.f64_le()?);
        let (k, m, count) = (cursor.u64_le()?, cursor.u64_le()?, cursor.u64_le()?);
        // The second byte is poppy's level of optimisation.
        if flags & !0xff00 != 1 {
            return Err(Error::field(FORMAT, "flags", format!("{flags:#x}"), "1"));
        }
        if !(error > 0.0 && error <= 1.0) {
            return Err(Error::field(FORMAT, "p", error, "more than 0, at most 1"));
        }
        // An error of 1 makes a filter without bits, that finds everything.
        if (m, k) != (0, 0) {
            check_positions(FORMAT, k)?;
            if m == 0 {
                return Err(Error::field(FORMAT, "bits (m)", m, "1 or more"));
            }
        }
        // Up to 2^61 bytes.
        cursor.take(m.div_ceil(64) * 8)?;
        let (start, end) = (HEADER, cursor.at());
        Ok(Self {
            flags,
            items,
            error,
            k,
            m,
            count,
            bits: BitArray::of_file(bytes, start, end, Order::Lsb),
            encoding: encoding(compressed),
        })
    }
}

const fn encoding(compressed: bool) -> Encoding {
    if compressed {
        Encoding::Gzip
    } else {
        Encoding::Plain
    }
}

/// Whether the header is valid and the bits are there. Attached bytes leave
/// the length open.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    bytes
        .get(..8)
        .is_some_and(|flags| flags[0] == 1 && flags[2..].iter().all(|&b| b == 0))
        && longest(bytes).is_some_and(|longest| {
            bytes.len() as u64 >= longest.saturating_sub(MAX_COMPRESSED_DATA)
        })
}

/// How long a file with this head may be: what is attached ends where it ends.
/// A head that is itself cut off is known by what there is of it.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    if head.len() < HEADER {
        let mut cursor = Cursor::new(FORMAT, head);
        let (flags, items) = (cursor.u64_le().ok()?, cursor.u64_le().ok()?);
        let error = cursor.f64_le().ok()?;
        let valid = flags & !0xff00 == 1 && items > 0 && error > 0.0 && error <= 1.0;
        return valid.then_some(from(HEADER as u64));
    }
    longest(head).map(|longest| from(longest.saturating_sub(MAX_COMPRESSED_DATA)))
}

/// The most bytes that a file with this head may have, if it is one and is
/// compressed.
pub(crate) fn longest(head: &[u8]) -> Option<u64> {
    let mut cursor = Cursor::new(FORMAT, head);
    let flags = cursor.u64_le().ok()?;
    cursor.take(8).ok()?;
    let error = cursor.f64_le().ok()?;
    let (k, m) = (cursor.u64_le().ok()?, cursor.u64_le().ok()?);
    cursor.take(8).ok()?;
    let valid = flags & !0xff00 == 1
        && error > 0.0
        && error <= 1.0
        && ((m, k) == (0, 0) || (m > 0 && check_positions(FORMAT, k).is_ok()));
    valid.then(|| HEADER as u64 + m.div_ceil(64) * 8 + MAX_COMPRESSED_DATA)
}

impl Flat for Dcso {
    const FORMAT: Format = FORMAT;
    const ENCODINGS: &'static [Encoding] = &[Encoding::Plain, Encoding::Gzip];

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
        let m = self.m;
        let mut hash = fnv1_64(key.bytes(FORMAT)?) % MODULUS;
        Ok((0..self.k).map(move |_| {
            hash = hash.wrapping_mul(FACTOR) % MODULUS;
            hash % m
        }))
    }

    fn described(&self) -> Parameters {
        let mut details = vec![("attached bytes", self.data().len().to_string())];
        if self.flags != 1 {
            details.push(("flags", format!("{:#x}", self.flags)));
        }
        Parameters {
            bits: self.m,
            positions: self.k,
            items: Some(self.items),
            error: Some(self.error),
            details,
        }
    }

    fn counted(&self) -> Option<Count> {
        Some(Count {
            keys: self.count,
            counted: Counted::NewKeys,
        })
    }

    fn note(&mut self, changed: bool) {
        self.count = self.count.saturating_add(u64::from(changed));
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        same("capacity (n)", self.items, other.items)?;
        same("error (p)", self.error, other.error)
    }

    // As `bloom join`: keys of both count twice.
    fn join_counts(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
    }

    fn encoding(&self) -> Encoding {
        self.encoding
    }

    fn encode(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        if encoding == Encoding::Gzip {
            let mut out = GzEncoder::new(out, Compression::default());
            self.encode(Encoding::Plain, &mut out)?;
            return out
                .finish()
                .map(drop)
                .map_err(|error| Error::io("write", None, error));
        }
        let error = self.error.to_bits();
        for word in [self.flags, self.items, error, self.k, self.m, self.count] {
            put(out, &word.to_le_bytes())?;
        }
        put(out, self.bits.as_bytes())?;
        put(out, self.data())
    }
}
