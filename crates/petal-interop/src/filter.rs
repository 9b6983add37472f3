//! The trait for a filter of another system.
//!
//! Owns what every such filter can be asked, whatever its bits look like, and
//! gives it to all filters that are one array of bits. It does not own any
//! format.

use std::any::Any;
use std::fmt;
use std::io::Write;

use crate::bits::BitArray;
use crate::error::{Error, Result};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;

/// Most positions a key may have. The smallest `f64` above 0 as an error would
/// take 1075; more are damage, and would only make questions slow.
pub const MAX_POSITIONS: u64 = 4096;

/// What a count in a file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Every insertion, repeats included.
    Insertions,
    /// Insertions that changed a bit.
    NewKeys,
}

/// A count that a file holds: its maker's word, not checked against the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub keys: u64,
    /// Of what.
    pub counted: Counted,
}

/// What a filter says of itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parameters {
    /// Bits, or cells of a counting filter (m), of all parts together.
    pub bits: u64,
    /// Positions a key (k); of the part of most positions, if they differ.
    pub positions: u64,
    /// Keys it was made for, where the file says so or lets it be computed.
    pub items: Option<u64>,
    /// The error it was made for, where the file says so.
    pub error: Option<f64>,
    /// What else decides the answers or was recorded: name and value, such
    /// as `seed` and `42`.
    pub details: Vec<(&'static str, String)>,
}

/// A filter of another system, that answers as its maker does.
///
/// Every key that the maker inserted (and never removed) is found, and the
/// same other keys are falsely found: position for position.
pub trait ForeignFilter: Any + fmt::Debug + Send + Sync {
    /// Whose filter it is.
    fn format(&self) -> Format;

    /// What it says of itself.
    fn parameters(&self) -> Parameters;

    /// Whether the maker would say that the key may be present.
    ///
    /// # Errors
    /// If the key is of a type that the maker does not have.
    fn contains(&self, key: ForeignKey<'_>) -> Result<bool>;

    /// Whether the filter counts how often a key was inserted: see [`Self::times`].
    fn is_counting(&self) -> bool {
        false
    }

    /// How often a key was inserted, less removals, as far as a counting filter
    /// shows: the least of its counters, never below the truth unless what is not
    /// there was removed. Of any other filter 1 or 0.
    ///
    /// # Errors
    /// As for [`Self::contains`].
    fn times(&self, key: ForeignKey<'_>) -> Result<u64> {
        self.contains(key).map(u64::from)
    }

    /// Inserts a key as the maker does. True if that changed the filter's
    /// answer, so the key was certainly new.
    ///
    /// # Errors
    /// If the key is of a type that the maker does not have, the filter is
    /// full and its maker refuses more, or this format is only read.
    fn insert(&mut self, key: ForeignKey<'_>) -> Result<bool>;

    /// The count that the file keeps, if it keeps one.
    fn count(&self) -> Option<Count>;

    /// The share of bits that are set, 0 to 1, of all parts together.
    fn fill(&self) -> f64;

    /// The expected error for an absent key as the filter stands: from its
    /// fill, with positions taken as random.
    fn error_now(&self) -> f64;

    /// An estimate of the distinct keys from the fill; infinite if all bits
    /// are set, `None` where there is none.
    fn estimated_len(&self) -> Option<f64>;

    /// Makes this the filter of the keys of either.
    ///
    /// # Errors
    /// If the other one is of another format, shape, or hash, or the format
    /// has no union.
    fn union_with(&mut self, other: &dyn ForeignFilter) -> Result<()>;

    /// The encodings that the maker has for such a filter, its usual one first.
    fn encodings(&self) -> &'static [Encoding] {
        &[Encoding::Plain]
    }

    /// The encoding that it was read from.
    fn encoding(&self) -> Encoding {
        self.encodings()[0]
    }

    /// Writes the file that the maker would write. For the same parameters
    /// and keys it is the same to the byte, unless the maker's differs from
    /// run to run; compressed ones are the same once decompressed.
    ///
    /// # Errors
    /// If the encoding is none of [`Self::encodings`], or `out` refuses bytes.
    fn write_as(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()>;
}

impl dyn ForeignFilter {
    /// The bytes of the file in the encoding it came in.
    ///
    /// # Errors
    /// If the memory cannot be had.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_as(self.encoding(), &mut bytes)?;
        Ok(bytes)
    }

    /// The filter as the type of its format.
    #[must_use]
    pub fn downcast_ref<F: ForeignFilter>(&self) -> Option<&F> {
        (self as &dyn Any).downcast_ref()
    }
}

/// A filter that is one array of bits, from the inside.
pub(crate) trait Flat: fmt::Debug + Send + Sync + 'static {
    const FORMAT: Format;
    const ENCODINGS: &'static [Encoding] = &[Encoding::Plain];

