"""ctl_real: a real daemon for reactorctl."""

import json

from support import net
from support.case import check_equal
from support.ctl_runs import done

REAL = """
[reactord]
drain_timeout = 1s
[admin]
address = {sock}
[worker]
threads = {threads}
[listen echo]
address = {echo}
service = echo
[listen front]
address = {front}
service = proxy
upstream = back
[upstream back]
server.a = {echo}
server.b = {echo} backup
"""


class Real:
    """A daemon with an echo behind a proxy, and how it is asked."""

    def __init__(self, t):
        self.t = t
        self.address = t.path("admin.sock")
        self.values = {"sock": self.address, "threads": 2, "echo": t.address(), "front": t.address()}
        self.front = self.values["front"]

    def config(self, **changes):
        return REAL.format(**{**self.values, **changes})

    def reload(self):
        return json.loads(done(self.t, self, "status --json"))["reload"]

    def sessions(self, filters="--listener front"):
        return json.loads(done(self.t, self, f"sessions --json {filters}"))["sessions"]

    def client(self):
        """A client that is served."""
        s = net.connect(self.front)
        check_equal(net.exchange(s, b"hello"), b"hello", "echo")
        return s
