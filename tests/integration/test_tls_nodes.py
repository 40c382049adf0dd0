"""tls_nodes: a client's ticket is good at each node that has the same ticket_keys, also while the keys are rotated."""

import base64
import contextlib
import os

from support.case import check, check_equal, test
from support.preload import Preload
from support.tls import S_CLIENT
from support.tls_listeners import certificate_of, tls_echo
from test_tls_programs import s_client

THEME = "tls_nodes"
VERSIONS = {"version": ["1.2", "1.3"]}
HOUR_S = 3600


def new_key():
    """A line of a file of ticket_keys."""
    return base64.b64encode(os.urandom(80)).decode()


class Node:
    """A daemon with a file of ticket keys of its own."""

    def __init__(self, t, name, certificate, keys, **how):
        self.t, self.name, self.front, self.keys = t, name, t.address(), tuple(keys)
        self.path = t.write(f"{name}.keys", "\n".join(keys) + "\n")
        text = tls_echo(self.front, certificate, tls_options=f"ticket_keys = {self.path}")
        self.daemon = t.daemon(text, **how)

    def has(self, *keys):
        """From now on it has these keys; the first encrypts."""
        if keys != self.keys:
            self.t.write(f"{self.name}.keys", "\n".join(keys) + "\n")
            self.daemon.reload()
            self.keys = keys


class Client:
    """openssl s_client, with the session of its last visit."""

    def __init__(self, t, ca, version, name="session"):
        self.ca, self.version, self.session = ca, version, t.path(name)

    def comes(self, node):
        """Begin anew at that node."""
        return self._visit(node, "-sess_out", self.session)

    def returns(self, node, keeps=False):
        """With its ticket: was the session resumed? It takes the node's new ticket, unless it keeps its own."""
        return self._visit(node, "-sess_in", self.session, *(() if keeps else ("-sess_out", self.session)))

    def _visit(self, node, *options):
        out = s_client(node.front, self.ca, S_CLIENT[self.version], *options)
        check("\nhello\n" in out, f"no echo from {node.name}: {out}")
        resumed = f"Reused, TLSv{self.version}" in out
        check(resumed or f"New, TLSv{self.version}" in out, f"neither new nor resumed: {out}")
        return resumed


@contextlib.contextmanager
def two_nodes(t, keys, **how):
    """Two nodes with the same certificate and keys; and the CA. ${how} is for the second."""
    ca, certificate = certificate_of(t)
    a, b = Node(t, "a", certificate, keys), Node(t, "b", certificate, keys, **how)
    with a.daemon, b.daemon:
        yield a, b, ca


@test(each=VERSIONS)
def another_node(t, version):
    """openssl s_client of TLS {version} resumes its session at another node with the same ticket_keys, and not at one with
    other keys, where it is served all the same"""
    with two_nodes(t, [new_key()]) as (a, b, ca):
        client = Client(t, ca, version)
        check_equal([client.comes(a), client.returns(b), client.returns(a)], [False, True, True], "resumed")
        b.has(new_key())
        check_equal([client.returns(b, keeps=True), client.returns(a)], [False, True], "resumed with other keys at b")


@test(each=VERSIONS, timeout=60)
def rotation(t, version):
    """keys that are rotated over two nodes, first added last, then moved to the front, then without the old one, cost a
    client of TLS {version} no full handshake at any step, wherever it has been before"""
    old, new = new_key(), new_key()
    now = [((old, new), (old,)), ((old, new), (old, new)),  # all decrypt with it
           ((new, old), (old, new)), ((new, old), (new, old))]  # all encrypt with it
    after_two_hours = [((new,), (new, old)), ((new,), (new,))]  # no ticket of the old one is valid
    with two_nodes(t, [old]) as (a, b, ca):
        clients = [Client(t, ca, version, f"session-{node.name}") for node in (a, b)]
        for steps in (now, after_two_hours):
            for client, node in zip(clients, (a, b)):
                client.comes(node)
            for keys_a, keys_b in steps:
                a.has(*keys_a)
                b.has(*keys_b)
                # Each comes to the other node and back: both have tickets of both.
                for client, path in zip(clients, ((b, a), (a, b))):
                    check_equal([client.returns(node) for node in path], [True, True],
                                f"resumed with {len(keys_a)} and {len(keys_b)} keys")


@test(each=VERSIONS)
def rotation_out_of_order(t, version):
    """a node that encrypts with a key before the other has it costs a client of TLS {version} one full handshake there, and
    no failure"""
    old, new = new_key(), new_key()
    with two_nodes(t, [old]) as (a, b, ca):
        a.has(new, old)
        client = Client(t, ca, version)
        check_equal([client.comes(a), client.returns(b), client.returns(a)], [False, False, True], "resumed")


CLOCKS = [{"version": version, "ahead": ahead, "resumes": resumes} for version in ("1.2", "1.3")
          for ahead, resumes in ((1, True), (3, False), (-1, True), (-3, True))]


@test(each=CLOCKS, plain_only=True)
def clocks_apart(t, version, ahead, resumes):
    """a ticket of TLS {version} at a node whose clock is {ahead} hours ahead of the node it comes from: resumed: {resumes};
    the client is served, and then has a ticket that is good there"""
    clock = Preload(t, "clock_ahead")
    environment = {**clock.environment(), "REACTORD_TEST_AHEAD_S": str(ahead * HOUR_S)}
    with two_nodes(t, [new_key()], environment=environment) as (a, b, ca):
        client = Client(t, ca, version)
        check_equal([client.comes(a), client.returns(b), client.returns(b)], [False, resumes, True], "resumed")
