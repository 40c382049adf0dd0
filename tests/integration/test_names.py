"""names: where a server's host name leads may change while clients come, and the name server may
go."""

import contextlib
import re
import time

from support import net
from support.case import check, check_equal, test
from support.name_records import DNSMASQ, EVERY_SECOND, Load, addresses, named, read_line, servers, where
from support.names import NameServer, RESOLVER
from support.own_network import NameServer as SilentNameServer, SLOW_RESOLVER, own_names, own_network
from support.server import Counted
from support.upstreams import config


@test(needs=DNSMASQ)
def moves_under_load(t):
    """when a name leads elsewhere new clients go there within seconds, from IPv4 to IPv6 and back
    too; open connections stay, and no client fails"""
    front = t.address()
    with named(t, ("move.test", "127.0.1.1")) as (names, _, port):
        with t.daemon(config(front, {"only": f"move.test:{port}"}, EVERY_SECOND)) as daemon, \
                Load(front), contextlib.ExitStack() as stack:
            stayed = [stack.enter_context(net.connect(front))]
            check_equal(read_line(stayed[0]), "127.0.1.1", "the first address")
            for now in ("127.0.1.2", "::1", "127.0.1.3"):
                names.changes([("move.test", now)])
                shown = (f"[{now}]" if ":" in now else now) + f":{port}"
                line = f"notice.*move.test.*resolves to other addresses: {re.escape(shown)}$"
                t.eventually(lambda: daemon.log_lines(line), f"the log says {shown}")
                check_equal(addresses(front, 20), {now}, "where new clients are led to")
                stayed.append(stack.enter_context(net.connect(front)))
                check_equal(read_line(stayed[-1]), now, "where one more is led to")
                for client in stayed:
                    check_equal(net.exchange(client, b"still here"), b"still here", "the echo")
            check_equal(len(daemon.log_lines("resolves to other addresses")), 3, "log lines")


@test(needs=DNSMASQ)
def gets_a_second_address(t):
    """a name that gets a second address leads to that one when nobody listens at the first any
    more; to be told the same again is no news"""
    front = t.address()
    own_network()
    own_names(t, "dns", servers=RESOLVER)
    port = t.port()
    both = [("two.test", "127.0.1.1"), ("two.test", "127.0.1.2")]
    with NameServer(t, both[:1]) as names, Counted(f"127.0.1.2:{port}", greets=True):
        with t.daemon(config(front, {"only": f"two.test:{port}"}, EVERY_SECOND)) as daemon:
            with Counted(f"127.0.1.1:{port}", greets=True):
                check_equal(where(front), "127.0.1.1", "where the first client is led to")
                names.changes(both)
                line = "notice.*two.test.*resolves to other addresses: .* and 1 more"
                t.eventually(lambda: daemon.log_lines(line), "the log says so")
            check_equal(addresses(front, 20), {"127.0.1.2"}, "where clients are led to then")
            asked = names.asked("two.test")
            t.eventually(lambda: names.asked("two.test") >= asked + 2, "it is asked again")
            check_equal(len(daemon.log_lines("resolves to other addresses")), 1, "log lines")


@test(needs=DNSMASQ)
def first_state_of_one_that_comes(t):
    """with initial_state = checked a server that a name brings, at which nobody listens, gets no client, the first
    time and when it is brought back; one that serves gets clients after its first check"""
    front = t.address()
    own_network()
    own_names(t, "dns", servers=RESOLVER)
    port = t.port()
    works, dead, other = ("two.test", "127.0.1.1"), ("two.test", "127.0.1.2"), ("two.test", "127.0.1.3")
    options = (EVERY_SECOND + "check = tcp\ncheck_interval = 1h\ninitial_state = checked\nretries = 0\n"
               "eject_failures = 0\n")
    with NameServer(t, [works]) as names, Counted(f"127.0.1.1:{port}", greets=True), \
            Counted(f"127.0.1.3:{port}", greets=True):
        with t.daemon(config(front, {"only": f"two.test:{port} resolve=each"}, options)) as daemon, Load(front):
            for times, brought in ((1, [works, dead]), (2, [works, dead])):
                names.changes(brought)
                t.eventually(lambda: len(daemon.log_lines("127.0.1.2.*: down: its first check failed")) == times,
                             "the dead one was checked", within=10)
                names.changes([works])
                t.eventually(lambda: len(servers(daemon)) == 1, "it is withdrawn", within=10)
            names.changes([works, other])
            t.eventually(lambda: addresses(front, 10) == {"127.0.1.1", "127.0.1.3"}, "both are used", within=10)
            check_equal(daemon.log_lines("cannot connect"), [], "failures")


