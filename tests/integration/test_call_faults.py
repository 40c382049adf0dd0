"""call faults: system calls and allocations that fail at the start, in an upgrade, in a reload, and while the admin
interface answers: each one ends what needs it, is told, and harms nothing else."""

import errno
import http.client
import os
import re
import signal

from support import admin, net, preload
from support.case import Failed, check, check_equal, test
from support.chain import Chain
from support.daemon import DaemonError

NEEDS = ("cc",)
# As in preload/memory_fault.c.
MEMORY = {"a library or the program": 0, "the program": 1}
OWN_MEMORY_FAILS = 1
# As in preload/call_fault.c.
CALLS = ["epoll_create1", "epoll_ctl", "eventfd", "signalfd", "timerfd_create", "memfd_create", "socketpair", "pipe2",
         "fork", "poll", "setns"]
ERRORS = {"epoll_ctl": errno.ENOSPC}  # EMFILE for the others
MOST_CALLS = 400
ENDS = "upgrade: (took over|failed)"


class Config:
    """A configuration with all that a start opens."""

    def __init__(self, t):
        self.address = t.address()
        self.files = [t.path(name) for name in ("x.pid", "echo.sock", "admin.sock")]
        pid_path, self.socket_path, self.admin_path = self.files
        self.access_path = t.path("access.log")
        self.own = f"[admin]\naddress = {self.admin_path}\n" \
                   f"[listen echo]\naddress = {self.address}, {self.socket_path}\nservice = echo\n" \
                   f"access_log = {self.access_path}\n"
        self.text = f"[reactord]\npid_file = {pid_path}\n{self.own}"

    def serves(self):
        for address in (self.address, self.socket_path):
            with net.connect(address) as client:
                check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


def start_once(t, faults, fault, config):
    """Start, and stop if it has started; was the start refused?"""
    daemon = t.daemon(config.text, environment=faults.environment())
    try:
        with daemon:
            config.serves()
            faults.stop(fault)
        return False
    except DaemonError:
        told = daemon.err_path.read_text(encoding="utf-8")
        check(daemon.process.returncode in (1, 3), f"exit code {daemon.process.returncode}: {told}")
        check(re.search("error: | error main: |cannot start|Cannot allocate memory", told), f"no reason is told: {told}")
        return True
    finally:
        check_equal([path for path in config.files if os.path.exists(path)], [], "files that are left")


def each_skip(faults, fault, what, step=1, **how):
    """Let the first call fail, then the second, and so on: what() each time, until none is left to fail."""
    for skip in range(0, MOST_CALLS * step, step):
        faults.plan(fault, 1, skip=skip, **how)
        what()
        faults.stop(fault)
        if faults.struck(fault) == 0:
            return
    raise Failed(f"more than {MOST_CALLS} calls")


@test(needs=NEEDS, timeout=60, each={"call": ["epoll_create1", "epoll_ctl", "eventfd", "signalfd"]})
def start(t, call):
    """a start in which one {call} fails is refused with a reason, and leaves no pid file and no socket file"""
    faults = preload.Preload(t, "call_fault")
    config, refused = Config(t), []
    fault = CALLS.index(call)
    each_skip(faults, fault, lambda: refused.append(start_once(t, faults, fault, config)), value=ERRORS.get(call, errno.EMFILE),
              thread="reactord")
    check(any(refused), "no start was refused")
    check(not refused[-1], "a start without a fault was refused")


@test(needs=NEEDS, timeout=90, plain_only=True)
def start_without_memory(t):
    """a start in which one allocation of the program fails goes well or is refused with a reason, and leaves no pid file
    and no socket file"""
    faults = preload.Preload(t, "memory_fault")
    config, refused = Config(t), []
    each_skip(faults, OWN_MEMORY_FAILS, lambda: refused.append(start_once(t, faults, OWN_MEMORY_FAILS, config)), step=2,
              thread="reactord")
    check(refused.count(True) > 20, f"{refused.count(True)} starts were refused")
    check(not refused[-1], "a start without a fault was refused")


@test(needs=NEEDS, timeout=60, plain_only=True, each={"thread": ["reactord", "exec", "ctrl"]})
def reload_without_memory(t, thread):
    """a reload in which one allocation of {thread} fails is done or refused, and the next one is done"""
    faults = preload.Preload(t, "memory_fault")
    config = Config(t)
    with t.daemon(config.text, environment=faults.environment()) as daemon:
        ends = []

        def reload():
            text = config.text + f"max_connections = {100 + len(ends) % 7}\n" + \
                   f"[listen more]\naddress = {t.path('more.sock')}\nservice = echo\n" * (len(ends) % 2)
            daemon.config_path.write_text(text, encoding="utf-8")
            before = len(daemon.log_lines("reload: (done|refused)"))
            daemon.send_signal(signal.SIGHUP)
            t.eventually(lambda: len(daemon.log_lines("reload: (done|refused)")) > before, "the reload has ended")
            ends.append(daemon.log_lines("reload: (done|refused)")[-1])
            daemon.has_notified("READY=1")

        each_skip(faults, OWN_MEMORY_FAILS, reload, thread=thread)
        check(any("refused" in end for end in ends), "no reload was refused")
        check("reload: done" in ends[-1], f"without a fault: {ends[-1]}")
        config.serves()


