//! Sizes and errors of quotient filters.
//!
//! Owns the expected error of a [`DeletableGeometry`] that holds a number of
//! keys, and the search for the one that fits keys and error. The layout is
//! [`crate::geometry::deletable`]'s.
//!
//! A key is answered wrongly with "yes" when it shares its fingerprint with one
//! of the `n` in the filter: `1 - (1 - 1/U)^n` with `U = slots * 2^r`. Keys
//! that share a digest share the fingerprint, and are part of that.
//!
//! Counts take slots as well. When they run out, the filter takes twice as many
//! and a bit of each remainder for them, so that `U` and the error stay. At one
//! bit of remainder that ends, at `U / 2` slots: so a sized filter has a number of
//! fingerprints for each key that leaves room for large counts of all of them.

use super::{Collisions, check_items_and_error};
use crate::error::{Error, Result};
use crate::geometry::deletable::DeletableGeometry;

/// The share of slots that the keys of a sized filter use. More would make
/// runs of used slots, through which an insertion has to move what follows,
/// longer: they grow with `1 / (1 - load)^2`.
const LOAD: f64 = 0.95;

/// Fingerprints of a sized filter for each of its keys, at the least. Without
/// all of its remainders but one bit it has half as many slots: enough to count
/// every key up to 2^20 (31 slots) in two thirds of them.
const FINGERPRINTS_A_KEY: f64 = 100.0;

/// Fingerprints beside those: the slots of some keys that came 2^64 times.
const FINGERPRINTS_BESIDE: f64 = 2000.0;

/// The expected error of a filter that holds `keys` distinct keys.
#[must_use]
pub fn deletable_error(geometry: DeletableGeometry, keys: u64) -> f64 {
    let fingerprints = geometry.fingerprints() as f64;
    -(keys as f64 * (-1.0 / fingerprints).ln_1p()).exp_m1()
}

/// The smallest geometry for `items` distinct keys with an expected error of at
/// most `error`, in which they use at most 0.95 of the slots, if each comes once.
///
/// It is one in which the keys can be counted far: an error above 1 % takes no
/// fewer bits than 1 %.
///
/// # Errors
/// As [`super::split_for`].
pub fn deletable_for(items: u64, error: f64, collisions: Collisions) -> Result<DeletableGeometry> {
    check_items_and_error(items, error, collisions)?;
    let n = items as f64;
    // A bound of the error is n / U.
    let fingerprints = (n / error).max(FINGERPRINTS_A_KEY * n + FINGERPRINTS_BESIDE);
    let mut best: Option<DeletableGeometry> = None;
    for bits in 1..=DeletableGeometry::MAX_REMAINDER_BITS {
        let slots = (n / LOAD).max(fingerprints / 2f64.powi(bits as i32));
        let Ok(geometry) = DeletableGeometry::new(whole(slots.ceil()).max(1), bits) else {
            continue;
        };
        if deletable_error(geometry, items) <= error
            && best.is_none_or(|best| geometry.words() < best.words())
        {
            best = Some(geometry);
        }
    }
    best.ok_or_else(|| {
        Error::parameter(
            "p",
            format!("{error:?}"),
            format!(
                "{items} keys have too few fingerprints of 64 bits: use a larger p or fewer keys"
            ),
        )
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of slots is not negative; the cast saturates"
)]
const fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bounded_and_keep_their_error() {
        for (error, bits) in [(0.01, 9.7), (1e-3, 12.8), (1e-4, 17.0), (1e-6, 23.3)] {
            for items in [100_000, 1_000_000, 1_000_000_000] {
                let geometry = deletable_for(items, error, Collisions::Never).unwrap();
                let used = geometry.bits() as f64 / items as f64;
                assert!(
                    used <= bits * if items == 100_000 { 1.003 } else { 1.0 },
                    "{used}"
                );
            }
        }
        for items in [1, 2, 10, 1000, 1_000_000_000_000] {
            for error in [0.9, 0.5, 0.1, 0.01, 1e-5, 1e-9, 1e-12] {
                match deletable_for(items, error, Collisions::Never) {
                    Ok(geometry) => {
                        assert!(deletable_error(geometry, items) <= error);
                        assert!(items as f64 <= geometry.slots() as f64 * LOAD);
                    }
                    // 2^64 fingerprints are not enough.
                    Err(_) => assert!(items as f64 / error > 1e19, "{items}, {error}"),
                }
            }
        }
        // The counts need the bits.
        let at = |error| deletable_for(1_000_000, error, Collisions::Never).unwrap();
        assert_eq!(at(0.5), at(0.01));
        for items in [1, 20, 100, 1000, 100_000] {
            let geometry = deletable_for(items, 0.5, Collisions::Never).unwrap();
            assert!(geometry.fingerprints() >= 100 * u128::from(items) + 2000);
            assert!(
                items > 100 || geometry.bytes() < 500,
                "{}",
                geometry.bytes()
            );
        }
        let geometry = deletable_for(1_000_000, 0.01, Collisions::Digest64).unwrap();
        assert_eq!(
            (geometry.slots(), geometry.remainder_bits()),
            (1_052_632, 7)
        );
    }

    #[test]
    fn impossible_filters_are_refused() {
        for (items, error) in [(0, 0.1), (u64::MAX, 0.1), (1, 0.0), (1, 1.0), (1, f64::NAN)] {
            assert!(deletable_for(items, error, Collisions::Never).is_err());
        }
        assert!(deletable_for(1 << 39, 1e-9, Collisions::Digest64).is_err());
    }
}
