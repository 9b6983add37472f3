"""BF.MERGE, at once and in parts, and the commands that are for replicas."""

import time

from context import OK, test
from commands_bf import WRONG_TYPE
from persistence import rewrite
from server import Raw, wait_for


@test
def merging(context):
    raw = Raw(context.server())
    for key, seed, capacity in (("a", 5, 2000), ("b", 5, 2000), ("c", 6, 2000), ("d", 5, 1000)):
        assert raw("BF.RESERVE", key, "0.01", capacity, "NONSCALING", "SEED", seed) == OK
    raw("BF.MADD", "a", *range(0, 1200))
    raw("BF.MADD", "b", *range(800, 1900))
    raw("BF.MADD", "d", "x")
    raw("BF.ADD", "grows", "x")
    assert raw("BF.MERGE", "a", "c").startswith("ERR the filters hash their items differently")
    assert raw("BF.MERGE", "a", "d").startswith("ERR the filters differ in size")
    assert raw("BF.MERGE", "a", "grows").startswith("ERR only filters that do not grow")
    assert raw("BF.MERGE", "a", "none") == "ERR not found"
    raw("SET", "s", "x")
    assert raw("BF.MERGE", "a", "s") == WRONG_TYPE
    assert raw("BF.MERGE", "new", "a", "b") == OK
    assert all(raw("BF.MEXISTS", "new", *range(1900)))
    # As if all had been added to one.
    raw("BF.RESERVE", "one", "0.01", "2000", "NONSCALING", "SEED", "5")
    raw("BF.MADD", "one", *range(1900))
    assert raw("BF.MEXISTS", "one", *range(10_000)) == raw("BF.MEXISTS", "new", *range(10_000))
    assert abs(raw("BF.CARD", "new") - 1900) < 60
    # Too many for the error that was reserved: nothing is changed.
    raw("BF.RESERVE", "more", "0.01", "2000", "NONSCALING", "SEED", "5")
    raw("BF.MADD", "more", *range(5000, 6900))
    before = raw("DEBUG", "DIGEST-VALUE", "new")
    assert raw("BF.MERGE", "new", "more").startswith("ERR the merged filter would pass")
    assert raw("DEBUG", "DIGEST-VALUE", "new") == before
    # Nor is a new one made.
    assert raw("BF.MERGE", "other", "a", "more").startswith("ERR the merged filter would pass")
    assert raw("EXISTS", "other") == 0


@test
def merges_of_large_filters_are_done_in_parts(context):
    master = context.server()
    raw, writer = Raw(master), Raw(master)
    follow = Raw(context.server(f"replicaof 127.0.0.1 {master.port}"))
    wait_for(lambda: b"master_link_status:up" in follow("INFO", "replication"), "the link")
    for key in ("a", "b", "c"):
        assert raw("BF.RESERVE", key, "0.01", "20000000", "NONSCALING", "SEED", "1") == OK
        raw("BF.MADD", key, *(f"{key}{i}" for i in range(2000)))
    for target, others in (("a", ["b", "c"]), ("new", ["a", "c"])):
        raw.send("BF.MERGE", target, *others)
        # Others are served meanwhile, and write to the filters that are being merged.
        for i in range(300):
            writer("BF.ADD", "b", f"meanwhile{target}{i}")
            writer("BF.ADD", target if target == "a" else "c", f"too{target}{i}")
        assert raw.read() == OK
        for key in others:
            assert all(raw("BF.MEXISTS", target, *(f"{key}{i}" for i in range(2000))))
    card = raw("BF.CARD", "a")
    assert 6000 <= card <= 6600, card
    assert raw("WAIT", "1", "30000") == 1
    for key in ("a", "b", "c", "new"):
        assert follow("DEBUG", "DIGEST-VALUE", key) == raw("DEBUG", "DIGEST-VALUE", key), key
    # In a transaction nobody can wait: then it is done at once.
    raw("MULTI")
    raw("BF.MERGE", "a", "b")
    assert raw("EXEC") == [OK]
    assert raw("BF.RESERVE", "small", "0.01", "19000000", "NONSCALING", "SEED", "1") == OK
    assert raw("BF.MERGE", "small", "a").startswith("ERR the filters differ in size")


