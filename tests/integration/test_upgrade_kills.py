"""upgrade_kills: kill -9 of the old or the new process at every call by which sessions change hands: each session goes
on in one process, with every byte, or has ended at both ends because the process that had it was killed.

All stages: make test-kills. Otherwise a tenth, drawn from a seed that a failure tells: FAULT_SEED=N repeats it,
KILL="sends 12 5000" is the only stage, with that lag.
"""

import contextlib
import os
import random
import re
import signal
import socket
import threading
import time

from support import descriptors, fault_plan, net, preload
from support.admin import get, section
from support.case import Failed, check, check_equal, test
from support.chain import Chain, exchange_once
from support.daemon import alive
from support.net import Task
from test_upgrade_sessions import FRAMED, TAKES, handed_over

# As in preload/kill_fault.c.
CALLS = ("sends", "receives", "received", "closes", "watches")
VICTIMS = ("old", "new")
OLD = len(VICTIMS) * len(CALLS)
LAG, SESSION, TAKEN, REFUSED = range(OLD + 1, OLD + 5)

COUNT = 1 << 30  # calls to pass on: more than there are
LAGS_US = (0, 5000)  # of receivers; when they lag, messages are under way when a process is killed
CUT = (ConnectionError, EOFError)
PATTERN = random.Random(30).randbytes((1 << 20) + 7)
ANSWER = PATTERN[:100_000]
PART = 16 * 1024
PACE_S = 0.001
WAYS = ("splice = on", "splice = off", "bandwidth_in = 100m")
NONE_LOOKS = 20  # in a row without a process: none is left


def pattern(at, n):
    at %= len(PATTERN)
    return (PATTERN[at:at + n] + PATTERN)[:n]


class Received:
    """The bytes of a pattern that have come: each is compared."""

    def __init__(self, sock):
        self.sock, self.n = sock, 0

    def some(self):
        data = self.sock.recv(net.CHUNK)
        if not data:
            raise EOFError(f"the end after {self.n} bytes")
        check(data == pattern(self.n, len(data)), f"wrong bytes behind {self.n}")
        self.n += len(data)


# ---- sessions ----

class Session:
    """A client and its server; goes_on() tells what has become of it."""

    def __init__(self, client, server=None):
        self.client, self.server = client, server
        self.begin()

    def begin(self):
        pass

    def try_all(self):
        """Have all bytes come, in both directions? Or one of CUT."""
        self.client.sendall(b"again")
        check_equal(net.read_exactly(self.server, 5), b"again", "what the server got")
        self.server.sendall(b"there")
        check_equal(net.read_exactly(self.client, 5), b"there", "what the client got")

    def goes_on(self):
        """False: both ends have ended. A session that is stuck is an error."""
        try:
            self.try_all()
            return True
        except CUT:
            for end in filter(None, (self.client, self.server)):
                self.wait_end(end)
            return False
        except TimeoutError as error:
            raise Failed(f"a session is stuck: {type(self).__name__}") from error

    def wait_end(self, end):
        with contextlib.suppress(ConnectionError):
            while end.recv(net.CHUNK):
                pass

    def close(self):
        for end in filter(None, (self.client, self.server)):
            end.close()


class Framed(Session):
    """In the middle of a frame."""

    def begin(self):
        net.exchange(self.client, b"\0\5first")
        self.client.sendall(b"\0\5ag")

    def try_all(self):
        self.client.sendall(b"ain")
        check_equal(net.read_exactly(self.client, 7), b"\0\5again", "the frame")


class HalfClosed(Session):
    """The client has said all; the server answers later."""

    def begin(self):
        self.client.sendall(b"request")
        self.client.shutdown(socket.SHUT_WR)
        check_equal(net.read_to_end(self.server), b"request", "what the server got")

    def try_all(self):
        answer = Task(self.server.sendall, ANSWER)
        received = Received(self.client)
        while received.n < len(ANSWER):
            received.some()
        answer.result()
        self.server.shutdown(socket.SHUT_WR)
        check_equal(self.client.recv(1), b"", "behind the answer")

    def wait_end(self, end):
        """The server has read an end before: what it sends tells."""
        deadline = time.monotonic() + net.LIMIT_S
        with contextlib.suppress(ConnectionError):
            while end is self.server:
                check(time.monotonic() < deadline, "the server does not notice the end")
                end.send(b"?")
                time.sleep(PACE_S)
        super().wait_end(end)


class Blocked(Session):
    """All buffers between the client and a server that does not read are full; or of an echo, and the client does not
    read: a drain would end one that is quiet."""

    def begin(self):
        self.sent, refused = 0, 0
        self.client.setblocking(False)
        while refused < 5:
            try:
                self.sent += self.client.send(pattern(self.sent, net.CHUNK))
                refused = 0
            except BlockingIOError:
                refused += 1
                time.sleep(0.02)
        self.client.settimeout(net.LIMIT_S)

    def try_all(self):
        received = Received(self.server or self.client)
        while received.n < self.sent:
            received.some()
        if self.server:
            super().try_all()
        else:
            check_equal(net.exchange(self.client, b"again"), b"again", "the echo")


