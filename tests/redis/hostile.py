"""Damaged and invented data, for every loader: errors, and never a dead server."""

import random

from context import OK, Error, test
from persistence import dump
from server import Raw


def filters(raw):
    raw("BF.RESERVE", "bf", "0.01", "50")
    raw("BF.MADD", "bf", *range(300))
    raw("BF.RESERVE", "window", "0.01", "50", "WINDOW", "1h")
    raw("BF.MADD", "window", *range(30))
    raw("CF.RESERVE", "cf", "50", "EXPANSION", "2")
    raw("CF.INSERT", "cf", "ITEMS", *range(300))
    raw("CF.INSERT", "one", "ITEMS", *range(300))


@test
def any_bytes_are_survived(context):
    server = context.server()
    raw = Raw(server)
    filters(raw)
    noise = random.Random(7)
    for key, family in (("bf", "BF"), ("window", "BF"), ("cf", "CF")):
        chunks = dump(raw, key, f"{family}.SCANDUMP")
        one = "bf" if family == "BF" else "one"
        file = b"".join(piece for _, piece in dump(raw, one, f"{family}.EXPORT"))
        blob = raw("DUMP", key)
        for _ in range(400):
            chunk = noise.randrange(len(chunks))
            iterator, data = chunks[chunk]
            raw("DEL", "t")
            for earlier in chunks[:chunk]:
                assert raw(f"{family}.LOADCHUNK", "t", *earlier) == OK
            answer = raw(f"{family}.LOADCHUNK", "t", iterator, damaged(noise, data))
            assert isinstance(answer, Error), answer
            # Whatever was refused, the right chunks still make the filter.
            for later in chunks[chunk:]:
                assert raw(f"{family}.LOADCHUNK", "t", *later) == OK
            assert raw("DEBUG", "DIGEST-VALUE", "t") == raw("DEBUG", "DIGEST-VALUE", key)
        for _ in range(400):
            raw("DEL", "t")
            assert isinstance(raw(f"{family}.LOAD", "t", damaged(noise, file)), Error)
            assert isinstance(raw("RESTORE", "t", "0", damaged(noise, blob)), Error)
            # With a right checksum the module itself is asked.
            inner = damaged(noise, blob[:-8])
            answer = raw("RESTORE", "t", "0", inner + crc64(inner).to_bytes(8, "little"))
            assert answer == OK or isinstance(answer, Error)
            raw("BF.EXISTS" if family == "BF" else "CF.EXISTS", "t", "x")
        for size in (0, 1, 7, 8, 9, 20, 38, 73, 192, 4096):
            for command in ("LOADCHUNK t 1", "LOAD t"):
                words = f"{family}.{command}".split()
                assert isinstance(raw(*words, noise.randbytes(size)), Error)
                assert isinstance(raw(*words, bytes(size)), Error)
    assert raw("PING") == "PONG"
    assert "panicked" not in server.log()


def damaged(noise, data):
    """The same bytes, but for a flipped bit, an end that is missing or more, or a part
    that was replaced."""
    how = noise.randrange(4)
    while True:
        if how == 0 and data:
            at = noise.randrange(len(data))
            other = data[:at] + bytes([data[at] ^ 1 << noise.randrange(8)]) + data[at + 1:]
        elif how == 1:
            other = data[:noise.randrange(len(data) + 1)]
        elif how == 2:
            other = data + noise.randbytes(noise.randrange(1, 30))
        else:
            at = noise.randrange(len(data) + 1)
            other = data[:at] + noise.randbytes(noise.randrange(1, 9)) + data[at + 8:]
        if other != data:
            return other


def crc64(data):
    """The checksum of a dumped key (CRC-64 of Jones, reflected)."""
    crc = 0
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc


def table():
    entries = []
    for entry in range(256):
        for _ in range(8):
            entry = entry >> 1 ^ (0x95AC9329AC4BC9B5 if entry & 1 else 0)
        entries.append(entry)
    return entries


TABLE = table()


@test
def huge_claims_are_refused_before_memory_is_taken(context):
    server = context.server(module=["filter-max-bytes", "100000"])
    raw = Raw(server)
    big = Raw(context.server())
    big("BF.RESERVE", "k", "0.01", "1000000", "NONSCALING")
    header = big("BF.SCANDUMP", "k", "0")[1]
    file = big("BF.EXPORT", "k", "0")[1]
    for data in (header, file, redisbloom_header(1 << 40), redisbloom_header(200_000)):
        assert raw("BF.LOADCHUNK", "k", "1", data).startswith("ERR received bad data")
    assert isinstance(raw("RESTORE", "k", "0", big("DUMP", "k")), Error)
    assert raw("EXISTS", "k") == 0


def redisbloom_header(size):
    """Of one link of so many bytes."""
    import struct
    return struct.pack("<QIII", 0, 1, 5, 2) + struct.pack(
        "<QQQddIQB", size, size * 8, 0, 0.005, 11.02, 8, 1000, 0)
