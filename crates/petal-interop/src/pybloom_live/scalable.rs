//! `ScalableBloomFilter`: filters one after another, each larger and with a
//! smaller error than the one before.

use std::io::Write;

use super::{FORMAT, PybloomLive};
use crate::bits::put;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::extent::{Lengths, exactly, from};
use crate::filter::{
    Count, Counted, Flat, ForeignFilter, Parameters, check_encoding, same_type, share,
};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;
use crate::sizing::check_error;

const RATIO: f64 = 0.9;

/// More are damage: each is larger than the one before.
const MAX_FILTERS: u64 = 4096;

/// What a file is recognised by: pybloom_live grows by 2 or 4, and its ratio is
/// [`RATIO`].
const MAX_SCALE: i32 = 1024;
const LEAST_RATIO: f64 = 0.1;
const LEAST_ERROR: f64 = 1e-300;

/// A growing filter of pybloom_live.
#[derive(Debug, Clone)]
pub struct ScalablePybloomLive {
    scale: i32,
    ratio: f64,
    initial_capacity: u64,
    error: f64,
    filters: Vec<PybloomLive>,
    /// Whether the hash is that of old releases.
    old: bool,
}

impl ScalablePybloomLive {
    /// An empty filter as `ScalableBloomFilter(capacity, error, mode)` makes
    /// it; `scale` is 2 (`SMALL_SET_GROWTH`) or 4 (`LARGE_SET_GROWTH`).
    ///
    /// # Errors
    /// If the error is not between 0 and 1, there is no capacity, or the scale
    /// is below 1.
    pub fn new(initial_capacity: u64, error: f64, scale: i32) -> Result<Self> {
        check_error(error)?;
        if initial_capacity == 0 || scale < 1 {
            return Err(Error::parameter(
                "capacity and scale",
                format!("{initial_capacity} and {scale}"),
                "use 1 or more of each",
            ));
        }
        Ok(Self {
            scale,
            ratio: RATIO,
            initial_capacity,
            error,
            filters: Vec::new(),
            old: false,
        })
    }

    /// Filters that there are so far.
    #[must_use]
    pub const fn filters(&self) -> usize {
        self.filters.len()
    }

    pub(crate) fn decode(bytes: &[u8], old: bool) -> Result<Self> {
        let mut cursor = Cursor::new(FORMAT, bytes);
        let (scale, ratio) = (cursor.i32_le()?, cursor.f64_le()?);
        let (initial_capacity, error) = (cursor.u64_le()?, cursor.f64_le()?);
        let count = cursor.i32_le()?;
        let invalid = |name, got: f64, expected| Err(Error::field(FORMAT, name, got, expected));
        if scale < 1 {
            return invalid("scale", scale.into(), "1 or more");
        }
        if !(ratio > 0.0 && ratio < 1.0) {
            return invalid("ratio", ratio, "between 0 and 1");
        }
        if !(error > 0.0 && error < 1.0) {
            return invalid("error", error, "between 0 and 1");
        }
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if count > MAX_FILTERS {
            return Err(Error::field(
                FORMAT,
                "number of filters",
                count,
                format!("up to {MAX_FILTERS}"),
            ));
        }
        let lengths = cursor.take(count.saturating_mul(8))?;
        let mut filters = Vec::new();
        for length in lengths.as_chunks::<8>().0 {
            let filter = cursor.take(u64::from_le_bytes(*length))?;
            filters.push(PybloomLive::decode(filter.to_vec(), old)?);
        }
        cursor.end()?;
        Ok(Self {
            scale,
            ratio,
            initial_capacity,
            error,
            filters,
            old,
        })
    }
}

/// The number of filters of a file that begins so, if its header is plausible:
/// a ratio as Python's own, or near to it, and filters where one was begun.
fn header(cursor: &mut Cursor<'_>) -> Option<u64> {
    let (scale, ratio) = (cursor.i32_le().ok()?, cursor.f64_le().ok()?);
    let (capacity, error) = (cursor.u64_le().ok()?, cursor.f64_le().ok()?);
    let count = u64::try_from(cursor.i32_le().ok()?).ok()?;
    let valid = (1..=MAX_SCALE).contains(&scale)
        && (LEAST_RATIO..1.0).contains(&ratio)
        && capacity > 0
        && (LEAST_ERROR..1.0).contains(&error)
        && count <= MAX_FILTERS;
    valid.then_some(count)
}

