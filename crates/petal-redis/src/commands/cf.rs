//! The commands of cuckoo filters.

use crate::commands::bf::most_for;
use crate::config::{self, CF_BUCKET_SIZE, MAX_CAPACITY};
use crate::cuckoo::CuckooKey;
use crate::cuckoo::chain::{Chain, Full, Spec};
use crate::engine::{Arg, Call, Failure, Found, Key, Outcome};
use crate::numbers;

use super::hashing::Hashing;

/// An option that is a whole number.
fn whole(call: &Call<'_>, name: &str, at: usize, least: i64, most: i64) -> Outcome<u32> {
    let value = numbers::int(call.arg(at)).ok_or_else(|| format!("Couldn't parse {name}"))?;
    u32::try_from(value)
        .ok()
        .filter(|_| (least..=most).contains(&value))
        .ok_or_else(|| format!("{name}: value must be in the range [{least}, {most}]").into())
}

/// Takes an option of the filter to make, and its value. False if it is none.
fn take(call: &Call<'_>, at: usize, spec: &mut Spec, hashing: &mut Hashing) -> Outcome<bool> {
    let small = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    let value = at + 1;
    if call.is(at, "BUCKETSIZE") {
        spec.bucket_size = small(whole(call, "BUCKETSIZE", value, 1, 255)?);
    } else if call.is(at, "MAXITERATIONS") {
        spec.max_iterations = small(whole(call, "MAXITERATIONS", value, 1, 65_535)?);
    } else if call.is(at, "EXPANSION") {
        spec.expansion = whole(call, "EXPANSION", value, 0, 32_768)?;
    } else if call.is(at, "ERROR") {
        let error = numbers::float(call.arg(value)).ok_or("Couldn't parse ERROR")?;
        if !(error > 0.0 && error < 1.0) {
            return Err("ERROR: value must be in the range (0, 1)".into());
        }
        spec.error = error;
    } else {
        return hashing.take(call, at);
    }
    Ok(true)
}

fn text_of(full: &Full) -> String {
    match full {
        Full::Fixed => "Filter is full".to_owned(),
        Full::Expansions => "Maximum expansions reached".to_owned(),
        Full::Memory(why) => format!("ERR Insufficient memory: {why}"),
    }
}

fn refused(full: &Full) -> Failure {
    match full {
        Full::Memory(why) => format!("ERR Insufficient memory to create filter: {why}").into(),
        other => text_of(other).into(),
    }
}

/// Sends to replicas what makes the same chain.
fn send_creation(call: &Call<'_>, chain: &Chain) {
    let spec = &chain.spec;
    let texts = [
        spec.capacity.to_string(),
        spec.bucket_size.to_string(),
        spec.max_iterations.to_string(),
        spec.expansion.to_string(),
        format!("{:?}", spec.error),
    ];
    let mut args = vec![Arg::Own(1), Arg::Bytes(texts[0].as_bytes())];
    let names: [&[u8]; 4] = [b"BUCKETSIZE", b"MAXITERATIONS", b"EXPANSION", b"ERROR"];
    for (name, text) in names.iter().zip(&texts[1..]) {
        args.extend([Arg::Bytes(name), Arg::Bytes(text.as_bytes())]);
    }
    let hashing = chain.stages().first().map(Hashing::replicated);
    if let Some((name, value)) = &hashing {
        args.extend([Arg::Bytes(name.as_bytes()), Arg::Bytes(value.as_bytes())]);
    }
    call.replicate(c"cf.reserve", &args);
}

