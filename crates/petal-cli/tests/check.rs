//! `petal check`.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Folder, feed, numbers, read};

/// A folder with a filter `f` of the numbers below 1000.
fn with_filter(more: &str) -> Folder {
    let folder = Folder::new();
    folder.file("list", numbers(0..1000));
    folder
        .petal(&format!("build list -o f {more}"))
        .ends_with(0);
    folder
}

#[test]
fn lines_in_the_filter_come_out_in_order_as_they_were() {
    let folder = with_filter("");
    let cases: [(&str, &[u8], &[u8], i32); 12] = [
        ("check f", b"7\nx\n5\r\n7\n", b"7\n5\r\n7\n", 0),
        ("check f", b"x\n7", b"7", 0),
        ("check f", b"x\ny\n", b"", 1),
        ("check f", b"", b"", 1),
        ("check -v f", b"7\nx\n\n5\ny", b"x\n\ny", 0),
        ("check -v f", b"7\n5\n", b"", 1),
        ("check -c f", b"7\nx\n5\n", b"2\n", 0),
        ("check -c f", b"x\n", b"0\n", 1),
        ("check -cv f", b"7\nx\n5\n", b"1\n", 0),
        ("check -H f", b"7\nx\n5", b"f\t7\nf\t5", 0),
        ("check -v --skip-empty f", b"\nx\n\r\n\n", b"x\n", 0),
        ("check -q f", b"7\n", b"7\n", 0),
    ];
    for (line, input, expected, code) in cases {
        let ran = folder.petal_with(line, input).ends_with(code);
        assert_eq!(
            ran.stdout.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{line}"
        );
    }
    let quiet = folder.petal_with("check -q f", b"7\n");
    assert_eq!(quiet.stderr, "");
}

#[test]
fn allowed_lines_are_exact_exceptions() {
    let folder = with_filter("--ignore-case");
    folder.file("deny", "Bad.example\nworse.example\n");
    folder.petal("build deny -o d --ignore-case").ends_with(0);
    folder.file("allow", "BAD.example\r\n7\n\n");
    folder.file("more", "8");
    let input = b"bad.EXAMPLE\nworse.example\n7\n8\nx\n";
    let cases: [(&str, &[u8], i32); 5] = [
        ("check d -f f --allow allow", b"worse.example\n8\n", 0),
        (
            "check d -f f --allow allow --allow more",
            b"worse.example\n",
            0,
        ),
        ("check -v d -f f --allow allow", b"bad.EXAMPLE\n7\nx\n", 0),
        ("check -c d -f f --allow allow -j 2", b"2\n", 0),
        ("check f --allow allow --allow more", b"", 1),
    ];
    for (line, expected, code) in cases {
        let ran = folder.petal_with(line, input).ends_with(code);
        assert_eq!(
            ran.stdout.escape_ascii().to_string(),
            expected.escape_ascii().to_string(),
            "{line}"
        );
    }
    let ran = folder
        .petal_with("check d --allow allow --summary text", input)
        .ends_with(0);
    assert!(
        ran.stderr.contains("exceptions (--allow)"),
        "{}",
        ran.stderr
    );
    folder
        .petal_with("check d --allow nowhere", input)
        .ends_with(2);
}

#[test]
fn exceptions_are_those_of_each_filters_keys() {
    let folder = Folder::new();
    folder.file("ints", "7\n8\n");
    folder.petal("build ints -o i --as int").ends_with(0);
    folder.file("allow", "007\nno number\n");
    let ran = folder.petal_with("check i --allow allow", b"+7\n8\n");
    assert_eq!(ran.ends_with(0).stdout, b"8\n");
}

#[test]
fn several_files_are_one_after_the_other() {
    let folder = with_filter("");
    // Where a last line is not complete, a line end is put between.
    folder.file("one", "x\n7");
    folder.file("two", "y\n8");
    let ran = folder.petal("check f one two").ends_with(0);
    assert_eq!(ran.stdout, b"7\n8");
    let ran = folder.petal("check -H f one two").ends_with(0);
    assert_eq!(ran.stdout, b"f\t7\nf\t8");
    let ran = folder.petal_with("check f one - two", b"9\n").ends_with(0);
    assert_eq!(ran.stdout, b"7\n9\n8");
    let ran = folder.petal("check f one two -o out.gz").ends_with(0);
    assert!(ran.stdout.is_empty());
    let ran = folder.petal("check f out.gz").ends_with(0);
    assert_eq!(ran.stdout, b"7\n8");
}

