"""fault plan: any call of the C library fails, in the program or in a library, at the start, while clients are served, in
reloads, upgrades and answers of the admin interface: the daemon serves again or ends with a reason, nothing is left over.

All of the plan: make test-faults. Otherwise a tenth, drawn from a seed that a failure tells: FAULT_SEED=N repeats it.
"""

import contextlib
import http.client
import os
import re
import signal
import ssl
import time

from support import admin, fault_plan, net, preload, tls
from support.case import Failed, check, check_equal, test
from support.chain import Chain
from support.daemon import DaemonError, alive
from support.tls_listeners import NAME, certificate_of

THEME = "fault_plan"
NEEDS = ("cc", "openssl")
LIMIT_S = 10  # until a client of a time with faults gives up, and for what must come back
START_SKIPS, SERVE_SKIPS = 8, 2
FAILED = (OSError, EOFError, ssl.SSLError, http.client.HTTPException, Failed, TimeoutError)
ENDS = {0, 1, 3, 4}  # daemon/exit_code.h
REASON = r"error: |error \w+|cannot start|Cannot allocate memory|^\S+:\d+: |\(undefined\)|error while loading"


class Place:
    """A configuration with all that opens, reads, waits and allocates; and its clients."""

    def __init__(self, t):
        self.t = t
        self.faults = preload.Preload(t, "any_fault")
        self.echo, self.proxy, self.tls = t.address(), t.address(), t.address()
        self.admin, self.socket = t.path("admin.sock"), t.path("echo.sock")
        self.ca, certificate = certificate_of(t)
        self.context = tls.client_context(self.ca.path)
        self.sections = f"""[worker]
threads = 2
[admin]
address = {self.admin}
[tls front]
certificate = {certificate}
key = {certificate}
[listen echo]
address = {self.echo}, {self.socket}
service = echo
access_log = {t.path("access.log")}
[listen proxy]
address = {self.proxy}
service = proxy
upstream = back
[listen tls]
address = {self.tls}
tls = front
service = proxy
upstream = back
[upstream back]
server.a = {self.socket}
server.b = {self.echo}
check = tcp
check_interval = 50ms
rise = 1
"""

    def config(self, n=0):
        more = f"[listen more]\naddress = {self.t.path('more.sock')}\nservice = echo\n" * (n % 2)
        return f"[reactord]\npid_file = {self.t.path('x.pid')}\n{self.sections}" \
               f"connect_timeout = {3 + n % 7}s\n{more}"

    def visit(self, limit_s=LIMIT_S):
        """One client at each door."""
        for address in (self.echo, self.socket, self.proxy):
            with net.connect(address, limit_s=limit_s) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", f"the echo at {address}")
        with net.connect(self.tls, limit_s=limit_s) as raw, \
                self.context.wrap_socket(raw, server_hostname=NAME) as client:
            client.sendall(b"hello")
            check_equal(client.recv(5), b"hello", "the echo in TLS")

    def try_visits(self, n):
        """Clients that may fail, but do not wait for ever."""
        for _ in range(n):
            with contextlib.suppress(*FAILED):
                self.visit(limit_s=0.3)

    def serves(self, running):
        """Each door serves again, soon."""
        end, error = time.monotonic() + LIMIT_S * self.t.scale, None
        while time.monotonic() < end:
            check(running(), "the daemon has ended")
            try:
                self.visit(limit_s=2)
                return
            except FAILED as failed:
                error = failed
                time.sleep(0.02)
        raise Failed(f"a door does not serve: {error!r}")

    def listeners(self):
        return admin.get(self.admin, "/v1/listeners").json["listeners"]

    def adds_up(self):
        """No session is left, and each one that began has ended."""
        def is_right():
            rows = self.listeners()
            return all(row["sessions"] == 0 and row["sessions_total"] == sum(row["ended"].values()) for row in rows)
        self.t.eventually(is_right, f"no session is left: {self.listeners()}", LIMIT_S)


@contextlib.contextmanager
def told(seed, phase, fault, state):
    """A failure says what to repeat."""
    try:
        yield
    except Exception as error:
        raise Failed(f"FAULT_SEED={seed} {phase}, {fault}, struck {state.get('struck')}: {error}") from error


def each_fault(t, phase, skips, run):
    """run(fault, state) for all of the phase."""
    seed, faults = fault_plan.plan(phase, t.options.long, skips)
    print(f"FAULT_SEED={seed}: {phase}: {len(faults)} faults")
    struck = 0
    for fault in faults:
        state = {}
        with told(seed, phase, fault, state):
            run(fault, state)
        struck += state.get("struck", 0) > 0
    check(struck > 0, f"FAULT_SEED={seed}: none of {len(faults)} faults has struck")


def start_once(t, place, fault, state):
    """It serves, or ends with a reason and leaves no file."""
    daemon = t.daemon(place.config(), environment=place.faults.environment())
    refused = []

    def has_served(line, within_s):
        end = time.monotonic() + within_s
        while time.monotonic() < end and not daemon.has_notified(line):
            if daemon.process.poll() is not None:
                raise DaemonError("ended")
            with contextlib.suppress(*FAILED):
                place.visit(limit_s=1)
                return
            time.sleep(0.01)
    daemon.wait_notified = has_served
    fault.begin(place.faults)
    try:
        daemon.start()
    except DaemonError:
        refused.append(True)
    state["struck"] = fault.end(place.faults)
    try:
        if refused:
            code = daemon.process.returncode
            check(code in (1, 3), f"exit code {code}: {daemon.log()[-2000:]}")
            check(re.search(REASON, daemon.log(), re.M), f"no reason is told: {daemon.log()!r}")
            left = [name for name in ("x.pid", "echo.sock", "admin.sock") if os.path.exists(t.path(name))]
            check_equal(left, [], "files that are left")
        else:
            place.serves(daemon.running)
            daemon.stop()
        daemon.expect_no_report()
    finally:
        daemon.kill()
        daemon.notify.close()
        t.daemons.remove(daemon)
        daemon.notify_path.unlink()


