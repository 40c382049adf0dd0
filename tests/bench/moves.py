#!/usr/bin/env python3
"""
moves.py: how long a client waits while its session moves to another loop.

One client makes round trips of 64 B, one after the other, or receives a stream of 16 KiB each 0.3 ms.
Its session moves between four loops, a request at a time. For each request: the longest round trip, or
time between two reads, that overlaps it. Beside it the same for requests that move nothing, since the
session is already there. See README.md, "Moves of sessions".
"""

import argparse
import json
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from control import GRACE_S, UnixConnection, child
from runner.contender import LOAD_CPU, SERVER_CPU
from runner.options import add_servers
from runner.process import BenchError, Process, come_first, free_port
from runner.table import lines

LOOPS = 4
SIZE = 64
READ = 1 << 16
POUR, POUR_EACH_S = 1 << 14, 0.0003

CONF = """
[reactord]
log_level = error
[worker]
threads = {loops}
[admin]
address = {directory}/admin.sock
write = yes
[tls front]
certificate = {directory}/pem
[listen echo]
address = 127.0.0.1:{echo}
service = echo
[listen proxy]
address = 127.0.0.1:{proxy}
service = proxy
upstream = back
[listen tls]
address = 127.0.0.1:{tls}
service = echo
tls = front
[listen stream]
address = 127.0.0.1:{stream}
service = proxy
upstream = source
[upstream back]
server.a = 127.0.0.1:{server}
[upstream source]
server.a = 127.0.0.1:{source}
"""

ROWS = [("echo, 64 B", "echo"), ("proxy, 64 B", "proxy"), ("TLS, 64 B", "tls"),
        ("proxy, a stream (spliced)", "stream")]


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="The pause of a move at the client.")
    parser.add_argument("--moves", type=int, default=2000, help="a row (default: 2000)")
    parser.add_argument("--pause", type=float, default=0.002, help="between two (default: 0.002 s)")
    add_servers(parser)
    return parser.parse_args()


# ---- processes of the load ----

def echo(port, pipe):
    """An echo server, one client at a time."""
    come_first(LOAD_CPU)
    listener = socket.create_server(("127.0.0.1", port))
    pipe.send("listening")
    while True:
        with listener.accept()[0] as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := s.recv(READ):
                s.sendall(data)


def pour(port, pipe):
    """A source of bytes without end, one client at a time."""
    come_first(LOAD_CPU)
    listener, zeros = socket.create_server(("127.0.0.1", port)), bytes(POUR)
    pipe.send("listening")
    while True:
        with listener.accept()[0] as s, suppress(ConnectionError):
            while True:
                s.sendall(zeros)
                time.sleep(POUR_EACH_S)


def connected(port, is_tls):
    """The client's socket."""
    s = socket.create_connection(("127.0.0.1", port), timeout=GRACE_S)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if is_tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        s = context.wrap_socket(s)
    return s


def use(port, name, pipe):
    """Use a session until something is received; send the instants between which the client waited."""
    come_first(LOAD_CPU)
    s, times, n = connected(port, name == "tls"), [], 0
    pipe.send("connected")
    while n % 64 or not pipe.poll():
        n += 1
        times.append(time.monotonic())
        if name == "stream":
            if not s.recv(READ):
                raise BenchError("the stream has ended")
            continue
        text = n.to_bytes(8, "big") * (SIZE // 8)
        s.sendall(text)
        got = b""
        while len(got) < SIZE:
            if not (data := s.recv(SIZE)):
                raise BenchError("the session has ended")
            got += data
        if got != text:
            raise BenchError("wrong bytes")
    pipe.send(times)
    pipe.recv()


class Mover:
    """The requests."""

    def __init__(self, path):
        self.connection = UnixConnection(path)

    def move(self, listener, number):
        """Move that listener's session; (when it was asked, when it was answered, how many moved)."""
        body = json.dumps({"listener": listener, "to": f"work-2-{number + 1}"})
        began = time.monotonic()
        self.connection.request("POST", "/v1/sessions/move", body)
        answer = self.connection.getresponse()
        text = json.loads(answer.read())
        if answer.status != 200:
            raise BenchError(f"a move is refused: {text}")
        return began, time.monotonic(), text["moved"]


# ---- figures ----

def waits(times, requests):
    """In us, for each request: the longest wait of the client that overlaps it."""
    longest, i = [], 0
    for began, ended, _ in requests:
        while i + 2 < len(times) and times[i + 1] < began:
            i += 1
        j, most = i, 0
        while j + 1 < len(times) and times[j] < ended:
            most = max(most, times[j + 1] - times[j])
            j += 1
        longest.append(most * 1e6)
    return sorted(longest)


def figures(values):
    """p50, p99 and most, as texts."""
    return [f"{values[int(len(values) * share)]:.0f}" for share in (0.5, 0.99)] + [f"{values[-1]:.0f}"]


def measure(options, mover, title, name, port):
    """One row."""
    with child(use, port, name) as pipe:
        if not pipe.poll(GRACE_S):
            raise BenchError("no session")
        pipe.recv()
        kinds = {True: [], False: []}
        to = 0
        for i in range(2 * options.moves):
            to = (to + 1) % LOOPS if i % 2 == 0 else to
            kinds[i % 2 == 0].append(mover.move(name, to))
            time.sleep(options.pause)
        pipe.send("enough")
        if not pipe.poll(GRACE_S):
            raise BenchError("the client does not end")
        times = pipe.recv()
    moved = sum(n for _, _, n in kinds[True])
    return [title, str(moved)] + [text for is_move in (False, True)
                                  for text in figures(waits(times, kinds[is_move]))]


def measure_all(options):
    """The table."""
    ports = {name: free_port() for name in ("echo", "proxy", "tls", "stream", "server", "source")}
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="reactord-bench-"))
        pem = Path(directory) / "pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout", pem,
                        "-out", f"{pem}.crt"], check=True, capture_output=True)
        pem.write_bytes(pem.read_bytes() + Path(f"{pem}.crt").read_bytes())
        conf = Path(directory) / "conf.ini"
        conf.write_text(CONF.format(directory=directory, loops=LOOPS, **ports), encoding="ascii")
        for function, port in ((echo, ports["server"]), (pour, ports["source"])):
            stack.enter_context(child(function, port)).recv()
        daemon = stack.enter_context(Process([options.reactord, "-c", conf], SERVER_CPU, is_first=True))
        daemon.wait_until_listening(ports["echo"])
        mover = Mover(f"{directory}/admin.sock")
        return [measure(options, mover, title, name, ports[name]) for title, name in ROWS]


def main():
    """Print the table."""
    options = read_options()
    header = ["us", "moves", "p50 beside requests that move nothing", "p99", "max",
              "p50 of a move", "p99", "max"]
    try:
        print(lines(header, measure_all(options)))
    except BenchError as error:
        sys.exit(f"moves.py: {error}")


if __name__ == "__main__":
    main()
