"""upstream: which server gets a client, and what happens when one is down, slow or full."""

import contextlib
import re
import socket
import time
from collections import Counter

from support import net
from support.case import check, check_equal, test
from support.own_network import NameServer, SLOW_RESOLVER, own_names, own_network
from support.server import full_queue
from support.upstreams import config, who
from support.watch import Watch


class Servers:
    """Servers that greet with their name and close."""

    def __init__(self, t, names):
        self.addresses = {name: t.address() for name in names}
        self.open = contextlib.ExitStack()

    def __enter__(self):
        for name, address in self.addresses.items():
            self.start(name, address)
        return self

    def start(self, name, address):
        listener = self.open.enter_context(net.listen(address, 256))
        self.open.callback(listener.shutdown, socket.SHUT_RDWR)
        net.Task(self._serve, name, listener)

    @staticmethod
    def _serve(name, listener):
        listener.settimeout(None)
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as s:
                    s.sendall(name.encode())

    def __exit__(self, *_):
        self.open.close()


@test()
def equal_weights(t):
    """three servers of equal weight get every third client, in turn"""
    front = t.address()
    with Servers(t, "abc") as servers, t.daemon(config(front, servers.addresses)):
        got = [who(front) for _ in range(30)]
    check_equal(Counter(got), Counter(a=10, b=10, c=10), "clients per server")
    check(all(got[i] == got[i % 3] for i in range(30)), f"the order is {''.join(got)}")


@test()
def weights(t):
    """weights 5, 2 and 1 give 40, 16 and 8 of 64 clients, never long runs of one"""
    front = t.address()
    with Servers(t, "abc") as servers:
        of = servers.addresses
        lines = {"a": of["a"] + " weight=5", "b": of["b"] + " weight=2", "c": of["c"]}
        with t.daemon(config(front, lines)):
            got = "".join(who(front) for _ in range(64))
    check_equal(Counter(got), Counter(a=40, b=16, c=8), "clients per server")
    check("aaaa" not in got and "bb" not in got, f"the order is {got}")


@test()
def backup_waits(t):
    """a backup gets no client while another server answers"""
    front = t.address()
    with Servers(t, "ab") as servers:
        lines = {"a": servers.addresses["a"] + " weight=3 backup", "b": servers.addresses["b"]}
        with t.daemon(config(front, lines)):
            check_equal({who(front) for _ in range(12)}, {"b"}, "the servers that got clients")


@test()
def backup_steps_in(t):
    """when all others are down every client gets the backup, at once"""
    front = t.address()
    with Servers(t, "c") as servers:
        lines = {"a": t.address(), "b": t.address(), "c": servers.addresses["c"] + " backup"}
        with t.daemon(config(front, lines)):
            check_equal({who(front) for _ in range(12)}, {"c"}, "the servers that got clients")


@test()
def next_server(t):
    """with one of two servers down every client gets the other, and the log says why"""
    front = t.address()
    with Servers(t, "b") as servers:
        lines = {"a": t.address(), "b": servers.addresses["b"]}
        with t.daemon(config(front, lines)) as daemon:
            check_equal({who(front) for _ in range(12)}, {"b"}, "the servers that got clients")
            found = daemon.log_lines(r"upstream back.*\ba\b.*refused")
            check(found, "no log line about server a")
            check(lines["a"] in found[0], f"the address is not in: {found[0]}")


@test()
def server_comes_back(t):
    """a server that was down gets clients again as soon as it listens, without eject_failures"""
    front = t.address()
    down = t.address()
    with Servers(t, "b") as servers:
        with t.daemon(config(front, {"a": down, "b": servers.addresses["b"]}, "eject_failures = 0")):
            check_equal({who(front) for _ in range(6)}, {"b"}, "the servers while a is down")
            servers.start("a", down)
            check_equal({who(front) for _ in range(6)}, {"a", "b"}, "the servers afterwards")


@test()
def all_down(t):
    """with all servers down and without retries after a pause the client is reset at once, and the log
    says why"""
    front, back = t.address(), t.address()
    with t.daemon(config(front, {"only": back}, "retry_budget = 0")) as daemon:
        watch = Watch()
        check_equal(net.fate(front), "reset", "the client's end")
        watch.expect(0, 2 * t.scale, "it took long")
        found = daemon.log_lines(r"(warning|error).*back.*refused")
        check(found and back in found[0], f"the log has {found}")


@test()
def log_is_not_flooded(t):
    """300 clients of a server that is down cost a few log lines, not 300"""
    front, back = t.address(), t.address()
    with t.daemon(config(front, {"only": back}, "retry_budget = 0")) as daemon:
        began = time.monotonic()
        for _ in range(300):
            check_equal(net.fate(front), "reset", "the client's end")
        count = len(daemon.log_lines("refused"))
        check(1 <= count <= 3 + time.monotonic() - began, f"{count} lines")


