//! `--kind static`: a filter of keys that are all known, with their values if there are any.
//!
//! Owns the plan of its memory, and the values. Sorting is [`sort`](super::sort)'s; what a static
//! filter is, the library's.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use petal::{Error, Identity, StaticBuilder, Valued};

use super::fill::{Fill, Filled};
use super::sort::{LEAST_RUN, Record, Sorted, Sorter};
use super::twice::Which;
use crate::args::BuildKind;
use crate::budget;
use crate::input::Batch;
use crate::keys::KeyedLines;
use crate::report;
use crate::units::{format_count, format_size};
use crate::walk::{Flow, Place};

/// Memory that building takes beside the filter, for each thread: of digests, and of digests with
/// values, which a cascade has as well.
const BUILDING: u64 = 16 << 20;
const BUILDING_VALUES: u64 = 24 << 20;

/// Threads that building makes use of.
const MOST_THREADS: usize = 8;

/// The field of a line that is its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueField {
    /// From 1.
    pub(super) number: u32,
    pub(super) delimiter: u8,
}

impl ValueField {
    /// The value of a line without its line end.
    pub(super) fn of(self, line: &[u8]) -> Result<u16> {
        let before = usize::try_from(self.number - 1).unwrap_or(usize::MAX);
        let Some(text) = line.split(|&byte| byte == self.delimiter).nth(before) else {
            bail!(
                "there is no field {}, which is to be the value",
                self.number
            );
        };
        let value = std::str::from_utf8(text.trim_ascii()).ok();
        value.and_then(|text| text.parse().ok()).with_context(|| {
            let shown = text[..text.len().min(40)].escape_ascii();
            format!(
                "the value in field {} is \"{shown}\", expected a number from 0 to 65535",
                self.number
            )
        })
    }
}

