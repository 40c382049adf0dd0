"""examples: each file of conf/examples in front of the programs that it is for.

A test puts its own ports and paths in place of those in the file, and leaves the rest as it is shipped.
"""

import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import smtplib
import socket
import threading
from pathlib import Path

from support import net, program
from support.case import Failed, Skipped, check, check_equal, is_root, test

EXAMPLES = Path(__file__).resolve().parents[2] / "conf/examples"
FAILOVER_S = 30  # what a failover may take on a busy machine; as shipped it is two or three seconds


def replaced(text, replace):
    for old, new in replace.items():
        text, n = re.subn(rf"{re.escape(old)}(?![\w.:])", lambda _, new=new: new, text)
        check(n > 0, f"there is no {old}")
    return text


def example(name, replace):
    """The example with `to` in place of each `from`, which must be there, at the end of a word."""
    text = replaced((EXAMPLES / name).read_text(encoding="utf-8"), replace)
    left = re.search(r"^[^#]*= *(10\.|\*:|/(etc|run|var)/).*", text, re.MULTILINE)
    check(not left, f"{name} has another place: {left and left.group()}")
    return text


def port_of(address):
    return int(address.rpartition(":")[2])


def servers(daemon):
    """State and connections of each server, as the statistics have them."""
    found = {}
    for line in daemon.statistics("server "):
        name, *words = line.removeprefix("server ").split()
        found.setdefault(name, {}).update(word.split("=") for word in words)
    return found


def wait_state(t, daemon, **states):
    """Wait until these servers, by their ID, have these states in each of their upstreams."""
    def as_wanted():
        now = {name: server["state"] for name, server in servers(daemon).items()}
        return all(state == states.get(name.partition("/")[2], state) for name, state in now.items())
    t.eventually(as_wanted, f"servers become {states}", within=FAILOVER_S)


def errors_of(done):
    """What it said, without the warning of too few open files, which is about this machine."""
    return [line for line in done.err.splitlines() if "max_connections: cannot be reached: " not in line]


@test(each={"name": sorted(path.name for path in EXAMPLES.glob("*.ini"))})
def valid(t, name):
    """reactord -t accepts {name} as shipped, without a warning, and it has a test here"""
    done = t.reactord("-t", "-c", EXAMPLES / name, env={**os.environ, "SMTP_DENY": str(EXAMPLES / "smtp.deny")})
    check_equal((done.code, errors_of(done)), (0, []), "exit code and errors")
    check(name.removesuffix(".ini").replace("-", "_") in globals(), "no test")


@test(needs=["haproxy"])
def migrating(t):
    """the two configurations of reactord-migrating(7) are valid, one for HAProxy and the other for reactord -t"""
    page = (EXAMPLES.parents[1] / "man/reactord-migrating.7").read_text(encoding="utf-8")
    blocks = re.findall(r"^\.Bd -literal -offset indent\n(.*?)^\.Ed", page, re.MULTILINE | re.DOTALL)
    check_equal(len(blocks), 2, "configurations in the page")
    program.run(["haproxy", "-c", "-f", t.write("haproxy.cfg", blocks[0])])
    done = t.reactord("-t", "-c", t.write("front.ini", blocks[1]))
    check_equal((done.code, errors_of(done)), (0, []), "exit code and errors")


@test(needs=["redis-server", "redis-cli"], timeout=60, plain_only=True)
def readme(t):
    """the configuration of README.md serves redis-cli, also when the first server has gone"""
    text = (EXAMPLES.parents[1] / "README.md").read_text(encoding="utf-8").partition("```ini\n")[2].partition("```")[0]
    front, a, b = t.address(), t.address(), t.address()
    config = replaced(text, {"127.0.0.1:7008, [::1]:7008, @front": front, "127.0.0.1:6379": a, "127.0.0.1:6380": b})
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        first.enter_context(redis_server(t, a))
        daemon = stack.enter_context(t.daemon(config))
        check_equal(redis_cli(front, "PING"), "PONG", "answer")
        wait_state(t, daemon, b="down")
        stack.enter_context(redis_server(t, b))
        wait_state(t, daemon, b="up")
        first.close()
        check_equal(redis_cli(front, "CONFIG", "GET", "port").split()[1], str(port_of(b)), "port of the server")


