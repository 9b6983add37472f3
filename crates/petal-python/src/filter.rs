//! What all filters of the package have in common.
//!
//! Owns [`Filter`], the base class: one lock around a filter of any kind, and
//! every operation that is not one kind's alone. The classes of the kinds, with
//! their constructors, are in [`crate::kinds`].
//!
//! Calls about one key hold the interpreter's lock, all others give it up: see
//! [`crate::guard`].

use std::path::PathBuf;

use petal::{
    AnyFilter, Bloom, ConcurrentBloom, Contains, Digest, Digests, Error, Insert, KeyHasher, Merge,
    Overwrite, Remove, mask_words,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

use crate::booleans::{BooleanArray, Builder};
use crate::column::{Column, Prepared};
use crate::errors::OrRaise;
use crate::guard::Guarded;
use crate::keys::{Rules, plain_bytes, secret_of};
use crate::kinds;

/// The filter inside of an object.
pub(crate) enum Inner {
    /// For one writer at a time.
    Any(AnyFilter),
    /// For many.
    Shared(ConcurrentBloom),
    /// On its way between the two. It stays so only if a conversion fails, for
    /// which its words would have to be in a mapped file.
    Moved,
}

/// A filter: "have I seen this key?", for sets too large to keep.
///
/// The base class of all filters. `petal.open` and `petal.from_bytes` return the class
/// of the kind, or this one for a kind that has none in Python.
#[pyclass(frozen, subclass, module = "petal")]
pub(crate) struct Filter {
    inner: Guarded<Inner>,
    rules: Rules,
    /// Whether it is [`Inner::Shared`]: insertions then take the lock as readers.
    shared: bool,
}

impl Filter {
    pub(crate) fn new(filter: AnyFilter) -> Self {
        Self {
            rules: Rules::new(filter.about().identity().clone()),
            inner: Guarded::new(Inner::Any(filter)),
            shared: false,
        }
    }

    pub(crate) fn shared(filter: ConcurrentBloom) -> Self {
        Self {
            rules: Rules::new(filter.about().identity().clone()),
            inner: Guarded::new(Inner::Shared(filter)),
            shared: true,
        }
    }

    pub(crate) const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Runs something that needs the filter for itself, as one of any kind.
    pub(crate) fn exclusive<R: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut AnyFilter) -> petal::Result<R> + Send,
    ) -> PyResult<R> {
        self.inner.write(py, |inner| inner.as_any(run)).or_raise()
    }

    /// The same with a second filter, which is another object.
    fn exclusive_with<R: Send>(
        &self,
        py: Python<'_>,
        other: &Self,
        run: impl FnOnce(&mut AnyFilter, &AnyFilter) -> petal::Result<R> + Send,
    ) -> PyResult<R> {
        self.inner
            .write_both(&other.inner, py, |mine, theirs| {
                theirs.as_any(|theirs| mine.as_any(|mine| run(mine, theirs)))
            })
            .or_raise()
    }

    /// Uses every digest of a column, in order.
    fn each_digest(
        &self,
        py: Python<'_>,
        column: &Column,
        mut with: impl FnMut(&mut Access<'_>, &Digests, &mut [u64]) -> petal::Result<()> + Send,
        writes: bool,
    ) -> PyResult<BooleanArray> {
        let mut answers = Builder::new(column.rows());
        let mut mask = Vec::new();
        let mut each = |access: &mut Access<'_>| {
            column.pieces(&self.rules, |digests, rows, nulls| {
                mask.clear();
                mask.resize(mask_words(digests.len()), 0);
                with(access, digests, &mut mask).or_raise()?;
                answers.push(rows, &mask, nulls);
                Ok(())
            })
        };
        if writes && !self.shared {
            self.inner
                .write(py, |inner| each(&mut Access::Alone(inner)))?;
        } else {
            self.inner
                .read(py, |inner| each(&mut Access::Among(inner)))?;
        }
        Ok(answers.finish())
    }

    /// The filter itself, which is gone from this object: for one that nobody else has.
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<AnyFilter> {
        let inner = self
            .inner
            .poke(py, |inner| std::mem::replace(inner, Inner::Moved));
        match inner {
            Inner::Any(filter) => Ok(filter),
            Inner::Shared(filter) => Ok(filter.into_frozen().into()),
            Inner::Moved => moved().or_raise(),
        }
    }

    /// The bytes of a file of the filter.
    fn file_bytes(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.exclusive(py, |filter| filter.to_bytes())
    }

    /// An equal filter of its own.
    pub(crate) fn duplicate(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let bytes = self.file_bytes(py)?;
        let secret = match &self.rules.identity().hasher {
            KeyHasher::Keyed { secret } => Some(secret.clone()),
            KeyHasher::Portable { .. } => None,
        };
        let filter = py
            .detach(|| AnyFilter::from_bytes(&bytes, secret.as_ref()))
            .or_raise()?;
        kinds::object(py, filter, self.shared)
    }

    /// Adds a key that is hashed as it is.
    #[inline]
    fn add_bytes(&self, py: Python<'_>, bytes: &[u8]) -> petal::Result<bool> {
        if self.shared {
            let digest = self.rules.digest_bytes(bytes);
            return self.inner.peek(py, |inner| inner.share(digest));
        }
        self.inner.poke(py, |inner| match inner {
            Inner::Any(filter) => filter.insert_bytes(bytes),
            _ => moved(),
        })
    }

    /// Adds an object that is exactly a `str` or `bytes`, where these are hashed as they are.
    /// `None`, and nothing is added, for everything else and for what is to be an
    /// exception.
    #[inline]
    pub(crate) fn add_plain(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> Option<bool> {
        if !self.rules.takes_plain_bytes() {
            return None;
        }
        let bytes = plain_bytes(key).ok()??;
        self.add_bytes(py, bytes).ok()
    }

    /// What `add` of an object does: see [`crate::method`].
    pub(crate) fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let digest = self.rules.digest_of(key)?;
        if self.shared {
            return self.inner.peek(py, |inner| inner.share(digest)).or_raise();
        }
        self.inner.poke(py, |inner| inner.insert(digest)).or_raise()
    }

    pub(crate) fn remove_digest(&self, py: Python<'_>, digest: Digest) -> PyResult<bool> {
        self.exclusive(py, |filter| filter.remove_digest(digest))
    }

    pub(crate) fn remove_column(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        let prepared = Prepared::of(keys)?;
        let column = prepared.column(&self.rules)?;
        let answers = self.each_digest(
            py,
            &column,
            |access, digests, mask| access.remove(digests, mask),
            true,
        )?;
        prepared.answer(py, answers)
    }

    fn secret_is_needed(&self) -> PyResult<()> {
        match self.rules.identity().hasher {
            KeyHasher::Portable { .. } => Ok(()),
            KeyHasher::Keyed { .. } => Err(PyTypeError::new_err(
                "a keyed filter is not pickled, since its secret would have to be in the pickle: \
                 pass to_bytes(), and on the other side from_bytes(data, secret=...)",
            )),
        }
    }
}