class Stream(Session):
    """The client sends all the time, and the server reads."""

    def begin(self):
        self.over = threading.Event()
        self.received = Received(self.server)
        self.sender, self.receiver = Task(self.send), Task(self.receive)

    def send(self):
        sent = 0
        while not self.over.is_set():
            self.client.sendall(pattern(sent, PART))
            sent += PART
            time.sleep(PACE_S)
        self.client.shutdown(socket.SHUT_WR)
        return sent

    def receive(self):
        with contextlib.suppress(EOFError):
            while True:
                self.received.some()
        return self.received.n

    def try_all(self):
        self.over.set()
        received, sent = self.receiver.result(), self.sender.result()
        if received < sent:
            raise EOFError("of the stream")
        check_equal(received, sent, "bytes of the stream")
        self.server.sendall(b"all")
        check_equal(net.read_exactly(self.client, 3), b"all", "the answer")


# ---- processes ----

class Place:
    """A chain of processes with sessions of each kind."""

    def __init__(self, t, stack, faults, addresses):
        self.t, self.faults = t, faults
        back, self.echo, self.framed, *fronts = addresses
        self.fronts = dict(zip(WAYS, fronts))
        self.path, self.admin = t.path("echo.sock"), t.path("admin.sock")
        listeners = "".join(f"[listen front-{i}]\naddress = {front}\nservice = proxy\nupstream = back\n{way}\n"
                            for i, (way, front) in enumerate(self.fronts.items()))
        faults.clear()
        self.listener = stack.enter_context(net.listen(back, rcvbuf=net.CHUNK))
        self.chain = stack.enter_context(Chain(
            t, f"{TAKES}[worker]\nthreads = 2\n{section(self.admin)}{listeners}[upstream back]\nserver.only = {back}\n"
               f"[listen echo]\naddress = {self.echo}, {self.path}\nservice = echo\n"
               f"[listen framed]\naddress = {self.framed}\nservice = echo\n{FRAMED}",
            environment=faults.environment()))
        exchange_once(self.echo)
        get(self.admin, "/v1/status")
        self.descriptors = self.kinds_of_descriptors()
        self.sessions = []
        stack.callback(lambda: [session.close() for session in self.sessions])
        self.begin()

    def begin(self):
        self.sessions += [Blocked(net.connect(self.echo)), Blocked(net.connect(self.path)), Framed(net.connect(self.framed))]
        for front in self.fronts.values():
            for kind in (Session, HalfClosed, Blocked, Stream):
                client = net.connect(front)
                self.sessions.append(kind(client, net.accept(self.listener)))

    def kinds_of_descriptors(self):
        """How many sockets, pipes and memory files the process has."""
        kinds = [link.partition(":")[0] for link in descriptors.of_process(self.chain.pid).values()]
        return {kind: sum(word.startswith(kind) for word in kinds) for kind in ("socket", "pipe", "/memfd")}

    def upgrade(self, kill):
        """Until one process is left; ${kill}: (victim, call, calls to pass on, lag), None: only count. Has it struck?

        None is left if the new process is killed when the old one has ended.
        """
        self.faults.plan(OLD, 0, value=self.chain.pid)
        self.faults.plan(LAG, 0, value=kill[3] if kill else 0)
        for n in range(OLD):
            self.faults.plan(n, 1, skip=COUNT)
        if kill:
            self.faults.plan(fault_of(*kill[:2]), 1, skip=kill[2])
        first = self.chain.pid
        os.kill(first, signal.SIGUSR2)
        left = self.wait_over(first, kill)
        self.faults.stop_all()
        time.sleep(PACE_S)
        left = self.wait_over(first, kill)  # it may have struck in between
        self.is_left = left is not None
        self.chain.pid = left or first
        self.chain.old += [first] * (first != left)
        return self.has_struck(kill)

    def has_struck(self, kill):
        return bool(kill and self.faults.struck(fault_of(*kill[:2])))

    def wait_over(self, first, kill):
        """The process that is left when one has ended; None: none is."""
        looks = []

        def is_over():
            looks.append(self.chain.processes())
            left, killed = looks[-1], self.has_struck(kill)
            if killed and kill[0] == "new":
                ended = not set(left) - {first}
            else:
                ended = first not in left
            # one that is being executed is not seen for a moment
            is_certain = left or (len(looks) > NONE_LOOKS and not any(looks[-NONE_LOOKS:]))
            return ended and len(left) < 2 and is_certain and (left or [None])
        return self.chain.eventually(is_over, "one process is left", 30)[0]

    def range_of(self, kind):
        """How many messages of that kind were sent at least, and at most."""
        return self.faults.struck(kind), self.faults.left(kind)

    def judge(self, victim, is_killed):
        """Each session goes on, unless the process that had it was killed."""
        n, replaced = len(self.sessions), bool(self.chain.lines("has replaced this one"))
        self.fates = [(type(session).__name__, session.goes_on()) for session in self.sessions]
        served = sum(fate for _, fate in self.fates)
        given, taken = self.range_of(SESSION), self.range_of(TAKEN)
        check_equal(self.range_of(REFUSED), (0, 0), "sessions that were refused")
        least, most = n, n
        if is_killed and victim == "new":
            least, most = n - taken[1], n - taken[0]
        elif is_killed:
            least, most = given
        check(least <= served <= most, f"{served} of {n} sessions are served, not {least} to {most}: {self.fates}")
        if not self.is_left:
            check_equal((victim, taken), ("new", (n, n)), "who was killed as the last, and what it had")
        elif is_killed and victim == "new" and replaced:
            self.drains(given, taken)
        else:
            self.serves(n, served)

    def drains(self, given, taken):
        """The old process has counted what the new one took, and ends with its last session."""
        if given[0] > 0:
            moved, _ = handed_over(self.chain, self.chain.pid)
            check(taken[0] <= moved <= taken[1], f"{moved} were handed over, not {taken}")
        for session in self.sessions:
            session.close()
        self.chain.wait_gone(self.chain.pid)

    def serves(self, n, served):
        """The process that is left serves others, has nothing left of these, and has counted all."""
        exchange_once(self.echo)
        for session in self.sessions:
            session.close()
        self.t.eventually(lambda: self.has_counted(n + 2, n - served), f"the counters: {self.counters()}")
        self.t.eventually(lambda: self.has_closed(),
                          f"descriptors: {self.kinds_of_descriptors()}, before: {self.descriptors}")
        self.chain.stop()

    def has_closed(self):
        """A new process keeps one socket to the old one, for threads that log; pipes for splice() may be more."""
        now, more = self.kinds_of_descriptors(), len(self.chain.old)
        return now["socket"] <= self.descriptors["socket"] + more and now["/memfd"] <= self.descriptors["/memfd"]

    def counters(self):
        return {row["name"]: {key: row[key] for key in ("sessions", "sessions_total", "ended")}
                for row in get(self.admin, "/v1/listeners").json["listeners"]}

    def has_counted(self, n, errors):
        """All ${n} have ended, ${errors} of them as the process that had them did."""
        rows = self.counters().values()
        return (all(row["sessions"] == 0 and row["sessions_total"] == sum(row["ended"].values()) for row in rows)
                and sum(row["sessions_total"] for row in rows) == n
                and sum(row["ended"]["error"] for row in rows) == errors)


