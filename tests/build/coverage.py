#!/usr/bin/env python3
"""coverage.py BUILD: which share of the lines of each folder of src/ the unit and the integration tests run.

BUILD is built with gcov's counters (make coverage). Both kinds of test are run; a table is printed: for each folder
its lines of code and the share run by unit tests, by integration tests and by either. The exit code is 1 if a test
fails or a folder's share is below --goal. Processes that end by SIGKILL, or cannot write into BUILD, count
nothing, so the figures of integration tests are lower bounds.
"""
import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent.parent


def run_tests(build, target, jobs):
    """Run a target of the Makefile with that build; true when all tests passed."""
    environment = dict(os.environ, CK_TIMEOUT_MULTIPLIER="10")
    with open(build / f"{target}.log", "w", encoding="utf-8") as log:
        done = subprocess.run(["make", f"BUILD={build}", f"TEST_JOBS={jobs}", "WERROR=", f"CFLAGS={os.environ['CFLAGS']}",
                               f"LDFLAGS={os.environ['LDFLAGS']}", target], cwd=TREE, env=environment, check=False, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        print(f"coverage: make {target} failed: {log.name}", flush=True)
    return done.returncode == 0


def open_to_all(build):
    """Let daemons count that run as another user."""
    for directory in (build / "src").rglob("*"):
        if directory.is_dir():
            directory.chmod(0o777)


def counters(build):
    return sorted((build / "src").rglob("*.gcda"))


def forget(build):
    for path in counters(build):
        path.unlink()


def lines_run(build):
    """{source: {line: was run}} of what ran since forget()."""
    lines = defaultdict(dict)
    for path in counters(build):
        shown = subprocess.run(["gcov", "-t", "-j", path], cwd=TREE, check=True, capture_output=True)
        for entry in json.loads(shown.stdout)["files"]:
            source = os.path.relpath(os.path.join(TREE, entry["file"]), TREE)
            if source.startswith("src/"):
                found = lines[source]
                for line in entry["lines"]:
                    number = line["line_number"]
                    found[number] = found.get(number, False) or line["count"] > 0
    return lines


def merged(first, second):
    return {source: {number: first.get(source, {}).get(number, False) or second.get(source, {}).get(number, False)
                     for number in first.get(source, {}).keys() | second.get(source, {}).keys()}
            for source in first.keys() | second.keys()}


def by_folder(lines):
    """{folder: (lines, lines run)}"""
    sums = defaultdict(lambda: [0, 0])
    for source, found in lines.items():
        folder = source.split("/")[1]
        sums[folder][0] += len(found)
        sums[folder][1] += sum(found.values())
    return sums


def table(unit, integration):
    """Print it; returns the least share that both together run of a folder."""
    either = by_folder(merged(unit, integration))
    unit, integration = by_folder(unit), by_folder(integration)
    print(f"{'folder':10} {'lines':>6} {'unit':>7} {'integr.':>7} {'either':>7}")
    least = 100.0
    for folder, (number, run) in sorted(either.items()):
        shares = [100 * sums[folder][1] / number for sums in (unit, integration)]
        share = 100 * run / number
        least = min(least, share)
        print(f"{folder:10} {number:6} {shares[0]:6.1f}% {shares[1]:6.1f}% {share:6.1f}%")
    return least


def least_run(lines, number):
    """Print the files with the most lines that nothing runs, and these lines."""
    missed = sorted(((sorted(n for n, run in found.items() if not run), source) for source, found in lines.items()),
                    key=lambda entry: -len(entry[0]))
    for numbers, source in missed[:number]:
        print(f"{source}: {len(numbers)} of {len(lines[source])} not run: {' '.join(map(str, numbers))}")


def main():
    parser = argparse.ArgumentParser(description="line coverage by folder")
    parser.add_argument("build", type=Path)
    parser.add_argument("--goal", type=float, default=93, help="least share of a folder (%(default)s)")
    parser.add_argument("--jobs", type=int, default=4, help="tests at a time (%(default)s)")
    parser.add_argument("--files", type=int, default=0, help="list that many files with lines that nothing runs")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    open_to_all(build)
    forget(build)
    passed = run_tests(build, "test-unit", arguments.jobs)
    unit = lines_run(build)
    forget(build)
    passed &= run_tests(build, "test-integration", arguments.jobs)
    integration = lines_run(build)
    least = table(unit, integration)
    least_run(merged(unit, integration), arguments.files)
    return 0 if passed and least >= arguments.goal else 1


if __name__ == "__main__":
    sys.exit(main())
