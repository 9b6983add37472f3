//! The values of Bloom filter keys.
//!
//! Owns [`BloomKey`]: a filter, or the part of one that came so far, and its
//! chunks. `spec` is what a filter was reserved with, `filter` the filter itself.

pub(crate) mod filter;
pub(crate) mod spec;

use std::ffi::CStr;
use std::sync::atomic::AtomicPtr;

use petal::{AnyFilter, Overload, WindowSpan};
use redis_module::raw::RedisModuleType;

use crate::config::{Family, Gauge};
use crate::engine::types::Kept;
use crate::engine::{Failure, Outcome};
use crate::frame::{self, PIECE};
use crate::load::{Loaded, Loading, bad, plain};
use filter::{Body, Filter};
use spec::Spec;

/// First bytes of a dump.
const MAGIC: [u8; 8] = *b"petalBF1";

/// What a key holds.
#[derive(Debug)]
pub(crate) struct BloomKey {
    state: State,
    gauge: Gauge,
    /// Another one whenever a dump that has begun would no longer fit together.
    epoch: u64,
    /// Another one with each change.
    changes: u64,
}

#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the usual one"
)]
#[derive(Debug)]
enum State {
    Ready(Filter),
    Loading(Loading),
    /// What came was no filter.
    Broken,
}

const INCOMPLETE: &str = "ERR the filter is still being loaded";
const MERGING: &str = "ERR the filter is still being merged: wait or, if the server was ended \
                       meanwhile, delete the key";

impl BloomKey {
    pub(crate) fn new(filter: Filter) -> Self {
        Self::of(State::Ready(filter))
    }

    fn of(state: State) -> Self {
        let mut key = Self {
            state,
            gauge: Gauge::new(Family::Bloom),
            epoch: frame::new_epoch(),
            changes: frame::new_epoch(),
        };
        key.measure();
        key
    }

    fn measure(&mut self) {
        self.gauge.set(self.bytes());
    }

    /// The filter, if all of it is there.
    pub(crate) fn ready(&self) -> Option<&Filter> {
        self.filter().ok()
    }

    /// The filter.
    ///
    /// # Errors
    /// If it is still being loaded or merged.
    pub(crate) fn filter(&self) -> Outcome<&Filter> {
        match &self.state {
            State::Ready(filter) if filter.spec.merging => Err(MERGING.into()),
            State::Ready(filter) => Ok(filter),
            State::Loading(_) | State::Broken => Err(INCOMPLETE.into()),
        }
    }

    /// Whether it is made by a merge that is not over.
    pub(crate) const fn is_merging(&self) -> bool {
        matches!(&self.state, State::Ready(filter) if filter.spec.merging)
    }

    /// Changes the filter.
    ///
    /// # Errors
    /// What `change` gives, or if the filter is still being loaded or merged.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Filter) -> Outcome<T>,
    ) -> Outcome<T> {
        if self.is_merging() {
            return Err(MERGING.into());
        }
        self.merge(change)
    }

    /// The same, and of one that is still being merged: for the merge.
    pub(crate) fn merge<T>(
        &mut self,
        change: impl FnOnce(&mut Filter) -> Outcome<T>,
    ) -> Outcome<T> {
        let State::Ready(filter) = &mut self.state else {
            return Err(INCOMPLETE.into());
        };
        let stages = filter.stages();
        let changed = change(filter)?;
        self.changes = frame::new_epoch();
        let grown = stages != filter.stages();
        let torn = match &filter.body {
            // Bits only ever appear: a dump is good as long as there are as many stages.
            Body::Own(AnyFilter::Bloom(_) | AnyFilter::Growable(_) | AnyFilter::Classic(_)) => {
                grown
            }
            Body::Own(_) | Body::Foreign(_) => true,
        };
        if torn {
            self.epoch = frame::new_epoch();
        }
        if grown {
            self.measure();
        }
        Ok(changed)
    }

    /// What tells dumps apart; `None` where iterators are RedisBloom's, so that the filter can go
    /// back there.
    pub(crate) const fn epoch(&self) -> Option<u64> {
        match &self.state {
            State::Ready(Filter {
                body: Body::Foreign(_),
                ..
            })
            | State::Loading(Loading::Foreign(_)) => None,
            _ => Some(self.epoch),
        }
    }

    /// See the field.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "as the other number that tells dumps apart"
    )]
    pub(crate) const fn changes(&self) -> Option<u64> {
        Some(self.changes)
    }

    /// Makes a filter of all that came, if that is all.
    fn settle(&mut self) -> Outcome {
        if !matches!(&self.state, State::Loading(loading) if loading.is_complete()) {
            return Ok(());
        }
        let State::Loading(loading) = std::mem::replace(&mut self.state, State::Broken) else {
            return Ok(());
        };
        self.state = State::Ready(filter_of(loading.finish()?)?);
        Ok(())
    }
}

