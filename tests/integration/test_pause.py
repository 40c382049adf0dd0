"""pause: a process that was stopped for longer than its timeouts reads what has come before it judges anyone."""

import contextlib
import random
import select
import selectors
import signal
import socket
import time

from support import admin, net, tls
from support.case import check, check_equal, test
from support.net import Task
from support.server import Counted, filled_queue
from test_checks import checked, wait_down
from test_proxy import proxy
from test_proxyproto import ACCEPT, LINE
from test_route import config as routed
from test_route import hello
from test_spare import close_all, hold, spared, wait_counts
from test_tls import SSL_REQUEST, certificate_of, tls_echo
from test_tls_upstream import CHECKED as CHECKED_BY_TLS
from test_tls_upstream import Echo
from test_tls_upstream import config as proxy_to_tls
from test_tls_upstream import flight
from test_waiting import bounded, open_session, wait_in_turn

TIMEOUT_S = 2
PAUSE_S = 3  # longer than every timeout
EVERY_S = 0.1
PING = b"12345678"


def echo(address, options=""):
    return f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n"


class Talkers:
    """Clients of an echo that each send something every ${every} seconds, as long as they run."""

    def __init__(self, address, count, every=EVERY_S):
        self.every = every
        self.selector = selectors.DefaultSelector()
        self.open = contextlib.ExitStack()
        self.owed = {}
        self.due = {}
        self.ended = 0
        for _ in range(count):
            client = self.open.enter_context(net.connect(address))
            client.setblocking(False)
            self.selector.register(client, selectors.EVENT_READ)
            self.owed[client] = 0
            self.due[client] = time.monotonic() + random.uniform(0, every)
            self.run(0)  # those that are there talk on

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open.close()

    def run(self, seconds):
        until = time.monotonic() + seconds
        while True:
            for key, _ in self.selector.select(0.005):
                self._hear(key.fileobj)
            now = time.monotonic()
            for client in [c for c, at in self.due.items() if at <= now]:
                self.due[client] = now + self.every
                with contextlib.suppress(OSError):
                    self.owed[client] += client.send(PING)
            if now >= until:
                return

    def _hear(self, client):
        try:
            data = client.recv(net.CHUNK)
        except ConnectionError:
            data = b""
        if data:
            self.owed[client] -= len(data)
            return
        self.ended += 1
        self.selector.unregister(client)
        del self.owed[client], self.due[client]

    def expect_all_served(self, t, count):
        """Each is there, and gets the echo of all that it has sent."""
        self.due.clear()  # they have said all

        def served():
            self.run(0.05)
            return not any(self.owed.values())

        t.eventually(served, "all echoes")
        check_equal((len(self.owed), self.ended), (count, 0), "sessions that go on, and ended ones")


@contextlib.contextmanager
def paused(t, daemon, seconds=PAUSE_S):
    """What happens while the process is stopped; it goes on behind this."""
    hold(t, daemon)
    began = time.monotonic()
    yield
    time.sleep(max(began + seconds - time.monotonic(), 0))
    daemon.send_signal(signal.SIGCONT)


def pause(t, daemon, talkers):
    hold(t, daemon)
    talkers.run(PAUSE_S)
    daemon.send_signal(signal.SIGCONT)


TIMEOUTS = {
    "idle_timeout": "idle_timeout = 2s",
    "client_idle_timeout": "idle_timeout = 0\nclient_idle_timeout = 2s",
    "idle handlers": "idle_timeout = 0\npipeline = idle\nidle_read = 2s\nidle_write = 2s\nidle_all = 2s",
    "idle_timeout of the servers": "idle_timeout = 0",
}


