#!/usr/bin/env python3
"""Tests the module on every server: tests/redis/run.py LIBRARY [SERVER] [TEST ...]

Each test is a function that gets a `Context`: it starts servers of one engine. The
modules beside this file register theirs with `@test`.
"""

import os
import sys
import time
import traceback

import server
from context import Context, TESTS

import commands_bf  # noqa: F401  (registers its tests)
import commands_cf  # noqa: F401
import examples  # noqa: F401
import foreign  # noqa: F401
import hostile  # noqa: F401
import keyed  # noqa: F401
import merges  # noqa: F401
import own  # noqa: F401
import persistence  # noqa: F401


def main():
    library, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    engines = server.engines()
    chosen = [name for name in engines if name in wanted] or list(engines)
    names = [name for name in wanted if name not in engines]
    passed, failed = 0, []
    for engine in chosen:
        for name, run in TESTS.items():
            if names and name not in names:
                continue
            started = time.monotonic()
            context = Context(engines[engine], engine, library)
            try:
                run(context)
                passed += 1
            except Exception:
                failed.append(f"{engine}: {name}")
                print(f"FAILED {engine}: {name} ({time.monotonic() - started:.1f} s)")
                traceback.print_exc()
                for one in context.servers:
                    print(one.log()[-700:])
            finally:
                context.close()
    print(f"redis: {passed} passed, {len(failed)} failed on {', '.join(chosen)}")
    for name in failed:
        print(f"  {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
