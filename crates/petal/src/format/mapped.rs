//! Writing to a file in place, crash-safe: for filters beyond memory.
//!
//! Owns [`MappedWriter`] and the order of its writes. Only for the kinds
//! whose bits only ever appear, so that a file that was being written to
//! still holds every key of its last generation:
//!
//! 1. the header with its dirty flag, made durable;
//! 2. bits, in whatever order the system writes them;
//! 3. on commit: the payload made durable, then the checksums that changed,
//!    made durable, then the clean header with the next generation, made
//!    durable.

use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::MIB;
use super::checksum::{sum, table_bytes, zero_sum};
use super::contents::Contents;
use super::header::Geometry;
use super::read::Front;
use super::source::{FileSource, Source};
use super::write::empty_file;
use crate::any::AnyFilter;
use crate::atomic::{AtomicFile, Overwrite, resolve_links};
use crate::classic::ClassicGeometry;
use crate::error::{Error, FormatError, Result};
use crate::geometry::SplitGeometry;
use crate::hash::{KeyHasher, Secret};
use crate::identity::{About, Identity, Labels};
use crate::lock::FileLock;
use crate::sizing::Promise;
use crate::traits::{Bits, BitsMut};
use crate::words::{self, Words};

/// The shape of a filter that can be written in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MappedGeometry {
    /// A [`crate::Bloom`] filter.
    Bloom(SplitGeometry),
    /// A [`crate::Classic`] filter.
    Classic(ClassicGeometry),
}

impl From<SplitGeometry> for MappedGeometry {
    fn from(shape: SplitGeometry) -> Self {
        Self::Bloom(shape)
    }
}

impl From<ClassicGeometry> for MappedGeometry {
    fn from(shape: ClassicGeometry) -> Self {
        Self::Classic(shape)
    }
}

/// The one writer of a file, which is changed in place: bits go to the file's
/// own pages, so the filter may be larger than memory.
///
/// Nothing is sure to be in the file before [`Self::commit`]. From the first
/// insertion until then, the file is *dirty*: [`AnyFilter::open`] refuses it,
/// and it stays so if the writer is dropped or its process ends without a
/// commit. It still holds every key of its last generation;
/// [`Self::recover`] opens it to go on.
///
/// Asking and inserting are [`crate::Contains`] and [`crate::Insert`], as for
/// every filter. Labels and attachments cannot be changed in place.
///
/// ```
/// use petal::{AnyFilter, Identity, KeyType, Labels, MappedWriter, Overwrite, Promise, sizing};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("seen.petal");
/// let identity = Identity::new(KeyType::Bytes);
/// let promise = Promise { items: 1_000_000, error: 1e-3 };
/// let shape = sizing::split_for(promise.items, promise.error, identity.collisions())?;
/// let mut writer =
///     MappedWriter::create(&path, identity, shape, Some(promise), Labels::default(), Overwrite::Refuse)?;
/// writer.insert_bytes(b"https://example.org/")?;
/// writer.commit()?;
/// assert!(AnyFilter::open(&path, None)?.contains_bytes(b"https://example.org/")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MappedWriter {
    /// Its words are those of the file.
    filter: AnyFilter,
    /// What the file's header says, and its metadata and runs.
    front: Front,
    file: FileSource,
    /// Of each MiB of the payload.
    mibs: Vec<Mib>,
    /// Whether the file's header is sure to have its dirty flag. The one in
    /// `front` has it as long as there is something to commit.
    marked: bool,
    _lock: FileLock,
}

/// What is known of a MiB of the payload.
#[derive(Debug, Clone, Copy)]
struct Mib {
    /// Its checksum in the file's table.
    sum: u64,
    /// Whether it was found to match the checksum and has room on the disk.
    ready: bool,
    /// Whether bits in it may have changed since the last commit.
    touched: bool,
}

impl MappedWriter {
    /// Opens a clean file for writing.
    ///
    /// # Errors
    /// As for [`AnyFilter::open_mapped`]; if another writer is at work; if
    /// the kind is not a Bloom filter of a fixed size; or if the last writer
    /// was interrupted ([`FormatError::Dirty`]).
    pub fn open(path: impl AsRef<Path>, secret: Option<&Secret>) -> Result<Self> {
        Self::open_path(path.as_ref(), secret, false)
    }

