"""network: one of our own, where every port is ours and an address can be made unreachable."""

from pathlib import Path

from runner.namespaces import CLONE_NEWNET, ip, new_namespaces

SUBNET = "10.77.0"
SETTINGS = {
    # A proxy uses up a port for each connection, and the far end may keep it for a minute.
    "net/ipv4/ip_local_port_range": "10000 65000",
    "net/ipv4/tcp_tw_reuse": "1",
}


def enter():
    """
    Leave the network of the machine for an empty one, for good; children are in it, too. What goes
    to an address of the subnet that is not there is swallowed: the route leads it to lo, where
    nobody takes it.
    """
    new_namespaces(CLONE_NEWNET)
    for name, value in SETTINGS.items():
        (Path("/proc/sys") / name).write_text(value, encoding="ascii")
    ip("link", "set", "lo", "up")
    ip("address", "add", f"{SUBNET}.254/32", "dev", "lo")
    ip("route", "add", f"{SUBNET}.0/24", "dev", "lo", "src", f"{SUBNET}.254")


def show(address):
    """Make ${address} one of this host, if it is not."""
    ip("address", "replace", f"{address}/32", "dev", "lo")


def hide(address):
    """Have all that goes to ${address}, and comes from it, swallowed; its sockets know nothing."""
    ip("address", "del", f"{address}/32", "dev", "lo")
