"""What a test gets, and the register of tests."""

from server import Error, Raw, Server, Simple

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


class Context:
    """Servers of one engine, closed after the test."""

    def __init__(self, program, engine, library):
        self.program, self.engine, self.library = program, engine, library
        self.servers = []

    def server(self, *args, module=(), folder=None, waits=True):
        one = Server(self.program, self.library, args, module, folder, waits)
        self.servers.append(one)
        return one

    def close(self):
        for one in self.servers:
            one.close()


OK = Simple("OK")


def replies(context, rows, protocols=(2, 3), **more):
    """Runs rows of command (words or a list), reply in RESP2, and in RESP3 if it is another.

    An expected reply is compared with its type; a function is asked; an error or a
    simple string that ends in `...` is the start of one.
    """
    for protocol in protocols:
        raw = Raw(context.server(**more), protocol)
        for row in rows:
            command, expected = row[0], row[min(protocol - 1, len(row) - 1)]
            words = command.split(" ") if isinstance(command, str) else command
            got = raw(*words)
            assert matches(expected, got), (
                f"RESP{protocol}: {command}: expected {expected!r}, got {got!r}"
            )


def matches(expected, got):
    if callable(expected):
        return expected(got)
    if type(expected) is not type(got):
        return False
    if isinstance(expected, list):
        return len(expected) == len(got) and all(map(matches, expected, got))
    if isinstance(expected, dict):
        return expected.keys() == got.keys() and all(
            matches(value, got[key]) for key, value in expected.items()
        )
    if isinstance(expected, (Error, Simple)) and expected.endswith("..."):
        return got.startswith(expected[:-3])
    return expected == got
