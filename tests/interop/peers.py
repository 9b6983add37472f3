"""Python's makers of filters, as a program: one question or one file a run.

    peers.py SYSTEM write LIST N P FILE     a filter of the lines of LIST
    peers.py SYSTEM check FILE LIST         prints the lines that it finds
"""

import hashlib
import sys


def lines(path):
    with open(path, encoding="utf-8", newline="") as text:
        return text.read().splitlines()


def sha256(item):
    return int.from_bytes(hashlib.sha256(item.encode()).digest()[:16], "big", signed=True)


def pyprobables(verb, *args):
    from probables import BloomFilter

    if verb == "check":
        return BloomFilter(filepath=args[0]).check
    made = BloomFilter(est_elements=int(args[0]), false_positive_rate=float(args[1]))
    return made.add, lambda path: made.export(path)


def pybloom_live(verb, *args):
    from pybloom_live import BloomFilter

    if verb == "check":
        with open(args[0], "rb") as file:
            return BloomFilter.fromfile(file).__contains__
    made = BloomFilter(int(args[0]), float(args[1]))

    def save(path):
        with open(path, "wb") as file:
            made.tofile(file)

    return made.add, save


def rbloom(verb, *args):
    from rbloom import Bloom

    if verb == "check":
        return Bloom.load(args[0], sha256).__contains__
    made = Bloom(int(args[0]), float(args[1]), sha256)
    return made.add, made.save


def parquet(verb, *args):
    import pyarrow
    import pyarrow.parquet

    if verb == "check":
        sys.exit("pyarrow does not ask its filters")
    rows = []

    def save(path):
        options = {"url": {"ndv": int(args[0]), "fpp": float(args[1])}}
        table = pyarrow.table({"url": rows})
        pyarrow.parquet.write_table(
            table, path, row_group_size=70, bloom_filter_options=options
        )

    return rows.append, save


def main():
    system, verb, *args = sys.argv[1:]
    maker = {
        "pyprobables": pyprobables,
        "pybloom-live": pybloom_live,
        "rbloom": rbloom,
        "parquet": parquet,
    }[system]
    if verb == "check":
        found = maker("check", args[0])
        for line in lines(args[1]):
            if found(line):
                print(line)
        return
    add, save = maker("write", args[1], args[2])
    for line in lines(args[0]):
        add(line)
    save(args[3])


main()
