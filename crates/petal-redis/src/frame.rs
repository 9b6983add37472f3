//! The chunks of a dump.
//!
//! Owns how filters become chunks, each with an iterator and a checksum, and
//! filters again. What a value says of itself besides its filters is bytes
//! here.
//!
//! ```text
//! chunk     = checksum of iterator and data (u64), data
//! data 1    = magic (8 bytes), length (u32) and bytes of the description,
//!             number of filters (u32), length (u32) and front of each
//! data n    = bytes of the payloads, one after another; the iterator is one more
//!             than the bytes up to the end of the chunk
//! ```
//!
//! All numbers are little-endian. A front is what `petal::AnyFilter::front` gives.

use petal::{AnyFilter, Assembly};
use twox_hash::XxHash3_64;

use crate::config;
use crate::engine::Outcome;

/// Bytes of a payload in a chunk: what is checked of a full quotient filter in five
/// milliseconds.
pub(crate) const PIECE: usize = 256 << 10;

const SUM_BYTES: usize = 8;
const MAGIC_BYTES: usize = 8;

/// A chunk of its data.
pub(crate) fn seal(iterator: u64, data: &[u8]) -> Vec<u8> {
    let sum = XxHash3_64::oneshot_with_seed(iterator, data);
    [&sum.to_le_bytes(), data].concat()
}

/// The data of a chunk, if it is as it was.
pub(crate) fn unseal(iterator: u64, chunk: &[u8]) -> Option<&[u8]> {
    let (sum, data) = chunk.split_first_chunk::<SUM_BYTES>()?;
    let right = u64::from_le_bytes(*sum) == XxHash3_64::oneshot_with_seed(iterator, data);
    right.then_some(data)
}

/// Whether a first chunk has this magic, intact or not.
pub(crate) fn is_header(magic: [u8; MAGIC_BYTES], chunk: &[u8]) -> bool {
    chunk
        .get(SUM_BYTES..)
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

/// The description and the fronts in a first chunk.
pub(crate) fn read_header(magic: [u8; MAGIC_BYTES], chunk: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let data = unseal(1, chunk)?;
    let mut rest = data.strip_prefix(&magic)?;
    let description = part(&mut rest)?;
    let mut fronts = Vec::new();
    for _ in 0..number(&mut rest)? {
        fronts.push(part(&mut rest)?);
    }
    rest.is_empty().then_some((description, fronts))
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
    filters: impl Iterator<Item = &'a AnyFilter>,
    iterator: u64,
) -> Outcome<Option<(u64, Vec<u8>)>> {
    let mut offset = iterator.saturating_sub(1);
    for filter in filters {
        let len = filter.payload_len()?;
        if offset < len {
            return Ok(Some(next_chunk(
                iterator,
                &filter.payload_piece(offset, PIECE)?,
            )));
        }
        offset -= len;
    }
    Ok(None)
}

/// The chunk of a piece, and its iterator.
fn next_chunk(iterator: u64, piece: &[u8]) -> (u64, Vec<u8>) {
    let next = iterator.saturating_add(piece.len() as u64);
    (next, seal(next, piece))
}

/// Filters that come in chunks.
#[derive(Debug)]
pub(crate) struct Parts {
    parts: Vec<Assembly>,
    come: u64,
}

impl Parts {
    /// Begins with fronts. The payloads may take `most` bytes together.
    pub(crate) fn new(fronts: &[&[u8]], most: u64) -> petal::Result<Self> {
        let mut left = most;
        let mut parts = Vec::new();
        for front in fronts {
            let part = Assembly::new(front, left)?;
            left -= part.payload_len();
            parts.push(part);
        }
        Ok(Self { parts, come: 0 })
    }

    pub(crate) fn fronts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.parts.iter().map(Assembly::front)
    }

    /// Takes the next chunk: nothing of one that is refused.
    pub(crate) fn push(&mut self, iterator: u64, chunk: &[u8]) -> Outcome {
        let Some(data) = unseal(iterator, chunk) else {
            return Err(
                "ERR received bad data: a chunk is damaged, or its iterator is another".into(),
            );
        };
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
