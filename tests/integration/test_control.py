"""control: sessions are listed, killed and shed, and servers drained, disabled, enabled and weighed, by
the admin interface."""

import contextlib
import re
import select
import signal
import socket
import time
from collections import Counter
from statistics import median

from support import net
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.health import Talker, greeted
from support.server import Counted
from test_checks import INTERVAL_S, checked, statistics, wait_down
from test_upgrade import Chain
from test_upstream import config

ID = re.compile(r"[0-9a-f]{32}")


class Place:
    """A proxy to echo servers a, b ... with an admin interface, and an echo listener."""

    def __init__(self, t, names="ab", options="", more=""):
        self.t, self.front, self.echo = t, t.address(), t.address()
        self.admin = t.path("admin.sock")
        self.servers = {name: Counted(t.address(), greets=True) for name in names}
        self.options, self.more = options, more
        self.stack = contextlib.ExitStack()

    def config(self, lines=None, options=None, more=None):
        lines = lines or {name: server.address for name, server in self.servers.items()}
        return ("[reactord]\nlog_level = notice\ndrain_timeout = 500ms\n[worker]\nthreads = 2\n"
                + section(self.admin) + f"[listen echo]\naddress = {self.echo}\nservice = echo\n"
                + (self.more if more is None else more)
                + config(self.front, lines, self.options if options is None else options))

    def __enter__(self):
        for server in self.servers.values():
            self.stack.enter_context(server)
        self.daemon = self.stack.enter_context(self.t.daemon(self.config()))
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def client(self, address=None):
        """A client; one of the proxy has heard from its server."""
        s = self.stack.enter_context(net.connect(address or self.front))
        if not address:
            greeted(s)
        else:
            net.exchange(s, b"x")
        return s

    def clients(self, n, address=None):
        return [self.client(address) for _ in range(n)]

    def sessions(self, query="", status=200):
        answer = get(self.admin, f"/v1/sessions{query}")
        check_equal(answer.status, status, f"the status of {query}: {answer.body}")
        return answer.json

    def matched(self, query):
        return self.sessions(query)["matched"]

    def act(self, path, status=200, **body):
        answer = post(self.admin, path, body)
        check_equal(answer.status, status, f"the status of {path} {body}: {answer.body}")
        return answer.json

    def served(self, n):
        """Which servers n further clients got."""
        before = {name: server.total for name, server in self.servers.items()}
        for _ in range(n):
            with net.connect(self.front) as s:
                greeted(s)
        return {name: server.total - before[name] for name, server in self.servers.items()}


def port_of(s):
    return "%s:%d" % s.getsockname()


@test()
def listed(t):
    """each session is listed with its ID, client, listener, upstream, server, loop, age, idle time and
    bytes"""
    with Place(t, "a") as place:
        client, other = place.client(), place.client(place.echo)
        net.exchange(client, b"12345")
        rows = place.sessions()["sessions"]
        check_equal(len(rows), 2, "rows")
        row = next(row for row in rows if row["listener"] == "front")
        check(ID.fullmatch(row["id"]), f"ID {row['id']}")
        check_equal((row["client"], row["upstream"], row["server"], row["state"]),
                    (port_of(client), "back", "a", "open"), "the row")
        check_equal((row["bytes_in"], row["bytes_out"]), (5, 15), "bytes")
        check(row["loop"].startswith("work-2-"), f"loop {row['loop']}")
        check(0 <= row["idle_s"] <= row["age_s"] < 60 * t.scale, f"times {row}")
        row = next(row for row in rows if row["listener"] == "echo")
        check_equal((row["client"], row["upstream"], row["server"]), (port_of(other), None, None), "the echo's")


