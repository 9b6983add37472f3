//! Drops the duplicates of broadcast packets.
//!
//! In a flooded network a node hears every packet several times, over several
//! paths, within a short time. It passes on what it has not heard within the
//! last while, and drops the rest. Sequence numbers begin again, so that a node
//! that never forgot would in the end drop everything; and one that keeps a
//! table of all recent packets needs some 50 bytes for each.
//!
//! ```console
//! $ cargo run --release --example duplicate_packets -- --window 2000 --rate 50000 < capture.txt
//! ```
//!
//! A line of the capture is a time in milliseconds, a blank, and whatever
//! identifies the packet: here all that follows. Lines that came first go to
//! stdout as they are, a summary to stderr.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use petal::{Overload, WindowFilter};

const USAGE: &str = "\
usage: duplicate_packets [--window MS] [--rate PACKETS] [--error P] < CAPTURE

  --window MS     a packet is a duplicate within so many milliseconds (default 2000)
  --rate PACKETS  the most packets a second, duplicates not counted (default 100000)
  --error P       the share of new packets that may be dropped (default 0.0001)";

/// What the flags say.
struct Options {
    window: u64,
    rate: u64,
    error: f64,
}

impl Options {
    fn parse(mut flags: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            window: 2000,
            rate: 100_000,
            error: 1e-4,
        };
        while let Some(flag) = flags.next() {
            let value = flags.next().ok_or_else(|| USAGE.to_owned())?;
            let wrong = || format!("{flag} needs a number, got {value:?}\n{USAGE}");
            match flag.as_str() {
                "--window" => options.window = value.parse().map_err(|_| wrong())?,
                "--rate" => options.rate = value.parse().map_err(|_| wrong())?,
                "--error" => options.error = value.parse().map_err(|_| wrong())?,
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }

    /// The packets of a window.
    fn packets(&self) -> u64 {
        self.rate.saturating_mul(self.window).div_ceil(1000)
    }
}

/// Tells first packets from duplicates.
struct Detector {
    heard: WindowFilter,
}

impl Detector {
    fn new(options: &Options) -> petal::Result<Self> {
        let (ticks, packets) = (options.window, options.packets());
        let heard = WindowFilter::timed(ticks, packets, options.error, Overload::Shorten)?;
        Ok(Self { heard })
    }

    /// Whether a packet that comes now is the first of its kind within the
    /// window, which begins when a packet is passed on. A duplicate is not
    /// inserted again: it would take room in one generation after the other.
    fn is_first(&mut self, packet: &[u8], now: u64) -> petal::Result<bool> {
        self.heard.advance(now);
        if self.heard.contains(packet) {
            return Ok(false);
        }
        self.heard.insert(packet)
    }
}

/// What came of a capture.
#[derive(Debug, Default, PartialEq)]
struct Summary {
    packets: u64,
    duplicates: u64,
    /// Lines that were no packets.
    skipped: u64,
}

/// Passes on the lines whose packets came first.
fn run(
    detector: &mut Detector,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<Summary, String> {
    let mut summary = Summary::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(|error| format!("cannot read: {error}"))? == 0 {
            break;
        }
        let Some((now, packet)) = parsed(&line) else {
            summary.skipped += 1;
            continue;
        };
        summary.packets += 1;
        let first = detector.is_first(packet, now);
        if !first.map_err(|error| error.to_string())? {
            summary.duplicates += 1;
        } else if let Err(error) = output.write_all(&line) {
            return Err(format!("cannot write: {error}"));
        }
    }
    let flushed = output.flush();
    flushed.map_err(|error| format!("cannot write: {error}"))?;
    Ok(summary)
}

/// The time of a line and its packet.
fn parsed(line: &[u8]) -> Option<(u64, &[u8])> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let blank = line.iter().position(|&byte| byte == b' ')?;
    let (time, packet) = line.split_at(blank);
    let time = std::str::from_utf8(time).ok()?.parse().ok()?;
    Some((time, &packet[1..]))
}

