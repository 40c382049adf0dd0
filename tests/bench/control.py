#!/usr/bin/env python3
"""
control.py: what clients notice of an administrator who looks at everything, beside HAProxy.

Thousands of sessions are held, and 20 connections make 500 round trips a second of 64 B: first alone,
then while all sessions are listed and 1,000 servers are scraped each second, then while all those
sessions are ended at once. See README.md, "Control".
"""

import argparse
import http.client
import json
import multiprocessing
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from statistics import median

from engine.measure.machine import Others, before_others
from runner.contender import LOAD_CPU, Contender
from runner.options import add_before_others, add_build, add_servers
from runner.process import BenchError, Process, free_port
from runner.table import lines

CONNECTIONS, RATE, WARMUP_S = 20, 500, 0.5
SERVERS = 1000
PROBE_EACH_S = 0.02
PAGE = 1000
GRACE_S = 60
TASKS_SHOWN = 8


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Thousands of sessions, listed and ended.")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a phase (default: 10)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--contenders", default="reactord-echo,reactord,haproxy,haproxy3",
                        metavar="NAME,...", help="default: %(default)s")
    add_servers(parser, "haproxy", "haproxy3")
    add_build(parser)
    add_before_others(parser)
    parser.add_argument("--tasks", action="store_true",
                        help="a reactord that measures the processor time of its tasks: which are longest")
    return parser.parse_args()


# ---- the two interfaces ----

class UnixConnection(http.client.HTTPConnection):
    """HTTP on a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=GRACE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(GRACE_S)
        self.sock.connect(self.path)


class Reactord:
    """The admin interface."""

    def __init__(self, directory, _):
        self.path = str(directory / "admin.sock")

    def _ask(self, what, path, body=None):
        connection = UnixConnection(self.path)
        connection.request(what, path, body)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status != 200:
            raise BenchError(f"{what} {path}: {answer.status} {text[:200]}")
        return text

    def list_all(self):
        """All sessions, in pages; their number."""
        path, seen = f"/v1/sessions?limit={PAGE}", 0
        while True:
            page = json.loads(self._ask("GET", path))
            seen += len(page["sessions"])
            if not page.get("next"):
                return seen
            path = f"/v1/sessions?limit={PAGE}&after={page['next']}"

    def scrape(self):
        """Every figure of every server."""
        return len(self._ask("GET", "/metrics"))

    def probe(self):
        """What a health check asks."""
        self._ask("GET", "/readyz")

    def end_all(self):
        """End the sessions that are held."""
        self._ask("POST", "/v1/sessions/kill", json.dumps({"listener": "bench"}))

    def longest(self):
        """(ms, name) of the longest task since the start, of all loops that have traffic."""
        loops = json.loads(self._ask("GET", "/v1/loops"))["loops"]
        return max((loop["longest_ms"], loop["longest"]) for loop in loops)


class Haproxy:
    """The stats socket."""

    def __init__(self, _, port):
        self.port = port

    def _ask(self, command):
        with socket.create_connection(("127.0.0.1", self.port), timeout=GRACE_S) as s:
            s.sendall(command.encode() + b"\n")
            text = []
            while data := s.recv(1 << 16):
                text.append(data)
        return b"".join(text)

    def list_all(self):
        """All sessions."""
        return self._ask("show sess").count(b"\n")

    def scrape(self):
        """Every figure of every server."""
        return len(self._ask("show stat"))

    def probe(self):
        """The shortest answer."""
        self._ask("show info")

    def end_all(self):
        """End the sessions that are held."""
        self._ask("shutdown sessions server bench/a")

    def longest(self):
        """It does not say."""
        return None


def all_contenders(options):
    """{name: (contender, interface, sessions)}: a proxied one takes two of 20,000 descriptors."""
    def reactord(service):
        command = options.build / "reactord_tasks" if options.tasks else options.reactord
        return Contender("reactord", command, ["-c", "@CONFIG@"],
                         {"control": "control-reactord.ini.in"}, values={"SERVICE": service})

    def haproxy(command):
        return Contender("haproxy", command, ["-db", "-q", "-f", "@CONFIG@"],
                         {"control": "control-haproxy.cfg.in"})

    return {"reactord-echo": (reactord("service = echo"), Reactord, 10000),
            "reactord": (reactord("service = proxy\nupstream = bench"), Reactord, 9000),
            "haproxy": (haproxy(options.haproxy), Haproxy, 9000),
            "haproxy3": (haproxy(options.haproxy3), Haproxy, 9000)}


def many_servers(interface, port):
    """An upstream of a thousand servers, for the statistics only."""
    if interface is Reactord:
        return "[upstream many]\n" + "".join(
            f"server.s{i} = 127.0.0.1:{port} weight={1 + i % 9}\n" for i in range(SERVERS))
    return "backend many\n" + "".join(f"    server s{i} 127.0.0.1:{port}\n" for i in range(SERVERS))


# ---- processes of the load ----

@contextmanager
def child(function, *args):
    """Run it in a process of its own; gives our end of a pipe whose other end is its last argument."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=function, args=(*args, theirs), daemon=True)
    process.start()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


