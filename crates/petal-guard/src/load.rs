//! What no layer of this process has: from Redis, or from storage.
//!
//! Owns the protocol by which a loaded value gets into the caches, and the limits of
//! loads. A value is stored in Redis only in place of the lease that was left there
//! before the load began, and here only under the stamp that was taken before, and
//! only once Redis has it: so what was read before a write is never used after it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::Layer;
use crate::error::Error;
use crate::flight::{Landed, Outcome};
use crate::guard::Inner;
use crate::item::Item;
use crate::link::Session;
use crate::local::Entry;
use crate::shared::{self, Found, Header};
use crate::stamps::Stamp;

/// How long a value that could not be loaded anew is left alone.
const RETRY: Duration = Duration::from_secs(1);

/// What a flight found in Redis.
enum Look {
    Landed(Landed),
    /// To be loaded, and stored in place of this lease.
    Leased(Arc<Session>, Header),
    /// To be loaded and not to be stored.
    Nothing,
}

impl Inner {
    /// The flight of a key.
    pub(crate) async fn fly(
        &self,
        key: &[u8],
        item: Item,
        stamp: Stamp,
        need: Instant,
        keep_absent: bool,
    ) -> Outcome {
        let (session, lease) = match self.look(item, stamp, need).await {
            Look::Landed(landed) => return Ok(landed),
            Look::Leased(session, lease) => (Some(session), Some(lease)),
            Look::Nothing => (None, None),
        };
        let loaded = self.load(key).await;
        let value = match &loaded {
            Ok(landed) if landed.value.is_some() => Some(landed.value.clone()),
            Ok(_) if keep_absent => Some(None),
            // What failed, and what no filter let pass, is not kept.
            _ => None,
        };
        match (value, session, lease) {
            (Some(value), Some(session), Some(lease)) => {
                self.keep(item, stamp, value, &session, &lease).await;
            }
            (Some(value), ..) if self.link.is_none() => {
                let stays = self.stays(value.is_none());
                self.keep_here(item, stamp, value, stays, None);
            }
            (None, Some(session), Some(lease)) => {
                let mut values = session.values();
                // If it fails, the lease ends by itself.
                let _ = shared::release(&mut values, &self.value_name(&item), &lease).await;
            }
            _ => {}
        }
        loaded
    }

    fn value_name(&self, item: &Item) -> String {
        // Without a link nobody asks for it.
        self.link
            .as_ref()
            .map(|link| link.names.value(item))
            .unwrap_or_default()
    }

