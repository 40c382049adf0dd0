"""admin: reloads, drains and upgrades that are asked for."""

import contextlib
import os
import re
import select
import signal
import time

from support import net
from support.admin import read_answer, section, write_request
from support.admin_place import KINDS, Place
from support.case import check, check_equal, test
from support.chain import Chain, exchange_once
from support.daemon import alive
from support.net import Task

THEME = "admin"


# ---- reload, confirm, revert ----

@test()
def reload_tells_its_changes(t):
    """a reload answers when it is done, with what has changed; a dry run changes nothing"""
    place = Place(t)
    wanted = ["[listen echo] idle_timeout: 1h -> 1m (live)"]
    with place.daemon() as daemon:
        daemon.config_path.write_text(place.config + "idle_timeout = 1m\n", encoding="ascii")
        check_equal(place.post("/v1/reload", {"dry_run": True}).json, {"changes": wanted}, "dry run")
        check("idle_timeout = 1h" in place.get("/v1/config").body.decode(), "not used yet")
        check_equal(daemon.log_lines("reload: "), [], "lines of a dry run")
        check_equal(place.post("/v1/reload").json, {"changes": wanted}, "reload")
        check("idle_timeout = 1m" in place.get("/v1/config").body.decode(), "it is used")
        check_equal(place.post("/v1/reload").json, {"changes": []}, "nothing has changed")
        check_equal(place.get("/v1/status").json["reload"]["count"], 2, "count")
        check(daemon.log_lines(r"admin: uid \d+ pid %d: POST /v1/reload \{\}: done" % os.getpid()),
              "who it was is logged")


@test(each={"dry_run": [True, False]})
def reload_refused(t, dry_run):
    """a bad configuration is refused with 409 and all its problems (dry run: {dry_run})"""
    place = Place(t)
    with place.daemon() as daemon:
        bad = place.config + "idle_timeout = soon\nbacklog = 0\n"
        daemon.config_path.write_text(bad, encoding="ascii")
        answer = place.post("/v1/reload", {"dry_run": dry_run})
        check_equal(answer.status, 409, "status")
        check_equal(answer.error, "the configuration is not valid", "error")
        check_equal(len(answer.json["messages"]), 2, "messages")
        check("idle_timeout: 'soon' is not a number with a unit" in answer.json["messages"][0],
              answer.json["messages"])
        check_equal(place.get("/v1/status").json["reload"]["failed"], 0 if dry_run else 1, "failed")
        exchange_once(place.front)


@test()
def reload_with_an_address_in_use(t):
    """a reload that cannot listen tells which listener and address"""
    place, taken = Place(t), t.address()
    with place.daemon() as daemon, net.listen(taken):
        daemon.config_path.write_text(f"{place.config}[listen other]\naddress = {taken}\nservice = echo\n",
                                      encoding="ascii")
        answer = place.post("/v1/reload")
        check_equal(answer.error, f"listen other: {taken}: cannot listen: Address already in use", "the error")


@test()
def reload_to_be_confirmed(t):
    """a reload with `confirm` is undone at its end, by revert at once, and kept by confirm"""
    place = Place(t)

    def timeout():
        return re.search(r"\nidle_timeout = (\S+)", place.get("/v1/config").body.decode())[1]

    def reload(confirm):
        check_equal(len(place.post("/v1/reload", {"confirm": confirm}).json["changes"]), 1, "changes")
        check_equal(timeout(), "1m", "while unconfirmed")

    with place.daemon() as daemon:
        daemon.config_path.write_text(place.config + "idle_timeout = 1m\n", encoding="ascii")
        reload("1s")
        t.eventually(lambda: timeout() == "1h", "it is undone", within=10)
        reload("1h")
        status = place.get("/v1/status").json["reload"]
        check_equal(status["state"], "unconfirmed", "state")
        check(3500 < status["confirm_in_s"] <= 3600, status)
        answer = place.post("/v1/upgrade")
        check_equal((answer.status, answer.error),
                    (409, "a reload is under way, or not confirmed yet"), "upgrade")
        check_equal(place.post("/v1/revert").json, {}, "revert")
        check_equal(timeout(), "1h", "reverted")
        check_equal(place.post("/v1/revert").status, 409, "revert again")
        reload("1h")
        check_equal(place.post("/v1/confirm").json, {}, "confirm")
        check_equal(place.post("/v1/confirm").status, 409, "confirm again")
        check_equal(place.post("/v1/revert").status, 409, "revert")
        check_equal(timeout(), "1m", "confirmed")
        check_equal(place.get("/v1/status").json["reload"]["state"], "idle", "state")


