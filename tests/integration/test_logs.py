"""logs: where lines go, what is in them, and that rotation loses none."""

import contextlib
import fcntl
import os
import re
import signal
import socket
import stat
import threading

from support import net
from support.case import Skipped, check, check_equal, is_root, test
from support.net import Task
from test_proxy import proxy

LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z reactord\[\d+\] "
                  r"(error|warning|notice|info|debug) \S+: .+$")


def echo(address, options="", process=""):
    return (f"[reactord]\n{process}\n"
            f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n")


def one_session(address, message=b"hello"):
    with net.connect(address) as client:
        check_equal(net.exchange(client, message), message, "the echo")
        client.shutdown(socket.SHUT_WR)
        check_equal(net.read_to_end(client), b"", "behind the echo")


@test()
def shape_of_a_line(t):
    """every line of stderr has time, program, level and thread; it begins with the version"""
    address = t.address()
    with t.daemon(echo(address, "pipeline = log", "log_level = debug")) as daemon:
        one_session(address)
        daemon.send_signal(signal.SIGHUP)
        daemon.stop()
        lines = daemon.log().splitlines()
    odd = [line for line in lines if not LINE.match(line)]
    check(not odd, f"odd lines: {odd}")
    check(re.search(r"reactord \d+\.\d+", lines[0]), f"the first line is {lines[0]}")


@test(each=[{"level": "error", "most": 0}, {"level": "warning", "most": 0}])
def quiet_levels(t, level, most):
    """log_level = {level}: a life without trouble is silent"""
    address = t.address()
    with t.daemon(echo(address, process=f"log_level = {level}")) as daemon:
        one_session(address)
        daemon.stop()
        check_equal(len(daemon.log().splitlines()), most, "lines")


@test()
def levels_are_a_scale(t):
    """each log_level shows what the one before shows, and lines of its own level only then"""
    names = ["error", "warning", "notice", "info", "debug"]
    for i, level in enumerate(names):
        address = t.address()
        warned_of = "[boss]\nthreads = 2\n"  # with one socket
        with t.daemon(warned_of + echo(address, "pipeline = log", f"log_level = {level}")) as daemon:
            one_session(address)
            daemon.stop()
            for j, other in enumerate(names):
                found = daemon.log_lines(rf"reactord\[\d+\] {other} ")
                if j > i:
                    check(not found, f"log_level {level} shows {found}")
                elif other != "error":
                    check(found, f"log_level {level} shows no {other}")


@test()
def pipeline_log(t):
    """pipeline = log at debug shows a connection's begin, bytes and end, with the client's
    address"""
    address = t.address()
    with t.daemon(echo(address, "pipeline = log", "log_level = debug")) as daemon:
        with net.connect(address) as client:
            peer = "%s:%d" % client.getsockname()
            net.exchange(client, b"a message")
            client.shutdown(socket.SHUT_WR)
            net.read_to_end(client)
        t.eventually(lambda: daemon.log_lines(rf"{peer}.*ended"), "the end of the session")
        for event in ("active", r"read.*9 bytes", r"write.*9 bytes", "end of file", "closed"):
            check(daemon.log_lines(rf"{re.escape(peer)} .*{event}"), f"no line about '{event}'")
        check(daemon.log_lines("61 20 6d 65 73 73 61 67 65.*a message"), "the bytes are not shown")


@test()
def pipeline_log_of_a_proxy(t):
    """pipeline = log on a proxied connection shows both directions and changes no byte"""
    front, back = t.address(), t.address()
    config = "[reactord]\nlog_level = debug\n" + proxy(front, back, "pipeline = log")
    with net.listen(back) as listener, t.daemon(config) as daemon:
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"question")
            check_equal(net.read_exactly(server, 8), b"question", "what the server got")
            server.sendall(b"answer!")
            check_equal(net.read_exactly(client, 7), b"answer!", "what the client got")
            sender = Task(net.send_pattern, server, 1 << 20)
            check_equal(net.receive_sha256(client, 1 << 20), net.pattern_sha256(1 << 20), "SHA-256")
            sender.result()
        t.eventually(lambda: daemon.log_lines("ended"), "the end of the session")
        check(daemon.log_lines(r"read.*8 bytes"), "no line about the question")
        check(daemon.log_lines(r"write.*7 bytes"), "no line about the answer")


