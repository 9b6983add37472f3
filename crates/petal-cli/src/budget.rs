//! How `--memory` is divided, before anything is allocated.
//!
//! Owns what the process itself takes, how long a line may be, and what that
//! leaves for tables and filters; not what is done with it: that is planned
//! in `seen` and in the verbs.

use anyhow::{Result, bail};

use crate::units::format_size;

/// What the process itself takes besides tables and filters: program, stacks,
/// input and output buffers, for as many threads as are used at most. The same
/// for every number of threads, so that what a run remembers is.
pub(crate) const OVERHEAD: u64 = 8 << 20;

/// The least memory that tables and filters together are given.
const LEAST: u64 = 1 << 20;

/// The share of the memory that is left free for long lines: one of these, or
/// some that are shorter together, are in memory at a time.
pub(crate) const SHARE_OF_LINES: u64 = 16;

/// Lines of so many bytes are read in any memory; [`OVERHEAD`] counts them.
const LEAST_LONGEST_LINE: u64 = 256 << 10;

/// Copies of a line that making its key may take, at most.
const COPIES: u64 = 4;

/// The bytes that tables and filters may take together: nothing where the
/// budget does not even hold the rest.
pub(crate) const fn room(budget: u64) -> u64 {
    (budget - budget / SHARE_OF_LINES).saturating_sub(OVERHEAD)
}

/// The same, refused where it is too little to work with.
pub(crate) fn usable(budget: u64) -> Result<u64> {
    shared(budget, 1)
}

/// The budget that each of two memories beside each other has.
pub(crate) fn halved(budget: u64) -> Result<u64> {
    Ok(needed(shared(budget, 2)?))
}

/// What each of some memories may take.
fn shared(budget: u64, among: u64) -> Result<u64> {
    match room(budget) / among {
        each if each >= LEAST => Ok(each),
        _ => bail!(
            "--memory {} is too little: allow {} or more",
            format_size(budget),
            // Whole mebibytes, so that what is shown suffices.
            format_size(needed(among * LEAST).next_multiple_of(1 << 20))
        ),
    }
}

/// The least budget that leaves so many bytes for tables and filters.
pub(crate) const fn needed(bytes: u64) -> u64 {
    let bytes = bytes.saturating_add(OVERHEAD);
    // What is left of a budget of 16 bytes are 15.
    bytes.saturating_add(bytes.div_ceil(SHARE_OF_LINES - 1))
}

/// The longest line that is read: one whose buffer, and the copies that
/// making its key may take, fit into the share for long lines.
pub(crate) fn longest_line(budget: u64, key_is_copied: bool) -> usize {
    let parts = if key_is_copied { 1 + COPIES } else { 1 };
    let share = budget / SHARE_OF_LINES / parts;
    usize::try_from(share.max(LEAST_LONGEST_LINE)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_budget_leaves_what_was_asked_and_one_less_does_not() {
        for bytes in [LEAST, LEAST + 1, 3 << 20, (1 << 40) + 7] {
            let budget = needed(bytes);
            assert!(room(budget) >= bytes, "{bytes}");
            assert!(room(budget - 2) < bytes, "{bytes}");
        }
        assert!(usable(needed(LEAST)).is_ok());
        assert_eq!(room(0), 0);
        // The process is there once.
        let each = halved(64 << 20).unwrap();
        assert!(2 * room(each) <= room(64 << 20) + 2 && each > 32 << 20);
        let refused = halved(10 << 20).unwrap_err().to_string();
        assert!(
            refused.contains("10.0 MiB is too little: allow 11.0 MiB or more"),
            "{refused}"
        );
        assert_eq!(needed(u64::MAX), u64::MAX);
        let refused = usable(OVERHEAD).unwrap_err().to_string();
        assert!(refused.contains("allow 10.0 MiB or more"), "{refused}");
    }

    #[test]
    fn lines_fit_into_what_is_left() {
        for budget in [16 << 20, 64 << 20, 1 << 40] {
            for copied in [false, true] {
                let parts = if copied { 1 + COPIES } else { 1 };
                let longest = longest_line(budget, copied) as u64;
                let left = budget - OVERHEAD - room(budget);
                assert!(longest * parts <= left.max(parts * LEAST_LONGEST_LINE));
            }
        }
    }
}
