//! One Python object to one key.
//!
//! Owns which objects are keys, what the others are told, and [`Rules`]: the
//! type of a filter's keys, its hasher and its normalisation, which stay the
//! same for the filter's life. Columns are in [`crate::column`].

use petal::normalise::{Form, Normal, Normalisation};
use petal::{Digest, Digests, Identity, KeyHasher, KeyType, Secret};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use crate::errors::{OrRaise, PetalError};

/// How objects become digests for one filter.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    identity: Identity,
    /// Keys are hashed as they are.
    plain: bool,
    /// That, and they are bytes.
    plain_bytes: bool,
}

/// A key, borrowed from the object that it is.
pub(crate) enum Key<'a> {
    /// Text is its UTF-8.
    Bytes(&'a [u8]),
    Int(i64),
}

impl Rules {
    pub(crate) fn new(identity: Identity) -> Self {
        let plain = identity.normalisation == Normalisation::default();
        let plain_bytes = plain && identity.key_type == KeyType::Bytes;
        Self {
            identity,
            plain,
            plain_bytes,
        }
    }

    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) const fn key_type(&self) -> KeyType {
        self.identity.key_type
    }

    /// An empty buffer for digests under these rules.
    pub(crate) fn digests(&self) -> Digests {
        Digests::new(self.identity.hasher.clone(), self.identity.key_type)
    }

    /// Whether byte keys are hashed as they are, and there are such keys.
    #[inline]
    pub(crate) const fn takes_plain_bytes(&self) -> bool {
        self.plain_bytes
    }

    /// The digest of a byte key that is hashed as it is.
    #[inline]
    pub(crate) fn digest_bytes(&self, key: &[u8]) -> Digest {
        self.identity.hasher.digest_bytes(key)
    }

    /// Whether text and bytes can be keys.
    pub(crate) fn takes_text(&self) -> bool {
        self.identity.key_type == KeyType::Bytes
            || self.identity.normalisation.key_type() == KeyType::Int
    }

    /// Appends the digest of a key.
    #[inline]
    pub(crate) fn push(&self, key: &Key<'_>, digests: &mut Digests) -> PyResult<()> {
        match (key, self.identity.key_type) {
            (Key::Bytes(bytes), KeyType::Bytes) if self.plain => digests.push_bytes(bytes),
            (Key::Int(int), KeyType::Int) => digests.push_int(*int),
            (Key::Bytes(bytes), _) => return self.push_normal(bytes, digests),
            (Key::Int(_), KeyType::Bytes) => return Err(self.wrong_type("int")),
        }
        .or_raise()
    }

    /// The digest of a key.
    #[inline]
    pub(crate) fn digest(&self, key: &Key<'_>) -> PyResult<Digest> {
        match (key, self.identity.key_type) {
            (Key::Bytes(bytes), KeyType::Bytes) if self.plain => {
                Ok(self.identity.hasher.digest_bytes(bytes))
            }
            (Key::Int(int), KeyType::Int) => Ok(self.identity.hasher.digest_int(*int)),
            (Key::Bytes(bytes), _) => self.normal_digest(bytes),
            (Key::Int(_), KeyType::Bytes) => Err(self.wrong_type("int")),
        }
    }

    /// The digest of an object.
    #[inline]
    pub(crate) fn digest_of(&self, object: &Bound<'_, PyAny>) -> PyResult<Digest> {
        self.digest(&key_of(object)?)
    }

    /// The digest of text under the normalisation that the filter records.
    #[cold]
    fn normal_digest(&self, bytes: &[u8]) -> PyResult<Digest> {
        let mut scratch = Vec::new();
        Ok(match self.normal(bytes, &mut scratch)? {
            Key::Bytes(key) => self.identity.hasher.digest_bytes(key),
            Key::Int(key) => self.identity.hasher.digest_int(key),
        })
    }

    /// Appends the digest of text under that normalisation.
    fn push_normal(&self, bytes: &[u8], digests: &mut Digests) -> PyResult<()> {
        let mut scratch = Vec::new();
        match self.normal(bytes, &mut scratch)? {
            Key::Bytes(key) => digests.push_bytes(key),
            Key::Int(key) => digests.push_int(key),
        }
        .or_raise()
    }

    /// The key that text is under that normalisation.
    fn normal<'a>(&self, bytes: &'a [u8], scratch: &'a mut Vec<u8>) -> PyResult<Key<'a>> {
        if self.plain {
            return Err(self.wrong_type("str or bytes"));
        }
        let refuse = |why: String| {
            let key = bytes.escape_ascii();
            Err(PetalError::new_err(format!("the key \"{key}\" {why}")))
        };
        match self.identity.normalisation.apply(bytes, scratch) {
            Normal::Key(key) | Normal::NotUrl(key) => Ok(Key::Bytes(key)),
            Normal::Int(key) => Ok(Key::Int(key)),
            Normal::NoField => refuse(
                "lacks the field that the filter's keys are taken from: pass whole lines".into(),
            ),
            Normal::Bad(reason) => refuse(format!(
                "is {reason}, which every key of this filter is: leave it out"
            )),
        }
    }

    /// What somebody is told who comes with keys of the other type.
    pub(crate) fn wrong_type(&self, got: &str) -> PyErr {
        PyTypeError::new_err(match self.identity.key_type {
            KeyType::Bytes => format!(
                "this filter has bytes keys (str or bytes) and got {got}: \
                 convert the key, or make the filter with keys=\"int\""
            ),
            KeyType::Int => format!(
                "this filter has int keys and got {got}: \
                 convert the key, or make the filter with keys=\"bytes\""
            ),
        })
    }
}