/// A filter under its lock.
enum Access<'a> {
    Alone(&'a mut Inner),
    Among(&'a Inner),
}

/// What the operations that a filter is not locked for say: no caller reaches it.
fn moved<T>() -> petal::Result<T> {
    Err(Error::ReadOnly)
}

impl Access<'_> {
    fn insert(&mut self, digests: &Digests, mask: &mut [u64]) -> petal::Result<()> {
        match self {
            Self::Alone(Inner::Any(filter)) => filter.insert_digests(digests, mask),
            Self::Alone(Inner::Shared(filter)) => filter.insert_digests(digests, mask),
            Self::Among(Inner::Shared(filter)) => filter.insert_digests(digests, mask),
            _ => moved(),
        }
    }

    fn remove(&mut self, digests: &Digests, mask: &mut [u64]) -> petal::Result<()> {
        match self {
            Self::Alone(Inner::Any(filter)) => filter.remove_digests(digests, mask),
            _ => moved(),
        }
    }

    fn contains(&self, digests: &Digests, mask: &mut [u64]) -> petal::Result<()> {
        let inner: &Inner = match self {
            Self::Alone(inner) => inner,
            Self::Among(inner) => inner,
        };
        match inner {
            Inner::Any(filter) => filter.contains_digests(digests, mask),
            Inner::Shared(filter) => filter.contains_digests(digests, mask),
            Inner::Moved => moved(),
        }
    }
}

