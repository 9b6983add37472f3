//! The layout of a window: where the positions of a digest are.
//!
//! Owns [`WindowGeometry`]. Each position is a number of `lanes` bits, one bit
//! a generation, so that one look at a position asks all generations at once.
//!
//! ```text
//! region 0                          region 1
//! | line 0 | line 1 | ... | b - 1 | | line 0 | ...
//!   a line = 512 bits = 512 / lanes positions, in 1, 2 or 4 equal parts
//!   a key takes one line of each region, and one position in each part of it
//! ```
//!
//! Lines come from the digest as the blocks of [`super::SplitGeometry`] do, and
//! the position in a part from the same six bits as the bit in a word there.

use std::fmt;

use super::{block_of, lanes, next_region};
use crate::error::{Error, Result};

/// 64-bit words in a line.
pub(crate) const LINE_WORDS: usize = 8;

/// The shape of a [`crate::Window`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowGeometry {
    lanes: u32,
    regions: u32,
    parts: u32,
    lines: u64,
}

impl WindowGeometry {
    /// Most regions a window may have.
    pub const MAX_REGIONS: u32 = 32;

    /// A geometry with `lanes` bits a position (8, 16, 32 or 64) in `regions`
    /// (1 to 32) equal regions of `lines` cache lines each, every line in
    /// `parts` (1, 2 or 4).
    ///
    /// # Errors
    /// If one of them is not possible, or the bits would pass 2^63.
    pub fn new(lanes: u32, regions: u32, parts: u32, lines: u64) -> Result<Self> {
        if !matches!(lanes, 8 | 16 | 32 | 64) {
            return Err(Error::parameter("lanes", lanes, "use 8, 16, 32 or 64"));
        }
        if !(1..=Self::MAX_REGIONS).contains(&regions) {
            return Err(Error::parameter("regions", regions, "use 1 to 32"));
        }
        if !matches!(parts, 1 | 2 | 4) {
            return Err(Error::parameter("parts of a line", parts, "use 1, 2 or 4"));
        }
        let bits = u128::from(lines) * u128::from(regions) * 512;
        if lines == 0 || bits > 1 << 63 {
            return Err(Error::parameter(
                "lines",
                lines,
                "use at least 1, and at most 2^63 bits in all regions together",
            ));
        }
        Ok(Self {
            lanes,
            regions,
            parts,
            lines,
        })
    }

    /// Bits a position, one for each generation: 8, 16, 32 or 64.
    #[must_use]
    pub const fn lanes(self) -> u32 {
        self.lanes
    }

    /// Generations that are always there in full: all lanes but the one that
    /// is being filled and the one that is being cleared.
    #[must_use]
    pub const fn generations(self) -> u32 {
        self.lanes - 2
    }

    /// Regions, each of which costs a question one cache line.
    #[must_use]
    pub const fn regions(self) -> u32 {
        self.regions
    }

    /// Parts of a line, in each of which a key has one position.
    #[must_use]
    pub const fn parts(self) -> u32 {
        self.parts
    }

    /// Cache lines in each region.
    #[must_use]
    pub const fn lines(self) -> u64 {
        self.lines
    }

    /// Positions in each part of a line: 2 to 64, a power of two.
    #[must_use]
    pub const fn part_positions(self) -> u32 {
        512 / self.lanes / self.parts
    }

    /// 64-bit words in all regions together.
    #[must_use]
    pub const fn words(self) -> u64 {
        self.lines * self.regions as u64 * LINE_WORDS as u64
    }

    /// Bytes of the words.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.words() * 8
    }

    /// Bits of the words.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.words() * 64
    }
}

impl fmt::Display for WindowGeometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} lanes, {} x {} lines in {} parts",
            self.lanes, self.regions, self.lines, self.parts
        )
    }
}

/// The line of a digest in each region, by its number among all, and what
/// chooses the positions in it.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the words are in memory, so their indices fit a usize"
)]
pub(crate) fn lines_of(
    geometry: WindowGeometry,
    digest: u64,
) -> impl Iterator<Item = (usize, u64)> + Clone {
    let (mut state, mut first) = (digest, 0);
    (0..geometry.regions).map(move |_| {
        let line = (first + block_of(state, geometry.lines)) as usize;
        let chosen = lanes(state);
        first += geometry.lines;
        state = next_region(state);
        (line, chosen)
    })
}

/// The place of the position in part `part` of a line of `N` positions, in
/// `PARTS` parts, in memory: words are in the machine's order.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 64 positions")]
pub(crate) const fn position<const N: usize, const PARTS: u32>(chosen: u64, part: u32) -> usize {
    let positions = N / PARTS as usize;
    let in_part = (chosen << (6 * part)) >> (64 - positions.ilog2());
    let place = (part as usize * positions + in_part as usize) % N;
    if cfg!(target_endian = "big") {
        return place ^ (N / LINE_WORDS - 1);
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shapes_are_refused() {
        for (lanes, regions, parts, lines) in [
            (0, 1, 1, 1),
            (12, 1, 1, 1),
            (128, 1, 1, 1),
            (16, 0, 1, 1),
            (16, 33, 1, 1),
            (16, 1, 3, 1),
            (16, 1, 8, 1),
            (16, 1, 1, 0),
            (16, 2, 1, 1 << 54),
            (16, 1, 1, u64::MAX),
        ] {
            assert!(WindowGeometry::new(lanes, regions, parts, lines).is_err());
        }
        let largest = WindowGeometry::new(16, 32, 4, 1 << 49).unwrap();
        assert_eq!(largest.bits(), 1 << 63);
    }

    fn each_position_is_met_once<const N: usize, const PARTS: u32>() {
        let positions = N as u64 / u64::from(PARTS);
        let mut seen = std::collections::BTreeSet::new();
        for part in 0..PARTS {
            for at in 0..positions {
                let chosen = at << (64 - positions.ilog2()) >> (6 * part);
                let place = position::<N, PARTS>(chosen, part);
                assert!(place < N && seen.insert(place));
            }
        }
        assert_eq!(seen.len(), N);
    }

    #[test]
    fn positions_fill_the_line() {
        each_position_is_met_once::<64, 1>();
        each_position_is_met_once::<64, 4>();
        each_position_is_met_once::<32, 1>();
        each_position_is_met_once::<32, 2>();
        each_position_is_met_once::<16, 4>();
        each_position_is_met_once::<8, 1>();
        each_position_is_met_once::<8, 4>();
    }
}
