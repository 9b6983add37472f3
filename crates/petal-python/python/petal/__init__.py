"""petal: *have I seen this key?*, for sets too large to keep.

    seen = petal.BloomFilter(1_000_000, 0.001)   # keys, error
    seen.add("https://example.org/")             # True: certainly new
    "https://example.org/" in seen               # True

A key that was added is always found; another one is found with an expected probability of
at most the error. A key is a str (its UTF-8), bytes, or an int from -2**63 to 2**63 - 1;
never Python's salted hash, so that files mean the same in every process and language.
"""

from petal._petal import (
    BloomFilter,
    BooleanArray,
    ConcurrentBloomFilter,
    CountingBloomFilter,
    FileFormatError,
    Filter,
    GrowableFilter,
    MismatchError,
    PetalError,
    StaticFilter,
    UnsupportedError,
    WindowFilter,
)

__all__ = [
    "BloomFilter",
    "BooleanArray",
    "ConcurrentBloomFilter",
    "CountingBloomFilter",
    "FileFormatError",
    "Filter",
    "GrowableFilter",
    "MismatchError",
    "PetalError",
    "StaticFilter",
    "UnsupportedError",
    "WindowFilter",
    "from_bytes",
    "open",
]

#: Opens a file as the filter that it holds: see `Filter.open`.
open = Filter.open

#: Reads the bytes of a file as the filter that they are: see `Filter.from_bytes`.
from_bytes = Filter.from_bytes
