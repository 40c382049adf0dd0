"""moves: a reload or an upgrade that changes servers resets no client, also while names fail."""

import os
import re
import signal
import time

from support import net
from support.admin import section
from support.case import check, check_equal, test
from support.chain import Chain
from support.health import Talker
from support.name_records import DNSMASQ, EVERY_SECOND, Load, addresses, named, servers, where
from support.server import Counted
from support.upstreams import config, who
from test_ejection import left_out, moody, one_worker


# Names that are known


def known_names(daemon_lines):
    return [line for line in daemon_lines if "still being looked up" in line or "gets no clients" in line]


def listed(chain):
    """The servers of the current process."""
    chain.statistics("server back/")
    return set(re.findall(r"stats server (back/\S+) state=", "\n".join(chain.lines("state=", chain.pid))))


@test(needs=DNSMASQ, timeout=60, each={"options": ("", "resolve=one", "check")})
def upgrade_without_name_server(t, options):
    """an upgrade while no name server answers: the new process has the addresses of the old one ({options}), and
    serves every client; it passes them on"""
    front = t.address()
    with named(t, ("app.test", "127.0.1.1"), ("app.test", "127.0.1.2")) as (names, _, port):
        names.serves(("_app._tcp.svc.test", "app.test", port, 1, 0))
        lines = EVERY_SECOND + ("check = tcp\ninitial_state = checked\n" if options == "check" else "")
        more = "" if options == "check" else options
        text = config(front, {"a": f"app.test:{port} {more}", "s": "_app._tcp.svc.test"}, lines)
        with Chain(t, text) as chain, Load(front):
            before = listed(chain)
            names.stop()
            for _ in range(2):
                chain.upgrade()
                check_equal(known_names(chain.lines(".", chain.pid)), [], "log lines")
            chain.wait_line("cannot look up the name: no name server answers; its addresses stay in use",
                            chain.pid)
            check_equal(listed(chain), before, "the servers")
            names.start()
            names.changes([("app.test", "127.0.1.3")])
            t.eventually(lambda: where(front) == "127.0.1.3", "it is looked up again", within=20)


@test(timeout=60)
def upgrade_with_an_ejected_server(t):
    """an ejected server is ejected in the new process, too, and returns when its time is over"""
    front = t.address()
    with moody(t, "ab") as (a, b):
        a.becomes("refuses")
        with Chain(t, one_worker(front, (a, b), "eject_time = 4s")) as chain:
            while not left_out(chain.daemon, "a"):
                net.fate(front)
            a.becomes("works")
            chain.upgrade()
            check_equal({who(front) for _ in range(20)}, {"b"}, "the servers after the upgrade")
            t.eventually(lambda: who(front) == "a", "it returns", within=20)
            check_equal(len(chain.lines("server a: ejection over", chain.pid)), 1, "log lines")


CHANGES = {
    "the port": lambda port, other: {"a": f"app.test:{other}"},
    "the ID": lambda port, other: {"z": f"app.test:{port}"},
    "the number of servers": lambda port, other: {"a": f"app.test:{port} resolve=one"},
    "an option": lambda port, other: {"a": f"app.test:{port} weight=7 max_connections=100"},
    "the case": lambda port, other: {"a": f"APP.test:{port}"},
}


@test(needs=DNSMASQ, each={"what": list(CHANGES)})
def reload_without_name_server(t, what):
    """a reload that changes {what} of a server whose name is known, while no name server answers: it is served at
    its addresses"""
    front, other = t.address(), t.port()
    with named(t, ("app.test", "127.0.1.1"), ("app.test", "127.0.1.2")) as (names, _, port), \
            Counted(f"[::]:{other}", greets=True):
        with t.daemon(config(front, {"a": f"app.test:{port}"}, EVERY_SECOND)) as daemon, Load(front):
            names.stop()
            lines = daemon.reload(config(front, CHANGES[what](port, other), EVERY_SECOND))
            check_equal(known_names(lines), [], "log lines")
            wanted = {"127.0.1.1"} if "servers" in what else {"127.0.1.1", "127.0.1.2"}
            check(addresses(front, 10) >= wanted, "the addresses")
            names.start()
            names.changes([("app.test", "127.0.1.3")])
            t.eventually(lambda: where(front) == "127.0.1.3", "it is looked up again", within=20)


