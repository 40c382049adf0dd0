"""ctl: reactorctl. What a real daemon does not do is done by a mock of its admin interface."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys

from support import net
from support.admin_mock import LISTENERS, STATUS, AdminMock, answer, error, session
from support.case import Failed, check, check_equal, is_root, test
from support.screen import Screen

ID = "0123456789abcdef0123456789abcdef"

# Each command as it may be used, and what it sends.
COMMANDS = [
    ("status", "GET /v1/status"),
    ("loops", "GET /v1/loops"),
    ("listeners", "GET /v1/listeners"),
    ("upstreams", "GET /v1/upstreams"),
    ("sessions", "GET /v1/sessions"),
    (f"kill {ID}", "POST /v1/sessions/kill"),
    ("kill --listener front", "POST /v1/sessions/kill"),
    ("kill --listener front --dry-run", "GET /v1/sessions"),
    ("kill --all --yes", "POST /v1/sessions/kill"),
    ("shed back --percent 50", "POST /v1/shed"),
    ("drain back/a", "POST /v1/server"),
    ("disable back/a", "POST /v1/server"),
    ("enable back/a", "POST /v1/server"),
    ("weight back/a 3", "POST /v1/server"),
    ("pause listener:front", "POST /v1/pause"),
    ("resume upstream:back", "POST /v1/resume"),
    ("set io_ratio 70", "POST /v1/set"),
    ("reload", "POST /v1/reload"),
    ("confirm", "POST /v1/confirm"),
    ("revert", "POST /v1/revert"),
    ("upgrade", "POST /v1/upgrade"),
    ("config", "GET /v1/config"),
    ("reset", "POST /v1/reset"),
    ("metrics", "GET /metrics"),
]
EACH_COMMAND = [{"command": command} for command, _ in COMMANDS]


def ask(t, mock, command, **how):
    return t.reactorctl("-s", mock.address, *command.split(), **how)


def done(t, mock, command, **how):
    """What a command prints that goes well."""
    finished = ask(t, mock, command, **how)
    check_equal((finished.code, finished.err), (0, ""), f"exit code and stderr of {command}")
    return finished.out


def refused(t, mock, command, code, *words, **how):
    """What is said by a command that does not go well."""
    finished = ask(t, mock, command, **how)
    check_equal((finished.code, finished.out), (code, ""), f"exit code and stdout of {command} ({finished.err!r})")
    for word in words:
        check(word in finished.err, f"{command} does not say {word!r}, but {finished.err!r}")
    return finished.err


# The command line

@test(each={"option": ["--help", "-h", "help"]})
def help_text(t, option):
    """{option} lists the commands on stdout and exits with 0"""
    finished = t.reactorctl(option)
    check_equal((finished.code, finished.err), (0, ""), "exit code and stderr")
    for command, _ in COMMANDS:
        check(f"\n  {command.split()[0]} " in finished.out, f"{command} is not in the help")


@test(each=EACH_COMMAND)
def help_of_a_command(t, command):
    """help explains the command of "{command}", and so does its option --help"""
    name = command.split()[0]
    finished = t.reactorctl("help", name)
    check_equal((finished.code, finished.err), (0, ""), "exit code and stderr")
    check(finished.out.startswith(f"Usage: reactorctl {name}"), f"it says {finished.out!r}")
    check_equal(t.reactorctl(name, "--help").out, finished.out, "help by the option")


@test()
def version(t):
    """--version prints the version of the program and of its libraries"""
    finished = t.reactorctl("--version")
    check_equal((finished.code, finished.err), (0, ""), "exit code and stderr")
    check(re.match(r"reactorctl \d+\.\d+", finished.out) and "libcurl" in finished.out, f"it says {finished.out!r}")


@test(each=[{"words": words} for words in (
    "", "--no-such-option", "-x", "-s", "frobnicate", "stat", "status surplus", "loops --sort age", "sessions surplus",
    "sessions --sort size", "sessions --min-age 10", "sessions --min-age 0", "sessions --min-bytes ten",
    "sessions --limit -1", "sessions --limit 1 --limit 2", "sessions --server a", "sessions --min-idle",
    "kill", "kill 12", f"kill {ID} --all", f"kill {ID} --dry-run", "kill --all --listener x", "kill a b",
    "shed", "shed back", "shed back --percent 0", "shed back --percent 101", "shed back --percent 5 --over 5",
    "drain", "drain back", "drain back/", "drain back/a/b", "drain a/b c", "disable", "enable", "enable a/b --wait",
    "weight back/a", "weight back/a heavy", "weight back/a -1", "pause", "pause x --for ever", "pause x --max-held few",
    "resume", "resume x --rate fast", "set", "set io_ratio", "set io_ratio 101", "set speed 9", "set max_connections 3", "set log_level",
    "set io_ratio 70 --listener x", "reload now", "reload --confirm", "reload --dry-run --wait", "confirm it",
    "revert it", "upgrade it", "config file", "reset it", "metrics it", "top --sort x", "top --interval 1ms", "top --json", "top 1", "help frobnicate", "--timeout 0 status",
    "--timeout long status", "--json=yes status", "-s /a -s /b status", "-s nowhere status", "-s :80 status",
    "-s ::1:80 status", "-s [::1 status", "-s 127.0.0.1:0 status", "-s 127.0.0.1:70000 status",
    "-s a/b:80 status", "--token-file /no/such/file status", "--token-file /dev/null status")])
def bad_command_line(t, words):
    """the command line "{words}" is refused with exit code 2 and a line on stderr"""
    finished = t.reactorctl(*words.split())
    check_equal((finished.code, finished.out), (2, ""), "exit code and stdout")
    check(finished.err.startswith("reactorctl: "), f"it says {finished.err!r}")


@test()
def a_path_that_is_too_long(t):
    """a path that no unix socket can have is refused before anything is asked"""
    finished = t.reactorctl("-s", "/" + "x" * 108, "status")
    check_equal(finished.code, 2, "exit code")
    check("longer than" in finished.err, finished.err)


@test()
def the_environment(t):
    """$REACTORCTL_ADDRESS names the daemon; a proxy in the environment is not used"""
    environment = {**os.environ, "http_proxy": "http://127.0.0.1:1", "all_proxy": "socks5://127.0.0.1:1"}
    with AdminMock(t.address()) as tcp:
        finished = t.reactorctl("status", env={**environment, "REACTORCTL_ADDRESS": tcp.address})
        check_equal((finished.code, finished.err), (0, ""), "exit code and stderr")


# What is sent

@test(each=[{"command": command, "sent": sent} for command, sent in COMMANDS])
def request(t, command, sent):
    """"{command}" sends {sent}"""
    method, path = sent.split()
    with AdminMock(t.path("a.sock"), {(method, path): lambda request: answer(200, {"sessions": []})}) as mock:
        ask(t, mock, command)
        got = [f"{request.method} {request.path}" for request in mock.requests]
        check_equal(got, [sent], "requests")


@test(each=[
    {"command": f"kill {ID}", "path": "/v1/sessions/kill", "body": {"id": ID}},
    {"command": "kill --all", "path": "/v1/sessions/kill", "body": {"all": True}},
    {"command": "kill --listener front --server back/a --client 10.0.0.0/8 --min-idle 1h --min-bytes 2k",
     "path": "/v1/sessions/kill",
     "body": {"listener": "front", "server": "back/a", "client": "10.0.0.0/8", "min_idle": "1h", "min_bytes": 2048}},
    {"command": "shed back --percent 50%", "path": "/v1/shed",
     "body": {"upstream": "back", "percent": 50, "over": "10s"}},
    {"command": "shed back/a --percent 5 --over 1m", "path": "/v1/shed",
     "body": {"server": "back/a", "percent": 5, "over": "1m"}},
    {"command": "drain back/a", "path": "/v1/server", "body": {"server": "back/a", "state": "drain"}},
    {"command": "disable back/a", "path": "/v1/server", "body": {"server": "back/a", "state": "disable"}},
    {"command": "enable back/a", "path": "/v1/server", "body": {"server": "back/a", "state": "enable"}},
    {"command": "weight back/a 0", "path": "/v1/server", "body": {"server": "back/a", "weight": 0}},
    {"command": "pause front --for 30s --max-held 10", "path": "/v1/pause",
     "body": {"listener": "front", "max_held": 10, "for": "30s"}},
    {"command": "pause upstream:front", "path": "/v1/pause", "body": {"upstream": "front"}},
    {"command": "resume back --rate 100", "path": "/v1/resume", "body": {"upstream": "back", "rate": 100}},
    {"command": "set io_ratio 70%", "path": "/v1/set", "body": {"io_ratio": 70}},
    {"command": "set log_level debug", "path": "/v1/set", "body": {"log_level": "debug"}},
    {"command": "reload", "path": "/v1/reload", "body": {}},
    {"command": "reload --dry-run", "path": "/v1/reload", "body": {"dry_run": True}},
    {"command": "reload --confirm 60s", "path": "/v1/reload", "body": {"confirm": "60s"}},
    {"command": "upgrade", "path": "/v1/upgrade", "body": {}},
])
def body(t, command, path, body):
    """"{command}" posts {body}"""
    with AdminMock(t.path("a.sock"), {("POST", path): {"killed": 1}}) as mock:
        done(t, mock, command)
        check_equal(mock.bodies(path), [body], "bodies")


@test()
def filters_of_sessions(t):
    """filters, order and limit of sessions become arguments of the query, escaped"""
    with AdminMock(t.path("a.sock"), {("GET", "/v1/sessions"): {"sessions": [], "matched": 0, "next": None}}) as mock:
        done(t, mock, "sessions --client 2001:db8::/32 --loop wrkr-2-1 --min-age 5m --min-bytes 1m --sort idle --limit 7")
        check_equal(mock.requests[0].arguments(), {
            "limit": "7", "client": "2001%3Adb8%3A%3A%2F32", "loop": "wrkr-2-1", "min_age": "5m", "min_bytes": "1048576",
            "sort": "idle"}, "arguments")


@test()
def token(t):
    """the token of a file is sent to TCP addresses, and never to a unix socket"""
    path = t.write("token", "s3cret\n")
    for address, wanted in ((t.address(), "Bearer s3cret"), (t.path("a.sock"), None)):
        with AdminMock(address) as mock:
            done(t, mock, f"status --token-file {path}")
            check_equal(mock.requests[0].headers.get("authorization"), wanted, "authorization")


@test(each={"address": ["127.0.0.1", "[::1]", "localhost"]})
def tcp(t, address):
    """a daemon on TCP is asked at {address}, which the header Host names"""
    where = f"{address}:{t.port()}"
    with AdminMock(where.replace("localhost", "127.0.0.1")) as mock:
        finished = t.reactorctl("-s", where, "status")
        check_equal((finished.code, finished.err), (0, ""), "exit code and stderr")
        check_equal(mock.requests[0].headers["host"], where, "host")


# What is shown

@test()
def status(t):
    """status shows a line for each field, durations with their units"""
    with AdminMock(t.path("a.sock")) as mock:
        out = done(t, mock, "status")
    for line in (r"state +serving", r"up +1h02m, since 2026-11-24T02:59:00Z", r"reloads +2, 1 refused, idle"):
        check(re.search(line, out), f"no {line} in {out!r}")


@test()
def tables(t):
    """listeners, upstreams and loops are tables with titles, sizes have units, servers stand below their upstream"""
    with AdminMock(t.path("a.sock")) as mock:
        lines = done(t, mock, "upstreams").splitlines()
        check_equal([line.split()[0] for line in lines], ["UPSTREAM/SERVER", "back", "back/a", "back/b"], "first column")
        check("50M" in lines[1] and "1.5K" in lines[1], f"no sizes in {lines[1]!r}")
        check("127.0.0.1:7008, [::1]:7008" in done(t, mock, "listeners"), "no addresses")
        check("1.2M" in done(t, mock, "loops"), "no turns")


@test()
def json_is_unchanged(t):
    """--json prints the bytes that the daemon sent"""
    sent = b'{ "version":"\\u0030.1",\n "later": [1, 2.50, {"x": null}] }'
    with AdminMock(t.path("a.sock"), {("GET", "/v1/status"): answer(200, sent)}) as mock:
        check_equal(done(t, mock, "--json status"), sent.decode() + "\n", "output")


def pages(total):
    """GET /v1/sessions of a daemon with that many."""
    def page(request):
        arguments = request.arguments()
        first = int(arguments.get("after", 0))
        last = min(first + int(arguments["limit"]), total)
        return {"sessions": [session(i) for i in range(first, last)], "matched": total,
                "next": str(last) if last < total else None}
    return {("GET", "/v1/sessions"): page}


@test(each=[{"limit": 100, "requests": [100], "option": ""}, {"limit": 7, "requests": [7], "option": "--limit 7"},
            {"limit": 1500, "requests": [1000, 500], "option": "--limit 1500"},
            {"limit": 2300, "requests": [1000, 1000, 1000], "option": "--limit 0"}])
def pages_of_sessions(t, limit, requests, option):
    """sessions {option} shows {limit} of 2,300 sessions, asked for in pages of {requests}"""
    with AdminMock(t.path("a.sock"), pages(2300)) as mock:
        lines = done(t, mock, f"sessions {option}").splitlines()
        check_equal(len(lines) - 1, limit, "sessions")
        check_equal([int(request.arguments()["limit"]) for request in mock.requests], requests, "limits")
        check_equal(len(set(line.split()[0] for line in lines)), limit + 1, "different IDs")


@test()
def endless_pages(t):
    """a daemon that always names a next page, and has nothing on it, is asked once"""
    empty = {"sessions": [], "matched": 5, "next": "again"}
    with AdminMock(t.path("a.sock"), {("GET", "/v1/sessions"): empty}) as mock:
        done(t, mock, "sessions --limit 0")
        check_equal(len(mock.requests), 1, "requests")


@test()
def hostile_names(t):
    """control characters in what the daemon sends never reach the output, and columns stay aligned"""
    bad = {**LISTENERS["listeners"][0], "name": "a\x1b]0;x\x07b\nc\u009b31m", "service": 7, "addresses": [None, "\x7f"]}
    routes = {("GET", "/v1/listeners"): {"listeners": [bad]},
              ("GET", "/v1/status"): error(409, "no\x1b[2J\nway")}
    with AdminMock(t.path("a.sock"), routes) as mock:
        out = done(t, mock, "listeners")
        check_equal(len(out.splitlines()), 2, "lines")
        check("a\\x1b]0;x\\x07b\\x0ac\\xc2\\x9b31m" in out, f"it shows {out!r}")
        said = refused(t, mock, "status", 1, "no\\x1b[2J")
        check("\x1b" not in said, f"it says {said!r}")


@test(each={"odd": [{}, {"sessions": None}, {"sessions": {}}, {"sessions": [1, 2]}, {"sessions": "x"}]})
def odd_lists(t, odd):
    """an answer {odd}, which has no list of sessions, is said to be none, with exit code 2"""
    with AdminMock(t.path("a.sock"), {("GET", "/v1/sessions"): odd}) as mock:
        refused(t, mock, "sessions", 2, "no list 'sessions'")


@test()
def odd_rows(t):
    """fields that are missing or of other types are shown as -, and nothing fails"""
    rows = [{}, {"name": None, "servers": 5}, {"name": [], "sessions": "many", "servers": [{}, 3, {"name": 4}]}]
    with AdminMock(t.path("a.sock"), {("GET", "/v1/upstreams"): {"upstreams": rows}}) as mock:
        check_equal(len(done(t, mock, "upstreams").splitlines()), 1 + 3 + 2, "lines")


# What is refused, and what is broken

@test(each=EACH_COMMAND)
def dead_socket(t, command):
    """"{command}": without a daemon, or with the socket of one that died, it says what to look at, with exit code 2"""
    path = t.path("a.sock")
    for made in (False, True):
        if made:
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(path)
        finished = t.reactorctl("-s", path, *command.split())
        check_equal((finished.code, finished.out), (2, ""), "exit code and stdout")
        for word in ("cannot reach " + path, "Is reactord running", "[admin]"):
            check(word in finished.err, f"{word!r} is not in {finished.err!r}")


@test(each=EACH_COMMAND)
def older_daemon(t, command):
    """"{command}": a daemon that does not know it is said to be older, with exit code 1"""
    with AdminMock(t.path("a.sock")) as mock:
        mock.routes = {}
        refused(t, mock, command, 1, "does not know /", "older than this reactorctl")


@test(each=EACH_COMMAND)
def cut_answer(t, command):
    """"{command}": an answer that is cut is not shown, and exit code 2"""
    with AdminMock(t.path("a.sock"), raw=answer(200, '{"sessions": [', length=1000)) as mock:
        refused(t, mock, command, 2, "was cut")


@test(each={"raw": [b"", b"\0" * 100, b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
                    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n"
                    b"Location: http://127.0.0.1:1/\r\n\r\n", b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n<p>",
                    b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 400000]})
def garbage(t, raw):
    """a server that is no reactord, and answers {raw!r:.60}, is not believed: no output, exit code 1 or 2"""
    with AdminMock(t.path("a.sock"), raw=raw) as mock:
        finished = ask(t, mock, "status")
    check(finished.code == 2 or b"404" in raw, f"exit code {finished.code}")
    check_equal(finished.out, "", "stdout")
    check(finished.err.startswith("reactorctl: "), f"it says {finished.err!r}")


@test()
def endless_answer(t):
    """an answer of more than 64 MiB is given up"""
    with AdminMock(t.path("a.sock"), {("GET", "/metrics"): answer(200, b"x" * (65 << 20), "text/plain")}) as mock:
        refused(t, mock, "metrics", 2, "too large")


@test()
def a_daemon_that_hangs(t):
    """a daemon that never answers is given up after --timeout, with a word about it"""
    with AdminMock(t.path("a.sock"), hangs=True) as mock:
        refused(t, mock, "--timeout 300ms status", 2, "no complete answer", "300ms", "--timeout")


@test(each=[{"status": 400}, {"status": 401}, {"status": 403}, {"status": 409}, {"status": 429}, {"status": 503}])
def refusals(t, status):
    """a refusal with status {status} is passed on in the daemon's words, with exit code 1"""
    with AdminMock(t.address(), {("POST", "/v1/confirm"): error(status, "because of that")}) as mock:
        said = refused(t, mock, "confirm", 1, "because of that")
        check(status != 401 or "--token-file" in said, f"it says {said!r}")


