"""server: servers of our own that fail as they are told, and such that count their connections."""

import contextlib
import mmap
import selectors
import socket
import time

from support import net, program

BREAKDOWNS = ("refuses", "resets", "is full")


class Moody:
    """A server that greets with its name and closes, and breaks down when told.

    It knows when it accepted whom, in `accepted` (seconds as of time.monotonic()).
    """

    def __init__(self, name, address, script=()):
        self.name, self.address = name, address
        self.script = list(script)  # for the first connections, one each: works, resets, ends
        self.mood = "works"
        self.accepted = []
        self.open = contextlib.ExitStack()

    def __enter__(self):
        self._listen()
        return self

    def __exit__(self, *_):
        self.open.close()

    def becomes(self, mood):
        """From now on it "works", "resets" or "ends" after accept, "refuses", or "is full"."""
        self.open.close()
        self.mood = mood
        if mood == "is full":
            self.open.enter_context(full_queue(self.address))
        elif mood != "refuses":
            self._listen()

    def _listen(self):
        listener = self.open.enter_context(net.listen(self.address, 256))
        self.open.callback(listener.shutdown, socket.SHUT_RDWR)
        net.Task(self._serve, listener)

    def _serve(self, listener):
        listener.settimeout(None)
        with contextlib.suppress(OSError):
            while True:
                s, _ = listener.accept()
                self.accepted.append(time.monotonic())
                with s, contextlib.suppress(OSError):
                    self._answer(s, self.script.pop(0) if self.script else self.mood)

    def _answer(self, s, mood):
        if mood == "works":
            s.sendall(self.name.encode())
        elif mood == "resets":
            net.reset(s)


@contextlib.contextmanager
def full_queue(address):
    """A server that accepts nobody and whose queue is full: a connection attempt hangs."""
    with net.listen(address, 0), filled_queue(address):
        yield


@contextlib.contextmanager
def filled_queue(address):
    """Fill the queue of a server that listens with a backlog of 0."""
    family, where = net.parse(address)
    with contextlib.ExitStack() as queued:
        queued.enter_context(net.connect(address))
        for _ in range(3):
            extra = queued.enter_context(socket.socket(family))
            extra.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                extra.connect(where)
        yield


class Counted:
    """An echo server in a process of its own that counts its connections.

    One counts until just before the server closes it, so that another one in its place is never
    one too many. With greets it first sends the address that it was reached at, and a newline.
    """

    def __init__(self, address, greets=False):
        self.address, self.greets = address, greets
        # now, most, total; each is written at once, so that a reader never sees half of it.
        self._counts = memoryview(mmap.mmap(-1, 24)).cast("Q")
        self._open = contextlib.ExitStack()

    def __enter__(self):
        listener = self._open.enter_context(net.listen(self.address, 4096))
        self._open.enter_context(program.forked(self._serve_forever, listener))
        return self

    def __exit__(self, *_):
        self._open.close()

    @property
    def now(self):
        return self._counts[0]

    @property
    def most(self):
        """The most at a time."""
        return self._counts[1]

    @property
    def total(self):
        return self._counts[2]

    def _count(self, change):
        self._counts[0] += change
        self._counts[1] = max(self._counts[0], self._counts[1])
        self._counts[2] += max(change, 0)

    def _serve_forever(self, listener):
        listener.settimeout(0)
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is listener:
                        self._accept(selector, listener)
                    else:
                        self._answer(selector, key.fileobj)

    def _accept(self, selector, listener):
        with contextlib.suppress(BlockingIOError):
            while True:
                s, _ = listener.accept()
                self._count(+1)
                s.settimeout(net.LIMIT_S)
                selector.register(s, selectors.EVENT_READ)
                if self.greets:
                    host = s.getsockname()[0].removeprefix("::ffff:")
                    with contextlib.suppress(OSError):
                        s.sendall(host.encode() + b"\n")

    def _answer(self, selector, s):
        try:
            data = s.recv(net.CHUNK)
            s.sendall(data)
        except OSError:
            data = b""
        if not data:
            selector.unregister(s)
            self._count(-1)
            s.close()
