"""everything: all that a listener can do at once, under load, with clients of every kind; what it has it gives back."""

import asyncio
import contextlib
import errno
import itertools
import os
import random
import re
import signal
import socket
import struct
import threading
import time

from support import net, program
from support.case import check, check_equal, test

CLIENTS = 16  # at a time
PLACES = 24
PER_HOST = 12  # more than a client takes, whose places are given back behind the ends of its connections
FRAME_MOST = 20000
FEW = 64  # descriptors: some 40 are there without clients
LOAD_S, END_S = 5, 1
BREAKS = (errno.ECONNRESET, errno.EPIPE, errno.ECONNREFUSED, errno.ENOTCONN)

CONFIG = """
[reactord]
allow_faults = yes
drain_timeout = 2s
max_buffered = {max_buffered}
[boss]
threads = 2
[worker]
threads = 4
[executor]
threads = 2
[listen front]
address = {front}
reuseport = 2
service = proxy
upstream = back
mirror = copy
mirror_buffer = 64k
pipeline = {pipeline}
executor_delay = 100us
idle_all = 10s
send_buffer = 16k
fault_delay = 1ms
fault_jitter = 2ms
fault_percent = 30
bandwidth_in = 4m
listener_bandwidth_in = 32m
listener_bandwidth_out = 32m
accept_proxy = required
trusted_proxies = 127.0.0.1
max_connections = {places}
max_connections_per_client = {per_host}
over_limit = wait
access_log = {access_log}
[upstream back]
server.a = {back}
spare = 2
[upstream copy]
server.a = {copy}
"""


