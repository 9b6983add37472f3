//! petal: *have I seen this key?*, for sets too large to keep.
//!
//! ```
//! use petal::{AnyFilter, BloomFilter, Overwrite};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("seen.petal");
//!
//! let mut seen = BloomFilter::new(1_000_000, 0.001)?; // keys, error
//! assert!(seen.insert("https://example.org/")?); // changed a bit: certainly new
//! assert!(seen.contains("https://example.org/"));
//! seen.save(&path, Overwrite::Replace)?;
//!
//! let again = AnyFilter::open(&path, None)?;
//! assert!(again.contains_bytes(b"https://example.org/")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! * **No false negative.** A key that was inserted is found, in every kind of
//!   filter, in memory, saved, mapped and merged; in a [`WindowFilter`] as long as
//!   it is in the window, in a [`DeletableFilter`] until it is removed as often.
//! * **The error is kept.** For a filter sized by (n, p) the expected share of
//!   absent keys that are "seen", at n distinct keys, is at most p: for n from 1
//!   to 10^12 and p from 0.5 to 1e-12. *Expected* is over hashes: one small filter
//!   scatters around it. Two byte keys share a 64-bit digest with probability
//!   2^-64, which is counted; p below `10 n / 2^64` is refused for byte keys.
//!   Whoever *chooses* the keys can break this, unless the hasher is
//!   [`KeyHasher::Keyed`].
//! * **The same bits.** The same keys and parameters give the same bits, in any
//!   order, on every machine: hashes, layout and file are specified. (But for a
//!   window, which is about the order, and a [`DigestSet`], whose table is spread
//!   at random so that nobody can choose keys that pile up.)
//! * **No surprise.** Constructors and files are checked before memory is
//!   allocated; no bytes make a reader panic; saving is atomic.
//!
//! # Where to look
//!
//! Keys become 64-bit [`Digest`]s by a [`KeyHasher`]; text becomes keys by a
//! [`normalise::Normalisation`]. [`BloomFilter`] is the default filter,
//! [`ConcurrentBloomFilter`] the same for many threads at once,
//! [`GrowableFilter`] the one for an unknown number of keys,
//! [`CountingBloomFilter`] the one that can forget and count, [`DeletableFilter`] a
//! smaller one that can, too, [`WindowFilter`] the one that forgets what is older
//! than a number of keys or a stretch of time, [`StaticFilter`] the smallest, for keys that do
//! not change and values with them, [`CascadeFilter`] exact for two lists, [`DigestSet`]
//! the exact one while memory lasts, [`PacketFilter`] one of a few bytes that
//! travels in a packet. [`AnyFilter`] is what a file turns out to
//! hold. [`sizing`] has the arithmetic. [`Contains`], [`Insert`], [`Remove`],
//! [`Count`] and [`Merge`] are the operations over digests, one at a time or in
//! batches.

mod any;
mod arch;
mod atomic;
mod bloom;
mod cascade;
mod classic;
mod counting;
mod deletable;
mod digest_set;
mod error;
mod fold;
mod format;
mod geometry;
mod growable;
mod hash;
mod identity;
mod lock;
pub mod memory;
pub mod normalise;
mod packet;
mod ribbon;
mod sip;
pub mod sizing;
#[cfg(test)]
mod testing;
mod traits;
mod typed;
mod window;
pub mod wire;
mod words;

pub use any::{AnyFilter, Kind};
pub use atomic::{AtomicFile, Overwrite, sync_directory};
pub use bloom::{Bloom, BloomFilter, ConcurrentBloom, ConcurrentBloomFilter};
pub use cascade::{Cascade, CascadeFilter, CascadeGeometry, DigestSource};
pub use classic::{Classic, ClassicBloomFilter, ClassicGeometry};
pub use counting::{CounterBits, Counting, CountingBloomFilter, CountingGeometry, Increase};
pub use deletable::{Deletable, DeletableFilter};
pub use digest_set::DigestSet;
pub use error::{Error, FormatError, Result};
pub use format::{
    Assembly, FileAssembly, FileInfo, HasherRecord, MappedGeometry, MappedWriter, Measure, Shape,
    StageRecord, VERSION as FORMAT_VERSION, inspect, measure, verify,
};
pub use geometry::deletable::DeletableGeometry;
pub use geometry::window::WindowGeometry;
pub use geometry::{BlockWords, SplitGeometry};
pub use growable::{Growable, GrowableFilter};
pub use hash::{
    Bytes, Digest, Digests, Int, Key, KeyHasher, KeyKind, KeyType, Origin, Secret, mix_int,
    unmix_int,
};
pub use identity::{About, Attachments, Identity, Labels};
pub use lock::FileLock;
pub use packet::PacketFilter;
pub use ribbon::{Entry, Static, StaticBuilder, StaticFilter, StaticGeometry, Valued};
pub use sip::{Sip128, Sip128Batch};
pub use sizing::Promise;
pub use traits::{Contains, Count, Insert, Merge, Remove, mask_words};
pub use typed::Typed;
pub use window::{Generation, Overload, Window, WindowFilter, WindowSpan};
