"""pause: a process that was stopped for longer than its timeouts reads what has come before it judges anyone."""

import contextlib
import random
import selectors
import signal
import socket
import time

from support import net, tls
from support.case import check, check_equal, test
from support.paused import PAUSE_S, PING, echo, paused
from support.proxy_lines import ACCEPT, LINE
from support.spare_servers import hold
from support.tls_listeners import certificate_of, tls_echo
from test_proxy import proxy
from test_route import config as routed, hello
from test_tls_postgres import SSL_REQUEST

EVERY_S = 0.1


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


# systemd's watchdog keeps the main thread awake, which else sleeps beside a session that says nothing.
@test(each=[{"how": "with", "environment": {"WATCHDOG_USEC": "1000000"}}, {"how": "without", "environment": {}}])
def silent_session(t, how, environment):
    """a session that says nothing is still ended after a pause, {how} systemd's watchdog; with it, the log tells of
    the pause"""
    front = t.address()
    with t.daemon("[worker]\nstall_threshold = 200ms\n" + echo(front, "idle_timeout = 2s"),
                  environment=environment) as daemon, net.connect(front) as client:
        net.exchange(client, PING)
        daemon.statistics()  # so the main thread, too, is behind its start
        with paused(t, daemon):
            pass
        check_equal(net.ending(client), "fin", "the end")
        if environment:
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
    limit_s = 5 if t.sanitized else 2  # twenty handshakes begin within it
    options = f"handshake_timeout = {limit_s}s" + ("\ntls_start = postgres" if postgres else "")
    with t.daemon(tls_echo(front, certificate, options)) as daemon, contextlib.ExitStack() as stack:
        peers = [tls.Peer(stack.enter_context(net.connect(front)), tls.client_context(ca.path)) for _ in range(20)]
        if part == "Finished":
            for peer in peers:
                peer.socket.sendall(peer.flight())
                peer.fill()
        time.sleep(0.3)
        with paused(t, daemon, limit_s + 1):
            for peer in peers:
                peer.socket.sendall(SSL_REQUEST if postgres else peer.flight())
        for peer in peers:
            if postgres:
                check_equal(net.read_exactly(peer.socket, 1), b"S", "the answer")
            peer.handshake()
            check_equal(net.exchange(peer, PING), PING, "the echo")
