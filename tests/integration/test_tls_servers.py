"""tls_servers: servers of TLS that end early, want our certificate, are other programs, or break TLS."""

import base64
import contextlib
import os
import random
import socket
import ssl
import threading
import time

from support import net, program, tls
from support.case import check, check_equal, test
from support.net import Task
from support.tls_listeners import NAME, certificate_of, profile
from test_tls_abuse import count_of, mutated
from test_tls_config import put
from test_tls_programs import both_ways, haproxy, nginx, stunnel
from test_tls_upstream import Echo


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


def send_back(s):
    while data := s.recv(net.CHUNK):
        s.sendall(data)
    s.shutdown(socket.SHUT_WR)


@test(each={"version": ["1.2", "1.3"]}, timeout=600)
def records_of_one_byte(t, version):
    """bytes in a record each come from a server of TLS {version}, and go back to it"""
    front, back, total = t.address(), t.address(), 20_000_000 if t.options.long else 20_000
    ca, certificate = certificate_of(t)
    with net.listen(back) as listener, t.daemon(tls_upstream(front, back, ca.path)):
        with net.connect(front) as client, tls.accept(listener, tls.server_context(certificate, version)) as server:
            echo = Task(send_back, client)
            got = tls.echo_pattern(server, total, sizes=(1,))
            echo.result()
    check_equal(got, (total, net.pattern_sha256(total)), "what came back")


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
            both_ways(front, name)


class Again(Task):
    """A client that comes again and again until it is told to stop, with the last ticket or with none."""

    def __init__(self, front, context, over, resumes):
        self.front, self.context, self.over, self.resumes = front, context, over, resumes
        self.full = self.resumed = 0
        super().__init__(self._come_again)

    def _come_again(self):
        session = None
        while not self.over.is_set():
            with self.context.wrap_socket(net.connect(self.front), server_hostname=NAME, session=session) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
                self.full += not client.session_reused
                self.resumed += client.session_reused
                session = client.session if self.resumes else None


KNOWN = 3


@test(timeout=150)
def all_replaced_under_load(t):
    """certificate, CA of servers and ticket keys that are replaced again and again fail no client, and no resumption"""
    rounds, pause_s = (60, 1) if t.options.long else (4, 0)
    front, ca = t.address(), tls.Authority(t)
    context = tls.client_context(ca.path)

    def read(path):
        with open(path, encoding="ascii") as f:
            return f.read()

    def server_of(authority):
        return tls.server_context(authority.issue(NAME))

    def served_with():
        with tls.connect(front, context) as client:
            return client.tls.getpeercert(binary_form=True)

    def replace():
        # Known for KNOWN rounds: a handshake may begin before a change and end after it.
        server.context = server_of(authorities[-KNOWN])
        authorities.append(tls.Authority(t, f"servers-{len(keys)}"))
        keys.insert(0, base64.b64encode(os.urandom(80)).decode())
        put(t, "tickets", "\n".join(keys))
        certificate = read(put(t, "front.pem", read(ca.issue(NAME)))).partition("-----BEGIN PRIVATE")[0]
        put(t, "trusted.pem", "".join(read(authority.path) for authority in authorities[-KNOWN - 2:]))
        t.eventually(lambda: len(daemon.log_lines("tls back: files have changed and are used")) == len(keys) - 1, "the CAs are used")
        t.eventually(lambda: served_with() == ssl.PEM_cert_to_DER_cert(certificate), "the certificate is used")
        seen = [client.full + client.resumed for client in clients]
        t.eventually(lambda: all(client.full + client.resumed >= before + 2 for client, before in zip(clients, seen)),
                     "all clients have come again")

    keys = [base64.b64encode(os.urandom(80)).decode()]
    put(t, "tickets", keys[0])
    put(t, "front.pem", read(ca.issue(NAME)))
    authorities, over = [tls.Authority(t, f"servers-at-first-{i}") for i in range(KNOWN)], threading.Event()
    put(t, "trusted.pem", "".join(read(authority.path) for authority in authorities))
    with Echo(t.address(), server_of(authorities[0])) as server:
        text = (f"[tls front]\ncertificate = {t.path('front.pem')}\nticket_keys = {t.path('tickets')}\nwatch = 100ms\n"
                f"[listen front]\naddress = {front}\ntls = front\nservice = proxy\nupstream = back\n"
                f"[upstream back]\nserver.only = {server.address}\ntls = back\ntls_name = {NAME}\nretries = 0\nspare = 1\n"
                f"[tls back]\nca = {t.path('trusted.pem')}\nwatch = 100ms\n[worker]\nthreads = 2\n")
        with t.daemon(text) as daemon:
            clients = [Again(front, context, over, resumes) for resumes in (True, False, True)]
            for _ in range(rounds):
                began = time.monotonic()
                replace()
                time.sleep(max(0, began + pause_s - time.monotonic()))
            over.set()
            for client in clients:
                client.result()
            found = daemon.counts("listen front")
            print(f"clients: {found['sessions_total']}, resumed: {found['tls_resumed']}, certificates: {len(keys)}")
            check_equal(found["tls_failed"] + daemon.counts("server back/only")["tls_failed"], 0, "failed handshakes")
            check_equal([client.full for client in clients if client.resumes], [1, 1], "full handshakes of those with tickets")
            check_equal([client.resumed for client in clients if not client.resumes], [0], "resumptions without")
