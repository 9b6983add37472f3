//! Sizes and errors of the textbook filter: `m` bits, `k` of them a key.
//!
//! Owns the relation between items `n`, error `p`, bits `m` and hashes `k`
//! of a filter whose `k` positions are drawn anew and may coincide. It does
//! not own the filter.
//!
//! With `N = n k` draws and `X` the number of bits set, the error is exactly
//! `E[(X/m)^k]` (Bose et al., "On the false-positive rate of Bloom filters",
//! 2008), which is more than the textbook's `(1 - e^(-kn/m))^k`: 16 % more at
//! 32 bits, 0.1 % at 4096. So that filters of any size keep their promise,
//! small ones are computed exactly, and large ones from the mean and variance
//! of `X`.

use super::{
    Collisions, MAX_BITS, MAX_ITEMS, check_error, check_items, check_items_and_error, largest,
    least,
};
use crate::error::{Error, Result};

/// The most hashes a key may have. The best number for the least error
/// of all, [`super::MIN_ERROR`], is 40.
pub const MAX_HASHES: u32 = 255;

/// Up to this many bits the error is computed exactly.
const EXACT_BITS: u64 = 4096;

/// From this many draws a bit on, an error is 1 up to rounding.
const SATURATED_DRAWS: u64 = 64;

/// What is known of a classic filter. Two of the four decide the others,
/// except error and hashes, which leave the size open.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ClassicGiven {
    /// Distinct keys (`n`).
    pub items: Option<u64>,
    /// The most the error may be (`p`).
    pub error: Option<f64>,
    /// Bits of the filter (`m`).
    pub bits: Option<u64>,
    /// Bits a key sets (`k`).
    pub hashes: Option<u32>,
}

/// A classic filter with nothing left open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassicPlan {
    /// Distinct keys (`n`).
    pub items: u64,
    /// The expected error at `items` (`p`), shared digests included.
    pub error: f64,
    /// Bits of the filter (`m`).
    pub bits: u64,
    /// Bits a key sets, not all of them different (`k`).
    pub hashes: u32,
}

impl ClassicPlan {
    fn new(items: u64, bits: u64, hashes: u32, collisions: Collisions) -> Self {
        Self {
            items,
            error: collisions.with(filter_error(items, bits, hashes), items),
            bits,
            hashes,
        }
    }

    /// Bytes that hold the bits.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.bits.div_ceil(8)
    }
}

/// The expected error of a classic filter of `bits` bits and `hashes` hashes
/// that holds `items` distinct keys, shared digests included. Exact up to
/// 4096 bits. Above, with the best number of hashes, within 4 parts in 10^5
/// and the nearer the larger the filter; with far too many hashes too large,
/// never too small by more than 1 part in 10^8.
///
/// # Errors
/// If `bits` is 0 or above 2^63, or `hashes` is 0 or above [`MAX_HASHES`].
pub fn classic_error(items: u64, bits: u64, hashes: u32, collisions: Collisions) -> Result<f64> {
    check_bits(bits)?;
    check_hashes(hashes)?;
    Ok(ClassicPlan::new(items, bits, hashes, collisions).error)
}

/// The smallest classic filter for `items` distinct keys with an expected
/// error of at most `error`, and its number of hashes.
///
/// # Errors
/// As [`super::split_for`].
pub fn classic_for(items: u64, error: f64, collisions: Collisions) -> Result<ClassicPlan> {
    plan_classic(
        ClassicGiven {
            items: Some(items),
            error: Some(error),
            ..ClassicGiven::default()
        },
        collisions,
    )
}