/// `CF.RESERVE key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n] [ERROR p]`
pub(crate) fn reserve(call: &Call<'_>) -> Outcome {
    if call.len() < 3 || call.len().is_multiple_of(2) {
        return Err(Failure::Arity);
    }
    let mut spec = Spec::default_one();
    let mut hashing = Hashing::Usual;
    let capacity = numbers::int(call.arg(2)).ok_or("Bad capacity")?;
    for at in (3..call.len()).step_by(2) {
        if !take(call, at, &mut spec, &mut hashing)? {
            return Err("Unknown argument received".into());
        }
    }
    if !(2 * i64::from(spec.bucket_size)..=MAX_CAPACITY).contains(&capacity) {
        let text = format!("Capacity must be in the range [2 * BUCKETSIZE, {MAX_CAPACITY}]");
        return Err(text.into());
    }
    spec.capacity = capacity.cast_unsigned();
    let mut key = call.key(1);
    match key.value::<CuckooKey>() {
        Found::Nothing => {}
        Found::Value(_) => return Err("ERR item exists".into()),
        Found::Other => return Err(Failure::Type),
    }
    let chain =
        Chain::reserve(spec, hashing.hasher()?, most_for(call)).map_err(|full| refused(&full))?;
    send_creation(call, &chain);
    key.set(CuckooKey::new(chain));
    call.notify(c"cuckoo.reserve", 1);
    call.ok();
    Ok(())
}

/// What became of an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Present,
    Refused,
}

/// Adds the arguments from `first` on; only absent ones if `only_new`. Says why
/// the last one that was refused was.
fn add_items(
    call: &Call<'_>,
    first: usize,
    only_new: bool,
    made: Option<(Spec, Hashing)>,
) -> Outcome<(Vec<Change>, Option<Full>)> {
    let most = || most_for(call);
    let mut key = call.key(1);
    let mut new = None;
    let value = match key.value::<CuckooKey>() {
        Found::Value(value) => value,
        Found::Other => return Err(Failure::Type),
        Found::Nothing => {
            let (spec, hashing) = made.ok_or("ERR not found")?;
            let chain = Chain::reserve(spec, hashing.hasher()?, most());
            new.insert(CuckooKey::new(chain.map_err(|full| refused(&full))?))
        }
    };
    let mut why = None;
    let changes = value.change(|chain| {
        // All of them first: nothing is added if one is no key.
        let digests: Vec<_> = call
            .args(first)
            .map(|item| chain.digest(item))
            .collect::<Outcome<_>>()?;
        let mut changes = Vec::with_capacity(digests.len());
        for digest in digests {
            changes.push(if only_new && chain.contains(digest)? {
                Change::Present
            } else {
                match chain.add(digest, most)? {
                    Ok(()) => Change::Added,
                    Err(full) => {
                        why = Some(full);
                        Change::Refused
                    }
                }
            });
        }
        Ok(changes)
    })?;
    if let Some(new) = new {
        send_creation_of(call, &new);
        key.set(new);
        call.notify(c"cuckoo.reserve", 1);
    }
    let added = (first..)
        .zip(&changes)
        .filter(|&(_, &change)| change == Change::Added);
    let mut args = vec![Arg::Own(1), Arg::Bytes(b"NOCREATE"), Arg::Bytes(b"ITEMS")];
    args.extend(added.map(|(index, _)| Arg::Own(index)));
    if args.len() > 3 {
        call.replicate(c"cf.insert", &args);
        call.notify(c"cuckoo.add", 1);
    }
    Ok((changes, why))
}

/// Sends a new chain as it was before its first items: the same but for counts.
fn send_creation_of(call: &Call<'_>, value: &CuckooKey) {
    if let Ok(chain) = value.chain() {
        send_creation(call, chain);
    }
}

fn add_one(call: &Call<'_>, only_new: bool) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let (changes, why) = add_items(
        call,
        2,
        only_new,
        Some((Spec::default_one(), Hashing::Usual)),
    )?;
    match why {
        Some(full) => Err(text_of(&full).into()),
        None => {
            call.bool(changes.contains(&Change::Added));
            Ok(())
        }
    }
}

/// `CF.ADD key item`
pub(crate) fn add(call: &Call<'_>) -> Outcome {
    add_one(call, false)
}

/// `CF.ADDNX key item`
pub(crate) fn add_new(call: &Call<'_>) -> Outcome {
    add_one(call, true)
}

