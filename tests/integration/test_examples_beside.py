"""examples: those of conf/examples/from-haproxy and from-nginx, beside the program that the other file is for.

Both are in front of the same servers, and after each fault clients go to both, one after the other, until all of a round are
served as they should be. Intervals of checks are shorter than in the files, for both. With EXAMPLES_FIGURES=FILE each fault
has its line there: how many clients came until then, and how many of them were lost (make bench-examples).
"""

import contextlib
import shutil

from support import net, program, tls
from support.beside import CLIENT_LIMIT_S, Beside, greeted, named, over_https, over_ssh, served, told
from support.case import Failed, check_equal, test
from support.example_files import port_of
from support.member import Member
from test_examples import Postgres, psql, psql_eventually, psql_where, redis_cli, redis_server

THEME = "examples"

PATIENT = ({"timeout check 2s": "timeout check 4s"}, {"check_timeout = 2s": "check_timeout = 4s"})
IN_TURN = {"fail_timeout=10s": "fail_timeout=1s"}, {"eject_time = 10s": "eject_time = 1s",
                                                    "eject_time_max = 10s": "eject_time_max = 1s"}


def checked_each(seconds):
    """The same checks five times as often, in HAProxy and here."""
    ms = f"{seconds * 200}ms"
    return ({**PATIENT[0], f"default-server inter {seconds}s": f"default-server inter {ms}"},
            {**PATIENT[1], f"check_interval = {seconds}s": f"check_interval = {ms}"})



def per_file(*pairs):
    """What is replaced in the peer's file and in ours, all of them together."""
    return {k: v for theirs, _ in pairs for k, v in theirs.items()}, {k: v for _, ours in pairs for k, v in ours.items()}


def check_port(was, port):
    return {f"check port {was}": f"check port {port}"}, {f"check_port={was}": f"check_port={port}"}


def addresses(t, count):
    """One for each server, on hosts of their own, so that all can have one check_port."""
    return [f"127.0.0.{11 + n}:{t.port()}" for n in range(count)]


@contextlib.contextmanager
def members(t, names, at, **how):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Member(t, name, address, **how)) for name, address in zip(names, at)]


def ends(held):
    """Both sessions that were held end, on the side of their programs."""
    for s, _ in held:
        with contextlib.closing(s):
            net.ending(s)


# PostgreSQL with Patroni

def psql_role(names):
    """Asks PostgreSQL who it is; a replica says so."""
    @served
    def ask(front):
        try:
            said = program.run(["psql", "-XAtqw", "-c", "SELECT pg_is_in_recovery(), inet_server_port()",
                                psql_where(front, CLIENT_LIMIT_S)]).decode().strip()
        except Failed:
            return None
        replica, port = said.split("|")
        return names[int(port)] + (" as a replica" if replica == "t" else "")
    return ask


@test(needs=["haproxy", "psql"], timeout=120, plain_only=True)
def from_haproxy_patroni(t):
    """patroni.cfg beside patroni.ini, with PostgreSQL: both write to the primary and read from the replica; the primary is
    killed, the replica promoted, and the first one comes back as its replica"""
    at, port = addresses(t, 2), t.port()
    ask = psql_role({port_of(address): name for address, name in zip(at, ("pg1", "pg2"))})
    beside = Beside(t, "from-haproxy", "patroni", ("5000", "5001"), {"10.0.4.11:5432": at[0], "10.0.4.12:5432": at[1]},
                    per_file(PATIENT, checked_each(3), check_port(8008, port)))
    cluster = Postgres(t)
    cluster.create(at[0])
    hosts = [f"{address.partition(':')[0]}:{port}" for address in at]
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        first.enter_context(cluster.server(at[0]))
        psql_eventually(t, at[0], "SELECT 1", "1")
        cluster.copy(*at)
        stack.enter_context(cluster.server(at[1]))
        one, two = stack.enter_context(members(t, ("patroni1", "patroni2"), hosts, kind="https", role="primary"))
        two.becomes("replica")
        stack.enter_context(beside.running())
        beside.after("start", {"5000": (ask, {"pg1"}), "5001": (ask, {"pg2 as a replica"})})

        one.is_killed()
        first.close()
        psql(at[1], "SELECT pg_promote()")
        two.becomes("primary")
        beside.after("primary killed, replica promoted", {"5000": (ask, {"pg2"}), "5001": (ask, {None})},
                     {"primary/pg1": "down", "primary/pg2": "up", "replicas/pg2": "down"})

        shutil.rmtree(cluster.data(at[0]))
        cluster.copy(at[1], at[0])
        stack.enter_context(cluster.server(at[0]))
        one.becomes("replica")
        one.comes_back()
        beside.after("first one back as a replica", {"5000": (ask, {"pg2"}), "5001": (ask, {"pg1 as a replica"})},
                     {"primary/pg1": "down", "replicas/pg1": "up"})


