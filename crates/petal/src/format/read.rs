//! Opening, inspecting and verifying files.
//!
//! Whatever the bytes are, the outcome is a filter or an error. Lengths are
//! checked against each other and against what is there before memory is
//! taken for them.

use std::hash::Hasher;
use std::path::Path;
use std::sync::Arc;

use twox_hash::XxHash3_64;

use super::checksum::{is_zero, sum, zero_sum};
use super::header::{Geometry, HasherRecord, Header, field};
use super::info::FileInfo;
use super::metadata::Metadata;
use super::payload::Runs;
use super::sections::HEADER_LEN;
use super::source::{FileSource, Source};
use super::{MIB, metadata};
use crate::any::AnyFilter;
use crate::bloom::Bloom;
use crate::cascade::Cascade;
use crate::classic::Classic;
use crate::counting::Counting;
use crate::deletable::{Checking, Deletable};
use crate::digest_set::DigestSet;
use crate::error::{Error, FormatError, Result};
use crate::growable::Growable;
use crate::hash::{KeyHasher, KeyKind, Secret};
use crate::identity::{About, Identity};
use crate::ribbon::Static;
use crate::traits::Bits;
use crate::typed::Typed;
use crate::window::{Generation, Window};
use crate::words::{self, Words};

impl AnyFilter {
    /// Reads a file into memory and verifies all of it. The secret is needed
    /// if the filter is keyed, and ignored if it is not.
    ///
    /// # Errors
    /// If the path is no regular file or cannot be read, the bytes are not
    /// an intact petal file of a version and kind that this library knows,
    /// the secret is missing or another one, or the memory cannot be had. No
    /// more memory is taken than the length of the file justifies.
    pub fn open(path: impl AsRef<Path>, secret: Option<&Secret>) -> Result<Self> {
        let source = FileSource::open(path.as_ref(), false)?;
        load(&source, secret).map_err(|error| changed_meanwhile(&source, error))
    }

    /// Maps a file for reading: takes the same time for every size. Header
    /// and metadata are verified, and all lengths checked against the file;
    /// the payload is not read ([`verify`] does that). A [`DigestSet`], and
    /// on a big-endian machine every filter, is read as by [`Self::open`].
    ///
    /// Nobody may shorten or rewrite the file while the filter lives, as with
    /// every mapped file: shortened, a question would end the process. Petal
    /// replaces files by renaming. The one exception is a
    /// [`crate::MappedWriter`], which changes the file in place: do not map
    /// a file for reading while one is at work on it, in this process or
    /// another; [`Self::open`] it instead.
    ///
    /// Damage that was not looked for is saved with the rest: a mapped filter
    /// that is saved gets checksums of the words as they are. [`verify`] the
    /// file first.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_mapped(path: impl AsRef<Path>, secret: Option<&Secret>) -> Result<Self> {
        let source = FileSource::open(path.as_ref(), false)?;
        if cfg!(target_endian = "big") {
            return load(&source, secret);
        }
        let front = Front::read(&source)?;
        if let Geometry::DigestSet { .. } = front.header.geometry {
            return load(&source, secret).map_err(|error| changed_meanwhile(&source, error));
        }
        let hasher = front.unlock(secret)?;
        let words = front.map_words(&source)?;
        front.into_filter(hasher, words)
    }

    /// Reads a filter from the bytes of a file and verifies all of them.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn from_bytes(bytes: &[u8], secret: Option<&Secret>) -> Result<Self> {
        load(bytes, secret)
    }

    /// The same without a copy of the payload if the words happen to be
    /// aligned to 8 bytes in memory. The filter is then read-only. A
    /// [`DigestSet`] is copied, and so is every filter on a big-endian machine.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn from_shared(bytes: Arc<[u8]>, secret: Option<&Secret>) -> Result<Self> {
        let front = Front::read(&*bytes)?;
        let payload = bytes
            .as_ptr()
            .addr()
            .wrapping_add(index(front.header.sections.payload_offset)?);
        if cfg!(target_endian = "big")
            || payload % 8 != 0
            || matches!(front.header.geometry, Geometry::DigestSet { .. })
        {
            return load(&*bytes, secret);
        }
        let hasher = front.unlock(secret)?;
        front.check_payload(&*bytes, |_, _| Ok(()))?;
        let words =
            front.words_at(|offset, count| Words::in_shared(bytes.clone(), offset, count))?;
        front.into_filter(hasher, words)
    }
}

#[expect(private_bounds, reason = "the bound lists the kinds of this library")]
impl<K: KeyKind, F> Typed<K, F>
where
    F: TryFrom<AnyFilter, Error = Error> + Bits,
{
    /// Reads a file as [`AnyFilter::open`] does.
    ///
    /// # Errors
    /// As there, or if the filter is of another kind or for other keys.
    pub fn open(path: impl AsRef<Path>, secret: Option<&Secret>) -> Result<Self> {
        Self::new_for(F::try_from(AnyFilter::open(path, secret)?)?)
    }
}

