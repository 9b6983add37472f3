//! `BF.MERGE`: filters that do not grow, reserved alike, joined.
//!
//! Owns what may be merged, and that a merge of large filters keeps nobody waiting: it is
//! done a part at a time between the commands of others, while the client that
//! asked waits. Each part goes to replicas as a command, so that they are equal to
//! the bit whatever is added meanwhile. A new key answers nothing until the merge is over, and
//! is removed if it fails.

use petal::{AnyFilter, Bloom, Contains as _, Identity, Merge as _, SplitGeometry};

use crate::bloom::BloomKey;
use crate::bloom::filter::{Body, Filter};
use crate::bloom::spec::whole;
use crate::commands::bf::most_for;
use crate::engine::later::{Job, Step};
use crate::engine::{self, Arg, Call, Failure, Found, Outcome};
use crate::numbers;

/// Bytes that are merged at once: a millisecond, or a few where memory is touched for the
/// first time.
const AT_ONCE: u64 = 1 << 20;

/// The filter of a key, if it is one that can be merged.
fn mergeable(filter: &Filter) -> Outcome<&Bloom> {
    match &filter.body {
        Body::Own(AnyFilter::Bloom(bloom)) => Ok(bloom),
        _ => Err(
            "ERR only filters that do not grow are merged: reserve them with NONSCALING, \
                  alike and with one SEED"
                .into(),
        ),
    }
}

/// What the keys of a merge are, all checked.
struct Plan {
    /// The filter that is merged into is there.
    exists: bool,
    /// Bytes of each filter.
    bytes: u64,
    capacity: u64,
    /// Items of all filters together.
    items: u64,
    others: Vec<Other>,
}

/// One of the other filters, as it was when the merge began.
#[derive(Clone)]
struct Other {
    items: u64,
    /// What tells it from another one under the same name.
    epoch: Option<u64>,
}

impl Plan {
    /// Of the arguments before `end`.
    fn of(call: &Call<'_>, end: usize) -> Outcome<Self> {
        let mut plan = Self {
            exists: true,
            bytes: 0,
            capacity: 0,
            items: 0,
            others: Vec::new(),
        };
        let mut shape: Option<(Identity, SplitGeometry)> = None;
        for index in (2..end).chain([1]) {
            let mut key = call.look(index);
            let value = match key.value::<BloomKey>() {
                Found::Value(value) => value,
                Found::Nothing if index == 1 => {
                    plan.exists = false;
                    continue;
                }
                Found::Nothing => return Err("ERR not found".into()),
                Found::Other => return Err(Failure::Type),
            };
            let filter = value.filter()?;
            let bloom = mergeable(filter)?;
            let own = (bloom.about().identity().clone(), bloom.geometry());
            match &shape {
                Some((identity, _)) if *identity != own.0 => {
                    return Err(
                        "ERR the filters hash their items differently: reserve them \
                                with one SEED"
                            .into(),
                    );
                }
                Some((_, geometry)) if *geometry != own.1 => {
                    return Err(
                        "ERR the filters differ in size: reserve them with the same \
                                error rate and capacity"
                            .into(),
                    );
                }
                Some(_) => {}
                None => shape = Some(own),
            }
            plan.bytes = filter.bytes();
            plan.capacity = filter.capacity();
            plan.items = plan.items.saturating_add(filter.items());
            if index > 1 {
                plan.others.push(Other {
                    items: filter.items(),
                    epoch: value.epoch(),
                });
            }
        }
        Ok(plan)
    }

    fn too_many(&self) -> Failure {
        format!(
            "ERR the merged filter would pass its error rate: it is for {} items",
            self.capacity
        )
        .into()
    }
}

