//! Finds all places of one byte, fast: what splitting into records costs.
//!
//! A search that starts anew after every record, as with `memchr`, takes three times as long
//! for lines of 68 bytes.
//! What the records are is the affair of `lines`.

use wide::u8x16;

/// Bytes looked at in one go.
const CHUNK: usize = 64;

/// Appends to `ends` where in `bytes`, counted from `base`, something follows a
/// `terminator`: one more than its place. Stops when `ends` has `most` elements.
pub(super) fn find_ends(
    terminator: u8,
    bytes: &[u8],
    base: usize,
    most: usize,
    ends: &mut Vec<usize>,
) {
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    let mut after = base + 1;
    for chunk in chunks {
        if !push(mask(terminator, chunk), after, most, ends) {
            return;
        }
        after += CHUNK;
    }
    let mut last = [!terminator; CHUNK];
    last[..rest.len()].copy_from_slice(rest);
    push(mask(terminator, &last), after, most, ends);
}

/// Appends a place for every bit of the mask; false if there may be no more.
#[inline]
fn push(mut mask: u64, after: usize, most: usize, ends: &mut Vec<usize>) -> bool {
    while mask != 0 {
        if ends.len() >= most {
            return false;
        }
        ends.push(after + mask.trailing_zeros() as usize);
        mask &= mask - 1;
    }
    true
}

/// Bit `i` tells whether `chunk[i]` is the terminator.
#[inline]
fn mask(terminator: u8, chunk: &[u8; CHUNK]) -> u64 {
    let wanted = u8x16::splat(terminator);
    let (parts, _) = chunk.as_chunks::<16>();
    parts.iter().rev().fold(0, |mask, &part| {
        let found = u8x16::new(part).simd_eq(wanted).to_bitmask();
        mask << 16 | u64::from(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_the_mask_is_its_byte() {
        for terminator in [0, b'\n', 0x7f, 0x80, 0xff] {
            for at in 0..CHUNK {
                // Bytes that differ from the terminator in one bit only.
                for bit in 0..8 {
                    let mut chunk = [terminator ^ 1 << bit; CHUNK];
                    assert_eq!(mask(terminator, &chunk), 0);
                    chunk[at] = terminator;
                    assert_eq!(mask(terminator, &chunk), 1 << at);
                }
                let mut chunk = [terminator; CHUNK];
                chunk[at] = !terminator;
                assert_eq!(mask(terminator, &chunk), !(1 << at));
            }
        }
    }

    #[test]
    fn all_places_are_found_up_to_the_number_wanted() {
        for len in 0..200 {
            let bytes: Vec<u8> = (0..len).map(|i| u8::from(i * i % 7 != 2)).collect();
            let all: Vec<usize> = (0..len)
                .filter(|&i| bytes[i] == 0)
                .map(|i| 1000 + i + 1)
                .collect();
            for most in [0, 1, 2, 5, 40, 41, usize::MAX] {
                // What is there already counts.
                let mut ends = vec![77];
                find_ends(0, &bytes, 1000, most, &mut ends);
                let expected = &all[..all.len().min(most.saturating_sub(1))];
                assert_eq!((ends[0], &ends[1..]), (77, expected), "{len} {most}");
            }
        }
    }
}
