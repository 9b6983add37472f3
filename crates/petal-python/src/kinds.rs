//! The classes of the kinds of filter.
//!
//! Owns their constructors, what only one kind can do, and which class an
//! opened filter gets. Everything else is [`Filter`]'s.

use petal::sizing::{GrowthPlan, Promise};
use petal::{
    AnyFilter, Bloom, ConcurrentBloom, Count, CounterBits, Counting, DigestSet, Error, Growable,
    Identity, Increase, Insert, KeyType, Kind, Overload, Static, StaticBuilder, Window, WindowSpan,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyType;

use crate::column::Prepared;
use crate::errors::{MismatchError, OrRaise};
use crate::filter::Filter;
use crate::keys::{Rules, identity};

/// The object for a filter: of the class of its kind, and shared by many
/// threads if that is asked for and possible.
pub(crate) fn object(py: Python<'_>, filter: AnyFilter, shared: bool) -> PyResult<Py<PyAny>> {
    macro_rules! of {
        ($class:ident, $base:expr) => {
            Py::new(py, PyClassInitializer::from($base).add_subclass($class))?.into_any()
        };
    }
    if let (AnyFilter::Bloom(_), true) = (&filter, shared) {
        let filter = Bloom::try_from(filter).and_then(Bloom::into_concurrent);
        return Ok(of!(
            ConcurrentBloomFilter,
            Filter::shared(filter.or_raise()?)
        ));
    }
    let kind = filter.kind();
    let base = Filter::new(filter);
    Ok(match kind {
        Kind::Bloom => of!(BloomFilter, base),
        Kind::Counting => of!(CountingBloomFilter, base),
        Kind::Growable => of!(GrowableFilter, base),
        Kind::Window => of!(WindowFilter, base),
        Kind::Static => of!(StaticFilter, base),
        _ => Py::new(py, base)?.into_any(),
    })
}

/// The object for a filter, if it can be of a class.
pub(crate) fn object_of(class: &Bound<'_, PyType>, filter: AnyFilter) -> PyResult<Py<PyAny>> {
    let py = class.py();
    let kind = filter.kind();
    let shared = class.is(py.get_type::<ConcurrentBloomFilter>());
    let object = object(py, filter, shared)?;
    if object.bind(py).is_instance(class)? {
        return Ok(object);
    }
    Err(MismatchError::new_err(format!(
        "the filter is of kind {kind}, which is no {}: petal.open and petal.from_bytes take any",
        class.name()?
    )))
}

/// The digests of all keys of a column, each once, and the rules that made them.
fn distinct(
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    seed: u64,
    secret: Option<&[u8]>,
    normalise: Option<&str>,
) -> PyResult<(Identity, DigestSet)> {
    let prepared = Prepared::of(keys)?;
    let mut identity = identity(None, seed, secret, normalise)?;
    if normalise.is_none() && prepared.key_type()? == Some(KeyType::Int) {
        identity.key_type = KeyType::Int;
    }
    let rules = Rules::new(identity.clone());
    let column = prepared.column(&rules)?;
    let set = py.detach(|| {
        let mut set = DigestSet::new(identity.clone()).or_raise()?;
        let mut mask = Vec::new();
        column.pieces(&rules, |digests, _, _| {
            mask.resize(petal::mask_words(digests.len()), 0);
            set.insert_digests(digests, &mut mask).or_raise()
        })?;
        PyResult::Ok(set)
    })?;
    Ok((identity, set))
}

/// The default filter: a set of keys in a fixed number of bits.
///
/// A key that was added is always found. With at most `items` distinct keys, another one is
/// found with an expected probability of at most `fpr`. The same keys and arguments give the same
/// bits, in whatever order, process or language.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct BloomFilter;

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(signature = (items, fpr, *, keys=None, seed=0, secret=None, normalise=None))]
    fn new(
        items: u64,
        fpr: f64,
        keys: Option<&str>,
        seed: u64,
        secret: Option<PyBackedBytes>,
        normalise: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let identity = identity(keys, seed, secret.as_deref(), normalise)?;
        let filter = Bloom::sized(identity, Promise { items, error: fpr }).or_raise()?;
        Ok(PyClassInitializer::from(Filter::new(filter.into())).add_subclass(Self))
    }

    /// A filter of the keys of a column or iterable, sized for as many distinct keys as there
    /// are. What they are, bytes or int, is found out from them.
    #[staticmethod]
    #[pyo3(signature = (keys, fpr=1e-6, *, seed=0, secret=None, normalise=None))]
    fn from_keys(
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        fpr: f64,
        seed: u64,
        secret: Option<PyBackedBytes>,
        normalise: Option<&str>,
    ) -> PyResult<Py<PyAny>> {
        let (identity, set) = distinct(py, keys, seed, secret.as_deref(), normalise)?;
        let filter = py
            .detach(|| {
                let items = set.len().max(1);
                let mut filter =
                    AnyFilter::from(Bloom::sized(identity, Promise { items, error: fpr })?);
                filter.fill_from(set)?;
                Ok::<_, Error>(filter)
            })
            .or_raise()?;
        object(py, filter, false)
    }
}

