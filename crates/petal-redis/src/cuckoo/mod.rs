//! The values of cuckoo filter keys: chains of deletable filters.
//!
//! Owns [`CuckooKey`]: a chain, or the part of one that came so far, and its
//! chunks. `chain` is the chain itself. The commands are those of a cuckoo filter;
//! the structure is a quotient filter, which counts, and has an error of the
//! user's choice.

pub(crate) mod chain;

use std::ffi::CStr;
use std::sync::atomic::AtomicPtr;

use redis_module::raw::RedisModuleType;

use crate::config::{Family, Gauge};
use crate::engine::types::Kept;
use crate::engine::{Failure, Outcome};
use crate::frame;
use crate::load::{Loaded, Loading, bad};
use chain::{Chain, Spec};

/// First bytes of a dump.
const MAGIC: [u8; 8] = *b"petalCF1";

/// What a key holds.
#[derive(Debug)]
pub(crate) struct CuckooKey {
    state: State,
    gauge: Gauge,
    epoch: u64,
}

#[derive(Debug)]
enum State {
    Ready(Chain),
    Loading(Loading),
    /// What came was no chain.
    Broken,
}

impl CuckooKey {
    pub(crate) fn new(chain: Chain) -> Self {
        Self::of(State::Ready(chain))
    }

    fn of(state: State) -> Self {
        let mut key = Self {
            state,
            gauge: Gauge::new(Family::Cuckoo),
            epoch: frame::new_epoch(),
        };
        key.gauge.set(key.bytes());
        key
    }

    /// Whether all of it is there.
    pub(crate) const fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }

    /// The chain.
    ///
    /// # Errors
    /// If it is still being loaded.
    pub(crate) fn chain(&self) -> Outcome<&Chain> {
        match &self.state {
            State::Ready(chain) => Ok(chain),
            _ => Err("ERR the filter is still being loaded".into()),
        }
    }

    /// Changes the chain.
    ///
    /// # Errors
    /// What `change` gives, or if the chain is still being loaded.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Chain) -> Outcome<T>,
    ) -> Outcome<T> {
        let State::Ready(chain) = &mut self.state else {
            return Err("ERR the filter is still being loaded".into());
        };
        let changed = change(chain)?;
        self.epoch = frame::new_epoch();
        self.gauge.set(self.bytes());
        Ok(changed)
    }

    /// Another one with each change: half a table of before and half of after are none.
    #[expect(clippy::unnecessary_wraps, reason = "as that of Bloom filters")]
    pub(crate) const fn epoch(&self) -> Option<u64> {
        Some(self.epoch)
    }

    /// Makes a chain of all that came, if that is all.
    fn settle(&mut self) -> Outcome {
        if !matches!(&self.state, State::Loading(loading) if loading.is_complete()) {
            return Ok(());
        }
        let State::Loading(loading) = std::mem::replace(&mut self.state, State::Broken) else {
            return Ok(());
        };
        let chain = match loading.finish()? {
            Loaded::Own {
                description,
                filters,
            } => Spec::decode(&description).and_then(|spec| Chain::of_parts(spec, filters)),
            Loaded::File(filter) => Chain::of_file(filter),
            Loaded::Foreign(_) => None,
        };
        let chain = chain.ok_or_else(|| Failure::broken(&"it is no chain of deletable filters"))?;
        self.state = State::Ready(chain);
        Ok(())
    }
}

static HANDLE: AtomicPtr<RedisModuleType> = AtomicPtr::new(std::ptr::null_mut());

impl Kept for CuckooKey {
    const NAME: &'static CStr = c"petalcuck";
    const LOAD_COMMAND: &'static CStr = c"cf.loadchunk";

    fn handle() -> &'static AtomicPtr<RedisModuleType> {
        &HANDLE
    }

    fn chunk_after(&self, iterator: u64) -> Outcome<Option<(u64, Vec<u8>)>> {
        let chain = match &self.state {
            State::Ready(chain) => chain,
            State::Loading(loading) => return loading.chunk_after(iterator),
            State::Broken => return Ok(None),
        };
        if iterator > 0 {
            return frame::chunk_after(chain.stages().iter(), iterator);
        }
        let fronts: Vec<Vec<u8>> = chain
            .stages()
            .iter()
            .map(petal::AnyFilter::front)
            .collect::<petal::Result<_>>()?;
        let fronts = fronts.iter().map(Vec::as_slice);
        let data = frame::header(MAGIC, &chain.spec.encode(), fronts);
        let identity = frame::identity_of(chain.stages().iter())?;
        Ok(Some((1, frame::seal(1, identity, &data))))
    }

    fn begin(header: &[u8], most: u64) -> Outcome<Self> {
        let loading = match Loading::begin(MAGIC, header, most) {
            Ok(Loading::Foreign(_)) | Err(_) if header.len() < REDISBLOOM_HEADER_BELOW => {
                return Err(
                    "Invalid header: only dumps of this module are taken. A cuckoo filter of \
                            another module cannot be: rebuild it from its items"
                        .into(),
                );
            }
            loading => loading?,
        };
        if let Loading::Foreign(_) = loading {
            return Err(bad(
                &"a Bloom filter of RedisBloom: load it with BF.LOADCHUNK",
            ));
        }
        let mut key = Self::of(State::Loading(loading));
        key.settle()?;
        Ok(key)
    }

    fn push(&mut self, iterator: u64, chunk: &[u8]) -> Outcome {
        let State::Loading(loading) = &mut self.state else {
            return Err(bad(&"the filter is complete"));
        };
        loading.push(iterator, chunk)?;
        self.settle()?;
        self.gauge.set(self.bytes());
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let own = size_of::<Self>() as u64;
        own + match &self.state {
            State::Ready(chain) => chain.bytes() + chain.stages().len() as u64 * OVERHEAD,
            State::Loading(loading) => loading.bytes(),
            State::Broken => 0,
        }
    }
}

/// Own headers are longer than those of RedisBloom's cuckoo filters.
const REDISBLOOM_HEADER_BELOW: usize = 64;

/// What a filter takes besides its bits.
const OVERHEAD: u64 = 256;
