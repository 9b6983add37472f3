"""The table of the BF commands: replies and errors, word for word."""

import os
import subprocess

from context import OK, Error, Simple, replies, test
from server import Raw

E = Error
WRONG_TYPE = E("WRONGTYPE Operation against a key holding the wrong kind of value")
MOST = 1_000_000_000_000


def arity(name):
    return E(f"ERR wrong number of arguments for '{name}' command")


@test
def bf_reserve(context):
    capacity = E(f"ERR capacity must be in the range [1, {MOST}]")
    rate = E("ERR error rate must be in the range (0.000000, 1.000000)")
    expansion = E("ERR expansion must be in the range [0, 32768]")
    replies(context, [
        ("BF.RESERVE", arity("bf.reserve")),
        ("BF.RESERVE k 0.01", arity("bf.reserve")),
        ("BF.RESERVE k x 100", E("ERR bad error rate")),
        ("BF.RESERVE k nan 100", E("ERR bad error rate")),
        ("BF.RESERVE k 0 100", rate),
        ("BF.RESERVE k 1 100", rate),
        ("BF.RESERVE k -0.1 100", rate),
        ("BF.RESERVE k inf 100", rate),
        ("BF.RESERVE k 0.01 x", E("ERR bad capacity")),
        ("BF.RESERVE k 0.01 1.5", E("ERR bad capacity")),
        ("BF.RESERVE k 0.01 99999999999999999999", E("ERR bad capacity")),
        ("BF.RESERVE k 0.01 0", capacity),
        ("BF.RESERVE k 0.01 -5", capacity),
        ("BF.RESERVE k 0.01 1000000000000000000", capacity),
        (f"BF.RESERVE k 0.01 {MOST}", E("ERR Insufficient memory to create filter: ...")),
        ("BF.RESERVE k 0.01 100 EXPANSION", E("ERR no expansion")),
        ("BF.RESERVE k 0.01 100 EXPANSION x", E("ERR bad expansion")),
        ("BF.RESERVE k 0.01 100 EXPANSION -1", expansion),
        ("BF.RESERVE k 0.01 100 EXPANSION 32769", expansion),
        ("BF.RESERVE k 0.01 100 NONSCALING EXPANSION 2", E("Nonscaling filters cannot expand")),
        ("BF.RESERVE k 0.01 100 EXPANSION 2 NONSCALING", E("Nonscaling filters cannot expand")),
        ("BF.RESERVE k 0.01 100 BOGUS", E("ERR unknown argument received")),
        ("BF.RESERVE k 1e-15 100", E("ERR could not create filter: ...")),
        ("EXISTS k", 0),
        ("BF.RESERVE k 0.01 100", OK),
        ("BF.RESERVE k 0.01 100", E("ERR item exists")),
        ("SET s x", OK),
        ("BF.RESERVE s 0.01 100", WRONG_TYPE),
        ("bf.reserve n 0.01 100 nonscaling", OK),
        ("BF.INFO n EXPANSION", [None], {Simple("Expansion rate"): None}),
        ("BF.RESERVE z 0.01 100 EXPANSION 0", OK),
        ("BF.INFO z EXPANSION", [None], {Simple("Expansion rate"): None}),
        ("BF.RESERVE e 0.01 100 EXPANSION 4", OK),
        ("BF.INFO e EXPANSION", [4], {Simple("Expansion rate"): 4}),
        # Errors above 0.25 are taken for 0.25.
        ("BF.RESERVE h 0.9 100", OK),
        ("BF.INFO h ERROR", [b"0.25"], {Simple("Error rate"): 0.25}),
        ("TYPE k", Simple("petalblom")),
    ])


@test
def bf_add(context):
    replies(context, [
        ("BF.ADD k", arity("bf.add")),
        ("BF.ADD k a b", arity("bf.add")),
        ("BF.ADD k a", 1, True),
        ("BF.ADD k a", 0, False),
        ("BF.MADD k", arity("bf.madd")),
        ("BF.MADD k a b c b", [0, 1, 1, 0], [False, True, True, False]),
        ("BF.EXISTS k", arity("bf.exists")),
        ("BF.EXISTS k a b", arity("bf.exists")),
        ("BF.EXISTS k a", 1, True),
        ("BF.EXISTS k x", 0, False),
        ("BF.MEXISTS k", arity("bf.mexists")),
        ("BF.MEXISTS k a x b y", [1, 0, 1, 0], [True, False, True, False]),
        ("BF.CARD k", 3),
        ("BF.CARD k x", arity("bf.card")),
        ("BF.CARD none", 0),
        ("BF.EXISTS none a", 0, False),
        ("BF.MEXISTS none a b", [0, 0], [False, False]),
        ("EXISTS none", 0),
        ("SET s x", OK),
        ("BF.ADD s a", WRONG_TYPE),
        ("BF.MADD s a", WRONG_TYPE),
        ("BF.CARD s", WRONG_TYPE),
        ("BF.INFO s", WRONG_TYPE),
        # As RedisBloom has it: asking about another type finds nothing.
        ("BF.EXISTS s a", 0, False),
        ("BF.MEXISTS s a", [0], [False]),
        ("BF.INFO none", E("ERR not found")),
        ("BF.INFO k BOGUS", E("Invalid information value")),
        ("BF.INFO k", [Simple("Capacity"), 100, Simple("Size"), lambda size: 128 <= size < 2048,
                       Simple("Number of filters"), 1, Simple("Number of items inserted"), 3,
                       Simple("Expansion rate"), 2],
         {Simple("Capacity"): 100, Simple("Size"): lambda size: 128 <= size < 2048,
          Simple("Number of filters"): 1, Simple("Number of items inserted"): 3,
          Simple("Expansion rate"): 2}),
        ("BF.INFO k capacity", [100], {Simple("Capacity"): 100}),
        ("BF.INFO k ITEMS", [3], {Simple("Number of items inserted"): 3}),
        ("BF.INFO k FILTERS", [1], {Simple("Number of filters"): 1}),
        ("BF.INFO k TIGHTENING", [b"0.5"], {Simple("Tightening ratio"): 0.5}),
        ("BF.INFO k MAXSCALEDCAPACITY", [None], {Simple("Max scaled capacity"): None}),
        (["BF.ADD", "k", b"\x00\xff\r\n"], 1, True),
        (["BF.EXISTS", "k", b"\x00\xff\r\n"], 1, True),
        (["BF.ADD", "k", b""], 1, True),
        (["BF.EXISTS", "k", b""], 1, True),
    ])


