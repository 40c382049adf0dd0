"""log_lines: the lines of an access log."""

import socket

from support import net
from support.case import check, check_equal

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
NUMBERS = ("msec", "connection", "bytes_in", "bytes_out", "duration", "tries", "pid")
TIMES = ("queue_time", "connect_time", "first_byte_time")
WORDS = ("time", "client", "listener", "listen_address", "reason")


def echo(address, options, process="", name="echo"):
    return (f"[listen {name}]\naddress = {address}\nservice = echo\n{options}\n"
            + (f"[reactord]\n{process}\n" if process else ""))


def lines_of(path):
    with open(path, "rb") as f:
        content = f.read()
    check(content == b"" or content.endswith(b"\n"), f"the last line is torn: {content[-80:]!r}")
    return content.splitlines()


def whole_lines(path):
    """As lines_of(), of a file that may just be written to."""
    with open(path, "rb") as f:
        return f.read().split(b"\n")[:-1]


def check_record(r):
    """Is everything there, and of its type?"""
    for name in NUMBERS:
        check(isinstance(r[name], (int, float)) and r[name] >= 0, f"{name}: {r}")
    for name in TIMES:
        check(r[name] is None or r[name] >= 0, f"{name}: {r}")
    for name in WORDS:
        check(isinstance(r[name], str) and r[name], f"{name}: {r}")


def one_echo(address, message=b"hello"):
    with net.connect(address) as client:
        check_equal(net.exchange(client, message), message, "the echo")
        client.shutdown(socket.SHUT_WR)
        check_equal(net.read_to_end(client), b"", "behind the echo")
