//! Runs of bits, of which it is known how many are set, as few bytes.
//!
//! Owns the frequencies that the range coder works with, and what a coded run
//! looks like: `FORMAT.md` specifies both. Where the bits come from is not
//! known here.
//!
//! All bits are taken as independent and set with one probability `q`: a byte
//! with k bits set has `q^k (1 - q)^(8 - k)`, whichever they are. So a run of N
//! bits with K set takes about N H(K / N) bits, which is log2 C(N, K) and half
//! the logarithm of N: no code does better for a set whose bits are random.
//! Where words are mostly empty a symbol says how many empty bytes each begins
//! with, so that an empty one takes a single step. All numbers are integers:
//! the bytes are the same on every machine.

use super::range::{Decoder, Encoder, TOTAL_BITS};
use crate::error::FormatError;
use crate::format::{Cursor, field};
use crate::words::ones;

/// All shares together.
const TOTAL: u64 = 1 << TOTAL_BITS;

/// How many bytes have so many bits set.
const BYTES_WITH: [u64; 9] = [1, 8, 28, 56, 70, 56, 28, 8, 1];

/// The place of each byte among those with as many bits set, and the other
/// way around.
static PLACES: Places = Places::new();

struct Places {
    of: [u8; 256],
    bytes: [[u8; 70]; 9],
}

impl Places {
    const fn new() -> Self {
        let mut places = Self {
            of: [0; 256],
            bytes: [[0; 70]; 9],
        };
        let mut used = [0u8; 9];
        let mut byte = 0u8;
        loop {
            let set = byte.count_ones() as usize;
            places.of[byte as usize] = used[set];
            places.bytes[set][used[set] as usize] = byte;
            used[set] += 1;
            if byte == u8::MAX {
                return places;
            }
            byte += 1;
        }
    }
}

/// Shares of bytes by how many of their bits are set.
#[derive(Debug, Clone, Copy)]
struct Bytes {
    /// Where the shares of the bytes with so many bits begin.
    start: [u64; 9],
    /// The share of each of them.
    size: [u64; 9],
}

impl Bytes {
    fn new(size: [u64; 9]) -> Self {
        let mut start = [0; 9];
        for set in 1..9 {
            start[set] = start[set - 1] + size[set - 1] * BYTES_WITH[set - 1];
        }
        Self { start, size }
    }

    #[inline]
    fn put(&self, byte: u8, encoder: &mut Encoder<'_>) {
        let set = byte.count_ones() as usize;
        let place = u64::from(PLACES.of[usize::from(byte)]);
        encoder.put(self.start[set] + place * self.size[set], self.size[set]);
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a place is at most 70")]
    fn take(&self, decoder: &mut Decoder<'_>) -> Option<u8> {
        let at = decoder.peek()?;
        let set: usize = self.start[1..].iter().map(|&s| usize::from(at >= s)).sum();
        if set == 0 {
            decoder.take(0, self.size[0]);
            return Some(0);
        }
        let place = (at - self.start[set]) / self.size[set];
        if place >= BYTES_WITH[set] {
            return None; // behind all shares
        }
        decoder.take(self.start[set] + place * self.size[set], self.size[set]);
        Some(PLACES.bytes[set][place as usize])
    }
}

/// All shares of a run.
#[derive(Debug)]
struct Model {
    /// Of any byte.
    plain: Bytes,
    /// Of a byte that is not 0.
    some: Bytes,
    /// The share of i empty bytes, for words that are mostly empty; else none.
    empty: Option<[u64; 9]>,
}

impl Model {
    /// For `set` of `bits` bits: at least 1, at most half of them.
    fn new(set: u64, bits: u64) -> Self {
        let one = (set << TOTAL_BITS) / bits;
        let zero = TOTAL - one;
        let mut size = [0; 9];
        for (count, size) in size.iter_mut().enumerate().skip(1) {
            let share = (0..8).fold(TOTAL, |share, bit| {
                (share * if bit < count { one } else { zero }) >> TOTAL_BITS
            });
            *size = share.max(1);
        }
        let others: u64 = (1..9).map(|set| size[set] * BYTES_WITH[set]).sum();
        // What rounding has left is in the share of the empty byte.
        size[0] = TOTAL - others;
        let mut some = [0; 9];
        for set in 1..9 {
            // A little less than all, as no share may be rounded to nothing.
            let share = u128::from(size[set]) * u128::from(TOTAL - 512) / u128::from(others);
            some[set] = u64::try_from(share).unwrap_or(u64::MAX).max(1);
        }
        let mut empty = [TOTAL; 9];
        for i in 1..9 {
            empty[i] = (empty[i - 1] * size[0]) >> TOTAL_BITS;
        }
        Self {
            plain: Bytes::new(size),
            some: Bytes::new(some),
            empty: (set * 64 < bits).then_some(empty),
        }
    }

