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
    /// Why writing a piece has failed: nothing is written after it.
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
    fn check(&self) -> io::Result<()> {
        if self.died {
            return Err(io::Error::other("a thread of petal has died"));
        }
        match &self.failed {
            None => Ok(()),
            // The same each time it is asked for.
            Some(error) => Err(match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(error.kind(), error.to_string()),
            }),
        }
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

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// What follows a failure is refused for good, or there would be a hole in
    /// the output.
    #[test]
    fn nothing_is_taken_after_a_failure() {
        let for_reading = File::open("/dev/null").unwrap();
        let frames = Frames::new(for_reading, None, true);
        let Ok(mut behind) = Behind::new(Box::new(frames)) else {
            panic!("the system grants a thread");
        };
        let full = vec![b'x'; 2 * BUFFER];
        let mut told = Vec::new();
        for _ in 0..3 {
            let refused = behind.write_all(&full).and(behind.settle().map(drop));
            told.push(refused.unwrap_err().raw_os_error());
            // It was told once, and is told again.
            assert!(behind.settle().is_err());
            assert!(behind.write_all(&full).is_err());
        }
        assert!(told[0].is_some());
        assert!(told.iter().all(|&code| code == told[0]));
    }
}
