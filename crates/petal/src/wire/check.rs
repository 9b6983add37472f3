//! What a packed filter or a delta says of itself, and whether it is whole.

use std::path::Path;

use super::container::Lead;
use crate::any::Kind;
use crate::error::Result;

/// What is in a file of this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireContent {
    /// A whole filter.
    Packed,
    /// What has changed from one generation to a later one.
    Delta {
        /// The generation it leads from.
        from: u64,
    },
}

/// What such a file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireInfo {
    /// What it is.
    pub content: WireContent,
    /// The kind of the filter that comes out of it.
    pub kind: Kind,
    /// The generation of that filter.
    pub generation: u64,
    /// Bytes of the file of that filter.
    pub filter_bytes: u64,
    /// Bytes of this file.
    pub bytes: u64,
}

/// Reads a packed filter or a delta and checks its checksum, which covers all
/// of it. That the coded words are those of the filter is checked when they are
/// unpacked.
///
/// # Errors
/// If the path is no regular file or cannot be read, or is not an intact file
/// of this form.
pub fn inspect(path: impl AsRef<Path>) -> Result<WireInfo> {
    let bytes = super::read(path.as_ref())?;
    let (lead, _) = Lead::decode(&bytes)?;
    let shell = lead.parts.shell()?;
    Ok(WireInfo {
        content: match lead.base {
            None => WireContent::Packed,
            Some(base) => WireContent::Delta {
                from: base.generation,
            },
        },
        kind: shell.kind(),
        generation: shell.generation(),
        filter_bytes: shell.file_len(),
        bytes: bytes.len() as u64,
    })
}