def fault_of(victim, call):
    return VICTIMS.index(victim) * len(CALLS) + CALLS.index(call)


def run(t, faults, addresses, kill):
    """One upgrade: how many calls of each kind there were, and was a process killed?"""
    with contextlib.ExitStack() as stack:
        place = Place(t, stack, faults, addresses)
        is_killed = place.upgrade(kill)
        calls = {(victim, call): COUNT - faults.left(fault_of(victim, call)) for victim in VICTIMS for call in CALLS}
        place.judge(kill and kill[0], is_killed)
    t.daemons.remove(place.chain.daemon)
    place.chain.daemon.notify_path.unlink()
    os.unlink(place.chain.program)  # a process that was killed may have threads yet
    return calls, is_killed


def stages(t, victim, calls):
    """(the seed, the stages of one victim): all, or a tenth of them."""
    if os.environ.get("KILL"):
        call, skip, lag = os.environ["KILL"].split()
        return None, [(victim, call, int(skip), int(lag))]
    seed = fault_plan.seed_of()
    draw = random.Random(f"{seed} {victim}")
    found = [(victim, call, skip, draw.choice(LAGS_US)) for call in CALLS for skip in range(calls[victim, call])]
    draw.shuffle(found)
    return seed, found if t.options.long else found[:len(found) // fault_plan.SHARE]


@test(needs=("cc",), each={"victim": VICTIMS}, timeout=900, plain_only=True)
def kill(t, victim):
    """the {victim} process is killed at any call of a hand-off: each session goes on with every byte, or has ended
    with that process; the other one has counted all, and nothing is left over"""
    faults = preload.Preload(t, "kill_fault")
    addresses = [t.address() for _ in range(3 + len(WAYS))]
    calls, _ = run(t, faults, addresses, None)
    seed, plan = stages(t, victim, calls)
    print(f"FAULT_SEED={seed}: {len(plan)} of {sum(n for (who, _), n in calls.items() if who == victim)} stages")
    killed = 0
    for stage in plan:
        try:
            killed += run(t, faults, addresses, stage)[1]
        except Exception as error:
            raise Failed(f"FAULT_SEED={seed} KILL=\"{' '.join(map(str, stage[1:]))}\": {error}") from error
    check(seed is None or killed > len(plan) // 2, f"FAULT_SEED={seed}: only {killed} of {len(plan)} were killed")
