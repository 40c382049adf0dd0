"""backend: epoll fails, spins, or will not watch a descriptor, while clients are in the middle of
transfers."""

import contextlib
import errno
import os
import random
import signal
import socket
import time

from support import net, preload, program
from support.case import check, check_equal, test
from support.net import Task
from support.watch import Watch
from test_proxy import proxy

MIB = 1024 * 1024
# What a client has sent and not heard is more than the kernel takes from the daemon for it (tcp_wmem:
# 4 MiB, and hardly anything at the client's end), so the daemon is in the middle of it. The rest is
# sent behind the fault.
HEARD, SENT, ALL = 1 * MIB, 7 * MIB, 8 * MIB
RCVBUF = 65536
CALM_S = 1  # BACKEND_CURE_NS in engine/backend.h
NEEDS = ("cc",)

WORKER, BOSS = "work-2-1", "boss-1-1"
WITH_BOSS = "[boss]\nthreads = 1\n"


class Setup:
    """A daemon with one worker and a preloaded library, an echo and a proxy before an echo server."""

    def __init__(self, t, stack, worker="", process=""):
        self.t = t
        self.faults = preload.Preload(t, "backend_fault")
        back = stack.enter_context(program.echo_server(t))
        self.echo, self.front = t.address(), t.address()
        config = (f"[reactord]\n{process}\n[worker]\nthreads = 1\n{worker}\n"
                  f"[listen echo]\naddress = {self.echo}\nservice = echo\n"
                  + proxy(self.front, back))
        self.daemon = stack.enter_context(t.daemon(config, environment=self.faults.environment()))
        self.waker = stack.enter_context(net.connect(self.echo))
        net.exchange(self.waker, b"so that the worker runs")

    def plan(self, fault, times=preload.ALWAYS, **how):
        """The next such calls of the worker, unless another thread is named, go wrong."""
        self.faults.plan(fault, times, **{"thread": WORKER, **how})

    def strike(self, fault, times=preload.ALWAYS, **how):
        """The same, and wait until the first has gone wrong, which takes something to do."""
        self.plan(fault, times, **how)
        self.waker.sendall(b"x")
        self.t.eventually(lambda: self.faults.struck(fault), "the fault struck")

    def serves(self):
        """New clients are served at both doors."""
        for address in (self.echo, self.front):
            with net.connect(address) as client:
                check_equal(net.exchange(client, b"new"), b"new", "the echo for a new client")

    def expect_lines(self, thread=WORKER, **wanted):
        """The log has so many lines of each kind about the thread's polls, no more and no fewer."""
        patterns = {"rebuilt": "its epoll instance is rebuilt",
                    "not_rebuilt": "its epoll instance cannot be rebuilt",
                    "slowed": "the loop is slowed down", "over": "polling for events succeeds again"}
        for kind, pattern in patterns.items():
            found = self.daemon.log_lines(rf"loop {thread}: .*{pattern}")
            check_equal(len(found), wanted.get(kind, 0), f"lines '{pattern}'")

    def statistic(self, name):
        """One of the worker's counters."""
        return self.daemon.counts(WORKER)[name]

    def load(self, seconds):
        """Seconds of processor time a second that the daemon uses, from now on."""
        began, used = time.monotonic(), self.daemon.cpu_s()
        time.sleep(seconds)
        return (self.daemon.cpu_s() - used) / (time.monotonic() - began)


class Transfer:
    """A client in the middle of what it has to say."""

    def __init__(self, address):
        self.data = random.randbytes(ALL)
        self.client = net.connect(address, RCVBUF)
        self.sender = Task(self.client.sendall, self.data[:SENT])
        self.heard = net.read_exactly(self.client, HEARD)

    def _send_rest(self):
        self.sender.result()
        self.client.sendall(self.data[SENT:])
        self.client.shutdown(socket.SHUT_WR)

    def finish(self):
        """The rest; all of it is what it should be, and behind it is the end."""
        sender = Task(self._send_rest)
        rest = net.read_to_end(self.client)
        sender.result()
        check(self.heard + rest == self.data, "the bytes that came back are others")
        self.client.close()

    def was_reset(self):
        """Did it end so? A socket tells it once: to who sends or to who receives."""
        ending = net.ending(self.client)
        try:
            self.sender.result()
        except (ConnectionResetError, BrokenPipeError):
            return True
        return ending == "reset"


