"""failback: whom clients are sent to when a server that has failed returns."""

import contextlib
import csv

from support import net, program
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.chain import Chain
from support.health import greeted, lines_of as lines_with_backup, ready, served
from support.net import Task
from support.server import Moody
from support.upstreams import statistics, who
from test_checks import checked, wait_down, wait_up

METHODS = ["round_robin", "least_connections", "least_time", "random", "source_hash", "maglev", "first"]


@contextlib.contextmanager
def moody(t, names):
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(Moody(name, t.address())) for name in names}


def lines_of(servers, backups):
    return {name: server.address + (" backup" if name in backups else "") for name, server in servers.items()}


def text_of(front, servers, backups, admin="", **options):
    text = checked(front, lines_of(servers, backups), workers=3, **{"failback": "no", **options})
    return text + (section(admin) if admin else "")


def served_by(front, count=12):
    """The servers of so many clients, one after the other, on all workers."""
    return "".join(sorted({who(front) for _ in range(count)}))


def fails(t, daemon, server, times=1):
    server.becomes("refuses")
    wait_down(t, daemon, server.name, times=times)


def returns(t, daemon, server, times=1):
    server.becomes("works")
    wait_up(t, daemon, server.name, times=times)


def moves(daemon):
    """What the log says about other servers in use."""
    return [line.partition("upstream back: servers in use: ")[2] for line in daemon.log_lines("servers in use: ")]


def in_use(place):
    found = get(place, "/v1/upstreams").json["upstreams"][0]
    return "".join(one["name"] for one in found["servers"] if one["in_use"]), found["in_use_changes"]


@test(each={"method": METHODS})
def stays(t, method):
    """with balance = {method} and failback = no servers that have returned get no client until the backups have
    failed; log, JSON and metrics say who is in use"""
    front, place = t.address(), t.path("admin.sock")
    first = method == "first"
    with moody(t, "abcd") as servers:
        with t.daemon(text_of(front, servers, "cd", place, balance=method)) as daemon:
            check(set(served_by(front)) <= set("a" if first else "ab"), "clients at the start")
            fails(t, daemon, servers["a"])
            check_equal(served_by(front), "b", "clients while a is down")
            fails(t, daemon, servers["b"])
            backups = "c" if first else "cd"
            check(set(served_by(front)) <= set(backups), "clients of the backups")
            returns(t, daemon, servers["a"])
            returns(t, daemon, servers["b"])
            check(set(served_by(front)) <= set(backups), "clients when a and b have returned")
            check_equal(in_use(place), (backups, 2 if first else 1), "servers in use")
            metrics = get(place, "/metrics").body.decode()
            for line in ('server_in_use{server="a",upstream="back"} 0', 'server_in_use{server="c",upstream="back"} 1'):
                check("reactord_" + line in metrics, f"{line} in the metrics")
            fails(t, daemon, servers["c"])
            if not first:
                check_equal(served_by(front), "d", "clients while c is down")
                fails(t, daemon, servers["d"])
            check(set(served_by(front)) <= set("a" if first else "ab"), "clients when the backups have failed")
            wanted = (["b; before: a", "c (backup); before: b", "a; before: c (backup)"] if first else
                      ["c (backup), d (backup); before: b", "a, b; before: d (backup)"])
            check_equal(moves(daemon), wanted, "moves in the log")
            check_equal(statistics(daemon, "upstream back")["in_use_changes"], str(len(wanted)), "moves counted")


@test()
def yes(t):
    """with failback = yes the server that has returned gets all clients at once, and the log says so"""
    front = t.address()
    with moody(t, "ab") as servers:
        with t.daemon(text_of(front, servers, "b", failback="yes")) as daemon:
            fails(t, daemon, servers["a"])
            check_equal(served_by(front), "b", "clients while a is down")
            returns(t, daemon, servers["a"])
            check_equal(served_by(front), "a", "clients when a has returned")
            check_equal(moves(daemon), ["b (backup); before: a", "a; before: b (backup)"], "moves in the log")


@test()
def no_client_is_lost(t):
    """clients that come before the failure of the server in use is known wait for that and get the next one; no
    other server gets one of them"""
    front = t.address()
    with moody(t, "abc") as servers:
        text = text_of(front, servers, "", balance="first", retry_timeout="60s", eject_failures=0, fall=20)
        with t.daemon(text) as daemon:
            check_equal(served_by(front), "a", "clients at the start")
            servers["a"].becomes("refuses")
            clients = [Task(lambda: who(front)) for _ in range(20)]
            check_equal({client.result() for client in clients}, {"b"}, "servers of these clients")
            returns(t, daemon, servers["a"])
            check_equal(served_by(front), "b", "clients when a has returned")


