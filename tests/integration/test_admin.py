"""admin: the admin interface: who may use it, what it refuses, and that nothing holds it or the traffic up."""

import contextlib
import json
import os
import random
import re
import select
import signal
import socket
import stat
import subprocess
import time

from support import net
from support.admin import get, post, read_answer, request, section, write_request
from support.case import Failed, check, check_equal, test
from support.net import Task
from support.watch import Watch
from test_upgrade import Chain, Knocking, alive, echo, exchange_once

TOKEN = "b4d2b0d5a6b84f0c9b5e"
KIB = 1024


class Place:
    """The addresses of a daemon with an echo and an admin interface."""

    def __init__(self, t, kind="unix", more=""):
        self.t, self.front = t, t.address()
        self.kind = kind
        self.token = None if kind == "unix" else TOKEN
        port = t.port()
        self.address = {"unix": t.path("admin.sock"), "TCP": f"127.0.0.1:{port}",
                        "IPv6": f"[::1]:{port}"}[kind]
        self.host = "localhost" if kind == "unix" else self.address
        if self.token:
            path = t.write("token", TOKEN + "\n")
            os.chmod(path, 0o600)
            more += f"token_file = {path}\n"
        self.config = section(self.address, more) + echo(self.front)

    def daemon(self, config=None, **how):
        return self.t.daemon(config or self.config, **how)

    def get(self, path, **how):
        return get(self.address, path, **{"token": self.token, "host": self.host} | how)

    def post(self, path, body=None, **how):
        return post(self.address, path, body, **{"token": self.token, "host": self.host} | how)

    def connect(self, **how):
        return net.connect(self.address, **how)

    def head(self):
        """A request up to its last header field."""
        token = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        return f"GET /v1/status HTTP/1.1\r\nHost: {self.host}\r\n{token}".encode()


KINDS = {"kind": ["unix", "TCP", "IPv6"]}


# ---- what it answers ----

@test(each=KINDS)
def status_is_told(t, kind):
    """over {kind} it tells health, readiness, status and configuration"""
    place = Place(t, kind)
    with place.daemon() as daemon, net.connect(place.front) as client:
        net.exchange(client, b"hello")
        check_equal(place.get("/healthz").body, b"ok\n", "/healthz")
        check_equal(place.get("/readyz").body, b"ready\n", "/readyz")
        answer = place.get("/v1/status")
        check_equal(answer.headers["content-type"], "application/json", "the type")
        status = answer.json
        check_equal(status["pid"], daemon.pid, "pid")
        check_equal(status["state"], "serving", "state")
        check_equal(status["sessions"], 1, "sessions")
        check_equal(status["config_path"], str(daemon.config_path), "config_path")
        check_equal(status["reload"], {"state": "idle", "count": 0, "failed": 0,
                                       "reverted": 0, "confirm_in_s": None}, "reload")
        check_equal(status["upgrade"], {"old_processes": 0}, "upgrade")
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", status["started_at"]), "started_at")
        dump = t.reactord("--dump-config", "-c", str(daemon.config_path)).out
        check_equal(place.get("/v1/config").body.decode(), dump, "/v1/config")


@test(needs=("curl",), each=KINDS)
def curl_is_answered(t, kind):
    """curl is answered over {kind}, several times on one connection, and to HEAD"""
    place = Place(t, kind)
    how = ["--unix-socket", place.address] if kind == "unix" else \
        ["-H", f"Authorization: Bearer {TOKEN}"]
    base = "http://localhost" if kind == "unix" else f"http://{place.address}"
    with place.daemon():
        done = subprocess.run(
            ["curl", "-sSg", *how, "-w", "\n%{num_connects}\n", f"{base}/v1/status", "-o", "/dev/null", f"{base}/v1/status"],
            capture_output=True, timeout=20 * t.scale, check=True)
        _, first, *status, second, _ = done.stdout.decode().split("\n")
        check_equal((first, second), ("1", "0"), "new connections of the first and of the second request")
        check_equal(json.loads("".join(status))["state"], "serving", "state")
        done = subprocess.run(["curl", "-sSgI", *how, f"{base}/v1/status"], capture_output=True,
                              timeout=20 * t.scale, check=True)
        check(done.stdout.startswith(b"HTTP/1.1 200"), done.stdout)


