"""pair: two nodes with keepalived, as reactord-fleet(7) has them, share an address."""

import os
import statistics
import subprocess
import threading
import time

from support import net
from support.admin import get
from support.case import check, check_equal, test
from support.pair import FRONT, Clients, Pair, Sessions

NEEDS = ("ip", "keepalived", "nft", "ping")
RUNS = 25


def serves(t, clients, more=100):
    """Wait until so many more clients were served."""
    before = clients.served
    t.eventually(lambda: clients.served >= before + more, "clients are served")


def visit():
    """A client is served."""
    with net.connect(FRONT) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test(needs=NEEDS, timeout=60, plain_only=True)
def killed(t):
    """kill -9 of the master: the other node has the address, and serves clients; the first one comes back as a backup,
    and takes over when the other is killed"""
    with Pair(t) as pair:
        for _ in range(2):
            master, other = pair.settled()
            with Clients() as clients:
                serves(t, clients)
                master.daemon.kill()
                t.eventually(lambda: pair.masters() == [other], "the address moves")
                serves(t, clients)
            check(all(why.startswith(("exchange", "connect: [Errno 111]", "connect: [Errno 104]")) for why in clients.failed),
                  f"clients failed: {clients.failed}")
            master.start()
            check_equal(pair.settled(), (other, master), "master and backup")
            with Clients() as clients:
                serves(t, clients, 500)
                check_equal(clients.end(), [], "clients that failed when the first node was back")
            check_equal(pair.masters(), [other], "master afterwards")


@test(needs=NEEDS, timeout=60, plain_only=True)
def drained(t):
    """SIGTERM to the master: no client fails, and its sessions stay; and then at SIGTERM to the other one"""
    with Pair(t) as pair:
        for _ in range(2):
            master, other = pair.settled()
            with Clients() as clients, Sessions(20) as sessions:
                serves(t, clients)
                check_equal(sessions.work(), 20, "sessions before")
                master.daemon.send_signal(15)
                t.eventually(lambda: pair.masters() == [other], "the address moves")
                check_equal(sessions.work(), 20, "sessions afterwards")
                serves(t, clients)
                check_equal(clients.end(), [], "clients that failed")
            master.daemon.wait()
            master.start()


@test(needs=NEEDS, timeout=60, plain_only=True)
def apart(t):
    """two nodes that do not hear each other both have the address, and clients are served; once they do, one has it"""
    with Pair(t) as pair:
        for node in pair.nodes:
            node.hear(False)
        t.eventually(lambda: len(pair.masters()) == 2, "both have the address")
        visit()
        for node in pair.nodes:
            node.hear(True)
        t.eventually(lambda: pair.masters() == [pair.nodes[0]], "the one with the higher priority has the address")
        visit()


@test(needs=NEEDS, timeout=60, plain_only=True)
def without_master(t):
    """while both nodes are paused none has the address, and both say why; when one goes on it has the address"""
    with Pair(t) as pair:
        for node in pair.nodes:
            check_equal(node.ctl("pause", "back").code, 0, "exit status of pause")
        t.eventually(lambda: not pair.masters(), "no node has the address")
        for node in pair.nodes:
            asked = node.ctl("ready")
            check_equal((asked.code, asked.err), (1, "reactorctl: paused\n"), "ready")
        check_equal(pair.nodes[1].ctl("resume", "back").code, 0, "exit status of resume")
        t.eventually(lambda: pair.masters() == [pair.nodes[1]], "the other node has the address")
        visit()


def cost(*command):
    """Processor time and time of a process."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    check_equal(status, 0, f"status of {command[0]}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - began


@test(plain_only=True)
def ready_beside_scrapes(t):
    """reactorctl ready costs a few times as much as a process that does nothing, and waits for no reader of /metrics"""
    admin, over = t.path("admin.sock"), threading.Event()
    listeners = "".join(f"[listen l{i}]\naddress = {t.address()}\nservice = echo\n" for i in range(50))
    commands = {"true": ["true"], "version": [t.reactorctl_path, "-V"], "ready": [t.reactorctl_path, "-s", admin, "ready"]}
    costs = {name: [] for name in commands}

    def scrape():
        while not over.is_set():
            check_equal(get(admin, "/metrics").status, 200, "status of a scrape")
    with t.daemon(f"[admin]\naddress = {admin}\n{listeners}"):
        task = net.Task(scrape)
        for _ in range(RUNS):
            for name, command in commands.items():
                costs[name].append(cost(*command))
        over.set()
        task.result()
    used, took = ({name: statistics.median(one[k] for one in costs[name]) for name in costs} for k in (0, 1))
    check(used["ready"] < 20 * used["true"], f"processor time in s: {used}")
    check(took["ready"] < 4 * took["version"], f"time in s: {took}")
