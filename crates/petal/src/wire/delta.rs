//! What has changed from one version of a filter to the next.
//!
//! Owns the two runs of bits that a MiB of words becomes: a bit for each
//! position that was 0, and one for each that was 1, set where the new filter
//! has another. So positions that were set cost nothing where keys are only
//! added, and cleared ones are told as well.

use std::borrow::Borrow;

use super::container::{self, Base, Lead};
use super::{model, pack};
use crate::error::{Error, Result};
use crate::format::Image;
use crate::words::Words;

/// Bytes that a MiB takes at least: two runs.
const LEAST_OF_MIB: u64 = 16;

pub(super) fn delta<V, W>(old: &Image<V>, new: &Image<W>) -> Result<Vec<u8>>
where
    V: Borrow<Words>,
    W: Borrow<Words>,
{
    let (base, shell) = (old.shell(), new.shell());
    pack::accept(base, "deltas")?;
    pack::accept(shell, "deltas")?;
    shell.accept_base(base)?;
    if shell.generation() <= base.generation() {
        return Err(Error::parameter(
            "generation",
            shell.generation(),
            format!(
                "the new filter must be of a later generation than the old one, which is of \
                 {}: if nothing was added since there is nothing to send; else build it with \
                 `--like`, or set the generation",
                base.generation()
            ),
        ));
    }
    let lead = Lead {
        parts: new.parts(),
        base: Some(Base {
            generation: base.generation(),
            table_sum: base.table_sum(),
        }),
    };
    let mut bytes = lead.encode();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut runs = [Run::default(), Run::default()];
    for mib in 0..shell.mibs() {
        before.resize(shell.mib_words(mib), 0);
        after.resize(shell.mib_words(mib), 0);
        old.read(mib, &mut before);
        new.read(mib, &mut after);
        for (run, flip) in runs.iter_mut().zip([u64::MAX, 0]) {
            run.clear();
            for (before, after) in before.iter().zip(&after) {
                run.push(gather(before ^ after, before ^ flip), before ^ flip);
            }
            model::encode(&run.words, &mut bytes);
        }
    }
    Ok(container::seal(bytes))
}

pub(super) fn apply<W: Borrow<Words>>(old: &Image<W>, bytes: &[u8]) -> Result<Image<Words>> {
    let (lead, mut rest) = Lead::decode(bytes)?;
    let Some(base) = lead.base else {
        return Err(Error::parameter(
            "delta",
            "a packed filter",
            "unpack it (`petal unpack`)",
        ));
    };
    let shell = lead.parts.shell()?;
    pack::accept(&shell, "deltas")?;
    let found = old.shell();
    if found.generation() != base.generation {
        return Err(Error::OutOfOrder {
            from: base.generation,
            to: shell.generation(),
            got: found.generation(),
        });
    }
    if found.table_sum() != base.table_sum {
        return Err(Error::WrongBase {
            expected: base.table_sum,
            got: found.table_sum(),
        });
    }
    shell.accept_base(found)?;
    container::check_room(&rest, shell.mibs(), LEAST_OF_MIB)?;
    let mut words = shell.allocate()?;
    let mut sums = Vec::new();
    let mut part = Vec::new();
    let mut runs = [Run::default(), Run::default()];
    for mib in 0..shell.mibs() {
        part.resize(shell.mib_words(mib), 0);
        old.read(mib, &mut part);
        for (run, flip) in runs.iter_mut().zip([u64::MAX, 0]) {
            run.clear();
            let bits = part.iter().map(|word| (word ^ flip).count_ones() as usize);
            run.words.resize(bits.sum::<usize>().div_ceil(64), 0);
            model::decode(&mut rest, &mut run.words)?;
        }
        for word in &mut part {
            let [zeros, ones] = &mut runs;
            *word ^= scatter(zeros.pull(!*word), !*word) | scatter(ones.pull(*word), *word);
        }
        if runs.iter().any(|run| !run.is_spent()) {
            return Err(Error::from(crate::format::field(
                "coded run",
                "bits behind its end",
                "zeros",
            )));
        }
        sums.push(shell.put(mib, &part, &mut words)?);
    }
    container::at_end(&rest)?;
    shell.complete(&sums, words)
}

/// Bits one after another.
#[derive(Debug, Default)]
struct Run {
    words: Vec<u64>,
    /// Bits that were pushed or pulled.
    used: usize,
}

impl Run {
    fn clear(&mut self) {
        self.words.clear();
        self.used = 0;
    }

    /// Appends the low bits, as many as `mask` has set. The others are 0.
    fn push(&mut self, bits: u64, mask: u64) {
        let at = self.used % 64;
        let count = mask.count_ones() as usize;
        self.used += count;
        self.words.resize(self.used.div_ceil(64), 0);
        if bits == 0 {
            return;
        }
        let first = (self.used - count) / 64;
        self.words[first] |= bits << at;
        if at > 0
            && let Some(next) = self.words.get_mut(first + 1)
        {
            *next |= bits >> (64 - at);
        }
    }

    /// Takes as many bits as `mask` has set: there are as many.
    fn pull(&mut self, mask: u64) -> u64 {
        let (first, at) = (self.used / 64, self.used % 64);
        let count = mask.count_ones();
        if count == 0 {
            return 0;
        }
        self.used += count as usize;
        let mut bits = self.words[first] >> at;
        if at > 0
            && let Some(next) = self.words.get(first + 1)
        {
            bits |= next << (64 - at);
        }
        bits & (u64::MAX >> (64 - count))
    }

    /// Whether no bit is set behind those that were pulled.
    fn is_spent(&self) -> bool {
        self.used.is_multiple_of(64)
            || self
                .words
                .last()
                .is_none_or(|last| last >> (self.used % 64) == 0)
    }
}

/// The bits of a word at the places of a mask, side by side.
fn gather(word: u64, mask: u64) -> u64 {
    let mut left = word & mask;
    let mut bits = 0;
    while left != 0 {
        let lowest = left & left.wrapping_neg();
        bits |= 1 << (mask & (lowest - 1)).count_ones();
        left ^= lowest;
    }
    bits
}

/// The opposite of [`gather`].
fn scatter(bits: u64, mask: u64) -> u64 {
    let (mut bits, mut mask) = (bits, mask);
    let mut word = 0;
    while bits != 0 {
        if bits & 1 == 1 {
            word |= mask & mask.wrapping_neg();
        }
        bits >>= 1;
        mask &= mask.wrapping_sub(1);
    }
    word
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::cases;

    proptest! {
        #![proptest_config(cases(300))]

        #[test]
        fn gathered_bits_go_back_to_their_places(word: u64, mask: u64) {
            let bits = gather(word, mask);
            prop_assert_eq!(bits.count_ones(), (word & mask).count_ones());
            prop_assert_eq!(scatter(bits, mask), word & mask);
            prop_assert_eq!(gather(word, u64::MAX), word);
        }

        #[test]
        fn runs_give_back_what_was_pushed(words in prop::collection::vec((any::<u64>(), any::<u64>()), 0..50)) {
            let mut run = Run::default();
            for &(word, mask) in &words {
                let mask = if word % 3 == 0 { u64::MAX } else { mask };
                run.push(gather(word, mask), mask);
            }
            run.used = 0;
            for &(word, mask) in &words {
                let mask = if word % 3 == 0 { u64::MAX } else { mask };
                prop_assert_eq!(run.pull(mask), gather(word, mask));
            }
            prop_assert!(run.is_spent());
        }
    }
}
