//! A whole file in memory, whatever its keys are.
//!
//! Owns [`Image`], the words of a file with all that stands around them, and
//! [`Parts`], the few bytes from which the rest follows. They need no secret,
//! as no key is asked about. What travels as parts and coded words is
//! [`crate::wire`]'s.

use std::borrow::Borrow;
use std::path::Path;

use super::checksum::{is_zero, sum, table_bytes, zero_sum};
use super::contents::Stored;
use super::header::{HasherRecord, Header};
use super::metadata::Metadata;
use super::payload::Runs;
use super::read::{Front, changed_meanwhile, index};
use super::sections::{HEADER_LEN, Sections};
use super::source::{FileSource, Source};
use super::write::Frame;
use crate::any::{AnyFilter, Kind};
use crate::atomic::Overwrite;
use crate::error::{Error, FormatError, Result};
use crate::hash::{KeyHasher, Secret};
use crate::words::Words;

/// Reads a whole regular file.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>> {
    let source = FileSource::open(path, false)?;
    crate::memory::check(source.len())?;
    let mut bytes = Vec::new();
    let len = index(source.len())?;
    bytes.try_reserve_exact(len).map_err(|_| Error::TooLarge {
        needed: source.len(),
        available: None,
    })?;
    source.read(0, len, &mut bytes)?;
    Ok(bytes)
}

/// Bytes of a header that do not follow from the rest of the file: those from
/// the version to the generation.
pub(crate) const FIELDS: usize = 88;

/// Where they begin.
const FIELDS_AT: usize = 8;

/// That from which all of a file but its words follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) fields: [u8; FIELDS],
    pub(crate) metadata: Vec<u8>,
    /// The sum of the checksum table, and so of all words.
    pub(crate) table_sum: u64,
}

/// A file in memory. Its words are owned, or those of a filter.
#[derive(Debug)]
pub(crate) struct Image<W> {
    shell: Shell,
    table: Vec<u8>,
    words: Vec<W>,
}

/// A file without its words.
#[derive(Debug)]
pub(crate) struct Shell {
    /// Header, metadata and the zeros behind them.
    bytes: Vec<u8>,
    front: Front,
}

/// The first bytes of a file of some length.
struct Beginning<'a> {
    bytes: &'a [u8],
    file_len: u64,
}

impl Source for Beginning<'_> {
    fn len(&self) -> u64 {
        self.file_len
    }

    fn read<'a>(&'a self, offset: u64, len: usize, scratch: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.bytes.read(offset, len, scratch)
    }

    fn is_hole(&self, _: u64, _: usize) -> bool {
        false
    }
}

impl Parts {
    /// All but the words of the file, every rule checked that can be without
    /// them.
    pub(crate) fn shell(&self) -> Result<Shell> {
        let metadata = Metadata::decode(&self.metadata)?;
        let geometry = Header::geometry_of(&self.fields)?;
        let runs = Runs::new(&geometry, metadata.growth.as_ref())?;
        let sections = Sections::new(self.metadata.len() as u64, runs.len()).ok_or_else(|| {
            super::header::field("length of the payload", runs.len(), "less than 2^64")
        })?;
        let mut bytes =
            Header::assemble(&self.fields, &sections, sum(&self.metadata), self.table_sum).to_vec();
        bytes.extend(&self.metadata);
        bytes.resize(bytes.len() + index(sections.padding())?, 0);
        Shell::read(bytes, sections.file_len)
    }
}

impl Shell {
    fn read(bytes: Vec<u8>, file_len: u64) -> Result<Self> {
        let front = Front::read(&Beginning {
            bytes: &bytes,
            file_len,
        })?;
        front.refuse_dirty()?;
        Ok(Self { bytes, front })
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.front.header.geometry.kind()
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.front.header.generation
    }

    /// The sum of the checksum table.
    pub(crate) const fn table_sum(&self) -> u64 {
        self.front.header.table_sum
    }

    /// Bytes of the file.
    pub(crate) const fn file_len(&self) -> u64 {
        self.front.header.sections.file_len
    }

    /// MiBs of the payload.
    pub(crate) const fn mibs(&self) -> u64 {
        self.front.header.sections.mibs()
    }

    /// Words of a MiB of the payload: the last one may have less.
    pub(crate) fn mib_words(&self, mib: u64) -> usize {
        self.front.header.sections.mib_len(mib) / 8
    }

    /// Refuses words that belong to other questions than these: of another
    /// kind or shape, or for other keys. A growable filter may have stages
    /// behind those of the `base`.
    pub(crate) fn accept_base(&self, base: &Self) -> Result<()> {
        let (mine, theirs) = (&self.front, &base.front);
        if self.kind() != base.kind() {
            return Err(Error::mismatch("kind", base.kind(), self.kind()));
        }
        let keys = |front: &Front| {
            format!(
                "{}, {:?}, {}",
                front.header.key_type, front.header.hasher, front.metadata.normalisation
            )
        };
        if keys(mine) != keys(theirs) {
            return Err(Error::mismatch("making of keys", keys(theirs), keys(mine)));
        }
        let stages = |front: &Front| -> Vec<_> {
            let growth = front.metadata.growth.iter();
            growth
                .flat_map(|growth| growth.stages.iter().map(|stage| stage.geometry))
                .collect()
        };
        let same = match self.kind() {
            Kind::Growable => stages(mine).starts_with(&stages(theirs)),
            _ => mine.header.geometry == theirs.header.geometry,
        };
        if !same {
            return Err(Error::mismatch(
                "geometry",
                format!("{:?}", theirs.header.geometry),
                format!("{:?}", mine.header.geometry),
            ));
        }
        Ok(())
    }

