"""route conditions: address, version of TLS and first bytes choose the upstream, or refuse, as soon as they decide."""

import contextlib
import signal
import socket
import ssl
import threading

from support import net
from support.case import check, check_equal, test
from test_route import certificate, config, hello, lines_of, listeners, openssl_client, openssl_server


def from_address(front, source):
    """A client with that address of the loopback network."""
    family, where = net.parse(front)
    s = socket.socket(family)
    s.settimeout(net.LIMIT_S)
    s.bind((source, 0))
    s.connect(where)
    return s


def passed_on(client, listener, *parts):
    """The parts reach this server, whole and in order, and its answer the client."""
    for part in parts:
        client.sendall(part)
    whole = b"".join(parts)
    with net.accept(listener) as server:
        check_equal(net.read_exactly(server, len(whole)), whole, "what the server got")
        server.sendall(b"answer")
        check_equal(net.read_exactly(client, 6), b"answer", "the answer")


@test(needs=["openssl"])
def ssh_and_https_on_one_port(t):
    """SSH and HTTPS share a port: each client reaches its server, others the upstream of the listener"""
    front, pem, web = t.address(), certificate(t), t.address()
    with listeners(t, 2) as ((ssh, other), sockets), openssl_server(t, pem, web), \
            t.daemon(config(front, 'route.ssh = first:"SSH-" -> ssh\nroute.web = sni:a.example -> web\n'
                                   "upstream = other", {"ssh": ssh, "web": web, "other": other})):
        check_equal(openssl_client(front, "-servername", "a.example"), b"olleh\n", "the answer over TLS")
        with net.connect(front) as client:
            passed_on(client, sockets[0], b"SSH-2.0-OpenSSH_9.2\r\n")
        with net.connect(front) as client:
            passed_on(client, sockets[0], *[bytes([byte]) for byte in b"SSH-2.0-slow\r\n"])
        with net.connect(front) as client:
            passed_on(client, sockets[1], b"SSL")
        with net.connect(front) as client:
            passed_on(client, sockets[1], hello("b.example"))


@test()
def slow_and_hostile_clients(t):
    """one byte at a time, a hello in pieces, 64 KiB of it: bounded as ever, beside routes for plain clients"""
    front, hasty = t.address(), t.address()
    routes = 'route.plain = first:"HELLO" tls:no -> a\nroute.named = sni:b.example -> b\nclient_hello_timeout = '
    with listeners(t, 2) as (addresses, sockets):
        more = f"[listen hasty]\naddress = {hasty}\nservice = proxy\n{routes}1s\n"
        with t.daemon(config(front, routes + "1h", dict(zip("ab", addresses))) + more) as daemon:
            first = hello("b.example")
            with net.connect(front) as client:
                passed_on(client, sockets[0], *[bytes([byte]) for byte in b"HELLO, says a slow one"])
            with net.connect(front) as client:
                passed_on(client, sockets[1], *[first[i:i + 7] for i in range(0, len(first), 7)])
            with net.connect(front) as client:
                passed_on(client, sockets[1], hello("b.example", fill=65536))
            check_equal(net.sent_away(net.connect, front, says=hello("b.example", fill=65537)), "reset",
                        "the end of a hello that is too long")
            check_equal(net.sent_away(net.connect, front, says=b"HELP"), "reset", "the end of a client without a route")
            for begun in (b"HELL", first[:-1]):
                check_equal(net.sent_away(net.connect, hasty, says=begun), "reset", "the end of a late client")
            t.eventually(lambda: daemon.counts("listen hasty").get("idle") == 2, "late ones are counted")
            t.eventually(lambda: daemon.counts("listen front").get("no_route") == 1, "and the one without a route")
            check(daemon.log_lines("sent too few bytes to choose a route in time"), "the log says why")


