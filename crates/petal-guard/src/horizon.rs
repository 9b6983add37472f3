//! Up to which moment changes are known.
//!
//! Owns the small state machine on which every "absent" rests. Whatever tells of
//! changes (the link to Redis, a change feed) has a [`Horizon`]: *all changes that
//! were committed before this instant have been applied here*. It only moves on, or
//! is lost. A request that began at `t` takes an "absent" only from what is known
//! up to `t`, less the lag that the caller allows.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// All changes before this instant are known; `None`: nothing is.
#[derive(Debug)]
pub(crate) struct Horizon(watch::Sender<Option<Instant>>);

impl Horizon {
    pub(crate) fn lost() -> Self {
        Self(watch::Sender::new(None))
    }

    pub(crate) fn as_of(&self) -> Option<Instant> {
        *self.0.borrow()
    }

    /// Moves on to `instant`; never back.
    pub(crate) fn advance(&self, instant: Instant) {
        self.0.send_if_modified(|as_of| {
            let moves = as_of.is_none_or(|old| old < instant);
            if moves {
                *as_of = Some(instant);
            }
            moves
        });
    }

    /// What comes is not known to follow what came.
    pub(crate) fn lose(&self) {
        self.0.send_replace(None);
    }

    /// Waits until changes are known up to `need`, but not for one that is
    /// so far behind that it would not arrive within `patience`.
    pub(crate) async fn reach(&self, need: Instant, patience: Duration) -> Option<Instant> {
        let as_of = self.as_of()?;
        if as_of >= need {
            return Some(as_of);
        }
        if as_of + patience < need {
            return None;
        }
        let mut seen = self.0.subscribe();
        // Lost while waiting ends it as well.
        let reached = seen.wait_for(|as_of| as_of.is_none_or(|as_of| as_of >= need));
        match tokio::time::timeout(patience, reached).await {
            Ok(Ok(as_of)) => *as_of,
            Ok(Err(_)) | Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(50);

    #[tokio::test(start_paused = true)]
    async fn moves_on_and_never_back() {
        let horizon = Horizon::lost();
        let start = Instant::now();
        assert_eq!(horizon.as_of(), None);
        assert_eq!(horizon.reach(start, PATIENCE).await, None);
        horizon.advance(start + PATIENCE);
        horizon.advance(start);
        assert_eq!(horizon.as_of(), Some(start + PATIENCE));
        assert_eq!(
            horizon.reach(start, PATIENCE).await,
            Some(start + PATIENCE),
            "no wait for what is known"
        );
        assert_eq!(Instant::now(), start);
        horizon.lose();
        assert_eq!(horizon.as_of(), None);
        horizon.advance(start);
        assert_eq!(horizon.as_of(), Some(start), "begins anew after a loss");
    }

    #[tokio::test(start_paused = true)]
    async fn waits_for_what_is_near_and_not_for_what_is_far() {
        let horizon = std::sync::Arc::new(Horizon::lost());
        let start = Instant::now();
        horizon.advance(start);
        let far = start + 2 * PATIENCE;
        assert_eq!(horizon.reach(far, PATIENCE).await, None);
        assert_eq!(Instant::now(), start, "no wait in vain");

        let near = start + PATIENCE / 2;
        let waiting = tokio::spawn({
            let horizon = horizon.clone();
            async move { horizon.reach(near, PATIENCE).await }
        });
        tokio::time::sleep(PATIENCE / 5).await;
        horizon.advance(near);
        assert_eq!(waiting.await.unwrap(), Some(near));

        let late = near + PATIENCE / 2;
        assert_eq!(horizon.reach(late, PATIENCE).await, None);
        assert_eq!(
            Instant::now(),
            start + PATIENCE / 5 + PATIENCE,
            "patience ends"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_ends_the_wait() {
        let horizon = std::sync::Arc::new(Horizon::lost());
        let start = Instant::now();
        horizon.advance(start);
        let waiting = tokio::spawn({
            let horizon = horizon.clone();
            async move { horizon.reach(start + PATIENCE, PATIENCE).await }
        });
        tokio::time::sleep(PATIENCE / 10).await;
        horizon.lose();
        assert_eq!(waiting.await.unwrap(), None);
        assert_eq!(Instant::now(), start + PATIENCE / 10);
    }
}