@test()
def filtered(t):
    """the list is filtered by listener, upstream, server, client, loop, age, idle time, bytes and ID"""
    with Place(t) as place:
        clients = place.clients(4)
        place.clients(2, place.echo)
        net.exchange(clients[0], b"x" * 5000)
        rows = place.sessions()["sessions"]
        loops = Counter(row["loop"] for row in rows)
        t.eventually(lambda: place.matched("?min_idle=300ms") == 6, "all are idle")
        net.exchange(clients[1], b"x")
        for query, n in {"": 6, "?listener=front": 4, "?listener=echo": 2, "?upstream=back": 4,
                         "?server=back/a": 2, "?client=127.0.0.0/8": 6, "?client=::1": 0, "?client=unix": 0,
                         "?min_age=1h": 0, "?min_age=10ms": 6, "?min_idle=300ms": 5, "?min_bytes=5000": 1,
                         "?min_bytes=4k&server=back/a&listener=front": None, f"?id={rows[3]['id']}": 1,
                         "?id=" + "0" * 32: 0, "?listener=echo&upstream=back": 0,
                         **{f"?loop={loop}": n for loop, n in loops.items()}}.items():
            if n is not None:
                check_equal(place.matched(query), n, f"sessions of {query}")


@test()
def sorted_and_paged(t):
    """the oldest, the idlest or the heaviest come first, in pages that are complete"""
    with Place(t, "a") as place:
        clients = place.clients(10)
        for i, client in enumerate(clients):
            net.exchange(client, b"x" * (i * 7 % 10 * 100 + 1))
        first = place.sessions("?sort=age&limit=4")
        ages = [row["age_s"] for row in first["sessions"]]
        check_equal(ages, sorted(ages, reverse=True), "ages")
        check_equal(first["matched"], 10, "all that match")
        second = place.sessions(f"?sort=age&limit=4&after={first['next']}")
        third = place.sessions(f"?sort=age&limit=4&after={second['next']}")
        check_equal(third["next"], None, "the cursor of the last page")
        rows = first["sessions"] + second["sessions"] + third["sessions"]
        check_equal({row["client"] for row in rows}, {port_of(client) for client in clients}, "clients")
        heaviest = [row["bytes_in"] for row in place.sessions("?sort=bytes&limit=3")["sessions"]]
        check_equal(heaviest, [901, 801, 701], "the heaviest")
        time.sleep(0.05)
        net.exchange(clients[3], b"x")
        rows = place.sessions("?sort=idle")["sessions"]
        idle = [row["idle_s"] for row in rows]
        check_equal(idle, sorted(idle, reverse=True), "idle times")
        check_equal(rows[-1]["client"], port_of(clients[3]), "the client that is not idle")


@test()
def bytes_of_open_sessions(t):
    """bytes of open sessions are counted whenever they are read: of the listener, upstream and server, once"""
    with Place(t, "a") as place:
        greeting = len(b"127.0.0.1\n")

        def counted():
            echo, front = (one["bytes_in"] for one in sorted(
                get(place.admin, "/v1/listeners").json["listeners"], key=lambda one: one["name"]))
            back = get(place.admin, "/v1/upstreams").json["upstreams"][0]
            metrics = get(place.admin, "/metrics").body.decode()
            value = re.search(r'^reactord_listener_bytes_out_total\{listener="front"\} (\d+)$', metrics, re.M)
            return echo, front, back["bytes_in"], back["servers"][0]["bytes_in"], int(value[1])

        s, e = place.client(), place.client(place.echo)
        check_equal(counted(), (1, 0, 0, 0, greeting), "bytes at first")
        for n in range(1, 3):
            net.exchange(s, b"0123456789")
            net.exchange(e, b"12345")
            check_equal(counted(), (1 + 5 * n, 10 * n, 10 * n, 10 * n, greeting + 10 * n), f"bytes after {n}")
        s.close()
        e.close()
        t.eventually(lambda: place.matched("") == 0, "both have ended")
        check_equal(counted(), (11, 20, 20, 20, greeting + 20), "bytes in the end")


