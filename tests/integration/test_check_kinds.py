"""check_kinds: health checks in TLS, of HTTP and in steps, against real servers and those that misbehave."""

import signal

from support import net, program, tls
from support.case import check, check_equal, test
from support.health import Talker
from test_checks import checked, wait_down, wait_up, went_down
from test_tls_upstream import NAME, Echo, authority, bad_certificate


def in_tls(config, profile):
    """That configuration with a [tls back]."""
    return f"{config}[tls back]\n{profile}\n"


def holds(t, daemon, served, count=4):
    """So many more checks are made, and none fails."""
    before = served()
    t.eventually(lambda: served() >= before + count, "checks are made", within=10)
    check_equal(went_down(daemon, "[a-z]") + daemon.log_lines("a check failed"), [], "failures")


@test(each={"version": ["1.2", "1.3"]})
def tls_passthrough(t, version):
    """check = tls makes verified handshakes of TLS {version}, by SNI, with a server to which clients' TLS is passed on"""
    front = t.address()
    with authority(t, version=version) as (ca, context), Echo(t.address(), context) as a:
        options = {"check": "tls", "check_tls": "back", "check_tls_name": NAME}
        with t.daemon(in_tls(checked(front, {"a": a.address}, log="debug", **options), f"ca = {ca.path}")) as daemon:
            holds(t, daemon, lambda: a.ended)
            check_equal((a.failed, a.resumed), (0, 0), "failed and resumed handshakes")
            with tls.Peer(net.connect(front), tls.client_context(ca.path), NAME).handshake() as client:
                client.sendall(b"hello")
                check_equal(net.read_exactly(client, 5), b"hello", "the answer through the handshake of the client")


@test(each={"what": ["self-signed", "of another CA", "expired", "of another name"]})
def tls_certificate(t, what):
    """check = tls takes a server down whose certificate is {what}, with the cause; with verify = off it is up"""
    front = t.address()
    with authority(t) as (ca, _):
        certificate, cause = bad_certificate(t, ca, what)
        with Echo(t.address(), tls.server_context(certificate)) as a:
            config = checked(front, {"a": a.address}, log="debug", check="tls", check_tls="back", check_tls_name=NAME)
            with t.daemon(in_tls(config, f"ca = {ca.path}")) as daemon:
                wait_down(t, daemon, why=f"TLS handshake failed: .*{cause}.*")
            config = checked(front, {"a": a.address}, log="debug", check="tls", check_tls="back")
            with t.daemon(in_tls(config, "verify = off")) as daemon:
                holds(t, daemon, lambda: a.ended)


@test(each=[
    {"how": "speaks no TLS", "mood": b"220 hello\r\n", "why": "TLS handshake failed: .*"},
    {"how": "is silent", "mood": b"", "why": "timed out in the TLS handshake"},
    {"how": "resets", "mood": (b"", "resets"), "why": "connection reset"}])
def tls_broken(t, how, mood, why):
    """check = tls: a server that {how} in the handshake is down for that"""
    front = t.address()
    with Talker("a", t.address(), mood) as a:
        options = {"check": "tls", "check_tls": "back", "check_timeout": "500ms"}
        with t.daemon(in_tls(checked(front, {"a": a.address}, **options), "verify = off")) as daemon:
            wait_down(t, daemon, why=why)


@test(needs=("openssl",))
def tls_openssl(t):
    """openssl s_server is up while it makes handshakes, down when it is stopped, and for plain checks"""
    front, port = t.address(), t.port()
    servers, limit = {"a": f"127.0.0.1:{port}"}, {"check_timeout": "500ms", "initial_state": "checked"}
    with authority(t) as (ca, _):
        command = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", ca.issue("b.example"), "-quiet", "-www"]
        config = checked(front, servers, log="debug", check="tls", check_tls="back", check_tls_name="b.example", **limit)
        ca_line = f"ca = {ca.path}"
        with program.server(t, command, port) as server, t.daemon(in_tls(config, ca_line)) as daemon:
            t.eventually(lambda: daemon.log_lines("server a: up: its first check passed"), "it is up")
            server.send_signal(signal.SIGSTOP)
            wait_down(t, daemon, why="timed out .*")
            server.send_signal(signal.SIGCONT)
            wait_up(t, daemon)
            plain = checked(front, servers, check_send=r'"GET / HTTP/1.0\r\n\r\n"', check_expect="200", **limit)
            daemon.reload(in_tls(plain, ca_line))
            wait_down(t, daemon, why=".*", times=2)


@test()
def tls_off(t):
    """check_tls = off: checks are plain, at their own port, while clients' bytes go on in TLS"""
    front = t.address()
    with authority(t) as (ca, context), Echo(t.address(), context) as a, Talker("h", t.address(), b"ok") as health:
        line = f"{a.address} check_port={health.address.rpartition(':')[2]}"
        options = {"tls": "back", "tls_name": NAME, "check_tls": "off", "check_send": "ask", "check_expect": "ok"}
        with t.daemon(in_tls(checked(front, {"a": line}, log="debug", **options), f"ca = {ca.path}")) as daemon:
            holds(t, daemon, lambda: sum(health.got.values()))
            check_equal(set(health.got), {b"ask"}, "what the health port got")
            with net.connect(front) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            check(a.full == 1, "clients come in TLS")


class Http(Talker):
    """A server that reads whole requests, and answers with its mood."""

    def _answer(self, s, mood):
        request = b""
        s.settimeout(net.LIMIT_S)
        while not request.endswith(b"\r\n\r\n") and (data := s.recv(4096)):
            request += data
        self.got[request] += 1
        for part in mood if isinstance(mood, list) else [mood]:
            s.sendall(part)


