#!/usr/bin/env python3
"""Filters go back and forth between petal and the real software.

    tests/interop/run.py PETAL FOLDER

FOLDER is where setup.sh installed the peers. For each system: the peer writes
a filter, and petal finds the same lines in it as the peer itself; petal writes
one, which has the same bytes, and the peer finds the same lines in that.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
N, P = 300, 0.02


def run(*command, code=(0,), env=None, stdin=None):
    command = [str(part) for part in command]
    done = subprocess.run(
        command, capture_output=True, input=stdin, env={**os.environ, **(env or {})}
    )
    if done.returncode not in code:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


class Peer:
    """A program that writes filters and asks them."""

    def __init__(self, name, command, flags=(), env=None, writes=True):
        self.name, self.command, self.flags = name, command, list(flags)
        self.env, self.asks = env, writes

    def write(self, members, path):
        run(*self.command, "write", members, N, P, path, env=self.env)

    def check(self, path, lines):
        return run(*self.command, "check", path, lines, env=self.env)


class Dcso(Peer):
    """DCSO's own command."""

    def write(self, members, path):
        run("bloom", "create", "-n", N, "-p", P, path)
        run("bloom", "insert", path, stdin=members.read_bytes())

    def check(self, path, lines):
        return run("bloom", "check", path, code=(0, 1), stdin=lines.read_bytes())


def peers(folder):
    python = [folder / "python/bin/python", HERE / "peers.py"]
    java = ["java", "-cp"]
    yield Peer("guava", [*java, "/usr/share/java/guava.jar", HERE / "Peers.java", "guava"])
    yield Peer("spark", [*java, f"{folder}/spark/*", HERE / "Peers.java", "spark"])
    yield Dcso("dcso", [])
    yield Peer("npm", ["node", HERE / "peers.js"], env={"PEERS": str(folder)})
    yield Peer("pyprobables", [*python, "pyprobables"])
    yield Peer("pybloom-live", [*python, "pybloom-live"])
    yield Peer("rbloom", [*python, "rbloom"], ["--format", "rbloom", "--hash", "sha256"])
    yield Peer("parquet", [*python, "parquet"], writes=False)


def compare(petal, peer, members, others, scratch):
    theirs, ours = scratch / f"{peer.name}.theirs", scratch / f"{peer.name}.ours"
    peer.write(members, theirs)
    all_members = members.read_bytes()
    if run(petal, "check", *peer.flags, theirs, members) != all_members:
        sys.exit(f"{peer.name}: petal misses members")
    found = run(petal, "check", *peer.flags, theirs, others, code=(0, 1))
    if not peer.asks:
        print(f"{peer.name}: petal reads what it writes")
        return
    if found != peer.check(theirs, others):
        sys.exit(f"{peer.name}: petal finds other lines than its maker")
    run(petal, "convert", *peer.flags, theirs, "--list", members, "-n", N, "-p", P, "-o", ours)
    same = ours.read_bytes() == theirs.read_bytes()
    if peer.check(ours, members) != all_members or peer.check(ours, others) != found:
        sys.exit(f"{peer.name}: it finds other lines in petal's file than in its own")
    if not same:
        sys.exit(f"{peer.name}: petal's file is not the same to the byte")
    print(f"{peer.name}: each reads the other's, same bytes, {len(found.splitlines())} of "
          f"{len(others.read_bytes().splitlines())} absent lines found by both")


def main():
    petal, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    count = 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        members, others = scratch / "members", scratch / "others"
        members.write_text("".join(f"member-{i}-é€\n" for i in range(N)), encoding="utf-8")
        others.write_text("".join(f"other-{i}-é€\n" for i in range(5000)), encoding="utf-8")
        for peer in peers(folder):
            compare(petal, peer, members, others, scratch)
            count += 1
    print(f"interop: {count} passed, 0 failed")


main()
