"""reasons: why each session ended, in the log and in the listener's counters."""

import errno
import random
import signal
import socket

from support import net, preload
from support.case import check, check_equal, test
from support.own_network import own_names
from support.server import full_queue
from support.watch import Watch

RECV_FAILS = 0  # as in preload/recv_fault.c
COUNTS = ("sessions", "sessions_total", "bytes_in", "bytes_out")


def statistics(daemon, what):
    """The counters of `listen front` or the like: counts and reasons."""
    counts = daemon.counts(f"{what} sessions=")
    reasons = {key: counts.pop(key) for key in list(counts) if key not in COUNTS}
    check_equal(sorted(counts), sorted(COUNTS), "the counts")
    check_equal(counts["sessions_total"], counts["sessions"] + sum(reasons.values()), "the sum")
    return counts, reasons


def expect(t, daemon, what, **wanted):
    """All sessions there have ended, so many for each reason, and the log says the same."""
    t.eventually(lambda: statistics(daemon, what)[0]["sessions"] == 0, "the sessions ended")
    counts, reasons = statistics(daemon, what)
    check_equal(reasons, wanted, f"the reasons of {what}")
    name = what.split()[1]
    for reason, count in reasons.items():
        lines = daemon.log_lines(rf"debug \S+: listen {name}: .* ended: {reason.replace('_', ' ')}, ")
        check_equal(len(lines), count, f"log lines about {reason}")
    return counts


def echo(address, options=""):
    return f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n"


def proxy(front, server, options="", upstream="", process=""):
    return (f"[reactord]\nlog_level = debug\n{process}\n"
            f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n{options}\n"
            f"[upstream back]\nserver.only = {server}\n{upstream}\n")


def fin(s):
    s.shutdown(socket.SHUT_WR)


@test(each=[
    {"who": "client", "how": "ends", "reason": "client_fin"},
    {"who": "client", "how": "resets", "reason": "client_reset"},
    {"who": "server", "how": "ends", "reason": "upstream_fin"},
    {"who": "server", "how": "resets", "reason": "upstream_reset"}])
def by_a_peer(t, who, how, reason):
    """a session whose {who} {how} it ended by {reason}, whatever the other does then"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)) as daemon:
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"ask")
            check_equal(net.read_exactly(server, 3), b"ask", "what the server got")
            server.sendall(b"answer")
            check_equal(net.read_exactly(client, 6), b"answer", "what the client got")
            one, other = (client, server) if who == "client" else (server, client)
            if how == "ends":
                fin(one)
                check_equal(net.read_to_end(other), b"", "what the other got")
                net.reset(other)
            else:
                net.reset(one)
                check_equal(net.ending(other), "reset", "the end for the other")
            counts = expect(t, daemon, "listen front", **{reason: 1})
        check_equal((counts["bytes_in"], counts["bytes_out"]), (3, 6), "bytes in and out")
        check(daemon.log_lines(r"listen front: 127\.0\.0\.1:\d+ -> only ended: "
                               r".*, 3 bytes in, 6 bytes out, \d+ ms$"), "the log lacks the server")


@test()
def echo_by_the_client(t):
    """an echo session ends by its client's fin or reset"""
    address = t.address()
    with t.daemon("[reactord]\nlog_level = debug\n" + echo(address)) as daemon:
        for end in (socket.socket.close, net.reset, net.reset):
            client = net.connect(address)
            net.exchange(client, b"hello")
            end(client)
        counts = expect(t, daemon, "listen echo", client_fin=1, client_reset=2)
        check_equal((counts["bytes_in"], counts["bytes_out"]), (15, 15), "bytes in and out")


@test()
def connect_refused(t):
    """a client whose server refuses is reset for that, and an operator is warned of it"""
    front, back = t.address(), t.address()
    with t.daemon(proxy(front, back)) as daemon:
        check_equal(net.fate(front), "reset", "the client's end")
        expect(t, daemon, "listen front", connect_refused=1)
        check(daemon.log_lines(r"warning .*only .*refused"), "no warning")


@test()
def connect_timeout(t):
    """a client whose server does not answer is reset for that, and an operator is warned of it"""
    front, back = t.address(), t.address()
    with full_queue(back), t.daemon(
            proxy(front, back, upstream="connect_timeout = 300ms")) as daemon:
        check_equal(net.fate(front), "reset", "the client's end")
        expect(t, daemon, "listen front", connect_timeout=1)
        check(daemon.log_lines(r"warning .*only .*timed out"), "no warning")


@test()
def no_server(t):
    """a client whose only server has a name that nobody knows is reset for that, and an operator is
    warned of it"""
    own_names(t)
    front = t.address()
    with t.daemon(proxy(front, f"nobody.test:{t.port()}")) as daemon:
        check_equal(net.fate(front), "reset", "the client's end")
        expect(t, daemon, "listen front", no_server=1)
        check(daemon.log_lines(r"warning .*no server is available"), "no warning")


@test(each={"option": ["idle_timeout", "client_idle_timeout", "idle_timeout of the upstream",
                       "first_byte_timeout"]})
def idle(t, option):
    """a session that {option} ends is idle"""
    front, back = t.address(), t.address()
    line = f"{option.split()[0]} = 300ms"
    lines = ("", line) if "upstream" in option else (line, "")
    with net.listen(back) as listener, t.daemon(proxy(front, back, *lines)) as daemon:
        with net.proxied(front, listener) as (client, server):
            check_equal(net.ending(client), "fin", "the client's end")
            check_equal(net.ending(server), "fin", "the server's end")
        expect(t, daemon, "listen front", idle=1)