@test
def bf_insert(context):
    seed = b"\x01" + bytes(31)
    replies(context, [
        ("BF.INSERT k", arity("bf.insert")),
        ("BF.INSERT k ITEMS", arity("bf.insert")),
        ("BF.INSERT k NOCREATE", arity("bf.insert")),
        ("BF.INSERT k NOCREATE ITEMS a", E("ERR not found")),
        ("BF.INSERT k BOGUS ITEMS a", E("Unknown argument received")),
        ("BF.INSERT k CAPACITY x ITEMS a", E("Bad capacity")),
        ("BF.INSERT k CAPACITY 0 ITEMS a", E("Bad capacity")),
        ("BF.INSERT k ERROR x ITEMS a", E("Bad error rate")),
        ("BF.INSERT k ERROR 1 ITEMS a", E("Bad error rate")),
        ("BF.INSERT k EXPANSION x ITEMS a", E("Bad expansion")),
        ("BF.INSERT k EXPANSION 40000 ITEMS a", E("Bad expansion")),
        ("BF.INSERT k CAPACITY", arity("bf.insert")),
        ("EXISTS k", 0),
        ("BF.INSERT k CAPACITY 50 ERROR 0.001 EXPANSION 3 ITEMS a b a", [1, 1, 0], [True, True, False]),
        ("BF.INSERT k NOCREATE ITEMS b c", [0, 1], [False, True]),
        ("BF.INFO k CAPACITY", [50], {Simple("Capacity"): 50}),
        ("BF.INFO k EXPANSION", [3], {Simple("Expansion rate"): 3}),
        # Both are taken here: the filter does not grow.
        ("BF.INSERT both EXPANSION 3 NONSCALING ITEMS a", [1], [True]),
        ("BF.INFO both EXPANSION", [None], {Simple("Expansion rate"): None}),
        # With a seed: another one may take "x" for one of the two.
        ("BF.INSERT n NONSCALING CAPACITY 2 SEED 1 ITEMS a b", [1, 1], [True, True]),
        # What is there is no error in a full filter; what is not is the last element.
        ("BF.INSERT n ITEMS a x y", [0, E("ERR non scaling filter is full")],
         [False, E("ERR non scaling filter is full")]),
        ("BF.MADD n b x", [0, E("ERR non scaling filter is full")],
         [False, E("ERR non scaling filter is full")]),
        ("BF.ADD n x", E("ERR non scaling filter is full")),
        ("BF.ADD n a", 0, False),
        ("BF.CARD n", 2),
        # Of valkey-bloom.
        (["BF.INSERT", "v", "SEED", seed, "TIGHTENING", "0.25", "VALIDATESCALETO", "1000"], []),
        ("BF.INFO v MAXSCALEDCAPACITY", [1000], {Simple("Max scaled capacity"): 1000}),
        ("BF.INFO v TIGHTENING", [b"0.25"], {Simple("Tightening ratio"): 0.25}),
        (["BF.INSERT", "w", "SEED", "short"], E("ERR invalid seed")),
        ("BF.INSERT w TIGHTENING x ITEMS a", E("ERR bad tightening ratio")),
        ("BF.INSERT w TIGHTENING 1 ITEMS a", E("ERR (0 < tightening ratio range < 1)")),
        ("BF.INSERT w NONSCALING VALIDATESCALETO 1000 ITEMS a",
         E("ERR cannot use NONSCALING and VALIDATESCALETO options together")),
        (f"BF.INSERT w VALIDATESCALETO {MOST} ITEMS a",
         E("ERR provided VALIDATESCALETO causes bloom object to exceed memory limit")),
        ("BF.INSERT w ERROR 1e-11 VALIDATESCALETO 1000000000 ITEMS a",
         E("ERR provided VALIDATESCALETO causes false positive to degrade to 0")),
        ("BF.INSERT w KEYED 0123456789abcdef ITEMS a", E("ERR the filter is keyed: ...")),
        ("EXISTS w", 0),
    ])


