//! Records to fingerprints: SipHash-1-3 with 128 bits under a random key.
//!
//! Owns the key of a run and the two values that stand for no key. The hash is [`Sip128`].

use bytemuck::{Pod, Zeroable};
use petal::{Sip128, Sip128Batch};

use crate::error::Error;

/// What stands for a record: 128 bits. Records of one run are taken for equal if, and only if,
/// their fingerprints are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Fingerprint {
    /// Decides the partition.
    pub(crate) high: u64,
    /// Decides the place in a table.
    pub(crate) low: u64,
}

impl Fingerprint {
    /// For a record that is to be left out as if it were not there.
    pub const LEFT_OUT: Self = Self { high: 0, low: 0 };

    /// For a record that has no key and equals no other: `dedup` and `except` keep it, `common`
    /// does not.
    pub const UNLIKE_ANY: Self = Self { high: 0, low: 1 };

    /// Whether it stands for a key.
    #[inline]
    pub(crate) const fn is_key(self) -> bool {
        self.high != 0 || self.low > 1
    }
}

/// Makes the fingerprints of one run.
///
/// The key is new for each run and known to nobody, so that the probability of two different
/// records having one fingerprint is 2^-128 for each pair, whoever chose them: below 1e-18 for
/// 10^10 records in all.
#[derive(Clone)]
pub struct Fingerprinter {
    hasher: Sip128,
}

impl std::fmt::Debug for Fingerprinter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fingerprinter(..)")
    }
}

impl Fingerprinter {
    /// With a random key from the system.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has none to give.
    pub fn random() -> Result<Self, Error> {
        let mut key = [0; 16];
        let mut filled = 0;
        while filled < key.len() {
            let flags = rustix::rand::GetRandomFlags::empty();
            match rustix::rand::getrandom(&mut key[filled..], flags) {
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(Error::io("get random bytes from the system", error)),
            }
        }
        Ok(Self::with_key(key))
    }

    pub(crate) fn with_key(key: [u8; 16]) -> Self {
        Self {
            hasher: Sip128::new(key),
        }
    }

    /// The fingerprint of a key. Never [`Fingerprint::LEFT_OUT`] or
    /// [`Fingerprint::UNLIKE_ANY`].
    #[inline]
    #[must_use]
    pub fn of(&self, key: &[u8]) -> Fingerprint {
        self.hasher.hash(key).into()
    }

    /// Appends to `out` the fingerprints of the keys that `fill` pushes, and the
    /// values, in that order. Faster than [`Self::of`] for many.
    #[inline]
    pub fn append(&self, out: &mut Vec<Fingerprint>, fill: impl FnOnce(&mut Fingerprints<'_>)) {
        self.hasher.append(out, fill);
    }
}

/// Keys that are hashed several at once.
pub type Fingerprints<'a> = Sip128Batch<'a, Fingerprint>;

impl From<[u64; 2]> for Fingerprint {
    /// Of the halves of a hash, the low one first.
    #[inline]
    fn from([low, high]: [u64; 2]) -> Self {
        // The two values with a meaning of their own move elsewhere: one more chance in 2^127.
        let high = if high == 0 && low <= 1 { 1 } else { high };
        Self { high, low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_from_run_to_run_and_are_not_shown() {
        let [one, other] = [0, 1].map(|_| Fingerprinter::random().unwrap());
        assert_ne!(one.of(b"x"), other.of(b"x"));
        assert_eq!(format!("{one:?}"), "Fingerprinter(..)");
    }

    #[test]
    fn values_with_a_meaning_are_no_keys() {
        assert!(!Fingerprint::LEFT_OUT.is_key() && !Fingerprint::UNLIKE_ANY.is_key());
        assert!(Fingerprint { high: 0, low: 2 }.is_key());
        assert!(Fingerprint { high: 1, low: 0 }.is_key());
    }
}
