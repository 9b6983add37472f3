//! The slots of a quotient filter, to be changed.
//!
//! Owns setting the count of a fingerprint: it moves what follows by a slot at
//! a time, and keeps run ends and offsets right. The table must be a right one
//! (see `check`), and stays so.

use super::entry::{Entry, MOST_SLOTS, encode};
use super::table::{LARGE_OFFSET, Layout, MOST_PUSHED, Run, SLOTS, Table};

/// See the module.
pub(super) struct Editor<'a> {
    pub(super) layout: Layout,
    pub(super) words: &'a mut [u64],
}

/// Where a fingerprint is, or would be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    quotient: usize,
    remainder: u64,
    /// Of the quotient, if it has one.
    run: Option<Run>,
    /// The first slot of the entry.
    slot: usize,
    entry: Option<Entry>,
}

impl Place {
    pub(super) fn count(&self) -> u64 {
        self.entry.map_or(0, |entry| entry.count)
    }
}

/// There are not enough free slots near enough.
#[derive(Debug)]
pub(super) struct NoRoom;

impl Editor<'_> {
    pub(super) fn table(&self) -> Table<'_> {
        Table {
            layout: self.layout,
            words: self.words,
        }
    }

    /// Finds a fingerprint.
    #[inline]
    pub(super) fn find(&self, quotient: usize, remainder: u64) -> Result<Place, NoRoom> {
        let table = self.table();
        let mut place = Place {
            quotient,
            remainder,
            run: None,
            slot: 0,
            entry: None,
        };
        if !table.is_occupied(quotient) {
            place.slot = table.end_before(quotient).ok_or(NoRoom)?.max(quotient);
            return Ok(place);
        }
        let run = table.run(quotient).ok_or(NoRoom)?;
        place.run = Some(run);
        place.slot = run.start;
        while place.slot <= run.end {
            let entry = table.entry(place.slot, run.end);
            if entry.remainder >= remainder {
                place.entry = Some(entry).filter(|entry| entry.remainder == remainder);
                break;
            }
            place.slot += entry.len;
        }
        Ok(place)
    }

    /// Makes the count of a fingerprint, which was just found, another. Says
    /// by how many slots that changed what is used; `room` is how many more
    /// there may be. If there is no room, nothing is changed.
    #[inline]
    pub(super) fn set_count(
        &mut self,
        mut place: Place,
        count: u64,
        room: usize,
    ) -> Result<isize, NoRoom> {
        // What is there once or not at all is the most usual.
        match (place.count(), count) {
            (0, 1) => {
                if room == 0 {
                    return Err(NoRoom);
                }
                let free = self.free_slot(place.quotient, place.quotient)?;
                self.check_pushed(free)?;
                self.insert(&mut place, 0, free);
                self.put(place.slot, place.remainder);
                Ok(1)
            }
            (1, 0) => {
                self.remove(&mut place, 0);
                Ok(-1)
            }
            _ => self.set_long_count(place, count, room),
        }
    }

    /// The same for entries of any length.
    fn set_long_count(
        &mut self,
        mut place: Place,
        count: u64,
        room: usize,
    ) -> Result<isize, NoRoom> {
        let mut slots = [0; MOST_SLOTS];
        let new = encode(self.layout.bits, place.remainder, count, &mut slots);
        let old = place.entry.map_or(0, |entry| entry.len);
        if new > old {
            let more = new - old;
            if more > room {
                return Err(NoRoom);
            }
            // All of them are found before anything is changed. Then each is
            // the first free one when it is its turn.
            let mut free = [0; MOST_SLOTS];
            let mut from = place.quotient;
            for free in &mut free[..more] {
                *free = self.free_slot(place.quotient, from)?;
                from = *free + 1;
            }
            self.check_pushed(from - 1)?;
            for (at, &free) in (old..new).zip(&free[..more]) {
                self.insert(&mut place, at, free);
            }
        }
        for at in (new..old).rev() {
            self.remove(&mut place, at);
        }
        for (at, &value) in slots[..new].iter().enumerate() {
            self.put(place.slot + at, value);
        }
        Ok(new.cast_signed() - old.cast_signed())
    }

    /// The first free slot at or behind `from`, near enough to a quotient. The
    /// last slot of all is never given away: it ends every search.
    fn free_slot(&self, quotient: usize, from: usize) -> Result<usize, NoRoom> {
        let table = self.table();
        let near = |slot: usize| {
            let fits = slot - quotient <= MOST_PUSHED && slot + 1 < self.layout.slots();
            fits.then_some(()).ok_or(NoRoom)
        };
        near(from)?;
        // Where the runs of quotients up to `slot` end.
        let mut slot = from;
        let mut end = table.end_through(slot).ok_or(NoRoom)?;
        while end > slot {
            near(end)?;
            let runs = table.occupied_within(slot + 1, end);
            if runs == 0 {
                return Ok(end);
            }
            slot = end;
            end = table.end_at(end, runs).ok_or(NoRoom)? + 1;
        }
        Ok(slot)
    }

    /// Refuses a free slot behind too many that push each other on.
    fn check_pushed(&self, free: usize) -> Result<(), NoRoom> {
        let (table, last) = (self.table(), free / SLOTS);
        let first = last.saturating_sub(MOST_PUSHED / SLOTS);
        // A block that nothing is pushed into ends it.
        let ended = |block| block == 0 || table.recorded_offset(block) == 0;
        match (first..=last).rev().any(ended) {
            true => Ok(()),
            false => Err(NoRoom),
        }
    }

    /// Makes room for slot number `at` of an entry, which is behind its last
    /// one, by moving what is up to a free slot.
    fn insert(&mut self, place: &mut Place, at: usize, free: usize) {
        let slot = place.slot + at;
        self.move_up(slot, free);
        let (block, bit) = (slot / SLOTS, 1 << (slot % SLOTS));
        match &mut place.run {
            Some(run) => {
                if slot == run.end + 1 {
                    // It is the last one of its run now.
                    self.words[self.layout.ends(block)] |= bit;
                    let last = run.end;
                    self.words[self.layout.ends(last / SLOTS)] &= !(1 << (last % SLOTS));
                }
                run.end += 1;
            }
            None => {
                self.words[self.layout.ends(block)] |= bit;
                let quotient = place.quotient;
                self.words[self.layout.occupied(quotient / SLOTS)] |= 1 << (quotient % SLOTS);
                place.run = Some(Run {
                    quotient,
                    start: slot,
                    end: slot,
                });
            }
        }
        for block in place.quotient / SLOTS + 1..=free / SLOTS {
            let shift = Layout::offset_shift(block);
            if self.table().recorded_offset(block) < LARGE_OFFSET {
                self.words[self.layout.offsets(block)] += 1 << shift;
            }
        }
    }

    /// Takes away slot number `at` of an entry, its last one.
    fn remove(&mut self, place: &mut Place, at: usize) {
        let Some(run) = &mut place.run else { return };
        let slot = place.slot + at;
        // All that was pushed moves back, up to a run that is at its slot.
        let table = Table {
            layout: self.layout,
            words: self.words,
        };
        let mut end = run.end + 1;
        while let Some(further) = table.end_through(end - 1)
            && further > end
        {
            end = further;
        }
        if run.start == run.end {
            let quotient = run.quotient;
            self.words[self.layout.occupied(quotient / SLOTS)] &= !(1 << (quotient % SLOTS));
        } else if slot == run.end {
            let last = slot - 1;
            self.words[self.layout.ends(last / SLOTS)] |= 1 << (last % SLOTS);
        }
        run.end = run.end.saturating_sub(1);
        self.move_down(slot, end);
        for block in place.quotient / SLOTS + 1..=(end - 1) / SLOTS {
            let shift = Layout::offset_shift(block);
            match self.table().recorded_offset(block) {
                LARGE_OFFSET => {
                    // Earlier offsets are right again, so this can be told.
                    let offset = self.table().large_offset(block).unwrap_or(LARGE_OFFSET);
                    let word = &mut self.words[self.layout.offsets(block)];
                    *word &= !((LARGE_OFFSET as u64) << shift);
                    *word |= (offset.min(LARGE_OFFSET) as u64) << shift;
                }
                _ => self.words[self.layout.offsets(block)] -= 1 << shift,
            }
        }
    }

    /// Writes what a slot holds.
    pub(super) fn put(&mut self, slot: usize, value: u64) {
        let bits = self.layout.bits as usize;
        let at = slot % SLOTS * bits;
        let word = self.layout.remainders(slot / SLOTS) + at / 64;
        let (shift, mask) = (at % 64, self.layout.mask());
        self.words[word] = self.words[word] & !(mask << shift) | value << shift;
        if shift + bits > 64 {
            let high = &mut self.words[word + 1];
            *high = *high & !(mask >> (64 - shift)) | value >> (64 - shift);
        }
    }

    /// Moves slots and their run ends from `from` up to the free one by one.
    /// The first one is then empty.
    fn move_up(&mut self, from: usize, free: usize) {
        let (first, last) = (from / SLOTS, free / SLOTS);
        for block in (first..=last).rev() {
            let low = if block == first { from % SLOTS } else { 0 };
            let high = if block == last {
                free % SLOTS
            } else {
                SLOTS - 1
            };
            let ends = self.layout.ends(block);
            let moved = between(low + 1, high + 1);
            let all = between(low, high + 1);
            let word = self.words[ends];
            self.words[ends] = word & !all | (word << 1) & moved;
            self.move_remainders_up(block, low, high);
            let (carried, carried_end) = if block > first {
                let before = block * SLOTS - 1;
                let end = self.words[self.layout.ends(block - 1)] >> 63;
                (self.table().get(before), end)
            } else {
                (0, 0)
            };
            self.put(block * SLOTS + low, carried);
            self.words[ends] |= carried_end << low;
        }
    }

    /// Moves slots and their run ends that are behind `to`, and before `end`,
    /// down by one. The last one is then empty.
    fn move_down(&mut self, to: usize, end: usize) {
        let (first, last) = (to / SLOTS, (end - 1) / SLOTS);
        for block in first..=last {
            let low = if block == first { to % SLOTS } else { 0 };
            let high = if block == last {
                (end - 1) % SLOTS
            } else {
                SLOTS - 1
            };
            let ends = self.layout.ends(block);
            let word = self.words[ends];
            let moved = between(low, high);
            self.words[ends] = word & !between(low, high + 1) | (word >> 1) & moved;
            self.move_remainders_down(block, low, high);
            let (carried, carried_end) = if block < last {
                let end = self.words[self.layout.ends(block + 1)] & 1;
                (self.table().get((block + 1) * SLOTS), end)
            } else {
                (0, 0)
            };
            self.put(block * SLOTS + high, carried);
            self.words[ends] |= carried_end << high;
        }
    }

    /// Moves the remainders of a block's slots from `low` up to before `high`
    /// up by one.
    fn move_remainders_up(&mut self, block: usize, low: usize, high: usize) {
        let bits = self.layout.bits as usize;
        let (start, end) = ((low + 1) * bits, (high + 1) * bits);
        if start == end {
            return;
        }
        let words = &mut self.words[self.layout.remainders(block)..][..bits];
        for at in (start / 64..=(end - 1) / 64).rev() {
            let below = if at > 0 { words[at - 1] } else { 0 };
            let moved = words[at] << bits | below >> (64 - bits);
            let mask = part(at, start, end);
            words[at] = words[at] & !mask | moved & mask;
        }
    }

    /// Moves the remainders of a block's slots behind `low` up to `high` down
    /// by one.
    fn move_remainders_down(&mut self, block: usize, low: usize, high: usize) {
        let bits = self.layout.bits as usize;
        let (start, end) = (low * bits, high * bits);
        if start == end {
            return;
        }
        let words = &mut self.words[self.layout.remainders(block)..][..bits];
        for at in start / 64..=(end - 1) / 64 {
            let above = words.get(at + 1).copied().unwrap_or(0);
            let moved = words[at] >> bits | above << (64 - bits);
            let mask = part(at, start, end);
            words[at] = words[at] & !mask | moved & mask;
        }
    }
}

/// The bits of a word from `start` up to before `end`, at most 64.
#[inline(always)]
const fn between(start: usize, end: usize) -> u64 {
    if start >= end {
        return 0;
    }
    (u64::MAX >> (64 - (end - start))) << start
}

/// The bits of word `at` that are among those from `start` up to before `end`
/// of all words. There are some.
#[inline(always)]
fn part(at: usize, start: usize, end: usize) -> u64 {
    let first = start.max(at * 64) - at * 64;
    between(first, end.min(at * 64 + 64) - at * 64)
}
