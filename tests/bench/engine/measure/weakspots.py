"""
weakspots: what a Netty loop does badly, done to Netty and to reactord.

An experiment starts a server afresh. A figure is None when the limit of its row was reached.
"""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.measure.child import Child
from engine.measure.client import Client, visit_ms, worst_of
from runner.contender import CONF, fill_in
from runner.process import BenchError, free_port

TASKS = 2000
TASK_US = 1000
BACKLOG_S = TASKS * TASK_US / 1e6
VISITS_UNTIL_S = BACKLOG_S * 0.75  # what is begun later may be served by an empty loop
TRIPS = 20
TRIP_LIMIT_S = 3
BACKLOG_LIMIT_S = 6  # a backlog of two seconds is to be over by then
STOP_TIMEOUT_MS = 1000
STOP_LIMIT_S = 6
DESCRIPTORS = 90
CLIENTS = 110
SETTLE_S = 1
EXHAUSTED_S = 3
BACK_LIMIT_S = 6


@dataclass(frozen=True)
class Row:
    """One line of the table: smaller is better, and ${wanted} is the most reactord may need."""

    key: str
    title: str
    unit: str
    wanted: float | None
    limit: float | None = None  # where the experiment gives up, in the row's unit


ROWS = [
    Row("new", f"{TASKS} tasks of 1 ms queued: a new connection is answered", "ms", 20,
        BACKLOG_LIMIT_S * 1000),
    Row("existing", "the same: an existing connection is answered", "ms", 20,
        BACKLOG_LIMIT_S * 1000),
    Row("existing100", "the same, io_ratio 100", "ms", 20, BACKLOG_LIMIT_S * 1000),
    Row("spin1", "a task that resubmits itself, io_ratio 1: echo", "ms", 20, TRIP_LIMIT_S * 1000),
    Row("spin50", "the same, io_ratio 50", "ms", 20, TRIP_LIMIT_S * 1000),
    Row("spin99", "the same, io_ratio 99", "ms", 20, TRIP_LIMIT_S * 1000),
    Row("spin100", "the same, io_ratio 100", "ms", 20, TRIP_LIMIT_S * 1000),
    Row("stop", "the same at shutdown, timeout 1 s: ended after", "ms", 1200, STOP_LIMIT_S * 1000),
    Row("full_echo", f"{DESCRIPTORS} descriptors, {CLIENTS} clients: an accepted one is answered",
        "ms", 20, TRIP_LIMIT_S * 1000),
    Row("full_cpu", "the same: CPU of the server", "%", 5),
    Row("full_log", f"the same: lines logged in {EXHAUSTED_S} s", "lines", 1),
    Row("full_back", "the same, clients go: all others are served after", "ms", 1000,
        BACK_LIMIT_S * 1000),
]


class Contender:
    """A server under test: how it is started with an io_ratio, and when descriptors run out."""

    def __init__(self, name, host, daemon=None, why_missing=None):
        self.name = name
        self.host = host  # command; PORT and IO_RATIO are to be added
        self.daemon = daemon  # command, to which a configuration is to be added; None: the host
        self.why_missing = why_missing  # None: it is there

    @contextmanager
    def hosted(self, io_ratio):
        """The program that does to its loop what it is told; gives (child, port)."""
        port = free_port()
        with Child(self.host + [str(port), str(io_ratio)]) as child:
            child.wait_until_listening(port)
            yield child, port

    @contextmanager
    def limited(self, log):
        """The server with few descriptors, which logs to the file ${log}; gives (child, port)."""
        port = free_port()
        with tempfile.TemporaryDirectory(prefix="reactord-bench-") as directory:
            command = self.host + [str(port), "50"]
            if self.daemon:
                template = (CONF / "reactord-echo.ini.in").read_text(encoding="utf-8")
                conf = Path(directory) / "conf"
                conf.write_text(fill_in(template, {"PORT": port}), encoding="utf-8")
                command = self.daemon + ["-c", str(conf)]
            with Child(command, descriptors=DESCRIPTORS, stderr=log) as child:
                child.wait_until_listening(port)
                yield child, port


def _trips_while_queued(client, until):
    trips = []
    while time.monotonic() < until:
        trips.append(client.trip_ms())
        time.sleep(0.01)
    return trips


def _visits_while_queued(port, until):
    visits = []
    while time.monotonic() < until:
        visits.append(visit_ms(port, BACKLOG_LIMIT_S))
        time.sleep(0.01)
    return visits


def _say(child, command, answer):
    heard = child.ask(command, TRIP_LIMIT_S)
    if heard != answer:
        raise BenchError(f"{command}: the server says {heard}")


