"""reload: another configuration on SIGHUP, while clients are served; what cannot be used changes nothing."""

import contextlib
import os
import resource
import select
import signal
import time

from support import net
from support.case import check, check_equal, test
from support.net import Task
from support.server import Counted
from test_proxy import proxy

MIB = 1024 * 1024


def echo(address, options="", name="echo"):
    return f"[listen {name}]\naddress = {address}\nservice = echo\n{options}\n"


def refused(address):
    """Does nobody listen there?"""
    try:
        with net.connect(address):
            return False
    except ConnectionRefusedError:
        return True


# What changes


@test()
def timeout_of_an_open_session(t):
    """another idle_timeout applies to a session that is open: it ends by it"""
    address = t.address()
    with t.daemon(echo(address, "idle_timeout = 1h")) as daemon:
        with net.connect(address) as client:
            net.exchange(client, b"hello")
            lines = daemon.reload(echo(address, "idle_timeout = 1s"))
            check(any("[listen echo] idle_timeout: 1h -> 1s" in line for line in lines),
                  f"the change is not said: {lines}")
            check_equal(net.read_to_end(client), b"", "behind the echo")
        t.eventually(lambda: daemon.counts("listen echo ").get("idle") == 1, "ended by idle_timeout")


@test()
def listeners_come_and_go(t):
    """a new listener answers; a removed one refuses at once, and its session goes on"""
    first, second = t.address(), t.address()
    with t.daemon(echo(first, name="one")) as daemon, net.connect(first) as client:
        net.exchange(client, b"hello")
        lines = daemon.reload(echo(second, name="two"))
        check(any("[listen one]" in line for line in lines), f"removed, but not said: {lines}")
        with net.connect(second) as other:
            check_equal(net.exchange(other, b"other"), b"other", "the new echo")
        t.eventually(lambda: refused(first), "the removed listener closes")
        check_equal(net.exchange(client, b"still"), b"still", "the echo of the removed listener")


@test()
def drains_what_is_removed(t):
    """the sessions of a removed listener end within drain_timeout, the one that is idle longest first"""
    first, second = t.address(), t.address()
    limits = "[reactord]\ndrain_timeout = 3s\n[worker]\nthreads = 1\n"
    with t.daemon(limits + echo(first, name="one")) as daemon, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(first)) for _ in range(3)]
        for client in clients:
            net.exchange(client, b"hello")
            time.sleep(0.05)
        began = time.monotonic()
        daemon.reload(limits + echo(second, name="two"))
        left = list(clients)
        while left:
            ready, _, _ = select.select(left, [], [], 15 * t.scale)
            check(ready, "a session outlives drain_timeout")
            check(left[0] in ready, "not the one that was idle longest")
            for client in ready:
                check_equal(net.read_to_end(client), b"", "behind the echo")
                left.remove(client)
        check(time.monotonic() - began > 2, "they ended early")
        with net.connect(second) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the new echo")


@test()
def counters_stay(t):
    """counters and the quota of a listener go on over reloads"""
    address = t.address()
    with t.daemon(echo(address)) as daemon:
        with net.connect(address) as client:
            net.exchange(client, b"hello")
            daemon.reload(echo(address, "max_connections = 1\nover_limit = close"))
            with net.connect(address) as other:
                check_equal(net.read_to_end(other), b"", "a client over the new limit")
            check_equal(net.exchange(client, b"still"), b"still", "the echo")
        t.eventually(lambda: daemon.counts("listen echo")["sessions_total"] == 2 and
                     daemon.counts("listen echo")["sessions"] == 0, "both clients counted")


@test()
def address_moves(t):
    """an address that moves to another listener keeps its socket: no client is refused or reset"""
    address, other = t.address(), t.address()
    first = echo(address, name="one") + echo(other, name="two")
    second = echo(other, name="one") + echo(address, name="two")
    with t.daemon(first) as daemon:
        failed = []
        going = [True]

        def knock():
            while going[0]:
                try:
                    with net.connect(address) as client:
                        net.exchange(client, b"hello")
                except (OSError, EOFError) as error:
                    failed.append(error)

        clients = Task(knock)
        try:
            for turn in range(10):
                daemon.reload(second if turn % 2 == 0 else first)
        finally:
            going[0] = False
            clients.result()
        check_equal(failed, [], "failed clients")


