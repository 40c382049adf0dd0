#!/usr/bin/env python3
"""
servers.py: what clients notice of servers that come and go at run time, beside HAProxy.

20 connections make 500 round trips a second of 64 B, and a visitor 200 sessions a second, every byte
compared: first alone, then while servers are added to their upstream and removed again, 1,000 changes
a second. See README.md, "Servers at run time".
"""

import argparse
import json
import os
import signal
import socket
import sys
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path

from control import GRACE_S, child, config_of, result_of, traffic
from engine.measure.machine import Others, before_others
from runner.contender import LOAD_CPU, Contender
from runner.options import add_before_others, add_build, add_servers
from runner.process import BenchError, Process, free_port
from runner.table import lines

VISITS_EACH_S = 0.005
SETTLE_S = 2.5
CHANGERS, NAMES = 4, 12


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Servers that come and go.")
    parser.add_argument("--seconds", type=float, default=60.0, help="of a phase (default: 60)")
    parser.add_argument("--rate", type=int, default=1000, help="changes a second (default: 1000)")
    parser.add_argument("--servers", type=int, default=10, help="that stay (default: 10)")
    parser.add_argument("--contenders", default="reactord,haproxy,haproxy3", metavar="NAME,...",
                        help="default: %(default)s")
    add_servers(parser, "haproxy", "haproxy3")
    add_build(parser)
    add_before_others(parser)
    return parser.parse_args()


# ---- the two interfaces ----

class Reactord:
    """The admin interface, one connection."""

    def __init__(self, directory):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(GRACE_S)
        self.s.connect(str(directory / "admin.sock"))
        self.rest = b""

    def _ask(self, method, body):
        text = json.dumps(body).encode()
        self.s.sendall(b"%s /v1/server HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
                       % (method, len(text), text))
        while b"\r\n\r\n" not in self.rest:
            self._read()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length:"))
        while len(self.rest) < length:
            self._read()
        answer, self.rest = self.rest[:length], self.rest[length:]
        return b" 200 " in head, answer.decode()

    def _read(self):
        data = self.s.recv(1 << 16)
        if not data:
            raise BenchError("the admin interface has ended the connection")
        self.rest += data

    def add(self, name, port):
        """(whether it is done, what it says)."""
        return self._ask(b"PUT", {"server": f"bench/{name}", "line": f"127.0.0.1:{port}"})

    def remove(self, name):
        """The same."""
        return self._ask(b"DELETE", {"server": f"bench/{name}"})


class Haproxy:
    """The runtime socket, one connection with a prompt."""

    def __init__(self, directory):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(GRACE_S)
        self.s.connect(str(directory / "admin.sock"))
        self._ask("prompt")

    def _ask(self, command):
        self.s.sendall(command.encode() + b"\n")
        text = b""
        while not text.endswith(b"\n> "):
            data = self.s.recv(1 << 16)
            if not data:
                raise BenchError("the socket has ended")
            text += data
        return text[:-3].decode().strip()

    def add(self, name, port):
        """A new server is in maintenance until it is enabled."""
        said = self._ask(f"add server bench/{name} 127.0.0.1:{port}")
        if "registered" not in said:
            return False, said
        said = self._ask(f"enable server bench/{name}")
        return said == "", said

    def remove(self, name):
        """It must be in maintenance, and without sessions."""
        said = self._ask(f"set server bench/{name} state maint")
        if said:
            return False, said
        said = self._ask(f"del server bench/{name}")
        return "deleted" in said, said


def all_contenders(options):
    """{name: (contender, interface, a line of a server)}."""
    def haproxy(command):
        return Contender("haproxy", command, ["-db", "-q", "-f", "@CONFIG@"],
                         {"servers": "servers-haproxy.cfg.in"})

    return {"reactord": (Contender("reactord", options.reactord, ["-c", "@CONFIG@"],
                                   {"servers": "servers-reactord.ini.in"}),
                         Reactord, "server.s{} = 127.0.0.1:{}"),
            "haproxy": (haproxy(options.haproxy), Haproxy, "    server s{} 127.0.0.1:{}"),
            "haproxy3": (haproxy(options.haproxy3), Haproxy, "    server s{} 127.0.0.1:{}")}


# ---- processes of the load ----

def visit(port, pipe):
    """New sessions at a rate, until something is received; send the times in ms, and the failures."""
    took, failed, n = [], [], 0
    while not pipe.poll(VISITS_EACH_S):
        began = time.monotonic()
        n += 1
        text = n.to_bytes(8, "big") * 8
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
                s.sendall(text)
                got = b""
                while len(got) < len(text):
                    data = s.recv(len(text))
                    if not data:
                        break
                    got += data
                if got != text:
                    failed.append(f"got {got!r}")
        except OSError as error:
            failed.append(str(error))
        took.append((time.monotonic() - began) * 1000)
    pipe.send((took, failed))


