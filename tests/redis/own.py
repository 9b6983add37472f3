"""The commands that only this module has."""

import time

from context import OK, Simple, replies, test
from commands_bf import WRONG_TYPE, E
from persistence import dump
from server import Raw, wait_for


@test
def an_absent_filter_is_not_an_absent_item(context):
    replies(context, [
        ("BF.TEST none a", None),
        ("BF.MTEST none a b", None),
        ("BF.ADD k a", 1, True),
        ("BF.TEST k a", 1, True),
        ("BF.TEST k b", 0, False),
        ("BF.MTEST k a b", [1, 0], [True, False]),
        ("SET s x", OK),
        ("BF.TEST s a", WRONG_TYPE),
    ])


@test
def statistics(context):
    raw = Raw(context.server(), 3)
    raw("BF.RESERVE", "k", "0.01", "1000", "NONSCALING")
    raw("BF.MADD", "k", *range(1000))
    stats = raw("BF.STATS", "k")
    assert stats[Simple("Kind")] == "bloom" and stats[Simple("Error rate")] == 0.01
    assert 0.002 < stats[Simple("Error rate now")] < 0.02
    assert 0.3 < stats[Simple("Fill")] < 0.7
    assert stats[Simple("Size")] == raw("BF.INFO", "k")[Simple("Size")]
    assert stats[Simple("Keyed hashing")] is False
    assert raw("BF.STATS", "none") == "ERR not found"
    raw("CF.ADD", "c", "x")
    assert raw("CF.STATS", "c")[Simple("Error rate")] == 0.001


@test
def windows_of_keys_forget(context):
    replies(context, [
        ("BF.RESERVE k 0.01 100 WINDOW 5", E("ERR bad window")),
        ("BF.RESERVE k 0.01 100 WINDOW 0s", E("ERR bad window")),
        ("BF.RESERVE k 0.01 100 WINDOW KEYS VALIDATESCALETO 1000",
         E("ERR cannot use WINDOW and VALIDATESCALETO options together")),
        ("BF.RESERVE k 0.01 100 WINDOW KEYS", OK),
        ("BF.INFO k EXPANSION", [None], {Simple("Expansion rate"): None}),
        ("BF.ADDAT none 5 a", E("ERR not found")),
    ])
    raw = Raw(context.server())
    assert raw("BF.RESERVE", "k", "0.001", "1000", "WINDOW", "KEYS") == OK
    for item in range(5000):
        raw("BF.ADD", "k", item)
    assert all(raw("BF.MEXISTS", "k", *range(4000, 5000)))
    old = sum(raw("BF.MEXISTS", "k", *range(0, 3500)))
    assert old <= 3.5 + 5 * 3.5 ** 0.5, old


@test
def windows_of_time_forget_on_replicas_and_after_a_restart(context):
    master = context.server("appendonly yes", "aof-use-rdb-preamble no")
    raw = Raw(master)
    follow = Raw(context.server(f"replicaof 127.0.0.1 {master.port}"))
    assert raw("BF.RESERVE", "k", "0.0001", "1000", "WINDOW", "3s") == OK
    began = time.monotonic()
    raw("BF.MADD", "k", *range(100))
    assert raw("BF.INSERT", "made", "WINDOW", "1h", "ITEMS", "a", "b") == [1, 1]
    assert all(raw("BF.MEXISTS", "k", *range(100))) or time.monotonic() - began > 2.5
    raw("WAIT", "1", "30000")
    for key in ("k", "made"):
        assert follow("DEBUG", "DIGEST-VALUE", key) == raw("DEBUG", "DIGEST-VALUE", key)
    master.kill()
    master.start()
    raw = Raw(master)
    assert raw("BF.EXISTS", "made", "a") == 1
    wait_for(lambda: sum(raw("BF.MEXISTS", "k", *range(100))) == 0, "the window to pass", 20)
    # The replica has a clock of its own.
    wait_for(lambda: sum(follow("BF.MEXISTS", "k", *range(100))) == 0, "the same there", 20)


