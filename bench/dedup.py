#!/usr/bin/env python3
"""Side by side: `petal dedup` and the tools people use today, on one generated file, on one core; then petal
alone: on two cores, from a pipe, and `build` and `check`.

    bench/dedup.py                    10 M lines, 3 rounds
    bench/dedup.py --lines 100k --rounds 1 --own

Builds petal, installs the peers with `cargo install` into --peers (pinned, with their own lock files),
generates the file, runs every tool once to fill the page cache and to count the lines it keeps, then
runs all of them in turn, --rounds times, output to /dev/null. A row shows the round with the least CPU
seconds (user + system, of the process and what it waited for), the round with the least wall time, and the
largest resident memory.

Needs Linux, Python 3.9, Rust and coreutils. Rows of petal appear once its binary has `dedup`.
"""

import argparse
import datetime
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
PEERS = {"runiq": "2.1.0", "huniq": "2.7.0", "xuniq": "0.1.4"}
ENVIRONMENT = {**os.environ, "LC_ALL": "C"}
FEEDERS = []


@dataclass
class Tool:
    """A row: what to run. `reads_stdin` tools get the file there."""

    name: str
    command: list
    reads_stdin: bool = False
    counts: bool = False  # prints a number of lines instead of lines
    copies: bool = False  # keeps every line
    piped: bool = False  # gets the file from `cat` through a pipe
    silent: bool = False  # prints no lines
    cores: int = 1
    against: str = ""  # the row whose wall time this one's is compared with
    bound: str = ""  # what it is meant to reach
    result: int = 0
    cpu: list = field(default_factory=list)
    wall: list = field(default_factory=list)
    memory: int = 0


def fail(message):
    sys.exit(f"dedup.py: {message}")


def run(*command, **options):
    """Run a step that must succeed; its messages go to stderr."""
    print("+", *command, file=sys.stderr)
    try:
        return subprocess.run([str(part) for part in command], check=True, **options)
    except FileNotFoundError:
        fail(f"{command[0]} is not installed")
    except subprocess.CalledProcessError as error:
        fail(f"{command[0]} ended with {error.returncode}")


def started(tool, file, core, stdout):
    # The tool's own messages belong to its work but not on the screen; a failure shows in its exit code.
    cores = ",".join(str(core + i) for i in range(tool.cores))
    options = {"stdout": stdout, "stderr": subprocess.DEVNULL, "env": ENVIRONMENT}
    command = ["taskset", "-c", cores, *tool.command]
    if tool.piped:
        # `cat` ends with its reader, and is waited for when this program ends.
        cat = subprocess.Popen(["cat", str(file)], stdout=subprocess.PIPE)
        FEEDERS.append(cat)
        child = subprocess.Popen(command, stdin=cat.stdout, **options)
        cat.stdout.close()
        return child
    with open(file, "rb") as stdin:
        return subprocess.Popen(command, stdin=stdin if tool.reads_stdin else subprocess.DEVNULL, **options)


def measured(tool, file, core):
    """CPU seconds, wall seconds and peak resident bytes of one run."""
    began = time.monotonic()
    child = started(tool, file, core, subprocess.DEVNULL)
    sampled = 0
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        sampled = resident_peak(child.pid) or sampled
        time.sleep(0.002)
    wall = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        fail(f"{tool.name} ended with {child.returncode}")
    # The kernel's figure is exact, but a child inherits the peak of the process that started it. Under that,
    # the peak of the program alone counts, as last read up to 2 ms before its end.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = usage.ru_maxrss if usage.ru_maxrss > inherited else sampled
    return usage.ru_utime + usage.ru_stime, wall, peak * 1024


