"""upgrade: SIGUSR2 replaces the program, and no client notices; a program that fails changes nothing."""

import contextlib
import os
import re
import resource
import shutil
import signal
import socket
import sys
import time

from support import descriptors, net, tls
from support.admin import get, post, section
from support.case import Skipped, check, check_equal, is_root, test
from support.daemon import Daemon, alive
from support.net import Task
from test_proxy import proxy
from test_upstream import own_names

MIB = 1024 * 1024


class Chain:
    """A daemon, and the processes that replace it, one after the other."""

    def __init__(self, t, config, **how):
        self.t = t
        self.program = shutil.copy(t.options.reactord, t.path(f"program-{len(t.daemons)}"))
        self.pid_path = t.path("reactord.pid")
        config = f"[reactord]\npid_file = {self.pid_path}\n{config}"
        self.daemon = Daemon(self.program, t.dir, len(t.daemons), config, scale=t.scale, **how)
        t.daemons.append(self.daemon)
        self.pid = None
        self.old = []

    def __enter__(self):
        self.daemon.start()
        self.pid = self.daemon.pid
        return self

    def __exit__(self, error, *_):
        try:
            if not error:
                self.daemon.expect_no_report()
                check_equal(self.daemon.refused, [], "messages from another than the main process")
        finally:
            for pid in self.started() + self.old:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.daemon.kill()
            self.daemon.notify.close()

    # What it says

    def lines(self, pattern, pid=None):
        """The lines of one process, or of all."""
        return [line for line in self.daemon.log_lines(pattern)
                if pid is None or f"reactord[{pid}]" in line]

    def wait_line(self, pattern, pid=None, count=1, within=10):
        self.eventually(lambda: len(self.lines(pattern, pid)) >= count, f"a line with {pattern}",
                        within)
        return self.lines(pattern, pid)[-1]

    def started(self):
        """All processes that were ever started to replace another."""
        return [int(re.search(r"as process (\d+)", line)[1])
                for line in self.lines("upgrade: started")]

    def statistics(self, what):
        """The numbers of the current process."""
        done = len(self.lines("stats end$", self.pid))
        os.kill(self.pid, signal.SIGRTMIN)
        self.wait_line("stats end$", self.pid, done + 1)
        text = [line.partition(" stats ")[2] for line in self.lines(" stats ", self.pid)]
        ends = [i for i, line in enumerate(text) if line == "end"]
        last = text[ends[-2] + 1 if len(ends) > 1 else 0:]
        return {key: int(value) for line in last if line.startswith(what)
                for key, value in re.findall(r"(\w+)=(\d+)\b(?!\.)", line)}

    def eventually(self, probe, what, within=10):
        """As in the test, and reads what the service manager is told: its queue is short."""
        def reading():
            self.daemon.has_notified("")
            return probe()
        return self.t.eventually(reading, what, within)

    # What it does

    def begin(self):
        count = len(self.started())
        os.kill(self.pid, signal.SIGUSR2)
        self.eventually(lambda: len(self.started()) > count, "an upgrade began")
        return self.started()[-1]

    def upgrade(self):
        """Replace the current process; returns its pid."""
        new = self.begin()
        self.wait_line("upgrade: took over", new)
        self.old.append(self.pid)
        self.pid = new
        return self.old[-1]

    def fail(self, reason, within=10):
        """An upgrade that fails for that reason, and leaves all as it was."""
        failed = len(self.lines("upgrade: failed"))
        new = self.begin()
        line = self.wait_line("upgrade: failed", self.pid, failed + 1, within)
        check(re.search(reason, line), f"{reason} is not in {line}")
        self.eventually(lambda: not alive(new), "the new process is gone")
        check_equal(self.pid_file(), self.pid, "the pid file")
        return line

    def pid_file(self):
        with open(self.pid_path, encoding="ascii") as f:
            return int(f.read())

    def becomes(self, text):
        """Another program at the path, a shell script."""
        path = self.t.write("next", "#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        os.replace(path, self.program)

    def becomes_reactord(self, before="", after=""):
        """A program that does something else before it is reactord."""
        shutil.copy(self.t.options.reactord, self.t.path("real"))
        self.becomes(f"{before}\nexec -a reactord {self.t.path('real')} \"$@\"{after}\n"
                     .replace("exec -a reactord", "exec"))

    def stop(self, number=signal.SIGTERM, within=15):
        os.kill(self.pid, number)
        self.wait_gone(self.pid, within)

    def wait_gone(self, pid, within=15):
        self.eventually(lambda: not alive(pid), f"the end of process {pid}", within)


def echo(address):
    return f"[listen echo]\naddress = {address}\nservice = echo\n"


def exchange_once(address):
    with net.connect(address) as client:
        net.exchange(client, b"hello")


class Knocking:
    """Clients that come all the time, in a thread; each must be served."""

    def __init__(self, address):
        self.address, self.count, self.ending = address, 0, False

    def __enter__(self):
        self.task = Task(self.knock)
        return self

    def knock(self):
        while not self.ending:
            exchange_once(self.address)
            self.count += 1

    def __exit__(self, *_):
        self.ending = True
        self.task.result()


@test(timeout=60)
def three_upgrades(t):
    """a stream and idle sessions outlive three upgrades, no client is refused, and no counter falls"""
    front, back, knock = t.address(), t.address(), t.address()
    config = "drain_timeout = 0\n" + proxy(front, back) + echo(knock)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, config))
        idle = [stack.enter_context(net.proxied(front, listener)) for _ in range(20)]
        client, server = stack.enter_context(net.proxied(front, listener))
        received = Task(net.receive_sha256, server, 256 * MIB)
        sent = Task(net.send_pattern, client, 256 * MIB)
        seen = 0
        with Knocking(knock) as knocking:
            for number in range(3):
                before = knocking.count
                t.eventually(lambda: knocking.count > before + 20, "clients are served")
                counted = chain.statistics("listen echo")
                chain.upgrade()
                check_equal(chain.pid_file(), chain.pid, "the pid file")
                now = chain.statistics("listen echo")["sessions_total"]
                check(now >= counted["sessions_total"] >= seen, "a counter has fallen")
                seen = now
                chain.eventually(lambda: chain.statistics("listen front")["sessions"] == 21, "21 are open")
                front_now = chain.statistics("listen front")
                check_equal(front_now["sessions_total"], 21, "sessions of front")
                check_equal(front_now["sessions"], 21, f"open sessions after {number + 1}")
        sent.result()
        check_equal(received.result(), net.pattern_sha256(256 * MIB), "the bytes of the stream")
        for one, other in idle:
            one.sendall(b"still")
            check_equal(net.read_exactly(other, 5), b"still", "what the server got")
            one.close()
            other.close()
        client.close()
        server.close()
        for pid in chain.old:
            chain.wait_gone(pid)
        chain.stop()



