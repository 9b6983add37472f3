//! Columns of keys to digests.
//!
//! Owns what a column may be (Arrow data, numbers in a buffer, text of a fixed
//! width, any iterable of keys), how nulls are kept apart, and the order:
//! everything that can be refused about a column is refused before the first
//! digest is used, but for text that a filter's normalisation refuses. Which
//! Python object is which is decided in `petal/_columns.py`.

use std::fmt::Display;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, ByteArrayType, ByteViewType, Int8Type, Int16Type,
    Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, GenericByteArray, GenericByteViewArray, PrimitiveArray,
    downcast_dictionary_array,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, NullBufferBuilder};
use arrow_schema::DataType;
use petal::{Digests, KeyType};
use pyo3::buffer::{Element, ElementType, PyBuffer, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::ffi::{self, Elements};
use crate::keys::{Key, Rules, key_of, too_large};

/// Rows whose digests are made and used at a time.
const PIECE: usize = 1 << 16;

/// A column whose values are known to be keys.
pub(crate) enum Column {
    /// Read without the interpreter.
    Arrow(Vec<ArrayRef>),
    /// What others may change while they are not stopped: hashed at once.
    Hashed(Hashed),
}

/// The digests of the rows that are not null.
pub(crate) struct Hashed {
    digests: Digests,
    rows: usize,
    nulls: Option<NullBuffer>,
}

/// What `petal/_columns.py` says that a column is.
#[derive(FromPyObject)]
pub(crate) struct Prepared<'py> {
    /// `arrow`, `ints`, `fixed`, `ucs4`, `objects` or `lazy`.
    #[pyo3(item(0))]
    pub(crate) layout: String,
    /// The object that has the values.
    #[pyo3(item(1))]
    pub(crate) source: Bound<'py, PyAny>,
    /// Makes of a [`crate::booleans::BooleanArray`] what the caller's library
    /// has for it.
    #[pyo3(item(2))]
    pub(crate) wrap: Option<Bound<'py, PyAny>>,
}

impl<'py> Prepared<'py> {
    pub(crate) fn of(keys: &Bound<'py, PyAny>) -> PyResult<Self> {
        keys.py()
            .import("petal._columns")?
            .call_method1("prepare", (keys,))?
            .extract()
    }

    /// The type of the keys, as far as it shows; `None` if there is none.
    pub(crate) fn key_type(&self) -> PyResult<Option<KeyType>> {
        match self.layout.as_str() {
            "ints" => Ok(Some(KeyType::Int)),
            "fixed" | "ucs4" => Ok(Some(KeyType::Bytes)),
            "arrow" => {
                let chunks = chunks_of(&self.source)?;
                match chunks.first() {
                    Some(chunk) => key_type_of(chunk.data_type()),
                    None => Ok(None),
                }
            }
            _ => {
                for item in self.source.try_iter()? {
                    let item = item?;
                    if !item.is_none() {
                        return Ok(Some(match key_of(&item)? {
                            Key::Bytes(_) => KeyType::Bytes,
                            Key::Int(_) => KeyType::Int,
                        }));
                    }
                }
                Ok(None)
            }
        }
    }

    /// The column, checked.
    pub(crate) fn column(&self, rules: &Rules) -> PyResult<Column> {
        match self.layout.as_str() {
            "arrow" => {
                let chunks = chunks_of(&self.source)?;
                for chunk in &chunks {
                    check(chunk, rules)?;
                }
                Ok(Column::Arrow(chunks))
            }
            "ints" => hash_buffer(&self.source, rules).map(Column::Hashed),
            "fixed" => hash_fixed(&self.source, rules).map(Column::Hashed),
            "ucs4" => hash_ucs4(&self.source, rules).map(Column::Hashed),
            "objects" => hash_objects(&self.source, rules).map(Column::Hashed),
            _ => Err(PyTypeError::new_err(
                "an expression has no keys yet: it can be asked about with contains_many; \
                 to add its keys, collect it first",
            )),
        }
    }
}

fn chunks_of(source: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    ffi::chunks_of(source)?.ok_or_else(|| PyTypeError::new_err("the column has no Arrow interface"))
}

