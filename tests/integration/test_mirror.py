"""mirror: a second upstream gets a copy of what clients send, and nobody waits for it."""

import contextlib
import re
import signal
import time

from support import net
from support.case import check, check_equal, test
from support.net import Task

CONFIG = "[listen front]\naddress = {front}\nservice = proxy\nupstream = back\nmirror = copy\n" \
         "mirror_buffer = {buffer}\n[upstream back]\nserver.a = {back}\n[upstream copy]\nserver.a = {copy}\n"


class Mirrored:
    """A daemon between clients, a server and a mirror."""

    def __init__(self, t, stack, buffer):
        self.t = t
        self.front, self.back, self.copy = t.address(), t.address(), t.address()
        self.listener = stack.enter_context(net.listen(self.back))
        self.mirror = stack.enter_context(net.listen(self.copy))
        config = CONFIG.format(front=self.front, back=self.back, copy=self.copy, buffer=buffer)
        self.daemon = stack.enter_context(t.daemon(config))

    def stats(self, pattern):
        """Wait for such a line of SIGRTMIN."""
        def told():
            line, = self.daemon.statistics("listen front mirrors=")
            return re.match(f"listen front mirrors={pattern}", line)
        self.t.eventually(told, f"mirrors={pattern}")


@contextlib.contextmanager
def mirrored(t, buffer="64k"):
    with contextlib.ExitStack() as stack:
        yield Mirrored(t, stack, buffer)


@test(timeout=60)
def copied(t):
    """the mirror gets every byte and the end; what it answers goes nowhere"""
    total = 3_000_000
    with mirrored(t, "16m") as m, net.proxied(m.front, m.listener) as (client, server):
        with net.accept(m.mirror) as mirror:
            mirror.sendall(b"noise")
            copy = Task(net.receive_sha256, mirror, total)
            got = Task(net.receive_sha256, server, total)
            net.send_pattern(client, total, finish=False)
            check_equal(got.result(), net.pattern_sha256(total), "what the server gets")
            check_equal(copy.result(), net.pattern_sha256(total), "the copy")
            server.sendall(b"answer")
            check_equal(net.read_exactly(client, 6), b"answer", "what the client gets")
            client.shutdown(1)
            check_equal(mirror.recv(1), b"", "then the mirror sees the end")
            server.close()
            check_equal(net.ending(client), "fin", "then the client sees")
        m.stats(rf"1 mirror_failures=0 mirrors_abandoned=0 mirror_bytes={total} mirror_bytes_lost=0")


@test()
def unreachable(t):
    """without its mirror a client is served, and that is counted"""
    with mirrored(t) as m:
        m.mirror.close()
        with net.proxied(m.front, m.listener) as (client, server):
            client.sendall(b"hello")
            check_equal(net.read_exactly(server, 5), b"hello", "what the server gets")
            m.stats("0 mirror_failures=1 ")  # a session that has ended waits for no mirror
        m.stats("0 mirror_failures=1 mirrors_abandoned=0 mirror_bytes=0 mirror_bytes_lost=5")


@test(timeout=60)
def too_slow(t):
    """a mirror that reads nothing is reset, and the client is as fast as ever"""
    total = 40_000_000
    with mirrored(t) as m, net.proxied(m.front, m.listener) as (client, server):
        with net.accept(m.mirror) as mirror:
            m.stats("1 ")  # or it may be given up before it is counted as connected
            got = Task(net.receive_sha256, server, total)
            net.send_pattern(client, total)
            check_equal(got.result(), net.pattern_sha256(total), "what the server gets")
            check(net.wait_cut(mirror, 10 * t.scale), "the mirror is not reset")
        server.close()
        client.close()
        m.stats(r"1 mirror_failures=0 mirrors_abandoned=1 mirror_bytes=\d+ mirror_bytes_lost=[1-9]\d*")


@test()
def mirror_ends(t):
    """a mirror that closes its connection, or breaks it, changes nothing for the client"""
    with mirrored(t) as m:
        for how in (lambda s: s.close(), net.reset):
            with net.proxied(m.front, m.listener) as (client, server):
                mirror = net.accept(m.mirror)
                client.sendall(b"one")
                check_equal(net.read_exactly(mirror, 3), b"one", "what the mirror gets")
                how(mirror)
                for _ in range(20):
                    client.sendall(b"more")
                    check_equal(net.read_exactly(server, 7 if _ == 0 else 4)[-4:], b"more", "served")
                    time.sleep(0.01)
        m.stats("2 mirror_failures=0 mirrors_abandoned=2 ")


@test(timeout=60)
def many(t):
    """hundreds of short clients are each mirrored, and every descriptor is closed"""
    with mirrored(t) as m:
        before = m.daemon.fd_count()
        for _ in range(200):
            with net.proxied(m.front, m.listener) as (client, server):
                with net.accept(m.mirror) as mirror:
                    client.sendall(b"x")
                    check_equal(net.read_exactly(mirror, 1), b"x", "what the mirror gets")
                    net.read_exactly(server, 1)
                    if _ % 2:
                        net.reset(client)
                        check_equal(net.ending(mirror), "reset", "a client's reset is mirrored")
        t.eventually(lambda: m.daemon.fd_count() <= before + 8, "the descriptors are closed")
        m.stats("200 mirror_failures=0 mirrors_abandoned=0 mirror_bytes=200 mirror_bytes_lost=0")


@test()
def refused(t):
    """a mirror that does not exist, or is a listener of ours, is refused"""
    front, back, copy = t.address(), t.address(), t.address()
    for config, told in (
            (CONFIG.format(front=front, back=back, copy=front, buffer="64k"), "is one of our listeners"),
            (CONFIG.format(front=front, back=back, copy=copy, buffer="64k").replace("mirror = copy", "mirror = cpy"),
             "[listen front] mirror: there is no [upstream cpy] (did you mean 'copy'?)")):
        done = t.reactord("-t", "-c", t.write("x.ini", config))
        check_equal(done.code, 1, "the exit code")
        check(told in done.err, done.err)


@test()
def stopped(t):
    """a stop with mirrors open leaves nothing behind"""
    with mirrored(t) as m, net.proxied(m.front, m.listener) as (client, _server):
        with net.accept(m.mirror) as mirror:
            client.sendall(b"x")
            net.read_exactly(mirror, 1)
            m.daemon.send_signal(signal.SIGINT)
            m.daemon.wait()
