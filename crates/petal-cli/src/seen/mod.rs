//! What a run remembers of the lines it has read.
//!
//! Owns [`Seen`]: digests (or a bitmap of addresses) while the memory lasts, then a
//! Bloom filter, or a Bloom filter from the start; what happens when the memory is full; and
//! the expected number of lines dropped so far. It sees digests only: lines
//! become digests in `keys`, and come and go in the verbs.

mod addresses;
mod loss;
mod plan;
#[cfg(test)]
mod tests;

use std::ops::Range;

use anyhow::{Result, bail};
use petal::mask_words;
use petal::sizing;
use petal::{AnyFilter, Bloom, Contains, DigestSet, Digests, Growable, Identity, Insert, Promise};

use addresses::Addresses;

pub(crate) use loss::Loss;
pub(crate) use plan::{CEILING, FIRST_ITEMS, Plan};

use crate::args::WhenFull;
use crate::budget;
use crate::mask;
use crate::units::format_size;

/// Blocks of each region that are looked at for the error at a checkpoint:
/// 64 KiB, some microseconds.
const SAMPLE_BLOCKS: u64 = 1024;

/// The memory of a run, and what it has cost.
#[derive(Debug)]
pub(crate) struct Seen {
    held: Held,
    /// Bytes that tables and filters may take together.
    usable: u64,
    /// Slots at which a table of digests is poured into a filter.
    most_slots: u64,
    when_full: WhenFull,
    /// Whether a new line has met a full memory.
    full: bool,
    loss: Loss,
    /// A part of the caller's batch, and its answers.
    part: Digests,
    mask: Vec<u64>,
}

/// Where it is.
#[expect(
    clippy::large_enum_variant,
    reason = "a run has one, or two, and reaches for it all the time"
)]
#[derive(Debug)]
enum Held {
    Filter(AnyFilter),
    /// Addresses, up to so many bytes.
    Addresses {
        addresses: Addresses,
        most_bytes: u64,
    },
}

impl Held {
    fn identity(&self) -> &Identity {
        match self {
            Self::Filter(filter) => Contains::about(filter).identity(),
            Self::Addresses { addresses, .. } => addresses.identity(),
        }
    }

    fn insert(&mut self, digests: &Digests, mask: &mut [u64]) -> Result<()> {
        match self {
            Self::Filter(filter) => filter.insert_digests(digests, mask)?,
            Self::Addresses { addresses, .. } => {
                mask[..mask_words(digests.len())].fill(0);
                addresses.insert(digests, mask);
            }
        }
        Ok(())
    }

    fn contains(&self, digests: &Digests, mask: &mut [u64]) -> Result<()> {
        match self {
            Self::Filter(filter) => filter.contains_digests(digests, mask)?,
            Self::Addresses { addresses, .. } => {
                mask[..mask_words(digests.len())].fill(0);
                addresses.contains(digests, mask);
            }
        }
        Ok(())
    }
}

impl<F: Into<AnyFilter>> From<F> for Held {
    fn from(filter: F) -> Self {
        Self::Filter(filter.into())
    }
}

/// How far a batch was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// All of it.
    All,
    /// The first so many digests; the memory is full and the run ends.
    Only(usize),
}

