"""bans: clients who offend are refused for a while, whom that never harms, and how a ban ends."""

import contextlib
import json
import os
import signal
import socket

from support import net
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.chain import Chain
from support.daemon import alive
from support.crowd import echo
from support.proxy_lines import v2
from support.tls_listeners import certificate_of, tls_echo
from test_limits_clients import from_host
from test_route import config as routed

THEME = "bans"

BAN = "ban = 1h after 3 in 1h\n"
DENY = "deny = 127.0.0.9\n" + BAN
OFFENDER, OTHER = "127.0.0.9", "127.0.0.8"


def bans(admin, query=""):
    answer = get(admin, f"/v1/bans{query}")
    check_equal(answer.status, 200, f"the status: {answer.body}")
    return answer.json["bans"]


def offend(address, times=3, host=OFFENDER, says=b""):
    for _ in range(times):
        check_equal(net.sent_away(from_host, host, address, says=says), "reset", "how an offender ends")


def count(daemon, key, listener="echo"):
    return daemon.counts(f"listen {listener} ").get(key, 0)


def expect_served(address, host):
    with from_host(host, address) as s:
        check_equal(net.exchange(s, b"hello"), b"hello", f"the echo of {host}")


@test()
def offender_is_banned_and_nobody_else(t):
    """who is above a limit too often is refused for a while, then without a line of its own; lift ends that"""
    address, admin = t.address(), t.path("admin.sock")
    options = "max_connections_per_client = 1\n" + BAN
    with t.daemon(section(admin) + echo(address, options)) as daemon:
        with from_host(OFFENDER, address) as first:
            check_equal(net.exchange(first, b"hello"), b"hello", "the echo of the first connection")
            offend(address, 5)
            check_equal(net.exchange(first, b"hello"), b"hello", "an open connection stays")
            expect_served(address, OTHER)
        check_equal(len(daemon.log_lines(f"listen echo: client {OFFENDER}: banned for 3600 s: offences: 3, "
                                         "the last: limit")), 1, "log lines")
        t.eventually(lambda: count(daemon, "sessions") == 0, "its connection has ended")
        offend(address, 2)
        got = {key: count(daemon, key) for key in ("bans", "refused_banned", "offences_limit", "clients_banned",
                                                   "over_max_connections_per_client", "limit")}
        check_equal(got, {"bans": 1, "refused_banned": 4, "offences_limit": 3, "clients_banned": 1,
                          "over_max_connections_per_client": 3, "limit": 3}, "figures")
        row, = bans(admin)
        check_equal({key: row[key] for key in ("client", "listener", "offence", "refused")},
                    {"client": OFFENDER, "listener": "echo", "offence": "limit", "refused": 4}, "the ban")
        check(3000 < row["left_s"] <= 3600 and 0 <= row["age_s"] < 600, f"times of the ban: {row}")
        check_equal(post(admin, "/v1/bans/lift", {"client": OFFENDER}).json, {"lifted": 1}, "the answer")
        expect_served(address, OFFENDER)
        check_equal(bans(admin), [], "bans after the lift")
        check(daemon.log_lines("/v1/bans/lift"), "the lift is not in the log")


@test()
def ban_ends_in_time(t):
    """a ban ends after its time, though its client goes on to connect"""
    address = t.address()
    with t.daemon(echo(address, "max_connections_per_client = 1\nban = 1s after 1 in 1h")) as daemon:
        with from_host(OFFENDER, address) as first:
            check_equal(net.exchange(first, b"hello"), b"hello", "the echo")
            offend(address, 1)
        t.eventually(lambda: count(daemon, "sessions") == 0, "its connection has ended")

        def served():
            with contextlib.suppress(ConnectionError), from_host(OFFENDER, address) as s:
                return net.exchange(s, b"x") == b"x"
            return False

        t.eventually(served, "it is served again")
        check_equal(count(daemon, "bans"), 1, "bans")
        check_equal(count(daemon, "clients_banned"), 0, "bans in force")


