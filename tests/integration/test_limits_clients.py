"""limits: how many connections a listener and a client may have, and how fast they may come."""

import contextlib
import select
import signal
import socket
import time

from support import net
from support.case import check, check_equal, test
from support.crowd import Crowd, echo
from support.watch import Watch
from test_proxy import proxy

THEME = "limits"


# ---- limits that are configured ----


def from_host(host, address):
    """A client connection that comes from another address of this host."""
    _, where = net.parse(address)
    s = socket.socket()
    s.settimeout(net.LIMIT_S)
    s.bind((host, 0))
    s.connect(where)
    return s


def is_served(s, within_s):
    """Does the client get its echo within that time?"""
    s.sendall(b"?")
    return bool(select.select([s], [], [], within_s)[0]) and s.recv(1) == b"?"


def stats(daemon, name, key):
    """The value of a listener's counter; reasons that never occurred are not told."""
    return daemon.counts(f"listen {name} ").get(key, 0)


@test(timeout=60)
def one_too_many_waits(t):
    """with max_connections = 1000 the 1,001st client waits without costing anything, and is served
    as soon as another has left"""
    address = t.address()
    with t.daemon(echo(address, "max_connections = 1000")) as daemon:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(net.connect(address)) for _ in range(1000)]
            for client in clients:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            late = stack.enter_context(net.connect(address))
            used = daemon.cpu_s()
            check(not is_served(late, 1.5), "the 1,001st client is served")
            check(daemon.cpu_s() - used < 0.3, "waiting costs processor time")
            check_equal(stats(daemon, "echo", "sessions"), 1000, "open sessions")
            watch = Watch()
            clients.pop().close()
            check_equal(late.recv(1), b"?", "the echo of the 1,001st client")
            watch.expect(0, 0.7 * t.scale, "it was served when another had left")
            check(len(daemon.log_lines("max_connections is reached: new clients wait")) == 1,
                  "the log does not say so once")


@test(timeout=60, each={"over": ["close", "reset"]})
def one_too_many_is_sent_away(t, over):
    """with over_limit = {over} the 11th client of 10 is sent away at once, and counted"""
    address = t.address()
    wanted = "fin" if over == "close" else "reset"
    with t.daemon(echo(address, f"max_connections = 10\nover_limit = {over}")) as daemon:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(net.connect(address)) for _ in range(10)]
            for client in clients:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            for _ in range(5):
                check_equal(net.sent_away(net.connect, address), wanted, "how the 11th ends")
            check_equal(stats(daemon, "echo", "limit"), 5, "sessions ended by a limit")
            clients.pop().close()
            t.eventually(lambda: stats(daemon, "echo", "sessions") == 9, "one has left")
            with net.connect(address) as late:
                check_equal(net.exchange(late, b"hello"), b"hello", "the echo of a later one")


@test(timeout=60)
def limit_of_all(t):
    """max_connections of [reactord] counts the clients of all listeners and boss threads, and a
    place is taken by a client of any"""
    one, two = t.address(), t.address()
    config = ("[reactord]\nmax_connections = 20\n[boss]\nthreads = 2\n" +
              echo(one, "reuseport = 2") + echo(two).replace("listen echo", "listen two"))
    with t.daemon(config) as daemon, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(one if i % 2 else two)) for i in range(40)]
        crowd = Crowd(one, 0)
        crowd.clients = clients
        served = crowd.served(1.5)
        check_equal(len(served), 20, "clients served")
        while served:
            for client in served:
                client.close()
            crowd.clients = [c for c in crowd.clients if c not in served]
            served = crowd.answered(1 * t.scale)
        check_equal(len(crowd.clients), 0, "clients never served")
        check(daemon.log_lines(r"max_connections of \[reactord\] is reached"), "no log line")


@test(timeout=90, plain_only=True)
def accepted_at_a_rate(t):
    """with connection_rate = 300/s clients that come faster are all served, at that rate"""
    address, count = t.address(), 600
    options = "connection_rate = 300/s burst=10"
    with t.daemon(echo(address, options)) as daemon, contextlib.ExitStack() as stack:
        began = time.monotonic()
        clients = [stack.enter_context(net.connect(address)) for _ in range(count)]
        poll = select.poll()
        for client in clients:
            client.sendall(b"?")
            poll.register(client, select.POLLIN)
        used = daemon.cpu_s()
        served, at_s = 0, []
        while served < count:
            ready = poll.poll(1000 * net.LIMIT_S)
            check(ready, f"nobody is served any more after {served} clients")
            for fd, _ in ready:
                poll.unregister(fd)
            served += len(ready)
            took = time.monotonic() - began
            at_s += [took] * len(ready)
            check(served <= 10 + 1.05 * 300 * took, f"{served} clients are served in {took:.3f} s")
        # A machine that is busy in between does not let all of them come at that rate.
        fastest = min(late - early for early, late in zip(at_s, at_s[60:]))
        check(fastest < 1.5 * 60 / 300, f"60 clients took {fastest:.2f} s at least, all {took:.1f} s")
        check(daemon.cpu_s() - used < 0.5 * took, "waiting for the rate costs processor time")


