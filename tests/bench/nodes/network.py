"""network: namespaces for a router, a client, a server and nodes, and the router's routes to the nodes.

    client -- router ==(multipath route to the VIP)==> nodes, each with the VIP on lo
                       nodes -- server, on the same bridge

This process is in the namespace of the router. All of it ends with this process.
"""

from pathlib import Path

from runner.namespaces import add_host, enter_network, ip

VIP, PORT = "10.99.0.1", 7007
SERVER, SERVER_PORT = "10.2.0.200", 9000
ROUTER_TO_NODES, ROUTER_TO_CLIENT, CLIENT = "10.2.0.254", "10.3.0.254", "10.3.0.1"
GROUP, TWIN, BUCKETS, IDLE_S = 1000, 2000, 1024, 1


def address_of(node):
    """The address of node 1, 2 ..."""
    return f"10.2.0.{node}"


class Network:
    """The whole network, with so many nodes, all with a route."""

    def __init__(self, nodes, hops):
        enter_network()
        self.hops, self.routed = hops, []
        self.all = list(range(1, nodes + 1))
        ip("link", "set", "lo", "up")
        self._set("net/ipv4/ip_forward", 1)
        self._set("net/ipv4/fib_multipath_hash_policy", 1)  # by addresses and ports
        ip("link", "add", "nodes", "type", "bridge")
        ip("address", "add", f"{ROUTER_TO_NODES}/24", "dev", "nodes")
        ip("link", "set", "nodes", "up")
        self._add("client", CLIENT, ROUTER_TO_CLIENT)
        ip("address", "add", f"{ROUTER_TO_CLIENT}/24", "dev", "to-client")
        self._add("server", SERVER, ROUTER_TO_NODES, "nodes")
        for node in self.all:
            self._add(f"node{node}", address_of(node), ROUTER_TO_NODES, "nodes")
            ip("-n", f"node{node}", "address", "add", f"{VIP}/32", "dev", "lo")
            if hops == "resilient":
                for number in (node, TWIN + node):
                    ip("nexthop", "add", "id", str(number), "via", address_of(node), "dev", "nodes")
        self.route(self.all)

    @staticmethod
    def _set(name, value):
        (Path("/proc/sys") / name).write_text(str(value), encoding="ascii")

    @staticmethod
    def _add(host, address, gateway, bridge=None):
        add_host(host, address, bridge)
        ip("-n", host, "route", "add", "default", "via", gateway)

    def route(self, nodes):
        """From now on the router sends connections to these nodes."""
        if self.hops == "resilient":
            # Of a group with one next hop the kernel does not note which buckets are in use: when a second one
            # comes, half of all flows would move. So each node has two.
            group = [number for node in nodes for number in (node, TWIN + node)]
            ip("nexthop", "replace", "id", str(GROUP), "group", "/".join(map(str, group)), "type", "resilient",
               "buckets", str(BUCKETS), "idle_timer", str(IDLE_S), "unbalanced_timer", "0")
            if not self.routed:
                ip("route", "add", f"{VIP}/32", "nhid", str(GROUP))
        else:
            ip("route", "replace", f"{VIP}/32",
               *(word for node in nodes for word in ("nexthop", "via", address_of(node), "dev", "nodes")))
        self.routed = list(nodes)

    def withdraw(self, node):
        """The router forgets that node."""
        self.route([other for other in self.routed if other != node])

    def announce(self, node):
        """The router knows it again."""
        self.route(sorted([*self.routed, node]))
