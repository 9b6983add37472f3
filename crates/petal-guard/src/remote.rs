//! A filter in Redis, of whichever module has the `BF.*` commands.
//!
//! Owns its names and the scripts that add to it, replace it and give it up. Five
//! rules make "absent" safe on every server:
//!
//! * The filter in use and the one that is being filled have fixed names, so that
//!   a writer needs to know nothing to add to both, in one script. What cannot be
//!   added to, the script removes.
//! * Nothing is ever added with a command that could create a filter. So under its
//!   name there is the whole filter or none.
//! * Each question asks for a *sentinel* beside the item, in the same command. A
//!   filter that is gone has no sentinel, and answers nothing.
//! * Filters have generations. A message says that another one is in use; it arrives
//!   before any answer of that one, and an answer is taken only if none has come.
//! * The server that holds it is the one that it was filled on, without a restart
//!   or a failover between: `link` compares that for each connection.
//!
//! Whatever of these keys is evicted, the guard fails open.

use std::sync::LazyLock;

use redis::aio::ConnectionLike;
use redis::{RedisResult, Script, Value, cmd};

use crate::item::Item;

/// Items of one command.
pub(crate) const BATCH: usize = 1000;

/// What the keys of one guard are called in Redis.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    prefix: String,
    /// A hash: the generations of the filter in use, `live`, and of the one
    /// that is being filled, `shadow`; the `server` that `live` was filled on; the
    /// `position` up to which the feed was applied here; the `epoch` of the shared cache.
    pub(crate) state: String,
    /// The filter in use.
    pub(crate) filter: String,
    /// The filter that is being filled.
    pub(crate) shadow: String,
    /// Where guards tell each other of changes.
    pub(crate) channel: String,
}

impl Names {
    pub(crate) fn new(guard: &str) -> Self {
        Self {
            prefix: guard.to_owned(),
            // In a cluster the filters share the slot of the state.
            state: format!("petal:{{{guard}}}:state"),
            filter: format!("petal:{{{guard}}}:filter"),
            shadow: format!("petal:{{{guard}}}:filter:shadow"),
            channel: format!("petal:{{{guard}}}:changes"),
        }
    }

    pub(crate) fn value(&self, item: &Item) -> String {
        format!("petal:{}:value:{}", self.prefix, crate::item::hex(item))
    }
}

/// What the state says.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) live: Option<String>,
    /// The server on which `live` was filled.
    pub(crate) server: Option<String>,
    pub(crate) position: Option<Vec<u8>>,
    pub(crate) epoch: Option<String>,
}

pub(crate) async fn state<C: ConnectionLike>(
    connection: &mut C,
    names: &Names,
) -> RedisResult<State> {
    let mut get = cmd("HMGET");
    get.arg(&names.state)
        .arg(&["live", "server", "position", "epoch"]);
    let (live, server, position, epoch) = get.query_async(connection).await?;
    Ok(State {
        live,
        server,
        position,
        epoch,
    })
}

/// Whether each item may be there; `None` if there is no such filter.
pub(crate) async fn ask<C: ConnectionLike>(
    connection: &mut C,
    filter: &str,
    sentinel: &Item,
    items: &[Item],
) -> RedisResult<Option<Vec<bool>>> {
    let mut exists = cmd("BF.MEXISTS");
    exists.arg(filter).arg(&sentinel[..]);
    for item in items {
        exists.arg(&item[..]);
    }
    let mut answers: Vec<bool> = exists.query_async(connection).await?;
    if answers.len() != items.len() + 1 || !answers[0] {
        return Ok(None);
    }
    answers.remove(0);
    Ok(Some(answers))
}

// KEYS: the filters. ARGV: items.
static ADD: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"for _, name in ipairs(KEYS) do
  local reply = redis.pcall('BF.INSERT', name, 'NOCREATE', 'ITEMS', unpack(ARGV))
  local failed = reply.err
  for _, one in ipairs(reply) do
    if type(one) == 'table' and one.err then failed = one.err end
  end
  if failed then redis.call('UNLINK', name) end
end
return redis.status_reply('OK')",
    )
});

/// Adds to the filter in use and to the one that is being filled, as far as
/// there are any. One that takes no more is given up.
pub(crate) async fn add<C: ConnectionLike>(
    connection: &mut C,
    names: &Names,
    items: &[Item],
) -> RedisResult<()> {
    for items in items.chunks(BATCH) {
        let mut call = ADD.key(&names.filter);
        call.key(&names.shadow);
        for item in items {
            call.arg(&item[..]);
        }
        call.invoke_async::<Value>(connection).await?;
    }
    Ok(())
}

// KEYS: the state, the shadow. ARGV: its generation, its error, its items.
static BEGIN: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"redis.call('UNLINK', KEYS[2])
local reply = redis.pcall('BF.RESERVE', KEYS[2], ARGV[2], ARGV[3])
if reply.err then return reply end
redis.call('HSET', KEYS[1], 'shadow', ARGV[1])
return redis.status_reply('OK')",
    )
});

/// Makes an empty filter, of a new generation; from now on writers add to
/// it, too.
pub(crate) async fn begin<C: ConnectionLike>(
    connection: &mut C,
    names: &Names,
    generation: &str,
    items: u64,
    error: f64,
) -> RedisResult<()> {
    let mut call = BEGIN.key(&names.state);
    call.key(&names.shadow)
        .arg(generation)
        .arg(error)
        .arg(items);
    call.invoke_async::<Value>(connection).await.map(drop)
}

