//! Keys whose membership is known without keeping them.
//!
//! Owns the forms a key comes in ([`Ints`], [`Strings`]) and the choice of keys ([`Source`]). Key
//! number `i` is a bijection of `i`: the first `items` are members, all later ones are absent, and
//! none repeats.

use std::hash::Hash;
use std::hint::black_box;
use std::ops::Range;

use foldhash::fast::FixedState;
use parquet::data_type::AsBytes;

use crate::lines::{SplitMix64, mix64};

/// Bytes of a key of [`Strings`].
pub(crate) const STRING_BYTES: usize = 40;

/// A buffer of keys of one form.
pub(crate) trait Keys: Default + 'static {
    /// One key, in the form filters take it.
    type Key: ?Sized + Hash + AsBytes + 'static;
    /// How many keys one timed run asks: enough to outweigh a cold start, few enough for a run to
    /// find a quiet moment of the machine, and for the keys not to crowd the filter out of the cache.
    const RUN: usize;

    /// Forgets the keys.
    fn clear(&mut self);
    /// Appends the key that stands for a word; different words give different keys.
    fn push(&mut self, word: u64);
    /// How many keys there are.
    fn len(&self) -> usize;
    /// The keys in order.
    fn iter(&self) -> impl Iterator<Item = &Self::Key>;
    /// The key as a 64-bit word, for filters that take nothing else: hashed if it is longer.
    fn word(key: &Self::Key) -> u64;
}

/// 64-bit integers.
#[derive(Default)]
pub(crate) struct Ints(pub(crate) Vec<i64>);

impl Keys for Ints {
    type Key = i64;
    const RUN: usize = 1 << 19;

    fn clear(&mut self) {
        self.0.clear();
    }

    fn push(&mut self, word: u64) {
        self.0.push(word.cast_signed());
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn iter(&self) -> impl Iterator<Item = &i64> {
        self.0.iter()
    }

    fn word(key: &i64) -> u64 {
        key.cast_unsigned()
    }
}

/// Strings of [`STRING_BYTES`] bytes, one after the other.
pub(crate) struct Strings {
    bytes: Vec<u8>,
    /// Hidden from the compiler: no hash function may be specialised for one length.
    key_bytes: usize,
}

impl Default for Strings {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            key_bytes: black_box(STRING_BYTES),
        }
    }
}

impl Keys for Strings {
    type Key = [u8];
    const RUN: usize = 1 << 16;

    fn clear(&mut self) {
        self.bytes.clear();
    }

    fn push(&mut self, word: u64) {
        let mut rest = SplitMix64(word);
        self.bytes.extend_from_slice(&word.to_le_bytes());
        for _ in 1..STRING_BYTES / 8 {
            self.bytes.extend_from_slice(&rest.next().to_le_bytes());
        }
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.key_bytes
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.key_bytes)
    }

    fn word(key: &[u8]) -> u64 {
        use std::hash::BuildHasher;
        FixedState::default().hash_one(key)
    }
}

/// Draws keys to insert and to ask. The same seed draws the same keys.
pub(crate) struct Source {
    base: u64,
    items: u64,
    absent: u64,
    draws: SplitMix64,
}

impl Source {
    /// A source with `items` members.
    pub(crate) fn new(seed: u64, items: usize) -> Self {
        let items = items as u64;
        let mut draws = SplitMix64(seed);
        Self {
            base: draws.next(),
            items,
            absent: items,
            draws,
        }
    }

    /// How many members there are.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    fn word(&self, index: u64) -> u64 {
        // The golden ratio in 64 bits; odd, so that no word repeats.
        mix64(
            self.base
                .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        )
    }

    /// The members with these numbers.
    pub(crate) fn members(&self, numbers: Range<u64>, keys: &mut impl Keys) {
        keys.clear();
        numbers.for_each(|number| keys.push(self.word(number)));
    }

    /// Random members. Returns how many: all.
    pub(crate) fn present(&mut self, count: usize, keys: &mut impl Keys) -> usize {
        self.draw(count, |_| true, keys)
    }

    /// Keys that are no members and were not drawn before. Returns how many are members: none.
    pub(crate) fn absent(&mut self, count: usize, keys: &mut impl Keys) -> usize {
        self.draw(count, |_| false, keys)
    }

    /// Members and others in random order, half and half in the mean. Returns how many are members.
    pub(crate) fn half(&mut self, count: usize, keys: &mut impl Keys) -> usize {
        self.draw(count, |draws| draws.next() >> 63 == 1, keys)
    }

    fn draw(
        &mut self,
        count: usize,
        mut member: impl FnMut(&mut SplitMix64) -> bool,
        keys: &mut impl Keys,
    ) -> usize {
        keys.clear();
        let mut members = 0;
        for _ in 0..count {
            let number = if !member(&mut self.draws) {
                self.absent += 1;
                self.absent - 1
            } else {
                members += 1;
                self.draws.below(self.items)
            };
            keys.push(self.word(number));
        }
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn members_are_known<K: Keys>(to_owned: impl Fn(&K::Key) -> Vec<u8>) {
        let mut source = Source::new(7, 5_000);
        let mut keys = K::default();
        source.members(0..5_000, &mut keys);
        let members: HashSet<_> = keys.iter().map(&to_owned).collect();
        assert_eq!((members.len(), keys.len()), (5_000, 5_000));

        source.present(1_000, &mut keys);
        assert_eq!(keys.len(), 1_000);
        assert!(keys.iter().all(|key| members.contains(&to_owned(key))));

        let mut seen = HashSet::new();
        for _ in 0..2 {
            source.absent(1_000, &mut keys);
            for key in keys.iter().map(&to_owned) {
                assert!(!members.contains(&key));
                assert!(seen.insert(key));
            }
        }
        assert_eq!(seen.len(), 2_000);

        let present = source.half(10_000, &mut keys);
        let counted = keys.iter().filter(|key| members.contains(&to_owned(key)));
        assert_eq!(counted.count(), present);
        // Binomial: sigma = 50, five of them 250.
        assert!(present.abs_diff(5_000) <= 250, "{present}");
    }

    #[test]
    fn members_are_known_for_integers_and_strings() {
        members_are_known::<Ints>(|key| key.to_le_bytes().to_vec());
        members_are_known::<Strings>(<[u8]>::to_vec);
    }
}
