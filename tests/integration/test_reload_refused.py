"""reload: a file that is wrong or cannot be applied changes nothing."""

import os
import signal
import time

from support import admin, net
from support.case import check, check_equal, test
from test_reload import refused

THEME = "reload"


def echo(address, options="", name="echo"):
    return f"[listen {name}]\naddress = {address}\nservice = echo\n{options}\n"


def same_as_before(daemon, address, fds):
    """The old configuration is in use, and no descriptor was left open."""
    with net.connect(address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
    check(daemon.running(), "it ended")
    end = time.monotonic() + 5 * daemon.scale
    while daemon.fd_count() > fds and time.monotonic() < end:
        time.sleep(0.01)
    check(daemon.fd_count() <= fds, f"descriptors: {fds}, now {daemon.fd_count()}")


# What changes nothing


@test()
def two_hundred_errors(t):
    """a file with 200 errors: each is said with its line, and nothing is changed"""
    address = t.address()
    with t.daemon(echo(address)) as daemon:
        fds = daemon.fd_count()
        broken = echo(address) + "".join(f"nonsense{i} = 1\n" for i in range(200))
        lines = daemon.reload(broken, "refused")
        for line in range(5, 205):
            check(any(f".ini:{line}: " in said for said in lines), f"line {line} is not named")
        same_as_before(daemon, address, fds)


@test(each={"what": ["missing", "a directory", "empty"]})
def unusable_file(t, what):
    """a configuration file that is {what}"""
    address = t.address()
    with t.daemon(echo(address)) as daemon:
        fds = daemon.fd_count()
        daemon.config_path.unlink()
        if what == "a directory":
            daemon.config_path.mkdir()
        elif what == "empty":
            daemon.config_path.write_text("")
        lines = daemon.reload(wanted="refused")
        check(any(str(daemon.config_path) in line for line in lines), f"no path: {lines}")
        same_as_before(daemon, address, fds)


@test()
def needs_an_upgrade(t):
    """a change that needs an upgrade is refused by name, and the others with it"""
    address = t.address()
    with t.daemon(echo(address)) as daemon:
        fds = daemon.fd_count()
        lines = daemon.reload("[worker]\nchooser = p2c\n" + echo(t.address()), "refused")
        check(any("[worker] chooser" in line for line in lines), f"not named: {lines}")
        same_as_before(daemon, address, fds)


@test()
def address_taken(t):
    """an address that another process listens on"""
    address, taken = t.address(), t.address()
    with t.daemon(echo(address)) as daemon, net.listen(taken):
        fds = daemon.fd_count()
        lines = daemon.reload(echo(address, name="one") + echo(taken, name="two"), "refused")
        check(any(taken in line and "Address already in use" in line for line in lines),
              f"not said: {lines}")
        same_as_before(daemon, address, fds)


@test()
def address_twice(t):
    """an address that is given twice"""
    address = t.address()
    with t.daemon(echo(address)) as daemon:
        fds = daemon.fd_count()
        lines = daemon.reload(echo(address, name="one") + echo(address, name="two"), "refused")
        check(any("each address once" in line for line in lines), f"not said: {lines}")
        same_as_before(daemon, address, fds)


@test()
def no_socket(t):
    """a unix path at which there is a file that is no socket: the file stays"""
    address = t.address()
    path = t.write("file", "precious")
    with t.daemon(echo(address)) as daemon:
        fds = daemon.fd_count()
        lines = daemon.reload(echo(address, name="one") + echo(path, name="two"), "refused")
        check(any(str(path) in line for line in lines), f"not named: {lines}")
        same_as_before(daemon, address, fds)
        with open(path, encoding="ascii") as file:
            check_equal(file.read(), "precious", "the file")


@test()
def half_written_rules(t):
    """a file of rules that is half written"""
    address = t.address()
    rules = t.write("rules", "allow all\n")
    config = echo(address, f"access_rules = {rules}")
    with t.daemon(config) as daemon:
        fds = daemon.fd_count()
        t.write("rules", "deny 10.0.")
        lines = daemon.reload(wanted="refused")
        check(any("rules:1" in line for line in lines), f"no line: {lines}")
        same_as_before(daemon, address, fds)


@test()
def other_rules(t):
    """rules in a file are read again; open sessions stay"""
    address = t.address()
    rules = t.write("rules", "allow all\n")
    with t.daemon(echo(address, f"access_rules = {rules}")) as daemon, \
            net.connect(address) as client:
        net.exchange(client, b"hello")
        t.write("rules", "deny all\n")
        daemon.reload()
        check_equal(net.fate(address), "reset", "the end of a client that is denied now")
        check_equal(net.exchange(client, b"still"), b"still", "the echo")


@test()
def log_cannot_be_opened(t):
    """an access log that cannot be opened"""
    address = t.address()
    with t.daemon(echo(address)) as daemon:
        fds = daemon.fd_count()
        lines = daemon.reload(echo(address, "access_log = /nowhere/access.log"), "refused")
        check(any("/nowhere/access.log" in line for line in lines), f"not named: {lines}")
        same_as_before(daemon, address, fds)


@test(each={"part": ["access_log", "certificate", "upstream", "listener"]})
def no_part_changes_alone(t, part):
    """when a part, such as {part}, cannot change, no other part changes: log level, admin interface, access log, listener"""
    address, door, new_address, taken = t.address(), t.path("admin.sock"), t.address(), t.address()
    first, second = t.path("first.log"), t.path("second.log")
    cannot = {"access_log": echo(t.address(), "access_log = /nowhere/access.log", name="bad"),
              "certificate": f"[tls bad]\ncertificate = {t.write('empty.pem', '')}\n" +
                             echo(t.address(), "tls = bad", name="bad"),
              "upstream": f"[upstream bad]\nresolve_required = yes\nserver.a = nowhere.invalid:7\n"
                          f"[listen bad]\naddress = {t.address()}\nservice = proxy\nupstream = bad\n",
              "listener": echo(taken, name="bad")}[part]
    with t.daemon(admin.section(door) + echo(address, f"access_log = {first}")) as daemon, net.listen(taken):
        fds = daemon.fd_count()
        daemon.reload("[reactord]\nlog_level = error\n" + admin.section(door, "write = no") +
                      echo(address, f"access_log = {second}") + echo(new_address, name="new") + cannot, "refused")
        same_as_before(daemon, address, fds)
        check(refused(new_address), "the new listener listens")
        check(admin.post(door, "/v1/reload", {"dry_run": True}).status != 403, "actions are not allowed")
        daemon.send_signal(signal.SIGUSR1)
        t.eventually(lambda: daemon.log_lines("log: reopened"), "the log level stays")
        t.eventually(lambda: os.path.getsize(first) > 0, "the session is in the access log")
        check(not os.path.exists(second) or os.path.getsize(second) == 0, "the new access log is used")


@test()
def no_descriptors(t):
    """more threads than there are descriptors for"""
    address = t.address()
    with t.daemon(echo(address), nofile=64) as daemon:
        fds = daemon.fd_count()
        daemon.reload("[worker]\nthreads = 200\n" + echo(address), "refused")
        same_as_before(daemon, address, fds)


@test()
def while_draining(t):
    """SIGHUP while it drains is refused"""
    address = t.address()
    with t.daemon(echo(address, "idle_timeout = 1h")) as daemon, net.connect(address) as client:
        net.exchange(client, b"hello")
        daemon.send_signal(signal.SIGTERM)
        t.eventually(lambda: daemon.log_lines("draining"), "it drains")
        daemon.reload(wanted="refused")
        client.close()
        check_equal(daemon.wait(), 0, "exit code")
