"""listen: every kind of address, alone and together, and what happens to socket files."""

import contextlib
import os
import pwd
import signal
import socket
import stat
import threading

from support import net
from support.case import check, check_equal, is_root, test
from test_proxy import proxy


def echo_config(name, address, options=""):
    return f"[listen {name}]\naddress = {address}\nservice = echo\n{options}\n"


def port_of(address):
    return int(address.rpartition(":")[2])


def expect_echo(address, message=b"hello"):
    with net.connect(address) as client:
        check_equal(net.exchange(client, message), message, f"the echo from {address}")


def refused(address):
    try:
        net.connect(address, limit_s=2).close()
        return False
    except (ConnectionRefusedError, FileNotFoundError):
        return True


@test(each=[{"kind": "IPv4"}, {"kind": "IPv6"}, {"kind": "unix path"}, {"kind": "abstract"}])
def one_kind(t, kind):
    """an echo answers on an address of kind {kind}, and no more after the stop"""
    address = {"IPv4": t.address(), "IPv6": f"[::1]:{t.port()}", "unix path": t.path("x.sock"),
               "abstract": f"@reactord-test-{os.getpid()}"}[kind]
    with t.daemon(echo_config("one", address)) as daemon:
        expect_echo(address)
        daemon.stop()
    check(refused(address), f"{address} still takes connections")


@test()
def all_kinds_in_one_listener(t):
    """one listener with four addresses answers on each"""
    addresses = [t.address(), f"[::1]:{t.port()}", t.path("x.sock"), f"@reactord-all-{os.getpid()}"]
    with t.daemon(echo_config("all", ", ".join(addresses))):
        for address in addresses:
            expect_echo(address)


@test()
def wildcard(t):
    """*:PORT answers on IPv4 and on IPv6"""
    port = t.port()
    with t.daemon(echo_config("any", f"*:{port}")):
        expect_echo(f"127.0.0.1:{port}")
        expect_echo(f"127.0.0.2:{port}")
        expect_echo(f"[::1]:{port}")


@test()
def ipv6_only(t):
    """[::]:PORT does not take the IPv4 port, which another listener can have"""
    port = t.port()
    config = (echo_config("six", f"[::]:{port}")
              + echo_config("four", f"127.0.0.1:{port}", "pipeline = log"))
    with t.daemon(config):
        expect_echo(f"[::1]:{port}")
        expect_echo(f"127.0.0.1:{port}")


@test()
def named_as_an_address(t):
    """a client bound to the path 10.0.0.1:1234 is a unix client in the access log, and no IP
    address"""
    sock, log = t.path("x.sock"), t.path("access.log")
    os.chdir(t.dir)
    with t.daemon(echo_config("file", sock, f"access_log = {log}")):
        with socket.socket(socket.AF_UNIX) as client:
            client.bind("10.0.0.1:1234")
            client.connect(sock)
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        t.eventually(lambda: os.path.getsize(log), "a line in the access log")
    with open(log, encoding="ascii") as f:
        line = f.read()
    check(" unix:10.0.0.1:1234 " in line, f"the line is {line}")


