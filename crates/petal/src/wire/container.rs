//! The file that a packed filter or a delta travels in.
//!
//! Owns its layout and the checks of it: magic, version, length and checksum.
//! The coded words in it are opaque here.

use twox_hash::XxHash3_64;

use crate::error::{Error, FormatError, Result};
use crate::format::{Cursor, FIELDS, Parts, WIRE_MAGIC, field};

/// The version that is written, and the only one that is read.
const VERSION: u16 = 1;

/// Bytes before the metadata, the base of a delta aside.
const FRONT: usize = 32 + FIELDS;

/// Bytes of the checksum at the end.
const SUM: usize = 8;

/// The place of the length among the bytes.
const LENGTH_AT: usize = 16;

/// What a delta leads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) generation: u64,
    /// The sum of its checksum table.
    pub(super) table_sum: u64,
}

/// What stands before the coded words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lead {
    /// Of the filter that comes out.
    pub(super) parts: Parts,
    /// Only for a delta.
    pub(super) base: Option<Base>,
}

impl Lead {
    /// The bytes before the coded words; [`seal`] completes them.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FRONT + self.parts.metadata.len());
        bytes.extend(WIRE_MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        let content: u16 = if self.base.is_some() { 2 } else { 1 };
        bytes.extend(content.to_le_bytes());
        let metadata = u32::try_from(self.parts.metadata.len()).unwrap_or(u32::MAX); // 64 KiB
        bytes.extend(metadata.to_le_bytes());
        bytes.extend([0; 8]); // the length
        bytes.extend(self.parts.fields);
        bytes.extend(self.parts.table_sum.to_le_bytes());
        if let Some(base) = self.base {
            bytes.extend(base.generation.to_le_bytes());
            bytes.extend(base.table_sum.to_le_bytes());
        }
        bytes.extend(&self.parts.metadata);
        bytes
    }

    /// Reads a whole file and checks all but the coded words, which are given
    /// back.
    pub(super) fn decode(bytes: &[u8]) -> Result<(Self, Cursor<'_>)> {
        let start = &bytes[..bytes.len().min(WIRE_MAGIC.len())];
        if !WIRE_MAGIC.starts_with(start) {
            return Err(FormatError::NotWire {
                got: start.to_vec(),
            }
            .into());
        }
        let too_short = || FormatError::Length {
            expected: (FRONT + SUM) as u64,
            got: bytes.len() as u64,
        };
        let mut cursor = Cursor::new("packed filter", bytes);
        // Before the length and the sum: another version may have them elsewhere.
        let version = cursor
            .bytes(WIRE_MAGIC.len())
            .and_then(|_| cursor.u16())
            .map_err(|_| too_short())?;
        if version != VERSION {
            return Err(FormatError::Version {
                got: version,
                newest: VERSION,
            }
            .into());
        }
        if bytes.len() < FRONT + SUM {
            return Err(too_short().into());
        }
        let content = cursor.u16()?;
        let metadata = cursor.u32()?;
        let length = cursor.u64()?;
        let (covered, sum) = bytes.split_at(bytes.len() - SUM);
        if length != bytes.len() as u64 {
            return Err(FormatError::Length {
                expected: length,
                got: bytes.len() as u64,
            }
            .into());
        }
        if XxHash3_64::oneshot(covered).to_le_bytes() != sum {
            return Err(FormatError::Checksum {
                part: "packed filter",
                offset: 0,
            }
            .into());
        }
        let mut cursor = Cursor::new("packed filter", &covered[LENGTH_AT + 8..]);
        let mut fields = [0; FIELDS];
        fields.copy_from_slice(cursor.bytes(FIELDS)?);
        let table_sum = cursor.u64()?;
        let base = match content {
            1 => None,
            2 => Some(Base {
                generation: cursor.u64()?,
                table_sum: cursor.u64()?,
            }),
            _ => {
                return Err(FormatError::Unknown {
                    what: "content",
                    got: content.into(),
                }
                .into());
            }
        };
        let metadata = usize::try_from(metadata).unwrap_or(usize::MAX);
        if metadata > 64 << 10 {
            return Err(field("length of the metadata", metadata, "at most 65536").into());
        }
        let metadata = cursor.bytes(metadata)?.to_vec();
        let parts = Parts {
            fields,
            metadata,
            table_sum,
        };
        Ok((Self { parts, base }, cursor))
    }
}

/// Completes a file: its length, and the sum over all of it.
pub(super) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = (bytes.len() + SUM) as u64;
    bytes[LENGTH_AT..][..8].copy_from_slice(&length.to_le_bytes());
    let sum = XxHash3_64::oneshot(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Refuses bytes behind the coded words.
pub(super) fn at_end(rest: &Cursor<'_>) -> Result<()> {
    match rest.left() {
        0 => Ok(()),
        left => Err(Error::from(field(
            "coded words",
            format!("{left} bytes more"),
            "none behind the last run",
        ))),
    }
}

/// Refuses a payload for which there are too few bytes, before memory is taken
/// for it: each MiB has at least so many.
pub(super) fn check_room(rest: &Cursor<'_>, mibs: u64, least: u64) -> Result<()> {
    let left = rest.left() as u64;
    if mibs.saturating_mul(least) > left {
        return Err(Error::from(field(
            "coded words",
            format!("{left} bytes"),
            format!("at least {least} for each of {mibs} MiB"),
        )));
    }
    Ok(())
}
