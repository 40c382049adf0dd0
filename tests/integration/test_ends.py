"""ends: whatever the way a connection ends, bytes that were taken are delivered, and what is cut is
seen as cut."""

import contextlib
import re
import select
import socket
import time

from support import net
from support.case import check, check_equal, test
from support.net import Task
from support.watch import Watch
from test_proxy import proxy

LONG_BYTES = 1_500_000
SHORT_BYTES = 150_000  # all of it, and the end of file, is on its way at once
READ_BYTES = 60_000  # no more than reactord keeps before it reads no further
PAUSE_S = 2.5  # long enough for what is looked at once a second


def hear_all(s):
    """How many bytes come, and how it ends: "fin" or "reset"."""
    got = 0
    try:
        while part := s.recv(net.CHUNK):
            got += len(part)
        return got, "fin"
    except (ConnectionResetError, BrokenPipeError):
        return got, "reset"


def refuse(s):
    """Close with what was sent on its way: whatever comes now is answered with a reset."""
    s.close()


def settle(s):
    """Wait until the other side's kernel has everything that was sent."""
    until = time.monotonic() + net.LIMIT_S
    while net.unacknowledged(s):
        check(time.monotonic() < until, "not all bytes were acknowledged")
        time.sleep(0.02)


@test(each={"total": [LONG_BYTES, SHORT_BYTES]}, timeout=60)
def refused_behind_its_end(t, total):
    """a client that sent {total} bytes, ended and refuses the server's: the server, which reads
    late, gets all and end of file"""
    front, back = t.address(), t.address()
    with net.listen(back, rcvbuf=4096) as listener, t.daemon(proxy(front, back)):
        with net.proxied(front, listener) as (client, server):
            sender = Task(net.send_pattern, client, total)
            sender.result()
            settle(client)
            refuse(client)
            server.sendall(b"answer")
            time.sleep(PAUSE_S)
            check_equal(hear_all(server), (total, "fin"), "what the server got")


@test(timeout=60)
def refused_before_the_other_end(t):
    """a server that refuses bytes while its end of file is on its way: what it sent arrives"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.connect(front, rcvbuf=4096) as client, net.accept(listener) as server:
            net.send_pattern(server, SHORT_BYTES)
            settle(server)
            refuse(server)
            client.sendall(b"in vain")
            client.shutdown(socket.SHUT_WR)
            time.sleep(PAUSE_S)
            check_equal(hear_all(client), (SHORT_BYTES, "fin"), "what the client got")


@test(timeout=60)
def answer_of_a_server_that_has_gone(t):
    """a server that ended behind its answer refuses the client's bytes; the client, which ends as
    well and reads late, gets the answer and end of file"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.connect(front, rcvbuf=4096) as client, net.accept(listener) as server:
            net.send_pattern(server, LONG_BYTES)
            settle(server)
            refuse(server)
            client.sendall(b"in vain")
            time.sleep(0.3)
            client.shutdown(socket.SHUT_WR)
            time.sleep(PAUSE_S)
            check_equal(hear_all(client), (LONG_BYTES, "fin"), "what the client got")


@test(timeout=60)
def pause_behind_a_reset(t):
    """a client that pauses 7 s before it reads what came before the server's reset gets all of it,
    and then the reset"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.connect(front, rcvbuf=4096) as client, net.accept(listener) as server:
            net.send_pattern(server, LONG_BYTES, finish=False)
            settle(server)
            net.reset(server)
            time.sleep(7)
            check_equal(hear_all(client), (LONG_BYTES, "reset"), "what the client got")


@test(timeout=90)
def no_end_of_patience(t):
    """a client that reads a little again and again is reset linger_max after max_lifetime"""
    front, back = t.address(), t.address()
    options = "max_lifetime = 1s\nlifetime_jitter = 0\nlinger_max = 3s"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)) as daemon:
        watch = Watch()
        with net.connect(front, rcvbuf=4096) as client, net.accept(listener) as server:
            net.fill(server, net.OR_CUT)
            while daemon.counts("listen front sessions=")["sessions"] > 0:
                watch.expect(0, 20 * t.scale, "the session still exists")
                check(client.recv(600), "it ended early")
                time.sleep(0.1)
            watch.expect(4, 20 * t.scale, "it ended")
            check_equal(net.ending(client), "reset", "the end for the client")


@test(timeout=60)
def linger_timeout(t):
    """a client that takes nothing is reset linger_timeout after the server's reset"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(
            proxy(front, back, "linger_timeout = 1s")) as daemon:
        with net.connect(front, rcvbuf=4096) as client, net.accept(listener) as server:
            net.send_pattern(server, READ_BYTES, finish=False)
            settle(server)
            net.reset(server)
            t.eventually(lambda: daemon.counts("listen front sessions=")["sessions"] == 0, "the session ended")
            check_equal(net.ending(client), "reset", "the end for the client")


def keep_sending(s):
    """Send until it is refused; some bytes are always on their way, however busy the machine is."""
    s.settimeout(0.3)
    try:
        while True:
            with contextlib.suppress(TimeoutError):
                s.send(b"x" * 1000)
    except OSError:
        return


