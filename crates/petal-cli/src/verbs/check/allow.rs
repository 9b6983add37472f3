//! `check --allow`: lines that are never hits.
//!
//! Owns the exact sets of their keys, one for each way in which the filters read lines.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::{Result, bail};
use petal::normalise::{Normal, Normalisation};

use crate::input::{Batch, Input, LineOptions, Lines};
use crate::os::display_name;
use crate::units::format_size;

/// The keys of the lists under one normalisation.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    keys: HashSet<Box<[u8]>>,
    bytes: u64,
}

/// What a key takes in a table besides its bytes: a place, and what the allocator adds.
const KEY_BYTES: u64 = 48;

impl Allowed {
    /// Reads the lists, which may take so many bytes together.
    pub(super) fn read(
        lists: &[PathBuf],
        normalisation: &Normalisation,
        options: &LineOptions,
        most: u64,
    ) -> Result<Self> {
        let mut allowed = Self::default();
        let mut batch = Batch::new(crate::walk::BATCH);
        for list in lists {
            let mut lines = Lines::new(Input::open(list)?, options);
            while lines.next_batch(&mut batch)? {
                for line in batch.iter() {
                    with_key(normalisation, line, |key| allowed.add(key));
                }
                if allowed.bytes > most {
                    bail!(
                        "{}: the exceptions take more than {}: allow more with --memory, or make \
                         them part of the filter (build --kind cascade --not-listed)",
                        display_name(list),
                        format_size(most)
                    );
                }
            }
        }
        Ok(allowed)
    }

    fn add(&mut self, key: &[u8]) {
        if self.keys.insert(key.into()) {
            self.bytes += key.len() as u64 + KEY_BYTES;
        }
    }

    /// Whether a line has a key that is in the lists.
    pub(super) fn has(&self, normalisation: &Normalisation, line: &[u8]) -> bool {
        let mut found = false;
        with_key(normalisation, line, |key| found = self.keys.contains(key));
        found
    }
}

/// Calls a function with the key of a line, if it has one; that of an integer is its eight bytes.
fn with_key(normalisation: &Normalisation, line: &[u8], then: impl FnOnce(&[u8])) {
    match normalisation.apply(line, &mut Vec::new()) {
        Normal::Key(key) | Normal::NotUrl(key) => then(key),
        Normal::Int(key) => then(&key.to_le_bytes()),
        Normal::NoField | Normal::Bad(_) => {}
    }
}