/// `CF.INSERT` and `CF.INSERTNX key [CAPACITY n] [NOCREATE] ITEMS item ...`
fn insert_items(call: &Call<'_>, only_new: bool) -> Outcome {
    if call.len() < 4 {
        return Err(Failure::Arity);
    }
    let mut spec = Some(Spec::default_one());
    let mut hashing = Hashing::Usual;
    let mut at = 2;
    let valued = [
        "CAPACITY",
        "BUCKETSIZE",
        "MAXITERATIONS",
        "EXPANSION",
        "ERROR",
    ];
    while at < call.len() && !call.is(at, "ITEMS") {
        if at + 1 == call.len() && valued.iter().any(|word| call.is(at, word)) {
            return Err(Failure::Arity);
        }
        if call.is(at, "NOCREATE") {
            spec = None;
        } else if call.is(at, "CAPACITY") {
            at += 1;
            let capacity = numbers::int(call.arg(at)).ok_or("Bad capacity")?;
            if !(2 * CF_BUCKET_SIZE.get()..=MAX_CAPACITY).contains(&capacity) {
                return Err(format!(
                    "Capacity must be in the range [cf-bucket-size * 2, {MAX_CAPACITY}]"
                )
                .into());
            }
            if let Some(spec) = &mut spec {
                spec.capacity = capacity.cast_unsigned();
            }
        } else {
            let mut ignored = Spec::default_one();
            let taken = take(
                call,
                at,
                spec.as_mut().unwrap_or(&mut ignored),
                &mut hashing,
            );
            if !taken? {
                return Err("Unknown argument received".into());
            }
            at += 1;
        }
        at += 1;
    }
    if at + 1 >= call.len() {
        return Err(Failure::Arity);
    }
    if let Some(spec) = &mut spec {
        // As little as a replica accepts in `CF.RESERVE`.
        spec.capacity = spec.capacity.max(2 * u64::from(spec.bucket_size));
    }
    let made = spec.map(|spec| (spec, hashing));
    let (changes, _) = add_items(call, at + 1, only_new, made)?;
    call.array(changes.len());
    for change in changes {
        match change {
            // Truth values cannot tell an item that is present from one that was refused.
            Change::Added if only_new => call.int(1),
            Change::Added => call.bool(true),
            Change::Present => call.int(0),
            Change::Refused if call.is_resp3() && !only_new => call.bool(false),
            Change::Refused => call.int(-1),
        }
    }
    Ok(())
}

/// `CF.INSERT`
pub(crate) fn insert(call: &Call<'_>) -> Outcome {
    insert_items(call, false)
}

/// `CF.INSERTNX`
pub(crate) fn insert_new(call: &Call<'_>) -> Outcome {
    insert_items(call, true)
}

/// Whether items are in the chain of the first argument; none are if there is none.
fn found(call: &Call<'_>) -> Outcome<Vec<bool>> {
    let mut key = call.look(1);
    match key.value::<CuckooKey>() {
        Found::Value(value) => {
            let chain = value.chain()?;
            call.args(2)
                .map(|item| chain.contains(chain.digest(item)?))
                .collect()
        }
        Found::Nothing | Found::Other => Ok(vec![false; call.len() - 2]),
    }
}

/// `CF.EXISTS key item`
pub(crate) fn exists(call: &Call<'_>) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    found(call)?.into_iter().for_each(|found| call.bool(found));
    Ok(())
}

/// `CF.MEXISTS key item ...`
pub(crate) fn mexists(call: &Call<'_>) -> Outcome {
    if call.len() < 3 {
        return Err(Failure::Arity);
    }
    let found = found(call)?;
    call.array(found.len());
    found.into_iter().for_each(|found| call.bool(found));
    Ok(())
}

/// `CF.COUNT key item`
pub(crate) fn count(call: &Call<'_>) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let mut key = call.look(1);
    let count = match key.value::<CuckooKey>() {
        Found::Value(value) => {
            let chain = value.chain()?;
            chain.count(chain.digest(call.arg(2))?)?
        }
        Found::Nothing | Found::Other => 0,
    };
    call.count(count);
    Ok(())
}

