"""case: what a test is, and what it gets to work with.

A test is a function with @test over it. Its doc string is one sentence that says what it asks; the
runner prints it. It gets a Context, and fails by an exception.
"""

import itertools
import os
import random
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from support.daemon import REPORT, Daemon, Finished

DEFAULT_TIMEOUT_S = 30
BUSY_SCALE = 3  # how much longer a test may take on a busy machine
PATIENCE_S = 20  # for what comes at once, unless the machine does not run us
SANITIZED_SCALE = 4  # how much longer everything may take in a sanitised daemon
POLL_S = 0.02


class Failed(Exception):
    """The daemon did not do what the test asks; the message says what it did."""


class Skipped(Exception):
    """The test cannot ask its question here; the message says why."""


@dataclass
class Case:
    """One line of the result."""
    theme: str
    sentence: str
    function: object
    arguments: dict
    timeout_s: float
    needs: tuple
    plain_only: bool

    @property
    def title(self):
        return f"{self.theme}: {self.sentence}"

    @property
    def names(self):
        """What -k looks in."""
        return f"{self.title} {self.function.__name__}"


CASES = []


def _argument_sets(each):
    """A dict of lists stands for all combinations; a list of dicts for itself."""
    if not each:
        return [{}]
    if isinstance(each, dict):
        return [dict(zip(each, values)) for values in itertools.product(*each.values())]
    return each


def test(timeout=DEFAULT_TIMEOUT_S, needs=(), each=None, plain_only=False):
    """Register a test, once for each set of arguments; its sentence may hold them as {name}.

    timeout: seconds in a plain daemon on a quiet machine. needs: programs without which the test cannot run.
    plain_only: it asks about times, rates or other programs on paths that other tests take, too;
    a sanitised daemon is not asked.
    """
    def register(function):
        theme = function.__globals__.get("THEME", function.__module__.removeprefix("test_"))
        for arguments in _argument_sets(each):
            sentence = " ".join(function.__doc__.format(**arguments).split())
            CASES.append(Case(theme, sentence, function, arguments, timeout * BUSY_SCALE, tuple(needs),
                              plain_only))
        return function
    return register


def missing_programs(case):
    return [name for name in case.needs if shutil.which(name) is None]


def check(condition, message):
    if not condition:
        raise Failed(message)


def check_equal(got, wanted, what):
    check(got == wanted, f"{what}: got {got!r}, not {wanted!r}")


@dataclass
class Options:
    """How this run was asked for."""
    reactord: str
    source_dir: Path
    sanitized: bool = False
    long: bool = False
    workers_accept: bool = False


@dataclass
class Context:
    """What a test gets: a directory of its own, ports nobody uses, and daemons."""
    options: Options
    dir: Path
    daemons: list = field(default_factory=list)
    reserved: dict = field(default_factory=dict)  # a socket for each port: its reservation

    @property
    def scale(self):
        return SANITIZED_SCALE if self.options.sanitized else 1

    @property
    def sanitized(self):
        return self.options.sanitized

    @property
    def workers_accept(self):
        """Has the daemon no boss threads, unless it is told otherwise?"""
        return self.options.workers_accept

    def path(self, name):
        return str(self.dir / name)

    def write(self, name, content):
        """A file of this test with that content, text or bytes; returns its path."""
        path = self.dir / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def port(self):
        """A port that nobody uses, until the test ends.

        Not from bind(0): those ports are also given to outgoing connections, which then take the
        port between here and the daemon's bind, or connect to themselves when nobody listens. And
        not one that another test has, which may not be bound at this moment because its server is
        away: also another run's, and so the kernel knows. An abstract socket, like a port, belongs
        to the network namespace, and to one process; a test that moves to a namespace of its own
        keeps the ports that it has.
        """
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
            first_ephemeral = int(f.read().split()[0])
        for _ in range(1000):
            port = random.randrange(10000, first_ephemeral)
            reservation = _reserve(port) if port not in self.reserved else None
            if reservation:
                self.reserved[port] = reservation
                return port
        raise Failed("no free port below the ephemeral range")

    def address(self):
        return f"127.0.0.1:{self.port()}"

    def daemon(self, config, **how):
        """A daemon with that configuration, started by `with`; shown when the test fails."""
        daemon = Daemon(self.options.reactord, self.dir, len(self.daemons), config,
                        scale=self.scale, **how)
        self.daemons.append(daemon)
        return daemon

    def reactord(self, *arguments, stdin=None, **how):
        """Run the program to its end, for what it prints and its exit code."""
        done = subprocess.run([self.options.reactord, *arguments], input=stdin, cwd=self.dir,
                              capture_output=True, timeout=30 * self.scale, check=False, **how)
        finished = Finished(done.returncode, done.stdout.decode(errors="replace"),
                            done.stderr.decode(errors="replace"))
        found = REPORT.search(finished.err)
        check(not found, f"stderr has: {found and found.group()}")
        return finished

    @property
    def reactorctl_path(self):
        """The program that was built with the daemon."""
        return str(Path(self.options.reactord).with_name("reactorctl"))

    def reactorctl(self, *arguments, **how):
        """Run reactorctl to its end, for what it prints and its exit code."""
        return self.run(self.reactorctl_path, *arguments, **how)

    def run(self, *command, stdin=subprocess.DEVNULL, **how):
        """Run a program to its end, with a descriptor as its input."""
        done = subprocess.run(command, stdin=stdin, cwd=self.dir, capture_output=True, timeout=30 * self.scale,
                              check=False, **how)
        finished = Finished(done.returncode, done.stdout.decode(errors="replace"),
                            done.stderr.decode(errors="replace"))
        found = REPORT.search(finished.err)
        check(not found, f"stderr has: {found and found.group()}")
        return finished

    def eventually(self, probe, what, within=PATIENCE_S):
        """Wait until the probe is true; returns what it gave. A look counts as no more than 0.1 s."""
        left = within * self.scale
        while True:
            began = time.monotonic()
            value = probe()
            if value:
                return value
            if left <= 0:
                raise Failed(f"not within {within * self.scale} s: {what}")
            time.sleep(POLL_S)
            left -= min(time.monotonic() - began, 0.1)


def _reserve(port):
    """A socket that says to other tests that the port is taken, or None if it is."""
    reservation = socket.socket(socket.AF_UNIX)
    try:
        reservation.bind(f"\0reactord-test-port-{port}")
    except OSError:
        reservation.close()
        return None
    if _is_free(port):
        return reservation
    reservation.close()
    return None


def _is_free(port):
    for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        with socket.socket(family) as s:
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                s.bind((host, port))
            except OSError:
                return False
    return True


def is_root():
    return os.geteuid() == 0
