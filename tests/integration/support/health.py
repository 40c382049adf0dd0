"""health: servers for health checks: one that says what it is told, one with a port that tells whether it is up."""

import contextlib
import socket
from collections import Counter

from support import net
from support.server import Counted, Moody


class Talker(Moody):
    """A server that reads something and says its mood; then it keeps the connection open for ever, or
    ends it if the mood is a pair of that and "ends". With "resets" it does not even read. It notes
    what it got, and how the other side ended."""

    def __init__(self, name, address, mood):
        super().__init__(name, address)
        self.mood = mood
        self.got = Counter()
        self.ends = Counter()
        self.kept = contextlib.ExitStack()

    def __exit__(self, *_):
        super().__exit__(*_)
        self.kept.close()

    def _answer(self, s, mood):
        says, ending = mood if isinstance(mood, tuple) else (mood, "stays")
        s.settimeout(net.LIMIT_S)
        if ending == "resets":
            net.reset(s)
            return
        self.got[s.recv(100)] += 1
        if says:
            s.sendall(says)
        if ending == "stays":
            net.Task(self._wait_end, self.kept.enter_context(s.dup()))

    def _wait_end(self, s):
        with contextlib.suppress(TimeoutError):
            self.ends[net.ending(s)] += 1


@contextlib.contextmanager
def port_to_check(address):
    """What a server with check_port opens while it wants to be up."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(address, 256))
        stack.callback(listener.shutdown, socket.SHUT_RDWR)
        yield


class Ready:
    """An echo server that counts its connections, with a port beside it that tells whether it is
    up: it can be taken down with its connections left alone."""

    def __init__(self, t, name, host="127.0.0.1"):
        self.name, self.host, self.check_port = name, host, t.port()
        self.server = Counted(f"{host}:{t.port()}", greets=True)
        self.opened = contextlib.ExitStack()

    def __enter__(self):
        self.server.__enter__()
        self.is_up(True)
        return self

    def __exit__(self, *_):
        self.opened.close()
        self.server.__exit__()

    def is_up(self, up):
        self.opened.close()
        if up:
            self.opened.enter_context(port_to_check(f"{self.host}:{self.check_port}"))

    @property
    def line(self):
        return f"{self.server.address} check_port={self.check_port}"


@contextlib.contextmanager
def ready(t, names):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Ready(t, name)) for name in names]


def lines_of(servers, backups=""):
    return {server.name: server.line + (" backup" if server.name in backups else "")
            for server in servers}


def visit(front):
    """A client that is greeted and goes."""
    with net.connect(front) as client:
        return greeted(client)


def greeted(client):
    """Wait for the server's greeting."""
    while net.read_exactly(client, 1) != b"\n":
        pass
    return client


def served(servers, front, count):
    """How many of so many clients, one after the other, each server gets."""
    before = {server.name: server.server.total for server in servers}
    for _ in range(count):
        visit(front)
    return {server.name: server.server.total - before[server.name] for server in servers}


def is_alive(client):
    """Was it greeted, and is it answered?"""
    try:
        return net.exchange(greeted(client), b"x") == b"x"
    except (ConnectionResetError, BrokenPipeError):
        return False
