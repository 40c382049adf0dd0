"""admin: requests that are wrong, slow, huge or many hurt neither it nor the traffic."""

import contextlib
import random
import select
import socket
import time

from support import net
from support.admin import get, read_answer, request, write_request
from support.admin_place import KINDS, Place, TOKEN
from support.case import Failed, check, check_equal, test
from support.watch import Watch
from test_upgrade import Knocking

THEME = "admin"
KIB = 1024


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
