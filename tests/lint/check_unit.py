#!/usr/bin/env python3
"""The systemd unit stays confined: `systemd-analyze security` rates its exposure as at most 1.5.

Usage: check_unit.py UNIT (with its paths in place)

Skipped without systemd-analyze. Half of the 1.5 is the network.
"""
import shutil
import subprocess
import sys

LIMIT = 15  # tenths


def main():
    if not shutil.which("systemd-analyze"):
        print("unit: skipped: there is no systemd-analyze")
        return 0
    rated = subprocess.run(["systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={LIMIT}",
                            sys.argv[1]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    lines = rated.stdout.strip().splitlines()
    if rated.returncode != 0:
        print("\n".join(line.rstrip() for line in lines if not line.startswith("✓")))
    print(f"unit: {lines[-1].strip('→ ')}")
    return rated.returncode


sys.exit(main())
