"""Every front reads what the others write.

The programs come from the environment, as `./test python` sets it: PETAL_COMMAND, PETAL_FRONTS
(examples/fronts.rs) and, if the module is built and a server is installed, PETAL_REDIS_MODULE.
"""

import os
import shutil
import socket
import subprocess
import sys
import time

import petal
import pytest

COMMAND = os.environ.get("PETAL_COMMAND")
LIBRARY = os.environ.get("PETAL_FRONTS")
MODULE = os.environ.get("PETAL_REDIS_MODULE")

pytestmark = pytest.mark.skipif(
    not (COMMAND and LIBRARY), reason="PETAL_COMMAND and PETAL_FRONTS are not set: ./test python sets them"
)

TEXT = [f"https://example.org/{i}" for i in range(1000)] + ["", "caf\u00e9", "\u65e5\u672c\u8a9e", "x" * 5000]
NUMBERS = [str(n) for n in (*range(-500, 500), 2**63 - 1, -(2**63))]
ABSENT = {"bytes": [f"absent {i}" for i in range(1000)], "int": [str(n) for n in range(10**6, 10**6 + 1000)]}
KEYS = {"bytes": TEXT, "int": NUMBERS}


def run(*command, keys=(), hash_seed=None):
    env = dict(os.environ)
    if hash_seed is not None:
        env["PYTHONHASHSEED"] = hash_seed
    lines = "".join(f"{key}\n" for key in keys).encode()
    done = subprocess.run(list(command), input=lines, capture_output=True, env=env)
    assert done.returncode in (0, 1), done.stderr.decode()  # 1: `check` found nothing
    return [line.decode() for line in done.stdout.split(b"\n")[:-1]]


WRITE = """
import sys, petal
path, keys, kind = sys.argv[1:]
make = {"bloom": petal.BloomFilter, "counting": petal.CountingBloomFilter,
        "growable": petal.GrowableFilter, "window": petal.WindowFilter}[kind]
# The command asks about lines: it has to know that they are to be read as numbers.
seen = make(2000, 1e-6, keys=keys, normalise="int" if keys == "int" else None)
lines = sys.stdin.buffer.read().decode().split("\\n")[:-1]
if keys == "int":
    lines = [int(line) for line in lines]
seen.update(set(lines))                 # a set: its order depends on the hash seed
seen.save(path, overwrite=True)
"""

ASK = """
import sys, petal
seen = petal.open(sys.argv[1])
for line in sys.stdin.buffer.read().decode().split("\\n")[:-1]:
    if (int(line) if seen.keys == "int" else line) in seen:
        sys.stdout.buffer.write(line.encode() + b"\\n")
"""


def python_write(path, keys, kind, hash_seed):
    run(sys.executable, "-c", WRITE, path, keys, kind, keys=KEYS[keys], hash_seed=hash_seed)


def command_write(path, keys, kind):
    options = ["--as", "int"] if keys == "int" else []
    options += ["--window", "2000"] if kind == "window" else ["-n", "2000"]
    run(COMMAND, "build", "--force", "-q", "-p", "1e-6", "--kind", kind, *options, "-o", path, keys=KEYS[keys])


WRITERS = {
    "rust": lambda path, keys, kind: run(LIBRARY, "write", path, keys, kind, keys=KEYS[keys]),
    "command": command_write,
    "python": lambda path, keys, kind: python_write(path, keys, kind, "0"),
    "python, other seed": lambda path, keys, kind: python_write(path, keys, kind, "12345"),
}
READERS = {
    "rust": lambda path, keys: run(LIBRARY, "ask", path, keys=keys),
    "command": lambda path, keys: run(COMMAND, "check", "-q", path, keys=keys),
    "python": lambda path, keys: run(sys.executable, "-c", ASK, path, keys=keys, hash_seed="0"),
    "python, other seed": lambda path, keys: run(
        sys.executable, "-c", ASK, path, keys=keys, hash_seed="777"
    ),
}


@pytest.mark.parametrize("kind", ["bloom", "counting", "growable", "window"])
@pytest.mark.parametrize("keys", ["bytes", "int"])
@pytest.mark.parametrize("writer", WRITERS)
def test_each_reads_what_each_writes(writer, keys, kind, tmp_path):
    path = str(tmp_path / "filter.petal")
    WRITERS[writer](path, keys, kind)
    for reader, read in READERS.items():
        # At an error of 1e-6 none of the absent keys is found, and which are is the same
        # for all readers in any case.
        assert read(path, KEYS[keys] + ABSENT[keys]) == KEYS[keys], (writer, reader)


def test_the_same_keys_are_the_same_bytes(tmp_path):
    files = {}
    for writer in ("rust", "python", "python, other seed"):
        path = tmp_path / writer
        WRITERS[writer](str(path), "int", "bloom")
        files[writer] = path.read_bytes()
    assert len(set(files.values())) == 1, "the same keys and parameters"
    seen = petal.BloomFilter(2000, 1e-6, normalise="line")
    seen.update(TEXT)
    WRITERS["command"](str(tmp_path / "command"), "bytes", "bloom")
    assert seen == petal.open(tmp_path / "command")


def test_the_command_refuses_ints_without_a_way_to_read_lines(tmp_path):
    path = str(tmp_path / "f")
    petal.BloomFilter(10, 0.01, keys="int").save(path)
    with pytest.raises(AssertionError, match="key type differs"):
        run(COMMAND, "check", path, keys=["7"])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    program = shutil.which("redis-server")
    if not (MODULE and os.path.exists(MODULE) and program):
        pytest.skip("no module of Redis is built, or no server is installed: ./test redis does both")
    redis = pytest.importorskip("redis")
    folder, port = tmp_path_factory.mktemp("redis"), free_port()
    process = subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "",
         "--logfile", "server.log", "--loadmodule", os.path.abspath(MODULE)],
        stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT,
    )
    try:
        client = redis.Redis(port=port)
        deadline = time.monotonic() + 60
        while True:
            try:
                client.ping()
                break
            except redis.exceptions.ConnectionError:
                assert process.poll() is None and time.monotonic() < deadline, "the server does not start"
                time.sleep(0.05)
        yield client
    finally:
        process.terminate()
        process.wait()


@pytest.mark.parametrize("writer", WRITERS)
def test_the_module_serves_what_each_writes(server, writer, tmp_path):
    path = tmp_path / "filter.petal"
    WRITERS[writer](str(path), "bytes", "bloom")
    data, size = path.read_bytes(), 256 << 10
    server.delete("k")
    for start in range(0, len(data), size):
        piece = data[start : start + size]
        iterator = 1 if start == 0 else start + len(piece) + 1
        assert server.execute_command("BF.LOADCHUNK", "k", iterator, piece)
    assert server.execute_command("BF.MEXISTS", "k", *TEXT) == [1] * len(TEXT)
    assert server.execute_command("BF.MEXISTS", "k", *ABSENT["bytes"]) == [0] * 1000


def test_each_reads_what_the_module_writes(server, tmp_path):
    server.delete("k")
    server.execute_command("BF.RESERVE", "k", "0.000001", 2000, "NONSCALING")
    server.execute_command("BF.MADD", "k", *TEXT)
    data, iterator = b"", 0
    while True:
        iterator, piece = server.execute_command("BF.EXPORT", "k", iterator)
        if iterator == 0:
            break
        data += piece
    path = tmp_path / "filter.petal"
    path.write_bytes(data)
    for reader, read in READERS.items():
        assert read(str(path), TEXT + ABSENT["bytes"]) == TEXT, reader
