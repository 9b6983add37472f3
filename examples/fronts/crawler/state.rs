//! The state of a crawl: what was seen, what waits, what is on its way, and the folder that keeps
//! all of it.
//!
//! ```text
//! seen.petal   the filter, of generation g
//! journal.g    what has happened since it was saved, and what waited then
//! ```
//!
//! A save writes `journal.(g+1)`, then the filter of that generation, in whose place there is always
//! a whole one, and then removes the old journal. What is found beside the filter's own journal
//! when a crawl goes on is left from a save that did not end.

use std::collections::{HashSet, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use petal::normalise::Normalisation;
use petal::{AnyFilter, AtomicFile, Contains, FileLock, Overwrite, Secret};

use crate::journal::{Event, Journal};
use crate::seen::Seen;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) seen: Seen,
    pub(crate) waiting: VecDeque<String>,
    /// Claimed and neither done nor failed: by this process, or by one that was killed.
    pub(crate) on_their_way: HashSet<String>,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    folder: Option<Folder>,
}

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    journal: Journal,
    generation: u64,
    sync: bool,
    _lock: FileLock,
}

/// The attachment of the filter's file: pages done and failed, URLs new, the expectation.
const COUNTS: &str = "crawl";

/// How a crawl that is not in its folder yet begins.
pub(crate) struct Begin {
    pub(crate) items: u64,
    pub(crate) error: f64,
    pub(crate) normalisation: Normalisation,
}

impl State {
    /// Of a crawl that is not kept.
    pub(crate) fn unkept(seen: Seen) -> Self {
        Self {
            seen,
            waiting: VecDeque::new(),
            on_their_way: HashSet::new(),
            done: 0,
            failed: 0,
            folder: None,
        }
    }

    /// Begins a crawl in a folder, or goes on with the one that is there.
    pub(crate) fn open(
        path: &Path,
        begin: Begin,
        secret: Option<&Secret>,
        sync: bool,
    ) -> Result<Self> {
        std::fs::create_dir_all(path).with_context(|| format!("{}", path.display()))?;
        let filter_path = path.join("seen.petal");
        let lock = FileLock::acquire(&filter_path)?;
        if !filter_path.exists() {
            // Nothing was fetched before there was a filter. Its journal comes first.
            let left = std::fs::read_dir(path)?
                .filter_map(Result::ok)
                .any(|entry| {
                    let is_journal = entry.file_name().to_string_lossy().starts_with("journal.");
                    is_journal && entry.metadata().is_ok_and(|about| about.len() > 0)
                });
            ensure!(
                !left,
                "{}: the filter of this crawl is gone: begin anew in another folder",
                path.display()
            );
            std::fs::write(path.join(journal_name(1)), "")?;
            let secret = secret.cloned();
            let mut seen = Seen::sized(begin.items, begin.error, begin.normalisation, secret)?;
            save_filter(&mut seen, [0, 0], 1, &filter_path)?;
        }
        let filter = AnyFilter::open(&filter_path, secret)?;
        let counts = filter.about().attachment(COUNTS).unwrap_or_default();
        let Some([done, failed, new, expected]) = decode(counts) else {
            bail!("{}: not the filter of a crawl", filter_path.display());
        };
        let generation = filter.about().generation();
        let journal_path = path.join(journal_name(generation));
        let mut state = Self {
            done,
            failed,
            ..Self::unkept(Seen::resumed(filter, new, f64::from_bits(expected)))
        };
        let journal = Journal::open(&journal_path, sync, |event| state.replay(event))?;
        for other in [generation.wrapping_sub(1), generation + 1] {
            let _ = std::fs::remove_file(path.join(journal_name(other)));
        }
        state.folder = Some(Folder {
            path: path.to_path_buf(),
            journal,
            generation,
            sync,
            _lock: lock,
        });
        Ok(state)
    }

