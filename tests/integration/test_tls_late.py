"""tls_late: what fails behind the TLS handshake has a reason: in the log, for ejection, for checks, for spares."""

import contextlib
import json

from support import libssl, net, tls
from support.case import check, check_equal, test
from support.tls_listeners import certificate_of, profile, tls_echo
from test_tls_upstream import CHECKED, Echo, authority, config, is_down, served

REFUSAL = r"TLS failed: .*\(alert received: certificate required\)"


def records(t, count):
    """The lines of the access log."""
    def lines():
        with contextlib.suppress(FileNotFoundError), open(t.path("access.log"), encoding="utf-8") as f:
            return [json.loads(line) for line in f.read().splitlines()]
        return []
    t.eventually(lambda: len(lines()) >= count, f"{count} lines in the access log")
    return lines()


def logged(t, front, text):
    """The configuration with an access log."""
    return text.replace(f"address = {front}\n", f"address = {front}\naccess_log = {t.path('access.log')}\naccess_log_format = json\n", 1)


@contextlib.contextmanager
def demanding(t, version="1.3"):
    """A CA, and a server that requires a certificate of its clients: in TLS 1.3 it says so behind the handshake."""
    with authority(t) as (ca, _):
        context = tls.server_context(ca.issue("a.example"), version, client_ca=ca.path)
        with Echo(t.address(), context) as server:
            yield ca, server


@test(each={"resets": ["no", "yes"]})
def required_certificate(t, resets):
    """a server of TLS 1.3 that requires a certificate: reason, alert and text are told, and it is ejected (eject_resets = {resets})"""
    front = t.address()
    with demanding(t) as (ca, bad), Echo(t.address(), tls.server_context(ca.issue("a.example"))) as good:
        options = f"balance = first\neject_failures = 3\neject_time = 5m\neject_max_percent = 50\neject_resets = {resets}"
        with t.daemon(logged(t, front, config(front, {"a": bad.address, "b": good.address}, ca.path, options))) as daemon:
            for turn in range(3):
                check_equal(net.sent_away(net.connect, front, says=b"hello"), "reset", f"client {turn}")
            t.eventually(lambda: daemon.log_lines("server a: ejected for 300 s: connections failed in a row: 3"), "the ejection")
            for _ in range(3):
                served(front)
            check(daemon.log_lines(rf"upstream back: server a .*{REFUSAL}; the client is reset"), "no line with the cause")
            found = daemon.counts("server back/a")
            check_equal((found["upstream_tls"], found.get("error", 0)), (3, 0), "the reasons")
            told = records(t, 6)
            check_equal([(r["reason"], r["server_tls_alert"]) for r in told],
                        3 * [("upstream_tls", "certificate required")] + 3 * [("client_fin", None)], "the access log")


@test(each={"send": ["", "check_send = hello\n", "check_send = hello\ncheck_expect = hello\n"]})
def checks(t, send):
    """a check of TLS 1.3 waits for the alert behind the handshake: the server is down, with the alert as reason ({send!r})"""
    front = t.address()
    with demanding(t) as (ca, server):
        with t.daemon(config(front, {"a": server.address}, ca.path, CHECKED + send)) as daemon:
            t.eventually(lambda: is_down(daemon), "the server is down")
            check(daemon.log_lines(f"server a: down: .*{REFUSAL}"), "no line with the cause")


@test(each={"tickets": [0, 1]})
def checks_pass(t, tickets):
    """a check of a server of TLS 1.3 that sends {tickets} tickets passes, and soon"""
    front = t.address()
    with authority(t, version="1.3") as (ca, context):
        context.num_tickets = tickets
        options = CHECKED + "initial_state = down\ncheck_timeout = 20s\n"
        with Echo(t.address(), context) as server, t.daemon(config(front, {"a": server.address}, ca.path, options)) as daemon:
            t.eventually(lambda: daemon.log_lines("server a: up"), "the server is up", within=10)
            served(front)


@test()
def spares(t):
    """spare connections that a server refuses behind the handshake count as failed, with the reason, once"""
    front = t.address()
    with demanding(t) as (ca, server):
        with t.daemon(config(front, {"a": server.address}, ca.path, "spare = 2\n")) as daemon:
            t.eventually(lambda: server.failed >= 6, "it tries again")
            check_equal(len(daemon.log_lines(f"server a .*cannot open a spare connection: {REFUSAL}; trying again")), 1, "lines")
            check_equal(daemon.log_lines("can be opened again"), [], "lines")


@test(each={"version": ["1.2", "1.3"]})
def corrupt_record(t, version):
    """a client of TLS {version} that sends a corrupt record gets the alert and then the end of file; reason and text are told"""
    front = t.address()
    ca, certificate = certificate_of(t)
    with t.daemon(logged(t, front, tls_echo(front, certificate))) as daemon:
        with tls.connect(front, tls.client_context(ca.path, version)) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            client.socket.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
            check_equal(tls.ending(client), "SSLV3_ALERT_BAD_RECORD_MAC", "the alert")
            check_equal(net.ending(client.socket), "fin", "the end behind the alert")
        record, = records(t, 1)
        check_equal((record["reason"], record["tls_alert"]), ("client_tls", "bad record mac"), "the access log")
        check(daemon.log_lines(r"listen front: client .*: TLS failed: .*\(alert sent: bad record mac\)"), "no line with the cause")


@test()
def corrupt_record_for_a_server(t):
    """a corrupt record of a proxied client: the server's connection is reset"""
    front, back = t.address(), t.address()
    ca, certificate = certificate_of(t)
    text = (profile("front", certificate) + f"[listen front]\naddress = {front}\ntls = front\nservice = proxy\nupstream = back\n"
            f"[upstream back]\nserver.only = {back}\n")
    with net.listen(back) as listener, t.daemon(logged(t, front, text)) as daemon:
        with tls.connect(front, tls.client_context(ca.path, "1.2")) as client:
            client.sendall(b"hello")
            with net.accept(listener) as server:
                check_equal(net.read_exactly(server, 5), b"hello", "the bytes")
                client.socket.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
                check_equal(net.ending(server), "reset", "the end for the server")
        record, = records(t, 1)
        check_equal(record["reason"], "client_tls", "the access log")
        check(daemon.log_lines("client .*: TLS failed: "), "no line with the cause")


@test()
def key_update_flood_has_a_reason(t):
    """a client that sends KeyUpdates only is ended with a reason and a log line"""
    front = t.address()
    _, certificate = certificate_of(t)
    with t.daemon(logged(t, front, tls_echo(front, certificate))) as daemon:
        with libssl.Client(net.connect(front)) as client:
            client.handshake()
            with contextlib.suppress(OSError):
                for _ in range(2000):
                    client.key_update(wants_answer=False)
                    client.flush()
            net.ending(client.socket)
        record, = records(t, 1)
        check_equal(record["reason"], "client_tls", "the reason")
        check(daemon.log_lines("TLS failed: too many messages without data"), "no line with the cause")
