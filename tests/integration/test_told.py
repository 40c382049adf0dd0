"""told: what is known of a client's TLS is in the access log, and told to servers."""

import collections
import contextlib
import hashlib
import json
import re
import socket
import ssl
import struct

from support import net, program
from support.case import check, check_equal, test
from support.health import Talker
from support.proxy_lines import MARK, haproxy

TLVS = "send_proxy = v2\nsend_proxy_tlvs = ssl, certificate, authority, alpn, unique-id, crc32c"


def certificates(t):
    """A certificate with its key for the server, and one for a client of the name `client`."""
    for name in ("server", "client"):
        program.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-nodes", "-keyout", t.path(f"{name}.key"), "-out", t.path(f"{name}.crt"), "-days", "30",
                     "-subj", f"/CN={name}"])
        with open(t.path(f"{name}.pem"), "w", encoding="ascii") as pem:
            for part in ("crt", "key"):
                with open(t.path(f"{name}.{part}"), encoding="ascii") as source:
                    pem.write(source.read())


def config(t, front, back, options="", upstream_options=TLVS, tls_options=""):
    return f"""
[listen front]
address = {front}
service = proxy
upstream = back
access_log = {t.path("access.log")}
access_log_format = json
{options}
[upstream back]
server.only = {back}
{upstream_options}
{tls_options}
"""


def tls(t, verify="optional"):
    return (f"[tls t]\ncertificate = {t.path('server.crt')}\nkey = {t.path('server.key')}\n"
            f"client_ca = {t.path('client.crt')}\nverify = {verify}\nalpn = h2, postgresql\n")


def client_context(t, with_certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["x", "postgresql"])
    if with_certificate:
        context.load_cert_chain(t.path("client.pem"))
    return context


def read_tlvs(data):
    found = {}
    while data:
        kind, length = struct.unpack("!BH", data[:3])
        found[kind], data = data[3:3 + length], data[3 + length:]
    return found


def read_header(s):
    """The TLVs of a header of version 2, and those inside SSL with its flags and result."""
    check_equal(net.read_exactly(s, 12), MARK, "the mark")
    _, family, length = struct.unpack("!BBH", net.read_exactly(s, 4))
    check_equal(family, 0x11, "the family")
    found = read_tlvs(net.read_exactly(s, length)[12:])
    value = found.get(0x20)
    return found, (value[0], int.from_bytes(value[1:5], "big"), read_tlvs(value[5:])) if value else None


def log_records(t, count):
    def records():
        with contextlib.suppress(FileNotFoundError), open(t.path("access.log"), encoding="utf-8") as f:
            return [json.loads(line) for line in f.read().splitlines()]
        return []
    t.eventually(lambda: len(records()) >= count, f"{count} lines in the log")
    return records()


@test(each={"certificate": ["without", "with"]})
def to_servers(t, certificate):
    """a client {certificate} a certificate is told to the server, and its TLS is in the log"""
    certificates(t)
    front, back = t.address(), t.address()
    host, port = front.rsplit(":", 1)
    with net.listen(back) as listener, t.daemon(config(t, front, back, "tls = t", tls_options=tls(t))):
        raw = socket.create_connection((host, int(port)), 20)
        with client_context(t, certificate == "with").wrap_socket(raw, server_hostname="A.example") as client:
            client.sendall(b"hello")
            with net.accept(listener) as server:
                found, (flags, verify, inner) = read_header(server)
                check_equal(net.read_exactly(server, 5), b"hello", "what follows")
            version, cipher = client.version(), client.cipher()[0]
        check_equal((found[1], found[2], len(found[5])), (b"postgresql", b"a.example", 32), "ALPN, AUTHORITY, ID")
        check_equal((inner[0x21].decode(), inner[0x23].decode()), (version, cipher), "version and cipher")
        record, = log_records(t, 1)
        check_equal([record[name] for name in ("tls_version", "tls_cipher", "sni", "alpn", "tls_resumed", "tls_alert")],
                    [version, cipher, "a.example", "postgresql", "no", None], "the log")
        check(record["ja4"].startswith("t13d") and record["tls_handshake_time"] > 0, f"the log: {record}")
        if certificate == "with":
            with open(t.path("client.crt"), encoding="ascii") as f:
                der = ssl.PEM_cert_to_DER_cert(f.read())
            check_equal((flags, verify, inner[0x22], inner[0x28]), (7, 0, b"client", der), "the certificate")
            check_equal((record["tls_client_name"], record["tls_client_fingerprint"]),
                        ("client", hashlib.sha256(der).hexdigest()), "the client in the log")
        else:
            check_equal((flags, verify != 0, 0x22 in inner), (1, True, False), "no certificate")


