//! The shape of a counting filter: which counter stands for which bit.
//!
//! Owns [`CountingGeometry`] and where in the words a counter is. There is one
//! counter for every bit of a [`SplitGeometry`], in the order of these bits, so
//! that a digest has its counters where it has its bits in a [`crate::Bloom`].
//! Counting itself is in `kernel` and `cells`.
//!
//! ```text
//! a word of 64 bits of the Bloom filter      bit l
//! its C words of 64 counters of C bits       counter l: word l / (64 / C),
//!                                            from bit l % (64 / C) * C on
//! ```

use std::fmt;

use crate::error::{Error, Result};
use crate::geometry::SplitGeometry;
use crate::sizing::MAX_BITS;

/// How many bits a counter has. One that reaches its maximum stays there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterBits {
    /// Counts to 15: enough for sets, where a counter that is shared by so
    /// many keys is rarer than one in 10^13.
    #[default]
    Four,
    /// Counts to 255.
    Eight,
    /// Counts to 65535.
    Sixteen,
}

impl CounterBits {
    /// Bits of a counter: 4, 8 or 16.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }

    /// The most it counts to: there it is saturated, and stays.
    #[must_use]
    pub const fn max(self) -> u64 {
        (1 << self.count()) - 1
    }
}

/// Which of a key's counters an insertion increases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Increase {
    /// All of them: what was inserted can be removed.
    #[default]
    All,
    /// Only those that are least, which is all that the count of a key needs
    /// (Cohen and Matias, "Spectral Bloom filters", 2003). Counts exceed the
    /// truth more rarely and by less, but nothing can be removed or
    /// subtracted: nobody knows which counters a key has increased.
    Minimal,
}

/// Everything that decides where the counters of a digest are, and how they
/// are counted up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountingGeometry {
    split: SplitGeometry,
    counter: CounterBits,
    increase: Increase,
}

impl CountingGeometry {
    /// One counter for every bit of `split`.
    ///
    /// # Errors
    /// If the counters would have more than 2^63 bits.
    pub fn new(split: SplitGeometry, counter: CounterBits, increase: Increase) -> Result<Self> {
        let bits = u128::from(split.bits()) * u128::from(counter.count());
        if bits > u128::from(MAX_BITS) {
            return Err(Error::parameter(
                "counters",
                split.bits(),
                format!(
                    "a filter has at most 2^63 bits, {} a counter: use fewer",
                    counter.count()
                ),
            ));
        }
        Ok(Self {
            split,
            counter,
            increase,
        })
    }

    /// The shape of the Bloom filter whose bits are counted.
    #[must_use]
    pub const fn split(self) -> SplitGeometry {
        self.split
    }

    /// Bits of a counter.
    #[must_use]
    pub const fn counter(self) -> CounterBits {
        self.counter
    }

    /// Which counters an insertion increases.
    #[must_use]
    pub const fn increase(self) -> Increase {
        self.increase
    }

    /// Counters: one for each bit of [`Self::split`].
    #[must_use]
    pub const fn counters(self) -> u64 {
        self.split.bits()
    }

    /// 64-bit words in all.
    #[must_use]
    pub const fn words(self) -> u64 {
        self.split.words() * self.counter.count() as u64
    }

    /// Bytes of the words.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.words() * 8
    }
}

impl fmt::Display for CountingGeometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bits a counter", self.split, self.counter.count())?;
        match self.increase {
            Increase::All => Ok(()),
            Increase::Minimal => f.write_str(", minimal increase"),
        }
    }
}

/// The most that a counter of `C` bits counts to.
pub(super) const fn max<const C: usize>() -> u64 {
    (1 << C) - 1
}

/// Where counter `lane` (0 to 63) is in its `C` words: which word, and from
/// which bit on.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a lane is below 64")]
pub(super) const fn place<const C: usize>(lane: u64) -> (usize, u32) {
    let each = 64 / C as u64;
    ((lane / each) as usize, (lane % each) as u32 * C as u32)
}
