"""tls: bytes, ends and names in TLS, towards clients and towards servers."""

import contextlib
import os
import socket
import ssl
import time

from support import net, tls
from support.case import check, check_equal, test
from support.net import Task
from support.tls_listeners import NAME, certificate_of, profile, tls_echo, tls_proxy

MB = 1_000_000
VERSIONS = ["1.2", "1.3"]


@test()
def lines_during_a_handshake(t):
    """a line of access_log_interval has no bytes of a handshake that goes on"""
    front, log = t.address(), t.path("log")
    ca, certificate = certificate_of(t)
    options = f"access_log = {log}\naccess_log_format = $reason $bytes_in $bytes_out\naccess_log_interval = 1s"
    with t.daemon(tls_echo(front, certificate, options)), net.connect(front) as s:
        s.sendall(tls.Peer(s, tls.client_context(ca.path), NAME).flight())
        t.eventually(lambda: "open 0 0\n" in open(log, encoding="utf-8").read(), "a line")
        check("open" not in open(log, encoding="utf-8").read().replace("open 0 0\n", ""), "no other line")


@test(each={"end": ["alert", "reset", "no route"]})
def bytes_before_the_data(t, end):
    """the bytes of a client that ends before its data ({end}) are not in the access log and the counters"""
    front, back, log = t.address(), t.address(), t.path("log")
    ca, certificate = certificate_of(t)
    options = f"route.a = sni:b.example -> back\naccess_log = {log}\naccess_log_format = $reason $bytes_in $bytes_out"
    with t.daemon(tls_proxy(front, back, certificate, options).replace("upstream = back\n", "")) as daemon:
        with net.connect(front) as s:
            client = tls.Peer(s, tls.client_context(ca.path), NAME)
            s.sendall(client.flight())
            client.fill()
            if end == "alert":
                s.sendall(b"\x15\x03\x03\x00\x02\x02\x28")
            elif end == "reset":
                net.reset(s)
            else:
                client.handshake()
            if end != "reset":
                net.ending(s)
        t.eventually(lambda: os.path.getsize(log) > 0, "the line")
        with open(log, encoding="ascii") as f:
            check_equal(f.read().split()[1:], ["0", "0"], "bytes in the log")
        count = daemon.counts("listen front sessions=")
        check_equal((count["bytes_in"], count["bytes_out"]), (0, 0), "the counters")


@test(each={"version": VERSIONS})
def twenty_megabytes(t, version):
    """20 MB go through an echo in TLS {version} and come back, byte for byte"""
    front = t.address()
    ca, certificate = certificate_of(t)
    with t.daemon(tls_echo(front, certificate)):
        with tls.connect(front, tls.client_context(ca.path, version)) as client:
            got = tls.echo_pattern(client, 20 * MB, sizes=(40_000, 1, 9000))
    check_equal(got, (20 * MB, net.pattern_sha256(20 * MB)), "what came back")


@test(each={"version": VERSIONS}, timeout=600)
def records_of_one_byte(t, version):
    """bytes in a record each go through an echo in TLS {version}"""
    front, total = t.address(), 20 * MB if t.options.long else 20_000
    ca, certificate = certificate_of(t)
    with t.daemon(tls_echo(front, certificate)):
        with tls.connect(front, tls.client_context(ca.path, version)) as client:
            got = tls.echo_pattern(client, total, sizes=(1,))
    check_equal(got, (total, net.pattern_sha256(total)), "what came back")


@test(each={"version": VERSIONS})
def receiver_that_stops(t, version):
    """a client of TLS {version} that stops to read and goes on gets all its bytes"""
    front, total = t.address(), 12 * MB
    ca, certificate = certificate_of(t)
    pauses = [(0, 0.4), (3 * MB, 0.4), (6 * MB, 0.4)]
    with t.daemon(tls_echo(front, certificate)):
        with tls.connect(front, tls.client_context(ca.path, version)) as client:
            got = tls.echo_pattern(client, total, pauses=pauses)
    check_equal(got, (total, net.pattern_sha256(total)), "what came back")


