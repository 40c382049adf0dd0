"""spare: spare connections when servers go down or are full, when descriptors run out, and with real servers."""

import contextlib
import signal
import statistics
import time

from support import net, program
from support.case import check, check_equal, test
from support.health import port_to_check
from support.network import FAR, FarHost
from support.own_network import own_network
from support.server import Counted
from support.spare_servers import (
    accept_all, close_all, counts, end,
    hear_question, hold, spared, wait_counts, who_hears)

THEME = "spare"


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
        wait_counts(t, daemon, spares=1)
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
        wait_counts(t, daemon, spares=1)
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
