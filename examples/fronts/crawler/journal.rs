//! The journal: what has happened since the filter was saved, a line an event.
//!
//! Owns the text. A process that is killed leaves a last line that may be cut off: it is cut away.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// What can have happened. A canonical URL has no line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    /// The URL was waiting when the journal began.
    Waiting(&'a str),
    /// The URL is new: it is in the filter and waits.
    Found(&'a str),
    /// The URL is about to be fetched.
    Claimed(&'a str),
    /// The page has come, and all that it links to stands before this.
    Done(&'a str),
    /// The page will not come.
    Failed(&'a str),
}

impl<'a> Event<'a> {
    const fn parts(self) -> (u8, &'a str) {
        match self {
            Self::Waiting(url) => (b'~', url),
            Self::Found(url) => (b'+', url),
            Self::Claimed(url) => (b'>', url),
            Self::Done(url) => (b'=', url),
            Self::Failed(url) => (b'!', url),
        }
    }

    /// Appends the line of the event.
    pub(crate) fn write(self, lines: &mut Vec<u8>) {
        let (mark, url) = self.parts();
        lines.push(mark);
        lines.extend(url.as_bytes());
        lines.push(b'\n');
    }

    fn read(line: &'a str) -> Option<Self> {
        let mut rest = line.chars();
        let mark = rest.next()?;
        let url = rest.as_str();
        Some(match mark {
            '~' => Self::Waiting(url),
            '+' => Self::Found(url),
            '>' => Self::Claimed(url),
            '=' => Self::Done(url),
            '!' => Self::Failed(url),
            _ => return None,
        })
    }
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// Waits for the disk at each write: for what a power failure would take.
    sync: bool,
}

impl Journal {
    /// Opens a journal, hands over what is in it, and stands at its end.
    pub(crate) fn open(
        path: &Path,
        sync: bool,
        mut replay: impl FnMut(Event<'_>) -> Result<()>,
    ) -> Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .with_context(|| format!("{}", path.display()))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let whole = text
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        for (index, line) in text[..whole]
            .split_inclusive(|&byte| byte == b'\n')
            .enumerate()
        {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let event = std::str::from_utf8(line).ok().and_then(Event::read);
            let Some(event) = event else {
                bail!(
                    "{}: line {}: expected an event of a crawl: the file is damaged; begin anew \
                     with another folder",
                    path.display(),
                    index + 1
                );
            };
            replay(event)?;
        }
        Ok(Self { file, sync })
    }

    /// Appends lines in one write, so that a killed process has left all of them or a part.
    pub(crate) fn append(&mut self, lines: &[u8]) -> Result<()> {
        self.file.write_all(lines)?;
        if self.sync {
            self.file.sync_data()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_off_is_cut_away() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        std::fs::write(&path, "~a\n+b\n>a\n=a\n!x\n+htt").unwrap();
        let mut events = Vec::new();
        let mut see = |event: Event<'_>| {
            events.push(format!("{event:?}"));
            Ok(())
        };
        let mut journal = Journal::open(&path, false, &mut see).unwrap();
        let mut lines = Vec::new();
        Event::Found("c").write(&mut lines);
        journal.append(&lines).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"~a\n+b\n>a\n=a\n!x\n+c\n");
        assert_eq!(
            events,
            [
                "Waiting(\"a\")",
                "Found(\"b\")",
                "Claimed(\"a\")",
                "Done(\"a\")",
                "Failed(\"x\")"
            ]
        );
    }

    #[test]
    fn damage_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        for text in ["+a\nwhat\n", "+a\n\n", "+a\n+\u{fffd}\n"] {
            let bytes = text.replace('\u{fffd}', "\u{1}").into_bytes();
            std::fs::write(
                &path,
                bytes
                    .iter()
                    .map(|&b| if b == 1 { 0xff } else { b })
                    .collect::<Vec<_>>(),
            )
            .unwrap();
            let error = Journal::open(&path, false, |_| Ok(())).unwrap_err();
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }
}