@test(timeout=60)
def counters_of_old_sessions(t):
    """what sessions of replaced processes transfer is in the counters of the one that is left"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        sessions = []
        for _ in range(3):
            client = net.connect(front)
            sessions.append((client, net.accept(listener)))
            chain.upgrade()
        chain.eventually(lambda: chain.statistics("listen front")["sessions"] == 3, "three are open")
        for client, server in sessions:
            client.sendall(b"x" * 1000)
            net.read_exactly(server, 1000)
        for client, server in sessions:
            client.close()
            server.close()
        for pid in chain.old:
            chain.wait_gone(pid)
        chain.eventually(lambda: chain.statistics("listen front")["sessions"] == 0, "none is open")
        now = chain.statistics("listen front")
        check_equal((now["sessions_total"], now["bytes_in"]), (3, 3000), "sessions and bytes")
        check_equal(chain.statistics("server back/only")["connects"], 3, "connects")
        check_equal(len(chain.lines("has drained and ended")), 3, "ends that were logged")
        chain.stop()


@test(timeout=60)
def counters_of_what_came_back(t):
    """a listener and an upstream that a reload removed and another brought back, in the old process or in the
    new one, count no session of those that had their names"""
    front, back, other = t.address(), t.address(), t.address()
    kept = "drain_timeout = 0\n" + echo(other)
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        chain = stack.enter_context(Chain(t, kept + proxy(front, back)))

        def remove_and_bring_back():
            for more in ("", proxy(front, back)):
                done = len(chain.lines("reload: done", chain.pid))
                chain.daemon.config_path.write_text(f"[reactord]\npid_file = {chain.pid_path}\n{kept}{more}",
                                                    encoding="utf-8")
                os.kill(chain.pid, signal.SIGHUP)
                chain.wait_line("reload: done", chain.pid, done + 1)

        def numbers():
            return [chain.statistics(what)[key] for what in ("listen front", "upstream back", "server back/only")
                    for key in ("sessions", "sessions_total")]

        def end(client, server):
            client.close()
            server.close()

        first = stack.enter_context(net.proxied(front, listener))
        remove_and_bring_back()
        second, third = [stack.enter_context(net.proxied(front, listener)) for _ in range(2)]
        old = chain.upgrade()
        end(*second)
        chain.eventually(lambda: numbers() == [1, 2, 1, 2, 1, 2], "one is open, one has ended")
        remove_and_bring_back()
        end(*third)
        end(*first)
        chain.wait_gone(old)
        chain.wait_line("has drained and ended", chain.pid)
        check_equal(numbers(), [0] * 6, "open sessions and all, of listener, upstream and server")
        chain.stop()


@test(timeout=60)
def unix_socket(t):
    """a unix socket stays at its path through upgrades, and is removed with the last process"""
    path = t.path("echo.sock")
    with Chain(t, echo(path)) as chain:
        with Knocking(path):
            for _ in range(3):
                chain.upgrade()
                time.sleep(0.1)
        for pid in chain.old:
            chain.wait_gone(pid)
        exchange_once(path)
        chain.stop()
        check(not os.path.exists(path), "the socket file is still there")
        check(not os.path.exists(chain.pid_path), "the pid file is still there")


@test(timeout=60)
def several_sockets(t):
    """clients in the queues of several sockets of an address are served by the new process"""
    address = t.address()
    config = f"[boss]\nthreads = 2\n{echo(address)}reuseport = 4\n"
    with Chain(t, config) as chain:
        with Knocking(address) as knocking:
            for _ in range(5):
                chain.upgrade()
            check(knocking.count > 0, "nobody was served")
        inherited = chain.lines("inherited", chain.pid)
        check_equal(len(inherited), 4, "inherited sockets")
        chain.stop()


FAILURES = {
    "is missing": (lambda chain: os.unlink(chain.program), "cannot be executed: No such file"),
    "is not executable": (lambda chain: os.chmod(chain.program, 0o644),
                          "cannot be executed: Permission denied"),
    "is empty of sense": (lambda chain: chain.becomes("\0\0\0"), "exited with status"),
    "crashes": (lambda chain: chain.becomes("kill -SEGV $$\n"), r"killed by signal 11"),
    "ends at once": (lambda chain: chain.becomes("exec true\n"), "exited with status 0"),
    "closes its descriptors": (
        lambda chain: chain.becomes("for i in 3 4 5 6 7 8 9; do eval \"exec $i>&-\"; done; sleep 60"),
        "closed its socket to us; killed"),
    "hangs": (lambda chain: chain.becomes("sleep 60\n"), r"not ready after 1 s"),
    "refuses the configuration": (
        lambda chain: chain.daemon.config_path.write_text("[listen x]\nadress = 1\n"),
        "exited with status 1 .*adress"),
    "cannot bind": (
        lambda chain: chain.daemon.config_path.write_text(
            chain.daemon.config + "[listen no]\naddress = 192.0.2.1:7\nservice = echo\n"),
        "exited with status 3 .*192.0.2.1:7"),
}


@test(each={"how": list(FAILURES)}, timeout=60)
def failing_program(t, how):
    """a program that {how} leaves the old one as it was, with no descriptor more, and the reason in the log"""
    make, reason = FAILURES[how]
    address, path = t.address(), t.path("echo.sock")
    config = f"upgrade_timeout = 1s\n{echo(address)}[listen unix]\naddress = {path}\nservice = echo\n"
    with Chain(t, config) as chain, net.connect(address) as client:
        net.exchange(client, b"accepted")
        make(chain)
        for _ in range(2):
            before = len(descriptors.of_process(chain.pid))
            chain.fail(reason)
            chain.eventually(lambda before=before: len(descriptors.of_process(chain.pid)) <= before,
                             "the attempt's descriptors are closed")
            net.exchange(client, b"still")
            exchange_once(address)
            exchange_once(path)
        shutil.copy(t.options.reactord, t.path("again"))
        os.replace(t.path("again"), chain.program)
        chain.daemon.config_path.write_text(chain.daemon.config)
        chain.upgrade()
        exchange_once(address)
        exchange_once(path)
        chain.stop()
        check(not os.path.exists(path), "the socket file is still there")


@test(timeout=60)
def names_that_are_gone(t):
    """a process that replaces another has the addresses of its names, also when they cannot be looked up now"""
    front, back = t.address(), t.address()
    name = back.replace("127.0.0.1", "back.test")
    own_names(t, hosts="127.0.0.1 back.test\n")
    with net.listen(back) as listener, Chain(t, proxy(front, name)) as chain:
        t.write("hosts", "")
        chain.upgrade()
        with net.proxied(front, listener) as (client, server):
            client.sendall(b"known")
            check_equal(net.read_exactly(server, 5), b"known", "what the server got")
        chain.stop()


def settings(listener, path):
    """What a process may have changed of the sockets that it shares with another."""
    info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
    return {"SO_REUSEPORT": listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT),
            "TCP_NODELAY": listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
            "backlog": int.from_bytes(info[28:], sys.byteorder),
            "mode": os.stat(path).st_mode & 0o777}


@test(timeout=60)
def settings_of_shared_sockets(t):
    """sockets get the options of the new configuration when the new process has taken over, not before"""
    address, path, back = t.address(), t.path("echo.sock"), t.address()
    config = f"[listen unix]\naddress = {path}\nservice = echo\n{echo(address)}"
    changed = config.replace(path, f"{path}\nunix_mode = 0606") + (
        "reuseport = 3\nbacklog = 77\nnodelay = no\n")
    waits = proxy(t.address(), back, "", "check = tcp\ncheck_expect = never\ncheck_timeout = 60s\n"
                  "initial_state = checked\n")
    with net.listen(address) as listener, net.listen(back), \
            Chain(t, config, inherited=[("web", listener.fileno())]) as chain:
        before = settings(listener, path)
        chain.daemon.config_path.write_text(chain.daemon.config.replace(
            config, changed + "[listen no]\naddress = 192.0.2.1:7\nservice = echo\n"))
        chain.fail("192.0.2.1:7")
        check_equal(settings(listener, path), before, "settings after a failure")
        chain.daemon.config_path.write_text(chain.daemon.config.replace(config, changed + waits))
        new = chain.begin()
        chain.wait_line(f"listen echo: echo on {address}", new)
        for _ in range(20):
            exchange_once(address)
        os.kill(new, signal.SIGKILL)
        chain.wait_line("upgrade: failed: killed by signal 9", chain.pid)
        check_equal(settings(listener, path), before, "settings after a kill")
        chain.daemon.config_path.write_text(chain.daemon.config.replace(config, changed))
        with Knocking(address), Knocking(path):
            chain.upgrade()
            after = {"SO_REUSEPORT": 1, "TCP_NODELAY": 0, "backlog": 77, "mode": 0o606}
            chain.eventually(lambda: settings(listener, path) == after, "the new settings")
            chain.upgrade()
        check_equal(len(chain.lines(f"listen address {address}: inherited", chain.pid)), 3, "sockets")
        chain.stop()


@test(timeout=60)
def one_at_a_time(t):
    """a second upgrade is refused while one is under way, and one of a replaced process too"""
    address = t.address()
    with Chain(t, f"drain_timeout = 0\n{echo(address)}") as chain:
        chain.becomes_reactord("sleep 1")
        with net.connect(address) as client:
            net.exchange(client, b"hello")
            new = chain.begin()
            os.kill(chain.pid, signal.SIGUSR2)
            chain.wait_line("upgrade: refused: another is under way", chain.pid)
            chain.wait_line("upgrade: took over", new)
            os.kill(chain.pid, signal.SIGUSR2)
            chain.wait_line("upgrade: refused: draining", chain.pid)
        check_equal(len(chain.started()), 1, "processes started")
        chain.wait_gone(chain.pid)
        chain.pid = new
        exchange_once(address)
        chain.stop()


@test(timeout=60)
def old_processes(t):
    """max_old_processes bounds those that drain; when one has ended another upgrade may come"""
    front, back = t.address(), t.address()
    config = "drain_timeout = 0\nmax_old_processes = 2\n" + proxy(front, back)
    with net.listen(back) as listener, Chain(t, config) as chain:
        with net.proxied(front, listener):
            first, port = chain.upgrade(), int(front.rpartition(":")[2])
            chain.eventually(lambda: not net.listens(first, port), "the next client comes to the second")
            with net.proxied(front, listener):
                chain.upgrade()
                os.kill(chain.pid, signal.SIGUSR2)
                chain.wait_line("upgrade: refused: max_old_processes is reached", chain.pid)
            chain.wait_gone(chain.old[1])
            chain.wait_line("has drained and ended", chain.pid)
            chain.upgrade()
            check(alive(chain.old[0]), "the first one has ended")
        chain.wait_gone(chain.old[0])
        chain.stop()


@test(timeout=60)
def stop_waits_for_old(t):
    """SIGTERM lets the sessions of replaced processes finish, too, and ends with the last of them"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener) as (client, server):
            old = chain.upgrade()
            os.kill(chain.pid, signal.SIGTERM)
            chain.wait_line("replaced processes that still drain: 1", chain.pid)
            client.sendall(b"still")
            check_equal(net.read_exactly(server, 5), b"still", "what the server got")
            check(alive(old) and alive(chain.pid), "one of them has ended")
        chain.wait_gone(old)
        chain.wait_gone(chain.pid)


