//! Holds the producers of a queue to so many messages in a while.
//!
//! Any number of producers write to a queue, and some of them far too much. A
//! counter for each that ever wrote grows without end; here a counting filter
//! holds, for each producer, its messages in the last while. What leaves the
//! while is subtracted.
//!
//! ```console
//! $ cargo run --release --example message_throttle -- --limit 100 --window 10000 < messages.txt
//! ```
//!
//! A line is a time in milliseconds, the producer, and the message, with blanks
//! between them. Lines within the limit go to stdout; each producer that passed it is
//! named on stderr, and there is a summary at the end.
//!
//! A count is never below the truth, so that no producer gets past the limit.
//! It is above the truth for the share `--error` of the producers at most: the
//! filter takes so many for others.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use petal::{BloomFilter, Bytes, CounterBits, CountingBloomFilter, Increase, KeyHasher};

const USAGE: &str = "\
usage: message_throttle [--limit N] [--window MS] [--producers N] [--error P] < MESSAGES

  --limit N      messages of a producer within the window, 1 to 60000 (default 100)
  --window MS    its length in milliseconds, at least 4 (default 10000)
  --producers N  that write within a window (default 100000)
  --error P      the share of them that may be counted too high (default 0.0001)";

/// Parts of the window: it moves on by one of them at a time.
const PARTS: u64 = 4;

struct Options {
    limit: u64,
    window: u64,
    producers: u64,
    error: f64,
}

impl Options {
    fn parse(mut flags: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            limit: 100,
            window: 10_000,
            producers: 100_000,
            error: 1e-4,
        };
        while let Some(flag) = flags.next() {
            let value = flags.next().ok_or_else(|| USAGE.to_owned())?;
            let wrong = || format!("{flag} needs a number, got {value:?}\n{USAGE}");
            match flag.as_str() {
                "--limit" => options.limit = value.parse().map_err(|_| wrong())?,
                "--window" => options.window = value.parse().map_err(|_| wrong())?,
                "--producers" => options.producers = value.parse().map_err(|_| wrong())?,
                "--error" => options.error = value.parse().map_err(|_| wrong())?,
                _ => return Err(USAGE.to_owned()),
            }
        }
        if !(1..=60_000).contains(&options.limit) || options.window < PARTS {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }
}

/// Counts the messages of the last window: those of the current part of the
/// time and of the [`PARTS`] before it.
struct Throttle {
    limit: u64,
    part_length: u64,
    part: u64,
    /// All of `parts` together.
    window: CountingBloomFilter,
    /// The current part is the last.
    parts: VecDeque<CountingBloomFilter>,
    producers: u64,
    error: f64,
}

fn counts(producers: u64, error: f64) -> petal::Result<CountingBloomFilter> {
    CountingBloomFilter::<Bytes>::with_options(
        producers,
        error,
        KeyHasher::default(),
        CounterBits::Sixteen,
        Increase::All,
    )
}

impl Throttle {
    fn new(options: &Options) -> petal::Result<Self> {
        let (producers, error) = (options.producers, options.error);
        Ok(Self {
            limit: options.limit,
            part_length: options.window.div_ceil(PARTS),
            part: 0,
            window: counts(producers, error)?,
            parts: VecDeque::from([counts(producers, error)?]),
            producers,
            error,
        })
    }

    /// Moves on to the part of the time that `now` is in. Times that are behind
    /// count as the current part.
    fn advance(&mut self, now: u64) -> petal::Result<()> {
        let part = now / self.part_length;
        // After a long pause nothing is left of the window.
        let steps = part.saturating_sub(self.part).min(PARTS + 1);
        self.part = self.part.max(part);
        for _ in 0..steps {
            self.parts.push_back(counts(self.producers, self.error)?);
            if self.parts.len() as u64 > PARTS + 1
                && let Some(gone) = self.parts.pop_front()
            {
                self.window.subtract(&gone)?;
            }
        }
        Ok(())
    }

    /// Whether a message may pass. One that may not does not count.
    fn offer(&mut self, now: u64, producer: &[u8]) -> petal::Result<bool> {
        self.advance(now)?;
        if self.window.count(producer)? >= self.limit {
            return Ok(false);
        }
        self.window.insert(producer)?;
        if let Some(part) = self.parts.back_mut() {
            part.insert(producer)?;
        }
        Ok(true)
    }
}

/// The time and the producer of a line.
fn parse(line: &[u8]) -> Option<(u64, &[u8])> {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let time = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let producer = words.next()?.trim_ascii_end();
    (!producer.is_empty()).then_some((time, producer))
}

/// What passed and what did not.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    messages: u64,
    refused: u64,
    unreadable: u64,
    producers_refused: u64,
}

