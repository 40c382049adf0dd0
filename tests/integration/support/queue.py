"""queue: servers with few places, and clients that wait for one."""

import select
import selectors
import time

from support import net, thread
from support.case import check, check_equal
from support.upstreams import config, statistics


def bounded(front, servers, options="", workers=4, drain="20s"):
    """The configuration of a proxy for servers, each with how many connections it may have."""
    lines = {f"s{i}": f"{address} max_connections={most}"
             for i, (address, most) in enumerate(servers.items())}
    return (f"[reactord]\ndrain_timeout = {drain}\n[worker]\nthreads = {workers}\n"
            + config(front, lines, options))


def wait_in_turn(t, daemon, front, stack):
    """A client that is not answered, when it has taken its place behind those before it."""
    # Not in the middle of anything, such as telling the service manager that it is ready.
    t.eventually(lambda: thread.asleep(daemon.pid), "nothing goes on")
    before = daemon.fd_count()
    client = stack.enter_context(net.connect(front))
    t.eventually(lambda: daemon.fd_count() > before and thread.asleep(daemon.pid),
                 "the client waits")
    return client


def answered(client):
    """Is something there for it to read?"""
    return bool(select.select([client], [], [], 0)[0])


def open_session(front):
    """A client that has got a server, which it holds on to."""
    client = net.connect(front)
    check_equal(net.exchange(client, b"held"), b"held", "the echo")
    return client


def serve_all(clients):
    """Each one's message comes back to it; then it goes, and makes room for another."""
    end = time.monotonic() + net.LIMIT_S
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client, selectors.EVENT_READ)
        while selector.get_map():
            check(time.monotonic() < end, f"{len(selector.get_map())} clients were not served")
            for key, _ in selector.select(1):
                message = clients[key.fileobj]
                check_equal(net.read_exactly(key.fileobj, len(message)), message, "the echo")
                selector.unregister(key.fileobj)
                key.fileobj.close()


def many_clients(front, number, count):
    for i in range(count):
        message = b"%d of %d" % (i, number)
        with net.connect(front) as client:
            check_equal(net.exchange(client, message), message, "the echo")


def waiting(daemon):
    """How many clients wait, by the statistics."""
    return int(statistics(daemon, "upstream back")["waiting"])