def transfers(setup):
    """Clients in the middle of what they have to say, two at each door."""
    return [Transfer(address) for address in (setup.echo, setup.front) for _ in range(2)]


def finish(running):
    """All at once, as the daemon has to serve them all."""
    for task in [Task(transfer.finish) for transfer in running]:
        task.result()


def idle_clients(setup, stack):
    """Clients with an open session, three at each door: nothing of them is about to be watched anew."""
    clients = [stack.enter_context(net.connect(address))
               for address in (setup.echo, setup.front) for _ in range(3)]
    for client in clients:
        net.exchange(client, b"hello")
    return clients


def alive(clients):
    """Those that are still served; the others were reset."""
    found = []
    for client in clients:
        try:
            check_equal(net.exchange(client, b"still"), b"still", "the echo")
            found.append(client)
        except (ConnectionResetError, BrokenPipeError):
            pass
    return found


# ---- polls that fail or bring nothing ----

# What goes wrong for as long as the test says so, and the cause that is logged.
LASTING = [{"what": "fails", "fault": preload.WAIT_FAILS,
            "cause": "epoll_wait: Bad file descriptor"},
           {"what": "returns at once with nothing", "fault": preload.WAIT_EMPTY,
            "cause": "epoll_wait returns early without events"}]


@test(needs=NEEDS, each=[
    {"what": "epoll_wait fails once", "fault": preload.WAIT_FAILS,
     "cause": "epoll_wait: Bad file descriptor"},
    {"what": "the epoll instance is gone", "fault": preload.INSTANCE_GONE,
     "cause": "epoll_wait: Invalid argument"}])
def one_failure(t, what, fault, cause):
    """{what} in the middle of transfers: it is rebuilt once, said once, and every byte arrives"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack)
        running = transfers(setup)
        setup.strike(fault, 1, value=errno.EBADF)
        finish(running)
        setup.serves()
        setup.expect_lines(rebuilt=1)
        check(setup.daemon.log_lines(f"warning .*: {cause}; its epoll instance is rebuilt"), what)
        check_equal(setup.statistic("rebuilds"), 1, "rebuilds")


@test(needs=NEEDS, each=[{"count": 400, "rebuilds": 0}, {"count": 1000, "rebuilds": 1}])
def some_empty_polls(t, count, rebuilds):
    """{count} polls in a row that return at once with nothing lead to {rebuilds} rebuilds, and every
    byte arrives"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack)
        running = transfers(setup)
        # They bring no events. On a busy machine a timer may still end the row: once more then.
        for _ in range(10 if rebuilds else 1):
            setup.strike(preload.WAIT_EMPTY, count)
            t.eventually(lambda: setup.faults.struck(preload.WAIT_EMPTY) == count, "all of them")
            if setup.daemon.log_lines("its epoll instance is rebuilt"):
                break
        finish(running)
        setup.serves()
        setup.expect_lines(rebuilt=rebuilds)
        check_equal(setup.statistic("rebuilds"), rebuilds, "rebuilds")


