#!/usr/bin/env python3
"""
load.py ADDRESS PORT SECONDS RATE SESSIONS: clients of a pair; every byte is compared.

RATE times a second a client connects, sends a message, has it echoed, and closes. SESSIONS others
stay and do a round trip every 100 ms; one that is cut connects again. Prints JSON: new, a list of
[begun, seconds, None or why it failed]; cuts, a list of [when, why].
"""

import heapq
import json
import os
import selectors
import socket
import sys
import time

LIMIT_S = 10
TRIP_S = 0.1
AGAIN_S = 0.3
BYTES = 200


class Client:
    """A connection, from connect to the answer; then a new one closes, and a session waits."""

    def __init__(self, load, is_session):
        self.load, self.is_session = load, is_session
        self.s = None
        self.connect()

    def connect(self):
        """Begin."""
        self.begun = time.monotonic()
        self.step, self.got = "connect", b""
        self.message = os.urandom(BYTES)
        self.s = socket.socket()
        self.s.setblocking(False)
        self.s.connect_ex(self.load.target)
        self.load.selector.register(self.s, selectors.EVENT_WRITE, self)
        self.limit()

    def limit(self):
        """End this attempt when it takes too long."""
        begun = self.begun
        self.load.at(begun + LIMIT_S, lambda: begun == self.begun and self.s
                     and self.step != "idle" and self.end(f"{self.step}: no answer"))

    def ask(self):
        """Send the next message."""
        self.begun, self.got, self.step = time.monotonic(), b"", "exchange"
        self.message = os.urandom(BYTES)
        try:
            self.s.send(self.message)
            self.limit()
        except OSError as error:
            self.end(f"exchange: {error.strerror}")

    def event(self):
        """The socket can be used."""
        try:
            if self.step == "connect":
                error = self.s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise OSError(error, os.strerror(error))
                self.step = "exchange"
                self.load.selector.modify(self.s, selectors.EVENT_READ, self)
                self.s.send(self.message)
                return
            data = self.s.recv(4096)
        except BlockingIOError:
            return
        except OSError as error:
            self.end(f"{self.step}: {error.strerror}")
            return
        self.got += data
        if not data:
            self.end(f"{self.step}: end of file")
        elif self.got != self.message[:len(self.got)]:
            self.end("wrong bytes")
        elif len(self.got) == len(self.message):
            self.answered()

    def answered(self):
        """All came back."""
        if not self.is_session:
            self.end(None)
            return
        self.step = "idle"
        s = self.s
        self.load.at(self.begun + TRIP_S, lambda: self.s is s and self.ask())

    def end(self, why):
        """Close, and say why."""
        self.load.selector.unregister(self.s)
        self.s.close()
        self.s = None
        now = time.monotonic()
        if not self.is_session:
            self.load.new.append([self.begun, now - self.begun, why])
            return
        if not self.load.is_over:
            if self.step != "connect":
                self.load.cuts.append([now, why])
            self.load.at(now + AGAIN_S, lambda: self.load.is_over or self.connect())


class Load:
    """All clients."""

    def __init__(self, target, sessions):
        self.target, self.selector = target, selectors.DefaultSelector()
        self.timers, self.number, self.is_over = [], 0, False
        self.new, self.cuts = [], []
        for _ in range(sessions):
            Client(self, True)

    def at(self, when, function):
        """Call it then."""
        self.number += 1
        heapq.heappush(self.timers, (when, self.number, function))

    def turn(self, wait_s):
        """Run what is due."""
        for key, _ in self.selector.select(wait_s):
            key.data.event()
        while self.timers and self.timers[0][0] <= time.monotonic():
            heapq.heappop(self.timers)[2]()

    def run(self, seconds, rate):
        """The clients come, and the last are waited for."""
        begun, n = time.monotonic(), 0
        while time.monotonic() < begun + seconds:
            while n < (time.monotonic() - begun) * rate:
                Client(self, False)
                n += 1
            self.turn(0.001)
        while len(self.new) < n:
            self.turn(0.1)
        self.is_over = True


def main():
    """Run, and print."""
    address, port, seconds, rate, sessions = sys.argv[1:]
    load = Load((address, int(port)), int(sessions))
    load.run(float(seconds), float(rate))
    json.dump({"new": load.new, "cuts": load.cuts}, sys.stdout)


if __name__ == "__main__":
    main()
