//! The commands of Bloom filters that RedisBloom has, but for dumps.

use crate::bloom::BloomKey;
use crate::bloom::filter::{Added, Filter, Full, bits};
use crate::commands::options::{Options, creation_of};
use crate::config;
use crate::engine::{self, Arg, Call, Failure, Found, Key, Outcome};
use crate::numbers;

/// Bytes that a filter may take for this command: no bound for what was
/// carried out elsewhere.
pub(crate) fn most_for(call: &Call<'_>) -> u64 {
    if call.must_obey() {
        u64::MAX
    } else {
        config::max_bytes()
    }
}

/// The filter's key, which must be there.
pub(crate) fn existing<'k>(key: &'k mut Key<'_>) -> Outcome<&'k mut BloomKey> {
    match key.value() {
        Found::Value(value) => Ok(value),
        Found::Nothing => Err("ERR not found".into()),
        Found::Other => Err(Failure::Type),
    }
}

/// `BF.RESERVE key error capacity [EXPANSION n | NONSCALING] ...`
pub(crate) fn reserve(call: &Call<'_>) -> Outcome {
    let options = Options::of_reserve(call)?;
    let mut key = call.key(1);
    match key.value::<BloomKey>() {
        Found::Nothing => {}
        Found::Value(_) => return Err("ERR item exists".into()),
        Found::Other => return Err(Failure::Type),
    }
    let filter = options.build(most_for(call))?;
    let creation = creation_of(&filter);
    key.set(BloomKey::new(filter));
    send_creation(call, &creation, &[]);
    call.notify(c"bloom.reserve", 1);
    call.ok();
    Ok(())
}

/// `BF.ADD key item`
pub(crate) fn add(call: &Call<'_>) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let mut key = call.key(1);
    if let Found::Value(value) = key.value::<BloomKey>()
        && let Some(added) =
            value.change(|filter| filter.add_one(call.arg(2), || most_for(call)))?
    {
        let changed = added.map_err(|full| text_of(&full))?;
        if changed {
            call.replicate_as_is();
            call.notify(c"bloom.add", 1);
        }
        call.bool(changed);
        return Ok(());
    }
    drop(key);
    let added = add_items(call, 2, None)?;
    match (added.changed.first(), added.full) {
        (Some(&changed), _) => call.bool(changed),
        (None, Some(full)) => return Err(text_of(&full).into()),
        (None, None) => call.bool(false),
    }
    Ok(())
}

/// `BF.MADD key item ...`
pub(crate) fn madd(call: &Call<'_>) -> Outcome {
    if call.len() < 3 {
        return Err(Failure::Arity);
    }
    let added = add_items(call, 2, None)?;
    reply_added(call, &added);
    Ok(())
}

/// `BF.INSERT key [CAPACITY n] [ERROR p] ... ITEMS item ...`
pub(crate) fn insert(call: &Call<'_>) -> Outcome {
    let options = Options::of_insert(call)?;
    if options.spec.merging {
        return begin_merge(call, options);
    }
    let items = options.items.unwrap_or(call.len());
    let added = add_items(call, items, Some(options))?;
    reply_added(call, &added);
    Ok(())
}

/// Makes the filter of a merge in parts, which the master began.
fn begin_merge(call: &Call<'_>, options: Options) -> Outcome {
    let mut key = call.key(1);
    if !matches!(key.value::<BloomKey>(), Found::Nothing) {
        return Err("ERR item exists".into());
    }
    let filter = options.build(most_for(call))?;
    let creation = creation_of(&filter);
    key.set(BloomKey::new(filter));
    send_creation(call, &creation, &[]);
    call.array(0);
    Ok(())
}

fn reply_added(call: &Call<'_>, added: &Added) {
    call.array(added.changed.len() + usize::from(added.full.is_some()));
    for &changed in &added.changed {
        call.bool(changed);
    }
    if let Some(full) = &added.full {
        call.error(&text_of(full));
    }
}

fn text_of(full: &Full) -> String {
    match full {
        Full::NonScaling => "ERR non scaling filter is full".to_owned(),
        Full::Growth(why) => format!("ERR problem inserting into filter: {why}"),
    }
}

