"""member: a server of a cluster, and as a program what it runs.

member.py NAME ADDRESS ROLE_FILE [greets | proxied | https | ssh] [CHECK_PORT] [CERTIFICATE]

greets: says its name and the client's address, and keeps the connection. proxied: behind a PROXY header, and the client in
it. https: answers requests, also for its health. ssh: says its name in the line that SSH begins with. With a certificate
all of it is in TLS. At CHECK_PORT it answers in HTTP: 200 if its role is `well`, or is the path without its slash, else 503.
"""

import contextlib
import http.server
import os
import signal
import socket
import socketserver
import ssl
import sys
import threading
from pathlib import Path

LIMIT_S = 30


class Member:
    """A server in a process of its own, which a test kills, pauses, starts again and gives another role."""

    def __init__(self, t, name, address, kind="greets", check_port=None, role="well", certificate=None):
        self.t, self.name, self.address = t, name, address
        self.role_path = Path(t.path(f"{name}.role"))
        self.command = [sys.executable, __file__, name, address, self.role_path, kind, check_port or "", certificate or ""]
        self.running = contextlib.ExitStack()
        self.process = None
        self.becomes(role)

    def becomes(self, role):
        new = self.role_path.with_suffix(".new")
        new.write_text(role, encoding="ascii")
        os.replace(new, self.role_path)

    def __enter__(self):
        self.comes_back()
        return self

    def __exit__(self, *_):
        self.is_killed()

    def comes_back(self):
        from support import program  # the program needs no package
        self.process = self.running.enter_context(
            program.server(self.t, self.command, int(self.address.rpartition(":")[2])))

    def is_killed(self):
        self.process.kill()
        self.process.wait()
        self.running.close()

    def hangs(self):
        self.process.send_signal(signal.SIGSTOP)

    def goes_on(self):
        self.process.send_signal(signal.SIGCONT)


# The program

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 512

    def handle_error(self, request, client_address):
        pass  # a client that is gone


def main(name, address, role_path, kind="greets", check_port="", certificate=""):
    host, _, port = address.rpartition(":")
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)

    def in_tls(s):
        s.settimeout(LIMIT_S)
        return context.wrap_socket(s, server_side=True) if context else s

    class Health(http.server.BaseHTTPRequestHandler):
        def setup(self):
            self.request = in_tls(self.request) if self.server is data else self.request
            super().setup()

        def do_GET(self):
            if self.path == "/name":
                self.answer(200, name)
            else:
                role = Path(role_path).read_text(encoding="ascii")
                self.answer(200 if role in ("well", self.path[1:]) else 503, role)

        def answer(self, status, text):
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    class Data(socketserver.BaseRequestHandler):
        def handle(self):
            client = "%s:%d" % self.client_address
            if kind == "proxied":
                client = proxied(self.request)
            with in_tls(self.request) as s:
                s.sendall(f"SSH-2.0-{name}\r\n".encode() if kind == "ssh" else f"{name} {client}\n".encode())
                s.settimeout(None)
                while data := s.recv(4096):
                    s.sendall(data)

    if check_port:
        health = Server((host, int(check_port)), Health)
        threading.Thread(target=health.serve_forever, daemon=True).start()
    data = Server((host, int(port)), Health if kind == "https" else Data)
    data.serve_forever()


def exactly(s, count):
    data = b""
    while len(data) < count:
        part = s.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def proxied(s):
    """The client in a PROXY header, of either version, and of IPv4."""
    s.settimeout(LIMIT_S)
    head = exactly(s, 16)
    if head.startswith(b"\r\n\r\n\0\r\nQUIT\n"):
        body = exactly(s, int.from_bytes(head[14:], "big"))
        return f"{socket.inet_ntoa(body[:4])}:{int.from_bytes(body[8:10], 'big')}"
    while not head.endswith(b"\r\n"):
        head += exactly(s, 1)
    _, _, source, _, port, _ = head.decode().split()
    return f"{source}:{port}"


if __name__ == "__main__":
    main(*sys.argv[1:])