@test(needs=DNSMASQ)
def hundred_names(t):
    """a hundred names that all lead elsewhere at once are all followed within seconds, under load;
    open connections stay"""
    front = t.address()
    hosts = range(1, 101)
    first, then = ([(f"s{i}.test", f"127.{place}.0.{i}") for i in hosts] for place in (1, 2))
    with named(t, *first) as (names, _, port):
        servers = {f"s{i}": f"s{i}.test:{port}" for i in hosts}
        with t.daemon(config(front, servers, EVERY_SECOND)) as daemon, \
                contextlib.ExitStack() as stack:
            check_equal(addresses(front, 100), {to for _, to in first}, "addresses")
            stayed = [stack.enter_context(net.connect(front)) for _ in hosts]
            led_to = [read_line(client) for client in stayed]
            with Load(front):
                names.changes(then)
                t.eventually(lambda: len(daemon.log_lines("resolves to other addresses")) >= 100,
                             "all are followed")
            check_equal(addresses(front, 100), {to for _, to in then}, "addresses then")
            check(all(to.startswith("127.1.") for to in led_to), "the first ones")
            for client in stayed:
                check_equal(net.exchange(client, b"still here"), b"still here", "the echo")
            check_equal(len(daemon.log_lines("resolves to other addresses")), 100, "log lines")


@test(needs=DNSMASQ, plain_only=True)
def how_often(t):
    """a name is asked for every resolve_interval, not much more often; with 0 it is asked for once"""
    fronts = t.address(), t.address()
    with named(t, ("often.test", "127.0.1.1"), ("once.test", "127.0.1.2")) as (names, _, port):
        text = config(fronts[0], {"only": f"often.test:{port}"}, EVERY_SECOND)
        once = config(fronts[1], {"only": f"once.test:{port}"}, "resolve_interval = 0")
        text += once.replace("front", "front2").replace("back", "back2")
        began = time.monotonic()
        with t.daemon(text) as daemon:
            t.eventually(lambda: names.asked("often.test") >= 4, "it is asked for")
            took = time.monotonic() - began
            check(took >= 2, f"it was asked for four times within {took:.3f} s")
            check_equal(names.asked("once.test"), 1, "times that the other was asked for")
            check_equal([where(front) for front in fronts], ["127.0.1.1", "127.0.1.2"], "addresses")
            check(not daemon.log_lines("resolves to other addresses"), "the log has news")


@test(needs=DNSMASQ)
def name_withdrawn(t):
    """a name that is taken out of the name server stays where it was for resolve_hold, under load, and
    the log says so once"""
    front = t.address()
    with named(t, ("gone.test", "127.0.1.1")) as (names, _, port):
        servers = {"only": f"gone.test:{port}"}
        with t.daemon(config(front, servers, EVERY_SECOND)) as daemon, Load(front):
            names.changes([])
            line = "warning.*gone.test.*no such name; its addresses stay in use for 30 s; trying again within 1 s"
            t.eventually(lambda: daemon.log_lines(line), "the log says so")
            time.sleep(1)
            check_equal(addresses(front, 20), {"127.0.1.1"}, "addresses")
            check_equal(len(daemon.log_lines("warning.*gone.test")), 1, "warnings")


