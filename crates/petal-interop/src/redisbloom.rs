//! RedisBloom's chains of filters, as `BF.SCANDUMP` gives them and
//! `BF.LOADCHUNK` takes them.
//!
//! The commands exchange pairs of an iterator and bytes. In a file they stand
//! one after another as `{i64 iterator, u64 length, bytes}`, little-endian,
//! closed by iterator 0 with no bytes. The first pair, of iterator 1, is a
//! header; the others are pieces of the bit arrays of all links.
//!
//! Source: RedisBloom's `sb.c`, `bloom.c`, `contrib/MurmurHash2.c`.

mod loader;

pub use loader::Loader;

use std::io::Write;

use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, from};
use crate::filter::{
    Count, Counted, ForeignFilter, Parameters, check_encoding, check_positions, estimate, power,
    same_type, share,
};
use crate::format::{Encoding, Format};
use crate::hash::{murmur2_32, murmur2_64a};
use crate::key::ForeignKey;
use crate::sizing::{check_error, truncate};

const FORMAT: Format = Format::RedisBloom;

/// Sizes are not rounded up to a power of two.
const NO_ROUND: u32 = 1;
/// A size was given in bits.
const ENTRIES_ARE_BITS: u32 = 2;
/// Hashes have 64 bits.
const FORCE_64: u32 = 4;
/// The chain does not grow.
const NO_SCALING: u32 = 8;
const KNOWN_OPTIONS: u32 = NO_ROUND | ENTRIES_ARE_BITS | FORCE_64 | NO_SCALING;

/// The makers' own constants, digit for digit.
#[expect(clippy::approx_constant, reason = "files are checked against this one")]
const LN_2: f64 = 0.693_147_180_559_945;
const LN_2_SQUARED: f64 = 0.480_453_013_918_201;
/// Each link's error, as a part of the one before.
const TIGHTENING: f64 = 0.5;

/// Most that a server accepts as growth (`bf-expansion-factor`).
const MAX_GROWTH: u32 = 32_768;

const HEADER_LEN: u64 = 20;
const LINK_LEN: u64 = 53;

/// Longest piece of a bit array that the command gives at once.
pub const MAX_CHUNK: u64 = 16 << 20;

/// A chain of RedisBloom.
#[derive(Debug, Clone)]
pub struct RedisBloom {
    size: u64,
    options: u32,
    growth: u32,
    links: Vec<Link>,
    /// Longest piece to write.
    chunk: u64,
}

#[derive(Debug, Clone)]
struct Link {
    /// Keys that were inserted into this link.
    size: u64,
    error: f64,
    bits_per_entry: f64,
    hashes: u32,
    entries: u64,
    n2: u8,
    bits: BitArray,
}

impl Link {
    /// As `bloom_init` sizes it.
    fn new(entries: u64, error: f64, options: u32) -> Result<Self> {
        check_error(error)?;
        if entries == 0 {
            return Err(Error::parameter("n", 0, "use 1 or more"));
        }
        let bits_per_entry = -error.ln() / LN_2_SQUARED;
        let wanted = entries as f64 * bits_per_entry;
        if wanted >= 2f64.powi(63) {
            return Err(Error::parameter("n", entries, "use fewer: up to 2^63 bits"));
        }
        let (n2, bits, entries) = if options & NO_ROUND != 0 {
            (0, truncate(wanted), entries)
        } else {
            // The next power of two, and as many keys more as that has room for.
            let n2 = truncate(wanted).checked_ilog2().map_or(0, |log| log + 1);
            let bits = 1u64 << n2;
            let extra = bits.saturating_sub(truncate(wanted.ceil()));
            let more = truncate(extra as f64 / bits_per_entry);
            (
                u8::try_from(n2).unwrap_or(u8::MAX),
                bits,
                entries.saturating_add(more),
            )
        };
        Ok(Self {
            size: 0,
            error,
            bits_per_entry,
            hashes: u32::try_from(hashes(bits_per_entry)?).unwrap_or(u32::MAX),
            entries,
            n2,
            bits: BitArray::zeroed(bits.div_ceil(64).max(1) * 8, Order::Lsb)?,
        })
    }

