"""down: what becomes of the connections and the clients of a server that health checks found to be down."""

import contextlib
import time

from support import net
from support.case import check, check_equal, test
from support.health import greeted, is_alive, lines_of, port_to_check, ready, served
from support.network import ip
from support.own_network import own_network
from support.server import Moody, full_queue
from support.upstreams import config, statistics, who
from test_checks import checked, wait_down, wait_up, went_down
from test_reasons import expect


SOURCE = ("10.9.9.1/32", "dev", "lo")


@test()
def source_gone(t):
    """a source_address that leaves the host is a failed check with its reason, and the server is down until it
    is back"""
    own_network()
    ip("address", "add", *SOURCE)
    front = t.address()
    with ready(t, "a") as servers, t.daemon(checked(front, lines_of(servers), source_address="10.9.9.1")) as daemon:
        check_equal(served(servers, front, 2), {"a": 2}, "clients before")
        ip("address", "del", *SOURCE)
        wait_down(t, daemon)
        check(daemon.log_lines("source_address is not an address of this host"), "no reason in the log")
        ip("address", "add", *SOURCE)
        wait_up(t, daemon)
        check_equal(served(servers, front, 2), {"a": 2}, "clients after")


@test()
def source_back_in_time(t):
    """a client that comes while source_address has left the host is retried, and served when it is back"""
    own_network()
    front = t.address()
    with Moody("a", t.address()) as server:
        options = "source_address = 10.9.9.1\nretry_timeout = 60s\neject_failures = 1"
        with t.daemon(config(front, {"a": server.address}, options)) as daemon:
            with net.connect(front) as client:
                t.eventually(lambda: daemon.log_lines("cannot connect: source_address is not an address of this host"),
                             "the reason is logged")
                ip("address", "add", *SOURCE)
                check_equal(net.read_to_end(client), b"a", "what the server says")
            check(not daemon.log_lines("ejected"), "the server is blamed")


@test()
def keep(t):
    """with on_down = keep an open connection goes on when its server goes down, and SIGRTMIN shows both"""
    front = t.address()
    with ready(t, "ab") as servers, t.daemon(checked(front, lines_of(servers, "b"))) as daemon:
        with net.connect(front) as client:
            net.exchange(greeted(client), b"before")
            servers[0].is_up(False)
            wait_down(t, daemon)
            check_equal(served(servers, front, 4), {"a": 0, "b": 4}, "clients while a is down")
            check_equal(net.exchange(client, b"after"), b"after", "the echo")
            stats = statistics(daemon, "server back/a")
            check_equal((stats["state"], stats["connections"], stats["sessions"]), ("down", "1", "1"),
                        "state, connections and sessions")
            check("server_down" not in stats, f"statistics: {stats}")


@test()
def close(t):
    """with on_down = close the connections of a server that goes down are reset on both sides, those of
    others stay; log and counters say that the server was down"""
    front, health = t.address(), t.port()
    with ready(t, "b") as (b,), contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(t.address()))
        address = "%s:%d" % listener.getsockname()
        a_is_up = stack.enter_context(contextlib.ExitStack())
        a_is_up.enter_context(port_to_check(f"127.0.0.1:{health}"))
        lines = {"a": f"{address} check_port={health}", "b": b.line}
        with t.daemon(checked(front, lines, workers=4, log="debug", on_down="close")) as daemon:
            clients = [stack.enter_context(net.connect(front)) for _ in range(20)]
            of_a = [stack.enter_context(net.accept(listener)) for _ in range(10)]
            t.eventually(lambda: b.server.now == 10, "each has its share")
            a_is_up.close()
            wait_down(t, daemon)
            for server in of_a:
                check_equal(net.ending(server), "reset", "the end for the server")
            t.eventually(lambda: statistics(daemon, "server back/a")["sessions"] == "0", "they ended")
            for what in ("listen front", "upstream back", "server back/a"):
                check_equal(statistics(daemon, what).get("server_down"), "10", f"those of {what}")
            check_equal(statistics(daemon, "server back/b")["sessions"], "10", "those of b")
            check_equal(len(daemon.log_lines("listen front: .* -> a ended: server down, ")), 10, "log lines")
            t.eventually(lambda: daemon.log_lines("notice .*upstream back: server a: down: connections reset: 10$"), "the number")
            check_equal(sum(map(is_alive, clients)), 10, "clients that go on")
            check_equal(served([b], front, 4), {"b": 4}, "clients while a is down")


@test(each=[{"on_down": "keep", "timeout": "3s", "when": "when connect_timeout is over"},
            {"on_down": "close", "timeout": "1h", "when": "at once"}])