@test()
def nothing_without_a_section(t):
    """without an address there is no admin interface and no loop of it"""
    with t.daemon(echo(t.address())) as daemon:
        check_equal(daemon.statistics("admn"), [], "its loop")


@test()
def the_loop_is_in_the_statistics(t):
    """the admin loop is shown with the others, and watched"""
    place = Place(t)
    with place.daemon() as daemon:
        place.get("/healthz")
        check(any("admn-5-1" in line for line in daemon.statistics("admn-5-1 state")), "admn-5-1")


# ---- who may use it ----

@test()
def the_socket_is_private(t):
    """its unix socket has mode 0600 or the one configured, and goes with the process"""
    place = Place(t)
    with place.daemon():
        check_equal(stat.S_IMODE(os.stat(place.address).st_mode), 0o600, "mode")
    check(not os.path.exists(place.address), "the file is gone")
    place = Place(t, more="mode = 660\n")
    with place.daemon():
        check_equal(stat.S_IMODE(os.stat(place.address).st_mode), 0o660, "mode")


@test()
def sockets_left_behind(t):
    """a socket that a killed process left is replaced; that of a live one is not, and a file neither"""
    place = Place(t)
    with place.daemon() as daemon:
        daemon.kill()
        daemon.process.returncode = 0
    check(os.path.exists(place.address), "the file was left")
    with place.daemon():
        config = t.write("second.ini", section(place.address) + echo(t.address()))
        done = t.reactord("-c", config)
        check_equal(done.code, 3, "exit code")
        check("cannot listen: Address already in use" in done.err, done.err)
        check_equal(place.get("/healthz").status, 200, "the first still answers")
    t.write("admin.sock", "a file")
    done = t.reactord("-c", t.write("second.ini", section(place.address) + echo(t.address())))
    check("cannot listen: Socket operation on non-socket" in done.err, done.err)
    check_equal(open(place.address, encoding="ascii").read(), "a file", "the file")


@test(each={"kind": ["TCP", "IPv6"]})
def tokens(t, kind):
    """over {kind} no token, a wrong or a cut one is refused with 401; health needs none"""
    place = Place(t, kind)
    with place.daemon() as daemon:
        for token in (None, TOKEN[:-1], TOKEN + "x", TOKEN[:-1] + "x", "x" * 4000):
            answer = place.get("/v1/status", token=token)
            check_equal(answer.status, 401, f"with {token}")
            check_equal(answer.headers["www-authenticate"], "Bearer", "the challenge")
            check_equal(place.get("/nothing", token=token).status, 401, "an unknown path")
        check_equal(place.get("/v1/status", token=None,
                              headers={"Authorization": f"Basic {TOKEN}"}).status, 401, "Basic")
        check_equal(place.get("/healthz", token=None).status, 200, "/healthz")
        check_equal(place.get("/readyz", token=None).status, 200, "/readyz")
        check_equal(place.get("/v1/status").status, 200, "with the token")
        check(daemon.log_lines(r"admin: .*: refused: (no|wrong) token"), "a line in the log")


@test(each={"kind": ["TCP", "IPv6"]})
def hosts(t, kind):
    """over {kind} a Host or Origin of another site is refused, as pages in a browser send it"""
    place = Place(t, kind)
    port = place.address.rpartition(":")[2]
    with place.daemon():
        for host in ("localhost", f"localhost:{port}", "127.0.0.1", "[::1]", "[::1]:80", "127.1.2.3:9",
                     place.address):
            check_equal(place.get("/healthz", host=host).status, 200, host)
        for host in ("evil.example", f"evil.example:{port}", "192.0.2.1", "[2001:db8::1]",
                     "localhost.evil.example", "localhost:x", "127.0.0.1.nip.io", "[::1", "::1", "@"):
            check_equal(place.get("/healthz", host=host).status, 403, host)
        for origin, status in ((f"http://{place.host}", 200), ("http://evil.example", 403),
                               ("null", 403), (place.host, 403)):
            answer = place.get("/v1/status", headers={"Origin": origin})
            check_equal(answer.status, status, origin)
        with place.connect() as s:
            s.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            check_equal(read_answer(s).status, 403, "without Host")


