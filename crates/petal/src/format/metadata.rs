//! The section of typed fields behind the header.
//!
//! Owns the byte layout of each field. To add a field: give it a tag below,
//! write it in [`encode`], read it in [`Metadata::decode`], describe it in
//! `FORMAT.md`.

use super::MAX_METADATA;
use super::cursor::Cursor;
use super::header::{field, promise_decode, split_decode, split_record};
use crate::error::{Error, FormatError, Result};
use crate::geometry::SplitGeometry;
use crate::identity::{About, Attachments, KeptField, Labels};
use crate::normalise::Normalisation;
use crate::sizing::{GrowthPlan, Promise};
use crate::window::{Generation, Overload, RingState, WindowSpan};

const NORMALISATION: u16 = 1;
const GROWTH: u16 = 2;
const LABEL: u16 = 3;
const ATTACHMENT: u16 = 4;
const WINDOW: u16 = 6;
const GROWTH_FACTOR: u16 = 7;

/// The growth factor of files that do not mention it.
const DOUBLING: u32 = 2;

/// Set for a field without which the answers would be wrong.
const MUST_UNDERSTAND: u8 = 1;

/// How a growable filter grows, and what it has become.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Growth {
    pub(crate) plan: GrowthPlan,
    pub(crate) stages: Vec<StageRecord>,
}

/// One stage of a growable filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageRecord {
    /// Keys it was sized for and the most it may err.
    pub promise: Promise,
    /// Insertions that changed a bit of it.
    pub insertions: u64,
    /// Its shape.
    pub geometry: SplitGeometry,
}

/// What the metadata says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metadata {
    pub(super) normalisation: Normalisation,
    pub(super) growth: Option<Growth>,
    pub(super) window: Option<RingState>,
    pub(super) labels: Labels,
    pub(super) attachments: Attachments,
    pub(super) kept: Vec<KeptField>,
}

/// The bytes of the section.
///
/// # Errors
/// If they would be more than a file may have.
pub(super) fn encode(
    about: &About,
    growth: Option<&Growth>,
    window: Option<&RingState>,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let normalisation = &about.identity().normalisation;
    if *normalisation != Normalisation::default() {
        let content = normalisation.encode();
        push(&mut bytes, NORMALISATION, MUST_UNDERSTAND, &[&content]);
    }
    if let Some(growth) = growth {
        push(&mut bytes, GROWTH, MUST_UNDERSTAND, &[&growth.encode()]);
        let factor = growth.plan.factor();
        if factor != DOUBLING {
            let content = factor.to_le_bytes();
            push(&mut bytes, GROWTH_FACTOR, MUST_UNDERSTAND, &[&content]);
        }
    }
    if let Some(window) = window {
        push(
            &mut bytes,
            WINDOW,
            MUST_UNDERSTAND,
            &[&encode_window(window)],
        );
    }
    for (name, value) in about.labels().iter() {
        push_pair(&mut bytes, LABEL, name, value.as_bytes());
    }
    for (name, content) in about.attachments().iter() {
        push_pair(&mut bytes, ATTACHMENT, name, content);
    }
    for kept in &about.kept {
        push(&mut bytes, kept.tag, 0, &[&kept.bytes]);
    }
    if bytes.len() as u64 > MAX_METADATA {
        return Err(Error::parameter(
            "metadata",
            format!("{} bytes", bytes.len()),
            format!("at most {MAX_METADATA}: use fewer or shorter labels and attachments"),
        ));
    }
    Ok(bytes)
}

/// Appends a field. Contents are bounded well below 2^32 bytes by their
/// types; one that were not would be refused with the section's length.
fn push(bytes: &mut Vec<u8>, tag: u16, flags: u8, contents: &[&[u8]]) {
    let len: usize = contents.iter().map(|part| part.len()).sum();
    bytes.extend(tag.to_le_bytes());
    bytes.push(flags);
    bytes.extend(u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes());
    for part in contents {
        bytes.extend(*part);
    }
}

/// Appends a field of name and value. Names are bounded by their types.
fn push_pair(bytes: &mut Vec<u8>, tag: u16, name: &str, value: &[u8]) {
    let len = u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes();
    push(bytes, tag, 0, &[&len, name.as_bytes(), value]);
}

/// Splits the content of a field of name and value.
fn pair<'a>(what: &'static str, content: &'a [u8]) -> Result<(&'a str, &'a [u8]), FormatError> {
    let mut cursor = Cursor::new(what, content);
    let len = cursor.u16()?;
    let name = text(what, cursor.bytes(len.into())?)?;
    Ok((name, cursor.take_rest()))
}

fn text<'a>(what: &'static str, bytes: &'a [u8]) -> Result<&'a str, FormatError> {
    std::str::from_utf8(bytes).map_err(|_| field(what, bytes.escape_ascii(), "UTF-8"))
}

