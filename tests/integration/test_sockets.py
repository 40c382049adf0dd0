"""sockets: options of connections on both sides, where they come from, and names with both families."""

import contextlib
import errno
import socket
import time
from pathlib import Path

from support import net
from support.case import Failed, check, check_equal, test
from support.network import HERE, NOBODY, THERE, ip, option_of, other_host
from support.own_network import own_names, own_network
from support.server import full_queue
from support.watch import Watch

TCP_USER_TIMEOUT = 18  # netinet/tcp.h
OPTIONS = """keepalive = 61s,13s,4
user_timeout = 34s
nodelay = no
send_buffer = 48k
receive_buffer = 40k
"""
# The kernel doubles what is asked for a buffer, socket(7).
WANTED = {
    "keepalive": (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    "its silence": (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 61),
    "its interval": (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 13),
    "its count": (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
    "the user timeout": (socket.IPPROTO_TCP, TCP_USER_TIMEOUT, 34000),
    "nodelay": (socket.IPPROTO_TCP, socket.TCP_NODELAY, 0),
    "the send buffer": (socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * 48 * 1024),
    "the receive buffer": (socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * 40 * 1024),
}


def config(front, server, listen="", upstream=""):
    return (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n{listen}\n"
            f"[upstream back]\nserver.a = {server}\n{upstream}\n")


def check_options(daemon, peer, wanted):
    """The daemon's socket that is connected to ${peer} has them."""
    for what, (level, option, value) in wanted.items():
        check_equal(option_of(daemon, peer, level, option), value, what)


@test()
def options_towards_clients(t):
    """options of a listener are those of its clients' connections, and of no server's"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(config(front, back, listen=OPTIONS)) as daemon:
        with net.proxied(front, listener) as (client, server):
            check_options(daemon, client.getsockname(), WANTED)
            for nodelay in (0, 1):  # from the second send on: the first is never delayed
                client.sendall(b"hello")
                check_equal(net.read_exactly(server, 5), b"hello", "what the server hears")
                check_equal(option_of(daemon, server.getsockname(), socket.IPPROTO_TCP, socket.TCP_NODELAY), nodelay,
                            "nodelay towards the server")


@test()
def options_towards_servers(t):
    """options of an upstream are those of its servers' connections, and of no client's"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(config(front, back, upstream=OPTIONS)) as daemon:
        with net.proxied(front, listener) as (client, server):
            check_options(daemon, server.getsockname(), WANTED)
            check_equal(option_of(daemon, client.getsockname(), socket.SOL_SOCKET,
                                  socket.SO_KEEPALIVE), 0, "keepalive towards the client")


@test(each={"family": ["unix", "unix, abstract"]})
def options_of_unix_sockets(t, family):
    """with all options {family} sockets work on both sides, and have the send buffer"""
    name = "@" + t.path("") if "abstract" in family else t.path("")
    front, back = name + "front", name + "back"
    with net.listen(back) as listener, \
            t.daemon(config(front, back, listen=OPTIONS, upstream=OPTIONS)) as daemon:
        with net.connect(front) as client:
            with net.accept(listener) as server:
                client.sendall(b"ping")
                check_equal(net.read_exactly(server, 4), b"ping", "what the server got")
                server.sendall(b"pong")
                check_equal(net.read_exactly(client, 4), b"pong", "what the client got")
                wanted = {"the send buffer": WANTED["the send buffer"]}
                check_options(daemon, server.getsockname(), wanted)


@contextlib.contextmanager
def session_with(t, silent, listen="", upstream=""):
    """A session whose client or server, as ${silent} says, is on another host; gives that host and
    both ends."""
    own_network()
    with other_host() as host:
        front, back = f"*:{t.port()}", f"{THERE[0] if silent == 'server' else '127.0.0.1'}:7008"
        where = host.there() if silent == "server" else contextlib.nullcontext()
        with where:
            listener = net.listen(back)
        text = "[reactord]\ndrain_timeout = 1s\n" + config(front, back, listen, upstream)
        with listener, t.daemon(text):
            where = host.there() if silent == "client" else contextlib.nullcontext()
            address = "10.7.0.1" if silent == "client" else "127.0.0.1"
            with where:
                client = net.connect(address + front[1:])
            with client, net.accept(listener) as server:
                yield host, client, server


@test(needs=("ip",), each={"side": ["client", "server"]}, plain_only=True)
def keepalive_notices(t, side):
    """with keepalive a {side} whose host went silent is noticed, and the other end is reset"""
    options = "keepalive = 1s,1s,2"
    with session_with(t, side, listen=options if side == "client" else "",
                      upstream=options if side == "server" else "") as (host, client, server):
        other = server if side == "client" else client
        host.fall_silent()
        watch = Watch()
        check_equal(net.ending(other), "reset", "the other end")
        watch.expect(1.5, 8 * t.scale, "it")


@test(needs=("ip",), plain_only=True)
def no_keepalive(t):
    """without keepalive a client whose host went silent is not noticed, when nothing is sent"""
    with session_with(t, "client") as (host, _, server):
        host.fall_silent()
        server.settimeout(5)
        with contextlib.suppress(TimeoutError):
            check_equal(server.recv(1), "nothing", "what the server got")


@test(needs=("ip",), each={"side": ["client", "server"]}, plain_only=True)
def user_timeout(t, side):
    """with user_timeout = 1s a {side} that acknowledges nothing for so long is cut"""
    options = "user_timeout = 1s"
    with session_with(t, side, listen=options if side == "client" else "",
                      upstream=options if side == "server" else "") as (host, client, server):
        other = server if side == "client" else client
        host.fall_silent()
        other.sendall(b"is anybody there?")
        watch = Watch()
        check_equal(net.ending(other), "reset", "the other end")
        watch.expect(0.9, 8 * t.scale, "it")


@test()
def source_address(t):
    """servers of either family see the source_address of theirs, and unix sockets mind none"""
    front, port = t.address(), t.port()
    for server, source in ((f"127.0.0.1:{port}", "127.0.0.5"), (f"[::1]:{port}", "::1"),
                           (t.path("back.sock"), None)):
        with net.listen(server) as listener, \
                t.daemon(config(front, server, upstream="source_address = 127.0.0.5, [::1]")):
            with net.connect(front) as client:
                connection, peer = listener.accept()
                with connection:
                    client.sendall(b"x")
                    check_equal(net.read_exactly(connection, 1), b"x", "what the server got")
                    if source:
                        check_equal(peer[0], source, "the server's peer")


@test()
def source_of_another_host(t):
    """a source_address that this host does not have resets clients, and the log says why"""
    front, back = t.address(), t.address()
    with net.listen(back), \
            t.daemon(config(front, back, upstream="source_address = 192.0.2.1")) as daemon:
        check_equal(net.fate(front), "reset", "the client's end")
        check(daemon.log_lines("cannot connect: source_address is not an address of this host"), "no log line")


def make_interface():
    """The interface v0 with fe80::1, made anew; its index."""
    with contextlib.suppress(Failed):
        ip("link", "del", "v0")
    ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
    ip("address", "add", "fe80::1/64", "dev", "v0", "nodad")
    for name in ("v0", "v1"):
        ip("link", "set", name, "up")
    return socket.if_nametoindex("v0")


@test()
def server_on_a_new_interface(t):
    """a server at a link-local address is reached again when its interface was made anew, without a reload"""
    own_network()
    index = make_interface()
    front = t.address()
    text = "[reactord]\ndrain_timeout = 500ms\n" + config(front, "[fe80::1%v0]:7001")
    with socket.create_server(("fe80::1", 7001, 0, index), family=socket.AF_INET6) as listener:
        with t.daemon(text), net.connect(front) as client, net.accept(listener) as server:
            server.sendall(b"x")
            check_equal(net.read_exactly(client, 1), b"x", "the first answer")
            again = make_interface()
            check(again != index, "the interface has its old index")
            with socket.create_server(("fe80::1", 7001, 0, again), family=socket.AF_INET6) as next_listener:
                with net.connect(front) as other, net.accept(next_listener) as next_server:
                    next_server.sendall(b"y")
                    check_equal(net.read_exactly(other, 1), b"y", "the second answer")


@test()
def listener_on_a_new_interface(t):
    """a reload listens again at a link-local address whose interface was made anew, and says so; one more finds
    that nothing has changed"""
    own_network()
    index = make_interface()
    text = "[listen front]\naddress = [fe80::1%v0]:7002\nservice = echo\n"
    with t.daemon(text) as daemon:
        for _ in range(3):
            with socket.socket(socket.AF_INET6) as client:
                client.settimeout(net.LIMIT_S)
                client.connect(("fe80::1", 7002, 0, index))
                check_equal(net.exchange(client, b"x"), b"x", "the echo")
            daemon.reload(wanted="nothing has changed")
            index = make_interface()
            lines = daemon.reload()
            check(any("the interface of an address was made anew" in line for line in lines), f"the log says {lines}")


PORTS = 20


def most_bound(source, target):
    """How many connections a plain client can have when it binds first."""
    with contextlib.ExitStack() as clients:
        for count in range(2 * PORTS + 1):
            s = clients.enter_context(socket.socket())
            try:
                s.bind((source, 0))
                s.connect(net.parse(target)[1])
            except OSError as error:
                check(error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL), f"got {error}")
                return count
        return count


@test()
def more_connections_than_ports(t):
    """with source_address two servers have as many connections each as there are ports, 20 here,
    where a client that binds first has 20 in all"""
    own_network(ports=f"40000 {40000 + PORTS - 1}")
    front = t.path("front.sock")
    servers = {"a": "127.0.0.1:20001", "b": "127.0.0.1:20002"}
    lines = "".join(f"server.{name} = {address}\n" for name, address in servers.items())
    text = (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
            f"[upstream back]\n{lines}source_address = 127.0.0.5\n")
    with contextlib.ExitStack() as opened:
        listeners = [opened.enter_context(net.listen(address)) for address in servers.values()]
        plain = "127.0.0.1:20003"
        with net.listen(plain):
            check_equal(most_bound("127.0.0.5", plain), PORTS, "connections of a plain client")
        opened.enter_context(t.daemon(text))
        for _ in range(2 * PORTS):  # in turn to the one and to the other server
            opened.enter_context(net.connect(front))
        for listener in listeners:
            ports = set()
            for _ in range(PORTS):
                s, peer = listener.accept()
                opened.enter_context(s)
                check_equal(peer[0], "127.0.0.5", "the source")
                ports.add(peer[1])
            check_equal(len(ports), PORTS, "different ports towards one server")


def check_race(front, listener, least, most):
    """A client reaches the server after ${least} to ${most} seconds, and no other attempt is left."""
    others = waiting_for_answer()
    watch = Watch()
    with net.proxied(front, listener) as (client, server):
        watch.expect(least, most, "the server was reached")
        client.sendall(b"x")
        check_equal(net.read_exactly(server, 1), b"x", "what the server got")
        check_equal(waiting_for_answer(), others, "other attempts under way")


def waiting_for_answer():
    """How many sockets in this network are in SYN_SENT."""
    count = 0
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as f:
            count += sum(line.split()[3] == "02" for line in f)
    return count


@contextlib.contextmanager
def half_dead_name(t):
    """A server by a name whose first address, of IPv6, does not answer, and who listens on the other;
    gives what to configure and its listener."""
    own_network()
    nowhere, alive = NOBODY[2], HERE[0]
    own_names(t, hosts=f"{nowhere} dual.test\n{alive} dual.test\n")
    with other_host():
        found = [where[0] for *_, where in
                 socket.getaddrinfo("dual.test", 7008, type=socket.SOCK_STREAM)]
        check_equal(found, [nowhere, alive], "the addresses of the name")
        with net.listen(f"{alive}:7008") as listener:
            yield "dual.test:7008", listener


@test(needs=("ip",))
def dead_ipv6(t):
    """a name whose IPv6 address does not answer is reached by IPv4 after a quarter of a second"""
    front = t.address()
    with half_dead_name(t) as (server, listener), \
            t.daemon(config(front, server, upstream="connect_timeout = 20s")):
        check_race(front, listener, 0.24, 8)


@test()
def dead_ipv4(t):
    """a name whose IPv4 address does not answer is reached by IPv6 after happy_eyeballs_delay"""
    own_network()
    front, port = t.address(), t.port()
    options = "connect_timeout = 20s\nhappy_eyeballs_delay = 500ms"
    # localhost is 127.0.0.1 first.
    with full_queue(f"127.0.0.1:{port}"), net.listen(f"[::1]:{port}") as listener, \
            t.daemon(config(front, f"localhost:{port}", upstream=options)):
        check_race(front, listener, 0.49, 8)


@test(needs=("ip",))
def no_happy_eyeballs(t):
    """with happy_eyeballs_delay = 0 the first address has its share of the time before the second"""
    front = t.address()
    options = "happy_eyeballs_delay = 0\nconnect_timeout = 3s"
    with half_dead_name(t) as (server, listener), \
            t.daemon(config(front, server, upstream=options)):
        check_race(front, listener, 1.45, 3)


@test()
def never_to_itself(t):
    """a server that is away, and whose port becomes the only one to connect from while reactord runs: its clients are
    refused, and hear no echo of themselves"""
    port, front = 45000, t.path("front.sock")
    own_network(ports="50000 50010")
    with t.daemon(config(front, f"127.0.0.1:{port}", upstream="retries = 0\n")):
        for ports in ("50000 50010", f"{port} {port}"):
            Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(ports, encoding="ascii")
            time.sleep(1.1)  # SOCK_PORT_RANGE_NS
            for _ in range(2):
                with net.connect(front) as client:
                    with contextlib.suppress(BrokenPipeError):  # it may be refused by now
                        client.sendall(b"to myself")
                    with contextlib.suppress(ConnectionResetError):
                        check_equal(client.recv(9), b"", "what the client hears")
