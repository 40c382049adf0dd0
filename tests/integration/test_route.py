"""route: a ClientHello chooses the upstream, however it comes, and passes unread with all that follows."""

import contextlib
import socket
import ssl
import struct
import time

from support import descriptors, net, program
from support.case import check, check_equal, test
from support.proxy_lines import haproxy, nginx_stream

MIB = 1024 * 1024


def certificate(t):
    """Self-signed, for all names of these tests; certificate and key in one file."""
    path = t.path("tls.pem")
    program.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                 "-nodes", "-keyout", path, "-out", t.path("cert.pem"), "-days", "30", "-subj",
                 "/CN=a.example"])
    with open(path, "a", encoding="ascii") as pem, open(t.path("cert.pem"), encoding="ascii") as cert:
        pem.write(cert.read())
    return path


def config(front, routes, upstreams, options=""):
    """`routes`: lines of [listen front]; `upstreams`: address by name."""
    return (f"[listen front]\naddress = {front}\nservice = proxy\n{routes}\n{options}\n" +
            "".join(f"[upstream {name}]\nserver.only = {address}\n"
                    for name, address in upstreams.items()))


@contextlib.contextmanager
def openssl_server(t, pem, address, *options):
    """It answers each line with its reverse, and ends at CLOSE."""
    port = int(address.rsplit(":", 1)[1])
    with program.server(t, ["openssl", "s_server", "-accept", address, "-cert", pem, "-key", pem,
                            "-quiet", "-rev", *options], port):
        yield


def openssl_client(front, *options, code=0):
    """What s_client gets for a line; its exit code is 1 if the handshake fails."""
    return program.run(["openssl", "s_client", "-connect", front, "-quiet", *options],
                       b"hello\nCLOSE\n", code=code)


def hello(name, protocols=(), fill=0):
    """The first bytes of a real client; `fill`: as many."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    sent, received = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(received, sent, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    record = sent.read()
    return padded(record, fill) if fill else record


def padded(record, size):
    """The hello with an extension of GREASE, in as many records as it needs, `size` bytes in all."""
    body = record[9:]
    at = 34 + 1 + body[34]
    at += 2 + int.from_bytes(body[at:at + 2], "big")
    at += 1 + body[at]
    records = -(-(size - 5) // (16384 + 5))
    extensions = body[at + 2:]
    fill = size - 5 * records - 4 - at - 2 - len(extensions) - 4
    extensions += struct.pack("!HH", 0xfafa, fill) + bytes(fill)
    body = body[:at] + struct.pack("!H", len(extensions)) + extensions
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return b"".join(b"\x16\3\1" + struct.pack("!H", len(part)) + part
                    for part in (message[i:i + 16384] for i in range(0, len(message), 16384)))


@contextlib.contextmanager
def listeners(t, count):
    with contextlib.ExitStack() as stack:
        addresses = [t.address() for _ in range(count)]
        yield addresses, [stack.enter_context(net.listen(address)) for address in addresses]


@test(needs=["openssl"])
def by_name_and_protocol(t):
    """openssl gets the server of its name and protocol: exact, wildcard, without a name, or none"""
    front, pem = t.address(), certificate(t)
    servers = {name: t.address() for name in ("exact", "wild", "sql", "other")}
    routes = """
