"""own_network: a network and host names of the test's own, and a name server that is silent at first."""

import ctypes
import fcntl
import os
import socket
import struct

from support import net
from support.case import Skipped
from support.mounts import bind, own_mounts

CLONE_NEWNET = 0x40000000  # sched.h
SIOCSIFFLAGS = 0x8914      # netdevice(7)
IFF_UP = 1

# What a name server that does not answer keeps a lookup busy for: 150 s.
SLOW_RESOLVER = "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n"


def own_network(ports="32768 60999"):
    """Put this test's process, and what it starts, in a network of its own with those ephemeral
    ports."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise Skipped(f"no network namespace: {os.strerror(ctypes.get_errno())}")
    with socket.socket() as s:
        request = struct.pack("16sH14x", b"lo", IFF_UP)
        fcntl.ioctl(s, SIOCSIFFLAGS, request)
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w", encoding="ascii") as f:
        f.write(ports)


def own_names(t, source="files", hosts="", servers=""):
    """Have this test's process, and what it starts, look host names up in an /etc/hosts of their
    own ("files"), which t.write("hosts") changes, or ask the name servers of an own
    /etc/resolv.conf ("dns")."""
    own_mounts()
    files = {"nsswitch.conf": f"hosts: {source}\n", "hosts": hosts, "resolv.conf": servers}
    for name, content in files.items():
        bind(t.write(name, content), f"/etc/{name}")


class NameServer:
    """A name server on 127.0.0.1:53, a network of our own, that answers nothing at first, and later
    every name with 127.0.0.1."""

    def __init__(self):
        own_network()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def asked(self):
        """Did anybody ask so far?"""
        try:
            return bool(self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return False

    def speak(self):
        """Answer, what was asked before included."""
        net.Task(self._answer)

    def _answer(self):
        while True:
            query, client = self.socket.recvfrom(512)
            question = query[12:query.index(b"\0", 12) + 5]
            (kind,) = struct.unpack("!H", question[-4:-2])
            # RFC 1035, section 4.1; the name is a pointer to that of the question.
            record = struct.pack("!HHHIH4s", 0xC00C, 1, 1, 60, 4, socket.inet_aton("127.0.0.1"))
            found = [record] if kind == 1 else []
            header = query[:2] + struct.pack("!HHHHH", 0x8180, 1, len(found), 0, 0)
            self.socket.sendto(header + question + b"".join(found), client)
