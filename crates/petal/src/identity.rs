//! What a filter says about itself besides its bits.
//!
//! Owns [`Identity`] (what decides the answers: hasher, key type,
//! normalisation), [`Labels`], [`Attachments`], and [`About`], which is all of
//! them and the [`Promise`] (for how many keys and which error the filter was
//! made): every kind of filter carries one, and the file records it.

use crate::error::{Error, FormatError, Result};
use crate::hash::{KeyHasher, KeyType, Origin};
use crate::normalise::Normalisation;
use crate::sizing::{Collisions, Promise};

/// Everything outside of the bits that decides a filter's answers. Filters
/// merge only if theirs are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// How keys become digests.
    pub hasher: KeyHasher,
    /// What the keys are.
    pub key_type: KeyType,
    /// What was done to lines of text before they became keys.
    pub normalisation: Normalisation,
}

impl Identity {
    /// Keys of a type under the default hasher, as they are.
    #[must_use]
    pub fn new(key_type: KeyType) -> Self {
        Self {
            hasher: KeyHasher::default(),
            key_type,
            normalisation: Normalisation::default(),
        }
    }

    /// The same with another hasher.
    #[must_use]
    pub fn with_hasher(mut self, hasher: KeyHasher) -> Self {
        self.hasher = hasher;
        self
    }

    /// The same with another normalisation.
    #[must_use]
    pub fn with_normalisation(mut self, normalisation: Normalisation) -> Self {
        self.normalisation = normalisation;
        self
    }

    /// The origin of the digests these keys have.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.hasher.origin(self.key_type)
    }

    /// Whether two different keys can share a digest.
    #[must_use]
    pub const fn collisions(&self) -> Collisions {
        Collisions::of(&self.hasher, self.key_type)
    }

    /// Refuses an identity under which the same key would get another answer.
    pub(crate) fn accept(&self, other: &Self) -> Result<()> {
        if self.key_type != other.key_type {
            return Err(Error::mismatch("key type", self.key_type, other.key_type));
        }
        if self.hasher != other.hasher {
            return Err(Error::mismatch("hasher", &self.hasher, &other.hasher));
        }
        if self.normalisation != other.normalisation {
            return Err(Error::mismatch(
                "normalisation",
                &self.normalisation,
                &other.normalisation,
            ));
        }
        Ok(())
    }
}

/// What every filter carries beside its bits.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    pub(crate) identity: Identity,
    pub(crate) promise: Option<Promise>,
    pub(crate) labels: Labels,
    pub(crate) attachments: Attachments,
    pub(crate) insertions: Option<u64>,
    pub(crate) generation: u64,
    pub(crate) kept: Vec<KeptField>,
}

/// A metadata field of a file that this version does not know and need not
/// understand. It is written back as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptField {
    pub(crate) tag: u16,
    pub(crate) bytes: Vec<u8>,
}

impl About {
    /// Of a new, empty filter.
    pub(crate) fn new(identity: Identity, promise: Option<Promise>) -> Self {
        Self {
            identity,
            promise,
            labels: Labels::default(),
            attachments: Attachments::default(),
            insertions: Some(0),
            generation: 1,
            kept: Vec::new(),
        }
    }

    /// Hasher, key type and normalisation.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The keys and the error it was sized for; `None` where the kind has no
    /// such limit.
    #[must_use]
    pub const fn promise(&self) -> Option<Promise> {
        self.promise
    }

    /// The labels.
    #[must_use]
    pub const fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The attachments.
    #[must_use]
    pub const fn attachments(&self) -> &Attachments {
        &self.attachments
    }

    /// The bytes of an attachment.
    #[must_use]
    pub fn attachment(&self, name: &str) -> Option<&[u8]> {
        self.attachments.get(name)
    }

    /// The generation of the file: 1 for a filter that was made in memory,
    /// one more for each commit of a [`crate::MappedWriter`], or what
    /// [`crate::Contains::set_generation`] has set.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// How many insertions changed a bit; `None` (unknown) after a union or
    /// an intersection, and in a [`crate::ConcurrentBloom`], which has a
    /// count of its own. A little less than the distinct keys, since a key
    /// that is falsely "seen" changes none, unless they were counted before
    /// ([`crate::AnyFilter::fill_from`]). For a [`crate::Counting`] filter
    /// it is all insertions, repeats too, less the removals.
    #[must_use]
    pub const fn insertions(&self) -> Option<u64> {
        self.insertions
    }

    /// Counts insertions that changed a bit.
    #[inline(always)]
    pub(crate) const fn count(&mut self, changed: u64) {
        if let Some(count) = &mut self.insertions {
            *count = count.saturating_add(changed);
        }
    }

    /// Counts removals.
    pub(crate) const fn uncount(&mut self, removed: u64) {
        if let Some(count) = &mut self.insertions {
            *count = count.saturating_sub(removed);
        }
    }
}

/// Labels a user gave a filter, such as `source=...`: ordered pairs of
/// non-empty name and value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Vec<(String, String)>);

/// Bytes that a label or an attachment takes in a file beside its name and
/// value: counted in their limits, so that what could be set can be saved.
pub(crate) const PAIR_BYTES: usize = 9;

