#!/usr/bin/env python3
"""Side by side: exact answers on files larger than memory. `petal dedup --exact` and the line tools on one core,
`petal common` and what people use today (DuckDB, `sort` and `comm`) on two, with much memory and with little; and
how petal's time grows from one size to one ten times as large.

    bench/exact.py                    10 M lines a file, 3 rounds
    bench/exact.py --large 100M       and petal alone on files of 100 M lines (14 GB)
    bench/exact.py --lines 100k --rounds 1

Builds petal, installs the peers into --peers (DuckDB with pip into an environment of its own), generates the
files, runs everything once to fill the page cache and to compare the answers, then all in turn, --rounds times:
`common` with its output in a file, `dedup` without one, so that its row is not mostly the kernel's copying. A row
shows the least CPU seconds, the least wall time and the largest resident memory.

Needs Linux, Python 3.9 with venv, Rust, coreutils and five times the size of the files on disk.
"""

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import dedup
from dedup import BENCH, ENVIRONMENT, ROOT, fail, run

DUCKDB = "2.0.1"

# The lines of two files as one column each; nothing in a line is special.
INTERSECT = """
import sys, duckdb
a, b, out, limit, tmp = sys.argv[1:]
db = duckdb.connect(config={"memory_limit": limit, "temp_directory": tmp, "threads": 2, "preserve_insertion_order": False})
lines = "SELECT line FROM read_csv('{}', columns={{'line': 'VARCHAR'}}, header=false, auto_detect=false, delim='\\x01', quote='', escape='')"
db.execute(f"COPY ({lines.format(a)} INTERSECT {lines.format(b)}) TO '{out}' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER '\\x01')")
"""


@dataclass
class Row:
    """What is run, in a shell, and what came of it."""

    name: str
    script: str
    cores: int
    sorted: bool = False  # its output is in another order
    cpu: list = field(default_factory=list)
    wall: list = field(default_factory=list)
    memory: int = 0


def measured(row, core, stdout=subprocess.DEVNULL):
    """CPU seconds and wall seconds of one run, and the peak resident bytes of its largest process."""
    cores = ",".join(str(core + i) for i in range(row.cores))
    began = time.monotonic()
    command = ["taskset", "-c", cores, "bash", "-ec", row.script]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, env=ENVIRONMENT)
    told = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        fail(f"{row.name} ended with {child.returncode}: {told.decode(errors='replace')[-500:]}")
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024


def install_duckdb(folder):
    """A Python that has it."""
    python = folder / "duckdb" / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", folder / "duckdb")
    probe = subprocess.run([python, "-c", "import duckdb; print(duckdb.__version__)"], capture_output=True, text=True)
    if probe.stdout.strip() != DUCKDB:
        run(python, "-m", "pip", "install", "--quiet", f"duckdb=={DUCKDB}")
    return python


def generate(lines, folder):
    """Two files that share a fifth of their distinct lines."""
    run("cargo", "build", "--release", "--quiet", "--no-default-features", "--bin", "generate", cwd=BENCH)
    folder.mkdir(parents=True, exist_ok=True)
    a, b = folder / f"A-{lines}.txt", folder / f"B-{lines}.txt"
    for file, more in ((a, []), (b, ["--shared", "0.2", "--other-seed", "2"])):
        if not file.exists():
            partial = file.with_suffix(".partial")
            with open(partial, "wb") as out:
                run(BENCH / "target/release/generate", "--lines", lines, *more, stdout=out)
            partial.replace(file)
    return a, b