@test(each=[{"retries": 0}, {"retries": 1}, {"retries": 2}])
def retries(t, retries):
    """with retries = {retries} the fourth server is not reached when three are down"""
    front = t.address()
    with Servers(t, "d") as servers:
        lines = {"a": t.address(), "b": t.address(), "c": t.address(),
                 "d": servers.addresses["d"] + " backup"}
        with t.daemon(config(front, lines, f"retries = {retries}\nretry_budget = 0")):
            check_equal(net.fate(front), "reset", "the client's end")


@test()
def enough_retries(t):
    """with retries = 3 the fourth server is reached when three are down"""
    front = t.address()
    with Servers(t, "d") as servers:
        lines = {"a": t.address(), "b": t.address(), "c": t.address(),
                 "d": servers.addresses["d"] + " backup"}
        with t.daemon(config(front, lines, "retries = 3")):
            check_equal(who(front), "d", "the server")


@test()
def connect_timeout(t):
    """a server that does not answer is given up after connect_timeout: reset, and a log line"""
    front, back = t.address(), t.address()
    with full_queue(back), t.daemon(
            config(front, {"only": back}, "connect_timeout = 500ms")) as daemon:
        watch = Watch()
        check_equal(net.fate(front), "reset", "the client's end")
        watch.expect(0.4, 3 * t.scale, "the client was reset")
        check(daemon.log_lines(r"back.*timed? ?out"), "no log line about a timeout")


@test()
def connect_timeout_then_next(t):
    """a client whose server does not answer gets the next one after connect_timeout, bytes and
    all"""
    front, slow = t.address(), t.address()
    with full_queue(slow), Servers(t, "b") as servers:
        lines = {"a": slow, "b": servers.addresses["b"] + " backup"}
        with t.daemon(config(front, lines, "connect_timeout = 300ms")):
            for _ in range(3):
                check_equal(who(front), "b", "the server")


@test()
def black_hole_among_addresses(t):
    """a server's first address that does not answer leaves its second one half of connect_timeout:
    it used to take all of it"""
    front, port = t.address(), t.port()
    own_names(t, hosts="127.0.0.2 twins.test\n127.0.0.3 twins.test\n")
    found = socket.getaddrinfo("twins.test", port, type=socket.SOCK_STREAM)
    hole, alive = (f"{where[0]}:{port}" for *_, where in found)
    with full_queue(hole), net.listen(alive) as listener:
        with t.daemon(config(front, {"only": f"twins.test:{port} resolve=one"}, "connect_timeout = 2s")):
            watch = Watch()
            with net.proxied(front, listener) as (client, server):
                watch.expect(0.8, 1.9 * t.scale, "the server was reached")
                client.sendall(b"hello")
                check_equal(net.read_exactly(server, 5), b"hello", "what the server got")


@test()
def abort_while_connecting(t):
    """a client's RST while its server is being connected ends the session within about a second: it
    used to wait for connect_timeout"""
    front, back = t.address(), t.address()
    options = "connect_timeout = 1m"
    with full_queue(back), t.daemon(config(front, {"only": back}, options)) as daemon:
        before = daemon.fd_count()
        clients = [net.connect(front) for _ in range(20)]
        t.eventually(lambda: daemon.fd_count() >= before + 30, "the servers being connected")
        for client in clients:
            net.reset(client)
        t.eventually(lambda: daemon.fd_count() <= before + 4, "the descriptors closed", within=3)


@test()
def full_unix_server(t):
    """a unix server whose queue is full gets the client when it takes connections again"""
    front, back = t.address(), t.path("back.sock")
    with net.listen(back, 0) as listener, contextlib.ExitStack() as queued:
        for _ in range(3):
            extra = queued.enter_context(socket.socket(socket.AF_UNIX))
            extra.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                extra.connect(back)
        with t.daemon(config(front, {"only": back}, "connect_timeout = 10s")):
            with net.connect(front) as client:
                client.sendall(b"hello")
                time.sleep(0.3)
                got = b""
                while not got:  # those that queued before say nothing
                    with net.accept(listener) as server:
                        server.settimeout(1)
                        with contextlib.suppress(TimeoutError):
                            got = server.recv(5)
                check_equal(got, b"hello", "what the server got")


@test()
def unix_server_not_there(t):
    """a unix server without a socket file counts as down, and the log names the path"""
    front, path = t.address(), t.path("nobody.sock")
    with Servers(t, "b") as servers:
        with t.daemon(config(front, {"a": path, "b": servers.addresses["b"]})) as daemon:
            check_equal({who(front) for _ in range(4)}, {"b"}, "the servers that got clients")
            check(daemon.log_lines(re.escape(path)), "no log line with the path")


def connects_to_itself(address):
    """Does a plain client, tried often, get such a connection?"""
    for _ in range(200):
        with contextlib.suppress(ConnectionRefusedError), net.connect(address) as s:
            return s.getsockname() == s.getpeername()
    return False


