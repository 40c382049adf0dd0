"""admin_place: a daemon with an admin interface."""

import os

from support import net
from support.admin import get, post, section
from support.chain import echo

TOKEN = "b4d2b0d5a6b84f0c9b5e"


class Place:
    """The addresses of a daemon with an echo and an admin interface."""

    def __init__(self, t, kind="unix", more=""):
        self.t, self.front = t, t.address()
        self.kind = kind
        self.token = None if kind == "unix" else TOKEN
        port = t.port()
        self.address = {"unix": t.path("admin.sock"), "TCP": f"127.0.0.1:{port}",
                        "IPv6": f"[::1]:{port}"}[kind]
        self.host = "localhost" if kind == "unix" else self.address
        if self.token:
            path = t.write("token", TOKEN + "\n")
            os.chmod(path, 0o600)
            more += f"token_file = {path}\n"
        self.config = section(self.address, more) + echo(self.front)

    def daemon(self, config=None, **how):
        return self.t.daemon(config or self.config, **how)

    def get(self, path, **how):
        return get(self.address, path, **{"token": self.token, "host": self.host} | how)

    def post(self, path, body=None, **how):
        return post(self.address, path, body, **{"token": self.token, "host": self.host} | how)

    def connect(self, **how):
        return net.connect(self.address, **how)

    def head(self):
        """A request up to its last header field."""
        token = f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        return f"GET /v1/status HTTP/1.1\r\nHost: {self.host}\r\n{token}".encode()


KINDS = {"kind": ["unix", "TCP", "IPv6"]}
