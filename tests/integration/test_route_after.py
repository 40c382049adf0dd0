"""route after: a client that says nothing is led to a server that speaks first, beside clients that speak at once."""

import contextlib
import signal
import socket
import time

from support import net, program
from support.case import check, check_equal, test
from support.chain import Chain
from support.proxy_lines import haproxy
from test_route import certificate, config, listeners, openssl_client, openssl_server
from test_route_conditions import passed_on

NEVER = "50m"


@contextlib.contextmanager
def greeter(t, address, line):
    """socat, which says that to each client, and then what the client says."""
    host, port = address.rsplit(":", 1)
    script = t.write(f"greeter-{port}.sh", f"printf '{line}\\r\\n'\nexec cat\n")
    with program.server(t, ["socat", f"TCP-LISTEN:{port},bind={host},reuseaddr,fork,backlog=128", f"EXEC:sh {script}"],
                        int(port)):
        yield


def line_of(s):
    line = b""
    while not line.endswith(b"\r\n"):
        line += net.read_exactly(s, 1)
    return line.decode().strip()


def silent(front):
    """Who greets a client that says nothing; how long that took."""
    began = time.monotonic()
    with net.connect(front) as s:
        line, took = line_of(s), time.monotonic() - began
        s.sendall(b"EHLO a.example\r\n")
        check_equal(line_of(s), "EHLO a.example", "the bytes behind the greeting")
        return line, took


def ended(front):
    """Who greets a client that ends its side at once."""
    with net.connect(front) as s:
        s.shutdown(socket.SHUT_WR)
        return line_of(s)


def spoken(front, first):
    with net.connect(front) as s:
        s.sendall(first)
        return line_of(s)


@test(needs=["haproxy", "socat", "openssl"], each={"by": ["HAProxy", "reactord"]})
def speaks_first(t, by):
    """SMTP, SSH and TLS on one port, by {by}: who says nothing gets the mail server, others what they ask for"""
    front, pem = t.address(), certificate(t)
    mail, ssh, web, other = (t.address() for _ in range(4))
    theirs = f"""
frontend front
    bind {front}
    tcp-request inspect-delay 1s
    acl ssh req.payload(0,4) -m str SSH-
    tcp-request content accept if ssh
    tcp-request content accept if {{ req.ssl_hello_type 1 }}
    tcp-request content accept if WAIT_END
    use_backend ssh if ssh
    use_backend web if {{ req.ssl_sni -i a.example }}
    use_backend other if {{ req.len gt 0 }}
    default_backend mail
""" + "".join(f"backend {name}\n    server s {address}\n"
              for name, address in (("mail", mail), ("ssh", ssh), ("web", web), ("other", other)))
    ours = config(front, 'route.ssh = first:"SSH-" -> ssh\nroute.web = sni:a.example -> web\n'
                  "route.mail = after:1s -> mail\nupstream = other",
                  {"mail": mail, "ssh": ssh, "web": web, "other": other})
    with greeter(t, mail, "220 mail"), greeter(t, ssh, "SSH-2.0-server"), greeter(t, other, "other"), \
            openssl_server(t, pem, web), contextlib.ExitStack() as stack:
        if by == "HAProxy":
            stack.enter_context(haproxy(t, theirs, int(front.rsplit(":", 1)[1])))
        else:
            stack.enter_context(t.daemon(ours))
        line, took = silent(front)
        check_equal(line, "220 mail", "the greeting")
        check(took > 0.9, f"it came after {took:.3f} s")
        check_equal(ended(front), "220 mail", "the greeting of a client that has ended its side")
        # A client that is held up for a second is silent, too.
        t.eventually(lambda: spoken(front, b"SSH-2.0-client\r\n") == "SSH-2.0-server", "SSH is served")
        t.eventually(lambda: spoken(front, b"HELP\r\n") == "other", "what no route asks for is served")
        check_equal(openssl_client(front, "-servername", "a.example"), b"olleh\n", "the answer over TLS")


@test()
def behind_a_header(t):
    """the time begins behind the PROXY header, which tells whose silence counts"""
    front = t.address()
    routes = "route.mail = after:50ms src:192.0.2.0/24 -> mail\nroute.no = after:60ms -> refuse"
    options = "accept_proxy = required\ntrusted_proxies = 127.0.0.0/8\nproxy_header_timeout = 1h"
    with listeners(t, 1) as ((mail,), sockets), t.daemon(config(front, routes, {"mail": mail}, options)) as daemon:
        for source, seen in (("192.0.2.9", b"220"), ("192.0.3.9", "reset")):
            with net.connect(front) as client:
                header = f"PROXY TCP4 {source} 198.51.100.1 56324 25\r\n".encode()
                client.sendall(header[:20])
                t.eventually(lambda: daemon.counts("listen front")["sessions"] == 1, "the session")
                client.sendall(header[20:])
                if seen == "reset":
                    check_equal(net.ending(client), "reset", "the end of a client of another address")
                    continue
                with net.accept(sockets[0]) as server:
                    server.sendall(seen)
                    check_equal(net.read_exactly(client, 3), seen, "the greeting")
            t.eventually(lambda: daemon.counts("listen front")["sessions"] == 0, "the end of the session")
        t.eventually(lambda: daemon.log_lines("denied by route.no"), "the log names the route")


