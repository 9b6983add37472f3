//! Dumps: `SCANDUMP`, `LOADCHUNK` and `LOAD`, for every type of values.
//!
//! Owns the replies and what an unfinished load leaves. The chunks are the
//! values' own.

use crate::bloom::BloomKey;
use crate::cuckoo::CuckooKey;
use crate::engine::types::Kept;
use crate::engine::{Call, Failure, Found, Outcome};
use crate::numbers;

use super::bf::most_for;

/// An iterator is the place in the dump, with what tells dumps of one key apart
/// above these bits: 53 bits together, which is what clients in JavaScript read exactly.
const PLACE_BITS: u32 = 41;
/// Numbers that tell dumps apart, from 1 on: 0 is in the iterators of RedisBloom.
const TAGS: u64 = (1 << (53 - PLACE_BITS)) - 1;

/// What RedisBloom says of dumps, which it says otherwise of each type.
pub(crate) trait Replies: Kept {
    /// The iterator of `SCANDUMP` is no number.
    const NOT_A_NUMBER: &'static str;
    /// Whether that is said before the key is looked for.
    const ITERATOR_FIRST: bool;
    /// The iterator of `LOADCHUNK` is none.
    const NO_ITERATOR: &'static str;
    /// The first chunk comes to a key that is there.
    const EXISTS: &'static str;

    /// The second element of the reply behind the last chunk.
    fn end(call: &Call<'_>);
}

impl Replies for BloomKey {
    const NOT_A_NUMBER: &'static str = "Second argument must be numeric";
    const ITERATOR_FIRST: bool = false;
    const NO_ITERATOR: &'static str = "ERR Second argument must be numeric";
    const EXISTS: &'static str = "ERR received bad data: the key is there already";

    fn end(call: &Call<'_>) {
        call.bulk(b"");
    }
}

impl Replies for CuckooKey {
    const NOT_A_NUMBER: &'static str = "Invalid position";
    const ITERATOR_FIRST: bool = true;
    const NO_ITERATOR: &'static str = "Invalid position";
    const EXISTS: &'static str = "ERR item exists";

    fn end(call: &Call<'_>) {
        call.null();
    }
}

/// `SCANDUMP key iterator`, for a value and the number that is another one when a dump that
/// has begun no longer fits together.
pub(crate) fn scan<T: Replies>(call: &Call<'_>, epoch: impl Fn(&T) -> Option<u64>) -> Outcome {
    walk(call, epoch, T::chunk_after)
}

/// Answers with what `next` gives for a place, and its place.
pub(crate) fn walk<T: Replies>(
    call: &Call<'_>,
    epoch: impl Fn(&T) -> Option<u64>,
    next: impl Fn(&T, u64) -> Outcome<Option<(u64, Vec<u8>)>>,
) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let iterator = numbers::int(call.arg(2)).ok_or(T::NOT_A_NUMBER);
    if T::ITERATOR_FIRST {
        iterator?;
    }
    let mut key = call.look(1);
    let value = match key.value::<T>() {
        Found::Value(value) => value,
        Found::Nothing => return Err("ERR not found".into()),
        Found::Other => return Err(Failure::Type),
    };
    // One that is negative is past the end, as RedisBloom has it.
    let Ok(iterator) = u64::try_from(iterator?) else {
        call.array(2);
        call.int(0);
        T::end(call);
        return Ok(());
    };
    let tag = epoch(value).map_or(0, |epoch| epoch % TAGS + 1);
    let place = iterator & ((1 << PLACE_BITS) - 1);
    if iterator != 0 && iterator >> PLACE_BITS != tag {
        return Err(
            "ERR the filter changed since the dump began, or is another one: begin again with 0"
                .into(),
        );
    }
    let next = next(value, place)?;
    if next
        .as_ref()
        .is_some_and(|(place, _)| place >> PLACE_BITS != 0)
    {
        return Err("ERR the filter is too large for a dump in chunks".into());
    }
    call.array(2);
    match next {
        Some((place, chunk)) => {
            call.count(tag << PLACE_BITS | place);
            call.bulk(&chunk);
        }
        None => {
            call.int(0);
            T::end(call);
        }
    }
    Ok(())
}

/// `LOADCHUNK key iterator data`
pub(crate) fn load_chunk<T: Replies>(call: &Call<'_>) -> Outcome {
    if call.len() != 4 {
        return Err(Failure::Arity);
    }
    let iterator = numbers::int(call.arg(2)).ok_or(T::NO_ITERATOR)?;
    let iterator = u64::try_from(iterator)
        .ok()
        .filter(|&iterator| iterator > 0)
        .ok_or(T::NO_ITERATOR)?;
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
            return Err(T::EXISTS.into());
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
        .map_err(|failure| format!("ERR bloom object decoding failed: {}", failure.reason()))?;
    if !is_whole(&value) {
        return Err("ERR bloom object decoding failed: the file ends early".into());
    }
    key.set(value);
    call.changed(1);
    call.replicate_as_is();
    call.ok();
    Ok(())
}
