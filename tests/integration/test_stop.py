"""stop: SIGTERM lets sessions finish, a second one and SIGINT do not wait for them."""

import contextlib
import os
import signal
import socket
import threading
import time

from support import net
from support.admin import get
from support.case import Failed, check, check_equal, test
from support.net import Task
from support.watch import Watch
from test_proxy import proxy
from test_timeouts import LINGER_S, SLOW_BYTES

MIB = 1024 * 1024


def echo(address, drain="20s"):
    return (f"[reactord]\ndrain_timeout = {drain}\n"
            f"[listen echo]\naddress = {address}\nservice = echo\n")


def draining_proxy(front, back, drain="20s"):
    return f"[reactord]\ndrain_timeout = {drain}\n" + proxy(front, back)


def wait_draining(t, daemon, address):
    """Until the signal has been taken: nobody listens any more."""
    port = int(address.rpartition(":")[2])
    t.eventually(lambda: not net.listening(port), "the listen socket closed")
    check(daemon.has_notified("STOPPING=1"), "the service manager was not told STOPPING=1")


@test()
def idle_stop(t):
    """without sessions SIGTERM ends it at once"""
    address = t.address()
    with t.daemon(echo(address)) as daemon:
        watch = Watch()
        daemon.stop()
        watch.expect(0, 2 * t.scale, "it took long")


@test()
def stop_before_any_client(t):
    """SIGTERM right behind READY=1, twenty times, always ends with exit code 0"""
    for _ in range(20):
        with t.daemon(echo(t.address())) as daemon:
            daemon.stop()


@test()
def idle_echo_session(t):
    """an idle echo session ends by FIN about a second after SIGTERM"""
    address = t.address()
    with t.daemon(echo(address)) as daemon, net.connect(address) as client:
        net.exchange(client, b"hello")
        watch = Watch()
        daemon.send_signal(signal.SIGTERM)
        check_equal(net.read_to_end(client), b"", "behind the echo")
        watch.expect(0.5, 5 * t.scale, "the FIN came")
        client.close()
        check_equal(daemon.wait(), 0, "exit code")


@test(each=[{"what": "a reader that starts at once", "stall": 0},
            {"what": "a reader that starts after 2.5 s", "stall": 2.5}])
def pending_echo(t, what, stall):
    """SIGTERM with 1 MiB of pending echo and {what}: all bytes arrive, then FIN, exit code 0"""
    address = t.address()
    with t.daemon(echo(address)) as daemon, net.connect(address, rcvbuf=8192) as client:
        sender = Task(net.send_pattern, client, MIB, (net.CHUNK,), False)
        time.sleep(0.5)
        daemon.send_signal(signal.SIGTERM)
        wait_draining(t, daemon, address)
        check_equal(net.receive_sha256(client, MIB, ((0, stall),)), net.pattern_sha256(MIB),
                    f"SHA-256 ({what})")
        sender.result()
        check_equal(net.read_to_end(client), b"", "behind the echo")
        client.close()
        check_equal(daemon.wait(), 0, "exit code")


@test()
def slow_but_steady(t):
    """after SIGTERM an echo client that takes its bytes slowly but steadily gets all of them: it
    used to be reset after 6 s"""
    address = t.address()
    with t.daemon(echo(address, "1m")) as daemon, net.connect(address, rcvbuf=8192) as client:
        net.send_pattern(client, SLOW_BYTES, finish=False)
        time.sleep(0.1)  # so that all of it is with the kernel
        daemon.send_signal(signal.SIGTERM)
        check_equal(net.receive_slowly(client, SLOW_BYTES, LINGER_S + 2),
                    net.pattern_sha256(SLOW_BYTES), "SHA-256")
        check_equal(net.read_to_end(client), b"", "behind the echo")
        client.close()
        check_equal(daemon.wait(), 0, "exit code")


@test()
def takes_nothing(t):
    """with drain_timeout = 0 an echo client that takes nothing is cut linger_timeout after
    idle_timeout: draining used to switch that off"""
    address = t.address()
    config = echo(address, "0") + f"idle_timeout = 3s\nlinger_timeout = {LINGER_S}s\n"
    with t.daemon(config) as daemon, \
            net.connect(address, rcvbuf=8192) as client:
        watch = Watch()
        net.fill(client)
        daemon.send_signal(signal.SIGTERM)
        check(net.wait_cut(client, (LINGER_S + 8) * t.scale), "it is not cut")
        watch.expect(LINGER_S + 3, (LINGER_S + 10) * t.scale, "it was cut")
        check_equal(daemon.wait(), 0, "exit code")


