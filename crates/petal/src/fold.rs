//! Filters refitted to what they hold: folded to half their size, and again.
//!
//! Owns folding and the choice of how often. That half a geometry is the OR of
//! neighbours is [`crate::geometry`]'s and [`crate::classic`]'s; the sizes that
//! a folded filter promises are [`crate::sizing`]'s.
//!
//! A block is `digest * blocks >> 64`. With twice the blocks it is that, twice,
//! or one more: so block `i` of the half is the OR of blocks `2i` and `2i + 1`,
//! and the folded filter is, bit for bit, the one of half the blocks that the
//! same keys would have been inserted into. The lanes depend on the digest
//! alone. It holds in each region, and for the bits of a classic filter.

use crate::any::AnyFilter;
use crate::bloom::Bloom;
use crate::classic::Classic;
use crate::error::{Error, Result};
use crate::growable::Growable;
use crate::sizing::{self, ClassicGiven, Promise};
use crate::traits::Bits;
use crate::words::Words;

/// A kind that folds.
trait Fold: Bits + Sized {
    /// The filter of half the size; `None` if the shape has no half.
    fn half(&self) -> Result<Option<Self>>;
    /// A copy in memory of its own.
    fn copy(&self) -> Result<Self>;
    /// Distinct keys, estimated from the words.
    fn estimate(&self) -> f64;
    /// The most keys that its shape holds with an expected error.
    fn capacity(&self, error: f64) -> Result<u64>;

    /// Folded as often as the shape still is one for the keys that it holds,
    /// with an expected error of at most `error`. Not by the error of the very
    /// words: that scatters around it, and would stop a filter that is full.
    fn fold_to(&self, error: Option<f64>) -> Result<Self> {
        let error = match (error, self.meta().promise()) {
            (Some(error), _) => {
                sizing::check_error(error)?;
                if (self.capacity(error)? as f64) < self.keys() {
                    return Err(Error::parameter(
                        "p",
                        format!("{error:?}"),
                        "the filter holds too many keys for it now: use a larger one",
                    ));
                }
                error
            }
            (None, Some(promise)) => promise.error,
            (None, None) => {
                return Err(Error::parameter(
                    "p",
                    "not recorded",
                    "say which error the filter is to keep",
                ));
            }
        };
        let keys = self.keys();
        let mut best: Option<Self> = None;
        loop {
            let current = best.as_ref().unwrap_or(self);
            let Some(mut half) = current.half()? else {
                break;
            };
            let items = half.capacity(error)?;
            if items == 0 || (items as f64) < keys {
                break;
            }
            half.meta_mut().promise = Some(Promise { items, error });
            best = Some(half);
        }
        match best {
            Some(folded) => Ok(folded),
            None => self.copy(),
        }
    }

    /// Distinct keys: counted, or else estimated.
    fn keys(&self) -> f64 {
        match self.meta().insertions() {
            Some(count) => count as f64,
            None => self.estimate(),
        }
    }
}

impl Bloom {
    /// The filter folded to half its size so many times: bit for bit the one
    /// of `blocks / 2^times` blocks that the same keys would have been
    /// inserted into. It promises what the folded shape keeps: as many keys as
    /// that holds with the error of the old promise. The count of insertions
    /// stays.
    ///
    /// # Errors
    /// If the number of blocks becomes odd before
    /// ([`crate::SplitGeometry::folds`]), not even one key can be had with that
    /// error, or the memory cannot be had.
    pub fn folded(&self, times: u32) -> Result<Self> {
        let mut folded = self.copy()?;
        for done in 0..times {
            folded = folded.half()?.ok_or_else(|| {
                Error::parameter(
                    "folds",
                    times,
                    format!(
                        "{} blocks fold {done} times: an odd number cannot be halved",
                        self.geometry().blocks()
                    ),
                )
            })?;
        }
        if let Some(promise) = self.meta().promise()
            && times > 0
        {
            let items = folded.capacity(promise.error)?;
            if items == 0 {
                return Err(Error::parameter(
                    "folds",
                    times,
                    format!("so small a filter holds no key at {:e}", promise.error),
                ));
            }
            folded.meta_mut().promise = Some(Promise { items, ..promise });
        }
        Ok(folded)
    }

    /// The filter refitted to what it holds: folded as often as the expected
    /// error, for the keys it has, stays at or below `error` (by default that
    /// of its promise). As [`Self::folded`], it promises `error` for as
    /// many keys as the folded shape holds; one that does not fold is copied as
    /// it is.
    ///
    /// ```
    /// use petal::{Bloom, BloomFilter};
    /// let mut roomy = BloomFilter::new(1_000_000, 0.001)?;
    /// roomy.insert("one key")?;
    /// let small = roomy.into_inner().shrunk(None)?;
    /// assert!(small.geometry().bytes() < 1000);
    /// # Ok::<(), petal::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `error` is no error a filter is made for, or less than what the
    /// filter has for its keys now; if neither it nor a promise is there; or if the memory
    /// cannot be had.
    pub fn shrunk(&self, error: Option<f64>) -> Result<Self> {
        self.fold_to(error)
    }
}

