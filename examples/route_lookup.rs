//! Finds who has a key in a network of peers, without asking everybody.
//!
//! Each node keeps, for each of its links, one filter for every distance: that of
//! distance d has the keys of all nodes that are d hops away by that link. A
//! question goes on only where a filter within the hops that are left says yes;
//! flooding would send it over every link. Nodes know no more than what their
//! neighbours tell them: the filter of distance d of a link is the union of those
//! of distance d - 1 that the neighbour has for its other links.
//!
//! After Rhea and Kubiatowicz, "Probabilistic Location and Routing" (2002), who
//! call such a stack of filters attenuated.
//!
//! ```console
//! $ cargo run --release --example route_lookup -- --nodes 1000 --keys 50 --hops 4 --error 0.01
//! ```
//!
//! A filter never misses a key, so neither does a question: each node on the
//! shortest way to a key is asked by the one before it. What it costs are
//! messages where a filter says yes by mistake, counted and compared with their
//! expected number.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;

use petal::{BloomFilter, Int, KeyHasher, Merge};

const USAGE: &str = "\
usage: route_lookup [--nodes N] [--keys N] [--hops N] [--error P] [--lookups N] [--seed N]

  --nodes N    nodes in the network, 3 to 20000 (default 1000)
  --keys N     keys of each node, 1 to 10000 (default 50)
  --hops N     how far a question goes at most, 1 to 6 (default 4)
  --error P    error of each filter (default 0.01)
  --lookups N  questions for keys that somebody has, and as many for keys that
               nobody has (default 10000)
  --seed N     another network, other questions (default 1)";

struct Options {
    nodes: usize,
    keys: usize,
    hops: usize,
    error: f64,
    lookups: u64,
    seed: u64,
}

impl Options {
    fn parse(mut flags: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            nodes: 1000,
            keys: 50,
            hops: 4,
            error: 0.01,
            lookups: 10_000,
            seed: 1,
        };
        while let Some(flag) = flags.next() {
            let value = flags.next().ok_or_else(|| USAGE.to_owned())?;
            let wrong = || format!("{flag} needs a number, got {value:?}\n{USAGE}");
            match flag.as_str() {
                "--nodes" => options.nodes = value.parse().map_err(|_| wrong())?,
                "--keys" => options.keys = value.parse().map_err(|_| wrong())?,
                "--hops" => options.hops = value.parse().map_err(|_| wrong())?,
                "--error" => options.error = value.parse().map_err(|_| wrong())?,
                "--lookups" => options.lookups = value.parse().map_err(|_| wrong())?,
                "--seed" => options.seed = value.parse().map_err(|_| wrong())?,
                _ => return Err(USAGE.to_owned()),
            }
        }
        let possible = (3..=20_000).contains(&options.nodes)
            && (1..=10_000).contains(&options.keys)
            && (1..=6).contains(&options.hops);
        if possible {
            Ok(options)
        } else {
            Err(USAGE.to_owned())
        }
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
}

/// A link as one of its ends sees it.
struct Link {
    to: usize,
    /// What lies behind it, by distance: the filter of the neighbour itself first.
    behind: Vec<BloomFilter<Int>>,
}

/// A node: what it has, and what it knows.
struct Node {
    keys: BTreeSet<i64>,
    links: Vec<Link>,
}

struct Network {
    nodes: Vec<Node>,
    hops: usize,
}

/// A ring with chords: about four neighbours each, in order.
fn neighbours(nodes: usize, random: &mut Random) -> Vec<Vec<usize>> {
    let mut neighbours = vec![BTreeSet::new(); nodes];
    for node in 0..nodes {
        for other in [(node + 1) % nodes, random.below(nodes)] {
            if other != node {
                neighbours[node].insert(other);
                neighbours[other].insert(node);
            }
        }
    }
    let lists = neighbours.into_iter();
    lists.map(|around| around.into_iter().collect()).collect()
}

/// The keys that the filters of the greatest distance get on average: of a node
/// for each way of that length that leads on from a link. Some get more; their
/// error is larger, which costs messages and no key.
fn mean_keys(neighbours: &[Vec<usize>], keys: usize, hops: usize) -> u64 {
    let mut ways: Vec<Vec<usize>> = neighbours.iter().map(|n| vec![1; n.len()]).collect();
    for _ in 1..hops {
        let longer = |from: usize, to: usize| {
            let on = neighbours[to].iter().zip(&ways[to]);
            let on = on.filter(|&(&next, _)| next != from).map(|(_, ways)| ways);
            on.sum::<usize>().min(neighbours.len())
        };
        let next = |(from, around): (usize, &Vec<usize>)| {
            around.iter().map(|&to| longer(from, to)).collect()
        };
        ways = neighbours.iter().enumerate().map(next).collect();
    }
    let (all, links) = (
        ways.iter().flatten().sum::<usize>(),
        ways.iter().flatten().count(),
    );
    (all * keys / links.max(1)).max(keys) as u64
}

