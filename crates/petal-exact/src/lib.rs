//! petal-exact: set operations on inputs larger than memory, exactly.
//!
//! *Which records are in both? In the first and no other? Which are distinct, or never repeated,
//! and how often does each occur?* In the order of the input, with a fixed amount of memory.
//!
//! ```
//! use petal_exact::{Job, Memory, Operation, Options};
//!
//! let a = Memory::new(["pear", "fig", "plum", "fig"]);
//! let b = Memory::new(["fig", "quince", "pear"]);
//! let options = Options::new(64 << 20, "/var/tmp"); // memory, directory for temporary files
//! let sources = [a, b];
//! let job = Job::new(Operation::Common { at_least: 2 }, &sources, &options)?;
//! println!("{:?}", job.plan()); // passes, bytes read and written, memory, disk
//! let mut common = Vec::new();
//! job.run(&mut |batch, kept| {
//!     common.extend(kept.indices.iter().map(|&i| batch[i]));
//!     Ok(())
//! })?;
//! assert_eq!(common, ["pear", "fig"]);
//! # Ok::<(), petal_exact::Error>(())
//! ```
//!
//! # What is promised
//!
//! * **Exact.** Records are compared by 128-bit fingerprints: SipHash-1-3 under a key that is
//!   random for each run. That any two different ones among n records share one has a probability
//!   below n²/2^129, which is under 1e-18 for n = 10^10, whoever chose the records. With
//!   [`Options::verify`] the bytes are compared as well and nothing is left to chance: the answer
//!   is right, or the run ends with [`Error::Collision`]. All this as long as no source changes
//!   while it is read: only another number of records is noticed ([`Error::Changed`]).
//! * **In memory that is set beforehand**, and with a [`Plan`] of what is read and written. The
//!   buffers of sources and of the allocator come on top (some MB).
//! * **Nothing is left behind.** Temporary files have no name, see [`Scratch`].
//! * **The same answer** for every amount of memory and number of threads.
//!
//! # How it works
//!
//! Sources are read through [`Source`], as often as the plan says; records are handed out in the
//! pass that reads them last, so the order is that of the input and no record is ever copied to
//! disk. While fingerprints fit into memory a table of them is all there is. If not, they are
//! written to partitions on disk, 16 bytes each, which are small enough to be compared one by
//! one; what is kept is noted by record number, one bit each.
//! Where few records of two large sources are common, a Bloom filter (`petal`) of one source
//! keeps fingerprints of the other out of memory and off the disk.

mod bitmap;
mod error;
mod fingerprint;
mod job;
mod memory;
mod partition;
mod plan;
mod prefilter;
mod scan;
mod scratch;
mod source;
mod spill;
mod stream;
mod table;
mod verify;

pub use error::Error;
pub use fingerprint::{Fingerprint, Fingerprinter, Fingerprints};
pub use job::{Emit, Job, Kept, Outcome};
pub use plan::{Method, Operation, Options, Plan, Step, Which};
pub use scratch::Scratch;
pub use source::{Delimited, Facts, Memory, Records, Source, Visit};
