//! The set of the digests themselves, for as long as they fit into memory.
//!
//! Owns [`DigestSet`]: an open-addressing table with linear probing. A slot
//! is the digest, 0 is "empty" (the digest 0 has a flag of its own). The
//! first slot of a digest is `(digest * spread) * slots >> 64`, so a table
//! keeps its digests in the order of `digest * spread` but for collisions:
//! growing and pouring read and write memory in order.
//!
//! `spread` is odd and random for each set: whoever chooses keys cannot make
//! them all want the same slot.

use std::hash::{BuildHasher, RandomState};

use crate::arch::prefetch::prefetch;
use crate::error::{Error, FormatError, Result};
use crate::geometry::block_of;
use crate::hash::Digests;
use crate::identity::{About, Identity};
use crate::traits::{Bits, BitsMut, Insert};
use crate::words::Words;

/// A table is at most `FULL_NUM / FULL_DEN` full: linear probing then looks
/// at 8.5 slots for an absent digest (Knuth, volume 3, 6.4).
const FULL_NUM: u64 = 3;
const FULL_DEN: u64 = 4;

/// Slots of the smallest table.
const LEAST_SLOTS: u64 = 4;

/// Slots of a new set.
const FIRST_SLOTS: u64 = 64;

/// A table from a file in which a digest is farther from its first slot is
/// spread anew. By chance alone the longest way is some hundreds of slots,
/// even for 10^10 digests; a file may come from somebody who wants every
/// search to be long.
const LONGEST_WAY: usize = 1 << 16;

/// Digests whose slots are under way at once (see `arch::batch`). Divides 64.
const GROUP: usize = 32;

/// Digests that are poured at once.
const BATCH: usize = 1024;

/// An exact set of digests. Asked about an absent key it is wrong with
/// probability `len / 2^64` for byte keys, and never for integers under the
/// portable hasher.
///
/// It takes 8 bytes a slot and between 10.7 and 21.4 bytes a digest; while it
/// doubles, the old and the new table both exist.
#[derive(Debug)]
pub struct DigestSet {
    slots: Words,
    spread: u64,
    has_zero: bool,
    len: u64,
    about: About,
}

impl DigestSet {
    /// An empty set of keys of the given identity.
    ///
    /// # Errors
    /// If the memory cannot be had.
    pub fn new(identity: Identity) -> Result<Self> {
        Self::with_slots(identity, FIRST_SLOTS)
    }

    /// An empty set whose table has a given number of slots (8 bytes each),
    /// so that its doublings end at a size of the caller's choice.
    ///
    /// # Errors
    /// If `slots` is below 4, or the memory cannot be had.
    pub fn with_slots(identity: Identity, slots: u64) -> Result<Self> {
        let spread = RandomState::new().hash_one(slots) | 1;
        Self::with_spread(identity, slots, spread)
    }

    pub(crate) fn with_spread(identity: Identity, slots: u64, spread: u64) -> Result<Self> {
        if slots < LEAST_SLOTS {
            let expected = format!("at least {LEAST_SLOTS}");
            return Err(Error::parameter("slots", slots, expected));
        }
        Ok(Self {
            slots: Words::zeroed(slots)?,
            spread,
            has_zero: false,
            len: 0,
            about: About::new(identity, None),
        })
    }

    /// Puts together what a file held, after checking that the table is one
    /// that this type could have made.
    pub(crate) fn from_parts(
        about: About,
        slots: Words,
        spread: u64,
        has_zero: bool,
    ) -> Result<Self> {
        let used = slots.get().iter().filter(|&&slot| slot != 0).count() as u64;
        let len = used + u64::from(has_zero);
        let set = Self {
            slots,
            spread,
            has_zero,
            len,
            about,
        };
        let refuse = |name, got: String, expected: &str| {
            Err(Error::Format(FormatError::Field {
                name,
                got,
                expected: expected.to_owned(),
            }))
        };
        // A table without an empty slot would be searched for ever.
        if set.slots() < LEAST_SLOTS || used > set.most() {
            let got = format!("{used} of {} used", set.slots());
            return refuse("slots", got, "a table that is at most three quarters full");
        }
        if spread & 1 == 0 {
            return refuse("spread", spread.to_string(), "an odd number");
        }
        match set.longest_way() {
            None => refuse(
                "slots",
                "a digest where no search finds it".to_owned(),
                "every digest at or behind its first slot",
            ),
            Some(way) if way > LONGEST_WAY => set.spread_anew(),
            Some(_) => Ok(set),
        }
    }

