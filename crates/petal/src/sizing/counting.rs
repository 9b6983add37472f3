//! How many counters of a counting filter saturate.
//!
//! Owns that number. Size and error of a counting filter are those of the
//! split-block filter whose bits it counts: [`super::split_for`],
//! [`super::split_error`].
//!
//! A block takes `J ~ Binomial(n, 1/blocks)` of the `n` keys, and each of them
//! increases a given counter of it with probability 1/64. Summed over `J`, the
//! counter's value is `Binomial(n, 1/(64 blocks))`, exactly: the uneven load of
//! blocks makes no difference to a single counter, and the expected number of
//! saturated ones is that of all counters times the tail of this distribution.
//! (For free positions and the best `k` the mean is ln 2, and the tail from 15
//! on 1.6e-15; Fan et al., "Summary cache", 2000, state the bound 1.4e-15 for
//! 16. With one block at 1 % the mean is 0.79 and the tail 1.0e-14.)

use crate::geometry::SplitGeometry;

/// Terms below this share of their sum are left out.
const NEGLIGIBLE: f64 = 1.0 / (1u64 << 60) as f64;

/// The expected number of counters that reach `max` when `items` distinct keys
/// are inserted once each into a counting filter with one counter for each bit
/// of `geometry`: with `max` of [`crate::CounterBits::max`], those that are
/// saturated. The probability that there is one is at most as much.
///
/// As many again are added each time all keys are replaced by others, since
/// saturated counters stay. Repeats are not in it: a key that is inserted `max`
/// times saturates all of its counters.
#[must_use]
pub fn saturated_counters(geometry: SplitGeometry, max: u64, items: u64) -> f64 {
    let bits = geometry.bits() as f64;
    let counters_of_a_word_in_all = 64.0 * geometry.blocks() as f64;
    bits * binomial_tail(items, 1.0 / counters_of_a_word_in_all, max)
}

/// P(X ≥ `least`) for X ~ Binomial(`n`, `share`), `share` at most 1/64.
fn binomial_tail(n: u64, share: f64, least: u64) -> f64 {
    if least == 0 {
        return 1.0;
    }
    if least > n {
        return 0.0;
    }
    let all = n as f64;
    let odds = share / (1.0 - share);
    let k = least as f64;
    // ln P(X = least): the binomial coefficient term by term.
    let coefficient: f64 = (0..least)
        .map(|i| ((all - i as f64) / (i as f64 + 1.0)).ln())
        .sum();
    let at_least = (coefficient + k * share.ln() + (all - k) * (-share).ln_1p()).exp();
    if all * share < k {
        // Terms fall from here on.
        let (mut term, mut sum, mut value) = (at_least, 0.0, k);
        while term > NEGLIGIBLE * sum {
            sum += term;
            term *= (all - value).max(0.0) * odds / (value + 1.0);
            value += 1.0;
        }
        return sum;
    }
    // Those below fall downwards; the tail is what they leave.
    let (mut sum, mut value) = (0.0, k);
    let mut term = at_least * value / ((all - value + 1.0) * odds);
    while value > 0.0 && term > NEGLIGIBLE * sum {
        sum += term;
        value -= 1.0;
        term *= value / ((all - value + 1.0) * odds);
    }
    (1.0 - sum).clamp(0.0, 1.0)
}
