#!/usr/bin/env python3
"""
failover.py: whose clients fail when servers fail. Needs root, for a network of its own.

See README.md, "Failover".
"""

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.measure.machine import Others, before_others
from failover import network
from failover.contenders import all_contenders
from failover.judge import judge
from failover.server import CHECK_PORT, NAMES, SERVER_PORT, Server, write_files
from failover.table import SLOW_S, blame, outcome_table
from runner.contender import LOAD_CPU
from runner.options import add_before_others, add_build, add_servers
from runner.process import BenchError, Process
from runner.progress import progress

TOP = Path(__file__).resolve().parent.parent.parent
PROXY_PORT = 8000
FIRST_S = 1.0    # before the first outage
REST_S = 0.5     # after the last
GRACE_S = 15     # failover_load bounds itself; this is for the case that it does not


@dataclass(frozen=True)
class Way:
    """How servers fail: one after the other, in turn."""

    name: str
    means: str  # of Server.fail()
    title: str
    every_s: float
    down_s: float


WAYS = {way.name: way for way in [
    Way("kill", "kill", "killed every 2 s, back after 1 s", 2.0, 1.0),
    Way("kill-long", "kill", "killed every 5 s, back after 3 s", 5.0, 3.0),
    Way("hang", "hang", "stopped (SIGSTOP) every 5 s, for 3 s", 5.0, 3.0),
    Way("unreachable", "unreachable", "cut off (packets are swallowed) every 5 s, for 3 s",
        5.0, 3.0),
]}


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Whose clients fail when servers fail?")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each run (default: 30)")
    parser.add_argument("--clients", type=int, default=50, help="of each kind (default: 50)")
    parser.add_argument("--pause", type=float, default=0.0, metavar="MS",
                        help="of a client before its next request (default: 0, full load)")
    parser.add_argument("--ways", default=",".join(WAYS), metavar="NAME,...",
                        help="how servers fail (default: %(default)s)")
    parser.add_argument("--contenders", metavar="NAME,...", help="default: all that can run",
                        default="reactord,reactord-close,reactord-passive,haproxy,haproxy-close,"
                        "haproxy3,haproxy3-close,nginx")
    add_servers(parser, "haproxy", "haproxy3")
    add_build(parser)
    add_before_others(parser)
    parser.add_argument("--nginx", default="/usr/sbin/nginx", metavar="COMMAND",
                        help="a contender, and what the servers run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every result")
    options = parser.parse_args()
    options.ways = options.ways.split(",")
    options.contenders = options.contenders.split(",")
    everyone = all_contenders(options)
    for given, known in ((options.ways, WAYS), (options.contenders, everyone)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"no such thing: {', '.join(unknown)}; there are {', '.join(known)}")
    least_s = max(FIRST_S + WAYS[name].down_s + REST_S for name in options.ways)
    if options.seconds < least_s or options.clients < 1 or options.pause < 0:
        parser.error(f"--seconds must be {least_s:g} at least, --clients 1, --pause 0")
    return options, everyone


def load_command(options, servers):
    """The clients and the witness."""
    return [str(options.build / "failover_load"), "--connect", f"127.0.0.1:{PROXY_PORT}",
            "--clients", str(options.clients), "--seconds", str(options.seconds),
            "--pause", str(options.pause / 1000), "--slow", str(SLOW_S),
            "--servers", ",".join(server.address for server in servers),
            "--port", str(SERVER_PORT), "--check-port", str(CHECK_PORT)]


def fail_in_turn(way, servers, seconds):
    """Have one server after the other fail, as long as the load runs; the outages."""
    begun_s, outages = time.monotonic(), []
    while True:
        at_s = FIRST_S + len(outages) * way.every_s
        if at_s + way.down_s + REST_S > seconds:
            return outages
        time.sleep(max(0.0, begun_s + at_s - time.monotonic()))
        server = servers[len(outages) % len(servers)]
        outages.append(server.fail(way.means, begun_s + at_s + way.down_s))


