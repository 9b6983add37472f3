//! Files compressed by gzip.
//!
//! Owns decompression in bounded memory: a first pass counts, the second one
//! fills a buffer of that size.

use std::io::{self, Read};

use flate2::bufread::MultiGzDecoder;

use crate::bits::reserve;
use crate::error::{Error, Result};

/// Bytes of the head that [`decode`] shows.
const HEAD: usize = 64;

pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// All members, decompressed. `longest` sees the first bytes and says how
/// long the whole may be, if it can tell; else the memory limits it.
pub(crate) fn decode(bytes: &[u8], longest: impl Fn(&[u8]) -> Option<u64>) -> Result<Vec<u8>> {
    let failed = |error: io::Error| Error::Compression(error.to_string());
    let mut head = Vec::with_capacity(HEAD);
    MultiGzDecoder::new(bytes)
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(failed)?;
    let limit = longest(&head).unwrap_or_else(|| petal::memory::available().bytes);
    let mut counted = MultiGzDecoder::new(bytes).take(limit.saturating_add(1));
    let len = io::copy(&mut counted, &mut io::sink()).map_err(failed)?;
    if len > limit {
        return Err(Error::Compression(format!(
            "they go on past the {limit} bytes that the header or the memory allows"
        )));
    }
    let mut decoded = reserve(len)?;
    MultiGzDecoder::new(bytes)
        .take(len)
        .read_to_end(&mut decoded)
        .map_err(failed)?;
    Ok(decoded)
}
