//! What a set of keys takes on the wire, form by form: measured bytes beside
//! the formulas.
//!
//! For each error it fills filters with the same keys and prints bits a key, in
//! memory and in the bytes that are sent (all of them, headers too): filters as
//! they are, packed ones with few positions in more memory, one that was made for
//! many more keys and shrunk, and a static filter.
//!
//! ```console
//! $ cargo run --release --example wire_table -- --keys 100000
//! ```
//!
//! The formulas are Mitzenmacher's ("Compressed Bloom Filters", 2002): k
//! positions at an error p fill a share f = p^(1/k) of c = -k / ln(1 - f) bits
//! a key, and c H(f) of them are sent.

use std::io::{self, Write};
use std::process::ExitCode;

use petal::sizing::{self, Collisions};
use petal::{
    AnyFilter, Bloom, Classic, ClassicGeometry, Identity, Int, KeyHasher, KeyType, Promise,
    StaticFilter, mix_int, wire,
};

const USAGE: &str = "\
usage: wire_table [--keys N] [--seed N]

  --keys N  distinct keys, 1000 to 10000000 (default 100000)
  --seed N  other keys (default 1)";

/// A form in which the keys travel.
struct Row {
    name: String,
    /// Bits a key in memory.
    memory: f64,
    /// What a formula says is sent, where there is one.
    formula: Option<f64>,
    /// What is sent.
    measured: f64,
    /// The error of the very filter.
    error: f64,
}

/// The keys, and what is asked of a filter of them.
struct Case {
    keys: u64,
    seed: u64,
    error: f64,
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

impl Case {
    fn promise(&self) -> Promise {
        Promise {
            items: self.keys,
            error: self.error,
        }
    }

    fn all_keys(&self) -> impl Iterator<Item = i64> {
        (0..self.keys).map(|key| mix_int(key.cast_signed(), self.seed).cast_signed())
    }

    fn fill(&self, mut filter: AnyFilter) -> Outcome<AnyFilter> {
        for key in self.all_keys() {
            filter.insert_int(key)?;
        }
        Ok(filter)
    }

    fn bits(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.keys as f64
    }

    /// The row of a filter that is sent as the file it is.
    fn row(&self, name: &str, filter: &AnyFilter, formula: Option<f64>) -> Outcome<Row> {
        Ok(Row {
            name: name.to_owned(),
            memory: self.bits(filter.bytes()),
            formula,
            measured: self.bits(filter.to_bytes()?.len() as u64),
            error: filter.error_now(),
        })
    }

    /// The row of a filter that is packed; it comes back as it was.
    fn packed(&self, name: &str, filter: &AnyFilter, formula: Option<f64>) -> Outcome<Row> {
        let bytes = wire::pack(filter)?;
        let back = wire::unpack(&bytes, None)?;
        if back.to_bytes()? != filter.to_bytes()? {
            return Err(format!("{name}: another filter came back").into());
        }
        Ok(Row {
            measured: self.bits(bytes.len() as u64),
            ..self.row(name, filter, formula)?
        })
    }

    /// A classic filter with this error by so many positions.
    fn classic(&self, positions: u32) -> Outcome<(AnyFilter, f64)> {
        let k = f64::from(positions);
        let fill = self.error.powf(1.0 / k);
        let bits_per_key = -k / (-fill).ln_1p();
        let entropy = -(fill * fill.log2() + (1.0 - fill) * (1.0 - fill).log2());
        let plan = sizing::plan_classic(
            sizing::ClassicGiven {
                items: Some(self.keys),
                error: Some(self.error),
                hashes: Some(positions),
                ..sizing::ClassicGiven::default()
            },
            Collisions::Never,
        )?;
        let geometry = ClassicGeometry::new(plan.bits, positions)?;
        let identity = Identity::new(KeyType::Int);
        let filter = Classic::with_geometry(identity, geometry, self.promise())?;
        Ok((self.fill(filter.into())?, bits_per_key * entropy))
    }

