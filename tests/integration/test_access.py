"""access: which clients a listener lets in, from lists and files, and what becomes of the others."""

import re
import signal
import socket

from support import net
from support.case import check, check_equal, test

RULES = 100_000


def echo(address, options):
    return f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n"


def client(address, source):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=10, source_address=(source, 0))


def served(address, source):
    """Does a client from that address get its echo?"""
    try:
        with client(address, source) as s:
            return net.exchange(s, b"hello") == b"hello"
    except (OSError, EOFError):
        return False


def ending(address, source):
    """How a client from that address ends that says nothing."""
    return net.sent_away(client, address, source)


@test()
def lists(t):
    """deny comes first, then allow, and whoever is in neither is turned away"""
    address = t.address()
    config = echo(address, "allow = 127.0.0.0/24\ndeny = 127.0.0.5")
    with t.daemon(config) as daemon:
        check(served(address, "127.0.0.1"), "an address of allow is not served")
        check_equal(ending(address, "127.0.0.5"), "reset", "an address of both")
        check_equal(ending(address, "127.0.1.1"), "reset", "an address of neither")
        t.eventually(lambda: daemon.log_lines(r"client 127.0.0.5:\d+: denied by rule 127.0.0.5/32"),
                     "the log tells of a client that is turned away")


@test(each=[{"how": "reset", "seen": "reset"}, {"how": "close", "seen": "fin"}])
def how_it_ends(t, how, seen):
    """on_deny = {how}: a client that is turned away sees {seen}, and is counted"""
    address = t.address()
    with t.daemon(echo(address, f"deny = all\non_deny = {how}")) as daemon:
        for _ in range(20):
            check_equal(ending(address, "127.0.0.1"), seen, "it ends by")
        daemon.send_signal(signal.SIGRTMIN)
        t.eventually(lambda: daemon.log_lines(r"stats listen echo .*denied=20"), "20 are counted")
        check(daemon.log_lines(r"stats listen echo sessions=0 .*limit=20"), "the reason is the limit")


@test()
def unix_clients(t):
    """clients of a unix socket are let in by `unix`, and by nothing else"""
    address, path = t.address(), t.path("x.sock")
    with t.daemon(echo(f"{address}, {path}", "allow = unix")):
        with net.connect(path) as s:
            check_equal(net.exchange(s, b"hello"), b"hello", "the unix client's echo")
        check_equal(ending(address, "127.0.0.1"), "reset", "the TCP client")
    with t.daemon(echo(f"{address}, {path}", "deny = unix")):
        check_equal(net.fate(path), "fin", "the unix client")
        check(served(address, "127.0.0.1"), "the TCP client is not served")


@test(timeout=60)
def many_rules(t):
    """a file of 100,000 rules: the first that has the client decides"""
    address = t.address()
    lines = ["# exceptions first", "allow 127.0.0.5"]
    lines += [f"deny {i >> 16 & 255 | 1}.{i >> 8 & 255}.{i & 255}.0/24" for i in range(RULES)]
    lines += [f"deny 127.0.{i}.0/24" for i in range(8)]
    path = t.write("rules", "\n".join(lines + ["allow all", ""]))
    with t.daemon(echo(address, f"access_rules = {path}")):
        check(served(address, "127.0.0.5"), "the exception is not served")
        check_equal(ending(address, "127.0.0.6"), "reset", "one of the block")
        check(served(address, "127.0.8.1"), "one of no block is not served")


@test()
def broken_file(t):
    """all errors of a rules file are told at their lines, and reactord does not start"""
    address = t.address()
    path = t.write("rules", "allow 10.0.0.0/8\npermit 1.2.3.4\ndeny 10.0.0.1/24\nallow\n")
    done = t.reactord("-t", "-c", t.write("x.ini", echo(address, f"access_rules = {path}")))
    check_equal(done.code, 1, "the exit code")
    told = re.findall(rf"^{re.escape(path)}:(\d+): ", done.err, re.M)
    check_equal(told, ["2", "3", "4"], "the lines told")