def bytewise(text):
    return [text[i:i + 1] for i in range(len(text))]


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@test(each=[
    {"what": "200", "says": OK},
    {"what": "a 302 of HTTP/1.0, without a reason", "says": b"HTTP/1.0 302\r\n\r\n"},
    {"what": "100 and then 204", "says": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"},
    {"what": "200 byte by byte", "says": bytewise(OK)},
    {"what": "200 and 64 KiB of headers", "says": b"HTTP/1.1 200 OK\r\n" + b"X-Long: 1234567\r\n" * 4096}])
def http_up(t, what, says):
    """a server that answers {what} is up; the request has its Host"""
    front = t.address()
    with Http("a", t.address(), says) as a:
        options = {"check": "http", "check_http": "GET /healthz", "check_http_header.x-probe": "1"}
        with t.daemon(checked(front, {"a": a.address}, log="debug", **options)) as daemon:
            holds(t, daemon, lambda: sum(a.got.values()))
            check_equal(set(a.got), {f"GET /healthz HTTP/1.1\r\nHost: {a.address}\r\nx-probe: 1\r\n"
                                     "Connection: close\r\n\r\n".encode()}, "the request")


@test(each=[
    {"how": "answers 503", "says": b"HTTP/1.1 503 Busy\r\n\r\n", "why": r"HTTP status 503: 'HTTP/1\.1 503 .*"},
    {"how": "has 200 elsewhere in its answer", "says": b"HTTP/1.1 404 HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\n\r\n",
     "why": "HTTP status 404: .*"},
    {"how": "speaks HTTP/2", "says": b"\0\0\x12\4\0\0\0\0\0", "why": "no answer of HTTP/1: .*"},
    {"how": "is an SSH server", "says": b"SSH-2.0-OpenSSH_9.2\r\n", "why": "no answer of HTTP/1: 'SSH-2.0.*"},
    {"how": "stops in its status line", "says": b"HTTP/1.1 20", "why": "timed out waiting for the answer: 'HTTP/1.1 20'"},
    {"how": "answers nothing", "says": b"", "why": "timed out waiting for the answer"},
    {"how": "sends interim answers for ever", "says": b"HTTP/1.1 100 Continue\r\n\r\n" * 4000,
     "why": r"wrong answer: 'HTTP/1\.1 100 .*"}])
def http_down(t, how, says, why):
    """a server that {how} is down for HTTP checks, with the reason"""
    front = t.address()

    class Open(Http):
        def _answer(self, s, mood):
            super()._answer(s, mood)
            self.kept.enter_context(s.dup())

    with Open("a", t.address(), says) as a:
        options = {"check": "http", "check_timeout": "500ms"}
        with t.daemon(checked(front, {"a": a.address}, **options)) as daemon:
            wait_down(t, daemon, why=why)
            lines = daemon.statistics("server back/a ")
            check(any("state=down" in line for line in lines), f"the statistics: {lines}")
            a.becomes(OK)
            wait_up(t, daemon)


@test()
def http_body(t):
    """with check_expect the body must have the text; headers do not count"""
    front = t.address()
    with Http("a", t.address(), b"HTTP/1.1 200 OK\r\nX: ready\r\n\r\nnot yet") as a:
        options = {"check": "http", "check_expect": "ready", "check_http_host": "h.example"}
        with t.daemon(checked(front, {"a": a.address}, **options)) as daemon:
            wait_down(t, daemon, why="wrong answer: 'not yet'")
            a.becomes(bytewise(b"HTTP/1.1 200 OK\r\n\r\nalready"))
            wait_up(t, daemon)
            check(all(b"\r\nHost: h.example\r\n" in request for request in a.got), "the Host is another")


@test(needs=("nginx",))
def http_nginx(t):
    """nginx is up for a file that it has, down for one that it has not, stopped, and killed"""
    front = t.address()
    options = {"check": "http", "check_timeout": "500ms", "initial_state": "checked"}
    with program.nginx(t, {"live": b"ok\n"}) as address:
        config = checked(front, {"a": address}, check_http="/live", check_expect="ok", **options)
        with t.daemon(config) as daemon:
            t.eventually(lambda: daemon.log_lines("server a: up: its first check passed"), "it is up")
            daemon.reload(config.replace("/live", "HEAD /dead").replace("check_expect = ok", ""))
            wait_down(t, daemon, why="HTTP status 404: .*")
            daemon.reload(config.replace("/live", "HEAD /dead\ncheck_http_status = 404").replace("check_expect = ok", ""))
            wait_up(t, daemon)


@test(needs=("openssl",))
def http_tls(t):
    """HTTP checks in TLS: openssl s_server answers one when its certificate is right, else it is down"""
    front, port = t.address(), t.port()
    with authority(t) as (ca, _):
        command = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", ca.issue("b.example"), "-quiet", "-www"]
        options = {"check": "http", "check_tls": "back", "check_tls_name": "b.example", "initial_state": "checked",
                   "check_timeout": "1s"}
        config = in_tls(checked(front, {"a": f"127.0.0.1:{port}"}, **options), f"ca = {ca.path}")
        with program.server(t, command, port), t.daemon(config) as daemon:
            t.eventually(lambda: daemon.log_lines("server a: up: its first check passed"), "it is up")
            daemon.reload(config.replace("b.example", "c.example"))
            wait_down(t, daemon, why="TLS handshake failed: .*")
