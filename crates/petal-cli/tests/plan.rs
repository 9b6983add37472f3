//! `petal plan`.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Folder, read};

fn kind<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let kinds = answer["kinds"].as_array().unwrap();
    kinds.iter().find(|row| row["kind"] == name).unwrap()
}

#[test]
fn two_of_keys_error_and_bytes_give_the_third() {
    let folder = Folder::new();
    let sized = folder.json("plan -n 1M -p 1e-4 --json");
    for name in [
        "bloom",
        "classic",
        "growable, n declared",
        "digests",
        "static",
        "counting",
        "deletable",
        "window",
    ] {
        let row = kind(&sized, name);
        assert!(row["error"].as_f64().unwrap() <= 1e-4, "{row}");
        let bytes = row["bytes"].as_u64().unwrap();
        let within = folder.json(&format!("plan -m {bytes} -p 1e-4 --json"));
        assert!(kind(&within, name)["items"].as_u64() >= Some(1_000_000));
        let at = folder.json(&format!("plan -n 1M -m {bytes} --json"));
        let error = kind(&at, name)["error"].as_f64().unwrap();
        assert!(error <= 1.02e-4, "{name}: {error}");
    }
    assert!(sized["lower_bound"]["bits_per_key"].as_f64().unwrap() > 13.28);
}

#[test]
fn the_textbook_example_has_the_textbook_answer() {
    let folder = Folder::new();
    let row = folder.json("plan -n 1000 -p .01 --json");
    let classic = kind(&row, "classic");
    assert!(classic["bits"].as_u64().unwrap().abs_diff(9586) <= 64);
    assert_eq!(classic["bits_set"], 7);
    let text = folder.petal("plan -n 1000 -p .01").ends_with(0).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("classic: m = 9,5") && text.contains("k = 7"),
        "{text}"
    );
}

/// Sizes past 2^31 and 2^32 bits, where others have turned negative.
#[test]
fn large_sizes_are_computed_in_full() {
    let folder = Folder::new();
    for (items, bits) in [("10M", 143.8e6), ("300M", 4313e6), ("100G", 1.4378e12)] {
        let answer = folder.json(&format!("plan -n {items} -p 0.001 --json"));
        let got = kind(&answer, "classic")["bits"].as_f64().unwrap();
        assert!((got / bits - 1.0).abs() < 1e-3, "{items}: {got}");
    }
}

/// What counts of repeats may take is named beside the size without them.
#[test]
fn a_quotient_filter_is_planned_with_its_doubling() {
    let folder = Folder::new();
    let answer = folder.json("plan -n 1M -p 1e-4 --json");
    let row = kind(&answer, "deletable");
    let [bytes, doubling] =
        ["bytes", "bytes_while_doubling"].map(|field| row[field].as_f64().unwrap());
    // Twice the slots of a bit less, beside the old ones.
    assert!((2.8..3.0).contains(&(doubling / bytes)), "{row}");
    assert!(kind(&answer, "bloom")["bytes_while_doubling"].is_null());
    let text = folder.petal("plan -n 1M -p 1e-4").ends_with(0).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("it doubles, and holds 5.8 MiB"), "{text}");
}

#[test]
fn k_is_for_the_classic_filter() {
    let folder = Folder::new();
    for line in [
        "plan -n 1000 -k 7 --json",
        "plan -n 1000 -p 0.01 -k 7 --json",
        "plan -m 1200 -k 7 --json",
        "plan -n 1000 -m 1200 -k 7 --json",
        "plan -m 1200 -p 0.01 -k 7 --json",
    ] {
        let answer = folder.json(line);
        assert_eq!(answer["kinds"].as_array().unwrap().len(), 1, "{line}");
        let classic = kind(&answer, "classic");
        assert_eq!(classic["bits_set"], 7, "{line}");
        let bits_per_key = classic["bits_per_key"].as_f64().unwrap();
        assert!((9.0..11.0).contains(&bits_per_key), "{line}: {classic}");
    }
}

/// More keys than one filter or machine takes: the bytes, the limit, and the
/// way out are named, and nothing is allocated.
#[test]
fn what_does_not_fit_is_split_into_parts() {
    let folder = Folder::new();
    let answer = folder.json("plan -n 2e12 -p .01 --json");
    let bytes = kind(&answer, "bloom")["bytes"].as_u64().unwrap();
    assert!(
        (2_300_000_000_000..2_700_000_000_000).contains(&bytes),
        "{bytes}"
    );
    assert_eq!(kind(&answer, "bloom")["fits"], false);
    let limit = answer["memory_limit"].as_u64().unwrap();
    let parts = &answer["parts"];
    let count = parts["count"].as_u64().unwrap();
    assert!(count > 1);
    assert!(parts["bytes"].as_u64().unwrap() < limit);
    assert!(count * parts["items"].as_u64().unwrap() >= 2_000_000_000_000);
    let ran = folder.petal("plan -n 2e12 -p .01").ends_with(0);
    let text = String::from_utf8(ran.stdout).unwrap();
    for part in [
        "2.2 TiB",
        "this process may use",
        "does not fit",
        &format!("--part 1/{count}"),
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }

    // The suggestion fits, by the answer for a part.
    let other = folder.json("plan -n 1T -p 1e-6 --memory 64G --json");
    assert_eq!(other["memory_limit_by"], "--memory");
    let items = other["parts"]["items"].as_u64().unwrap();
    let part = folder.json(&format!("plan -n {items} -p 1e-6 --memory 64G --json"));
    assert_eq!(kind(&part, "bloom")["fits"], true);
    assert_eq!(part["parts"], Value::Null);
}

