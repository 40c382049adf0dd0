#!/usr/bin/env python3
"""
ports.py: short sessions to one server with few ports to connect from.

One client after the other connects by a unix socket, sends 64 B, reads the echo through the proxy,
and closes first. A proxy that closes its connection to the server first keeps the port in TIME_WAIT
for a minute. Requires root, for a network namespace. See README.md.
"""

import argparse
import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from runner.namespaces import CLONE_NEWNET, ip, new_namespaces
from runner.options import add_servers
from runner.table import lines

SERVER = ("127.0.0.1", 7008)
PING = bytes(64)

REACTORD = """
[reactord]
log_level = error
[worker]
threads = 1
[listen front]
address = {front}
service = proxy
upstream = back
[upstream back]
server.a = 127.0.0.1:7008
retries = 0
{more}
"""

HAPROXY = """
global
    nbthread 1
defaults
    mode tcp
    retries 0
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend front
    bind unix@{front}
    default_backend back
backend back
    {more}
    server a 127.0.0.1:7008
"""

NGINX = """
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
worker_processes 1;
error_log /dev/null;
pid {front}.pid;
events {{ worker_connections 1000; }}
stream {{
    server {{
        listen unix:{front};
        proxy_pass 127.0.0.1:7008;
    }}
}}
"""

SOURCES = "source_address = " + ", ".join(f"127.0.0.{n}" for n in range(5, 9))
CASES = [
    ("reactord", "reactord", REACTORD, ""),
    ("reactord, 4 source addresses", "reactord", REACTORD, SOURCES),
    ("reactord, source_ports", "reactord", REACTORD, "source_ports = 30000-30199"),
    ("haproxy", "haproxy", HAPROXY, ""),
    ("haproxy, option nolinger", "haproxy", HAPROXY, "option nolinger"),
    ("nginx", "nginx", NGINX, ""),
]


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="Short sessions with few ports.")
    parser.add_argument("--ports", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=700)
    add_servers(parser, "haproxy", "nginx")
    return parser.parse_args()


def own_network(ports):
    """A new network namespace for this process, with that many ports, none of which is used again early."""
    new_namespaces(CLONE_NEWNET)
    ip("link", "set", "lo", "up")
    settings = Path("/proc/sys/net/ipv4")
    (settings / "ip_local_port_range").write_text(f"40000 {40000 + ports - 1}", encoding="ascii")
    (settings / "tcp_tw_reuse").write_text("0", encoding="ascii")


def serve(listener):
    """An echo server that closes when its client has."""
    def echo(s):
        with s, contextlib.suppress(ConnectionError):
            while data := s.recv(4096):
                s.sendall(data)

    with contextlib.suppress(OSError):
        while True:
            threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def session(front):
    """Was one client served?"""
    with socket.socket(socket.AF_UNIX) as s, contextlib.suppress(OSError):
        s.settimeout(10)
        s.connect(front)
        s.sendall(PING)
        got = b""
        while len(got) < len(PING) and (part := s.recv(4096)):
            got += part
        return got == PING
    return False


def in_time_wait():
    """Of all sockets of IPv4 here."""
    return int(re.search(r" tw (\d+)", Path("/proc/net/sockstat").read_text(encoding="ascii"))[1])


def run(options, case):
    """A row of the table, measured in a process and a network of its own."""
    name, program, text, more = case
    own_network(options.ports)
    with socket.create_server(SERVER, backlog=1024) as listener, tempfile.TemporaryDirectory() as directory:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        front, path = f"{directory}/front", f"{directory}/conf"
        Path(path).write_text(text.format(front=front, more=more), encoding="ascii")
        command = {"reactord": [options.reactord, "-c", path], "haproxy": [options.haproxy, "-q", "-db", "-f", path],
                   "nginx": [options.nginx, "-c", path]}[program]
        with subprocess.Popen([str(word) for word in command]) as process:
            while process.poll() is None and not session(front):
                time.sleep(0.01)
            times, served = [], 1
            for _ in range(options.sessions - 1):
                began = time.monotonic()
                served += session(front)
                times.append(time.monotonic() - began)
            time.sleep(0.2)  # the last one ends
            waiting = in_time_wait()
            process.send_signal(signal.SIGTERM)
    return [name, f"{served} of {options.sessions}", str(waiting), f"{median(times) * 1000:.2f}"]


def main():
    """A process for each case."""
    options = read_options()
    rows = []
    for case in CASES:
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write_end, "\t".join(run(options, case)).encode())
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end, encoding="ascii") as f:
            rows.append(f.read().split("\t"))
        os.waitpid(child, 0)
    print(lines(["", "served", "in TIME_WAIT", "a session, ms"], rows))


if __name__ == "__main__":
    main()
