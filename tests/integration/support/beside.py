"""beside: HAProxy or nginx with its configuration beside reactord with ours, in front of the same servers."""

import contextlib
import csv
import http.client
import os
import socket
import ssl
import time

from support import net, program
from support.case import check
from support.example_files import EXAMPLES, port_of, replaced, servers

CLIENT_LIMIT_S = 8  # a client that has no answer by then is lost
PACE_S = 0.05
ROUND = 8  # so many clients in a row must be served as wanted
SETTLED_S = 100


# Clients: each returns who served it, or None if nobody did

def served(ask):
    """A client that is lost when its connection fails."""
    def asked(front):
        try:
            return ask(front)
        except (OSError, EOFError, http.client.HTTPException):
            return None
    return asked


def greeting(s, local):
    """The name in the server's greeting, which must have the client's own address if it has one."""
    line = b""
    while not line.endswith(b"\n"):
        line += net.read_exactly(s, 1)
    name, _, client = line.decode().strip().partition(" ")
    return name if client in ("", local) else f"{name}, for {client} in place of {local}"


@served
def greeted(front):
    """By a server that does not know the client's address."""
    with net.connect(front, limit_s=CLIENT_LIMIT_S) as s:
        return greeting(s, "").partition(",")[0]


@served
def told(front):
    """By a server that is told the client's address."""
    with net.connect(front, limit_s=CLIENT_LIMIT_S) as s:
        return greeting(s, "%s:%d" % s.getsockname())


def untrusting():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@served
def over_https(front):
    connection = http.client.HTTPSConnection(front, timeout=CLIENT_LIMIT_S, context=untrusting())
    with contextlib.closing(connection):
        connection.request("GET", "/name")
        return connection.getresponse().read().decode()


def named(name, source=None):
    """A client of TLS that asks for that name, from that address."""
    @served
    def ask(front):
        with socket.create_connection(net.parse(front)[1], CLIENT_LIMIT_S, (source, 0) if source else None) as plain:
            with untrusting().wrap_socket(plain, server_hostname=name) as s:
                return greeting(s, "").partition(",")[0]
    return ask


@served
def over_ssh(front):
    """A client that says the first line of SSH, and who answers it."""
    with net.connect(front, limit_s=CLIENT_LIMIT_S) as s:
        s.sendall(b"SSH-2.0-client\r\n")
        return greeting(s, "").removeprefix("SSH-2.0-")


# The two programs

class Beside:
    """The peer and reactord with the two files of one example.

    places: what stands in the files, and what stands there in the test; a listener's address has two: the peer's and ours.
    """

    def __init__(self, t, folder, name, listeners, places, quicker):
        self.t, self.title = t, f"{folder}/{name}"
        self.fronts = {listener: (t.address(), t.address()) for listener in listeners}
        self.is_haproxy = folder == "from-haproxy"
        self.stats, self.figures, self.daemon = t.path("stats.sock"), [], None
        stem = EXAMPLES / folder / name
        self.theirs = replaced(stem.with_suffix(".cfg" if self.is_haproxy else ".conf").read_text(encoding="utf-8"),
                               {**places, **self._peer_places(), **quicker[0]})
        self.ours = replaced(stem.with_suffix(".ini").read_text(encoding="utf-8"),
                             {**places, **{f"*:{port}": pair[1] for port, pair in self.fronts.items()}, **quicker[1]})

    def _peer_places(self):
        word = "bind :" if self.is_haproxy else "listen "
        places = {f"{word}{port}": f"{word.rstrip(':')}{pair[0]}" for port, pair in self.fronts.items()}
        return {**places, "/run/haproxy/admin.sock": self.stats} if self.is_haproxy else places

    @contextlib.contextmanager
    def running(self):
        port = max(port_of(pair[0]) for pair in self.fronts.values())
        if self.is_haproxy:
            command = ["haproxy", "-db", "-f", self.t.write("peer.cfg", self.theirs)]
        else:
            log = self.t.path("peer-error.log")
            command = ["nginx", "-p", self.t.dir, "-e", log, "-c", self.t.write("peer.conf", self.theirs),
                       "-g", f"daemon off; pid {self.t.path('peer.pid')}; error_log {log};"]
        with program.server(self.t, command, port), self.t.daemon(self.ours) as self.daemon:
            yield self
        self._write_figures()

    # What they know

    def _haproxy_knows(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.stats)
            s.sendall(b"show stat\n")
            rows = csv.reader(net.read_to_end(s).decode().splitlines())
        return {f"{row[0]}/{row[1]}": row[17].split()[0].lower() for row in rows
                if len(row) > 17 and row[1] not in ("svname", "FRONTEND", "BACKEND")}

    def _reactord_knows(self):
        return {name: server["state"] for name, server in servers(self.daemon).items()}

    def _agree(self, states):
        """Wait until both say the same of each server, and of those in ${states} what is wanted."""
        def agreed():
            theirs, ours = self._haproxy_knows(), self._reactord_knows()
            return theirs == ours and all(ours[name] == state for name, state in states.items())
        self.t.eventually(agreed, f"HAProxy and reactord agree on their servers, and {states}", within=SETTLED_S)

    # Whom they send clients to

    def _fronts_of(self, port):
        return self.fronts[port.partition(" ")[0]]

    def holds(self, port):
        """Clients of both programs that stay."""
        held = [net.connect(front) for front in self.fronts[port]]
        return [(s, greeting(s, "").partition(",")[0]) for s in held]

    def after(self, what, wanted, states=None):
        """Wait until both serve their clients as wanted: for each listener, or `PORT CLIENTS`, how a client asks, and by
        whom it is to be served, or a pair: by whom behind the peer, and by whom behind reactord."""
        self.figures += [(what, *row) for row in self._all_until(wanted)]
        if self.is_haproxy:
            self._agree(states or {})
            # A client before HAProxy knew may have been served at the second try, which no stick table notes.
            self._all_until(wanted)

    def _all_until(self, wanted):
        """For all at the same time: listener, side, and what _until() gives."""
        tasks = []
        for port, (ask, names) in wanted.items():
            each = names if isinstance(names, tuple) else (names, names)
            for side, front, who in zip(("peer", "reactord"), self._fronts_of(port), each):
                tasks.append((port, side, net.Task(self._until, ask, front, who)))
        return [(port, side, *task.result(SETTLED_S * 3)) for port, side, task in tasks]

    def _until(self, ask, front, wanted):
        """Clients, one after the other, until a round of them is served as wanted; those before, and the lost of them."""
        got, end = [], time.monotonic() + SETTLED_S
        while set(got[-ROUND:]) != set(wanted) or len(got) < ROUND:
            check(time.monotonic() < end, f"{front} serves {got[-ROUND:]}, not {wanted}, after {SETTLED_S} s")
            got.append(ask(front))
            time.sleep(PACE_S)
        before = got[:-ROUND]
        return len(before), before.count(None)

    def lost(self):
        """Clients that nobody served, after all faults together."""
        return sum(lost for *_, lost in self.figures)

    def _write_figures(self):
        path = os.environ.get("EXAMPLES_FIGURES")
        if path:
            with open(path, "a", encoding="ascii") as f:
                for what, port, side, before, lost in self.figures:
                    f.write(f"{self.title}\t{what}\t{port}\t{side}\t{before}\t{lost}\n")
