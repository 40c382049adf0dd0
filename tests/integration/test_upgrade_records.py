"""upgrade_records: what a new process does with the sessions that another one sends it: good ones and bad ones."""

import array
import contextlib
import os
import socket
import struct
import subprocess
import time

from support import net
from support.admin import get
from support.case import Skipped, check, check_equal, is_root, test

WANT, SESSION, TAKEN, REFUSED, OVER = range(1, 6)
NAME, CHANGED, SCARCE, RECORD = 9, 10, 11, 12  # enum session_stay
HEAD = struct.Struct("=IIQ")
INLINE = 32 * 1024


def text(word):
    return struct.pack("=Q", len(word) + 1) + word.encode() + b"\0"


def address(port):
    raw = struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton("127.0.0.1") + bytes(8)
    return struct.pack("=IQ", 0, len(raw)) + raw


def leg(unsent=b"", read_ended=0, piped=0):
    counts = struct.pack("=QQqQqqqq", 0, 0, time.monotonic_ns(), 0, time.monotonic_ns(), 0, 0, 0)
    return counts + bytes((read_ended, 0, 0, 0)) + struct.pack("=QQ", piped, len(unsent)) + unsent


def handler(name, values=(), part=b""):
    return text(name) + struct.pack("=6q", *values, *[0] * (6 - len(values))) + struct.pack("=Q", len(part)) + part


def record(listener="echo", upstream="", server="", version=2, unsent=b"", handlers=(),
           expires_ns=(1 << 63) - 1, piped=0):
    """A session as handover/session_record writes it."""
    now = time.monotonic_ns()
    body = text(listener) + text(upstream) + text(server) + address(7) + struct.pack("=IQ", 0, 0)
    body += struct.pack("=QQ", 1, 2) + bytes(64)                      # id, numbers
    body += struct.pack("=5q", now, now, expires_ns, now, now)     # instants
    body += bytes(16) + struct.pack("=5I", 0, *[(1 << 32) - 1] * 3, 0) + bytes(4) + bytes([len(handlers)])
    body += leg(unsent, piped=piped) + leg() + b"".join(handlers)
    return b"RSES" + struct.pack("=IQ", version, 16 + len(body)) + body


def memory_file(content):
    file = os.fdopen(os.memfd_create("state"), "wb", buffering=0)
    file.write(content)
    return file