@test(each={"number": [signal.SIGTERM, signal.SIGINT]}, timeout=60)
def stop_ends_old(t, number):
    """{number!r}, twice, ends the replaced processes at once"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener):
            old = chain.upgrade()
            os.kill(chain.pid, number)
            if number == signal.SIGTERM:
                chain.wait_line("replaced processes that still drain: 1", chain.pid)
                os.kill(chain.pid, number)
            chain.wait_gone(chain.pid)
            chain.wait_gone(old)


@test(timeout=60)
def upgrade_drain_timeout(t):
    """a replaced process resets what is left after upgrade_drain_timeout, and that is counted"""
    front, back = t.address(), t.address()
    config = "upgrade_drain_timeout = 1s\ndrain_timeout = 1h\n" + proxy(front, back)
    with net.listen(back) as listener, Chain(t, config) as chain:
        with net.proxied(front, listener):
            old = chain.upgrade()
            chain.wait_gone(old)
        chain.eventually(lambda: chain.statistics("listen front").get("drain") == 1, "one has drained")
        chain.stop()


@test(timeout=60)
def sessions_go_on(t):
    """sessions of a replaced process go on longer than drain_timeout; when the new process is told to end they
    have drain_timeout, too"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 300ms\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener) as (client, server):
            old = chain.upgrade()
            time.sleep(1)
            client.sendall(b"still here")
            check_equal(net.read_exactly(server, 10), b"still here", "what the server gets")
            os.kill(chain.pid, signal.SIGTERM)
            chain.wait_gone(old)
            chain.wait_gone(chain.pid)


