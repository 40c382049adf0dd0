"""tls: certificates, and TLS peers whose bytes are in memory: a test decides what goes over the socket, and when."""

import contextlib
import hashlib
import re
import select
import socket
import ssl
import subprocess
import time

from support import net
from support.case import Failed

KEYS = {"p256": ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), "rsa2048": ("rsa:2048",)}
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
S_CLIENT = {"1.2": "-tls1_2", "1.3": "-tls1_3"}
RECORD_HEADER = 5


class Authority:
    """A CA of the test; its certificate is in the file `path`."""

    def __init__(self, t, name="ca"):
        self.t, self.name = t, name
        self.path = t.path(f"{name}.pem")
        self.key = t.path(f"{name}.key")
        _openssl("req", "-x509", "-newkey", *KEYS["p256"], "-nodes", "-subj", f"/CN={name}", "-days", "2",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", self.key, "-out", self.path)

    def issue(self, *names, key="p256"):
        """A certificate for these names, the first one its CN; the file that has it and its key."""
        path, key_path = self.t.path(f"{names[0]}-{key}.pem"), self.t.path(f"{names[0]}-{key}.key")
        kinds = ",".join(f"IP:{name}" if re.fullmatch(r"[0-9.]+", name) else f"DNS:{name}" for name in names)
        _openssl("req", "-x509", "-newkey", *KEYS[key], "-nodes", "-subj", f"/CN={names[0]}", "-days", "2",
                 "-CA", self.path, "-CAkey", self.key, "-addext", f"subjectAltName={kinds}",
                 "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key_path, "-out", path)
        _append(path, key_path)
        return path

    def issue_expired(self, name):
        """A certificate for that name that expired a day ago, as of issue()."""
        path, key_path, request = (self.t.path(f"{name}-expired.{end}") for end in ("pem", "key", "req"))
        _openssl("req", "-newkey", *KEYS["p256"], "-nodes", "-subj", f"/CN={name}",
                 "-addext", f"subjectAltName=DNS:{name}", "-keyout", key_path, "-out", request)
        self.t.write("expired.index", "")
        config = self.t.write("expired.cnf", f"""[ca]
default_ca = ca
[ca]
database = {self.t.path("expired.index")}
new_certs_dir = {self.t.dir}
default_md = sha256
rand_serial = yes
copy_extensions = copy
policy = policy
[policy]
commonName = supplied
""")
        two_days_ago, yesterday = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() - days * 86400)) for days in (2, 1))
        _openssl("ca", "-batch", "-notext", "-config", config, "-in", request, "-out", path, "-cert", self.path,
                 "-keyfile", self.key, "-startdate", two_days_ago, "-enddate", yesterday)
        _append(path, key_path)
        return path


def _append(path, other):
    with open(path, "ab") as both, open(other, "rb") as f:
        both.write(f.read())


def _openssl(*words):
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failed(f"openssl {words[0]}: {done.stderr[-500:]}")


def client_context(ca, version=None, certificate=None, alpn=()):
    """A client that trusts the CA of that file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(ca)
    _set(context, version, certificate, alpn)
    return context


def server_context(certificate, version=None, client_ca=None):
    """A server with that certificate; with client_ca it wants one of the client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set(context, version, certificate, ())
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _set(context, version, certificate, alpn):
    if version:
        context.minimum_version = context.maximum_version = VERSIONS[version]
    if certificate:
        context.load_cert_chain(certificate)
    if alpn:
        context.set_alpn_protocols(list(alpn))