@test(needs=["nginx"], timeout=90, plain_only=True)
def from_nginx_patroni(t):
    """patroni.conf beside patroni.ini: when the primary comes back as a replica, nginx sends writers there, reactord does
    not"""
    at, port = addresses(t, 2), t.port()
    beside = Beside(t, "from-nginx", "patroni", ("5000", "5001"), {"10.0.4.11:5432": at[0], "10.0.4.12:5432": at[1]},
                    per_file(IN_TURN, ({}, checked_each(2)[1]), ({}, check_port(8008, port)[1])))
    with members(t, ("pg1", "pg2"), at, check_port=port, role="primary") as (one, two), beside.running():
        two.becomes("replica")
        beside.after("start", {"5000": (greeted, {"pg1"}), "5001": (greeted, {"pg1", "pg2"})})
        one.is_killed()
        two.becomes("primary")
        beside.after("primary killed, replica promoted", {"5000": (greeted, {"pg2"}), "5001": (greeted, {"pg2"})})
        one.becomes("replica")
        one.comes_back()
        beside.after("first one back as a replica", {"5000": (greeted, ({"pg1"}, {"pg2"})),
                                                     "5001": (greeted, {"pg1", "pg2"})})


# MariaDB with Galera

@test(needs=["haproxy"], timeout=90, plain_only=True)
def from_haproxy_galera(t):
    """galera.cfg beside galera.ini: both have one writer, which is killed, comes back to no client, and is used again when
    the second one hangs; sessions of a writer end"""
    at, port = addresses(t, 3), t.port()
    beside = Beside(t, "from-haproxy", "galera", ("3306", "3307"),
                    {f"10.0.5.{11 + n}:3306": address for n, address in enumerate(at)},
                    per_file(checked_each(2), check_port(9200, port)))
    with members(t, ("db1", "db2", "db3"), at, check_port=port) as (one, two, three), beside.running():
        beside.after("start", {"3306": (greeted, {"db1"}), "3307": (greeted, {"db1", "db2", "db3"})},
                     dict.fromkeys(("writer/db1", "writer/db2", "readers/db3"), "up"))
        held = beside.holds("3306")
        one.is_killed()
        ends(held)
        beside.after("writer killed", {"3306": (greeted, {"db2"}), "3307": (greeted, {"db2", "db3"})}, {"writer/db1": "down"})
        one.comes_back()
        beside.after("it comes back", {"3306": (greeted, {"db2"}), "3307": (greeted, {"db1", "db2", "db3"})},
                     {"writer/db1": "up", "readers/db1": "up"})
        three.becomes("donor")
        beside.after("a reader is not synced", {"3306": (greeted, {"db2"}), "3307": (greeted, {"db1", "db2"})},
                     {"writer/db3": "down"})
        held = beside.holds("3306")
        check_equal([name for _, name in held], ["db2"] * 2, "writer")
        two.hangs()
        ends(held)
        beside.after("second writer hangs", {"3306": (greeted, {"db1"}), "3307": (greeted, {"db1"})}, {"writer/db2": "down"})
        two.goes_on()


@test(needs=["nginx"], timeout=90, plain_only=True)
def from_nginx_galera(t):
    """galera.conf beside galera.ini: a writer that is killed, and comes back; no client is lost"""
    at = addresses(t, 3)
    beside = Beside(t, "from-nginx", "galera", ("3306", "3307"),
                    {f"10.0.5.{11 + n}:3306": address for n, address in enumerate(at)}, IN_TURN)
    with members(t, ("db1", "db2", "db3"), at) as (one, _, _), beside.running():
        beside.after("start", {"3306": (greeted, {"db1"}), "3307": (greeted, {"db1", "db2", "db3"})})
        one.is_killed()
        beside.after("writer killed", {"3306": (greeted, {"db2"}), "3307": (greeted, {"db2", "db3"})})
        one.comes_back()
        beside.after("it comes back", {"3306": (greeted, {"db1"}), "3307": (greeted, {"db1", "db2", "db3"})})
    check_equal(beside.lost(), 0, "clients lost")


