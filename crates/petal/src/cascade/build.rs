//! From two lists of digests to a cascade.
//!
//! Owns the choice of the first filter's error, and the passes over the
//! lists: in memory of the filters and a few MiB, wherever the lists are.

use std::cmp::Ordering;

use super::{Cascade, CascadeGeometry, part_about};
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::ribbon::{Columns, Static, StaticBuilder, Valued, columns_for, expected_bytes};
use crate::sizing::Promise;
use crate::traits::{Bits, mask_words};
use crate::words::Words;

/// Digests that are taken at once.
const PART: usize = 1 << 13;

/// Digests in ascending order, each once, that can be read again and again:
/// what [`StaticBuilder::sort_distinct`] leaves, or a file of them.
pub trait DigestSource {
    /// How many there are.
    fn count(&self) -> u64;

    /// All of them, in parts. What follows an error is not read.
    fn parts(&self) -> Box<dyn Iterator<Item = Result<Vec<u64>>> + '_>;
}

impl DigestSource for Vec<u64> {
    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn parts(&self) -> Box<dyn Iterator<Item = Result<Vec<u64>>> + '_> {
        Box::new(self.chunks(PART).map(|part| Ok(part.to_vec())))
    }
}

/// What is built for so many keys.
struct Plan {
    inverted: bool,
    /// Of the first filter.
    columns: Columns,
    /// Keys of the first filter.
    few: u64,
    /// The others that are expected to pass it.
    survivors: f64,
}

impl Plan {
    /// For an error of at most `error` of keys that are in neither list.
    fn new(identity: &Identity, listed: u64, not_listed: u64, error: f64) -> Result<Self> {
        // Refuses what is impossible.
        columns_for(identity, listed, error)?;
        columns_for(identity, not_listed, 1.0)?;
        let inverted = not_listed < listed && {
            let outside = match not_listed {
                0 => 1.0,
                _ => 1.0 - best(not_listed, listed) / 2.0,
            };
            outside <= error
        };
        let (few, many) = match inverted {
            true => (not_listed, listed),
            false => (listed, not_listed),
        };
        let mut pass = best(few, many);
        if !inverted {
            // Half of those that pass get the wrong bit.
            let collisions = identity.collisions().probability(listed);
            pass = pass.min(2.0 * (error - collisions));
        }
        Ok(Self {
            inverted,
            columns: Columns::for_error(pass),
            few,
            // A filter without keys lets none pass.
            survivors: if few == 0 { 0.0 } else { many as f64 * pass },
        })
    }

    /// Bytes of both filters: a little more than they turn out to have.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive count; the cast saturates"
    )]
    fn expected_bytes(&self) -> u64 {
        let survivors = (self.survivors + 5.0 * self.survivors.sqrt()).ceil() as u64;
        CascadeGeometry::SHAPES * 8
            + expected_bytes(self.few, self.columns)
            + expected_bytes(self.few.saturating_add(survivors), bit_alone())
    }
}

/// The share that should pass the first filter for the least size. With r columns it takes
/// `few * r`, and the second filter `few + many * 2^-r` bits: one column more pays while more than
/// `few` are thereby kept from passing.
fn best(few: u64, many: u64) -> f64 {
    many.checked_div(few)
        .and_then(u64::checked_ilog2)
        .map_or(1.0, |columns| (-f64::from(columns)).exp2())
}

/// The columns of the second filter.
fn bit_alone() -> Columns {
    Columns::for_error(1.0).with_values(1)
}

