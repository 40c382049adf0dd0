"""zones: what odd, failing, silent and short-lived answers of a name server do to servers."""

import collections
import contextlib
import socket
import statistics
import struct
import threading
import time

from support import net
from support.case import check, check_equal, test
from support.name_records import EVERY_SECOND, addresses, servers
from support.names import RESOLVER
from support.own_network import own_names, own_network
from support.server import Counted
from support.upstreams import config
from test_tls_upstream import Echo, authority, config as tls_config, served

A, AAAA, SRV = 1, 28, 33
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3
SILENT = "silent"


def labels(name):
    """A name as in a message; a label may hold any byte but a dot."""
    parts = [part.encode("latin-1") for part in name.split(".") if part]
    return b"".join(bytes([len(part)]) + part for part in parts) + b"\0"


class Zone:
    """A name server on 127.0.0.1:53 of an own network, by datagrams and, for long answers, streams.
    `hosts` is {name: address, SILENT or an error code}, or {name: {type: one or a list of these}};
    `services` is {name: [(host, port)]}; `asked`
    has the instants of the questions for IPv4 addresses and services. With `dead` the first of two
    name servers, at `self.dead`, answers nothing. With `port` it is there, in this network, and the
    names of the system are as before."""

    def __init__(self, t, hosts, services=(), ttl=0, attempts=2, dead=False, port=None):
        if not port:
            own_network()
            resolver = RESOLVER.replace("attempts:2", f"attempts:{attempts}")
            own_names(t, "files dns", servers=("nameserver 127.0.0.2\n" if dead else "") + resolver)
        self.dead = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if not port:
            self.dead.bind(("127.0.0.2", 53))
            self.dead.setblocking(False)
        port = port or 53
        self.address = f"127.0.0.1:{port}"
        self.hosts, self.services, self.ttl = hosts, dict(services), ttl
        self.asked = collections.defaultdict(list)
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", port))
        self.listener = socket.create_server(("127.0.0.1", port))

    def __enter__(self):
        threading.Thread(target=self._serve_datagrams, daemon=True).start()
        threading.Thread(target=self._serve_streams, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.datagrams.close()
        self.listener.close()
        self.dead.close()

    def asked_dead(self):
        """The questions to the name server that is dead, (name, type), since the last call."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                query = self.dead.recv(512)
                found.append((_name(query), struct.unpack("!H", _question(query)[-4:-2])[0]))
        return found

    def _serve_datagrams(self):
        while True:
            try:
                query, client = self.datagrams.recvfrom(512)
            except OSError:
                return
            answer = self._answer(query)
            if answer and len(answer) > 512:
                answer = answer[:2] + b"\x83\x80" + answer[4:6] + bytes(6) + _question(query)
            if answer:
                self.datagrams.sendto(answer, client)

    def _serve_streams(self):
        while True:
            try:
                s = self.listener.accept()[0]
            except OSError:
                return
            with s:
                length, = struct.unpack("!H", net.read_exactly(s, 2))
                answer = self._answer(net.read_exactly(s, length))
                s.sendall(struct.pack("!H", len(answer)) + answer)

    def _answer(self, query):
        name, kind = _name(query), struct.unpack("!H", _question(query)[-4:-2])[0]
        if kind in (A, SRV):
            self.asked[name].append(time.monotonic())
        code, records = NO_ERROR, []
        if name in self.services:
            records = [struct.pack("!HHH", 1, 1, port) + labels(host)
                       for host, port in self.services[name] if kind == SRV]
        else:
            host = self.hosts.get(name, NO_SUCH_NAME)
            if isinstance(host, str) and host != SILENT:
                host = {A: host}
            if isinstance(host, dict):
                host = host.get(kind, [])
            if host == SILENT:
                return None
            if isinstance(host, int):
                code = host
            else:
                family = socket.AF_INET if kind == A else socket.AF_INET6
                records = [socket.inet_pton(family, a) for a in ([host] if isinstance(host, str) else host)]
        return (query[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0) +
                _question(query) + b"".join(struct.pack("!HHHIH", 0xC00C, kind, 1, self.ttl,
                                                        len(data)) + data for data in records))


def _question(query):
    return query[12:query.index(b"\0", 12) + 5]


def _name(query):
    parts, at = [], 12
    while query[at]:
        parts.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(parts)


def pauses(instants):
    return [then - now for now, then in zip(instants, instants[1:])]


@test()
def failures_and_the_interval(t):
    """after a lookup that failed the next one comes after resolve_interval, if that is less than 10 s"""
    with Zone(t, {"fails.test": SERVER_FAILURE}) as zone, \
            t.daemon(config(t.address(), {"s": "fails.test:7"}, EVERY_SECOND)) as daemon:
        check(daemon.log_lines("fails.test.*the name server fails; the server gets no clients; "
                               "trying again within 1 s"),
              "the log does not say so")
        # libc asks a server that fails twice.
        t.eventually(lambda: len(zone.asked["fails.test"]) >= 6, "it is asked again and again")


@test()
def names_spread(t):
    """names that were looked up together when it started are not looked up together again"""
    names = [f"n{i}.test" for i in range(100)]
    lines = {f"s{i}": f"{name}:7" for i, name in enumerate(names)}
    with Zone(t, {name: "127.0.1.1" for name in names}, ttl=60) as zone, \
            t.daemon(config(t.address(), lines, "resolve_interval = 4s\n")):
        t.eventually(lambda: all(len(zone.asked[name]) >= 2 for name in names), "all are asked")
        first = sorted(zone.asked[name][0] for name in names)
        second = sorted(zone.asked[name][1] for name in names)
        check(second[-1] - second[0] > 1, f"all came within {second[-1] - second[0]:.3f} s; the "
              f"first ones within {first[-1] - first[0]:.3f} s")


@test()
def ttl_within_bounds(t):
    """the TTL of an answer decides when the next lookup is, within resolve_interval_min and
    resolve_interval"""
    names = {"min": 1, "none": 300}
    for name, least in names.items():
        options = f"resolve_interval = 300s\nresolve_interval_min = {least}s\n"
        text = config(t.address(), {"s": f"{name}.test:7"}, options)
        names[name] = text.replace("front", f"front-{name}").replace("back", f"back-{name}")
    with Zone(t, {f"{name}.test": "127.0.1.1" for name in names}, ttl=1) as zone, \
            t.daemon("".join(names.values())):
        t.eventually(lambda: len(zone.asked["min.test"]) >= 3, "it is asked for again",
                     within=20)
        check(min(pauses(zone.asked["min.test"])) > 0.9, "it was asked for too often")
        check_equal(len(zone.asked["none.test"]), 1, "times that the other was asked for")


@test()
def hosts_file_comes_first(t):
    """with `hosts: files dns` a name in /etc/hosts is never asked of a name server, and another is"""
    front = t.address()
    with Zone(t, {"here.test": "127.0.1.9", "there.test": "127.0.1.2"}) as zone:
        port = t.port()
        own_names(t, "files dns", hosts="127.0.1.1 other.test here.test # a comment\n",
                  servers=RESOLVER)
        lines = {name: f"{name}.test:{port}" for name in ("here", "there")}
        with Counted(f"[::]:{port}", greets=True), t.daemon(config(front, lines)):
            check_equal(addresses(front, 8), {"127.0.1.1", "127.0.1.2"}, "addresses")
            check_equal(len(zone.asked["here.test"]), 0, "times that here.test was asked for")


@test()
def odd_zone(t):
    """a service with two odd names and a host that fails is at its other three hosts; the log names
    the one that failed"""
    front, service = t.address(), "_app._tcp.odd.test"
    good = {f"h{i}.test": f"127.0.1.{i}" for i in range(3)}
    with Zone(t, {**good, "bad.test": SERVER_FAILURE}) as zone:
        port = t.port()
        hosts = ["a b.test", "bad.test", *good, "caf\xe9.test"]
        zone.services[service] = [(host, port) for host in hosts]
        with Counted(f"[::]:{port}", greets=True), \
                t.daemon(config(front, {"s": service}, EVERY_SECOND)) as daemon:
            check_equal(addresses(front, 10), set(good.values()), "addresses")
            t.eventually(lambda: len(zone.asked[service]) >= 4, "it is asked again")
            lines = daemon.log_lines(f"warning.*1 of 4 SRV hosts cannot be looked up, such as bad.test:{port}")
            check_equal(len(lines), 1, "warnings")
            check_equal(servers(daemon), [f"s@{a}:{port}" for a in sorted(good.values())], "servers")


@test(plain_only=True)
def service_of_hosts_without_answers(t):
    """a service of 255 hosts that do not answer is given up after five seconds, and holds the one thread of
    lookups for no longer than one of them takes"""
    front, service = t.address(), "_app._tcp.silent.test"
    hosts = {f"h{i}.test": SILENT for i in range(255)}
    with Zone(t, {**hosts, "other.test": "127.0.1.1"}, attempts=1) as zone:
        zone.services[service] = [(host, 7) for host in hosts]
        text = config(front, {"s": service, "other": "other.test:7"}, EVERY_SECOND)
        with t.daemon("[executor]\nlookup_threads = 1\n" + text):
            t.eventually(lambda: len(zone.asked["other.test"]) >= 7, "the other is asked for",
                         within=40)
            # By a datagram, which is too short for the answer, and by a stream.
            t.eventually(lambda: len(zone.asked[service]) >= 3, "the service is asked for again")
            first = sum(zone.asked[host][0] < zone.asked[service][2] for host in hosts if zone.asked[host])
            check(4 <= first <= 8, f"{first} hosts were asked for in five seconds")
            longest = max(pauses(zone.asked["other.test"])[1:])  # the first has the start's 3 s
            asked = sorted(zone.asked[host][0] for host in hosts if zone.asked[host])
            one = statistics.median(pauses(asked))
            # An interval and one of them; all that begin within five seconds would be six.
            check(longest < 2 * (1 + one), f"another name had a pause of {longest:.1f} s, one takes {one:.1f} s")


@test(each={"name": ("host", "service")})
def absolute_name_and_tls(t, name):
    """a {name} that ends in a dot: SNI and certificate are without the dot"""
    front, asked = t.address(), []
    with authority(t, "app.test") as (ca, context), Zone(t, {"app.test": "127.0.0.1"}) as zone:
        port = t.port()
        zone.services["_app._tcp.app.test"] = [("app.test", port)]
        context.sni_callback = lambda _, sni, __: asked.append(sni)
        address = {"host": f"app.test.:{port}", "service": "_app._tcp.app.test."}[name]
        with Echo(f"127.0.0.1:{port}", context), t.daemon(tls_config(front, {"a": address}, ca.path, name=None)):
            served(front)
            check_equal(asked, ["app.test"], "the name in SNI")


@test()
def localhost_is_not_asked_for(t):
    """localhost with a dot, too, is the loopback address, and no name server is asked"""
    front = t.address()
    with Zone(t, {"localhost": "127.0.1.9"}) as zone:
        port = t.port()
        with Counted(f"127.0.0.1:{port}", greets=True), t.daemon(config(front, {"a": f"localhost.:{port}"})):
            check_equal(addresses(front, 4), {"127.0.0.1"}, "addresses")
        check_equal(dict(zone.asked), {}, "questions")


@test()
def first_name_server_dead(t):
    """with the first of two name servers dead only the lookups that run at the start wait for it, A and AAAA at
    once; the others, and the next ones, ask the one that answers"""
    names, threads = [f"n{i}.test" for i in range(40)], 4
    lines = {f"s{i}": f"{name}:7" for i, name in enumerate(names)}
    with Zone(t, {name: "127.0.1.1" for name in names}, dead=True) as zone, \
            t.daemon(f"[executor]\nlookup_threads = {threads}\n" + config(t.address(), lines, EVERY_SECOND)) as daemon:
        t.eventually(lambda: len(daemon.log_lines("the name is known")) >= len(names), "all are known", within=30)
        asked = zone.asked_dead()
        check(2 <= len(asked) <= 2 * threads, f"the dead one was asked {len(asked)} times")
        first, now = asked[0][0], [name for name, _ in asked]
        check_equal(sorted(kind for name, kind in asked if name == first), [A, AAAA], "questions of one name")
        check_equal(max(now.count(name) for name in now), 2, "questions of a name")
        t.eventually(lambda: all(len(zone.asked[name]) >= 2 for name in names), "all are asked for again")
        check_equal(zone.asked_dead(), [], "questions to the dead one afterwards")


@test()
def lookups_shared(t):
    """40 lines with one name, in upstreams of their own, are one lookup at the start"""
    fronts, port = [t.address() for _ in range(40)], t.port()
    text = "".join(config(front, {"s": f"one.test:{port}"}, "").replace("front", f"front{i}").replace("back", f"back{i}")
                   for i, front in enumerate(fronts))
    with Zone(t, {"one.test": "127.0.0.1"}) as zone, Counted(f"127.0.0.1:{port}", greets=True), t.daemon(text):
        check_equal([addresses(front, 1) for front in fronts], [{"127.0.0.1"}] * 40, "addresses")
        check(len(zone.asked["one.test"]) < 10, f"it was asked for {len(zone.asked['one.test'])} times")


@test(each=[{"what": f"{kind}, {name}", "kind": kind, "failure": failure} for kind in ("A", "AAAA")
            for name, failure in (("SERVFAIL", SERVER_FAILURE), ("NOTIMP", 4), ("REFUSED", 5), ("silence", SILENT))])
def one_family_fails(t, what, kind, failure):
    """{what}: the addresses of that family stay in use while the other one is answered, and the log says so once"""
    front, ipv4, ipv6 = t.address(), ["127.0.1.1", "127.0.1.2"], ["::1"]
    with Zone(t, {"both.test": {A: ipv4, AAAA: ipv6}}, attempts=1) as zone:
        port = t.port()
        with Counted(f"[::]:{port}", greets=True), \
                t.daemon(config(front, {"s": f"both.test:{port}"}, EVERY_SECOND)) as daemon:
            check_equal(addresses(front, 12), {*ipv4, *ipv6}, "addresses")
            zone.hosts["both.test"] = {A: failure, AAAA: ipv6} if kind == "A" else {A: ipv4, AAAA: failure}
            family = "IPv4" if kind == "A" else "IPv6"
            line = f"warning.*cannot look up the {family} addresses of the name: .*they stay in use"
            t.eventually(lambda: daemon.log_lines(line), "the log says so")
            asked = len(zone.asked["both.test"])
            t.eventually(lambda: len(zone.asked["both.test"]) >= asked + 2, "it is asked for again")
            check_equal(addresses(front, 12), {*ipv4, *ipv6}, "addresses while it fails")
            zone.hosts["both.test"] = {A: ipv4[1:], AAAA: []}
            t.eventually(lambda: addresses(front, 6) == set(ipv4[1:]), "both families are followed again")
            check_equal(len(daemon.log_lines(line)), 1, "warnings")


DENIALS = ("NXDOMAIN", "no record", "no record of a service", "a service at the root", "resolve=one")


@test(each={"what": DENIALS})
def name_is_denied(t, what):
    """{what}: after resolve_hold the servers of the name go, with a warning, and come back with it"""
    front, service = t.address(), "_app._tcp.svc.test"
    is_service = "service" in what
    with Zone(t, {"app.test": "127.0.1.1"}) as zone:
        port = t.port()
        zone.services[service] = [("app.test", port)]
        line = service if is_service else f"app.test:{port}" + (" resolve=one" if what == "resolve=one" else "")
        with Counted(f"127.0.1.1:{port}", greets=True), \
                t.daemon(config(front, {"s": line}, EVERY_SECOND + "resolve_hold = 2s\n")) as daemon:
            check_equal(addresses(front, 4), {"127.0.1.1"}, "addresses")
            if is_service:
                zone.services[service] = [(".", port)] if "root" in what else []
            else:
                zone.hosts["app.test"] = {A: [], AAAA: []} if what == "no record" else NO_SUCH_NAME
            t.eventually(lambda: daemon.log_lines("warning.*no such name; its addresses stay in use for 2 s"), "said")
            check_equal(addresses(front, 4), {"127.0.1.1"}, "addresses during resolve_hold")
            t.eventually(lambda: daemon.log_lines("warning.*the name does not exist any more"), "its servers go")
            check_equal(net.fate(front), "reset", "the end of a client")
            zone.hosts["app.test"], zone.services[service] = "127.0.1.1", [("app.test", port)]
            t.eventually(lambda: daemon.log_lines("notice.*the name is known: 127.0.1.1"), "they come back")
            check_equal(addresses(front, 4), {"127.0.1.1"}, "addresses afterwards")


@test()
def name_is_denied_for_ever(t):
    """resolve_hold = never: the servers of a name that does not exist any more stay"""
    front = t.address()
    with Zone(t, {"app.test": "127.0.1.1"}) as zone:
        port = t.port()
        with Counted(f"127.0.1.1:{port}", greets=True), \
                t.daemon(config(front, {"s": f"app.test:{port}"}, EVERY_SECOND + "resolve_hold = never\n")) as daemon:
            zone.hosts["app.test"] = NO_SUCH_NAME
            t.eventually(lambda: daemon.log_lines("no such name; its addresses stay in use; "), "the log says so")
            asked = len(zone.asked["app.test"])
            t.eventually(lambda: len(zone.asked["app.test"]) >= asked + 2, "it is asked for again")
            check_equal(addresses(front, 4), {"127.0.1.1"}, "addresses")
