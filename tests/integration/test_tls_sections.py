"""tls_sections: several [tls NAME] sections of one listener, each with its certificates, CA and settings."""

import contextlib
import ssl
import subprocess

from support import net, program, tls
from support.case import check, check_equal, test
from support.chain import Chain
from support.tls_listeners import profile
from test_tls_programs import haproxy, port_of

REFUSED = "refused"
VERSIONS = ["1.2", "1.3"]


class Place:
    """Certificates of three sections: `free` asks clients for none, `staff` and `guests` for one of a CA of their own."""

    def __init__(self, t):
        self.t, self.front, self.log = t, t.address(), t.path("log")
        self.ca, self.staff_ca, self.guests_ca = (tls.Authority(t, name) for name in ("ca", "staff-ca", "guests-ca"))
        self.free = self.ca.issue("a.example", "*.c.example")
        self.staff = self.ca.issue("b.example", "*.b.example")
        self.guests = self.ca.issue("x.c.example")
        self.alice, self.gus = self.staff_ca.issue("alice"), self.guests_ca.issue("gus")
        self.sections = {"free": profile("free", self.free, "alpn = one, both"),
                         "staff": profile("staff", self.staff, f"client_ca = {self.staff_ca.path}\nalpn = two, both"),
                         "guests": profile("guests", self.guests, f"client_ca = {self.guests_ca.path}\nverify = optional\n"
                                                                  "min_version = 1.3")}

    def config(self, names="free, staff, guests", **other):
        """An echo with the sections of these names; `other` replaces some."""
        return ("".join({**self.sections, **other}.values())
                + f"[listen front]\naddress = {self.front}\nservice = echo\ntls = {names}\nhandshake_timeout = 1h\n"
                f"access_log = {self.log}\naccess_log_format = $sni $tls_section $tls_client_name $tls_resumed $reason\n")

    def client(self, version=None, certificate=None, alpn=("both",)):
        return tls.client_context(self.ca.path, version, certificate, alpn)


def answer(address, context, name):
    """(name of the certificate that a client gets, protocol), once it has its bytes back; or REFUSED."""
    try:
        with tls.connect(address, context, name) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            (((_, subject),),) = client.tls.getpeercert()["subject"]
            return subject, client.tls.selected_alpn_protocol()
    except (ssl.SSLError, EOFError, OSError):
        return REFUSED


@test(each={"version": VERSIONS})
def chosen_by_name(t, version):
    """a client of TLS {version} gets the section for the name it asks for: exact, else wildcard, else the first"""
    place = Place(t)
    with t.daemon(place.config()):
        context = place.client(version, place.alice)
        context.check_hostname = False
        for name, subject, protocol in [("a.example", "a.example", "both"), ("y.c.example", "a.example", "both"),
                                        ("b.example", "b.example", "both"), ("y.b.example", "b.example", "both"),
                                        ("z.y.b.example", "a.example", "both"), ("unknown", "a.example", "both"),
                                        (None, "a.example", "both")]:
            check_equal(answer(place.front, context, name), (subject, protocol), f"{name}")
        guest = place.client(version, place.gus)
        wanted = ("x.c.example", None) if version == "1.3" else REFUSED  # min_version
        check_equal(answer(place.front, guest, "x.c.example"), wanted, "x.c.example")
        t.eventually(lambda: len(lines(place)) == 8, "the log")
    told = {line[0]: line[1:3] for line in lines(place)}  # in any order
    check_equal([told[name] for name in ("y.c.example", "b.example", "y.b.example", "unknown", "-")],
                [["free", "-"], ["staff", "alice"], ["staff", "alice"], ["free", "-"], ["free", "-"]], "the log")
    check_equal(told["x.c.example"][0], "guests", "the section of x.c.example")


def lines(place):
    with open(place.log, encoding="ascii") as f:
        return [line.split() for line in f.read().splitlines()]


@test(each={"version": VERSIONS})
def certificates_of_clients(t, version):
    """each section demands clients' certificates of its own CA, in TLS {version}, and chooses among its own protocols"""
    place = Place(t)
    guests = profile("guests", place.guests, f"client_ca = {place.guests_ca.path}\nverify = optional")
    with t.daemon(place.config(guests=guests)):
        for who, served in [(None, ("a.example", "x.c.example")), (place.alice, ("a.example", "b.example")),
                            (place.gus, ("a.example", "x.c.example"))]:
            for name in ("a.example", "b.example", "x.c.example"):
                got = answer(place.front, place.client(version, who), name)
                wanted = (name, None if name == "x.c.example" else "both") if name in served else REFUSED
                check_equal(got, wanted, f"{who} at {name}")
        for name, protocol, wanted in [("a.example", "one", ("a.example", "one")), ("b.example", "one", REFUSED),
                                       ("b.example", "two", ("b.example", "two")), ("a.example", "two", REFUSED)]:
            context = place.client(version, place.alice, alpn=[protocol])
            check_equal(answer(place.front, context, name), wanted, f"{protocol} at {name}")


