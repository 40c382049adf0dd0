"""child: a program on any CPU that is spoken to by lines and surely ends."""

import ctypes
import resource
import selectors
import signal
import subprocess
import time

from runner.process import BenchError, Process

PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None)


def _setup(descriptors):
    """What the child does before exec: its limit of descriptors, and dying with the runner."""
    def setup():
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    return setup


class Child(Process):
    """
    A Process that may use all CPUs. It reads commands, answers each with a line, and ends with its
    input: by itself within STOP_S, or else by a signal.
    """

    STOP_S = 2

    def __init__(self, command, descriptors=None, stderr=None):
        # Not Process.__init__(), which binds the child to one CPU.
        self.command = command
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=stderr, bufsize=0, preexec_fn=_setup(descriptors))
        self._buffer = b""

    def stop(self):
        """End it, whatever it is at."""
        self.child.stdin.close()
        try:
            self.child.wait(self.STOP_S)
        except subprocess.TimeoutExpired:
            super().stop()
        self.child.stdout.close()

    def tell(self, line):
        """Send a command."""
        try:
            self.child.stdin.write(line.encode() + b"\n")
        except BrokenPipeError as error:
            raise BenchError(f"{self.command[0]} has ended") from error

    def hear(self, limit_s):
        """The next line; None when it does not come within ${limit_s}."""
        end = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0, end - time.monotonic())):
                    return None
                piece = self.child.stdout.read(4096)
                if not piece:
                    raise BenchError(f"{self.command[0]} ended with {self.child.wait()}")
                self._buffer += piece
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line.decode()

    def ask(self, line, limit_s):
        """Send a command and wait for its answer."""
        self.tell(line)
        return self.hear(limit_s)
