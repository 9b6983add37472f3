//! Random histories: writes, saves, rebuilds, crashes, and files and stores put back, against a
//! map.

use std::collections::BTreeMap;

use petal_front::{Batch, Front, Options, Over};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use crate::engines::{Engine, Place, check_all, on_both, small};

on_both! {
    every_history_keeps_every_key;
}

#[derive(Debug, Clone)]
enum Step {
    /// Keys and whether each is put or removed.
    Write(Vec<(u8, bool)>),
    Save,
    Rebuild,
    /// The front goes without a save.
    Crash,
    /// A crash, and the filter is that of an earlier moment.
    OldFilter(usize),
    /// A crash, and the store is that of an earlier moment.
    OldStore(usize),
    /// A crash, and a byte of the filter is another.
    Damage(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let write = prop::collection::vec((any::<u8>(), prop::bool::weighted(0.7)), 0..12);
    prop_oneof![
        8 => write.prop_map(Step::Write),
        2 => Just(Step::Save),
        1 => Just(Step::Rebuild),
        3 => Just(Step::Crash),
        2 => any::<usize>().prop_map(Step::OldFilter),
        2 => any::<usize>().prop_map(Step::OldStore),
        1 => any::<usize>().prop_map(Step::Damage),
    ]
}

fn every_history_keeps_every_key<S: Engine>() {
    let config = Config {
        cases: 24,
        rng_seed: RngSeed::Fixed(9),
        failure_persistence: None,
        ..Config::default()
    };
    proptest!(config, |(steps in prop::collection::vec(step(), 1..25), over in 0..3_u8, save_every in 1..40_u64)| {
        let delimiter = 99;
        let over = match over {
            0 => Over::Keys,
            1 => Over::Rows { delimiter },
            _ => Over::RowsAndKeys { delimiter },
        };
        run::<S>(&steps, &Options { over, save_every, items: 20, ..small() });
    });
}

fn run<S: Engine>(steps: &[Step], options: &Options) {
    let place = Place::new();
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut filters: Vec<Vec<u8>> = Vec::new();
    let mut stores = Vec::new();
    let mut front: Front<S> = place.front(options.clone());
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Write(changes) => {
                let mut batch = Batch::new();
                for &(key, put) in changes {
                    // Keys that share rows: the delimiter is 99.
                    let key = vec![key >> 4, 99, key & 3];
                    if put {
                        batch.put(key.clone(), number.to_string());
                        model.insert(key, number.to_string().into_bytes());
                    } else {
                        batch.remove(key.clone());
                        model.remove(&key);
                    }
                }
                front.write(&batch).unwrap();
            }
            Step::Save => front.save().unwrap(),
            Step::Rebuild => front.rebuild().unwrap(),
            Step::Crash | Step::OldFilter(_) | Step::OldStore(_) | Step::Damage(_) => {
                drop(front);
                stores.push((place.keep_store::<S>(), model.clone()));
                filters.extend(std::fs::read(place.filter()));
                match step {
                    Step::OldFilter(which) => {
                        std::fs::write(place.filter(), &filters[which % filters.len()]).unwrap();
                    }
                    Step::OldStore(which) => {
                        let (kept, old) = &stores[which % stores.len()];
                        Place::put_back(kept);
                        model.clone_from(old);
                    }
                    Step::Damage(at) => {
                        let mut bytes = std::fs::read(place.filter()).unwrap();
                        let at = at % bytes.len();
                        bytes[at] ^= 1;
                        std::fs::write(place.filter(), bytes).unwrap();
                    }
                    _ => {}
                }
                front = place.front(options.clone());
            }
        }
        for (key, value) in &model {
            assert_eq!(
                front.get(key).unwrap().as_ref(),
                Some(value),
                "after step {number}"
            );
            assert!(front.may_contain_row([key[0]]));
        }
        assert_eq!(check_all(&front), model.len() as u64);
    }
}
