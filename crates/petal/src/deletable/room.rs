//! More slots for the same fingerprints.
//!
//! Owns when a filter doubles its slots, and when it refuses a key instead. A
//! slot more for each is a bit less of each remainder: see
//! [`DeletableGeometry::doubled`].

use super::build::{Builder, Totals};
use super::entry;
use super::table::Layout;
use super::{Deletable, place_of, usable};
use crate::error::{Error, Result};
use crate::geometry::deletable::DeletableGeometry;
use crate::sizing::{self, MAX_ITEMS};
use crate::words::Words;

/// More distinct keys than the filter was made for.
const MORE_KEYS: &str = "grow it, remove keys, or build one for more keys anew";

/// Slots that run out while most are free.
const CROWDED: &str = "most of its slots are free, but those near a key's own are not, which \
    chosen keys alone bring about: build it anew under a secret";

/// Remainders have no bit left.
const COUNTS: &str = "the counts of its keys are larger than it can hold: build one for more \
    keys or a smaller error anew";

impl Deletable {
    /// Doubles the slots by taking a bit from each remainder: all fingerprints
    /// stay as they are, so the error at as many keys is the same, and there is
    /// room for twice as many, at twice the error; the promise is changed to
    /// that. Both filters exist for a moment. Not needed for counts: these get
    /// more slots by themselves.
    ///
    /// # Errors
    /// If the remainders have one bit alone, the filter was opened read-only,
    /// or the memory cannot be had.
    /// Nothing is changed then.
    pub fn grow(&mut self) -> Result<()> {
        self.words.get_mut()?;
        let Some(geometry) = self.geometry.doubled() else {
            return Err(Error::parameter(
                "remainder bits",
                self.layout.bits,
                "a bit for the slots and one that stays: build a filter for more keys anew",
            ));
        };
        let Some((words, totals)) = self.build(geometry, self.iter())? else {
            return Err(self.full(CROWDED));
        };
        self.replace(geometry, words, totals);
        if let Some(promise) = &mut self.about.promise {
            promise.items = promise.items.saturating_mul(2).min(MAX_ITEMS);
            promise.error = sizing::deletable_error(geometry, promise.items).max(promise.error);
        }
        Ok(())
    }

    /// Bounds the bytes that the filter may take when counts need more slots,
    /// old and new ones together: beyond it an insertion is an
    /// [`Error::TooLarge`] that changes nothing. Without a bound it is what this
    /// process may use. Not recorded in a file.
    pub const fn limit_memory(&mut self, bytes: u64) {
        self.most_bytes = bytes;
    }

    /// Sets the count of a fingerprint that the slots have no room for.
    #[cold]
    pub(super) fn set_with_more_slots(
        &mut self,
        fingerprint: u64,
        old: u64,
        new: u64,
    ) -> Result<()> {
        let bits = self.layout.bits;
        let needed = Totals {
            len: self.len() + u64::from(old == 0),
            used: (self.used + entry::slots(bits, new)).saturating_sub(entry::slots(bits, old)),
        };
        let geometry = self.roomier(self.geometry, needed)?;
        if let Some((from, why)) = self.retry
            && self.used < from
        {
            return Err(self.full(why));
        }
        let entries = || {
            let below = self.iter().take_while(move |&(f, _)| f < fingerprint);
            let above = self.iter().skip_while(move |&(f, _)| f <= fingerprint);
            below.chain([(fingerprint, new)]).chain(above)
        };
        match self.build_roomy(geometry, entries) {
            Ok((geometry, words, totals)) => {
                self.replace(geometry, words, totals);
                Ok(())
            }
            Err(error) => {
                if let Error::Full { remedy, .. } = error {
                    self.retry = Some((self.used + self.geometry.slots() / 64 + 1, remedy));
                }
                Err(error)
            }
        }
    }

    /// A table of ascending fingerprints and counts, of a geometry or one with
    /// so many more slots that they fit.
    pub(super) fn build_roomy<I: Iterator<Item = (u64, u64)>>(
        &self,
        mut geometry: DeletableGeometry,
        entries: impl Fn() -> I,
    ) -> Result<(DeletableGeometry, Words, Totals)> {
        loop {
            if let Some((words, totals)) = self.build(geometry, entries())? {
                return Ok((geometry, words, totals));
            }
            let bits = geometry.remainder_bits();
            let needed = entries().fold(Totals::default(), |sum, (_, count)| Totals {
                len: sum.len + 1,
                used: sum.used.saturating_add(entry::slots(bits, count)),
            });
            geometry = self.roomier(geometry, needed)?;
        }
    }

    /// The next larger geometry, if one may be taken for what has no room in
    /// this one: not for more keys than were asked for, and not while most slots
    /// are free, so that chosen keys cannot make the filter as large as they
    /// like.
    fn roomier(&self, geometry: DeletableGeometry, needed: Totals) -> Result<DeletableGeometry> {
        let items = self.about.promise.map_or(0, |promise| promise.items);
        if needed.len > items {
            return Err(self.full(MORE_KEYS));
        }
        if needed.used < usable(geometry) / 2 {
            return Err(self.full(CROWDED));
        }
        geometry.doubled().ok_or_else(|| self.full(COUNTS))
    }

    /// A table of ascending fingerprints and counts; `None` if there is no room.
    pub(super) fn build(
        &self,
        geometry: DeletableGeometry,
        entries: impl Iterator<Item = (u64, u64)>,
    ) -> Result<Option<(Words, Totals)>> {
        let needed = geometry.bytes().saturating_add(self.geometry.bytes());
        if geometry != self.geometry && needed > self.most_bytes {
            return Err(Error::TooLarge {
                needed,
                available: Some(self.most_bytes),
            });
        }
        let mut words = Words::zeroed(geometry.words())?;
        let layout = Layout::new(geometry);
        let mut builder = Builder::new(layout, words.get_mut()?, usable(geometry));
        for (fingerprint, count) in entries {
            let quotient = place_of(fingerprint >> layout.bits);
            let remainder = fingerprint & layout.mask();
            if builder.push(quotient, remainder, count).is_err() {
                return Ok(None);
            }
        }
        let totals = builder.finish();
        Ok(Some((words, totals)))
    }

    pub(super) fn replace(&mut self, geometry: DeletableGeometry, words: Words, totals: Totals) {
        self.geometry = geometry;
        self.layout = Layout::new(geometry);
        self.words = words;
        self.used = totals.used;
        self.about.insertions = Some(totals.len);
        self.retry = None;
    }

    const fn full(&self, remedy: &'static str) -> Error {
        Error::Full {
            kind: "deletable",
            keys: self.len(),
            remedy,
        }
    }
}
