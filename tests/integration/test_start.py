"""start: from nothing to READY=1 and back: notification, pid file, user, refusals to start."""

import os
import pwd
import re
import signal
import subprocess
from pathlib import Path

from support import net
from support.case import Skipped, check, check_equal, is_root, test

ECHO = """
[listen echo]
address = {address}
service = echo
"""


@test()
def the_shortest_life(t):
    """it starts, says READY=1, ends at SIGTERM with exit code 0, and says STOPPING=1"""
    with t.daemon(ECHO.format(address=t.address())) as daemon:
        check(not daemon.has_notified("STOPPING=1"), "STOPPING=1 before the signal")
        daemon.stop()
        check(daemon.has_notified("STOPPING=1"), "no STOPPING=1")


@test()
def ready_means_listening(t):
    """a client that connects at READY=1 is served"""
    address = t.address()
    with t.daemon(ECHO.format(address=address)), net.connect(address) as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")


@test()
def pid_file(t):
    """the pid file holds the process id and a newline, and is gone after the stop"""
    path = t.path("reactord.pid")
    config = f"[reactord]\npid_file = {path}\n" + ECHO.format(address=t.address())
    with t.daemon(config) as daemon:
        with open(path, encoding="ascii") as f:
            check_equal(f.read(), f"{daemon.pid}\n", "the pid file")
        daemon.stop()
        check(not os.path.exists(path), "the pid file is still there")


@test()
def second_instance_same_pid_file(t):
    """a second instance with the pid file of a running one does not start, and leaves the file
    alone"""
    path = t.path("reactord.pid")
    config = "[reactord]\npid_file = {}\n" + ECHO
    with t.daemon(config.format(path, address=t.address())) as daemon:
        second = t.reactord("-c", t.write("second.ini", config.format(path, address=t.address())))
        check_equal(second.code, 3, "exit code")
        check(str(daemon.pid) in second.err, f"stderr does not name the holder: {second.err}")
        with open(path, encoding="ascii") as f:
            check_equal(f.read(), f"{daemon.pid}\n", "the pid file")


@test()
def stale_pid_file(t):
    """a pid file that a killed instance left is replaced"""
    path = t.write("reactord.pid", "4194304\n")
    config = f"[reactord]\npid_file = {path}\n" + ECHO.format(address=t.address())
    with t.daemon(config) as daemon:
        with open(path, encoding="ascii") as f:
            check_equal(f.read(), f"{daemon.pid}\n", "the pid file")


@test()
def foreign_pid_file(t):
    """a pid_file that is some other file is refused with exit code 3, its content untouched"""
    path = t.write("precious", "not a number\n")
    config = f"[reactord]\npid_file = {path}\n" + ECHO.format(address=t.address())
    done = t.reactord("-c", t.write("c.ini", config))
    check_equal(done.code, 3, "exit code")
    with open(path, encoding="ascii") as f:
        check_equal(f.read(), "not a number\n", "the file")


@test()
def address_in_use(t):
    """an address that is taken ends the start with exit code 3 and is named in stderr"""
    address = t.address()
    with net.listen(address):
        done = t.reactord("-c", t.write("c.ini", ECHO.format(address=address)))
    check_equal(done.code, 3, "exit code")
    check(address in done.err and "in use" in done.err, f"stderr: {done.err}")


@test()
def address_of_another_host(t):
    """an address that no interface has ends the start with exit code 3 and is named in stderr"""
    address = f"192.0.2.1:{t.port()}"  # TEST-NET-1, RFC 5737
    done = t.reactord("-c", t.write("c.ini", ECHO.format(address=address)))
    check_equal(done.code, 3, "exit code")
    check(address in done.err, f"stderr: {done.err}")


@test()
def failed_start_leaves_nothing(t):
    """a start that fails at its last address removes the socket file and the pid file it made"""
    taken, sock, pid = t.address(), t.path("x.sock"), t.path("reactord.pid")
    config = f"[reactord]\npid_file = {pid}\n" + ECHO.format(address=f"{sock}, {taken}")
    with net.listen(taken):
        done = t.reactord("-c", t.write("c.ini", config))
    check_equal(done.code, 3, "exit code")
    check(not os.path.exists(sock), "the socket file is still there")
    check(not os.path.exists(pid), "the pid file is still there")


