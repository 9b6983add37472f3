//! How many distinct lines a run has probably dropped.
//!
//! Owns the running sum; the error itself is measured by the filters. A
//! filter with error f at some moment drops a new line with probability f,
//! so each line it prints stands for `f / (1 - f)` that it dropped: the
//! expectation is that sum over the lines printed.

/// Share of the lines read so far after which the error is measured again:
/// 256 times in the first 256 lines, and 256 times in every e-fold.
const CHECKPOINTS: u64 = 256;

/// The sum, with the error measured at checkpoints and taken as linear
/// between them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Loss {
    printed: u64,
    expected: f64,
    read: u64,
    /// Lines read, and printed, since the last checkpoint.
    pending_read: u64,
    pending: u64,
    /// `f / (1 - f)` at the last checkpoint.
    odds: f64,
    checkpoints: u64,
}

impl Loss {
    /// A sum that goes on from an earlier run.
    pub(crate) fn resumed(printed: u64, expected: f64) -> Self {
        Self {
            printed,
            expected,
            ..Self::default()
        }
    }

    /// How many more lines may be read before the next checkpoint.
    pub(crate) fn until_checkpoint(&self) -> u64 {
        (self.read / CHECKPOINTS)
            .max(1)
            .saturating_sub(self.pending_read)
    }

    /// Counts lines as read, and as many of them as were new as printed.
    pub(crate) const fn add(&mut self, read: u64, new: u64) {
        self.read += read;
        self.pending_read += read;
        self.printed += new;
        self.pending += new;
    }

    /// Takes the error `f` (0 to 1) as it stands now.
    pub(crate) fn checkpoint(&mut self, error: f64) {
        // A filter that is all ones drops everything: the odds stay finite.
        let odds = error / (1.0 - error).max(f64::EPSILON);
        self.expected += self.pending as f64 * f64::midpoint(self.odds, odds);
        self.odds = odds;
        self.pending = 0;
        self.pending_read = 0;
        self.checkpoints += 1;
    }

    /// A number below 1 that differs for every checkpoint and covers the
    /// range evenly (the golden ratio's multiples): where to sample next.
    pub(crate) fn place(&self) -> f64 {
        (self.checkpoints as f64 * 0.618_033_988_749_894_8).fract()
    }

    /// Lines printed.
    pub(crate) const fn lines(&self) -> u64 {
        self.printed
    }

    /// Expected number of distinct lines dropped, up to the last checkpoint.
    pub(crate) const fn expected(&self) -> f64 {
        self.expected
    }

    /// Checkpoints taken.
    #[cfg(test)]
    pub(crate) const fn checkpoints(&self) -> u64 {
        self.checkpoints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_the_odds() {
        // f rises as a power of the lines printed, as a filter's does.
        let f = |lines: u64| 1e-3 * (lines as f64 / 1e6).powi(8);
        let mut loss = Loss::default();
        let mut exact = 0.0;
        while loss.lines() < 1_000_000 {
            let step = loss.until_checkpoint();
            for line in loss.lines()..loss.lines() + step {
                exact += f(line) / (1.0 - f(line));
            }
            loss.add(step, step);
            loss.checkpoint(f(loss.lines()));
        }
        assert!((loss.expected() / exact - 1.0).abs() < 1e-3);
        assert!(loss.checkpoints() >= 256);
    }

    #[test]
    fn short_runs_are_measured_at_every_line() {
        let mut loss = Loss::default();
        for _ in 0..256 {
            assert_eq!(loss.until_checkpoint(), 1);
            loss.add(1, 1);
            loss.checkpoint(0.5);
        }
        assert_eq!(loss.checkpoints(), 256);
    }

    #[test]
    fn a_full_filter_gives_a_finite_number() {
        let mut loss = Loss::default();
        loss.add(10, 10);
        loss.checkpoint(1.0);
        assert!(loss.expected().is_finite());
    }
}
