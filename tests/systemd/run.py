#!/usr/bin/env python3
"""reactord as a service of a booted systemd: run.sh calls this, in mount and network namespaces of its own.

    python3 tests/systemd/run.py ROOT [-k WORD]

ROOT is a Debian root with systemd and reactord. It is booted once; each test finds the service stopped and as it
was installed. Tests are functions with @test, as in tests/integration. When one fails, the service's log of this
test is printed. The last line is `systemd: N passed, N failed`, or says why all were skipped.
"""

import argparse
import sys
import textwrap
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "integration"))  # behind our own tests

from machine import CannotBoot, Machine  # noqa: E402
from support.case import CASES  # noqa: E402
from unit import Unit  # noqa: E402

import test_service  # noqa: E402,F401
import test_inherited  # noqa: E402,F401
import test_reload  # noqa: E402,F401
import test_upgrade  # noqa: E402,F401
import test_upgrade  # noqa: E402,F401


def attempt(case, unit):
    """True if the test passes."""
    began = time.monotonic()
    try:
        unit.reset()
        case.function(unit, **case.arguments)
    except Exception as error:  # the others are still asked
        print(f"FAILED {case.title}\n    {type(error).__name__}: {error}")
        print(textwrap.indent(unit.log() + unit.systemctl("status", unit.name, may_fail=True)[0], "    "),
              flush=True)
        return False
    print(f"ok {case.title} ({time.monotonic() - began:.1f} s)", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description="reactord's tests with a booted systemd")
    parser.add_argument("root")
    parser.add_argument("-k", metavar="WORD", default="", help="only tests with that in their line")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.k.lower() in case.names.lower()]
    try:
        with Machine(arguments.root) as machine:
            unit = Unit(machine)
            passed = sum(attempt(case, unit) for case in cases)
    except CannotBoot as error:
        print(f"systemd: skipped: systemd-nspawn cannot boot here: {error}")
        return 0
    print(f"systemd: {passed} passed, {len(cases) - passed} failed")
    return 0 if passed == len(cases) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
