"""proxyproto: headers for servers, from checks too."""

import re
import socket
import time

from support import net
from support.case import check, check_equal, test
from support.health import Talker
from support.proxy_lines import ACCEPT, LINE, MARK, haproxy, nginx_stream, read_line
from test_proxy import proxy

THEME = "proxyproto"

# ---- who is sent them ----

ANSWER = "%[src] %[src_port] %[dst] %[dst_port] %[fc_pp_unique_id]"


@test(needs=["haproxy"], each={"options": ["v1", "v2", "v2\nsend_proxy_tlvs = crc32c, unique-id"]},
      plain_only=True)
def to_haproxy(t, options):
    """a haproxy with accept-proxy sees the client of send_proxy = {options}"""
    front, port = t.address(), t.port()
    listen = f"""
frontend f
    mode http
    bind 127.0.0.1:{port} accept-proxy
    http-request return status 200 content-type text/plain lf-string "{ANSWER}"
"""
    with t.daemon(proxy(front, f"127.0.0.1:{port}", "", f"send_proxy = {options}")), \
            haproxy(t, listen, port):
        seen = []
        for _ in range(2):
            with net.connect(front) as client:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                answer = net.read_to_end(client).partition(b"\r\n\r\n")[2].decode()
                source, source_port = client.getsockname()
            host, to_port = front.rsplit(":", 1)
            check(answer.startswith(f"{source} {source_port} {host} {to_port}"), answer)
            seen.append(answer.split()[4:])
    if "unique-id" in options:
        check(all(len(ids) == 1 and re.fullmatch("[0-9a-f]{32}", ids[0]) for ids in seen), seen)
        check(seen[0] != seen[1], f"two sessions have one ID: {seen}")


@test(needs=["nginx"], each={"version": ["v1", "v2"]})
def to_nginx(t, version):
    """an nginx that listens with proxy_protocol sees the client of send_proxy = {version}"""
    front, port = t.address(), t.port()
    seen = "$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr " \
        "$proxy_protocol_server_port"
    stream = f'server {{ listen 127.0.0.1:{port} proxy_protocol; return "{seen}"; }}'
    with t.daemon(proxy(front, f"127.0.0.1:{port}", "", f"send_proxy = {version}")), \
            nginx_stream(t, stream, port):
        with net.connect(front) as client:
            words = net.read_to_end(client).decode().split()
            host, to_port = front.rsplit(":", 1)
            check_equal(words, [client.getsockname()[0], str(client.getsockname()[1]), host,
                                to_port], "what nginx saw")


@test(needs=["haproxy"], each={"version": ["v1", "v2"]}, plain_only=True)
def checks_haproxy(t, version):
    """health checks of a server that expects a header of {version} begin with one"""
    front, port = t.address(), t.port()
    listen = f"""
frontend f
    mode http
    bind 127.0.0.1:{port} accept-proxy
    http-request return status 200 content-type text/plain lf-string "%[src]"
"""
    options = f"send_proxy = {version}\ncheck = tcp\ncheck_send = GET / HTTP/1.0\\r\\n\\r\\n\n" \
        "check_expect = 127.0.0.1\ncheck_interval = 50ms\nfall = 1\nrise = 1"
    with haproxy(t, listen, port):
        with t.daemon(proxy(front, f"127.0.0.1:{port}", "", options)) as daemon:
            time.sleep(1)  # for some checks
            check(not daemon.log_lines("server only.* (is )?down"), "a check failed")
            with net.connect(front) as client:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                check(b"127.0.0.1" in net.read_to_end(client), "no answer")


@test(each=[{"version": "v1", "header": b"PROXY UNKNOWN\r\n"},
            {"version": "v2", "header": MARK + b"\x20\0\0\0"}])
def what_a_check_sends(t, version, header):
    """a check with send_proxy = {version} sends a header for nobody, and its own bytes at once"""
    back = t.address()
    options = f"send_proxy = {version}\ncheck = tcp\ncheck_send = ping\ncheck_expect = pong\n" \
        "check_interval = 50ms"
    with Talker("s", back, b"pong") as talker, t.daemon(proxy(t.address(), back, "", options)):
        t.eventually(lambda: talker.got[header + b"ping"] > 2, "checks come")
        check_equal(set(talker.got), {header + b"ping"}, "what they say")


@test(each=[{"version": "v1", "header": b"PROXY UNKNOWN\r\n"},
            {"version": "v2", "header": MARK + b"\x20\0\0\0"}])
def unix_client(t, version, header):
    """the client of a unix socket stands for itself in a header of {version}"""
    front, back = t.path("front.sock"), t.address()
    with net.listen(back) as listener, \
            t.daemon(proxy(front, back, "", f"send_proxy = {version}")):
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"hello")
            check_equal(net.read_exactly(server, len(header) + 5), header + b"hello", "all of it")


@test(each=[{"client": "[::1]", "words": "TCP6 ::1 ::1"},
            {"client": "127.0.0.1", "words": "TCP4 127.0.0.1 127.0.0.1"}])
def server_first(t, client, words):
    """the header of a client at {client} reaches the server without a byte from the client"""
    front, back = f"{client}:{t.port()}", t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, "", "send_proxy = v1")):
        with net.proxied(front, listener) as (client_end, server):
            check(read_line(server).startswith(b"PROXY " + words.encode()), "the header")
            server.sendall(b"220 ready\r\n")
            check_equal(net.read_exactly(client_end, 11), b"220 ready\r\n", "the greeting")


@test(each={"before": ["is given to a client", "is ended by the server"]})
def spare(t, before):
    """a spare connection that {before} is no reason for a second header, nor for none"""
    front, back = t.address(), t.address()
    config = proxy(front, back, ACCEPT, "send_proxy = v1\nspare = 1") + "[worker]\nthreads = 1\n"
    with net.listen(back) as listener, t.daemon(config):
        kept = net.accept(listener)
        if before == "is ended by the server":
            kept.close()
            kept = net.accept(listener)
        with kept, net.connect(front) as client:
            client.sendall(LINE + b"hello")
            check_equal(net.read_exactly(kept, len(LINE) + 5), LINE + b"hello", "all of it")
            kept.sendall(b"answer")
            check_equal(net.read_exactly(client, 6), b"answer", "the answer")
            client.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(kept), b"", "behind it")


@test()
def mixed_families(t):
    """a client that a header names by IPv4 is mapped for a server if it came to an IPv6 address"""
    front, back = t.address(), t.address()
    header = b"PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n"
    with net.listen(back) as listener, t.daemon(proxy(front, back, ACCEPT, "send_proxy = v1")):
        with net.connect(front) as client:
            client.sendall(header)
            with net.accept(listener) as server:
                check_equal(read_line(server), header, "the header")