@test(each={"header": [False, True]})
def by_address(t, header):
    """src: chooses by the address of the client, before it sends a byte; with PROXY headers ({header}), by theirs"""
    front = t.address()
    routes = "route.lan = src:127.0.0.2 src:192.0.2.0/24 -> lan\nupstream = wan"
    options = "accept_proxy = required\ntrusted_proxies = 127.0.0.0/8" if header else ""

    def client(source, told):
        s = from_address(front, source)
        if header:
            s.sendall(f"PROXY TCP4 {told} 198.51.100.1 56324 443\r\n".encode())
        return s
    with listeners(t, 2) as ((lan, wan), sockets), \
            t.daemon(config(front, routes, {"lan": lan, "wan": wan}, options)):
        for listener, source, told in ((sockets[0], "127.0.0.2", "192.0.2.9"), (sockets[1], "127.0.0.3", "192.0.3.9")):
            with client(source, told) as s, net.accept(listener) as server:
                server.sendall(b"220 first\r\n")
                check_equal(net.read_exactly(s, 11), b"220 first\r\n", "what the server said first")


@test(each=[{"how": "reset", "seen": "reset"}, {"how": "close", "seen": "fin"}])
def refused(t, how, seen):
    """a route that refuses ends its clients as on_deny = {how} says, counts and logs them as denied"""
    front, log = t.address(), t.path("access.log")
    routes = f"""
route.guests = src:127.0.0.9 -> refuse
route.scan = first:"GET " tls:no -> refuse
upstream = back
on_deny = {how}
access_log = {log}
access_log_format = $client $reason $upstream
"""
    with listeners(t, 1) as ((back,), sockets), t.daemon(config(front, routes, {"back": back})) as daemon:
        check_equal(net.sent_away(from_address, front, "127.0.0.9"), seen, "the end of a guest")
        check_equal(net.sent_away(net.connect, front, says=b"GET / HTTP/1.1\r\n"), seen, "the end of a scan")
        with net.connect(front) as client:
            passed_on(client, sockets[0], b"POST")
        t.eventually(lambda: len(lines_of(log)) == 3, "the log is written")
        check_equal(sorted(lines_of(log))[-1].split(" ")[0], "127.0.0.9", "the client in the log")
        check_equal(sum(line.endswith(" limit -") for line in lines_of(log)), 2, "lines of those refused, of no upstream")
        t.eventually(lambda: daemon.log_lines("denied by route.guests"), "the log names the route")
        daemon.send_signal(signal.SIGRTMIN)
        t.eventually(lambda: daemon.log_lines(r"stats listen front .*denied=2"), "they are counted")


@test(needs=["openssl"], each={"where": ["passed on", "ended here"]})
def by_version(t, where):
    """tls: chooses by the version of TLS, which is {where}"""
    front, pem = t.address(), certificate(t)
    servers = {name: t.address() for name in ("old", "new")}
    options, more = "", ""
    if where == "ended here":
        options, more = "tls = t\n", f"[tls t]\ncertificate = {pem}\n"
    routes = f"{options}route.old = tls:1.2 src:127.0.0.0/8 -> old\nroute.new = tls:1.3 -> new"
    with contextlib.ExitStack() as stack:
        if where == "passed on":
            for address in servers.values():
                stack.enter_context(openssl_server(t, pem, address))
        else:
            sockets = {name: stack.enter_context(net.listen(address)) for name, address in servers.items()}
        daemon = stack.enter_context(t.daemon(config(
            front, routes + f"\naccess_log = {t.path('log')}\naccess_log_format = $upstream", servers) + more))
        for version, name in (("-tls1_2", "old"), ("-tls1_3", "new")):
            if where == "passed on":
                check_equal(openssl_client(front, version), b"olleh\n", "the answer")
                continue
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            number = ssl.TLSVersion.TLSv1_2 if name == "old" else ssl.TLSVersion.TLSv1_3
            context.minimum_version = context.maximum_version = number
            with net.connect(front) as plain, context.wrap_socket(plain) as client:
                passed_on(client, sockets[name], b"hello")
        t.eventually(lambda: lines_of(t.path("log")) == ["old", "new"], "the log is written")
        check_equal(daemon.log_lines("no route"), [], "problems")


