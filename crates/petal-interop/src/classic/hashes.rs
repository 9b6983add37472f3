//! The string hashes of the C programs: fifteen of the URL program's source,
//! eight of the spider's.
//!
//! All are 32-bit and wrap around. `c` is a byte as the platform's `char`: on
//! x86 it is signed, so bytes from 0x80 on are negative numbers; on ARM Linux
//! it is not. Names are those of the sources; some are mistakes that stuck,
//! such as the multiplication by FNV's offset basis in place of its prime.

use std::fmt;

/// Whether a `char` of C is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CharSign {
    /// As on x86.
    #[default]
    Signed,
    /// As on ARM Linux.
    Unsigned,
}

impl fmt::Display for CharSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signed => "signed",
            Self::Unsigned => "unsigned",
        })
    }
}

impl CharSign {
    /// A byte as a `char`, converted to an unsigned number.
    const fn char(self, byte: u8) -> u32 {
        match self {
            Self::Signed => (byte.cast_signed() as i32).cast_unsigned(),
            Self::Unsigned => byte as u32,
        }
    }
}

/// A hash of one of the C programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClassicHash {
    /// Robert Sedgewick's.
    Rs,
    /// Justin Sobel's.
    Js,
    /// Peter J. Weinberger's.
    Pjw,
    /// That of ELF: the same as [`Self::Pjw`].
    Elf,
    /// Brian Kernighan and Dennis Ritchie's, factor 131.
    Bkdr,
    /// That of sdbm.
    Sdbm,
    /// Daniel J. Bernstein's.
    Djb,
    /// Donald E. Knuth's.
    Dek,
    /// "BP": only the last five bytes matter.
    Bp,
    /// Not FNV: multiplies by the offset basis.
    Fnv,
    /// Arash Partow's, as the C source's lack of parentheses makes it.
    Ap,
    /// Exclusive or in four bytes, modulo the length.
    Hflp,
    /// A weighted sum modulo the length.
    Hf,
    /// Factor 31, unsigned bytes.
    Str,
    /// "Tianl": ignores case.
    Tianl,
    /// The spider's: factor 33 from 0.
    Times33,
    /// Factor 31.
    Times31,
    /// The spider's own version of Arash Partow's.
    SpiderAp,
    /// FNV's prime, from 0.
    Fnv0,
    /// MySQL's old one, but over `char`.
    OldMysql,
    /// That of zlib.
    Crc32,
    /// Factor 131.
    Times131,
    /// Factor 1313.
    Times1313,
}

impl ClassicHash {
    /// The fifteen of the URL program's source, in its order.
    pub const URL_SOURCE: [Self; 15] = [
        Self::Rs,
        Self::Js,
        Self::Pjw,
        Self::Elf,
        Self::Bkdr,
        Self::Sdbm,
        Self::Djb,
        Self::Dek,
        Self::Bp,
        Self::Fnv,
        Self::Ap,
        Self::Hflp,
        Self::Hf,
        Self::Str,
        Self::Tianl,
    ];

