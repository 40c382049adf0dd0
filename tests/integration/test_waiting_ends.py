"""waiting: how waiting ends: the client goes, the time is over, the daemon stops."""

import contextlib
import random
import signal
import socket
import time

from support import net
from support.case import check, check_equal, test
from support.net import Task
from support.queue import answered, bounded, many_clients, open_session, serve_all, wait_in_turn, waiting
from support.server import Counted
from support.watch import Watch
from test_stop import wait_draining

THEME = "waiting"


@test()
def queue_timeout(t):
    """a client that waits is reset after queue_timeout, not before, and the log says so; its place
    is free for another"""
    front = t.address()
    with Counted(t.address()) as server:
        options = "queue_timeout = 500ms\nqueue_length = 1"
        with t.daemon(bounded(front, {server.address: 1}, options)) as daemon, open_session(front):
            for _ in range(3):
                watch = Watch()
                check_equal(net.fate(front), "reset", "the client's end")
                watch.expect(0.5, 5 * t.scale, "it was reset")
            check(daemon.log_lines("warning.*upstream back: no server had a free connection "
                                   r"in time \(queue_timeout, .*\); the client is reset"), "no log line")
        check_equal(server.total, 1, "connections")


@test(each={"family": ["tcp", "unix"]})
def gives_up_while_waiting(t, family):
    """{family} clients that go while they wait behind a full server are noticed at once: the number
    that wait falls, and only those that stay get the server"""
    front = t.address() if family == "tcp" else f"{t.dir}/front"
    with Counted(t.address()) as server, contextlib.ExitStack() as stack:
        with t.daemon(bounded(front, {server.address: 1}, "queue_timeout = 1m")) as daemon:
            holder = open_session(front)
            first = wait_in_turn(t, daemon, front, stack)
            fickle = [stack.enter_context(net.connect(front)) for _ in range(100)]
            t.eventually(lambda: waiting(daemon) == 101, "all wait")
            last = wait_in_turn(t, daemon, front, stack)
            for client in fickle:
                net.reset(client)
            t.eventually(lambda: waiting(daemon) == 2, "the others are gone")
            took = min(time_to_leave(t, daemon, front, stack) for _ in range(10))
            check(took < 0.25, f"the fastest left after {took:.3f} s")
            for served in (holder, first, last):
                check_equal(net.exchange(served, b"x"), b"x", "the echo")
                served.close()
            t.eventually(lambda: server.now == 0, "all are gone")
            check_equal(server.total, 3, "connections")


def time_to_leave(t, daemon, front, stack):
    """How long a client that is reset, while it waits, takes to leave the queue."""
    client = wait_in_turn(t, daemon, front, stack)
    time.sleep(0.1)
    before = daemon.fd_count()
    watch = Watch()
    net.reset(client)
    while daemon.fd_count() == before:
        watch.expect(0, net.LIMIT_S, "it does not leave")
        time.sleep(0.001)
    return watch.times()[1]


@test()
def ends_while_waiting(t):
    """a client that sends its last bytes and its end while it waits keeps its place: all of it
    arrives, and the answer comes back"""
    front = t.address()
    with Counted(t.address()) as server:
        with t.daemon(bounded(front, {server.address: 1}, "queue_timeout = 1m")):
            holder = open_session(front)
            with net.connect(front) as client:
                client.sendall(b"all I have to say")
                client.shutdown(socket.SHUT_WR)
                time.sleep(0.5)  # long enough to be noticed
                holder.close()
                check_equal(net.read_to_end(client), b"all I have to say", "the echo")


@test()
def abandoned(t):
    """a queue full of clients that have closed without a byte has room for those that come then:
    each is served"""
    front = t.address()
    with Counted(t.address()) as server, contextlib.ExitStack() as stack:
        options = "queue_timeout = 1m\nqueue_length = 10"
        with t.daemon(bounded(front, {server.address: 1}, options)) as daemon:
            holder = stack.enter_context(open_session(front))
            dead = [net.connect(front) for _ in range(10)]
            t.eventually(lambda: waiting(daemon) == 10, "the queue is full")
            for client in dead:
                client.close()
            t.eventually(lambda: waiting(daemon) == 0, "the dead ones are gone")
            live = {stack.enter_context(net.connect(front)): b"client %d" % i for i in range(5)}
            t.eventually(lambda: waiting(daemon) == 5, "the live ones wait")
            for client, message in live.items():
                client.sendall(message)
            holder.close()
            serve_all(live)
            t.eventually(lambda: server.now == 0, "all are gone")
            check_equal(server.total, 6, "connections")