@test(each={"what": list(TIMEOUTS)}, timeout=40, plain_only=True)
def talking_sessions(t, what):
    """{what}: 20 sessions that talk go on after a pause: used to be ended, although their bytes waited"""
    front, back = t.address(), t.address()
    upstream = "idle_timeout = 2s" if "servers" in what else ""
    with t.daemon(echo(back)), t.daemon(proxy(front, back, TIMEOUTS[what], upstream)) as daemon, \
            Talkers(front, 20) as talkers:
        talkers.run(0.3)
        pause(t, daemon, talkers)
        talkers.run(0.5)
        pause(t, daemon, talkers)
        talkers.run(0.5)
        talkers.expect_all_served(t, 20)


@test(each={"service": ["echo", "proxy"]}, timeout=60, plain_only=True)
def a_thousand_talking_sessions(t, service):
    """1,000 sessions of {service} that talk go on after a pause: more than libev's first array of events holds"""
    front, back = t.address(), t.address()
    options = "idle_timeout = 3s\nclient_idle_timeout = 3s"
    config = echo(front, options) if service == "echo" else proxy(front, back, options, "idle_timeout = 3s")
    with t.daemon(echo(back)), t.daemon(config) as daemon, Talkers(front, 1000, every=1) as talkers:
        talkers.run(1)
        hold(t, daemon)
        talkers.run(4)
        daemon.send_signal(signal.SIGCONT)
        talkers.expect_all_served(t, 1000)


@test()
def silent_session(t):
    """a session that says nothing is still ended after a pause, and the log tells of the pause"""
    front = t.address()
    with t.daemon("[worker]\nstall_threshold = 200ms\n" + echo(front, "idle_timeout = 2s")) as daemon, \
            net.connect(front) as client:
        net.exchange(client, PING)
        daemon.statistics()  # so the main thread, too, is behind its start
        with paused(t, daemon):
            pass
        check_equal(net.ending(client), "fin", "the end")
        t.eventually(lambda: daemon.log_lines(r"the main thread did not run for about [1-9]\.\d s"), "a line about it")
        check_equal(daemon.log_lines("stalled: "), [], "stalls")


@test()
def first_byte(t):
    """a first byte that came during a pause is in time for first_byte_timeout"""
    front = t.address()
    with t.daemon(echo(front, "first_byte_timeout = 2s")) as daemon, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(front)) for _ in range(20)]
        time.sleep(0.3)  # for the sessions to begin
        with paused(t, daemon):
            for client in clients:
                client.sendall(PING)
        for client in clients:
            check_equal(net.read_exactly(client, len(PING)), PING, "the echo")


@test()
def half_closed(t):
    """bytes that came during a pause are in time for half_close_timeout"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, "half_close_timeout = 2s")) as daemon:
        with net.proxied(front, listener) as (client, server):
            client.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(server), b"", "what the server got")
            with paused(t, daemon):
                server.sendall(PING)
            check_equal(net.read_exactly(client, len(PING)), PING, "what the client got")
            server.sendall(PING)
            server.close()
            check_equal(net.read_to_end(client), PING, "what the client got then")


@test()
def lifetime(t):
    """a session at its max_lifetime ends after a pause, and what waited is read first"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, "max_lifetime = 2s")) as daemon:
        with net.proxied(front, listener) as (client, server):
            with paused(t, daemon):
                client.sendall(PING)
            check_equal(net.read_exactly(server, len(PING)), PING, "what the server got")
            check(net.ending(client) in ("fin", "reset"), "its end")


@test()
def proxy_header(t):
    """a PROXY header that came during a pause is in time for proxy_header_timeout"""
    front = t.address()
    with t.daemon(echo(front, f"{ACCEPT}\nproxy_header_timeout = 2s")) as daemon, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(front)) for _ in range(20)]
        for client in clients:
            client.sendall(LINE[:10])
        time.sleep(0.3)
        with paused(t, daemon):
            for client in clients:
                client.sendall(LINE[10:] + PING)
        for client in clients:
            check_equal(net.read_exactly(client, len(PING)), PING, "the echo")


