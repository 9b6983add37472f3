//! Filters of other systems, `convert`, and the classic programs.

use std::path::{Path, PathBuf};

use crate::support::{Folder, read};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../petal-interop/tests/vectors")
}

fn sample(path: &str) -> String {
    vectors()
        .join("foreign")
        .join(path)
        .to_str()
        .unwrap()
        .to_owned()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Members are printed, and of the others those that the maker finds.
#[test]
fn check_answers_as_the_maker_does() {
    let folder = Folder::new();
    let cases = [
        ("guava/mitz64_utf8_n200_p0.03.bin", "guava/", "", ""),
        (
            "guava/mitz64_utf16le_n200_p0.03.bin",
            "guava/",
            "",
            "--as utf16",
        ),
        (
            "guava/mitz64_int_n200_p0.03.bin",
            "guava/",
            "_int",
            "--as i32",
        ),
        (
            "spark/v2_seed0_long_n200_p0.03.bin",
            "spark/",
            "_long",
            "--as i64",
        ),
        ("dcso/gzip_n200_p0.03.bloom.gz", "dcso/", "", ""),
        (
            "redisbloom/nonscaling_n250_p0.01.scandump",
            "redisbloom/",
            "",
            "-j 1",
        ),
        (
            "npm-bloom-filters/bloom_n200_p0.03.json",
            "npm-bloom-filters/",
            "",
            "",
        ),
        (
            "rbloom/sha256_n200_p0.03.bloom",
            "rbloom/",
            "",
            "--format rbloom --hash sha256",
        ),
        ("poppy/v2_n200_p0.03.poppy", "poppy/", "", "--format poppy"),
    ];
    for (file, system, list, flags) in cases {
        let (members, others) = (
            sample(&format!("{system}members{list}.txt")),
            sample(&format!("{system}nonmembers{list}.txt")),
        );
        let file_name = sample(file);
        let found = folder
            .petal(&format!("check {flags} {file_name} {members}"))
            .ends_with(0);
        assert!(found.stdout == std::fs::read(&members).unwrap(), "{file}");
        let name = file.strip_suffix(".gz").unwrap_or(file);
        let stem = &name[..name.rfind('.').unwrap()];
        let positives = std::fs::read(sample(&format!("{stem}.positives.txt"))).unwrap();
        let code = if positives.is_empty() { 1 } else { 0 };
        let found = folder
            .petal(&format!("check {flags} {file_name} {others}"))
            .ends_with(code);
        assert!(found.stdout == positives, "{file}");
        assert!(
            found.stderr.contains("expected to be false"),
            "{}",
            found.stderr
        );
    }
}

#[test]
fn check_asks_filters_of_petal_and_of_others_together() {
    let folder = Folder::new();
    folder.file("own", "zzz\n");
    folder.petal("build own -o own.petal -q").ends_with(0);
    folder.file("asked", "zzz\nmember-0000\nnobody at all\n");
    let guava = sample("guava/mitz64_utf8_n1000.bin").replace("n1000", "n200_p0.03");
    let found = folder
        .petal(&format!("check own.petal -f {guava} -H asked"))
        .ends_with(0);
    let lines = text(found.stdout);
    assert_eq!(lines, format!("own.petal\tzzz\n{guava}\tmember-0000\n"));
    let found = folder
        .petal(&format!("check {guava} -f own.petal -v asked"))
        .ends_with(0);
    assert_eq!(text(found.stdout), "nobody at all\n");
}

/// Counting filters say how often, as far as their maker would know.
#[test]
fn check_counts_with_filters_that_count() {
    let folder = Folder::new();
    let recorded = sample("pyprobables/counting_n200_p0.05.counts.tsv");
    let recorded = text(std::fs::read(recorded).unwrap());
    let rows: Vec<_> = recorded
        .lines()
        .skip(1)
        .map(|row| row.split_once('\t').unwrap())
        .collect();
    let items: String = rows.iter().map(|(item, _)| format!("{item}\n")).collect();
    folder.file("items", items);
    let file = sample("pyprobables/counting_n200_p0.05.cbm");
    let ran = folder
        .petal(&format!("check --times {file} items"))
        .ends_with(0);
    let expected: String = rows
        .iter()
        .filter(|(_, times)| *times != "0")
        .map(|(item, times)| format!("{times}\t{item}\n"))
        .collect();
    assert!(rows.len() > 100 && text(ran.stdout) == expected);

    let file = sample("npm-bloom-filters/counting_n200_p0.05.json");
    let members = sample("npm-bloom-filters/members.txt");
    let found = folder
        .petal(&format!("check {file} {members}"))
        .ends_with(0);
    let times = folder
        .petal(&format!("check --times {file} {members}"))
        .ends_with(0);
    let times = text(times.stdout);
    let lines: String = times
        .lines()
        .map(|line| {
            let (times, line) = line.split_once('\t').unwrap();
            assert!((1..=20).contains(&times.parse::<u32>().unwrap()));
            format!("{line}\n")
        })
        .collect();
    assert_eq!(lines, text(found.stdout));
    let file = sample("npm-bloom-filters/bloom_n200_p0.03.json");
    folder
        .petal(&format!("check --times {file} {members}"))
        .refused(&["of npm does not count", "--times"]);
}

#[test]
fn check_asks_a_column_of_a_parquet_file() {
    let folder = Folder::new();
    let (file, ints) = (
        sample("parquet/pyarrow.parquet"),
        sample("parquet/members_int.txt"),
    );
    let asked = format!("check --column i32 --as i32 {file} {ints} -c");
    assert_eq!(text(folder.petal(&asked).ends_with(0).stdout), "200\n");
    folder
        .petal(&format!("check {file} {ints}"))
        .refused(&["column", "i32", "i64", "--column"]);
    folder
        .petal(&format!("check --column i32 {file} {ints}"))
        .refused(&["i32"]);
}

#[test]
fn info_and_verify_say_what_a_file_is() {
    let folder = Folder::new();
    let file = sample("dcso/plain_n200_p0.03.bloom");
    let info = text(folder.petal(&format!("info {file}")).ends_with(0).stdout);
    for words in [
        "dcso",
        "FNV-1",
        "200 keys",
        "1,459",
        "198",
        "none in this format",
    ] {
        assert!(info.contains(words), "{words}: {info}");
    }
    let json = text(
        folder
            .petal(&format!("info --json {file}"))
            .ends_with(0)
            .stdout,
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["format"], "dcso");
    assert_eq!(json["bits"], 1459);
    assert_eq!(json["positions"], 6);
    assert_eq!(json["count"], 198);
    assert_eq!(json["promised_error"], 0.03);
    let verified = text(folder.petal(&format!("verify {file}")).ends_with(0).stdout);
    assert!(
        verified.contains("OK") && verified.contains("no checksum"),
        "{verified}"
    );
    let cut = std::fs::read(&file).unwrap();
    folder.file("cut.bloom", &cut[..cut.len() - 1]);
    folder
        .petal("verify cut.bloom")
        .refused(&["cut.bloom", "--format"]);
    folder
        .petal("verify --format dcso cut.bloom")
        .refused(&["232", "231"]);
    folder.petal("info --format nobody cut.bloom").ends_with(2);
}

#[test]
fn merge_joins_filters_of_one_system() {
    let folder = Folder::new();
    let [a, b] = ["a", "b"].map(|name| sample(&format!("dcso/join_{name}.bloom")));
    folder
        .petal(&format!("merge {a} {b} -o joined.bloom"))
        .ends_with(0);
    let joined = std::fs::read(sample("dcso/joined.bloom")).unwrap();
    assert!(read(&folder.path("joined.bloom")) == joined);
    let other = sample("dcso/plain_n100_p0.01_overfull.bloom");
    folder
        .petal(&format!("merge {a} {other} -o x"))
        .refused(&["differs"]);
    let guava = sample("guava/mitz64_utf8_n200_p0.03.bin");
    folder
        .petal(&format!("merge {a} {guava} -o x"))
        .refused(&["guava"]);
    folder
        .petal(&format!("merge --intersection {a} {b} -o x"))
        .refused(&["--intersection"]);
    assert!(!folder.path("x").exists());
}

#[test]
fn convert_takes_bits_over_between_ways_of_writing() {
    let folder = Folder::new();
    let cases = [
        (
            "dcso/gzip_n200_p0.03.bloom.gz",
            "dcso/plain_n200_p0.03.bloom",
            "--to dcso",
        ),
        (
            "bits-and-blooms/m1024_k5.bin",
            "bits-and-blooms/m1024_k5.json",
            "--encoding json",
        ),
        (
            "bits-and-blooms/m1024_k5.json",
            "bits-and-blooms/m1024_k5.bin",
            "--to bits-and-blooms",
        ),
        (
            "pyprobables/bloom_n200_p0.03.blm",
            "pyprobables/bloom_n200_p0.03.hex",
            "--encoding hex",
        ),
        (
            "parquet/pyarrow.parquet",
            "parquet/pyarrow_rg0_i32.bloom",
            "--column i32 --row-group 0",
        ),
    ];
    for (from, to, flags) in cases {
        folder
            .petal(&format!("convert {flags} {} -o out --force", sample(from)))
            .ends_with(0);
        assert!(
            read(&folder.path("out")) == std::fs::read(sample(to)).unwrap(),
            "{from}"
        );
    }
    let guava = sample("guava/mitz64_utf8_n200_p0.03.bin");
    folder
        .petal(&format!("convert {guava} --to dcso -o new"))
        .refused(&["MurmurHash3", "FNV-1", "--list"]);
    folder
        .petal(&format!("convert {guava} --encoding json -o new"))
        .refused(&["json", "plain"]);
    folder
        .petal(&format!("convert {guava} -o out"))
        .refused(&["--force"]);
    assert!(!folder.path("new").exists());
}

#[test]
fn convert_rebuilds_from_a_list() {
    let folder = Folder::new();
    let (dcso, keys) = (
        sample("dcso/plain_n200_p0.03.bloom"),
        sample("dcso/members.txt"),
    );
    folder
        .petal(&format!(
            "convert {dcso} --list {keys} --to guava -o new.bin"
        ))
        .ends_with(0);
    let guava = std::fs::read(sample("guava/mitz64_utf8_n200_p0.03.bin")).unwrap();
    assert!(read(&folder.path("new.bin")) == guava);
    folder
        .petal(&format!(
            "convert {dcso} --list {keys} --to petal -o new.petal -p 1e-9"
        ))
        .ends_with(0);
    let found = folder
        .petal(&format!("check -c new.petal {keys}"))
        .ends_with(0);
    assert_eq!(text(found.stdout), "200\n");
    // Guava's file does not say what it was made for, its bits and positions do.
    folder
        .petal(&format!(
            "convert new.bin --list {keys} --to dcso -o derived.bloom"
        ))
        .ends_with(0);
    let derived = folder.json("info --json derived.bloom");
    assert_eq!(derived["promised_error"], 1.0 / 32.0);
    assert!((200..210).contains(&derived["items"].as_u64().unwrap()));
    // So does a filter of petal, whose keys are given again.
    folder
        .petal(&format!(
            "convert new.petal --list {keys} --to dcso -o from-petal.bloom"
        ))
        .ends_with(0);
    folder
        .petal(&format!(
            "convert new.bin --list {keys} --to dcso -n x -p 7 -o new.bloom"
        ))
        .refused(&["`x`", "-p 7"]);
    folder
        .petal(&format!(
            "convert new.bin --list {keys} --to dcso -n 200 -p 0.03 -o new.bloom"
        ))
        .ends_with(0);
    assert!(read(&folder.path("new.bloom")) == std::fs::read(&dcso).unwrap());
}

#[test]
fn a_raw_dump_of_a_classic_program_is_asked() {
    let folder = Folder::new();
    // "a" has the bit 97 in all seven positions.
    let mut bits = vec![0; 13];
    bits[97 / 8] |= 1 << (97 % 8);
    folder.file("bitset", &bits);
    folder.file("asked", "a\nb\n");
    let found = folder
        .petal("check --format classic --program java-a bitset asked")
        .ends_with(0);
    assert_eq!(text(found.stdout), "a\n");
    folder
        .petal("check --format classic bitset asked")
        .refused(&["--program"]);
}

#[test]
fn lab_runs_the_url_program() {
    let folder = Folder::new();
    let case = vectors().join("classic/dedup/13_len300_commonprefix.in");
    let case = case.to_str().unwrap();
    let shown = text(
        folder
            .petal(&format!("lab classic url-dedup-c {case} -o dups"))
            .ends_with(0)
            .stdout,
    );
    assert!(
        shown.contains("2 URLs") && shown.contains("once more"),
        "{shown}"
    );
    assert!(read(&folder.path("dups")) == std::fs::read(case.replace(".in", ".dups")).unwrap());
    let json = text(
        folder
            .petal(&format!("lab classic url-dedup-c --json {case}"))
            .ends_with(0)
            .stdout,
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["program"]["total"], 5);
    assert_eq!(json["correct"]["total"], 2);
    folder
        .petal(&format!("lab classic java-a {case}"))
        .refused(&["url-dedup-c"]);
}

#[test]
fn plan_prints_the_published_table() {
    let folder = Folder::new();
    let table = folder.petal("plan --table").ends_with(0).stdout;
    let published = std::fs::read(vectors().join("classic/fp_table_classic.tsv")).unwrap();
    let named = folder.petal("plan --table classic").ends_with(0).stdout;
    assert_eq!(named, table);
    folder
        .petal("plan --table -n 100k")
        .refused(&["leave -n", "--table cost"]);
    assert_eq!(text(table), text(published));
}

#[test]
fn lab_measures_hashes() {
    let folder = Folder::new();
    let shown = folder
        .petal("lab hash weighted-sum xxh3 -n 5k --plot e.svg")
        .ends_with(0);
    let shown = text(shown.stdout);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    let picture = String::from_utf8(read(&folder.path("e.svg"))).unwrap();
    for word in ["<svg", "weighted-sum", "xxh3", "theory", "</svg>"] {
        assert!(picture.contains(word), "{word}");
    }
    let urls = crate::support::urls();
    let json = folder
        .petal(&format!(
            "lab hash crc32 siphash --json --keys {} -n 500",
            urls.display()
        ))
        .ends_with(0);
    let lines = text(json.stdout);
    let values: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(values.len(), 2);
    assert_eq!(values[0]["hash"], "crc32");
    assert_eq!(values[1]["points"].as_array().unwrap().len(), 20);
    folder.petal("lab hash nobody").ends_with(2);
    folder.file("few", "a\nb\n");
    folder.petal("lab hash --keys few").refused(&["few", "100"]);
    folder.petal("lab hash xxh3 -k 65").refused(&["k", "64"]);
}

/// What is no file, or no filter, is said to be that and not to be one of petal's.
#[test]
fn what_cannot_be_read_is_called_by_its_name() {
    let folder = Folder::new();
    let guava = sample("guava/mitz64_utf8_n200_p0.03.bin");
    folder.file("empty", "");
    folder.file("cut", &std::fs::read(&guava).unwrap()[..100]);
    folder.file("list", "a\n");
    std::fs::create_dir(folder.path("folder")).unwrap();
    for (name, words) in [
        ("empty", "truncated"),
        ("cut", "no valid filter of guava: its header accounts for"),
        ("folder", "is a directory"),
        ("missing", "No such file"),
        ("/dev/null", "is a device"),
        ("list", "not a petal file"),
    ] {
        for line in [
            format!("info {name}"),
            format!("verify {name}"),
            format!("check {name} list"),
            format!("merge {guava} {name} -o out"),
            format!("merge {name} {guava} -o out"),
            format!("convert {name} --to guava -o out"),
        ] {
            folder.petal(&line).refused(&[words]);
        }
    }
    // Named formats read what is not a file as far as it has an end.
    for device in ["/dev/null", "/dev/zero"] {
        for format in ["guava", "dcso", "rbloom --hash md5"] {
            folder
                .petal(&format!("info {device} --format {format}"))
                .refused(&["is a device"]);
        }
    }
    assert!(!folder.path("out").exists());
    // Others are named by their systems, and flags as they are.
    let (dcso, npm) = (
        sample("dcso/plain_n200_p0.03.bloom"),
        sample("npm-bloom-filters/counting_n200_p0.05.json"),
    );
    for (other, words) in [
        (&dcso, "this filter has guava, the other dcso"),
        (&npm, "this filter has guava, the other npm (counting)"),
    ] {
        folder
            .petal(&format!("merge {guava} {other} -o out"))
            .refused(&["kind differs", words]);
    }
    let ran = folder
        .petal(&format!(
            "convert {guava} --to guava --list list -n 1T -p 1e-9 -o out"
        ))
        .refused(&["2^31 - 1 words", "(with -n and -p)"]);
    assert!(!ran.stderr.contains("--n"), "{}", ran.stderr);
    let ran = folder.petal(&format!(
        "convert {guava} --to spark --list list -n 1T -p 1e-9 -o out"
    ));
    let ran = ran.refused(&["2^31 - 1 words"]);
    assert!(!ran.stderr.contains("--m"), "{}", ran.stderr);
    // A filter of petal's own is none to convert, and none to merge with others.
    folder.petal("build list -o own -q").ends_with(0);
    folder
        .petal("convert own --to guava -o out")
        .refused(&["is a filter of petal"]);
    folder
        .petal(&format!("merge {guava} own -o out"))
        .refused(&["one of petal"]);
}