@test()
def user(t):
    """user = nobody: all its threads run as nobody, on a port bound as root, and of root's
    capabilities only that to bind such ports is left, which is no use to a program that it runs"""
    if not is_root():
        raise Skipped("needs root")
    port = next(p for p in range(1023, 600, -1) if not net.listening(p))
    nobody = pwd.getpwnam("nobody")
    ours = re.search(r"CapPrm:\s*(\w+)", Path("/proc/self/status").read_text(encoding="ascii"))
    bind = int(ours[1], 16) & 1 << 10  # CAP_NET_BIND_SERVICE
    config = "[reactord]\nuser = nobody\n" + ECHO.format(address=f"127.0.0.1:{port}")
    with t.daemon(config) as daemon, net.connect(f"127.0.0.1:{port}") as client:
        check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        check_equal(daemon.status("Uid").split(), [str(nobody.pw_uid)] * 4, "Uid")
        check_equal(daemon.status("Gid").split(), [str(nobody.pw_gid)] * 4, "Gid")
        check(daemon.status("Groups").split() in ([], [str(nobody.pw_gid)]),
              f"groups {daemon.status('Groups')}")
        for name, bits in (("CapEff", bind), ("CapPrm", bind), ("CapInh", 0), ("CapAmb", 0)):
            check_equal(int(daemon.status(name), 16), bits, name)
        for task in os.listdir(f"/proc/{daemon.pid}/task"):
            status = Path(f"/proc/{daemon.pid}/task/{task}/status").read_text(encoding="ascii")
            check_equal(int(re.search(r"CapEff:\s*(\w+)", status)[1], 16), bind,
                        f"capabilities of thread {task}")
            check_equal(os.stat(f"/proc/{daemon.pid}/task/{task}").st_uid, nobody.pw_uid,
                        f"user of thread {task}")


@test()
def files_of_a_user(t):
    """user = nobody: the log file can be reopened, and the stop works, after root is given up"""
    if not is_root():
        raise Skipped("needs root")
    nobody = pwd.getpwnam("nobody")
    os.makedirs(t.path("run"))
    os.chown(t.path("run"), nobody.pw_uid, nobody.pw_gid)
    log, sock, pid = t.path("run/x.log"), t.path("run/x.sock"), t.path("run/x.pid")
    config = (f"[reactord]\nuser = nobody\nlog = {log}\npid_file = {pid}\n"
              + ECHO.format(address=sock))
    with t.daemon(config) as daemon:
        os.rename(log, log + ".1")
        daemon.send_signal(signal.SIGUSR1)
        t.eventually(lambda: os.path.exists(log) and os.path.getsize(log), "a new log file")
        with net.connect(sock) as client:
            check_equal(net.exchange(client, b"hello"), b"hello", "the echo")
        daemon.stop()
    check(not os.path.exists(sock), "the socket file is still there")
    check(not os.path.exists(pid), "the pid file is still there")


@test(each=[{"mode": 0o644}, {"mode": 0o600}])
def configuration_of_a_user(t, mode):
    """user = nobody: an included file of mode {mode} of root's is warned of if nobody cannot read it,
    as a reload would fail"""
    if not is_root():
        raise Skipped("needs root")
    os.chmod(t.dir, 0o755)
    os.chmod(t.write("more.ini", "[worker]\nthreads = 1\n"), mode)
    config = "include = more.ini\n[reactord]\nuser = nobody\n" + ECHO.format(address=t.address())
    with t.daemon(config) as daemon:
        lines = daemon.log_lines("uid 65534 cannot load the configuration.*more.ini.*denied")
        check_equal(len(lines), 1 if mode == 0o600 else 0, "warnings")


@test(each=[{"option": option, "link": link} for option in ("log", "access_log", "pid_file")
            for link in ("symbolic", "hard")])