/// BloomFilter for many threads at once: additions and questions do not wait for each other.
///
/// Size, error and bits are those of a BloomFilter of the same keys. If several threads add one new
/// key at the same moment, `add` may be True for more than one of them.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct ConcurrentBloomFilter;

#[pymethods]
impl ConcurrentBloomFilter {
    #[new]
    #[pyo3(signature = (items, fpr, *, keys=None, seed=0, secret=None, normalise=None))]
    fn new(
        items: u64,
        fpr: f64,
        keys: Option<&str>,
        seed: u64,
        secret: Option<PyBackedBytes>,
        normalise: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let identity = identity(keys, seed, secret.as_deref(), normalise)?;
        let filter = ConcurrentBloom::sized(identity, Promise { items, error: fpr }).or_raise()?;
        Ok(PyClassInitializer::from(Filter::shared(filter)).add_subclass(Self))
    }

    /// A BloomFilter of what is in it now, which answers bulk questions faster.
    fn frozen(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let copy = slf.as_super().get().duplicate(py)?;
        let copy = copy.bind(py).cast::<Filter>()?.get();
        object(py, copy.take(py)?, false)
    }
}

/// A filter that forgets and counts: a counter for every bit.
///
/// `counter_bits` is 4, 8 or 16. A counter that has come to its most stays there. With
/// `minimal` counts are nearer to the truth, and nothing can be removed.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct CountingBloomFilter;

#[pymethods]
impl CountingBloomFilter {
    #[new]
    #[pyo3(signature = (items, fpr, *, counter_bits=4, minimal=false, keys=None, seed=0, secret=None, normalise=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        items: u64,
        fpr: f64,
        counter_bits: u32,
        minimal: bool,
        keys: Option<&str>,
        seed: u64,
        secret: Option<PyBackedBytes>,
        normalise: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let counter = match counter_bits {
            4 => CounterBits::Four,
            8 => CounterBits::Eight,
            16 => CounterBits::Sixteen,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "counter_bits={counter_bits} is not possible: expected 4, 8 or 16"
                )));
            }
        };
        let increase = if minimal {
            Increase::Minimal
        } else {
            Increase::All
        };
        let identity = identity(keys, seed, secret.as_deref(), normalise)?;
        let promise = Promise { items, error: fpr };
        let filter = Counting::sized(identity, promise, counter, increase).or_raise()?;
        Ok(PyClassInitializer::from(Filter::new(filter.into())).add_subclass(Self))
    }

    /// Undoes one addition of a key. False, and nothing is changed, if it is certainly not there.
    /// Remove only what was added: another key could lose its bits.
    fn remove(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let filter = slf.as_super().get();
        filter.remove_digest(slf.py(), filter.rules().digest_of(key)?)
    }

    /// remove for every key of a column or iterable, with the answers as add_many gives them.
    fn remove_many(slf: &Bound<'_, Self>, keys: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        slf.as_super().get().remove_column(slf.py(), keys)
    }

    /// How often a key was added, less how often it was removed: never less than that, up
    /// to the most of a counter.
    fn count(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let filter = slf.as_super().get();
        let digest = filter.rules().digest_of(key)?;
        filter.exclusive(slf.py(), |filter| filter.count_digest(digest))
    }

    /// The BloomFilter that the same keys would have made.
    fn to_bloom(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let bloom = slf
            .as_super()
            .get()
            .exclusive(py, |filter| match &*filter {
                AnyFilter::Counting(counting) => counting.to_bloom(),
                _ => Err(Error::ReadOnly), // not reached: the class is of that kind
            })?;
        object(py, bloom.into(), false)
    }
}

/// A filter for an unknown number of keys: it grows, and its error stays at most `fpr`.
///
/// `first` is the number of keys of its first stage. With a `ceiling`, the most keys that are
/// expected, it is smaller up to there.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct GrowableFilter;

#[pymethods]
impl GrowableFilter {
    #[new]
    #[pyo3(signature = (first, fpr, *, ceiling=None, keys=None, seed=0, secret=None, normalise=None))]
    fn new(
        first: u64,
        fpr: f64,
        ceiling: Option<u64>,
        keys: Option<&str>,
        seed: u64,
        secret: Option<PyBackedBytes>,
        normalise: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let identity = identity(keys, seed, secret.as_deref(), normalise)?;
        let plan = match ceiling {
            Some(ceiling) => GrowthPlan::ceiling(first, ceiling, fpr),
            None => GrowthPlan::open(first, fpr),
        };
        let filter = plan.and_then(|plan| Growable::with_plan(identity, plan));
        let filter = Filter::new(filter.or_raise()?.into());
        Ok(PyClassInitializer::from(filter).add_subclass(Self))
    }

