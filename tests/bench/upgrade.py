#!/usr/bin/env python3
"""
upgrade.py: what becomes of open sessions when the program is replaced, beside HAProxy and nginx.

Sessions of seven kinds are open: silent ones, round trips at a rate, streams both ways, half-closed ones
whose server answers later, blocked ones whose buffers are full, framed ones within a frame, and streams
with a limited bandwidth. Then the program is upgraded once. Each byte is compared. See README.md, "Upgrade with open sessions".
"""

import argparse
import resource
import selectors
import socket
import sys
import time
from contextlib import ExitStack, suppress

from control import GRACE_S, child
from reload.contenders import Haproxy, Nginx, Reactord
from reload.load import usage
from runner.contender import LOAD_CPU
from runner.options import add_servers
from runner.process import BenchError, come_first, free_port
from runner.progress import progress
from runner.table import lines

PING = bytes(range(64))
FRAME = (60).to_bytes(4, "big") + PING[4:]
PATTERN = bytes(i * 7 % 251 for i in range(65521))
READ = 1 << 16
SMALL_BUFFER = 1 << 16
LATE_BYTES = 1 << 15
QUIET_S = 3
FILL_EACH_S = 0.1
KINDS = {"silent": 0.87, "trips": 0.06, "streams": 0.01, "half": 0.02, "blocked": 0.01, "framed": 0.02,
         "limited": 0.01}
STREAMS = ("streams", "limited")


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="An upgrade with open sessions.")
    parser.add_argument("--sessions", type=int, default=5000, help="default: 5000")
    parser.add_argument("--limit", type=float, default=15, help="s to wait for the old process")
    parser.add_argument("--contenders", default="reactord,reactord-no,haproxy,haproxy3,nginx",
                        metavar="NAME,...", help="default: all that can run")
    add_servers(parser, "haproxy", "haproxy3", "nginx")
    return parser.parse_args()


def all_contenders(options):
    """{name: (server, what its configuration has besides)}."""
    found = {"reactord": (Reactord(options.reactord), "upgrade_sessions = yes"),
             "reactord-no": (Reactord(options.reactord), "upgrade_sessions = no"),
             "haproxy": (Haproxy(options.haproxy), ""),
             "haproxy3": (Haproxy(options.haproxy3), ""),
             "nginx": (Nginx(options.nginx), "")}
    for name, (server, _) in found.items():
        kind = {"r": "reactord.ini", "h": "haproxy.cfg", "n": "nginx.conf"}[name[0]]
        server.template = f"sessions-{kind}.in"
    return found


def pattern(offset, length):
    """That part of the endless pattern."""
    offset %= len(PATTERN)
    text = PATTERN[offset:offset + length]
    while len(text) < length:
        text += PATTERN[:length - len(text)]
    return text


# ---- the servers, a process ----

class Peer:
    """A connection of the servers."""

    def __init__(self, s, is_late):
        s.setblocking(False)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.s, self.is_late, self.ended, self.pending = s, is_late, False, b""

    def turn(self):
        """Move what moves; the events to wait for, 0: closed."""
        while True:
            if self.pending:
                try:
                    self.pending = self.pending[self.s.send(self.pending):]
                except BlockingIOError:
                    return selectors.EVENT_WRITE
                continue
            if self.ended:
                if not self.is_late:
                    self.s.close()
                return 0
            try:
                data = self.s.recv(READ)
            except BlockingIOError:
                return selectors.EVENT_READ
            self.ended = not data
            self.pending = b"" if self.is_late else data


def serve(ports, pipe):
    """An echo server, and one that answers an end of file once it is told to."""
    come_first(LOAD_CPU)
    selector, late = selectors.DefaultSelector(), []
    for is_late, port in enumerate(ports):
        s = socket.create_server(("127.0.0.1", port), backlog=4096)
        if is_late == 0:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        selector.register(s, selectors.EVENT_READ, bool(is_late))
    selector.register(pipe, selectors.EVENT_READ, None)
    pipe.send("listening")
    while True:
        for key, _ in selector.select():
            if key.data is None:
                pipe.recv()
                for peer in late:
                    with suppress(OSError), peer.s:
                        peer.s.setblocking(True)
                        peer.s.sendall(pattern(0, LATE_BYTES))
                late = []
                continue
            if isinstance(key.data, Peer):
                peer = key.data
            else:
                peer = Peer(key.fileobj.accept()[0], key.data)
                selector.register(peer.s, selectors.EVENT_READ, peer)
            s = peer.s
            try:
                events = peer.turn()
            except OSError:
                events = 0
                s.close()
            if events:
                selector.modify(s, events, peer)
                continue
            with suppress(KeyError, ValueError):
                selector.unregister(s)
            if peer.is_late and s.fileno() >= 0:
                late.append(peer)


# ---- the clients, a process ----

