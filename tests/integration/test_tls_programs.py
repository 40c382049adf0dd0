"""tls_programs: the TLS of other programs, as clients in front and as servers behind."""

import contextlib
import signal
import socket
import subprocess

from support import net, program, tls
from support.case import check, check_equal, test
from support.net import Task
from support.tls_listeners import NAME, certificate_of, tls_echo, tls_proxy
from test_examples import Postgres, psql, psql_where

MB = 1_000_000


def port_of(address):
    return address.rpartition(":")[2]


def s_client(front, ca, *options, text=b"hello\n"):
    """What `openssl s_client` prints; it ends when it has its line back."""
    return program.run(["sh", "-c", '{ printf %s "$0"; sleep 0.5; } | "$@"', text.decode(), "openssl", "s_client",
                        "-connect", front, "-CAfile", ca.path, "-verify_return_error", "-servername", NAME,
                        *options]).decode()


@test(each={"version": ["1.2", "1.3"]})
def openssl_client(t, version):
    """openssl s_client of TLS {version} verifies us, agrees on a protocol and resumes its session"""
    front, session = t.address(), t.path("session")
    ca, certificate = certificate_of(t)
    with t.daemon(tls_echo(front, certificate, tls_options="alpn = echo")):
        options, tickets = [tls.S_CLIENT[version], "-alpn", "h2,echo", "-sess_out", session], int(version == "1.3")
        out = s_client(front, ca, *options)
        for wanted in (f"New, TLSv{version}", "ALPN protocol: echo", "Verification: OK", "\nhello\n"):
            check(wanted in out, f"no {wanted!r}: {out}")
        check_equal(out.count("New Session Ticket arrived"), tickets, "tickets behind a full handshake")
        out = s_client(front, ca, *options, "-sess_in", session)
        check(f"Reused, TLSv{version}" in out and "\nhello\n" in out, f"not resumed: {out}")
        check_equal(out.count("New Session Ticket arrived"), tickets, "tickets behind a resumption")


@test(each={"version": ["1.2", "1.3"]}, needs=["gnutls-cli"])
def gnutls_client(t, version):
    """gnutls-cli of TLS {version} verifies us and has its line back"""
    front = t.address()
    ca, certificate = certificate_of(t)
    with t.daemon(tls_echo(front, certificate)):
        out = program.run(["sh", "-c", '{ echo hello; sleep 0.5; } | "$@"', "sh", "gnutls-cli", "--x509cafile", ca.path,
                           "--sni-hostname", NAME, "--verify-hostname", NAME, "--priority",
                           f"NORMAL:-VERS-ALL:+VERS-TLS{version}", "-p", port_of(front), "127.0.0.1"]).decode()
    check("certificate is trusted" in out and "\nhello\n" in out, out)


@test(needs=["curl", "nginx"])
def curl_client(t):
    """curl gets a file of 20 MB from a plain HTTP server behind us"""
    content = bytes(net._BLOCK) * 19
    ca, certificate = certificate_of(t)
    with program.nginx(t, {"file": content}) as back:
        front = t.address()
        with t.daemon(tls_proxy(front, back, certificate)):
            got = program.run(["curl", "-sS", "--fail", "--cacert", ca.path, "--resolve",
                               f"{NAME}:{port_of(front)}:127.0.0.1", f"https://{NAME}:{port_of(front)}/file"])
    check(got == content, f"{len(got)} of {len(content)} bytes, or others")


@test(needs=["psql"], timeout=60, plain_only=True)
def psql_client(t):
    """tls_start = postgres: psql verifies us (sslmode=verify-full) and is answered by a plain server behind us"""
    front, back = t.address(), t.address()
    ca, certificate = certificate_of(t)
    cluster = Postgres(t)
    cluster.create(back)
    with cluster.server(back), t.daemon(tls_proxy(front, back, certificate, "tls_start = postgres")):
        where = (psql_where(front).replace("host=127.0.0.1", f"host={NAME} hostaddr=127.0.0.1")
                 + f" sslmode=verify-full sslrootcert={ca.path}")
        rows = "\n".join(str(n) for n in range(1, 100_001)) + "\n"
        got = program.run(["psql", "-XAtqw", "-c", "SELECT generate_series(1, 100000)", where]).decode()
    check(got == rows, f"{len(got)} bytes, or others: {got[:200]}")


