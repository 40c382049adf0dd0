#!/usr/bin/env python3
"""
reload.py: what clients notice of reloads and upgrades, or of more and fewer workers, beside HAProxy
and nginx.

See README.md, "Reload" and "Workers that come and go".
"""

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from reload.contenders import all_contenders
from reload.load import Stream, Told, Visitor, Wrk, count_cut, idle, usage
from runner.contender import CONF, fill_in
from runner.options import add_servers
from runner.process import BenchError, Process, free_port
from runner.progress import progress

UPGRADES = 3
SETTLE_S = 3
RESIZE_S = 2  # between two numbers of workers


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="What do clients notice of a reload?")
    parser.add_argument("--seconds", type=int, default=60, help="of a reload each (default: 60)")
    parser.add_argument("--idle", type=int, default=1000, help="idle connections (default: 1000)")
    parser.add_argument("--streams", type=int, default=8, help="long streams (default: 8)")
    parser.add_argument("--connections", type=int, default=50, help="of wrk (default: 50)")
    parser.add_argument("--contenders", default="reactord,haproxy3,haproxy,nginx",
                        metavar="NAME,...", help="default: all that can run")
    parser.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")],
                        metavar="N,...", help="change nothing but the number of workers, to the "
                        f"next of these each {RESIZE_S} s, without upgrades")
    add_servers(parser, "haproxy", "haproxy3", "nginx")
    return parser.parse_args()


def changed(ports, turn):
    """The values of the configuration of that turn: one thing at a time is another."""
    values = {**ports, "THREADS": 2, "TIMEOUT": 3600, "LIMIT": 5000, "WEIGHT": 1}
    which = turn % 6
    if which == 0:
        values["SECOND"] = ports["THIRD"] if turn % 12 == 0 else ports["SECOND"]
        values["WEIGHT"] = 2 + turn % 5
    elif which == 1:
        values["WEIGHT"] = 10 + turn % 7
    elif which == 2:
        values["TIMEOUT"] = 3000 + turn
    elif which == 3:
        values["LIMIT"] = 5000 + turn
    elif which == 4:
        values["MORE"] = ports["OTHER"]
    else:
        values["THREADS"] = 3
    return values