/// Adds the arguments from `first` on, to a filter that is made if it is not there.
fn add_items(call: &Call<'_>, first: usize, options: Option<Options>) -> Outcome<Added> {
    let most = || most_for(call);
    let mut key = call.key(1);
    // A master sends a creation with all of its parameters. Where that was refused, since the
    // filter is keyed by a secret that is not here, an addition must not make another one.
    let create = || match &options {
        Some(options) => options.create,
        None => !call.must_obey(),
    };
    let mut made = None;
    let value = match key.value::<BloomKey>() {
        Found::Value(value) => value,
        Found::Other => return Err(Failure::Type),
        Found::Nothing if !create() => return Err("ERR not found".into()),
        Found::Nothing => {
            let filter = options.unwrap_or_else(Options::usual).build(most())?;
            made.insert(BloomKey::new(filter))
        }
    };
    let windowed = value.filter()?.spec.window.is_some();
    let now = if windowed { engine::now() } else { 0 };
    let items: Vec<&[u8]> = call.args(first).collect();
    let added = value.change(|filter| filter.add_all(&items, || now, most))?;
    if let Some(made) = made {
        let creation = creation_of(made.filter()?);
        key.set(made);
        call.notify(c"bloom.reserve", 1);
        if windowed {
            send_creation(call, &creation, &[]);
            send_at(call, now, first, &added);
        } else {
            let changed = changed_args(first, &added);
            send_creation(call, &creation, &changed);
        }
    } else if windowed {
        send_at(call, now, first, &added);
    } else {
        send_changed(call, first, &added);
    }
    if added.changed.contains(&true) {
        call.notify(c"bloom.add", 1);
    }
    Ok(added)
}

/// The arguments that changed the filter.
fn changed_args<'a>(first: usize, added: &Added) -> Vec<Arg<'a>> {
    let changed = (first..)
        .zip(&added.changed)
        .filter(|&(_, &changed)| changed);
    changed.map(|(index, _)| Arg::Own(index)).collect()
}

/// Sends what makes the filter, and items, to replicas.
pub(super) fn send_creation(call: &Call<'_>, creation: &[Vec<u8>], items: &[Arg<'_>]) {
    let mut args = vec![Arg::Own(1)];
    args.extend(creation.iter().map(|arg| Arg::Bytes(arg)));
    if !items.is_empty() {
        args.push(Arg::Bytes(b"ITEMS"));
        args.extend(items);
    }
    call.replicate(c"bf.insert", &args);
}

/// Sends the items that changed the filter to replicas.
fn send_changed(call: &Call<'_>, first: usize, added: &Added) {
    let changed = changed_args(first, added);
    if changed.is_empty() {
        return;
    }
    let all = first == 2 && changed.len() == added.changed.len() && added.full.is_none();
    if all {
        call.replicate_as_is();
        return;
    }
    let mut args = vec![Arg::Own(1)];
    args.extend(changed);
    call.replicate(c"bf.madd", &args);
}

/// Sends all items of a window, which each are new again, and the time.
fn send_at(call: &Call<'_>, now: u64, first: usize, added: &Added) {
    if added.changed.is_empty() {
        return;
    }
    let now = now.to_string();
    let mut args = vec![Arg::Own(1), Arg::Bytes(now.as_bytes())];
    args.extend((first..).take(added.changed.len()).map(Arg::Own));
    call.replicate(c"bf.addat", &args);
}

/// How far in the future a client's time may be, in milliseconds: a time that is far ahead
/// would empty the window.
const AHEAD: u64 = 5000;

/// `BF.ADDAT key milliseconds item ...`: how items of a window go to replicas.
pub(crate) fn add_at(call: &Call<'_>) -> Outcome {
    if call.len() < 4 {
        return Err(Failure::Arity);
    }
    let time = numbers::int(call.arg(2)).and_then(|time| u64::try_from(time).ok());
    let time = time.ok_or("ERR bad time")?;
    let ahead = time.saturating_sub(engine::now());
    if ahead > AHEAD && !call.must_obey() {
        let text = format!("ERR the time is {ahead} ms in the future: at most {AHEAD} are taken");
        return Err(text.into());
    }
    let items: Vec<&[u8]> = call.args(3).collect();
    let mut key = call.key(1);
    let value = existing(&mut key)?;
    if value.filter()?.spec.window.is_none() {
        return Err("ERR the filter has no window".into());
    }
    let added = value.change(|filter| filter.add_all(&items, || time, || most_for(call)))?;
    call.replicate_as_is();
    call.notify(c"bloom.add", 1);
    reply_added(call, &added);
    Ok(())
}

