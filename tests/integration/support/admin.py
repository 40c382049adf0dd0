"""admin: a client of the admin interface."""

import http.client
import json
from dataclasses import dataclass

from support import net


@dataclass
class Answer:
    status: int
    headers: dict  # names in lower case
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


def section(address, more=""):
    """Its section; unless ${more} says so, no request is too late on a busy machine."""
    if "request_timeout" not in more:
        more += "\nrequest_timeout = 1m\n"
    return f"[admin]\naddress = {address}\n{more}\n"


def read_answer(s, method="GET"):
    """The next answer on that connection."""
    response = http.client.HTTPResponse(s, method=method)
    response.begin()
    body = response.read()
    return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, body)


def write_request(s, method, path, body=None, headers=None, host="localhost"):
    """Send a request; a body that is not bytes is sent as JSON."""
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    s.sendall("\r\n".join(lines + ["", ""]).encode() + (body or b""))


def request(address, method, path, body=None, token=None, headers=None, host="localhost", limit_s=net.LIMIT_S):
    """One request on a connection of its own."""
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = f"Bearer {token}"
    with net.connect(address, limit_s=limit_s) as s:
        write_request(s, method, path, body, headers, host)
        return read_answer(s, method)


def get(address, path, **how):
    return request(address, "GET", path, **how)


def post(address, path, body=None, **how):
    return request(address, "POST", path, body if body is not None else {}, **how)
