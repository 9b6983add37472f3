//! Writing whole files.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use super::checksum::{is_zero, sum, table_bytes, zero_sum};
use super::contents::{Contents, Stored, each_mib};
use super::header::{HasherRecord, Header};
use super::metadata::{self, Metadata};
use super::payload::Runs;
use super::sections::{HEADER_LEN, Sections};
use crate::any::AnyFilter;
use crate::atomic::{AtomicFile, Overwrite};
use crate::error::{Error, FormatError, Result};
use crate::hash::KeyKind;
use crate::typed::Typed;
use crate::words::Words;

impl AnyFilter {
    /// Writes the filter to a file: all of it or nothing. The file appears
    /// under its name only when it is whole and durable; until then an
    /// earlier file of that name stays as it was. A part of the filter that
    /// is all zeros takes no room where the file system has sparse files.
    ///
    /// It takes no lock: a program that replaces a file others may write to
    /// holds a [`crate::FileLock`] from before it reads until after it saves.
    ///
    /// # Errors
    /// If the file exists and is not to be replaced, the file system has not
    /// enough room (found out before writing), or an operation on it fails.
    pub fn save(&self, path: impl AsRef<Path>, overwrite: Overwrite) -> Result<()> {
        self.contents()?.save(path.as_ref(), overwrite)
    }

    /// Writes the bytes of a file to a stream.
    ///
    /// # Errors
    /// If the stream refuses them.
    pub fn write_to(&self, out: &mut dyn Write) -> Result<()> {
        self.contents()?.write_to(out)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// If there is not enough memory for them.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let contents = self.contents()?;
        let needed = contents.plan()?.sections.file_len;
        crate::memory::check(needed)?;
        let mut bytes = Vec::new();
        usize::try_from(needed)
            .ok()
            .and_then(|len| bytes.try_reserve_exact(len).ok())
            .ok_or(Error::TooLarge {
                needed,
                available: None,
            })?;
        contents.write_to(&mut bytes)?;
        Ok(bytes)
    }
}

#[expect(private_bounds, reason = "the bound lists the kinds of this library")]
impl<K: KeyKind, F: Stored> Typed<K, F> {
    /// Writes the filter to a file, as [`AnyFilter::save`].
    ///
    /// # Errors
    /// As there.
    pub fn save(&self, path: impl AsRef<Path>, overwrite: Overwrite) -> Result<()> {
        self.contents()?.save(path.as_ref(), overwrite)
    }
}

/// All of a file but the payload's sums: known without reading the words.
pub(super) struct Plan {
    metadata: Vec<u8>,
    pub(super) sections: Sections,
}

/// All of a file but the payload.
pub(super) struct Frame {
    /// Header, metadata and the zeros behind them.
    pub(super) front: Vec<u8>,
    pub(super) table: Vec<u8>,
    /// Bytes that the file takes if zero MiBs take none.
    room: u64,
}

impl Contents<'_> {
    pub(super) fn plan(&self) -> Result<Plan> {
        let metadata = metadata::encode(self.about, self.growth.as_ref(), self.window)?;
        let runs = Runs::new(&self.geometry, self.growth.as_ref())?;
        let sections = Sections::new(metadata.len() as u64, runs.len())
            .ok_or_else(|| Error::parameter("filter", format!("{} bytes", runs.len()), "fewer"))?;
        Ok(Plan { metadata, sections })
    }

    /// Bytes of the whole file.
    pub(super) fn file_len(&self) -> Result<u64> {
        Ok(self.plan()?.sections.file_len)
    }

    /// Everything but the payload, once its sums are known.
    pub(super) fn front(&self, plan: &Plan, table_sum: u64) -> Result<Vec<u8>> {
        let about = self.about;
        let header = Header {
            dirty: false,
            hasher: HasherRecord::of(&about.identity().hasher),
            key_type: about.identity().key_type,
            promise: about.promise(),
            geometry: self.geometry,
            insertions: about.insertions(),
            generation: about.generation(),
            sections: plan.sections,
            metadata_sum: sum(&plan.metadata),
            table_sum,
        };
        let mut front = header.encode().to_vec();
        front.extend(&plan.metadata);
        front.resize(
            front.len() + usize::try_from(plan.sections.padding()).unwrap_or(0),
            0,
        );
        // Nothing is written that could not be read again.
        Header::decode(&front, plan.sections.file_len).map_err(unwritable)?;
        Metadata::decode(&plan.metadata)?;
        Ok(front)
    }

    pub(super) fn frame(&self) -> Result<Frame> {
        let plan = self.plan()?;
        let mut sums = Vec::new();
        let mut room = HEADER_LEN as u64 + plan.sections.metadata_len;
        each_mib(&self.words, |mib| {
            if is_zero(mib) {
                sums.push(zero_sum(mib.len()));
            } else {
                sums.push(sum(mib));
                room += mib.len() as u64;
            }
            Ok(())
        })?;
        let table = table_bytes(&sums);
        Ok(Frame {
            front: self.front(&plan, sum(&table))?,
            room: room + table.len() as u64,
            table,
        })
    }

    fn write_to(&self, out: &mut dyn Write) -> Result<()> {
        let frame = self.frame()?;
        let mut put = |bytes: &[u8]| {
            out.write_all(bytes)
                .map_err(|error| Error::io("write", None, error))
        };
        put(&frame.front)?;
        each_mib(&self.words, &mut put)?;
        put(&frame.table)
    }

    fn save(&self, path: &Path, overwrite: Overwrite) -> Result<()> {
        self.frame()?.save(&self.words, path, overwrite)
    }
}

impl Frame {
    /// Of a file whose front and table are known.
    pub(super) fn new(front: Vec<u8>, table: Vec<u8>, words: &[&Words]) -> Result<Self> {
        let mut room = (front.len() + table.len()) as u64;
        each_mib(words, |mib| {
            if !is_zero(mib) {
                room += mib.len() as u64;
            }
            Ok(())
        })?;
        Ok(Self { front, table, room })
    }

    /// Writes the file around these words.
    pub(super) fn save(&self, words: &[&Words], path: &Path, overwrite: Overwrite) -> Result<()> {
        let mut file = AtomicFile::create(path, overwrite)?;
        file.check_room(self.room)?;
        let write = |file: &mut AtomicFile, bytes: &[u8]| {
            file.write_all(bytes)
                .map_err(|error| Error::io("write", Some(path), error))
        };
        write(&mut file, &self.front)?;
        each_mib(words, |mib| {
            if is_zero(mib) {
                // The table follows, so the file reaches past the hole.
                file.seek(SeekFrom::Current(mib.len() as i64))
                    .map_err(|error| Error::io("write", Some(path), error))?;
                Ok(())
            } else {
                write(&mut file, mib)
            }
        })?;
        write(&mut file, &self.table)?;
        file.commit()
    }
}

/// What a filter's own fields are refused with when they cannot be saved.
fn unwritable(error: FormatError) -> Error {
    match error {
        FormatError::Field {
            name,
            got,
            expected,
        } => Error::parameter(name, got, expected),
        other => other.into(),
    }
}

/// The front and the table of a file whose payload is all zeros, and the
/// sections between which the hole is.
pub(super) fn empty_file(contents: &Contents<'_>) -> Result<(Vec<u8>, Vec<u8>, Sections)> {
    let plan = contents.plan()?;
    let sums: Vec<u64> = (0..plan.sections.mibs())
        .map(|mib| zero_sum(plan.sections.mib_len(mib)))
        .collect();
    let table = table_bytes(&sums);
    Ok((contents.front(&plan, sum(&table))?, table, plan.sections))
}
