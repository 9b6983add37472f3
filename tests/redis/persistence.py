"""What the server does with filters: files, copies, replicas."""

from context import OK, test
from server import Raw, wait_for


def fill(raw):
    """Filters of every kind, and what each answers."""
    assert raw("BF.RESERVE", "grown", "0.01", "100", "EXPANSION", "3") == OK
    raw("BF.MADD", "grown", *range(5000))
    assert raw("BF.RESERVE", "fixed", "0.001", "5000", "NONSCALING") == OK
    raw("BF.MADD", "fixed", *range(3000))
    assert raw("BF.RESERVE", "large", "0.01", "2000000", "NONSCALING") == OK
    raw("BF.MADD", "large", *range(5000))
    raw("BF.ADD", "auto", "x")
    raw("BF.INSERT", "scale", "VALIDATESCALETO", "100000", "ITEMS", *range(900))


KEYS = ["grown", "fixed", "large", "auto", "scale"]


def answers(raw, keys=KEYS):
    """All that can be seen of the filters from outside."""
    return {
        key: (
            raw("BF.MEXISTS", key, *range(10_000)),
            raw("BF.INFO", key),
            raw("DEBUG", "DIGEST-VALUE", key),
        )
        for key in keys
    }


@test
def a_restart_from_the_file_keeps_every_answer(context):
    server = context.server()
    raw = Raw(server)
    fill(raw)
    before = answers(raw)
    assert raw("SAVE") == OK
    server.restart()
    assert answers(Raw(server)) == before


@test
def a_rewritten_append_only_file_keeps_every_answer(context):
    for preamble in ("yes", "no"):
        server = context.server("appendonly yes", f"aof-use-rdb-preamble {preamble}")
        raw = Raw(server)
        fill(raw)
        before = answers(raw)
        rewrite(raw)
        raw("BF.ADD", "auto", "later")
        server.stop()
        server.start()
        raw = Raw(server)
        assert raw("BF.EXISTS", "auto", "later") == 1
        after = answers(raw)
        assert {k: v for k, v in after.items() if k != "auto"} == {
            k: v for k, v in before.items() if k != "auto"
        }


def rewrite(raw):
    raw("BGREWRITEAOF")
    wait_for(
        lambda: "aof_rewrite_in_progress:0" in (info := raw("INFO", "persistence").decode())
        and "aof_rewrite_scheduled:0" in info,
        "the rewritten file",
    )
    assert "aof_last_bgrewrite_status:ok" in raw("INFO", "persistence").decode()


@test
def nothing_acknowledged_is_lost_by_a_kill(context):
    server = context.server("appendonly yes", "appendfsync always")
    raw = Raw(server)
    fill(raw)
    acknowledged = []
    for i in range(2000):
        if raw("BF.ADD", "grown", f"key:{i}") == 1:
            acknowledged.append(f"key:{i}")
    before = answers(raw)
    server.kill()
    server.start()
    raw = Raw(server)
    assert all(raw("BF.MEXISTS", "grown", *acknowledged))
    assert answers(raw) == before


@test
def copies_dumps_and_restored_keys_are_equal(context):
    raw = Raw(context.server())
    fill(raw)
    before = answers(raw)
    for key in KEYS:
        assert raw("COPY", key, f"copy:{key}") == 1
        blob = raw("DUMP", key)
        assert raw("RESTORE", f"restored:{key}", "0", blob) == OK
        for other in (f"copy:{key}", f"restored:{key}"):
            assert answers(raw, [other])[other] == before[key], other
            # They grow on their own.
            raw("BF.ADD", other, "another")
        assert answers(raw, [key])[key] == before[key]