@test()
def an_unknown_name(t):
    """a name that the daemon does not know is not taken for an older daemon"""
    with AdminMock(t.path("a.sock"), {("POST", "/v1/server"): error(404, "there is no server x/y")}) as mock:
        check_equal(refused(t, mock, "drain x/y", 1), "reactorctl: there is no server x/y\n", "stderr")


@test()
def reload_refused(t):
    """a reload that is refused lists the errors of the configuration"""
    refusal = error(409, "the configuration has errors", messages=["f.ini:3: bad", "f.ini:9: worse"])
    with AdminMock(t.path("a.sock"), {("POST", "/v1/reload"): refusal}) as mock:
        refused(t, mock, "reload", 1, "the configuration has errors\n", "  f.ini:3: bad\n", "  f.ini:9: worse\n")


@test()
def no_permission(t):
    """a socket of another user: it says whose it is and what to do, with exit code 2"""
    if not is_root():
        return
    path = t.path("a.sock")
    with AdminMock(path):
        os.chmod(path, 0o600)
        os.chmod(t.dir, 0o755)
        finished = t.reactorctl("-s", path, "status", user=65534)
        check_equal((finished.code, finished.out), (2, ""), "exit code and stdout")
        for word in ("no permission", "user root, group root, mode 0600", "sudo", "0660"):
            check(word in finished.err, f"{word!r} is not in {finished.err!r}")


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


