"""hang: a system call that should return at once does not: the loop it holds is named, and the rest goes on."""

import re
import signal

from support import net, preload, wakeups
from support.case import check, check_equal, test
from support.watch import Watch

STOP_S = 6  # THREADS_STOP_NS and THREADS_JOIN_NS in server/threads.c
DRAIN_S = 3  # more than an idle echo session takes to end
NEEDS = ("cc",)
WORKER = "work-2-1"
CALLS = [{"call": "send", "fault": preload.SEND_HANGS},
         {"call": "recv", "fault": preload.RECV_HANGS}]


def echo(address, process="", stall="300ms"):
    """Two workers: one to hang, one to go on."""
    return (f"[reactord]\n{process}\n[boss]\nthreads = 1\n[worker]\nthreads = 2\nchooser = round_robin\nstall_threshold = {stall}\n"
            f"[listen echo]\naddress = {address}\nservice = echo\n")


def two_clients(address):
    """The first client is the first worker's, as round_robin has it, the second the other's."""
    clients = [net.connect(address) for _ in range(2)]
    for client in clients:
        net.exchange(client, b"hello")
    return clients


@test(needs=NEEDS, each=CALLS)
def a_while(t, call, fault):
    """a {call} that does not return for a while: the loop and what it is in are logged meanwhile, its
    end too; nothing is lost, and the other worker goes on"""
    address = t.address()
    faults = preload.Preload(t, "hang")
    with t.daemon(echo(address), environment=faults.environment()) as daemon:
        held, other = two_clients(address)
        faults.plan(fault, 1, value=0, thread=WORKER)
        held.sendall(b"hold on")
        t.eventually(lambda: daemon.log_lines("stalled: "), "a line about the stall")
        check_equal(net.exchange(other, b"go on"), b"go on", "the echo from the other worker")
        check(not daemon.log_lines("recovered"), "the stall ended by itself")
        faults.release(fault)
        check_equal(net.read_exactly(held, 7), b"hold on", f"the echo after the {call}")
        t.eventually(lambda: daemon.log_lines("recovered"), "a line about its end")
        begin, = daemon.log_lines("stalled: ")
        check(re.search(rf"warning main: loop {WORKER}: stalled: this turn has lasted \d\.\d{{3}} s, "
                        r"now in relay$", begin), begin)
        end, = daemon.log_lines("recovered")
        check(re.search(rf"notice main: loop {WORKER}: recovered after a stall of about \d+\.\d s$",
                        end), end)
        for client in (held, other):
            client.close()


@test(needs=NEEDS, timeout=60, plain_only=True)
def after_a_silence(t):
    """a hang that begins while no thread wakes up is found: the turn wakes the watchdog first"""
    address = t.address()
    faults = preload.Preload(t, "hang")
    with t.daemon(echo(address), environment=faults.environment()) as daemon:
        held, other = two_clients(address)
        for n in (1, 2):
            wakeups.until_none(t, daemon, seconds=1)
            faults.plan(preload.SEND_HANGS, 1, value=0, thread=WORKER)
            held.sendall(b"hold on")
            t.eventually(lambda: len(daemon.log_lines("stalled: ")) == n, "a line about the stall")
            faults.release(preload.SEND_HANGS)
            check_equal(net.read_exactly(held, 7), b"hold on", "the echo after the hang")
            t.eventually(lambda: len(daemon.log_lines("recovered")) == n, "a line about its end")
        for client in (held, other):
            client.close()


@test(needs=NEEDS)
def short_waits(t):
    """sends that take 20 ms each stall nothing: no line"""
    address = t.address()
    faults = preload.Preload(t, "hang")
    with t.daemon(echo(address, stall="3s"), environment=faults.environment()) as daemon:
        clients = two_clients(address)
        faults.plan(preload.SEND_HANGS, 10, value=20, thread="work")
        for client in clients * 5:
            check_equal(net.exchange(client, b"slow"), b"slow", "the echo")
        check_equal(faults.struck(preload.SEND_HANGS), 10, "faults")
        check(not daemon.log_lines("stalled: |recovered|runs no tasks"), "it is called a stall")
        for client in clients:
            client.close()


# How the signal ends what still works, and after how long the rest is given up on.
SIGNALS = [{"name": "SIGINT", "ending": "reset", "patience": STOP_S},
           {"name": "SIGTERM", "ending": "fin", "patience": DRAIN_S + STOP_S}]


@test(needs=NEEDS, timeout=40, each=[{**how, **call} for how in SIGNALS for call in CALLS])
def for_ever(t, name, ending, patience, call, fault):
    """a {call} that never returns: {patience} s after {name} the daemon ends with exit code 4 and names
    the loop and what it is in; the other worker's client got its {ending} before"""
    address = t.address()
    faults = preload.Preload(t, "hang")
    daemon = t.daemon(echo(address, f"drain_timeout = {DRAIN_S}s"), environment=faults.environment())
    daemon.start()
    try:
        held, other = two_clients(address)
        faults.plan(fault, 1, value=0, thread=WORKER)
        held.sendall(b"hold on")
        t.eventually(lambda: faults.struck(fault), "the fault struck")
        check_equal(net.exchange(other, b"go on"), b"go on", "the echo from the other worker")
        watch = Watch()
        daemon.send_signal(getattr(signal, name))
        check_equal(net.ending(other), ending, "the end of the other worker's client")
        check_equal(daemon.wait(), 4, "exit code")
        watch.expect(patience - 1, (patience + 3) * t.scale, "it")
        pattern = rf"error main: loop {WORKER}: did not stop: this turn has lasted \d+\.\d s, now in relay"
        check_equal(len(daemon.log_lines(pattern)), 1, f"lines about it ({call})")
        check_equal(len(daemon.log_lines("did not stop: ")), 1, "lines about loops")
        daemon.expect_no_report()
    finally:
        daemon.kill()
        daemon.notify.close()