@test()
def routes(t):
    """on a listener with TLS the protocol that was negotiated chooses the route, else the name"""
    certificates(t)
    front, back, other = t.address(), t.address(), t.address()
    host, port = front.rsplit(":", 1)
    options = "tls = t\nroute.sql = alpn:postgresql -> other\nroute.x = alpn:x -> other"
    more = f"{tls(t)}[upstream other]\nserver.only = {other}\n{TLVS}"
    text = config(t, front, back, options, tls_options=more).replace("\nupstream = back", "\nroute.a = sni:a.example -> back", 1)
    with net.listen(back) as by_name, net.listen(other) as by_protocol, t.daemon(text) as daemon:
        for name, protocols, listener in (("b.example", ["x", "postgresql"], by_protocol),
                                          ("a.example", ["x", "h2"], by_name), ("b.example", ["x", "h2"], None)):
            context = client_context(t, False)
            context.set_alpn_protocols(protocols)
            raw = socket.create_connection((host, int(port)), 20)
            refused = contextlib.suppress(ConnectionError, ssl.SSLError) if not listener else contextlib.nullcontext()
            with refused, context.wrap_socket(raw, server_hostname=name) as client:
                if listener:
                    with net.accept(listener) as server:
                        check_equal(read_header(server)[0][2], name.encode(), "AUTHORITY")
                else:
                    check_equal(client.recv(1), b"", "without a route")
        check(daemon.log_lines("for b.example: no route has the server name and protocol"), "the log says why")
        with net.connect(front) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            check_equal(net.ending(client), "fin", "the end of a client without TLS")
        check_equal([record["reason"] for record in log_records(t, 4)][2:], ["no_route", "tls_handshake"], "the reasons")


@test()
def failures(t):
    """a handshake that fails is logged with its alert, and what the ClientHello said"""
    certificates(t)
    front, back = t.address(), t.address()
    host, port = front.rsplit(":", 1)
    with net.listen(back), t.daemon(config(t, front, back, "tls = t", tls_options=tls(t, "required"))):
        raw = socket.create_connection((host, int(port)), 20)
        with contextlib.suppress(ssl.SSLError, ConnectionError), \
                client_context(t, False).wrap_socket(raw, server_hostname="a.example") as client:
            client.recv(1)
        record, = log_records(t, 1)
        check_equal([record[name] for name in ("reason", "sni", "tls_alert", "tls_version")],
                    ["tls_handshake", "a.example", "certificate required", None], "the log")
        check(re.match(r"t13d\d{4}(00|\w\w)_", record["ja4"]), f"the log: {record}")


@test()
def passed_on(t):
    """what the PROXY header of a proxy in front says of TLS is logged and passed on, byte for byte"""
    front, back = t.address(), t.address()
    inner = b"\x07\0\0\0\0" + b"\x21\0\7TLSv1.2" + b"\x22\0\5alice" + b"\x23\0\6AES128" + b"\x24\0\3RSA"
    tlvs = b"".join(struct.pack("!BH", kind, len(value)) + value
                    for kind, value in ((1, b"h2"), (2, b"b.example"), (0x20, inner)))
    body = socket.inet_aton("192.0.2.1") + socket.inet_aton("198.51.100.1") + struct.pack("!HH", 7, 443) + tlvs
    header = MARK + b"\x21\x11" + struct.pack("!H", len(body)) + body
    options = "accept_proxy = required\ntrusted_proxies = 127.0.0.0/8"
    with net.listen(back) as listener, t.daemon(config(t, front, back, options)):
        for cut in (len(header), 20):
            with net.connect(front) as client:
                client.sendall(header[:cut])
                client.sendall(header[cut:] + b"hello")
                with net.accept(listener) as server:
                    found, _ = read_header(server)
                    check_equal(net.read_exactly(server, 5), b"hello", "what follows")
            check_equal((found[1], found[2], found[0x20]), (b"h2", b"b.example", inner), "what was passed on")
        for record in log_records(t, 2):
            check_equal([record[name] for name in ("sni", "alpn", "tls_version", "tls_cipher", "tls_client_name")],
                        ["b.example", "h2", "TLSv1.2", "AES128", "alice"], "the log")


