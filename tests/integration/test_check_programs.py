"""check_programs: each named check against the real program: up, loading or a replica, a wrong password, hung, killed.

mysql and ldap need servers that `make deps-test` does not install: `make test-programs` does, and runs them.
"""

import contextlib
import os
import re
import shutil
import signal
from pathlib import Path

from support import net, program
from support.case import Skipped, check, check_equal, is_root, test
from support.example_files import port_of
from test_checks import checked
from test_examples import Postgres, UNSEEN_IN_POSTGRES, psql, redis_cli
from test_examples_services import postfix

KEYS = 60000  # so many that a server which takes 1 ms for each loads them until it is told to hurry


class Checked:
    """A daemon that checks one server, and how often that went down and came up."""

    def __init__(self, t, address, **options):
        self.t, self.downs, self.ups = t, 0, 0
        options = {"check_timeout": "3s", "check_interval": "200ms", **options}
        self.config = checked(t.address(), {"a": address}, **options)
        self.daemon = t.daemon(self.config)

    def down(self, why, first=False):
        """It goes down for that reason; ${first}: in its first check."""
        self.downs += 1
        self.t.eventually(lambda: len(self.daemon.log_lines("server a: down: ")) >= self.downs, f"it is down: {why}", within=60)
        lines = self.daemon.log_lines("server a: down: ")
        times = "its first check failed" if first else "checks failed in a row: 3, the last"
        check_equal(len(lines), self.downs, "times it went down")
        check(re.search(f"down: {times}: {why};", lines[-1]), f"not {why}: {lines[-1]}")

    def up(self):
        self.ups += 1
        self.t.eventually(lambda: len(self.daemon.log_lines("server a: up: ")) >= self.ups, "it is up", within=60)

    def hangs(self, pids, why):
        """Stopped it goes down for that reason, and comes up when it goes on."""
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            self.down(why)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        self.up()


def unwanted(step, answer):
    return rf"step {step} \(expect !.*\): unwanted text in the answer: .*{answer}.*"


def late(*steps):
    return rf"step [{''.join(map(str, steps))}] \(.*\): timed out .*"


@contextlib.contextmanager
def redis(t, address, *options):
    port = port_of(address)
    with program.server(t, ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.dir,
                            *options], port) as process:
        yield process


@test(needs=("redis-server", "redis-cli"), timeout=60, plain_only=True, each={"name": ["redis", "redis-master"]})
def redis_states(t, name):
    """redis-server is up for check = {name}, and down while it loads its data, wants a password, hangs, and is killed; as a
    replica it is down for redis-master alone"""
    a, other = t.address(), t.address()
    found = Checked(t, a, check=name)
    with found.daemon:
        found.down("connection refused", first=True)
        with redis(t, a, "--enable-debug-command", "local", "--loading-process-events-interval-bytes", "1024") as process:
            found.up()
            redis_cli(a, "CONFIG", "SET", "requirepass", "secret")
            found.down(unwanted(2, "-NOAUTH"))
            program.run(["redis-cli", "-p", port_of(a), "-a", "secret", "--no-auth-warning", "CONFIG", "SET", "requirepass", ""])
            found.up()
            with redis(t, other):
                redis_cli(a, "REPLICAOF", *other.split(":"))
                t.eventually(lambda: "master_link_status:up" in redis_cli(a, "INFO", "replication"), "it is a replica")
                if name == "redis-master":
                    found.down(unwanted(6, "role:slave"))
                redis_cli(a, "REPLICAOF", "NO", "ONE")
                if name == "redis-master":
                    found.up()
            redis_cli(a, "EVAL", f"for i = 1, {KEYS} do redis.call('SET', 'key' .. i, i) end", "0")
            redis_cli(a, "CONFIG", "SET", "key-load-delay", "1000")
            loading = net.Task(redis_cli, a, "DEBUG", "RELOAD")
            found.down(unwanted(2, "-LOADING"))
            redis_cli(a, "CONFIG", "SET", "key-load-delay", "0")
            check_equal(loading.result(), "OK", "end of its loading")
            found.up()
            found.hangs([process.pid], late(2, 3))
            process.kill()
            found.down("connection refused")


