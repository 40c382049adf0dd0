"""load: clients that notice whatever a reload does to them."""

import hashlib
import os
import random
import re
import socket
import subprocess
import threading
import time
from dataclasses import dataclass

BLOCK = random.Random(1).randbytes(1 << 16)
REQUEST = b"GET /small HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"


@dataclass
class Told:
    """What the clients had to tell."""

    connects: int = 0
    failed_connects: int = 0
    failed_requests: int = 0
    streams_cut: int = 0
    idle_cut: int = 0
    bytes_sent: int = 0
    bytes_lost: int = 0
    p99_ms: float = 0.0
    requests: int = 0


class Client(threading.Thread):
    """A thread until it is told to stop."""

    def __init__(self):
        super().__init__(daemon=True)
        self.going = True

    def stop(self):
        """Have it end, and wait for that."""
        self.going = False
        self.join(30)


class Stream(Client):
    """Sends blocks through an echo, and compares each."""

    def __init__(self, port):
        super().__init__()
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.sent = self.back = 0
        self.cut = False
        self.start()

    def run(self):
        try:
            while self.going:
                self.socket.sendall(BLOCK)
                self.sent += len(BLOCK)
                got = bytearray()
                while len(got) < len(BLOCK):
                    piece = self.socket.recv(len(BLOCK) - len(got))
                    if not piece:
                        raise ConnectionError("ended")
                    got += piece
                if hashlib.sha256(got).digest() != hashlib.sha256(BLOCK).digest():
                    raise ConnectionError("other bytes")
                self.back += len(BLOCK)
                time.sleep(0.01)
        except OSError:
            self.cut = True
        self.socket.close()


class Visitor(Client):
    """A new connection for each request."""

    def __init__(self, port, pause_s=0.005):
        super().__init__()
        self.port, self.pause_s = port, pause_s
        self.connects = self.failed_connects = self.failed_requests = 0
        self.start()

    def run(self):
        while self.going:
            self.connects += 1
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
                    self._ask(s)
            except OSError:
                self.failed_connects += 1
            time.sleep(self.pause_s)

    def _ask(self, s):
        answer = b""
        try:
            s.sendall(REQUEST)
            while piece := s.recv(65536):
                answer += piece
        except OSError:
            pass
        if not answer.startswith(b"HTTP/1.1 200"):
            self.failed_requests += 1


def idle(port, count):
    """Connections that say nothing."""
    return [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(count)]


def count_cut(connections):
    """How many of these have ended."""
    cut = 0
    for s in connections:
        s.setblocking(False)
        try:
            s.recv(1)
            cut += 1
        except BlockingIOError:
            pass
        except OSError:
            cut += 1
        s.close()
    return cut


class Wrk:
    """wrk for so many seconds."""

    def __init__(self, port, seconds, connections):
        self.process = subprocess.Popen(
            ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s", "--latency",
             "--timeout", "10s", f"http://127.0.0.1:{port}/small"],
            stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)

    def result(self, told):
        """Add what it found to ${told}."""
        text, _ = self.process.communicate(timeout=60)
        found = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
        scale = {"us": 0.001, "ms": 1, "s": 1000}
        told.p99_ms = float(found[1]) * scale[found[2]] if found else float("nan")
        found = re.search(r"(\d+) requests in", text)
        told.requests = int(found[1]) if found else 0
        found = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)",
                          text)
        if found:
            told.failed_connects += int(found[1])
            told.failed_requests += sum(int(number) for number in found.groups()[1:])
        found = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
        told.failed_requests += int(found[1]) if found else 0


def usage(pids):
    """Descriptors and resident KiB of these processes together."""
    fds = rss = 0
    for pid in pids:
        try:
            fds += len(os.listdir(f"/proc/{pid}/fd"))
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
                rss += next(int(line.split()[1]) for line in rollup if line.startswith("Pss:"))
        except (OSError, StopIteration):
            pass
    return fds, rss