@test(needs=DNSMASQ)
def reload_of_a_service_without_name_server(t):
    """a reload that changes the ID of an SRV service, while no name server answers: priorities and weights stay"""
    front = t.address()
    with named(t, ("h1.test", "127.0.1.1"), ("h2.test", "127.0.1.2"), ("h3.test", "127.0.1.3")) as (names, _, port):
        names.serves(("_app._tcp.svc.test", "h1.test", port, 1, 30), ("_app._tcp.svc.test", "h2.test", port, 1, 10),
                     ("_app._tcp.svc.test", "h3.test", port, 2, 10))
        with t.daemon(config(front, {"s": "_app._tcp.svc.test"}, "balance = round_robin\n")) as daemon:
            names.stop()
            daemon.reload(config(front, {"z": "_app._tcp.svc.test"}, "balance = round_robin\n"))
            got = [where(front) for _ in range(8)]
            check_equal({host: got.count(host) for host in set(got)}, {"127.0.1.1": 6, "127.0.1.2": 2}, "clients")


@test(needs=DNSMASQ, each={"how": ("replaces the server", "adds an upstream")})
def refused_for_a_name(t, how):
    """a reload that {how} would leave an upstream without a server because of a name: it is refused, with the name"""
    front, near = t.address(), t.address()
    with named(t, ("app.test", "127.0.1.1")) as (_, _, port), Counted(near):
        text = config(front, {"a": f"app.test:{port}"}, EVERY_SECOND)
        unknown = {"b": f"nowhere.test:{port}"}
        after = config(front, unknown, EVERY_SECOND) if "replaces" in how else \
            text + config(t.address(), unknown).replace("front", "front2").replace("back", "back2")
        with t.daemon(text) as daemon, Load(front):
            lines = daemon.reload(after, wanted="refused")
            check(any(f"server b (nowhere.test:{port}): the name has no address yet: there is no such name; without "
                      "it the upstream has no server" in line for line in lines), f"the name is not said: {lines}")
            check_equal(servers(daemon), [f"a@127.0.1.1:{port}"], "the servers")
            daemon.reload(config(front, {"a": f"app.test:{port}"} | unknown, EVERY_SECOND))


@test(needs=DNSMASQ)
def not_refused_for_a_name(t):
    """an upstream that has no server already, because of its names, refuses no reload"""
    front = t.address()
    with named(t, ("app.test", "127.0.1.1")) as (names, _, port):
        with t.daemon(config(front, {"a": f"nowhere.test:{port}"}, EVERY_SECOND)) as daemon:
            daemon.reload(config(front, {"a": f"nobody.test:{port}"}, EVERY_SECOND))
            daemon.reload(config(front, {"a": f"nobody.test:{port} weight=2"}, EVERY_SECOND))
            names.changes([("nobody.test", "127.0.1.1")])
            t.eventually(lambda: servers(daemon) == [f"a@127.0.1.1:{port}"], "it is known", within=20)


# Servers that must pass a check first


class Late(Talker):
    """It says that servers are up, but not at once."""

    def _answer(self, s, mood):
        time.sleep(0.3)
        super()._answer(s, mood)


FIRST_CHECKS = ("retries = 0\neject_failures = 0\ncheck = tcp\ncheck_send = x\ncheck_expect = up\ncheck_interval = 100ms\n"
                "check_timeout = 2s\nrise = 2\n")


def first(front, servers, state, check_port, upstream="back"):
    lines = {name: f"{rest} check_port={check_port}" for name, rest in servers.items()}
    text = config(front, lines, FIRST_CHECKS + f"initial_state = {state}\n{EVERY_SECOND}")
    return text.replace("upstream = back", f"upstream = {upstream}").replace("[upstream back]", f"[upstream {upstream}]")


PLANNED = {
    "replaces all servers": ({"a": "A"}, {"b": "B"}),
    "renames the servers": ({"a": "A", "b": "B"}, {"y": "A", "z": "B"}),
    "changes a port": ({"a": "A"}, {"a": "B"}),
    "leads the listener to a new upstream": ({"a": "A"}, {"a": "B"}),
    "enables one server and disables the other": ({"a": "A", "b": "B disabled"}, {"a": "A disabled", "b": "B"}),
    "replaces the server beside a backup": ({"a": "A", "k": "K backup"}, {"b": "B", "k": "K backup"}),
}