@test()
def forged_lines(t):
    """bytes of a client that look like log lines, or drive a terminal, are shown harmless"""
    address = t.address()
    evil = b"x\n2026-01-01T00:00:00.000Z reactord[1] error main: forged\n\x1b[2J\x00\xff"
    with t.daemon(echo(address, "pipeline = log", "log_level = debug")) as daemon:
        one_session(address, evil)
        daemon.stop()
        log = daemon.log()
    check("\x1b" not in log and "\x00" not in log, "control bytes are in the log")
    odd = [line for line in log.splitlines() if not LINE.match(line)]
    check(not odd, f"odd lines: {odd}")


@test()
def log_file(t):
    """log = /path makes a file others cannot read, and leaves stderr empty"""
    address, path = t.address(), t.path("x.log")
    with t.daemon(echo(address, process=f"log = {path}")) as daemon:
        one_session(address)
        daemon.stop()
        check_equal(daemon.log(), "", "stderr")
    check_equal(stat.S_IMODE(os.stat(path).st_mode) & 0o027, 0, "rights of others")
    with open(path, encoding="ascii") as f:
        lines = f.read().splitlines()
    check(lines and all(LINE.match(line) for line in lines), f"the file holds {lines}")


@test()
def log_file_is_continued(t):
    """a restart appends to the log file"""
    path = t.path("x.log")
    for run in range(1, 4):
        with t.daemon(echo(t.address(), process=f"log = {path}")) as daemon:
            daemon.stop()
        with open(path, encoding="ascii") as f:
            check_equal(len(re.findall(r" ready$", f.read(), re.M)), run, "starts in the file")


def has_ends(path):
    with open(path, encoding="ascii") as f:
        return " ended" in f.read()


@test()
def rotation_under_traffic(t):
    """SIGUSR1 after a rename, five times under traffic: every session's end is in exactly one
    file"""
    address, path = t.address(), t.path("x.log")
    config = echo(address, process=f"log = {path}\nlog_level = debug")
    with t.daemon(config) as daemon:
        over = threading.Event()
        peers = []

        def traffic():
            while not over.is_set():
                with net.connect(address) as client:
                    peers.append("%s:%d" % client.getsockname())
                    net.exchange(client, b"x")

        tasks = [Task(traffic) for _ in range(3)]
        for number in range(1, 6):
            t.eventually(lambda: has_ends(path), "ends of sessions in the file", within=20)
            os.rename(path, f"{path}.{number}")
            daemon.send_signal(signal.SIGUSR1)
            t.eventually(lambda: os.path.exists(path) and os.path.getsize(path), "a new file")
        t.eventually(lambda: has_ends(path), "ends of sessions in the last file", within=20)
        over.set()
        for task in tasks:
            task.result()
        daemon.stop()
        check_equal(daemon.log(), "", "stderr")
    ended = []
    for name in [path] + [f"{path}.{number}" for number in range(1, 6)]:
        with open(name, encoding="ascii") as f:
            lines = f.read().splitlines()
        odd = [line for line in lines if not LINE.match(line)]
        check(not odd, f"odd lines in {name}: {odd[:3]}")
        found = [m.group(1) for m in map(re.compile(r"echo: (\S+).* ended").search, lines) if m]
        check(found, f"{name} holds no sessions")
        ended += found
    check_equal(sorted(ended), sorted(peers), "sessions whose end is logged")


