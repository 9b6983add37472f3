//! Writing in place: the protocol, and what a crash leaves behind.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::*;
use crate::error::FormatError;
use crate::format::MIB;
use crate::hash::Digests;
use crate::traits::{Insert, Merge, mask_words};
use crate::{FileLock, MappedWriter, inspect, verify};

/// 3 MiB and a half, one region.
fn wide() -> SplitGeometry {
    split(BlockWords::Eight, 1, 448 << 7)
}

fn create(path: &Path, identity: Identity, geometry: SplitGeometry) -> MappedWriter {
    let labels = Labels::default();
    MappedWriter::create(
        path,
        identity,
        geometry,
        Some(PROMISE),
        labels,
        Overwrite::Refuse,
    )
    .unwrap()
}

fn payload(path: &Path) -> Vec<u8> {
    let info = inspect(path).unwrap();
    let bytes = fs::read(path).unwrap();
    let start = usize::try_from(info.payload_offset).unwrap();
    let len = usize::try_from(info.payload_bytes).unwrap();
    bytes[start..][..len].to_vec()
}

fn table(path: &Path) -> Vec<u8> {
    let info = inspect(path).unwrap();
    let end = usize::try_from(info.payload_offset + info.payload_bytes).unwrap();
    fs::read(path).unwrap().split_off(end)
}

#[test]
fn a_file_written_in_place_is_the_one_that_is_saved() {
    let directory = tempfile::tempdir().unwrap();
    let classic = ClassicGeometry::new(1_000_003, 7).unwrap();
    let mut labels = Labels::default();
    labels.set("source", "tests").unwrap();
    for (kind, identity) in [
        ("bloom", Identity::new(KeyType::Int)),
        ("classic", keyed(KeyType::Bytes)),
    ] {
        let path = directory.path().join(kind);
        let saved = directory.path().join(format!("{kind}.saved"));
        let secret = (kind == "classic").then(secret);
        let mut memory: AnyFilter = match kind {
            "bloom" => bloom(identity.clone(), wide()),
            _ => Classic::with_geometry(identity.clone(), classic, PROMISE)
                .unwrap()
                .into(),
        };
        memory.labels_mut().set("source", "tests").unwrap();
        let promise = Some(PROMISE);
        let mut writer = match kind {
            "bloom" => MappedWriter::create(
                &path,
                identity,
                wide(),
                promise,
                labels.clone(),
                Overwrite::Refuse,
            ),
            _ => MappedWriter::create(
                &path,
                identity,
                classic,
                promise,
                labels.clone(),
                Overwrite::Refuse,
            ),
        }
        .unwrap();
        memory.save(&saved, Overwrite::Refuse).unwrap();
        assert_eq!(fs::read(&path).unwrap(), fs::read(&saved).unwrap());

        for (i, digest) in digests(1000).chain(digests(1200)).enumerate() {
            let new = memory.insert_bits(digest).unwrap();
            assert_eq!(writer.insert_bits(digest).unwrap(), new);
            if i == 500 {
                writer.commit().unwrap();
                memory.meta_mut().generation += 1;
            }
        }
        writer.commit().unwrap();
        memory.meta_mut().generation += 1;
        assert_same(writer.filter(), &memory);
        memory.save(&saved, Overwrite::Replace).unwrap();
        assert_eq!(fs::read(&path).unwrap(), fs::read(&saved).unwrap());
        assert_eq!(verify(&path).unwrap().generation, 3);
        drop(writer);
        assert_same(&AnyFilter::open(&path, secret.as_ref()).unwrap(), &memory);
        // A writer that changes nothing leaves the file as it is.
        let mut writer = MappedWriter::open(&path, secret.as_ref()).unwrap();
        assert!(!writer.insert_bits(digests(1).next().unwrap()).unwrap());
        writer.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), fs::read(&saved).unwrap());
    }
}

#[test]
fn batches_answer_as_single_calls() {
    let directory = tempfile::tempdir().unwrap();
    let identity = Identity::new(KeyType::Int);
    let mut single = create(&directory.path().join("a"), identity.clone(), wide());
    let mut batch = create(&directory.path().join("b"), identity.clone(), wide());
    let mut keys = Digests::new(identity.hasher.clone(), KeyType::Int);
    for round in 0..2 {
        keys.clear();
        for key in (0..200).chain(100..300) {
            keys.push_int(key * (round + 1)).unwrap();
        }
        let mut mask = vec![u64::MAX; mask_words(keys.len())];
        batch.insert_digests(&keys, &mut mask).unwrap();
        for (i, &bits) in keys.bits().iter().enumerate() {
            let new = single.insert_bits(bits).unwrap();
            assert_eq!(new, mask[i / 64] >> (i % 64) & 1 == 1);
        }
        single.commit().unwrap();
        batch.commit().unwrap();
    }
    assert_same(single.filter(), batch.filter());
    // A batch of known keys does not make the file dirty.
    let mut mask = vec![u64::MAX; mask_words(keys.len())];
    batch.insert_digests(&keys, &mut mask).unwrap();
    assert!(mask.iter().all(|&word| word == 0));
    verify(directory.path().join("b")).unwrap();
    // It takes what is poured into it.
    let mut set = DigestSet::new(identity).unwrap();
    set.insert_bits(crate::mix_int(-1, 0)).unwrap();
    set.pour_into(&mut batch).unwrap();
    assert!(batch.filter().contains_int(-1).unwrap());
    assert!(batch.insert_bytes(b"x").is_err() && batch.insert_int(-2).unwrap());
}

