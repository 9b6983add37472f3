//! Keys to digests: the first step of every question.
//!
//! Owns [`KeyHasher`], the secret, the integer mix and [`Digest`]. It does
//! not know filters, and it does not normalise keys (see
//! [`crate::normalise`]).
//!
//! Both hashers are frozen: a digest computed by one version of petal is the
//! digest computed by every later one. `FORMAT.md` has the definitions and
//! test vectors.

use std::fmt;
use std::hash::Hasher;
use std::ops::Range;

use siphasher::sip::SipHasher13;
use twox_hash::XxHash3_64;

use crate::arch::wide::{Cpu, Work, wide};
use crate::error::{Error, Result};

/// The two types of key. They never mix: the bytes `"7"` and the integer 7
/// are different questions, and a filter records which one it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    /// A string of bytes; text is its UTF-8.
    Bytes,
    /// A 64-bit two's complement integer.
    Int,
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bytes => "bytes",
            Self::Int => "int",
        })
    }
}

/// A secret 128-bit key. Never written to a file and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    key: [u8; 16],
    check: u64,
}

impl Secret {
    /// Takes 16 bytes that strangers cannot guess.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Self {
        Self {
            key: bytes,
            check: sip13(&bytes, b"petal secret check"),
        }
    }

    /// The public value by which a file recognises its secret: a SipHash-1-3
    /// of a fixed text under it. It does not reveal the secret.
    #[must_use]
    pub const fn check_value(&self) -> u64 {
        self.check
    }
}

#[inline(never)] // so that the usual hashers stay small where they are inlined
fn sip13(key: &[u8; 16], bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_key(key);
    hasher.write(bytes);
    hasher.finish()
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// How keys become digests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyHasher {
    /// XXH3-64 for bytes, [`mix_int`] for integers. Fast, the same on every
    /// machine, and *not* safe against chosen keys: two fixed messages
    /// collide under 1 of 1,400 seeds (xxHash issue 1127).
    Portable {
        /// Any value; files built with different seeds do not merge.
        seed: u64,
    },
    /// SipHash-1-3 under a secret key: for keys that strangers choose.
    Keyed {
        /// The key. Files hold only its [`Secret::check_value`].
        secret: Secret,
    },
}

impl Default for KeyHasher {
    fn default() -> Self {
        Self::Portable { seed: 0 }
    }
}

impl KeyHasher {
    /// The digest of a byte key. Two different keys share one with
    /// probability 2^-64.
    #[inline]
    #[must_use]
    pub fn digest_bytes(&self, key: &[u8]) -> Digest {
        Digest {
            bits: self.bits_of_bytes(key),
            origin: self.origin(KeyType::Bytes),
        }
    }

    /// The digest of an integer key. Under `Portable` two different integers
    /// never share one.
    #[inline]
    #[must_use]
    pub fn digest_int(&self, key: i64) -> Digest {
        Digest {
            bits: self.bits_of_int(key),
            origin: self.origin(KeyType::Int),
        }
    }

    /// The 64 bits of [`Self::digest_bytes`] without their tag.
    #[inline(always)]
    pub(crate) fn bits_of_bytes(&self, key: &[u8]) -> u64 {
        match self {
            // The unseeded form: a seed of 0 gives the same value, and a
            // seed costs long keys a derived secret in every call.
            Self::Portable { seed: 0 } => XxHash3_64::oneshot(key),
            Self::Portable { seed } => XxHash3_64::oneshot_with_seed(*seed, key),
            Self::Keyed { secret } => sip13(&secret.key, key),
        }
    }

    /// The 64 bits of [`Self::digest_int`] without their tag.
    #[inline(always)]
    pub(crate) fn bits_of_int(&self, key: i64) -> u64 {
        match self {
            Self::Portable { seed } => mix_int(key, *seed),
            Self::Keyed { secret } => sip13(&secret.key, &key.to_le_bytes()),
        }
    }

    /// The tag of the digests that this hasher makes from keys of a type.
    #[must_use]
    pub fn origin(&self, key_type: KeyType) -> Origin {
        let (id, value) = match self {
            Self::Portable { seed } => (0, *seed),
            Self::Keyed { secret } => (2, secret.check_value()),
        };
        let key_type = match key_type {
            KeyType::Bytes => 0,
            KeyType::Int => 1,
        };
        Origin {
            tag: id | key_type,
            value,
        }
    }
}

impl fmt::Display for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Portable { seed } => write!(f, "portable, seed {seed}"),
            Self::Keyed { secret } => write!(f, "keyed, check {:016x}", secret.check_value()),
        }
    }
}