def connecting(t, on_down, timeout, when):
    """with on_down = {on_down} clients that are being connected to a server that goes down get another
    one {when}, and are not reset"""
    front, hung, health = t.address(), t.address(), t.port()
    with ready(t, "b") as (b,), full_queue(hung), contextlib.ExitStack() as stack:
        a_is_up = stack.enter_context(contextlib.ExitStack())
        a_is_up.enter_context(port_to_check(f"127.0.0.1:{health}"))
        lines = {"a": f"{hung} check_port={health}", "b": b.line + " backup"}
        with t.daemon(checked(front, lines, workers=4, on_down=on_down, connect_timeout=timeout)) as daemon:
            before = daemon.fd_count()
            clients = [stack.enter_context(net.connect(front)) for _ in range(20)]
            t.eventually(lambda: daemon.fd_count() >= before + 38, "they are being connected")
            check_equal(b.server.total, 0, "connections of b")
            a_is_up.close()
            wait_down(t, daemon)
            check_equal([is_alive(client) for client in clients], [True] * 20, "clients that b serves")
            check_equal(statistics(daemon, "server back/b")["sessions"], "20", "sessions of b")
            check_equal(statistics(daemon, "server back/a")["connections"], "0", "connections of a")


@test()
def connecting_to_the_last(t):
    """with on_down = close clients that are being connected to the last server that was up are reset for
    that; it does not count as their failure, and it has clients again as soon as it is up"""
    front, address, health = t.address(), t.address(), t.port()
    lines = {"a": f"{address} check_port={health}", "b": t.address() + " backup"}
    options = {"on_down": "close", "connect_timeout": "1h", "eject_time": "5m", "eject_max_percent": 100}
    with contextlib.ExitStack() as stack:
        hung = stack.enter_context(contextlib.ExitStack())
        hung.enter_context(full_queue(address))
        is_up = stack.enter_context(contextlib.ExitStack())
        is_up.enter_context(port_to_check(f"127.0.0.1:{health}"))
        with t.daemon(checked(front, lines, log="debug", **options)) as daemon:
            wait_down(t, daemon, "b")
            clients = [net.connect(front) for _ in range(20)]
            t.eventually(lambda: statistics(daemon, "server back/a")["connections"] == "20",
                         "they are being connected")
            is_up.close()
            for client in clients:
                check_equal(net.ending(client), "reset", "the client's end")
                client.close()
            expect(t, daemon, "listen front", server_down=20)
            hung.close()
            stack.enter_context(Moody("a", address))
            stack.enter_context(port_to_check(f"127.0.0.1:{health}"))
            wait_up(t, daemon)
            check_equal({who(front) for _ in range(4)}, {"a"}, "the servers of those who come then")


@test()
def paced(t):
    """on_down_rate = 100 takes most of a second for the 100 connections of a server that goes down"""
    front = t.address()
    with ready(t, "a") as (a,), contextlib.ExitStack() as stack:
        with t.daemon(checked(front, {"a": a.line}, workers=4, on_down="close", on_down_rate=100)) as daemon:
            clients = [greeted(stack.enter_context(net.connect(front))) for _ in range(100)]
            began = time.monotonic()
            a.is_up(False)
            for client in clients:
                check_equal(net.ending(client), "reset", "the client's end")
            took = time.monotonic() - began
            # Each of four workers does its first one at once.
            check(took >= 0.8, f"it took {took:.3f} s")
            check_equal(len(went_down(daemon)), 1, "times that it was down")


@test()
def stop_while_paced(t):
    """SIGTERM ends it while on_down_rate = 1 has 30 connections still to end"""
    front = t.address()
    with ready(t, "a") as (a,), contextlib.ExitStack() as stack:
        with t.daemon(checked(front, {"a": a.line}, workers=4, on_down="close",
                              on_down_rate=1)) as daemon:
            clients = [greeted(stack.enter_context(net.connect(front))) for _ in range(30)]
            a.is_up(False)
            wait_down(t, daemon)
            daemon.stop()
            check_equal({net.ending(client) for client in clients}, {"reset"}, "the clients' ends")


@test()
def all_down(t):
    """when all servers are down clients are reset at once, no server being there"""
    front = t.address()
    with ready(t, "ab") as servers, t.daemon(checked(front, lines_of(servers), log="debug")) as daemon:
        for server in servers:
            server.is_up(False)
        for server in servers:
            wait_down(t, daemon, server.name)
        check_equal(len([line for line in went_down(daemon, "[ab]") if "servers up: 0 of 2" in line]), 1,
                    "log lines about the last one")
        for _ in range(10):
            check_equal(net.fate(front), "reset", "the client's end")
        expect(t, daemon, "listen front", no_server=10)
        check_equal([server.server.total for server in servers], [0, 0], "connections of the servers")
        servers[1].is_up(True)
        wait_up(t, daemon, "b")
        check_equal(served(servers, front, 4), {"a": 0, "b": 4}, "clients when b is up")


