#!/usr/bin/env python3
"""De-duplicates and filters real lists, against exact sets, and measures the filters to ship.

    tests/lists/run.py PETAL [FOLDER]

PETAL is the command; FOLDER keeps the lists between runs (default: a folder
that goes with the run). The lists come from registry packages, see fetch.sh.
"""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

# Lists to ship, each with a list that must never be found, which it is cleared of.
SHIPPED = [
    ("disposable-domains", "freemail-free"),
    ("million-passwords", "american-english-insane"),
]
SHIPPED_ERRORS = ["1e-3", "1e-6"]

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
    # So little that the digests do not fit, and a filter does.
    little = "14M" if len(expected) < 680_000 else "18M"
    for flags in [[], ["-j", "1"], ["--memory", little], ["-p", "1e-9"]]:
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


def count_found(petal, filter_file, lines):
    """How many lines are in a filter."""
    done = subprocess.run([petal, "check", "-c", "-q", filter_file],
                          input=b"\n".join(lines) + b"\n" if lines else b"", capture_output=True)
    if done.returncode == 2:
        sys.exit(f"check {filter_file}: {done.stderr.decode()}")
    return int(done.stdout)


def measure_shipped(petal, folder, name, listed, allowed, others):
    """Builds each form of a filter of a list, and checks what it says of three lists: every listed
    line must be found, about as many others as expected, and by a cascade no allowed one.
    """
    listed_file, allowed_file = folder / "listed", folder / "allowed"
    listed_file.write_bytes(b"\n".join(listed) + b"\n")
    allowed_file.write_bytes(b"\n".join(allowed) + b"\n")
    cascade = ["--kind", "cascade", "--not-listed", allowed_file]
    forms = [(form, error, ["--kind", form]) for form in ["bloom", "static"] for error in SHIPPED_ERRORS]
    forms += [("packed", error, ["--kind", "classic", "-k", "2"]) for error in SHIPPED_ERRORS if float(error) >= 1e-3]
    forms += [("cascade", error, cascade) for error in [*SHIPPED_ERRORS, "1"]]
    print(f"\n{name}: {len(listed)} listed, {len(allowed)} allowed, {len(others)} others")
    print("| form | error | bytes | bits a line | allowed found | others found | expected |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for form, error, flags in forms:
        filter_file = folder / "shipped.petal"
        run(petal, "build", listed_file, "-p", error, "-o", filter_file, "--force", "-q", *flags)
        run(petal, "verify", "-q", filter_file)
        if count_found(petal, filter_file, listed) != len(listed):
            sys.exit(f"{name}: {form} at {error} misses a listed line")
        wrong = count_found(petal, filter_file, allowed)
        if form == "cascade" and wrong:
            sys.exit(f"{name}: the cascade at {error} finds {wrong} allowed lines")
        found = count_found(petal, filter_file, others)
        info = json.loads(run(petal, "info", "--json", filter_file))
        expected = info["error_now"] * len(others)
        if abs(found - expected) > 5 * math.sqrt(expected) + 1:
            sys.exit(f"{name}: {form} at {error} finds {found} other lines, expected {expected:.1f}")
        size = filter_file.stat().st_size
        if form == "packed":
            size = packed_size(petal, filter_file)
        print(f"| {form} | {error} | {size:,} | {size * 8 / len(listed):.2f} | {wrong} | {found} | {expected:.1f} |")


def packed_size(petal, filter_file):
    """Bytes of a filter on the wire, which comes out of it as it was."""
    packed, back = filter_file.with_suffix(".packed"), filter_file.with_suffix(".back")
    run(petal, "pack", filter_file, "-o", packed, "--force", "-q")
    run(petal, "unpack", packed, "-o", back, "--force", "-q")
    if back.read_bytes() != filter_file.read_bytes():
        sys.exit(f"{filter_file}: another one after pack and unpack")
    return packed.stat().st_size


def main():
    petal = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else scratch / "lists"
        subprocess.run([HERE / "fetch.sh", folder], check=True, stdout=subprocess.DEVNULL)
        lists = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.txt"))}
        if len(lists) < 10:
            sys.exit(f"expected 10 lists in {folder}, found {sorted(lists)}")
        words = first_occurrences(lists["american-english-insane"])
        passed = 0
        for name, data in lists.items():
            unique = check_dedup(petal, name, data)
            members = first_occurrences(data)
            others = [line + b"?" for line in words]
            hits, absent = check_filter(petal, scratch, name, members, others)
            print(f"{name}: {unique} distinct lines; {hits} of {absent} absent lines found at {ERROR:g}")
            passed += 1
        for name, allowed in SHIPPED:
            listed = first_occurrences(lists[name])
            known = {key(line) for line in listed}
            allowed = [line for line in first_occurrences(lists[allowed]) if key(line) not in known]
            both = known | {key(line) for line in allowed}
            others = (line + b"?" for line in words)
            others = [line for line in others if key(line) not in both]
            measure_shipped(petal, scratch, name, listed, allowed, others)
            passed += 1
    print(f"{passed} passed, 0 failed")


main()
