//! `CountingBloomFilter`: a counter of 32 bits in place of each bit.

use std::io::Write;

use super::{FOOTER, FORMAT, Shape, footer};
use crate::bits::{put, zeros};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::filter::{
    Count, Counted, ForeignFilter, Parameters, check_encoding, estimate, power, same_type, share,
};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;
use crate::sizing::truncate;

/// A counting filter of pyprobables.
#[derive(Debug, Clone)]
pub struct PyprobablesCounting {
    shape: Shape,
    added: u64,
    /// Little-endian counters, and perhaps the footer they were read with.
    cells: Vec<u8>,
}

impl PyprobablesCounting {
    /// An empty filter as `CountingBloomFilter(items, error)` makes it.
    ///
    /// # Errors
    /// As for [`super::Pyprobables::new`].
    pub fn new(items: u64, error: f64) -> Result<Self> {
        let shape = Shape::asked(items, error)?;
        let cells = zeros(shape.m.saturating_mul(4))?;
        Ok(Self {
            shape,
            added: 0,
            cells,
        })
    }

    pub(crate) fn decode(mut cells: Vec<u8>) -> Result<Self> {
        let (items, added, error) = footer(&cells, false).ok_or(Error::Length {
            format: FORMAT,
            expected: FOOTER as u64,
            got: cells.len() as u64,
        })?;
        let shape = Shape::read(items, error)?;
        let mut cursor = Cursor::new(FORMAT, &cells);
        cursor.take(shape.m.saturating_mul(4))?;
        cursor.take(FOOTER as u64)?;
        cursor.end()?;
        cells.truncate(cells.len() - FOOTER);
        Ok(Self {
            shape,
            added,
            cells,
        })
    }

    fn cells(&self) -> impl Iterator<Item = u32> {
        let cells = self.cells.as_chunks::<4>().0.iter();
        cells.map(|cell| u32::from_le_bytes(*cell))
    }

    fn cell(&self, position: u64) -> u32 {
        // Positions are below the number of cells.
        let cell = self.cells.as_chunks::<4>().0[usize::try_from(position).unwrap_or(0)];
        u32::from_le_bytes(cell)
    }

    fn add(&mut self, position: u64, times: u32) {
        let sum = self.cell(position).saturating_add(times);
        self.cells.as_chunks_mut::<4>().0[usize::try_from(position).unwrap_or(0)] =
            sum.to_le_bytes();
    }
}

impl ForeignFilter for PyprobablesCounting {
    fn format(&self) -> Format {
        FORMAT
    }

    fn parameters(&self) -> Parameters {
        self.shape.described("counting")
    }

    fn contains(&self, key: ForeignKey<'_>) -> Result<bool> {
        Ok(self.times(key)? > 0)
    }

    fn is_counting(&self) -> bool {
        true
    }

    /// What the maker's `check` says.
    fn times(&self, key: ForeignKey<'_>) -> Result<u64> {
        let positions = self.shape.positions(key)?;
        let counters = positions.map(|position| self.cell(position));
        Ok(counters.min().unwrap_or(0).into())
    }

    fn insert(&mut self, key: ForeignKey<'_>) -> Result<bool> {
        let new = !self.contains(key)?;
        for position in self.shape.positions(key)? {
            self.add(position, 1);
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
        let used = self.cells().filter(|&cell| cell > 0).count();
        share(used as u64, self.shape.m)
    }

    fn error_now(&self) -> f64 {
        power(self.fill(), self.shape.k)
    }

    fn estimated_len(&self) -> Option<f64> {
        Some(estimate(self.fill(), self.shape.m, self.shape.k))
    }

    fn union_with(&mut self, other: &dyn ForeignFilter) -> Result<()> {
        let other = same_type(self, other)?;
        self.shape.check_union(other.shape)?;
        for (position, times) in (0..).zip(other.cells()) {
            self.add(position, times);
        }
        let estimate = estimate(self.fill(), self.shape.m, self.shape.k);
        self.added = truncate(estimate);
        Ok(())
    }

    fn write_as(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        check_encoding(FORMAT, self.encodings(), encoding)?;
        put(out, &self.cells)?;
        put(out, &self.shape.items.to_le_bytes())?;
        put(out, &self.added.to_le_bytes())?;
        put(out, &self.shape.error.to_le_bytes())
    }
}