@test
def bf_growth_keeps_its_error(context):
    raw = Raw(context.server())
    assert raw("BF.RESERVE", "k", "0.01", "1000") == OK
    added = 0
    for start in range(0, 100_000, 1000):
        got = raw("BF.MADD", "k", *range(start, start + 1000))
        added += sum(got)
    card = raw("BF.CARD", "k")
    assert card == added and 99_000 <= card <= 100_000, card
    assert raw("BF.INFO", "k", "FILTERS") == [7]
    assert raw("BF.INFO", "k", "CAPACITY") == [127_000]
    for start in range(0, 100_000, 5000):
        assert all(raw("BF.MEXISTS", "k", *range(start, start + 5000)))
    hits = sum(sum(raw("BF.MEXISTS", "k", *range(start, start + 5000)))
               for start in range(1_000_000, 1_100_000, 5000))
    # The reserved error and 5 sigma of 100,000 questions.
    assert hits <= 1000 + 5 * 1000 ** 0.5, hits


@test
def bf_growth_by_one_is_no_error_after_many_items(context):
    raw = Raw(context.server())
    assert raw("BF.RESERVE", "k", "0.01", "1", "EXPANSION", "1") == OK
    for start in range(0, 10_000, 500):
        got = raw("BF.MADD", "k", *range(start, start + 500))
        assert set(got) <= {0, 1} and len(got) == 500, got[-1]
    assert raw("BF.INFO", "k", "EXPANSION") == [1]
    assert raw("BF.INFO", "k", "FILTERS") == [14]
    hits = sum(raw("BF.MEXISTS", "k", *range(100_000, 120_000)))
    assert hits <= 200 + 5 * 200 ** 0.5, hits


@test
def bf_size_limit_is_checked_before_allocation(context):
    server = context.server(module=["filter-max-bytes", "1000000"])
    raw = Raw(server)
    before = used(raw)
    assert raw("BF.RESERVE", "k", "0.01", "1000000").startswith("ERR Insufficient memory")
    assert raw("BF.RESERVE", "k", "0.01", "1000000000000").startswith("ERR Insufficient memory")
    assert used(raw) - before < 100_000
    assert raw("BF.RESERVE", "k", "0.01", "100000") == OK
    full = None
    for start in range(0, 2_000_000, 1000):
        got = raw("BF.MADD", "k", *range(start, start + 1000))
        if isinstance(got[-1], Error):
            full = got[-1]
            break
    assert full.startswith("ERR problem inserting into filter: it would take "), full
    assert raw("BF.ADD", "k", "0") == 0
    assert raw("MEMORY", "USAGE", "k") < 1_010_000


def used(raw):
    info = raw("INFO", "memory").decode()
    return int(info.split("used_memory:")[1].split("\r")[0])


@test
def bf_memory_is_counted_by_the_server(context):
    raw = Raw(context.server())
    before = used(raw)
    assert raw("BF.RESERVE", "k", "0.01", "10000000", "NONSCALING") == OK
    taken = used(raw) - before
    bits = raw("MEMORY", "USAGE", "k") * 8 / 10_000_000
    assert bits <= 10.3, bits
    # The server's allocator rounds up, by a quarter at most.
    assert 12_500_000 <= taken <= 12_900_000 * 1.25, taken
    assert raw("UNLINK", "k") == 1


@test
def bf_clients_of_redis_py_work_unchanged(context):
    for protocol in (2, 3):
        client = context.server().client(protocol)
        bloom = client.bf()
        assert bloom.create("b", 0.01, 1000)
        assert bloom.add("b", "a") == 1
        assert bloom.madd("b", "a", "c") == [0, 1]
        assert bloom.insert("i", ["x", "y"], capacity=100, error=0.01) == [1, 1]
        assert bloom.exists("b", "a") == 1
        assert bloom.mexists("b", "a", "q") == [1, 0]
        assert bloom.card("b") == 2
        info = bloom.info("b")
        found = (info.insertedNum, info.capacity) if protocol == 2 else (
            info[b"Number of items inserted"], info[b"Capacity"])
        assert found == (2, 1000), info
        chunks, iterator = [], 0
        while True:
            iterator, data = bloom.scandump("b", iterator)
            if iterator == 0:
                break
            chunks.append((iterator, data))
        for iterator, data in chunks:
            assert bloom.loadchunk("copy", iterator, data)
        assert bloom.mexists("copy", "a", "c", "q") == [1, 1, 0]


@test
def the_redis_crate_works_unchanged(context):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    for protocol in ("resp2", "resp3"):
        url = f"redis://127.0.0.1:{context.server().port}/?protocol={protocol}"
        done = subprocess.run(
            ["cargo", "test", "-q", "-p", "petal-redis", "--test", "client", "--", "--ignored"],
            cwd=root, env={**os.environ, "PETAL_REDIS_URL": url}, capture_output=True, text=True)
        assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