@test
def replicas_answer_the_same_bit_for_bit(context):
    master = context.server()
    raw = Raw(master)
    fill(raw)
    replica = context.server(f"replicaof 127.0.0.1 {master.port}", module=["bf-error-rate", "0.2"])
    follow = Raw(replica)
    wait_for(lambda: b"master_link_status:up" in follow("INFO", "replication"), "the link")
    # What comes after the full transfer comes as commands.
    raw("BF.ADD", "made", "x")
    raw("BF.INSERT", "own", "CAPACITY", "10", "ERROR", "0.003", "ITEMS", *range(500))
    raw("BF.INSERT", "full", "CAPACITY", "10", "NONSCALING", "ITEMS", *range(50))
    raw("BF.MADD", "grown", *range(4000, 9000))
    raw("BF.MADD", "fixed", *range(2000, 9000))
    raw("COPY", "grown", "copy")
    assert raw("WAIT", "1", "30000") == 1
    keys = KEYS + ["made", "own", "full", "copy"]
    assert answers(follow, keys) == answers(raw, keys)
    # A failover: the replica goes on alone.
    follow("REPLICAOF", "NO", "ONE")
    master.kill()
    raw_items = follow("BF.MADD", "own", *range(500, 600))
    assert sum(raw_items) > 90


@test
def what_changes_nothing_is_not_replicated(context):
    server = context.server()
    raw = Raw(server)
    raw("BF.MADD", "k", *range(90))
    replica = context.server(f"replicaof 127.0.0.1 {server.port}")
    wait_for(lambda: b"master_link_status:up" in Raw(replica)("INFO", "replication"), "the link")
    # The stream holds pings besides: the effect of adds is the difference of their bytes.
    calls = raw("INFO", "commandstats")
    before = offset(raw)
    for _ in range(100):
        raw.pipeline([("BF.ADD", "k", "5")] * 10)
    grown = offset(raw) - before
    assert grown <= 14 * 30, f"{grown} bytes: pings alone would be fewer"
    assert grown % 14 == 0, f"{grown} bytes are not pings of 14 bytes alone"
    assert calls is not None


def offset(raw):
    info = raw("INFO", "replication").decode()
    return int(info.split("master_repl_offset:")[1].split("\r")[0])


@test
def a_background_save_under_writes_is_whole(context):
    server = context.server()
    raw = Raw(server)
    raw("BF.RESERVE", "k", "0.01", "1000")
    raw("BF.MADD", "k", *range(50_000))
    raw("BGSAVE")
    for start in range(50_000, 80_000, 1000):
        raw("BF.MADD", "k", *range(start, start + 1000))
    wait_for(lambda: b"rdb_bgsave_in_progress:0" in raw("INFO", "persistence"), "the save")
    assert b"rdb_last_bgsave_status:ok" in raw("INFO", "persistence")
    server.kill()
    server.start()
    raw = Raw(server)
    for start in range(0, 50_000, 5000):
        assert all(raw("BF.MEXISTS", "k", *range(start, start + 5000)))


