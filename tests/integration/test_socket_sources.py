"""socket sources: where connections come from: several addresses, the client's own, ports that are free again;
and Multipath TCP."""

import contextlib
import re
import socket
from pathlib import Path

from support import net
from support.case import Skipped, check, check_equal, test
from support.chain import Chain
from support.network import HERE, THERE, ip, other_host
from support.own_network import own_network
from support.packets import ACK, OPTION_MPTCP, SYN, Packets

IPPROTO_MPTCP = 262  # netinet/in.h
JOIN = 1             # RFC 8684, section 3.2: subtype of MP_JOIN
PORTS = 20
FOREIGN = {"IPv4": "203.0.113.7", "IPv6": "2001:db8:99::7"}
PATTERN = 8 << 20


def few_ports():
    """A network of its own with PORTS ports to connect from, and none of them free again before a minute is over."""
    own_network(ports=f"40000 {40000 + PORTS - 1}")
    Path("/proc/sys/net/ipv4/tcp_tw_reuse").write_text("0", encoding="ascii")


def config(front, server, listen="", upstream=""):
    return (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n{listen}\n"
            f"[upstream back]\nserver.a = {server}\nretries = 0\nretry_budget = 0\n{upstream}\n")


OWN_PORTS = f"source_ports = 30000-{30000 + PORTS - 1}"


def short_session(front, listener):
    """A session whose client asks, gets its answer, and closes first; how the server's connection ends, or None if
    there is none."""
    with net.connect(front) as client:
        client.sendall(b"ask")
        try:
            with net.accept(listener, limit_s=net.LIMIT_S) as server:
                check_equal(net.read_exactly(server, 3), b"ask", "the question")
                server.sendall(b"answer")
                check_equal(net.read_exactly(client, 6), b"answer", "the answer")
                client.close()
                return net.ending(server)
        except TimeoutError:
            return None


def in_time_wait(t, port):
    return t.run("ss", "-Htn", "state", "time-wait", "dst", f"127.0.0.1:{port}").out.count("\n")


@test(needs=("ss",))
def ports_are_free_again(t):
    """with source_ports 3 times as many short sessions as there are ports are served one after the other, with every
    byte, though all ports are in TIME_WAIT"""
    few_ports()
    front, port = t.path("front.sock"), t.port()
    back = f"127.0.0.1:{port}"
    with net.listen(back) as listener, t.daemon(config(front, back, upstream=OWN_PORTS)):
        for _ in range(3):
            for _ in range(PORTS):
                check_equal(short_session(front, listener), "fin", "the server's end")
            t.eventually(lambda: in_time_wait(t, port) == PORTS, "all ports in TIME_WAIT")


@test(needs=("ss",))
def ports_in_time_wait(t):
    """without source_ports each short session keeps its port, and one more than there are ports is turned away"""
    few_ports()
    front, port = t.path("front.sock"), t.port()
    back = f"127.0.0.1:{port}"
    with net.listen(back) as listener, t.daemon(config(front, back)) as daemon:
        for _ in range(PORTS):
            check_equal(short_session(front, listener), "fin", "the server's end")
        t.eventually(lambda: in_time_wait(t, port) == PORTS, "all ports in TIME_WAIT")
        check_equal(net.fate(front), "fin", "the end of a client by a unix socket")
        check(daemon.log_lines("cannot connect: Cannot assign requested address"), "no reason in the log")


@test(each={"family": ["127.0.0.1", "[::1]"]})
def as_many_connections_as_ports(t, family):
    """with source_ports a server at {family} has as many connections at a time as there are ports, each from a port of
    its own, and one more is turned away; a second server has as many from the same ports"""
    own_network()
    front, backs = t.path("front.sock"), [f"{family}:{t.port()}" for _ in range(2)]
    with contextlib.ExitStack() as opened:
        listeners = [opened.enter_context(net.listen(back)) for back in backs]
        daemon = opened.enter_context(t.daemon(config(front, backs[0], upstream=f"server.b = {backs[1]}\n{OWN_PORTS}")))
        for _ in range(2 * PORTS):
            opened.enter_context(net.connect(front))
        for listener in listeners:
            peers = set()
            for _ in range(PORTS):
                s, peer = listener.accept()
                opened.enter_context(s)
                peers.add(peer[1])
            check_equal(peers, set(range(30000, 30000 + PORTS)), "the ports")
        check_equal(net.fate(front), "fin", "the end of a client by a unix socket")
        check(daemon.log_lines("cannot connect: Cannot assign requested address"), "no reason in the log")


