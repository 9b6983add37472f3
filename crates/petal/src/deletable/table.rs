//! The slots of a quotient filter, to be read.
//!
//! Owns the way from a quotient to its run, and the walk over all runs. No
//! words, whatever they hold, make it read outside of them or go on without
//! bound: what they cannot be is answered with `None`.
//!
//! A run is the slots with the remainders of one quotient. Runs follow each
//! other in the order of their quotients, each at its quotient's slot or behind
//! the run before, whichever is later. `occupied` says which quotients have a
//! run, `run ends` which slots are the last ones of one. The offset of a block
//! is how many of its slots, and of those that follow, are used by runs of
//! earlier blocks; 255 stands for 255 and more.
//!
//! After Pandey, Bender, Johnson and Patro, "A General-Purpose Counting Filter:
//! Making Every Bit Count" (2017), whose rank-and-select filter this is.

use std::ops::Range;

use crate::geometry::deletable::{BLOCK_SLOTS, DeletableGeometry, GROUP_BLOCKS};

use super::entry::{self, Entry};

/// The most slots that follow each other with each run pushed on by the one
/// before: what an insertion or a removal may have to move. By chance alone
/// they are some thousands, even in the largest filter that is full. Whoever
/// chooses the keys could have them all follow each other, and make every call
/// slow.
pub(super) const MOST_PUSHED: usize = 1 << 16;

/// The same where it is counted in slots, not in blocks.
pub(super) const MOST_PUSHED_EXACTLY: usize = MOST_PUSHED + 2 * SLOTS;

/// The offset that stands for itself and all larger ones.
pub(super) const LARGE_OFFSET: usize = 255;

/// Blocks that a search looks at at most.
pub(super) const MOST_BLOCKS: usize = MOST_PUSHED_EXACTLY / SLOTS + 2;

pub(super) const SLOTS: usize = BLOCK_SLOTS as usize;
const GROUP: usize = GROUP_BLOCKS as usize;

/// Where things are in the words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Bits of a remainder.
    pub(super) bits: u32,
    /// Quotients.
    pub(super) quotients: usize,
    pub(super) blocks: usize,
    /// Words of a block.
    width: usize,
}

impl Layout {
    /// The words of the geometry are in memory.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the words are in memory, so their numbers fit a usize"
    )]
    pub(super) const fn new(geometry: DeletableGeometry) -> Self {
        Self {
            bits: geometry.remainder_bits(),
            quotients: geometry.slots() as usize,
            blocks: geometry.blocks() as usize,
            width: geometry.remainder_bits() as usize + 2,
        }
    }

    /// All slots, those behind the last quotient included.
    pub(super) const fn slots(self) -> usize {
        self.blocks * SLOTS
    }

    /// The word of the offsets of a block's group.
    #[inline(always)]
    pub(super) const fn offsets(self, block: usize) -> usize {
        block / GROUP * (1 + GROUP * self.width)
    }

    /// Where a block's offset is in that word.
    #[inline(always)]
    pub(super) const fn offset_shift(block: usize) -> usize {
        block % GROUP * 8
    }

    /// The first word of a block: which quotients are occupied.
    #[inline(always)]
    pub(super) const fn occupied(self, block: usize) -> usize {
        self.offsets(block) + 1 + block % GROUP * self.width
    }

    /// The word of its run ends.
    #[inline(always)]
    pub(super) const fn ends(self, block: usize) -> usize {
        self.occupied(block) + 1
    }

    /// The first word of its remainders.
    #[inline(always)]
    pub(super) const fn remainders(self, block: usize) -> usize {
        self.occupied(block) + 2
    }

    /// Blocks of whole groups in the first so many words.
    pub(super) fn blocks_in(self, words: usize) -> usize {
        (words / (1 + GROUP * self.width) * GROUP).min(self.blocks)
    }

    /// All bits of a remainder.
    #[inline(always)]
    pub(super) const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }
}

/// The slots of a run, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) quotient: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// See the module.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) layout: Layout,
    pub(super) words: &'a [u64],
}

/// The lowest `count` bits, for a count below 64.
#[inline(always)]
const fn low_bits(count: usize) -> u64 {
    (1 << count) - 1
}