route.exact = sni:a.example -> exact
route.wild  = sni:*.example -> wild
route.sql   = alpn:postgresql -> sql
access_log  = LOG
access_log_format = $upstream $sni $alpn $ja4 $reason"""
    log = t.path("access.log")
    with contextlib.ExitStack() as stack:
        for name, address in servers.items():
            stack.enter_context(openssl_server(t, pem, address, "-alpn", "postgresql"))
        daemon = stack.enter_context(t.daemon(config(front, routes.replace("LOG", log), servers)))
        for options in (["-servername", "A.example"], ["-servername", "b.example", "-tls1_2"],
                        ["-noservername", "-alpn", "x,postgresql"]):
            check_equal(openssl_client(front, *options), b"olleh\n", f"the answer to {options}")
        check_equal(openssl_client(front, "-servername", "x.b.example", code=1), b"", "without a route")
        check_equal(openssl_client(front, "-noservername", code=1), b"", "without a name")
        t.eventually(lambda: len(lines_of(log)) == 5, "the log is written")
        found = [line.split() for line in lines_of(log)]
        check_equal([(f[0], f[1], f[2]) for f in found],
                    [("exact", "a.example", "-"), ("wild", "b.example", "-"),
                     ("sql", "-", "x,postgresql"), ("-", "x.b.example", "-"), ("-", "-", "-")], "the log")
        check(found[0][3].startswith("t13d") and found[1][3].startswith("t12d") and
              found[2][3].startswith("t13i"), f"fingerprints: {found}")
        check_equal([f[4] for f in found[3:]], ["no_route"] * 2, "reasons")
        check(daemon.log_lines("for x.b.example: no route has the server name"), "the log says why")


def lines_of(path):
    with contextlib.suppress(FileNotFoundError), open(path, encoding="ascii") as f:
        return f.read().splitlines()
    return []


ODD_NAMES = (b"", b".", b"a..b", b".a.example", b"a.example..", b"a b", b"a\0.example", b"*.example", b"[::1]",
             b"b\xc3\xbccher.example")


def renamed(record, name):
    """The hello, whose server name is a.example, with another one."""
    old = b"\0\0" + struct.pack("!HHBH", 14, 12, 0, 9) + b"a.example"
    before, found, after = record.partition(old)
    check(found, "the hello has a server name")
    size = len(name)
    body = before + b"\0\0" + struct.pack("!HHBH", size + 5, size + 3, 0, size) + name + after
    at = 9 + 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at:at + 2], "big")
    at += 1 + body[at]
    body = body[:at] + struct.pack("!H", len(body) - at - 2) + body[at + 2:]
    return body[:3] + struct.pack("!H", len(body) - 5) + body[5:6] + (len(body) - 9).to_bytes(3, "big") + body[9:]


@test(each={"name": ODD_NAMES})
def odd_name(t, name):
    """a client whose server name is {name} gets the default upstream, and without one it is reset"""
    front, strict = t.address(), t.address()
    with listeners(t, 2) as ((named, default), (_, server)):
        routes = "route.a = sni:a.example -> named\nupstream = default"
        more = f"[listen strict]\naddress = {strict}\nservice = proxy\nroute.a = sni:a.example -> named\n"
        with t.daemon(config(front, routes, {"named": named, "default": default}) + more) as daemon:
            record = renamed(hello("a.example"), name)
            with net.connect(front) as client:
                client.sendall(record)
                with net.accept(server) as peer:
                    check_equal(net.read_exactly(peer, len(record)), record, "what the default upstream gets")
            with net.connect(strict) as client:
                client.sendall(record)
                check_equal(net.ending(client), "reset", "the end without a default upstream")
            t.eventually(lambda: daemon.log_lines("sent no host name as server name"), "the log says why")


@test(needs=["nginx", "haproxy", "curl"], plain_only=True)
def to_real_servers(t):
    """curl gets nginx or HAProxy, which end TLS behind us, by name"""
    front, pem = t.address(), certificate(t)
    ports = {"nginx": t.port(), "haproxy": t.port()}
    routes = "route.n = sni:nginx.example -> nginx\nroute.h = sni:haproxy.example -> haproxy"
    stream = (f"server {{ listen 127.0.0.1:{ports['nginx']} ssl; ssl_certificate {pem}; "
              f"ssl_certificate_key {pem}; return 'HTTP/1.0 200 ok\\r\\n\\r\\nnginx'; }}")
    listen = f"""
frontend f
    mode http
    bind 127.0.0.1:{ports['haproxy']} ssl crt {pem}
    http-request return status 200 content-type text/plain string haproxy
