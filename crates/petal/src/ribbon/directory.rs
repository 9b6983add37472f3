//! Where the shards and their layers are in the words of a filter.
//!
//! Owns the directory, the words before the first shard, and [`Shards`],
//! which is what it says, checked. A filter with one shard has no directory:
//! the blocks of its layers are told apart from the words.

use super::place::LAYERS;
use super::shape::{Columns, Layer};
use crate::error::FormatError;

/// Words of the directory for a shard: the word where it begins, and the
/// blocks of its layers, two in a word.
const ENTRY: usize = 3;

/// Blocks of each layer of a shard; 0 for those that are not there, which are
/// the last ones.
pub(crate) type Blocks = [u32; LAYERS];

/// Shards start at a multiple of so many words, a cache line: with eight columns every block is
/// one.
const ALIGN: u64 = 8;

/// Words of the directory of so many shards.
pub(super) const fn directory_words(shards: u64) -> u64 {
    if shards > 1 {
        shards.saturating_mul(ENTRY as u64)
    } else {
        0
    }
}

/// The entry of a shard.
pub(super) fn entry(first: u64, blocks: Blocks) -> [u64; ENTRY] {
    let [a, b, c, d] = blocks.map(u64::from);
    [first, a | b << 32, c | d << 32]
}

/// The opposite of the last two words of [`entry`].
#[expect(clippy::cast_possible_truncation, reason = "halves of words")]
pub(super) fn blocks_of([ab, cd]: [u64; 2]) -> Blocks {
    [ab as u32, (ab >> 32) as u32, cd as u32, (cd >> 32) as u32]
}

/// The layers of all shards.
#[derive(Debug, Default)]
pub(super) struct Shards {
    /// The first layer of each shard.
    pub(super) first: Vec<Layer>,
    /// The others: a question rarely gets there.
    pub(super) later: Vec<[Layer; LAYERS - 1]>,
    /// The word behind the last one.
    end: u64,
}

impl Shards {
    /// No shard yet, in a filter that will have so many.
    pub(super) fn none_of(shards: u64) -> Self {
        Self {
            end: directory_words(shards),
            ..Self::default()
        }
    }

    /// Reads a filter's directory. `single` are the blocks of the only shard,
    /// if there is only one.
    ///
    /// # Errors
    /// If it is not one that fits the words.
    pub(super) fn read(
        columns: Columns,
        shards: u64,
        single: Blocks,
        words: &[u64],
    ) -> Result<Self, FormatError> {
        let mut all = Self::none_of(shards);
        let len = words.len() as u64;
        if shards == 0 || all.end > len {
            return Err(wrong("shards", shards, "at least 1, with their entries"));
        }
        if shards == 1 {
            all.push(columns, single, len)?;
        } else {
            let (directory, _) = words.split_at(usize::try_from(all.end).unwrap_or(words.len()));
            for &[first, ab, cd] in directory.as_chunks::<ENTRY>().0 {
                if first != all.next() {
                    return Err(wrong("first word of a shard", first, all.next()));
                }
                all.push(columns, blocks_of([ab, cd]), len)?;
            }
        }
        if all.end != len {
            return Err(wrong("words of the shards", all.end, len));
        }
        Ok(all)
    }

    /// Adds a shard behind the others, in words that end at `most`.
    ///
    /// # Errors
    /// If it passes them, or a layer has no keys and the next one does.
    pub(super) fn push(
        &mut self,
        columns: Columns,
        blocks: Blocks,
        most: u64,
    ) -> Result<(), FormatError> {
        let mut layers = [Layer::default(); LAYERS];
        let mut end = self.next();
        for (index, layer) in layers.iter_mut().enumerate() {
            let count = u64::from(blocks[index]);
            let bumps = blocks.get(index + 1).is_some_and(|&next| next != 0);
            if count == 0 {
                if bumps {
                    return Err(wrong("blocks of a layer", 0, "1, as a layer follows"));
                }
                continue;
            }
            (*layer, end) = Layer::within(end, count, bumps, columns, most)
                .ok_or_else(|| wrong("words of a layer", "more", format!("{most} in all")))?;
        }
        let [first, later @ ..] = layers;
        self.first.push(first);
        self.later.push(later);
        self.end = end;
        Ok(())
    }

    /// How many shards there are.
    pub(super) fn count(&self) -> u64 {
        self.first.len() as u64
    }

    /// The first word of the shard that comes next.
    pub(super) const fn next(&self) -> u64 {
        self.end.saturating_add(ALIGN - 1) / ALIGN * ALIGN
    }

    /// The word behind the last shard.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// The blocks of a single shard, which has no entry; zeros else.
    pub(super) fn single(&self) -> Blocks {
        match (self.first.as_slice(), self.later.as_slice()) {
            ([first], [[b, c, d]]) => {
                [first, b, c, d].map(|layer| u32::try_from(layer.blocks()).unwrap_or(u32::MAX))
            }
            _ => [0; LAYERS],
        }
    }
}

/// Refuses a value with what would be right.
pub(super) fn wrong(
    name: &'static str,
    got: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> FormatError {
    FormatError::Field {
        name,
        got: got.to_string(),
        expected: expected.to_string(),
    }
}