/// Where a digest comes from: hasher, seed or secret, and key type. Digests
/// of one origin are answers to the same question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    tag: u8,
    value: u64,
}

impl Origin {
    /// Refuses digests of another origin.
    #[inline]
    pub(crate) fn accept(self, other: Self) -> Result<()> {
        if self == other {
            Ok(())
        } else {
            Err(Error::mismatch("origin of digests", self, other))
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hasher = if self.tag & 2 == 0 {
            "portable, seed"
        } else {
            "keyed, check"
        };
        let keys = if self.tag & 1 == 0 { "bytes" } else { "int" };
        write!(f, "{hasher} {:016x}, {keys} keys", self.value)
    }
}

/// The 64-bit digest of one key, tagged with its [`Origin`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    pub(crate) bits: u64,
    pub(crate) origin: Origin,
}

impl Digest {
    /// The 64 bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// Which hasher and key type made it.
    #[must_use]
    pub const fn origin(self) -> Origin {
        self.origin
    }
}

/// Many digests of one origin, checked once for a whole batch. A buffer to
/// be filled, asked about and cleared again without allocating.
#[derive(Debug, Clone)]
pub struct Digests {
    hasher: KeyHasher,
    key_type: KeyType,
    bits: Vec<u64>,
}

impl Digests {
    /// An empty buffer for keys of one type under one hasher.
    #[must_use]
    pub const fn new(hasher: KeyHasher, key_type: KeyType) -> Self {
        Self {
            hasher,
            key_type,
            bits: Vec::new(),
        }
    }

    /// Appends the digest of a byte key. An error if the buffer is for integers.
    #[inline]
    pub fn push_bytes(&mut self, key: &[u8]) -> Result<()> {
        if self.key_type != KeyType::Bytes {
            return Err(Error::mismatch("key type", self.key_type, KeyType::Bytes));
        }
        self.bits.push(self.hasher.bits_of_bytes(key));
        Ok(())
    }

    /// Appends the digests of many byte keys.
    ///
    /// # Errors
    /// If the buffer is for integers.
    #[inline]
    pub fn extend_bytes<'a>(&mut self, keys: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        if self.key_type != KeyType::Bytes {
            return Err(Error::mismatch("key type", self.key_type, KeyType::Bytes));
        }
        if let KeyHasher::Portable { seed: 0 } = self.hasher {
            // The usual hasher without a question a key.
            self.bits.extend(keys.map(XxHash3_64::oneshot));
        } else {
            self.bits
                .extend(keys.map(|key| self.hasher.bits_of_bytes(key)));
        }
        Ok(())
    }

    /// Appends the digest of an integer key. An error if the buffer is for bytes.
    #[inline]
    pub fn push_int(&mut self, key: i64) -> Result<()> {
        if self.key_type != KeyType::Int {
            return Err(Error::mismatch("key type", self.key_type, KeyType::Int));
        }
        self.bits.push(self.hasher.bits_of_int(key));
        Ok(())
    }

    /// Appends a run of another buffer's digests.
    ///
    /// # Errors
    /// If they are of another origin, or there are not so many.
    pub fn extend_from(&mut self, other: &Self, run: Range<usize>) -> Result<()> {
        self.origin().accept(other.origin())?;
        let bits = other.bits.get(run.clone()).ok_or_else(|| {
            Error::parameter(
                "run",
                format!("{run:?}"),
                format!("the buffer has {} digests", other.len()),
            )
        })?;
        self.bits.extend_from_slice(bits);
        Ok(())
    }

    /// Appends a digest that is known to be of this origin.
    #[inline]
    pub(crate) fn push_bits(&mut self, bits: u64) {
        self.bits.push(bits);
    }

    /// Appends digests that are known to be of this origin.
    pub(crate) fn extend_bits(&mut self, bits: &[u64]) {
        self.bits.extend_from_slice(bits);
    }

    /// Takes the last digest back.
    pub fn pop(&mut self) {
        self.bits.pop();
    }

    /// Forgets the digests and keeps the memory.
    pub fn clear(&mut self) {
        self.bits.clear();
    }

    /// How many digests there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bits.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// The origin of every digest in the buffer.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.hasher.origin(self.key_type)
    }

    /// Digest `i`, in the order they were pushed, if there are so many.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<Digest> {
        let bits = *self.bits.get(i)?;
        let origin = self.origin();
        Some(Digest { bits, origin })
    }

    /// The 64 bits of each digest, in the order they were pushed.
    #[must_use]
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }
}