#[test]
fn each_filter_reads_lines_in_its_own_way() {
    let folder = Folder::new();
    folder.file("words", "apple\n");
    folder.file("names", "ALICE\n");
    folder.file("ints", "12\n");
    folder.file("hashes", "abcdef0123456789\n");
    folder.petal("build words -o w").ends_with(0);
    folder.petal("build names -o n --ignore-case").ends_with(0);
    folder.petal("build ints -o i --as int").ends_with(0);
    folder.petal("build hashes -o h --as hex").ends_with(0);
    let input = b"apple\nApple\nalice\n0012\nABCDEF0123456789 *x\nnothing\n\n";
    let ran = folder
        .petal_with("check w -f n -f i -f h -H --summary json", input)
        .ends_with(0);
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "w\tapple\nn\talice\ni\t0012\nh\tABCDEF0123456789 *x\n"
    );
    assert_eq!((ran.json("hits"), ran.json("absent")), (4.0, 3.0));
    let ran = folder
        .petal_with("check w -f n -f i -f h -v", input)
        .ends_with(0);
    assert_eq!(ran.stdout, b"Apple\nnothing\n\n");
    // The first filter that has a line is named.
    let ran = folder
        .petal_with("check w -f w -f n -H", b"apple\n")
        .ends_with(0);
    assert_eq!(ran.stdout, b"w\tapple\n");
    // A line of which no filter can be asked is in none.
    let ran = folder
        .petal_with("check i --summary json", b"x\n12\n")
        .ends_with(0);
    assert_eq!((ran.json("no_key"), ran.json("hits")), (1.0, 1.0));
}

/// The expected number of false hits is a share of the absent lines, and
/// what comes is near it.
#[test]
fn false_hits_are_about_as_many_as_is_said() {
    for kind in ["bloom", "classic", "growable"] {
        let folder = with_filter(&format!("-p 0.01 --kind {kind}"));
        folder.file("absent", numbers(1000..101_000));
        folder.file("both", numbers(0..101_000));
        for mapped in ["", "--mapped"] {
            let ran = folder.petal(&format!("check f absent -c --summary json {mapped}"));
            let (hits, expected) = (ran.json("hits"), ran.json("expected_false"));
            assert!(
                (hits - expected).abs() <= 5.0 * expected.sqrt(),
                "{hits} {expected}"
            );
            let rate = expected / 100_000.0;
            assert!((rate / ran.json("error") - 1.0).abs() < 0.01, "{rate}");
            // True hits do not change the number.
            let both = folder.petal(&format!("check f both -c --summary json {mapped}"));
            assert_eq!(both.json("hits"), hits + 1000.0);
            assert!((both.json("expected_false") - expected).abs() < 1e-6 * expected);
        }
    }
    let folder = with_filter("");
    let text = folder.petal("check f list -c").ends_with(0).stderr;
    assert!(text.contains("expected to be false"), "{text}");
}

#[test]
fn a_mapped_filter_answers_the_same() {
    for kind in ["bloom", "classic", "growable", "digests"] {
        let folder = with_filter(&format!("--kind {kind}"));
        folder.file("lines", numbers(500..1500));
        let loaded = folder.petal("check f lines").ends_with(0).stdout;
        let mapped = folder.petal("check f lines --mapped").ends_with(0).stdout;
        assert_eq!(loaded, mapped);
        assert_eq!(loaded, numbers(500..1000).into_bytes());
    }
}

#[test]
fn a_damaged_filter_gives_no_answers() {
    let folder = with_filter("");
    let whole = read(&folder.path("f"));
    let mut version = whole.clone();
    version[8] += 1;
    folder.file("version", version);
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 4;
    folder.file("flipped", flipped);
    folder.file("cut", &whole[..whole.len() - 8]);
    folder.file("longer", [&whole[..], b"x"].concat());
    folder.file("empty", "");
    folder.file("parquet", b"PAR1\x15\x04\x15\x10");
    folder.file("redis", b"REDIS0009\xfa\x09redis-ver");
    folder.file("bits", [0xff; 4096]);
    for (name, words) in [
        ("version", &["version: unsupported version 2"][..]),
        ("flipped", &["flipped: damaged", "checksum"]),
        ("cut", &["cut: truncated"]),
        ("longer", &["longer: ", "appended"]),
        ("empty", &["empty: truncated"]),
        (
            "parquet",
            &["parquet: no valid filter of parquet", "there are 8"],
        ),
        ("redis", &["redis: not a petal file", "REDIS000"]),
        ("bits", &["bits: not a petal file"]),
        ("list", &["list: not a petal file"]),
        ("missing", &["missing"]),
        (".", &["a directory"]),
    ] {
        for line in [
            format!("check {name} list"),
            format!("check f -f {name} list"),
        ] {
            let ran = folder.petal(&line).refused(words);
            assert!(ran.stdout.is_empty(), "{line}");
        }
    }
    // Mapped, the payload is not verified; all else is.
    for name in ["version", "cut", "longer", "redis", "missing", "."] {
        folder
            .petal(&format!("check {name} list --mapped"))
            .ends_with(2);
    }
}