def talk(s):
    """Send and hear until the end, as hear_all(). On one thread: a reset is told to one call only."""
    s.setblocking(False)
    got = 0
    try:
        while True:
            select.select([s], [s], [], net.LIMIT_S)
            try:
                part = s.recv(net.CHUNK)
                if not part:
                    return got, "fin"
                got += len(part)
            except BlockingIOError:
                with contextlib.suppress(BlockingIOError):
                    s.send(b"x" * 1000)
    except (ConnectionResetError, BrokenPipeError):
        return got, "reset"


CUT_S = 3
CUTS = [("upload", f"max_lifetime = {CUT_S}s\nlifetime_jitter = 0", ""),
        ("download", f"max_lifetime = {CUT_S}s\nlifetime_jitter = 0", ""),
        ("download", f"client_idle_timeout = {CUT_S}s", ""),
        ("upload", "", f"idle_timeout = {CUT_S}s"),
        ("upload", f"idle_write = {CUT_S}s\npipeline = idle", ""),
        ("download", f"idle_read = {CUT_S}s\npipeline = idle", "")]


@test(each=[{"way": way, "option": option.split(" =")[0] or "upstream", "front": front,
             "back": back} for way, front, back in CUTS for option in [front or back]], timeout=60)
def timeout_in_a_stream(t, way, option, front, back):
    """a stream ({way}) that {option} cuts ends in a reset for its receiver"""
    del option
    one, other = t.address(), t.address()
    with net.listen(other, rcvbuf=4096) as listener, t.daemon(proxy(one, other, front, back)):
        with net.connect(one, rcvbuf=4096) as client, net.accept(listener) as server:
            source, sink = (client, server) if way == "upload" else (server, client)
            # A sender that a busy machine does not run for a while has bytes on their way, too.
            net.fill(source)
            sender = Task(keep_sending, source)
            time.sleep(CUT_S)
            got, how = hear_all(sink)
            check(got > 0, "nothing came")
            check_equal(how, "reset", "the end for the receiver")
            sender.result()


@test(timeout=60)
def timeout_of_a_stalled_upload(t):
    """an upload whose server stalls until idle_timeout ends in a reset behind all that was taken"""
    front, back = t.address(), t.address()
    with net.listen(back, rcvbuf=4096) as listener, t.daemon(
            proxy(front, back, "idle_timeout = 1s")):
        with net.proxied(front, listener) as (client, server):
            net.fill(client, net.OR_CUT)
            time.sleep(PAUSE_S)
            got, how = hear_all(server)
            check(got > 64 * 1024, f"only {got} bytes came")
            check_equal(how, "reset", "the end for the server")


@test(timeout=60)
def timeout_in_an_echo(t):
    """an echo that max_lifetime cuts ends in a reset behind what came back"""
    address = t.address()
    config = f"[listen echo]\naddress = {address}\nservice = echo\n" \
             "max_lifetime = 4s\nlifetime_jitter = 0\n"
    with t.daemon(config), net.connect(address) as client:
        got, how = talk(client)
        check(got > 0, "nothing came")
        check_equal(how, "reset", "the end")


@test(each={"option": ["max_lifetime = 4s\nlifetime_jitter = 0", "idle_timeout = 4s"]}, timeout=60)
def timeout_of_the_quiet(t, option):
    """a quiet connection that {option} ends, ends in order both ways"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, option)):
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"question")
            check_equal(net.read_exactly(server, 8), b"question", "what the server got")
            server.sendall(b"answer")
            check_equal(net.read_exactly(client, 6), b"answer", "what the client got")
            check_equal(net.ending(client), "fin", "the end for the client")
            check_equal(net.ending(server), "fin", "the end for the server")


@test(each={"cut": ["max_lifetime", "idle_timeout", "reset", "nothing"]}, timeout=60)
def mirror_of_a_cut_stream(t, cut):
    """the mirror of a stream that {cut} cuts ends as its stream did, and that is counted"""
    front, back, copy = t.address(), t.address(), t.address()
    options = {"max_lifetime": "max_lifetime = 1s\nlifetime_jitter = 0\n",
               "idle_timeout": "idle_timeout = 1s\n"}.get(cut, "")
    config = f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n" \
             f"mirror = copy\n{options}mirror_buffer = 64m\n[upstream back]\nserver.a = {back}\n" \
             f"[upstream copy]\nserver.a = {copy}\n"
    with net.listen(back, rcvbuf=4096) as listener, net.listen(copy) as mirrors, \
            t.daemon(config) as daemon:
        with net.proxied(front, listener) as (client, server), net.accept(mirrors) as mirror:
            heard = Task(hear_all, mirror)
            if cut == "idle_timeout":
                net.fill(client, net.OR_CUT)
            elif cut == "nothing":
                client.sendall(b"x" * 1000)
                client.close()
            else:
                sender = Task(keep_sending, client)
                time.sleep(0.3)
            if cut == "reset":
                net.reset(server)
            got, how = heard.result()
            check(got > 0, "nothing came")
            check_equal(how, "fin" if cut == "nothing" else "reset", "the end for the mirror")
            if cut in ("max_lifetime", "reset"):
                client.close()
                sender.result()

        def counted():
            line, = daemon.statistics("listen front mirrors=")
            return re.search(f"mirrors_cut={int(cut != 'nothing')}$", line)
        t.eventually(counted, "the mirror was counted as cut, or not")
