"""overload: clients that never read make the daemon hold no more than it may, and nobody else notices."""

import contextlib
import re
import resource
import select
import signal
import socket
import threading
import time

from support import net
from support.case import check, check_equal, test

KIB = 1024
MIB = 1024 * 1024
CROWD = 2000
LIMIT = 64 * MIB  # of which 2,000 that hold 64 KiB each would take twice as much
SMALL = 16 * MIB


def config(address, limit, options="", listen="", of="max_buffered"):
    """An echo that tells how much its kernel buffers take, so that a crowd of them fits into any machine."""
    return (f"[reactord]\n{of} = {limit}\n{options}\n[worker]\nthreads = 2\n"
            f"[listen echo]\naddress = {address}\nservice = echo\nbacklog = 4096\n"
            f"send_buffer = 32k\nreceive_buffer = 32k\n{listen}\n")


class Flood:
    """Clients that send as much as they can, and never read."""

    def __init__(self, address, count):
        _, self.where = net.parse(address)
        self.poll = select.poll()
        self.clients = {}
        self.cut = 0
        self.moved = False
        for _ in range(count):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * KIB)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * KIB)
            s.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                s.connect(self.where)
            self.clients[s.fileno()] = s
            self.poll.register(s, select.POLLOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in self.clients.values():
            s.close()

    def go_on(self, probe, seconds, still=1.5):
        """Send until nothing has moved for a while, but no longer than so many seconds; probe() again and again."""
        end, quiet_s = time.monotonic() + seconds, 0
        while time.monotonic() < end and quiet_s < still:
            began, self.moved = time.monotonic(), False
            for fd, _ in self.poll.poll(20):
                self._send(fd)
            probe()
            # No more than the wait: a busy machine may not run us for a second.
            quiet_s = 0 if self.moved else quiet_s + min(time.monotonic() - began, 0.02)

    def _send(self, fd):
        try:
            if self.clients[fd].send(bytes(64 * KIB)) > 0:
                self.moved = True
        except BlockingIOError:
            pass
        except OSError:
            self.poll.unregister(fd)
            self.clients.pop(fd).close()
            self.cut += 1
            self.moved = True


class Talkers:
    """Clients that read what they ask for, all the while."""

    def __init__(self, address, count=5):
        self.stop = threading.Event()
        self.longest = [0.0] * count
        self.clients = [net.connect(address) for _ in range(count)]
        self.tasks = [net.Task(self._talk, i) for i in range(count)]

    def _talk(self, i):
        turns = 0
        while not self.stop.is_set():
            began = time.monotonic()
            check_equal(net.exchange(self.clients[i], bytes(4096)), bytes(4096), "an echo")
            self.longest[i] = max(self.longest[i], time.monotonic() - began)
            turns += 1
            time.sleep(0.01)
        return turns

    def finish(self):
        self.stop.set()
        turns = [task.result() for task in self.tasks]
        for client in self.clients:
            client.close()
        return turns


def held(t, daemon):
    """What the daemon says it holds, and how many connections it has closed for that."""
    counts = daemon.counts("overload")
    return counts["buffered"], counts["closed"]


def in_use(t, daemon):
    """The memory that it says it has in use, with that of pipes."""
    return daemon.counts("memory")["in_use"] + daemon.counts("overload")["pipes"]


def allow_descriptors(count):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    check(hard >= count, f"RLIMIT_NOFILE is {hard}: too few for this test")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@test(timeout=120, each={"splice": ["off", "auto"]})
def clients_that_never_read(t, splice):
    """2,000 clients that never read what an echo with max_buffered = 64m and splice = {splice} sends
    back: the process stays smaller than that, five that do read notice nothing, and the log has a pair of lines
    for each episode"""
    hard = allow_descriptors(2 * CROWD)
    address = t.address()
    with t.daemon(config(address, LIMIT, listen=f"splice = {splice}"), nofile=hard) as daemon:
        talkers = Talkers(address)
        time.sleep(0.2)
        idle_rss = highest = daemon.rss_bytes()

        def probe():
            nonlocal highest
            highest = max(highest, daemon.rss_bytes())

        with Flood(address, CROWD) as flood:
            flood.go_on(probe, 20 * t.scale)
            bytes_held, closed = held(t, daemon)
            print(f"RSS {idle_rss // KIB} KiB, at most {highest // KIB} KiB; {bytes_held} bytes are held, "
                  f"{closed} connections closed, {flood.cut} seen; longest turn of a talker "
                  f"{max(talkers.longest):.3f} s")
            check(closed > 0, "no connection was closed")
            check(bytes_held <= LIMIT, f"{bytes_held} bytes are held in the end")
            if not t.sanitized:
                check(highest < LIMIT, f"RSS grew to {highest // MIB} MiB")
            with net.connect(address) as late:
                check_equal(net.exchange(late, b"hello"), b"hello", "the echo of a new client")
        turns = talkers.finish()
        check(min(turns) > 20, f"turns of those who read: {turns}")
        check(max(talkers.longest) < 2 * t.scale, f"a turn took {max(talkers.longest):.2f} s")
        t.eventually(lambda: held(t, daemon)[0] == 0, "all memory is given back")
        begins = len(daemon.log_lines("overload: .* bytes are buffered"))
        ends = len(daemon.log_lines("overload is over"))
        check(begins == ends and begins > 0, f"{begins} episodes begin, {ends} end")


@test(timeout=60)
def nobody_is_closed(t):
    """with shed_rate = 0 new clients wait while there is too much, and are served when those who
    do not read have gone"""
    address = t.address()
    with t.daemon(config(address, SMALL, "shed_rate = 0", "splice = off")) as daemon:
        with net.connect(address) as old:
            check_equal(net.exchange(old, b"hello"), b"hello", "the echo")
            with Flood(address, 400) as flood:
                flood.go_on(lambda: None, 15 * t.scale)
                check_equal(flood.cut, 0, "connections closed")
                with net.connect(address) as late:
                    late.sendall(b"hello")
                    check(not select.select([late], [], [], 0.5)[0], "a new client is served")
                    check_equal(net.exchange(old, b"hello"), b"hello", "the echo of an old client")
                    used = daemon.cpu_s()
                    time.sleep(1)
                    check(daemon.cpu_s() - used < 0.3, "waiting costs processor time")
                    flood.__exit__()
                    flood.clients.clear()
                    check_equal(net.read_exactly(late, 5), b"hello", "the echo of the new client")
        check_equal(len(daemon.log_lines("overload: .* bytes are buffered")), 1, "episodes")


@test(timeout=60)
def stopped_in_an_episode(t):
    """a daemon that is stopped while it closes connections for lack of memory ends as usual"""
    address = t.address()
    with t.daemon(config(address, SMALL, "shed_rate = 20/s", "splice = off")) as daemon:
        with Flood(address, 400) as flood:
            def episode():
                flood.go_on(lambda: None, 1)
                return daemon.log_lines("overload: .* bytes are buffered")
            t.eventually(episode, "an episode")
            daemon.stop(signal.SIGINT)


class Idlers:
    """Clients that have said something, and then nothing more; in the order they came."""

    def __init__(self, address):
        self.address = address
        self.clients = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()

    def come(self, count):
        """So many more come, and are served, if need be when there is room for them."""
        for _ in range(count):
            client = net.connect(self.address)
            client.sendall(b"hello")
            check_equal(net.read_exactly(client, 5), b"hello", "the echo")
            self.clients.append(client)

    def gone(self):
        """Which of them have been closed."""
        poll = select.poll()
        places = {client.fileno(): i for i, client in enumerate(self.clients)}
        for fd in places:
            poll.register(fd, select.POLLIN)
        return sorted(places[fd] for fd, _ in poll.poll(0))


@test(timeout=120)
def too_many_that_are_idle(t):
    """8,000 clients come and say nothing more to an echo with max_memory = 6m: it never takes more
    for longer than until it looks, those who were idle for longest are closed, and one that talks is not"""
    if t.sanitized:
        return  # the memory in use is not glibc's to tell
    hard, count, limit = allow_descriptors(9000), 8000, 6 * MIB
    address = t.address()
    with t.daemon(config(address, limit, of="max_memory"), nofile=hard) as daemon:
        before = in_use(t, daemon)
        talkers = Talkers(address)
        highest = before
        with Idlers(address) as idlers:
            for _ in range(16):
                idlers.come(count // 16)
                highest = max(highest, in_use(t, daemon))
                t.eventually(lambda: in_use(t, daemon) <= limit, "it takes less again")
            gone = idlers.gone()
            print(f"{before} bytes in use at first, at most {highest}; {len(gone)} of {count} closed, "
                  f"the last of them number {gone[-1]}")
            check(len(gone) > count // 8, "hardly anyone was closed")
            check(gone[-1] < len(gone) + count // 4, f"{len(gone)} closed, the last number {gone[-1]}")
            t.eventually(lambda: held(t, daemon)[1] == len(idlers.gone()), "it counts those that it closed")
        check(min(talkers.finish()) > 20, "those who talk were held up")
        t.eventually(lambda: len(daemon.log_lines("overload: .* max_memory.* idle")) ==
                     len(daemon.log_lines("overload is over")) > 0, "a pair of lines for each episode")


@test(timeout=120, each={"splice": ["off", "auto"]})
def memory_of_those_that_never_read(t, splice):
    """2,000 clients that never read what an echo with max_memory = 64m and splice = {splice} sends
    back are closed, and not the 500 that say nothing"""
    if t.sanitized:
        return  # the memory in use is not glibc's to tell
    hard = allow_descriptors(2 * CROWD + 1000)
    address, highest = t.address(), 0
    with t.daemon(config(address, LIMIT, listen=f"splice = {splice}", of="max_memory"),
                  nofile=hard) as daemon, Idlers(address) as idlers:
        idlers.come(500)
        looked = time.monotonic()

        def probe():
            nonlocal highest, looked
            if time.monotonic() > looked + 0.2:
                highest, looked = max(highest, in_use(t, daemon)), time.monotonic()

        with Flood(address, CROWD) as flood:
            flood.go_on(probe, 20 * t.scale)
            print(f"at most {highest} bytes in use; {held(t, daemon)}")
            check(held(t, daemon)[1] > 0, "no connection was closed")
            check(highest < LIMIT, f"{highest} bytes in use")
            check_equal(idlers.gone(), [], "idle connections that were closed")
            check(daemon.log_lines("overload: .* max_memory.* stalled"), "no line says why")


@test()
def too_little_memory(t):
    """a max_memory of which more than half is taken before the first client is refused"""
    if t.sanitized:
        return  # the memory in use is not glibc's to tell
    address = t.address()
    text = config(address, 4 * MIB, of="max_memory").replace("threads = 2", "threads = 64")
    done = t.reactord("-c", t.write("small.ini", text))
    check(re.search(r"max_memory: \d+ of \d+ bytes are in use before the first client", done.err), done.err)
    check_equal(done.code, 3, "the exit code")
