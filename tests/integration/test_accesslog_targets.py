"""accesslog: pipes, files, full disks, rotation and syslog as targets."""

import contextlib
import fcntl
import json
import os
import re
import signal
import threading

from support import descriptors
from support.case import Skipped, check, check_equal, is_root, test
from support.log_lines import TIME, check_record, echo, lines_of, one_echo, whole_lines
from support.mounts import mount_tmpfs, own_mounts
from support.net import Task
from support.watch import Watch
from test_logs import log_socket, received

THEME = "accesslog"


def is_in_use(daemon, path):
    """Does the daemon write to the file at ${path}, and no longer to ${path}.1?"""
    links = descriptors.of_process(daemon.pid).values()
    return path in links and path + ".1" not in links


def dropped(daemon, path):
    """The numbers of lines and of dropped lines that SIGRTMIN tells."""
    counts = daemon.counts(f"access_log {path} ")
    return [counts["lines"], counts["dropped"]]


@test(timeout=60)
def rotation(t):
    """SIGUSR1 after a rename, five times under traffic: every connection is in exactly one file"""
    address, path = t.address(), t.path("access.log")
    config = echo(address, f"access_log = {path}\naccess_log_format = $client_port $connection")
    with t.daemon(config) as daemon:
        over = threading.Event()
        made = [0, 0, 0]

        def traffic(i):
            while not over.is_set():
                one_echo(address, b"x")
                made[i] += 1

        tasks = [Task(traffic, i) for i in range(3)]
        for number in range(1, 6):
            t.eventually(lambda: os.path.getsize(path) > 0, "lines in the file", 20)
            os.rename(path, f"{path}.{number}")
            daemon.send_signal(signal.SIGUSR1)
            t.eventually(lambda: os.path.exists(path), "the new file")
        t.eventually(lambda: os.path.getsize(path) > 0, "lines in the last file", 20)
        over.set()
        for task in tasks:
            task.result()
        daemon.stop()
    found = []
    for name in [path] + [f"{path}.{number}" for number in range(1, 6)]:
        part = lines_of(name)
        check(part, f"{name} is empty")
        found += [int(line.split()[1]) for line in part]
    check_equal(sorted(found), list(range(1, sum(made) + 1)), "connections in the files")


def fill_fifo(path):
    """A pipe with a reader that does not read, as small as may be; returns the reader."""
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    return reader


def drain(reader):
    data = b""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(reader, 65536):
            data += chunk
    return data


@test(timeout=90)
def slow_reader(t):
    """a pipe that nobody reads slows no client down; what is lost is counted and said once"""
    address, path = t.address(), t.path("access.fifo")
    reader = fill_fifo(path)
    config = echo(address, f"access_log = {path}\naccess_log_format = $connection {'x' * 700}",
                  "access_log_buffer = 128k")
    with t.daemon(config) as daemon:
        for _ in range(600):
            watch = Watch()
            one_echo(address)
            watch.expect(0, 5 * t.scale, "a client waited")
        t.eventually(lambda: daemon.counts("listen echo sessions=")["sessions"] == 0, "all have ended")
        lines, lost = dropped(daemon, path)
        check(lines <= 6 and lost >= 300, f"{lines} lines, {lost} dropped")
        check_equal(len(daemon.log_lines("lines are dropped")), 1, "warnings")
        data = b""

        def over():
            nonlocal data
            data += drain(reader)
            return daemon.log_lines("takes lines again")

        t.eventually(over, "the end of the episode", within=20)
        said = daemon.log_lines("takes lines again")
        check(re.search(rf"lines dropped: {lost}$", said[0]), f"{said}, and not {lost}")
        one_echo(address)
        t.eventually(lambda: dropped(daemon, path) == [601 - lost, lost], "the last line")
        daemon.stop()
        data += drain(reader)
    os.close(reader)
    numbers = [int(line.split()[0]) for line in data.splitlines()]
    check_equal(len(set(numbers)), 601 - lost, "different lines")
    check_equal(numbers[-1], 601, "the last")
    check(all(line.endswith(b" " + b"x" * 700) for line in data.splitlines()), "a line is torn")


@test(timeout=60)
def end_with_a_full_pipe(t):
    """reactord ends within seconds although a pipe takes nothing, and says what was lost"""
    address, path = t.address(), t.path("access.fifo")
    reader = fill_fifo(path)
    with t.daemon(echo(address, f"access_log = {path}\naccess_log_format = $pid {'x' * 700}")) \
            as daemon:
        for _ in range(20):
            one_echo(address)
        watch = Watch()
        daemon.stop()
        watch.expect(0, 10 * t.scale, "the end took long")
        check(daemon.log_lines(r"lines dropped: \d+"), "nothing is said")
    os.close(reader)