impl Cascade {
    /// Builds a cascade on so many threads. `error` is that of a key in neither list; 1 is for
    /// whatever makes it smallest. Each list is read up to three times, and no more of it than a
    /// part is in memory.
    ///
    /// # Errors
    /// If `error` is not a number from 1e-12 to 1, digests of 64 bits cannot keep it for so many
    /// keys, there are more than 10^12, a digest is in both lists ([`Error::Ambiguous`]), a source
    /// fails or is not in order, or the memory cannot be had.
    pub fn build(
        identity: &Identity,
        listed: &dyn DigestSource,
        not_listed: &dyn DigestSource,
        error: f64,
        threads: usize,
    ) -> Result<Self> {
        let plan = Plan::new(identity, listed.count(), not_listed.count(), error)?;
        let (few, many) = match plan.inverted {
            true => (not_listed, listed),
            false => (listed, not_listed),
        };
        let mut builder =
            StaticBuilder::<u64>::with_columns(identity.clone(), plan.few, plan.columns, threads)?;
        for part in few.parts() {
            builder.push(&part?)?;
        }
        let first = builder.finish()?;
        let mut passed = 0;
        for part in many.parts() {
            passed += survivors(&first, &part?).len() as u64;
        }
        let items = plan.few.saturating_add(passed);
        let mut builder =
            StaticBuilder::<Valued>::with_columns(identity.clone(), items, bit_alone(), threads)?;
        merge(few, many, &first, |part| builder.push(part))?;
        let second = builder.finish()?;
        let items = listed.count().saturating_add(not_listed.count()).max(1);
        let mut about = part_about(identity);
        about.promise = (error < 1.0).then_some(Promise { items, error });
        about.insertions = Some(listed.count());
        let mut shapes = Words::zeroed(8)?;
        let records = [&first, &second].map(|part| part.geometry().record());
        shapes.get_mut()?.copy_from_slice(records.as_flattened());
        Ok(Self {
            parts: Box::new([first, second]),
            inverted: plan.inverted,
            not_listed: not_listed.count(),
            shapes,
            about,
        })
    }

    /// Bytes that such a cascade takes: a little more than it turns out to have.
    ///
    /// # Errors
    /// As for [`Self::build`], as far as the numbers go.
    pub fn expected_bytes(
        identity: &Identity,
        listed: u64,
        not_listed: u64,
        error: f64,
    ) -> Result<u64> {
        Ok(Plan::new(identity, listed, not_listed, error)?.expected_bytes())
    }
}

/// Those that the first filter finds.
fn survivors(first: &Static, digests: &[u64]) -> Vec<u64> {
    let mut mask = vec![0; mask_words(digests.len())];
    first.contains_all_bits(digests, &mut mask);
    let found = |i: usize| mask[i / 64] >> (i % 64) & 1 == 1;
    let kept = digests.iter().enumerate().filter(|(i, _)| found(*i));
    kept.map(|(_, &digest)| digest).collect()
}

/// A source, one digest at a time.
struct Head<'a> {
    parts: Box<dyn Iterator<Item = Result<Vec<u64>>> + 'a>,
    part: std::vec::IntoIter<u64>,
}

impl<'a> Head<'a> {
    fn of(source: &'a dyn DigestSource) -> Self {
        Self {
            parts: source.parts(),
            part: Vec::new().into_iter(),
        }
    }

    /// The next digest of those that `keep` leaves of each part.
    fn next(&mut self, keep: impl Fn(Vec<u64>) -> Vec<u64>) -> Result<Option<u64>> {
        loop {
            if let Some(digest) = self.part.next() {
                return Ok(Some(digest));
            }
            let Some(part) = self.parts.next() else {
                return Ok(None);
            };
            self.part = keep(part?).into_iter();
        }
    }
}

/// Hands over the bit of each key of the first filter, 1, and of each survivor, 0, in ascending
/// order of their digests.
fn merge(
    few: &dyn DigestSource,
    many: &dyn DigestSource,
    first: &Static,
    mut take: impl FnMut(&[Valued]) -> Result<()>,
) -> Result<()> {
    let (mut few, mut many) = (Head::of(few), Head::of(many));
    let all = |part| part;
    let passing = |part: Vec<u64>| survivors(first, &part);
    let mut out = Vec::with_capacity(PART);
    let (mut key, mut survivor) = (few.next(all)?, many.next(passing)?);
    loop {
        // One that has ended comes last.
        let order = match (key, survivor) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(key), Some(survivor)) => key.cmp(&survivor),
        };
        let (digest, value) = match (order, key, survivor) {
            (Ordering::Less, Some(digest), _) => {
                key = few.next(all)?;
                (digest, 1)
            }
            (Ordering::Equal, Some(digest), _) => {
                return Err(Error::Ambiguous {
                    digest,
                    answers: ["listed".to_owned(), "not listed".to_owned()],
                });
            }
            (_, _, Some(digest)) => {
                survivor = many.next(passing)?;
                (digest, 0)
            }
            _ => break, // not reached
        };
        out.push(Valued { digest, value });
        if out.len() == PART {
            take(&out)?;
            out.clear();
        }
    }
    take(&out)
}