@test(each={"version": VERSIONS})
def half_close_by_the_client(t, version):
    """a client's close_notify in TLS {version} is end of file for the server, whose answer arrives"""
    front, back = t.address(), t.address()
    ca, certificate = certificate_of(t)
    with net.listen(back) as listener, t.daemon(tls_proxy(front, back, certificate)):
        with tls.connect(front, tls.client_context(ca.path, version)) as client, net.accept(listener) as server:
            client.sendall(b"question")
            client.shutdown()
            check_equal(net.read_to_end(server), b"question", "what the server got")
            net.send_pattern(server, 3 * MB)
            check_equal(net.receive_sha256(client, 3 * MB), net.pattern_sha256(3 * MB), "the answer")
            check_equal(tls.ending(client), "notify", "the server's end")
            check_equal(client.socket.recv(1), b"", "behind the server's close_notify")


@test(each={"version": VERSIONS})
def half_close_by_the_server(t, version):
    """a server's end of file is close_notify in TLS {version}, and the client's bytes still arrive"""
    front, back = t.address(), t.address()
    ca, certificate = certificate_of(t)
    with net.listen(back) as listener, t.daemon(tls_proxy(front, back, certificate)):
        with tls.connect(front, tls.client_context(ca.path, version)) as client, net.accept(listener) as server:
            server.sendall(b"greeting")
            server.shutdown(socket.SHUT_WR)
            check_equal(net.read_exactly(client, 8), b"greeting", "what the client got")
            check_equal(tls.ending(client), "notify", "the server's end")
            sender = Task(net.send_pattern, client, 3 * MB)
            check_equal(net.receive_sha256(server, 3 * MB), net.pattern_sha256(3 * MB), "what the server got")
            sender.result()
            check_equal(net.read_to_end(server), b"", "behind the client's close_notify")


@test(each=[{"truncated": "eof", "end": "fin"}, {"truncated": "reset", "end": "reset"}])
def truncated_by_the_client(t, truncated, end):
    """truncated = {truncated}: a client's end of file without close_notify is a {end} for server and mirror"""
    front, back, copy = t.address(), t.address(), t.address()
    ca, certificate = certificate_of(t)
    config = tls_proxy(front, back, certificate, "mirror = copy", f"truncated = {truncated}")
    with net.listen(back) as listener, net.listen(copy) as copies, t.daemon(
            config + f"[upstream copy]\nserver.only = {copy}\n"):
        with tls.connect(front, tls.client_context(ca.path)) as client, \
                net.accept(listener) as server, net.accept(copies) as mirror:
            client.sendall(b"part")
            for s in (server, mirror):
                check_equal(net.read_exactly(s, 4), b"part", "what was passed on")
            client.socket.shutdown(socket.SHUT_WR)
            for s in (server, mirror):
                check_equal(net.ending(s), end, "the end that was passed on")


@test()
def broken_and_delayed(t):
    """what fault_delay holds is passed on before the reset that follows a bad record"""
    front, back = t.address(), t.address()
    ca, certificate = certificate_of(t)
    config = tls_proxy(front, back, certificate, "fault_delay = 300ms")
    with net.listen(back) as listener, t.daemon("[reactord]\nallow_faults = yes\n" + config):
        with tls.connect(front, tls.client_context(ca.path)) as client, net.accept(listener) as server:
            client.tls.write(b"part")
            client.socket.sendall(client.outgoing.read() + b"\x17\x03\x03\x00\x20" + bytes(32))
            check_equal(net.read_exactly(server, 4), b"part", "what the server got")
            check_equal(net.ending(server), "reset", "the end for the server")


def greeted(front, context, pieces):
    """A client that sent the first piece of its ClientHello; (peer, the other pieces)."""
    peer = tls.Peer(net.connect(front), context)
    first, *others = pieces(peer.flight())
    peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.socket.sendall(first)
    return peer, others


def at_each_place(t, front, context, pieces, places):
    """A client for each place: its ClientHello is split there, and it is served as any other."""
    with contextlib.ExitStack() as clients:
        waiting = []
        for place in places:
            peer, others = greeted(front, context, lambda hello, place=place: pieces(hello, place))
            clients.enter_context(peer)
            waiting.append((place, peer, others))
        for place, peer, others in waiting:
            while net.unacknowledged(peer.socket):
                time.sleep(0.001)
            for piece in others:
                peer.socket.sendall(piece)
        for place, peer, _ in waiting:
            peer.handshake()
            check_equal(net.exchange(peer, b"%d" % place), b"%d" % place, "the echo")