@test(needs=NEEDS)
def no_threshold(t):
    """rebuild_threshold = 0: polls that return at once with nothing are let do so, and every byte
    arrives in the end"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack, worker="rebuild_threshold = 0")
        running = transfers(setup)
        setup.strike(preload.WAIT_EMPTY)
        t.eventually(lambda: setup.faults.struck(preload.WAIT_EMPTY) > 5000, "many of them")
        setup.faults.stop(preload.WAIT_EMPTY)
        finish(running)
        setup.serves()
        setup.expect_lines()
        check_equal(setup.statistic("rebuilds"), 0, "rebuilds")


@test(needs=NEEDS, timeout=60, each=LASTING)
def lasting_fault(t, what, fault, cause):
    """epoll_wait {what} for seconds: the loop is slowed down and uses little processor time, says so
    once, and goes on with every byte"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack)
        running = transfers(setup)
        setup.strike(fault, value=errno.EBADF)
        t.eventually(lambda: setup.daemon.log_lines("the loop is slowed down"), "it is slowed down")
        late = stack.enter_context(net.connect(setup.echo))
        late.sendall(b"late")
        used = setup.load(2.5)
        check(used < 0.5, f"it used {used:.2f} s of processor time a second")
        rebuilds = setup.statistic("rebuilds")
        check(2 <= rebuilds <= 10 * t.scale, f"{rebuilds} rebuilds in some seconds")
        setup.expect_lines(rebuilt=1, slowed=1)
        check(setup.daemon.log_lines(f"error .*: {cause}, and rebuilding"), f"no cause why it {what}")
        setup.faults.stop(fault)
        check_equal(net.read_exactly(late, 4), b"late", "the echo for a client that came meanwhile")
        finish(running)
        time.sleep(CALM_S)
        setup.serves()
        setup.expect_lines(rebuilt=1, slowed=1, over=1)


@test(needs=NEEDS, each=LASTING)
def boss(t, what, fault, cause):
    """a boss whose epoll_wait {what} for a second lets new clients wait and serves them then; the
    worker notices nothing"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack, process=WITH_BOSS)
        running = transfers(setup)
        setup.plan(fault, thread=BOSS, value=errno.EBADF)
        clients = [stack.enter_context(net.connect(setup.echo)) for _ in range(5)]
        for client in clients:
            client.sendall(b"hello")
        t.eventually(lambda: setup.daemon.log_lines("the loop is slowed down"), "it is slowed down")
        finish(running)
        setup.faults.stop(fault)
        for client in clients:
            check_equal(net.read_exactly(client, 5), b"hello", "the echo")
        time.sleep(CALM_S)
        setup.serves()
        setup.expect_lines(BOSS, rebuilt=1, slowed=1, over=1)
        check(setup.daemon.log_lines(rf"loop {BOSS}: {cause}"), f"no cause why it {what}")
        setup.expect_lines(WORKER)


@test(needs=NEEDS)
def episodes(t):
    """failures within a second are one episode in the log, one after a calm second is the next"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack)
        setup.strike(preload.WAIT_FAILS, 3, value=errno.EBADF)
        setup.serves()
        time.sleep(CALM_S)
        setup.serves()
        setup.expect_lines(rebuilt=1, slowed=1, over=1)
        setup.strike(preload.WAIT_FAILS, 1, value=errno.EBADF)
        setup.serves()
        setup.expect_lines(rebuilt=2, slowed=1, over=1)


@test(needs=NEEDS, each=[{"name": name, **lasting} for name in ("SIGTERM", "SIGINT")
                         for lasting in LASTING])
