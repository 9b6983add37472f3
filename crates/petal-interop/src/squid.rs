//! The cache digest of Squid: what a proxy holds, as its peers fetch it.
//!
//! A block of 128 bytes, big-endian, then the bits. The four words of the MD5 of
//! a method byte and the URL are the positions; a text or bytes are the URL, and the method is
//! GET. It has always four positions a key.
//!
//! Source: digests that Squid 5.7 serves.

use std::io::Write;

use md5::{Digest, Md5};

use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, exactly, from};
use crate::filter::{Count, Counted, Flat, Parameters, same};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;
use crate::sizing::check_error;

const FORMAT: Format = Format::Squid;

/// Bytes before the bits.
const HEADER: usize = 128;

/// The version that is written, and the oldest that can read it.
const VERSIONS: [u16; 2] = [5, 3];

/// Positions a key.
const POSITIONS: u8 = 4;

/// The method byte of GET.
const GET: u8 = 1;

/// A cache digest of Squid.
#[derive(Debug, Clone)]
pub struct Squid {
    versions: [u16; 2],
    capacity: i32,
    count: i32,
    deletions: i32,
    bits_per_entry: u8,
    bits: BitArray,
}

impl Squid {
    /// An empty digest for so many objects (`store_avg_object_size` decides that
    /// in Squid), and bits for each (`digest_bits_per_entry`, usually 5).
    ///
    /// # Errors
    /// If either is 0, the bytes pass 2^31, or the memory cannot be had.
    pub fn new(capacity: u64, bits_per_entry: u8) -> Result<Self> {
        let entries = i32::try_from(capacity).unwrap_or(0);
        match mask_size(entries, bits_per_entry) {
            Some(bytes) if bytes > 0 => Ok(Self {
                versions: VERSIONS,
                capacity: entries,
                count: 0,
                deletions: 0,
                bits_per_entry,
                bits: BitArray::zeroed(u64::from(bytes.unsigned_abs()), Order::Lsb)?,
            }),
            _ => Err(Error::parameter(
                "n",
                format!("{capacity} with {bits_per_entry} bits each"),
                "use 1 or more of both, and at most 2^31 bytes in all",
            )),
        }
    }

    /// An empty digest with the fewest bits an entry that have such an error
    /// when it is full.
    ///
    /// # Errors
    /// If 255 bits are too few, or as for [`Self::new`].
    pub fn create(items: u64, error: f64) -> Result<Self> {
        check_error(error)?;
        let k = f64::from(POSITIONS);
        let full = |bits: u8| (-(-k / f64::from(bits)).exp_m1()).powf(k);
        match (1..=u8::MAX).find(|&bits| full(bits) <= error) {
            Some(bits) => Self::new(items, bits),
            None => Err(Error::parameter(
                "p",
                error,
                "use a larger one: a digest has four positions a key and at most 255 bits",
            )),
        }
    }

    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self> {
        let mut cursor = Cursor::new(FORMAT, &bytes);
        let versions = [cursor.u16_be()?, cursor.u16_be()?];
        let [current, oldest] = versions;
        if current < VERSIONS[1] || oldest > VERSIONS[0] {
            return Err(Error::field(
                FORMAT,
                "version",
                format!("{current}, for readers of {oldest}"),
                "one that readers of 3 to 5 know",
            ));
        }
        let (capacity, count) = (cursor.i32_be()?, cursor.i32_be()?);
        let (deletions, size) = (cursor.i32_be()?, cursor.i32_be()?);
        let (bits_per_entry, positions) = (cursor.u8()?, cursor.u8()?);
        if positions != POSITIONS {
            return Err(Error::field(
                FORMAT,
                "positions (k)",
                positions,
                POSITIONS.to_string(),
            ));
        }
        let (counts, expected) = (count.min(deletions), mask_size(capacity, bits_per_entry));
        if counts < 0 {
            return Err(Error::field(FORMAT, "count", counts, "0 or more"));
        }
        if size < 1 || expected != Some(size) {
            let expected = expected.map_or_else(|| "1 or more".to_owned(), |e| e.to_string());
            return Err(Error::field(FORMAT, "bytes of bits", size, expected));
        }
        let rest = cursor.take((HEADER - cursor.at()) as u64)?;
        if rest.iter().any(|&byte| byte != 0) {
            return Err(Error::field(FORMAT, "reserved bytes", "set", "zeros"));
        }
        cursor.take(u64::from(size.unsigned_abs()))?;
        cursor.end()?;
        let end = cursor.at();
        Ok(Self {
            versions,
            capacity,
            count,
            deletions,
            bits_per_entry,
            bits: BitArray::of_file(bytes, HEADER, end, Order::Lsb),
        })
    }
}