# redis

def redis_cli(address, *command):
    host, _, port = address.rpartition(":")
    return program.run(["redis-cli", "-h", host, "-p", port, *command]).decode().strip()


def redis_server(t, address, *options):
    port = port_of(address)
    return program.server(t, ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.dir,
                              "--repl-diskless-sync-delay", "0", "--dbfilename", f"{port}.rdb", *options], port)


def redis_works(front, key):
    """Does a new client write there, and read it again?"""
    with contextlib.suppress(OSError, EOFError), net.connect(front) as client:
        client.sendall(f"SET {key} 1\r\nGET {key}\r\n".encode())
        return net.read_exactly(client, 12) == b"+OK\r\n$1\r\n1\r\n"
    return False


@test(needs=["redis-server", "redis-cli"], timeout=90, plain_only=True)
def redis(t):
    """redis.ini: clients write to the master, to the other server when that has become master, and to the first one
    again after it came back; a session with a master that becomes a replica ends"""
    front, a, b = t.address(), t.address(), t.address()
    config = example("redis.ini", {"*:6379": front, "10.0.0.11:6379": a, "10.0.0.12:6379": b})
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        first.enter_context(redis_server(t, a))
        stack.enter_context(redis_server(t, b, "--replicaof", *a.split(":")))
        t.eventually(lambda: "master_link_status:up" in redis_cli(b, "INFO", "replication"), "b is a replica",
                     within=20)
        daemon = stack.enter_context(t.daemon(config))
        wait_state(t, daemon, a="up", b="down")
        check(redis_works(front, "before"), "no answer at first")
        check_equal(redis_cli(front, "CONFIG", "GET", "port").split()[1], a.split(":")[1], "port of the server")

        first.close()
        redis_cli(b, "REPLICAOF", "NO", "ONE")
        t.eventually(lambda: redis_works(front, "after"), "clients have the other server", within=FAILOVER_S)
        check_equal(redis_cli(b, "MGET", "before", "after").split(), ["1", "1"], "what the other server has")

        wait_state(t, daemon, a="down", b="up")
        first.enter_context(redis_server(t, a, "--replicaof", *b.split(":")))
        t.eventually(lambda: redis_cli(a, "GET", "after") == "1", "a has caught up", within=20)
        check(redis_works(front, "meanwhile"), "the replica that came back is in the way")
        with net.connect(front) as session:
            session.sendall(b"PING\r\n")
            check_equal(net.read_exactly(session, 7), b"+PONG\r\n", "answer")
            redis_cli(a, "REPLICAOF", "NO", "ONE")
            redis_cli(b, "REPLICAOF", *a.split(":"))
            check_equal(net.ending(session), "reset", "end of the session with a master that is none any more")
        wait_state(t, daemon, a="up", b="down")
        check(redis_works(front, "again"), "no answer in the end")
        check_equal(redis_cli(a, "GET", "again"), "1", "what the first server has")


# PostgreSQL

def postgres_bin(name):
    """Debian has the programs of the server in no directory of PATH."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    path = found[-1] if found else shutil.which(name)
    check(path, f"not installed: postgresql ({name})")
    return path


def as_postgres(*command):
    """PostgreSQL refuses to run as root."""
    return [*(["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if is_root() else []), *command]


POSTGRES_CONF = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
max_wal_senders = 4
shared_buffers = 16MB
dynamic_shared_memory_type = mmap
"""
POSTGRES_HBA = """
host postgres    reactord 127.0.0.1/32 trust
host all         owner    127.0.0.1/32 scram-sha-256
host replication owner    127.0.0.1/32 trust
"""


UNSEEN_IN_POSTGRES = ("connection to client lost|could not receive|unexpected EOF on client|incomplete startup|"
                      "too many connections")


