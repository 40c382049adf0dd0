"""history: the events of the process, and samples of what it did, by the admin interface and reactorctl."""

import json
import os
import signal
import subprocess
import time

from support import net, preload
from support.admin import get, section
from support.admin_mock import AdminMock, EVENTS
from support.case import check, check_equal, test
from support.chain import exchange_once
from support.ctl_runs import done, refused
from support.server import Counted

OWN_MEMORY_FAILS = 1  # as in preload/memory_fault.c


def config(admin, front, servers, more="", check_lines="check = tcp\ncheck_interval = 200ms\nfall = 1\nrise = 1\n"):
    lines = "".join(f"server.{name} = {address}\n" for name, address in servers.items())
    return (section(admin, more) + f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
            + f"[upstream back]\n{lines}{check_lines}")


def events(admin, query=""):
    return get(admin, f"/v1/events{query}").json["events"]


def texts(admin):
    return [event["text"] for event in events(admin)]


def samples(admin, thing, figure, step=1):
    """The samples of a figure, without those that are missing; ended:REASON is one, too."""
    answer = get(admin, f"/v1/history?object={thing}&step={step}")
    if answer.status != 200:
        return []
    head, _, reason = figure.partition(":")
    values = answer.json[head].get(reason, []) if reason else answer.json[head]
    return [value for value in values if value is not None]


def begun(t, admin, thing="listener/front"):
    """The object has a sample: what is counted from now on is in the next ones."""
    t.eventually(lambda: samples(admin, thing, "sessions"), f"{thing} has samples")


@test()
def events_of_a_night(t):
    """a server that goes down and comes back, a command with who gave it, and a reload are events in order, as
    logged"""
    admin, front, at = t.path("admin.sock"), t.address(), t.address()

    def told(word):
        return len([text for text in texts(admin) if word in text])

    with t.daemon(config(admin, front, {"a": at})) as daemon:
        for number in (1, 2):
            t.eventually(lambda: told("server a: down:") == number, "a is down")
            with Counted(at):
                t.eventually(lambda: told("server a: up:") == number, "a is up")
        check_equal(t.reactorctl("-s", admin, "weight", "back/a", "7").code, 0, "weight")
        daemon.reload(config(admin, front, {"a": at}, check_lines="check = off\n"))
        t.eventually(lambda: any(text.startswith("reload: done") for text in texts(admin)), "the reload is an event")
        listed = events(admin)
        ids = [event["id"] for event in listed]
        check_equal(ids, sorted(ids), "IDs")
        down = next(event for event in listed if "server a: down:" in event["text"])
        check_equal((down["kind"], down["level"], down["subject"]), ("server", "warning", "upstream back: server a"),
                    "the event")
        by_whom = next(event for event in listed if event["kind"] == "admin")
        check_equal(by_whom["subject"].split(" pid ")[0], f"admin: uid {os.getuid()}", "who")
        check("/v1/server" in by_whom["text"] and '"weight":7' in by_whom["text"], by_whom["text"])
        check(any(event["kind"] == "reload" and "check" in event["text"] for event in listed), "what the reload changed")
        for event in listed:
            check(event["text"] in daemon.log(), f"the log does not have {event['text']}")
        printed = t.reactorctl("-s", admin, "events").out.splitlines()
        check_equal([line.split(" ", 2)[2] for line in printed], [event["text"] for event in listed], "printed")
        last = t.reactorctl("-s", admin, "events", "--limit", "1").out.splitlines()
        check_equal(last, printed[-1:], "the last")


@test()
def last_check(t):
    """a server has what its last check found: why it failed, or how long it took; without checks nothing"""
    admin, at = t.path("admin.sock"), t.address()

    def found():
        return get(admin, "/v1/upstreams").json["upstreams"][0]["servers"][0]["last_check"] or ""

    with t.daemon(config(admin, t.address(), {"a": at})):
        t.eventually(lambda: found().startswith("failed ") and found().endswith(" ago: connection refused"), "it failed")
        with Counted(at):
            t.eventually(lambda: found().startswith("passed in ") and found().endswith(" s ago"), "it passed")
    with t.daemon(config(admin, t.address(), {"a": at}, check_lines="")):
        check_equal(found(), "", "without checks")


@test()
def events_below_the_log_level(t):
    """log_level = error hides lines from the log, not from the events"""
    admin, front = t.path("admin.sock"), t.address()
    with t.daemon("[reactord]\nlog_level = error\n" + config(admin, front, {"a": t.address()})):
        t.eventually(lambda: any("server a: down:" in text for text in texts(admin)), "a is down")


