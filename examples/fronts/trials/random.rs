//! Numbers that are random enough, and the same for the same seed (SplitMix64).

#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below a limit, which is not 0.
    pub(crate) const fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) const fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}
