"""ctl: reactorctl. What a real daemon does not do is done by a mock of its admin interface."""

import os
import re
import socket

from support.admin_mock import AdminMock, LISTENERS, answer, error
from support.case import check, check_equal, is_root, test
from support.ctl_runs import ID, ask, done, pages, refused

# Each command as it may be used, and what it sends.
COMMANDS = [
    ("status", "GET /v1/status"),
    ("loops", "GET /v1/loops"),
    ("listeners", "GET /v1/listeners"),
    ("upstreams", "GET /v1/upstreams"),
    ("sessions", "GET /v1/sessions"),
    ("events", "GET /v1/events"),
    (f"kill {ID}", "POST /v1/sessions/kill"),
    ("kill --listener front", "POST /v1/sessions/kill"),
    ("kill --listener front --dry-run", "GET /v1/sessions"),
    ("kill --all --yes", "POST /v1/sessions/kill"),
    ("shed back --percent 50", "POST /v1/shed"),
    ("bans", "GET /v1/bans"),
    ("lift 192.0.2.7", "POST /v1/bans/lift"),
    ("drain back/a", "POST /v1/server"),
    ("disable back/a", "POST /v1/server"),
    ("enable back/a", "POST /v1/server"),
    ("weight back/a 3", "POST /v1/server"),
    ("add back/c 127.0.0.1:9", "PUT /v1/server"),
    ("remove back/c", "DELETE /v1/server"),
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
    "bans surplus", "bans --limit x", "lift", "lift 10.0.0.1 10.0.0.2", "lift all --client 10.0.0.1",
    "shed", "shed back", "shed back --percent 0", "shed back --percent 101", "shed back --percent 5 --over 5",
    "drain", "drain back", "drain back/", "drain back/a/b", "drain a/b c", "disable", "enable", "enable a/b --wait",
    "weight back/a", "weight back/a heavy", "weight back/a -1", "add", "add back/c", "add back 127.0.0.1:9",
    "add back/c 127.0.0.1:9 weight=2", "remove", "remove back", "remove back/c now", "pause", "pause x --for ever", "pause x --max-held few",
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
def lines_of_servers(t):
    """the line of a server may have a path of any UTF-8; other bytes are refused before anything is asked"""
    with AdminMock(t.path("a.sock"), {("PUT", "/v1/server"): {"server": "back/c", "state": "added"}}) as mock:
        t.reactorctl("-s", mock.address, "add", "back/c", b"/tmp/\xc3\xa9 weight=2")
        check_equal([request.body for request in mock.requests], [{"server": "back/c", "line": "/tmp/\u00e9 weight=2"}],
                    "what was sent")
        for line in (b"/tmp/\xe9", b"/tmp/\x01", b"/tmp/\x7f", b"/tmp/\xc3"):
            finished = t.reactorctl("-s", mock.address, "add", "back/c", line)
            check_equal(finished.code, 2, f"exit code of {line}")
        check_equal(len(mock.requests), 1, "requests")


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
    with AdminMock(t.path("a.sock"), {(method, path): lambda request: answer(200, {"sessions": [], "bans": []})}) as mock:
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
    {"command": "lift 10.0.0.0/8 --listener front", "path": "/v1/bans/lift",
     "body": {"client": "10.0.0.0/8", "listener": "front"}},
    {"command": "lift all", "path": "/v1/bans/lift", "body": {"all": True}},
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
    with AdminMock(t.path("a.sock"), {("POST", path): {"killed": 1, "lifted": 1}}) as mock:
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