def stop_during_fault(t, name, what, fault, cause):
    """while epoll_wait {what} in every thread, {name} ends the daemon with exit code 0, and clients
    are reset"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack, process="drain_timeout = 1s")
        running = transfers(setup)
        setup.strike(fault, thread="", value=errno.EBADF)
        check(t.eventually(lambda: setup.daemon.log_lines(cause), "it is noticed"), what)
        setup.daemon.stop(getattr(signal, name), within_s=4)
        for transfer in running:
            check(transfer.was_reset(), "a transfer did not end with a reset")


# ---- descriptors that cannot be watched ----

@test(needs=NEEDS, each=[{"door": "echo", "which": "client", "skip": 0},
                         {"door": "front", "which": "connection to the server", "skip": 0},
                         {"door": "front", "which": "client", "skip": 1}])
def new_connection(t, door, which, skip):
    """a {which} that epoll has no memory for costs the new client of {door} its connection, visibly,
    and nobody else"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack)
        clients = idle_clients(setup, stack)
        setup.plan(preload.ADD_FAILS, 1, value=errno.ENOMEM, skip=skip)
        check_equal(net.fate(getattr(setup, door)), "reset", f"the end of the client ({which})")
        check_equal(setup.faults.struck(preload.ADD_FAILS), 1, "faults")
        check_equal(alive(clients), clients, "those who are served")
        setup.serves()
        setup.expect_lines()


@test(needs=NEEDS)
def paused_connection(t):
    """a connection that cannot be watched again after back-pressure is reset on both sides"""
    front, back = t.address(), t.address()
    faults = preload.Preload(t, "backend_fault")
    config = "[worker]\nthreads = 1\n" + proxy(front, back)
    with net.listen(back) as listener, t.daemon(config, environment=faults.environment()) as daemon:
        with net.proxied(front, listener) as other, \
                net.proxied(front, listener) as (client, server):
            net.fill(client)
            faults.plan(preload.ADD_FAILS, 1, value=errno.ENOMEM, thread=WORKER)
            check_equal(net.ending(server), "reset", "the end of the server's side")
            check(net.wait_cut(client, net.LIMIT_S), "the client is not reset")
            check_equal(faults.struck(preload.ADD_FAILS), 1, "faults")
            other[0].sendall(b"still")
            check_equal(net.read_exactly(other[1], 5), b"still", "what another session carries")
        check(daemon.running(), "it has ended")


@test(needs=NEEDS, each={"skip": [1, 2, 5, 10]})
def connection_lost_in_a_rebuild(t, skip):
    """a rebuild that has no memory for descriptor {skip} of 10 costs its client the connection, and no
    other"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack, process=WITH_BOSS)
        clients = [setup.waker, *idle_clients(setup, stack)]
        # The loop's own descriptor is the first that is added.
        setup.plan(preload.ADD_FAILS, 1, value=errno.ENOMEM, skip=skip)
        setup.plan(preload.WAIT_FAILS, 1, value=errno.EBADF)
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):  # it may be the one
            net.exchange(setup.waker, b"x")
        t.eventually(lambda: setup.faults.struck(preload.ADD_FAILS), "both faults struck")
        # A connection that waited long for its server has the hang-up watch among the descriptors.
        lost = 0 if setup.daemon.log_lines("cannot be watched for a reset") else 1
        check_equal(len(alive(clients)), len(clients) - lost, "those who are served")
        setup.serves()
        setup.expect_lines(rebuilt=1)


@test(needs=NEEDS)
def wake_up_lost_in_a_rebuild(t):
    """a rebuild of a worker that has no memory for the descriptor that wakes it, ten times, delays
    nobody"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack)
        setup.plan(preload.ADD_FAILS, 10, value=errno.ENOMEM)
        setup.plan(preload.WAIT_FAILS, 1, value=errno.EBADF)
        setup.waker.close()  # its loop has nothing left to watch but its own descriptor
        t.eventually(lambda: setup.faults.struck(preload.ADD_FAILS) == 10, "all faults struck")
        watch = Watch()
        setup.serves()
        watch.expect(0, 2 * t.scale, "the new clients had to wait")
        setup.expect_lines(rebuilt=1)


