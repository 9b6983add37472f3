//! A filter on its way to a file.
//!
//! Owns the shapes that `build` makes, and their growth within the memory.
//! The filter is made when the first keys come: only then is it known what
//! they are.

use anyhow::{Result, anyhow, bail};
use petal::sizing::{self, Collisions, GrowthPlan};
use petal::{
    AnyFilter, Bloom, Classic, ClassicGeometry, Counting, CountingGeometry, Deletable,
    DeletableGeometry, DigestSet, Digests, Error, Growable, Identity, Insert, Promise,
    SplitGeometry, Window, WindowGeometry, WindowSpan, mask_words,
};

use crate::budget;
use crate::filters;
use crate::mask;
use crate::units::{format_count, format_size};

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
    /// A quotient filter for `items` keys that come `repeats` times more.
    ///
    /// The second time takes a slot, the third two, and of the later ones each
    /// group of digits of the count one, which has at least three bits of it where
    /// a slot has four. Counts that are alike take the most.
    pub(super) fn deletable(
        items: u64,
        repeats: u64,
        error: f64,
        collisions: Collisions,
    ) -> Result<Self> {
        let least_bits = if repeats > 0 { 4 } else { 1 };
        let digits = u64::from((repeats / items).checked_ilog2().map_or(0, |log| log + 1));
        let extra =
            (repeats.saturating_add(repeats / 2)).min(items.saturating_mul(3 + digits.div_ceil(3)));
        let slots = items.saturating_add(extra).min(sizing::MAX_ITEMS);
        let roomy = sizing::deletable_for(slots, error, collisions)?;
        // The error is that of the keys alone.
        let geometry = (least_bits..=roomy.remainder_bits()).find_map(|bits| {
            let geometry = DeletableGeometry::new(roomy.slots(), bits).ok()?;
            (sizing::deletable_error(geometry, items) <= error).then_some(geometry)
        });
        Ok(Self::Deletable(match geometry {
            Some(geometry) => geometry,
            None => DeletableGeometry::new(roomy.slots(), least_bits)?,
        }))
    }

    /// A filter that grows by a plan.
    pub(super) fn growable(plan: GrowthPlan, collisions: Collisions) -> Result<Self> {
        let stage = plan.stage(0)?;
        let first = sizing::split_for(stage.items, stage.error, collisions)?.bytes();
        Ok(Self::Growable { plan, first })
    }

    /// Bytes at the start.
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
                Deletable::with_geometry(identity, geometry, self.promise)?.into()
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
        filter
            .insert_digests(digests, &mut self.mask)
            .map_err(no_room)?;
        Ok(mask::count(&self.mask))
    }

    /// Inserts a whole set of keys.
    pub(super) fn pour(&mut self, identity: &Identity, set: DigestSet) -> Result<()> {
        let mut filter = self.make(identity)?;
        set.pour_in_order(&mut filter)?;
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

/// That a filter takes no further key.
fn no_room(error: Error) -> anyhow::Error {
    match error {
        Error::Full {
            kind: "deletable",
            keys,
            ..
        } => anyhow!(
            "the slots are full with {} keys and their repeats, which take room as well; nothing \
             was written: give a larger -n",
            format_count(keys)
        ),
        error => error.into(),
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