@test(each={"what": ["segments", "records"], "version": VERSIONS}, timeout=120)
def every_split_of_a_hello(t, what, version):
    """a ClientHello of TLS {version} in two {what} is taken, wherever it is split"""
    front = t.address()
    ca, certificate = certificate_of(t)
    context = tls.client_context(ca.path, version, alpn=["echo"])
    with socket.socket() as unused:
        size = len(tls.Peer(unused, context).flight())
    if what == "segments":
        def pieces(hello, place):
            return hello[:place], hello[place:]
    else:
        size -= tls.RECORD_HEADER

        def pieces(hello, place):
            return (tls.in_records(hello, place),)
    step = 1 if version == "1.3" or t.options.long else 7
    with t.daemon(tls_echo(front, certificate, "handshake_timeout = 120s")):
        at_each_place(t, front, context, pieces, range(1, size, step))


@test(each={"version": VERSIONS})
def handshake_byte_for_byte(t, version):
    """a client of TLS {version} whose bytes come one at a time, those of its hello in a record each, is served"""
    front = t.address()
    ca, certificate = certificate_of(t)
    with t.daemon(tls_echo(front, certificate)):
        with tls.Peer(net.connect(front), tls.client_context(ca.path, version)) as peer:
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            flight = tls.in_records(peer.flight(), *[1] * 2000)
            while not peer.is_open:
                for byte in flight:
                    peer.socket.sendall(bytes([byte]))
                peer.fill()
                flight = peer.flight()
            peer.socket.sendall(flight)
            check_equal(net.exchange(peer, b"hello"), b"hello", "the echo")


@test()
def protocol_and_cipher(t):
    """alpn chooses the protocol in the server's order; a client that has none of them is refused"""
    front = t.address()
    ca, certificate = certificate_of(t)
    with t.daemon(tls_echo(front, certificate, tls_options="alpn = postgresql, echo")):
        for offered, chosen in ((["echo", "postgresql"], "postgresql"), (["echo"], "echo"), ([], None)):
            with tls.connect(front, tls.client_context(ca.path, alpn=offered)) as client:
                check_equal(client.tls.selected_alpn_protocol(), chosen, f"of {offered}")
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        try:
            tls.connect(front, tls.client_context(ca.path, alpn=["h2"])).close()
            check(False, "a client with another protocol was served")
        except ssl.SSLError as error:
            check("no application protocol" in str(error), f"the alert: {error}")


@test()
def loop_without_established_clients(t):
    """a loop does the handshakes itself while its clients are all new; threads do them when one has stayed"""
    front = t.address()
    ca, certificate = certificate_of(t)
    context = tls.client_context(ca.path)

    def steps(daemon, clients):
        for _ in range(clients):
            tls.connect(front, context).close()
        counts = daemon.counts("handshakes ")
        return counts["steps_run"], counts["steps_on_loops"]

    with t.daemon("[worker]\nthreads = 1\n[handshake]\nthreads = 1\n" + tls_echo(front, certificate)) as daemon:
        t.eventually(lambda: steps(daemon, 1)[1] > 0, "a loop does one")
        with tls.connect(front, context):
            time.sleep(1.1)
            run, on_loops = steps(daemon, 0)
            check_equal(steps(daemon, 3), (run + 3, on_loops), "the steps, and those on loops")
        t.eventually(lambda: steps(daemon, 1)[1] > on_loops, "a loop does them again")


@test()
def certificate_by_name(t):
    """the certificate is that of the client's name: the exact one, then the wildcard, then the first"""
    front, ca = t.address(), tls.Authority(t)
    paths = ", ".join(ca.issue(name) for name in ("first.example", "b.example", "*.example"))
    config = tls_echo(front, None, tls_options=f"certificate = {paths}\nkey = {paths}")
    with t.daemon(config):
        context = tls.client_context(ca.path)
        context.check_hostname = False
        for name, wanted in (("b.example", "b.example"), ("B.Example", "b.example"), ("c.example", "*.example"),
                             ("c.d.example", "first.example"), (None, "first.example")):
            with tls.connect(front, context, name) as client:
                names = [value for kind, value in client.tls.getpeercert()["subjectAltName"] if kind == "DNS"]
                check_equal(names, [wanted], f"the certificate for {name}")


