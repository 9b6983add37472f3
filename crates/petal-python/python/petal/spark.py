"""petal on Apache Spark: filters over data of many machines.

    seen = spark.build(yesterday, "url", Spec(items=1_000_000_000, fpr=0.001))
    new = exclude(today, "url", seen)

A filter is built from partial ones, one for each task, which are then joined; no task has any
effect but its rows, so that retries and speculative copies change nothing. Rows are asked by
their key column alone. A filter that is too large to be sent to every executor is divided by a
hash of the keys, and rows are sent to the part that they belong to.

What is exact and what is not, and how the package reaches the executors, is in
`docs/spark.md`. For classic sessions (not Spark Connect) of pyspark 4.1 and later.
"""

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow
import pyarrow.compute
from pyspark import StorageLevel, TaskContext
from pyspark.sql import functions as F
from pyspark.sql import types as T

from petal import engine
from petal._petal import BloomFilter, FileFormatError, MismatchError
from petal.engine import Plan, Spec

__all__ = [
    "Plan",
    "Seen",
    "Spec",
    "build",
    "common",
    "contains",
    "exclude",
    "from_file",
    "keep",
    "load",
    "merge",
    "save",
    "to_file",
]

#: Filters that one task, or the driver, joins.
FAN_IN = 4
#: Filters up to this many bytes are sent to every executor; larger ones are divided.
MAX_BYTES = 64 << 20

_PART, _KEY, _DATA, _SEEN = "__petal_part", "__petal_key", "__petal_data", "__petal_seen"
_MARK = "__petal_mark"
_MANIFEST = "manifest.json"
_BYTES_TYPES = (T.StringType, T.BinaryType, T.CharType, T.VarcharType)
_INT_TYPES = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


@dataclass(frozen=True, eq=False)
class Seen:
    """A filter that was built on Spark: its plan, and its bytes (one part) or a frame of the
    parts. Make one with `build`, `load`, `merge` or `from_file`."""

    plan: Plan
    data: bytes | None = None
    frame: Any = None

    @property
    def spec(self):
        """What it was made for."""
        return self.plan.spec

    def filter(self):
        """The filter itself, on the driver. ValueError if it is in parts."""
        if self.data is None:
            raise ValueError(
                f"the filter is in {self.plan.parts} parts, which are no one filter: "
                "build it with a larger max_bytes"
            )
        return BloomFilter.from_bytes(self.data)


def _column(df, column):
    return df[column] if isinstance(column, str) else column


def _keys(df, column, spec):
    """A frame of the keys alone, and the spec with their type."""
    frame = df.select(_column(df, column).alias(_KEY))
    kind = frame.schema[_KEY].dataType
    keys = "bytes" if isinstance(kind, _BYTES_TYPES) else "int" if isinstance(kind, _INT_TYPES) else None
    if keys is None:
        raise TypeError(
            f"a column of keys is a string, binary or integer, got {kind.simpleString()}: "
            "cast it to one of these in the one way that all writers and readers use"
        )
    if spec is not None and spec.keys not in (None, keys):
        raise TypeError(f"the filter has {spec.keys} keys and the column {keys}: cast one of them")
    return frame, replace(spec, keys=keys) if spec is not None else None


def _rows(part, data):
    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(part, pyarrow.int32()), pyarrow.array(data, pyarrow.binary())], [_PART, _DATA]
    )


_ROWS = T.StructType([T.StructField(_PART, T.IntegerType()), T.StructField(_DATA, T.BinaryType())])