@test(needs=("psql",), timeout=120, plain_only=True)
def pgsql_states(t):
    """PostgreSQL is up for check = pgsql while it asks for a password, also as a replica, and down for an unknown user, as a
    replica that takes no connections, when it hangs, and is killed; the checks leave nothing in its log"""
    a, b = t.address(), t.address()
    cluster, options = Postgres(t), {"check": "pgsql", "check_user": "owner"}
    found, replica = Checked(t, a, **options), Checked(t, b, **options)
    cluster.create(a)
    with found.daemon:
        found.down("connection refused", first=True)
        with cluster.server(a):
            found.up()
            cluster.copy(a, b)
            with replica.daemon:
                replica.down("connection refused", first=True)
                with cluster.server(b):
                    replica.up()
                    check_equal(psql(b, "SELECT pg_is_in_recovery()"), "t", "it is a replica")
                replica.down("connection refused")
            log = Path(t.path("setpriv.log" if is_root() else "postgres.log")).read_text(encoding="utf-8", errors="replace")
            check(not re.search(UNSEEN_IN_POSTGRES, log), log)
            with open(f"{cluster.data(b)}/postgresql.conf", "a", encoding="ascii") as f:
                f.write("hot_standby = off\n")
            cold = Checked(t, b, **options)
            with cluster.server(b), cold.daemon:
                cold.down(unwanted(2, "57P03"), first=True)

            found.daemon.reload(found.config.replace("owner", "stranger"))
            found.down(unwanted(2, "28000"))
            found.daemon.reload(found.config)
            found.up()
            postmaster = int(Path(cluster.data(a), "postmaster.pid").read_text(encoding="ascii").split()[0])
            found.hangs([postmaster], late(2, 3))
            os.kill(postmaster, signal.SIGKILL)
            found.down("connection refused")


# smtp: Postfix

