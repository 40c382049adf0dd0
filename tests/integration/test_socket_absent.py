"""socket absent: addresses of listeners, and of connections to servers, that this host has only at times."""

from support import net
from support.case import check, check_equal, test
from support.network import ip
from support.own_network import own_network

ABSENT = {"IPv4": "203.0.113.7", "IPv6": "2001:db8:99::7"}


def echo(address, more=""):
    return f"[listen front]\naddress = {address}\nservice = echo\n{more}\n"


def come(host):
    ip("address", "add", host + ("/128" if ":" in host else "/32"), "dev", "lo", *(("nodad",) if ":" in host else ()))


def go(host):
    ip("address", "del", host + ("/128" if ":" in host else "/32"), "dev", "lo")


@test(needs=("ip",), each={"family": ["IPv4", "IPv6"]})
def listener(t, family):
    """with freebind a listener starts without its address of {family}, and has clients each time that the host has it"""
    own_network()
    host, port = ABSENT[family], t.port()
    address = f"[{host}]:{port}" if family == "IPv6" else f"{host}:{port}"
    with t.daemon(echo(address, "freebind = yes")):
        for _ in range(2):
            come(host)
            with net.connect(address) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            go(host)


@test(needs=("ip",))
def listener_without_freebind(t):
    """without freebind an absent address ends a start and refuses a reload, and both say what helps"""
    own_network()
    address = f"{ABSENT['IPv4']}:{t.port()}"
    done = t.reactord("-c", t.write("c.ini", echo(address)))
    check_equal(done.code, 3, "exit code")
    check("this host does not have it (freebind = yes" in done.err, done.err)
    here = t.address()
    with t.daemon(echo(here)) as daemon:
        lines = "\n".join(daemon.reload(echo(f"{here}, {address}"), wanted="refused"))
        check("this host does not have it (freebind = yes" in lines, lines)
        daemon.reload(echo(f"{here}, {address}", "freebind = yes"))
        come(ABSENT["IPv4"])
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test(needs=("ip",))
def source(t):
    """with freebind checks pass while the host does not have source_address; sessions fail, and come from it once it
    is there"""
    own_network()
    front, back, host = t.address(), t.address(), ABSENT["IPv4"]
    text = (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
            f"[upstream back]\nserver.a = {back}\nretries = 0\nsource_address = {host}\nfreebind = yes\n"
            "check = tcp\ncheck_interval = 50ms\ninitial_state = down\n")
    with net.listen(back) as server, t.daemon(text) as daemon:
        t.eventually(lambda: daemon.log_lines("server a: up: "), "the server is up")
        with net.connect(front) as client:
            check_equal(net.ending(client), "reset", "end of a client without source_address")
        check(daemon.log_lines("source_address is not an address of this host"), "no reason in the log")
        come(host)
        with net.connect(front) as client, net.accept(server) as connection:
            check_equal(connection.getpeername()[0], host, "where the session comes from")
            client.sendall(b"ping")
            check_equal(net.read_exactly(connection, 4), b"ping", "what came")
        check(not daemon.log_lines("server a: down"), "the server was down")
