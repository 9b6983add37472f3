//! IPv4 addresses that were seen: a compressed bitmap of all there are.
//!
//! Owns [`Addresses`]: exact, and at most 520 MiB whatever comes. A digest of an integer is a
//! mix that can be undone, so the bitmap takes digests as the other memories do.
//! How far it may grow is for [`super::Seen`] to say.

use anyhow::Result;
use petal::normalise::Form;
use petal::{Bloom, Digests, Identity, Insert, KeyHasher, mask_words, unmix_int};
use roaring::RoaringBitmap;

/// Bytes that a block of 2^16 addresses takes beside those in it, at most: its
/// entry in the list of blocks, which doubles, and an allocation.
const BYTES_A_BLOCK: u64 = 128;

/// Bytes of an address in a block, at most: two in a list that doubles.
const BYTES_AN_ADDRESS: u64 = 4;

/// Bytes of the addresses of a block, at most: a bit for each.
const MOST_OF_A_BLOCK: u64 = 8 << 10;

/// Blocks of 2^16 addresses.
const BLOCKS: u64 = 1 << 16;

/// Bytes of a bitmap with all addresses.
pub(super) const FULL: u64 = BLOCKS * (BYTES_A_BLOCK + MOST_OF_A_BLOCK);

/// Digests that are poured into a filter at a time.
const POURED: usize = 1024;

/// The bitmap, and which blocks of it there are.
#[derive(Debug)]
pub(super) struct Addresses {
    /// One for each first byte: a new block moves all later ones of its bitmap, and with
    /// 2^16 of them that took ten times as long as the rest.
    bitmaps: Vec<RoaringBitmap>,
    len: u64,
    /// A bit for each block, and how many are set.
    blocks: Vec<u64>,
    block_count: u64,
    identity: Identity,
    seed: u64,
}

impl Addresses {
    /// An empty one; `None` if keys of this identity are no addresses, or their digests
    /// cannot be undone.
    pub(super) fn new(identity: &Identity) -> Option<Self> {
        Some(Self {
            bitmaps: vec![RoaringBitmap::new(); 256],
            len: 0,
            blocks: vec![0; mask_words(1 << 16)],
            block_count: 0,
            identity: identity.clone(),
            seed: seed(identity)?,
        })
    }

    /// Bytes that it takes at most with so many addresses, none of which is known.
    pub(super) fn bytes_of(addresses: u64) -> u64 {
        bytes(addresses, addresses.min(BLOCKS))
    }

    /// What it holds addresses of.
    pub(super) const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Addresses in it.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// Bytes that it takes at most.
    pub(super) fn bytes(&self) -> u64 {
        bytes(self.len, self.block_count)
    }

    /// Further addresses that it surely takes within so many bytes.
    pub(super) fn room_within(&self, most: u64) -> u64 {
        if most >= FULL {
            return u64::MAX;
        }
        most.saturating_sub(self.bytes()) / (BYTES_A_BLOCK + BYTES_AN_ADDRESS)
    }

    /// Bit `i` of `mask`, which is cleared, becomes 1 where address `i` was absent.
    pub(super) fn insert(&mut self, digests: &Digests, mask: &mut [u64]) {
        for (i, &digest) in digests.bits().iter().enumerate() {
            let Some(address) = self.address(digest) else {
                continue;
            };
            if self.bitmaps[(address >> 24) as usize].insert(address) {
                mask[i / 64] |= 1 << (i % 64);
                self.len += 1;
                let block = (address >> 16) as usize;
                let bit = 1 << (block % 64);
                self.block_count += u64::from(self.blocks[block / 64] & bit == 0);
                self.blocks[block / 64] |= bit;
            }
        }
    }

    /// Bit `i` of `mask`, which is cleared, becomes 1 where address `i` is present.
    pub(super) fn contains(&self, digests: &Digests, mask: &mut [u64]) {
        for (i, &digest) in digests.bits().iter().enumerate() {
            let present = self.address(digest).is_none_or(|address| {
                let bitmap = &self.bitmaps[(address >> 24) as usize];
                bitmap.contains(address)
            });
            mask[i / 64] |= u64::from(present) << (i % 64);
        }
    }

    /// Always there: the keys of `--as ipv4` are the numbers of addresses.
    fn address(&self, digest: u64) -> Option<u32> {
        u32::try_from(unmix_int(digest, self.seed)).ok()
    }

