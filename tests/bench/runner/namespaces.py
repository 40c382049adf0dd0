"""namespaces: a network of our own, and hosts on it, each a network namespace with the interface eth0."""

import ctypes
import os
import subprocess

from runner.process import BenchError

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x00020000, 0x20000000, 0x40000000
NETNS = "/run/netns"

_libc = ctypes.CDLL(None, use_errno=True)


def run(*words, text=None):
    """Run a command that must not fail; what it prints."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def ip(*words):
    """Run ip(8); what it prints."""
    return run("ip", *words)


def new_namespaces(kinds):
    """Leave the machine's namespaces of these kinds for new ones, for good."""
    if _libc.unshare(kinds) < 0:
        raise PermissionError(ctypes.get_errno(), "namespaces of its own need root")


def keep_mounts():
    """From now on what this process mounts is not seen by others; behind new_namespaces()."""
    run("mount", "--make-rprivate", "/")


def enter_network():
    """Leave the network and the mounts of the machine for ones without any host, for good."""
    new_namespaces(CLONE_NEWNS | CLONE_NEWNET)
    keep_mounts()
    os.makedirs(NETNS, exist_ok=True)
    run("mount", "-t", "tmpfs", "tmpfs", NETNS)


def add_host(host, address, bridge=None):
    """A new host; its cable, to-HOST, is on the bridge, or ends here."""
    ip("netns", "add", host)
    ip("link", "add", f"to-{host}", "type", "veth", "peer", "name", "eth0", "netns", host)
    if bridge:
        ip("link", "set", f"to-{host}", "master", bridge)
    ip("link", "set", f"to-{host}", "up")
    for words in (("link", "set", "lo", "up"), ("address", "add", f"{address}/24", "dev", "eth0"),
                  ("link", "set", "eth0", "up")):
        ip("-n", host, *words)


def enter_host(host):
    """This process is on that host from now on."""
    fd = os.open(f"{NETNS}/{host}", os.O_RDONLY | os.O_CLOEXEC)
    if _libc.setns(fd, CLONE_NEWNET) < 0:
        raise BenchError(f"setns: {os.strerror(ctypes.get_errno())}")
    os.close(fd)


def inside(host, *command):
    """The command that runs this one on that host."""
    return ["ip", "netns", "exec", host, *command]
