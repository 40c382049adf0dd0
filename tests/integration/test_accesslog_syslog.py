"""accesslog: syslog over UDP and at unix sockets, and the journal: there, away, slow and back."""

import contextlib
import json
import os
import re
import socket

from support import descriptors, net, program
from support.case import Skipped, check, check_equal, test
from support.chain import Chain
from support.log_lines import echo, one_echo, whole_lines
from support.net import Task
from test_logs import log_socket, received, sole_user

THEME = "accesslog"


@contextlib.contextmanager
def receiver(where):
    """A socket that takes datagrams at a path, or at any port of an IP address; gives it and its address."""
    family = socket.AF_UNIX if "/" in where else socket.AF_INET6 if ":" in where else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(net.LIMIT_S)
        try:
            s.bind(where if family == socket.AF_UNIX else (where, 0))
        except OSError as e:
            raise Skipped(f"{where}: {e}") from e
        try:
            if family == socket.AF_UNIX:
                yield s, where
            else:
                yield s, f"[{where}]:{s.getsockname()[1]}" if ":" in where else f"{where}:{s.getsockname()[1]}"
        finally:
            if family == socket.AF_UNIX:
                os.unlink(where)


def counts(daemon, where):
    return daemon.counts(f"access_log {where}")


@test(each={"host": ["127.0.0.1", "::1"]})
def remote(t, host):
    """access_log = syslog {host}:PORT sends each line as a message of RFC 5424, JSON as it is"""
    address = t.address()
    with receiver(host) as (s, where):
        log = f"access_log = syslog {where} facility=local0 severity=notice tag=lb format=rfc5424 host=edge.example"
        with t.daemon(echo(address, log + "\naccess_log_format = json:connection,reason,pid")) as daemon:
            for number in range(1, 21):
                one_echo(address)
                message = s.recv(65536).decode()
                head, _, text = message.partition(" - - ")
                check(re.fullmatch(rf"<133>1 \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{3}}Z edge\.example lb {daemon.pid}", head),
                      f"the message is {message!r}")
                check_equal(json.loads(text), {"connection": number, "reason": "client_fin", "pid": daemon.pid}, "record")
            daemon.stop()


@test()
def remote_log(t):
    """log = syslog IP:PORT sends the lines of the log there, at their own severity"""
    with receiver("127.0.0.1") as (s, where):
        with t.daemon(echo(t.address(), "", f"log = syslog {where} facility=local3 host=off")) as daemon:
            ready = received(s, "ready")
            check(re.match(rf"<{19 * 8 + 5}>\w{{3}} [ \d]\d \d\d:\d\d:\d\d reactord\[{daemon.pid}\]: main: ", ready),
                  f"the datagram is {ready!r}")


@test(timeout=60)
def missing(t):
    """an access log starts without its syslog, drops and counts lines, says so once, and finds it when it comes, as
    often as it goes"""
    address, path = t.address(), t.path("log.sock")
    with t.daemon(echo(address, f"access_log = syslog {path}\naccess_log_format = $connection")) as daemon:
        losses = r"access log syslog .*: lines are dropped: "
        check_equal(len(daemon.log_lines(f"warning .*access log syslog {path}: does not answer: No such file")), 1, "warnings")
        for episode in range(1, 3):
            for _ in range(20):
                one_echo(address)
            t.eventually(lambda: counts(daemon, f"syslog {path}")["dropped"] == 20 * episode, "20 lines are dropped")
            t.eventually(lambda: len(daemon.log_lines(losses)) == episode, "a line about losses")
            check_equal(len(daemon.log_lines("takes lines again")), episode - 1, "lines about their end before it")
            with receiver(path) as (s, _):
                t.eventually(lambda: len(daemon.log_lines(r"takes lines again; lines dropped: 20$")) == episode, "the end")
                one_echo(address)
                check(received(s, f": {21 * episode}$"), "the line")
        daemon.stop()


@test()
def missing_journal(t):
    """an access log starts without the journal, with a warning"""
    path = "/run/systemd/journal/socket"
    with sole_user(path):
        if os.path.exists(path):
            raise Skipped(f"{path} exists")
        address = t.address()
        with t.daemon(echo(address, "access_log = journal")) as daemon:
            one_echo(address)
            t.eventually(lambda: counts(daemon, "journal")["dropped"] == 1, "the line is dropped")
            check(daemon.log_lines(r"access log journal \(/run/systemd/journal/socket\): does not answer: No such file"),
                  "no warning")
            daemon.stop()


