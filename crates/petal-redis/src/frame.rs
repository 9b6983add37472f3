//! The chunks of a dump.
//!
//! Owns how filters become chunks, each with an iterator and a checksum, and
//! filters again. What a value says of itself besides its filters is bytes
//! here.
//!
//! ```text
//! chunk     = checksum of iterator and the rest (u64), filter (u64), data
//! data 1    = magic (8 bytes), length (u32) and bytes of the description,
//!             number of filters (u32), length (u32) and front of each
//! data n    = bytes of the payloads, one after another; the iterator is one more
//!             than the bytes up to the end of the chunk
//! ```
//!
//! All numbers are little-endian. A front is what `petal::AnyFilter::front` gives.
//! `filter` is the same in all chunks of a dump: what tells filters apart that are not copies
//! of one another, so that chunks of two of them are not put together.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use petal::{AnyFilter, Assembly, Contains as _, KeyHasher};
use twox_hash::XxHash3_64;

use crate::config;
use crate::engine::{self, Outcome};

/// Bytes of a payload in a chunk: what is checked of a full quotient filter in five
/// milliseconds.
pub(crate) const PIECE: usize = 256 << 10;

const SUM_BYTES: usize = 8;
const IDENTITY_BYTES: usize = 8;
const MAGIC_BYTES: usize = 8;

/// A number that no other filter of this server, and no other state of one, had lately: a
/// dump that began when it was another no longer fits together.
pub(crate) fn new_epoch() -> u64 {
    static LAST: LazyLock<AtomicU64> = LazyLock::new(|| AtomicU64::new(engine::random()));
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// What tells these filters from others: how they hash, kinds and sizes. Not what is in
/// them, so that it stays while items are added.
pub(crate) fn identity_of<'a>(filters: impl Iterator<Item = &'a AnyFilter>) -> Outcome<u64> {
    let mut said = Vec::new();
    for filter in filters {
        let (keyed, number) = match &filter.about().identity().hasher {
            KeyHasher::Portable { seed } => (0u8, *seed),
            KeyHasher::Keyed { secret } => (1, secret.check_value()),
        };
        said.push(keyed);
        said.extend(number.to_le_bytes());
        said.extend(filter.kind().name().bytes());
        said.extend(filter.payload_len()?.to_le_bytes());
    }
    Ok(XxHash3_64::oneshot(&said))
}

/// A chunk of its data.
pub(crate) fn seal(iterator: u64, identity: u64, data: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(SUM_BYTES + IDENTITY_BYTES + data.len());
    chunk.extend([0; SUM_BYTES]);
    chunk.extend(identity.to_le_bytes());
    chunk.extend(data);
    let sum = XxHash3_64::oneshot_with_seed(iterator, &chunk[SUM_BYTES..]);
    chunk[..SUM_BYTES].copy_from_slice(&sum.to_le_bytes());
    chunk
}

/// The filter's identity and the data of a chunk, if it is as it was.
pub(crate) fn unseal(iterator: u64, chunk: &[u8]) -> Option<(u64, &[u8])> {
    let (sum, rest) = chunk.split_first_chunk::<SUM_BYTES>()?;
    let right = u64::from_le_bytes(*sum) == XxHash3_64::oneshot_with_seed(iterator, rest);
    let (identity, data) = rest.split_first_chunk::<IDENTITY_BYTES>()?;
    right.then_some((u64::from_le_bytes(*identity), data))
}

/// Whether a first chunk has this magic, intact or not.
pub(crate) fn is_header(magic: [u8; MAGIC_BYTES], chunk: &[u8]) -> bool {
    chunk
        .get(SUM_BYTES + IDENTITY_BYTES..)
        .is_some_and(|data| data.starts_with(&magic))
}

/// The data of the first chunk.
pub(crate) fn header<'a>(
    magic: [u8; MAGIC_BYTES],
    description: &[u8],
    fronts: impl ExactSizeIterator<Item = &'a [u8]>,
) -> Vec<u8> {
    let len = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
    let mut data = magic.to_vec();
    data.extend(len(description.len()));
    data.extend(description);
    data.extend(len(fronts.len()));
    for front in fronts {
        data.extend(len(front.len()));
        data.extend(front);
    }
    data
}

/// What is in a first chunk.
pub(crate) struct Header<'a> {
    pub(crate) identity: u64,
    pub(crate) description: &'a [u8],
    pub(crate) fronts: Vec<&'a [u8]>,
}

