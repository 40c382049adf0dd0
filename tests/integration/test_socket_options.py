"""socket options: what is seen of them outside: in packets, routes and the kernel's tables; and what is refused."""

import contextlib
import re
import socket
from pathlib import Path

from support import net
from support.case import Skipped, check, check_equal, is_root, test
from support.chain import Chain
from support.network import HERE, THERE, ip, other_host
from support.own_network import own_network
from support.packets import ACK, OPTION_FASTOPEN, SYN, Packets

CONTROLS = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
MSG_FASTOPEN = 0x20000000  # linux/socket.h


def config(front, server, listen="", upstream="", process=""):
    return (f"[reactord]\n{process}\n[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n{listen}\n"
            f"[upstream back]\nserver.a = {server}\n{upstream}\n")


def in_brackets(host):
    return f"[{host}]" if ":" in host else host


@contextlib.contextmanager
def far_server(t, family, **options):
    """A session of a client here with a server on the other host, and the packets between the two: the packets,
    the client, the server, the port."""
    own_network()
    host = THERE[family == "IPv6"]
    port = t.port()
    back = f"{in_brackets(host)}:{port}"
    with other_host() as other, Packets("here") as packets:
        with other.there():
            listener = net.listen(back)
        front = t.address()
        with listener, t.daemon(config(front, back, **options)), net.proxied(front, listener) as (client, server):
            yield packets, client, server, port


@contextlib.contextmanager
def far_client(t, family, **options):
    """A session of a client on the other host: the packets, the client, the server, the port of the listener."""
    own_network()
    host = HERE[family == "IPv6"]
    port, back = t.port(), t.address()
    front = f"{in_brackets(host)}:{port}"
    with other_host() as other, Packets("here") as packets, net.listen(back) as listener, \
            t.daemon(config(front, back, **options)):
        with other.there():
            client = net.connect(front)
        with client, net.accept(listener) as server:
            yield packets, client, server, port


FAMILIES = ["IPv4", "IPv6"]


@test(needs=("ip",), each={"family": FAMILIES})
def dscp_towards_servers(t, family):
    """with dscp = ef of an upstream the SYN and the data of {family} towards a server have it, and no other packets"""
    with far_server(t, family, upstream="dscp = ef") as (packets, client, server, port):
        client.sendall(b"ping")
        check_equal(net.read_exactly(server, 4), b"ping", "what the server got")
        check_equal(packets.wait(t, "a SYN", SYN, target_port=port).tos, 46 << 2, "TOS of the SYN")
        check_equal(packets.wait(t, "data", target_port=port, data=b"ping").tos, 46 << 2, "TOS of data")
        check_equal(packets.wait(t, "an answer", SYN | ACK, source_port=port).tos, 0, "TOS of the server's SYN")


@test(needs=("ip",), each={"family": FAMILIES})
def dscp_towards_clients(t, family):
    """with dscp = af41 of a listener the SYN and the data of {family} towards a client have it"""
    with far_client(t, family, listen="dscp = af41") as (packets, client, server, port):
        server.sendall(b"pong")
        check_equal(net.read_exactly(client, 4), b"pong", "what the client got")
        check_equal(packets.wait(t, "a SYN", SYN | ACK, source_port=port).tos, 34 << 2, "TOS of the SYN")
        check_equal(packets.wait(t, "data", source_port=port, data=b"pong").tos, 34 << 2, "TOS of data")


@test(needs=("ip",))
def dscp_of_checks(t):
    """health checks have the dscp and the mss of the servers' connections"""
    own_network()
    port = t.port()
    with other_host() as other, Packets("here") as packets:
        with other.there():
            listener = net.listen(f"{THERE[0]}:{port}")
        upstream = "check = tcp\ncheck_interval = 50ms\ninitial_state = down\ndscp = 7\nmss = 555"
        with listener, t.daemon(config(t.address(), f"{THERE[0]}:{port}", upstream=upstream)) as daemon:
            t.eventually(lambda: daemon.log_lines("server a: up: "), "the server is up")
            check_equal(packets.wait(t, "a SYN", SYN, target_port=port).tos, 7 << 2, "TOS of the SYN")
            check_equal(packets.seen(SYN, target_port=port)[0].mss, 555, "MSS of the SYN")


@test(needs=("ip",), each={"family": FAMILIES})
def mss_towards_servers(t, family):
    """mss of an upstream is announced in the SYN of {family}"""
    with far_server(t, family, upstream="mss = 1000") as (packets, _, _, port):
        check_equal(packets.wait(t, "a SYN", SYN, target_port=port).mss, 1000, "MSS of the SYN")


