"""examples: each file of conf/examples in front of the programs that it is for.

A test puts its own ports and paths in place of those in the file, and leaves the rest as it is shipped.
"""

import contextlib
import glob
import os
import re
import shutil
from pathlib import Path

from support import net, program
from support.case import CASES, Failed, check, check_equal, is_root, test
from support.example_files import EXAMPLES, example, port_of, replaced, servers

FAILOVER_S = 30  # what a failover may take on a busy machine; as shipped it is two or three seconds


def wait_state(t, daemon, **states):
    """Wait until these servers, by their ID, have these states in each of their upstreams."""
    def as_wanted():
        now = {name: server["state"] for name, server in servers(daemon).items()}
        return all(state == states.get(name.partition("/")[2], state) for name, state in now.items())
    t.eventually(as_wanted, f"servers become {states}", within=FAILOVER_S)


def errors_of(done):
    """What it said, without the warning of too few open files, which is about this machine."""
    return [line for line in done.err.splitlines() if "max_connections: cannot be reached: " not in line]


@test(each={"name": sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.ini"))})
def valid(t, name):
    """reactord -t accepts {name} as shipped, without a warning, and it has a test here"""
    done = t.reactord("-t", "-c", EXAMPLES / name, env={**os.environ, "SMTP_DENY": str(EXAMPLES / "smtp.deny")})
    check_equal((done.code, errors_of(done)), (0, []), "exit code and errors")
    ours = {case.function.__name__ for case in CASES if case.theme == "examples"}
    check(re.sub(r"\W", "_", name.removesuffix(".ini")) in ours, "no test")


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
listen_addresses = '127.0.0.1, 127.0.0.11, 127.0.0.12'
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


def psql_where(address, limit_s=10):
    """Whom psql connects to, as a client that logs in with a password."""
    return f"host=127.0.0.1 port={port_of(address)} user=owner password=secret dbname=postgres connect_timeout={limit_s}"


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
