//! `petal dedup` without a state.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Folder, feed, first_occurrences, petal, read, run, run_with, urls};

#[track_caller]
fn dedup(args: &[&str], input: &[u8], expected: &[u8]) {
    let ran = run_with([&["dedup"], args].concat(), input).ends_with(0);
    assert_eq!(
        ran.stdout.escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
}

#[test]
fn real_urls_keep_their_first_occurrences_in_order() {
    let folder = Folder::new();
    let text = read(&urls());
    let expected = first_occurrences(&text);
    let out = folder.path("unique.txt");
    for _ in 0..2 {
        run([
            "dedup".as_ref(),
            urls().as_os_str(),
            "-o".as_ref(),
            out.as_os_str(),
        ])
        .ends_with(0);
        assert!(read(&out) == expected);
        assert_eq!(folder.names(), ["unique.txt"]);
    }
    let piped = run_with(["dedup", "--summary", "json"], &text).ends_with(0);
    assert!(piped.stdout == expected);
    let lines = text.iter().filter(|&&byte| byte == b'\n').count() as f64;
    assert_eq!(piped.json("lines"), lines);
    assert_eq!(piped.json("unique") + piped.json("repeated"), lines);
    assert!(piped.json("expected_dropped") < 1e-6);
}

#[test]
fn lines_are_bytes_and_come_out_as_they_were() {
    let cases: [(&[u8], &[u8]); 14] = [
        (b"", b""),
        (b"\n", b"\n"),
        (b"\n\n", b"\n"),
        (b"a", b"a"),
        (b"a\na", b"a\n"),
        (b"a\nb", b"a\nb"),
        (b"b\na\nb\n", b"b\na\n"),
        (b"a\r\na\nb\n", b"a\r\nb\n"),
        (b"a\na\r\nb\r\n", b"a\nb\r\n"),
        (b"\r\n\n", b"\r\n"),
        (b"\xff\xfe\n\xff\n\xff\xfe\n", b"\xff\xfe\n\xff\n"),
        (b"a\0b\na\0c\na\0b\n", b"a\0b\na\0c\n"),
        (b"a\n\na\n\n", b"a\n\n"),
        (b"A\na\n", b"A\na\n"),
    ];
    for (input, expected) in cases {
        dedup(&[], input, expected);
        dedup(&["-p", "1e-9"], input, expected);
        dedup(&["-j", "1"], input, expected);
        dedup(&["-j", "2"], input, expected);
    }
    dedup(&["-0"], b"a\nb\0a\nb\0c", b"a\nb\0c");
    // A CR at its end is a part of a NUL record.
    dedup(&["-0"], b"a\r\0a\0a\r\0", b"a\r\0a\0");
    let long = [vec![b'x'; 3 << 20], b"\n".to_vec()].concat();
    dedup(
        &[],
        &[long.as_slice(), b"y\n", &long].concat(),
        &[&long, b"y\n".as_slice()].concat(),
    );
}

#[test]
fn a_line_without_its_end_is_not_glued_to_the_next_file() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a", "x\ny"), folder.file("b", "z\ny\n"));
    let ran = run(["dedup".as_ref(), a.as_os_str(), b.as_os_str()]).ends_with(0);
    assert_eq!(ran.stdout, b"x\ny\nz\n");
    let ran = run(["dedup".as_ref(), b.as_os_str(), a.as_os_str()]).ends_with(0);
    assert_eq!(ran.stdout, b"z\ny\nx\n");
    let ran = run_with(["dedup".as_ref(), a.as_os_str(), "-".as_ref()], b"w").ends_with(0);
    assert_eq!(ran.stdout, b"x\ny\nw");
}

#[test]
fn repeats_can_be_chosen() {
    let input = b"a\nb\na\nc\na\nb\n";
    dedup(&["-d"], input, b"a\nb\n");
    dedup(&["-D"], input, b"a\na\nb\n");
    dedup(&["-d", "-p", "0.01"], input, b"a\nb\n");
    let folder = Folder::new();
    let repeats = folder.path("repeats");
    let args = ["dedup", "--repeats-to", repeats.to_str().unwrap()];
    let ran = run_with(args, input).ends_with(0);
    assert_eq!(ran.stdout, b"a\nb\nc\n");
    assert_eq!(read(&repeats), b"a\na\nb\n");
}