@test()
def reader_is_gone(t):
    """a pipe whose reader has gone costs lines and nothing else"""
    address, path = t.address(), t.path("access.fifo")
    reader = fill_fifo(path)
    with t.daemon(echo(address, f"access_log = {path}")) as daemon:
        os.close(reader)
        for _ in range(3):
            one_echo(address)
        t.eventually(lambda: dropped(daemon, path) == [0, 3], "three lines lost")
        check_equal(len(daemon.log_lines("lines are dropped: Broken pipe")), 1, "warnings")


@test()
def full_disk(t):
    """a full disk costs lines, which are counted and said, and nothing else"""
    address = t.address()
    with t.daemon(echo(address, "access_log = /dev/full")) as daemon:
        for _ in range(3):
            one_echo(address)
        t.eventually(lambda: dropped(daemon, "/dev/full") == [0, 3], "three lines lost")
        check_equal(len(daemon.log_lines("lines are dropped: No space left")), 1, "warnings")
        daemon.stop()
        check_equal(len(daemon.log_lines("lines dropped: 3$")), 1, "lines about the number")


SMALL_DISK_BYTES, DISK_TAKEN_BYTES = 32768, 20000


@test()
def full_disk_and_rotation(t):
    """a line that a full disk has cut ends there; after SIGUSR1 the next file has whole lines only"""
    own_mounts()
    address, disk = t.address(), t.path("disk")
    path, filler = f"{disk}/access.log", f"{disk}/filler"
    os.mkdir(disk)
    mount_tmpfs(disk, SMALL_DISK_BYTES)
    line = "x" * 300  # divides no page
    with t.daemon(echo(address, f"access_log = {path}\naccess_log_format = {line} $connection")) as daemon:
        with open(filler, "wb") as f:
            f.write(bytes(DISK_TAKEN_BYTES))

        def is_full():
            one_echo(address)
            return dropped(daemon, path)[1] > 0

        t.eventually(is_full, "a line is lost")
        with open(path, "rb") as f:
            check(not f.read().endswith(b"\n"), "the full disk has cut no line")
        os.remove(filler)
        os.rename(path, path + ".1")
        daemon.send_signal(signal.SIGUSR1)
        t.eventually(lambda: is_in_use(daemon, path), "the new file is in use")
        one_echo(address)
        t.eventually(lambda: whole_lines(path), "a line in the new file")
        daemon.stop()
    old, new = lines_of(path + ".1"), lines_of(path)
    for one in old[:-1] + new:
        check(re.fullmatch(rb"x{300} \d+", one), f"not a whole line: {one!r}")
    check(len(old[-1]) < 302, "the last line of the full disk is not cut")


@test()
def cannot_be_opened(t):
    """an access log that cannot be opened ends the start with exit code 3 and its name"""
    config = echo(t.address(), "access_log = /nonexistent/access.log")
    done = t.reactord("-c", t.write("c.ini", config))
    check_equal(done.code, 3, "exit code")
    check("/nonexistent/access.log" in done.err, f"stderr: {done.err}")


@test()
def user(t):
    """the file of an access log belongs to the user that reactord runs as, who can reopen it"""
    if not is_root():
        raise Skipped("only root can change to another user")
    address, directory = t.address(), t.path("logs")
    os.mkdir(directory)
    os.chmod(t.dir, 0o755)
    os.chown(directory, 65534, 65534)
    path = os.path.join(directory, "access.log")
    with t.daemon(echo(address, f"access_log = {path}", "user = nobody")) as daemon:
        check_equal(os.stat(path).st_uid, 65534, "owner")
        os.rename(path, path + ".1")
        daemon.send_signal(signal.SIGUSR1)
        t.eventually(lambda: is_in_use(daemon, path), "the new file is in use")
        one_echo(address)
        daemon.stop()
    check_equal(len(lines_of(path)), 1, "lines")


@test()
def to_stderr(t):
    """access_log = stderr puts whole lines among those of the log"""
    address = t.address()
    with t.daemon(echo(address, "access_log = stderr\naccess_log_format = >$connection $reason<",
                       "log_level = debug")) as daemon:
        for _ in range(50):
            one_echo(address)
        daemon.stop()
        lines = daemon.log().splitlines()
    # Connections on several workers end in any order.
    check_equal(sorted(line for line in lines if line.startswith(">")),
                sorted(f">{i} client_fin<" for i in range(1, 51)), "lines")
    check(all(re.match(rf"{TIME} reactord\[|>", line) for line in lines), "a line is torn")


@test()
def to_syslog(t):
    """access_log = syslog sends each line as a message, JSON as it is"""
    address = t.address()
    with log_socket("/dev/log") as s, \
            t.daemon(echo(address, "access_log = syslog\naccess_log_format = json")) as daemon:
        one_echo(address)
        # Other programs of the machine log there, too.
        message = received(s, rf"reactord\[{daemon.pid}\]: ")
        head, _, text = message.partition(": ")
        check(re.fullmatch(rf"<30>\w{{3}} [ \d]\d \d\d:\d\d:\d\d reactord\[{daemon.pid}\]", head),
              f"the message is {message!r}")
        check_record(json.loads(text))
