//! That equal fingerprints come from equal keys, by comparing the keys.
//!
//! Owns a pass over all sources of its own, before the operation: keys are gathered by
//! fingerprint, in memory or in partitions on disk, and each is compared with the first of its
//! fingerprint. When it has ended well, the operation's answer is exact without any condition.

use crate::error::Error;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::partition::Traffic;
use crate::plan::{KEY_HEAD, KEY_SHARE, verify_bits};
use crate::scratch::Scratch;
use crate::source::{Facts, Records, Source};
use crate::spill::SpillFile;
use crate::table::Table;

/// Bits of the fingerprint that divide keys further where a part does not fit.
const BITS: u32 = 5;

/// Bytes before a key on disk: its fingerprint and its length.
const HEAD: usize = KEY_HEAD;

/// Takes a key and its fingerprint.
type TakeKey<'t> = dyn FnMut(Fingerprint, &[u8]) -> Result<(), Error> + 't;

/// Why keys were not taken.
enum Refused {
    Full,
    Collision,
}

/// The first key of each fingerprint.
struct Keys {
    /// Where the key is in `bytes`, and how long it is.
    table: Table<[u64; 2]>,
    bytes: Vec<u8>,
    /// Most bytes of keys.
    room: usize,
}

impl Keys {
    fn new(memory: u64) -> Result<Self, Error> {
        Ok(Self {
            table: Table::new(0, memory / KEY_SHARE)?,
            bytes: Vec::new(),
            room: usize::try_from(memory / KEY_SHARE).unwrap_or(usize::MAX),
        })
    }

    fn take(&mut self, fingerprint: Fingerprint, key: &[u8]) -> Result<(), Refused> {
        let (new, place) = self.table.entry(fingerprint).map_err(|_| Refused::Full)?;
        if new {
            // One key is taken whatever its length: it cannot be divided.
            if !self.bytes.is_empty() && self.bytes.len() + key.len() > self.room {
                return Err(Refused::Full);
            }
            *place = [self.bytes.len() as u64, key.len() as u64];
            self.bytes.extend_from_slice(key);
            return Ok(());
        }
        let [start, len] = place.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        if self.bytes[start..start + len] == *key {
            Ok(())
        } else {
            Err(Refused::Collision)
        }
    }
}

/// Keys on disk, divided by their fingerprints.
struct Divider<'f> {
    file: &'f SpillFile,
    used: u32,
    bits: u32,
    buffers: Vec<Vec<u8>>,
    /// Bytes of a buffer before it is written.
    room: usize,
    /// Offset and length of what was written.
    chunks: Vec<Vec<(u64, usize)>>,
}

impl<'f> Divider<'f> {
    fn new(file: &'f SpillFile, used: u32, bits: u32, memory: u64) -> Self {
        Self {
            file,
            used,
            bits,
            buffers: vec![Vec::new(); 1 << bits],
            room: usize::try_from((memory / 4) >> bits)
                .unwrap_or(usize::MAX)
                .clamp(64, 1 << 18),
            chunks: vec![Vec::new(); 1 << bits],
        }
    }

    fn take(&mut self, fingerprint: Fingerprint, key: &[u8]) -> Result<(), Error> {
        let part = fingerprint.high << self.used >> (u64::BITS - self.bits);
        let part = usize::try_from(part).unwrap_or(0);
        let buffer = &mut self.buffers[part];
        buffer.extend_from_slice(bytemuck::bytes_of(&fingerprint));
        buffer.extend_from_slice(&(key.len() as u64).to_le_bytes());
        buffer.extend_from_slice(key);
        if buffer.len() >= self.room {
            self.write(part)?;
        }
        Ok(())
    }