class Postgres:
    """PostgreSQL servers of this test, in a directory of their own."""

    def __init__(self, t):
        self.t = t
        self.dir = t.path("postgres")
        os.mkdir(self.dir)
        if is_root():
            shutil.chown(self.dir, "postgres", "postgres")

    def data(self, address):
        return f"{self.dir}/{port_of(address)}"

    def create(self, address):
        password = self.t.write("password", "secret")
        os.chmod(password, 0o644)
        program.run(as_postgres(postgres_bin("initdb"), "-N", "-A", "trust", "-U", "owner", "--no-locale",
                                f"--pwfile={password}", "-D", self.data(address)))
        for name, text in (("postgresql.conf", POSTGRES_CONF), ("pg_hba.conf", POSTGRES_HBA)):
            with open(f"{self.data(address)}/{name}", "w", encoding="ascii") as f:
                f.write(text)

    def copy(self, primary, address):
        program.run(as_postgres(postgres_bin("pg_basebackup"), "-R", "-N", "-c", "fast", "-D", self.data(address), "-d",
                                f"host=127.0.0.1 port={port_of(primary)} user=owner"))

    def server(self, address):
        port = port_of(address)
        return program.server(self.t, as_postgres(postgres_bin("postgres"), "-D", self.data(address), "-p", port), port)


def psql_where(address):
    """Whom psql connects to, as a client that logs in with a password."""
    return f"host=127.0.0.1 port={port_of(address)} user=owner password=secret dbname=postgres connect_timeout=10"


def psql(address, sql):
    """What psql prints for such a client."""
    return program.run(["psql", "-XAtqw", "-c", sql, psql_where(address)]).decode().strip()


def psql_eventually(t, address, sql, wanted):
    def answers():
        with contextlib.suppress(Failed):
            return psql(address, sql) == wanted
        return False
    t.eventually(answers, f"psql answers {wanted!r} to {sql!r}", within=FAILOVER_S)


@test(needs=["psql"], timeout=120, plain_only=True)
def postgres(t):
    """postgres.ini: psql writes to the primary on one port and reads from the replica on the other; when
    the primary has gone and the replica is promoted, it writes there; checks leave nothing in PostgreSQL's log"""
    write, read, a, b, c = (t.address() for _ in range(5))
    config = example("postgres.ini", {"*:5432": write, "*:5433": read, "10.0.0.11:5432": a, "10.0.0.12:5432": b,
                                      "10.0.0.13:5432": c})
    cluster, role = Postgres(t), "SELECT pg_is_in_recovery(), inet_server_port()"
    cluster.create(a)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        first.enter_context(cluster.server(a))
        psql_eventually(t, a, "SELECT 1", "1")
        psql(a, "CREATE ROLE reactord LOGIN CONNECTION LIMIT 5; CREATE TABLE notes (note text)")
        cluster.copy(a, b)
        stack.enter_context(cluster.server(b))
        daemon = stack.enter_context(t.daemon(config))
        psql_eventually(t, write, role, f"f|{port_of(a)}")
        psql_eventually(t, read, role, f"t|{port_of(b)}")
        psql(write, "INSERT INTO notes VALUES ('before')")
        psql_eventually(t, read, "SELECT note FROM notes", "before")

        first.close()
        psql(b, "SELECT pg_promote()")
        psql_eventually(t, write, role, f"f|{port_of(b)}")
        psql(write, "INSERT INTO notes VALUES ('after')")
        check_equal(psql(b, "SELECT note FROM notes").split(), ["before", "after"], "what is in the other server")
        t.eventually(lambda: daemon.log_lines("upstream postgres-replicas: server b: down"), "no replica is left",
                     within=FAILOVER_S)
    log = Path(t.path("setpriv.log" if is_root() else "postgres.log")).read_text(encoding="utf-8", errors="replace")
    check(not re.search(UNSEEN_IN_POSTGRES, log), log)


# Application servers: nginx

