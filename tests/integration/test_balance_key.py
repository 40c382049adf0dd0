"""balance: hash_key: what source_hash and maglev know a client by."""

import contextlib
import socket
import ssl
import struct
from collections import Counter

from support import net
from support.case import check, check_equal, test
from support.fleet import Fleet, balanced
from support.proxy_lines import v2
from test_route import certificate, hello

THEME = "balance"
METHODS = ["source_hash", "maglev"]
NAMES = [f"n{i}.example" for i in range(24)]
TRUSTED = "accept_proxy = optional\ntrusted_proxies = 127.0.0.0/8"


def greeted(s):
    """The number of the server whose greeting comes."""
    greeting = b""
    while not greeting.endswith(b"\n"):
        greeting += net.read_exactly(s, 1)
    return int(greeting.rsplit(b".", 1)[1]) - 11


def placed(front, first, host="127.0.0.1", port=0):
    """The server of a client from there whose first bytes are those, one after the other."""
    with contextlib.closing(socket.socket()) as s:
        s.settimeout(net.LIMIT_S)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.bind((host, port))
        s.connect(net.parse(front)[1])
        for part in first:
            s.sendall(part)
        return greeted(s)


def keyed(front, fleet, method, key, more=""):
    text = balanced(front, fleet.lines(), method, hash_key=key)
    return text.replace("upstream = back", f"upstream = back\n{more}", 1)


def spread_well(servers):
    """24 keys on five servers: that all are at one or two is less likely than 1 in 10^8."""
    check(len(set(servers)) >= 3, f"servers of the keys: {Counter(servers)}")


@test(each={"method": METHODS})
def by_server_name(t, method):
    """{method}: with hash_key = sni each name has its server, whoever asks for it and in however many pieces, also
    when no route needs the name; a client without TLS goes by its address"""
    front = t.address()
    route = "route.all = src:127.0.0.0/8 -> back"
    with Fleet(t, 5) as fleet, t.daemon(keyed(front, fleet, method, "sni", route)):
        first = {name: placed(front, [hello(name)]) for name in NAMES}
        spread_well(first.values())
        for host in ("127.0.9.1", "127.0.9.2"):
            again = {name: placed(front, [(h := hello(name.upper()))[:1], h[1:70], h[70:]], host) for name in NAMES}
            check_equal(again, first, f"the servers for {host}")
        hosts = [f"127.0.8.{i}" for i in range(1, 25)]
        plain = {host: placed(front, [b"hello"], host) for host in hosts}
        spread_well(plain.values())
        check_equal({host: placed(front, [b"other"], host) for host in hosts}, plain, "clients without TLS")


@test()
def by_name_of_our_tls(t):
    """with hash_key = sni the name that a client asks for in its TLS with us counts, else that of the PROXY header"""
    front, header, pem = t.address(), t.address(), certificate(t)
    listen = f"[tls front]\ncertificate = {pem}\n[listen header]\naddress = {header}\nservice = proxy\nupstream = back\n"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def of_tls(name):
        with net.connect(front) as s, context.wrap_socket(s, server_hostname=name) as client:
            return int(client.recv(100).split(b".")[3]) - 11

    def of_header(name):
        authority = struct.pack("!BH", 2, len(name)) + name.encode()
        return placed(header, [v2(rest=authority)])

    with Fleet(t, 5) as fleet, t.daemon(keyed(front, fleet, "maglev", "sni", "tls = front") + listen + TRUSTED):
        first = {name: of_tls(name) for name in NAMES}
        spread_well(first.values())
        check_equal({name: of_tls(name) for name in NAMES}, first, "the servers again")
        check_equal({name: of_header(name) for name in NAMES}, first, "the servers by the header")
        for other in (str.upper, lambda name: name + "."):
            check_equal({name: of_header(other(name)) for name in NAMES}, first, "the servers of the name written otherwise")


@test(each={"method": METHODS})
def by_client_and_port(t, method):
    """{method}: with hash_key = client_port the connections of one address are spread, and a port has its server"""
    front = t.address()
    with Fleet(t, 5) as fleet, t.daemon(keyed(front, fleet, method, "client_port", TRUSTED)):
        # Of a header, so that no port is needed here.
        first = {port: placed(front, [v2(port=port)]) for port in range(2000, 2024)}
        spread_well(first.values())
        check_equal({port: placed(front, [v2(port=port)]) for port in first}, first, "the servers again")