@test(each=[{"over": "close", "wanted": "fin"}, {"over": "reset", "wanted": "reset"},
            {"over": "wait", "wanted": "reset"}])
def one_client_has_too_many(t, over, wanted):
    """max_connections_per_client = 3 with over_limit = {over}: the 4th of one address ends by
    {wanted}, other addresses are served, and a place is free again whichever way its client went"""
    address = t.address()
    with t.daemon(echo(address, f"max_connections_per_client = 3\nover_limit = {over}")) as daemon:
        for how in (socket.socket.close, net.reset):
            clients = [from_host("127.0.0.2", address) for _ in range(3)]
            for client in clients:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            ending = net.sent_away(from_host, "127.0.0.2", address)
            check_equal(ending, wanted, "how the 4th ends")
            with from_host("127.0.0.3", address) as other:
                check_equal(net.exchange(other, b"hello"), b"hello", "the echo of another host")
            for client in clients:
                how(client)
            t.eventually(lambda: stats(daemon, "echo", "sessions") == 0, "all have left")
        check_equal(stats(daemon, "echo", "over_max_connections_per_client"), 2, "refusals")
        check_equal(stats(daemon, "echo", "limit"), 2, "sessions ended by a limit")
        check_equal(len(daemon.log_lines("127.0.0.2:.* refused: max_connections_per_client")), 1,
                    "log lines")


@test()
def one_client_comes_too_fast(t):
    """connection_rate_per_client = 1/h burst=5: the 6th of one address is reset though the others
    have gone, and other addresses are served"""
    address = t.address()
    with t.daemon(echo(address, "connection_rate_per_client = 1/h burst=5")) as daemon:
        for host in ("127.0.0.2", "127.0.0.3"):
            for _ in range(5):
                with from_host(host, address) as client:
                    check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            check_equal(net.sent_away(from_host, host, address), "reset", "how the 6th ends")
        check_equal(stats(daemon, "echo", "over_connection_rate_per_client"), 2, "refusals")
        check_equal(stats(daemon, "echo", "clients_known"), 2, "clients known")


@test()
def table_is_full(t):
    """with client_table_size = 2 and two clients connected a third one is served without a limit,
    and the log says so"""
    address = t.address()
    options = "max_connections_per_client = 1\nclient_table_size = 2"
    with t.daemon(echo(address, options)) as daemon, contextlib.ExitStack() as stack:
        for host in ("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.4"):
            client = stack.enter_context(from_host(host, address))
            check_equal(net.exchange(client, b"hello"), b"hello", f"the echo of {host}")
        check_equal(stats(daemon, "echo", "uncounted"), 2, "connections that are not counted")
        check(daemon.log_lines("the client table is full"), "no log line")
        ending = net.sent_away(from_host, "127.0.0.3", address)
        check_equal(ending, "reset", "how the second of a known client ends")


@test(timeout=60)
def forgotten_too_early(t):
    """with connection_rate_per_client = 1/h and client_table_size = 128 a hundred clients are served again
    when 400 others have come: the log says so, and it is counted"""
    address = t.address()
    options = "connection_rate_per_client = 1/h\nclient_table_size = 128"
    first = [f"127.0.1.{1 + i}" for i in range(100)]
    others = [f"127.0.{2 + i // 200}.{1 + i % 200}" for i in range(400)]
    with t.daemon(echo(address, options)) as daemon:
        for host in first + others + first:
            with from_host(host, address) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", f"the echo of {host}")
        check_equal(stats(daemon, "echo", "forgotten"), 600 - 128, "clients forgotten")
        lines = daemon.log_lines("was forgotten too early")
        check_equal(len(lines), 1, "log lines")
        check(lines[0].endswith("can exceed connection_rate_per_client"),
              f"the end of the log line: {lines[0]!r}")


@test(timeout=60)
def every_place_of_the_table_is_used(t):
    """with client_table_size = 1024 and 1,024 clients connected that may have one connection each a second
    one of each is refused"""
    address = t.address()
    options = "max_connections_per_client = 1\nclient_table_size = 1024"
    hosts = [f"127.0.{1 + i // 200}.{1 + i % 200}" for i in range(1024)]
    with t.daemon(echo(address, options)) as daemon, contextlib.ExitStack() as stack:
        for host in hosts:
            client = stack.enter_context(from_host(host, address))
            check_equal(net.exchange(client, b"hello"), b"hello", f"the echo of {host}")
        served = [host for host in hosts if net.sent_away(from_host, host, address) != "reset"]
        check_equal(served, [], "clients with two connections")
        check_equal(stats(daemon, "echo", "uncounted"), 0, "connections that are not counted")


PREFIXES = [{"option": "", "others": {"127.0.3.9": True, "127.0.2.9": True}},
            {"option": "client_prefix_v4 = 24", "others": {"127.0.3.9": True, "127.0.2.9": False}},
            {"option": "client_prefix_v4 = 16", "others": {"127.1.2.9": True, "127.0.3.9": False}}]