@test(each={"kind": ["TCP", "unix"]})
def clients_in_the_queue(t, kind):
    """300 {kind} clients in the kernel's queue at SIGTERM are served: those beyond accept_batch
    used to be reset"""
    address = t.address() if kind == "TCP" else t.path("queue.sock")
    with t.daemon(echo(address)) as daemon, contextlib.ExitStack() as stack:
        daemon.send_signal(signal.SIGSTOP)
        clients = [stack.enter_context(net.connect(address)) for _ in range(300)]
        for client in clients:
            client.sendall(b"hello")
        daemon.send_signal(signal.SIGTERM)
        daemon.send_signal(signal.SIGCONT)
        for i, client in enumerate(clients):
            check_equal(net.read_exactly(client, 5), b"hello", f"the echo of client {i}")
            client.close()
        check_equal(daemon.wait(), 0, "exit code")


@test()
def talking_echo_session(t):
    """an echo session that goes on talking after SIGTERM is served until it ends"""
    address = t.address()
    with t.daemon(echo(address)) as daemon, net.connect(address) as client:
        net.exchange(client, b"hello")
        daemon.send_signal(signal.SIGTERM)
        for i in range(12):
            check_equal(net.exchange(client, b"%d" % i), b"%d" % i, "the echo")
            time.sleep(0.25)
        client.shutdown(socket.SHUT_WR)
        check_equal(net.read_to_end(client), b"", "behind the echo")
        client.close()
        check_equal(daemon.wait(), 0, "exit code")


@test()
def new_clients_are_refused(t):
    """after SIGTERM new clients are refused, while an open session goes on and ends it when it
    ends"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(draining_proxy(front, back)) as daemon:
        with net.proxied(front, listener) as (client, server):
            daemon.send_signal(signal.SIGTERM)
            wait_draining(t, daemon, front)
            try:
                net.connect(front).close()
                raise Failed("a new client was accepted")
            except ConnectionRefusedError:
                pass
            for i in range(3):
                time.sleep(0.6)
                client.sendall(b"%d" % i)
                check_equal(net.read_exactly(server, 1), b"%d" % i, "what the server got")
                server.sendall(b"%d" % i)
                check_equal(net.read_exactly(client, 1), b"%d" % i, "what the client got")
            check(daemon.running(), "it ended before its session")
            watch = Watch()
        check_equal(daemon.wait(), 0, "exit code")
        watch.expect(0, 3 * t.scale, "it went on without sessions")


@test(each=[{"how": "after drain_delay"}, {"how": "at a second SIGTERM"}])
def drain_delay(t, how):
    """with drain_delay /readyz says draining at once, and clients are accepted until it has passed; it ends {how}"""
    address, admin = t.address(), t.path("admin.sock")
    delay = "2s" if how == "after drain_delay" else "1h"
    config = echo(address).replace("[listen", f"drain_delay = {delay}\n[admin]\naddress = {admin}\n[listen", 1)
    with t.daemon(config) as daemon:
        check_equal(get(admin, "/readyz").status, 200, "/readyz")
        daemon.send_signal(signal.SIGTERM)
        began = time.monotonic()
        t.eventually(lambda: get(admin, "/readyz").status == 503, "/readyz says that it drains")
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "a client while it drains")
        if how != "after drain_delay":
            daemon.send_signal(signal.SIGTERM)
        check_equal(daemon.wait(), 0, "exit code")
        check(how != "after drain_delay" or time.monotonic() - began >= 2, "it ended before drain_delay")


@test()
def drain_timeout(t):
    """an open proxied session is cut by drain_timeout: reset on both sides, exit code 0, counted"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(draining_proxy(front, back, "1s")) as daemon:
        with net.proxied(front, listener) as (client, server):
            watch = Watch()
            daemon.send_signal(signal.SIGTERM)
            ends = net.ending(client), net.ending(server)
            check_equal(ends, ("reset", "reset"), "the ends")
            watch.expect(1, 5 * t.scale, "the cut came")
            check_equal(daemon.wait(), 0, "exit code")
        check(daemon.log_lines(r"drain_timeout.*\b1\b"), "the log does not count the session")


