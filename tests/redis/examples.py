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
