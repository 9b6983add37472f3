#!/usr/bin/env python3
"""Measures petal.spark.common beside a plain inner join, and writes bench/SPARK.md.

    bench/spark.py [--rows 20000000] [--overlap 0.01] [--rounds 1] [--out bench/SPARK.md]

Two tables of so many rows (a URL of about 40 bytes and a payload of 8), written as Parquet first, in
local-cluster[2,1,1024]. Each round runs the plain join and `common(verify=True)`, in turn; the answers are
counted, summed up and compared. What was shuffled is what the tasks wrote, from Spark's event
log. Needs petal-filters, pyspark, pandas and Java 17, and 2 GB of room in the folder of temporary files.
"""

import argparse
import datetime
import glob
import json
import os
import platform
import sys
import tempfile
import time
from importlib.metadata import version

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/spark"))

from session import CLUSTER, session  # noqa: E402

from petal import spark as ps  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402


def table(spark, path, first, rows):
    key = F.concat(F.lit("https://example.org/"), F.hex(F.xxhash64("id")), F.lit("/"), F.col("id").cast("string"))
    frame = spark.range(first, first + rows, 1, 8).select(key.alias("url"), F.col("id").alias("payload"))
    frame.write.parquet(path)
    return spark.read.parquet(path)


def answer(joined):
    row = joined.agg(F.count("*").alias("n"), F.sum("left").alias("l"), F.sum("right").alias("r")).first()
    return row.n, row.l, row.r


def shuffled(folder):
    """Bytes that each job group wrote for shuffles, from the event log."""
    of_stage, totals = {}, {}
    for path in sorted(glob.glob(f"{folder}/**/events_*", recursive=True)) or glob.glob(f"{folder}/*"):
        if os.path.isdir(path):
            continue
        with open(path) as log:
            for line in log:
                event = json.loads(line)
                if event["Event"] == "SparkListenerJobStart":
                    group = event.get("Properties", {}).get("spark.jobGroup.id")
                    for stage in event["Stage IDs"]:
                        of_stage.setdefault(stage, group)
                elif event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
                    group = of_stage.get(event["Stage ID"])
                    written = event["Task Metrics"]["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                    totals[group] = totals.get(group, 0) + written
    return totals


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--overlap", type=float, default=0.01)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", default=os.path.join(HERE, "SPARK.md"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/log"
        os.mkdir(log)
        spark = session(
            CLUSTER, folder, spark_eventLog_enabled="true", spark_eventLog_dir=f"file://{log}",
            spark_eventLog_compress="false",
        )
        common = int(args.rows * args.overlap)
        a = table(spark, f"{folder}/a", 0, args.rows).withColumnRenamed("payload", "left")
        b = table(spark, f"{folder}/b", args.rows - common, args.rows).withColumnRenamed("payload", "right")
        ways = {
            "plain join": lambda: a.join(b, "url"),
            "petal.spark.common": lambda: ps.common(a, b, on="url"),
        }
        # Workers started and classes loaded, for both.
        for way in ways.values():
            answer(way().where("left < 0"))
        seconds, answers = {}, set()
        for number in range(args.rounds):
            for name, way in ways.items():
                spark.sparkContext.setJobGroup(f"{name}/{number}", name)
                start = time.monotonic()
                answers.add(answer(way()))
                seconds[name] = min(seconds.get(name, 1e9), time.monotonic() - start)
        kinds = spark.version
        spark.stop()
        bytes_of = {name: shuffled(log)[f"{name}/{args.rounds - 1}"] for name in ways}
    first = args.rows - common
    total = common * (first + args.rows - 1) // 2
    if answers != {(common, total, total)}:
        raise SystemExit(f"the answers are {answers}, expected {(common, total, total)}")
    model = next(
        (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    (plain, ours), (plain_bytes, our_bytes) = seconds.values(), bytes_of.values()
    text = f"""# Spark: common rows of two tables

Made by `bench/spark.py` on {datetime.date.today()}: {model}, {os.cpu_count()} CPUs; Spark {kinds}, pyarrow {version("pyarrow")}, \
{CLUSTER}; load of the machine when it ended: {os.getloadavg()[0]:.1f}.

Two tables of {args.rows:,} rows, {args.overlap:.1%} of them common; the least of {args.rounds} rounds in turn. Both gave the same {common:,} rows
(number and sums compared).

| | seconds | MiB shuffled |
|---|---|---|
| `a.join(b, "url")` | {plain:.1f} | {plain_bytes / 2**20:.1f} |
| `common(a, b, on="url")` | {ours:.1f} | {our_bytes / 2**20:.1f} |
| ratio | {plain / ours:.2f} | {plain_bytes / our_bytes:.1f} |
"""
    with open(args.out, "w") as out:
        out.write(text)
    print(text)


if __name__ == "__main__":
    main()