class Old:
    """An old process, played by the test, and reactord as the new one."""

    def __init__(self, t, config, nofile=4096):
        self.t, self.number = t, 0
        self.path = t.write("new.ini", "[reactord]\nupgrade_sessions = yes\ndrain_timeout = 0\n" + config)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(10 * t.scale)
        with theirs, open(t.path("new.log"), "wb") as log, memory_file(b"") as state:
            # It finds the socket and our state as descriptors 3 and 4, as systemd passes them.
            self.new = subprocess.Popen(
                ["sh", "-c", f"ulimit -n {nofile}; exec 3<&{theirs.fileno()} 4<&{state.fileno()}; LISTEN_PID=$$ "
                 f"LISTEN_FDS=2 LISTEN_FDNAMES=reactord-upgrade:reactord-state exec {t.options.reactord} -c {self.path}"],
                stderr=log, stdout=log, pass_fds=[theirs.fileno(), state.fileno()])

    def __enter__(self):
        self.wait("ready")
        self.control.send(b"go")
        self.wait("taken")
        self.control.send(b"main")
        return self

    def __exit__(self, *_):
        self.control.close()
        self.new.kill()
        self.new.wait()

    def wait(self, word):
        while not (got := self.control.recv(4096)).startswith(word.encode()):
            check(got, f"the new process has ended before {word}")

    def offer(self, ends=None):
        ours, theirs = ends or socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self.control, [b"sessions"], [theirs.fileno()])
        ours.settimeout(10 * self.t.scale)
        return ours

    def wanted(self):
        self.sessions = self.offer()
        check_equal(HEAD.unpack(self.sessions.recv(INLINE))[0], WANT, "the first message")

    def give(self, data, fds):
        """The answer: (TAKEN or REFUSED, why)."""
        self.number += 1
        self.sessions.sendmsg([HEAD.pack(SESSION, 0, self.number) + data],
                              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
        kind, why, number = HEAD.unpack(self.sessions.recv(INLINE))
        check_equal(number, self.number, "whose answer it is")
        return kind, why


@contextlib.contextmanager
def connection(t):
    """A client, and the end that the old process has."""
    with net.listen(t.address()) as listener, net.connect("%s:%d" % listener.getsockname()) as client:
        with net.accept(listener) as ours:
            yield client, ours


ECHO = "[listen echo]\naddress = {0}\nservice = echo\n"


@test()
def a_good_record_is_taken(t):
    """a session that is sent is served, with its unsent bytes before others, also from a memory file"""
    with Old(t, ECHO.format(t.address())) as old:
        old.wanted()
        for size in (0, 5, 100_000):
            unsent = bytes(i % 251 for i in range(size))
            with connection(t) as (client, ours):
                fds, data = [ours.fileno()], record(unsent=unsent)
                if len(data) > INLINE:
                    file = os.memfd_create("record")
                    os.write(file, data)
                    fds, data = [*fds, file], b""
                check_equal(old.give(data, fds), (TAKEN, 0), f"the answer with {size} bytes")
                ours.close()
                client.sendall(b"hello")
                check_equal(net.read_exactly(client, size + 5), unsent + b"hello", "what the client got")


@test()
def bad_records_are_refused(t):
    """a record that is cut, too long, of another version, or whose descriptors are wrong is refused, untouched"""
    good = record()
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(Old(t, ECHO.format(t.address())))
        old.wanted()
        client, ours = stack.enter_context(connection(t))
        listens = stack.enter_context(net.listen(t.address()))
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        reader, writer = os.pipe()
        own = [ours.fileno()]
        for what, data, fds, why in (
                ("nothing", b"", [], RECORD),
                ("a record cut short", good[:-1], own, RECORD),
                ("a cut head", good[:9], own, RECORD),
                ("a byte too many", good + b"x", own, RECORD),
                ("another version", record(version=3), own, RECORD),
                ("an older version", record(version=1), own, RECORD),
                ("no record", b"x" * len(good), own, RECORD),
                ("no descriptor", good, [], RECORD),
                ("a descriptor too many", good, own * 2, RECORD),
                ("far too many", good, own * 9, None),
                ("a pipe", good, [reader], RECORD),
                ("a socket that listens", good, [listens.fileno()], RECORD),
                ("datagrams", good, [datagrams.fileno()], RECORD),
                ("an empty file", b"", [*own, os.memfd_create("empty")], RECORD),
                ("an unknown listener", record(listener="other"), own, NAME),
                ("a handler that is none here", record(handlers=[handler("log")]), own, CHANGED),
                ("nine handlers", record(handlers=[handler("log")] * 9), own, RECORD),
                ("a server, of an echo", record(upstream="u", server="s"), own * 2, CHANGED)):
            kind, got = old.give(data, fds)
            check_equal(kind, REFUSED, f"the answer to {what}")
            check(why is None or got == why, f"{what}: refused for {got}, not {why}")
        client.sendall(b"still")
        check_equal(net.read_exactly(ours, 5), b"still", "what the old process reads")
        check_equal(old.give(good, own), (TAKEN, 0), "the answer to a good one, after all")
        os.close(reader)
        os.close(writer)


def tell(old, word, line):
    with memory_file(line) as file:
        socket.send_fds(old.control, [word], [file.fileno()])


@test(each=[{"has_report": True}, {"has_report": False}])
def the_last_report(t, has_report):
    """a process that has drained: its last report counts, or, when it is lost (with it: {has_report}), what it had open
    ends in errors"""
    admin = t.path("admin.sock")

    def echo():
        row, = get(admin, "/v1/listeners").json["listeners"]
        return row["sessions"], row["sessions_total"], row["ended"]["client_fin"], row["ended"]["error"]

    with Old(t, ECHO.format(t.address()) + f"[admin]\naddress = {admin}\n") as old:
        tell(old, b"state", b"listen echo client_fin=1 sessions_total=3\n")
        t.eventually(lambda: echo() == (2, 3, 1, 0), f"two are open: {echo()}")
        if has_report:
            tell(old, b"end", b"listen echo client_fin=3 sessions_total=3\n")
        else:
            old.control.send(b"end")
        old.control.close()
        wanted = (0, 3, 3, 0) if has_report else (0, 3, 1, 2)
        t.eventually(lambda: echo() == wanted, f"all have ended: {wanted}")


@test()
def a_server_that_left(t):
    """a process that has drained: what its last report does not have, as the server had left its upstream, has ended"""
    admin, a = t.path("admin.sock"), t.address()

    def rows():
        up, = get(admin, "/v1/upstreams").json["upstreams"]
        return [(row["sessions"], row["sessions_total"], row["ended"]["client_fin"], row["ended"]["error"])
                for row in [up, *up["servers"]]]

    with Old(t, f"[listen front]\naddress = {t.address()}\nservice = proxy\nupstream = back\n"
             f"[upstream back]\nserver.a = {a}\n[admin]\naddress = {admin}\n") as old:
        tell(old, b"state", b"upstream back sessions_total=2\nserver back/a down=no client_fin=1 sessions_total=2\n")
        t.eventually(lambda: rows() == [(2, 2, 0, 0), (1, 2, 1, 0)], f"a session is open: {rows()}")
        tell(old, b"end", b"upstream back client_fin=2 sessions_total=2\n")
        old.control.close()
        t.eventually(lambda: rows() == [(0, 2, 2, 0), (0, 2, 1, 1)], f"all have ended: {rows()}")


@test()
def handlers_of_a_record(t):
    """the handlers of a record must be those of the listener, and what they know must be possible"""
    options = "pipeline = log, idle\nidle_read = 1h\nidle_action = close\n"
    now, soon = time.monotonic_ns(), time.monotonic_ns() + 3600 * 10 ** 9
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(Old(t, ECHO.format(t.address()) + options))
        old.wanted()
        client, ours = stack.enter_context(connection(t))
        for what, handlers, why in (
                ("none", [], CHANGED),
                ("one too few", [handler("log")], CHANGED),
                ("the wrong order", [handler("idle"), handler("log")], CHANGED),
                ("one too many", [handler("log"), handler("idle"), handler("log")], CHANGED),
                ("an instant that was not yet", [handler("log"), handler("idle", [soon, now])], RECORD),
                ("an impossible instant", [handler("log"), handler("idle", [now, now, 0, 0, -1])], RECORD),
                ("bytes that no handler holds", [handler("log"), handler("idle", [now, now], b"x")], RECORD)):
            check_equal(old.give(record(handlers=handlers), [ours.fileno()]), (REFUSED, why), what)
        client.sendall(b"still")
        check_equal(net.read_exactly(ours, 5), b"still", "what the old process reads")
        good = record(handlers=[handler("log"), handler("idle", [now, now])])
        check_equal(old.give(good, [ours.fileno()]), (TAKEN, 0), "the answer to a good one")
        ours.close()
        net.exchange(client, b"hello")


@contextlib.contextmanager
def filled_pipe(data):
    reader, writer = os.pipe2(os.O_NONBLOCK)
    os.write(writer, data)
    try:
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


@test()
def filled_pipes_of_a_record(t):
    """bytes in a pipe that goes along come before the unsent ones; a pipe that is not as the record says is refused"""
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(Old(t, ECHO.format(t.address())))
        old.wanted()
        client, ours = stack.enter_context(connection(t))
        reader, writer = stack.enter_context(filled_pipe(b"piped"))
        other, _ = stack.enter_context(filled_pipe(b"other"))
        blocking = os.pipe()
        os.write(blocking[1], b"piped")
        good = record(piped=5, unsent=b"unsent")
        for what, data, fds in (("no pipe", good, []), ("one end", good, [reader]), ("the ends swapped", good, [writer, reader]),
                                ("ends of two pipes", good, [other, writer]), ("no pipes", good, [ours.fileno()] * 2),
                                ("one that blocks", good, blocking), ("two pipes", good, [reader, writer] * 2),
                                ("bytes missing", record(piped=6), [reader, writer]),
                                ("bytes too many", record(piped=4), [reader, writer]),
                                ("bytes for no pipe", record(), [reader, writer])):
            check_equal(old.give(data, [ours.fileno(), *fds]), (REFUSED, RECORD), what)
        for fd in blocking:
            os.close(fd)
        check_equal(old.give(good, [ours.fileno(), reader, writer]), (TAKEN, 0), "the answer to a good one")
        ours.close()
        client.sendall(b"hello")
        check_equal(net.read_exactly(client, 16), b"pipedunsenthello", "what the client got")


@test()
def a_pipe_that_is_emptied_meanwhile(t):
    """when the other process takes bytes out of a pipe that it has handed over, that session is reset, and no other"""
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(Old(t, ECHO.format(t.address())))
        old.wanted()
        client, ours = stack.enter_context(connection(t))
        other, others = stack.enter_context(connection(t))
        reader, writer = stack.enter_context(filled_pipe(b"piped"))
        net.fill(ours)
        check_equal(old.give(record(piped=5), [ours.fileno(), reader, writer]), (TAKEN, 0), "the answer")
        os.read(reader, 5)
        ours.close()
        check_equal(net.ending(client), "reset", "its end")
        check_equal(old.give(record(), [others.fileno()]), (TAKEN, 0), "the answer for another")
        others.close()
        net.exchange(other, b"hello")


@test()
def no_descriptors_are_left(t):
    """a new process that has no descriptors left refuses sessions, and serves those that it has"""
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(Old(t, ECHO.format(t.address()) + "[worker]\nthreads = 1\n", nofile=60))
        old.wanted()
        taken, refused = [], 0
        for _ in range(60):
            client, ours = stack.enter_context(connection(t))
            kind, why = old.give(record(), [ours.fileno()])
            if kind == TAKEN:
                taken.append(client)
                ours.close()
            else:
                check_equal(why, SCARCE, "why it is refused")
                client.sendall(b"still")
                check_equal(net.read_exactly(ours, 5), b"still", "what the old process reads")
                refused += 1
        check(taken and refused, f"{len(taken)} were taken, {refused} refused")
        for client in taken:
            net.exchange(client, b"hello")


@test()
def of_another_user(t):
    """sessions of another user's process are not taken"""
    if not is_root():
        raise Skipped("only root can be another user")
    with Old(t, ECHO.format(t.address())) as old:
        os.seteuid(65534)
        try:
            ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        finally:
            os.seteuid(0)
        with old.offer(ends) as ours:
            check_equal(ours.recv(INLINE), b"", "the first message")


@test()
def sessions_outlive_the_old_process(t):
    """what was sent is served, though the old process ends before the answer"""
    with Old(t, ECHO.format(t.address())) as old, connection(t) as (client, ours):
        old.wanted()
        old.sessions.sendmsg([HEAD.pack(SESSION, 0, 1) + record()],
                             [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [ours.fileno()]))])
        old.sessions.close()
        ours.close()
        net.exchange(client, b"hello")