class Peer:
    """One end of a TLS connection over a socket. It has the methods of a socket that support.net uses."""

    def __init__(self, s, context, name="a.example", server=False):
        self.socket, self.is_open, self.is_shut = s, False, False
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=server,
                                    server_hostname=None if server else name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flight(self):
        """The bytes of our next part of the handshake, not sent."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
            self.is_open = True
        return self.outgoing.read()

    def handshake(self):
        self._until_done(self.tls.do_handshake)
        return self

    def sendall(self, data):
        self.tls.write(data)
        self.flush()

    def recv(self, count):
        """As of a socket: b"" at close_notify. An end of file without it is an ssl.SSLEOFError."""
        try:
            return self._until_done(self.tls.read, count)
        except ssl.SSLZeroReturnError:
            return b""

    def recv_into(self, view):
        part = self.recv(len(view))
        view[:len(part)] = part
        return len(part)

    def part(self):
        """The next bytes of those that fill() took; b"" at close_notify, None if there are none."""
        try:
            return self.tls.read(net.CHUNK)
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLZeroReturnError:
            return b""

    def shut(self):
        """Put close_notify in the outgoing bytes."""
        self.is_shut = True
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()

    def shutdown(self, _=socket.SHUT_WR):
        """Half-close: close_notify, and no FIN."""
        self.shut()
        self.flush()

    def close(self):
        self.socket.close()

    def flush(self):
        if data := self.outgoing.read():  # to send nothing fails behind a reset, too, where there may be bytes to read
            self.socket.sendall(data)

    def fill(self):
        """Take what is there for us, at least something."""
        data = self.socket.recv(net.CHUNK)
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()

    def _until_done(self, function, *arguments):
        while True:
            try:
                result = function(*arguments)
                self.flush()
                return result
            except ssl.SSLWantReadError:
                self.flush()
                self.fill()
            except ssl.SSLError:
                self.flush()  # the alert
                raise


def connect(address, context, name="a.example"):
    """A client, its handshake done."""
    return Peer(net.connect(address), context, name).handshake()


def accept(listener, context):
    """A server's next connection, its handshake done."""
    return Peer(net.accept(listener), context, server=True).handshake()


def ending(peer):
    """How the other end ends its direction, its bytes aside: "notify", "truncated", "reset" or its alert."""
    try:
        while peer.recv(net.CHUNK):
            pass
        return "notify"
    except ssl.SSLEOFError:
        return "truncated"
    except (ConnectionResetError, BrokenPipeError):
        return "reset"
    except ssl.SSLError as error:
        return error.reason


def records(data):
    """The records in these bytes."""
    found = []
    while data:
        end = RECORD_HEADER + int.from_bytes(data[3:5], "big")
        found.append(data[:end])
        data = data[end:]
    return found


def in_records(data, *sizes):
    """The same handshake messages in records of these sizes, the rest in one."""
    payload = b"".join(record[RECORD_HEADER:] for record in records(data))
    parts = []
    for size in sizes:
        parts.append(payload[:size])
        payload = payload[size:]
    return b"".join(data[:3] + len(part).to_bytes(2, "big") + part for part in [*parts, payload] if part)


def echo_pattern(peer, total, sizes=(net.CHUNK,), pauses=()):
    """
    Send ${total} bytes of the pattern in writes of these sizes, then close_notify, and read meanwhile what comes back, but for
    pauses: (after so many bytes, so many seconds) pairs. The number and the hash of all up to close_notify.
    """
    parts, pauses, digest, got, resume_at = net.pattern_parts(total, sizes), list(pauses), hashlib.sha256(), 0, 0
    s, waiting, has_ended = peer.socket, _sealed(peer, parts), False
    s.setblocking(False)
    while waiting or not has_ended:
        paused_s = max(0, resume_at - time.monotonic())
        readable, writable, _ = select.select([] if paused_s or has_ended else [s], [s] if waiting else [], [],
                                              paused_s or net.LIMIT_S)
        if not readable and not writable and not paused_s:
            raise TimeoutError(f"nothing moves after {got} of {total} bytes")
        if writable:
            waiting = waiting[s.send(waiting):] or _sealed(peer, parts)
        if not readable:
            continue
        peer.fill()
        while part := peer.part():
            digest.update(part)
            got += len(part)
        has_ended = part is not None
        if pauses and got >= pauses[0][0]:
            resume_at = time.monotonic() + pauses.pop(0)[1]
    s.settimeout(net.LIMIT_S)
    return got, digest.hexdigest()


def _sealed(peer, parts):
    """The next records with ${parts}, at last the one with close_notify."""
    while peer.outgoing.pending < net.CHUNK:
        part = next(parts, None)
        if part is None:
            if not peer.is_shut:
                peer.shut()
            break
        peer.tls.write(part)
    return peer.outgoing.read()
