#!/usr/bin/env python3
"""
least_time.py: how long clients wait when one of three servers is slow, or stalls, with reactord's least_time and
least_connections, HAProxy's leastconn and nginx's least_conn. See README.md, "A slow server".
"""

import argparse
import asyncio
import multiprocessing
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

from engine.measure.machine import before_others
from runner.options import add_before_others, add_servers

SERVERS = 3
STALL_S = 1.0
STALL_EVERY_S = 5.0
LATE_S = 0.5
SCENARIOS = {"slow": "one of three servers 20 ms slower", "stall": "one of three servers stalls for 1 s every 5 s"}


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="How long do clients wait for the answer of a slow server?")
    add_servers(parser, "haproxy", "nginx")
    add_before_others(parser)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each contender, in turn (default: 3)")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each run (default: 12)")
    parser.add_argument("--rate", type=int, default=200, help="clients a second (default: 200)")
    parser.add_argument("--answer", type=float, default=5.0, metavar="MS", help="time of an answer (default: 5)")
    return parser.parse_args()


def free_port():
    """A port that is free now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- servers ----

async def serve(listener, name, answer_s, stalls):
    """Answer each line with the name, after that time; with stalls nothing runs for a while, again and again."""
    async def answer(reader, writer):
        if await reader.readline():
            await asyncio.sleep(answer_s)
            writer.write(name)
        writer.close()

    server = await asyncio.start_server(answer, sock=listener)
    async with server:
        while True:
            await asyncio.sleep(STALL_EVERY_S - STALL_S)
            if stalls:
                time.sleep(STALL_S)


@contextmanager
def servers(scenario, answer_s):
    """Their ports; the last is the bad one."""
    children, ports = [], []
    for i in range(SERVERS):
        is_bad = i == SERVERS - 1
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        ports.append(listener.getsockname()[1])
        takes_s = answer_s + (0.020 if is_bad and scenario == "slow" else 0)
        children.append(multiprocessing.Process(target=lambda *a: asyncio.run(serve(*a)), daemon=True,
                                                args=(listener, b"s%d\n" % i, takes_s, is_bad and scenario == "stall")))
        children[-1].start()
        listener.close()
    try:
        yield ports
    finally:
        for child in children:
            child.terminate()
            child.join()


# ---- proxies ----

def reactord(options, method):
    """Command and file of a reactord with that method, for ports."""
    def made(path, front, ports):
        lines = "".join(f"server.s{i} = 127.0.0.1:{port}\n" for i, port in enumerate(ports))
        path.write_text(f"[worker]\nthreads = 2\n[listen front]\naddress = 127.0.0.1:{front}\nservice = proxy\n"
                        f"upstream = back\n[upstream back]\nbalance = {method}\n{lines}", encoding="ascii")
        return [options.reactord, "-c", path]
    return made


def haproxy(options):
    """The same of HAProxy."""
    def made(path, front, ports):
        lines = "".join(f"  server s{i} 127.0.0.1:{port}\n" for i, port in enumerate(ports))
        path.write_text("global\n  nbthread 2\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1m\n"
                        f"  timeout server 1m\nlisten front\n  bind 127.0.0.1:{front}\n  balance leastconn\n{lines}",
                        encoding="ascii")
        return [options.haproxy, "-db", "-f", path]
    return made


def nginx(options):
    """The same of nginx, whose workers share the counts in a zone."""
    def made(path, front, ports):
        lines = "".join(f"server 127.0.0.1:{port};" for port in ports)
        module = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
        path.write_text((f"load_module {module};\n" if module.exists() else "") +
                        f"daemon off; pid {path}.pid; error_log stderr warn; worker_processes 2;\n"
                        "events { worker_connections 4096; }\n"
                        f"stream {{ upstream back {{ zone back 64k; least_conn; {lines} }}\n"
                        f"server {{ listen 127.0.0.1:{front}; proxy_pass back; }} }}\n", encoding="ascii")
        return [options.nginx, "-c", path, "-e", "stderr"]
    return made


def answers(port):
    """Does anything listen there?"""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


@contextmanager
def proxy(made, ports):
    """The port of a proxy to these."""
    front = free_port()
    with tempfile.TemporaryDirectory() as place:
        command = made(Path(place) / "conf", front, ports)
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as child:
            try:
                until = time.monotonic() + 10
                while not answers(front):
                    if child.poll() is not None or time.monotonic() > until:
                        sys.exit(f"{command[0]} does not start")
                    time.sleep(0.05)
                yield front
            finally:
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(5)
                except subprocess.TimeoutExpired:
                    child.kill()


# ---- clients ----

async def client(front, times, names):
    """One connection with one question; its time and server."""
    began = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", front)
    writer.write(b"?\n")
    names.append(await reader.readline())
    times.append(time.monotonic() - began)
    writer.close()


async def load(front, rate, seconds):
    """Clients at an even rate, whether or not those before were answered."""
    times, names, tasks = [], [], []
    began = time.monotonic()
    for i in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, began + i / rate - time.monotonic()))
        tasks.append(asyncio.create_task(client(front, times, names)))
    done = await asyncio.gather(*tasks, return_exceptions=True)
    return times, names, sum(isinstance(result, Exception) for result in done)


def quantile(times, part):
    """In milliseconds."""
    return sorted(times)[min(len(times) - 1, int(part * len(times)))] * 1000


def compare(options):
    """All contenders in turn, round by round."""
    contenders = {"reactord least_time": reactord(options, "least_time"),
                  "reactord least_connections": reactord(options, "least_connections"),
                  "haproxy leastconn": haproxy(options), "nginx least_conn": nginx(options)}
    for scenario, title in SCENARIOS.items():
        all_of = {name: ([], [], []) for name in contenders}
        for _ in range(options.rounds):
            for name, made in contenders.items():
                with servers(scenario, options.answer / 1000) as ports, proxy(made, ports) as front:
                    times, names, failed = asyncio.run(load(front, options.rate, options.seconds))
                all_of[name][0].extend(times)
                all_of[name][1].extend(names)
                all_of[name][2].append(failed)
        print(f"\n{title}:\n\n| contender                  | p50     | p99     | p99.9   | over 0.5 s | "
              f"at that server | failed |\n|{'-' * 28}|{'-' * 9}|{'-' * 9}|{'-' * 9}|{'-' * 12}|{'-' * 16}|{'-' * 8}|")
        for name, (times, names, failed) in all_of.items():
            p50, p99, p999 = (f"{quantile(times, part):.1f} ms" for part in (0.5, 0.99, 0.999))
            late = f"{sum(took > LATE_S for took in times)} of {len(times)}"
            share = f"{100 * names.count(b's%d' % (SERVERS - 1) + chr(10).encode()) / max(1, len(names)):.1f} %"
            print(f"| {name:<26} | {p50:<7} | {p99:<7} | {p999:<7} | {late:<10} | {share:<14} | {sum(failed):<6} |",
                  flush=True)


def main():
    """Perhaps before others."""
    options = read_options()
    with before_others() if options.before_others else nullcontext():
        compare(options)


if __name__ == "__main__":
    main()
