"""faults: connections that are disturbed on purpose, to see what their clients do."""

import signal
import socket
import time

from support import net
from support.case import check, check_equal, test
from support.net import Task

ALLOWED = "[reactord]\nallow_faults = yes\n"
PROXY = "[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n{options}\n" \
        "[upstream back]\nserver.a = {back}\n"


def echo(address, options):
    return f"{ALLOWED}[listen echo]\naddress = {address}\nservice = echo\n{options}\n"


def proxy(front, back, options):
    return ALLOWED + PROXY.format(front=front, back=back, options=options)


@test()
def refused(t):
    """a fault without allow_faults is refused, and named with its line"""
    config = echo(t.address(), "fault_delay = 1s").replace("= yes", "= no")
    done = t.reactord("-t", "-c", t.write("x.ini", config))
    check_equal(done.code, 1, "the exit code")
    check(":6: [listen echo] fault_delay: faults are not allowed" in done.err, done.err)


@test()
def announced(t):
    """a listener that disturbs connections is named in a warning at the start"""
    with t.daemon(echo(t.address(), "fault_delay = 1s")) as daemon:
        check(daemon.log_lines("warning main: listen echo: fault injection is on"),
              "there is no warning")
    with t.daemon(echo(t.address(), "")) as daemon:
        check(not daemon.log_lines("disturbed"), "a warning without a fault")


@test()
def delayed(t):
    """fault_delay: an answer comes no sooner, and the next one after it"""
    address = t.address()
    with t.daemon(echo(address, "fault_delay = 300ms\nfault_jitter = 100ms")):
        with net.connect(address) as s:
            for _ in range(3):
                began = time.monotonic()
                check_equal(net.exchange(s, b"hello"), b"hello", "the echo")
                took = time.monotonic() - began
                check(took >= 0.3, f"it took {took:.3f} s")


@test(timeout=60)
def slowed(t):
    """fault_rate: a proxied answer takes its time and arrives whole, and so does the end"""
    front, back = t.address(), t.address()
    total = 400_000
    with net.listen(back) as listener, t.daemon(proxy(front, back, "fault_rate = 200000")):
        with net.proxied(front, listener) as (client, server):
            began = time.monotonic()
            sending = Task(net.send_pattern, server, total)
            check_equal(net.receive_sha256(client, total), net.pattern_sha256(total), "the bytes")
            took = time.monotonic() - began
            sending.result()
            check(took >= 1.5, f"400,000 bytes took {took:.2f} s at 200,000 a second")
            check_equal(client.recv(1), b"", "then the end")


@test(timeout=60)
def memory(t):
    """fault_rate: a fast server of a slow client is held up, and memory stays small"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, "fault_rate = 1000")) as daemon:
        with net.proxied(front, listener) as (client, server):
            before = daemon.rss_bytes()
            net.fill(server)
            net.fill(client)
            grown = daemon.rss_bytes() - before
            check(t.sanitized or grown < 2 * 1024 * 1024, f"it has grown by {grown} bytes")


@test()
def cut(t):
    """fault_reset_after: an answer is cut at the byte, and both sides are reset"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, t.daemon(proxy(front, back, "fault_reset_after = 1000")):
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"x" * 100)
            net.read_exactly(server, 100)
            server.sendall(b"y" * 2000)
            check_equal(net.read_exactly(client, 900), b"y" * 900, "the bytes before the cut")
            check_equal(net.ending(client), "reset", "then the client sees")
            check_equal(net.ending(server), "reset", "then the server sees")


@test()
def dropped(t):
    """fault_drop: a share is not served, and is counted"""
    address = t.address()
    config = echo(address, "fault_drop = 50\nfault_percent = 50\nfault_seed = 1")
    with t.daemon(config) as daemon:
        fates = []
        for _ in range(100):
            try:
                with net.connect(address) as s:
                    fates.append(net.exchange(s, b"?") == b"?")
            except (OSError, EOFError):
                fates.append(False)
        lost = fates.count(False)
        check(5 <= lost <= 50, f"{lost} of 100 were not served where 25 should be")
        daemon.send_signal(signal.SIGRTMIN)
        t.eventually(lambda: daemon.log_lines(rf"stats listen echo faults=\d+ fault_drops={lost} "),
                     f"{lost} are counted")


@test()
def mute(t):
    """fault_drop_as = silence: nothing comes back until the client goes"""
    address = t.address()
    with t.daemon(echo(address, "fault_drop = 100\nfault_drop_as = silence")):
        with net.connect(address) as s:
            s.sendall(b"hello")
            s.settimeout(0.5)
            try:
                check(False, f"it answered {s.recv(10)!r}")
            except TimeoutError:
                pass


@test()
def others(t):
    """fault_clients: who is not among them is served as ever"""
    address = t.address()
    with t.daemon(echo(address, "fault_drop = 100\nfault_clients = 127.0.0.5, ::1")):
        with net.connect(address) as s:
            check_equal(net.exchange(s, b"hello"), b"hello", "the echo")


@test(timeout=60)
def drained(t):
    """SIGTERM: an echo that is still held back is delivered before the daemon ends"""
    address = t.address()
    with t.daemon(echo(address, "fault_delay = 2500ms")) as daemon:
        with net.connect(address) as s:
            s.sendall(b"late")
            time.sleep(0.2)
            daemon.send_signal(15)
            check_equal(net.read_exactly(s, 4), b"late", "the echo")
            check_equal(net.ending(s), "fin", "then")
        daemon.wait()


@test()
def behind_the_beginning_of_a_header(t):
    """accept_proxy = optional, fault_delay: what might have become a PROXY header reaches the server with its end, also when
    the server has ended already"""
    front, back = t.address(), t.address()
    options = "fault_delay = 300ms\naccept_proxy = optional\ntrusted_proxies = 127.0.0.1"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)):
        with net.connect(front) as client:
            client.sendall(b"PR")
            client.shutdown(socket.SHUT_WR)
            with net.accept(listener) as server:
                server.shutdown(socket.SHUT_WR)
                check_equal(net.read_to_end(server), b"PR", "what the server hears")
            check_equal(net.read_to_end(client), b"", "what the client hears")


@test()
def cut_behind_a_thread(t):
    """fault_reset_after with pipeline = executor: the server gets the bytes before the cut, and then a reset"""
    front, back = t.address(), t.address()
    options = "fault_reset_after = 10\npipeline = executor\nexecutor_delay = 200ms"
    with net.listen(back) as listener, t.daemon(proxy(front, back, options)) as daemon:
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"0123456789abcdef")
            check_equal(net.read_exactly(server, 10), b"0123456789", "what the server hears")
            check_equal(net.ending(server), "reset", "its end")
            check_equal(net.ending(client), "reset", "the client's end")

        def counted():
            daemon.send_signal(signal.SIGRTMIN)
            return daemon.log_lines("stats listen front sessions=0 .* limit=1")

        t.eventually(counted, "the reason")