@test(timeout=60)
def ban_stays_over_reload_and_upgrade(t):
    """a ban is kept by a reload and an upgrade, with its time and its count"""
    address, admin = t.address(), t.path("admin.sock")
    config = section(admin) + echo(address, DENY)
    with Chain(t, config) as chain:
        def reload(text):
            chain.daemon.config_path.write_text(chain.daemon.config.replace(config, text))
            done = len(chain.lines("reload: done", chain.pid))
            os.kill(chain.pid, signal.SIGHUP)
            chain.wait_line("reload: done", chain.pid, done + 1)

        offend(address, 4)
        before, = bans(admin)
        reload(config + "backlog = 77\n")
        after, = bans(admin)
        check_equal(after["refused"], before["refused"], "refused connections")
        reload(config + "client_table_size = 100\n")
        check_equal(len(bans(admin)), 1, "bans in a table of another size")
        offend(address, 1)
        old = chain.upgrade()
        t.eventually(lambda: not alive(old), "the old process, which still accepts at first, has ended")
        offend(address, 1)
        after, = bans(admin)
        check_equal(after["refused"], before["refused"] + 2, "refused connections")
        check(after["left_s"] < before["left_s"], "the ban began anew")
        check_equal(chain.statistics("listen echo")["bans"], 1, "bans begun")
        check_equal(chain.lines(": banned for", chain.pid), [], "a ban that begins anew")


@test()
def reload_without_ban_ends_bans(t):
    """a reload that removes ban ends the bans, one that changes the prefix those of that kind"""
    address, admin = t.address(), t.path("admin.sock")
    config = section(admin) + echo(address, DENY)
    with t.daemon(config) as daemon:
        offend(address, 3)
        daemon.reload(config + "client_prefix_v6 = 48\n")
        check_equal(len(bans(admin)), 1, "bans of IPv4")
        daemon.reload(config + "client_prefix_v4 = 24\n")
        check_equal(bans(admin), [], "bans of another prefix")
        check(daemon.log_lines("listen echo: 1 bans ended"), "no line in the log")
        offend(address, 3)
        row, = bans(admin)
        check_equal(row["client"], "127.0.0.0/24", "the client")
        check_equal(net.sent_away(from_host, OTHER, address), "reset", "how a neighbour ends")
        daemon.reload(section(admin) + echo(address))
        expect_served(address, OFFENDER)


@test()
def dry_run_harms_nobody(t):
    """with over_limit = log limits and bans count as they would, and all are served; access rules hold; no ban stays"""
    address, admin = t.address(), t.path("admin.sock")
    options = "max_connections_per_client = 1\nmax_connections = 2\nover_limit = {over}\ndeny = 127.0.0.7\n" + BAN
    with t.daemon(section(admin) + echo(address, options.format(over="log"))) as daemon:
        with contextlib.ExitStack() as stack:
            for _ in range(6):
                s = stack.enter_context(from_host(OFFENDER, address))
                check_equal(net.exchange(s, b"hello"), b"hello", "the echo in a dry run")
            wanted = {"bans": 1, "refused_banned": 2, "offences_limit": 3, "over_max_connections_per_client": 3,
                      "served_over_limit": 4, "sessions": 6, "limit": 0}
            check_equal({key: count(daemon, key) for key in wanted}, wanted, "figures")
            check_equal(len(daemon.log_lines(f"client {OFFENDER}: banned for 3600 s, but served, as over_limit = log")),
                        1, "lines of the ban")
            check_equal(len(daemon.log_lines("max_connections is reached: the client is served, as over_limit = log")),
                        1, "lines of the listener's limit")
            offend(address, 1, "127.0.0.7")
        t.eventually(lambda: count(daemon, "sessions") == 0, "all have left")
        check_equal([row["dry_run"] for row in bans(admin)], [True], "bans of the dry run")
        daemon.reload(section(admin) + echo(address, options.format(over="reset")))
        check_equal(bans(admin), [], "bans after the dry run")
        with from_host(OFFENDER, address) as s:
            check_equal(net.exchange(s, b"hello"), b"hello", "the echo of whom the dry run banned")
            offend(address, 3)
        row, = bans(admin)
        check_equal((row["client"], row["dry_run"]), (OFFENDER, False), "the ban")


