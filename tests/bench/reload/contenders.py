"""contenders: what is reloaded and upgraded, and how each is told."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from control import UnixConnection
from runner.contender import CONF, fill_in
from runner.process import READY_LIMIT_S, BenchError

STOP_S = 10


class Reloaded:
    """A server that is running for the time of the block, with the processes that come of it."""

    template = None
    has_counters = True

    def __init__(self, command):
        self.words = shlex.split(str(command)) if command else []
        chrooted = self.words and Path(self.words[0]).name == "chroot"
        self.root = Path(self.words[1]).resolve() if chrooted else Path("/")
        self.directory = None
        self.inside = None
        self.child = None

    def why_missing(self):
        """Why this contender cannot run, or None."""
        if not self.words:
            return "not given"
        program = str(self.root / self.words[-1].lstrip("/"))
        return None if os.path.exists(program) or shutil.which(program) else f"no {program}"

    def __enter__(self):
        self.directory = Path(tempfile.mkdtemp(prefix="reactord-bench-", dir=self.root / "tmp"))
        self.inside = "/" / self.directory.relative_to(self.root)
        return self

    def __exit__(self, *_):
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.pids():
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            end = time.monotonic() + STOP_S
            while self.pids() and time.monotonic() < end:
                self.child.poll()
                time.sleep(0.05)
        self.child.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def write(self, values):
        """Write the configuration of these values."""
        text = (CONF / self.template).read_text(encoding="utf-8")
        (self.directory / "conf").write_text(
            fill_in(text, {**values, "DIRECTORY": self.inside}), encoding="utf-8")

    def start(self, port):
        """Start it, and return when that port answers."""
        with open(self.directory / "log", "wb") as log:
            self.child = subprocess.Popen(self.words + self.arguments(), stdout=log, stderr=log,
                                          stdin=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + READY_LIMIT_S
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise BenchError(f"{self.words[0]} does not listen:\n{self.log()}")

    def log(self):
        """What it has written."""
        return (self.directory / "log").read_text(encoding="utf-8", errors="replace")

    def pids(self):
        """Its processes: those with its configuration on their command line, and their children."""
        mine, parents = set(), {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if f"{self.inside}/conf".encode() in (path / "cmdline").read_bytes():
                    mine.add(int(path.name))
                stat = (path / "stat").read_text(encoding="ascii", errors="replace")
                parents[int(path.name)] = int(stat.rpartition(")")[2].split()[1])
            except OSError:
                continue
        return mine | {pid for pid, parent in parents.items() if parent in mine}

    def arguments(self):
        """Behind the program."""
        raise NotImplementedError

    def reload(self):
        """Tell it to read its configuration again."""
        raise NotImplementedError

    def resize(self, values):
        """Use another number of workers: by a reload, unless there is another way."""
        self.write(values)
        self.reload()

    def upgrade(self):
        """Tell it to replace its program; False: it refuses."""
        raise NotImplementedError

    def counters(self):
        """What must never fall, by name."""
        return {}


class Reactord(Reloaded):
    """Ours."""

    template = "reload-reactord.ini.in"

    def arguments(self):
        return ["-c", f"{self.inside}/conf"]

    def newest(self):
        """The process that accepts."""
        def began(pid):
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
            return int(stat.rpartition(")")[2].split()[19]), pid
        return max(self.pids(), key=began)

    def reload(self):
        os.kill(self.newest(), signal.SIGHUP)

    def resize(self, values):
        connection = UnixConnection(str(self.directory / "admin.sock"))
        connection.request("POST", "/v1/set", json.dumps({"workers": values["THREADS"]}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise BenchError(f"no {values['THREADS']} workers: {answer.read().decode()}")
        connection.close()

    def upgrade(self):
        os.kill(self.newest(), signal.SIGUSR2)
        return True

    def counters(self):
        before = self.log().count(" stats end\n")
        os.kill(self.newest(), signal.SIGRTMIN)
        end = time.monotonic() + STOP_S
        while self.log().count(" stats end\n") == before:
            if time.monotonic() > end:
                raise BenchError("no statistics")
            time.sleep(0.01)
        found = {}
        lines = self.log().rpartition(" stats end\n")[0].rpartition(" from pid ")[2]
        for kind, name, rest in re.findall(r" stats (listen|upstream|server) (\S+) (.*)", lines):
            for key, value in re.findall(r"\b(sessions_total|bytes_in|bytes_out|connects)=(\d+)", rest):
                found[f"{kind} {name} {key}"] = int(value)
        return found


class Haproxy(Reloaded):
    """HAProxy with a master, which hands its listeners over."""

    template = "reload-haproxy.cfg.in"

    def arguments(self):
        return ["-W", "-q", "-f", f"{self.inside}/conf"]

    def reload(self):
        os.kill(self.child.pid, signal.SIGUSR2)
        return True

    upgrade = reload  # the master executes its program anew, whichever it is

    def counters(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(STOP_S)
            s.connect(str(self.directory / "stats"))
            s.sendall(b"show stat\n")
            text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        rows = [line.split(",") for line in text.splitlines() if line]
        head = rows[0]
        head[0] = head[0].lstrip("# ")
        return {f"{row[0]} {row[1]} {key}": int(row[head.index(key)] or 0)
                for row in rows[1:] for key in ("stot", "bin", "bout")}


class Nginx(Reloaded):
    """nginx, whose stream module counts nothing."""

    template = "reload-nginx.conf.in"
    has_counters = False

    def arguments(self):
        return ["-e", "stderr", "-c", f"{self.inside}/conf"]

    def master(self):
        """The process that wrote the pid file; 0 while an upgrade writes it anew."""
        try:
            return int((self.directory / "nginx.pid").read_text(encoding="ascii") or 0)
        except FileNotFoundError:
            return 0

    def running(self):
        """The master, waited for."""
        end = time.monotonic() + STOP_S
        while self.master() == 0:
            if time.monotonic() > end:
                raise BenchError("nginx writes no pid file")
            time.sleep(0.02)
        return self.master()

    def reload(self):
        os.kill(self.running(), signal.SIGHUP)

    def upgrade(self):
        """USR2, and QUIT to the old master once the new one has written its pid."""
        old = self.running()
        os.kill(old, signal.SIGUSR2)
        end = time.monotonic() + STOP_S
        while self.master() in (0, old):
            if time.monotonic() > end or "binary signal is ignored" in self.log():
                return False  # not while an older one drains
            time.sleep(0.02)
        time.sleep(0.3)  # its workers
        os.kill(old, signal.SIGQUIT)
        return True


def all_contenders(options):
    """By name."""
    return {"reactord": Reactord(options.reactord), "haproxy": Haproxy(options.haproxy),
            "haproxy3": Haproxy(options.haproxy3), "nginx": Nginx(options.nginx)}