@test()
def names_of_a_section(t):
    """names = api.c.example: of two sections with one certificate, the second is for that name only"""
    place = Place(t)
    api = profile("api", place.free, f"client_ca = {place.staff_ca.path}\nnames = api.c.example")
    with t.daemon(place.config("free, api", api=api)):
        check_equal(answer(place.front, place.client(alpn=()), "www.c.example"), ("a.example", None), "www")
        check_equal(answer(place.front, place.client(alpn=()), "api.c.example"), REFUSED, "api without a certificate")
        check_equal(answer(place.front, place.client(certificate=place.alice, alpn=()), "api.c.example"),
                    ("a.example", None), "api")


def resume(place, context, name, session):
    """A connection with that session: whether it was resumed, and the session that follows; REFUSED twice."""
    try:
        with context.wrap_socket(net.connect(place.front), server_hostname=name, session=session) as client:
            client.sendall(b"hello")
            check_equal(client.recv(5), b"hello", "the echo")  # behind the tickets
            return client.session_reused, client.session
    except (ssl.SSLError, EOFError, OSError):
        return REFUSED, REFUSED


@test(each={"version": VERSIONS})
def sessions(t, version):
    """a session of TLS {version} is resumed in its own section only; a reload of another section keeps it"""
    place = Place(t)
    closed = profile("staff", place.staff, f"client_ca = {place.guests_ca.path}")
    moved = profile("staff", place.free, f"client_ca = {place.staff_ca.path}")
    with t.daemon(place.config()) as daemon:
        context, alice = place.client(version), place.client(version, place.alice)
        of_a, of_b = resume(place, context, "a.example", None)[1], resume(place, alice, "b.example", None)[1]
        check_equal(resume(place, alice, "b.example", of_b)[0], True, "b.example")
        check_equal(resume(place, context, "b.example", of_a)[0], REFUSED, "a session of a.example at b.example")
        check_equal(resume(place, alice, "a.example", of_b)[0], False, "a session of b.example at a.example")
        daemon.reload(place.config(staff=closed))
        reused, of_a = resume(place, context, "a.example", of_a)
        check_equal(reused, True, "a.example after the reload")
        check_equal(resume(place, alice, "b.example", of_b)[0], REFUSED, "alice, whose CA is no longer that of b.example")
        daemon.reload(place.config("staff, guests", staff=moved))
        check_equal(resume(place, context, "a.example", of_a)[0], REFUSED, "a.example, which demands a certificate now")


@test(each={"version": VERSIONS})
def sessions_after_an_upgrade(t, version):
    """the sessions of each section are resumed after an upgrade, in TLS {version}, and nowhere else"""
    place = Place(t)
    with Chain(t, place.config()) as chain:
        context, alice = place.client(version), place.client(version, place.alice)
        of_a, of_b = resume(place, context, "a.example", None)[1], resume(place, alice, "b.example", None)[1]
        chain.upgrade()
        check_equal(resume(place, context, "b.example", of_a)[0], REFUSED, "a session of a.example at b.example")
        check_equal(resume(place, context, "a.example", of_a)[0], True, "a.example")
        check_equal(resume(place, alice, "b.example", of_b)[0], True, "b.example")
        chain.stop()


@test()
def reload_between_connect_and_hello(t):
    """a reload that ends TLS, or gives a name to another section, changes nothing for a client that has connected"""
    place = Place(t)
    with t.daemon(place.config()) as daemon, contextlib.ExitStack() as stack:
        early = [stack.enter_context(net.connect(place.front)) for _ in range(2)]
        t.eventually(lambda: daemon.counts("listen front ")["sessions_total"] == 2, "the clients are there")
        daemon.reload(place.config("staff, guests"))
        peer = tls.Peer(early[0], place.client(), "a.example").handshake()
        check_equal(net.exchange(peer, b"hello"), b"hello", "the echo")
        context = place.client()
        context.check_hostname = False
        check_equal(answer(place.front, context, "a.example"), REFUSED, "a later client, without a certificate")
        daemon.reload(f"[listen front]\naddress = {place.front}\nservice = echo\n")
        peer = tls.Peer(early[1], place.client(), "a.example").handshake()
        check_equal(net.exchange(peer, b"hello"), b"hello", "the echo")