def change(kind, directory, port, rate, number, pipe):
    """Add servers of its own and remove them again, at that rate, until something is received."""
    interface = kind(directory)
    began, n, refused, took, there = time.monotonic(), 0, {}, [], set()
    while not pipe.poll(max(0, began + n / rate - time.monotonic())):
        name = f"n{number}-{n // 2 % NAMES}"
        at = time.monotonic()
        is_done, said = interface.remove(name) if name in there else interface.add(name, port)
        took.append((time.monotonic() - at) * 1000)
        if is_done:
            there ^= {name}
        else:
            refused[said[:100]] = refused.get(said[:100], 0) + 1
        n += 1
    pipe.send((n, time.monotonic() - began, refused, took))


def rss_kib(pid):
    """The memory of that process."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise BenchError("no VmRSS")


def received(pipe):
    """The answer of a process that is told to stop."""
    pipe.send("enough")
    if not pipe.poll(GRACE_S):
        raise BenchError("a process of the load does not end")
    return pipe.recv()


def together(changes):
    """(changes, seconds, {reason: refused}, times) of all changers."""
    refused = {}
    for _, _, mine, _ in changes:
        for why, n in mine.items():
            refused[why] = refused.get(why, 0) + n
    return (sum(one[0] for one in changes), max(one[1] for one in changes), refused,
            [ms for one in changes for ms in one[3]])


def measure(contender, kind, line, options):
    """One server, as a dictionary."""
    with ExitStack() as stack:
        upstream_port, port = free_port(), free_port()
        upstream = stack.enter_context(Process(
            [str(options.build / "bare_echo"), "127.0.0.1", str(upstream_port)], LOAD_CPU,
            is_first=True))
        upstream.wait_until_listening(upstream_port)
        contender.values.update(SERVERS="\n".join(line.format(i, upstream_port)
                                                  for i in range(options.servers)))
        pid = stack.enter_context(contender.running("servers", upstream_port, port))
        result = {}
        for phase in ("quiet", "beside"):
            with ExitStack() as load:
                if phase == "beside":
                    result["first_kib"] = rss_kib(pid)
                    changes = [load.enter_context(child(
                        change, kind, config_of(pid), upstream_port, options.rate / CHANGERS, i))
                        for i in range(CHANGERS)]
                visits = load.enter_context(child(visit, port))
                clients = load.enter_context(traffic(options, port, pid))
                result[phase] = result_of(clients, options)
                result[f"{phase} visits"] = received(visits)
                if phase == "beside":
                    result["changes"] = together([received(one) for one in changes])
                    result["most_kib"] = rss_kib(pid)
        time.sleep(SETTLE_S)
        result["last_kib"] = rss_kib(pid)
        return result


# ---- the table ----

HEAD = ["server", "changes/s", "refused", "change p50", "p99", "round trip p99 quiet", "beside", "max beside",
        "visit p99 quiet", "beside", "visits", "failed", "MiB before/after/settled"]


def share(times, percent):
    """That percentile."""
    return f"{sorted(times)[int(len(times) * percent / 100)]:.2f}"


def line_of(name, one):
    """One line of the table."""
    n, seconds, refused, took = one["changes"]
    quiet, beside = one["quiet visits"], one["beside visits"]
    return [name, f"{(n - sum(refused.values())) / seconds:.0f}", str(sum(refused.values())),
            share(took, 50), share(took, 99),
            f"{one['quiet']['p99_us'] / 1000:.2f}", f"{one['beside']['p99_us'] / 1000:.2f}",
            f"{one['beside']['max_us'] / 1000:.2f}", share(quiet[0], 99), share(beside[0], 99),
            str(len(quiet[0]) + len(beside[0])), str(len(quiet[1]) + len(beside[1])),
            "/".join(f"{one[key] / 1024:.1f}" for key in ("first_kib", "most_kib", "last_kib"))]


def main():
    """Measure, and print the table; all times in ms. Fails if a client of reactord does."""
    options = read_options()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    os.sched_setaffinity(0, {LOAD_CPU})
    everyone, results, others = all_contenders(options), {}, Others()
    for name in options.contenders.split(","):
        contender, kind, line = everyone[name]
        if contender.why_missing():
            print(f"skipped: {name}: {contender.why_missing()}", file=sys.stderr)
            continue
        try:
            with before_others() if options.before_others else nullcontext():
                results[name] = measure(contender, kind, line, options)
        except (BenchError, OSError) as error:
            print(f"{name}: {error}", file=sys.stderr)
    print(lines(HEAD, [line_of(name, one) for name, one in results.items()]))
    for name, one in results.items():
        for why, n in one["changes"][2].items():
            print(f"{name}: {n} changes refused: {why}")
        for why in sorted(set(one["quiet visits"][1] + one["beside visits"][1])):
            print(f"{name}: a visit failed: {why}")
    print(f"\nTimes in ms; {options.seconds:g} s a phase, {options.servers} servers that stay; others used "
          f"{others.percent():.0f} % of the machine.")
    ours = results.get("reactord")
    return 0 if ours and not ours["beside visits"][1] and not ours["changes"][2] else 1


if __name__ == "__main__":
    sys.exit(main())
