"""proxy_lines: PROXY headers, from HAProxy and nginx or by hand."""

import contextlib
import socket
import struct

from support import program
from support.case import check

MARK = b"\r\n\r\n\0\r\nQUIT\n"
LINE = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"
ACCEPT = "accept_proxy = required\ntrusted_proxies = 127.0.0.0/8, unix"


def v2(source="192.0.2.1", port=56324, command=0x21, rest=b""):
    body = socket.inet_aton(source) + socket.inet_aton("198.51.100.1") + \
        struct.pack("!HH", port, 443) + rest
    return MARK + bytes([command, 0x11]) + struct.pack("!H", len(body)) + body


def echo(address, options):
    return f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n"


def read_line(s):
    """The header of version 1 that a server is sent."""
    line = b""
    while not line.endswith(b"\r\n"):
        byte = s.recv(1)
        check(byte, f"the end came after {line!r}")
        line += byte
    return line


def tcp4(client, where):
    """The header that tells of a client of ours that has connected to that address."""
    host, port = where.rsplit(":", 1)
    source, source_port = client.getsockname()
    return f"PROXY TCP4 {source} {host} {source_port} {port}\r\n".encode()


@contextlib.contextmanager
def haproxy(t, text, port):
    config = t.write("haproxy.cfg", f"""
defaults
    mode tcp
    timeout connect 5s
    timeout client 10s
    timeout server 10s
    timeout http-request 10s
{text}""")
    with program.server(t, ["haproxy", "-db", "-f", config], port):
        yield


@contextlib.contextmanager
def nginx_stream(t, text, port):
    """nginx without its http part."""
    config = t.write("stream.conf", f"""
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
pid {t.path("stream.pid")};
error_log {t.path("stream-error.log")};
worker_processes 1;
events {{ worker_connections 1024; }}
stream {{ {text} }}
""")
    with program.server(t, ["nginx", "-p", t.dir, "-e", t.path("stream-error.log"), "-c", config],
                        port):
        yield
