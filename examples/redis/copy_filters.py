#!/usr/bin/env python3
"""Copies Bloom filters from a server with RedisBloom, or this module, to one with this module.

    examples/redis/copy_filters.py redis://old:6379 redis://new:6379 [--match 'PATTERN']

Each filter answers as it did. A key that the new server has is left as it is, and named; one
that was only half copied is copied again, so that a run which was interrupted is run once more.
A time to live goes along. docs/redis.md says how to change over while both are in use.
"""

import argparse
import sys

import redis

BLOOM_TYPES = (b"MBbloom--", b"petalblom")
HALF = "the filter is still being loaded"
CHANGED = "the filter changed since the dump began"
ATTEMPTS = 10


class Stopped(Exception):
    """A filter that cannot be copied, and why."""


def is_half(new, key):
    """Whether the new server has a part of the filter alone."""
    if new.type(key) != b"petalblom":
        return False
    try:
        new.execute_command("BF.CARD", key)
        return False
    except redis.ResponseError as error:
        return HALF in str(error)


def copy(old, new, key):
    """Copies a filter. One that grows meanwhile is begun anew."""
    for _ in range(ATTEMPTS):
        try:
            return copy_once(old, new, key)
        except redis.ResponseError as error:
            if is_half(new, key):
                new.delete(key)
            if CHANGED not in str(error):
                raise Stopped(str(error)) from None
    raise Stopped(f"it grew during each of {ATTEMPTS} attempts: copy it when less is added")


def copy_once(old, new, key):
    iterator, sent = 0, False
    while True:
        iterator, data = old.execute_command("BF.SCANDUMP", key, iterator)
        if iterator == 0:
            break
        new.execute_command("BF.LOADCHUNK", key, iterator, data)
        sent = True
    if sent and is_half(new, key):
        # Deleted meanwhile, or made anew.
        new.delete(key)
        raise Stopped("the dump ended early")
    left = old.pttl(key)
    if sent and left > 0:
        new.pexpire(key, left)
    return sent


def copy_all(old, new, match):
    copied, kept, failed = 0, [], []
    for key in old.scan_iter(match=match):
        if old.type(key) not in BLOOM_TYPES:
            continue
        if is_half(new, key):
            new.delete(key)
        if new.exists(key):
            kept.append(key)
            continue
        try:
            copied += copy(old, new, key)
        except Stopped as stopped:
            failed.append((key, stopped))
    print(f"{copied} filters copied")
    for key in kept:
        print(f"left as it is, since the new server has it: {shown(key)}")
    for key, why in failed:
        print(f"not copied: {shown(key)}: {why}", file=sys.stderr)
    return 2 if failed else 1 if kept else 0


def shown(key):
    return key.decode(errors="backslashreplace")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--match", default="*")
    options = parser.parse_args()
    try:
        # Where replies are raw: the client would read the chunks as text, or not at all.
        old, new = (redis.from_url(url) for url in (options.old, options.new))
        return copy_all(old, new, options.match)
    except (redis.RedisError, ValueError) as error:
        print(f"copy_filters.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
