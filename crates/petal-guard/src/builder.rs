//! Making a guard.
//!
//! Owns the public settings and the tasks that a guard begins with.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use petal::{Secret, Sip128};
use redis::Client;
use tokio::sync::{Notify, Semaphore};

use crate::error::Error;
use crate::feed::{self, ChangeFeed};
use crate::flight::Flights;
use crate::guard::{Guard, Inner};
use crate::horizon::Horizon;
use crate::hub::{Hub, Run};
use crate::item::{Tokens, item};
use crate::link::{Link, Server};
use crate::local::LocalCache;
use crate::local_filter::LocalFilter;
use crate::meter::Meter;
use crate::remote::Names;
use crate::settings::{FilterKind, Settings};
use crate::stamps::Stamps;
use crate::storage::Storage;
use crate::write::Writes;

enum Address {
    One(String),
    #[cfg(feature = "cluster")]
    Cluster(Vec<String>),
}

/// Settings for a [`Guard`], from [`Guard::builder`].
pub struct Builder {
    settings: Settings,
    secret: Option<[u8; 16]>,
    address: Option<Address>,
    feed: Option<Box<dyn ChangeFeed>>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            settings: Settings::new(name),
            secret: None,
            address: None,
            feed: None,
        }
    }

    /// 16 bytes that strangers cannot guess, the same for all guards of one
    /// name. Keys are hashed under them, so that nobody can choose keys that pass the
    /// filter or that collide. Needed with Redis; otherwise random if not given.
    #[must_use]
    pub const fn secret(mut self, secret: [u8; 16]) -> Self {
        self.secret = Some(secret);
        self
    }

    /// A Redis or Valkey server, `redis://...`: shared cache, messages between
    /// guards and, with [`Self::remote_filter`], the filter. The primary, not a
    /// replica.
    #[must_use]
    pub fn redis(mut self, url: &str) -> Self {
        self.address = Some(Address::One(url.to_owned()));
        self
    }

    /// A cluster, by the addresses of some of its nodes. Values are spread
    /// over it; the filter, and what guards tell each other, are on one node.
    #[cfg(feature = "cluster")]
    #[must_use]
    pub fn redis_cluster<U: AsRef<str>>(mut self, urls: impl IntoIterator<Item = U>) -> Self {
        let urls = urls
            .into_iter()
            .map(|url| url.as_ref().to_owned())
            .collect();
        self.address = Some(Address::Cluster(urls));
        self
    }

    /// A filter in Redis for so many items, of this error, by the server's
    /// `BF.*` commands. [`Guard::warm_up`] fills it. It is shared by all guards.
    #[must_use]
    pub const fn remote_filter(mut self, items: u64, error: f64) -> Self {
        self.settings.filter = FilterKind::Remote { items, error };
        self
    }

    /// A filter in this process for so many items, of this error: see
    /// [`petal::BloomFilter::new`]. [`Guard::warm_up`] fills it, in each process.
    #[must_use]
    pub const fn local_filter(mut self, items: u64, error: f64) -> Self {
        self.settings.filter = FilterKind::Local { items, error };
        self
    }

    /// Where changes come from that are made past the guards. Without one,
    /// all writers have to go through guards.
    #[must_use]
    pub fn feed(mut self, feed: impl ChangeFeed) -> Self {
        self.feed = Some(Box::new(feed));
        self
    }

    /// How long a value is served before it is loaded anew. 300 s.
    #[must_use]
    pub const fn fresh_for(mut self, time: Duration) -> Self {
        self.settings.fresh_for = time;
        self
    }

    /// How much longer a value is served while it is loaded anew in the
    /// background. 60 s.
    #[must_use]
    pub const fn stale_for(mut self, time: Duration) -> Self {
        self.settings.stale_for = time;
        self
    }

    /// How long "absent" is cached, for keys that the filter let pass. 300 s.
    #[must_use]
    pub const fn absent_for(mut self, time: Duration) -> Self {
        self.settings.absent_for = time;
        self
    }

    /// How far that time is spread to either side, as a share of it. 0.1.
    #[must_use]
    pub const fn jitter(mut self, share: f64) -> Self {
        self.settings.jitter = share;
        self
    }

    /// What the cache in this process may take. 64 MiB.
    #[must_use]
    pub const fn local_bytes(mut self, bytes: u64) -> Self {
        self.settings.local_bytes = bytes;
        self
    }

    /// How many loads there may be at a time. 64.
    #[must_use]
    pub const fn max_loads(mut self, loads: usize) -> Self {
        self.settings.max_loads = loads;
        self
    }

    /// How long a load may take, the wait for its turn included. 2 s.
    #[must_use]
    pub const fn load_timeout(mut self, time: Duration) -> Self {
        self.settings.load_timeout = time;
        self
    }

    /// How long to wait for another guard that loads the same key. Then this
    /// one loads it as well. 200 ms.
    #[must_use]
    pub const fn lease_wait(mut self, time: Duration) -> Self {
        self.settings.lease_wait = time;
        self
    }

    /// How long a write of storage may take; the same for all guards of one
    /// name. 5 s.
    #[must_use]
    pub const fn write_timeout(mut self, time: Duration) -> Self {
        self.settings.write_timeout = time;
        self
    }

    /// How old the truth of an "absent" may be. 0: it is right as of the
    /// call, and a request waits for the feed, or goes to storage if that would
    /// take longer than [`Self::patience`].
    #[must_use]
    pub const fn max_lag(mut self, time: Duration) -> Self {
        self.settings.max_lag = time;
        self
    }

    /// How long a request waits for the feed. 50 ms.
    #[must_use]
    pub const fn patience(mut self, time: Duration) -> Self {
        self.settings.patience = time;
        self
    }

    /// How long Redis may be silent until what is cached here is not used any
    /// more. It is asked four times as often. 1 s.
    #[must_use]
    pub const fn max_silence(mut self, time: Duration) -> Self {
        self.settings.max_silence = time;
        self
    }

    /// How long an answer of Redis may take. 250 ms.
    #[must_use]
    pub const fn redis_timeout(mut self, time: Duration) -> Self {
        self.settings.redis_timeout = time;
        self
    }

    /// Makes the guard, inside of a tokio runtime. Redis need not be there:
    /// requests go to storage until it is.
    ///
    /// # Errors
    /// [`Error::Settings`].
    pub async fn build(self, storage: impl Storage) -> Result<Guard, Error> {
        let Self {
            settings,
            secret,
            address,
            feed,
        } = self;
        if let Some(fault) = settings.fault() {
            return Err(Error::Settings(fault));
        }
        let tokens = Tokens::new();
        let secret = match (secret, &address) {
            (Some(secret), _) => secret,
            (None, Some(_)) => {
                return Err(Error::Settings(
                    "guards that share a Redis need one secret: set it to 16 random bytes".into(),
                ));
            }
            (None, None) => drawn_secret(),
        };
        let has_remote_filter = matches!(settings.filter, FilterKind::Remote { .. });
        if has_remote_filter && address.is_none() {
            return Err(Error::Settings(
                "a remote filter needs the address of its server: set redis".into(),
            ));
        }
        let local_filter = match settings.filter {
            FilterKind::Local { items, error } => {
                Some(LocalFilter::new(items, error, Secret::new(secret))?)
            }
            _ => None,
        };
        let sip = Sip128::new(secret);
        let sentinel = item(&sip, b"petal-guard: the filter is whole");
        let hub = Arc::new(Hub {
            sip,
            stamps: Stamps::new(),
            local_filter,
            link: address.as_ref().map(|_| Horizon::lost()),
            feed: feed.as_ref().map(|_| Horizon::lost()),
            adopted: Notify::new(),
            run: Mutex::new(Run::default()),
        });
        let link = match address {
            Some(address) => Some(Arc::new(Link::new(
                server(address)?,
                Names::new(&settings.name),
                hub.clone(),
                settings.redis_timeout,
                settings.max_silence,
                has_remote_filter,
            ))),
            None => None,
        };
        let longest = (settings.fresh_for + settings.stale_for).max(settings.absent_for * 2);
        let inner = Arc::new(Inner {
            local: LocalCache::new(settings.local_bytes, longest),
            flights: Flights::default(),
            loads: Semaphore::new(settings.max_loads),
            storage: Arc::new(storage),
            writes: Writes::default(),
            meter: Meter::new(&settings.name),
            tokens,
            sentinel,
            hub,
            link,
            settings,
        });
        let mut tasks = Vec::new();
        if let Some(link) = &inner.link {
            tasks.push(tokio::spawn(link.clone().run()).abort_handle());
        }
        if let Some(feed) = feed {
            tasks.push(tokio::spawn(feed::run(inner.clone(), feed)).abort_handle());
        }
        let guard = Guard::new(inner.clone(), tasks);
        if let Some(link) = &inner.link {
            // The first requests need not find it closed.
            let patience = 2 * inner.settings.redis_timeout;
            let _ = tokio::time::timeout(patience, link.connected()).await;
        }
        Ok(guard)
    }
}

/// Two SipHashes under keys that the standard library draws.
fn drawn_secret() -> [u8; 16] {
    let mut secret = [0; 16];
    for half in secret.chunks_mut(8) {
        half.copy_from_slice(&Tokens::new().draw().to_le_bytes());
    }
    secret
}

fn open(url: &str) -> Result<Client, Error> {
    Client::open(url).map_err(|error| Error::Settings(format!("the address {url:?}: {error}")))
}

fn server(address: Address) -> Result<Server, Error> {
    match address {
        Address::One(url) => Ok(Server::One(open(&url)?)),
        #[cfg(feature = "cluster")]
        Address::Cluster(urls) => {
            let seeds = urls.iter().map(|url| open(url)).collect::<Result<_, _>>()?;
            let client = redis::cluster::ClusterClient::new(urls)
                .map_err(|error| Error::Settings(format!("the cluster: {error}")))?;
            Ok(Server::Cluster {
                client: Box::new(client),
                seeds,
            })
        }
    }
}
