"""balance: source_hash and maglev: one address, one server, and a bound on the load."""

import os
from collections import Counter

from support.case import check, check_equal, test
from support.fleet import Fleet, balanced, client_of, close_all, visit
from test_checks import CHECKED, wait_down, wait_up

THEME = "balance"
HASHES = [{"method": "source_hash"}, {"method": "maglev"}]
HOSTS = [f"127.0.{1 + i // 100}.{1 + i % 100}" for i in range(200)]


def placed(front, hosts=HOSTS):
    """Which server a client of each address gets."""
    return {host: visit(front, host) for host in hosts}


@test(each=HASHES)
def one_address_one_server(t, method):
    """{method}: 200 client addresses are spread over five servers, and each has the same one, on all
    workers, by a listener for IPv4 and one for both, after a restart and in another order of the file"""
    front, port = t.address(), t.port()
    with Fleet(t, 5) as fleet:
        lines = fleet.lines()
        with t.daemon(balanced(f"{front}, *:{port}", lines, method)):
            first = placed(front)
            spread = Counter(first.values())
            # 40 each; of the ring the standard deviation is 6.2.
            check(min(spread[i] for i in range(5)) >= 12, f"addresses of the servers: {spread}")
            for _ in range(2):
                check_equal(placed(front), first, "the servers")
            check_equal(placed(f"127.0.0.1:{port}"), first, "the servers by the listener for both")
        with t.daemon(balanced(front, dict(reversed(lines.items())), method, workers=2)):
            check_equal(placed(front), first, "the servers in another order")


@test(each=HASHES)
def by_weight(t, method):
    """{method}: a server of weight 3 has about three addresses of four"""
    front = t.address()
    with Fleet(t, 2) as fleet, t.daemon(balanced(front, fleet.lines("weight=3"), method)):
        spread = Counter(placed(front).values())
        # The standard deviation is 6.1, and the ring's own error is about as much.
        check(115 <= spread[0] <= 185, f"addresses of the servers: {spread}")


@test(each=HASHES)
def only_its_clients_move(t, method):
    """{method}: when one of five servers goes away only its clients move, each to a server it then stays
    at, and they return with it"""
    front = t.address()
    with Fleet(t, 5, ready=True) as fleet:
        with t.daemon(balanced(front, fleet.lines(), method, **CHECKED)) as daemon:
            first = placed(front)
            fleet[3].is_up(False)
            wait_down(t, daemon, "s3")
            then = placed(front)
            moved = [host for host in HOSTS if then[host] != first[host]]
            check_equal({first[host] for host in moved}, {3}, "whose clients moved")
            check(3 not in then.values(), "some are still there")
            check(len({then[host] for host in moved}) >= 3, "they all moved to the same servers")
            check_equal(placed(front, moved), {host: then[host] for host in moved}, "where they are then")
            fleet[3].is_up(True)
            wait_up(t, daemon, "s3")
            check_equal(placed(front), first, "the servers afterwards")


@test(each=HASHES)
def retry_of_a_client(t, method):
    """{method}: a client whose server refuses always gets the same other one"""
    front = t.address()
    with Fleet(t, 4) as fleet:
        lines = fleet.lines()
        lines["s0"] = t.address()
        with t.daemon(balanced(front, lines, method, eject_failures=0)):
            first = placed(front, HOSTS[:60])
            check(0 not in first.values(), "nobody is there")
            check_equal(placed(front, HOSTS[:60]), first, "the servers")


BOUNDS = [{"method": "source_hash", "factor": 125, "most": 25}, {"method": "maglev", "factor": 125, "most": 25},
          {"method": "source_hash", "factor": 200, "most": 40}, {"method": "source_hash", "factor": 101, "most": 21},
          {"method": "source_hash", "factor": 0, "most": 100}, {"method": "maglev", "factor": 0, "most": 100}]


@test(each=BOUNDS)
def hash_balance_factor(t, method, factor, most):
    """{method}: of 100 connections that one address holds no server of five has more than {most}
    with hash_balance_factor = {factor}"""
    front = t.address()
    with Fleet(t, 5) as fleet:
        with t.daemon(balanced(front, fleet.lines(), method, hash_balance_factor=factor)):
            clients = [client_of(front, "127.0.9.9") for _ in range(100)]
            held = fleet.held
            check_equal((sum(held), max(held)), (100, most), f"all, and the most, of {held}")
            close_all(clients)


@test(each=[{"method": method, "options": options} for method in ("source_hash", "maglev")
            for options in ({}, {"hash_balance_factor": 125})])
def idle_group(t, method, options):
    """{method}: 400 addresses visit an idle group of eight servers twice, and each has the same server both
    times; {options}"""
    front = t.address()
    hosts = [f"127.1.{1 + i // 100}.{1 + i % 100}" for i in range(400)]
    with Fleet(t, 8) as fleet, t.daemon(balanced(front, fleet.lines(), method, **options)):
        check_equal(placed(front, hosts), placed(front, hosts), "the servers")


@test(each=HASHES)
def unix_clients(t, method):
    """{method}: clients of a unix socket, which have no address, are spread evenly over all servers"""
    front = t.path("front.sock")
    with Fleet(t, 4) as fleet, t.daemon(balanced(front, fleet.lines(), method)):
        spread = Counter(visit(front) for _ in range(400))
        # 100 each; the standard deviation is 8.7.
        check(all(55 <= spread[i] <= 145 for i in range(4)), f"clients of the servers: {spread}")


@test(each=HASHES)
def unix_clients_with_a_path(t, method):
    """{method}: clients of a unix socket that are bound to a path have one server for each path"""
    front = t.path("front.sock")
    paths = [t.path(f"client{i}.sock") for i in range(20)]
    with Fleet(t, 4) as fleet, t.daemon(balanced(front, fleet.lines(), method)):
        first = placed(front, paths)
        check(len(set(first.values())) > 1, f"all are at one server: {first}")
        for path in paths:
            os.unlink(path)
        check_equal(placed(front, paths), first, "the servers")
