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