def hold(port, n, pipe):
    """Hold that many sessions, each used once."""
    held = []
    for _ in range(n):
        s = socket.create_connection(("127.0.0.1", port), timeout=GRACE_S)
        s.sendall(b"x")
        held.append(s)
        if s.recv(1) != b"x":
            raise BenchError("a session is not served")
    pipe.send(len(held))
    pipe.recv()


def probe(interface, pipe):
    """Probe until something is received; send how long each took, in ms."""
    if os.geteuid() == 0:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    took = []
    while not pipe.poll(PROBE_EACH_S):
        began = time.monotonic()
        interface.probe()
        took.append((time.monotonic() - began) * 1000)
    pipe.send(took)


def traffic(options, port, pid):
    """A loadgen on the other listener; it comes before the other load on its CPU."""
    command = [str(options.build / "loadgen"), "--connect", f"127.0.0.1:{port}", "--mode", "pace",
               "--connections", str(CONNECTIONS), "--size", "64", "--seconds", str(options.seconds),
               "--warmup", str(WARMUP_S), "--server-pid", str(pid), "--rate", str(RATE)]
    return Process(command, LOAD_CPU, is_first=True, stdout=subprocess.PIPE, text=True)


def result_of(process, options):
    """What the traffic has measured."""
    try:
        output, _ = process.child.communicate(timeout=options.seconds + GRACE_S)
    except subprocess.TimeoutExpired as error:
        raise BenchError("loadgen does not end") from error
    if process.child.returncode != 0:
        raise BenchError(f"loadgen ended with {process.child.returncode}")
    return json.loads(output)


