"""accesslog: several logs of a listener, their conditions and shares, and what a reload changes."""

import socket

from support import net
from support.case import check, check_equal, test
from support.log_lines import lines_of, one_echo, whole_lines

THEME = "accesslog"


def config_of(t, address, logs, **sections):
    """A listener with ${logs}, and the sections, whose options are given by name."""
    text = f"[listen e]\naddress = {address}\nservice = echo\naccess_log = {logs}\non_deny = reset\n"
    for name, options in sections.items():
        text += f"[access_log {name}]\ntarget = {t.path(name)}\n{options}\n"
    return text


@test()
def several(t):
    """each log of a listener has its format and its condition: all, errors, data"""
    address = t.address()
    config = config_of(t, address, "all, errors, data", all="format = json:reason",
                       errors="format = $reason $bytes_in\nonly = errors", data="format = $bytes_in\nonly = data")
    with t.daemon(config) as daemon:
        one_echo(address)
        with net.connect(address) as silent:
            silent.shutdown(socket.SHUT_WR)
            net.read_to_end(silent)
        with net.connect(address) as client:
            net.exchange(client, b"x")
            net.reset(client)
        t.eventually(lambda: len(whole_lines(t.path("all"))) == 3, "three lines")
        daemon.stop()
    check_equal(lines_of(t.path("errors")), [b"client_reset 1"], "errors")
    check_equal(sorted(lines_of(t.path("data"))), [b"1", b"5"], "data")


@test()
def denied(t):
    """only = denied has the clients that rules turn away, and no others"""
    address = t.address()
    config = config_of(t, address, "denied", denied="only = denied\nformat = $client $reason")
    with t.daemon(config.replace("on_deny", "deny = 127.0.0.2\non_deny")) as daemon:
        one_echo(address)
        with socket.create_connection(net.parse(address)[1], source_address=("127.0.0.2", 0)) as client:
            net.ending(client)
        t.eventually(lambda: whole_lines(t.path("denied")), "a line")
        daemon.stop()
    check_equal(lines_of(t.path("denied")), [b"127.0.0.2 limit"], "lines")


@test()
def share(t):
    """share = 1/5 has about a fifth of the connections, and the other log has all"""
    address = t.address()
    config = config_of(t, address, "all, some", all="", some="share = 1/5\nformat = $connection")
    with t.daemon(config) as daemon:
        for _ in range(500):
            one_echo(address)
        t.eventually(lambda: len(whole_lines(t.path("all"))) == 500, "all lines")
        daemon.stop()
    some = lines_of(t.path("some"))
    check(50 <= len(some) <= 150, f"{len(some)} lines")
    check_equal(len(set(some)), len(some), "connections")


@test()
def reload(t):
    """a reload that adds a log, and changes a condition, holds for open connections; numbers stay"""
    address = t.address()
    debug = "[reactord]\nlog_level = debug\n"
    first = debug + config_of(t, address, "a", a="format = $connection $reason")
    second = debug + config_of(t, address, "b, a", a="format = again $connection $reason", b="only = errors\nformat = b $reason")
    with t.daemon(first) as daemon:
        with net.connect(address) as fin:
            net.exchange(fin, b"x")
            reset = net.connect(address)
            net.exchange(reset, b"x")
            daemon.reload(second)
            daemon.wait_carried_over(1)
            net.reset(reset)
        t.eventually(lambda: len(whole_lines(t.path("a"))) == 2, "two lines")
        daemon.stop()
    check_equal(sorted(lines_of(t.path("a"))), [b"again 1 client_fin", b"again 2 client_reset"], "a")
    check_equal(lines_of(t.path("b")), [b"b client_reset"], "b")


@test()
def at_connect(t):
    """at_connect = yes writes a line while the connection goes on, before any byte, and one at its end"""
    address = t.address()
    config = config_of(t, address, "a", a="at_connect = yes\nformat = $connection $bytes_in $client_rtt $reason")
    with t.daemon(config) as daemon:
        with net.connect(address) as client:
            t.eventually(lambda: whole_lines(t.path("a")), "the line at connect")
            net.exchange(client, b"x")
        t.eventually(lambda: len(whole_lines(t.path("a"))) == 2, "two lines")
        daemon.stop()
    first, last = [line.split() for line in lines_of(t.path("a"))]
    check_equal((first[:2], first[3], last[:2], last[3]), ([b"1", b"0"], b"open", [b"1", b"1"], b"client_fin"), "lines")
    check(int(first[2]) > 0, f"the line at connect: {first}")
