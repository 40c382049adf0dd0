"""client: one connection to an echo server, and how long it takes to answer."""

import socket
import struct
import time

from runner.process import BenchError


class Client:
    """A connection; a context manager."""

    def __init__(self, port, limit_s):
        self.limit_s = limit_s
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=limit_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Let go of the connection, by reset: nothing stays behind. A second call does nothing."""
        if self.socket.fileno() >= 0:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.socket.close()

    def say(self):
        """Send one byte."""
        self.socket.send(b"x")

    def hear(self, limit_s):
        """Did the byte come back within ${limit_s}?"""
        self.socket.settimeout(max(limit_s, 0.0001))
        try:
            answer = self.socket.recv(1)
        except TimeoutError:
            return False
        except OSError as error:
            raise BenchError(f"the connection broke: {error}") from error
        if answer != b"x":
            raise BenchError(f"the server answered {answer!r}")
        return True

    def trip_ms(self):
        """The time a byte takes there and back; None when that is longer than the limit."""
        begun_at = time.monotonic()
        self.say()
        if not self.hear(self.limit_s):
            return None
        return (time.monotonic() - begun_at) * 1000


def visit_ms(port, limit_s):
    """The time from connecting to the first byte back; None when that is longer than ${limit_s}."""
    begun_at = time.monotonic()
    with Client(port, limit_s) as client:
        if client.trip_ms() is None:
            return None
        return (time.monotonic() - begun_at) * 1000


def worst_of(trips):
    """The longest; None, a trip that did not end, is longer than any."""
    trips = list(trips)
    return None if None in trips else max(trips)
