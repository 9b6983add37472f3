//! Splitting: against the naive split, whatever pieces the bytes come in.

use std::io::Write;
use std::sync::mpsc;

use proptest::prelude::*;

use super::super::blocks::BlockReader;
use super::super::decode::Source;
use super::super::error::Fault;
use super::super::{Batch, Input, LineOptions, Lines};
use super::{drain, naive, piped, read_with, write};

/// Gives its bytes in pieces of the given sizes, over and over; then ends, or fails.
struct Script {
    data: Vec<u8>,
    at: usize,
    sizes: Vec<usize>,
    reads: usize,
    fails: bool,
}

impl Source for Script {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        let size = self.sizes[self.reads % self.sizes.len()];
        self.reads += 1;
        let len = size.min(out.len()).min(self.data.len() - self.at);
        if len == 0 && self.fails {
            return Err(Fault::Open(std::io::Error::other("scripted")));
        }
        out[..len].copy_from_slice(&self.data[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }

    fn is_idle(&self) -> bool {
        false
    }
}

fn script(data: &[u8], sizes: &[usize], options: &LineOptions) -> Lines {
    scripted(data, sizes, options, false)
}

fn scripted(data: &[u8], sizes: &[usize], options: &LineOptions, fails: bool) -> Lines {
    let source = Script {
        data: data.to_vec(),
        at: 0,
        sizes: sizes.to_vec(),
        reads: 0,
        fails,
    };
    from_source(source, options)
}

fn from_source(source: impl Source + 'static, options: &LineOptions) -> Lines {
    let reader = BlockReader::new(
        Box::new(source),
        "script".to_owned(),
        options.terminator,
        options.block,
        options.max_record,
        0,
    );
    Lines::from_reader(reader, options, std::sync::Arc::default())
}

/// Lines of all kinds: empty, long, CRLF, NUL, invalid UTF-8, no terminator at the end.
const KINDS: &[u8] = b"a\n\n\nbc\r\n\0\n\xff\xfe\x80\nlonger than most of the others here\n\
                       \r\n\0\0x\0\n\ntail without end";

#[test]
fn every_block_and_read_size_gives_the_same_records() {
    for data in [
        KINDS,
        &KINDS[..KINDS.len() - 16],
        b"",
        b"\n",
        b"x",
        b"\n\n",
        b"\0",
        b"x\0",
    ] {
        for terminator in [b'\n', 0] {
            let expected = naive(data, terminator);
            for block in 1..=data.len() + 2 {
                let options = LineOptions {
                    terminator,
                    block,
                    ..LineOptions::default()
                };
                let sizes = if block % 2 == 0 {
                    vec![block]
                } else {
                    vec![1, 3, 2]
                };
                let (records, error) = drain(&mut script(data, &sizes, &options), block);
                assert!(error.is_none());
                assert_eq!(records, expected, "block {block}");
            }
        }
    }
}

proptest! {
    #[test]
    fn random_records_and_reads_give_the_naive_split(
        data in prop::collection::vec(
            prop_oneof![4 => any::<u8>(), 2 => Just(b'\n'), 1 => Just(0u8)], 0..2000),
        sizes in prop::collection::vec(1usize..200, 1..10),
        block in prop_oneof![1usize..20, 1usize..3000],
        max_records in prop_oneof![1usize..5, Just(64), Just(usize::MAX)],
        terminator in prop_oneof![Just(b'\n'), Just(0u8)],
    ) {
        let options = LineOptions { terminator, block, ..LineOptions::default() };
        let (records, error) = drain(&mut script(&data, &sizes, &options), max_records);
        prop_assert!(error.is_none());
        prop_assert_eq!(records, naive(&data, terminator));
    }

    #[test]
    fn the_limit_holds_to_the_byte_for_all_reads(
        limit in 1usize..60,
        over in 0usize..=1,
        terminated: bool,
        before in prop::collection::vec(0usize..20, 0..5),
        sizes in prop::collection::vec(1usize..80, 1..5),
        block in 1usize..60,
    ) {
        // A limit below the block is taken as the block less one.
        let limit = limit.max(block - 1);
        let mut data = Vec::new();
        for len in &before {
            data.extend(vec![b'b'; (*len).min(limit)]);
            data.push(b'\n');
        }
        let start = data.len() as u64;
        data.extend(vec![b'x'; limit + over]);
        if terminated {
            data.push(b'\n');
        }
        let options = LineOptions { max_record: limit, block, ..LineOptions::default() };
        let (records, error) = drain(&mut script(&data, &sizes, &options), 3);
        let mut expected = naive(&data, b'\n');
        if over == 1 {
            expected.pop();
            let error = error.unwrap();
            let at = matches!(error.fault, Fault::TooLong { at, limit: l } if at == start && l == limit);
            prop_assert!(at, "{error:?}");
        } else {
            prop_assert!(error.is_none());
        }
        prop_assert_eq!(records, expected);
    }
}

/// `len` times the same byte and then `end`.
struct Long {
    len: usize,
    end: &'static [u8],
}

impl Source for Long {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        let len = out.len().min(self.len);
        self.len -= len;
        if len > 0 {
            out[..len].fill(b'l');
            return Ok(len);
        }
        let len = out.len().min(self.end.len());
        out[..len].copy_from_slice(&self.end[..len]);
        self.end = &self.end[len..];
        Ok(len)
    }

    fn is_idle(&self) -> bool {
        false
    }
}

