"""tls_config: the files of [tls NAME]: what -t says of them, a reload with others, and files that change."""

import os
import socket
import ssl
import stat

from support.case import Skipped, check, check_equal, is_root, test

# Of a.example, expired in 2026. The key is of no use elsewhere.
EXPIRED = """\
-----BEGIN CERTIFICATE-----
MIIBYDCCAQagAwIBAgIIDHBiJW/K/TcwCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJ
YS5leGFtcGxlMB4XDTI2MTExNzE0MTgwNVoXDTI2MTEyNTE0MTgwNVowFDESMBAG
A1UEAwwJYS5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9gzsk+M6
yR+JJ7XG2TlEv0isSW+qdNoPStBiU+24iwYJ/BpXJFPvq8KNkN9RbxkTmKWLQ3YP
VPS475Mk92ssOqNCMEAwCQYDVR0TBAIwADAdBgNVHQ4EFgQU5QIwAZy+W4mVFmHY
U12MA8nj8vgwFAYDVR0RBA0wC4IJYS5leGFtcGxlMAoGCCqGSM49BAMCA0gAMEUC
IQDmWp7ynV4E4MRs4kGLbVimnuQLdTBkMYs278DzEguuLgIgEKHu0SCmciL89lOq
5qa4YRbxhHGOc8nXg6NkECY2QKA=
-----END CERTIFICATE-----
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQghiZP01XeLgPlQetP
hMLeuYEH2AzWpIpGK+HaRRfCWmmhRANCAAT2DOyT4zrJH4kntcbZOUS/SKxJb6p0
2g9K0GJT7biLBgn8GlckU++rwo2Q31FvGROYpYtDdg9U9LjvkyT3ayw6
-----END PRIVATE KEY-----
"""
REPLACED = r"tls t: files have changed and are used for new connections; certificates: 1"


def certificate(t, name, days=90):
    """(certificate, key), self-signed."""
    path = t.path("new.crt"), t.path("new.key")
    done = t.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", path[1], "-out", path[0], "-days", str(days), "-subj", f"/CN={name}",
                 "-addext", f"subjectAltName=DNS:{name}")
    check_equal(done.code, 0, "openssl req")
    return tuple(open(p, encoding="ascii").read() for p in path)


def put(t, name, content):
    """Replace a file as a whole, as certbot does; only the user reads it."""
    path = t.write("part", content)
    os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
    os.rename(path, t.path(name))
    return t.path(name)


def echo(t, more="", files="a.pem"):
    return (f"[listen e]\naddress = {t.echo}\nservice = echo\ntls = t\n"
            f"[tls t]\ncertificate = {t.path(files)}\n{more}\n")


def with_certificate(t, **how):
    """A file with certificate and key; the daemon's address stays the same over reloads."""
    t.echo = t.address()
    return put(t, "a.pem", "".join(certificate(t, "a.example", **how)))


@test(needs=["openssl"])
def checked(t):
    """-t reads all files: what is wrong is told with line, file and cause; dates are a warning"""
    with_certificate(t)
    config = t.write("t.ini", echo(t))
    done = t.reactord("-t", "-c", config)
    check_equal(done.code, 0, f"a good one: {done.err}")
    put(t, "b.pem", certificate(t, "b.example")[0])
    t.write("t.ini", echo(t, files="b.pem"))
    done = t.reactord("-t", "-c", config)
    check_equal(done.code, 1, f"a certificate without its key: {done.err}")
    check("t.ini:6: [tls t] certificate: " in done.err and "b.pem: there is no private key" in done.err, done.err)
    put(t, "b.pem", certificate(t, "b.example")[0] + certificate(t, "c.example")[1])
    check("the key is not that of the certificate" in t.reactord("-t", "-c", config).err, "another key")
    put(t, "b.pem", EXPIRED)
    done = t.reactord("-t", "-c", config)
    check_equal(done.code, 0, f"an old one: {done.err}")
    check("warning: [tls t] certificate: " in done.err and "expired" in done.err, done.err)


