"""tls_upstream: TLS with servers: who is verified, what a failed handshake leads to, sessions, checks and spares."""

import contextlib
import os
import shutil
import socket
import ssl
import threading
import time

from support import net, thread, tls
from support.case import check, check_equal, test

NAME = "a.example"
MB = 1_000_000


CHECKED = "check = tcp\ncheck_interval = 100ms\nrise = 1\nfall = 1\n"


class Echo:
    """A server of TLS that sends back what it gets, and counts full and resumed handshakes and those that failed."""

    def __init__(self, address, context, header=b""):
        self.address, self.context, self.header = address, context, header
        self.full = self.resumed = self.failed = self.ended = 0
        self.lock = threading.Lock()
        self.open = contextlib.ExitStack()

    def __enter__(self):
        listener = self.open.enter_context(net.listen(self.address, 256))
        self.open.callback(listener.shutdown, socket.SHUT_RDWR)
        net.Task(self._serve, listener)
        return self

    def __exit__(self, *_):
        self.open.close()

    @property
    def handshakes(self):
        return self.full + self.resumed

    def _serve(self, listener):
        listener.settimeout(None)
        with contextlib.suppress(OSError):
            while True:
                net.Task(self._echo, listener.accept()[0])

    def _count(self, what):
        with self.lock:
            setattr(self, what, getattr(self, what) + 1)

    def _echo(self, s):
        s.settimeout(net.LIMIT_S)
        with contextlib.suppress(OSError, EOFError), s:
            check_equal(net.read_exactly(s, len(self.header)), self.header, "the PROXY header")
            try:
                peer = tls.Peer(s, self.context, server=True).handshake()
            except (ssl.SSLError, OSError):
                self._count("failed")
                raise
            self._count("resumed" if peer.tls.session_reused else "full")
            while data := peer.recv(net.CHUNK):
                peer.sendall(data)
            self._count("ended")
            peer.shutdown()


def config(front, servers, ca, options="", profile="", threads=1, name=NAME):
    lines = "".join(f"server.{key} = {address}\n" for key, address in servers.items())
    return (f"[worker]\nthreads = {threads}\n[tls back]\nca = {ca}\n{profile}\n"
            f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
            f"[upstream back]\n{lines}tls = back\n" + (f"tls_name = {name}\n" if name else "") + f"{options}\n")


def served(front, text=b"hello"):
    with net.connect(front) as client:
        client.sendall(text)
        check_equal(net.read_exactly(client, len(text)), text, "the answer")
        client.shutdown(socket.SHUT_WR)
        check_equal(net.ending(client), "fin", "the end")


def refused(front):
    check_equal(net.sent_away(net.connect, front), "reset", "the end for a client")


def counts(daemon, what="server back/a"):
    return daemon.counts(what)


@contextlib.contextmanager
def authority(t, *names, version=None, **how):
    """(the CA, a context of a server with a certificate for these names)."""
    ca = tls.Authority(t)
    yield ca, tls.server_context(ca.issue(*(names or [NAME])), version, **how)


@test(each={"version": ["1.2", "1.3"]})
def resumed(t, version):
    """later connections to a server of TLS {version} resume a session; those to another server do not"""
    front = t.address()
    with authority(t, version=version) as (ca, context):
        other = tls.server_context(ca.issue("b.example", NAME), version)
        with Echo(t.address(), context) as a, Echo(t.address(), other) as b:
            with t.daemon(config(front, {"a": a.address, "b": b.address}, ca.path)) as daemon:
                for _ in range(8):
                    served(front)
                check_equal([(s.full, s.resumed) for s in (a, b)], [(1, 3), (1, 3)], "handshakes")
                found = counts(daemon)
                check_equal((found["tls_full"], found["tls_resumed"], found["tls_failed"]), (1, 3, 0), "figures")
                t.eventually(lambda: a.ended + b.ended == 8, "all connections end with close_notify")


@test(each=[{"what": "an IP address", "names": ["127.0.0.1"], "good": True},
            {"what": "the wrong IP address", "names": ["127.0.0.2", NAME], "good": False}])
