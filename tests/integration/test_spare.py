"""spare: connections to servers that are open before a client needs them."""

import contextlib
import select
import selectors
import signal
import socket
import statistics
import time

from support import net, program
from support.case import check, check_equal, test
from support.health import port_to_check
from support.network import FAR, FarHost
from support.server import Counted, Moody
from test_route import hello
from test_upstream import config, own_network

AT_ONCE_S = 20  # for what takes no time on a machine that has some


def spared(front, servers, spare=4, options="", threads=1):
    if not isinstance(servers, dict):
        servers = {"a": servers}
    return (f"[worker]\nthreads = {threads}\n"
            + config(front, servers, f"spare = {spare}\n{options}"))


def counts(daemon, server="back/a"):
    """What SIGRTMIN writes about the spare connections to a server."""
    found = daemon.counts(f"server {server} spares=")
    return {key.removeprefix("spares_"): value for key, value in found.items()}


def wait_counts(t, daemon, **wanted):
    """Until the counts are so, others aside."""
    def reached():
        now = counts(daemon)
        return all(now[key] == value for key, value in wanted.items())
    t.eventually(reached, f"the counts {wanted}")


def accept_all(listener, count):
    return [net.accept(listener) for _ in range(count)]


def who_hears(sockets):
    """The first of them on which something comes."""
    found, _, _ = select.select(sockets, [], [], net.LIMIT_S)
    check(found, "nothing came on any of them")
    return found[0]


def nobody_comes(listener, seconds):
    listener.settimeout(seconds)
    try:
        listener.accept()[0].close()
        return False
    except TimeoutError:
        return True
    finally:
        listener.settimeout(net.LIMIT_S)


def close_all(sockets):
    for s in sockets:
        s.close()


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


def hold(t, daemon):
    """Stop the daemon where it is, until SIGCONT."""
    daemon.send_signal(signal.SIGSTOP)
    t.eventually(lambda: daemon.status("State").startswith("T"), "it stands still")


def end(t, server, how):
    """The server ends like that, and the other side's kernel knows."""
    host, port = server.getpeername()
    if how.startswith("has"):
        server.sendall(b"408")
    if how == "resets":
        net.reset(server)
    else:
        server.close()
    t.eventually(lambda: tcp_state(host, port) != "ESTABLISHED", "the end has come in")