    fn encode(&self, words: &[u64], flip: u64, encoder: &mut Encoder<'_>) {
        for word in words.iter().map(|word| word ^ flip) {
            let bytes = word.to_le_bytes();
            let Some(empty) = &self.empty else {
                for byte in bytes {
                    self.plain.put(byte, encoder);
                }
                continue;
            };
            if word == 0 {
                encoder.put(0, empty[8]);
                continue;
            }
            let first = word.trailing_zeros() as usize / 8;
            encoder.put(empty[first + 1], empty[first] - empty[first + 1]);
            self.some.put(bytes[first], encoder);
            for &byte in &bytes[first + 1..] {
                self.plain.put(byte, encoder);
            }
        }
    }

    fn decode(&self, words: &mut [u64], flip: u64, decoder: &mut Decoder<'_>) -> Option<()> {
        for word in words {
            let mut bytes = [0; 8];
            let mut rest = 0;
            if let Some(empty) = &self.empty {
                let at = decoder.peek()?;
                if at < empty[8] {
                    decoder.take(0, empty[8]);
                    *word = flip;
                    continue;
                }
                let first: usize = empty[1..8].iter().map(|&e| usize::from(at < e)).sum();
                decoder.take(empty[first + 1], empty[first] - empty[first + 1]);
                bytes[first] = self.some.take(decoder)?;
                rest = first + 1;
            }
            for byte in &mut bytes[rest..] {
                *byte = self.plain.take(decoder)?;
            }
            *word = u64::from_le_bytes(bytes) ^ flip;
        }
        Some(())
    }
}

/// What is coded for a run: fewer bits than half of them.
struct Minority {
    set: u64,
    bits: u64,
    /// What words are combined with, if more than half of the bits are set.
    flip: u64,
}

impl Minority {
    /// `None` if all bits are equal.
    fn of(set: u64, bits: u64) -> Option<Self> {
        let flip = set * 2 > bits;
        let set = if flip { bits - set } else { set };
        (set > 0).then_some(Self {
            set,
            bits,
            flip: if flip { u64::MAX } else { 0 },
        })
    }
}

/// Appends a run of words, at most a MiB of them, coded: how many bits are set,
/// how many bytes follow, and these.
pub(super) fn encode(words: &[u64], out: &mut Vec<u8>) {
    let (set, bits) = (ones(words), words.len() as u64 * 64);
    push_u32(out, set);
    let length_at = out.len();
    push_u32(out, 0);
    let start = out.len();
    if let Some(run) = Minority::of(set, bits) {
        let mut encoder = Encoder::new(out);
        Model::new(run.set, run.bits).encode(words, run.flip, &mut encoder);
        encoder.finish();
        if out.len() - start >= words.len() * 8 {
            out.truncate(start);
            out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
    }
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out[length_at..start].copy_from_slice(&length.to_le_bytes());
}

/// A number that a MiB bounds.
fn push_u32(out: &mut Vec<u8>, number: u64) {
    out.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
}

/// Reads a run into words, all of which are given a value.
pub(super) fn decode(input: &mut Cursor<'_>, words: &mut [u64]) -> Result<(), FormatError> {
    let bits = words.len() as u64 * 64;
    let set = u64::from(input.u32()?);
    let length = usize::try_from(input.u32()?).unwrap_or(usize::MAX);
    let wrong = |got: &str| field("coded run", got, "what an encoder writes");
    if set > bits || length > words.len() * 8 {
        return Err(wrong("longer than what it is of"));
    }
    let bytes = input.bytes(length)?;
    let Some(run) = Minority::of(set, bits) else {
        words.fill(if set == 0 { 0 } else { u64::MAX });
        return match length {
            0 => Ok(()),
            _ => Err(wrong("bytes where all bits are equal")),
        };
    };
    if length == words.len() * 8 {
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        }
    } else {
        let mut decoder = Decoder::new(bytes);
        let model = Model::new(run.set, run.bits);
        let decoded = model.decode(words, run.flip, &mut decoder);
        if decoded.is_none() || !decoder.is_done() {
            return Err(wrong("no symbols"));
        }
    }
    if ones(words) != set {
        return Err(wrong("another number of set bits"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::cases;

    /// Words with about such a share of their bits set, the same in every run.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of 2^53"
    )]
    fn words(count: usize, fill: f64, seed: u64) -> Vec<u64> {
        let mut state = seed;
        let limit = (fill * 2f64.powi(53)) as u64;
        let mut bit = |i| {
            state = state.wrapping_add(1);
            u64::from(crate::mix_int(state.cast_signed(), seed) >> 11 < limit) << i
        };
        (0..count).map(|_| (0..64).map(&mut bit).sum()).collect()
    }

    fn entropy(set: u64, bits: u64) -> f64 {
        let q = set as f64 / bits as f64;
        let h = |q: f64| if q > 0.0 { -q * q.log2() } else { 0.0 };
        bits as f64 * (h(q) + h(1.0 - q))
    }

    fn round_trip(words: &[u64]) -> usize {
        let mut bytes = vec![7];
        encode(words, &mut bytes);
        let mut cursor = Cursor::new("test", &bytes[1..]);
        let mut back = vec![0x55; words.len()];
        decode(&mut cursor, &mut back).unwrap();
        assert_eq!(cursor.left(), 0);
        assert!(back == words);
        bytes.len() - 1
    }

    #[test]
    fn every_fill_is_coded_to_its_entropy() {
        for fill in [
            0.0, 1e-5, 1e-4, 1e-3, 0.01, 0.015, 0.016, 0.05, 0.1, 0.3, 0.45, 0.5, 0.6, 0.9, 0.999,
            1.0,
        ] {
            let words = words(32_768, fill, 1);
            let bytes = round_trip(&words);
            let least = entropy(ones(&words), 64 * 32_768) / 8.0;
            assert!(
                bytes as f64 <= least * 1.001 + 10.0,
                "{fill}: {bytes} of {least}"
            );
        }
    }

    #[test]
    fn a_single_bit_of_a_mebibyte_comes_back() {
        for at in [0, 1, 4_000_000, 8_388_607] {
            let mut words = vec![0u64; 131_072];
            words[at / 64] = 1 << (at % 64);
            assert!(round_trip(&words) <= 8 + 5);
            for word in &mut words {
                *word = !*word;
            }
            assert!(round_trip(&words) <= 8 + 5);
        }
    }

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn any_words_come_back(words in prop::collection::vec(any::<u64>(), 0..100), and: u64) {
            round_trip(&words);
            let sparse: Vec<u64> = words.iter().map(|w| w & w << 7 & w >> 5 & and).collect();
            round_trip(&sparse);
        }

        /// With damage in it: an error, or other words with as many bits.
        #[test]
        fn damaged_runs_are_errors_or_other_words(
            fill in 0.0f64..1.0,
            at: prop::sample::Index,
            xor in 1u8..,
            seed: u64,
        ) {
            let words = words(64, fill * fill, seed);
            let mut bytes = Vec::new();
            encode(&words, &mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= xor;
            let mut back = vec![0; words.len()];
            let mut cursor = Cursor::new("test", &bytes);
            if decode(&mut cursor, &mut back).is_ok() && cursor.left() == 0 {
                prop_assert!(back != words || at >= 8);
            }
            let _ = decode(&mut Cursor::new("test", &bytes[..at]), &mut back);
        }
    }
}
