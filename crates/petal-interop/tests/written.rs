//! Filters that petal fills: the bytes that their makers would write.

use petal_interop::{
    BitsAndBlooms, Dcso, Encoding, Error, ForeignFilter, ForeignKey, Format, Guava, GuavaStrategy,
    MAX_CHUNK, Npm, NpmCounting, NpmPartitioned, PybloomLive, Pyprobables, PyprobablesCounting,
    PyprobablesExpanding, Rbloom, RbloomHash, ReadOptions, RedisBloom, Sbbf, ScalablePybloomLive,
    Spark, SparkVersion, Squid, read,
};

use crate::support::{Sample, folder, lines, rows, samples};

/// Fills a filter with the members of a sample, in order.
fn fill(filter: &mut dyn ForeignFilter, sample: &Sample) {
    for member in sample.members() {
        sample.form.key(&member, |key| filter.insert(key)).unwrap();
    }
}

/// The files of the sample's maker and of petal, which are the same.
fn assert_same(filter: &dyn ForeignFilter, sample: &Sample) {
    let theirs = sample.open();
    assert_eq!(filter.format(), theirs.format());
    let mut ours = Vec::new();
    filter.write_as(theirs.encoding(), &mut ours).unwrap();
    assert!(ours == sample.bytes(), "{}", sample.path.display());
}

#[test]
fn guava_writes_the_same_bytes() {
    let mut tried = 0;
    for sample in samples().iter().filter(|sample| sample.system == "guava") {
        let strategy = if sample.name.starts_with("mitz32") {
            GuavaStrategy::Mitz32
        } else {
            GuavaStrategy::Mitz64
        };
        let (n, p) = sample.n_and_p().unwrap();
        let mut filter = Guava::create(strategy, n, p).unwrap();
        fill(&mut filter, sample);
        assert_same(&filter, sample);
        tried += 1;
    }
    assert_eq!(tried, 11);
}

#[test]
fn guava_is_sized_as_its_create_does() {
    let mut refused = 0;
    for row in rows(&folder("guava").join("sizing.tsv")) {
        let (n, p) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        let Ok(k) = row[2].parse::<u64>() else {
            assert!(
                Guava::create(GuavaStrategy::Mitz64, n, p).is_err(),
                "{row:?}"
            );
            refused += 1;
            continue;
        };
        let parameters = Guava::create(GuavaStrategy::Mitz64, n, p)
            .unwrap()
            .parameters();
        assert_eq!(parameters.positions, k, "{row:?}");
        assert_eq!(parameters.bits.to_string(), row[3], "{row:?}");
    }
    println!("{refused} refused");
}

#[test]
fn dcso_flor_and_poppy_write_the_same_bytes() {
    let mut tried = 0;
    for sample in samples() {
        let ours = ["dcso", "flor", "poppy"].contains(&sample.system);
        if !ours || sample.path.extension().is_none_or(|end| end == "gz") {
            continue;
        }
        let (n, p) = match sample.name.as_str() {
            "joined" => continue,
            "plain_with_data" | "join_a" | "join_b" => (200, 0.03),
            name if name.starts_with("v2") => continue,
            _ => sample.n_and_p().unwrap(),
        };
        let mut filter = Dcso::new(n, p).unwrap();
        fill(&mut filter, &sample);
        // Some have bytes attached: they are the user's.
        let theirs = sample.open();
        filter.set_data(theirs.downcast_ref::<Dcso>().unwrap().data());
        assert_same(&filter, &sample);
        tried += 1;
    }
    assert_eq!(tried, 7);
}

#[test]
fn dcso_joins_as_its_command_does() {
    let all = samples();
    let find = |name: &str| all.iter().find(|sample| sample.name == name).unwrap();
    let mut a = find("join_a").open();
    a.union_with(&*find("join_b").open()).unwrap();
    assert_same(&*a, find("joined"));
    let other = find("plain_n100_p0.01_overfull").open();
    assert!(matches!(a.union_with(&*other), Err(Error::Mismatch { .. })));
    assert_same(&*a, find("joined"));
}

#[test]
fn dcso_gzip_holds_the_plain_file() {
    let all = samples();
    let find = |name: &str| all.iter().find(|sample| sample.name == name).unwrap();
    let compressed = find("gzip_n200_p0.03").open();
    assert_eq!(compressed.encoding(), Encoding::Gzip);
    let mut plain = Vec::new();
    compressed.write_as(Encoding::Plain, &mut plain).unwrap();
    assert!(plain == find("plain_n200_p0.03").bytes());
}

