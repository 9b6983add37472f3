//! Sizes and errors of split-block filters.
//!
//! Owns the expected error of a [`SplitGeometry`] under a load and the
//! search for the geometry that fits items, error or bytes. The layout is
//! [`crate::geometry`]'s; growth is [`super::GrowthPlan`]'s.
//!
//! A key is answered wrongly with "yes" when, in each region, the block that
//! it falls into has the right bit set in each of its words. `J` of the `n`
//! keys fell into that block, `J ~ Binomial(n, 1/blocks)`; each of its `s`
//! words has the bit with probability `1 - (1 - 1/64)^J`, independently. So a
//! region says yes with `E[(1 - (63/64)^J)^s]`, and the regions, which hash
//! anew, with the product. Compare Putze, Sanders and Singler, "Cache-, hash-
//! and space-efficient Bloom filters" (2007), who take a Poisson load; for
//! few blocks only the binomial is right.

use std::cmp::Reverse;

use super::{
    Collisions, MAX_BYTES, MAX_ITEMS, MIN_ERROR, check_bytes, check_error, check_items,
    check_items_and_error, largest, least,
};
use crate::error::{Error, Result};
use crate::geometry::{BlockWords, MIN_FOLDED_BLOCKS, SplitGeometry, round_down_blocks};

/// The layouts a size is chosen from, in order of preference.
const SHAPES: [Shape; 5] = [
    Shape::new(BlockWords::Four, 1),
    Shape::new(BlockWords::Eight, 1),
    Shape::new(BlockWords::Eight, 2),
    Shape::new(BlockWords::Eight, 3),
    Shape::new(BlockWords::Eight, 4),
];

/// The least error for which half a block is considered.
const HALF_BLOCK_ERROR: f64 = 0.05;

/// From this mean load of a block on, an error differs from 1 by less than
/// the smallest float does: a load below 3000 has probability under e^-1000
/// (Chernoff), and `8 * (63/64)^3000` is under 10^-19.
const SATURATED_LOAD: u64 = 8192;

/// Terms below this share of their sum are left out; what follows them is at
/// most some ten times as much.
const NEGLIGIBLE: f64 = 1.0 / (1u64 << 60) as f64;

/// A geometry without its size.
#[derive(Debug, Clone, Copy)]
struct Shape {
    block: BlockWords,
    regions: u32,
}

impl Shape {
    const fn new(block: BlockWords, regions: u32) -> Self {
        Self { block, regions }
    }

    /// Bytes of one block in each region.
    const fn bytes_of_one(self) -> u64 {
        self.block.count() as u64 * 8 * self.regions as u64
    }

    /// The most blocks a region can have.
    const fn max_blocks(self) -> u64 {
        round_down_blocks(MAX_BYTES / self.bytes_of_one())
    }

    fn geometry(self, blocks: u64) -> Result<SplitGeometry> {
        SplitGeometry::new(self.block, self.regions, blocks)
    }

    fn error(self, blocks: u64, items: u64, collisions: Collisions) -> f64 {
        let region = region_error(self.block, blocks, items);
        collisions.with(region.powi(self.regions as i32), items)
    }

    /// The smallest geometry whose error at `items` is at most `error`.
    fn least(self, items: u64, error: f64, collisions: Collisions) -> Option<SplitGeometry> {
        let steps = step_of_blocks(self.max_blocks());
        let step = least(1, steps, |step| {
            self.error(blocks_of_step(step), items, collisions) <= error
        })?;
        self.geometry(blocks_of_step(step)).ok()
    }

    /// The largest geometry of at most `bytes`.
    fn within(self, bytes: u64) -> Option<SplitGeometry> {
        let blocks = round_down_blocks(bytes / self.bytes_of_one());
        self.geometry(blocks.min(self.max_blocks())).ok()
    }
}

/// The layouts that may be chosen for an error.
fn shapes_for(error: f64) -> impl Iterator<Item = Shape> {
    SHAPES
        .into_iter()
        .filter(move |shape| shape.block == BlockWords::Eight || error >= HALF_BLOCK_ERROR)
}

/// The allowed numbers of blocks in their order: 1, 2, ... 511, 512, 514, ...
/// 1022, 1024, 1028, ... Bisecting on the place in it takes 14 steps.
const fn blocks_of_step(step: u64) -> u64 {
    if step < 2 * MIN_FOLDED_BLOCKS {
        return step;
    }
    let shift = step / MIN_FOLDED_BLOCKS - 1;
    (MIN_FOLDED_BLOCKS + step % MIN_FOLDED_BLOCKS) << shift
}

/// The place of an allowed number of blocks: the inverse of [`blocks_of_step`].
const fn step_of_blocks(blocks: u64) -> u64 {
    if blocks < 2 * MIN_FOLDED_BLOCKS {
        return blocks;
    }
    let shift = (blocks / MIN_FOLDED_BLOCKS).ilog2();
    (blocks >> shift) + MIN_FOLDED_BLOCKS * shift as u64
}