/// A header may claim any size: memory is taken for what is there.
#[test]
fn a_claimed_size_is_not_believed() {
    let folder = with_filter("");
    let whole = read(&folder.path("f"));
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    // 2^43 and 2^63 bits in blocks of 512; offsets as in FORMAT.md.
    for blocks in [1u64 << 34, 1 << 54] {
        for honest in [true, false] {
            let mut file = whole.clone();
            let mut put = |at: usize, value: u64| {
                file[at..at + 8].copy_from_slice(&value.to_le_bytes());
            };
            let (payload, length) = (word(&whole, 104), blocks * 64);
            put(56, 1); // regions
            put(64, blocks);
            put(112, length);
            put(120, payload + length);
            let file_length = payload + length + 8 * length.div_ceil(1 << 20);
            put(
                128,
                if honest {
                    file_length
                } else {
                    whole.len() as u64
                },
            );
            // The checksum of the header is its digest.
            let sum = petal::KeyHasher::default()
                .digest_bytes(&file[..184])
                .bits();
            file[184..192].copy_from_slice(&sum.to_le_bytes());
            for length in [1, 64, 191, 192, file.len()] {
                folder.file("claims", &file[..length]);
                let words = match (honest, length) {
                    (false, 192..) => "file",
                    _ => "truncated",
                };
                for line in [
                    "check claims list",
                    "check --mapped claims list",
                    "verify claims",
                ] {
                    let command = format!(
                        "ulimit -v 400000; exec {} {line}",
                        env!("CARGO_BIN_EXE_petal")
                    );
                    let output = std::process::Command::new("sh")
                        .args(["-c", &command])
                        .current_dir(folder.path(""))
                        .stdin(Stdio::null())
                        .output()
                        .unwrap();
                    let message = String::from_utf8_lossy(&output.stderr);
                    assert_eq!(output.status.code(), Some(2), "{line} {length}: {message}");
                    assert!(message.contains(words), "{line} {length}: {message}");
                    assert!(!message.contains("checksum"), "{line} {length}: {message}");
                }
            }
        }
    }
}

#[test]
fn an_output_that_cannot_take_it_is_an_error() {
    let folder = with_filter("");
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = folder
        .command("check f list")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("standard output"), "{message}");
    folder
        .petal("check f list -o /dev/full")
        .refused(&["/dev/full"]);
    folder
        .petal("check f list -o no/such/file")
        .refused(&["no/such/file"]);
    folder.petal("check f list -o .").refused(&["directory"]);
    folder
        .petal("check f list missing -o out")
        .refused(&["missing"]);
    assert_eq!(folder.names(), ["f", "list"]);
}

#[test]
fn an_output_that_is_the_input_is_refused() {
    let folder = with_filter("");
    let path = folder.path("list");
    let before = read(&path);
    let file = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap();
    let output = folder
        .command("check f list")
        .stdout(file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("input and the output"));
    assert_eq!(read(&path), before);
    // Replaced at the end, it may be.
    folder.petal("check f list -o list").ends_with(0);
    assert_eq!(read(&path), before);
}

#[test]
fn a_reader_that_has_gone_is_silence() {
    let folder = with_filter("");
    folder.file("much", "7\n".repeat(3_000_000));
    let mut child = folder
        .command("check f much")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 2];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(&first, b"7\n");
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty(), "{said}");
}

/// Somebody may wait for the answers: they do not wait for the end of the input.
#[test]
fn answers_of_a_slow_pipe_come_at_once() {
    let folder = with_filter("");
    let mut child = folder
        .command("check f")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    for line in [&b"7\n"[..], b"8\n"] {
        std::io::Write::write_all(&mut stdin, line).unwrap();
        let mut answer = [0; 2];
        stdout.read_exact(&mut answer).unwrap();
        assert_eq!(answer, line);
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn contradicting_flags_are_refused() {
    let folder = with_filter("");
    for (line, words) in [
        ("check", &["FILTER"][..]),
        ("check -vH f list", &["cannot be used with"]),
        ("check -cH f list", &["cannot be used with"]),
        ("check f list --memory 1K", &["--memory", "--mapped"]),
        ("check f .", &["is a directory"]),
        ("check f --as hex list", &["--as"]),
    ] {
        folder.petal(line).refused(words);
    }
    let mut child = folder.command("check f list").spawn().unwrap();
    drop(child.stdin.take());
    assert_eq!(
        child.wait_with_output().unwrap().stdout,
        numbers(0..1000).into_bytes()
    );
    let mut child = folder
        .command("check f")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    feed(&mut child, numbers(0..100_000).into_bytes());
    assert_eq!(
        child.wait_with_output().unwrap().stdout,
        numbers(0..1000).into_bytes()
    );
}
