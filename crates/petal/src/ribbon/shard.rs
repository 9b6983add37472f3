//! The words of one shard.
//!
//! Owns how many slots each layer gets, and puts the layers one behind the
//! other. It knows nothing of other shards.

use super::entry::Entry;
use super::place::{LAYERS, Row, WIDTH, shard_of, starts};
use super::shape::{Columns, Layer};
use super::solve::{Band, Filling};
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

/// What building two shards needs, to be used for the next ones.
#[derive(Debug, Default)]
pub(super) struct Builder {
    bands: [Band; 2],
}

/// A shard and what it is made of: keys by their digests, ascending, each once, and how
/// many shards there are in all.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a, E> {
    pub(super) keys: &'a [E],
    pub(super) shards: u64,
    pub(super) columns: Columns,
}

impl Builder {
    /// One shard or two: together they take less time than one after the other.
    ///
    /// # Errors
    /// If the digests are not those of keys under a hasher that whoever chose the keys did not
    /// know: no table has room for too many that are close together in each layer.
    pub(super) fn build<E: Entry>(&mut self, plans: &[Plan<'_, E>]) -> Result<Vec<Shard>> {
        let [one, two] = &mut self.bands;
        match plans {
            [a, b] if a.is_large() && b.is_large() => {
                let (mut first, mut second) =
                    (a.begin(a.usual_blocks()), b.begin(b.usual_blocks()));
                first.filling(one, *a).run_beside(second.filling(two, *b));
                Ok(vec![first.finish(one, *a)?, second.finish(two, *b)?])
            }
            plans => plans.iter().map(|plan| plan.build(one)).collect(),
        }
    }
}

/// A shard whose first layer bumps, and the keys that it has bumped so far.
struct Begun<E> {
    shard: Shard,
    layer: Layer,
    bumped: Vec<E>,
}

impl<E: Entry> Begun<E> {
    fn filling<'a>(
        &'a mut self,
        band: &'a mut Band,
        plan: Plan<'a, E>,
    ) -> Filling<'a, E, impl Fn(E) -> Row> {
        let starts = self.layer.starts;
        let thresholds = &mut self.shard.words[self.layer.thresholds()];
        Filling::new(
            band,
            plan.keys,
            move |key| plan.row(key, 0, starts),
            self.layer.blocks(),
            thresholds,
            &mut self.bumped,
        )
    }

    /// Adds the other layers.
    fn finish(mut self, band: &mut Band, plan: Plan<'_, E>) -> Result<Shard> {
        end_layer(
            band,
            &mut self.shard,
            0,
            self.layer,
            plan.columns,
            &mut self.bumped,
        );
        plan.add_layers(band, self.shard, 1, self.bumped)
    }
}

impl<E: Entry> Plan<'_, E> {
    const fn is_large(&self) -> bool {
        self.keys.len() >= TRIED_BELOW
    }

    /// Blocks of the first layer of a large shard.
    const fn usual_blocks(&self) -> u64 {
        (self.keys.len() as u64 * 965 / 1000).div_ceil(WIDTH)
    }

    fn build(&self, band: &mut Band) -> Result<Shard> {
        if self.keys.len() < PLAIN_BELOW {
            return self.add_layers(band, Shard::default(), 0, self.keys.to_vec());
        }
        if self.is_large() {
            return self.with_first_layer(band, self.usual_blocks());
        }
        // Few keys: what rounding to whole blocks costs is worth a search.
        let keys = self.keys.len() as u64;
        let mut smallest: Option<Shard> = None;
        for blocks in keys * 9 / 10 / WIDTH..=keys.div_ceil(WIDTH) {
            let shard = self.with_first_layer(band, blocks.max(1))?;
            if smallest
                .as_ref()
                .is_none_or(|old| shard.words.len() < old.words.len())
            {
                smallest = Some(shard);
            }
        }
        Ok(smallest.unwrap_or_default())
    }

    /// The shard whose first layer has so many blocks, and bumps.
    fn with_first_layer(&self, band: &mut Band, blocks: u64) -> Result<Shard> {
        let mut begun = self.begin(blocks);
        begun.filling(band, *self).run();
        begun.finish(band, *self)
    }

    fn begin(&self, blocks: u64) -> Begun<E> {
        let layer = Layer::new(0, blocks, true, self.columns);
        let mut shard = Shard::default();
        shard.words.resize(layer.end(), 0);
        Begun {
            shard,
            layer,
            bumped: Vec::new(),
        }
    }

    /// Adds the layers from number `first` on, for keys in the order of their
    /// starts in it.
    fn add_layers(
        &self,
        band: &mut Band,
        mut shard: Shard,
        first: usize,
        mut keys: Vec<E>,
    ) -> Result<Shard> {
        let mut bumped = Vec::new();
        for index in first..LAYERS {
            if keys.is_empty() {
                break;
            }
            let at = shard.words.len();
            bumped.clear();
            let layer = if index == LAYERS - 1 || keys.len() < PLAIN_BELOW {
                self.plain(band, &keys, index, at)?
            } else {
                let blocks = (keys.len() as u64 * 965 / 1000).div_ceil(WIDTH);
                let layer = Layer::new(at, blocks, true, self.columns);
                shard.words.resize(layer.end(), 0);
                Filling::new(
                    band,
                    &keys,
                    |key| self.row(key, index, layer.starts),
                    blocks,
                    &mut shard.words[layer.thresholds()],
                    &mut bumped,
                )
                .run();
                layer
            };
            end_layer(band, &mut shard, index, layer, self.columns, &mut bumped);
            std::mem::swap(&mut keys, &mut bumped);
        }
        Ok(shard)
    }

    /// The smallest layer that takes all keys.
    fn plain(&self, band: &mut Band, keys: &[E], index: usize, at: usize) -> Result<Layer> {
        let fewest = (keys.len() as u64).div_ceil(WIDTH);
        // Random rows fit long before.
        for blocks in fewest..=2 * fewest + 8 {
            let starts = starts(blocks);
            let rows = keys.iter().map(|&key| self.row(key, index, starts));
            if band.insert_all(rows, blocks) {
                return Ok(Layer::new(at, blocks, false, self.columns));
            }
        }
        Err(Error::parameter(
            "keys",
            format!("{} whose digests are close together", keys.len()),
            "somebody chose them so: use another seed, or a keyed hasher",
        ))
    }

    #[inline(always)]
    fn row(&self, key: E, layer: usize, starts: u64) -> Row {
        let digest = key.digest();
        let row = if layer == 0 {
            Row::in_first(digest, shard_of(digest, self.shards).1, starts)
        } else {
            Row::in_later(digest, layer, starts)
        };
        row.with_value(self.columns.values, key.value())
    }
}

/// Solves a layer that was filled, and brings the keys that it has bumped into
/// the order of the next one. Without any it has no thresholds.
fn end_layer<E: Entry>(
    band: &Band,
    shard: &mut Shard,
    index: usize,
    layer: Layer,
    columns: Columns,
    bumped: &mut [E],
) {
    sort_for_layer(bumped, index + 1);
    let layer = layer.with_bumps(!bumped.is_empty(), columns);
    shard.words.resize(layer.end(), 0);
    band.solve(&layer, &mut shard.words);
    shard.blocks[index] = u32::try_from(layer.blocks()).unwrap_or(u32::MAX);
}

/// Brings bumped keys into the order of their starts in the next layer.
fn sort_for_layer<E: Entry>(keys: &mut [E], layer: usize) {
    keys.sort_unstable_by_key(|key| mix_int(key.digest().cast_signed(), layer as u64));
}
