//! petal: *have I seen this key?*, for sets too large to keep.

mod any;
mod arch;
mod atomic;
mod bloom;
mod classic;
mod digest_set;
mod error;
mod format;
mod growable;
mod hash;
mod identity;
mod lock;
pub mod memory;
pub mod normalise;
pub mod sizing;
#[cfg(test)]
mod testing;
mod traits;
mod typed;
mod words;

pub use any::{AnyFilter, Kind};
pub use atomic::{AtomicFile, Overwrite, sync_directory};
pub use bloom::{BlockWords, Bloom, BloomFilter, SplitGeometry};
pub use classic::{Classic, ClassicBloomFilter, ClassicGeometry};
pub use digest_set::DigestSet;
pub use error::{Error, FormatError, Result};
pub use format::{
    FileInfo, HasherRecord, MappedGeometry, MappedWriter, Measure, Shape, StageRecord,
    VERSION as FORMAT_VERSION, inspect, measure, verify,
};
pub use growable::{Growable, GrowableFilter};
pub use hash::{
    Bytes, Digest, Digests, Int, Key, KeyHasher, KeyKind, KeyType, Origin, Secret, mix_int,
};
pub use identity::{About, Attachments, Identity, Labels, Promise};
pub use lock::FileLock;
pub use traits::{Contains, Insert, Merge, mask_words};
pub use typed::Typed;