class Session:
    """One client's session; every method may raise OSError or ValueError, then it counts as cut."""

    def __init__(self, port, kind):
        self.s = socket.socket()
        if kind in (*STREAMS, "blocked"):
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER)
        self.s.settimeout(GRACE_S)
        self.s.connect(("127.0.0.1", port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.kind, self.sent, self.got, self.is_cut = kind, 0, 0, False
        self.message = FRAME if kind == "framed" else PING
        self.asked_at = None

    def put(self):
        """Send of the pattern what the kernel takes; nothing: False."""
        try:
            n = self.s.send(pattern(self.sent, READ))
        except BlockingIOError:
            return False
        self.sent += n
        return True

    def take(self):
        """Receive and compare; nothing: False."""
        try:
            data = self.s.recv(READ)
        except BlockingIOError:
            return False
        if data != pattern(self.got, len(data)):
            raise ValueError("wrong bytes")
        self.got += len(data)
        if not data and self.kind != "half":
            raise ValueError("an end of file")
        return bool(data)

    def ask(self):
        """A whole round trip, or what is left of one, waiting."""
        self.s.settimeout(GRACE_S)
        self.s.sendall(self.message[self.sent:])
        self.sent, got = 0, b""
        while len(got) < len(self.message):
            data = self.s.recv(len(self.message))
            if not data:
                raise ValueError("an end of file")
            got += data
        if got != self.message:
            raise ValueError("wrong bytes")

    def begin(self):
        """Half of a round trip's message."""
        self.sent = len(self.message) // 2
        self.s.sendall(self.message[:self.sent])


class Clients:
    """All sessions of a run."""

    def __init__(self, options, fronts):
        self.all = {kind: [] for kind in KINDS}
        for kind, share in KINDS.items():
            for _ in range(int(options.sessions * share)):
                s = Session(fronts.get(kind, fronts["all"]), kind)
                self.all[kind].append(s)
                if kind in ("silent", "trips", "framed"):
                    s.ask()
                if kind == "framed":
                    s.begin()
        self.selector = selectors.DefaultSelector()
        self.waits = []  # (when, seconds)
        for kind in ("trips", *STREAMS):
            for s in self.all[kind]:
                s.s.setblocking(False)
                self.selector.register(s.s, selectors.EVENT_READ, s)
        for s in self.all["half"]:
            s.s.sendall(PING)
            s.s.shutdown(socket.SHUT_WR)
        self._fill()

    def _fill(self):
        """Block the blocked: until no more is taken for half a second."""
        for s in self.all["blocked"]:
            s.s.setblocking(False)
        quiet_at = time.monotonic() + 0.5
        while time.monotonic() < quiet_at:
            if any([s.put() for s in self.all["blocked"]]):
                quiet_at = time.monotonic() + 0.5
            time.sleep(0.001)

    def run(self, pipe):
        """Round trips, one of each session 10 times a second, and streams, until told to stop."""
        trips, n, fill_at = self.all["trips"], 0, 0
        began = time.monotonic()
        while not pipe.poll():
            now = time.monotonic()
            while n < (now - began) * 10 * len(trips):
                self._begin_trip(trips[n % len(trips)], now)
                n += 1
            if now >= fill_at:
                fill_at = now + FILL_EACH_S
                for s in (s for kind in STREAMS for s in self.all[kind]):
                    if s.sent - s.got < SMALL_BUFFER // 4 and not s.is_cut:
                        self._guard(s, s.put)
            for key, _ in self.selector.select(0.001):
                self._guard(key.data, self._event, key.data)

    def _begin_trip(self, s, now):
        if s.asked_at is None and not s.is_cut:
            s.asked_at = now
            self._guard(s, s.s.send, PING)

    def _event(self, s):
        if s.kind in STREAMS:
            s.take()
            return
        data = s.s.recv(READ)
        if data != PING[s.got:s.got + len(data)] or not data:
            raise ValueError("wrong bytes")
        s.got += len(data)
        if s.got == len(PING):
            self.waits.append((s.asked_at, time.monotonic() - s.asked_at))
            s.asked_at, s.got = None, 0

    def _guard(self, s, function, *args):
        try:
            function(*args)
        except BlockingIOError:
            pass
        except (OSError, ValueError):
            s.is_cut = True
            with suppress(KeyError):
                self.selector.unregister(s.s)

    def finish(self):
        """Everything that was sent must come; (cut, bytes lost)."""
        for s in self.all["silent"] + self.all["framed"]:
            self._guard(s, s.ask)
        for kind in ("trips", *STREAMS, "half", "blocked"):
            for s in self.all[kind]:
                s.s.settimeout(GRACE_S)
                self._guard(s, self._rest, s)
        everybody = [s for sessions in self.all.values() for s in sessions]
        lost = sum(max(0, s.sent - s.got) for s in everybody)
        lost += sum(LATE_BYTES - s.got for s in self.all["half"])
        return sum(s.is_cut for s in everybody), lost

    @staticmethod
    def _rest(s):
        if s.kind == "trips":
            while s.asked_at is not None and s.got < len(PING):
                s.got += len(s.s.recv(READ))
            s.got = 0
            s.ask()
        elif s.kind == "half":
            while s.take():
                pass
            if s.got < LATE_BYTES:
                raise ValueError("too few bytes")
        else:
            while s.got < s.sent:
                s.take()


def clients(options, fronts, pipe):
    """The process: ready; told to stop; the waits; told that the late server answers; what was lost."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
    come_first(LOAD_CPU)
    all_of_them = Clients(options, fronts)
    pipe.send(sum(len(sessions) for sessions in all_of_them.all.values()))
    all_of_them.run(pipe)
    pipe.recv()
    pipe.send(all_of_them.waits)
    pipe.recv()
    pipe.send(all_of_them.finish())


# ---- a run ----

def received(pipe, seconds=4 * GRACE_S):
    """What comes, or an error."""
    if not pipe.poll(seconds):
        raise BenchError("a process of the load does not answer")
    return pipe.recv()


def sockets(pids):
    """Their open descriptors."""
    return usage(pids)[0]


def old_processes(server, before, limit):
    """(seconds until those have ended, None: not within the limit; those that are left)."""
    keeps = {server.child.pid} if isinstance(server, Haproxy) else set()
    began = time.monotonic()
    left = before - keeps
    while left and time.monotonic() < began + limit:
        time.sleep(0.02)
        server.child.poll()
        left &= server.pids()
    return (None if left else time.monotonic() - began), left


def full_buffer_drops():
    """How many segments the kernel has dropped at full receive buffers so far; None: it does not tell."""
    with open("/proc/net/netstat", encoding="ascii") as f:
        names, values = [line.split() for line in f if line.startswith("TcpExt:")]
    return int(dict(zip(names, values))["TCPRcvQDrop"]) if "TCPRcvQDrop" in names else None


def tell_drops(name, before, now):
    """A note if sessions of a row may have stalled for the kernel's sake."""
    if before is not None and now > before:
        print(f"{name}: the kernel dropped {now - before} segments at full receive buffers (TCPRcvQDrop): sessions may "
              f"stall for up to 2 minutes and count as cut, though no program is at fault", file=sys.stderr)


def at(waits, share):
    """A percentile in ms."""
    return f"{sorted(waits)[int(len(waits) * share)] * 1000:.1f}" if waits else "-"


def run_once(name, server, more, options):
    """One row."""
    ports = {key: free_port() for key in ("ECHO", "LATE", "ECHO_FRONT", "LATE_FRONT", "FRAMED_FRONT", "LIMITED_FRONT")}
    fronts = {"all": ports["ECHO_FRONT"], "half": ports["LATE_FRONT"], "framed": ports["FRAMED_FRONT"],
              "limited": ports["LIMITED_FRONT"]}
    with ExitStack() as stack:
        servers = stack.enter_context(child(serve, [ports["ECHO"], ports["LATE"]]))
        received(servers)
        stack.enter_context(server)
        server.write({**ports, "MORE": more})
        server.start(ports["LATE_FRONT"])
        empty = sockets(server.pids())
        load = stack.enter_context(child(clients, options, fronts))
        n = received(load)
        time.sleep(QUIET_S)
        before, upgraded_at = server.pids(), time.monotonic()
        if not server.upgrade():
            raise BenchError(f"{name} refuses an upgrade")
        life, left = old_processes(server, before, options.limit)
        time.sleep(1)
        stayed = min(n, max(0, sockets(left) - empty) // 2) if left else 0
        load.send("enough")
        waits = received(load)
        servers.send("answer")
        load.send("finish")
        cut, lost = received(load, 20 * GRACE_S)
    quiet = [took for when, took in waits if when < upgraded_at]
    beside = [took for when, took in waits if when >= upgraded_at]
    return [name, str(n), str(stayed), str(cut), str(lost), at(quiet, 0.99), at(beside, 0.99), at(beside, 0.9999),
            f"{life:.1f} s" if life is not None else f"more than {options.limit:.0f} s"]


def main():
    """Print the table."""
    options = read_options()
    resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
    found, rows = all_contenders(options), []
    for name in options.contenders.split(","):
        server, more = found[name]
        why = server.why_missing()
        if why:
            print(f"{name}: left out: {why}", file=sys.stderr)
            continue
        progress(name)
        dropped = full_buffer_drops()
        try:
            rows.append(run_once(name, server, more, options))
        except BenchError as error:
            sys.exit(f"upgrade.py: {name}: {error}")
        finally:
            tell_drops(name, dropped, full_buffer_drops())
    print(lines(["server", "sessions", "left with the old process", "cut", "bytes lost",
                 "p99 of round trips before, ms", "from the upgrade on", "p99.99", "life of the old process"],
                rows))


if __name__ == "__main__":
    main()
