"""splice: bulk, back-pressure and the switch between copying and splicing, in each mode."""

import random
import time

from support import net, program
from support.case import check, check_equal, test
from support.net import Task
from test_proxy import MIB, proxy

MODES = ["off", "on", "auto"]
BULK = 64 * MIB


def transfer(t, daemon, source, sink, stalls=()):
    """The pattern from one socket to the other; RSS stays where it was. Both ends are open after
    it."""
    before = highest = daemon.rss_bytes()
    sender = Task(net.send_pattern, source, BULK, (net.CHUNK,), False)
    reader = Task(net.receive_sha256, sink, BULK, stalls)
    while reader.is_alive():
        highest = max(highest, daemon.rss_bytes())
        reader.join(0.05)
    sender.result()
    check_equal(reader.result(), net.pattern_sha256(BULK), "SHA-256")
    if not t.sanitized:
        check(highest - before < 4 * MIB, f"RSS grew by {highest - before} bytes")


@test(each={"splice": MODES})
def stalling_server(t, splice):
    """64 MiB to a server that stalls: memory flat, every byte arrives (splice {splice})"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, f"splice = {splice}")) as daemon:
        with net.proxied(front, listener) as (client, server):
            transfer(t, daemon, client, server, ((0, 1), (20_000_000, 0.3)))
            check_equal(net.exchange(_Crossed(server, client), b"back"), b"back", "the other way")


@test(each={"splice": MODES})
def stalling_client(t, splice):
    """64 MiB to a client that stalls: memory flat, every byte arrives (splice {splice})"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, f"splice = {splice}")) as daemon:
        with net.proxied(front, listener) as (client, server):
            transfer(t, daemon, server, client, ((0, 1), (20_000_000, 0.3)))
            check_equal(net.exchange(_Crossed(client, server), b"back"), b"back", "the other way")


class _Crossed:
    """Sends on one socket and receives on another."""

    def __init__(self, source, sink):
        self.sendall = source.sendall
        self.recv = sink.recv