#[test]
fn keys_are_what_the_flags_say() {
    dedup(&["--ignore-case"], b"Ab\naB\nb\n", b"Ab\nb\n");
    dedup(&["--skip-empty"], b"a\n\n\r\na\nb\n", b"a\nb\n");
    dedup(
        &["--field", "2", "--delimiter", ","],
        b"1,x\n2,x\n3\n3\n4,y\n",
        b"1,x\n3\n3\n4,y\n",
    );
    dedup(
        &["--field", "2", "--delimiter", "\\t"],
        b"1\tx\n2\tx\n",
        b"1\tx\n",
    );
    dedup(
        &["--as", "url", "--strip-param", "utm_*"],
        b"http://EXAMPLE.org:80/a/../b?x=1&utm_source=q#f\nhttp://example.org/b?x=1\nnot a url\nnot a url\n",
        b"http://EXAMPLE.org:80/a/../b?x=1&utm_source=q#f\nnot a url\n",
    );
    dedup(
        &["--as", "hex"],
        b"ABCDEF0123:7\nabcdef0123\nno digest\nno digest\n",
        b"ABCDEF0123:7\nno digest\nno digest\n",
    );
    dedup(&["--as", "int"], b"7\n007\n+7\n8\n", b"7\n8\n");
    let ran = run_with(
        ["dedup", "--as", "url", "--summary", "json"],
        b"http://a/\nnope\nnope\n",
    );
    assert_eq!(ran.ends_with(0).json("not_url"), 2.0);
}

#[test]
fn many_files_are_sampled_in_little_memory() {
    let folder = Folder::new();
    let mut args = vec![
        "dedup".to_owned(),
        "--summary".to_owned(),
        "json".to_owned(),
    ];
    args.extend(["--memory".to_owned(), "24M".to_owned()]);
    for file in 0..30 {
        let text: String = (0..20_000)
            .map(|i| format!("{}\n", file * 20_000 + i))
            .collect();
        args.push(
            folder
                .file(&file.to_string(), text)
                .to_str()
                .unwrap()
                .to_owned(),
        );
    }
    let ran = run(args).ends_with(0);
    assert_eq!(ran.json("unique"), 600_000.0);
    let peak = ran.json("peak_memory");
    assert!(peak <= 1.1 * 24.0 * 1048576.0, "{peak}");
}

#[test]
fn compressed_input_and_output_are_understood_by_name() {
    let folder = Folder::new();
    for ending in ["gz", "zst", "xz"] {
        let packed = folder.path(&format!("out.{ending}"));
        run_with(["dedup", "-o", packed.to_str().unwrap()], b"a\nb\na\n").ends_with(0);
        assert_ne!(read(&packed), b"a\nb\n");
        let ran = run(["dedup".as_ref(), packed.as_os_str(), packed.as_os_str()]).ends_with(0);
        assert_eq!(ran.stdout, b"a\nb\n");
        let bytes = read(&packed);
        let cut = folder.file(&format!("cut.{ending}"), &bytes[..bytes.len() - 1]);
        run(["dedup".as_ref(), cut.as_os_str()]).refused(&["cut"]);
        let longer = folder.file(
            &format!("longer.{ending}"),
            [bytes.as_slice(), b"garbage"].concat(),
        );
        run(["dedup".as_ref(), longer.as_os_str()]).refused(&["longer"]);
    }
}

#[test]
fn parts_together_are_the_whole() {
    let text = read(&urls());
    let mut all = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        let ran = run_with(["dedup", "--part", part], &text).ends_with(0);
        assert!(!ran.stdout.is_empty());
        all.extend(ran.stdout);
    }
    let sorted = |bytes: &[u8]| {
        let mut lines: Vec<Vec<u8>> = bytes
            .split_inclusive(|&byte| byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        lines.sort();
        lines
    };
    assert!(sorted(&all) == sorted(&first_occurrences(&text)));
}