/// Reads header and metadata of a file: what it says of itself. The secret
/// of a keyed filter is not needed, and the payload is not read.
///
/// # Errors
/// As for [`AnyFilter::open`], as far as these parts go.
pub fn inspect(path: impl AsRef<Path>) -> Result<FileInfo> {
    let front = Front::read(&FileSource::open(path.as_ref(), false)?)?;
    Ok(FileInfo::new(&front.header, front.metadata)?)
}

/// Reads a whole file, in memory of a few MiB, and checks every checksum. The
/// secret of a keyed filter is not needed.
///
/// # Errors
/// As for [`AnyFilter::open`].
pub fn verify(path: impl AsRef<Path>) -> Result<FileInfo> {
    let source = FileSource::open(path.as_ref(), false)?;
    verify_source(&source).map_err(|error| changed_meanwhile(&source, error))
}

pub(super) fn verify_source<S: Source + ?Sized>(source: &S) -> Result<FileInfo> {
    let front = Front::read(source)?;
    front.refuse_dirty()?;
    front.check_payload(source, |_, _| Ok(()))?;
    Ok(FileInfo::new(&front.header, front.metadata)?)
}

/// Reads and verifies everything.
fn load<S: Source + ?Sized>(source: &S, secret: Option<&Secret>) -> Result<AnyFilter> {
    let front = Front::read(source)?;
    let hasher = front.unlock(secret)?;
    let words = front.load_words(source)?;
    front.into_filter(hasher, words)
}

/// What the words of a file say, whatever their keys are.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Measure {
    /// The share of bits that are set, of counters that are not 0, or of slots
    /// that are used.
    pub fill: f64,
    /// Distinct keys: see [`AnyFilter::estimated_len`].
    pub estimated_len: f64,
    /// The chance that a random absent key is "seen": see
    /// [`AnyFilter::error_now`].
    pub error_now: f64,
    /// Counters that never go down again; `None` if the kind has none.
    pub saturated: Option<u64>,
    /// The generations of a window, newest first; none for other kinds.
    pub generations: Vec<Generation>,
}

/// Measures the words of a file. The secret of a keyed filter is not needed.
/// The file is mapped, as by [`AnyFilter::open_mapped`], and its payload is
/// not verified. One that a [`crate::MappedWriter`] left unfinished is
/// measured as it stands; as with every mapped file, no writer may be at work
/// on it meanwhile.
///
/// # Errors
/// As for [`AnyFilter::open_mapped`], the secret aside.
pub fn measure(path: impl AsRef<Path>) -> Result<Measure> {
    let source = FileSource::open(path.as_ref(), false)?;
    let front = Front::read(&source)?;
    let words = match front.header.geometry {
        Geometry::DigestSet { .. } => front.load_words(&source)?,
        _ if cfg!(target_endian = "big") => front.load_words(&source)?,
        _ => front.map_words(&source)?,
    };
    // No key is asked about, so that any secret will do.
    let secret = Secret::new([0; 16]);
    let hasher = match front.header.hasher {
        HasherRecord::Portable { seed } => KeyHasher::Portable { seed },
        HasherRecord::Keyed { .. } => KeyHasher::Keyed { secret },
    };
    let filter = front.into_filter(hasher, words)?;
    Ok(Measure {
        fill: filter.fill(),
        estimated_len: filter.estimated_len(),
        error_now: filter.error_now(),
        saturated: match &filter {
            AnyFilter::Counting(counting) => Some(counting.saturated()),
            _ => None,
        },
        generations: match &filter {
            AnyFilter::Window(window) => {
                let ages = 0..window.geometry().lanes();
                ages.map_while(|age| window.generation(age)).collect()
            }
            _ => Vec::new(),
        },
    })
}

/// A checksum that does not match because a writer has begun to change the
/// file since its header was read is not damage.
pub(super) fn changed_meanwhile(source: &FileSource, error: Error) -> Error {
    if let Error::Format(FormatError::Checksum { .. }) = error
        && let Ok(now) = Front::read(source)
        && now.header.dirty
    {
        return FormatError::Dirty {
            generation: now.header.generation,
        }
        .into();
    }
    error
}

/// An index into memory.
pub(super) fn index(offset: u64) -> Result<usize> {
    usize::try_from(offset).map_err(|_| Error::TooLarge {
        needed: offset,
        available: None,
    })
}

/// What stands before the payload, checked as far as that goes.
#[derive(Debug, Clone)]
pub(super) struct Front {
    pub(super) header: Header,
    pub(super) metadata: Metadata,
    pub(super) runs: Runs,
}