def backlog(contender, io_ratio):
    """A loop with two seconds of tasks queued: (worst new connection, worst trip on an old one)."""
    with contender.hosted(io_ratio) as (child, port), Client(port, BACKLOG_LIMIT_S) as client, \
            ThreadPoolExecutor() as threads:
        for _ in range(TRIPS):
            client.trip_ms()
        _say(child, f"queue {TASKS} {TASK_US}", "queued")
        until = time.monotonic() + VISITS_UNTIL_S
        visits = threads.submit(_visits_while_queued, port, until)
        trips = _trips_while_queued(client, until)
        return worst_of(visits.result()), worst_of(trips)


def spinning(contender, io_ratio):
    """A task that submits itself again: the worst trip beside it."""
    with contender.hosted(io_ratio) as (child, port), Client(port, TRIP_LIMIT_S) as client:
        for _ in range(TRIPS):
            client.trip_ms()
        _say(child, "spin", "spinning")
        trips = []
        for _ in range(TRIPS):
            trips.append(client.trip_ms())
            if trips[-1] is None:
                break
            time.sleep(0.01)
        return worst_of(trips)


def stopping(contender):
    """The same task while the loop shuts down: when it has ended."""
    with contender.hosted(50) as (child, _):
        _say(child, "spin", "spinning")
        answer = child.ask(f"stop {STOP_TIMEOUT_MS}", STOP_LIMIT_S)
        return float(answer.split()[1]) if answer else None


def _cpu_s(pid):
    """User and system time of all threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _lines(path):
    return Path(path).read_text(encoding="utf-8", errors="replace").count("\n")


def _come(port, stack):
    """All clients; (those that are served, those that wait) when no more are served."""
    clients = [stack.enter_context(Client(port, TRIP_LIMIT_S)) for _ in range(CLIENTS)]
    for client in clients:
        client.say()
    served, waiting, before = [], clients, None
    while before != len(served):
        before = len(served)
        time.sleep(SETTLE_S)
        answered = [client for client in waiting if client.hear(0)]
        served = served + answered
        waiting = [client for client in waiting if client not in answered]
    if not waiting or len(served) <= len(waiting):
        raise BenchError(f"of {CLIENTS} clients {len(served)} were served: DESCRIPTORS is wrong")
    return served, waiting


def _while_full(child, client, log):
    """What it is like while descriptors are exhausted."""
    cpu_s, lines, began_at = _cpu_s(child.child.pid), _lines(log), time.monotonic()
    trips = _trips_while_queued(client, began_at + EXHAUSTED_S)
    took_s = time.monotonic() - began_at
    return {"full_echo": worst_of(trips),
            "full_cpu": 100 * (_cpu_s(child.child.pid) - cpu_s) / took_s,
            "full_log": _lines(log) - lines}


def exhausted(contender):
    """More clients than descriptors; then as many go as wait, and one more."""
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.NamedTemporaryFile(prefix="reactord-bench-"))
        child, port = stack.enter_context(contender.limited(log))
        for _ in range(TRIPS):  # Java needs descriptors for the classes it loads at the first end
            visit_ms(port, TRIP_LIMIT_S)
        served, waiting = _come(port, stack)
        result = _while_full(child, served[0], log.name)
        for client in served[-len(waiting) - 1:]:
            client.close()
        began_at = time.monotonic()
        are_back = all(client.hear(began_at + BACK_LIMIT_S - time.monotonic())
                       for client in waiting)
        result["full_back"] = (time.monotonic() - began_at) * 1000 if are_back else None
        return result


def _round_of(contender):
    """Every experiment once: {row key: figure}."""
    result = {}
    result["new"], result["existing"] = backlog(contender, 50)
    _, result["existing100"] = backlog(contender, 100)
    for io_ratio in (1, 50, 99, 100):
        result[f"spin{io_ratio}"] = spinning(contender, io_ratio)
    result["stop"] = stopping(contender)
    result.update(exhausted(contender))
    return result


def contenders(build, daemon, java):
    """Everyone."""
    host = Path(build) / "host"
    missing = [str(path) for path in (host, Path(daemon)) if not path.exists()]
    return [Contender("reactord", [str(host)], [str(daemon)],
                      f"{', '.join(missing)} was not built" if missing else None),
            Contender("netty", java.command("Host"), None, java.why_missing("Host"))]


def measure(runners, rounds, progress, results):
    """
    ${rounds} rounds, the order of the contenders turned each time. Fills ${results}:
    {name: [{row key: figure} of each round]}; a round that went wrong is told of: False.
    """
    is_whole = True
    results.update({runner.name: [] for runner in runners})
    for number in range(rounds):
        turn = number % len(runners) if runners else 0
        for runner in runners[turn:] + runners[:turn]:
            progress(f"weakspots: round {number + 1}, {runner.name}")
            try:
                results[runner.name].append(_round_of(runner))
            except BenchError as error:
                progress(f"weakspots: {runner.name}, round {number + 1}: {error}", is_lasting=True)
                is_whole = False
    return is_whole