@test
def petal_files_go_out_and_in(context):
    raw = Raw(context.server())
    raw("BF.RESERVE", "k", "0.01", "100")
    raw("BF.MADD", "k", *range(3000))
    raw("BF.RESERVE", "large", "0.01", "3000000", "NONSCALING")
    raw("BF.MADD", "large", *range(3000))
    for key in ("k", "large"):
        data = b"".join(piece for _, piece in dump(raw, key, "BF.EXPORT"))
        assert data.startswith(b"\x89petal\r\n")
        assert raw("BF.LOAD", f"whole:{key}", data) == OK
        for size in (100_000, 1 << 20):
            place = 0
            for start in range(0, len(data), size):
                piece = data[start:start + size]
                place = 1 if start == 0 else start + len(piece) + 1
                assert raw("BF.LOADCHUNK", f"pieces:{key}", place, piece) == OK
            for other in (f"whole:{key}", f"pieces:{key}"):
                asked = raw("BF.MEXISTS", key, *range(10_000))
                assert raw("BF.MEXISTS", other, *range(10_000)) == asked
                assert raw("BF.CARD", other) == raw("BF.CARD", key)
            raw("DEL", f"pieces:{key}")
        assert raw("BF.LOAD", key, data) == "BUSYKEY Target key name already exists."
        assert raw("BF.LOAD", "new", data[:-1]).startswith("ERR bloom object decoding failed")
        damaged = bytearray(data)
        damaged[len(data) * 3 // 4] ^= 8
        assert raw("BF.LOAD", "new", bytes(damaged)).startswith("ERR bloom object decoding failed")
        assert raw("BF.LOADCHUNK", "new", "1", bytes(damaged[:5000])) == OK
        last = raw("BF.LOADCHUNK", "new", len(damaged) + 1, bytes(damaged[5000:]))
        assert last.startswith("ERR received bad data"), last
        assert raw("EXISTS", "new") == 0
    raw("CF.INSERT", "c", "ITEMS", *range(500))
    data = b"".join(piece for _, piece in dump(raw, "c", "CF.EXPORT"))
    assert raw("CF.LOAD", "c2", data) == OK
    assert raw("CF.MEXISTS", "c2", *range(500)) == [1] * 500
    assert raw("BF.LOAD", "new", data).startswith("ERR bloom object decoding failed")


@test
def settings(context):
    server = context.server(module=["ERROR_RATE", "0.001", "INITIAL_SIZE", "50"])
    raw = Raw(server)
    raw("BF.ADD", "k", "x")
    assert raw("BF.INFO", "k", "CAPACITY") == [50]
    assert raw("BF.INFO", "k", "ERROR") == [b"0.001"]
    names = raw("CONFIG", "GET", "*bf-initial-size")
    name = names[0].decode()
    # Names without the module's are tried nowhere where they are refused with a complaint.
    assert name == "petal.bf-initial-size" and names[1] == b"50", names
    assert "Invalid flag" not in server.log()
    prefix = name[: -len("bf-initial-size")]
    assert raw("CONFIG", "SET", f"{prefix}bf-initial-size", "70") == OK
    assert raw("CONFIG", "SET", f"{prefix}bf-initial-size", "0").startswith("ERR CONFIG SET")
    assert raw("CONFIG", "SET", f"{prefix}bf-error-rate", "0.125") == OK
    assert raw("CONFIG", "SET", f"{prefix}bf-error-rate", "2").startswith("ERR CONFIG SET")
    assert raw("CONFIG", "GET", f"{prefix}bf-error-rate")[1] == b"0.125"
    raw("BF.ADD", "k2", "x")
    assert raw("BF.INFO", "k2", "CAPACITY") == [70]
    assert raw("BF.INFO", "k2", "ERROR") == [b"0.125"]
    info = raw("INFO", "everything").decode()
    assert "petal_bf_keys:2" in info and "petal_max_bytes:" in info
    raw("FLUSHALL")
    # In the background on some servers.
    wait_for(lambda: b"petal_bf_keys:0" in raw("INFO", "everything"), "the keys to be freed")


@test
def keyspace_events_and_access(context):
    server = context.server("notify-keyspace-events KEA")
    raw, watch = Raw(server), Raw(server)
    watch("PSUBSCRIBE", "__keyevent@0__:*")
    raw("BF.ADD", "k", "x")
    raw("BF.ADD", "k", "x")
    raw("CF.ADD", "c", "x")
    raw("CF.DEL", "c", "x")
    raw("SET", "end", "x")
    events = []
    while not events or events[-1] != "set":
        message = watch.read()
        events.append(message[2].decode().split(":")[1])
    assert events == ["bloom.reserve", "bloom.add", "cuckoo.reserve", "cuckoo.add", "cuckoo.del",
                      "set"], events
    flags = raw("COMMAND", "INFO", "bf.add", "bf.exists", "cf.del", "bf.merge")
    assert [(one[1], one[3], one[4], one[5]) for one in flags[:1]] == [(3, 1, 1, 1)]
    assert {"write", "denyoom"} <= set(map(str, flags[0][2]))
    assert {"readonly", "fast"} <= set(map(str, flags[1][2]))
    assert {"write", "fast"} <= set(map(str, flags[2][2])) and "denyoom" not in map(str, flags[2][2])
    assert flags[3][3:6] == [1, -1, 1]
    assert raw("COMMAND", "GETKEYS", "BF.MERGE", "a", "b", "c") == [b"a", b"b", b"c"]
    categories = raw("ACL", "CAT")
    # Redis 7.0 lets modules declare none.
    assert (b"bloom" in categories) == (context.engine != "redis")
    if b"bloom" in categories:
        assert b"bf.exists" in raw("ACL", "CAT", "read")
        assert b"cf.del" in raw("ACL", "CAT", "write")
        assert b"bf.add" in raw("ACL", "CAT", "bloom") and b"cf.add" in raw("ACL", "CAT", "cuckoo")
    raw("ACL", "SETUSER", "reader", "on", ">pw", "~k", "+bf.exists", "-@dangerous")
    reader = Raw(server)
    assert reader("AUTH", "reader", "pw") == OK
    assert reader("BF.EXISTS", "k", "x") == 1
    assert reader("BF.EXISTS", "other", "x").startswith("NOPERM")
    assert reader("BF.ADD", "k", "x").startswith("NOPERM")


@test
def transactions_scripts_and_read_only_replicas(context):
    master = context.server()
    raw = Raw(master)
    raw("MULTI")
    raw("BF.ADD", "k", "a")
    raw("CF.ADD", "c", "a")
    assert raw("EXEC") == [1, 1]
    assert raw("EVAL", "return redis.call('BF.ADD', KEYS[1], ARGV[1])", "1", "k", "b") == 1
    replica = Raw(context.server(f"replicaof 127.0.0.1 {master.port}"))
    wait_for(lambda: b"master_link_status:up" in replica("INFO", "replication"), "the link")
    raw("WAIT", "1", "30000")
    assert replica("BF.MEXISTS", "k", "a", "b") == [1, 1]
    assert replica("BF.ADD", "k", "c").startswith("READONLY")
    assert replica("CF.COMPACT", "c").startswith("READONLY")


@test
def what_changes_nothing_breaks_no_watch(context):
    server = context.server()
    raw, other = Raw(server), Raw(server)
    raw("BF.ADD", "k", "a")
    raw("CF.ADD", "c", "a")
    changes = [("BF.ADD", "k", "b"), ("BF.MADD", "k", "c"), ("CF.ADD", "c", "a"),
               ("CF.DEL", "c", "a"), ("BF.INSERT", "new", "ITEMS", "x")]
    idle = [("BF.ADD", "k", "a"), ("BF.MADD", "k", "a", "a"), ("CF.ADDNX", "c", "a"),
            ("CF.DEL", "c", "no"), ("BF.EXISTS", "k", "a")]
    for commands, runs in ((idle, True), (changes, False)):
        for command in commands:
            raw("WATCH", "k", "c", "new")
            other(*command)
            raw("MULTI")
            raw("PING")
            assert (raw("EXEC") is not None) == runs, command


@test
def the_chain_is_shown(context):
    raw = Raw(context.server())
    raw("BF.RESERVE", "k", "0.01", "100")
    raw("BF.MADD", "k", *range(250))
    size, *stages = (line.decode() for line in raw("BF.DEBUG", "k"))
    assert size == f"size:{raw('BF.CARD', 'k')}" and len(stages) == 2
    for stage, capacity in zip(stages, (100, 200)):
        assert f" hashwidth:64 capacity:{capacity} size:" in stage and " ratio:" in stage, stage
    assert raw("BF.DEBUG", "none") == "ERR not found"
    assert raw("BF.MERGEPART", "k", "k", "x", "0") == "ERR bad part"


@test
def in_a_cluster(context):
    one, other = context.server("cluster-enabled yes"), context.server("cluster-enabled yes")
    raw, there = Raw(one), Raw(other)
    assert raw("CLUSTER", "ADDSLOTS", *range(16_384)) == OK
    wait_for(lambda: b"cluster_state:ok" in raw("CLUSTER", "INFO"), "the cluster")
    assert raw("BF.RESERVE", "{t}a", "0.01", "1000", "NONSCALING", "SEED", "1") == OK
    assert raw("BF.RESERVE", "{t}b", "0.01", "1000", "NONSCALING", "SEED", "1") == OK
    raw("BF.MADD", "{t}a", *range(500))
    raw("CF.INSERT", "{t}c", "ITEMS", *range(500))
    assert raw("BF.MERGE", "{t}b", "elsewhere").startswith("CROSSSLOT")
    assert raw("BF.MERGE", "{t}b", "{t}a") == OK
    # Its slot moves to another node while it is used.
    assert raw("CLUSTER", "MEET", "127.0.0.1", other.port) == OK
    nodes = [one("CLUSTER", "MYID").decode() for one in (raw, there)]
    wait_for(lambda: nodes[0].encode() in there("CLUSTER", "NODES")
             and b"handshake" not in there("CLUSTER", "NODES")
             and b"cluster_state:ok" in there("CLUSTER", "INFO"), "the other node")
    slot = raw("CLUSTER", "KEYSLOT", "{t}a")
    assert there("CLUSTER", "SETSLOT", slot, "IMPORTING", nodes[0]) == OK
    assert raw("CLUSTER", "SETSLOT", slot, "MIGRATING", nodes[1]) == OK
    keys = raw("CLUSTER", "GETKEYSINSLOT", slot, "10")
    assert sorted(keys) == [b"{t}a", b"{t}b", b"{t}c"]
    assert raw("BF.ADD", "{t}a", "before") == 1
    assert raw("MIGRATE", "127.0.0.1", other.port, "", "0", "5000", "KEYS", *keys) == OK
    assert raw("BF.ADD", "{t}a", "after").startswith("ASK")
    there("ASKING")
    assert there("BF.ADD", "{t}a", "after") == 1
    for node in (there, raw):
        assert node("CLUSTER", "SETSLOT", slot, "NODE", nodes[1]) == OK
    assert all(there("BF.MEXISTS", "{t}a", *range(500), "before", "after"))
    assert all(there("BF.MEXISTS", "{t}b", *range(500)))
    assert all(there("CF.MEXISTS", "{t}c", *range(500)))
    assert raw("BF.EXISTS", "{t}a", "before").startswith("MOVED")


@test
def chunks_of_two_filters_do_not_mix(context):
    raw = Raw(context.server())

    def fill(key, *more):
        assert raw("BF.RESERVE", key, "0.01", "1000000", "NONSCALING", *more) == OK
        raw("BF.MADD", key, *range(100))

    for family, change in (("BF", "RENAME"), ("BF", "DEL"), ("CF", "RENAME")):
        def make(key):
            if family == "BF":
                fill(key)
            else:
                assert raw("CF.RESERVE", key, "1000000") == OK
                raw("CF.INSERT", key, "ITEMS", *range(100))

        raw("FLUSHALL")
        make("k")
        make("other")
        first = raw(f"{family}.SCANDUMP", "k", "0")
        second = raw(f"{family}.SCANDUMP", "k", first[0])
        assert first[0] < 1 << 53 and second[0] < 1 << 53
        # The dump of another filter, which has the same places.
        others = dump(raw, "other", f"{family}.SCANDUMP")
        if change == "RENAME":
            raw("RENAME", "other", "k")
        else:
            raw("DEL", "k")
            make("k")
        after = raw(f"{family}.SCANDUMP", "k", first[0])
        assert after.startswith("ERR the filter changed since the dump began, or is another"), after
        # Nor does the server that takes chunks.
        assert raw(f"{family}.LOADCHUNK", "new", *first) == OK
        assert raw(f"{family}.LOADCHUNK", "new", *second) == OK
        mixed = raw(f"{family}.LOADCHUNK", "new", *others[2])
        assert mixed.startswith("ERR received bad data: the chunk is of another filter"), mixed
    # One seed and one size: those that share both are told apart where they are dumped.
    raw("FLUSHALL")
    fill("k", "SEED", "7")
    first = raw("BF.SCANDUMP", "k", "0")
    raw("DEL", "k")
    fill("k", "SEED", "7")
    assert raw("BF.SCANDUMP", "k", first[0]).startswith("ERR the filter changed since")
    # Additions do not end a dump.
    chunks = [raw("BF.SCANDUMP", "k", "0")]
    while chunks[-1][0] != 0:
        raw("BF.ADD", "k", f"more{len(chunks)}")
        chunks.append(raw("BF.SCANDUMP", "k", chunks[-1][0]))
    for chunk in chunks[:-1]:
        assert raw("BF.LOADCHUNK", "copy", *chunk) == OK
    assert all(raw("BF.MEXISTS", "copy", *range(100)))


@test
def a_window_that_is_too_full_says_so(context):
    raw = Raw(context.server(), 3)
    assert raw("BF.RESERVE", "w", "0.01", "1400", "WINDOW", "1h") == OK
    raw("BF.MADD", "w", *range(50))
    stats = raw("BF.STATS", "w")
    assert stats[Simple("Window")] == stats[Simple("Window covered")] == 3_600_000
    assert stats[Simple("Generations dropped early")] == 0
    for start in range(0, 20_000, 500):
        raw("BF.MADD", "w", *range(start, start + 500))
        time.sleep(0.002)
    stats = raw("BF.STATS", "w")
    assert stats[Simple("Window covered")] < 3_000_000, stats
    assert stats[Simple("Generations dropped early")] > 10, stats
    raw("BF.RESERVE", "keys", "0.01", "1000", "WINDOW", "KEYS")
    raw("BF.ADD", "keys", "a")
    stats = raw("BF.STATS", "keys")
    assert stats[Simple("Window")] is None and stats[Simple("Window covered")] is None
