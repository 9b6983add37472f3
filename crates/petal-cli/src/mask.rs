//! Masks: one bit for each line, or each digest, of a batch.
//!
//! Owns what the verbs do with the answers of a batch, 64 at a time. Bit `i`
//! is bit `i % 64` of word `i / 64`; bits past the end of a batch are 0.

use std::ops::Range;

use petal::mask_words;

/// Makes a mask of `count` zeros, in its own memory if that suffices.
pub(crate) fn clear(mask: &mut Vec<u64>, count: usize) {
    mask.clear();
    mask.resize(mask_words(count), 0);
}

/// Turns the first `count` bits over.
pub(crate) fn invert(mask: &mut [u64], count: usize) {
    for word in &mut *mask {
        *word = !*word;
    }
    truncate(mask, count);
}

/// Makes 0 what follows the first `count` bits.
pub(crate) fn truncate(mask: &mut [u64], count: usize) {
    if let Some(last) = mask.get_mut(count / 64) {
        *last &= (1 << (count % 64)) - 1;
    }
    for word in mask.iter_mut().skip(count / 64 + 1) {
        *word = 0;
    }
}

/// Sets the bits that are set in another mask of the same length.
pub(crate) fn unite(mask: &mut [u64], other: &[u64]) {
    for (word, other) in mask.iter_mut().zip(other) {
        *word |= other;
    }
}

/// How many bits are set.
pub(crate) fn count(mask: &[u64]) -> u64 {
    mask.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Sets the bits `to..` as the first `count` of `bits` from bit `from` on
/// are set, where they are 0.
pub(crate) fn copy(mask: &mut [u64], to: usize, bits: &[u64], from: usize, count: usize) {
    let mut done = 0;
    while done < count {
        let (word, low) = ((from + done) / 64, (from + done) % 64);
        let len = (64 - low).min(count - done);
        let piece = bits[word] >> low & (u64::MAX >> (64 - len));
        let (word, low) = ((to + done) / 64, (to + done) % 64);
        mask[word] |= piece << low;
        if low + len > 64 {
            mask[word + 1] |= piece >> (64 - low);
        }
        done += len;
    }
}

/// The runs of set bits among the first `count`, in order.
pub(crate) fn runs(mask: &[u64], count: usize) -> Runs<'_> {
    Runs {
        mask,
        count,
        at: 0,
        word: mask.first().copied().unwrap_or(0),
    }
}

/// See [`runs`].
pub(crate) struct Runs<'a> {
    mask: &'a [u64],
    count: usize,
    /// Number of the word at hand.
    at: usize,
    /// That word without the bits that are done.
    word: u64,
}

impl Runs<'_> {
    fn next_word(&mut self) -> Option<u64> {
        self.at += 1;
        self.mask.get(self.at).copied()
    }
}

impl Iterator for Runs<'_> {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        while self.word == 0 {
            self.word = self.next_word()?;
        }
        let low = self.word.trailing_zeros();
        let start = self.at * 64 + low as usize;
        // Adding the lowest bit carries through the run that begins there.
        let (rest, past_the_end) = self.word.overflowing_add(1 << low);
        self.word &= rest;
        let mut end = self.at * 64 + rest.trailing_zeros() as usize;
        if past_the_end {
            // The run goes on in the next words.
            loop {
                self.word = self.next_word().unwrap_or(0);
                end = self.at * 64 + self.word.trailing_ones() as usize;
                if self.word != u64::MAX {
                    break;
                }
            }
            self.word &= self.word.wrapping_add(1);
        }
        (start < self.count).then(|| start..end.min(self.count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mask(bits: &[bool]) -> Vec<u64> {
        let mut mask = vec![0; mask_words(bits.len())];
        for (i, _) in bits.iter().enumerate().filter(|&(_, &set)| set) {
            mask[i / 64] |= 1 << (i % 64);
        }
        mask
    }

    /// Bits in runs, as the answers of a filter come.
    fn bits() -> impl Strategy<Value = Vec<bool>> {
        let run = (any::<bool>(), prop_oneof![1usize..5, 1usize..200]);
        prop::collection::vec(run, 0..12).prop_map(|runs| {
            let bits = runs.iter().map(|&(set, len)| vec![set; len]);
            bits.collect::<Vec<_>>().concat()
        })
    }

    proptest! {
        #[test]
        fn runs_are_the_bits(bits in bits(), cut in 0usize..300) {
            let count = bits.len().saturating_sub(cut);
            let mut found = vec![false; count];
            let mut last = None;
            for run in runs(&mask(&bits), count) {
                prop_assert!(!run.is_empty() && last.is_none_or(|last| last < run.start));
                last = Some(run.end);
                found[run].fill(true);
            }
            prop_assert_eq!(&found[..], &bits[..count]);
        }

        #[test]
        fn copies_are_bits(bits in bits(), to in 0usize..130, from in 0usize..130, cut in 0usize..70) {
            let count = bits.len().saturating_sub(from + cut);
            let mut target = vec![0; mask_words(to + count)];
            copy(&mut target, to, &mask(&bits), from, count);
            let mut expected = vec![false; to];
            expected.extend(bits.iter().skip(from).take(count));
            prop_assert_eq!(target, mask(&expected));
        }

        #[test]
        fn inverting_and_counting_are_of_the_first_bits(bits in bits()) {
            let mut turned = mask(&bits);
            invert(&mut turned, bits.len());
            let expected: Vec<bool> = bits.iter().map(|&set| !set).collect();
            prop_assert_eq!(&turned, &mask(&expected));
            let set = expected.iter().filter(|&&set| set).count() as u64;
            prop_assert_eq!(count(&turned), set);
            let half = bits.len() / 2;
            truncate(&mut turned, half);
            prop_assert_eq!(count(&turned), expected[..half].iter().filter(|&&set| set).count() as u64);
        }
    }
}