    /// The most slots between a digest's first slot and its place; `None` if
    /// one of them is empty, so that the digest would not be found. Takes
    /// time linear in the slots, whatever they hold.
    fn longest_way(&self) -> Option<usize> {
        let slots = self.slots.get();
        // A run of used slots may go around the end: begin at a gap.
        let gap = slots.iter().position(|&slot| slot == 0)?;
        let (mut run, mut longest) = (0, 0);
        for at in (gap..slots.len()).chain(0..gap) {
            let digest = slots[at];
            if digest == 0 {
                run = 0;
                continue;
            }
            let first = self.first_slot(digest);
            let way = if at >= first {
                at - first
            } else {
                at + slots.len() - first
            };
            if way > run {
                return None;
            }
            longest = longest.max(way);
            run += 1;
        }
        Some(longest)
    }

    /// The same set under another spread.
    fn spread_anew(self) -> Result<Self> {
        let mut anew = Self::with_slots(self.about.identity.clone(), self.slots())?;
        for digest in self.iter() {
            anew.insert_bits(digest)?;
        }
        anew.about = self.about;
        Ok(anew)
    }

    /// Distinct digests in the set.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Slots of the table, 8 bytes each.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots.get().len() as u64
    }

    /// The least slots of a table that takes so many digests without doubling.
    #[must_use]
    pub const fn slots_for(digests: u64) -> u64 {
        // Not `4 n / 3` at once: that overflows for the largest counts.
        let (whole, rest) = (digests / FULL_NUM, digests % FULL_NUM);
        let slots = whole
            .saturating_mul(FULL_DEN)
            .saturating_add((rest * FULL_DEN).div_ceil(FULL_NUM));
        if slots < LEAST_SLOTS {
            LEAST_SLOTS
        } else {
            slots
        }
    }

    /// How many more digests fit before the table doubles.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.most().saturating_sub(self.len)
    }

    /// Makes room for `more` digests now, by doubling.
    ///
    /// # Errors
    /// If the memory cannot be had; the set is then as it was.
    pub fn reserve(&mut self, more: u64) -> Result<()> {
        while self.room() < more {
            self.double()?;
        }
        Ok(())
    }

    fn most(&self) -> u64 {
        most_in(self.slots())
    }

    pub(crate) const fn spread(&self) -> u64 {
        self.spread
    }

    pub(crate) const fn has_zero(&self) -> bool {
        self.has_zero
    }

    pub(crate) const fn words(&self) -> &Words {
        &self.slots
    }

    /// The 64 bits of every digest, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let zero = self.has_zero.then_some(0);
        let others = self.slots.get().iter().copied().filter(|&slot| slot != 0);
        zero.into_iter().chain(others)
    }

    /// Inserts every digest of the set into a filter of the same origin, in
    /// batches, in the order of the table. See also [`crate::AnyFilter::fill_from`].
    ///
    /// # Errors
    /// If the origins differ, or the filter refuses.
    pub fn pour_into(&self, filter: &mut dyn Insert) -> Result<()> {
        pour(&self.about.identity, self.iter(), filter)
    }

    /// The same in ascending order of the digests, so that a filter in which
    /// the order shows is the same for every set of the same digests. The set
    /// is sorted in its own memory and used up.
    ///
    /// # Errors
    /// As for [`Self::pour_into`].
    pub(crate) fn pour_in_order(mut self, filter: &mut dyn Insert) -> Result<()> {
        let table = self.slots.get_mut()?;
        let mut used = 0;
        for at in 0..table.len() {
            // Written in any case, kept only if the slot is used.
            table[used] = table[at];
            used += usize::from(table[used] != 0);
        }
        let digests = &mut table[..used];
        digests.sort_unstable();
        let identity = &self.about.identity;
        let zero: &[u64] = if self.has_zero { &[0] } else { &[] };
        let mut batch = Digests::new(identity.hasher.clone(), identity.key_type);
        let mut mask = [0; BATCH / 64];
        for digests in [zero].into_iter().chain(digests.chunks(BATCH)) {
            batch.clear();
            batch.extend_bits(digests);
            filter.insert_digests(&batch, &mut mask)?;
        }
        Ok(())
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the table is in memory, so its indices fit a usize"
    )]
    #[inline(always)]
    fn first_slot(&self, digest: u64) -> usize {
        block_of(
            digest.wrapping_mul(self.spread),
            self.slots.get().len() as u64,
        ) as usize
    }

    /// The slot that holds the digest, or the empty one where it belongs.
    #[inline(always)]
    fn find(&self, digest: u64) -> usize {
        let slots = self.slots.get();
        let mut at = self.first_slot(digest);
        // Ends: a quarter of the slots is empty.
        while slots[at] != 0 && slots[at] != digest {
            at += 1;
            if at == slots.len() {
                at = 0;
            }
        }
        at
    }

    /// Inserts a group of digests, for all of which there is room; bit `i`
    /// tells whether digest `i` was new.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the table is in memory, so its indices fit a usize"
    )]
    #[inline]
    fn insert_group(&mut self, digests: &[u64]) -> Result<u64> {
        let spread = self.spread;
        let mut has_zero = self.has_zero;
        let slots = self.slots.get_mut()?;
        let count = slots.len() as u64;
        let mut answers = 0;
        for (i, &digest) in digests.iter().enumerate() {
            if digest == 0 {
                answers |= u64::from(!has_zero) << i;
                has_zero = true;
                continue;
            }
            let mut at = block_of(digest.wrapping_mul(spread), count) as usize;
            // Ends: a quarter of the slots is empty. The one branch here that
            // cannot be foreseen is that of the loop.
            let found = loop {
                let found = slots[at];
                if found == 0 || found == digest {
                    break found;
                }
                at += 1;
                if at == slots.len() {
                    at = 0;
                }
            };
            slots[at] = digest;
            answers |= u64::from(found == 0) << i;
        }
        self.has_zero = has_zero;
        let new = u64::from(answers.count_ones());
        self.len += new;
        self.about.count(new);
        Ok(answers)
    }

    /// Moves everything into a table of twice the slots.
    fn double(&mut self) -> Result<()> {
        let slots = self.slots().saturating_mul(2);
        let mut next = Self::with_spread(self.about.identity.clone(), slots, self.spread)?;
        let table = next.slots.get_mut()?;
        let last = table.len();
        for &digest in self.slots.get().iter().filter(|&&slot| slot != 0) {
            let mut at = {
                let first = block_of(digest.wrapping_mul(self.spread), slots);
                usize::try_from(first).unwrap_or(0)
            };
            while table[at] != 0 {
                at += 1;
                if at == last {
                    at = 0;
                }
            }
            table[at] = digest;
        }
        self.slots = next.slots;
        Ok(())
    }

    /// Calls `answer` for every group of digests in order, with the slots of
    /// the next group under way, and puts what it says into the mask.
    #[inline(always)]
    fn pipelined<S: AsRef<Self>>(
        set: &mut S,
        digests: &[u64],
        mask: &mut [u64],
        mut answer: impl FnMut(&mut S, &[u64]) -> Result<u64>,
    ) -> Result<()> {
        let fetch = |set: &Self, group: &[u64]| {
            for &digest in group {
                prefetch(
                    set.slots
                        .get()
                        .as_ptr()
                        .wrapping_add(set.first_slot(digest)),
                );
            }
        };
        let mut groups = digests.chunks(GROUP).enumerate().peekable();
        if let Some((_, first)) = groups.peek() {
            fetch((*set).as_ref(), first);
        }
        while let Some((number, group)) = groups.next() {
            if let Some((_, next)) = groups.peek() {
                fetch((*set).as_ref(), next);
            }
            let place = number * GROUP;
            mask[place / 64] |= answer(set, group)? << (place % 64);
        }
        Ok(())
    }
}

