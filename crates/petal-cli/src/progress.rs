//! Progress on the terminal: how far, how fast, how long still.
//!
//! It goes to stderr and only there, and shows itself only to somebody who waits: on a
//! terminal, without `-q`, after the first second.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter runs show nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// The progress of one pass over some bytes.
///
/// The line vanishes at [`Progress::finish`] and when this is dropped.
pub(crate) struct Progress {
    label: &'static str,
    total: Option<u64>,
    state: State,
}

enum State {
    Hidden,
    Waiting {
        since: Instant,
        patience: Duration,
        target: ProgressDrawTarget,
    },
    Shown(ProgressBar),
}

impl Progress {
    /// Starts the clock. `label` says what is being done; `total` is the number of bytes
    /// there are, if known, for the time left. `quiet` keeps it hidden: for `-q`, and where
    /// the results go to the terminal themselves.
    pub(crate) fn start(label: &'static str, total: Option<u64>, quiet: bool) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Self {
                label,
                total,
                state: State::Hidden,
            };
        }
        Self::on(ProgressDrawTarget::stderr(), PATIENCE, label, total)
    }

    fn on(
        target: ProgressDrawTarget,
        patience: Duration,
        label: &'static str,
        total: Option<u64>,
    ) -> Self {
        let state = State::Waiting {
            since: Instant::now(),
            patience,
            target,
        };
        Self {
            label,
            total,
            state,
        }
    }

    /// Tells how many bytes are done. Meant to be called once a batch: it reads the clock
    /// and draws a few times a second.
    #[inline]
    pub(crate) fn tick(&mut self, done: u64) {
        match &self.state {
            State::Hidden => {}
            State::Waiting {
                since, patience, ..
            } => {
                if since.elapsed() >= *patience {
                    self.show(done);
                }
            }
            State::Shown(bar) => bar.set_position(done),
        }
    }

    /// Takes the line away.
    pub(crate) fn finish(self) {
        if let State::Shown(bar) = self.state {
            bar.finish_and_clear();
        }
    }

    #[cold]
    fn show(&mut self, done: u64) {
        let State::Waiting { since, target, .. } =
            std::mem::replace(&mut self.state, State::Hidden)
        else {
            return;
        };
        let template = if self.total.is_some() {
            "{prefix}: {bytes} of {total_bytes} [{bar:20}] {percent} %, {bytes_per_sec}, {eta} left"
        } else {
            "{prefix}: {bytes}, {bytes_per_sec}, {elapsed}"
        };
        // The templates are checked by a test.
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(self.total, target)
            .with_style(style.progress_chars("=> "))
            .with_prefix(self.label)
            .with_elapsed(since.elapsed());
        bar.set_position(done);
        // What was done unseen must not count as the speed of this moment.
        bar.reset_eta();
        self.state = State::Shown(bar);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::sync::{Arc, Mutex};

    /// A terminal that remembers what was written.
    #[derive(Debug, Clone, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn on_paper(total: Option<u64>, patience: Duration) -> (Progress, Paper) {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
        (Progress::on(target, patience, "reading", total), paper)
    }

    #[test]
    fn both_forms_show_what_they_should() {
        for (total, parts) in [
            (
                Some(4 << 20),
                &["reading: 1.00 MiB of 4.00 MiB", "25 %", "left"][..],
            ),
            (None, &["reading: 1.00 MiB, "][..]),
        ] {
            let (mut progress, paper) = on_paper(total, Duration::ZERO);
            progress.tick(1 << 20);
            progress.tick(1 << 20);
            if let State::Shown(bar) = &progress.state {
                bar.force_draw();
            }
            let text = paper.0.lock().unwrap().clone();
            for part in parts {
                assert!(text.contains(part), "{part} is not in {text}");
            }
            progress.finish();
        }
    }

    #[test]
    fn a_short_run_shows_nothing() {
        let (mut progress, paper) = on_paper(Some(10), Duration::MAX);
        for done in 0..10 {
            progress.tick(done);
        }
        progress.finish();
        assert!(paper.0.lock().unwrap().is_empty());
    }

    #[test]
    fn quiet_is_hidden() {
        let mut progress = Progress::start("reading", None, true);
        assert!(matches!(progress.state, State::Hidden));
        progress.tick(1);
        assert!(matches!(progress.state, State::Hidden));
    }
}
