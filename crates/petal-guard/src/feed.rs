//! Changes by writers that go past the guards.
//!
//! Owns the trait that callers implement, and the task that applies what it brings.
//! How far it has come is `horizon`'s.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::error::BoxError;
use crate::guard::Inner;
use crate::link::Session;
use crate::{remote, shared};

/// Why a feed brings nothing.
#[derive(Debug)]
pub enum FeedError {
    /// For now. It is started again behind the last position.
    Disconnected(BoxError),
    /// Changes behind the position are gone for good: filters and caches are
    /// given up, and the filter waits for `warm_up`.
    Gap(BoxError),
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected(error) => write!(f, "the change feed is disconnected: {error}"),
            Self::Gap(error) => write!(f, "the change feed has lost changes: {error}"),
        }
    }
}

impl std::error::Error for FeedError {}

/// What a feed brings at a time.
#[derive(Debug, Clone)]
pub struct Changes {
    /// Keys that were written or deleted, in any order; repeats are harmless.
    pub keys: Vec<Vec<u8>>,
    /// Where the feed is, as it wants to be told by [`ChangeFeed::start`].
    pub position: Vec<u8>,
    /// Every change that was committed before this instant has been brought,
    /// by now. An instant from *before* the source was asked; from a source that
    /// stamps its changes by another clock, less the most that clocks differ.
    pub as_of: Instant,
}

/// All changes of the keys in storage, whoever makes them: a table of changes
/// that is polled, logical replication, a stream.
///
/// With a feed, "absent" is answered only if the feed has come as far as the
/// request (less `max_lag`). So bring [`Changes`] often, also without keys: a
/// request for an absent key waits for the next.
///
/// All guards of one name have a feed, or none has.
#[async_trait]
pub trait ChangeFeed: Send + 'static {
    /// Begins behind a position; without one, with changes from now on.
    /// Called again after errors.
    ///
    /// # Errors
    /// [`FeedError::Gap`] if changes behind the position are gone.
    async fn start(&mut self, after: Option<&[u8]>) -> Result<(), FeedError>;

    /// The next changes. They have been applied when it is called again. May
    /// be dropped while it waits; `start` follows then.
    ///
    /// # Errors
    /// As it is.
    async fn next(&mut self) -> Result<Changes, FeedError>;
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Runs until it is aborted.
pub(crate) async fn run(guard: Arc<Inner>, mut feed: Box<dyn ChangeFeed>) {
    let mut pause = SHORTEST_PAUSE;
    loop {
        // Before the position is read: an adoption after that ends this run.
        let number = guard.hub.begin_run(guard.hub.position());
        let after = position(&guard).await;
        let error = match feed.start(after.as_deref()).await {
            Ok(()) => follow(&guard, feed.as_mut(), number, &mut pause).await,
            Err(error) => Some(error),
        };
        match error {
            // Another filter is in use.
            None => continue,
            Some(FeedError::Disconnected(_)) => {}
            Some(FeedError::Gap(_)) => give_up(&guard).await,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Applies changes until something happens.
async fn follow(
    guard: &Inner,
    feed: &mut dyn ChangeFeed,
    number: u64,
    pause: &mut Duration,
) -> Option<FeedError> {
    loop {
        let changes = tokio::select! {
            () = guard.hub.adopted.notified() => return None,
            changes = feed.next() => changes,
        };
        match changes {
            Ok(changes) => {
                apply(guard, &changes).await;
                guard
                    .hub
                    .advance_run(number, changes.position, changes.as_of);
                *pause = SHORTEST_PAUSE;
            }
            Err(error) => return Some(error),
        }
    }
}

/// Where to begin: behind what is in the filter in use.
async fn position(guard: &Inner) -> Option<Vec<u8>> {
    let own = guard.hub.position();
    let Some(link) = guard.link.as_ref().filter(|_| guard.has_remote_filter()) else {
        return own;
    };
    loop {
        let session = link.connected().await?;
        let mut control = session.control();
        match remote::state(&mut control, &link.names).await {
            Ok(state) => {
                let Some(live) = state.live.filter(|live| !link.is_mine(live)) else {
                    return own;
                };
                // Between its position and this feed's, changes may go
                // unnoticed here.
                guard.hub.stamps.all_changed();
                if state.position.is_none() {
                    // Filled by a guard without a feed.
                    session.forget(&live);
                    return own;
                }
                return state.position;
            }
            Err(error) => {
                session.failed(&error);
                tokio::time::sleep(SHORTEST_PAUSE).await;
            }
        }
    }
}

/// Tells filters and caches of changes, however long that takes.
async fn apply(guard: &Inner, changes: &Changes) {
    for key in &changes.keys {
        guard.hub.changed(key);
    }
    let Some(link) = &guard.link else { return };
    // Without news there is nothing to say, and the position can wait.
    while !changes.keys.is_empty() {
        let Some(session) = link.connected().await else {
            return;
        };
        match tell(guard, &session, changes).await {
            Ok(()) => return,
            Err(error) => {
                session.failed(&error);
                tokio::time::sleep(SHORTEST_PAUSE).await;
            }
        }
    }
}

async fn tell(guard: &Inner, session: &Session, changes: &Changes) -> redis::RedisResult<()> {
    let Some(link) = &guard.link else {
        return Ok(());
    };
    let items: Vec<_> = changes.keys.iter().map(|key| guard.hub.item(key)).collect();
    if guard.has_remote_filter() {
        let mut control = session.control();
        remote::add(&mut control, &link.names, &items).await?;
    }
    let mut values = session.values();
    for item in &items {
        shared::delete(&mut values, &link.names.value(item)).await?;
    }
    if guard.has_remote_filter() {
        let mut control = session.control();
        remote::set_position(&mut control, &link.names, &changes.position).await?;
    }
    Ok(())
}

/// Changes are gone: nothing that was known before can be relied on.
async fn give_up(guard: &Inner) {
    if let Some(filter) = &guard.hub.local_filter {
        filter.lose();
    }
    guard.hub.stamps.all_changed();
    guard.hub.begin_run(None);
    let Some(link) = &guard.link else { return };
    while let Some(session) = link.connected().await {
        let mut control = session.control();
        match remote::retire(&mut control, &link.names).await {
            Ok(()) => return,
            Err(error) => {
                session.failed(&error);
                tokio::time::sleep(SHORTEST_PAUSE).await;
            }
        }
    }
}
