#!/usr/bin/env python3
"""
run.py: what reactord costs, beside the barest programs that do the same work and beside its peers.

Servers run on CPU 1, load and upstream on CPU 0. See README.md for what the table says.
"""

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from engine.measure.machine import Others, before_others
from runner.contender import all_contenders
from runner.measure import measure_row
from runner.options import add_before_others, add_build, add_servers
from runner.progress import progress
from runner.rows import ROWS, TLS_ROWS
from runner.table import cells_of, cost_table, latency_table


def keys_of(rows):
    """The keys of ${rows}, in one text."""
    return ",".join(row.key for row in rows)


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure reactord against bare loops and peers.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="measured time of one run")
    parser.add_argument("--tls", action="store_true", help="the rows of TLS")
    parser.add_argument("--rows", metavar="KEY,...", help="default: all of the plain rows "
                        f"({keys_of(ROWS)}), or of TLS ({keys_of(TLS_ROWS)})")
    parser.add_argument("--contenders", default="reactord,bare,haproxy,haproxy3,nginx",
                        metavar="NAME,...", help="default: %(default)s; bare is the yardstick "
                        "of each row; bare-echo, bare-copy, bare-splice, bare-tls and bare-tls-echo "
                        "can be named, too")
    add_servers(parser, "haproxy", "haproxy3", "nginx")
    add_build(parser)
    add_before_others(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every single result")
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0:
        parser.error("--rounds and --seconds must be more than 0")
    return options, parser


def chosen_rows(options, parser):
    """The rows named by --rows."""
    by_key = {row.key: row for row in ROWS + TLS_ROWS}
    keys = (options.rows or keys_of(TLS_ROWS if options.tls else ROWS)).split(",")
    unknown = [key for key in keys if key not in by_key]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(by_key)}")
    return [by_key[key] for key in keys]


def chosen_contenders(options, parser):
    """The contenders named by --contenders that can run; the missing ones are told of."""
    everyone = all_contenders(options)
    names = options.contenders.split(",")
    unknown = [name for name in names if name not in everyone and name != "bare"]
    if unknown:
        parser.error(f"no such contender: {', '.join(unknown)}")
    usable = {}
    for name, contender in everyone.items():
        is_wanted = name in names or ("bare" in names and name.startswith("bare-"))
        reason = contender.why_missing() if is_wanted else None
        if reason:
            print(f"skipped: {name}: {reason}")
        elif is_wanted:
            usable[name] = contender
    return usable, names


def contenders_of(row, usable, names):
    """Who runs in ${row}: of the bare ones its yardstick, and those named by themselves."""
    return [contender for name, contender in usable.items()
            if row.service in contender.services
            and (name in names or (name == row.yardstick and "bare" in names))]


def version_of(contender):
    """What the program says its version is; None when it says nothing."""
    try:
        done = subprocess.run(contender.words + ["-v"], capture_output=True, text=True, timeout=5,
                              check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout + done.stderr).splitlines()
    return lines[0] if lines and done.returncode == 0 else None


def print_setting(options, usable):
    """Where and how the figures were made: they mean nothing elsewhere."""
    print(f"{time.strftime('%Y-%m-%d %H:%M')}, Linux {platform.release()}, {os.cpu_count()} CPUs, "
          f"load average {os.getloadavg()[0]:.2f}, {options.rounds} rounds of "
          f"{options.seconds:g} s")
    for name, contender in usable.items():
        version = None if name.startswith("bare-") else version_of(contender)
        if version:
            print(f"{name}: {version}")


def measure_all(rows, usable, names, options):
    """[(row, its cells)], every single result, and how many contenders dropped out."""
    measured, raw, dropped_out = [], {}, 0
    try:
        for row in rows:
            contenders = contenders_of(row, usable, names)
            results = measure_row(row, contenders, options, progress)
            raw[row.key] = results
            dropped_out += len(contenders) - len(results)
            measured.append((row, cells_of(row, results)))
    except KeyboardInterrupt:
        progress("stopped; the rows that were finished:", is_lasting=True)
    return measured, raw, dropped_out


def prepare():
    """SIGTERM and SIGINT end a run with what was measured; many descriptors are allowed."""
    for number in (signal.SIGTERM, signal.SIGINT):  # the latter may be inherited as ignored
        signal.signal(number, signal.default_int_handler)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # inherited by the servers


def main():
    """Measure, and print the tables."""
    options, parser = read_options()
    if os.cpu_count() < 2:
        parser.error("this needs two CPUs: one for the server, one for the load")
    prepare()
    rows = chosen_rows(options, parser)
    usable, names = chosen_contenders(options, parser)
    print_setting(options, usable)
    others = Others()
    with before_others() if options.before_others else nullcontext():
        measured, raw, dropped_out = measure_all(rows, usable, names, options)
    progress("")
    if measured:
        print(f"\n{cost_table(measured)}\n\n{latency_table(measured)}\n\n"
              f"Others used {others.percent():.0f} % of the machine.")
    if options.json:
        options.json.write_text(json.dumps(raw, indent=1), encoding="utf-8")
    return 0 if len(measured) == len(rows) and not dropped_out else 1


if __name__ == "__main__":
    sys.exit(main())
