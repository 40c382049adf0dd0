"""handoff: tasks from other threads: who is compared, in which rows, and the rounds."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from runner.process import BenchError

LIMIT_S = 120
TASKS = 1 << 20  # of a pass; a program makes six or more
HOPS = 20000
ONE_CPU = {0}


@dataclass(frozen=True)
class Row:
    """One line of the table; reactord is to be ${least[name]} times as fast as that contender."""

    key: str
    title: str
    arguments: tuple
    least: dict
    is_on_one_cpu: bool = False


def _throughput(producers):
    threads = "1 thread hands" if producers == 1 else f"{producers} threads hand"
    return Row(f"handoff{producers}", f"{threads} tasks to a loop",
               ("throughput", str(producers), str(TASKS)), {"libuv": 2, "netty": 3})


ROWS = [_throughput(producers) for producers in (1, 2, 4, 8)] + [
    Row("pingpong", "two loops hand a task to and fro", ("pingpong", str(HOPS)), {}),
    Row("pingpong1", "the same on one CPU", ("pingpong", str(HOPS)), {}, is_on_one_cpu=True),
]


class Contender:
    """A program that understands what the head of handoff/handoff.c says."""

    def __init__(self, name, command, why_missing):
        self.name = name
        self.command = command
        self.why_missing = why_missing  # None: it is there

    def run(self, row):
        """Its line of JSON."""
        command = self.command + list(row.arguments)
        bind = (lambda: os.sched_setaffinity(0, ONE_CPU)) if row.is_on_one_cpu else None
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  timeout=LIMIT_S, check=False, preexec_fn=bind)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"no end after {LIMIT_S} s: a task was lost") from error
        if done.returncode != 0:
            raise BenchError(f"ended with {done.returncode}")
        return json.loads(done.stdout)


def contenders(build, java):
    """Everyone, reactord first: the others are compared with it."""
    def compiled(name, program, needs):
        path = Path(build) / program
        return Contender(name, [str(path)],
                         None if path.exists() else f"{path} was not built: is {needs} installed?")

    return [compiled("reactord", "handoff_reactord", "libev-dev"),
            compiled("by hand", "handoff_hand", "libc6-dev"),
            compiled("libuv", "handoff_libuv", "libuv1-dev"),
            Contender("netty", java.command("Handoff"), java.why_missing("Handoff"))]


def measure(runners, rounds, progress, results):
    """
    ${rounds} rounds of all rows: in each every contender once a row, the order turned by one each
    time. Fills ${results}: {row key: {name: [result of each round]}}; a contender that fails is
    told of and drops out of its row: False.
    """
    is_whole = True
    results.update({row.key: {runner.name: [] for runner in runners} for row in ROWS})
    for number in range(rounds):
        turn = number % len(runners) if runners else 0
        for row in ROWS:
            for runner in runners[turn:] + runners[:turn]:
                if runner.name not in results[row.key]:
                    continue
                progress(f"{row.key}: round {number + 1}, {runner.name}")
                try:
                    results[row.key][runner.name].append(runner.run(row))
                except BenchError as error:
                    progress(f"{row.key}: {runner.name} drops out: {error}", is_lasting=True)
                    del results[row.key][runner.name]
                    is_whole = False
    return is_whole
