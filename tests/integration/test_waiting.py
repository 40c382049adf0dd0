"""waiting: no server has more than max_connections, and who comes when all have as many waits in
turn."""

import contextlib
import random
import select
import selectors
import signal
import socket
import time

from support import net, thread
from support.case import check, check_equal, test
from support.net import Task
from support.server import Counted, Moody, filled_queue
from support.watch import Watch
from test_checks import statistics
from test_stop import wait_draining
from test_upstream import config, who

MIB = 1024 * 1024


def bounded(front, servers, options="", workers=4, drain="20s"):
    """The configuration of a proxy for servers, each with how many connections it may have."""
    lines = {f"s{i}": f"{address} max_connections={most}"
             for i, (address, most) in enumerate(servers.items())}
    return (f"[reactord]\ndrain_timeout = {drain}\n[worker]\nthreads = {workers}\n"
            + config(front, lines, options))


def wait_in_turn(t, daemon, front, stack):
    """A client that is not answered, when it has taken its place behind those before it."""
    # Not in the middle of anything, such as telling the service manager that it is ready.
    t.eventually(lambda: thread.asleep(daemon.pid), "nothing goes on")
    before = daemon.fd_count()
    client = stack.enter_context(net.connect(front))
    t.eventually(lambda: daemon.fd_count() > before and thread.asleep(daemon.pid),
                 "the client waits")
    return client


def answered(client):
    """Is something there for it to read?"""
    return bool(select.select([client], [], [], 0)[0])


def open_session(front):
    """A client that has got a server, which it holds on to."""
    client = net.connect(front)
    check_equal(net.exchange(client, b"held"), b"held", "the echo")
    return client


@test()
def never_more(t):
    """of 200 clients at once on four workers two servers never have more than their
    max_connections, and every client is served"""
    front = t.address()
    with Counted(t.address()) as a, Counted(t.address()) as b, contextlib.ExitStack() as stack:
        servers = {a.address: 3, b.address: 5}
        with t.daemon(bounded(front, servers, "queue_timeout = 1m")):
            clients = {stack.enter_context(net.connect(front)): b"client %04d" % i
                       for i in range(200)}
            t.eventually(lambda: (a.now, b.now) == (3, 5), "the servers are full")
            for client, message in clients.items():
                client.sendall(message)
            serve_all(clients)
            check_equal((a.most, b.most), (3, 5), "the most connections at a time")
            check_equal(a.total + b.total, 200, "connections")


def serve_all(clients):
    """Each one's message comes back to it; then it goes, and makes room for another."""
    end = time.monotonic() + net.LIMIT_S
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client, selectors.EVENT_READ)
        while selector.get_map():
            check(time.monotonic() < end, f"{len(selector.get_map())} clients were not served")
            for key, _ in selector.select(1):
                message = clients[key.fileobj]
                check_equal(net.read_exactly(key.fileobj, len(message)), message, "the echo")
                selector.unregister(key.fileobj)
                key.fileobj.close()


@test()
def short_clients(t):
    """4000 short clients, 16 at a time, go through a server with max_connections = 3, and none is
    left behind"""
    front = t.address()
    with Counted(t.address()) as server:
        with t.daemon(bounded(front, {server.address: 3}, "queue_timeout = 1m")) as daemon:
            before = daemon.fd_count()
            clients = [Task(many_clients, front, i, 250) for i in range(16)]
            for client in clients:
                client.result()
            check_equal((server.total, server.most), (4000, 3), "connections: all, and at a time")
            t.eventually(lambda: server.now == 0 and daemon.fd_count() <= before, "all are gone")


def many_clients(front, number, count):
    for i in range(count):
        message = b"%d of %d" % (i, number)
        with net.connect(front) as client:
            check_equal(net.exchange(client, message), message, "the echo")


@test(each={"workers": [1, 4]})
def first_come(t, workers):
    """clients that wait are served in the order in which they came, with {workers} workers"""
    front = t.address()
    with Counted(t.address()) as server, contextlib.ExitStack() as stack:
        with t.daemon(bounded(front, {server.address: 1}, workers=workers)) as daemon:
            holder = open_session(front)
            clients = [wait_in_turn(t, daemon, front, stack) for _ in range(12)]
            for client in clients:
                client.sendall(b"me")
            holder.close()
            for i, client in enumerate(clients):
                check_equal(net.read_exactly(client, 2), b"me", f"client {i}")
                late = [j for j, other in enumerate(clients[i + 1:], i + 1) if answered(other)]
                check(not late, f"clients {late} were served before client {i} went")
                client.close()
            check_equal((server.total, server.most), (13, 1), "connections: all, and at a time")


@test()
def newcomers_wait_behind(t):
    """a new client does not get a place that became free while others wait: they have it first"""
    front = t.address()
    with Counted(t.address()) as server, contextlib.ExitStack() as stack:
        with t.daemon(bounded(front, {server.address: 1}, "queue_timeout = 1m")) as daemon:
            holder = open_session(front)
            first = wait_in_turn(t, daemon, front, stack)
            first.sendall(b"1")
            rivals = [Task(many_clients, front, i, 20) for i in range(4)]
            holder.close()
            check_equal(net.read_exactly(first, 1), b"1", "what came back")
            check(all(rival.is_alive() for rival in rivals), "others were served first")
            first.close()
            for rival in rivals:
                rival.result()


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