/// `BF.MERGE key other ...`: makes the filter that of the items of all. It is
/// made if it is not there.
pub(crate) fn merge(call: &Call<'_>) -> Outcome {
    if call.len() < 3 {
        return Err(Failure::Arity);
    }
    let plan = Plan::of(call, call.len())?;
    let parts = plan.bytes.saturating_mul(plan.others.len() as u64);
    if parts > AT_ONCE && call.may_wait() {
        return merge_later(call, &plan);
    }
    let first = if plan.exists { 1 } else { 2 };
    if plan.items > plan.capacity && !call.must_obey() && !fits(call, first)? {
        return Err(plan.too_many());
    }
    let mut target = call.key(1);
    if !plan.exists {
        let copied = copied(call, 2, most_for(call))?;
        target.set(copied);
    }
    let Found::Value(value) = target.value::<BloomKey>() else {
        return Err(Failure::Type);
    };
    for index in 2..call.len() {
        join(call, value, index, |bloom, other| bloom.union_with(other))?;
    }
    value.change(|filter| {
        let bloom = mergeable(filter)?;
        filter.spec.items = whole(bloom.estimated_len()).min(plan.items);
        Ok(())
    })?;
    call.replicate_as_is();
    call.notify(c"bloom.merge", 1);
    call.ok();
    Ok(())
}

/// A copy of the filter of a key.
fn copied(call: &Call<'_>, index: usize, most: u64) -> Outcome<BloomKey> {
    let mut key = call.look(index);
    match key.value::<BloomKey>() {
        Found::Value(value) => engine::types::copy_of(value, most),
        _ => Err("ERR not found".into()),
    }
}

/// Joins another key's filter to this one.
fn join(
    call: &Call<'_>,
    value: &mut BloomKey,
    index: usize,
    join: impl FnOnce(&mut Bloom, &Bloom) -> petal::Result<()>,
) -> Outcome {
    if call.arg(1) == call.arg(index) {
        return Ok(());
    }
    let mut key = call.look(index);
    let Found::Value(other) = key.value::<BloomKey>() else {
        return Err("ERR not found".into());
    };
    let other = mergeable(other.filter()?)?;
    value.merge(|filter| match &mut filter.body {
        Body::Own(AnyFilter::Bloom(bloom)) => Ok(join(bloom, other)?),
        _ => Err("ERR the filter is another one now".into()),
    })
}

/// Whether the union of all filters keeps the error: tried on a copy of the one that is
/// the first argument of them, since items that are in several count once.
fn fits(call: &Call<'_>, first: usize) -> Outcome<bool> {
    let mut tried = copied(call, first, u64::MAX)?;
    for index in 2..call.len() {
        join(call, &mut tried, index, |bloom, other| {
            bloom.union_with(other)
        })?;
    }
    let filter = tried.filter()?;
    Ok(mergeable(filter)?.error_now() <= filter.spec.error)
}

/// Begins a merge that is done in parts. Whether so many items fit is told by their
/// number alone: an item that is in several filters counts several times.
fn merge_later(call: &Call<'_>, plan: &Plan) -> Outcome {
    if plan.items > plan.capacity {
        return Err(plan.too_many());
    }
    if !plan.exists {
        let mut key = call.look(2);
        let Found::Value(like) = key.value::<BloomKey>() else {
            return Err("ERR not found".into());
        };
        let mut empty = like
            .filter()?
            .empty_one(most_for(call))
            .map_err(super::options::refused)?;
        drop(key);
        empty.spec.merging = true;
        let creation = super::options::creation_of(&empty);
        call.key(1).set(BloomKey::new(empty));
        super::bf::send_creation(call, &creation, &[]);
    }
    let target = match call.look(1).value::<BloomKey>() {
        Found::Value(target) => target.epoch(),
        _ => return Err("ERR not found".into()),
    };
    let job = Parts {
        target,
        is_new: !plan.exists,
        others: plan.others.clone(),
        other: 0,
        from: 0,
        words: plan.bytes / 8,
    };
    engine::later::begin(call, Box::new(job))
}

/// A merge that has begun. The arguments of its steps are those of the command.
struct Parts {
    /// What tells the filter that is merged into from another one under the same name.
    target: Option<u64>,
    /// Whether it was made for the merge.
    is_new: bool,
    others: Vec<Other>,
    /// Which of them is being merged, and from which word on.
    other: usize,
    from: u64,
    words: u64,
}

impl Job for Parts {
    fn step(&mut self, call: &Call<'_>) -> Outcome<Step> {
        let stepped = self.advance(call);
        if stepped.is_err() && self.is_new {
            self.give_up(call);
        }
        stepped
    }
}

