//! What a filter hands over to be written, the same for every kind.

use std::borrow::Cow;

use super::MIB;
use super::header::Geometry;
use super::metadata::{Growth, StageRecord};
use crate::any::AnyFilter;
use crate::bloom::Bloom;
use crate::cascade::Cascade;
use crate::classic::Classic;
use crate::counting::Counting;
use crate::deletable::Deletable;
use crate::digest_set::DigestSet;
use crate::error::{Error, Result};
use crate::growable::Growable;
use crate::identity::About;
use crate::ribbon::Static;
use crate::traits::Bits;
use crate::window::{RingState, Window};
use crate::words::Words;

/// Everything of a filter that a file holds.
pub(crate) struct Contents<'a> {
    pub(super) geometry: Geometry,
    pub(super) about: &'a About,
    pub(super) growth: Option<Growth>,
    pub(super) window: Option<&'a RingState>,
    /// The words of each run of the payload.
    pub(super) words: Vec<&'a Words>,
}

/// A kind of filter that files can hold.
pub(crate) trait Stored {
    /// What a file is to hold of it.
    ///
    /// # Errors
    /// If the filter is in a state that no file can hold.
    fn contents(&self) -> Result<Contents<'_>>;
}

impl Stored for Bloom {
    fn contents(&self) -> Result<Contents<'_>> {
        Ok(Contents {
            geometry: Geometry::Bloom(self.geometry()),
            about: self.meta(),
            growth: None,
            window: None,
            words: vec![self.words()],
        })
    }
}

impl Stored for Classic {
    fn contents(&self) -> Result<Contents<'_>> {
        Ok(Contents {
            geometry: Geometry::Classic(self.geometry()),
            about: self.meta(),
            growth: None,
            window: None,
            words: vec![self.words()],
        })
    }
}

impl Stored for Counting {
    fn contents(&self) -> Result<Contents<'_>> {
        Ok(Contents {
            geometry: Geometry::Counting(self.geometry()),
            about: self.meta(),
            growth: None,
            window: None,
            words: vec![self.words()],
        })
    }
}

impl Stored for DigestSet {
    fn contents(&self) -> Result<Contents<'_>> {
        Ok(Contents {
            geometry: Geometry::DigestSet {
                slots: self.slots(),
                spread: self.spread(),
                has_zero: self.has_zero(),
            },
            about: self.meta(),
            growth: None,
            window: None,
            words: vec![self.words()],
        })
    }
}

impl Stored for Growable {
    fn contents(&self) -> Result<Contents<'_>> {
        let record = |stage: &Bloom| {
            let about = stage.meta();
            match (about.promise(), about.insertions()) {
                (Some(promise), Some(insertions)) => Ok(StageRecord {
                    promise,
                    insertions,
                    geometry: stage.geometry(),
                }),
                // Not reached: stages are sized, and never merged.
                _ => Err(Error::parameter(
                    "stage",
                    "without a count",
                    "a sized stage",
                )),
            }
        };
        let stages: Result<Vec<_>> = self.stages().iter().map(record).collect();
        Ok(Contents {
            geometry: Geometry::Growable {
                stages: self.stages().len() as u64,
            },
            about: self.meta(),
            growth: Some(Growth {
                plan: *self.plan(),
                stages: stages?,
            }),
            window: None,
            words: self.stages().iter().map(Bloom::words).collect(),
        })
    }
}

impl Stored for Window {
    fn contents(&self) -> Result<Contents<'_>> {
        Ok(Contents {
            geometry: Geometry::Window(self.geometry()),
            about: self.meta(),
            growth: None,
            window: Some(self.state()),
            words: vec![self.words()],
        })
    }
}

impl Stored for Deletable {
    fn contents(&self) -> Result<Contents<'_>> {
        Ok(Contents {
            geometry: Geometry::Deletable {
                shape: self.geometry(),
                used: self.used_slots(),
            },
            about: self.meta(),
            growth: None,
            window: None,
            words: vec![self.words()],
        })
    }
}

impl Stored for Static {
    fn contents(&self) -> Result<Contents<'_>> {
        Ok(Contents {
            geometry: Geometry::Static(self.geometry()),
            about: self.meta(),
            growth: None,
            window: None,
            words: vec![self.words()],
        })
    }
}

impl Stored for Cascade {
    fn contents(&self) -> Result<Contents<'_>> {
        Ok(Contents {
            geometry: Geometry::Cascade(self.geometry()),
            about: self.meta(),
            growth: None,
            window: None,
            words: self.words().to_vec(),
        })
    }
}

impl Stored for AnyFilter {
    fn contents(&self) -> Result<Contents<'_>> {
        match self {
            Self::DigestSet(filter) => filter.contents(),
            Self::Bloom(filter) => filter.contents(),
            Self::Classic(filter) => filter.contents(),
            Self::Growable(filter) => filter.contents(),
            Self::Counting(filter) => filter.contents(),
            Self::Window(filter) => filter.contents(),
            Self::Deletable(filter) => filter.contents(),
            Self::Static(filter) => filter.contents(),
            Self::Cascade(filter) => filter.contents(),
        }
    }
}

/// Calls `visit` for each MiB of the payload (the last one may be shorter) that
/// these runs of words make, placed as in `payload`. Copies a MiB at most.
pub(super) fn each_mib(runs: &[&Words], mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut pending: Vec<u8> = Vec::new();
    let mut feed = |mut bytes: &[u8]| -> Result<()> {
        while !bytes.is_empty() {
            if pending.is_empty() && bytes.len() >= MIB {
                let (whole, rest) = bytes.split_at(MIB);
                visit(whole)?;
                bytes = rest;
                continue;
            }
            let (taken, rest) = bytes.split_at(bytes.len().min(MIB - pending.len()));
            pending.extend(taken);
            bytes = rest;
            if pending.len() == MIB {
                visit(&pending)?;
                pending.clear();
            }
        }
        Ok(())
    };
    for (i, words) in runs.iter().enumerate() {
        let words = words.get();
        for chunk in words.chunks(MIB / 8) {
            feed(&le_bytes(chunk))?;
        }
        if i + 1 < runs.len() {
            let gap = words.len().next_multiple_of(8) - words.len();
            feed(&[0; 64][..gap * 8])?;
        }
    }
    if pending.is_empty() {
        Ok(())
    } else {
        visit(&pending)
    }
}

/// Words as the bytes that files have.
pub(super) fn le_bytes(words: &[u64]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        Cow::Borrowed(bytemuck::cast_slice(words))
    } else {
        Cow::Owned(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }
}
