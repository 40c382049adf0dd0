"""fleet: a fleet of servers, and clients that are balanced over it."""

import contextlib
import socket

from support import net
from support.health import Ready
from support.server import Counted
from support.upstreams import config

WORKERS = 4


def balanced(front, lines, method, workers=WORKERS, **options):
    options = {"balance": method, **options}
    text = "\n".join(f"{key} = {value}" for key, value in options.items())
    return (f"[reactord]\ndrain_timeout = 500ms\n[worker]\nthreads = {workers}\n"
            + config(front, lines, text))


class Fleet:
    """Servers s0, s1 ... that say who they are, each on a loopback address of its own, and count."""

    def __init__(self, t, count, ready=False):
        self.servers = [Ready(t, f"s{i}", host=f"127.0.0.{11 + i}") if ready
                        else Counted(f"127.0.0.{11 + i}:{t.port()}", greets=True) for i in range(count)]
        self.open = contextlib.ExitStack()

    def __enter__(self):
        for server in self.servers:
            self.open.enter_context(server)
        return self

    def __exit__(self, *_):
        self.open.close()

    def __getitem__(self, i):
        return self.servers[i]

    def lines(self, *extra):
        """Their lines in the configuration; of extra the first belongs to the first, and so on."""
        extra += ("",) * len(self.servers)
        return {f"s{i}": (server.line if isinstance(server, Ready) else server.address) + " " + more
                for i, (server, more) in enumerate(zip(self.servers, extra))}

    @property
    def totals(self):
        return [server.total for server in self.servers]

    @property
    def held(self):
        return [server.now for server in self.servers]


def client_of(front, host=None):
    """A client, from that loopback address or path, that stays; and the number of its server."""
    family, where = net.parse(front)
    s = socket.socket(family)
    try:
        s.settimeout(net.LIMIT_S)
        if host:
            s.bind(host if family == socket.AF_UNIX else (host, 0))
        s.connect(where)
        greeting = b""
        while not greeting.endswith(b"\n"):
            greeting += net.read_exactly(s, 1)
        return s, int(greeting.rsplit(b".", 1)[1]) - 11
    except BaseException:
        s.close()
        raise


def visit(front, host=None):
    """The number of the server that a client gets who goes again at once."""
    s, number = client_of(front, host)
    s.close()
    return number


def close_all(clients):
    for s, _ in clients:
        s.close()
