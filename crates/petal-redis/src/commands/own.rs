//! The commands that RedisBloom lacks, and `BF.DEBUG`.

use petal::{AnyFilter, Contains as _, WindowSpan};

use crate::bloom::BloomKey;
use crate::bloom::filter::{Body, Filter, bits};
use crate::commands::bf::existing;
use crate::config;
use crate::engine::types::Kept;
use crate::engine::{self, Call, Failure, Found, Outcome};
use crate::frame::PIECE;

use super::dump;

/// What an item is asked of, if it is there.
fn asked<T>(call: &Call<'_>, ask: impl FnOnce(&Filter) -> Outcome<T>) -> Outcome<Option<T>> {
    let mut key = call.look(1);
    match key.value::<BloomKey>() {
        Found::Value(value) => value.ready().map(ask).transpose(),
        Found::Nothing => Ok(None),
        Found::Other => Err(Failure::Type),
    }
}

/// `BF.TEST key item`: as `BF.EXISTS`, but nil if there is no filter, or not yet.
pub(crate) fn test(call: &Call<'_>) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    match asked(call, |filter| filter.contains(call.arg(2), engine::now))? {
        Some(found) => call.bool(found),
        None => call.null(),
    }
    Ok(())
}

/// `BF.MTEST key item ...`: an array, or nil.
pub(crate) fn mtest(call: &Call<'_>) -> Outcome {
    if call.len() < 3 {
        return Err(Failure::Arity);
    }
    let items: Vec<&[u8]> = call.args(2).collect();
    match asked(call, |filter| filter.contains_all(&items, engine::now))? {
        Some(mask) => {
            call.array(items.len());
            bits(&mask, items.len()).for_each(|found| call.bool(found));
        }
        None => call.null(),
    }
    Ok(())
}

/// Blocks of each region that an estimate is made of.
const SAMPLED: u64 = 4096;

/// Windows up to so many bytes are measured as a whole.
const MEASURED: u64 = 4 << 20;

/// The error as the filter stands, and the share of its bits that are set; `None`
/// where finding out would keep other clients waiting.
fn measured(filter: &AnyFilter, items: u64) -> (Option<f64>, Option<f64>) {
    match filter {
        AnyFilter::Bloom(filter) => (Some(filter.sampled_error(SAMPLED, 0.0)), None),
        AnyFilter::Growable(filter) => (Some(filter.sampled_error(SAMPLED, 0.0)), None),
        other if other.bytes() <= MEASURED && items > 0 => {
            (Some(other.error_now()), Some(other.fill()))
        }
        _ => (None, None),
    }
}

/// `BF.STATS key`
pub(crate) fn stats(call: &Call<'_>) -> Outcome {
    if call.len() != 2 {
        return Err(Failure::Arity);
    }
    let mut key = call.look(1);
    let value = existing(&mut key)?;
    let bytes = value.bytes();
    let filter = value.filter()?;
    let (kind, error, (now, fill)) = match &filter.body {
        Body::Own(own) => {
            let (now, mut fill) = measured(own, filter.items());
            if own.bytes() <= MEASURED {
                fill = Some(own.fill());
            }
            (own.kind().name(), filter.spec.error, (now, fill))
        }
        Body::Foreign(chain) => {
            use petal_interop::ForeignFilter as _;
            let error = chain.parameters().error.unwrap_or(0.0);
            let small = chain.bytes() <= MEASURED;
            let now = small.then(|| chain.error_now());
            ("redisbloom", error, (now, small.then(|| chain.fill())))
        }
    };
    let optional = |value: Option<f64>| match value {
        Some(value) => call.double(value),
        None => call.null(),
    };
    let window = match filter.own() {
        Some(AnyFilter::Window(window)) => Some(window),
        _ => None,
    };
    call.map(if window.is_some() { 12 } else { 9 });
    call.simple("Kind");
    call.simple(kind);
    call.simple("Capacity");
    call.count(filter.capacity());
    call.simple("Number of items inserted");
    call.count(filter.items());
    call.simple("Error rate");
    call.double(error);
    call.simple("Error rate now");
    optional(now);
    call.simple("Fill");
    optional(fill);
    call.simple("Size");
    call.count(bytes);
    call.simple("Size limit");
    call.count(config::max_bytes());
    call.simple("Keyed hashing");
    let keyed = filter.own().is_some_and(|own| {
        matches!(
            own.about().identity().hasher,
            petal::KeyHasher::Keyed { .. }
        )
    });
    call.bool(keyed);
    if let Some(window) = window {
        reply_window(call, window);
    }
    Ok(())
}

