//! Whole tables: made from ascending entries, and checked.
//!
//! Owns [`Builder`] and [`Checker`], which agree on every bit: a table is right
//! if the builder would have made it from its entries.

use super::edit::{Editor, NoRoom};
use super::entry::{MOST_SLOTS, encode};
#[cfg(doc)]
use super::table::MOST_BLOCKS;
use super::table::{LARGE_OFFSET, Layout, MOST_PUSHED_EXACTLY, Run, RunsPlace, SLOTS, Table};

/// What is in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Slots in use.
    pub(super) used: u64,
    /// Different fingerprints.
    pub(super) len: u64,
}

/// Fills an empty table in order.
pub(super) struct Builder<'a> {
    editor: Editor<'a>,
    /// The quotient whose run is being made, once there is one.
    quotient: Option<usize>,
    /// One past the last used slot.
    next: usize,
    /// The start of the runs that push each other on up to there.
    pushing: usize,
    /// The first block whose offset is not yet set.
    block: usize,
    totals: Totals,
    most: u64,
}

impl<'a> Builder<'a> {
    /// Words of zero, of which at most so many slots are to be used.
    pub(super) const fn new(layout: Layout, words: &'a mut [u64], most: u64) -> Self {
        Self {
            editor: Editor { layout, words },
            quotient: None,
            next: 0,
            pushing: 0,
            block: 0,
            totals: Totals { used: 0, len: 0 },
            most,
        }
    }

    /// Appends a fingerprint that is above all before.
    pub(super) fn push(
        &mut self,
        quotient: usize,
        remainder: u64,
        count: u64,
    ) -> Result<(), NoRoom> {
        if self.quotient != Some(quotient) {
            self.end_run();
            self.set_offsets(quotient / SLOTS + 1);
            if self.next <= quotient {
                self.next = quotient;
                self.pushing = quotient;
            }
            self.quotient = Some(quotient);
        }
        let mut slots = [0; MOST_SLOTS];
        let len = encode(self.editor.layout.bits, remainder, count, &mut slots);
        let end = self.next + len;
        self.totals.used += len as u64;
        self.totals.len += 1;
        if end >= self.editor.layout.slots()
            || end - self.pushing > MOST_PUSHED_EXACTLY
            || self.totals.used > self.most
        {
            return Err(NoRoom);
        }
        for &value in &slots[..len] {
            self.editor.put(self.next, value);
            self.next += 1;
        }
        Ok(())
    }

    /// Ends the table.
    pub(super) fn finish(mut self) -> Totals {
        self.end_run();
        self.set_offsets(self.editor.layout.blocks);
        self.totals
    }

    fn end_run(&mut self) {
        if let Some(quotient) = self.quotient {
            let layout = self.editor.layout;
            let last = self.next - 1;
            self.editor.words[layout.ends(last / SLOTS)] |= 1 << (last % SLOTS);
            self.editor.words[layout.occupied(quotient / SLOTS)] |= 1 << (quotient % SLOTS);
        }
    }

    /// Sets the offsets of all blocks before one: later quotients do not
    /// change them.
    fn set_offsets(&mut self, before: usize) {
        for block in self.block..before {
            let offset = offset(self.next, block);
            self.editor.words[self.editor.layout.offsets(block)] |=
                offset << Layout::offset_shift(block);
        }
        self.block = self.block.max(before);
    }
}

/// The offset to record for a block before whose quotients `next` slots are
/// used or passed.
fn offset(next: usize, block: usize) -> u64 {
    next.saturating_sub(block * SLOTS).min(LARGE_OFFSET) as u64
}

/// What is in a table, if it is a right one. Takes time linear in the slots.
pub(super) fn check(table: Table<'_>) -> Option<Totals> {
    Checker::default().finish(table)
}

/// A check that can go on as the words of a table come.
#[derive(Debug, Clone, Default)]
pub(super) struct Checker {
    place: RunsPlace,
    runs: u64,
    /// One past the last run, and one past the last slot that is known to be right.
    next: usize,
    right: usize,
    /// The start of the runs that push each other on up to there.
    pushing: usize,
    /// The first block whose offset is not yet known to be right.
    block: usize,
    totals: Totals,
    failed: bool,
}

impl Checker {
    /// Goes on for the quotients of all blocks before one. The words of
    /// [`MOST_BLOCKS`] blocks more have to be there, if there are so many.
    pub(super) fn advance(&mut self, table: Table<'_>, until: usize) {
        while !self.failed
            && let Some(run) = self.place.next_before(table, until)
        {
            self.failed = self.run(table, run).is_none();
        }
        if self.failed || until <= self.block {
            return;
        }
        // No later run uses a slot of these blocks.
        let end = until * SLOTS;
        self.failed = !self.right_offsets(table, until)
            || (self.right.max(self.next) < end
                && !table.are_empty(self.right.max(self.next)..end));
        self.block = until;
        self.right = self.right.max(end);
    }

    fn right_offsets(&self, table: Table<'_>, until: usize) -> bool {
        (self.block..until)
            .all(|block| table.recorded_offset(block) as u64 == offset(self.next, block))
    }

    fn run(&mut self, table: Table<'_>, run: Run) -> Option<()> {
        let layout = table.layout;
        self.runs += 1;
        let until = run.quotient / SLOTS + 1;
        if run.start == run.quotient {
            self.pushing = run.start;
        }
        let empty_from = self.right.max(self.next).min(run.start);
        let fits = run.quotient < layout.quotients
            && run.end + 1 < layout.slots()
            && run.end - self.pushing < MOST_PUSHED_EXACTLY
            && self.right_offsets(table, until)
            && table.are_empty(empty_from..run.start);
        if !fits {
            return None;
        }
        self.block = self.block.max(until);
        let (mut slot, mut last) = (run.start, None);
        while slot <= run.end {
            let entry = table.entry(slot, run.end);
            if !entry.canonical || last >= Some(entry.remainder) {
                return None;
            }
            last = Some(entry.remainder);
            slot += entry.len;
            self.totals.len += 1;
        }
        self.next = run.end + 1;
        self.totals.used += (self.next - run.start) as u64;
        Some(())
    }

    /// Goes on to the end of a table, all of which is there. What is in it, if it is right.
    pub(super) fn finish(mut self, table: Table<'_>) -> Option<Totals> {
        let blocks = table.layout.blocks;
        self.advance(table, blocks);
        let rest =
            (blocks..blocks.next_multiple_of(8)).all(|block| table.recorded_offset(block) == 0);
        let right = !self.failed && self.runs == self.place.occupied && rest;
        right.then_some(self.totals)
    }
}