def verified_address(t, what, names, good):
    """without tls_name a server at an IP address needs a certificate for it: here it has {what}"""
    front = t.address()
    with authority(t, *names) as (ca, context), Echo(t.address(), context) as a:
        with t.daemon(config(front, {"a": a.address}, ca.path, "retries = 0", name=None)) as daemon:
            if good:
                served(front)
                return
            refused(front)
            check(daemon.log_lines(r"server a .*TLS handshake failed: .*IP address mismatch: .*, wanted: 127\.0\.0\.1"), "no line with the cause")
            found = counts(daemon)
            check_equal((found["upstream_tls"], found["tls_failed"]), (1, 1), "reason and figure")


def bad_certificate(t, ca, what):
    """(a certificate, what the log has to say)."""
    if what == "expired":
        return ca.issue_expired(NAME), "certificate has expired"
    if what == "of another name":
        return ca.issue("b.example"), f"hostname mismatch: .*, wanted: {NAME}"
    if what == "self-signed":
        other = tls.Authority(t, "self")
        with open(t.path("self.both"), "wb") as both:
            both.write(open(other.path, "rb").read() + open(other.key, "rb").read())
        return t.path("self.both"), "self.signed certificate"
    return tls.Authority(t, "others").issue(NAME), "unable to get local issuer certificate"


@test(each={"what": ["self-signed", "of another CA", "expired", "of another name"]})
def failed_handshake(t, what):
    """a server with a certificate that is {what} is left for another, and down for checks; verify = off takes it"""
    front = t.address()
    with authority(t) as (ca, context):
        certificate, cause = bad_certificate(t, ca, what)
        with Echo(t.address(), tls.server_context(certificate)) as bad, Echo(t.address(), context) as good:
            servers = {"a": bad.address, "b": good.address}
            options = "balance = first\neject_failures = 2\neject_time = 5m\neject_max_percent = 50"
            with t.daemon(config(front, servers, ca.path, options)) as daemon:
                for _ in range(4):
                    served(front)
                check_equal((good.handshakes, bad.handshakes), (4, 0), "handshakes")
                check_equal(counts(daemon)["upstream_tls"], 2, "the server is ejected after two")
                check(daemon.log_lines(f"server a .*TLS handshake failed: .*{cause}.*alert sent"), "no line with the cause")
            with t.daemon(config(front, {"a": bad.address}, ca.path, "retries = 0\n" + CHECKED)) as daemon:
                t.eventually(lambda: is_down(daemon), "the server is down")
                check(daemon.log_lines(f"server a: down: .*TLS handshake failed: .*{cause}"), "no line with the cause")
                refused(front)
            with t.daemon(config(front, servers, "", options, "verify = off").replace("ca = \n", "")):
                served(front)
                check_equal(bad.handshakes, 1, "handshakes without verification")


@test()
def silent_server(t):
    """connect_timeout covers the handshake: a server that accepts and says nothing is left for another"""
    front, back = t.address(), t.address()
    with authority(t) as (ca, context), net.listen(back), Echo(t.address(), context) as good:
        servers = {"a": back, "b": good.address}
        with t.daemon(config(front, servers, ca.path, "balance = first\nconnect_timeout = 2s")) as daemon:
            served(front)
            check(daemon.log_lines("server a .*TLS handshake not done within connect_timeout"), "no line says why")
            found = counts(daemon)
            check_equal((found["connect_timeout"], found["tls_timed_out"]), (1, 1), "reason and figure")


@test(each={"sizes": [[16384], [100, 16384]]})
def several_messages_in_a_record(t, sizes):
    """a server of TLS 1.2 may put all its first messages into records of {sizes} bytes, as those of Windows and Java do"""
    front, back = t.address(), t.address()
    with authority(t, version="1.2") as (ca, context), net.listen(back) as listener:
        with t.daemon(config(front, {"a": back}, ca.path, "retries = 0")), net.connect(front) as client:
            server = tls.Peer(net.accept(listener), context, server=True)
            with server:
                answer = hello(server)
                check(len(tls.records(answer)) > 3, "there is nothing to put together")
                server.socket.sendall(tls.in_records(answer, *sizes))
                server.handshake().sendall(b"banner")
                check_equal(net.read_exactly(client, 6), b"banner", "what the client gets")