impl Parts {
    fn advance(&mut self, call: &Call<'_>) -> Outcome<Step> {
        let index = 2 + self.other;
        let Some(other) = self.others.get(self.other) else {
            call.notify(c"bloom.merge", 1);
            return Ok(Step::Done);
        };
        let last = self.from + AT_ONCE / 8 >= self.words;
        let done = last && self.other + 1 == self.others.len();
        let part = Part {
            from: self.from,
            items: if last && call.arg(1) != call.arg(index) {
                other.items
            } else {
                0
            },
            done,
        };
        // Before the target is opened, which it may be.
        let epoch = match call.look(index).value::<BloomKey>() {
            Found::Value(now) => now.epoch(),
            Found::Nothing => return Err("ERR not found".into()),
            Found::Other => return Err(Failure::Type),
        };
        if epoch != other.epoch {
            return Err("ERR a filter that is being merged is another one now".into());
        }
        let mut target = call.key(1);
        let Found::Value(value) = target.value::<BloomKey>() else {
            return Err("ERR the filter that is merged into is not there any more".into());
        };
        if value.epoch() != self.target {
            return Err("ERR the filter that is merged into is another one now".into());
        }
        part.join(call, value, index)?;
        part.send(call, index);
        if last {
            (self.other, self.from) = (self.other + 1, 0);
        } else {
            self.from += AT_ONCE / 8;
        }
        Ok(Step::More)
    }

    /// Removes the new key, if it is still that.
    fn give_up(&self, call: &Call<'_>) {
        let mut target = call.key(1);
        if matches!(target.value::<BloomKey>(), Found::Value(value) if value.epoch() == self.target)
        {
            target.delete();
            call.changed(1);
            call.replicate(c"del", &[Arg::Own(1)]);
        }
    }
}

/// A part of a merge.
struct Part {
    /// The first of its words.
    from: u64,
    /// Items that count from now on.
    items: u64,
    /// Whether it is the last one of all.
    done: bool,
}

impl Part {
    /// Joins the part of another key's filter.
    fn join(&self, call: &Call<'_>, value: &mut BloomKey, index: usize) -> Outcome {
        join(call, value, index, |bloom, other| {
            bloom.union_part(other, self.from, AT_ONCE / 8)
        })?;
        value.merge(|filter| {
            filter.spec.items = filter.spec.items.saturating_add(self.items);
            filter.spec.merging &= !self.done;
            Ok(())
        })?;
        call.changed(1);
        Ok(())
    }

    /// Sends it to replicas.
    fn send(&self, call: &Call<'_>, index: usize) {
        let (from, items) = (self.from.to_string(), self.items.to_string());
        let mut args = vec![
            Arg::Own(1),
            Arg::Own(index),
            Arg::Bytes(from.as_bytes()),
            Arg::Bytes(items.as_bytes()),
        ];
        if self.done {
            args.push(Arg::Bytes(b"DONE"));
        }
        call.replicate(c"bf.mergepart", &args);
    }
}

/// `BF.MERGEPART key other word items [DONE]`: how parts of a merge reach replicas.
pub(crate) fn merge_part(call: &Call<'_>) -> Outcome {
    let done = call.len() == 6 && call.is(5, "DONE");
    if call.len() != 5 && !done {
        return Err(Failure::Arity);
    }
    let number =
        |index| numbers::int(call.arg(index)).and_then(|number| u64::try_from(number).ok());
    let (from, items) = number(3).zip(number(4)).ok_or("ERR bad part")?;
    let part = Part { from, items, done };
    if !call.must_obey() {
        part.check(call)?;
    }
    let mut target = call.key(1);
    let Found::Value(value) = target.value::<BloomKey>() else {
        return Err("ERR not found".into());
    };
    part.join(call, value, 2)?;
    call.replicate_as_is();
    call.ok();
    Ok(())
}

impl Part {
    /// Refuses what no merge of this server would send.
    fn check(&self, call: &Call<'_>) -> Outcome {
        let plan = Plan::of(call, 3)?;
        if !plan.exists {
            return Err("ERR not found".into());
        }
        let others: u64 = plan.others.iter().map(|other| other.items).sum();
        let own = plan.items.saturating_sub(others);
        if self.from.saturating_mul(8) >= plan.bytes
            || self.items > others
            || own.saturating_add(self.items) > plan.capacity
        {
            return Err("ERR bad part".into());
        }
        Ok(())
    }
}
