//! URL-like lines with exact counts of distinct, repeated and shared ones, in bounded memory.
//!
//! Owns which keys a file holds and in what order ([`Spec`], [`Keys`]); their text ([`write_line`])
//! is `text.rs`. Reading arguments and writing files is `bin/generate.rs`.
//!
//! A key is the pair of a seed and an index, packed into 64 bits. The index counts up whenever a
//! line is new; a repeat draws one of the indices so far and derives the same text again. So no key
//! is ever kept, and the counts hold without looking at the lines: distinct pairs have distinct
//! texts, because each text spells the pair out in its first run of digits (see [`write_line`]).

mod text;

pub use text::{LONG_BYTES, LONG_ONE_IN, UTF8_ONE_IN, write_line};

/// Most lines of one file: the index of a key takes 48 bits.
pub const MAX_LINES: u64 = 1 << 48;

/// What a file consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Lines of the file, from 1 to [`MAX_LINES`].
    pub lines: u64,
    /// How many of them occurred before; fewer than `lines`.
    pub repeats: u64,
    /// Names the keys and, without an overlap, their arrangement.
    pub seed: u16,
    /// Makes this the second file beside the one of `seed`.
    pub overlap: Option<Overlap>,
}

/// How a second file overlaps the file with the same `lines`, `repeats` and `seed` and no overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Distinct keys in both files; at most those of one file.
    pub shared: u64,
    /// Names the other keys of the second file, and its arrangement; not `seed`.
    pub other_seed: u16,
}

impl Spec {
    /// Checks the ranges that the fields state.
    ///
    /// # Errors
    /// A message with the field, what it may be and what it is.
    pub fn check(&self) -> Result<(), String> {
        let Self {
            lines,
            repeats,
            seed,
            overlap,
        } = *self;
        if lines == 0 || lines > MAX_LINES {
            return Err(format!("lines must be from 1 to {MAX_LINES}, got {lines}"));
        }
        if repeats >= lines {
            return Err(format!(
                "repeats must be fewer than the {lines} lines, got {repeats}"
            ));
        }
        if let Some(Overlap { shared, other_seed }) = overlap {
            if shared > self.distinct() {
                let distinct = self.distinct();
                return Err(format!(
                    "shared keys must be at most the {distinct} distinct ones, got {shared}"
                ));
            }
            if other_seed == seed {
                return Err(format!(
                    "the other seed must differ from the seed, both are {seed}"
                ));
            }
        }
        Ok(())
    }

    /// Distinct lines of the file, exactly.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.lines.saturating_sub(self.repeats)
    }

    /// The keys of the file, line by line.
    ///
    /// # Errors
    /// As [`Spec::check`].
    pub fn keys(&self) -> Result<Keys, String> {
        self.check()?;
        let distinct = self.distinct();
        let arrangement = self.overlap.map_or(self.seed, |overlap| overlap.other_seed);
        Ok(Keys {
            spec: *self,
            stride: stride_coprime_to(distinct),
            draws: SplitMix64(mix64(u64::from(arrangement) + 1)),
            lines_left: self.lines,
            repeats_left: self.repeats,
            distinct_so_far: 0,
        })
    }
}

/// Iterator over the keys of a file, in the order of its lines.
#[derive(Clone, Debug)]
pub struct Keys {
    spec: Spec,
    stride: u64,
    draws: SplitMix64,
    lines_left: u64,
    repeats_left: u64,
    distinct_so_far: u64,
}

impl Keys {
    /// The key of the file's distinct line `index`, counted from 0.
    fn key(&self, index: u64) -> u64 {
        let distinct = self.spec.distinct();
        let Some(Overlap { shared, other_seed }) = self.spec.overlap else {
            return packed(self.spec.seed, index);
        };
        // Shared keys are spread evenly: `index` is one where the running share reaches a new whole.
        let rank = mul_div(index, shared, distinct);
        if mul_div(index + 1, shared, distinct) == rank {
            return packed(other_seed, index);
        }
        // A stride coprime to the number of keys visits each of the first file's keys once, out of order.
        packed(self.spec.seed, mul_mod(rank, self.stride, distinct))
    }
}

impl Iterator for Keys {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.lines_left == 0 {
            return None;
        }
        // Selection sampling: taking a repeat with chance left/left makes their number exact.
        let repeat =
            self.distinct_so_far > 0 && self.draws.below(self.lines_left) < self.repeats_left;
        self.lines_left -= 1;
        let index = if repeat {
            self.repeats_left -= 1;
            self.draws.below(self.distinct_so_far)
        } else {
            self.distinct_so_far += 1;
            self.distinct_so_far - 1
        };
        Some(self.key(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        usize::try_from(self.lines_left).map_or((usize::MAX, None), |left| (left, Some(left)))
    }
}

/// Seed and index in 64 bits; the index is below [`MAX_LINES`].
fn packed(seed: u16, index: u64) -> u64 {
    u64::from(seed) << 48 | index
}

/// Steele, Lea and Flood's SplitMix64 (2014): a counter under the mix below.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64(pub(crate) u64);

impl SplitMix64 {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0)
    }

    /// A draw from 0 to `bound` - 1, uniform up to a bias of `bound` / 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        mul_shift(self.next(), bound)
    }
}

/// David Stafford's mix 13, the finaliser of SplitMix64: a bijection of 64 bits.
pub(crate) fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn mul_shift(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// a·b/c rounded down, for b ≤ c.
#[expect(
    clippy::cast_possible_truncation,
    reason = "with b ≤ c the quotient is at most a"
)]
fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    (u128::from(a) * u128::from(b) / u128::from(c)) as u64
}