@test()
def read_only(t):
    """with `write = no` actions are refused with 403 and logged; a reload changes that at once"""
    place = Place(t, more="write = no\n")
    with place.daemon() as daemon:
        answer = place.post("/v1/reload")
        check_equal(answer.status, 403, "status")
        check(daemon.log_lines(r"admin: uid \d+ pid \d+: /v1/reload \{\}: refused: actions are not"),
              "a line in the log")
        check_equal(place.get("/v1/status").status, 200, "reading")
        daemon.reload(place.config.replace("write = no", "write = yes"))
        check_equal(place.post("/v1/reload").status, 200, "status")


@test()
def another_token(t):
    """another token in the same file is a change, and counts from the reload on"""
    place = Place(t, "TCP")
    with place.daemon() as daemon:
        t.write("token", "another-token-of-some-length")
        check_equal(place.get("/v1/status").status, 200, "before the reload")
        lines = daemon.reload()
        check(any("[admin] token_file: the token in the file has changed (live)" in line for line in lines),
              f"the change is told: {lines}")
        check(TOKEN not in daemon.log() and "another-token-of" not in daemon.log(), "no token is told")
        check_equal(place.get("/v1/status").status, 401, "the old one")
        check_equal(place.get("/v1/status", token="another-token-of-some-length").status, 200, "the new")


@test()
def addresses_need_an_upgrade(t):
    """another address or mode is refused by a reload, and used by an upgrade"""
    place = Place(t)
    other = t.path("other.sock")
    with Chain(t, place.config) as chain:
        daemon = chain.daemon
        config = daemon.config.replace(place.address, other)
        lines = daemon.reload(config, wanted="refused")
        check(any("[admin] address:" in line and "needs a new process" in line for line in lines), lines)
        chain.upgrade()
        check_equal(get(other, "/v1/status").json["pid"], chain.pid, "pid at the new address")
        t.eventually(lambda: not os.path.exists(place.address), "the old file is gone")
        chain.stop()
        check(not os.path.exists(other), "the new file is gone")


@test()
def an_upgrade_without_it(t):
    """an upgrade to a configuration without the section ends the interface, with its file"""
    place = Place(t)
    with Chain(t, place.config) as chain:
        config = chain.daemon.config.replace(section(place.address), "")
        chain.daemon.config_path.write_text(config, encoding="ascii")
        check_equal(place.post("/v1/upgrade").json, {}, "upgrade")
        chain.pid = chain.started()[-1]
        chain.eventually(lambda: not os.path.exists(place.address), "the file is gone")
        exchange_once(place.front)
        chain.stop()


@test()
def a_mode_changed_by_an_upgrade(t):
    """an inherited socket gets the mode of the new configuration when the new process takes over"""
    place = Place(t)
    with Chain(t, place.config) as chain:
        config = chain.daemon.config.replace("[admin]", "[admin]\nmode = 0666")
        chain.daemon.config_path.write_text(config, encoding="ascii")
        chain.upgrade()
        chain.eventually(lambda: stat.S_IMODE(os.stat(place.address).st_mode) == 0o666, "the mode")
        # The old process accepts until it hears that it was replaced.
        chain.eventually(lambda: place.get("/v1/status").json["pid"] == chain.pid, "the new one answers")
        chain.stop()


@test()
def sockets_of_systemd(t):
    """sockets of a .socket unit are used and left, and stored ones of another start are found"""
    place = Place(t)
    with net.listen(place.address) as listener:
        with place.daemon(inherited=[("reactord.socket", listener.fileno())]) as daemon:
            check_equal(place.get("/v1/status").json["pid"], daemon.pid, "pid")
        check(os.path.exists(place.address), "the file is left")
    os.unlink(place.address)
    with place.daemon(environment={"FDSTORE": "10"}) as daemon:
        t.eventually(lambda: daemon.has_notified("") or any("admin.sock" in name for name, _ in daemon.stored),
                     "it is stored")
        stored = daemon.stored
        daemon.stop()
    with place.daemon(environment={"FDSTORE": "10"}, inherited=stored) as daemon:
        check_equal(place.get("/v1/status").json["pid"], daemon.pid, "pid")
    for _, fd in stored:
        os.close(fd)


@test()
def busy_without_need(t):
    """connections that wait, and answers that nobody reads, take no processor time"""
    place = Place(t, more="request_timeout = 1m\n")
    many = "".join(f"[upstream u{i}]\nserver.a = 127.0.0.1:9\n" for i in range(600))
    with place.daemon(place.config + many) as daemon, contextlib.ExitStack() as stack:
        for i in range(20):
            s = stack.enter_context(place.connect())
            if i % 4 == 1:
                s.sendall(place.head())
            elif i % 4 == 2:
                write_request(s, "POST", "/v1/reload", headers={"Content-Length": "100"})
            elif i % 4 == 3:
                write_request(s, "GET", "/v1/config")
        t.eventually(lambda: place.get("/v1/status").status == 200, "it answers")
        before = daemon.cpu_s()
        time.sleep(1)
        check(daemon.cpu_s() - before < 0.5 * t.scale, "it is idle")


