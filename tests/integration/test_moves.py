"""moves: a reload or an upgrade that changes servers resets no client, also while names fail."""

import re

from support import net
from support.case import check, check_equal, test
from support.server import Counted
from test_names import DNSMASQ, EVERY_SECOND, Load, addresses, named, servers, where
from test_ejection import left_out, moody, one_worker
from test_upgrade import Chain
from test_upstream import config, who


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