@test()
def names_of_the_header(t):
    """a name in the header that has a NUL, or is longer than names are, is no name in the log: it is not cut to another"""
    front, back = t.address(), t.address()
    options = "accept_proxy = required\ntrusted_proxies = 127.0.0.0/8"
    with net.listen(back) as listener, t.daemon(config(t, front, back, options)):
        for name, host in ((b"admin\0.evil", b"a.example\0.evil"), (b"admin" * 60, b"a" * 254), ("Jürgen".encode(), b"a.example")):
            inner = b"\x07\0\0\0\0" + struct.pack("!BH", 0x22, len(name)) + name
            tlvs = b"".join(struct.pack("!BH", kind, len(value)) + value for kind, value in ((2, host), (0x20, inner)))
            body = socket.inet_aton("192.0.2.1") + socket.inet_aton("198.51.100.1") + struct.pack("!HH", 7, 443) + tlvs
            with net.connect(front) as client:
                client.sendall(MARK + b"\x21\x11" + struct.pack("!H", len(body)) + body + b"hello")
                with net.accept(listener) as server:
                    found, _ = read_header(server)
            check_equal(found[0x20], inner, "what was passed on")
        # In the order in which the workers saw the ends.
        check_equal(collections.Counter((record["tls_client_name"], record["sni"]) for record in log_records(t, 3)),
                    {(None, None): 2, ("Jürgen", "a.example"): 1}, "the log")


@test(needs=["haproxy", "openssl"], plain_only=True)
def by_haproxy(t):
    """HAProxy in front that ends TLS, and HAProxy behind: names go from the one to the other by us"""
    certificates(t)
    front, port, behind = t.address(), t.port(), t.port()
    options = "accept_proxy = required\ntrusted_proxies = 127.0.0.0/8"
    text = f"""
frontend edge
    bind 127.0.0.1:{port} ssl crt {t.path("server.pem")} ca-file {t.path("client.crt")} verify optional
    default_backend us
backend us
    server s {front} send-proxy-v2 proxy-v2-options ssl,cert-cn,ssl-cipher,authority
frontend f
    mode http
    bind 127.0.0.1:{behind} accept-proxy
    http-request return status 200 content-type text/plain lf-string %[fc_pp_authority]
"""
    with t.daemon(config(t, front, f"127.0.0.1:{behind}", options)), haproxy(t, text, port):
        answer = program.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-quiet", "-servername",
                              "c.example", "-cert", t.path("client.crt"), "-key", t.path("client.key")],
                             b"GET / HTTP/1.0\r\n\r\n")
        check(answer.endswith(b"c.example"), f"HAProxy behind us answered {answer}")
        record, = log_records(t, 1)
        check_equal([record[name] for name in ("sni", "tls_client_name", "tls_version")],
                    ["c.example", "client", "TLSv1.3"], "what HAProxy in front told")


def variables_of_tls(t):
    """The names in the manual."""
    manual = (t.options.source_dir / "man/reactord.ini.5").read_text(encoding="utf-8")
    items = " , ".join(re.findall(r"^\.It Li (.*)", manual.partition("\n.It Li unique_id\n")[2], re.MULTILINE)).split(" , ")
    return {name for name in items if name.startswith("tls_") or name in ("sni", "alpn", "ja4")}


REQUEST = b"GET / HTTP/1.0\r\n\r\n"