@test(timeout=60)
def stop_meanwhile(t):
    """SIGTERM while another program starts ends both"""
    address = t.address()
    with Chain(t, echo(address)) as chain:
        chain.becomes("sleep 60\n")
        new = chain.begin()
        os.kill(chain.pid, signal.SIGTERM)
        chain.wait_gone(chain.pid)
        chain.wait_gone(new)
        chain.wait_line(f"upgrade: cancelled: this process drains; process {new} is killed", chain.pid)
        check_equal(chain.lines("upgrade: failed", chain.pid), [], "lines about a failure")
        check(not os.path.exists(chain.pid_path), "the pid file is still there")


@test(timeout=60)
def stop_of_the_new(t):
    """SIGTERM to a program that starts leaves the old one, its socket files and its pid file alone"""
    path = t.path("echo.sock")
    with Chain(t, echo(path)) as chain:
        chain.becomes_reactord("sleep 1")
        new = chain.begin()
        os.kill(new, signal.SIGTERM)
        chain.wait_line("upgrade: failed: killed by signal 15", chain.pid)
        exchange_once(path)
        check_equal(chain.pid_file(), chain.pid, "the pid file")
        chain.stop()


def ready_without_descriptors(chain):
    """A new process that is ready, and the old one stopped, without a descriptor: both, and its limit before."""
    chain.becomes_reactord("sleep 0.5")
    new, old = chain.begin(), chain.pid
    os.kill(old, signal.SIGSTOP)
    chain.wait_line(" ready$", new)
    before = resource.prlimit(old, resource.RLIMIT_NOFILE)
    resource.prlimit(old, resource.RLIMIT_NOFILE, (8, before[1]))
    return old, new, before