@test()
def written_in_steps(t):
    """a long page is written in several tasks, so that other requests do not wait for it"""
    with Place(t) as place:
        place.clients(200, place.echo)

        def tasks_run():
            return next(loop["tasks_run"] for loop in get(place.admin, "/v1/loops").json["loops"]
                        if loop["name"] == "admn-5-1")

        def tasks(limit):
            before = tasks_run()
            check_equal(len(place.sessions(f"?limit={limit}")["sessions"]), limit, "sessions")
            return tasks_run() - before

        # The middle of several: other tasks come in between, and a turn may be counted behind the look at it.
        short, long = (median(tasks(limit) for _ in range(20)) for limit in (1, 200))
        check(long >= short + 5, f"{long} tasks for 200 sessions, {short} for one")


@test(each=[{"sort": "age"}, {"sort": "idle"}, {"sort": "bytes"}])
def pages_under_churn(t, sort):
    """pages by {sort} have each idle session that stays once, while others come and go"""
    with Place(t) as place:
        staying = place.clients(120)
        ids = {row["id"] for row in place.sessions("?limit=1000")["sessions"]}
        check_equal(len(ids), 120, "sessions at first")
        seen, after = Counter(), ""
        coming = []
        while after is not None:
            page = place.sessions(f"?sort={sort}&limit=10{after and '&after=' + after}")
            seen.update(row["id"] for row in page["sessions"])
            after = page["next"]
            coming += place.clients(3)
            if len(coming) > 6:
                coming.pop(0).close()
        check_equal({seen[one] for one in ids}, {1}, "how often each was listed")
        check(all(n == 1 for n in seen.values()), f"listed twice: {seen.most_common(3)}")
        check(all(is_alive(client) for client in staying), "one has ended")


@test()
def killed(t):
    """sessions are killed by ID or filter: both sides are reset, and access log and counters say `killed`;
    others stay"""
    log, front = t.path("access.log"), t.address()
    admin = t.path("admin.sock")
    with net.listen(t.address()) as a, net.listen(t.address()) as b, contextlib.ExitStack() as stack:
        text = ("[worker]\nthreads = 2\n" + section(admin)
                + config(front, {"a": port_of(a), "b": port_of(b)}).replace(
                    "service = proxy", f"service = proxy\naccess_log = {log}\naccess_log_format = $unique_id $reason"))
        daemon = stack.enter_context(t.daemon(text))
        clients = [stack.enter_context(net.connect(front)) for _ in range(6)]
        of_a = [stack.enter_context(net.accept(a)) for _ in range(3)]
        of_b = [stack.enter_context(net.accept(b)) for _ in range(3)]
        t.eventually(lambda: len(get(admin, "/v1/sessions?server=back/a").json["sessions"]) == 3, "they are open")
        rows = get(admin, "/v1/sessions?server=back/b").json["sessions"]
        one = rows[0]
        check_equal(post(admin, "/v1/sessions/kill", {"id": one["id"]}).json, {"killed": 1}, "the answer")
        client = next(c for c in clients if port_of(c) == one["client"])
        check_equal(net.ending(client), "reset", "the end for the client")
        t.eventually(lambda: open(log).read() == f"{one['id']} killed\n", "the access log has its line")
        check_equal(post(admin, "/v1/sessions/kill", {"server": "back/a"}).json, {"killed": 3}, "the answer")
        for server in of_a:
            check_equal(net.ending(server), "reset", "the end for the server")
        t.eventually(lambda: daemon.counts("listen front").get("killed") == 4, "they are counted")
        stats = statistics(daemon, "server back/a")
        check_equal((stats["killed"], stats["sessions"]), ("3", "0"), "those of a")
        check_equal(get(admin, "/v1/sessions").json["matched"], 2, "sessions that are left")
        check_equal(sum(not has_ended(s) for s in of_b), 2, "servers' connections that are left")
        check_equal(len(daemon.log_lines(r"admin: uid \d+ pid \d+: .*kill.*: 3 sessions")), 1, "log lines")
        check_equal(post(admin, "/v1/sessions/kill", {"all": True}).json, {"killed": 2}, "the answer")


def is_alive(client):
    return net.exchange(client, b"x") == b"x"


def has_ended(s):
    if not select.select([s], [], [], 0)[0]:
        return False
    try:
        return s.recv(1) == b""
    except OSError:
        return True


