//! Keys under the secret.
//!
//! Owns what stands for a key wherever others can see it: 16 bytes of
//! SipHash-1-3. Strangers who choose keys can make no two of them equal.

use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use petal::Sip128;

/// SipHash-1-3-128 of a key under the guard's secret, little-endian.
pub(crate) type Item = [u8; 16];

pub(crate) fn item(sip: &Sip128, key: &[u8]) -> Item {
    let [low, high] = sip.hash(key);
    let mut item = [0; 16];
    item[..8].copy_from_slice(&low.to_le_bytes());
    item[8..].copy_from_slice(&high.to_le_bytes());
    item
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Numbers that no other instance draws, but for 2^-64 a pair.
#[derive(Debug)]
pub(crate) struct Tokens {
    random: RandomState,
    drawn: AtomicU64,
}

impl Tokens {
    pub(crate) fn new() -> Self {
        Self {
            random: RandomState::new(),
            drawn: AtomicU64::new(0),
        }
    }

    pub(crate) fn draw(&self) -> u64 {
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.drawn.fetch_add(1, Relaxed));
        hasher.finish()
    }

    /// 0 to 1, evenly.
    pub(crate) fn share(&self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