@test()
def operator_moves_back(t):
    """drain and enable of the server in use move the clients to the first one, which has returned; drain and enable
    of one that is not in use move nobody"""
    front, place = t.address(), t.path("admin.sock")
    with moody(t, "abc") as servers:
        with t.daemon(text_of(front, servers, "c", place, balance="first")) as daemon:
            check_equal(served_by(front), "a", "clients at the start")
            fails(t, daemon, servers["a"])
            returns(t, daemon, servers["a"])
            check_equal(served_by(front), "b", "clients when a has returned")
            for server, wanted in (("back/c", "b"), ("back/a", "b"), ("back/b", "a")):
                for command in ("drain", "enable"):
                    done = t.reactorctl("-s", place, command, server)
                    check_equal((done.code, done.err), (0, ""), f"{command} {server}")
                check_equal((served_by(front), in_use(place)[0]), (wanted, wanted), f"clients after those of {server}")
            check_equal(moves(daemon), ["b; before: a", "a; before: b"], "moves in the log")
            check("IN USE" in t.reactorctl("-s", place, "upstreams").out, "the column of reactorctl")
            post(place, "/v1/server", {"server": "back/a", "state": "disable"})
            check_equal(served_by(front), "b", "clients while a is disabled")
            post(place, "/v1/server", {"server": "back/a", "state": "enable"})
            check_equal(served_by(front), "b", "clients when it is enabled")


@test()
def ejected(t):
    """a server in use that is ejected has failed: when the ejection is over it gets no client"""
    front = t.address()
    with moody(t, "ab") as servers:
        text = text_of(front, servers, "", balance="first", check_interval="1h", eject_failures=3, eject_time="100ms",
                       retry_timeout="60s")
        with t.daemon(text) as daemon:
            check_equal(served_by(front), "a", "clients at the start")
            servers["a"].becomes("refuses")
            check_equal(served_by(front), "b", "clients then")
            servers["a"].becomes("works")
            t.eventually(lambda: who(front) and daemon.log_lines("server a: ejection over"), "it is over")
            check_equal(served_by(front), "b", "clients when the ejection is over")


@test()
def reload(t):
    """a reload goes on with the server in use, also when the servers change their roles; failback = yes ends that,
    and a removed server has failed"""
    front = t.address()
    with moody(t, "ab") as servers:
        with t.daemon(text_of(front, servers, "b")) as daemon:
            check_equal(served_by(front), "a", "clients at the start")
            fails(t, daemon, servers["a"])
            returns(t, daemon, servers["a"])
            check_equal(served_by(front), "b", "clients when a has returned")
            daemon.reload(text_of(front, servers, "b", fall="4"))
            check_equal(served_by(front), "b", "clients after a reload")
            daemon.reload(text_of(front, servers, "a"))
            check_equal(served_by(front), "b", "clients after the change of roles")
            daemon.reload(text_of(front, servers, "b", balance="first"))
            check_equal(served_by(front), "b", "clients with another method")
            check_equal(moves(daemon), ["b (backup); before: a"], "moves in the log")
            daemon.reload(text_of(front, servers, "b", failback="yes"))
            check_equal(served_by(front), "a", "clients with failback = yes")
            daemon.reload(text_of(front, servers, "b"))
            check_equal(served_by(front), "a", "clients with failback = no again")
            daemon.reload(text_of(front, {"b": servers["b"]}, "b"))
            daemon.reload(text_of(front, servers, "b"))
            check_equal(served_by(front), "b", "clients when a was removed and added")


@test(timeout=60)
def upgrade(t):
    """the process that an upgrade starts goes on with the server in use, and counts on"""
    front = t.address()
    with moody(t, "abc") as servers:
        text = text_of(front, servers, "c", balance="first").removeprefix("[reactord]\n")
        with Chain(t, text) as chain:
            check_equal(served_by(front), "a", "clients at the start")
            servers["a"].becomes("refuses")
            chain.wait_line("server a: down")
            servers["a"].becomes("works")
            chain.wait_line("server a: up")
            check_equal(served_by(front), "b", "clients before")
            for _ in range(2):
                chain.upgrade()
                check_equal(served_by(front), "b", "clients after")
                check_equal(chain.statistics("upstream back")["in_use_changes"], 1, "moves")
                check_equal(chain.lines("servers in use", chain.pid), [], "moves in the log of the new process")
            servers["b"].becomes("refuses")
            chain.wait_line("server b: down")
            check_equal(served_by(front), "a", "clients when b has failed")


@test()
def full(t):
    """clients wait while the server in use is full; with backup_when_full they are sent to others"""
    front = t.address()
    with ready(t, "ab") as servers:
        lines = {server.name: f"{server.line} max_connections=1" for server in servers}
        text = checked(front, lines, failback="no", balance="first", queue_timeout="1m")
        with t.daemon(text) as daemon:
            servers[0].is_up(False)
            wait_down(t, daemon)
            servers[0].is_up(True)
            wait_up(t, daemon)
            with contextlib.ExitStack() as stack:
                greeted(stack.enter_context(net.connect(front)))
                waiting = stack.enter_context(net.connect(front))
                t.eventually(lambda: statistics(daemon, "upstream back")["waiting"] == "1", "the second waits")
                check_equal([server.server.total for server in servers], [0, 1], "connections")
                daemon.reload(text + "backup_when_full = yes\n")
                greeted(waiting)
                check_equal([server.server.total for server in servers], [1, 1], "connections with backup_when_full")


