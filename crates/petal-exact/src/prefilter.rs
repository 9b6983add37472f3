//! A Bloom filter of fingerprints: what surely has no partner stays out of tables and files.

use petal::sizing::{self, Collisions};
use petal::{Bloom, Contains, Digests, Identity, Insert, KeyHasher, KeyType, Promise, mask_words};

use crate::error::Error;
use crate::fingerprint::Fingerprint;

/// A filter and buffers for asking it.
pub(crate) struct Prefilter {
    bloom: Bloom,
    ask: Ask,
}

/// Buffers for one thread that asks.
pub(crate) struct Ask {
    digests: Digests,
    mask: Vec<u64>,
}

impl Ask {
    pub(crate) fn new() -> Self {
        Self {
            digests: Digests::new(KeyHasher::default(), KeyType::Int),
            mask: Vec::new(),
        }
    }

    fn set(&mut self, fingerprints: &[Fingerprint]) -> petal::Result<()> {
        self.digests.clear();
        for fingerprint in fingerprints {
            self.digests.push_int(fingerprint.low.cast_signed())?;
        }
        self.mask.resize(mask_words(fingerprints.len()), 0);
        Ok(())
    }

    /// Calls `pass` with the numbers of the fingerprints that may be in the filter.
    #[inline]
    pub(crate) fn each(
        &mut self,
        filter: &Prefilter,
        fingerprints: &[Fingerprint],
        mut pass: impl FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.set(fingerprints).map_err(failed)?;
        filter
            .bloom
            .contains_digests(&self.digests, &mut self.mask)
            .map_err(failed)?;
        for (word, &bits) in self.mask.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                pass(word * 64 + bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
            }
        }
        Ok(())
    }
}

impl Prefilter {
    /// Of so many bytes, for about so many keys.
    pub(crate) fn new(items: u64, bytes: u64) -> Result<Self, Error> {
        let items = items.max(1);
        let geometry =
            sizing::split_for_items_and_bytes(items, bytes, Collisions::Never).map_err(failed)?;
        let error = sizing::split_error(geometry, items, Collisions::Never);
        let identity = Identity::new(KeyType::Int);
        let bloom = Bloom::with_geometry(identity, geometry, Promise { items, error });
        Ok(Self {
            bloom: bloom.map_err(failed)?,
            ask: Ask::new(),
        })
    }

    /// Bytes it takes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bloom.geometry().bytes()
    }

    /// Takes fingerprints.
    pub(crate) fn insert(&mut self, fingerprints: &[Fingerprint]) -> Result<(), Error> {
        self.ask.set(fingerprints).map_err(failed)?;
        self.bloom
            .insert_digests(&self.ask.digests, &mut self.ask.mask)
            .map_err(failed)
    }
}

fn failed(error: petal::Error) -> Error {
    Error::io("use a filter of fingerprints", std::io::Error::other(error))
}
