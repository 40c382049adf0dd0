"""net: client and server sockets as the tests want them.

Addresses are written as in reactord's configuration: 127.0.0.1:7, [::1]:7, /run/x.sock, @abstract.
"""

import contextlib
import fcntl
import hashlib
import os
import random
import select
import socket
import struct
import termios
import threading
import time

from support import descriptors

LIMIT_S = 30  # for any single step of a socket; a hang fails the test
OR_CUT = (BlockingIOError, ConnectionError)  # for fill()
CHUNK = 65536

# A length that is no multiple of any buffer's, so that bytes shifted or repeated by one show.
_BLOCK = random.Random(7007).randbytes(1024 * 1024 + 7)


def parse(address):
    """Family and socket address of the written form."""
    if address.startswith("@"):
        return socket.AF_UNIX, "\0" + address[1:]
    if address.startswith("/"):
        return socket.AF_UNIX, address
    host, _, port = address.rpartition(":")
    if host.startswith("["):
        return socket.AF_INET6, (host[1:-1], int(port))
    return socket.AF_INET, (host, int(port))


def connect(address, rcvbuf=None, limit_s=LIMIT_S):
    """A client connection."""
    family, where = parse(address)
    s = socket.socket(family)
    try:
        s.settimeout(limit_s)
        if rcvbuf:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        s.connect(where)
    except BaseException:
        s.close()
        raise
    return s


def listen(address, backlog=128, rcvbuf=None):
    """A server's listening socket."""
    family, where = parse(address)
    s = socket.socket(family)
    if rcvbuf:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(where)
    s.listen(backlog)
    s.settimeout(LIMIT_S)
    return s


def accept(listener, limit_s=LIMIT_S):
    """The next connection of a listener."""
    s, _ = listener.accept()
    s.settimeout(limit_s)
    return s


@contextlib.contextmanager
def proxied(front, listener):
    """Both ends of a session through the proxy: the client's socket and the server's."""
    with connect(front) as client:
        # The proxy connects upstream when it has the client, not when the client speaks.
        with accept(listener) as server:
            yield client, server


def reset(s):
    """Abort the connection: the peer gets an RST."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def read_exactly(s, count):
    parts, missing = [], count
    while missing:
        part = s.recv(min(missing, CHUNK))
        if not part:
            raise EOFError(f"end of stream with {missing} of {count} bytes missing")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def read_to_end(s):
    """All bytes up to the peer's FIN; an RST raises ConnectionResetError."""
    parts = []
    while part := s.recv(CHUNK):
        parts.append(part)
    return b"".join(parts)


def ending(s):
    """How the connection ends, its bytes aside: "fin" or "reset"."""
    try:
        while s.recv(CHUNK):
            pass
        return "fin"
    except (ConnectionResetError, BrokenPipeError):
        return "reset"


def sent_away(connect_to, *where, says=b""):
    """How a client that says this ends: a reset may come before connect() has looked."""
    try:
        with connect_to(*where) as s:
            s.sendall(says)
            return ending(s)
    except (ConnectionResetError, BrokenPipeError):
        return "reset"


def fill(s, until=BlockingIOError):
    """Send until nothing more is taken, in 15 tries of 20 ms: a clock goes on when nobody else is run. Or until
    the connection is cut, if that is one of the errors in ${until}."""
    s.setblocking(False)
    refused = 0
    while refused < 15:
        try:
            s.send(bytes(CHUNK))
            refused = 0
        except until as error:
            refused = 15 if isinstance(error, ConnectionError) else refused + 1
            time.sleep(0.02)
    s.settimeout(LIMIT_S)


def wait_cut(s, limit_s):
    """Wait until the connection is reset (unix: closed), read nothing; returns whether it was."""
    poll = select.poll()
    poll.register(s, 0)  # POLLERR and POLLHUP come unasked, and not for a FIN
    return bool(poll.poll(limit_s * 1000))


def unacknowledged(s):
    """How many bytes were written to a TCP socket that its peer's kernel does not have yet."""
    answer = fcntl.ioctl(s, termios.TIOCOUTQ, struct.pack("i", 0))
    return struct.unpack("i", answer)[0]