    fn replay(&mut self, event: Event<'_>) -> Result<()> {
        match event {
            Event::Waiting(url) => self.waiting.push_back(url.to_owned()),
            Event::Found(url) => {
                self.seen.insert(url)?;
                self.waiting.push_back(url.to_owned());
            }
            Event::Claimed(url) => {
                // In the order in which they wait; but for those that were on their way already.
                if self.waiting.front().is_some_and(|first| first == url) {
                    self.waiting.pop_front();
                }
                self.on_their_way.insert(url.to_owned());
            }
            Event::Done(url) => {
                self.on_their_way.remove(url);
                self.done += 1;
            }
            Event::Failed(url) => {
                self.on_their_way.remove(url);
                self.failed += 1;
            }
        }
        Ok(())
    }

    /// Lets what was on its way when a process was killed wait again.
    pub(crate) fn claim_again(&mut self) {
        for url in self.on_their_way.drain() {
            self.waiting.push_front(url);
        }
    }

    /// The URL that a crawl starts with, if it is new.
    pub(crate) fn start(&mut self, url: &str) -> Result<()> {
        let mut lines = Vec::new();
        self.find(url, &mut lines)?;
        self.append(&lines)
    }

    /// The next URL to fetch. The journal has it as claimed before anything is sent.
    pub(crate) fn claim(&mut self) -> Result<Option<String>> {
        let Some(url) = self.waiting.pop_front() else {
            return Ok(None);
        };
        let mut line = Vec::new();
        Event::Claimed(&url).write(&mut line);
        self.append(&line)?;
        self.on_their_way.insert(url.clone());
        Ok(Some(url))
    }

    /// A page has come; these are the URLs that it links to.
    pub(crate) fn done(&mut self, url: &str, links: &[String]) -> Result<()> {
        let mut lines = Vec::new();
        for link in links {
            self.find(link, &mut lines)?;
        }
        Event::Done(url).write(&mut lines);
        self.append(&lines)?;
        self.on_their_way.remove(url);
        self.done += 1;
        Ok(())
    }

    /// A page will not come.
    pub(crate) fn failed(&mut self, url: &str) -> Result<()> {
        let mut line = Vec::new();
        Event::Failed(url).write(&mut line);
        self.append(&line)?;
        self.on_their_way.remove(url);
        self.failed += 1;
        Ok(())
    }

    fn find(&mut self, url: &str, lines: &mut Vec<u8>) -> Result<()> {
        if self.seen.insert(url)? {
            Event::Found(url).write(lines);
            self.waiting.push_back(url.to_owned());
        }
        Ok(())
    }

    fn append(&mut self, lines: &[u8]) -> Result<()> {
        match &mut self.folder {
            Some(folder) => folder.journal.append(lines),
            None => Ok(()),
        }
    }

    /// Saves the filter and begins a new journal, so that the next one who goes on has little to
    /// replay.
    pub(crate) fn save(&mut self) -> Result<()> {
        let Some(folder) = &mut self.folder else {
            return Ok(());
        };
        let generation = folder.generation + 1;
        let mut lines = Vec::new();
        for url in &self.waiting {
            Event::Waiting(url).write(&mut lines);
        }
        for url in &self.on_their_way {
            Event::Claimed(url).write(&mut lines);
        }
        let journal_path = folder.path.join(journal_name(generation));
        let mut journal = AtomicFile::create(&journal_path, Overwrite::Replace)?;
        journal.write_all(&lines)?;
        journal.commit()?;
        let counts = [self.done, self.failed];
        save_filter(
            &mut self.seen,
            counts,
            generation,
            &folder.path.join("seen.petal"),
        )?;
        folder.journal = Journal::open(&journal_path, folder.sync, |_| Ok(()))?;
        let old = folder.path.join(journal_name(folder.generation));
        folder.generation = generation;
        Ok(std::fs::remove_file(old)?)
    }
}

fn journal_name(generation: u64) -> String {
    format!("journal.{generation}")
}

