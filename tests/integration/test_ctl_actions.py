"""ctl: what reactorctl changes: sessions that are killed, drains, pauses and reloads."""

import os
import pty

from support.admin_mock import AdminMock, STATUS, error
from support.case import check, check_equal, test
from support.ctl_runs import ID, ask, done, pages, refused

THEME = "ctl"


# Commands with a course of their own

@test()
def kill_by_id(t):
    """kill ID of a session that is gone is refused"""
    with AdminMock(t.path("a.sock"), {("POST", "/v1/sessions/kill"): {"killed": 0}}) as mock:
        refused(t, mock, f"kill {ID}", 1, "no session has this ID")


@test(each=[{"typed": b"y\n", "killed": True}, {"typed": b"n\n", "killed": False}, {"typed": b"\x04", "killed": False}])
def kill_asks(t, typed, killed):
    """on a terminal, kill with filters says how many match and asks; {typed!r} kills: {killed}"""
    routes = {**pages(12), ("POST", "/v1/sessions/kill"): {"killed": 12}}
    ours, theirs = pty.openpty()
    with AdminMock(t.path("a.sock"), routes) as mock:
        os.write(ours, typed)
        finished = t.reactorctl("-s", mock.address, "kill", "--listener", "front", stdin=theirs)
        check("Kill 12 sessions? [y/N]" in finished.err, f"it asks {finished.err!r}")
        check_equal(finished.code, 0 if killed else 1, "exit code")
        check_equal(len(mock.bodies("/v1/sessions/kill")), int(killed), "kills")
    os.close(ours)
    os.close(theirs)


@test()
def drain_waits(t):
    """drain --wait returns when the server has no session left"""
    left = [3]

    def sessions(request):
        if request.arguments()["server"] != "back%2Fa":
            return error(404, "server 'back/c' does not exist")
        left[0] -= 1
        return {"sessions": [], "matched": max(left[0], 0), "next": None}

    routes = {("GET", "/v1/sessions"): sessions, ("POST", "/v1/server"): {"state": "draining", "weight": 1}}
    with AdminMock(t.path("a.sock"), routes) as mock:
        check_equal(done(t, mock, "drain back/a --wait"), "back/a: draining, weight 1\nback/a: no session\n", "output")
        check_equal(len(mock.requests), 4, "requests")
        check("back/c: no session" in done(t, mock, "drain back/c --wait"), "a server without address has none")


@test()
def ambiguous_pause(t):
    """a name that a listener and an upstream have needs a prefix; one that none has is refused"""
    routes = {("GET", "/v1/upstreams"): {"upstreams": [{"name": "front"}]}, ("POST", "/v1/pause"): {"state": "paused"}}
    with AdminMock(t.path("a.sock"), routes) as mock:
        refused(t, mock, "pause front", 2, "write listener:front or upstream:front")
        refused(t, mock, "pause nothing", 1, "no listener or upstream 'nothing'")
        check_equal(done(t, mock, "pause listener:front"), "listener front: paused\n", "output")


def reloads(states):
    """GET /v1/status of a daemon whose reload goes through these (state, count, reverted)."""
    states = list(states)

    def status_of(_):
        state, count, reverted = states.pop(0) if len(states) > 1 else states[0]
        return {**STATUS, "reload": {"state": state, "count": count, "failed": 0, "reverted": reverted,
                                     "confirm_in_s": None}}
    return status_of


@test(each=[
    {"states": [("idle", 0, 4), ("unconfirmed", 1, 4), ("unconfirmed", 1, 4), ("idle", 1, 4)], "code": 0,
     "says": "\nconfirmed\n"},
    {"states": [("idle", 0, 4), ("unconfirmed", 1, 4), ("applying", 1, 4), ("idle", 2, 4)], "code": 0,
     "says": "\nconfirmed\n"},
    {"states": [("idle", 0, 4), ("unconfirmed", 1, 4), ("applying", 1, 4), ("idle", 2, 5)], "code": 1,
     "says": "not confirmed"},
    {"states": [("idle", 0, 4), ("unconfirmed", 1, 4), ("applying", 1, 4), ("unconfirmed", 1, 4), ("idle", 2, 5)],
     "code": 1, "says": "not confirmed"}])
def reload_waits(t, states, code, says):
    """reload --confirm --wait ends with exit code {code} when the reload goes through {states}"""
    routes = {("GET", "/v1/status"): reloads(states), ("POST", "/v1/reload"): {"changes": ["[worker] threads = 2"]}}
    with AdminMock(t.path("a.sock"), routes) as mock:
        finished = ask(t, mock, "reload --confirm 60s --wait")
        check_equal(finished.code, code, "exit code")
        check(says in finished.out + finished.err, f"it says {finished.out!r} {finished.err!r}")
        check("[worker] threads = 2" in finished.out, "the change is not shown")


@test(each=[{"count": 1, "code": 0}, {"count": 0, "code": 1}])
def a_slow_reload(t, count, code):
    """reload --wait goes on when the answer is late; whether it was applied is the exit code {code}"""
    routes = {("GET", "/v1/status"): reloads([("idle", 0, 0), ("applying", 0, 0), ("idle", count, 0)]),
              ("POST", "/v1/reload"): error(408, "the deadline of the request has passed")}
    with AdminMock(t.path("a.sock"), routes) as mock:
        check_equal(ask(t, mock, "reload --wait").code, code, "exit code")
        check_equal(ask(t, mock, "reload").code, 1, "exit code without --wait")