"""
    upstreams = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    with nginx_stream(t, stream, ports["nginx"]), haproxy(t, listen, ports["haproxy"]), \
            t.daemon(config(front, routes, upstreams)):
        host, port = front.rsplit(":", 1)
        for name in ports:
            answer = program.run(["curl", "-sk", "--http1.1", "--max-time", "20", "--resolve",
                                  f"{name}.example:{port}:{host}", f"https://{name}.example:{port}/"])
            check_equal(answer, name.encode(), "who answered")


@test()
def splits(t):
    """a hello in two segments anywhere, and in records of any size, is passed on as it came"""
    front = t.address()
    first = hello("b.example", ["h2"])
    with listeners(t, 2) as (addresses, sockets), t.daemon(config(
            front, "route.a = sni:a.example -> a\nroute.b = sni:b.example alpn:h2 -> b",
            dict(zip("ab", addresses)))):
        def pass_on(parts):
            with net.connect(front) as client:
                for part in parts:
                    client.sendall(part)
                client.sendall(b"early")
                with net.accept(sockets[1]) as server:
                    whole = b"".join(parts) + b"early"
                    check_equal(net.read_exactly(server, len(whole)), whole, "what the server got")
                    server.sendall(b"answer")
                    check_equal(net.read_exactly(client, 6), b"answer", "the answer")
        for cut in range(1, len(first), 23):
            pass_on([first[:cut], first[cut:]])
        for size in (1, 2, 3, 100):
            pieces = [first[5:][i:i + size] for i in range(0, len(first) - 5, size)]
            pass_on([b"".join(b"\x16\3\1" + struct.pack("!H", len(p)) + p for p in pieces)])
        pass_on([bytes([byte]) for byte in first])


@test()
def longest(t):
    """a hello of 64 KiB is taken, one byte more is not"""
    front = t.address()
    with listeners(t, 1) as (addresses, sockets), t.daemon(config(
            front, "route.a = sni:a.example -> a", {"a": addresses[0]})) as daemon:
        first = hello("a.example", fill=65536)
        check_equal(len(first), 65536, "bytes")
        with net.connect(front) as client:
            client.sendall(first)
            with net.accept(sockets[0]) as server:
                check(net.read_exactly(server, len(first)) == first, "the bytes changed")
        with net.connect(front) as client:
            client.sendall(hello("a.example", fill=65537))
            check_equal(net.ending(client), "reset", "the end")
        check(daemon.log_lines("sent a ClientHello that is too long; the client is reset"), "the log says why")


@test(each={"what": ["GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\x15\x03\x01\x00\x02\x02\x28"]})
def not_tls(t, what):
    """a client that begins with {what!r} is reset at once"""
    front = t.address()
    with listeners(t, 1) as (addresses, _), t.daemon(config(
            front, "route.a = alpn:h2 -> a\nclient_hello_timeout = 1h", {"a": addresses[0]})) as daemon:
        with net.connect(front) as client:
            client.sendall(what.encode("latin-1"))
            check_equal(net.ending(client), "reset", "the end")
        check(daemon.log_lines("sent no TLS ClientHello; the client is reset"), "the log says why")


@test()
def half_hellos(t):
    """1,000 clients that send half a hello are reset when they are late, and others are served meanwhile"""
    front = t.address()
    first = hello("a.example")
    with listeners(t, 1) as (addresses, sockets), t.daemon(config(
            front, "route.a = sni:a.example -> a\nclient_hello_timeout = 3s", {"a": addresses[0]})) as daemon, \
            contextlib.ExitStack() as stack:
        half = [stack.enter_context(net.connect(front)) for _ in range(1000)]
        for client in half:
            with contextlib.suppress(ConnectionError):  # where connecting all takes longer
                client.sendall(first[:100])
        with net.connect(front) as client:
            client.sendall(first)
            with net.accept(sockets[0]) as server:
                check_equal(net.read_exactly(server, len(first)), first, "what the server got")
        for client in half:
            check_equal(net.ending(client), "reset", "the end")
        check(daemon.log_lines("sent no complete ClientHello in time"), "the log says why")
        t.eventually(lambda: daemon.counts("listen front").get("idle") == 1000, "they are counted")


@test(each={"mode": ["required", "optional"]})
def behind_a_proxy_header(t, mode):
    """the hello comes behind the PROXY header, which is {mode}, in one segment or several"""
    front = t.address()
    header = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"
    first = hello("a.example")
    options = f"accept_proxy = {mode}\ntrusted_proxies = 127.0.0.0/8"
    with listeners(t, 1) as (addresses, sockets), t.daemon(
            config(front, "route.a = sni:a.example -> a", {"a": addresses[0]}, options) +
            "send_proxy = v1\n"):
        whole = header + first
        for cut in (len(whole), 10, len(header), len(header) + 3, len(whole) - 1):
            with net.connect(front) as client:
                client.sendall(whole[:cut])
                time.sleep(0.01)
                client.sendall(whole[cut:])
                with net.accept(sockets[0]) as server:
                    check_equal(net.read_exactly(server, len(whole)), whole, "header and hello")
        if mode == "optional":
            with net.connect(front) as client:
                client.sendall(first)
                with net.accept(sockets[0]) as server:
                    check(net.read_exactly(server, 6).startswith(b"PROXY "), "the header")


@test()
def reloaded(t):
    """a reload changes routes for new connections; those that are open stay where they are"""
    front = t.address()
    first = hello("a.example")
    with listeners(t, 2) as (addresses, sockets):
        upstreams = dict(zip("ab", addresses))
        with t.daemon(config(front, "route.x = sni:a.example -> a", upstreams)) as daemon, \
                net.connect(front) as old:
            old.sendall(first)
            with net.accept(sockets[0]) as server:
                check_equal(net.read_exactly(server, len(first)), first, "what the first got")
                daemon.reload(config(front, "route.x = sni:a.example -> b", upstreams))
                with net.connect(front) as client:
                    client.sendall(first)
                    with net.accept(sockets[1]) as other:
                        check_equal(net.read_exactly(other, len(first)), first, "what the second got")
                old.sendall(b"more")
                check_equal(net.read_exactly(server, 4), b"more", "on the old connection")


def pipes(daemon):
    """How many descriptors of pipes the daemon has."""
    return sum(link.startswith("pipe:") for link in descriptors.of_process(daemon.pid).values())


@test()
def spliced(t):
    """what follows the hello is spliced"""
    front = t.address()
    first = hello("a.example")
    with listeners(t, 1) as (addresses, sockets), t.daemon(config(
            front, "route.a = sni:a.example -> a", {"a": addresses[0]}, "splice = on")) as daemon:
        with net.connect(front) as client:
            client.sendall(first)
            with net.accept(sockets[0]) as server:
                check_equal(net.read_exactly(server, len(first)), first, "what the server got")
                before = pipes(daemon)
                sender = net.Task(net.send_pattern, client, 8 * MIB)
                check_equal(net.receive_sha256(server, 8 * MIB), net.pattern_sha256(8 * MIB), "the hash")
                sender.result()
                check_equal(pipes(daemon), before + 2, "ends of pipes")