/// The place of a word's set bit number `nth`, from 0. There is one.
///
/// The byte is found in all bytes at once (Vigna, "Broadword Implementation of
/// Rank/Select Queries", 2008).
#[inline(always)]
fn select(word: u64, nth: u32) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut sums = word - ((word >> 1) & 0x5555_5555_5555_5555);
    sums = (sums & 0x3333_3333_3333_3333) + ((sums >> 2) & 0x3333_3333_3333_3333);
    sums = (sums + (sums >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    // In each byte the bits of it and those below: at most 64.
    sums = sums.wrapping_mul(ONES);
    // Bytes with no more bits than `nth` up to their end come before.
    let before = (((u64::from(nth) * ONES) | HIGH) - sums) & HIGH;
    let byte = before.count_ones();
    let below = (sums << 8) >> (8 * byte) & 0xff;
    let mut bits = word >> (8 * byte);
    for _ in below..u64::from(nth) {
        bits &= bits - 1;
    }
    (8 * byte + bits.trailing_zeros()) as usize
}

impl Table<'_> {
    #[inline(always)]
    pub(super) fn is_occupied(&self, quotient: usize) -> bool {
        self.words[self.layout.occupied(quotient / SLOTS)] >> (quotient % SLOTS) & 1 == 1
    }

    /// How many quotients from one up to another, both included, have a run.
    #[inline(always)]
    pub(super) fn occupied_within(&self, first: usize, last: usize) -> u32 {
        let (block, end) = (first / SLOTS, last / SLOTS);
        let word = |block| self.words[self.layout.occupied(block)];
        let from = u64::MAX << (first % SLOTS);
        let to = u64::MAX >> (SLOTS - 1 - last % SLOTS);
        if block == end {
            return (word(block) & from & to).count_ones();
        }
        let inner: u32 = (block + 1..end).map(|block| word(block).count_ones()).sum();
        (word(block) & from).count_ones() + inner + (word(end) & to).count_ones()
    }

    /// Whether slots are as those are that no run uses.
    pub(super) fn are_empty(&self, slots: Range<usize>) -> bool {
        let bits = self.layout.bits as usize;
        let mut from = slots.start;
        while from < slots.end {
            let block = from / SLOTS;
            let to = slots.end.min((block + 1) * SLOTS);
            let (low, high) = (from % SLOTS, to - block * SLOTS);
            let remainders = &self.words[self.layout.remainders(block)..][..bits];
            let (first, last) = (low * bits, high * bits - 1);
            let part = |word: usize| {
                let above = if word == first / 64 {
                    u64::MAX << (first % 64)
                } else {
                    u64::MAX
                };
                let below = if word == last / 64 {
                    u64::MAX >> (63 - last % 64)
                } else {
                    u64::MAX
                };
                remainders[word] & above & below
            };
            let ends = self.words[self.layout.ends(block)];
            let among = (u64::MAX << low) & (u64::MAX >> (SLOTS - high));
            if ends & among != 0 || (first / 64..=last / 64).any(|word| part(word) != 0) {
                return false;
            }
            from = to;
        }
        true
    }

    /// What a slot holds.
    #[inline(always)]
    pub(super) fn get(&self, slot: usize) -> u64 {
        let bits = self.layout.bits as usize;
        let at = slot % SLOTS * bits;
        let word = self.layout.remainders(slot / SLOTS) + at / 64;
        let mut value = self.words[word] >> (at % 64);
        if at % 64 + bits > 64 {
            value |= self.words[word + 1] << (64 - at % 64);
        }
        value & self.layout.mask()
    }

    /// The run end number `nth` (from 1) at or behind a slot.
    #[inline(always)]
    pub(super) fn end_at(&self, slot: usize, nth: u32) -> Option<usize> {
        let mut block = slot / SLOTS;
        if block >= self.layout.blocks {
            return None;
        }
        let mut nth = nth;
        let mut ends = self.words[self.layout.ends(block)] & (u64::MAX << (slot % SLOTS));
        let last = self.layout.blocks.min(block + MOST_BLOCKS);
        loop {
            let count = ends.count_ones();
            if nth <= count {
                return Some(block * SLOTS + select(ends, nth - 1));
            }
            nth -= count;
            block += 1;
            if block == last {
                return None;
            }
            ends = self.words[self.layout.ends(block)];
        }
    }

    /// The first run end at or behind a slot.
    #[inline(always)]
    fn first_end(&self, slot: usize) -> Option<usize> {
        let mut block = slot / SLOTS;
        if block >= self.layout.blocks {
            return None;
        }
        let mut ends = self.words[self.layout.ends(block)] & (u64::MAX << (slot % SLOTS));
        let last = self.layout.blocks.min(block + MOST_BLOCKS);
        while ends == 0 {
            block += 1;
            if block == last {
                return None;
            }
            ends = self.words[self.layout.ends(block)];
        }
        Some(block * SLOTS + ends.trailing_zeros() as usize)
    }

    #[inline(always)]
    pub(super) fn recorded_offset(&self, block: usize) -> usize {
        let word = self.words[self.layout.offsets(block)];
        usize::from(word.to_le_bytes()[block % GROUP])
    }

    /// The offset of a block.
    #[inline(always)]
    fn offset(&self, block: usize) -> Option<usize> {
        match self.recorded_offset(block) {
            LARGE_OFFSET => self.large_offset(block),
            small => Some(small),
        }
    }

    /// The offset of a block, from those of earlier ones.
    #[cold]
    pub(super) fn large_offset(&self, block: usize) -> Option<usize> {
        let first = block.saturating_sub(MOST_BLOCKS);
        let known = (first..block)
            .rev()
            .find(|&known| self.recorded_offset(known) < LARGE_OFFSET)?;
        let mut offset = self.recorded_offset(known);
        for before in known..block {
            let start = before * SLOTS + offset;
            let runs = self.words[self.layout.occupied(before)].count_ones();
            let end = match runs {
                0 => start,
                _ => self.end_at(start, runs)? + 1,
            };
            offset = end.saturating_sub((before + 1) * SLOTS);
        }
        Some(offset)
    }

    /// One past the last slot that runs of earlier quotients use, or the start
    /// of the block if that is later: a run of the quotient starts there or at
    /// its slot, whichever is later.
    #[inline(always)]
    pub(super) fn end_before(&self, quotient: usize) -> Option<usize> {
        self.end_of(quotient / SLOTS, low_bits(quotient % SLOTS))
    }

    /// The same for runs of quotients up to this one: at most the slot of the
    /// quotient if no run uses that.
    #[inline(always)]
    pub(super) fn end_through(&self, quotient: usize) -> Option<usize> {
        let place = quotient % SLOTS;
        self.end_of(quotient / SLOTS, low_bits(place) | 1 << place)
    }

    /// The same for quotients of earlier blocks and some of a block.
    #[inline(always)]
    fn end_of(&self, block: usize, quotients: u64) -> Option<usize> {
        let start = block * SLOTS + self.offset(block)?;
        let occupied = self.words[self.layout.occupied(block)];
        match (occupied & quotients).count_ones() {
            0 => Some(start),
            runs => Some(self.end_at(start, runs)? + 1),
        }
    }

    /// The run of an occupied quotient.
    #[inline(always)]
    pub(super) fn run(&self, quotient: usize) -> Option<Run> {
        let start = self.end_before(quotient)?.max(quotient);
        let end = self.first_end(start)?;
        Some(Run {
            quotient,
            start,
            end,
        })
    }

    /// The entry at a slot of a run.
    #[inline(always)]
    pub(super) fn entry(&self, slot: usize, end: usize) -> Entry {
        entry::decode(self.layout.bits, end + 1 - slot, |i| self.get(slot + i))
    }

    /// How often a remainder is in the run of its quotient.
    #[inline]
    pub(super) fn count(&self, quotient: usize, remainder: u64) -> u64 {
        if !self.is_occupied(quotient) {
            return 0;
        }
        let Some(Run { start, end, .. }) = self.run(quotient) else {
            return 0;
        };
        let mut slot = start;
        while slot <= end {
            let first = self.get(slot);
            if first > remainder {
                return 0;
            }
            let entry = self.entry(slot, end);
            if first == remainder {
                return entry.count;
            }
            slot += entry.len;
        }
        0
    }
}