    fn write(&mut self, part: usize) -> Result<(), Error> {
        let buffer = &mut self.buffers[part];
        if !buffer.is_empty() {
            let offset = self.file.append(buffer)?;
            self.chunks[part].push((offset, buffer.len()));
        }
        buffer.clear();
        // A long key leaves a large buffer.
        buffer.shrink_to(self.room);
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<Vec<(u64, usize)>>, Error> {
        for part in 0..self.buffers.len() {
            self.write(part)?;
        }
        Ok(self.chunks)
    }
}

/// Compares the keys of all records that have equal fingerprints.
pub(crate) fn check<S: Source>(
    sources: &[S],
    hasher: &Fingerprinter,
    memory: u64,
    scratch: &Scratch,
    traffic: &Traffic,
) -> Result<(), S::Error> {
    let facts: Vec<Facts> = sources.iter().map(Source::facts).collect();
    let mut bits = verify_bits(&facts, memory);
    if bits == 0 {
        if in_memory(sources, hasher, memory)?.is_some() {
            return Ok(());
        }
        bits = BITS;
    }
    let file = SpillFile::new(scratch)?;
    let mut divider = Divider::new(&file, 0, bits, memory);
    each_key(sources, hasher, &mut |fingerprint, key| {
        divider.take(fingerprint, key)
    })?;
    for chunks in divider.finish()? {
        compare(&file, &chunks, bits, memory, scratch, traffic)?;
    }
    traffic.add(&file);
    Ok(())
}

/// The same without a disk; `None` if the memory does not suffice.
fn in_memory<S: Source>(
    sources: &[S],
    hasher: &Fingerprinter,
    memory: u64,
) -> Result<Option<()>, S::Error> {
    let mut keys = Keys::new(memory)?;
    let mut full = false;
    let read = each_key(sources, hasher, &mut |fingerprint, key| {
        match keys.take(fingerprint, key) {
            Ok(()) => Ok(()),
            Err(Refused::Collision) => Err(Error::Collision),
            Err(Refused::Full) => {
                full = true;
                // Ends the pass, and is told to nobody.
                Err(Error::io("go on", std::io::ErrorKind::OutOfMemory))
            }
        }
    });
    if full { Ok(None) } else { read.map(Some) }
}

/// Calls `take` with every key of the sources and its fingerprint.
fn each_key<S: Source>(
    sources: &[S],
    hasher: &Fingerprinter,
    take: &mut TakeKey<'_>,
) -> Result<(), S::Error> {
    for source in sources {
        source.scan(&mut |batch| {
            let mut taken = Ok(());
            batch.keys(&mut |_, key| {
                if taken.is_ok() {
                    taken = take(hasher.of(key), key);
                }
            });
            Ok(taken?)
        })?;
    }
    Ok(())
}

/// Compares the keys of one part, or divides it further.
fn compare(
    file: &SpillFile,
    chunks: &[(u64, usize)],
    used: u32,
    memory: u64,
    scratch: &Scratch,
    traffic: &Traffic,
) -> Result<(), Error> {
    let mut keys = Keys::new(memory)?;
    let mut full = false;
    let read = each_on_disk(file, chunks, &mut |fingerprint, key| {
        keys.take(fingerprint, key)
            .map_err(|refused| match refused {
                Refused::Collision => Error::Collision,
                Refused::Full => {
                    full = true;
                    Error::io("go on", std::io::ErrorKind::OutOfMemory)
                }
            })
    });
    if !full {
        return read;
    }
    drop(keys);
    if used + BITS > u64::BITS {
        return Err(Error::NoMemory {
            needed: memory.saturating_mul(2),
            allowed: memory,
            what: "keys whose fingerprints agree in 64 bits",
        });
    }
    let parts = SpillFile::new(scratch)?;
    let mut divider = Divider::new(&parts, used, BITS, memory);
    each_on_disk(file, chunks, &mut |fingerprint, key| {
        divider.take(fingerprint, key)
    })?;
    for chunks in divider.finish()? {
        compare(&parts, &chunks, used + BITS, memory, scratch, traffic)?;
    }
    traffic.add(&parts);
    Ok(())
}

fn each_on_disk(
    file: &SpillFile,
    chunks: &[(u64, usize)],
    take: &mut TakeKey<'_>,
) -> Result<(), Error> {
    let torn = || {
        let text = "it does not hold what was written to it";
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, text);
        Error::io("read a temporary file", source)
    };
    let mut bytes = Vec::new();
    for &(offset, len) in chunks {
        bytes.resize(len, 0);
        file.read_at(&mut bytes, offset)?;
        let mut rest = bytes.as_slice();
        while let Some((head, after)) = rest.split_first_chunk::<HEAD>() {
            let (fingerprint, len) = head.split_at(16);
            let fingerprint = bytemuck::pod_read_unaligned(fingerprint);
            let len = len.try_into().map(u64::from_le_bytes).map_err(|_| torn())?;
            let len = usize::try_from(len).map_err(|_| torn())?;
            let (key, after) = after.split_at_checked(len).ok_or_else(torn)?;
            take(fingerprint, key)?;
            rest = after;
        }
        if !rest.is_empty() {
            return Err(torn());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::source::Memory;

    /// A batch whose fingerprints would be fine, but for one key that claims another's.
    #[test]
    fn two_keys_of_one_fingerprint_are_found_out() {
        let one = Fingerprint { high: 5, low: 9 };
        let mut keys = Keys::new(1 << 16).unwrap();
        assert!(keys.take(one, b"a").is_ok());
        assert!(keys.take(one, b"a").is_ok());
        assert!(matches!(keys.take(one, b"b"), Err(Refused::Collision)));
        assert!(matches!(keys.take(one, b""), Err(Refused::Collision)));

        let file = SpillFile::new(&Scratch::new(env!("CARGO_MANIFEST_DIR")).unwrap()).unwrap();
        let scratch = Scratch::new(env!("CARGO_MANIFEST_DIR")).unwrap();
        for second in [&b"long key"[..], b"long kex"] {
            let mut divider = Divider::new(&file, 0, BITS, 1 << 16);
            divider.take(one, b"long key").unwrap();
            divider.take(one, second).unwrap();
            let chunks = divider.finish().unwrap();
            let traffic = Traffic::default();
            let compared: Vec<_> = chunks
                .iter()
                .map(|chunks| compare(&file, chunks, BITS, 1 << 16, &scratch, &traffic))
                .collect();
            let collides = compared.iter().any(|c| matches!(c, Err(Error::Collision)));
            assert_eq!(collides, second != b"long key");
        }
    }

    #[test]
    fn keys_larger_than_the_memory_are_compared_in_parts() {
        let records: Vec<String> = (0..4000)
            .map(|i| format!("{:0>1$}", i % 1500, if i % 100 == 0 { 3000 } else { 20 }))
            .collect();
        let source = [Memory::new(records)];
        let scratch = Scratch::new(env!("CARGO_MANIFEST_DIR")).unwrap();
        let hasher = Fingerprinter::with_key([3; 16]);
        let mut written = Vec::new();
        for memory in [1 << 24, 1 << 16, 1 << 14] {
            let traffic = Traffic::default();
            check(&source, &hasher, memory, &scratch, &traffic).unwrap();
            written.push(traffic.written.load(Ordering::Relaxed));
        }
        assert!(
            written[0] == 0 && 0 < written[1] && written[1] < written[2],
            "{written:?}"
        );
    }
}