@test()
def servers_come_and_go(t):
    """servers are added, removed and weighted; sessions stay at a server that is removed"""
    front, one, two = t.address(), t.address(), t.address()

    def config(servers):
        return (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
                f"[upstream back]\n{servers}\n")

    with net.listen(one) as first, net.listen(two) as second, \
            t.daemon(config(f"server.a = {one}")) as daemon:
        with net.proxied(front, first) as (client, server):
            daemon.reload(config(f"server.b = {two}"))
            client.sendall(b"still")
            check_equal(net.read_exactly(server, 5), b"still", "what the removed server got")
            with net.proxied(front, second) as (other, _):
                daemon.reload(config(f"server.b = {two} weight=0\nserver.a = {one}"))
                with net.proxied(front, first):
                    pass
                other.sendall(b"x")
            server.sendall(b"answer")
            check_equal(net.read_exactly(client, 6), b"answer", "what the client got")
        check_equal(daemon.counts("server back/a ")["sessions_total"], 2,
                    "the server that came again goes on counting")


@test()
def waits_for_nobody(t):
    """a session that outlives many reloads: each is applied, and memory stays flat"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back)) as daemon, \
            net.proxied(front, listener) as (client, server):
        def turns(n):
            for turn in range(n):
                daemon.reload(proxy(front, back, f"idle_timeout = {turn % 50 + 10}m"))
            with open(f"/proc/{daemon.pid}/smaps_rollup", encoding="ascii") as rollup:
                return next(int(line.split()[1]) for line in rollup if line.startswith("Rss:"))

        early = turns(30)
        late = turns(60)
        if not t.sanitized:
            check(late < early + 1024, f"memory in use grew from {early} to {late} KiB")
        client.sendall(b"still")
        check_equal(net.read_exactly(server, 5), b"still", "what the server got")


@test()
def threads_up_and_down(t):
    """worker and boss threads come and go while a stream is proxied; all bytes arrive"""
    front, back = t.address(), t.address()

    def config(workers, boss, sockets):
        return (f"[worker]\nthreads = {workers}\n[boss]\nthreads = {boss}\n"
                + proxy(front, back, f"reuseport = {sockets}"))

    with net.listen(back) as listener, t.daemon(config(1, 1, 1)) as daemon, \
            net.proxied(front, listener) as (client, server):
        sender = Task(net.send_pattern, client, 16 * MIB)
        receiver = Task(net.receive_sha256, server, 16 * MIB)
        for workers, boss, sockets in ((4, 2, 2), (2, 1, 1), (3, 2, 4), (1, 1, 1)):
            daemon.reload(config(workers, boss, sockets))
            with net.proxied(front, listener) as (other, its):
                other.sendall(b"hello")
                check_equal(net.read_exactly(its, 5), b"hello", "what the server got")
        sender.result()
        check_equal(receiver.result(), net.pattern_sha256(16 * MIB), "SHA-256")


@test()
def hundred_at_once(t):
    """a hundred SIGHUPs in a second: the last configuration is in use in the end"""
    address = t.address()
    with t.daemon(echo(address)) as daemon:
        for turn in range(100):
            written = t.write("new.ini", echo(address, f"idle_timeout = {turn + 1}s"))
            os.replace(written, daemon.config_path)
            daemon.send_signal(signal.SIGHUP)
            daemon.has_notified("READY=1")
            time.sleep(0.005)
        t.eventually(lambda: daemon.has_notified("READY=1") and
                     daemon.log_lines("idle_timeout: .* -> 100s"), "the last one applied")
        check_equal(daemon.log_lines("reload: refused"), [], "refused")
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


CONFIRM = "[reactord]\nreload_confirm = 2s\n"


@test()
def not_confirmed(t):
    """with reload_confirm the configuration before a reload is used again, unless SIGHUP confirms it"""
    first, second = t.address(), t.address()
    with t.daemon(CONFIRM + echo(first)) as daemon:
        daemon.reload(CONFIRM + echo(second))
        t.eventually(lambda: refused(first), "the old address closes")
        daemon.wait_reloaded(2)
        check(daemon.log_lines("not confirmed in time"), "it is not said")
        t.eventually(lambda: refused(second), "the unconfirmed address closes")
        with net.connect(first) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def cannot_return(t):
    """when the configuration before cannot be restored, as its address is taken, it is tried until it can"""
    first, second = t.address(), t.address()
    with t.daemon(CONFIRM + echo(first)) as daemon:
        daemon.reload(CONFIRM + echo(second))
        taken = []

        def take():  # its boss loop closes the socket soon after the reload
            try:
                taken.append(net.listen(first))
            except OSError:
                return False
            return True
        t.eventually(take, "the old address is free")
        with taken[0]:
            t.eventually(lambda: daemon.log_lines("cannot be restored: .* trying again"), "it fails", within=10)
            with net.connect(second) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        t.eventually(lambda: not refused(first), "the old address accepts", within=15)
        t.eventually(lambda: daemon.log_lines("done: the previous configuration is restored"), "it is said")
        check_equal(len(daemon.log_lines("not confirmed in time: going back")), 1, "lines about the first attempt")


@test()
def confirmed(t):
    """with reload_confirm a second SIGHUP keeps the new configuration"""
    first, second = t.address(), t.address()
    with t.daemon(CONFIRM + echo(first)) as daemon:
        daemon.reload(CONFIRM + echo(second))
        daemon.reload(wanted="nothing has changed")
        time.sleep(3)
        check_equal(daemon.log_lines("not confirmed"), [], "returned")
        with net.connect(second) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def nothing_new(t):
    """the same configuration once more: nothing is done, and that is said; the open session goes on"""
    address = t.address()
    with t.daemon(echo(address)) as daemon, net.connect(address) as client:
        net.exchange(client, b"before")
        daemon.reload(wanted="nothing has changed")
        check_equal(net.exchange(client, b"after"), b"after", "the echo")


@test()
def warnings(t):
    """what a file is warned of is in the log when a reload uses it, and once"""
    address = t.address()
    with t.daemon(echo(address)) as daemon:
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (1000, 1000))
        daemon.reload(echo(address, "max_connections = 5000"))
        daemon.reload(wanted="nothing has changed")
        warned = daemon.log_lines(" warning ")
        check(len(warned) == 1 and "max_connections: cannot be reached" in warned[0], f"warnings: {warned}")


@test()
def stop_meanwhile(t):
    """SIGTERM right behind SIGHUP, twenty times: it always ends with exit code 0"""
    for turn in range(20):
        address = t.address()
        with t.daemon(echo(address)) as daemon:
            daemon.config_path.write_text(echo(address, f"idle_timeout = {turn + 1}s"))
            daemon.send_signal(signal.SIGHUP)
            daemon.stop()


RELOADS_FIRST, RELOADS_MORE = 100, 300

# 700 and more when each leaves its servers and balancer behind for a second; the last ones may still be in use
BYTES_PER_RELOAD = 400


@test(timeout=60, plain_only=True)
def memory(t):
    """reloads in a row while sessions are open leave nothing behind"""
    front, back = t.address(), t.address()
    number = 0
    with Counted(back), t.daemon(proxy(front, back)) as daemon, \
            contextlib.ExitStack() as stack, open(daemon.err_path, "rb") as log:
        for _ in range(120):
            stack.enter_context(net.connect(front))
        t.eventually(lambda: daemon.counts("listen front")["sessions"] == 120, "120 sessions")

        def reload(times):
            nonlocal number
            for _ in range(times):
                number += 1
                daemon.config_path.write_text(proxy(front, back) + f"\nqueue_length = {number % 2}\n", encoding="utf-8")
                daemon.send_signal(signal.SIGHUP)
                while b"reload: done" not in (line := log.readline()):
                    check(b"reload: refused" not in line, f"refused: {line}")
                    if not line:
                        time.sleep(0.0005)
                daemon.has_notified("READY=1")

        def in_use():
            bytes_in_use = daemon.counts("memory")["in_use"]
            log.seek(0, 2)
            return bytes_in_use

        reload(RELOADS_FIRST)
        before = in_use()
        reload(RELOADS_MORE)
        grown = in_use() - before
        check(grown < RELOADS_MORE * BYTES_PER_RELOAD, f"{RELOADS_MORE} reloads took {grown} bytes")