fn save_filter(seen: &mut Seen, counts: [u64; 2], generation: u64, path: &Path) -> Result<()> {
    let [done, failed] = counts;
    let counts = [done, failed, seen.new, seen.expected_missed.to_bits()];
    let counts = counts
        .iter()
        .flat_map(|count| count.to_le_bytes())
        .collect();
    let Some(filter) = seen.filter_mut() else {
        bail!("an exact set is not kept");
    };
    filter.set_attachment(COUNTS, counts)?;
    filter.set_generation(generation);
    Ok(filter.save(path, Overwrite::Replace)?)
}

fn decode(counts: &[u8]) -> Option<[u64; 4]> {
    let (counts, rest) = counts.as_chunks::<8>();
    let counts = <[[u8; 8]; 4]>::try_from(counts).ok()?;
    rest.is_empty().then(|| counts.map(u64::from_le_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::urls;

    fn open(folder: &Path) -> State {
        let normalisation = urls::normalisation(&[]).unwrap();
        let begin = Begin {
            items: 1000,
            error: 1e-9,
            normalisation,
        };
        State::open(folder, begin, None, false).unwrap()
    }

    fn links(urls: &[&str]) -> Vec<String> {
        urls.iter().map(|&url| url.to_owned()).collect()
    }

    #[test]
    fn a_crawl_goes_on_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = open(folder.path());
        state.start("a").unwrap();
        for save in [false, true, false] {
            let claimed = state.claim().unwrap().unwrap();
            let under = format!("{claimed}{}", u8::from(save));
            state
                .done(&claimed, &links(&[&claimed, &under, "b", "c", "d"]))
                .unwrap();
            if save {
                state.save().unwrap();
            }
            drop(state);
            state = open(folder.path());
            assert!(state.on_their_way.is_empty());
        }
        assert_eq!((state.done, state.failed), (3, 0));
        assert_eq!(state.waiting, ["c", "d", "a01", "b0"]);
        assert_eq!(state.seen.new, 7);
        state.start("a").unwrap();
        assert_eq!(state.waiting.len(), 4);
    }

    #[test]
    fn what_was_on_its_way_is_not_fetched_again_unless_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = open(folder.path());
        state.start("a").unwrap();
        state.start("b").unwrap();
        state.claim().unwrap();
        for _ in 0..3 {
            drop(state);
            state = open(folder.path());
            assert_eq!(state.waiting, ["b"]);
            assert!(state.on_their_way.contains("a"));
            state.save().unwrap();
        }
        state.claim_again();
        assert_eq!(state.claim().unwrap().as_deref(), Some("a"));
        state.failed("a").unwrap();
        drop(state);
        let state = open(folder.path());
        assert_eq!(
            (state.waiting.len(), state.on_their_way.len(), state.failed),
            (1, 0, 1)
        );
    }

    #[test]
    fn a_save_that_did_not_end_is_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = open(folder.path());
        state.start("a").unwrap();
        drop(state);
        // The next journal is there, and the filter is still the old one.
        std::fs::write(folder.path().join("journal.2"), "~other\n").unwrap();
        let mut state = open(folder.path());
        assert_eq!(state.waiting, ["a"]);
        state.save().unwrap();
        drop(state);
        // The filter is the new one, and the last journal is still there.
        std::fs::write(folder.path().join("journal.1"), "+other\n").unwrap();
        assert_eq!(open(folder.path()).waiting, ["a"]);
        assert!(!folder.path().join("journal.1").exists());
    }

    #[test]
    fn a_crawl_without_its_filter_does_not_begin_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut state = open(folder.path());
        state.start("a").unwrap();
        state.save().unwrap();
        drop(state);
        std::fs::remove_file(folder.path().join("seen.petal")).unwrap();
        let begin = Begin {
            items: 10,
            error: 0.1,
            normalisation: Normalisation::default(),
        };
        let error = State::open(folder.path(), begin, None, false).unwrap_err();
        assert!(
            error.to_string().contains("filter of this crawl is gone"),
            "{error}"
        );
    }
}
