//! The words of one shard.
//!
//! Owns how many slots each layer gets, and puts the layers one behind the
//! other. It knows nothing of other shards.

use super::place::{LAYERS, Row, WIDTH, shard_of, starts};
use super::shape::{Columns, Layer};
use super::solve::Band;
use crate::error::{Error, Result};
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
#[derive(Debug, Default)]
pub(super) struct Builder {
    band: Band,
}

impl Builder {
    /// A shard of the keys whose digests are given, ascending, each once.
    /// `shards` is how many there are in all.
    ///
    /// # Errors
    /// If the digests are not those of keys under a hasher that whoever chose the keys did not
    /// know: no table has room for too many that are close together in each layer.
    pub(super) fn build(
        &mut self,
        digests: &[u64],
        shards: u64,
        columns: Columns,
    ) -> Result<Shard> {
        if digests.len() < PLAIN_BELOW {
            return self.with_first_layer(digests, shards, columns, None);
        }
        let keys = digests.len() as u64;
        if digests.len() >= TRIED_BELOW {
            let blocks = (keys * 965 / 1000).div_ceil(WIDTH);
            return self.with_first_layer(digests, shards, columns, Some(blocks));
        }
        // Few keys: what rounding to whole blocks costs is worth a search.
        let mut smallest: Option<Shard> = None;
        for blocks in keys * 9 / 10 / WIDTH..=keys.div_ceil(WIDTH) {
            let shard = self.with_first_layer(digests, shards, columns, Some(blocks))?;
            if smallest
                .as_ref()
                .is_none_or(|old| shard.words.len() < old.words.len())
            {
                smallest = Some(shard);
            }
        }
        Ok(smallest.unwrap_or_default())
    }

    /// The shard whose first layer has so many blocks and bumps, or bumps
    /// nothing for `None`.
    fn with_first_layer(
        &mut self,
        digests: &[u64],
        shards: u64,
        columns: Columns,
        first: Option<u64>,
    ) -> Result<Shard> {
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
                    bumped.clear();
                    self.band.insert_or_bump(
                        &keys,
                        |digest| row_of(digest, shards, index, layer.starts),
                        layer.blocks(),
                        &mut shard.words[layer.thresholds()],
                        &mut bumped,
                    );
                    std::mem::swap(&mut keys, &mut bumped);
                    sort_for_layer(&mut keys, index + 1);
                    if keys.is_empty() {
                        // Without a next layer a layer has no thresholds.
                        Layer::new(at, layer.blocks(), false, columns)
                    } else {
                        layer
                    }
                }
                None => {
                    let layer = self.plain(&keys, shards, index, at, columns)?;
                    keys.clear();
                    layer
                }
            };
            shard.words.resize(layer.end(), 0);
            self.band.solve(&layer, &mut shard.words);
            shard.blocks[index] = u32::try_from(layer.blocks()).unwrap_or(u32::MAX);
        }
        Ok(shard)
    }

    /// The smallest layer that takes all keys.
    fn plain(
        &mut self,
        keys: &[u64],
        shards: u64,
        index: usize,
        at: usize,
        columns: Columns,
    ) -> Result<Layer> {
        let fewest = (keys.len() as u64).div_ceil(WIDTH);
        // Random rows fit long before.
        for blocks in fewest..=2 * fewest + 8 {
            let starts = starts(blocks);
            let rows = keys
                .iter()
                .map(|&digest| row_of(digest, shards, index, starts));
            if self.band.insert_all(rows, blocks) {
                return Ok(Layer::new(at, blocks, false, columns));
            }
        }
        Err(Error::parameter(
            "keys",
            format!("{} whose digests are close together", keys.len()),
            "somebody chose them so: use another seed, or a keyed hasher",
        ))
    }
}

#[inline(always)]
fn row_of(digest: u64, shards: u64, layer: usize, starts: u64) -> Row {
    if layer == 0 {
        Row::in_first(digest, shard_of(digest, shards).1, starts)
    } else {
        Row::in_later(digest, layer, starts)
    }
}

/// Brings bumped keys into the order of their starts in the next layer.
fn sort_for_layer(keys: &mut [u64], layer: usize) {
    keys.sort_unstable_by_key(|&digest| mix_int(digest.cast_signed(), layer as u64));
}
