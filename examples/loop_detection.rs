//! Drops packets that run in circles, by eight bytes in their header.
//!
//! After a change some routers still send by their old tables, and packets go
//! round until their time to live is used up. Here each packet carries a small
//! filter in which every router leaves its mark: who finds its own mark drops
//! the packet. That ends a loop at the first router that is met twice; now and
//! then it ends an innocent packet, how often is known exactly.
//!
//! ```console
//! $ cargo run --release --example loop_detection -- --routers 500 --broken 0.03 --packets 200000
//! ```
//!
//! Simulates a network with shortest routes, some routers of which send to a
//! neighbour at random, and prints what became of the packets with filters of
//! 4, 8 and 16 bytes.
//!
//! A mark is the digest of router *and* packet: with the same marks in every
//! packet, a route that is dropped by mistake once would be dropped always.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::ExitCode;

use petal::{KeyHasher, PacketFilter};

const USAGE: &str = "\
usage: loop_detection [--routers N] [--broken SHARE] [--packets N] [--seed N]

  --routers N     routers in the network, 3 to 5000 (default 500)
  --broken SHARE  of them that send to a neighbour at random (default 0.03)
  --packets N     packets between routers drawn at random (default 200000)
  --seed N        another network, other packets (default 1)";

/// Routers that a packet may visit where nothing else stops it.
const TIME_TO_LIVE: usize = 64;

/// Different routers on the longest path that the filters are made for.
const PATH: u64 = 8;

struct Options {
    routers: usize,
    broken: f64,
    packets: u64,
    seed: u64,
}

impl Options {
    fn parse(mut flags: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            routers: 500,
            broken: 0.03,
            packets: 200_000,
            seed: 1,
        };
        while let Some(flag) = flags.next() {
            let value = flags.next().ok_or_else(|| USAGE.to_owned())?;
            let wrong = || format!("{flag} needs a number, got {value:?}\n{USAGE}");
            match flag.as_str() {
                "--routers" => options.routers = value.parse().map_err(|_| wrong())?,
                "--broken" => options.broken = value.parse().map_err(|_| wrong())?,
                "--packets" => options.packets = value.parse().map_err(|_| wrong())?,
                "--seed" => options.seed = value.parse().map_err(|_| wrong())?,
                _ => return Err(USAGE.to_owned()),
            }
        }
        if !(3..=5000).contains(&options.routers) || !(0.0..=1.0).contains(&options.broken) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }
}

/// Numbers for the simulation: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from((u128::from(self.next()) * bound as u128) >> 64).unwrap_or(0)
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Routers and where each of them sends packets for each other one.
struct Network {
    /// `next[to][at]`: the neighbour to which `at` sends a packet for `to`.
    next: Vec<Vec<u16>>,
}

/// Where a packet goes if nobody drops it.
struct Route {
    /// The routers it visits, each for the first time.
    routers: Vec<u16>,
    /// Whether it then comes to one of them again.
    loops: bool,
}

impl Network {
    /// A ring with chords, about four neighbours each; `broken` of the routers
    /// send to a random neighbour, each packet of a destination to the same.
    fn new(routers: usize, broken: f64, random: &mut Random) -> Self {
        let mut neighbours = vec![Vec::new(); routers];
        let mut join = |a: usize, b: usize| {
            neighbours[a].push(b);
            neighbours[b].push(a);
        };
        for router in 0..routers {
            join(router, (router + 1) % routers);
            let other = random.below(routers);
            if other != router {
                join(router, other);
            }
        }
        let is_broken: Vec<bool> = (0..routers).map(|_| random.share() < broken).collect();
        let next = (0..routers)
            .map(|to| {
                let mut next = shortest(&neighbours, to);
                for (at, next) in next.iter_mut().enumerate() {
                    if is_broken[at] && at != to {
                        let around = &neighbours[at];
                        *next = number(around[random.below(around.len())]);
                    }
                }
                next
            })
            .collect();
        Self { next }
    }

    fn route(&self, from: usize, to: usize) -> Route {
        let mut routers = vec![number(from)];
        let mut at = from;
        while at != to {
            let next = self.next[to][at];
            if routers.contains(&next) {
                return Route {
                    routers,
                    loops: true,
                };
            }
            routers.push(next);
            at = usize::from(next);
        }
        Route {
            routers,
            loops: false,
        }
    }
}

fn number(router: usize) -> u16 {
    u16::try_from(router).unwrap_or(u16::MAX) // at most 5000
}

/// The neighbour of each router that is nearest to `to`.
fn shortest(neighbours: &[Vec<usize>], to: usize) -> Vec<u16> {
    let mut next = vec![None; neighbours.len()];
    next[to] = Some(number(to));
    let mut front = VecDeque::from([to]);
    while let Some(at) = front.pop_front() {
        for &neighbour in &neighbours[at] {
            if next[neighbour].is_none() {
                next[neighbour] = Some(number(at));
                front.push_back(neighbour);
            }
        }
    }
    // The ring reaches everybody.
    next.into_iter().map(|next| next.unwrap_or(0)).collect()
}

/// What became of the packets.
#[derive(Debug, Default)]
struct Report {
    delivered: u64,
    /// Packets whose route has a loop, and those of them that were dropped where
    /// they met a router again.
    looping: u64,
    caught: u64,
    /// Packets dropped by a router that had not seen them; how many of them the
    /// formula expects, and its variance.
    mistaken: u64,
    expected: f64,
    variance: f64,
    /// Hops that looping packets were carried, and would be without the filter.
    carried: u64,
    unfiltered: u64,
}

