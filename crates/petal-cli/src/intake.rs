//! Lines that go into a filter.
//!
//! Owns what `build` and `add` do with lines that have no key, and the
//! number of digits of `--as hex`, which the first line decides.

use anyhow::{Result, bail};
use petal::normalise::{BadKey, Form, Normal};
use petal::{Digests, Identity};

use crate::input::Batch;
use crate::keys::{KeyCounts, Keys, NoKey};
use crate::report::Table;
use crate::units::format_count;
use crate::walk::Place;

/// After so many lines that are no keys, the input is given up.
const MOST_BAD: u64 = 10_000;

/// Bytes of a line that a message shows.
const SHOWN: usize = 80;

/// Turns batches of lines into digests.
pub(crate) struct Intake {
    keys: Keys,
    identity: Identity,
    skip_bad: bool,
    lines: u64,
    /// The first line that is no key, and why.
    first_bad: Option<String>,
}

impl Intake {
    /// For keys of an identity.
    pub(crate) fn new(identity: Identity, skip_empty: bool, skip_bad: bool) -> Self {
        Self {
            keys: Keys::new(identity.clone(), skip_empty, None),
            identity,
            skip_bad,
            lines: 0,
            first_bad: None,
        }
    }

    /// The identity of the keys, complete once a key was read.
    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Reads a batch.
    pub(crate) fn read(&mut self, batch: &Batch, place: &Place<'_>) -> Result<()> {
        self.settle_digits(batch)?;
        self.keys.read(batch)?;
        self.lines += batch.len() as u64;
        if !self.skip_bad {
            if self.first_bad.is_none() {
                let bad = self.keys.without().iter().find_map(|&(at, why)| match why {
                    NoKey::Bad(why) => Some((at, why)),
                    _ => None,
                });
                self.first_bad = bad.map(|(at, why)| describe(place, at, batch.get(at), why));
            }
            if self.keys.counts().bad >= MOST_BAD {
                self.refuse_bad()?;
            }
        }
        Ok(())
    }

    /// The digests of the keys of the last batch.
    pub(crate) const fn digests(&self) -> &Digests {
        self.keys.digests()
    }

    /// Refuses input in which lines were no keys.
    pub(crate) fn refuse_bad(&self) -> Result<()> {
        let Some(first) = &self.first_bad else {
            return Ok(());
        };
        let bad = self.keys.counts().bad;
        let some = if bad >= MOST_BAD { " or more" } else { "" };
        let lines = if bad == 1 { "line is" } else { "lines are" };
        bail!(
            "{first}; {}{some} {lines} not of the form {}: nothing was written; leave such \
             lines out with --skip-bad",
            format_count(bad),
            self.identity.normalisation
        );
    }

    /// Where the number of hex digits is open, the first key's is recorded.
    fn settle_digits(&mut self, batch: &Batch) -> Result<()> {
        let Form::Hex { digits: None } = self.identity.normalisation.form() else {
            return Ok(());
        };
        let mut scratch = Vec::new();
        let digits = batch.iter().find_map(|line| {
            match self.identity.normalisation.apply(line, &mut scratch) {
                Normal::Key(key) => u32::try_from(key.len()).ok(),
                _ => None,
            }
        });
        if digits.is_some() {
            let normalisation = self.identity.normalisation.clone();
            self.identity.normalisation = normalisation.with_form(Form::Hex { digits })?;
            self.keys.set_normalisation(&self.identity.normalisation);
        }
        Ok(())
    }

    /// Lines read.
    pub(crate) const fn lines(&self) -> u64 {
        self.lines
    }

    /// Lines by what their key was.
    pub(crate) const fn counts(&self) -> KeyCounts {
        self.keys.counts()
    }

    /// Starts over with the lines, not with the identity: for a second pass.
    pub(crate) fn rewind(&mut self) {
        self.lines = 0;
        self.keys.forget_counts();
    }

    /// Adds what was left out, and why, to a summary.
    pub(crate) fn report(&self, table: &mut Table) {
        let counts = self.counts();
        table.count_if_any("empty", "empty lines left out", counts.empty);
        table.count_if_any("no_field", "without the field (left out)", counts.no_field);
        table.count_if_any("not_url", "not URLs (taken as they are)", counts.not_url);
        table.count_if_any("bad", "not of the form (left out)", counts.bad);
    }

    /// Lines that had a key.
    pub(crate) const fn keyed(&self) -> u64 {
        let counts = self.counts();
        self.lines - counts.empty - counts.no_field - counts.bad
    }
}

/// `file:17: no run of hex digits: "..."`
fn describe(place: &Place<'_>, at: usize, line: &[u8], why: BadKey) -> String {
    let shown = &line[..line.len().min(SHOWN)];
    let more = if shown.len() < line.len() { "..." } else { "" };
    format!(
        "{}:{}: {why}: \"{}{more}\"",
        place.name,
        place.line + at as u64,
        shown.escape_ascii()
    )
}
