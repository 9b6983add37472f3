//! How good a hash is for a Bloom filter: measured, against theory.
//!
//! Owns the hashes that can be tried, keys that are made up, and the
//! measurement. A filter of m bits is filled; position `i` of a key is the hash
//! of the key with one byte `i` behind it, modulo m, for every hash alike but
//! the weighted sum, which has a seed for each position. Theory says that an
//! absent key is found with probability `(1 - e^(-kn/m))^k`.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use md5::Md5;
use sha1::Sha1;
use sha2::Digest;
use siphasher::sip::SipHasher13;
use twox_hash::{XxHash3_64, XxHash64};

use crate::classic::{CharSign, ClassicHash};
use crate::error::{Error, Result};
use crate::hash::{FNV_OFFSET, fnv1_64, fnv1a_64_from, murmur3_x64_128};

/// A hash that can be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabHash {
    /// `SimpleHash` of the Java programs: `sum = seed * sum + byte` in 32 bits.
    WeightedSum,
    /// One of the C programs', with a signed `char`.
    Classic(ClassicHash),
    /// FNV-1 of 64 bits.
    Fnv1,
    /// FNV-1a of 64 bits.
    Fnv1a,
    /// The first 64 bits of MD5.
    Md5,
    /// The first 64 bits of SHA-1.
    Sha1,
    /// The first half of MurmurHash3 of 128 bits.
    Murmur3,
    /// XXH64.
    Xxh64,
    /// XXH3 of 64 bits: what petal uses.
    Xxh3,
    /// SipHash-1-3: what petal uses under a secret.
    SipHash,
}

/// Seeds of the weighted sum; further ones are the odd numbers after.
const SEEDS: [u32; 8] = [3, 5, 7, 11, 13, 31, 37, 61];

impl LabHash {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let modern = [
            Self::Fnv1,
            Self::Fnv1a,
            Self::Md5,
            Self::Sha1,
            Self::Murmur3,
            Self::Xxh64,
            Self::Xxh3,
            Self::SipHash,
        ];
        let classic = ClassicHash::URL_SOURCE
            .into_iter()
            .chain(ClassicHash::SPIDER);
        std::iter::once(Self::WeightedSum)
            .chain(classic.map(Self::Classic))
            .chain(modern)
    }

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WeightedSum => "weighted-sum",
            Self::Classic(hash) => hash.name(),
            Self::Fnv1 => "fnv-1",
            Self::Fnv1a => "fnv-1a",
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Murmur3 => "murmur3",
            Self::Xxh64 => "xxh64",
            Self::Xxh3 => "xxh3",
            Self::SipHash => "siphash",
        }
    }

    /// Bits of its result.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::WeightedSum | Self::Classic(_) => 32,
            _ => 64,
        }
    }

    /// Position `i` of a key before it is reduced. `salted` is a buffer.
    fn position(self, key: &[u8], i: u32, salted: &mut Vec<u8>) -> u64 {
        if self == Self::WeightedSum {
            let seed = usize::try_from(i).ok().and_then(|i| SEEDS.get(i).copied());
            return weighted_sum(key, seed.unwrap_or(61 + 2 * i)).into();
        }
        salted.clear();
        salted.extend_from_slice(key);
        salted.push(i.to_le_bytes()[0]);
        self.hash(salted)
    }

    /// The hash of bytes.
    #[must_use]
    pub fn hash(self, bytes: &[u8]) -> u64 {
        match self {
            Self::WeightedSum => weighted_sum(bytes, 31).into(),
            Self::Classic(hash) => hash.hash(bytes, CharSign::Signed).unwrap_or(0).into(),
            Self::Fnv1 => fnv1_64(bytes),
            Self::Fnv1a => fnv1a_64_from(FNV_OFFSET, bytes.iter().copied().map(u32::from)),
            Self::Md5 => first_word(&Md5::digest(bytes)),
            Self::Sha1 => first_word(&Sha1::digest(bytes)),
            Self::Murmur3 => murmur3_x64_128(bytes).0,
            Self::Xxh64 => XxHash64::oneshot(0, bytes),
            Self::Xxh3 => XxHash3_64::oneshot(bytes),
            Self::SipHash => SipHasher13::new_with_keys(0, 0).hash(bytes),
        }
    }
}

fn weighted_sum(bytes: &[u8], seed: u32) -> u32 {
    bytes.iter().fold(0u32, |sum, &byte| {
        sum.wrapping_mul(seed).wrapping_add(byte.into())
    })
}

fn first_word(digest: &[u8]) -> u64 {
    digest
        .first_chunk()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

impl fmt::Display for LabHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LabHash {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::all().find(|hash| hash.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(Self::name).collect();
            Error::parameter("hash", name, format!("use one of {}", names.join(", ")))
        })
    }
}

/// Keys that are made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabKeys {
    /// 0, 1, 2, … as 8 bytes, the highest first.
    BigEndian,
    /// The same, the lowest first.
    LittleEndian,
    /// URLs that differ in a number.
    Urls,
    /// Strings of three to five letters.
    Short,
}

