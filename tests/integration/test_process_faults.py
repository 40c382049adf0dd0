"""process faults: no memory, or an eventfd that cannot be written: nobody ends, and it goes on
afterwards."""

import contextlib
import errno
import signal

from support import net, preload, program
from support.case import check, check_equal, test
from test_proxy import proxy

NEEDS = ("cc",)
CLIENTS = 150
WRITE_FAILS = MEMORY_FAILS = 0  # as in preload/write_fault.c and preload/memory_fault.c
ERRORS = [errno.EINTR, errno.EAGAIN, errno.ENOMEM]


def serves(*addresses):
    """New clients are served at all doors."""
    for address in addresses:
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"new"), b"new", f"the echo at {address}")


def echo(address):
    return f"[worker]\nthreads = 1\n[listen echo]\naddress = {address}\nservice = echo\n"


def come_and_go(address, n):
    """Clients that may be refused."""
    with contextlib.ExitStack() as stack:
        for _ in range(n):
            with contextlib.suppress(OSError):
                client = stack.enter_context(net.connect(address))
                client.sendall(b"x")
                client.settimeout(0.02)
                client.recv(1)


@test(needs=NEEDS, plain_only=True, each={"skip": list(range(0, 52, 4))})
def allocations_fail(t, skip):
    """a worker's allocations fail one after another from the {skip}th on, while 150 clients come to an
    echo and 150 to a proxy: no process aborts, and both serve when memory is there again"""
    faults = preload.Preload(t, "memory_fault")
    with program.echo_server(t) as back:
        door, front = t.address(), t.address()
        with t.daemon(echo(door) + proxy(front, back), environment=faults.environment()) as daemon:
            serves(door)
            for thread in ("work",) if t.workers_accept else ("work", "boss"):
                faults.plan(MEMORY_FAILS, skip=skip, thread=thread)
                come_and_go(door, CLIENTS // 2)
                come_and_go(front, CLIENTS // 2)
                check(daemon.running(), "the daemon has ended")
                check(faults.struck(MEMORY_FAILS) > 0, f"no allocation of {thread} has failed")
                faults.stop(MEMORY_FAILS)
            serves(door, front)


@test(needs=NEEDS, each={"error": ERRORS})
def eventfd_of_a_loop(t, error):
    """a write to the worker's eventfd fails once: the client is served"""
    door = t.address()
    faults = preload.Preload(t, "write_fault")
    with t.daemon("[boss]\nthreads = 1\n" + echo(door), environment=faults.environment()):
        serves(door)
        for _ in range(5):
            faults.plan(WRITE_FAILS, 1, value=error, thread="boss")
            while faults.struck(WRITE_FAILS) == 0:  # a worker that is awake is not woken
                serves(door)


@test(needs=NEEDS, each={"error": ERRORS})
def eventfd_of_a_reload(t, error):
    """a write to the eventfd of a reload fails once: the reload is done, and so is a drain"""
    door = t.address()
    faults = preload.Preload(t, "write_fault")
    with t.daemon(echo(door), environment=faults.environment()) as daemon:
        serves(door)
        faults.plan(WRITE_FAILS, 1, value=error, thread="exec")
        daemon.reload(echo(door) + "idle_timeout = 5s\n")
        check_equal(faults.struck(WRITE_FAILS), 1, "faults")
        faults.plan(WRITE_FAILS, 1, value=error, thread="ctrl")
        daemon.reload(echo(door) + "idle_timeout = 6s\n")
        check_equal(faults.struck(WRITE_FAILS), 1, "faults")
        faults.plan(WRITE_FAILS, 1, value=error)
        daemon.stop(signal.SIGTERM)
