"""server: an nginx behind the proxies, in one process, that can fail in three ways."""

import os
import signal
import time
from dataclasses import dataclass

from failover import network
from runner.contender import CONF, LOAD_CPU, fill_in
from runner.process import Process

SERVER_PORT = 8080
CHECK_PORT = 8081
READY_PORT = 9000  # plus the server's number
NAMES = "abc"

# The clients of failover/clients.c know this text.
TEXT = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+\n"
FILES = {"small": 1024, "large": 100 * 1024}


@dataclass(frozen=True)
class Outage:
    """A server that failed between began and complete, and was healed from ends to over."""

    means: str
    server: int
    began_ns: int
    complete_ns: int
    ends_ns: int
    over_ns: int


def write_files(directory):
    """What the servers serve."""
    for name, size in FILES.items():
        (directory / name).write_bytes((TEXT * (size // len(TEXT) + 1))[:size])


class Server:
    """A server, running for the time of the block."""

    def __init__(self, number, nginx, files):
        self.number = number
        self.nginx = nginx
        self.address = f"{network.SUBNET}.{number + 1}"
        self.directory = files / NAMES[number]
        self.directory.mkdir()
        self.process = None
        values = {"ADDRESS": self.address, "SERVER_PORT": SERVER_PORT, "CHECK_PORT": CHECK_PORT,
                  "READY_PORT": READY_PORT + number, "NAME": NAMES[number], "FILES": files,
                  "DIRECTORY": self.directory}
        text = (CONF / "failover-backend.conf.in").read_text(encoding="utf-8")
        (self.directory / "conf").write_text(fill_in(text, values), encoding="utf-8")

    def __enter__(self):
        network.show(self.address)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.child.send_signal(signal.SIGCONT)  # what is stopped cannot end
            self.process.stop()

    def _start(self):
        self.process = Process([self.nginx, "-e", "stderr", "-c", str(self.directory / "conf")],
                               LOAD_CPU)
        self.process.wait_until_listening(READY_PORT + self.number)

    def _kill(self):
        self.process.child.kill()
        self.process.child.wait()

    def _stop(self):
        self.process.child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.child.pid, os.WSTOPPED)

    def fail(self, means, until_s):
        """Fail by these means until time.monotonic() is ${until_s}; how it went."""
        begin, end = {
            "kill": (self._kill, self._start),
            "hang": (self._stop, lambda: self.process.child.send_signal(signal.SIGCONT)),
            "unreachable": (lambda: network.hide(self.address),
                            lambda: network.show(self.address)),
        }[means]
        began_ns = time.monotonic_ns()
        begin()
        complete_ns = time.monotonic_ns()
        time.sleep(max(0.0, until_s - time.monotonic()))
        ends_ns = time.monotonic_ns()
        end()
        return Outage(means, self.number, began_ns, complete_ns, ends_ns, time.monotonic_ns())