fn filter_of(loaded: Loaded) -> Outcome<Filter> {
    let (filter, spec) = match loaded {
        Loaded::Own {
            description,
            mut filters,
        } => {
            let spec = Spec::decode(&description).filter(|_| filters.len() == 1);
            let later = || Failure::broken(&"the header is of a later version");
            let spec = spec.ok_or_else(later)?;
            (filters.pop().ok_or_else(later)?, spec)
        }
        Loaded::File(filter) => {
            let spec = Spec::of(&filter);
            (filter, spec)
        }
        Loaded::Foreign(chain) => {
            let body = Body::Foreign(chain);
            return Ok(Filter {
                body,
                spec: Spec::default_one(),
            });
        }
    };
    check_kind(&filter).map_err(Failure::into_broken)?;
    Ok(Filter {
        body: Body::Own(filter),
        spec,
    })
}

/// Refuses a filter whose kind is not served here.
fn check_kind(filter: &AnyFilter) -> Outcome {
    match filter {
        // It could refuse items in the middle of a command.
        AnyFilter::Window(window)
            if matches!(
                window.span(),
                WindowSpan::Time {
                    overload: Overload::Refuse,
                    ..
                }
            ) =>
        {
            Err("ERR a window that refuses items is not served: build one that shortens".into())
        }
        AnyFilter::Bloom(_)
        | AnyFilter::Classic(_)
        | AnyFilter::Growable(_)
        | AnyFilter::Window(_)
        | AnyFilter::Static(_) => Ok(()),
        AnyFilter::Deletable(_) => {
            Err("ERR the filter is deletable: load it with CF.LOADCHUNK".into())
        }
        other => Err(format!("ERR a filter of kind {} is not served", other.kind()).into()),
    }
}

static HANDLE: AtomicPtr<RedisModuleType> = AtomicPtr::new(std::ptr::null_mut());

impl Kept for BloomKey {
    const NAME: &'static CStr = c"petalblom";
    const LOAD_COMMAND: &'static CStr = c"bf.loadchunk";

    fn handle() -> &'static AtomicPtr<RedisModuleType> {
        &HANDLE
    }

    fn chunk_after(&self, iterator: u64) -> Outcome<Option<(u64, Vec<u8>)>> {
        let filter = match &self.state {
            State::Ready(filter) => filter,
            State::Loading(loading) => return loading.chunk_after(iterator),
            State::Broken => return Ok(None),
        };
        match (&filter.body, iterator) {
            (Body::Own(own), 0) => {
                let front = own.front()?;
                let fronts = [front.as_slice()].into_iter();
                let data = frame::header(MAGIC, &filter.spec.encode(), fronts);
                let identity = frame::identity_of(std::iter::once(own))?;
                Ok(Some((1, frame::seal(1, identity, &data))))
            }
            (Body::Own(own), _) => frame::chunk_after(std::iter::once(own), iterator),
            (Body::Foreign(chain), 0) => Ok(Some((1, chain.header()))),
            (Body::Foreign(chain), _) => Ok(plain(iterator, chain.piece(iterator - 1, PIECE))),
        }
    }

    fn begin(header: &[u8], most: u64) -> Outcome<Self> {
        let mut key = Self::of(State::Loading(Loading::begin(MAGIC, header, most)?));
        key.settle()?;
        Ok(key)
    }

    fn push(&mut self, iterator: u64, chunk: &[u8]) -> Outcome {
        let State::Loading(loading) = &mut self.state else {
            return Err(bad(&"the filter is complete"));
        };
        loading.push(iterator, chunk)?;
        self.settle()?;
        self.measure();
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let own = size_of::<Self>() as u64;
        own + match &self.state {
            State::Ready(filter) => filter.bytes() + filter.stages() as u64 * OVERHEAD,
            State::Loading(loading) => loading.bytes(),
            State::Broken => 0,
        }
    }
}

/// What a stage takes besides its bits.
const OVERHEAD: u64 = 256;