@test
def a_new_key_of_a_merge_answers_when_it_is_whole(context):
    master = context.server("appendonly yes", "aof-use-rdb-preamble no")
    raw, other = Raw(master), Raw(master)
    follow = Raw(context.server(f"replicaof 127.0.0.1 {master.port}"))
    wait_for(lambda: b"master_link_status:up" in follow("INFO", "replication"), "the link")
    for key in ("a", "b", "c"):
        assert raw("BF.RESERVE", key, "0.01", "40000000", "NONSCALING", "SEED", "1") == OK
        raw("BF.MADD", key, *(f"{key}{i}" for i in range(500)))
    merging = "ERR the filter is still being merged"
    raw.send("BF.MERGE", "new", *["a", "b"] * 5, "c")
    wait_for(lambda: other("EXISTS", "new") == 1, "the merge to begin")
    assert other("BF.EXISTS", "new", "a1").startswith(merging)
    assert other("BF.ADD", "new", "x").startswith(merging)
    assert other("BF.TEST", "new", "a1") is None
    assert other("BF.MERGEPART", "new", "a", "0", "0").startswith(merging)
    # One that is cut off by the end of the server stays what it is, and can be deleted.
    assert other("COPY", "new", "half") == 1
    # A source that goes takes the new key with it.
    assert other("DEL", "c") == 1
    assert raw.read().startswith("ERR not found")
    rewrite(other)
    assert raw("EXISTS", "new") == 0
    assert raw("BF.EXISTS", "half", "a1").startswith(merging)
    assert raw("WAIT", "1", "30000") == 1
    assert follow("EXISTS", "new") == 0
    master.kill()
    master.start()
    raw = Raw(master)
    assert raw("EXISTS", "new") == 0 and raw("DEL", "half") == 1
    # Nor is a key that was made meanwhile touched.
    other = Raw(master)
    raw.send("BF.MERGE", "new", "a", "b", "a", "b")
    wait_for(lambda: other("EXISTS", "new") == 1, "the merge to begin")
    other("MULTI")
    other("DEL", "new")
    other("BF.RESERVE", "new", "0.01", "40000000", "NONSCALING", "SEED", "1")
    other("EXEC")
    assert raw.read() == "ERR the filter that is merged into is another one now"
    assert raw("BF.CARD", "new") == 0 and raw("BF.EXISTS", "new", "a1") == 0
    assert raw("DEL", "new") == 1
    # Half of one filter and half of another are none.
    raw.send("BF.MERGE", "new", "a", "b", "a", "b", "other")
    assert raw.read() == "ERR not found"
    raw("COPY", "a", "other")
    raw("COPY", "b", "another")
    raw.send("BF.MERGE", "new", "a", "b", "a", "b", "other")
    wait_for(lambda: other("EXISTS", "new") == 1, "the merge to begin")
    other("RENAME", "another", "other")
    assert raw.read() == "ERR a filter that is being merged is another one now"
    assert raw("EXISTS", "new") == 0
    assert raw("BF.MERGE", "new", "a", "b") == OK
    for key in ("a", "b"):
        assert all(raw("BF.MEXISTS", "new", *(f"{key}{i}" for i in range(500))))
    wait_for(lambda: follow("DEBUG", "DIGEST-VALUE", "new") == raw("DEBUG", "DIGEST-VALUE", "new"),
             "the replica")
    assert follow("BF.CARD", "new") == raw("BF.CARD", "new") == 1000


@test
def commands_for_replicas_are_bounded(context):
    raw = Raw(context.server())
    for key in ("a", "b"):
        assert raw("BF.RESERVE", key, "0.01", "1000", "NONSCALING", "SEED", "1") == OK
    raw("BF.MADD", "b", *range(300))
    bad = "ERR bad part"
    assert raw("BF.MERGEPART", "a", "b", "x", "0") == bad
    assert raw("BF.MERGEPART", "a", "b", "-1", "0") == bad
    assert raw("BF.MERGEPART", "a", "b", "1000000", "0") == bad
    assert raw("BF.MERGEPART", "a", "b", "0", "301") == bad
    assert raw("BF.MERGEPART", "a", "none", "0", "0") == "ERR not found"
    assert raw("BF.MERGEPART", "none", "a", "0", "0") == "ERR not found"
    assert raw("BF.CARD", "a") == 0 and raw("EXISTS", "none") == 0
    for _ in range(3):
        assert raw("BF.MERGEPART", "a", "b", "0", "300") == OK
    assert raw("BF.MERGEPART", "a", "b", "0", "300") == bad
    assert raw("BF.CARD", "a") == 900
    assert raw("BF.INSERT", "m", "SEED", "1", "MERGING") == "Unknown argument received"
    # A time that is far ahead would silence the window until then.
    assert raw("BF.RESERVE", "w", "0.01", "1000", "WINDOW", "1h") == OK
    now = int(time.time() * 1000)
    assert raw("BF.ADDAT", "w", now, "a") == [1]
    late = raw("BF.ADDAT", "w", now + 60_000, "b")
    assert late.startswith("ERR the time is ") and "at most 5000" in late, late
    assert raw("BF.MEXISTS", "w", "a", "b") == [1, 0]
    assert raw("BF.ADD", "w", "c") == 1 and raw("BF.EXISTS", "w", "c") == 1
