"""resolvers: upstreams that ask name servers of their own."""

import contextlib
import socket
import struct
import threading

from support import net
from support.case import check, check_equal, test
from support.server import Counted
from test_names import EVERY_SECOND, addresses
from test_upstream import own_names
from test_zones import Zone

ENDLESS = "endless"


def section(name, servers, more="timeout = 100ms\ntries = 1\n"):
    return f"[resolver {name}]\nservers = {servers}\n{more}\n"


def proxy(front, name, line, resolver, more=EVERY_SECOND):
    return (f"[listen {name}]\naddress = {front}\nservice = proxy\nupstream = {name}\n"
            f"[upstream {name}]\nserver.s = {line}\nresolver = {resolver}\n{more}\n")


class Endless:
    """A name server that answers each question with messages that are no answers to it, for ever."""

    def __init__(self, port):
        self.address = f"127.0.0.1:{port}"
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", port))
        self.clients, self.is_over = set(), threading.Event()

    def __enter__(self):
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._listen, self._talk)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.threads[1].join()
        self.socket.close()

    def _listen(self):
        with contextlib.suppress(OSError):
            while True:
                query, client = self.socket.recvfrom(512)
                self.clients.add((struct.pack("!H", ~struct.unpack("!H", query[:2])[0] & 0xffff) + query[2:], client))

    def _talk(self):
        while not self.is_over.wait(0.001):
            for message, client in list(self.clients):
                with contextlib.suppress(OSError):
                    self.socket.sendto(message, client)


@test()
def views(t):
    """each upstream asks its own name servers, not those of the system, and not /etc/hosts"""
    fronts, port = (t.address(), t.address()), t.port()
    own_names(t, "files dns", hosts="127.0.1.9 app.test\n", servers="nameserver 127.0.0.9\n")
    with Zone(t, {"app.test": "127.0.1.1"}, port=t.port()) as one, \
            Zone(t, {"app.test": "127.0.1.2"}, port=t.port()) as other, \
            Counted(f"[::]:{port}", greets=True):
        text = "".join((section("one", one.address), section("other", other.address),
                        proxy(fronts[0], "a", f"app.test:{port}", "one"),
                        proxy(fronts[1], "b", f"app.test.:{port}", "other")))
        with t.daemon(text):
            check_equal(addresses(fronts[0], 4), {"127.0.1.1"}, "addresses by the one")
            check_equal(addresses(fronts[1], 4), {"127.0.1.2"}, "addresses by the other")


@test(each={"dead": ["silent", "endless", "not there"]})
def next_server(t, dead):
    """a name server that is {dead} is followed by the next one, which is then asked first"""
    front, port = t.address(), t.port()
    with contextlib.ExitStack() as stack:
        first = f"127.0.0.1:{t.port()}"
        if dead == "endless":
            first = stack.enter_context(Endless(t.port())).address
        elif dead == "silent":
            s = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            s.bind(("127.0.0.1", int(first.rpartition(":")[2])))
        zone = stack.enter_context(Zone(t, {"app.test": "127.0.1.1"}, port=t.port()))
        stack.enter_context(Counted(f"[::]:{port}", greets=True))
        stack.enter_context(t.daemon(section("own", f"{first}, {zone.address}")
                                     + proxy(front, "a", f"app.test:{port}", "own")))
        t.eventually(lambda: zone.asked["app.test"], "the other one is asked")
        t.eventually(lambda: _served(front), "clients are served")
        check_equal(addresses(front, 4), {"127.0.1.1"}, "addresses")


def _served(front):
    with contextlib.suppress(OSError), net.connect(front) as s:
        return s.recv(1) != b""
    return False


@test()
def reloads(t):
    """after a reload that changes the name servers of a section known addresses stay; those of another
    section are asked before it is in use; a section whose name servers are silent is refused"""
    front, port = t.address(), t.port()
    with Zone(t, {"app.test": "127.0.1.1"}, port=t.port()) as one, \
            Zone(t, {"app.test": "127.0.1.2"}, port=t.port()) as other, \
            Counted(f"[::]:{port}", greets=True):
        silent = f"127.0.0.1:{t.port()}"
        proxied = proxy(front, "a", f"app.test:{port}", "own")
        with t.daemon(section("own", one.address) + proxied) as daemon:
            check_equal(addresses(front, 4), {"127.0.1.1"}, "addresses at the start")
            daemon.reload(section("own", silent) + proxied)
            check_equal(addresses(front, 4), {"127.0.1.1"}, "addresses with a silent name server")
            daemon.reload(section("other", other.address) + proxied.replace("= own", "= other"))
            check_equal(addresses(front, 4), {"127.0.1.2"}, "addresses by another section")
            daemon.reload(section("third", silent) + proxied.replace("= own", "= third"), wanted="refused")
            check(daemon.log_lines(rf"error.*server s \(app.test:{port}, resolver third\): the name has no address yet"),
                  "the log names the name and who is asked")
            check(daemon.log_lines(rf"server s \(app.test:{port}, resolver other\): the name is known: 127.0.1.2:"),
                  "the log names who was asked")
            check_equal(addresses(front, 4), {"127.0.1.2"}, "addresses after a refused reload")


@test()
def reload_beside_names_without_answers(t):
    """a reload does not wait for the lookups of names whose name server is silent, nor does the name of another one"""
    fronts, port = (t.address(), t.address()), t.port()
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        silent.bind(("127.0.0.1", t.port()))
        zone = stack.enter_context(Zone(t, {"app.test": "127.0.1.1"}, port=t.port()))
        stack.enter_context(Counted(f"[::]:{port}", greets=True))
        names = "".join(f"server.n{i} = n{i}.test:7\n" for i in range(20))
        text = (section("own", f"127.0.0.1:{silent.getsockname()[1]}", "timeout = 10s\ntries = 3\n")
                + proxy(fronts[0], "a", "127.0.0.1:9", "own", more=names))
        daemon = stack.enter_context(t.daemon(text))
        daemon.reload(text + section("other", zone.address) + proxy(fronts[1], "b", f"app.test:{port}", "other"))
        check_equal(daemon.log_lines("cannot look up the name"), [], "lookups that have ended before")
        check_equal(addresses(fronts[1], 4), {"127.0.1.1"}, "addresses of the other")
