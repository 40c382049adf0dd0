"""streams: a client and its server, each of which knows every byte that the other one sends.

A stream begins with a line that names it; then each direction is a part of one endless pattern, from a place
of its own. Both parts end with a newline, so that a stream is whole frames, too.
"""

import itertools
import random
import socket
import ssl
import time

from support import net
from support.tls import Peer

BLOCK = b"".join(bytes(part) for part in net.pattern_parts(1 << 20))
TWICE = memoryview(BLOCK * 2)
HEAD = b"soak %08x\n"
HEAD_BYTES = len(HEAD % 0)
PROXY_V2 = b"\r\n\r\n\0\r\nQUIT\n"
READ = 1 << 16
KINDS = ("whole", "whole", "whole", "whole", "whole", "late", "client resets", "server resets")
_ids = itertools.count(1)


class Wrong(Exception):
    """What must not be, whatever was done."""


def part(place, length):
    """That part of the endless pattern, up to READ bytes."""
    place %= len(BLOCK)
    return TWICE[place:place + min(length, READ)]


def to_newline(place, length):
    """At least ${length}, and the last byte is a newline."""
    at = (place + max(length, 1) - 1) % len(BLOCK)
    found = BLOCK.find(b"\n", at)
    return max(length, 1) + (found if found >= 0 else len(BLOCK) + BLOCK.index(b"\n")) - at


class Pipe:
    """A socket that does not block."""

    def __init__(self, s):
        s.setblocking(False)
        self.s, self.is_open, self.is_unix = s, True, s.family == socket.AF_UNIX
        self.early = []  # what was read before its time

    def send(self, data):
        """How many bytes were taken."""
        try:
            return self.s.send(data)
        except BlockingIOError:
            return 0

    def recv(self):
        """Bytes; b"": the end; None: none now."""
        try:
            return self.s.recv(READ)
        except BlockingIOError:
            return None

    def open(self):
        """Go on with the handshake."""

    def flush(self):
        """Send what waits; false: some still waits."""
        return True

    def shut(self):
        self.s.shutdown(socket.SHUT_WR)

    def close(self):
        self.s.close()

    def reset(self):
        if self.is_unix:
            self.s.close()
        else:
            net.reset(self.s)


def header_bytes(data):
    """The length of the PROXY header at the beginning; 0: there is none, None: it is not whole."""
    if data.startswith(PROXY_V2):
        length = 16 + int.from_bytes(data[14:16], "big") if len(data) >= 16 else len(data) + 1
    elif data.startswith(b"PROXY "):
        length = data.find(b"\n") + 1 or len(data) + 1
    else:
        return 0 if len(data) >= len(PROXY_V2) else None
    return length if length <= len(data) else None


class Sealed(Pipe):
    """The same with TLS."""

    def __init__(self, s, context, server=False, name="a.example"):
        super().__init__(s)
        self.peer, self.waiting, self.is_open = Peer(s, context, name, server), b"", False
        self.has_ended = False
        self.header = b"" if server else None  # bytes that may be a PROXY header

    def open(self):
        self.waiting += self.peer.flight()
        self.is_open = self.peer.is_open
        self.flush()

    def flush(self):
        self.waiting += self.peer.outgoing.read()
        if self.waiting:
            self.waiting = self.waiting[super().send(self.waiting):]
        return not self.waiting

    def send(self, data):
        if not self.flush():
            return 0
        self.peer.tls.write(data)
        self.flush()
        return len(data)

    def recv(self):
        if self.early:
            return self.early.pop(0)
        data = self.parts()
        if data is None:
            with_bytes = super().recv()
            if with_bytes is None:
                return None
            if with_bytes:
                self.peer.incoming.write(self.behind_header(with_bytes))
            else:
                self.peer.incoming.write_eof()
            if not self.is_open:
                self.open()
            data = self.parts()
        return data

    def parts(self):
        """The bytes of all records that are there; b"": the end, None: none."""
        if not self.is_open:
            return None
        if self.has_ended:
            return b""
        found, length = [], 0
        while length < READ and (data := self.peer.part()) is not None:
            if not data:
                self.has_ended = True
                break
            found.append(data)
            length += len(data)
        return b"".join(found) if found or self.has_ended else None

    def behind_header(self, data):
        if self.header is None:
            return data
        self.header += data
        length = header_bytes(self.header)
        if length is None:
            return b""
        data, self.header = self.header[length:], None
        return data

    def shut(self):
        # unwrap() would throw away what it finds to read.
        while (data := self.parts()) is not None:
            self.early.append(data)
            if not data:
                break
        self.peer.shut()
        self.flush()