def tcp_state(host, port):
    """The state of the connection whose own address that is; None if there is none."""
    address = f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}:{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as f:
        for line in f:
            fields = line.split()
            if fields[1] == address:
                return {"01": "ESTABLISHED", "08": "CLOSE_WAIT"}.get(fields[3], fields[3])
    return None


def hear_question(listener, header=b""):
    """The connection on which the client's question comes, behind a header, among spare ones."""
    wanted = header + b"question"
    listener.settimeout(0.05)
    came, end = [], time.monotonic() + AT_ONCE_S
    while time.monotonic() < end:
        with contextlib.suppress(TimeoutError):
            came.append(net.accept(listener, 0))
        for s in came:
            with contextlib.suppress(BlockingIOError):
                if s.recv(200, socket.MSG_PEEK) == wanted:
                    s.settimeout(net.LIMIT_S)
                    net.read_exactly(s, len(wanted))
                    return s
    raise TimeoutError("nobody asked")


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


@test()
def down(t):
    """a server that its checks find down has none, and has them again when it is up"""
    front, back, checked = t.address(), t.address(), t.port()
    options = "check = tcp\ncheck_interval = 100ms\nrise = 1\nfall = 2\ncheck_jitter = 0"
    with Counted(back) as server:
        line = {"a": f"{back} check_port={checked}", "b": f"{t.address()} backup"}
        with contextlib.ExitStack() as port:
            port.enter_context(port_to_check(f"127.0.0.1:{checked}"))
            with t.daemon(spared(front, line, 4, options, threads=2)) as daemon:
                t.eventually(lambda: server.now == 4, "its connections")
                with net.connect(front) as client:
                    net.exchange(client, b"hello")
                    port.close()
                    t.eventually(lambda: server.now == 1, "all but the client's are closed", within=10)
                    net.exchange(client, b"hello")
                with port_to_check(f"127.0.0.1:{checked}"):
                    t.eventually(lambda: server.now == 4, "they are back", within=10)
                daemon.stop()


@test()
def no_backup(t):
    """a backup has none while others are there; a group of backups only has them"""
    for backups, count in (("a", 0), ("ab", 3)):
        front = t.address()
        with Counted(t.address()) as a, Counted(t.address()) as b:
            servers = {"a": f"{a.address} backup",
                       "b": b.address + (" backup" if "b" in backups else "")}
            with t.daemon(spared(front, servers, 3)):
                t.eventually(lambda: b.now == 3, "its connections")
                t.eventually(lambda: a.now == count, "those of a")


@test()
def drain(t):
    """SIGTERM closes them, while clients go on"""
    front = t.address()
    with Counted(t.address()) as server:
        with t.daemon(spared(front, server.address, 6, threads=2)) as daemon:
            t.eventually(lambda: server.now == 6, "its connections")
            with net.connect(front) as client:
                net.exchange(client, b"hello")
                t.eventually(lambda: server.now == 7, "its connections, and the client's")
                daemon.send_signal(signal.SIGTERM)
                t.eventually(lambda: server.now == 1, "all but the client's are closed")
                net.exchange(client, b"hello")
            daemon.wait()
            t.eventually(lambda: server.now == 0, "the client's is closed")


@test(timeout=60)
def max_connections(t):
    """with max_connections = 8 there are no more than that while clients come one by one, spare ones make
    way, and come back"""
    front = t.address()
    with Counted(t.address()) as server:
        line = {"a": f"{server.address} max_connections=8"}
        with t.daemon(spared(front, line, 6, threads=2)), contextlib.ExitStack() as stack:
            t.eventually(lambda: server.now == 6, "its connections")
            for n in range(1, 9):
                net.exchange(stack.enter_context(net.connect(front)), b"hello")
                t.eventually(lambda: server.now == min(8, 6 + n), f"connections with {n} clients")
            stack.close()
            t.eventually(lambda: server.now == 6, "those that are kept", within=10)
            check(server.most <= 9, f"the server had {server.most} connections")


@test(timeout=60)
def descriptors_run_out(t):
    """with ulimit -n 96 as many clients are served as without spare connections, which are given up for
    them, and are back when they have gone"""
    served = {}
    for spare in (0, 20):
        front = t.address()
        with Counted(t.address()) as server:
            with t.daemon(spared(front, server.address, spare), nofile=96) as daemon:
                t.eventually(lambda: server.now == spare, "its connections")
                clients = []
                with contextlib.ExitStack() as stack:
                    while True:
                        client = stack.enter_context(net.connect(front, limit_s=1.5 * t.scale))
                        try:
                            net.exchange(client, b"hello")
                        except TimeoutError:
                            break
                        clients.append(client)
                served[spare] = len(clients)
                if spare:
                    check(counts(daemon)["dropped"] > 0, "none was given up")
                    t.eventually(lambda: server.now == spare, "they are back", within=10)
                daemon.stop()
    check_equal(served[20], served[0], "clients that were served")
    check(served[0] > 20, f"{served[0]} clients were served")


@test(timeout=90)
def storm(t):
    """spare = 8 while 3000 clients come, from eight sides at once: each is answered, and none is left
    behind"""
    front = t.address()
    with Counted(t.address()) as server:
        with t.daemon(spared(front, server.address, 8, threads=2)) as daemon:
            t.eventually(lambda: server.now == 8, "its connections")
            fds = daemon.fd_count()
            for task in [net.Task(many_clients, front, 375) for _ in range(8)]:
                task.result()
            t.eventually(lambda: server.now == 8, "what is kept")
            t.eventually(lambda: daemon.fd_count() <= fds, "no descriptor is left behind")
            now = counts(daemon)
            check_equal(now["used"] + now["missed"], 3000, "clients")
            check_equal(now["opened"], now["used"] + now["expired"] + now["closed"] + now["dropped"] + 8,
                        f"the sum of {now}")


def many_clients(front, count):
    for i in range(count):
        message = b"%d" % i
        with net.connect(front) as client:
            check_equal(net.exchange(client, message), message, "the echo")


@test(timeout=90)
def restarts(t):
    """a server that is killed and started again while clients come: each is answered or sees its
    connection break, and afterwards all is as before"""
    front, back = t.address(), t.address()
    with t.daemon(spared(front, back, 8, "retries = 3", threads=2)) as daemon:
        for _ in range(3):
            with Counted(back) as server:
                t.eventually(lambda: server.now >= 8, "its connections", within=12)
                answered = [[] for _ in range(4)]
                tasks = [net.Task(clients_until_broken, front, clients) for clients in answered]
                t.eventually(lambda answered=answered: all(answered), "clients are answered on all sides", within=20)
                time.sleep(0.3)
            for task in tasks:
                check(task.result() > 0, "nobody was answered")
        with Counted(back) as server:
            t.eventually(lambda: server.now == 8, "its connections", within=12)
            many_clients(front, 20)
            now = counts(daemon)
            check(now["replaced"] <= now["used"], f"the counts {now}")


def clients_until_broken(front, answered):
    """Clients until the first that is not answered; how many were, and meanwhile their numbers, in ${answered}."""
    for n in range(100000):
        try:
            with net.connect(front) as client:
                client.sendall(b"hello")
                answer = client.recv(5)
                if answer != b"hello":
                    check_equal(answer, b"", "an answer")
                    return n
            answered.append(n)
        except OSError:
            return n
    return 0


@test(needs=["redis-server", "redis-cli"])
def with_redis(t):
    """redis: commands on spare connections, and redis counts as many clients as are kept"""
    front = t.address()
    with program.redis(t) as back, t.daemon(spared(front, back, 4)) as daemon:
        host, _, port = front.rpartition(":")
        wait_counts(t, daemon, spares=4)
        for i in range(20):
            said = program.run(["redis-cli", "-h", host, "-p", port, "set", f"k{i}", "v"])
            check_equal(said.strip(), b"OK", "redis")
            wait_counts(t, daemon, spares=4)
        said = program.run(["redis-cli", "-h", host, "-p", port, "client", "list"])
        check_equal(counts(daemon)["used"], 21, "spare connections that were used")
        check(4 <= len(said.splitlines()) <= 5, f"redis has {said!r}")


@test(needs=["nginx", "curl"])
def with_nginx(t):
    """nginx: files of some length through spare connections"""
    front = t.address()
    content = bytes(range(256)) * 4096
    with program.nginx(t, {"file": content}) as back, t.daemon(spared(front, back, 4)) as daemon:
        for _ in range(10):
            wait_counts(t, daemon, spares=4)
            got = program.run(["curl", "-s", f"http://{front}/file"])
            check(got == content, f"{len(got)} bytes came")
        check_equal(counts(daemon)["used"], 10, "spare connections that were used")


@test()
def through_the_log_handler(t):
    """with pipeline = log a client whose spare connection was dead is connected anew, too"""
    front, back = t.address(), t.address()
    ini = spared(front, back, 1).replace("service = proxy", "service = proxy\npipeline = log")
    with net.listen(back) as listener, t.daemon(ini) as daemon:
        spare = net.accept(listener)
        with net.connect(front) as client:
            net.accept(listener).close()
            hold(t, daemon)
            end(t, spare, "ends")
            client.sendall(b"question")
            daemon.send_signal(signal.SIGCONT)
            with hear_question(listener) as heard:
                heard.sendall(b"answer")
                check_equal(net.read_exactly(client, 6), b"answer", "what the client hears")


@test(each={"waits": ["at once", "later"]})
def with_send_proxy(t, waits):
    """with send_proxy = v1 the header goes out when a client gets a spare connection; when that turns out
    dead for one that speaks {waits}, it goes out once more, on the other one"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(spared(front, back, 1, "send_proxy = v1")) as daemon:
        spare = net.accept(listener)
        with net.connect(front) as client:
            header = (f"PROXY TCP4 127.0.0.1 127.0.0.1 {client.getsockname()[1]} "
                      f"{front.rpartition(':')[2]}\r\n").encode()
            net.accept(listener).close()
            check_equal(net.read_exactly(spare, len(header)), header, "the first header")
            hold(t, daemon)
            end(t, spare, "ends")
            if waits == "later":
                daemon.send_signal(signal.SIGCONT)
                t.eventually(lambda: counts(daemon)["replaced"] == 1, "the replacement")
            client.sendall(b"question")
            daemon.send_signal(signal.SIGCONT)
            with hear_question(listener, header) as heard:
                heard.sendall(b"answer")
                check_equal(net.read_exactly(client, 6), b"answer", "what the client hears")
        wait_counts(t, daemon, replaced=1, used=1)


@test(each={"behind": ["in one segment", "later"], "spare_is": ["alive", "dead"]})
def behind_accept_proxy(t, behind, spare_is):
    """a client whose header and question come {behind} gets a spare connection that is {spare_is}: it is
    answered"""
    front, back = t.address(), t.address()
    ini = spared(front, back, 1).replace(
        "service = proxy", "service = proxy\naccept_proxy = required\ntrusted_proxies = 127.0.0.1/32")
    header = b"PROXY TCP4 192.0.2.7 192.0.2.8 1000 2000\r\n"
    with net.listen(back) as listener, t.daemon(ini) as daemon:
        spare = net.accept(listener)
        wait_counts(t, daemon, spares=1)
        with net.connect(front) as client:
            if behind == "later":
                client.sendall(header)
                net.accept(listener).close()
            hold(t, daemon)
            if spare_is == "dead":
                end(t, spare, "ends")
            client.sendall(b"question" if behind == "later" else header + b"question")
            daemon.send_signal(signal.SIGCONT)
            heard = spare if spare_is == "alive" else hear_question(listener)
            if spare_is == "alive":
                check_equal(net.read_exactly(spare, 8), b"question", "what the server hears")
            heard.sendall(b"answer")
            check_equal(net.read_exactly(client, 6), b"answer", "what the client hears")
            heard.close()


@test()
def over_unix_sockets(t):
    """a server on a unix socket has spare connections too"""
    front = t.address()
    with net.listen(t.path("back.sock")) as listener:
        with t.daemon(spared(front, t.path("back.sock"), 2)):
            spares = accept_all(listener, 2)
            with net.connect(front) as client:
                client.sendall(b"question")
                check_equal(net.read_exactly(who_hears(spares), 8), b"question", "what it hears")
            spares.append(net.accept(listener))
            close_all(spares)


def echo_forever(listener):
    listener.settimeout(None)
    while True:
        s, _ = listener.accept()
        net.Task(echo_once, s)


def echo_once(s):
    with s, contextlib.suppress(OSError):
        while data := s.recv(net.CHUNK):
            s.sendall(data)


def first_answers(front, count):
    """How long clients of a proxy wait for the answer to what they say at once, one after the other."""
    times = []
    for _ in range(count):
        began = time.monotonic()
        with net.connect(front) as client:
            net.exchange(client, b"hello")
            times.append(time.monotonic() - began)
        time.sleep(0.2)
    return times


@test(timeout=60, plain_only=True)
def one_round_trip_less(t):
    """a client of a server 80 ms away has its first answer after one round trip, not two: at 0.7 of the
    time without spare connections, or less"""
    own_network()
    far, took = FarHost(0.04), {}
    back = f"{FAR}:{t.port()}"
    with far.there():
        listener = net.listen(back)
    net.Task(echo_forever, listener)
    for spare in (0, 4):
        front = t.address()
        with t.daemon(spared(front, back, spare)) as daemon:
            if spare:
                wait_counts(t, daemon, spares=4, opened=4)
            took[spare] = first_answers(front, 7)
    check(min(took[0]) >= 0.16 and min(took[4]) >= 0.08, f"the link is too fast: {took}")
    ratio = statistics.median(took[4]) / statistics.median(took[0])
    print(f"first answer: {statistics.median(took[0]) * 1000:.0f} ms without, "
          f"{statistics.median(took[4]) * 1000:.0f} ms with spare = 4, ratio {ratio:.2f}")
    check(ratio <= 0.7, f"a ratio of {ratio:.2f}: {took}")
