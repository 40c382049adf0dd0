"""name_records: a name server in a network of its own, and servers by its names."""

import contextlib
import re
import threading
import time

from support import net
from support.names import NameServer, RESOLVER
from support.own_network import own_names, own_network
from support.server import Counted

DNSMASQ = ("dnsmasq",)
EVERY_SECOND = "resolve_interval = 1s\n"


@contextlib.contextmanager
def named(t, *records):
    """A name server, in a network of our own, and a server that is at all its addresses at the same
    port, and says at which it was reached; gives both, and the port."""
    own_network()
    own_names(t, "dns", servers=RESOLVER)
    port = t.port()
    with NameServer(t, records) as names, Counted(f"[::]:{port}", greets=True) as server:
        yield names, server, port


def read_line(s):
    line = b""
    while not line.endswith(b"\n"):
        line += net.read_exactly(s, 1)
    return line[:-1].decode()


def where(front):
    """The address that a new client is led to."""
    with net.connect(front) as client:
        return read_line(client)


def addresses(front, count):
    return {where(front) for _ in range(count)}


def servers(daemon):
    """The names of the group's servers, as SIGRTMIN writes them."""
    return [re.search(r"server back/(\S+) state", line).group(1)
            for line in daemon.statistics("server back/") if " state=" in line]


class Load:
    """Clients that come one after the other, on four threads, until the end of the block; each must
    be served."""

    def __init__(self, front):
        self.front = front
        self.over = threading.Event()
        self.clients = []

    def __enter__(self):
        self.clients = [net.Task(self._come) for _ in range(4)]
        return self

    def __exit__(self, error, *_):
        self.over.set()
        if not error:
            for client in self.clients:
                client.result()

    def _come(self):
        count = 0
        while count < 6 or not self.over.is_set():
            where(self.front)
            count += 1
            time.sleep(0.005)
