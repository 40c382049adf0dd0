"""spare_servers: servers of spare connections, and how many they have."""

import contextlib
import select
import signal
import socket
import time

from support import net
from support.case import check
from support.upstreams import config

AT_ONCE_S = 20  # for what takes no time on a machine that has some


def spared(front, servers, spare=4, options="", threads=1):
    if not isinstance(servers, dict):
        servers = {"a": servers}
    return (f"[worker]\nthreads = {threads}\n"
            + config(front, servers, f"spare = {spare}\n{options}"))


def counts(daemon, server="back/a"):
    """What SIGRTMIN writes about the spare connections to a server."""
    found = daemon.counts(f"server {server} spares=")
    return {key.removeprefix("spares_"): value for key, value in found.items()}


def wait_counts(t, daemon, **wanted):
    """Until the counts are so, others aside."""
    def reached():
        now = counts(daemon)
        return all(now[key] == value for key, value in wanted.items())
    t.eventually(reached, f"the counts {wanted}")


def accept_all(listener, count):
    return [net.accept(listener) for _ in range(count)]


def who_hears(sockets):
    """The first of them on which something comes."""
    found, _, _ = select.select(sockets, [], [], net.LIMIT_S)
    check(found, "nothing came on any of them")
    return found[0]


def close_all(sockets):
    for s in sockets:
        s.close()


def hold(t, daemon):
    """Stop the daemon where it is, until SIGCONT."""
    daemon.send_signal(signal.SIGSTOP)
    t.eventually(lambda: daemon.status("State").startswith("T"), "it stands still")


def end(t, server, how):
    """The server ends like that, and the other side's kernel knows."""
    host, port = server.getpeername()
    if how.startswith("has"):
        server.sendall(b"408")
    if how == "resets":
        net.reset(server)
    else:
        server.close()
    t.eventually(lambda: tcp_state(host, port) != "ESTABLISHED", "the end has come in")


def tcp_state(host, port):
    """The state of the connection whose own address that is; None if there is none."""
    address = f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}:{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as f:
        for line in f:
            fields = line.split()
            if fields[1] == address:
                return {"01": "ESTABLISHED", "08": "CLOSE_WAIT"}.get(fields[3], fields[3])
    return None


def hear_question(listener, header=b""):
    """The connection on which the client's question comes, behind a header, among spare ones."""
    wanted = header + b"question"
    listener.settimeout(0.05)
    came, end = [], time.monotonic() + AT_ONCE_S
    while time.monotonic() < end:
        with contextlib.suppress(TimeoutError):
            came.append(net.accept(listener, 0))
        for s in came:
            with contextlib.suppress(BlockingIOError):
                if s.recv(200, socket.MSG_PEEK) == wanted:
                    s.settimeout(net.LIMIT_S)
                    net.read_exactly(s, len(wanted))
                    return s
    raise TimeoutError("nobody asked")