/// Finds what is not given:
///
/// * from n and p: the smallest m, with its k (k may be given);
/// * from n and m: the k of the least error, and that error (k may be given);
/// * from m and p: the most n, with its k (k may be given);
/// * from k and n: the least m whose error is at most 2^-k, about `n k / ln 2`;
/// * from k and m: the most n whose error is at most 2^-k, about `m ln 2 / k`.
///
/// The error in the answer is the expected one, so at most the one given.
///
/// # Errors
/// If a value is outside of its limits (n: 1 to [`MAX_ITEMS`]; p: from
/// [`super::MIN_ERROR`], or [`Collisions::least_error`], to below 1; m: 1 to
/// 2^63; k: 1 to [`MAX_HASHES`]), too little is given, or the values
/// contradict each other.
pub fn plan_classic(given: ClassicGiven, collisions: Collisions) -> Result<ClassicPlan> {
    if let Some(hashes) = given.hashes {
        check_hashes(hashes)?;
    }
    if let Some(bits) = given.bits {
        check_bits(bits)?;
    }
    if let Some(items) = given.items {
        check_items(items)?;
    }
    // For k alone, the error at which k is the best number of hashes.
    let error = match (given.error, given.hashes) {
        (None, Some(hashes)) if given.items.is_none() || given.bits.is_none() => {
            let error = 0.5f64.powi(hashes as i32);
            if check_items_and_error(given.items.unwrap_or(1), error, collisions).is_err() {
                return Err(Error::parameter(
                    "k",
                    hashes,
                    "the error of so many hashes is too small to be planned for: \
                     give p, or both n and m, beside it",
                ));
            }
            Some(error)
        }
        (error, _) => error,
    };
    if let Some(error) = error {
        check_error(error)?;
    }
    let (bits, items, hashes) = match (given.items, given.bits, error) {
        (Some(items), None, Some(error)) => {
            check_items_and_error(items, error, collisions)?;
            let found = match given.hashes {
                Some(hashes) => least_bits(items, error, hashes, collisions).map(|m| (m, hashes)),
                None => smallest(items, error, collisions),
            };
            let (bits, hashes) = found.ok_or_else(|| {
                Error::parameter(
                    "n",
                    items,
                    "a filter has at most 2^63 bits: use fewer keys or a larger p",
                )
            })?;
            (bits, items, hashes)
        }
        (Some(items), Some(bits), _) => {
            let hashes = given
                .hashes
                .unwrap_or_else(|| best_hashes(items, bits, |_| false));
            (bits, items, hashes)
        }
        (None, Some(bits), Some(error)) => {
            let items = most_items(bits, error, given.hashes, collisions)?;
            let hashes = given
                .hashes
                .unwrap_or_else(|| best_hashes(items, bits, |_| false));
            (bits, items, hashes)
        }
        _ => {
            return Err(Error::parameter(
                "n, p, m, k",
                "too little",
                "give two of them, one of which is n or m",
            ));
        }
    };
    let plan = ClassicPlan::new(items, bits, hashes, collisions);
    match given.error {
        Some(error) if plan.error > error => Err(Error::parameter(
            "p",
            format!("{error:?}"),
            format!(
                "{items} keys in {bits} bits with {hashes} hashes have an error of {:?}: \
                 leave one of them out",
                plan.error
            ),
        )),
        _ => Ok(plan),
    }
}

fn check_bits(bits: u64) -> Result<()> {
    if bits == 0 || bits > MAX_BITS {
        return Err(Error::parameter("m", bits, "use 1 to 2^63 bits"));
    }
    Ok(())
}

fn check_hashes(hashes: u32) -> Result<()> {
    if hashes == 0 || hashes > MAX_HASHES {
        return Err(Error::parameter(
            "k",
            hashes,
            format!("use 1 to {MAX_HASHES} hashes"),
        ));
    }
    Ok(())
}

/// The smallest filter over all numbers of hashes, as bits and hashes.
fn smallest(items: u64, error: f64, collisions: Collisions) -> Option<(u64, u32)> {
    // The best number is about log2(1/p), less in a small filter. One more
    // never hurts the search.
    let most = (1..=MAX_HASHES).find(|&k| 0.5f64.powi(k as i32) <= error)? + 1;
    let mut best: Option<(u64, u32)> = None;
    for hashes in 1..=most {
        let beats = |bits| best.is_none_or(|(least, _)| bits < least);
        // The textbook's size is a lower bound, and cheap.
        if textbook_bits(items, error, hashes).is_some_and(beats)
            && let Some(bits) = least_bits(items, error, hashes, collisions)
            && beats(bits)
        {
            best = Some((bits, hashes));
        }
    }
    best
}

/// The least bits for which the textbook's error, a lower bound of the true
/// one, is at most `error`.
fn textbook_bits(items: u64, error: f64, hashes: u32) -> Option<u64> {
    least(1, MAX_BITS, |bits| {
        textbook_error(items, bits, hashes) <= error
    })
}

/// The least bits for which the error is at most `error`.
fn least_bits(items: u64, error: f64, hashes: u32, collisions: Collisions) -> Option<u64> {
    let fits =
        |bits| bits > 0 && collisions.with(filter_error(items, bits, hashes), items) <= error;
    // From below in growing steps: small filters need few more bits than the
    // textbook says, and their exact errors are the dearest to compute.
    let low = textbook_bits(items, error, hashes)?;
    let mut step = 1;
    let mut high = low;
    while !fits(high) {
        if high == MAX_BITS {
            return None;
        }
        high = high.saturating_add(step).min(MAX_BITS);
        step = step.saturating_mul(2);
    }
    least(low, high, fits)
}

/// The number of hashes of the least error, searched upwards until `enough`
/// of an error is true.
fn best_hashes(items: u64, bits: u64, enough: impl Fn(f64) -> bool) -> u32 {
    let mut best = (f64::INFINITY, 1);
    for hashes in 1..=MAX_HASHES {
        // The textbook's error is a lower bound with a single minimum: once
        // it is above the best, all later ones are.
        if enough(best.0) || textbook_error(items, bits, hashes) >= best.0 {
            break;
        }
        let error = filter_error(items, bits, hashes);
        if error < best.0 {
            best = (error, hashes);
        }
    }
    best.1
}

/// The most keys for which the error is at most `error`.
fn most_items(bits: u64, error: f64, hashes: Option<u32>, collisions: Collisions) -> Result<u64> {
    let fits = |items| {
        if error < collisions.least_error(items) {
            return false;
        }
        let within = |filter| collisions.with(filter, items) <= error;
        let hashes = hashes.unwrap_or_else(|| best_hashes(items, bits, within));
        within(textbook_error(items, bits, hashes)) && within(filter_error(items, bits, hashes))
    };
    largest(1, MAX_ITEMS, fits).ok_or_else(|| {
        Error::parameter(
            "m",
            bits,
            format!("a single key passes the error {error:?} in so few bits: use more"),
        )
    })
}