def link_of_the_user(t, option, link):
    """user = nobody: a {option} that is nobody's {link} link to a file of root's ends the start, and
    that file stays as it is"""
    if not is_root():
        raise Skipped("needs root")
    nobody = pwd.getpwnam("nobody")
    precious, path = t.write("precious", "1\n"), t.path("run/x")
    os.chmod(precious, 0o600)
    os.makedirs(t.path("run"))
    os.chown(t.path("run"), nobody.pw_uid, nobody.pw_gid)
    (os.symlink if link == "symbolic" else os.link)(precious, path)
    config = ECHO.format(address=t.address())
    if option == "access_log":
        config = "[reactord]\nuser = nobody\n" + config + f"access_log = {path}\n"
    else:
        config = f"[reactord]\nuser = nobody\n{option} = {path}\n" + config
    done = t.reactord("-c", t.write("c.ini", config))
    check_equal(done.code, 3, "exit code")
    check(path in done.err, f"stderr does not name it: {done.err}")
    with open(precious, encoding="ascii") as f:
        check_equal(f.read(), "1\n", "the file of root")


@test()
def no_new_privileges(t):
    """no program that it could run gains privileges"""
    with t.daemon(ECHO.format(address=t.address())) as daemon:
        check_equal(daemon.status("NoNewPrivs"), "1", "NoNewPrivs")


@test(each=[{"option": "user"}, {"option": "group"}])
def unknown_account(t, option):
    """a {option} that does not exist ends the start and is named in stderr"""
    config = f"[reactord]\n{option} = no-such-account\n" + ECHO.format(address=t.address())
    done = t.reactord("-c", t.write("c.ini", config))
    check(done.code in (1, 3), f"exit code {done.code}")
    check("no-such-account" in done.err, f"stderr: {done.err}")


@test()
def ordinary_user(t):
    """an ordinary user can run it: exit code 0 without user, and a clear refusal with another's"""
    if not is_root():
        raise Skipped("needs root")
    nobody = pwd.getpwnam("nobody").pw_uid
    address = t.address()
    plain = t.write("plain.ini", ECHO.format(address=address))
    other = t.write("other.ini", "[reactord]\nuser = daemon\n" + ECHO.format(address=address))
    done = t.reactord("-c", other, user=nobody)
    check_equal(done.code, 3, "exit code of the other's")
    check("root" in done.err, f"stderr: {done.err}")
    process = subprocess.Popen([t.options.reactord, "-c", plain], user=nobody,
                               stderr=subprocess.DEVNULL)
    try:
        t.eventually(lambda: net.listening(int(address.rpartition(":")[2])), "a listen socket")
        process.terminate()
        check_equal(process.wait(10 * t.scale), 0, "exit code")
    finally:
        process.kill()
        process.wait()


@test()
def example_of_the_readme(t):
    """the example of README.md starts as it stands there, for an ordinary user as well"""
    text = (t.options.source_dir / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```ini\n(.*?)```", text, re.S).group(1)
    config, user = t.write("front.ini", example), {}
    if is_root():
        os.chmod(t.options.reactord, os.stat(t.options.reactord).st_mode | 0o555)
        user = {"user": pwd.getpwnam("nobody").pw_uid}
    if net.listening(7008):
        raise Skipped("something else listens on port 7008")
    said = Path(t.path("err"))
    with said.open("w") as err, subprocess.Popen([t.options.reactord, "-c", config], stderr=err,
                                                 **user) as process:
        try:
            t.eventually(lambda: process.poll() is not None or ": ready" in said.read_text(),
                         "the start")
            check(process.poll() is None, f"it ended: {said.read_text()}")
            process.terminate()
            check_equal(process.wait(10 * t.scale), 0, "exit code")
        finally:
            process.kill()


@test()
def closed_standard_descriptors(t):
    """started without stdin, stdout and stderr it serves, and writes to none of its clients'
    sockets"""
    address, log = t.address(), t.path("x.log")
    config = t.write("c.ini", f"[reactord]\nlog = {log}\nlog_level = debug\n"
                     + ECHO.format(address=address))
    process = subprocess.Popen(["sh", "-c", f'exec "{t.options.reactord}" -c "{config}" '
                                "<&- >&- 2>&-"])
    try:
        t.eventually(lambda: net.listening(int(address.rpartition(":")[2])), "a listen socket")
        with net.connect(address) as client:
            for word in (b"one", b"two"):
                check_equal(net.exchange(client, word), word, "the echo")
            client.shutdown(net.socket.SHUT_WR)
            check_equal(net.read_to_end(client), b"", "the rest")
        process.terminate()
        check_equal(process.wait(10 * t.scale), 0, "exit code")
    finally:
        process.kill()
        process.wait()
