#!/usr/bin/env python3
"""
isolation.py: what the clients of a TLS server notice of other clients' handshakes.

20 established connections make 500 round trips a second of 64 B, first alone, then while 64 clients
do nothing but full handshakes with RSA-2048. See README.md.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, nullcontext
from statistics import median

from engine.measure.machine import Others, before_others
from runner.contender import LOAD_CPU, all_contenders
from runner.options import add_before_others, add_build, add_servers
from runner.process import BenchError, Process, free_port
from runner.table import lines

ESTABLISHED, RATE, HANDSHAKING = 20, 500, 64
PACE_WARMUP_S = 2.0
GRACE_S = 60


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Handshakes beside established connections.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="measured time of one run")
    parser.add_argument("--contenders", default="reactord,reactord-echo,bare-tls,haproxy,nginx",
                        metavar="NAME,...", help="default: %(default)s")
    add_servers(parser, "haproxy", "haproxy3", "nginx")
    add_build(parser)
    add_before_others(parser)
    return parser.parse_args()


def loadgen(options, port, pid, mode, connections, seconds, warmup, *more):
    """The words of a load."""
    return [str(options.build / "loadgen"), "--tls", "--connect", f"127.0.0.1:{port}", "--mode",
            mode, "--connections", str(connections), "--size", "64", "--seconds", str(seconds),
            "--warmup", str(warmup), "--server-pid", str(pid), *more]


def result_of(process, seconds):
    """What ${process}, a loadgen, has measured."""
    try:
        output, _ = process.child.communicate(timeout=seconds + GRACE_S)
    except subprocess.TimeoutExpired as error:
        raise BenchError("loadgen does not end") from error
    if process.child.returncode != 0:
        raise BenchError(f"loadgen ended with {process.child.returncode}")
    return json.loads(output)


def established(options, port, pid):
    """The clients that are to notice nothing; the load of the others may not delay them here."""
    return Process(loadgen(options, port, pid, "pace", ESTABLISHED, options.seconds, PACE_WARMUP_S,
                           "--rate", str(RATE)), LOAD_CPU, is_first=True,
                   stdout=subprocess.PIPE, text=True)


def measure(contender, service, options):
    """One round of one server: (result quiet, result beside handshakes, result of the handshakes)."""
    with ExitStack() as stack:
        upstream_port = free_port()
        upstream = stack.enter_context(Process(
            [str(options.build / "bare_echo"), "127.0.0.1", str(upstream_port)], LOAD_CPU,
            is_first=True))
        upstream.wait_until_listening(upstream_port)
        port = free_port()
        pid = stack.enter_context(contender.running(service, upstream_port, port, "rsa2048"))
        seconds = PACE_WARMUP_S + options.seconds
        with established(options, port, pid) as clients:
            quiet = result_of(clients, seconds)
        with established(options, port, pid) as clients:
            time.sleep(PACE_WARMUP_S / 4)
            command = loadgen(options, port, pid, "churn", HANDSHAKING,
                              options.seconds + PACE_WARMUP_S, PACE_WARMUP_S / 4)
            with Process(command, LOAD_CPU, stdout=subprocess.PIPE, text=True) as handshakes:
                beside = result_of(clients, seconds)
                if handshakes.child.poll() is not None:
                    raise BenchError("the handshakes ended before the others")
                return quiet, beside, result_of(handshakes, seconds)


def chosen_contenders(options):
    """[(name, contender, service)] of --contenders; the missing ones are told of."""
    everyone, chosen = all_contenders(options), []
    for name in options.contenders.split(","):
        is_echo = name.endswith("-echo")
        contender = everyone.get(name.removesuffix("-echo") if name == "reactord-echo" else name)
        if contender is None:
            raise SystemExit(f"isolation.py: no such contender: {name}")
        if contender.why_missing():
            print(f"skipped: {name}: {contender.why_missing()}")
        else:
            chosen.append((name, contender, "tls-echo" if is_echo else "tls"))
    return chosen


def line_of(name, rounds):
    """One line of the table."""
    def mid(figure):
        return median(figure(*one) for one in rounds)

    return [name,
            f"{mid(lambda quiet, *_: quiet['p50_us']):.0f} / "
            f"{mid(lambda quiet, *_: quiet['p99_us']):.0f}",
            f"{mid(lambda _, beside, __: beside['p50_us']):.0f} / "
            f"{mid(lambda _, beside, __: beside['p99_us']):.0f}",
            f"{mid(lambda quiet, beside, _: beside['p50_us'] / quiet['p50_us']):.2f}x",
            f"{mid(lambda _, __, load: load['ops_per_s']):.0f}",
            f"{mid(lambda _, beside, __: beside['server_cpu_percent']):.0f}%"]


def measure_all(chosen, options):
    """{name: [measure() of each round]}: in each round every server once, the order turned by one."""
    results = {}
    for number in range(options.rounds):
        turn = number % len(chosen)
        for name, contender, service in chosen[turn:] + chosen[:turn]:
            try:
                results.setdefault(name, []).append(measure(contender, service, options))
            except BenchError as error:
                print(f"round {number + 1}: {name}: {error}", file=sys.stderr)
    return results


def main():
    """Measure, and print the table."""
    options = read_options()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    chosen, others = chosen_contenders(options), Others()
    print(f"{ESTABLISHED} established connections at {RATE} requests/s beside {HANDSHAKING} clients "
          f"that do handshakes (RSA-2048); {options.rounds} rounds of {options.seconds:g} s, load "
          f"average {os.getloadavg()[0]:.2f}\n")
    with before_others() if options.before_others else nullcontext():
        results = measure_all(chosen, options)
    print(lines(["server", "quiet: p50 / p99 us", "beside handshakes", "p50", "handshakes/s",
                 "server CPU"],
                [line_of(name, results[name]) for name, _, _ in chosen if results.get(name)]))
    print(f"\nOthers used {others.percent():.0f} % of the machine.")
    return 0 if all(len(results.get(name, [])) == options.rounds for name, _, _ in chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
