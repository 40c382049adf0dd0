"""admin_mock: an admin interface that answers what a test wants, on a unix socket or TCP.

For what a real daemon does not do: cut answers, garbage, hangs, an older version, odd names.
"""

import json
import socket
import threading

from support import net

# A daemon with a little of everything. Functions get the request and return an answer.
STATUS = {"version": "0.1.0", "pid": 4711, "started_at": "2026-11-24T02:59:00Z", "uptime_s": 3723, "state": "serving",
          "sessions": 3, "config_path": "/etc/reactord/reactord.ini",
          "reload": {"state": "idle", "count": 2, "failed": 1, "confirm_in_s": None}, "upgrade": {"old_processes": 0}}
LOOPS = {"loops": [{"name": "wrkr-2-1", "state": "started", "connections": 7, "turns": 1234567, "io_events": 99,
                    "tasks_run": 12, "tasks_pending": 0, "io_ms": 100.0, "task_ms": 20.0, "longest_ms": 1.25,
                    "stalls": 0, "io_ratio": 50, "io_ratio_achieved": 83}]}
LISTENERS = {"listeners": [{"name": "front", "service": "proxy", "upstream": "back", "state": "accepting",
                            "addresses": ["127.0.0.1:7008", "[::1]:7008"], "sessions": 3, "sessions_total": 1000,
                            "bytes_in": 1536, "bytes_out": 52428800}]}
UPSTREAMS = {"upstreams": [{"name": "back", "sessions": 3, "sessions_total": 1000, "bytes_in": 1536,
                            "bytes_out": 52428800, "waiting": 0,
                            "servers": [{"name": "a", "address": "127.0.0.1:6379", "state": "up", "weight": 1,
                                         "sessions": 3, "sessions_total": 900, "bytes_in": 1000, "bytes_out": 4096},
                                        {"name": "b", "address": "127.0.0.1:6380", "state": "down", "weight": 2,
                                         "sessions": 0, "sessions_total": 100, "bytes_in": 536, "bytes_out": 0}]}]}
EVENTS = {"events": [{"id": 1, "lines": 1, "time": "2026-11-24T02:59:00.000Z", "age_s": 65.5, "first_age_s": 65.5,
                      "kind": "process", "level": "notice", "subject": "process", "text": "ready"},
                     {"id": 2, "lines": 7, "time": "2026-11-24T03:01:00.000Z", "age_s": 3.0, "first_age_s": 9.0,
                      "kind": "listener", "level": "warning", "subject": "listen front",
                      "text": "listen front: max_connections is reached: new clients wait"}], "last": 2, "pid": 4711}


def session(number):
    return {"id": f"{number:032x}", "listener": "front", "client": f"192.0.2.1:{number}", "upstream": "back",
            "server": "a", "loop": "wrkr-2-1", "age_s": 65.0, "idle_s": 0.25, "bytes_in": 10, "bytes_out": 20 * number,
            "state": "open"}


class Request:
    """What a client asked."""

    def __init__(self, head, body):
        lines = head.decode("latin-1").split("\r\n")
        self.method, target, _ = lines[0].split(" ")
        self.path, _, self.query = target.partition("?")
        self.headers = {key.lower(): value for key, _, value in (line.partition(": ") for line in lines[1:])}
        self.body = json.loads(body) if body else None

    def arguments(self):
        return dict(pair.split("=", 1) for pair in self.query.split("&") if pair)


def answer(status, content, content_type="application/json", length=None):
    """The bytes of an answer; a length that is not the content's cuts it."""
    body = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else json.dumps(
        content).encode()
    return (f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body) if length is None else length}\r\nConnection: close\r\n\r\n").encode() + body


def error(status, text, **more):
    return answer(status, {"error": text, **more})


class AdminMock:
    """Answers by `routes`: (method, path) -> content, a function of the request, or ready bytes.

    What is no key is answered 404 (405 if there is another method), as reactord does. With `raw`, each
    connection gets these bytes whatever it asks; with `hangs`, nothing."""

    def __init__(self, address, routes=None, raw=None, hangs=False):
        self.address = address
        self.routes = {("GET", "/v1/status"): STATUS, ("GET", "/v1/loops"): LOOPS, ("GET", "/v1/listeners"): LISTENERS,
                       ("GET", "/v1/upstreams"): UPSTREAMS, ("GET", "/v1/events"): EVENTS, **(routes or {})}
        self.raw = raw
        self.hangs = hangs
        self.waiting = False  # a request hangs
        self.requests = []
        self.listener = None
        self.closed = threading.Event()
        self.thread = None

    def __enter__(self):
        self.listener = net.listen(self.address)
        self.listener.settimeout(0.1)
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.closed.set()
        self.thread.join()
        self.listener.close()

    def bodies(self, path):
        """What was posted to that path."""
        return [request.body for request in self.requests if request.path == path and request.method == "POST"]

    def _accept(self):
        while not self.closed.is_set():
            try:
                s, _ = self.listener.accept()
            except socket.timeout:
                continue
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        with s:
            s.settimeout(net.LIMIT_S)
            try:
                request = self._read(s)
                self.requests.append(request)
                if self.hangs:
                    self.waiting = True
                    self.closed.wait()
                    return
                s.sendall(self.raw if self.raw is not None else self._answer(request))
            except OSError:
                pass

    @staticmethod
    def _read(s):
        data = b""
        while b"\r\n\r\n" not in data:
            data += net.read_exactly(s, 1)
        head = data.partition(b"\r\n\r\n")[0]
        length = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: ")]
        return Request(head, net.read_exactly(s, int(length[0].split()[1])) if length else b"")

    def _answer(self, request):
        content = self.routes.get((request.method, request.path))
        if content is None:
            known = any(path == request.path for _, path in self.routes)
            return error(405, "the method here is another") if known else error(404, "there is nothing at this path")
        if callable(content):
            content = content(request)
        return content if isinstance(content, bytes) else answer(200, content)
