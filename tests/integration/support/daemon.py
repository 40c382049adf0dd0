"""daemon: the program under test, from its start to an exit code that is always looked at."""

import array
import ctypes
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time

from support import descriptors
from dataclasses import dataclass
from pathlib import Path

INHERIT = Path(__file__).resolve().parent / "inherit.py"
START_LIMIT_S = 30
STOP_LIMIT_S = 30
STATISTICS_LIMIT_S = 30
RELOAD_LIMIT_S = 30
PR_SET_PDEATHSIG = 1

RELOAD_END = r"reload: (done|refused|nothing has changed)"

# What must never be in stderr, whatever the test asks: our own MUST(), and the sanitisers' reports.
REPORT = re.compile(r"^.*(\bbug: |runtime error: |(ERROR|WARNING|SUMMARY): \w+Sanitizer).*$",
                    re.MULTILINE)

_libc = ctypes.CDLL(None)
_CREDENTIALS = struct.Struct("iII")


class DaemonError(Exception):
    """The daemon did not start, did not stop, or complained."""


@dataclass
class Finished:
    """A run of the program that ended by itself."""
    code: int
    out: str
    err: str


def alive(pid):
    """Is there such a process that is no zombie?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _child_setup(nofile):
    """Before exec: end with the test, and the descriptors it may have."""
    def setup():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if nofile is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))
    return setup


class Daemon:
    """A reactord process.

    `with` starts it, waits for READY=1, and ends it by SIGTERM and a look at the exit code and at
    stderr. When the body fails, that failure is what counts: the daemon is just killed.

    The tests are its service manager, with NotifyAccess=main: messages of other processes are in `refused`.

    inherited: (name, descriptor) pairs that it gets as from a service manager; -1: it is not open. What it
    stores there is in `stored`, in the same form, and stays open.
    """

    def __init__(self, program, directory, number, config, *, scale=1, nofile=None, arguments=(),
                 environment=None, inherited=()):
        self.program = program
        self.config = config
        self.scale = scale
        self.nofile = nofile
        self.arguments = arguments
        self.environment = environment or {}
        self.inherited = inherited
        self.stored = []
        self.config_path = Path(directory, f"reactord-{number}.ini")
        self.err_path = Path(directory, f"stderr-{number}.log")
        self.notify_path = Path(directory, f"notify-{number}.sock")
        self.directory = directory
        self.process = None
        self.notify = None
        self.notified = []
        self.main_pid = None  # as the service manager knows it
        self.refused = []

    # Life

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, error, *_):
        try:
            if error:
                self.kill()
            elif self.process.poll() is None:
                self.stop()
            else:
                self._expect_code(0)
            if not error:
                self.expect_no_report()
        finally:
            self.kill()
            self.notify.close()

    def start(self):
        self.config_path.write_text(self.config, encoding="utf-8")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(self.notify_path))
        os.chmod(self.notify_path, 0o777)  # the daemon may have dropped its user by then
        self.notify.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.notify.setblocking(False)
        command = [self.program, "-c", str(self.config_path), *self.arguments]
        if self.inherited:
            pairs = ",".join(f"{name}={fd}" for name, fd in self.inherited)
            command = [sys.executable, INHERIT, pairs, *command]
        with open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(
                command, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=err, stderr=err,
                pass_fds=[fd for _, fd in self.inherited if fd >= 0],
                env={**os.environ, "NOTIFY_SOCKET": str(self.notify_path), **self.environment},
                preexec_fn=_child_setup(self.nofile))
        self.main_pid = self.process.pid
        try:
            self.wait_notified("READY=1", START_LIMIT_S * self.scale)
        except BaseException:
            self.kill()
            raise

    def wait_notified(self, line, within_s):
        """Wait until the daemon has told its service manager that line."""
        end = time.monotonic() + within_s
        while not self.has_notified(line):
            if self.process.poll() is not None and not self.has_notified(line):
                raise DaemonError(f"reactord ended with {self.process.returncode}, {line} not sent")
            if time.monotonic() > end:
                raise DaemonError(f"reactord did not send {line} within {within_s} s")
            select.select([self.notify], [], [], 0.05)

    def has_notified(self, line):
        try:
            while True:
                message, sender, fds = self._receive()
                lines = message.decode().splitlines()
                if sender != self.main_pid and alive(self.main_pid):
                    self.refused += lines
                    continue
                self.notified += lines
                told = dict(line.split("=", 1) for line in lines)
                self.main_pid = int(told.get("MAINPID", self.main_pid))
                self._store(told, fds)
        except BlockingIOError:
            return line in self.notified

    def _receive(self):
        """A message, its sender and its descriptors."""
        space = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(16 * 4)
        message, control, _, _ = self.notify.recvmsg(4096, space)
        sender, fds = 0, array.array("i")
        for _, kind, data in control:
            if kind == socket.SCM_CREDENTIALS:
                sender, _, _ = _CREDENTIALS.unpack(data)
            else:
                fds.frombytes(data)
        return message, sender, list(fds)

    def _store(self, message, fds):
        name = message.get("FDNAME")
        if "FDSTORE" in message:
            self.stored += [(name, fd) for fd in fds]
        if "FDSTOREREMOVE" in message:
            self.stored = [pair for pair in self.stored if pair[0] != name]

    def send_signal(self, number):
        self.process.send_signal(number)

    def wait(self, within_s=STOP_LIMIT_S):
        """The exit code, which must come within that time."""
        end = time.monotonic() + within_s * self.scale
        while time.monotonic() < end:
            self.has_notified("STOPPING=1")  # reads what it says: it waits when the socket is full
            try:
                return self.process.wait(0.05)
            except subprocess.TimeoutExpired:
                pass
        raise DaemonError(f"reactord still runs after {within_s * self.scale} s, "
                          f"with {self.fd_count()} descriptors")

    def stop(self, number=signal.SIGTERM, within_s=STOP_LIMIT_S):
        """Send a signal that ends it, and expect exit code 0."""
        self.send_signal(number)
        self.wait(within_s)
        self._expect_code(0)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def running(self):
        return self.process.poll() is None

    def _expect_code(self, wanted):
        if self.process.returncode != wanted:
            raise DaemonError(f"reactord ended with {self.process.returncode}, not {wanted}")

    def expect_no_report(self):
        found = REPORT.search(self.log())
        if found:
            raise DaemonError(f"stderr has: {found.group()}")

    def reload(self, config=None, wanted="done"):
        """Reload, with another configuration if one is given; the lines that says, which end as wanted."""
        if config is not None:
            self.config_path.write_text(config, encoding="utf-8")
        before = len(self.log_lines(RELOAD_END))
        self.send_signal(signal.SIGHUP)
        return self.wait_reloaded(before + 1, wanted)

    def wait_reloaded(self, number, wanted="done"):
        """The lines of that reload, once it is over as wanted."""
        last = self._wait_line(RELOAD_END, number, f"no end of reload {number}")
        if f"reload: {wanted}" not in last:
            raise DaemonError(f"a reload did not end as {wanted}: {last}")
        log = self.log()
        return log[:log.index(last) + len(last)].rpartition(" SIGHUP from ")[2].splitlines()

    def wait_carried_over(self, number):
        """Until open sessions have the settings of that reload; needs log_level = debug."""
        self._wait_line("reload: open sessions have the new settings", number, f"reload {number} is not carried over")

    def _wait_line(self, pattern, number, failure):
        """The log line with that pattern and number, once it is there."""
        end = time.monotonic() + RELOAD_LIMIT_S * self.scale
        self.has_notified("READY=1")  # reads what it says: it waits when the socket is full
        while len(self.log_lines(pattern)) < number:
            self.has_notified("READY=1")
            if not self.running() or time.monotonic() > end:
                raise DaemonError(failure)
            time.sleep(0.01)
        return self.log_lines(pattern)[number - 1]

    # What it says

    def log(self):
        return self.err_path.read_text(encoding="utf-8", errors="replace")

    def log_lines(self, pattern):
        """The lines of stderr that the regular expression is found in, in any case."""
        return [line for line in self.log().splitlines() if re.search(pattern, line, re.IGNORECASE)]

    def statistics(self, what=""):
        """What it writes on SIGRTMIN, that is: the lines about it, from their beginning."""
        done = len(self.log_lines(" stats end$"))
        self.send_signal(signal.SIGRTMIN)
        end = time.monotonic() + STATISTICS_LIMIT_S * self.scale
        while len(self.log_lines(" stats end$")) == done:
            if time.monotonic() > end:
                raise DaemonError("no statistics after SIGRTMIN")
            time.sleep(0.01)
        lines = self.log().rpartition(" stats end\n")[0].rpartition(" SIGRTMIN from ")[2].splitlines()
        found = [line.partition(" stats ")[2] for line in lines if " stats " in line]
        return [line for line in found if line.startswith(what)]

    def counts(self, what):
        """The numbers in these lines by their names; of two with one name the last."""
        return {key: int(value) for line in self.statistics(what)
                for key, value in re.findall(r"(\w+)=(\d+)\b(?!\.)", line)}

    # What it uses, from /proc

    @property
    def pid(self):
        return self.process.pid

    def fd_count(self):
        """Its descriptors, without epoll instances: a loop has a second one when a client has waited long."""
        return sum(link != "anon_inode:[eventpoll]" for link in descriptors.of_process(self.pid).values())

    def cpu_s(self):
        """Processor time used so far, by all threads."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self):
        return int(self.status("VmRSS").split()[0]) * 1024

    def status(self, name):
        """A field of /proc/PID/status."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            for line in f:
                key, _, value = line.partition(":")
                if key == name:
                    return value.strip()
        raise KeyError(name)

    def describe(self):
        """For a failure: what was configured, what was said."""
        log = self.log().splitlines() if self.err_path.exists() else []
        cut = [f"... {len(log) - 60} lines ..."] if len(log) > 60 else []
        numbered = [f"{i:4} {line}" for i, line in enumerate(self.config.splitlines(), 1)]
        code = self.process.returncode if self.process else None
        return "\n".join([f"--- {self.config_path.name}", *numbered[:60],
                          f"--- {self.err_path.name} (exit code {code})", *cut, *log[-60:]])
