"""bandwidth: how fast bytes may come and go, of one connection and of a listener, whichever way they take inside."""

import contextlib
import socket
import threading
import time

from support import net
from support.case import check, check_equal, test
from support.watch import Watch
from test_proxy import proxy

KIB = 1024
MIB = 1024 * 1024


def rate_is(t, moved, times, wanted, kept=0):
    """Bytes that moved in these times of a watch, of which the reader may have had some before: at the wanted rate."""
    clock, ran = times
    burst = wanted / 10
    print(f"{moved} bytes in {clock:.2f} s ({ran:.2f}): {moved / clock / wanted:.3f} of the bandwidth")
    check(moved <= 1.05 * wanted * clock + burst + kept, f"{moved} bytes in {clock:.2f} s: too fast")
    check(ran <= 1.5 * t.scale * moved / wanted + 0.5, f"{moved} bytes in {ran:.2f} s: too slow")


def timed(watch, receive, s, total):
    """What it receives, and the times of the watch then."""
    return receive(s, total), watch.times()


@test(timeout=60, each={"splice": ["on", "off", "auto"], "way": ["in", "out"]}, plain_only=True)
def one_connection(t, splice, way):
    """a proxy with splice = {splice} and bandwidth_{way} = 1m takes 3 MiB in about 3 s, all of them, and the other
    direction as fast as it can"""
    front, back = t.address(), t.address()
    options = f"bandwidth_{way} = 1m\nsplice = {splice}"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)) as daemon:
        with net.proxied(front, listener) as (client, server):
            source, sink = (client, server) if way == "in" else (server, client)
            used = daemon.cpu_s()
            watch = Watch()
            sender = net.Task(net.send_pattern, source, 3 * MIB)
            digest, times = timed(watch, net.receive_sha256, sink, 3 * MIB)
            rate_is(t, 3 * MIB, times, MIB)
            check_equal(digest, net.pattern_sha256(3 * MIB), "the bytes")
            check(daemon.cpu_s() - used < 0.3 * times[0], "throttling costs processor time")
            sender.result()
            check_equal(sink.recv(1), b"", "what follows the last byte")
            watch = Watch()
            sender = net.Task(net.send_pattern, sink, 16 * MIB)
            digest, times = timed(watch, net.receive_sha256, source, 16 * MIB)
            check(times[1] < 8 * t.scale, f"16 MiB the other way took {times[1]:.1f} s")
            check_equal(digest, net.pattern_sha256(16 * MIB), "the bytes the other way")
            sender.result()


@test(timeout=60, each={"way": ["in", "out"]}, plain_only=True)
def one_echo(t, way):
    """an echo with bandwidth_{way} = 1m sends 3 MiB back in about 3 s"""
    address = t.address()
    config = f"[listen echo]\naddress = {address}\nservice = echo\nbandwidth_{way} = 1m\n"
    with t.daemon(config), net.connect(address) as client:
        watch = Watch()
        sender = net.Task(net.send_pattern, client, 3 * MIB)
        digest, times = timed(watch, net.receive_sha256, client, 3 * MIB)
        rate_is(t, 3 * MIB, times, MIB)
        check_equal(digest, net.pattern_sha256(3 * MIB), "the bytes")
        sender.result()
        check_equal(client.recv(1), b"", "what follows the last byte")


@test(timeout=60, each={"option": ["bandwidth_in", "listener_bandwidth_in"]}, plain_only=True)
def a_few_bytes(t, option):
    """{option} = 200: a message of 600 bytes, larger than a burst and sent at once, arrives whole, in about 3 s"""
    front, back, message = t.address(), t.address(), bytes(i % 251 for i in range(600))
    with net.listen(back) as listener, t.daemon(proxy(front, back, f"{option} = 200")):
        with net.proxied(front, listener) as (client, server):
            watch = Watch()
            client.sendall(message)
            got, times = timed(watch, net.read_exactly, server, len(message))
            rate_is(t, len(message), times, 200)
            check_equal(got, message, "what the server gets")