APP_SERVER = """
    server {{
        listen {address} proxy_protocol;
        location = /healthz {{ return 200 ok; }}
        location / {{ return 200 "$proxy_protocol_addr {name}"; }}
    }}
"""


@contextlib.contextmanager
def app_servers_of(t, addresses):
    """nginx as all of these servers, which answer with the client's address and their name."""
    blocks = "".join(APP_SERVER.format(name=name, address=address) for name, address in addresses.items())
    config = re.sub(r"    server \{.*?\n    \}\n", lambda _: blocks,
                    program.NGINX_CONF.format(dir=t.dir, port=0), flags=re.DOTALL)
    command = ["nginx", "-p", t.dir, "-e", t.path("nginx-error.log"), "-c", t.write("nginx.conf", config)]
    with program.server(t, command, max(map(port_of, addresses.values()))):
        yield


class Browser:
    """A client of that address, which keeps its connection."""

    def __init__(self, front, client):
        self.connection = http.client.HTTPConnection(front, timeout=net.LIMIT_S, source_address=(client, 0))

    def get(self):
        """Client and server, as the server says."""
        self.connection.request("GET", "/")
        return self.connection.getresponse().read().decode().split()

    def close(self):
        self.connection.close()


@test(needs=["nginx"], timeout=60, plain_only=True)
def app_servers(t):
    """app-servers.ini: each of ten servers sees its clients' addresses; a client has 50 connections; when
    all servers have 20, a client waits until one of these ends; each has its line of JSON"""
    front, log = t.address(), t.path("app.json")
    addresses = {f"app{n:02}": t.address() for n in range(1, 11)}
    places = {f"10.0.1.{10 + n}:8080": address for n, address in enumerate(addresses.values(), 1)}
    config = example("app-servers.ini", {"*:80": front, "/var/log/reactord/app.json": log, **places})
    with contextlib.ExitStack() as stack:
        stack.enter_context(app_servers_of(t, addresses))
        daemon = stack.enter_context(t.daemon(config))
        open_ones = [Browser(front, f"127.0.0.{2 + n // 50}") for n in range(200)]
        for browser in open_ones:
            stack.callback(browser.close)
        answers = [browser.get() for browser in open_ones]
        check_equal([client for client, _ in answers], [f"127.0.0.{2 + n // 50}" for n in range(200)], "clients")
        check_equal({name: [got for _, got in answers].count(name) for name in addresses}, dict.fromkeys(addresses, 20),
                    "connections of each server")
        with contextlib.suppress(ConnectionError):
            check(not Browser(front, "127.0.0.2").get(), "a client has 51 connections")

        late = Browser(front, "127.0.0.6")
        stack.callback(late.close)
        waiting = net.Task(late.get)
        t.eventually(lambda: daemon.counts("upstream app ").get("waiting") == 1, "the client waits", within=8)
        open_ones[0].close()
        check_equal(waiting.result(), ["127.0.0.6", answers[0][1]], "who is served where")
    lines = [json.loads(line) for line in Path(log).read_text(encoding="utf-8").splitlines()]
    check_equal(len(lines), 202, "lines of the access log")
    check_equal({line["client"] for line in lines}, {f"127.0.0.{n}" for n in range(2, 7)}, "clients in the log")
    check_equal([line["server"] for line in lines if line["reason"] == "limit"], [None], "clients above their limit")
    check_equal(len({line["unique_id"] for line in lines}), 202, "IDs")
    check(max(line["queue_time"] or 0 for line in lines) > 0, "nobody waited")


# SMTP: Postfix

POSTFIX_MAIN = """
compatibility_level = 3.6
queue_directory = {dir}/queue
data_directory = {dir}/data
maillog_file = /dev/stdout
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.example.com
mydestination =
alias_maps =
smtpd_peername_lookup = no
smtpd_recipient_restrictions = reject_unauth_destination
virtual_mailbox_domains = example.com
virtual_mailbox_base = {dir}/mail
virtual_mailbox_maps = static:inbox/
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
"""
POSTFIX_MASTER = """
127.0.0.1:{mx1} inet n - n - - smtpd -o smtpd_upstream_proxy_protocol=haproxy
127.0.0.1:{mx2} inet n - n - - smtpd -o smtpd_upstream_proxy_protocol=haproxy
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
proxymap unix - - n - - proxymap
postlog unix-dgram n - n - 1 postlogd
"""