# top

def top_routes(status_of=None):
    """A daemon whose counters grow by 100 with each sample."""
    samples = [0]

    def listeners(_):
        samples[0] += 1
        return {"listeners": [{**LISTENERS["listeners"][0], "sessions_total": 100 * samples[0]}]}

    return {**pages(12), ("GET", "/v1/listeners"): listeners, **({("GET", "/v1/status"): status_of} if status_of else {})}


def top(t, mock, *arguments, columns=80, rows=24):
    return Screen([t.reactorctl_path, "-s", mock.address, "top", *arguments], columns, rows)


def shows(t, screen, *words):
    """Wait until the screen has these words; returns its text."""
    try:
        t.eventually(lambda: all(word in screen.text() for word in words) and not screen.unknown,
                     f"{words} on the screen, and nothing that does not fit", 10)
    except Failed:
        print(screen.text(), screen.unknown)
        raise
    return screen.text()


@test(each=[{"option": []}, {"option": ["--once"]}])
def top_once(t, option):
    """top {option} without a terminal writes plain text once, with the rates of two samples"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock:
        out = done(t, mock, " ".join(["top", "--interval", "200ms", *option]))
    for title in ("LOOP ", "LISTENER ", "SERVER ", "CLIENT "):
        check(f"\n\n{title}" in out, f"no {title} in {out}")
    check("\033" not in out, "control sequences")
    rate = next(line for line in out.splitlines() if line.startswith("front ")).split()[3]
    check(50 < float(rate) <= 500, f"100 in 200 ms or a little more: {rate}/s")


@test(each=[{"columns": 80, "rows": 24}, {"columns": 40, "rows": 10}, {"columns": 200, "rows": 60},
            {"columns": 20, "rows": 3}, {"columns": 3, "rows": 1}])
def top_fits(t, columns, rows):
    """top fits a terminal of {columns}x{rows}: nothing wraps or scrolls; q ends it and restores the terminal"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock, top(t, mock, columns=columns, rows=rows) as screen:
        t.eventually(lambda: len(mock.requests) >= 10 and "r" in screen.text(), "two samples", 15)
        check("1049" in screen.modes and "25" not in screen.modes, f"modes {screen.modes}")
        check_equal(screen.unknown, [], "wraps and scrolls")
        screen.type("q")
        check_equal(screen.wait(10 * t.scale), 0, "exit code")
        check(screen.is_restored(), f"the terminal is not as it was: {screen.modes}")