/// Reads a first chunk.
pub(crate) fn read_header(magic: [u8; MAGIC_BYTES], chunk: &[u8]) -> Option<Header<'_>> {
    let (identity, data) = unseal(1, chunk)?;
    let mut rest = data.strip_prefix(&magic)?;
    let description = part(&mut rest)?;
    let mut fronts = Vec::new();
    for _ in 0..number(&mut rest)? {
        fronts.push(part(&mut rest)?);
    }
    rest.is_empty().then_some(Header {
        identity,
        description,
        fronts,
    })
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, behind) = rest.split_first_chunk::<4>()?;
    *rest = behind;
    Some(u32::from_le_bytes(*number))
}

fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(number(rest)?).ok()?;
    let (part, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(part)
}

/// The chunk of filters that comes after an iterator which is not 0.
pub(crate) fn chunk_after<'a>(
    filters: impl Iterator<Item = &'a AnyFilter> + Clone,
    iterator: u64,
) -> Outcome<Option<(u64, Vec<u8>)>> {
    let identity = identity_of(filters.clone())?;
    let mut offset = iterator.saturating_sub(1);
    for filter in filters {
        let len = filter.payload_len()?;
        if offset < len {
            return Ok(Some(next_chunk(
                iterator,
                identity,
                &filter.payload_piece(offset, PIECE)?,
            )));
        }
        offset -= len;
    }
    Ok(None)
}

/// The chunk of a piece, and its iterator.
fn next_chunk(iterator: u64, identity: u64, piece: &[u8]) -> (u64, Vec<u8>) {
    let next = iterator.saturating_add(piece.len() as u64);
    (next, seal(next, identity, piece))
}

/// Filters that come in chunks.
#[derive(Debug)]
pub(crate) struct Parts {
    parts: Vec<Assembly>,
    identity: u64,
    come: u64,
}

impl Parts {
    /// Begins with a header. The payloads may take `most` bytes together.
    pub(crate) fn new(header: &Header<'_>, most: u64) -> petal::Result<Self> {
        let mut left = most;
        let mut parts = Vec::new();
        for front in &header.fronts {
            let part = Assembly::new(front, left)?;
            left -= part.payload_len();
            parts.push(part);
        }
        Ok(Self {
            parts,
            identity: header.identity,
            come: 0,
        })
    }

    /// What all chunks have in common.
    pub(crate) const fn identity(&self) -> u64 {
        self.identity
    }

    pub(crate) fn fronts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.parts.iter().map(Assembly::front)
    }

    /// Takes the next chunk: nothing of one that is refused.
    pub(crate) fn push(&mut self, iterator: u64, chunk: &[u8]) -> Outcome {
        let Some((identity, data)) = unseal(iterator, chunk) else {
            return Err(
                "ERR received bad data: a chunk is damaged, or its iterator is another".into(),
            );
        };
        if identity != self.identity {
            return Err(
                "ERR received bad data: the chunk is of another filter than the first one: \
                 dump the filter again from 0 on, into another key"
                    .into(),
            );
        }
        let next = self.come.saturating_add(data.len() as u64);
        if data.is_empty() || iterator != next.saturating_add(1) {
            return Err(format!(
                "ERR received bad data: the iterator is {iterator}, expected {}",
                next.saturating_add(1)
            )
            .into());
        }
        let part = self
            .parts
            .iter_mut()
            .find(|part| part.come() < part.payload_len());
        part.ok_or("ERR received bad data: all chunks came already")?
            .push(data)?;
        self.come = next;
        Ok(())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.parts
            .iter()
            .all(|part| part.come() == part.payload_len())
    }

    /// Bytes of the payloads, which are in memory from the start.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(Assembly::payload_len).sum()
    }

    /// The chunk after an iterator, of what came.
    pub(crate) fn chunk_after(&self, iterator: u64) -> Outcome<Option<(u64, Vec<u8>)>> {
        let mut offset = iterator.saturating_sub(1);
        for part in &self.parts {
            if offset < part.come() {
                return Ok(Some(next_chunk(
                    iterator,
                    self.identity,
                    &part.payload_piece(offset, PIECE)?,
                )));
            }
            if part.come() < part.payload_len() {
                return Ok(None);
            }
            offset -= part.come();
        }
        Ok(None)
    }

    /// The filters, when all chunks came.
    pub(crate) fn finish(self) -> petal::Result<Vec<AnyFilter>> {
        let secret = config::secret();
        self.parts
            .into_iter()
            .map(|part| part.finish(secret))
            .collect()
    }
}