/// Sends packets between random routers, each with a filter of `BYTES` bytes.
fn send<const BYTES: usize>(
    network: &Network,
    packets: u64,
    random: &mut Random,
) -> petal::Result<Report> {
    let hasher = KeyHasher::default();
    let empty = PacketFilter::<BYTES>::for_path(PATH)?;
    let mut loss: Vec<f64> = Vec::new();
    let mut report = Report::default();
    for _ in 0..packets {
        let (from, to) = (
            random.below(network.next.len()),
            random.below(network.next.len()),
        );
        let nonce = random.next() << 16;
        let mark = |router: u16| hasher.digest_int((nonce | u64::from(router)).cast_signed());

        let Route { routers, loops } = network.route(from, to);
        while loss.len() <= routers.len() {
            loss.push(empty.lost_on_path(loss.len() as u64));
        }
        let lost = loss[routers.len()];
        report.expected += lost;
        report.variance += lost * (1.0 - lost);

        // All that the packet carries are these bytes.
        let mut header = empty.to_bytes();
        let mut hops = 0;
        let mut dropped = false;
        for &router in &routers {
            let mut filter = PacketFilter::from_bytes(header, empty.positions())?;
            dropped = filter.stamp(mark(router));
            header = filter.to_bytes();
            if dropped {
                break;
            }
            hops += 1;
        }
        report.mistaken += u64::from(dropped);
        if loops {
            report.looping += 1;
            report.unfiltered += TIME_TO_LIVE as u64;
            if !dropped {
                // Back at a router that it has the mark of.
                let last = routers[routers.len() - 1];
                let again = network.next[to][usize::from(last)];
                let mut filter = PacketFilter::from_bytes(header, empty.positions())?;
                report.caught += u64::from(filter.stamp(mark(again)));
                hops += 1;
            }
            report.carried += hops;
        } else {
            report.delivered += u64::from(!dropped);
        }
    }
    Ok(report)
}

fn row(out: &mut impl Write, bytes: usize, report: &Report) -> io::Result<()> {
    writeln!(
        out,
        "{bytes:5}  {:9}  {:7}  {:6}  {:8}  {:12.1}  {:11.2}  {:10}",
        report.delivered,
        report.looping,
        report.caught,
        report.mistaken,
        report.expected,
        report.carried as f64 / report.looping.max(1) as f64,
        TIME_TO_LIVE,
    )
}

fn run() -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut random = Random(options.seed);
    let network = Network::new(options.routers, options.broken, &mut random);
    let text = |error: petal::Error| error.to_string();
    let reports = [
        (
            4,
            send::<4>(&network, options.packets, &mut random).map_err(text)?,
        ),
        (
            8,
            send::<8>(&network, options.packets, &mut random).map_err(text)?,
        ),
        (
            16,
            send::<16>(&network, options.packets, &mut random).map_err(text)?,
        ),
    ];
    let mut out = io::stdout().lock();
    let printed = writeln!(
        out,
        "bytes  delivered  looping  caught  mistaken  by formula    hops each  without"
    )
    .and_then(|()| {
        reports
            .iter()
            .try_for_each(|(bytes, report)| row(&mut out, *bytes, report))
    });
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "loop_detection: {message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(report: &Report, packets: u64) {
        // Nothing that came back got past.
        let of_looping = report.looping - report.caught;
        assert!(of_looping <= report.mistaken);
        assert_eq!(
            report.delivered + report.caught + report.mistaken,
            packets,
            "{report:?}"
        );
        let off = (report.mistaken as f64 - report.expected).abs();
        assert!(off <= 5.0 * report.variance.sqrt(), "{report:?}");
        assert!(report.looping > 1000 && report.carried < report.unfiltered / 4);
    }

    #[test]
    fn loops_end_and_false_drops_are_those_of_the_formula() {
        let mut random = Random(7);
        let network = Network::new(300, 0.05, &mut random);
        let packets = 30_000;
        let small = send::<4>(&network, packets, &mut random).unwrap();
        let usual = send::<8>(&network, packets, &mut random).unwrap();
        let large = send::<16>(&network, packets, &mut random).unwrap();
        for report in [&small, &usual, &large] {
            check(report, packets);
        }
        assert!(small.expected > 3.0 * usual.expected && usual.expected > 10.0 * large.expected);
    }

    #[test]
    fn in_a_sound_network_all_packets_arrive_but_for_the_mistaken() {
        let mut random = Random(8);
        let network = Network::new(100, 0.0, &mut random);
        let report = send::<16>(&network, 10_000, &mut random).unwrap();
        assert_eq!((report.looping, report.carried), (0, 0));
        assert_eq!(report.delivered + report.mistaken, 10_000);
        assert!(report.mistaken <= 10, "{report:?}");
    }

    #[test]
    fn wrong_flags_are_named() {
        let parse = |text: &str| Options::parse(text.split_whitespace().map(String::from));
        assert!(parse("--routers 50 --broken 0 --packets 1 --seed 3").is_ok());
        for wrong in [
            "--routers",
            "--routers x",
            "--routers 2",
            "--broken 2",
            "--what 1",
        ] {
            assert!(parse(wrong).err().unwrap().contains("usage"), "{wrong}");
        }
    }
}
