//! Counts the instructions of petal's hot calls and compares them with bounds.
//!
//! A count does not depend on what else the machine does, so a slower call is seen where a clock would
//! say nothing. The program runs itself under valgrind's callgrind, twice for each call: the difference
//! between many keys and few is that of the keys alone. Valgrind knows no AVX-512, so the kernel that
//! is counted is that of AVX2.

use std::hint::black_box;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};
use std::{env, fmt};

use petal::{
    BloomFilter, ConcurrentBloomFilter, DigestSet, Digests, Identity, Insert, Int, KeyHasher,
    KeyType, mask_words,
};

const HELP: &str = "\
usage: instructions

Prints the instructions a key of petal's hot calls beside their bounds. Needs valgrind and a CPU with
AVX2. Exit code 0 if every count is within its bound, 1 if one is not, 2 on errors.
";

/// Keys of a batched call.
const BATCH: usize = 1024;
/// Keys of the short run and of the long one.
const RUNS: [usize; 2] = [16 * BATCH, 64 * BATCH];
/// Items of a filter that is asked as it lies in the cache, and of one that is fetched ahead.
const SMALL: u64 = 1_000_000;
const LARGE: u64 = 10_000_000;

/// A call, and the most instructions a key it may take: the count when it was last tuned, and some 8 %
/// more for other compilers.
struct Call {
    name: &'static str,
    most: f64,
    run: fn(&[i64]),
}

const CALLS: [Call; 14] = [
    call("contains", 57.0, |keys| ask(&filter(SMALL, 0.01), keys)),
    call("insert", 75.0, |keys| insert(filter(SMALL, 0.01), keys)),
    call("contains, 3 regions", 236.0, |keys| {
        let mut filter = filter(SMALL, 1e-9);
        insert_batches(&mut filter, keys);
        ask(&filter, keys);
    }),
    call("batched contains", 36.0, |keys| {
        ask_batches(&filter(SMALL, 0.01), keys);
    }),
    call("batched insert", 41.0, |keys| {
        insert_batches(&mut filter(SMALL, 0.01), keys);
    }),
    call("batched contains, fetched", 47.0, |keys| {
        ask_batches(&filter(LARGE, 0.01), keys);
    }),
    call("batched insert, fetched", 51.0, |keys| {
        insert_batches(&mut filter(LARGE, 0.01), keys);
    }),
    call("batched contains, 3 regions", 110.0, |keys| {
        ask_batches(&filter(LARGE, 1e-9), keys);
    }),
    call("batched insert, 3 regions", 124.0, |keys| {
        insert_batches(&mut filter(LARGE, 1e-9), keys);
    }),
    call("40 bytes, contains", 136.0, |keys| {
        let filter = BloomFilter::new(SMALL, 0.01).expect(FITS);
        for key in texts(keys) {
            black_box(filter.contains(key));
        }
    }),
    call("40 bytes, batched contains", 127.0, |keys| {
        let filter = BloomFilter::new(SMALL, 0.01).expect(FITS);
        let mut mask = [0; mask_words(BATCH)];
        for batch in texts(keys).chunks(BATCH) {
            filter.contains_batch(batch, &mut mask).expect(FITS);
            black_box(&mask);
        }
    }),
    call("concurrent, batched insert", 224.0, |keys| {
        share(&concurrent(), keys);
    }),
    call("concurrent, batched insert and again", 336.0, |keys| {
        let filter = concurrent();
        share(&filter, keys);
        share(&filter, keys);
    }),
    call("digest set, batched insert", 116.0, |keys| {
        let identity = Identity::new(KeyType::Int);
        let mut set = DigestSet::with_slots(identity, 4 * RUNS[1] as u64).expect(FITS);
        let mut digests = Digests::new(KeyHasher::default(), KeyType::Int);
        let mut mask = [0; mask_words(BATCH)];
        for batch in keys.chunks(BATCH) {
            digests.clear();
            for &key in batch {
                digests.push_int(key).expect(FITS);
            }
            set.insert_digests(&digests, &mut mask).expect(FITS);
        }
    }),
];

const fn call(name: &'static str, most: f64, run: fn(&[i64])) -> Call {
    Call { name, most, run }
}

/// Why no call below can fail.
const FITS: &str = "small filters fit in memory, and the mask has a bit for each key";

fn filter(items: u64, error: f64) -> BloomFilter<Int> {
    BloomFilter::with_hasher(items, error, KeyHasher::default()).expect(FITS)
}