impl LabKeys {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::BigEndian, Self::LittleEndian, Self::Urls, Self::Short];

    /// So many different ones.
    #[must_use]
    pub fn make(self, count: usize) -> Vec<Vec<u8>> {
        (0..count as u64).map(|i| self.key(i)).collect()
    }

    fn key(self, i: u64) -> Vec<u8> {
        match self {
            Self::BigEndian => i.to_be_bytes().to_vec(),
            Self::LittleEndian => i.to_le_bytes().to_vec(),
            Self::Urls => format!("https://www.example.org/articles/{i}.html").into_bytes(),
            Self::Short => {
                // Letters of a number to the base 26, three at least.
                let (mut rest, mut letters) = (i, Vec::new());
                while letters.len() < 3 || rest > 0 {
                    letters.push(b'a' + (rest % 26).to_le_bytes()[0]);
                    rest /= 26;
                }
                letters
            }
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub struct LabPlan {
    /// Bits of the filter (m).
    pub bits: u64,
    /// Positions a key (k), 1 to 64.
    pub positions: u32,
    /// At how many fills the error is measured.
    pub steps: usize,
}

/// The error at one load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabPoint {
    /// Keys inserted.
    pub items: u64,
    /// Share of the absent keys that were found.
    pub error: f64,
    /// What theory says.
    pub theory: f64,
}

/// How a hash did.
#[derive(Debug, Clone)]
pub struct LabResult {
    /// Which.
    pub hash: LabHash,
    /// The error by load.
    pub points: Vec<LabPoint>,
    /// The worst bit: how far its share of ones is from one half.
    pub worst_balance: f64,
    /// How far the worst of so many fair bits would be: five standard deviations.
    pub fair_balance: f64,
    /// Pairs of keys with the same hash, of the hash's own width.
    pub collisions: u64,
    /// What they would be at random.
    pub expected_collisions: f64,
    /// Nanoseconds for a hash of one key, the least of several passes.
    pub nanoseconds: f64,
}

/// Measures a hash on keys, of which every second one is inserted and the others
/// are absent.
///
/// # Errors
/// If there are fewer than 100 keys, or the plan's numbers are out of range.
pub fn measure(hash: LabHash, keys: &[Vec<u8>], plan: LabPlan) -> Result<LabResult> {
    if keys.len() < 100 {
        return Err(Error::parameter(
            "keys",
            keys.len(),
            "use 100 or more different ones",
        ));
    }
    if plan.bits == 0
        || plan.bits > 1 << 32
        || !(1..=64).contains(&plan.positions)
        || !(1..=1000).contains(&plan.steps)
    {
        return Err(Error::parameter(
            "m, k and steps",
            format!("{}, {} and {}", plan.bits, plan.positions, plan.steps),
            "use up to 2^32 bits, 1 to 64 positions and 1 to 1000 steps",
        ));
    }
    let (worst_balance, fair_balance) = balance(hash, keys);
    let (collisions, expected_collisions) = collisions(hash, keys);
    Ok(LabResult {
        hash,
        points: points(hash, keys, plan)?,
        worst_balance,
        fair_balance,
        collisions,
        expected_collisions,
        nanoseconds: time(hash, keys),
    })
}

fn points(hash: LabHash, keys: &[Vec<u8>], plan: LabPlan) -> Result<Vec<LabPoint>> {
    let (members, absent): (Vec<_>, Vec<_>) = keys
        .chunks_exact(2)
        .map(|pair| (&pair[0], &pair[1]))
        .unzip();
    let mut bits = crate::bits::BitArray::zeroed(plan.bits.div_ceil(8), crate::bits::Order::Lsb)?;
    let mut salted = Vec::new();
    let mut points = Vec::new();
    let mut inserted = 0;
    for step in 1..=plan.steps {
        let until = members.len() * step / plan.steps;
        for key in &members[inserted..until] {
            for i in 0..plan.positions {
                bits.set(hash.position(key, i, &mut salted) % plan.bits);
            }
        }
        inserted = until;
        let mut found = 0u64;
        for key in &absent {
            let mut all =
                (0..plan.positions).map(|i| hash.position(key, i, &mut salted) % plan.bits);
            found += u64::from(all.all(|bit| bits.get(bit)));
        }
        points.push(LabPoint {
            items: inserted as u64,
            error: found as f64 / absent.len() as f64,
            theory: theory(inserted as f64, plan),
        });
    }
    Ok(points)
}

/// `(1 - e^(-kn/m))^k`.
fn theory(items: f64, plan: LabPlan) -> f64 {
    let k = f64::from(plan.positions);
    (-(-k * items / plan.bits as f64).exp_m1()).powf(k)
}

fn balance(hash: LabHash, keys: &[Vec<u8>]) -> (f64, f64) {
    let mut ones = [0u64; 64];
    for key in keys {
        let hash = hash.hash(key);
        for (bit, ones) in ones.iter_mut().enumerate() {
            *ones += hash >> bit & 1;
        }
    }
    let n = keys.len() as f64;
    let width = usize::try_from(hash.bits()).unwrap_or(64);
    let far = ones[..width]
        .iter()
        .map(|&ones| (ones as f64 / n - 0.5).abs());
    (far.fold(0.0, f64::max), 5.0 * 0.5 / n.sqrt())
}

fn collisions(hash: LabHash, keys: &[Vec<u8>]) -> (u64, f64) {
    let mut seen: HashMap<u64, u64> = HashMap::with_capacity(keys.len());
    let mut pairs = 0;
    for key in keys {
        let count = seen.entry(hash.hash(key)).or_default();
        pairs += *count;
        *count += 1;
    }
    let n = keys.len() as f64;
    let values = 2f64.powi(i32::try_from(hash.bits()).unwrap_or(64));
    (pairs, n * (n - 1.0) / 2.0 / values)
}

fn time(hash: LabHash, keys: &[Vec<u8>]) -> f64 {
    let pass = |_| {
        let start = Instant::now();
        let sum = keys.iter().fold(0u64, |sum, key| sum ^ hash.hash(key));
        std::hint::black_box(sum);
        start.elapsed()
    };
    let least = (0..5).map(pass).min().unwrap_or_default();
    least.as_secs_f64() * 1e9 / keys.len() as f64
}