def unread(s):
    """How many bytes were written to a socket that its peer's program, on this machine, has not read."""
    if s.family == socket.AF_UNIX:
        return unacknowledged(s)
    here, there = (f":{port:04X}" for port in (s.getsockname()[1], s.getpeername()[1]))
    with open("/proc/net/tcp6" if s.family == socket.AF_INET6 else "/proc/net/tcp", encoding="ascii") as f:
        for line in f:
            _, local, remote, _, queues = line.split()[:5]
            if local.endswith(there) and remote.endswith(here):
                return unacknowledged(s) + int(queues.partition(":")[2], 16)
    return 0


def exchange(s, message):
    """Send, and read as much back."""
    s.sendall(message)
    return read_exactly(s, len(message))


def visit_until(over, address, pause_s=0):
    """Connect, exchange and close, again and again until ${over} is set; how often."""
    n = 0
    while not over.is_set():
        message = b"%06d" % n
        with connect(address) as client:
            answer = exchange(client, message)
        if answer != message:
            raise ValueError(f"echo of {message}: got {answer}")
        n += 1
        time.sleep(pause_s)
    return n


def fate(address):
    """How a new connection that says nothing ends: "fin", or "reset", even within connect."""
    try:
        with connect(address) as s:
            return ending(s)
    except ConnectionResetError:
        return "reset"


class Task(threading.Thread):
    """A function on a thread of its own; result() gives what it gave, or raises what it raised."""

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.function, self.arguments = function, arguments
        self.value = self.error = None
        self.start()

    def run(self):
        try:
            self.value = self.function(*self.arguments)
        except BaseException as error:  # handed to result()
            self.error = error

    def result(self, limit_s=120):
        self.join(limit_s)
        if self.is_alive():
            raise TimeoutError(f"{self.function.__name__} did not end within {limit_s} s")
        if self.error:
            raise self.error
        return self.value


def pattern_sha256(total, block=_BLOCK):
    """The hash of the first bytes of the pattern stream."""
    digest = hashlib.sha256()
    whole, rest = divmod(total, len(block))
    for _ in range(whole):
        digest.update(block)
    digest.update(block[:rest])
    return digest.hexdigest()


def pattern_parts(total, sizes=(CHUNK,)):
    """The first ${total} bytes of the pattern, in parts of these sizes in turn."""
    view = memoryview(_BLOCK * 2)
    sent = turn = 0
    while sent < total:
        start = sent % len(_BLOCK)
        size = min(sizes[turn % len(sizes)], total - sent, len(_BLOCK))
        yield view[start:start + size]
        sent += size
        turn += 1


def send_pattern(s, total, sizes=(CHUNK,), finish=True):
    """Send the first ${total} bytes of the pattern, in writes of these sizes in turn, then FIN."""
    for part in pattern_parts(total, sizes):
        s.sendall(part)
    if finish:
        s.shutdown(socket.SHUT_WR)
    return total


def receive_sha256(s, total, stalls=()):
    """Read ${total} bytes; stalls are (after so many bytes, so many seconds) pairs, in order."""
    digest, got, stalls = hashlib.sha256(), 0, list(stalls)
    buffer = bytearray(4 * CHUNK)
    view = memoryview(buffer)
    while got < total:
        if stalls and got >= stalls[0][0]:
            time.sleep(stalls.pop(0)[1])
        count = s.recv_into(view[:min(len(buffer), total - got)])
        if not count:
            raise EOFError(f"end of stream after {got} of {total} bytes")
        digest.update(view[:count])
        got += count
    return digest.hexdigest()


def receive_slowly(s, total, seconds):
    """Read ${total} bytes in small equal steps that take so many seconds together."""
    steps = int(seconds / 0.05)
    digest, got = hashlib.sha256(), 0
    while got < total:
        time.sleep(seconds / steps)
        part = s.recv(min(-(-total // steps), total - got))
        if not part:
            raise EOFError(f"end of stream after {got} of {total} bytes")
        digest.update(part)
        got += len(part)
    return digest.hexdigest()


def _listening_inodes(port):
    inodes = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as f:
            next(f)
            for line in f:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.append(fields[9])
    return inodes


def listening(port):
    """How many sockets listen on that port, without connecting to it; IPv4 and IPv6 together."""
    return len(_listening_inodes(port))


def listens(pid, port):
    """Does that process have a socket that listens on that port? No if it has ended."""
    wanted = [f"socket:[{inode}]" for inode in _listening_inodes(port)]
    return any(link in wanted for link in descriptors.of_process(pid).values())
