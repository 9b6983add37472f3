//! A filter and two caches in front of a storage, as one call.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use petal_guard::{Guard, Layer, Loader};
//!
//! // Any async storage; this one has a single key.
//! let users = Loader::new(async |key: Vec<u8>| Ok((key == b"alice").then(|| b"1".to_vec())));
//! let guard = Guard::builder("users").local_filter(1000, 0.001).build(users).await?;
//! guard.warm_up(|| futures_util::stream::iter([Ok::<_, std::io::Error>("alice")])).await?;
//!
//! assert_eq!(guard.get(b"alice").await?.as_deref(), Some(&b"1"[..]));
//! let nobody = guard.get_traced(b"nobody").await?;
//! assert_eq!((nobody.value, nobody.layer), (None, Layer::Filter)); // storage was not asked
//! # Ok(())
//! # }
//! ```
//!
//! With `redis("redis://...")` and `remote_filter(n, p)` in place of `local_filter`, many processes
//! share one filter and one cache, and tell each other of their writes.
//!
//! # What is promised
//!
//! * **No wrong "absent".** `None` is right as of the moment of the call, less
//!   `max_lag`: as long as all writers go through guards, or a [`ChangeFeed`] tells of
//!   the others. A filter that is missing, evicted, damaged, not filled yet, on a
//!   server that was restarted or failed over, or behind the feed, lets every key
//!   pass: the guard *fails open*.
//! * **One load a key**, however many wait; a load that panics, or whose caller goes
//!   away, leaves nobody waiting.
//! * **Nothing read before a write is served after it**, beyond what a message
//!   between two guards takes; where writers go past the guards, what the feed
//!   takes. While a guard hears nothing from Redis it uses nothing that it cached.
//! * **Errors are never cached**, and "absent" only for keys that passed the filter:
//!   made-up keys take no memory beyond the filter's error.
//!
//! The promise rests on storage: a load has to see the writes that were confirmed
//! before it began.
//!
//! # How
//!
//! ```text
//! key ─▶ local cache ─▶ filter ─▶ shared cache ─▶ storage
//!           moka        Redis,       Redis          yours
//!                     or here first
//! ```
//!
//! The nearest layer is asked first. Three things make the answers right, each in a
//! module of its own:
//!
//! * *Horizons.* Link and feed say up to which instant their changes have been applied.
//!   An "absent" carries the instant as of which it is right, and is taken only
//!   from a horizon that is not before the request.
//! * *Stamps and leases.* A lookup takes the key's stamp and leaves a lease in Redis
//!   before it reads storage. A write changes the stamp and removes the lease, so
//!   that a load which began before it is stored nowhere.
//! * *Sessions.* All questions to Redis go through one connection to one process of
//!   the server, which also brings the messages, in order. Another connection compares
//!   what server that is before anything is believed.

mod builder;
mod error;
mod feed;
mod flight;
mod guard;
mod horizon;
mod hub;
mod item;
mod link;
mod load;
mod local;
mod local_filter;
mod meter;
mod remote;
mod settings;
mod shared;
mod stamps;
mod storage;
mod warm;
mod write;

pub use builder::Builder;
pub use error::{BoxError, Error};
pub use feed::{ChangeFeed, Changes, FeedError};
pub use guard::{Guard, Layer, Traced};
pub use meter::Stats;
pub use storage::{Loader, Storage};