@test()
def reopen_fails(t):
    """SIGUSR1 when the file cannot be made anew keeps the old one, and says so in it"""
    address = t.address()
    os.mkdir(t.path("logs"))
    path = t.path("logs/x.log")
    with t.daemon(echo(address, process=f"log = {path}")) as daemon:
        os.rename(t.path("logs"), t.path("gone"))
        daemon.send_signal(signal.SIGUSR1)

        def complained():
            with open(t.path("gone/x.log"), encoding="ascii") as f:
                return "cannot be reopened" in f.read()
        t.eventually(complained, "a line in the old file")
        one_session(address)


@test()
def full_disk(t):
    """a log that takes nothing (/dev/full) does not disturb the service or the stop"""
    address = t.address()
    config = echo(address, "pipeline = log", "log = /dev/full\nlog_level = debug")
    with t.daemon(config):
        for _ in range(20):
            one_session(address)


@test()
def log_file_in_no_directory(t):
    """a log file that cannot be made ends the start with exit code 3 and is named on stderr"""
    path = t.path("nowhere/x.log")
    done = t.reactord("-c", t.write("c.ini", echo(t.address(), process=f"log = {path}")))
    check_equal(done.code, 3, "exit code")
    check(path in done.err, f"stderr: {done.err}")


@contextlib.contextmanager
def sole_user(path):
    """Keep other tests, also of other runs, from a path of the machine."""
    root = os.open(f"/{path.split('/')[1]}", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(root, fcntl.LOCK_EX)
        yield
    finally:
        os.close(root)


@contextlib.contextmanager
def log_socket(path):
    """A datagram socket at a path of the machine, where nobody has one."""
    with sole_user(path), bound_socket(path) as s:
        yield s


@contextlib.contextmanager
def bound_socket(path):
    if not is_root() or os.path.exists(path):
        raise Skipped(f"{path} is taken, or not ours to make")
    made = []
    parent = os.path.dirname(path)
    while not os.path.isdir(parent):
        made.append(parent)
        parent = os.path.dirname(parent)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(net.LIMIT_S)
        try:
            yield s
        finally:
            os.unlink(path)
            for name in made:
                os.rmdir(name)


def received(s, pattern):
    """The first datagram that the pattern is found in."""
    while True:
        datagram = s.recv(65536).decode()
        if re.search(pattern, datagram):
            return datagram


@test()
def syslog(t):
    """log = syslog sends RFC 3164 datagrams of facility daemon to /dev/log"""
    with log_socket("/dev/log") as s, t.daemon(echo(t.address(), process="log = syslog")) as daemon:
        ready = received(s, rf"reactord\[{daemon.pid}\]: .*ready")
        check(re.match(rf"<{3 * 8 + 5}>\w{{3}} [ \d]\d \d\d:\d\d:\d\d reactord\[{daemon.pid}\]: ",
                       ready), f"the datagram is {ready!r}")
        check(not ready.endswith("\n"), "it ends in a newline")


@test()
def journal(t):
    """log = journal sends fields to the journal's socket, the priority among them"""
    with log_socket("/run/systemd/journal/socket") as s, \
            t.daemon(echo(t.address(), process="log = journal")):
        fields = dict(line.split("=", 1) for line in received(s, "ready").splitlines())
        check_equal(fields["PRIORITY"], "5", "PRIORITY")
        check_equal(fields["SYSLOG_IDENTIFIER"], "reactord", "SYSLOG_IDENTIFIER")
        check("ready" in fields["MESSAGE"], f"MESSAGE is {fields['MESSAGE']!r}")


@test(each=[{"where": "syslog", "path": "/dev/log"},
            {"where": "journal", "path": "/run/systemd/journal/socket"}])
def nobody_logs(t, where, path):
    """log = {where} where nobody takes it ends the start with exit code 3"""
    with sole_user(path):
        if os.path.exists(path):
            raise Skipped(f"{path} exists")
        done = t.reactord("-c", t.write("c.ini", echo(t.address(), process=f"log = {where}")))
    check_equal(done.code, 3, "exit code")
    check(f"log {where} ({path}): No such file or directory" in done.err, f"stderr: {done.err}")