class Reader(threading.Thread):
    """Does something each second until it is stopped; keeps how long it took, in ms."""

    def __init__(self, action):
        super().__init__(daemon=True)
        self.action, self.took, self.seen, self.over = action, [], 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.is_set():
            began = time.monotonic()
            self.seen = self.action()
            self.took.append((time.monotonic() - began) * 1000)
            self.over.wait(max(0, 1 - (time.monotonic() - began)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join(GRACE_S)


# ---- a round ----

def beside_readers(options, interface, port, pid):
    """(result of the traffic, lists, scrapes, probes) while an administrator looks at everything."""
    with child(probe, interface) as probes, Reader(interface.list_all) as lists, \
            Reader(interface.scrape) as scrapes:
        with traffic(options, port, pid) as clients:
            result = result_of(clients, options)
        probes.send("enough")
        if not probes.poll(GRACE_S):
            raise BenchError("the probes do not end")
        return result, lists, scrapes, probes.recv()


def beside_end(options, interface, port, pid):
    """Result of the traffic while all sessions that are held are ended at once."""
    with traffic(options, port, pid) as clients:
        time.sleep(WARMUP_S + options.seconds / 2)
        interface.end_all()
        return result_of(clients, options)


def measure(name, contender, kind, sessions, options):
    """One round of one server, as a dictionary."""
    with ExitStack() as stack:
        upstream_port, port, traffic_port, admin_port = (free_port() for _ in range(4))
        upstream = stack.enter_context(Process(
            [str(options.build / "bare_echo"), "127.0.0.1", str(upstream_port)], LOAD_CPU,
            is_first=True))
        upstream.wait_until_listening(upstream_port)
        contender.values.update(TRAFFIC_PORT=traffic_port, ADMIN_PORT=admin_port,
                                MANY=many_servers(kind, upstream_port))
        pid = stack.enter_context(contender.running("control", upstream_port, port))
        interface = kind(config_of(pid), admin_port)
        held = stack.enter_context(child(hold, port, sessions))
        if not held.poll(GRACE_S) or held.recv() != sessions:
            raise BenchError("the sessions are not held")
        with traffic(options, traffic_port, pid) as clients:
            quiet = result_of(clients, options)
        at_first = interface.longest()
        beside, lists, scrapes, probes = beside_readers(options, interface, traffic_port, pid)
        if lists.seen < sessions:
            raise BenchError(f"{name}: {lists.seen} sessions are listed")
        at_lists = interface.longest()
        end = beside_end(options, interface, traffic_port, pid)
        return {"sessions": sessions, "quiet": quiet, "beside": beside, "end": end,
                "list_ms": median(lists.took), "scrape_ms": median(scrapes.took),
                "probe_ms": sorted(probes)[int(len(probes) * 0.99)],
                "longest": [at_first, at_lists, interface.longest()]}


@contextmanager
def task_times(options):
    """Gives a list that has (us, task) of the longest tasks in processor time after the block."""
    longest_tasks = []
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as f:
        os.environ["REACTORD_TASK_CPU"] = f.name
        yield longest_tasks
        del os.environ["REACTORD_TASK_CPU"]
        for line in Path(f.name).read_text(encoding="ascii").splitlines() if options.tasks else []:
            us, _, name = line.split(" ", 2)
            longest_tasks.append((int(us), name))
        longest_tasks.sort(reverse=True)


def config_of(pid):
    """The directory of a server's configuration, the last word of its command line."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return Path(words[-2].decode()).parent


# ---- the tables ----

def longest(rounds, phase):
    """The longest task of all rounds up to the end of that phase."""
    tasks = [one["longest"][phase] for one in rounds if one["longest"][phase]]
    return "{:.2f} ({})".format(*max(tasks)) if tasks else "-"


def line_of(name, rounds):
    """One line of the table."""
    def mid(figure):
        return f"{median(figure(one) for one in rounds):.2f}"

    return [name, str(rounds[0]["sessions"]),
            mid(lambda one: one["quiet"]["p99_us"] / 1000),
            mid(lambda one: one["beside"]["p99_us"] / 1000),
            mid(lambda one: one["end"]["p99_us"] / 1000),
            mid(lambda one: one["end"]["max_us"] / 1000),
            mid(lambda one: one["list_ms"]), mid(lambda one: one["scrape_ms"]),
            mid(lambda one: one["probe_ms"]),
            longest(rounds, 0), longest(rounds, 1), longest(rounds, 2)]


HEAD = ["server", "sessions", "p99 quiet", "p99 beside lists", "p99 beside the end", "max then",
        "list all", "scrape", "probe p99", "longest task: quiet", "lists", "end"]


def measure_all(options):
    """{name: [measure() of each round]}."""
    everyone, results = all_contenders(options), {}
    for _ in range(options.rounds):
        for name in options.contenders.split(","):
            contender, kind, sessions = everyone[name]
            if contender.why_missing():
                print(f"skipped: {name}: {contender.why_missing()}", file=sys.stderr)
                continue
            try:
                with task_times(options) as tasks:
                    results.setdefault(name, []).append(
                        measure(name, contender, kind, sessions, options))
                if tasks:
                    print(f"{name}: longest tasks in processor time: " +
                          ", ".join(f"{task} {us / 1000:.2f} ms" for us, task in tasks[:TASKS_SHOWN]))
            except (BenchError, OSError) as error:
                print(f"{name}: {error}", file=sys.stderr)
    return results


def main():
    """Measure, and print the table; all times in ms."""
    options = read_options()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    os.sched_setaffinity(0, {LOAD_CPU})
    others = Others()
    with before_others() if options.before_others else nullcontext():
        results = measure_all(options)
    print(lines(HEAD, [line_of(name, rounds) for name, rounds in results.items() if rounds]))
    print(f"\nTimes in ms; {options.rounds} rounds of {options.seconds:g} s a phase; others used "
          f"{others.percent():.0f} % of the machine.")
    return 0 if all(len(rounds) == options.rounds for rounds in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