def build(df, column, spec, *, max_bytes=MAX_BYTES, partials=None):
    """The filter of a column's keys, sized by a spec for their distinct number. Nulls are not keys.

    `partials` is how many tasks fill a filter each; as many as there are cores, unless
    said otherwise. A filter of more than `max_bytes` is divided into parts, for which the keys
    are shuffled once.
    """
    frame, spec = _keys(df, column, spec)
    plan = spec.plan(max_bytes)
    if plan.parts > 1:
        return Seen(plan, frame=_kept(_build_parts(frame, plan)))
    if partials is None:
        partials = df.sparkSession.sparkContext.defaultParallelism

    def fill(batches):
        data = engine.partial((batch.column(0) for batch in batches), spec)
        yield _rows([TaskContext.get().partitionId()], [data])

    # Fewer tasks, and so fewer filters to be joined, without a shuffle.
    joined = frame.coalesce(max(1, partials)).mapInArrow(fill, _ROWS)
    while partials > FAN_IN:
        partials = -(-partials // FAN_IN)
        joined = joined.repartition(partials, F.col(_PART) % partials).mapInArrow(_join, _ROWS)
    parts = [bytes(row[_DATA]) for row in joined.collect()]
    return Seen(plan, data=engine.merge(parts) if parts else engine.partial([], spec))


def _join(batches):
    """Joins all filters of a task."""
    seen = None
    for batch in batches:
        for data in batch.column(1):
            part = BloomFilter.from_bytes(data.as_py())
            if seen is None:
                seen = part
            else:
                seen |= part
    if seen is not None:
        yield _rows([TaskContext.get().partitionId()], [seen.to_bytes()])


def _kept(frame):
    """The frame, computed once and kept in memory or on disk. Spark takes frames of one plan for the
    same, also if what they read has changed: a mark tells this one from earlier ones."""
    mark = F.lit(secrets.randbits(62)).alias(_MARK)
    return frame.select("*", mark).drop(_MARK).persist(StorageLevel.MEMORY_AND_DISK)


def _runs(batches, column):
    """The pieces of batches in which a column that is sorted has one value, with that value."""
    for batch in batches:
        parts = batch.column(column)
        start = 0
        for run in pyarrow.compute.value_counts(parts).to_pylist():
            yield run["values"], batch.slice(start, run["counts"])
            start += run["counts"]


def _by_part(frame, plan, *order):
    return frame.repartition(plan.parts, _PART).sortWithinPartitions(_PART, *order)


def _part_of(plan):
    parts = plan.parts

    @F.arrow_udf("int")
    def part(keys: pyarrow.Array) -> pyarrow.Array:
        return engine.part_of(keys, parts)

    return part


def _build_parts(frame, plan):
    keyed = frame.where(F.col(_KEY).isNotNull()).withColumn(_PART, _part_of(plan)(F.col(_KEY)))
    spec = plan.part_spec

    def fill(batches):
        now, seen = None, None
        for part, rows in _runs(batches, _PART):
            if part != now:
                if seen is not None:
                    yield _rows([now], [seen.to_bytes()])
                now, seen = part, spec.filter()
            seen.add_many(rows.column(_KEY))
        if seen is not None:
            yield _rows([now], [seen.to_bytes()])

    return _by_part(keyed.select(_PART, _KEY), plan).mapInArrow(fill, _ROWS)


def contains(df, column, seen, name="seen"):
    """The frame with a boolean column more: whether the key of a row may be in the filter; null
    for a null key."""
    _keys(df, column, seen.spec)
    if name in df.columns:
        raise ValueError(f"the frame has a column {name!r} already: give another name=")
    if seen.data is not None:
        return df.withColumn(name, _asked(df, column, seen))
    return _contains_by_part(df, column, seen, name)


def keep(df, column, seen):
    """The rows whose key may be in the filter: all whose key is, and few others."""
    return _where(df, column, seen, lambda answer: answer)


def exclude(df, column, seen):
    """The rows whose key is certainly not in the filter, such as those not seen on earlier days;
    rows with a null key among them. Of the others the filter's error, a small share, is missing too."""
    return _where(df, column, seen, lambda answer: ~F.coalesce(answer, F.lit(False)))


def _where(df, column, seen, condition):
    if seen.data is not None:
        _keys(df, column, seen.spec)
        return df.where(condition(_asked(df, column, seen)))
    return contains(df, column, seen, _SEEN).where(condition(F.col(_SEEN))).drop(_SEEN)


def _asked(df, column, seen):
    data = df.sparkSession.sparkContext.broadcast(seen.data)

    @F.arrow_udf("boolean")
    def ask(keys: pyarrow.Array) -> pyarrow.Array:
        return engine.probe(data.value, keys)

    return ask(_column(df, column))


def _contains_by_part(df, column, seen, name):
    """Rows go where their part of the filter is, behind it."""
    plan = seen.plan
    rows = df.withColumn(_KEY, _column(df, column))
    # A null has no part; it goes anywhere.
    rows = rows.withColumn(_PART, F.coalesce(_part_of(plan)(F.col(_KEY)), F.lit(0)))
    both = rows.unionByName(seen.frame, allowMissingColumns=True)
    schema = T.StructType([*both.drop(_KEY, _PART, _DATA).schema, T.StructField(name, T.BooleanType())])
    columns = df.columns

    def ask(batches):
        now, part_seen = None, None
        for part, rows in _runs(batches, _PART):
            if part != now:
                now, part_seen = part, None
            data = rows.column(_DATA)
            filters = len(data) - data.null_count
            if filters:
                for one in data.slice(0, filters):
                    part_seen = BloomFilter.from_bytes(one.as_py())
                rows = rows.slice(filters)
            if len(rows) == 0:
                continue
            keys = rows.column(_KEY)
            if part_seen is None:  # no key fell into this part
                answers = pyarrow.compute.if_else(keys.is_valid(), False, None)
            else:
                answers = part_seen.contains_many(keys)
            arrays = [rows.column(column) for column in columns] + [answers]
            yield pyarrow.RecordBatch.from_arrays(arrays, [*columns, name])

    tagged = _by_part(both, plan, F.col(_DATA).isNull())
    return tagged.mapInArrow(ask, schema)


def common(a, b, *, on, verify=True, items=None, fpr=0.01, max_bytes=MAX_BYTES):
    """The rows of two frames that have the same key: `a.join(b, on)`, with less shuffled.

    A filter of the keys of `a`, the smaller one, keeps most rows of `b` out of the join, and one of
    the keys of `b` that are left most rows of `a`. With `verify` what is left is joined, so that the answer is
    exact. Without, it is the rows of `a` whose key may be in `b`: all that are, and few others.

    `items` is the number of rows of `a`, which are counted if it is not given. Pays where few keys
    are common; rows of `b` that are left are kept (in memory or on disk) for as long as the
    answer is used.
    """
    on = [on] if isinstance(on, str) else list(on)
    left, right = _hashed(a, b, on)
    count = items if items is not None else a.count()
    spec = Spec(max(1, count), fpr, keys="int")
    seen = build(a, left, spec, max_bytes=max_bytes)
    b = _kept(keep(b, right, seen))
    seen = build(b, right, Spec(max(1, b.count()), fpr, keys="int"), max_bytes=max_bytes)
    a = keep(a, left, seen)
    return a.join(b, on) if verify else a


def _hashed(a, b, on):
    """The key of several columns as one integer, on both sides: made by the JVM, so that 8 bytes a
    row go to Python. Equal keys are equal integers; the join tells different ones apart."""
    sides = ([], [])
    for name in on:
        kinds = [frame.schema[name].dataType for frame in (a, b)]
        if all(isinstance(kind, _INT_TYPES) for kind in kinds):
            kinds = [T.LongType(), T.LongType()]
        if kinds[0] != kinds[1] or not _compared_as_bits(kinds[0]):
            shown = " and ".join(kind.simpleString() for kind in kinds)
            raise TypeError(
                f"the columns {name!r} are {shown}: cast both to one type of strings, bytes, integers, "
                "decimals, dates or times (numbers with a fraction are equal in more than one form)"
            )
        for side, frame in zip(sides, (a, b)):
            side.append(frame[name].cast(kinds[0]))
    return tuple(F.xxhash64(*side) for side in sides)


def _compared_as_bits(kind):
    if isinstance(kind, T.StringType):
        return not hasattr(kind, "isUTF8BinaryCollation") or kind.isUTF8BinaryCollation()
    return isinstance(
        kind,
        (T.BinaryType, T.LongType, T.DecimalType, T.DateType, T.TimestampType, T.TimestampNTZType),
    )


def merge(*filters):
    """The filter of the keys of all of several filters of one spec, such as those of several days.

    Its error is what its fill makes it: give the spec the keys of all of them."""
    if not filters:
        raise MismatchError("there is nothing to merge: give at least one filter")
    plan = filters[0].plan
    for seen in filters:
        if seen.plan != plan:
            raise MismatchError(f"the filters are of {plan} and {seen.plan}: build all with the same settings")
    if plan.parts == 1:
        return Seen(plan, data=engine.merge(seen.data for seen in filters))
    frame = filters[0].frame
    for seen in filters[1:]:
        frame = frame.unionByName(seen.frame)

    def join(batches):
        now, joined = None, None
        for part, rows in _runs(batches, _PART):
            if part != now:
                if joined is not None:
                    yield _rows([now], [joined.to_bytes()])
                now, joined = part, None
            for data in rows.column(_DATA):
                one = BloomFilter.from_bytes(data.as_py())
                if joined is None:
                    joined = one
                else:
                    joined |= one
        if joined is not None:
            yield _rows([now], [joined.to_bytes()])

    return Seen(plan, frame=_kept(_by_part(frame, plan).mapInArrow(join, _ROWS)))


def to_file(seen, path, *, overwrite=False):
    """Writes the filter as one petal file on the driver's machine, which the command, the library
    and `petal.open` read. ValueError if it is in parts."""
    seen.filter().save(path, overwrite=overwrite)


def from_file(path):
    """The filter of one petal file of the kind `bloom` on the driver's machine, for asking."""
    seen = BloomFilter.open(path)
    spec = Spec(seen.items, seen.fpr, seen.keys)
    return Seen(Plan(spec, 1, seen.nbytes), data=seen.to_bytes())


class _Folder:
    """A folder on a Hadoop file system, used from the driver."""

    def __init__(self, spark, path):
        self.jvm, self.path = spark._jvm, path
        self.fs = self.at("").getFileSystem(spark._jsc.hadoopConfiguration())

    def at(self, name):
        return self.jvm.org.apache.hadoop.fs.Path(f"{self.path}/{name}" if name else self.path)

    def exists(self, name):
        return self.fs.exists(self.at(name))

    def write(self, name, data):
        out = self.fs.create(self.at(name), True)
        try:
            for start in range(0, len(data), 1 << 22):
                out.write(bytearray(data[start : start + (1 << 22)]))
        finally:
            out.close()

    def read(self, name, size=None):
        status = self.fs.getFileStatus(self.at(name))
        if size is not None and status.getLen() != size:
            raise FileFormatError(
                f"{self.path}/{name} has {status.getLen()} bytes, expected {size}: save the filter again"
            )
        stream = self.fs.open(self.at(name))
        try:
            return bytes(self.jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()


def save(seen, path, *, spark=None):
    """Writes the filter to a folder on any file system that Hadoop knows: its parts, each one petal
    file, and then a manifest with their checksums. Until the manifest is there, there is no
    filter, and what an interrupted run left is replaced. Raises FileExistsError if there is one."""
    spark = _session(spark)
    folder = _Folder(spark, path)
    if folder.exists(_MANIFEST):
        raise FileExistsError(f"{path} has a filter already: save to another path, or remove it first")
    entries = []

    def write(part, data):
        name = f"part-{part:05}.petal"
        folder.write(name, data)
        digest = hashlib.sha256(data).hexdigest()
        entries.append({"part": part, "file": name, "bytes": len(data), "sha256": digest})

    if seen.data is not None:
        write(0, seen.data)
    else:
        # One part at a time on the driver.
        for row in seen.frame.toLocalIterator():
            write(row[_PART], bytes(row[_DATA]))
    entries.sort(key=lambda entry: entry["part"])
    plan = {**asdict(seen.spec), "parts": seen.plan.parts, "bytes_per_part": seen.plan.bytes_per_part}
    manifest = {"format": "petal.spark", "version": 1, "plan": plan, "files": entries}
    temporary = f"_{_MANIFEST}"
    folder.write(temporary, json.dumps(manifest, indent=1).encode())
    if not folder.fs.rename(folder.at(temporary), folder.at(_MANIFEST)):
        raise FileExistsError(f"{path}/{_MANIFEST} cannot be made: somebody else has saved a filter there")


def _session(spark):
    from pyspark.sql import SparkSession

    spark = spark or SparkSession.getActiveSession()
    if spark is None:
        raise ValueError("there is no active session of Spark: give spark=")
    return spark


def load(path, *, spark=None):
    """Reads a filter that `save` wrote. Sizes and checksums are verified: of a single part now, of
    several when they are read."""
    spark = _session(spark)
    folder = _Folder(spark, path)
    if not folder.exists(_MANIFEST):
        raise FileNotFoundError(f"{path} has no {_MANIFEST}: no filter was saved there, or not all of it")
    try:
        manifest = json.loads(folder.read(_MANIFEST))
        if manifest["format"] != "petal.spark" or manifest["version"] != 1:
            raise FileFormatError(f"{path} is of version {manifest['version']}: use a newer petal")
        plan, files = dict(manifest["plan"]), manifest["files"]
        parts, size = plan.pop("parts"), plan.pop("bytes_per_part")
        plan = Plan(Spec(**plan), parts, size)
        sums = {entry["part"]: entry["sha256"] for entry in files}
        names = {entry["file"]: entry["part"] for entry in files}
        whole = parts != 1 or list(sums) == [0]
        if not whole or any(not 0 <= part < parts for part in sums) or any("/" in name for name in names):
            raise FileFormatError(f"{path}: the manifest's parts are not those of its plan")
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise FileFormatError(f"{path}/{_MANIFEST} is damaged ({error}): save the filter again") from error
    if parts == 1:
        data = folder.read(files[0]["file"], files[0]["bytes"])
        _verify(data, sums[0], files[0]["file"])
        BloomFilter.from_bytes(data)
        return Seen(plan, data=data)
    for entry in files:
        status = folder.fs.getFileStatus(folder.at(entry["file"]))
        if status.getLen() != entry["bytes"]:
            raise FileFormatError(f"{path}/{entry['file']} has {status.getLen()} bytes, not those saved")

    def verified(batches):
        for batch in batches:
            for file, data in zip(batch.column("path"), batch.column("content")):
                name = file.as_py().rsplit("/", 1)[1]
                part, data = names[name], data.as_py()
                _verify(data, sums[part], name)
                yield _rows([part], [data])

    paths = [f"{path}/{name}" for name in names]
    read = spark.read.format("binaryFile").load(paths).select("path", "content")
    # Not kept: it is read where it was saved, and Spark would take what it keeps for what is there now.
    return Seen(plan, frame=read.mapInArrow(verified, _ROWS))


def _verify(data, sha256, name):
    if hashlib.sha256(data).hexdigest() != sha256:
        raise FileFormatError(f"damaged: the checksum of {name} does not match: save the filter again")
