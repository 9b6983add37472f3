//! Which lane holds which generation, when the next one begins, and what is
//! to be cleared.
//!
//! Owns the state of a window besides its bits. It touches no words: it says
//! which of them are due to be cleared, and of which lanes.
//!
//! From the lane that is being filled on, lanes are in this order, around the
//! ring:
//!
//! ```text
//! filling | free ... | clearing ... | expired ... | live, oldest ... newest |
//! ```
//!
//! A pass over the words clears all lanes that had expired when it began. It
//! moves on a little at each insertion, fast enough to be over when the
//! generation that is being filled is full. So a free lane is there when it is
//! needed, as long as a lane expires whenever a generation begins.
//!
//! In a window of time a generation begins each time that a part of it has gone by,
//! also while no keys come, so that a key with an earlier time has its own one to
//! go to. One from before all of them gets generations on the old side, if the
//! lanes there are clean.

use crate::error::{Error, Result};
use crate::geometry::window::WindowGeometry;
use crate::sizing::generation_keys;

/// What to do when more keys come in the span of a time window than it was
/// planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overload {
    /// Forget the oldest generation before its time: the window is shorter
    /// for a while, and says so.
    Shorten,
    /// Refuse new keys with an [`Error::Full`] until time has passed.
    Refuse,
}

/// What a window spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSpan {
    /// The last keys, as many as the window was planned for.
    Keys,
    /// A stretch of time.
    Time {
        /// Its length, in the caller's unit.
        ticks: u64,
        /// What to do with more keys than planned.
        overload: Overload,
    },
}

/// One generation of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Generation {
    /// The time at which it began; 0 in a window of keys.
    pub first: u64,
    /// The time of its last insertion; 0 in a window of keys.
    pub last: u64,
    /// Insertions that changed a bit of it.
    pub keys: u64,
}

/// The part of the state that a file records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RingState {
    pub(crate) span: WindowSpan,
    pub(crate) filling: u32,
    pub(crate) expired: u32,
    pub(crate) clearing: u32,
    /// Words that the pass has behind it.
    pub(crate) cleared: u64,
    pub(crate) now: u64,
    pub(crate) shortened: u64,
    /// Nothing from before this time was kept for its whole span.
    pub(crate) complete_since: u64,
    /// The one that is being filled, then the live ones, newest first.
    pub(crate) generations: Vec<Generation>,
}

/// Words to clear, and the lanes of each position to clear in them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clearing {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) lanes: u64,
}

/// Words that an insertion may clear when the clock asks for a new generation
/// and no lane is free: some microseconds. Then few keys come, and the work
/// that is usually shared among many falls to them.
const OVERDUE_WORDS: u64 = 4096;

/// See the module.
#[derive(Debug)]
pub(super) struct Ring {
    lanes: u32,
    /// Keys that fill a generation.
    capacity: u64,
    /// Words of the window.
    words: u64,
    /// Ticks after which the next generation is due; `u64::MAX` for keys.
    generation_ticks: u64,
    /// Keys that a window of keys is to have; `u64::MAX` for time.
    window_keys: u64,
    state: RingState,
    /// Insertions that changed a bit in all generations but the oldest one, if
    /// there are others. Follows from the state.
    newer: u64,
    /// Words that every so many keys of a generation (less one, a bit mask) are
    /// cleared, unless the clock presses.
    share: u64,
    between: u64,
    /// The lanes that are answered, as bits. Follows from the state.
    answered: u64,
    /// The lanes that are being cleared, as bits. Follows from the state.
    clearing: u64,
}

impl Ring {
    /// Of an empty window, planned for so many keys.
    pub(super) fn new(span: WindowSpan, items: u64, geometry: WindowGeometry) -> Self {
        Self::build(
            RingState {
                span,
                filling: 0,
                expired: 0,
                clearing: 0,
                cleared: 0,
                now: 0,
                shortened: 0,
                complete_since: 0,
                generations: vec![Generation::default()],
            },
            items,
            geometry,
        )
    }

    /// Of a file. `None` if the state is none that a window can be in.
    pub(super) fn restore(state: RingState, items: u64, geometry: WindowGeometry) -> Option<Self> {
        let (lanes, words) = (geometry.lanes(), geometry.words());
        let capacity = generation_keys(geometry, items);
        let used = u64::from(state.expired) + u64::from(state.clearing);
        let generations = &state.generations;
        let in_order = generations.iter().try_fold(state.now, |limit, generation| {
            let fits = generation.first <= generation.last
                && generation.last <= limit
                && generation.keys <= capacity;
            fits.then_some(generation.first)
        });
        let pass = if state.clearing > 0 { words } else { 1 };
        let possible = state.filling < lanes
            && (1..lanes as usize).contains(&generations.len())
            && used + generations.len() as u64 <= u64::from(lanes)
            && state.cleared < pass
            && in_order.is_some()
            && !matches!(state.span, WindowSpan::Time { ticks: 0, .. });
        possible.then(|| Self::build(state, items, geometry))
    }

