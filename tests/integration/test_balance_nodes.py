"""balance: nodes that do not talk to each other send a client to the same server: hash_server = address."""

import contextlib
import os
import socket
from collections import Counter

from support import net
from support.case import check, check_equal, test
from support.fleet import Fleet, balanced, client_of, visit
from support.name_records import DNSMASQ, EVERY_SECOND, named, read_line
from support.network import ip
from support.own_network import own_network
from support.pair import literal
from test_checks import CHECKED, wait_down, wait_up

THEME = "balance"
HASHES = [{"method": "source_hash"}, {"method": "maglev"}]
HOSTS = [f"127.0.{1 + i // 100}.{1 + i % 100}" for i in range(120)]


def placed(front, hosts=HOSTS):
    """Which server a client of each address gets."""
    return {host: visit(front, host) for host in hosts}


def other_lines(lines):
    """The same servers in another order, under other IDs: each ID that stays is another server's."""
    return dict(zip(lines, reversed(lines.values())))


def spread_well(servers):
    """120 clients on five servers: none has fewer than 8 but once in 10^5."""
    spread = Counter(servers)
    check(len(spread) == 5 and min(spread.values()) >= 8, f"clients of the servers: {spread}")


@test(each=HASHES)
def other_ids(t, method):
    """{method}: two nodes with other IDs, another order of lines and other numbers of workers send each client to the same
    server by its address, from a reload on and after a restart; by ID they do not"""
    fronts = [t.address() for _ in range(2)]
    with Fleet(t, 5) as fleet:
        lines = fleet.lines("", "weight=2")
        by_address = {"hash_server": "address"}
        other = balanced(fronts[1], other_lines(lines), method, workers=1, **by_address)
        with t.daemon(balanced(fronts[0], lines, method)) as a, t.daemon(other):
            by_id, wanted = placed(fronts[0]), placed(fronts[1])
            spread_well(wanted.values())
            check(sum(by_id[host] != wanted[host] for host in HOSTS) > len(HOSTS) / 2, "by ID they agree, too")
            a.reload(balanced(fronts[0], lines, method, **by_address))
            check_equal(placed(fronts[0]), wanted, "the servers after the reload")
        with t.daemon(other):
            check_equal(placed(fronts[1]), wanted, "the servers after a restart")


@test(each=HASHES)
def added_by_hand(t, method):
    """{method}: a server that a node was told of by `reactorctl add` gets the clients that it has at a node with its line"""
    fronts, admin = [t.address() for _ in range(2)], t.path("admin.sock")
    with Fleet(t, 5) as fleet:
        lines = fleet.lines()
        fewer = dict(list(lines.items())[:4])
        text = f"[admin]\naddress = {admin}\n" + balanced(fronts[0], fewer, method, hash_server="address")
        with t.daemon(text), t.daemon(balanced(fronts[1], other_lines(lines), method, hash_server="address")):
            before, wanted = placed(fronts[0]), placed(fronts[1])
            done = t.reactorctl("-s", admin, "add", "back/by-hand", lines["s4"].strip())
            check_equal((done.code, done.err), (0, ""), "reactorctl add")
            check_equal(placed(fronts[0]), wanted, "the servers")
            check_equal({host for host in HOSTS if before[host] != wanted[host]},
                        {host for host in HOSTS if wanted[host] == 4}, "the clients that moved")


@test(each=HASHES)
def a_server_goes(t, method):
    """{method}: when a server goes down two nodes send its clients to the same other ones, and back when it is up"""
    fronts = [t.address() for _ in range(2)]
    with Fleet(t, 5, ready=True) as fleet, contextlib.ExitStack() as stack:
        lines = fleet.lines()
        daemons = [stack.enter_context(t.daemon(balanced(front, these, method, hash_server="address", **CHECKED)))
                   for front, these in zip(fronts, (lines, other_lines(lines)))]
        ids = ["s3", "s1"]  # of the same server
        first = placed(fronts[0])
        check_equal(placed(fronts[1]), first, "the servers")
        fleet[3].is_up(False)
        for daemon, name in zip(daemons, ids):
            wait_down(t, daemon, name)
        then = placed(fronts[0])
        check(3 not in then.values(), "some clients are still there")
        check_equal(placed(fronts[1]), then, "the servers without one")
        fleet[3].is_up(True)
        for daemon, name in zip(daemons, ids):
            wait_up(t, daemon, name)
        check_equal((placed(fronts[0]), placed(fronts[1])), (first, first), "the servers with all")


