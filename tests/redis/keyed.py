"""Keyed hashing: the secret stays where it is, and nothing is made where it is missing."""

import os
import tempfile

from context import Error, test
from persistence import rewrite
from server import Raw, wait_for


@test
def keyed_hashing_by_a_secret_that_is_never_written(context):
    folder = tempfile.mkdtemp(prefix="petal-redis-secret-")
    path = os.path.join(folder, "secret")
    secret = b"sixteen bytes ok"
    with open(path, "wb") as out:
        out.write(secret)
    module = ["secret-file", path]
    master = context.server("appendonly yes", "aof-use-rdb-preamble no", module=module)
    raw = Raw(master)
    follow = Raw(context.server(f"replicaof 127.0.0.1 {master.port}", module=module))
    raw("BF.MADD", "k", *range(500))
    raw("CF.INSERT", "c", "ITEMS", *range(500))
    assert raw("BF.STATS", "k")[-1] == 1
    raw("WAIT", "1", "30000")
    assert follow("DEBUG", "DIGEST-VALUE", "k") == raw("DEBUG", "DIGEST-VALUE", "k")
    assert follow("DEBUG", "DIGEST-VALUE", "c") == raw("DEBUG", "DIGEST-VALUE", "c")
    assert all(follow("BF.MEXISTS", "k", *range(500)))
    blob = raw("DUMP", "k")
    raw("SAVE")
    rewrite(raw)
    master.stop()
    for root, _, names in os.walk(master.folder):
        for name in names:
            with open(os.path.join(root, name), "rb") as file:
                content = file.read()
            assert secret not in content and secret.hex().encode() not in content, name
    # Another server cannot take what it could not ask about.
    other = Raw(context.server())
    assert isinstance(other("RESTORE", "k", "0", blob), Error)
    os.remove(path)
    os.rmdir(folder)


@test
def nothing_is_made_where_the_secret_is_missing(context):
    with tempfile.TemporaryDirectory(prefix="petal-redis-secret-") as folder:
        path = os.path.join(folder, "secret")
        with open(path, "wb") as out:
            out.write(b"sixteen bytes ok")
        master = context.server(module=["secret-file", path])
        raw = Raw(master)
        replica = context.server(f"replicaof 127.0.0.1 {master.port}")
        follow = Raw(replica)
        wait_for(lambda: b"master_link_status:up" in follow("INFO", "replication"), "the link")
        # Whether alone or with the creation: none of them makes a filter of another hash there.
        raw("BF.ADD", "one", "a")
        raw("BF.ADD", "one", "b")
        raw("BF.MADD", "many", "a", "b")
        raw("BF.MADD", "many", "c", "d")
        raw("BF.INSERT", "inserted", "ITEMS", "a")
        raw("BF.INSERT", "inserted", "ITEMS", "b")
        raw("BF.RESERVE", "window", "0.01", "100", "WINDOW", "1h")
        raw("BF.ADD", "window", "a")
        raw("CF.ADD", "c", "a")
        raw("CF.ADD", "c", "b")
        raw("CF.INSERTNX", "cx", "ITEMS", "a")
        raw("CF.ADDNX", "cx", "b")
        raw("SET", "end", "x")
        wait_for(lambda: follow("EXISTS", "end") == 1, "the replica")
        assert follow("KEYS", "*") == [b"end"]
        # A full synchronisation fails, and the log says why and what to do.
        late = context.server(f"replicaof 127.0.0.1 {master.port}", waits=False)
        wait_for(lambda: late.process.poll() is not None or "secret-file" in late.log(), "the log")
        log = late.log()
        assert "could not be loaded: the filter is keyed by a secret (check value " in log, log
        assert "this server has none: load the module with the secret-file" in log, log
        assert "Broken(" not in log and "Text(" not in log