@test()
def client_hello(t):
    """a ClientHello that came during a pause is in time for client_hello_timeout"""
    front, back = t.address(), t.address()
    first = hello("a.example")
    with net.listen(back) as listener, t.daemon(routed(
            front, "route.a = sni:a.example -> a\nclient_hello_timeout = 2s", {"a": back})) as daemon, \
            net.connect(front) as client:
        client.sendall(first[:100])
        time.sleep(0.3)
        with paused(t, daemon):
            client.sendall(first[100:])
        with net.accept(listener) as server:
            check_equal(net.read_exactly(server, len(first)), first, "what the server got")


@test(each={"part": ["ClientHello", "Finished", "SSLRequest of PostgreSQL"]})
def handshake(t, part):
    """a TLS handshake whose {part} came during a pause is in time for handshake_timeout, with all that follows"""
    front, postgres = t.address(), part.startswith("SSL")
    ca, certificate = certificate_of(t)
    options = "handshake_timeout = 2s" + ("\ntls_start = postgres" if postgres else "")
    with t.daemon(tls_echo(front, certificate, options)) as daemon, contextlib.ExitStack() as stack:
        peers = [tls.Peer(stack.enter_context(net.connect(front)), tls.client_context(ca.path)) for _ in range(20)]
        if part == "Finished":
            for peer in peers:
                peer.socket.sendall(peer.flight())
                peer.fill()
        time.sleep(0.3)
        with paused(t, daemon):
            for peer in peers:
                peer.socket.sendall(SSL_REQUEST if postgres else peer.flight())
        for peer in peers:
            if postgres:
                check_equal(net.read_exactly(peer.socket, 1), b"S", "the answer")
            peer.handshake()
            check_equal(net.exchange(peer, PING), PING, "the echo")


@test()
def handshake_with_a_server(t):
    """a server whose part of a TLS handshake came during a pause gets its client, not another server's try"""
    front, back = t.address(), t.address()
    ca = tls.Authority(t)
    context = tls.server_context(ca.issue("a.example"))
    options = "connect_timeout = 2s\nretries = 0"
    with net.listen(back) as listener, \
            t.daemon(proxy_to_tls(front, {"a": back}, ca.path, options, name="a.example")) as daemon, \
            net.connect(front) as client, net.accept(listener) as s:
        peer = tls.Peer(s, context, server=True)
        while not (answer := peer.flight()):
            peer.fill()
        with paused(t, daemon):
            s.sendall(answer)
        peer.handshake()
        client.sendall(PING)
        check_equal(net.read_exactly(peer, len(PING)), PING, "what the server got")


@test()
def connection_to_a_server(t):
    """a connection to a server that came about during a pause is in time for connect_timeout"""
    front, back = t.address(), t.address()
    with net.listen(back, 0) as listener, \
            t.daemon(proxy(front, back, "", "connect_timeout = 2s\nretries = 0")) as daemon, \
            contextlib.ExitStack() as stack:
        stack.enter_context(filled_queue(back))
        client = stack.enter_context(net.connect(front))
        client.sendall(PING)
        time.sleep(0.3)
        accepted = []
        stack.callback(lambda: [s.close() for s in accepted])  # else the daemon waits for them at its end
        with paused(t, daemon):  # the kernel tries again a second after the first try
            accept_all(listener, accepted, 2.5)
        t.eventually(lambda: accept_all(listener, accepted, 0.1) or any(got(s, PING) for s in accepted),
                     "the client at the server")


def accept_all(listener, accepted, seconds):
    """Make room in the queue for some time."""
    until = time.monotonic() + seconds
    listener.settimeout(0.1)
    while time.monotonic() < until:
        with contextlib.suppress(TimeoutError):
            accepted.append(listener.accept()[0])


def got(s, wanted):
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError, ConnectionError):
        return s.recv(len(wanted)) == wanted
    return False


