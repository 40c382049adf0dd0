"""control: sessions are listed, killed and shed, and servers drained, disabled, enabled and weighed, by
the admin interface."""

import contextlib
import re
import time
from collections import Counter

from support import net
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.control_place import Place, has_ended, is_alive
from support.upstreams import config, statistics

ID = re.compile(r"[0-9a-f]{32}")


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

        # The fewest of several: other tasks come in between, and a turn may be counted behind the look at it.
        short, long = (min(tasks(limit) for _ in range(20)) for limit in (1, 200))
        check(long >= short + 4, f"{long} tasks for 200 sessions, {short} for one")


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
