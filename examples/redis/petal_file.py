#!/usr/bin/env python3
"""Takes a filter out of the server as a petal file, or puts one in.

    examples/redis/petal_file.py export KEY FILE [redis://127.0.0.1:6379]
    examples/redis/petal_file.py import FILE KEY [redis://127.0.0.1:6379]

`petal check FILE lines.txt` asks what was exported, `petal build lines.txt -o FILE -n 1M` makes
what can be imported (--kind deletable for CF keys).
"""

import sys

import redis

PIECE = 1 << 20
DELETABLE = 7


def family_of(client, key):
    return "CF" if client.type(key) == b"petalcuck" else "BF"


def export(client, key, path):
    command = f"{family_of(client, key)}.EXPORT"
    with open(path, "xb") as out:
        iterator = 0
        while True:
            iterator, piece = client.execute_command(command, key, iterator)
            if iterator == 0:
                return
            out.write(piece)


def load(client, path, key):
    with open(path, "rb") as file:
        sent = 0
        while piece := file.read(PIECE):
            if sent == 0:
                # The kind of a filter is in the header of its file.
                kind = int.from_bytes(piece[10:12], "little")
                command = "CF.LOADCHUNK" if kind == DELETABLE else "BF.LOADCHUNK"
            iterator = 1 if sent == 0 else sent + len(piece) + 1
            client.execute_command(command, key, iterator, piece)
            sent += len(piece)


def main(verb, first, second, url="redis://127.0.0.1:6379"):
    client = redis.from_url(url)
    if verb == "export":
        export(client, first, second)
    elif verb == "import":
        load(client, first, second)
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    if not 4 <= len(sys.argv) <= 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
