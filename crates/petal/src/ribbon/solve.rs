//! One layer: rows into a band matrix, then its solution.
//!
//! Owns the elimination with bumping and the back-substitution. It does not
//! know which shard or filter the layer belongs to.

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
    /// The slot it took, or `None` if it is not.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "slots in memory")]
    fn insert(&mut self, row: Row) -> Option<usize> {
        let mut slot = row.start as usize;
        let mut new = Equation {
            coefficients: row.coefficients,
            result: row.fingerprint,
        };
        loop {
            let there = &mut self.slots[slot];
            if there.coefficients == 0 {
                *there = new;
                return Some(slot);
            }
            new.coefficients ^= there.coefficients;
            new.result ^= there.result;
            if new.coefficients == 0 {
                return None;
            }
            let zeros = new.coefficients.trailing_zeros();
            slot += zeros as usize;
            new.coefficients >>= zeros;
        }
    }

    /// Inserts all keys of a layer that bumps none. False if they do not fit.
    pub(super) fn insert_all(&mut self, rows: impl Iterator<Item = Row>, blocks: u64) -> bool {
        self.clear(blocks);
        let mut rows = rows;
        rows.all(|row| self.insert(row).is_some())
    }

    /// Inserts the keys of a layer in ascending order of their starts. What
    /// does not fit goes to `bumped`; the thresholds that say so, two bits a
    /// bucket, to `thresholds`, which are 0.
    ///
    /// Buckets are filled in order, each from its last start to its first.
    /// When a row does not fit, the rows of its class in the bucket are taken
    /// out again (they were the last ones, so no other row rests on them), and
    /// that class and all after it are bumped.
    pub(super) fn insert_or_bump<T: Copy>(
        &mut self,
        keys: &[T],
        row_of: impl Fn(T) -> Row,
        blocks: u64,
        thresholds: &mut [u64],
        bumped: &mut Vec<T>,
    ) {
        self.clear(blocks);
        let mut rest = keys;
        for bucket in 0..buckets(blocks) {
            let end = (bucket + 1) * BUCKET;
            self.rows.clear();
            for &key in rest {
                let row = row_of(key);
                if row.start >= end {
                    break;
                }
                self.rows.push(row);
            }
            let here = rest.split_off(..self.rows.len()).unwrap_or_default();
            let (threshold, kept) = self.fill_bucket();
            // The kept ones are the last ones.
            bumped.extend_from_slice(&here[..here.len() - kept]);
            if let Ok(word) = usize::try_from(bucket / 32) {
                thresholds[word] |= threshold << (2 * (bucket % 32));
            }
        }
    }

    /// The threshold of the bucket at hand, and how many of its rows, from
    /// the end, it keeps.
    fn fill_bucket(&mut self) -> (u64, usize) {
        let mut class = 0;
        let mut kept = 0;
        self.recent.clear();
        for i in (0..self.rows.len()).rev() {
            let row = self.rows[i];
            if bump_class(row.start) != class {
                class = bump_class(row.start);
                kept += self.recent.len();
                self.recent.clear();
            }
            match self.insert(row) {
                Some(slot) => self.recent.push(slot),
                None => {
                    for &slot in &self.recent {
                        self.slots[slot] = Equation::default();
                    }
                    return (class, kept);
                }
            }
        }
        (KEEP_ALL, kept + self.recent.len())
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
