//! Sizes and errors of windows.
//!
//! Owns the expected error of a [`WindowGeometry`] under a load and the search
//! for the geometry that fits keys, error and generations. The layout is
//! [`crate::geometry::window`]'s; which generation is when is the window's.
//!
//! In each lane a key is answered wrongly with "yes" when its position has the
//! lane's bit in every part of its line in every region. The load of a line is
//! binomial, and each of its `s` parts of `w` positions has the bit with
//! probability `1 - (1 - 1/w)^J`, independently: as for split blocks, a region
//! says yes with `E[(1 - (1 - 1/w)^J)^s]`, a lane with the product over the
//! regions, `q`. The lanes hold different keys, so that the whole says yes with
//! `1 - (1 - q)^(g + 1)` when `g` generations and the one that is being filled
//! are full; the last lane is being cleared and never asked.

use super::split::mean_over_loads;
use super::{Collisions, MAX_BITS, check_items_and_error, least};
use crate::error::{Error, Result};
use crate::geometry::window::WindowGeometry;

/// Generations of a window unless another number is asked for. At 1 % they
/// take the fewest bits a key, with a lane for each of 16 bits.
pub const DEFAULT_GENERATIONS: u32 = 14;

/// The most generations a window may have.
pub const MAX_GENERATIONS: u32 = 62;

/// How much larger than the smallest layout one with fewer cache lines a key
/// may be.
const LARGER_FOR_SPEED: f64 = 1.05;

/// Keys that fill a generation, so that `geometry.generations()` of them hold
/// at least `keys`.
#[must_use]
pub const fn generation_keys(geometry: WindowGeometry, keys: u64) -> u64 {
    keys.div_ceil(geometry.generations() as u64)
}

/// The expected error of a window at its worst moment: all generations, and
/// the one that is being filled, have `generation_keys` insertions that changed
/// a bit. Shared digests are included.
#[must_use]
pub fn window_error(geometry: WindowGeometry, generation_keys: u64, collisions: Collisions) -> f64 {
    let full = f64::from(geometry.generations() + 1);
    let lane = lane_error(geometry, made_of(geometry, generation_keys));
    let all = -(full * (-lane).ln_1p()).exp_m1();
    let held = generation_keys.saturating_mul(u64::from(geometry.generations()) + 1);
    collisions.with(all, held)
}

/// The expected error of a window whose generations, the one that is being
/// filled and those that are answered, have had so many insertions each that
/// changed a bit. Shared digests are included.
///
/// It costs some microseconds for each number that differs from the one before.
#[must_use]
pub fn window_error_at(
    geometry: WindowGeometry,
    generations: impl IntoIterator<Item = u64>,
    collisions: Collisions,
) -> f64 {
    // Neighbours are often equal: those that were closed because they were full.
    let mut last = (0, 0.0);
    let (mut log_none, mut held) = (0.0, 0u64);
    for keys in generations {
        if keys != last.0 {
            last = (keys, lane_error(geometry, made_of(geometry, keys)));
        }
        log_none += (-last.1).ln_1p();
        held = held.saturating_add(keys);
    }
    collisions.with(-log_none.exp_m1(), held)
}

/// Distinct keys that a generation is made of when `counted` of them changed a
/// bit: those that it falsely "had" before did not. From above.
fn made_of(geometry: WindowGeometry, counted: u64) -> u64 {
    // A part in so many of the keys is not worth a closer look.
    const FEW: f64 = 1e-3;
    const STEPS: u32 = 8;
    let last = lane_error(geometry, counted);
    let most = counted as f64 / (1.0 - last).max(f64::MIN_POSITIVE);
    if last < FEW {
        return whole(most.ceil());
    }
    // The sum of the errors while it filled, by trapezoids: the error bends
    // upwards up to its end, so that they are a little above it.
    let at = |step: u32| lane_error(geometry, whole(most * f64::from(step) / f64::from(STEPS)));
    let inner: f64 = (1..STEPS).map(at).sum();
    let had = most / f64::from(STEPS) * (inner + at(STEPS) / 2.0);
    whole((counted as f64 + had).min(most).ceil())
}