#[test]
fn bits_and_blooms_writes_the_same_bytes() {
    let mut tried = 0;
    for sample in samples()
        .iter()
        .filter(|sample| sample.system == "bits-and-blooms")
    {
        let mut filter = match sample.n_and_p() {
            Some((n, p)) => BitsAndBlooms::with_estimates(n, p),
            None => BitsAndBlooms::new(1024, 5),
        }
        .unwrap();
        fill(&mut filter, sample);
        assert_same(&filter, sample);
        tried += 1;
    }
    assert_eq!(tried, 6);
}

/// Fills what `make` gives with the members of each sample of a system and
/// compares the files. Says how many there were.
fn compare(system: &str, make: impl Fn(&Sample) -> Option<Box<dyn ForeignFilter>>) -> usize {
    let mut tried = 0;
    for sample in samples().iter().filter(|sample| sample.system == system) {
        if let Some(mut filter) = make(sample) {
            fill(&mut *filter, sample);
            assert_same(&*filter, sample);
            tried += 1;
        }
    }
    tried
}

#[test]
fn spark_writes_the_same_bytes() {
    let tried = compare("spark", |sample| {
        let part = |n| sample.name.split('_').nth(n).unwrap();
        let version = match (part(0), part(1).strip_prefix("seed").unwrap()) {
            ("v1", _) => SparkVersion::V1,
            (_, seed) => SparkVersion::V2 {
                seed: seed.parse().unwrap(),
            },
        };
        let filter = match (part(3), sample.n_and_p()) {
            (_, Some((n, p))) => Spark::create(version, n, p),
            ("m40000", _) => Spark::with_bits(version, 200, 40_000),
            (_, None) => Spark::with_bits(version, 100, 500),
        };
        Some(Box::new(filter.unwrap()))
    });
    assert_eq!(tried, 14);
}

#[test]
fn spark_is_sized_as_its_create_does() {
    for row in rows(&folder("spark").join("sizing.tsv")) {
        let (n, p) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        let parameters = Spark::create(SparkVersion::V1, n, p).unwrap().parameters();
        assert_eq!(parameters.bits.to_string(), row[3], "{row:?}");
        assert_eq!(parameters.positions.to_string(), row[4], "{row:?}");
    }
}

#[test]
fn redisbloom_writes_the_same_bytes() {
    let tried = compare("redisbloom", |sample| {
        let name = sample.name.as_str();
        let (n, p) = sample.n_and_p().unwrap();
        let chain = match name.split('_').next().unwrap() {
            "nonscaling" => RedisBloom::nonscaling(n, p),
            "old" => RedisBloom::rounded(n, p, 2, name.contains("force64")),
            _ => RedisBloom::reserve(n, p, 2),
        };
        let chunk = if name.ends_with("chunk32") {
            32
        } else {
            MAX_CHUNK
        };
        Some(Box::new(chain.unwrap().chunked(chunk)))
    });
    assert_eq!(tried, 5);
}

#[test]
fn a_full_chain_that_does_not_scale_refuses() {
    let mut chain = RedisBloom::nonscaling(10, 0.001).unwrap();
    let refused = (0..1000)
        .map(|i| chain.insert(ForeignKey::Text(&i.to_string())))
        .find_map(Result::err);
    assert!(matches!(refused, Some(Error::Full { capacity: 10, .. })));
    assert_eq!(chain.count().unwrap().keys, 10);
}

#[test]
fn npm_writes_the_same_bytes() {
    let tried = compare("npm-bloom-filters", |sample| {
        let (n, p) = sample.n_and_p()?;
        Some(match sample.name.split('_').next().unwrap() {
            "partitioned" => Box::new(NpmPartitioned::create(n, p, 0.5).unwrap()),
            "counting" => return None,
            _ if sample.name.contains("seed1234") => {
                Box::new(Npm::create(n, p).unwrap().with_seed(1234).unwrap())
            }
            _ => Box::new(Npm::create(n, p).unwrap()),
        })
    });
    assert_eq!(tried, 4);
}