    /// The eight of the spider, in its order.
    pub const SPIDER: [Self; 8] = [
        Self::Times33,
        Self::Times31,
        Self::SpiderAp,
        Self::Fnv0,
        Self::OldMysql,
        Self::Crc32,
        Self::Times131,
        Self::Times1313,
    ];

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs => "rs",
            Self::Js => "js",
            Self::Pjw => "pjw",
            Self::Elf => "elf",
            Self::Bkdr => "bkdr",
            Self::Sdbm => "sdbm",
            Self::Djb => "djb",
            Self::Dek => "dek",
            Self::Bp => "bp",
            Self::Fnv => "fnv-basis",
            Self::Ap => "ap",
            Self::Hflp => "hflp",
            Self::Hf => "hf",
            Self::Str => "str",
            Self::Tianl => "tianl",
            Self::Times33 => "times33",
            Self::Times31 => "times31",
            Self::SpiderAp => "spider-ap",
            Self::Fnv0 => "fnv-0",
            Self::OldMysql => "old-mysql",
            Self::Crc32 => "crc32",
            Self::Times131 => "times131",
            Self::Times1313 => "times1313",
        }
    }

    /// The hash; `None` where the C function divides by zero, which
    /// [`Self::Hflp`] and [`Self::Hf`] do for no bytes.
    #[must_use]
    pub fn hash(self, bytes: &[u8], sign: CharSign) -> Option<u32> {
        // Lengths are ints in C.
        let len = crate::hash::low32(bytes.len() as u64);
        let chars = || bytes.iter().map(|&byte| sign.char(byte));
        let times = |start: u32, factor: u32| {
            chars().fold(start, |h, c| h.wrapping_mul(factor).wrapping_add(c))
        };
        Some(match self {
            Self::Rs => {
                let step = |(h, a): (u32, u32), c| {
                    (h.wrapping_mul(a).wrapping_add(c), a.wrapping_mul(378_551))
                };
                chars().fold((0, 63_689), step).0
            }
            Self::Js => chars().fold(1_315_423_911, |h: u32, c| {
                h ^ (h << 5).wrapping_add(c).wrapping_add(h >> 2)
            }),
            // ELF clears the top in another way, with the same result.
            Self::Pjw | Self::Elf => chars().fold(0, |h: u32, c| {
                let h = (h << 4).wrapping_add(c);
                (h ^ ((h & 0xf000_0000) >> 24)) & 0x0fff_ffff
            }),
            Self::Bkdr | Self::Times131 => times(0, 131),
            Self::Sdbm => times(0, 65_599),
            Self::Djb => times(5381, 33),
            Self::Times33 => times(0, 33),
            Self::Times31 => times(0, 31),
            Self::Times1313 => times(0, 1313),
            Self::Dek => chars().fold(len, |h, c| (h << 5) ^ (h >> 27) ^ c),
            Self::Bp => chars().fold(0, |h: u32, c| (h << 7) ^ c),
            Self::Fnv => chars().fold(0, |h: u32, c| h.wrapping_mul(0x811c_9dc5) ^ c),
            Self::Fnv0 => chars().fold(0, |h: u32, c| h.wrapping_mul(16_777_619) ^ c),
            Self::Ap => chars().enumerate().fold(0xaaaa_aaaa, |h: u32, (i, c)| {
                if i % 2 == 0 {
                    h ^ (h << 7) ^ c.wrapping_mul(h >> 3)
                } else {
                    h ^ !((h << 11).wrapping_add(c) ^ (h >> 5))
                }
            }),
            Self::SpiderAp => {
                let h = chars().enumerate().fold(0, |h: u32, (i, c)| {
                    if i % 2 == 0 {
                        h ^ (h << 7) ^ c ^ (h >> 3)
                    } else {
                        h ^ !((h << 11) ^ c ^ (h >> 5))
                    }
                });
                h & 0x7fff_ffff
            }
            Self::Hflp => {
                let mut word = [0u8; 4];
                for (i, &byte) in bytes.iter().enumerate() {
                    word[i % 4] ^= byte;
                }
                u32::from_le_bytes(word).checked_rem(len)?
            }
            Self::Hf => {
                let step = |sum: u32, (i, c): (u32, u32)| {
                    sum.wrapping_add(c.wrapping_mul(3).wrapping_mul(i))
                };
                let sum = (1u32..).zip(chars()).fold(0, step).cast_signed();
                sum.unsigned_abs().checked_rem(len)?
            }
            Self::Str => bytes.iter().fold(0, |h: u32, &byte| {
                h.wrapping_mul(31).wrapping_add(byte.into())
            }),
            Self::Tianl => tianl(bytes),
            Self::OldMysql => {
                let step = |(nr, nr2): (u32, u32), c| {
                    let mixed = (nr & 63).wrapping_add(nr2).wrapping_mul(c);
                    (nr ^ mixed.wrapping_add(nr << 8), nr2.wrapping_add(3))
                };
                chars().fold((1, 4), step).0
            }
            Self::Crc32 => crc32fast::hash(bytes),
        })
    }
}

impl fmt::Display for ClassicHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Starts from the length, then adds a polynomial of place and byte for the
/// last 96 bytes. The modulus is as printed in the source, a digit short of 2^24.
fn tianl(bytes: &[u8]) -> u32 {
    const LAST: usize = 96;
    let len = bytes.len();
    let start: u32 = match len {
        0 => return 0,
        // The program's int overflows from 129 on, and wraps.
        1..=256 => 16_777_216u32.wrapping_mul(crate::hash::low32(len as u64) - 1),
        // 42781900080 in 32 bits.
        _ => 4_127_194_416,
    };
    let tail = &bytes[len.saturating_sub(LAST)..];
    (1u32..).zip(tail).fold(start, |sum, (i, byte)| {
        let u = u32::from(byte.to_ascii_lowercase());
        sum.wrapping_add((3 * i * u * u + 5 * i * u + 7 * i + 11 * u) % 1_677_216)
    })
}