/// How far back a window reaches, as it should and as it does: shorter where more items
/// came than it is for.
fn reply_window(call: &Call<'_>, window: &petal::Window) {
    call.simple("Window");
    match window.span() {
        WindowSpan::Time { ticks, .. } => {
            let covered = engine::now().saturating_sub(window.complete_since());
            call.count(ticks);
            call.simple("Window covered");
            call.count(covered.min(ticks));
        }
        WindowSpan::Keys => {
            call.null();
            call.simple("Window covered");
            call.null();
        }
    }
    call.simple("Generations dropped early");
    call.count(window.shortened());
}

/// `BF.DEBUG key`
pub(crate) fn debug(call: &Call<'_>) -> Outcome {
    if call.len() != 2 {
        return Err(Failure::Arity);
    }
    let mut key = call.look(1);
    let value = existing(&mut key)?;
    let filter = value.filter()?;
    let mut lines = vec![format!("size:{}", filter.items())];
    match &filter.body {
        Body::Own(AnyFilter::Growable(own)) => {
            lines.extend(own.stages().iter().map(|stage| {
                let (items, error) = stage
                    .about()
                    .promise()
                    .map_or((0, 0.0), |p| (p.items, p.error));
                let (shape, size) = (stage.geometry(), stage.about().insertions().unwrap_or(0));
                let (bytes, bits) = (shape.bytes(), shape.bits());
                let hashes = shape.regions() * shape.block().count();
                format!(
                    "bytes:{bytes} bits:{bits} hashes:{hashes} hashwidth:64 capacity:{items} \
                     size:{size} ratio:{error}"
                )
            }));
        }
        Body::Own(own) => lines.push(format!(
            "bytes:{} bits:{} hashwidth:64 capacity:{} size:{} ratio:{}",
            own.bytes(),
            own.bytes() * 8,
            filter.capacity(),
            filter.items(),
            filter.spec.error
        )),
        Body::Foreign(chain) => lines.push(format!(
            "links:{} bytes:{} hashwidth:64 capacity:{} size:{}",
            chain.links(),
            chain.bytes(),
            filter.capacity(),
            filter.items()
        )),
    }
    call.array(lines.len());
    lines.iter().for_each(|line| call.bulk(line.as_bytes()));
    Ok(())
}

/// `EXPORT key iterator`: the bytes of a petal file, in the manner of `SCANDUMP`. Front and
/// table need a look at all bits, the pieces between do not.
pub(crate) fn export<T: dump::Replies>(
    call: &Call<'_>,
    changes: impl Fn(&T) -> Option<u64>,
    filter: impl Fn(&T) -> Outcome<Option<&AnyFilter>>,
) -> Outcome {
    let (value_of, only) = (
        filter,
        "ERR only a single filter of this module is a petal file",
    );
    dump::walk::<T>(call, changes, |value, place| {
        let filter = value_of(value)?.ok_or(only)?;
        let offset = place.saturating_sub(1);
        let next = |bytes: Vec<u8>| {
            // The first piece has iterator 1, as in a dump, and the next ones count from there.
            let next = place
                .max(1)
                .saturating_add(if place == 0 { 0 } else { bytes.len() as u64 });
            Ok((!bytes.is_empty()).then_some((next, bytes)))
        };
        if place == 0 {
            return next(filter.file_ends()?.0);
        }
        let payload = filter.payload_len()?;
        if offset < payload {
            return next(filter.payload_piece(offset, PIECE)?);
        }
        let table = filter.file_ends()?.1;
        let from = usize::try_from(offset - payload)
            .unwrap_or(usize::MAX)
            .min(table.len());
        next(table[from..].to_vec())
    })
}
