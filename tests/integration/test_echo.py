"""echo: what is sent comes back, whatever the client, the size and the pace."""

import hashlib
import random
import re
import socket

from support import net, program
from support.case import check, check_equal, test
from support.net import Task

MIB = 1024 * 1024


def echo(t, options=""):
    """Where to listen, and a daemon's configuration for it."""
    address = t.address()
    return address, f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n"


def port_of(address):
    return address.rpartition(":")[2]


@test(needs=["nc"])
def message_through_nc(t):
    """a message comes back through nc"""
    address, config = echo(t)
    with t.daemon(config):
        out = program.run(["nc", "-N", "127.0.0.1", port_of(address)], stdin=b"hello")
    check_equal(out, b"hello", "the echo")


@test(needs=["nc"])
def default_configuration(t):
    """the configuration that is installed echoes on its port"""
    shipped = t.options.source_dir / "conf" / "reactord.ini"
    port = t.port()
    config, replaced = re.subn(r":7007\b", f":{port}", shipped.read_text(encoding="utf-8"))
    check(replaced, f"{shipped} has no address with port 7007")
    with t.daemon(config):
        out = program.run(["nc", "-N", "127.0.0.1", port], stdin=b"hello")
    check_equal(out, b"hello", "the echo")


@test(needs=["socat"])
def mebibyte_through_socat(t):
    """1 MiB of random bytes comes back through socat, which half-closes, with the same SHA-256"""
    address, config = echo(t)
    message = random.randbytes(MIB)
    with t.daemon(config):
        out = program.run(["socat", "-t", "20", "-", f"TCP:{address}"], stdin=message)
    check_equal(hashlib.sha256(out).hexdigest(), hashlib.sha256(message).hexdigest(), "SHA-256")


@test()
def end_follows_the_bytes(t):
    """a client's FIN is answered by a FIN once everything was sent back, and costs no descriptor"""
    address, config = echo(t)
    with t.daemon(config) as daemon:
        with net.connect(address) as first:  # starts the threads, which have descriptors too
            net.exchange(first, b"x")
            before = daemon.fd_count()
            for message in (b"", b"x", random.randbytes(100_000)):
                with net.connect(address) as client:
                    sender = Task(client.sendall, message)
                    check_equal(net.read_exactly(client, len(message)), message, "the echo")
                    sender.result()
                    client.shutdown(socket.SHUT_WR)
                    check_equal(net.read_to_end(client), b"", "behind the echo")
            t.eventually(lambda: daemon.fd_count() <= before + 8, "the descriptors closed")


@test()
def messages_of_all_sizes(t):
    """messages from 1 byte to 1 MiB, around every power of two, come back one by one"""
    address, config = echo(t)
    powers = [1 << i for i in range(21)]
    sizes = sorted({max(1, p + d) for p in powers for d in (-1, 0, 1)})
    data = random.randbytes(sizes[-1])
    with t.daemon(config), net.connect(address) as client:
        for size in sizes:
            sender = Task(client.sendall, data[:size])
            got = net.read_exactly(client, size)
            sender.result()
            check(got == data[:size], f"a message of {size} bytes came back changed")


@test()
def byte_by_byte(t):
    """2,000 single bytes, each sent as one packet, come back in order"""
    address, config = echo(t)
    message = random.randbytes(2000)
    with t.daemon(config), net.connect(address) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(message)):
            client.sendall(message[i:i + 1])
        check(net.read_exactly(client, len(message)) == message, "the bytes came back changed")


@test(timeout=60)
def churn(t):
    """1,000 connections after one another, each with a message, leave no descriptor"""
    address, config = echo(t)
    with t.daemon(config) as daemon:
        before = None
        for i in range(1000):
            with net.connect(address) as client:
                check_equal(net.exchange(client, b"%d" % i), b"%d" % i, "the echo")
            if i == 20:
                before = daemon.fd_count()  # all loops are awake by now
        t.eventually(lambda: daemon.fd_count() <= before, "descriptors as at the start")


@test()
def many_at_once(t):
    """200 open connections do not get each other's bytes"""
    address, config = echo(t)
    with t.daemon(config):
        clients = [net.connect(address) for _ in range(200)]
        for turn in range(3):
            for i, client in enumerate(clients):
                client.sendall(b"%03d %d\n" % (i, turn))
            for i, client in enumerate(clients):
                check_equal(net.read_exactly(client, 6), b"%03d %d\n" % (i, turn), "the echo")
        for client in clients:
            client.close()