# ---- what it refuses ----

BAD = [
    # method, path, body, status, part of the error
    ("GET", "/nope", None, 404, "nothing at this path"),
    ("GET", "/v1/status/", None, 404, "nothing"),
    ("GET", "/v1/%73tatus", None, 404, "nothing"),
    ("GET", "/../healthz", None, 404, "nothing"),
    ("POST", "/v1/status", b"{}", 405, "GET"),
    ("GET", "/v1/reload", None, 405, "POST"),
    ("DELETE", "/v1/status", None, 405, "GET"),
    ("OPTIONS", "/v1/reload", None, 405, "POST"),
    ("GET", "/v1/status?x=1", None, 400, "'x' is not a field here (none)"),
    ("GET", "/v1/status?x", None, 400, "'x' in the query is not NAME=VALUE"),
    ("GET", "/v1/status?&", None, 400, "is not NAME=VALUE"),
    ("GET", "/v1/status?=1", None, 400, "is not NAME=VALUE"),
    ("GET", "/v1/status?x=%", None, 400, "broken escape"),
    ("GET", "/v1/status?x=%4", None, 400, "broken escape"),
    ("GET", "/v1/status?x=%00", None, 400, "broken escape"),
    ("GET", "/v1/status?x=%ff", None, 400, "not UTF-8"),
    ("GET", "/v1/status?x=1&x=2", None, 400, "'x' is given twice"),
    ("GET", "/v1/status", b"{}", 400, "has no body"),
    ("POST", "/v1/reload?dry_run=yes", b"{}", 400, "fields are in the body"),
    ("POST", "/v1/reload", b"{", 400, "the body is not JSON: line 1"),
    ("POST", "/v1/reload", b"{} {}", 400, "not JSON"),
    ("POST", "/v1/reload", b"{'a':1}", 400, "not JSON"),
    ("POST", "/v1/reload", b"\xff\xfe", 400, "not JSON"),
    ("POST", "/v1/reload", b'{"confirm":"\\u0000"}', 400, "not JSON"),
    ("POST", "/v1/reload", b"[]", 400, "not a JSON object"),
    ("POST", "/v1/reload", b"1", 400, "not a JSON object"),
    ("POST", "/v1/reload", b'{"dry_run":true,"dry_run":false}', 400, "duplicate object key"),
    ("POST", "/v1/reload", b'{"dry-run":true}', 400, "'dry-run' is not a field here (dry_run, confirm)"),
    ("POST", "/v1/reload", b'{"dry_run":1}', 400, "'dry_run' is not true or false"),
    ("POST", "/v1/reload", b'{"dry_run":null}', 400, "'dry_run' is not true or false"),
    ("POST", "/v1/reload", b'{"confirm":5}', 400, "'confirm' is not a duration"),
    ("POST", "/v1/reload", b'{"confirm":"5"}', 400, "'confirm' is not a duration"),
    ("POST", "/v1/reload", b'{"confirm":"2h"}', 400, "from 1s to 3600s"),
    ("POST", "/v1/reload", b'{"confirm":"1ms"}', 400, "from 1s to 3600s"),
    ("POST", "/v1/reload", b'{"confirm":{"a":[]}}', 400, "'confirm' is not a duration"),
    ("POST", "/v1/reload", b"[" * 60000, 400, "not JSON"),
    ("POST", "/v1/reload", b" " * 64 * KIB, 400, "not JSON"),
    ("POST", "/v1/reload", b" " * (64 * KIB + 1), 413, "longer than 65536 bytes"),
    ("POST", "/v1/reload", b" " * 900 * KIB, 413, "longer than 65536 bytes"),
    ("POST", "/v1/confirm", None, 409, "nothing waits to be confirmed"),
    ("POST", "/v1/revert", b"{}", 409, "nothing waits to be confirmed"),
]