impl Metadata {
    /// Reads the section, whose checksum has been checked.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let mut metadata = Self::default();
        let mut normalised = false;
        let mut factor = None;
        let mut cursor = Cursor::new("metadata", bytes);
        while cursor.left() > 0 {
            let tag = cursor.u16()?;
            let flags = cursor.u8()?;
            let len = usize::try_from(cursor.u32()?).unwrap_or(usize::MAX);
            let content = cursor.bytes(len)?;
            if flags & !MUST_UNDERSTAND != 0 {
                return Err(FormatError::Unknown {
                    what: "flags of a metadata field",
                    got: flags.into(),
                }
                .into());
            }
            match tag {
                NORMALISATION => {
                    once("normalisation", normalised)?;
                    normalised = true;
                    metadata.normalisation = Normalisation::decode(content)?;
                }
                GROWTH => {
                    once("growth", metadata.growth.is_some())?;
                    metadata.growth = Some(Growth::decode(content)?);
                }
                GROWTH_FACTOR => {
                    once("growth factor", factor.is_some())?;
                    let mut content = Cursor::new("growth factor", content);
                    let read = content.u32()?;
                    if read == DOUBLING || content.left() > 0 {
                        let expected = "four bytes, left out for a factor of 2";
                        return Err(field("growth factor", read, expected).into());
                    }
                    factor = Some(read);
                }
                WINDOW => {
                    once("window", metadata.window.is_some())?;
                    metadata.window = Some(decode_window(content)?);
                }
                LABEL => {
                    let (name, value) = pair("label", content)?;
                    let value = text("label", value)?;
                    metadata.labels.push_from_file(name, value)?;
                }
                ATTACHMENT => {
                    let (name, content) = pair("attachment", content)?;
                    metadata.attachments.push_from_file(name, content)?;
                }
                _ if flags & MUST_UNDERSTAND != 0 => {
                    return Err(FormatError::Unknown {
                        what: "metadata field",
                        got: tag.into(),
                    }
                    .into());
                }
                _ => metadata.kept.push(KeptField {
                    tag,
                    bytes: content.to_vec(),
                }),
            }
        }
        if let Some(factor) = factor {
            let growth = metadata.growth.as_mut().ok_or_else(growth_missing)?;
            let plan = growth.plan.with_factor(factor);
            growth.plan =
                plan.map_err(|error| field("growth factor", "an impossible plan", error))?;
        }
        Ok(metadata)
    }
}

fn once(name: &'static str, already: bool) -> Result<(), FormatError> {
    if already {
        return Err(field(name, "there twice", "once"));
    }
    Ok(())
}

/// How a growable filter without its field is refused.
pub(super) fn growth_missing() -> FormatError {
    field("growth", "missing", "there, as the kind is growable")
}

/// Bytes of the plan, before the stages.
const PLAN_BYTES: usize = 24;
/// Bytes of each stage.
const STAGE_BYTES: usize = 48;

impl Growth {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PLAN_BYTES + self.stages.len() * STAGE_BYTES);
        bytes.extend(self.plan.first().to_le_bytes());
        bytes.extend(self.plan.error().to_le_bytes());
        bytes.extend(self.plan.declared_ceiling().unwrap_or(0).to_le_bytes());
        for stage in &self.stages {
            bytes.extend(stage.promise.items.to_le_bytes());
            bytes.extend(stage.promise.error.to_le_bytes());
            bytes.extend(stage.insertions.to_le_bytes());
            for word in split_record(stage.geometry) {
                bytes.extend(word.to_le_bytes());
            }
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut cursor = Cursor::new("growth", bytes);
        let (first, error, ceiling) = (cursor.u64()?, cursor.f64()?, cursor.u64()?);
        let plan = match ceiling {
            0 => GrowthPlan::open(first, error),
            _ => GrowthPlan::ceiling(first, ceiling, error),
        };
        let plan = plan.map_err(|error| field("growth", "an impossible plan", error))?;
        let mut stages = Vec::new();
        while cursor.left() > 0 {
            let promise = promise_decode(cursor.u64()?, cursor.f64()?)?;
            let Some(promise) = promise else {
                return Err(field("n of a stage", 0, "at least 1"));
            };
            stages.push(StageRecord {
                promise,
                insertions: cursor.u64()?,
                geometry: split_decode(cursor.words()?)?,
            });
        }
        Ok(Self { plan, stages })
    }
}

/// How a window without its field, or its field in another kind, is refused.
pub(super) fn window_missing() -> FormatError {
    field(
        "window",
        "missing, or there needlessly",
        "there for a window and for no other kind",
    )
}

fn encode_window(state: &RingState) -> Vec<u8> {
    let (span, ticks) = match state.span {
        WindowSpan::Keys => (0u8, 0),
        WindowSpan::Time { ticks, overload } => match overload {
            Overload::Shorten => (1, ticks),
            Overload::Refuse => (2, ticks),
        },
    };
    let mut bytes = vec![span];
    bytes.extend(ticks.to_le_bytes());
    for lanes in [state.filling, state.expired, state.clearing] {
        bytes.extend(lanes.to_le_bytes());
    }
    for word in [
        state.cleared,
        state.now,
        state.shortened,
        state.complete_since,
    ] {
        bytes.extend(word.to_le_bytes());
    }
    for generation in &state.generations {
        for word in [generation.first, generation.last, generation.keys] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes
}

/// Whether the numbers fit each other and the geometry, the window decides.
fn decode_window(bytes: &[u8]) -> Result<RingState, FormatError> {
    let mut cursor = Cursor::new("window", bytes);
    let (span, ticks) = (cursor.u8()?, cursor.u64()?);
    let time = |overload| WindowSpan::Time { ticks, overload };
    let span = match (span, ticks) {
        (0, 0) => WindowSpan::Keys,
        (1, _) => time(Overload::Shorten),
        (2, _) => time(Overload::Refuse),
        _ => return Err(field("span of the window", span, "0, without ticks, to 2")),
    };
    let mut state = RingState {
        span,
        filling: cursor.u32()?,
        expired: cursor.u32()?,
        clearing: cursor.u32()?,
        cleared: cursor.u64()?,
        now: cursor.u64()?,
        shortened: cursor.u64()?,
        complete_since: cursor.u64()?,
        generations: Vec::new(),
    };
    while cursor.left() > 0 {
        let [first, last, keys] = cursor.words()?;
        state.generations.push(Generation { first, last, keys });
    }
    Ok(state)
}