@test()
def shed(t):
    """half the sessions of a server end, the idlest first, spread over the time; the others and new ones
    stay"""
    over_s = 2
    with Place(t) as place:
        clients = place.clients(40)
        rows = place.sessions("?server=back/a&sort=idle&limit=1000")["sessions"]
        ports = {row["client"] for row in rows}
        of_a = [client for client in clients if port_of(client) in ports]
        check_equal(len(of_a), 20, "sessions of a")
        time.sleep(0.02)
        for client in of_a[:10]:
            net.exchange(client, b"x")
        began = time.monotonic()
        check_equal(place.act("/v1/shed", server="back/a", percent=50, over=f"{over_s}s"), {"sessions": 10},
                    "the answer")
        new = place.clients(4)
        t.eventually(lambda: sum(map(has_ended, of_a[10:])) >= 5, "half of them have ended")
        check(time.monotonic() - began >= over_s * 0.4, "they ended too early")
        t.eventually(lambda: all(map(has_ended, of_a[10:])), "the idlest have ended")
        check(time.monotonic() - began >= over_s * 0.9, "they ended too early")
        check(all(map(is_alive, of_a[:10] + new)), "one that is not idle has ended")
        for client in of_a[10:]:
            client.close()
        check_equal(place.matched("?server=back/b"), 22, "sessions of b")
        t.eventually(lambda: place.matched("?server=back/a") == 12, "the others have ended")
        check_equal(statistics(place.daemon, "server back/a")["drain"], "10", "those that ended, for drain")


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


@test()
def set_and_reset(t):
    """io_ratio and log_level are set, and reset"""
    with Place(t) as place:
        check_equal(place.act("/v1/set", io_ratio=33), {"io_ratio": 33}, "the answer")
        check("io_ratio=33" in place.daemon.statistics("work-2-1 ")[0], "io_ratio")
        check_equal(place.act("/v1/set", log_level="debug"), {"log_level": "debug"}, "the answer")
        with place.client(place.echo):
            pass
        t.eventually(lambda: place.daemon.log_lines("listen echo: .* ended: client fin"), "debug lines")
        place.act("/v1/reset")
        check("io_ratio=50" in place.daemon.statistics("work-2-1 ")[0], "io_ratio")
        with place.client(place.echo):
            pass
        t.eventually(lambda: place.matched("") == 0, "it has ended")
        check_equal(len(place.daemon.log_lines(" ended: client fin")), 1, "debug lines")


@test()
def limited(t):
    """max_connections of a listener is set, outlasts a reload that does not change it, and is reset"""
    with Place(t, "a") as place:
        def waits():
            with net.connect(place.front) as s:
                return not select.select([s], [], [], 0.2)[0]

        place.clients(2)
        check_equal(place.act("/v1/set", listener="front", max_connections=2),
                    {"listener": "front", "max_connections": 2}, "the answer")
        check(waits(), "a third client is served")
        place.daemon.reload(place.config(options="connect_timeout = 3s"))
        check(waits(), "a third client is served after a reload")
        place.act("/v1/set", listener="front", max_connections=3)
        place.client()
        check(waits(), "a fourth client is served")
        place.act("/v1/reset")
        place.client()