@test()
def unknown_name(t):
    """unknown_name = reject: a client with another name, or without one, gets the alert unrecognized_name, and the log says why"""
    front = t.address()
    ca, certificate = certificate_of(t)
    with t.daemon(tls_echo(front, certificate, tls_options="unknown_name = reject")) as daemon:
        context = tls.client_context(ca.path)
        with tls.connect(front, context) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        context.check_hostname = False
        for name, why in (("c.example", "for c.example: TLS handshake failed: no certificate has the server name that the client sent"),
                          (None, r"client [0-9.:]+: TLS handshake failed: the client sent no host name as server name")):
            try:
                tls.connect(front, context, name).close()
                check(False, f"{name} was served")
            except ssl.SSLError as error:
                check_equal(error.reason, "TLSV1_UNRECOGNIZED_NAME", f"the alert for {name}")
            t.eventually(lambda: daemon.log_lines(why + r" \(alert sent: unrecognized name\)"), "the reason in the log")
            time.sleep(1)  # the log has one line a second of this kind


@test(each=[{"verify": "required", "certificate": "none", "is_served": False},
            {"verify": "optional", "certificate": "none", "is_served": True},
            {"verify": "required", "certificate": "good", "is_served": True},
            {"verify": "optional", "certificate": "foreign", "is_served": False}])
def client_certificate(t, verify, certificate, is_served):
    """client_ca, verify = {verify}: a client with certificate {certificate}: served: {is_served}"""
    front = t.address()
    ca, server_certificate = certificate_of(t)
    client_ca = tls.Authority(t, "clients")
    path = {"none": lambda: None, "good": lambda: client_ca.issue("alice"),
            "foreign": lambda: tls.Authority(t, "others").issue("mallory")}[certificate]()
    options = f"client_ca = {client_ca.path}\nverify = {verify}"
    with t.daemon(tls_echo(front, server_certificate, tls_options=options)) as daemon:
        try:
            with tls.connect(front, tls.client_context(ca.path, certificate=path)) as client:
                answer = net.exchange(client, b"hello")
        except (ssl.SSLError, EOFError, OSError):
            answer = None
        check_equal(answer, b"hello" if is_served else None, "the echo")
        if not is_served:
            t.eventually(lambda: daemon.log_lines("certificate"), "a log line has the cause")


@test()
def another_use(t):
    """a reload gives a section another use: clients of its removed listener and upstream that come to TLS are reset"""
    old, front, back = t.address(), t.address(), t.address()
    ca, certificate = certificate_of(t)
    section = profile("t", certificate, f"ca = {ca.path}")
    before = (section + f"[listen old]\naddress = {old}\nservice = echo\ntls = t\naccept_proxy = required\n"
              "trusted_proxies = 127.0.0.0/8\n")
    header = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"
    proxied = (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
               f"[upstream back]\nserver.only = {back}\ntls = t\ntls_name = {NAME}\nretry_timeout = 60s\n")
    with t.daemon(before) as daemon, net.connect(old) as client:
        client.sendall(header[:20])
        t.eventually(lambda: daemon.counts("listen old sessions=")["sessions"] == 1, "the client has come")
        daemon.reload(section + proxied)
        client.sendall(header[20:])
        check_equal(net.ending(client), "reset", "the end of a client of the listener")
        with net.connect(front) as other:
            t.eventually(lambda: daemon.counts("server back/only connects=")["connect_failures"] > 0, "it tries")
            daemon.reload(tls_echo(front, certificate).replace("front]", "t]", 1).replace("tls = front", "tls = t"))
            with net.listen(back):
                check_equal(net.ending(other), "reset", "the end of a client of the upstream")
        with tls.connect(front, tls.client_context(ca.path)) as third:
            check_equal(net.exchange(third, b"hello"), b"hello", "the daemon goes on")
