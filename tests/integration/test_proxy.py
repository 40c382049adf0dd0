"""proxy: bytes, ends and aborts cross from one side to the other, each as what it is."""

import os
import random
import socket
import struct
import time

from support import net, program
from support.case import check, check_equal, test
from support.net import Task

MIB = 1024 * 1024


def proxy(front, back, options="", upstream_options=""):
    """The configuration of a proxy between two addresses."""
    return (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n{options}\n"
            f"[upstream back]\nserver.only = {back}\n{upstream_options}\n")


@test()
def both_ways(t):
    """bytes go both ways between client and server"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.proxied(front, listener) as (client, server):
            for turn in range(5):
                client.sendall(b"ask %d" % turn)
                check_equal(net.read_exactly(server, 5), b"ask %d" % turn, "what the server got")
                server.sendall(b"answer %d" % turn)
                check_equal(net.read_exactly(client, 8), b"answer %d" % turn, "what the client got")


@test()
def server_speaks_first(t):
    """a server that speaks first is heard by a client that says nothing"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.proxied(front, listener) as (client, server):
            server.sendall(b"220 ready\r\n")
            check_equal(net.read_exactly(client, 11), b"220 ready\r\n", "the greeting")


@test()
def early_bytes(t):
    """what a client sends before the server is connected arrives, its FIN too"""
    front, back = t.address(), t.address()
    message = random.randbytes(MIB)
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.connect(front) as client:
            sender = Task(client.sendall, message)
            time.sleep(0.2)
            with net.accept(listener) as server:
                check(net.read_exactly(server, MIB) == message, "the bytes changed")
                sender.result()
                client.shutdown(socket.SHUT_WR)
                check_equal(net.read_to_end(server), b"", "behind the message")


@test()
def client_ends_first(t):
    """a client's FIN reaches the server, whose long answer still reaches the client"""
    front, back = t.address(), t.address()
    answer = random.randbytes(MIB)
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"request")
            client.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(server), b"request", "what the server got")
            time.sleep(0.2)
            sender = Task(server.sendall, answer)
            check(net.read_exactly(client, MIB) == answer, "the answer changed")
            sender.result()
            server.close()
            check_equal(net.read_to_end(client), b"", "behind the answer")


@test()
def server_ends_first(t):
    """a server's FIN reaches the client, whose bytes still reach the server"""
    front, back = t.address(), t.address()
    message = random.randbytes(MIB)
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.proxied(front, listener) as (client, server):
            server.sendall(b"greeting")
            server.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(client), b"greeting", "what the client got")
            time.sleep(0.2)
            sender = Task(client.sendall, message)
            check(net.read_exactly(server, MIB) == message, "the message changed")
            sender.result()
            client.close()
            check_equal(net.read_to_end(server), b"", "behind the message")


@test()
def both_end_at_once(t):
    """200 sessions whose two sides end at the same moment are gone afterwards"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)) as daemon:
        before = None
        for i in range(200):
            with net.proxied(front, listener) as (client, server):
                client.sendall(b"x")
                server.sendall(b"y")
                client.shutdown(socket.SHUT_WR)
                server.shutdown(socket.SHUT_WR)
                check_equal((net.read_to_end(client), net.read_to_end(server)), (b"y", b"x"),
                            "what the two got")
            if i == 20:
                before = daemon.fd_count()
        t.eventually(lambda: daemon.fd_count() <= before, "the descriptors of ended sessions")


@test(each={"splice": ["off", "on", "auto"], "bulk": [0, 8 * MIB]})
def client_aborts(t, splice, bulk):
    """a client's RST reaches the server as RST (splice {splice}, after {bulk} bytes)"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, f"splice = {splice}")):
        with net.proxied(front, listener) as (client, server):
            sender = Task(net.send_pattern, client, bulk + 1, (net.CHUNK,), False)
            net.receive_sha256(server, bulk + 1)
            sender.result()
            net.reset(client)
            check_equal(net.ending(server), "reset", "the server's end")