impl Inner {
    fn insert(&mut self, digest: Digest) -> petal::Result<bool> {
        match self {
            Self::Any(filter) => filter.insert_digest(digest),
            _ => self.share(digest),
        }
    }

    /// Inserts among others.
    fn share(&self, digest: Digest) -> petal::Result<bool> {
        match self {
            Self::Shared(filter) => filter.insert_digest(digest),
            _ => moved(),
        }
    }

    fn contains(&self, digest: Digest) -> petal::Result<bool> {
        match self {
            Self::Any(filter) => filter.contains_digest(digest),
            Self::Shared(filter) => filter.contains_digest(digest),
            Self::Moved => moved(),
        }
    }

    /// Runs something on the filter as one for a single writer.
    fn as_any<R>(
        &mut self,
        run: impl FnOnce(&mut AnyFilter) -> petal::Result<R>,
    ) -> petal::Result<R> {
        if let Self::Any(filter) = self {
            return run(filter);
        }
        let Self::Shared(filter) = std::mem::replace(self, Self::Moved) else {
            return moved();
        };
        let mut filter = AnyFilter::Bloom(filter.into_frozen());
        let result = run(&mut filter);
        *self = Self::Shared(Bloom::try_from(filter)?.into_concurrent()?);
        result
    }
}

impl Prepared<'_> {
    /// Answers in the form of the caller's library.
    fn answer(&self, py: Python<'_>, answers: BooleanArray) -> PyResult<Py<PyAny>> {
        let answers = Bound::new(py, answers)?;
        match &self.wrap {
            Some(wrap) => Ok(wrap.call1((answers,))?.unbind()),
            None => Ok(answers.into_any().unbind()),
        }
    }
}

