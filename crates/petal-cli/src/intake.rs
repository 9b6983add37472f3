//! Lines that go into a filter.
//!
//! Owns what `build` and `add` do with lines that have no key. How lines
//! become digests is [`crate::keys`]'s.

use std::sync::Arc;

use anyhow::{Result, bail};
use petal::Identity;
use petal::normalise::BadKey;

use crate::input::Batch;
use crate::keys::{KeyCounts, KeyedLines, Keys, NoKey};
use crate::report::Table;
use crate::units::format_count;
use crate::walk::Place;

/// After so many lines that are no keys, the input is given up.
const MOST_BAD: u64 = 10_000;

/// Bytes of a line that a message shows.
const SHOWN: usize = 80;

/// Counts lines on their way into a filter.
pub(crate) struct Intake {
    keys: Arc<Keys>,
    identity: Identity,
    skip_bad: bool,
    lines: u64,
    counts: KeyCounts,
    /// The first line that is no key, and why.
    first_bad: Option<String>,
}

impl Intake {
    /// For keys of an identity.
    pub(crate) fn new(identity: Identity, skip_empty: bool, skip_bad: bool) -> Self {
        Self {
            keys: Arc::new(Keys::settling(identity.clone(), skip_empty)),
            identity,
            skip_bad,
            lines: 0,
            counts: KeyCounts::default(),
            first_bad: None,
        }
    }

    /// What turns lines into digests.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys)
    }

    /// The identity of the keys, complete once a key was read.
    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Takes note of a batch.
    pub(crate) fn take(&mut self, batch: &Batch, keyed: &KeyedLines, place: &Place) -> Result<()> {
        if self.identity.normalisation != *self.keys.normalisation() {
            self.identity.normalisation = self.keys.normalisation().clone();
        }
        self.counts += keyed.counts();
        self.lines += batch.len() as u64;
        if !self.skip_bad {
            if self.first_bad.is_none() {
                let bad = keyed.without().iter().find_map(|&(at, why)| match why {
                    NoKey::Bad(why) => Some((at, why)),
                    _ => None,
                });
                self.first_bad = bad.map(|(at, why)| describe(place, at, batch.get(at), why));
            }
            if self.counts.bad >= MOST_BAD {
                self.refuse_bad()?;
            }
        }
        Ok(())
    }

    /// Refuses input in which lines were no keys.
    pub(crate) fn refuse_bad(&self) -> Result<()> {
        let Some(first) = &self.first_bad else {
            return Ok(());
        };
        let bad = self.counts.bad;
        let some = if bad >= MOST_BAD { " or more" } else { "" };
        let lines = if bad == 1 { "line is" } else { "lines are" };
        bail!(
            "{first}; {}{some} {lines} not of the form {}: nothing was written; leave such \
             lines out with --skip-bad",
            format_count(bad),
            self.identity.normalisation
        );
    }

    /// Lines read.
    pub(crate) const fn lines(&self) -> u64 {
        self.lines
    }

    /// Starts over with the lines, not with the identity: for a second pass.
    pub(crate) fn rewind(&mut self) {
        self.lines = 0;
        self.counts = KeyCounts::default();
    }

    /// Adds what was left out, and why, to a summary.
    pub(crate) fn report(&self, table: &mut Table) {
        let counts = self.counts;
        table.count_if_any("empty", "empty lines left out", counts.empty);
        table.count_if_any("no_field", "without the field (left out)", counts.no_field);
        table.count_if_any("not_url", "not URLs (taken as they are)", counts.not_url);
        table.count_if_any("bad", "not of the form (left out)", counts.bad);
    }

    /// Lines that had a key.
    pub(crate) const fn keyed(&self) -> u64 {
        let counts = self.counts;
        self.lines - counts.empty - counts.no_field - counts.bad
    }
}

/// `file:17: no run of hex digits: "..."`
fn describe(place: &Place, at: usize, line: &[u8], why: BadKey) -> String {
    let shown = &line[..line.len().min(SHOWN)];
    let more = if shown.len() < line.len() { "..." } else { "" };
    format!(
        "{}:{}: {why}: \"{}{more}\"",
        place.name,
        place.line + at as u64,
        shown.escape_ascii()
    )
}