@contextlib.contextmanager
def postfix(t, mx1, mx2):
    """Postfix, which expects the PROXY protocol on both; gives the directory of the mail that came."""
    home = t.path("postfix")
    for name in ("", "/etc", "/queue", "/data", "/mail"):
        os.mkdir(home + name)
    shutil.chown(home + "/data", "postfix")
    os.chmod(home + "/mail", 0o777)  # the user that mail is delivered as makes its inbox
    t.write("postfix/etc/main.cf", POSTFIX_MAIN.format(dir=home))
    t.write("postfix/etc/master.cf", POSTFIX_MASTER.format(mx1=port_of(mx1), mx2=port_of(mx2)))
    program.run(["postfix", "-c", home + "/etc", "check"])
    with program.server(t, ["/usr/lib/postfix/sbin/master", "-c", home + "/etc", "-d"], port_of(mx2)):
        yield home + "/mail/inbox/new"


def send_mail(front, client):
    with smtplib.SMTP("127.0.0.1", port_of(front), "client.example.net", net.LIMIT_S, (client, 0)) as smtp:
        smtp.sendmail("me@example.net", "you@example.com", f"Subject: from {client}\r\n\r\nhello\r\n")


@test(needs=["postfix"], timeout=60, plain_only=True)
def smtp(t):
    """smtp.ini: mail comes through to Postfix, which notes the client's address; a client of the list is reset, and an
    eleventh connection closed; Postfix takes the checks"""
    if not is_root():
        raise Skipped("Postfix runs as root only")
    front, mx1, mx2, log = t.address(), t.address(), t.address(), t.path("smtp.log")
    config = example("smtp.ini", {"*:25": front, "10.0.2.11:10025": mx1, "10.0.2.12:10025": mx2,
                                  "/var/log/reactord/smtp.log": log})
    deny = t.write("deny", (EXAMPLES / "smtp.deny").read_text(encoding="ascii") + "127.0.0.9\n")
    with postfix(t, mx1, mx2) as inbox, t.daemon(config, environment={"SMTP_DENY": deny}) as daemon:
        for client in ("127.0.0.2", "127.0.0.3"):
            send_mail(front, client)
        t.eventually(lambda: os.path.isdir(inbox) and len(os.listdir(inbox)) == 2, "both are delivered", within=20)
        mails = [Path(inbox, name).read_text(encoding="ascii") for name in os.listdir(inbox)]
        said = {(re.search(r"\[(\S+)\]", mail).group(1), re.search("from (127.*)", mail).group(1)) for mail in mails}
        check_equal(said, {(client, client) for client in ("127.0.0.2", "127.0.0.3")}, "Received from, and Subject")

        try:
            send_mail(front, "127.0.0.9")
            check(False, "a client of the list is served")
        except (ConnectionError, smtplib.SMTPServerDisconnected):
            check_equal(daemon.counts("listen smtp").get("denied"), 1, "clients denied")
        with contextlib.ExitStack() as stack:
            for _ in range(10):
                client = stack.enter_context(net.connect(front))
                check_equal(net.read_exactly(client, 4), b"220 ", "greeting")
            check_equal(net.fate(front), "fin", "end of one too many")
        t.eventually(lambda: "lost connection after CONNECT from" in postfix_log(t), "a check is made", within=20)
        check_equal({s["state"] for s in servers(daemon).values()}, {"up"}, "states of the servers")
        check("proxy" not in postfix_log(t), postfix_log(t))
    check_equal(len(Path(log).read_text(encoding="ascii").splitlines()), 14, "lines of the access log")


def postfix_log(t):
    return Path(t.path("master.log")).read_text(encoding="utf-8", errors="replace")


