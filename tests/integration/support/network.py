"""network: another host beside a network of the test's own, which can fall silent."""

import contextlib
import ctypes
import os
import socket
import subprocess

from support.case import Failed, Skipped

CLONE_NEWNET = 0x40000000  # sched.h
HERE = ("10.7.0.1", "fd07::1", "2001:db8:7::1")
THERE = ("10.7.0.2", "fd07::2", "2001:db8:7::2")
# Nobody has these; what is sent there arrives at the other host, which drops it without a word.
NOBODY = ("10.7.0.9", "fd07::9", "2001:db8:7::9")
HARDWARE = "02:00:00:00:00:02"

_libc = ctypes.CDLL(None, use_errno=True)


def ip(*words):
    """ip(8), in the network that this process is in."""
    done = subprocess.run(["ip", *words], capture_output=True, timeout=20, check=False)
    if done.returncode:
        raise Failed(f"ip {' '.join(words)}: {done.stderr.decode(errors='replace')}")


def _prefixed(address):
    return address + ("/64" if ":" in address else "/24")


class Host:
    """Another host, linked to the network that this process is in, which is its own. A socket stays
    in the network it was made in."""

    def __init__(self):
        self._here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if _libc.unshare(CLONE_NEWNET):
            raise Skipped(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        self._there = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._link_up()
        finally:
            self._enter(self._here)
        ip("link", "set", "here", "up")
        for address in HERE:
            ip("address", "add", _prefixed(address), "dev", "here", *self._nodad(address))
        for address in NOBODY:
            ip("neighbour", "add", address, "lladdr", HARDWARE, "dev", "here")

    def _link_up(self):
        ip("link", "add", "there", "address", HARDWARE, "type", "veth", "peer", "name", "here", "netns",
           f"/proc/{os.getpid()}/fd/{self._here}")
        ip("link", "set", "there", "up")
        for address in THERE:
            ip("address", "add", _prefixed(address), "dev", "there", *self._nodad(address))

    @staticmethod
    def _nodad(address):
        return ("nodad",) if ":" in address else ()

    @staticmethod
    def _enter(namespace):
        if _libc.setns(namespace, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    @contextlib.contextmanager
    def there(self):
        """On the other host, for as long as the block."""
        self._enter(self._there)
        try:
            yield
        finally:
            self._enter(self._here)

    def fall_silent(self):
        """From now on the other host hears, and says nothing."""
        with self.there():
            for address in HERE:
                family = "-6" if ":" in address else "-4"
                ip(family, "route", "add", "blackhole", address)

    def close(self):
        os.close(self._here)
        os.close(self._there)


@contextlib.contextmanager
def other_host():
    """A Host, until the end of the block."""
    host = Host()
    try:
        yield host
    finally:
        host.close()


def _stolen(pid, number):
    """A copy of another process's descriptor, pidfd_getfd(2)."""
    pidfd = os.pidfd_open(pid)
    try:
        fd = _libc.syscall(438, pidfd, number, 0)
        if fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return fd
    finally:
        os.close(pidfd)


def option_of(daemon, peer, level, option):
    """The value of a socket option of the daemon's socket that is connected to ${peer}, as getpeername() of
    that socket says it."""
    for name in os.listdir(f"/proc/{daemon.pid}/fd"):
        with contextlib.suppress(OSError):
            if not os.readlink(f"/proc/{daemon.pid}/fd/{name}").startswith("socket:"):
                continue
            try:
                copy = _stolen(daemon.pid, int(name))
            except PermissionError:
                raise Skipped("no look into the daemon's descriptors here") from None
            with socket.socket(fileno=copy) as s:
                if s.getpeername() == peer:
                    return s.getsockopt(level, option)
    raise Failed(f"the daemon has no socket connected to {peer}")
