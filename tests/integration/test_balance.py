"""balance: which server a client gets, by each method, with clients on several workers at once."""

import time
from collections import Counter

from support import net
from support.case import check, check_equal, test
from support.fleet import Fleet, balanced, client_of, close_all, visit
from support.upstreams import config, statistics
from test_checks import CHECKED

CLIENTS = 8  # at a time


def many_visits(front, count):
    """So many short connections, some at a time; how many each server got."""
    def some():
        return Counter(visit(front) for _ in range(count // CLIENTS))

    return sum((task.result() for task in [net.Task(some) for _ in range(CLIENTS)]), Counter())


def many_held(front, count):
    """So many clients that stay, made some at a time, as (socket, server) pairs."""
    def some():
        return [client_of(front) for _ in range(count // CLIENTS)]

    return [pair for task in [net.Task(some) for _ in range(CLIENTS)] for pair in task.result()]


@test()
def round_robin(t):
    """round_robin: of 2,000 connections, eight at a time on four workers, servers have exactly their
    shares by weight"""
    front = t.address()
    with Fleet(t, 4) as fleet:
        lines = fleet.lines("weight=5", "weight=3", "weight=1", "weight=1")
        with t.daemon(balanced(front, lines, "round_robin")):
            check_equal(many_visits(front, 2000), Counter({0: 1000, 1: 600, 2: 200, 3: 200}), "connections")
            check_equal(fleet.totals, [1000, 600, 200, 200], "what the servers counted")


@test()
def round_robin_large_weights(t):
    """round_robin: weights that share a divisor, and 256 beside 1, are shares as well"""
    front = t.address()
    with Fleet(t, 2) as fleet:
        with t.daemon(balanced(front, fleet.lines("weight=256", "weight=1"), "round_robin")):
            check_equal(many_visits(front, 3 * 256 + 8)[1], 3, "connections of the light one")
        with t.daemon(balanced(front, fleet.lines("weight=200", "weight=100"), "round_robin")):
            check_equal([visit(front) for _ in range(9)].count(1), 3, "connections of the light one")


@test()
def least_connections(t):
    """least_connections: 320 connections that last, made on four workers at once, stay within 2 of each
    other over five servers, also when all of one server's have gone"""
    front = t.address()
    with Fleet(t, 5) as fleet, t.daemon(
            balanced(front, fleet.lines(), "least_connections")) as daemon:
        clients = many_held(front, 320)
        held = fleet.held
        check(max(held) - min(held) <= 2, f"the servers have {held}")
        close_all(pair for pair in clients if pair[1] == 2)
        clients = [pair for pair in clients if pair[1] != 2]
        t.eventually(lambda: fleet.held[2] == 0, "its connections are gone")
        wait_counted(t, daemon, fleet)
        clients += many_held(front, 64)
        held = fleet.held
        check(max(held) - min(held) <= 4, f"the servers have {held} then")
        check(held[2] >= 60, f"the one that had none has {held[2]}")
        close_all(clients)


def wait_counted(t, daemon, fleet):
    """Wait until the daemon knows of every connection that is gone, as the servers do."""
    def agree():
        return [int(statistics(daemon, f"server back/s{i}")["connections"])
                for i in range(len(fleet.servers))] == fleet.held

    t.eventually(agree, "the daemon counts as the servers do")


@test()
def least_connections_by_weight(t):
    """least_connections: with weights 3, 2 and 1 connections that last are 120, 80 and 40 of 240"""
    front = t.address()
    with Fleet(t, 3) as fleet:
        lines = fleet.lines("weight=3", "weight=2", "weight=1")
        with t.daemon(balanced(front, lines, "least_connections")):
            clients = many_held(front, 240)
            for held, wanted in zip(fleet.held, (120, 80, 40)):
                check(abs(held - wanted) <= 4, f"the servers have {fleet.held}")
            close_all(clients)


@test()
def least_connections_in_turn(t):
    """least_connections: short connections one after the other go round, and not all to one server"""
    front = t.address()
    with Fleet(t, 3) as fleet, t.daemon(balanced(front, fleet.lines(), "least_connections")):
        got = Counter(visit(front) for _ in range(300))
        # Who comes before the last one is quite gone does not get that one's server.
        check(min(got[i] for i in range(3)) >= 15, f"connections: {got}")


@test()
def random(t):
    """random: of 400 connections three servers with the weights 2, 1 and 1 have about their shares"""
    front = t.address()
    with Fleet(t, 3) as fleet:
        with t.daemon(balanced(front, fleet.lines("weight=2"), "random")):
            # One after the other, each quite gone: connections that are open count against a server, and on a
            # busy machine those of the heavy one last longer.
            got = Counter()
            for _ in range(400):
                got[visit(front)] += 1
                time.sleep(0.002)
                t.eventually(lambda: sum(fleet.held) == 0, "it is gone")
            heavy, *light = (got[i] for i in range(3))
            check(140 <= heavy <= 260 and min(light) >= 50, f"connections: {got}")


@test()
def random_held(t):
    """random: 400 connections that last are spread more evenly than by chance alone"""
    front = t.address()
    with Fleet(t, 5) as fleet, t.daemon(balanced(front, fleet.lines(), "random")):
        clients = many_held(front, 400)
        held = fleet.held
        # By chance alone the standard deviation is 8, with the choice of two it is about 1.
        check(max(held) - min(held) <= 14, f"the servers have {held}")
        close_all(clients)


@test()
def first(t):
    """first: with max_connections servers fill in the order of the file, and who has room again is the
    first to get clients"""
    front = t.address()
    with Fleet(t, 3) as fleet:
        lines = fleet.lines(*["max_connections=10"] * 3)
        with t.daemon(balanced(front, lines, "first")) as daemon:
            clients = [client_of(front) for _ in range(25)]
            check_equal([number for _, number in clients], [0] * 10 + [1] * 10 + [2] * 5, "their servers")
            close_all(clients[:3])
            t.eventually(lambda: fleet.held == [7, 10, 5], "three of the first are gone")
            wait_counted(t, daemon, fleet)
            more = [client_of(front) for _ in range(5)]
            check_equal([number for _, number in more], [0, 0, 0, 2, 2], "the servers of those who came then")
            close_all(clients[3:] + more)


@test()
def first_without_bounds(t):
    """first: without max_connections the first has all, and the next when it refuses"""
    front = t.address()
    with Fleet(t, 2) as fleet:
        with t.daemon(balanced(front, fleet.lines(), "first")):
            check_equal(many_visits(front, 200), Counter({0: 200}), "connections")
        lines = {"down": t.address(), **fleet.lines()}
        with t.daemon(balanced(front, lines, "first", eject_failures=0)):
            check_equal(many_visits(front, 40), Counter({0: 40}), "connections when one refuses")


METHODS = ("round_robin", "least_connections", "least_time", "random", "source_hash", "maglev", "first")


@test(each={"method": METHODS})
def down_and_backup(t, method):
    """{method}: a server that refuses costs no client, and only when all do the backup is used"""
    front = t.address()
    with Fleet(t, 2) as fleet:
        lines = fleet.lines("", "backup")
        lines["s2"] = t.address()
        with t.daemon(balanced(front, lines, method)):
            check_equal(many_visits(front, 80), Counter({0: 80}), "connections")
        lines["s0"] = t.address()
        with t.daemon(balanced(front, lines, method, eject_failures=0)):
            check_equal(many_visits(front, 80), Counter({1: 80}), "connections of the backup")


@test(each={"method": METHODS})
def weight_0_and_disabled(t, method):
    """{method}: a server with weight=0 and one that is disabled get no client, also when the others
    refuse or are full, in a panic, and when no other is configured; the log says so once"""
    front = t.address()
    with Fleet(t, 3) as fleet:
        lines = fleet.lines("weight=0", "disabled", "max_connections=4")
        with t.daemon(balanced(front, lines, method, panic_threshold=60)) as daemon:
            for name, why in (("s0", "weight=0"), ("s1", "disabled")):
                said = daemon.log_lines(rf"upstream back: server {name}: gets no connections: {why}$")
                check_equal(len(said), 1, f"lines about {name}")
                check_equal(statistics(daemon, f"server back/{name}")["state"],
                            "drained" if why == "weight=0" else "disabled", f"state of {name}")
            clients = [client_of(front) for _ in range(4)]
            check_equal([number for _, number in clients], [2] * 4, "their servers")
            check_equal(net.fate(front), "reset", "a fifth client")
            close_all(clients)
        lines["s2"] = t.address()  # it refuses
        with t.daemon(balanced(front, lines, method, panic_threshold=100, eject_failures=1, retries=3)):
            check_equal(net.fate(front), "reset", "a client while the only server refuses")
            check_equal(net.fate(front), "reset", "a client after that")
        del lines["s2"]
        with t.daemon(balanced(front, lines, method)) as daemon:
            check_equal(net.fate(front), "reset", "a client without a server")
            t.eventually(lambda: daemon.log_lines("upstream back: no server is available; the client is reset"),
                         "the log says why")
        check_equal(fleet.totals[:2], [0, 0], "clients of the two")


@test()
def weight_0_is_checked(t):
    """health checks of a server with weight=0 go on, and none are made of one that is disabled"""
    front = t.address()
    with Fleet(t, 3) as fleet:
        with t.daemon(balanced(front, fleet.lines("", "weight=0", "disabled"), "round_robin",
                               **CHECKED, check_expect="127", initial_state="checked")) as daemon:
            t.eventually(lambda: fleet.totals[1] >= 3, "the server without weight is checked")
            check_equal(visit(front), 0, "the server of a client")
            check_equal(fleet.totals[2], 0, "connections to the disabled server")
            check_equal(statistics(daemon, "server back/s2")["state"], "disabled", "its state")


@test()
def all_without_clients(t):
    """-t warns of a group in which all servers have weight=0 or are disabled, and the file is valid"""
    path = t.write("c.ini", config(t.address(), {"a": t.address() + " weight=0", "b": t.address() + " disabled"}))
    done = t.reactord("-t", "-c", path)
    check_equal(done.code, 0, "exit code")
    check_equal(done.err, f"{path}:5: warning: [upstream back] no server gets connections: all are disabled or "
                          "have weight=0; clients are reset\n", "stderr")


@test(each=[
    {"line": "balance = least_conection", "says": "did you mean 'least_connections'?"},
    {"line": "balance = sourcehash", "says": "did you mean 'source_hash'?"},
    {"line": "balance = banana", "says": "is not known"},
    {"line": "balance =", "says": "balance"},
    {"line": "hash_server = name", "says": "id or address"},
    {"line": "hash_server = address", "says": "set balance = source_hash or maglev"},
    {"line": "hash_balance_factor = 100", "says": "0, or 101 to 10000"},
    {"line": "hash_balance_factor = 10001", "says": "0, or 101 to 10000"},
    {"line": "hash_balance_factor = 150", "says": "set balance = source_hash or maglev"},
    {"line": "panic_threshold = 101", "says": "0 to 100"},
    {"line": "slow_start = 2h", "says": "1h"},
    {"line": "server_closed_timeout = 50ms", "says": "0, or 100ms to 365d"},
    {"line": "backup_when_full = maybe", "says": "yes or no"},
    {"line": "failback = later", "says": "yes or no"},
    {"line": "queue_abandoned = close", "says": "drop or keep"},
    {"line": "check = ping", "says": "off, tcp, tls, http, steps, redis, redis-master, pgsql, mysql, smtp or ldap"},
    {"line": "check_interval = 5ms", "says": "10ms to 1h"},
    {"line": "check_send = \\q", "says": "check_send"},
    {"line": "check_send = \\x4", "says": "check_send"},
    {"line": "check_expect = " + "x" * 513, "says": "512"},
    {"line": "rise = 0", "says": "1 to 1000"},
    {"line": "on_down = reset", "says": "keep or close"},
    {"line": "on_up = reset", "says": "keep or close"},
    {"line": "server.b = 127.0.0.1:9 check_port=70000", "says": "check_port"}])
def refused(t, line, says):
    """-t refuses {line:.40} and says what is allowed or meant"""
    path = t.write("c.ini", config(t.address(), {"a": t.address()}, line))
    done = t.reactord("-t", "-c", path)
    check_equal((done.code, done.out), (1, ""), "exit code and stdout")
    check_equal(len(done.err.splitlines()), 1, f"problems in {done.err!r}")
    check(done.err.startswith(f"{path}:7: [upstream back] {line.split()[0]}: "), done.err)
    check(says in done.err, done.err)


@test(each={"method": METHODS})
def dumped(t, method):
    """--dump-config has balance = {method}, and the options of checks and their bytes as they were"""
    wanted = {"balance": method, "panic_threshold": "30", "slow_start": "30s",
              "check": "tcp", "check_interval": "3s", "check_fast_interval": "500ms", "check_jitter": "20",
              "rise": "4", "fall": "5", "on_down": "close", "on_down_rate": "7"}
    if method in ("source_hash", "maglev"):
        wanted.update(hash_balance_factor="150", hash_key="destination", hash_server="address")
    options = "\n".join(f"{key} = {value}" for key, value in wanted.items())
    bytes_ = 'check_send = "PING\\r\\n\\x00\\\\ ;#\\xff"\ncheck_expect = +PONG\n'
    server, unused = t.address() + " weight=3 check_port=99", t.address() + " weight=0 disabled"
    path = t.write("c.ini", config(t.address(), {"a": server, "b": unused}, f"{options}\n{bytes_}"))
    done = t.reactord("--dump-config", "-c", path)
    check_equal((done.code, done.err), (0, ""), "exit code and stderr")
    lines = done.out.splitlines()
    for key, value in wanted.items():
        check(f"{key} = {value}" in lines, f"no line {key} = {value} in\n{done.out}")
    for line in (f"server.a = {server}", f"server.b = {unused}"):
        check(line in lines, f"no server line {line} in\n{done.out}")
    again = t.reactord("--dump-config", "-c", t.write("dump.ini", done.out))
    check_equal((again.code, again.err), (0, ""), "exit code and stderr of the dump's dump")
    check_equal(again.out, done.out, "the dump's dump")
    sends = [line for line in lines if line.startswith("check_send =")]
    check(len(sends) == 1 and "PING" in sends[0] and "\0" not in sends[0], f"check_send: {sends}")
