"""resize_moves: sessions move as worker loops come and go, and neither client nor server notices."""

import contextlib
import hashlib
import os
import socket
import threading
import time

from support import net
from support.admin import get, post, section
from support.case import check, check_equal, test

SIZES = (4, 2, 1, 3)
KINDS = {
    "echo": "service = echo\n",
    "copied": "splice = off\n",
    "spliced": "splice = on\nidle_timeout = 20s\n",
    "executor": "service = echo\npipeline = executor\n",
}


class Resized:
    """A daemon with a listener of each of these kinds, and a number of workers that changes."""

    def __init__(self, t, kinds=("echo",), options="", boss=None, worker=""):
        self.t, self.admin, self.options, self.boss, self.worker = t, t.path("admin.sock"), options, boss, worker
        self.addresses = {kind: t.address() for kind in {**dict.fromkeys(kinds), "echo": None}}

    def config(self, workers):
        listeners = "".join(
            f"[listen {kind}]\naddress = {address}\n" + KINDS[kind]
            + ("" if "service" in KINDS[kind] else "service = proxy\nupstream = back\n") + self.options
            for kind, address in self.addresses.items())
        boss = "" if self.boss is None else f"[boss]\nthreads = {self.boss}\n"
        return (f"{boss}[worker]\nthreads = {workers}\n{self.worker}" + section(self.admin) + listeners
                + f"[upstream back]\nserver.only = {self.addresses['echo']}\n")

    @contextlib.contextmanager
    def running(self, workers=1):
        with self.t.daemon(self.config(workers)) as daemon:
            self.daemon = daemon
            yield self

    def resize(self, workers):
        self.daemon.reload(self.config(workers))

    def set(self, workers, status=200):
        answer = post(self.admin, "/v1/set", {"workers": workers})
        check_equal(answer.status, status, answer.body)
        return answer.json

    def connections(self):
        """How many each worker loop has."""
        return [loop["connections"] for loop in get(self.admin, "/v1/loops").json["loops"]
                if loop["name"].startswith("work")]

    def workers(self):
        return get(self.admin, "/v1/status").json["workers"]

    def moved(self):
        """Workers in use, what moved because they change, and what stays on others."""
        now = self.workers()
        return now["threads"], now["sessions_moved"], now["staying"]


def stream(address, stop):
    """Send at the pace of the echo until ${stop}, and compare every byte; how many there were."""
    sent, heard, n = hashlib.sha256(), hashlib.sha256(), 0
    with net.connect(address) as s:
        while not stop.is_set():
            data = os.urandom(40000)
            s.sendall(data)
            sent.update(data)
            n += len(data)
            left = len(data)
            while left > 0:
                got = s.recv(65536)
                check(got, f"the end of the stream after {n} bytes")
                heard.update(got)
                left -= len(got)
        s.shutdown(socket.SHUT_WR)
        check_equal(s.recv(1), b"", "the end of the echo")
    check_equal(heard.digest(), sent.digest(), "the bytes that came back")
    return n


@test(timeout=60)
def streams_while_workers_change(t):
    """streams and visits through every kind of listener while reloads change the number of workers: every byte comes
    back, none is cut, and in the end one loop has them all"""
    with Resized(t, list(KINDS)).running() as r:
        stop = threading.Event()
        with contextlib.ExitStack() as stack:
            quiet = [stack.enter_context(net.connect(address)) for address in r.addresses.values() for _ in range(5)]
            for i, s in enumerate(quiet):
                net.exchange(s, b"%02d" % i)
            tasks = [net.Task(stream, address, stop) for address in r.addresses.values() for _ in range(2)]
            tasks += [net.Task(net.visit_until, stop, address) for address in r.addresses.values()]
            for workers in SIZES * 2 + (1,):
                r.resize(workers)
                time.sleep(0.2)
            stop.set()
            check(all(task.result() > 0 for task in tasks), "nothing was done")
            t.eventually(lambda: sum(r.connections()[1:]) == 0, "one loop has all sessions", within=20)
            for i, s in enumerate(quiet):
                check_equal(net.exchange(s, b"%02d" % i), b"%02d" % i, "the echo")
            check(r.workers()["sessions_moved"] > 0, "sessions moved")


@test()
def added_workers_get_a_share(t):
    """the sessions of one loop are on four loops after three were added, the same number on each"""
    with Resized(t).running() as r, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(r.addresses["echo"])) for _ in range(40)]
        for s in clients:
            net.exchange(s, b"hello")
        r.resize(4)
        t.eventually(lambda: r.connections() == [10] * 4, "ten on each", within=20)
        for s in clients:
            check_equal(net.exchange(s, b"again"), b"again", "the echo")


@test()
def what_cannot_move_is_said(t):
    """a client whose PROXY header is not complete stays on its loop: that is in the log and the figures, until it is"""
    options = "accept_proxy = required\ntrusted_proxies = 127.0.0.1\n"
    # a boss deals evenly
    with Resized(t, options=options, boss=1).running(2) as r, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(r.addresses["echo"])) for _ in range(2)]
        for s in clients:
            s.sendall(b"PROXY TCP4 1.2.3.4 ")
        t.eventually(lambda: r.connections() == [1, 1], "one on each")
        r.resize(1)
        t.eventually(lambda: r.daemon.log_lines("workers: 2 -> 1 threads: sessions moved: 0, not yet: 1: preface=1"),
                     "a log line")
        t.eventually(lambda: r.moved() == (1, 0, {"preface": 1}), "the status")
        for s in clients:
            s.sendall(b"5.6.7.8 1 2\r\n")
            check_equal(net.exchange(s, b"hello"), b"hello", "the echo")
        t.eventually(lambda: r.connections() == [2, 0], "it has moved", within=20)
        t.eventually(lambda: r.daemon.log_lines("the threads out of use have no sessions any more"), "a log line")
        check_equal(r.moved(), (1, 1, {}), "the status")
