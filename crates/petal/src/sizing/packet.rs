//! Filters that travel in packets: the error of a few bytes, exactly.
//!
//! Owns the choice of hashes for a path, and the packets lost on it by mistake.
//! The error at a number of keys is that of a small classic filter:
//! [`super::classic_error`].

use super::{Collisions, MAX_HASHES, classic_error};
use crate::error::{Error, Result};

/// The probability that a packet is dropped by mistake on a path of `hops`
/// different nodes, each of which drops it if the filter of `bits` bits that it
/// carries says "seen", and else inserts itself with `hashes` hashes.
///
/// Exact: with `i` bits set, a new node is "seen" with probability
/// `(i/bits)^hashes`; what is left over moves on by the draws that set at
/// least one more bit. (The sum of the errors at 0 to `hops - 1` keys is an
/// upper bound, as dropped packets are not dropped again.)
///
/// # Errors
/// If `bits` is not 1 to 4096, or `hashes` not 1 to [`MAX_HASHES`].
pub fn lost_on_path(hops: u64, bits: u64, hashes: u32) -> Result<f64> {
    let size = usize::try_from(bits).unwrap_or(usize::MAX);
    if !(1..=4096).contains(&size) {
        return Err(Error::parameter("bits", bits, "use 1 to 4096 bits"));
    }
    // For its check of the hashes.
    classic_error(0, bits, hashes, Collisions::Never)?;
    let share = |set: usize| set as f64 / bits as f64;
    // alive[i]: the packet travels on with i bits set.
    let mut alive = vec![0.0f64; size + 1];
    alive[0] = 1.0;
    let mut lost = 0.0;
    // Whoever travels on has set a bit at every hop.
    for hop in 0..hops.min(bits + 1) {
        let seen: Vec<f64> = alive
            .iter()
            .enumerate()
            .map(|(set, weight)| weight * share(set).powi(hashes.cast_signed()))
            .collect();
        lost += seen.iter().sum::<f64>();
        // All draws, and then without those that set nothing.
        let most = usize::try_from((hop + 1) * u64::from(hashes)).map_or(size, |n| n.min(size));
        for _ in 0..hashes {
            for set in (1..=most).rev() {
                alive[set] = alive[set] * share(set) + alive[set - 1] * (1.0 - share(set - 1));
            }
            alive[0] = 0.0;
        }
        for (weight, seen) in alive.iter_mut().zip(seen) {
            let left = *weight - seen;
            // So small that it counts for nothing, and slow to compute with.
            *weight = if left < 1e-100 { 0.0 } else { left };
        }
        if alive.iter().sum::<f64>() < f64::EPSILON {
            break;
        }
    }
    Ok(lost.min(1.0))
}

/// The number of hashes with which a filter of `bits` bits loses the fewest
/// packets on a path of `hops` different nodes: [`lost_on_path`].
///
/// # Errors
/// As there.
pub fn hashes_for_path(hops: u64, bits: u64) -> Result<u32> {
    let mut best = (1, lost_on_path(hops, bits, 1)?);
    // The loss falls with the number of hashes and then rises.
    for hashes in 2..=MAX_HASHES {
        let lost = lost_on_path(hops, bits, hashes)?;
        if lost > best.1 {
            break;
        }
        best = (hashes, lost);
    }
    Ok(best.0)
}