    /// Inserts all addresses into a filter of the same keys.
    pub(super) fn pour_into(&self, filter: &mut Bloom) -> Result<()> {
        let mut digests = Digests::new(self.identity.hasher.clone(), self.identity.key_type);
        let mut mask = vec![0; mask_words(POURED)];
        let mut addresses = self.bitmaps.iter().flatten().peekable();
        while addresses.peek().is_some() {
            digests.clear();
            for address in addresses.by_ref().take(POURED) {
                digests.push_int(address.into())?;
            }
            filter.insert_digests(&digests, &mut mask)?;
        }
        Ok(())
    }
}

fn bytes(addresses: u64, blocks: u64) -> u64 {
    let in_blocks = addresses.saturating_mul(BYTES_AN_ADDRESS);
    in_blocks.min(blocks * MOST_OF_A_BLOCK) + blocks * BYTES_A_BLOCK
}

/// The seed of digests of addresses that can be undone.
pub(super) fn seed(identity: &Identity) -> Option<u64> {
    match (identity.normalisation.form(), &identity.hasher) {
        (Form::Ipv4, KeyHasher::Portable { seed }) => Some(*seed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petal::normalise::Normalisation;

    pub(crate) fn identity() -> Identity {
        let normalisation = Normalisation::lines().with_form(Form::Ipv4).unwrap();
        Identity::new(normalisation.key_type()).with_normalisation(normalisation)
    }

    #[test]
    fn the_bytes_are_bounded() {
        let mut addresses = Addresses::new(&identity()).unwrap();
        let (mut digests, mut mask) = (digests_of(&[]), vec![0; 16]);
        let mut last = addresses.bytes();
        assert_eq!(last, 0);
        // Far apart, then near each other, then one block in full.
        let far = (0..5000u32).map(|i| i.wrapping_mul(0x9e37_79b9));
        for address in far.chain(7_000_000..7_003_000).chain(0..=0xffff) {
            digests.clear();
            digests.push_int(address.into()).unwrap();
            let room = addresses.room_within(1 << 20);
            mask.fill(0);
            addresses.insert(&digests, &mut mask);
            assert!(addresses.bytes() >= last && addresses.bytes() <= last + 132);
            assert!(room == 0 || addresses.bytes() <= 1 << 20);
            last = addresses.bytes();
        }
        let held: u64 = addresses.bitmaps.iter().map(RoaringBitmap::len).sum();
        assert_eq!(addresses.len(), held);
        let (mut blocks, mut stored) = (0, 0);
        for bitmap in &addresses.bitmaps {
            let held = bitmap.statistics();
            blocks += u64::from(held.n_containers);
            stored += held.n_bytes_array_containers + held.n_bytes_bitset_containers;
        }
        assert_eq!(blocks, addresses.block_count);
        assert!(stored <= addresses.bytes());
        assert!(Addresses::bytes_of(u64::MAX) <= FULL);
        assert_eq!(addresses.room_within(FULL), u64::MAX);
    }

    fn digests_of(addresses: &[u32]) -> Digests {
        let identity = identity();
        let mut digests = Digests::new(identity.hasher.clone(), identity.key_type);
        for &address in addresses {
            digests.push_int(address.into()).unwrap();
        }
        digests
    }

    #[test]
    fn what_is_poured_is_all() {
        let list: Vec<u32> = (0..3000u32).map(|i| i.wrapping_mul(0x0123_4567)).collect();
        let digests = digests_of(&list);
        let mut addresses = Addresses::new(&identity()).unwrap();
        let mut mask = vec![0; mask_words(list.len())];
        addresses.insert(&digests, &mut mask);
        mask.fill(0);
        addresses.contains(&digests, &mut mask);
        assert!((0..list.len()).all(|i| mask[i / 64] >> (i % 64) & 1 == 1));
        mask.fill(0);
        addresses.contains(&digests_of(&[1, 2]), &mut mask);
        assert_eq!(mask[0], 0);
        let promise = petal::Promise {
            items: 3000,
            error: 1e-9,
        };
        let geometry = petal::sizing::split_for(3000, 1e-9, identity().collisions()).unwrap();
        let mut filter = Bloom::with_geometry(identity(), geometry, promise).unwrap();
        addresses.pour_into(&mut filter).unwrap();
        mask.fill(0);
        petal::Contains::contains_digests(&filter, &digests, &mut mask).unwrap();
        assert!((0..list.len()).all(|i| mask[i / 64] >> (i % 64) & 1 == 1));
    }

    #[test]
    fn other_keys_have_none() {
        let lines = Identity::new(petal::KeyType::Bytes);
        assert!(Addresses::new(&lines).is_none());
        let keyed = identity().with_hasher(KeyHasher::Keyed {
            secret: petal::Secret::new([1; 16]),
        });
        assert!(Addresses::new(&keyed).is_none());
    }
}
