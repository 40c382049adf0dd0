"""control: servers that are taken out, weighed, disabled and enabled at run time."""

import select
import time

from support import net
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.chain import Chain
from support.control_place import Place, is_alive
from support.health import Talker
from support.upstreams import statistics
from test_checks import INTERVAL_S, checked, wait_down

THEME = "control"


@test(each=[{"state": "drain", "shown": "draining"}, {"state": "disable", "shown": "disabled"}])
def out_and_in(t, state, shown):
    """a server that an administrator has told to {state} gets no sessions until it is enabled; those it has
    go on"""
    with Place(t) as place:
        check_equal(place.served(4), {"a": 2, "b": 2}, "clients before")
        clients = place.clients(4)
        check_equal(place.act("/v1/server", server="back/a", state=state),
                    {"server": "back/a", "state": shown, "weight": 0}, "the answer")
        check_equal(place.served(4), {"a": 0, "b": 4}, "clients then")
        check(all(is_alive(client) for client in clients), "one has ended")
        check_equal(statistics(place.daemon, "server back/a")["state"], shown, "the state")
        check_equal(place.act("/v1/server", server="back/a", state="enable"),
                    {"server": "back/a", "state": "enabled", "weight": 1}, "the answer")
        check_equal(place.served(4), {"a": 2, "b": 2}, "clients in the end")


@test()
def weighed(t):
    """a weight changes the share of new sessions; reset restores that of the configuration"""
    with Place(t) as place:
        check_equal(place.act("/v1/server", server="back/a", weight=3),
                    {"server": "back/a", "state": "enabled", "weight": 3}, "the answer")
        check_equal(place.served(8), {"a": 6, "b": 2}, "clients")
        place.act("/v1/server", server="back/b", weight=0)
        check_equal(place.served(4), {"a": 4, "b": 0}, "clients")
        check_equal(place.act("/v1/reset"), {}, "the answer")
        check_equal(place.served(4), {"a": 2, "b": 2}, "clients")


@test()
def a_reload_keeps_it(t):
    """what an administrator set survives a reload that changes something else, not one that changes the
    server's line"""
    with Place(t) as place:
        lines = {name: server.address for name, server in place.servers.items()}
        place.act("/v1/server", server="back/a", state="drain")
        place.act("/v1/set", io_ratio=33)
        place.act("/v1/set", log_level="debug")
        place.daemon.reload(place.config(options="connect_timeout = 3s"))
        check_equal(place.served(4), {"a": 0, "b": 4}, "clients after a reload")
        check_equal(len(place.daemon.log_lines("settings made by an administrator")), 0, "log lines")
        check("io_ratio=33" in place.daemon.statistics("work-2-1 ")[0], "io_ratio")
        check(place.daemon.log_lines(r"^\S+ \S+ debug "), "debug lines")
        place.daemon.reload(place.config(lines={**lines, "a": lines["a"] + " weight=2"}))
        check_equal(place.served(6), {"a": 4, "b": 2}, "clients after one that changes the line")
        check_equal(len(place.daemon.log_lines("server a: .* are dropped: the reload changed")), 1, "log lines")


@test()
def checks_go_on(t):
    """a server that is drained is checked further, one that is disabled is not, and one that is enabled is
    again"""
    front, admin = t.address(), t.path("admin.sock")
    options = {"check_send": r"PING\r\n", "check_expect": r"PONG\r\n", "fall": 1}
    with Talker("a", t.address(), b"+PONG\r\n") as a:
        text = section(admin) + checked(front, {"a": a.address, "b": t.address()}, **options)
        with t.daemon(text) as daemon:
            def tell(state):
                check_equal(post(admin, "/v1/server", {"server": "back/a", "state": state}).status, 200, state)
                return sum(a.got.values())

            before = tell("drain")
            t.eventually(lambda: sum(a.got.values()) >= before + 3, "it is checked")
            tell("disable")
            time.sleep(0.1)  # a check may be under way
            before = sum(a.got.values())
            time.sleep(4 * INTERVAL_S)
            check_equal(sum(a.got.values()), before, "checks of one that is disabled")
            a.becomes((b"", "resets"))
            tell("enable")
            wait_down(t, daemon, fall=1)


@test()
def last_server_disabled(t):
    """a change by an administrator is logged like a failed check, as a warning when no server is left"""
    with Place(t) as place:
        place.act("/v1/server", server="back/a", state="disable")
        place.act("/v1/server", server="back/b", state="disable")
        place.act("/v1/server", server="back/a", state="enable")
        for line in (r"notice \S+: upstream back: server a: disabled, by an administrator; servers up: 1 of 1",
                     r"warning \S+: upstream back: server b: disabled, by an administrator: "
                     r"no server is left that gets clients; servers up: 0 of 0",
                     r"notice \S+: upstream back: server a: enabled, by an administrator; servers up: 1 of 1"):
            check_equal(len(place.daemon.log_lines(line)), 1, line)


