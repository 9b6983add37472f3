//! A filter made and asked by the Rust library, for the test that has every
//! front read what the others write (`tests/test_fronts.py`).
//!
//!     fronts write FILE bytes|int KIND    keys on stdin, a line each
//!     fronts ask FILE                     prints the lines that are in it
//!
//! It uses the library alone; nothing of the Python package.

use std::error::Error;
use std::io::{self, Write};

use petal::normalise::{Form, Normalisation};
use petal::sizing::{GrowthPlan, Promise};
use petal::{
    AnyFilter, Bloom, Contains, CounterBits, Counting, Growable, Identity, Increase, KeyType,
    Overwrite, Window, WindowSpan,
};

const PROMISE: Promise = Promise {
    items: 2000,
    error: 1e-6,
};

fn empty(kind: &str, identity: Identity) -> Result<AnyFilter, Box<dyn Error>> {
    Ok(match kind {
        "bloom" => Bloom::sized(identity, PROMISE)?.into(),
        "counting" => Counting::sized(identity, PROMISE, CounterBits::Four, Increase::All)?.into(),
        "growable" => {
            Growable::with_plan(identity, GrowthPlan::open(PROMISE.items, PROMISE.error)?)?.into()
        }
        "window" => Window::sized(identity, WindowSpan::Keys, PROMISE, 14)?.into(),
        other => return Err(format!("no kind {other}").into()),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", path, keys, kind] => {
            // The command asks about lines: it has to know that they are to be read as numbers.
            let (key_type, normalisation) = match keys {
                "int" => (KeyType::Int, Normalisation::lines().with_form(Form::Int)?),
                _ => (KeyType::Bytes, Normalisation::default()),
            };
            let identity = Identity::new(key_type).with_normalisation(normalisation);
            let mut filter = empty(kind, identity)?;
            for line in io::stdin().lines() {
                let line = line?;
                match key_type {
                    KeyType::Bytes => filter.insert_bytes(line.as_bytes())?,
                    KeyType::Int => filter.insert_int(line.parse()?)?,
                };
            }
            filter.save(path, Overwrite::Replace)?;
        }
        ["ask", path] => {
            let filter = AnyFilter::open(path, None)?;
            let mut out = io::stdout().lock();
            for line in io::stdin().lines() {
                let line = line?;
                let found = match filter.about().identity().key_type {
                    KeyType::Bytes => filter.contains_bytes(line.as_bytes())?,
                    KeyType::Int => filter.contains_int(line.parse()?)?,
                };
                if found {
                    writeln!(out, "{line}")?;
                }
            }
        }
        _ => return Err("usage: fronts write FILE bytes|int KIND, or fronts ask FILE".into()),
    }
    Ok(())
}