    /// What positions are reduced by.
    const fn modulus(&self) -> u64 {
        match self.n2 {
            0 => self.bits.room(),
            n2 => 1 << n2,
        }
    }

    fn positions(&self, (a, b): (u64, u64)) -> impl Iterator<Item = u64> + use<> {
        let modulus = self.modulus();
        (0..u64::from(self.hashes)).map(move |i| a.wrapping_add(i.wrapping_mul(b)) % modulus)
    }

    fn contains(&self, hash: (u64, u64)) -> bool {
        self.positions(hash).all(|bit| self.bits.get(bit))
    }

    fn fill(&self) -> f64 {
        share(self.bits.ones(self.modulus()), self.modulus())
    }
}

/// [`RedisBloom::piece`]
fn piece_of(links: &[Link], mut offset: u64, most: usize) -> &[u8] {
    for link in links {
        let bytes = link.bits.as_bytes();
        match usize::try_from(offset) {
            Ok(start) if start < bytes.len() => {
                return &bytes[start..bytes.len().min(start.saturating_add(most))];
            }
            _ => offset -= bytes.len() as u64,
        }
    }
    &[]
}

/// Positions for so many bits an entry.
fn hashes(bits_per_entry: f64) -> Result<u64> {
    check_positions(FORMAT, truncate((LN_2 * bits_per_entry).ceil()))
}

impl RedisBloom {
    /// An empty chain as `BF.RESERVE key error capacity EXPANSION growth` makes it.
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there are no items or no growth,
    /// or the memory cannot be had.
    pub fn reserve(items: u64, error: f64, growth: u32) -> Result<Self> {
        if growth == 0 || growth > MAX_GROWTH {
            return Err(Error::parameter(
                "growth",
                growth,
                format!("use 1 to {MAX_GROWTH}, or a chain that does not scale"),
            ));
        }
        Self::new(items, error, NO_ROUND | FORCE_64, growth)
    }

    /// An empty chain as `BF.RESERVE key error capacity NONSCALING` makes it:
    /// one link, that takes no more than it was made for.
    ///
    /// # Errors
    /// As for [`Self::reserve`].
    pub fn nonscaling(items: u64, error: f64) -> Result<Self> {
        Self::new(items, error, NO_ROUND | FORCE_64 | NO_SCALING, 0)
    }

    /// An empty chain as the module made it before it kept sizes unrounded:
    /// bits are a power of two, and hashes have 32 bits, or 64.
    ///
    /// # Errors
    /// As for [`Self::reserve`].
    pub fn rounded(items: u64, error: f64, growth: u32, force64: bool) -> Result<Self> {
        Self::new(items, error, if force64 { FORCE_64 } else { 0 }, growth)
    }

    fn new(items: u64, error: f64, options: u32, growth: u32) -> Result<Self> {
        check_error(error)?;
        let first = if options & NO_SCALING == 0 {
            error * TIGHTENING
        } else {
            error
        };
        Ok(Self {
            size: 0,
            options,
            growth,
            links: vec![Link::new(items, first, options)?],
            chunk: MAX_CHUNK,
        })
    }

    /// Links in the chain.
    #[must_use]
    pub const fn links(&self) -> usize {
        self.links.len()
    }

    /// Longest piece of a bit array in the next writing, in bytes: 1 to
    /// [`MAX_CHUNK`], which is the default; else the nearest of the two.
    #[must_use]
    pub fn chunked(mut self, bytes: u64) -> Self {
        self.chunk = bytes.clamp(1, MAX_CHUNK);
        self
    }

