//! A filter of a few bytes that travels in a packet.
//!
//! Owns [`PacketFilter`]. Its bits are those of a [`crate::ClassicBloomFilter`]
//! with as many bits and positions; its error is [`sizing::classic_error`].

use crate::classic::ClassicGeometry;
use crate::error::{Error, Result};
use crate::hash::Digest;
use crate::sizing::{self, ClassicGiven, Collisions};

/// A classic Bloom filter of `BYTES` bytes (1 to 512), on the stack and `Copy`:
/// in a packet, in a record, in a message between nodes.
///
/// The bytes hold the bits and nothing else. Whoever reads them must know the
/// number of positions a key, and make digests by the same
/// [`crate::KeyHasher`]: neither can be found out from the bytes.
///
/// It keeps no (n, p) promise, as its size is given; [`Self::error`] is its exact
/// error at any number of keys.
///
/// ```
/// use petal::{KeyHasher, PacketFilter};
/// let hasher = KeyHasher::default();
/// let node = |name: &str| hasher.digest_bytes(name.as_bytes());
///
/// // Eight bytes for paths of up to six nodes.
/// let mut filter = PacketFilter::<8>::for_path(6)?;
/// for hop in ["a", "b", "c"] {
///     assert!(!filter.stamp(node(hop))); // not here before: send it on
/// }
/// let header: [u8; 8] = filter.to_bytes();
///
/// let mut arrived = PacketFilter::<8>::from_bytes(header, filter.positions())?;
/// assert!(arrived.stamp(node("b"))); // it was here: a loop
/// # Ok::<(), petal::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketFilter<const BYTES: usize> {
    bytes: [u8; BYTES],
    positions: u8,
}

impl<const BYTES: usize> PacketFilter<BYTES> {
    /// Bits, m.
    pub const BITS: u64 = {
        assert!(
            BYTES >= 1 && BYTES <= 512,
            "a packet filter has 1 to 512 bytes"
        );
        BYTES as u64 * 8
    };

    /// An empty filter with `positions` (k) bits a key.
    ///
    /// # Errors
    /// If `positions` is not 1 to 64.
    pub fn new(positions: u32) -> Result<Self> {
        Self::from_bytes([0; BYTES], positions)
    }

    /// An empty filter with the number of positions that has the least error
    /// at `items` keys.
    ///
    /// # Errors
    /// If `items` is 0 or above 10^12.
    pub fn for_items(items: u64) -> Result<Self> {
        let given = ClassicGiven {
            items: Some(items),
            bits: Some(Self::BITS),
            ..ClassicGiven::default()
        };
        let plan = sizing::plan_classic(given, Collisions::Digest64)?;
        Self::new(plan.hashes.min(ClassicGeometry::MAX_POSITIONS))
    }

    /// An empty filter with the number of positions that loses the fewest
    /// packets by mistake on a path of `hops` different nodes: see
    /// [`Self::stamp`].
    ///
    /// # Errors
    /// If `hops` is 0.
    pub fn for_path(hops: u64) -> Result<Self> {
        if hops == 0 {
            return Err(Error::parameter("hops", hops, "use 1 or more"));
        }
        let hashes = sizing::hashes_for_path(hops, Self::BITS)?;
        Self::new(hashes.min(ClassicGeometry::MAX_POSITIONS))
    }

    /// A filter as it arrived.
    ///
    /// # Errors
    /// If `positions` is not 1 to 64. Any bytes are a filter.
    pub fn from_bytes(bytes: [u8; BYTES], positions: u32) -> Result<Self> {
        ClassicGeometry::new(Self::BITS, positions)?;
        Ok(Self {
            bytes,
            positions: u8::try_from(positions).unwrap_or(u8::MAX), // at most 64
        })
    }

