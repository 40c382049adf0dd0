"""accesslog: a line for each connection, what is in it, where it goes, and that nobody waits for it."""

import contextlib
import json
import os
import re
import socket
import stat
import time

from support import net, program
from support.case import check, check_equal, test
from support.log_lines import TIME, check_record, echo, lines_of, one_echo, whole_lines
from support.net import Task
from support.server import full_queue


def proxy(front, back, options, upstream=""):
    return (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n{options}\n"
            f"[upstream back]\nserver.only = {back}\n{upstream}\n")


def records(path):
    return [json.loads(line.decode()) for line in lines_of(path)]


@test()
def text_line(t):
    """access_log = /path has one line for a connection, when it has ended"""
    address, path = t.address(), t.path("access.log")
    with t.daemon(echo(address, f"access_log = {path}")) as daemon:
        with net.connect(address) as client:
            port = client.getsockname()[1]
            net.exchange(client, b"hello")
            time.sleep(0.2)
            check_equal(lines_of(path), [], "lines while it goes on")
            client.shutdown(socket.SHUT_WR)
            net.read_to_end(client)
        t.eventually(lambda: whole_lines(path), "a line")
        daemon.stop()
    lines = lines_of(path)
    check_equal(len(lines), 1, "lines")
    wanted = (rf"{TIME} 1 127\.0\.0\.1 {port} echo {re.escape(address)} - - - 5 5 "
              r"\d+\.\d{6} - - - 0 client_fin work-2-\d+")
    check(re.fullmatch(wanted, lines[0].decode()), f"the line is {lines[0]}")


@test()
def file_rights(t):
    """the file of an access log is made with mode 0640, and a restart appends to it"""
    path = t.path("access.log")
    for run in range(1, 3):
        address = t.address()
        with t.daemon(echo(address, f"access_log = {path}")):
            one_echo(address)
        check_equal(len(lines_of(path)), run, "lines")
    check_equal(stat.S_IMODE(os.stat(path).st_mode) & 0o137, 0, "rights of others")


@test(timeout=60)
def json_of_thousands(t):
    """JSON of 3000 connections, from and to paths with odd bytes, is valid and complete"""
    path = t.path("access.json")
    odd = t.path('s\x01"\\\u00e9\u20ac ')
    tcp, inner = t.address(), t.address()
    config = (f"[listen in]\naddress = {inner}\nservice = echo\n"
              f"[listen out]\naddress = {tcp}, {t.path('plain.sock')}\nservice = proxy\n"
              f"upstream = u\naccess_log = {path}\naccess_log_format = json\n"
              f"[upstream u]\nserver.a = {inner}\n")
    with t.daemon(config) as daemon:
        def clients(number):
            for i in range(number):
                one_echo(tcp, b"x" * (i % 50 + 1))

        tasks = [Task(clients, 700) for _ in range(4)]
        for i in range(200):
            # A client of a unix socket may have a path of its own, with any bytes in it.
            with socket.socket(socket.AF_UNIX) as s:
                byte = bytes([i % 255 + 1]).replace(b"/", b"?")
                s.bind(odd.encode() + byte + b"\xff\xc3%d" % i)
                s.connect(t.path("plain.sock"))
                s.settimeout(10)
                net.exchange(s, b"x")
        for task in tasks:
            task.result()
        daemon.stop()
    found = records(path)
    check_equal(len(found), 3000, "records")
    for r in found:
        check_record(r)
    check_equal(sorted(r["connection"] for r in found), list(range(1, 3001)), "numbers")
    by_path = [r for r in found if r["client_port"] is None]
    check_equal(len(by_path), 200, "clients of the unix socket")
    check(all(r["client"].startswith(odd) and "\ufffd" in r["client"] for r in by_path),
          f"their paths: {by_path[0]}")
    check_equal(sum(r["bytes_in"] for r in found), 4 * 14 * 1275 + 200, "bytes in")
    check(all(r["server"] == "a" and r["server_address"] == inner for r in found), "servers")


@test()
def times_of_a_proxy(t):
    """connect_time, first_byte_time and duration of a proxied connection are what they were"""
    front, back, path = t.address(), t.address(), t.path("access.json")
    with net.listen(back) as listener, \
            t.daemon(proxy(front, back, f"access_log = {path}\naccess_log_format = json")) as daemon:
        with net.proxied(front, listener) as (client, server):
            time.sleep(1)
            server.sendall(b"late")
            check_equal(net.read_exactly(client, 4), b"late", "the bytes")
            time.sleep(1)
        t.eventually(lambda: whole_lines(path), "a line")
        daemon.stop()
    r = records(path)[0]
    check_record(r)
    check(r["connect_time"] < 1 <= r["first_byte_time"], f"times: {r}")
    check(r["first_byte_time"] + 0.29 <= r["duration"], f"times: {r}")
    check_equal((r["bytes_in"], r["bytes_out"], r["tries"]), (0, 4, 1), "bytes and tries")
    check_equal(r["queue_time"], None, "queue_time")


@test(each=[{"how": "refuses", "reason": "connect_refused"},
            {"how": "hangs", "reason": "connect_timeout"}])
