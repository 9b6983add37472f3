//! Helpers that read and prepare batches ahead.
//!
//! Owns the threads, the batches on their way and their order:
//!
//! ```text
//!  free ──▶ read in order ──▶ prepare ──▶ queue in order ──▶ visit ──▶ free
//!           one at a time     helpers                        caller
//! ```
//!
//! There is a fixed number of batches, so the helpers run so far ahead and no
//! farther, and nothing is allocated on the way. Where reading cannot wait
//! for anybody, the caller reads and prepares as well while nothing is ready
//! for it.
//!
//! The threads are not waited for unless they have come to the end: one may
//! be held up by a pipe from which nothing will come.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};

use super::source::Source;
use super::{Flow, Prepare, Unit, Visit};
use crate::input::BLOCK;
use crate::progress::Progress;

/// More threads are not used: visiting is one thread's work, and the memory
/// of a run counts the buffers of so many.
pub(crate) const MOST_THREADS: usize = 8;

/// Batches beside one for each thread: so many may be ready, so that a thread
/// which falls behind does not hold up the others at once.
const AHEAD: usize = 2;

/// While buffers far larger than usual are on their way with so many bytes
/// together, nothing more is read. So there are never more than these, which
/// [`crate::budget::OVERHEAD`] counts, and one of the longest line.
const MOST_LARGE: usize = 1 << 20;

/// The caller's end.
pub(super) struct Team<P: Prepare> {
    shared: Arc<Shared<P>>,
    helpers: Vec<JoinHandle<()>>,
}

struct Shared<P: Prepare> {
    work: Arc<P>,
    source: Mutex<Box<Source>>,
    state: Mutex<State<P::Ready>>,
    /// For helpers: a batch is free, or there is nothing more to do.
    freed: Condvar,
    /// For the caller: the next batch is ready, or it may help.
    advanced: Condvar,
    /// Whether reading never waits; see [`Source::is_prompt`].
    prompt: AtomicBool,
}

struct State<R> {
    free: Vec<Box<Unit<R>>>,
    /// The batches that were read but not visited; `None` is being prepared.
    queue: VecDeque<Slot<R>>,
    /// The number of the first batch in the queue, from 0.
    first: u64,
    /// Nothing more will be read.
    ended: bool,
    /// Nothing is left to read for now, and somebody waits for more.
    idle: bool,
    /// Bytes of large batches on their way.
    large: usize,
    /// Nothing more is wanted.
    stopped: bool,
    /// A helper has died.
    died: bool,
    helpers_waiting: usize,
    caller_waiting: bool,
}

type Slot<R> = Option<Result<Box<Unit<R>>>>;

/// What the caller is to do.
enum Turn<R> {
    Visit(Box<Unit<R>>),
    Idle,
    Help,
    End,
}

impl<P: Prepare> Team<P> {
    /// Starts helpers, one thread fewer than there may be. The source comes
    /// back if there are none.
    pub(super) fn assemble(
        source: Box<Source>,
        work: &Arc<P>,
        threads: usize,
    ) -> Result<Self, Box<Source>> {
        let threads = threads.min(MOST_THREADS);
        if threads < 2 {
            return Err(source);
        }
        let units = threads + AHEAD;
        let free = (0..units)
            .map(|_| Box::new(Unit::new(work.buffer())))
            .collect();
        let shared = Arc::new(Shared {
            work: Arc::clone(work),
            prompt: AtomicBool::new(source.is_prompt()),
            source: Mutex::new(source),
            state: Mutex::new(State {
                free,
                queue: VecDeque::with_capacity(units),
                first: 0,
                ended: false,
                idle: false,
                large: 0,
                stopped: false,
                died: false,
                helpers_waiting: 0,
                caller_waiting: false,
            }),
            freed: Condvar::new(),
            advanced: Condvar::new(),
        });
        let mut helpers = Vec::with_capacity(threads - 1);
        for _ in 1..threads {
            let mine = Arc::clone(&shared);
            let spawned = thread::Builder::new()
                .name("petal helper".to_owned())
                .spawn(move || mine.help());
            match spawned {
                Ok(helper) => helpers.push(helper),
                // As many as the system grants.
                Err(_) => break,
            }
        }
        if !helpers.is_empty() {
            return Ok(Self { shared, helpers });
        }
        match Arc::into_inner(shared) {
            Some(shared) => Err(shared
                .source
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)),
            // Not reached: nobody else has it.
            None => unreachable!("no thread was started"),
        }
    }

    /// Has every batch visited.
    pub(super) fn run(
        &mut self,
        visitor: &mut impl Visit<P::Ready>,
        progress: &mut Progress,
    ) -> Result<()> {
        let mut flushed = true;
        loop {
            match self.shared.turn(flushed)? {
                Turn::Visit(mut unit) => {
                    let flow = visitor.visit(&unit.batch, &mut unit.ready, &unit.place)?;
                    progress.tick(unit.consumed);
                    self.shared.release(unit);
                    if flow == Flow::Stop {
                        return Ok(());
                    }
                    flushed = false;
                }
                Turn::Idle => {
                    visitor.idle()?;
                    flushed = true;
                }
                Turn::Help => self.shared.produce_if_free(),
                Turn::End => {
                    for helper in self.helpers.drain(..) {
                        // One that died has been seen.
                        let _ = helper.join();
                    }
                    return Ok(());
                }
            }
        }
    }
}