#[test]
fn a_small_memory_is_poured_and_then_full() {
    // 1 MiB beside the process: 24,576 digests, then a filter of about 134,000.
    let lines = |count: u32| -> Vec<u8> {
        (0..count)
            .flat_map(|i| format!("line {i}\n").into_bytes())
            .collect()
    };
    let memory = ["dedup", "--memory", "9831K", "--summary", "json"];
    let poured = [lines(100_000), lines(100_000)].concat();
    let ran = run_with(memory, &poured).ends_with(0);
    assert!(ran.stdout == lines(100_000));

    let stopped = run_with(memory, &lines(200_000)).ends_with(2);
    let unique = stopped.json_count("unique");
    assert!((100_000..200_000).contains(&unique), "{unique}");
    // The output is complete up to the line that did not fit.
    assert!(stopped.stdout == lines(u32::try_from(unique).unwrap()));
    assert!(stopped.stderr.contains("--when-full"), "{}", stopped.stderr);

    let passed = run_with(
        [&memory[..], &["--when-full", "pass"]].concat(),
        &lines(200_000),
    );
    assert!(passed.ends_with(0).stdout == lines(200_000));

    let loose = run_with(
        [&memory[..], &["--when-full", "loosen"]].concat(),
        &lines(200_000),
    );
    let loose = loose.ends_with(0);
    assert!(loose.json("error") > 1e-9);
    let dropped = 200_000.0 - loose.json("unique");
    let expected = loose.json("expected_dropped");
    assert!((dropped - expected).abs() <= 5.0 * expected.sqrt().max(1.0));
}

#[test]
fn an_error_that_was_asked_for_is_kept_and_told() {
    let text: Vec<u8> = (0..300_000)
        .flat_map(|i| format!("{i}\n").into_bytes())
        .collect();
    let folder = Folder::new();
    let file = folder.file("lines", &text);
    let by_file = [
        "dedup",
        "-p",
        "1e-3",
        "--summary",
        "json",
        file.to_str().unwrap(),
    ];
    let by_items = ["dedup", "-p", "1e-3", "-n", "300k", "--summary", "json"];
    let growing = ["dedup", "-p", "1e-3", "--summary", "json"];
    for ran in [
        run(by_file),
        run_with(by_items, &text),
        run_with(growing, &text),
    ] {
        let ran = ran.ends_with(0);
        let lost = 300_000.0 - ran.json("unique");
        let expected = ran.json("expected_dropped");
        assert!(expected <= 300.0, "{expected}");
        assert!(
            (lost - expected).abs() <= 5.0 * expected.sqrt(),
            "{lost} {expected}"
        );
    }
    run_with(["dedup", "-p", "1e-3", "-n", "1000"], &text).refused(&["full"]);
}

#[test]
fn wrong_parameters_are_refused_with_a_remedy() {
    for p in ["0", "1", "2", "-0.1", "NaN", "inf", "x", "1e-300"] {
        run_with(["dedup", &format!("--fpr={p}")], b"a\n").refused(&[]);
    }
    run_with(["dedup", "-p", "5"], b"a\n").refused(&["0.05"]);
    run_with(["dedup", "-p", "0.01", "-n", "0"], b"a\n").refused(&["1"]);
    run_with(["dedup", "-p", "1e-9", "-n", "1T"], b"a\n").refused(&[]);
    run_with(
        ["dedup", "-p", "1e-6", "-n", "100G", "--memory", "1G"],
        b"a\n",
    )
    .refused(&["--memory", "--part"]);
    run_with(["dedup", "--memory", "1K"], b"a\n").refused(&["--memory"]);
    run_with(["dedup", "--memory", "lots"], b"a\n").refused(&["--memory"]);
    run_with(["dedup", "--part", "3/2"], b"a\n").refused(&["3/2"]);
    run_with(["dedup", "--field", "0", "--delimiter", ","], b"a\n").refused(&["field"]);
    run_with(["dedup", "--field", "1", "--delimiter", "ab"], b"a\n").refused(&["delimiter"]);
    run_with(["dedup", "--strip-param", "x"], b"a\n").refused(&["--as url"]);
    run_with(["dedup", "-d", "-D"], b"a\n").ends_with(2);
    run(["dedup", "/no/such/file"]).refused(&["/no/such/file"]);
    run(["dedup", "/"]).refused(&["/"]);
}

