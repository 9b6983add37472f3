//! Exact answers for all keys of a known universe: some listed, the others not.
//!
//! Owns [`Cascade`] and its typed form [`CascadeFilter`]: questions, and the
//! shapes of its two filters. Building is in `build`; a single filter is
//! [`crate::Static`].
//!
//! After the "clubcard" of Schanck, "Clubcards for the WebPKI: smaller
//! certificate revocation tests in theory and practice" (2025):
//!
//! ```text
//! first    a static filter of the listed keys. It also finds some of the others,
//!          and these are known: they are the survivors.
//! second   one bit for each listed key (1) and each survivor (0), and nothing else
//! listed = first finds it, and its bit is 1
//! ```
//!
//! Where more keys are listed than not, the two change places if the error
//! allows it: the filters are then of the keys that are not listed.

mod build;
#[cfg(test)]
mod tests;

use crate::error::{FormatError, Result};
use crate::hash::{Bytes, Key, KeyHasher, KeyKind};
use crate::identity::{About, Identity};
use crate::ribbon::{Static, StaticGeometry};
use crate::traits::Bits;
use crate::typed::{BATCH, Typed};
use crate::words::{self, Words};

pub use build::DigestSource;

/// Exact for every key of two lists, in a size near the least there can be,
/// which for R listed keys of N is log2 (N over R) bits: 7 % above it for a
/// million of a hundred, 13 % at worst, where N is not small.
///
/// * A listed key is always found, and a key that was given as not listed never is.
/// * **Any other key** gets an answer, too, and it may be the wrong one: it is found with an
///   expected probability of at most the `error` that was given to the constructors. With an
///   error of 1 that is whatever makes the filter smallest: half the share 2^-r0 that pass the
///   first filter, with r0 = ⌊log2 ((N − R) / R)⌋, and for R > N / 2 almost every key.
/// * The same keys and error give the same bits, in whatever order, with any repeats, and on any
///   number of threads.
///
/// ```
/// let denied = ["mailinator.com", "example.net"];
/// let customers = ["example.org", "example.com"];
/// let deny = petal::CascadeFilter::from_keys(denied, customers, 1e-6)?;
/// assert!(deny.contains("example.net") && !deny.contains("example.com"));
/// # Ok::<(), petal::Error>(())
/// ```
pub type CascadeFilter<K = Bytes> = Typed<K, Cascade>;

impl CascadeFilter<Bytes> {
    /// A filter of byte keys under the default hasher. Repeats in a list count once.
    ///
    /// # Errors
    /// If `error` is not a number from 1e-12 to 1, digests of 64 bits cannot keep it for so many
    /// keys, there are more than 10^12, a digest is in both lists ([`crate::Error::Ambiguous`]),
    /// or the memory cannot be had.
    pub fn from_keys<Q: Key<Bytes>, R: Key<Bytes>>(
        listed: impl IntoIterator<Item = Q>,
        not_listed: impl IntoIterator<Item = R>,
        error: f64,
    ) -> Result<Self> {
        Self::with_hasher(listed, not_listed, error, KeyHasher::default(), 1)
    }
}

impl<K: KeyKind> CascadeFilter<K> {
    /// A filter of either kind of key under a hasher of the caller's choice,
    /// built on so many threads.
    ///
    /// # Errors
    /// As for [`CascadeFilter::from_keys`].
    pub fn with_hasher<Q: Key<K>, R: Key<K>>(
        listed: impl IntoIterator<Item = Q>,
        not_listed: impl IntoIterator<Item = R>,
        error: f64,
        hasher: KeyHasher,
        threads: usize,
    ) -> Result<Self> {
        let listed = listed.into_iter().map(|key| key.digest_bits(&hasher));
        let mut listed: Vec<u64> = listed.collect();
        let others = not_listed.into_iter().map(|key| key.digest_bits(&hasher));
        let mut others: Vec<u64> = others.collect();
        crate::StaticBuilder::sort_distinct(&mut listed, threads);
        crate::StaticBuilder::sort_distinct(&mut others, threads);
        let identity = Identity::new(K::TYPE).with_hasher(hasher);
        Self::new_for(Cascade::build(&identity, &listed, &others, error, threads)?)
    }
}

/// The shape of a cascade: what a file says of its words, beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CascadeGeometry {
    not_listed: u64,
    inverted: bool,
    words: [u64; 2],
}

impl CascadeGeometry {
    /// Words before those of the two filters: the shapes of these, four each.
    pub(crate) const SHAPES: u64 = 8;

    /// Different keys that were given as not listed.
    #[must_use]
    pub const fn not_listed(&self) -> u64 {
        self.not_listed
    }

    /// Whether the two filters are of the keys that are not listed, so that a key in neither list
    /// is mostly found.
    #[must_use]
    pub const fn is_inverted(&self) -> bool {
        self.inverted
    }

    /// Bytes of all words.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let [first, second] = self.words;
        (Self::SHAPES + first + second) * 8
    }

    /// Words of each run of a file's payload.
    pub(crate) fn runs(&self) -> [u64; 3] {
        let [first, second] = self.words;
        [Self::SHAPES, first, second]
    }

    /// As four words of a file.
    pub(crate) fn record(self) -> [u64; 4] {
        let [first, second] = self.words;
        [self.not_listed, self.inverted.into(), first, second]
    }

    /// The opposite of [`Self::record`], with every check that needs no words.
    pub(crate) fn decode(
        [not_listed, inverted, first, second]: [u64; 4],
    ) -> Result<Self, FormatError> {
        if inverted > 1 {
            return Err(wrong("inverted", inverted, "0 or 1"));
        }
        let words = [first, second];
        if let Some(words) = words.into_iter().find(|&words| words > u64::MAX / 64) {
            return Err(wrong("words of a filter", words, "less than 2^58"));
        }
        Ok(Self {
            not_listed,
            inverted: inverted == 1,
            words,
        })
    }
}

