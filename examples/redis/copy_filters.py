#!/usr/bin/env python3
"""Copies Bloom filters from a server with RedisBloom, or this module, to one with this module.

    examples/redis/copy_filters.py redis://old:6379 redis://new:6379 [--match 'PATTERN']

Each filter answers as it did. A key that the new server has is left as it is, and named. A time
to live goes along. docs/redis.md says how to change over while both are in use.
"""

import argparse

import redis

BLOOM_TYPES = (b"MBbloom--", b"petalblom")


def copy(old, new, key):
    iterator, sent = 0, False
    while True:
        iterator, data = old.execute_command("BF.SCANDUMP", key, iterator)
        if iterator == 0:
            break
        new.execute_command("BF.LOADCHUNK", key, iterator, data)
        sent = True
    left = old.pttl(key)
    if sent and left > 0:
        new.pexpire(key, left)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--match", default="*")
    options = parser.parse_args()
    # Where replies are raw: the client would read the chunks as text, or not at all.
    old, new = (redis.from_url(url) for url in (options.old, options.new))
    copied, kept = 0, []
    for key in old.scan_iter(match=options.match):
        if old.type(key) not in BLOOM_TYPES:
            continue
        if new.exists(key):
            kept.append(key)
            continue
        copy(old, new, key)
        copied += 1
    print(f"{copied} filters copied")
    for key in kept:
        print(f"left as it is, since the new server has it: {key.decode(errors='replace')}")
    return 1 if kept else 0


if __name__ == "__main__":
    raise SystemExit(main())
