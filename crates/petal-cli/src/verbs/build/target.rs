//! A filter on its way to a file.
//!
//! Owns the shapes that `build` makes, and their growth within the memory.
//! The filter is made when the first keys come: only then is it known what
//! they are.

use anyhow::{Result, bail};
use petal::sizing::{self, Collisions, GrowthPlan};
use petal::{
    AnyFilter, Bloom, Classic, ClassicGeometry, Counting, CountingGeometry, Deletable,
    DeletableGeometry, DigestSet, Digests, Growable, Identity, Insert, Promise, SplitGeometry,
    Window, WindowGeometry, WindowSpan, mask_words,
};

use crate::budget;
use crate::filters;
use crate::mask;
use crate::units::format_size;

/// What is going to be made.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Bloom(SplitGeometry),
    Classic(ClassicGeometry),
    Growable {
        plan: GrowthPlan,
        /// Bytes of the first stage.
        first: u64,
    },
    /// Slots of the table.
    Digests(u64),
    Counting(CountingGeometry),
    Deletable(DeletableGeometry),
    Window {
        geometry: WindowGeometry,
        span: WindowSpan,
    },
}

impl Shape {
    /// A filter that grows by a plan.
    pub(super) fn growable(plan: GrowthPlan, collisions: Collisions) -> Result<Self> {
        let stage = plan.stage(0)?;
        let first = sizing::split_for(stage.items, stage.error, collisions)?.bytes();
        Ok(Self::Growable { plan, first })
    }

    /// Bytes at the start: counts may make a quotient filter larger.
    pub(super) const fn bytes(&self) -> u64 {
        match self {
            Self::Bloom(geometry) => geometry.bytes(),
            Self::Classic(geometry) => geometry.words() * 8,
            Self::Growable { first, .. } => *first,
            Self::Digests(slots) => slots.saturating_mul(8),
            Self::Counting(geometry) => geometry.bytes(),
            Self::Deletable(geometry) => geometry.bytes(),
            Self::Window { geometry, .. } => geometry.bytes(),
        }
    }

    /// Bytes that are held at most within `usable` ones, where counts may make the
    /// filter larger: old and new table while they double it.
    pub(super) fn most_bytes(&self, usable: u64) -> Option<u64> {
        let Self::Deletable(geometry) = self else {
            return None;
        };
        let (mut most, mut geometry) = (geometry.bytes(), *geometry);
        while let Some(doubled) = geometry.doubled() {
            let both = geometry.bytes().saturating_add(doubled.bytes());
            if both > usable {
                break;
            }
            (most, geometry) = (both, doubled);
        }
        Some(most)
    }

    /// The name for people.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Bloom(_) => "a Bloom filter",
            Self::Classic(_) => "a classic Bloom filter",
            Self::Growable { .. } => "a growing Bloom filter, at first",
            Self::Digests(_) => "a set of digests",
            Self::Counting(_) => "a counting Bloom filter",
            Self::Deletable(_) => "a quotient filter",
            Self::Window { .. } => "a window",
        }
    }
}

/// The filter, once there are keys.
pub(super) struct Target {
    shape: Shape,
    promise: Promise,
    usable: u64,
    filter: Option<AnyFilter>,
    mask: Vec<u64>,
}

impl Target {
    /// For `items` keys at an error, in at most `usable` bytes.
    pub(super) const fn new(shape: Shape, items: u64, error: f64, usable: u64) -> Self {
        Self {
            shape,
            promise: Promise { items, error },
            usable,
            filter: None,
            mask: Vec::new(),
        }
    }

    fn make(&self, identity: &Identity) -> Result<AnyFilter> {
        let identity = identity.clone();
        Ok(match self.shape {
            Shape::Bloom(geometry) => {
                Bloom::with_geometry(identity, geometry, self.promise)?.into()
            }
            Shape::Classic(geometry) => {
                Classic::with_geometry(identity, geometry, self.promise)?.into()
            }
            Shape::Growable { plan, .. } => Growable::with_plan(identity, plan)?.into(),
            Shape::Digests(slots) => DigestSet::with_slots(identity, slots)?.into(),
            Shape::Counting(geometry) => {
                Counting::with_geometry(identity, geometry, self.promise)?.into()
            }
            Shape::Deletable(geometry) => {
                let mut filter = Deletable::with_geometry(identity, geometry, self.promise)?;
                filter.limit_memory(self.usable);
                filter.into()
            }
            Shape::Window { geometry, span } => {
                let mut window = Window::with_geometry(identity, span, geometry, self.promise)?;
                window.advance(filters::unix_ms());
                window.into()
            }
        })
    }

    /// Inserts keys; how many of them changed a bit.
    pub(super) fn insert(&mut self, identity: &Identity, digests: &Digests) -> Result<u64> {
        if digests.is_empty() {
            return Ok(0);
        }
        let filter = match self.filter.take() {
            Some(filter) => filter,
            None => self.make(identity)?,
        };
        let filter = self.filter.insert(filter);
        make_room(filter, digests.len() as u64, self.usable)?;
        self.mask.resize(mask_words(digests.len()), 0);
        let kind = filter.kind();
        filter
            .insert_digests(digests, &mut self.mask)
            .map_err(|error| filters::not_taken(kind, self.promise.items, error))?;
        Ok(mask::count(&self.mask))
    }

    /// Inserts a whole set of keys.
    pub(super) fn pour(&mut self, identity: &Identity, set: DigestSet) -> Result<()> {
        let mut filter = self.make(identity)?;
        filter.fill_from(set)?;
        self.filter = Some(filter);
        Ok(())
    }

    /// The filter, also where no key came.
    pub(super) fn finish(self, identity: &Identity) -> Result<AnyFilter> {
        match self.filter {
            Some(filter) => Ok(filter),
            None => self.make(identity),
        }
    }
}

/// Refuses to let a filter grow beyond the memory.
fn make_room(filter: &mut AnyFilter, keys: u64, usable: u64) -> Result<()> {
    let (holds, needed) = match filter {
        AnyFilter::DigestSet(set) => {
            while set.room() < keys {
                // While a table doubles, both exist.
                let needed = set.slots().saturating_mul(24);
                if needed > usable {
                    break;
                }
                set.reserve(set.room() + 1)?;
            }
            (set.room() >= keys, set.slots().saturating_mul(24))
        }
        AnyFilter::Growable(filter) if filter.room() < keys => {
            let needed = filter.bytes().saturating_add(filter.next_stage_bytes()?);
            (needed <= usable, needed)
        }
        _ => return Ok(()),
    };
    if !holds {
        bail!(
            "to take more keys the filter would need {}, the memory budget is {}: nothing was \
             written; allow more with --memory, or use --kind bloom",
            format_size(budget::needed(needed)),
            format_size(budget::needed(usable))
        );
    }
    Ok(())
}
