//! Sources to fingerprints, here or on a thread ahead.

use std::sync::mpsc;

use crate::error::Error;
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::source::{Records, Source};

/// Fingerprints that are handed from thread to thread at once, at least.
const PORTION: usize = 4096;

/// Portions that may wait.
const QUEUE: usize = 4;

/// Calls `visit` for every batch of a source with its fingerprints. Returns the records read.
pub(crate) fn batches<S: Source>(
    source: &S,
    hasher: &Fingerprinter,
    mut visit: impl FnMut(&S::Batch, &[Fingerprint]) -> Result<(), S::Error>,
) -> Result<u64, S::Error> {
    let mut fingerprints = Vec::new();
    let mut records = 0;
    source.scan(&mut |batch| {
        fingerprints.clear();
        batch.fingerprints(hasher, &mut fingerprints);
        if fingerprints.len() != batch.len() {
            return Err(S::Error::from(Error::Parameter {
                name: "fingerprints of a batch",
                got: fingerprints.len() as u64,
                expected: format!("one for each of its {} records", batch.len()),
            }));
        }
        records += batch.len() as u64;
        visit(batch, &fingerprints)
    })?;
    Ok(records)
}

/// Calls `take` with all fingerprints of a source, in order. With two threads or more, reading
/// and hashing happen on another one.
pub(crate) fn fingerprints<S: Source>(
    source: &S,
    hasher: &Fingerprinter,
    threads: usize,
    mut take: impl FnMut(&[Fingerprint]) -> Result<(), S::Error>,
) -> Result<u64, S::Error> {
    if threads < 2 {
        return batches(source, hasher, |_, fingerprints| take(fingerprints));
    }
    std::thread::scope(|scope| {
        let (fill, filled) = mpsc::sync_channel::<Vec<Fingerprint>>(QUEUE);
        let (used, empty) = mpsc::channel::<Vec<Fingerprint>>();
        let reader = scope.spawn(move || {
            // What is said when nobody listens any more; the listener knows why.
            let stopped = || S::Error::from(Error::io("go on", std::io::ErrorKind::BrokenPipe));
            let mut portion = Vec::with_capacity(2 * PORTION);
            let records = batches(source, hasher, |_, fingerprints| {
                portion.extend_from_slice(fingerprints);
                if portion.len() >= PORTION {
                    let mut next = empty.try_recv().unwrap_or_default();
                    next.clear();
                    let full = std::mem::replace(&mut portion, next);
                    fill.send(full).map_err(|_| stopped())?;
                }
                Ok(())
            })?;
            fill.send(portion).map_err(|_| stopped())?;
            Ok(records)
        });
        let mut taken = Ok(());
        for portion in &filled {
            taken = take(&portion);
            if taken.is_err() {
                break;
            }
            // The reader may have finished, and has no use for it.
            let _ = used.send(portion);
        }
        drop(filled);
        let read = reader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        taken.and(read)
    })
}
