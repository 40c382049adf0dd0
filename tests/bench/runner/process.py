"""process: a child on one CPU that surely ends, and a free port for it."""

import ctypes
import os
import signal
import socket
import subprocess
import time

STOP_LIMIT_S = 5
READY_LIMIT_S = 10
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None)


class BenchError(Exception):
    """A run that went wrong: the message is for the user."""


def free_port():
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_file(path):
    """Wait until a child has made the file."""
    end = time.monotonic() + READY_LIMIT_S
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise BenchError(f"{path} does not come")
        time.sleep(0.01)


def come_first(cpu):
    """This process runs on that CPU from now on, before all others there (root)."""
    os.sched_setaffinity(0, {cpu})
    if os.geteuid() == 0:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def _child_setup(cpu, is_first):
    """What the child does before exec: its CPU (threads inherit it), and dying with the runner."""
    def setup():
        if is_first:
            come_first(cpu)
        os.sched_setaffinity(0, {cpu})
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    return setup


class Process:
    """
    A running child; a context manager, so that every way out of the block ends it. With
    ${is_first} it runs before all others on its CPU (root only).
    """

    def __init__(self, command, cpu, is_first=False, **popen):
        self.command = command
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                      preexec_fn=_child_setup(cpu, is_first),
                                      **popen)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """SIGTERM, and SIGKILL to what has not ended some seconds later."""
        if self.child.poll() is None:
            self.child.terminate()
        try:
            self.child.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def wait_until_listening(self, port):
        """Return when ${port} takes connections."""
        end = time.monotonic() + READY_LIMIT_S
        while time.monotonic() < end:
            if self.child.poll() is not None:
                raise BenchError(f"{self.command[0]} ended with {self.child.returncode}")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise BenchError(f"{self.command[0]} does not listen on port {port}")

    def worker_pid(self):
        """
        The only child, once there is one. A master listens before it forks, and its own CPU time
        would be taken for the server's: so nobody may ask for it before the worker is there.
        """
        pid = self.child.pid
        end = time.monotonic() + READY_LIMIT_S
        while time.monotonic() < end:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
                children = [int(word) for word in f.read().split()]
            if len(children) == 1:
                return children[0]
            time.sleep(0.02)
        raise BenchError(f"{self.command[0]} has {len(children)} children, not one")
