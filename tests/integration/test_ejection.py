"""ejection: a server where connections fail is left out for a while, and then tried again."""

import contextlib
import socket
import time
from collections import Counter

from support import net
from support.case import check, check_equal, test
from support.health import port_to_check
from support.server import BREAKDOWNS, Moody, full_queue
from support.upstreams import config, who
from support.watch import Watch

FAILURES = 3


def one_worker(front, servers, options="", connect_timeout="200ms"):
    """A failure is noted when the session is gone, behind the client's back: only with one worker
    always before the next client comes."""
    return ("[worker]\nthreads = 1\n" + config(
        front, {server.name: server.address for server in servers},
        f"eject_failures = {FAILURES}\neject_resets = yes\nconnect_timeout = {connect_timeout}\n{options}"))


@contextlib.contextmanager
def moody(t, names, **scripts):
    """Servers by these names, all working."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Moody(name, t.address(), scripts.get(name, ())))
               for name in names]


def left_out(daemon, name, seconds="[0-9.]+"):
    """The log lines of that server being left out, for so long."""
    return daemon.log_lines(f"warning.*upstream back: server {name}: ejected for {seconds} s: "
                            f"connections failed in a row: {FAILURES}")


def until_left_out(daemon, front, server, seconds):
    """Clients until the server is left out for so long once more; returns an instant before
    that."""
    before = len(left_out(daemon, server.name))
    server.accepted.clear()
    while len(left_out(daemon, server.name)) == before:
        began = time.monotonic()
        net.fate(front)
    check_equal(len(left_out(daemon, server.name, f"{seconds:g}")), 1, "log lines of that time")
    if server.accepted:
        check_equal(len(server.accepted), FAILURES, "connections that the server had until then")
        return server.accepted[-1]
    return began


def until_back(t, front, server, others="b"):
    """Clients until one gets the server, all others get others; returns the instant."""
    server.accepted.clear()
    end = time.monotonic() + 10 * t.scale
    while not server.accepted:
        check(time.monotonic() < end, f"server {server.name} got no client")
        check(who(front) in others + server.name, "a client got nobody")
    return server.accepted[0]


@test(each={"how": BREAKDOWNS}, plain_only=True)
def left_out_for_a_while(t, how):
    """a server that {how} is left out after eject_failures, is well again and gets nobody before
    eject_time is over, and gets clients then; the log says both"""
    front = t.address()
    with moody(t, "ab") as (a, b):
        a.becomes(how)
        with t.daemon(one_worker(front, (a, b), "eject_time = 1s")) as daemon:
            out_at = until_left_out(daemon, front, a, 1)
            a.becomes("works")
            out = until_back(t, front, a) - out_at
            check(out >= 1, f"it had a client after {out:.3f} s")
            check_equal(len(daemon.log_lines("notice.*upstream back: server a: ejection over")), 1,
                        "log lines about its return")
            check_equal({who(front) for _ in range(6)}, {"a", "b"}, "the servers afterwards")
            check_equal(len(left_out(daemon, "[ab]")), 1, "times that any was left out")


@test()
def not_even_tried(t):
    """while a server that does not answer is left out, no client waits for its connect_timeout"""
    front = t.address()
    with moody(t, "ab") as (a, b):
        a.becomes("is full")
        with t.daemon(one_worker(front, (a, b), "eject_time = 1m", "500ms")) as daemon:
            until_left_out(daemon, front, a, 60)
            watch = Watch()
            check_equal({who(front) for _ in range(40)}, {"b"}, "the servers while a is out")
            # Every second one used to be sent to a: 10 s together.
            watch.expect(0, 8, "clients waited")


@test(plain_only=True)
def longer_each_time(t):
    """a server that goes on to fail is left out for twice as long the second time, three times as
    long the third"""
    front = t.address()
    with moody(t, "ab") as (a, b):
        with t.daemon(one_worker(front, (a, b), "eject_time = 500ms")) as daemon:
            for seconds in (0.5, 1, 1.5):
                a.becomes("resets")
                out_at = until_left_out(daemon, front, a, seconds)
                a.becomes("works")
                out = until_back(t, front, a) - out_at
                check(out >= seconds, f"it had a client after {out:.3f} s, not {seconds} s")


@test(plain_only=True)
def never_longer(t):
    """a server is never left out for longer than eject_time_max, and when it did well for so long
    eject_time begins anew"""
    front = t.address()
    with moody(t, "ab") as (a, b):
        options = "eject_time = 1s\neject_time_max = 1500ms"
        with t.daemon(one_worker(front, (a, b), options)) as daemon:
            for seconds in (1, 1.5):
                a.becomes("resets")
                until_left_out(daemon, front, a, seconds)
                a.becomes("works")
                until_back(t, front, a)
            time.sleep(1.6)
            a.becomes("resets")
            while len(left_out(daemon, "a", "1")) < 2:
                net.fate(front)
            check_equal(len(left_out(daemon, "a")), 3, "times that it was left out")


@test(each=[{"percent": 50, "out": 2}, {"percent": 25, "out": 1}, {"percent": 10, "out": 1},
            {"percent": 100, "out": 3}, {"percent": 0, "out": 0}])
def not_too_many(t, percent, out):
    """with three of four servers down eject_max_percent = {percent} leaves out {out} of them; the others
    get clients as soon as they are well"""
    front = t.address()
    with moody(t, "abcd") as servers:
        for server in servers[:3]:
            server.becomes("refuses")
        options = f"eject_max_percent = {percent}\neject_time = 1m"
        with t.daemon(one_worker(front, servers, options)) as daemon:
            check_equal({who(front) for _ in range(40)}, {"d"}, "the servers that got clients")
            check_equal(len(left_out(daemon, "[abcd]")), out, "servers left out")
            for server in servers[:3]:
                server.becomes("works")
            well = {server.name for server in servers if not left_out(daemon, server.name)}
            check_equal({who(front) for _ in range(16)}, well, "the servers that got clients then")


@test()
def never_the_only_one(t):
    """a server without another beside it is never left out, however often it fails"""
    front = t.address()
    with moody(t, "a") as (a,):
        a.becomes("refuses")
        with t.daemon(one_worker(front, (a,))) as daemon:
            for _ in range(5 * FAILURES):
                check_equal(net.fate(front), "reset", "the client's end")
            check_equal(left_out(daemon, "a"), [], "log lines")
            a.becomes("works")
            check_equal(who(front), "a", "the server")


@test()
def switched_off(t):
    """with eject_failures = 0 no server is left out"""
    front = t.address()
    with moody(t, "ab") as (a, b):
        a.becomes("refuses")
        servers = {"a": a.address, "b": b.address}
        with t.daemon(config(front, servers, "eject_failures = 0")):
            check_equal({who(front) for _ in range(40)}, {"b"}, "the servers while a is down")
            a.becomes("works")
            check_equal({who(front) for _ in range(2)}, {"a", "b"}, "the servers afterwards")


@test()
def well_in_between(t):
    """a connection that goes well makes the count of failures begin anew: two of three may fail for
    ever"""
    front = t.address()
    with moody(t, "ab", a=["resets", "resets", "works"] * 6) as (a, b):
        with t.daemon(one_worker(front, (a, b))) as daemon:
            ends = Counter()
            while a.script:
                with contextlib.suppress(ConnectionResetError), net.connect(front) as client:
                    ends[net.read_to_end(client)] += 1
            check_equal(left_out(daemon, "a"), [], "log lines")
            check_equal(ends[b"a"], 6, "clients that a served")


@test()
def no_failures(t):
    """what is no failure: a server that ends without a byte, a client that gives up"""
    front = t.address()
    with moody(t, "ab") as (a, b):
        a.becomes("ends")
        with t.daemon(one_worker(front, (a, b), connect_timeout="1m")) as daemon:
            before = daemon.fd_count()
            for _ in range(4 * FAILURES):
                net.fate(front)
            check(len(a.accepted) > FAILURES, "a had too few clients: the test asks nothing")
            t.eventually(lambda: daemon.fd_count() <= before, "the clients of b are gone")
            a.becomes("is full")
            clients = [net.connect(front) for _ in range(4 * FAILURES)]
            for client in clients:
                net.reset(client)
            t.eventually(lambda: daemon.fd_count() <= before, "the clients are gone")
            check_equal(left_out(daemon, "[ab]"), [], "log lines")


@test()
def reset_after_a_request(t):
    """a reset before the server's first byte counts as well when the client has sent all it had to
    say, and its end"""
    front = t.address()
    a = Moody("a", t.address())  # which slow takes the place of
    with moody(t, "b") as (b,), net.listen(a.address) as slow:
        with t.daemon(one_worker(front, (a, b), "eject_time = 1m")) as daemon:
            for _ in range(2 * FAILURES):
                with net.connect(front) as client:
                    with contextlib.suppress(OSError):  # b may have reset it by now
                        client.sendall(b"request")
                        client.shutdown(socket.SHUT_WR)
                    reset_next(slow, client)
            t.eventually(lambda: left_out(daemon, "a"), "a is left out")


def reset_next(listener, client):
    """Reset the client's connection when its request and its end are there, if it is this
    server's."""
    client.settimeout(0)
    listener.settimeout(0.02)
    server = None
    while server is None:
        with contextlib.suppress(TimeoutError):
            server, _ = listener.accept()
            break
        with contextlib.suppress(BlockingIOError):
            client.recv(1)
            return  # it is another server's
    server.settimeout(net.LIMIT_S)
    net.read_to_end(server)
    net.reset(server)
    client.settimeout(net.LIMIT_S)
    check_equal(net.ending(client), "reset", "the client's end")


