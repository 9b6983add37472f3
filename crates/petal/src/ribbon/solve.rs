//! One layer: rows into a band matrix, then its solution.
//!
//! Owns the elimination with bumping and the back-substitution. It does not
//! know which shard or filter the layer belongs to.

use super::entry::Entry;
use super::place::{BUCKET, KEEP_ALL, Row, WIDTH, buckets, bump_class};
use super::shape::Layer;
use crate::arch::wide::{Cpu, Work, wide};

/// The matrix of a layer while it is built: one row a slot, whose first
/// coefficient is that of the slot.
#[derive(Debug, Default)]
pub(super) struct Band {
    slots: Vec<Equation>,
    /// The rows of the bucket at hand.
    rows: Vec<Row>,
    /// Slots of the rows that a failure of the next one would take out.
    recent: Vec<usize>,
}

/// A row of the matrix.
#[derive(Debug, Clone, Copy, Default)]
struct Equation {
    /// Bit `k` of row `i` belongs to slot `i + k`; 0 for a slot without a row.
    coefficients: u64,
    /// The right-hand side, a bit a column.
    result: u64,
}

impl Band {
    /// An empty matrix, in the memory of the last one.
    fn clear(&mut self, blocks: u64) {
        let slots = usize::try_from(blocks * WIDTH).unwrap_or(usize::MAX);
        self.slots.clear();
        self.slots.resize(slots, Equation::default());
    }

    /// Puts a row where it is linearly independent of those that are there.
    /// False if it is not.
    fn insert(&mut self, row: Row) -> bool {
        let mut cursor = Cursor::of(row);
        loop {
            let there = &mut self.slots[cursor.slot];
            if there.coefficients == 0 {
                *there = cursor.equation;
                return true;
            }
            if !cursor.eliminate(*there) {
                return false;
            }
        }
    }

    /// Inserts all keys of a layer that bumps none. False if they do not fit.
    pub(super) fn insert_all(&mut self, rows: impl Iterator<Item = Row>, blocks: u64) -> bool {
        self.clear(blocks);
        let mut rows = rows;
        rows.all(|row| self.insert(row))
    }

    /// Writes the solution into the words of the layer, whose index 0 is that
    /// of the filter. Slots that no row determines are 0.
    pub(super) fn solve(&self, layer: &Layer, words: &mut [u64]) {
        wide(Substitution {
            band: self,
            layer,
            words,
        });
    }
}

/// The keys of a layer on their way into its matrix.
///
/// Buckets are filled in order, each from its last start to its first. When a
/// row does not fit, the rows of its class in the bucket are taken out again
/// (they were the last ones, so no other row rests on them), and that class and
/// all after it are bumped.
///
/// One [`Self::step`] at a time: each has to wait for the one before, so that
/// two matrices that are filled in turn take hardly longer than one.
pub(super) struct Filling<'a, E, F> {
    band: &'a mut Band,
    /// Keys behind the bucket at hand.
    rest: &'a [E],
    /// Those of the bucket.
    here: &'a [E],
    row_of: F,
    buckets: u64,
    bucket: u64,
    /// Rows of the bucket that are still to come.
    left: usize,
    class: u64,
    /// Keys of the bucket in classes that fit.
    kept: usize,
    /// Two bits a bucket, which are 0 at first.
    thresholds: &'a mut [u64],
    /// Gets what does not fit.
    bumped: &'a mut Vec<E>,
}

/// A row that looks for a slot.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    slot: usize,
    equation: Equation,
}

impl<'a, E: Entry, F: Fn(E) -> Row> Filling<'a, E, F> {
    /// Of keys in ascending order of their starts, into an empty matrix.
    pub(super) fn new(
        band: &'a mut Band,
        keys: &'a [E],
        row_of: F,
        blocks: u64,
        thresholds: &'a mut [u64],
        bumped: &'a mut Vec<E>,
    ) -> Self {
        band.clear(blocks);
        Self {
            band,
            rest: keys,
            here: &[],
            row_of,
            buckets: buckets(blocks),
            bucket: 0,
            left: 0,
            class: 0,
            kept: 0,
            thresholds,
            bumped,
        }
    }

    /// Does it, alone.
    pub(super) fn run(mut self) {
        if let Some(cursor) = self.begin_bucket() {
            self.go_on(cursor);
        }
    }

    /// Does it together with another one.
    pub(super) fn run_beside(mut self, mut other: Self) {
        match (self.begin_bucket(), other.begin_bucket()) {
            (Some(mut one), Some(mut two)) => loop {
                if !self.step(&mut one) {
                    return other.go_on(two);
                }
                if !other.step(&mut two) {
                    return self.go_on(one);
                }
            },
            (Some(one), None) => self.go_on(one),
            (None, Some(two)) => other.go_on(two),
            (None, None) => {}
        }
    }

