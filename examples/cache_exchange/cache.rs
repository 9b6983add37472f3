//! A cache: what it stores, what it answers, and whom it asks for the rest.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH};
use hyper::{Method, Request, Response, StatusCode};

use crate::digest::{Answer, DELTA, Held, Published, Shape};
use crate::http::{Link, Outcome, bare};

/// Where the digest of a cache is.
const DIGEST: &str = "/.well-known/petal-digest";

/// The tag of the digest because of which a peer is asked.
const BECAUSE: &str = "digest-tag";

/// Whether that digest lists the object.
const LISTED: &str = "digest-listed";

/// The objects that were used last.
struct Store {
    capacity: usize,
    clock: u64,
    objects: HashMap<Arc<str>, (u64, Bytes)>,
    by_use: BTreeMap<u64, Arc<str>>,
}

impl Store {
    fn new(capacity: usize) -> Self {
        Self {
            capacity,
            clock: 0,
            objects: HashMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    fn get(&mut self, path: &str) -> Option<Bytes> {
        let (used, body) = self.objects.get_mut(path)?;
        let name = self.by_use.remove(used)?;
        self.clock += 1;
        *used = self.clock;
        self.by_use.insert(self.clock, name);
        Some(body.clone())
    }

    fn put(&mut self, path: &str, body: Bytes) {
        if self.get(path).is_some() {
            return;
        }
        if self.objects.len() == self.capacity
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.objects.remove(&oldest);
        }
        self.clock += 1;
        let name: Arc<str> = path.into();
        self.by_use.insert(self.clock, name.clone());
        self.objects.insert(name, (self.clock, body));
    }
}

/// What has happened at a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) own_hits: u64,
    pub(crate) remote_hits: u64,
    pub(crate) from_origin: u64,
    /// Requests to peers for objects.
    pub(crate) asked: u64,
    /// Questions to digests that do not list the object.
    pub(crate) questions: u64,
    /// Those that were answered "yes", even if the object has come to the peer since.
    pub(crate) false_hits: u64,
    /// How many the formula expects of them.
    pub(crate) expected: f64,
    /// Objects that had left the peer since its digest was made.
    pub(crate) stale: u64,
    /// Peers that did not answer as they should, or no longer knew the digest.
    pub(crate) failed: u64,
    /// Digests that came, whole and as deltas, and their bytes.
    pub(crate) wholes: u64,
    pub(crate) whole_bytes: u64,
    pub(crate) deltas: u64,
    pub(crate) delta_bytes: u64,
    /// Bytes of the same digests, if each came whole: as files, and packed.
    pub(crate) raw_bytes: u64,
    pub(crate) packed_bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.own_hits += other.own_hits;
        self.remote_hits += other.remote_hits;
        self.from_origin += other.from_origin;
        self.asked += other.asked;
        self.questions += other.questions;
        self.false_hits += other.false_hits;
        self.expected += other.expected;
        self.stale += other.stale;
        self.failed += other.failed;
        self.wholes += other.wholes;
        self.whole_bytes += other.whole_bytes;
        self.deltas += other.deltas;
        self.delta_bytes += other.delta_bytes;
        self.raw_bytes += other.raw_bytes;
        self.packed_bytes += other.packed_bytes;
    }
}

/// Another cache, as this one knows it.
struct Peer {
    link: Link,
    digest: Mutex<Option<Arc<Held>>>,
}

pub(crate) struct Cache {
    origin: Link,
    /// Set when all caches are there.
    peers: OnceLock<Vec<Peer>>,
    state: Mutex<State>,
}

struct State {
    store: Store,
    published: Published,
    tally: Tally,
}

/// What a peer said.
struct Found {
    body: Option<Bytes>,
    /// Whether its digest had listed the object; unknown if that is too old.
    listed: Option<bool>,
}

