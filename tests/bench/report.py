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
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from engine.measure.machine import Others, before_others
from run import chosen_contenders, measure_all, prepare, version_of
from runner.options import add_before_others, add_build, add_servers
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
    add_servers(parser, "haproxy", "haproxy3", "nginx")
    add_build(parser)
    add_before_others(parser)
    parser.set_defaults(contenders="reactord,bare,haproxy,haproxy3,nginx")
    return parser.parse_args(), parser


def growth_rows():
    """The same load on more and more connections."""
    return [Row(f"growth{n}", f"proxy 64 B, {n} conns", "proxy", "pingpong", n, 64, MICROSECONDS,
                "bare-copy", rounds_factor=0.5) for n in GROWTH]


def memory_rows():
    """More and more silent connections."""
    idle = next(row for row in ROWS if row.key == "idle-pair")
    return [replace(idle, key=f"memory{n}", title=f"memory, {n} idle proxied pairs", connections=n)
            for n in MEMORY]


def all_rows():
    """What is measured."""
    return ROWS + growth_rows() + memory_rows()


def measure(options, parser):
    """Everything that the page says, as report.json has it."""
    usable, names = chosen_contenders(options, parser)
    versions = {name: version_of(contender) for name, contender in usable.items()
                if not name.startswith("bare-")}
    others = Others()
    _, results, _ = measure_all(all_rows(), usable, names, options)
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
    options, parser = read_options()
    prepare()
    options.output.mkdir(parents=True, exist_ok=True)
    if options.source:
        data = json.loads(options.source.read_text(encoding="utf-8"))
    else:
        with before_others() if options.before_others else nullcontext():
            data = measure(options, parser)
        (options.output / "report.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    rows = {row.key: row for row in all_rows()}
    plots = draw_all(data, rows, options.output)
    write_page(data, rows, plots, options.output / "report.html")
    print(options.output / "report.html")


if __name__ == "__main__":
    main()