@test()
def refused(t):
    """unknown names are 404, values that are none are 400, and name the field"""
    with Place(t) as place:
        for query, error in {"listener=nobody": "listener 'nobody'", "upstream=nobody": "upstream 'nobody'",
                             "server=back/c": "server 'back/c'", "server=nobody/a": "upstream 'nobody'",
                             "loop=nobody": "worker loop 'nobody'"}.items():
            check(place.sessions("?" + query, status=404)["error"].startswith(error), f"the error of {query}")
        for query in ("sort=size", "limit=0", "limit=1001", "after=here", "min_age=10", "client=somebody", "id=1",
                      "min_bytes=-1", "server=a", "listener=", "color=red", "sort=age&sort=age"):
            error = place.sessions("?" + query, status=400)["error"]
            check(query.split("=")[0] in error, f"the error of {query}: {error}")
        for path, body in {"/v1/sessions/kill": [{}, {"all": False}, {"all": True, "listener": "echo"},
                                                 {"listener": 5}, {"min_bytes": True}, {"limit": 5}],
                           "/v1/shed": [{}, {"upstream": "back"}, {"upstream": "back", "percent": 50},
                                        {"upstream": "back", "percent": 0, "over": "1s"},
                                        {"upstream": "back", "percent": 101, "over": "1s"},
                                        {"upstream": "back", "server": "back/a", "percent": 5, "over": "1s"},
                                        {"upstream": "back", "percent": 5, "over": "2h"}],
                           "/v1/server": [{}, {"server": "back/a"}, {"server": "a", "state": "drain"},
                                          {"server": "back/a", "state": "up"}, {"server": "back/a", "weight": -1},
                                          {"server": "back/a", "weight": 257},
                                          {"server": "back/a", "weight": 1, "state": "drain"}],
                           "/v1/set": [{}, {"listener": "front"}, {"max_connections": 5}, {"io_ratio": 0}, {"io_ratio": 101}, {"log_level": "loud"},
                                       {"io_ratio": 50, "log_level": "info"}]}.items():
            for one in body:
                place.act(path, status=400, **one)
        place.act("/v1/sessions/kill", status=404, listener="nobody")
        place.act("/v1/shed", status=404, upstream="nobody", percent=50, over="1s")
        place.act("/v1/server", status=404, server="back/c", state="drain")
        place.act("/v1/set", status=404, listener="nobody", max_connections=5)
        place.act("/v1/server", status=404, server="nobody/a", state="drain")
        check_equal(place.served(4), {"a": 2, "b": 2}, "clients")


@test(timeout=90)
def all_at_once(t):
    """sessions are listed, killed and shed, servers changed and the configuration reloaded, while clients
    come and go: each answer is right, and in the end no session is left"""
    end = time.monotonic() + 4
    counts = Counter()

    def come_and_go(place, n):
        while time.monotonic() < end:
            with contextlib.suppress(OSError, EOFError), net.connect(place.front) as s:
                greeted(s)
                net.exchange(s, b"x" * 100)
                time.sleep(0.001 * n)
                counts["served"] += 1

    def ask(place, path, *bodies):
        while time.monotonic() < end:
            for body in bodies:
                answer = get(place.admin, path) if body is None else post(place.admin, path, body)
                check(answer.status == 200 or (answer.status == 409 and b"reload" in answer.body),
                      f"{path} {body}: {answer.status} {answer.body}")
                counts[path] += 1

    with Place(t, "abc", options="check = tcp\ncheck_interval = 50ms") as place:
        tasks = [net.Task(come_and_go, place, n) for n in range(6)]
        for sort in ("age", "idle", "bytes"):
            tasks.append(net.Task(ask, place, f"/v1/sessions?sort={sort}&limit=3", None))
        tasks.append(net.Task(ask, place, "/v1/sessions/kill", {"server": "back/a"}, {"min_age": "5ms"}))
        tasks.append(net.Task(ask, place, "/v1/shed", {"upstream": "back", "percent": 50, "over": "10ms"}))
        tasks.append(net.Task(ask, place, "/v1/server", {"server": "back/a", "state": "drain"},
                              {"server": "back/b", "weight": 5}, {"server": "back/a", "state": "enable"},
                              {"server": "back/c", "state": "disable"}, {"server": "back/c", "state": "enable"}))
        tasks.append(net.Task(ask, place, "/v1/reset", {}))
        while time.monotonic() < end:
            counts["reloads"] += 1
            interval = 50 + counts["reloads"] % 2
            place.daemon.reload(place.config(options=f"check = tcp\ncheck_interval = {interval}ms"))
        for task in tasks:
            task.result()
        check(min(counts.values()) > 0 and len(counts) == 9, f"what was done: {counts}")
        t.eventually(lambda: place.matched("") == 0, "all sessions have ended")
        check_equal(set(place.served(12)) - {"a", "b", "c"}, set(), "servers")