@test(each={"state": ("checked", "down"), "what": list(PLANNED)})
def planned_move(t, what, state):
    """a reload that {what}, with initial_state = {state}: the old servers serve until the new ones are checked, no
    client is reset or gets the backup"""
    front = t.address()
    with Counted(t.address(), greets=True) as a, Counted(t.address(), greets=True) as b, \
            Counted(t.address(), greets=True) as k, Late("check", t.address(), b"up") as late:
        def lines(servers):
            there = {"A": a.address, "B": b.address, "K": k.address}
            return {name: there[rest[0]] + rest[1:] for name, rest in servers.items()}

        before, after = (lines(servers) for servers in PLANNED[what])
        port = late.address.rpartition(":")[2]
        with t.daemon(first(front, before, state, port)) as daemon, Load(front):
            daemon.reload(first(front, after, state, port, "other" if "listener" in what else "back"))
            gone, total = a.total, b.total
            for _ in range(10):
                where(front)
            if "renames" in what:  # one of two may have no result in time, and comes later
                t.eventually(lambda: where(front) and b.total >= total + 5, "the new server is used")
            else:
                check(b.total >= total + 5, "the new server is not used")
                time.sleep(0.1)
                check(a.total - gone <= 4, f"the old server has {a.total - gone} clients more")
            check_equal(k.total, 0, "clients of the backup")
            check_equal(len(daemon.log_lines("server [^ ]*: down")), 0, "servers that went down")


@test(needs=DNSMASQ, each={"state": ("checked", "down")})
def planned_move_of_a_name(t, state):
    """a name whose addresses all change, with initial_state = {state}: the old servers serve until the new ones are
    checked, and no client is reset"""
    front = t.address()
    with named(t, ("app.test", "127.0.1.1"), ("app.test", "127.0.1.2")) as (names, _, port), \
            Late("check", f"0.0.0.0:{t.port()}", b"up") as late:
        text = first(front, {"a": f"app.test:{port}"}, state, late.address.rpartition(":")[2])
        with t.daemon(text) as daemon, Load(front):
            names.changes([("app.test", "127.0.1.3"), ("app.test", "127.0.1.4")])
            t.eventually(lambda: addresses(front, 8) == {"127.0.1.3", "127.0.1.4"}, "it has moved", within=20)
            check_equal(len(daemon.log_lines("app.test.*resolves to other addresses")), 1, "log lines")
            check_equal(len(daemon.log_lines("server a@.*: down")), 0, "servers that went down")


@test()
def planned_move_to_the_dead(t):
    """a reload that replaces all servers by one that is dead waits for its first check, not longer; one that cannot
    be checked at all delays it by some seconds"""
    front, dead = t.address(), t.address()
    with Counted(t.address(), greets=True) as a, Late("check", t.address(), b"up") as late:
        port = late.address.rpartition(":")[2]
        with t.daemon(first(front, {"a": a.address}, "checked", port)) as daemon:
            daemon.reload(first(front, {"b": dead}, "checked", dead.rpartition(":")[2]))
            check_equal(len(daemon.log_lines("server b: down: its first check failed: connection refused")), 1, "lines")
            daemon.reload(first(front, {"a": a.address}, "checked", port))
            where(front)


@test(each={"state": ("checked", "down")})
def planned_move_back(t, state):
    """with initial_state = {state} a server that was removed, and still has a session, comes back by a reload once it is
    checked, and no client is reset"""
    front = t.address()
    with Counted(t.address(), greets=True) as a, Counted(t.address(), greets=True) as b, \
            Late("check", t.address(), b"up") as late:
        port = late.address.rpartition(":")[2]
        with t.daemon(first(front, {"a": a.address}, state, port)) as daemon, net.connect(front) as client:
            net.read_exactly(client, len("127.0.0.1\n"))
            daemon.reload(first(front, {"b": b.address}, state, port))
            daemon.reload(first(front, {"a": a.address}, state, port))
            where(front)
            check_equal(daemon.log_lines("have no result"), [], "lines of missing results")