@test(needs=DNSMASQ, timeout=40, plain_only=True)
def name_server_goes_and_returns(t):
    """while the name server is away all stays as it was, said once; a second later it is asked again,
    and a name that was unknown at the start is known then"""
    front = t.address()
    with named(t, ("known.test", "127.0.1.1")) as (names, _, port):
        servers = {"known": f"known.test:{port}", "late": f"late.test:{port}"}
        with t.daemon(config(front, servers, EVERY_SECOND)) as daemon, Load(front):
            check(daemon.log_lines("warning.*late.test.*no such name; the server gets no clients; "
                                   "trying again within 1 s"),
                  "the log does not say that a name is not known")
            names.stop()
            line = ("warning.*known.test.*no name server answers; its addresses stay in use; "
                    "trying again within 1 s")
            t.eventually(lambda: daemon.log_lines(line), "the log says so")
            check_equal(addresses(front, 20), {"127.0.1.1"}, "addresses while it is away")
            names.write([("known.test", "127.0.1.1"), ("late.test", "127.0.1.2")])
            names.start()
            for name, address in (("late", "127.0.1.2"), ("known", "127.0.1.1")):
                t.eventually(lambda: daemon.log_lines(f"notice.*{name}.test.*: {address}:{port}$"),
                             f"the log says that {name}.test is known", within=14)
            check_equal(addresses(front, 20), {"127.0.1.1", "127.0.1.2"}, "addresses then")
            check_equal(len(daemon.log_lines("warning.*known.test")), 1, "warnings")
            check(not daemon.log_lines("resolves to other addresses"), "the log says that a name moved")


@test(needs=DNSMASQ)
def required_names(t):
    """resolve_required = yes: without a name reactord does not start, and says which"""
    front = t.address()
    own_network()
    own_names(t, "dns", servers=RESOLVER)
    with NameServer(t, [("here.test", "127.0.1.1")]):
        text = config(front, {"a": "here.test:7", "b": "nowhere.test:7"}, "resolve_required = yes")
        done = t.reactord("-c", t.write("required.ini", text))
        check_equal(done.code, 3, "the exit status")
        check("server b (nowhere.test:7): the name has no address yet: there is no such name; " in done.err,
              f"the log is {done.err}")


@test(each={"name": ("far.test:7", "far.test:7 resolve=one", "_far._tcp.test")})
def disabled_name(t, name):
    """{name}: the name of a server that is disabled is not looked up, so that the start does not
    wait for it; the statistics have the server"""
    front = t.address()
    with SilentNameServer() as name_server, Counted(t.address()) as near:
        own_names(t, "dns", servers=SLOW_RESOLVER)
        with t.daemon(config(front, {"near": near.address, "far": name + " disabled"},
                             "resolve_required = yes")) as daemon:
            with net.connect(front) as client:
                check_equal(net.exchange(client, b"x"), b"x", "the echo")
            check_equal([line.split()[2] for line in daemon.statistics("server back/far state")],
                        ["state=disabled"], "the state of the server")
            check(not daemon.log_lines("still being looked up"), "the start waited for it")
        check(not name_server.asked(), "the name server was asked")


@test()
def known_while_clients_wait(t):
    """a client that waits because the other servers are full gets a server as soon as its name is
    known"""
    with SilentNameServer() as name_server, contextlib.ExitStack() as stack:
        own_names(t, "dns", servers=SLOW_RESOLVER)
        front, port = t.address(), t.port()
        near = stack.enter_context(Counted(t.address()))
        stack.enter_context(Counted(f"127.0.0.1:{port}", greets=True))
        servers = {"near": near.address + " max_connections=1", "far": f"far.test:{port}"}
        with t.daemon(config(front, servers, "queue_timeout = 1m")), net.connect(front) as holder:
            check_equal(net.exchange(holder, b"x"), b"x", "the echo")
            waiting = net.Task(where, front)
            time.sleep(0.5)
            check(waiting.is_alive(), "it did not wait")
            name_server.speak()
            check_equal(waiting.result(10 * t.scale), "127.0.0.1", "the server")
