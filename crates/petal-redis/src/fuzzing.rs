//! The loaders, for the fuzz targets: there is no server in these.
//!
//! Owns how bytes become chunks. The first one says how: chunks that are there as they are, or
//! the chunks of a filter in which bytes are changed under right checksums.

use petal::KeyHasher;

use crate::bloom::BloomKey;
use crate::bloom::filter::Filter;
use crate::bloom::spec::{Span, Spec};
use crate::cuckoo::CuckooKey;
use crate::cuckoo::chain::{self, Chain};
use crate::engine::types::Kept;
use crate::frame;

/// Bytes that a filter may take.
const MOST: u64 = 1 << 20;

/// Loads what the bytes say, and asks what came of it.
///
/// # Panics
/// Only where the loaders or the filters have a fault: which is what is looked for.
pub fn load(data: &[u8]) {
    let Some((&how, rest)) = data.split_first() else {
        return;
    };
    let deletable = how & 1 != 0;
    let chunks = if how & 2 != 0 {
        plain(rest)
    } else if deletable {
        edited(&chunks_of(&cuckoo(how >> 2)), rest)
    } else {
        edited(&chunks_of(&bloom(how >> 2)), rest)
    };
    if deletable {
        let value = loaded::<CuckooKey>(&chunks);
        if let Some(Ok(chain)) = value.as_ref().map(CuckooKey::chain)
            && let Ok(digest) = chain.digest(b"x")
        {
            let _ = (chain.contains(digest), chain.count(digest));
            let _ = (chain.error_now(), chain.slots());
        }
    } else if let Some(mut value) = loaded::<BloomKey>(&chunks) {
        let _ = value.change(|filter| {
            let _ = filter.contains(b"x", || 5);
            let added = filter.add_all(&[b"added"], || 5, || MOST)?;
            if added.changed.len() == 1 && filter.spec.window.is_none() {
                assert!(filter.contains(b"added", || 5)?);
            }
            let _ = (filter.capacity(), filter.items(), filter.expansion());
            Ok(())
        });
    }
}

/// Chunks, each behind its length in two bytes.
fn plain(mut data: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let (mut chunks, mut place) = (Vec::new(), 0);
    while let Some((len, rest)) = data.split_first_chunk::<2>() {
        let len = usize::from(u16::from_le_bytes(*len)).min(rest.len());
        let (chunk, behind) = rest.split_at(len);
        place += if place == 0 { 1 } else { len as u64 };
        chunks.push((place, chunk.to_vec()));
        data = behind;
    }
    chunks
}

/// Chunks with bytes changed, each change in four bytes: chunk, place (two) and the new byte.
fn edited(chunks: &[(u64, Vec<u8>)], edits: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut chunks = chunks.to_vec();
    for edit in edits.chunks_exact(4) {
        let chunk = usize::from(edit[0]) % chunks.len();
        let (place, sealed) = &mut chunks[chunk];
        let Some((identity, data)) = frame::unseal(*place, sealed) else {
            continue;
        };
        let mut data = data.to_vec();
        let at = usize::from(u16::from_le_bytes([edit[1], edit[2]])) % data.len();
        data[at] = edit[3];
        *sealed = frame::seal(*place, identity, &data);
    }
    chunks
}

fn chunks_of<T: Kept>(value: &T) -> Vec<(u64, Vec<u8>)> {
    let (mut all, mut place) = (Vec::new(), 0);
    while let Ok(Some(next)) = value.chunk_after(place) {
        place = next.0;
        all.push(next);
    }
    all
}

/// What came of the chunks. Those that are refused change nothing, so that the next is tried.
fn loaded<T: Kept>(chunks: &[(u64, Vec<u8>)]) -> Option<T> {
    let mut value: Option<T> = None;
    for (place, chunk) in chunks {
        match &mut value {
            None => value = T::begin(chunk, MOST).ok(),
            Some(value) => {
                let _ = value.push(*place, chunk);
            }
        }
        if let Some(value) = &value {
            let _ = (
                value.bytes(),
                value.chunk_after(0),
                value.chunk_after(*place),
            );
        }
    }
    value
}

const HASHER: KeyHasher = KeyHasher::Portable { seed: 3 };

fn bloom(which: u8) -> BloomKey {
    let (expansion, window) = match which % 4 {
        0 => (0, None),
        1 => (2, None),
        2 => (0, Some(Span::Keys)),
        _ => (0, Some(Span::Time(5000))),
    };
    let spec = Spec {
        capacity: 20,
        expansion,
        window,
        ..Spec::default_one()
    };
    let mut filter = Filter::reserve(spec, HASHER, MOST).expect("a small filter");
    let items: Vec<[u8; 1]> = (0..if expansion > 0 { 50 } else { 15 })
        .map(|i| [i])
        .collect();
    let items: Vec<&[u8]> = items.iter().map(<[u8; 1]>::as_slice).collect();
    let added = filter.add_all(&items, || 3, || MOST);
    added.expect("small items");
    BloomKey::new(filter)
}

fn cuckoo(which: u8) -> CuckooKey {
    let spec = chain::Spec {
        capacity: 20,
        expansion: 1,
        ..chain::Spec::default_one()
    };
    let mut chain = Chain::reserve(spec, HASHER, MOST).expect("a small chain");
    for item in 0..if which.is_multiple_of(2) { 15u8 } else { 60 } {
        let digest = chain.digest(&[item]).expect("an item");
        let added = chain.add(digest, || MOST);
        added.expect("an item").expect("room");
    }
    CuckooKey::new(chain)
}