def pairs(petal, python, a, b, folder, out):
    """The rows of `common`, by the table they belong to."""
    q = {name: shlex.quote(str(value)) for name, value in {"petal": petal, "python": python, "a": a, "b": b, "tmp": folder, "out": out}.items()}
    sorts = "sort -u -S{0} -T {tmp} {a} >{tmp}/a.sorted & sort -u -S{0} -T {tmp} {b} >{tmp}/b.sorted; wait; comm -12 {tmp}/a.sorted {tmp}/b.sorted >{out}"
    duck = f"{q['python']} -c {shlex.quote(INTERSECT)} {q['a']} {q['b']} {q['out']} @LIMIT@ {q['tmp']}"
    common = f"{q['petal']} common {q['a']} {q['b']} -q --tmp {q['tmp']} -o {q['out']} --memory {{}}"
    return {
        "512M": [
            Row("`petal common --memory 512M`", common.format("512M"), 2),
            Row(f"DuckDB {DUCKDB} `INTERSECT`, limit 512 MB", duck.replace("@LIMIT@", "512MB"), 2, sorted=True),
            Row("`comm -12` of two `sort -u -S512M`", sorts.format("512M", **q), 2, sorted=True),
        ],
        "64M": [
            Row("`petal common --memory 64M`", common.format("64M"), 2),
            Row(f"DuckDB {DUCKDB} `INTERSECT`, limit {{least}}", duck, 2, sorted=True),
            Row("`comm -12` of two `sort -u -S64M`", sorts.format("64M", **q), 2, sorted=True),
        ],
    }


def least_limit(row, core, out):
    """DuckDB with the least memory it works in, of 64, 96, 128 and so on."""
    for limit in (64, 96, 128, 192, 256, 384, 512):
        tried = Row(row.name.format(least=f"{limit} MB"), row.script.replace("@LIMIT@", f"{limit}MB"), row.cores, sorted=True)
        done = subprocess.run(["taskset", "-c", f"{core},{core + 1}", "bash", "-ec", tried.script], capture_output=True)
        if done.returncode == 0:
            return tried
    fail("DuckDB works in no memory that was tried")


def uniques(petal, peers, file, folder):
    """The rows of `dedup --exact`, which write to their standard output."""
    q = {name: shlex.quote(str(value)) for name, value in {"file": file, "tmp": folder, "petal": petal, "bin": peers / "bin"}.items()}
    return [
        Row("`petal dedup --exact`", "{petal} dedup --exact -q --tmp {tmp} {file}".format(**q), 1),
        Row(f"xuniq {dedup.PEERS['xuniq']}", "{bin}/xuniq <{file}".format(**q), 1),
        Row(f"runiq {dedup.PEERS['runiq']} quick", "{bin}/runiq --filter quick {file}".format(**q), 1),
        Row("`sort -u -S1G`", "sort -u -S1G -T {tmp} {file}".format(**q), 1, sorted=True),
    ]


def answer(row, core, out):
    """The checksum of what it writes, there or to its standard output, in the order of the bytes."""
    out.unlink(missing_ok=True)
    with open(out, "wb") as stdout:
        measured(row, core, stdout)
    done = subprocess.run(f"sort {shlex.quote(str(out))} | sha256sum", shell=True, capture_output=True, text=True, env=ENVIRONMENT)
    return done.stdout.split()[0]


def check(rows, core, out):
    """Every row gives the same lines."""
    answers = {row.name: answer(row, core, out) for row in rows}
    first = answers[rows[0].name]
    for name, sum in answers.items():
        print(f"{name}: {'the same lines' if sum == first else 'OTHER LINES'}", file=sys.stderr)
    return [name for name, sum in answers.items() if sum != first]


def table(rows, bounds, by):
    """Ratios of `by` ("cpu" or "wall") to the first row's."""
    base = min(getattr(rows[0], by))
    text = [f"| command | wall s | CPU s | RSS MB | {by if by == 'wall' else 'CPU'} × petal | to reach |", "|---|---:|---:|---:|---:|---|"]
    for row in rows:
        bound = next((bound for start, bound in bounds.items() if start in row.name), "")
        text.append(
            f"| {row.name} | {min(row.wall):.2f} | {min(row.cpu):.2f} | {row.memory / 1e6:.0f} | {min(getattr(row, by)) / base:.1f} | {bound} |"
        )
    return "\n".join(text)


