//! A filter that forgets what it is told to forget, and counts.
//!
//! Owns [`Deletable`] and its typed form [`DeletableFilter`]: a quotient
//! filter with counts. Reading its slots is in `table`, changing them in
//! `edit`, making and checking whole tables in `build`, more slots in `room`,
//! two filters in `merge`, the code of counts in `entry`; the layout is in [`crate::geometry::deletable`], sizes in
//! [`crate::sizing`].
//!
//! After Bender et al., "Don't Thrash: How to Cache Your Hash on Flash" (2012),
//! in the rank-and-select form of Pandey, Bender, Johnson and Patro, "A
//! General-Purpose Counting Filter" (2017); the code of counts is another.

mod build;
mod edit;
mod entry;
mod merge;
mod room;
mod table;
#[cfg(test)]
mod tests;

use crate::arch::prefetch::prefetch;
use crate::error::{Error, FormatError, Result};
use crate::geometry::deletable::DeletableGeometry;
use crate::hash::{Bytes, Digest, Key, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::sizing::{self, Promise};
use crate::traits::{Bits, BitsCount, BitsMut, BitsRemove, Contains};
use crate::typed::Typed;
use crate::words::Words;
use build::{Checker, Totals, check};
use edit::Editor;
use table::{Entries, Layout, MOST_BLOCKS, SLOTS, Table};

/// A set of keys that can be removed again, each with the number of times that
/// it was inserted.
///
/// * A key that was inserted more often than removed is always found.
/// * With `n` distinct keys in it, a key that is not is found with an expected
///   probability of at most `p`.
/// * A count is never below the true one, and above it with probability `p` at
///   most, by the count of a key with the same fingerprint.
/// * Remove only keys that were inserted. Removing one that is falsely found
///   takes away from another key, which may then be missed.
/// * `n` distinct keys are taken however often each of them comes: counts take
///   memory, and never from the error, which is that of the distinct
///   keys alone.
/// * The same keys and parameters give the same bits, in whatever order they
///   are inserted.
///
/// Structure: a fingerprint of `log2(n / p)` bits and a little for each key,
/// in 9.6 bits at 1 % (and as many above that). A key that is there twice
/// takes a second slot, three times four, and from then on the slots grow with
/// the logarithm of its count, one for each `r - 1` binary digits, with `r` bits
/// of remainder (7 at 1 %): a key takes no more slots than it was inserted times, but
/// for one more at a count of three. When the slots run out, and no more distinct
/// keys are there than were asked for, the filter doubles them and takes
/// a bit of each remainder for that. Fingerprints, and so the error, stay; the
/// filter is then nearly twice as large, old and new slots exist for a moment,
/// and [`Deletable::limit_memory`] bounds that. At two and one bits of remainder
/// digits take more slots, and then there is nothing to take:
/// every key up to 2^20 times at once is within that, as are single keys up to 2^64 - 1,
/// where a count stays whatever is removed.
///
/// [`Error::Full`] means that there are more distinct keys than `n` and no slot is
/// left; [`Self::grow`] makes room for twice as many. Its text tells two other
/// cases apart, which do not come by chance: counts far beyond those above, and
/// keys that somebody chose so that their slots follow each other, which are
/// refused before they make calls slow.
///
/// ```
/// let mut tags = petal::DeletableFilter::new(1000, 0.01)?;
/// assert!(tags.insert("a")?);
/// assert!(!tags.insert("a")?);
/// assert_eq!(tags.count("a")?, 2);
/// assert!(tags.remove("a")? && tags.remove("a")?);
/// assert!(!tags.contains("a") && !tags.remove("a")?);
/// # Ok::<(), petal::Error>(())
/// ```
pub type DeletableFilter<K = Bytes> = Typed<K, Deletable>;

impl DeletableFilter<Bytes> {
    /// A filter of byte keys, sized for `items` distinct keys and an expected
    /// error of at most `error`, under the default hasher.
    ///
    /// # Errors
    /// As for [`crate::BloomFilter::new`].
    pub fn new(items: u64, error: f64) -> Result<Self> {
        Self::with_hasher(items, error, KeyHasher::default())
    }
}

impl<K: KeyKind> DeletableFilter<K> {
    /// A filter of either kind of key under a hasher of the caller's choice.
    ///
    /// # Errors
    /// As for [`crate::BloomFilter::new`].
    pub fn with_hasher(items: u64, error: f64, hasher: KeyHasher) -> Result<Self> {
        let identity = Identity::new(K::TYPE).with_hasher(hasher);
        Self::new_for(Deletable::sized(identity, Promise { items, error })?)
    }

    /// Inserts a key so many times at once. True if it was certainly absent.
    ///
    /// # Errors
    /// As for [`Self::insert`].
    pub fn insert_times<Q: Key<K> + ?Sized>(&mut self, key: &Q, times: u64) -> Result<bool> {
        let digest = key.digest_bits(&self.meta().identity.hasher);
        self.inner_mut().insert_times_bits(digest, times)
    }

    /// [`Deletable::grow`]
    ///
    /// # Errors
    /// As there.
    pub fn grow(&mut self) -> Result<()> {
        self.inner_mut().grow()
    }
}

/// [`DeletableFilter`] over digests: the type of its keys is known at run time.
#[derive(Debug)]
pub struct Deletable {
    geometry: DeletableGeometry,
    layout: Layout,
    words: Words,
    about: About,
    /// Slots in use.
    used: u64,
    /// Whether the words are known to be a right table.
    checked: bool,
    /// Bytes that the words may take.
    most_bytes: u64,
    /// After more slots were looked for in vain: slots in use from which on they are
    /// again, not at each insertion, and why there are none until then.
    retry: Option<(u64, &'static str)>,
}

/// Digests whose lines are under way at once in a batch.
const GROUP: usize = 16;

impl Deletable {
    /// A filter for keys of the given identity, sized for a promise.
    ///
    /// # Errors
    /// As for [`DeletableFilter::new`].
    pub fn sized(identity: Identity, promise: Promise) -> Result<Self> {
        let geometry = sizing::deletable_for(promise.items, promise.error, identity.collisions())?;
        Self::with_geometry(identity, geometry, promise)
    }

    /// A filter of a given shape. That the shape keeps the promise is the
    /// caller's word.
    ///
    /// # Errors
    /// If the memory cannot be had.
    pub fn with_geometry(
        identity: Identity,
        geometry: DeletableGeometry,
        promise: Promise,
    ) -> Result<Self> {
        Ok(Self {
            geometry,
            words: Words::zeroed(geometry.words())?,
            layout: Layout::new(geometry),
            about: About::new(identity, Some(promise)),
            used: 0,
            checked: true,
            most_bytes: u64::MAX,
            retry: None,
        })
    }

    /// Puts together what a file held. The words must fit the geometry. Those
    /// that can be changed are checked; others can be read whatever they are.
    /// A check that was begun while they came is brought to its end.
    pub(crate) fn from_parts(
        about: About,
        geometry: DeletableGeometry,
        mut words: Words,
        used: u64,
        begun: Option<Checking>,
    ) -> Result<Self> {
        debug_assert_eq!(words.get().len() as u64, geometry.words());
        let writable = words.get_mut().is_ok();
        if about.insertions.is_none() {
            let expected = "known, as the kind is deletable";
            return Err(refuse(
                "insertions",
                "unknown".to_owned(),
                expected.to_owned(),
            ));
        }
        let filter = Self {
            geometry,
            layout: Layout::new(geometry),
            words,
            about,
            used,
            checked: writable,
            most_bytes: u64::MAX,
            retry: None,
        };
        // What a look at the header tells, also of a table that is not checked.
        let slots = geometry.slots();
        if used > slots || filter.len() > used {
            let got = format!("{used}, for {} keys", filter.len());
            return Err(refuse(
                "used slots",
                got,
                format!("at most {slots}, and one or more for each key"),
            ));
        }
        if !writable {
            return Ok(filter);
        }
        let totals = match begun {
            Some(begun) => begun.checker.finish(filter.table()).ok_or_else(no_table)?,
            None => filter.check()?,
        };
        if filter.len() != totals.len {
            return Err(refuse(
                "insertions",
                filter.len().to_string(),
                totals.len.to_string(),
            ));
        }
        if used != totals.used {
            return Err(refuse(
                "used slots",
                used.to_string(),
                totals.used.to_string(),
            ));
        }
        Ok(filter)
    }

    /// What is in the table, which must be a right one.
    fn check(&self) -> Result<Totals> {
        check(self.table()).ok_or_else(no_table)
    }

    pub(crate) const fn words(&self) -> &Words {
        &self.words
    }

    fn table(&self) -> Table<'_> {
        Table {
            layout: self.layout,
            words: self.words.get(),
        }
    }

    /// The shape.
    #[must_use]
    pub const fn geometry(&self) -> DeletableGeometry {
        self.geometry
    }

    /// Different fingerprints in the filter: its distinct keys, less those
    /// that share one.
    #[must_use]
    pub const fn len(&self) -> u64 {
        match self.about.insertions {
            Some(len) => len,
            None => 0, // not reached
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Slots in use: one for each key, and more for what is there repeatedly
    /// (see [`crate::DeletableFilter`]).
    #[must_use]
    pub const fn used_slots(&self) -> u64 {
        self.used
    }

    /// The most slots that may be in use: 31/32 of all.
    #[must_use]
    pub const fn usable_slots(&self) -> u64 {
        usable(self.geometry)
    }

    /// The share of slots in use.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.used as f64 / self.geometry.slots() as f64
    }

    /// The error as the filter stands now: the chance that an absent key has
    /// one of its fingerprints.
    #[must_use]
    pub fn error_now(&self) -> f64 {
        self.len() as f64 / self.geometry.fingerprints() as f64
    }

    /// Every fingerprint in ascending order and how often it is there. That of
    /// a digest is [`Self::fingerprint`].
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        Entries::new(self.table())
            .map(|(quotient, entry)| (self.joined(quotient, entry.remainder), entry.count))
    }

    /// The fingerprint of a quotient and a remainder.
    const fn joined(&self, quotient: usize, remainder: u64) -> u64 {
        (quotient as u64) << self.layout.bits | remainder
    }

    /// What the filter keeps of a digest: one of
    /// [`DeletableGeometry::fingerprints`] numbers.
    ///
    /// # Errors
    /// If the digest is of another origin.
    pub fn fingerprint(&self, digest: Digest) -> Result<u64> {
        self.origin().accept(digest.origin)?;
        let (quotient, remainder) = self.split(digest.bits);
        Ok(self.joined(quotient, remainder))
    }

    #[inline(always)]
    fn split(&self, digest: u64) -> (usize, u64) {
        let (quotient, remainder) = self.geometry.split(digest);
        (place_of(quotient), remainder)
    }

    /// Changes the count of a fingerprint; says what it was.
    #[inline]
    fn change(&mut self, digest: u64, new: impl Fn(u64) -> u64) -> Result<u64> {
        let (quotient, remainder) = self.split(digest);
        let room = self.usable_slots().saturating_sub(self.used);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let mut editor = Editor {
            layout: self.layout,
            words: self.words.get_mut()?,
        };
        let place = editor.find(quotient, remainder);
        let changed = place.and_then(|place| {
            let old = place.count();
            let new = new(old);
            let slots = match new == old {
                true => 0,
                false => editor.set_count(place, new, room)?,
            };
            Ok((old, new, slots))
        });
        let Ok((old, new, slots)) = changed else {
            let old = self.table().count(quotient, remainder);
            self.set_with_more_slots(self.joined(quotient, remainder), old, new(old))?;
            return Ok(old);
        };
        self.used = self.used.saturating_add_signed(slots as i64);
        if let Some(len) = &mut self.about.insertions {
            *len = (*len + u64::from(new > 0)).saturating_sub(u64::from(old > 0));
        }
        Ok(old)
    }

    fn insert_times_bits(&mut self, digest: u64, times: u64) -> Result<bool> {
        let before = self.change(digest, |count| count.saturating_add(times))?;
        Ok(before == 0 && times > 0)
    }

    /// Asks for the lines of a digest.
    #[inline(always)]
    fn fetch(&self, digest: u64) {
        let (quotient, _) = self.split(digest);
        let (words, block) = (self.words.get(), quotient / SLOTS);
        let remainders = self.layout.remainders(block);
        prefetch(words.as_ptr().wrapping_add(self.layout.offsets(block)));
        prefetch(words.as_ptr().wrapping_add(self.layout.occupied(block)));
        let at = quotient % SLOTS * self.layout.bits as usize / 64;
        prefetch(words.as_ptr().wrapping_add(remainders + at));
    }
}

/// A check of a table whose words come one after another.
#[derive(Debug)]
pub(crate) struct Checking {
    layout: Layout,
    checker: Checker,
}

impl Checking {
    pub(crate) fn new(geometry: DeletableGeometry) -> Self {
        Self {
            layout: Layout::new(geometry),
            checker: Checker::default(),
        }
    }

    /// Goes on as far as can be told from the first `come` words.
    pub(crate) fn advance(&mut self, words: &[u64], come: usize) {
        let table = Table {
            layout: self.layout,
            words,
        };
        let blocks = self.layout.blocks_in(come);
        self.checker
            .advance(table, blocks.saturating_sub(MOST_BLOCKS + 1));
    }
}

/// How a table is refused that is none.
fn no_table() -> Error {
    let (got, expected) = ("no quotient filter", "one as this library makes it");
    refuse("slots", got.to_owned(), expected.to_owned())
}

/// How a file is refused that contradicts its table.
fn refuse(name: &'static str, got: String, expected: String) -> Error {
    Error::Format(FormatError::Field {
        name,
        got,
        expected,
    })
}

/// The most slots that may be in use.
const fn usable(geometry: DeletableGeometry) -> u64 {
    geometry.slots() - geometry.slots() / 32
}

/// A number of a slot, which is in memory.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the slots are in memory, so their numbers fit a usize"
)]
const fn place_of(quotient: u64) -> usize {
    quotient as usize
}

