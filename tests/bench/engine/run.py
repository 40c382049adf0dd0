#!/usr/bin/env python3
"""
run.py [handoff] [weakspots]: reactord's engine beside Netty's, libuv's and a loop written by hand.

    handoff     how long it takes to hand a loop a task
    weakspots   what a Netty loop does badly, done to both

See ../README.md, "Engine".
"""

import argparse
import json
import os
import platform
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path

BENCH = Path(__file__).resolve().parent.parent
TOP = BENCH.parent.parent
sys.path.insert(0, str(BENCH))

# pylint: disable=wrong-import-position
from engine.measure import handoff, weakspots  # noqa: E402
from engine.measure.java import Java  # noqa: E402
from engine.measure.machine import Others, before_others  # noqa: E402
from engine.measure.table import handoff_table, weakspots_table  # noqa: E402
from runner.progress import progress  # noqa: E402

PARTS = ["handoff", "weakspots"]


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure the engine against Netty and libuv.")
    parser.add_argument("parts", nargs="*", metavar="PART",
                        help=f"{', '.join(PARTS)} (default: both)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--reactord", default=TOP / "build" / "reactord", metavar="PROGRAM")
    parser.add_argument("--build", type=Path, default=TOP / "build" / "bench", metavar="DIR",
                        help="where the bench programs are (default: %(default)s)")
    parser.add_argument("--jars", type=Path, default=Path("/usr/share/java"), metavar="DIR",
                        help="where Netty is (default: %(default)s)")
    parser.add_argument("--before-others", action="store_true",
                        help="come before all other sessions of the machine (root)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every single result")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if options.rounds < 1:
        parser.error("--rounds must be more than 0")
    options.parts = options.parts or PARTS
    return options


def usable(contenders):
    """Those that can run; the missing ones are told of."""
    for contender in contenders:
        if contender.why_missing:
            print(f"skipped: {contender.name}: {contender.why_missing}")
    return [contender for contender in contenders if not contender.why_missing]


def run_part(part, options, java, results):
    """Fill ${results}, and print the table of them, also when interrupted. Did all go well?"""
    build = options.build / "engine"
    if part == "handoff":
        module, table_of, runners = handoff, handoff_table, handoff.contenders(build, java)
    else:
        runners = weakspots.contenders(build, options.reactord, java)
        module, table_of = weakspots, weakspots_table
    runners, others = usable(runners), Others()
    try:
        return module.measure(runners, options.rounds, progress, results)
    finally:
        progress("")
        print(f"\n{table_of(module.ROWS, [runner.name for runner in runners], results)}\n\n"
              f"{part}: others used {others.percent():.0f} % of the machine", flush=True)


def main():
    """Measure, and print the tables."""
    options = read_options()
    java = Java(options.jars, options.build / "engine" / "classes")
    for number in (signal.SIGTERM, signal.SIGINT):  # the latter may be inherited as ignored
        signal.signal(number, signal.default_int_handler)
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, Linux {platform.release()}, {os.cpu_count()} CPUs, "
          f"{options.rounds} rounds, Netty {java.version() or '-'}", flush=True)
    raw, is_whole = {part: {} for part in options.parts}, True
    try:
        with before_others() if options.before_others else nullcontext():
            for part in options.parts:
                is_whole &= run_part(part, options, java, raw[part])
    except KeyboardInterrupt:
        progress("stopped; the tables have what there was", is_lasting=True)
        is_whole = False
    except PermissionError as error:
        sys.exit(f"run.py: --before-others needs root: {error}")
    if options.json:
        options.json.write_text(json.dumps(raw, indent=1), encoding="utf-8")
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main())
