"""spare: connections to servers that are open before a client needs them."""

import contextlib
import selectors
import signal
import socket
import time

from support import net, program
from support.case import check, check_equal, test
from support.server import Counted, Moody
from support.upstreams import config
from test_route import hello
from support.spare_servers import (
    accept_all, close_all, counts, end,
    hear_question, hold, spared, wait_counts, who_hears)


def nobody_comes(listener, seconds):
    listener.settimeout(seconds)
    try:
        listener.accept()[0].close()
        return False
    except TimeoutError:
        return True
    finally:
        listener.settimeout(net.LIMIT_S)


class Tired:
    """An echo server that ends a connection on which nothing has come for some time, with last words
    if it has any; one loop in a process of its own."""

    def __init__(self, address, after_s, words=b""):
        self.address, self.after_s, self.words = address, after_s, words
        self.open = contextlib.ExitStack()

    def __enter__(self):
        listener = self.open.enter_context(net.listen(self.address, 4096))
        self.open.enter_context(program.forked(self._serve_forever, listener))
        return self

    def __exit__(self, *_):
        self.open.close()

    def _serve_forever(self, listener):
        listener.settimeout(0)
        ends = {}
        with selectors.DefaultSelector() as selector:
            selector.register(listener, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select(0.01):
                    if key.fileobj is listener:
                        with contextlib.suppress(BlockingIOError):
                            s, _ = listener.accept()
                            selector.register(s, selectors.EVENT_READ)
                            ends[s] = time.monotonic() + self.after_s
                    else:
                        ends.pop(key.fileobj, None)
                        self._echo(selector, key.fileobj)
                for s in [s for s, end in ends.items() if end < time.monotonic()]:
                    del ends[s]
                    with contextlib.suppress(OSError):
                        s.sendall(self.words)
                    selector.unregister(s)
                    s.close()

    @staticmethod
    def _echo(selector, s):
        try:
            data = s.recv(net.CHUNK)
            s.sendall(data)
        except OSError:
            data = b""
        if not data:
            selector.unregister(s)
            s.close()


@test(each=[{"spare": 4, "threads": 1, "count": 4}, {"spare": 8, "threads": 4, "count": 8},
            {"spare": 2, "threads": 4, "count": 4}, {"spare": 40, "threads": 3, "count": 42}])
def kept(t, spare, threads, count):
    """spare = {spare} and {threads} threads keep {count} connections to each of two servers before there
    is any client, and go on to do so when clients have taken some"""
    front = t.address()
    with Counted(t.address()) as a, Counted(t.address()) as b:
        servers = {"a": a.address, "b": b.address}
        with t.daemon(spared(front, servers, spare, threads=threads)) as daemon:
            def complete():  # not what the servers have accepted: the loops have to know of it
                return all(counts(daemon, f"back/{server}")["spares"] == count for server in "ab")
            t.eventually(complete, f"{count} connections to each")
            with contextlib.ExitStack() as stack:
                for _ in range(2 * threads):  # two of one thread may be led to one server
                    net.exchange(stack.enter_context(net.connect(front)), b"hello")
                    t.eventually(complete, "another in the place of the one that was taken")
                for server in (a, b):
                    t.eventually(lambda: server.now == count + threads, "those that were taken again")
            for server in (a, b):
                t.eventually(lambda: server.now == count, "the clients are gone")
            for server in ("a", "b"):
                now = counts(daemon, f"back/{server}")
                check_equal((now["spares"], now["used"], now["missed"], now["opened"]),
                            (count, threads, 0, count + threads), "the counts")


@test()
def none_by_default(t):
    """without spare no connection is made before there is a client, and the counters do not speak of
    them"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(config(front, {"a": back})) as daemon:
        check(nobody_comes(listener, 0.3), "a connection was made")
        lines = daemon.statistics("server back/a ")
        check(lines, "no statistics")
        check_equal([line for line in lines if "spares=" in line], [], "about spare connections")


@test()
def taken(t):
    """a client is on a connection that was there before it, and another one takes its place; what it
    took to connect is not counted, for nobody waited"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(spared(front, back, 3)) as daemon:
        spares = accept_all(listener, 3)
        wait_counts(t, daemon, spares=3)
        with net.connect(front) as client:
            client.sendall(b"question")
            heard = who_hears(spares)
            check_equal(net.read_exactly(heard, 8), b"question", "what it hears")
            heard.sendall(b"answer")
            check_equal(net.read_exactly(client, 6), b"answer", "what the client hears")
            spares.append(net.accept(listener))
        check_equal(net.ending(heard), "fin", "its end")
        wait_counts(t, daemon, spares=3, opened=4, used=1)
        check(daemon.log_lines("stats server back/a connects=0 "), "a connect was counted")
        close_all(spares)


@test()
def silent_client(t):
    """a client that says nothing is on a spare connection too; what the server says first then comes
    through, and so do the ends of both"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(spared(front, back, 1)):
        spare = net.accept(listener)
        with net.connect(front) as client:
            next_one = net.accept(listener)
            spare.sendall(b"hello?")
            check_equal(net.read_exactly(client, 6), b"hello?", "what the client hears")
            spare.close()
            check_equal(net.ending(client), "fin", "the client's end")
        with net.connect(front) as client:
            client.shutdown(socket.SHUT_WR)
            check_equal(net.read_to_end(next_one), b"", "what the server hears")
            next_one.sendall(b"bye")
            next_one.close()
            check_equal(net.read_to_end(client), b"bye", "what the client hears")


@test(each={"how": ["ends", "resets", "has last words and ends"], "waits": ["at once", "later"]})
def dead_before_the_first_byte(t, how, waits):
    """a server that {how} on a connection given to a client that speaks {waits}: it is connected anew,
    without noticing"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(spared(front, back, 1)) as daemon:
        spare = net.accept(listener)
        wait_counts(t, daemon, spares=1)
        with net.connect(front) as client:
            net.accept(listener).close()  # the next spare: the first is the client's now
            hold(t, daemon)  # so that it hears all of that in one turn
            end(t, spare, how)
            if waits == "later":
                daemon.send_signal(signal.SIGCONT)
                t.eventually(lambda: counts(daemon)["replaced"] == 1, "the replacement")
            client.sendall(b"question")
            if waits == "at once":
                client.shutdown(socket.SHUT_WR)
                daemon.send_signal(signal.SIGCONT)
            heard = hear_question(listener)
            heard.sendall(b"answer")
            check_equal(net.read_exactly(client, 6), b"answer", "what the client hears")
            if waits == "at once":
                check_equal(net.read_to_end(heard), b"", "what the server hears then")
            heard.close()
            check_equal(net.ending(client), "fin", "the client's end")
        wait_counts(t, daemon, replaced=1, used=1)


@test(each={"then": ["stay", "leave"]})
def replaced_while_throttled(t, then):
    """a server that ends connections whose clients wait for their turns with listener_bandwidth_in: they are connected
    anew, and when they {then} nothing is left of their turns"""
    front, back = t.address(), t.address()
    text = spared(front, back, 100).replace("[upstream", "listener_bandwidth_in = 1k\n[upstream")
    with net.listen(back, 512) as listener, t.daemon(text) as daemon, contextlib.ExitStack() as stack:
        spares = [stack.enter_context(s) for s in accept_all(listener, 100)]
        wait_counts(t, daemon, spares=100)
        clients = [stack.enter_context(net.connect(front)) for _ in range(100)]
        wait_counts(t, daemon, used=100, spares=100)
        # A client may have got a connection that was opened in place of another's.
        spares += [stack.enter_context(s) for s in accept_all(listener, 100)]
        for client in clients:
            client.sendall(b"question")
        for s in spares:
            net.reset(s)
        t.eventually(lambda: counts(daemon)["replaced"] >= 10, "clients that are connected anew")
        if then == "stay":
            net.Task(echo_all, listener)
            served = sum(echoed(s, b"question") for s in clients)
            check(served >= counts(daemon)["replaced"], f"{served} clients are served")
        else:
            for client in clients:
                net.reset(client)
        time.sleep(1)  # all turns have come by then


def echo_all(listener):
    """Echo, one connection after the other has come, each for as long as the test."""
    while True:
        net.Task(echo_one, net.accept(listener))


def echo_one(s):
    with contextlib.suppress(OSError):
        while data := s.recv(net.CHUNK):
            s.sendall(data)


def echoed(s, message):
    try:
        return net.read_exactly(s, len(message)) == message
    except ConnectionResetError:
        return False


@test()
def of_a_route(t):
    """an upstream that only a route leads to has spare connections, and a client whose ClientHello chooses it is on one"""
    front, back = t.address(), t.address()
    text = (f"[listen front]\naddress = {front}\nservice = proxy\nroute.a = sni:a.example -> back\n"
            f"[upstream back]\nserver.a = {back}\nspare = 1\n[worker]\nthreads = 1\n")
    with net.listen(back) as listener, t.daemon(text) as daemon, net.accept(listener) as spare:
        wait_counts(t, daemon, spares=1)
        record = hello("a.example")
        with net.connect(front) as client:
            client.sendall(record)
            check_equal(net.read_exactly(spare, len(record)), record, "what the server hears")
            wait_counts(t, daemon, used=1, missed=0)


@test()
def after_the_first_byte(t):
    """a server that resets a connection after the client's first bytes were sent resets the client: no
    byte is ever sent twice"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(spared(front, back, 1)):
        spare = net.accept(listener)
        with net.connect(front) as client:
            client.sendall(b"question")
            check_equal(net.read_exactly(spare, 8), b"question", "what the server hears")
            net.reset(spare)
            check_equal(net.ending(client), "reset", "the client's end")
        with net.accept(listener) as next_one:
            next_one.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                check_equal(next_one.recv(8), b"", "what another connection hears")


@test(plain_only=True)
def too_old(t):
    """with spare_max_age = 1s a connection is closed when it is 0.75 s old or older, and another takes its
    place"""
    front, back = t.address(), t.address()
    began = time.monotonic()
    with net.listen(back) as listener, t.daemon(
            spared(front, back, 1, "spare_max_age = 1s")) as daemon:
        for n in range(1, 4):
            with net.accept(listener) as spare:
                check_equal(net.ending(spare), "fin", "its end")
            took = time.monotonic() - began
            check(took >= 0.75 * n, f"{n} of them had grown old after {took:.3f} s")
        now = counts(daemon)
        check(now["expired"] >= 3 and now["closed"] == 0, f"the counts {now}")


@test(each={"option": ["spare_max_age = 30s", "source_address = 127.0.0.2", "keepalive = 1h"]})
def made_with_other_options(t, option):
    """a reload that sets {option} replaces those that were made without it, and no other reload does"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(spared(front, back, 1)) as daemon, net.accept(listener) as first:
        daemon.reload(spared(front, back, 1, option))
        check_equal(net.ending(first), "fin", "its end")
        with net.accept(listener) as second:
            check_equal(second.getpeername()[0], "127.0.0.2" if "source" in option else "127.0.0.1", "where it comes from")
            daemon.reload(spared(front, back, 1, option + "\nretries = 1"))
            with net.connect(front) as client:
                client.sendall(b"hello")
                check_equal(net.read_exactly(second, 5), b"hello", "what it is used for")


@test(timeout=60)
def tired_server(t):
    """a server that ends connections that are idle for 1 s: there are others at once, and every client of
    2 s is answered"""
    front = t.address()
    with Tired(t.address(), 1) as server, t.daemon(spared(front, server.address)) as daemon:
        t.eventually(lambda: counts(daemon)["closed"] >= 4, "connections that the server closed")
        end, n = time.monotonic() + 2, 0
        while time.monotonic() < end:
            with net.connect(front) as client:
                net.exchange(client, b"hello")
            n += 1
            time.sleep(0.03)
        now = counts(daemon)
        check_equal(now["used"] + now["missed"], n, "clients")
        check(now["used"] > n // 2, f"the counts {now}")


@test()
def last_words(t):
    """a server that says why it ends a connection on which nothing came does not speak first"""
    front = t.address()
    with Tired(t.address(), 0.2, b"408 too slow\r\n") as server:
        with t.daemon(spared(front, server.address, 2)) as daemon:
            t.eventually(lambda: counts(daemon)["closed"] >= 4, "connections that the server closed")
            check_equal(daemon.log_lines("speaks before"), [], "log lines")
            with net.connect(front) as client:
                net.exchange(client, b"hello")


@test()
def speaks_first(t):
    """a server that greets is found out: that is in the log, once, no more connections are kept, and
    clients hear its greeting"""
    front = t.address()
    with Counted(t.address(), greets=True) as server:
        with t.daemon(spared(front, server.address, 8, threads=2)) as daemon:
            t.eventually(lambda: daemon.log_lines("warning.*server a .*speaks before its client does"),
                         "a log line")
            t.eventually(lambda: server.now == 0, "all are closed")
            total = server.total
            check(total <= 16, f"{total} connections were made for nobody")
            for _ in range(5):
                with net.connect(front) as client:
                    check_equal(net.read_exactly(client, 10), b"127.0.0.1\n", "the greeting")
            check_equal(server.total, total + 5, "connections for clients")
            check_equal(len(daemon.log_lines("speaks before")), 1, "log lines")
            check_equal(counts(daemon)["spares"], 0, "what is kept")
            check(daemon.log_lines("stats server back/a .*speaks_first=yes"), "not in the statistics")


@test(timeout=60)
def gone_and_back(t):
    """a server that is gone is tried again, less and less often, which is in the log once; when it is back,
    so are its connections"""
    front = t.address()
    with Moody("a", t.address()) as a:
        a.becomes("refuses")
        with t.daemon(spared(front, a.address, 8, threads=2)) as daemon:
            t.eventually(lambda: daemon.log_lines("warning.*server a .*cannot open a spare"), "a log line")
            time.sleep(2)
            # Up to 8 at first, then up to 4 by each of two threads after 0.1, 0.2, 0.4 ... s.
            check(counts(daemon)["failed"] <= 8 * 6, f"{counts(daemon)['failed']} tries in 2 s")
            check_equal(len(daemon.log_lines("cannot open a spare")), 1, "log lines")
            with Counted(a.address) as server:
                t.eventually(lambda: server.now == 8, "its connections", within=12)
            t.eventually(lambda: len(daemon.log_lines("can be opened again")) == 1, "a log line")