impl Seen {
    /// Empty memory as planned.
    pub(crate) fn new(plan: &Plan, identity: Identity, when_full: WhenFull) -> Result<Self> {
        let (held, usable, most_slots) = match plan {
            Plan::Addresses {
                most_bytes, usable, ..
            } => {
                let Some(addresses) = Addresses::new(&identity) else {
                    bail!("keys are no addresses"); // not reached: the plan has asked
                };
                let most_bytes = *most_bytes;
                let held = Held::Addresses {
                    addresses,
                    most_bytes,
                };
                (held, *usable, 0)
            }
            Plan::Digests {
                slots,
                most_slots,
                usable,
                ..
            } => {
                let set = DigestSet::with_slots(identity.clone(), *slots)?;
                (set.into(), *usable, *most_slots)
            }
            Plan::Fixed {
                items,
                error,
                geometry,
            } => {
                let promise = Promise {
                    items: *items,
                    error: *error,
                };
                let bloom = Bloom::with_geometry(identity.clone(), *geometry, promise)?;
                (bloom.into(), geometry.bytes(), 0)
            }
            Plan::Growing { plan, usable, .. } => {
                let growable = Growable::with_plan(identity.clone(), *plan)?;
                (growable.into(), *usable, 0)
            }
        };
        Ok(Self::around(
            held,
            usable,
            most_slots,
            when_full,
            Loss::default(),
        ))
    }

    /// The memory of an earlier run, to be continued within `budget` bytes.
    pub(crate) fn resume(
        filter: AnyFilter,
        budget: u64,
        when_full: WhenFull,
        loss: Loss,
    ) -> Result<Self> {
        let usable = budget::usable(budget)?;
        if filter.bytes() > usable {
            bail!(
                "the state has {} in memory, more than --memory {} allows: give it {} or more",
                format_size(filter.bytes()),
                format_size(budget),
                format_size(budget::needed(filter.bytes()))
            );
        }
        let most_slots = (usable / 4 / 8).max(64);
        Ok(Self::around(
            filter.into(),
            usable,
            most_slots,
            when_full,
            loss,
        ))
    }

    fn around(held: Held, usable: u64, most_slots: u64, when_full: WhenFull, loss: Loss) -> Self {
        let identity = held.identity();
        Self {
            part: Digests::new(identity.hasher.clone(), identity.key_type),
            held,
            usable,
            most_slots,
            when_full,
            full: false,
            loss,
            mask: Vec::new(),
        }
    }

    /// The filter as it stands; none while there are addresses in a bitmap.
    pub(crate) const fn filter(&self) -> Option<&AnyFilter> {
        match &self.held {
            Held::Filter(filter) => Some(filter),
            Held::Addresses { .. } => None,
        }
    }

    /// The same for good.
    pub(crate) fn into_filter(self) -> Option<AnyFilter> {
        match self.held {
            Held::Filter(filter) => Some(filter),
            Held::Addresses { .. } => None,
        }
    }

    /// The same, to have its labels and attachments changed.
    pub(crate) const fn filter_mut(&mut self) -> Option<&mut AnyFilter> {
        match &mut self.held {
            Held::Filter(filter) => Some(filter),
            Held::Addresses { .. } => None,
        }
    }

