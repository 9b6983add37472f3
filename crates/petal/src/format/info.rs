//! What a file says of itself, without its payload.

use super::header::{Geometry, HasherRecord, Header};
use super::metadata::{Metadata, StageRecord, growth_missing, window_missing};
use crate::any::Kind;
use crate::cascade::CascadeGeometry;
use crate::classic::ClassicGeometry;
use crate::counting::CountingGeometry;
use crate::error::{FormatError, Result};
use crate::geometry::SplitGeometry;
use crate::geometry::deletable::DeletableGeometry;
use crate::geometry::window::WindowGeometry;
use crate::hash::KeyType;
use crate::identity::{Attachments, Labels};
use crate::normalise::Normalisation;
use crate::ribbon::StaticGeometry;
use crate::sizing::{GrowthPlan, Promise};
use crate::window::WindowSpan;

/// The shape of the filter in a file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Shape {
    /// [`crate::DigestSet`]
    DigestSet {
        /// Slots of the table, 8 bytes each.
        slots: u64,
    },
    /// [`crate::Bloom`]
    Bloom(SplitGeometry),
    /// [`crate::Classic`]
    Classic(ClassicGeometry),
    /// [`crate::Growable`]
    Growable {
        /// How it grows.
        plan: GrowthPlan,
        /// Its stages, oldest first.
        stages: Vec<StageRecord>,
    },
    /// [`crate::Counting`]
    Counting(CountingGeometry),
    /// [`crate::Window`]
    Window {
        /// Lanes and lines.
        geometry: WindowGeometry,
        /// Keys or time.
        span: WindowSpan,
        /// The time told last; 0 in a window of keys.
        now: u64,
        /// Generations that were forgotten before their time.
        shortened: u64,
    },
    /// [`crate::Deletable`]
    Deletable {
        /// Slots and remainders.
        geometry: DeletableGeometry,
        /// Slots in use.
        used: u64,
    },
    /// [`crate::Static`]
    Static(StaticGeometry),
    /// [`crate::Cascade`]
    Cascade(CascadeGeometry),
}

/// What header and metadata of a file say. A secret is not needed for it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FileInfo {
    /// The version of the format.
    pub version: u16,
    /// The kind of filter.
    pub kind: Kind,
    /// Its shape.
    pub shape: Shape,
    /// How keys became digests.
    pub hasher: HasherRecord,
    /// What the keys are.
    pub key_type: KeyType,
    /// What was done to lines of text before they became keys.
    pub normalisation: Normalisation,
    /// The keys and the error it was sized for, if it was.
    pub promise: Option<Promise>,
    /// Insertions that changed a bit, if known.
    pub insertions: Option<u64>,
    /// 1 for a file saved from memory, one more for each commit in place.
    pub generation: u64,
    /// Whether a writer in place was interrupted, or is at work: keys after
    /// `generation` may be missing.
    pub dirty: bool,
    /// The labels.
    pub labels: Labels,
    /// The attachments.
    pub attachments: Attachments,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the metadata.
    pub metadata_bytes: u64,
    /// Where the payload starts, in bytes from the start of the file.
    pub payload_offset: u64,
    /// Bytes of the payload.
    pub payload_bytes: u64,
}

impl FileInfo {
    pub(super) fn new(header: &Header, metadata: Metadata) -> Result<Self, FormatError> {
        let shape = match (header.geometry, metadata.growth) {
            (Geometry::Window(geometry), _) => {
                let state = metadata.window.ok_or_else(window_missing)?;
                Shape::Window {
                    geometry,
                    span: state.span,
                    now: state.now,
                    shortened: state.shortened,
                }
            }
            (Geometry::Growable { .. }, Some(growth)) => Shape::Growable {
                plan: growth.plan,
                stages: growth.stages,
            },
            (Geometry::Deletable { shape, used }, _) => Shape::Deletable {
                geometry: shape,
                used,
            },
            (Geometry::Static(shape), _) => Shape::Static(shape),
            (Geometry::Cascade(shape), _) => Shape::Cascade(shape),
            (Geometry::Bloom(shape), _) => Shape::Bloom(shape),
            (Geometry::Classic(shape), _) => Shape::Classic(shape),
            (Geometry::Counting(shape), _) => Shape::Counting(shape),
            (Geometry::DigestSet { slots, .. }, _) => Shape::DigestSet { slots },
            (Geometry::Growable { .. }, None) => return Err(growth_missing()),
        };
        Ok(Self {
            version: super::VERSION,
            kind: header.geometry.kind(),
            shape,
            hasher: header.hasher,
            key_type: header.key_type,
            normalisation: metadata.normalisation,
            promise: header.promise,
            insertions: header.insertions,
            generation: header.generation,
            dirty: header.dirty,
            labels: metadata.labels,
            attachments: metadata.attachments,
            file_bytes: header.sections.file_len,
            metadata_bytes: header.sections.metadata_len,
            payload_offset: header.sections.payload_offset,
            payload_bytes: header.sections.payload_len,
        })
    }
}
