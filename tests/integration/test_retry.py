"""retry: clients wait for servers that restart."""

import contextlib
import time

from support import net
from support.case import check, check_equal, test
from support.health import greeted, is_alive, ready
from support.server import Moody
from support.upstreams import config, statistics, who
from test_checks import checked, wait_down

CLIENTS = 8


def visits(front, until, fates):
    """Clients one after the other: whether each was greeted. What connect() says is not ours to judge: a reset may
    come before it returns, and counts as one."""
    while time.monotonic() < until:
        try:
            with net.connect(front) as s:
                fates.append(s.recv(1) != b"")
        except ConnectionResetError:
            fates.append(False)


def restart_often(t, servers, front, seconds):
    """All servers are away for 0.3 s of each second; the fates of the clients meanwhile."""
    fates, until = [], time.monotonic() + seconds
    tasks = [net.Task(visits, front, until, fates) for _ in range(CLIENTS)]
    while time.monotonic() < until:
        for server in servers:
            server.becomes("refuses")
        time.sleep(0.3)
        for server in servers:
            server.becomes("works")
        time.sleep(0.7)
    for task in tasks:
        task.result()
    return fates


@test(timeout=120, each=[{"names": "a"}, {"names": "abc"}])
def restarts_under_load(t, names):
    """clients of servers ({names}) that all restart again and again, with default options: only what was in a
    server's queue when it went is lost, one client in fifty at most"""
    front = t.address()
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Moody(name, t.address())) for name in names]
        with t.daemon(config(front, {s.name: s.address for s in servers})) as daemon:
            fates = restart_often(t, servers, front, 6)
            lost = fates.count(False)
            check(len(fates) > 100, f"only {len(fates)} clients")
            check(lost * 50 <= len(fates), f"{lost} of {len(fates)} clients lost")
            check(len(daemon.log_lines("trying again")) > 0 or len(daemon.log_lines("cannot connect")) > 0,
                  "no server was ever away")


@test()
def queued_while_all_are_down(t):
    """a client that waits in the queue when the last server goes down stays there, and is served when it is up"""
    front = t.address()
    with ready(t, "a") as (a,):
        with t.daemon(checked(front, {"a": a.line + " max_connections=1"}, queue_timeout="1m")) as daemon:
            with contextlib.ExitStack() as stack:
                first = stack.enter_context(net.connect(front))
                greeted(first)  # before the other one comes: a faster worker would serve that one
                second = stack.enter_context(net.connect(front))
                t.eventually(lambda: statistics(daemon, "upstream back")["waiting"] == "1", "one waits")
                a.is_up(False)
                wait_down(t, daemon)
                first.close()
                t.eventually(lambda: statistics(daemon, "server back/a")["connections"] == "0", "a is empty")
                check_equal(statistics(daemon, "upstream back")["waiting"], "1", "clients that wait")
                a.is_up(True)
                check(is_alive(second), "the client was not served")


@test()
def waits_and_is_counted(t):
    """a client that comes while the only server is away is served when it is back; the statistics count retries"""
    front = t.address()
    with Moody("a", t.address()) as a:
        a.becomes("refuses")
        with t.daemon(config(front, {"a": a.address}, "retry_timeout = 1m")) as daemon:
            client = net.Task(who, front)
            t.eventually(lambda: daemon.log_lines("cannot connect"), "it was tried")
            t.eventually(lambda: "retries=0 " not in daemon.statistics("upstream back ")[0] + " ",
                         "it was tried again")
            a.becomes("works")
            check_equal(client.result(), "a", "the server")


@test(each=[{"names": "a", "budget": 0, "says": ["the client is reset"]},
            {"names": "a", "budget": 20, "says": ["trying again after a pause"]},
            {"names": "ab", "budget": 0, "says": ["trying another server", "the client is reset"]}])
def what_follows(t, names, budget, says):
    """the log says what follows when servers ({names}) refuse, with retry_budget = {budget}: another server only if there is one"""
    front = t.address()
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Moody(name, t.address())) for name in names]
        for server in servers:
            server.becomes("refuses")
        options = f"retries = 3\nretry_budget = {budget}\nretry_timeout = 300ms\neject_failures = 0\n"
        with t.daemon("[worker]\nthreads = 1\n" + config(front, {s.name: s.address for s in servers}, options)) as daemon:
            check_equal(net.fate(front), "reset", "the client's end")
            lines = daemon.log_lines(r"server \w .*cannot connect: Connection refused; ")
            check_equal([line.rsplit("; ", 1)[1].strip() for line in lines], says, "what the log says")
