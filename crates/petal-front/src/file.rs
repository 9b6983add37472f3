//! The filter's file: an ordinary petal file of a growable filter, with the mark that it stands
//! at.
//!
//! Owns what is recorded and what is accepted. Whatever is not accepted is a reason to rebuild.

use std::path::Path;

use petal::sizing::GrowthPlan;
use petal::{AnyFilter, Contains, Growable, Identity, KeyHasher, KeyType, Overwrite};

use crate::front::Options;
use crate::over::CODE_BYTES;
use crate::store::Mark;

/// The attachment: a version, what the filter is over, and the mark.
const NAME: &str = "petal-front";
const VERSION: u8 = 1;
const RECORD_BYTES: usize = 1 + CODE_BYTES + 16;

/// An empty filter for a number of keys.
pub(crate) fn empty(options: &Options, items: u64) -> petal::Result<AnyFilter> {
    let items = items.max(options.items);
    // One stage for what is expected: more come if there are more keys, and the error is kept.
    let plan = GrowthPlan::ceiling(items, items, options.error)?;
    let identity = Identity::new(KeyType::Bytes).with_hasher(hasher(options));
    let mut filter = Growable::with_plan(identity, plan)?;
    filter.labels_mut().set("over", &options.over.to_string())?;
    Ok(AnyFilter::Growable(filter))
}

fn hasher(options: &Options) -> KeyHasher {
    match &options.secret {
        Some(secret) => KeyHasher::Keyed {
            secret: secret.clone(),
        },
        None => KeyHasher::default(),
    }
}

/// Writes the mark into a filter that is about to be saved.
pub(crate) fn set_mark(filter: &mut AnyFilter, options: &Options, mark: Mark) -> petal::Result<()> {
    let mut record = vec![VERSION];
    record.extend(options.over.encode());
    record.extend(mark.generation.to_le_bytes());
    record.extend(mark.stamp.to_le_bytes());
    filter.set_attachment(NAME, record)?;
    filter.set_generation(mark.generation);
    Ok(())
}

/// Saves it in the place of the last one: whole and durable, or not at all.
pub(crate) fn save(filter: &AnyFilter, path: &Path) -> petal::Result<()> {
    filter.save(path, Overwrite::Replace)
}

/// Reads and verifies the file; why not, if it is of no use.
pub(crate) fn load(path: &Path, options: &Options) -> Result<(AnyFilter, Mark), String> {
    if !path.exists() {
        return Err("there is no filter".to_owned());
    }
    let filter = match AnyFilter::open(path, options.secret.as_ref()) {
        Ok(AnyFilter::Growable(filter)) => filter,
        Ok(other) => return Err(format!("the file holds a filter of kind {}", other.kind())),
        Err(error) => return Err(error.to_string()),
    };
    let about = filter.about();
    let identity = about.identity();
    if identity.key_type != KeyType::Bytes || identity.hasher != hasher(options) {
        return Err("the filter is of other keys or another hash".to_owned());
    }
    #[expect(clippy::float_cmp, reason = "what was given is stored bit for bit")]
    if filter.plan().error() != options.error {
        return Err(format!(
            "the filter is for an error of {}",
            filter.plan().error()
        ));
    }
    let record = about.attachment(NAME).unwrap_or_default();
    let Ok(record) = <&[u8; RECORD_BYTES]>::try_from(record) else {
        return Err("the filter is not that of a front".to_owned());
    };
    let (front, mark) = record.split_at(1 + CODE_BYTES);
    if front[0] != VERSION || front[1..] != options.over.encode() {
        let over = about.labels().get("over").unwrap_or("something else");
        return Err(format!(
            "the filter is over {over}, not over {}",
            options.over
        ));
    }
    let number = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&mark[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let mark = Mark {
        generation: number(0),
        stamp: number(8),
    };
    Ok((AnyFilter::Growable(filter), mark))
}
