//! A count that many threads add to.
//!
//! Owns [`StripedCount`]: one number in several cache lines, so that threads
//! do not wait for each other's turn at one of them.

use std::sync::atomic::Ordering::Relaxed;

use crate::words::AtomicU64;

/// Threads up to this number add to a line of their own.
const STRIPES: usize = 16;

/// Two cache lines, since CPUs fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe(AtomicU64);

/// A sum over threads.
#[derive(Debug)]
pub(crate) struct StripedCount {
    stripes: Box<[Stripe]>,
}

/// The stripe of the calling thread: threads take turns.
#[cfg(not(all(loom, test)))]
fn stripe() -> usize {
    use std::sync::atomic::AtomicUsize;

    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: usize = NEXT.fetch_add(1, Relaxed) % STRIPES;
    }
    STRIPE.with(|stripe| *stripe)
}

/// The runs of a model have to be alike: all threads share a stripe.
#[cfg(all(loom, test))]
fn stripe() -> usize {
    0
}

impl StripedCount {
    pub(crate) fn new() -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Stripe(AtomicU64::new(0))).collect(),
        }
    }

    /// Adds to the count.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // Only the sum counts: nothing is ordered by it.
        self.stripes[stripe()].0.fetch_add(more, Relaxed);
    }

    /// The sum of all additions that happened before this call, and of some
    /// of those that happen during it.
    pub(crate) fn sum(&self) -> u64 {
        self.stripes.iter().map(|s| s.0.load(Relaxed)).sum()
    }
}
