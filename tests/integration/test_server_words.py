"""settings of single servers: the words behind an address."""

from support import net
from support.case import check, check_equal, test
from support.health import Talker
from support.server import Moody
from test_checks import checked, wait_down, went_down
from test_ejection import left_out, moody
from test_proxyproto import read_line
from test_upstream import config, who

HEADER = b"PROXY UNKNOWN\r\n"


@test(each={"state": ["up", "down", "checked"]})
def not_checked(t, state):
    """with check=off a server whose checks would fail gets clients, from initial_state = {state} on; a
    reload without the word checks it, one with the word frees it"""
    front, nobody = t.address(), t.port()
    with moody(t, "ab") as (a, b):
        def text(words):
            return checked(front, {"a": f"{a.address} check_port={nobody}{words}", "b": b.address},
                           initial_state=state, eject_failures=0)

        def servers():
            return {who(front) for _ in range(6)}

        with t.daemon(text(" check=off")) as daemon:
            t.eventually(lambda: servers() == {"a", "b"}, "both serve")
            check_equal(went_down(daemon), [], "log lines of a")
            daemon.reload(text(""))
            wait_down(t, daemon, why="connection refused")
            check_equal(servers(), {"b"}, "the servers while a is down")
            daemon.reload(text(" check=off"))
            check_equal(servers(), {"a", "b"}, "the servers afterwards")


@test()
def own_fall(t):
    """fall= and check_interval= of a server replace those of the upstream, for it alone"""
    front = t.address()
    with Moody("a", t.address()) as a, Moody("b", t.address()) as b:
        servers = {"a": f"{a.address} fall=1 check_interval=10ms rise=1", "b": b.address}
        options = {"check_interval": "50ms", "fall": 1000, "eject_failures": 0, "initial_state": "down"}
        with t.daemon(checked(front, servers, **options)) as daemon:
            t.eventually(lambda: daemon.log_lines("server b: up"), "b is up")  # its first failed check would be enough
            a.becomes("refuses")
            b.becomes("refuses")
            wait_down(t, daemon, fall=1)
            check_equal(went_down(daemon, "b"), [], "log lines of b")


@test()
def never_ejected(t):
    """eject=off: a server that breaks every connection is not ejected, and a reload that says so ends
    the ejection at once"""
    front = t.address()
    with moody(t, "ab") as (a, b):
        a.becomes("resets")

        def text(words):
            return "[worker]\nthreads = 1\n" + config(
                front, {"a": a.address + words, "b": b.address},
                "eject_failures = 3\neject_resets = yes\neject_time = 1h\neject_time_max = 1h")

        with t.daemon(text(" eject=off")) as daemon:
            for _ in range(20):
                net.fate(front)
            check_equal(left_out(daemon, "a"), [], "ejections")
            daemon.reload(text(""))
            while not left_out(daemon, "a"):
                net.fate(front)
            a.accepted.clear()
            for _ in range(6):
                net.fate(front)
            check_equal(a.accepted, [], "clients while it is ejected")
            daemon.reload(text(" eject=off"))
            for _ in range(6):
                net.fate(front)
            check(a.accepted, "it got no client afterwards")


@test(each=[{"section": "off", "word": "v1", "sent": True}, {"section": "v1", "word": "off", "sent": False}])
def own_header(t, section, word, sent):
    """send_proxy={word} of a server holds for its clients and its checks, whatever the section says
    ({section})"""
    front = t.address()
    with net.listen(t.address()) as listener:
        where = "{}:{}".format(*listener.getsockname())
        with t.daemon(config(front, {"a": f"{where} send_proxy={word}"}, f"send_proxy = {section}")):
            with net.proxied(front, listener) as (client, server):
                client.sendall(b"hello\r\n")
                check_equal(read_line(server).startswith(b"PROXY TCP4 127.0.0.1 "), sent, "a header")
    with Talker("a", t.address(), b"pong") as a:
        options = {"check_send": "ping", "check_expect": "pong", "send_proxy": section}
        with t.daemon(checked(front, {"a": f"{a.address} send_proxy={word}"}, **options)):
            t.eventually(lambda: sum(a.got.values()) > 2, "checks come")
            check_equal(set(a.got), {HEADER + b"ping" if sent else b"ping"}, "what they say")


@test(each=[{"where": "its address", "words": "", "option": "auto", "says": HEADER},
            {"where": "its own port", "words": " check_port={port}", "option": "auto", "says": HEADER},
            {"where": "its own port", "words": "", "option": "no", "says": b""},
            {"where": "another port", "words": " check_port={other}", "option": "auto", "says": b""},
            {"where": "another port", "words": " check_port={other}", "option": "yes", "says": HEADER}])
def header_of_checks(t, where, words, option, says):
    """check_send_proxy = {option}: what a check of {where} sends ({words}, {says})"""
    with Talker("s", t.address(), b"pong") as server, Talker("c", t.address(), b"pong") as other:
        port, other_port = (s.address.rpartition(":")[2] for s in (server, other))
        talker = other if "other" in words else server
        line = server.address + words.format(port=port, other=other_port)
        options = {"check_send": "ping", "check_expect": "pong", "send_proxy": "v1",
                   "check_send_proxy": option}
        with t.daemon(checked(t.address(), {"a": line}, **options)):
            t.eventually(lambda: sum(talker.got.values()) > 2, "checks come")
            check_equal(set(talker.got), {says + b"ping"}, "what they say")


@test()
def header_without_send_proxy(t):
    """check_send_proxy = yes sends one in version 1 to a server whose clients have none"""
    with Talker("a", t.address(), b"pong") as a:
        options = {"check_send": "ping", "check_expect": "pong", "check_send_proxy": "yes"}
        with t.daemon(checked(t.address(), {"a": a.address}, **options)):
            t.eventually(lambda: sum(a.got.values()) > 2, "checks come")
            check_equal(set(a.got), {HEADER + b"ping"}, "what they say")