    async fn look(&self, item: Item, stamp: Stamp, need: Instant) -> Look {
        let Some(session) = self.link.as_ref().and_then(|link| link.session()) else {
            return Look::Nothing;
        };
        let name = self.value_name(&item);
        let until = Instant::now() + self.settings.lease_wait;
        let mut pause = Duration::from_millis(2);
        loop {
            let now = Instant::now();
            let as_of = self.hub.feed_as_of(now);
            let mut values = session.values();
            let token = self.tokens.draw();
            let stays = self.settings.load_timeout + Duration::from_secs(1);
            match shared::open(&mut values, &name, session.tag, token, stays).await {
                Ok(Found::Value(value, header, left)) => {
                    let stale = left < self.settings.stale_for;
                    self.keep_here(item, stamp, Some(value.clone()), left, Some(header));
                    return Look::Landed(Landed {
                        value: Some(value),
                        layer: Layer::Shared,
                        as_of: now,
                        stale,
                    });
                }
                Ok(Found::Absent(header, left)) => {
                    let Some(as_of) = as_of.filter(|as_of| *as_of >= need) else {
                        return Look::Nothing;
                    };
                    self.keep_here(item, stamp, None, left, Some(header));
                    return Look::Landed(Landed {
                        value: None,
                        layer: Layer::Shared,
                        as_of,
                        stale: false,
                    });
                }
                Ok(Found::Leased(lease)) => return Look::Leased(session, lease),
                Ok(Found::Writing) => return Look::Nothing,
                Ok(Found::Busy) if now < until => {
                    sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(20));
                }
                Ok(Found::Busy) => return Look::Nothing,
                Err(error) => {
                    session.failed(&error);
                    return Look::Nothing;
                }
            }
        }
    }

    /// From storage, within its limits.
    pub(crate) async fn load(&self, key: &[u8]) -> Outcome {
        let limit = self.settings.load_timeout;
        let until = Instant::now() + limit;
        let permit = timeout_at(until, self.loads.acquire())
            .await
            .map_err(|_| Error::Overloaded(limit))?;
        let _permit = permit.map_err(|_| Error::LoadLost)?;
        self.meter.load();
        let began = Instant::now();
        let loaded = match timeout_at(until, self.storage.load(key)).await {
            Ok(Ok(value)) => Ok(Landed {
                value: value.map(Arc::from),
                layer: Layer::Storage,
                as_of: began,
                stale: false,
            }),
            Ok(Err(error)) => Err(Error::Storage(error.into())),
            Err(_) => Err(Error::LoadTimeout(limit)),
        };
        if loaded.is_err() {
            self.meter.error();
        }
        loaded
    }

    fn stays(&self, absent: bool) -> Duration {
        let settings = &self.settings;
        if absent {
            // Spread evenly, so that what came together does not go together.
            let factor = 1.0 + settings.jitter * (2.0 * self.tokens.share() - 1.0);
            settings.absent_for.mul_f64(factor)
        } else {
            settings.fresh_for + settings.stale_for
        }
    }

    /// Stores in Redis in place of what `expected` names, then here.
    async fn keep(
        &self,
        item: Item,
        stamp: Stamp,
        value: Option<Arc<[u8]>>,
        session: &Session,
        expected: &Header,
    ) -> bool {
        let stays = self.stays(value.is_none());
        let mut values = session.values();
        let (name, token) = (self.value_name(&item), self.tokens.draw());
        let stored =
            shared::store(&mut values, &name, expected, token, value.as_deref(), stays).await;
        match stored {
            Ok(Some(header)) => {
                self.keep_here(item, stamp, value, stays, Some(header));
                true
            }
            // It was written, or invalidated, meanwhile.
            Ok(None) => false,
            Err(error) => {
                session.failed(&error);
                false
            }
        }
    }

    fn keep_here(
        &self,
        item: Item,
        stamp: Stamp,
        value: Option<Arc<[u8]>>,
        stays: Duration,
        shared: Option<Header>,
    ) {
        let now = Instant::now();
        let fresh = match value {
            Some(_) => stays.saturating_sub(self.settings.stale_for),
            None => stays,
        };
        let entry = Entry {
            value,
            stamp,
            fresh_until: now + fresh,
            usable_until: now + stays,
            shared,
        };
        self.local.put(item, entry);
    }

    /// Loads a value anew while the old one is served.
    pub(crate) fn refresh(self: &Arc<Self>, key: &[u8], item: Item, old: &Entry) {
        let (guard, key, old) = (self.clone(), key.to_vec(), old.clone());
        self.flights.begin(item, old.stamp, || async move {
            let session = guard.link.as_ref().and_then(|link| link.session());
            let loaded = guard.load(&key).await;
            let Ok(landed) = &loaded else {
                // The old value is served on, and storage is left alone.
                let fresh_until = Instant::now() + RETRY;
                guard.local.put(item, Entry { fresh_until, ..old });
                return loaded;
            };
            let value = landed.value.clone();
            let kept = match (&guard.link, session, old.shared) {
                (None, ..) => {
                    let stays = guard.stays(value.is_none());
                    guard.keep_here(item, old.stamp, value, stays, None);
                    true
                }
                (Some(_), Some(session), Some(header)) => {
                    guard.keep(item, old.stamp, value, &session, &header).await
                }
                _ => false,
            };
            if !kept {
                // Redis has something newer, or nothing.
                guard.local.forget(&item);
            }
            loaded
        });
    }
}