@test(plain_only=True, timeout=60)
def health_checks(t):
    """with fall = 1 a server whose answer to a check came during a pause stays up, ten times"""
    front, back = t.address(), t.address()
    options = {"check_send": r"PING\r\n", "check_expect": "PONG", "check_interval": "50ms", "check_timeout": "500ms",
               "rise": 1, "fall": 1}
    with net.listen(back) as listener:
        answering = Task(answer_checks, listener)
        with t.daemon(checked(front, {"a": back}, **options)) as daemon:
            for _ in range(10):
                time.sleep(random.uniform(0.05, 0.2))
                with paused(t, daemon, 0.8):
                    pass
            time.sleep(0.3)
            check_equal(daemon.log_lines("server a: down"), [], "times that it was down")
            listener.shutdown(socket.SHUT_RDWR)
            answering.result()
            wait_down(t, daemon, fall=1)


def answer_checks(listener):
    listener.settimeout(None)
    with contextlib.suppress(OSError):
        while True:
            s, _ = listener.accept()
            with s, contextlib.suppress(OSError):
                s.settimeout(5)
                time.sleep(0.02)  # so that a pause often comes between question and answer
                if s.recv(100):
                    s.sendall(b"PONG")
                    s.recv(100)


SPARED = "connect_timeout = 2s\nidle_timeout = 2s\nretries = 0\nspare = 1\n"
SPARE = {"TCP": False, "TLS": True}


@contextlib.contextmanager
def with_spare(t, what, backlog=16):
    """(the server's listener, its TLS context, the daemon, the address for clients): one spare connection is kept."""
    front, back, ca = t.address(), t.address(), tls.Authority(t)
    text = spared(front, back, 1, SPARED.replace("spare = 1\n", ""))
    if SPARE[what]:
        text = proxy_to_tls(front, {"a": back}, ca.path, SPARED)
    with net.listen(back, backlog) as listener, contextlib.ExitStack() as stack:
        if backlog == 0:
            stack.enter_context(filled_queue(back))
        with t.daemon(text) as daemon:
            yield listener, tls.server_context(ca.issue("a.example")), daemon, front


@contextlib.contextmanager
def client_on_spare(t, daemon, front):
    """A client that has spoken, when the one that was opened is there and nothing has failed."""
    wait_counts(t, daemon, spares=1, opened=1, failed=0, closed=0, dropped=0, expired=0)
    check_equal(daemon.log_lines("server a.*: (cannot|speaks)"), [], "what the log says of the server")
    with net.connect(front) as client:
        client.sendall(PING)
        yield


def expect_client(t, daemon, front, server):
    with client_on_spare(t, daemon, front):
        check_equal(net.read_exactly(server, len(PING)), PING, "what the server got")


@test()
def spare_connection(t):
    """a spare connection that came about during a pause is in time for connect_timeout"""
    with with_spare(t, "TCP", backlog=0) as (listener, _, daemon, front), accepted_in_a_pause(t, daemon, listener) as come:
        wait_counts(t, daemon, opened=1)
        with client_on_spare(t, daemon, front):
            check_equal(net.read_exactly(come(), len(PING)), PING, "what the server got")


@test()
def spare_connection_before_its_handshake(t):
    """a spare connection that came about during a pause has its time for the TLS handshake"""
    with with_spare(t, "TLS", backlog=0) as (listener, context, daemon, front), \
            accepted_in_a_pause(t, daemon, listener) as come:
        expect_client(t, daemon, front, tls.Peer(come(), context, server=True).handshake())


@contextlib.contextmanager
def accepted_in_a_pause(t, daemon, listener):
    """A function that returns the connection on which something comes, of those accepted in a pause and behind it."""
    accepted, heard = [], []

    def come():
        def accept_more():
            accept_all(listener, accepted, 0.1)
            heard[:], _, _ = select.select(accepted, [], [], 0)
            return heard
        t.eventually(accept_more, "bytes for the server")
        return heard[0]

    time.sleep(0.3)
    with paused(t, daemon):  # see connection_to_a_server()
        accept_all(listener, accepted, 2.5)
    yield come
    close_all(accepted)


