"""http: requests to the admin interface at a unix socket, by http.client."""

import http.client
import json
import socket


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, limit_s=30):
        super().__init__("localhost", timeout=limit_s)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(path, target):
    """(status, content type, text) of a GET."""
    connection = UnixConnection(path)
    try:
        connection.request("GET", target)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()
    finally:
        connection.close()


def get_json(path, target):
    status, kind, text = get(path, target)
    assert status == 200 and kind == "application/json", f"{target}: {status} {kind} {text[:200]}"
    return json.loads(text)