/// `BF.EXISTS key item`
pub(crate) fn exists(call: &Call<'_>) -> Outcome {
    if call.len() != 3 {
        return Err(Failure::Arity);
    }
    let mut key = call.look(1);
    let found = match key.value::<BloomKey>() {
        Found::Value(value) => value.filter()?.contains(call.arg(2), engine::now)?,
        Found::Nothing | Found::Other => false,
    };
    call.bool(found);
    Ok(())
}

/// `BF.MEXISTS key item ...`
pub(crate) fn mexists(call: &Call<'_>) -> Outcome {
    if call.len() < 3 {
        return Err(Failure::Arity);
    }
    let items: Vec<&[u8]> = call.args(2).collect();
    let mut key = call.look(1);
    let mask = match key.value::<BloomKey>() {
        Found::Value(value) => value.filter()?.contains_all(&items, engine::now)?,
        Found::Nothing | Found::Other => vec![0; petal::mask_words(items.len())],
    };
    call.array(items.len());
    bits(&mask, items.len()).for_each(|found| call.bool(found));
    Ok(())
}

/// `BF.CARD key`
pub(crate) fn card(call: &Call<'_>) -> Outcome {
    if call.len() != 2 {
        return Err(Failure::Arity);
    }
    let mut key = call.look(1);
    match key.value::<BloomKey>() {
        Found::Value(value) => call.count(value.filter()?.items()),
        Found::Nothing => call.int(0),
        Found::Other => return Err(Failure::Type),
    }
    Ok(())
}

/// Names in `BF.INFO` and the word that asks for each alone.
const FIELDS: [(&str, &str); 5] = [
    ("CAPACITY", "Capacity"),
    ("SIZE", "Size"),
    ("FILTERS", "Number of filters"),
    ("ITEMS", "Number of items inserted"),
    ("EXPANSION", "Expansion rate"),
];
/// The same for those of valkey-bloom, which are told when they are asked for.
const MORE_FIELDS: [(&str, &str); 3] = [
    ("ERROR", "Error rate"),
    ("TIGHTENING", "Tightening ratio"),
    ("MAXSCALEDCAPACITY", "Max scaled capacity"),
];

/// `BF.INFO key [field]`
pub(crate) fn info(call: &Call<'_>) -> Outcome {
    if call.len() != 2 && call.len() != 3 {
        return Err(Failure::Arity);
    }
    let mut key = call.look(1);
    let value = existing(&mut key)?;
    let bytes = crate::engine::types::Kept::bytes(&*value);
    let filter = value.filter()?;
    if call.len() == 2 {
        call.map(FIELDS.len());
        for (word, name) in FIELDS {
            call.simple(name);
            reply_field(call, word, filter, bytes);
        }
        return Ok(());
    }
    let asked = FIELDS
        .iter()
        .chain(&MORE_FIELDS)
        .find(|(word, _)| call.is(2, word));
    let &(word, name) = asked.ok_or("Invalid information value")?;
    if call.is_resp3() {
        call.map(1);
        call.simple(name);
    } else {
        call.array(1);
    }
    reply_field(call, word, filter, bytes);
    Ok(())
}

fn reply_field(call: &Call<'_>, word: &str, filter: &Filter, bytes: u64) {
    match word {
        "CAPACITY" => call.count(filter.capacity()),
        "SIZE" => call.count(bytes),
        "FILTERS" => call.count(filter.stages() as u64),
        "ITEMS" => call.count(filter.items()),
        "ERROR" => call.double(filter.spec.error),
        "TIGHTENING" => call.double(filter.spec.tightening),
        "MAXSCALEDCAPACITY" => match filter.spec.scale_to {
            0 => call.null(),
            keys => call.count(keys),
        },
        _ => match filter.expansion() {
            Some(factor) => call.count(factor.into()),
            None => call.null(),
        },
    }
}