@test(timeout=60)
def no_descriptor_for_the_state(t):
    """an old process that has no descriptor left for its counters is replaced, and tells them later"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener):
            old, new, before = ready_without_descriptors(chain)
            os.kill(new, signal.SIGSTOP)
            os.kill(old, signal.SIGCONT)
            chain.wait_line(r"counters cannot be sent to process \d+ yet: Too many open files", old)
            resource.prlimit(old, resource.RLIMIT_NOFILE, before)
            os.kill(new, signal.SIGCONT)
            chain.wait_line("upgrade: took over", new)
            chain.pid = new
            chain.eventually(lambda: chain.statistics("listen front")["sessions"] == 1, "it is told later")
        chain.wait_gone(old)
        chain.stop()


@test(timeout=60)
def all_descriptors_in_use(t):
    """a process whose clients use all descriptors that they may is replaced, with its many sockets"""
    addresses = [t.address() for _ in range(30)]
    config = f"drain_timeout = 0\n[worker]\nthreads = 1\n{echo(', '.join(addresses))}"
    with Chain(t, config, nofile=120) as chain, contextlib.ExitStack() as stack:
        for _ in range(120):
            stack.enter_context(net.connect(addresses[0]))
        chain.wait_line("cannot accept: Too many open files", chain.pid)
        chain.upgrade()
        stack.close()
        exchange_once(addresses[1])
        chain.stop()


@test(timeout=60)
def no_descriptor_for_systemd(t):
    """an old process that cannot tell systemd of the new one ends it, and goes on"""
    address = t.address()
    with Chain(t, echo(address)) as chain:
        old, new, before = ready_without_descriptors(chain)
        os.kill(old, signal.SIGCONT)
        chain.wait_line("upgrade: failed: systemd cannot be notified: Too many open files", old)
        resource.prlimit(old, resource.RLIMIT_NOFILE, before)
        chain.eventually(lambda: not alive(new), "the new process is gone")
        exchange_once(address)
        chain.upgrade()
        chain.stop()


READY_AND_GONE = """#!/usr/bin/env python3
import os, socket
fd = 3 + os.environ["LISTEN_FDNAMES"].split(":").index("reactord-upgrade")
socket.socket(fileno=fd).send(b"ready")
"""


@test(timeout=60)
def new_ends_when_it_is_ready(t):
    """the service manager hears nothing of a program that was ready and has ended since"""
    address = t.address()
    with Chain(t, echo(address)) as chain:
        chain.becomes("sleep 0.5\nexec " + os.path.realpath(t.write("gone", READY_AND_GONE)) + "\n")
        os.chmod(t.path("gone"), 0o755)
        new = chain.begin()
        os.kill(chain.pid, signal.SIGSTOP)
        t.eventually(lambda: not os.path.exists(f"/proc/{new}"), "the new process is gone")
        time.sleep(0.2)  # its parent, which waited for it, tells how it ended
        os.kill(chain.pid, signal.SIGCONT)
        chain.wait_line("upgrade: failed: exited with status 0", chain.pid)
        check(not chain.daemon.has_notified(f"MAINPID={new}"), "it was told of the new process")
        exchange_once(address)
        chain.stop()


@test(each={"when": ["with", "before"]}, timeout=60)
def stop_of_the_new_when_it_takes_over(t, when):
    """a new process whose SIGTERM comes {when} the word to take over removes the socket file at its end"""
    path = t.path("echo.sock")
    with Chain(t, echo(path)) as chain:
        chain.becomes_reactord("sleep 0.5")
        old, new = chain.pid, chain.begin()
        os.kill(old, signal.SIGSTOP)
        chain.wait_line(" ready$", new)
        with net.connect(path) as client:
            net.exchange(client, b"hello")
            if when == "before":
                os.kill(new, signal.SIGTERM)
                chain.wait_line("draining", new)
                os.kill(old, signal.SIGCONT)
                chain.wait_line("upgrade: took over", new)
            else:
                os.kill(new, signal.SIGSTOP)
                os.kill(old, signal.SIGCONT)
                time.sleep(0.5)  # so that it has sent the word
                os.kill(new, signal.SIGTERM)
                os.kill(new, signal.SIGCONT)
                chain.wait_line("has replaced this one", old)
            chain.eventually(lambda: "STOPPING=1" in chain.daemon.notified, "it says that it stops")
            net.exchange(client, b"still")
        for pid in (old, new):
            chain.wait_gone(pid)
        if when == "before":
            check_equal(chain.daemon.notified.count("READY=1"), 1, "times that one was ready")
        check(not os.path.exists(path), "the socket file is still there")
        check(not os.path.exists(chain.pid_path), "the pid file is still there")


def begun_until_the_word(chain):
    """An upgrade whose new process, stopped, has yet to hear the word to take over; the old one and the new."""
    chain.becomes_reactord("sleep 0.5")
    old, new = chain.pid, chain.begin()
    os.kill(old, signal.SIGSTOP)
    chain.wait_line(" ready$", new)
    os.kill(new, signal.SIGSTOP)
    os.kill(old, signal.SIGCONT)
    time.sleep(0.5)  # so that it has sent the word
    return old, new


@test(timeout=60)
def new_killed_with_the_word(t):
    """a new process that is killed before it hears the word to take over leaves the old one serving"""
    address = t.address()
    with Chain(t, echo(address)) as chain:
        old, new = begun_until_the_word(chain)
        check(not chain.lines("has replaced", old), "it counts as replaced")
        os.kill(new, signal.SIGKILL)
        chain.wait_line("upgrade: failed: killed by signal 9", old)
        exchange_once(address)
        check_equal(chain.pid_file(), old, "the pid file")
        chain.stop()


@test(timeout=60)
def set_with_the_word(t):
    """what an administrator sets while the new process hears the word to take over holds in the new process"""
    admin = t.path("admin.sock")
    with Chain(t, section(admin) + echo(t.address())) as chain:
        old, new = begun_until_the_word(chain)
        check_equal(post(admin, "/v1/set", {"io_ratio": 70}).status, 200, "status")
        os.kill(new, signal.SIGCONT)
        chain.wait_line("upgrade: took over", new)
        chain.old.append(old)
        chain.pid = new
        chain.eventually(lambda: {loop["io_ratio"] for loop in get(admin, "/v1/loops").json["loops"]
                                  if loop["name"].startswith("work")} == {70}, "it is set")
        chain.stop()


@test(timeout=60)
def new_killed_while_starting(t):
    """a new process that is killed while it starts leaves the old one serving"""
    address = t.address()
    with Chain(t, echo(address)) as chain:
        chain.becomes("sleep 60\n")
        new = chain.begin()
        os.kill(new, signal.SIGKILL)
        chain.wait_line("upgrade: failed: killed by signal 9", chain.pid)
        exchange_once(address)
        check_equal(chain.pid_file(), chain.pid, "the pid file")
        chain.stop()


@test(timeout=60)
def new_killed_later(t):
    """when the new process is killed later the old one serves its sessions to their end"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener) as (client, server):
            old = chain.upgrade()
            os.kill(chain.pid, signal.SIGKILL)
            chain.wait_gone(chain.pid)
            client.sendall(b"still")
            check_equal(net.read_exactly(server, 5), b"still", "what the server got")
        chain.wait_gone(old)