# syslog: rsyslog

RSYSLOG_CONF = """
module(load="imtcp")
template(name="message" type="string" string="%msg%\\n")
input(type="imtcp" address="127.0.0.1" port="{port}")
action(type="omfile" file="{out}" template="message")
"""


@contextlib.contextmanager
def rsyslog(t, name, address):
    config = t.write(f"{name}.conf", RSYSLOG_CONF.format(port=port_of(address), out=t.path(f"{name}.out")))
    with program.server(t, ["rsyslogd", "-n", "-f", config, "-i", t.path(f"{name}.pid")], port_of(address)):
        yield


def received(t, *names):
    """The messages that these receivers have."""
    found = []
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            found += Path(t.path(f"{name}.out")).read_text(encoding="ascii").split()
    return sorted(found)


def steer(t, *command):
    """What reactorctl says to the daemon with the example's admin socket."""
    finished = t.reactorctl("-s", t.path("admin.sock"), "--timeout", "20s", *command)
    check_equal((finished.code, finished.err), (0, ""), f"reactorctl {command}")


class Sender:
    """Sends numbered messages, some on each connection, until it is told to end; each connection ends with
    its half-close and that of the receiver."""

    def __init__(self, name, address, frame):
        self.name, self.address, self.frame = name, address, frame
        self.sent, self.ending = [], threading.Event()
        self.task = net.Task(self._send)

    def _send(self):
        while not self.ending.is_set():
            with net.connect(self.address) as s:
                for _ in range(50):
                    self.sent.append(f"{self.name}-{len(self.sent)}")
                    s.sendall(self.frame(f"<13>1 2026-11-24T12:00:00Z host app - - - {self.sent[-1]}".encode()))
                    self.ending.wait(0.002)
                s.shutdown(socket.SHUT_WR)
                check_equal(net.read_to_end(s), b"", "what a receiver says")

    def end(self):
        self.ending.set()
        self.task.result()


@test(needs=["rsyslogd", "logger"], timeout=60, plain_only=True)
def syslog(t):
    """syslog.ini: a receiver is replaced while six senders go on, with octet counting and in lines, and
    each message has come to one receiver, once"""
    counted, lines, a, b, c, new = (t.address() for _ in range(6))
    config = example("syslog.ini", {"/run/reactord/admin.sock": t.path("admin.sock"), "*:601": counted, "*:514": lines, "10.0.3.11:601": a, "10.0.3.12:601": b,
                                    "10.0.3.13:601": c})
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(contextlib.ExitStack())
        old.enter_context(rsyslog(t, "a", a))
        stack.enter_context(rsyslog(t, "b", b))
        stack.enter_context(rsyslog(t, "c", c))
        daemon = stack.enter_context(t.daemon(config))
        senders = [Sender(f"s{n}", *kind) for n, kind in enumerate(3 * [
            (counted, lambda m: b"%d %s" % (len(m), m)), (lines, lambda m: m + b"\n")])]
        t.eventually(lambda: received(t, "a") and received(t, "b") and received(t, "c"), "all receive")

        steer(t, "drain", "receivers/a", "--wait")
        check_equal(servers(daemon)["receivers/a"]["connections"], "0", "senders of a")
        old.close()
        stack.enter_context(rsyslog(t, "new", new))
        daemon.config_path.write_text(config.replace(f"server.a = {a}", f"server.a = {new}"), encoding="utf-8")
        steer(t, "reload")
        t.eventually(lambda: received(t, "new"), "the new one receives")
        for sender in senders:
            sender.end()
        for address, option in ((counted, "--octet-count"), (lines, "-i")):
            program.run(["logger", "-n", "127.0.0.1", "-P", port_of(address), "-T", "--rfc5424", option, "logger"])
        sent = sorted([message for sender in senders for message in sender.sent] + ["logger", "logger"])
        t.eventually(lambda: len(received(t, "a", "b", "c", "new")) >= len(sent), "all have come")
        check_equal(received(t, "a", "b", "c", "new"), sent, "messages received")