/// `CF.DEL key item`
pub(crate) fn delete(call: &Call<'_>) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let mut key = call.key(1);
    let value = existing(&mut key, "Not found")?;
    let item = call.arg(2);
    let deleted = value.change(|chain| {
        let digest = chain.digest(item)?;
        chain.delete(digest)
    })?;
    if deleted {
        call.replicate_as_is();
        call.notify(c"cuckoo.del", 1);
    }
    call.bool(deleted);
    Ok(())
}

/// `CF.COMPACT key`
pub(crate) fn compact(call: &Call<'_>) -> Outcome {
    if call.len() != 2 {
        return Err(Failure::Arity);
    }
    let mut key = call.key(1);
    let value = existing(&mut key, "Cuckoo filter was not found")?;
    if value.change(|chain| Ok(chain.compact()))? {
        call.replicate_as_is();
        call.notify(c"cuckoo.compact", 1);
    }
    call.ok();
    Ok(())
}

fn existing<'k>(key: &'k mut Key<'_>, missing: &'static str) -> Outcome<&'k mut CuckooKey> {
    match key.value() {
        Found::Value(value) => Ok(value),
        Found::Nothing => Err(missing.into()),
        Found::Other => Err(Failure::Type),
    }
}

/// `CF.INFO key`
pub(crate) fn info(call: &Call<'_>) -> Outcome {
    if call.len() != 2 {
        return Err(Failure::Arity);
    }
    let mut key = call.look(1);
    let value = existing(&mut key, "ERR not found")?;
    let bytes = crate::engine::types::Kept::bytes(&*value);
    let chain = value.chain()?;
    let spec = &chain.spec;
    let pairs = [
        ("Size", bytes),
        (
            "Number of buckets",
            chain.slots() / u64::from(spec.bucket_size),
        ),
        ("Number of filters", chain.stages().len() as u64),
        ("Number of items inserted", spec.inserted),
        ("Number of items deleted", spec.deleted),
        ("Bucket size", spec.bucket_size.into()),
        ("Expansion rate", spec.expansion.into()),
        ("Max iterations", spec.max_iterations.into()),
    ];
    call.map(pairs.len());
    for (name, value) in pairs {
        call.simple(name);
        call.count(value);
    }
    Ok(())
}

/// `CF.DEBUG key`
pub(crate) fn debug(call: &Call<'_>) -> Outcome {
    if call.len() != 2 {
        return Err(Failure::Arity);
    }
    let mut key = call.look(1);
    let value = existing(&mut key, "ERR not found")?;
    let chain = value.chain()?;
    let spec = &chain.spec;
    let line = format!(
        "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
        spec.bucket_size,
        chain.slots() / u64::from(spec.bucket_size),
        spec.inserted,
        spec.deleted,
        chain.stages().len(),
        spec.max_iterations,
        spec.expansion
    );
    call.bulk(line.as_bytes());
    Ok(())
}

/// `CF.STATS key`
pub(crate) fn stats(call: &Call<'_>) -> Outcome {
    if call.len() != 2 {
        return Err(Failure::Arity);
    }
    let mut key = call.look(1);
    let value = existing(&mut key, "ERR not found")?;
    let bytes = crate::engine::types::Kept::bytes(&*value);
    let chain = value.chain()?;
    call.map(7);
    call.simple("Capacity");
    call.count(chain.spec.capacity);
    call.simple("Error rate");
    call.double(chain.spec.error);
    call.simple("Error rate now");
    call.double(chain.error_now());
    call.simple("Number of filters");
    call.count(chain.stages().len() as u64);
    call.simple("Fill");
    let used: f64 = chain
        .stages()
        .iter()
        .map(|stage| stage.fill() * stage.bytes() as f64)
        .sum();
    call.double(used / chain.bytes().max(1) as f64);
    call.simple("Size");
    call.count(bytes);
    call.simple("Size limit");
    call.count(config::max_bytes());
    Ok(())
}