#[test]
fn a_missing_file_is_told_before_anything_is_written() {
    let folder = Folder::new();
    let (a, out) = (folder.file("a", "x\n"), folder.file("out", "old\n"));
    let missing = folder.path("missing");
    run([
        "dedup".as_ref(),
        a.as_os_str(),
        missing.as_os_str(),
        "-o".as_ref(),
        out.as_os_str(),
    ])
    .refused(&["missing"]);
    assert_eq!(read(&out), b"old\n");
    assert_eq!(folder.names(), ["a", "out"]);
}

#[test]
fn a_failure_leaves_the_old_output_whole() {
    let folder = Folder::new();
    let out = folder.file("out", "old\n");
    let broken = folder.file("broken.gz", [0x1f, 0x8b, 8, 0, 1, 2, 3]);
    run([
        "dedup".as_ref(),
        broken.as_os_str(),
        "-o".as_ref(),
        out.as_os_str(),
    ])
    .refused(&["broken.gz"]);
    assert_eq!(read(&out), b"old\n");
    assert_eq!(folder.names(), ["broken.gz", "out"]);
    run_with(
        ["dedup", "-o", folder.path("no/out").to_str().unwrap()],
        b"a\n",
    )
    .refused(&["no"]);
    run_with(["dedup", "-o", "/"], b"a\n").refused(&["directory"]);
}

#[test]
fn text_does_not_replace_a_filter() {
    let folder = Folder::new();
    let filter = folder.path("f");
    run_with(["build", "-o", filter.to_str().unwrap()], b"a\n").ends_with(0);
    let before = read(&filter);
    run_with(["dedup", "-o", filter.to_str().unwrap()], b"a\n").refused(&["filter"]);
    let state = folder.path("s");
    let args = [
        "dedup",
        "--state",
        state.to_str().unwrap(),
        "-o",
        filter.to_str().unwrap(),
    ];
    run_with(args, b"a\n").refused(&["filter"]);
    assert_eq!(read(&filter), before);
    run_with(["dedup", "--state", state.to_str().unwrap()], b"a\n").ends_with(0);
    run_with(["add", state.to_str().unwrap()], b"b\n").refused(&["state"]);
}

#[test]
fn the_smallest_error_works_for_files_too() {
    let folder = Folder::new();
    let file = folder.file("lines", "a\nb\na\n");
    let ran = run(["dedup", "-p", "1e-12", file.to_str().unwrap()]).ends_with(0);
    assert_eq!(ran.stdout, b"a\nb\n");
}

#[test]
fn a_file_can_be_its_own_output() {
    let folder = Folder::new();
    let file = folder.file("file", "a\na\nb\n");
    run([
        "dedup".as_ref(),
        file.as_os_str(),
        "-o".as_ref(),
        file.as_os_str(),
    ])
    .ends_with(0);
    assert_eq!(read(&file), b"a\nb\n");
}

#[test]
fn a_full_disk_is_an_error_and_a_gone_reader_is_none() {
    run_with(["dedup", "-o", "/dev/full"], b"a\n").refused(&["/dev/full"]);
    let mut child = petal(["dedup", "-q"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: Vec<u8> = (0..300_000)
        .flat_map(|i| format!("line {i}\n").into_bytes())
        .collect();
    feed(&mut child, lines);
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 10]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        !stderr.contains("panic") && !stderr.contains("rror"),
        "{stderr}"
    );
}

#[test]
fn a_secret_changes_nothing_but_the_hash() {
    let folder = Folder::new();
    let secret = folder.file("secret", [7u8; 16]);
    let text = read(&urls());
    let ran = run_with(["dedup", "--secret-file", secret.to_str().unwrap()], &text).ends_with(0);
    assert!(ran.stdout == first_occurrences(&text));
    let short = folder.file("short", [7u8; 15]);
    run_with(["dedup", "--secret-file", short.to_str().unwrap()], &text).refused(&["short"]);
}

#[test]
fn quiet_is_quiet_and_data_is_alone_on_stdout() {
    let ran = run_with(["dedup", "-q"], b"a\na\n").ends_with(0);
    assert_eq!(
        (ran.stdout.as_slice(), ran.stderr.as_str()),
        (b"a\n".as_slice(), "")
    );
    let ran = run_with(["dedup"], b"a\na\n").ends_with(0);
    assert!(
        ran.stderr.contains("expected number wrongly dropped"),
        "{}",
        ran.stderr
    );
    let ran = run_with(["dedup", "--summary", "none"], b"a\na\n").ends_with(0);
    assert_eq!(ran.stderr, "");
}

