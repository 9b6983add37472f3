//! Version 2 of `poppy` (crate `poppy-filters`): buckets of 4 KiB, and perhaps
//! an index before them. Version 1 is [`crate::Dcso`]'s format.
//!
//! Keys are bytes. A key of up to 8 bytes is not hashed but taken as a number,
//! so `a` and `a\0` are one key. Keys are inserted into filters that poppy
//! made; new ones are poppy's to make.
//!
//! Source: poppy-filters 0.2.1. Its hash is an early wyhash, which is what the
//! crate `wyhash` 0.5.0 computes.

use std::io::Write;

use wyhash::wyhash;

use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, from};
use crate::filter::{
    Count, Counted, ForeignFilter, Parameters, check_encoding, check_positions, power, same,
    same_type, share,
};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;

const FORMAT: Format = Format::Poppy;
const SEED: u64 = 0x706f_7070_7953_3d42;
const BUCKET_BITS: u64 = 1 << 15;
const BUCKET: u64 = BUCKET_BITS / 8;
const HEADER: usize = 48;
const LEVELS: [&str; 4] = ["none", "space", "speed", "best"];

/// A filter of poppy, version 2.
#[derive(Debug, Clone)]
pub struct Poppy {
    /// Level of optimisation.
    level: u8,
    capacity: u64,
    error: f64,
    k: u64,
    count: u64,
    cache_bits: u64,
    cache: BitArray,
    buckets: BitArray,
}

/// What a key looks at.
struct Place {
    /// A bit of the cache, to be reduced.
    cache: u64,
    bucket: u64,
    /// Two hashes that walk through the bucket.
    hashes: (u64, u64),
}

impl Poppy {
    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self> {
        let mut cursor = Cursor::new(FORMAT, &bytes);
        let (version, level) = (cursor.u8()?, cursor.u8()?);
        if version != 2 {
            return Err(Error::field(FORMAT, "version", version, "1 or 2"));
        }
        if usize::from(level) >= LEVELS.len() || cursor.take(6)? != [0; 6] {
            return Err(Error::field(
                FORMAT,
                "flags",
                level,
                "a level from 0 to 3, then zeros",
            ));
        }
        let (capacity, error) = (cursor.u64_le()?, cursor.f64_le()?);
        if !(error > 0.0 && error < 1.0) {
            return Err(Error::field(FORMAT, "p", error, "between 0 and 1"));
        }
        let (k, count) = (check_positions(FORMAT, cursor.u64_le()?)?, cursor.u64_le()?);
        let cache_bits = cursor.u64_le()?;
        let cache = cursor.take(cache_bits.div_ceil(8))?.to_vec();
        let buckets = cursor.u64_le()?;
        if buckets == 0 {
            return Err(Error::field(FORMAT, "number of buckets", 0, "1 or more"));
        }
        let start = cursor.at();
        cursor.take(buckets.saturating_mul(BUCKET))?;
        let end = cursor.at();
        let len = cache.len();
        Ok(Self {
            level,
            capacity,
            error,
            k,
            count,
            cache_bits,
            cache: BitArray::of_file(cache, 0, len, Order::Lsb),
            buckets: BitArray::of_file(bytes, start, end, Order::Lsb),
        })
    }

    /// The bytes that the user has attached.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.buckets.behind()
    }

    const fn bucket_count(&self) -> u64 {
        self.buckets.room() / BUCKET_BITS
    }

    fn place(&self, bytes: &[u8]) -> Place {
        let first = if bytes.len() <= 8 {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        } else {
            wyhash(bytes, SEED)
        };
        let mut mixed = first;
        mixed ^= mixed << 12;
        mixed ^= mixed >> 25;
        mixed ^= mixed << 27;
        mixed = mixed.wrapping_mul(2_685_821_657_736_338_717);
        Place {
            cache: mixed,
            bucket: mixed % self.bucket_count(),
            hashes: (first, wyhash(&first.to_be_bytes(), SEED)),
        }
    }

    /// Bits of the buckets.
    fn positions(&self, place: &Place) -> impl Iterator<Item = u64> + use<> {
        let start = place.bucket * BUCKET_BITS;
        let (mut hash, mut step) = place.hashes;
        (0..self.k).map(move |i| {
            if i > 0 {
                hash = hash.wrapping_add(step);
                step = step.wrapping_add(i);
            }
            start + hash % BUCKET_BITS
        })
    }

    /// The bit of the cache, if there is a cache.
    fn cached(&self, place: &Place) -> Option<u64> {
        // As poppy's: a mask, though the room need not be a power of two.
        let mask = self.cache.room().checked_sub(1)?;
        Some(place.cache & mask)
    }

    fn has(&self, place: &Place) -> bool {
        self.cached(place).is_none_or(|bit| self.cache.get(bit))
            && self.positions(place).all(|bit| self.buckets.get(bit))
    }
}

