"""proxyproto: headers of the PROXY protocol, from and to HAProxy, nginx and curl, and such as nobody
should send."""

import contextlib
import hashlib
import random
import signal
import socket
import time

from support import net, program
from support.case import check, check_equal, test
from support.proxy_lines import ACCEPT, LINE, MARK, echo, haproxy, nginx_stream, read_line, tcp4, v2
from support.server import Counted, full_queue
from test_proxy import proxy

MIB = 1024 * 1024


# ---- who sends headers ----


@test(needs=["haproxy"], each={"version": ["send-proxy", "send-proxy-v2",
                                           "send-proxy-v2 proxy-v2-options crc32c,unique-id"]},
      plain_only=True)
def from_haproxy(t, version):
    """the client of a haproxy with {version} is told to the server as haproxy saw it"""
    front, back, port = t.address(), t.address(), t.port()
    listen = f"""
listen l
    bind 127.0.0.1:{port}
    unique-id-format %[uuid()]
    server s {front} {version}
"""
    with net.listen(back) as listener, t.daemon(proxy(front, back, ACCEPT, "send_proxy = v1")), \
            haproxy(t, listen, port):
        with net.connect(f"127.0.0.1:{port}") as client:
            client.sendall(b"hello")
            with net.accept(listener) as server:
                check_equal(read_line(server), tcp4(client, f"127.0.0.1:{port}"), "the header")
                check_equal(net.read_exactly(server, 5), b"hello", "what follows")


@test(needs=["haproxy"], each={"version": ["send-proxy", "send-proxy-v2"]}, plain_only=True)
def checked_by_haproxy(t, version):
    """the health checks of a haproxy with {version} pass where a header is required"""
    front, port = t.address(), t.port()
    listen = f"""
listen l
    bind 127.0.0.1:{port}
    option tcp-check
    tcp-check send ping
    tcp-check expect string ping
    timeout check 10s
    server s {front} {version} check inter 300ms fall 1
"""
    with t.daemon(echo(front, ACCEPT) + "[reactord]\nlog_level = debug\n") as daemon, \
            haproxy(t, listen, port):
        t.eventually(lambda: len(daemon.log_lines("4 bytes in, 4 bytes out")) > 3, "checks come")
        with net.connect(f"127.0.0.1:{port}") as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "an echo through haproxy")
        check(not daemon.log_lines("PROXY header"), "a check was refused")


@test(needs=["nginx"])
def from_nginx(t):
    """the client of an nginx with proxy_protocol is told to the server as nginx saw it"""
    front, back, port = t.address(), t.address(), t.port()
    stream = f"server {{ listen 127.0.0.1:{port}; proxy_pass {front}; proxy_protocol on; }}"
    with net.listen(back) as listener, t.daemon(proxy(front, back, ACCEPT, "send_proxy = v1")), \
            nginx_stream(t, stream, port):
        with net.connect(f"127.0.0.1:{port}") as client:
            client.sendall(b"hello")
            with net.accept(listener) as server:
                check_equal(read_line(server), tcp4(client, f"127.0.0.1:{port}"), "the header")
                check_equal(net.read_exactly(server, 5), b"hello", "what follows")


@test(needs=["curl", "nginx"])
def from_curl(t):
    """curl --haproxy-protocol gets its file, and without gets a reset"""
    with program.nginx(t, {"small": b"ok\n"}) as back:
        front = t.address()
        with t.daemon(proxy(front, back, ACCEPT)) as daemon:
            out = program.run(["curl", "-sS", "-f", "--haproxy-protocol", f"http://{front}/small"])
            check_equal(out, b"ok\n", "the file")
            program.run(["curl", "-sS", f"http://{front}/small"], code=56)
            check(daemon.log_lines("sent no PROXY header"), "the log says nothing of it")


# ---- the bytes behind the header ----


@test(each={"service": ["echo", "proxy"], "size": [1, 7, 45, 1000]})
def in_parts(t, service, size):
    """a header and what follows in writes of {size} are told apart, with service = {service}"""
    front, back = t.address(), t.address()
    data = LINE + b"0123456789" * 20
    with program.echo_server(t, back):
        with t.daemon(echo(front, ACCEPT) if service == "echo" else proxy(front, back, ACCEPT)):
            with net.connect(front) as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for at in range(0, len(data), size):
                    client.sendall(data[at:at + size])
                    if size < 10:
                        time.sleep(0.002)
                check_equal(net.read_exactly(client, 200), b"0123456789" * 20, "the echo")


