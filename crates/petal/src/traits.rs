//! What filters can do, as small traits over digests.
//!
//! Owns the object-safe traits and the shape of answer masks. [`crate::Typed`]
//! offers the same over keys.
//!
//! Inside of the library a kind of filter implements `Bits` and, if it takes
//! keys, `BitsMut`, if it forgets them, `BitsRemove`, if it counts, `BitsCount`;
//! the public traits, with their checks, follow from these.

use crate::error::{Error, Result};
use crate::hash::{Digest, Digests, Origin};
#[cfg(doc)]
use crate::identity::Attachments;
use crate::identity::{About, Labels};

/// Words a mask needs for `questions` answers: bit `i % 64` of word `i / 64`
/// is the answer to question `i`.
#[must_use]
pub const fn mask_words(questions: usize) -> usize {
    questions.div_ceil(64)
}

/// Asks for membership.
pub trait Contains {
    /// What the filter says about itself.
    fn about(&self) -> &About;

    /// The labels, to be changed.
    fn labels_mut(&mut self) -> &mut Labels;

    /// Sets an attachment; earlier bytes of the same name are replaced.
    ///
    /// # Errors
    /// If the name is empty or has a `=` or a control character, or if all
    /// attachments together pass [`Attachments::MAX_BYTES`].
    fn set_attachment(&mut self, name: &str, bytes: Vec<u8>) -> Result<()>;

    /// Removes an attachment. False if there was none of that name.
    fn remove_attachment(&mut self, name: &str) -> bool;

    /// Sets the generation that a file of this filter records: for whoever
    /// publishes one version after another. See [`About::generation`].
    fn set_generation(&mut self, generation: u64);

    /// The origin of the digests this filter understands.
    fn origin(&self) -> Origin {
        self.about().identity().origin()
    }

    /// Whether the key may have been inserted: always true for keys that
    /// were, and true for others with the filter's error.
    ///
    /// # Errors
    /// If the digest is of another origin.
    fn contains_digest(&self, digest: Digest) -> Result<bool>;

    /// [`Self::contains_digest`] for a batch. The first [`mask_words`] words
    /// of `mask` receive the answers; further bits of the last word are 0.
    ///
    /// # Errors
    /// If the digests are of another origin or the mask is too short.
    fn contains_digests(&self, digests: &Digests, mask: &mut [u64]) -> Result<()>;
}

/// Takes keys.
pub trait Insert: Contains {
    /// Inserts a key. True if that changed a bit, so the key was certainly
    /// new; false if the filter already answered "seen" (a filter that counts
    /// has counted it all the same).
    ///
    /// # Errors
    /// If the digest is of another origin, the filter is read-only, or it
    /// cannot grow.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool>;

    /// [`Self::insert_digest`] for a batch, in order: a repeat inside of the
    /// batch is "seen".
    ///
    /// # Errors
    /// As for one digest, or if the mask is too short. After an error from
    /// growing, some keys of the batch may be in the filter.
    fn insert_digests(&mut self, digests: &Digests, mask: &mut [u64]) -> Result<()>;
}

/// Forgets keys.
///
/// Remove only what was inserted and not removed since. A key that never was
/// in the filter, but is falsely "seen", is removed as well, and takes with it
/// what belongs to other keys: these may then be missed.
pub trait Remove: Insert {
    /// Undoes one insertion of a key. False, and nothing is changed, if the
    /// filter shows that the key is absent, or if it is stuck: its count has come to the
    /// most that the kind can hold, and nobody knows how far beyond. A key
    /// that was not removed and is still found is stuck; that stays so.
    ///
    /// # Errors
    /// If the digest is of another origin, the filter is read-only, or its
    /// kind or mode forgets nothing.
    fn remove_digest(&mut self, digest: Digest) -> Result<bool>;

    /// [`Self::remove_digest`] for a batch, in order.
    ///
    /// # Errors
    /// As for one digest, or if the mask is too short.
    fn remove_digests(&mut self, digests: &Digests, mask: &mut [u64]) -> Result<()>;
}

/// Says how often keys were inserted.
pub trait Count: Contains {
    /// How often the key was inserted, less how often it was removed: never
    /// less than that, up to the most that the kind can count, and more with
    /// the filter's error. 0 if the key is certainly absent.
    ///
    /// # Errors
    /// If the digest is of another origin, or the kind does not count.
    fn count_digest(&self, digest: Digest) -> Result<u64>;
}