@test(needs=NEEDS)
def listeners_lost_in_a_rebuild(t):
    """a boss that has no memory to watch anything after a rebuild, 20 times, pauses and accepts again"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack, process=WITH_BOSS)
        running = transfers(setup)
        setup.plan(preload.ADD_FAILS, 20, value=errno.ENOMEM, thread=BOSS)
        setup.plan(preload.WAIT_FAILS, 1, value=errno.EBADF, thread=BOSS)
        setup.serves()
        finish(running)
        check_equal(setup.faults.struck(preload.ADD_FAILS), 20, "faults")
        for pattern in ("cannot accept: Cannot allocate memory", "accepting again"):
            t.eventually(lambda p=pattern: len(setup.daemon.log_lines(p)) == 2, f"'{pattern}' twice")
        setup.expect_lines(BOSS, rebuilt=1)
        setup.expect_lines(WORKER)


# ---- no epoll instance to be had ----

@test(needs=NEEDS, each=[{"loop": "first", "skip": 0}, {"loop": "third", "skip": 2}])
def start_without(t, loop, skip):
    """when the {loop} loop gets no epoll instance, the start ends with exit code 3 and the reason"""
    faults = preload.Preload(t, "backend_fault")
    faults.plan(preload.CREATE_FAILS, 1, value=errno.EMFILE, skip=skip)
    path = t.write("c.ini", f"[worker]\nthreads = 4\n[listen echo]\naddress = {t.address()}\n"
                            "service = echo\n")
    done = t.reactord("-c", path, env={**os.environ, **faults.environment()})
    check_equal(done.code, 3, f"exit code without the {loop} loop")
    check("Too many open files" in done.err, f"stderr: {done.err}")


@test(needs=NEEDS)
def no_second_instance(t):
    """a rebuild that gets no epoll instance keeps the one it has, says so once, and every byte
    arrives"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack)
        running = transfers(setup)
        setup.plan(preload.CREATE_FAILS, 1, value=errno.EMFILE)
        setup.strike(preload.WAIT_FAILS, 1, value=errno.EBADF)
        finish(running)
        setup.serves()
        setup.expect_lines(not_rebuilt=1)
        check(setup.daemon.log_lines("cannot be rebuilt: Too many open files"), "no reason")
        check_equal(setup.statistic("rebuilds"), 0, "rebuilds")


@test(needs=NEEDS)
def instance_taken_by_another(t):
    """a rebuild whose descriptor is taken in its middle tries until there is one, with little
    processor time, says so, and every byte arrives"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack)
        running = transfers(setup)
        setup.plan(preload.CREATE_FAILS, value=errno.EMFILE, skip=1)  # the first call only looks
        setup.strike(preload.WAIT_FAILS, 1, value=errno.EBADF)
        t.eventually(lambda: setup.faults.struck(preload.CREATE_FAILS), "the second fault struck")
        used = setup.load(1)
        check(used < 0.5, f"it used {used:.2f} s of processor time a second")
        setup.faults.stop(preload.CREATE_FAILS)
        finish(running)
        setup.serves()
        lines = setup.daemon.log_lines("cannot create an epoll instance: Too many open files")
        check(1 <= len(lines) <= 3 * t.scale, f"{len(lines)} lines about it, one a second is allowed")
        setup.expect_lines(rebuilt=1)


@test(needs=NEEDS, timeout=60)
def neither_polls_nor_instances(t):
    """epoll_wait fails and no instance is to be had, for seconds: little processor time, one line of
    each kind, and every byte arrives in the end"""
    with contextlib.ExitStack() as stack:
        setup = Setup(t, stack)
        running = transfers(setup)
        setup.plan(preload.CREATE_FAILS, value=errno.EMFILE)
        setup.strike(preload.WAIT_FAILS, value=errno.EBADF)
        used = setup.load(2.5)
        check(used < 0.5, f"it used {used:.2f} s of processor time a second")
        setup.expect_lines(not_rebuilt=1, slowed=1)
        setup.faults.stop(preload.WAIT_FAILS)
        setup.faults.stop(preload.CREATE_FAILS)
        finish(running)
        time.sleep(CALM_S)
        setup.serves()
        setup.expect_lines(not_rebuilt=1, slowed=1, over=1)
