"""names: names of many addresses and services: each address is a server, by weight and priority."""

import collections
import contextlib
import socket
import struct
import subprocess

from support import net
from support.admin import post, section
from support.case import check, check_equal, test
from support.name_records import DNSMASQ, EVERY_SECOND, Load, addresses, named, read_line, servers, where
from support.names import NameServer, RESOLVER
from support.own_network import own_names, own_network
from support.server import Counted
from support.upstreams import config

THEME = "names"


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
