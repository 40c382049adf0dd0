"""bare: where the system lacks or refuses something that is there on every desk."""

import contextlib
import ctypes
import errno
import os
import pwd
import re
import resource
import signal
import socket
from pathlib import Path

from support import admin, net
from support.case import Skipped, check, check_equal, is_root, test
from support.mounts import bind, own_mounts
from support.preload import Preload

IPV6_SOCKET, THREAD_CREATE = range(2)  # as in preload/system_fault.c

ECHO = """
[listen echo]
address = {address}
service = echo
"""


def fill(path):
    """Messages to the socket of the service manager, until it takes no more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.setblocking(False)
        try:
            while True:
                s.sendto(b"X=1", str(path))
        except BlockingIOError:
            pass


@test()
def manager_that_does_not_read(t):
    """a service manager that reads nothing holds up no reload, no statistics and no stop, and is told
    later what it has missed, once and in order"""
    address = t.address()
    config = ECHO.format(address=address)
    with t.daemon(config, environment={"WATCHDOG_USEC": "400000"}) as daemon:
        daemon.has_notified("READY=1")
        fill(daemon.notify_path)
        for i in range(3):
            daemon.config_path.write_text(config + f"max_connections = {10 + i}\n", encoding="utf-8")
            daemon.send_signal(signal.SIGHUP)
            t.eventually(lambda n=i: len(daemon.log_lines("reload: done")) > n, "the reload is done")
        daemon.send_signal(signal.SIGRTMIN)
        t.eventually(lambda: daemon.log_lines(" stats end$"), "statistics")
        with net.connect(address) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        check_equal(len(daemon.log_lines("systemd takes no messages")), 1, "log lines about it")
        daemon.notified.clear()
        t.eventually(lambda: daemon.has_notified("READY=1") and "WATCHDOG=1" in daemon.notified, "messages")
        told = [line for line in daemon.notified if line in ("RELOADING=1", "READY=1")]
        check_equal(told, ["RELOADING=1", "READY=1"], "what was missed")
        t.eventually(lambda: daemon.log_lines("systemd takes messages .* again"), "the end is logged")
        fill(daemon.notify_path)
        daemon.send_signal(signal.SIGTERM)
        check_equal(daemon.process.wait(20 * t.scale), 0, "exit code")


@test()
def socket_file_of_another(t):
    """a socket file that another program has put in the place of ours keeps its mode and stays when we end, and the log says
    so; those that are still ours go"""
    paths = [t.path(name) for name in ("front.sock", "gone.sock", "kept.sock", "admin.sock")]
    front, gone, kept, desk = paths
    more = ECHO.format(address=f"{front}, {kept}") + f"unix_mode = 600\n[admin]\naddress = {desk}\n"
    with t.daemon(more + f"[listen gone]\naddress = {gone}\nservice = echo\n") as daemon:
        os.unlink(front)
        os.unlink(gone)
        os.unlink(desk)
        with net.listen(front), net.listen(gone), net.listen(desk):
            os.chmod(front, 0o640)
            daemon.reload(more.replace("listen echo", "listen other").replace("600", "666"))
            check_equal(os.stat(front).st_mode & 0o777, 0o640, "mode of the other program's file")
            check_equal(os.stat(kept).st_mode & 0o777, 0o666, "mode of our file")
            t.eventually(lambda: daemon.log_lines(f"{gone}: not removed"), "the log after the reload")
            daemon.stop()
            check_equal([os.path.exists(path) for path in paths], [True, True, False, True], "files")
            for path in (front, desk):
                check(daemon.log_lines(f"{path}: not removed: the file is of another program now"), "not logged")


@test()
def no_ipv6(t):
    """*:port listens on 0.0.0.0 where the kernel has no IPv6; [::]:port is refused"""
    refuse = Preload(t, "system_fault")
    refuse.plan(IPV6_SOCKET, value=errno.EAFNOSUPPORT)
    port = t.port()
    with t.daemon(ECHO.format(address=f"*:{port}"), environment=refuse.environment()) as daemon:
        with net.connect(f"127.0.0.1:{port}") as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        check_equal(len(daemon.log_lines("listen echo: echo on")), 1, "listen addresses")
    config = t.write("c.ini", ECHO.format(address=f"[::]:{port}"))
    done = t.reactord("-c", config, env={**os.environ, **refuse.environment()})
    check_equal(done.code, 3, "exit code")
    check(f"[::]:{port}: " in done.err and "not supported" in done.err, f"stderr: {done.err}")


@test(each={"limit": [150, 1024]})
def few_descriptors(t, limit):
    """with a limit of {limit} open files and an admin interface, most are for clients"""
    address = t.address()
    config = ECHO.format(address=address) + f"[worker]\nthreads = 4\n[admin]\naddress = {t.path('admin.sock')}\n"
    with t.daemon(config, nofile=limit) as daemon, contextlib.ExitStack() as stack:
        check_equal(admin.get(t.path("admin.sock"), "/readyz").status, 200, "/readyz")
        for _ in range(limit // 3):
            client = stack.enter_context(net.connect(address))
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        check(not daemon.log_lines("max_connections"), "a warning about a default")


@test(each=[{"limit": 70, "more": ""}, {"limit": 150, "more": "max_connections = 1000"}])
def too_few_descriptors(t, limit, more):
    """{limit} open files, [admin] {more}: it starts only if one client can be served, else says what it needs"""
    config = ECHO.format(address=t.address()) + f"[worker]\nthreads = 4\n[admin]\naddress = {t.path('a.sock')}\n{more}\n"
    done = t.reactord("-c", t.write("c.ini", config), preexec_fn=lambda: limit_files(limit))
    check_equal(done.code, 3, "exit code")
    check(re.search(rf"limit of open files: {limit}: at least \d+ are needed: \d+ for the process, \d+ set aside "
                    r".*, 1 for one client", done.err), f"stderr: {done.err}")
    check("ready" not in done.err and not os.path.exists(t.path("a.sock")), "it was ready, or left its socket")


def limit_files(n):
    resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))


CLONE_NEWPID = 0x20000000  # sched.h


def children(parent):
    """The state of each child of that process; "Z": ended, and nobody has waited for it."""
    states = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, ppid = path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[:2]
        except OSError:  # it has ended
            continue
        if int(ppid) == parent:
            states.append(state)
    return states


@test()
def process_1(t):
    """as process 1 of a container it reaps orphans, and takes signals from within"""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWPID):
        raise Skipped("no process namespace")
    address = t.address()
    with t.daemon(ECHO.format(address=address)) as daemon:
        for _ in range(20):
            check_equal(t.run("sh", "-c", "sleep 0.1 &").code, 0, "exit code of the shell")
        t.eventually(lambda: not children(daemon.pid), "the orphans have ended, and are reaped")
        check_equal(t.run("sh", "-c", "kill -HUP 1").code, 0, "exit code of kill")
        t.eventually(lambda: daemon.log_lines("nothing has changed"), "the reload")
        t.run("sh", "-c", "kill -TERM 1")  # its end is that of all in the namespace, of the shell as well
        check_equal(daemon.wait(), 0, "exit code")


@test(each={"n_threads": [0, 1, 2]})
def no_threads(t, n_threads):
    """where no more than {n_threads} threads can start, the start fails and says why"""
    refuse = Preload(t, "system_fault")
    refuse.plan(THREAD_CREATE, value=errno.EAGAIN, skip=n_threads)
    config = t.write("c.ini", "[boss]\nthreads = 1\n" + ECHO.format(address=t.address()))
    done = t.reactord("-c", config, env={**os.environ, **refuse.environment()})
    check_equal(done.code, 3, "exit code")
    which = ("a worker", "the control", "a boss")[n_threads]
    check(f"cannot start {which} thread: Resource temporarily unavailable" in done.err, f"stderr: {done.err}")
    check("ready" not in done.err, "it said that it was ready")


def confined(t, preparation, *arguments, **how):
    """Run the program to its end in a mount namespace of its own, after that shell command."""
    if not is_root():
        raise Skipped("needs root")
    if t.run("unshare", "--mount", "true").code != 0:
        raise Skipped("no mount namespace")
    return t.run("unshare", "--mount", "sh", "-c", f'{preparation} && exec "$0" "$@"', t.options.reactord,
                 *arguments, **how)


@test()
def no_dev_null(t):
    """without /dev/null it starts, also with standard input closed"""
    config = t.write("c.ini", ECHO.format(address=t.address()))
    done = confined(t, "mount -t tmpfs none /dev && exec <&-", "-t", "-c", config)
    check_equal(done.code, 0, f"exit code; stderr: {done.err}")


NO_PROC = "umount -l /proc"


@test(plain_only=True)
def no_proc_check(t):
    """without /proc a configuration is read as with it, and its errors are told"""
    text = ECHO.format(address=t.address()) + 'access_log = "/quoted \\\\path"\nidle_timeout = 5s\n'
    config = t.write("c.ini", text)
    wanted = t.reactord("--dump-config", "-c", config)
    check_equal(wanted.code, 0, f"exit code; stderr: {wanted.err}")
    done = confined(t, NO_PROC, "--dump-config", "-c", config)
    check_equal((done.code, done.out), (wanted.code, wanted.out), f"code and dump; stderr: {done.err}")
    done = confined(t, NO_PROC, "-t", "-c", t.write("bad.ini", text + "idle_timeut = 5s\n"))
    check_equal(done.code, 1, "exit code")
    check("bad.ini:7: [listen echo] idle_timeut: " in done.err, f"stderr: {done.err}")


@test(plain_only=True)
def no_proc(t):
    """in a root directory without /proc it serves, reloads, sets modes of sockets and keeps to its limit of
    descriptors"""
    if not is_root():
        raise Skipped("needs root")
    own_mounts()
    root, run = t.path("root"), t.path("run")
    os.makedirs(f"{root}/{t.dir}")
    os.makedirs(run)
    os.chmod(t.dir, 0o755)
    os.chown(run, pwd.getpwnam("nobody").pw_uid, -1)
    bind(str(t.dir), f"{root}/{t.dir}")
    address = t.address()
    config = f"[reactord]\nuser = nobody\nchroot = {root}\n" + ECHO.format(address=address)
    more = f"[listen more]\naddress = {run}/more.sock\nservice = echo\nunix_mode = 666\n"
    old_mask = os.umask(0o077)
    with t.daemon(config, nofile=100) as daemon:
        os.umask(old_mask)
        os.chmod(daemon.config_path, 0o644)
        daemon.reload(config + more)
        check_equal(os.stat(f"{run}/more.sock").st_mode & 0o777, 0o666, "mode of the socket")
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(net.connect(address)) for _ in range(100)]
            t.eventually(lambda: daemon.log_lines("cannot accept"), "clients wait")
            check_equal(net.exchange(clients[0], b"hello"), b"hello", "the echo")
