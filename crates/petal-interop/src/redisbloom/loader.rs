//! A chain that comes pair by pair, as `BF.LOADCHUNK` gets it.

use super::{FORMAT, RedisBloom, piece_of};
use crate::bits::{BitArray, Order, reserve};
use crate::error::{Error, Result};

/// Takes the pairs of iterator and bytes of a dump in their order.
#[derive(Debug)]
pub struct Loader {
    header: Vec<u8>,
    chain: RedisBloom,
    /// Bytes of each link.
    sizes: Vec<u64>,
    /// The link that is being filled, and what of it came.
    link: usize,
    filled: Vec<u8>,
    /// Bytes of all bit arrays that came.
    come: u64,
    longest: u64,
}

impl Loader {
    /// Begins with the bytes of the first pair, whose iterator is 1. Takes no
    /// memory for the bit arrays yet.
    ///
    /// # Errors
    /// If they are no header.
    pub fn new(header: &[u8]) -> Result<Self> {
        Self::of_file(header, u64::MAX)
    }

    /// The same where `left` bytes follow in a file.
    pub(super) fn of_file(header: &[u8], left: u64) -> Result<Self> {
        let (chain, sizes) = RedisBloom::decode_header(header, left)?;
        Ok(Self {
            header: header.to_vec(),
            chain,
            sizes,
            link: 0,
            filled: Vec::new(),
            come: 0,
            longest: 0,
        })
    }

    /// Bytes of all bit arrays.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().copied().fold(0, u64::saturating_add)
    }

    /// Bytes of them that came.
    #[must_use]
    pub const fn come(&self) -> u64 {
        self.come
    }

    /// Takes the next pair.
    ///
    /// # Errors
    /// If the iterator is not one more than the bytes of the bit arrays that
    /// came with it, or there are none, or more than belong to a link, or the memory cannot
    /// be had. Nothing is taken then.
    pub fn push(&mut self, iterator: u64, piece: &[u8]) -> Result<()> {
        let len = piece.len() as u64;
        let next = self.come.saturating_add(len);
        if len == 0 || iterator != next.saturating_add(1) {
            let expected = format!("{}, and bytes with it", next.saturating_add(1));
            return Err(Error::field(FORMAT, "iterator", iterator, expected));
        }
        let Some(&size) = self.sizes.get(self.link) else {
            let (got, expected) = ("too many", "as in the header");
            return Err(Error::field(FORMAT, "chunks", got, expected));
        };
        if self.filled.len() as u64 + len > size {
            let expected = "no more than is left of its link";
            return Err(Error::field(FORMAT, "length of a chunk", len, expected));
        }
        if self.filled.is_empty() {
            self.filled = reserve(size)?;
        }
        self.filled.extend_from_slice(piece);
        self.come = next;
        self.longest = self.longest.max(len);
        if self.filled.len() as u64 == size
            && let Some(link) = self.chain.links.get_mut(self.link)
        {
            let (end, bytes) = (self.filled.len(), std::mem::take(&mut self.filled));
            link.bits = BitArray::of_file(bytes, 0, end, Order::Lsb);
            self.link += 1;
        }
        Ok(())
    }

    /// Whether all of the chain came.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.link == self.sizes.len()
    }

    /// The bytes it began with.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Bytes that came, as [`RedisBloom::piece`] gives those of a chain.
    #[must_use]
    pub fn piece(&self, offset: u64, most: usize) -> &[u8] {
        let whole = &self.chain.links[..self.link];
        let before: u64 = self.sizes[..self.link].iter().sum();
        if offset < before {
            return piece_of(whole, offset, most);
        }
        let start = usize::try_from(offset - before).unwrap_or(usize::MAX);
        let start = start.min(self.filled.len());
        &self.filled[start..self.filled.len().min(start.saturating_add(most))]
    }

    /// The chain, when all of it came.
    ///
    /// # Errors
    /// If some is missing.
    pub fn finish(self) -> Result<RedisBloom> {
        if !self.is_complete() {
            let (got, expected) = ("too few", "as in the header");
            return Err(Error::field(FORMAT, "chunks", got, expected));
        }
        Ok(self.chain.chunked(self.longest))
    }
}
