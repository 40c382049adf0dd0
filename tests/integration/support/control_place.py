"""control_place: a daemon whose servers and sessions are controlled at run time."""

import contextlib
import select

from support import net
from support.admin import get, post, section
from support.case import check_equal
from support.health import greeted
from support.server import Counted
from support.upstreams import config


class Place:
    """A proxy to echo servers a, b ... with an admin interface, and an echo listener."""

    def __init__(self, t, names="ab", options="", more=""):
        self.t, self.front, self.echo = t, t.address(), t.address()
        self.admin = t.path("admin.sock")
        self.servers = {name: Counted(t.address(), greets=True) for name in names}
        self.options, self.more = options, more
        self.stack = contextlib.ExitStack()

    def config(self, lines=None, options=None, more=None):
        lines = lines or {name: server.address for name, server in self.servers.items()}
        return ("[reactord]\nlog_level = notice\ndrain_timeout = 500ms\n[worker]\nthreads = 2\n"
                + section(self.admin) + f"[listen echo]\naddress = {self.echo}\nservice = echo\n"
                + (self.more if more is None else more)
                + config(self.front, lines, self.options if options is None else options))

    def __enter__(self):
        for server in self.servers.values():
            self.stack.enter_context(server)
        self.daemon = self.stack.enter_context(self.t.daemon(self.config()))
        return self

    def __exit__(self, *error):
        return self.stack.__exit__(*error)

    def client(self, address=None):
        """A client; one of the proxy has heard from its server."""
        s = self.stack.enter_context(net.connect(address or self.front))
        if not address:
            greeted(s)
        else:
            net.exchange(s, b"x")
        return s

    def clients(self, n, address=None):
        return [self.client(address) for _ in range(n)]

    def sessions(self, query="", status=200):
        answer = get(self.admin, f"/v1/sessions{query}")
        check_equal(answer.status, status, f"the status of {query}: {answer.body}")
        return answer.json

    def matched(self, query):
        return self.sessions(query)["matched"]

    def act(self, path, status=200, **body):
        answer = post(self.admin, path, body)
        check_equal(answer.status, status, f"the status of {path} {body}: {answer.body}")
        return answer.json

    def served(self, n):
        """Which servers n further clients got."""
        before = {name: server.total for name, server in self.servers.items()}
        for _ in range(n):
            with net.connect(self.front) as s:
                greeted(s)
        return {name: server.total - before[name] for name, server in self.servers.items()}


def is_alive(client):
    return net.exchange(client, b"x") == b"x"


def has_ended(s):
    if not select.select([s], [], [], 0)[0]:
        return False
    try:
        return s.recv(1) == b""
    except OSError:
        return True