#[test]
fn only_touched_parts_get_new_checksums() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let mut writer = create(&path, Identity::new(KeyType::Int), wide());
    let before = table(&path);
    assert_eq!(before.len(), 4 * 8);
    // Blocks come from the high bits: the third of three and a half MiB.
    writer.insert_bits(5 << 61).unwrap();
    writer.commit().unwrap();
    let after = table(&path);
    let changed: Vec<_> = (0..4)
        .filter(|i| before[i * 8..][..8] != after[i * 8..][..8])
        .collect();
    assert_eq!(changed, [2]);
    verify(&path).unwrap();
}

#[test]
fn one_writer_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let writer = create(&path, Identity::new(KeyType::Int), wide());
    let lock = directory.path().join("filter.lock");
    let second = [
        MappedWriter::open(&path, None).err(),
        MappedWriter::recover(&path, None).err(),
        FileLock::acquire(&path).err(),
    ];
    for error in second {
        let error = error.unwrap();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        assert!(
            error.to_string().contains(lock.to_str().unwrap()),
            "{error}"
        );
    }
    drop(writer);
    MappedWriter::open(&path, None).unwrap();
    let again = MappedWriter::create(
        &path,
        Identity::new(KeyType::Int),
        wide(),
        None,
        Labels::default(),
        Overwrite::Refuse,
    );
    assert!(matches!(again, Err(Error::Exists { .. })));
}

#[test]
fn kinds_that_cannot_be_written_in_place_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    for sample in samples() {
        let in_place = matches!(sample.filter.kind(), Kind::Bloom | Kind::Classic);
        sample.filter.save(&path, Overwrite::Replace).unwrap();
        let secret = sample.secret.as_ref();
        match MappedWriter::open(&path, secret) {
            Ok(_) => assert!(in_place, "{}", sample.name),
            Err(error) => {
                assert!(
                    !in_place && matches!(error, Error::Unsupported { .. }),
                    "{error}"
                );
            }
        }
        if secret.is_some() && in_place {
            let error = MappedWriter::open(&path, None).unwrap_err();
            assert!(matches!(error, Error::Secret { .. }), "{error}");
        }
    }
}

#[test]
fn labels_cannot_be_changed_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = create(
        &directory.path().join("a"),
        Identity::new(KeyType::Int),
        wide(),
    );
    writer.insert_int(1).unwrap();
    writer.labels_mut().set("a", "b").unwrap();
    assert!(writer.commit().unwrap_err().to_string().contains("labels"));
}

/// A checksum is never computed over damage that was there before.
#[test]
fn damage_is_not_covered_up() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let mut writer = create(&path, Identity::new(KeyType::Int), wide());
    writer.insert_bits(1 << 63).unwrap();
    writer.commit().unwrap();
    drop(writer);
    let at = inspect(&path).unwrap().payload_offset + 2 * MIB as u64;
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[1], at).unwrap();

    let mut writer = MappedWriter::open(&path, None).unwrap();
    assert!(writer.insert_bits(0).unwrap()); // the first MiB is well
    let error = writer.insert_bits(5 << 61).unwrap_err();
    let damage = FormatError::Checksum {
        part: "payload",
        offset: at,
    };
    assert!(
        matches!(&error, Error::Format(found) if *found == damage),
        "{error}"
    );
    writer.commit().unwrap();
    assert!(matches!(verify(&path), Err(Error::Format(found)) if found == damage));
    // Nor is a damaged checksum table taken for a good one.
    file.write_all_at(&[0], at).unwrap();
    drop(writer);
    verify(&path).unwrap();
    let len = inspect(&path).unwrap().file_bytes;
    file.write_all_at(&[1, 2, 3], len - 8).unwrap();
    assert!(MappedWriter::open(&path, None).is_err());
}