@test(each={"splice": ["auto", "on", "off"], "early": ["with the header", "after it"]}, timeout=60)
def large(t, splice, early):
    """20 MiB that come {early} arrive in order, splice = {splice}"""
    front, back = t.address(), t.address()
    total = 20 * MIB
    with net.listen(back) as listener, t.daemon(proxy(front, back, f"{ACCEPT}\nsplice = {splice}")):
        with net.connect(front) as client:
            if early == "with the header":
                client.sendall(v2() + b"x" * 30000)
            else:
                client.sendall(v2())
            with net.accept(listener) as server:
                if early == "with the header":
                    check_equal(net.read_exactly(server, 30000), b"x" * 30000, "the first bytes")
                sender = net.Task(net.send_pattern, client, total)
                check_equal(net.receive_sha256(server, total), net.pattern_sha256(total), "SHA-256")
                sender.result()
                check_equal(net.read_to_end(server), b"", "behind it")


@test(each={"data": [b"", b"last words"]})
def end_behind_it(t, data):
    """an end of file behind the header and {data!r} reaches the server, and its answer comes back"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, ACCEPT)):
        with net.connect(front) as client:
            client.sendall(LINE + data)
            client.shutdown(socket.SHUT_WR)
            with net.accept(listener) as server:
                check_equal(net.read_to_end(server), data, "what the server got")
                server.sendall(b"answer")
            check_equal(net.read_to_end(client), b"answer", "what the client got")


@test()
def waits_for_room(t):
    """what came behind the header waits with the client for a server that is full"""
    front = t.address()
    with Counted(t.address()) as server:
        config = proxy(front, f"{server.address} max_connections=1", ACCEPT)
        with t.daemon(config) as daemon, net.connect(front) as first:
            first.sendall(LINE)
            check_equal(net.exchange(first, b"a"), b"a", "the first client's echo")
            with net.connect(front) as second, net.connect(front) as gone:
                second.sendall(v2() + b"patience")
                gone.sendall(v2("192.0.2.9") + b"no patience")
                time.sleep(0.3)
                check_equal(server.total, 1, "connections of the server")
                net.reset(gone)
                time.sleep(0.1)
                first.close()
                check_equal(net.read_exactly(second, 8), b"patience", "the second client's echo")
            check(daemon.running(), "the daemon ended")


@test()
def cut_while_connecting(t):
    """a stop ends a client that has sent its header and waits for a server"""
    front, back = t.address(), t.address()
    with full_queue(back), t.daemon(proxy(front, back, ACCEPT)) as daemon:
        with net.connect(front) as client, net.connect(front) as silent:
            client.sendall(LINE + b"hello")
            silent.sendall(LINE[:20])
            time.sleep(0.2)
            daemon.send_signal(2)
            check(net.wait_cut(client, 10 * t.scale), "the client waits on")
            check(net.wait_cut(silent, 10 * t.scale), "the client that says no more waits on")


# ---- what the address is good for ----


@test()
def rules_and_limits(t):
    """access rules and limits of clients are about the client of the header, not the proxy"""
    front = t.address()
    options = f"{ACCEPT}\ndeny = 127.0.0.0/8, 192.0.2.66\nmax_connections_per_client = 1"
    with t.daemon(echo(front, options) + "[reactord]\nlog_level = debug\n") as daemon:
        with net.connect(front) as one, net.connect(front) as other:
            one.sendall(v2("192.0.2.1"))
            other.sendall(v2("192.0.2.2"))
            check_equal(net.exchange(one, b"one"), b"one", "the first client's echo")
            check_equal(net.exchange(other, b"other"), b"other", "the second client's echo")
            for source in ("192.0.2.66", "192.0.2.1"):
                with net.connect(front) as refused:
                    refused.sendall(v2(source))
                    check_equal(net.ending(refused), "reset", f"the end of {source}")
            with net.connect(front) as local:
                local.sendall(MARK + b"\x20\0\0\0")
                check_equal(net.ending(local), "reset", "the end of a proxy that is denied itself")
        t.eventually(lambda: daemon.log_lines("192.0.2.1:56324 ended: client fin, 3 bytes in"),
                     "the log has the client's address, and what is its own of the bytes")
        with net.connect(front) as again:
            again.sendall(v2("192.0.2.1"))
            check_equal(net.exchange(again, b"again"), b"again", "after the first has gone")


@test()
def pipeline(t):
    """handlers see the client of the header from the first, and the bytes behind it"""
    front = t.address()
    options = f"{ACCEPT}\npipeline = frame, log\nframe_length_width = 1\nfault_rate = 1m\n" \
        "fault_clients = 192.0.2.1"
    process = "[reactord]\nlog_level = debug\nallow_faults = yes\n"
    with t.daemon(echo(front, options) + process) as daemon:
        with net.connect(front) as client:
            client.sendall(v2() + b"\5he")
            client.sendall(b"llo")
            check_equal(net.read_exactly(client, 6), b"\5hello", "the echo of a frame")
        t.eventually(lambda: daemon.log_lines("192.0.2.1:56324 active"), "the log handler's line")
        check(not daemon.log_lines("127.0.0.1:.* active"), "a handler saw the proxy")
        daemon.send_signal(signal.SIGRTMIN)
        t.eventually(lambda: daemon.log_lines("stats listen echo faults=1 "), "the fault handler's count")


@test()
def access_log(t):
    """the access log has the client of the header, and the proxy that named it"""
    front, log = t.address(), t.path("access.log")
    options = f"{ACCEPT}\naccess_log = {log}\n" \
        "access_log_format = $client:$client_port via $proxy, $bytes_in"
    with t.daemon(echo(front, options)):
        with net.connect(front) as client:
            proxy_port = client.getsockname()[1]
            client.sendall(v2())
            net.exchange(client, b"hello")
        with net.connect(front) as refused:
            refused_port = refused.getsockname()[1]
            refused.sendall(b"hello")
            net.ending(refused)

        def lines():
            with open(log, encoding="ascii") as f:
                return sorted(f.read().splitlines())

        t.eventually(lambda: len(lines()) == 2, "two lines")
    check_equal(lines(), sorted([f"192.0.2.1:56324 via 127.0.0.1:{proxy_port}, 5",
                                 f"127.0.0.1:{refused_port} via -, 5"]), "the access log")


def send_somehow(client, how, header, draw):
    if how == "well":
        client.sendall(header + b"hello")
        check_equal(net.read_exactly(client, 5), b"hello", "the echo")
    elif how == "cut":
        client.sendall(header[:draw.randrange(len(header))])
    elif how == "wrong":
        client.sendall(header[:9] + b"?" + header[10:])
    elif how == "reset":
        client.sendall(header + b"hello")
        net.reset(client)


@test(timeout=60)
def crowd(t):
    """of hundreds of clients that send headers well or badly none is lost or left over"""
    front, back = t.address(), t.address()
    draw = random.Random(7007)
    config = proxy(front, back, f"{ACCEPT}\nproxy_header_timeout = 1s")
    with program.echo_server(t, back), t.daemon(config) as daemon:
        with net.connect(front) as client:
            send_somehow(client, "well", LINE, draw)
        time.sleep(0.2)
        before = daemon.fd_count()
        for turn in range(300):
            header = draw.choice([LINE, v2(f"192.0.2.{turn % 250}")])
            how = draw.choice(["well", "cut", "wrong", "reset", "silent"])
            with net.connect(front) as client:
                send_somehow(client, how, header, draw)
        t.eventually(lambda: daemon.fd_count() <= before, "all descriptors are closed", within=10)


@test()
def hashed(t):
    """balance = source_hash goes by the client of the header"""
    front, backs = t.address(), [t.address() for _ in range(4)]
    servers = "\n".join(f"server.s{i} = {back}" for i, back in enumerate(backs))
    config = f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n{ACCEPT}\n" \
        f"[upstream back]\nbalance = source_hash\n{servers}\n"
    with contextlib.ExitStack() as stack:
        counted = [stack.enter_context(Counted(back)) for back in backs]
        stack.enter_context(t.daemon(config))

        def visit(source):
            before = [server.total for server in counted]
            with net.connect(front) as client:
                client.sendall(v2(source))
                net.exchange(client, b"x")
            return [server.total - was for server, was in zip(counted, before)].index(1)

        places = {n: visit(f"192.0.2.{n}") for n in range(20)}
        check(len(set(places.values())) > 1, f"all went to one server: {places}")
        check_equal({n: visit(f"192.0.2.{n}") for n in range(20)}, places, "where they go again")


@test()
def first_byte(t):
    """first_byte_timeout counts from the header on, which is no byte of the client's"""
    front = t.address()
    with t.daemon(echo(front, f"{ACCEPT}\nfirst_byte_timeout = 700ms")):
        with net.connect(front) as client:
            time.sleep(0.5)
            client.sendall(LINE)
            sent = time.monotonic()
            check_equal(net.ending(client), "fin", "the end")
            check(time.monotonic() - sent >= 0.65, "it came too early")


@test()
def through_two(t):
    """a client is known behind two of us, with its first address and everything it sent"""
    outer, inner, back = t.address(), t.address(), t.address()
    config = f"""
[listen outer]
address = {outer}
service = proxy
upstream = inner
[upstream inner]
server.a = {inner}
send_proxy = v2
send_proxy_tlvs = crc32c, unique-id
{proxy(inner, back, ACCEPT, "send_proxy = v1")}
"""
    content = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(1000))
    with net.listen(back) as listener, t.daemon(config):
        with net.connect(outer) as client:
            client.sendall(content)
            client.shutdown(socket.SHUT_WR)
            with net.accept(listener) as server:
                check_equal(read_line(server), tcp4(client, outer), "the header")
                check(net.read_to_end(server) == content, "the bytes changed")