    fn rows(&self) -> Outcome<Vec<Row>> {
        let identity = || Identity::new(KeyType::Int);
        let mut rows = Vec::new();
        let best = sizing::classic_for(self.keys, self.error, Collisions::Never)?;
        let bound = -self.error.log2();
        let (classic, _) = self.classic(best.hashes)?;
        let textbook = bound / std::f64::consts::LN_2;
        rows.push(self.row("raw, classic", &classic, Some(textbook))?);
        let split = self.fill(Bloom::sized(identity(), self.promise())?.into())?;
        rows.push(self.row("raw, split blocks", &split, None)?);
        rows.push(self.packed("packed, split blocks", &split, None)?);
        for positions in [best.hashes, 3, 2, 1] {
            let (filter, formula) = self.classic(positions)?;
            let name = format!("packed, classic, k = {positions}");
            rows.push(self.packed(&name, &filter, Some(formula))?);
        }
        // Made for 64 times as many keys, so that six folds fit it.
        let roomy = Promise {
            items: self.keys * 64,
            error: self.error,
        };
        let roomy = self.fill(Bloom::sized(identity(), roomy)?.into())?;
        rows.push(self.packed("packed, 64 times too large", &roomy, None)?);
        rows.push(self.packed("shrunk and packed", &roomy.shrunk(None)?, None)?);
        let fixed =
            StaticFilter::<Int>::with_hasher(self.all_keys(), self.error, KeyHasher::default(), 1)?;
        let plan = sizing::static_for(self.keys, self.error, Collisions::Never)?;
        let formula = plan.bits as f64 / self.keys as f64;
        rows.push(self.row("static", &fixed.into_inner().into(), Some(formula))?);
        rows.push(Row {
            name: "lower bound".to_owned(),
            memory: bound,
            formula: Some(bound),
            measured: bound,
            error: self.error,
        });
        Ok(rows)
    }
}

/// The errors of the table.
const ERRORS: [(f64, &str); 3] = [(0.01, "1 %"), (1.0 / 256.0, "2^-8"), (0.001, "0.1 %")];

fn table(keys: u64, seed: u64, out: &mut impl Write) -> Outcome<()> {
    for (error, name) in ERRORS {
        let rows = Case { keys, seed, error }.rows()?;
        writeln!(out, "{keys} keys at {name}: bits a key\n")?;
        writeln!(
            out,
            "{:<28}{:>10}{:>10}{:>10}{:>11}",
            "form", "memory", "formula", "sent", "error"
        )?;
        for row in rows {
            let formula = row
                .formula
                .map_or_else(|| "-".to_owned(), |bits| format!("{bits:.3}"));
            writeln!(
                out,
                "{:<28}{:>10.2}{formula:>10}{:>10.3}{:>11.2e}",
                row.name, row.memory, row.measured, row.error
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn options(mut flags: impl Iterator<Item = String>) -> Result<(u64, u64), String> {
    let (mut keys, mut seed) = (100_000, 1);
    while let Some(flag) = flags.next() {
        let value = flags.next().and_then(|value| value.parse::<u64>().ok());
        match (flag.as_str(), value) {
            ("--keys", Some(value)) if (1000..=10_000_000).contains(&value) => keys = value,
            ("--seed", Some(value)) => seed = value,
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok((keys, seed))
}

fn main() -> ExitCode {
    let stderr = |text: &str| {
        let _ = writeln!(io::stderr(), "{text}");
        ExitCode::from(2)
    };
    let (keys, seed) = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(usage) => return stderr(&usage),
    };
    match table(keys, seed, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => stderr(&error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_the_formulas_say() {
        for (error, _) in ERRORS {
            let keys = 20_000;
            let rows = Case {
                keys,
                seed: 3,
                error,
            }
            .rows()
            .unwrap();
            for row in &rows {
                if let Some(formula) = row.formula {
                    // 150 bytes of header are 0.06 bits for each of these keys.
                    let most = formula * 1.015 + 0.06;
                    assert!(
                        row.measured >= formula * 0.985 && row.measured <= most,
                        "{} at {error}: {} of {formula}",
                        row.name,
                        row.measured
                    );
                }
                // The error of one filter scatters around what it was made for.
                assert!(row.error <= error * 1.15, "{}: {}", row.name, row.error);
            }
            let of = |name: &str| {
                let row = rows.iter().find(|row| row.name == name).unwrap();
                row.measured
            };
            assert!(of("packed, classic, k = 1") < of("packed, classic, k = 2"));
            assert!(of("packed, classic, k = 2") < of("raw, classic"));
            assert!(of("shrunk and packed") < of("packed, 64 times too large"));
            assert!(of("shrunk and packed") < of("raw, split blocks") * 1.02);
            assert!(of("static") < of("packed, classic, k = 1"));
        }
    }

    #[test]
    fn the_page_has_what_is_printed() {
        let (keys, seed) = options(std::iter::empty()).unwrap();
        let mut printed = Vec::new();
        table(keys, seed, &mut printed).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        let page = include_str!("../docs/wire.md");
        assert!(page.contains(printed.trim_end()), "{printed}");
    }

    #[test]
    fn flags_are_checked() {
        let parse = |line: &str| options(line.split_whitespace().map(str::to_owned));
        assert_eq!(parse(""), Ok((100_000, 1)));
        assert_eq!(parse("--keys 5000 --seed 9"), Ok((5000, 9)));
        for bad in ["--keys", "--keys 10", "--keys x", "5", "--size 5"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
