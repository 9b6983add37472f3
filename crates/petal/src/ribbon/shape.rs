//! How many columns a filter has, and where the words of a layer are.
//!
//! Owns [`Columns`] and [`Layer`]. An error that is no power of two is met by
//! mixing: the first blocks of each layer have one column more than the
//! others.

use std::ops::Range;

use super::directory::{Blocks, Shards, blocks_of, wrong};
use super::place::{LAYERS, WIDTH, starts, threshold_words};
use crate::error::FormatError;

/// The number of columns: bits compared for a key, and those of its value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    /// Columns of a value, the first ones: 0 to 16, and with `everywhere` at most 62.
    pub(crate) values: u32,
    /// Columns compared in all blocks.
    pub(crate) everywhere: u32,
    /// The share of keys that have one more, of 2^32.
    pub(crate) more: u32,
}

impl Columns {
    /// Most columns in all blocks.
    pub(super) const MAX: u32 = 62;

    /// Most columns of a value.
    pub(super) const MAX_VALUES: u32 = u16::BITS;

    /// For an error of at most `error`, more than 2^-62 and at most 1, without a value:
    /// `everywhere` columns give 2^-everywhere, which is too much, one more is
    /// enough, and a share of the keys makes up the difference.
    pub(crate) fn for_error(error: f64) -> Self {
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
            values: 0,
            everywhere: everywhere as u32,
            more: more as u32,
        }
    }

    /// The same with so many bits of a value.
    pub(crate) const fn with_values(self, values: u32) -> Self {
        Self { values, ..self }
    }

    /// Columns that are compared for a key, on average.
    pub(super) fn mean(self) -> f64 {
        f64::from(self.everywhere) + f64::from(self.more) / 2f64.powi(32)
    }

    /// Columns of every block.
    pub(super) const fn least(self) -> u32 {
        self.values + self.everywhere
    }
}

/// The shape of a static filter: what a file says of its words, beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticGeometry {
    pub(super) shards: u64,
    pub(super) columns: Columns,
    /// The blocks of a single shard's layers; zeros if there are more.
    pub(super) single: Blocks,
    words: u64,
}

impl StaticGeometry {
    pub(super) const fn new(shards: u64, columns: Columns, single: Blocks, words: u64) -> Self {
        Self {
            shards,
            columns,
            single,
            words,
        }
    }

    /// One shard of one layer, with a column that is compared.
    #[cfg(test)]
    pub(crate) const fn of_blocks(blocks: u32) -> Self {
        let columns = Columns {
            values: 0,
            everywhere: 1,
            more: 0,
        };
        Self::new(1, columns, [blocks, 0, 0, 0], blocks as u64)
    }

    /// Parts that are built and asked independently, each of a range of digests.
    #[must_use]
    pub const fn shards(&self) -> u64 {
        self.shards
    }

    /// Bits that are compared for a key, on average: those in all blocks, and the share of keys
    /// that have one more.
    #[must_use]
    pub fn columns(&self) -> f64 {
        self.columns.mean()
    }

    /// Bits of the value that is kept with each key; 0 if there is none.
    #[must_use]
    pub const fn value_bits(&self) -> u32 {
        self.columns.values
    }

    /// Words of the filter.
    #[must_use]
    pub const fn words(&self) -> u64 {
        self.words
    }

    /// Bytes of them.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.words * 8
    }

    /// As four words of a file.
    pub(crate) fn record(self) -> [u64; 4] {
        let Columns {
            values,
            everywhere,
            more,
        } = self.columns;
        // Bits 16 to 31 are for what this version does not have, such as wider rows.
        let columns = u64::from(everywhere | values << 8) | u64::from(more) << 32;
        if self.shards == 1 {
            let [a, b, c, d] = self.single.map(u64::from);
            [1, columns, a | b << 32, c | d << 32]
        } else {
            [self.shards, columns, self.words, 0]
        }
    }

    /// The opposite of [`Self::record`], with every check that needs no words.
    pub(crate) fn decode([shards, columns, a, b]: [u64; 4]) -> Result<Self, FormatError> {
        let [low, more, ..] = blocks_of([columns, 0]);
        let columns = Columns {
            values: low >> 8,
            everywhere: low & 0xff,
            more,
        };
        if columns.values > Columns::MAX_VALUES || columns.least() > Columns::MAX {
            let (most, values) = (Columns::MAX, Columns::MAX_VALUES);
            let expected = format!("0 to {most}, {values} of them of a value, and no bits above");
            return Err(wrong("columns", format!("{low:#x}"), expected));
        }
        match shards {
            0 => Err(wrong("shards", 0, "at least 1")),
            1 => {
                let single = blocks_of([a, b]);
                let mut all = Shards::none_of(1);
                all.push(columns, single, u64::MAX)?;
                Ok(Self::new(1, columns, single, all.end()))
            }
            _ if b != 0 => Err(wrong("geometry", "unused words that are set", "zeros")),
            _ if a > u64::MAX / 8 => Err(wrong("words", a, "less than 2^61")),
            _ => Ok(Self::new(shards, columns, [0; LAYERS], a)),
        }
    }
}

