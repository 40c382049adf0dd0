"""names: where a server's host name leads may change while clients come, and the name server may
go."""

import collections
import contextlib
import re
import socket
import struct
import subprocess
import threading
import time

from support import net
from support.admin import post, section
from support.case import check, check_equal, test
from support.names import RESOLVER, NameServer
from support.server import Counted
from test_upstream import SLOW_RESOLVER, config, own_names, own_network
from test_upstream import NameServer as SilentNameServer

DNSMASQ = ("dnsmasq",)
EVERY_SECOND = "resolve_interval = 1s\n"


@contextlib.contextmanager
def named(t, *records):
    """A name server, in a network of our own, and a server that is at all its addresses at the same
    port, and says at which it was reached; gives both, and the port."""
    own_network()
    own_names(t, "dns", servers=RESOLVER)
    port = t.port()
    with NameServer(t, records) as names, Counted(f"[::]:{port}", greets=True) as server:
        yield names, server, port


def read_line(s):
    line = b""
    while not line.endswith(b"\n"):
        line += net.read_exactly(s, 1)
    return line[:-1].decode()


def where(front):
    """The address that a new client is led to."""
    with net.connect(front) as client:
        return read_line(client)


def addresses(front, count):
    return {where(front) for _ in range(count)}


def servers(daemon):
    """The names of the group's servers, as SIGRTMIN writes them."""
    return [re.search(r"server back/(\S+) state", line).group(1)
            for line in daemon.statistics("server back/") if " state=" in line]


class Records:
    """A name server on 127.0.0.1:53, in a network of our own, that answers every question with the
    same SRV records (host, port, priority, weight), each time beginning with another one."""

    def __init__(self, *records):
        own_network()
        self.records = collections.deque(self._record(*record) for record in records)
        self.count = 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))

    def __enter__(self):
        net.Task(self._answer)
        return self

    def __exit__(self, *_):
        self.socket.close()

    @staticmethod
    def _record(host, port, priority, weight):
        """RFC 1035, section 3.2.1; the name is a pointer to that of the question."""
        labels = [label.encode() for label in host.split(".") if label]
        data = struct.pack("!HHH", priority, weight, port)
        data += b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
        return struct.pack("!HHHIH", 0xC00C, 33, 1, 0, len(data)) + data

    def _answer(self):
        while True:
            query, client = self.socket.recvfrom(512)
            question = query[12:query.index(b"\0", 12) + 5]
            header = query[:2] + struct.pack("!HHHHH", 0x8180, 1, len(self.records), 0, 0)
            self.socket.sendto(header + question + b"".join(self.records), client)
            self.records.rotate()
            self.count += 1


class Load:
    """Clients that come one after the other, on four threads, until the end of the block; each must
    be served."""

    def __init__(self, front):
        self.front = front
        self.over = threading.Event()
        self.clients = []

    def __enter__(self):
        self.clients = [net.Task(self._come) for _ in range(4)]
        return self

    def __exit__(self, error, *_):
        self.over.set()
        if not error:
            for client in self.clients:
                client.result()

    def _come(self):
        count = 0
        while count < 6 or not self.over.is_set():
            where(self.front)
            count += 1
            time.sleep(0.005)


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
def each_address_is_a_server(t):
    """every address of a name is a server of its own: clients are spread over them, evenly; those
    that come and go in the name server do so here, under load, and open connections stay"""
    front = t.address()

    def records(*hosts):
        return [("each.test", f"127.0.1.{host}") for host in hosts]

    with named(t, *records(1, 2, 3)) as (names, _, port):
        with t.daemon(config(front, {"s": f"each.test:{port}"}, EVERY_SECOND)) as daemon, \
                contextlib.ExitStack() as stack:
            stayed = [stack.enter_context(net.connect(front)) for _ in range(6)]
            led_to = sorted(read_line(client) for client in stayed)
            check_equal(led_to, sorted(["127.0.1.1", "127.0.1.2", "127.0.1.3"] * 2), "addresses")
            with Load(front):
                names.changes(records(2, 4, 5, 6))
                t.eventually(lambda: addresses(front, 8) == {f"127.0.1.{i}" for i in (2, 4, 5, 6)},
                             "they come and go")
                names.changes(records(6))
                t.eventually(lambda: addresses(front, 8) == {"127.0.1.6"}, "one is left")
            for client in stayed:
                check_equal(net.exchange(client, b"still here"), b"still here", "the echo")
            check_equal(servers(daemon), [f"s@127.0.1.6:{port}"], "servers in the statistics")


@test(needs=DNSMASQ)
def one_server_of_many_addresses(t):
    """resolve=one: a name is one server, which is at the first of its addresses that answers"""
    front = t.address()
    own_network()
    own_names(t, "dns", servers=RESOLVER)
    port = t.port()
    with NameServer(t, [("one.test", "127.0.1.1"), ("one.test", "127.0.1.2")]), \
            Counted(f"127.0.1.2:{port}", greets=True), \
            t.daemon(config(front, {"s": f"one.test:{port} resolve=one"})) as daemon:
        check_equal(addresses(front, 20), {"127.0.1.2"}, "addresses")
        check_equal(servers(daemon), ["s"], "servers")
        check(not daemon.log_lines("cannot connect"), "a try failed")