class Stream:
    """What one client and its server do, drawn from the seed; how it ended at both ends."""

    def __init__(self, listener, draw: random.Random):
        self.id, self.listener, self.began = next(_ids), listener, time.monotonic()
        self.kind = draw.choice(KINDS)
        size = int(draw.choice((100, 3000, 30_000, 300_000)) * draw.uniform(0.1, 2) * listener.share)
        self.up_at, self.down_at = draw.randrange(len(BLOCK)), draw.randrange(len(BLOCK))
        self.up = to_newline(self.up_at, size)
        self.down = to_newline(self.down_at, int(size * draw.uniform(0, 2)))
        self.reset_at = draw.randrange(max(self.up if self.kind[0] == "c" else self.down, 2))
        self.chunk = draw.choice((17, 1000, 20_000, READ))
        self.pause_s = draw.choice((0, 0.001, 0.01, 0.1, 1.0))
        self.read_pause_s = draw.choice((0, 0, 0, 0.02, 0.3))
        # So that a stream lasts 8 s and not for ever.
        most = max(self.up, self.down)
        self.chunk = max(self.chunk, int(most * self.pause_s / 8), most // 200)
        self.client = self.server = self.server_name = None
        self.progress = self.began
        self.told = []  # for a failure
        self.broken = []  # (end, kind, when): ends that something must explain

    def server_side(self):
        return self.listener.service == "proxy"


class End:
    """One end of a stream: what it sends and expects. Errors of the socket are the caller's."""

    def __init__(self, stream, pipe, is_client):
        self.stream, self.pipe, self.is_client = stream, pipe, is_client
        self.port = ""
        self.sent = self.got = 0
        self.is_shut = self.has_eof = False
        self.how = None  # how it has ended
        self.greeting, self.server, self.is_mirror, self.has_begun = b"", None, False, False
        self.timer_at = None
        self.wait_until = self.read_at = 0
        self.head = HEAD % stream.id if is_client else b""
        up, down = (stream.up_at, stream.up), (stream.down_at, stream.down)
        self.out_at, self.out = up if is_client else down
        gets_down = is_client and stream.server_side()
        self.expected_head = b"" if gets_down else HEAD % stream.id
        self.in_at, self.want = down if gets_down else up
        self.out, self.want = self.out + len(self.head), self.want + len(self.expected_head)

    def may_send(self, now):
        late = self.stream.kind == "late" and not self.is_client and not self.has_eof
        return not self.is_shut and not late and now >= self.wait_until

    def put(self, now):
        """Send the next piece; false: the kernel takes nothing. True with is_shut: all is sent."""
        if self.sent < self.out:
            left = min(self.stream.chunk, self.out - self.sent)
            data = self.head[self.sent:] or part(self.out_at + self.sent - len(self.head), left)
            n = self.pipe.send(data)
            if not n:
                return False
            self.sent += n
            self.stream.progress = now
            self.wait_until = now + self.stream.pause_s if self.stream.pause_s else 0
        if self.sent < self.out:
            return True
        if not self.is_shut:
            self.is_shut = True
            self.pipe.shut()
        return self.pipe.flush()

    def take(self, data, now):
        """Compare; b"": the end, which must be right; the caller looks at that."""
        if not data:
            self.has_eof = True
            return
        if self.got + len(data) > self.want:
            raise Wrong(f"{self.got + len(data) - self.want} bytes too many")
        at = 0
        while at < len(data):
            if self.got < len(self.expected_head):
                want = self.expected_head[self.got:self.got + len(data) - at]
            else:
                want = part(self.in_at + self.got - len(self.expected_head), len(data) - at)
            if data[at:at + len(want)] != want:
                raise Wrong(f"other bytes behind byte {self.got} of {self.want}: "
                            f"{bytes(data[at:at + 40])!r}, not {bytes(want[:40])!r}")
            at += len(want)
            self.got += len(want)
        self.stream.progress = now

    @property
    def is_whole(self):
        return self.got == self.want

    def __str__(self):
        side = "client" if self.is_client else f"server {self.stream.server_name}"
        return (f"{side} {self.port}: sent {self.sent} of {self.out}{', end' * self.is_shut}, "
                f"got {self.got} of {self.want}{', end' * self.has_eof}, {self.how or 'open'}")


BROKEN = (ConnectionError, ssl.SSLError, TimeoutError)
