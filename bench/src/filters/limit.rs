//! The machine's limit: how fast one thread reads random cache lines.
//!
//! Owns an array of lines on huge pages and a loop of the shape every batch of questions has: keys
//! come from a buffer and are mixed into places, the lines of one group are fetched while those of the
//! group before are read. It reads one word of each line and compares nothing.

use memmap2::{Advice, MmapMut};

use crate::filters::keys::{Ints, Keys, Source};
use crate::filters::measure::timed;

/// Lines on their way at once.
pub(crate) const DISTANCES: [usize; 3] = [16, 32, 64];

/// One cache line.
type Line = [u64; 8];

/// An array to read from.
pub(crate) struct Limit {
    lines: MmapMut,
    source: Source,
    /// The least nanoseconds a line at each of [`DISTANCES`].
    pub(crate) least: [f64; DISTANCES.len()],
}

impl Limit {
    /// An array of so many bytes, on pages of 2 MiB where the system has them.
    ///
    /// # Errors
    /// A message if there is no such memory.
    pub(crate) fn new(bytes: usize) -> Result<Self, String> {
        let no_memory = |refused| format!("no {bytes} bytes to read from: {refused}");
        let mut lines =
            MmapMut::map_anon(bytes.next_multiple_of(size_of::<Line>())).map_err(no_memory)?;
        // Advice only. The table shows what it came to.
        let _ = lines.advise(Advice::HugePage);
        // Written, so that each page is there and is not the one page of zeros.
        lines.fill(1);
        Ok(Self {
            lines,
            source: Source::new(bytes as u64, 1),
            least: [f64::INFINITY; DISTANCES.len()],
        })
    }

    /// Measures `runs` more times.
    pub(crate) fn run(&mut self, runs: usize) {
        let lines: &[Line] = bytemuck::cast_slice(&self.lines);
        let mut keys = Ints::default();
        for _ in 0..runs {
            for (distance, least) in DISTANCES.into_iter().zip(&mut self.least) {
                self.source.absent(Ints::RUN, &mut keys);
                let (nanoseconds, _) = match distance {
                    16 => timed(keys.len(), || read::<16>(lines, &keys.0)),
                    32 => timed(keys.len(), || read::<32>(lines, &keys.0)),
                    _ => timed(keys.len(), || read::<64>(lines, &keys.0)),
                };
                *least = least.min(nanoseconds);
            }
        }
    }

    /// Bytes of the array.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.len()
    }

    /// The least of all distances.
    pub(crate) fn best(&self) -> f64 {
        self.least.into_iter().fold(f64::INFINITY, f64::min)
    }
}

/// The sum of one word of the line that each key leads to.
fn read<const GROUP: usize>(lines: &[Line], keys: &[i64]) -> u64 {
    let mut sum = 0u64;
    let mut places = [0; GROUP];
    for group in keys.as_chunks::<GROUP>().0 {
        for (place, &key) in places.iter_mut().zip(group) {
            let next = place_of(key, lines.len());
            prefetch(lines, next);
            // The line of the group before, which is there by now.
            sum = sum.wrapping_add(lines[*place][0]);
            *place = next;
        }
    }
    sum
}

/// A place from a key: two multiplications, as good as none.
#[expect(clippy::cast_possible_truncation, reason = "below the number of lines")]
fn place_of(key: i64, lines: usize) -> usize {
    let mixed = key.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(mixed) * lines as u128) >> 64) as usize
}

/// Asks for a line ahead of its use.
fn prefetch(lines: &[Line], place: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(line) = lines.get(place) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and the pointer is to a live line.
        #[expect(unsafe_code, reason = "the intrinsic takes a pointer")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(line).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (lines, place);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_but_those_of_the_last_group_is_read() {
        let lines: Vec<Line> = (0..1000).map(|line| [line; 8]).collect();
        let mut keys = Ints::default();
        Source::new(1, 1).absent(640, &mut keys);
        let expected: u64 = keys.0[..576]
            .iter()
            .map(|&key| place_of(key, 1000) as u64)
            .sum();
        assert_eq!(read::<64>(&lines, &keys.0), expected);
    }
}
