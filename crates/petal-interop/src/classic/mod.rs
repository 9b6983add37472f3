//! The filters of six small programs that a generation of programmers learned
//! from, position for position, quirks included.
//!
//! Owns the programs' parameters, their bits in memory, and reading the raw
//! bits that a running program would dump. The hashes stand in `hashes`, PHP's
//! random numbers in `php`, and a run of the whole URL program in `url_dedup`.

mod hashes;
mod php;
mod url_dedup;

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::str::FromStr;

use crate::bits::{BitArray, Order, put};
use crate::error::{Error, Result};
use crate::filter::{Flat, MAX_POSITIONS, Parameters, same};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;

pub use hashes::{CharSign, ClassicHash};
pub use php::PhpMode;
pub use url_dedup::{Difference, UrlDedupRun, run_url_dedup};

const FORMAT: Format = Format::Classic;

/// One of the programs. Keys are bytes; those of the Java programs are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClassicProgram {
    /// Java, 2^25 bits, weighted sums with the seeds 5 7 11 13 31 37 61.
    JavaA,
    /// Java, 2^25 bits, seeds 3 5 7 11 13 31 37 61.
    JavaB,
    /// Java, 2^29 bits, the seeds of [`Self::JavaB`].
    JavaC,
    /// C, removes duplicate URLs from a file: 384,000,000 bits, six hashes.
    UrlDedupC(CharSign),
    /// C, the test-and-set `search` of a spider: 32,000,000 bits, eight hashes.
    SpiderC(CharSign),
    /// PHP, m bits and k random numbers after `mt_srand(crc32(item))`.
    Php {
        /// Bits, up to 2^32.
        m: u64,
        /// Positions.
        k: u32,
        /// Which generator.
        mode: PhpMode,
    },
}

const SEEDS_A: &[u32] = &[5, 7, 11, 13, 31, 37, 61];
const SEEDS_B: &[u32] = &[3, 5, 7, 11, 13, 31, 37, 61];

/// In the order in which they are tested and set.
const URL_HASHES: &[ClassicHash] = &[
    ClassicHash::Hflp,
    ClassicHash::Str,
    ClassicHash::Hf,
    ClassicHash::Dek,
    ClassicHash::Tianl,
    ClassicHash::Sdbm,
];
const SPIDER_HASHES: &[ClassicHash] = &[
    ClassicHash::Times33,
    ClassicHash::Times31,
    ClassicHash::SpiderAp,
    ClassicHash::Fnv0,
    ClassicHash::OldMysql,
    ClassicHash::Crc32,
    ClassicHash::Times131,
    ClassicHash::Times1313,
];

impl ClassicProgram {
    /// PHP's parameters for m bits and n items: k = ceil(m / n * ln 2).
    ///
    /// # Errors
    /// If m or n is 0, m is above 2^32, or k is out of range.
    pub fn php(m: u64, n: u64, mode: PhpMode) -> Result<Self> {
        let k = crate::sizing::truncate((m as f64 / n as f64 * std::f64::consts::LN_2).ceil());
        let program = Self::Php {
            m,
            k: u32::try_from(k).unwrap_or(u32::MAX),
            mode,
        };
        program.check()?;
        Ok(program)
    }

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::JavaA => "java-a",
            Self::JavaB => "java-b",
            Self::JavaC => "java-c",
            Self::UrlDedupC(_) => "url-dedup-c",
            Self::SpiderC(_) => "spider-c",
            Self::Php { .. } => "php",
        }
    }

    /// Bits of its filter.
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self {
            Self::JavaA | Self::JavaB => 1 << 25,
            Self::JavaC => 1 << 29,
            Self::UrlDedupC(_) => 384_000_000,
            Self::SpiderC(_) => 32_000_000,
            Self::Php { m, .. } => m,
        }
    }

    /// Positions a key.
    #[must_use]
    pub const fn positions_per_key(self) -> u64 {
        match self {
            Self::JavaA => SEEDS_A.len() as u64,
            Self::JavaB | Self::JavaC => SEEDS_B.len() as u64,
            Self::UrlDedupC(_) => URL_HASHES.len() as u64,
            Self::SpiderC(_) => SPIDER_HASHES.len() as u64,
            Self::Php { k, .. } => k as u64,
        }
    }

    fn check(self) -> Result<()> {
        if let Self::Php { m, k, .. } = self
            && (m == 0 || m > 1 << 32 || k == 0 || u64::from(k) > MAX_POSITIONS)
        {
            return Err(Error::parameter(
                "m and k",
                format!("{m} and {k}"),
                format!("use 1 to 2^32 bits and 1 to {MAX_POSITIONS} positions"),
            ));
        }
        Ok(())
    }

    /// The positions of a key, in the program's order; some may be the same.
    ///
    /// # Errors
    /// If the key is no text, for a Java program, or neither text nor bytes for
    /// another; or if the program would divide by zero ([`Self::UrlDedupC`] on an
    /// empty key).
    pub fn positions(self, key: ForeignKey<'_>) -> Result<Vec<u64>> {
        self.check()?;
        let bits = self.bits();
        Ok(match self {
            Self::JavaA | Self::JavaB | Self::JavaC => {
                let units = units(key)?;
                let seeds = if self == Self::JavaA {
                    SEEDS_A
                } else {
                    SEEDS_B
                };
                let sum = |seed: &u32| u64::from(weighted_sum(&units, *seed)) & (bits - 1);
                seeds.iter().map(sum).collect()
            }
            Self::UrlDedupC(sign) => {
                let bytes = key.bytes(FORMAT)?;
                let place = |hash: &ClassicHash| Some(u64::from(hash.hash(bytes, sign)?) % bits);
                let places: Option<_> = URL_HASHES.iter().map(place).collect();
                places.ok_or_else(|| {
                    Error::unsupported(
                        FORMAT,
                        "an empty key",
                        "two hashes of this program divide by the length, so it crashes; \
                         leave empty keys out",
                    )
                })?
            }
            Self::SpiderC(sign) => {
                let bytes = key.bytes(FORMAT)?;
                let hash = |hash: &ClassicHash| hash.hash(bytes, sign).unwrap_or(0);
                let hashes = SPIDER_HASHES.iter().map(hash);
                hashes.map(|hash| u64::from(hash) % bits).collect()
            }
            Self::Php { m, k, mode } => {
                let seed = crc32fast::hash(key.bytes(FORMAT)?);
                let mut random = php::Twister::new(seed, mode);
                (0..k).map(|_| random.below(m)).collect()
            }
        })
    }

    /// Whether the bits are in a `BitSet`, whose dump has no zeros at its end.
    const fn is_java(self) -> bool {
        matches!(self, Self::JavaA | Self::JavaB | Self::JavaC)
    }

    /// How the program keeps its bits.
    const fn order(self) -> Order {
        match self {
            Self::JavaA | Self::JavaB | Self::JavaC | Self::Php { .. } => Order::Lsb,
            Self::UrlDedupC(_) => Order::Msb,
            Self::SpiderC(_) => Order::MsbOfLittleEndian32,
        }
    }
}

