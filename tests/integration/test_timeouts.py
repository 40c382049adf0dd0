"""timeouts: what ends a session on which nothing moves, and what does not."""

import socket
import time

from support import net
from support.case import check, check_equal, test
from support.net import Task
from support.watch import Watch
from test_proxy import proxy

SLOW_BYTES = 300_000  # the kernel takes that much from the daemon for a client that reads nothing
HELD_UP_BYTES = 32 * 1024 * 1024  # more than all kernel buffers on the way (tcp_wmem, tcp_rmem)
LINGER_S = 5  # longer than anything else here takes


def expect_end(t, s, watch, least, limit):
    """The connection ends by itself, neither before nor long after its time, which the watch has."""
    how = net.ending(s)
    watch.expect(least, limit * t.scale, f"it ended by {how}")


def echo(address, options):
    return f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n"


@test()
def idle_echo(t):
    """an echo client that says nothing is closed after idle_timeout, and its descriptor with it"""
    address = t.address()
    with t.daemon(echo(address, "idle_timeout = 700ms")) as daemon:
        watch = Watch()
        with net.connect(address) as first:
            expect_end(t, first, watch, 0.7, 3)
        before = daemon.fd_count()
        with net.connect(address) as client:
            watch = Watch()
            net.exchange(client, b"hello")
            expect_end(t, client, watch, 0.7, 3)
        t.eventually(lambda: daemon.fd_count() <= before + 4, "the descriptors closed")


@test(plain_only=True)
def busy_echo(t):
    """an echo client that says something every sixth of idle_timeout is not closed"""
    address = t.address()
    with t.daemon(echo(address, "idle_timeout = 3s")), net.connect(address) as client:
        for _ in range(9):
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            time.sleep(0.5)


@test()
def idle_proxy(t):
    """a session on which neither side says anything ends for both after idle_timeout"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, "idle_timeout = 700ms")):
        watch = Watch()
        with net.proxied(front, listener) as (client, server):
            expect_end(t, client, watch, 0.7, 3)
            expect_end(t, server, watch, 0.7, 3)


@test(each={"talker": ["client", "server"]}, plain_only=True)
def one_side_talks(t, talker):
    """a session is not idle as long as the {talker} alone says something"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, "idle_timeout = 3s")):
        with net.proxied(front, listener) as (client, server):
            source, sink = (client, server) if talker == "client" else (server, client)
            for i in range(9):
                source.sendall(b"%d" % i)
                check_equal(net.read_exactly(sink, 1), b"%d" % i, "what the other got")
                time.sleep(0.5)
            sink.sendall(b"x")
            check_equal(net.read_exactly(source, 1), b"x", "what the talker got")


@test(each={"closer": ["client", "server"]})
def half_closed(t, closer):
    """a session whose {closer} has ended its half ends after half_close_timeout"""
    front, back = t.address(), t.address()
    options = "half_close_timeout = 700ms\nidle_timeout = 1h"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)):
        with net.proxied(front, listener) as (client, server):
            closing, other = (client, server) if closer == "client" else (server, client)
            time.sleep(1)  # the timeout is not for a session that is whole
            other.sendall(b"whole")
            check_equal(net.read_exactly(closing, 5), b"whole", "what the closer got")
            watch = Watch()
            closing.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(other), b"", "what the other got")
            expect_end(t, closing, watch, 0.7, 3)


@test(each={"server": ["tcp", "unix"]})
def server_closed(t, server):
    """a {server} server that has closed is free again after server_closed_timeout though its client ignores
    the end; the client gets all bytes and the end before"""
    front, back = t.address(), t.address() if server == "tcp" else t.path("back")
    text = proxy(front, back, "", "server_closed_timeout = 1s")
    with net.listen(back) as listener, t.daemon(text) as daemon:
        with net.proxied(front, listener) as (client, server_end):
            server_end.sendall(b"all of it")
            watch = Watch()
            server_end.close()
            check_equal(net.read_to_end(client), b"all of it", "what the client gets")
            t.eventually(lambda: daemon.counts("server back/only sessions=")["sessions"] == 0, "the server is free")
            watch.expect(1, 20 * t.scale, "it was free")
            check(daemon.counts("server back/only sessions=")["upstream_fin"] == 1, "the reason")


@test()
def server_closed_slow_client(t):
    """a client that takes the bytes of a server that has closed slowly, for longer than server_closed_timeout,
    gets all of them and the end"""
    front, back = t.address(), t.address()
    text = proxy(front, back, "", "server_closed_timeout = 300ms")
    with net.listen(back) as listener, t.daemon(text):
        with net.connect(front, rcvbuf=4096) as client, net.accept(listener) as server:
            sender = Task(send_and_close, server, 2_000_000)
            got = 0
            for _ in range(8):
                time.sleep(0.4)
                got += len(client.recv(4096))
            got += len(net.read_to_end(client))
            sender.result()
            check_equal(got, 2_000_000, "bytes")


