"""balance: least_time: the server that answers fastest."""

import contextlib
import socket
import time
from collections import Counter

from support import net
from support.admin import get, section
from support.case import check, check_equal, test
from support.chain import Chain
from support.fleet import balanced
from support.upstreams import statistics

THEME = "balance"
SLOW_S = 1.0
SLOW_MS = 1000 * SLOW_S
NAMES = ("s0", "s1", "s2")


class Answering:
    """A server that answers a line with its name, after a while."""

    def __init__(self, t, name, takes_s=0.0):
        self.name, self.takes_s, self.address = name, takes_s, t.address()
        self.open = contextlib.ExitStack()

    def __enter__(self):
        listener = self.open.enter_context(net.listen(self.address, 256))
        self.open.callback(listener.shutdown, socket.SHUT_RDWR)
        net.Task(self._serve, listener)
        return self

    def __exit__(self, *_):
        self.open.close()

    def _serve(self, listener):
        listener.settimeout(None)
        with contextlib.suppress(OSError):
            while True:
                net.Task(self._answer, listener.accept()[0])

    def _answer(self, s):
        with s, contextlib.suppress(OSError):
            if s.recv(100):
                time.sleep(self.takes_s)
                s.sendall(self.name.encode())


@contextlib.contextmanager
def answering(t):
    """Three servers, of which the last is slow."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Answering(t, name, SLOW_S if name == NAMES[-1] else 0)) for name in NAMES]


def text_of(front, servers, **options):
    return balanced(front, {server.name: server.address for server in servers}, "least_time", workers=2, **options)


def ask(front):
    """Who answers."""
    with net.connect(front) as client:
        client.sendall(b"?")
        return client.recv(100).decode()


def ask_until_known(t, front, statistics_of):
    """Ask until each server was measured, and the slow one at its pace."""
    def is_known():
        ask(front)
        figures = [statistics_of(f"server back/{name}") for name in NAMES]
        return all("first_byte_recent_ms" in of for of in figures) and \
            float(figures[-1]["first_byte_recent_ms"]) >= 0.9 * SLOW_MS

    t.eventually(is_known, "all servers are measured", within=30)


def few_are_slow(front, count=30):
    """So many clients, of which the slow server gets at most one in ten: it is tried again at times."""
    got = Counter(ask(front) for _ in range(count))
    check(got[NAMES[-1]] * 10 <= count, f"clients of the servers: {got}")


@test(timeout=90)
def slow_server(t):
    """least_time: of three servers the one that answers a second later is left after its first answers; the log, the
    admin interface and the metrics show the times, and a reload keeps them"""
    front, admin = t.address(), t.path("admin.sock")
    with answering(t) as servers:
        text = section(admin) + text_of(front, servers)
        with t.daemon(text) as daemon:
            check("first_byte_recent_ms" not in statistics(daemon, "server back/s0"), "times without a client")
            ask_until_known(t, front, lambda what: statistics(daemon, what))
            few_are_slow(front)
            rows = {row["name"]: row for row in get(admin, "/v1/upstreams").json["upstreams"][0]["servers"]}
            check(rows["s2"]["first_byte_recent_ms"] >= 0.9 * SLOW_MS, f"the times: {rows}")
            check(rows["s2"]["connect_recent_ms"] < rows["s2"]["first_byte_recent_ms"], f"the times: {rows}")
            metrics = get(admin, "/metrics").body.decode()
            check('reactord_server_first_byte_recent_seconds{server="s2",upstream="back"}' in metrics or
                  'reactord_server_first_byte_recent_seconds{upstream="back",server="s2"}' in metrics, metrics)
            daemon.reload(section(admin) + text_of(front, servers, connect_timeout="3s"))
            check(float(statistics(daemon, "server back/s2")["first_byte_recent_ms"]) >= 0.5 * SLOW_MS, "after a reload")
            few_are_slow(front)


@test(timeout=90)
def upgraded(t):
    """least_time: the process that an upgrade starts knows the slow server before its first client"""
    front = t.address()

    with answering(t) as servers, Chain(t, text_of(front, servers).removeprefix("[reactord]\n")) as chain:
        def statistics_of(what):
            chain.statistics(what)
            lines = [line for line in chain.lines(f" stats {what} ", chain.pid) if "_recent_ms" in line]
            return dict(word.split("=") for word in lines[-1].split() if "=" in word) if lines else {}

        ask_until_known(t, front, statistics_of)
        chain.upgrade()
        check(float(statistics_of("server back/s2")["first_byte_recent_ms"]) >= 0.5 * SLOW_MS, "after an upgrade")
        few_are_slow(front)


@test()
def other_methods_measure_nothing(t):
    """with another method no times are measured, and those of least_time before a reload stay as they were"""
    front = t.address()
    with answering(t) as servers:
        text = text_of(front, servers[:2])
        with t.daemon(text.replace("least_time", "random")) as daemon:
            check_equal({ask(front) for _ in range(40)}, {"s0", "s1"}, "servers of 40 clients")
            check("first_byte_recent_ms" not in statistics(daemon, "server back/s0"), "it was measured")
            daemon.reload(text)
            for _ in range(10):
                ask(front)
            found = [statistics(daemon, f"server back/{name}") for name in NAMES[:2]]
            check(any("first_byte_recent_ms" in of for of in found), f"with least_time: {found}")