impl Fold for Bloom {
    fn half(&self) -> Result<Option<Self>> {
        let Some(geometry) = self.geometry().half() else {
            return Ok(None);
        };
        let mut words = Words::zeroed(geometry.words())?;
        let block = geometry.block().count() as usize;
        // Regions are runs of an even number of blocks: pairs never mix them.
        let pairs = self.words().get().chunks_exact(2 * block);
        for (both, half) in pairs.zip(words.get_mut()?.chunks_exact_mut(block)) {
            let (first, second) = both.split_at(block);
            for ((half, first), second) in half.iter_mut().zip(first).zip(second) {
                *half = first | second;
            }
        }
        Ok(Some(Self::from_parts(self.meta().clone(), geometry, words)))
    }

    fn copy(&self) -> Result<Self> {
        let words = self.words().to_owned_words()?;
        Ok(Self::from_parts(
            self.meta().clone(),
            self.geometry(),
            words,
        ))
    }

    fn estimate(&self) -> f64 {
        self.estimated_len()
    }

    fn capacity(&self, error: f64) -> Result<u64> {
        let collisions = self.meta().identity().collisions();
        let items = sizing::capacity_of(self.geometry(), error, collisions)?;
        Ok(items.min(sizing::MAX_ITEMS))
    }
}

impl Classic {
    /// The filter refitted to what it holds, as [`Bloom::shrunk`]: folded to
    /// half its bits as long as their number is even.
    ///
    /// # Errors
    /// As there.
    pub fn shrunk(&self, error: Option<f64>) -> Result<Self> {
        self.fold_to(error)
    }
}

impl Fold for Classic {
    fn half(&self) -> Result<Option<Self>> {
        let Some(geometry) = self.geometry().half() else {
            return Ok(None);
        };
        let mut words = Words::zeroed(geometry.words())?;
        for (half, both) in words
            .get_mut()?
            .iter_mut()
            .zip(self.words().get().chunks(2))
        {
            let high = both.get(1).map_or(0, |&word| pairs_of(word));
            *half = pairs_of(both[0]) | high << 32;
        }
        Ok(Some(Self::from_parts(self.meta().clone(), geometry, words)))
    }

    fn copy(&self) -> Result<Self> {
        let words = self.words().to_owned_words()?;
        Ok(Self::from_parts(
            self.meta().clone(),
            self.geometry(),
            words,
        ))
    }

    fn estimate(&self) -> f64 {
        self.estimated_len()
    }

    fn capacity(&self, error: f64) -> Result<u64> {
        let given = ClassicGiven {
            error: Some(error),
            bits: Some(self.geometry().bits()),
            hashes: Some(self.geometry().positions()),
            ..ClassicGiven::default()
        };
        // It is refused where not even one key fits.
        let collisions = self.meta().identity().collisions();
        Ok(sizing::plan_classic(given, collisions).map_or(0, |plan| plan.items))
    }
}

/// The OR of each two neighbouring bits, as the low 32 bits.
const fn pairs_of(word: u64) -> u64 {
    let mut bits = (word | word >> 1) & 0x5555_5555_5555_5555;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) & 0x0000_0000_ffff_ffff
}

impl Growable {
    /// Each stage refitted to what it holds, within its own share of the
    /// error: see [`Bloom::shrunk`]. In effect it is the last one, which may
    /// be nearly empty. The filter still grows; the next stage comes sooner.
    ///
    /// # Errors
    /// If the memory cannot be had.
    pub fn shrunk(&self) -> Result<Self> {
        let stages: Result<Vec<Bloom>> = self.stages().iter().map(|s| s.fold_to(None)).collect();
        Ok(Self::from_parts(self.meta().clone(), *self.plan(), stages?))
    }
}

impl AnyFilter {
    /// The filter refitted to what it holds: see [`Bloom::shrunk`],
    /// [`Classic::shrunk`] and [`Growable::shrunk`].
    ///
    /// # Errors
    /// As there; if an `error` is given for a growable filter, whose stages
    /// have their own; or if the kind does not fold.
    pub fn shrunk(&self, error: Option<f64>) -> Result<Self> {
        match (self, error) {
            (Self::Bloom(filter), _) => Ok(filter.shrunk(error)?.into()),
            (Self::Classic(filter), _) => Ok(filter.shrunk(error)?.into()),
            (Self::Growable(filter), None) => Ok(filter.shrunk()?.into()),
            (Self::Growable(_), Some(error)) => Err(Error::parameter(
                "p",
                format!("{error:?}"),
                "the stages of a growable filter keep the errors they have: leave it out",
            )),
            _ => Err(Error::Unsupported {
                operation: "shrinking",
                kind: self.kind().name(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