@test(needs=["openssl"])
def reloaded(t):
    """a reload reads the files again: those that fit together are used, others change nothing"""
    with_certificate(t)
    with t.daemon(echo(t)) as daemon:
        daemon.reload(wanted="nothing has changed")
        put(t, "a.pem", "".join(certificate(t, "a.example")))
        lines = daemon.reload()
        check(any("[tls t] certificates, keys or CAs in the files have changed" in line for line in lines),
              f"other files: {lines}")
        put(t, "a.pem", certificate(t, "a.example")[0])
        lines = daemon.reload(wanted="refused")
        check(any("there is no private key" in line for line in lines), f"without a key: {lines}")
        put(t, "a.pem", EXPIRED)
        lines = daemon.reload(wanted="refused")
        check(any("expired or not yet valid" in line for line in lines), f"an old one: {lines}")


@test(needs=["openssl"])
def watched(t):
    """with watch, files are read again when they change; while they do not fit together nothing changes"""
    with_certificate(t)
    with t.daemon(echo(t, "watch = 100ms")) as daemon:
        put(t, "a.pem", "".join(certificate(t, "a.example")))
        t.eventually(lambda: len(daemon.log_lines(REPLACED)) == 1, "the new certificate is used")
        new = certificate(t, "a.example")
        put(t, "a.pem", new[0])
        put(t, "a.pem.key", new[1])
        t.eventually(lambda: len(daemon.log_lines(REPLACED)) == 2, "certificate and key one after the other")
        put(t, "a.pem", "no certificate")
        t.eventually(lambda: daemon.log_lines("the changed files cannot be loaded: certificate: "),
                     "a bad one is told")
        put(t, "a.pem", new[0])
        newer = certificate(t, "a.example")
        put(t, "a.pem", newer[0])
        put(t, "a.pem.key", newer[1])
        t.eventually(lambda: len(daemon.log_lines(REPLACED)) == 3, "files that fit together are used")
        check_equal(len(daemon.log_lines("the changed files cannot be loaded")), 1, "times that the bad one was told")


@test(needs=["openssl"])
def warned(t):
    """a certificate that expires within 14 days is told at the start, and one that has more time is not"""
    with_certificate(t, days=13)
    with t.daemon(echo(t)) as daemon:
        t.eventually(lambda: daemon.log_lines(r"tls t: \S+a.pem: the certificate expires in 1[23]\.\d days"),
                     "the days that are left")
        line, = daemon.statistics("certificate ")
        left_days = int(line.rpartition("expires_in_ms=")[2]) / 86_400_000
        check(line.startswith(f"certificate t/{t.path('a.pem')} ") and 12 <= left_days <= 13, f"statistics: {line}")


@test(needs=["openssl"])
def unreadable(t):
    """files that only root can read are told at the start when another user takes over"""
    if not is_root():
        raise Skipped("needs root")
    with_certificate(t)
    os.chmod(t.dir, 0o755)
    with t.daemon(f"[reactord]\nuser = nobody\n{echo(t)}") as daemon:
        t.eventually(lambda: daemon.log_lines(r"cannot load the configuration: .*a.pem: cannot be opened: "
                                              r"Permission denied; a reload would fail"), "it is told")


@test(needs=["openssl"])
def replaced_under_load(t):
    """certificate and key that are replaced one after the other, again and again, fail no client"""
    with_certificate(t)
    names = [f"{i}.example" for i in range(12)]
    new = [certificate(t, name) for name in names]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    seen = set()

    def connect():
        host, port = t.echo.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30 * t.scale) as s:
            with context.wrap_socket(s, server_hostname="a.example") as client:
                client.sendall(b"hello")
                check_equal(client.recv(5), b"hello", "the echo")
                seen.add(client.getpeercert(binary_form=True))

    def uses(wanted):
        connect()
        return ssl.PEM_cert_to_DER_cert(wanted) in seen

    with t.daemon(echo(t, "watch = 100ms")) as daemon:
        for crt, key in new:
            put(t, "a.pem", crt)
            connect()
            put(t, "a.pem.key", key)
            t.eventually(lambda crt=crt: uses(crt), "the new certificate is used")
        check_equal(len(seen), len(new) + 1, "certificates that clients got")
        check(not daemon.log_lines("the changed files cannot be loaded"), "a mismatch was told")
