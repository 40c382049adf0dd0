#!/usr/bin/env python3
"""
io_ratio.py: what io_ratio 25, 50, 75 and auto do to tasks and to clients, under three mixes.

A host (engine/weakspots/host.c) has one worker loop on a processor of its own; load and the thread
that hands it tasks are on the other. See README.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from contextlib import nullcontext
from dataclasses import dataclass

from engine.measure.child import Child
from engine.measure.client import Client
from engine.measure.machine import Others, before_others
from runner.contender import LOAD_CPU, SERVER_CPU
from runner.options import add_before_others, add_build
from runner.process import BenchError, free_port

RATIOS = ("25", "50", "75", "auto")
ANSWER_S = 5
GRACE_S = 30


@dataclass(frozen=True)
class Mix:
    """What a loop has to do."""

    key: str
    title: str
    load: tuple  # arguments of loadgen
    tasks: tuple = ()  # a second, busy for so many us


MIXES = [
    Mix("io", "only I/O: 50 clients without pause", ("--mode", "pingpong", "--connections", "50")),
    Mix("short", "the same, and 20,000 tasks of 20 us a second",
        ("--mode", "pingpong", "--connections", "50"), (20000, 20)),
    Mix("heavy", "2,000 round trips a second, and 300 tasks of 1 ms",
        ("--mode", "pace", "--connections", "100", "--rate", "2000"), (300, 1000)),
]


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Tasks and clients by io_ratio.")
    parser.add_argument("--seconds", type=float, default=3.0, help="measured time of one run")
    parser.add_argument("--settle", type=float, default=6.0,
                        help="time before, in which auto finds its share (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mixes", default=",".join(mix.key for mix in MIXES), metavar="KEY,...")
    parser.add_argument("--ratios", default=",".join(RATIOS), metavar="RATIO,...")
    add_build(parser)
    add_before_others(parser)
    return parser.parse_args()


def place(pid):
    """The loops on the server's processor; the main thread, and threads it will start, not."""
    for thread in map(int, os.listdir(f"/proc/{pid}/task")):
        os.sched_setaffinity(thread, {LOAD_CPU if thread == pid else SERVER_CPU})


def ask(child, command, answer=None):
    """A command to the host, and its answer."""
    heard = child.ask(command, ANSWER_S)
    if heard is None or (answer and heard != answer):
        raise BenchError(f"{command}: the host says {heard}")
    return heard


def measure(options, mix, ratio):
    """One run: {figure: value}."""
    port = free_port()
    with Child([str(options.build / "engine" / "host"), str(port), ratio]) as child:
        child.wait_until_listening(port)
        with Client(port, ANSWER_S) as client:
            client.trip_ms()
        place(child.child.pid)
        if mix.tasks:
            ask(child, "feed {} {}".format(*mix.tasks), "feeding")
        command = [str(options.build / "loadgen"), "--connect", f"127.0.0.1:{port}", *mix.load,
                   "--size", "64", "--seconds", str(options.seconds),
                   "--warmup", str(options.settle)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, {LOAD_CPU})) as load:
            time.sleep(options.settle)
            ask(child, "waits")
            time.sleep(options.seconds)
            wait_us, tasks, share = ask(child, "waits").split()
            output, _ = load.communicate(timeout=GRACE_S)
        if load.returncode != 0:
            raise BenchError(f"loadgen ended with {load.returncode}")
    result = json.loads(output)
    return {"wait": float(wait_us) / 1000 if mix.tasks else None, "tasks": float(tasks),
            "share": float(share), "p50": result["p50_us"] / 1000, "p99": result["p99_us"] / 1000,
            "trips": result["ops_per_s"]}


def median_of(results, key):
    """The median of a figure over the rounds; None: it has none."""
    values = [r[key] for r in results if r[key] is not None]
    return statistics.median(values) if values else None


def row_of(mix, ratio, results):
    """A line of the table."""
    wait = median_of(results, "wait")
    return [mix.title, ratio, f"{median_of(results, 'share'):.0f}",
            "-" if wait is None else f"{wait:.2f}",
            f"{median_of(results, 'tasks'):.0f}" if mix.tasks else "-",
            f"{median_of(results, 'p50'):.2f}", f"{median_of(results, 'p99'):.2f}",
            f"{median_of(results, 'trips'):.0f}"]


def run_all(options, mixes, ratios):
    """The results of all rounds, by mix and ratio; in each round each ratio has its turn."""
    results = {(mix.key, ratio): [] for mix in mixes for ratio in ratios}
    for number in range(options.rounds):
        turn = number % len(ratios)
        for mix in mixes:
            for ratio in ratios[turn:] + ratios[:turn]:
                results[mix.key, ratio].append(measure(options, mix, ratio))
    return results


def main():
    """Run all, and write the table."""
    options = read_options()
    mixes = [mix for mix in MIXES if mix.key in options.mixes.split(",")]
    ratios = options.ratios.split(",")
    others = Others()
    with before_others() if options.before_others else nullcontext():
        results = run_all(options, mixes, ratios)
    rows = [["mix", "io_ratio", "in use", "tasks wait, p99 ms", "tasks/s", "trip p50 ms", "p99 ms",
             "trips/s"], ["---"] * 8]
    rows += [row_of(mix, ratio, results[mix.key, ratio]) for mix in mixes for ratio in ratios]
    print("\n".join("| " + " | ".join(row) + " |" for row in rows))
    print(f"\nOthers used {others.percent():.0f} % of the machine.")


if __name__ == "__main__":
    main()