@test(needs=("ip",), each={"family": FAMILIES})
def mss_towards_clients(t, family):
    """mss of a listener is in the answer to a SYN of {family}"""
    with far_client(t, family, listen="mss = 900") as (packets, _, _, port):
        check_equal(packets.wait(t, "a SYN", SYN | ACK, source_port=port).mss, 900, "MSS of the SYN")


def other_control():
    """A congestion control that any process may use, and that is not the default."""
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="ascii").strip()
    allowed = Path(CONTROLS).read_text(encoding="ascii").split()
    others = [name for name in allowed if name != default]
    if not others:
        raise Skipped(f"the kernel has only {default}")
    return others[0]


@test(needs=("ip", "ss"))
def congestion_on_both_sides(t):
    """congestion of an upstream and of a listener is what ss shows of their connections, and of no others"""
    own_network()
    name, front, back = other_control(), t.address(), t.address()
    with net.listen(back) as listener, t.daemon(config(front, back, upstream=f"congestion = {name}")) as daemon:
        with net.proxied(front, listener) as (client, server):
            check(re.search(rf"\b{name}\b", shown(t, server)), "not towards the server")
            check(not re.search(rf"\b{name}\b", shown(t, client)), "towards the client, too")
        daemon.reload(config(front, back, listen=f"congestion = {name}"))
        with net.proxied(front, listener) as (client, server):
            check(re.search(rf"\b{name}\b", shown(t, client)), "not towards the client")
            check(not re.search(rf"\b{name}\b", shown(t, server)), "towards the server, too")


def shown(t, s):
    """What ss shows of the other end of a socket of ours."""
    host, port = s.getsockname()[:2]
    return t.run("ss", "-Htin", "dst", f"{host}:{port}").out


@contextlib.contextmanager
def marked_route(t):
    """A server on the other host, to which only packets of mark 7 are routed: its address and listener."""
    own_network()
    with other_host() as other:
        with other.there():
            ip("address", "add", "10.9.0.2/32", "dev", "lo")
            listener = net.listen("10.9.0.2:7008")
        ip("rule", "add", "fwmark", "7", "table", "77")
        ip("route", "add", "10.9.0.2", "via", THERE[0], "table", "77")
        with listener:
            yield "10.9.0.2:7008", listener


@test(needs=("ip",))
def mark_towards_servers(t):
    """a server that is reached only by packets of mark = 7 is served and checked with it, and not without"""
    with marked_route(t) as (back, listener):
        front = t.address()
        with t.daemon(config(front, back, upstream="retries = 0")) as daemon:
            check_equal(net.fate(front), "reset", "a client without a mark")
            daemon.reload(config(front, back, upstream="mark = 0x7"))
            with net.proxied(front, listener) as (client, server):
                client.sendall(b"ping")
                check_equal(net.read_exactly(server, 4), b"ping", "what the server got")
        with t.daemon(config(front, back, upstream="mark = 7\ncheck = tcp\ninitial_state = down")) as daemon:
            t.eventually(lambda: daemon.log_lines("server a: up: "), "the server is up")


@test(needs=("ip",))
def mark_without_root(t):
    """with user = nobody a mark of an upstream keeps CAP_NET_ADMIN, and one that a reload adds is refused"""
    if not is_root():
        raise Skipped("needs root")
    with marked_route(t) as (back, listener):
        front = t.address()
        with t.daemon(config(front, back, upstream="mark = 7", process="user = nobody")) as daemon:
            check_equal(int(daemon.status("CapEff"), 16) & 1 << 12, 1 << 12, "CAP_NET_ADMIN")
            with net.proxied(front, listener) as (client, server):
                client.sendall(b"ping")
                check_equal(net.read_exactly(server, 4), b"ping", "what the server got")
        with t.daemon(config(front, back, process="user = nobody")) as daemon:
            check_equal(int(daemon.status("CapEff"), 16) & 1 << 12, 0, "CAP_NET_ADMIN")
            text = config(front, back, upstream="mark = 7", process="user = nobody")
            lines = "\n".join(daemon.reload(text, wanted="refused"))
            check(re.search(r"\[upstream back\] mark: .*needs CAP_NET_ADMIN", lines), lines)


@test(needs=("ip",))
def interface_towards_servers(t):
    """with interface a server is connected through it, and not through that of the better route"""
    own_network()
    for name in ("best", "other"):
        ip("link", "add", name, "type", "veth", "peer", "name", name + "1")
        for end in (name, name + "1"):
            ip("link", "set", end, "up")
    ip("address", "add", "10.9.0.1/32", "dev", "lo")
    for metric, name in enumerate(("best", "other")):
        ip("route", "add", "10.9.0.0/24", "dev", name, "src", "10.9.0.1", "metric", str(metric + 1))
        ip("neighbour", "add", "10.9.0.2", "lladdr", "02:00:00:00:00:09", "dev", name)
    front, back = t.address(), "10.9.0.2:7008"
    with Packets("best1") as best, Packets("other1") as other, t.daemon(config(front, back)) as daemon:
        with net.connect(front):
            best.wait(t, "a SYN by the best route", SYN, target_port=7008)
        check_equal(other.seen(), [], "packets by the other route")
        daemon.reload(config(front, back, upstream="interface = other"))
        with net.connect(front):
            other.wait(t, "a SYN by the other route", SYN, target_port=7008)