@test(each=PREFIXES)
def clients_by_prefix(t, option, others):
    """{option}: while 127.0.2.1 has the one connection that it may have these are served, or not: {others}"""
    address = t.address()
    options = f"max_connections_per_client = 1\n{option}"
    with t.daemon(echo(address, options)), from_host("127.0.2.1", address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        for host, served in others.items():
            if not served:
                check_equal(net.sent_away(from_host, host, address), "reset", f"how {host} ends")
                continue
            with from_host(host, address) as other:
                check_equal(net.exchange(other, b"hello"), b"hello", f"the echo of {host}")


PREFIXES_V6 = [{"option": "", "others": {"2001:db8:1:3::9": True, "2001:db8:1:2::9": False}},
               {"option": "client_prefix_v6 = 128", "others": {"2001:db8:1:2::9": True}},
               {"option": "client_prefix_v6 = 48", "others": {"2001:db8:2:2::9": True, "2001:db8:1:3::9": False}}]


@test(each=PREFIXES_V6)
def ipv6_clients_by_prefix(t, option, others):
    """{option}: while 2001:db8:1:2::1 has the one connection that it may have these are served, or not:
    {others}"""
    address = t.address()
    options = ("accept_proxy = required\ntrusted_proxies = 127.0.0.0/8\n"
               f"max_connections_per_client = 1\n{option}")

    def client_of(host):
        s = net.connect(address)
        s.sendall(b"PROXY TCP6 %s 2001:db8::1 1000 80\r\nhello" % host.encode())
        return s

    with t.daemon(echo(address, options)), client_of("2001:db8:1:2::1") as client:
        check_equal(net.read_exactly(client, 5), b"hello", "the echo")
        for host, served in others.items():
            if not served:
                check_equal(net.sent_away(client_of, host), "reset", f"how {host} ends")
                continue
            with client_of(host) as other:
                check_equal(net.read_exactly(other, 5), b"hello", f"the echo of {host}")


@test(each=[{"line": line, "says": says} for line, says in (
    ("client_prefix_v4 = 0", "1 to 32"), ("client_prefix_v4 = 33", "1 to 32"),
    ("client_prefix_v6 = 0", "1 to 128"), ("client_prefix_v6 = 129", "1 to 128"))])
def refused_prefixes(t, line, says):
    """-t refuses {line} and says {says}"""
    done = t.reactord("-t", "-c", t.write("c.ini", echo(t.address(), line)))
    check_equal(done.code, 1, "exit code")
    check(f"{line.split()[0]}: " in done.err and says in done.err, done.err)


@test()
def clients_behind_a_proxy(t):
    """behind a trusted proxy the limit for each client counts the addresses that PROXY headers
    name, and a place is free again when its connection has ended"""
    address = t.address()
    options = ("accept_proxy = required\ntrusted_proxies = 127.0.0.0/8\n"
               "max_connections_per_client = 2")

    def client_of(host):
        s = net.connect(address)
        s.sendall(b"PROXY TCP4 %s 127.0.0.1 1000 80\r\nhello" % host.encode())
        return s

    with t.daemon(echo(address, options)) as daemon, contextlib.ExitStack() as stack:
        for _ in range(2):
            clients = [stack.enter_context(client_of("192.0.2.1")) for _ in range(2)]
            for client in clients:
                check_equal(net.read_exactly(client, 5), b"hello", "the echo")
            check_equal(net.sent_away(client_of, "192.0.2.1"), "reset", "how the third ends")
            with client_of("192.0.2.2") as other:
                check_equal(net.read_exactly(other, 5), b"hello", "the echo of another client")
            for client in clients:
                client.close()
            t.eventually(lambda: stats(daemon, "echo", "sessions") == 0, "all have left")
        check_equal(stats(daemon, "echo", "over_max_connections_per_client"), 2, "refusals")


@test(timeout=60)
def places_of_sessions_that_fail(t):
    """places of sessions whose server refuses them are free again: none is lost in 200"""
    front, back = t.address(), t.address()
    options = "max_connections = 5\nmax_connections_per_client = 4\nover_limit = reset"
    with t.daemon(proxy(front, back, options, "retry_budget = 0")) as daemon:
        for _ in range(200):
            net.sent_away(net.connect, front)
        t.eventually(lambda: stats(daemon, "front", "sessions") == 0, "all have ended")
        with net.listen(back) as listener, contextlib.ExitStack() as stack:
            for _ in range(4):
                client, server = stack.enter_context(net.proxied(front, listener))
                client.sendall(b"hello")
                check_equal(net.read_exactly(server, 5), b"hello", "what the server gets")


@test(timeout=60)
def drained_at_the_limit(t):
    """a drain while clients wait for room ends as usual: served clients finish, the others are
    reset"""
    address = t.address()
    with t.daemon(echo(address, "max_connections = 2")) as daemon:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(net.connect(address)) for _ in range(2)]
            for client in clients:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            late = [stack.enter_context(net.connect(address)) for _ in range(3)]
            daemon.send_signal(signal.SIGTERM)
            for client in late:
                check_equal(net.ending(client), "reset", "how a client that waited ends")
            for client in clients:
                check_equal(net.ending(client), "fin", "how a client that was served ends")
            check_equal(daemon.wait(), 0, "the exit code")