impl Column {
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Arrow(chunks) => chunks.iter().map(Array::len).sum(),
            Self::Hashed(hashed) => hashed.rows,
        }
    }

    /// Calls `each` with the digests of a piece of the column, its number of
    /// rows, and which of these are null and so have no digest.
    pub(crate) fn pieces(
        &self,
        rules: &Rules,
        mut each: impl FnMut(&Digests, usize, Option<&NullBuffer>) -> PyResult<()>,
    ) -> PyResult<()> {
        match self {
            Self::Hashed(hashed) => each(&hashed.digests, hashed.rows, hashed.nulls.as_ref()),
            Self::Arrow(chunks) => {
                let mut digests = rules.digests();
                for chunk in chunks {
                    let dictionary = Dictionary::of(chunk, rules)?;
                    let mut start = 0;
                    while start < chunk.len() {
                        let piece = chunk.slice(start, PIECE.min(chunk.len() - start));
                        start += piece.len();
                        digests.clear();
                        let nulls = match &dictionary {
                            Some(dictionary) => dictionary.hash(&piece, &mut digests)?,
                            None => {
                                hash_array(&piece, rules, &mut digests)?;
                                piece.logical_nulls()
                            }
                        };
                        each(&digests, piece.len(), nulls.as_ref())?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// What somebody is told whose column has values that are no keys.
fn no_keys(kind: impl Display) -> PyErr {
    PyTypeError::new_err(format!(
        "a column of keys holds text, bytes or integers, got {kind}: \
         cast it to one of these in the one way that all writers and readers use"
    ))
}

/// The type of the keys of an Arrow column; `None` if all of it is null.
fn key_type_of(data_type: &DataType) -> PyResult<Option<KeyType>> {
    match data_type {
        DataType::Null => Ok(None),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Ok(Some(KeyType::Bytes)),
        DataType::Dictionary(_, values) => key_type_of(values),
        kind if kind.is_integer() => Ok(Some(KeyType::Int)),
        DataType::Struct(_) => Err(PyTypeError::new_err(
            "this is a table: pass one of its columns",
        )),
        kind => Err(no_keys(kind)),
    }
}

/// Refuses an array of which some value is no key of a filter.
fn check(array: &ArrayRef, rules: &Rules) -> PyResult<()> {
    match key_type_of(array.data_type())? {
        Some(KeyType::Int) if rules.key_type() == KeyType::Bytes => {
            return Err(rules.wrong_type("a column of int"));
        }
        Some(KeyType::Bytes) if rules.key_type() == KeyType::Int && !rules.takes_text() => {
            return Err(rules.wrong_type("a column of str or bytes"));
        }
        _ => {}
    }
    let values = match array.as_any_dictionary_opt() {
        Some(dictionary) => dictionary.values(),
        None => array,
    };
    if let Some(ints) = values.as_primitive_opt::<UInt64Type>()
        && let Some(value) = ints.iter().flatten().find(|&v| i64::try_from(v).is_err())
    {
        return Err(too_large(&value.to_string()));
    }
    Ok(())
}

/// Appends the digests of the values that are not null.
fn hash_array(array: &ArrayRef, rules: &Rules, digests: &mut Digests) -> PyResult<()> {
    match array.data_type() {
        DataType::Null => Ok(()),
        DataType::Utf8 => hash_bytes(array.as_string::<i32>(), rules, digests),
        DataType::LargeUtf8 => hash_bytes(array.as_string::<i64>(), rules, digests),
        DataType::Binary => hash_bytes(array.as_binary::<i32>(), rules, digests),
        DataType::LargeBinary => hash_bytes(array.as_binary::<i64>(), rules, digests),
        DataType::Utf8View => hash_views(array.as_string_view(), rules, digests),
        DataType::BinaryView => hash_views(array.as_binary_view(), rules, digests),
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            let all = (0..array.len()).filter(|&row| array.is_valid(row));
            extend(all.map(|row| array.value(row)), rules, digests)
        }
        DataType::Int8 => hash_ints(array.as_primitive::<Int8Type>(), digests),
        DataType::Int16 => hash_ints(array.as_primitive::<Int16Type>(), digests),
        DataType::Int32 => hash_ints(array.as_primitive::<Int32Type>(), digests),
        DataType::Int64 => hash_ints(array.as_primitive::<Int64Type>(), digests),
        DataType::UInt8 => hash_ints(array.as_primitive::<UInt8Type>(), digests),
        DataType::UInt16 => hash_ints(array.as_primitive::<UInt16Type>(), digests),
        DataType::UInt32 => hash_ints(array.as_primitive::<UInt32Type>(), digests),
        DataType::UInt64 => hash_ints(array.as_primitive::<UInt64Type>(), digests),
        kind => Err(no_keys(kind)),
    }
}

/// Appends the digests of byte keys.
fn extend<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
    rules: &Rules,
    digests: &mut Digests,
) -> PyResult<()> {
    if rules.takes_plain_bytes() {
        return digests.extend_bytes(keys).or_raise();
    }
    for key in keys {
        rules.push(&Key::Bytes(key), digests)?;
    }
    Ok(())
}

fn hash_bytes<T: ByteArrayType>(
    array: &GenericByteArray<T>,
    rules: &Rules,
    digests: &mut Digests,
) -> PyResult<()> {
    let key = |row| AsRef::<[u8]>::as_ref(array.value(row));
    if array.null_count() == 0 {
        return extend((0..array.len()).map(key), rules, digests);
    }
    let valid = (0..array.len()).filter(|&row| array.is_valid(row));
    extend(valid.map(key), rules, digests)
}

fn hash_views<T: ByteViewType>(
    array: &GenericByteViewArray<T>,
    rules: &Rules,
    digests: &mut Digests,
) -> PyResult<()> {
    let key = |row| AsRef::<[u8]>::as_ref(array.value(row));
    let valid = (0..array.len()).filter(|&row| array.is_valid(row));
    extend(valid.map(key), rules, digests)
}

fn hash_ints<T>(array: &PrimitiveArray<T>, digests: &mut Digests) -> PyResult<()>
where
    T: ArrowPrimitiveType,
    T::Native: TryInto<i64> + Display,
{
    for value in array.iter().flatten() {
        push_int(value, digests)?;
    }
    Ok(())
}

#[inline]
fn push_int<T: TryInto<i64> + Display + Copy>(value: T, digests: &mut Digests) -> PyResult<()> {
    let key = value
        .try_into()
        .map_err(|_| too_large(&value.to_string()))?;
    digests.push_int(key).or_raise()
}

/// A dictionary whose values are hashed once each.
struct Dictionary {
    digests: Digests,
    /// Where the digest of a value is; `None` if it is null.
    places: Vec<Option<usize>>,
}

impl Dictionary {
    fn of(array: &ArrayRef, rules: &Rules) -> PyResult<Option<Self>> {
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            return Ok(None);
        };
        let values = dictionary.values();
        let mut digests = rules.digests();
        hash_array(values, rules, &mut digests)?;
        let nulls = values.logical_nulls();
        let mut next = 0;
        let places = (0..values.len())
            .map(|value| {
                let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(value));
                next += usize::from(valid);
                valid.then(|| next - 1)
            })
            .collect();
        Ok(Some(Self { digests, places }))
    }

    fn hash(&self, array: &ArrayRef, digests: &mut Digests) -> PyResult<Option<NullBuffer>> {
        downcast_dictionary_array!(
            array => self.hash_keys(array, digests),
            kind => Err(no_keys(kind))
        )
    }

    fn hash_keys<K: ArrowDictionaryKeyType>(
        &self,
        array: &DictionaryArray<K>,
        digests: &mut Digests,
    ) -> PyResult<Option<NullBuffer>> {
        let mut nulls = NullBufferBuilder::new(array.len());
        for key in array.keys() {
            let place = key.and_then(|key| *self.places.get(key.as_usize())?);
            nulls.append(place.is_some());
            if let Some(place) = place {
                digests
                    .extend_from(&self.digests, place..place + 1)
                    .or_raise()?;
            }
        }
        Ok(nulls.finish())
    }
}

/// Hashes numbers where a buffer has them.
fn hash_buffer(source: &Bound<'_, PyAny>, rules: &Rules) -> PyResult<Hashed> {
    if rules.key_type() == KeyType::Bytes {
        return Err(rules.wrong_type("an array of int"));
    }
    let buffer = PyUntypedBuffer::get(source)?;
    macro_rules! of {
        ($int:ty) => {
            hash_numbers::<$int>(source, rules)
        };
    }
    match ElementType::from_format(buffer.format()) {
        ElementType::SignedInteger { bytes: 1 } => of!(i8),
        ElementType::SignedInteger { bytes: 2 } => of!(i16),
        ElementType::SignedInteger { bytes: 4 } => of!(i32),
        ElementType::SignedInteger { bytes: 8 } => of!(i64),
        ElementType::UnsignedInteger { bytes: 1 } => of!(u8),
        ElementType::UnsignedInteger { bytes: 2 } => of!(u16),
        ElementType::UnsignedInteger { bytes: 4 } => of!(u32),
        ElementType::UnsignedInteger { bytes: 8 } => of!(u64),
        _ => Err(no_keys(buffer.format().to_string_lossy())),
    }
}

fn hash_numbers<T>(source: &Bound<'_, PyAny>, rules: &Rules) -> PyResult<Hashed>
where
    T: Element + Copy + TryInto<i64> + Display,
{
    let buffer = PyBuffer::<T>::get(source)?;
    let numbers = Elements::of(&buffer, source.py())?;
    room_for(numbers.len())?;
    let mut digests = rules.digests();
    for index in 0..numbers.len() {
        push_int(numbers.get(index), &mut digests)?;
    }
    Ok(Hashed {
        digests,
        rows: numbers.len(),
        nulls: None,
    })
}

/// Hashes text of a fixed width, from a buffer of two dimensions. As in numpy,
/// zeros at the end are not part of a value.
fn hash_fixed(source: &Bound<'_, PyAny>, rules: &Rules) -> PyResult<Hashed> {
    let buffer = PyBuffer::<u8>::get(source)?;
    let units = Elements::of(&buffer, source.py())?;
    let mut key = Vec::new();
    hash_units(buffer.shape(), rules, |range, digests| {
        key.clear();
        key.extend(range.map(|index| units.get(index)));
        let end = key.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
        rules.push(&Key::Bytes(&key[..end]), digests)
    })
}

/// The same for code points of 32 bits.
fn hash_ucs4(source: &Bound<'_, PyAny>, rules: &Rules) -> PyResult<Hashed> {
    let buffer = PyBuffer::<u32>::get(source)?;
    let units = Elements::of(&buffer, source.py())?;
    let (mut key, mut codes) = (String::new(), Vec::new());
    hash_units(buffer.shape(), rules, |range, digests| {
        key.clear();
        codes.clear();
        codes.extend(range.map(|index| units.get(index)));
        let end = codes
            .iter()
            .rposition(|&code| code != 0)
            .map_or(0, |last| last + 1);
        for &code in &codes[..end] {
            key.push(char::from_u32(code).ok_or_else(|| {
                PyValueError::new_err(format!("U+{code:04X} has no UTF-8: it is no character"))
            })?);
        }
        rules.push(&Key::Bytes(key.as_bytes()), digests)
    })
}

/// Calls `push` with the place of each value of an array of (rows, units).
fn hash_units(
    shape: &[usize],
    rules: &Rules,
    mut push: impl FnMut(std::ops::Range<usize>, &mut Digests) -> PyResult<()>,
) -> PyResult<Hashed> {
    let &[rows, width] = shape else {
        return Err(PyValueError::new_err("expected an array of two dimensions"));
    };
    room_for(rows)?;
    let mut digests = rules.digests();
    for row in 0..rows {
        push(row * width..(row + 1) * width, &mut digests)?;
    }
    Ok(Hashed {
        digests,
        rows,
        nulls: None,
    })
}

/// Hashes what an iterable gives; None is null.
fn hash_objects(source: &Bound<'_, PyAny>, rules: &Rules) -> PyResult<Hashed> {
    room_for(source.len().unwrap_or(0))?;
    let mut digests = rules.digests();
    let mut nulls = NullBufferBuilder::new(0);
    for item in source.try_iter()? {
        let item = item?;
        nulls.append(!item.is_none());
        if !item.is_none() {
            rules.push(&key_of(&item)?, &mut digests)?;
        }
    }
    Ok(Hashed {
        digests,
        rows: nulls.len(),
        nulls: nulls.finish(),
    })
}

/// Refuses a column whose digests memory cannot hold.
fn room_for(rows: usize) -> PyResult<()> {
    petal::memory::check((rows as u64).saturating_mul(8)).or_raise()
}