    /// The pairs of iterator and bytes that `BF.SCANDUMP` gives one after
    /// another and `BF.LOADCHUNK` takes in that order, without the closing one.
    ///
    /// # Errors
    /// What `each` gives.
    pub fn chunks(&self, mut each: impl FnMut(i64, &[u8]) -> Result<()>) -> Result<()> {
        each(1, &self.header())?;
        let mut offset = 0;
        for link in &self.links {
            let chunk = usize::try_from(self.chunk).unwrap_or(usize::MAX);
            for piece in link.bits.as_bytes().chunks(chunk) {
                offset += piece.len();
                each(i64::try_from(offset + 1).unwrap_or(i64::MAX), piece)?;
            }
        }
        Ok(())
    }

    /// Bytes of the bit arrays from an offset on, links counted one after
    /// another: up to `most` of them, of one link alone. Empty at the end.
    #[must_use]
    pub fn piece(&self, offset: u64, most: usize) -> &[u8] {
        piece_of(&self.links, offset, most)
    }

    /// The bytes of the first pair, whose iterator is 1.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend(self.size.to_le_bytes());
        // A header of a file counts its links in 32 bits, and growth doubles them.
        let count = u32::try_from(self.links.len()).unwrap_or(u32::MAX);
        for word in [count, self.options, self.growth] {
            header.extend(word.to_le_bytes());
        }
        for link in &self.links {
            let bits = link.bits.room();
            for word in [
                bits / 8,
                bits,
                link.size,
                link.error.to_bits(),
                link.bits_per_entry.to_bits(),
            ] {
                header.extend(word.to_le_bytes());
            }
            header.extend(link.hashes.to_le_bytes());
            header.extend(link.entries.to_le_bytes());
            header.push(link.n2);
        }
        header
    }

    fn hash(&self, bytes: &[u8]) -> (u64, u64) {
        if self.options & FORCE_64 != 0 {
            let a = murmur2_64a(bytes, 0xc6a4_a793_5bd1_e995);
            (a, murmur2_64a(bytes, a))
        } else {
            let a = murmur2_32(bytes, 0x9747_b28c);
            (a.into(), murmur2_32(bytes, a).into())
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(FORMAT, bytes);
        let (iterator, len) = (cursor.u64_le()?, cursor.u64_le()?);
        if iterator != 1 {
            return Err(Error::field(FORMAT, "first iterator", iterator, "1"));
        }
        let mut loader = Loader::of_file(cursor.take(len)?, cursor.left())?;
        loop {
            let (iterator, len) = (cursor.u64_le()?, cursor.u64_le()?);
            let piece = cursor.take(len)?;
            if iterator == 0 {
                break;
            }
            loader.push(iterator, piece)?;
        }
        cursor.end()?;
        loader.finish()
    }

    /// Bytes of all bit arrays.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bits = self.links.iter().map(|link| link.bits.room());
        bits.fold(0, u64::saturating_add) / 8
    }

    /// Times as many keys in each link as in the one before; `None` if the chain
    /// does not grow.
    #[must_use]
    pub const fn growth(&self) -> Option<u32> {
        if self.options & (NO_SCALING | ENTRIES_ARE_BITS) != 0 || self.growth == 0 {
            return None;
        }
        Some(self.growth)
    }

    /// How many more keys fit before a link is added, or none is taken.
    #[must_use]
    pub fn room(&self) -> u64 {
        let room = |link: &Link| link.entries.saturating_sub(link.size);
        self.links.last().map_or(0, room)
    }

    /// Bytes that the next link will take: `None` if the chain does not grow.
    #[must_use]
    pub fn next_link_bytes(&self) -> Option<u64> {
        let (growth, last) = (self.growth()?, self.links.last()?);
        let bits_per_entry = -(last.error * TIGHTENING).ln() / LN_2_SQUARED;
        let bits = last.entries as f64 * f64::from(growth) * bits_per_entry;
        // Rounded to a power of two it may be twice as many.
        let rounded = if self.options & NO_ROUND != 0 { 1 } else { 2 };
        Some(
            truncate(bits / 8.0)
                .saturating_mul(rounded)
                .saturating_add(8),
        )
    }

    /// The chain with empty links, and the bytes of each. `left` bytes follow.
    fn decode_header(header: &[u8], left: u64) -> Result<(Self, Vec<u64>)> {
        let invalid = |name, got: &dyn std::fmt::Display, expected: &str| {
            Err(Error::field(FORMAT, name, got, expected))
        };
        let mut cursor = Cursor::new(FORMAT, header);
        let (size, count) = (cursor.u64_le()?, cursor.u32_le()?);
        let (options, growth) = (cursor.u32_le()?, cursor.u32_le()?);
        if count == 0 || u64::from(count) * LINK_LEN != cursor.left() {
            let fits = (cursor.left() / LINK_LEN).to_string();
            return invalid("number of links", &count, &fits);
        }
        if options & !KNOWN_OPTIONS != 0 {
            return invalid("options", &options, "no bits but 1, 2, 4 and 8");
        }
        // Each has a byte of bits at least, in a pair.
        if u64::from(count) * 17 > left {
            return invalid("number of links", &count, "as many as there are chunks");
        }
        let mut links = Vec::with_capacity(count as usize);
        let mut sizes = Vec::with_capacity(count as usize);
        if growth > MAX_GROWTH {
            return invalid("growth", &growth, "up to 32768, as the server accepts");
        }
        let (mut keys, mut total) = (0u64, 0u64);
        for _ in 0..count {
            let (bytes, bits) = (cursor.u64_le()?, cursor.u64_le()?);
            let (size, error) = (cursor.u64_le()?, cursor.f64_le()?);
            let (bits_per_entry, hashes_given) = (cursor.f64_le()?, cursor.u32_le()?);
            let (entries, n2) = (cursor.u64_le()?, cursor.u8()?);
            if bytes == 0 || bytes.checked_mul(8) != Some(bits) {
                return invalid("bits of a link", &bits, "8 times its bytes, not 0");
            }
            if !(error > 0.0 && error < 1.0) {
                return invalid("error of a link", &error, "between 0 and 1");
            }
            if n2 > 63 || (n2 > 0 && bits < 1 << n2) {
                return invalid("n2 of a link", &n2, "no more than its bits");
            }
            if u64::from(hashes_given) != hashes(bits_per_entry)? {
                return invalid(
                    "hashes of a link",
                    &hashes_given,
                    "as its bits an entry say",
                );
            }
            keys = keys.saturating_add(size);
            total = total.saturating_add(bytes);
            sizes.push(bytes);
            links.push(Link {
                size,
                error,
                bits_per_entry,
                hashes: hashes_given,
                entries,
                n2,
                bits: BitArray::of_file(Vec::new(), 0, 0, Order::Lsb),
            });
        }
        if keys != size {
            return invalid(
                "number of keys",
                &size,
                &format!("{keys}, that of all links"),
            );
        }
        if total > left {
            return invalid("bytes of all links", &total, &format!("at most {left}"));
        }
        let chain = Self {
            size,
            options,
            growth,
            links,
            chunk: MAX_CHUNK,
        };
        Ok((chain, sizes))
    }

    fn last(&mut self) -> &mut Link {
        let last = self.links.len() - 1;
        &mut self.links[last]
    }
}

