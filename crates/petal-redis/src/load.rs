//! A filter that comes in chunks.
//!
//! Owns telling the three formats apart (own dumps, files of petal's, dumps of
//! RedisBloom's Bloom filters), and what came of one so far. What becomes of it
//! when all came is the value's.

use petal::{AnyFilter, FileAssembly};
use petal_interop::{RedisBloom, RedisBloomLoader};

use crate::config;
use crate::engine::{Failure, Outcome};
use crate::frame::{self, PIECE, Parts};

/// First bytes of a file of petal's.
const FILE_MAGIC: &[u8] = b"\x89petal\r\n";

/// Bytes of a file in its first chunk, as it is given back.
const FIRST_OF_FILE: usize = 8;

/// What came so far.
#[derive(Debug)]
pub(crate) enum Loading {
    Own {
        magic: [u8; 8],
        description: Vec<u8>,
        parts: Parts,
    },
    File(Box<FileAssembly>),
    Foreign(Box<RedisBloomLoader>),
}

/// What it was.
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the usual one"
)]
pub(crate) enum Loaded {
    Own {
        description: Vec<u8>,
        filters: Vec<AnyFilter>,
    },
    File(AnyFilter),
    Foreign(RedisBloom),
}

/// How data is refused.
pub(crate) fn bad(error: &dyn std::fmt::Display) -> Failure {
    format!("ERR received bad data: {error}").into()
}

/// The same of a filter that all of came: for one whose secret is not here, with what to do.
fn unopened(error: &petal::Error) -> Failure {
    let petal::Error::Secret { expected, got } = error else {
        return Failure::broken(error);
    };
    let own = match got {
        None => "has none".to_owned(),
        Some(got) => format!("has another one, with check value {got:016x}"),
    };
    let text = format!(
        "the filter is keyed by a secret (check value {expected:016x}) and this server {own}: load \
         the module with the secret-file of the server that it comes from"
    );
    Failure::broken(&text)
}

impl Loading {
    /// Begins with the first chunk. What it becomes may take `most` bytes.
    pub(crate) fn begin(magic: [u8; 8], header: &[u8], most: u64) -> Outcome<Self> {
        if header.starts_with(FILE_MAGIC) {
            let mut file = Box::new(FileAssembly::new(most));
            file.push(header).map_err(|error| bad(&error))?;
            return Ok(Self::File(file));
        }
        if frame::is_header(magic, header) {
            let read = frame::read_header(magic, header);
            let read = read.ok_or_else(|| bad(&"the header is damaged"))?;
            let parts = Parts::new(&read, most).map_err(|error| bad(&error))?;
            let description = read.description.to_vec();
            return Ok(Self::Own {
                magic,
                description,
                parts,
            });
        }
        let loader = RedisBloomLoader::new(header).map_err(|error| bad(&error))?;
        if loader.bytes() > most {
            let text = format!(
                "it takes {} bytes: filter-max-bytes is {most}",
                loader.bytes()
            );
            return Err(bad(&text));
        }
        Ok(Self::Foreign(Box::new(loader)))
    }

    /// Takes the next chunk. Nothing is taken of one that is refused, but for a file:
    /// then the load is [`Failure::Broken`].
    pub(crate) fn push(&mut self, iterator: u64, chunk: &[u8]) -> Outcome {
        match self {
            Self::Own { parts, .. } => parts.push(iterator, chunk),
            Self::Foreign(loader) => loader.push(iterator, chunk).map_err(|error| bad(&error)),
            Self::File(file) => {
                let next = file
                    .come()
                    .saturating_add(chunk.len() as u64)
                    .saturating_add(1);
                if iterator != next || chunk.is_empty() {
                    return Err(bad(&format!("the iterator is {iterator}, expected {next}")));
                }
                file.push(chunk).map_err(|error| Failure::broken(&error))
            }
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Own { parts, .. } => parts.is_complete(),
            Self::File(file) => file.is_complete(),
            Self::Foreign(loader) => loader.is_complete(),
        }
    }

    /// What it is, when all of it came.
    pub(crate) fn finish(self) -> Outcome<Loaded> {
        Ok(match self {
            Self::Own {
                description, parts, ..
            } => {
                let filters = parts.finish().map_err(|error| unopened(&error))?;
                Loaded::Own {
                    description,
                    filters,
                }
            }
            Self::File(file) => {
                let filter = file.finish(config::secret());
                Loaded::File(filter.map_err(|error| unopened(&error))?)
            }
            Self::Foreign(loader) => {
                Loaded::Foreign(loader.finish().map_err(|error| Failure::broken(&error))?)
            }
        })
    }

    /// The chunk after an iterator, of what came.
    pub(crate) fn chunk_after(&self, iterator: u64) -> Outcome<Option<(u64, Vec<u8>)>> {
        let offset = iterator.saturating_sub(1);
        match (self, iterator) {
            (
                Self::Own {
                    magic,
                    description,
                    parts,
                },
                0,
            ) => {
                let data = frame::header(*magic, description, parts.fronts());
                Ok(Some((1, frame::seal(1, parts.identity(), &data))))
            }
            (Self::Own { parts, .. }, _) => parts.chunk_after(iterator),
            (Self::Foreign(loader), 0) => Ok(Some((1, loader.header().to_vec()))),
            (Self::Foreign(loader), _) => Ok(plain(iterator, loader.piece(offset, PIECE))),
            // The iterators count the bytes of the file from 1 on, and the first chunk has some.
            (Self::File(file), 0) => Ok(Some((1, file.piece(0, FIRST_OF_FILE)?))),
            (Self::File(file), 1) => {
                let begun = FIRST_OF_FILE as u64;
                Ok(plain(begun + 1, &file.piece(begun, PIECE)?))
            }
            (Self::File(file), _) => Ok(plain(iterator, &file.piece(offset, PIECE)?)),
        }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Own { parts, .. } => parts.bytes(),
            Self::File(file) => file.file_len().unwrap_or(0),
            Self::Foreign(loader) => loader.come(),
        }
    }
}

/// A chunk that is as it is, after an iterator; none if there is nothing in it.
pub(crate) fn plain(iterator: u64, piece: &[u8]) -> Option<(u64, Vec<u8>)> {
    let next = iterator.saturating_add(piece.len() as u64);
    (!piece.is_empty()).then(|| (next, piece.to_vec()))
}