@test()
def to_journal(t):
    """target = journal sends each line as fields, with its facility, severity and tag"""
    address = t.address()
    config = "[access_log j]\ntarget = journal facility=user severity=notice tag=lb\nformat = $reason\n"
    with log_socket("/run/systemd/journal/socket") as s, t.daemon(config + echo(address, "access_log = j")):
        one_echo(address)
        fields = dict(line.split("=", 1) for line in received(s, "MESSAGE=").splitlines())
        check_equal(fields, {"PRIORITY": "5", "SYSLOG_FACILITY": "1", "SYSLOG_IDENTIFIER": "lb", "MESSAGE": "client_fin"},
                    "fields")


@test(timeout=60)
def refused(t):
    """a closed port of UDP costs lines only: they are dropped, counted and reported until it is open again"""
    address = t.address()
    host = f"127.77.2.{os.getpid() % 250 + 1}"  # nobody else takes a port there
    with receiver(host) as (s, where):
        port = s.getsockname()[1]
    with t.daemon(echo(address, f"access_log = syslog {where}\naccess_log_format = $connection")) as daemon:

        def is_dropped():
            one_echo(address)
            return counts(daemon, f"syslog {where}")["dropped"] >= 10

        t.eventually(is_dropped, "lines are dropped", 40)
        t.eventually(lambda: daemon.log_lines("lines are dropped: Connection refused"), "a line about losses")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
            again.bind((host, port))

            def has_come():
                one_echo(address)
                return drained(again)

            t.eventually(has_come, "lines that come again", 40)
            t.eventually(lambda: daemon.log_lines(r"takes lines again; lines dropped: \d+$"), "the end of the losses", 20)
        daemon.stop()


@test(timeout=60)
def stopped_reader(t):
    """a syslog that does not read delays no client: lines wait in access_log_buffer, then are dropped and counted, and
    all are written or counted when it reads again"""
    address, path = t.address(), t.path("log.sock")
    name, total = f"syslog {path}", 0
    with receiver(path) as (s, _), \
            t.daemon(echo(address, f"access_log = {name}\naccess_log_format = json", "access_log_buffer = 128k")) as daemon:

        def is_full():
            nonlocal total
            for _ in range(50):
                one_echo(address)
            total += 50
            return counts(daemon, name)["dropped"] > 0

        t.eventually(is_full, "the buffer is full", 60)
        check(counts(daemon, name)["waiting_bytes"] <= 128 << 10, "more waits than access_log_buffer")
        reader = Task(read_until, s, f'"connection":{total + 1},')
        t.eventually(lambda: daemon.log_lines(r"takes lines again; lines dropped: \d+$"), "the end of the losses", 20)
        one_echo(address)
        messages = reader.result()
        t.eventually(lambda: counts(daemon, name)["lines"] + counts(daemon, name)["dropped"] == total + 1,
                     "each line is written or dropped")
        check_equal(len(messages + drained(s)), counts(daemon, name)["lines"], "messages")
        daemon.stop()


def drained(s):
    """All messages that are there."""
    messages = []
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            messages.append(s.recv(65536).decode())
    return messages


def read_until(s, last):
    """All messages until that one."""
    messages = []
    while not messages or last not in messages[-1]:
        messages.append(s.recv(65536).decode())
    return messages


@test()
def reload_to_syslog(t):
    """a reload moves an access log from a file to a syslog that is away, and to one that is there; no line is lost"""
    address, path, away = t.address(), t.path("log.sock"), t.path("away.sock")
    config = "[access_log a]\ntarget = {}\nformat = $connection\n" + echo(address, "access_log = a")
    with receiver(path) as (s, _), t.daemon(config.format(t.path("a.log"))) as daemon:
        one_echo(address)
        t.eventually(lambda: whole_lines(t.path("a.log")), "the line in the file")
        daemon.reload(config.format(f"syslog {away}"))
        check(daemon.log_lines(f"access log syslog {away}: does not answer: No such file"), "no warning")
        one_echo(address)
        t.eventually(lambda: counts(daemon, f"syslog {away}")["dropped"] == 1, "the line is dropped")
        daemon.reload(config.format(f"syslog {path} tag=x"))
        one_echo(address)
        check(re.search(r" x\[\d+\]: 1$", s.recv(65536).decode()), "the line")
        for gone in ("a.log", f"syslog {away}"):
            t.eventually(lambda gone=gone: daemon.log_lines(f"access log .*{re.escape(gone)}: closed; no listener uses it"),
                         "the log is closed", 20)
        t.eventually(lambda: t.path("a.log") not in descriptors.of_process(daemon.pid).values(), "the file is closed")
        daemon.stop()
    with open(t.path("a.log"), encoding="ascii") as f:
        check_equal(f.read(), "1\n", "the file")


