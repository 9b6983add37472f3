//! Filters that petal fills: the bytes that their makers would write.

use petal_interop::{
    BitsAndBlooms, Dcso, Encoding, Error, ForeignFilter, ForeignKey, Format, Guava, GuavaStrategy,
};

use crate::support::{Sample, folder, rows, samples};

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

/// n and p from a name such as `..._n200_p0.03...`.
fn n_and_p(name: &str) -> Option<(u64, f64)> {
    let part = |letter: char| {
        name.split('_')
            .filter_map(|part| part.strip_prefix(letter))
            .find(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    Some((part('n')?.parse().ok()?, part('p')?.parse().ok()?))
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
        let (n, p) = n_and_p(&sample.name).unwrap();
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
            name => n_and_p(name).unwrap(),
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
        let mut filter = match n_and_p(&sample.name) {
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