@test(each={"splice": MODES})
def both_directions_at_once(t, splice):
    """64 MiB each way at once, and the two ends after them (splice {splice})"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, f"splice = {splice}")):
        with net.proxied(front, listener) as (client, server):
            tasks = [Task(net.send_pattern, client, BULK), Task(net.send_pattern, server, BULK)]
            readers = [Task(net.receive_sha256, client, BULK),
                       Task(net.receive_sha256, server, BULK)]
            for reader in readers:
                check_equal(reader.result(), net.pattern_sha256(BULK), "SHA-256")
            for task in tasks:
                task.result()
            check_equal((net.read_to_end(client), net.read_to_end(server)), (b"", b""), "the ends")


@test(each={"splice": MODES})
def small_among_bulk(t, splice):
    """writes of 1 byte to 300 kB in one stream arrive in order (splice {splice})"""
    chance = random.Random(splice)
    sizes = [chance.choice([1, 7, 100, 1000, 4095, 4096, 4097, 16384, 65536, 300_000])
             for _ in range(400)]
    with program.echo_server(t) as back:
        front = t.address()
        with t.daemon(proxy(front, back, f"splice = {splice}")), net.connect(front) as client:
            client.setsockopt(net.socket.IPPROTO_TCP, net.socket.TCP_NODELAY, 1)
            total = sum(sizes)
            sender = Task(net.send_pattern, client, total, sizes)
            check_equal(net.receive_sha256(client, total), net.pattern_sha256(total), "SHA-256")
            sender.result()
            check_equal(net.read_to_end(client), b"", "behind the echo")


@test(each={"splice": MODES})
def question_and_answer(t, splice):
    """runs of small and of large messages in turn, each answered before the next (splice
    {splice})"""
    chance = random.Random(splice)
    data = chance.randbytes(2 * MIB)
    with program.echo_server(t) as back:
        front = t.address()
        with t.daemon(proxy(front, back, f"splice = {splice}")), net.connect(front) as client:
            for run in range(12):
                for _ in range(8):
                    size = chance.randint(1, 2000) if run % 2 else chance.randint(4096, 2 * MIB)
                    sender = Task(client.sendall, data[:size])
                    got = net.read_exactly(client, size)
                    sender.result()
                    check(got == data[:size], f"a message of {size} bytes came back changed")


@test(each={"splice": MODES})
def end_behind_a_stalled_reader(t, splice):
    """a FIN behind 8 MiB that the other side is slow to take comes after the last byte (splice
    {splice})"""
    front, back = t.address(), t.address()
    total = 8 * MIB
    with net.listen(back) as listener, t.daemon(proxy(front, back, f"splice = {splice}")) as daemon:
        before = daemon.fd_count()
        with net.proxied(front, listener) as (client, server):
            sender = Task(net.send_pattern, server, total)
            reader = Task(net.receive_sha256, client, total, ((0, 0.5), (MIB, 0.3), (5 * MIB, 0.3)))
            check_equal(reader.result(), net.pattern_sha256(total), "SHA-256")
            sender.result()
            check_equal(net.read_to_end(client), b"", "behind the bytes")
        # A loop keeps a warm pipe, and each of the threads that started its own descriptors.
        t.eventually(lambda: daemon.fd_count() <= before + 16, "the descriptors closed")


@test(each={"splice": MODES})
def pipes_are_given_back(t, splice):
    """40 sessions stalled in mid-transfer and then aborted leave no pipe behind (splice
    {splice})"""
    front, back = t.address(), t.address()
    config = "[worker]\nthreads = 1\n" + proxy(front, back, f"splice = {splice}")
    with net.listen(back) as listener, t.daemon(config) as daemon:
        idle = daemon.fd_count()
        for _ in range(2):
            pairs = []
            for _ in range(40):
                client = net.connect(front)
                server = net.accept(listener)
                pairs.append((client, server))
                server.setblocking(False)
                try:
                    while True:
                        server.send(bytes(256 * 1024))
                except BlockingIOError:
                    pass
            for i, (client, server) in enumerate(pairs):
                (net.reset if i % 2 else net.socket.socket.close)(client)
                server.close()
            # A loop starts with a few descriptors and keeps some warm pipes, far fewer than 40.
            t.eventually(lambda: daemon.fd_count() <= idle + 24, "the descriptors of the sessions")


# What is sent: bytes before an urgent byte, how often, and bytes behind the last.
URGENT = {"behind bulk": (400_000, 1, 100_000), "first": (0, 1, 100_000), "last": (100_000, 1, 0),
          "several": (100_000, 4, 1000)}


def send_urgent(s, before, times, behind):
    """Send it, and say what is to arrive."""
    sent = b""
    for turn in range(times):
        s.sendall(bytes([turn]) * before)
        s.send(b"!", net.socket.MSG_OOB)
        sent += bytes([turn]) * before + b"!"
    s.sendall(b"y" * behind)
    return sent + b"y" * behind


def check_same(got, sent):
    check(got == sent, f"{len(got)} of {len(sent)} bytes came, or others")


@test(each={"how": ["splice = auto", "splice = on", "splice = off", "pipeline = log",
                    "bandwidth_in = 100M"], "urgent": list(URGENT)})
def urgent_data(t, how, urgent):
    """urgent data stays in its place, nothing behind it is lost, no worker spins ({how}, {urgent})"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, how)) as daemon:
        with net.proxied(front, listener) as (client, server):
            got = Task(net.read_to_end, server)
            sent = send_urgent(client, *URGENT[urgent])
            client.shutdown(net.socket.SHUT_WR)
            check_same(got.result(), sent)
        with net.proxied(front, listener) as (client, server):
            got = Task(net.read_to_end, server)
            sent = send_urgent(client, *URGENT[urgent])
            t.eventually(lambda: net.unacknowledged(client) == 0, "the bytes acknowledged")
            before = daemon.cpu_s()
            time.sleep(0.4)
            check(daemon.cpu_s() - before < 0.2, "a worker spins")
            client.shutdown(net.socket.SHUT_WR)
            check_same(got.result(), sent)


@test(each={"urgent": list(URGENT)})
def urgent_data_echoed(t, urgent):
    """urgent data and all behind it comes back from an echo ({urgent})"""
    front = t.address()
    with t.daemon(f"[listen front]\naddress = {front}\nservice = echo\nsplice = on\n"):
        with net.connect(front) as client:
            got = Task(net.read_to_end, client)
            sent = send_urgent(client, *URGENT[urgent])
            client.shutdown(net.socket.SHUT_WR)
            check_same(got.result(), sent)


@test(timeout=60)
def sessions_side_by_side(t):
    """16 sessions of 8 MiB on one worker share its pipe without mixing their bytes"""
    with program.echo_server(t) as back:
        front = t.address()
        total = 8 * MIB
        config = "[worker]\nthreads = 1\n" + proxy(front, back, "splice = on")
        with t.daemon(config):
            clients = [net.connect(front) for _ in range(16)]
            senders = [Task(net.send_pattern, client, total, (1000 * (i + 1),))
                       for i, client in enumerate(clients)]
            readers = [Task(net.receive_sha256, client, total,
                            ((MIB, 0.3),) if i % 3 == 0 else ())
                       for i, client in enumerate(clients)]
            for reader in readers:
                check_equal(reader.result(), net.pattern_sha256(total), "SHA-256")
            for sender in senders:
                sender.result()
            for client in clients:
                client.close()
