//! Items of commands to digests.
//!
//! Owns that a filter's recorded normalisation is applied, so that a filter
//! which was built of lines by the command answers here as it does there.

use petal::normalise::{Normal, Normalisation};
use petal::{AnyFilter, Contains as _, Digest, Digests};

use crate::engine::Outcome;

/// The digests of items, in order.
///
/// # Errors
/// If one is no key of the filter's form.
pub(crate) fn digests_of<'a>(
    filter: &AnyFilter,
    items: impl Iterator<Item = &'a [u8]>,
) -> Outcome<Digests> {
    let identity = filter.about().identity();
    let mut digests = Digests::new(identity.hasher.clone(), identity.key_type);
    if identity.normalisation == Normalisation::default()
        && identity.key_type == petal::KeyType::Bytes
    {
        digests.extend_bytes(items)?;
        return Ok(digests);
    }
    let mut scratch = Vec::new();
    for item in items {
        let normal = identity.normalisation.apply(item, &mut scratch);
        match (normal, identity.key_type) {
            // The items of a filter of integers that were no lines of text.
            (Normal::Key(text), petal::KeyType::Int) => {
                let number =
                    crate::numbers::int(text).ok_or("ERR the filter's items are integers")?;
                digests.push_int(number)?;
            }
            (Normal::Key(key) | Normal::NotUrl(key), _) => digests.push_bytes(key)?,
            (Normal::Int(key), _) => digests.push_int(key)?,
            (Normal::NoField, _) => {
                return Err("ERR an item lacks the field that is the filter's key".into());
            }
            (Normal::Bad(why), _) => {
                return Err(format!("ERR an item is no key of the filter: {why}").into());
            }
        }
    }
    Ok(digests)
}

/// The digest of one item, as [`digests_of`].
pub(crate) fn digest_of(filter: &AnyFilter, item: &[u8]) -> Outcome<Digest> {
    let identity = filter.about().identity();
    if identity.normalisation == Normalisation::default()
        && identity.key_type == petal::KeyType::Bytes
    {
        return Ok(identity.hasher.digest_bytes(item));
    }
    let digests = digests_of(filter, std::iter::once(item))?;
    digests.get(0).ok_or_else(|| "ERR no item".into())
}