@test()
def enabled_at_run_time(t):
    """a server that is `disabled` in the configuration can be enabled"""
    with Place(t) as place:
        lines = {name: server.address for name, server in place.servers.items()}
        place.daemon.reload(place.config(lines={**lines, "a": lines["a"] + " disabled"}))
        check_equal(place.served(4), {"a": 0, "b": 4}, "clients")
        place.act("/v1/server", server="back/a", state="enable")
        check_equal(place.served(4), {"a": 2, "b": 2}, "clients")
        place.act("/v1/reset")
        check_equal(place.served(4), {"a": 0, "b": 4}, "clients")


@test()
def all_disabled(t):
    """servers that all start `disabled` are checked as soon as one is enabled"""
    front, admin = t.address(), t.path("admin.sock")
    options = {"check_send": r"PING\r\n", "check_expect": r"PONG\r\n", "fall": 1, "initial_state": "checked"}
    with Talker("a", t.address(), b"+PONG\r\n") as a:
        lines = {"a": f"{a.address} disabled", "b": f"{t.address()} disabled"}
        with t.daemon(section(admin) + checked(front, lines, **options)) as daemon:
            for server in ("back/a", "back/b"):
                check_equal(post(admin, "/v1/server", {"server": server, "state": "enable"}).status, 200, server)
            t.eventually(lambda: daemon.log_lines("server a: up: its first check passed; "), "a is checked, and up")
            check_equal(daemon.log_lines("server b: up: "), [], "b, which cannot be reached, is up")
            a.becomes((b"", "resets"))
            wait_down(t, daemon, fall=1)


def settings_config(place, b):
    """The configuration of a place whose server c is `disabled`, and for Chain."""
    lines = {name: server.address for name, server in place.servers.items()}
    lines = {**lines, "b": f"{lines['b']} {b}", "c": f"{lines['c']} disabled"}
    held = f"[listen held]\naddress = {place.held}\nservice = echo\n"
    return place.config(lines=lines, more=held).replace("[reactord]\n", "", 1)


@test(timeout=60)
def an_upgrade_keeps_it(t):
    """what was set at run time holds in the process that replaces this one, from its start, and is
    forgotten where the configuration says something else"""
    place = Place(t, "abc", options="check = tcp\ninitial_state = checked\n")
    place.held = t.address()
    with place.servers["a"], place.servers["b"], place.servers["c"], \
            Chain(t, settings_config(place, "weight=2")) as chain:
        place.act("/v1/server", server="back/a", state="drain")
        place.act("/v1/server", server="back/b", weight=3)
        place.act("/v1/server", server="back/c", state="enable")
        place.act("/v1/set", io_ratio=33)
        place.act("/v1/set", log_level="debug")
        place.act("/v1/set", listener="echo", max_connections=1)
        place.act("/v1/pause", listener="held", **{"for": "10m"})
        t.eventually(lambda: place.served(4) == {"a": 0, "b": 3, "c": 1}, "c is up")
        chain.upgrade()
        chain.wait_gone(chain.old[-1])  # clients are the new one's alone
        check_equal(place.served(8), {"a": 0, "b": 6, "c": 2}, "clients after the upgrade")
        check_equal(len(chain.lines("7 settings made by an administrator stay in force", chain.pid)), 1, "log lines")
        check_equal(chain.statistics("work-2-1 ")["io_ratio"], 33, "io_ratio")
        check_equal(limit_of(place, "echo"), 1, "max_connections")
        with net.connect(place.held) as held:
            held.sendall(b"x")
            check(not select.select([held], [], [], 0.3)[0], "one is served though its listener is paused")
            place.act("/v1/resume", listener="held")
            check_equal(held.recv(1), b"x", "the answer to one that was held")
        chain.daemon.config_path.write_text(
            f"[reactord]\npid_file = {chain.pid_path}\n" + settings_config(place, "weight=1"), encoding="utf-8")
        chain.upgrade()
        chain.wait_gone(chain.old[-1])
        check_equal(place.served(8), {"a": 0, "b": 4, "c": 4}, "clients after the line of b was changed")
        chain.wait_line("server back/b: settings .* are dropped", chain.pid)
        check(chain.lines(" debug ", chain.pid), "log_level: no line of level debug")
        place.act("/v1/reset")
        check_equal(place.served(8), {"a": 4, "b": 4, "c": 0}, "clients after a reset")
        chain.stop()


def limit_of(place, name):
    listeners = get(place.admin, "/v1/listeners").json["listeners"]
    return next(one["max_connections"] for one in listeners if one["name"] == name)