class Watch(threading.Thread):
    """Looks at processes, descriptors and memory until it is stopped; keeps the most."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.going = server, True
        self.most = (0, 0, 0)
        self.start()

    def run(self):
        while self.going:
            self.most = tuple(map(max, self.most, self.now()))
            time.sleep(0.5)

    def now(self):
        """Processes, descriptors, KiB."""
        pids = self.server.pids()
        return (len(pids), *usage(pids))


def fallen(before, after):
    """How many counters are less than they were; server b is another one at another address."""
    fell = [name for name, value in before.items()
            if after.get(name, 0) < value and "web/b" not in name and "web b" not in name]
    if fell:
        progress(f"fell: {', '.join(fell)}", is_lasting=True)
    return len(fell)


def disturb(server, ports, seconds, told_of):
    """A change each second, then the upgrades; how many counters fell, how many were done."""
    falls, upgrades, last = 0, 0, server.counters()
    for turn in range(seconds + UPGRADES):
        began_s = time.monotonic()
        server.write(changed(ports, turn))
        if turn < seconds:
            server.reload()
        else:
            upgrades += server.upgrade()
        time.sleep(max(0.0, began_s + (1 if turn < seconds else 2) - time.monotonic()))
        if turn % 5 == 4 or turn >= seconds:
            now = server.counters()
            falls += fallen(last, now)
            last = now
        progress(f"{told_of}: {turn + 1}")
    return falls, upgrades


def resize(server, ports, options, told_of):
    """Another number of workers each RESIZE_S; how many counters fell, how many upgrades."""
    falls, last, values = 0, server.counters(), changed(ports, 4)
    for turn in range(options.seconds // RESIZE_S):
        began_s = time.monotonic()
        server.resize({**values, "THREADS": options.workers[turn % len(options.workers)]})
        time.sleep(max(0.0, began_s + RESIZE_S - time.monotonic()))
        now = server.counters()
        falls += fallen(last, now)
        last = now
        progress(f"{told_of}: {turn + 1}")
    return falls, 0


def run_once(name, server, options, stack):
    """One run; a row of the table."""
    ports = {key: free_port() for key in
             ("WEB", "RAW", "MORE", "OTHER", "FIRST", "SECOND", "THIRD", "ECHO")}
    files = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reactord-bench-")))
    (files / "small").write_bytes(b"x" * 1024)
    text = (CONF / "reload-backend.conf.in").read_text(encoding="utf-8")
    (files / "conf").write_text(fill_in(text, {**ports, "FILES": files}), encoding="utf-8")
    backend = stack.enter_context(Process([options.nginx, "-e", "stderr", "-c",
                                           str(files / "conf")], 0))
    backend.wait_until_listening(ports["FIRST"])
    echo = stack.enter_context(echo_of(options, ports, files))
    echo.wait_until_listening(ports["ECHO"])
    stack.enter_context(server)
    server.write(changed(ports, 4 + 6 * 100) | {"MORE": ports["MORE"]})
    server.start(ports["WEB"])
    quiet = idle(ports["RAW"], options.idle)
    streams = [Stream(ports["RAW"]) for _ in range(options.streams)]
    time.sleep(1)
    first = (len(server.pids()), *usage(server.pids()))
    visitors = [Visitor(ports["WEB"]) for _ in range(2)]
    wrk = Wrk(ports["WEB"], options.seconds + 2 * UPGRADES, options.connections)
    watch = Watch(server)
    told = Told()
    if options.workers:
        falls, upgrades = resize(server, ports, options, name)
    else:
        falls, upgrades = disturb(server, ports, options.seconds, name)
    for client in visitors + streams:
        client.stop()
    wrk.result(told)
    told.connects += sum(v.connects for v in visitors)
    told.failed_connects += sum(v.failed_connects for v in visitors)
    told.failed_requests += sum(v.failed_requests for v in visitors)
    told.streams_cut = sum(s.cut for s in streams)
    told.bytes_lost = sum(s.sent - s.back for s in streams)
    time.sleep(SETTLE_S)
    last = watch.now()
    watch.going = False
    told.idle_cut = count_cut(quiet)
    return told, falls if server.has_counters else None, upgrades, first, watch.most, last


def echo_of(options, ports, files):
    """An echo for the streams."""
    (files / "echo.ini").write_text(f"[listen echo]\naddress = 127.0.0.1:{ports['ECHO']}\n"
                                    "service = echo\n[reactord]\nlog_level = error\n",
                                    encoding="utf-8")
    return Process([options.reactord, "-c", str(files / "echo.ini")], 0)


def print_table(rows):
    """One line for each."""
    print("\n| | connects | failed | requests failed | p99 ms | streams cut | bytes lost "
          "| idle cut | counters fell | upgrades | processes first/peak/end | descriptors | PSS MiB |")
    print("|" + "---|" * 13)
    for name, (told, falls, upgrades, first, most, last) in rows.items():
        def three(i, scale=1):
            return "/".join(f"{values[i] / scale:.0f}" for values in (first, most, last))
        print(f"| {name} | {told.connects} | {told.failed_connects} | {told.failed_requests} of "
              f"{told.requests + told.connects} | {told.p99_ms:.1f} | {told.streams_cut} "
              f"| {told.bytes_lost} | {told.idle_cut} | {'-' if falls is None else falls} | {upgrades} "
              f"| {three(0)} | {three(1)} | {three(2, 1024)} |")


def main():
    """Run, and print the table."""
    options = read_options()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    everyone, rows, is_whole = all_contenders(options), {}, True
    what = (f"{'-'.join(map(str, options.workers))} workers, {RESIZE_S} s each, for "
            f"{options.seconds} s" if options.workers else
            f"a change each second for {options.seconds} s, then {UPGRADES} upgrades")
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, Linux {platform.release()}, {os.cpu_count()} CPUs, "
          f"{options.idle} idle, {options.streams} streams, {what}", flush=True)
    for name in options.contenders.split(","):
        server = everyone[name]
        if server.why_missing():
            print(f"skipped: {name}: {server.why_missing()}")
            continue
        try:
            with ExitStack() as stack:
                rows[name] = run_once(name, server, options, stack)
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            progress(f"{name} drops out: {error}", is_lasting=True)
            is_whole = False
    progress("")
    print_table(rows)
    if "reactord" in rows:
        told, falls, *_ = rows["reactord"]
        lost = (told.failed_connects + told.failed_requests + told.streams_cut + told.bytes_lost +
                told.idle_cut + falls)
        print(f"\nreactord: nothing is lost: {'met' if lost == 0 else 'MISSED'}")
        is_whole &= lost == 0
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
