"""petal.spark on real sessions: local ones, and a cluster of processes whose workers are killed."""

import json
import os
import signal
import threading
import time

import petal
import pytest
from petal import spark as ps
from petal.spark import Spec
from pyspark import TaskContext
from pyspark.sql import functions as F
from session import CLUSTER, session

DAYS = 3000  # keys of a day


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    # Tasks may fail and are tried again.
    made = session("local[2,4]", tmp_path_factory.mktemp("spark"))
    yield made
    made.stop()


def urls(spark, start, end, extra=()):
    """A frame of URLs with a payload, of 3 partitions."""
    frame = spark.range(start, end, 1, 3).select(
        F.concat(F.lit("https://example.org/"), F.col("id").cast("string")).alias("url"),
        (F.col("id") * 3).alias("payload"),
    )
    rows = [(key, -1) for key in extra]
    return frame.unionByName(spark.createDataFrame(rows, "url string, payload long")) if rows else frame


def numbers(frame):
    return sorted(row.payload for row in frame.select("payload").collect())


def seen_of(spark, max_bytes=ps.MAX_BYTES):
    return ps.build(urls(spark, 0, DAYS, [None]), "url", Spec(DAYS, 1e-6), max_bytes=max_bytes)


@pytest.fixture(scope="module", params=["one filter", "in parts"])
def seen(request, spark):
    made = seen_of(spark, ps.MAX_BYTES if request.param == "one filter" else 2500)
    assert (made.plan.parts == 1) == (request.param == "one filter")
    return made


def test_bits_are_those_of_a_filter_made_in_one_place(spark):
    alone = petal.BloomFilter(DAYS, 1e-6)
    alone.add_many([f"https://example.org/{i}" for i in range(DAYS)])
    for partials in (2, 17):
        frame = urls(spark, 0, DAYS, [None]).repartition(17)
        made = ps.build(frame, "url", Spec(DAYS, 1e-6), partials=partials)
        assert made.filter() == alone, partials


def test_keep_exclude_contains(spark, seen):
    today = urls(spark, DAYS - 100, DAYS + 200, [None])
    # At an error of 1e-6 no absent key is found; the seed is fixed.
    assert numbers(ps.keep(today, "url", seen)) == [3 * i for i in range(DAYS - 100, DAYS)]
    assert numbers(ps.exclude(today, "url", seen)) == [-1] + [3 * i for i in range(DAYS, DAYS + 200)]
    asked = ps.contains(today, "url", seen)
    assert asked.columns == ["url", "payload", "seen"] and asked.schema["seen"].dataType.typeName() == "boolean"
    for row in asked.collect():
        assert row.seen == (None if row.url is None else row.payload < 3 * DAYS)
    upper = today.withColumn("url", F.upper("url"))
    assert ps.keep(upper, F.lower("url"), seen).count() == 100
    with pytest.raises(ValueError, match="name="):
        ps.contains(asked, "url", seen)


def test_integer_columns_of_every_width(spark):
    made = ps.build(spark.range(100), "id", Spec(100, 1e-6))
    assert made.spec.keys == "int" and 99 in made.filter()
    for width in ("tinyint", "smallint", "int", "bigint"):
        frame = spark.range(90, 110).select(F.col("id").cast(width).alias("k"))
        assert ps.keep(frame, "k", made).count() == 10
    with pytest.raises(TypeError, match="bytes"):
        ps.keep(urls(spark, 0, 1), "url", made)
    for kind in ("double", "boolean", "date"):
        with pytest.raises(TypeError, match="cast"):
            ps.build(spark.createDataFrame([(None,)], f"k {kind}"), "k", Spec(10, 0.01))


def test_empty_frames(spark):
    for most in (ps.MAX_BYTES, 2500):
        made = ps.build(urls(spark, 0, 0), "url", Spec(DAYS, 1e-6), max_bytes=most)
        assert ps.keep(urls(spark, 0, 10), "url", made).count() == 0
        assert ps.exclude(urls(spark, 0, 10), "url", made).count() == 10
        assert ps.exclude(urls(spark, 0, 0), "url", made).count() == 0


@pytest.mark.parametrize("verify", [True, False])
def test_common_is_the_join(spark, verify):
    a = urls(spark, 0, 2000, [None]).withColumn("left", F.lit(1))
    b = urls(spark, 1900, 6000, [None]).select("url", F.col("payload").alias("right"))
    b = b.unionByName(b.where(F.col("right") == 3 * 1950))  # a key that comes twice
    both = ps.common(a, b, on="url", verify=verify)
    if verify:
        expected = a.join(b, "url")
        assert both.columns == expected.columns
        assert sorted(both.collect()) == sorted(expected.collect()) and both.count() == 101
    else:
        found = {row.url for row in both.collect()}
        assert {f"https://example.org/{i}" for i in range(1900, 2000)} <= found and len(found) < 400


def test_common_on_several_columns_and_types(spark):
    a = spark.createDataFrame([(1, "x", None), (2, None, 5), (3, "z", 6)], "i int, s string, n int")
    b = spark.createDataFrame([(1, "x"), (2, None), (3, "y")], "i bigint, s string")
    assert [row.i for row in ps.common(a, b, on=["i", "s"]).collect()] == [1]
    with pytest.raises(TypeError, match="cast"):
        ps.common(a.withColumn("i", F.col("i").cast("double")), b, on="i")
    with pytest.raises(TypeError, match="cast"):
        ps.common(a.withColumn("i", F.col("i").cast("string")), b, on="i")