fn main() -> ExitCode {
    let work = || -> Result<String, String> {
        let options = Options::parse(std::env::args().skip(1))?;
        let mut detector = Detector::new(&options).map_err(|error| error.to_string())?;
        let mut output = io::BufWriter::new(io::stdout().lock());
        let summary = run(&mut detector, &mut io::stdin().lock(), &mut output)?;
        let heard = &detector.heard;
        Ok(format!(
            "{} packets, {} duplicates dropped, {} lines skipped; {} KiB, error now {:.1e}{}",
            summary.packets,
            summary.duplicates,
            summary.skipped,
            heard.geometry().bytes() >> 10,
            heard.error_now(),
            match heard.shortened() {
                0 => String::new(),
                times =>
                    format!("; more packets than --rate: the window was shortened {times} times"),
            }
        ))
    };
    let (text, code) = match work() {
        Ok(summary) => (summary, ExitCode::SUCCESS),
        Err(message) => (message, ExitCode::from(2)),
    };
    // A message that stderr does not take has nowhere else to go.
    let _ = writeln!(io::stderr(), "{text}");
    code
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// A generator of SplitMix64.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut x = self.0;
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (x ^ (x >> 31)) % bound
        }
    }

    /// A flooded network, as one node hears it: senders number their packets
    /// from 0 to 499 and begin again, and each packet comes once to six times
    /// within 300 ms.
    fn traffic(milliseconds: u64, a_millisecond: u64) -> Vec<(u64, String)> {
        let mut random = Random(7);
        let mut sent = HashMap::new();
        let mut heard = Vec::new();
        for now in 0..milliseconds {
            for _ in 0..a_millisecond {
                let sender = random.below(50);
                let number = sent.entry(sender).or_insert(0u64);
                *number = (*number + 1) % 500;
                for _ in 0..=random.below(6) {
                    let packet = format!("10.0.0.{sender} {number}");
                    heard.push((now + random.below(300), packet));
                }
            }
        }
        heard.sort();
        heard
    }

    #[test]
    fn duplicates_are_dropped_and_later_numbers_are_not() {
        let options = Options {
            window: 1000,
            rate: 20_000,
            error: 1e-3,
        };
        let mut detector = Detector::new(&options).unwrap();
        let traffic = traffic(5000, 10);
        let capture: String = traffic
            .iter()
            .map(|(now, packet)| format!("{now} {packet}\n"))
            .collect();
        let mut passed = Vec::new();
        let summary = run(&mut detector, &mut capture.as_bytes(), &mut passed).unwrap();
        assert_eq!(summary.packets, traffic.len() as u64);
        assert_eq!(summary.skipped, 0);
        assert_eq!(detector.heard.shortened(), 0);

        // An exact table of when each packet was passed on last says the same,
        // but for the error.
        let passed = String::from_utf8(passed).unwrap();
        let mut passed = passed.lines().peekable();
        let mut last = HashMap::new();
        let (mut new, mut lost, mut wrapped) = (0u64, 0u64, 0u64);
        for (now, packet) in &traffic {
            let was_passed = passed
                .next_if(|line| *line == format!("{now} {packet}"))
                .is_some();
            let before = last.get(packet).copied();
            if was_passed {
                last.insert(packet, *now);
            }
            match before {
                Some(before) if now - before <= 1000 => assert!(!was_passed, "{now} {packet}"),
                // Within a generation after the window it may be either.
                Some(before) if now - before <= 1000 + 72 => {}
                _ => {
                    new += 1;
                    lost += u64::from(!was_passed);
                    wrapped += u64::from(before.is_some());
                }
            }
        }
        assert_eq!(passed.next(), None);
        assert!(new > 40_000 && wrapped > 15_000, "{new}, {wrapped}");
        let expected = new as f64 * options.error;
        assert!(
            (lost as f64) < expected + 5.0 * expected.sqrt(),
            "{lost} for {expected}"
        );
    }

    #[test]
    fn more_packets_than_planned_shorten_the_window() {
        let options = Options {
            window: 1000,
            rate: 1000,
            error: 1e-3,
        };
        let mut detector = Detector::new(&options).unwrap();
        for (now, packet) in traffic(3000, 10) {
            detector.is_first(packet.as_bytes(), now).unwrap();
        }
        assert!(detector.heard.shortened() > 0);
        assert!(detector.heard.complete_since() > 2000);
        assert!(detector.heard.error_now() <= 2e-3);
    }

    #[test]
    fn lines_without_a_time_are_skipped() {
        let options = Options::parse(["--window", "10"].map(String::from).into_iter()).unwrap();
        let mut detector = Detector::new(&options).unwrap();
        let capture = b"5 a\nno time\n\n6 a\n15 b\n17 a\n7 \xff\n-1 x\n";
        let mut passed = Vec::new();
        let summary = run(&mut detector, &mut &capture[..], &mut passed).unwrap();
        assert_eq!(passed, b"5 a\n15 b\n17 a\n7 \xff\n");
        assert_eq!(
            (summary.packets, summary.duplicates, summary.skipped),
            (5, 1, 3)
        );
        assert!(Options::parse(["--window".to_owned()].into_iter()).is_err());
        assert!(Options::parse(["--rate".to_owned(), "x".to_owned()].into_iter()).is_err());
    }
}