def no_server(t, how, reason):
    """a client whose server {how} has a line with {reason} and the server"""
    front, back, path = t.address(), t.address(), t.path("access.json")
    config = proxy(front, back, f"access_log = {path}\naccess_log_format = json",
                   "connect_timeout = 200ms")
    with full_queue(back) if how == "hangs" else contextlib.nullcontext():
        with t.daemon(config) as daemon:
            net.fate(front)
            t.eventually(lambda: whole_lines(path), "a line")
            daemon.stop()
    r = records(path)[0]
    check_record(r)
    check_equal((r["reason"], r["server"], r["server_address"], r["connect_time"]),
                (reason, "only", None, None), "the record")


@test()
def waiting_clients(t):
    """queue_time is how long a client waited for a server that was full"""
    front, back, path = t.address(), t.address(), t.path("access.json")
    config = proxy(front, f"{back} max_connections=1",
                   f"access_log = {path}\naccess_log_format = json")
    with program.echo_server(t, back), t.daemon(config) as daemon:
        with net.connect(front) as first:
            net.exchange(first, b"x")
            with net.connect(front) as second:
                second.sendall(b"y")
                time.sleep(1.5)
                net.reset(first)
                check_equal(net.read_exactly(second, 1), b"y", "the echo")
        t.eventually(lambda: len(whole_lines(path)) == 2, "two lines")
        daemon.stop()
    by_number = {r["connection"]: r for r in records(path)}
    check_equal(by_number[1]["queue_time"], None, "queue_time of the first")
    check(0.3 <= by_number[2]["queue_time"] <= by_number[2]["duration"], f"{by_number[2]}")


@test()
def turned_away(t):
    """a client that is not served for a limit has a line, too"""
    address, path = t.address(), t.path("access.json")
    config = echo(address, f"access_log = {path}\naccess_log_format = json:reason,client,bytes_in\n"
                           "max_connections = 1\nover_limit = reset")
    with t.daemon(config) as daemon:
        with net.connect(address) as first:
            net.exchange(first, b"x")
            net.fate(address)
            t.eventually(lambda: whole_lines(path), "a line")
        daemon.stop()
    check_equal(records(path)[0], {"reason": "limit", "client": "127.0.0.1", "bytes_in": 0},
                "the record")


@test()
def interval(t):
    """access_log_interval writes lines about a connection that goes on, with the reason open"""
    address, path = t.address(), t.path("access.json")
    config = echo(address, f"access_log = {path}\naccess_log_format = json\n"
                           "access_log_interval = 1s")
    with t.daemon(config) as daemon:
        with net.connect(address) as client:
            net.exchange(client, b"hello")
            t.eventually(lambda: len(whole_lines(path)) >= 2, "two lines", within=10)
            check(all(r["reason"] == "open" for r in records(path)), "reasons")
        t.eventually(lambda: b"client" in whole_lines(path)[-1], "the last line")
        daemon.stop()
    found = records(path)
    check_equal({r["connection"] for r in found}, {1}, "connections")
    check_equal({r["bytes_in"] for r in found}, {5}, "bytes in")
    check(found[0]["duration"] >= 1 and found[1]["duration"] >= 2, f"durations: {found}")
    check_equal([r["reason"] == "open" for r in found], [True] * (len(found) - 1) + [False],
                "reasons")


@test(each=[{"kind": "TCP", "ends": "closes"}, {"kind": "TCP", "ends": "resets"}, {"kind": "unix", "ends": "closes"}])
def client_rtt(t, kind, ends):
    """$client_rtt of a {kind} client that {ends} is the kernel's: a number for TCP, also while it is open, - for unix"""
    address, path = t.address() if kind == "TCP" else t.path("sock"), t.path("access.log")
    config = echo(address, f"access_log = {path}\naccess_log_format = $client_rtt $reason\naccess_log_interval = 1s")
    with t.daemon(config) as daemon:
        with net.connect(address) as client:
            net.exchange(client, b"hello")
            t.eventually(lambda: whole_lines(path), "a line", within=10)
            if ends == "resets":
                net.reset(client)
        t.eventually(lambda: b"client_" in whole_lines(path)[-1], "the last line")
        daemon.stop()
    said = [line.decode().split() for line in lines_of(path)]
    check_equal((said[0][1], said[-1][1]), ("open", "client_reset" if ends == "resets" else "client_fin"), "reasons")
    for rtt, _ in said:
        check(0 < int(rtt) < 10_000_000 if kind == "TCP" else rtt == "-", f"the lines: {said}")


BOTH_SIDES = ("client_rtt", "client_rtt_var", "client_retransmits", "client_delivery_rate", "server_rtt", "server_rtt_var",
              "server_retransmits", "server_delivery_rate", "server_bytes_in", "server_bytes_out", "source_address", "attempts",
              "client_fin_time", "server_fin_time", "half_closed_time")