def test_merge_of_days(spark):
    for most in (ps.MAX_BYTES, 2500):
        days = [
            ps.build(urls(spark, 1000 * d, 1000 * d + 1000), "url", Spec(DAYS, 1e-6), max_bytes=most)
            for d in range(3)
        ]
        merged = ps.merge(*days, days[0])
        assert ps.keep(urls(spark, 0, DAYS + 100), "url", merged).count() == DAYS
        if merged.plan.parts == 1:
            assert merged.filter() == seen_of(spark).filter()
    with pytest.raises(petal.MismatchError, match="same settings"):
        ps.merge(merged, ps.build(urls(spark, 0, 1), "url", Spec(5, 0.01)))
    with pytest.raises(petal.MismatchError):
        ps.merge()


def test_save_and_load(spark, seen, tmp_path):
    path = f"file://{tmp_path}/filter"
    ps.save(seen, path)
    again = ps.load(path)
    assert again.plan == seen.plan
    today = urls(spark, DAYS - 100, DAYS + 200)
    assert ps.keep(today, "url", again).count() == 100
    with pytest.raises(FileExistsError, match="already"):
        ps.save(seen, path)
    folder = tmp_path / "filter"
    part = sorted(folder.glob("part-*.petal"))[0]
    assert type(petal.open(part)) is petal.BloomFilter
    good = part.read_bytes()
    # Hadoop's own checksums would notice as well; other file systems have none.
    for crc in folder.glob(".*.crc"):
        crc.unlink()
    for bad in (good[:-1], good[:-1] + bytes([good[-1] ^ 1])):
        part.write_bytes(bad)
        with pytest.raises(Exception, match="checksum|bytes"):
            ps.keep(today, "url", ps.load(path)).count()
    part.write_bytes(good)
    manifest = json.loads((folder / "manifest.json").read_text())
    for damage in ({"version": 2}, {"files": []}, {"plan": {}}):
        (folder / "manifest.json").write_text(json.dumps({**manifest, **damage}))
        if damage == {"files": []} and seen.plan.parts > 1:
            continue  # parts that no key fell into are not there
        with pytest.raises(petal.FileFormatError):
            ps.load(path)
    (folder / "manifest.json").unlink()
    with pytest.raises(FileNotFoundError, match="not all of it"):
        ps.load(path)
    for crc in folder.glob(".*.crc"):
        crc.unlink()
    ps.save(seen, path)  # over what an interrupted run left
    assert ps.keep(today, "url", ps.load(path)).count() == 100


def test_one_petal_file(spark, seen, tmp_path):
    if seen.plan.parts > 1:
        with pytest.raises(ValueError, match="max_bytes"):
            ps.to_file(seen, tmp_path / "f")
        return
    ps.to_file(seen, tmp_path / "f")
    assert "https://example.org/7" in petal.open(tmp_path / "f")
    again = ps.from_file(tmp_path / "f")
    assert again.filter() == seen.filter() and again.spec == seen.spec
    assert ps.keep(urls(spark, 0, DAYS + 10), "url", again).count() == DAYS


def test_tasks_that_fail_and_run_again_change_nothing(spark):
    def fails_first(batches):
        for batch in batches:
            yield batch
        # After the rows: what the first attempt has done is lost, and done again.
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("the first attempt fails")

    def unreliable(start, end):
        frame = urls(spark, start, end)
        return frame.mapInArrow(fails_first, frame.schema)

    for most in (ps.MAX_BYTES, 2500):
        made = ps.build(unreliable(0, DAYS), "url", Spec(DAYS, 1e-6), max_bytes=most)
        found = numbers(ps.keep(unreliable(DAYS - 50, DAYS + 50), "url", made))
        assert found == [3 * i for i in range(DAYS - 50, DAYS)]
    assert made.plan.parts > 1


def executors(cluster):
    """Process ids of the executors: the parents of what forks the Python workers."""

    def parents(_):
        with open(f"/proc/{os.getppid()}/stat") as stat:
            yield int(stat.read().rsplit(")", 1)[1].split()[1])

    return set(cluster.sparkContext.parallelize(range(8), 8).mapPartitions(parents).collect())


def is_java(pid):
    with open(f"/proc/{pid}/comm") as comm:
        return comm.read().strip() == "java"


def test_a_cluster_whose_executors_are_killed(tmp_path_factory):
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
    cluster = session(CLUSTER, tmp_path_factory.mktemp("cluster"), spark_speculation="true")
    try:
        a = urls(cluster, 0, 200_000).withColumn("left", F.lit(1))
        b = urls(cluster, 198_000, 400_000).select("url", F.col("payload").alias("right"))

        def slow(batches):
            for batch in batches:
                time.sleep(0.2)
                yield batch

        def found(slowly):
            left = a.mapInArrow(slow, a.schema) if slowly else a
            rows = ps.common(left, b, on="url", items=200_000).select("payload", "right")
            return sorted(map(tuple, rows.collect()))

        expected = [(3 * i, 3 * i) for i in range(198_000, 200_000)]
        assert found(False) == expected

        pids = executors(cluster)
        assert len(pids) == 2 and all(map(is_java, pids)) and os.getpid() not in pids
        killed = []

        def kill():
            for pid in sorted(pids):
                time.sleep(3)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        killer = threading.Thread(target=kill)
        killer.start()
        assert found(True) == expected
        killer.join()
        assert set(killed) == pids and not executors(cluster) & pids
    finally:
        cluster.stop()