/// How long a file with this head may be.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    let mut cursor = Cursor::new(FORMAT, head);
    let (iterator, len) = (cursor.u64_le().ok()?, cursor.u64_le().ok()?);
    let header = cursor.take(HEADER_LEN).ok()?;
    let count = u64::from(u32::from_le_bytes(header.get(8..12)?.try_into().ok()?));
    let valid = iterator == 1 && count > 0 && len == HEADER_LEN + count * LINK_LEN;
    valid.then(|| from(cursor.at() as u64 - HEADER_LEN + len))
}

/// Whether there is a header of the right length at the start.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    let mut cursor = Cursor::new(FORMAT, bytes);
    let mut header = || {
        let (iterator, len) = (cursor.u64_le().ok()?, cursor.u64_le().ok()?);
        let header = cursor.take(len).ok()?;
        let count = header.get(8..12)?.try_into().ok()?;
        let count = u64::from(u32::from_le_bytes(count));
        Some(iterator == 1 && count > 0 && len == HEADER_LEN + count * LINK_LEN)
    };
    header().unwrap_or(false)
}

impl ForeignFilter for RedisBloom {
    fn format(&self) -> Format {
        FORMAT
    }

    fn parameters(&self) -> Parameters {
        // The error of a growing chain: what its first link's was halved from.
        let first = self.links.first();
        let scaling = self.options & NO_SCALING == 0;
        let error = first.map(|link| link.error / if scaling { TIGHTENING } else { 1.0 });
        let entries = |link: &Link| link.entries;
        Parameters {
            bits: self.links.iter().map(|link| link.bits.room()).sum(),
            positions: self
                .links
                .iter()
                .map(|link| link.hashes.into())
                .max()
                .unwrap_or(0),
            items: Some(self.links.iter().map(entries).fold(0, u64::saturating_add)),
            error,
            details: vec![
                ("links", self.links.len().to_string()),
                ("options", self.options.to_string()),
                ("growth", self.growth.to_string()),
            ],
        }
    }