    /// How many stages it has come to.
    #[getter]
    fn stages(slf: &Bound<'_, Self>) -> PyResult<usize> {
        slf.as_super()
            .get()
            .exclusive(slf.py(), |filter| match &*filter {
                AnyFilter::Growable(growable) => Ok(growable.stages().len()),
                _ => Err(Error::ReadOnly), // not reached: the class is of that kind
            })
    }
}

/// "Seen within the last `items` keys", or, with `ticks`, within so much time.
///
/// Time is in whatever unit the caller counts, and the filter reads no clock: `advance` tells it.
/// If more than `items` keys come within `ticks`, the window is shorter for a while, or,
/// with overload="refuse", new keys are refused.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct WindowFilter;

/// Runs something on the window that an object is.
fn window<R: Send>(
    slf: &Bound<'_, WindowFilter>,
    run: impl FnOnce(&mut Window) -> petal::Result<R> + Send,
) -> PyResult<R> {
    slf.as_super()
        .get()
        .exclusive(slf.py(), |filter| match filter {
            AnyFilter::Window(window) => run(window),
            _ => Err(Error::ReadOnly), // not reached: the class is of that kind
        })
}

#[pymethods]
impl WindowFilter {
    #[new]
    #[pyo3(signature = (items, fpr, *, ticks=None, overload=None, keys=None, seed=0, secret=None, normalise=None))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        items: u64,
        fpr: f64,
        ticks: Option<u64>,
        overload: Option<&str>,
        keys: Option<&str>,
        seed: u64,
        secret: Option<PyBackedBytes>,
        normalise: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let span = match (ticks, overload) {
            (None, None) => WindowSpan::Keys,
            (None, Some(_)) => {
                return Err(PyValueError::new_err(
                    "overload= is for a window of time: give ticks= as well, or leave it out",
                ));
            }
            (Some(ticks), overload) => WindowSpan::Time {
                ticks,
                overload: match overload {
                    None | Some("shorten") => Overload::Shorten,
                    Some("refuse") => Overload::Refuse,
                    Some(other) => {
                        return Err(PyValueError::new_err(format!(
                            "overload={other:?} is not possible: expected \"shorten\" or \"refuse\""
                        )));
                    }
                },
            },
        };
        let identity = identity(keys, seed, secret.as_deref(), normalise)?;
        let promise = Promise { items, error: fpr };
        let filter = Window::sized(identity, span, promise, petal::sizing::DEFAULT_GENERATIONS)
            .or_raise()?;
        Ok(PyClassInitializer::from(Filter::new(filter.into())).add_subclass(Self))
    }

    /// Tells the time, in a window of time: what is older than the window is forgotten.
    fn advance(slf: &Bound<'_, Self>, now: u64) -> PyResult<()> {
        window(slf, |window| {
            window.advance(now);
            Ok(())
        })
    }

    /// The latest time that was told.
    #[getter]
    fn now(slf: &Bound<'_, Self>) -> PyResult<u64> {
        window(slf, |window| Ok(window.now()))
    }

    /// How many generations ago, of 14 in the window, a key was last added, at the least; None
    /// if it is certainly not in the window.
    fn age(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let digest = slf.as_super().get().rules().digest_of(key)?;
        window(slf, |window| window.age_digest(digest))
    }
}

/// The smallest filter: for keys that do not change.
#[pyclass(frozen, extends = Filter, module = "petal")]
pub(crate) struct StaticFilter;

#[pymethods]
impl StaticFilter {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(
        _args: &Bound<'_, PyAny>,
        _kwargs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        Err(PyTypeError::new_err(
            "a StaticFilter is built from all of its keys at once: use StaticFilter.from_keys",
        ))
    }

    /// A filter of the keys of a column or iterable, built on so many threads. What they
    /// are, bytes or int, is found out from them.
    #[staticmethod]
    #[pyo3(signature = (keys, fpr=1e-6, *, threads=1, seed=0, secret=None, normalise=None))]
    fn from_keys(
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        fpr: f64,
        threads: usize,
        seed: u64,
        secret: Option<PyBackedBytes>,
        normalise: Option<&str>,
    ) -> PyResult<Py<PyAny>> {
        let (identity, set) = distinct(py, keys, seed, secret.as_deref(), normalise)?;
        let filter = py
            .detach(|| -> petal::Result<Static> {
                petal::memory::check(set.len() * 8)?;
                let mut digests: Vec<u64> = set.iter().collect();
                drop(set);
                StaticBuilder::<u64>::sort_distinct(&mut digests, threads);
                let items = digests.len() as u64;
                let mut builder = StaticBuilder::<u64>::new(identity, items, fpr, threads)?;
                builder.push(&digests)?;
                builder.finish()
            })
            .or_raise()?;
        object(py, filter.into(), false)
    }
}