/// The shape of a layer, and where its words are in those of the filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Layer {
    /// Slots at which a row can start; 0 for a layer that is not there.
    pub(super) starts: u64,
    /// The first word of the solution, which is the first one of the layer.
    solution: usize,
    /// The first word of the thresholds, behind the solution.
    thresholds: usize,
    /// Blocks that have one column more: the first ones. One past the last
    /// block if keys in the last block have it, too.
    with_more: u64,
    /// Columns of every block: those of a value, and those that are compared.
    least: u32,
    /// Whether keys may be bumped from it: it has thresholds.
    pub(super) bumps: bool,
}

impl Layer {
    /// A layer of 1 to 2^32 blocks, from word `first` on.
    pub(super) fn new(first: usize, blocks: u64, bumps: bool, columns: Columns) -> Self {
        let starts = starts(blocks);
        // A row needs the column in both of its blocks.
        let with_more = match columns.more {
            0 => 0,
            share => {
                // starts < 2^38, so that this is below 2^38, too.
                let keys = (u128::from(share) * u128::from(starts)) >> 32;
                (u64::try_from(keys).unwrap_or(u64::MAX) / WIDTH + 2).min(blocks + 1)
            }
        };
        let mut layer = Self {
            starts,
            solution: first,
            thresholds: 0,
            with_more,
            least: columns.least(),
            bumps,
        };
        layer.thresholds = layer.block_at(blocks);
        layer
    }

    /// The same layer with or without thresholds.
    pub(super) fn with_bumps(self, bumps: bool, columns: Columns) -> Self {
        Self::new(self.solution, self.blocks(), bumps, columns)
    }

    /// [`Self::new`] in words that end at `most`, and the word behind it; `None`
    /// if it passes them.
    pub(super) fn within(
        first: u64,
        blocks: u64,
        bumps: bool,
        columns: Columns,
        most: u64,
    ) -> Option<(Self, u64)> {
        // More than it has: with this, no sum below passes an address.
        let bound = blocks * u64::from(columns.least() + 2);
        usize::try_from(first.checked_add(bound)?).ok()?;
        let layer = Self::new(usize::try_from(first).ok()?, blocks, bumps, columns);
        let end = layer.end() as u64;
        (end <= most).then_some((layer, end))
    }

    /// Blocks of the solution.
    pub(super) const fn blocks(&self) -> u64 {
        self.starts.div_ceil(WIDTH)
    }

    /// The words of the thresholds.
    pub(super) fn thresholds(&self) -> Range<usize> {
        self.thresholds..self.end()
    }

    /// The word behind the layer's last one.
    #[expect(clippy::cast_possible_truncation, reason = "the words are in memory")]
    pub(super) const fn end(&self) -> usize {
        let thresholds = if self.bumps {
            threshold_words(self.blocks())
        } else {
            0
        };
        self.thresholds + thresholds as usize
    }

    /// The chance that the row of an absent key is in the solution; 0 for a layer that is not
    /// there.
    pub(super) fn error(&self, columns: Columns) -> f64 {
        if self.starts == 0 {
            return 0.0;
        }
        let with_more = (self.with_more.saturating_sub(1) * WIDTH).min(self.starts);
        let halved = with_more as f64 / self.starts as f64 / 2.0;
        (-f64::from(columns.everywhere)).exp2() * (1.0 - halved)
    }

    /// The columns of a row that starts in a block.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "at most 63")]
    pub(super) const fn columns_from(&self, block: u64) -> usize {
        (self.least as u64 + (block + 1 < self.with_more) as u64) as usize
    }

    /// Columns of a block in the words.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "at most 63")]
    pub(super) const fn columns_in(&self, block: u64) -> usize {
        (self.least as u64 + (block < self.with_more) as u64) as usize
    }

    /// The index of the first word of a block.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the words are in memory")]
    pub(super) fn block_at(&self, block: u64) -> usize {
        self.uniform_block_at(block, self.least as usize) + block.min(self.with_more) as usize
    }

    /// The same where every block has the same columns.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the words are in memory")]
    pub(super) const fn uniform_block_at(&self, block: u64, columns: usize) -> usize {
        self.solution + block as usize * columns
    }

    /// The index of the word that has a bucket's threshold.
    #[inline(always)]
    pub(super) const fn threshold_at(&self, bucket: u64) -> usize {
        self.thresholds + (bucket / 32) as usize
    }
}