impl Bits for Deletable {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    #[inline]
    fn contains_bits(&self, digest: u64) -> bool {
        let (quotient, remainder) = self.split(digest);
        self.table().count(quotient, remainder) > 0
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        for (i, &digest) in digests.iter().enumerate() {
            if let Some(&later) = digests.get(i + GROUP) {
                self.fetch(later);
            }
            mask[i / 64] |= u64::from(self.contains_bits(digest)) << (i % 64);
        }
    }
}

impl BitsMut for Deletable {
    /// Inserts once more. True if the key was certainly absent.
    #[inline]
    fn insert_bits(&mut self, digest: u64) -> Result<bool> {
        self.insert_times_bits(digest, 1)
    }

    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        for (i, &digest) in digests.iter().enumerate() {
            if let Some(&later) = digests.get(i + GROUP) {
                self.fetch(later);
            }
            mask[i / 64] |= u64::from(self.insert_bits(digest)?) << (i % 64);
        }
        Ok(())
    }
}

impl BitsRemove for Deletable {
    fn remove_bits(&mut self, digest: u64) -> Result<bool> {
        // One that could not go on counting is never known to have come down.
        let once_less = |count: u64| match count {
            u64::MAX => u64::MAX,
            count => count.saturating_sub(1),
        };
        let old = self.change(digest, once_less)?;
        Ok(once_less(old) < old)
    }
}

impl BitsCount for Deletable {
    fn count_bits(&self, digest: u64) -> Result<u64> {
        let (quotient, remainder) = self.split(digest);
        Ok(self.table().count(quotient, remainder))
    }
}