/// How long a file with this head may be.
pub(super) fn lengths(head: &[u8]) -> Option<Lengths> {
    let mut cursor = Cursor::new(FORMAT, head);
    let count = header(&mut cursor)?;
    let start = cursor.at() as u64 + count * 8;
    let Ok(lengths) = cursor.take(count * 8) else {
        return Some(from(start));
    };
    let total = lengths
        .as_chunks::<8>()
        .0
        .iter()
        .map(|length| u64::from_le_bytes(*length))
        .try_fold(start, u64::checked_add)?;
    Some(exactly(total))
}

/// Whether the header is valid, its lengths account for the file's, and each
/// filter is one.
pub(crate) fn recognise(bytes: &[u8]) -> bool {
    let mut cursor = Cursor::new(FORMAT, bytes);
    let mut filters = || {
        let count = header(&mut cursor)?;
        for length in cursor.take(count * 8).ok()?.as_chunks::<8>().0 {
            let filter = cursor.take(u64::from_le_bytes(*length)).ok()?;
            super::recognise(filter).then_some(())?;
        }
        cursor.end().ok()
    };
    filters().is_some()
}

impl ForeignFilter for ScalablePybloomLive {
    fn format(&self) -> Format {
        FORMAT
    }

    fn parameters(&self) -> Parameters {
        let filters = || self.filters.iter();
        Parameters {
            bits: filters().map(Flat::m).sum(),
            positions: filters().map(Flat::k).max().unwrap_or(0),
            items: None,
            error: Some(self.error),
            details: vec![
                ("filters", self.filters.len().to_string()),
                ("initial capacity", self.initial_capacity.to_string()),
                ("scale", self.scale.to_string()),
                ("ratio", self.ratio.to_string()),
            ],
        }
    }

    fn contains(&self, key: ForeignKey<'_>) -> Result<bool> {
        for filter in self.filters.iter().rev() {
            if filter.contains(key)? {
                return Ok(true);
            }
        }
        // A key of a wrong type is refused by an empty filter as well.
        super::key_bytes(key)?;
        Ok(false)
    }

    fn insert(&mut self, key: ForeignKey<'_>) -> Result<bool> {
        if self.contains(key)? {
            return Ok(false);
        }
        let next = match self.filters.last() {
            None => Some((self.initial_capacity, self.error * self.ratio)),
            Some(last) if last.count >= last.capacity => {
                let scale = u64::from(self.scale.unsigned_abs());
                Some((last.capacity.saturating_mul(scale), last.error * self.ratio))
            }
            Some(_) => None,
        };
        if let Some((capacity, error)) = next {
            self.filters
                .push(PybloomLive::sized(capacity, error, self.old)?);
        }
        if let Some(last) = self.filters.last_mut() {
            last.set(key)?;
        }
        Ok(true)
    }

    fn count(&self) -> Option<Count> {
        let counts = self.filters.iter().map(|filter| filter.count);
        Some(Count {
            keys: counts.fold(0, u64::saturating_add),
            counted: Counted::NewKeys,
        })
    }

    fn fill(&self) -> f64 {
        if self.filters.is_empty() {
            return 0.0;
        }
        let ones = |filter: &PybloomLive| filter.array().ones(Flat::m(filter));
        let bits = self.filters.iter().map(Flat::m).sum();
        share(self.filters.iter().map(ones).sum(), bits)
    }

    fn error_now(&self) -> f64 {
        let missed = |filter: &PybloomLive| 1.0 - filter.chance();
        1.0 - self.filters.iter().map(missed).product::<f64>()
    }

    fn estimated_len(&self) -> Option<f64> {
        self.filters
            .iter()
            .map(ForeignFilter::estimated_len)
            .sum::<Option<f64>>()
    }

    fn union_with(&mut self, other: &dyn ForeignFilter) -> Result<()> {
        same_type(self, other)?;
        Err(Error::unsupported(
            FORMAT,
            "merge",
            "filters that grew at different times have no common shape; build one from the lists",
        ))
    }

    fn write_as(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        check_encoding(FORMAT, self.encodings(), encoding)?;
        put(out, &self.scale.to_le_bytes())?;
        put(out, &self.ratio.to_le_bytes())?;
        put(out, &self.initial_capacity.to_le_bytes())?;
        put(out, &self.error.to_le_bytes())?;
        let count = i32::try_from(self.filters.len()).unwrap_or(i32::MAX);
        put(out, &count.to_le_bytes())?;
        for filter in &self.filters {
            put(out, &filter.len().to_le_bytes())?;
        }
        for filter in &self.filters {
            filter.encode(Encoding::Plain, out)?;
        }
        Ok(())
    }
}
