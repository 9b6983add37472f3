//! `CountingBloomFilter`: pairs of a bit and a counter, which goes below 0 if
//! more is removed than was added.

use std::io::Write;

use serde::de::{DeserializeSeed, SeqAccess, Visitor};

use super::{DEFAULT_SEED, FORMAT, Hashing, Head, optimal};
use crate::bits::put;
use crate::error::{Error, Result};
use crate::filter::{
    Count, Counted, ForeignFilter, Parameters, check_encoding, estimate, power, same_type, share,
};
use crate::format::{Encoding, Format};
use crate::key::ForeignKey;

/// A counting filter of bloom-filters.
#[derive(Debug, Clone)]
pub struct NpmCounting {
    hashing: Hashing,
    length: i64,
    /// The bit of a pair says whether its counter is above 0.
    cells: Vec<i32>,
}

/// Room for so many counters.
fn cells(count: u64) -> Result<Vec<i32>> {
    let needed = count.saturating_mul(4);
    petal::memory::check(needed)?;
    let mut cells = Vec::new();
    usize::try_from(count)
        .ok()
        .and_then(|count| cells.try_reserve_exact(count).ok())
        .ok_or(petal::Error::TooLarge {
            needed,
            available: None,
        })?;
    Ok(cells)
}

impl NpmCounting {
    /// An empty filter as `CountingBloomFilter.create(items, error)` makes it.
    ///
    /// # Errors
    /// As for [`super::Npm::create`].
    pub fn create(items: u64, error: f64) -> Result<Self> {
        let (size, hashes) = optimal(items, error)?;
        let mut cells = cells(size)?;
        cells.resize(cells.capacity().min(usize::try_from(size).unwrap_or(0)), 0);
        Ok(Self {
            hashing: Hashing::new(DEFAULT_SEED, hashes)?,
            length: 0,
            cells,
        })
    }

    pub(super) fn decode(head: &Head<'_>) -> Result<Self> {
        let text = head.filter.get();
        let hashing = Hashing::new(head.seed, head.hashes)?;
        // A pair is `[0,0],` at least.
        if head.size > text.len() as u64 / 6 + 1 {
            return Err(Error::field(
                FORMAT,
                "_size",
                head.size,
                "as many as _filter has pairs",
            ));
        }
        let mut cells = cells(head.size)?;
        Pairs(&mut cells)
            .deserialize(&mut serde_json::Deserializer::from_str(text))
            .map_err(|error| {
                Error::json(FORMAT, &error, "pairs of a bit and its counter in _filter")
            })?;
        if cells.len() as u64 != head.size {
            return Err(Error::field(
                FORMAT,
                "pairs in _filter",
                cells.len(),
                format!("the {} of _size", head.size),
            ));
        }
        Ok(Self {
            hashing,
            length: head.length.unwrap_or(0),
            cells,
        })
    }

    fn positions(&self, key: ForeignKey<'_>) -> Result<impl Iterator<Item = usize> + use<>> {
        let positions = self.hashing.positions(key, self.cells.len() as u64)?;
        // Below the number of cells in memory.
        Ok(positions.map(|position| usize::try_from(position).unwrap_or(0)))
    }

    /// Undoes one insertion, as `remove` does: without a look at whether the
    /// key is there.
    ///
    /// # Errors
    /// If the key is neither text nor bytes.
    pub fn remove(&mut self, key: ForeignKey<'_>) -> Result<()> {
        for position in self.positions(key)? {
            self.cells[position] = self.cells[position].saturating_sub(1);
        }
        self.length = self.length.saturating_sub(1);
        Ok(())
    }
}

/// Pushes the counters of an array of pairs, up to the room there is.
struct Pairs<'a>(&'a mut Vec<i32>);

impl<'de> DeserializeSeed<'de> for Pairs<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Pairs<'_> {
    type Value = ();
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of pairs")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        use serde::de::Error as _;
        while let Some((bit, counter)) = items.next_element::<(u8, i32)>()? {
            if u8::from(counter > 0) != bit {
                return Err(A::Error::custom(format!("bit {bit} at counter {counter}")));
            }
            if self.0.len() == self.0.capacity() {
                return Err(A::Error::custom("more pairs than _size"));
            }
            self.0.push(counter);
        }
        Ok(())
    }
}

impl ForeignFilter for NpmCounting {
    fn format(&self) -> Format {
        FORMAT
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            bits: self.cells.len() as u64,
            positions: self.hashing.hashes,
            details: vec![
                ("kind", "counting".to_owned()),
                ("seed", self.hashing.seed.to_string()),
            ],
            ..Parameters::default()
        }
    }

    fn contains(&self, key: ForeignKey<'_>) -> Result<bool> {
        Ok(self
            .positions(key)?
            .all(|position| self.cells[position] > 0))
    }

    fn is_counting(&self) -> bool {
        true
    }

    fn times(&self, key: ForeignKey<'_>) -> Result<u64> {
        let counters = self.positions(key)?.map(|position| self.cells[position]);
        // Below 0 where more was removed than added.
        Ok(counters
            .min()
            .map_or(0, |least| u64::try_from(least).unwrap_or(0)))
    }

    fn insert(&mut self, key: ForeignKey<'_>) -> Result<bool> {
        let new = !self.contains(key)?;
        for position in self.positions(key)? {
            self.cells[position] = self.cells[position].saturating_add(1);
        }
        self.length = self.length.saturating_add(1);
        Ok(new)
    }

    fn count(&self) -> Option<Count> {
        // Below 0 if more was removed than added.
        Some(Count {
            keys: u64::try_from(self.length).ok()?,
            counted: Counted::Insertions,
        })
    }

    fn fill(&self) -> f64 {
        let used = self.cells.iter().filter(|&&cell| cell > 0).count();
        share(used as u64, self.cells.len() as u64)
    }

    fn error_now(&self) -> f64 {
        power(self.fill(), self.hashing.hashes)
    }

    fn estimated_len(&self) -> Option<f64> {
        let cells = self.cells.len() as u64;
        Some(estimate(self.fill(), cells, self.hashing.hashes))
    }

    fn union_with(&mut self, other: &dyn ForeignFilter) -> Result<()> {
        same_type(self, other)?;
        Err(Error::unsupported(
            FORMAT,
            "merge",
            "bloom-filters has no union; build one from the lists",
        ))
    }

    fn encodings(&self) -> &'static [Encoding] {
        &[Encoding::Json]
    }

    fn write_as(&self, encoding: Encoding, out: &mut dyn Write) -> Result<()> {
        check_encoding(FORMAT, self.encodings(), encoding)?;
        let (size, hashes) = (self.cells.len(), self.hashing.hashes);
        put(
            out,
            format!(
                "{{\"type\":\"CountingBloomFilter\",\"_size\":{size},\"_nbHashes\":{hashes},\
                 \"_filter\":["
            )
            .as_bytes(),
        )?;
        let mut text = String::new();
        for (i, &cell) in self.cells.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            text.push_str(&format!("{comma}[{},{cell}]", u8::from(cell > 0)));
            if text.len() > 1 << 16 {
                put(out, text.as_bytes())?;
                text.clear();
            }
        }
        put(out, text.as_bytes())?;
        let (length, seed) = (self.length, self.hashing.seed);
        put(
            out,
            format!("],\"_length\":{length},\"_seed\":{seed}}}").as_bytes(),
        )
    }
}
