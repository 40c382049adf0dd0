"""network: another host beside a network of the test's own, which can fall silent."""

import contextlib
import ctypes
import fcntl
import os
import select
import socket
import struct
import subprocess
import threading
import time

from support import descriptors
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


class Network:
    """A network beside the one that this process is in, which is its own. A socket stays in the network it was
    made in."""

    def __init__(self):
        self._here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        if _libc.unshare(CLONE_NEWNET):
            raise Skipped(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        self._there = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._link_up()
        finally:
            self._enter(self._here)

    def _link_up(self):
        ip("link", "set", "lo", "up")

    @staticmethod
    def _enter(namespace):
        if _libc.setns(namespace, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")

    @contextlib.contextmanager
    def there(self):
        """In the other network, for as long as the block."""
        self._enter(self._there)
        try:
            yield
        finally:
            self._enter(self._here)

    def close(self):
        os.close(self._here)
        os.close(self._there)


class Host(Network):
    """Another host, linked to the network that this process is in."""

    def __init__(self):
        super().__init__()
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

    def fall_silent(self):
        """From now on the other host hears, and says nothing."""
        with self.there():
            for address in HERE:
                family = "-6" if ":" in address else "-4"
                ip(family, "route", "add", "blackhole", address)


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
    for number, link in descriptors.of_process(daemon.pid).items():
        if not link.startswith("socket:"):
            continue
        with contextlib.suppress(OSError):
            try:
                copy = _stolen(daemon.pid, number)
            except PermissionError:
                raise Skipped("no look into the daemon's descriptors here") from None
            with socket.socket(fileno=copy) as s:
                if s.getpeername() == peer:
                    return s.getsockopt(level, option)
    raise Failed(f"the daemon has no socket connected to {peer}")


TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 0x0001, 0x1000  # linux/if_tun.h
NEAR, FAR = "10.8.0.1", "10.8.0.2"


def _tunnel(name, address):
    """A network device of this network whose packets are read and written here."""
    try:
        tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH14x", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError as error:
        raise Skipped(f"no tunnel device: {error}") from None
    ip("address", "add", address + "/24", "dev", name)
    ip("link", "set", name, "up")
    return tunnel


class FarHost(Host):
    """Another host as `Host` is, at the other end of a slow link: what one side sends reaches the other
    after delay_s, as far as this process gets to it."""

    def __init__(self, delay_s):
        self._delay_s = delay_s
        self._near = _tunnel("near", NEAR)
        super().__init__()
        with self.there():
            self._far = _tunnel("far", FAR)
        threading.Thread(target=self._carry, daemon=True).start()

    def _carry(self):
        other, waiting = {self._near: self._far, self._far: self._near}, []
        while True:
            left_s = waiting[0][0] - time.monotonic() if waiting else None
            for tunnel in select.select(list(other), [], [], left_s and max(left_s, 0))[0]:
                packet = os.read(tunnel, 65536)
                waiting.append((time.monotonic() + self._delay_s, other[tunnel], packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, tunnel, packet = waiting.pop(0)
                os.write(tunnel, packet)
