#!/usr/bin/env python3
"""
pair.py: what clients notice when the address of a pair moves, beside HAProxy. Needs root, for
network namespaces, and keepalived.

See README.md, "A pair".
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from engine.measure.machine import Others
from pair import network
from pair.contenders import PORT, SERVER_PORT, Node, all_pairs, wait
from runner.options import add_servers
from runner.process import BenchError
from runner.progress import progress
from runner.table import lines

HERE = Path(__file__).resolve().parent / "pair"
BEFORE_S = 2.0  # of load before the first event
AFTER_S = 6.0   # after the last
SETTLE_S = 3.0  # of keepalived, once a node is started
BOTH_S = 9.0 + SETTLE_S  # from a planned switch to the end of the drain, and until the node is ready again


def kill(nodes):
    """kill -9 of the proxy of the master."""
    nodes[0].kill()


def planned(nodes):
    """The proxy of the master is told to end, and starts again."""
    nodes[0].drain()


def both(nodes):
    """A planned switch; once the first node is back, kill -9 of the proxy of the other."""
    nodes[0].drain()
    wait(nodes[1].has_vip, "the address moves")
    nodes[0].proxy.wait()
    nodes[0].start()
    time.sleep(SETTLE_S)
    nodes[1].kill()


def cut(nodes):
    """The cable of the master is pulled: as if the machine had died."""
    network.unplug(nodes[0].name)


EVENTS = {"kill": kill, "planned": planned, "both": both, "cut": cut}


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="What do clients notice when a pair switches?")
    parser.add_argument("--rounds", type=int, default=5, help="of each event (default: 5)")
    parser.add_argument("--rate", type=float, default=300, help="new connections a second (default: 300)")
    parser.add_argument("--sessions", type=int, default=50, help="that stay (default: 50)")
    parser.add_argument("--events", default=",".join(EVENTS), metavar="NAME,...", help="default: %(default)s")
    parser.add_argument("--contenders", default="reactord,reactord-plain,haproxy,haproxy3", metavar="NAME,...",
                        help="default: all that can run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every result")
    parser.add_argument("--log", action="store_true", help="write what the nodes say")
    add_servers(parser, "haproxy", "haproxy3")
    options = parser.parse_args()
    options.pairs = all_pairs(options)
    options.contenders = options.contenders.split(",")
    options.events = options.events.split(",")
    for given, known in ((options.events, EVENTS), (options.contenders, options.pairs)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"no such thing: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


def child(host, program, *words, **popen):
    """One of our programs on that host."""
    return subprocess.Popen(network.inside(host, sys.executable, str(HERE / program), *map(str, words)),
                            stdin=subprocess.DEVNULL, **popen)


def run_once(event, pair, options):
    """One run, everything started afresh: what the load has written, and when the event began."""
    with ExitStack() as stack:
        stack.enter_context(network.hosts())
        server = child("server", "server.py", SERVER_PORT, stdout=subprocess.PIPE)
        stack.callback(server.wait)
        stack.callback(server.kill)
        server.stdout.readline()
        nodes = [stack.enter_context(Node(name, pair)) for name in network.NODES]
        if options.log:
            stack.callback(lambda: print(*(node.log() for node in nodes), sep="\n", file=sys.stderr))
        master = wait(lambda: next((node for node in nodes if node.has_vip()), None), "a master")
        nodes.sort(key=lambda node: node is not master)
        time.sleep(SETTLE_S)  # the other one is ready, too
        seconds = BEFORE_S + AFTER_S + (BOTH_S if event == "both" else 0)
        load = child("client", "load.py", network.VIP, PORT, seconds, options.rate, options.sessions,
                     stdout=subprocess.PIPE, text=True)
        stack.callback(load.kill)
        time.sleep(BEFORE_S)
        began = time.monotonic()
        EVENTS[event](nodes)
        text, _ = load.communicate(timeout=120)
        if load.returncode != 0:
            raise BenchError(f"load.py ended with {load.returncode}")
        return json.loads(text), began


def outcome(result, began):
    """The figures of a run."""
    new = result["new"]
    done = sorted(begun + took for begun, took, why in new if why is None)
    before = [why for begun, _, why in new if why and begun < began - 0.5]
    if before:
        raise BenchError(f"{len(before)} connections failed before the event: {before[0]}")
    why = {}
    for _, _, reason in new:
        if reason:
            why[reason] = why.get(reason, 0) + 1
    after = sorted(took for begun, took, reason in new if reason is None and begun > began - 0.5)
    return {"new": len(new), "failed": sum(why.values()), "why": why, "cuts": len(result["cuts"]),
            "gap_ms": 1000 * max((b - a for a, b in zip(done, done[1:]) if b > began), default=float("inf")),
            "wait_p99_ms": 1000 * after[int(len(after) * 0.99)], "wait_ms": 1000 * after[-1]}


def row(event, name, outcomes):
    """The line of the table."""
    gaps = [o["gap_ms"] for o in outcomes]
    why = {}
    for o in outcomes:
        for reason, n in o["why"].items():
            why[reason] = why.get(reason, 0) + n
    return [event, name, str(sum(o["new"] for o in outcomes)), str(sum(o["failed"] for o in outcomes)),
            str(sum(o["cuts"] for o in outcomes)), f"{median(gaps):.0f}", f"{max(gaps):.0f}",
            f"{median(o['wait_p99_ms'] for o in outcomes):.1f}", f"{max(o['wait_ms'] for o in outcomes):.0f}",
            ", ".join(f"{n} {reason}" for reason, n in sorted(why.items())) or "-"]


def main():
    """Run, and print the table."""
    options = read_options()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    names = []
    for name in options.contenders:
        reason = options.pairs[name].why_missing()
        if reason:
            print(f"left out: {name}: {reason}", file=sys.stderr)
        else:
            names.append(name)
    try:
        network.enter({str(options.pairs[name].root) for name in names} - {"/"})
    except (PermissionError, BenchError) as error:
        sys.exit(f"pair.py: {error}")
    rows, every, others, is_met = [], [], Others(), True
    for event in options.events:
        for name in names:
            outcomes = []
            for number in range(options.rounds):
                progress(f"{event}: {name} {number + 1}")
                try:
                    outcomes.append(outcome(*run_once(event, options.pairs[name], options)))
                except BenchError as error:
                    progress(f"{event}: {name}: {error}", is_lasting=True)
            every += [{"event": event, "pair": name, **o} for o in outcomes]
            if outcomes:
                rows.append(row(event, name, outcomes))
            is_met &= len(outcomes) == options.rounds and (
                event != "planned" or name != "reactord" or not any(o["failed"] for o in outcomes))
    progress("")
    print(lines(["event", "pair", "new connections", "failed", "sessions cut", "gap, ms", "longest",
                 "wait p99, ms", "longest", "why"], rows))
    print(f"\n{options.rounds} rounds, {options.sessions} sessions, {os.cpu_count()} CPUs; "
          f"others used {others.percent():.0f} % of the machine")
    if options.json:
        options.json.write_text(json.dumps(every, indent=1), encoding="utf-8")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