@test(each=[{"on_up": "keep", "failback": "yes"}, {"on_up": "close", "failback": "yes"},
            {"on_up": "close", "failback": "no"}])
def sessions_of_backups(t, on_up, failback):
    """with on_up = {on_up} and failback = {failback}, what becomes of the connections of a backup when the server
    has returned: reset, on both sides, only with close and yes"""
    front, is_reset = t.address(), (on_up, failback) == ("close", "yes")
    with ready(t, "ab") as servers, contextlib.ExitStack() as stack:
        lines = lines_with_backup(servers, "b")
        text = checked(front, lines, workers=3, on_up=on_up, failback=failback, log="debug")
        with t.daemon(text) as daemon:
            servers[0].is_up(False)
            wait_down(t, daemon)
            clients = [greeted(stack.enter_context(net.connect(front))) for _ in range(10)]
            check_equal(servers[1].server.now, 10, "connections of the backup")
            servers[0].is_up(True)
            wait_up(t, daemon)
            if is_reset:
                check_equal({net.ending(client) for client in clients}, {"reset"}, "the ends for the clients")
                t.eventually(lambda: servers[1].server.now == 0, "the backup has no connection")
                check_equal(statistics(daemon, "server back/b").get("drain"), "10", "the reasons")
                t.eventually(lambda: daemon.log_lines("server b: not in use any more: connections reset: 10$"), "the number")
            else:
                check_equal({net.exchange(client, b"after") for client in clients}, {b"after"}, "their echoes")
            check_equal(served(servers, front, 3), {"a": 0 if failback == "no" else 3, "b": 3 if failback == "no" else 0},
                        "new clients")


@test()
def slow_first_check(t):
    """with initial_state = checked the first server is in use though the backup passes its check earlier"""
    front = t.address()
    with moody(t, "ab") as servers:
        servers["a"].becomes("is full")
        text = text_of(front, servers, "b", initial_state="checked", check_timeout="1s", fall=1, rise=1)
        with t.daemon(text) as daemon:
            t.eventually(lambda: daemon.log_lines("server a: down: its first check failed"), "the first check")
            check_equal(who(front), "b", "the client while a does not answer")
        servers["a"].becomes("works")
        with t.daemon(text) as daemon:
            check_equal(served_by(front), "a", "clients when both passed their first check")
            check_equal([line for line in moves(daemon) if not line.startswith("a; before: b")], [], "moves")


def haproxy_says(asked, name):
    """The state of that server for HAProxy."""
    with net.connect(asked) as client:
        client.sendall(b"show stat\n")
        head, *rows = net.read_to_end(client).decode().removeprefix("# ").splitlines()
    return next(row["status"] for row in csv.DictReader(rows, head.split(",")) if row["svname"] == name)


@test(needs=["haproxy"], timeout=60, plain_only=True)
def beside_haproxy(t):
    """HAProxy's `stick on dst` sends the clients to the same servers, whichever fails and returns in whatever order"""
    front, port = t.address(), t.port()
    with moody(t, "abc") as servers:
        lines = "".join(f"    server {name} {server.address} check inter 50ms rise 2 fall 3 on-marked-down shutdown-sessions\n"
                        for name, server in servers.items())
        asked = t.path("haproxy.sock")
        path = t.write("haproxy.cfg", f"""
global
    stats socket {asked}
defaults
    mode tcp
    balance first
    timeout connect 5s
    timeout client 10s
    timeout server 10s
listen l
    bind 127.0.0.1:{port}
    stick-table type ip size 100
    stick on dst
{lines}""")
        steps = ["", "-a", "+a", "-b", "+b", "-a", "-c", "+c", "+a"]
        with t.daemon(text_of(front, servers, "", balance="first")) as daemon, \
                program.server(t, ["haproxy", "-db", "-f", path], port):
            seen = ""
            for i, step in enumerate(steps):
                if step:
                    server = servers[step[1:]]
                    server.becomes("refuses" if step[0] == "-" else "works")
                    word = "down" if step[0] == "-" else "up"
                    t.eventually(lambda: len(daemon.log_lines(f"server {server.name}: {word}: ")) ==
                                 steps[:i + 1].count(step), f"server {server.name} is {word}")
                    t.eventually(lambda: haproxy_says(asked, server.name) == word.upper(),
                                 f"server {server.name} is {word} for HAProxy")
                t.eventually(lambda: served_by(f"127.0.0.1:{port}", 3) == served_by(front, 3), f"the same after {step}")
                seen += served_by(front, 3)
            check_equal(seen, "abbaabbbb", "servers")
