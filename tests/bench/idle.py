#!/usr/bin/env python3
"""
idle.py: how often the threads of a server wake up while nothing is to be done.

0 or 1,000 connections through a proxy, each used once and then silent, with 1, 2 and 4 workers. A wake-up is a voluntary
context switch of a thread, from /proc/PID/task/*/status. See README.md.
"""

import argparse
import contextlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runner.process import Process, free_port

TOP = Path(__file__).resolve().parent.parent.parent
SETTLE_S = 3  # behind the last byte

BACK = """
[worker]
threads = 1
[listen back]
address = 127.0.0.1:{back}
service = echo
idle_timeout = 1h

"""

REACTORD = """
[worker]
threads = {workers}
[listen front]
address = 127.0.0.1:{front}
service = proxy
upstream = back
idle_timeout = 1h
[upstream back]
server.a = 127.0.0.1:{back}
"""

HAPROXY = """
global
    nbthread {workers}
defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen front
    bind 127.0.0.1:{front}
    server a 127.0.0.1:{back}
"""

NGINX = """
daemon off; worker_processes {workers}; pid {dir}/pid; error_log {dir}/error.log crit;
{modules}
events {{ worker_connections 8192; }}
stream {{
    server {{ listen 127.0.0.1:{front} backlog=1024; proxy_pass 127.0.0.1:{back}; proxy_timeout 1h; }}
}}
"""
STREAM = Path("/usr/lib/nginx/modules/ngx_stream_module.so")


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Wake-ups of a server with nothing to do.")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--connections", type=int, nargs="*", default=[0, 1000])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--reactord", default=TOP / "build" / "reactord", metavar="PROGRAM")
    parser.add_argument("--haproxy", default=os.environ.get("HAPROXY", "haproxy"), metavar="COMMAND")
    parser.add_argument("--nginx", default=os.environ.get("NGINX", "nginx"), metavar="COMMAND")
    return parser.parse_args()


def processes(pid):
    """A process and its children: nginx has a process for each worker."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *map(int, children)]


def wakeups(pid):
    """Voluntary context switches so far, of all threads."""
    total = 0
    for process in processes(pid):
        for status in Path(f"/proc/{process}/task").glob("*/status"):
            total += int(status.read_text(encoding="ascii").partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return total


def use(stack, port, count):
    """Open connections, each used once."""
    for _ in range(count):
        client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        client.sendall(b"x")
        client.recv(1)


def measure(command, front, count, seconds):
    """Wake-ups a second."""
    with Process(command, 1, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server, \
            contextlib.ExitStack() as stack:
        server.wait_until_listening(front)
        use(stack, front, count)
        time.sleep(SETTLE_S)
        before, began = wakeups(server.child.pid), time.monotonic()
        time.sleep(seconds)
        return (wakeups(server.child.pid) - before) / (time.monotonic() - began)


def contenders(options, directory, back):
    """Each one's name, command without its configuration, and configuration."""
    yield "reactord", [str(options.reactord), "-c"], REACTORD
    if shutil.which(shlex.split(options.haproxy)[0]):
        yield "haproxy", [*shlex.split(options.haproxy), "-db", "-f"], HAPROXY
    if shutil.which(shlex.split(options.nginx)[0]):
        yield "nginx", [*shlex.split(options.nginx), "-p", directory, "-e", f"{directory}/error.log", "-c"], NGINX


def row(options, directory, back, contender):
    """A contender's cells."""
    name, command, text = contender
    for count in options.connections:
        for workers in options.workers:
            front = free_port()
            path = Path(directory, f"{name}.conf")
            path.write_text(text.format(dir=directory, front=front, back=back, workers=workers,
                                        modules=f"load_module {STREAM};" if STREAM.exists() else ""), encoding="ascii")
            yield f"{measure([*command, str(path)], front, count, options.seconds):.2f}"


def main():
    """A line for each contender."""
    options, back = read_options(), free_port()
    heads = [f"{count} conns, {workers} workers" for count in options.connections for workers in options.workers]
    with tempfile.TemporaryDirectory(prefix="reactord-bench-") as directory:
        os.chmod(directory, 0o755)
        config = Path(directory, "back.ini")
        config.write_text(BACK.format(back=back), encoding="ascii")
        with Process([str(options.reactord), "-c", str(config)], 0, stderr=subprocess.DEVNULL) as server:
            server.wait_until_listening(back)
            print(f"| wake-ups a second | {' | '.join(heads)} |\n|---|{'---|' * len(heads)}")
            for contender in contenders(options, directory, back):
                print(f"| {contender[0]} | {' | '.join(row(options, directory, back, contender))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