def large(petal, lines, folder, out, core, small):
    """petal alone on large files: what was planned beside what was done."""
    a, b = generate(lines, folder)
    # Into the page cache, as far as it goes.
    run("cat", a, b, stdout=subprocess.DEVNULL)
    command = ["taskset", "-c", f"{core},{core + 1}", str(petal), "common", str(a), str(b), "--memory", "512M", "--tmp", str(folder), "-o", str(out)]
    began = time.monotonic()
    child = subprocess.Popen([*command, "--summary", "json"], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    figures = json.loads(child.stderr.read().splitlines()[-1])
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        fail(f"petal common of {lines} lines ended with {child.returncode}")
    done = sum(figures[name] for name in ("bytes", "temporary_read", "temporary_written"))
    return f"""`petal common --memory 512M` of two files of {lines} lines, {(a.stat().st_size + b.stat().st_size) / 1e9:.1f} GB, two cores:

| | | to reach |
|---|---:|---|
| wall s | {wall:.1f} | |
| × the wall s of {small[0]} lines | {wall / small[1]:.1f} | ≤ 12 for ten times the lines |
| CPU s | {usage.ru_utime + usage.ru_stime:.1f} | |
| RSS MB | {usage.ru_maxrss * 1024 / 1e6:.0f} | ≤ 560 |
| read and written, planned, GiB | {figures['planned'] / 2**30:.2f} | |
| read and written, done, GiB | {done / 2**30:.2f} | within 15 % |
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", default="10M", help="lines of each file, such as 100k (default 10M)")
    parser.add_argument("--large", help="lines of files for petal alone, such as 100M")
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each command (default 3)")
    parser.add_argument("--peers", type=Path, default=BENCH / "peers", help="folder the peers are installed into")
    parser.add_argument("--data", type=Path, default=BENCH / "data", help="folder of the files, also of temporary ones")
    parser.add_argument("--core", type=int, default=0, help="the first of the two cores (default 0)")
    parser.add_argument("--output", default="-", help="file to write as well, - for none (default)")
    args = parser.parse_args()
    if args.rounds < 1:
        fail(f"--rounds must be 1 or more, got {args.rounds}")

    run("cargo", "build", "--release", "--quiet", cwd=ROOT)
    petal = ROOT / "target/release/petal"
    dedup.install_peers(args.peers)
    python = install_duckdb(args.peers)
    a, b = generate(args.lines, args.data)
    out = args.data / "exact.out"
    tables = pairs(petal, python, a, b, args.data, out)
    tables["64M"][1] = least_limit(tables["64M"][1], args.core, out)
    tables["dedup"] = uniques(petal, args.peers, a, args.data)
    for rows in tables.values():
        wrong = check(rows, args.core, out)
        if wrong:
            fail(f"not the same lines as petal: {', '.join(wrong)}")
    for number in range(1, args.rounds + 1):
        for rows in tables.values():
            for row in rows:
                out.unlink(missing_ok=True)
                cpu, wall, memory = measured(row, args.core)
                row.cpu.append(cpu)
                row.wall.append(wall)
                row.memory = max(row.memory, memory)
                print(f"round {number}: {row.name}: {wall:.2f} s, {cpu:.2f} CPU s, {memory / 1e6:.0f} MB", file=sys.stderr)
    small = (args.lines, min(tables["512M"][0].wall))
    grown = large(petal, args.large, args.data, out, args.core, small) if args.large else ""
    for name in ("exact.out", "a.sorted", "b.sorted"):
        (args.data / name).unlink(missing_ok=True)

    rounds = "1 round" if args.rounds == 1 else f"least of {args.rounds} alternated rounds"
    text = f"""# Exact answers, {args.lines} lines a file

`dedup --exact`, in memory, one core:

{table(tables["dedup"], {"xuniq": "≥ 2.8", "runiq": "≥ 6.5", "sort": "≥ 12"}, "cpu")}

Lines in both of two files, two cores, memory that suffices:

{table(tables["512M"], {"DuckDB": "≥ 2", "comm -12": "≥ 4"}, "wall")}

The same in little memory (DuckDB in the least of some in which it works):

{table(tables["64M"], {"DuckDB": "≥ 2", "comm -12": "≥ 2"}, "wall")}

{grown}
All gave the same lines. {rounds.capitalize()}, page cache warm; `common` wrote to a file, `dedup` to nowhere. RSS: the
largest process; two `sort` run at once.

* Date: {datetime.date.today()}
* Machine: {dedup.machine()}
* Versions: {dedup.versions(petal)}; DuckDB {DUCKDB}
* Command: `bench/exact.py --lines {args.lines} --rounds {args.rounds}{f" --large {args.large}" if args.large else ""}`
"""
    if str(args.output) != "-":
        Path(args.output).write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
