//! One load a key, however many wait for it.
//!
//! Owns who waits for whom. A flight is a task of its own: a waiter that goes away
//! takes nobody's answer with it, and if the load panics all waiters learn that at
//! once. A key that has changed since a flight began gets a new one, so that nobody
//! who comes after a write is given what was read before it.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::watch;
use tokio::time::Instant;

use crate::Layer;
use crate::error::Error;
use crate::item::Item;
use crate::stamps::Stamp;

/// What a flight brings.
#[derive(Debug, Clone)]
pub(crate) struct Landed {
    pub(crate) value: Option<Arc<[u8]>>,
    pub(crate) layer: Layer,
    /// Up to when changes are in it, at least.
    pub(crate) as_of: Instant,
    /// It is due to be loaded anew.
    pub(crate) stale: bool,
}

pub(crate) type Outcome = Result<Landed, Error>;

#[derive(Debug, Clone)]
struct Flight {
    number: u64,
    stamp: Stamp,
    outcome: watch::Receiver<Option<Outcome>>,
}

#[derive(Debug, Default)]
struct Under {
    flights: HashMap<Item, Flight>,
    begun: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Flights(Arc<Mutex<Under>>);

impl Flights {
    fn under(&self) -> MutexGuard<'_, Under> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Waits for the flight of a key, or begins one. One whose outcome is
    /// there already has landed: it is not joined.
    pub(crate) async fn join<F>(
        &self,
        item: Item,
        stamp: Stamp,
        load: impl FnOnce() -> F,
    ) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut outcome = self.find_or_begin(item, stamp, load).0;
        match outcome.wait_for(Option::is_some).await {
            Ok(landed) => landed.clone().unwrap_or(Err(Error::LoadLost)),
            Err(_) => Err(Error::LoadLost),
        }
    }

    /// Begins a flight that nobody waits for, if there is none. True if it
    /// did.
    pub(crate) fn begin<F>(&self, item: Item, stamp: Stamp, load: impl FnOnce() -> F) -> bool
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        self.find_or_begin(item, stamp, load).1
    }

    fn find_or_begin<F>(
        &self,
        item: Item,
        stamp: Stamp,
        load: impl FnOnce() -> F,
    ) -> (watch::Receiver<Option<Outcome>>, bool)
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut under = self.under();
        if let Some(flight) = under.flights.get(&item)
            && flight.stamp == stamp
            && flight.outcome.borrow().is_none()
        {
            return (flight.outcome.clone(), false);
        }
        let (sender, outcome) = watch::channel(None);
        under.begun += 1;
        let number = under.begun;
        let flight = Flight {
            number,
            stamp,
            outcome: outcome.clone(),
        };
        under.flights.insert(item, flight);
        drop(under);
        let gone = Gone {
            flights: self.clone(),
            item,
            number,
        };
        let load = load();
        tokio::spawn(async move {
            // Dropped last, and also by a panic.
            let _gone = gone;
            let sender = sender;
            let landed = load.await;
            sender.send_replace(Some(landed));
        });
        (outcome, true)
    }
}

/// Takes a flight off the list.
struct Gone {
    flights: Flights,
    item: Item,
    number: u64,
}

impl Drop for Gone {
    fn drop(&mut self) {
        let mut under = self.flights.under();
        let is_this = |flight: &Flight| flight.number == self.number;
        if under.flights.get(&self.item).is_some_and(is_this) {
            under.flights.remove(&self.item);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;
    use crate::stamps::Stamps;

    const ITEM: Item = [5; 16];

    fn landed(value: &[u8]) -> Outcome {
        Ok(Landed {
            value: Some(value.into()),
            layer: Layer::Storage,
            as_of: Instant::now(),
            stale: false,
        })
    }

    fn value(outcome: Outcome) -> Vec<u8> {
        outcome.unwrap().value.unwrap().to_vec()
    }

    #[tokio::test(start_paused = true)]
    async fn many_waiters_are_one_load() {
        let (flights, stamps) = (Flights::default(), Stamps::new());
        let loads = Arc::new(AtomicU32::new(0));
        let waiters = (0..1000).map(|_| {
            let loads = loads.clone();
            flights.join(ITEM, stamps.of(&ITEM), || async move {
                loads.fetch_add(1, SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                landed(b"v")
            })
        });
        let outcomes = futures_util::future::join_all(waiters).await;
        assert!(outcomes.into_iter().all(|outcome| value(outcome) == b"v"));
        assert_eq!(loads.load(SeqCst), 1);
        assert!(flights.under().flights.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_goes_away_leaves_the_load_to_the_waiters() {
        let (flights, stamps) = (Flights::default(), Stamps::new());
        let stamp = stamps.of(&ITEM);
        let leader = flights.join(ITEM, stamp, || async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            landed(b"v")
        });
        assert!(
            tokio::time::timeout(Duration::from_millis(1), leader)
                .await
                .is_err()
        );
        let waiter = flights.join(ITEM, stamp, || async { landed(b"another") });
        assert_eq!(value(waiter.await), b"v");
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_reaches_all_waiters_and_the_next_loads_anew() {
        let (flights, stamps) = (Flights::default(), Stamps::new());
        let stamp = stamps.of(&ITEM);
        let fails = || async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            panic!("as the test wants")
        };
        let (one, other) = tokio::join!(
            flights.join(ITEM, stamp, fails),
            flights.join(ITEM, stamp, fails)
        );
        assert!(matches!(one, Err(Error::LoadLost)));
        assert!(matches!(other, Err(Error::LoadLost)));
        let next = flights.join(ITEM, stamp, || async { landed(b"v") });
        assert_eq!(value(next.await), b"v");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_after_a_change_does_not_get_what_was_read_before() {
        let (flights, stamps) = (Flights::default(), Stamps::new());
        let slow = |value: &'static [u8], millis| {
            move || async move {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                landed(value)
            }
        };
        let before = flights.join(ITEM, stamps.of(&ITEM), slow(b"old", 10));
        tokio::pin!(before);
        assert!(futures_util::poll!(before.as_mut()).is_pending());
        stamps.changed(&ITEM);
        let after = flights.join(ITEM, stamps.of(&ITEM), slow(b"new", 20));
        tokio::pin!(after);
        assert!(futures_util::poll!(after.as_mut()).is_pending());
        assert_eq!(value(before.await), b"old");
        // The end of the first takes the second off no list.
        let joins = flights.join(ITEM, stamps.of(&ITEM), slow(b"third", 1));
        assert_eq!(value(joins.await), b"new");
        assert_eq!(value(after.await), b"new");
    }
}