@test()
def client_behind_a_proxy_is_banned_not_the_proxy(t):
    """with PROXY headers the client in the header is banned, the trusted proxy never, not even by broken headers"""
    address, admin = t.address(), t.path("admin.sock")
    options = ("accept_proxy = required\ntrusted_proxies = 127.0.0.1\nclient_prefix_v4 = 24\n"
               "deny = 192.0.2.0/24\n" + BAN)
    with t.daemon(section(admin) + echo(address, options)) as daemon:
        def from_client(source, rest=b""):
            return net.sent_away(from_host, "127.0.0.1", address, says=v2(source) + rest)

        for _ in range(4):
            check_equal(from_client("192.0.2.7"), "reset", "how a client in a header ends")
            offend(address, 1, "127.0.0.1", b"GET / HTTP/1.0\r\n\r\n")
        offend(address, 4, "127.0.0.9")  # a neighbour of the proxy, in its prefix
        check_equal({row["client"]: row["offence"] for row in bans(admin)},
                    {"192.0.2.0/24": "denied", "127.0.0.0/24": "proxy_header"}, "who is banned for what")
        check_equal(count(daemon, "refused_banned"), 2, "refused connections of banned clients")
        with from_host("127.0.0.1", address) as s:
            s.sendall(v2("198.51.100.7"))
            check_equal(net.exchange(s, b"hello"), b"hello", "the echo of another client")


@test(each={"kind": ["hello", "tls"]})
def broken_greetings_are_offences(t, kind):
    """a client that sends no ClientHello to routes, or no TLS, is banned for it ({kind})"""
    address, admin, back = t.address(), t.path("admin.sock"), t.address()
    if kind == "hello":
        config = routed(address, "route.a = sni:a.example -> a", {"a": back}, BAN)
    else:
        config = tls_echo(address, certificate_of(t)[1], BAN)
    with t.daemon(section(admin) + config) as daemon:
        for _ in range(3):
            # TLS answers with an alert before it closes
            net.sent_away(from_host, OFFENDER, address, says=b"GET / HTTP/1.0\r\n\r\n")
        t.eventually(lambda: count(daemon, "clients_banned", "front") == 1, "a ban")
        offend(address, 1)
        check_equal([(row["client"], row["offence"]) for row in bans(admin)], [(OFFENDER, kind)], "the ban")


@test()
def port_checks_are_no_offences(t):
    """clients that connect and close, or say nothing, are not banned"""
    address = t.address()
    with t.daemon(tls_echo(address, certificate_of(t)[1], "ban = 1h after 1 in 1h")) as daemon:
        for _ in range(3):
            from_host(OFFENDER, address).close()
        t.eventually(lambda: count(daemon, "sessions_total", "front") == 3, "all have come")
        t.eventually(lambda: count(daemon, "sessions", "front") == 0, "all have left")
        check_equal(count(daemon, "bans", "front"), 0, "bans")


@test()
def exempt_and_unix_clients_are_never_banned(t):
    """ban_exempt is not banned, nor is a client of a unix socket"""
    address, path = t.address(), t.path("echo.sock")
    options = f"deny = unix, {OFFENDER}, {OTHER}\nban = 1h after 1 in 1h\nban_exempt = {OTHER}, 2001:db8::/32"
    with t.daemon(echo(f"{address}, {path}", options)) as daemon:
        for _ in range(3):
            net.sent_away(net.connect, path)
            offend(address, 1, OTHER)
            offend(address, 1)
        check_equal((count(daemon, "bans"), count(daemon, "denied"), count(daemon, "refused_banned")), (1, 7, 2),
                    "bans, denied, refused")


