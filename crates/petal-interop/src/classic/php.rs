//! PHP's `mt_srand` and `mt_rand`, of both generations.
//!
//! MT19937 (Matsumoto and Nishimura 1998). Before PHP 7.1 the twist looked at
//! the low bit of the wrong word, and a range was scaled by floating point; from
//! 7.1 on the twist is right and draws outside of a multiple of the range are
//! thrown away. `MT_RAND_PHP` of later versions is the old one.

/// Which generator a program ran with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PhpMode {
    /// PHP 7.1 and later.
    #[default]
    Current,
    /// PHP before 7.1, or `MT_RAND_PHP`.
    Old,
}

const N: usize = 624;
const M: usize = 397;

/// The generator after `mt_srand`.
pub(super) struct Twister {
    state: [u32; N],
    next: usize,
    mode: PhpMode,
}

impl Twister {
    pub(super) fn new(seed: u32, mode: PhpMode) -> Self {
        let mut state = [0; N];
        state[0] = seed;
        for i in 1..N {
            let before: u32 = state[i - 1];
            state[i] = 1_812_433_253u32
                .wrapping_mul(before ^ (before >> 30))
                // Up to 623.
                .wrapping_add(crate::hash::low32(i as u64));
        }
        Self {
            state,
            next: N,
            mode,
        }
    }

    fn refill(&mut self) {
        for i in 0..N {
            let (this, other) = (self.state[i], self.state[(i + 1) % N]);
            let low = match self.mode {
                PhpMode::Current => other,
                PhpMode::Old => this,
            } & 1;
            let mixed = (this & 0x8000_0000) | (other & 0x7fff_ffff);
            let twist = if low == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (mixed >> 1) ^ twist;
        }
        self.next = 0;
    }

    /// 32 bits.
    fn draw(&mut self) -> u32 {
        if self.next == N {
            self.refill();
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// `mt_rand(0, m - 1)` for m from 1 to 2^32.
    pub(super) fn below(&mut self, m: u64) -> u64 {
        if self.mode == PhpMode::Old {
            let share = f64::from(self.draw() >> 1) / 2_147_483_648.0;
            return crate::sizing::truncate(m as f64 * share);
        }
        // All 32-bit numbers below the largest multiple of m that is no larger
        // than 2^32 - 1.
        let most = u64::from(u32::MAX);
        let limit = most - most % m;
        loop {
            let drawn = u64::from(self.draw());
            if m.is_power_of_two() || drawn < limit {
                return drawn % m;
            }
        }
    }
}