    fn build(state: RingState, items: u64, geometry: WindowGeometry) -> Self {
        let (lanes, words) = (geometry.lanes(), geometry.words());
        let capacity = generation_keys(geometry, items);
        let (generation_ticks, window_keys) = match state.span {
            WindowSpan::Keys => (u64::MAX, items),
            WindowSpan::Time { ticks, .. } => {
                (ticks.div_ceil(u64::from(geometry.generations())), u64::MAX)
            }
        };
        // A few words for each key, but not at each.
        let between = if capacity < 64 { 0 } else { 7 };
        let mut ring = Self {
            lanes,
            capacity,
            words,
            generation_ticks,
            window_keys,
            newer: 0,
            share: words.div_ceil(capacity / (between + 1)),
            between,
            state,
            answered: 0,
            clearing: 0,
        };
        ring.answered = ring.answered_at(ring.state.now);
        ring.clearing = ring.lanes_to_clear();
        ring.count_newer();
        ring
    }

    pub(super) const fn state(&self) -> &RingState {
        &self.state
    }

    /// Keys that fill a generation.
    pub(super) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The generations that are answered or being filled, newest first.
    pub(super) fn generations(&self) -> &[Generation] {
        &self.state.generations
    }

    /// The lane that is being filled, as a bit.
    #[inline(always)]
    pub(super) const fn filling(&self) -> u64 {
        1 << self.state.filling
    }

    /// The lanes that are answered, as bits.
    #[inline(always)]
    pub(super) const fn answered(&self) -> u64 {
        self.answered
    }

    /// The lanes that are answered at a time from now on.
    pub(super) fn answered_at(&self, now: u64) -> u64 {
        let oldest = self.oldest_wanted(now);
        let mut answered = 0;
        for (age, generation) in (0..).zip(&self.state.generations) {
            if generation.keys > 0 && generation.last >= oldest {
                answered |= 1 << self.lane(age);
            }
        }
        answered
    }

    /// The age in generations of the newest of some lanes (not none): 0 for
    /// the one that is being filled.
    pub(super) const fn age(&self, lanes: u64) -> u32 {
        // Turned so that the lane that is being filled is the highest bit.
        let up = lanes << (self.lanes - 1 - self.state.filling);
        let around = lanes >> self.state.filling >> 1;
        let turned = (up | around) << (64 - self.lanes);
        turned.leading_zeros()
    }

    /// A time since which all keys are answered.
    pub(super) fn complete_since(&self) -> u64 {
        self.oldest_wanted(self.state.now)
            .max(self.state.complete_since)
    }

    /// The oldest time that is in the window.
    const fn oldest_wanted(&self, now: u64) -> u64 {
        match self.state.span {
            WindowSpan::Keys => 0,
            WindowSpan::Time { ticks, .. } => now.saturating_sub(ticks),
        }
    }

    /// The lane of an age.
    const fn lane(&self, age: u32) -> u32 {
        (self.state.filling + self.lanes - age) % self.lanes
    }

    fn live(&self) -> u32 {
        // At most 63, by construction.
        u32::try_from(self.state.generations.len()).unwrap_or(1) - 1
    }

    fn free(&self) -> u32 {
        self.lanes - 1 - self.live() - self.state.expired - self.state.clearing
    }

    /// Goes on to a time; an earlier one than before changes nothing.
    pub(super) fn advance(&mut self, now: u64) {
        if now <= self.state.now || self.state.span == WindowSpan::Keys {
            return;
        }
        self.state.now = now;
        self.expire_past();
        self.turn();
        self.answered = self.answered_at(now);
    }

    /// Expires what has left the window, but for the generation that is being
    /// filled. One whose last key has left it is answered no more, but stays
    /// as long as a late key could still come to it: or each such key would begin
    /// another one, and each of these be cleared in a pass of its own.
    fn expire_past(&mut self) {
        let wanted = self.oldest_wanted(self.state.now);
        while let [.., newer, oldest] = &self.state.generations[..]
            && oldest.last < wanted
            && newer.first <= wanted
        {
            self.expire_oldest();
        }
    }

    /// Whether a generation may begin without another one being forgotten.
    fn can_begin(&self) -> bool {
        let wanted = self.oldest_wanted(self.state.now);
        let oldest = self.state.generations.last();
        let replaces = oldest.is_some_and(|oldest| oldest.last < wanted || oldest.keys == 0);
        self.free() > 0 && (self.live() < self.lanes - 2 || replaces)
    }