@test()
def lists_and_lifts_of_the_interface(t):
    """/v1/bans filters, and /v1/bans/lift wants to know which; wrong fields and names are told"""
    one, two, admin = t.address(), t.address(), t.path("admin.sock")
    other = echo(two, "deny = all\nban = 1m after 1 in 1s").replace("listen echo", "listen two")
    with t.daemon(section(admin) + echo(one, "deny = all\nban = 1m after 1 in 1s") + other):
        for last in (2, 3, 4):
            offend(one, 1, f"127.0.0.{last}")
        offend(two, 1, "127.0.0.2")
        check_equal([row["client"] for row in bans(admin, "?listener=echo&limit=2")], ["127.0.0.4", "127.0.0.3"],
                    "the newest first")
        check_equal(get(admin, "/v1/bans?limit=1").json["matched"], 4, "matched")
        check_equal(len(bans(admin, "?client=127.0.0.2")), 2, "of one client")
        check_equal(bans(admin, "?client=10.0.0.0/8"), [], "of another network")
        for query, status in (("?listener=none", 404), ("?client=x", 400), ("?client=unix", 400), ("?limit=0", 400),
                              ("?limit=1001", 400), ("?speed=1", 400)):
            check_equal(get(admin, f"/v1/bans{query}").status, status, query)
        for body, status in (({}, 400), ({"all": True, "client": "127.0.0.2"}, 400), ({"client": "127.0.0.0/33"}, 400),
                             ({"client": 7}, 400), ({"all": True, "listener": "none"}, 404)):
            check_equal(post(admin, "/v1/bans/lift", body).status, status, str(body))
        check_equal(post(admin, "/v1/bans/lift", {"client": "127.0.0.2", "listener": "two"}).json, {"lifted": 1}, "two")
        check_equal(post(admin, "/v1/bans/lift", {"client": "127.0.0.0/29"}).json, {"lifted": 3}, "the rest")
        check_equal(post(admin, "/v1/bans/lift", {"all": True}).json, {"lifted": 0}, "all")


@test()
def reactorctl_shows_and_lifts(t):
    """reactorctl bans and lift: a table, JSON, and what they say when nobody is banned"""
    address, admin = t.address(), t.path("admin.sock")
    with t.daemon(section(admin) + echo(address, DENY)):
        def run(*words):
            finished = t.reactorctl("-s", admin, *words)
            return finished.code, finished.out, finished.err

        offend(address, 4)
        code, out, _ = run("bans")
        check_equal((code, [line.split()[:3] for line in out.splitlines()]),
                    (0, [["CLIENT", "LISTENER", "OFFENCE"], [OFFENDER, "echo", "denied"]]), "the table")
        answer = json.loads(run("bans", "--json", "--client", "127.0.0.0/8", "--listener", "echo")[1])
        check_equal((answer["bans"][0]["client"], answer["matched"]), (OFFENDER, 1), "the JSON")
        check_equal(run("lift", OTHER)[0::2], (1, f"reactorctl: no client in {OTHER} is banned\n"), "a lift of none")
        check_equal(run("lift", OFFENDER, "--listener", "echo"), (0, "lifted 1 ban\n", ""), "a lift")
        check_equal(run("lift", "all"), (0, "lifted 0 bans\n", ""), "a lift of all")


@test(each={"line": ["ban = 10m", "ban = 10m after 0 in 10s", "ban = 10m after 10001 in 10s", "ban = 10 after 5 in 10s",
                     "ban = 10m after 5 in 0s", "ban = 10m after 5 in 2d", "ban = 400d after 5 in 1s", "ban = yes",
                     "ban = 10m after 5 in 10s 3", "ban = 1m after 5 in 10s\nban_exempt = 0.0.0.0/0",
                     "ban = 1m after 5 in 10s\nban_exempt = ::/0", "ban = 1m after 5 in 10s\nban_exempt = unix",
                     "ban = 1m after 5 in 10s\nban_exempt = host",
                     "ban_exempt = 10.0.0.0/8", "ban = 1m after 5 in 10s\nclient_prefix_v4 = 0",
                     "ban = 1m after 5 in 10s\nclient_prefix_v6 = 0", "over_limit = dry"]})
def wrong_values(t, line):
    """{line} is refused with its file and line"""
    path = t.write("wrong.ini", echo(t.address(), line))
    finished = t.reactord("-t", "-c", path)
    check(finished.code != 0, "it is accepted")
    number = 4 + line.count("\n")
    check(f"{path}:{number}: [listen echo] " in finished.err + finished.out, finished.err + finished.out)