#[pymethods]
impl Filter {
    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        if self.rules.takes_plain_bytes()
            && let Some(bytes) = plain_bytes(key)?
        {
            let answer = self.inner.peek(py, |inner| match inner {
                Inner::Any(filter) => filter.contains_bytes(bytes),
                inner => inner.contains(self.rules.digest_bytes(bytes)),
            });
            return answer.or_raise();
        }
        let digest = self.rules.digest_of(key)?;
        self.inner
            .peek(py, |inner| inner.contains(digest))
            .or_raise()
    }

    /// Adds every key of a column or iterable, and says for each, in order, whether
    /// it was certainly new. Nulls stay null and are not added.
    ///
    /// Takes lists and other iterables, arrays of numpy, columns of pyarrow, pandas and
    /// polars, and whatever has Arrow's C interface, and returns a boolean column
    /// of the same library, or a BooleanArray.
    fn add_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let prepared = Prepared::of(keys)?;
        let column = prepared.column(&self.rules)?;
        let answers = self.each_digest(
            py,
            &column,
            |access, digests, mask| access.insert(digests, mask),
            true,
        )?;
        prepared.answer(py, answers)
    }

    /// Whether each key of a column or iterable may have been added. Nulls stay
    /// null. Columns and answers are as for add_many; for an expression of polars
    /// it is an expression.
    fn contains_many(slf: &Bound<'_, Self>, keys: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let prepared = Prepared::of(keys)?;
        if let ("lazy", Some(wrap)) = (prepared.layout.as_str(), &prepared.wrap) {
            return Ok(wrap.call1((slf.getattr("contains_many")?,))?.unbind());
        }
        let this = slf.get();
        let column = prepared.column(&this.rules)?;
        let answers = this.each_digest(
            py,
            &column,
            |access, digests, mask| access.contains(digests, mask),
            false,
        )?;
        prepared.answer(py, answers)
    }

    /// Adds every key of columns or iterables, or all that is in other filters.
    #[pyo3(signature = (*others))]
    fn update(&self, py: Python<'_>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        for other in others {
            match other.cast::<Self>() {
                Ok(filter) => self.__ior__(py, filter)?,
                Err(_) => {
                    self.add_many(py, &other)?;
                }
            }
        }
        Ok(())
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let both = self.duplicate(py)?;
        both.bind(py).cast::<Self>()?.get().__ior__(py, other)?;
        Ok(both)
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        self.exclusive_with(py, other, |mine, theirs| mine.union_with(theirs))
    }

    fn __and__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let both = self.duplicate(py)?;
        both.bind(py).cast::<Self>()?.get().__iand__(py, other)?;
        Ok(both)
    }

    fn __iand__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        let other = other.get();
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        self.exclusive_with(py, other, |mine, theirs| mine.intersect_with(theirs))
    }

    /// A filter of the same kind, settings and keys.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.duplicate(py)
    }

    fn __copy__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.duplicate(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let _ = memo; // nothing in a filter is shared with other objects
        self.duplicate(py)
    }

    /// Equal if they give the same answers to every key and hold the same bits; kinds other than
    /// the Bloom and the counting filter if their files would be the same.
    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Self>() else {
            return Ok(py.NotImplemented());
        };
        let other = other.get();
        let same = std::ptr::eq(self, other)
            || self.exclusive_with(py, other, |mine, theirs| match (mine, theirs) {
                (AnyFilter::Bloom(mine), AnyFilter::Bloom(theirs)) => Ok(mine == theirs),
                (AnyFilter::Counting(mine), AnyFilter::Counting(theirs)) => Ok(mine == theirs),
                (mine, theirs) if mine.kind() == theirs.kind() => {
                    Ok(mine.to_bytes()? == theirs.to_bytes()?)
                }
                _ => Ok(false),
            })?;
        Ok(same.into_pyobject(py)?.to_owned().into_any().unbind())
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err(
            "a filter has no hash, since it changes: use it as a value and not as a key",
        ))
    }

    /// About how many distinct keys there are, from the share of bits that are set; the exact
    /// number for a StaticFilter, and infinite if every bit is set.
    #[getter]
    fn estimated_len(&self, py: Python<'_>) -> PyResult<f64> {
        self.exclusive(py, |filter| Ok(filter.estimated_len()))
    }

    /// The share of bits that are set, 0 to 1; of counters that are not 0.
    #[getter]
    fn fill(&self, py: Python<'_>) -> PyResult<f64> {
        self.exclusive(py, |filter| Ok(filter.fill()))
    }

    /// The chance that a random absent key is "seen", as the filter stands now.
    #[getter]
    fn estimated_fpr(&self, py: Python<'_>) -> PyResult<f64> {
        self.exclusive(py, |filter| Ok(filter.error_now()))
    }

    /// The number of keys it was made for; None where the kind has no limit.
    #[getter]
    fn items(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.exclusive(py, |f| Ok(f.about().promise().map(|p| p.items)))
    }

    /// The error it was made for; None where none is recorded.
    #[getter]
    fn fpr(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.exclusive(py, |filter| {
            Ok(match &*filter {
                AnyFilter::Growable(growable) => Some(growable.plan().error()),
                other => other.about().promise().map(|p| p.error),
            })
        })
    }

    /// How many additions changed a bit (for a CountingBloomFilter all of them, less the
    /// removals); None after a union or an intersection.
    #[getter]
    fn insertions(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.exclusive(py, |filter| Ok(filter.about().insertions()))
    }

    /// Bytes of the filter's bits.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.exclusive(py, |filter| Ok(filter.bytes()))
    }

    /// What its keys are: "bytes" (str and bytes) or "int".
    #[getter]
    fn keys(&self) -> String {
        self.rules.key_type().to_string()
    }

    /// The kind as the command calls it, such as "bloom".
    #[getter]
    fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.exclusive(py, |filter| Ok(filter.kind().name()))
    }

    /// The labels, as a dict of its own.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let pairs: Vec<(String, String)> = self.exclusive(py, |filter| {
            let labels = filter.about().labels().iter();
            Ok(labels.map(|(n, v)| (n.to_owned(), v.to_owned())).collect())
        })?;
        let labels = PyDict::new(py);
        for (name, value) in pairs {
            labels.set_item(name, value)?;
        }
        Ok(labels)
    }

    /// Sets a label, which is saved with the filter; an earlier value is replaced.
    fn set_label(&self, py: Python<'_>, name: &str, value: &str) -> PyResult<()> {
        self.exclusive(py, |filter| filter.labels_mut().set(name, value))
    }

    /// Writes the filter to a file, all of it or nothing: it appears under its name when it is
    /// whole and durable. Raises FileExistsError unless it may replace what is there.
    #[pyo3(signature = (path, *, overwrite=false))]
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        let overwrite = if overwrite {
            Overwrite::Replace
        } else {
            Overwrite::Refuse
        };
        self.exclusive(py, |filter| filter.save(&path, overwrite))
    }

    /// The bytes of a file of the filter: what save writes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.file_bytes(py)?))
    }

    /// A filter from the bytes of a file, all of which are verified. Raises if it is not of
    /// this class.
    #[classmethod]
    #[pyo3(signature = (data, *, secret=None))]
    fn from_bytes(
        cls: &Bound<'_, PyType>,
        data: PyBackedBytes,
        secret: Option<PyBackedBytes>,
    ) -> PyResult<Py<PyAny>> {
        let py = cls.py();
        let secret = secret.as_deref().map(secret_of).transpose()?;
        let filter = py
            .detach(|| AnyFilter::from_bytes(&data, secret.as_ref()))
            .or_raise()?;
        kinds::object_of(cls, filter)
    }

    /// A filter from a file. All of it is read and verified, or, mapped, only its beginning: that
    /// takes the same time for every size, and the filter is read-only. A mapped file may
    /// be replaced by another, but not shortened or rewritten while the filter lives.
    #[classmethod]
    #[pyo3(signature = (path, *, mapped=false, secret=None))]
    fn open(
        cls: &Bound<'_, PyType>,
        path: PathBuf,
        mapped: bool,
        secret: Option<PyBackedBytes>,
    ) -> PyResult<Py<PyAny>> {
        let py = cls.py();
        let secret = secret.as_deref().map(secret_of).transpose()?;
        let filter = py
            .detach(|| match mapped {
                true => AnyFilter::open_mapped(&path, secret.as_ref()),
                false => AnyFilter::open(&path, secret.as_ref()),
            })
            .or_raise()?;
        kinds::object_of(cls, filter)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let py = slf.py();
        slf.get().secret_is_needed()?;
        let restore = slf.get_type().getattr("from_bytes")?.into_any();
        let data = PyTuple::new(py, [slf.get().to_bytes(py)?])?.into_any();
        PyTuple::new(py, [restore, data])
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, this) = (slf.py(), slf.get());
        let number = |value: Option<String>| value.unwrap_or_else(|| "None".into());
        Ok(format!(
            "<petal.{} of {} keys: items={}, fpr={}, {} bytes>",
            slf.get_type().name()?,
            this.keys(),
            number(this.items(py)?.map(|n| n.to_string())),
            number(this.fpr(py)?.map(|p| p.to_string())),
            this.nbytes(py)?,
        ))
    }
}
