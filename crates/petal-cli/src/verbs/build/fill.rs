//! Keys into a filter that is made for them.
//!
//! Owns the ways to come to a size. With `-n` it is known, and one pass
//! fills the filter. Without, keys are counted: as digests, which are then
//! poured into the filter; or, if they are too many for the memory, in a
//! pass of its own, which only files allow. What is filled is [`target`]'s.

use anyhow::{Result, anyhow, bail};
use petal::sizing::{self, ClassicGiven, GrowthPlan};
use petal::{
    AnyFilter, ClassicGeometry, CounterBits, CountingGeometry, DigestSet, Increase, WindowSpan,
    mask_words,
};

use super::fixed::ValueField;
use super::target::{Shape, Target};
use crate::args::{BuildArgs, BuildKind, WhenFull};
use crate::budget;
use crate::input::Batch;
use crate::intake::Intake;
use crate::keys::KeyedLines;
use crate::os::display_name;
use crate::report;
use crate::sample::{self, Estimate};
use crate::seen::{FIRST_ITEMS, Plan, Seen, Taken};
use crate::units::{format_count, format_size};
use crate::walk::{Flow, Place, Walk};

/// Slots of the first table of a set of digests.
const FIRST_SLOTS: u64 = 64;

/// What a run works with.
pub(super) struct Fill<'a> {
    pub(super) args: &'a BuildArgs,
    pub(super) walk: Walk,
    pub(super) intake: Intake,
    /// The error that was asked for.
    pub(super) error: f64,
    /// Memory that the run may use.
    pub(super) budget: u64,
    /// That without what the process itself takes.
    pub(super) usable: u64,
    /// The counters of a counting filter.
    pub(super) counting: (CounterBits, Increase),
    /// What a window spans.
    pub(super) span: WindowSpan,
    /// The value of each key of a static filter.
    pub(super) value: Option<ValueField>,
}

/// A filter with all keys in it.
pub(super) struct Filled {
    pub(super) filter: AnyFilter,
    /// Distinct keys; where the filter itself has counted them, those that it
    /// took for seen are missing.
    pub(super) keys: u64,
    /// Lines that were left out since they have no value.
    pub(super) without_value: u64,
}

impl Filled {
    /// A filter that so many keys were put into.
    pub(super) const fn of(filter: AnyFilter, keys: u64) -> Self {
        Self {
            filter,
            keys,
            without_value: 0,
        }
    }
}

