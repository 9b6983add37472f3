//! petal: *have I seen this key?*, for sets too large to keep.

mod error;
mod hash;

pub use error::{Error, FormatError, Result};
pub use hash::{
    Bytes, Digest, Digests, Int, Key, KeyHasher, KeyKind, KeyType, Origin, Secret, mix_int,
};
