#!/usr/bin/env python3
"""
report.py: measure everything in one run, and show it: a page with tables and plots.

    report.py --output DIR              measure, and write DIR/report.html, .json and the plots
    report.py --output DIR --from FILE  only draw again what DIR/report.json of a former run says

Requires python3-matplotlib. See README.md, "A report".
"""

import argparse
import json
import os
import platform
import resource
import signal
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from engine.measure.machine import Others, before_others
from run import version_of
from runner.contender import all_contenders
from runner.measure import measure_row
from runner.progress import progress
from runner.rows import MICROSECONDS, ROWS, Row
from report.page import write_page
from report.plots import draw_all

TOP = Path(__file__).resolve().parent.parent.parent
GROWTH = (10, 100, 1000, 9000)  # a proxied connection takes two of 20,000 descriptors
MEMORY = (100, 1000, 9000)


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure all rows, and make a page of them.")
    parser.add_argument("--output", type=Path, default=TOP / "build" / "bench" / "report",
                        metavar="DIR", help="default: %(default)s")
    parser.add_argument("--from", type=Path, dest="source", metavar="FILE",
                        help="draw the results of this report.json, measure nothing")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="measured time of one run")
    parser.add_argument("--reactord", default=TOP / "build" / "reactord", metavar="COMMAND")
    parser.add_argument("--haproxy", default=os.environ.get("HAPROXY", "/usr/sbin/haproxy"),
                        metavar="COMMAND", help="default: $HAPROXY, or %(default)s")
    parser.add_argument("--haproxy3", default=os.environ.get("HAPROXY3"), metavar="COMMAND",
                        help='a second HAProxy, such as "chroot DIR /usr/sbin/haproxy"')
    parser.add_argument("--nginx", default=os.environ.get("NGINX", "/usr/sbin/nginx"),
                        metavar="COMMAND", help="default: $NGINX, or %(default)s")
    parser.add_argument("--build", type=Path, default=TOP / "build" / "bench", metavar="DIR",
                        help="where the bench programs are (default: %(default)s)")
    parser.add_argument("--before-others", action="store_true",
                        help="come before all other sessions of the machine (root)")
    return parser.parse_args()


def growth_rows():
    """The same load on more and more connections."""
    return [Row(f"growth{n}", f"proxy 64 B, {n} conns", "proxy", "pingpong", n, 64, MICROSECONDS,
                "bare-copy", rounds_factor=0.5) for n in GROWTH]


def memory_rows():
    """More and more silent connections."""
    idle = next(row for row in ROWS if row.key == "idle-pair")
    return [replace(idle, key=f"memory{n}", title=f"memory, {n} idle proxied pairs", connections=n)
            for n in MEMORY]


def measure(options):
    """Everything that the page says, as report.json has it."""
    wanted = [contender for name, contender in all_contenders(options).items()
              if name in ("reactord", "haproxy", "haproxy3", "nginx") or name.startswith("bare-")]
    usable = []
    for contender in wanted:
        reason = contender.why_missing()
        if reason:
            print(f"skipped: {contender.name}: {reason}", file=sys.stderr)
        else:
            usable.append(contender)
    versions = {contender.name: version_of(contender) for contender in usable
                if not contender.name.startswith("bare-")}
    results, others = {}, Others()
    for row in ROWS + growth_rows() + memory_rows():
        contenders = [contender for contender in usable if row.service in contender.services
                      and (not contender.name.startswith("bare-")
                           or contender.name == row.yardstick)]
        results[row.key] = measure_row(row, contenders, options, progress)
    progress("")
    return {"date": time.strftime("%Y-%m-%d %H:%M"), "kernel": platform.release(),
            "cpus": os.cpu_count(), "machine": cpu_model(), "rounds": options.rounds,
            "seconds": options.seconds, "others_percent": round(others.percent()),
            "versions": versions, "results": results}


def cpu_model():
    """The processor's name."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return next((line.split(":", 1)[1].strip() for line in info
                     if line.startswith("model name")), platform.machine())


def main():
    """Measure or read, then draw."""
    options = read_options()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    options.output.mkdir(parents=True, exist_ok=True)
    if options.source:
        data = json.loads(options.source.read_text(encoding="utf-8"))
    else:
        with before_others() if options.before_others else nullcontext():
            data = measure(options)
        (options.output / "report.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    rows = {row.key: row for row in ROWS + growth_rows() + memory_rows()}
    plots = draw_all(data, rows, options.output)
    write_page(data, rows, plots, options.output / "report.html")
    print(options.output / "report.html")


if __name__ == "__main__":
    main()
