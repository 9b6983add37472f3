#!/usr/bin/env python3
"""Is this nickname taken? Answers "free" without asking the database.

    examples/redis/nicknames.py [redis://127.0.0.1:6379]

"Free" is certain: the filter has no false negatives. "Perhaps taken" is wrong for one free
name in a thousand, and only then the database is asked.
"""

import sys

import redis

TAKEN = "nicknames"


def main(url="redis://127.0.0.1:6379"):
    client = redis.from_url(url)
    client.delete(TAKEN)
    client.bf().create(TAKEN, 0.001, 1_000_000)

    database = {f"user{number}" for number in range(5000)}
    names = sorted(database)
    for start in range(0, len(names), 1000):
        client.bf().madd(TAKEN, *names[start:start + 1000])

    for name in ("user42", "alice", "bob", "user4999"):
        if not client.bf().exists(TAKEN, name):
            print(f"{name}: free")
        elif name in database:
            print(f"{name}: taken")
        else:
            print(f"{name}: free, as the database says")

    # Somebody registers: first the filter, then the database, so that no one is told "free" of
    # a name that is there.
    client.bf().add(TAKEN, "alice")
    database.add("alice")
    print("alice:", "perhaps taken" if client.bf().exists(TAKEN, "alice") else "free")

    asked = sum(client.bf().mexists(TAKEN, *(f"new{number}" for number in range(10_000))))
    print(f"questions that went to the database for 10000 free names: {asked}")


if __name__ == "__main__":
    main(*sys.argv[1:])