/// The constants of [`mix_int`].
const MIX_SEED: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 divided by the golden ratio
const MIX_1: u64 = 0xd6e8_feb8_6659_fd93;
const MIX_2: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// The frozen mix of a 64-bit integer under a seed: a bijection of the
/// integers for every seed, so no two of them share a digest.
///
/// `x = key + seed·K; x ^= x >> 32; x *= M1; x ^= x >> 29; x *= M2; x ^= x >> 32`
/// with wrapping arithmetic. The shape is the xor-shift-multiply finaliser of
/// MurmurHash3 (Appleby); every step is invertible. The constants are odd and
/// belong to the format.
#[inline(always)]
#[must_use]
pub const fn mix_int(key: i64, seed: u64) -> u64 {
    let mut x = key
        .cast_unsigned()
        .wrapping_add(seed.wrapping_mul(MIX_SEED));
    x ^= x >> 32;
    x = x.wrapping_mul(MIX_1);
    x ^= x >> 29;
    x = x.wrapping_mul(MIX_2);
    x ^ (x >> 32)
}

/// The integer that [`mix_int`] makes a digest of under a seed: its inverse.
#[inline(always)]
#[must_use]
pub const fn unmix_int(digest: u64, seed: u64) -> i64 {
    // The inverses of the two constants of `mix_int` modulo 2^64.
    const M1: u64 = inverse(MIX_1);
    const M2: u64 = inverse(MIX_2);
    let mut x = digest ^ (digest >> 32);
    x = x.wrapping_mul(M2);
    // Undoes `x ^= x >> 29`: the bits that were mixed in were mixed themselves.
    x ^= (x >> 29) ^ (x >> 58);
    x = x.wrapping_mul(M1);
    x ^= x >> 32;
    x.wrapping_sub(seed.wrapping_mul(MIX_SEED)).cast_signed()
}

/// The inverse of an odd number modulo 2^64, by Newton's iteration: each step
/// doubles the bits that are right, and an odd number has three from the start.
const fn inverse(odd: u64) -> u64 {
    let (mut x, mut steps) = (odd, 0);
    while steps < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)));
        steps += 1;
    }
    x
}

mod sealed {
    pub trait Sealed {}
}

/// The type of key that a typed filter is for: [`Bytes`] or [`Int`].
pub trait KeyKind: sealed::Sealed + Send + Sync + 'static {
    /// The same at run time.
    const TYPE: KeyType;
}

/// Marks a filter of byte keys, such as `BloomFilter<Bytes>`.
#[derive(Debug, Clone, Copy)]
pub enum Bytes {}

/// Marks a filter of 64-bit integer keys, such as `BloomFilter<Int>`.
#[derive(Debug, Clone, Copy)]
pub enum Int {}

impl sealed::Sealed for Bytes {}
impl sealed::Sealed for Int {}

impl KeyKind for Bytes {
    const TYPE: KeyType = KeyType::Bytes;
}

impl KeyKind for Int {
    const TYPE: KeyType = KeyType::Int;
}

/// A value that can be a key of kind `K`: everything that is bytes
/// (`str` is its UTF-8) for [`Bytes`], every integer type that fits into an
/// `i64` without loss for [`Int`]. There is none for `u64`: convert it with
/// `i64::try_from`, so that no value is wrapped unseen.
pub trait Key<K: KeyKind> {
    /// The 64 bits of this key's digest under a hasher.
    fn digest_bits(&self, hasher: &KeyHasher) -> u64;

    /// The same for many keys: `digests[i]` becomes that of `keys[i]`. Stops
    /// at the end of the shorter one.
    #[inline]
    fn digest_bits_of_all(keys: &[Self], hasher: &KeyHasher, digests: &mut [u64])
    where
        Self: Sized,
    {
        for (digest, key) in digests.iter_mut().zip(keys) {
            *digest = key.digest_bits(hasher);
        }
    }
}

impl<T: AsRef<[u8]> + ?Sized> Key<Bytes> for T {
    #[inline]
    fn digest_bits(&self, hasher: &KeyHasher) -> u64 {
        hasher.bits_of_bytes(self.as_ref())
    }
}

/// [`mix_int`] of many keys.
struct MixAll<'a, Q> {
    keys: &'a [Q],
    seed: u64,
    digests: &'a mut [u64],
}

impl<Q: Copy + Into<i64>> Work for MixAll<'_, Q> {
    type Result = ();

    #[inline(always)]
    fn run<C: Cpu>(self, _: C) {
        for (digest, &key) in self.digests.iter_mut().zip(self.keys) {
            *digest = mix_int(key.into(), self.seed);
        }
    }
}