impl Network {
    fn new(options: &Options, random: &mut Random) -> petal::Result<Self> {
        let around = neighbours(options.nodes, random);
        let items = mean_keys(&around, options.keys, options.hops);
        // All of one shape, so that they can be united.
        let empty = || BloomFilter::<Int>::with_hasher(items, options.error, KeyHasher::default());
        let mut nodes: Vec<Node> = Vec::with_capacity(options.nodes);
        for around in &around {
            let keys = (0..options.keys).map(|_| random.next().cast_signed());
            let links = around.iter().map(|&to| Link {
                to,
                behind: Vec::new(),
            });
            nodes.push(Node {
                keys: keys.collect(),
                links: links.collect(),
            });
        }
        for distance in 0..options.hops {
            // What each node is told, before anybody knows more.
            let mut told: Vec<Vec<BloomFilter<Int>>> = Vec::with_capacity(nodes.len());
            for (at, node) in nodes.iter().enumerate() {
                let mut of_links = Vec::with_capacity(node.links.len());
                for link in &node.links {
                    let mut filter = empty()?;
                    let neighbour = &nodes[link.to];
                    if distance == 0 {
                        for key in &neighbour.keys {
                            filter.insert(key)?;
                        }
                    } else {
                        for other in neighbour.links.iter().filter(|other| other.to != at) {
                            filter.union_with(&other.behind[distance - 1])?;
                        }
                    }
                    of_links.push(filter);
                }
                told.push(of_links);
            }
            for (node, of_links) in nodes.iter_mut().zip(told) {
                for (link, filter) in node.links.iter_mut().zip(of_links) {
                    link.behind.push(filter);
                }
            }
        }
        Ok(Self {
            nodes,
            hops: options.hops,
        })
    }

    /// Bytes of the filters of a link.
    fn bytes_a_link(&self) -> u64 {
        let filters = self.nodes[0].links[0].behind.iter();
        filters.map(|filter| filter.geometry().bytes()).sum()
    }