@test(needs=("ip",))
def interface_that_goes_away(t):
    """a server whose interface is gone is a failed connect with its reason, and is reached when it is back"""
    own_network()

    def make():
        ip("link", "add", "v0", "type", "veth", "peer", "name", "v1")
        ip("link", "set", "v0", "up")
        ip("address", "add", "10.9.0.1/24", "dev", "v0")

    make()
    front, back = t.address(), "10.9.0.1:7008"
    with net.listen("0.0.0.0:7008") as listener, \
            t.daemon(config(front, back, upstream="interface = v0\nretries = 0\neject_failures = 1")) as daemon:
        with net.proxied(front, listener):
            pass
        ip("link", "del", "v0")
        check_equal(net.fate(front), "reset", "the client's end")
        t.eventually(lambda: daemon.log_lines("the network interface does not exist"), "the reason")
        make()
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"ping")
            check_equal(net.read_exactly(server, 4), b"ping", "what the server got")


@test(needs=("ip",))
def interface_of_a_listener(t):
    """a listener with interface = here serves clients that come in by it, and refuses those of another"""
    own_network()
    port = t.port()
    text = f"[listen front]\naddress = *:{port}\nservice = echo\ninterface = here\n"
    with other_host() as other, t.daemon(text) as daemon:
        with other.there():
            client = net.connect(f"{HERE[0]}:{port}")
        with client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        with socket.socket() as s:
            check(s.connect_ex(("127.0.0.1", port)) != 0, "a client of this host is served")
        lines = "\n".join(daemon.reload(text.replace("here", "lo"), wanted="refused"))
        check("interface" in lines, lines)


@test(needs=("ip",))
def interface_over_upgrades(t):
    """an upgrade sets an interface that is new, and keeps one, also without the option"""
    own_network()
    port = t.port()
    text = f"[listen front]\naddress = *:{port}\nservice = echo\n"

    def is_refused_here():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) != 0

    with other_host() as other, Chain(t, text) as chain:
        plain = chain.daemon.config
        check(not is_refused_here(), "without the option")
        for more in ("interface = here\n", "interface = here\n", ""):
            chain.daemon.config_path.write_text(plain + more, encoding="utf-8")
            chain.upgrade()
            chain.eventually(is_refused_here, "a client of another interface is refused")
            with other.there():
                client = net.connect(f"{HERE[0]}:{port}")
            with client:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def defer_accept(t):
    """with defer_accept a client that says nothing is not accepted before one that comes later and speaks"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(config(front, back, listen="defer_accept = 1h")):
        with net.connect(front) as silent, net.connect(front) as loud:
            loud.sendall(b"loud")
            with net.accept(listener) as server:
                check_equal(net.read_exactly(server, 4), b"loud", "what the server got first")
            silent.sendall(b"late")
            with net.accept(listener) as server:
                check_equal(net.read_exactly(server, 4), b"late", "what the server got second")


def fastopen_mode(value):
    Path("/proc/sys/net/ipv4/tcp_fastopen").write_text(str(value), encoding="ascii")


@test(needs=("ip",))
def fastopen(t):
    """with fastopen a client that has a cookie is served with what its SYN brought; a reload ends that"""
    own_network()
    fastopen_mode(3)
    front = t.address()
    text = f"[listen front]\naddress = {front}\nservice = echo\n"
    port = net.parse(front)[1][1]
    with Packets("lo") as packets, t.daemon(text + "fastopen = 16\n") as daemon:
        for data in (b"first", b"second"):
            hello_in_syn(front, data)
        packets.wait(t, "a SYN with a cookie", SYN | ACK, source_port=port)
        check(OPTION_FASTOPEN in packets.seen(SYN | ACK, source_port=port)[0].options, "no cookie")
        check_equal(packets.wait(t, "a SYN with data", SYN, target_port=port, data=b"second").data, b"second", "data")
        check_equal(passive_fastopens(), 1, "clients whose SYN brought data")
        daemon.reload(text)
        hello_in_syn(front, b"third")
        check_equal(passive_fastopens(), 1, "clients whose SYN brought data, after the reload")


def hello_in_syn(front, data):
    with socket.socket() as s:
        s.sendto(data, MSG_FASTOPEN, net.parse(front)[1])
        s.settimeout(net.LIMIT_S)
        check_equal(net.read_exactly(s, len(data)), data, "the echo")


def passive_fastopens():
    names, values = [line.split() for line in Path("/proc/net/netstat").read_text(encoding="ascii").splitlines()
                     if line.startswith("TcpExt:")]
    return int(values[names.index("TCPFastOpenPassive")])


@test(needs=("ip",))
def fastopen_without_the_kernel(t):
    """fastopen is warned of where net.ipv4.tcp_fastopen lets no server use it"""
    own_network()
    fastopen_mode(1)
    path = t.write("c.ini", f"[listen front]\naddress = {t.address()}\nservice = echo\nfastopen = 16\n")
    done = t.reactord("-t", "-c", path)
    check_equal(done.code, 0, "exit code")
    check(f"{path}:4: warning: [listen front] fastopen: has no effect while net.ipv4.tcp_fastopen is 1" in done.err,
          done.err)


@test(needs=("ip",))
def mark_towards_clients(t):
    """with mark = 9 of a listener a client is reached that only packets of that mark are routed to"""
    own_network()
    with other_host() as other:
        ip("rule", "add", "fwmark", "9", "table", "79")
        ip("route", "add", "10.9.0.2", "via", THERE[0], "table", "79")
        Path("/proc/sys/net/ipv4/conf/here/rp_filter").write_text("0", encoding="ascii")
        Path("/proc/sys/net/ipv4/conf/all/rp_filter").write_text("0", encoding="ascii")
        front = f"{HERE[0]}:{t.port()}"
        with other.there():
            ip("address", "add", "10.9.0.2/32", "dev", "lo")
            client, silent = socket.socket(), socket.socket()
        for s in (client, silent):
            s.bind(("10.9.0.2", 0))
            s.settimeout(net.LIMIT_S)
        text = f"[listen front]\naddress = {front}\nservice = echo\n"
        with client, silent, Packets("here") as packets, t.daemon(text) as daemon:
            port = net.parse(front)[1][1]
            silent.setblocking(False)
            silent.connect_ex(net.parse(front)[1])
            packets.wait(t, "a SYN", SYN, target_port=port)
            check_equal(packets.seen(SYN | ACK, source_port=port), [], "answers without the mark")
            daemon.reload(text + "mark = 9\n")
            client.connect(net.parse(front)[1])
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


def restricted_control():
    """A congestion control that not every process may use."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text(encoding="ascii").split()
    others = sorted(set(available) - set(Path(CONTROLS).read_text(encoding="ascii").split()))
    return others[0] if others else None