impl Front {
    pub(super) fn read<S: Source + ?Sized>(source: &S) -> Result<Self> {
        let mut scratch = Vec::new();
        let len = usize::try_from(source.len()).map_or(HEADER_LEN, |len| len.min(HEADER_LEN));
        let header = Header::decode(source.read(0, len, &mut scratch)?, source.len())?;

        let sections = &header.sections;
        let rest = index(sections.payload_offset)? - HEADER_LEN;
        let rest = source.read(HEADER_LEN as u64, rest, &mut scratch)?;
        let (bytes, padding) = rest.split_at(index(sections.metadata_len)?);
        if sum(bytes) != header.metadata_sum {
            return Err(FormatError::Checksum {
                part: "metadata",
                offset: HEADER_LEN as u64,
            }
            .into());
        }
        if !is_zero(padding) {
            return Err(field("padding before the payload", "set", "zeros").into());
        }
        let metadata = Metadata::decode(bytes)?;
        let runs = Runs::new(&header.geometry, metadata.growth.as_ref())?;
        if runs.len() != sections.payload_len {
            let got = sections.payload_len;
            return Err(field("length of the payload", got, runs.len()).into());
        }
        if metadata.window.is_some() != matches!(header.geometry, Geometry::Window(_)) {
            return Err(metadata::window_missing().into());
        }
        if let Some(growth) = &metadata.growth {
            check_insertions(header.insertions, growth)?;
        }
        Ok(Self {
            header,
            metadata,
            runs,
        })
    }

    /// Refuses a file that a writer left, or has, in between two generations.
    pub(super) fn refuse_dirty(&self) -> Result<(), FormatError> {
        if self.header.dirty {
            return Err(FormatError::Dirty {
                generation: self.header.generation,
            });
        }
        Ok(())
    }

    /// The hasher of a clean file, by the secret if one is needed.
    pub(super) fn unlock(&self, secret: Option<&Secret>) -> Result<KeyHasher> {
        self.refuse_dirty()?;
        self.header.hasher.hasher(secret)
    }

    /// Reads the checksum table, checked. Small beside the payload.
    pub(super) fn read_table<S: Source + ?Sized>(&self, source: &S) -> Result<Vec<u64>> {
        let mut sums = Vec::new();
        self.each_table_part(source, |part| {
            sums.extend(part.chunks_exact(8).map(le_word));
            Ok(())
        })?;
        Ok(sums)
    }

    /// Calls `visit` for the checksum table in parts, and checks it.
    fn each_table_part<S: Source + ?Sized>(
        &self,
        source: &S,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let sections = &self.header.sections;
        let mut scratch = Vec::new();
        let mut hasher = XxHash3_64::new();
        let mut at = sections.table_offset;
        while at < sections.file_len {
            let left = sections.file_len - at;
            let len = usize::try_from(left).map_or(MIB, |left| left.min(MIB));
            let part = source.read(at, len, &mut scratch)?;
            hasher.write(part);
            visit(part)?;
            at += len as u64;
        }
        if hasher.finish() != self.header.table_sum {
            return Err(FormatError::Checksum {
                part: "checksum table",
                offset: sections.table_offset,
            }
            .into());
        }
        Ok(())
    }

    /// Reads the payload MiB by MiB, checks each, and hands it to `visit`
    /// with its offset in the payload; zeros may be left out.
    pub(super) fn check_payload<S: Source + ?Sized>(
        &self,
        source: &S,
        mut visit: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        // First the table as a whole: a damaged sum is not a damaged payload.
        self.each_table_part(source, |_| Ok(()))?;
        let sections = &self.header.sections;
        let mut scratch = Vec::new();
        let mut mib = 0;
        self.each_table_part(source, |table| {
            for stored in table.chunks_exact(8).map(le_word) {
                let offset = mib * MIB as u64;
                let len = sections.mib_len(mib);
                let at = sections.payload_offset + offset;
                mib += 1;
                // A hole that is said to be one need not be read.
                if stored == zero_sum(len) && source.is_hole(at, len) {
                    continue;
                }
                let part = source.read(at, len, &mut scratch)?;
                if sum(part) != stored {
                    return Err(FormatError::Checksum {
                        part: "payload",
                        offset: at,
                    }
                    .into());
                }
                self.runs.check(offset, part)?;
                visit(offset, part)?;
            }
            Ok(())
        })
    }

    /// The words of every run, in memory and verified.
    pub(super) fn load_words<S: Source + ?Sized>(&self, source: &S) -> Result<Vec<Words>> {
        let mut words = self.runs.allocate()?;
        self.check_payload(source, |offset, part| {
            self.runs.copy(offset, part, &mut words)
        })?;
        for words in &mut words {
            words.make_native();
        }
        Ok(words)
    }