/// a·b mod c.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a remainder is below the 64-bit divisor"
)]
fn mul_mod(a: u64, b: u64, c: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(c)) as u64
}

/// A number without a common divisor with `count`, near `count` / golden ratio, where steps scatter most.
fn stride_coprime_to(count: u64) -> u64 {
    let coprime = |stride: u64| {
        let (mut a, mut b) = (stride, count);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    // 1 is coprime to everything, so there is an end to find.
    (1..=(mul_div(count, 618, 1000)).max(1))
        .rev()
        .find(|&stride| coprime(stride))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn spec(lines: u64, repeats: u64) -> Spec {
        Spec {
            lines,
            repeats,
            seed: 1,
            overlap: None,
        }
    }

    fn lines_of(spec: &Spec) -> Vec<Vec<u8>> {
        spec.keys().unwrap().map(line_of).collect()
    }

    fn line_of(key: u64) -> Vec<u8> {
        let mut line = Vec::new();
        write_line(key, &mut line);
        line
    }

    #[test]
    fn counts_are_exact() {
        for (lines, repeats) in [
            (1, 0),
            (2, 1),
            (3, 2),
            (1000, 0),
            (1000, 999),
            (1000, 300),
            (60_000, 18_000),
        ] {
            let all = lines_of(&spec(lines, repeats));
            let distinct: HashSet<_> = all.iter().collect();
            assert_eq!(all.len() as u64, lines);
            assert_eq!(
                distinct.len() as u64,
                lines - repeats,
                "{lines} lines, {repeats} repeats"
            );
            assert_eq!(distinct.len() as u64, spec(lines, repeats).distinct());
        }
    }

    #[test]
    fn repeats_are_spread_over_the_file_and_over_the_keys() {
        let all = lines_of(&spec(100_000, 30_000));
        let mut seen = HashSet::new();
        let repeats = |lines: &[Vec<u8>], seen: &mut HashSet<Vec<u8>>| {
            lines
                .iter()
                .filter(|line| !seen.insert((*line).clone()))
                .count()
        };
        let (first, second) = all.split_at(50_000);
        let (first, second) = (repeats(first, &mut seen), repeats(second, &mut seen));
        assert_eq!(first + second, 30_000);
        // Hypergeometric: sigma = sqrt(30000 · 1/2 · 7/10 · 1/2) = 72.5, five of them 363.
        assert!(
            first.abs_diff(15_000) <= 363,
            "{first} repeats in the first half"
        );
        // No key takes an outsized share: a count of 20 has a chance of about 1e-6 even for the first key.
        let mut counts = std::collections::HashMap::new();
        for line in &all {
            *counts.entry(line).or_insert(0) += 1;
        }
        let most = counts.values().max().unwrap();
        assert!((3..=25).contains(most), "one line occurs {most} times");
    }

    #[test]
    fn the_same_seed_gives_the_same_file_and_another_seed_no_common_line() {
        let one = lines_of(&spec(20_000, 6_000));
        assert_eq!(one, lines_of(&spec(20_000, 6_000)));
        let other = lines_of(&Spec {
            seed: 2,
            ..spec(20_000, 6_000)
        });
        let one: HashSet<_> = one.into_iter().collect();
        assert!(other.iter().all(|line| !one.contains(line)));
    }

    #[test]
    fn the_order_of_a_file_never_changes() {
        // Otherwise figures measured at different times would be of different files.
        let indices: Vec<_> = spec(1_000, 300)
            .keys()
            .unwrap()
            .take(12)
            .map(|key| key - packed(1, 0))
            .collect();
        assert_eq!(indices, [0, 0, 1, 2, 3, 4, 5, 6, 2, 4, 1, 3]);
    }

    #[test]
    fn a_second_file_shares_exactly_what_was_asked() {
        for shared in [0, 1, 2_000, 6_999, 7_000] {
            let first = spec(10_000, 3_000);
            let second = Spec {
                overlap: Some(Overlap {
                    shared,
                    other_seed: 9,
                }),
                ..first
            };
            let first: HashSet<_> = lines_of(&first).into_iter().collect();
            let second_lines = lines_of(&second);
            let second: HashSet<_> = second_lines.iter().cloned().collect();
            assert_eq!(second_lines.len(), 10_000);
            assert_eq!(second.len(), 7_000);
            assert_eq!(first.intersection(&second).count() as u64, shared);
        }
    }

    #[test]
    fn mix64_is_splitmix64() {
        // The first outputs for seed 1234567, as published with the reference code.
        let mut draws = SplitMix64(1_234_567);
        assert_eq!(
            [draws.next(), draws.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn wrong_specs_are_refused() {
        let good = spec(10, 3);
        let overlap = |shared, other_seed| Some(Overlap { shared, other_seed });
        for (wrong, part) in [
            (
                Spec {
                    lines: 0,
                    repeats: 0,
                    ..good
                },
                "lines must be from 1",
            ),
            (
                Spec {
                    lines: MAX_LINES + 1,
                    ..good
                },
                "lines must be from 1",
            ),
            (
                Spec {
                    repeats: 10,
                    ..good
                },
                "repeats must be fewer",
            ),
            (
                Spec {
                    overlap: overlap(8, 2),
                    ..good
                },
                "at most the 7",
            ),
            (
                Spec {
                    overlap: overlap(7, 1),
                    ..good
                },
                "must differ",
            ),
        ] {
            let message = wrong.keys().err().unwrap();
            assert!(message.contains(part), "{message}");
        }
        assert!(
            Spec {
                overlap: overlap(7, 2),
                ..good
            }
            .keys()
            .is_ok()
        );
    }
}
