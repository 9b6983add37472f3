//! A whole filter as few bytes: each MiB of its words a coded run.

use std::borrow::Borrow;

use super::container::{self, Lead};
use super::model;
use crate::any::Kind;
use crate::error::{Error, Result};
use crate::format::{Image, Shell};
use crate::words::Words;

/// Bytes that a MiB takes at least.
const LEAST_OF_MIB: u64 = 8;

/// Refuses kinds whose bits are not independent, which other codes suit.
pub(super) fn accept(shell: &Shell, operation: &'static str) -> Result<()> {
    match shell.kind() {
        Kind::Bloom | Kind::Classic | Kind::Growable => Ok(()),
        kind => Err(Error::Unsupported {
            operation,
            kind: kind.name(),
        }),
    }
}

pub(super) fn pack<W: Borrow<Words>>(image: &Image<W>) -> Result<Vec<u8>> {
    let shell = image.shell();
    accept(shell, "packing")?;
    let lead = Lead {
        parts: image.parts(),
        base: None,
    };
    let mut bytes = lead.encode();
    let mut words = Vec::new();
    for mib in 0..shell.mibs() {
        words.resize(shell.mib_words(mib), 0);
        image.read(mib, &mut words);
        model::encode(&words, &mut bytes);
    }
    Ok(container::seal(bytes))
}

pub(super) fn unpack(bytes: &[u8]) -> Result<Image<Words>> {
    let (lead, mut rest) = Lead::decode(bytes)?;
    if lead.base.is_some() {
        return Err(Error::parameter(
            "packed filter",
            "a delta",
            "apply it to the filter that it leads from (`petal apply-delta`)",
        ));
    }
    let shell = lead.parts.shell()?;
    accept(&shell, "packing")?;
    container::check_room(&rest, shell.mibs(), LEAST_OF_MIB)?;
    let mut words = shell.allocate()?;
    let mut sums = Vec::new();
    let mut part = Vec::new();
    for mib in 0..shell.mibs() {
        part.resize(shell.mib_words(mib), 0);
        model::decode(&mut rest, &mut part)?;
        sums.push(shell.put(mib, &part, &mut words)?);
    }
    container::at_end(&rest)?;
    shell.complete(&sums, words)
}