@test(each={"method": METHODS})
def by_destination(t, method):
    """{method}: with hash_key = destination the address and port that a client has connected to choose, not the
    client; behind a proxy those of the header"""
    ports = [t.port() for _ in range(24)]
    front = ", ".join(f"127.0.0.1:{port}" for port in ports)
    with Fleet(t, 5) as fleet, t.daemon(keyed(front, fleet, method, "destination", TRUSTED)):
        first = {port: placed(f"127.0.0.1:{port}", [b"hello"]) for port in ports}
        spread_well(first.values())
        check_equal({port: placed(f"127.0.0.1:{port}", [b"hello"], "127.0.9.1") for port in ports}, first, "for another client")
        told = {placed(f"127.0.0.1:{port}", [v2()]) for port in ports}
        check_equal(len(told), 1, "servers of one destination in the header")


@test(each={"method": METHODS})
def by_field_of_header(t, method):
    """{method}: with hash_key = tlv:0xea the value of that field chooses; a client without it, or with an empty one,
    goes by its address"""
    front = t.address()

    def field(value, source):
        rest = struct.pack("!BH", 4, 3) + bytes(3) + struct.pack("!BH", 0xea, len(value)) + value
        return placed(front, [v2(source, rest=rest)])

    values = [b"\1vpce-%d" % i for i in range(24)]
    sources = [f"192.0.2.{i}" for i in range(24)]
    with Fleet(t, 5) as fleet, t.daemon(keyed(front, fleet, method, "tlv:0xea", TRUSTED)):
        first = {value: field(value, "192.0.2.1") for value in values}
        spread_well(first.values())
        check_equal({value: field(value, "198.51.100.7") for value in values}, first, "for another client")
        empty = {source: field(b"", source) for source in sources}
        spread_well(empty.values())
        check_equal({source: placed(front, [v2(source)]) for source in sources}, empty, "clients without the field")


@test()
def kept_over_reload(t):
    """a reload that changes hash_key applies to new clients, and back again gives each its server of before"""
    front = t.address()
    with Fleet(t, 5) as fleet:
        by_port, by_client = (keyed(front, fleet, "maglev", key, TRUSTED) for key in ("client_port", "client"))
        with t.daemon(by_port) as daemon:
            first = {port: placed(front, [v2(port=port)]) for port in range(2000, 2024)}
            daemon.reload(by_client)
            check_equal(len({placed(front, [v2(port=port)]) for port in first}), 1, "servers of one client")
            daemon.reload(by_port)
            check_equal({port: placed(front, [v2(port=port)]) for port in first}, first, "the servers afterwards")


REFUSED = [
    {"more": "", "key": "sni", "says": ":8: [listen front] upstream: [upstream back] has hash_key = sni, but no server "
                                       "name is read here (set tls, route.ID or accept_proxy)"},
    {"more": "", "key": "tlv:0x01", "says": ":8: [listen front] upstream: [upstream back] has hash_key = tlv:0x01, but no "
                                            "PROXY header is read here (set accept_proxy)"},
    {"more": "route.a = sni:a.example -> back", "key": "tlv:0x01",
     "says": ":9: [listen front] route.a: [upstream back] has hash_key = tlv:0x01, but no PROXY header"},
    {"more": "mirror = back", "key": "client_port", "says": "but a mirror goes by the client's address"},
    {"more": "", "key": "tlv:0x", "says": "'0x' is not a type from 0x00 to 0xff"},
    {"more": "", "key": "tlv:0x100", "says": "'0x100' is not a type"},
    {"more": "", "key": "tlv:ea", "says": "'ea' is not a type"},
    {"more": "", "key": "tlv:0xg", "says": "'0xg' is not a type"},
    {"more": "", "key": "tlv:0x3", "says": "'0x3' is the checksum"},
    {"more": "", "key": "sn", "says": "did you mean 'sni'?"},
    {"more": "", "key": "src", "says": "here it is 'client'"},
    {"more": "", "key": "$ssl_preread_server_name", "says": "here it is 'sni'"}]


@test(each=REFUSED)
def key_refused(t, more, key, says):
    """-t refuses hash_key = {key} with '{more}' and says why"""
    with Fleet(t, 1) as fleet:
        path = t.write("c.ini", keyed(t.address(), fleet, "maglev", key, more))
    done = t.reactord("-t", "-c", path)
    check_equal((done.code, done.out), (1, ""), "exit code and stdout")
    check(says in done.err, done.err)