#[test]
fn npm_counts_and_removes_as_the_package_does() {
    let all = samples();
    let sample = all
        .iter()
        .find(|s| s.name == "counting_n200_p0.05" && s.system != "pyprobables");
    let sample = sample.unwrap();
    let members = lines(&folder(sample.system).join("members.txt"));
    let mut filter = NpmCounting::create(200, 0.05).unwrap();
    let again = [1, 2, 2].map(|i| members[i].clone());
    for member in members.iter().chain(&again) {
        filter.insert(ForeignKey::Text(member)).unwrap();
    }
    for i in [0, 3, 6, 9] {
        filter.remove(ForeignKey::Text(&members[i])).unwrap();
    }
    assert_same(&filter, sample);
}

/// Exports of old versions, as arrays.
#[test]
fn npm_arrays_of_bits_are_read() {
    let json = br#"{"type":"BloomFilter","_size":12,"_nbHashes":2,"_filter":[0,1,0,0,0,0,0,0,1,0,0,1],"_seed":7}"#;
    let filter = read(json.to_vec(), &ReadOptions::new()).unwrap();
    assert_eq!((filter.fill() * 12.0).round(), 3.0);
    let new = String::from_utf8(filter.to_bytes().unwrap()).unwrap();
    assert!(
        new.contains(r#""_filter":{"size":16,"content":"Agk="}"#),
        "{new}"
    );
    let short = json.to_vec();
    let short = String::from_utf8(short).unwrap().replace("12", "13");
    assert!(read(short.into(), &ReadOptions::new()).is_err());
}

#[test]
fn pyprobables_writes_the_same_bytes() {
    let tried = compare("pyprobables", |sample| {
        let (n, p) = sample.n_and_p().unwrap();
        Some(match sample.name.split('_').next().unwrap() {
            "expanding" => Box::new(PyprobablesExpanding::new(n, p).unwrap()),
            "counting" => return None,
            _ => Box::new(Pyprobables::new(n, p).unwrap()),
        })
    });
    assert_eq!(tried, 5);
}

/// The least counter of a key is how often it came, unless others share all of its
/// counters: never less.
#[test]
fn npm_counts_are_never_below_the_truth() {
    let mut filter = NpmCounting::create(500, 0.01).unwrap();
    assert!(filter.is_counting());
    let members: Vec<String> = (0..500).map(|i| format!("key {i}")).collect();
    for (i, member) in members.iter().enumerate() {
        for _ in 0..1 + i % 4 {
            filter.insert(ForeignKey::Text(member)).unwrap();
        }
    }
    filter.remove(ForeignKey::Text(&members[3])).unwrap();
    let truth = |i: usize| 1 + i as u64 % 4 - u64::from(i == 3);
    let times = |i: usize| filter.times(ForeignKey::Text(&members[i])).unwrap();
    assert!((0..500).all(|i| times(i) >= truth(i)));
    // At 1 % about five are above it; fifteen are beyond 5 sigma.
    let above = (0..500).filter(|&i| times(i) > truth(i)).count();
    assert!(above <= 15, "{above}");
    // Below 0 is none.
    filter.remove(ForeignKey::Text("nobody")).unwrap();
    assert_eq!(filter.times(ForeignKey::Text("nobody")).unwrap(), 0);
    let plain = Npm::create(500, 0.01).unwrap();
    assert!(!plain.is_counting());
    assert_eq!(plain.times(ForeignKey::Text("nobody")).unwrap(), 0);
}

/// How often each member was inserted is recorded.
#[test]
fn pyprobables_counts_as_recorded() {
    let all = samples();
    let mut of_system = all.iter().filter(|sample| sample.system == "pyprobables");
    let sample = of_system
        .find(|sample| sample.name.starts_with("counting"))
        .unwrap();
    let filter = sample.open();
    let filter: &PyprobablesCounting = filter.downcast_ref().unwrap();
    let table = rows(&folder("pyprobables").join("counting_n200_p0.05.counts.tsv"));
    assert!(table.len() > 100);
    for row in &table {
        let times = filter.times(ForeignKey::Text(&row[0])).unwrap();
        assert_eq!(times.to_string(), row[1], "{row:?}");
    }
    // Each was added one to three times, and the first ten removed once again.
    let mut anew = PyprobablesCounting::new(200, 0.05).unwrap();
    let members = lines(&folder("pyprobables").join("members.txt"));
    for (i, member) in members.iter().enumerate() {
        let added = 1 + i % 3;
        for _ in 0..(if i < 10 { added - 1 } else { added }) {
            anew.insert(ForeignKey::Text(member)).unwrap();
        }
    }
    assert_same(&anew, sample);
}

#[test]
fn text_and_bytes_differ_in_pyprobables() {
    let mut filter = Pyprobables::new(10, 1e-9).unwrap();
    filter.insert(ForeignKey::Text("é")).unwrap();
    assert!(filter.contains(ForeignKey::Text("é")).unwrap());
    assert!(!filter.contains(ForeignKey::Bytes("é".as_bytes())).unwrap());
}

#[test]
fn pybloom_live_writes_the_same_bytes() {
    let tried = compare("pybloom_live", |sample| {
        if sample.name.starts_with("scalable") {
            return Some(Box::new(ScalablePybloomLive::new(30, 0.02, 4).unwrap()));
        }
        let (n, p) = sample.n_and_p().unwrap();
        // The largest one is compressed.
        (n < 1000).then(|| Box::new(PybloomLive::new(n, p).unwrap()) as Box<dyn ForeignFilter>)
    });
    assert_eq!(tried, 4);
}

#[test]
fn a_full_filter_of_pybloom_live_refuses() {
    let mut filter = PybloomLive::new(3, 1e-9).unwrap();
    let taken = (0..9).filter(|i| filter.insert(ForeignKey::I32(*i)).is_ok());
    // One more than it was made for, as in pybloom_live.
    assert_eq!(taken.count(), 4);
}

#[test]
fn rbloom_writes_the_same_bytes() {
    let tried = compare("rbloom", |sample| {
        let (n, p) = sample.n_and_p().unwrap();
        let hash = if sample.name.starts_with("sha256") {
            RbloomHash::Sha256
        } else {
            RbloomHash::Xxh64
        };
        Some(Box::new(Rbloom::new(hash, n, p).unwrap()))
    });
    assert_eq!(tried, 4);
}

#[test]
fn a_file_of_rbloom_needs_its_hash() {
    let bytes = Rbloom::new(RbloomHash::Md5, 10, 0.1).unwrap();
    let bytes = (&bytes as &dyn ForeignFilter).to_bytes().unwrap();
    let error = read(bytes, &ReadOptions::new().format(Format::Rbloom)).unwrap_err();
    assert!(error.to_string().contains("which hash"), "{error}");
}

/// Squid adds objects of its own, so that the file cannot be made again.
#[test]
fn a_digest_of_squid_has_the_bits_of_its_members() {
    let sample = samples().into_iter().find(|s| s.system == "squid").unwrap();
    let theirs = sample.open();
    let parameters = theirs.parameters();
    let items = parameters.items.unwrap();
    assert_eq!((items, parameters.bits), (202, 127 * 8));
    assert_eq!(theirs.count().map(|count| count.keys), Some(201));
    let mut ours = Squid::new(items, 5).unwrap();
    fill(&mut ours, &sample);
    assert_eq!(ours.count().map(|count| count.keys), Some(150));
    let set = |filter: &dyn ForeignFilter| filter.fill() * parameters.bits as f64;
    let (few, all) = (set(&ours), set(&*theirs));
    assert!((all - few).round() <= 51.0 * 4.0, "{few} of {all}");
    ours.union_with(&*theirs).unwrap();
    let (bytes, expected) = (
        (&ours as &dyn ForeignFilter).to_bytes().unwrap(),
        sample.bytes(),
    );
    // All but the count.
    assert_eq!(bytes[..8], expected[..8]);
    assert_eq!(bytes[12..], expected[12..]);

    assert_eq!(Squid::create(1000, 0.1).unwrap().parameters().bits, 5000);
    assert!(Squid::create(1000, 1e-9).is_err());
    for (items, bits) in [(0, 5), (10, 0), (1 << 40, 5), (u64::MAX, 255)] {
        assert!(Squid::new(items, bits).is_err(), "{items} {bits}");
    }
}

#[test]
fn split_blocks_are_the_same_bytes() {
    let tried = compare("parquet", |sample| {
        let bytes = sample.open().parameters().bits / 8;
        Some(Box::new(Sbbf::with_bytes(bytes).unwrap()))
    });
    assert_eq!(tried, 10);
}

#[test]
fn split_blocks_are_sized_as_by_parquet_java() {
    for row in rows(&folder("parquet").join("sizing_parquet_java.tsv")) {
        let filter = Sbbf::new(row[0].parse().unwrap(), row[1].parse().unwrap()).unwrap();
        assert_eq!(
            (filter.parameters().bits / 8).to_string(),
            row[3],
            "{row:?}"
        );
    }
}

/// A filter of poppy that is emptied and filled again.
#[test]
fn poppy_takes_keys_as_poppy_does() {
    let mut tried = 0;
    for sample in samples() {
        if sample.system != "poppy" || !sample.name.starts_with("v2") {
            continue;
        }
        let mut bytes = sample.bytes();
        let word = |at: usize| {
            usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
        };
        let cache = word(40).div_ceil(8);
        let buckets = word(48 + cache) * 4096;
        bytes[32..40].fill(0);
        bytes[48..48 + cache].fill(0);
        bytes[56 + cache..56 + cache + buckets].fill(0);
        let mut filter = read(bytes, &ReadOptions::new()).unwrap();
        fill(&mut *filter, &sample);
        assert_same(&*filter, &sample);
        tried += 1;
    }
    assert_eq!(tried, 3);
}

#[test]
fn unions_hold_the_keys_of_both() {
    let key = |i: usize| format!("key-{i}");
    let make: [fn() -> Box<dyn ForeignFilter>; 9] = [
        || Box::new(Guava::create(GuavaStrategy::Mitz64, 100, 0.001).unwrap()),
        || Box::new(Spark::create(SparkVersion::V1, 100, 0.001).unwrap()),
        || Box::new(BitsAndBlooms::with_estimates(100, 0.001).unwrap()),
        || Box::new(Npm::create(100, 0.001).unwrap()),
        || Box::new(Pyprobables::new(100, 0.001).unwrap()),
        || Box::new(PyprobablesCounting::new(100, 0.001).unwrap()),
        || Box::new(PybloomLive::new(100, 0.001).unwrap()),
        || Box::new(Rbloom::new(RbloomHash::Xxh3, 100, 0.001).unwrap()),
        || Box::new(Sbbf::new(100, 0.001).unwrap()),
    ];
    for make in make {
        let (mut a, mut b, mut both) = (make(), make(), make());
        for i in 0..60 {
            let text = key(i);
            let text = ForeignKey::Text(&text);
            let one = if i % 2 == 0 { &mut a } else { &mut b };
            one.insert(text).unwrap();
            both.insert(text).unwrap();
        }
        a.union_with(&*b).unwrap();
        assert_eq!(a.fill(), both.fill(), "{}", a.format());
        assert!((0..60).all(|i| a.contains(ForeignKey::Text(&key(i))).unwrap()));
    }
}

#[test]
fn keys_of_a_wrong_type_are_refused() {
    let dcso = Dcso::new(10, 0.1).unwrap();
    assert!(matches!(
        dcso.contains(ForeignKey::I64(1)),
        Err(Error::Key {
            format: Format::Dcso,
            got: "i64",
            ..
        })
    ));
}

#[test]
fn filters_of_different_makers_do_not_merge() {
    let mut dcso = Dcso::new(10, 0.1).unwrap();
    let guava = Guava::create(GuavaStrategy::Mitz64, 10, 0.1).unwrap();
    assert!(matches!(
        dcso.union_with(&guava),
        Err(Error::Mismatch { .. })
    ));
    let old = Guava::create(GuavaStrategy::Mitz32, 10, 0.1).unwrap();
    let mut new = guava;
    assert!(matches!(
        new.union_with(&old),
        Err(Error::Mismatch {
            what: "strategy",
            ..
        })
    ));
}

#[test]
fn nonsense_sizes_are_refused() {
    for p in [0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY] {
        assert!(Guava::create(GuavaStrategy::Mitz64, 10, p).is_err(), "{p}");
        assert!(Dcso::new(10, p).is_err(), "{p}");
        assert!(BitsAndBlooms::with_estimates(10, p).is_err(), "{p}");
    }
    for n in [u64::MAX, 1 << 60] {
        assert!(Guava::create(GuavaStrategy::Mitz64, n, 0.01).is_err());
        assert!(Dcso::new(n, 0.01).is_err());
        assert!(BitsAndBlooms::with_estimates(n, 0.01).is_err());
    }
    assert!(Dcso::new(0, 0.01).is_err());
    assert!(BitsAndBlooms::new(1, u64::MAX).is_err());
    assert!(BitsAndBlooms::new(u64::MAX, 1).is_err());
}
