"""service: the daemon as a service manager sees it: its processes, their ends, and what they say."""

import contextlib
import ctypes
import os
import re
import resource
import signal
import threading
import time

from support.daemon import REPORT, DaemonError, alive

PR_SET_CHILD_SUBREAPER = 36
LINE = re.compile(r"^\S+ reactord\[(\d+)\] (\w+) (.*)$")


class Log:
    """The lines that were written, but for those of debug."""

    def __init__(self, path):
        self.path, self.lines, self._offset, self._rest = path, [], 0, b""

    def poll(self):
        with open(self.path, "rb") as f:
            f.seek(self._offset)
            data = f.read()
        self._offset += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self.lines += [line.decode(errors="replace") for line in whole if b" debug " not in line[:70]]
        return self.lines

    def grep(self, words, most=12):
        """The lines, also of debug, with any of these words."""
        with open(self.path, encoding="utf-8", errors="replace") as f:
            return [line.rstrip() for line in f if any(word in line for word in words)][-most:]


class Service:
    """The daemon and the processes that replace it."""

    def __init__(self, t, place, excuses, fail):
        self.t, self.place, self.excuses, self.fail = t, place, excuses, fail
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.daemon = self.log = None
        self.pids, self.killed, self.ended = [], set(), {}
        self.logs = []
        self.lock = threading.RLock()
        self.is_down = None  # an excuse, while no process serves
        self.may_fail = 0  # until when a process may end with an error
        self.at_end = False

    def start(self):
        with self.lock:
            self.daemon = self.t.daemon(self.place.config())
            self.daemon.start()
            self.log = Log(self.daemon.err_path)
            self.logs.append(self.log)
            self.pids.append(self.daemon.pid)
        if self.is_down:
            self.is_down.end()
            self.is_down = None

    @property
    def main(self):
        """The process that serves; None: none."""
        with self.lock:
            pid = self.daemon.main_pid
            if alive(pid) and pid not in self.killed:
                return pid
            serving = [p for p in self.alive() if not self.said(rf"\[{p}\] .*has replaced this one")
                       and (p == self.daemon.pid or self.said(rf"\[{p}\] .*upgrade: took over"))]
            return serving[-1] if serving else None

    def alive(self):
        with self.lock:
            return [pid for pid in self.pids if pid not in self.killed and alive(pid)]

    def said(self, pattern):
        """Did any process ever say that?"""
        return any(re.search(pattern, line) for log in self.logs for line in log.lines)

    def mark(self):
        with self.lock:
            return len(self.log.lines)

    def wait_said(self, pattern, since, within_s=20):
        """The line; None: not in time."""
        end = time.monotonic() + within_s * self.t.scale
        log = self.log
        while time.monotonic() < end and log is self.log:
            with self.lock:
                fresh, since = log.lines[since:], len(log.lines)
            for line in fresh:
                if re.search(pattern, line):
                    return line
            time.sleep(0.02)
        return None

    def tick(self):
        """Read what is said, and see who has ended."""
        with self.lock:
            with contextlib.suppress(DaemonError):
                self.daemon.has_notified("")
            before = [len(log.lines) for log in self.logs]
            for line in (line for n, log in zip(before, self.logs) for line in log.poll()[n:]):
                if REPORT.search(line):
                    self.fail(None, line)
                if found := re.search(r"upgrade: started .* as process (\d+)", line):
                    self.pids.append(int(found[1]))
            self._reap()

    def _reap(self):
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            if found.si_pid == self.daemon.process.pid:
                self.daemon.process.poll()
            else:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(found.si_pid, 0)
            self._ended(found)

    def _ended(self, found):
        pid, status = found.si_pid, found.si_status
        self.ended[pid] = status
        is_expected = pid in self.killed if found.si_code != os.CLD_EXITED else (
            status == 0 or status in (1, 3) and time.monotonic() < self.may_fail)
        if found.si_code != os.CLD_EXITED and status == signal.SIGKILL and not self.said(rf"\[{pid}\] .*took over"):
            is_expected = True  # the process between: see DESIGN.md
        if not is_expected:
            how = "status" if found.si_code == os.CLD_EXITED else "signal"
            self.fail(None, f"process {pid} ended with {how} {status}")
        elif status == 0 and found.si_code == os.CLD_EXITED and pid in self.pids and not self.at_end \
                and not self.said(rf"\[{pid}\] .*has replaced this one"):
            self.fail(None, f"process {pid} has ended, and it has not been replaced")

    def kill(self, pid, why):
        """kill -9: all its connections end."""
        with self.lock:
            self.killed.add(pid)
            self.excuses.once(f"kill -9 of {pid}: {why}", "refused reset cut")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while alive(pid):
            time.sleep(0.005)

    def recover(self):
        """Wait until a process serves; start one if none is left."""
        end = time.monotonic() + 20 * self.t.scale
        self.is_down = self.excuses.begin("no process serves", "refused wait")
        time.sleep(0.3 * self.t.scale)  # until those that are left have said what they are
        self.tick()
        while not self.main:
            if not self.alive() or self.killed.issuperset(self.serving_since_start()):
                time.sleep(0.1)
                self.start()
                return "started again"
            if time.monotonic() > end:
                self.fail(None, f"of {self.alive()} none becomes the main process")
                return "none serves"
            time.sleep(0.02)
        self.is_down.end()
        self.is_down = None
        return f"{self.main} serves"

    def serving_since_start(self):
        """The processes that do not drain, also those that were killed."""
        with self.lock:
            return {p for p in self.pids if (alive(p) or p in self.killed)
                    and not self.said(rf"\[{p}\] .*has replaced this one")}

    def limit(self, what, soft):
        """RLIMIT of all processes; None: none."""
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                hard = resource.prlimit(pid, what)[1]
                resource.prlimit(pid, what, (hard if soft is None else soft, hard))

    def describe(self):
        return "\n".join(line for log in self.logs for line in log.lines[-60:])