/// The probability that one lane with so many keys says yes to a new one.
fn lane_error(geometry: WindowGeometry, keys: u64) -> f64 {
    let parts = geometry.parts() as i32;
    let region = mean_over_loads(geometry.lines(), keys, geometry.part_positions(), |hit| {
        hit.powi(parts)
    });
    region.powi(geometry.regions() as i32)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts and sizes are not negative; the cast saturates"
)]
const fn whole(number: f64) -> u64 {
    number as u64
}

/// The geometry of a window over `keys` keys with an expected error of at most
/// `error` at any moment, that forgets in steps of at most one part in
/// `generations` (1 to [`MAX_GENERATIONS`], rounded up to 6, 14, 30 or 62).
///
/// It is the smallest one or, within 5 % of its size, the one that takes the
/// fewest cache lines a key.
///
/// # Errors
/// If `keys` is 0 or above [`super::MAX_ITEMS`], `generations` is out of range,
/// or `error` is not between 0 and 1, below [`super::MIN_ERROR`], or below
/// [`Collisions::least_error`].
pub fn window_for(
    keys: u64,
    error: f64,
    generations: u32,
    collisions: Collisions,
) -> Result<WindowGeometry> {
    if !(1..=MAX_GENERATIONS).contains(&generations) {
        return Err(Error::parameter(
            "generations",
            generations,
            format!("use 1 to {MAX_GENERATIONS}"),
        ));
    }
    let lanes = (generations + 2).next_power_of_two().max(8);
    let wanted = Wanted {
        keys,
        error,
        lanes,
        collisions,
    };
    // The filling generation is held besides the window.
    let held = keys.saturating_add(keys.div_ceil(u64::from(lanes - 2)));
    super::check_items(keys)?;
    check_items_and_error(held.min(super::MAX_ITEMS), error, collisions)?;
    wanted.choose().ok_or_else(|| {
        Error::parameter(
            "p",
            format!("{error:?}"),
            "no window of at most 2^63 bits keeps it: use a larger p or fewer keys",
        )
    })
}

/// What a geometry has to do.
#[derive(Clone, Copy)]
struct Wanted {
    keys: u64,
    error: f64,
    lanes: u32,
    collisions: Collisions,
}

impl Wanted {
    fn choose(self) -> Option<WindowGeometry> {
        let mut smallest: Option<u64> = None;
        for shape in self.shapes() {
            // Most are ruled out by one look at the size to beat.
            let most = smallest.map_or(u64::MAX, |bits| bits - 1);
            if let Some(found) = self.least_within(shape, most) {
                smallest = Some(found.bits());
            }
        }
        let most = whole(smallest? as f64 * LARGER_FOR_SPEED);
        // In the order of regions; of the first that will do, the smallest.
        let mut best: Option<WindowGeometry> = None;
        for shape in self.shapes() {
            if best.is_some_and(|best| best.regions() < shape.0) {
                break;
            }
            let most = best.map_or(most, |best| best.bits() - 1);
            best = self.least_within(shape, most).or(best);
        }
        best
    }

    /// Regions and parts of a line, fewest regions first.
    fn shapes(self) -> impl Iterator<Item = (u32, u32)> {
        (1..=WindowGeometry::MAX_REGIONS)
            .flat_map(|regions| [1, 2, 4].map(|parts| (regions, parts)))
    }

