//! All counters of a filter at once: joining, subtracting, and what they say.
//!
//! Owns the passes over whole filters. Single digests are in `kernel`.

use super::geometry::{CounterBits, max, place};

/// Calls a function for the bits a counter, so that they are a constant in
/// its code.
macro_rules! dispatch {
    ($counter:expr, $function:ident($($argument:expr),*)) => {
        match $counter {
            CounterBits::Four => $function::<4>($($argument),*),
            CounterBits::Eight => $function::<8>($($argument),*),
            CounterBits::Sixteen => $function::<16>($($argument),*),
        }
    };
}

/// The counters of a word.
#[inline(always)]
fn cells<const C: usize>(word: u64) -> impl Iterator<Item = u64> {
    (0..64)
        .step_by(C)
        .map(move |shift| word >> shift & max::<C>())
}

/// Makes every counter what `of` says of it and of the other filter's. Words
/// of the other that are 0 are left out if `zero_changes_nothing`.
#[inline(always)]
fn combine<const C: usize>(
    words: &mut [u64],
    others: &[u64],
    zero_changes_nothing: bool,
    of: impl Fn(u64, u64) -> u64,
) {
    for (word, &other) in words.iter_mut().zip(others) {
        if zero_changes_nothing && other == 0 {
            continue;
        }
        *word = (0..64)
            .step_by(C)
            .zip(cells::<C>(*word).zip(cells::<C>(other)))
            .fold(0, |new, (shift, (mine, theirs))| {
                new | of(mine, theirs) << shift
            });
    }
}

/// Adds the other's counters; sums that pass the maximum are saturated, and
/// so is what one side has saturated.
pub(super) fn add(counter: CounterBits, words: &mut [u64], others: &[u64]) {
    fn add<const C: usize>(words: &mut [u64], others: &[u64]) {
        combine::<C>(words, others, true, |mine, theirs| {
            (mine + theirs).min(max::<C>())
        });
    }
    dispatch!(counter, add(words, others));
}

/// Keeps the lesser counter of both sides.
pub(super) fn keep_lesser(counter: CounterBits, words: &mut [u64], others: &[u64]) {
    fn keep_lesser<const C: usize>(words: &mut [u64], others: &[u64]) {
        combine::<C>(words, others, false, u64::min);
    }
    dispatch!(counter, keep_lesser(words, others));
}

/// Whether every counter is at least the other's.
pub(super) fn covers(counter: CounterBits, words: &[u64], others: &[u64]) -> bool {
    fn covers<const C: usize>(words: &[u64], others: &[u64]) -> bool {
        words.iter().zip(others).all(|(&word, &other)| {
            other == 0
                || cells::<C>(word)
                    .zip(cells::<C>(other))
                    .all(|(mine, theirs)| mine >= theirs)
        })
    }
    dispatch!(counter, covers(words, others))
}

/// Subtracts the other's counters, which must be covered. What is saturated
/// here stays so.
pub(super) fn subtract(counter: CounterBits, words: &mut [u64], others: &[u64]) {
    fn subtract<const C: usize>(words: &mut [u64], others: &[u64]) {
        combine::<C>(words, others, true, |mine, theirs| {
            if mine == max::<C>() {
                mine
            } else {
                mine.saturating_sub(theirs)
            }
        });
    }
    dispatch!(counter, subtract(words, others));
}

/// How many counters are at their maximum.
pub(super) fn saturated(counter: CounterBits, words: &[u64]) -> u64 {
    fn saturated<const C: usize>(words: &[u64]) -> u64 {
        words
            .iter()
            .map(|&word| {
                cells::<C>(word)
                    .map(|cell| u64::from(cell == max::<C>()))
                    .sum::<u64>()
            })
            .sum()
    }
    dispatch!(counter, saturated(words))
}

/// The words of the Bloom filter: a bit is set where the counter is not 0.
pub(super) fn bits(counter: CounterBits, words: &[u64]) -> Box<dyn Iterator<Item = u64> + '_> {
    fn bits<const C: usize>(words: &[u64]) -> Box<dyn Iterator<Item = u64> + '_> {
        Box::new(words.as_chunks::<C>().0.iter().map(bits_of))
    }
    dispatch!(counter, bits(words))
}

/// The 64 bits of 64 counters.
fn bits_of<const C: usize>(words: &[u64; C]) -> u64 {
    (0..64).fold(0, |bits, lane| {
        let (word, shift) = place::<C>(lane);
        bits | u64::from(words[word] >> shift & max::<C>() != 0) << lane
    })
}