@test()
def both_sides(t):
    """figures of both connections, our address, every address tried, and the ends of file are in the line"""
    front, refused, back, path = t.address(), t.address(), t.address(), t.path("access.json")
    config = (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\naccess_log = {path}\n"
              f"access_log_format = json:{','.join(BOTH_SIDES)}\n"
              f"[upstream back]\nserver.a = {refused}\nserver.b = {back}\nbalance = first\n")
    with net.listen(back) as listening, t.daemon(config) as daemon:
        with net.connect(front) as client:
            server, peer = listening.accept()
            with server:
                client.sendall(b"question")
                check_equal(net.read_exactly(server, 8), b"question", "the question")
                server.sendall(b"answer")
                check_equal(net.read_exactly(client, 6), b"answer", "the answer")
                client.shutdown(socket.SHUT_WR)
                net.read_to_end(server)
                time.sleep(0.1)
            net.read_to_end(client)
        t.eventually(lambda: whole_lines(path), "a line")
        daemon.stop()
    r = records(path)[0]
    for name in BOTH_SIDES[:8]:
        check(isinstance(r[name], int) and r[name] >= 0, f"{name}: {r}")
    check_equal((r["server_bytes_in"], r["server_bytes_out"], r["source_address"], r["attempts"]),
                (6, 8, f"{peer[0]}:{peer[1]}", f"{refused}=refused,{back}=ok"), "the record")
    check(0 < r["client_fin_time"] < r["server_fin_time"] and r["half_closed_time"] >= 0.1, f"times: {r}")


@test()
def facts_after_a_reload(t):
    """a reload that adds values to the format holds for open connections, too"""
    address, path, debug = t.address(), t.path("access.log"), "[reactord]\nlog_level = debug\n"
    with t.daemon(debug + echo(address, f"access_log = {path}")) as daemon:
        with net.connect(address) as client:
            net.exchange(client, b"hello")
            daemon.reload(debug + echo(address, f"access_log = {path}\naccess_log_format = $connection $client_rtt $attempts"))
            daemon.wait_carried_over(1)
        t.eventually(lambda: whole_lines(path), "a line")
        daemon.stop()
    number, rtt, attempts = lines_of(path)[0].split()
    check_equal((number, int(rtt) > 0, attempts), (b"1", True, b"-"), "the line")


@test()
def shared(t):
    """listeners that name the same file share it, each with its own format"""
    one, two, path = t.address(), t.address(), t.path("access.log")
    config = (echo(one, f"access_log = {path}\naccess_log_format = 1 $listener $connection")
              + echo(two, f"access_log = {path}\naccess_log_format = json:listener", name="other"))
    with t.daemon(config) as daemon:
        one_echo(one)
        t.eventually(lambda: whole_lines(path), "a line")
        one_echo(two)
        daemon.stop()
    check_equal(lines_of(path), [b"1 echo 1", b'{"listener":"other"}'], "lines")


@test()
def forged(t):
    """a client's path with newlines and blanks in it forges no line and no column"""
    listen, path = t.path("front.sock"), t.path("access.log")
    with t.daemon(echo(listen, f"access_log = {path}")) as daemon:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(t.path("x\n2026-11-21 forged"))
            s.connect(listen)
            s.settimeout(10)
            net.exchange(s, b"x")
        t.eventually(lambda: whole_lines(path), "a line")
        daemon.stop()
    lines = lines_of(path)
    check_equal(len(lines), 1, "lines")
    check_equal(len(lines[0].split(b" ")), 18, "columns")
    check(rb"x\x0a2026-11-21\x20forged" in lines[0], f"the line is {lines[0]}")


@test(needs=["nginx", "curl"], plain_only=True)
def nginx_and_curl(t):
    """what curl got from nginx is what the access log says, to the byte"""
    path, content = t.path("access.json"), os.urandom(300000)
    with program.nginx(t, {"file": content}) as back:
        front = t.address()
        config = proxy(front, back, f"access_log = {path}\naccess_log_format = json")
        with t.daemon(config) as daemon:
            out = program.run(["curl", "-sS", "-D", t.path("head"), f"http://{front}/file"])
            check(out == content, "the bytes changed")
            t.eventually(lambda: whole_lines(path), "a line")
            daemon.stop()
    r = records(path)[0]
    check_record(r)
    check_equal(r["bytes_out"], len(content) + os.path.getsize(t.path("head")), "bytes out")
    check(r["first_byte_time"] >= r["connect_time"], f"times: {r}")


@test(needs=["redis-server", "redis-benchmark"], timeout=120, plain_only=True)
def redis_benchmark(t):
    """each of redis-benchmark's connections has its line"""
    path = t.path("access.json")
    with program.redis(t) as back:
        front = t.address()
        config = proxy(front, back, f"access_log = {path}\naccess_log_format = json")
        with t.daemon(config) as daemon:
            program.run(["redis-benchmark", "-h", "127.0.0.1", "-p", front.rpartition(":")[2],
                         "-n", "2000", "-c", "50", "-t", "set", "-k", "0", "-q"],
                        limit_s=100 * t.scale)
            daemon.stop()
    found = records(path)
    check(len(found) >= 2000, f"{len(found)} records")
    for r in found:
        check_record(r)