impl Fill<'_> {
    /// Reads the lists and fills a filter.
    pub(super) fn run(&mut self, items: Option<u64>) -> Result<Filled> {
        match (self.args.kind, items) {
            (BuildKind::Static, _) => self.fixed(),
            (BuildKind::Cascade, _) => self.cascade(),
            (_, Some(items)) => {
                let shape = self.shape(items)?;
                self.announce(&shape, items, "");
                self.fits(&shape, 0)?;
                self.one_pass(shape, items, self.most(items))
            }
            (BuildKind::Digests, None) => self.digests(),
            (_, None) => self.counted(),
        }
    }

    /// The same into a shape that is given, made for so many keys.
    pub(super) fn run_like(&mut self, shape: Shape, items: u64) -> Result<Filled> {
        self.announce(&shape, items, "");
        self.fits(&shape, 0)?;
        self.one_pass(shape, items, Some(items))
    }

    /// How many keys are taken at most.
    fn most(&self, items: u64) -> Option<u64> {
        match self.args.kind {
            // One goes beyond what was declared, the other forgets the rest.
            BuildKind::Growable | BuildKind::Window => None,
            _ => Some(items),
        }
    }

    /// Whether repeats go into the filter as well, so that the distinct keys
    /// alone do not make it.
    const fn counts_repeats(&self) -> bool {
        matches!(self.args.kind, BuildKind::Counting | BuildKind::Deletable)
    }

    /// The shape for a number of keys.
    fn shape(&self, items: u64) -> Result<Shape> {
        let collisions = self.intake.identity().collisions();
        Ok(match self.args.kind {
            BuildKind::Bloom => Shape::Bloom(sizing::split_for(items, self.error, collisions)?),
            BuildKind::Classic => {
                let given = ClassicGiven {
                    items: Some(items),
                    error: Some(self.error),
                    bits: None,
                    hashes: self.args.positions,
                };
                let plan = sizing::plan_classic(given, collisions)?;
                Shape::Classic(ClassicGeometry::new(plan.bits, plan.hashes)?)
            }
            BuildKind::Growable => {
                let first = items.min(FIRST_ITEMS);
                let plan = GrowthPlan::ceiling(first, items, self.error)?;
                Shape::growable(plan, collisions)?
            }
            BuildKind::Digests => Shape::Digests(DigestSet::slots_for(items)),
            BuildKind::Counting => {
                let split = sizing::split_for(items, self.error, collisions)?;
                let (counter, increase) = self.counting;
                Shape::Counting(CountingGeometry::new(split, counter, increase)?)
            }
            BuildKind::Deletable => {
                Shape::Deletable(sizing::deletable_for(items, self.error, collisions)?)
            }
            BuildKind::Static | BuildKind::Cascade => {
                bail!("a filter of this kind is shaped by its keys") // not reached
            }
            BuildKind::Window => Shape::Window {
                geometry: sizing::window_for(
                    items,
                    self.error,
                    sizing::DEFAULT_GENERATIONS,
                    collisions,
                )?,
                span: self.span,
            },
        })
    }

    /// The shape for keys that were counted. One that can grow starts with
    /// them, and expects more.
    fn counted_shape(&self, items: u64) -> Result<Shape> {
        if self.args.kind == BuildKind::Growable {
            let collisions = self.intake.identity().collisions();
            return Shape::growable(GrowthPlan::open(items, self.error)?, collisions);
        }
        self.shape(items)
    }

    fn announce(&self, shape: &Shape, items: u64, after: &str) {
        let most = match shape.most_bytes(self.usable) {
            Some(most) if most > shape.bytes() => {
                format!(
                    "; counts of repeats take it to at most {}",
                    format_size(most)
                )
            }
            Some(_) => "; the memory holds no counts beyond that size".to_owned(),
            None => String::new(),
        };
        let plan = format!(
            "{} of {} for {} keys at an error of {}{after}{most}",
            shape.name(),
            format_size(shape.bytes()),
            format_count(items),
            crate::report::probability(self.error),
        );
        report::plan(&self.args.run, &plan);
    }

    /// Says how keys are going to be counted.
    fn announce_count(&self, plan: &Plan, estimate: Option<&Estimate>, repeatable: bool) {
        let Plan::Digests { most_slots, .. } = plan else {
            return;
        };
        // At the end the filter exists beside the digests.
        let filter = estimate
            .and_then(|estimate| self.counted_shape(estimate.lines.max(1)).ok())
            .map(|shape| shape.bytes());
        let peak = plan.peak().saturating_add(filter.unwrap_or(0));
        let bound = if plan.is_known() { "" } else { "at most " };
        let more = if repeatable {
            "more are counted in a pass of their own"
        } else {
            "more are refused, unless -n says how many"
        };
        let filter = filter.map_or_else(String::new, |bytes| {
            format!("; the filter takes about {}", format_size(bytes))
        });
        let plan = format!(
            "memory {bound}{}: up to {} distinct keys are counted by their digests, {more}{filter}",
            format_size(peak.min(self.budget)),
            format_count(most_slots / 4 * 3),
        );
        report::plan(&self.args.run, &plan);
    }

    /// Refuses a shape that the memory does not hold beside `other` bytes.
    fn fits(&self, shape: &Shape, other: u64) -> Result<()> {
        if shape.bytes().saturating_add(other) > self.usable {
            bail!(
                "the filter needs {}, the memory budget is {}: allow more with --memory, or \
                 accept a larger error with -p",
                format_size(budget::needed(shape.bytes())),
                format_size(self.budget)
            );
        }
        Ok(())
    }

    /// Reads the lists once into a filter; more than `most` keys are refused.
    fn one_pass(&mut self, shape: Shape, items: u64, most: Option<u64>) -> Result<Filled> {
        let mut target = Target::new(shape, items, self.error, self.usable);
        let intake = &mut self.intake;
        let mut keys = 0;
        let rules = intake.keys();
        let remedy = match &self.args.like {
            Some(like) => format!(
                "{} is made for no more: build it with a larger -n, and this one like it again",
                display_name(like)
            ),
            None => "Give a larger -n, or leave it out to have the keys counted".to_owned(),
        };
        self.walk.each(
            &rules,
            &mut |batch: &Batch, keyed: &mut KeyedLines, place: &Place| {
                intake.take(batch, keyed, place)?;
                keys += target.insert(intake.identity(), keyed.digests())?;
                if let Some(most) = most.filter(|&most| keys > most) {
                    bail!(
                        "{}, up to line {}: more than {} distinct keys came; nothing was written. \
                         {remedy}",
                        place.name,
                        place.line + batch.len() as u64 - 1,
                        format_count(most)
                    );
                }
                Ok(Flow::GoOn)
            },
        )?;
        intake.refuse_bad()?;
        Ok(Filled::of(target.finish(intake.identity())?, keys))
    }

    /// A set of digests that grows with its keys.
    fn digests(&mut self) -> Result<Filled> {
        let estimate = sample::estimate_paths(&self.walk.files, self.walk.options.terminator);
        let slots = estimate
            .filter(Estimate::is_mostly_distinct)
            .map(|estimate| DigestSet::slots_for(estimate.lines))
            .filter(|&slots| slots <= self.usable / 8)
            .unwrap_or(FIRST_SLOTS);
        let plan = format!(
            "a set of digests, 10.7 to 21.4 bytes a key, in up to {}",
            format_size(self.budget)
        );
        report::plan(&self.args.run, &plan);
        self.one_pass(Shape::Digests(slots), 0, None)
    }

    /// Counts the distinct keys first.
    fn counted(&mut self) -> Result<Filled> {
        let repeatable = self.walk.is_repeatable();
        if self.counts_repeats() && !repeatable {
            bail!(
                "this kind counts repeats as well, so that the lists are read twice, which a pipe \
                 cannot be: give the number of distinct keys with -n, or put them into a file"
            );
        }
        let estimate = sample::estimate_paths(&self.walk.files, self.walk.options.terminator);
        let plan = Plan::digests(self.budget, estimate.as_ref())?;
        self.announce_count(&plan, estimate.as_ref(), repeatable);
        let mut seen = Seen::new(&plan, self.intake.identity().clone(), WhenFull::Stop)?;
        let mut fresh = Vec::new();
        let (intake, budget) = (&mut self.intake, self.budget);
        let keys = intake.keys();
        self.walk.each(
            &keys,
            &mut |batch: &Batch, keyed: &mut KeyedLines, place: &Place| {
                intake.take(batch, keyed, place)?;
                let digests = keyed.digests();
                fresh.resize(mask_words(digests.len()), 0);
                let taken = seen.take(digests, &mut fresh)?;
                let poured = !matches!(seen.filter(), Some(AnyFilter::DigestSet(_)));
                if matches!(taken, Taken::Only(_)) || (poured && !repeatable) {
                    return Err(too_many(seen.new_lines(), budget, repeatable));
                }
                Ok(Flow::GoOn)
            },
        )?;
        intake.refuse_bad()?;
        let counted = seen.new_lines();
        let missed = seen.expected_loss();
        if let Some(AnyFilter::DigestSet(set)) = seen.into_filter()
            && !self.counts_repeats()
        {
            let shape = self.counted_shape(counted.max(1))?;
            self.announce(&shape, counted.max(1), "");
            if self.fits(&shape, set.slots() * 8).is_ok() {
                let mut target = Target::new(shape, counted.max(1), self.error, self.usable);
                target.pour(self.intake.identity(), set)?;
                let filter = target.finish(self.intake.identity())?;
                return Ok(Filled::of(filter, counted));
            }
            if !repeatable {
                return Err(too_many(counted, budget, false));
            }
        }
        // What the count may have missed, and five standard deviations.
        let items = counted
            .saturating_add(whole(missed + 5.0 * missed.sqrt()))
            .max(1);
        let shape = self.counted_shape(items)?;
        self.announce(&shape, items, ", in a second pass");
        self.fits(&shape, 0)?;
        self.intake.rewind();
        self.walk.label = "build, second pass";
        self.one_pass(shape, items, self.most(items))
    }
}

/// More keys than can be counted.
fn too_many(counted: u64, budget: u64, repeatable: bool) -> anyhow::Error {
    let way_out = if repeatable {
        "allow more with --memory, or give their number with -n"
    } else {
        "give their number with -n, allow more with --memory, or put them into a file, which \
         can be read twice"
    };
    anyhow!(
        "more than {} distinct keys cannot be counted in a memory of {}: {way_out}",
        format_count(counted),
        format_size(budget)
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive count; the cast saturates"
)]
fn whole(count: f64) -> u64 {
    count.ceil() as u64
}
