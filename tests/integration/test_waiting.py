"""waiting: no server has more than max_connections, and who comes when all have as many waits in
turn."""

import contextlib
import random
import time

from support import net
from support.case import check, check_equal, test
from support.net import Task
from support.queue import answered, bounded, many_clients, open_session, serve_all, wait_in_turn, waiting
from support.server import Counted, Moody, filled_queue
from support.upstreams import who
from support.watch import Watch

MIB = 1024 * 1024


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
