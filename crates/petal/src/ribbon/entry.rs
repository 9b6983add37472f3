//! What a static filter is built from: digests, alone or with values.
//!
//! Owns [`Entry`] and [`Valued`]. Where an entry is put is not known here.

/// A digest and the value that is kept with it. In ascending order of the digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Valued {
    /// The digest of the key.
    pub digest: u64,
    /// The value: of as many bits as the filter has for it.
    pub value: u16,
}

/// What a [`crate::StaticBuilder`] takes: a digest (`u64`), or a [`Valued`] one.
#[expect(private_bounds, reason = "the bound lists the entries of this library")]
pub trait Entry: Parts {}

impl Entry for u64 {}
impl Entry for Valued {}

/// An [`Entry`] from the inside.
pub(super) trait Parts: Copy + Ord + Send + Sync {
    fn digest(self) -> u64;
    fn value(self) -> u16;
}

impl Parts for u64 {
    #[inline(always)]
    fn digest(self) -> u64 {
        self
    }

    #[inline(always)]
    fn value(self) -> u16 {
        0
    }
}

impl Parts for Valued {
    #[inline(always)]
    fn digest(self) -> u64 {
        self.digest
    }

    #[inline(always)]
    fn value(self) -> u16 {
        self.value
    }
}
