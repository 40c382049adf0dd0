#!/usr/bin/env python3
"""
checks.py: what HTTP health checks cost: 1,000 servers, each asked every 500 ms, and HAProxy beside.

All servers are one nginx, at addresses of the loopback network; it counts the requests that it answers. The cost is the
processor time of the proxy, in percent of one processor, over exactly the measured time. See README.md.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from runner.process import BenchError, Process, free_port

TOP = Path(__file__).resolve().parent.parent.parent
SETTLE_S = 3  # until each server was asked for the first time

NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log crit;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
    scgi_temp_path {dir}/s;
    server {{
        listen {port} backlog=4096;
        location = /healthz {{ return 200 ok; }}
        location = /count {{ stub_status; }}
    }}
}}
"""

REACTORD = """
[worker]
threads = 1
[listen front]
address = {dir}/front.sock
service = proxy
upstream = back
[upstream back]
check = http
check_http = GET /healthz
check_http_status = 200
check_interval = {interval}ms
check_timeout = 2s
{servers}
"""

HAPROXY = """
global
    nbthread 1
    spread-checks 10
defaults
    mode tcp
    timeout connect 2s
    timeout client 10s
    timeout server 10s
    timeout check 2s
listen back
    bind {dir}/front.sock
    option httpchk GET /healthz
    http-check expect status 200
    default-server inter {interval}ms
{servers}
"""


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="What HTTP health checks cost.")
    parser.add_argument("--servers", type=int, default=1000)
    parser.add_argument("--interval", type=int, default=475, metavar="MS", help="10 percent of it are jitter at most")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before-others", action="store_true", help="the proxy runs before others on its processor (root)")
    parser.add_argument("--reactord", default=TOP / "build" / "reactord", metavar="COMMAND")
    return parser.parse_args()


def answered(port):
    """Requests that nginx has answered, this one among them."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/count", timeout=10).read().decode()
    return int(text.splitlines()[2].split()[2])


def cpu_s(pid):
    """Processor time of all its threads."""
    paths = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text(encoding="ascii").split()[0]) for path in paths) / 1e9


def measure(command, port, seconds, is_first):
    """Checks per second, and percent of a processor."""
    with Process(command, 1, is_first, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as proxy:
        time.sleep(SETTLE_S)
        pid, began = proxy.child.pid, time.monotonic()
        cpu, count = cpu_s(pid), answered(port)
        time.sleep(seconds)
        cpu, count, took = cpu_s(pid) - cpu, answered(port) - count - 1, time.monotonic() - began
        if proxy.child.poll() is not None:
            raise BenchError(f"{command[0]} has ended")
    return count / took, 100 * cpu / took


def contenders(options, directory, port):
    """The command of each, with its configuration written."""
    addresses = [f"127.1.{i // 250}.{1 + i % 250}:{port}" for i in range(options.servers)]
    texts = {"reactord": REACTORD.format(dir=directory, interval=options.interval, servers="\n".join(
                 f"server.s{i} = {address}" for i, address in enumerate(addresses)))}
    commands = {"reactord": [str(options.reactord), "-c"]}
    if shutil.which("haproxy"):
        texts["haproxy"] = HAPROXY.format(dir=directory, interval=options.interval, servers="\n".join(
            f"    server s{i} {address} check" for i, address in enumerate(addresses)))
        commands["haproxy"] = ["haproxy", "-db", "-f"]
    for name, text in texts.items():
        path = Path(directory, name)
        path.write_text(text, encoding="ascii")
        commands[name].append(str(path))
    return commands


def main():
    """One line for each contender, medians of the rounds."""
    options, port, rows = read_options(), free_port(), {}
    with tempfile.TemporaryDirectory(prefix="reactord-bench-") as directory:
        os.chmod(directory, 0o755)
        config = Path(directory, "nginx.conf")
        config.write_text(NGINX.format(dir=directory, port=port), encoding="ascii")
        with Process(["nginx", "-p", directory, "-e", f"{directory}/error.log", "-c", str(config)], 0) as nginx:
            nginx.wait_until_listening(port)
            for _ in range(options.rounds):
                for name, command in contenders(options, directory, port).items():
                    rows.setdefault(name, []).append(measure(command, port, options.seconds, options.before_others))
    print(f"load average {os.getloadavg()[0]:.2f}\n\n| | checks a second | percent of a processor | us a check |\n|---|---|---|---|")
    for name, measured in rows.items():
        rate, percent = (statistics.median(column) for column in zip(*measured))
        each = [10000 * percent / rate for rate, percent in measured]
        print(f"| {name} | {rate:.0f} | {percent:.1f} | {statistics.median(each):.1f} [{min(each):.1f}-{max(each):.1f}] |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
