//! What the words of a split-block filter tell about its error.
//!
//! Owns measuring; predicting from (n, geometry) is [`crate::sizing`].
//!
//! A random absent key meets a random block of each region, and one random
//! bit in each word of it. With `c` set bits in a word its chance there is
//! `c / 64`, so the error is, exactly, the product over regions of the mean
//! over blocks of the product over words of `c / 64`, taken over all blocks.

use std::ops::Range;

use crate::geometry::SplitGeometry;

/// The chance of a false answer in the blocks `blocks` of one region.
fn region_error(words: &[u64], geometry: SplitGeometry, region: u64, blocks: Range<u64>) -> f64 {
    let block_words = u64::from(geometry.block().count());
    let count = blocks.end - blocks.start;
    let start = (region * geometry.blocks() + blocks.start) * block_words;
    let end = start + count * block_words;
    let (Ok(start), Ok(end)) = (usize::try_from(start), usize::try_from(end)) else {
        return 1.0; // not reached: the words are in memory
    };
    mean_of_blocks(&mut words[start..end].iter().copied(), geometry, count)
}

/// The mean over so many blocks of the chance of a false answer in them.
fn mean_of_blocks(
    words: &mut impl Iterator<Item = u64>,
    geometry: SplitGeometry,
    blocks: u64,
) -> f64 {
    let width = geometry.block().count() as usize;
    let sum: f64 = (0..blocks)
        .map(|_| {
            words
                .by_ref()
                .take(width)
                .map(|word| f64::from(word.count_ones()) / 64.0)
                .product::<f64>()
        })
        .sum();
    sum / blocks as f64
}

/// [`error`] of words that come one after another, all of them.
pub(crate) fn error_of(mut words: impl Iterator<Item = u64>, geometry: SplitGeometry) -> f64 {
    (0..geometry.regions())
        .map(|_| mean_of_blocks(&mut words, geometry, geometry.blocks()))
        .product()
}

/// The error of the filter as it stands, from all of its words.
pub(crate) fn error(words: &[u64], geometry: SplitGeometry) -> f64 {
    (0..u64::from(geometry.regions()))
        .map(|region| region_error(words, geometry, region, 0..geometry.blocks()))
        .product()
}

/// The error from a run of at most `sample` blocks of each region, beginning
/// at a fraction `at` (0 to 1) of the region. Blocks are filled by a hash, so
/// any run of them is a fair sample.
pub(crate) fn sampled_error(words: &[u64], geometry: SplitGeometry, sample: u64, at: f64) -> f64 {
    let blocks = geometry.blocks();
    if sample >= blocks {
        return error(words, geometry);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction of a count; the cast saturates and the clamp bounds it"
    )]
    let start = ((blocks - sample) as f64 * at) as u64;
    let start = start.min(blocks - sample);
    (0..u64::from(geometry.regions()))
        .map(|region| region_error(words, geometry, region, start..start + sample))
        .product()
}
