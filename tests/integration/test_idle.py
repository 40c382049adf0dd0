"""idle: while nothing is to be done no thread wakes up."""

import contextlib
import signal

from support import net, wakeups
from support.admin import get, section
from support.case import check_equal, test
from test_proxy import proxy

FLEETS = [{"service": "echo", "workers": 1, "sessions": 0}, {"service": "echo", "workers": 2, "sessions": 1000},
          {"service": "proxy", "workers": 4, "sessions": 100}]


def echo(address):
    return f"[listen echo]\naddress = {address}\nservice = echo\n"


@test(timeout=60, each=FLEETS, plain_only=True)
def nothing_wakes(t, service, workers, sessions):
    """{service}, {workers} workers, {sessions} idle sessions: no thread wakes up, and all are served then"""
    front, back = t.address(), t.address()
    config = f"[worker]\nthreads = {workers}\nrebalance = auto\n" + echo(back) + (proxy(front, back) if service == "proxy" else "")
    with t.daemon(config) as daemon, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(front if service == "proxy" else back)) for _ in range(sessions)]
        for client in clients:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        wakeups.until_none(t, daemon)
        for client in clients:
            check_equal(net.exchange(client, b"again"), b"again", "the echo after the silence")
        wakeups.until_none(t, daemon)
        daemon.send_signal(signal.SIGTERM)
        for client in clients:
            client.close()
        check_equal(daemon.wait(), 0, "exit code")


@test(timeout=60, plain_only=True)
def admin_without_history(t):
    """an admin interface with history = 0 wakes nobody between two requests"""
    admin = t.path("admin.sock")
    with t.daemon(echo(t.address()) + section(admin, "history = 0\n")) as daemon:
        check_equal(get(admin, "/v1/status").status, 200, "the answer")
        wakeups.until_none(t, daemon)
        check_equal(get(admin, "/v1/status").status, 200, "the answer after the silence")