/// The bytes of an object that is exactly a `str` or `bytes`: what nearly all keys are.
#[inline]
pub(crate) fn plain_bytes<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<&'a [u8]>> {
    if let Ok(text) = object.cast_exact::<PyString>() {
        return Ok(Some(text.to_str()?.as_bytes()));
    }
    Ok(object.cast_exact::<PyBytes>().ok().map(|b| b.as_bytes()))
}

/// The key that an object is.
#[inline]
pub(crate) fn key_of<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Key<'a>> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Key::Bytes(text.to_str()?.as_bytes()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Key::Bytes(bytes.as_bytes()));
    }
    int_of(object).map(Key::Int)
}

/// The integer that an object is: an `int`, or what says that it is one by
/// `__index__`, as the integers of numpy do.
fn int_of(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    if object.is_instance_of::<PyBool>() {
        return Err(no_key(object));
    }
    let exact;
    let int = match object.cast::<PyInt>() {
        Ok(int) => int.as_any(),
        Err(_) => {
            exact = object
                .call_method0("__index__")
                .map_err(|_| no_key(object))?;
            &exact
        }
    };
    int.extract()
        .map_err(|_| too_large(&int.str().map_or_else(|_| "it".into(), |s| s.to_string())))
}

/// An integer that no key can be.
pub(crate) fn too_large(value: &str) -> PyErr {
    PyOverflowError::new_err(format!(
        "{value} is outside of -2^63 to 2^63-1, the integers that can be keys: \
         use its decimal text or its bytes as keys"
    ))
}

/// What somebody is told who comes with an object that is no key.
#[cold]
fn no_key(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object
        .get_type()
        .name()
        .map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let remedy = if object.is_instance_of::<PyFloat>() {
        "round it to an int, or take the text you compare by"
    } else if object.is_instance_of::<PyBool>() || name == "bool" {
        "use int(key), if 0 and 1 are meant"
    } else if object.is_none() {
        "leave it out, or pass a column to add_many or contains_many, which keep nulls"
    } else {
        "convert it to one of these in the one way that all writers and readers use"
    };
    PyTypeError::new_err(format!(
        "a key is a str, bytes or int, got {name}: {remedy}"
    ))
}

/// Hasher, key type and normalisation from the arguments of a constructor.
pub(crate) fn identity(
    keys: Option<&str>,
    seed: u64,
    secret: Option<&[u8]>,
    normalise: Option<&str>,
) -> PyResult<Identity> {
    let normalisation = normalise.map(normalisation).transpose()?;
    let given = keys.map(key_type).transpose()?;
    let implied = normalisation.as_ref().map(Normalisation::key_type);
    if let (Some(given), Some(implied)) = (given, implied)
        && given != implied
    {
        return Err(PyValueError::new_err(format!(
            "keys={given} does not go with this normalise=, whose keys are {implied}: leave keys= out"
        )));
    }
    let key_type = given.or(implied).unwrap_or(KeyType::Bytes);
    let hasher = match secret {
        None => KeyHasher::Portable { seed },
        Some(_) if seed != 0 => {
            return Err(PyValueError::new_err(
                "seed= and secret= exclude each other: a secret is all that a keyed hasher takes",
            ));
        }
        Some(bytes) => KeyHasher::Keyed {
            secret: secret_of(bytes)?,
        },
    };
    Ok(Identity::new(key_type)
        .with_hasher(hasher)
        .with_normalisation(normalisation.unwrap_or_default()))
}

/// A secret from its bytes.
pub(crate) fn secret_of(bytes: &[u8]) -> PyResult<Secret> {
    let bytes = bytes.try_into().map_err(|_| {
        PyValueError::new_err(format!(
            "a secret is 16 bytes that strangers cannot guess, got {}: use secrets.token_bytes(16)",
            bytes.len()
        ))
    })?;
    Ok(Secret::new(bytes))
}

fn key_type(name: &str) -> PyResult<KeyType> {
    match name {
        "bytes" => Ok(KeyType::Bytes),
        "int" => Ok(KeyType::Int),
        _ => Err(PyValueError::new_err(format!(
            "keys={name:?} is not possible: expected \"bytes\" (str and bytes) or \"int\""
        ))),
    }
}

/// The normalisation that the command has under such a name.
fn normalisation(name: &str) -> PyResult<Normalisation> {
    let form = match name {
        "line" => Form::Line,
        "url" => Form::Url {
            strip_params: Vec::new(),
        },
        "hex" => Form::Hex { digits: None },
        "int" => Form::Int,
        "ipv4" => Form::Ipv4,
        _ => {
            return Err(PyValueError::new_err(format!(
                "normalise={name:?} is not possible: expected \"line\", \"url\", \"hex\", \"int\" \
                 or \"ipv4\", or None for keys as they are"
            )));
        }
    };
    Normalisation::lines().with_form(form).or_raise()
}