@test(each=[{"drops": True}, {"drops": False}])
def queue_abandoned(t, drops):
    """a client that closes in the queue behind a request leaves with queue_abandoned = drop, if
    set by a reload too; else its request reaches the server ({drops})"""
    front = t.address()
    with Counted(t.address()) as server:
        text = bounded(front, {server.address: 1}, "queue_timeout = 1m")
        with t.daemon(text) as daemon:
            holder = open_session(front)
            if drops:
                daemon.reload(text + "queue_abandoned = drop\n")
            with net.connect(front) as client:
                client.sendall(b"a request")
            t.eventually(lambda: waiting(daemon) == (0 if drops else 1), "it waits or has left")
            time.sleep(0.3)  # the one that stays is looked at too
            check_equal(waiting(daemon), 0 if drops else 1, "waiting")
            holder.close()
            served = 1 if drops else 2
            # Between the queue and the server it is at neither of them.
            t.eventually(lambda: server.total >= served and server.now == 0 and waiting(daemon) == 0, "all are gone")
            check_equal(server.total, served, "connections")


@test()
def gives_up_any_time(t):
    """with clients that go away at any moment, before, while and after they get their turn, the
    others are served and no place is lost"""
    front = t.address()
    with Counted(t.address()) as server:
        with t.daemon(bounded(front, {server.address: 3}, "queue_timeout = 1m")) as daemon:
            before = daemon.fd_count()
            fickle = [Task(fickle_clients, front, seed, 150) for seed in range(8)]
            steady = [Task(many_clients, front, i, 100) for i in range(8)]
            for task in fickle + steady:
                task.result()
            t.eventually(lambda: server.now == 0 and daemon.fd_count() <= before, "all are gone")
            with contextlib.ExitStack() as stack:
                for _ in range(3):
                    stack.enter_context(open_session(front))
                with net.connect(front) as fourth:
                    time.sleep(0.2)
                    check(not answered(fourth) and server.now == 3, "a place too many")


def fickle_clients(front, seed, count):
    dice = random.Random(seed)
    for _ in range(count):
        client = net.connect(front)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(b"never mind")
        time.sleep(dice.choice((0, 0, 0.001, 0.01)))
        if dice.random() < 0.5:
            net.reset(client)
        else:
            client.close()


@test()
def waiting_at_drain(t):
    """clients that wait at SIGTERM are still served in turn, then it ends with exit code 0"""
    front = t.address()
    with Counted(t.address()) as server, contextlib.ExitStack() as stack:
        options = "queue_timeout = 1m"
        with t.daemon(bounded(front, {server.address: 1}, options)) as daemon:
            holder = open_session(front)
            waiting = [wait_in_turn(t, daemon, front, stack) for _ in range(5)]
            daemon.send_signal(signal.SIGTERM)
            wait_draining(t, daemon, front)
            for client in (holder, *waiting):
                check_equal(net.exchange(client, b"x"), b"x", "the echo")
                client.close()
            check_equal(daemon.wait(), 0, "exit code")


@test(each=[{"what": "drain_timeout"}, {"what": "a second SIGTERM"}])
def waiting_at_the_end(t, what):
    """clients that wait are cut by {what} like those that are served: all are reset, exit code 0"""
    front = t.address()
    forced = what != "drain_timeout"
    with Counted(t.address()) as server, contextlib.ExitStack() as stack:
        config_text = bounded(front, {server.address: 1}, "queue_timeout = 1m",
                              drain="1m" if forced else "1s")
        with t.daemon(config_text) as daemon:
            holder = open_session(front)
            waiting = [wait_in_turn(t, daemon, front, stack) for _ in range(5)]
            daemon.send_signal(signal.SIGTERM)
            wait_draining(t, daemon, front)
            if forced:
                daemon.send_signal(signal.SIGTERM)
            for client in (holder, *waiting):
                check_equal(net.ending(client), "reset", "the client's end")
            check_equal(daemon.wait(), 0, "exit code")
