#!/usr/bin/env python3
"""
skew.py: what light connections notice when heavy ones are all on one of four loops.

1,000 connections make round trips of 64 B at a fixed rate; 10 others echo 2 KiB without pause, all
on one loop: through their own listener, which HAProxy binds to one thread, and whose sessions
reactord is told to move; while they connect, nginx's other workers are stopped. See README.md.
"""

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from control import UnixConnection
from engine.measure.machine import before_others
from runner.contender import CONF, LOAD_CPU, fill_in
from runner.options import add_before_others, add_build, add_servers
from runner.process import BenchError, Process, come_first, free_port

LOOPS = 4
SETTLE_S = 8.0    # until the light connections are open, and loops may be rebalanced
CHANGE_S = 5.0    # heavy connections that change last so long
ALONE_S = 0.03    # so long only one worker of nginx accepts
ALL_CPUS = sorted(os.sched_getaffinity(0))
GRACE_S = 30

CONTENDERS = {
    "reactord off": ("reactord", ["-c"], "skew-reactord.ini.in"),
    "reactord auto": ("reactord", ["-c"], "skew-reactord.ini.in"),
    "haproxy": ("haproxy", ["-db", "-q", "-f"], "skew-haproxy.cfg.in"),
    "nginx": ("nginx", ["-e", "stderr", "-c"], "skew-nginx.conf.in"),
}


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Light connections beside heavy ones on one loop.")
    parser.add_argument("--seconds", type=float, default=10.0, help="measured time of one run")
    parser.add_argument("--light", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=2000, help="round trips a second of the light")
    parser.add_argument("--heavy", type=int, default=10)
    parser.add_argument("--size", type=int, default=2048, help="bytes a heavy connection echoes")
    parser.add_argument("--loads", default="even,fixed,changing", metavar="NAME,...",
                        help="even: no heavy ones; changing: others each 5 s (default: %(default)s)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), metavar="NAME,...")
    add_servers(parser, "haproxy", "nginx")
    add_build(parser)
    add_before_others(parser)
    return parser.parse_args()


class Everywhere(Process):
    """A server that may use all processors."""

    def __init__(self, command, **popen):
        super().__init__(command, ALL_CPUS[0], **popen)
        os.sched_setaffinity(self.child.pid, ALL_CPUS)


def post(path, where, body):
    """A request to reactord's admin interface; its answer."""
    connection = UnixConnection(str(path))
    connection.request("POST", where, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse().read()
    connection.close()
    return json.loads(answer)


def processes(pid):
    """${pid} and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *map(int, children)]


def cpu_s(pid):
    """(how long the threads of a server ran, how long they waited for a processor) so far"""
    ran_ns = waited_ns = 0
    for one in processes(pid):
        for path in Path(f"/proc/{one}/task").glob("*/schedstat"):
            ran, waited, _ = map(int, path.read_text(encoding="ascii").split())
            ran_ns, waited_ns = ran_ns + ran, waited_ns + waited
    return ran_ns / 1e9, waited_ns / 1e9


@contextmanager
def only_worker(workers, number):
    """Stop all other ${workers} of nginx; no worker: nothing."""
    others = [pid for i, pid in enumerate(workers) if i != number]
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


def loadgen(options, port, mode, connections, size, seconds, *more, is_first=False):
    """A load under way; with ${is_first} before all others on its processor (root)."""
    return subprocess.Popen([str(options.build / "loadgen"), "--connect", f"127.0.0.1:{port}",
                             "--mode", mode, "--connections", str(connections), "--size", str(size),
                             "--seconds", str(seconds), *more], stdout=subprocess.PIPE, text=True,
                            preexec_fn=(lambda: come_first(LOAD_CPU)) if is_first else None)


def result_of(load, seconds):
    """What ${load} has measured."""
    output, _ = load.communicate(timeout=seconds + GRACE_S)
    if load.returncode != 0:
        raise BenchError(f"loadgen ended with {load.returncode}")
    return json.loads(output)


class Heavy:
    """The heavy connections of a run, one generation after the other."""

    def __init__(self, options, ports, admin, workers):
        self.options, self.ports, self.admin, self.workers = options, ports, admin, workers
        self.bytes, self.seconds, self.per_process = 0, 0.0, []

    def begin(self, number, seconds):
        """Open a generation on loop ${number}."""
        with only_worker(self.workers, number % LOOPS):
            load = loadgen(self.options, self.ports[number % LOOPS], "pingpong",
                           self.options.heavy, self.options.size, seconds)
            time.sleep(ALONE_S)
        time.sleep(0.1)
        if self.admin.exists():
            post(self.admin, "/v1/sessions/move",
                 {"listener": "heavy", "to": f"work-2-{number % LOOPS + 1}"})
        return load

    def run(self, seconds, every_s):
        """Keep heavy connections open for so long."""
        number, end = 0, time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0.5:
            load = self.begin(number, min(every_s, left_s))
            result = result_of(load, seconds)
            self.bytes += result["bytes"]
            self.seconds += result["seconds"]
            number += 1


def measure(options, name, load):
    """One run."""
    program, arguments, template = CONTENDERS[name]
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reactord-bench-")))
        upstream = free_port()
        stack.enter_context(Everywhere([str(options.build / "bare_echo"), "127.0.0.1",
                                        str(upstream)])).wait_until_listening(upstream)
        ports = [free_port() for _ in range(LOOPS + 1)]
        values = {"PORT": ports[0], "UPSTREAM_PORT": upstream, "DIRECTORY": directory,
                  "REBALANCE": name.split()[-1]}
        values |= {f"HEAVY{i}": ports[i] for i in range(1, LOOPS + 1)}
        text = fill_in((CONF / template).read_text(encoding="utf-8"), values)
        (directory / "conf").write_text(text, encoding="utf-8")
        server = stack.enter_context(Everywhere(
            [str(getattr(options, program)), *arguments, str(directory / "conf")],
            stderr=open(directory / "log", "w+", encoding="utf-8")))
        server.wait_until_listening(ports[0])
        pid, seconds = server.child.pid, SETTLE_S + options.seconds
        light = loadgen(options, ports[0], "pace", options.light, 64, options.seconds, "--warmup",
                        str(SETTLE_S), "--rate", str(options.rate), is_first=True)
        began_s = cpu_s(pid)
        heavy = Heavy(options, ports[1:], directory / "admin.sock", processes(pid)[1:])
        if load != "even":
            heavy.run(seconds, CHANGE_S if load == "changing" else seconds)
        result = result_of(light, seconds)
        ran_s, waited_s = (now - then for now, then in zip(cpu_s(pid), began_s))
        log = (directory / "log").read_text(encoding="utf-8")
        return {"p50": result["p50_us"] / 1000, "p99": result["p99_us"] / 1000,
                "p99.9": result["p999_us"] / 1000, "rate": result["ops_per_s"],
                "heavy": heavy.bytes / 1e6 / heavy.seconds if heavy.seconds else 0.0,
                "cpu": 100 * ran_s / seconds, "waits": 100 * waited_s / seconds,
                "moves": log.count("rebalanced: ")}


def main():
    """Run all, and write the table."""
    options = read_options()
    rows = [["load", "server", "light p50", "p99", "p99.9", "trips/s", "heavy MB/s", "CPU %",
             "waits for CPU %", "rebalanced"]]
    with before_others() if options.before_others else nullcontext():
        run_all(options, rows)
    print("\n".join("| " + " | ".join(row) + " |" for row in rows))


def run_all(options, rows):
    """Run all, and add their rows."""
    for load in options.loads.split(","):
        for name in options.contenders.split(","):
            r = measure(options, name, load)
            rows.append([load, name, f"{r['p50']:.2f}", f"{r['p99']:.2f}", f"{r['p99.9']:.2f}",
                         f"{r['rate']:.0f}", f"{r['heavy']:.0f}", f"{r['cpu']:.0f}",
                         f"{r['waits']:.0f}", str(r["moves"])])
            print(" | ".join(rows[-1]), flush=True)


if __name__ == "__main__":
    main()