/// Addresses are compared as numbers, so no two are taken for one while the
/// memory lasts.
#[test]
fn addresses_are_compared_as_numbers() {
    let folder = Folder::new();
    folder.file("in", "10.0.0.1\n 10.0.0.1\n10.0.0.10\n10.0.0.1\r\n");
    let ran = folder.petal("dedup --as ipv4 in").ends_with(0);
    assert_eq!(ran.stdout, b"10.0.0.1\n10.0.0.10\n");
    folder
        .petal("build --as ipv4 in -o f.petal -q")
        .ends_with(0);
    folder.file("asked", "10.0.0.10 \n10.0.0.2\nhost\n");
    let ran = folder.petal("check f.petal asked").ends_with(0);
    assert_eq!(ran.stdout, b"10.0.0.10 \n");
    folder.file("bad", "10.0.0.01\n");
    folder
        .petal("build --as ipv4 bad -o g.petal")
        .refused(&["IPv4"]);
}

/// Addresses are kept in a bitmap where the memory is enough, and a run gives what one
/// with other memory gives.
#[test]
fn addresses_are_the_same_in_every_memory() {
    let folder = Folder::new();
    let mut list = String::new();
    let mut x: u32 = 1;
    for i in 0..40_000u32 {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Some far apart, some near each other, all of them twice or more.
        let address = if i % 3 == 0 {
            0x0a00_0000 | x >> 20
        } else {
            (x >> 17) << 17
        };
        list += &format!("{}\n", std::net::Ipv4Addr::from(address));
        if i % 1000 == 0 {
            list += "no address\n";
        }
    }
    folder.file("in", &list);
    let plain = folder
        .petal("dedup --as ipv4 in --summary json --memory 1G")
        .ends_with(0);
    assert!(
        plain.stderr.contains("\"memory\":\"bitmap\""),
        "{}",
        plain.stderr
    );
    assert_eq!(plain.json("expected_dropped"), 0.0);
    let exact: std::collections::HashSet<&str> = list.lines().collect();
    // Lines that are no addresses are all kept.
    let bad = list.lines().filter(|line| *line == "no address").count();
    let kept = plain.stdout.iter().filter(|&&byte| byte == b'\n').count();
    assert_eq!(kept, exact.len() - 1 + bad);
    for flags in [
        "--memory 16M",
        "--memory 64M -j 3",
        "--state s",
        "--state s2 --memory 32M",
        "--secret-file key",
        "-p 1e-9",
        "--window 100k -p 1e-9",
    ] {
        if flags.contains("secret") {
            let path = folder.file("key", "000102030405060708090a0b0c0d0e0f");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(path, mode).unwrap();
        }
        let ran = folder
            .petal(&format!("dedup --as ipv4 in {flags}"))
            .ends_with(0);
        assert!(ran.stdout == plain.stdout, "{flags}");
    }
    let shown = folder.petal("dedup --as ipv4 in --memory 1G").ends_with(0);
    assert!(
        shown.stderr.contains(": a bitmap of all addresses"),
        "{}",
        shown.stderr
    );
    // A state goes on.
    folder.file("more", format!("{list}192.0.2.1\n"));
    let more = folder.petal("dedup --as ipv4 more --state s").ends_with(0);
    let bad: String = "no address\n".repeat(bad);
    assert_eq!(
        String::from_utf8(more.stdout).unwrap(),
        format!("{bad}192.0.2.1\n")
    );
    for (flags, memory) in [
        ("-d", "1G"),
        ("-D", "1G"),
        ("--part 1/2", "1G"),
        ("-d", "64M"),
    ] {
        let line = format!("dedup --as ipv4 in {flags} --summary json --memory");
        let ran = folder.petal(&format!("{line} {memory}")).ends_with(0);
        let other = folder.petal(&format!("{line} 16M")).ends_with(0);
        assert!(
            ran.stdout == other.stdout && !ran.stdout.is_empty(),
            "{flags}"
        );
        assert!(!other.stderr.contains("\"bitmap\""), "{}", other.stderr);
    }
}