def run_once(contender, way, options):
    """One run of ${contender}, everything started afresh; its outcome."""
    with ExitStack() as stack:
        files = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reactord-bench-")))
        write_files(files)
        servers = [stack.enter_context(Server(number, options.nginx, files))
                   for number in range(len(NAMES))]
        stack.enter_context(contender.running("proxy", 0, PROXY_PORT))
        load = stack.enter_context(Process(load_command(options, servers), LOAD_CPU,
                                           stdout=subprocess.PIPE, text=True))
        outages = fail_in_turn(way, servers, options.seconds)
        try:
            text, _ = load.child.communicate(timeout=options.seconds + GRACE_S)
        except subprocess.TimeoutExpired as error:
            raise BenchError("failover_load does not end") from error
        if load.child.returncode != 0:
            raise BenchError(f"failover_load ended with {load.child.returncode}")
    return judge(text, outages)


def verdict(outcomes):
    """Whether reactord meets its targets, and the text of it."""
    ours = [outcome for name, outcome in outcomes.items() if name.startswith("reactord")]
    if not ours:
        return True, "reactord: did not run"
    blamed = sum(len(outcome.blamed) for outcome in ours)
    attempts = sum(outcome.attempts_marked for outcome in ours)
    is_met = not blamed and not attempts

    def word(count):
        return "met" if not count else f"MISSED: {count}"
    return is_met, ("reactord: no request fails but those in flight at the server: "
                    f"{word(blamed)}; no connection to it after `fall` checks: {word(attempts)}")


def run_way(way, contenders, options, results):
    """Fill ${results}, and print the table of them, also when interrupted. Did all go well?"""
    is_whole, is_met = True, True
    try:
        for name, contender in contenders.items():
            progress(f"{way.name}: {name}")
            try:
                results[name] = run_once(contender, way, options)
            except BenchError as error:
                progress(f"{way.name}: {name} drops out: {error}", is_lasting=True)
                is_whole = False
    finally:
        progress("")
        if results:
            is_met, text = verdict(results)
            details = blame(results)
            print(f"\n{way.name}: one of {len(NAMES)} servers is {way.title}\n\n"
                  f"{outcome_table(results)}\n\n{text}"
                  + (f"\n\nfailed otherwise:\n{details}" if details else ""), flush=True)
    return is_whole and is_met


def main():
    """Run, and print the tables."""
    options, everyone = read_options()
    if os.cpu_count() < 2:
        sys.exit("failover.py: this needs two CPUs: one for the proxy, one for the rest")
    for number in (signal.SIGTERM, signal.SIGINT):  # the latter may be inherited as ignored
        signal.signal(number, signal.default_int_handler)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # inherited by the servers
    try:
        network.enter()
    except (PermissionError, BenchError) as error:
        sys.exit(f"failover.py: {error}")
    contenders = {}
    for name in options.contenders:
        reason = everyone[name].why_missing()
        if reason:
            print(f"skipped: {name}: {reason}")
        else:
            contenders[name] = everyone[name]
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, Linux {platform.release()}, {os.cpu_count()} CPUs, "
          f"{options.clients} clients of each kind, pause {options.pause:g} ms, "
          f"runs of {options.seconds:g} s", flush=True)
    results, is_fine, others = {name: {} for name in options.ways}, True, Others()
    try:
        with before_others() if options.before_others else nullcontext():
            for name in options.ways:
                is_fine &= run_way(WAYS[name], contenders, options, results[name])
    except KeyboardInterrupt:
        progress("stopped; the tables have what there was", is_lasting=True)
        is_fine = False
    print(f"\nothers used {others.percent():.0f} % of the machine")
    if options.json:
        options.json.write_text(json.dumps({way: {name: asdict(outcome)
                                                  for name, outcome in outcomes.items()}
                                            for way, outcomes in results.items()}, indent=1),
                                encoding="utf-8")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