@test()
def top_keys(t):
    """top: s changes the order, p pauses, a resize is followed at once"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock, top(t, mock) as screen:
        text = shows(t, screen, "reactord 0.1.0", "by bytes", "wrkr-2-1", "back/b", "192.0.2.1:1 ")
        check("LISTENER" in text and "STALLS" in text.splitlines()[1], text)
        screen.type("s")
        shows(t, screen, "by age")
        check("sort=age" in mock.requests[-1].query, mock.requests[-1].query)
        screen.type("p")
        shows(t, screen, "paused")
        asked = len(mock.requests)
        screen.resize(50, 12)
        shows(t, screen, "paused", "back/b")
        check_equal(len(mock.requests), asked, "requests while paused")
        screen.type("p")
        t.eventually(lambda: len(mock.requests) > asked, "it goes on", 10)
        screen.type("q")
        check_equal(screen.wait(10 * t.scale), 0, "exit code")


@test(each={"number": [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT]})
def top_signals(t, number):
    """top restores the terminal and ends by the signal: {number!r}"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock, top(t, mock) as screen:
        shows(t, screen, "by bytes")
        screen.process.send_signal(number)
        check_equal(screen.wait(10 * t.scale), -number, "exit code")
        check(screen.is_restored(), f"the terminal is not as it was: {screen.modes}")