    fn go_on(&mut self, mut cursor: Cursor) {
        while self.step(&mut cursor) {}
    }

    /// Puts the row into its slot if that is free, and goes to the next row;
    /// else goes one slot further, at least. False at the end.
    #[inline(always)]
    fn step(&mut self, cursor: &mut Cursor) -> bool {
        let there = self.band.slots[cursor.slot];
        if there.coefficients != 0 && cursor.eliminate(there) {
            return true;
        }
        match self.settle(*cursor) {
            Some(next) => {
                *cursor = next;
                true
            }
            None => false,
        }
    }

    /// The row has a slot, or there is none for it. The next row.
    fn settle(&mut self, cursor: Cursor) -> Option<Cursor> {
        if cursor.equation.coefficients != 0 {
            self.band.slots[cursor.slot] = cursor.equation;
            self.band.recent.push(cursor.slot);
            return self.next_row();
        }
        for &slot in &self.band.recent {
            self.band.slots[slot] = Equation::default();
        }
        self.end_bucket(self.class, self.kept)
    }

    fn next_row(&mut self) -> Option<Cursor> {
        let Some(left) = self.left.checked_sub(1) else {
            return self.end_bucket(KEEP_ALL, self.kept + self.band.recent.len());
        };
        self.left = left;
        let row = self.band.rows[left];
        if bump_class(row.start) != self.class {
            self.class = bump_class(row.start);
            self.kept += self.band.recent.len();
            self.band.recent.clear();
        }
        Some(Cursor::of(row))
    }

    /// Sets the threshold that keeps so many keys, the last ones of the bucket.
    fn end_bucket(&mut self, threshold: u64, kept: usize) -> Option<Cursor> {
        self.bumped
            .extend_from_slice(&self.here[..self.here.len() - kept]);
        self.set_threshold(threshold);
        self.bucket += 1;
        self.begin_bucket()
    }

    fn set_threshold(&mut self, threshold: u64) {
        if let Ok(word) = usize::try_from(self.bucket / 32) {
            self.thresholds[word] |= threshold << (2 * (self.bucket % 32));
        }
    }

    /// The first row of the next bucket that has one.
    fn begin_bucket(&mut self) -> Option<Cursor> {
        while self.bucket < self.buckets {
            let end = (self.bucket + 1) * BUCKET;
            let rows = &mut self.band.rows;
            rows.clear();
            for &key in self.rest {
                let row = (self.row_of)(key);
                if row.start >= end {
                    break;
                }
                rows.push(row);
            }
            if !rows.is_empty() {
                self.left = rows.len();
                self.here = self.rest.split_off(..self.left).unwrap_or_default();
                (self.class, self.kept) = (0, 0);
                self.band.recent.clear();
                return self.next_row();
            }
            self.set_threshold(KEEP_ALL);
            self.bucket += 1;
        }
        None
    }
}

impl Cursor {
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "slots in memory")]
    const fn of(row: Row) -> Self {
        Self {
            slot: row.start as usize,
            equation: Equation {
                coefficients: row.coefficients,
                result: row.fingerprint,
            },
        }
    }

    /// Goes on to the first slot that is left when the row in this one is
    /// subtracted. False if none is: the two are linearly dependent.
    #[inline(always)]
    const fn eliminate(&mut self, there: Equation) -> bool {
        let new = &mut self.equation;
        new.coefficients ^= there.coefficients;
        new.result ^= there.result;
        if new.coefficients == 0 {
            return false;
        }
        let zeros = new.coefficients.trailing_zeros();
        self.slot += zeros as usize;
        new.coefficients >>= zeros;
        true
    }
}

/// The back-substitution.
struct Substitution<'a> {
    band: &'a Band,
    layer: &'a Layer,
    words: &'a mut [u64],
}

impl Work for Substitution<'_> {
    type Result = ();

    #[inline(always)]
    fn run<C: Cpu>(self, _: C) {
        // Word j: the values of column j in 64 slots from the one at hand.
        let mut state = [0u64; u64::BITS as usize];
        // The column that only the first blocks have is solved in all: the
        // equation of a key may have ended up in a later block.
        let most = self.layer.columns_in(0);
        let blocks = self.band.slots.as_chunks::<64>().0.iter().enumerate();
        for (block, equations) in blocks.rev() {
            for &Equation {
                coefficients,
                result,
            } in equations.iter().rev()
            {
                for (column, word) in state[..most].iter_mut().enumerate() {
                    let later = *word << 1;
                    let sum = u64::from((later & coefficients).count_ones());
                    *word = later | ((sum ^ result >> column) & 1);
                }
            }
            let at = self.layer.block_at(block as u64);
            let columns = self.layer.columns_in(block as u64);
            self.words[at..at + columns].copy_from_slice(&state[..columns]);
        }
    }
}
