"""network: a client, a server and two nodes, each a network namespace, on one bridge."""

from contextlib import contextmanager

from runner.namespaces import add_host, enter_network, inside, ip, run

HOSTS = {"client": "10.77.0.8", "server": "10.77.0.9", "one": "10.77.0.1", "two": "10.77.0.2"}
NODES = ("one", "two")
VIP = "10.77.0.100"
SETTINGS = {"ip_local_port_range": "10000 65000", "tcp_tw_reuse": "1",
            "conf.all.arp_ignore": "1", "conf.all.arp_announce": "2"}


def enter(roots):
    """
    Leave the network and the mounts of the machine for our own, for good. ${roots}: directories
    that programs take for /, where they need /dev and /proc.
    """
    enter_network()
    for root in roots:
        for name in ("dev", "proc"):
            run("mount", "--rbind", f"/{name}", f"{root}/{name}")
    ip("link", "add", "lan", "type", "bridge", "forward_delay", "0")
    ip("link", "set", "lan", "up")


@contextmanager
def hosts():
    """The hosts, new, for the time of the block."""
    for host, address in HOSTS.items():
        add_host(host, address, "lan")
        for name, value in SETTINGS.items():
            run(*inside(host, "sysctl", "-qw", f"net.ipv4.{name}={value}"))
    try:
        yield
    finally:
        for host in HOSTS:
            ip("link", "del", f"to-{host}")
            ip("netns", "del", host)


def has_vip(node):
    """Has the node the address of the pair on its network?"""
    return f" {VIP}/" in ip("-n", node, "-4", "-o", "address", "show", "dev", "eth0")


def unplug(node):
    """Pull the cable of the node."""
    ip("link", "set", f"to-{node}", "down")
