//! Memory of others: Arrow arrays through the C data and stream interfaces,
//! and the elements of buffers.
//!
//! Owns the capsules (`__arrow_c_array__`, `__arrow_c_stream__`), [`Elements`], and
//! with them the only `unsafe` code of this crate. What is in the arrays is
//! [`crate::column`]'s matter. Names and rules of the capsules: "The Arrow
//! PyCapsule Interface" and "The Arrow C data interface" (arrow.apache.org).
#![expect(
    unsafe_code,
    reason = "the interfaces pass structures of C and memory by pointers"
)]

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr::NonNull;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_schema::ArrowError;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// What somebody is told whose array cannot be taken.
fn refused(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("the Arrow data cannot be read: {error}"))
}

/// The chunks of a column, without a copy of its values. `None` if the object
/// has neither of the two methods.
pub(crate) fn chunks_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<ArrayRef>>> {
    // The array first: a stream of one array would cost more.
    if let Some(method) = object.getattr_opt("__arrow_c_array__")? {
        let pair = method.call0()?;
        let pair = pair.cast::<PyTuple>()?;
        let schema = pair.get_item(0)?;
        let array = pair.get_item(1)?;
        return Ok(Some(vec![array_of(schema.cast()?, array.cast()?)?]));
    }
    if let Some(method) = object.getattr_opt("__arrow_c_stream__")? {
        let capsule = method.call0()?;
        return chunks_of_stream(capsule.cast()?).map(Some);
    }
    Ok(None)
}

fn array_of(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>) -> PyResult<ArrayRef> {
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast();
    let array = array.pointer_checked(Some(ARRAY))?.cast();
    // SAFETY: by its name the capsule holds a valid `ArrowSchema`, and nobody else uses it while
    // this thread is attached to the interpreter. It is moved out: the capsule then frees nothing.
    let schema = unsafe { FFI_ArrowSchema::from_raw(schema.as_ptr()) };
    // SAFETY: the same for a valid `ArrowArray`.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    if array.is_released() || schema.release().is_none() {
        return Err(PyValueError::new_err(
            "the Arrow capsule was used before: ask the column for a new one",
        ));
    }
    // SAFETY: the two came from one call of `__arrow_c_array__`, which promises that they belong
    // together and keep to the interface.
    let data = unsafe { from_ffi(array, &schema) }.map_err(|error| refused(&error))?;
    Ok(make_array(data))
}

fn chunks_of_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<Vec<ArrayRef>> {
    let stream = capsule.pointer_checked(Some(STREAM))?.cast();
    // SAFETY: by its name the capsule holds a valid `ArrowArrayStream`, and nobody else uses it
    // while this thread is attached to the interpreter. It is moved out as above.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let reader = ArrayStreamReader::try_new(stream).map_err(|error| refused(&error))?;
    reader
        .collect::<Result<_, _>>()
        .map_err(|error| refused(&error))
}

/// The capsules of an array, as `__arrow_c_array__` returns them.
pub(crate) fn capsules_of<'py>(
    py: Python<'py>,
    array: &dyn Array,
) -> PyResult<Bound<'py, PyTuple>> {
    let (array, schema) = to_ffi(&array.to_data()).map_err(|error| refused(&error))?;
    // Both free what is left in them when they are dropped with their capsule.
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    let array = PyCapsule::new_with_value(py, array, ARRAY)?;
    PyTuple::new(py, [schema, array])
}

/// The elements of a contiguous buffer, where they are.
pub(crate) struct Elements<'a, T> {
    elements: NonNull<[T]>,
    // Both the buffer and the interpreter's lock are held meanwhile.
    held: PhantomData<(&'a PyBuffer<T>, Python<'a>)>,
}

impl<'a, T: Element + Copy> Elements<'a, T> {
    pub(crate) fn of(buffer: &'a PyBuffer<T>, _: Python<'a>) -> PyResult<Self> {
        let elements = buffer.as_slice_ptr().ok_or_else(|| {
            PyValueError::new_err("the array is not contiguous: pass numpy.ascontiguousarray of it")
        })?;
        Ok(Self {
            elements,
            held: PhantomData,
        })
    }

    pub(crate) const fn len(&self) -> usize {
        self.elements.len()
    }

    /// Element `index`.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> T {
        assert!(index < self.len(), "no element {index}");
        let first = self.elements.cast::<T>();
        // SAFETY: the index is inside of the slice.
        let element = unsafe { first.add(index) };
        // SAFETY: the exporter keeps the memory alive, aligned and in its place until the buffer is
        // released, which outlives this. No reference to it is made, since Python code may
        // write to it, though not while this thread holds the interpreter's lock; every value
        // of the bytes is one of an `Element`.
        unsafe { element.read_volatile() }
    }
}