    /// Opens a file whose last writer was interrupted (or a clean one): reads
    /// all of it, computes its checksums anew, and makes it a clean file of
    /// the next generation. Every key of the last generation is in it; later
    /// ones have to be inserted again. How many insertions changed a bit is
    /// unknown from then on.
    ///
    /// Damage to the payload cannot be told from new bits here.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn recover(path: impl AsRef<Path>, secret: Option<&Secret>) -> Result<Self> {
        Self::open_path(path.as_ref(), secret, true)
    }

    /// Makes the file of an empty filter, which takes next to no room until
    /// keys are inserted, and opens it. It appears whole, as with
    /// [`AnyFilter::save`]. That the shape keeps the promise is the caller's
    /// word.
    ///
    /// # Errors
    /// As for [`AnyFilter::save`], with room for all of the filter's bytes.
    pub fn create(
        path: impl AsRef<Path>,
        identity: Identity,
        geometry: impl Into<MappedGeometry>,
        promise: Option<Promise>,
        labels: Labels,
        overwrite: Overwrite,
    ) -> Result<Self> {
        let mut about = About::new(identity, promise);
        about.labels = labels;
        Self::create_sparse(
            path.as_ref(),
            about,
            geometry.into(),
            overwrite,
            |file, len| file.check_room(len),
        )
    }

    /// [`Self::create`] with a check of one's own.
    pub(super) fn create_sparse(
        path: &Path,
        about: About,
        geometry: MappedGeometry,
        overwrite: Overwrite,
        check: impl FnOnce(&AtomicFile, u64) -> Result<()>,
    ) -> Result<Self> {
        let (front, table, sections) = empty_file(&Contents {
            geometry: match geometry {
                MappedGeometry::Bloom(shape) => Geometry::Bloom(shape),
                MappedGeometry::Classic(shape) => Geometry::Classic(shape),
            },
            about: &about,
            growth: None,
            window: None,
            words: Vec::new(),
        })?;
        let mut new = AtomicFile::create(path, overwrite)?;
        let target = new.target().to_path_buf();
        let lock = FileLock::acquire(&target)?;
        check(&new, sections.file_len)?;
        new.write_all(&front)
            .and_then(|()| new.seek(SeekFrom::Start(sections.table_offset)))
            .and_then(|_| new.write_all(&table))
            .map_err(|error| Error::io("write", Some(path), error))?;
        new.commit()?;
        let secret = match &about.identity.hasher {
            KeyHasher::Keyed { secret } => Some(secret),
            KeyHasher::Portable { .. } => None,
        };
        Self::open_locked(lock, &target, secret, false)
    }

    fn open_path(path: &Path, secret: Option<&Secret>, recover: bool) -> Result<Self> {
        let target = resolve_links(path)?;
        // What cannot be opened gets no lock file beside it.
        drop(FileSource::open(&target, true)?);
        let lock = FileLock::acquire(&target)?;
        Self::open_locked(lock, &target, secret, recover)
    }

    fn open_locked(
        lock: FileLock,
        target: &Path,
        secret: Option<&Secret>,
        recover: bool,
    ) -> Result<Self> {
        if cfg!(target_endian = "big") {
            return Err(Error::Unsupported {
                operation: "writing in place on a big-endian machine",
                kind: "mapped",
            });
        }
        let file = FileSource::open(target, true)?;
        let mut front = Front::read(&file)?;
        let kind = front.header.geometry.kind();
        if !matches!(
            front.header.geometry,
            Geometry::Bloom(_) | Geometry::Classic(_)
        ) {
            return Err(Error::Unsupported {
                operation: "writing in place",
                kind: kind.name(),
            });
        }
        let was_dirty = front.header.dirty;
        if !recover {
            front.refuse_dirty()?;
        }
        let hasher = front.header.hasher.hasher(secret)?;
        let sums = if was_dirty {
            front.header.insertions = None;
            // Makes what the dead writer left durable, and holes trustworthy.
            file.file
                .sync_data()
                .map_err(|error| Error::io("write", Some(target), error))?;
            sums_of(&file, &front)?
        } else {
            front.read_table(&file)?
        };
        let map = words::map_for_writing(&file.file)
            .map_err(|error| Error::io("map", Some(target), error))?;
        let mut map = Some(map);
        let words = front.words_at(|offset, count| match map.take() {
            Some(map) => Words::in_map_for_writing(map, offset, count),
            None => Err(Error::ReadOnly), // not reached: these kinds have one run
        })?;
        let filter = front.clone().into_filter(hasher, words)?;
        let mibs = sums
            .into_iter()
            .map(|sum| Mib {
                sum,
                ready: false,
                touched: false,
            })
            .collect();
        let mut writer = Self {
            filter,
            front,
            file,
            mibs,
            marked: was_dirty,
            _lock: lock,
        };
        if was_dirty {
            let table = writer.front.header.sections.table_offset;
            writer.write_at(&table_bytes(&writer.sums()), table)?;
            writer.publish(None)?;
        }
        Ok(writer)
    }

    /// The filter, to be asked.
    #[must_use]
    pub const fn filter(&self) -> &AnyFilter {
        &self.filter
    }

    /// Inserts a byte key. True if that changed a bit.
    ///
    /// # Errors
    /// If the filter is for integers, a part of the file is found damaged,
    /// or the disk is full. Nothing is inserted then.
    pub fn insert_bytes(&mut self, key: &[u8]) -> Result<bool> {
        self.insert_bits(self.filter.bits_of_bytes(key)?)
    }

    /// Inserts an integer key. True if that changed a bit.
    ///
    /// # Errors
    /// As for [`Self::insert_bytes`], if the filter is for bytes.
    pub fn insert_int(&mut self, key: i64) -> Result<bool> {
        self.insert_bits(self.filter.bits_of_int(key)?)
    }

    /// Makes everything inserted so far durable and the file clean. Costs
    /// nothing if no bit has changed since the last time, else two or three
    /// waits for the disk.
    ///
    /// # Errors
    /// If the system refuses, or labels or attachments were changed. The file
    /// stays dirty then; the commit may be tried again.
    pub fn commit(&mut self) -> Result<()> {
        let about = Bits::meta(&self.filter);
        let metadata = &self.front.metadata;
        if about.labels != metadata.labels || about.attachments != metadata.attachments {
            return Err(Error::parameter(
                "labels and attachments",
                "changed",
                "those of the file: open it into memory and save it to change them",
            ));
        }
        if !self.front.header.dirty {
            return Ok(());
        }
        let insertions = about.insertions();

        self.flush_payload()?;
        let table = self.front.header.sections.table_offset;
        for index in 0..self.mibs.len() {
            if !self.mibs[index].touched {
                continue;
            }
            let now = sum(self.mib(index));
            self.write_at(&now.to_le_bytes(), table + 8 * index as u64)?;
            self.mibs[index].sum = now;
        }
        self.publish(insertions)
    }

    /// The last part of a commit: makes payload and table durable, then the
    /// header of the next generation.
    fn publish(&mut self, insertions: Option<u64>) -> Result<()> {
        self.sync()?;
        let mut clean = self.front.header.clone();
        clean.dirty = false;
        clean.insertions = insertions;
        clean.generation = clean.generation.saturating_add(1);
        clean.table_sum = sum(&table_bytes(&self.sums()));
        // If the next lines fail, nobody knows which header the file has.
        self.marked = false;
        self.write_at(&clean.encode(), 0)?;
        self.sync()?;

        self.filter.meta_mut().generation = clean.generation;
        self.front.header = clean;
        for mib in &mut self.mibs {
            mib.touched = false;
        }
        Ok(())
    }

    /// The checksum table.
    fn sums(&self) -> Vec<u64> {
        self.mibs.iter().map(|mib| mib.sum).collect()
    }

    /// Says in the file that bits may change from now on.
    fn begin(&mut self) -> Result<()> {
        if self.marked {
            return Ok(());
        }
        let mut dirty = self.front.header.clone();
        dirty.dirty = true;
        self.write_at(&dirty.encode(), 0)?;
        self.sync()?;
        self.front.header = dirty;
        self.marked = true;
        Ok(())
    }

    /// Makes every MiB that a digest has bits in ready for them.
    fn prepare(&mut self, digest: u64) -> Result<()> {
        let mut places = [0; ClassicGeometry::MAX_POSITIONS as usize];
        let count = match &self.filter {
            AnyFilter::Bloom(filter) => fill(&mut places, filter.block_starts(digest)),
            AnyFilter::Classic(filter) => fill(&mut places, filter.word_indices(digest)),
            _ => 0, // refused by `open_locked`
        };
        for &word in &places[..count] {
            self.touch(word / (MIB / 8))?;
        }
        Ok(())
    }

    /// Makes a MiB ready to be changed. What is about to get a new checksum
    /// must match its old one, or damage would be covered up; and it must
    /// have its room on the disk, since a full disk would end the process at
    /// the moment a page is written.
    fn touch(&mut self, index: usize) -> Result<()> {
        if !self.mibs[index].ready {
            let offset = self.front.header.sections.payload_offset + (index * MIB) as u64;
            let bytes = self.mib(index);
            if sum(bytes) != self.mibs[index].sum {
                return Err(FormatError::Checksum {
                    part: "payload",
                    offset,
                }
                .into());
            }
            self.reserve(offset, bytes.len() as u64)?;
            self.mibs[index].ready = true;
        }
        self.mibs[index].touched = true;
        Ok(())
    }

    /// The bytes of a MiB of the payload.
    fn mib(&self, index: usize) -> &[u8] {
        let payload = words_of(&self.filter).map_or(&[][..], Words::bytes);
        let end = payload.len().min((index + 1) * MIB);
        &payload[index * MIB..end]
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(&self.file.file, FallocateFlags::KEEP_SIZE, offset, len) {
            // File systems that cannot promise room.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(Error::io(
                "get room in",
                Some(&self.file.path),
                error.into(),
            )),
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    fn reserve(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn flush_payload(&self) -> Result<()> {
        match words_of(&self.filter) {
            Some(words) => words
                .flush()
                .map_err(|error| Error::io("write", Some(&self.file.path), error)),
            None => Ok(()),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file
            .file
            .write_all_at(bytes, offset)
            .map_err(|error| Error::io("write", Some(&self.file.path), error))
    }

    fn sync(&self) -> Result<()> {
        self.file
            .file
            .sync_data()
            .map_err(|error| Error::io("write", Some(&self.file.path), error))
    }
}

/// The words of the kinds that can be written in place.
const fn words_of(filter: &AnyFilter) -> Option<&Words> {
    match filter {
        AnyFilter::Bloom(filter) => Some(filter.words()),
        AnyFilter::Classic(filter) => Some(filter.words()),
        _ => None,
    }
}

/// Copies as many items as there are, or fit; returns how many.
fn fill(places: &mut [usize], items: impl Iterator<Item = usize>) -> usize {
    places
        .iter_mut()
        .zip(items)
        .map(|(place, item)| *place = item)
        .count()
}

/// The checksum of every MiB of the payload as it is, whatever the table says.
fn sums_of(file: &FileSource, front: &Front) -> Result<Vec<u64>> {
    let sections = &front.header.sections;
    let mut scratch = Vec::new();
    (0..sections.mibs())
        .map(|mib| {
            let offset = mib * MIB as u64;
            let len = sections.mib_len(mib);
            let at = sections.payload_offset + offset;
            if file.is_hole(at, len) {
                return Ok(zero_sum(len));
            }
            let bytes = file.read(at, len, &mut scratch)?;
            front.runs.check(offset, bytes)?;
            Ok(sum(bytes))
        })
        .collect()
}

impl Bits for MappedWriter {
    fn meta(&self) -> &About {
        Bits::meta(&self.filter)
    }

    fn meta_mut(&mut self) -> &mut About {
        self.filter.meta_mut()
    }

    fn contains_bits(&self, digest: u64) -> bool {
        self.filter.contains_bits(digest)
    }

    fn contains_all_bits(&self, digests: &[u64], mask: &mut [u64]) {
        self.filter.contains_all_bits(digests, mask);
    }
}

impl BitsMut for MappedWriter {
    fn insert_bits(&mut self, digest: u64) -> Result<bool> {
        // A key that is there already must not make the file dirty.
        if self.filter.contains_bits(digest) {
            return Ok(false);
        }
        self.begin()?;
        self.prepare(digest)?;
        self.filter.insert_bits(digest)
    }

    fn insert_all_bits(&mut self, digests: &[u64], mask: &mut [u64]) -> Result<()> {
        self.filter.contains_all_bits(digests, mask);
        let mut absent = false;
        for (i, &digest) in digests.iter().enumerate() {
            if mask[i / 64] >> (i % 64) & 1 == 0 {
                self.begin()?;
                self.prepare(digest)?;
                absent = true;
            }
        }
        mask.fill(0);
        if absent {
            self.filter.insert_all_bits(digests, mask)?;
        }
        Ok(())
    }
}
