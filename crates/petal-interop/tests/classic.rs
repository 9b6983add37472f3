//! The small programs that a generation learned from, against what they gave
//! when they were compiled and run.

use std::fs;

use petal_interop::{
    CharSign, ClassicFilter, ClassicHash, ClassicProgram, Difference, ForeignFilter, ForeignKey,
    Migration, PhpMode, RawBits, ReadOptions, UrlDedupRun, run_url_dedup,
};

use crate::support::{lines, rows, vectors};

fn hex(text: &str) -> Vec<u8> {
    let pair = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(pair).collect()
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(',')
        .map(|number| number.parse().unwrap())
        .collect()
}

const SIGNS: [(CharSign, &str); 2] = [
    (CharSign::Signed, "signed"),
    (CharSign::Unsigned, "unsigned"),
];

#[test]
fn the_fifteen_hashes_are_those_of_the_compiler() {
    let mut differ = 0;
    for (sign, name) in SIGNS {
        let table = rows(&vectors().join(format!("classic/string_hashes_{name}_char.tsv")));
        assert!(table.len() >= 52, "{name}");
        for row in table {
            let bytes = hex(&row[0]);
            assert_eq!(bytes.len().to_string(), row[1]);
            for (hash, expected) in ClassicHash::URL_SOURCE.iter().zip(&row[2..]) {
                let ours = hash.hash(&bytes, sign);
                let ours = ours.map_or("DIV0".to_owned(), |hash| hash.to_string());
                assert_eq!(ours, *expected, "{hash} of {}", row[0]);
                let other = hash.hash(&bytes, CharSign::Unsigned);
                differ += usize::from(other != hash.hash(&bytes, CharSign::Signed));
            }
        }
    }
    assert!(differ > 100, "the sign matters for {differ}");
}

#[test]
fn the_spider_answers_as_it_did() {
    for (sign, name) in SIGNS {
        let program = ClassicProgram::SpiderC(sign);
        let mut filter = ClassicFilter::new(program).unwrap();
        for row in rows(&vectors().join(format!("classic/spiderq_search_{name}_char.tsv"))) {
            let bytes = hex(&row[0]);
            for (hash, expected) in ClassicHash::SPIDER.iter().zip(&row[1..9]) {
                let ours = hash.hash(&bytes, sign).unwrap().to_string();
                assert_eq!(ours, *expected, "{hash} of {}", row[0]);
            }
            let key = ForeignKey::Bytes(&bytes);
            assert_eq!(
                program.positions(key).unwrap(),
                numbers(&row[9]),
                "{}",
                row[0]
            );
            assert_eq!(filter.contains(key).unwrap(), row[11] == "1", "{}", row[0]);
            assert_eq!(filter.insert(key).unwrap(), row[11] == "0", "{}", row[0]);
        }
    }
}

#[test]
fn java_positions_are_those_of_its_ints() {
    for row in rows(&vectors().join("classic/java_simplehash.tsv")) {
        let program = match row[0].chars().next().unwrap() {
            'A' => ClassicProgram::JavaA,
            'B' => ClassicProgram::JavaB,
            _ => ClassicProgram::JavaC,
        };
        assert_eq!(program.bits().to_string(), row[1]);
        let units: Vec<u16> = hex(&row[2])
            .as_chunks::<2>()
            .0
            .iter()
            .map(|pair| u16::from_be_bytes(*pair))
            .collect();
        let positions = program.positions(ForeignKey::Utf16(&units)).unwrap();
        assert_eq!(positions, numbers(&row[5]), "{row:?}");
        if let Ok(text) = String::from_utf16(&units) {
            assert_eq!(
                program.positions(ForeignKey::Text(&text)).unwrap(),
                positions
            );
        }
    }
}

#[test]
fn php_draws_the_same_slots_in_both_modes() {
    let mut modes = [0, 0];
    for row in rows(&vectors().join("classic/php_slots.tsv")) {
        let mode = if row[0] == "PHP" {
            PhpMode::Old
        } else {
            PhpMode::Current
        };
        modes[usize::from(mode == PhpMode::Old)] += 1;
        let program = ClassicProgram::Php {
            m: row[1].parse().unwrap(),
            k: row[2].parse().unwrap(),
            mode,
        };
        let bytes = hex(&row[3]);
        let positions = program.positions(ForeignKey::Bytes(&bytes)).unwrap();
        assert_eq!(positions, numbers(&row[5]), "{row:?}");
    }
    assert!(modes.iter().all(|&rows| rows > 100), "{modes:?}");
}