/// Joins filters of one shape and origin.
pub trait Merge: Sized {
    /// Makes this the filter of the keys of either.
    ///
    /// # Errors
    /// If kind, geometry, hasher, key type or normalisation differ. Nothing
    /// is changed then.
    fn union_with(&mut self, other: &Self) -> Result<()>;

    /// Keeps what both filters answer "seen" for: every key inserted into
    /// both, with an error below either's but above that of a filter built
    /// from the common keys alone.
    ///
    /// # Errors
    /// As for [`Self::union_with`].
    fn intersect_with(&mut self, other: &Self) -> Result<()>;
}

/// A kind of filter from the inside: digests without tags, masks that are
/// clear and long enough.
pub(crate) trait Bits {
    fn meta(&self) -> &About;
    fn meta_mut(&mut self) -> &mut About;
    fn contains_bits(&self, digest: u64) -> bool;
    /// Sets bit `i` of the mask for every digest that may be present.
    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]);
}

/// A kind of filter that takes keys, from the inside.
pub(crate) trait BitsMut: Bits {
    /// True if that changed a bit.
    fn insert_bits(&mut self, digest: u64) -> Result<bool>;
    /// In order; sets bit `i` of the mask where that changed a bit.
    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()>;
}

/// A kind of filter that forgets keys, from the inside.
pub(crate) trait BitsRemove: BitsMut {
    /// False, and nothing is changed, if the key is certainly absent or stuck.
    fn remove_bits(&mut self, digest: u64) -> Result<bool>;
    /// In order; sets bit `i` of the mask where a key was removed.
    fn remove_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        for (i, &digest) in digests.iter().enumerate() {
            mask[i / 64] |= u64::from(self.remove_bits(digest)?) << (i % 64);
        }
        Ok(())
    }
}

/// A kind of filter that counts, from the inside.
pub(crate) trait BitsCount: Bits {
    fn count_bits(&self, digest: u64) -> Result<u64>;
}

impl<F: Bits> Contains for F {
    fn about(&self) -> &About {
        Bits::meta(self)
    }

    fn labels_mut(&mut self) -> &mut Labels {
        &mut self.meta_mut().labels
    }

    fn set_attachment(&mut self, name: &str, bytes: Vec<u8>) -> Result<()> {
        self.meta_mut().attachments.set(name, bytes)
    }

    fn remove_attachment(&mut self, name: &str) -> bool {
        self.meta_mut().attachments.remove(name)
    }

    fn set_generation(&mut self, generation: u64) {
        self.meta_mut().generation = generation;
    }

    fn contains_digest(&self, digest: Digest) -> Result<bool> {
        self.origin().accept(digest.origin)?;
        Ok(self.contains_bits(digest.bits))
    }

    fn contains_digests(&self, digests: &Digests, mask: &mut [u64]) -> Result<()> {
        self.origin().accept(digests.origin())?;
        let mask = clear_mask(mask, digests.len())?;
        self.contains_all_bits(digests.bits(), mask);
        Ok(())
    }
}

impl<F: BitsMut> Insert for F {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool> {
        self.origin().accept(digest.origin)?;
        self.insert_bits(digest.bits)
    }

    fn insert_digests(&mut self, digests: &Digests, mask: &mut [u64]) -> Result<()> {
        self.origin().accept(digests.origin())?;
        let mask = clear_mask(mask, digests.len())?;
        self.insert_all_bits(digests.bits(), mask)
    }
}

impl<F: BitsRemove> Remove for F {
    fn remove_digest(&mut self, digest: Digest) -> Result<bool> {
        self.origin().accept(digest.origin)?;
        self.remove_bits(digest.bits)
    }

    fn remove_digests(&mut self, digests: &Digests, mask: &mut [u64]) -> Result<()> {
        self.origin().accept(digests.origin())?;
        let mask = clear_mask(mask, digests.len())?;
        self.remove_all_bits(digests.bits(), mask)
    }
}

impl<F: BitsCount> Count for F {
    fn count_digest(&self, digest: Digest) -> Result<u64> {
        self.origin().accept(digest.origin)?;
        self.count_bits(digest.bits)
    }
}

/// Checks a mask's length and clears the words that will be answered.
pub(crate) fn clear_mask(mask: &mut [u64], questions: usize) -> Result<&mut [u64]> {
    let needed = mask_words(questions);
    let got = mask.len();
    let answered = mask.get_mut(..needed).ok_or_else(|| {
        Error::parameter(
            "mask",
            format!("{got} words"),
            format!("{questions} answers need {needed}"),
        )
    })?;
    answered.fill(0);
    Ok(answered)
}
