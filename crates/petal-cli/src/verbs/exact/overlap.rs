//! Which share of the first file's lines is in all others, at most, from samples.
//!
//! Owns the sizes of the samples: a line of one is in the other by chance, so they must be large
//! enough for both to have some hundred lines in common where it matters, yet small beside the
//! files. Only plain files can be sampled.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

use petal::{KeyHasher, mix_int};
use petal_exact::{Operation, Source};

use super::source::{FileSource, Key};
use crate::keys::KeyCounts;

/// Places that are looked at in a file: many, since lines that are common may lie together.
const PLACES: u64 = 2048;

/// With samples of s lines of files of N, s²/N times the share are found in both: at this many
/// for a share of 1, a share of 0.1 shows as 100.
const HITS: f64 = 1000.0;

/// A sample takes at most this share of a file: more would cost more than it can save.
const MOST: f64 = 0.1;

/// The share, if the operation has a use for it and the files can be sampled.
pub(super) fn measure(operation: Operation, sources: &[FileSource]) -> Option<f64> {
    let all = Operation::Common {
        at_least: sources.len(),
    };
    if sources.len() < 2 || operation != all {
        return None;
    }
    let first = Sample::take(&sources[0], 0)?;
    let mut least = 1.0f64;
    for (other, salt) in sources[1..].iter().zip(1..) {
        let other = Sample::take(other, salt)?;
        let hits = other.digests.intersection(&first.digests).count() as f64;
        let if_all_were = first.digests.len() as f64 * other.share;
        // Two standard deviations and some more than was found: a table for too few is worse
        // than a filter that is not used.
        least = least.min((hits + 2.0 * hits.sqrt() + 4.0) / if_all_were.max(1.0));
    }
    Some(least.clamp(0.0, 1.0))
}

/// Lines of some places of a file.
struct Sample {
    digests: HashSet<u64>,
    /// Which share of the file's bytes was looked at.
    share: f64,
}

impl Sample {
    /// Of a plain file whose number of lines could be estimated. Places are moved by a random
    /// distance that differs from file to file, so that files of one order are sampled
    /// independently.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and below the size of a file"
    )]
    fn take(source: &FileSource, salt: i64) -> Option<Self> {
        let facts = source.facts();
        let lines = facts.records? as f64;
        let file = File::open(source.path()).ok()?;
        let wanted = (HITS * lines).sqrt().min(MOST * lines) / lines;
        let stride = facts.bytes.div_ceil(PLACES);
        let len = (stride as f64 * wanted).ceil() as u64;
        let mut sample = Self {
            digests: HashSet::new(),
            share: 0.0,
        };
        let mut buffer = vec![0; usize::try_from(len).ok()?];
        let mut looked_at = 0;
        for place in 0..PLACES {
            let room = stride.saturating_sub(len).max(1);
            let moved = mix_int(place.cast_signed(), salt.cast_unsigned()) % room;
            let got = file.read_at(&mut buffer, place * stride + moved).ok()?;
            looked_at += sample.add(source, &buffer[..got]);
        }
        sample.share = looked_at as f64 / facts.bytes as f64;
        Some(sample)
    }

    /// Takes the whole lines of a piece; returns their bytes.
    fn add(&mut self, source: &FileSource, piece: &[u8]) -> u64 {
        let mut scratch = Vec::new();
        let mut counts = KeyCounts::default();
        let hasher = KeyHasher::default();
        let mut bytes = 0;
        // The first and the last part may be parts of lines.
        let mut whole = piece.split(|&byte| byte == source.terminator());
        whole.next();
        whole.next_back();
        for line in whole {
            bytes += line.len() as u64 + 1;
            let digest = match source.rules.key(line, &mut scratch, &mut counts) {
                Key::Bytes(key) => hasher.digest_bytes(key),
                Key::Int(key) => hasher.digest_bytes(&key),
                Key::None | Key::LeftOut => continue,
            };
            self.digests.insert(digest.bits());
        }
        bytes
    }
}