@test(timeout=60)
def reloads_at_once(t):
    """of many reloads at once each is done or refused because of another, and status is told meanwhile"""
    place = Place(t)
    with place.daemon() as daemon:
        daemon.config_path.write_text(place.config + "idle_timeout = 1m\n", encoding="ascii")
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(place.connect()) for _ in range(20)]
            for s in clients:
                write_request(s, "POST", "/v1/reload", b"{}")
            check_equal(place.get("/v1/status").status, 200, "status")
            answers = []
            while clients:
                daemon.has_notified("")  # reads what it says: it waits when the socket is full
                ready, _, _ = select.select(clients, [], [], 0.01)
                answers += [read_answer(s) for s in ready]
                clients = [s for s in clients if s not in ready]
        check_equal({a.status for a in answers} | {409}, {200, 409}, "status of the answers")
        check(all(a.error == "a reload is under way" for a in answers if a.status == 409), "errors")
        check_equal(place.post("/v1/reload").json, {"changes": []}, "at the end")


@test(timeout=60)
def clients_that_do_not_wait(t):
    """a client that goes away during its reload leaves nothing behind, and the reload is done"""
    place = Place(t)
    with place.daemon() as daemon:
        before = daemon.fd_count()
        for i in range(30):
            text = place.config + f"idle_timeout = {i + 1}m\n"
            daemon.config_path.write_text(text, encoding="ascii")
            with place.connect() as s:
                write_request(s, "POST", "/v1/reload", b"{}")
            daemon.has_notified("")  # reads what it says: it waits when the socket is full
        # One that was asked for may still be on its way.
        t.eventually(lambda: place.post("/v1/reload").status == 200, "the last one is done")
        check("idle_timeout = 30m" in place.get("/v1/config").body.decode(), "the last one is used")
        t.eventually(lambda: daemon.fd_count() <= before, "descriptors as before")


# ---- stop and upgrade ----

@test()
def drain_is_told(t):
    """while it drains it answers, is not ready, and refuses to change anything"""
    place = Place(t)
    with place.daemon(config="[reactord]\ndrain_timeout = 1m\n" + section(place.address) +
                      f"[listen p]\naddress = {place.front}\nservice = proxy\nupstream = u\n"
                      f"[upstream u]\nserver.a = {t.path('back')}\n") as daemon, \
            net.listen(t.path("back")) as back:
        with net.proxied(place.front, back):
            daemon.send_signal(signal.SIGTERM)
            t.eventually(lambda: place.get("/readyz").status == 503, "not ready")
            check_equal(place.get("/readyz").body, b"draining\n", "/readyz")
            check_equal(place.get("/healthz").status, 200, "/healthz")
            check_equal(place.get("/v1/status").json["state"], "draining", "state")
            for path in ("reload", "confirm", "revert", "upgrade"):
                answer = place.post(f"/v1/{path}")
                check_equal((answer.status, answer.error), (409, "draining"), path)
        daemon.wait()
        check(not os.path.exists(place.address), "the file is gone")


@test(each={"number": [signal.SIGTERM, signal.SIGINT]}, timeout=60)
def stop_with_requests_under_way(t, number):
    """signal {number} ends it although requests, answers and reloads are under way"""
    place = Place(t)
    for i in range(5):
        with place.daemon() as daemon, contextlib.ExitStack() as stack:
            text = place.config + f"idle_timeout = {i + 1}m\n"
            daemon.config_path.write_text(text, encoding="ascii")
            for _ in range(5):
                stack.enter_context(place.connect()).sendall(place.head())
                write_request(stack.enter_context(place.connect()), "GET", "/v1/config")
                write_request(stack.enter_context(place.connect()), "POST", "/v1/reload", b"{}")
            time.sleep(i * 0.002)
            daemon.stop(number)


