"""upgrade: a program that fails, lacks something or is killed changes nothing, whenever that is."""

import contextlib
import os
import resource
import shutil
import signal
import time

from support import descriptors, net
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.chain import Chain, echo, exchange_once, has_ended
from support.daemon import alive
from test_proxy import proxy

THEME = "upgrade"

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
    # Without the sockets of more threads a shell can close all descriptors.
    config = (f"upgrade_timeout = 1s\n[boss]\nthreads = 1\n{echo(address)}"
              f"[listen unix]\naddress = {path}\nservice = echo\n")
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
    addresses = [t.address() for _ in range(55)]
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