@test()
def openssl_clients(t):
    """openssl s_client, with and without a certificate, at two names of one listener"""
    place = Place(t)
    with t.daemon(place.config()):
        of_alice = ["-cert", place.alice, "-key", place.alice]
        for name, more, is_served in [("a.example", [], True), ("b.example", of_alice, True), ("b.example", [], False)]:
            served, out = s_client(place, name, *more)
            check_equal(served, is_served, f"{name} {more} is served: {out}")
            check(f"subject=CN={name}" in out.replace(" ", ""), f"{name}: {out}")


@test(needs=["curl", "nginx"])
def curl_clients(t):
    """curl gets a file at a name without a certificate, and at another one only with one of its CA"""
    place = Place(t)
    with program.nginx(t, {"file": b"content"}) as back:
        text = place.config().replace("service = echo", "service = proxy\nupstream = back").replace("alpn = ", "alpn = http/1.1, ")
        with t.daemon(f"{text}[upstream back]\nserver.only = {back}\n"):
            for name, more, is_served in [("a.example", [], True), ("b.example", [], False),
                                          ("b.example", ["--cert", place.alice], True), ("b.example", ["--cert", place.gus], False)]:
                for versions in (["--tls-max", "1.2"], ["--tlsv1.3"]):
                    done = curl(place, name, *more, *versions)
                    check_equal((done.returncode == 0, done.stdout), (is_served, b"content" if is_served else b""),
                                f"{name} {more} {versions}: {done.stderr}")


