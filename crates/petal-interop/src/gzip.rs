//! Files compressed by gzip.
//!
//! Owns decompression in bounded memory: a first pass counts and keeps both
//! ends, the second one fills a buffer of that size.

use std::io::{self, Read};

use flate2::bufread::MultiGzDecoder;

use crate::bits::reserve;
use crate::error::{Error, Result};
use crate::extent::{END, Ends};

pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// All members, decompressed. `longest` sees the first bytes and says how long
/// the whole may be at most; `check` sees both ends and the length before
/// anything of that length is allocated.
pub(crate) fn decode(
    bytes: &[u8],
    longest: impl Fn(&[u8]) -> Result<u64>,
    check: impl Fn(Ends<'_>) -> Result<()>,
) -> Result<Vec<u8>> {
    let failed = |error: io::Error| {
        Error::Compression(match error.kind() {
            io::ErrorKind::UnexpectedEof => "they end early".to_owned(),
            _ => "they are no gzip data from some place on".to_owned(),
        })
    };
    let mut unpacked = MultiGzDecoder::new(bytes);
    let mut head = Vec::with_capacity(END);
    let by_ref = &mut unpacked;
    by_ref
        .take(END as u64)
        .read_to_end(&mut head)
        .map_err(failed)?;
    let limit = longest(&head)?;
    let mut len = head.len() as u64;
    let mut tail = head.clone();
    let mut buffer = vec![0; 4 * END];
    loop {
        if len > limit {
            return Err(Error::Compression(format!(
                "they go on past the {limit} bytes that the header or the memory allows"
            )));
        }
        let read = match unpacked.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        len += read as u64;
        tail.extend_from_slice(&buffer[..read]);
        tail.drain(..tail.len().saturating_sub(END));
    }
    check(Ends {
        head: &head,
        tail: &tail,
        len,
    })?;
    let mut decoded = reserve(len)?;
    MultiGzDecoder::new(bytes)
        .take(len)
        .read_to_end(&mut decoded)
        .map_err(failed)?;
    Ok(decoded)
}
