#!/usr/bin/env python3
"""De-duplicates and filters real lists, against exact sets.

    tests/lists/run.py PETAL [FOLDER]

PETAL is the command; FOLDER keeps the lists between runs (default: a folder
that goes with the run). The lists come from registry packages, see fetch.sh.
"""

import math
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ERROR = 1e-4


def key(line):
    """What petal compares: a line without its CR."""
    return line[:-1] if line.endswith(b"\r") else line


def lines_of(data):
    lines = data.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def run(petal, *args, code=0, stdin=b""):
    done = subprocess.run([petal, *map(str, args)], input=stdin, capture_output=True)
    if done.returncode != code:
        sys.exit(f"petal {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


def first_occurrences(data):
    seen = set()
    out = []
    for line in data.split(b"\n") if not data.endswith(b"\n") else data[:-1].split(b"\n"):
        if key(line) not in seen:
            seen.add(key(line))
            out.append(line)
    return out


def check_dedup(petal, name, data):
    """The output is exactly the first occurrences, whatever the flags."""
    expected = first_occurrences(data)
    for flags in [[], ["-j", "1"], ["--memory", "14M"], ["-p", "1e-9"]]:
        got = lines_of(run(petal, "dedup", *flags, stdin=data))
        if got != expected:
            sys.exit(f"{name}: dedup {flags} gave {len(got)} lines, expected {len(expected)}")
    return len(expected)


def check_filter(petal, folder, name, members, others):
    """No member is missed, and about as many others are found as expected."""
    filter_file = folder / "list.petal"
    run(petal, "build", "-p", ERROR, "-o", filter_file, "--force", stdin=b"\n".join(members))
    run(petal, "verify", "-q", filter_file)
    if run(petal, "check", "-c", filter_file, stdin=b"\n".join(members)) != b"%d\n" % len(members):
        sys.exit(f"{name}: a member was not found")
    known = {key(line) for line in members}
    absent = [line for line in others if key(line) not in known]
    hits = len(lines_of(subprocess.run(
        [petal, "check", filter_file], input=b"\n".join(absent), capture_output=True).stdout))
    expected = ERROR * len(absent)
    if hits > expected + 5 * math.sqrt(expected) + 1:
        sys.exit(f"{name}: {hits} of {len(absent)} absent lines found, expected {expected:.1f}")
    return hits, len(absent)


def main():
    petal = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else scratch / "lists"
        subprocess.run([HERE / "fetch.sh", folder], check=True, stdout=subprocess.DEVNULL)
        lists = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.txt"))}
        if len(lists) < 9:
            sys.exit(f"expected 9 lists in {folder}, found {sorted(lists)}")
        words = first_occurrences(lists["american-english-insane"])
        passed = 0
        for name, data in lists.items():
            unique = check_dedup(petal, name, data)
            members = first_occurrences(data)
            others = [line + b"?" for line in words]
            hits, absent = check_filter(petal, scratch, name, members, others)
            print(f"{name}: {unique} distinct lines; {hits} of {absent} absent lines found at {ERROR:g}")
            passed += 1
    print(f"{passed} passed, 0 failed")


main()
