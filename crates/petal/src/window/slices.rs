//! The bits of a window: asking, setting and clearing lanes.
//!
//! Owns the loops over the positions of a digest, and which chunks have a bit at all. Lanes go
//! in and out as bits of a number; which generation a lane is, is not known here.

use std::ops::{BitAndAssign, BitOrAssign, Range};

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

/// Lines of a chunk: 4 KiB, as far apart as lines of random digests are.
const CHUNK_LINES: usize = 64;
/// Words of a chunk.
const CHUNK_WORDS: usize = CHUNK_LINES * LINE_WORDS;

/// The chunks that may have a bit: so that clearing a window in which few keys
/// came looks at few words. Follows from the words.
#[derive(Debug)]
pub(super) struct Touched(Vec<u64>);

impl Touched {
    /// Of words that are all zero.
    pub(super) fn none(geometry: WindowGeometry) -> Self {
        Self::all(geometry, 0)
    }

    /// Of words that nobody has looked at.
    pub(super) fn unknown(geometry: WindowGeometry) -> Self {
        Self::all(geometry, u64::MAX)
    }

    fn all(geometry: WindowGeometry, bits: u64) -> Self {
        let chunks = geometry.words().div_ceil(CHUNK_WORDS as u64);
        // As long as the words are in memory, so is this.
        let len = usize::try_from(chunks.div_ceil(64)).unwrap_or(usize::MAX);
        Self(vec![bits; len])
    }

    #[inline(always)]
    fn note(&mut self, line: usize) {
        let chunk = line / CHUNK_LINES;
        self.0[chunk / 64] |= 1 << (chunk % 64);
    }

    /// The first chunk from one on that may have a bit.
    fn next(&self, chunk: usize) -> Option<usize> {
        let first = self.0.get(chunk / 64)? >> (chunk % 64);
        if first != 0 {
            return Some(chunk + first.trailing_zeros() as usize);
        }
        let rest = self.0.iter().enumerate().skip(chunk / 64 + 1);
        let (at, bits) = rest.into_iter().find(|&(_, &bits)| bits != 0)?;
        Some(at * 64 + bits.trailing_zeros() as usize)
    }
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
    touched: &mut Touched,
    geometry: WindowGeometry,
    lines: impl Iterator<Item = (usize, u64)>,
    lane: u64,
) -> u64 {
    dispatch!(geometry, set_in(words, touched, lines, lane))
}

#[inline]
fn set_in<T: Lanes, const N: usize, const PARTS: u32>(
    words: &mut [u64],
    touched: &mut Touched,
    places: impl Iterator<Item = (usize, u64)>,
    lane: u64,
) -> u64 {
    let lines = bytemuck::cast_slice_mut::<u64, T>(words)
        .as_chunks_mut::<N>()
        .0;
    let lane = T::of(lane);
    let mut found = T::of(u64::MAX);
    for (line, chosen) in places {
        touched.note(line);
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

/// Clears some lanes of every position in a range of words.
pub(super) fn clear(
    words: &mut [u64],
    touched: &mut Touched,
    geometry: WindowGeometry,
    range: Range<usize>,
    lanes: u64,
) {
    let keep = !(lanes * repeat(geometry));
    let mut from = range.start / CHUNK_WORDS;
    while let Some(chunk) = touched.next(from)
        && chunk * CHUNK_WORDS < range.end
    {
        let whole = chunk * CHUNK_WORDS..words.len().min((chunk + 1) * CHUNK_WORDS);
        let part = whole.start.max(range.start)..whole.end.min(range.end);
        let mut left = 0;
        for word in &mut words[part.clone()] {
            *word &= keep;
            left |= *word;
        }
        if left == 0 && part == whole {
            touched.0[chunk / 64] &= !(1 << (chunk % 64));
        }
        from = chunk + 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing;
    use crate::sizing::Collisions;

    /// What is set is found by clearing, wherever a pass is cut; a chunk is
    /// passed over only if it has no bit, and is once it has none.
    #[test]
    fn touched_chunks_are_those_that_have_a_bit() {
        let geometry = sizing::window_for(20_000, 0.01, 14, Collisions::Never).unwrap();
        let mut words = vec![0u64; usize::try_from(geometry.words()).unwrap()];
        let mut touched = Touched::none(geometry);
        let all = 0..words.len();
        assert!(words.len() > 8 * CHUNK_WORDS && touched.next(0).is_none());
        let has_a_bit = |words: &[u64]| -> Vec<usize> {
            let chunks = words.chunks(CHUNK_WORDS).enumerate();
            chunks
                .filter(|(_, chunk)| chunk.iter().any(|&word| word != 0))
                .map(|(i, _)| i)
                .collect()
        };
        let noted = |touched: &Touched| -> Vec<usize> {
            let mut chunks = Vec::new();
            let mut from = 0;
            while let Some(chunk) = touched.next(from) {
                chunks.push(chunk);
                from = chunk + 1;
            }
            chunks
        };
        let digest = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for i in 0..3 {
            let lines = lines_of(geometry, digest(i + 1));
            set(&mut words, &mut touched, geometry, lines, 1 << i);
            assert_eq!(noted(&touched), has_a_bit(&words));
        }
        // One lane goes: chunks of the others stay.
        clear(&mut words, &mut touched, geometry, all.clone(), 1);
        assert_eq!(noted(&touched), has_a_bit(&words));
        // A pass in pieces that cut chunks clears as much.
        let cut = words.len() / 3;
        clear(&mut words, &mut touched, geometry, 0..cut, 6);
        clear(&mut words, &mut touched, geometry, cut..all.end, 6);
        assert!(words.iter().all(|&word| word == 0));
        clear(&mut words, &mut touched, geometry, all.clone(), 6);
        assert_eq!(noted(&touched), [0; 0]);
        // Of words that nobody has looked at, every chunk counts.
        words[all.end - 1] = 1;
        let mut touched = Touched::unknown(geometry);
        clear(&mut words, &mut touched, geometry, all, 1);
        assert!(words.iter().all(|&word| word == 0));
    }
}