@test(timeout=60)
def upgrade(t):
    """an upgrade loses no line: each connection is a message of the old or the new process"""
    address, path = t.address(), t.path("log.sock")
    with receiver(path) as (s, _):
        got = []
        reader = Task(collect, s, got)
        with Chain(t, echo(address, f"access_log = syslog {path}\naccess_log_format = $client_port")) as chain:
            served = []
            for _ in range(3):
                for _ in range(10):
                    with net.connect(address) as client:
                        served.append(str(client.getsockname()[1]))
                        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
                chain.upgrade()
            for pid in chain.old:
                chain.wait_gone(pid)
            chain.stop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.settimeout(net.LIMIT_S)
            end.connect(path)
            end.send(b"end")
        reader.result()
    check_equal(sorted(text.rpartition(": ")[2] for text in got), sorted(served), "connections")
    check(len({re.search(r"\[(\d+)\]", text)[1] for text in got}) > 1, "only one process has logged")


def collect(s, got):
    while (message := s.recv(65536).decode()) != "end":
        got.append(message)


RSYSLOG_CONF = """
module(load="imuxsock" SysSock.Use="off")
module(load="imudp")
template(name="t" type="string"
         string="%syslogfacility-text%.%syslogseverity-text% %HOSTNAME% %programname% %procid% %msg%\\n")
input(type="imuxsock" Socket="{path}")
input(type="imudp" address="{host}" port="{port}")
action(type="omfile" file="{out}" template="t")
"""


@test(needs=["rsyslogd"], each=[{"over": "a unix socket", "form": "rfc3164"}, {"over": "UDP", "form": "rfc3164"},
                                {"over": "UDP", "form": "rfc5424"}], timeout=60, plain_only=True)
def rsyslog(t, over, form):
    """rsyslogd, started after reactord and restarted, has the lines of {form} over {over} with facility, severity, host,
    tag and process"""
    address, path, out = t.address(), t.path("log.sock"), t.path("out")
    host, is_udp, served = f"127.77.3.{os.getpid() % 250 + 1}", over == "UDP", 0  # nobody else takes a port there
    with receiver(host) as (_, where):
        port = where.rpartition(":")[2]
    config = t.write("rsyslog.conf", RSYSLOG_CONF.format(path=path, host=host, port=port, out=out))
    target = f"syslog {where} host=edge.example" if is_udp else f"syslog {path}"
    log = f"access_log = {target} facility=local2 severity=notice tag=lb format={form}"
    with t.daemon(echo(address, log + "\naccess_log_format = connection=$connection")) as daemon:

        def texts():
            with contextlib.suppress(FileNotFoundError):
                return [line.decode() for line in whole_lines(out)]
            return []

        for _ in range(2):
            with program.server(t, ["rsyslogd", "-n", "-f", config, "-i", t.path("rsyslog.pid")], path=path):
                before = len(texts())

                def has_come(before=before):
                    nonlocal served
                    one_echo(address)
                    served += 1
                    return len(texts()) > before

                t.eventually(has_come, "a line in rsyslog's file", 30)
                for _ in range(10):
                    one_echo(address)
                served += 10
                wanted = set(range(served - 9, served + 1))
                t.eventually(lambda: wanted <= {int(text.rpartition("=")[2]) for text in texts()}, "the next ten lines", 20)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        name = r"edge\.example" if is_udp else r"\S+"
        odd = [text for text in texts()
               if not re.fullmatch(rf"local2\.notice {name} lb {daemon.pid} +connection=\d+", text)]
        check(not odd, f"odd lines: {odd}")
        daemon.stop()
