//! petal for Python: the extension module `petal._petal`.
//!
//! Owns the module and its functions. One object to one key is in `keys`, columns in
//! `column` (Arrow's capsules in `ffi`), what all filters have in `filter`, the
//! classes of the kinds in `kinds`, answers in `booleans`, exceptions in
//! `errors`, who waits for whom in `guard`, the method `add` in `method`. The Python part of the package is in `python/petal`.

mod booleans;
mod column;
mod errors;
mod ffi;
mod filter;
mod guard;
mod keys;
mod kinds;
mod method;

use petal::normalise::Normalisation;
use petal::{Identity, KeyHasher, KeyType};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::column::Prepared;
use crate::keys::Rules;

/// The seed of [`partition`]: another one than that of the filters, whose bits the
/// partition of a key then says nothing about.
const PARTITION_SEED: u64 = 0x7065_7461_6c70_6172; // "petalpar"

/// The partition of each key, 0 to partitions - 1, as little-endian integers of 32 bits;
/// -1 for a null. The same on every machine: for dividing keys among filters.
#[pyfunction]
fn partition<'py>(
    py: Python<'py>,
    keys: &Bound<'py, PyAny>,
    partitions: u32,
) -> PyResult<Bound<'py, PyBytes>> {
    let Some(partitions) = i32::try_from(partitions).ok().filter(|&n| n > 0) else {
        return Err(PyValueError::new_err(format!(
            "partitions={partitions} is not possible: expected 1 to 2^31-1"
        )));
    };
    let prepared = Prepared::of(keys)?;
    let key_type = prepared.key_type()?.unwrap_or(KeyType::Bytes);
    let hasher = KeyHasher::Portable {
        seed: PARTITION_SEED,
    };
    let identity = Identity::new(key_type)
        .with_hasher(hasher)
        .with_normalisation(Normalisation::default());
    let rules = Rules::new(identity);
    let column = prepared.column(&rules)?;
    let mut bytes = Vec::with_capacity(column.rows() * 4);
    py.detach(|| {
        column.pieces(&rules, |digests, rows, nulls| {
            let mut digests = digests.bits().iter();
            for row in 0..rows {
                let valid = nulls.is_none_or(|nulls| nulls.is_valid(row));
                let digest = if valid { digests.next() } else { None };
                let place = digest.map_or(-1, |&digest| share(digest, partitions));
                bytes.extend_from_slice(&place.to_le_bytes());
            }
            Ok(())
        })
    })?;
    Ok(PyBytes::new(py, &bytes))
}

/// Which of so many equal shares of all digests one falls into.
fn share(digest: u64, partitions: i32) -> i32 {
    let product = u128::from(digest) * u128::from(partitions.unsigned_abs());
    // Below `partitions`, which is an i32.
    i32::try_from(product >> 64).unwrap_or(partitions - 1)
}

/// See [`guard`] for what needs the interpreter's lock.
#[pymodule(gil_used = true)]
mod _petal {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::method::install(module.py())
    }

    #[pymodule_export]
    use crate::booleans::BooleanArray;
    #[pymodule_export]
    use crate::errors::{FileFormatError, MismatchError, PetalError, UnsupportedError};
    #[pymodule_export]
    use crate::filter::Filter;
    #[pymodule_export]
    use crate::kinds::{
        BloomFilter, ConcurrentBloomFilter, CountingBloomFilter, GrowableFilter, StaticFilter,
        WindowFilter,
    };
    #[pymodule_export]
    use crate::partition;
}