# The API servers of Kubernetes

API_SERVERS = [f"10.0.6.{11 + n}:6443" for n in range(3)]


@test(needs=["haproxy"], timeout=90, plain_only=True)
def from_haproxy_kubernetes(t):
    """kubernetes.cfg beside kubernetes.ini: a server that is not ready though its port answers, one that hangs, both come
    back; then one is killed"""
    at = addresses(t, 3)
    beside = Beside(t, "from-haproxy", "kubernetes", ("6443",), dict(zip(API_SERVERS, at)), checked_each(2))
    certificate = tls.Authority(t).issue("kubernetes")
    with members(t, ("cp1", "cp2", "cp3"), at, kind="https", certificate=certificate) as (one, two, three), beside.running():
        def after(what, names, **states):
            beside.after(what, {"6443": (over_https, names)}, {f"apiservers/{name}": state for name, state in states.items()})
        after("start", {"cp1", "cp2", "cp3"}, cp1="up", cp2="up", cp3="up")
        one.becomes("starting")
        after("one is not ready", {"cp2", "cp3"}, cp1="down")
        two.hangs()
        after("another one hangs", {"cp3"}, cp2="down")
        two.goes_on()
        one.becomes("well")
        after("both are well again", {"cp1", "cp2", "cp3"}, cp1="up", cp2="up")
        three.is_killed()
        after("one is killed", {"cp1", "cp2"}, cp3="down")


@test(needs=["nginx"], timeout=90, plain_only=True)
def from_nginx_kubernetes(t):
    """kubernetes.conf beside kubernetes.ini: a server that is killed, and comes back; nginx goes on to use one that is not
    ready, reactord does not"""
    at = addresses(t, 3)
    shorter = {"fail_timeout=30s": "fail_timeout=1s"}, {"eject_time = 30s": "eject_time = 1s", "eject_time_max = 30s": "eject_time_max = 1s"}
    beside = Beside(t, "from-nginx", "kubernetes", ("6443",), dict(zip(API_SERVERS, at)),
                    per_file(shorter, ({}, checked_each(2)[1])))
    certificate = tls.Authority(t).issue("kubernetes")
    with members(t, ("cp1", "cp2", "cp3"), at, kind="https", certificate=certificate) as (one, _, three), beside.running():
        everybody = {"cp1", "cp2", "cp3"}
        beside.after("start", {"6443": (over_https, everybody)})
        three.is_killed()
        beside.after("one is killed", {"6443": (over_https, {"cp1", "cp2"})})
        three.comes_back()
        beside.after("it comes back", {"6443": (over_https, everybody)})
        one.becomes("starting")
        beside.after("one is not ready", {"6443": (over_https, (everybody, {"cp2", "cp3"}))})


# Ingress nodes that are told their clients' addresses

@test(needs=["haproxy"], timeout=90, plain_only=True)
def from_haproxy_ingress(t):
    """ingress.cfg beside ingress.ini: both tell each client's address, and nothing to the health port; a node is not well,
    is well again, and is killed"""
    at, port = addresses(t, 2), t.port()
    beside = Beside(t, "from-haproxy", "ingress", ("443",), {"10.0.7.11:30443": at[0], "10.0.7.12:30443": at[1]},
                    per_file(checked_each(2), ({"port 10254": f"port {port}"}, {"check_port=10254": f"check_port={port}"})))
    with members(t, ("node1", "node2"), at, kind="proxied", check_port=port) as (one, _), beside.running():
        beside.after("start", {"443": (told, {"node1", "node2"})}, {"https/node1": "up", "https/node2": "up"})
        one.becomes("sick")
        beside.after("a node is not well", {"443": (told, {"node2"})}, {"https/node1": "down"})
        one.becomes("well")
        beside.after("it is well again", {"443": (told, {"node1", "node2"})}, {"https/node1": "up"})
        one.is_killed()
        beside.after("it is killed", {"443": (told, {"node2"})}, {"https/node1": "down"})