impl<P: Prepare> Drop for Team<P> {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.freed.notify_all();
    }
}

impl<P: Prepare> Shared<P> {
    fn lock(&self) -> MutexGuard<'_, State<P::Ready>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something for the caller to do.
    fn turn(&self, flushed: bool) -> Result<Turn<P::Ready>> {
        let mut state = self.lock();
        loop {
            if let Some(Some(_)) = state.queue.front()
                && let Some(Some(ready)) = state.queue.pop_front()
            {
                state.first += 1;
                return ready.map(Turn::Visit);
            }
            if state.died {
                return Err(anyhow!("a thread of petal has died; -j1 may help"));
            }
            if state.queue.is_empty() {
                if state.ended {
                    return Ok(Turn::End);
                }
                if state.idle && !flushed {
                    return Ok(Turn::Idle);
                }
            }
            if state.may_read() && self.prompt.load(Ordering::Relaxed) {
                // Not while a helper reads: it would be waited for, and with
                // it the batches that get ready meanwhile.
                if self.source.try_lock().is_ok() {
                    return Ok(Turn::Help);
                }
            }
            state.caller_waiting = true;
            state = self
                .advanced
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.caller_waiting = false;
        }
    }

    /// Gives a batch back after its visit.
    fn release(&self, mut unit: Box<Unit<P::Ready>>) {
        let large = unit.batch.large_bytes(BLOCK);
        if large > 0 {
            unit.batch.clear();
        }
        let mut state = self.lock();
        state.large -= large;
        state.free.push(unit);
        if state.helpers_waiting > 0 {
            drop(state);
            self.freed.notify_one();
        }
    }

    /// A helper's life.
    fn help(&self) {
        let _watch = Watch(self);
        loop {
            let mut state = self.lock();
            while !state.stopped && !state.ended && !state.may_read() {
                state.helpers_waiting += 1;
                state = self
                    .freed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.helpers_waiting -= 1;
            }
            if state.stopped || state.ended {
                return;
            }
            drop(state);
            let Ok(source) = self.source.lock() else {
                // Whoever read has died, and with him the lines that he had
                // taken: nothing may follow these.
                return;
            };
            self.produce(source);
        }
    }

    /// Reads and prepares a batch, unless somebody else reads.
    fn produce_if_free(&self) {
        if let Ok(source) = self.source.try_lock() {
            self.produce(source);
        }
    }

    /// Reads and prepares a batch, if there is one and a buffer for it.
    fn produce(&self, mut source: MutexGuard<'_, Box<Source>>) {
        let mut state = self.lock();
        if state.stopped || state.ended || !state.may_read() {
            return;
        }
        let Some(mut unit) = state.free.pop() else {
            return;
        };
        drop(state);
        if source.is_idle() {
            let mut state = self.lock();
            state.idle = true;
            self.wake_caller(state);
        }
        let read = source.next(&mut unit).and_then(|more| {
            if more {
                self.work.look(&unit.batch)?;
            }
            Ok(more)
        });
        self.prompt.store(source.is_prompt(), Ordering::Relaxed);
        let mut state = self.lock();
        state.idle = false;
        let number = state.first + state.queue.len() as u64;
        match read {
            Ok(true) => {
                state.large += unit.batch.large_bytes(BLOCK);
                state.queue.push_back(None);
            }
            Ok(false) => {
                state.free.push(unit);
                self.end(state);
                return;
            }
            Err(error) => {
                state.queue.push_back(Some(Err(error)));
                self.end(state);
                return;
            }
        }
        drop(source);
        if self.prompt.load(Ordering::Relaxed) {
            // It may read the next one meanwhile.
            self.wake_caller(state);
        } else {
            drop(state);
        }
        let prepared = self.work.prepare(&unit.batch, &mut unit.ready);
        let mut state = self.lock();
        let at = usize::try_from(number - state.first).unwrap_or(usize::MAX);
        if let Some(slot) = state.queue.get_mut(at) {
            *slot = Some(prepared.map(|()| unit));
        }
        if at == 0 {
            self.wake_caller(state);
        }
    }

    /// Nothing more will be read.
    fn end(&self, mut state: MutexGuard<'_, State<P::Ready>>) {
        state.ended = true;
        self.wake_caller(state);
        self.freed.notify_all();
    }

    fn wake_caller(&self, state: MutexGuard<'_, State<P::Ready>>) {
        if state.caller_waiting {
            drop(state);
            self.advanced.notify_one();
        }
    }
}

impl<R> State<R> {
    /// Whether there is a buffer for another batch.
    fn may_read(&self) -> bool {
        !self.ended && !self.free.is_empty() && self.large < MOST_LARGE
    }
}

/// Tells the caller if its thread dies.
struct Watch<'a, P: Prepare>(&'a Shared<P>);

impl<P: Prepare> Drop for Watch<'_, P> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().died = true;
            self.0.advanced.notify_one();
        }
    }
}
