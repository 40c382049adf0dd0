"""network: one of our own, where every port is ours and an address can be made unreachable."""

import ctypes
import subprocess
from pathlib import Path

from runner.process import BenchError

CLONE_NEWNET = 0x40000000
SUBNET = "10.77.0"
SETTINGS = {
    # A proxy uses up a port for each connection, and the far end may keep it for a minute.
    "net/ipv4/ip_local_port_range": "10000 65000",
    "net/ipv4/tcp_tw_reuse": "1",
}


def _ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def enter():
    """
    Leave the network of the machine for an empty one, for good; children are in it, too. What goes
    to an address of the subnet that is not there is swallowed: the route leads it to lo, where
    nobody takes it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) < 0:
        raise PermissionError(ctypes.get_errno(), "a network of its own needs root")
    for name, value in SETTINGS.items():
        (Path("/proc/sys") / name).write_text(value, encoding="ascii")
    _ip("link", "set", "lo", "up")
    _ip("address", "add", f"{SUBNET}.254/32", "dev", "lo")
    _ip("route", "add", f"{SUBNET}.0/24", "dev", "lo", "src", f"{SUBNET}.254")


def show(address):
    """Make ${address} one of this host, if it is not."""
    _ip("address", "replace", f"{address}/32", "dev", "lo")


def hide(address):
    """Have all that goes to ${address}, and comes from it, swallowed; its sockets know nothing."""
    _ip("address", "del", f"{address}/32", "dev", "lo")