impl fmt::Display for ClassicProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ClassicProgram {
    type Err = Error;

    /// By name, with a signed `char`. `php` is `php:M:K`, `php-old:M:K` with the
    /// generator before PHP 7.1.
    fn from_str(name: &str) -> Result<Self> {
        let php = |rest: &str, mode| {
            let (m, k) = rest.split_once(':')?;
            Some(Self::Php {
                m: m.parse().ok()?,
                k: k.parse().ok()?,
                mode,
            })
        };
        let program = match name {
            "java-a" => Some(Self::JavaA),
            "java-b" => Some(Self::JavaB),
            "java-c" => Some(Self::JavaC),
            "url-dedup-c" => Some(Self::UrlDedupC(CharSign::Signed)),
            "spider-c" => Some(Self::SpiderC(CharSign::Signed)),
            _ => match name.split_once(':') {
                Some(("php", rest)) => php(rest, PhpMode::Current),
                Some(("php-old", rest)) => php(rest, PhpMode::Old),
                _ => None,
            },
        };
        let program = program.ok_or_else(|| {
            Error::parameter(
                "program",
                name,
                "use java-a, java-b, java-c, url-dedup-c, spider-c, php:M:K or php-old:M:K",
            )
        })?;
        program.check()?;
        Ok(program)
    }
}

/// The UTF-16 units that Java hashes.
fn units(key: ForeignKey<'_>) -> Result<Cow<'_, [u16]>> {
    match key {
        ForeignKey::Text(text) => Ok(text.encode_utf16().collect()),
        ForeignKey::Utf16(units) => Ok(units.into()),
        other => Err(Error::Key {
            format: FORMAT,
            got: other.type_name(),
            expected: "text, or utf16 units",
        }),
    }
}

/// `SimpleHash` of the Java programs.
fn weighted_sum(units: &[u16], seed: u32) -> u32 {
    units.iter().fold(0u32, |sum, &unit| {
        sum.wrapping_mul(seed).wrapping_add(unit.into())
    })
}

/// The filter of one of the programs.
///
/// As a [`crate::ForeignFilter`] it inserts a key as the program does. The C
/// programs test and set one bit after another; a key whose positions coincide
/// is no nearer to a false duplicate for that, since all its bits were set
/// before or one was not.
#[derive(Debug, Clone)]
pub struct ClassicFilter {
    program: ClassicProgram,
    bits: BitArray,
}

/// The bytes of a raw dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RawBits {
    /// The array as it lies in the memory of a little-endian machine. Of Java's
    /// `BitSet` what `toByteArray` gives, or its longs, little-endian; of PHP's
    /// array of booleans eight to a byte, the first in the lowest bit.
    #[default]
    Memory,
    /// Longs of Java's `BitSet` as `DataOutputStream.writeLong` writes them.
    BigEndianLongs,
    /// A byte for each element of an array: 1 or `1` if it is true, 0 or `0`
    /// else.
    Elements,
}

impl ClassicFilter {
    /// An empty one.
    ///
    /// # Errors
    /// If PHP's parameters are out of range, or the memory cannot be had.
    pub fn new(program: ClassicProgram) -> Result<Self> {
        program.check()?;
        Ok(Self {
            program,
            bits: BitArray::zeroed(Self::bytes(program), program.order())?,
        })
    }