@test(timeout=60)
def old_killed_while_new_starts(t):
    """when the old process is killed while another starts, that one takes over"""
    path = t.path("echo.sock")
    with Chain(t, echo(path)) as chain:
        chain.becomes_reactord("sleep 1")
        new = chain.begin()
        os.kill(chain.pid, signal.SIGKILL)
        chain.wait_line("took over: process .* ended before its hand-over", new)
        exchange_once(path)
        check_equal(chain.pid_file(), new, "the pid file")
        chain.pid = new
        chain.upgrade()
        exchange_once(path)
        chain.stop()
        check(not os.path.exists(path), "the socket file is still there")


@test(timeout=60)
def old_killed_while_draining(t):
    """sessions of a replaced process that is killed count as errors, and none stays open"""
    front, back = t.address(), t.address()
    with net.listen(back) as listener, Chain(t, "drain_timeout = 0\n" + proxy(front, back)) as chain:
        with net.proxied(front, listener), net.proxied(front, listener):
            old = chain.upgrade()
            chain.upgrade()
            os.kill(old, signal.SIGKILL)
            chain.wait_line(f"process {old} ended before it had drained", chain.pid)
            # Another loop counts them.
            chain.eventually(lambda: chain.statistics("listen front").get("error") == 2, "the errors")
            now = chain.statistics("listen front")
            check_equal((now["sessions"], now["sessions_total"]), (0, 2), "sessions")
        chain.stop()


@test(timeout=60)
def other_counters(t):
    """what was denied, refused per client, mirrored and cut by frames before an upgrade is in the counters
    after it"""
    front, back, copy = t.address(), t.address(), t.address()
    options = ("mirror = copy\npipeline = frame\nframe_length_width = 2\nframe_max_length = 100\n"
               "frame_on_error = close\n[upstream copy]\nserver.only = " + copy + "\n")
    denied, few = t.address(), t.address()
    options += (f"[listen denied]\naddress = {denied}\nservice = echo\ndeny = 127.0.0.1\n"
                f"[listen few]\naddress = {few}\nservice = echo\nmax_connections_per_client = 1\n")
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(net.listen(back))
        mirror = stack.enter_context(net.listen(copy))
        chain = stack.enter_context(Chain(t, proxy(front, back, options)))
        with net.proxied(front, listener) as (client, server), net.accept(mirror) as copied:
            client.sendall(b"\0\5hello")
            net.read_exactly(server, 7)
            net.read_exactly(copied, 7)
            client.sendall(b"\1\0")
            net.ending(client)
        with contextlib.suppress(ConnectionResetError), net.connect(denied) as client:
            net.ending(client)
        with net.connect(few) as client, contextlib.suppress(ConnectionResetError), net.connect(few) as second:
            net.exchange(client, b"x")
            net.ending(second)
        chain.eventually(lambda: chain.statistics("listen denied").get("denied") == 1, "denied")
        chain.eventually(lambda: chain.statistics("listen few").get("over_max_connections_per_client") == 1, "few")
        chain.eventually(lambda: chain.statistics("frame front").get("too_long") == 1, "too long")
        chain.eventually(lambda: chain.statistics("listen front").get("mirrors") == 1, "mirrored")
        before = {what: chain.statistics(what) for what in ("listen", "frame", "upstream")}
        chain.upgrade()
        for what, counts in before.items():
            now = chain.statistics(what)
            for key, value in counts.items():
                check(now[key] >= value or key == "clients_known", f"{what}: {key} has fallen from {value} to {now[key]}")
        chain.stop()