@test(each=[{"name": "SIGTERM"}, {"name": "SIGINT"}])
def second_signal(t, name):
    """{name} behind a SIGTERM stops at once: open sessions are reset, exit code 0"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(draining_proxy(front, back, "1m")) as daemon:
        with net.proxied(front, listener) as (client, server):
            daemon.send_signal(signal.SIGTERM)
            wait_draining(t, daemon, front)
            time.sleep(0.3)
            check(daemon.running(), "it did not wait for its session")
            watch = Watch()
            daemon.stop(getattr(signal, name))
            watch.expect(0, 3 * t.scale, "it took long")
            check_equal((net.ending(client), net.ending(server)), ("reset", "reset"), "the ends")


@test()
def interrupt(t):
    """SIGINT stops at once with 50 open sessions of both services, all reset, exit code 0"""
    front, back, echo_address = t.address(), t.address(), t.address()
    config = draining_proxy(front, back, "1m") + \
        f"[listen echo]\naddress = {echo_address}\nservice = echo\n"
    with net.listen(back) as listener, t.daemon(config) as daemon, contextlib.ExitStack() as stack:
        sockets = []
        for _ in range(25):
            client = stack.enter_context(net.connect(front))
            server = stack.enter_context(net.accept(listener))
            other = stack.enter_context(net.connect(echo_address))
            net.exchange(other, b"x")
            sockets += [client, server, other]
        time.sleep(1.2)  # a drain would end idle echo sessions by FIN then
        watch = Watch()
        daemon.stop(signal.SIGINT)
        watch.expect(0, 3 * t.scale, "it took long")
        check_equal({net.ending(s) for s in sockets}, {"reset"}, "how the connections ended")


@test()
def bulk_through_a_drain(t):
    """a proxied transfer of 64 MiB that is under way at SIGTERM arrives whole"""
    front, back = t.address(), t.address()
    total = 64 * MIB
    with net.listen(back) as listener, t.daemon(draining_proxy(front, back)) as daemon:
        with net.proxied(front, listener) as (client, server):
            sender = Task(net.send_pattern, client, total)
            reader = Task(net.receive_sha256, server, total, ((MIB, 0.3), (32 * MIB, 0.5)))
            time.sleep(0.1)
            daemon.send_signal(signal.SIGTERM)
            check_equal(reader.result(), net.pattern_sha256(total), "SHA-256")
            sender.result()
            check_equal(net.read_to_end(server), b"", "behind the bytes")
        check_equal(daemon.wait(), 0, "exit code")


@test()
def session_that_is_connecting(t):
    """a session whose server is still being connected at SIGTERM does not hold up the stop for
    ever"""
    front, back = t.address(), t.address()
    family, where = net.parse(back)
    with socket.socket(family) as full:
        full.bind(where)
        full.listen(0)
        with net.connect(back), t.daemon(draining_proxy(front, back, "2s")) as daemon:
            with net.connect(front) as client:
                time.sleep(0.2)
                daemon.stop(within_s=8)
                check_equal(net.ending(client), "reset", "the client's end")


def _storm(address, until, outcomes):
    """Connect, ask once, close, again and again; note what is neither an answer nor a refusal."""
    while not until.is_set():
        try:
            with net.connect(address, limit_s=15) as client:
                client.sendall(b"ping")
                got = client.recv(4)
                outcomes.append("answer" if got == b"ping" else f"got {got!r}")
        except (ConnectionRefusedError, ConnectionResetError, BrokenPipeError, FileNotFoundError) \
                as error:
            outcomes.append(type(error).__name__)
        except TimeoutError:
            outcomes.append("no answer, no end")


@test(each={"kind": ["TCP", "unix"]})
def connect_storm(t, kind):
    """SIGTERM in a storm of {kind} connects: each is answered or refused, none left hanging"""
    for _ in range(3):
        address = t.address() if kind == "TCP" else t.path("storm.sock")
        until, outcomes = threading.Event(), []
        with t.daemon(echo(address, "5s")) as daemon:
            threads = [Task(_storm, address, until, outcomes) for _ in range(8)]
            time.sleep(0.4)
            daemon.stop()
            until.set()
            for thread in threads:
                thread.result()
        strange = [o for o in set(outcomes) if "Error" not in o and o != "answer"]
        check(not strange, f"outcomes: {strange}")
        check(outcomes.count("answer") > 20, f"only {outcomes.count('answer')} answers")
        if kind == "unix":
            check(not os.path.exists(address), "the socket file is still there")


@test()
def storm_of_signals(t):
    """SIGHUP, SIGUSR1, SIGUSR2 and SIGRTMIN in quick succession, 400 times, do not disturb a session
    or the stop"""
    address = t.address()
    with t.daemon(echo(address)) as daemon, net.connect(address) as client:
        for i in range(100):
            daemon.send_signal(signal.SIGHUP)
            daemon.send_signal(signal.SIGUSR1)
            daemon.send_signal(signal.SIGUSR2)
            daemon.send_signal(signal.SIGRTMIN)
            check_equal(net.exchange(client, b"%03d" % i), b"%03d" % i, "the echo")
        client.close()
        daemon.stop()


@test()
def stop_without_descriptors(t):
    """a daemon that has run out of descriptors still stops in order"""
    address = t.address()
    with t.daemon("[worker]\nthreads = 1\n" + echo(address, "3s"), nofile=64) as daemon:
        clients = [net.connect(address) for _ in range(100)]
        t.eventually(lambda: daemon.log_lines("too many open files"), "a line about descriptors")
        daemon.send_signal(signal.SIGTERM)
        for client in clients:
            client.close()
        check_equal(daemon.wait(), 0, "exit code")