    /// From the raw bits that the program dumped. What is missing at the end
    /// is 0 in Java (whose `BitSet` leaves zeros out) and in PHP (whose array
    /// lacks its last element); the C programs' arrays have one length.
    ///
    /// # Errors
    /// If there are too many bytes, or too few of a C or PHP program, or so few of
    /// a Java program that none were dropped as zeros, or an element
    /// that is neither true nor false.
    pub fn from_raw(program: ClassicProgram, raw: RawBits, mut bytes: Vec<u8>) -> Result<Self> {
        program.check()?;
        let full = Self::bytes(program);
        if raw == RawBits::Elements {
            return Self::from_elements(program, &bytes);
        }
        let fixed = matches!(
            program,
            ClassicProgram::UrlDedupC(_) | ClassicProgram::SpiderC(_)
        );
        let len = bytes.len() as u64;
        // Java drops what follows the last bit that is set, or its long, so no
        // shorter dump ends with a long of 0; those of C and PHP are whole.
        let last = &bytes[bytes.len().saturating_sub(8)..];
        let dropped = program.is_java() && (last.is_empty() || last.iter().any(|&byte| byte != 0));
        if len > full || (len < full && !dropped) {
            return Err(Error::Length {
                format: FORMAT,
                expected: full,
                got: len,
            });
        }
        let order = match raw {
            RawBits::BigEndianLongs if fixed => {
                return Err(Error::parameter(
                    "raw bits",
                    "big-endian longs",
                    "only the Java programs keep their bits in longs",
                ));
            }
            RawBits::BigEndianLongs => Order::BigEndianWords,
            _ => program.order(),
        };
        // Grows by zeros, in one step.
        let missing = full - len;
        if missing > 0 {
            petal::memory::check(full)?;
            bytes.reserve_exact(usize::try_from(missing).unwrap_or(0));
            bytes.resize(bytes.len() + usize::try_from(missing).unwrap_or(0), 0);
        }
        let end = bytes.len();
        Ok(Self {
            program,
            bits: BitArray::of_file(bytes, 0, end, order),
        })
    }

    fn from_elements(program: ClassicProgram, elements: &[u8]) -> Result<Self> {
        let len = elements.len() as u64;
        if len > program.bits() {
            return Err(Error::Length {
                format: FORMAT,
                expected: program.bits(),
                got: len,
            });
        }
        let mut filter = Self::new(program)?;
        for (bit, element) in (0..).zip(elements) {
            match element {
                0 | b'0' => {}
                1 | b'1' => {
                    filter.bits.set(bit);
                }
                other => {
                    return Err(Error::field(
                        FORMAT,
                        "element",
                        other,
                        "0 or 1, as a byte or as a digit",
                    ));
                }
            }
        }
        Ok(filter)
    }

    /// Bytes of the whole array.
    const fn bytes(program: ClassicProgram) -> u64 {
        program.bits().div_ceil(64) * 8
    }

    /// Whose filter it is.
    #[must_use]
    pub const fn program(&self) -> ClassicProgram {
        self.program
    }
}

impl Flat for ClassicFilter {
    const FORMAT: Format = FORMAT;

    fn array(&self) -> &BitArray {
        &self.bits
    }

    fn array_mut(&mut self) -> &mut BitArray {
        &mut self.bits
    }

    fn m(&self) -> u64 {
        self.program.bits()
    }

    fn k(&self) -> u64 {
        self.program.positions_per_key()
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<>> {
        Ok(self.program.positions(key)?.into_iter())
    }

    fn described(&self) -> Parameters {
        let mut details = vec![("program", self.program.to_string())];
        if let ClassicProgram::UrlDedupC(sign) | ClassicProgram::SpiderC(sign) = self.program {
            details.push(("char", sign.to_string()));
        }
        Parameters {
            bits: self.program.bits(),
            positions: self.program.positions_per_key(),
            details,
            ..Parameters::default()
        }
    }

    fn check_union(&self, other: &Self) -> Result<()> {
        // Its parameters, too: they print alike, and are not alike.
        same("program", self.program, other.program)
    }

    /// The raw bits, as [`RawBits::Memory`].
    fn encode(&self, _: Encoding, out: &mut dyn Write) -> Result<()> {
        if self.bits.order() == self.program.order() {
            return put(out, self.bits.as_bytes());
        }
        // Longs that came big-endian.
        for word in self.bits.as_bytes().as_chunks::<8>().0 {
            put(out, &u64::from_be_bytes(*word).to_le_bytes())?;
        }
        Ok(())
    }
}

impl ClassicFilter {
    /// Sets bits one after another and counts those that were set already, as
    /// the C programs do: bits that the key itself has just set count, too.
    pub(crate) fn test_and_set(&mut self, positions: &[u64]) -> usize {
        let already = |bits: &mut BitArray, bit| usize::from(!bits.set(bit));
        positions
            .iter()
            .map(|&bit| already(&mut self.bits, bit))
            .sum()
    }
}
