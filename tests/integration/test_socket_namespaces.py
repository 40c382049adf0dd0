"""socket namespaces: listeners and servers in other network namespaces than that of the daemon."""

import contextlib
import errno
import os
import re
import signal
import socket
from pathlib import Path

from support import descriptors, net, preload
from support.case import Skipped, check, check_equal, is_root, test
from support.chain import Chain
from support.namespaces import Namespace, namespaces
from support.network import ip
from support.own_network import own_names
from support.packets import SYN, Packets
from test_call_faults import CALLS
from test_socket_options import fastopen_mode

CLIENTS = 60
CAP_SYS_ADMIN = 1 << 21  # linux/capability.h


def listen(name, address, upstream, more=""):
    return f"[listen {name}]\naddress = {address}\nservice = proxy\nupstream = {upstream}\n{more}\n"


def upstream(name, address, more=""):
    return f"[upstream {name}]\nserver.a = {address}\nretries = 0\n{more}\n"


def in_namespace(namespace):
    return f"namespace = {namespace.name}" if namespace else ""


@contextlib.contextmanager
def standing(namespace):
    """In that namespace, or in the test's own."""
    with namespace.there() if namespace else contextlib.nullcontext():
        yield


def connect(address, namespace=None):
    with standing(namespace):
        return net.connect(address)


def served(address, listener, namespace=None):
    """A client there and the server that its session is with exchange something."""
    with connect(address, namespace) as client, net.accept(listener) as server:
        client.sendall(b"ping")
        check_equal(net.read_exactly(server, 4), b"ping", "what the server got")
        server.sendall(b"pong")
        check_equal(net.read_exactly(client, 4), b"pong", "what the client got")


def refused(address, namespace=None):
    try:
        connect(address, namespace).close()
    except ConnectionRefusedError:
        return True
    return False


def in_all(t, kind):
    """An address that means another socket in each namespace."""
    return {"IPv4": f"127.0.0.1:{t.port()}", "IPv6": f"[::1]:{t.port()}", "every address": f"*:{t.port()}",
            "abstract": f"@{t.path('front')}"}[kind]


@test(needs=("ip",), each={"kind": ["IPv4", "IPv6", "every address", "abstract"]})
def the_same_address_everywhere(t, kind):
    """listeners have the same address ({kind}) in three namespaces, and each gets the clients of its own"""
    with contextlib.ExitStack() as opened:
        places = [None, *opened.enter_context(namespaces(t, "red", "blue"))]
        front = in_all(t, kind)
        backs = [t.address() for _ in places]
        listeners = [opened.enter_context(net.listen(back)) for back in backs]
        text = "".join(listen(f"l{i}", front, f"u{i}", in_namespace(place)) + upstream(f"u{i}", backs[i])
                       for i, place in enumerate(places))
        opened.enter_context(t.daemon(text))
        for _ in range(3):
            for place, listener in zip(places, listeners):
                served(front.replace("*", "127.0.0.1"), listener, place)