@test()
def paused_listener(t):
    """clients of a paused listener wait in the kernel's queue, and are served when it is resumed; /readyz
    says that it is paused"""
    with Place(t) as place:
        old = place.client()
        check_equal(get(place.admin, "/readyz").status, 200, "/readyz before")
        check_equal(place.act("/v1/pause", listener="front"), {"state": "paused"}, "the answer")
        ready = get(place.admin, "/readyz")
        check_equal((ready.status, ready.body), (503, b"paused\n"), "/readyz while it is paused")
        new = [place.stack.enter_context(net.connect(place.front)) for _ in range(5)]
        check(is_alive(old), "a session of before has ended")
        check_equal(place.matched("?listener=front"), 1, "sessions while it is paused")
        check(not select.select(new, [], [], 0.3)[0], "one is served though it is paused")
        check_equal(listener_state(place), "paused", "the state of the listener")
        check_equal(place.act("/v1/resume", listener="front"), {"state": "resumed"}, "the answer")
        check(all(is_alive(greeted(client)) for client in new), "one was not served")
        check_equal(get(place.admin, "/readyz").status, 200, "/readyz after")
        check_equal(listener_state(place), "accepting", "the state of the listener")


def listener_state(place):
    listeners = get(place.admin, "/v1/listeners").json["listeners"]
    return next(one["state"] for one in listeners if one["name"] == "front")


@test(each={"closer": ["client", "server"]})
def half_closed_state(t, closer):
    """a session whose {closer} has ended its half is told apart from those that are open"""
    front, back, admin = t.address(), t.address(), t.path("admin")
    text = (section(admin) + f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
            f"[upstream back]\nserver.only = {back}\nserver_closed_timeout = 0\n")
    with net.listen(back) as listener, t.daemon(text):
        with net.proxied(front, listener) as (client, server), net.proxied(front, listener):
            (client if closer == "client" else server).shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(server if closer == "client" else client), b"", "the other side's end")
            rows = get(admin, "/v1/sessions").json["sessions"]
            check_equal(sorted(row["state"] for row in rows), sorted([f"{closer}_closed", "open"]), "states")


@test()
def paused_upstream(t):
    """clients of a paused upstream are held, while its server restarts, and are served when it is resumed;
    no server is blamed, and those above max_held are reset"""
    with Place(t, "a") as place:
        old = place.client()
        place.act("/v1/pause", upstream="back", max_held=5)
        new = [place.stack.enter_context(net.connect(place.front)) for _ in range(5)]
        t.eventually(lambda: place.matched("") == 6, "they are accepted")
        check_equal({row["state"] for row in place.sessions()["sessions"]}, {"open", "connecting"}, "states")
        check_equal(net.fate(place.front), "reset", "the end of one more")
        place.servers["a"].__exit__()
        time.sleep(0.2)
        check(not any(map(has_ended, new)), "one has ended while it is paused")
        place.servers["a"].__enter__()
        place.act("/v1/resume", upstream="back")
        check(all(is_alive(greeted(client)) for client in new), "one was not served")
        check_equal(len(place.daemon.log_lines("cannot connect|ejected")), 0, "log lines")


@test(each=[{"kind": "listener", "name": "front"}, {"kind": "upstream", "name": "back"}])
def released_at_a_rate(t, kind, name):
    """those that a paused {kind} holds are served at the rate of its resume, and then all are"""
    with Place(t) as place:
        place.act("/v1/pause", **{kind: name})
        new = [place.stack.enter_context(net.connect(place.front)) for _ in range(20)]
        if kind == "upstream":
            t.eventually(lambda: place.matched("") == 20, "they are held")
        began = time.monotonic()
        check_equal(place.act("/v1/resume", **{kind: name}, rate=20), {"state": "resuming"}, "the answer")
        for client in new:
            greeted(client)
        check(time.monotonic() - began >= 0.8, f"they were served within {time.monotonic() - began:.3f} s")
        t.eventually(lambda: get(place.admin, "/readyz").status == 200, "it is over")
        check_equal(len(place.daemon.log_lines("the pause is over")), 1, "log lines")
        check_equal(sum(place.served(40).values()), 40, "clients then")


