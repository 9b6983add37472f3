"""The programs in examples/redis, as users start them."""

import os
import subprocess
import sys
import tempfile

from context import test
from server import Raw

FOLDER = os.path.join(os.path.dirname(__file__), "../../examples/redis")


def run(name, *args):
    return subprocess.run([sys.executable, "-B", os.path.join(FOLDER, name), *args],
                          capture_output=True, text=True, check=True).stdout


@test
def demos(context):
    url = f"redis://127.0.0.1:{context.server().port}"
    said = run("nicknames.py", url)
    assert "user42: taken\nalice: free\nbob: free\nuser4999: taken\n" in said, said
    assert "alice: perhaps taken" in said, said
    said = run("penetration.py", url).splitlines()
    assert said[0].endswith("0 turned away, 0 from the cache, 300 from the database"), said
    turned, database = numbers(said[1])
    assert turned >= 2970 and turned + database == 3000, said
    assert said[2].endswith("0 turned away, 500 from the cache, 500 from the database"), said


def numbers(line):
    """Turned away, and from the database."""
    words = line.split(": ")[1].replace(",", "").split()
    found = [int(word) for word in words if word.isdigit()]
    return found[0], found[2]


@test
def filters_are_copied_and_filed(context):
    old, new = context.server(), context.server()
    raw = Raw(old)
    raw("BF.RESERVE", "k", "0.01", "100")
    raw("BF.MADD", "k", *range(3000))
    raw("BF.ADD", "there", "x")
    raw("PEXPIRE", "k", "3600000")
    Raw(new)("BF.ADD", "there", "y")
    urls = [f"redis://127.0.0.1:{one.port}" for one in (old, new)]
    said = subprocess.run([sys.executable, "-B", os.path.join(FOLDER, "copy_filters.py"), *urls],
                          capture_output=True, text=True)
    assert said.stdout.startswith("1 filters copied") and said.returncode == 1, said
    asked = raw("BF.MEXISTS", "k", *range(10_000))
    assert Raw(new)("BF.MEXISTS", "k", *range(10_000)) == asked
    assert 0 < Raw(new)("PTTL", "k") <= 3_600_000
    raw("CF.INSERT", "c", "ITEMS", *range(500))
    with tempfile.TemporaryDirectory() as folder:
        for key in ("k", "c"):
            path = os.path.join(folder, key)
            run("petal_file.py", "export", key, path, urls[0])
            run("petal_file.py", "import", path, f"again:{key}", urls[1])
    assert Raw(new)("BF.MEXISTS", "again:k", *range(10_000)) == asked
    assert all(Raw(new)("CF.MEXISTS", "again:c", *range(500)))


@test
def an_interrupted_copy_is_taken_up(context):
    old, new = context.server(), context.server()
    raw, there = Raw(old), Raw(new)
    for key in ("done", "half", "left"):
        raw("BF.RESERVE", key, "0.01", "1000000", "NONSCALING")
        raw("BF.MADD", key, *(f"{key}{i}" for i in range(500)))
    there("BF.LOADCHUNK", "half", *raw("BF.SCANDUMP", "half", "0"))
    urls = [f"redis://127.0.0.1:{one.port}" for one in (old, new)]

    def copy():
        return subprocess.run(
            [sys.executable, "-B", os.path.join(FOLDER, "copy_filters.py"), *urls],
            capture_output=True, text=True)

    said = copy()
    assert (said.returncode, said.stdout, said.stderr) == (0, "3 filters copied\n", ""), said
    for key in ("done", "half", "left"):
        assert all(there("BF.MEXISTS", key, *(f"{key}{i}" for i in range(500))))
    said = copy()
    assert said.returncode == 1 and said.stdout.startswith("0 filters copied\n"), said
    assert said.stdout.count("left as it is") == 3
    # What is refused is named, and the others are copied.
    there("CONFIG", "SET", settings(there), "100000")
    there("FLUSHALL")
    raw("BF.ADD", "small", "x")
    said = copy()
    assert said.returncode == 2 and said.stdout == "1 filters copied\n", said
    assert said.stderr.count("not copied: ") == 3 and "Traceback" not in said.stderr, said


def settings(raw):
    return raw("CONFIG", "GET", "*filter-max-bytes")[0].decode()


@test
def faults_are_told_in_a_line(context):
    raw = Raw(context.server())
    url = f"redis://127.0.0.1:{context.servers[0].port}"
    raw("BF.ADD", "k", "x")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "filter.petal")
        run("petal_file.py", "export", "k", path, url)
        with open(path, "rb") as file:
            data = file.read()
        short, text = os.path.join(folder, "short"), os.path.join(folder, "text")
        with open(short, "wb") as out:
            out.write(data[:-1])
        with open(text, "w") as out:
            out.write("no filter")
        for args in (
            ("petal_file.py", "export", "none", os.path.join(folder, "new"), url),
            ("petal_file.py", "export", "k", path, url),
            ("petal_file.py", "export", "k", os.path.join(folder, "no/such"), url),
            ("petal_file.py", "import", os.path.join(folder, "none"), "new", url),
            ("petal_file.py", "import", text, "new", url),
            ("petal_file.py", "import", short, "new", url),
            ("petal_file.py", "import", path, "k", url),
            ("petal_file.py", "import", path, "new", "redis://127.0.0.1:1"),
            ("petal_file.py", "import", path, "new", "nonsense"),
            ("copy_filters.py", url, "redis://127.0.0.1:1"),
            ("copy_filters.py", url, "nonsense"),
        ):
            said = subprocess.run([sys.executable, "-B", os.path.join(FOLDER, args[0]), *args[1:]],
                                  capture_output=True, text=True)
            assert said.returncode != 0 and said.stdout == "", said
            assert said.stderr.startswith(f"{args[0]}: ") and said.stderr.count("\n") == 1, said
        assert not os.path.exists(os.path.join(folder, "new"))
    assert raw("KEYS", "*") == [b"k"]
