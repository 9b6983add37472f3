//! Filters whose kind is known only at run time: what a file turns out to
//! hold.
//!
//! Owns [`AnyFilter`] and [`Kind`]. Each kind's own module does the work.

use std::fmt;

use crate::bloom::Bloom;
use crate::cascade::Cascade;
use crate::classic::Classic;
use crate::counting::Counting;
use crate::deletable::Deletable;
use crate::digest_set::DigestSet;
use crate::error::{Error, Result};
use crate::growable::Growable;
use crate::hash::KeyType;
use crate::identity::About;
use crate::ribbon::Static;
use crate::traits::{Bits, BitsCount, BitsMut, BitsRemove, Contains, Count, Insert, Merge, Remove};
use crate::window::Window;

/// The kinds of filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// [`DigestSet`]
    DigestSet,
    /// [`Bloom`]
    Bloom,
    /// [`Classic`]
    Classic,
    /// [`Growable`]
    Growable,
    /// [`Counting`]
    Counting,
    /// [`Window`]
    Window,
    /// [`Deletable`]
    Deletable,
    /// [`Static`]
    Static,
    /// [`Cascade`]
    Cascade,
}

impl Kind {
    /// The kind's name, as the command takes and prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DigestSet => "digests",
            Self::Bloom => "bloom",
            Self::Classic => "classic",
            Self::Growable => "growable",
            Self::Counting => "counting",
            Self::Window => "window",
            Self::Deletable => "deletable",
            Self::Static => "static",
            Self::Cascade => "cascade",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A filter of any kind, for keys of either type. What a kind cannot do is
/// an [`Error::Unsupported`].
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyFilter {
    /// The digests themselves.
    DigestSet(DigestSet),
    /// Split blocks of a fixed size.
    Bloom(Bloom),
    /// m bits, k positions.
    Classic(Classic),
    /// A chain of split-block filters.
    Growable(Growable),
    /// A counter for every bit of a split-block filter.
    Counting(Counting),
    /// Generations, of which the oldest is forgotten.
    Window(Window),
    /// A quotient filter with counts.
    Deletable(Deletable),
    /// A ribbon, of keys that do not change.
    Static(Static),
    /// Two ribbons, exact for two lists that do not change.
    Cascade(Cascade),
}

/// Runs an expression on whatever filter there is.
macro_rules! each {
    ($any:expr, $filter:ident => $run:expr) => {
        match $any {
            Self::DigestSet($filter) => $run,
            Self::Bloom($filter) => $run,
            Self::Classic($filter) => $run,
            Self::Growable($filter) => $run,
            Self::Counting($filter) => $run,
            Self::Window($filter) => $run,
            Self::Deletable($filter) => $run,
            Self::Static($filter) => $run,
            Self::Cascade($filter) => $run,
        }
    };
}

impl AnyFilter {
    /// Which kind it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::DigestSet(_) => Kind::DigestSet,
            Self::Bloom(_) => Kind::Bloom,
            Self::Classic(_) => Kind::Classic,
            Self::Growable(_) => Kind::Growable,
            Self::Counting(_) => Kind::Counting,
            Self::Window(_) => Kind::Window,
            Self::Deletable(_) => Kind::Deletable,
            Self::Static(_) => Kind::Static,
            Self::Cascade(_) => Kind::Cascade,
        }
    }

    /// Inserts every digest of a set of the same origin; what comes of it is
    /// the same for all sets of the same digests. A Bloom or classic filter
    /// that was empty then knows how many different digests it holds, and has
    /// their number as its [`About::insertions`], those included that changed
    /// no bit. The other kinds take the digests in ascending order.
    ///
    /// # Errors
    /// If the origins differ, or the filter refuses.
    pub fn fill_from(&mut self, set: DigestSet) -> Result<()> {
        let was_empty = Contains::about(self).insertions() == Some(0);
        if was_empty && let Self::Bloom(_) | Self::Classic(_) = self {
            set.pour_into(self)?;
            self.meta_mut().insertions = Some(set.len());
            return Ok(());
        }
        set.pour_in_order(self)
    }

    /// Whether a byte key may have been inserted.
    ///
    /// # Errors
    /// If the filter is for integers.
    pub fn contains_bytes(&self, key: &[u8]) -> Result<bool> {
        Ok(self.contains_bits(self.bits_of_bytes(key)?))
    }

    /// Whether an integer key may have been inserted.
    ///
    /// # Errors
    /// If the filter is for bytes.
    pub fn contains_int(&self, key: i64) -> Result<bool> {
        Ok(self.contains_bits(self.bits_of_int(key)?))
    }

    /// Inserts a byte key. True if that changed a bit.
    ///
    /// # Errors
    /// If the filter is for integers, is read-only, or cannot grow.
    pub fn insert_bytes(&mut self, key: &[u8]) -> Result<bool> {
        self.insert_bits(self.bits_of_bytes(key)?)
    }

    /// Inserts an integer key. True if that changed a bit.
    ///
    /// # Errors
    /// If the filter is for bytes, is read-only, or cannot grow.
    pub fn insert_int(&mut self, key: i64) -> Result<bool> {
        self.insert_bits(self.bits_of_int(key)?)
    }

    /// Undoes one insertion of a byte key: see [`crate::Remove`].
    ///
    /// # Errors
    /// If the filter is for integers, is read-only, or cannot forget.
    pub fn remove_bytes(&mut self, key: &[u8]) -> Result<bool> {
        self.remove_bits(self.bits_of_bytes(key)?)
    }

    /// Undoes one insertion of an integer key: see [`crate::Remove`].
    ///
    /// # Errors
    /// If the filter is for bytes, is read-only, or cannot forget.
    pub fn remove_int(&mut self, key: i64) -> Result<bool> {
        self.remove_bits(self.bits_of_int(key)?)
    }

    /// How often a byte key was inserted: see [`crate::Count`].
    ///
    /// # Errors
    /// If the filter is for integers, or does not count.
    pub fn count_bytes(&self, key: &[u8]) -> Result<u64> {
        self.count_bits(self.bits_of_bytes(key)?)
    }

    /// How often an integer key was inserted: see [`crate::Count`].
    ///
    /// # Errors
    /// If the filter is for bytes, or does not count.
    pub fn count_int(&self, key: i64) -> Result<u64> {
        self.count_bits(self.bits_of_int(key)?)
    }

    /// What a kind that lacks an operation answers.
    const fn lacks(&self, operation: &'static str) -> Error {
        Error::Unsupported {
            operation,
            kind: self.kind().name(),
        }
    }

    /// The digest of a byte key, if the filter is for bytes.
    pub(crate) fn bits_of_bytes(&self, key: &[u8]) -> Result<u64> {
        self.accept_key_type(KeyType::Bytes)?;
        Ok(self.hasher().bits_of_bytes(key))
    }

    /// The digest of an integer key, if the filter is for integers.
    pub(crate) fn bits_of_int(&self, key: i64) -> Result<u64> {
        self.accept_key_type(KeyType::Int)?;
        Ok(self.hasher().bits_of_int(key))
    }

    fn hasher(&self) -> &crate::hash::KeyHasher {
        &Contains::about(self).identity().hasher
    }

    fn accept_key_type(&self, asked: KeyType) -> Result<()> {
        let own = Contains::about(self).identity().key_type;
        if own == asked {
            Ok(())
        } else {
            Err(Error::mismatch("key type", own, asked))
        }
    }

    /// Bytes of the words.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::DigestSet(set) => set.slots() * 8,
            Self::Bloom(filter) => filter.geometry().bytes(),
            Self::Classic(filter) => filter.geometry().words() * 8,
            Self::Growable(filter) => filter.bytes(),
            Self::Counting(filter) => filter.geometry().bytes(),
            Self::Window(filter) => filter.geometry().bytes(),
            Self::Deletable(filter) => filter.geometry().bytes(),
            Self::Static(filter) => filter.bytes(),
            Self::Cascade(filter) => filter.bytes(),
        }
    }

    /// The share of bits that are set, of counters that are not 0, or of slots
    /// that are used.
    #[must_use]
    pub fn fill(&self) -> f64 {
        match self {
            Self::DigestSet(set) => set.len() as f64 / set.slots() as f64,
            Self::Bloom(filter) => filter.fill(),
            Self::Classic(filter) => filter.fill(),
            Self::Growable(filter) => filter.fill(),
            Self::Counting(filter) => filter.fill(),
            Self::Window(filter) => filter.fill(),
            Self::Deletable(filter) => filter.fill(),
            Self::Static(filter) => filter.fill(),
            Self::Cascade(filter) => filter.fill(),
        }
    }

    /// Distinct keys: exact for a [`DigestSet`], a [`Static`] filter and a [`Cascade`] (those listed), and but for shared fingerprints
    /// for a [`Deletable`]; in a [`Window`] those of each
    /// generation that changed a bit; else an estimate from the fill, infinite
    /// if every bit is set.
    #[must_use]
    pub fn estimated_len(&self) -> f64 {
        match self {
            Self::DigestSet(set) => set.len() as f64,
            Self::Bloom(filter) => filter.estimated_len(),
            Self::Classic(filter) => filter.estimated_len(),
            Self::Growable(filter) => filter.estimated_len(),
            Self::Counting(filter) => filter.estimated_len(),
            Self::Window(filter) => filter.held() as f64,
            Self::Deletable(filter) => filter.len() as f64,
            Self::Static(filter) => filter.len() as f64,
            Self::Cascade(filter) => filter.len() as f64,
        }
    }

    /// The chance that a random absent key is "seen", as the filter stands:
    /// from all of its words, and from the keys that share a digest. For a [`Cascade`] that is
    /// one of neither list.
    #[must_use]
    pub fn error_now(&self) -> f64 {
        let words = match self {
            Self::DigestSet(_) => 0.0,
            Self::Bloom(filter) => filter.error_now(),
            Self::Classic(filter) => filter.error_now(),
            Self::Growable(filter) => filter.error_now(),
            Self::Counting(filter) => filter.error_now(),
            Self::Window(filter) => filter.error_now(),
            Self::Static(filter) => filter.error_now(),
            Self::Cascade(filter) => filter.error_now(),
            // Shared digests are shared fingerprints.
            Self::Deletable(filter) => return filter.error_now(),
        };
        let collisions = Contains::about(self).identity().collisions();
        let held = self.estimated_count();
        words + collisions.probability(held) * (1.0 - words)
    }

    /// The count of insertions, or where it is not that of distinct keys the
    /// estimate.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate of a count is not negative; the cast saturates"
    )]
    fn estimated_count(&self) -> u64 {
        let counted = match self {
            Self::Counting(_) => None, // its insertions may be repeats
            Self::Window(window) => Some(window.held()), // insertions are those of all time
            _ => Contains::about(self).insertions(),
        };
        counted.unwrap_or_else(|| self.estimated_len().round() as u64)
    }

    /// How many more distinct keys the filter may take and keep its promise;
    /// `None` if it has no limit (it grows, or forgets). A [`Static`] filter and a [`Cascade`] take none. Where the count of its keys is
    /// not known, an estimate.
    #[must_use]
    pub fn room(&self) -> Option<u64> {
        match self {
            Self::DigestSet(_) | Self::Growable(_) | Self::Window(_) => None,
            Self::Static(_) | Self::Cascade(_) => Some(0),
            Self::Bloom(_) | Self::Classic(_) | Self::Counting(_) | Self::Deletable(_) => {
                let about = Contains::about(self);
                let items = about.promise()?.items;
                Some(items.saturating_sub(self.estimated_count()))
            }
        }
    }
}