fn throttle(
    options: &Options,
    mut input: impl BufRead,
    mut out: impl Write,
    mut notes: impl Write,
) -> Result<Summary, String> {
    let text = |error: petal::Error| error.to_string();
    let mut throttle = Throttle::new(options).map_err(text)?;
    let mut named = BloomFilter::new(options.producers, 1e-6).map_err(text)?;
    let mut summary = Summary::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(|error| error.to_string())? == 0 {
            break;
        }
        let Some((time, producer)) = parse(&line) else {
            summary.unreadable += 1;
            continue;
        };
        summary.messages += 1;
        let written = if throttle.offer(time, producer).map_err(text)? {
            out.write_all(&line)
        } else {
            summary.refused += 1;
            if named.insert(producer).map_err(text)? {
                summary.producers_refused += 1;
                writeln!(notes, "over the limit: {}", producer.escape_ascii())
            } else {
                Ok(())
            }
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            written => written.map_err(|error| error.to_string())?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(summary),
    }
}

fn run() -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    let out = io::BufWriter::new(io::stdout().lock());
    let summary = throttle(&options, io::stdin().lock(), out, io::stderr())?;
    let _ = writeln!(
        io::stderr(),
        "{} messages, {} refused of {} producers, {} lines that cannot be read",
        summary.messages,
        summary.refused,
        summary.producers_refused,
        summary.unreadable
    );
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "message_throttle: {message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// SplitMix64.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = *state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    const LIMIT: u64 = 40;
    const WINDOW: u64 = 1000;

    /// 20 heavy producers, each with 150 messages a second, among 20000 that have
    /// a message or two.
    fn traffic() -> Vec<(u64, String)> {
        let mut state = 3;
        let mut messages = Vec::new();
        for time in 0..6000u64 {
            for _ in 0..3 {
                messages.push((time, format!("heavy-{}", random(&mut state) % 20)));
            }
            for _ in 0..10 {
                messages.push((time, format!("light-{}", random(&mut state) % 20_000)));
            }
        }
        messages
    }

    fn options() -> Options {
        Options {
            limit: LIMIT,
            window: WINDOW,
            producers: 20_000,
            error: 1e-4,
        }
    }

    /// Against exact times of what was let through.
    #[test]
    fn who_is_over_the_limit_is_found_and_nobody_under_half_of_it() {
        let mut throttle = Throttle::new(&options()).unwrap();
        let mut passed: HashMap<String, Vec<u64>> = HashMap::new();
        let mut refused = std::collections::HashSet::new();
        // What the filter covers at most: the current part and four before it.
        let covered = WINDOW + WINDOW / PARTS;
        for (time, producer) in traffic() {
            let times = passed.entry(producer.clone()).or_default();
            let within = |length: u64| times.iter().filter(|&&t| t + length > time).count() as u64;
            if throttle.offer(time, producer.as_bytes()).unwrap() {
                assert!(within(WINDOW) < LIMIT, "{producer} got past the limit");
                times.push(time);
            } else {
                assert!(
                    within(covered) > LIMIT / 2,
                    "{producer} was refused for nothing"
                );
                refused.insert(producer);
            }
        }
        let heavy: Vec<_> = refused
            .iter()
            .filter(|name| name.starts_with("heavy"))
            .collect();
        assert_eq!((heavy.len(), refused.len()), (20, 20));
        // They may go on all the time, at their limit.
        for producer in heavy {
            let most = 6 * LIMIT;
            let passed = passed[producer].len() as u64;
            assert!(
                passed <= most && passed >= most * 3 / 4,
                "{producer}: {passed}"
            );
        }
        assert_eq!(throttle.window.saturated(), 0);
    }

    /// What left the window is forgotten, to the last counter.
    #[test]
    fn after_a_pause_nothing_is_left() {
        let mut throttle = Throttle::new(&options()).unwrap();
        for _ in 0..LIMIT {
            assert!(throttle.offer(5, b"a").unwrap());
        }
        assert!(!throttle.offer(6, b"a").unwrap());
        assert!(!throttle.offer(WINDOW, b"a").unwrap());
        assert!(throttle.offer(WINDOW + 2 * WINDOW / PARTS, b"a").unwrap());
        throttle.advance(1 << 60).unwrap();
        assert_eq!(throttle.window.fill(), 0.0);
        // A clock that goes back does no harm.
        assert!(throttle.offer(0, b"a").unwrap());
    }

    #[test]
    fn lines_pass_or_are_counted() {
        let mut input = Vec::new();
        for _ in 0..LIMIT + 5 {
            input.extend(b"7 someone a message with blanks\n");
        }
        input.extend(b"8 other\nno time\n9\n\n10 someone last");
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        let summary = throttle(&options(), input.as_slice(), &mut out, &mut notes).unwrap();
        let expected = Summary {
            messages: LIMIT + 7,
            refused: 6,
            unreadable: 3,
            producers_refused: 1,
        };
        assert_eq!(summary, expected);
        assert_eq!(notes, b"over the limit: someone\n");
        let lines = out.split(|&byte| byte == b'\n').count() as u64;
        assert_eq!(lines, LIMIT + 2);
        assert!(out.ends_with(b"8 other\n"));
    }

    #[test]
    fn wrong_flags_are_named() {
        let parse = |text: &str| Options::parse(text.split_whitespace().map(String::from));
        assert!(parse("--limit 5 --window 100 --producers 9 --error 0.1").is_ok());
        for wrong in [
            "--limit",
            "--limit x",
            "--limit 0",
            "--window 3",
            "--what 1",
        ] {
            assert!(parse(wrong).err().unwrap().contains("usage"), "{wrong}");
        }
    }
}