@test(needs=DNSMASQ)
def service_records(t):
    """a service is where its SRV records say, by weight and priority; when they change under load
    clients follow, and none fails"""
    front = t.address()
    service = "_app._tcp.svc.test"
    with named(t, *[(f"h{i}.test", f"127.0.1.{i}") for i in range(1, 5)]) as (names, _, port):
        names.serves((service, "h1.test", port, 10, 30), (service, "h2.test", port, 10, 10),
                     (service, "h3.test", port, 20, 0))
        with t.daemon(config(front, {"s": service}, EVERY_SECOND)) as daemon:
            led_to = [where(front) for _ in range(40)]
            check_equal((led_to.count("127.0.1.1"), led_to.count("127.0.1.2")), (30, 10), "shares")
            with Load(front):
                names.serves((service, "h3.test", port, 20, 0), (service, "h4.test", port, 30, 0))
                t.eventually(lambda: addresses(front, 8) == {"127.0.1.3"}, "they are followed",
                             within=14)
                names.serves((service, "h4.test", port, 30, 0))
                t.eventually(lambda: addresses(front, 8) == {"127.0.1.4"}, "again", within=14)
            check(not daemon.log_lines("cannot connect"), "a try failed")


@test()
def odd_service_records(t):
    """records of a service that name no host are left out, whoever wrote them; of two that name one
    host and port the one of the lower priority counts, in whatever order they come"""
    front = t.address()
    own_names(t, "dns", servers=RESOLVER)
    port = t.port()
    with Records(("*", port, 1, 1), ("/run/some", port, 1, 1), ("-a.test", port, 1, 1),
                 ("127.0.1.9", 0, 1, 1), (".", port, 1, 1), ("127.0.1.1", port, 10, 7),
                 ("127.0.1.1", port, 20, 5), ("127.0.1.2", port, 10, 9),
                 ("127.0.1.1", port, 10, 3)) as names, \
            Counted(f"[::]:{port}", greets=True), \
            t.daemon(config(front, {"s": "_app._tcp.svc.test"}, EVERY_SECOND)) as daemon:
        t.eventually(lambda: names.count > 4, "it is asked again and again", within=10)
        check_equal(addresses(front, 16), {"127.0.1.1", "127.0.1.2"}, "where clients are led to")
        check_equal(servers(daemon), [f"s@127.0.1.{i}:{port}" for i in (1, 2)], "servers")
        check(not daemon.log_lines("resolves to other addresses|cannot look up"), "something has changed")


@test(needs=DNSMASQ, plain_only=True)
def next_priority_when_the_first_fails(t):
    """hosts of the next priority are used while those of the first cannot be reached"""
    front = t.address()
    own_network()
    own_names(t, "dns", servers=RESOLVER)
    port = t.port()
    with NameServer(t, [("h1.test", "127.0.1.1"), ("h2.test", "127.0.1.2")]) as names:
        names.serves(*[("_app._tcp.svc.test", f"h{i}.test", port, i, 0) for i in (1, 2)])
        with Counted(f"127.0.1.2:{port}", greets=True), \
                t.daemon(config(front, {"s": "_app._tcp.svc.test"})):
            check_equal(addresses(front, 8), {"127.0.1.2"}, "while the first is away")
            with Counted(f"127.0.1.1:{port}", greets=True):
                t.eventually(lambda: addresses(front, 8) == {"127.0.1.1"}, "when it is there",
                             within=14)


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


@test(needs=DNSMASQ)
def one_address_by_an_administrator(t):
    """an administrator drains one address of a name: new clients go to the other, until it is enabled; a
    weight of 0 is of the one address, too"""
    front, admin = t.address(), t.path("admin.sock")
    both = {"127.0.1.1", "127.0.1.2"}
    with named(t, *(("many.test", address) for address in sorted(both))) as (_, _, port), \
            t.daemon(section(admin) + config(front, {"a": f"many.test:{port}"})):
        check_equal(addresses(front, 8), both, "addresses")
        for body, then in (({"state": "drain"}, {"127.0.1.2"}), ({"state": "enable"}, both),
                           ({"weight": 0}, {"127.0.1.2"}), ({"weight": 1}, both)):
            answer = post(admin, "/v1/server", {"server": f"back/a@127.0.1.1:{port}", **body})
            check_equal(answer.status, 200, f"status of {body}")
            t.eventually(lambda then=then: addresses(front, 8) == then, f"addresses after {body}")


@test(needs=DNSMASQ)
def drained(t):
    """reactorctl drain --wait waits for the sessions at all addresses of a name, also of those that it has
    no longer"""
    front, admin = t.address(), t.path("admin.sock")
    with named(t, ("many.test", "127.0.1.1"), ("many.test", "127.0.1.2")) as (names, _, port), \
            t.daemon(section(admin) + config(front, {"a": f"many.test:{port}"}, EVERY_SECOND)) as daemon:
        with net.connect(front) as client:
            other = {"127.0.1.1": "127.0.1.2", "127.0.1.2": "127.0.1.1"}[read_line(client)]
            names.changes([("many.test", other)])
            t.eventually(lambda: daemon.log_lines("many.test.*resolves to other addresses"), "it moves")
            with subprocess.Popen([t.reactorctl_path, "-s", admin, "drain", "back/a", "--wait"], cwd=t.dir,
                                  stdout=subprocess.PIPE) as waiting:
                check(b"back/a: draining" in waiting.stdout.readline(), "it does not drain")
                check_equal(net.exchange(client, b"still here"), b"still here", "the echo")
                check_equal(waiting.poll(), None, "it waits")
                client.close()
                check_equal(waiting.wait(t.scale * 10), 0, "exit code")