/// The probability that all words of one region's block say yes to a new
/// digest after `items` distinct ones.
fn region_error(block: BlockWords, blocks: u64, items: u64) -> f64 {
    mean_over_loads(blocks, items, 64, |word| {
        let four = (word * word) * (word * word);
        match block {
            BlockWords::Four => four,
            BlockWords::Eight => four * four,
        }
    })
}

/// The mean of `all(hit)` over the loads of a block: `hit` is the probability
/// that the keys in a block, one of `width` bits each, set a given bit, and
/// `items` keys fall into `blocks` blocks. `all` may be any power from 1 up.
pub(super) fn mean_over_loads(
    blocks: u64,
    items: u64,
    width: u32,
    all: impl Fn(f64) -> f64,
) -> f64 {
    let set = 1.0 / f64::from(width);
    // The probability that a load of `load` keys sets a given bit of a word.
    let word = |load: u64| -(load as f64 * (-set).ln_1p()).exp_m1();
    if blocks == 1 {
        return all(word(items));
    }
    if items / blocks >= SATURATED_LOAD {
        return 1.0;
    }
    let n = items as f64;
    let odds = 1.0 / (blocks - 1) as f64;

    // Weights are relative to that of the mode. Downwards until they do not
    // count; errors shrink along with the load, so they count even less.
    let mode = items.saturating_add(1) / blocks;
    let mut load = mode;
    let mut weight = 1.0;
    let mut weights = 1.0;
    while load > 0 && weight > NEGLIGIBLE * weights {
        weight *= load as f64 / ((n - load as f64 + 1.0) * odds);
        load -= 1;
        weights += weight;
    }

    // Upwards from there. The weights and the errors are both log-concave, so
    // their product has one peak: a term below NEGLIGIBLE lies beyond it.
    let mut hit = word(load);
    let mut errors = 0.0;
    weights = 0.0;
    loop {
        let term = weight * all(hit);
        weights += weight;
        errors += term;
        if load >= mode && weight <= NEGLIGIBLE * weights && term <= NEGLIGIBLE * errors {
            return errors / weights;
        }
        // Zero at load = n, which ends the loop.
        weight *= (n - load as f64).max(0.0) * odds / (load as f64 + 1.0);
        load += 1;
        // Only sums of positive numbers: small probabilities stay exact.
        hit = hit * (1.0 - set) + set;
    }
}

/// The expected error of a filter of this geometry that holds `items`
/// distinct keys, shared digests included. Exact up to rounding (about 1 part
/// in 10^13) for any load.
#[must_use]
pub fn split_error(geometry: SplitGeometry, items: u64, collisions: Collisions) -> f64 {
    Shape::new(geometry.block(), geometry.regions()).error(geometry.blocks(), items, collisions)
}

/// The geometry for `items` distinct keys with an expected error of at most
/// `error`: the smallest one, or, within 5 % of its size, the one with the
/// fewest regions, as each region costs a question one cache line.
///
/// Half blocks are considered for errors of 5 % and more.
///
/// # Errors
/// If `items` is 0 or above [`MAX_ITEMS`] (the text then says how many bytes
/// it would take), or `error` is not between 0 and 1, below
/// [`MIN_ERROR`], or below [`Collisions::least_error`].
pub fn split_for(items: u64, error: f64, collisions: Collisions) -> Result<SplitGeometry> {
    if items > MAX_ITEMS {
        check_error(error)?;
        // Digests aside, so that the answer is the size.
        let needed = choose(items, error, Collisions::Never, MAX_BYTES).map_or_else(
            || format!("more than {MAX_BYTES} bytes"),
            |geometry| format!("{} bytes", geometry.bytes()),
        );
        return Err(Error::parameter(
            "n",
            items,
            format!("it would take {needed}; {}", super::too_many(items)),
        ));
    }
    check_items_and_error(items, error, collisions)?;
    choose(items, error, collisions, MAX_BYTES).ok_or_else(|| {
        Error::parameter(
            "n",
            items,
            "a filter has at most 2^63 bits: use fewer keys or a larger p",
        )
    })
}

/// The preferred geometry of at most `bytes` whose error is at most `error`.
fn choose(items: u64, error: f64, collisions: Collisions, bytes: u64) -> Option<SplitGeometry> {
    let fits: Vec<_> = shapes_for(error)
        .filter_map(|shape| shape.least(items, error, collisions))
        .filter(|geometry| geometry.bytes() <= bytes)
        .collect();
    let smallest = fits.iter().map(|geometry| geometry.bytes()).min()?;
    fits.into_iter()
        .filter(|geometry| u128::from(geometry.bytes()) * 20 <= u128::from(smallest) * 21)
        .min_by_key(|geometry| (geometry.regions(), geometry.bytes()))
}

