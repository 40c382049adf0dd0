"""call_count: how many system calls a short proxied connection costs, with a boss and with workers that accept."""

import os
import shutil
import subprocess
import threading

from support import net
from support.case import Skipped, check, test
from test_proxy import proxy

CLIENTS = 200
# Of each connection: client and server, a trip, a reset. Polls depend on who runs when.
MOST = {"accept4": 2, "socket": 1, "connect": 1, "getsockname": 1, "setsockopt": 3, "epoll_ctl": 5, "recvfrom": 3,
        "sendto": 2, "ioctl": 1, "close": 2}
SLACK = 1.25
WAKE_UPS = {1: 1.5, 0: 0.2}  # write(2) to an eventfd, by the number of bosses


def serve(listener):
    """One server connection after the other: the client's bytes go back, until it resets."""
    for _ in range(CLIENTS):
        server = net.accept(listener)
        server.sendall(net.read_exactly(server, 5))
        net.ending(server)
        server.close()


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


@test(each=[{"bosses": 1}, {"bosses": 0}], plain_only=True)
def short_connection(t, bosses):
    """with threads = {bosses} of [boss], 200 clients, one after the other, that connect, make a trip and reset"""
    if not shutil.which("strace"):
        raise Skipped("strace is not installed")
    front, back = t.address(), t.address()
    table = f"{t.dir}/calls"
    config = f"[boss]\nthreads = {bosses}\n[worker]\nthreads = 2\n{proxy(front, back)}"
    with net.listen(back) as listener, t.daemon(config) as daemon:
        with subprocess.Popen(["strace", "-f", "-c", "-o", table, "-p", str(daemon.pid)],
                              stderr=subprocess.DEVNULL) as strace:
            try:
                t.eventually(lambda: is_traced(daemon.pid) or strace.poll() is not None, "it is traced")
                if strace.poll() is not None:
                    raise Skipped("strace may not attach here")
                servers = threading.Thread(target=serve, args=(listener,))
                servers.start()
                for _ in range(CLIENTS):
                    client = net.connect(front)
                    net.exchange(client, b"hello")
                    net.reset(client)
                servers.join()
                t.eventually(lambda: daemon.counts("listen ")["sessions"] == 0, "all have ended")
            finally:
                strace.send_signal(2)
                strace.wait()
    calls = {name: n / CLIENTS for name, n in counted(table).items()}
    check(calls.get("accept4", 0) >= 1, f"not all is counted: {calls}")
    for name, most in MOST.items():
        check(calls.get(name, 0) <= most * SLACK, f"{name}: {calls.get(name, 0)} each; all: {calls}")
    check(calls.get("write", 0) <= WAKE_UPS[bosses], f"write: {calls.get('write', 0)} each; all: {calls}")
