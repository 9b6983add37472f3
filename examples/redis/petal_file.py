#!/usr/bin/env python3
"""Takes a filter out of the server as a petal file, or puts one in.

    examples/redis/petal_file.py export KEY FILE [redis://127.0.0.1:6379]
    examples/redis/petal_file.py import FILE KEY [redis://127.0.0.1:6379]

`petal check FILE lines.txt` asks what was exported, `petal build lines.txt -o FILE -n 1M` makes
what can be imported (--kind deletable for CF keys). Neither replaces a file or a key.
"""

import os
import sys

import redis

MAGIC = b"\x89petal\r\n"
PIECE = 1 << 20
DELETABLE = 7


def export(client, key, path):
    family = "CF" if client.type(key) == b"petalcuck" else "BF"
    with open(path, "xb") as out:
        try:
            iterator = 0
            while True:
                iterator, piece = client.execute_command(f"{family}.EXPORT", key, iterator)
                if iterator == 0:
                    return
                out.write(piece)
        except BaseException:
            os.remove(path)
            raise


def load(client, path, key):
    with open(path, "rb") as file:
        piece = file.read(PIECE)
        if not piece.startswith(MAGIC):
            raise SystemExit(f"petal_file.py: {path} is no petal file")
        if client.exists(key):
            raise SystemExit(f"petal_file.py: the server has {key} already: take another name")
        # The kind of a filter is in the header of its file.
        family = "CF" if int.from_bytes(piece[10:12], "little") == DELETABLE else "BF"
        sent = 0
        try:
            while piece:
                iterator = 1 if sent == 0 else sent + len(piece) + 1
                client.execute_command(f"{family}.LOADCHUNK", key, iterator, piece)
                sent += len(piece)
                piece = file.read(PIECE)
            # Refused if a part is missing.
            client.execute_command(f"{family}.INFO", key)
        except redis.ResponseError:
            client.delete(key)
            raise


def main(verb, first, second, url="redis://127.0.0.1:6379"):
    try:
        client = redis.from_url(url)
        if verb == "export":
            export(client, first, second)
        elif verb == "import":
            load(client, first, second)
        else:
            raise SystemExit(__doc__)
    except (OSError, ValueError, redis.RedisError) as error:
        raise SystemExit(f"petal_file.py: {error}") from None


if __name__ == "__main__":
    if not 4 <= len(sys.argv) <= 5:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
