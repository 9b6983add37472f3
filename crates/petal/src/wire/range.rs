//! A range coder with static frequencies.
//!
//! Owns the arithmetic from symbols, each a part of 2^32, to bytes and back.
//! What the symbols are is [`super::model`]'s.
//!
//! After Martin, "Range encoding: an algorithm for removing redundancy from a
//! digitised message" (1979): a byte leaves as soon as it is settled, and a
//! carry goes back into those that have left. With 64 bits, of which at least
//! 56 are kept, rounding costs less than 2^-23 of a symbol's length.

/// Symbols share this much: the shares of all of them add up to 2^32 at most.
pub(super) const TOTAL_BITS: u32 = 32;

/// The range never falls below this for long.
const LEAST: u64 = 1 << 56;

/// Symbols to bytes.
#[derive(Debug)]
pub(super) struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    /// Where this message begins in `out`.
    start: usize,
    low: u64,
    range: u64,
}

impl<'a> Encoder<'a> {
    /// Appends to bytes that are there.
    pub(super) const fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            start: out.len(),
            out,
            low: 0,
            range: u64::MAX,
        }
    }

    /// A symbol with the share from `start` on, of `size` (at least 1) parts.
    #[inline]
    pub(super) fn put(&mut self, start: u64, size: u64) {
        let unit = self.range >> TOTAL_BITS;
        let (low, carry) = self.low.overflowing_add(unit * start);
        self.low = low;
        if carry {
            self.carry();
        }
        self.range = unit * size;
        while self.range < LEAST {
            self.out.push(self.low.to_be_bytes()[0]);
            self.low <<= 8;
            self.range <<= 8;
        }
    }

    /// One more on the bytes that have left. There is one that is not 255, as
    /// the whole message is a number below 1.
    #[cold]
    fn carry(&mut self) {
        for byte in self.out[self.start..].iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
    }

    /// The end: the fewest bytes that name a number in the range, if zeros
    /// follow.
    pub(super) fn finish(mut self) {
        // A multiple of 2^56 is in any range of that size.
        let (up, carry) = self.low.overflowing_add(LEAST - 1);
        if carry {
            self.carry();
        }
        self.out.push(up.to_be_bytes()[0]);
        while self.out.len() > self.start && self.out.last() == Some(&0) {
            self.out.pop();
        }
    }
}

/// Bytes to symbols.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    /// Bytes that were used, those behind the end included.
    used: usize,
    code: u64,
    range: u64,
}

impl<'a> Decoder<'a> {
    /// A message that ends with these bytes; zeros follow.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self {
            bytes,
            used: 0,
            code: 0,
            range: u64::MAX,
        };
        for _ in 0..8 {
            decoder.shift();
        }
        decoder
    }

    #[inline]
    fn shift(&mut self) {
        let byte = self.bytes.get(self.used).copied().unwrap_or(0);
        self.used += 1;
        self.code = self.code << 8 | u64::from(byte);
    }

    /// Where in the shares the next symbol is: `None` where no encoder ends.
    #[inline]
    pub(super) const fn peek(&self) -> Option<u64> {
        let value = self.code / (self.range >> TOTAL_BITS);
        if value >> TOTAL_BITS == 0 {
            Some(value)
        } else {
            None
        }
    }

    /// Goes past the symbol with this share, which must hold what
    /// [`Self::peek`] said.
    #[inline]
    pub(super) fn take(&mut self, start: u64, size: u64) {
        let unit = self.range >> TOTAL_BITS;
        self.code -= unit * start;
        self.range = unit * size;
        while self.range < LEAST {
            self.shift();
            self.range <<= 8;
        }
    }

    /// Whether all bytes were used, so that none is idle.
    pub(super) const fn is_done(&self) -> bool {
        self.used >= self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::cases;

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn symbols_come_back_in_any_shares(
            sizes in prop::collection::vec(1u64..1 << 28, 1..16),
            symbols in prop::collection::vec(0usize..16, 0..2000),
        ) {
            let starts: Vec<u64> = sizes
                .iter()
                .scan(0, |sum, size| {
                    *sum += size;
                    Some(*sum - size)
                })
                .collect();
            let symbols: Vec<usize> = symbols.iter().map(|s| s % sizes.len()).collect();
            let mut bytes = vec![0xff, 0xff];
            let mut encoder = Encoder::new(&mut bytes);
            for &symbol in &symbols {
                encoder.put(starts[symbol], sizes[symbol]);
            }
            encoder.finish();
            prop_assert_eq!(&bytes[..2], &[0xff, 0xff]);
            let mut decoder = Decoder::new(&bytes[2..]);
            for &symbol in &symbols {
                let at = decoder.peek().unwrap();
                prop_assert!((starts[symbol]..starts[symbol] + sizes[symbol]).contains(&at));
                decoder.take(starts[symbol], sizes[symbol]);
            }
            prop_assert!(decoder.is_done());
            // As long as the information in it, and two bytes.
            let bits: f64 = symbols.iter().map(|&s| 32.0 - (sizes[s] as f64).log2()).sum();
            prop_assert!((bytes.len() - 2) as f64 * 8.0 <= bits * 1.0001 + 16.0);
        }

        #[test]
        fn any_bytes_end_in_symbols_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut decoder = Decoder::new(&bytes);
            for _ in 0..100 {
                let Some(at) = decoder.peek() else { break };
                let start = at & !0xffff;
                decoder.take(start, 0x10000);
            }
        }
    }

    /// The last share, the least one, over and over: carries run far.
    #[test]
    fn carries_run_through_all_bytes() {
        let (start, size) = ((1 << TOTAL_BITS) - 1, 1);
        for tail in 0..50u64 {
            let mut bytes = Vec::new();
            let mut encoder = Encoder::new(&mut bytes);
            for _ in 0..100 {
                encoder.put(start, size);
            }
            for i in 0..tail {
                encoder.put(i, 3);
            }
            encoder.finish();
            let mut decoder = Decoder::new(&bytes);
            for _ in 0..100 {
                assert_eq!(decoder.peek(), Some(start));
                decoder.take(start, size);
            }
            for i in 0..tail {
                assert!((i..i + 3).contains(&decoder.peek().unwrap()));
                decoder.take(i, 3);
            }
        }
    }
}