@test(each=[{"kind": "listener", "name": "front"}, {"kind": "upstream", "name": "back"}])
def a_pause_ends(t, kind, name):
    """a paused {kind} serves again by itself after its time"""
    with Place(t) as place:
        began = time.monotonic()
        place.act("/v1/pause", **{kind: name, "for": "1s"})
        place.client()
        check(time.monotonic() - began >= 0.9, "it was served too early")
        check_equal(sum(place.served(4).values()), 4, "clients then")
        check_equal(get(place.admin, "/readyz").status, 200, "/readyz")


@test(each={"removed": ["listener", "address"]})
def paused_and_removed(t, removed):
    """a reload removes the {removed} of clients that a pause holds: they are served"""
    with Place(t) as place:
        echo = f"[listen echo]\naddress = {place.echo}\nservice = echo\n"
        rest = {"listener": "", "address": echo.replace(place.echo, t.address())}[removed]
        place.act("/v1/pause", listener="echo", **{"for": "1h"})
        held = [place.stack.enter_context(net.connect(place.echo)) for _ in range(5)]
        place.daemon.reload(place.config().replace(echo, rest).replace("drain_timeout = 500ms", "drain_timeout = 1h"))
        for client in held:
            check_equal(net.exchange(client, b"x"), b"x", "the echo")


@test(each=[{"kind": "listener", "name": "echo"}, {"kind": "upstream", "name": "back"}])
def paused_after_it_came_back(t, kind, name):
    """the {kind} that a reload removed while it was paused comes back, and can be paused"""
    with Place(t, "a") as place:
        first = place.config()
        echo = f"[listen echo]\naddress = {place.echo}\nservice = echo\n"
        other = {"listener": first.replace(echo, ""),
                 "upstream": first.replace("[upstream back]", "[upstream other]").replace("upstream = back", "upstream = other")}
        place.act("/v1/pause", **{kind: name, "for": "1h"})
        place.daemon.reload(other[kind])
        check_equal(get(place.admin, "/readyz").status, 200, "/readyz without it")
        place.daemon.reload(first)
        place.client(place.echo if kind == "listener" else None)
        place.act("/v1/pause", **{kind: name, "for": "1h"})
        with net.connect(place.echo if kind == "listener" else place.front) as client:
            client.sendall(b"x")
            check(not select.select([client], [], [], 0.3)[0], "it is served though it is paused")
            place.act("/v1/resume", **{kind: name})
            check(net.read_exactly(client, 1), "it is served then")


@test()
def pauses_refused(t):
    """what cannot be paused or resumed is refused, and a drain while a listener is paused loses no client"""
    with Place(t) as place:
        for path, status, body in (("pause", 404, {"listener": "nobody"}), ("pause", 404, {"upstream": "nobody"}),
                                   ("pause", 400, {}), ("pause", 400, {"listener": "front", "upstream": "back"}),
                                   ("pause", 400, {"listener": "front", "max_held": 5}),
                                   ("pause", 400, {"upstream": "back", "max_held": 0}),
                                   ("pause", 400, {"listener": "front", "for": "10ms"}),
                                   ("resume", 404, {"listener": "nobody"}), ("resume", 409, {"listener": "front"}),
                                   ("resume", 409, {"upstream": "back"}), ("resume", 400, {"upstream": "back", "rate": -1})):
            place.act(f"/v1/{path}", status=status, **body)
        place.act("/v1/pause", listener="echo", **{"for": "1h"})
        place.act("/v1/pause", upstream="back", **{"for": "1h"})
        with net.connect(place.echo) as s:
            place.daemon.send_signal(signal.SIGTERM)
            check_equal(net.exchange(s, b"x"), b"x", "the echo")
        place.daemon.wait()