/// The runs of a table, in order. Ends early where the words are not a table.
pub(super) struct Runs<'a> {
    table: Table<'a>,
    place: RunsPlace,
}

/// How far a walk over the runs has come.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunsPlace {
    /// Blocks whose quotients were looked at.
    blocks: usize,
    /// Quotients of the last one that are still to come.
    left: u64,
    /// One past the last run.
    next: usize,
    /// Quotients with a run in these blocks.
    pub(super) occupied: u64,
}

impl RunsPlace {
    /// The next run of a quotient in the blocks before one.
    #[inline(always)]
    pub(super) fn next_before(&mut self, table: Table<'_>, block: usize) -> Option<Run> {
        while self.left == 0 {
            if self.blocks >= block.min(table.layout.blocks) {
                return None;
            }
            self.left = table.words[table.layout.occupied(self.blocks)];
            self.occupied += u64::from(self.left.count_ones());
            self.blocks += 1;
        }
        let quotient = (self.blocks - 1) * SLOTS + self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        let start = quotient.max(self.next);
        let Some(end) = table.first_end(start) else {
            // What follows cannot be told.
            self.left = 0;
            self.blocks = table.layout.blocks;
            return None;
        };
        self.next = end + 1;
        Some(Run {
            quotient,
            start,
            end,
        })
    }
}

impl<'a> Runs<'a> {
    pub(super) fn new(table: Table<'a>) -> Self {
        Self {
            table,
            place: RunsPlace::default(),
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        self.place.next_before(self.table, self.table.layout.blocks)
    }
}

/// The entries of all runs, with their quotients.
pub(super) struct Entries<'a> {
    runs: Runs<'a>,
    run: Option<(usize, Run)>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(table: Table<'a>) -> Self {
        Self {
            runs: Runs::new(table),
            run: None,
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = (usize, Entry);

    fn next(&mut self) -> Option<(usize, Entry)> {
        let (slot, run) = match self.run {
            Some((slot, run)) if slot <= run.end => (slot, run),
            _ => {
                let run = self.runs.next()?;
                (run.start, run)
            }
        };
        let entry = self.runs.table.entry(slot, run.end);
        self.run = Some((slot + entry.len, run));
        Some((run.quotient, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_bits_are_found_by_their_number() {
        for seed in 0..2000 {
            let thin = crate::mix_int(seed, 1) & crate::mix_int(seed, 2);
            for word in [crate::mix_int(seed, 0), thin, 1 << (seed % 64), u64::MAX] {
                let places = (0..64).filter(|place| word >> place & 1 == 1);
                for (nth, place) in (0..).zip(places) {
                    assert_eq!(select(word, nth), place, "{word:x}");
                }
            }
        }
    }
}