class Accepted:
    """The connections of a listener, in no order."""

    def __init__(self, listener, opened):
        self._listener, self._opened, self._all = listener, opened, []
        listener.setblocking(False)

    def heard(self):
        """What each of them has to read now."""
        with contextlib.suppress(BlockingIOError):
            while True:
                self._all.append(self._opened.enter_context(self._listener.accept()[0]))
        return {self._peek(s) for s in self._all}

    @staticmethod
    def _peek(s):
        try:
            return s.recv(64, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""


@test(needs=("ip",))
def servers_in_namespaces(t):
    """clients, spares and health checks of an upstream with namespace go to the servers there, and nowhere else"""
    with namespaces(t, "red") as [red]:
        front, back = t.address(), t.address()
        with red.there():
            listener = net.listen(back)
        text = listen("front", front, "back") + upstream(
            "back", back, f"namespace = {red.path}\ncheck = tcp\ncheck_interval = 50ms\ninitial_state = down\nspare = 2")
        port = net.parse(back)[1][1]
        with listener, Packets("lo") as packets, t.daemon(text) as daemon:
            t.eventually(lambda: daemon.log_lines("server a: up: "), "the server is up")
            with connect(front) as client, contextlib.ExitStack() as opened:
                client.sendall(b"ping")
                accepted = Accepted(listener, opened)
                t.eventually(lambda: b"ping" in accepted.heard() and b"" in accepted.heard(), "a session and a spare")
            check_equal(packets.seen(SYN, target_port=port), [], "packets to it in the daemon's own network")


@test(needs=("ip",))
def names_are_looked_up_at_home(t):
    """the name of a server in a namespace is looked up in the daemon's, and it may be the address of a listener there"""
    with namespaces(t, "red") as [red]:
        own_names(t, hosts="127.0.0.1 there.test\n")
        front, port = t.address(), t.port()
        with red.there():
            listener = net.listen(f"127.0.0.1:{port}")
        text = listen("front", f"{front}, 127.0.0.1:{port}", "back") + upstream(
            "back", f"there.test:{port}", "namespace = red")
        with listener, t.daemon(text):
            served(front, listener)


@test(needs=("ip",))
def threads_come_back(t):
    """one worker that connects to the same address in three namespaces in turn mixes up none of many clients"""
    with contextlib.ExitStack() as opened:
        places = [None, *opened.enter_context(namespaces(t, "red", "blue"))]
        back = t.address()
        fronts, listeners = [t.address() for _ in places], []
        for place in places:
            with standing(place):
                listeners.append(opened.enter_context(net.listen(back)))
        text = "[worker]\nthreads = 1\n" + "".join(
            listen(f"l{i}", fronts[i], f"u{i}") + upstream(f"u{i}", back, in_namespace(place))
            for i, place in enumerate(places))
        opened.enter_context(t.daemon(text))
        clients = [(i % len(places), opened.enter_context(connect(fronts[i % len(places)]))) for i in range(CLIENTS)]
        for i, client in clients:
            client.sendall(b"%d" % i)
        for i, listener in enumerate(listeners):
            for _ in range(CLIENTS // len(places)):
                with net.accept(listener) as server:
                    check_equal(net.read_exactly(server, 1), b"%d" % i, "whose client it is")


@test(needs=("ip",))
def a_namespace_made_anew(t):
    """a deleted namespace lives on for listener and servers; a reload is refused without it, and takes the new one"""
    with namespaces(t, "red") as [red]:
        front, back = t.address(), t.address()
        with red.there():
            listener = net.listen(back)
        text = listen("front", front, "back", "namespace = red") + upstream("back", back, "namespace = red")
        with listener, t.daemon(text) as daemon, connect(front, red) as old, net.accept(listener) as old_server:
            kept = os.open(red.path, os.O_RDONLY)
            red.remove()
            lines = "\n".join(daemon.reload(wanted="refused"))
            check("[listen front] namespace: there is no 'red' in /run/netns" in lines, lines)
            check("[upstream back] namespace: there is no 'red' in /run/netns" in lines, lines)
            new = Namespace("red")
            with new.there():
                new_listener = net.listen(back)
            with new_listener:
                check(refused(front, new), "it listens in the new namespace already")
                lines = "\n".join(daemon.reload())
                check("[listen front] namespace: the network namespace was made anew" in lines, lines)
                served(front, new_listener, new)
                old.sendall(b"still")
                check_equal(net.read_exactly(old_server, 5), b"still", "what the old server got")
                files = sum("netns" in link for link in descriptors.of_process(daemon.pid).values())
                daemon.reload(wanted="nothing has changed")
                daemon.reload(text + "keepalive = 60s\n")
                now = sum("netns" in link for link in descriptors.of_process(daemon.pid).values())
                check(now <= files, f"{now} namespaces are open, {files} were")
            os.close(kept)


@test(needs=("ip",))
def a_listener_that_moves(t):
    """a reload moves a listener to another namespace: clients there are served, those of the old one refused"""
    with namespaces(t, "red", "blue") as [red, blue]:
        front, back = t.address(), t.address()
        text = listen("front", front, "back", "namespace = red") + upstream("back", back)
        with net.listen(back) as listener, t.daemon(text) as daemon:
            served(front, listener, red)
            check(refused(front) and refused(front, blue), "it listens elsewhere, too")
            lines = "\n".join(daemon.reload(text.replace("= red", "= blue")))
            check("[listen front] namespace: red -> blue (new connections)" in lines, lines)
            served(front, listener, blue)
            check(refused(front, red), "it still listens in the old namespace")
            daemon.reload(text.replace("namespace = red", ""))
            served(front, listener)
            check(refused(front, blue), "it still listens in the old namespace")


@test(needs=("ip",))
def over_an_upgrade(t):
    """an upgrade hands over listeners of one address in two namespaces; clients that wait in their queues are served"""
    with namespaces(t, "red", "blue") as places:
        front, backs = t.address(), [t.address() for _ in range(2)]
        text = "".join(listen(f"l{i}", front, f"u{i}", in_namespace(place)) + upstream(f"u{i}", backs[i])
                       for i, place in enumerate(places))
        with net.listen(backs[0]) as one, net.listen(backs[1]) as other, Chain(t, text) as chain:
            for _ in range(2):
                inodes = listening_inodes(places, front)
                chain.upgrade()
                for place, listener in zip(places, (one, other)):
                    served(front, listener, place)
                check_equal(listening_inodes(places, front), inodes, "inodes of listen sockets")
            chain.stop()
            for pid in chain.old:
                chain.wait_gone(pid)


def listening_inodes(places, front):
    """Those of the sockets that listen at that address of IPv4, in each namespace."""
    found, port = set(), net.parse(front)[1][1]
    for place in places:
        with place.there(), open("/proc/thread-self/net/tcp", encoding="ascii") as f:
            here = {line.split()[9] for line in f if f":{port:04X} 00000000:0000 0A" in line}
        check(here, f"no socket listens in {place}")
        found |= here
    return found


@test(needs=("ip",))
def over_a_restart(t):
    """sockets of one address in two namespaces that the service manager stores come back to their listeners"""
    with namespaces(t, "red", "blue") as places:
        front, backs = t.address(), [t.address() for _ in range(2)]
        text = "".join(listen(f"l{i}", front, f"u{i}", in_namespace(place)) + upstream(f"u{i}", backs[i])
                       for i, place in enumerate(places))
        how = {"environment": {"FDSTORE": "16"}}
        with net.listen(backs[0]) as one, net.listen(backs[1]) as other:
            with t.daemon(text, **how) as daemon:
                check_equal(len({name for name, _ in daemon.stored}), 2, "names in the store")
            waiting = [connect(front, place) for place in places]
            with t.daemon(text, inherited=list(reversed(daemon.stored)), **how):
                for client, listener in zip(waiting, (one, other)):
                    client.sendall(b"hello")
                    with client, net.accept(listener) as server:
                        check_equal(net.read_exactly(server, 5), b"hello", "what the server got")


@test(needs=("ip",))
def without_root(t):
    """with user and seccomp the namespaces of the start keep CAP_SYS_ADMIN, and one that a reload adds is refused"""
    if not is_root():
        raise Skipped("needs root")
    with namespaces(t, "red") as [red]:
        front, other, back = t.address(), t.address(), t.address()
        process = "[reactord]\nuser = nobody\n" + ("" if t.sanitized else "seccomp = yes\n")
        with red.there():
            listener = net.listen(back)
        plain = process + listen("front", front, "back") + upstream("back", back)
        both = plain + "namespace = red\n"
        with listener, t.daemon(both) as daemon:
            check_equal(int(daemon.status("CapEff"), 16) & CAP_SYS_ADMIN, CAP_SYS_ADMIN, "CAP_SYS_ADMIN")
            served(front, listener)
            daemon.reload(both + listen("more", other, "back", "namespace = red"))
            served(other, listener, red)
        with t.daemon(plain) as daemon:
            check_equal(int(daemon.status("CapEff"), 16) & CAP_SYS_ADMIN, 0, "CAP_SYS_ADMIN")
            lines = "\n".join(daemon.reload(both, wanted="refused"))
            check(re.search(r"\[upstream back\] namespace: .*needs CAP_SYS_ADMIN", lines), lines)
            check_equal(net.fate(front), "reset", "a client of the daemon's own namespace")


@test(needs=("ip", "setpriv"))
def without_privileges(t):
    """an unprivileged user who tests a configuration with namespaces is told what is missing, once for each"""
    if not is_root():
        raise Skipped("needs root")
    with namespaces(t, "red"):
        front = t.address()
        path = t.write("c.ini", listen("front", front, "back", "namespace = red") +
                       listen("same", front, "back") + upstream("back", front, "namespace = red"))
        done = t.run("setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
                     t.options.reactord, "-t", "-c", "/dev/stdin", stdin=open(path, encoding="ascii"))
        check_equal(done.code, 1, "exit code")
        check_equal(re.findall(r":(\d+): (\[.*?\] \w+): .*CAP_SYS_ADMIN", done.err),
                    [("5", "[listen front] namespace"), ("14", "[upstream back] namespace")], "what is told")
        check_equal(done.err.count("\n"), 2, f"lines: {done.err}")
        path = t.write("c.ini", upstream("back", front, f"namespace = /proc/{os.getpid()}/ns/net"))
        done = t.run("setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
                     t.options.reactord, "-t", "-c", "/dev/stdin", stdin=open(path, encoding="ascii"))
        check(re.search(r"namespace: this process may not open .*needs CAP_SYS_ADMIN", done.err), done.err)


BAD = [
    {"value": "nowhere", "why": "there is no 'nowhere' in /run/netns"},
    {"value": "/nowhere/net", "why": "there is no '/nowhere/net'"},
    {"value": "*", "why": "there is no '*' in /run/netns"},
    {"value": "a/b", "why": "'a/b' is neither a name nor an absolute path"},
    {"value": "..", "why": "'..' is neither a name nor an absolute path"},
    {"value": "/run/", "why": "'/run/' is not the path of a file"},
    {"value": "/run", "why": "'/run' is not a network namespace"},
    {"value": "/etc/passwd", "why": "'/etc/passwd' is not a network namespace"},
    {"value": "/proc/self/ns/uts", "why": "'/proc/self/ns/uts' is not a network namespace"},
    {"value": "/dev/null", "why": "'/dev/null' is not a network namespace"},
    {"value": "/dev/null/net", "why": "'/dev/null/net' cannot be opened: Not a directory (a network namespace, such as"},
    {"value": "/" + 300 * "x", "why": "'/xxx", "also": "cannot be opened: File name too long (a network namespace, such as"},
    {"value": "LOOP", "why": "'LOOP' cannot be opened: Too many levels of symbolic links (a network namespace, such as",
     "loops": True},
]


@test(each=[{"also": "", "loops": False, **bad} for bad in BAD])
def bad_values(t, value, why, also, loops):
    """namespace = {value} is refused by -t on both sides, with file and line"""
    if loops:
        link = Path(t.path("loop"))
        link.symlink_to(link)
        value, why = str(link), why.replace("LOOP", str(link))
    text = listen("front", t.address(), "back", f"namespace = {value}") + upstream(
        "back", t.address(), f"namespace = {value}")
    path = t.write("c.ini", text)
    done = t.reactord("-t", "-c", path)
    check_equal(done.code, 1, "exit code")
    check(f"{path}:5: [listen front] namespace: {why}" in done.err, done.err)
    check(f"{path}:9: [upstream back] namespace: {why}" in done.err, done.err)
    check_equal(done.err.count("\n"), 2, f"lines: {done.err}")
    check(all(also in line for line in done.err.splitlines()), f"what is allowed: {done.err}")


@test(needs=("ip",))
def one_namespace_is_one(t):
    """an address twice in one namespace, by name and by path, is refused, and so are a loop in it and a zone"""
    with namespaces(t, "red") as [red]:
        front = t.address()
        path = t.write("c.ini", listen("one", front, "back", "namespace = red") +
                       listen("other", front, "back", f"namespace = {red.path}") +
                       listen("zone", f"[fe80::1%lo]:{t.port()}", "back", "namespace = red") +
                       upstream("back", front, "namespace = red"))
        done = t.reactord("-t", "-c", path)
        check_equal(done.code, 1, "exit code")
        for said in (f"{path}:7: [listen other] address: '{front}' is taken", f"{path}:12: [listen zone] address: the zone",
                     f"{path}:17: [upstream back] server.a: '{front}' is where [listen one] listens"):
            check(said in done.err, f"{said} is not in {done.err}")


@test(needs=("ip",))
def the_own_namespace(t):
    """a namespace that is the daemon's own is as good as none: addresses conflict, and nothing is kept open"""
    with namespaces(t, "red"):
        front, back, own = t.address(), t.address(), "namespace = /proc/self/ns/net"
        text = listen("front", front, "back", own) + upstream("back", back, own)
        path = t.write("c.ini", text + listen("other", front, "back"))
        check("is taken" in t.reactord("-t", "-c", path).err, "two listeners have the same address")
        with net.listen(back) as listener, t.daemon(text) as daemon:
            served(front, listener)
            links = descriptors.of_process(daemon.pid).values()
            check_equal([link for link in links if link.startswith("net:")], [], "open namespaces")


@test(needs=("ip",))
def options_in_a_namespace(t):
    """interface and net.ipv4.tcp_fastopen are those of the namespace"""
    with namespaces(t, "red") as [red]:
        with red.there():
            ip("link", "add", "only_red", "type", "veth", "peer", "name", "other_red")
            fastopen_mode(3)
        fastopen_mode(1)
        front = listen("front", t.address(), "back", "namespace = red\ninterface = only_red\nfastopen = 16")
        back = upstream("back", t.address(), "interface = only_red\nnamespace = red")
        path = t.write("c.ini", front + back)
        done = t.reactord("-t", "-c", path)
        check_equal((done.code, done.err), (0, ""), "with the namespace")
        path = t.write("c.ini", (front + back).replace("namespace = red\n", "\n"))
        done = t.reactord("-t", "-c", path)
        check("interface: there is no interface 'only_red'" in done.err, done.err)
        check("fastopen: has no effect while net.ipv4.tcp_fastopen is 1" in done.err, done.err)


@test(needs=("cc", "ip"))
def a_thread_that_cannot_return(t):
    """a process one of whose threads cannot leave a namespace says so and aborts, before it serves anybody there"""
    with namespaces(t, "red") as [red]:
        faults, setns = preload.Preload(t, "call_fault"), CALLS.index("setns")
        front, back = t.address(), t.address()
        with red.there():
            listener = net.listen(back)
        daemon = t.daemon(listen("front", front, "back") + upstream("back", back, "namespace = red"),
                          environment=faults.environment())
        with listener:
            daemon.start()
            try:
                served(front, listener)
                faults.plan(setns, 1, value=errno.ENOMEM, skip=1, thread="work")
                with contextlib.suppress(ConnectionResetError), connect(front):
                    check_equal(daemon.process.wait(net.LIMIT_S), -signal.SIGABRT, "exit status")
                check(daemon.log_lines("this thread cannot return from a network namespace"), daemon.log())
                listener.settimeout(0)
                with contextlib.suppress(BlockingIOError), listener.accept()[0] as server:
                    check_equal(server.recv(1), b"", "what came")
            finally:
                daemon.kill()


@test(needs=("cc", "ip"))
def a_namespace_that_is_refused_late(t):
    """a connect that may not enter its namespace any more fails with that reason, and ejects no server"""
    with namespaces(t, "red") as [red]:
        faults, setns = preload.Preload(t, "call_fault"), CALLS.index("setns")
        front, back = t.address(), t.address()
        with red.there():
            listener = net.listen(back)
        text = listen("front", front, "back") + upstream("back", back, "namespace = red\neject_failures = 1")
        with listener, t.daemon(text, environment=faults.environment()) as daemon:
            faults.plan(setns, 1, value=errno.EPERM, thread="work")
            check_equal(net.fate(front), "reset", "the client's end")
            check(daemon.log_lines("no permission to enter the network namespace"), daemon.log())
            served(front, listener)
