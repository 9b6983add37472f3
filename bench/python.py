#!/usr/bin/env python3
"""Measures the Python package beside its peers, and writes bench/PYTHON.md.

    bench/python.py [--keys 1000000] [--rounds 5] [--out bench/PYTHON.md]

Needs the packages petal-filters, rbloom, abloom and pyarrow. What is measured is CPU time of the
process; each figure is the least of the rounds, in which all take turns. For calls with one key at a
time the empty loop is not taken off. Strings are made anew before each measurement, as they are when
they come from a file: those that were used before carry the salted hash that Python keeps with a
string, which abloom and rbloom use as it is, and petal never does. The figures with such strings
stand beside.
"""

import argparse
import datetime
import os
import platform
import subprocess
import time
from importlib.metadata import version

import abloom
import petal
import pyarrow as pa
import rbloom

MAKERS = {
    "petal": lambda n: petal.BloomFilter(n, 0.01),
    "rbloom": lambda n: rbloom.Bloom(n, 0.01),
    "abloom": lambda n: abloom.BloomFilter(n, 0.01),
}


def cpu_of(run):
    start = time.process_time()
    run()
    return time.process_time() - start


def add_each(filter, keys):
    add = filter.add
    for key in keys:
        add(key)


def ask_each(filter, keys):
    for key in keys:
        key in filter


def all_in(filter, keys):
    return [key in filter for key in keys]


def measure(n, rounds):
    urls = pa.array(f"https://example{i % 977}.org/path/{i * 2654435761 % 2**32:08x}/page-{i}.html" for i in range(n))
    other = pa.array(f"https://example{i % 977}.net/path/{i * 2654435761 % 2**32:08x}/page-{i}.html" for i in range(n))
    least = {}

    def note(name, what, run):
        least[name, what] = min(least.get((name, what), 1e9), cpu_of(run) / n * 1e9)

    used = urls.to_pylist()
    for key in used:
        hash(key)
    for _ in range(rounds):
        for name, make in MAKERS.items():
            filter = make(n)
            for what, call, column in (
                ("add", add_each, urls), ("in, present", ask_each, urls), ("in, absent", ask_each, other),
            ):
                fresh = column.to_pylist()
                note(name, what, lambda: call(filter, fresh))
            filter = make(n)
            note(name, "add, hashed before", lambda: add_each(filter, used))
            note(name, "in, hashed before", lambda: ask_each(filter, used))
        one, many = petal.BloomFilter(n, 0.01), abloom.BloomFilter(n, 0.01)
        note("petal", "add a column", lambda: one.add_many(urls))
        note("abloom", "add a column", lambda: many.update(urls.to_pylist()))
        note("petal", "ask a column", lambda: one.contains_many(urls))
        # It has no call for many questions.
        note("abloom", "ask a column", lambda: all_in(many, urls.to_pylist()))
        listed = urls.to_pylist()
        one, many = petal.BloomFilter(n, 0.01), abloom.BloomFilter(n, 0.01)
        note("petal", "add a list", lambda: one.add_many(listed))
        listed = urls.to_pylist()
        note("abloom", "add a list", lambda: many.update(listed))
    return least


def machine():
    model = next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    return f"{model}, {os.cpu_count()} CPUs, Python {platform.python_version()}"


def report(least, n, rounds):
    versions = ", ".join(f"{p} {version(p)}" for p in ("rbloom", "abloom", "pyarrow"))
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=os.path.dirname(__file__)
    ).stdout.strip()
    lines = [
        "# The Python package beside its peers",
        "",
        f"Made by `bench/python.py` on {datetime.date.today()}, at {commit}: {machine()}; {versions}; load of the machine "
        f"when it ended: {os.getloadavg()[0]:.1f}.",
        "",
        f"{n:,} URLs, p = 1 %. Nanoseconds of CPU a key, the least of {rounds} rounds in turn, the loop included. Strings are new in "
        "each measurement, but for \"hashed before\": there each string carries the salted hash of Python, which "
        "the peers take and petal, whose filters can be saved, does not.",
        "",
        "| one key at a time | petal | rbloom | abloom | rbloom / petal | abloom / petal |",
        "|---|---|---|---|---|---|",
    ]
    for what in ("add", "in, present", "in, absent", "add, hashed before", "in, hashed before"):
        own, *peers = (least[name, what] for name in MAKERS)
        ratios = " | ".join(f"{peer / own:.2f}" for peer in peers)
        lines.append(f"| `{what.split(',')[0]}`{what[len(what.split(',')[0]):]} | {own:.1f} | "
                     + " | ".join(f"{p:.1f}" for p in peers) + f" | {ratios} |")
    lines += [
        "",
        "| many keys | petal | abloom | abloom / petal |",
        "|---|---|---|---|",
    ]
    notes = {
        "add a column": "add a column of pyarrow (abloom: the list that `to_pylist` makes, included)",
        "ask a column": "ask for a column of pyarrow (abloom: that list, and `in` for each)",
        "add a list": "add a list of new strings",
    }
    for what, text in notes.items():
        own, peer = least["petal", what], least["abloom", what]
        lines.append(f"| {text} | {own:.1f} | {peer:.1f} | {peer / own:.1f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", default=os.path.join(os.path.dirname(__file__), "PYTHON.md"))
    args = parser.parse_args()
    text = report(measure(args.keys, args.rounds), args.keys, args.rounds)
    with open(args.out, "w") as out:
        out.write(text)
    print(text)


if __name__ == "__main__":
    main()