@test()
def reloaded(t):
    """a reload gives its routes to clients that wait, silent or not, without another byte of theirs"""
    front = t.address()
    before = f'route.ssh = first:"SSH-" -> a\nroute.mail = after:{NEVER} -> b\nclient_hello_timeout = 1h'
    with listeners(t, 2) as (addresses, sockets):
        upstreams = dict(zip("ab", addresses))
        with t.daemon(config(front, before, upstreams)) as daemon:
            for says, after in ((b"", before.replace(NEVER, "1ms")), (b"SS", before.replace("SSH-", "SS")),
                                (b"", "upstream = b"), (b"SS", "upstream = a")):
                with net.connect(front) as client:
                    client.sendall(says)
                    t.eventually(lambda: daemon.counts("listen front")["sessions"] == 1, "the session")
                    daemon.reload(config(front, after, upstreams))
                    with net.accept(sockets[0 if says else 1]) as server:
                        server.sendall(b"220")
                        check_equal(net.read_exactly(client, 3), b"220", "the greeting")
                        client.sendall(b"more")
                        check_equal(net.read_exactly(server, len(says) + 4), says + b"more", "the bytes")
                t.eventually(lambda: daemon.counts("listen front")["sessions"] == 0, "the end of the session")
                daemon.reload(config(front, before, upstreams))


@test(each={"how": ["a drain", "an upgrade"]}, timeout=60)
def in_progress(t, how):
    """a client that is silent at the beginning of {how} still gets its greeting"""
    front = t.address()
    with listeners(t, 1) as ((mail,), sockets):
        text = config(front, "route.mail = after:2s -> mail", {"mail": mail})
        with Chain(t, text) as chain:
            with net.connect(front) as client:
                chain.eventually(lambda: chain.statistics("listen front")["sessions"] == 1, "the session")
                if how == "an upgrade":
                    chain.upgrade()
                else:
                    chain.daemon.send_signal(signal.SIGTERM)
                passed_on_greeting(client, sockets[0])
            if how == "an upgrade":
                chain.wait_gone(chain.old[0])
                with net.connect(front) as client:
                    passed_on_greeting(client, sockets[0])
                chain.stop()
            else:
                check_equal(chain.daemon.wait(), 0, "exit code")


def passed_on_greeting(client, listener):
    with net.accept(listener) as server:
        server.sendall(b"220")
        check_equal(net.read_exactly(client, 3), b"220", "the greeting")
        client.sendall(b"EHLO")
        check_equal(net.read_exactly(server, 4), b"EHLO", "the answer")


@test()
def refused_with_its_line(t):
    """what never holds together with after: is refused by -t, with file and line"""
    front = t.address()
    for routes, problem in (
            ('route.x = after:1s first:"a" -> a', "never holds together with first:"),
            ("route.x = after:6s -> a", "client_hello_timeout ends a client"),
            ("route.x = after:1s -> a\nconnect_on = first_byte", "never holds with connect_on = first_byte")):
        t.write("bad.ini", config(front, routes, {"a": t.address()}))
        done = t.reactord("-t", "-c", t.path("bad.ini"))
        check_equal(done.code, 1, "exit code")
        check("bad.ini:4: [listen front] route.x: after: " in done.err and problem in done.err, done.err)
    t.write("good.ini", config(front, "route.x = after:200ms -> a", {"a": t.address()}))
    check("route.x = after:200ms -> a" in t.reactord("--dump-config", "-c", t.path("good.ini")).out, "the dump")


@test()
def others_wait_for_nothing(t):
    """a client that no after: is for, or that speaks, is served at once"""
    front = t.address()
    routes = f'route.mail = after:{NEVER} src:127.0.0.9 -> a\nroute.ssh = first:"SSH-" src:127.0.0.9 -> a\nupstream = b'
    with listeners(t, 2) as (addresses, sockets), t.daemon(config(
            front, routes, dict(zip("ab", addresses)), "client_hello_timeout = 1h")):
        with net.connect(front) as client:
            passed_on_greeting(client, sockets[1])
        for says, listener in ((b"SSH-2", sockets[0]), (b"HELO", sockets[1])):
            with socket.create_connection(net.parse(front)[1], net.LIMIT_S, ("127.0.0.9", 0)) as client:
                passed_on(client, listener, says)