@test()
def repeated_lines(t):
    """clients that find no server are one event with the number of its lines"""
    admin, front = t.path("admin.sock"), t.address()
    with t.daemon(config(admin, front, {"a": t.address()})):
        def turned_away():
            net.fate(front)
            return [event for event in events(admin) if "the client is reset" in event["text"]]

        t.eventually(lambda: [event["lines"] > 1 for event in turned_away()] == [True], "one event of several lines")
        check_equal(turned_away()[0]["subject"], "upstream back", "subject")


@test()
def follow(t):
    """reactorctl events --follow goes on with events to come, also those of a daemon started anew"""
    admin, front = t.path("admin.sock"), t.address()
    text = config(admin, front, {"a": t.address()}, check_lines="")
    output = t.path("followed")
    with open(output, "wb") as file:
        with t.daemon(text) as first:
            following = subprocess.Popen([t.reactorctl_path, "-s", admin, "events", "--follow"], stdout=file,
                                         stderr=subprocess.DEVNULL)
            try:
                t.eventually(lambda: b"ready" in open(output, "rb").read(), "what was")
                check_equal(t.reactorctl("-s", admin, "weight", "back/a", "5").code, 0, "weight")
                t.eventually(lambda: b'"weight":5' in open(output, "rb").read(), "what came")
                first.stop()
                with t.daemon(text):
                    t.eventually(lambda: open(output, "rb").read().count(b"ready\n") == 2, "the second daemon", 30)
            finally:
                following.kill()
                following.wait()
    written = open(output, encoding="utf-8").read().splitlines()
    check_equal(len([line for line in written if '"weight":5' in line]), 1, "lines of the command")


@test()
def printed(t):
    """reactorctl events prints a repeated event once, --json the answer; other limits are refused"""
    with AdminMock(t.path("a.sock")) as mock:
        out = done(t, mock, "events").splitlines()
        check_equal(out[0], "2026-11-24T02:59:00.000Z notice ready", "the first")
        check(out[1].endswith("new clients wait (7 times)"), out[1])
        check_equal(json.loads(done(t, mock, "events --json --limit 9")), EVENTS, "JSON")
        check_equal(mock.requests[-1].arguments(), {"after": "0", "limit": "9"}, "what was asked")
        for limit in ("0", "501"):
            refused(t, mock, f"events --limit {limit}", 2, "--limit is 1 to 500")
    with AdminMock(t.path("b.sock"), {("GET", "/v1/events"): {"events": 7}}) as mock:
        refused(t, mock, "events", 2, "events")


@test()
def samples_are_kept(t):
    """sessions, bytes and ends are in the samples of process, listener and upstream, also over a reload"""
    admin, front, other, at = t.path("admin.sock"), t.address(), t.address(), t.address()
    with Counted(at), t.daemon(config(admin, front, {"a": at})) as daemon:
        begun(t, admin)
        for _ in range(5):
            exchange_once(front)
        for thing in ("process", "listener/front", "upstream/back"):
            for figure in ("new_sessions", "ended:client_fin"):
                t.eventually(lambda thing=thing, figure=figure: 0 < sum(samples(admin, thing, figure)) < 6,
                             f"{figure} of {thing}")
            check(sum(samples(admin, thing, "bytes_in")) > 0, f"bytes of {thing}")
        check(max(samples(admin, "upstream/back", "connect_p99_ms")) > 0, "connect")
        check(max(samples(admin, "upstream/back", "first_byte_p99_ms")) > 0, "first byte")
        more = f"[listen other]\naddress = {other}\nservice = echo\n"
        daemon.reload(config(admin, front, {"a": at}, "history = 1d\n") + more)
        begun(t, admin, "listener/other")
        check(sum(samples(admin, "listener/front", "new_sessions")) > 0, "sessions of front before the reload")
        check_equal(get(admin, "/v1/history").json["steps_s"], [1, 10, 60], "steps")
        daemon.reload(config(admin, front, {"a": at}))
        t.eventually(lambda: get(admin, "/v1/history?object=listener/other").status == 404, "other is forgotten")
        check_equal(get(admin, "/v1/history").json["steps_s"], [1, 10], "steps then")


@test()
def a_long_session(t):
    """the bytes of a session that lasts are in the samples while it is open"""
    admin, front, at = t.path("admin.sock"), t.address(), t.address()
    with Counted(at), t.daemon(config(admin, front, {"a": at})):
        begun(t, admin)
        with net.connect(front) as client:
            net.exchange(client, b"x" * 1000)
            t.eventually(lambda: 0 < sum(samples(admin, "process", "bytes_in")) < 1001, "bytes of an open session")
            check_equal(samples(admin, "listener/front", "sessions")[-1], 1, "open sessions")