# As a shell does: the program has a group of its own, which can be stopped, and continues when a file appears.
JOB = """
import os, signal, sys, time
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])
status = os.waitpid(pid, os.WUNTRACED)[1]
if os.WIFSTOPPED(status):
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    os.kill(pid, signal.SIGCONT)
    status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status))
"""


@test()
def top_stops(t):
    """top restores the terminal while Ctrl-Z stops it, and draws again when it continues"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock:
        with Screen([sys.executable, "-c", JOB, t.path("go on"), t.reactorctl_path, "-s", mock.address, "top"]) as screen:
            shows(t, screen, "by bytes")
            screen.type("\x1a")
            t.eventually(screen.is_restored, "the terminal as it was", 10)
            t.write("go on", "")
            t.eventually(lambda: screen.text() and "1049" in screen.modes, "the full screen", 10)
            shows(t, screen, "by bytes")
            screen.type("q")
            check_equal(screen.wait(10 * t.scale), 0, "exit code")
            check(screen.is_restored(), "the terminal is not as it was")


@test()
def top_without_a_daemon(t):
    """top: a daemon that ends is named in the first line, the figures stay; without one at the start there is no screen"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock:
        with top(t, mock, "--interval", "100ms", columns=100) as screen:
            shows(t, screen, "by bytes", "back/b")
            mock.raw = b"nonsense"
            shows(t, screen, "not reactord's", "back/b")
            mock.raw = None
            shows(t, screen, "by bytes")
            mock.hangs = True
            t.eventually(lambda: mock.waiting, "a request that hangs", 10)
            screen.type("q")
            check_equal(screen.wait(10 * t.scale), 0, "exit code while the daemon hangs")
            check(screen.is_restored(), "the terminal is not as it was")
    with top(t, mock) as screen:
        check_equal(screen.wait(10 * t.scale), 2, "exit code")
        check(screen.is_restored(), "the terminal is not as it was")
        check(b"Is reactord running" in screen.process.stderr.read(), "no word about it")