@test()
def client_that_leaves(t):
    """a client that resets during the handshake with a server ends it; then the process stops at once"""
    front, back = t.address(), t.address()
    with authority(t) as (ca, _), net.listen(back) as listener:
        with t.daemon(config(front, {"a": back}, ca.path)) as daemon:
            client = net.connect(front)
            with net.accept(listener) as server:
                check(server.recv(100), "no ClientHello")
                net.reset(client)
                check_equal(net.ending(server), "reset", "the end for the server")
            t.eventually(lambda: counts(daemon)["client_reset"] == 1, "the reason")
            with net.connect(front), net.accept(listener) as server:
                check(server.recv(100), "no ClientHello")
                daemon.send_signal(2)  # SIGINT
                check_equal(net.ending(server), "reset", "the end for the server")


@test()
def client_that_leaves_a_thread(t):
    """a client that resets while a thread has the handshake with a server ends it at once"""
    front, back = t.address(), t.address()
    with authority(t) as (ca, context), net.listen(back) as listener, contextlib.ExitStack() as stack:
        context.num_tickets = 0  # no handshake is a resumed one
        with t.daemon(config(front, {"a": back}, ca.path) + "[handshake]\nthreads = 1\n") as daemon:
            stack.enter_context(net.connect(front))
            stack.enter_context(tls.accept(listener, context))
            t.eventually(lambda: "hs-1" in another_handshake(daemon, front, listener, context),
                         "threads do handshakes, as there is an established session")
            client = stack.enter_context(net.connect(front))
            server = stack.enter_context(net.accept(listener))
            answer = flight(server, context)
            with thread.held(daemon.pid, thread.ids(daemon.pid)["hs-1"], lambda: server.sendall(answer)):
                t.eventually(lambda: daemon.counts("handshakes ")["steps_pending"] == 1, "the thread has it")
                net.reset(client)
                check_equal(net.ending(server), "reset", "the end for the server")
                t.eventually(lambda: counts(daemon)["client_reset"] == 1, "the reason")
            t.eventually(lambda: daemon.counts("handshakes ")["steps_pending"] == 0, "the thread is done with it")
            stack.close()


def another_handshake(daemon, front, listener, context):
    """The daemon's threads behind it."""
    with net.connect(front), tls.accept(listener, context):
        return thread.ids(daemon.pid)


def flight(server, context):
    """What a server answers to the ClientHello that comes."""
    return hello(tls.Peer(server, context, server=True))


def hello(peer):
    while not (answer := peer.flight()):
        peer.fill()
    return answer


@test()
def server_that_goes_down(t):
    """with on_down = close clients in the handshake with a server that goes down get another one at once; those that
    leave at that moment are counted as such, and nothing stays"""
    front, back, health = t.address(), t.address(), t.port()
    with authority(t) as (ca, context), net.listen(back, 64) as listener, contextlib.ExitStack() as stack:
        a_is_up = stack.enter_context(contextlib.ExitStack())
        a_is_up.enter_context(Echo(f"127.0.0.1:{health}", context))
        b = stack.enter_context(Echo(t.address(), context))
        servers = {"a": f"{back} check_port={health}", "b": f"{b.address} backup"}
        options = CHECKED + "on_down = close\nconnect_timeout = 1h"
        with t.daemon(config(front, servers, ca.path, options, threads=4)) as daemon:
            clients = [stack.enter_context(net.connect(front)) for _ in range(16)]
            of_a = [stack.enter_context(net.accept(listener)) for _ in clients]
            for i, s in enumerate(of_a):
                s.sendall(flight(s, context)[:i % 4 * 200])  # of the answer nothing or a part
            a_is_up.close()
            for client in clients[::2]:
                net.reset(client)
                time.sleep(0.02)
            for client in clients[1::2]:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo of the other server")
            check_equal([net.ending(s) for s in of_a], ["reset"] * 16, "the ends for the server")
            t.eventually(lambda: counts(daemon, "listen front")["client_reset"] == 8, "those that left")
            found = counts(daemon)
            check_equal([found.get(key, 0) for key in ("connections", "sessions", "tls_failed", "tls_timed_out")], [0] * 4,
                        "what the server has")
            check_equal((found["sessions_total"], found.get("client_reset", 0) + found["server_down"]), (16, 16),
                        "sessions of the server, and their reasons")
            found = counts(daemon, "server back/b")
            check_equal((found["connections"], found["sessions"]), (8, 8), "what the other one has")
            for client in clients[1::2]:
                client.close()
            t.eventually(lambda: counts(daemon, "listen front")["sessions"] == 0, "all sessions end")
            t.eventually(lambda: counts(daemon, "server back/b")["connections"] == 0, "all connections end")


