"""The steps that every engine of many processes is made of: partial, merge, probe.

    partial(batches, spec, part)  -> bytes   one process, its share of the keys
    merge(parts)                  -> bytes   of several of them, in any order and grouping
    probe(data, batch)            -> answers

What travels is the bytes of a petal file, which verify themselves. All of it is pure: the
same keys give the same bytes, so that a step may be repeated or run twice at the same time
(a retry, a speculative copy), and merging a result with itself changes nothing. Nothing here
knows an engine; `petal.spark` is one user, `docs/python.md` has recipes for others.
"""

from dataclasses import dataclass
from functools import lru_cache

from petal._petal import BloomFilter, MismatchError
from petal._petal import partition as _partition

__all__ = ["Plan", "Spec", "merge", "part_of", "partial", "probe"]


@dataclass(frozen=True)
class Spec:
    """What a filter is to keep: `items` distinct keys with an error of at most `fpr`.

    `keys` is "bytes" (text and binary columns), the default, or "int"; `petal.spark` finds it
    out from the column. All processes need the same spec.
    """

    items: int
    fpr: float
    keys: str | None = None
    seed: int = 0

    def filter(self):
        """An empty filter of it."""
        return BloomFilter(self.items, self.fpr, keys=self.keys, seed=self.seed)

    def plan(self, max_bytes=64 << 20):
        """How many filters of at most `max_bytes` bytes each it takes.

        More than one share the keys by a hash of them, so that a key is in one filter only
        and the error stays what it is. A part is sized for a little more than its share, since
        shares scatter (by six times their standard deviation).
        """
        if self.items < 1 or max_bytes < 1:
            raise ValueError(
                f"items={self.items}, max_bytes={max_bytes} is not possible: expected at least 1 of both"
            )
        whole = _bytes_for(self.items, self.fpr, self.keys)
        parts = 1
        while (size := _bytes_for(_share(self.items, parts), self.fpr, self.keys)) > max_bytes:
            if parts > self.items:
                raise ValueError(f"max_bytes={max_bytes} is less than the smallest filter: allow more")
            # The next guess is never more than enough, so that the first that fits is the least.
            parts = max(parts + 1, whole // max_bytes)
        return Plan(self, parts, size)


@dataclass(frozen=True)
class Plan:
    """How many filters a spec takes, and the bytes of the bits of each."""

    spec: Spec
    parts: int
    bytes_per_part: int

    @property
    def part_spec(self):
        """The spec of one part."""
        spec = self.spec
        return Spec(_share(spec.items, self.parts), spec.fpr, spec.keys, spec.seed)


def _share(items, parts):
    if parts == 1:
        return items
    mean = items / parts
    return min(items, int(mean + 6 * mean**0.5) + 1)


@lru_cache(maxsize=256)
def _bytes_for(items, fpr, keys):
    # The bits of a new filter are memory that nobody has touched: this costs no more than
    # arithmetic, but for sizes that memory cannot hold, where bits a key are those of a smaller one.
    try:
        return BloomFilter(items, fpr, keys=keys).nbytes
    except MemoryError:
        return 2 * _bytes_for(-(-items // 2), fpr, keys)


def part_of(batch, parts):
    """The part of each key of a column, as an Arrow array of int32; null for a null."""
    import pyarrow
    import pyarrow.compute

    places = pyarrow.Array.from_buffers(
        pyarrow.int32(), len(batch), [None, pyarrow.py_buffer(_partition(batch, parts))]
    )
    if batch.null_count == 0:
        return places
    missing = pyarrow.scalar(-1, pyarrow.int32())
    return pyarrow.compute.if_else(pyarrow.compute.equal(places, missing), None, places)


def partial(batches, spec):
    """The bytes of the filter of all keys of an iterable of columns."""
    seen = spec.filter()
    for batch in batches:
        seen.add_many(batch)
    return seen.to_bytes()


def merge(parts):
    """The bytes of the filter of the keys of all of several filters of one spec."""
    merged = None
    for data in parts:
        seen = BloomFilter.from_bytes(data)
        if merged is None:
            merged = seen
        else:
            merged |= seen
    if merged is None:
        raise MismatchError("there is nothing to merge: give at least one filter")
    return merged.to_bytes()


@lru_cache(maxsize=2)
def _opened(data):
    return BloomFilter.from_bytes(data)


def probe(data, batch):
    """Whether each key of a column may be in the filter of these bytes.

    The filter is kept, so that the next batch with the same bytes does not read them again.
    """
    return _opened(data).contains_many(batch)