@test()
def half_close(t):
    """a session that half_close_timeout ends is put down to who closed its half"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(
            proxy(front, back, "half_close_timeout = 300ms")) as daemon:
        with net.proxied(front, listener) as (client, server):
            fin(server)
            check_equal(net.ending(client), "fin", "the client's end")
            check_equal(net.ending(server), "fin", "the server's end")
        expect(t, daemon, "listen front", upstream_fin=1)


@test()
def lifetime(t):
    """a session that max_lifetime ends is old"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(
            proxy(front, back, "max_lifetime = 300ms")) as daemon:
        with net.proxied(front, listener) as (client, server):
            check_equal(net.ending(client), "fin", "the client's end")
            check_equal(net.ending(server), "fin", "the server's end")
        expect(t, daemon, "listen front", lifetime=1)


@test()
def drain(t):
    """a session that is finished after SIGTERM, and one that is cut then, end by drain; the
    counters of the first can be read as long as the second is open"""
    front, back, address = t.address(), t.address(), t.address()
    config = proxy(front, back, process="drain_timeout = 4s") + echo(address)
    with net.listen(back) as listener, t.daemon(config) as daemon:
        with net.connect(address) as quiet, net.proxied(front, listener) as (client, server):
            net.exchange(quiet, b"hello")
            daemon.send_signal(signal.SIGTERM)
            check_equal(net.ending(quiet), "fin", "the end of the session that was finished")
            quiet.close()
            expect(t, daemon, "listen echo", drain=1)
            check_equal(net.ending(client), "reset", "the client's end")
            check_equal(net.ending(server), "reset", "the server's end")
        check_equal(daemon.wait(), 0, "exit code")
        check_equal(len(daemon.log_lines("listen front: .* ended: drain, ")), 1, "log lines")


@test(needs=("cc",), each=[
    {"what": "in a way of its own", "number": errno.EIO, "reason": "error"},
    {"what": "since its host is gone", "number": errno.ETIMEDOUT, "reason": "client_reset"}])
def broken(t, what, number, reason):
    """a connection that breaks {what} ends by {reason}"""
    address = t.address()
    faults = preload.Preload(t, "recv_fault")
    config = "[reactord]\nlog_level = debug\n" + echo(address)
    with t.daemon(config, environment=faults.environment()) as daemon:
        with net.connect(address) as client:
            net.exchange(client, b"hello")
            faults.plan(RECV_FAILS, 1, value=number, thread="work")
            client.sendall(b"x")
            check_equal(net.ending(client), "reset", "the client's end")
        expect(t, daemon, "listen echo", **{reason: 1})


@test(timeout=60)
def sums(t):
    """of 150 sessions that end in five ways at once, each is counted once, with its bytes"""
    front, back = t.address(), t.address()
    wanted = dict.fromkeys(("client_fin", "client_reset", "upstream_fin", "upstream_reset", "idle"), 0)
    moved = 0
    with net.listen(back) as listener, t.daemon(
            proxy(front, back, f"client_idle_timeout = {2 * t.scale}s")) as daemon:
        pairs = []
        for _ in range(150):
            client = net.connect(front)
            pairs.append((client, net.accept(listener)))
        for client, server in pairs:
            message = random.randbytes(random.randrange(1, 5000))
            client.sendall(message)
            check_equal(net.read_exactly(server, len(message)), message, "what the server got")
            moved += len(message)
            reason = random.choice(list(wanted))
            wanted[reason] += 1
            if reason.endswith("fin"):
                one, other = (client, server) if reason == "client_fin" else (server, client)
                fin(one)
                check_equal(net.read_to_end(other), b"", "behind the message")
                fin(other)
            elif reason.endswith("reset"):
                net.reset(client if reason == "client_reset" else server)
        idle_ones = [pair for pair in pairs if -1 not in (pair[0].fileno(), pair[1].fileno())]
        for client, _ in idle_ones:
            net.ending(client)
        for pair in pairs:
            for s in pair:
                s.close()
        counts = expect(t, daemon, "listen front",
                        **{reason: count for reason, count in wanted.items() if count})
        check_equal((counts["sessions_total"], counts["bytes_in"], counts["bytes_out"]),
                    (150, moved, 0), "sessions, bytes in and out")


@test()
def open_ones(t):
    """sessions that are open are counted as that, each listener's for itself"""
    one, two = t.address(), t.address()
    config = echo(one) + echo(two).replace("echo]", "other]")
    with t.daemon(config) as daemon:
        clients = [net.connect(address) for address in (one, one, two)]
        for client in clients:
            net.exchange(client, b"hello")
        check_equal(statistics(daemon, "listen echo")[0]["sessions"], 2, "sessions of echo")
        check_equal(statistics(daemon, "listen other")[0]["sessions"], 1, "sessions of other")
        watch = Watch()
        for client in clients:
            client.close()
        t.eventually(lambda: statistics(daemon, "listen echo") ==
                     ({"sessions": 0, "sessions_total": 2, "bytes_in": 10, "bytes_out": 10},
                      {"client_fin": 2}), "the counters of echo")
        watch.expect(0, 5 * t.scale, "it took long")