    /// The words of every run in a mapped file.
    fn map_words(&self, source: &FileSource) -> Result<Vec<Words>> {
        let map = words::map(&source.file)
            .map_err(|error| Error::io("map", Some(&source.path), error))?;
        let map = Arc::new(map);
        self.words_at(|offset, count| Words::in_map(map.clone(), offset, count))
    }

    /// The words of every run where they are in the file.
    pub(super) fn words_at(
        &self,
        mut at: impl FnMut(usize, usize) -> Result<Words>,
    ) -> Result<Vec<Words>> {
        self.runs
            .iter()
            .map(|run| {
                let offset = self.header.sections.payload_offset + run.offset;
                at(index(offset)?, index(run.words)?)
            })
            .collect()
    }

    /// Puts the filter together.
    pub(super) fn into_filter(self, hasher: KeyHasher, words: Vec<Words>) -> Result<AnyFilter> {
        self.into_filter_checked(hasher, words, None)
    }

    /// The same where the check of a deletable filter has begun.
    pub(super) fn into_filter_checked(
        self,
        hasher: KeyHasher,
        words: Vec<Words>,
        begun: Option<Checking>,
    ) -> Result<AnyFilter> {
        let Self {
            header, metadata, ..
        } = self;
        let about = About {
            identity: Identity {
                hasher,
                key_type: header.key_type,
                normalisation: metadata.normalisation,
            },
            promise: header.promise,
            labels: metadata.labels,
            attachments: metadata.attachments,
            insertions: header.insertions,
            generation: header.generation,
            kept: metadata.kept,
        };
        let mut words = words.into_iter();
        // Not reached: there is a run for every filter and every stage.
        let missing = || field("geometry", "no words", "some");
        match header.geometry {
            Geometry::DigestSet {
                spread, has_zero, ..
            } => {
                let slots = words.next().ok_or_else(missing)?;
                let set = DigestSet::from_parts(about, slots, spread, has_zero)?;
                if header.insertions.is_some_and(|known| known != set.len()) {
                    return Err(
                        field("insertions", format!("{:?}", header.insertions), set.len()).into(),
                    );
                }
                Ok(set.into())
            }
            Geometry::Bloom(shape) => {
                let words = words.next().ok_or_else(missing)?;
                Ok(Bloom::from_parts(about, shape, words).into())
            }
            Geometry::Classic(shape) => {
                let words = words.next().ok_or_else(missing)?;
                Ok(Classic::from_parts(about, shape, words).into())
            }
            Geometry::Counting(shape) => {
                let words = words.next().ok_or_else(missing)?;
                Ok(Counting::from_parts(about, shape, words).into())
            }
            Geometry::Deletable { shape, used } => {
                let words = words.next().ok_or_else(missing)?;
                Ok(Deletable::from_parts(about, shape, words, used, begun)?.into())
            }
            Geometry::Static(shape) => {
                let words = words.next().ok_or_else(missing)?;
                Ok(Static::from_parts(about, shape, words)?.into())
            }
            Geometry::Cascade(shape) => {
                let mut next = || words.next().ok_or_else(missing);
                let words = [next()?, next()?, next()?];
                Ok(Cascade::from_parts(about, shape, words)?.into())
            }
            Geometry::Window(shape) => {
                let words = words.next().ok_or_else(missing)?;
                let state = metadata.window.ok_or_else(metadata::window_missing)?;
                Ok(Window::from_parts(about, shape, words, state)?.into())
            }
            Geometry::Growable { .. } => {
                let growth = metadata.growth.ok_or_else(metadata::growth_missing)?;
                let stages = growth
                    .stages
                    .iter()
                    .zip(words)
                    .map(|(stage, words)| {
                        let mut own = About::new(about.identity.clone(), Some(stage.promise));
                        own.insertions = Some(stage.insertions);
                        Bloom::from_parts(own, stage.geometry, words)
                    })
                    .collect();
                Ok(Growable::from_parts(about, growth.plan, stages).into())
            }
        }
    }
}

/// A growable filter's insertions are those of its stages.
fn check_insertions(all: Option<u64>, growth: &metadata::Growth) -> Result<(), FormatError> {
    let sum = growth
        .stages
        .iter()
        .try_fold(0u64, |sum, stage| sum.checked_add(stage.insertions));
    match (all, sum) {
        (None, Some(_)) => Ok(()),
        (Some(all), Some(sum)) if all == sum => Ok(()),
        _ => Err(field(
            "insertions",
            format!("{all:?}"),
            "the sum of those of the stages",
        )),
    }
}

/// A little-endian word of eight bytes.
fn le_word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}