impl AsRef<Self> for DigestSet {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Calls `answer` for every digest of a group; bit `i` of the result is what
/// it says of digest `i`.
#[inline(always)]
fn one_by_one(group: &[u64], mut answer: impl FnMut(u64) -> Result<bool>) -> Result<u64> {
    let mut answers = 0;
    for (i, &digest) in group.iter().enumerate() {
        answers |= u64::from(answer(digest)?) << i;
    }
    Ok(answers)
}

/// Inserts digests of keys of an identity into a filter, in batches.
fn pour(
    identity: &Identity,
    digests: impl Iterator<Item = u64>,
    filter: &mut dyn Insert,
) -> Result<()> {
    let mut batch = Digests::new(identity.hasher.clone(), identity.key_type);
    let mut mask = [0; BATCH / 64];
    for digest in digests {
        batch.push_bits(digest);
        if batch.len() == BATCH {
            filter.insert_digests(&batch, &mut mask)?;
            batch.clear();
        }
    }
    filter.insert_digests(&batch, &mut mask)
}

/// Digests that fit into a table of so many slots.
pub(crate) const fn most_in(slots: u64) -> u64 {
    slots / FULL_DEN * FULL_NUM + slots % FULL_DEN * FULL_NUM / FULL_DEN
}

impl Bits for DigestSet {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    #[inline]
    fn contains_bits(&self, digest: u64) -> bool {
        if digest == 0 {
            return self.has_zero;
        }
        self.slots.get()[self.find(digest)] != 0
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        let mut set = self;
        let answered = Self::pipelined(&mut set, digests, mask, |set, group| {
            one_by_one(group, |digest| Ok(set.contains_bits(digest)))
        });
        debug_assert!(answered.is_ok(), "asking cannot fail");
    }
}

impl BitsMut for DigestSet {
    #[inline]
    fn insert_bits(&mut self, digest: u64) -> Result<bool> {
        if digest == 0 {
            let new = !self.has_zero;
            self.has_zero = true;
            self.len += u64::from(new);
            self.about.count(u64::from(new));
            return Ok(new);
        }
        let mut at = self.find(digest);
        if self.slots.get()[at] != 0 {
            return Ok(false);
        }
        if self.room() == 0 {
            self.double()?;
            at = self.find(digest);
        }
        self.slots.get_mut()?[at] = digest;
        self.len += 1;
        self.about.count(1);
        Ok(true)
    }

    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        let mut set = self;
        Self::pipelined(&mut set, digests, mask, |set, group| {
            if set.room() >= group.len() as u64 {
                return set.insert_group(group);
            }
            one_by_one(group, |digest| set.insert_bits(digest))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::hash::KeyType;
    use crate::traits::Contains;

    fn identity() -> Identity {
        Identity::new(KeyType::Int)
    }

    proptest! {
        #![proptest_config(crate::testing::cases(256))]
        #[test]
        fn it_is_a_set(
            digests in proptest::collection::vec(prop_oneof![0u64..50, any::<u64>(), Just(u64::MAX)], 0..600),
            slots in 4u64..100,
        ) {
            let mut set = DigestSet::with_slots(identity(), slots).unwrap();
            let mut model = HashSet::new();
            for &digest in &digests {
                prop_assert_eq!(set.contains_bits(digest), model.contains(&digest));
                prop_assert_eq!(set.insert_bits(digest).unwrap(), model.insert(digest));
                prop_assert_eq!(set.len(), model.len() as u64);
            }
            prop_assert_eq!(set.iter().collect::<HashSet<_>>(), model);
            prop_assert!(set.iter().count() as u64 == set.len());
        }

        #[test]
        fn batches_answer_as_single_calls(keys in proptest::collection::vec(0i64..200, 0..500)) {
            let mut single = DigestSet::new(identity()).unwrap();
            let mut batch = DigestSet::new(identity()).unwrap();
            let mut digests = Digests::new(identity().hasher, KeyType::Int);
            for &key in &keys {
                digests.push_int(key).unwrap();
            }
            let mut mask = [0; 8];
            batch.insert_digests(&digests, &mut mask).unwrap();
            for (i, &bits) in digests.bits().iter().enumerate() {
                prop_assert_eq!(single.insert_bits(bits).unwrap(), mask[i / 64] >> (i % 64) & 1 == 1);
            }
            batch.contains_digests(&digests, &mut mask).unwrap();
            prop_assert_eq!(mask.iter().map(|m| m.count_ones() as usize).sum::<usize>(), keys.len());
        }
    }

    #[test]
    fn a_table_is_made_for_a_number_of_digests() {
        assert_eq!(DigestSet::slots_for(0), LEAST_SLOTS);
        for digests in (1..1000).chain([u64::MAX / 4, 1 << 40]) {
            let slots = DigestSet::slots_for(digests);
            assert!(most_in(slots) >= digests, "{digests}");
            assert!(slots == LEAST_SLOTS || most_in(slots - 1) < digests);
        }
        assert_eq!(DigestSet::slots_for(u64::MAX), u64::MAX);
    }

    /// A crowded filter that counts what changes a bit counts by the order of its keys.
    #[test]
    fn a_filter_filled_from_a_set_does_not_depend_on_the_spread() {
        let set = |spread| {
            let mut set = DigestSet::with_spread(identity(), 4096, spread).unwrap();
            for digest in 0..3000u64 {
                set.insert_bits(digest.wrapping_mul(0x9e37_79b9_7f4a_7c15))
                    .unwrap();
            }
            set
        };
        let promise = crate::Promise {
            items: 100,
            error: 0.5,
        };
        let empty = || crate::Bloom::sized(identity(), promise).unwrap();
        let filled = |spread| {
            let mut filter = crate::AnyFilter::from(empty());
            filter.fill_from(set(spread)).unwrap();
            let count = Contains::about(&filter).insertions();
            // Not empty any more: nobody knows which of the digests are new.
            filter.fill_from(set(spread)).unwrap();
            assert_eq!(Contains::about(&filter).insertions(), count);
            count.unwrap()
        };
        assert_eq!(filled(1), 3000);
        assert_eq!(filled(0xdead_beef_1234_5677), 3000);
        let in_order = |spread| {
            let mut filter = empty();
            set(spread).pour_in_order(&mut filter).unwrap();
            filter.about().insertions().unwrap()
        };
        assert_eq!(in_order(1), in_order(0xdead_beef_1234_5677));
        assert!((100..2500).contains(&in_order(1)));
    }

    #[test]
    fn a_table_from_a_file_must_have_empty_slots() {
        for used in 0..=16usize {
            let mut words = Words::zeroed(16).unwrap();
            words.get_mut().unwrap()[..used].fill(9);
            let about = About::new(identity(), None);
            let set = DigestSet::from_parts(about, words, 1, true);
            assert_eq!(set.is_ok(), used <= 12, "{used}");
        }
    }

    #[test]
    fn a_table_from_a_file_must_have_its_digests_where_they_are_found() {
        let digests = [7u64, 1 << 63, u64::MAX, u64::MAX - 1, 3 << 62];
        let mut set = DigestSet::with_spread(identity(), 8, 1).unwrap();
        for digest in digests {
            set.insert_bits(digest).unwrap();
        }
        let slots = set.slots.get().to_vec();
        for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))) {
            let mut words = Words::zeroed(8).unwrap();
            words.get_mut().unwrap().copy_from_slice(&slots);
            words.get_mut().unwrap().swap(from, to);
            let about = About::new(identity(), None);
            let set = DigestSet::from_parts(about, words, 1, false);
            // Accepted tables answer rightly; the others would not.
            let set = match set {
                Ok(set) => set,
                Err(error) => {
                    assert!(error.to_string().contains("slots"), "{error}");
                    assert_ne!(from, to);
                    continue;
                }
            };
            assert!(digests.iter().all(|&digest| set.contains_bits(digest)));
        }
    }

