//! The method `add`, as a function of one argument.
//!
//! Owns the one method that is not made by PyO3: that calls methods with an array of
//! arguments and their names, which costs as much as adding a key does. What `add`
//! does is in [`Filter`].
#![expect(
    unsafe_code,
    reason = "a method of one argument is a function of C with pointers to objects"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyType};

use crate::filter::Filter;

/// The definition, which the interpreter keeps a pointer to.
struct Definition(ffi::PyMethodDef);

// SAFETY: it is never written, and its pointers are to constants.
unsafe impl Sync for Definition {}

static ADD: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"add".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunction: add },
    ml_flags: ffi::METH_O,
    ml_doc: c"add($self, key, /)\n--\n\nAdds a key. True if it was certainly not there before; \
              False if the filter\nalready answered \"seen\"."
        .as_ptr(),
});

/// Gives the class [`Filter`] its method `add`.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<Filter>();
    let method = descriptor(&class)?;
    class.setattr("add", method)
}

fn descriptor<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    let definition = std::ptr::from_ref(&ADD.0).cast_mut();
    // SAFETY: the class is a type, and the definition is valid for ever; the interpreter only
    // reads it.
    let method = unsafe { ffi::PyDescr_NewMethod(class.as_type_ptr(), definition) };
    // SAFETY: it is a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(class.py(), method) }
}

/// # Safety
/// Called by the interpreter, attached, with a [`Filter`] (which the descriptor has
/// checked) and an object.
unsafe extern "C" fn add(this: *mut ffi::PyObject, key: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the interpreter calls it, and so this thread is attached.
    let py = unsafe { Python::assume_attached() };
    // SAFETY: `this` is a valid object that the caller keeps alive.
    let this = unsafe { Borrowed::from_ptr(py, this) };
    // SAFETY: it is of that class, as the descriptor has checked.
    let this = unsafe { this.cast_unchecked::<Filter>() };
    // SAFETY: `key` is a valid object that the caller keeps alive.
    let key = unsafe { Borrowed::from_ptr(py, key) };
    let added = catch_unwind(AssertUnwindSafe(|| {
        if let Some(new) = this.get().add_plain(py, &key) {
            return Some(new);
        }
        // Whatever drops objects, as exceptions do, has to tell the bindings that it is attached.
        Python::attach(|py| match this.get().add(py, &key) {
            Ok(new) => Some(new),
            Err(error) => {
                error.restore(py);
                None
            }
        })
    }));
    match added {
        Ok(Some(new)) => PyBool::new(py, new).to_owned().into_any().into_ptr(),
        Ok(None) => std::ptr::null_mut(),
        Err(_) => {
            Python::attach(|py| {
                PyRuntimeError::new_err("adding a key failed: this is a fault of petal")
                    .restore(py);
            });
            std::ptr::null_mut()
        }
    }
}