    /// Asks for a key, from a node on: by the filters, or by flooding. All nodes
    /// that get the question in a round pass it on in the next; who has had it
    /// already does not, and neither does who has the key.
    fn ask(&self, from: usize, key: i64, way: Way) -> Answer {
        let mut answer = Answer::default();
        let mut asked = BTreeSet::from([from]);
        let mut front = vec![(from, None)];
        for left in (1..=self.hops).rev() {
            let mut next = Vec::new();
            for (at, sender) in front {
                let node = &self.nodes[at];
                if node.keys.contains(&key) {
                    answer.found = true;
                    continue;
                }
                for link in node.links.iter().filter(|link| Some(link.to) != sender) {
                    let within = &link.behind[..left];
                    if way == Way::Flooding || within.iter().any(|filter| filter.contains(&key)) {
                        answer.messages += 1;
                        if asked.insert(link.to) {
                            next.push((link.to, Some(at)));
                        }
                    }
                }
            }
            front = next;
        }
        answer.found |= front
            .iter()
            .any(|(at, _)| self.nodes[*at].keys.contains(&key));
        answer
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Filters,
    Flooding,
}

#[derive(Debug, Default)]
struct Answer {
    found: bool,
    messages: u64,
}

/// What many questions came to.
#[derive(Debug, Default)]
struct Report {
    lookups: u64,
    /// Keys found by flooding, and those of them that the filters missed.
    reachable: u64,
    missed: u64,
    messages: u64,
    flooded: u64,
}

impl Report {
    fn add(&mut self, network: &Network, from: usize, key: i64) {
        let guided = network.ask(from, key, Way::Filters);
        let flooded = network.ask(from, key, Way::Flooding);
        self.lookups += 1;
        self.reachable += u64::from(flooded.found);
        self.missed += u64::from(flooded.found && !guided.found);
        self.messages += guided.messages;
        self.flooded += flooded.messages;
    }
}

/// Questions for keys that somebody has, and for keys that nobody has.
fn lookups(network: &Network, count: u64, random: &mut Random) -> (Report, Report) {
    let (mut there, mut nowhere) = (Report::default(), Report::default());
    for _ in 0..count {
        let from = random.below(network.nodes.len());
        let keys = &network.nodes[random.below(network.nodes.len())].keys;
        if let Some(&key) = keys.iter().nth(random.below(keys.len())) {
            there.add(network, from, key);
        }
        nowhere.add(network, from, random.next().cast_signed());
    }
    (there, nowhere)
}

fn row(out: &mut impl Write, name: &str, report: &Report) -> io::Result<()> {
    let each = |messages: u64| messages as f64 / report.lookups.max(1) as f64;
    writeln!(
        out,
        "{name:14}  {:7}  {:12}  {:6}  {:14.2}  {:8.2}",
        report.lookups,
        report.reachable,
        report.missed,
        each(report.messages),
        each(report.flooded),
    )
}

fn run() -> Result<(), String> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut random = Random(options.seed);
    let network = Network::new(&options, &mut random).map_err(|error| error.to_string())?;
    let (there, nowhere) = lookups(&network, options.lookups, &mut random);
    let mut out = io::stdout().lock();
    let printed = writeln!(
        out,
        "{} nodes, {} bytes of filters a link\n\n\
         keys            lookups  within reach  missed  messages each  flooding",
        network.nodes.len(),
        network.bytes_a_link()
    )
    .and_then(|()| row(&mut out, "somebody's", &there))
    .and_then(|()| row(&mut out, "nobody's", &nowhere));
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "route_lookup: {message}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Network {
        /// The expected number of messages that a node sends for a key that nobody
        /// has, when it is the first to be asked.
        fn expected_first(&self, from: usize) -> f64 {
            let links = self.nodes[from].links.iter();
            let yes = |link: &Link| {
                let no = link.behind.iter().map(|filter| 1.0 - filter.error_now());
                1.0 - no.product::<f64>()
            };
            links.map(yes).sum()
        }
    }

    fn options(nodes: usize, hops: usize, error: f64) -> Options {
        Options {
            nodes,
            keys: 20,
            hops,
            error,
            lookups: 0,
            seed: 0,
        }
    }

    /// Against flooding, which asks everybody within the hops.
    #[test]
    fn no_reachable_key_is_missed_and_messages_are_a_tenth() {
        let mut random = Random(3);
        let network = Network::new(&options(400, 4, 0.01), &mut random).unwrap();
        let (there, nowhere) = lookups(&network, 2000, &mut random);
        assert!(there.reachable > 500 && there.reachable < 2000, "{there:?}");
        assert_eq!((there.missed, nowhere.reachable), (0, 0));
        assert!(there.messages * 10 < there.flooded, "{there:?}");
        assert!(nowhere.messages * 100 < nowhere.flooded, "{nowhere:?}");
    }

    /// Filters that are wrong half of the time cost messages, and miss nothing.
    #[test]
    fn bad_filters_cost_messages_alone() {
        let mut random = Random(4);
        let network = Network::new(&options(200, 3, 0.5), &mut random).unwrap();
        let (there, nowhere) = lookups(&network, 1000, &mut random);
        assert!(there.reachable > 100 && there.missed == 0, "{there:?}");
        assert!(nowhere.messages > 1000 && nowhere.messages < nowhere.flooded);
    }

    #[test]
    fn every_key_within_the_hops_is_found_and_none_beyond() {
        let mut random = Random(5);
        let hops = 3;
        let network = Network::new(&options(60, hops, 0.01), &mut random).unwrap();
        for from in 0..60 {
            // Distances, by the links alone.
            let mut near = BTreeSet::from([from]);
            for _ in 0..hops {
                let reached = near.iter().flat_map(|&at| &network.nodes[at].links);
                let reached: Vec<usize> = reached.map(|link| link.to).collect();
                near.extend(reached);
            }
            for (at, node) in network.nodes.iter().enumerate() {
                for &key in &node.keys {
                    let answer = network.ask(from, key, Way::Filters);
                    assert_eq!(answer.found, near.contains(&at), "{from} asks for {at}'s");
                    assert_eq!(answer.messages == 0 && answer.found, at == from);
                }
            }
        }
    }

    /// Messages for keys that nobody has are those of the filters' errors.
    #[test]
    fn mistaken_messages_are_those_of_the_formula() {
        let mut random = Random(6);
        let network = Network::new(&options(300, 1, 0.05), &mut random).unwrap();
        let (mut sent, mut expected) = (0, 0.0);
        for i in 0..30_000 {
            let from = i % 300;
            expected += network.expected_first(from);
            let key = random.next().cast_signed();
            sent += network.ask(from, key, Way::Filters).messages;
        }
        assert!(expected > 500.0, "{expected}");
        let off = (sent as f64 - expected).abs();
        assert!(off <= 5.0 * expected.sqrt(), "{sent}, {expected} expected");
    }

    #[test]
    fn wrong_flags_are_named() {
        let parse = |text: &str| Options::parse(text.split_whitespace().map(String::from));
        assert!(parse("--nodes 50 --keys 3 --hops 2 --error 0.1 --lookups 9 --seed 3").is_ok());
        for wrong in [
            "--nodes",
            "--nodes x",
            "--nodes 2",
            "--keys 0",
            "--hops 7",
            "--what 1",
        ] {
            assert!(parse(wrong).err().unwrap().contains("usage"), "{wrong}");
        }
    }
}