# A real daemon

REAL = """
[reactord]
drain_timeout = 1s
[admin]
address = {sock}
[worker]
threads = {threads}
[listen echo]
address = {echo}
service = echo
[listen front]
address = {front}
service = proxy
upstream = back
[upstream back]
server.a = {echo}
server.b = {echo} backup
"""


class Real:
    """A daemon with an echo behind a proxy, and how it is asked."""

    def __init__(self, t):
        self.t = t
        self.address = t.path("admin.sock")
        self.values = {"sock": self.address, "threads": 2, "echo": t.address(), "front": t.address()}
        self.front = self.values["front"]

    def config(self, **changes):
        return REAL.format(**{**self.values, **changes})

    def reload(self):
        return json.loads(done(self.t, self, "status --json"))["reload"]

    def sessions(self, filters="--listener front"):
        return json.loads(done(self.t, self, f"sessions --json {filters}"))["sessions"]

    def client(self):
        """A client that is served."""
        s = net.connect(self.front)
        check_equal(net.exchange(s, b"hello"), b"hello", "echo")
        return s


@test()
def real_views(t):
    """a real daemon: all that shows something does, with the names of its objects"""
    real = Real(t)
    with t.daemon(real.config()), real.client():
        for command, words in (("status", ("serving", "/reactord-0.ini")), ("loops", ("work-2-2",)),
                               ("listeners", ("echo", "front", "accepting")), ("upstreams", ("back/a", "back/b", "up")),
                               ("sessions", ("front", "back/a", "work-2-")), ("config", ("[listen front]",)),
                               ("metrics", ("reactord_listener_sessions", 'listener="front"')),
                               ("top --once --interval 100ms", ("work-2-1", "back/b", "front"))):
            out = done(t, real, command)
            for word in words:
                check(word in out, f"{command} does not show {word}: {out}")
        for command in ("loops", "listeners", "upstreams"):
            lines = done(t, real, command).splitlines()
            columns = [line.split() for line in lines]
            check(lines[0].isupper() and len(columns) > 2, f"no table: {lines}")
            names = [row["name"] for row in json.loads(done(t, real, f"--json {command}"))[command]]
            check(set(names) <= {row[0] for row in columns}, f"{names} are not in {columns}")