impl Bits for AnyFilter {
    fn meta(&self) -> &About {
        each!(self, filter => Bits::meta(filter))
    }

    fn meta_mut(&mut self) -> &mut About {
        each!(self, filter => filter.meta_mut())
    }

    fn contains_bits(&self, digest: u64) -> bool {
        each!(self, filter => filter.contains_bits(digest))
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        each!(self, filter => filter.contains_all_bits(digests, mask));
    }
}

impl BitsMut for AnyFilter {
    fn insert_bits(&mut self, digest: u64) -> Result<bool> {
        match self {
            Self::DigestSet(filter) => filter.insert_bits(digest),
            Self::Bloom(filter) => filter.insert_bits(digest),
            Self::Classic(filter) => filter.insert_bits(digest),
            Self::Growable(filter) => filter.insert_bits(digest),
            Self::Counting(filter) => filter.insert_bits(digest),
            Self::Window(filter) => filter.insert_bits(digest),
            Self::Deletable(filter) => filter.insert_bits(digest),
            Self::Static(_) | Self::Cascade(_) => Err(self.lacks("adding keys")),
        }
    }

    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        match self {
            Self::DigestSet(filter) => filter.insert_all_bits(digests, mask),
            Self::Bloom(filter) => filter.insert_all_bits(digests, mask),
            Self::Classic(filter) => filter.insert_all_bits(digests, mask),
            Self::Growable(filter) => filter.insert_all_bits(digests, mask),
            Self::Counting(filter) => filter.insert_all_bits(digests, mask),
            Self::Window(filter) => filter.insert_all_bits(digests, mask),
            Self::Deletable(filter) => filter.insert_all_bits(digests, mask),
            Self::Static(_) | Self::Cascade(_) => Err(self.lacks("adding keys")),
        }
    }
}