def send_and_close(s, count):
    s.sendall(bytes(count))
    s.close()


@test()
def server_half_closed_but_busy(t):
    """a client of a server that has ended its half goes on sending, with pauses below server_closed_timeout: all
    of its bytes arrive"""
    front, back = t.address(), t.address()
    text = proxy(front, back, "", "server_closed_timeout = 3s")
    with net.listen(back) as listener, t.daemon(text):
        with net.proxied(front, listener) as (client, server):
            server.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(client), b"", "what the client gets")
            for i in range(9):
                client.sendall(b"%d" % i)
                check_equal(net.read_exactly(server, 1), b"%d" % i, "what the server gets")
                time.sleep(0.5)


@test(plain_only=True)
def half_closed_but_busy(t):
    """a half-closed session goes on as long as bytes move"""
    front, back = t.address(), t.address()
    options = "half_close_timeout = 3s"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)):
        with net.proxied(front, listener) as (client, server):
            client.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(server), b"", "what the server got")
            for i in range(9):
                server.sendall(b"%d" % i)
                check_equal(net.read_exactly(client, 1), b"%d" % i, "what the client got")
                time.sleep(0.5)


@test(plain_only=True)
def stalled_receiver(t):
    """a session stuck on a receiver that takes nothing counts as idle"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(
            proxy(front, back, "idle_timeout = 1s\nlinger_timeout = 2s")) as daemon:
        with net.proxied(front, listener) as (client, server):
            before = daemon.fd_count()
            server.setblocking(False)
            deadline = time.monotonic() + 20 * t.scale
            while daemon.fd_count() >= before:  # the client reads nothing
                check(time.monotonic() < deadline, "the session still exists")
                try:
                    server.send(bytes(64 * 1024))
                except BlockingIOError:
                    time.sleep(0.05)
                except (BrokenPipeError, ConnectionResetError):
                    time.sleep(0.05)
            del client


@test()
def zero_is_never(t):
    """with idle_timeout = 0 and half_close_timeout = 0 nothing is ended"""
    front, back = t.address(), t.address()
    options = "idle_timeout = 0\nhalf_close_timeout = 0"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)):
        with net.proxied(front, listener) as (client, server):
            client.shutdown(socket.SHUT_WR)
            time.sleep(1.5)
            server.sendall(b"still here")
            check_equal(net.read_exactly(client, 10), b"still here", "what the client got")


@test()
def listeners_differ(t):
    """each listener has its own idle_timeout"""
    short, long = t.address(), t.address()
    config = echo(short, "idle_timeout = 500ms") + echo(long, "").replace("echo]", "other]")
    with t.daemon(config), net.connect(long) as patient:
        watch = Watch()
        with net.connect(short) as hasty:
            expect_end(t, hasty, watch, 0.5, 3)
        check_equal(net.exchange(patient, b"hello"), b"hello", "the echo of the other")


@test(plain_only=True)
def slow_but_steady(t):
    """a client that takes its last bytes slowly but steadily gets all of them after idle_timeout or
    half_close_timeout: it used to be reset 5 s later"""
    address, front, back = t.address(), t.address(), t.address()
    linger = f"linger_timeout = {LINGER_S}s"
    config = (echo(address, f"idle_timeout = 500ms\n{linger}")
              + proxy(front, back, f"half_close_timeout = 500ms\n{linger}"))
    with net.listen(back) as listener, t.daemon(config), \
            net.connect(address, rcvbuf=8192) as idle, net.connect(front, rcvbuf=8192) as half, \
            net.accept(listener) as server:
        net.send_pattern(idle, SLOW_BYTES, finish=False)
        net.send_pattern(server, SLOW_BYTES)
        readers = [Task(net.receive_slowly, s, SLOW_BYTES, LINGER_S + 2) for s in (idle, half)]
        for s, reader in zip((idle, half), readers):
            check_equal(reader.result(), net.pattern_sha256(SLOW_BYTES), "SHA-256")
            check_equal(net.read_to_end(s), b"", "behind the bytes")


@test(each=[{"option": "client_idle_timeout", "silent": "client", "talker": "server"},
            {"option": "idle_timeout", "silent": "server", "talker": "client"}], plain_only=True)
def silent_side(t, option, silent, talker):
    """{option} of its side ends a session whose {silent} says nothing, however much its {talker} says"""
    front, back = t.address(), t.address()
    options = {"client": "", "server": "", silent: f"{option} = 2s"}
    with net.listen(back) as listener, t.daemon(
            proxy(front, back, options["client"], options["server"])):
        watch = Watch()
        with net.proxied(front, listener) as (client, server):
            source, sink = (client, server) if talker == "client" else (server, client)
            for _ in range(3):
                source.sendall(b"x")
                check_equal(net.read_exactly(sink, 1), b"x", "what the other got")
                time.sleep(0.2)
            check_equal(net.read_to_end(sink), b"", "behind that")
            watch.expect(1.95, 4 * t.scale, "it ended")
            check_equal(net.ending(source), "fin", "the end for the talker")


@test()
def both_speak_in_time(t):
    """a session whose sides both say something within their timeouts goes on"""
    front, back = t.address(), t.address()
    config = proxy(front, back, "client_idle_timeout = 3s", "idle_timeout = 3s")
    with net.listen(back) as listener, t.daemon(config):
        with net.proxied(front, listener) as (client, server):
            for _ in range(10):
                client.sendall(b"x")
                check_equal(net.read_exactly(server, 1), b"x", "what the server got")
                server.sendall(b"y")
                check_equal(net.read_exactly(client, 1), b"y", "what the client got")
                time.sleep(0.4)


@test()
def held_up_is_not_silent(t):
    """a client that is not read because the server takes nothing is not one that says nothing"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, "client_idle_timeout = 2s")):
        with net.proxied(front, listener) as (client, server):
            sender = Task(net.send_pattern, client, HELD_UP_BYTES)
            time.sleep(3.5)
            check_equal(net.receive_sha256(server, HELD_UP_BYTES),
                        net.pattern_sha256(HELD_UP_BYTES), "SHA-256")
            sender.result()
            check_equal(net.read_to_end(server), b"", "behind the bytes")