fn concurrent() -> ConcurrentBloomFilter<Int> {
    ConcurrentBloomFilter::with_hasher(SMALL, 0.01, KeyHasher::default()).expect(FITS)
}

#[inline(never)]
fn ask(filter: &BloomFilter<Int>, keys: &[i64]) {
    for key in keys {
        black_box(filter.contains(key));
    }
}

#[inline(never)]
fn insert(mut filter: BloomFilter<Int>, keys: &[i64]) {
    for key in keys {
        black_box(filter.insert(key).expect(FITS));
    }
}

fn ask_batches(filter: &BloomFilter<Int>, keys: &[i64]) {
    let mut mask = [0; mask_words(BATCH)];
    for batch in keys.chunks(BATCH) {
        filter.contains_batch(batch, &mut mask).expect(FITS);
        black_box(&mask);
    }
}

fn insert_batches(filter: &mut BloomFilter<Int>, keys: &[i64]) {
    let mut mask = [0; mask_words(BATCH)];
    for batch in keys.chunks(BATCH) {
        filter.insert_batch(batch, &mut mask).expect(FITS);
        black_box(&mask);
    }
}

fn share(filter: &ConcurrentBloomFilter<Int>, keys: &[i64]) {
    let mut mask = [0; mask_words(BATCH)];
    for batch in keys.chunks(BATCH) {
        filter.insert_batch(batch, &mut mask).expect(FITS);
        black_box(&mask);
    }
}

/// Keys of 40 bytes, as many as there are integers: pieces of a text of integers.
fn texts(keys: &[i64]) -> Vec<&[u8]> {
    static TEXT: [u8; 4096] = [b'x'; 4096];
    keys.iter()
        .zip((0..TEXT.len() - 40).cycle())
        .map(|(_, start)| &TEXT[start..start + 40])
        .collect()
}

/// Instructions of a whole run of this program with so many keys.
fn count(name: &str, keys: usize) -> Result<f64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--run", name, &keys.to_string()])
        .output()
        .map_err(|error| {
            format!("cannot run valgrind: {error}; it is Debian's package valgrind")
        })?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| {
        let (_, count) = line.split_once("Collected :")?;
        count.trim().parse().ok()
    });
    collected.ok_or_else(|| format!("callgrind did not count {name}: {text}"))
}

/// Runs one call with so many keys: what is counted.
fn run(name: &str, count: usize) -> Result<(), String> {
    let call = CALLS.iter().find(|call| call.name == name);
    let call = call.ok_or_else(|| format!("no call {name:?}"))?;
    // All keys are made in either run, so that the difference has none of it.
    let keys: Vec<i64> = (0..RUNS[1] as i64).collect();
    let keys = black_box(&keys).get(..count);
    (call.run)(keys.ok_or_else(|| format!("there are {} keys", RUNS[1]))?);
    Ok(())
}

/// Prints the table. Whether all counts are within their bounds.
fn compare() -> Result<bool, String> {
    #[cfg(target_arch = "x86_64")]
    let counted = std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let counted = false;
    if !counted {
        return Err("the bounds are those of x86-64 with AVX2; this CPU is another".into());
    }
    let mut all_within = true;
    print(format_args!(
        "| call | instructions a key | at most |\n|---|---:|---:|\n"
    ))?;
    for call in &CALLS {
        let [few, many] = RUNS;
        let of_keys = count(call.name, many)? - count(call.name, few)?;
        let each = of_keys / (many - few) as f64;
        let within = each <= call.most;
        all_within &= within;
        let mark = if within { "" } else { " **passed**" };
        print(format_args!(
            "| {} | {each:.1} | {}{mark} |\n",
            call.name, call.most
        ))?;
    }
    Ok(all_within)
}

fn print(text: fmt::Arguments<'_>) -> Result<(), String> {
    io::stdout()
        .write_fmt(text)
        .map_err(|error| format!("cannot write: {error}"))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [] => compare(),
        ["--run", name, count] => match count.parse() {
            Ok(count) => run(name, count).map(|()| true),
            Err(_) => Err(format!("{count:?} is no number of keys")),
        },
        ["--help" | "-h"] => print(format_args!("{HELP}")).map(|()| true),
        _ => Err(format!("unknown arguments\n{HELP}")),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            let _ = writeln!(io::stderr(), "instructions: {message}");
            ExitCode::from(2)
        }
    }
}