/// Refuses a value with what would be right.
fn wrong(
    name: &'static str,
    got: impl std::fmt::Display,
    expected: impl std::fmt::Display,
) -> FormatError {
    FormatError::Field {
        name,
        got: got.to_string(),
        expected: expected.to_string(),
    }
}

/// [`CascadeFilter`] over digests: the type of its keys is known at run time.
#[derive(Debug)]
pub struct Cascade {
    /// The first one, and the bit of each key of it and of each survivor.
    parts: Box<[Static; 2]>,
    /// Whether the first one is of the keys that are not listed.
    inverted: bool,
    not_listed: u64,
    /// The shapes of both, as a file has them.
    shapes: Words,
    about: About,
}

impl Cascade {
    /// Takes a cascade from words that may be anything: the shapes of the filters and their
    /// words.
    ///
    /// # Errors
    /// If they do not have the shape that they say.
    pub(crate) fn from_parts(
        about: About,
        geometry: CascadeGeometry,
        [shapes, first, second]: [Words; 3],
    ) -> Result<Self, FormatError> {
        if about.insertions.is_none() {
            let expected = "known, as the kind is cascade";
            return Err(wrong("insertions", "unknown", expected));
        }
        let [mut one, mut two] = [[0; 4]; 2];
        let Some((a, b)) = shapes.get().split_at_checked(4) else {
            return Err(wrong("shapes", shapes.get().len(), "8 words"));
        };
        one.copy_from_slice(a);
        two.copy_from_slice(b);
        let part = |shape: [u64; 4], words: Words, values| {
            let shape = StaticGeometry::decode(shape)?;
            let len = words.get().len() as u64;
            if shape.words() != len {
                return Err(wrong("words of a filter", shape.words(), len));
            }
            if shape.value_bits() != values || (values == 1 && shape.columns() > 0.0) {
                let expected = "those of the first filter of a cascade, or one bit of a value";
                return Err(wrong("columns", shape.columns(), expected));
            }
            Static::from_parts(part_about(&about.identity), shape, words)
        };
        Ok(Self {
            parts: Box::new([part(one, first, 0)?, part(two, second, 1)?]),
            inverted: geometry.inverted,
            not_listed: geometry.not_listed,
            shapes,
            about,
        })
    }

    /// Its shape.
    #[must_use]
    pub fn geometry(&self) -> CascadeGeometry {
        CascadeGeometry {
            not_listed: self.not_listed,
            inverted: self.inverted,
            words: self.parts.each_ref().map(|part| part.geometry().words()),
        }
    }

    /// The words of each run of a file's payload.
    pub(crate) fn words(&self) -> [&Words; 3] {
        let [first, second] = &*self.parts;
        [&self.shapes, first.words(), second.words()]
    }

    /// Different keys that are listed.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.about.insertions.unwrap_or(0)
    }

    /// Whether no key is listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Different keys that were given as not listed.
    #[must_use]
    pub const fn not_listed(&self) -> u64 {
        self.not_listed
    }

    /// Bytes of the words.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.geometry().bytes()
    }

    /// The share of bits that are set: about a half, as they look like noise.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let parts = self.parts.each_ref().map(|part| part.words().get());
        let ones: u64 = parts.iter().map(|words| words::ones(words)).sum();
        let all: usize = parts.iter().map(|words| words.len()).sum();
        ones as f64 / (all.max(1) as f64 * 64.0)
    }

    /// The chance that a random key of **neither** list is found. Of those of the lists none is
    /// answered wrongly.
    #[must_use]
    pub fn error_now(&self) -> f64 {
        let half = self.parts[0].error_now() / 2.0;
        if self.inverted { 1.0 - half } else { half }
    }

    /// Whether a key is listed that the first filter finds, and that has this bit.
    const fn is_listed(&self, bit: Option<u16>) -> bool {
        self.inverted != matches!(bit, Some(1))
    }
}

/// What each of the two filters says about itself: nothing that the cascade does not say.
fn part_about(identity: &Identity) -> About {
    About::new(identity.clone(), None)
}

impl Bits for Cascade {
    fn meta(&self) -> &About {
        &self.about
    }

    fn meta_mut(&mut self) -> &mut About {
        &mut self.about
    }

    fn contains_bits(&self, digest: u64) -> bool {
        let [first, second] = &*self.parts;
        if first.contains_bits(digest) {
            self.is_listed(second.value_of_bits(digest))
        } else {
            self.inverted
        }
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        let [first, second] = &*self.parts;
        let mut found = [0; BATCH / 64];
        let mut asked = Vec::with_capacity(BATCH.min(digests.len()));
        let mut places = Vec::with_capacity(asked.capacity());
        for (digests, mask) in digests.chunks(BATCH).zip(mask.chunks_mut(BATCH / 64)) {
            found.fill(0);
            first.contains_all_bits(digests, &mut found);
            asked.clear();
            places.clear();
            for (i, &digest) in digests.iter().enumerate() {
                if found[i / 64] >> (i % 64) & 1 == 1 {
                    asked.push(digest);
                    places.push(i);
                } else {
                    mask[i / 64] |= u64::from(self.inverted) << (i % 64);
                }
            }
            second.values_of_bits(&asked, |at, bit| {
                let i = places[at];
                mask[i / 64] |= u64::from(self.is_listed(bit)) << (i % 64);
            });
        }
    }
}
