//! What a run with `--window` remembers.
//!
//! Owns [`Memory`]: the library's window, what happens when it is full, and the
//! expected number of lines wrongly dropped. It sees digests and times, no
//! lines.

use std::ops::Range;

use anyhow::Result;
use petal::sizing::window_error_at;
use petal::{Contains, Digests, Window, WindowSpan, mask_words};

use crate::args::WhenFull;
use crate::mask;
use crate::seen::Loss;

/// Share of the lines read so far after which the error is computed again.
const CHECKPOINTS: u64 = 32;

/// Lines between two computations at least: one takes some microseconds.
const LEAST_BETWEEN: u64 = 64;

/// The window and what it has cost.
#[derive(Debug)]
pub(super) struct Memory {
    window: Window,
    when_full: WhenFull,
    loss: Loss,
    read: u64,
    /// Lines read since the error was computed.
    pending: u64,
    /// Lines that came while the window was full, and were not remembered.
    pub(super) passed: u64,
    /// The least that the window has covered, in microseconds, since lines were
    /// first forgotten early.
    pub(super) shortest: Option<u64>,
    /// A part of the caller's batch, and its answers.
    part: Digests,
    mask: Vec<u64>,
}

impl Memory {
    /// Around an empty window.
    pub(super) fn new(window: Window, when_full: WhenFull) -> Self {
        let identity = window.about().identity();
        Self {
            part: Digests::new(identity.hasher.clone(), identity.key_type),
            window,
            when_full,
            loss: Loss::default(),
            read: 0,
            pending: 0,
            passed: 0,
            shortest: None,
            mask: Vec::new(),
        }
    }

    pub(super) const fn window(&self) -> &Window {
        &self.window
    }

    /// Lines that were new, and remembered or passed on.
    pub(super) const fn new_lines(&self) -> u64 {
        self.loss.lines()
    }

    /// Goes on to a time in microseconds. What has left the window is cleared at
    /// once: a pass over the memory for a fourteenth of the window at most.
    /// So what is forgotten does not depend on who idles when.
    pub(super) fn advance(&mut self, now: u64) -> Result<()> {
        self.window.advance(now);
        while self.window.tend(u64::MAX)? {}
        Ok(())
    }

    /// A time before which the passing of time changes no answer: no step
    /// begins, and nothing leaves the window. At least the next one.
    pub(super) fn steady_until(&self) -> u64 {
        let WindowSpan::Time { ticks, .. } = self.window.span() else {
            return u64::MAX;
        };
        let step = ticks.div_ceil(u64::from(self.window.geometry().generations()));
        let mut generations = (0..).map_while(|age| self.window.generation(age));
        let next = generations
            .next()
            .map_or(0, |filling| filling.first.saturating_add(step));
        let leaves = generations
            .filter(|generation| generation.keys > 0)
            .map(|generation| generation.last.saturating_add(ticks).saturating_add(1))
            .filter(|&leaves| leaves > self.window.now());
        leaves
            .fold(next, u64::min)
            .max(self.window.now().saturating_add(1))
    }

    /// Takes digests of a batch of one time, which is in the window, in order: bit `i` of `fresh` becomes 1 where digest
    /// `i` was not seen within the window. Returns where it stopped: before
    /// the end of `run` if the window is full and the run is to end.
    pub(super) fn take(
        &mut self,
        digests: &Digests,
        run: Range<usize>,
        time: u64,
        fresh: &mut [u64],
    ) -> Result<usize> {
        let Range { mut start, end } = run;
        while start < end {
            let most = self.until_checkpoint();
            if most == 0 {
                self.checkpoint();
                continue;
            }
            let count = usize::try_from(most).unwrap_or(usize::MAX).min(end - start);
            let new = if self.may_be_full_after(count as u64, time) {
                match self.take_one(digests, start, time)? {
                    One::New => {
                        fresh[start / 64] |= 1 << (start % 64);
                        1
                    }
                    One::Old => 0,
                    One::Full => return Ok(start),
                }
            } else {
                self.part.clear();
                self.part.extend_from(digests, start..start + count)?;
                self.mask.resize(mask_words(count), 0);
                self.insert_part(time)?;
                mask::copy(fresh, start, &self.mask, 0, count);
                self.count(count as u64, mask::count(&self.mask[..mask_words(count)]));
                start += count;
                continue;
            };
            self.count(1, new);
            start += 1;
        }
        Ok(end)
    }

    /// Inserts a part of a batch, and takes note if that shortens the window.
    fn insert_part(&mut self, time: u64) -> Result<()> {
        let before = self.window.shortened();
        self.window
            .insert_digests_at(&self.part, time, &mut self.mask)?;
        if self.window.shortened() > before {
            let since = self.window.complete_since();
            let covered = self.window.now().saturating_sub(since);
            self.shortest = Some(self.shortest.map_or(covered, |least| least.min(covered)));
        }
        Ok(())
    }

    /// Whether the window could get full within so many further lines, where
    /// that matters.
    fn may_be_full_after(&self, lines: u64, time: u64) -> bool {
        self.when_full != WhenFull::Loosen && self.window.room_at(time) < lines
    }

    /// Takes a digest near the moment at which the window is full.
    fn take_one(&mut self, digests: &Digests, at: usize, time: u64) -> Result<One> {
        if self.window.room_at(time) == 0
            && let Some(digest) = digests.get(at)
            && !self.window.is_remembered_at(digest, time)?
        {
            if self.when_full == WhenFull::Stop {
                return Ok(One::Full);
            }
            self.passed += 1;
            let age = self.window.age_digest(digest)?;
            return Ok(if age.is_none() { One::New } else { One::Old });
        }
        self.part.clear();
        self.part.extend_from(digests, at..at + 1)?;
        self.mask.resize(1, 0);
        self.insert_part(time)?;
        Ok(if self.mask[0] == 1 {
            One::New
        } else {
            One::Old
        })
    }

    fn count(&mut self, read: u64, new: u64) {
        self.loss.add(read, new);
        self.read += read;
        self.pending += read;
    }

    fn until_checkpoint(&self) -> u64 {
        (self.read / CHECKPOINTS)
            .max(LEAST_BETWEEN)
            .saturating_sub(self.pending)
    }

    /// Computes the error from what is in each generation, and adds up what it
    /// has cost.
    fn checkpoint(&mut self) {
        let ages = 0..self.window.geometry().lanes();
        let keys = ages.map_while(|age| self.window.generation(age));
        let collisions = self.window.about().identity().collisions();
        let error = window_error_at(
            self.window.geometry(),
            keys.map(|generation| generation.keys),
            collisions,
        );
        self.loss.checkpoint(error);
        self.pending = 0;
    }

    /// Expected number of lines wrongly dropped so far.
    pub(super) fn expected_loss(&mut self) -> f64 {
        self.checkpoint();
        self.loss.expected()
    }
}

/// What became of a digest.
enum One {
    New,
    Old,
    /// It cannot be remembered, and the run ends.
    Full,
}