@test(needs=("setpriv",))
def without_privileges(t):
    """what an unprivileged process may not set is refused by -t and by the start, with line and capability"""
    if not is_root():
        raise Skipped("needs root")
    wanted = {"mark = 7": "CAP_NET_ADMIN", "transparent = yes": "CAP_NET_RAW",
              f"congestion = {restricted_control()}": "CAP_NET_ADMIN"}
    if not restricted_control():
        del wanted["congestion = None"]
    for option, capability in wanted.items():
        name = option.split()[0]
        path = t.write("c.ini", config(t.address(), t.address(), listen=option, upstream=option))
        for arguments in (["-t"], []):
            done = t.run("setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
                         t.options.reactord, *arguments, "-c", "/dev/stdin", stdin=open(path, encoding="ascii"))
            check_equal(done.code, 1, "exit code")
            for line, section in ((7, "listen front"), (10, "upstream back")):
                said = f":{line}: [{section}] {name}: this process may not set it (needs {capability}"
                check(said in done.err, f"{said} is not in {done.err}")


REFUSED = [
    {"option": "interface = nowhere0", "why": "there is no interface 'nowhere0'"},
    {"option": "congestion = nobody", "why": "the kernel does not have 'nobody'"},
    {"option": "interface = a/b", "why": "'a/b' is not a name"},
    {"option": "mark = 0x1ffffffff", "why": "'0x1ffffffff' is out of range"},
    {"option": "dscp = af44", "why": "'af44'"},
    {"option": "mss = 87", "why": "'87' is out of range"},
]


@test(each=REFUSED)
def refused(t, option, why):
    """{option} is refused by -t and at a reload, on both sides, with file and line"""
    front, back = t.address(), t.address()
    for where in ("listen", "upstream"):
        path = t.write("c.ini", config(front, back, **{where: option}))
        done = t.reactord("-t", "-c", path)
        check_equal(done.code, 1, "exit code")
        line = 7 if where == "listen" else 10
        check(f"{path}:{line}: [{where}" in done.err and why in done.err, done.err)
    with t.daemon(config(front, back)) as daemon, net.listen(back) as listener:
        lines = "\n".join(daemon.reload(config(front, back, upstream=option), wanted="refused"))
        check(why in lines, lines)
        with net.proxied(front, listener):
            pass