    /// The bytes to send: bit `i` of the filter is bit `i % 8` of byte `i / 8`.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; BYTES] {
        self.bytes
    }

    /// Positions a key, k.
    #[must_use]
    pub const fn positions(self) -> u32 {
        self.positions as u32
    }

    /// Whether the key may have been inserted: always true for keys that were.
    #[must_use]
    pub fn contains(&self, digest: Digest) -> bool {
        self.bits_of(digest)
            .all(|(byte, bit)| self.bytes[byte] & bit != 0)
    }

    /// Inserts a key. True if that changed a bit, so the key was certainly new.
    pub fn insert(&mut self, digest: Digest) -> bool {
        let mut missing = 0;
        for (byte, bit) in self.bits_of(digest) {
            missing |= !self.bytes[byte] & bit;
            self.bytes[byte] |= bit;
        }
        missing != 0
    }

    /// "Have I seen this packet before? Mark it as seen by me." True if the
    /// packet was here already, or seems so by mistake: drop it, it is in a
    /// loop. False if it certainly was not; it bears this node's mark now.
    ///
    /// A packet in a loop is dropped when it comes to a node for the second time,
    /// always. One that is not in a loop is lost with the probability
    /// [`Self::lost_on_path`].
    pub fn stamp(&mut self, node: Digest) -> bool {
        !self.insert(node)
    }

    /// Makes this the filter of the keys of either.
    ///
    /// # Errors
    /// If the number of positions differs. That the digests are made by the
    /// same hasher is the caller's word.
    pub fn union_with(&mut self, other: Self) -> Result<()> {
        if self.positions != other.positions {
            return Err(Error::mismatch(
                "positions",
                self.positions,
                other.positions,
            ));
        }
        for (byte, theirs) in self.bytes.iter_mut().zip(other.bytes) {
            *byte |= theirs;
        }
        Ok(())
    }

    /// The share of bits that are set, 0 to 1.
    #[must_use]
    pub fn fill(&self) -> f64 {
        let set: u32 = self.bytes.iter().map(|byte| byte.count_ones()).sum();
        f64::from(set) / Self::BITS as f64
    }

    /// The expected error at `items` keys: the chance that another key is
    /// "seen". Exact for every size (Bose et al., 2008), shared digests
    /// included.
    #[must_use]
    pub fn error(self, items: u64) -> f64 {
        // Not reached: the bits and positions of a filter are in range.
        let error =
            sizing::classic_error(items, Self::BITS, self.positions(), Collisions::Digest64);
        error.unwrap_or(1.0)
    }

    /// The error as the filter stands now: the chance that an absent key is
    /// "seen".
    #[must_use]
    pub fn error_now(&self) -> f64 {
        self.fill().powi(self.positions.into())
    }

    /// The probability that a packet is lost by mistake on a path of `hops`
    /// different nodes that [`Self::stamp`] it: exact, see
    /// [`sizing::lost_on_path`].
    #[must_use]
    pub fn lost_on_path(self, hops: u64) -> f64 {
        // Not reached, as above.
        sizing::lost_on_path(hops, Self::BITS, self.positions()).unwrap_or(1.0)
    }

    /// The byte and the bit of each position of a digest.
    fn bits_of(&self, digest: Digest) -> impl Iterator<Item = (usize, u8)> + use<BYTES> {
        ClassicGeometry::new(Self::BITS, self.positions())
            .into_iter()
            .flat_map(move |geometry| geometry.positions_of(digest.bits()))
            .map(|(word, bit)| {
                let bit = bit.trailing_zeros() as usize;
                (word * 8 + bit / 8, 1 << (bit % 8))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::Classic;
    use crate::hash::{KeyHasher, KeyType, mix_int};
    use crate::identity::Identity;
    use crate::sizing::Promise;
    use crate::traits::BitsMut;

    /// Digests of the keys `range` of a seed, all different.
    fn digests(seed: u64, range: std::ops::Range<i64>) -> impl Iterator<Item = Digest> {
        let hasher = KeyHasher::Portable { seed };
        range.map(move |key| hasher.digest_int(key))
    }

    /// The check values of Bose's formula, which are above the usual ones.
    #[test]
    fn errors_are_the_exact_ones() {
        fn check<const BYTES: usize>(items: u64, positions: u32, exact: f64) {
            let error = PacketFilter::<BYTES>::new(positions).unwrap().error(items);
            assert!(
                (error / exact - 1.0).abs() < 2.5e-7,
                "{BYTES}: {error} {exact}"
            );
        }
        check::<4>(4, 5, 2.522185e-02);
        check::<8>(8, 5, 2.341609e-02);
        check::<8>(10, 4, 4.914187e-02);
        check::<16>(16, 5, 2.253907e-02);
        check::<32>(32, 5, 2.210700e-02);
        check::<128>(100, 7, 7.366258e-03);
        check::<512>(512, 5, 2.170583e-02);
    }

    #[test]
    fn measured_errors_and_losses_are_the_stated_ones() {
        let (keys, positions, trials) = (8i64, 5, 200_000u64);
        let empty = PacketFilter::<8>::new(positions).unwrap();
        let (mut hits, mut lost) = (0u32, 0u32);
        for seed in 0..trials {
            let mut filter = empty;
            let mut dropped = false;
            for digest in digests(seed, 0..keys) {
                dropped |= filter.stamp(digest);
                assert!(filter.contains(digest));
            }
            lost += u32::from(dropped);
            hits += digests(seed, keys..keys + 1)
                .map(|other| u32::from(filter.contains(other)))
                .sum::<u32>();
        }
        for (got, stated) in [(hits, empty.error(8)), (lost, empty.lost_on_path(8))] {
            let expected = stated * trials as f64;
            let sigma = (expected * (1.0 - stated)).sqrt();
            assert!(
                (f64::from(got) - expected).abs() <= 5.0 * sigma,
                "{got} {expected}"
            );
        }
    }

    /// Bit for bit a classic filter.
    #[test]
    fn the_bytes_are_those_of_a_classic_filter() {
        let promise = Promise {
            items: 1,
            error: 0.5,
        };
        for positions in [1, 6, 64] {
            let mut packet = PacketFilter::<12>::new(positions).unwrap();
            let geometry = ClassicGeometry::new(96, positions).unwrap();
            let identity = Identity::new(KeyType::Int);
            let mut classic = Classic::with_geometry(identity, geometry, promise).unwrap();
            for key in 0..4 {
                let bits = mix_int(key, 0);
                let new = packet.insert(KeyHasher::default().digest_int(key));
                assert_eq!(new, classic.insert_bits(bits).unwrap());
            }
            assert_eq!(packet.to_bytes(), classic.words().bytes()[..12]);
            assert_eq!(packet.fill(), classic.fill());
            assert!((packet.error_now() / classic.error_now() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn filters_travel_as_their_bytes() {
        let mut sent = PacketFilter::<8>::for_path(6).unwrap();
        for digest in digests(1, 0..6) {
            sent.stamp(digest);
        }
        let arrived = PacketFilter::<8>::from_bytes(sent.to_bytes(), sent.positions()).unwrap();
        assert_eq!(arrived, sent);
        assert!(digests(1, 0..6).all(|digest| arrived.contains(digest)));
        let mut both = PacketFilter::<8>::new(sent.positions()).unwrap();
        digests(2, 0..3).for_each(|digest| {
            both.insert(digest);
        });
        both.union_with(arrived).unwrap();
        assert!(
            digests(1, 0..6)
                .chain(digests(2, 0..3))
                .all(|digest| both.contains(digest))
        );
        let other = PacketFilter::<8>::new(sent.positions() + 1).unwrap();
        assert!(both.union_with(other).is_err());
        // Any bytes are a filter; a full one says "seen" to everything.
        let full = PacketFilter::<1>::from_bytes([0xff], 3).unwrap();
        assert!(digests(3, 0..20).all(|digest| full.contains(digest)));
        assert_eq!((full.error_now(), full.error(u64::MAX)), (1.0, 1.0));
    }

    #[test]
    fn positions_are_the_best_for_their_purpose() {
        let filter = PacketFilter::<16>::for_items(10).unwrap();
        for positions in 1..=64 {
            let other = PacketFilter::<16>::new(positions).unwrap();
            assert!(filter.error(10) <= other.error(10));
        }
        let filter = PacketFilter::<16>::for_path(10).unwrap();
        for positions in 1..=64 {
            let other = PacketFilter::<16>::new(positions).unwrap();
            assert!(filter.lost_on_path(10) <= other.lost_on_path(10));
        }
        // So few keys that more positions than a key may have were better.
        assert_eq!(PacketFilter::<512>::for_items(1).unwrap().positions(), 64);
        assert!(PacketFilter::<512>::for_path(1).unwrap().positions() <= 64);
        assert!(PacketFilter::<8>::new(0).is_err());
        assert!(PacketFilter::<8>::new(65).is_err());
        assert!(PacketFilter::<8>::for_items(0).is_err());
        assert!(PacketFilter::<8>::for_path(0).is_err());
        PacketFilter::<512>::for_path(u64::MAX).unwrap();
    }
}