@test(each={"splice": ["off", "on", "auto"], "bulk": [0, 8 * MIB]})
def server_aborts(t, splice, bulk):
    """a server's RST reaches the client as RST (splice {splice}, after {bulk} bytes)"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, f"splice = {splice}")):
        with net.proxied(front, listener) as (client, server):
            sender = Task(net.send_pattern, server, bulk + 1, (net.CHUNK,), False)
            net.receive_sha256(client, bulk + 1)
            sender.result()
            net.reset(server)
            check_equal(net.ending(client), "reset", "the client's end")


@test()
def abort_after_half_close(t):
    """a server's RST after the client's FIN reaches the client as RST"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.proxied(front, listener) as (client, server):
            client.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(server), b"", "what the server got")
            net.reset(server)
            check_equal(net.ending(client), "reset", "the client's end")


@test()
def bytes_before_an_abort(t):
    """bytes the server sent well before its RST reach a client that reads"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.proxied(front, listener) as (client, server):
            server.sendall(b"last words")
            check_equal(net.read_exactly(client, 10), b"last words", "what the client got")
            net.reset(server)
            check_equal(net.ending(client), "reset", "the client's end")


@test()
def close_with_unread_bytes(t):
    """a server that closes with unread input still gets its answer through to the client"""
    front, back = t.address(), t.address()
    answer = random.randbytes(100_000)
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"request")
            check_equal(net.read_exactly(server, 7), b"request", "what the server got")
            server.sendall(answer)
            server.shutdown(socket.SHUT_WR)
            check(net.read_exactly(client, len(answer)) == answer, "the answer changed")
            client.sendall(b"too late")
            check_equal(net.read_to_end(client), b"", "behind the answer")


@test(each={"splice": ["off", "on", "auto"]})
def answer_of_a_closed_server(t, splice):
    """the answer of a server that has closed reaches a client that goes on sending, which used to
    lose it (splice {splice})"""
    front, back = t.address(), t.address()
    answer = random.randbytes(200_000)
    with net.listen(back) as listener, t.daemon(proxy(front, back, f"splice = {splice}")):
        for pokes in range(3):
            with net.connect(front, rcvbuf=8192) as client:
                with net.accept(listener) as server:
                    client.sendall(b"request")
                    net.read_exactly(server, 7)
                    server.sendall(answer)
                    # What the proxy's kernel did not have by then would die with the server's.
                    t.eventually(lambda: net.unacknowledged(server) == 0, "the answer sent")
                for _ in range(pokes):
                    client.sendall(b"more")
                    time.sleep(0.1)
                check(net.read_exactly(client, len(answer)) == answer, "the answer changed")
                check_equal(net.read_to_end(client), b"", f"behind the answer ({pokes} times more)")


@test(each={"side": ["client", "server"]})
def abort_behind_its_own_half_close(t, side):
    """the RST of a {side} that had ended its half is passed on within about a second: it used to go
    unnoticed"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)):
        with net.proxied(front, listener) as (client, server):
            one, other = (client, server) if side == "client" else (server, client)
            one.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(other), b"", "what the other got")
            net.reset(one)
            check(net.wait_cut(other, 3 * t.scale), "the other is not reset")


@test()
def unix_server_that_does_not_read(t):
    """a unix server that reads no more (SHUT_RD) still gets its answer through, and the session
    ends after 5 s: it used to hang"""
    front, back = t.address(), t.path("back.sock")
    with net.listen(back) as listener, t.daemon(proxy(front, back)) as daemon:
        with net.proxied(front, listener) as (client, server):
            server.shutdown(socket.SHUT_RD)
            client.sendall(b"request")
            time.sleep(0.2)
            server.sendall(b"go away")
            check_equal(net.read_exactly(client, 7), b"go away", "what the client got")
            used = daemon.cpu_s()
            client.settimeout(8 * t.scale)
            net.ending(client)
            check(net.wait_cut(server, 1 * t.scale), "the server is still connected")
            check(daemon.cpu_s() - used < 0.3 * t.scale, "it burns processor time")


