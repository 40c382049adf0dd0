"""reload_listeners: sockets that move, come and go while clients connect; each is served, and counted once."""

import contextlib
import socket
import threading

from support import net
from support.case import check, check_equal, test
from support.net import Task

RELOADS = 40
CLIENTS = 4


def echo(name, addresses, options=""):
    return f"[listen {name}]\naddress = {addresses}\nservice = echo\n{options}\n"


def under_load(t, addresses, config):
    """Reload config(i) again and again; the daemon's counters of listeners, and how many clients it had."""
    over = threading.Event()
    with t.daemon(config(0)) as daemon, contextlib.ExitStack() as stack:
        held = [stack.enter_context(net.connect(address)) for address in addresses]
        for client in held:
            net.exchange(client, b"hello")
        fds = daemon.fd_count()
        # with pauses: the reloads have to get on
        tasks = [Task(net.visit_until, over, addresses[i % len(addresses)], 0.002) for i in range(CLIENTS)]
        try:
            for i in range(1, RELOADS + 1):
                daemon.reload(config(i))
        finally:
            over.set()
        total = sum(task.result() for task in tasks) + len(held)
        for client in held:
            check_equal(net.exchange(client, b"still"), b"still", "the echo of a session that is open")
        t.eventually(lambda: daemon.fd_count() <= fds, "descriptors as before")
        names = {line.split()[0] for line in config(RELOADS).split("[listen ")[1:]}
        counts = [daemon.counts(f"listen {name.rstrip(']')} ")["sessions_total"] for name in names]
        check_equal(sum(counts), total, "sessions counted by all listeners")


@test()
def addresses_change_places(t):
    """two listeners that exchange their addresses again and again"""
    first, second = t.address(), t.address()

    def config(i):
        one, two = (second, first) if i % 2 else (first, second)
        return echo("one", one) + echo("two", two)

    under_load(t, [first, second], config)


@test()
def more_and_fewer_sockets(t):
    """reuseport goes up and down: no client that is queued is reset, and surplus sockets stay"""
    address = t.address()
    under_load(t, [address], lambda i: echo("one", address, f"reuseport = {4 if i == 0 else 1 + i % 4}"))


@test()
def options_of_sockets(t):
    """backlog and socket options change; a listener beside comes and goes"""
    address, other = t.address(), t.address()

    def config(i):
        options = f"backlog = {100 + i}\nkeepalive = {'30s' if i % 2 else 'off'}\n"
        return echo("one", address, options) + (echo("two", other) if i % 2 else "")

    under_load(t, [address], config)


def by_turns(address):
    """Configurations by their number: with the address, or with the wildcard of its port."""
    wildcard = "*:" + str(address).rsplit(":", 1)[1]
    return lambda i, options="": echo("one", wildcard if i % 2 else address, options)


@test()
def wildcard_and_back(t):
    """an address and the wildcard of its port replace each other"""
    address = t.address()
    under_load(t, [address], by_turns(address))


def inodes(host):
    """The listening TCP sockets at an IPv4 address: inode by port."""
    wanted = socket.inet_aton(host)[::-1].hex().upper()
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [line.split() for line in f][1:]
    return {int(row[1][9:], 16): row[9] for row in rows if row[1][:8] == wanted and row[3] == "0A"}


def range_host(t):
    """An address of the loopback network that no other test uses, so that all its ports are free."""
    port = t.port()
    return f"127.99.{port >> 8}.{port & 255}"


@test()
def range_of_ports(t):
    """a range that grows and shrinks opens and closes single sockets; those that stay are kept"""
    host = range_host(t)

    def config(ports):
        return f"[listen range]\naddress = {host}:{ports}\nservice = echo\n"

    with t.daemon(config("4100-4104")) as daemon:
        before = inodes(host)
        check_equal(sorted(before), list(range(4100, 4105)), "the ports")
        with net.connect(f"{host}:4104") as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            daemon.reload(config("4102-4107"))
            check_equal(net.exchange(client, b"still"), b"still", "the echo after the reload")
        t.eventually(lambda: sorted(inodes(host)) == list(range(4102, 4108)), "the other ports")
        after = inodes(host)
        check_equal({port: after[port] for port in (4102, 4103, 4104)},
                    {port: before[port] for port in (4102, 4103, 4104)}, "the sockets that stay")
        for port in range(4102, 4108):
            with net.connect(f"{host}:{port}") as client:
                check_equal(net.exchange(client, b"hello"), b"hello", f"the echo of {port}")
        lines = daemon.reload(config("4107-4102"), wanted="refused")
        check(any("ends before it begins" in line for line in lines), f"it says {lines}")
        check_equal(inodes(host), after, "the sockets after a refused reload")


@test()
def handshake_under_way(t):
    """a client whose handshake began before the address was replaced is served"""
    address = t.address()
    config = by_turns(address)
    with t.daemon(config(0)) as daemon:
        fds = daemon.fd_count()
        for i in range(1, 7):
            with socket.socket() as client:
                client.settimeout(net.LIMIT_S)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 1)  # our ACK waits for data
                client.connect(net.parse(address)[1])
                for options in ("", f"backlog = {100 + i}\n"):  # the old socket gets the second one, too
                    daemon.reload(config(i, options))
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        t.eventually(lambda: daemon.fd_count() <= fds, "descriptors as before")
        daemon.reload(config(1))
        daemon.reload(echo("two", address))  # the sockets of listen one close at once
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo of listen two")
        check_equal(daemon.counts("listen two ")["sessions_total"], 1, "sessions of listen two")
        t.eventually(lambda: daemon.fd_count() <= fds, "descriptors as before")
        daemon.reload(config(1).replace("listen one", "listen two"))  # the stop comes while the old socket still accepts


@test()
def crowd_of_replaced_sockets(t):
    """of the sockets that were replaced, at most 64 go on accepting"""
    address = t.address()
    config = by_turns(address)
    with t.daemon(config(0)) as daemon:
        fds = daemon.fd_count()
        for i in range(1, 81):  # replaces 120 sockets
            daemon.reload(config(i))
        most = fds + 64 + 8  # some that loops open when they start
        t.eventually(lambda: daemon.fd_count() <= most, "the older ones are closed", within=2)
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
