"""pause: what servers sent during a pause of the process comes before what timed out in it."""

import contextlib
import random
import select
import socket
import time

from support import admin, net, tls
from support.case import check_equal, test
from support.net import Task
from support.paused import PING, echo, paused
from support.queue import bounded, open_session, wait_in_turn
from support.server import Counted, filled_queue
from support.spare_servers import close_all, spared, wait_counts
from test_checks import checked, wait_down
from test_proxy import proxy
from test_tls_upstream import CHECKED as CHECKED_BY_TLS, Echo, config as proxy_to_tls

THEME = "pause"


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


@test()
def checks_are_not_late(t):
    """checks that were due during a pause do not count as late: nothing else kept them"""
    front, back = t.address(), t.address()
    options = {"check_send": "PING", "check_expect": "PING", "check_interval": "100ms"}
    with Counted(back) as server, t.daemon(checked(front, {"a": back}, **options)) as daemon:
        t.eventually(lambda: server.total > 1, "checks")
        with paused(t, daemon):
            pass
        before = server.total
        t.eventually(lambda: server.total > before + 2, "checks after the pause")
        check_equal(daemon.log_lines("a check begins [1-9]"), [], "checks late by a second and more")
