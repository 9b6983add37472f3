//! Bloom filters of other systems: read, asked, filled and written as their
//! makers do, position for position.
//!
//! ```
//! use petal_interop::{ForeignFilter, ForeignKey, Guava, GuavaStrategy, ReadOptions, read};
//!
//! let mut made = Guava::create(GuavaStrategy::Mitz64, 1000, 0.01)?;
//! made.insert(ForeignKey::Text("https://example.org/"))?;
//! let file = (&made as &dyn ForeignFilter).to_bytes()?; // what Guava's writeTo gives
//!
//! let again = read(file, &ReadOptions::new())?;
//! assert!(again.contains(ForeignKey::Text("https://example.org/"))?);
//! # Ok::<(), petal_interop::Error>(())
//! ```
//!
//! # What is promised
//!
//! * A filter gives its maker's answers: the members, and the same false
//!   positives.
//! * A file that is written is the maker's to the byte, for the same keys and
//!   parameters, wherever the maker is deterministic.
//! * No bytes make a reader panic, work without end, or take more memory than
//!   twice the decompressed size and a MiB. Lengths are compared with the file
//!   before anything is allocated.
//!
//! These formats have no checksum: damage that leaves the header valid cannot
//! be seen. Convert what is to be kept.
//!
//! # Where to look
//!
//! [`open`] and [`read`] give a [`ForeignFilter`], whatever its [`Format`]. A
//! question is a [`ForeignKey`], since some makers hash a text and an integer
//! differently. Each format has a module of its own with its sizing, its hash
//! and its quirks.

mod bits;
mod bits_and_blooms;
mod classic;
mod cursor;
mod dcso;
mod error;
mod extent;
mod filter;
mod format;
mod guava;
mod gzip;
mod hash;
mod key;
pub mod lab;
mod migrate;
mod npm;
mod parquet;
mod poppy;
mod pybloom_live;
mod pyprobables;
mod rbloom;
mod redisbloom;
mod sbbf;
mod sizing;
mod spark;
mod squid;

pub use bits_and_blooms::BitsAndBlooms;
pub use classic::{
    CharSign, ClassicFilter, ClassicHash, ClassicProgram, Difference, PhpMode, RawBits,
    UrlDedupRun, run_url_dedup,
};
pub use dcso::{Dcso, MAX_COMPRESSED_DATA};
pub use error::{Error, Result};
pub use filter::{Count, Counted, ForeignFilter, MAX_POSITIONS, Parameters};
pub use format::{Encoding, Format, ReadOptions, create, open, read, recognise};
pub use guava::{Guava, GuavaStrategy};
pub use key::ForeignKey;
pub use migrate::Migration;
pub use npm::{Npm, NpmCounting, NpmPartitioned};
pub use parquet::ParquetFilters;
pub use poppy::Poppy;
pub use pybloom_live::{PybloomLive, ScalablePybloomLive};
pub use pyprobables::{Pyprobables, PyprobablesCounting, PyprobablesExpanding};
pub use rbloom::{Rbloom, RbloomHash};
pub use redisbloom::{Loader as RedisBloomLoader, MAX_CHUNK, RedisBloom};
pub use sbbf::Sbbf;
pub use spark::{Spark, SparkVersion};
pub use squid::Squid;
