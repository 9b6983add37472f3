//! Who may use a value when: calls that hold the interpreter's lock, and long
//! ones that gave it up.
//!
//! Owns [`Guarded`]. The interpreter's lock already keeps calls apart that do not
//! give it up; two locked instructions more for each would be a fifth of the time of a
//! question about one key. So only long calls, which give it up, say that
//! they are at work, and short ones look whether somebody is. (This module
//! needs an interpreter with that lock: `lib.rs` declares so, and others turn
//! it on when they load the package.)
#![expect(
    unsafe_code,
    reason = "exclusion rests on the interpreter's lock, which the compiler does not know"
)]

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicIsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Condvar, Mutex, PoisonError};

use pyo3::prelude::*;

/// A writer is at work.
const WRITER: isize = -1;

/// A value for one writer or several readers at a time.
pub(crate) struct Guarded<T> {
    /// [`WRITER`], or how many readers are at work. It leaves 0 only under the
    /// interpreter's lock.
    users: AtomicIsize,
    /// For those who wait until it is 0 or more.
    turn: Mutex<()>,
    left: Condvar,
    value: UnsafeCell<T>,
}

// SAFETY: `users` keeps writers apart from everybody else. It is changed under the interpreter's
// lock, which orders those changes, or set back with `Release` by those who leave, which
// everybody who comes reads with `Acquire`.
unsafe impl<T: Send + Sync> Sync for Guarded<T> {}

/// Takes the users back when a call is over, whether it panicked or not.
struct Leaving<'a, T> {
    guarded: &'a Guarded<T>,
    users: isize,
}

impl<T> Drop for Leaving<'_, T> {
    fn drop(&mut self) {
        self.guarded.users.fetch_sub(self.users, Release);
        // Whoever waits has either seen that, or is woken.
        let turn = self.guarded.turn.lock();
        drop(turn.unwrap_or_else(PoisonError::into_inner));
        self.guarded.left.notify_all();
    }
}

impl<T: Send + Sync> Guarded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            users: AtomicIsize::new(0),
            turn: Mutex::new(()),
            left: Condvar::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits until there is no writer and, if so asked, no reader.
    #[inline]
    fn wait(&self, py: Python<'_>, for_readers: bool) {
        while self.is_used(for_readers) {
            self.wait_long(py, for_readers);
        }
    }

    #[inline]
    fn is_used(&self, by_readers: bool) -> bool {
        let users = self.users.load(Acquire);
        users < 0 || by_readers && users > 0
    }

    #[cold]
    fn wait_long(&self, py: Python<'_>, for_readers: bool) {
        py.detach(|| {
            let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            while self.is_used(for_readers) {
                turn = self.left.wait(turn).unwrap_or_else(PoisonError::into_inner);
            }
        });
    }

    /// A short call that reads. It must not call Python.
    #[inline]
    pub(crate) fn peek<R>(&self, py: Python<'_>, run: impl FnOnce(&T) -> R) -> R {
        self.wait(py, false);
        // SAFETY: no writer is at work. None begins, since that takes the interpreter's lock, which
        // this thread holds until `run` has returned.
        run(unsafe { &*self.value.get() })
    }

    /// A short call that writes. It must not call Python.
    #[inline]
    pub(crate) fn poke<R>(&self, py: Python<'_>, run: impl FnOnce(&mut T) -> R) -> R {
        self.wait(py, true);
        // Nobody else changes it meanwhile: plain stores do. They are there for a call that
        // comes here again from inside of `run`: it would wait for ever, and alias nothing.
        self.users.store(WRITER, Relaxed);
        let left = Reset(&self.users);
        // SAFETY: nobody is at work, and nobody begins, as for `peek`.
        let result = run(unsafe { &mut *self.value.get() });
        drop(left);
        result
    }

    /// A long call that reads, without the interpreter's lock.
    pub(crate) fn read<R: Send>(&self, py: Python<'_>, run: impl FnOnce(&T) -> R + Send) -> R {
        self.wait(py, false);
        self.users.fetch_add(1, Relaxed);
        py.detach(|| {
            let _leaving = Leaving {
                guarded: self,
                users: 1,
            };
            // SAFETY: this thread is counted as a reader, so that no writer begins.
            run(unsafe { &*self.value.get() })
        })
    }

    /// A long call that writes, without the interpreter's lock.
    pub(crate) fn write<R: Send>(&self, py: Python<'_>, run: impl FnOnce(&mut T) -> R + Send) -> R {
        self.wait(py, true);
        self.users.store(WRITER, Relaxed);
        py.detach(|| {
            let (_leaving, value) = self.entered();
            run(value)
        })
    }

    /// The same with two values, which are not one. Neither is held while the other is
    /// waited for.
    pub(crate) fn write_both<R: Send>(
        &self,
        other: &Self,
        py: Python<'_>,
        run: impl FnOnce(&mut T, &mut T) -> R + Send,
    ) -> R {
        assert!(!std::ptr::eq(self, other), "one value twice");
        while self.is_used(true) || other.is_used(true) {
            self.wait(py, true);
            other.wait(py, true);
        }
        self.users.store(WRITER, Relaxed);
        other.users.store(WRITER, Relaxed);
        py.detach(|| {
            let (_leaving, mine) = self.entered();
            let (_other_leaving, theirs) = other.entered();
            run(mine, theirs)
        })
    }

    /// The value, for the thread that has made itself the writer.
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller is the one writer, as the mark says that it has set"
    )]
    fn entered(&self) -> (Leaving<'_, T>, &mut T) {
        let leaving = Leaving {
            guarded: self,
            users: WRITER,
        };
        // SAFETY: the caller has set the mark of the writer, under the interpreter's lock and
        // after it had seen that nobody was at work.
        (leaving, unsafe { &mut *self.value.get() })
    }
}

/// Sets the mark back when a short call is over.
struct Reset<'a>(&'a AtomicIsize);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}
