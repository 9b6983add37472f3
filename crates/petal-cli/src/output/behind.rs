//! Compresses and writes on a thread of its own.
//!
//! Owns the pieces on their way from the caller to the thread. There is a
//! fixed number of them, so that a slow disk holds the caller up and memory
//! stays bounded. What is written, and in which pieces, is as without the
//! thread; errors come with a later call.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::encode::{BUFFER, Frames};

/// Pieces that may wait while one is written and one is filled.
const QUEUE: usize = 1;

/// Frames that are written by a thread.
pub(super) struct Behind {
    shared: Arc<Shared>,
    /// The piece that is being filled.
    piece: Vec<u8>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Locked by the thread while it writes a piece.
    frames: Mutex<Box<Frames>>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    /// To be filled again.
    empty: Vec<Vec<u8>>,
    /// A piece is being written.
    busy: bool,
    /// Why writing a piece has failed, until somebody is told.
    failed: Option<io::Error>,
    /// Nothing more will come.
    closed: bool,
    /// Nothing more will be written: the thread has died.
    died: bool,
}

impl Behind {
    /// Starts the thread; the frames come back if the system does not grant
    /// one.
    pub(super) fn new(frames: Box<Frames>) -> Result<Self, Box<Frames>> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            frames: Mutex::new(frames),
        });
        let writer = Arc::clone(&shared);
        let spawned = thread::Builder::new()
            .name("petal writer".to_owned())
            .spawn(move || writer.write());
        if spawned.is_ok() {
            return Ok(Self {
                shared,
                piece: Vec::with_capacity(BUFFER),
            });
        }
        match Arc::into_inner(shared) {
            Some(shared) => Err(shared
                .frames
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner)),
            // Not reached: nobody else has it.
            None => unreachable!("no thread was started"),
        }
    }

    /// Takes all of `bytes`.
    #[inline]
    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while bytes.len() > BUFFER - self.piece.len() {
            let (fits, rest) = bytes.split_at(BUFFER - self.piece.len());
            self.piece.extend_from_slice(fits);
            bytes = rest;
            self.hand_over()?;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    /// Waits until all that was taken is written, and gives the frames.
    pub(super) fn settle(&mut self) -> io::Result<MutexGuard<'_, Box<Frames>>> {
        if !self.piece.is_empty() {
            self.hand_over()?;
        }
        let mut state = self.shared.lock();
        while state.busy || !state.waiting.is_empty() {
            state = self.shared.wait(state);
        }
        state.check()?;
        drop(state);
        Ok(self.shared.frames())
    }

    /// Drops what was not written, and the frames with it.
    pub(super) fn abandon(&mut self) {
        self.piece.clear();
        self.shared.lock().waiting.clear();
        self.shared.frames().abandon();
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let mut state = self.shared.lock();
        while state.waiting.len() >= QUEUE && !state.died {
            state = self.shared.wait(state);
        }
        state.check()?;
        let empty = state.empty.pop();
        let empty = empty.unwrap_or_else(|| Vec::with_capacity(BUFFER));
        let full = std::mem::replace(&mut self.piece, empty);
        state.waiting.push_back(full);
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
    }
}

impl State {
    /// Why it cannot go on, if it cannot.
    fn check(&mut self) -> io::Result<()> {
        if self.died {
            return Err(io::Error::other("a thread of petal has died"));
        }
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn frames(&self) -> MutexGuard<'_, Box<Frames>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's life.
    fn write(&self) {
        let _watch = Watch(self);
        let mut state = self.lock();
        loop {
            if let Some(mut piece) = state.waiting.pop_front() {
                state.busy = true;
                drop(state);
                let done = self.frames().write_all(&piece);
                piece.clear();
                state = self.lock();
                state.busy = false;
                state.empty.push(piece);
                if let Err(error) = done {
                    state.failed = Some(error);
                    state.waiting.clear();
                }
                self.changed.notify_all();
            } else if state.closed {
                return;
            } else {
                state = self.wait(state);
            }
        }
    }
}

/// Tells the caller if the thread dies.
struct Watch<'a>(&'a Shared);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.lock();
            state.died = true;
            state.busy = false;
            state.waiting.clear();
            drop(state);
            self.0.changed.notify_all();
        }
    }
}
