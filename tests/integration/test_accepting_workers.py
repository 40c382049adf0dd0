"""accepting_workers: threads = 0 of [boss]: each worker accepts from sockets of its own, with all that bosses keep to."""

import contextlib
import errno
import os
import select
import threading
import time

from support import net, preload, thread
from support.case import check, check_equal, test
from support.chain import Chain
from support.net import Task

CLIENTS = 3


def config(address, boss=0, workers=3, options="", sections=""):
    return (f"{sections}[boss]\nthreads = {boss}\n[worker]\nthreads = {workers}\n"
            f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n")


def names(pid):
    return {name for name in thread.ids(pid) if name.startswith(("boss", "work"))}


@contextlib.contextmanager
def churning(address):
    """Clients come and go meanwhile: each is served."""
    over = threading.Event()
    tasks = [Task(net.visit_until, over, address) for _ in range(CLIENTS)]
    try:
        yield tasks
    finally:
        over.set()
        served = [task.result() for task in tasks]
    check(min(served) > 0, f"served: {served}")


def open_by_worker(daemon):
    return [daemon.counts(f"work-2-{i} ")["connections"] for i in (1, 2, 3)]


def is_served(address):
    with contextlib.suppress(ConnectionResetError), net.connect(address) as client:
        return net.exchange(client, b"hello") == b"hello"


@test()
def no_boss(t):
    """there is no boss thread, and each worker has a socket; a unix socket's clients come to all workers, too"""
    address, path = t.address(), f"{t.dir}/s"
    with t.daemon(config(f"{address}, {path}")) as daemon:
        check_equal(net.listening(int(address.rpartition(":")[2])), 3, "sockets")
        check_equal(names(daemon.pid), {f"work-2-{i}" for i in (1, 2, 3)}, "threads")
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(net.connect(path)) for _ in range(12)]
            for client in clients:
                net.exchange(client, b"hello")
            t.eventually(lambda: all(n > 0 for n in open_by_worker(daemon)), "each worker has some")


@test()
def few_long_connections(t):
    """of nine connections that stay, each of three workers gets some: the kernel's hash alone would not see to that"""
    address = t.address()
    with t.daemon(config(address)) as daemon, contextlib.ExitStack() as stack:
        for _ in range(9):
            net.exchange(stack.enter_context(net.connect(address)), b"hello")
        found = open_by_worker(daemon)
        check(sum(found) == 9 and max(found) - min(found) <= 3, f"connections: {found}")


@test()
def limits(t):
    """max_connections is kept by all workers together, and who waits is served when others go"""
    address = t.address()
    with t.daemon(config(address, options="max_connections = 4")) as daemon:
        clients = [net.connect(address) for _ in range(16)]
        for client in clients:
            client.sendall(b"hello")
        t.eventually(lambda: daemon.counts("listen echo ")["sessions"] == 4, "four are served")
        waiting = set(clients)
        while waiting:
            served = select.select(waiting, [], [], 0.1)[0]
            check(len(served) <= 4, f"{len(served)} are served")
            for client in served:
                client.close()
            waiting -= set(served)
        t.eventually(lambda: daemon.counts("listen echo ")["sessions"] == 0, "all are gone")


@test(timeout=60)
def descriptors(t):
    """clients that come and go while descriptors are out are all served, and each socket says so once in an episode"""
    address = t.address()
    with t.daemon(config(address), nofile=64) as daemon:
        waiting = {net.connect(address) for _ in range(80)}
        for client in waiting:
            client.sendall(b"?")
        began = time.monotonic()
        while time.monotonic() - began < 2:
            for client in select.select(waiting, [], [], 0.1)[0]:
                check_equal(client.recv(1), b"?", "the echo")
                waiting.remove(client)
                client.close()
                late = net.connect(address)
                late.sendall(b"?")
                waiting.add(late)
        took = time.monotonic() - began
        while waiting:
            served = select.select(waiting, [], [], 20 * t.scale)[0]
            check(served, f"{len(waiting)} clients are not served")
            for client in served:
                check_equal(client.recv(1), b"?", "the echo to a client that waited")
                waiting.remove(client)
                client.close()
        lines = daemon.log_lines("too many open files|accepting again")
        check(len(lines) <= 3 * 4 * took, f"{len(lines)} lines in {took:.1f} s")


@test(needs=("cc",))
def no_memory_to_watch(t):
    """a worker that has no memory to watch anything after a rebuild of its epoll instance, 20 times, pauses and
    accepts again"""
    address = t.address()
    faults = preload.Preload(t, "backend_fault")
    with t.daemon(config(address, workers=1), environment=faults.environment()) as daemon:
        faults.plan(preload.ADD_FAILS, 20, value=errno.ENOMEM, thread="work-2-1")
        faults.plan(preload.WAIT_FAILS, 1, value=errno.EBADF, thread="work-2-1")
        t.eventually(lambda: is_served(address), "a client is served, when there is memory")
        check_equal(faults.struck(preload.ADD_FAILS), 20, "faults")
        for pattern in ("cannot accept: Cannot allocate memory", "accepting again"):
            t.eventually(lambda p=pattern: len(daemon.log_lines(p)) == 1, f"'{pattern}'")


@test(timeout=60)
def reload(t):
    """from bosses to none and back, to more and to fewer workers: no client is refused, and sockets follow the threads in use"""
    address = t.address()
    steps = [(0, 3), (2, 3), (0, 2), (0, 4), (0, 1), (1, 1), (0, 4), (1, 4)]
    with t.daemon(config(address, boss=1)) as daemon:
        with churning(address):
            for boss, workers in steps * 2:
                daemon.reload(config(address, boss, workers))
        daemon.reload(config(address, 0, 1))
        with contextlib.ExitStack() as stack:
            for _ in range(24):
                net.exchange(stack.enter_context(net.connect(address)), b"hello")
            check_equal(open_by_worker(daemon), [24, 0, 0], "connections by worker: the others are parked")


@test(timeout=60)
def upgrade(t):
    """between configurations with a boss and without: each client is served, those in the queues too"""
    address = t.address()
    with Chain(t, config(address, boss=1)) as chain:
        with churning(address):
            for boss, workers in ((0, 3), (0, 2), (1, 2), (0, 3)):
                chain.daemon.config_path.write_text(config(address, boss, workers), encoding="utf-8")
                chain.upgrade()
        check_equal(net.listening(int(address.rpartition(":")[2])), 3, "sockets")
        chain.stop()


@test()
def drain(t):
    """SIGTERM: clients in the queues are served before the sockets close"""
    address = t.address()
    with t.daemon(config(address)) as daemon:
        clients = [net.connect(address) for _ in range(40)]
        for client in clients:
            client.sendall(b"last")
        os.kill(daemon.pid, 15)
        for client in clients:
            check_equal(net.read_exactly(client, 4), b"last", "the echo")
            client.close()
        daemon.wait()