async def echo(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(net.CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


async def take(reader, writer):
    """What a mirror does: take all of it, now and then late or not to the end."""
    mood = random.random()
    with contextlib.suppress(OSError):
        if mood < 0.2:
            await reader.read(1000)
            writer.transport.abort()
        elif mood < 0.4:
            await asyncio.sleep(0.5)
        while await reader.read(net.CHUNK):
            pass
    writer.close()


def serve_both(back, copy):
    async def serve():
        await asyncio.start_server(echo, sock=back)
        await asyncio.start_server(take, sock=copy)
        await asyncio.Event().wait()
    asyncio.run(serve())


@contextlib.contextmanager
def servers(back, copy):
    """A server and its mirror, in a process of their own."""
    with net.listen(back, 512) as one, net.listen(copy, 512) as other:
        one.setblocking(False)
        other.setblocking(False)
        with program.forked(serve_both, one, other):
            yield


class Client(threading.Thread):
    """One connection after the other, each of some kind, until it is told to stop."""

    KINDS = ("whole", "whole", "whole", "resets", "mute", "no header", "cut off", "leaves", "late")

    def __init__(self, front, number, may_break):
        super().__init__(daemon=True)
        self.front, self.may_break = front, may_break
        self.host = f"10.0.0.{number}"
        self.random = random.Random(number)
        self.stopping = threading.Event()
        self.done = dict.fromkeys(self.KINDS, 0)
        self.broken = 0
        self.error = None
        self.start()

    def run(self):
        try:
            while not self.stopping.is_set():
                self._once(self.random.choice(self.KINDS))
        except BaseException as error:  # told by end()
            self.error = error

    def _once(self, kind):
        try:
            with net.connect(self.front, rcvbuf=4096 if kind == "late" else None) as s:
                self._be(s, kind)
            self.done[kind] += 1
        except OSError as error:
            self.broken += 1
            time.sleep(0.01)
            if error.errno not in BREAKS or (kind in ("whole", "late") and not self.may_break.is_set()):
                raise

    def _be(self, s, kind):
        if kind == "mute":
            return
        if kind == "no header":
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            check_equal(net.ending(s), "reset", "the end of one without a header")
            return
        s.sendall(header(self.host))
        if kind in ("whole", "late"):
            self._echo(s, late_s=0.3 if kind == "late" else 0)
            return
        sent = self._frames(self.random.randrange(1, 8))
        s.sendall(sent)
        if kind == "leaves":
            return
        if kind == "cut off":
            s.sendall(b"\0\0\1\0half of it")
            s.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                got = net.read_to_end(s)
                check_equal(len(got), -1, "bytes before a clean end of one that is cut off")
            return
        if self.random.random() < 0.5:
            net.read_exactly(s, 1)
        net.reset(s)

    def _frames(self, count):
        return b"".join(frame(self.random.randbytes(self.random.choice((5, 300, FRAME_MOST))))
                        for _ in range(count))

    def _echo(self, s, late_s):
        """Frames there and back, the last of them behind an end of file; all of them, or a reset."""
        for last in [False] * self.random.randrange(4) + [True]:
            sent = self._frames(self.random.randrange(1, 12) if late_s == 0 else 30)
            sending = net.Task(s.sendall, sent)
            time.sleep(late_s)
            if last and late_s == 0:
                sending.result()
                s.shutdown(socket.SHUT_WR)
            try:
                got = net.read_exactly(s, len(sent))
            except EOFError:
                sending.result()  # a reset is told once: to who sends, if it was faster
                raise
            finally:
                sending.join()
            check(got == sent, "other bytes came back")
        if late_s > 0:
            s.shutdown(socket.SHUT_WR)
        check_equal(s.recv(1), b"", "what follows the last byte")

    def end(self):
        self.stopping.set()
        self.join(net.LIMIT_S)
        check(not self.is_alive(), "a client hangs")
        if self.error:
            raise self.error


def end_all(clients):
    for client in clients:
        client.stopping.set()
    for client in clients:
        client.end()
    done = {kind: sum(client.done[kind] for client in clients) for kind in Client.KINDS}
    print(done, "broken:", sum(client.broken for client in clients))
    return done


def warm_up(front):
    """Have all threads started."""
    for number in range(8):
        with net.connect(front) as s:
            served(s, f"10.0.3.{number}")


def header(host):
    return f"PROXY TCP4 {host} 127.0.0.1 1000 7\r\n".encode()


def frame(content):
    return struct.pack(">I", len(content)) + content


COUNTED = ("sessions", "connections", "buffered", "tasks_pending", "waiting_bytes", "waiting")


def left(daemon):
    """What SIGRTMIN says is still there."""
    return [f"{key} in {line}" for line in daemon.statistics()
            for key, value in re.findall(r"(\w+)=(\d+)", line) if key in COUNTED and int(value) != 0]


def descriptors(daemon):
    """Those in use but for spare connections, which few descriptors may close for a while."""
    spares = re.search(r"\bspares=(\d+)", "\n".join(daemon.statistics("server back/a")))
    return daemon.fd_count() - int(spares[1])


def settled(t, daemon):
    """Their number when it has been the same for a second: mirrors end and spare connections begin a moment later."""
    seen = [descriptors(daemon)]
    end = time.monotonic() + 8 * t.scale
    while time.monotonic() < end and len(set(seen[-6:])) + (len(seen) < 6) > 1:
        time.sleep(0.2)
        seen.append(descriptors(daemon))
    return seen[-1]


def all_given_back(t, daemon, fds):
    """Until nothing is left of any session."""
    found = left(daemon)
    end = time.monotonic() + 8 * t.scale
    while time.monotonic() < end and (found or descriptors(daemon) != fds):
        time.sleep(0.2)
        found = left(daemon)
    check_equal(found, [], "left")
    check_equal(descriptors(daemon), fds, "descriptors without spare connections")


def served(s, host):
    s.sendall(header(host) + frame(b"hello"))
    check_equal(net.read_exactly(s, 9), frame(b"hello"), "the echo")


def places_are_exact(front):
    """As many clients as there are places are served, and no more; and of one host as many as it may have."""
    with contextlib.ExitStack() as stack:
        clients = []
        for number in range(PLACES):
            clients.append(stack.enter_context(net.connect(front)))
            served(clients[-1], f"10.0.1.{number // PER_HOST}")
        with net.connect(front) as waits:
            waits.sendall(header("10.0.2.1") + frame(b"hello"))
            waits.settimeout(0.5)
            with contextlib.suppress(TimeoutError):
                check_equal(waits.recv(1), None, "what a client above max_connections hears")
            waits.settimeout(net.LIMIT_S)
            clients[0].close()
            check_equal(net.read_exactly(waits, 9), frame(b"hello"), "the echo when there is room")
            clients[1].close()
            with net.connect(front) as too_many:
                too_many.sendall(header("10.0.1.1"))
                check_equal(net.ending(too_many), "reset", "one that is too many of its host")


def disturb(daemon, log, until):
    """The signals an administrator sends, until then; how often the log was moved."""
    for number in itertools.count():
        if time.monotonic() > until:
            return number
        os.rename(log, f"{log}.{number}")
        daemon.send_signal(signal.SIGUSR1)
        time.sleep(0.3)
        daemon.send_signal(signal.SIGRTMIN)
        time.sleep(0.2)


def each_is_logged_once(directory):
    """The access log, in however many files, has a whole line of each connection."""
    lines = [line for path in directory.glob("access.log*") for line in path.read_text().splitlines()]
    torn = [line for line in lines if len(line.split()) != len(lines[0].split())]
    check_equal(torn, [], "lines with other fields")
    numbers = sorted(int(line.split()[1]) for line in lines)
    check_equal(numbers, list(range(1, len(lines) + 1)), "the numbers of connections")


@test(timeout=60, each=[
    {"pipeline": "log, frame, idle, executor", "memory": "enough", "files": "enough"},
    {"pipeline": "executor, frame, log, idle", "memory": "little", "files": "enough"},
    {"pipeline": "idle, frame, executor, log", "memory": "enough", "files": "few"}])
def at_once(t, pipeline, memory, files):
    """pipeline = {pipeline}, bandwidths, a mirror, PROXY headers, delays, limits, spare connections and an access log, with
    {memory} memory and {files} descriptors: what comes back is whole or visibly broken, everything is given back, and it
    ends cleanly under load"""
    front, back, copy, log = t.address(), t.address(), t.address(), t.path("access.log")
    config = CONFIG.format(front=front, back=back, copy=copy, pipeline=pipeline, access_log=log, places=PLACES,
                           per_host=PER_HOST, max_buffered="64m" if memory == "enough" else "1m")
    may_break = threading.Event()
    if memory == "little":
        may_break.set()
    with servers(back, copy), t.daemon(config, nofile=FEW if files == "few" else None) as daemon:
        warm_up(front)
        t.eventually(lambda: not left(daemon), "the first sessions have ended", within=8)
        fds = settled(t, daemon)
        clients = [Client(front, number, may_break) for number in range(CLIENTS)]
        disturb(daemon, log, time.monotonic() + LOAD_S)
        done = end_all(clients)
        check(all(done.values()), f"not every kind of client was there: {done}")
        check(memory == "enough" or daemon.log_lines("overload is over"), "memory was enough")
        all_given_back(t, daemon, fds)
        if files == "enough":
            places_are_exact(front)
            all_given_back(t, daemon, fds)
        else:
            check(daemon.log_lines("no descriptors are left|too many open files"), "descriptors were enough")
        clients = [Client(front, number, may_break) for number in range(CLIENTS)]
        time.sleep(END_S)
        may_break.set()
        daemon.send_signal(signal.SIGTERM)
        check_equal(daemon.wait(), 0, "the exit code")
        end_all(clients)
    each_is_logged_once(t.dir)


STORM = """
[boss]
threads = 2
[worker]
threads = 3
[listen echo]
address = {address}
reuseport = 2
service = echo
max_connections = 12
connection_rate = 100000/s
over_limit = {over}
max_connections_per_client = 12
"""


def storm(address, seconds):
    """Clients that come many at a time, and go at any moment."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(socket.socket()) for _ in range(60)]
            for number, s in enumerate(clients):
                s.setblocking(False)
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    s.connect(net.parse(address)[1])
                with contextlib.suppress(OSError):
                    s.send(b"hello")
                if number % 3 == 0:
                    net.reset(s)
                elif number % 3 == 1:
                    time.sleep(0.001)


def all_echo(address, clients):
    """So many clients, each of which was served, in a stack; None: one was not."""
    with contextlib.ExitStack() as stack:
        try:
            for _ in range(clients):
                s = stack.enter_context(net.connect(address))
                if net.exchange(s, b"hello") != b"hello":
                    return None
        except ConnectionError:
            return None
        return stack.pop_all()


@test(timeout=60, each={"over": ["wait", "close", "reset"]})
def storms(t, over):
    """over_limit = {over}, two boss threads: after a storm of clients that come and go there are as many places as before,
    and no more, and in the middle of one it ends"""
    address = t.address()
    with t.daemon(STORM.format(address=address, over=over)) as daemon:
        storm(address, 1.5)
        t.eventually(lambda: daemon.counts("listen echo ")["sessions"] == 0, "all have gone")
        # The kernel's queue may still have clients of the storm.
        with t.eventually(lambda: all_echo(address, 12), "there are 12 places"):
            limit_s = 0.5 if over == "wait" else net.LIMIT_S
            with contextlib.suppress(TimeoutError, ConnectionError), \
                    net.connect(address, limit_s=limit_s) as extra:
                extra.sendall(b"hello")
                check_equal(extra.recv(1), b"", "what one too many hears")
        stormy = net.Task(storm, address, 1)
        time.sleep(0.5)
    stormy.result()