impl BitsRemove for AnyFilter {
    fn remove_bits(&mut self, digest: u64) -> Result<bool> {
        match self {
            Self::Counting(filter) => filter.remove_bits(digest),
            Self::Deletable(filter) => filter.remove_bits(digest),
            _ => Err(self.lacks("removing keys")),
        }
    }

    fn remove_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        match self {
            Self::Counting(filter) => filter.remove_all_bits(digests, mask),
            Self::Deletable(filter) => filter.remove_all_bits(digests, mask),
            _ => Err(self.lacks("removing keys")),
        }
    }
}

impl BitsCount for AnyFilter {
    fn count_bits(&self, digest: u64) -> Result<u64> {
        match self {
            Self::Counting(filter) => filter.count_bits(digest),
            Self::Deletable(filter) => filter.count_bits(digest),
            _ => Err(self.lacks("counting keys")),
        }
    }
}

impl Merge for AnyFilter {
    fn union_with(&mut self, other: &Self) -> Result<()> {
        match (self, other) {
            (Self::Bloom(mine), Self::Bloom(theirs)) => mine.union_with(theirs),
            (Self::Classic(mine), Self::Classic(theirs)) => mine.union_with(theirs),
            (Self::Counting(mine), Self::Counting(theirs)) => mine.union_with(theirs),
            (Self::Deletable(mine), Self::Deletable(theirs)) => mine.union_with(theirs),
            (Self::DigestSet(mine), Self::DigestSet(theirs)) => {
                let identity = Bits::meta(mine).identity();
                identity.accept(Bits::meta(theirs).identity())?;
                theirs.pour_into(mine)
            }
            (mine, theirs) => Err(not_merged("union", mine.kind(), theirs.kind())),
        }
    }