/// `1 - (1 - 1/m)^N`: the expected share of bits that are set.
fn fill(bits: u64, draws: f64) -> f64 {
    if bits == 1 {
        return if draws > 0.0 { 1.0 } else { 0.0 };
    }
    -(draws * (-1.0 / bits as f64).ln_1p()).exp_m1()
}

/// The textbook's error for finite sizes, `(1 - (1 - 1/m)^(nk))^k`. The true
/// one is never less: the mean of a k-th power is not below the power of the
/// mean (Jensen).
fn textbook_error(items: u64, bits: u64, hashes: u32) -> f64 {
    let draws = items as f64 * f64::from(hashes);
    fill(bits, draws).powi(hashes as i32)
}

/// The expected error, shared digests aside.
fn filter_error(items: u64, bits: u64, hashes: u32) -> f64 {
    let draws = u128::from(items) * u128::from(hashes);
    if bits > EXACT_BITS {
        return large_error(bits, draws as f64, hashes);
    }
    match u64::try_from(draws) {
        Ok(draws) if draws < SATURATED_DRAWS * bits => small_error(bits, draws, hashes),
        _ => 1.0,
    }
}

/// `E[(X/m)^k]` exactly, in `N k` steps of positive numbers only.
///
/// The `k` positions of a question are the same as `k` draws: let `D` of them
/// be different. The answer is yes if all `D` are among the `N` draws before.
fn small_error(bits: u64, draws: u64, hashes: u32) -> f64 {
    let m = bits as f64;
    let most = hashes.min(u32::try_from(bits).unwrap_or(hashes));
    let shares: Vec<f64> = (0..=most).map(|d| f64::from(d) / m).collect();
    // covered[d]: the probability that d given bits are all set. Seen from
    // the first draw: with probability d/m it sets one of them.
    let mut covered = vec![0.0; shares.len()];
    covered[0] = 1.0;
    for _ in 0..draws {
        for d in (1..covered.len()).rev() {
            covered[d] = (1.0 - shares[d]) * covered[d] + shares[d] * covered[d - 1];
        }
    }
    // different[d]: the probability that D = d.
    let mut different = vec![0.0; shares.len()];
    different[0] = 1.0;
    for _ in 0..hashes {
        for d in (1..different.len()).rev() {
            let (old, new) = (shares[d], 1.0 - shares[d - 1]);
            different[d] = old * different[d] + new * different[d - 1];
        }
        different[0] = 0.0;
    }
    covered.iter().zip(&different).map(|(c, d)| c * d).sum()
}

/// `E[(X/m)^k]` for an `X` as if normal with the mean and variance of the
/// number of bits set.
///
/// With `X = mean (1 + t Z)`, the moments `M_k = E[(1 + t Z)^k]` of a normal
/// `Z` follow `M_k = M_(k-1) + (k-1) t^2 M_(k-2)`. The variance is
/// `m e^-a (1 - (1 + a) e^-a)`, `a = N/m` (Kolchin, Sevast'yanov and
/// Chistyakov, "Random allocations", 1978). What a normal `X` leaves out is a
/// share of `k^3 / m^2`, a hundredth of it near the best `k`.
fn large_error(bits: u64, draws: f64, hashes: u32) -> f64 {
    let m = bits as f64;
    let mean = fill(bits, draws);
    if mean == 0.0 {
        return 0.0;
    }
    let a = draws / m;
    let spread = if a < 1e-4 {
        a * a / 2.0
    } else {
        (-a).exp() * (1.0 - (1.0 + a) * (-a).exp())
    };
    let variance = spread / (m * mean * mean);
    let (mut before, mut moment) = (1.0, 1.0);
    for k in 2..=hashes {
        let next = moment + f64::from(k - 1) * variance * before;
        (before, moment) = (moment, next);
    }
    (mean.powi(hashes as i32) * moment).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::rounded;
    use super::*;

    /// Both ways of computing agree where both can be computed.
    #[test]
    fn large_filters_meet_the_exact_error() {
        for (hashes, bits) in [
            (1u32, 4097u64),
            (2, 4097),
            (3, 4097),
            (7, 4097),
            (7, 9000),
            (20, 4097),
            (40, 4097),
            (40, 20_000),
        ] {
            for (share, tolerance) in [(0.35, 4e-4), (0.7, 4e-5), (1.4, 2e-5), (4.0, 2e-5)] {
                let items = rounded(bits as f64 * share / f64::from(hashes));
                let draws = items * u64::from(hashes);
                let exact = small_error(bits, draws, hashes);
                let large = large_error(bits, draws as f64, hashes);
                let off = large / exact - 1.0;
                assert!(
                    (-1e-8..tolerance).contains(&off),
                    "k {hashes} m {bits} fill {share}: {off:e}"
                );
            }
        }
    }
}