/// The most distinct keys a geometry holds with an expected error of at most
/// `error`: 0 if a single one passes it. The inverse of [`split_for`]:
/// the geometry that it gives for `n` and `p` has a capacity of at least `n`
/// at `p`.
///
/// # Errors
/// If `error` is not between 0 and 1, or below [`MIN_ERROR`].
pub fn capacity_of(geometry: SplitGeometry, error: f64, collisions: Collisions) -> Result<u64> {
    check_error(error)?;
    let most = geometry.blocks().saturating_mul(SATURATED_LOAD);
    let fits = |items| split_error(geometry, items, collisions) <= error;
    Ok(largest(0, most, fits).unwrap_or(0))
}

/// The geometry of at most `bytes` bytes that holds the most distinct keys
/// with an expected error of at most `error`, and how many those are. Within
/// 5 % of the most keys, the one with the fewest regions.
///
/// It is smaller than `bytes` where the number of keys is bounded otherwise:
/// by [`MAX_ITEMS`], or by [`Collisions::least_error`].
///
/// # Errors
/// If `error` is not between 0 and 1 or below what the keys allow, or `bytes`
/// is above 2^60 or too small for a single key (the text names the least size).
pub fn best_split_within(
    bytes: u64,
    error: f64,
    collisions: Collisions,
) -> Result<(SplitGeometry, u64)> {
    check_bytes(bytes)?;
    check_items_and_error(1, error, collisions)?;
    let mut fits = Vec::new();
    for geometry in shapes_for(error).filter_map(|shape| shape.within(bytes)) {
        fits.push((geometry, capacity_of(geometry, error, collisions)?));
    }
    let most = fits.iter().map(|&(_, items)| items).max().unwrap_or(0);
    let limit = collisions.most_items(error);
    if most >= limit
        && let Some(geometry) = choose(limit, error, collisions, bytes)
    {
        return Ok((geometry, limit));
    }
    fits.into_iter()
        .filter(|&(_, items)| items > 0 && u128::from(items) * 21 >= u128::from(most) * 20)
        .min_by_key(|&(geometry, items)| (geometry.regions(), Reverse(items)))
        .map_or_else(
            || {
                let needed = split_for(1, error, collisions)?.bytes();
                Err(too_few_bytes(bytes, needed))
            },
            Ok,
        )
}

/// The geometry of at most `bytes` bytes with the least expected error at
/// `items` distinct keys. Errors below [`MIN_ERROR`] count as equal; of equal
/// ones it is the geometry with the fewest regions. Half blocks are considered
/// where the error is 5 % or more, or a whole block does not fit.
///
/// # Errors
/// If `items` is 0 or above [`MAX_ITEMS`], or `bytes` is above 2^60 or less
/// than half a block.
pub fn split_for_items_and_bytes(
    items: u64,
    bytes: u64,
    collisions: Collisions,
) -> Result<SplitGeometry> {
    check_items(items)?;
    check_bytes(bytes)?;
    let mut best: Option<(SplitGeometry, f64)> = None;
    let (half, whole) = SHAPES.split_at(1);
    for geometry in whole
        .iter()
        .chain(half)
        .filter_map(|shape| shape.within(bytes))
    {
        let error = split_error(geometry, items, collisions);
        let half = geometry.block() == BlockWords::Four;
        if half && error < HALF_BLOCK_ERROR && best.is_some() {
            continue;
        }
        let error = error.max(MIN_ERROR);
        if best.is_none_or(|(_, least)| error < least) {
            best = Some((geometry, error));
        }
    }
    best.map(|(geometry, _)| geometry)
        .ok_or_else(|| too_few_bytes(bytes, SHAPES[0].bytes_of_one()))
}

fn too_few_bytes(bytes: u64, least: u64) -> Error {
    Error::parameter(
        "bytes",
        bytes,
        format!("the least filter for this takes {least} bytes"),
    )
}

/// An estimate of the number of distinct keys in a filter from the share of
/// its bits that are zero, over all regions: `ln Z / ln(1 - 1/(64 blocks))`,
/// as a key leaves a given bit alone with probability `1 - 1/(64 blocks)`.
/// Compare Swamidass and Baldi, "Mathematical correction for fingerprint
/// similarity measures" (2007), for the classic filter.
///
/// `None` if no bit is zero, from which nothing follows, or if `zero_fraction`
/// is not between 0 and 1.
#[must_use]
pub fn estimated_len(geometry: SplitGeometry, zero_fraction: f64) -> Option<f64> {
    if !(zero_fraction > 0.0 && zero_fraction <= 1.0) {
        return None;
    }
    let of_one = (-1.0 / (64.0 * geometry.blocks() as f64)).ln_1p();
    // An empty filter gives 0 / of_one = -0.
    Some((zero_fraction.ln() / of_one).abs())
}
