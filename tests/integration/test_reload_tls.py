"""reload_tls: TLS with clients, changed while a client is between its connect and the end of its handshake."""

import contextlib

from support import net, tls
from support.case import check_equal, test

NAME = "a.example"
PROXIES = "accept_proxy = required\ntrusted_proxies = 127.0.0.0/8\n"
LINE = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"
SSL_REQUEST = bytes.fromhex("0000000804d2162f")


def config(front, back, certificate, options):
    """A proxy whose [listen front] has these options."""
    return (f"[tls front]\ncertificate = {certificate}\nkey = {certificate}\n"
            f"[listen front]\naddress = {front}\nservice = proxy\n{options}\n"
            f"[upstream back]\nserver.only = {back}\n")


@contextlib.contextmanager
def reloaded(t, before, after):
    """A client that connected before a reload from one kind of [listen front] to the other; the CA, and the server's socket."""
    front, back = t.address(), t.address()
    ca = tls.Authority(t)
    certificate = ca.issue(NAME)
    with net.listen(back) as listener, t.daemon(config(front, back, certificate, before)) as daemon, \
            net.connect(front) as client:
        t.eventually(lambda: daemon.counts("listen front ")["sessions_total"] == 1, "the client is there")
        daemon.reload(config(front, back, certificate, after))
        yield client, ca, listener


@test(each={"awaited": ["PROXY header", "SSLRequest"]})
def ended_before_the_handshake(t, awaited):
    """a reload ends TLS while the {awaited} of a client is awaited: the client is reset"""
    options, first = {"PROXY header": (PROXIES, LINE), "SSLRequest": ("", SSL_REQUEST)}[awaited]
    start = "" if options else "tls_start = postgres\n"
    with reloaded(t, f"upstream = back\ntls = front\n{options}{start}", f"upstream = back\n{options}") as (client, _, _):
        client.sendall(first)
        check_equal(net.ending(client), "reset", "the end")


@test()
def routes_replaced_by_an_upstream(t):
    """a reload replaces all routes by an upstream during a client's handshake: the client gets that upstream"""
    with reloaded(t, "tls = front\nroute.a = sni:a.example -> back", "tls = front\nupstream = back") as (client, ca, listener):
        peer = tls.Peer(client, tls.client_context(ca.path), NAME).handshake()
        with net.accept(listener) as server:
            peer.sendall(b"hello")
            check_equal(net.read_exactly(server, 5), b"hello", "what the server gets")
