//! The bits of a window: asking, setting and clearing lanes.
//!
//! Owns the loops over the positions of a digest. Lanes go in and out as bits
//! of a number; which generation a lane is, is not known here.

use std::ops::{BitAndAssign, BitOrAssign};

use bytemuck::Pod;

use crate::arch::prefetch::prefetch;
use crate::geometry::window::{LINE_WORDS, WindowGeometry, lines_of, position};

/// A position: the lanes of a geometry as a number.
trait Lanes: Pod + Into<u64> + BitAndAssign + BitOrAssign + PartialEq + Default {
    /// The lowest bits of a number.
    fn of(lanes: u64) -> Self;
}

macro_rules! narrow_lanes {
    ($($number:ty),*) => {$(
        impl Lanes for $number {
            #[expect(clippy::cast_possible_truncation, reason = "the lowest bits")]
            #[inline(always)]
            fn of(lanes: u64) -> Self {
                lanes as Self
            }
        }
    )*};
}
narrow_lanes!(u8, u16, u32);

impl Lanes for u64 {
    #[inline(always)]
    fn of(lanes: u64) -> Self {
        lanes
    }
}

/// Calls a function for the geometry's lanes, positions a line and parts, so
/// that all are constants in its code.
macro_rules! dispatch {
    ($geometry:expr, $function:ident($($argument:expr),*)) => {
        match ($geometry.lanes(), $geometry.parts()) {
            (8, 1) => $function::<u8, 64, 1>($($argument),*),
            (8, 2) => $function::<u8, 64, 2>($($argument),*),
            (8, _) => $function::<u8, 64, 4>($($argument),*),
            (16, 1) => $function::<u16, 32, 1>($($argument),*),
            (16, 2) => $function::<u16, 32, 2>($($argument),*),
            (16, _) => $function::<u16, 32, 4>($($argument),*),
            (32, 1) => $function::<u32, 16, 1>($($argument),*),
            (32, 2) => $function::<u32, 16, 2>($($argument),*),
            (32, _) => $function::<u32, 16, 4>($($argument),*),
            (_, 1) => $function::<u64, 8, 1>($($argument),*),
            (_, 2) => $function::<u64, 8, 2>($($argument),*),
            (_, _) => $function::<u64, 8, 4>($($argument),*),
        }
    };
}

/// Which of the wanted lanes have all bits of a digest with these lines.
#[inline(always)]
pub(super) fn find(
    words: &[u64],
    geometry: WindowGeometry,
    lines: impl Iterator<Item = (usize, u64)>,
    wanted: u64,
) -> u64 {
    dispatch!(geometry, find_in(words, lines, wanted))
}

#[inline]
fn find_in<T: Lanes, const N: usize, const PARTS: u32>(
    words: &[u64],
    places: impl Iterator<Item = (usize, u64)>,
    wanted: u64,
) -> u64 {
    let lines = bytemuck::cast_slice::<u64, T>(words).as_chunks::<N>().0;
    let mut found = T::of(wanted);
    for (line, chosen) in places {
        let line = &lines[line];
        for part in 0..PARTS {
            found &= line[position::<N, PARTS>(chosen, part)];
        }
        if found == T::default() {
            break;
        }
    }
    found.into()
}

/// Sets all bits of a digest with these lines in one lane, given as a bit. Says
/// which lanes had all of them before.
#[inline(always)]
pub(super) fn set(
    words: &mut [u64],
    geometry: WindowGeometry,
    lines: impl Iterator<Item = (usize, u64)>,
    lane: u64,
) -> u64 {
    dispatch!(geometry, set_in(words, lines, lane))
}

#[inline]
fn set_in<T: Lanes, const N: usize, const PARTS: u32>(
    words: &mut [u64],
    places: impl Iterator<Item = (usize, u64)>,
    lane: u64,
) -> u64 {
    let lines = bytemuck::cast_slice_mut::<u64, T>(words)
        .as_chunks_mut::<N>()
        .0;
    let lane = T::of(lane);
    let mut found = T::of(u64::MAX);
    for (line, chosen) in places {
        let line = &mut lines[line];
        for part in 0..PARTS {
            let lanes = &mut line[position::<N, PARTS>(chosen, part)];
            found &= *lanes;
            *lanes |= lane;
        }
    }
    found.into()
}

/// Asks for the lines of a digest in the first `regions` regions.
#[inline(always)]
pub(super) fn fetch(words: &[u64], geometry: WindowGeometry, digest: u64, regions: usize) {
    for (line, _) in lines_of(geometry, digest).take(regions) {
        prefetch(words.as_ptr().wrapping_add(line * LINE_WORDS));
    }
}

/// Clears some lanes of every position in a run of words.
pub(super) fn clear(words: &mut [u64], geometry: WindowGeometry, lanes: u64) {
    let keep = !(lanes * repeat(geometry));
    for word in words {
        *word &= keep;
    }
}

/// A number that has bit 0 of each position in a word.
const fn repeat(geometry: WindowGeometry) -> u64 {
    u64::MAX / (u64::MAX >> (64 - geometry.lanes()))
}

/// The share of positions that have a bit in a lane, over some lanes.
pub(super) fn fill(words: &[u64], geometry: WindowGeometry, lanes: u64) -> f64 {
    let pattern = lanes * repeat(geometry);
    let ones: u64 = words
        .iter()
        .map(|word| u64::from((word & pattern).count_ones()))
        .sum();
    let all = words.len() as f64 * f64::from(pattern.count_ones());
    if all == 0.0 { 0.0 } else { ones as f64 / all }
}

/// The chance that a random digest has all bits of at least one of some lanes.
pub(super) fn error(words: &[u64], geometry: WindowGeometry, lanes: u64) -> f64 {
    let lines = words.as_chunks::<LINE_WORDS>().0;
    let per_region = lines.len() / geometry.regions() as usize;
    let mut none = 0.0;
    for lane in (0..geometry.lanes()).filter(|lane| lanes >> lane & 1 == 1) {
        let lane: f64 = lines
            .chunks(per_region.max(1))
            .map(|region| {
                let hits: f64 = region.iter().map(|line| hit(line, geometry, lane)).sum();
                hits / region.len() as f64
            })
            .product();
        none += (-lane).ln_1p();
    }
    -f64::exp_m1(none)
}

/// The chance that a random position in each part of a line has the lane's bit.
fn hit(line: &[u64; LINE_WORDS], geometry: WindowGeometry, lane: u32) -> f64 {
    let pattern = repeat(geometry);
    let positions = f64::from(geometry.part_positions());
    line.chunks(LINE_WORDS / geometry.parts() as usize)
        .map(|part| {
            let ones: u32 = part
                .iter()
                .map(|word| (word >> lane & pattern).count_ones())
                .sum();
            f64::from(ones) / positions
        })
        .product()
}
