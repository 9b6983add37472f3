//! Digests: those that a cache publishes, and what it holds of its peers.
//!
//! A digest is a filter of all that a cache holds, and all digests of a cache
//! have one shape, so that a delta leads from each to a later one.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use petal::sizing::{self, ClassicGiven, Collisions};
use petal::{
    AnyFilter, Bloom, Classic, ClassicGeometry, Contains, Identity, KeyType, Promise, wire,
};

use crate::http::{Outcome, Reply};

/// The form of a delta in `A-IM` and `IM`: see RFC 3229, "Delta encoding in HTTP".
pub(crate) const DELTA: &str = "petal-delta";

/// Digests that a cache can still make a delta from.
const KEPT: usize = 4;

/// What digests are made as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) promise: Promise,
    /// Positions a key in a classic filter; split blocks if none.
    pub(crate) positions: Option<u32>,
}

impl Shape {
    fn empty(self) -> petal::Result<AnyFilter> {
        let identity = Identity::new(KeyType::Bytes);
        let Promise { items, error } = self.promise;
        let Some(hashes) = self.positions else {
            return Ok(Bloom::sized(identity, self.promise)?.into());
        };
        let given = ClassicGiven {
            items: Some(items),
            error: Some(error),
            bits: None,
            hashes: Some(hashes),
        };
        let plan = sizing::plan_classic(given, Collisions::Digest64)?;
        let geometry = ClassicGeometry::new(plan.bits, plan.hashes)?;
        Ok(Classic::with_geometry(identity, geometry, self.promise)?.into())
    }
}

/// The error that the formula has for a filter of its shape and number of keys.
fn expected_error(filter: &AnyFilter) -> f64 {
    let items = Contains::about(filter).insertions().unwrap_or(0);
    match filter {
        AnyFilter::Bloom(filter) => {
            sizing::split_error(filter.geometry(), items, Collisions::Digest64)
        }
        AnyFilter::Classic(filter) => {
            let geometry = filter.geometry();
            let (bits, hashes) = (geometry.bits(), geometry.positions());
            sizing::classic_error(items, bits, hashes, Collisions::Digest64)
                .unwrap_or_else(|_| filter.error_now())
        }
        other => other.error_now(),
    }
}

/// A digest that was published.
struct Version {
    tag: String,
    filter: AnyFilter,
    packed: Bytes,
    /// What it lists: kept to tell false hits from objects that have left.
    listed: HashSet<Arc<str>>,
}

/// What answers the question for a digest.
pub(crate) enum Answer {
    /// It is the one that the asker has.
    Same,
    /// All of it, with its tag.
    Whole(String, Bytes),
    /// What has changed, with the tag of what comes out.
    Delta(String, Bytes),
}

/// The digests of a cache.
pub(crate) struct Published {
    shape: Shape,
    /// Differs between runs of a cache, which begins to count anew.
    run: u64,
    versions: VecDeque<Version>,
    generation: u64,
    /// Bytes of the newest one as a file.
    pub(crate) raw: u64,
}

impl Published {
    pub(crate) const fn new(shape: Shape, run: u64) -> Self {
        Self {
            shape,
            run,
            versions: VecDeque::new(),
            generation: 0,
            raw: 0,
        }
    }

    /// A new digest, of these objects.
    pub(crate) fn publish(&mut self, objects: impl Iterator<Item = Arc<str>>) -> Outcome<()> {
        let mut filter = self.shape.empty()?;
        let mut listed = HashSet::new();
        for object in objects {
            filter.insert_bytes(object.as_bytes())?;
            listed.insert(object);
        }
        self.generation += 1;
        filter.set_generation(self.generation);
        self.raw = filter.to_bytes()?.len() as u64;
        self.versions.push_back(Version {
            tag: format!("\"{:x}-{}\"", self.run, self.generation),
            packed: wire::pack(&filter)?.into(),
            filter,
            listed,
        });
        if self.versions.len() > KEPT {
            self.versions.pop_front();
        }
        Ok(())
    }

    /// For somebody who has the digest with a tag, or none. Nothing if none was
    /// published.
    pub(crate) fn answer(&self, tag: Option<&str>) -> Outcome<Option<Answer>> {
        let Some(newest) = self.versions.back() else {
            return Ok(None);
        };
        if tag == Some(newest.tag.as_str()) {
            return Ok(Some(Answer::Same));
        }
        let base = self.versions.iter().find(|v| Some(v.tag.as_str()) == tag);
        if let Some(base) = base {
            let delta = wire::delta(&base.filter, &newest.filter)?;
            // Where nearly all has changed, the whole is shorter.
            if delta.len() < newest.packed.len() {
                return Ok(Some(Answer::Delta(newest.tag.clone(), delta.into())));
            }
        }
        Ok(Some(Answer::Whole(
            newest.tag.clone(),
            newest.packed.clone(),
        )))
    }

    /// Whether the digest with a tag lists an object; unknown if it is no longer
    /// kept.
    pub(crate) fn listed(&self, tag: &str, object: &str) -> Option<bool> {
        let version = self.versions.iter().find(|version| version.tag == tag)?;
        Some(version.listed.contains(object))
    }

    /// Bytes of the newest one packed.
    pub(crate) fn packed(&self) -> u64 {
        self.versions.back().map_or(0, |v| v.packed.len() as u64)
    }

    #[cfg(test)]
    pub(crate) fn newest(&self) -> &AnyFilter {
        &self.versions.back().unwrap().filter
    }
}

/// The digest of a peer.
pub(crate) struct Held {
    pub(crate) tag: String,
    pub(crate) filter: AnyFilter,
    /// What its formula says.
    pub(crate) error: f64,
}

impl Held {
    /// What comes of what was held and the reply to a question for news.
    pub(crate) fn updated(held: Option<Arc<Self>>, reply: &Reply) -> Outcome<Option<Arc<Self>>> {
        let filter = match reply.status {
            StatusCode::NOT_FOUND => return Ok(None),
            StatusCode::NOT_MODIFIED => return Ok(held),
            StatusCode::OK => wire::unpack(&reply.body, None)?,
            StatusCode::IM_USED if reply.header("im") == Some(DELTA) => {
                let held = held.ok_or("a delta for a digest that is not held")?;
                wire::apply_delta(&held.filter, &reply.body)?
            }
            status => return Err(format!("a digest with status {status}").into()),
        };
        let tag = reply.header("etag").ok_or("a digest without a tag")?;
        Ok(Some(Arc::new(Self {
            tag: tag.to_owned(),
            error: expected_error(&filter),
            filter,
        })))
    }
}