macro_rules! int_keys {
    ($($int:ty),*) => {$(
        impl Key<Int> for $int {
            #[inline]
            fn digest_bits(&self, hasher: &KeyHasher) -> u64 {
                hasher.bits_of_int(i64::from(*self))
            }

            #[inline]
            fn digest_bits_of_all(keys: &[Self], hasher: &KeyHasher, digests: &mut [u64]) {
                match *hasher {
                    KeyHasher::Portable { seed } => wide(MixAll { keys, seed, digests }),
                    KeyHasher::Keyed { .. } => {
                        for (digest, key) in digests.iter_mut().zip(keys) {
                            *digest = key.digest_bits(hasher);
                        }
                    }
                }
            }
        }
    )*};
}
int_keys!(i8, i16, i32, i64, u8, u16, u32);

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the xxHash specification for XXH3-64 (empty input) and
    /// values that later versions must keep.
    #[test]
    fn portable_bytes_are_xxh3() {
        let hasher = KeyHasher::default();
        assert_eq!(hasher.digest_bytes(b"").bits(), 0x2d06_8005_38d3_94c2);
        assert_ne!(
            hasher.digest_bytes(b"a").bits(),
            hasher.digest_bytes(b"a\0").bits()
        );
    }

    #[test]
    fn seed_zero_is_the_unseeded_hash() {
        for len in [0, 1, 3, 8, 9, 16, 17, 128, 129, 240, 241, 5000] {
            let key = vec![b'x'; len];
            assert_eq!(
                XxHash3_64::oneshot(&key),
                XxHash3_64::oneshot_with_seed(0, &key)
            );
        }
    }

    #[test]
    fn short_keys_are_distinct() {
        for hasher in [
            KeyHasher::default(),
            KeyHasher::Portable { seed: 7 },
            KeyHasher::Keyed {
                secret: Secret::new([3; 16]),
            },
        ] {
            let mut seen = std::collections::HashSet::new();
            for key in ["", "a", "\0", "a\0", "\0a", "aa"] {
                assert!(seen.insert(hasher.digest_bytes(key.as_bytes()).bits()));
            }
        }
    }

    /// The inverse of `mix_int`, step by step: its existence is the proof
    /// that integers never collide.
    fn unmix(mut x: u64, seed: u64) -> i64 {
        fn inverse(odd: u64) -> u64 {
            // Newton's iteration doubles the number of right low bits.
            (0..6).fold(odd, |y, _| {
                y.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(y)))
            })
        }
        x ^= x >> 32;
        x = x.wrapping_mul(inverse(0xc2b2_ae3d_27d4_eb4f));
        x ^= (x >> 29) ^ (x >> 58);
        x = x.wrapping_mul(inverse(0xd6e8_feb8_6659_fd93));
        x ^= x >> 32;
        x.wrapping_sub(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .cast_signed()
    }

    proptest::proptest! {
        #![proptest_config(crate::testing::cases(256))]
        #[test]
        fn mix_int_is_a_bijection(key: i64, seed: u64) {
            proptest::prop_assert_eq!(unmix(mix_int(key, seed), seed), key);
        }
    }

    #[test]
    fn digests_refuse_the_other_key_type() {
        let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
        assert!(digests.push_bytes(b"7").is_err());
        digests.push_int(7).unwrap();
        assert_eq!(digests.bits(), [mix_int(7, 0)]);
    }

    #[test]
    fn the_mix_can_be_undone() {
        for (i, seed) in (0..2000u64).zip([0, 1, u64::MAX, 77].into_iter().cycle()) {
            let near = i.cast_signed() - 1000;
            for key in [
                near,
                mix_int(near, 5).cast_signed(),
                i64::MAX.wrapping_sub(near),
                1 << (i % 64),
            ] {
                assert_eq!(unmix_int(mix_int(key, seed), seed), key);
            }
        }
    }

    #[test]
    fn origins_differ_by_hasher_seed_and_type() {
        let hashers = [
            KeyHasher::default(),
            KeyHasher::Portable { seed: 1 },
            KeyHasher::Keyed {
                secret: Secret::new([0; 16]),
            },
            KeyHasher::Keyed {
                secret: Secret::new([1; 16]),
            },
        ];
        let mut origins = Vec::new();
        for hasher in &hashers {
            for key_type in [KeyType::Bytes, KeyType::Int] {
                let origin = hasher.origin(key_type);
                assert!(!origins.contains(&origin));
                origins.push(origin);
            }
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        assert_eq!(format!("{:?}", Secret::new([65; 16])), "Secret(..)");
    }
}