@test()
def start_with_servers_that_are_down(t):
    """with initial_state = down the start waits until the servers are up"""
    front = t.address()
    with Counted(t.address(), greets=True) as a, Late("check", t.address(), b"up") as late, \
            t.daemon(first(front, {"a": a.address}, "down", late.address.rpartition(":")[2])):
        where(front)


# One address of a name


@test(needs=DNSMASQ, timeout=60)
def one_address(t):
    """one address of a name can be drained, disabled and given a weight; that outlives a lookup, a reload and an
    upgrade, and ends with the next change of the whole name"""
    front, admin = t.address(), t.path("admin.sock")
    both = [("app.test", "127.0.1.1"), ("app.test", "127.0.1.2")]
    with named(t, *both) as (names, _, port):
        text = section(admin) + "[worker]\nthreads = 1\n" + config(front, {"a": f"app.test:{port}"}, EVERY_SECOND)
        first = f"back/a@127.0.1.1:{port}"

        def ctl(*words):
            return t.reactorctl("-s", admin, *words)

        def got(count=8):
            hosts = [where(front) for _ in range(count)]
            return {host: hosts.count(host) for host in set(hosts)}

        with Chain(t, text) as chain:
            check_equal(ctl("weight", first, "3").out, f"{first}: enabled, weight 3\n", "the answer")
            check_equal(got(), {"127.0.1.1": 6, "127.0.1.2": 2}, "clients with the weight 3")
            for word, answer in (("drain", "draining"), ("disable", "disabled")):
                check_equal(ctl(word, first).out, f"{first}: {answer}, weight 0\n", "the answer")
                check_equal(got(), {"127.0.1.2": 8}, f"clients after {word}")
            names.changes(both[1:])
            chain.wait_line("resolves to other addresses", count=1)
            names.changes(both)
            chain.wait_line("resolves to other addresses", count=2)
            check_equal(got(), {"127.0.1.2": 8}, "clients when the address is back")
            os.kill(chain.pid, signal.SIGHUP)
            chain.wait_line("reload: (done|nothing)")
            chain.upgrade()
            chain.eventually(lambda: ctl("upstreams").code == 0, "the admin interface is there")
            check_equal(got(), {"127.0.1.2": 8}, "clients after a reload and an upgrade")
            check_equal(ctl("enable", first).out, f"{first}: enabled, weight 3\n", "the answer")
            check_equal(got(), {"127.0.1.1": 6, "127.0.1.2": 2}, "clients afterwards")
            done = ctl("drain", "back/a")
            check("back/a: no server is left that gets clients" in done.err, f"no warning: {done.err}")
            check(chain.lines("warning.*upstream back: server a: draining, by an administrator: no server is left"), "log")
            check_equal(ctl("enable", first).err, "", "the warnings when one serves")
            check_equal(got(), {"127.0.1.1": 8}, "clients while only one address is enabled")
            check_equal(ctl("enable", "back/a").code, 0, "the exit code")
            check_equal(ctl("weight", "back/a", "1").code, 0, "the exit code")
            check_equal(got(), {"127.0.1.1": 4, "127.0.1.2": 4}, "clients when all is as configured")
            check("does not exist" in ctl("drain", f"back/a@127.0.1.9:{port}").err, "an address that is not there")


@test()
def last_server_warns(t):
    """to drain, disable or weigh down the last server that gets clients is a warning"""
    front, admin = t.address(), t.path("admin.sock")
    with Counted(t.address()) as a, Counted(t.address()) as b:
        with t.daemon(section(admin) + config(front, {"a": a.address, "b": b.address})) as daemon:
            check_equal(t.reactorctl("-s", admin, "drain", "back/a").err, "", "the warnings for a")
            for words in (("drain", "back/b"), ("disable", "back/b"), ("weight", "back/b", "0")):
                done = t.reactorctl("-s", admin, *words)
                check_equal((done.code, "no server is left that gets clients" in done.err), (0, True), done.err)
            check_equal(len(daemon.log_lines("warning.*upstream back: server b: .*no server is left")), 3, "log lines")
