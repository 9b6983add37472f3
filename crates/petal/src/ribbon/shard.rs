//! The words of one shard.
//!
//! Owns how many slots each layer gets, and puts the layers one behind the
//! other. It knows nothing of other shards.

use super::place::{LAYERS, Row, WIDTH, shard_of};
use super::shape::{Columns, Layer};
use super::solve::Band;
use crate::hash::mix_int;

/// Fewer keys than this are not bumped: the thresholds would cost more than
/// the slots they save.
const PLAIN_BELOW: usize = 256;

/// Up to so many keys every number of slots that makes sense is tried.
const TRIED_BELOW: usize = 8192;

/// A shard that was built.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shard {
    /// Blocks of each layer; 0 for those that are not there.
    pub(super) blocks: [u32; LAYERS],
    pub(super) words: Vec<u64>,
}

/// What building a shard needs, to be used for the next one.
#[derive(Default)]
pub(super) struct Builder {
    band: Band,
}

impl Builder {
    /// A shard of the keys whose digests are given, ascending, each once.
    /// `shards` is how many there are in all.
    pub(super) fn build(&mut self, digests: &[u64], shards: u64, columns: Columns) -> Shard {
        if digests.len() < PLAIN_BELOW {
            return self.with_first_layer(digests, shards, columns, None);
        }
        let slots = |share: f64| (digests.len() as f64 * share) as u64;
        if digests.len() >= TRIED_BELOW {
            let blocks = slots(0.965).div_ceil(WIDTH);
            return self.with_first_layer(digests, shards, columns, Some(blocks));
        }
        // Few keys: what rounding to whole blocks costs is worth a search.
        (slots(0.9) / WIDTH..=slots(1.0).div_ceil(WIDTH))
            .map(|blocks| self.with_first_layer(digests, shards, columns, Some(blocks)))
            .min_by_key(|shard| shard.words.len())
            .unwrap_or_default()
    }

    /// The shard whose first layer has so many blocks and bumps, or bumps
    /// nothing for `None`.
    fn with_first_layer(
        &mut self,
        digests: &[u64],
        shards: u64,
        columns: Columns,
        first: Option<u64>,
    ) -> Shard {
        let mut shard = Shard::default();
        let mut keys = digests.to_vec();
        let mut bumped = Vec::new();
        for index in 0..LAYERS {
            if keys.is_empty() {
                break;
            }
            let blocks = match (index, first) {
                (0, first) => first,
                _ if index == LAYERS - 1 || keys.len() < PLAIN_BELOW => None,
                _ => Some((keys.len() as u64 * 965 / 1000).div_ceil(WIDTH)),
            };
            let at = shard.words.len();
            let layer = match blocks {
                Some(blocks) => {
                    let layer = Layer::new(at, blocks.max(1), true, columns);
                    shard.words.resize(layer.end(), 0);
                    let thresholds = at + layer.threshold_words() as usize;
                    bumped.clear();
                    self.band.insert_or_bump(
                        &keys,
                        |digest| row_of(digest, shards, index, layer.blocks),
                        layer.blocks,
                        &mut shard.words[at..thresholds],
                        &mut bumped,
                    );
                    std::mem::swap(&mut keys, &mut bumped);
                    sort_for_layer(&mut keys, index + 1);
                    if keys.is_empty() {
                        // Without a next layer a layer has no thresholds.
                        Layer::new(at, layer.blocks, false, columns)
                    } else {
                        layer
                    }
                }
                None => {
                    let layer = self.plain(&keys, shards, index, at, columns);
                    keys.clear();
                    layer
                }
            };
            shard.words.resize(layer.end(), 0);
            self.band.solve(&layer, &mut shard.words);
            shard.blocks[index] = u32::try_from(layer.blocks).unwrap_or(u32::MAX);
        }
        shard
    }

    /// The smallest layer that takes all keys.
    fn plain(
        &mut self,
        keys: &[u64],
        shards: u64,
        index: usize,
        at: usize,
        columns: Columns,
    ) -> Layer {
        // Digests differ, so their rows do in all but a few of the layers
        // tried: the loop ends.
        let mut blocks = (keys.len() as u64).div_ceil(WIDTH);
        loop {
            let rows = keys
                .iter()
                .map(|&digest| row_of(digest, shards, index, blocks));
            if self.band.insert_all(rows, blocks) {
                return Layer::new(at, blocks, false, columns);
            }
            blocks += 1;
        }
    }
}

fn row_of(digest: u64, shards: u64, layer: usize, blocks: u64) -> Row {
    let (_, position) = shard_of(digest, shards);
    Row::of(digest, position, layer, blocks)
}

/// Brings bumped keys into the order of their starts in the next layer.
fn sort_for_layer(keys: &mut [u64], layer: usize) {
    keys.sort_unstable_by_key(|&digest| mix_int(digest.cast_signed(), layer as u64));
}