@test()
def unix_client_that_does_not_read(t):
    """a unix echo client that reads no more (SHUT_RD) but sends is let go at once"""
    path = t.path("x.sock")
    with t.daemon(f"[listen echo]\naddress = {path}\nservice = echo\n"), \
            net.connect(path) as client:
        net.exchange(client, b"hello")
        client.shutdown(socket.SHUT_RD)
        client.sendall(b"nobody reads that")
        check(net.wait_cut(client, 1 * t.scale), "the client is still connected")


@test(each=[{"kind": "IPv6"}, {"kind": "unix path"}, {"kind": "abstract"}])
def kinds_of_addresses(t, kind):
    """a client on one kind of address reaches a server on another: IPv4 to {kind} and back"""
    name = f"reactord-{os.getpid()}"
    other = {"IPv6": lambda end: f"[::1]:{t.port()}",
             "unix path": lambda end: t.path(f"{end}.sock"),
             "abstract": lambda end: f"@{name}-{end}"}[kind]
    for front, back in ((t.address(), other("back")), (other("front"), t.address()),
                        (other("front2"), other("back2"))):
        with program.echo_server(t, back), t.daemon(proxy(front, back)):
            with net.connect(front) as client:
                sender = Task(net.send_pattern, client, MIB)
                check_equal(net.receive_sha256(client, MIB), net.pattern_sha256(MIB),
                            f"SHA-256 over {front} to {back}")
                sender.result()
                check_equal(net.read_to_end(client), b"", "behind the echo")


@test(each={"host": ["127.0.0.1", "[::1]"]})
def host_name(t, host):
    """localhost is an IPv4 and an IPv6 address, and a server at {host} alone is reached"""
    front, port = t.address(), t.port()
    with program.echo_server(t, f"{host}:{port}"), \
            t.daemon(proxy(front, f"localhost:{port}")), net.connect(front) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def chain(t):
    """ten proxies in a row, all in one daemon, pass 4 MiB and the end of it"""
    ports = [t.port() for _ in range(10)]
    with program.echo_server(t) as back:
        hops = [f"127.0.0.1:{port}" for port in ports] + [back]
        config = "[worker]\nthreads = 2\n" + "".join(
            f"[listen l{i}]\naddress = {hops[i]}\nservice = proxy\nupstream = u{i}\n"
            f"[upstream u{i}]\nserver.next = {hops[i + 1]}\n" for i in range(10))
        with t.daemon(config), net.connect(hops[0]) as client:
            sender = Task(net.send_pattern, client, 4 * MIB)
            check_equal(net.receive_sha256(client, 4 * MIB), net.pattern_sha256(4 * MIB), "SHA-256")
            sender.result()
            check_equal(net.read_to_end(client), b"", "behind the echo")


@test()
def no_delay(t):
    """two small messages in a row are not held back for an acknowledgement (Nagle)"""
    with program.echo_server(t) as back:
        front = t.address()
        with t.daemon(proxy(front, back)), net.connect(front) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            times = []
            for _ in range(50):
                began = time.monotonic()
                client.sendall(b"a")
                client.sendall(b"b")
                net.read_exactly(client, 2)
                times.append(time.monotonic() - began)
        # A held back packet costs 40 ms each time; a busy machine does not cost that in most turns.
        check(t.sanitized or sorted(times)[25] < 0.03, f"the median took {sorted(times)[25]:.3f} s")


@test()
def client_leaves_while_connecting(t):
    """clients that abort while the server is being connected leave no descriptor"""
    front, back = t.address(), t.address()
    family, where = net.parse(back)
    with socket.socket(family) as full:
        full.bind(where)
        full.listen(0)
        with net.connect(back), t.daemon(proxy(front, back, "", "connect_timeout = 1s")) as daemon:
            before = daemon.fd_count()
            for i in range(40):
                client = net.connect(front)
                if i % 2:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
            t.eventually(lambda: daemon.fd_count() <= before + 20, "the descriptors closed")
