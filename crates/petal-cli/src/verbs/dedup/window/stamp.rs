//! When lines come: the times of a batch.
//!
//! Owns `--time-field`: where the time of a line stands. How a time is written is
//! [`crate::time`]'s.

use anyhow::{Result, bail};

use crate::args::DedupArgs;
use crate::input::Batch;
use crate::keys::{self, KeyedLines, Keys};
use crate::time;
use crate::walk::Prepare;

/// The field that has the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeField {
    /// From 1.
    pub(super) number: u32,
    delimiter: u8,
}

impl TimeField {
    /// What the flags say.
    pub(super) fn parse(args: &DedupArgs) -> Result<Option<Self>> {
        let (Some(number), Some(delimiter)) = (args.time_field, &args.keys.delimiter) else {
            return Ok(None);
        };
        if number == 0 {
            bail!("--time-field 0 is not possible: fields are counted from 1");
        }
        let delimiter = keys::delimiter_byte(delimiter)?;
        Ok(Some(Self { number, delimiter }))
    }

    /// The time of a line in microseconds since 1970.
    fn read(self, line: &[u8]) -> Option<u64> {
        let mut fields = line.split(|&byte| byte == self.delimiter);
        time::parse(fields.nth(usize::try_from(self.number).ok()? - 1)?)
    }
}

/// From lines to digests and times.
#[derive(Debug)]
pub(super) struct StampedKeys {
    pub(super) keys: Keys,
    pub(super) time: Option<TimeField>,
}

/// The digests of a batch and, if lines have times, that of each digest.
#[derive(Debug)]
pub(super) struct StampedLines {
    pub(super) keyed: KeyedLines,
    /// `None` where there is none to be read.
    pub(super) times: Vec<Option<u64>>,
}

impl Prepare for StampedKeys {
    type Ready = StampedLines;

    fn buffer(&self) -> StampedLines {
        StampedLines {
            keyed: self.keys.buffer(),
            times: Vec::new(),
        }
    }

    fn look(&self, batch: &Batch) -> Result<()> {
        self.keys.look(batch)
    }

    fn prepare(&self, batch: &Batch, ready: &mut StampedLines) -> Result<()> {
        self.keys.read(batch, &mut ready.keyed)?;
        ready.times.clear();
        let Some(field) = self.time else {
            return Ok(());
        };
        let mut without = ready.keyed.without().iter().map(|&(line, _)| line);
        let mut skipped = without.next();
        for (line, bytes) in batch.iter().enumerate() {
            if skipped == Some(line) {
                skipped = without.next();
            } else {
                ready.times.push(field.read(bytes));
            }
        }
        Ok(())
    }
}