@test(timeout=60)
def stalling_reader(t):
    """200 MB against a reader that stalls: memory stays flat and every byte arrives"""
    address, config = echo(t)
    total = 200_000_000
    with t.daemon(config) as daemon, net.connect(address) as client:
        net.exchange(client, b"warm")
        before = daemon.rss_bytes()
        sender = Task(net.send_pattern, client, total)
        reader = Task(net.receive_sha256, client, total,
                      ((0, 1.5), (30_000_000, 0.5), (120_000_000, 0.5)))
        highest = before
        while reader.is_alive():
            highest = max(highest, daemon.rss_bytes())
            reader.join(0.05)
        sender.result()
        check_equal(reader.result(), net.pattern_sha256(total), "SHA-256")
        check_equal(net.read_to_end(client), b"", "behind the echo")
        if not t.sanitized:
            check(highest - before < 4 * MIB, f"RSS grew by {highest - before} bytes")


@test()
def never_reading_client(t):
    """a client that sends and never reads is stopped by its own full socket, and may leave"""
    address, config = echo(t)
    with t.daemon(config) as daemon:
        with net.connect(address) as client:
            client.setblocking(False)
            chunk, sent, stuck = bytes(64 * 1024), 0, 0
            while stuck < 10:
                try:
                    sent += client.send(chunk)
                    stuck = 0
                except BlockingIOError:
                    stuck += 1
                    net.time.sleep(0.05)
            check(sent < 64 * MIB, f"{sent} bytes were taken from a client that does not read")
            used = daemon.cpu_s()
            net.time.sleep(1)
            check(daemon.cpu_s() - used < 0.2, "the waiting daemon burns processor time")
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"next"), b"next", "the echo of the next client")


@test()
def client_that_aborts(t):
    """a client's RST with bytes on their way ends its session and nothing else"""
    address, config = echo(t)
    config = "[worker]\nthreads = 4\n" + config
    with t.daemon(config) as daemon, net.connect(address) as witness:
        net.exchange(witness, b"x")
        before = daemon.fd_count()
        for _ in range(60):
            client = net.connect(address)
            client.setblocking(False)
            try:
                for _ in range(20):
                    client.send(bytes(64 * 1024))
            except BlockingIOError:
                pass
            net.reset(client)
        check_equal(net.exchange(witness, b"still here"), b"still here", "the witness's echo")
        # What stays: four loops with their descriptors and their warm pipes, far fewer than 60.
        t.eventually(lambda: daemon.fd_count() <= before + 20, "the sessions' descriptors closed")


@test(needs=["redis-benchmark"], timeout=60)
def redis_benchmark(t):
    """redis-benchmark -t ping_mbulk against the echo completes"""
    address, config = echo(t)
    with t.daemon(config):
        out = program.run(["redis-benchmark", "-h", "127.0.0.1", "-p", port_of(address), "-t",
                           "ping_mbulk", "-n", "50000", "-c", "50", "-q"])
    check(b"requests per second" in out, f"it printed {out!r}")


@test(needs=["redis-benchmark"], timeout=60)
def redis_benchmark_pipelined(t):
    """redis-benchmark -t ping_mbulk with 32 requests in a row completes"""
    address, config = echo(t)
    with t.daemon(config):
        out = program.run(["redis-benchmark", "-h", "127.0.0.1", "-p", port_of(address), "-t",
                           "ping_mbulk", "-n", "200000", "-c", "20", "-P", "32", "-q"])
    check(b"requests per second" in out, f"it printed {out!r}")


@test(each={"service_options": ["splice = on", "splice = off"]})
def splice_does_not_matter(t, service_options):
    """{service_options} changes nothing for an echo: 8 MiB come back"""
    address, config = echo(t, service_options)
    with t.daemon(config), net.connect(address) as client:
        sender = Task(net.send_pattern, client, 8 * MIB)
        check_equal(net.receive_sha256(client, 8 * MIB), net.pattern_sha256(8 * MIB), "SHA-256")
        sender.result()
        check_equal(net.read_to_end(client), b"", "behind the echo")


@test()
def one_worker_one_boss(t):
    """a single worker thread serves a bulk transfer and small messages side by side"""
    address, config = echo(t)
    with t.daemon("[worker]\nthreads = 1\n" + config):
        with net.connect(address) as bulk, net.connect(address) as small:
            sender = Task(net.send_pattern, bulk, 50 * MIB)
            reader = Task(net.receive_sha256, bulk, 50 * MIB)
            answered = 0
            while reader.is_alive():
                check_equal(net.exchange(small, b"ping"), b"ping", "the echo beside the bulk")
                answered += 1
            sender.result()
            check_equal(reader.result(), net.pattern_sha256(50 * MIB), "SHA-256")
            check(answered >= 3, f"only {answered} answers while the bulk ran")
