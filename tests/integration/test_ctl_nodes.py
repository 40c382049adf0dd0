"""ctl: a daemon that is asked whether it is ready, and commands for several nodes, one after the other."""

import contextlib
import os
import threading

from support.admin_mock import STATUS, AdminMock, answer, error
from support.case import check, check_equal, test
from support.ctl_real import Real
from support.ctl_runs import done, refused

THEME = "ctl"
CONFIRMED = {("POST", "/v1/confirm"): {"state": "idle"}}


def text(status, word):
    return answer(status, f"{word}\n", "text/plain")


@test()
def ready(t):
    """ready: 0 when a real daemon serves, 1 and why while it is paused; --wait waits; 2 without one"""
    real = Real(t)
    refused(t, real, "ready", 2, "cannot reach")
    with t.daemon(real.config()):
        check_equal(done(t, real, "ready"), "ready\n", "output")
        done(t, real, "pause listener:front")
        check_equal(refused(t, real, "ready", 1), "reactorctl: paused\n", "why")
        refused(t, real, "ready --wait 300ms", 1, "paused")
        resume = threading.Timer(0.3, done, (t, real, "resume listener:front"))
        resume.start()
        check_equal(done(t, real, "ready --wait 60s"), "ready\n", "output after the pause")
        resume.join()


def nodes(t, mocks, command):
    return t.reactorctl("--node", ",".join(mock.address for mock in mocks), *command.split())


@test()
def one_is_away(t):
    """--node: status shows the others when one is away, and tells it by the exit code 2"""
    with AdminMock(t.path("a.sock")) as a, AdminMock(t.path("c.sock")) as c:
        b = AdminMock(t.path("b.sock"))  # nobody listens
        finished = nodes(t, (a, b, c), "status")
        check_equal(finished.code, 2, "exit code")
        order = [finished.out.index(f"==> {mock.address} <==") for mock in (a, b, c)]
        check(order == sorted(order) and finished.out.count("4711") == 2, f"two answers, in order: {finished.out}")
        check(f"cannot reach {b.address}" in finished.err, f"it says {finished.err!r}")
        check_equal(nodes(t, (a, c), "status --json").out.count('"pid"'), 2, "JSON answers")


@test()
def first_refusal(t):
    """--node: a command that changes something stops at the first refusal, and names whom it did not ask"""
    refuses = {("POST", "/v1/confirm"): error(409, "nothing to confirm")}
    with AdminMock(t.path("a.sock"), CONFIRMED) as a, AdminMock(t.path("b.sock"), refuses) as b, \
            AdminMock(t.path("c.sock"), CONFIRMED) as c:
        finished = nodes(t, (a, b, c), "confirm")
        check_equal((finished.code, len(a.requests), len(b.requests), len(c.requests)), (1, 1, 1, 0), "code and requests")
        check(f"stopped at {b.address}; nothing was asked of {c.address}" in finished.err, f"it says {finished.err!r}")


@test()
def rolling_upgrade(t):
    """--node: upgrade waits until a node is ready before it asks the next, and stops at one that never is"""
    order = []

    def routes(name, until):
        def upgrade(_):
            order.append(name)
            return {"state": "serving"}

        def is_ready(_):
            order.append(f"{name} ready?")
            return text(200, "ready") if order.count(f"{name} ready?") >= until else text(503, "draining")
        return {("POST", "/v1/upgrade"): upgrade, ("GET", "/readyz"): is_ready}

    with AdminMock(t.path("a.sock"), routes("a", 3)) as a, AdminMock(t.path("b.sock"), routes("b", 1)) as b:
        check_equal(nodes(t, (a, b), "upgrade --timeout 60s").code, 0, "exit code")
        check_equal(order, ["a", "a ready?", "a ready?", "a ready?", "b", "b ready?"], "order")
    order.clear()
    with AdminMock(t.path("c.sock"), routes("a", 10 ** 6)) as a, AdminMock(t.path("d.sock"), routes("b", 1)) as b:
        finished = nodes(t, (a, b), "upgrade --timeout 500ms")
        check_equal((finished.code, "b" in order), (1, False), "exit code, and whether b was asked")
        check(f"reactorctl: {a.address}: not ready: draining\n" in finished.err, f"it says {finished.err!r}")