@test()
def bad_requests(t):
    """bad paths, methods, queries, bodies and fields are refused with a text that names them"""
    place = Place(t)
    with place.daemon() as daemon:
        for method, path, body, status, error in BAD:
            answer = request(place.address, method, path, body)
            what = f"{method} {path} {(body or b'')[:40]}"
            check_equal(answer.status, status, what)
            check(error in answer.error, f"{what}: {answer.error}")
            check(status != 405 or answer.headers["allow"] == error, f"{what}: Allow")
        check_equal(place.get("/v1/status").json["reload"]["count"], 0, "reloads")
        check_equal(daemon.log_lines(r"reload: "), [], "lines of reloads")


@test()
def log_lines_cannot_be_forged(t):
    """what a client sends does not begin a line of the log"""
    place = Place(t)
    with place.daemon() as daemon:
        body = {"x\nforged": "y\r\nforged\x1b[31m\u2028"}
        check_equal(place.post("/v1/reload", body).status, 400, "status")
        lines = daemon.log_lines("forged")
        check_equal(len(lines), 1, "lines")
        check(lines[0].isascii() and lines[0].isprintable(), lines[0])


@test()
def huge_heads(t):
    """a head without end is refused, and one in single bytes is not"""
    place = Place(t)
    with place.daemon():
        with place.connect() as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(place.head() + b"X-Long: " + b"x" * (1 << 20))
            with contextlib.suppress(ConnectionResetError):
                check(not s.recv(64).startswith(b"HTTP/1.1 200"), "it is refused")
        with place.connect() as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for i in range(200000):
                    s.sendall(b"GET /healthz HTTP/1.1\r\n" if i == 0 else b"X-%d: y\r\n" % i)
            with contextlib.suppress(ConnectionResetError):
                check(not s.recv(64).startswith(b"HTTP/1.1 200"), "it is refused")
        with place.connect() as s:
            for byte in place.head() + b"\r\n":
                s.sendall(bytes([byte]))
            check_equal(read_answer(s).status, 200, "in single bytes")
        check_equal(place.get("/healthz").status, 200, "others")


@test()
def bodies_without_end(t):
    """a chunked body is taken in parts, one without end is cut, and a declared giant is not read"""
    place = Place(t)
    with place.daemon():
        with place.connect() as s:
            write_request(s, "POST", "/v1/reload", headers={"Transfer-Encoding": "chunked"})
            for part in (b"{\"dry", b"_run\"", b":true}"):
                s.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            s.sendall(b"0\r\n\r\n")
            check_equal(read_answer(s).json, {"changes": []}, "in parts")
        with place.connect() as s:
            write_request(s, "POST", "/v1/reload", headers={"Transfer-Encoding": "chunked"})
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for _ in range(1000):
                    s.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")
                raise Failed("64 MiB were taken")
        with place.connect() as s:
            write_request(s, "POST", "/v1/nothing", headers={"Content-Length": str(1 << 40)})
            check_equal(read_answer(s).status, 404, "a giant")
        check_equal(place.get("/healthz").status, 200, "others")


def mutated(rng, text):
    """A request with some bytes changed, left out, or given twice."""
    text = bytearray(text)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(text))
        kind = rng.randrange(4)
        if kind == 0:
            text[at] = rng.randrange(256)
        elif kind == 1:
            del text[at:at + rng.randint(1, 9)]
        elif kind == 2:
            text[at:at] = text[at:at + rng.randint(1, 40)] * rng.randint(1, 50)
        else:
            text[at:at] = rng.choice([b"\r\n", b"\0", b"%", b"&", b"{", b'"', b"chunked", b"99999999999999999999"])
        text = text or bytearray(b"\r\n")
    return bytes(text)