@test(needs=["nginx"], timeout=90, plain_only=True)
def from_nginx_ingress(t):
    """ingress.conf beside ingress.ini: both tell each client's address; a node is killed and comes back, and no client is
    lost"""
    plain, secure = addresses(t, 2), addresses(t, 2)
    shorter = {"fail_timeout=5s": "fail_timeout=1s"}, {"eject_time = 5s": "eject_time = 1s", "eject_time_max = 5s": "eject_time_max = 1s"}
    beside = Beside(t, "from-nginx", "ingress", ("80", "443"),
                    {"10.0.7.11:30080": plain[0], "10.0.7.12:30080": plain[1], "10.0.7.11:30443": secure[0],
                     "10.0.7.12:30443": secure[1]}, shorter)
    names = ("node1", "node2")
    with members(t, names, plain, kind="proxied") as one, members(t, names, secure, kind="proxied") as two, beside.running():
        both = {"80": (told, set(names)), "443": (told, set(names))}
        beside.after("start", both)
        one[0].is_killed()
        two[0].is_killed()
        beside.after("a node is killed", {"80": (told, {"node2"}), "443": (told, {"node2"})})
        one[0].comes_back()
        two[0].comes_back()
        beside.after("it comes back", both)
    check_equal(beside.lost(), 0, "clients lost")


# TLS by name, and SSH on one port

NAMES = ("ssh1", "ssh2", "admin1", "shop1", "web1", "web2")


@contextlib.contextmanager
def names_of(t, at):
    """The servers of these names, by them."""
    certificate = tls.Authority(t).issue("example.com")
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(Member(t, name, address, kind="ssh") if name.startswith("ssh") else
                                         Member(t, name, address, certificate=certificate))
               for name, address in at.items()}


def names_places(t, names):
    at = dict(zip(names, addresses(t, len(names))))
    was = {name: f"10.0.8.{11 + NAMES.index(name)}:{22 if name.startswith('ssh') else 8443}" for name in names}
    return at, {was[name]: address for name, address in at.items()}


@test(needs=["haproxy"], timeout=90, plain_only=True)
def from_haproxy_names(t):
    """names.cfg beside names.ini: SSH and four kinds of names on one port, one of them for clients from inside alone; the
    first servers of SSH and of the others are killed and come back"""
    at, places = names_places(t, NAMES)
    beside = Beside(t, "from-haproxy", "names", ("443",), {**places, "10.0.0.0/8": "127.0.0.2/32"}, checked_each(2))
    always = {"443 inside": (named("admin.example.com", "127.0.0.2"), {"admin1"}),
              "443 outside": (named("admin.example.com"), {None}),
              "443 shop": (named("shop.example.com"), {"shop1"}), "443 a.shop": (named("a.shop.example.com"), {"shop1"})}
    with names_of(t, at) as servers, beside.running():
        def after(what, ssh, web, **states):
            beside.after(what, {**always, "443 ssh": (over_ssh, ssh), "443 other": (named("example.com"), web)}, {
                f"{name.rstrip('12')}/{name}": state for name, state in states.items()})
        after("start", {"ssh1"}, {"web1", "web2"}, ssh1="up", ssh2="up", admin1="up", shop1="up", web1="up", web2="up")
        servers["ssh1"].is_killed()
        servers["web1"].is_killed()
        after("first servers killed", {"ssh2"}, {"web2"}, ssh1="down", web1="down")
        servers["ssh1"].comes_back()
        servers["web1"].comes_back()
        after("they come back", {"ssh1"}, {"web1", "web2"}, ssh1="up", web1="up")


@test(needs=["nginx"], timeout=90, plain_only=True)
def from_nginx_names(t):
    """names.conf beside names.ini: SSH and two kinds of names on one port; the first servers of both are killed and come
    back, and no client is lost"""
    at, places = names_places(t, [name for name in NAMES if name != "admin1"])
    beside = Beside(t, "from-nginx", "names", ("443",), places, IN_TURN)
    shop = {"443 shop": (named("shop.example.com"), {"shop1"}), "443 a.shop": (named("a.shop.example.com"), {"shop1"})}
    with names_of(t, at) as servers, beside.running():
        def after(what, ssh, web):
            beside.after(what, {**shop, "443 ssh": (over_ssh, ssh), "443 other": (named("example.com"), web)})
        after("start", {"ssh1"}, {"web1", "web2"})
        servers["ssh1"].is_killed()
        servers["web1"].is_killed()
        after("first servers killed", {"ssh2"}, {"web2"})
        servers["ssh1"].comes_back()
        servers["web1"].comes_back()
        after("they come back", {"ssh1"}, {"web1", "web2"})
    check_equal(beside.lost(), 0, "clients lost")