    /// The smallest geometry of a shape that does, of at most so many bits.
    fn least_within(self, (regions, parts): (u32, u32), most: u64) -> Option<WindowGeometry> {
        let most = most.min(MAX_BITS) / (512 * u64::from(regions));
        let fits = |lines| {
            WindowGeometry::new(self.lanes, regions, parts, lines).is_ok_and(|geometry| {
                let keys = generation_keys(geometry, self.keys);
                window_error(geometry, keys, self.collisions) <= self.error
            })
        };
        // From below in growing steps: the errors of nearly empty lines are
        // the quickest to compute, those of overfull ones the slowest.
        let per_line = f64::from(512 / self.lanes * regions);
        let generation = self.keys.div_ceil(u64::from(self.lanes - 2));
        let low =
            whole(generation as f64 * (1.0 / self.error).log2() / per_line).clamp(1, most.max(1));
        let mut high = low;
        while high < most && !fits(high) {
            high = high.saturating_add(high).min(most);
        }
        let low = if high == low { 1 } else { high / 2 };
        let lines = least(low, high.min(most), fits)?;
        WindowGeometry::new(self.lanes, regions, parts, lines).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Collisions = Collisions::Never;

    fn bits_a_key(keys: u64, error: f64, generations: u32) -> f64 {
        let geometry = window_for(keys, error, generations, NEVER).unwrap();
        geometry.bits() as f64 / keys as f64
    }

    /// Computed from the formulas above with Poisson loads, in another program.
    #[test]
    fn sizes_are_those_of_the_formula() {
        for (error, generations, expected) in
            [(0.01, 14, 18.03), (0.01, 6, 18.71), (1e-4, 14, 29.45)]
        {
            let bits = bits_a_key(1_000_000, error, generations);
            assert!((bits / expected - 1.0).abs() < 2e-3, "{error}: {bits}");
        }
        let geometry = window_for(1_000_000, 0.01, 14, NEVER).unwrap();
        assert_eq!((geometry.regions(), geometry.parts()), (5, 2));
    }

    #[test]
    fn every_plan_keeps_its_error_and_none_could_be_smaller() {
        for keys in [1, 2, 13, 100, 5000, 1_000_000, 1_000_000_000_000] {
            for error in [0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12] {
                for generations in [1, 6, 7, 14, 30, 62] {
                    let geometry = window_for(keys, error, generations, NEVER).unwrap();
                    assert!(geometry.generations() >= generations);
                    let filled = generation_keys(geometry, keys);
                    assert!(filled * u64::from(geometry.generations()) >= keys);
                    assert!(window_error(geometry, filled, NEVER) <= error);
                    if geometry.lines() > 1 {
                        let less = WindowGeometry::new(
                            geometry.lanes(),
                            geometry.regions(),
                            geometry.parts(),
                            geometry.lines() - 1,
                        );
                        assert!(window_error(less.unwrap(), filled, NEVER) > error);
                    }
                }
            }
        }
    }

    #[test]
    fn equally_full_generations_are_the_worst_moment() {
        let geometry = window_for(10_000, 1e-3, 14, NEVER).unwrap();
        let full = generation_keys(geometry, 10_000);
        for collisions in [NEVER, Collisions::Digest64] {
            let worst = window_error(geometry, full, collisions);
            let same = window_error_at(geometry, [full; 15], collisions);
            assert!((same / worst - 1.0).abs() < 1e-12, "{same} {worst}");
            let less = window_error_at(geometry, [full / 2, full, 0, full], collisions);
            assert!(less > 0.0 && less < worst / 5.0);
            assert_eq!(window_error_at(geometry, [], collisions), 0.0);
        }
        let one = window_error_at(geometry, [full], NEVER);
        let three = window_error_at(geometry, [full, 0, full, full], NEVER);
        assert!((three / one - 3.0).abs() < 1e-3);
    }

    #[test]
    fn impossible_windows_are_refused() {
        for (keys, error, generations) in [
            (0, 0.01, 14),
            (u64::MAX, 0.01, 14),
            (1000, 0.0, 14),
            (1000, 1.0, 14),
            (1000, f64::NAN, 14),
            (1000, 1e-13, 14),
            (1000, 0.01, 0),
            (1000, 0.01, 63),
        ] {
            assert!(window_for(keys, error, generations, NEVER).is_err());
        }
        assert!(window_for(1 << 40, 1e-9, 14, Collisions::Digest64).is_err());
    }
}