@test(timeout=60)
def health(t):
    """a server that is down is down in the new process from its start"""
    front, back = t.address(), t.address()
    options = "check = tcp\ncheck_interval = 200ms\ncheck_timeout = 100ms\nfall = 1\nrise = 1000\n"
    with Chain(t, proxy(front, back, "", options)) as chain:
        chain.wait_line("server only", chain.pid)
        chain.eventually(lambda: "down" in " ".join(chain.lines("server only", chain.pid)), "it is down")
        with net.listen(back):
            chain.upgrade()
            chain.statistics("server")
            states = chain.lines("stats server back/only state=", chain.pid)
            check("state=down" in states[-1], f"not down: {states[-1]}")
        chain.stop()


@test(timeout=60)
def other_configuration(t):
    """the new process has the configuration of now: other listeners, another pid file"""
    first, second, path = t.address(), t.address(), t.path("other.pid")
    with Chain(t, echo(first)) as chain:
        chain.daemon.config_path.write_text(
            f"[reactord]\npid_file = {path}\n{echo(second)}", encoding="utf-8")
        before = chain.pid_path
        chain.upgrade()
        exchange_once(second)
        t.eventually(lambda: not net.listening(int(first.rpartition(":")[2])), "the first is closed")
        check(not os.path.exists(before), "the old pid file is still there")
        chain.pid_path = path
        check_equal(chain.pid_file(), chain.pid, "the pid file")
        chain.stop()


@test(each={"kind": ["TCP", "unix"]}, timeout=60)
def removed_address(t, kind):
    """a {kind} address that the configuration no longer has is given up, and not before it took over"""
    kept, gone = t.address(), t.address() if kind == "TCP" else t.path("gone.sock")
    with Chain(t, f"[listen echo]\naddress = {kept}, {gone}\nservice = echo\n",
               environment={"FDSTORE": "16"}) as chain:
        def stored():
            return [name for name, _ in chain.daemon.stored]
        chain.eventually(lambda: len(stored()) == 2, "both are stored")
        chain.daemon.config_path.write_text(chain.daemon.config.replace(f", {gone}", ""))
        chain.becomes_reactord("sleep 0.5")
        new = chain.begin()
        os.kill(chain.pid, signal.SIGSTOP)
        chain.wait_line(" ready$", new)
        os.kill(new, signal.SIGKILL)
        t.eventually(lambda: not os.path.exists(f"/proc/{new}"), "the new process is gone")
        time.sleep(0.2)  # its parent, which waited for it, tells how it ended
        os.kill(chain.pid, signal.SIGCONT)
        chain.wait_line("upgrade: failed: killed by signal 9", chain.pid)
        check_equal(len(stored()), 2, "stored sockets")
        exchange_once(gone)
        chain.upgrade()
        chain.eventually(lambda: set(stored()) == {kept.replace(":", "%3A")}, "the other is stored")
        if kind == "unix":
            chain.eventually(lambda: not os.path.exists(gone), "the socket file is gone")
        exchange_once(kept)
        chain.stop()


@test(timeout=60)
def service_manager(t):
    """the service manager hears of the new main process, and then from that one only"""
    address = t.address()
    with Chain(t, echo(address)) as chain:
        old = chain.upgrade()
        chain.daemon.wait_notified(f"MAINPID={chain.pid}", 5)
        chain.eventually(lambda: chain.daemon.notified.count("READY=1") == 2, "it is ready")
        chain.wait_gone(old)
        check(not chain.daemon.has_notified("STOPPING=1"), "the old one has told STOPPING=1")
        chain.stop()
        check(chain.daemon.has_notified("STOPPING=1"), "the new one has not told STOPPING=1")


@test(timeout=60)
def reload_meanwhile(t):
    """a reload is refused while another program starts, and works before and after"""
    first, second = t.address(), t.address()
    with Chain(t, echo(first)) as chain:
        chain.daemon.config_path.write_text(
            chain.daemon.config.replace(first, second), encoding="utf-8")
        os.kill(chain.pid, signal.SIGHUP)
        chain.eventually(lambda: net.listening(int(second.rpartition(":")[2])), "the new listener")
        chain.becomes_reactord("sleep 1")
        new = chain.begin()
        os.kill(chain.pid, signal.SIGHUP)
        chain.wait_line("reload: refused: an upgrade is under way", chain.pid)
        chain.wait_line("upgrade: took over", new)
        chain.old.append(chain.pid)
        chain.pid = new
        exchange_once(second)
        chain.daemon.config_path.write_text(chain.daemon.config, encoding="utf-8")
        os.kill(chain.pid, signal.SIGHUP)
        chain.eventually(lambda: net.listening(int(first.rpartition(":")[2])), "the first listener")
        exchange_once(first)
        chain.upgrade()
        exchange_once(first)
        chain.stop()


