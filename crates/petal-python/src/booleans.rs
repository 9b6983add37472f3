//! The answers to many questions.
//!
//! Owns [`BooleanArray`], which is what the bulk calls return where the
//! keys did not come from a library with arrays of its own, and how answers to
//! the keys that are not null are spread over all rows.

use arrow_array::Array;
use arrow_array::BooleanArray as Answers;
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::ffi;

/// Answers that come in parts.
pub(crate) struct Builder {
    values: BooleanBufferBuilder,
    valid: BooleanBufferBuilder,
    nulls: usize,
}

impl Builder {
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            values: BooleanBufferBuilder::new(rows),
            valid: BooleanBufferBuilder::new(0),
            nulls: 0,
        }
    }

    /// Answers for further rows: bit `i` of the mask is that of row `i` of
    /// those that are not null.
    pub(crate) fn push(&mut self, rows: usize, mask: &[u64], nulls: Option<&NullBuffer>) {
        let bit = |i: usize| mask[i / 64] >> (i % 64) & 1 == 1;
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            None => {
                let bytes: &[u8] = &mask
                    .iter()
                    .flat_map(|w| w.to_le_bytes())
                    .collect::<Vec<_>>();
                self.values.append_packed_range(0..rows, bytes);
                if self.nulls > 0 {
                    self.valid.append_n(rows, true);
                }
            }
            Some(nulls) => {
                if self.nulls == 0 {
                    self.valid.append_n(self.values.len(), true);
                }
                self.nulls += nulls.null_count();
                let mut next = 0;
                for row in 0..rows {
                    let valid = nulls.is_valid(row);
                    self.valid.append(valid);
                    self.values.append(valid && bit(next));
                    next += usize::from(valid);
                }
            }
        }
    }

    pub(crate) fn finish(mut self) -> BooleanArray {
        let nulls = (self.nulls > 0).then(|| NullBuffer::new(self.valid.finish()));
        BooleanArray(Answers::new(self.values.finish(), nulls))
    }
}

/// Answers to many questions, in their order: True, False, or None for a key
/// that was null.
///
/// It is a sequence; `to_numpy` gives an array, and every library that reads
/// Arrow's C interface (pyarrow, polars, ...) takes it without a copy.
#[pyclass(frozen, sequence, module = "petal")]
pub(crate) struct BooleanArray(Answers);

impl BooleanArray {
    fn get(&self, row: usize) -> Option<bool> {
        self.0.is_valid(row).then(|| self.0.value(row))
    }
}

#[pymethods]
impl BooleanArray {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<Option<bool>> {
        let rows = self.0.len();
        let row = if index < 0 {
            index.checked_add_unsigned(rows)
        } else {
            Some(index)
        };
        row.and_then(|row| usize::try_from(row).ok())
            .filter(|&row| row < rows)
            .map(|row| self.get(row))
            .ok_or_else(|| PyIndexError::new_err(format!("row {index} of {rows}")))
    }

    /// How many of the keys were null.
    #[getter]
    fn null_count(&self) -> usize {
        self.0.null_count()
    }

    /// How many answers are True.
    fn true_count(&self) -> usize {
        self.0.true_count()
    }

    /// The answers as a list of True, False and None.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, (0..self.0.len()).map(|row| self.get(row)))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // A request for another type may be ignored: the consumer casts.
        drop(requested_schema);
        ffi::capsules_of(py, &self.0)
    }

    /// The answers as an array of numpy.
    ///
    /// Raises ValueError if some are null, for which numpy has no value.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("petal._columns")?.call_method1(
            "to_numpy",
            (self.packed(py), self.0.len(), self.0.null_count()),
        )
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(pyo3::exceptions::PyValueError::new_err(
                "the answers are bits, and numpy's are bytes: a copy is needed",
            ));
        }
        let array = self.to_numpy(py)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    fn __eq__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Py<PyAny>> {
        if let Ok(other) = other.cast::<Self>() {
            let same = self.0 == other.get().0;
            return Ok(same.into_pyobject(py)?.to_owned().into_any().unbind());
        }
        if let Ok(list) = other.cast::<PyList>() {
            let same = self.to_pylist(py)?.eq(list)?;
            return Ok(same.into_pyobject(py)?.to_owned().into_any().unbind());
        }
        Ok(py.NotImplemented())
    }

    fn __hash__(&self) -> PyResult<isize> {
        Err(PyTypeError::new_err("unhashable type: 'BooleanArray'"))
    }

    fn __repr__(&self) -> String {
        let shown: Vec<&str> = (0..self.0.len().min(10))
            .map(|row| match self.get(row) {
                Some(true) => "True",
                Some(false) => "False",
                None => "None",
            })
            .collect();
        let more = if self.0.len() > shown.len() {
            ", ..."
        } else {
            ""
        };
        format!("BooleanArray([{}{more}])", shown.join(", "))
    }
}

impl BooleanArray {
    /// The values as bits, the first one the lowest of the first byte.
    fn packed<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let values = self.0.values();
        let mut bytes = vec![0; values.len().div_ceil(8)];
        for row in values.set_indices() {
            bytes[row / 8] |= 1 << (row % 8);
        }
        PyBytes::new(py, &bytes)
    }
}