@test()
def on_all_workers(t):
    """clients that come on four workers at the same time agree on who is left out: a server that
    resets gets a few of 800"""
    front = t.address()
    with moody(t, "ab") as (a, b):
        a.becomes("resets")
        options = f"eject_failures = {FAILURES}\neject_resets = yes\neject_time = 1m"
        servers = {"a": a.address, "b": b.address}
        with t.daemon("[worker]\nthreads = 4\n" + config(front, servers, options)) as daemon:
            clients = [net.Task(many_clients, front, 100) for _ in range(8)]
            for client in clients:
                client.result()
            # The first ones, and those that came before they were noted, which is behind the client's
            # back; if each worker found out for itself, or none did, it were half of them.
            count = len(a.accepted)
            check(FAILURES <= count <= 100, f"a had {count} connections")
            check_equal(len(left_out(daemon, "a", "60")), 1, "log lines")


def many_clients(front, count):
    for _ in range(count):
        net.fate(front)


@test()
def retry_timeout(t):
    """retry_timeout ends the tries: of ten servers that do not answer two are tried, 1 s and half a
    second, then the client is reset"""
    front = t.address()
    with contextlib.ExitStack() as stack:
        servers = {f"s{i}": t.address() for i in range(10)}
        for address in servers.values():
            stack.enter_context(full_queue(address))
        options = "connect_timeout = 1s\nretry_timeout = 1500ms\nretries = 15\n"
        with t.daemon(config(front, servers, options)) as daemon:
            watch = Watch()
            check_equal(net.fate(front), "reset", "the client's end")
            watch.expect(1.5, 8, "the client was reset")
            found = daemon.log_lines(r"server s\d .*cannot connect: .*timed out; ")
            check_equal(len(found), 2, "servers that were tried")
            check(found[0].count("trying another server") and found[1].count("the client is reset"),
                  f"the log has {found}")


@test()
def check_passes(t):
    """a check of another port that passes says nothing about connections of clients: a server that refuses
    them stays left out"""
    front, port = t.address(), t.port()
    options = "check = tcp\ncheck_interval = 20ms\neject_failures = 2\neject_time = 1m\nretries = 0\n"
    with moody(t, "ab") as (a, b), port_to_check(f"127.0.0.1:{port}"):
        a.becomes("refuses")
        servers = {"a": f"{a.address} check_port={port}", "b": b.address}
        with t.daemon("[worker]\nthreads = 1\n" + config(front, servers, options)) as daemon:
            fates = []
            for _ in range(100):
                fates.append(net.fate(front))
                time.sleep(0.002)  # so that checks are made meanwhile
            check_equal(fates.count("reset"), 2, "clients that were reset")
            check_equal(daemon.log_lines("ejection over: a check has passed"), [], "log lines")