impl Fill<'_> {
    /// Reads the lists once and builds a filter of their keys.
    pub(super) fn fixed(&mut self) -> Result<Filled> {
        match self.value {
            None => self.fixed_keys(),
            Some(field) => self.fixed_pairs(field),
        }
    }

    fn fixed_keys(&mut self) -> Result<Filled> {
        let most = self.most_records::<u64>(self.error)?;
        self.announce_sort(most);
        let sorted = self.sort_digests(most)?;
        let identity = self.intake.identity().clone();
        let keys = sorted.count();
        let bytes = StaticBuilder::expected_bytes(&identity, keys, self.error)?;
        self.announce_fixed("a static filter", bytes, keys)?;
        let mut builder = StaticBuilder::new(identity, keys, self.error, self.build_threads())?;
        for part in sorted.parts() {
            builder.push(&part?)?;
        }
        drop(sorted);
        Ok(Filled::of(builder.finish()?.into(), keys))
    }

    fn fixed_pairs(&mut self, field: ValueField) -> Result<Filled> {
        let most = self.most_records::<Valued>(self.error)?;
        self.announce_sort(most);
        let skip_bad = self.args.skip_bad;
        let rules = self.intake.keys();
        let (mut largest, mut without) = (0, 0);
        let sorted = self.sort(most, |batch, place, keyed, into| {
            for (i, &digest) in keyed.digests().bits().iter().enumerate() {
                let line = keyed.line_of(i);
                match field.of(rules.normalisation().trim(batch.get(line))) {
                    Ok(value) => {
                        largest = value.max(largest);
                        into.push(Valued { digest, value });
                    }
                    Err(_) if skip_bad => without += 1,
                    Err(why) => bail!(
                        "{}:{}: {why}: nothing was written; leave such lines out with --skip-bad",
                        place.name,
                        place.line + line as u64
                    ),
                }
            }
            Ok(())
        })?;
        let identity = self.intake.identity().clone();
        let keys = sorted.count();
        let bits = (u16::BITS - largest.leading_zeros()).max(1);
        let bytes = StaticBuilder::expected_bytes_with_values(&identity, keys, self.error, bits)?;
        let what = format!("a static filter with values of {bits} bits");
        self.announce_fixed(&what, bytes, keys)?;
        let threads = self.build_threads();
        let mut builder = StaticBuilder::with_values(identity, keys, self.error, bits, threads)?;
        for part in sorted.parts() {
            match builder.push(&part?) {
                Err(Error::Ambiguous { digest, answers }) => {
                    return Err(self.given_twice(digest, answers, &Which::Values(field))?);
                }
                pushed => pushed?,
            }
        }
        drop(sorted);
        Ok(Filled {
            without_value: without,
            ..Filled::of(builder.finish()?.into(), keys)
        })
    }

    /// Reads the lists, and sorts the digests of their lines.
    pub(super) fn sort_digests(&mut self, most: usize) -> Result<Sorted<u64>> {
        self.sort(most, |_, _, keyed, into| {
            into.extend_from_slice(keyed.digests().bits());
            Ok(())
        })
    }

    /// Reads the lists, and sorts what `read` makes of their lines.
    fn sort<E: Record>(
        &mut self,
        most: usize,
        mut read: impl FnMut(&Batch, &Place, &KeyedLines, &mut Vec<E>) -> Result<()>,
    ) -> Result<Sorted<E>> {
        let mut sorter = Sorter::new(most, self.build_threads(), self.scratch_directory());
        let intake = &mut self.intake;
        let keys = intake.keys();
        let mut records = Vec::new();
        self.walk.each(
            &keys,
            &mut |batch: &Batch, keyed: &mut KeyedLines, place: &Place| {
                intake.take(batch, keyed, place)?;
                records.clear();
                read(batch, place, keyed, &mut records)?;
                sorter.take(&records)?;
                Ok(Flow::GoOn)
            },
        )?;
        intake.refuse_bad()?;
        sorter.finish()
    }

    pub(super) fn announce_sort(&self, most: usize) {
        let plan = format!(
            "memory at most {}: up to {} digests are sorted there, more of them in a temporary file",
            format_size(self.budget),
            format_count(most as u64),
        );
        report::plan(&self.args.run, &plan);
    }

    /// Says what is going to be built, and refuses what the memory does not hold.
    pub(super) fn announce_fixed(&self, what: &str, bytes: u64, keys: u64) -> Result<()> {
        let plan = format!(
            "{what} of about {} for {} keys at an error of {}",
            format_size(bytes),
            format_count(keys),
            report::probability(self.error),
        );
        report::plan(&self.args.run, &plan);
        let needed = bytes.saturating_add(self.building());
        if needed > self.usable {
            bail!(
                "the filter needs {}, the memory budget is {}: allow more with --memory, or \
                 accept a larger error with -p",
                format_size(budget::needed(needed).next_multiple_of(1 << 20)),
                format_size(self.budget)
            );
        }
        Ok(())
    }

    /// Records that fit the memory, beside the filter that is made of them.
    pub(super) fn most_records<E: Record>(&self, error: f64) -> Result<usize> {
        let free = self.usable.saturating_sub(self.building());
        // Bits a digest of a filter that is not small, and those of the largest value.
        let sample = 1 << 20;
        let identity = Identity::new(petal::KeyType::Int);
        let filter = StaticBuilder::expected_bytes(&identity, sample, error)?;
        let value = E::BYTES - u64::BYTES;
        let each = (size_of::<E>() + value) as f64 + filter as f64 / sample as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a positive number; the cast saturates"
        )]
        let whole = |number: f64| number as u64;
        let most = usize::try_from(whole(free as f64 / each)).unwrap_or(usize::MAX);
        if most < 2 * LEAST_RUN {
            // One run more than that, for what is lost in rounding.
            let least = self.building() + whole(each * (3 * LEAST_RUN) as f64);
            bail!(
                "a memory of {} is too little: allow {} or more with --memory",
                format_size(self.budget),
                format_size(budget::needed(least).next_multiple_of(1 << 20))
            );
        }
        Ok(most)
    }

    /// Memory that building takes beside the filter.
    fn building(&self) -> u64 {
        self.building_each() * self.build_threads() as u64
    }

    fn building_each(&self) -> u64 {
        match (self.args.kind, self.value) {
            (BuildKind::Static, None) => BUILDING,
            _ => BUILDING_VALUES,
        }
    }

    /// Threads that sort and build: as many as half of the memory suffices for.
    pub(super) fn build_threads(&self) -> usize {
        let affordable = self.usable / 2 / self.building_each();
        let affordable = usize::try_from(affordable).unwrap_or(usize::MAX);
        self.walk.threads.min(affordable).clamp(1, MOST_THREADS)
    }

    /// Where temporary files go: where the filter goes, unless --tmp says so.
    fn scratch_directory(&self) -> PathBuf {
        if let Some(directory) = &self.args.tmp {
            return directory.clone();
        }
        match self.args.output.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => ".".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_of_16_bits() {
        let field = |number| ValueField {
            number,
            delimiter: b',',
        };
        assert_eq!(field(2).of(b"a,7").unwrap(), 7);
        assert_eq!(field(1).of(b" 65535 ,a").unwrap(), 65535);
        for (number, line, why) in [
            (3, &b"a,7"[..], "no field 3"),
            (2, b"a,65536", "\"65536\", expected a number"),
            (2, b"a,", "\"\""),
            (2, b"a,-1", "-1"),
            (2, b"a,\xff", "\\xff"),
            (u32::MAX, b"", "no field"),
        ] {
            let error = field(number).of(line).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