    /// A file made so that every search is long gets a table in which none is.
    #[test]
    fn a_hostile_table_is_spread_anew() {
        let count = LONGEST_WAY + 2;
        let mut words = Words::zeroed(1 << 17).unwrap();
        for (slot, digest) in words.get_mut().unwrap()[..count].iter_mut().zip(1..) {
            *slot = digest; // under this spread all of them want the first slot
        }
        let about = About::new(identity(), None);
        let set = DigestSet::from_parts(about, words, 1, true).unwrap();
        assert_eq!(set.len(), count as u64 + 1);
        assert!(set.longest_way().unwrap() < LONGEST_WAY);
        assert!((0..=count as u64).all(|digest| set.contains_bits(digest)));
    }

    #[test]
    fn digests_that_agree_in_their_high_bits_do_not_pile_up() {
        // A fixed spread, so that the figure below is a fact and not a bet.
        let spread = 0x9e37_79b9_7f4a_7c15;
        let mut set = DigestSet::with_spread(identity(), 1 << 16, spread).unwrap();
        for low in 0..20_000 {
            set.insert_bits(0xabcd_ef00_0000_0000 | low).unwrap();
        }
        let longest = set
            .iter()
            .map(|digest| {
                let (at, first) = (set.find(digest), set.first_slot(digest));
                (at + (1 << 16) - first) % (1 << 16)
            })
            .max();
        assert!(longest < Some(2000), "{longest:?}");
    }
}
