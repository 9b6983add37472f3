//! HTTP caches that tell one another what they hold, so that a miss of one can
//! be a hit of another.
//!
//! Each cache publishes a digest: a filter of the objects it holds. It fetches
//! those of its peers, whole and packed the first time, then what has changed. For
//! an object that it lacks it asks the peers whose digest says "yes", one after
//! the other, and then the origin. All of it is HTTP on the loopback: deltas as
//! in RFC 3229 (`A-IM`, `226 IM Used`), questions to peers `only-if-cached`.
//!
//! After Fan, Cao, Almeida and Broder, "Summary Cache" (2000). Asking every peer
//! at every miss, which digests replace, is counted beside them.
//!
//! ```console
//! $ cargo run --release --example cache_exchange -- --caches 4 --objects 20000
//! ```
//!
//! Digests are made at intervals, so an object may have left (*stale*) or come in
//! the meantime. A *false hit* is a "yes" for an object that the digest does not
//! list: the peer knows what it listed and says so, and their number is compared
//! with the formula.

mod cache;
mod digest;
mod http;
mod load;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use petal::Promise;

use cache::{Cache, Tally};
use digest::Shape;
use http::{Link, Outcome, serve};
use load::{Popularity, Random};

const USAGE: &str = "\
usage: cache_exchange [--caches N] [--objects N] [--universe N] [--requests N]
                      [--rounds N] [--error P] [--positions K] [--seed N]

  --caches N     2 to 50 (default 4)
  --objects N    that a cache holds, 10 to 1000000 (default 5000)
  --universe N   that there are, up to 10000000 (default 100000)
  --requests N   to each cache between two digests (default 2000)
  --rounds N     digests that each cache publishes, 1 to 1000 (default 6)
  --error P      of a digest of a full cache (default 0.01)
  --positions K  digests are classic filters with K bits a key, 1 to 64: few of
                 them take more memory and fewer bytes on the wire (default:
                 split blocks)
  --seed N       other requests (default 1)";

#[derive(Debug, Clone, Copy, PartialEq)]
struct Options {
    caches: usize,
    objects: usize,
    universe: usize,
    requests: usize,
    rounds: usize,
    error: f64,
    positions: Option<u32>,
    seed: u64,
}

impl Options {
    fn parse(mut flags: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            caches: 4,
            objects: 5000,
            universe: 100_000,
            requests: 2000,
            rounds: 6,
            error: 0.01,
            positions: None,
            seed: 1,
        };
        while let Some(flag) = flags.next() {
            let value = flags.next().ok_or_else(|| USAGE.to_owned())?;
            let wrong = || format!("{flag} needs a number, got {value:?}\n{USAGE}");
            match flag.as_str() {
                "--caches" => options.caches = value.parse().map_err(|_| wrong())?,
                "--objects" => options.objects = value.parse().map_err(|_| wrong())?,
                "--universe" => options.universe = value.parse().map_err(|_| wrong())?,
                "--requests" => options.requests = value.parse().map_err(|_| wrong())?,
                "--rounds" => options.rounds = value.parse().map_err(|_| wrong())?,
                "--error" => options.error = value.parse().map_err(|_| wrong())?,
                "--positions" => options.positions = Some(value.parse().map_err(|_| wrong())?),
                "--seed" => options.seed = value.parse().map_err(|_| wrong())?,
                _ => return Err(USAGE.to_owned()),
            }
        }
        let possible = (2..=50).contains(&options.caches)
            && (10..=1_000_000).contains(&options.objects)
            && (1..=10_000_000).contains(&options.universe)
            && (1..=1000).contains(&options.rounds)
            && options.positions.is_none_or(|k| (1..=64).contains(&k));
        if possible {
            Ok(options)
        } else {
            Err(USAGE.to_owned())
        }
    }
}

/// Answers for every object: what is at its path.
async fn origin(request: Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    Response::new(Full::new(body_of(path)))
}

fn body_of(path: &str) -> Bytes {
    format!("what is at {path}\n").into()
}

/// The caches, with their addresses as clients see them.
struct Network {
    caches: Vec<Arc<Cache>>,
    clients: Vec<Link>,
}

impl Network {
    async fn start(options: &Options) -> Outcome<Self> {
        let shape = Shape {
            promise: Promise {
                items: options.objects as u64,
                error: options.error,
            },
            positions: options.positions,
        };
        let origin = serve(origin).await?;
        let mut caches = Vec::new();
        let mut addresses = Vec::new();
        for _ in 0..options.caches {
            let cache = Arc::new(Cache::new(origin, options.objects, shape, options.seed));
            let answering = cache.clone();
            addresses.push(serve(move |request| answering.clone().handle(request)).await?);
            caches.push(cache);
        }
        for (i, cache) in caches.iter().enumerate() {
            cache.meet(others(&addresses, i));
        }
        let clients = addresses.into_iter().map(Link::to).collect();
        Ok(Self { caches, clients })
    }