#[test]
fn a_line_of_100_mib_is_a_line() {
    let len = 100 << 20;
    let options = LineOptions {
        max_record: 128 << 20,
        ..LineOptions::default()
    };
    let mut lines = from_source(
        Long {
            len,
            end: b"\nshort\nlast",
        },
        &options,
    );
    let mut batch = Batch::new(1);
    assert!(lines.next_batch(&mut batch).unwrap());
    assert_eq!(batch.len(), 1);
    assert_eq!(batch.get(0).len(), len);
    assert!(batch.get(0).iter().all(|&byte| byte == b'l'));
    assert_eq!(batch.end_offset(0), len as u64 + 1);
    assert!(lines.next_batch(&mut batch).unwrap());
    assert_eq!(batch.get(0), b"short");
    assert!(lines.next_batch(&mut batch).unwrap());
    assert_eq!(batch.get(0), b"last");
    assert!(!lines.next_batch(&mut batch).unwrap());
    // The large buffers are not kept.
    assert_eq!(batch.large_bytes(options.block), 0);
}

#[test]
fn a_line_without_end_is_refused_with_the_remedy() {
    let options = LineOptions {
        max_record: 3 << 20,
        ..LineOptions::default()
    };
    let mut lines = from_source(
        Long {
            len: usize::MAX,
            end: b"",
        },
        &options,
    );
    let error = lines
        .next_batch(&mut Batch::new(64))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("script: ") && error.contains("longer than 3.0 MiB"),
        "{error}"
    );
    assert!(error.contains("--memory"), "{error}");
}

#[test]
fn records_before_an_error_are_handed_out_and_no_part_of_one() {
    let options = LineOptions::default();
    let (records, error) = drain(&mut scripted(b"a\nb\npart", &[5], &options, true), 64);
    assert_eq!(records, naive(b"a\nb\n", b'\n'));
    assert!(error.unwrap().to_string().contains("scripted"));
}

#[test]
fn what_a_pipe_has_brought_does_not_wait_for_more() {
    let (go_on, wait) = mpsc::channel::<()>();
    let input = piped(move |pipe| {
        pipe.write_all(b"a\nb\nc").unwrap();
        // Blocks until the test has seen the first records.
        wait.recv().unwrap();
        pipe.write_all(b"d\n").unwrap();
    });
    let mut lines = Lines::new(input, &LineOptions::default());
    let mut batch = Batch::new(1);
    for (record, more) in [(b"a", true), (b"b", false)] {
        assert!(lines.next_batch(&mut batch).unwrap());
        assert_eq!(batch.iter().collect::<Vec<_>>(), [record]);
        // Nothing comes before the test asks for it.
        assert_eq!(lines.is_idle(), !more);
    }
    go_on.send(()).unwrap();
    assert!(lines.next_batch(&mut batch).unwrap());
    assert_eq!(batch.iter().collect::<Vec<_>>(), [b"cd"]);
    assert!(!lines.next_batch(&mut batch).unwrap());
    assert!(!lines.is_idle());
}

#[test]
fn what_has_come_meanwhile_is_not_waited_for_and_not_lost() {
    let (go_on, wait) = mpsc::channel::<()>();
    let input = piped(move |pipe| {
        pipe.write_all(b"a\n").unwrap();
        wait.recv().unwrap();
        pipe.write_all(b"b\n").unwrap();
    });
    let mut lines = Lines::new(input, &LineOptions::default());
    let mut batch = Batch::new(9);
    assert!(lines.next_batch(&mut batch).unwrap());
    go_on.send(()).unwrap();
    while lines.is_idle() {
        std::thread::yield_now();
    }
    assert!(!lines.is_idle());
    assert!(lines.next_batch(&mut batch).unwrap());
    assert_eq!(batch.get(0), b"b");
    assert!(!lines.next_batch(&mut batch).unwrap());
}

#[test]
fn compressed_data_from_a_pipe_does_not_wait_either() {
    let (go_on, wait) = mpsc::channel::<()>();
    let input = piped(move |pipe| {
        let mut gzip = flate2::write::GzEncoder::new(pipe, flate2::Compression::fast());
        gzip.write_all(b"a\nb\nc").unwrap();
        gzip.flush().unwrap();
        wait.recv().unwrap();
        gzip.finish().unwrap();
    });
    let mut lines = Lines::new(input, &LineOptions::default());
    let mut batch = Batch::new(4096);
    assert!(lines.next_batch(&mut batch).unwrap());
    assert_eq!(batch.iter().collect::<Vec<_>>(), [b"a", b"b"]);
    go_on.send(()).unwrap();
    assert!(lines.next_batch(&mut batch).unwrap());
    assert_eq!(batch.iter().collect::<Vec<_>>(), [b"c"]);
    assert!(!batch.is_terminated(0));
}

#[test]
fn a_batch_serves_one_input_after_the_other() {
    let options = LineOptions::default();
    let mut batch = Batch::new(1);
    // Left in the middle: what remains of it must not show up in the next input.
    let mut first = script(b"a\nb\nc\n", &[100], &options);
    assert!(first.next_batch(&mut batch).unwrap());
    assert_eq!(batch.get(0), b"a");
    let mut second = script(b"x\n", &[100], &options);
    assert!(second.next_batch(&mut batch).unwrap());
    assert_eq!(batch.get(0), b"x");
    assert!(!second.next_batch(&mut batch).unwrap());
}

#[test]
fn files_larger_than_all_buffers_come_out_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut data = Vec::new();
    for i in 0..300_000u32 {
        writeln!(
            data,
            "http://example.org/{i}/{}",
            i.wrapping_mul(2_654_435_761)
        )
        .unwrap();
    }
    let path = write(dir.path(), "urls", &data);
    let expected = naive(&data, b'\n');
    let options = LineOptions::default();
    assert_eq!(read_with(&path, &options).unwrap(), expected);
    let mut lines = Lines::new(Input::open(&path).unwrap(), &options);
    drain(&mut lines, usize::MAX);
    assert_eq!(lines.consumed(), data.len() as u64);
}
