#!/usr/bin/env python3
"""
bans.py: one address that connects far too often beside 1,000 good clients.

Each good client has an address of its own, connects every few seconds, sends 64 B and reads the
echo; the offender connects all the time. reactord with `ban`, in a dry run and without a rule, and
HAProxy with a stick table of the same rule. See README.md.
"""

import argparse
import os
import selectors
import signal
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles

from runner.contender import LOAD_CPU, SERVER_CPU
from runner.options import add_build, add_servers
from runner.process import BenchError, Process, free_port
from runner.table import lines

PING = bytes(64)
OFFENDER = "127.0.0.99"

REACTORD = """
[reactord]
log_level = error
[boss]
threads = 1
[worker]
threads = 1
[listen front]
address = 127.0.0.1:{port}
service = proxy
upstream = back
{rule}
[upstream back]
server.a = 127.0.0.1:{upstream}
"""
LIMIT = "connection_rate_per_client = 10/s burst=10\nban = 10m after 100 in 10s\nover_limit = {}\n"

HAPROXY = """
global
    nbthread 1
    maxconn 9000
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
frontend front
    bind 127.0.0.1:{port} backlog 4096
    {rule}
    default_backend back
backend back
    server a 127.0.0.1:{upstream}
"""
STICK = """stick-table type ip size 64k expire 10m store conn_rate(10s),gpc0
    tcp-request connection reject if {{ src_get_gpc0 gt 0 }}
    tcp-request connection track-sc0 src
    tcp-request connection reject if {{ sc0_conn_rate gt 100 }} {{ sc0_inc_gpc0 gt 0 }}"""

# name, program, configuration, rule, does the offender come
CASES = [
    ("reactord, no offender", "reactord", REACTORD, LIMIT.format("reset"), False),
    ("reactord, no rule", "reactord", REACTORD, "", True),
    ("reactord, ban", "reactord", REACTORD, LIMIT.format("reset"), True),
    ("reactord, dry run", "reactord", REACTORD, LIMIT.format("log"), True),
    ("haproxy, no offender", "haproxy", HAPROXY, STICK.replace("{{", "{").replace("}}", "}"), False),
    ("haproxy, no rule", "haproxy", HAPROXY, "", True),
    ("haproxy, stick table", "haproxy", HAPROXY, STICK.replace("{{", "{").replace("}}", "}"), True),
]


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="One offender beside good clients.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="measured time of one run")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between a client's connections")
    parser.add_argument("--rate", type=int, default=200, help="connections a second of the offender")
    add_servers(parser, "haproxy")
    add_build(parser)
    return parser.parse_args()


def cpu_ns(pid):
    """The CPU time of all threads."""
    return sum(int(Path(task, "schedstat").read_text(encoding="ascii").split()[0])
               for task in Path(f"/proc/{pid}/task").iterdir())


class Load:
    """All clients, on one thread."""

    def __init__(self, port, options, has_offender):
        self.port, self.options = port, options
        self.selector = selectors.DefaultSelector()
        now = time.monotonic()
        step = options.every / options.clients
        self.next_good, self.good_step, self.number = now, step, 0
        self.next_bad = now if has_offender else float("inf")
        self.bad_step = 1 / options.rate
        self.reset()

    def reset(self):
        """Measure from here on."""
        self.times, self.lost, self.served, self.refused, self.late = [], 0, 0, 0, 0

    def begin(self, host):
        s = socket.socket()
        s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.setsockopt(socket.SOL_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        s.bind((host, 0))
        s.connect_ex(("127.0.0.1", self.port))
        self.selector.register(s, selectors.EVENT_WRITE, (host == OFFENDER, time.monotonic()))

    def end(self, s, is_served):
        is_bad, began = self.selector.unregister(s).data
        s.close()
        if is_bad:
            self.served += is_served
            self.refused += not is_served
        elif is_served:
            self.times.append(time.monotonic() - began)
        else:
            self.lost += 1

    def handle(self, key, events):
        s = key.fileobj
        try:
            if events & selectors.EVENT_WRITE:
                s.send(PING)
                self.selector.modify(s, selectors.EVENT_READ, key.data)
            else:
                self.end(s, len(s.recv(100)) == len(PING))
        except BlockingIOError:
            pass
        except OSError:
            self.end(s, False)

    def run(self, seconds):
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            while self.next_good <= now:
                self.number = (self.number + 1) % self.options.clients
                self.begin(f"127.0.{1 + self.number // 250}.{1 + self.number % 250}")
                self.next_good += self.good_step
            while self.next_bad <= now:
                self.begin(OFFENDER)
                self.next_bad += self.bad_step
            for key, events in self.selector.select(0.001):
                self.handle(key, events)


def measure(case, options):
    """One run: the figures of a row."""
    _, program, text, rule, has_offender = case
    with ExitStack() as stack:
        upstream = free_port()
        back = stack.enter_context(Process(
            [str(options.build / "bare_echo"), "127.0.0.1", str(upstream)], LOAD_CPU))
        back.wait_until_listening(upstream)
        port = free_port()
        path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "conf")
        path.write_text(text.format(port=port, upstream=upstream, rule=rule), encoding="ascii")
        command = ([str(options.reactord), "-c", str(path)] if program == "reactord"
                   else [options.haproxy, "-db", "-f", str(path)])
        server = stack.enter_context(Process(command, SERVER_CPU))
        server.wait_until_listening(port)
        load = Load(port, options, has_offender)
        load.run(2)  # until the ban
        load.reset()
        before, began = cpu_ns(server.child.pid), time.monotonic()
        load.run(options.seconds)
        took = time.monotonic() - began
        cpu = cpu_ns(server.child.pid) - before
        times = quantiles(load.times, n=100)
        return {"served": len(load.times) / took, "lost": load.lost, "p50": times[49] * 1e3,
                "p99": times[98] * 1e3, "bad_served": load.served / took,
                "bad_refused": load.refused / took, "cpu": cpu / took / 1e7}


def main():
    """Measure, and print the table."""
    options = read_options()
    os.sched_setaffinity(0, [LOAD_CPU])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    print(f"{options.clients} clients, each connecting every {options.every:g} s, beside one address at "
          f"{options.rate} connections/s; {options.rounds} rounds of {options.seconds:g} s, load average "
          f"{os.getloadavg()[0]:.2f}\n")
    results = {}
    for number in range(options.rounds):
        turn = number % len(CASES)
        for case in CASES[turn:] + CASES[:turn]:
            try:
                results.setdefault(case[0], []).append(measure(case, options))
            except BenchError as error:
                raise SystemExit(f"bans.py: {case[0]}: {error}") from error

    def mid(name, figure):
        return median(run[figure] for run in results[name])

    header = ["", "good: served/s", "lost", "p50 / p99 ms", "offender: served/s", "refused/s", "CPU"]
    table = [[name, f"{mid(name, 'served'):.0f}", f"{sum(run['lost'] for run in results[name])}",
               f"{mid(name, 'p50'):.2f} / {mid(name, 'p99'):.2f}", f"{mid(name, 'bad_served'):.0f}",
               f"{mid(name, 'bad_refused'):.0f}", f"{mid(name, 'cpu'):.1f}%"] for name in results]
    print(lines(header, table))


if __name__ == "__main__":
    main()
