"""Filters of RedisBloom taken over: recorded dumps, asked as their maker answered."""

import glob
import os
import struct

from context import OK, Error, test
from persistence import dump
from server import Raw

FOLDER = os.path.join(os.path.dirname(__file__),
                      "../../crates/petal-interop/tests/vectors/foreign/redisbloom")


def lines(name):
    with open(os.path.join(FOLDER, name)) as file:
        return file.read().splitlines()


def chunks_of(path):
    """The pairs of iterator and data that the file has one after another."""
    with open(path, "rb") as file:
        data = file.read()
    chunks, at = [], 0
    while True:
        iterator, size = struct.unpack_from("<qQ", data, at)
        at += 16
        if iterator == 0:
            return chunks
        chunks.append((iterator, data[at:at + size]))
        at += size


@test
def dumps_of_redisbloom_answer_as_their_maker(context):
    master = context.server("appendonly yes", "aof-use-rdb-preamble no")
    raw = Raw(master)
    members, others = lines("members.txt"), lines("nonmembers.txt")
    files = sorted(glob.glob(os.path.join(FOLDER, "*.scandump")))
    assert len(files) >= 5
    expected = {}
    for path in files:
        key = os.path.basename(path).removesuffix(".scandump")
        chunks = chunks_of(path)
        for number, (iterator, data) in enumerate(chunks):
            if number == len(chunks) - 1 and number > 0:
                assert isinstance(raw("BF.EXISTS", key, "x"), Error)
                assert raw("BF.LOADCHUNK", key, iterator + 1, data).startswith("ERR received bad")
            assert raw("BF.LOADCHUNK", key, iterator, data) == OK
        assert all(raw("BF.MEXISTS", key, *members)), key
        positives = set(lines(f"{key}.positives.txt"))
        found = {item for item, there in zip(others, raw("BF.MEXISTS", key, *others)) if there}
        assert found == positives, key
        # What goes out is what came in, in pieces of another length.
        again = dump(raw, key)
        assert again[0] == chunks[0]
        assert b"".join(d for _, d in again[1:]) == b"".join(d for _, d in chunks[1:])
        assert raw("COPY", key, f"copy:{key}") == 1
        # It keeps growing, unless its maker's would not.
        card = raw("BF.CARD", key)
        got = raw("BF.MADD", key, *(f"new:{i}" for i in range(3000)))
        if key.startswith("nonscaling"):
            assert got[-1] == "ERR non scaling filter is full"
        else:
            assert got.count(1) > 2500 and len(got) == 3000, key
            assert raw("BF.CARD", key) == card + got.count(1)
        assert dump(raw, key)[0][0] == 1, "RedisBloom takes no other iterator for the first"
        accepted = [f"new:{i}" for i, one in enumerate(got) if one in (0, 1)]
        assert all(raw("BF.MEXISTS", key, *accepted, *members))
        expected[key] = raw("BF.MEXISTS", key, *range(5000)), raw("BF.INFO", key)
    follow = Raw(context.server(f"replicaof 127.0.0.1 {master.port}"))
    assert raw("WAIT", "1", "30000") == 1
    from persistence import rewrite
    rewrite(raw)
    master.kill()
    master.start()
    for one in (Raw(master), follow):
        for key, answers in expected.items():
            assert (one("BF.MEXISTS", key, *range(5000)), one("BF.INFO", key)) == answers


@test
def half_a_dump_of_redisbloom_survives_restarts(context):
    server = context.server("appendonly yes", "aof-use-rdb-preamble no")
    raw = Raw(server)
    path = os.path.join(FOLDER, "reserve_n50_p0.05_growth2_chunk32.scandump")
    chunks = chunks_of(path)
    half = len(chunks) // 2
    for iterator, data in chunks[:half]:
        assert raw("BF.LOADCHUNK", "k", iterator, data) == OK
    from persistence import rewrite
    rewrite(raw)
    server.kill()
    server.start()
    raw = Raw(server)
    assert raw("BF.EXISTS", "k", "x") == "ERR the filter is still being loaded"
    for iterator, data in chunks[half:]:
        assert raw("BF.LOADCHUNK", "k", iterator, data) == OK
    assert all(raw("BF.MEXISTS", "k", *lines("members.txt")))