@test
def dumps_in_chunks_and_damage(context):
    raw = Raw(context.server())
    fill(raw)
    before = answers(raw)
    for key in KEYS:
        chunks = dump(raw, key)
        assert chunks[0][0] & ((1 << 41) - 1) == 1
        for iterator, data in chunks:
            assert raw("BF.LOADCHUNK", f"copy:{key}", iterator, data) == OK
        assert answers(raw, [f"copy:{key}"])[f"copy:{key}"] == before[key]
        last = chunks[-1]
        assert raw("BF.LOADCHUNK", f"copy:{key}", *last).startswith("ERR received bad data")
        # Half of it is no filter, and survives a restart of its own load.
        for iterator, data in chunks[:-1]:
            assert raw("BF.LOADCHUNK", "half", iterator, data) == OK
        assert raw("BF.EXISTS", "half", "x") == "ERR the filter is still being loaded"
        assert raw("COPY", "half", "half2") == 1
        assert raw("BF.LOADCHUNK", "half2", last[0], last[1][:-1]).startswith("ERR received bad")
        damaged = bytearray(last[1])
        damaged[len(damaged) // 2] ^= 1
        assert raw("BF.LOADCHUNK", "half2", last[0], bytes(damaged)).startswith("ERR received bad")
        assert raw("BF.LOADCHUNK", "half2", last[0] + 1, last[1]).startswith("ERR received bad")
        assert raw("BF.LOADCHUNK", "half2", *last) == OK
        assert answers(raw, ["half2"])["half2"] == before[key]
        raw("DEL", "half", "half2")
    assert raw("BF.SCANDUMP", "none", "0") == "ERR not found"
    assert raw("BF.SCANDUMP", "grown", "x") == "Second argument must be numeric"
    assert raw("BF.LOADCHUNK", "new", "x", "y") == "ERR Second argument must be numeric"
    assert raw("BF.LOADCHUNK", "new", "2", "y") == "ERR not found"
    assert raw("BF.LOADCHUNK", "new", "1", "y").startswith("ERR received bad data")
    assert raw("EXISTS", "new") == 0


def dump(raw, key, command="BF.SCANDUMP"):
    chunks, iterator = [], 0
    while True:
        iterator, data = raw(command, key, iterator)
        if iterator == 0:
            assert data == (None if command.startswith("CF.") else b"")
            return chunks
        chunks.append((iterator, data))


@test
def a_replica_that_joins_under_writes_gets_all_of_them(context):
    master = context.server()
    raw = Raw(master)
    raw("BF.RESERVE", "k", "0.01", "100000")
    raw("BF.MADD", "k", *range(50_000))
    raw("CF.RESERVE", "c", "1000", "EXPANSION", "2")
    replica = context.server(f"replicaof 127.0.0.1 {master.port}")
    for start in range(50_000, 150_000, 500):
        raw("BF.MADD", "k", *range(start, start + 500))
        raw("CF.INSERT", "c", "ITEMS", *range(start, start + 50))
    follow = Raw(replica)
    wait_for(lambda: raw("WAIT", "1", "1000") == 1, "the replica")
    for key in ("k", "c"):
        assert follow("DEBUG", "DIGEST-VALUE", key) == raw("DEBUG", "DIGEST-VALUE", key)
    assert follow("BF.INFO", "k") == raw("BF.INFO", "k")


@test
def keys_migrate_to_another_server(context):
    one, other = context.server(), context.server()
    raw, there = Raw(one), Raw(other)
    fill(raw)
    raw("CF.INSERT", "c", "ITEMS", *range(500))
    before = answers(raw)
    assert raw("MIGRATE", "127.0.0.1", other.port, "", "0", "5000", "KEYS", *KEYS, "c") == OK
    assert raw("EXISTS", *KEYS, "c") == 0
    assert answers(there) == before
    assert all(there("CF.MEXISTS", "c", *range(500)))


@test
def settings_do_not_change_what_was_accepted(context):
    server = context.server("appendonly yes", "appendfsync always")
    raw = Raw(server)
    # Made by settings that a written-out creation would refuse.
    raw("CONFIG", "SET", "petal.bf-error-rate", "0.9")
    raw("BF.MADD", "loose", *range(4))
    raw("CONFIG", "SET", "petal.bf-error-rate", "0.01")
    raw("CF.INSERT", "buckets", "CAPACITY", "10", "BUCKETSIZE", "255", "ITEMS", "a", "b")
    # Growth that the later setting would not allow.
    raw("CF.RESERVE", "steps", "4")
    added = raw("CF.INSERT", "steps", "ITEMS", *range(3000))
    assert added == [1] * 3000
    keys = ("loose", "buckets", "steps")
    digests = [raw("DEBUG", "DIGEST-VALUE", key) for key in keys]
    server.kill()
    server.module = ("cf-max-expansions", "3")
    server.start()
    raw = Raw(server)
    assert [raw("DEBUG", "DIGEST-VALUE", key) for key in keys] == digests
    assert raw("CF.MEXISTS", "steps", *range(3000)) == [1] * 3000


@test
def the_seed_of_an_insertion_is_taken(context):
    raw = Raw(context.server())
    for key in ("one", "two"):
        raw("CF.INSERT", key, "CAPACITY", "100", "SEED", "5", "ITEMS", "a")
    one, two = (raw("DEBUG", "DIGEST-VALUE", key) for key in ("one", "two"))
    assert one == two