def s_client(address, *options, code=0):
    """A client that is answered, or gets an alert."""
    program.run(["openssl", "s_client", "-quiet", "-connect", address, "-servername", "A.example", *options], REQUEST, code=code)


def wanted(fingerprint=None, **values):
    """The variables of a session: those that are told, and none of the others."""
    names = ("tls_section", "tls_version", "tls_cipher", "tls_group", "tls_resumed", "tls_client_name", "tls_alert", "sni",
             "alpn")
    return {name: values.get(name) for name in names} | {"tls_client_fingerprint": fingerprint}


@test(needs=["openssl"])
def all_variables(t):
    """the log's variables tell of the client's TLS, whether its server has TLS or not, and of none if only the server has it"""
    certificates(t)
    front, backend, plain, both, port = t.address(), t.address(), t.address(), t.address(), t.port()
    log = f"access_log = {t.path('access.log')}\naccess_log_format = json\nservice = proxy\n"
    text = (config(t, front, backend, "tls = t", "", tls(t))
            + f"[listen plain]\naddress = {plain}\n{log}upstream = secured\n"
            f"[listen both]\naddress = {both}\n{log}upstream = secured\ntls = t\n"
            f"[upstream secured]\nserver.s = 127.0.0.1:{port}\ntls = s\ntls_name = server\n"
            f"[tls s]\nca = {t.path('server.crt')}\n")
    text = text.replace("format = json", f"format = json:listener,connect_time,{','.join(sorted(variables_of_tls(t)))}")
    files = {name: t.path(f"{name}.crt") for name in ("client", "server")}
    as_client = ("-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256", "-groups", "X25519", "-alpn", "x,postgresql",
                 "-cert", files["client"], "-key", t.path("client.key"))
    s_server = ["openssl", "s_server", "-www", "-accept", port, "-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384",
                "-cert", files["server"], "-key", t.path("server.key")]
    with open(files["client"], encoding="ascii") as f:
        fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(f.read())).hexdigest()
    with program.server(t, s_server, port), Talker("plain", backend, (b"hello", "ends")), t.daemon(text):
        with net.connect(plain) as client:
            client.sendall(REQUEST)
            check(b"TLS_AES_256" in net.read_to_end(client), "no answer in TLS by s_server")
        log_records(t, 1)
        s_client(front, *as_client, "-sess_out", t.path("session"))
        log_records(t, 2)
        s_client(both, *as_client, "-sess_in", t.path("session"))
        log_records(t, 3)
        s_client(both, "-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384", "-groups", "P-256")
        log_records(t, 4)
        s_client(both, "-alpn", "x", code=1)
        records = log_records(t, 5)
    told = {"tls_version": "TLSv1.3", "tls_cipher": "TLS_AES_128_GCM_SHA256", "tls_group": "x25519", "sni": "a.example",
            "alpn": "postgresql", "tls_client_name": "client", "tls_section": "t"}
    of_1_2 = {"tls_section": "t", "tls_version": "TLSv1.2", "tls_cipher": "ECDHE-ECDSA-AES256-GCM-SHA384", "tls_group": "secp256r1",
              "sni": "a.example", "tls_resumed": "no"}
    for record, values in zip(records, (
            wanted(), wanted(fingerprint, **told, tls_resumed="no"), wanted(fingerprint, **told, tls_resumed="yes"),
            wanted(**of_1_2), wanted(sni="a.example", tls_section="t", tls_alert="no application protocol")), strict=True):
        check_equal(set(values) | {"ja4", "tls_handshake_time"}, variables_of_tls(t), "the variables of the manual")
        check_equal({name: record[name] for name in values}, values, f"the log of {record['listener']}")
        if record["listener"] == "plain":
            check_equal((record["ja4"], record["tls_handshake_time"]), (None, None), "the log without TLS")
            check(record["connect_time"] > 0, "the handshake with the server is part of the connect")
        else:
            check(re.fullmatch(r"t1[23]d[0-9]{4}(xx|00)_[0-9a-f]{12}_[0-9a-f]{12}", record["ja4"]), record["ja4"])
            check(record["tls_handshake_time"] > 0, "the handshake's time")
