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
    // Changes behind every position that is known are gone.
    let mut gap = false;
    loop {
        // Before the position is read: an adoption after that ends this run.
        let number = guard.hub.begin_run(guard.hub.position().filter(|_| !gap));
        let after = match gap {
            true => None,
            false => position(&guard).await,
        };
        let error = match feed.start(after.as_deref()).await {
            Ok(()) => {
                let mut anew = after.is_none();
                let error = follow(&guard, feed.as_mut(), number, &mut anew, gap).await;
                if !anew {
                    gap = false;
                    pause = SHORTEST_PAUSE;
                }
                error
            }
            Err(error) => Some(error),
        };
        match error {
            // Another filter is in use.
            None => continue,
            Some(FeedError::Disconnected(_)) => {}
            Some(FeedError::Gap(_)) => {
                gap = true;
                if let Some(filter) = &guard.hub.local_filter {
                    filter.lose();
                }
                guard.hub.stamps.all_changed();
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Applies changes until something happens. `anew`: the feed began with no
/// position, until its first changes are there.
async fn follow(
    guard: &Inner,
    feed: &mut dyn ChangeFeed,
    number: u64,
    anew: &mut bool,
    gap: bool,
) -> Option<FeedError> {
    loop {
        let changes = tokio::select! {
            () = guard.hub.adopted.notified() => return None,
            changes = feed.next() => changes,
        };
        match changes {
            Ok(changes) => {
                if *anew {
                    if !void(guard, &changes.position, gap).await {
                        // Another guard has begun: behind its position, then.
                        return None;
                    }
                    *anew = false;
                }
                apply(guard, &changes).await;
                guard
                    .hub
                    .advance_run(number, changes.position, changes.as_of);
            }
            Err(error) => return Some(error),
        }
    }
}

/// Where to begin: behind what is in the filter and the cache of Redis, or in
/// this process if that has more of its own. `None`: nobody knows.
async fn position(guard: &Inner) -> Option<Vec<u8>> {
    let own = guard.hub.position();
    let Some(link) = &guard.link else {
        return own;
    };
    loop {
        let session = link.connected().await?;
        let mut control = session.control();
        match remote::state(&mut control, &link.names).await {
            Ok(state) => {
                let foreign = state
                    .live
                    .filter(|live| guard.has_remote_filter() && !link.is_mine(live));
                if own.is_some() && foreign.is_none() {
                    return own;
                }
                // Between that position and this feed's, changes may go
                // unnoticed here.
                guard.hub.stamps.all_changed();
                if let (Some(live), None) = (&foreign, &state.position) {
                    // Filled by a guard without a feed.
                    session.forget(live);
                }
                return state.position.or(own);
            }
            Err(error) => {
                session.failed(&error);
                tokio::time::sleep(SHORTEST_PAUSE).await;
            }
        }
    }
}

/// The feed begins here: what filter and cache in Redis have from before may lack
/// changes that nobody will tell of. False if another guard has begun first.
async fn void(guard: &Inner, position: &[u8], gap: bool) -> bool {
    guard.hub.stamps.all_changed();
    let Some(link) = &guard.link else {
        return true;
    };
    loop {
        let Some(session) = link.connected().await else {
            return false;
        };
        let mut control = session.control();
        match remote::retire(
            &mut control,
            &link.names,
            position,
            gap,
            guard.tokens.draw(),
        )
        .await
        {
            Ok(done) => return done,
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
    let mut control = session.control();
    remote::set_position(&mut control, &link.names, &changes.position).await
}
