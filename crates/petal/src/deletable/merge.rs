//! Two quotient filters made one.
//!
//! Owns union, intersection and equality. Filters that were made alike have the
//! same fingerprints, also where counts have given one of them more slots.

use std::cmp::Ordering;

use super::Deletable;
use crate::error::{Error, Result};
use crate::traits::Merge;

impl Deletable {
    fn accept(&self, other: &Self) -> Result<()> {
        self.about.identity.accept(&other.about.identity)?;
        if self.geometry.fingerprints() != other.geometry.fingerprints() {
            return Err(Error::mismatch("geometry", self.geometry, other.geometry));
        }
        Ok(())
    }

    /// [`Self::accept`], for a filter that is to be changed by one that may
    /// have been mapped and not looked at.
    fn accept_for_merge(&mut self, other: &Self) -> Result<()> {
        self.accept(other)?;
        self.words.get_mut()?;
        if !other.checked {
            other.check()?;
        }
        Ok(())
    }
}

impl Merge for Deletable {
    /// Adds the counts of both; takes as many slots as that needs.
    fn union_with(&mut self, other: &Self) -> Result<()> {
        self.accept_for_merge(other)?;
        let sum = |mine: u64, theirs: u64| mine.saturating_add(theirs);
        let geometry = match self.geometry.slots() < other.geometry.slots() {
            true => other.geometry,
            false => self.geometry,
        };
        let (geometry, words, totals) = self.build_roomy(geometry, || merged(self, other, sum))?;
        self.replace(geometry, words, totals);
        Ok(())
    }

    /// Keeps the smaller count of each fingerprint.
    fn intersect_with(&mut self, other: &Self) -> Result<()> {
        self.accept_for_merge(other)?;
        let (geometry, words, totals) =
            self.build_roomy(self.geometry, || merged(self, other, u64::min))?;
        self.replace(geometry, words, totals);
        Ok(())
    }
}

/// The fingerprints of both filters with a count made of both counts, without
/// those for which that is 0.
fn merged(
    mine: &Deletable,
    theirs: &Deletable,
    count: impl Fn(u64, u64) -> u64,
) -> impl Iterator<Item = (u64, u64)> {
    let mut mine = mine.iter().peekable();
    let mut theirs = theirs.iter().peekable();
    let both = std::iter::from_fn(move || {
        let order = match (mine.peek(), theirs.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let a = mine.next_if(|_| order.is_le());
        let b = theirs.next_if(|_| order.is_ge());
        let (fingerprint, _) = a.or(b)?;
        let of = |side: Option<(u64, u64)>| side.map_or(0, |(_, count)| count);
        Some((fingerprint, count(of(a), of(b))))
    });
    both.filter(|&(_, count)| count > 0)
}

/// Equal if they give the same answers to every key: the same fingerprints
/// and counts, in however many slots.
impl PartialEq for Deletable {
    fn eq(&self, other: &Self) -> bool {
        self.accept(other).is_ok()
            && match self.geometry == other.geometry {
                true => self.words.get() == other.words.get(),
                false => self.iter().eq(other.iter()),
            }
    }
}