    /// What the lines are in.
    pub(crate) const fn kind(&self) -> &'static str {
        match &self.held {
            Held::Filter(filter) => filter.kind().name(),
            Held::Addresses { .. } => "bitmap",
        }
    }

    /// Whether a new line has met a full memory: from then on lines were not
    /// remembered, or with a larger error.
    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    /// Lines found to be new.
    pub(crate) const fn new_lines(&self) -> u64 {
        self.loss.lines()
    }

    /// The error as it stands: the chance that a new line is now dropped.
    pub(crate) fn error_now(&self) -> f64 {
        self.filter().map_or(0.0, AnyFilter::error_now)
    }

    /// Expected number of distinct lines dropped so far.
    pub(crate) fn expected_loss(&mut self) -> f64 {
        self.checkpoint();
        self.loss.expected()
    }

    /// Takes a batch in order: bit `i` of `fresh` becomes 1 where digest `i`
    /// was not seen before. What lies beyond [`Taken::Only`] is 0.
    pub(crate) fn take(&mut self, digests: &Digests, fresh: &mut [u64]) -> Result<Taken> {
        fresh[..mask_words(digests.len())].fill(0);
        let mut done = 0;
        while done < digests.len() {
            // No further than to the next checkpoint, so that the error is
            // known at each of them.
            let most = usize::try_from(self.loss.until_checkpoint()).unwrap_or(usize::MAX);
            if most == 0 {
                self.checkpoint();
                continue;
            }
            let mut count = most.min(digests.len() - done);
            let (mut remember, mut beyond) = (true, false);
            match self.room_for(count)? {
                Room::Enough => {}
                Room::Only(room) if room > 0 => count = room,
                Room::Only(_) => {
                    // Repeats are still answered; the first new line ends it.
                    remember = self.when_full == WhenFull::Loosen;
                    beyond = true;
                }
            }
            if remember && count == digests.len() {
                // Nearly always: the batch as a whole.
                self.held.insert(digests, fresh)?;
                let new = mask::count(&fresh[..mask_words(count)]);
                self.full |= beyond && new > 0;
                self.loss.add(count as u64, new);
                return Ok(Taken::All);
            }
            self.part.clear();
            self.part.extend_from(digests, done..done + count)?;
            self.mask.resize(mask_words(count), 0);
            if remember {
                self.held.insert(&self.part, &mut self.mask)?;
            } else {
                self.held.contains(&self.part, &mut self.mask)?;
                mask::invert(&mut self.mask, count);
                let first_new = mask::runs(&self.mask, count).next();
                if let Some(Range {
                    start: first_new, ..
                }) = first_new
                    && self.when_full == WhenFull::Stop
                {
                    self.full = true;
                    return Ok(Taken::Only(done + first_new));
                }
            }
            mask::copy(fresh, done, &self.mask, 0, count);
            let new = mask::count(&self.mask);
            self.full |= beyond && new > 0;
            self.loss.add(count as u64, new);
            done += count;
        }
        Ok(Taken::All)
    }

    /// How many of `count` new digests the memory takes, after growing or
    /// pouring where that helps.
    fn room_for(&mut self, count: usize) -> Result<Room> {
        let wanted = count as u64;
        let filter = match &mut self.held {
            Held::Filter(filter) => filter,
            Held::Addresses {
                addresses,
                most_bytes,
            } => {
                let room = addresses.room_within(*most_bytes);
                if room >= wanted {
                    return Ok(Room::Enough);
                }
                if room > 0 {
                    return Ok(Room::Only(usize::try_from(room).unwrap_or(usize::MAX)));
                }
                let (identity, len) = (addresses.identity().clone(), addresses.len());
                let bytes = self.usable.saturating_sub(addresses.bytes());
                let filter = match filter_within(identity.clone(), bytes, len)? {
                    None if self.when_full == WhenFull::Loosen => {
                        Some(filter_anyhow(identity, bytes, len)?)
                    }
                    filter => filter,
                };
                if let Some(mut filter) = filter {
                    addresses.pour_into(&mut filter)?;
                    self.held = filter.into();
                    return self.room_for(count);
                }
                // Where addresses are close together no filter is smaller, and they go on
                // in the memory that one would have taken.
                if *most_bytes < self.usable {
                    *most_bytes = self.usable;
                    return self.room_for(count);
                }
                return Ok(self.no_room());
            }
        };
        match filter {
            AnyFilter::DigestSet(set) => {
                while set.room() < wanted && set.slots() * 2 <= self.most_slots {
                    set.reserve(set.room() + 1)?;
                }
                if set.room() >= wanted {
                    return Ok(Room::Enough);
                }
                let room = usize::try_from(set.room()).unwrap_or(usize::MAX);
                if room > 0 {
                    return Ok(Room::Only(room));
                }
                if let Some(filter) = pour(set, self.usable)? {
                    self.held = filter.into();
                    return self.room_for(count);
                }
                if self.when_full == WhenFull::Loosen {
                    // Never a table that grows without bound.
                    self.held = pour_anyhow(set, self.usable)?.into();
                }
                Ok(self.no_room())
            }
            AnyFilter::Growable(filter) => {
                let room = filter.room();
                if room >= wanted {
                    return Ok(Room::Enough);
                }
                if room > 0 {
                    return Ok(Room::Only(usize::try_from(room).unwrap_or(usize::MAX)));
                }
                // An error here is the end of the plan, another kind of full.
                let grows = filter
                    .next_stage_bytes()
                    .is_ok_and(|bytes| filter.bytes() + bytes <= self.usable);
                if grows {
                    return Ok(Room::Only(1)); // the stage comes with that one
                }
                Ok(self.no_room())
            }
            filter => match filter.room() {
                Some(room) if room < wanted => {
                    let room = usize::try_from(room).unwrap_or(usize::MAX);
                    Ok(if room == 0 {
                        self.no_room()
                    } else {
                        Room::Only(room)
                    })
                }
                _ => Ok(Room::Enough),
            },
        }
    }

    /// The memory is full: a filter that would grow by itself is told not to.
    fn no_room(&mut self) -> Room {
        if self.when_full == WhenFull::Loosen
            && let Held::Filter(AnyFilter::Growable(filter)) = &mut self.held
        {
            filter.stop_growing();
        }
        Room::Only(0)
    }

    /// Measures the error and adds up what it has cost.
    fn checkpoint(&mut self) {
        let place = self.loss.place();
        let Held::Filter(filter) = &self.held else {
            self.loss.checkpoint(0.0);
            return;
        };
        let words = match filter {
            AnyFilter::Bloom(filter) => filter.sampled_error(SAMPLE_BLOCKS, place),
            AnyFilter::Growable(filter) => filter.sampled_error(SAMPLE_BLOCKS, place),
            _ => 0.0,
        };
        let about = Contains::about(filter);
        let shared = about
            .identity()
            .collisions()
            .probability(about.insertions().unwrap_or(0));
        self.loss.checkpoint(words + shared * (1.0 - words));
    }
}