def resident_peak(pid):
    """Peak resident memory of a running process in KiB; None once it has ended."""
    try:
        found = re.search(r"^VmHWM:\s*(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found.group(1)) if found else None


def lines_out(tool, file, core):
    """How many lines the tool keeps (or counts, for `wc -l`)."""
    child = started(tool, file, core, subprocess.PIPE)
    with child.stdout as out:
        if tool.counts:
            count = int(out.read().split()[0])
        else:
            count = sum(block.count(b"\n") for block in iter(lambda: out.read(1 << 20), b""))
    if child.wait() != 0:
        fail(f"{tool.name} ended with {child.returncode}")
    return count


def tools(file, peers, petal):
    """The rows that can be run here, in the order of the table."""
    peer = {name: str(peers / "bin" / name) for name in PEERS}
    rows = [
        Tool("`wc -l`", ["wc", "-l", str(file)], counts=True),
        Tool("`cat`", ["cat", str(file)], copies=True),
    ]
    if has_dedup(petal):
        dedup = [str(petal), "dedup", "--summary", "none"]
        rows += [
            Tool("`petal dedup`", [*dedup, str(file)]),
            Tool("`petal dedup -p 1e-3`", [*dedup, "-p", "1e-3", str(file)]),
        ]
    else:
        print("dedup.py: petal has no `dedup` yet: its rows are left out", file=sys.stderr)
    return rows + [
        Tool(f"xuniq {PEERS['xuniq']}", [peer["xuniq"]], reads_stdin=True),
        Tool(f"runiq {PEERS['runiq']} quick", [peer["runiq"], "--filter", "quick", str(file)]),
        Tool(f"huniq {PEERS['huniq']}", [peer["huniq"]], reads_stdin=True),
        Tool("`sort -u -S1G`", ["sort", "-u", "-S1G", str(file)]),
    ]


def own_tools(file, petal, lines, folder):
    """The rows of petal alone, after those of `tools`."""
    dedup = [str(petal), "dedup", "--summary", "none"]
    build = [str(petal), "build", "-q", "--summary", "none", "--force"]
    check = [str(petal), "check", "-q", "--summary", "none"]
    filter = str(folder / "lines.petal")
    return [
        Tool("`petal dedup -j2`", [*dedup, "-j2", str(file)], cores=2, against="`petal dedup`", bound="wall ≤ 1/1.5"),
        Tool(
            "`petal dedup -p 1e-3 -j2`",
            [*dedup, "-p", "1e-3", "-j2", str(file)],
            cores=2,
            against="`petal dedup -p 1e-3`",
            bound="wall ≤ 1/1.5",
        ),
        Tool("`cat FILE \\| petal dedup`", [*dedup, "-j1"], piped=True, bound="CPU ≤ 13 × wc"),
        Tool(f"`petal build -n {lines}`", [*build, "-j1", "-n", lines, "-o", filter, str(file)], silent=True, bound="CPU ≤ 8 × wc"),
        Tool("`petal check`", [*check, "-j1", filter, str(file)], bound="CPU ≤ 8 × wc"),
        Tool("`petal check -j2`", [*check, "-j2", filter, str(file)], cores=2, against="`petal check`"),
        Tool("`petal build`", [*build, "-j1", "-o", filter, str(file)], silent=True, bound="CPU ≤ 8 × wc"),
        Tool("`petal build -j2`", [*build, "-j2", "-o", filter, str(file)], cores=2, silent=True, against="`petal build`"),
    ]


def own_table(rows, own):
    """Petal alone: CPU against `wc -l`, wall time against one core."""
    base = min(rows[0].cpu)
    walls = {row.name: row.wall for row in rows + own}
    text = ["| command | cores | CPU s | × `wc -l` | wall s | of one core's | to reach | RSS MB |", "|---|---:|---:|---:|---:|---:|---|---:|"]
    bounds = {"`petal dedup`": "CPU ≤ 11 × wc", "`petal dedup -p 1e-3`": "CPU ≤ 8.5 × wc"}
    for row in [row for row in rows if row.name in bounds] + own:
        cpu, wall = min(row.cpu), min(row.wall)
        # Each round ran the two one after the other, so that a busy moment of the machine meets both.
        ratios = [one / two for one, two in zip(walls[row.against], row.wall)] if row.against else []
        share = f"1/{statistics.median(ratios):.2f}" if ratios else ""
        bound = row.bound or bounds.get(row.name, "")
        text.append(
            f"| {row.name} | {row.cores} | {cpu:.2f} | {cpu / base:.1f} | {wall:.2f} | {share} | {bound} | {row.memory / 1e6:.0f} |"
        )
    return "\n".join(text)


def paired(rows):
    """The rows, each followed by those that are compared with it."""
    for row in rows:
        if not row.against:
            yield row
            yield from (other for other in rows if other.against == row.name)


def has_dedup(petal):
    if not petal.exists():
        return False
    done = subprocess.run([petal, "dedup", "--help"], stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode == 0 and bool(done.stdout)


def install_peers(folder):
    installed = subprocess.run(["cargo", "install", "--list", "--root", str(folder)], capture_output=True, text=True).stdout
    missing = [f"{name}@{version}" for name, version in PEERS.items() if f"{name} v{version}:" not in installed]
    if missing:
        run("cargo", "install", "--locked", "--root", folder, *missing)


def generate(lines, folder):
    """The input file, its number of distinct lines and the generator's line of counts."""
    run("cargo", "build", "--release", "--quiet", "--no-default-features", "--bin", "generate", cwd=BENCH)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"lines-{lines}.txt"
    partial = file.with_suffix(".partial")
    with open(partial, "wb") as out:
        done = run(BENCH / "target/release/generate", "--lines", lines, stdout=out, stderr=subprocess.PIPE, text=True)
    partial.replace(file)
    return file, int(re.search(r"distinct=(\d+)", done.stderr).group(1)), done.stderr.strip()


def machine():
    """Processor, cores, memory and kernel, as the system names them."""
    def first(path, pattern):
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
        return found.group(1).strip() if found else "unknown"

    cpu = first("/proc/cpuinfo", r"^model name\s*:(.*)$")
    if cpu == "unknown":
        cpu = platform.machine()
    family = first("/proc/cpuinfo", r"^cpu family\s*:(.*)$")
    model = first("/proc/cpuinfo", r"^model\s*:(.*)$")
    memory = int(first("/proc/meminfo", r"^MemTotal:\s*(\d+)")) / 2**20
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux") if hasattr(platform, "freedesktop_os_release") else "Linux"
    return f"{cpu} (family {family}, model {model}), {os.cpu_count()} cores, {memory:.0f} GiB; {system}, Linux {platform.release()}"


def versions(petal):
    """What built and ran, besides the peers, whose version stands in their row."""
    def line(*command):
        return subprocess.run(command, capture_output=True, text=True).stdout.partition("\n")[0]

    parts = [line("rustc", "--version"), line("sort", "--version")]
    if has_dedup(petal):
        commit = line("git", "-C", str(ROOT), "describe", "--always", "--dirty")
        parts.insert(0, f"{line(str(petal), '--version')} at commit {commit}")
    return "; ".join(parts)


def table(rows, distinct):
    base = min(rows[0].cpu)
    own = next((min(row.cpu) for row in rows if row.name == "`petal dedup`"), None)
    text = ["| tool | CPU s | × `wc -l` | × `petal dedup` | RSS MB | lines out | result |", "|---|---:|---:|---:|---:|---:|---|"]
    for row in rows:
        cpu = min(row.cpu)
        lost = distinct - row.result
        result = "" if row.counts or row.copies else "exact" if lost == 0 else f"{lost} lost" if lost > 0 else f"{-lost} too many"
        against = f"{cpu / own:.2f}" if own else "-"
        memory = f"{row.memory / 1e6:.0f}" if row.memory >= 1e6 else "-"  # ended before it could be read
        text.append(f"| {row.name} | {cpu:.2f} | {cpu / base:.1f} | {against} | {memory} | {row.result} | {result} |")
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", default="10M", help="lines of the file, such as 100k (default 10M)")
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each tool (default 3)")
    parser.add_argument("--peers", type=Path, default=BENCH / "peers", help="folder the peers are installed into")
    parser.add_argument("--data", type=Path, default=BENCH / "data", help="folder of the generated file")
    parser.add_argument("--core", type=int, default=0, help="the core to run on (default 0); the next one is the second")
    parser.add_argument("--own", action="store_true", help="only `wc -l` and petal: no peers are installed or run")
    parser.add_argument("--output", default="-", help="file to write as well, - for none (default)")
    args = parser.parse_args()
    if args.rounds < 1:
        fail(f"--rounds must be 1 or more, got {args.rounds}")
    if not shutil.which("taskset"):
        fail("taskset is not installed; it comes with util-linux")

    run("cargo", "build", "--release", "--quiet", cwd=ROOT)
    petal = ROOT / "target/release/petal"
    if not args.own:
        install_peers(args.peers)
    file, distinct, counts = generate(args.lines, args.data)
    rows = tools(file, args.peers, petal)
    if args.own:
        rows = [row for row in rows if "`" in row.name and "sort" not in row.name]
    own = own_tools(file, petal, args.lines, args.data) if has_dedup(petal) else []
    for row in rows + own:
        if row.silent:
            if started(row, file, args.core, subprocess.DEVNULL).wait() != 0:
                fail(f"{row.name} failed")
            continue
        row.result = lines_out(row, file, args.core)
        print(f"{row.name}: {row.result} lines", file=sys.stderr)
    for number in range(1, args.rounds + 1):
        for row in paired(rows + own):
            cpu, wall, memory = measured(row, file, args.core)
            row.cpu.append(cpu)
            row.wall.append(wall)
            row.memory = max(row.memory, memory)
            print(f"round {number}: {row.name}: {cpu:.2f} CPU s, {wall:.2f} s, {memory / 1e6:.0f} MB", file=sys.stderr)

    rounds = "1 round" if args.rounds == 1 else f"least of {args.rounds} alternated rounds"
    text = f"""# De-duplicating {args.lines} lines

{table(rows, distinct)}

CPU seconds: user + system, {rounds}, output to /dev/null, page cache warm. RSS: largest resident memory.
Result: lines out against the {distinct} distinct ones of the file, which are known by construction; `sort -u` puts
them into another order, the others keep the first of each in input order.

## petal alone

{own_table(rows, own)}

CPU against `wc -l` on the same file; from a pipe, petal's own CPU. Of one core's: the median over the rounds, in
each of which the two ran one after the other. `build` and `check` with the default error of
1e-6; without `-n` the keys are counted first.

* Date: {datetime.date.today()}
* Machine: {machine()}
* Versions: {versions(petal)}
* Input: `bench/target/release/generate --lines {args.lines}`: {counts}
* Command: `bench/dedup.py --lines {args.lines} --rounds {args.rounds}{" --own" if args.own else ""}`
"""
    if str(args.output) != "-":
        Path(args.output).write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