@test(needs=["psql"], timeout=60, plain_only=True)
def psql_interrupted(t):
    """tls_start = postgres: Ctrl-C in psql ends its query on the server, also with several connections of others"""
    front, back = t.address(), t.address()
    _, certificate = certificate_of(t)
    cluster = Postgres(t)
    cluster.create(back)
    with cluster.server(back), t.daemon(tls_proxy(front, back, certificate, "tls_start = postgres")):
        where = psql_where(front) + " sslmode=require"

        def asleep():
            return int(psql(back, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"))

        with contextlib.ExitStack() as stack:
            command = ["psql", "-XAtqw", "-c", "SELECT pg_sleep(600)", where]
            clients = [stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE)) for _ in range(3)]
            for client in clients:
                stack.callback(client.kill)
            t.eventually(lambda: asleep() == 3, "the queries run")
            for i, client in enumerate(clients):
                client.send_signal(signal.SIGINT)
                _, err = client.communicate(timeout=net.LIMIT_S)
                check(b"canceling statement due to user request" in err, f"psql says {err!r}")
                check_equal(asleep(), 2 - i, "queries that go on")


HAPROXY = """
global
    maxconn 100
defaults
    mode tcp
    timeout connect 5s
    timeout client 30s
    timeout server 30s
listen a
    bind 127.0.0.1:{port} {bind}
    server b {back} {server}
"""
NGINX = """
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
user root;
pid {dir}/nginx.pid;
error_log {dir}/nginx-error.log;
events {{ worker_connections 100; }}
stream {{
    proxy_half_close on;
    server {{
        listen 127.0.0.1:{port} {listen};
        proxy_pass {back};
        {options}
    }}
}}
"""
STUNNEL = """
foreground = yes
pid = {dir}/stunnel.pid
[a]
accept = 127.0.0.1:{port}
connect = {back}
{options}
"""


def haproxy(t, port, back, **how):
    config = t.write("haproxy.cfg", HAPROXY.format(port=port, back=back, **{"bind": "", "server": "", **how}))
    return program.server(t, ["haproxy", "-db", "-f", config], port)


def nginx(t, port, back, options, listen=""):
    config = t.write("nginx.conf", NGINX.format(dir=t.dir, port=port, back=back, options=options, listen=listen))
    return program.server(t, ["nginx", "-p", t.dir, "-e", t.path("nginx-error.log"), "-c", config], port)


def stunnel(t, port, back, options):
    config = t.write("stunnel.conf", STUNNEL.format(dir=t.dir, port=port, back=back, options=options))
    return program.server(t, ["stunnel4", config], port)


def client_program(t, name, port, front, ca, ours):
    """A program that takes plain bytes and is a client of TLS, with a certificate, of ${front}."""
    if name == "haproxy":
        return haproxy(t, port, front, server=f"ssl verify required ca-file {ca.path} verifyhost {NAME} "
                                              f"sni str({NAME}) crt {ours}")
    if name == "nginx":
        return nginx(t, port, front, f"proxy_ssl on; proxy_ssl_verify on; proxy_ssl_trusted_certificate {ca.path}; "
                                     f"proxy_ssl_name {NAME}; proxy_ssl_server_name on; "
                                     f"proxy_ssl_certificate {ours}; proxy_ssl_certificate_key {ours};")
    return stunnel(t, port, front, f"client = yes\nverifyChain = yes\nCAfile = {ca.path}\ncheckHost = {NAME}\n"
                                   f"sni = {NAME}\ncert = {ours}\nkey = {ours}")


def both_ways(address, name):
    """
    3 MB through an echo and back, and the end of both directions. stunnel 5.68 on a busy machine drops the last bytes
    of the other direction when one has ended, as it does behind HAProxy: it sees the end behind them.
    """
    early = name != "stunnel4"
    with net.connect(address) as client:
        sender = Task(net.send_pattern, client, 3 * MB, (net.CHUNK,), early)
        check_equal(net.receive_sha256(client, 3 * MB), net.pattern_sha256(3 * MB), "what came back")
        sender.result()
        if not early:
            client.shutdown(socket.SHUT_WR)
        check_equal(net.ending(client), "fin", "the end")


@test(each=[{"name": name} for name in ("haproxy", "nginx", "stunnel4")])
def program_in_front(t, name):
    """{name} with a certificate in front of us: 3 MB and half-close go through"""
    front, port = t.address(), t.port()
    ca, certificate = certificate_of(t)
    ours = ca.issue("client")
    with t.daemon(tls_echo(front, certificate, tls_options=f"client_ca = {ca.path}")):
        with client_program(t, name, port, front, ca, ours):
            both_ways(f"127.0.0.1:{port}", name)
