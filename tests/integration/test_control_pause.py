"""control: limits and settings at run time, and listeners and upstreams that are paused."""

import contextlib
import select
import signal
import socket
import time
from collections import Counter

from support import net
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.control_place import Place, has_ended, is_alive
from support.health import greeted

THEME = "control"


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
        for sort in ("age", "idle", "bytes", "load"):
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
        check(min(counts.values()) > 0 and len(counts) == 10, f"what was done: {counts}")
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
