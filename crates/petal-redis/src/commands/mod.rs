//! The commands, and what the server is told about each.
//!
//! Owns the table. `bf`, `cf` and `dump` are what RedisBloom has, `own` and `merge`
//! what it lacks, `options` and `hashing` the options of filters.

pub(crate) mod bf;
pub(crate) mod cf;
pub(crate) mod dump;
pub(crate) mod hashing;
pub(crate) mod merge;
pub(crate) mod options;
pub(crate) mod own;

use redis_module::raw;

use crate::bloom::BloomKey;
use crate::cuckoo::CuckooKey;
use crate::engine::register::{Command, command};
use crate::engine::{Call, Outcome};

const READ: u32 = raw::REDISMODULE_CMD_KEY_RO | raw::REDISMODULE_CMD_KEY_ACCESS;
const CHANGE: u32 = raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_UPDATE;
const DELETE: u32 = raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_DELETE;
const ADD: u32 = raw::REDISMODULE_CMD_KEY_RW | raw::REDISMODULE_CMD_KEY_INSERT;

fn bf_scandump(call: &Call<'_>) -> Outcome {
    dump::scan(call, BloomKey::epoch)
}

fn bf_loadchunk(call: &Call<'_>) -> Outcome {
    dump::load_chunk::<BloomKey>(call)
}

fn bf_load(call: &Call<'_>) -> Outcome {
    dump::load::<BloomKey>(call, |value| value.ready().is_some())
}

fn bf_export(call: &Call<'_>) -> Outcome {
    own::export::<BloomKey>(call, BloomKey::changes, |value| Ok(value.filter()?.own()))
}

fn cf_export(call: &Call<'_>) -> Outcome {
    own::export::<CuckooKey>(call, CuckooKey::epoch, |value| Ok(value.chain()?.alone()))
}

fn cf_scandump(call: &Call<'_>) -> Outcome {
    dump::scan(call, CuckooKey::epoch)
}

fn cf_loadchunk(call: &Call<'_>) -> Outcome {
    dump::load_chunk::<CuckooKey>(call)
}

fn cf_load(call: &Call<'_>) -> Outcome {
    dump::load::<CuckooKey>(call, CuckooKey::is_ready)
}

/// A row of the table below.
macro_rules! row {
    ($name:literal, $handler:path, $arity:expr, $flags:literal, $categories:literal, $key:expr, $summary:literal) => {
        Command {
            name: $name,
            run: command!($handler),
            summary: $summary,
            flags: $flags,
            categories: $categories,
            arity: $arity,
            first_key: $key,
            further_keys: None,
        }
    };
}