/// Bytes of the bits; `None` if they pass 2^31 or a number is negative.
fn mask_size(capacity: i32, bits_per_entry: u8) -> Option<i32> {
    let bits = u64::from(bits_per_entry) * u64::try_from(capacity).ok()?;
    i32::try_from(bits.div_ceil(8)).ok()
}

/// How long a file with this head is. A head that is itself cut off is known
/// by its versions.
pub(crate) fn lengths(head: &[u8]) -> Option<Lengths> {
    if !head.starts_with(&[0, 5, 0, 3]) {
        return None;
    }
    let Some(size) = head.get(..HEADER).and_then(|head| head[16..].first_chunk()) else {
        return Some(from(HEADER as u64 + 1));
    };
    let size = u64::try_from(i32::from_be_bytes(*size)).ok()?;
    (size > 0).then(|| exactly(HEADER as u64 + size))
}

/// Whether the header is valid and accounts for the length.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    let Some((head, bits)) = bytes.split_at_checked(HEADER) else {
        return false;
    };
    let number = |at: usize| {
        let word = head[at..].first_chunk();
        word.map_or(-1, |word| i32::from_be_bytes(*word))
    };
    head.starts_with(&[0, 5, 0, 3])
        && usize::try_from(number(16)).is_ok_and(|size| size > 0 && size == bits.len())
        && mask_size(number(4), head[20]) == Some(number(16))
        && head[21] == POSITIONS
        && head[22..].iter().all(|&byte| byte == 0)
}

impl Flat for Squid {
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
        POSITIONS.into()
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        let url = key.bytes(FORMAT)?;
        let hash: [u8; 16] = Md5::new()
            .chain_update([GET])
            .chain_update(url)
            .finalize()
            .into();
        let m = self.m();
        let words: [[u8; 4]; 4] = std::array::from_fn(|i| std::array::from_fn(|j| hash[4 * i + j]));
        Ok(words
            .into_iter()
            .map(move |word| u64::from(u32::from_be_bytes(word)) % m))
    }

    fn described(&self) -> Parameters {
        let [current, oldest] = self.versions;
        Parameters {
            bits: self.m(),
            positions: self.k(),
            items: Some(u64::from(self.capacity.unsigned_abs())),
            error: None,
            details: vec![
                ("version", format!("{current}, for readers of {oldest}")),
                ("bits an entry", self.bits_per_entry.to_string()),
                ("deletions", self.deletions.to_string()),
            ],
        }
    }

    fn counted(&self) -> Option<Count> {
        Some(Count {
            keys: u64::from(self.count.unsigned_abs()),
            counted: Counted::Insertions,
        })
    }

    fn note(&mut self, _changed: bool) {
        self.count = self.count.saturating_add(1);
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        same("capacity (n)", self.capacity, other.capacity)?;
        same("version", self.versions[0], other.versions[0])
    }

    fn join_counts(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.deletions = self.deletions.saturating_add(other.deletions);
    }

    fn encode(&self, _: Encoding, out: &mut dyn Write) -> Result<()> {
        let mut header = Vec::with_capacity(HEADER);
        for version in self.versions {
            header.extend(version.to_be_bytes());
        }
        let size = i32::try_from(self.m() / 8).unwrap_or(i32::MAX); // as it was read or made
        for number in [self.capacity, self.count, self.deletions, size] {
            header.extend(number.to_be_bytes());
        }
        header.extend([self.bits_per_entry, POSITIONS]);
        header.resize(HEADER, 0);
        put(out, &header)?;
        put(out, self.bits.as_bytes())
    }
}