@test()
def handshake_of_a_spare_connection(t):
    """a spare connection whose server did its part of the TLS handshake during a pause is open, and nothing has failed"""
    with with_spare(t, "TLS") as (listener, context, daemon, front), net.accept(listener) as s:
        peer = tls.Peer(s, context, server=True)
        while not (answer := peer.flight()):
            peer.fill()
        with paused(t, daemon):
            s.sendall(answer)
        expect_client(t, daemon, front, peer.handshake())


@test(each={"what": list(SPARE)})
def waiting_spare_connection(t, what):
    """a spare connection of {what} that waits through a pause goes to the next client"""
    with with_spare(t, what) as (listener, context, daemon, front), net.accept(listener) as server:
        if SPARE[what]:
            server = tls.Peer(server, context, server=True).handshake()
        wait_counts(t, daemon, opened=1)
        with paused(t, daemon):
            pass
        expect_client(t, daemon, front, server)


@test(each={"what": list(SPARE)})
def last_words_to_a_spare_connection(t, what):
    """a server of {what} that spoke before a pause and closed during it does not speak first"""
    with with_spare(t, what) as (listener, context, daemon, _), net.accept(listener) as server:
        if SPARE[what]:
            server = tls.Peer(server, context, server=True).handshake()
        wait_counts(t, daemon, opened=1)
        server.sendall(b"too many idle connections\n")
        time.sleep(0.3)  # for the daemon to hear it
        with paused(t, daemon):
            server.shutdown(socket.SHUT_WR)
            server.close()
        wait_counts(t, daemon, closed=1)
        check_equal(daemon.log_lines("speaks before"), [], "servers that speak first")


class Slow(Echo):
    """An echo of TLS that thinks about each handshake, so that a pause often comes between question and answer."""

    def _echo(self, s):
        time.sleep(0.06)
        super()._echo(s)


@test(plain_only=True, timeout=90)
def checks_and_spare_connections(t):
    """with fall = 1 a server of TLS whose handshakes with checks and spare connections meet eight pauses has failed none"""
    front, ca = t.address(), tls.Authority(t)
    options = (CHECKED_BY_TLS + "check_timeout = 1s\nconnect_timeout = 1s\nspare = 8\nspare_max_age = 1s\n")
    with Slow(t.address(), tls.server_context(ca.issue("a.example"))) as a, \
            t.daemon(proxy_to_tls(front, {"a": a.address}, ca.path, options)) as daemon:
        for _ in range(8):
            time.sleep(random.uniform(0.05, 0.3))
            with paused(t, daemon, 1.5):
                pass
        wait_counts(t, daemon, spares=8, failed=0)
        check_equal(daemon.log_lines("server a.*: (down|cannot|speaks)"), [], "what the log says of the server")


@test()
def place_at_a_server(t):
    """clients that wait for a server which became free during a pause are served, whichever loop they are on"""
    front = t.address()
    with Counted(t.address()) as a, contextlib.ExitStack() as stack:
        with t.daemon(bounded(front, {a.address: 4}, "queue_timeout = 4s")) as daemon:
            held = [stack.enter_context(open_session(front)) for _ in range(4)]
            waiting = [wait_in_turn(t, daemon, front, stack) for _ in range(3)]
            with paused(t, daemon, 5):
                for client in held:
                    client.close()
                for client in waiting:
                    client.sendall(PING)
            for client in waiting:
                check_equal(net.read_exactly(client, len(PING)), PING, "the echo")


@test()
def admin_request(t):
    """a request whose rest came during a pause is in time for request_timeout"""
    front, where = t.address(), t.path("admin.sock")
    with t.daemon(echo(front) + admin.section(where, "request_timeout = 2s")) as daemon, \
            net.connect(where) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\n")
        time.sleep(0.3)
        with paused(t, daemon):
            client.sendall(b"Host: localhost\r\n\r\n")
        check_equal(admin.read_answer(client).status, 200, "the status")