    fn array(&self) -> &BitArray;
    fn array_mut(&mut self) -> &mut BitArray;
    /// Bits in use; the array has room for them.
    fn m(&self) -> u64;
    /// Positions a key, at most [`MAX_POSITIONS`].
    fn k(&self) -> u64;
    /// All below [`Self::m`]. None for a filter of no bits.
    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = u64> + use<Self>>;
    fn described(&self) -> Parameters;
    fn counted(&self) -> Option<Count> {
        None
    }
    /// Whether one more key may be inserted.
    fn admit(&self) -> Result<()> {
        Ok(())
    }
    /// Keeps the count.
    fn note(&mut self, _changed: bool) {}
    /// Refuses another one that would answer otherwise.
    fn check_union(&self, other: &Self) -> Result<()>;
    /// What becomes of the count.
    fn join_counts(&mut self, _other: &Self) {}
    /// The chance of an absent key, from the fill.
    fn chance(&self) -> f64 {
        power(self.share(), self.k())
    }
    fn share(&self) -> f64 {
        share(self.array().ones(self.m()), self.m())
    }
    fn encoding(&self) -> Encoding {
        Self::ENCODINGS[0]
    }
    /// `encoding` is one of [`Self::ENCODINGS`].
    fn encode(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()>;
}

impl<F: Flat> ForeignFilter for F {
    fn format(&self) -> Format {
        Self::FORMAT
    }

    fn parameters(&self) -> Parameters {
        self.described()
    }

    fn contains(&self, key: ForeignKey<'_>) -> Result<bool> {
        Ok(self.positions(key)?.all(|bit| self.array().get(bit)))
    }

    fn insert(&mut self, key: ForeignKey<'_>) -> Result<bool> {
        let positions = self.positions(key)?;
        self.admit()?;
        let mut changed = false;
        for bit in positions {
            changed |= self.array_mut().set(bit);
        }
        self.note(changed);
        Ok(changed)
    }

    fn count(&self) -> Option<Count> {
        self.counted()
    }

    fn fill(&self) -> f64 {
        self.share()
    }

    fn error_now(&self) -> f64 {
        self.chance()
    }

    fn estimated_len(&self) -> Option<f64> {
        Some(estimate(self.share(), self.m(), self.k()))
    }

    fn union_with(&mut self, other: &dyn ForeignFilter) -> Result<()> {
        let other = same_type(self, other)?;
        same("bits (m)", self.m(), other.m())?;
        same("positions (k)", self.k(), other.k())?;
        self.check_union(other)?;
        self.array_mut().union_with(other.array());
        self.join_counts(other);
        Ok(())
    }

    fn encodings(&self) -> &'static [Encoding] {
        Self::ENCODINGS
    }

    fn encoding(&self) -> Encoding {
        Flat::encoding(self)
    }

    fn write_as(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        check_encoding(Self::FORMAT, Self::ENCODINGS, encoding)?;
        self.encode(encoding, out)
    }
}

/// Refuses an encoding that a maker does not have.
pub(crate) fn check_encoding(format: Format, known: &[Encoding], wanted: Encoding) -> Result<()> {
    if known.contains(&wanted) {
        return Ok(());
    }
    let known: Vec<_> = known.iter().map(ToString::to_string).collect();
    Err(Error::unsupported(
        format,
        "this encoding",
        format!("it has {}, not {wanted}", known.join(" and ")),
    ))
}

/// The other filter as the same type, or why not.
pub(crate) fn same_type<'a, F: ForeignFilter>(
    ours: &F,
    other: &'a dyn ForeignFilter,
) -> Result<&'a F> {
    other
        .downcast_ref()
        .ok_or_else(|| Error::mismatch("kind", kind_of(ours), kind_of(other)))
}

/// The system and, where it has several, its kind of filter.
fn kind_of(filter: &dyn ForeignFilter) -> String {
    let format = filter.format();
    let details = filter.parameters().details;
    let kind = details.into_iter().find(|(name, _)| *name == "kind");
    kind.map_or_else(
        || format.to_string(),
        |(_, kind)| format!("{format} ({kind})"),
    )
}

/// Refuses two values that differ.
pub(crate) fn same<T: PartialEq + fmt::Display>(
    what: &'static str,
    ours: T,
    theirs: T,
) -> Result<()> {
    if ours == theirs {
        return Ok(());
    }
    Err(Error::mismatch(what, ours, theirs))
}

/// `ones` of `bits`; a filter of no bits has all of them.
pub(crate) fn share(ones: u64, bits: u64) -> f64 {
    if bits == 0 {
        1.0
    } else {
        ones as f64 / bits as f64
    }
}

/// `fill^k`.
pub(crate) fn power(fill: f64, k: u64) -> f64 {
    fill.powf(k as f64)
}

/// Keys that fill m bits to a share (Swamidass and Baldi 2007).
pub(crate) fn estimate(fill: f64, m: u64, k: u64) -> f64 {
    if fill <= 0.0 {
        return 0.0;
    }
    -(m as f64) / (k.max(1) as f64) * (-fill).ln_1p()
}

/// The number of positions a key of a file, refused if it is out of range.
pub(crate) fn check_positions(format: Format, k: u64) -> Result<u64> {
    if (1..=MAX_POSITIONS).contains(&k) {
        return Ok(k);
    }
    Err(Error::field(
        format,
        "positions (k)",
        k,
        format!("1 to {MAX_POSITIONS}"),
    ))
}