/// Nothing panics while it has a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    pub(crate) fn new(origin: SocketAddr, capacity: usize, shape: Shape, run: u64) -> Self {
        Self {
            origin: Link::to(origin),
            peers: OnceLock::new(),
            state: Mutex::new(State {
                store: Store::new(capacity),
                published: Published::new(shape, run),
                tally: Tally::default(),
            }),
        }
    }

    /// Tells who the others are. Only the first call counts.
    pub(crate) fn meet(&self, addresses: impl IntoIterator<Item = SocketAddr>) {
        let peers = addresses.into_iter().map(|address| Peer {
            link: Link::to(address),
            digest: Mutex::default(),
        });
        self.peers.get_or_init(|| peers.collect());
    }

    fn peers(&self) -> &[Peer] {
        self.peers.get().map_or(&[], Vec::as_slice)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn tally(&self) -> Tally {
        self.state().tally
    }

    /// A new digest of what is here now.
    pub(crate) fn publish(&self) -> Outcome<()> {
        let state = &mut *self.state();
        state
            .published
            .publish(state.store.by_use.values().cloned())
    }

    /// Bytes of the newest digest as a file, and packed.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let state = self.state();
        (state.published.raw, state.published.packed())
    }

    /// Asks each peer for its digest, or for what has changed in it. `sizes` are
    /// those of the newest digests of the peers, for comparison.
    pub(crate) async fn refresh(&self, sizes: &[(u64, u64)]) {
        for (peer, &(raw, packed)) in self.peers().iter().zip(sizes) {
            let outcome = peer.refresh().await;
            let tally = &mut self.state().tally;
            match outcome {
                Err(_) => tally.failed += 1,
                Ok((is_delta, bytes)) => {
                    if is_delta {
                        tally.deltas += 1;
                        tally.delta_bytes += bytes;
                    } else {
                        tally.wholes += 1;
                        tally.whole_bytes += bytes;
                    }
                    tally.raw_bytes += raw;
                    tally.packed_bytes += packed;
                }
            }
        }
    }

    /// Answers a client or a peer.
    pub(crate) async fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Response<Full<Bytes>> {
        if request.method() != Method::GET {
            return bare(StatusCode::METHOD_NOT_ALLOWED);
        }
        let header = |name: &str| request.headers().get(name)?.to_str().ok();
        let path = request.uri().path().to_owned();
        if path == DIGEST {
            let takes_deltas = header("a-im") == Some(DELTA);
            let tag = header(IF_NONE_MATCH.as_str());
            return self.digest(tag, takes_deltas);
        }
        if header(CACHE_CONTROL.as_str()) == Some("only-if-cached") {
            return self.sibling(&path, header(BECAUSE));
        }
        match self.fetch(&path).await {
            Ok(body) => Response::new(Full::new(body)),
            Err(_) => bare(StatusCode::BAD_GATEWAY),
        }
    }

    fn digest(&self, tag: Option<&str>, takes_deltas: bool) -> Response<Full<Bytes>> {
        let tag_of_delta = tag.filter(|_| takes_deltas);
        let (status, tag, body) = match self.state().published.answer(tag_of_delta) {
            Ok(Some(Answer::Same)) => return bare(StatusCode::NOT_MODIFIED),
            Ok(Some(Answer::Whole(tag, body))) => (StatusCode::OK, tag, body),
            Ok(Some(Answer::Delta(tag, body))) => (StatusCode::IM_USED, tag, body),
            Ok(None) => return bare(StatusCode::NOT_FOUND),
            Err(_) => return bare(StatusCode::INTERNAL_SERVER_ERROR),
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if let Ok(tag) = HeaderValue::try_from(tag) {
            headers.insert(ETAG, tag);
        }
        if status == StatusCode::IM_USED {
            let name = HeaderName::from_static("im");
            headers.insert(name, HeaderValue::from_static(DELTA));
        }
        response
    }

    /// Answers a peer: from the store alone.
    fn sibling(&self, path: &str, because: Option<&str>) -> Response<Full<Bytes>> {
        let state = &mut *self.state();
        let mut response = match state.store.get(path) {
            Some(body) => Response::new(Full::new(body)),
            None => bare(StatusCode::GATEWAY_TIMEOUT), // RFC 9111, 5.2.1.7
        };
        let listed = because.and_then(|tag| state.published.listed(tag, path));
        if let Some(listed) = listed {
            let value = HeaderValue::from_static(if listed { "yes" } else { "no" });
            let name = HeaderName::from_static(LISTED);
            response.headers_mut().insert(name, value);
        }
        response
    }

    /// The object, from here, from a peer whose digest says that it has it, or
    /// from the origin.
    async fn fetch(&self, path: &str) -> Outcome<Bytes> {
        {
            let state = &mut *self.state();
            state.tally.requests += 1;
            if let Some(body) = state.store.get(path) {
                state.tally.own_hits += 1;
                return Ok(body);
            }
        }
        for peer in self.peers() {
            let Some(digest) = lock(&peer.digest).clone() else {
                continue;
            };
            let asked = match digest.filter.contains_bytes(path.as_bytes())? {
                true => Some(peer.ask(path, &digest.tag).await),
                false => None,
            };
            let state = &mut *self.state();
            let tally = &mut state.tally;
            tally.asked += u64::from(asked.is_some());
            let found = match asked {
                Some(Ok(found)) => found,
                Some(Err(_)) => {
                    tally.failed += 1;
                    continue;
                }
                None => {
                    tally.questions += 1;
                    tally.expected += digest.error;
                    continue;
                }
            };
            match found.listed {
                Some(false) => {
                    tally.questions += 1;
                    tally.expected += digest.error;
                    tally.false_hits += 1;
                }
                Some(true) if found.body.is_none() => tally.stale += 1,
                Some(true) => {}
                None => tally.failed += 1,
            }
            if let Some(body) = found.body {
                tally.remote_hits += 1;
                state.store.put(path, body.clone());
                return Ok(body);
            }
        }
        let reply = self.origin.get(path, &[]).await?;
        if reply.status != StatusCode::OK {
            return Err(format!("the origin says {}", reply.status).into());
        }
        let state = &mut *self.state();
        state.tally.from_origin += 1;
        state.store.put(path, reply.body.clone());
        Ok(reply.body)
    }
}

impl Peer {
    /// Asks for the digest. Whether what came is a delta, and its bytes. After an
    /// error no digest is held, so that the next one comes whole.
    async fn refresh(&self) -> Outcome<(bool, u64)> {
        let held = lock(&self.digest).take();
        let mut headers = vec![("a-im", DELTA)];
        if let Some(held) = &held {
            headers.push((IF_NONE_MATCH.as_str(), held.tag.as_str()));
        }
        let reply = self.link.get(DIGEST, &headers).await?;
        let is_delta = reply.status == StatusCode::IM_USED;
        let bytes = reply.body.len() as u64;
        *lock(&self.digest) = Held::updated(held, &reply)?;
        Ok((is_delta, bytes))
    }

    /// Asks for an object that a digest says is there.
    async fn ask(&self, path: &str, tag: &str) -> Outcome<Found> {
        let headers = [(CACHE_CONTROL.as_str(), "only-if-cached"), (BECAUSE, tag)];
        let reply = self.link.get(path, &headers).await?;
        let listed = reply.header(LISTED).map(|listed| listed == "yes");
        let body = match reply.status {
            StatusCode::OK => Some(reply.body),
            StatusCode::GATEWAY_TIMEOUT => None,
            status => return Err(format!("a peer says {status}").into()),
        };
        Ok(Found { body, listed })
    }
}