    /// Publishes and exchanges digests.
    async fn exchange(&self) -> Outcome<()> {
        for cache in &self.caches {
            cache.publish()?;
        }
        let sizes: Vec<_> = self.caches.iter().map(|cache| cache.sizes()).collect();
        for (i, cache) in self.caches.iter().enumerate() {
            let sizes: Vec<_> = others(&sizes, i).collect();
            cache.refresh(&sizes).await;
        }
        Ok(())
    }

    fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for cache in &self.caches {
            sum.add(cache.tally());
        }
        sum
    }
}

/// All but number `i`, the next one first: so the peers of different caches are asked in
/// different orders.
fn others<T: Copy>(all: &[T], i: usize) -> impl Iterator<Item = T> {
    let (before, after) = (&all[..i], &all[i + 1..]);
    after.iter().chain(before).copied()
}

/// Requests come one at a time, so that a run can be repeated.
async fn simulate(options: &Options) -> Outcome<Network> {
    let network = Network::start(options).await?;
    let popularity = Popularity::new(options.universe);
    let mut random = Random::new(options.seed);
    for round in 0..=options.rounds {
        for _ in 0..options.requests {
            for client in &network.clients {
                let path = popularity.pick(&mut random);
                let reply = client.get(&path, &[]).await?;
                if reply.status != StatusCode::OK || reply.body != body_of(&path) {
                    return Err(format!("{path}: {} or a wrong body", reply.status).into());
                }
            }
        }
        if round < options.rounds {
            network.exchange().await?;
        }
    }
    Ok(network)
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.2} %", part as f64 / whole.max(1) as f64 * 100.0)
}

fn report(options: &Options, tally: &Tally, out: &mut impl Write) -> io::Result<()> {
    let Options {
        caches,
        objects,
        rounds,
        ..
    } = options;
    writeln!(
        out,
        "{caches} caches of {objects} objects, {rounds} digests of each\n"
    )?;
    let kilobytes = |bytes: u64| format!("{:.1} kB", bytes as f64 / 1000.0);
    let sent = tally.whole_bytes + tally.delta_bytes;
    writeln!(out, "bytes of digests that were exchanged")?;
    for (name, bytes, what) in [
        ("as files", tally.raw_bytes, String::new()),
        ("packed", tally.packed_bytes, String::new()),
        (
            "once, then deltas",
            sent,
            format!(
                "{} whole ({}), {} deltas ({})",
                tally.wholes,
                kilobytes(tally.whole_bytes),
                tally.deltas,
                kilobytes(tally.delta_bytes)
            ),
        ),
    ] {
        let bytes_text = kilobytes(bytes);
        let share = share(bytes, tally.raw_bytes);
        writeln!(out, "  {name:<20}{bytes_text:>12}{share:>11}   {what}")?;
    }
    writeln!(out, "\n{} requests", tally.requests)?;
    for (name, count) in [
        ("own hits", tally.own_hits),
        ("remote hits", tally.remote_hits),
        ("from the origin", tally.from_origin),
    ] {
        let share = share(count, tally.requests);
        writeln!(out, "  {name:<20}{count:>12}{share:>11}")?;
    }
    let misses = tally.requests - tally.own_hits;
    writeln!(
        out,
        "\nquestions to peers: {}; asking all of them at each miss would take {}",
        tally.asked,
        misses * (options.caches as u64 - 1)
    )?;
    writeln!(
        out,
        "objects that had left their peer: {}; peers that failed: {}",
        tally.stale, tally.failed
    )?;
    writeln!(
        out,
        "false hits: {} of {} questions to digests that do not list the object; the formula \
         expects {:.1}",
        tally.false_hits, tally.questions, tally.expected
    )
}

fn run(options: &Options) -> Outcome<Tally> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(simulate(options))?.tally())
}

fn main() -> ExitCode {
    let stderr = |text: &str| {
        let _ = writeln!(io::stderr(), "{text}");
        ExitCode::from(2)
    };
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(usage) => return stderr(&usage),
    };
    match run(&options) {
        Ok(tally) => match report(&options, &tally, &mut io::stdout().lock()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => stderr(&error.to_string()),
        },
        Err(error) => stderr(&error.to_string()),
    }
}

#[cfg(test)]
mod tests;
