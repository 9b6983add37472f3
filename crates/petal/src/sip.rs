//! SipHash-1-3 with 128 bits, of one key or of many in step.
//!
//! Owns how keys of different lengths are laid beside each other. The rounds
//! are `arch::sip`'s, those of a single key the `siphasher` crate's. For what
//! compares 128 bits instead of keys; filters work on digests of 64 bits, which
//! are `hash`'s.

use std::fmt;

use siphasher::sip128::SipHasher13;

use crate::arch::sip::{Columns, LANES, MOST_WORDS, SipKernel};

/// SipHash-1-3 with 128 bits under a secret key: for one key, or for many at
/// once ([`Self::append`]), which is faster where the CPU has wide vectors. (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.)
#[derive(Clone)]
pub struct Sip128 {
    one: SipHasher13,
    key: [u64; 2],
    kernel: Option<SipKernel>,
}

impl fmt::Debug for Sip128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sip128(..)")
    }
}

impl Sip128 {
    /// Under a key that strangers cannot guess.
    #[must_use]
    pub fn new(key: [u8; 16]) -> Self {
        let [low, high] = [0, 8].map(|at| word(&key[at..at + 8]));
        Self {
            one: SipHasher13::new_with_key(&key),
            key: [low, high],
            kernel: SipKernel::all().next(),
        }
    }

    /// The hash of a key: its low and its high 64 bits.
    #[inline]
    #[must_use]
    pub fn hash(&self, key: &[u8]) -> [u64; 2] {
        let hash = self.one.hash(key);
        [hash.h1, hash.h2]
    }

    /// Appends to `out` what `fill` pushes: the hashes of keys and values of
    /// its own, in that order.
    pub fn append<T: From<[u64; 2]>>(
        &self,
        out: &mut Vec<T>,
        fill: impl FnOnce(&mut Sip128Batch<'_, T>),
    ) {
        let mut batch = Sip128Batch {
            hasher: self,
            out,
            columns: Columns {
                words: [[0; LANES]; MOST_WORDS],
                used: [0; LANES],
            },
            places: [0; LANES],
            waiting: 0,
        };
        fill(&mut batch);
        batch.finish();
    }
}

/// Keys on their way through [`Sip128::append`]. Each is copied when it is
/// pushed.
pub struct Sip128Batch<'a, T> {
    hasher: &'a Sip128,
    out: &'a mut Vec<T>,
    columns: Columns,
    /// Where in `out` the hash of each lane belongs.
    places: [usize; LANES],
    /// Lanes in use.
    waiting: usize,
}

impl<T> fmt::Debug for Sip128Batch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sip128Batch")
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

impl<T: From<[u64; 2]>> Sip128Batch<'_, T> {
    /// Appends a value as it is.
    #[inline]
    pub fn push_value(&mut self, value: T) {
        self.out.push(value);
    }

    /// Appends the hash of a key.
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        let words = key.len() / 8 + 1;
        let Some(kernel) = self.hasher.kernel.filter(|_| words <= MOST_WORDS) else {
            self.out.push(self.hasher.hash(key).into());
            return;
        };
        let lane = self.waiting;
        let (whole, rest) = key.as_chunks::<8>();
        for (column, &bytes) in self.columns.words.iter_mut().zip(whole) {
            column[lane] = u64::from_le_bytes(bytes);
        }
        // The last bytes, and in the highest byte the length.
        let last = match key.last_chunk::<8>() {
            Some(&bytes) if !rest.is_empty() => u64::from_le_bytes(bytes) >> (64 - 8 * rest.len()),
            Some(_) => 0,
            None => word(rest),
        };
        self.columns.words[words - 1][lane] = last | (key.len() as u64) << 56;
        self.columns.used[lane] = words as u64;
        // Something, until the hash is known.
        self.places[lane] = self.out.len();
        self.out.push([0; 2].into());
        self.waiting += 1;
        if self.waiting == LANES {
            self.hash(kernel);
        }
    }

    /// Hashes what is waiting.
    #[inline]
    fn hash(&mut self, kernel: SipKernel) {
        let [low, high] = kernel.hash(&self.columns, self.hasher.key);
        let hashes = low.into_iter().zip(high);
        for (&place, (low, high)) in self.places[..self.waiting].iter().zip(hashes) {
            self.out[place] = [low, high].into();
        }
        self.waiting = 0;
    }

    fn finish(&mut self) {
        if let Some(kernel) = self.hasher.kernel
            && self.waiting > 0
        {
            self.columns.used[self.waiting..].fill(0);
            self.hash(kernel);
        }
    }
}

/// Up to eight bytes, little-endian.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    let bytes = bytes.iter().take(8).rev();
    bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The `siphasher` crate is tested with the vectors of the reference
    /// implementation, so it stands for the specification here.
    fn expected(key: [u8; 16], keys: &[Vec<u8>]) -> Vec<[u64; 2]> {
        let one = SipHasher13::new_with_key(&key);
        keys.iter()
            .map(|key| one.hash(key))
            .map(|hash| [hash.h1, hash.h2])
            .collect()
    }

    fn batched(hasher: &Sip128, keys: &[Vec<u8>]) -> Vec<[u64; 2]> {
        let mut hashes = vec![[1, 2]];
        hasher.append(&mut hashes, |batch| {
            for key in keys {
                batch.push(key);
            }
            batch.push_value([3, 4]);
        });
        assert_eq!(hashes.remove(0), [1, 2]);
        assert_eq!(hashes.pop(), Some([3, 4]));
        hashes
    }

    proptest! {
        #![proptest_config(crate::testing::cases(256))]
        #[test]
        fn keys_in_step_have_the_hashes_of_keys_alone(
            key: [u8; 16],
            keys in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..40),
                    proptest::collection::vec(any::<u8>(), 200..300),
                ],
                0..70,
            ),
        ) {
            let expected = expected(key, &keys);
            let mut hasher = Sip128::new(key);
            let kernels: Vec<_> = SipKernel::all().map(Some).chain([None]).collect();
            for kernel in kernels {
                hasher.kernel = kernel;
                prop_assert_eq!(&batched(&hasher, &keys), &expected, "{:?}", kernel);
            }
            let alone: Vec<_> = keys.iter().map(|key| hasher.hash(key)).collect();
            prop_assert_eq!(alone, expected);
        }
    }

    #[test]
    fn every_length_is_hashed() {
        let text: Vec<u8> = (0..=u8::MAX).cycle().take(600).collect();
        let keys: Vec<Vec<u8>> = (0..600).map(|len| text[600 - len..].to_vec()).collect();
        let hasher = Sip128::new(*b"0123456789abcdef");
        assert_eq!(
            batched(&hasher, &keys),
            expected(*b"0123456789abcdef", &keys)
        );
    }
}