@test()
def several_listeners_and_boss_threads(t):
    """six listeners on two boss threads all answer, at the same time"""
    addresses = [t.address() for _ in range(6)]
    config = "[boss]\nthreads = 2\naccept_batch = 2\n" + "".join(
        echo_config(f"echo-{i}", address) for i, address in enumerate(addresses))
    failures = []

    def ask(address):
        try:
            for _ in range(20):
                expect_echo(address)
        except Exception as error:
            failures.append(f"{address}: {error}")

    with t.daemon(config):
        threads = [threading.Thread(target=ask, args=(address,)) for address in addresses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    check(not failures, "; ".join(failures))


@test()
def reuseport(t):
    """reuseport = 2 opens two listen sockets on the port, and every connection is answered"""
    address = t.address()
    with t.daemon("[boss]\nthreads = 2\n" + echo_config("two", address, "reuseport = 2")):
        check_equal(net.listening(port_of(address)), 2, "listen sockets")
        for _ in range(60):
            expect_echo(address)


@test()
def restart_at_once(t):
    """a restart gets its port back at once, connections of the last run in TIME_WAIT or not"""
    address = t.address()
    for _ in range(3):
        with t.daemon(echo_config("again", address)) as daemon:
            with net.connect(address) as client:
                net.exchange(client, b"x")
                daemon.send_signal(signal.SIGTERM)
                check_equal(net.read_to_end(client), b"", "behind the echo")  # its FIN is first


@test()
def socket_file(t):
    """a unix socket's file is there while it runs, and removed at the stop"""
    path = t.path("x.sock")
    with t.daemon(echo_config("file", path)) as daemon:
        check(stat.S_ISSOCK(os.stat(path).st_mode), "no socket file")
        daemon.stop()
    check(not os.path.lexists(path), "the socket file is still there")


@test(each=[{"umask": "000"}, {"umask": "077"}])
def owner_and_mode(t, umask):
    """unix_mode, unix_user and unix_group are those of the socket file from the start, with umask
    {umask}"""
    path, root = t.path("x.sock"), is_root()
    options = "unix_mode = 660\n" + ("unix_user = nobody\nunix_group = 4321\n" if root else "")
    usual = os.umask(int(umask, 8))
    try:
        with t.daemon(echo_config("file", path, options)):
            made = os.stat(path)
            expect_echo(path)
    finally:
        os.umask(usual)
    check_equal(stat.filemode(made.st_mode), "srw-rw----", "the mode")
    if root:
        check_equal((made.st_uid, made.st_gid), (pwd.getpwnam("nobody").pw_uid, 4321), "the owner")


@test()
def mode_of_a_listener_renamed(t):
    """unix_mode of the listener that gets the address of another by a reload is that of the file"""
    path = t.path("x.sock")
    with t.daemon(echo_config("one", path, "unix_mode = 660\n")) as daemon:
        daemon.reload(echo_config("two", path, "unix_mode = 606\n"))
        check_equal(stat.filemode(os.stat(path).st_mode), "srw----rw-", "the mode")
        expect_echo(path)


@test()
def stale_socket_file(t):
    """the socket file of a killed instance is replaced"""
    path = t.path("x.sock")
    with net.listen(path):
        pass
    check(os.path.exists(path), "closing a listener does not remove its file")
    with t.daemon(echo_config("stale", path)):
        expect_echo(path)


@test()
def live_socket_file(t):
    """the socket file of a running server is refused with exit code 3, and that server goes on"""
    path = t.path("x.sock")
    config = echo_config("live", path)
    with t.daemon(config):
        done = t.reactord("-c", t.write("second.ini", config))
        check_equal(done.code, 3, "exit code")
        check(path in done.err, f"stderr does not name it: {done.err}")
        expect_echo(path)


@test()
def socket_file_of_the_successor(t):
    """a daemon that ends after its successor has started leaves the successor's socket file alone:
    it used to remove it"""
    path, front, back = t.path("x.sock"), t.address(), t.address()
    config = echo_config("file", path) + proxy(front, back)
    with net.listen(back) as listener, t.daemon(config) as first, contextlib.ExitStack() as stack:
        with net.proxied(front, listener):
            first.send_signal(signal.SIGTERM)
            t.eventually(lambda: not os.path.exists(path), "the file of the first removed")
            stack.enter_context(t.daemon(echo_config("file", path)))
        check_equal(first.wait(), 0, "exit code")
        expect_echo(path)


@test()
def other_file_in_the_way(t):
    """a plain file where the socket should be is refused with exit code 3 and not touched"""
    path = t.write("x.sock", "precious")
    done = t.reactord("-c", t.write("c.ini", echo_config("file", path)))
    check_equal(done.code, 3, "exit code")
    with open(path, encoding="ascii") as f:
        check_equal(f.read(), "precious", "the file")


@test()
def socket_in_no_directory(t):
    """a socket path in a directory that does not exist is refused with exit code 3"""
    path = t.path("nowhere/x.sock")
    done = t.reactord("-c", t.write("c.ini", echo_config("file", path)))
    check_equal(done.code, 3, "exit code")
    check(path in done.err, f"stderr does not name it: {done.err}")


@test()
def accept_batch_of_one(t):
    """accept_batch = 1 still serve 100 connections that come at once"""
    address = t.address()
    with t.daemon("[boss]\naccept_batch = 1\n" + echo_config("slow", address, "backlog = 64")):
        clients = [net.connect(address) for _ in range(100)]
        for client in clients:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
            client.close()


def loads(daemon):
    """The connections of each of the four workers."""
    return [daemon.counts(f"work-2-{i} ")["connections"] for i in range(1, 5)]


@test(each=[{"chooser": "round_robin", "least": 0, "most": 40},
            {"chooser": "shuffled", "least": 8, "most": 13}])
def pattern(t, chooser, least, most):
    """chooser = {chooser}: one long and three short ones in turn, 40 times, with a probe of another
    listener now and then: each of four workers has {least} to {most} of the long ones"""
    address, other = t.address(), t.address()
    config = (f"[boss]\nthreads = 1\n[worker]\nthreads = 4\nchooser = {chooser}\n" + echo_config("many", address)
              + echo_config("other", other))
    with t.daemon(config) as daemon, contextlib.ExitStack() as stack:
        for i in range(160):
            client = net.connect(address)
            net.exchange(client, b"x")
            if i % 4 == 0:
                stack.enter_context(client)
            else:
                client.close()
            if i % 40 == 0:
                for _ in range(4):
                    with net.connect(other) as probe:
                        net.exchange(probe, b"x")
        t.eventually(lambda: sum(loads(daemon)) == 40, "only the long ones are left")
        found = loads(daemon)
        check(least <= min(found) and max(found) <= most, f"long ones: {found}")
        check_equal(max(found) == 40, chooser == "round_robin", f"one has all: {found}")


@test(each={"chooser": ["shuffled", "round_robin", "least_connections", "p2c"]})
def choosers(t, chooser):
    """chooser = {chooser}: 60 connections on three workers are all served"""
    address = t.address()
    config = f"[worker]\nthreads = 3\nchooser = {chooser}\n" + echo_config("many", address)
    with t.daemon(config):
        clients = [net.connect(address) for _ in range(60)]
        for client in clients:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        for client in clients:
            client.close()