REAL = """
[reactord]
drain_timeout = 1s
[admin]
address = {admin}
token_file = {token}
[listen echo]
address = {front}
service = echo
"""


@contextlib.contextmanager
def three_nodes(t, *tokens):
    """Daemons whose admin interfaces are on TCP, with these files of tokens; their addresses."""
    addresses = [t.address() for _ in tokens]
    with contextlib.ExitStack() as stack:
        for admin, token in zip(addresses, tokens):
            stack.enter_context(t.daemon(REAL.format(admin=admin, token=token, front=t.address())))
        yield addresses


@test()
def one_wrong_token(t):
    """--node over TCP: where the token is wrong at the second of three, a command that shows something shows the others, one
    that changes something stops there and changes nothing at the third; each message names the node"""
    good, other = t.write("good", "a" * 32), t.write("other", "b" * 32)
    for path in (good, other):
        os.chmod(path, 0o600)
    with three_nodes(t, good, other, good) as (a, b, c):
        def ask(command):
            return t.reactorctl("--token-file", good, "--node", f"{a},{b},{c}", *command.split())

        finished = ask("status")
        check_equal((finished.code, finished.out.count("==> "), finished.out.count("pid")), (1, 3, 2), "status")
        check(finished.err.startswith(f"reactorctl: {b}: ") and "token" in finished.err and finished.err.count("\n") == 1,
              f"status says {finished.err!r}")
        finished = ask("status --json")
        check(finished.err.startswith(f"reactorctl: {b}: "), f"status --json says {finished.err!r}")
        finished = ask("pause listener:echo")
        check_equal(finished.code, 1, "exit code of pause")
        check(finished.err.startswith(f"reactorctl: {b}: ") and
              finished.err.endswith(f"reactorctl: stopped at {b}; nothing was asked of {c}\n"), f"pause says {finished.err!r}")
        ready = [t.reactorctl("-s", node, "ready").code for node in (a, b, c)]
        check_equal(ready, [1, 0, 0], "exit codes of ready: the first is paused")


@test()
def one_older(t):
    """--node: a command that one of three nodes is too old for stops there, and says so; status shows the version of each"""
    new = {("POST", "/v1/confirm"): {"state": "idle"}}
    old = {("GET", "/v1/status"): {**STATUS, "version": "0.0.1"}}
    with AdminMock(t.path("a.sock"), new) as a, AdminMock(t.path("b.sock"), old) as b, AdminMock(t.path("c.sock"), new) as c:
        finished = nodes(t, (a, b, c), "confirm")
        check_equal((finished.code, c.requests), (1, []), "exit code, and what the third was asked")
        for words in (f"{b.address}: reactord at {b.address} does not know /v1/confirm: it is older",
                      f"stopped at {b.address}; nothing was asked of {c.address}"):
            check(words in finished.err, f"it says {finished.err!r}")
        shown = nodes(t, (a, b, c), "status")
        check_equal((shown.code, shown.out.count("0.1.0"), shown.out.count("0.0.1")), (0, 2, 1), "versions shown")


@test(each=[
    {"line": "--node /a,/b,/a status", "problem": "'/a' is named twice"},
    {"line": "--node /a,,/b status", "problem": "node ''"},
    {"line": "--node /a,b status", "problem": "node 'b'"},
    {"line": "--node /a -s /b status", "problem": "exclude each other"},
    {"line": "--node /a,/b top", "problem": "one node at a time"},
    {"line": "--node /a,/b events -f", "problem": "one node at a time"}])
def bad_nodes(t, line, problem):
    """reactorctl {line}: {problem}"""
    finished = t.reactorctl(*line.split())
    check_equal((finished.code, finished.out), (2, ""), f"exit code and stdout ({finished.err!r})")
    check(problem in finished.err, f"it says {finished.err!r}")