/// All commands.
#[rustfmt::skip] // one row a command
pub(crate) static COMMANDS: &[Command] = &[
    row!(c"bf.reserve", bf::reserve, -4, c"write deny-oom", c"bloom write fast", ADD, c"Makes an empty filter"),
    row!(c"bf.add", bf::add, 3, c"write deny-oom", c"bloom write", ADD, c"Adds an item"),
    row!(c"bf.madd", bf::madd, -3, c"write deny-oom", c"bloom write", ADD, c"Adds items"),
    row!(c"bf.insert", bf::insert, -3, c"write deny-oom", c"bloom write", ADD, c"Adds items, to a filter made as said if there is none"),
    row!(c"bf.addat", bf::add_at, -4, c"write deny-oom", c"bloom write", ADD, c"Adds items to a window as of a time"),
    row!(c"bf.exists", bf::exists, 3, c"readonly fast", c"bloom read", READ, c"Whether an item may have been added"),
    row!(c"bf.mexists", bf::mexists, -3, c"readonly fast", c"bloom read", READ, c"The same for several items"),
    row!(c"bf.card", bf::card, 2, c"readonly fast", c"bloom read fast", READ, c"How many items changed the filter"),
    row!(c"bf.info", bf::info, -2, c"readonly fast", c"bloom read fast", READ, c"What the filter is"),
    row!(c"bf.scandump", bf_scandump, 3, c"readonly", c"bloom read", READ, c"The next chunk of a dump"),
    row!(c"bf.loadchunk", bf_loadchunk, 4, c"write deny-oom", c"bloom write", ADD, c"Takes the next chunk of a dump"),
    row!(c"bf.load", bf_load, 3, c"write deny-oom", c"bloom write", ADD, c"Takes a whole filter"),
    row!(c"bf.debug", own::debug, 2, c"readonly fast", c"bloom read", READ, c"The filters of the chain"),
    row!(c"bf.stats", own::stats, 2, c"readonly fast", c"bloom read fast", READ, c"Fill and errors of the filter"),
    row!(c"bf.test", own::test, 3, c"readonly fast", c"bloom read", READ, c"Whether an item may have been added; nil without a filter"),
    row!(c"bf.mtest", own::mtest, -3, c"readonly fast", c"bloom read", READ, c"The same for several items"),
    row!(c"bf.export", bf_export, 3, c"readonly", c"bloom read", READ, c"The next piece of a petal file"),
    Command {
        further_keys: Some((READ, -1)),
        ..row!(c"bf.merge", merge::merge, -3, c"write deny-oom", c"bloom write", ADD, c"Adds the items of other filters")
    },
    Command {
        further_keys: Some((READ, 2)),
        ..row!(c"bf.mergepart", merge::merge_part, -5, c"write deny-oom", c"bloom write", ADD, c"Adds a part of another filter")
    },
    row!(c"cf.reserve", cf::reserve, -3, c"write deny-oom", c"cuckoo write fast", ADD, c"Makes an empty filter"),
    row!(c"cf.add", cf::add, 3, c"write deny-oom", c"cuckoo write", ADD, c"Adds an item once more"),
    row!(c"cf.addnx", cf::add_new, 3, c"write deny-oom", c"cuckoo write", ADD, c"Adds an item that is not there"),
    row!(c"cf.insert", cf::insert, -4, c"write deny-oom", c"cuckoo write", ADD, c"Adds items, to a filter made as said if there is none"),
    row!(c"cf.insertnx", cf::insert_new, -4, c"write deny-oom", c"cuckoo write", ADD, c"The same for items that are not there"),
    row!(c"cf.exists", cf::exists, 3, c"readonly fast", c"cuckoo read", READ, c"Whether an item may have been added"),
    row!(c"cf.mexists", cf::mexists, -3, c"readonly fast", c"cuckoo read", READ, c"The same for several items"),
    row!(c"cf.count", cf::count, 3, c"readonly fast", c"cuckoo read", READ, c"How often an item may have been added"),
    row!(c"cf.del", cf::delete, 3, c"write fast", c"cuckoo write", DELETE, c"Undoes one addition of an item"),
    row!(c"cf.compact", cf::compact, 2, c"write", c"cuckoo write", CHANGE, c"Drops filters that are empty"),
    row!(c"cf.info", cf::info, 2, c"readonly fast", c"cuckoo read fast", READ, c"What the filter is"),
    row!(c"cf.debug", cf::debug, 2, c"readonly fast", c"cuckoo read", READ, c"The chain in one line"),
    row!(c"cf.stats", cf::stats, 2, c"readonly fast", c"cuckoo read fast", READ, c"Fill and errors of the filter"),
    row!(c"cf.scandump", cf_scandump, 3, c"readonly", c"cuckoo read", READ, c"The next chunk of a dump"),
    row!(c"cf.loadchunk", cf_loadchunk, 4, c"write deny-oom", c"cuckoo write", ADD, c"Takes the next chunk of a dump"),
    row!(c"cf.load", cf_load, 3, c"write deny-oom", c"cuckoo write", ADD, c"Takes a whole filter"),
    row!(c"cf.export", cf_export, 3, c"readonly", c"cuckoo read", READ, c"The next piece of a petal file"),
];