@test()
def reloaded(t):
    """a reload changes the routes for new clients, and loses none that has sent a part of its first bytes"""
    front = t.address()
    with listeners(t, 1) as (addresses, sockets):
        upstreams = {"a": addresses[0]}
        with t.daemon(config(front, 'route.x = first:"SSH-" -> a', upstreams)) as daemon, \
                net.connect(front) as client:
            client.sendall(b"SS")
            daemon.reload(config(front, 'route.x = first:"SSH-2" -> a', upstreams))
            client.sendall(b"H-2")
            with net.accept(sockets[0]) as server:
                check_equal(net.read_exactly(server, 5), b"SSH-2", "what the server got")
            check_equal(net.sent_away(net.connect, front, says=b"SSH-1"), "reset", "the end of a new client")


@test()
def of_the_manual(t):
    """the routes of the manual page are valid"""
    text = config(t.address(), """
route.shop   = sni:shop.example sni:*.shop.example -> web
route.db     = sni:db.example alpn:postgresql src:10.0.0.0/8 -> postgres
route.ssh    = first:"SSH-" -> ssh
route.old    = tls:1.2 src:192.0.2.0/24 -> old
route.scan   = first:"GET " first:504f5354 -> refuse
route.mail   = after:200ms -> mail
upstream     = web
""", {name: t.address() for name in ("web", "postgres", "ssh", "old", "mail")})
    t.write("manual.ini", text)
    check_equal(t.reactord("-t", "-c", t.path("manual.ini")).code, 0, "exit code")


@test(each={"how": ["fin", "reset"], "options": ["", 'route.x = src:127.0.0.9 -> back', "accept_proxy = optional\ntrusted_proxies = 127.0.0.0/8"]})
def port_probe(t, how, options):
    """connect_on = first_byte: a probe that connects and ends by {how} never reaches a server ({options!r})"""
    front, log = t.address(), t.path("access.log")
    more = f"upstream = back\nconnect_on = first_byte\naccess_log = {log}\naccess_log_format = $tries $reason"
    with listeners(t, 1) as ((back,), sockets), \
            t.daemon(config(front, options, {"back": back}, more)) as daemon:
        for _ in range(10):
            probe = net.connect(front)
            if how == "reset":
                net.reset(probe)
            else:
                probe.close()
        t.eventually(lambda: len(lines_of(log)) == 10, "the probes are logged")
        check_equal(set(lines_of(log)), {f"0 client_{how}"}, "the log")
        check_equal(daemon.counts("upstream back").get("client_fin", 0), 0, "sessions of the upstream")
        with net.connect(front) as client:
            passed_on(client, sockets[0], b"hello")


@test()
def shares(t):
    """shares split clients by address; each stays at its upstream over workers, a reload and another process"""
    front = t.address()
    routes = "route.all = src:all -> a 60%, b 40%\n"
    sources = [f"127.0.3.{i}" for i in range(1, 61)]

    def places():
        found = []
        for source in sources:
            with from_address(front, source) as client:
                found.append(net.read_exactly(client, 1))
        return found
    with listeners(t, 2) as (addresses, sockets), contextlib.ExitStack() as stack:
        for name, listener in zip("ab", sockets):
            thread = threading.Thread(target=greet, args=(listener, name.encode()), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
        text = config(front, routes, dict(zip("ab", addresses)))
        with t.daemon("[worker]\nthreads = 3\n" + text) as daemon:
            first = places()
            check(5 < first.count(b"b") < 55, f"the split: {first.count(b'b')} of 60 at b")
            check_equal(places(), first, "the upstreams of the same clients")
            daemon.reload("[worker]\nthreads = 2\n" + text)
            check_equal(places(), first, "the upstreams after a reload")
        with t.daemon(text):
            check_equal(places(), first, "the upstreams in another process")


def greet(listener, name):
    """A server that says its name to each client."""
    listener.settimeout(None)
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            with client, contextlib.suppress(OSError):
                client.sendall(name)
