"""proxyproto: headers from peers that are trusted or not, broken, late or missing."""

import contextlib
import socket
import time

from support import net
from support.case import check, check_equal, test
from support.proxy_lines import ACCEPT, LINE, MARK, echo, read_line, tcp4, v2
from test_proxy import proxy

THEME = "proxyproto"
OPTIONAL = "accept_proxy = optional\ntrusted_proxies = 127.0.0.0/8"


# ---- who is believed ----


@test()
def untrusted(t):
    """a header of who is not trusted is data where none is required, and no way in where one is"""
    strict, lax = t.address(), t.address()
    trust = "trusted_proxies = 192.0.2.0/24, ::1, unix"
    config = f"[listen strict]\naddress = {strict}\nservice = echo\naccept_proxy = required\n" \
        f"{trust}\n" + echo(lax, f"accept_proxy = optional\n{trust}")
    with t.daemon(config) as daemon:
        check_equal(net.fate(strict), "reset", "the end of an untrusted client")
        check(daemon.log_lines("127.0.0.1:[0-9]+: not a trusted proxy"), "the log is silent")
        with net.connect(lax) as client:
            check_equal(net.exchange(client, LINE), LINE, "the echo of a header")


@test()
def trusted_unix(t):
    """a proxy on a unix socket is trusted if the list has `unix`, and its client has an address"""
    front, back = t.path("front.sock"), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, ACCEPT, "send_proxy = v1")):
        with net.connect(front) as client:
            client.sendall(LINE)
            with net.accept(listener) as server:
                check_equal(read_line(server), LINE, "the header")


BROKEN = {
    "no header": b"GET / HTTP/1.0\r\n",
    "another protocol": b"PROXY UDP4 ",
    "an address that is none": b"PROXY TCP4 1.2.3.256 ",
    "a line that is too long": b"PROXY UNKNOWN " + b"x" * 100,
    "a checksum that is wrong": v2(rest=b"\3\0\4abcd"),
    "a TLV that is too long": v2(rest=b"\4\0\x20"),
    "more than 4096 bytes": MARK + b"\x21\x11\xff\xff",
    "half of it, then the end": LINE[:30],
}


@test(each={"what": list(BROKEN)})
def broken(t, what):
    """{what} is refused with a reset, and said in the log"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, ACCEPT)) as daemon:
        with net.connect(front) as client:
            client.sendall(BROKEN[what])
            if "end" in what:
                client.shutdown(socket.SHUT_WR)
            check_equal(net.ending(client), "reset", "the end")
        t.eventually(lambda: daemon.log_lines("127.0.0.1:[0-9]+: sent .*PROXY header.*; the client is reset"),
                     "a line in the log")
        listener.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            net.accept(listener)
            check(False, "the server was connected to")


@test()
def says_nothing(t):
    """who connects and goes without a word, as checks of a port do, is no line in the log"""
    front = t.address()
    with t.daemon(echo(front, ACCEPT)) as daemon:
        with net.connect(front) as client:
            client.shutdown(socket.SHUT_WR)
            check_equal(net.ending(client), "fin", "the end")
        check(not daemon.log_lines("warning"), "there is a warning")


@test(each={"said": ["nothing", "a part"]})
def too_late(t, said):
    """after proxy_header_timeout, and not before, a client that said {said} of a header is reset"""
    front = t.address()
    with t.daemon(echo(front, f"{ACCEPT}\nproxy_header_timeout = 500ms")) as daemon:
        began = time.monotonic()
        with net.connect(front) as client:
            if said == "a part":
                client.sendall(LINE[:30])
            check(net.wait_cut(client, 10 * t.scale), "it is there still")
            check(time.monotonic() - began >= 0.45, "it came too early")
        check(daemon.log_lines("sent no complete PROXY header in time"), "the log says nothing")


@test()
def optional(t):
    """a proxy that may send a header may also send what begins like one, or nothing"""
    front, back = t.address(), t.address()
    options = f"{OPTIONAL}\nproxy_header_timeout = 500ms"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options, "send_proxy = v1")):
        for sent, follows in ((LINE + b"x", b"x"), (b"PROXE", b"PROXE"), (b"\r\nx", b"\r\nx"),
                              (b"PRO", b"PRO"), (b"", b"")):
            with net.connect(front) as client:
                client.sendall(sent)
                own = tcp4(client, front)
                with net.accept(listener) as server:
                    check_equal(read_line(server), LINE if sent.startswith(LINE) else own,
                                f"the header after {sent!r}")
                    check_equal(net.read_exactly(server, len(follows)), follows, "what follows")
                    server.sendall(b"hello")
                    check_equal(net.read_exactly(client, 5), b"hello", "the answer")
        with net.connect(front) as client:
            client.sendall(b"PRO")
            client.shutdown(socket.SHUT_WR)
            with net.accept(listener) as server:
                read_line(server)
                check_equal(net.read_to_end(server), b"PRO", "what was begun, and the end")


@test()
def switched_off(t):
    """a reload turns accept_proxy off while clients' headers are awaited: they are served with a header or without"""
    front, debug = t.address(), "[reactord]\nlog_level = debug\n"
    with t.daemon(debug + echo(front, ACCEPT)) as daemon, net.connect(front) as bare, net.connect(front) as proxied:
        proxied.sendall(LINE[:20])
        t.eventually(lambda: daemon.counts("listen echo sessions=")["sessions"] == 2, "both have come")
        daemon.reload(debug + echo(front, ""))
        daemon.wait_carried_over(1)
        check_equal(net.exchange(bare, b"hello"), b"hello", "without a header")
        proxied.sendall(LINE[20:])
        check_equal(net.exchange(proxied, b"hello"), b"hello", "behind its header")