@test()
def no_connection_to_itself(t):
    """a server that is down on an ephemeral port is never "reached" by connecting to ourselves"""
    own_network(ports="40000 40007")
    front, down = "127.0.0.1:20000", "127.0.0.1:40004"
    check(connects_to_itself(down), "no socket gets connected to itself: the test asks nothing")
    with t.daemon(config(front, {"only": down}, "retry_budget = 0")):
        for _ in range(200):
            with contextlib.suppress(ConnectionResetError, BrokenPipeError), \
                    net.connect(front) as client:
                client.sendall(b"x")
                check_equal(client.recv(1), b"", "an answer from nobody")


@test()
def unknown_name(t):
    """a server whose name nobody knows is warned of once, and every client gets another server"""
    own_names(t)
    front = t.address()
    with Servers(t, "b") as servers:
        lines = {"a": f"nobody.test:{t.port()}", "b": servers.addresses["b"]}
        watch = Watch()
        with t.daemon(config(front, lines)) as daemon:
            watch.expect(0, 2.5 * t.scale, "the start waited for the name")
            check_equal({who(front) for _ in range(12)}, {"b"}, "the servers that got clients")
            found = daemon.log_lines(r"warning.*back.*\ba \(nobody.test:.*no such name.*within 10 s")
            check_equal(len(found), 1, "warnings that the name is not known")
            check(not daemon.log_lines("cannot connect"), "it was tried")


@test(plain_only=True)
def name_becomes_known(t):
    """a server whose name /etc/hosts gets only later is tried every 10 s, and has clients then"""
    own_names(t)
    front, port = t.address(), t.port()
    with Servers(t, "a") as servers:
        servers.start("a", f"127.0.0.7:{port}")
        with t.daemon(config(front, {"a": f"late.test:{port}"})) as daemon:
            check_equal(net.fate(front), "reset", "the client's end while the name is not known")
            t.write("hosts", "127.0.0.7 late.test\n")
            t.eventually(lambda: daemon.log_lines(r"notice.*late.test.*known: 127.0.0.7:"),
                         "the log says that the name is known", within=14)
            check_equal(who(front), "a", "the server")


@test()
def name_of_its_own_listener(t):
    """a name with an address that leads back to the proxy's own listener is an error in the log; its
    other address is used"""
    front = t.address()
    port = front.rpartition(":")[2]
    own_names(t, hosts="127.0.0.1 both.test\n127.0.0.7 both.test\n")
    with Servers(t, "") as servers:
        servers.start("a", f"127.0.0.7:{port}")
        with t.daemon(config(front, {"a": f"both.test:{port}"})) as daemon:
            check_equal({who(front) for _ in range(6)}, {"a"}, "the servers that got clients")
            found = daemon.log_lines(r"error.*back.*both.test.*proxy loop")
            check(len(found) == 1 and front in found[0], f"the log has {found}")


@test(plain_only=True)
def silent_name_server(t):
    """a name server that does not answer delays the start by 3 s and nothing else, and when it does
    answer the name is known"""
    with NameServer() as name_server, Servers(t, "b") as servers:
        own_names(t, "dns", servers=SLOW_RESOLVER)
        front, port = t.address(), t.port()
        servers.start("a", f"127.0.0.1:{port}")
        lines = {"a": f"far.test:{port}", "b": servers.addresses["b"]}
        watch = Watch()
        with t.daemon(config(front, lines)) as daemon:
            watch.expect(2.9, 3 + 3 * t.scale, "the start")
            check_equal({who(front) for _ in range(6)}, {"b"}, "the servers that got clients")
            check(daemon.log_lines(r"warning.*far.test.*still being looked up"), "no warning")
            name_server.speak()
            t.eventually(lambda: daemon.log_lines(r"notice.*far.test.*known: 127.0.0.1:"),
                         "the log says that the name is known")
            check_equal({who(front) for _ in range(6)}, {"a", "b"}, "the servers afterwards")


@test()
def stop_during_lookup(t):
    """a name server that does not answer does not keep it from ending, and the log names what is
    left"""
    with NameServer():
        own_names(t, "dns", servers=SLOW_RESOLVER)
        with t.daemon(config(t.address(), {"a": "far.test:7"})) as daemon:
            watch = Watch()
            daemon.stop()
            watch.expect(0, 5 + 3 * t.scale, "it took long")
            check(daemon.log_lines("look up a host name"), "the log does not name what is left")


@test()
def check_asks_nobody(t):
    """-t and --dump-config take a server's host name by its form and ask no name server"""
    path = t.write("c.ini", config(t.address(), {"a": "db.example.com:5432 weight=2"}))
    with NameServer() as name_server:
        own_names(t, "dns", servers=SLOW_RESOLVER + "options timeout:1 attempts:1\n")
        done = t.reactord("-t", "-c", path)
        check_equal((done.code, done.err), (0, ""), "exit code and stderr of -t")
        dump = t.reactord("--dump-config", "-c", path)
        check(re.search(r"^server\.a = db\.example\.com:5432 weight=2$", dump.out, re.M), dump.out)
        check(not name_server.asked(), "the name server was asked")
        with contextlib.suppress(socket.gaierror):
            socket.getaddrinfo("db.example.com", 5432)
        check(name_server.asked(), "nobody ever asks this name server: the test asks nothing")
