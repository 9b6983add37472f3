#!/usr/bin/env python3
"""What stands before storage: reads of redb and SQLite with the front and without, a writing front killed again
and again, the mail list on real lists under load, the crawler and an exact set.

    bench/front.py                        10 minutes and 1 GB: bench/FRONT.md has a run
    bench/front.py --keys 100k --kills 20 --pages 5k --seconds 1

Builds the programs of examples/fronts, fetches the lists with tests/lists/fetch.sh, runs all and writes the
report. Exit 1 if something that must be reached was not.

Needs Linux, Python 3.9 and Rust; for the lists apt-get, npm and pip.
"""

import argparse
import datetime
import subprocess
import sys
import tempfile
from pathlib import Path

import dedup
from dedup import BENCH, ROOT, run

PROGRAMS = ROOT / "target" / "release"


def count(text):
    """A number such as 100k or 2M."""
    factor = {"k": 1000, "M": 1_000_000}.get(text[-1:], 1)
    return int(text.rstrip("kM")) * factor


def rows(*command):
    """What a program prints, and whether it reached what it must."""
    print("+", *command, file=sys.stderr)
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True)
    return done.stdout, done.returncode == 0


def crawl(pages, *options):
    """A crawl of a site of its own; its summary by label, and what the site has counted."""
    site = subprocess.Popen([PROGRAMS / "crawler", "serve", "--pages", str(pages)], stdout=subprocess.PIPE, text=True)
    try:
        url = "http://" + site.stdout.readline().split()[-1]
        text, _ = rows(PROGRAMS / "crawler", "crawl", url, "-n", pages + 3, *options)
        summary = {line[:28].strip(): line[28:] for line in text.splitlines()}
        counts = run("curl", "-s", f"{url}/counts", stdout=subprocess.PIPE, text=True).stdout.split()
        return summary, [int(number) for number in counts]
    finally:
        site.kill()
        site.wait()


def crawls(pages, folder):
    """The table of crawls: exact, and with filters of several errors."""
    lines = [
        "| what was seen | URLs | bytes | bytes a URL | pages missed | expected | fetched more than once |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    passed = True
    kept = folder / "crawl"
    for name, options in [
        ("an exact set", ["--exact"]),
        ("filter at 1e-2", ["-p", "1e-2"]),
        ("filter at 1e-4", ["-p", "1e-4"]),
        ("filter at 1e-6, kept in a folder", ["-p", "1e-6", "--state", kept]),
    ]:
        summary, (all_pages, fetched, _, again) = crawl(pages, *options)
        urls, held = int(summary["URLs seen"]), int(summary["bytes for what was seen"])
        missed, expected = all_pages - fetched, float(summary["expected number missed"])
        passed &= again == 0 and abs(missed - expected) <= 5 * expected**0.5 + 1
        lines.append(f"| {name} | {urls:,} | {held:,} | {held / urls:.1f} | {missed} | {expected:.2g} | {again} |")
    return "\n".join(lines) + "\n", passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--keys", type=count, default=count("2M"))
    parser.add_argument("--kills", type=count, default=500)
    parser.add_argument("--pages", type=count, default=count("100k"))
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--lists", type=Path, help="folder that keeps the lists between runs")
    parser.add_argument("--report", type=Path, default=BENCH / "FRONT.md")
    args = parser.parse_args()
    run("cargo", "build", "--release", "-p", "petal-fronts", cwd=ROOT)
    with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
        folder = Path(folder)
        lists = args.lists or folder / "lists"
        run(ROOT / "tests/lists/fetch.sh", lists, stdout=subprocess.DEVNULL)
        trials = PROGRAMS / "front_trials"
        reads, reads_passed = rows(trials, "reads", "--keys", args.keys, "--folder", folder)
        kills, kills_passed = rows(trials, "kills", "--count", args.kills, "--folder", folder)
        mail, mail_passed = rows(trials, "mail", "--lists", lists, "--seconds", args.seconds, "--folder", folder)
        crawled, crawl_passed = crawls(args.pages, folder)
    commit = run("git", "rev-parse", "--short", "HEAD", cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.strip()
    rustc = run("rustc", "--version", stdout=subprocess.PIPE, text=True).stdout.strip()
    args.report.write_text(f"""# Before storage

## Reads with the key-value front and without

{reads}
Of present keys the front's own part is the question to the filter, before the engine's work.

## Kill -9

A front that writes, saves and rebuilds is killed at a random moment, {args.kills} times in all; now and then its
filter is removed, damaged or put back, or its store is put back. Afterwards every key of the store is asked.

{kills}
## The mail list

{mail}
Clients, server and exchanges share the machine's cores.

## The crawler

A site of {args.pages:,} pages and three redirections, with loops, and with links in several spellings:

{crawled}
* Date: {datetime.date.today()}
* Machine: {dedup.machine()}
* Versions: petal at commit {commit}; {rustc}; redb and SQLite as in Cargo.lock
* Command: `bench/front.py --keys {args.keys} --kills {args.kills} --pages {args.pages} --seconds {args.seconds}`
""")
    failed = [
        name
        for name, passed in [("reads", reads_passed), ("kills", kills_passed), ("mail", mail_passed), ("crawl", crawl_passed)]
        if not passed
    ]
    if failed:
        sys.exit(f"front.py: not reached: {', '.join(failed)}: see {args.report}")


main()