def led_to(front):
    """The address that a client of each address is led to."""
    found = {}
    for host in HOSTS[:60]:
        with contextlib.closing(socket.socket()) as s:
            s.settimeout(net.LIMIT_S)
            s.bind((host, 0))
            s.connect(net.parse(front)[1])
            found[host] = read_line(s)
    return found


@test(needs=DNSMASQ, each=HASHES)
def other_names(t, method):
    """{method}: nodes that know the same servers by a name, by another name whose answers have another order, and by
    addresses send each client to the same one, also while no name server answers"""
    fronts = [t.address() for _ in range(3)]
    addresses = [f"127.0.1.{i}" for i in (3, 1, 4, 2)]
    records = [("here.test", address) for address in addresses]
    records += [("there.test", address) for address in reversed(addresses)]
    with named(t, *records) as (names, _, port):
        lines = [{"s": f"here.test:{port}"}, {"x": f"there.test:{port}"},
                 {f"n{i}": f"{address}:{port}" for i, address in enumerate(sorted(addresses))}]
        with contextlib.ExitStack() as stack:
            daemons = [stack.enter_context(t.daemon(balanced(front, these, method, hash_server="address") + EVERY_SECOND))
                       for front, these in zip(fronts, lines)]
            wanted = led_to(fronts[0])
            check_equal(set(wanted.values()), set(addresses), "the servers in use")
            check_equal([led_to(front) for front in fronts[1:]], [wanted, wanted], "the servers")
            asked = names.asked("there.test")
            t.eventually(lambda: names.asked("there.test") > asked, "the name is looked up again")
            names.stop()
            for daemon in daemons[:2]:
                t.eventually(lambda daemon=daemon: daemon.log_lines("cannot look up the name"), "a lookup has failed")
            check_equal([led_to(front) for front in fronts], [wanted] * 3, "the servers without a name server")


@test()
def same_address_twice(t):
    """of two lines with the same address one is enough: the clients are those of the address, at a node with one line, too,
    and beyond max_connections of the first line they go to the second"""
    fronts = [t.address() for _ in range(2)]
    with Fleet(t, 5) as fleet:
        lines = fleet.lines("max_connections=1")
        twice = {**lines, "again": lines["s0"].split()[0]}
        with t.daemon(balanced(fronts[0], fleet.lines(), "source_hash", hash_server="address")), \
                t.daemon(balanced(fronts[1], twice, "source_hash", hash_server="address")):
            wanted = placed(fronts[0])
            check_equal(placed(fronts[1]), wanted, "the servers")
            host = next(host for host in HOSTS if wanted[host] == 0)
            held = [client_of(fronts[1], host) for _ in range(3)]
            check_equal([number for _, number in held], [0, 0, 0], "the server of one client's connections")
            for s, _ in held:
                s.close()


@test(needs=["ip"])
def as_the_page_says(t):
    """the configuration of a node in reactord-fleet(7) is valid, and a router takes the routes of that page"""
    text = literal("[reactord]\ndrain_delay      =")
    check("hash_server" in text, f"not the one for many nodes: {text}")
    token = t.write("token", "0123456789abcdef0123456789abcdef\n")
    os.chmod(token, 0o600)
    done = t.reactord("-t", "-c", t.write("c.ini", text.replace("/etc/reactord/admin.token", token)))
    check_equal(done.code, 0, f"exit code of -t, which says {done.err!r}")
    own_network()
    for words in ("link add eth1 type veth peer name nodes", "address add 10.2.0.254/24 dev eth1",
                  "link set eth1 up", "link set nodes up"):
        ip(*words.split())
    routes = literal("sysctl -w net.ipv4.fib_multipath_hash_policy=1") + literal("ip nexthop replace id 100")
    for line in routes.replace("\\e\n", "").splitlines():
        done = t.run(*line.split())
        check_equal((done.code, done.err), (0, ""), line)
    check("via 10.2.0.2" in t.run("ip", "route", "show", "10.99.0.1").out, "no route to node 2")
