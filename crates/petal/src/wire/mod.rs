//! Filters on the wire: packed to their entropy, and as what has changed.
//!
//! Owns the form in which filters travel; `FORMAT.md` specifies it. The file
//! that comes out of it is, byte for byte, the one that went in. Sizes are
//! planned in [`crate::sizing`], filters refitted before they are packed by
//! [`crate::AnyFilter::shrunk`].
//!
//! ```
//! use petal::{AnyFilter, BloomFilter, Contains, wire};
//! let mut monday = BloomFilter::new(1000, 0.01)?;
//! monday.insert("a")?;
//! let mut monday: AnyFilter = monday.into_inner().into();
//! let packed = wire::pack(&monday)?;
//! let mut theirs = wire::unpack(&packed, None)?;
//!
//! let mut tuesday = wire::unpack(&packed, None)?;
//! tuesday.insert_bytes(b"b")?;
//! tuesday.set_generation(2);
//! let delta = wire::delta(&monday, &tuesday)?;
//! theirs = wire::apply_delta(&theirs, &delta)?;
//! assert!(theirs.contains_bytes(b"b")?);
//! # Ok::<(), petal::Error>(())
//! ```
//!
//! * `range`: the arithmetic coder. `model`: runs of bits under their fill.
//! * `container`: the file around them; `check`: what it says of itself.
//! * `pack`, `delta`: what is coded.
//!
//! Sums show damage, not tampering: whoever may send a delta may send any.

mod check;
mod container;
mod delta;
mod model;
mod pack;
mod range;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::Path;

use crate::any::AnyFilter;
use crate::atomic::{AtomicFile, Overwrite};
use crate::error::{Error, Result};
use crate::format::Image;
use crate::hash::Secret;
use crate::traits::Bits;

pub use check::{WireContent, WireInfo, inspect};

/// A filter as few bytes: within 1 % of the entropy of its bits where a file
/// of it has 64 KiB or more and 5 to 95 % of them are set; for other fills
/// where the entropy is 20 KiB or more. For the kinds [`crate::Bloom`],
/// [`crate::Classic`] and [`crate::Growable`].
///
/// # Errors
/// If the kind is another one, or the filter could not be saved.
pub fn pack(filter: &AnyFilter) -> Result<Vec<u8>> {
    pack::pack(&Image::of(filter)?)
}

/// The filter in what [`pack`] has made. The secret is needed if it is keyed.
///
/// Whatever the bytes are, the outcome is a filter or an error. The memory is
/// that of the filter which they describe, taken only if the bytes are enough
/// for it: at least 8 for each MiB. An empty MiB is never touched.
///
/// # Errors
/// If the bytes are not an intact packed filter, the secret is missing or
/// another one, or the memory cannot be had.
pub fn unpack(bytes: &[u8], secret: Option<&Secret>) -> Result<AnyFilter> {
    pack::unpack(bytes)?.into_filter(secret)
}

/// What has changed from `old` to `new`, as few bytes: at most those of the
/// positions that changed, log2 C(bits, changed), and some 150 bytes, with 16
/// for each MiB of the filter. Both have the same shape and keys (stages that
/// a growable filter has got since then are no hindrance) and `new` is of a
/// later generation. Labels and whatever else the file records come along.
///
/// # Errors
/// If shape, keys or generation are not so, the kind is none that [`pack`]
/// takes, or a filter could not be saved.
pub fn delta(old: &AnyFilter, new: &AnyFilter) -> Result<Vec<u8>> {
    delta::delta(&Image::of(old)?, &Image::of(new)?)
}

/// The new filter, from the old one and what [`delta`] has made. Its saved
/// file is, byte for byte, that of the filter `delta` was given.
///
/// # Errors
/// [`Error::OutOfOrder`] if `old` is of another generation than the delta
/// leads from, [`Error::WrongBase`] if its bits are others; or if the bytes
/// are not an intact delta, or the memory cannot be had.
pub fn apply_delta(old: &AnyFilter, delta: &[u8]) -> Result<AnyFilter> {
    let hasher = Bits::meta(old).identity().hasher.clone();
    // Its base has the same hasher: that was checked.
    delta::apply(&Image::of(old)?, delta)?.into_filter_of(hasher)
}

/// [`pack`] from a file to a file, which appears as a whole or not at all. The
/// secret of a keyed filter is not needed. Bytes that were written.
///
/// # Errors
/// As for [`pack`], [`AnyFilter::open`] and [`AnyFilter::save`].
pub fn pack_file(
    filter: impl AsRef<Path>,
    packed: impl AsRef<Path>,
    overwrite: Overwrite,
) -> Result<u64> {
    let bytes = pack::pack(&Image::open(filter.as_ref())?)?;
    write(&bytes, packed.as_ref(), overwrite)
}

/// [`unpack`] from a file to a file, as [`pack_file`].
///
/// # Errors
/// As for [`unpack`] and [`AnyFilter::save`].
pub fn unpack_file(
    packed: impl AsRef<Path>,
    filter: impl AsRef<Path>,
    overwrite: Overwrite,
) -> Result<u64> {
    let image = pack::unpack(&read(packed.as_ref())?)?;
    image.save(filter.as_ref(), overwrite)?;
    Ok(image.shell().file_len())
}

/// [`delta`] of files to a file, as [`pack_file`].
///
/// # Errors
/// As for [`delta`], [`AnyFilter::open`] and [`AnyFilter::save`].
pub fn delta_file(
    old: impl AsRef<Path>,
    new: impl AsRef<Path>,
    delta: impl AsRef<Path>,
    overwrite: Overwrite,
) -> Result<u64> {
    let bytes = delta::delta(&Image::open(old.as_ref())?, &Image::open(new.as_ref())?)?;
    write(&bytes, delta.as_ref(), overwrite)
}

/// [`apply_delta`] of files to a file, as [`pack_file`].
///
/// # Errors
/// As for [`apply_delta`], [`AnyFilter::open`] and [`AnyFilter::save`].
pub fn apply_delta_file(
    old: impl AsRef<Path>,
    delta: impl AsRef<Path>,
    new: impl AsRef<Path>,
    overwrite: Overwrite,
) -> Result<u64> {
    let image = delta::apply(&Image::open(old.as_ref())?, &read(delta.as_ref())?)?;
    image.save(new.as_ref(), overwrite)?;
    Ok(image.shell().file_len())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    crate::format::read_file(path)
}

fn write(bytes: &[u8], path: &Path, overwrite: Overwrite) -> Result<u64> {
    let mut file = AtomicFile::create(path, overwrite)?;
    file.check_room(bytes.len() as u64)?;
    file.write_all(bytes)
        .map_err(|error| Error::io("write", Some(path), error))?;
    file.commit()?;
    Ok(bytes.len() as u64)
}
