#!/usr/bin/env python3
"""
nodes.py: what becomes of connections when a node behind a router leaves, returns, dies or is upgraded.

A router spreads connections over 2, 4 or 8 reactords by multipath routes (ECMP). New connections come at
a rate, and sessions are held; each byte is compared. Needs root. See README.md, "Many nodes".
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from control import child
from nodes.load import clients, serve
from nodes.network import PORT, SERVER, SERVER_PORT, VIP, Network
from runner.contender import CONF, SERVER_CPU, fill_in
from runner.namespaces import CLONE_NEWNS, CLONE_NEWPID, inside, keep_mounts, new_namespaces, run
from runner.options import add_servers
from runner.process import BenchError, Process
from runner.progress import progress
from runner.table import lines

READY_S, STOP_S = 10, 10
QUIET_S, GONE_S, BACK_S, WAKE_S = 1, 2, 3, 2
MEANWHILE = 4  # of the sessions, so many more are held while a node is away
PROBE_EACH_S, PROBES = 0.1, 2  # as a health check of a routing daemon: down after so many
HEADER = ["nodes", "next hops", "what", "held", "cut: at the node", "elsewhere, it leaves", "elsewhere, it returns",
          "elsewhere, silent until then", "new connections", "failed"]


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Nodes behind a router: one leaves, returns, dies, is upgraded.")
    parser.add_argument("--nodes", default="2,4,8", metavar="N,...", help="default: %(default)s")
    parser.add_argument("--hops", default="plain,resilient", metavar="KIND,...", help="default: %(default)s")
    parser.add_argument("--what", default=",".join(WAYS), metavar="NAME,...", help="default: %(default)s")
    parser.add_argument("--rate", type=int, default=200, help="new connections a second (default: %(default)s)")
    parser.add_argument("--sessions", type=int, default=400, help="held (default: %(default)s)")
    add_servers(parser)
    options = parser.parse_args()
    options.what, options.hops = options.what.split(","), options.hops.split(",")
    options.nodes = [int(n) for n in options.nodes.split(",")]
    for name in options.what:
        if name not in WAYS:
            parser.error(f"no such thing: {name}; there are {', '.join(WAYS)}")
    if not set(options.hops) <= {"plain", "resilient"} or min(options.nodes) < 2 or max(options.nodes) > 100:
        parser.error("--hops are plain and resilient, --nodes 2 to 100")
    options.reactord = Path(options.reactord).resolve()
    return options


# ---- nodes ----

class Node:
    """A reactord in a namespace of its own."""

    def __init__(self, number, directory, options):
        self.number, self.namespace, self.process = number, f"node{number}", None
        self.reactord, self.conf = options.reactord, directory / f"node{number}.ini"
        self.socket, self.log = str(directory / f"node{number}.sock"), directory / f"node{number}.log"
        values = {"DIRECTORY": directory, "NODE": number, "VIP": VIP, "PORT": PORT, "SERVER": SERVER,
                  "SERVER_PORT": SERVER_PORT}
        text = (CONF / "nodes-reactord.ini.in").read_text(encoding="utf-8")
        self.conf.write_text(fill_in(text, values), encoding="utf-8")

    def start(self):
        """Start it, and wait until it is ready."""
        with open(self.log, "ab") as log:
            self.process = Process(inside(self.namespace, str(self.reactord), "-c", str(self.conf)), SERVER_CPU,
                                   stdout=log, stderr=log)
        ready = ctl(self.reactord, "-s", self.socket, "ready", "--wait", f"{READY_S}s")
        if ready.returncode != 0:
            raise BenchError(f"{self.namespace} is not ready: {ready.stderr}\n{self.log.read_text()}")

    def pids(self):
        """Its processes: an upgrade makes others."""
        found = subprocess.run(["ip", "netns", "pids", self.namespace], capture_output=True, text=True, check=True)
        return [int(pid) for pid in found.stdout.split()]

    def end(self, number):
        """Send its processes that signal, and wait for their end."""
        for pid in self.pids():
            os.kill(pid, number)
        end = time.monotonic() + STOP_S
        while self.pids():
            self.process.child.poll()
            if time.monotonic() > end:
                raise BenchError(f"{self.namespace} does not end")
            time.sleep(0.02)

    def is_ready(self):
        """As a health check of a routing daemon asks."""
        return ctl(self.reactord, "-s", self.socket, "--timeout", "500ms", "ready").returncode == 0


def ctl(reactord, *words):
    """Run reactorctl."""
    return subprocess.run([str(reactord.with_name("reactorctl")), *words], capture_output=True, text=True, check=False)


# ---- the load ----

class Load:
    """The clients, as they are told and asked."""

    def __init__(self, pipe, options):
        self.pipe, self.options, self.held, self.more = pipe, options, Counter(), 0

    def ask(self, *command):
        """The answer to a command."""
        self.pipe.send(command)
        if not self.pipe.poll(READY_S):
            raise BenchError("the load does not answer")
        return self.pipe.recv()

    def begin(self):
        """Hold the sessions, and begin with new connections; none of them may fail."""
        self.ask("hold", self.options.sessions)
        self.held = self._wait(lambda found: sum(found["held"].values()) == self.options.sessions)["held"]
        self.ask("start")
        time.sleep(QUIET_S)
        found = self.ask("look")
        if found["failed"] or found["cut"]:
            raise BenchError(f"failures before anything was done: {found}")


    def hold_meanwhile(self):
        """More sessions, while a node is away."""
        self.more += self.ask("hold", self.options.sessions // MEANWHILE)
        time.sleep(QUIET_S)

    def _wait(self, is_right):
        """Look until it is so."""
        end = time.monotonic() + READY_S
        while True:
            found = self.ask("look")
            if is_right(found):
                return found
            if found["failed"] or time.monotonic() > end:
                raise BenchError(f"the sessions cannot be held: {found}")
            time.sleep(0.1)


class Outcome:
    """What a run found."""

    def __init__(self):
        self.new, self.failed, self.stages, self.note, self.transcript = 0, Counter(), [], "", ""

    def add(self, found):
        """A look at the clients."""
        self.new += sum(found["served"].values()) + sum(found["failed"].values())
        self.failed += found["failed"]
        self.stages.append(found["cut"])

    def cut(self, stage, node=None, other_than=None):
        """Sessions that were cut in a stage, of a node, or of all but one."""
        return sum(n for (at, _), n in self.stages[stage].items() if node in (None, at) and at != other_than)


def settle(load, outcome, seconds):
    """Wait, and look."""
    time.sleep(seconds)
    outcome.add(load.ask("look"))


def finish(load, outcome):
    """The silent sessions speak."""
    load.ask("wake")
    settle(load, outcome, WAKE_S)


def leave(net, nodes, load):
    """A planned leave: the route is withdrawn, the node drains, is started again and announced when ready."""
    outcome, node = Outcome(), nodes[0]
    net.withdraw(node.number)
    settle(load, outcome, GONE_S)
    load.hold_meanwhile()
    node.end(signal.SIGTERM)
    node.start()
    net.announce(node.number)
    settle(load, outcome, BACK_S)
    finish(load, outcome)
    return outcome


def kill(net, nodes, load):
    """kill -9: a health check withdraws the route; the node is started again and announced when ready."""
    outcome, node, failures = Outcome(), nodes[0], 0
    node.end(signal.SIGKILL)
    began = time.monotonic()
    while failures < PROBES:
        failures = 0 if node.is_ready() else failures + 1
        time.sleep(PROBE_EACH_S)
    net.withdraw(node.number)
    outcome.note = f", withdrawn after {time.monotonic() - began:.1f} s"
    settle(load, outcome, GONE_S)
    load.hold_meanwhile()
    node.start()
    net.announce(node.number)
    settle(load, outcome, BACK_S)
    finish(load, outcome)
    return outcome


def restart_all(net, nodes, load):
    """One node after the other as leave() does."""
    outcome = Outcome()
    for node in nodes:
        net.withdraw(node.number)
        time.sleep(0.3)
        node.end(signal.SIGTERM)
        node.start()
        net.announce(node.number)
        time.sleep(GONE_S)
    settle(load, outcome, QUIET_S)
    finish(load, outcome)
    return outcome


def upgrade_all(_, nodes, load):
    """reactorctl --node ... upgrade: one after the other, each in place, with its route."""
    outcome, began = Outcome(), time.monotonic()
    done = ctl(nodes[0].reactord, "--node", ",".join(node.socket for node in nodes), "upgrade")
    if done.returncode != 0:
        raise BenchError(f"the upgrade has stopped:\n{done.stdout}{done.stderr}")
    outcome.note, outcome.transcript = f", {time.monotonic() - began:.1f} s", done.stdout
    settle(load, outcome, BACK_S)
    finish(load, outcome)
    return outcome


WAYS = {"leave": (leave, "leaves and returns"), "kill": (kill, "kill -9"),
        "restart-all": (restart_all, "all, one by one, leave and return"),
        "upgrade-all": (upgrade_all, "all, one by one, upgrade in place")}
ALL, IN_PLACE = ("restart-all", "upgrade-all"), ("upgrade-all",)  # of all nodes; without a change of routes


# ---- a run, in namespaces of its own ----

def row(count, hops, name, load, outcome):
    """The line of the table."""
    if name in ALL:
        total = sum(outcome.cut(stage) for stage in range(len(outcome.stages)))
        cut = [f"all nodes: {total} of {load.options.sessions}", "", "", ""]
    else:
        own = sum(outcome.cut(stage, 1) for stage in range(len(outcome.stages)))
        at_it = sum(n for (node, _), n in load.held.items() if node == 1)
        cut = [f"{own} of {at_it}", *(str(outcome.cut(stage, other_than=1)) for stage in range(3))]
    failed = ", ".join(f"{n} {why}" for why, n in sorted(outcome.failed.items())) or "0"
    held = f"{load.options.sessions} + {load.more}" if load.more else str(load.options.sessions)
    return [str(count), hops, WAYS[name][1] + outcome.note, held, *cut, str(outcome.new), failed]


def run_here(count, hops, name, options):
    """A run; its row and its transcript."""
    net = Network(count, hops)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reactord-bench-")))
        server = stack.enter_context(child(serve))
        if not server.poll(READY_S):
            raise BenchError("the server does not listen")
        nodes = [Node(number, directory, options) for number in net.all]
        for node in nodes:
            node.start()
        load = Load(stack.enter_context(child(clients, options.rate)), options)
        load.begin()
        outcome = WAYS[name][0](net, nodes, load)
        for node in nodes:
            node.end(signal.SIGTERM)
    return row(count, hops, name, load, outcome), outcome.transcript


def guarded(pipe, function, *args):
    """What the function returns, an exit status; if it fails, why goes into the pipe."""
    try:
        return function(pipe, *args)
    except (BenchError, PermissionError) as error:
        os.write(pipe, json.dumps(str(error)).encode())
    except Exception:
        os.write(pipe, json.dumps(traceback.format_exc()).encode())
    return 1


def as_init(pipe, *args):
    """The first process of a new namespace of processes: with it they all end."""
    run("mount", "-t", "proc", "proc", "/proc")
    os.write(pipe, json.dumps(run_here(*args)).encode())
    return 0


def own_processes(pipe, *args):
    """Fork the init of a new namespace of processes."""
    new_namespaces(CLONE_NEWNS)
    keep_mounts()
    new_namespaces(CLONE_NEWPID)  # after mount(8): the next child is the init
    pid = os.fork()
    if pid == 0:
        os._exit(guarded(pipe, as_init, *args))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run_once(*args):
    """A run in processes of its own; its row and its transcript."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        os._exit(guarded(theirs, own_processes, *args))
    os.close(theirs)
    with open(ours, "rb") as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code != 0 or not text:
        raise BenchError(json.loads(text) if text else f"a run ended with {code}")
    return json.loads(text)


def main():
    """Print the table, and the transcripts of the upgrades."""
    options = read_options()
    runs = [(n, hops, name, options) for name in options.what for n in options.nodes for hops in options.hops
            if (name not in ALL or n == max(options.nodes)) and (name not in IN_PLACE or hops == options.hops[0])]
    rows, transcripts = [], []
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, Linux {platform.release()}, {os.cpu_count()} CPUs, "
          f"{options.rate} new connections a second, half of the sessions talk", flush=True)
    try:
        for which in runs:
            progress(" ".join(map(str, which[:3])))
            found, transcript = run_once(*which)
            rows.append(found)
            transcripts += [transcript] if transcript else []
    except (BenchError, KeyboardInterrupt) as error:
        progress(f"nodes.py: {' '.join(map(str, which[:3]))}: {error or 'stopped'}", is_lasting=True)
    print(lines(HEADER, rows))
    for transcript in transcripts:
        print(f"\n{transcript}", end="")
    return 0 if len(rows) == len(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
