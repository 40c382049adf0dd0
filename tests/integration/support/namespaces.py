"""namespaces: network namespaces with names, as `ip netns add` makes them, which only this test sees."""

import contextlib
import os

from support.mounts import bind, own_mounts, unmount
from support.network import Network
from support.own_network import own_network

DIRECTORY = "/run/netns"


class Namespace(Network):
    """A network namespace with a loopback interface and nothing else."""

    def __init__(self, name):
        self.name, self.path = name, f"{DIRECTORY}/{name}"
        super().__init__()

    def _link_up(self):
        super()._link_up()
        with open(self.path, "x", encoding="ascii"):
            pass
        bind("/proc/thread-self/ns/net", self.path)

    def remove(self):
        """As `ip netns delete`: it lives on for who has it open."""
        unmount(self.path)
        os.unlink(self.path)
        self.close()


@contextlib.contextmanager
def namespaces(t, *names):
    """Namespaces of these names beside a network of the test's own, until the end of the block."""
    own_network()
    own_mounts()
    directory = t.path("run")
    os.makedirs(f"{directory}/netns")
    bind(directory, "/run")
    yield [Namespace(name) for name in names]