@test(each={"version": ["1.2", "1.3"]})
def megabytes_both_ways(t, version):
    """5 MB go both ways at once through TLS {version} to a server, behind a PROXY header, and end both ways"""
    front = t.address()
    header = b"PROXY TCP4 127.0.0.1 127.0.0.1 "
    with authority(t, version=version) as (ca, context), net.listen(t.address()) as listener:
        back = "127.0.0.1:%d" % listener.getsockname()[1]
        with t.daemon(config(front, {"a": back}, ca.path, "send_proxy = v1")):
            with net.connect(front) as client, net.accept(listener) as s:
                check_equal(net.read_exactly(s, len(header)), header, "the PROXY header")
                while net.read_exactly(s, 1) != b"\n":
                    pass
                with tls.Peer(s, context, server=True).handshake() as server:
                    both = [net.Task(net.send_pattern, client, 5 * MB),
                            net.Task(tls.echo_pattern, server, 5 * MB)]
                    got = net.receive_sha256(client, 5 * MB)
                    check_equal(got, net.pattern_sha256(5 * MB), "what the client got")
                    check_equal(both[1].result(), (5 * MB, net.pattern_sha256(5 * MB)), "what the server got")
                    check_equal(net.ending(client), "fin", "the server's end")


def is_down(daemon):
    return any("state=down" in line for line in daemon.statistics("server back/a "))


@test()
def checked(t):
    """a check is a whole handshake, and sends inside it"""
    front, ask = t.address(), "check_send = ping\ncheck_expect = ping"
    with authority(t) as (ca, context), Echo(t.address(), context) as a:
        with t.daemon(config(front, {"a": a.address}, ca.path, CHECKED + ask)) as daemon:
            t.eventually(lambda: a.ended >= 2, "checks with an answer")
            served(front)
            check_equal((a.resumed, is_down(daemon)), (0, False), "resumed handshakes, and is it down?")
        before = a.ended
        with t.daemon(config(front, {"a": a.address}, ca.path, CHECKED)) as daemon:
            t.eventually(lambda: a.ended >= before + 2, "checks without bytes end with close_notify")
            check_equal(is_down(daemon), False, "is it down?")


def spares(daemon):
    return daemon.counts("server back/a spares=")


@test(each={"version": ["1.2", "1.3"]})
def spare_connections(t, version):
    """spare connections of TLS {version} have done their handshake; tickets are not speech"""
    front = t.address()
    with authority(t, version=version) as (ca, context), Echo(t.address(), context) as a:
        with t.daemon(config(front, {"a": a.address}, ca.path, "spare = 3")) as daemon:
            t.eventually(lambda: spares(daemon)["spares_opened"] == 3, "three spares")
            t.eventually(lambda: a.handshakes == 3, "three handshakes before there is a client")
            for i in range(6):
                served(front)
                t.eventually(lambda: spares(daemon)["spares_opened"] == 4 + i, "another spare")
            check_equal(spares(daemon)["spares_used"], 6, "spares that clients got")
            check_equal(daemon.log_lines("speaks before"), [], "lines about a server that speaks first")
            t.eventually(lambda: a.resumed > 0, "a session is resumed")