@test()
def busy_handler_is_not_silent(t):
    """a client that is not read because its executor is busy is not one that says nothing"""
    address, total = t.address(), 200_000
    options = "pipeline = executor\nexecutor_delay = 1s\nclient_idle_timeout = 600ms"
    with t.daemon(echo(address, options)), net.connect(address) as client:
        sender = Task(net.send_pattern, client, total)
        check_equal(net.receive_sha256(client, total), net.pattern_sha256(total), "SHA-256")
        sender.result()


@test(each={"service": ["echo", "proxy"]})
def first_byte(t, service):
    """{service}: a client that never says anything is closed after first_byte_timeout, one that has
    said a byte is not; a server's greeting is no word of its client"""
    front, back, address = t.address(), t.address(), t.address()
    options = "first_byte_timeout = 700ms"
    config = echo(address, options) + proxy(front, back, options)
    with net.listen(back) as listener, t.daemon(config):
        if service == "echo":
            watch = Watch()
            with net.connect(address) as speaker:
                net.exchange(speaker, b"x")
                with net.connect(address) as mute:
                    expect_end(t, mute, watch, 0.7, 4)
                time.sleep(0.7)
                check_equal(net.exchange(speaker, b"y"), b"y", "the echo")
            return
        watch = Watch()
        with net.proxied(front, listener) as (speaker, one):
            speaker.sendall(b"x")
            check_equal(net.read_exactly(one, 1), b"x", "what the server got")
            with net.proxied(front, listener) as (mute, other):
                other.sendall(b"220 ready\r\n")
                expect_end(t, mute, watch, 0.7, 4)
                check_equal(net.ending(other), "fin", "the end for its server")
            time.sleep(0.7)
            one.sendall(b"y")
            check_equal(net.read_exactly(speaker, 1), b"y", "what the speaker got")


@test()
def lifetime_of_the_busy(t):
    """max_lifetime ends a session however busy it is; all that came from the server until then
    arrives"""
    front, back = t.address(), t.address()
    # A stream that was silent for a second by then is not cut, also on a busy machine.
    options = "max_lifetime = 4s\nlifetime_jitter = 0"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)):
        watch = Watch()
        with net.proxied(front, listener) as (client, server):
            for i in range(8):
                server.sendall(b"%d" % i)
                time.sleep(0.1)
            check_equal(net.read_to_end(client), b"01234567", "what the client got")
            watch.expect(3.95, 6 * t.scale, "it ended")


@test(plain_only=True)
def lifetimes_spread(t):
    """40 connections that came together end one by one in the last lifetime_jitter percent of
    max_lifetime"""
    address = t.address()
    with t.daemon(echo(address, "max_lifetime = 3s\nlifetime_jitter = 50%")):
        began, watch = time.monotonic(), Watch()
        clients = [net.connect(address) for _ in range(40)]
        tasks = [Task(_ended_at, client) for client in clients]
        times = sorted(task.result() - began for task in tasks)
        for client in clients:
            client.close()
    check(times[0] >= 1.4, f"the first ended after {times[0]:.2f} s")
    watch.expect(0, 5 * t.scale, "the last ended")
    check(times[-1] - times[0] > 0.75, f"all ended within {times[-1] - times[0]:.2f} s")


def _ended_at(client):
    net.ending(client)
    return time.monotonic()
