//! The file: `FORMAT.md` is its specification.
//!
//! Owns reading, checking and writing petal files of every kind:
//! [`crate::AnyFilter`]'s `open`, `save` and their kin, [`inspect`],
//! [`verify`] and [`MappedWriter`]. Each kind of filter only hands over its
//! words and description (`contents`) and is put together from them again
//! (`read`).
//!
//! * `header`, `metadata`: the bytes of each, and all checks of them.
//! * `sections`, `payload`: what is where in the file, and in the payload.
//! * `checksum`: the sums over the payload.
//! * `source`, `read`: opening, inspecting and verifying.
//! * `contents`, `write`: saving.
//! * `pieces`: a filter in pieces, for those who have no file.
//! * `mapped`: writing in place, crash-safe.
//! * `image`: a file in memory whose keys need not be known, for [`crate::wire`].

mod checksum;
mod contents;
mod cursor;
mod header;
mod image;
mod info;
mod mapped;
mod metadata;
mod payload;
mod pieces;
mod read;
mod sections;
mod source;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use cursor::Cursor;
pub use header::HasherRecord;
pub(crate) use header::field;
pub(crate) use image::{FIELDS, Image, Parts, Shell, read_file};
pub use info::{FileInfo, Shape};
pub use mapped::{MappedGeometry, MappedWriter};
pub use metadata::StageRecord;
pub use pieces::{Assembly, FileAssembly};
pub use read::{Measure, inspect, measure, verify};

/// First bytes of a packed filter or a delta: see [`crate::wire`].
pub(crate) const WIRE_MAGIC: [u8; 8] = *b"\x89petlw\r\n";

/// The version of the format that is written, and the only one that is read.
/// It is frozen: every later petal reads it.
pub const VERSION: u16 = 1;

/// Most bytes of metadata.
const MAX_METADATA: u64 = 64 << 10;

/// Payload and runs of words start at multiples of a cache line.
const ALIGN: u64 = 64;

/// Bytes of the payload that share a checksum.
const MIB: usize = 1 << 20;