@test()
def nothing_is_kept(t):
    """with history = 0 there are no samples, and the first reload with a history begins one"""
    admin, front, at = t.path("admin.sock"), t.address(), t.address()
    with t.daemon(config(admin, front, {"a": at}, "history = 0\n")) as daemon:
        check_equal(get(admin, "/v1/history").json["steps_s"], [], "steps")
        check_equal(get(admin, "/v1/history?object=process").status, 404, "samples")
        daemon.reload(config(admin, front, {"a": at}, "history = 5m\n"))
        begun(t, admin)
        check_equal(get(admin, "/v1/history").json["steps_s"], [1], "steps then")


@test()
def bad_requests(t):
    """objects, steps and numbers that are not there are refused with what is allowed"""
    admin = t.path("admin.sock")
    with t.daemon(config(admin, t.address(), {"a": t.address()})):
        begun(t, admin)
        for path, status, word in (
                ("/v1/history?object=listener/none", 404, "listener/NAME"), ("/v1/history?object=none", 404, "loop/NAME"),
                ("/v1/history?object=process&step=7", 404, "steps_s"), ("/v1/history?object=process&step=0", 400, "step"),
                ("/v1/history?object=process&step=x", 400, "step"), ("/v1/history?object=", 400, "object"),
                ("/v1/history?object=process&after=-1", 400, "after"), ("/v1/history?what=1", 400, "what"),
                ("/v1/events?after=x", 400, "after"), ("/v1/events?limit=0", 400, "limit"),
                ("/v1/events?limit=501", 400, "limit"), ("/v1/events?more=1", 400, "more")):
            answer = get(admin, path)
            check_equal(answer.status, status, path)
            check(word in answer.error, f"{path}: {answer.error}")
        last = get(admin, "/v1/history?object=process").json["last"]
        check_equal(samples(admin, "process", "sessions")[-1:], [0], "a sample")
        later = get(admin, f"/v1/history?object=process&after={last + 1000}").json
        check(len(later["sessions"]) >= 1, "a number of another process asks for all")


@test(each={"value": ["-1h", "59s", "8d", "long", "1h 1h"]})
def bad_values(t, value):
    """history = {value} is refused with its line, and with what is allowed"""
    text = section(t.path("admin.sock"), f"history = {value}\n") + f"[listen e]\naddress = {t.address()}\nservice = echo\n"
    finished = t.reactord("-t", "-c", t.write("bad.ini", text))
    check_equal(finished.code, 1, "exit code")
    check("bad.ini:3: [admin] history" in finished.err and "0, or 1m to 7d" in finished.err, finished.err)


@test()
def a_pause(t):
    """a process that was stopped has a gap, and no sample of all its absence"""
    admin, front, at = t.path("admin.sock"), t.address(), t.address()

    def values():
        return get(admin, "/v1/history?object=process").json["new_sessions"]

    with Counted(at), t.daemon(config(admin, front, {"a": at})) as daemon:
        begun(t, admin)
        daemon.send_signal(signal.SIGSTOP)
        try:
            time.sleep(7)
        finally:
            daemon.send_signal(signal.SIGCONT)
        t.eventually(lambda: values()[-1] is not None, "samples again")
        t.eventually(lambda: None in values(), "a gap")


@test(needs=("cc",), plain_only=True)
def without_memory(t):
    """when the memory of the process runs out, its clients are served, that the history is shorter is said, and it goes
    on from where there is memory again"""
    admin, front, at = t.path("admin.sock"), t.address(), t.address()
    faults = preload.Preload(t, "memory_fault")

    def figures():
        return get(admin, "/v1/history?object=listener/front").json

    with Counted(at), t.daemon(config(admin, front, {"a": at}), environment=faults.environment()) as daemon:
        begun(t, admin)
        faults.plan(OWN_MEMORY_FAILS, thread="admn")
        t.eventually(lambda: [exchange_once(front), daemon.log_lines("history: no memory .*: new figures are not kept")][1],
                     "it is said")
        faults.stop(OWN_MEMORY_FAILS)
        t.eventually(lambda: daemon.log_lines("history: there is memory again"), "there is some again")
        t.eventually(lambda: [exchange_once(front), figures()["new_sessions"][-1]][1], "a sample again", 20)
        check(figures()["complete"], "it is complete")
        check(any("history: no memory" in text for text in texts(admin)), "the event")
