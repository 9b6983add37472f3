//! The library's errors as Python exceptions.
//!
//! Owns the exception types and which error becomes which. The texts are the
//! library's. Nothing else makes exceptions of [`petal::Error`].

use petal::Error;
use pyo3::create_exception;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    petal,
    PetalError,
    PyValueError,
    "A call that the library refuses. Nothing was changed."
);
create_exception!(
    petal,
    FileFormatError,
    PetalError,
    "Bytes that are not an intact petal file."
);
create_exception!(
    petal,
    MismatchError,
    PetalError,
    "Two filters, or a filter and its caller, do not agree on something that decides the answers."
);
create_exception!(
    petal,
    UnsupportedError,
    PetalError,
    "The kind of filter cannot do what was asked."
);

/// Numbers of the system's errors that the library found out by itself.
const EEXIST: i32 = 17;
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;
const ENOSPC: i32 = 28;
/// Of "would block", which Python calls `BlockingIOError`.
const EAGAIN: i32 = if cfg!(target_os = "linux") { 11 } else { 35 };

/// The exception for an error of the library. `OSError` picks its own subclass
/// (such as `FileNotFoundError`) by the number of the error.
pub(crate) fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::TooLarge { .. } => PyMemoryError::new_err(text),
        Error::Format(_) => FileFormatError::new_err(text),
        Error::Mismatch { .. } | Error::Secret { .. } => MismatchError::new_err(text),
        Error::Unsupported { .. } => UnsupportedError::new_err(text),
        Error::Io { source, .. } => match source.raw_os_error() {
            Some(number) => PyOSError::new_err((number, text)),
            None => PyOSError::new_err(text),
        },
        Error::Exists { .. } => PyOSError::new_err((EEXIST, text)),
        Error::NotAFile { path, .. } => {
            let number = if path.is_dir() { EISDIR } else { EINVAL };
            PyOSError::new_err((number, text))
        }
        Error::NoRoom { .. } => PyOSError::new_err((ENOSPC, text)),
        Error::Locked { .. } => PyOSError::new_err((EAGAIN, text)),
        _ => PetalError::new_err(text),
    }
}

/// [`exception`] for results.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for petal::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(exception)
    }
}