@test(timeout=60)
def unconfirmed_reload(t):
    """an upgrade is refused while a reload is not confirmed"""
    first, second = t.address(), t.address()
    with Chain(t, "reload_confirm = 30s\n" + echo(first)) as chain:
        chain.daemon.config_path.write_text(
            chain.daemon.config.replace(first, second), encoding="utf-8")
        os.kill(chain.pid, signal.SIGHUP)
        chain.eventually(lambda: net.listening(int(second.rpartition(":")[2])), "the new listener")
        os.kill(chain.pid, signal.SIGUSR2)
        chain.wait_line("upgrade: refused: a reload is under way, or not confirmed yet", chain.pid)
        check_equal(chain.started(), [], "processes started")
        chain.stop()


@test(timeout=60)
def other_user(t):
    """a process that has given up root is replaced, and the next may still bind a low port"""
    if not is_root():
        raise Skipped("only root can change to another user")
    address = t.address()
    low = "127.0.0.1:1013"
    os.chmod(t.dir, 0o755)
    with Chain(t, f"user = nobody\n{echo(address)}") as chain:
        os.chmod(chain.daemon.config_path, 0o644)
        chain.upgrade()
        exchange_once(address)
        chain.daemon.config_path.write_text(
            chain.daemon.config + f"[listen low]\naddress = {low}\nservice = echo\n")
        chain.upgrade()
        exchange_once(low)
        with open(f"/proc/{chain.pid}/status", encoding="ascii") as f:
            check("\nCapPrm:\t0000000000000400\n" in f.read(), "other capabilities")
        chain.stop()


def resume(front, context, session, version):
    """A client's connection with that session; whether it was resumed, and the session that follows."""
    with context.wrap_socket(net.connect(front), server_hostname="a.example", session=session) as client:
        client.sendall(b"hello")
        check_equal(client.recv(5), b"hello", "the echo")  # behind the tickets
        check_equal(client.version(), f"TLSv{version}", "the version")
        return client.session_reused, client.session


@test(each={"version": ["1.2", "1.3"]})
def ticket_keys(t, version):
    """a client of TLS {version} resumes its session after one and two upgrades, and no memory file with the keys is left"""
    front = t.address()
    ca = tls.Authority(t)
    certificate = ca.issue("a.example")
    text = (f"[tls front]\ncertificate = {certificate}\nkey = {certificate}\n"
            f"[listen front]\naddress = {front}\ntls = front\nservice = echo\n")
    context = tls.client_context(ca.path, version)
    with Chain(t, text) as chain:
        _, session = resume(front, context, None, version)
        for turn in range(2):
            chain.upgrade()
            reused, session = resume(front, context, session, version)
            check(reused, f"a full handshake after upgrade {turn + 1}")
            pids = [chain.pid] + [pid for pid in chain.old if not has_ended(pid)]
            t.eventually(lambda: not any(memory_files(pid) for pid in pids), "no memory file is left")
        chain.stop()


def memory_files(pid):
    """Those that the process has open."""
    return [link for link in descriptors.of_process(pid).values() if "memfd" in link]


def has_ended(pid):
    """Is it gone, or a zombie without other threads, which holds no file?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            is_zombie = stat.read().rpartition(")")[2].split()[0] == "Z"
        return is_zombie and len(os.listdir(f"/proc/{pid}/task")) == 1
    except (FileNotFoundError, ProcessLookupError):
        return True


def kill_at(t, moment_s, kill_old):
    """Kill one of two processes so long after an upgrade began; which one is it then?"""
    address, path = t.address(), t.path("echo.sock")
    config = echo(address) + f"[listen unix]\naddress = {path}\nservice = echo\n"
    with Chain(t, config) as chain:
        chain.becomes_reactord("sleep 0.1")
        old, new = chain.pid, chain.begin()
        time.sleep(moment_s)
        os.kill(old if kill_old else new, signal.SIGKILL)
        killed = old if kill_old else new
        chain.eventually(lambda: has_ended(killed), "the killed process has ended")
        if kill_old:
            chain.wait_line("upgrade: took over", new)
            chain.pid = new
        else:
            chain.eventually(lambda: chain.lines("upgrade: (failed|process .* has replaced)", old),
                             "the end of the upgrade")
            if chain.lines("has replaced", old):
                return  # the new one was the process already
        exchange_once(address)
        exchange_once(path)
        chain.eventually(lambda: chain.pid_file() == chain.pid, "the pid file names it")
        chain.stop()
        check(not os.path.exists(path), "the socket file is still there")


@test(each={"killed": ["old", "new"]}, timeout=90, plain_only=True)
def killed_at_any_time(t, killed):
    """the {killed} process is killed at twenty moments of an upgrade, and one of both serves on"""
    for moment in range(20):
        kill_at(t, 0.08 + moment * 0.003, killed == "old")
