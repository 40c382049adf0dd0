"""session_moves: sessions move from one worker loop to another, and neither client nor server notices."""

import contextlib
import itertools
import socket
import threading
import time

from support import descriptors, net, tls
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.server import Counted
from support.tls_listeners import certificate_of, profile

WORKERS = 4
LOOPS = [f"work-2-{i}" for i in range(1, WORKERS + 1)]

# Kinds of listeners: the service is proxy, to the daemon's own echo, unless the options name another.
KINDS = {
    "echo": "service = echo\n",
    "copied": "splice = off\n",
    "spliced": "splice = on\n",
    "spliced_timed": "client_idle_timeout = 20s\nidle_timeout = 20s\n",
    "idle": "pipeline = idle\nidle_read = 20s\nidle_action = close\n",
    "frame": "service = echo\npipeline = frame\nframe_by = delimiter\nframe_delimiter = \\n\n"
             "frame_strip_delimiter = no\nframe_max_length = 1m\n",
    "executor": "service = echo\npipeline = executor\n",
    "bandwidth": "bandwidth_in = 4m\nbandwidth_out = 4m\n",
    "mirror": "mirror = mirrored\n",
    "fault": "fault_delay = 2ms\nfault_jitter = 3ms\n",
    "log": "access_log = log\naccess_log_interval = 1s\n",
}


class Moved:
    """A daemon with a listener of each of these kinds, and what moves its sessions about."""

    def __init__(self, t, kinds=("echo",), options=""):
        self.t, self.admin, self.options = t, t.path("admin.sock"), options
        self.mirror = Counted(t.address())
        self.addresses = {kind: t.address() for kind in {**dict.fromkeys(kinds), "echo": None}}
        self.log = t.path("access.log")
        self.stop = threading.Event()
        self.sums = dict.fromkeys(("moved", "there", "busy", "failed"), 0)

    def config(self, options=None):
        mirrored = self.mirror.address
        listeners = "".join(
            f"[listen {kind}]\naddress = {address}\n" + KINDS.get(kind, "").replace("= log\n", f"= {self.log}\n")
            + ("" if "service" in KINDS.get(kind, "") else "service = proxy\nupstream = back\n")
            + (self.options if options is None else options)
            for kind, address in self.addresses.items())
        return (f"[reactord]\nlog_level = debug\nallow_faults = yes\n[worker]\nthreads = {WORKERS}\n"
                + section(self.admin) + listeners
                + f"[upstream back]\nserver.only = {self.addresses['echo']}\n"
                f"[upstream mirrored]\nserver.only = {mirrored}\n")

    @contextlib.contextmanager
    def running(self):
        with self.mirror, self.t.daemon(self.config()) as daemon:
            self.daemon = daemon
            yield self
            check_equal(self.sums["failed"], 0, "moves that failed")

    def move(self, to, status=200, **which):
        answer = post(self.admin, "/v1/sessions/move", {"to": to, **which})
        check_equal(answer.status, status, f"the status of a move to {to}: {answer.body}")
        return answer.json

    def sessions(self, listener=None):
        rows = get(self.admin, "/v1/sessions?limit=1000").json["sessions"]
        return [row for row in rows if listener in (None, row["listener"])]

    def moving(self):
        """Move the sessions of one loop after the other to the next one, until `stop`."""
        for i in itertools.count():
            if self.stop.is_set():
                return
            answer = self.move(LOOPS[(i + 1) % WORKERS], loop=LOOPS[i % WORKERS])
            for key in self.sums:
                self.sums[key] += answer[key]
            time.sleep(0.005)  # else a busy machine does nothing but moves

    @contextlib.contextmanager
    def restless(self):
        mover = net.Task(self.moving)
        try:
            yield
        finally:
            self.stop.set()
            mover.result()
            self.stop.clear()


def send(s, data, sizes):
    for size in itertools.cycle(sizes):
        s.sendall(data[:size])
        data = data[size:]
        if not data:
            break
    s.shutdown(socket.SHUT_WR)