@test()
def real_figures(t):
    """a real daemon tells each figure that the tables have a column for"""
    real = Real(t)
    with t.daemon(real.config()), real.client():
        # Of an upstream's own row: what only servers have; of a server's: who waits for the upstream, and why it is
        # down, which it is not.
        for command, missing in (("loops", {1: 0}), ("listeners", {"echo": 1}), ("sessions --listener front", {}),
                                 ("upstreams", {"back": 8, "back/a": 2, "back/b": 2})):
            for line in done(t, real, command).splitlines()[1:]:
                row = re.split(r"  +", line.strip())
                check(row.count("-") <= missing.get(row[0], 0), f"{command} does not know all of {line!r}")


@test()
def real_kill(t):
    """a real daemon: kill ends a session by its ID, all of a filter, and none of a filter that matches none"""
    real = Real(t)
    with t.daemon(real.config()), real.client() as first, real.client() as second:
        rows = real.sessions()
        check_equal(len(rows), 2, "sessions")
        port = first.getsockname()[1]
        number = next(row["id"] for row in rows if row["client"].endswith(f":{port}"))
        check_equal(done(t, real, f"kill {number}"), "killed 1 session\n", "output")
        check_equal(net.ending(first), "reset", "the client's end")
        refused(t, real, f"kill {number}", 1)
        check_equal(done(t, real, "kill --client 192.0.2.0/24"), "killed 0 sessions\n", "output")
        check_equal(done(t, real, "kill --listener front --dry-run"), "1 session would be killed\n", "output")
        check_equal(net.exchange(second, b"still"), b"still", "echo of the other")
        check_equal(done(t, real, "kill --listener front --client 127.0.0.1/32"), "killed 1 session\n", "output")
        check_equal(net.ending(second), "reset", "the client's end")
        for command in ("kill --client nonsense", "kill --listener nothing", "sessions --loop nothing"):
            check(ask(t, real, command).code in (0, 1), command)


@test()
def real_servers(t):
    """a real daemon: a server is drained until its session ends, shed, enabled, weighed, and reset"""
    real = Real(t)
    with t.daemon(real.config()):
        client = real.client()
        with subprocess.Popen([t.reactorctl_path, "-s", real.address, "drain", "back/a", "--wait"], cwd=t.dir,
                              stdout=subprocess.PIPE) as waiting:
            check(b"back/a: draining" in waiting.stdout.readline(), "it does not drain")
            check(re.search(r"back/a .* draining", done(t, real, "upstreams")), "it is not shown as draining")
            with real.client():
                check_equal(real.sessions()[0]["server"] != real.sessions()[1]["server"], True, "servers differ")
            check_equal(waiting.poll(), None, "it waits")
            check("1 session of back/a will end" in done(t, real, "shed back/a --percent 100 --over 100ms"), "shed")
            net.ending(client)
            check_equal(waiting.wait(t.scale * 10), 0, "exit code of drain --wait")
        done(t, real, "enable back/a")
        check("weight 7" in done(t, real, "weight back/a 7"), "weight")
        check_equal(done(t, real, "set io_ratio 70"), "io_ratio = 70\n", "output")
        done(t, real, "set log_level warning")
        done(t, real, "reset")
        check(not re.search(r"back/a .* 7 ", done(t, real, "upstreams")), "the weight is not reset")
        for command in ("drain back/nix", "weight back/a 70000", "set log_level loud", "shed nix --percent 5"):
            refused(t, real, command, 1)
        client.close()


