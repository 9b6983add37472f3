#!/usr/bin/env python3
"""Makes the plots of docs/python-guide/README.md, beside it.

    docs/python-guide/plots.py [--keys 100000] [--asked 400000]

Needs petal-filters, numpy and matplotlib. Errors are measured: the share of keys that were never added
and are found. Times are CPU time of this process, the least of three runs.
"""

import argparse
import os
import time

import matplotlib
import numpy as np
import petal

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "petal"  # the same names inside of the file in every run
from matplotlib import pyplot as plt  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ERROR = 0.01


def save(figure, name):
    figure.tight_layout()
    figure.savefig(os.path.join(HERE, f"{name}.svg"), metadata={"Date": None})
    plt.close(figure)


def share_found(filter, asked):
    """The share of integers from 2^40 on that are found; none was added."""
    absent = np.arange(2**40, 2**40 + asked, dtype=np.int64)
    return filter.contains_many(absent).mean()


def error_against_load(items, asked):
    kinds = {
        "BloomFilter": lambda: petal.BloomFilter(items, ERROR, keys="int"),
        "CountingBloomFilter": lambda: petal.CountingBloomFilter(items, ERROR, keys="int"),
        "GrowableFilter (first: a tenth)": lambda: petal.GrowableFilter(items // 10, ERROR, keys="int"),
        "WindowFilter": lambda: petal.WindowFilter(items, ERROR, keys="int"),
    }
    loads = np.arange(0.1, 2.01, 0.1)
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for name, make in kinds.items():
        filter, errors, done = make(), [], 0
        for load in loads:
            until = int(load * items)
            filter.add_many(np.arange(done, until, dtype=np.int64))
            done = until
            errors.append(share_found(filter, asked))
        axes.plot(loads, errors, marker=".", label=name)
    static = [
        share_found(petal.StaticFilter.from_keys(np.arange(int(load * items)), ERROR), asked) for load in loads
    ]
    axes.plot(loads, static, marker=".", label="StaticFilter (built anew)")
    axes.axhline(ERROR, color="gray", linestyle="--", linewidth=1)
    axes.axvline(1, color="gray", linestyle=":", linewidth=1)
    axes.set(yscale="log", ylim=(1e-5, 0.3), xlabel="keys added / keys planned for", ylabel="measured error")
    axes.legend(fontsize=8)
    save(figure, "error-against-load")


def size_against_error(items):
    errors = [10.0**-e for e in np.arange(0.5, 6.6, 0.25)]
    keys = np.arange(items, dtype=np.int64)
    kinds = {
        "BloomFilter": lambda p: petal.BloomFilter(items, p, keys="int"),
        "StaticFilter": lambda p: petal.StaticFilter.from_keys(keys, p),
        "CountingBloomFilter": lambda p: petal.CountingBloomFilter(items, p, keys="int"),
        "WindowFilter": lambda p: petal.WindowFilter(items, p, keys="int"),
    }
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for name, make in kinds.items():
        axes.plot(errors, [make(p).nbytes * 8 / items for p in errors], marker=".", label=name)
    axes.plot(errors, [-np.log2(p) for p in errors], color="gray", linestyle="--", label="least possible, fixed keys")
    axes.set(xscale="log", yscale="log", xlabel="error", ylabel="bits a key")
    axes.invert_xaxis()
    axes.legend(fontsize=8)
    save(figure, "size-against-error")


def time_against_size(largest):
    sizes = [n for n in (10**3, 10**4, 10**5, 10**6, 10**7) if n <= largest]
    makers = {
        "BloomFilter": lambda n: petal.BloomFilter(n, ERROR, keys="int"),
        "ConcurrentBloomFilter": lambda n: petal.ConcurrentBloomFilter(n, ERROR, keys="int"),
        "CountingBloomFilter": lambda n: petal.CountingBloomFilter(n, ERROR, keys="int"),
    }
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True)
    for name, make in makers.items():
        adding, asking = [], []
        for n in sizes:
            keys = np.random.default_rng(1).integers(-(2**62), 2**62, n)
            best_add = best_ask = float("inf")
            for _ in range(3):
                filter = make(n)
                start = time.process_time()
                filter.add_many(keys)
                best_add = min(best_add, time.process_time() - start)
                start = time.process_time()
                filter.contains_many(keys)
                best_ask = min(best_ask, time.process_time() - start)
            adding.append(best_add / n * 1e9)
            asking.append(best_ask / n * 1e9)
        axes[0].plot(sizes, adding, marker="o", label=name)
        axes[1].plot(sizes, asking, marker="o", label=name)
    axes[0].set(xscale="log", yscale="log", xlabel="keys", ylabel="ns of CPU a key", title="add_many")
    axes[1].set(xscale="log", xlabel="keys", title="contains_many")
    axes[0].legend(fontsize=8)
    save(figure, "time-against-size")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--asked", type=int, default=400_000)
    args = parser.parse_args()
    error_against_load(args.keys, args.asked)
    size_against_error(args.keys)
    time_against_size(10 * args.keys)


if __name__ == "__main__":
    main()