    fn intersect_with(&mut self, other: &Self) -> Result<()> {
        match (self, other) {
            (Self::Bloom(mine), Self::Bloom(theirs)) => mine.intersect_with(theirs),
            (Self::Classic(mine), Self::Classic(theirs)) => mine.intersect_with(theirs),
            (Self::Counting(mine), Self::Counting(theirs)) => mine.intersect_with(theirs),
            (Self::Deletable(mine), Self::Deletable(theirs)) => mine.intersect_with(theirs),
            (mine, theirs) => Err(not_merged("intersection", mine.kind(), theirs.kind())),
        }
    }
}

/// Why two filters are not merged: their kinds differ, or the kind cannot.
fn not_merged(operation: &'static str, mine: Kind, theirs: Kind) -> Error {
    if mine == theirs {
        Error::Unsupported {
            operation,
            kind: mine.name(),
        }
    } else {
        Error::mismatch("kind", mine, theirs)
    }
}

macro_rules! into_any {
    ($($kind:ident),*) => {$(
        impl From<$kind> for AnyFilter {
            fn from(filter: $kind) -> Self {
                Self::$kind(filter)
            }
        }

        impl TryFrom<AnyFilter> for $kind {
            type Error = Error;

            /// An error if the filter is of another kind.
            fn try_from(filter: AnyFilter) -> Result<Self> {
                match filter {
                    AnyFilter::$kind(filter) => Ok(filter),
                    other => Err(Error::mismatch("kind", other.kind(), Kind::$kind)),
                }
            }
        }
    )*};
}
into_any!(
    DigestSet, Bloom, Classic, Growable, Counting, Window, Deletable, Static, Cascade
);

const _: () = {
    // The traits stay object-safe.
    const fn object_safe(_: &dyn Contains, _: &dyn Insert, _: &dyn Remove, _: &dyn Count) {}
    let _ = object_safe;
};
