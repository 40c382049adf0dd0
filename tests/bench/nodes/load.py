"""load: the server behind the nodes, and the clients in front: new connections at a rate, and held ones.

The server says at which address a connection came from, so a client knows its node; then it echoes.
"""

import errno
import os
import selectors
import socket
import time
from collections import Counter
from contextlib import suppress

from nodes.network import PORT, SERVER, SERVER_PORT, VIP
from runner.contender import LOAD_CPU
from runner.namespaces import enter_host
from runner.process import come_first

MESSAGE_BYTES = 64
READ = 1 << 16
LATE_S = 5       # then a connection or an answer is a failure
TALK_EACH_S = 0.4
LOOK_EACH_S = 0.1


# ---- the server, a process ----

def _turn(s):
    """Echo what is there; False: it is over."""
    try:
        data = s.recv(READ)
    except BlockingIOError:
        return True
    if data:
        s.sendall(data)  # a message or two: they fit
    return bool(data)


def serve(pipe):
    """The server."""
    enter_host("server")
    come_first(LOAD_CPU)
    selector, listener = selectors.DefaultSelector(), socket.create_server((SERVER, SERVER_PORT), backlog=4096)
    selector.register(listener, selectors.EVENT_READ)
    pipe.send("listening")
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                s, (host, _) = listener.accept()
                s.setblocking(False)
                s.sendall(f"{host}\n".encode())
                selector.register(s, selectors.EVENT_READ)
                continue
            try:
                goes_on = _turn(key.fileobj)
            except OSError:
                goes_on = False
            if not goes_on:
                selector.unregister(key.fileobj)
                key.fileobj.close()


# ---- the clients, a process ----

class Connection:
    """One connection: it sends a message, and the same bytes must come back behind the name of the node."""

    def __init__(self, number, kind, now):
        self.number, self.kind, self.trips, self.node = number, kind, 0, None
        self.s = socket.socket()
        self.s.setblocking(False)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.got, self.asked_at = b"", now
        error = self.s.connect_ex((VIP, PORT))
        if error not in (0, errno.EINPROGRESS):
            raise OSError(error, os.strerror(error))

    def message(self):
        """Of this round trip: no other one has it."""
        mark = self.number.to_bytes(8, "big") + self.trips.to_bytes(8, "big")
        return mark * (MESSAGE_BYTES // len(mark))

    def connected(self):
        """The first message."""
        error = self.s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
        self.s.send(self.message())

    def ask(self, now):
        """Another round trip, unless one is on its way."""
        if self.asked_at is None:
            self.trips += 1
            self.asked_at = now
            self.s.send(self.message())

    def take(self):
        """Receive; True: a round trip is complete."""
        with suppress(BlockingIOError):
            data = self.s.recv(READ)
            if not data:
                raise ConnectionAbortedError(errno.ECONNABORTED, "an end of file")
            self.got += data
        if self.node is None:
            name, newline, rest = self.got.partition(b"\n")
            if not newline:
                return False
            self.node, self.got = int(name.rpartition(b".")[2]), rest
        if not self.message().startswith(self.got):
            raise ConnectionAbortedError(errno.EBADMSG, "wrong bytes")
        if len(self.got) < MESSAGE_BYTES:
            return False
        self.got, self.asked_at = b"", None
        return True


class Clients:
    """All connections. What each method returns is the answer to a command of that name."""

    def __init__(self, rate):
        self.selector = selectors.DefaultSelector()
        self.rate, self.number, self.held, self.waiting = rate, 0, {}, set()
        self.served, self.failed, self.cut = Counter(), Counter(), Counter()
        self.begun = self.new = 0

    def hold(self, count):
        """Open so many; the first half talks, the other is silent."""
        for i in range(count):
            self._open("talks" if i < count // 2 else "silent")
        return count

    def start(self):
        """From now on new connections come at the rate."""
        self.begun = time.monotonic()
        return True

    def wake(self):
        """All that are silent make a round trip."""
        now = time.monotonic()
        for c in [c for c in self.held.values() if c.kind == "silent"]:
            self._guard(c, c.ask, now)
        return True

    def look(self):
        """What has been since the last look, and (node, kind) of those that are held."""
        found = {"served": self.served, "failed": self.failed, "cut": self.cut, "waiting": len(self.waiting),
                 "held": Counter((c.node, c.kind) for c in self.held.values())}
        self.served, self.failed, self.cut = Counter(), Counter(), Counter()
        return found

    def _open(self, kind):
        self.number += 1
        try:
            c = Connection(self.number, kind, time.monotonic())
        except OSError as error:
            self.failed[error.strerror] += 1
            return
        self.waiting.add(c)
        self.selector.register(c.s, selectors.EVENT_WRITE, c)

    def _end(self, c):
        with suppress(KeyError, ValueError):
            self.selector.unregister(c.s)
        c.s.close()
        self.waiting.discard(c)
        self.held.pop(c.number, None)

    def _guard(self, c, function, *args):
        try:
            return function(*args)
        except OSError as error:
            self._fail(c, error.strerror)
        return None

    def _fail(self, c, why):
        if c.number in self.held:
            self.cut[c.node, c.kind] += 1
        else:
            self.failed[why] += 1
        self._end(c)

    def _event(self, c, events):
        if events & selectors.EVENT_WRITE:
            self.selector.modify(c.s, selectors.EVENT_READ, c)
            c.connected()
            return
        if c.take() and c in self.waiting:
            self.waiting.discard(c)
            if c.kind == "new":
                self.served[c.node] += 1
                self._end(c)
            else:
                self.held[c.number] = c

    def _look_for_late(self, now):
        for c in [c for c in (*self.waiting, *self.held.values()) if c.asked_at is not None]:
            if now - c.asked_at > LATE_S:
                self._fail(c, "no answer")

    def run(self, pipe):
        """Obey commands."""
        talk_at = look_at = 0
        while True:
            if pipe.poll():
                name, *args = pipe.recv()
                pipe.send(getattr(self, name)(*args))
            now = time.monotonic()
            while self.begun and self.new < (now - self.begun) * self.rate:
                self.new += 1
                self._open("new")
            if now >= talk_at:
                talk_at = now + TALK_EACH_S
                for c in [c for c in self.held.values() if c.kind == "talks"]:
                    self._guard(c, c.ask, now)
            if now >= look_at:
                look_at = now + LOOK_EACH_S
                self._look_for_late(now)
            for key, events in self.selector.select(0.002):
                self._guard(key.data, self._event, key.data, events)


def clients(rate, pipe):
    """The process."""
    enter_host("client")
    come_first(LOAD_CPU)
    Clients(rate).run(pipe)
