"""chain: a daemon, and the processes that replace it, one after the other."""

import contextlib
import os
import re
import shutil
import signal

from support import net
from support.case import check, check_equal
from support.daemon import Daemon, alive


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

    def processes(self):
        """All that run the program now."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{name}/exe").startswith(self.program):
                    found.append(int(name))
        return found

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

    def rewrite(self, config):
        """Another configuration, for the next process."""
        self.daemon.config_path.write_text(f"[reactord]\npid_file = {self.pid_path}\n{config}", encoding="utf-8")

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


def has_ended(pid):
    """Is it gone, or a zombie without other threads, which holds no file?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            is_zombie = stat.read().rpartition(")")[2].split()[0] == "Z"
        return is_zombie and len(os.listdir(f"/proc/{pid}/task")) == 1
    except (FileNotFoundError, ProcessLookupError):
        return True
