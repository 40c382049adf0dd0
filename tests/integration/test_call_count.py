"""call_count: what a short proxied connection costs with a boss and with workers that accept: system calls, allocations."""

import os
import shutil
import subprocess

from support import net, preload
from support.case import Skipped, check, test
from test_proxy import proxy

CLIENTS = 200
# Of each connection: client and server, a trip, a reset. Polls depend on who runs when.
CALLS = {"accept4": 1, "socket": 1, "connect": 1, "setsockopt": 3, "epoll_ctl": 4, "recvfrom": 3, "sendto": 2, "ioctl": 1,
         "close": 2}
ONE_SEND = {**CALLS, "setsockopt": 2}  # TCP_NODELAY is for a second one
WITH_BOSS = {"epoll_ctl": 0.5, "write": 1, "read": 1}  # an eventfd; a descriptor that ends while new clients come
SLACK = 0.2
ALLOCATIONS = 2  # session, connector
MEMORY_FAILS = 0  # preload/memory_fault.c


def serve(listener, trips):
    """One server connection after the other: the client's bytes go back, until it resets."""
    for _ in range(CLIENTS):
        server = net.accept(listener)
        for _ in range(trips):
            server.sendall(net.read_exactly(server, 5))
        net.ending(server)
        server.close()


def visit(t, daemon, front, listener, trips):
    """The clients, one after the other, to the end of the last session."""
    before = daemon.fd_count()
    servers = net.Task(serve, listener, trips)
    for _ in range(CLIENTS):
        client = net.connect(front)
        for _ in range(trips):
            net.exchange(client, b"hello")
        net.reset(client)
    servers.result()
    t.eventually(lambda: daemon.fd_count() <= before, "all have ended")  # asks the kernel, not the daemon


def is_traced(pid):
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as f:
            if "TracerPid:\t0\n" in f.read():
                return False
    return True


def counted(path):
    """The calls in a table of strace -c, by their names."""
    with open(path, encoding="ascii") as f:
        rows = [line.split() for line in f]
    return {row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit() and row[-1] != "total"}


def traced(t, daemon, table, during):
    """The calls of the daemon while that is done, by their names."""
    with subprocess.Popen(["strace", "-f", "-c", "-o", table, "-p", str(daemon.pid)],
                          stderr=subprocess.DEVNULL) as strace:
        try:
            t.eventually(lambda: is_traced(daemon.pid) or strace.poll() is not None, "it is traced")
            if strace.poll() is not None:
                raise Skipped("strace may not attach here")
            during()
        finally:
            strace.send_signal(2)
            strace.wait()
    return counted(table)


@test(each=[{"bosses": bosses, "trips": trips} for bosses in (1, 0) for trips in (1, 2)], plain_only=True)
def short_connection(t, bosses, trips):
    """with threads = {bosses} of [boss], 200 clients, one after the other, that connect, make {trips} trips and reset"""
    if not shutil.which("strace"):
        raise Skipped("strace is not installed")
    front, back = t.address(), t.address()
    config = f"[boss]\nthreads = {bosses}\n[worker]\nthreads = 2\n{proxy(front, back)}"
    most = ONE_SEND if trips == 1 else CALLS
    most = {name: n + (WITH_BOSS.get(name, 0) if bosses else 0) for name, n in {**dict.fromkeys(WITH_BOSS, 0), **most}.items()}
    for name in ("recvfrom", "sendto"):
        most[name] += 2 * (trips - 1)
    with net.listen(back) as listener, t.daemon(config) as daemon:
        visit(t, daemon, front, listener, trips)  # what is done once
        calls = traced(t, daemon, t.path("calls"), lambda: visit(t, daemon, front, listener, trips))
    calls = {name: n / CLIENTS for name, n in calls.items()}
    check(calls.get("accept4", 0) >= 1, f"not all is counted: {calls}")
    for name, n in calls.items():
        if name not in ("epoll_wait", "futex", "poll"):
            check(n <= most.get(name, 0) + SLACK, f"{name}: {n} each; all: {calls}")


@test(each=[{"bosses": 1}, {"bosses": 0}], needs=("cc",), plain_only=True)
def memory(t, bosses):
    """with threads = {bosses} of [boss], each of 200 clients, one after the other, takes so many allocations"""
    front, back = t.address(), t.address()
    faults = preload.Preload(t, "memory_fault")
    config = f"[boss]\nthreads = {bosses}\n[worker]\nthreads = 2\n{proxy(front, back)}"
    with net.listen(back) as listener, t.daemon(config, environment=faults.environment()) as daemon:
        visit(t, daemon, front, listener, 1)
        counted_from = 1 << 30
        faults.plan(MEMORY_FAILS, skip=counted_from)
        visit(t, daemon, front, listener, 1)
        each = (counted_from - faults.left(MEMORY_FAILS)) / CLIENTS
    check(1 <= each <= ALLOCATIONS + SLACK, f"{each} allocations")