#[test]
fn an_interrupted_writer_leaves_a_dirty_file_that_can_be_recovered() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let mut writer = create(&path, Identity::new(KeyType::Int), wide());
    let committed: Vec<u64> = digests(100).collect();
    for &digest in &committed {
        writer.insert_bits(digest).unwrap();
    }
    writer.commit().unwrap();
    for digest in digests(200).skip(100) {
        writer.insert_bits(digest).unwrap();
    }
    // While it is at work, and after it has died.
    for _ in 0..2 {
        let dirty = FormatError::Dirty { generation: 2 };
        for error in [
            AnyFilter::open(&path, None).err(),
            AnyFilter::open_mapped(&path, None).err(),
            verify(&path).err(),
        ] {
            assert!(matches!(error, Some(Error::Format(found)) if found == dirty));
        }
        let info = inspect(&path).unwrap();
        assert!(info.dirty && info.generation == 2);
        // Dropping what is dropped already is harmless.
        if let Err(Error::Format(found)) = MappedWriter::open(&path, None) {
            assert_eq!(found, dirty);
        }
        drop(std::mem::replace(
            &mut writer,
            create(
                &tempfile::tempdir().unwrap().path().join("x"),
                Identity::new(KeyType::Int),
                wide(),
            ),
        ));
    }
    let mut writer = MappedWriter::recover(&path, None).unwrap();
    let info = verify(&path).unwrap();
    assert!(!info.dirty && info.generation == 3 && info.insertions.is_none());
    assert!(committed.iter().all(|&digest| writer.contains_bits(digest)));
    // It is a writer like any other, and a clean file needs no recovery.
    writer.insert_int(1).unwrap();
    writer.commit().unwrap();
    drop(writer);
    assert_eq!(verify(&path).unwrap().generation, 4);
    drop(MappedWriter::recover(&path, None).unwrap());
    assert_eq!(verify(&path).unwrap().generation, 4);
}

/// Whatever mixture of old and new pages, checksums and headers a crash
/// leaves on the disk: it is refused or is one of the two clean files, and
/// recovery finds every key of the last generation.
#[test]
fn every_mixture_of_old_and_new_pages_is_safe() {
    const PAGE: usize = 4096;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let geometry = split(BlockWords::Eight, 2, 320 << 5); // 1.25 MiB
    let mut writer = create(&path, Identity::new(KeyType::Int), geometry);
    let old: Vec<u64> = digests(50).collect();
    for &digest in &old {
        writer.insert_bits(digest).unwrap();
    }
    writer.commit().unwrap();
    let before = fs::read(&path).unwrap();
    for digest in digests(100) {
        writer.insert_bits(digest).unwrap();
    }
    let during = fs::read(&path).unwrap();
    writer.commit().unwrap();
    let after = fs::read(&path).unwrap();
    drop(writer);
    assert_ne!(before[..192], during[..192]);

    let info = inspect(&path).unwrap();
    let start = usize::try_from(info.payload_offset).unwrap();
    let end = start + usize::try_from(info.payload_bytes).unwrap();
    let mut random = 1u64;
    let mut coin = || {
        random = crate::mix_int(random.cast_signed(), 7);
        random & 1 == 1
    };
    for _ in 0..40 {
        // The dirty header is durable before the first bit, and the clean
        // one comes last: in between, any page may be old or new.
        let mut mixed = during[..start].to_vec();
        for page in (start..end).step_by(PAGE) {
            let source = if coin() { &before } else { &after };
            mixed.extend(&source[page..(page + PAGE).min(end)]);
        }
        for sum in (end..before.len()).step_by(8) {
            let source = if coin() { &before } else { &after };
            mixed.extend(&source[sum..sum + 8]);
        }
        fs::write(&path, &mixed).unwrap();
        assert!(AnyFilter::open(&path, None).is_err());
        drop(MappedWriter::recover(&path, None).unwrap());
        let filter = AnyFilter::open(&path, None).unwrap();
        assert!(old.iter().all(|&digest| filter.contains_bits(digest)));
    }
    for clean in [&before, &after] {
        fs::write(&path, clean).unwrap();
        AnyFilter::open(&path, None).unwrap();
    }
}

#[test]
fn merged_filters_are_continued_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let mut filter = bloom(Identity::new(KeyType::Int), wide());
    let mut other = bloom(Identity::new(KeyType::Int), wide());
    fill(&mut other, 30);
    filter.union_with(&other).unwrap();
    filter.save(&path, Overwrite::Refuse).unwrap();
    let mut writer = MappedWriter::open(&path, None).unwrap();
    assert!(digests(30).all(|digest| writer.contains_bits(digest)));
    fill_writer(&mut writer, 60);
    writer.commit().unwrap();
    assert_eq!(verify(&path).unwrap().insertions, None);
    assert!(payload(&path).iter().any(|&byte| byte != 0));
}

fn fill_writer(writer: &mut MappedWriter, count: u64) {
    for digest in digests(count) {
        writer.insert_bits(digest).unwrap();
    }
}