@test(each=KINDS, timeout=60)
def upgrades_take_over(t, kind):
    """over {kind} an upgrade answers the client that asked, and requests at any time are answered"""
    place = Place(t, kind)
    with Chain(t, place.config) as chain:
        pids, ending = set(), []

        def ask():
            while not ending:
                pids.add(place.get("/v1/status").json["pid"])

        asking = Task(ask)
        for _ in range(3):
            with place.connect() as idle:
                write_request(idle, "GET", "/healthz", host=place.host)
                read_answer(idle)
                check_equal(place.post("/v1/upgrade").json, {}, "upgrade")
                new = chain.started()[-1]
                chain.wait_line("upgrade: took over", new)
                chain.old.append(chain.pid)
                chain.pid = new
                check_equal(place.get("/v1/status").json["pid"], new, "the new process answers")
                t.eventually(lambda: not alive(chain.old[-1]), "the old one ends")
        ending.append(True)
        asking.result()
        check_equal(pids - set(chain.started()) - {chain.daemon.pid}, set(), "who answered")
        chain.stop()
        if kind == "unix":
            check(not os.path.exists(place.address), "the file is gone")


@test(timeout=60)
def slow_upgrades(t):
    """an upgrade that takes longer than request_timeout is answered; a client may go away before"""
    place = Place(t, more="request_timeout = 1s\n")
    with Chain(t, place.config) as chain:
        chain.becomes_reactord("sleep 2")
        with place.connect() as s:
            write_request(s, "POST", "/v1/upgrade", b"{}")
            chain.eventually(lambda: chain.started(), "it began")
            check_equal(place.get("/readyz").status, 200, "/readyz")
            chain.eventually(lambda: select.select([s], [], [], 0)[0], "an answer")
            check_equal(read_answer(s).json, {}, "the answer")
        chain.pid = chain.started()[-1]
        with place.connect() as s:
            write_request(s, "POST", "/v1/upgrade", b"{}")
            chain.eventually(lambda: len(chain.started()) == 2, "another began")
        chain.pid = chain.started()[-1]
        chain.wait_line("upgrade: took over", chain.pid)
        chain.eventually(lambda: place.get("/v1/status").json["pid"] == chain.pid, "it took over")
        chain.stop()


@test(timeout=60)
def upgrades_that_fail(t):
    """an upgrade that fails is answered with 409 and the reason; the interface goes on"""
    place = Place(t)
    with Chain(t, place.config) as chain:
        chain.becomes("exit 5\n")
        answer = place.post("/v1/upgrade")
        check_equal(answer.status, 409, "status")
        check("5" in answer.error, answer.error)
        check_equal(place.get("/v1/status").json["pid"], chain.pid, "pid")
        chain.becomes("sleep 100\n")
        with place.connect() as s:
            write_request(s, "POST", "/v1/upgrade", b"{}")
            chain.eventually(lambda: len(chain.started()) == 2, "it began")
            for path in ("upgrade", "reload"):
                other = place.post(f"/v1/{path}")
                check_equal((other.status, other.error), (409, "an upgrade is under way"), path)
            os.kill(chain.pid, signal.SIGTERM)
            answer = read_answer(s)
            check(answer.status in (409, 503), f"{answer.status} {answer.body}")
        chain.wait_gone(chain.pid)


@test(timeout=60)
def killed_processes_leave_the_address(t):
    """when the old process is killed while it drains, the new one has the interface"""
    place = Place(t)
    text = place.config
    with Chain(t, text) as chain, net.connect(place.front) as client:
        net.exchange(client, b"hello")
        chain.upgrade()
        os.kill(chain.old[-1], signal.SIGKILL)
        chain.eventually(lambda: not alive(chain.old[-1]), "it is gone")
        check_equal(place.get("/v1/status").json["pid"], chain.pid, "pid")
        chain.stop()
        check(not os.path.exists(place.address), "the file is gone")