REQUESTS = [("GET", path, None) for path in ("/", "/healthz", "/metrics", "/v1/status", "/v1/config", "/v1/loops",
                                             "/v1/listeners", "/v1/upstreams", "/v1/sessions?listener=echo")]
REQUESTS += [("POST", path, body) for path, body in (("/v1/reload", {"dry_run": True}), ("/v1/pause", {"listener": "echo"}),
                                                     ("/v1/resume", {"listener": "echo"}), ("/v1/reset", {}),
                                                     ("/v1/sessions/kill", {"listener": "echo"}),
                                                     ("/v1/set", {"io_ratio": 50}))]


@test(needs=NEEDS, timeout=90, plain_only=True, each=[
    {"whose": "the program", "thread": "admn"}, {"whose": "a library or the program", "thread": "admn"},
    {"whose": "the program", "thread": "reactord"}, {"whose": "a library or the program", "thread": "reactord"},
    {"whose": "the program", "thread": "exec"}])
def answers_without_memory(t, whose, thread):
    """when one allocation of {whose} fails in {thread}, a request to the admin interface is done or gets an error, or its
    connection ends, and the next request is done"""
    faults = preload.Preload(t, "memory_fault")
    config = Config(t)
    with t.daemon(config.text, environment=faults.environment()) as daemon, net.connect(config.address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        check_equal(admin.get(config.admin_path, "/healthz").status, 200, "the status before the faults")
        for method, path, body in REQUESTS:
            statuses = []

            def ask(request=(method, path, body), statuses=statuses):
                try:
                    answer = admin.request(config.admin_path, *request)
                    statuses.append(answer.status)
                    if answer.status != 200 and answer.body:
                        check(answer.error, f"{request}: {answer}")
                except (OSError, EOFError, http.client.HTTPException):
                    statuses.append(None)
                check(daemon.running(), f"the daemon has ended behind {request}")

            each_skip(faults, MEMORY[whose], ask, thread=thread)
            if path != "/v1/resume":  # the pause may have failed, and then there is none
                check_equal(statuses[-1], 200, f"{method} {path} without a fault")
            check_equal(set(statuses) - {200, 400, 409, 500, 503, None}, set(), f"statuses of {method} {path}")


def each_upgrade(t, faults, fault, value=0, step=1):
    """Replace the program with one call failing after the other."""
    config = Config(t)
    with Chain(t, "upgrade_timeout = 5s\n" + config.own, environment=faults.environment()) as chain:
        ends = []

        def replace():
            before = len(chain.lines(ENDS))
            os.kill(chain.pid, signal.SIGUSR2)
            chain.eventually(lambda: len(chain.lines(ENDS)) > before, "the upgrade has ended", 20)
            ends.append(chain.lines(ENDS)[-1])
            if "took over" in ends[-1]:
                chain.old.append(chain.pid)
                chain.pid = chain.started()[-1]
                chain.wait_gone(chain.old[-1])
            config.serves()

        each_skip(faults, fault, replace, step, value=value, thread="program-")
        check(any("upgrade: failed: " in end for end in ends), "no upgrade has failed")
        check("took over" in ends[-1], f"without a fault: {ends[-1]}")
        chain.stop()


@test(needs=NEEDS, timeout=90, each={"call": ["epoll_create1", "epoll_ctl", "timerfd_create", "memfd_create", "socketpair",
                                              "pipe2", "fork"]})
def upgrade(t, call):
    """an upgrade in which one {call} fails goes well or fails with a reason, and the process that is left serves"""
    faults = preload.Preload(t, "call_fault")
    each_upgrade(t, faults, CALLS.index(call), ERRORS.get(call, errno.EMFILE))


@test(needs=NEEDS, timeout=90, plain_only=True)
def upgrade_without_memory(t):
    """an upgrade in which one allocation of the program fails goes well or fails with a reason, and the process that is left
    serves"""
    each_upgrade(t, preload.Preload(t, "memory_fault"), OWN_MEMORY_FAILS, step=5)


@test(needs=NEEDS, each={"error": [errno.EINTR, errno.EAGAIN]})
def interrupted_wait(t, error):
    """a wait for signals that ends with error {error} is begun again"""
    faults = preload.Preload(t, "call_fault")
    config = Config(t)
    with t.daemon(config.text, environment=faults.environment()) as daemon:
        faults.plan(CALLS.index("poll"), 1, value=error, thread="reactord")
        daemon.send_signal(signal.SIGRTMIN)
        t.eventually(lambda: faults.struck(CALLS.index("poll")) == 1, "the wait has failed")
        config.serves()


@test(needs=NEEDS)
def failed_wait(t):
    """a wait for signals that fails ends the daemon with exit code 4 and a reason, and its files go"""
    faults = preload.Preload(t, "call_fault")
    config = Config(t)
    daemon = t.daemon(config.text, environment=faults.environment())
    try:
        daemon.start()
        config.serves()
        faults.plan(CALLS.index("poll"), 1, value=errno.ENOMEM, thread="reactord")
        daemon.send_signal(signal.SIGRTMIN)
        check_equal(daemon.wait(), 4, "exit code")
        check(daemon.log_lines("error main: cannot wait for signals: Cannot allocate memory"), "no reason is told")
        check_equal([path for path in config.files if os.path.exists(path)], [], "files that are left")
    finally:
        daemon.kill()
        daemon.notify.close()
