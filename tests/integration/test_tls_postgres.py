"""tls: the TLS of PostgreSQL, which begins with a request, and its cancel requests."""

import struct
import time

from support import net, tls
from support.case import check, check_equal, test
from support.tls_listeners import certificate_of, tls_echo, tls_proxy

THEME = "tls"
SSL_REQUEST = struct.pack(">II", 8, 80877103)


@test()
def bytes_behind_a_postgres_request(t):
    """tls_start = postgres: S and a handshake follow SSLRequest; a client with bytes behind it in clear is reset"""
    front = t.address()
    ca, certificate = certificate_of(t)
    with t.daemon(tls_echo(front, certificate, "tls_start = postgres")):
        context = tls.client_context(ca.path)
        with net.connect(front) as s:
            s.sendall(SSL_REQUEST[:3])
            time.sleep(0.05)
            s.sendall(SSL_REQUEST[3:])
            check_equal(net.read_exactly(s, 1), b"S", "the answer")
            with tls.Peer(s, context).handshake() as client:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        with net.connect(front) as s:
            s.sendall(SSL_REQUEST + tls.Peer(None, context).flight())
            check_equal(net.ending(s), "reset", "the end of a client that does not wait for the answer")


def cancel_request(key=b"\x01\x02\x03\x04", length=None):
    """PostgreSQL's CancelRequest, of process 77."""
    return struct.pack(">III", length or 12 + len(key), 80877102, 77) + key


@test(each=[{"key": 4}, {"key": 32}, {"key": 256}])
def postgres_cancel(t, key):
    """tls_start = postgres: an unencrypted CancelRequest with a key of {key} bytes reaches a server whole, and
    nothing of its client does that follows"""
    front, back = t.address(), t.address()
    _, certificate = certificate_of(t)
    request = cancel_request(bytes(range(256))[-key:])
    with net.listen(back) as listener, t.daemon(tls_proxy(front, back, certificate, "tls_start = postgres")):
        for cuts in ([], [1], [7, 9], [15], list(range(1, 16))):
            with net.connect(front) as client:
                for piece in [request[a:b] for a, b in zip([0] + cuts, cuts + [len(request)])]:
                    client.sendall(piece)
                    time.sleep(0.01)
                with net.accept(listener) as server:
                    check_equal(net.read_exactly(server, len(request)), request, "what the server gets")
                    client.sendall(b"SELECT")
                    check_equal(net.read_to_end(server), b"", "and behind it")
                check(net.ending(client) in ("fin", "reset"), "the client's end")


@test(each=[{"what": "too short", "request": cancel_request(b"123")},
            {"what": "too long", "request": cancel_request(b"x" * 257)},
            {"what": "followed by bytes", "request": cancel_request() + b"x"},
            {"what": "very long", "request": cancel_request(length=2 ** 32 - 1)}])
def postgres_cancel_malformed(t, what, request):
    """tls_start = postgres: a CancelRequest that is {what} is reset, with a log line, and no server sees it"""
    front, back = t.address(), t.address()
    _, certificate = certificate_of(t)
    with net.listen(back) as listener, t.daemon(tls_proxy(front, back, certificate, "tls_start = postgres")) as daemon:
        with net.connect(front) as client:
            client.sendall(request)
            check_equal(net.ending(client), "reset", "the client's end")
        t.eventually(lambda: daemon.log_lines("its CancelRequest is not well-formed; the client is reset"), "a log line")
        listener.settimeout(0.2)
        try:
            listener.accept()[0].close()
            check(False, "a server was connected")
        except TimeoutError:
            pass


@test()
def postgres_cancel_routed(t):
    """tls_start = postgres: a CancelRequest takes the route for alpn:postgresql, else the default upstream, else none"""
    front, back = t.address(), t.address()
    _, certificate = certificate_of(t)
    wrong = t.address()

    def text(upstream, route):
        config = tls_proxy(front, back, certificate, f"tls_start = postgres\nroute.a = {route}")
        return (config.replace("upstream = back\n", f"upstream = {upstream}\n")
                + f"[upstream other]\nserver.only = {wrong}\n")

    with net.listen(back) as listener, net.listen(wrong) as other:
        with t.daemon(text("back", "sni:a.example -> other")) as daemon:
            for config in (None, text("other", "alpn:postgresql -> back"), text("", "sni:a.example -> other")):
                if config:
                    daemon.reload(config)
                with net.connect(front) as client:
                    client.sendall(cancel_request())
                    if config == text("", "sni:a.example -> other"):
                        check_equal(net.ending(client), "reset", "the end of one without a route")
                        continue
                    with net.accept(listener) as server:
                        check_equal(net.read_to_end(server), cancel_request(), "what the server gets")
        other.settimeout(0.1)
        try:
            other.accept()[0].close()
            check(False, "the wrong server was connected")
        except TimeoutError:
            pass