@test(needs=NEEDS, timeout=900, plain_only=True)
def start(t):
    """a start in which a call fails goes well or ends with a reason, and leaves no file"""
    place = Place(t)
    each_fault(t, "start", START_SKIPS, lambda fault, state: start_once(t, place, fault, state))


class Serving:
    """A daemon that is asked again and again; another one when it has ended, which it may with a reason."""

    def __init__(self, t, place):
        self.t, self.place = t, place
        self.daemon = None

    def up(self):
        if self.daemon is None:
            self.daemon = self.t.daemon(self.place.config(), environment=self.place.faults.environment())
            self.daemon.start()
            self.place.serves(self.daemon.running)
            admin.get(self.place.admin, "/v1/status")
            self.descriptors = self.settled()
        return self.daemon

    def settled(self):
        """Its descriptors when no session is open."""
        self.place.adds_up()
        return self.daemon.fd_count()

    def check(self, fault, state):
        """After the fault."""
        state["struck"] = fault.end(self.place.faults)
        self.daemon.has_notified("")
        self.place.serves(self.daemon.running)
        self.place.adds_up()
        # A spare descriptor, a thread's eventfd or a log may have come; each client's would show.
        self.t.eventually(lambda: self.daemon.fd_count() <= self.descriptors + 8,
                          f"{self.daemon.fd_count()} descriptors, {self.descriptors} before", LIMIT_S)
        self.daemon.expect_no_report()

    def down(self):
        self.daemon.stop()
        self.daemon.expect_no_report()


def with_daemon(t, phase, skips, act):
    """act(daemon, n) with each fault; then all must be as before."""
    place = Place(t)
    serving = Serving(t, place)
    try:
        def run(fault, state):
            daemon = serving.up()
            fault.begin(place.faults)
            act(place, daemon)
            serving.check(fault, state)
        each_fault(t, phase, skips, run)
        serving.down()
    finally:
        if serving.daemon:
            serving.daemon.kill()
            serving.daemon.notify.close()


@test(needs=NEEDS, timeout=900, plain_only=True)
def serve(t):
    """calls fail while clients come to an echo, a proxy and TLS: it serves afterwards, and no session is left"""
    with_daemon(t, "serve", SERVE_SKIPS, lambda place, daemon: place.try_visits(3))


@test(needs=NEEDS, timeout=900, plain_only=True)
def ask(t):
    """calls fail while the admin interface answers: it answers afterwards"""
    paths = ("/metrics", "/v1/status", "/v1/sessions", "/v1/upstreams", "/")

    def act(place, _):
        for path in paths:
            with contextlib.suppress(*FAILED, ValueError):
                admin.request(place.admin, "GET", path, limit_s=0.5)
        with contextlib.suppress(*FAILED, ValueError):
            admin.request(place.admin, "POST", "/v1/set", {"io_ratio": 50}, limit_s=0.5)
    with_daemon(t, "ask", SERVE_SKIPS, act)


@test(needs=NEEDS, timeout=900, plain_only=True)
def reload(t):
    """calls fail in a reload: it is done or refused, and the next one is done"""
    turns = []
    ends = "reload: (done|refused|nothing)"

    def act(place, daemon):
        turns.append(None)
        before = len(daemon.log_lines(ends))
        daemon.config_path.write_text(place.config(len(turns)), encoding="utf-8")
        daemon.send_signal(signal.SIGHUP)
        with contextlib.suppress(Failed):
            t.eventually(lambda: len(daemon.log_lines(ends)) > before, "the reload has ended", 2)
        place.faults.stop_all()
        if len(daemon.log_lines(ends)) == before:  # its line may be what was lost
            daemon.send_signal(signal.SIGHUP)
        t.eventually(lambda: len(daemon.log_lines(ends)) > before, "the reload has ended", LIMIT_S)
        daemon.reload(place.config(0), "")
    with_daemon(t, "reload", SERVE_SKIPS, act)


class Upgrades:
    """A chain of processes, of which the pid file names the one that serves: lines of the log may be lost."""

    def __init__(self, place, chain):
        self.place, self.chain = place, chain

    def told(self):
        return len(self.chain.lines("upgrade: (took over|failed|cannot)"))

    def run(self, fault, state):
        chain, before = self.chain, self.told()
        fault.begin(self.place.faults)
        os.kill(chain.pid, signal.SIGUSR2)
        with contextlib.suppress(Failed):
            chain.eventually(lambda: self.told() > before, "the upgrade has ended", 4)
        state["struck"] = fault.end(self.place.faults)
        chain.eventually(self.has_one, "one process is left", LIMIT_S)
        self.place.serves(lambda: alive(chain.pid))
        self.place.adds_up()

    def has_one(self):
        """Is one process of the chain left? Then it is the next one's predecessor."""
        left = [pid for pid in self.chain.processes() if alive(pid)]
        check(left, "no process is left")
        if len(left) == 1:
            self.chain.old += [self.chain.pid] * (self.chain.pid != left[0])
            self.chain.pid = left[0]
        return len(left) == 1


@test(needs=NEEDS, timeout=900, plain_only=True)
def upgrade(t):
    """calls fail in an upgrade: it is done or fails, and the process that is left serves"""
    place = Place(t)
    with Chain(t, "upgrade_timeout = 2s\n" + place.sections, environment=place.faults.environment()) as chain:
        each_fault(t, "upgrade", 1, Upgrades(place, chain).run)
        chain.stop()
