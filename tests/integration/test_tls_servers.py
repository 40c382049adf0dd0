"""tls_servers: servers of TLS that end early, want our certificate, are other programs, or break TLS."""

import contextlib
import random
import socket

from support import net, program, tls
from support.case import check, check_equal, test
from test_tls import NAME, certificate_of, profile
from test_tls_abuse import count_of, mutated
from test_tls_programs import both_ways, haproxy, nginx, stunnel


def tls_upstream(front, back, ca, certificate=None, options="", tls_options=""):
    """The configuration of a proxy with TLS towards servers."""
    return (profile("back", certificate, f"ca = {ca}\n{tls_options}")
            + f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
            f"[upstream back]\nserver.only = {back}\ntls = back\ntls_name = {NAME}\n{options}\n")


@test(each=[{"truncated": "eof", "end": "fin"}, {"truncated": "reset", "end": "reset"}])
def truncated_by_the_server(t, truncated, end):
    """truncated = {truncated}: a server's end of file without close_notify is a {end} for the client"""
    front, back = t.address(), t.address()
    ca, certificate = certificate_of(t)
    with net.listen(back) as listener, t.daemon(
            tls_upstream(front, back, ca.path, tls_options=f"truncated = {truncated}")):
        with net.connect(front) as client, tls.accept(listener, tls.server_context(certificate)) as server:
            server.sendall(b"part")
            check_equal(net.read_exactly(client, 4), b"part", "what the client got")
            server.socket.shutdown(socket.SHUT_WR)
            check_equal(net.ending(client), end, "the end for the client")


@test()
def server_with_client_certificate(t):
    """a server that wants a certificate gets ours"""
    front, back = t.address(), t.address()
    ca, certificate = certificate_of(t)
    ours = ca.issue("reactord")
    with net.listen(back) as listener, t.daemon(tls_upstream(front, back, ca.path, ours)):
        with net.connect(front) as client:
            context = tls.server_context(certificate, client_ca=ca.path)
            with tls.accept(listener, context) as server:
                subject = dict(pair for part in server.tls.getpeercert()["subject"] for pair in part)
                check_equal(subject["commonName"], "reactord", "our name")
                server.sendall(b"hello")
                check_equal(net.read_exactly(client, 5), b"hello", "what the client got")


@test(each={"version": ["1.2", "1.3"]}, timeout=600)
def mutated_servers(t, version):
    """handshakes of servers of TLS {version} with bytes changed, missing or too many harm nobody"""
    front, back, rng = t.address(), t.address(), random.Random(15)
    ca, certificate = certificate_of(t)
    context = tls.server_context(certificate, version)
    options = "retry_timeout = 0\nconnect_timeout = 2s\neject_failures = 0"
    with net.listen(back) as listener, t.daemon(tls_upstream(front, back, ca.path, options=options)) as daemon:
        fds = daemon.fd_count()
        for _ in range(count_of(t) // 2):
            with net.connect(front) as client, tls.Peer(net.accept(listener), context, server=True) as server:
                with contextlib.suppress(OSError, EOFError):
                    server.fill()
                    server.socket.sendall(mutated(rng, server.flight()))
                    server.socket.settimeout(0.02)
                    server.fill()
                    server.socket.sendall(mutated(rng, server.flight() or b"\x16"))
        t.eventually(lambda: daemon.fd_count() <= fds, "all were ended", within=20)
        with contextlib.suppress(BlockingIOError):  # what was tried again
            listener.setblocking(False)
            while True:
                listener.accept()[0].close()
        listener.settimeout(net.LIMIT_S)
        with net.connect(front) as client, tls.accept(listener, context) as server:
            server.sendall(b"hello")
            check_equal(net.read_exactly(client, 5), b"hello", "through a good server")


def server_program(t, name, port, back, ca, certificate):
    """A program that is a server of TLS and wants a certificate, with plain bytes behind it."""
    if name == "haproxy":
        return haproxy(t, port, back, bind=f"ssl crt {certificate} ca-file {ca.path} verify required")
    if name == "nginx":
        return nginx(t, port, back, f"ssl_certificate {certificate}; ssl_certificate_key {certificate}; "
                                    f"ssl_client_certificate {ca.path}; ssl_verify_client on;", listen="ssl")
    return stunnel(t, port, back, f"cert = {certificate}\nkey = {certificate}\nCAfile = {ca.path}\nverifyChain = yes")


@test(each=[{"name": name} for name in ("haproxy", "nginx", "stunnel4")])
def program_behind(t, name):
    """{name} behind us wants our certificate: 3 MB and half-close go through"""
    front, port = t.address(), t.port()
    ca, certificate = certificate_of(t)
    ours = ca.issue("client")
    with program.echo_server(t) as echo, server_program(t, name, port, echo, ca, certificate):
        with t.daemon(tls_upstream(front, f"127.0.0.1:{port}", ca.path, ours)):
            both_ways(front)