# redis without Sentinel

def redis_role(names):
    """Writes to redis and asks it who it is; one that takes no writes says so."""
    @served
    def ask(front):
        with net.connect(front, limit_s=CLIENT_LIMIT_S) as s:
            s.sendall(b"CONFIG GET port\r\nSET key 1\r\nQUIT\r\n")
            said = net.read_to_end(s).decode().split("\r\n")
        if len(said) < 6:
            return None
        return names[int(said[4])] + ("" if said[5] == "+OK" else " as a replica")
    return ask


@contextlib.contextmanager
def redis_pair(t, at):
    """A master and its replica; the first one may be closed before the end."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        first.enter_context(redis_server(t, at[0]))
        stack.enter_context(redis_server(t, at[1], "--replicaof", *at[0].split(":")))
        t.eventually(lambda: "master_link_status:up" in redis_cli(at[1], "INFO", "replication"), "the second one is a replica")
        yield first


def redis_beside(t, folder, quicker):
    at = [t.address(), t.address()]
    ask = redis_role({port_of(address): name for address, name in zip(at, ("r1", "r2"))})
    return at, ask, Beside(t, folder, "redis", ("6379",), {"10.0.9.11:6379": at[0], "10.0.9.12:6379": at[1]}, quicker)


@test(needs=["haproxy", "redis-server", "redis-cli"], timeout=90, plain_only=True)
def from_haproxy_redis(t):
    """redis.cfg beside redis.ini: the master is killed, the replica promoted, the first one comes back as its replica, and
    both change their roles"""
    at, ask, beside = redis_beside(t, "from-haproxy", checked_each(1))
    with redis_pair(t, at) as first, beside.running():
        beside.after("start", {"6379": (ask, {"r1"})}, {"redis/r1": "up", "redis/r2": "down"})
        first.close()
        beside.after("master killed", {"6379": (ask, {None})}, {"redis/r1": "down", "redis/r2": "down"})
        redis_cli(at[1], "REPLICAOF", "NO", "ONE")
        beside.after("replica promoted", {"6379": (ask, {"r2"})}, {"redis/r2": "up"})
        first.enter_context(redis_server(t, at[0], "--replicaof", *at[1].split(":")))
        beside.after("first one back as a replica", {"6379": (ask, {"r2"})}, {"redis/r1": "down"})
        held = [net.connect(front) for front in beside.fronts["6379"]]
        for s in held:
            s.sendall(b"PING\r\n")
            check_equal(net.read_exactly(s, 7), b"+PONG\r\n", "answer")
        redis_cli(at[0], "REPLICAOF", "NO", "ONE")
        redis_cli(at[1], "REPLICAOF", *at[0].split(":"))
        ends([(s, None) for s in held])
        beside.after("roles changed", {"6379": (ask, {"r1"})}, {"redis/r1": "up", "redis/r2": "down"})


@test(needs=["nginx", "redis-server", "redis-cli"], timeout=90, plain_only=True)
def from_nginx_redis(t):
    """redis.conf beside redis.ini: the master is killed and the replica promoted; when the first one comes back as its
    replica, nginx sends writers there, reactord does not"""
    at, ask, beside = redis_beside(t, "from-nginx", (IN_TURN[0], checked_each(1)[1]))
    with redis_pair(t, at) as first, beside.running():
        beside.after("start", {"6379": (ask, {"r1"})})
        first.close()
        redis_cli(at[1], "REPLICAOF", "NO", "ONE")
        beside.after("master killed, replica promoted", {"6379": (ask, {"r2"})})
        first.enter_context(redis_server(t, at[0], "--replicaof", *at[1].split(":")))
        beside.after("first one back as a replica", {"6379": (ask, ({"r1 as a replica"}, {"r2"}))})
