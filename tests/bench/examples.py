#!/usr/bin/env python3
"""
examples.py: after each fault, how many clients came before all were served as they should be, and how many of them were
lost: the configurations of conf/examples/from-haproxy and from-nginx, beside the programs that they were translated from.

The tests of these examples measure; this runs them one after the other and prints what they note. See README.md.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent


def measured(reactord):
    """The lines that the tests write: file, fault, listener, side, clients until then, lost."""
    with tempfile.NamedTemporaryFile("r") as figures:
        subprocess.run([sys.executable, TOP / "tests/integration/run.py", "--reactord", reactord, "--jobs", "1", "-k",
                        "beside"], env={**os.environ, "EXAMPLES_FIGURES": figures.name}, check=True)
        return [line.rstrip("\n").split("\t") for line in figures]


def main():
    parser = argparse.ArgumentParser(description="Clients lost with the examples for users of HAProxy and nginx.")
    parser.add_argument("--reactord", default=TOP / "build" / "reactord", metavar="COMMAND")
    rows = collections.defaultdict(lambda: {"peer": [0, 0], "reactord": [0, 0]})
    for file, fault, _, side, until, lost in measured(parser.parse_args().reactord):
        rows[file, fault][side][0] += int(until)
        rows[file, fault][side][1] += int(lost)
    print(f"{'':60} {'peer':>12} {'reactord':>12}\n{'configuration: fault':60} {'until (lost)':>12} {'until (lost)':>12}")
    for (file, fault), of in rows.items():
        print(f"{file + ': ' + fault:60} " + " ".join(f"{until:>5} {f'({lost})':>6}" for until, lost in of.values()))
    for side in ("peer", "reactord"):
        print(f"{side}: {sum(of[side][1] for of in rows.values())} clients lost")


sys.exit(main())