/// Refuses a name that labels and attachments may not have.
fn check_name(what: &'static str, name: &str) -> Result<()> {
    if name.is_empty() || name.contains(|c: char| c == '=' || c.is_control()) {
        return Err(Error::parameter(
            what,
            name.escape_debug(),
            "a name of at least one character, without `=` and control characters",
        ));
    }
    Ok(())
}

/// Sets one of the pairs that [`Labels`] and [`Attachments`] are, if all of
/// them stay within `most` bytes.
fn set_pair<V: AsRef<[u8]>>(
    what: &'static str,
    pairs: &mut Vec<(String, V)>,
    most: usize,
    name: &str,
    value: V,
) -> Result<()> {
    check_name(what, name)?;
    let size = |name: &str, value: &V| name.len() + value.as_ref().len() + PAIR_BYTES;
    let others: usize = pairs
        .iter()
        .filter(|(n, _)| n != name)
        .map(|(n, v)| size(n, v))
        .sum();
    let total = others + size(name, &value);
    if total > most {
        return Err(Error::parameter(
            what,
            format!("{total} bytes with {name}"),
            format!(
                "at most {most} bytes in all, with {PAIR_BYTES} for each beside name and value"
            ),
        ));
    }
    match pairs.iter_mut().find(|(n, _)| n == name) {
        Some((_, old)) => *old = value,
        None => pairs.push((name.to_owned(), value)),
    }
    Ok(())
}

/// How a name that came twice, or could not have been set, is refused.
fn invalid_in_file(name: &'static str, got: &str, expected: &str) -> FormatError {
    FormatError::Field {
        name,
        got: got.escape_debug().to_string(),
        expected: expected.to_owned(),
    }
}

impl Labels {
    /// Bytes that all names and values together may have, with 9 for each
    /// label.
    pub const MAX_BYTES: usize = 16 << 10;

    /// The labels in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of a label.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// Sets a label; an earlier value of the same name is replaced.
    ///
    /// # Errors
    /// If the name is empty or has a `=` or a control character, or if all
    /// labels together pass [`Self::MAX_BYTES`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let value = value.to_owned();
        set_pair("labels", &mut self.0, Self::MAX_BYTES, name, value)
    }

    /// Reads `name=value` texts.
    ///
    /// # Errors
    /// As [`Self::set`], or if there is no `=`.
    pub fn set_pair(&mut self, pair: &str) -> Result<()> {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| Error::parameter("label", pair.escape_debug(), "name=value"))?;
        self.set(name, value)
    }

    /// Takes pairs from a file; the first one that could not have been set
    /// is an error.
    pub(crate) fn push_from_file(&mut self, name: &str, value: &str) -> Result<(), FormatError> {
        if self.get(name).is_some() {
            return Err(invalid_in_file("label", name, "each name once"));
        }
        self.set(name, value)
            .map_err(|_| invalid_in_file("label", name, "a valid label"))
    }
}

/// Bytes that a program keeps beside the filter, such as the state of a run
/// that can be resumed: ordered pairs of non-empty name and bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attachments(Vec<(String, Vec<u8>)>);

impl Attachments {
    /// Bytes that all names and contents together may have, with 9 for each
    /// attachment.
    pub const MAX_BYTES: usize = 24 << 10;

    /// The attachments in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// The bytes of an attachment.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(n, _)| *n == name).map(|(_, b)| b)
    }

    /// [`crate::Contains::set_attachment`]
    pub(crate) fn set(&mut self, name: &str, bytes: Vec<u8>) -> Result<()> {
        set_pair("attachments", &mut self.0, Self::MAX_BYTES, name, bytes)
    }

    /// [`crate::Contains::remove_attachment`]
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(n, _)| n != name);
        self.0.len() < before
    }

    /// As [`Labels::push_from_file`].
    pub(crate) fn push_from_file(&mut self, name: &str, bytes: &[u8]) -> Result<(), FormatError> {
        if self.get(name).is_some() {
            return Err(invalid_in_file("attachment", name, "each name once"));
        }
        self.set(name, bytes.to_vec())
            .map_err(|_| invalid_in_file("attachment", name, "a valid attachment"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded_and_replaced() {
        let mut labels = Labels::default();
        labels.set_pair("source=a=b").unwrap();
        labels.set("source", "c").unwrap();
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("source", "c")]);
        for bad in ["", "=x", "no pair", "a\n=b"] {
            assert!(labels.set_pair(bad).is_err(), "{bad:?}");
        }
        assert!(labels.set("big", &"x".repeat(Labels::MAX_BYTES)).is_err());
    }

    #[test]
    fn attachments_are_bounded_replaced_and_removed() {
        let mut attachments = Attachments::default();
        attachments.set("state", b"one".to_vec()).unwrap();
        attachments.set("state", b"\0two".to_vec()).unwrap();
        assert_eq!(attachments.get("state"), Some(&b"\0two"[..]));
        assert!(attachments.set("", Vec::new()).is_err());
        let largest = Attachments::MAX_BYTES - "state".len() - PAIR_BYTES;
        attachments.set("state", vec![7; largest]).unwrap();
        assert!(attachments.set("state", vec![7; largest + 1]).is_err());
        assert!(attachments.set("x", Vec::new()).is_err());
        assert!(attachments.remove("state") && !attachments.remove("state"));
        attachments.set("x", Vec::new()).unwrap();
    }
}