@test(timeout=120, plain_only=True)
def mutated_requests(t):
    """of 5,000 requests with random faults none hurts it, its memory, or the traffic"""
    place = Place(t, more="request_timeout = 100ms\n")  # of those that wait for more
    body = b'{"dry_run":true,"confirm":"60s"}'
    good = [b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET /healthz?a=1&b=%41+c HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n",
            b"POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body),
            b"POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)]
    rng = random.Random(7007)

    def some(count):
        for _ in range(count):
            daemon.has_notified("")  # reads what it says: it waits when the socket is full
            with place.connect() as s:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    s.sendall(mutated(rng, rng.choice(good)))
                    s.shutdown(socket.SHUT_WR)
                    net.read_to_end(s)

    with place.daemon() as daemon, Knocking(place.front):
        some(1000)
        fds, rss = daemon.fd_count(), daemon.rss_bytes()
        some(4000)
        check_equal(place.get("/v1/status").status, 200, "afterwards")
        t.eventually(lambda: daemon.fd_count() <= fds + 2, "descriptors as before")
        check(daemon.rss_bytes() < rss + 2048 * KIB, f"{daemon.rss_bytes() - rss} bytes more")


# ---- nothing holds it up ----

@test(each=KINDS)
def slow_clients_are_cut(t, kind):
    """over {kind} a client that is silent, slow, or between requests is disconnected in request_timeout"""
    place = Place(t, kind, more="request_timeout = 1s\n")
    with place.daemon() as daemon, net.connect(place.front) as client:
        with place.connect() as silent, place.connect() as slow, place.connect() as body, \
                place.connect() as idle:
            write_request(idle, "GET", "/healthz", host=place.host)
            check_equal(read_answer(idle).status, 200, "the first request")
            auth = {"Authorization": f"Bearer {TOKEN}"}
            write_request(body, "POST", "/v1/reload", headers={"Content-Length": "100"} | auth,
                          host=place.host)
            slow.sendall(place.head())
            end = time.monotonic() + 15 * t.scale
            while not select.select([slow], [], [], 0.1)[0]:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    slow.sendall(b"X-Slow: y\r\n")
                    body.sendall(b" ")
                check(time.monotonic() < end, "the slow client is not disconnected")
            for s in (silent, slow, body):
                answer = read_answer(s)
                check_equal(answer.status, 408, "status")
                check_equal(answer.error, "request_timeout is over", "error")
            check_equal(net.read_to_end(idle), b"", "between requests")
        net.exchange(client, b"hello")
        t.eventually(lambda: place.get("/v1/status").status == 200, "it answers")
        check_equal(daemon.log_lines("admin: .*/v1/reload"), [], "no action")


@test()
def readers_that_never_read(t):
    """a client that reads no answer is disconnected in request_timeout, and its memory is freed"""
    place = Place(t, more="request_timeout = 1s\n")
    many = "".join(f"[upstream u{i}]\nserver.a = 127.0.0.1:9\n" for i in range(600))
    with place.daemon(place.config + many) as daemon:
        size = len(place.get("/v1/config").body)
        check(size > 300 * KIB, f"the answer is large: {size}")
        before = daemon.fd_count()
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                s = stack.enter_context(place.connect())
                write_request(s, "GET", "/v1/config")
            check_equal(place.get("/readyz").status, 200, "another client")
            t.eventually(lambda: daemon.fd_count() <= before, "all are closed", within=15)


@test(each=KINDS)
def too_many_connections(t, kind):
    """over {kind} with max_connections open more get 503, but health; idle ones are closed for others"""
    place = Place(t, kind, more="max_connections = 4\nrequest_timeout = 20s\n")
    with place.daemon() as daemon:
        with contextlib.ExitStack() as stack:
            busy = [stack.enter_context(place.connect()) for _ in range(4)]
            for s in busy:
                s.sendall(place.head() + b"\r\n")
                check_equal(read_answer(s).status, 200, "a first request, with the token")
            for s in busy:
                s.sendall(place.head())
            t.eventually(lambda: not any(net.unread(s) for s in busy), "the second requests have begun")
            answer = place.get("/v1/status")
            check_equal(answer.status, 503, "status")
            check_equal(answer.error, "max_connections is reached", "error")
            check_equal(answer.headers["connection"], "close", "the connection")
            check_equal(place.get("/healthz").status, 200, "/healthz")
            check_equal(place.get("/readyz").status, 200, "/readyz")
            for s in busy:
                s.sendall(b"\r\n")
                check_equal(read_answer(s).status, 200, "a request that was under way")
            check_equal(place.get("/v1/status").status, 200, "when they wait")
            check_equal(net.read_to_end(busy[0]), b"", "the one that waited for longest")
        check(daemon.running(), "it runs")


@test(timeout=60)
def unfinished_requests(t):
    """200 unfinished requests over TCP without a token keep neither root out of the unix socket nor who has the
    token out of the port: the oldest of them are closed"""
    place, path = Place(t, "TCP", more="request_timeout = 50s\n"), t.path("root.sock")
    config = place.config.replace(place.address, f"{place.address}, {path}", 1)
    with place.daemon(config) as daemon, contextlib.ExitStack() as stack:
        unfinished = []
        for _ in range(200):
            s = stack.enter_context(place.connect())
            s.sendall(b"GET /v1/status HTTP/1.1\r\nHost: " + place.host.encode() + b"\r\n")
            unfinished.append(s)
        for _ in range(20):
            check_equal(get(path, "/v1/status").status, 200, "root, over the unix socket")
            check_equal(place.get("/v1/status").status, 200, "over TCP, with the token")
        check(place.get("/v1/status", token="wrong").status in (401, 503), "over TCP, with a wrong token")
        check_equal(read_answer(unfinished[0]).error, "max_connections is reached", "the oldest")
        check(daemon.fd_count() < 250, "descriptors are bounded")


DOUBTFUL = [
    ("two Content-Lengths", b"Content-Length: 2\r\nContent-Length: 2\r\n", "Content-Length"),
    ("two Hosts", b"Host: localhost\r\n", "Host is there twice"),
    ("two tokens", b"Authorization: Bearer x\r\nAuthorization: Bearer y\r\n", "Authorization is there twice"),
    ("a length and an encoding", b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "exclude each other"),
]


@test(each=[{"what": what, "fields": fields, "why": why} for what, fields, why in DOUBTFUL])
def doubtful_head(t, what, fields, why):
    """{what} in a head is refused, and the connection closed"""
    place = Place(t)
    with place.daemon(), place.connect() as s:
        s.sendall(b"POST /v1/reload HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n{}")
        answer = read_answer(s)
        check_equal(answer.status, 400, "status")
        # Since 1.0 libmicrohttpd refuses the last of them itself.
        if what != "a length and an encoding" or answer.headers.get("content-type") == "application/json":
            check(why in answer.error, answer.error)
        check_equal(net.read_to_end(s), b"", "what follows")


@test(timeout=60)
def a_thousand_connections(t):
    """of a thousand connections at once each is answered or closed, and traffic does not notice"""
    place = Place(t, more="request_timeout = 2s\n")
    with place.daemon() as daemon, Knocking(place.front):
        before = daemon.fd_count()
        with contextlib.ExitStack() as stack:
            clients = []
            for _ in range(1000):
                s = stack.enter_context(socket.socket(socket.AF_UNIX))
                s.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    s.connect(place.address)
                    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
                clients.append(s)
            check(daemon.fd_count() < before + 200, "descriptors are bounded")
            watch = Watch()
            check_equal(place.get("/readyz", limit_s=30 * t.scale).status, 200, "/readyz")
            watch.expect(0, 30 * t.scale, "/readyz takes its turn")
        t.eventually(lambda: daemon.fd_count() <= before + 2, "all are closed", within=15)
        check_equal(place.get("/v1/status").status, 200, "afterwards")


@test(timeout=60, plain_only=True)
def memory_is_flat(t):
    """after thousands of requests, good, bad and cut, descriptors and memory are as before"""
    place = Place(t)

    def rounds(count):
        for i in range(count):
            method, path, body, _, _ = BAD[i % (len(BAD) - 6)]
            request(place.address, method, path, body)
            with place.connect() as s:
                s.sendall(place.head() if i % 2 else place.head() + b"\r\nGET /v1/con")
            place.get("/v1/config")

    with place.daemon() as daemon:
        rounds(200)
        fds, rss = daemon.fd_count(), daemon.rss_bytes()
        rounds(1500)
        t.eventually(lambda: daemon.fd_count() <= fds, "descriptors as before")
        check(daemon.rss_bytes() < rss + 2048 * KIB, f"{daemon.rss_bytes() - rss} bytes more")


@test()
def descriptors_are_set_aside(t):
    """when clients take all descriptors the admin interface still has its own"""
    place = Place(t, more="max_connections = 40\n")
    with place.daemon(nofile=300) as daemon, contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(net.connect(place.front))
        t.eventually(lambda: daemon.log_lines("new clients wait|cannot accept"), "clients wait")
        for _ in range(39):
            stack.enter_context(place.connect())
        for _ in range(5):
            check_equal(place.get("/v1/status").status, 200, "status")
        check(not daemon.log_lines("admin: .*cannot accept"), "admin clients do not wait")


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
        check(daemon.log_lines(r"admin: uid \d+ pid %d: /v1/reload \{\}: done" % os.getpid()),
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