def family_of(pid):
    """A process and those that it has started."""
    with contextlib.suppress(FileNotFoundError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return [pid, *(one for child in children for one in family_of(int(child)))]
    return []


@test(needs=("postfix",), timeout=90, plain_only=True)
def smtp_states(t):
    """Postfix is up for check = smtp, and down when it turns the checks away, hangs, and is killed; no check is a lost
    connection for it"""
    if not is_root():
        raise Skipped("Postfix runs as root only")
    mx1, mx2 = t.address(), t.address()
    found = Checked(t, mx1, check="smtp", check_timeout="5s", send_proxy="v2")
    log = Path(t.path("master.log"))
    with found.daemon:
        found.down("connection refused", first=True)
        with postfix(t, mx1, mx2):
            found.up()
            t.eventually(lambda: "disconnect from" in log.read_text(encoding="utf-8"), "a check is in its log")
            check("lost connection" not in log.read_text(encoding="utf-8"), "a check is a lost connection")
            configure = ["postfix", "-c", t.path("postfix/etc")]
            with open(t.path("postfix/etc/main.cf"), "a", encoding="ascii") as f:
                f.write("smtpd_client_restrictions = reject\nsmtpd_delay_reject = no\n")
            program.run([*configure, "reload"])
            found.down(unwanted(1, "554"))
            with open(t.path("postfix/etc/main.cf"), "a", encoding="ascii") as f:
                f.write("smtpd_client_restrictions =\n")
            program.run([*configure, "reload"])
            found.up()
            master = int(Path(t.path("postfix/queue/pid/master.pid")).read_text(encoding="ascii"))
            found.hangs(family_of(master), late(2))
            for pid in family_of(master):
                os.kill(pid, signal.SIGKILL)
            found.down("connection refused")


# mysql: MariaDB

def needs(*programs):
    """Debian's packages of these are large, or their servers in nobody's way: they are no part of `make check`."""
    for name in programs:
        if not shutil.which(name):
            raise Skipped("needs a server that make test-programs installs")


MARIADB_USERS = "CREATE USER reactord@'127.0.0.1' IDENTIFIED VIA mysql_native_password USING '';"


class MariaDb:
    """A MariaDB server of this test."""

    def __init__(self, t, address):
        self.t, self.address, self.socket = t, address, t.path("mariadb.sock")
        self.data = t.path("mariadb")
        os.mkdir(self.data)
        self.user = ["--user=mysql"] if is_root() else []
        if is_root():
            shutil.chown(self.data, "mysql", "mysql")
        program.run(["mariadb-install-db", "--no-defaults", *self.user, f"--datadir={self.data}", "--skip-test-db",
                     "--auth-root-authentication-method=normal"])
        self.users = t.write("users.sql", MARIADB_USERS)
        os.chmod(self.users, 0o644)

    def server(self):
        host, port = self.address.split(":")
        return program.server(self.t, ["mariadbd", "--no-defaults", *self.user, f"--datadir={self.data}", f"--port={port}",
                                       f"--bind-address={host}", f"--socket={self.data}/sock", f"--pid-file={self.data}/pid",
                                       f"--init-file={self.users}", "--connect-timeout=60", "--max-connect-errors=1"],
                              int(port))

    def query(self, sql):
        return program.run(["mariadb", "--no-defaults", "-N", "-u", "root", "-S", f"{self.data}/sock", "-e", sql]).decode().split()


@test(timeout=180, plain_only=True)
def mysql_states(t):
    """MariaDB is up for check = mysql, which is no failed login for it, also when it is read-only, and down when it wants a
    password, has no connection left, hangs, and is killed"""
    needs("mariadbd", "mariadb", "mariadb-install-db")
    a = t.address()
    mariadb, found = MariaDb(t, a), Checked(t, a, check="mysql")
    with found.daemon:
        found.down("connection refused", first=True)
        with mariadb.server() as process:
            found.up()
            mariadb.query("SET GLOBAL read_only = ON")
            begun = int(mariadb.query("SHOW GLOBAL STATUS LIKE 'Connections'")[1])
            t.eventually(lambda: int(mariadb.query("SHOW GLOBAL STATUS LIKE 'Connections'")[1]) > begun + 30, "more checks")
            check_equal(mariadb.query("SHOW GLOBAL STATUS LIKE 'Aborted%'"),
                        ["Aborted_clients", "0", "Aborted_connects", "0", "Aborted_connects_preauth", "0"], "after the checks")
            check_equal(len(found.daemon.log_lines("server a: down: ")), found.downs, "times it went down")
            mariadb.query("ALTER USER reactord@'127.0.0.1' IDENTIFIED BY 'secret'")
            found.down(unwanted(5, "Access denied"))
            mariadb.query("ALTER USER reactord@'127.0.0.1' IDENTIFIED BY ''; FLUSH HOSTS")
            found.up()
            mariadb.query("SET GLOBAL max_connections = 10")
            with contextlib.ExitStack() as held:
                for _ in range(12):
                    held.enter_context(net.connect(a))
                found.down(unwanted(1, "Too many connections"))
            found.up()
            found.hangs([process.pid], late(1, 2))
            process.kill()
            found.down("connection refused")


# ldap: OpenLDAP

SLAPD_CONF = """
include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
{options}
database mdb
suffix "dc=example,dc=com"
directory {data}
readonly on
"""


def slapd(t, address, options=""):
    data = t.path("ldap")
    os.makedirs(data, exist_ok=True)
    config = t.write("slapd.conf", SLAPD_CONF.format(data=data, options=options))
    return program.server(t, ["slapd", "-f", config, "-h", f"ldap://{address}/", "-d", "stats"], port_of(address))


@test(timeout=90, plain_only=True)
def ldap_states(t):
    """slapd is up for check = ldap, read-only as a replica is, and down when it allows no anonymous bind, hangs, and is
    killed; no check is a lost connection for it"""
    needs("slapd")
    a = t.address()
    found = Checked(t, a, check="ldap")
    with found.daemon:
        found.down("connection refused", first=True)
        with slapd(t, a) as process:
            found.up()
            log = Path(t.path("slapd.log"))
            t.eventually(lambda: log.read_text(encoding="utf-8").count("UNBIND") > 10, "checks are in its log")
            check("connection lost" not in log.read_text(encoding="utf-8"), "a check is a lost connection")
            found.hangs([process.pid], late(2))
            process.kill()
            found.down("connection refused")
    strict = Checked(t, a, check="ldap")
    with slapd(t, a, "disallow bind_anon"), strict.daemon:
        strict.down(unwanted(3, "anonymous bind disallowed"), first=True)