@test()
def real_reload(t):
    """a real daemon: reload lists its changes, is tried, refused, reverted and confirmed"""
    real = Real(t)
    with t.daemon(real.config()) as daemon:
        check_equal(done(t, real, "reload"), "reload: nothing has changed\n", "output")
        daemon.config_path.write_text(real.config(threads=3), encoding="utf-8")
        check("1 change, none was made" in done(t, real, "reload --dry-run"), "dry run")
        finished = ask(t, real, "reload --confirm 1s --wait")
        check_equal(finished.code, 1, f"exit code when it is not confirmed ({finished.out} {finished.err})")
        check("threads: 2 -> 3" in finished.out and "not confirmed" in finished.err, f"{finished}")
        refused(t, real, "confirm", 1, "nothing waits")
        done(t, real, "reload --confirm 60s")
        check("unless `reactorctl confirm`" in done(t, real, "status"), "status does not tell")
        done(t, real, "confirm")
        daemon.config_path.write_text(real.config(threads=4), encoding="utf-8")
        done(t, real, "reload --confirm 60s")
        daemon.send_signal(signal.SIGHUP)
        t.eventually(lambda: real.reload()["state"] == "idle", "SIGHUP confirms")
        check_equal((real.reload()["count"], real.reload()["reverted"]), (6, 1), "reloads, and those reverted")
        daemon.has_notified("READY=1")  # reads what it says: it waits when the socket is full
        daemon.config_path.write_text(real.config(threads="many"), encoding="utf-8")
        refused(t, real, "reload", 1, "reactord-0.ini:7", "threads")
        daemon.config_path.write_text(real.config(threads=3), encoding="utf-8")


@test()
def real_token(t):
    """a real daemon on TCP wants the token of its file"""
    real = Real(t)
    address, path = t.address(), t.write("token", "0123456789abcdef0123456789abcdef\n")
    os.chmod(path, 0o600)
    with t.daemon(real.config(sock=f"{address}\ntoken_file = {path}")):
        real.address = address
        refused(t, real, "status", 1, "token", "--token-file")
        refused(t, real, f"status --token-file {t.write('wrong', 'x' * 32)}", 1, "token")
        done(t, real, f"status --token-file {path}")


# Completion

@test(each=[
    {"words": "", "wanted": ["status", "kill", "help"]},
    {"words": "help ", "wanted": ["status", "kill"]},
    {"words": "drain ", "wanted": ["back/a", "back/b"]},
    {"words": "pause ", "wanted": ["front", "back"]},
    {"words": "sessions --sort ", "wanted": ["age", "idle", "bytes"]},
    {"words": "sessions --loop ", "wanted": ["wrkr-2-1"]},
    {"words": "kill --", "wanted": ["--listener", "--dry-run", "--json"]},
    {"words": "set ", "wanted": ["io_ratio", "log_level"]},
    {"words": "frobnicate ", "wanted": []},
])
def completion(t, words, wanted):
    """after "reactorctl {words}" the shell offers {wanted}"""
    with AdminMock(t.path("a.sock")) as mock:
        finished = t.reactorctl("__complete", "-s", mock.address, *words.split(" "))
    check_equal((finished.code, finished.err), (0, ""), "exit code and stderr")
    offered = finished.out.split()
    check(set(wanted) <= set(offered) if wanted else not offered, f"it offers {offered}")


@test()
def completion_in_bash(t):
    """bash completes a command and the name of a server by the script that is installed"""
    script = t.options.source_dir / "conf/bash-completion/reactorctl"
    with AdminMock(t.path("a.sock")) as mock:
        for line, wanted in ((("dr",), "drain"), (("drain", "back/a"), "back/a"), (("shed", "back/b"), "back/b")):
            words = " ".join(f"'{word}'" for word in (t.reactorctl_path, *line))
            code = (f"source {script}; COMP_WORDS=({words}); COMP_CWORD={len(line)}; _reactorctl; "
                    f"printf '%s\\n' \"${{COMPREPLY[@]}}\"")
            done_by = t.run("bash", "-c", code, env={**os.environ, "REACTORCTL_ADDRESS": mock.address})
            check_equal(done_by.out.split(), [wanted], f"candidates for {line}")