@test()
def spares_that_speak_or_end(t):
    """a server that speaks first in TLS gets no spares; one that ends them gets others; both serve clients"""
    front, back = t.address(), t.address()
    with authority(t) as (ca, context), net.listen(back) as listener:
        with t.daemon(config(front, {"a": back}, ca.path, "spare = 1")) as daemon:
            with tls.accept(listener, context) as first:
                t.eventually(lambda: spares(daemon)["spares_opened"] == 1, "a spare")
                first.shutdown()
                with contextlib.suppress(ssl.SSLError):
                    first.recv(1)
            with tls.accept(listener, context) as second:
                t.eventually(lambda: spares(daemon)["spares_closed"] == 1, "the end of the first was seen")
                second.sendall(b"220 hello\r\n")
                t.eventually(lambda: daemon.log_lines("speaks before"), "the line", within=20)
            with net.connect(front) as client, tls.accept(listener, context) as server:
                server.sendall(b"220 hello\r\n")
                check_equal(net.read_exactly(client, 11), b"220 hello\r\n", "what the client got")


@test(each={"how": ["a reload", "watch"]})
def spares_of_an_earlier_ca(t, how):
    """when {how} brings another CA no client gets a spare connection from before, and when it is back there are others"""
    front, trusted = t.address(), t.path("trusted.pem")
    used = "files have changed and are used"

    def trust(authority_path):
        before = len(daemon.log_lines(used))
        with open(authority_path, "rb") as f:
            os.replace(t.write("new.pem", f.read()), trusted)
        if how == "a reload":
            daemon.reload()
        else:
            t.eventually(lambda: len(daemon.log_lines(used)) > before, "it was seen")

    with authority(t) as (ca, context), Echo(t.address(), context) as a:
        shutil.copy(ca.path, trusted)
        options = "watch = 100ms" if how == "watch" else ""
        with t.daemon(config(front, {"a": a.address}, trusted, "spare = 2\nretries = 0", options)) as daemon:
            t.eventually(lambda: spares(daemon)["spares_opened"] == 2, "two spares")
            trust(tls.Authority(t, "others").path)
            refused(front)
            check_equal(spares(daemon)["spares_used"], 0, "spares that clients got")
            t.eventually(lambda: spares(daemon)["spares_dropped"] == 2, "both are closed")
            trust(ca.path)
            t.eventually(lambda: spares(daemon)["spares_opened"] == 4, "two others")
            served(front)
            check_equal(spares(daemon)["spares_used"], 1, "spares that clients got")


@test()
def switched_on_and_off(t):
    """reloads that switch TLS with servers on and off replace spare connections at once, and change no session"""
    front, back = t.address(), t.address()
    with authority(t) as (ca, context), net.listen(back) as listener, contextlib.ExitStack() as stack:
        secured = config(front, {"a": back}, ca.path, "spare = 1")
        plain = secured.replace("tls = back\ntls_name = a.example\n", "")
        context.num_tickets = 0  # unread ones would make a reset of the end
        sessions, opened = [], 0

        def spare(is_secured):
            nonlocal opened
            opened += 1
            s = stack.enter_context(net.accept(listener))
            s = tls.Peer(s, context, server=True).handshake() if is_secured else s
            t.eventually(lambda: spares(daemon)["spares_opened"] == opened, "a spare")
            return s

        with t.daemon(plain) as daemon:
            server = spare(False)
            for is_secured in (True, False):
                daemon.reload(secured if is_secured else plain)
                check_equal(net.ending(server) if is_secured else tls.ending(server), "fin" if is_secured else "notify",
                            "the end of the spare from before")
                server = spare(is_secured)
                sessions.append((stack.enter_context(net.connect(front)), server))
                server = spare(is_secured)
                for client, its_server in sessions:
                    client.sendall(b"hello")
                    check_equal(net.exchange(its_server, b"hello"), b"hello", "what the server got")
                    check_equal(net.read_exactly(client, 5), b"hello", "what the client got")
            stack.close()