/// Room for new digests.
enum Room {
    Enough,
    Only(usize),
}

/// The filter that the digests go on in: as large as fits beside the table.
/// `None` if no filter there holds more than the table does.
fn pour(set: &DigestSet, usable: u64) -> Result<Option<Bloom>> {
    let identity = Contains::about(set).identity().clone();
    let bytes = usable.saturating_sub(set.slots() * 8);
    let Some(mut filter) = filter_within(identity, bytes, set.len())? else {
        return Ok(None);
    };
    set.pour_into(&mut filter)?;
    Ok(Some(filter))
}

/// The filter that the digests go on in where none keeps the ceiling.
fn pour_anyhow(set: &DigestSet, usable: u64) -> Result<Bloom> {
    let identity = Contains::about(set).identity().clone();
    let bytes = usable.saturating_sub(set.slots() * 8);
    let mut filter = filter_anyhow(identity, bytes, set.len())?;
    set.pour_into(&mut filter)?;
    Ok(filter)
}

/// An empty filter for as many keys as keep the ceiling in so many bytes; `None` if
/// these are no more than there are.
fn filter_within(identity: Identity, bytes: u64, there: u64) -> Result<Option<Bloom>> {
    let collisions = identity.collisions();
    let Ok((geometry, items)) = sizing::best_split_within(bytes, CEILING, collisions) else {
        return Ok(None);
    };
    if items <= there {
        return Ok(None);
    }
    let promise = Promise {
        items,
        error: CEILING,
    };
    Ok(Some(Bloom::with_geometry(identity, geometry, promise)?))
}

/// The empty filter of the least error for twice as many keys as there are.
fn filter_anyhow(identity: Identity, bytes: u64, there: u64) -> Result<Bloom> {
    let items = there.saturating_mul(2).max(1);
    let geometry = sizing::split_for_items_and_bytes(items, bytes, identity.collisions())?;
    let error = sizing::split_error(geometry, items, identity.collisions());
    Ok(Bloom::with_geometry(
        identity,
        geometry,
        Promise { items, error },
    )?)
}