/// How long a file with this head may be: what is attached ends where it ends.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    let mut cursor = Cursor::new(FORMAT, head);
    let start = cursor.take(8).ok()?;
    cursor.take(8).ok()?;
    let error = cursor.f64_le().ok()?;
    let k = cursor.u64_le().ok()?;
    cursor.take(8).ok()?;
    let cache = cursor.u64_le().ok()?.div_ceil(8);
    let valid = start[0] == 2
        && start[1] < 4
        && start[2..] == [0; 6]
        && error > 0.0
        && error < 1.0
        && check_positions(FORMAT, k).is_ok();
    // The number of buckets stands behind the index.
    valid.then(|| from(HEADER as u64 + 8 + BUCKET + cache))
}

/// Whether the header is valid and cache and buckets are there.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    let mut cursor = Cursor::new(FORMAT, bytes);
    let mut header = || {
        let start = cursor.take(8).ok()?;
        let valid = start[0] == 2 && start[1] < 4 && start[2..] == [0; 6];
        cursor.take(8).ok()?;
        let error = cursor.f64_le().ok()?;
        let k = cursor.u64_le().ok()?;
        cursor.take(8).ok()?;
        let cache_bits = cursor.u64_le().ok()?;
        cursor.take(cache_bits.div_ceil(8)).ok()?;
        let buckets = cursor.u64_le().ok()?;
        cursor.take(buckets.checked_mul(BUCKET)?).ok()?;
        Some(
            valid
                && error > 0.0
                && error < 1.0
                && check_positions(FORMAT, k).is_ok()
                && buckets > 0,
        )
    };
    bytes.len() > HEADER && header().unwrap_or(false)
}

impl ForeignFilter for Poppy {
    fn format(&self) -> Format {
        FORMAT
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            bits: self.buckets.room(),
            positions: self.k,
            items: Some(self.capacity),
            error: Some(self.error),
            details: vec![
                ("version", "2".to_owned()),
                ("optimised for", LEVELS[usize::from(self.level)].to_owned()),
                ("buckets", self.bucket_count().to_string()),
                ("bits of the index", self.cache_bits.to_string()),
                ("attached bytes", self.data().len().to_string()),
            ],
        }
    }

    fn contains(&self, key: ForeignKey<'_>) -> Result<bool> {
        Ok(self.has(&self.place(key.bytes(FORMAT)?)))
    }

    fn insert(&mut self, key: ForeignKey<'_>) -> Result<bool> {
        let place = self.place(key.bytes(FORMAT)?);
        if self.has(&place) {
            return Ok(false);
        }
        if self.count >= self.capacity {
            return Err(Error::Full {
                format: FORMAT,
                capacity: self.capacity,
            });
        }
        if let Some(bit) = self.cached(&place) {
            self.cache.set(bit);
        }
        for bit in self.positions(&place) {
            self.buckets.set(bit);
        }
        self.count += 1;
        Ok(true)
    }

    fn count(&self) -> Option<Count> {
        Some(Count {
            keys: self.count,
            counted: Counted::NewKeys,
        })
    }

    fn fill(&self) -> f64 {
        share(self.buckets.ones(self.buckets.room()), self.buckets.room())
    }

    // The mean over buckets, behind the index.
    fn error_now(&self) -> f64 {
        let of_bucket = |bucket: u64| {
            let start = bucket * BUCKET_BITS;
            let ones = self.buckets.ones_of(start..start + BUCKET_BITS);
            power(share(ones, BUCKET_BITS), self.k)
        };
        let buckets = self.bucket_count();
        let mean = (0..buckets).map(of_bucket).sum::<f64>() / buckets as f64;
        let room = self.cache.room();
        mean * share(self.cache.ones(room), room)
    }

    fn estimated_len(&self) -> Option<f64> {
        let room = self.buckets.room();
        Some(crate::filter::estimate(self.fill(), room, self.k))
    }

    fn union_with(&mut self, other: &dyn ForeignFilter) -> Result<()> {
        let other = same_type(self, other)?;
        same("positions (k)", self.k, other.k)?;
        same("capacity", self.capacity, other.capacity)?;
        same("error", self.error, other.error)?;
        same("bits of the index", self.cache_bits, other.cache_bits)?;
        same("buckets", self.bucket_count(), other.bucket_count())?;
        self.cache.union_with(&other.cache);
        self.buckets.union_with(&other.buckets);
        self.count = self.count.saturating_add(other.count);
        Ok(())
    }

    fn write_as(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        check_encoding(FORMAT, self.encodings(), encoding)?;
        put(out, &[2, self.level, 0, 0, 0, 0, 0, 0])?;
        let error = self.error.to_bits();
        for word in [self.capacity, error, self.k, self.count, self.cache_bits] {
            put(out, &word.to_le_bytes())?;
        }
        put(out, self.cache.as_bytes())?;
        put(out, &self.bucket_count().to_le_bytes())?;
        put(out, self.buckets.as_bytes())?;
        put(out, self.data())
    }
}
