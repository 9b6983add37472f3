//! Dumps: `SCANDUMP`, `LOADCHUNK` and `LOAD`, for every type of values.
//!
//! Owns the replies and what an unfinished load leaves. The chunks are the
//! values' own.

use crate::engine::types::Kept;
use crate::engine::{Call, Failure, Found, Outcome};
use crate::numbers;

use super::bf::most_for;

/// An iterator is the place in the dump, with what tells dumps of one key apart
/// above these bits.
const PLACE_BITS: u32 = 44;

/// A number of an iterator.
fn iterator_of(text: &[u8]) -> Option<u64> {
    numbers::int(text).and_then(|iterator| u64::try_from(iterator).ok())
}

/// `SCANDUMP key iterator`, for a value and the number that goes up when a dump that has
/// begun no longer fits together.
pub(crate) fn scan<T: Kept>(call: &Call<'_>, epoch: impl Fn(&T) -> u64) -> Outcome {
    walk(call, epoch, T::chunk_after)
}

/// Answers with what `next` gives for a place, and its place.
pub(crate) fn walk<T: Kept>(
    call: &Call<'_>,
    epoch: impl Fn(&T) -> u64,
    next: impl Fn(&T, u64) -> Outcome<Option<(u64, Vec<u8>)>>,
) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let iterator = iterator_of(call.arg(2));
    let mut key = call.look(1);
    let value = match key.value::<T>() {
        Found::Value(value) => value,
        Found::Nothing => return Err("ERR not found".into()),
        Found::Other => return Err(Failure::Type),
    };
    let iterator = iterator.ok_or("Second argument must be numeric")?;
    let epoch = epoch(value) & (u64::MAX >> (PLACE_BITS + 1));
    let place = iterator & ((1 << PLACE_BITS) - 1);
    if iterator != 0 && iterator >> PLACE_BITS != epoch {
        return Err("ERR the filter changed since the dump began: begin again with 0".into());
    }
    let next = next(value, place)?;
    call.array(2);
    match next {
        Some((place, chunk)) => {
            call.count(epoch << PLACE_BITS | place);
            call.bulk(&chunk);
        }
        None => {
            call.int(0);
            call.bulk(b"");
        }
    }
    Ok(())
}

/// `LOADCHUNK key iterator data`
pub(crate) fn load_chunk<T: Kept>(call: &Call<'_>) -> Outcome {
    if call.len() != 4 {
        return Err(Failure::Arity);
    }
    let iterator = iterator_of(call.arg(2)).ok_or("ERR Second argument must be numeric")?;
    let place = iterator & ((1 << PLACE_BITS) - 1);
    let most = most_for(call);
    let mut key = call.key(1);
    let done = match key.value::<T>() {
        Found::Other => return Err(Failure::Type),
        Found::Nothing if place != 1 => return Err("ERR not found".into()),
        Found::Nothing => {
            let value = T::begin(call.arg(3), most)?;
            key.set(value);
            Ok(())
        }
        Found::Value(_) if place == 1 => {
            return Err("ERR received bad data: the key is there already".into());
        }
        Found::Value(value) => value.push(place, call.arg(3)),
    };
    match done {
        Ok(()) => {
            call.changed(1);
            call.replicate_as_is();
            call.ok();
            Ok(())
        }
        Err(Failure::Broken(text)) => {
            // Nothing of it is kept.
            key.delete();
            call.changed(1);
            call.replicate(c"del", &[crate::engine::Arg::Own(1)]);
            Err(Failure::Broken(text))
        }
        Err(failure) => Err(failure),
    }
}

/// `LOAD key blob`: a whole filter at once.
pub(crate) fn load<T: Kept>(call: &Call<'_>, is_whole: impl Fn(&T) -> bool) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let mut key = call.key(1);
    if !matches!(key.value::<T>(), Found::Nothing) {
        return Err("BUSYKEY Target key name already exists.".into());
    }
    let value = T::begin(call.arg(2), most_for(call))
        .map_err(|failure| format!("ERR bloom object decoding failed: {}", failure.text()))?;
    if !is_whole(&value) {
        return Err("ERR bloom object decoding failed: the file ends early".into());
    }
    key.set(value);
    call.changed(1);
    call.replicate_as_is();
    call.ok();
    Ok(())
}
