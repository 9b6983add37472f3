//! How many columns a filter has, and where the words of a layer are.
//!
//! Owns [`Columns`] and [`Layer`]. An error that is no power of two is met by
//! mixing: the first blocks of each layer have one column more than the
//! others.

use super::place::{WIDTH, starts, threshold_words};

/// The number of columns: bits compared for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Columns {
    /// In all blocks: 0 to 40.
    pub(super) everywhere: u32,
    /// The share of keys that have one more, of 2^32.
    pub(super) more: u32,
}

impl Columns {
    /// Most columns in all blocks: those of the least error there is, 1e-12,
    /// and of the most keys.
    pub(super) const MAX: u32 = 62;

    /// For an error of at most `error`, more than 2^-62 and less than 1:
    /// `everywhere` columns give 2^-everywhere, which is too much, one more is
    /// enough, and a share of the keys makes up the difference.
    pub(super) fn for_error(error: f64) -> Self {
        let everywhere = (-error.log2()).floor().clamp(0.0, f64::from(Self::MAX));
        let more = 2.0 * (1.0 - error * everywhere.exp2());
        // Rounded up, so that the error is not passed.
        let more = (more.clamp(0.0, 1.0) * 2f64.powi(32)).ceil();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped; 2^32, for which one column more is all but the same, saturates"
        )]
        Self {
            everywhere: everywhere as u32,
            more: more as u32,
        }
    }
}

/// The shape of a layer, and where its words are in those of the filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layer {
    /// The first word: thresholds, then the solution.
    first: usize,
    pub(super) blocks: u64,
    /// Whether keys may be bumped from it: it has thresholds.
    pub(super) bumps: bool,
    everywhere: u64,
    /// Blocks that have one column more: the first ones. One past the last
    /// block if keys in the last block have it, too.
    with_more: u64,
}

impl Layer {
    /// A layer of at least one block.
    pub(super) fn new(first: usize, blocks: u64, bumps: bool, columns: Columns) -> Self {
        // A row needs the column in both of its blocks.
        let with_more = match columns.more {
            0 => 0,
            share => {
                let keys = (u128::from(share) * u128::from(starts(blocks)) >> 32) as u64;
                (keys / WIDTH + 2).min(blocks + 1)
            }
        };
        Self {
            first,
            blocks,
            bumps,
            everywhere: u64::from(columns.everywhere),
            with_more,
        }
    }

    /// Words of the thresholds.
    pub(super) const fn threshold_words(&self) -> u64 {
        if self.bumps {
            threshold_words(self.blocks)
        } else {
            0
        }
    }

    /// All words of the layer.
    pub(super) fn words(&self) -> u64 {
        self.threshold_words() + self.solution(self.blocks)
    }

    /// The word behind the layer's last one.
    #[expect(clippy::cast_possible_truncation, reason = "the words are in memory")]
    pub(super) fn end(&self) -> usize {
        self.first + self.words() as usize
    }

    /// The columns of a row that starts in a block.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "at most 63")]
    pub(super) const fn columns_from(&self, block: u64) -> usize {
        (self.everywhere + (block + 1 < self.with_more) as u64) as usize
    }

    /// Columns of a block in the words.
    #[expect(clippy::cast_possible_truncation, reason = "at most 63")]
    pub(super) const fn columns_in(&self, block: u64) -> usize {
        (self.everywhere + (block < self.with_more) as u64) as usize
    }

    /// Words of the solution before a block.
    #[inline(always)]
    fn solution(&self, block: u64) -> u64 {
        block * self.everywhere + block.min(self.with_more)
    }

    /// The index of the first word of a block.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the words are in memory")]
    pub(super) fn block_at(&self, block: u64) -> usize {
        self.first + (self.threshold_words() + self.solution(block)) as usize
    }

    /// The index of the word that has a bucket's threshold.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the words are in memory")]
    pub(super) const fn threshold_at(&self, bucket: u64) -> usize {
        self.first + (bucket / 32) as usize
    }
}
