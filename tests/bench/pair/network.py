"""network: a client, a server and two nodes, each a network namespace, on one bridge."""

import ctypes
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

from runner.process import BenchError

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
HOSTS = {"client": "10.77.0.8", "server": "10.77.0.9", "one": "10.77.0.1", "two": "10.77.0.2"}
NODES = ("one", "two")
VIP = "10.77.0.100"

_libc = ctypes.CDLL(None, use_errno=True)


def run(*words, text=None):
    """Run a command that must not fail; what it prints."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _mount(source, target, kind, flags):
    if _libc.mount(os.fsencode(source), os.fsencode(target), kind, flags, None) < 0:
        raise BenchError(f"{target}: cannot mount: {os.strerror(ctypes.get_errno())}")


def inside(host, *words):
    """The command that runs these words on that host."""
    return ["ip", "netns", "exec", host, *words]


def _add(host, address):
    run("ip", "netns", "add", host)
    run("ip", "link", "add", f"to-{host}", "type", "veth", "peer", "name", "eth0", "netns", host)
    run("ip", "link", "set", f"to-{host}", "master", "lan", "up")
    for words in (["link", "set", "lo", "up"], ["address", "add", f"{address}/24", "dev", "eth0"],
                  ["link", "set", "eth0", "up"]):
        run("ip", "-n", host, *words)
    for name, value in {"ip_local_port_range": "10000 65000", "tcp_tw_reuse": "1",
                        "conf.all.arp_ignore": "1", "conf.all.arp_announce": "2"}.items():
        run(*inside(host, "sysctl", "-qw", f"net.ipv4.{name}={value}"))


def enter(roots):
    """
    Leave the network and the mounts of the machine for our own, for good. ${roots}: directories
    that programs take for /, where they need /dev and /proc.
    """
    if _libc.unshare(CLONE_NEWNET | CLONE_NEWNS) < 0:
        raise PermissionError(ctypes.get_errno(), "a network of its own needs root")
    _mount("none", "/", None, MS_REC | MS_PRIVATE)
    Path("/run/netns").mkdir(exist_ok=True)
    _mount("none", "/run/netns", b"tmpfs", 0)
    for root in roots:
        for name in ("dev", "proc"):
            _mount(f"/{name}", f"{root}/{name}", None, MS_BIND | MS_REC)
    run("ip", "link", "add", "lan", "type", "bridge", "forward_delay", "0")
    run("ip", "link", "set", "lan", "up")


@contextmanager
def hosts():
    """The hosts, new, for the time of the block."""
    for host, address in HOSTS.items():
        _add(host, address)
    try:
        yield
    finally:
        for host in HOSTS:
            run("ip", "link", "del", f"to-{host}")
            run("ip", "netns", "del", host)


def has_vip(node):
    """Has the node the address of the pair on its network?"""
    return f" {VIP}/" in run("ip", "-n", node, "-4", "-o", "address", "show", "dev", "eth0")


def unplug(node):
    """Pull the cable of the node."""
    run("ip", "link", "set", f"to-{node}", "down")