/// The post's program: 100 bits and 3 items give k = 24; nothing was added.
#[test]
fn php_prints_what_the_post_shows() {
    let program = ClassicProgram::php(100, 3, PhpMode::Current).unwrap();
    assert_eq!(program.positions_per_key(), 24);
    let printed = vectors().join("classic/php_blog_program_output.txt");
    let filter = ClassicFilter::new(program).unwrap();
    for line in lines(&printed) {
        let found = filter.contains(ForeignKey::Text("first item")).unwrap();
        assert_eq!(line, format!("bool({found})"));
    }
}

fn cases() -> Vec<serde_json::Value> {
    let text = fs::read(vectors().join("classic/dedup/expected.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn run(file: &[u8]) -> UrlDedupRun {
    run_url_dedup(ClassicProgram::UrlDedupC(CharSign::Signed), file).unwrap()
}

#[test]
fn the_url_program_runs_as_it_ran() {
    let cases = cases();
    assert_eq!(cases.len(), 14);
    for case in &cases {
        let name = case["case"].as_str().unwrap();
        let file = fs::read(vectors().join(format!("classic/dedup/{name}.in"))).unwrap();
        let dups = fs::read(vectors().join(format!("classic/dedup/{name}.dups"))).unwrap();
        let run = run(&file);
        let counts = |of: &serde_json::Value| {
            ["total", "unique", "repeated"].map(|count| of[count].as_u64().unwrap())
        };
        let ours = [run.total, run.unique, run.repeated];
        assert_eq!(ours, counts(&case["program"]), "{name}");
        assert!(run.duplicates == dups, "{name}");
        assert_eq!(run.correct, counts(&case["correct"]), "{name}");
        assert!(!run.crashed);
        // What differs is explained, and nothing else is.
        assert_eq!(ours != run.correct, !run.differences.is_empty(), "{name}");
    }
}

#[test]
fn every_bug_of_the_url_program_is_explained() {
    let line = |n| Difference::CountedTwice { line: n };
    assert_eq!(run(b"a\nb\n").differences, [line(2)]);
    assert_eq!(run(b"a\nb").differences, []);
    let hidden = run(b"a\0x\na\0y\n");
    assert_eq!(
        hidden.differences,
        [
            Difference::Hidden { line: 1 },
            Difference::Hidden { line: 2 },
            line(2)
        ]
    );
    assert_eq!(
        (hidden.duplicates.as_slice(), hidden.repeated),
        (&b"aa"[..], 2)
    );
    let dies = run(b"a\n\0b\nc\n");
    assert!(dies.crashed);
    assert_eq!(
        dies.differences.last(),
        Some(&Difference::DividedByZero { line: 2 })
    );
    assert_eq!(dies.correct, [3, 3, 0]);
    let empty = run(b"");
    assert!(empty.crashed);
    assert_eq!(
        (empty.differences, empty.correct),
        (vec![Difference::Uninitialised], [0; 3])
    );
    assert_eq!(
        run(b"a\na").differences,
        [Difference::NotMatched { line: 2 }]
    );
    // Blank lines are URLs.
    assert_eq!((run(b"\n\n").repeated, run(b"\n\n").unique), (2, 1));
    let long = [&[b'x'; 600][..], b"\n"].concat();
    assert_eq!(
        run(&long).differences,
        [Difference::Split { line: 1, pieces: 3 }, line(1)]
    );
    for difference in run(&long).differences {
        assert!(difference.to_string().starts_with("line 1"));
    }
}

/// Raw bits as the programs would dump them, in each layout.
#[test]
fn raw_bits_are_read() {
    let key = ForeignKey::Text("http://example.com/1");
    let programs = [
        ClassicProgram::JavaA,
        ClassicProgram::UrlDedupC(CharSign::Signed),
        ClassicProgram::SpiderC(CharSign::Signed),
        ClassicProgram::php(1000, 100, PhpMode::Old).unwrap(),
    ];
    for program in programs {
        let mut raw = vec![0; usize::try_from(program.bits().div_ceil(64) * 8).unwrap()];
        for bit in program.positions(key).unwrap() {
            let bit = usize::try_from(bit).unwrap();
            let (byte, mask) = match program {
                // char[n / 8] |= 0x80 >> n % 8
                ClassicProgram::UrlDedupC(_) => (bit / 8, 0x80 >> (bit % 8)),
                // int[n / 32] |= 0x80000000 >> n % 32, little-endian
                ClassicProgram::SpiderC(_) => {
                    let word = (0x8000_0000u32 >> (bit % 32)).to_le_bytes();
                    let at = word.iter().position(|&byte| byte != 0).unwrap();
                    (bit / 32 * 4 + at, word[at])
                }
                _ => (bit / 8, 1 << (bit % 8)),
            };
            raw[byte] |= mask;
        }
        let filter = ClassicFilter::from_raw(program, RawBits::Memory, raw.clone()).unwrap();
        assert!(filter.contains(key).unwrap(), "{program}");
        assert!(
            !filter
                .contains(ForeignKey::Text("http://example.com/2"))
                .unwrap()
        );
        let mut made = ClassicFilter::new(program).unwrap();
        assert!(made.insert(key).unwrap());
        assert!(
            (&made as &dyn ForeignFilter).to_bytes().unwrap() == raw,
            "{program}"
        );
        let mut longer = raw.clone();
        longer.push(0);
        assert!(ClassicFilter::from_raw(program, RawBits::Memory, longer).is_err());
        if matches!(
            program,
            ClassicProgram::SpiderC(_) | ClassicProgram::UrlDedupC(_)
        ) {
            raw.pop();
            assert!(ClassicFilter::from_raw(program, RawBits::Memory, raw).is_err());
        }
    }
}

#[test]
fn dumps_of_java_and_php_are_read() {
    let mut filter = ClassicFilter::new(ClassicProgram::JavaB).unwrap();
    let key = ForeignKey::Text("tag");
    filter.insert(key).unwrap();
    let memory = (&filter as &dyn ForeignFilter).to_bytes().unwrap();
    // BitSet.toByteArray leaves trailing zeros out.
    let end = memory.iter().rposition(|&byte| byte != 0).unwrap();
    let short = memory[..=end].to_vec();
    let again = ClassicFilter::from_raw(ClassicProgram::JavaB, RawBits::Memory, short).unwrap();
    assert!(again.contains(key).unwrap());
    let longs: Vec<u8> = memory
        .as_chunks::<8>()
        .0
        .iter()
        .flat_map(|long| long.iter().rev().copied())
        .collect();
    let again = ClassicFilter::from_raw(ClassicProgram::JavaB, RawBits::BigEndianLongs, longs);
    let again = again.unwrap();
    assert!(again.contains(key).unwrap());
    assert!((&again as &dyn ForeignFilter).to_bytes().unwrap() == memory);

    // PHP's array, whose last element is missing.
    let program: ClassicProgram = "php-old:50:3".parse().unwrap();
    let mut elements = vec![b'0'; 49];
    for bit in program.positions(ForeignKey::Text("second item")).unwrap() {
        elements[usize::try_from(bit).unwrap()] = b'1';
    }
    let options = ReadOptions::new()
        .format(petal_interop::Format::Classic)
        .classic(program, RawBits::Elements);
    let filter = petal_interop::read(elements.clone(), &options).unwrap();
    assert!(filter.contains(ForeignKey::Text("second item")).unwrap());
    elements[3] = b'x';
    assert!(petal_interop::read(elements, &options).is_err());
}

/// The old filter is asked, the new one filled, while keys go by.
#[test]
fn old_state_is_moved_while_a_crawl_goes_on() {
    let url = |i: usize| format!("http://example.com/{i}");
    let mut old = ClassicFilter::new(ClassicProgram::SpiderC(CharSign::Signed)).unwrap();
    for i in 0..500 {
        old.insert(ForeignKey::Text(&url(i))).unwrap();
    }
    let new = petal::BloomFilter::new(10_000, 1e-9).unwrap();
    let mut crawl = Migration::new(old, new.into_inner().into());
    for i in 0..1000 {
        let seen = crawl.seen(ForeignKey::Text(&url(i))).unwrap();
        assert_eq!(seen, i < 500, "{i}");
        assert!(crawl.seen(ForeignKey::Text(&url(i))).unwrap());
    }
    assert_eq!(crawl.moved(), 500);
    let new = crawl.into_new();
    for i in 0..1000 {
        assert!(new.contains_bytes(url(i).as_bytes()).unwrap());
    }
}

#[test]
fn names_of_programs_are_read() {
    for name in ["java-a", "java-b", "java-c", "url-dedup-c", "spider-c"] {
        assert_eq!(name.parse::<ClassicProgram>().unwrap().name(), name);
    }
    for wrong in [
        "",
        "php",
        "php:0:1",
        "php:10:0",
        "php:x:1",
        "php:10",
        "java-d",
        "php:9999999999:1",
    ] {
        assert!(wrong.parse::<ClassicProgram>().is_err(), "{wrong}");
    }
}