#[test]
fn the_largest_plans_need_no_memory() {
    let command = format!(
        "ulimit -v 400000; exec {} plan -n 1T -p 1e-6 --json",
        env!("CARGO_BIN_EXE_petal")
    );
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["memory_limit"], 400_000 * 1024);
    assert_eq!(answer["memory_limit_by"], "ulimit -v");
    assert!(kind(&answer, "bloom")["bits_per_key"].as_f64().unwrap() < 31.7);
}

#[test]
fn the_table_has_a_row_for_each_error() {
    let folder = Folder::new();
    let text = String::from_utf8(folder.petal("plan --table cost").ends_with(0).stdout).unwrap();
    for digits in 1..=12 {
        assert!(text.contains(&format!("\n1e-{digits} ")), "{text}");
    }
    let table = folder.json("plan --table cost -n 100k --json");
    assert_eq!(table["items"], 100_000);
    let rows = table["table"].as_array().unwrap();
    assert_eq!(rows.len(), 12);
    // The bounds of the split-block filter at 10^5 keys and more.
    for (row, most) in rows.iter().zip([5.1, 10.15, 15.8, 20.3, 25.6, 31.6]) {
        let bits = kind(row, "bloom")["bits_per_key"].as_f64().unwrap();
        assert!(bits <= most, "{row}");
        assert!(bits > row["lower_bound_bits_per_key"].as_f64().unwrap());
    }
    // n alone is the same question.
    assert_eq!(folder.json("plan -n 100k --json"), table);
}

#[test]
fn the_picture_is_written_as_a_whole() {
    let folder = Folder::new();
    let ran = folder
        .petal("plan -n 1M -p 1e-3 --plot fpr.svg")
        .ends_with(0);
    assert!(!ran.stdout.is_empty());
    let svg = String::from_utf8(read(&folder.path("fpr.svg"))).unwrap();
    assert!(svg.starts_with("<svg xmlns="), "{svg}");
    assert!(svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<polyline").count(), 3);
    assert!(svg.contains("1,000,000 keys") && svg.contains("2 regions"));
    let alone = folder.petal("plan --plot alone.svg").ends_with(0);
    assert!(alone.stdout.is_empty());
    folder
        .petal("plan --plot no/such/folder.svg")
        .refused(&["folder.svg"]);
    folder
        .petal("plan -n 2e12 --plot x.svg")
        .refused(&["10^12"]);
    assert_eq!(folder.names(), ["alone.svg", "fpr.svg"]);
}

#[test]
fn impossible_questions_are_refused() {
    let folder = Folder::new();
    for (line, words) in [
        ("plan", &["give two", "--table"][..]),
        ("plan -p 0.01", &["give two"]),
        ("plan -m 1G", &["give two"]),
        ("plan -n 5 -p 0.1 -m 5", &["one too many", "--memory"]),
        ("plan -k 7", &["-n or -m"]),
        ("plan -k 7 -p 0.1", &["-n or -m"]),
        ("plan -n 100 -k 0", &["k = 0", "1 to 255"]),
        ("plan -n 100 -k 256", &["k = 256"]),
        ("plan -n 100 -k -1", &["-1"]),
        ("plan -n 0 -p 0.1", &["-n 0", "at least 1"]),
        ("plan -n -5 -p 0.1", &["-5", "negative"]),
        ("plan -n 1.5 -p 0.1", &["not a whole number"]),
        ("plan -n many -p 0.1", &["`many`"]),
        ("plan -n 1e30 -p 0.1", &["too large"]),
        ("plan -n 100 -p 0", &["-p 0", "between 0 and 1"]),
        ("plan -n 100 -p 1", &["-p 1", "between 0 and 1"]),
        ("plan -n 100 -p 2", &["did you mean 0.02"]),
        ("plan -n 100 -p 5", &["did you mean 0.05"]),
        ("plan -n 100 -p 5%", &["did you mean 0.05"]),
        ("plan -n 100 -p -0.1", &["-p -0.1", "between 0 and 1"]),
        ("plan -n 100 -p NaN", &["-p NaN", "between 0 and 1"]),
        ("plan -n 100 -p inf", &["-p inf", "between 0 and 1"]),
        ("plan -n 100 -p=-inf", &["-p -inf", "between 0 and 1"]),
        ("plan -n 100 -p 1e-300", &["1e-12 or more"]),
        ("plan -n 100 -p 2.2250738585072014e-308", &["1e-12 or more"]),
        ("plan -n 1T -p 1e-9", &["64-bit digests"]),
        ("plan -n 18446744073709551615 -p 0.01", &["64-bit digests"]),
        ("plan -m 0 -p 0.1", &["-m 0"]),
        ("plan -m 3 -p 0.1", &["32 bytes"]),
        ("plan -m 1Q -p 0.1", &["-m: `1Q`"]),
        ("plan -m 100P -n 10 --memory x", &["--memory: `x`"]),
        ("plan --table -p 0.1", &["--table"]),
        ("plan --table cost -n 2e12", &["10^12"]),
    ] {
        let ran = folder.petal(line).refused(words);
        assert!(ran.stdout.is_empty(), "{line}");
    }
}

#[test]
fn integers_share_no_digests() {
    let folder = Folder::new();
    let answer = folder.json("plan -n 1T -p 1e-9 --int --json");
    assert!(kind(&answer, "bloom")["error"].as_f64().unwrap() <= 1e-9);
    assert_eq!(kind(&answer, "digests")["error"], 0.0);
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_none() {
    let folder = Folder::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let output = folder
        .command("plan --table")
        .stdout(full.unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.contains("standard output") && message.contains("space"),
        "{message}"
    );

    let mut child = folder
        .command("plan --table")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}