    /// Whether the clock asks for a new generation.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        let filling = self.state.generations[0];
        self.state.now - filling.first >= self.generation_ticks
    }

    /// Begins the generations that the clock asks for, as long as a lane is free
    /// and none has to be forgotten for them.
    pub(super) fn turn(&mut self) {
        let now = self.state.now;
        while self.is_due() {
            let filling = self.state.generations[0];
            if filling.keys == 0 && self.live() == 0 {
                self.state.generations[0] = Generation {
                    first: now,
                    last: now,
                    keys: 0,
                };
                return;
            }
            if !self.can_begin() {
                return;
            }
            if filling.last < self.oldest_wanted(now) {
                // All have left the window.
                self.begin(now);
                while self.live() > 0 {
                    self.expire_oldest();
                }
                return;
            }
            // One after the other, but behind what the last one has.
            let parts = (filling.last - filling.first).div_ceil(self.generation_ticks);
            let gone = parts.max(1).saturating_mul(self.generation_ticks);
            self.begin(filling.first.saturating_add(gone).min(now));
        }
    }

    /// Whether the oldest generation may go before its time: for a window of
    /// keys that time is when there are enough newer ones.
    const fn may_shorten(&self) -> bool {
        !matches!(
            self.state.span,
            WindowSpan::Time {
                overload: Overload::Refuse,
                ..
            }
        )
    }

    /// Whether the generation that is being filled takes another key.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.state.generations[0].keys < self.capacity
    }

    /// Begins a new generation because the one that is being filled is full.
    ///
    /// # Errors
    /// If the window is overloaded and must not be shortened.
    pub(super) fn make_room(&mut self) -> Result<()> {
        // A lane is free unless the state came from a strange file.
        if self.may_shorten() && self.free() > 0 {
            self.begin(self.state.now);
            return Ok(());
        }
        Err(Error::Full {
            kind: "window",
            keys: self.held(),
            remedy: "wait until time has passed, plan for more keys, or let the window be shortened",
        })
    }

    /// Takes the next free lane, which there is, for a generation that begins at
    /// a time.
    fn begin(&mut self, first: u64) {
        self.state.filling = (self.state.filling + 1) % self.lanes;
        let next = Generation {
            first,
            last: first,
            keys: 0,
        };
        self.state.generations.insert(0, next);
        // So many are answered at once; that leaves a lane which is free, or is
        // going to be when this generation is full.
        if self.live() > self.lanes - 2 {
            self.shorten();
        }
        self.answered = self.answered_at(self.state.now);
        self.count_newer();
    }

    /// Expires the oldest generation before its time.
    fn shorten(&mut self) {
        let wanted = self.oldest_wanted(self.state.now);
        if self.state.span != WindowSpan::Keys
            && let Some(oldest) = self.state.generations.last()
            && oldest.keys > 0
            && oldest.last >= wanted
        {
            self.state.shortened = self.state.shortened.saturating_add(1);
            self.state.complete_since = oldest.last.saturating_add(1);
        }
        self.expire_oldest();
    }

    fn expire_oldest(&mut self) {
        let oldest = self.state.generations.pop();
        // A lane without a bit is free at once, if it is next to the free ones.
        if !self.is_clean() || oldest.is_some_and(|oldest| oldest.keys > 0) {
            self.state.expired += 1;
        }
        self.count_newer();
    }

    fn count_newer(&mut self) {
        let newer = self.state.generations.split_last();
        self.newer = newer.map_or(0, |(_, newer)| newer.iter().map(|g| g.keys).sum());
    }

    /// Notes an insertion; `changed` if it set a bit.
    #[inline(always)]
    pub(super) fn note(&mut self, changed: bool) {
        let has_older = self.state.generations.len() > 1;
        let filling = &mut self.state.generations[0];
        filling.keys += u64::from(changed);
        filling.last = self.state.now;
        // Else only if it was the first, or the first for long.
        self.answered |= 1 << self.state.filling;
        self.newer += u64::from(changed && has_older);
        if self.newer >= self.window_keys {
            self.expire_more_than_wanted();
        }
    }

    /// Expires generations of a window of keys behind which there are as many
    /// newer keys as it is to have.
    #[cold]
    fn expire_more_than_wanted(&mut self) {
        while self.live() > 0 && self.newer >= self.window_keys {
            self.expire_oldest();
        }
        self.answered = self.answered_at(self.state.now);
    }

    /// Whether a time is before the window.
    pub(super) fn is_past(&self, time: u64) -> bool {
        time < self.oldest_wanted(self.state.now)
    }

    /// The age of the generation that keys of an earlier time belong to: the one
    /// that was being filled then, or else the oldest one.
    fn age_of(&self, time: u64) -> usize {
        let generations = &self.state.generations;
        let age = generations.iter().position(|g| g.first <= time);
        age.unwrap_or(generations.len() - 1)
    }

    /// The age of the generation that keys of a time, now or earlier, belong to.
    pub(super) fn age_at(&self, time: u64) -> usize {
        match time < self.state.now {
            true => self.age_of(time),
            false => 0,
        }
    }

    /// The age of the generation for a key of an earlier time that is in the window.
    pub(super) fn age_back_to(&mut self, time: u64) -> usize {
        self.reach_back(time);
        self.age_of(time)
    }

    /// The age of the first generation with room, from one on to newer ones.
    /// `None` if all of them are full.
    pub(super) fn with_room(&self, own: usize) -> Option<usize> {
        let has_room = |&age: &usize| self.state.generations[age].keys < self.capacity;
        (0..=own).rev().find(has_room)
    }

    /// The lane of an age, as a bit.
    pub(super) fn lane_of(&self, age: usize) -> u64 {
        // At most 63.
        1 << self.lane(u32::try_from(age).unwrap_or(0))
    }

    /// Adds generations before the oldest one, empty ones, back to a time. As far
    /// as lanes are free, and next to it.
    fn reach_back(&mut self, time: u64) {
        while let Some(oldest) = self.state.generations.last()
            && oldest.first > time
            && self.is_clean()
            && self.live() < self.lanes - 2
        {
            let first = oldest.first.saturating_sub(self.generation_ticks);
            self.state.generations.push(Generation {
                first,
                last: first,
                keys: 0,
            });
        }
        if let Some(oldest) = self.state.generations.last_mut() {
            oldest.first = oldest.first.min(time);
        }
        self.count_newer();
    }

    /// Notes an insertion of an earlier time into the generation of an age.
    pub(super) fn note_late(&mut self, age: usize, time: u64, changed: bool) {
        let generation = &mut self.state.generations[age];
        generation.keys += u64::from(changed);
        generation.last = generation.last.max(time);
        self.answered |= self.lane_of(age);
        self.count_newer();
    }

    /// Keys that a time window takes at a time, now or earlier, before it is
    /// overloaded.
    pub(super) fn room_at(&self, time: u64) -> u64 {
        let taken = &self.state.generations[..=self.age_at(time)];
        let next = match self.may_shorten() && self.can_begin() {
            true => self.capacity,
            false => 0,
        };
        taken.iter().fold(next, |room, generation| {
            room.saturating_add(self.capacity.saturating_sub(generation.keys))
        })
    }

    /// What an insertion has to clear. The caller clears it.
    #[inline(always)]
    pub(super) fn clearing(&mut self) -> Option<Clearing> {
        if self.is_clean() {
            return None;
        }
        if self.is_due() {
            return self.clear_some(self.share.max(OVERDUE_WORDS));
        }
        if self.state.generations[0].keys & self.between != 0 {
            return None;
        }
        self.clear_some(self.share)
    }

    /// The lanes that the pass under way clears. They stay the same as others
    /// begin and expire.
    fn lanes_to_clear(&self) -> u64 {
        let first = 1 + self.free();
        (first..first + self.state.clearing).fold(0, |lanes, place| {
            lanes | 1 << ((self.state.filling + place) % self.lanes)
        })
    }

    /// The next words to clear, at most so many.
    pub(super) fn clear_some(&mut self, most: u64) -> Option<Clearing> {
        if self.state.clearing == 0 {
            if self.state.expired == 0 {
                return None;
            }
            self.state.clearing = std::mem::take(&mut self.state.expired);
            self.state.cleared = 0;
            self.clearing = self.lanes_to_clear();
        }
        let lanes = self.clearing;
        let from = self.state.cleared;
        let to = self.words.min(from.saturating_add(most));
        self.state.cleared = to;
        if to == self.words {
            self.state.clearing = 0;
            self.state.cleared = 0;
        }
        Some(Clearing { from, to, lanes })
    }

    /// Whether there is anything to clear.
    pub(super) const fn is_clean(&self) -> bool {
        self.state.expired + self.state.clearing == 0
    }

    /// Insertions that changed a bit, in the generations that are answered.
    pub(super) fn held(&self) -> u64 {
        (0..)
            .zip(&self.state.generations)
            .filter(|&(age, _)| self.answered >> self.lane(age) & 1 == 1)
            .fold(0, |sum, (_, generation)| {
                sum.saturating_add(generation.keys)
            })
    }
}