    /// Memory for all words.
    pub(crate) fn allocate(&self) -> Result<Vec<Words>> {
        self.front.runs.allocate()
    }

    /// Puts a MiB of the payload where it belongs, and gives its checksum.
    pub(crate) fn put(&self, mib: u64, words: &[u64], into: &mut [Words]) -> Result<u64> {
        let bytes = super::contents::le_bytes(words);
        if is_zero(&bytes) {
            return Ok(zero_sum(bytes.len()));
        }
        let offset = mib * super::MIB as u64;
        self.front.runs.check(offset, &bytes)?;
        self.front.runs.copy(offset, &bytes, into)?;
        Ok(sum(&bytes))
    }

    /// The file, if these are its words and their checksums.
    pub(crate) fn complete(self, sums: &[u64], mut words: Vec<Words>) -> Result<Image<Words>> {
        let table = table_bytes(sums);
        if sum(&table) != self.table_sum() {
            return Err(FormatError::Checksum {
                part: "words",
                offset: self.front.header.sections.payload_offset,
            }
            .into());
        }
        for words in &mut words {
            words.make_native();
        }
        Ok(Image {
            shell: self,
            table,
            words,
        })
    }
}

impl<'a> Image<&'a Words> {
    /// What a file of this filter would be.
    pub(crate) fn of(filter: &'a AnyFilter) -> Result<Self> {
        let contents = filter.contents()?;
        let Frame { front, table, .. } = contents.frame()?;
        let file_len = contents.file_len()?;
        Ok(Self {
            shell: Shell::read(front, file_len)?,
            table,
            words: contents.words,
        })
    }
}

impl Image<Words> {
    /// Reads a file and verifies all of it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let source = FileSource::open(path, false)?;
        Self::load(&source).map_err(|error| changed_meanwhile(&source, error))
    }

    fn load(source: &FileSource) -> Result<Self> {
        let front = Front::read(source)?;
        front.refuse_dirty()?;
        let words = front.load_words(source)?;
        let table = table_bytes(&front.read_table(source)?);
        let mut bytes = Vec::new();
        let len = index(front.header.sections.payload_offset)?;
        source.read(0, len, &mut bytes)?;
        Ok(Self {
            shell: Shell { bytes, front },
            table,
            words,
        })
    }

    /// The filter in it, by the secret if it is keyed.
    pub(crate) fn into_filter(self, secret: Option<&Secret>) -> Result<AnyFilter> {
        let hasher = self.shell.front.header.hasher.hasher(secret)?;
        self.shell.front.into_filter(hasher, self.words)
    }

    /// The filter in it, under a hasher that is known to be its own.
    pub(crate) fn into_filter_of(self, hasher: KeyHasher) -> Result<AnyFilter> {
        debug_assert_eq!(HasherRecord::of(&hasher), self.shell.front.header.hasher);
        self.shell.front.into_filter(hasher, self.words)
    }
}

impl<W: Borrow<Words>> Image<W> {
    pub(crate) const fn shell(&self) -> &Shell {
        &self.shell
    }

    pub(crate) fn parts(&self) -> Parts {
        let bytes = &self.shell.bytes;
        let mut fields = [0; FIELDS];
        fields.copy_from_slice(&bytes[FIELDS_AT..][..FIELDS]);
        let metadata = self.shell.front.header.sections.metadata_len;
        let metadata = usize::try_from(metadata).unwrap_or(0); // fits: at most 64 KiB
        Parts {
            fields,
            metadata: bytes[HEADER_LEN..][..metadata].to_vec(),
            table_sum: self.shell.table_sum(),
        }
    }

    /// The words of a MiB of the payload, zeros between runs and behind the
    /// last one, as many as `part` has.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "differences within words that are in memory"
    )]
    pub(crate) fn read(&self, mib: u64, part: &mut [u64]) {
        part.fill(0);
        let start = mib.saturating_mul(super::MIB as u64 / 8);
        let end = start.saturating_add(part.len() as u64);
        for (run, words) in self.shell.front.runs.iter().zip(&self.words) {
            let words = words.borrow().get();
            let first = run.offset / 8;
            let (from, to) = (start.max(first), end.min(first + words.len() as u64));
            if from < to {
                let count = (to - from) as usize;
                let source = &words[(from - first) as usize..][..count];
                part[(from - start) as usize..][..count].copy_from_slice(source);
            }
        }
    }

    /// Writes the file, as [`AnyFilter::save`] does.
    pub(crate) fn save(&self, path: &Path, overwrite: Overwrite) -> Result<()> {
        let words: Vec<&Words> = self.words.iter().map(Borrow::borrow).collect();
        Frame::new(self.shell.bytes.clone(), self.table.clone(), &words)?
            .save(&words, path, overwrite)
    }
}