@test(timeout=60)
def each_its_own(t):
    """three connections with bandwidth_in = 512k have as much each"""
    front, back = t.address(), t.address()
    config = "[worker]\nthreads = 2\n" + proxy(front, back, "bandwidth_in = 512k")
    with net.listen(back) as listener, t.daemon(config), contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(net.proxied(front, listener)) for _ in range(3)]
        watch = Watch()
        senders = [net.Task(net.send_pattern, client, MIB) for client, _ in pairs]
        readers = [net.Task(timed, watch, net.receive_sha256, server, MIB) for _, server in pairs]
        for reader in readers:
            digest, times = reader.result()
            rate_is(t, MIB, times, 512 * KIB)
            check_equal(digest, net.pattern_sha256(MIB), "the bytes")
        for sender in senders:
            sender.result()


@test(timeout=90, plain_only=True)
def shared_fairly(t):
    """six connections on two workers share listener_bandwidth_in = 2m: together they have that,
    and none much less than the others"""
    front, back, seconds = t.address(), t.address(), 3
    config = "[worker]\nthreads = 2\n" + proxy(front, back, "listener_bandwidth_in = 2m")
    stop = threading.Event()

    def send(s):
        with contextlib.suppress(OSError):
            while not stop.is_set():
                s.sendall(bytes(32 * KIB))

    def count(s, until):
        got = 0
        while (left := until - time.monotonic()) > 0:
            s.settimeout(left)
            with contextlib.suppress(TimeoutError, socket.timeout):
                got += len(s.recv(net.CHUNK))
        return got

    with net.listen(back) as listener, t.daemon(config), contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(net.proxied(front, listener)) for _ in range(6)]
        watch, began = Watch(), time.monotonic()
        senders = [net.Task(send, client) for client, _ in pairs]
        readers = [net.Task(count, server, began + seconds) for _, server in pairs]
        got, times = [reader.result() for reader in readers], watch.times()
        stop.set()
        for client, _ in pairs:
            client.shutdown(socket.SHUT_RDWR)
        for sender in senders:
            sender.result()
        print(f"shares: {[round(g / sum(got), 3) for g in got]}")
        rate_is(t, sum(got), times, 2 * MIB)
        check(min(got) * 2 > sum(got) / len(got), f"shares: {got}")


@test(timeout=60)
def slow_reader_too(t):
    """a server that stalls while the bandwidth is used up gets every byte: neither of the two
    reasons to stop reading undoes the other"""
    front, back, total = t.address(), t.address(), 24 * MIB
    options = "bandwidth_in = 8m"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)) as daemon:
        with net.proxied(front, listener) as (client, server):
            began = time.monotonic()
            sender = net.Task(net.send_pattern, client, total)
            stalls = [(i * MIB, 0.2) for i in range(0, 20, 2)]
            idle_rss = daemon.rss_bytes()
            digest = net.receive_sha256(server, total, stalls)
            took = time.monotonic() - began
            check_equal(digest, net.pattern_sha256(total), "the bytes")
            check(took >= 0.9 * (total / (8 * MIB) - 0.1), f"{took:.2f} s: too fast")
            check_equal(server.recv(1), b"", "what follows the last byte")
            check(t.sanitized or daemon.rss_bytes() - idle_rss < 2 * MIB, "memory grows")
            sender.result()


@test(timeout=60, plain_only=True)
def throttled_is_not_idle(t):
    """a connection that waits for its bandwidth longer than idle_timeout goes on"""
    front, back = t.address(), t.address()
    options = "listener_bandwidth_in = 1k\nidle_timeout = 1s\nclient_idle_timeout = 1s"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)):
        with contextlib.ExitStack() as stack:
            pairs = [stack.enter_context(net.proxied(front, listener)) for _ in range(8)]
            for client, _ in pairs:
                client.sendall(bytes(600))
            began = time.monotonic()
            for _, server in pairs:
                check_equal(net.read_exactly(server, 600), bytes(600), "what the server gets")
            check(time.monotonic() - began > 3, "it was not held up")


@test(timeout=60)
def drained_while_throttled(t):
    """a drain lets an echo under a bandwidth send back all that it got before it ends"""
    address, total = t.address(), 256 * KIB
    config = f"[listen echo]\naddress = {address}\nservice = echo\nbandwidth_in = 64k\n"
    with t.daemon(config) as daemon, net.connect(address) as client:
        client.sendall(bytes(total))
        net.read_exactly(client, 1024)
        daemon.send_signal(15)
        check_equal(len(net.read_to_end(client)), total - 1024, "bytes of the echo")
        check_equal(daemon.wait(), 0, "the exit code")
