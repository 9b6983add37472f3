//! `ExpandingBloomFilter`: filters of one shape, the last of which takes keys.

use std::io::Write;

use super::{FORMAT, Pyprobables, Shape};
use crate::bits::{BitArray, Order, put};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::filter::{
    Count, Counted, Flat, ForeignFilter, Parameters, check_encoding, same_type, share,
};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;

const FOOTER: usize = 28;

/// A growing filter of pyprobables.
#[derive(Debug, Clone)]
pub struct PyprobablesExpanding {
    shape: Shape,
    /// Insertions, repeats included.
    added: u64,
    filters: Vec<Pyprobables>,
}

/// Number of filters, insertions, and the shape at the end of a file.
fn footer(bytes: &[u8]) -> Result<(u64, u64, Shape)> {
    let footer = bytes.last_chunk::<FOOTER>().ok_or(Error::Length {
        format: FORMAT,
        expected: FOOTER as u64,
        got: bytes.len() as u64,
    })?;
    let mut cursor = Cursor::new(FORMAT, footer);
    let (count, items, added) = (cursor.u64_le()?, cursor.u64_le()?, cursor.u64_le()?);
    let shape = Shape::read(items, f32::from_bits(cursor.u32_le()?))?;
    Ok((count, added, shape))
}

/// Whether the footer accounts for the length.
pub(super) fn fits(bytes: &[u8], len: u64) -> bool {
    footer(bytes).is_ok_and(|(count, _, shape)| {
        let filter = shape.bytes().saturating_add(8);
        count > 0 && count.checked_mul(filter) == Some(len - FOOTER as u64)
    })
}

impl PyprobablesExpanding {
    /// A filter as `ExpandingBloomFilter(items, error)` makes it; `items` is
    /// the capacity of each part.
    ///
    /// # Errors
    /// As for [`Pyprobables::new`].
    pub fn new(items: u64, error: f64) -> Result<Self> {
        let shape = Shape::asked(items, error)?;
        Ok(Self {
            shape,
            added: 0,
            filters: vec![Pyprobables::of_shape(shape)?],
        })
    }

    /// Filters that there are so far.
    #[must_use]
    pub const fn filters(&self) -> usize {
        self.filters.len()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let (count, added, shape) = footer(bytes)?;
        // Each is a word and the bits; small ones need as much again to be kept.
        let filter = shape.bytes().saturating_add(8);
        if count == 0 || count > MAX_FILTERS {
            return Err(Error::field(
                FORMAT,
                "number of filters",
                count,
                format!("1 to {MAX_FILTERS}"),
            ));
        }
        let mut cursor = Cursor::new(FORMAT, bytes);
        let mut filters = Vec::new();
        for _ in 0..count {
            let mut part = Cursor::new(FORMAT, cursor.take(filter)?);
            let added = part.u64_le()?;
            let bits = part.take(shape.bytes())?.to_vec();
            let end = bits.len();
            filters.push(Pyprobables {
                shape,
                added,
                bits: BitArray::of_file(bits, 0, end, Order::Lsb),
                encoding: Encoding::Plain,
            });
        }
        cursor.take(FOOTER as u64)?;
        cursor.end()?;
        Ok(Self {
            shape,
            added,
            filters,
        })
    }
}

/// More are damage, and would make every question slow.
const MAX_FILTERS: u64 = 4096;

impl ForeignFilter for PyprobablesExpanding {
    fn format(&self) -> Format {
        FORMAT
    }

    fn parameters(&self) -> Parameters {
        let count = self.filters.len();
        let mut parameters = self.shape.described("expanding");
        parameters.bits = parameters.bits.saturating_mul(count as u64);
        // The capacity in the file is that of each part, and so is the error.
        parameters.details.push(("filters", count.to_string()));
        parameters
    }

    fn contains(&self, key: ForeignKey<'_>) -> Result<bool> {
        let positions: Vec<u64> = self.shape.positions(key)?.collect();
        let has = |filter: &Pyprobables| positions.iter().all(|&bit| filter.bits.get(bit));
        Ok(self.filters.iter().any(has))
    }

    fn insert(&mut self, key: ForeignKey<'_>) -> Result<bool> {
        let new = !self.contains(key)?;
        if new {
            let full = |filter: &Pyprobables| filter.added >= self.shape.items;
            if self.filters.last().is_none_or(full) {
                self.filters.push(Pyprobables::of_shape(self.shape)?);
            }
            if let Some(last) = self.filters.last_mut() {
                last.insert(key)?;
            }
        }
        self.added = self.added.saturating_add(1);
        Ok(new)
    }

    fn count(&self) -> Option<Count> {
        Some(Count {
            keys: self.added,
            counted: Counted::Insertions,
        })
    }

    fn fill(&self) -> f64 {
        let ones = |filter: &Pyprobables| filter.bits.ones(self.shape.m);
        share(
            self.filters.iter().map(ones).sum(),
            self.shape.m * self.filters.len() as u64,
        )
    }

    fn error_now(&self) -> f64 {
        let missed = |filter: &Pyprobables| 1.0 - Flat::chance(filter);
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
            "pyprobables has no union of expanding filters; build one from the lists",
        ))
    }

    fn write_as(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        check_encoding(FORMAT, self.encodings(), encoding)?;
        for filter in &self.filters {
            put(out, &filter.added.to_le_bytes())?;
            put(out, filter.bits.as_bytes())?;
        }
        put(out, &(self.filters.len() as u64).to_le_bytes())?;
        put(out, &self.shape.items.to_le_bytes())?;
        put(out, &self.added.to_le_bytes())?;
        put(out, &self.shape.error.to_le_bytes())
    }
}
