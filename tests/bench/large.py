#!/usr/bin/env python3
"""
large.py: what many servers cost: 100 groups of 1,000 servers each, in the whole daemon.

For each way of balancing: how long until it is ready, the memory it has then, and how long a check
of the configuration alone takes (-t). See README.md.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
BALANCES = ("round_robin", "least_connections", "random", "source_hash", "maglev", "first")
START_LIMIT_S = 60


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Start reactord with very many servers.")
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--servers", type=int, default=1000, help="of each group")
    parser.add_argument("--reactord", default=TOP / "build" / "reactord", metavar="COMMAND")
    return parser.parse_args()


def configuration(groups, servers, balance, socket):
    """All servers are at addresses of the loopback network; nobody connects to them."""
    lines = ["[worker]", "threads = 1", "[listen front]", f"address = {socket}", "service = proxy",
             "upstream = g0"]
    for group in range(groups):
        lines += [f"[upstream g{group}]", f"balance = {balance}"]
        lines += [f"server.s{i} = 127.{group}.{i // 250}.{1 + i % 250}:7 weight={1 + i % 10}"
                  for i in range(servers)]
    return "\n".join(lines) + "\n"


def resident_mb(pid):
    """Its resident memory, in 10^6 bytes."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit("large.py: the daemon has no memory")


def start(command, config):
    """Seconds until it is ready, and its memory then."""
    began = time.monotonic()
    with subprocess.Popen([command, "-c", config], stderr=subprocess.PIPE, text=True) as child:
        for line in child.stderr:
            if line.rstrip().endswith(" ready") or time.monotonic() - began > START_LIMIT_S:
                break
        took = time.monotonic() - began
        if child.poll() is not None:
            raise SystemExit("large.py: the daemon has not started")
        memory = resident_mb(child.pid)
        child.send_signal(signal.SIGINT)
        child.stderr.read()
    return took, memory


def check(command, config):
    """Seconds that -t takes."""
    began = time.monotonic()
    subprocess.run([command, "-t", "-c", config], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def main():
    """One line for each way of balancing."""
    options = read_options()
    print(f"{options.groups} groups of {options.servers} servers, load average "
          f"{os.getloadavg()[0]:.2f}\n\n| balance | ready after (s) | resident (MB) | -t (s) |\n"
          "|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="reactord-bench-") as directory:
        config = Path(directory) / "conf"
        for balance in BALANCES:
            config.write_text(configuration(options.groups, options.servers, balance,
                                            Path(directory) / "s"), encoding="ascii")
            took, memory = start(options.reactord, config)
            print(f"| {balance} | {took:.2f} | {memory:.0f} | {check(options.reactord, config):.2f} |",
                  flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