def stream(address, data, sizes, stall_s=0):
    """Send ${data} in writes of these sizes, then end of file, and read meanwhile what comes back, with a stall."""
    with net.connect(address) as s:
        sender = net.Task(send, s, data, sizes)
        half = net.read_exactly(s, len(data) // 2)
        time.sleep(stall_s)
        whole = half + net.read_to_end(s)
        sender.result()
        return whole == data


@test(each={"kind": list(KINDS)}, timeout=60)
def nobody_notices(t, kind):
    """{kind}: every byte of streams arrives, and their end, while their sessions move from loop to loop without pause"""
    slow = kind in ("executor", "fault", "bandwidth", "frame")
    data = b"".join(b"%d\n" % n for n in range(30_000 if slow else 600_000))
    moved = Moved(t, [kind])
    with moved.running() as m, m.restless():
        while m.sums["moved"] < 40:
            streams = [net.Task(stream, m.addresses[kind], data, (n * 1000, 17, 60_000), 0.05) for n in range(1, 9)]
            for n, one in enumerate(streams, 1):
                check(one.result(), f"stream {n} is not what was sent")
    # the daemon's end: its counters add up, and it has no descriptor and no memory left (in a sanitized build)


def tls_config(m, side, ca, certificate):
    """A listener `front`: TLS with the client, or with the server, which is listener `secret`."""
    front = "tls = secret\nservice = echo\n" if side == "client" else "service = proxy\nupstream = secret\n"
    return (f"[reactord]\n[worker]\nthreads = {WORKERS}\n" + section(m.admin)
            + profile("secret", certificate) + f"[tls trusted]\nca = {ca.path}\n"
            + f"[listen front]\naddress = {m.addresses['front']}\n{front}"
            + f"[listen secret]\naddress = {m.addresses['echo']}\ntls = secret\nservice = echo\n"
            + f"[upstream secret]\nserver.only = {m.addresses['echo']}\ntls = trusted\n"
            "tls_name = a.example\n")


@test(each={"side": ["client", "server"]}, timeout=60)
def in_tls(t, side):
    """TLS with the {side}: the bytes of sessions that move stay whole, and their end is told by close_notify"""
    ca, certificate = certificate_of(t)
    m = Moved(t, ["front"])
    m.config = lambda: tls_config(m, side, ca, certificate)
    with m.running(), m.restless():
        while m.sums["moved"] < 20:
            if side == "server":
                check(stream(m.addresses["front"], bytes(300_000), (17, 5000)), "other bytes than were sent")
                continue
            with contextlib.closing(tls.connect(m.addresses["front"], tls.client_context(ca.path))) as peer:
                check_equal(tls.echo_pattern(peer, 300_000, (17, 5000)), (300_000, net.pattern_sha256(300_000)), "bytes")


@test()
def to_a_loop(t):
    """reactorctl moves one session, or all of a loop; `sessions` shows where they are; what cannot be is refused"""
    with Moved(t).running() as m, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(m.addresses["echo"])) for _ in range(6)]
        for client in clients:
            net.exchange(client, b"x")
        one = m.sessions()[0]
        to = next(loop for loop in LOOPS if loop != one["loop"])
        run = t.reactorctl("-s", m.admin, "move", one["id"], "--to", to)
        check_equal((run.code, run.err), (0, ""), "exit code and stderr")
        check("moved 1 session;" in run.out, run.out)
        check_equal({row["id"]: row["loop"] for row in m.sessions()}[one["id"]], to, "its loop")
        run = t.reactorctl("-s", m.admin, "move", "--all", "--to", to)
        check_equal({row["loop"] for row in m.sessions()}, {to}, f"the loops of all ({run.out}{run.err})")
        check_equal(m.move(to, all=True), {"moved": 0, "there": 6, "busy": 0, "failed": 0}, "when all are there")
        for client in clients:
            check_equal(net.exchange(client, b"y"), b"y", "the echo")
        check("does not exist" in m.move("work-2-9", 404, all=True)["error"], "an unknown loop")
        check("does not exist" in m.move(to, 404, listener="nobody")["error"], "an unknown listener")
        check("which sessions" in m.move(to, 400)["error"], "no filter")
        check("'to'" in post(m.admin, "/v1/sessions/move", {"all": True}).error, "no loop")
        run = t.reactorctl("-s", m.admin, "move", "--all")
        check_equal((run.code, "--to LOOP" in run.err), (2, True), f"without --to: {run.err}")


@test()
def to_a_parked_loop(t):
    """a loop that is out of use gets no sessions"""
    m = Moved(t)
    with m.running(), net.connect(m.addresses["echo"]) as client:
        net.exchange(client, b"x")
        m.daemon.reload(m.config().replace(f"threads = {WORKERS}", "threads = 2"))
        check("parked" in m.move("work-2-4", 409, all=True)["error"], "a parked loop")
        check_equal(net.exchange(client, b"y"), b"y", "the echo")


@test()
def killed_on_the_way(t):
    """`kill --all` meets each session exactly once, wherever it is just going"""
    with Moved(t).running() as m, contextlib.ExitStack() as stack:
        for _ in range(5):
            clients = [stack.enter_context(net.connect(m.addresses["echo"])) for _ in range(100)]
            for client in clients:
                net.exchange(client, b"x")
            with m.restless():
                t.eventually(lambda: m.sums["moved"] > 200, "sessions move")
                killed = post(m.admin, "/v1/sessions/kill", {"all": True}).json["killed"]
            check_equal(killed, 100, "sessions killed")
            check_equal({net.ending(client) for client in clients}, {"reset"}, "how clients end")
            m.sums["moved"] = 0


