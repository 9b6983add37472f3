//! `--kind cascade`: exact answers for two lists.
//!
//! Owns the run over both lists. Sorting is [`sort`](super::sort)'s; what a cascade is, the
//! library's.

use anyhow::Result;
use petal::{Cascade, Error};

use super::fill::{Fill, Filled};
use super::twice::Which;

/// What a digest takes in the filters at most, as that of a filter with this error: the second one
/// has one bit for it, and the first one none, or about as many as the error of the keys of neither
/// list asks for.
const ALONE: f64 = 0.25;

impl Fill<'_> {
    /// Reads each list once and builds a cascade of their keys.
    pub(super) fn cascade(&mut self) -> Result<Filled> {
        // Both lists may be in memory.
        let most = self.most_records::<u64>(self.error.min(ALONE))?;
        self.announce_sort(most);
        let listed = self.sort_digests(most / 2)?;
        let others = self.args.not_listed.as_slice().into();
        let own = std::mem::replace(&mut self.walk.files, others);
        self.walk.label = "build, not listed";
        let not_listed = self.sort_digests(most / 2);
        self.walk.files = own;
        let not_listed = not_listed?;
        let identity = self.intake.identity().clone();
        let (count, others) = (listed.count(), not_listed.count());
        let bytes = Cascade::expected_bytes(&identity, count, others, self.error)?;
        self.announce_fixed("a cascade", bytes, count.saturating_add(others))?;
        let threads = self.build_threads();
        match Cascade::build(&identity, &listed, &not_listed, self.error, threads) {
            Err(Error::Ambiguous { digest, answers }) => {
                Err(self.given_twice(digest, answers, &Which::Lists)?)
            }
            built => Ok(Filled::of(built?.into(), count)),
        }
    }
}