@test()
def panic(t):
    """with panic_threshold = 50 two of four servers that are up get all clients, and when three are down
    all four are used"""
    front = t.address()
    with ready(t, "abcd") as servers:
        with t.daemon(checked(front, lines_of(servers), panic_threshold=50)) as daemon:
            for server in servers[:2]:
                server.is_up(False)
                wait_down(t, daemon, server.name)
            check_equal(served(servers, front, 20), {"a": 0, "b": 0, "c": 10, "d": 10}, "clients")
            check_equal(statistics(daemon, "upstream back")["panic"], "no", "panic")
            servers[2].is_up(False)
            wait_down(t, daemon, "c")
            check_equal(served(servers, front, 20), {"a": 5, "b": 5, "c": 5, "d": 5}, "clients in panic")
            check_equal(statistics(daemon, "upstream back")["panic"], "yes", "panic")
            servers[2].is_up(True)
            wait_up(t, daemon, "c")
            check_equal(served(servers, front, 20), {"a": 0, "b": 0, "c": 10, "d": 10}, "clients then")


@test()
def backups_before_panic(t):
    """with panic_threshold = 50, one of four servers up and four backups that are, all clients are
    served by these five; only when the backups are down too, all four servers are used"""
    front = t.address()
    with ready(t, "abcdefgh") as servers:
        with t.daemon(checked(front, lines_of(servers, "efgh"), panic_threshold=50)) as daemon:
            for server in servers[1:4]:
                server.is_up(False)
                wait_down(t, daemon, server.name)
            got = served(servers, front, 200)
            check_equal([got[name] for name in "bcd"], [0, 0, 0], "clients of servers that are down")
            check(20 <= got["a"] <= 65, f"a has not its fifth of the clients: {got}")
            check(min(got[name] for name in "efgh") >= 20, f"a backup has too few: {got}")
            check_equal(statistics(daemon, "upstream back")["panic"], "no", "panic")
            for server in servers[4:]:
                server.is_up(False)
                wait_down(t, daemon, server.name)
            check_equal(statistics(daemon, "upstream back")["panic"], "yes", "panic")
            got = served(servers, front, 20)
            check_equal([got[name] for name in "abcd"], [5] * 4, "clients in panic")


@test()
def backups(t):
    """a backup has all clients as long as all others are down, and none before and after"""
    front = t.address()
    with ready(t, "abc") as servers:
        with t.daemon(checked(front, lines_of(servers, "c"))) as daemon:
            check_equal(served(servers, front, 4), {"a": 2, "b": 2, "c": 0}, "clients at first")
            for server in servers[:2]:
                server.is_up(False)
                wait_down(t, daemon, server.name)
            check_equal(served(servers, front, 4), {"a": 0, "b": 0, "c": 4}, "clients while a and b are down")
            servers[1].is_up(True)
            wait_up(t, daemon, "b")
            check_equal(served(servers, front, 4), {"a": 0, "b": 4, "c": 0}, "clients when b is up")


@test()
def slow_start(t):
    """a server that came up gets less than its share at first; one that was never down has all of
    it"""
    front = t.address()
    with ready(t, "ab") as servers:
        with t.daemon(checked(front, lines_of(servers), slow_start="1h")) as daemon:
            check_equal(served(servers, front, 40), {"a": 20, "b": 20}, "clients at first")
            servers[0].is_up(False)
            wait_down(t, daemon)
            servers[0].is_up(True)
            wait_up(t, daemon)
            check_equal(statistics(daemon, "server back/a")["state"], "warming", "the state")
            got = served(servers, front, 400)
            # A tenth of its turns: 20 of 400; the standard deviation is 4.4.
            check(1 <= got["a"] <= 60, f"a server that came up has {got['a']} of 400 clients")


@test()
def slow_start_ends(t):
    """when slow_start is over a server that came up has its share"""
    front = t.address()
    with ready(t, "ab") as servers:
        with t.daemon(checked(front, lines_of(servers), slow_start="300ms")) as daemon:
            servers[0].is_up(False)
            wait_down(t, daemon)
            servers[0].is_up(True)
            wait_up(t, daemon)
            t.eventually(lambda: served(servers, front, 20) == {"a": 10, "b": 10}, "equal shares")
            t.eventually(lambda: statistics(daemon, "server back/a")["state"] == "up", "its state")