@test()
def a_port_that_is_taken(t):
    """with source_ports a port that another program has bound is passed over"""
    own_network()
    front, back = t.path("front.sock"), f"127.0.0.1:{t.port()}"
    with socket.socket() as other, net.listen(back) as listener, \
            t.daemon(config(front, back, upstream="source_ports = 30000-30001")):
        other.bind(("0.0.0.0", 30000))
        for _ in range(3):
            with net.proxied(front, listener) as (client, server):
                check_equal(server.getpeername()[1], 30001, "the port")
                client.sendall(b"bye")
                client.close()
                check_equal(net.read_exactly(server, 3), b"bye", "what the server got")
                check_equal(net.ending(server), "fin", "the server's end")


@test()
def half_closed_sessions_with_own_ports(t):
    """with source_ports a client that ends its stream first gets all that its server has sent and sends"""
    own_network()
    front, back = t.address(), f"127.0.0.1:{t.port()}"
    with net.listen(back) as listener, t.daemon(config(front, back, upstream=OWN_PORTS)):
        with net.proxied(front, listener) as (client, server):
            sender = net.Task(net.send_pattern, server, PATTERN)
            client.shutdown(socket.SHUT_WR)
            check_equal(net.ending(server), "fin", "the end that the server sees")
            wanted = net.pattern_sha256(PATTERN)
            check_equal(net.receive_sha256(client, PATTERN, stalls=[(PATTERN // 2, 0.3)]), wanted, "what the client got")
            sender.result()


@test()
def several_sources(t):
    """with three addresses in source_address one server has three times as many connections as there are ports, the
    same number from each"""
    few_ports()
    front, back = t.path("front.sock"), f"127.0.0.1:{t.port()}"
    sources = ["127.0.0.5", "127.0.0.6", "127.0.0.7"]
    text = config(front, back, upstream=f"source_address = [::1], {', '.join(sources)}")
    with contextlib.ExitStack() as opened:
        listener = opened.enter_context(net.listen(back))
        opened.enter_context(t.daemon(text))
        seen = []
        for _ in range(len(sources) * PORTS):
            opened.enter_context(net.connect(front))
            s, peer = listener.accept()
            opened.enter_context(s)
            seen.append(peer)
        for source in sources:
            check_equal(len({peer for peer in seen if peer[0] == source}), PORTS, f"connections from {source}")


@test()
def a_source_that_is_away(t):
    """of several addresses in source_address one that this host does not have is passed over"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, \
            t.daemon(config(front, back, upstream="source_address = 192.0.2.1, 127.0.0.5")):
        for _ in range(4):
            with net.proxied(front, listener) as (_, server):
                check_equal(server.getpeername()[0], "127.0.0.5", "the source")


@contextlib.contextmanager
def answers_come_here(family):
    """The other host sends to foreign addresses by this one, which takes what comes."""
    inet, host = ("-4", HERE[0]) if family == "IPv4" else ("-6", HERE[2])
    with other_host() as other:
        ip(inet, "rule", "add", "iif", "here", "table", "100")
        ip(inet, "route", "add", "local", "default", "dev", "lo", "table", "100")
        with other.there():
            ip(inet, "route", "add", "default", "via", host)
        yield other


def brackets(host):
    return f"[{host}]" if ":" in host else host


def told(client, port=4711):
    """A PROXY header that names a client."""
    family, ours = ("TCP6", "::1") if ":" in client else ("TCP4", "127.0.0.1")
    return f"PROXY {family} {client} {ours} {port} 7\r\n".encode()


TRUST = "accept_proxy = required\ntrusted_proxies = 127.0.0.1"


@test(needs=("ip",), each={"family": ["IPv4", "IPv6"]})
def transparent_towards_servers(t, family):
    """with transparent a server sees the address of its client of {family}, and a port of source_ports; health checks
    come from this host's address"""
    own_network()
    with answers_come_here(family) as other, Packets("here") as packets:
        host, ours = (THERE[0], HERE[0]) if family == "IPv4" else (THERE[2], HERE[2])
        front, port = t.address(), t.port()
        back = f"{brackets(host)}:{port}"
        with other.there():
            listener = net.listen(back)
        upstream = f"transparent = yes\n{OWN_PORTS}\ncheck = tcp\ncheck_interval = 50ms"
        with listener, t.daemon(config(front, back, listen=TRUST, upstream=upstream)):
            with net.connect(front) as client:
                client.sendall(told(FOREIGN[family]) + b"ping")
                with net.accept(listener) as server:
                    check_equal(server.getpeername()[0], FOREIGN[family], "the server's peer")
                    check(server.getpeername()[1] in range(30000, 30000 + PORTS), "its port is none of source_ports")
                    check_equal(net.read_exactly(server, 4), b"ping", "what the server got")
                    server.sendall(b"pong")
                    check_equal(net.read_exactly(client, 4), b"pong", "what the client got")
            packets.wait(t, "a check", SYN, target_port=port, source=ours)
            sources = {p.source for p in packets.seen(SYN, target_port=port)}
            check_equal(sources, {ours, FOREIGN[family]}, "who connects to the server")


# Clients whose addresses no connect to a healthy server can come from: the kernel refuses one, and to the other the
# servers' host has no route back.
UNFIT = [{"what": "of the link", "family": "IPv6", "unfit": "fe80::1", "why": "the client's address cannot be a source"},
         {"what": "without a way back", "family": "IPv4", "unfit": "198.51.100.7", "why": "Connection timed out"}]


EJECTS = "transparent = yes\neject_failures = 1\neject_max_percent = 100"


@test(needs=("ip",), each=UNFIT)
def transparent_for_an_unfit_client(t, what, family, unfit, why):
    """with transparent a client with an address {what} ejects no server"""
    own_network()
    with answers_come_here(family) as other:
        front, host = t.address(), brackets(THERE[0] if family == "IPv4" else THERE[2])
        backs = [f"{host}:{t.port()}" for _ in range(2)]
        with other.there():
            listeners = [net.listen(back) for back in backs]
            if family == "IPv4":
                ip("route", "add", "blackhole", f"{unfit}/32")
        upstream = f"server.b = {backs[1]}\nconnect_timeout = 1s\n{EJECTS}"
        with listeners[0], listeners[1], t.daemon(config(front, backs[0], listen=TRUST, upstream=upstream)) as daemon:
            for _ in range(2):
                with net.connect(front) as client:
                    client.sendall(told(unfit))
                    check_equal(net.ending(client), "reset", "the unfit client's end")
            check(daemon.log_lines(f"cannot connect: {why}"), "no reason in the log")
            check(not daemon.log_lines("ejected"), "the server is blamed")


@test(needs=("ip",))
def transparent_and_a_refusal(t):
    """with transparent a server that refuses connections is ejected"""
    own_network()
    with answers_come_here("IPv4"):
        front = t.address()
        upstream = f"server.b = {THERE[0]}:{t.port()}\n{EJECTS}"
        text = config(front, f"{THERE[0]}:{t.port()}", listen=TRUST, upstream=upstream)
        with t.daemon(text) as daemon, net.connect(front) as client:
            client.sendall(told(FOREIGN["IPv4"]))
            check_equal(net.ending(client), "reset", "the client's end")
            t.eventually(lambda: daemon.log_lines("ejected"), "ejection")


@test(needs=("ip",))
def transparent_for_another_family(t):
    """with transparent a client of IPv6 reaches a server of IPv4 from this host's address"""
    own_network()
    with answers_come_here("IPv4") as other:
        front, back = t.address(), f"{THERE[0]}:{t.port()}"
        with other.there():
            listener = net.listen(back)
        with listener, t.daemon(config(front, back, listen=TRUST, upstream="transparent = yes")), \
                net.connect(front) as client:
            client.sendall(told(FOREIGN["IPv6"]))
            with net.accept(listener) as server:
                check_equal(server.getpeername()[0], HERE[0], "the server's peer")


@test(needs=("ip",), each={"family": ["IPv4", "IPv6"]})
def transparent_listener(t, family):
    """with transparent a listener serves clients at an address of {family} that this host does not have"""
    own_network()
    address = f"{brackets(FOREIGN[family])}:{t.port()}"
    text = f"[listen front]\naddress = {address}\nservice = echo\n"
    done = t.reactord("-c", t.write("c.ini", text))
    check_equal(done.code, 3, "exit code without transparent")
    with answers_come_here(family) as other, t.daemon(text + "transparent = yes\n"):
        with other.there():
            client = net.connect(address)
        with client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


def multipath(address=None):
    """A socket of Multipath TCP, which listens at ${address} or connects later."""
    try:
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    except OSError as error:
        raise Skipped(f"no Multipath TCP: {error}") from None
    s.settimeout(net.LIMIT_S)
    if address:
        s.bind(net.parse(address)[1])
        s.listen()
    return s


def exchange_patterns(one, other):
    """Both send the pattern, and get it."""
    senders = [net.Task(net.send_pattern, s, PATTERN, (net.CHUNK,), False) for s in (one, other)]
    receivers = [net.Task(net.receive_sha256, s, PATTERN) for s in (one, other)]
    for sender in senders:
        sender.result()
    for receiver in receivers:
        check_equal(receiver.result(), net.pattern_sha256(PATTERN), "what came")


@test(needs=("ip",))
def mptcp_of_clients(t):
    """with mptcp a client has a second subflow from another address, and a client of plain TCP is served, too"""
    own_network()
    port, back = t.port(), t.address()
    front = f"{HERE[0]}:{port}"
    with other_host() as other, Packets("here") as packets, net.listen(back) as listener:
        with other.there():
            multipath().close()  # or skip
            ip("address", "add", "10.7.0.3/24", "dev", "there")
            ip("mptcp", "limits", "set", "subflows", "2")
            ip("mptcp", "endpoint", "add", "10.7.0.3", "dev", "there", "subflow")
            client, plain = multipath(), socket.socket()  # the limits are those of the time when a socket is made
        ip("mptcp", "limits", "set", "subflows", "2")
        with client, plain, t.daemon(config(front, back, listen="mptcp = yes")):
            client.connect(net.parse(front)[1])
            with net.accept(listener) as server:
                exchange_patterns(client, server)
                answer = packets.wait(t, "an answer to the SYN", SYN | ACK, source_port=port, target=THERE[0])
                check(OPTION_MPTCP in answer.options, "no MPTCP option")
                join = packets.wait(t, "a subflow", SYN | ACK, source_port=port, target="10.7.0.3")
                check_equal(join.options[OPTION_MPTCP][0] >> 4, JOIN, "subtype of its option")
            plain.settimeout(net.LIMIT_S)
            plain.connect(net.parse(front)[1])
            with net.accept(listener) as server:
                exchange_patterns(plain, server)


@test(needs=("ip",))
def mptcp_of_servers(t):
    """with mptcp a server that has it is connected with Multipath TCP, and one that does not with plain TCP"""
    own_network()
    port, other_port = t.port(), t.port()
    back, plain_back, front = f"127.0.0.1:{port}", f"127.0.0.1:{other_port}", t.address()
    with Packets("lo") as packets, multipath(back) as listener, net.listen(plain_back) as plain, \
            t.daemon(config(front, back, upstream="mptcp = yes")) as daemon:
        with net.proxied(front, listener) as (client, server):
            exchange_patterns(client, server)
        answer = packets.wait(t, "an answer to the SYN", SYN | ACK, source_port=port)
        check(OPTION_MPTCP in answer.options, "no MPTCP option of the server")
        daemon.reload(config(front, plain_back, upstream="mptcp = yes"))
        with net.proxied(front, plain) as (client, server):
            exchange_patterns(client, server)
        question = packets.wait(t, "a SYN", SYN, target_port=other_port)
        check(OPTION_MPTCP in question.options, "no MPTCP option")


@test()
def mptcp_over_upgrades(t):
    """sessions of Multipath TCP go on over an upgrade, and a listener keeps its protocol, whatever the option is then"""
    own_network()
    port, back = t.port(), t.address()
    front = f"127.0.0.1:{port}"
    multipath().close()  # or skip
    with Packets("lo") as packets, net.listen(back) as listener, \
            Chain(t, config(front, back, listen="mptcp = yes")) as chain, multipath() as old:
        old.connect(net.parse(front)[1])
        with net.accept(listener) as server:
            for option in ("yes", "no"):
                chain.daemon.config_path.write_text(chain.daemon.config.replace("= yes", f"= {option}"), encoding="utf-8")
                chain.upgrade()
                answers = len(packets.seen(SYN | ACK, source_port=port))
                with multipath() as client:
                    client.connect(net.parse(front)[1])
                    with net.accept(listener) as another:
                        exchange_patterns(client, another)
                new = packets.seen(SYN | ACK, source_port=port)[answers:]
                check(new and OPTION_MPTCP in new[0].options, "a new client has no MPTCP option")
            exchange_patterns(old, server)


@test()
def mptcp_from_an_upgrade_on(t):
    """a listener that an upgrade gives mptcp says that it keeps its protocol, and serves clients as before"""
    own_network()
    front, back = t.address(), t.address()
    multipath().close()  # or skip
    with net.listen(back) as listener, Chain(t, config(front, back)) as chain:
        chain.daemon.config_path.write_text(chain.daemon.config.replace("upstream = back\n", "upstream = back\nmptcp = yes\n"),
                                            encoding="utf-8")
        chain.upgrade()
        chain.wait_line("the inherited socket keeps its old options: Protocol wrong type for socket")
        with net.proxied(front, listener) as (client, server):
            exchange_patterns(client, server)


@test()
def mptcp_with_user_timeout(t):
    """user_timeout beside mptcp is refused by -t on both sides, and mptcp named as the reason"""
    own_network()
    multipath().close()  # or skip
    both = "mptcp = yes\nuser_timeout = 5s"
    done = t.reactord("-t", "-c", t.write("c.ini", config(t.address(), t.address(), listen=both, upstream=both)))
    if not done.code:
        raise Skipped("this kernel has TCP_USER_TIMEOUT for Multipath TCP")
    why = r":\d+: \[(.*?)\] user_timeout: Multipath TCP does not have it \(none beside mptcp = yes\)"
    check_equal(re.findall(why, done.err), ["listen front", "upstream back"], done.err)


@test()
def mptcp_without_the_kernel(t):
    """where the kernel has no Multipath TCP, mptcp is refused by -t and at a reload, with file and line"""
    own_network()
    switch = Path("/proc/sys/net/mptcp/enabled")
    if switch.exists():
        switch.write_text("0", encoding="ascii")
    front, back = t.address(), t.address()
    path = t.write("c.ini", config(front, back, upstream="mptcp = yes"))
    done = t.reactord("-t", "-c", path)
    check_equal(done.code, 1, "exit code")
    check(re.search(rf"{path}:10: \[upstream back\] mptcp: the kernel does not offer it", done.err), done.err)
    with t.daemon(config(front, back)) as daemon:
        lines = "\n".join(daemon.reload(config(front, back, listen="mptcp = yes"), wanted="refused"))
        check("[listen front] mptcp: the kernel does not offer it" in lines, lines)
