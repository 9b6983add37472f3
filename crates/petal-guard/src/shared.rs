//! The cache in Redis.
//!
//! Owns the layout of its records and the scripts that change them. A record is
//!
//! ```text
//! | tag, 8 bytes | token, 8 bytes | kind, 1 byte | value |
//! ```
//!
//! The tag is that of the server's process and data (`link`): what a server has
//! from before a restart has another one and is as good as missing, since
//! invalidations may be lost with it. The token is drawn for each record. Whoever
//! misses leaves a *lease*, and stores what it loaded only if the lease is still
//! there: a write that came between has replaced or deleted it. (Leases: Nishtala
//! and others, "Scaling Memcache at Facebook", 2013.)

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use redis::aio::ConnectionLike;
use redis::{RedisResult, Script, Value, cmd};

/// Tag and token.
pub(crate) type Header = [u8; 16];

const HEADER: usize = 16;
const LEASE: u8 = 0;
const WRITING: u8 = 1;
const ABSENT: u8 = 2;
const VALUE: u8 = 3;

/// What a key has in the shared cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// A value, and how long it stays.
    Value(Arc<[u8]>, Header, Duration),
    /// Storage has no such key, and how long that stays.
    Absent(Header, Duration),
    /// Nothing, and the caller is to load it: what it stores names this.
    Leased(Header),
    /// Nothing, and another instance loads it.
    Busy,
    /// The key is being written: what is read now may be old or new.
    Writing,
}

// KEYS: the record. ARGV: the tag, a lease, its milliseconds.
static OPEN: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"local record = redis.call('GET', KEYS[1])
if record and #record >= 17 and string.sub(record, 1, 8) == ARGV[1] then
  return {record, redis.call('PTTL', KEYS[1])}
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return false",
    )
});

// KEYS: the record. ARGV: the header that must still be there, the new record
// ('' deletes it), its milliseconds.
static REPLACE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"if redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1",
    )
});

fn header(tag: [u8; 8], token: u64) -> Header {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&tag);
    header[8..].copy_from_slice(&token.to_le_bytes());
    header
}

fn record(header: &Header, kind: u8, value: &[u8]) -> Vec<u8> {
    [&header[..], &[kind], value].concat()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(1, 1 << 45)
}

/// Reads a key; where there is nothing, leaves a lease for `lease`.
pub(crate) async fn open<C: ConnectionLike>(
    connection: &mut C,
    key: &str,
    tag: [u8; 8],
    token: u64,
    lease: Duration,
) -> RedisResult<Found> {
    let mine = header(tag, token);
    let found: Option<(Vec<u8>, i64)> = OPEN
        .key(key)
        .arg(&tag[..])
        .arg(record(&mine, LEASE, &[]))
        .arg(millis(lease))
        .invoke_async(connection)
        .await?;
    let Some((record, left)) = found else {
        return Ok(Found::Leased(mine));
    };
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    Ok(decode(&record, left).unwrap_or(Found::Busy))
}

fn decode(record: &[u8], left: Duration) -> Option<Found> {
    let header: Header = record.get(..HEADER)?.try_into().ok()?;
    let value = record.get(HEADER + 1..)?;
    Some(match record[HEADER] {
        WRITING => Found::Writing,
        ABSENT => Found::Absent(header, left),
        VALUE => Found::Value(value.into(), header, left),
        // A lease, or what a later version writes: not to be touched.
        _ => Found::Busy,
    })
}

/// Stores a value, or that there is none, if what `expected` names is still
/// there. The new header, if so.
pub(crate) async fn store<C: ConnectionLike>(
    connection: &mut C,
    key: &str,
    expected: &Header,
    token: u64,
    value: Option<&[u8]>,
    stays: Duration,
) -> RedisResult<Option<Header>> {
    let mut mine = *expected;
    mine[8..].copy_from_slice(&token.to_le_bytes());
    let record = match value {
        Some(value) => record(&mine, VALUE, value),
        None => record(&mine, ABSENT, &[]),
    };
    let stored: bool = REPLACE
        .key(key)
        .arg(&expected[..])
        .arg(record)
        .arg(millis(stays))
        .invoke_async(connection)
        .await?;
    Ok(stored.then_some(mine))
}

/// Deletes what `expected` names, if it is still there.
pub(crate) async fn release<C: ConnectionLike>(
    connection: &mut C,
    key: &str,
    expected: &Header,
) -> RedisResult<()> {
    REPLACE
        .key(key)
        .arg(&expected[..])
        .arg("")
        .arg(1)
        .invoke_async(connection)
        .await
}

/// Says that the key is being written: nobody stores what they read.
pub(crate) async fn announce<C: ConnectionLike>(
    connection: &mut C,
    key: &str,
    tag: [u8; 8],
    token: u64,
    stays: Duration,
) -> RedisResult<()> {
    let marker = record(&header(tag, token), WRITING, &[]);
    let mut set = cmd("SET");
    set.arg(key).arg(marker).arg("PX").arg(millis(stays));
    set.query_async::<Value>(connection).await.map(drop)
}

/// Deletes whatever is there: values, leases, announcements.
pub(crate) async fn delete<C: ConnectionLike>(connection: &mut C, key: &str) -> RedisResult<()> {
    cmd("DEL")
        .arg(key)
        .query_async::<Value>(connection)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_and_an_empty_value_are_told_apart() {
        let header = header([1; 8], 2);
        let left = Duration::from_secs(3);
        assert_eq!(
            decode(&record(&header, VALUE, &[]), left),
            Some(Found::Value([].into(), header, left))
        );
        assert_eq!(
            decode(&record(&header, ABSENT, &[]), left),
            Some(Found::Absent(header, left))
        );
        assert_eq!(
            decode(&record(&header, WRITING, &[]), left),
            Some(Found::Writing)
        );
        assert_eq!(
            decode(&record(&header, LEASE, &[]), left),
            Some(Found::Busy)
        );
        assert_eq!(decode(&record(&header, 200, b"x"), left), Some(Found::Busy));
        assert_eq!(decode(&header, left), None);
        assert_eq!(decode(b"", left), None);
    }
}