/// Adds to the filter that is being filled.
pub(crate) async fn fill<C: ConnectionLike>(
    connection: &mut C,
    names: &Names,
    items: &[Item],
) -> RedisResult<()> {
    let mut insert = cmd("BF.INSERT");
    insert.arg(&names.shadow).arg("NOCREATE").arg("ITEMS");
    for item in items {
        insert.arg(&item[..]);
    }
    // An item that was refused is an error inside of the array.
    insert.query_async::<Vec<bool>>(connection).await.map(drop)
}

// KEYS: the state, the filter, the shadow. ARGV: the generation, the server, the
// channel, the sentinel, and the position if there is a feed.
static SWAP: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"if redis.call('HGET', KEYS[1], 'shadow') ~= ARGV[1] then return 0 end
local reply = redis.pcall('BF.INSERT', KEYS[3], 'NOCREATE', 'ITEMS', ARGV[4])
if reply.err or type(reply[1]) == 'table' then return 0 end
redis.call('UNLINK', KEYS[2])
redis.call('RENAME', KEYS[3], KEYS[2])
redis.call('HDEL', KEYS[1], 'shadow', 'position')
redis.call('HSET', KEYS[1], 'live', ARGV[1], 'server', ARGV[2])
if ARGV[5] then redis.call('HSET', KEYS[1], 'position', ARGV[5]) end
redis.call('PUBLISH', ARGV[3], 's' .. ARGV[1])
return 1",
    )
});

/// The filter that was being filled becomes the one in use, in one step.
/// False if it is not the one that is being filled any more.
pub(crate) async fn swap<C: ConnectionLike>(
    connection: &mut C,
    names: &Names,
    generation: &str,
    server: &str,
    sentinel: &Item,
    position: Option<&[u8]>,
) -> RedisResult<bool> {
    let mut call = SWAP.key(&names.state);
    call.key(&names.filter).key(&names.shadow);
    call.arg(generation)
        .arg(server)
        .arg(&names.channel)
        .arg(&sentinel[..]);
    if let Some(position) = position {
        call.arg(position);
    }
    call.invoke_async(connection).await
}

// KEYS: the state. ARGV: the server's name before and now.
static RENAME: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"if redis.call('HGET', KEYS[1], 'server') == ARGV[1] then
  redis.call('HSET', KEYS[1], 'server', ARGV[2])
end
return redis.status_reply('OK')",
    )
});

/// The server that holds the filter in use is called otherwise now.
pub(crate) async fn rename<C: ConnectionLike>(
    connection: &mut C,
    names: &Names,
    before: &str,
    now: &str,
) -> RedisResult<()> {
    RENAME
        .key(&names.state)
        .arg(before)
        .arg(now)
        .invoke_async::<Value>(connection)
        .await
        .map(drop)
}

// KEYS: the state, the filters. ARGV: the channel, the position, '1' whether or
// not there is a position, the epoch: drawn and not counted, since a counter that was
// evicted would begin again and make old records valid.
static RETIRE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"if ARGV[3] ~= '1' and redis.call('HEXISTS', KEYS[1], 'position') == 1 then return 0 end
redis.call('UNLINK', KEYS[2], KEYS[3])
redis.call('HDEL', KEYS[1], 'live', 'shadow')
redis.call('HSET', KEYS[1], 'position', ARGV[2])
redis.call('HSET', KEYS[1], 'epoch', ARGV[4])
redis.call('PUBLISH', ARGV[1], 'f')
return 1",
    )
});

/// Gives up the filter in use, the one that is being filled, and every value of
/// the shared cache. The feed tells what comes behind the position. False, and
/// nothing is done, if another guard has begun a feed there, unless `even_so`.
pub(crate) async fn retire<C: ConnectionLike>(
    connection: &mut C,
    names: &Names,
    position: &[u8],
    even_so: bool,
    epoch: u64,
) -> RedisResult<bool> {
    let mut call = RETIRE.key(&names.state);
    call.key(&names.filter)
        .key(&names.shadow)
        .arg(&names.channel)
        .arg(position)
        .arg(u8::from(even_so))
        .arg(format!("{epoch:016x}"));
    call.invoke_async(connection).await
}

/// Remembers up to where the feed was applied.
pub(crate) async fn set_position<C: ConnectionLike>(
    connection: &mut C,
    names: &Names,
    position: &[u8],
) -> RedisResult<()> {
    let mut set = cmd("HSET");
    set.arg(&names.state).arg("position").arg(position);
    set.query_async::<Value>(connection).await.map(drop)
}

/// Tells all guards that a key has changed.
pub(crate) async fn publish<C: ConnectionLike>(
    connection: &mut C,
    names: &Names,
    key: &[u8],
) -> RedisResult<()> {
    let message = [b"k", key].concat();
    let mut publish = cmd("PUBLISH");
    publish.arg(&names.channel).arg(message);
    publish.query_async::<Value>(connection).await.map(drop)
}

/// What guards tell each other.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    Changed(&'a [u8]),
    Filter(&'a str),
    Flush,
}

pub(crate) fn message(bytes: &[u8]) -> Option<Message<'_>> {
    let (kind, rest) = bytes.split_first()?;
    match kind {
        b'k' => Some(Message::Changed(rest)),
        b's' => std::str::from_utf8(rest).ok().map(Message::Filter),
        b'f' => Some(Message::Flush),
        _ => None,
    }
}