@test()
def reloaded_on_the_way(t):
    """a reload gives each session its listener's new settings, wherever it is just going"""
    with Moved(t).running() as m, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(m.addresses["echo"])) for _ in range(100)]
        for client in clients:
            net.exchange(client, b"x")
        with m.restless():
            for i in range(1, 6):
                m.daemon.reload(m.config(f"idle_timeout = {i + 100}s\n"))
                m.daemon.wait_carried_over(i)
            check_equal(len(m.sessions()), 100, "sessions")
            m.daemon.reload(m.config("idle_timeout = 100ms\n"))
            check_equal({net.ending(client) for client in clients}, {"fin"}, "how clients end")


@test()
def timeouts_hold(t):
    """a session that moves without pause times out as if it stayed, neither early nor never"""
    with Moved(t, options="idle_timeout = 1500ms\n").running() as m, m.restless():
        with net.connect(m.addresses["echo"]) as client:
            for _ in range(4):
                net.exchange(client, b"x")
                time.sleep(0.5)
            net.exchange(client, b"x")
            last = time.monotonic()
            check_equal(net.ending(client), "fin", "how it ends")
            check(time.monotonic() - last >= 1.4, f"it ended {time.monotonic() - last} s after its last byte")


@test()
def drained_on_the_way(t):
    """a stop finds sessions that are moving: echoes that are quiet end, and the daemon too"""
    with Moved(t).running() as m, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(m.addresses["echo"])) for _ in range(50)]
        for client in clients:
            net.exchange(client, b"x")
        mover = net.Task(m.moving)
        t.eventually(lambda: m.sums["moved"] > 100, "sessions move")
        m.daemon.stop()
        check_equal({net.ending(client) for client in clients}, {"fin"}, "how clients end")
        m.stop.set()
        with contextlib.suppress(Exception):  # the admin interface ends with the daemon
            mover.result()


@test()
def reset_behind_a_half_close(t):
    """a client that has ended its half, and is read no more, resets: that is seen on the loop it has moved to"""
    silent = t.address()
    m = Moved(t, ["copied"])
    config = m.config().replace(f"[upstream back]\nserver.only = {m.addresses['echo']}",
                                f"[upstream back]\nserver.only = {silent}")
    m.config = lambda: config
    with net.listen(silent) as listener, m.running(), net.proxied(m.addresses["copied"], listener) as (client, server):
        client.shutdown(socket.SHUT_WR)
        check_equal(server.recv(1), b"", "the client's end")
        here = m.sessions("copied")[0]["loop"]
        check_equal(m.move(next(loop for loop in LOOPS if loop != here), all=True)["moved"], 1, "sessions moved")
        net.reset(client)
        t.eventually(lambda: not m.sessions("copied"), "the session ends")


def registered(pid):
    """The descriptors that all epoll instances of a process watch, one in several instances several times."""
    lines = []
    for fd, what in descriptors.of_process(pid).items():
        with contextlib.suppress(FileNotFoundError):
            if "eventpoll" in what:
                with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as info:
                    lines += [line for line in info if line.startswith("tfd:")]
    return len(lines)


def monkey_streams(m, kind, until, data):
    """Whole streams one after the other, then one that is reset half way."""
    while time.monotonic() < until:
        check(stream(m.addresses[kind], data, (20_000, 17, 60_000)), f"{kind}: other bytes than were sent")
        with net.connect(m.addresses[kind]) as s:
            s.sendall(data[:2000])
            net.reset(s)


@test(timeout=180, plain_only=True)
def monkey(t):
    """every session moves each 10 ms at most, of every kind at once, beside resets and reloads: every byte arrives,
    counters add up, and nothing stays in an epoll instance"""
    m = Moved(t, list(KINDS))
    data = b"".join(b"%d\n" % n for n in range(30_000))
    with m.running():
        with m.restless():
            until = time.monotonic() + (60 if t.options.long else 2)
            streams = [net.Task(monkey_streams, m, kind, until, data) for kind in KINDS for _ in range(2)]
            reloads = 0
            while time.monotonic() < until:
                reloads += 1
                m.daemon.reload(m.config(f"max_lifetime = {reloads + 100}s\n"))
                m.daemon.wait_carried_over(reloads)
                held = len(descriptors.of_process(m.daemon.pid))
                check(registered(m.daemon.pid) <= WORKERS * held, "descriptors in epoll instances grow")
                time.sleep(0.5)
            for one in streams:
                one.result()
        check(m.sums["moved"] > 40, f"few moves: {m.sums}")
        t.eventually(lambda: not m.sessions(), "all sessions end")
        t.eventually(lambda: registered(m.daemon.pid) <= len(descriptors.of_process(m.daemon.pid)),
                     "no descriptor stays in a second epoll instance")