@test(each=[{"length": 3}, {"length": 0}])
def queue_length(t, length):
    """with queue_length = {length} so many clients wait, and more are reset at once; the log says
    why"""
    front = t.address()
    with Counted(t.address()) as server, contextlib.ExitStack() as stack:
        options = f"queue_length = {length}\nqueue_timeout = 1m"
        with t.daemon(bounded(front, {server.address: 1}, options)) as daemon:
            holder = open_session(front)
            waiting = [wait_in_turn(t, daemon, front, stack) for _ in range(length)]
            for _ in range(5):
                check_equal(net.fate(front), "reset", "the end of one too many")
            why = r"the queue is full \(queue_length, or max_held of a pause\)" if length else \
                "all servers are at max_connections"
            found = daemon.log_lines(rf"warning.*upstream back: {why}; the client is reset")
            check_equal(len(found), 1, "log lines within a second")
            holder.close()
            for client in waiting:
                check_equal(net.exchange(client, b"x"), b"x", "the echo")
                client.close()


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


def waiting(daemon):
    """How many clients wait, by the statistics."""
    return int(statistics(daemon, "upstream back")["waiting"])


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
def backup_when_full(t):
    """while the only server is full, clients wait though the backup is idle; with backup_when_full
    they are served there, those that wait too, and wait only when it is full as well"""
    front = t.address()
    with Counted(t.address()) as server, Counted(t.address()) as backup, \
            contextlib.ExitStack() as stack:
        lines = {server.address: 1, backup.address: "1 backup"}
        text = bounded(front, lines, "queue_timeout = 1m")
        with t.daemon(text) as daemon:
            holder = stack.enter_context(open_session(front))
            first = wait_in_turn(t, daemon, front, stack)
            check_equal(backup.total, 0, "connections of the backup")
            daemon.reload(text + "backup_when_full = yes\n")
            check_equal(net.exchange(first, b"x"), b"x", "the echo")
            second = wait_in_turn(t, daemon, front, stack)
            check_equal((server.now, backup.now), (1, 1), "connections")
            holder.close()
            check_equal(net.exchange(second, b"x"), b"x", "the echo")
            check_equal((server.total, backup.total), (2, 1), "connections, in all")


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
def bytes_sent_while_waiting(t):
    """a megabyte that a client sends while it waits arrives unchanged, and comes back"""
    front, back = t.address(), t.address()
    message = random.randbytes(MIB)
    with net.listen(back) as listener:
        with t.daemon(bounded(front, {back: 1}, "queue_timeout = 1m")):
            with net.proxied(front, listener) as (holder, held), net.connect(front) as client:
                sender = Task(client.sendall, message)
                time.sleep(0.5)
                holder.close()
                held.close()
                with net.accept(listener) as server:
                    check(net.read_exactly(server, MIB) == message, "the bytes changed")
                    sender.result()
                    answer = Task(server.sendall, message)
                    check(net.read_exactly(client, MIB) == message, "the answer changed")
                    answer.result()


@test()
def other_server_full(t):
    """a client whose first server is down waits for the other one, which is full"""
    front = t.address()
    with Counted(t.address()) as server:
        lines = {t.address(): 5, server.address: 1}
        with t.daemon(bounded(front, lines, "queue_timeout = 1m\neject_failures = 0")):
            holder = open_session(front)
            with net.connect(front) as client:
                client.sendall(b"x")
                time.sleep(0.3)
                check(not answered(client), "it did not wait")
                holder.close()
                check_equal(net.read_exactly(client, 1), b"x", "the echo")
            check_equal(server.most, 1, "connections at a time")


@test()
def retry_holds_up_nobody(t):
    """a client that waits because it has tried the other server in vain does not keep those behind
    it from that one"""
    front = t.address()
    with Moody("a", t.address()) as a, Counted(t.address()) as b, contextlib.ExitStack() as stack:
        a.becomes("refuses")
        options = "balance = first\neject_failures = 0\nqueue_timeout = 1m"
        with t.daemon(bounded(front, {a.address: 5, b.address: 1}, options)) as daemon:
            with open_session(front) as holder, wait_in_turn(t, daemon, front, stack) as client:
                a.becomes("works")
                check_equal([who(front) for _ in range(3)], ["a"] * 3, "the servers")
                holder.close()
                check_equal(net.exchange(client, b"x"), b"x", "the echo")


@test(each=[{"others": "others come"}, {"others": "nobody else comes"}])
def server_returns(t, others):
    """who waits gets a server that was left out when its time is over, although the other one stays
    full, when {others}"""
    front = t.address()
    with Moody("a", t.address()) as a, Counted(t.address()) as b:
        a.becomes("refuses")
        options = "balance = first\neject_failures = 1\neject_time = 1s\nqueue_timeout = 1m"
        with t.daemon(bounded(front, {a.address: 5, b.address: 1}, options)) as daemon:
            watch = Watch()
            with open_session(front), contextlib.ExitStack() as stack:
                check(daemon.log_lines("server s0: ejected for 1 s"), "it is not left out")
                a.becomes("works")
                waiting = Task(who, front)
                while others == "others come" and waiting.is_alive():
                    watch.expect(0, 10 * t.scale, "nobody got the server")
                    stack.enter_context(net.connect(front))
                    time.sleep(0.1)
                check_equal(waiting.result(10 * t.scale), "a", "the server")
                watch.expect(1, 20 * t.scale, "it has a client")


@test()
def retry_timeout_is_for_tries(t):
    """the time in the queue does not count for retry_timeout: who waited for longer still tries its
    server as long"""
    front, back = t.address(), t.address()
    with net.listen(back, 0) as listener:
        options = "queue_timeout = 1m\nretry_timeout = 400ms"
        with t.daemon(bounded(front, {back: 1}, options)):
            with net.proxied(front, listener) as (holder, held), filled_queue(back):
                with net.connect(front) as client:
                    time.sleep(0.8)
                    watch = Watch()
                    holder.close()
                    held.close()
                    check_equal(net.ending(client), "reset", "the client's end")
                    watch.expect(0.4, 4 * t.scale, "it was reset")


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