    fn contains(&self, key: ForeignKey<'_>) -> Result<bool> {
        let hash = self.hash(key.bytes(FORMAT)?);
        Ok(self.links.iter().rev().any(|link| link.contains(hash)))
    }

    fn insert(&mut self, key: ForeignKey<'_>) -> Result<bool> {
        let hash = self.hash(key.bytes(FORMAT)?);
        if self.links.iter().any(|link| link.contains(hash)) {
            return Ok(false);
        }
        let (options, growth) = (self.options, u64::from(self.growth));
        let last = self.last();
        if last.size >= last.entries {
            if options & NO_SCALING != 0 {
                return Err(Error::Full {
                    format: FORMAT,
                    capacity: last.entries,
                });
            }
            if options & ENTRIES_ARE_BITS != 0 || growth == 0 {
                return Err(Error::unsupported(
                    FORMAT,
                    "growing",
                    "the chain was made with a fixed number of bits: build a larger one",
                ));
            }
            let entries = last.entries.saturating_mul(growth);
            let next = Link::new(entries, last.error * TIGHTENING, options)?;
            self.links.push(next);
        }
        let last = self.last();
        for bit in last.positions(hash) {
            last.bits.set(bit);
        }
        last.size = last.size.saturating_add(1);
        self.size = self.size.saturating_add(1);
        Ok(true)
    }

    fn count(&self) -> Option<Count> {
        Some(Count {
            keys: self.size,
            counted: Counted::NewKeys,
        })
    }

    fn fill(&self) -> f64 {
        let ones = |link: &Link| link.bits.ones(link.modulus());
        let ones: u64 = self.links.iter().map(ones).sum();
        share(
            ones,
            self.links
                .iter()
                .map(Link::modulus)
                .fold(0, u64::saturating_add),
        )
    }

    fn error_now(&self) -> f64 {
        let missed = |link: &Link| 1.0 - power(link.fill(), link.hashes.into());
        1.0 - self.links.iter().map(missed).product::<f64>()
    }

    fn estimated_len(&self) -> Option<f64> {
        let keys = |link: &Link| estimate(link.fill(), link.modulus(), link.hashes.into());
        Some(self.links.iter().map(keys).sum())
    }

    fn union_with(&mut self, other: &dyn ForeignFilter) -> Result<()> {
        same_type(self, other)?;
        Err(Error::unsupported(
            FORMAT,
            "merge",
            "a chain says which of its links a key is in, and RedisBloom has no command for it; \
             load both, or build one from the lists",
        ))
    }

    fn write_as(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        check_encoding(FORMAT, self.encodings(), encoding)?;
        self.chunks(|iterator, bytes| {
            put(out, &iterator.to_le_bytes())?;
            put(out, &(bytes.len() as u64).to_le_bytes())?;
            put(out, bytes)
        })?;
        put(out, &[0; 16])
    }
}
