#!/usr/bin/env python3
"""check_format.py COMMAND [-i]: the sources are laid out as clang-format does it; with -i, lay them out.

Each version of clang-format lays some constructs out in its own way, so one version decides: that of Debian 12.
"""
import pathlib
import re
import subprocess
import sys

VERSION = 14


def main():
    command, *options = sys.argv[1:]
    told = subprocess.run([command, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    version = re.search(r"version (\d+)", told)
    if not version or int(version[1]) != VERSION:
        print(f"format: not checked: clang-format {VERSION} decides, and this is {told.strip()}")
        return 1 if options else 0
    sources = sorted(str(path) for top in ("src", "tests") for path in pathlib.Path(top).rglob("*.[ch]"))
    return subprocess.run([command, *(options or ["--dry-run", "--Werror"]), *sources], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