def s_client(place, name, *options):
    """Whether openssl s_client has its line back, and what it prints until then, or until it ends by itself."""
    command = ["openssl", "s_client", "-connect", place.front, "-CAfile", place.ca.path, "-servername", name, *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
        out = b""
        with contextlib.suppress(BrokenPipeError):
            client.stdin.write(b"hello\n")
            client.stdin.flush()
        while not out.endswith(b"\nhello\n") and (line := client.stdout.readline()):
            out += line
        client.kill()
    return out.endswith(b"\nhello\n"), out.decode()


def curl(place, name, *options):
    port = port_of(place.front)
    return subprocess.run(["curl", "-sS", "--fail", "--cacert", place.ca.path, *options, "--resolve",
                           f"{name}:{port}:127.0.0.1", f"https://{name}:{port}/file"],
                          capture_output=True, timeout=net.LIMIT_S, check=False)


@test(needs=["haproxy"])
def beside_a_crt_list(t):
    """HAProxy's crt-list with ca-file, verify, alpn and filters, and our sections: clients get the same of both"""
    place, port = Place(t), t.port()
    crt_list = t.write("crt-list", f"{place.free} [alpn one,both] a.example *.c.example\n"
                                   f"{place.staff} [ca-file {place.staff_ca.path} verify required alpn two,both]\n"
                                   f"{place.guests} [ca-file {place.guests_ca.path} verify optional ssl-min-ver TLSv1.3]\n"
                                   f"{place.free} [ca-file {place.staff_ca.path} verify required] a.example y.c.example\n")
    again = profile("again", place.free, f"client_ca = {place.staff_ca.path}\nnames = a.example, y.c.example")
    with program.echo_server(t) as back, t.daemon(place.config("free, staff, guests, again", again=again)), \
            haproxy(t, port, back, bind=f"ssl crt-list {crt_list}"):
        for version in VERSIONS:
            for who in (None, place.alice, place.gus):
                for name in ("a.example", "b.example", "y.b.example", "x.c.example", "y.c.example", "z.c.example"):
                    context = place.client(version, who)
                    ours, theirs = (answer(address, context, name) for address in (place.front, f"127.0.0.1:{port}"))
                    check_equal(ours, theirs, f"{version}, {who} at {name}")


@contextlib.contextmanager
def told_to_servers(t, version):
    """A proxy with alpn = client between TLS and TLS; gives a function: what a client of TLS with these protocols agrees on,
    what its server does, and whether that server's session is resumed."""
    front, back = t.address(), t.address()
    ca = tls.Authority(t)
    certificate = ca.issue("a.example")
    server = tls.server_context(certificate, version)
    server.set_alpn_protocols(["x", "h2", "postgresql"])
    text = (profile("front", certificate, "alpn = h2, x, only-here") + profile("back", options=f"ca = {ca.path}\nalpn = client")
            + f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\ntls = front\n"
            f"[upstream back]\nserver.only = {back}\ntls = back\ntls_name = a.example\n")

    def connect(*alpn):
        with tls.connect(front, tls.client_context(ca.path, version, alpn=alpn)) as client, tls.accept(listener, server) as peer:
            client.sendall(b"hello")
            check_equal(net.read_exactly(peer, 5), b"hello", "what the server got")
            peer.sendall(b"HELLO")
            check_equal(net.read_exactly(client, 5), b"HELLO", "what the client got")
            return client.tls.selected_alpn_protocol(), peer.tls.selected_alpn_protocol(), peer.tls.session_reused

    with net.listen(back) as listener, t.daemon(text):
        yield connect


@test(each={"version": VERSIONS})
def protocol_of_the_client(t, version):
    """alpn = client: a server of TLS {version} is offered what was agreed with its client, also when a session is resumed"""
    with told_to_servers(t, version) as connect:
        check_equal(connect("x", "h2"), ("h2", "h2", False), "x or h2")
        check_equal(connect("x"), ("x", "x", True), "x")
        check_equal(connect(), (None, None, True), "none")
        check_equal(connect("only-here"), ("only-here", None, True), "a protocol that the server ignores")
        check_equal(connect("h2"), ("h2", "h2", True), "h2")


@test()
def protocol_in_the_header(t):
    """alpn = client: behind a proxy that has the client's TLS, servers are offered the protocol in its PROXY header"""
    front, back = t.address(), t.address()
    ca = tls.Authority(t)
    server = tls.server_context(ca.issue("a.example"))
    server.set_alpn_protocols(["x", "h2"])
    text = (profile("back", options=f"ca = {ca.path}\nalpn = client")
            + f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\naccept_proxy = required\n"
            "trusted_proxies = 127.0.0.0/8\n"
            f"[upstream back]\nserver.only = {back}\ntls = back\ntls_name = a.example\n")
    addresses = bytes([192, 0, 2, 1, 198, 51, 100, 1, 1, 2, 1, 187])
    with net.listen(back) as listener, t.daemon(text):
        for tlv, wanted in [(b"\x01\x00\x02h2", "h2"), (b"\x01\x00\x01x", "x"), (b"", None)]:
            content = addresses + tlv
            with net.connect(front) as client:
                client.sendall(b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + len(content).to_bytes(2, "big") + content)
                with tls.accept(listener, server) as peer:
                    check_equal(peer.tls.selected_alpn_protocol(), wanted, f"after {tlv!r}")


HTTP2 = """
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/nginx-error.log;
events {{ worker_connections 100; }}
http {{
    access_log off;
    client_body_temp_path {dir}/nginx-body;
    proxy_temp_path {dir}/nginx-proxy;
    fastcgi_temp_path {dir}/nginx-fastcgi;
    uwsgi_temp_path {dir}/nginx-uwsgi;
    scgi_temp_path {dir}/nginx-scgi;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {certificate};
        ssl_certificate_key {certificate};
        location / {{ return 200 "$server_protocol"; }}
    }}
}}
"""


@test(needs=["curl", "nginx"])
def http_2_and_1_1_with_one_upstream(t):
    """alpn = client: curl speaks HTTP/2 or 1.1 with nginx through us, in TLS on both sides"""
    place, port = Place(t), t.port()
    config = t.write("nginx.conf", HTTP2.format(dir=t.dir, port=port, certificate=place.free))
    text = (profile("free", place.free, "alpn = h2, http/1.1") + profile("back", options=f"ca = {place.ca.path}\nalpn = client")
            + f"[listen front]\naddress = {place.front}\nservice = proxy\nupstream = back\ntls = free\n"
            f"[upstream back]\nserver.only = 127.0.0.1:{port}\ntls = back\ntls_name = a.example\n")
    with program.server(t, ["nginx", "-p", t.dir, "-e", t.path("nginx-error.log"), "-c", config], port), t.daemon(text):
        for option, wanted in [("--http2", b"HTTP/2.0"), ("--http1.1", b"HTTP/1.1")]:
            done = curl(place, "a.example", option)
            check_equal((done.returncode, done.stdout), (0, wanted), f"{option}: {done.stderr}")
