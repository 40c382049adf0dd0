"""limits: what listeners share by a [limits NAME]: a client is counted once, and a ban of one is a ban of all."""

import contextlib
import json

from support import net
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.chain import Chain
from support.daemon import alive
from support.proxy_lines import v2
from test_limits_clients import from_host

THEME = "limits_shared"

OFFENDER, OTHER = "127.0.0.9", "127.0.0.8"
BAN = "ban = 1h after 3 in 1h\n"
TWO = "max_connections_per_client = 2\n"
NONE = "max_connections_per_client = 0\n"  # the same as no limit


class Pair:
    """Two echo listeners, `one` and `two`, and the admin interface."""

    def __init__(self, t):
        self.admin, self.one, self.two = t.path("admin.sock"), t.address(), t.address()

    def config(self, one="limits = all\n", two="limits = all\n", limits="", name="all"):
        """What each has, and [limits NAME], or "" for no such section."""
        return (section(self.admin) + f"[listen one]\naddress = {self.one}\nservice = echo\n{one}" +
                f"[listen two]\naddress = {self.two}\nservice = echo\n{two}" +
                (f"[limits {name}]\n{limits}" if limits else ""))

    def bans(self, query=""):
        answer = get(self.admin, f"/v1/bans{query}")
        check_equal(answer.status, 200, f"the status: {answer.body}")
        return answer.json["bans"]


def offend(address, times=3, host=OFFENDER, says=b""):
    for _ in range(times):
        check_equal(net.sent_away(from_host, host, address, says=says), "reset", "how an offender ends")


def is_served(address, host=OFFENDER):
    """Is a new client from there served? It leaves at once."""
    with contextlib.suppress(ConnectionError), from_host(host, address) as s:
        s.sendall(b"x")
        return s.recv(1) == b"x"
    return False


def becomes(t, chain, config):
    """Upgrade to this configuration; the old process still accepts at first."""
    chain.daemon.config_path.write_text(config)
    old = chain.upgrade()
    t.eventually(lambda: not alive(old), "the old process has ended")


@contextlib.contextmanager
def session(address, host=OFFENDER):
    with from_host(host, address) as s:
        check_equal(net.exchange(s, b"hello"), b"hello", f"the echo of {host}")
        yield s


def both_refuse(t, pair, what):
    for address in (pair.one, pair.two):
        t.eventually(lambda a=address: not is_served(a), f"{what}: refused at {address}")


def both_serve(t, daemon, pair, what):
    """A client that is refused has offended: so none comes before those before it have left."""
    for address in (pair.one, pair.two):
        t.eventually(lambda: [daemon.counts(f"listen {name} ")["sessions"] for name in ("one", "two")] == [0, 0],
                     f"{what}: all have left")
        check(is_served(address), f"{what}: not served at {address}")


@test()
def client_is_counted_once_over_all_listeners(t):
    """its open connections at one and at the other count together, those of a third listener and client do not"""
    pair, own = Pair(t), t.address()
    third = f"[listen own]\naddress = {own}\nservice = echo\nmax_connections_per_client = 1\n"
    with t.daemon(pair.config(limits=TWO) + third) as daemon:
        with session(pair.one):
            with session(pair.two), session(own):
                both_refuse(t, pair, "two are open")
                check(is_served(pair.one, OTHER), "another client is not served")
                check_equal(daemon.counts("limits all ")["clients_known"], 2, "clients in the table")
                known = [line for line in daemon.statistics("listen ") if "clients_known" in line]
                check_equal(len(known), 1, f"listeners with a table of their own: {known}")
                check_equal([daemon.counts(f"listen {name} ")["over_max_connections_per_client"] >= 1
                             for name in ("one", "two")], [True, True], "each listener counts what it refused")
            t.eventually(lambda: is_served(pair.one), "a place is free again")
        both_serve(t, daemon, pair, "the end")


@test()
def rate_is_one_for_all_listeners(t):
    """new connections at one use up the rate at the other"""
    pair = Pair(t)
    with t.daemon(pair.config(limits="connection_rate_per_client = 1/h burst=3\n")):
        served = [is_served(address) for address in (pair.one, pair.two, pair.one, pair.two, pair.one)]
        check_equal(served, [True, True, True, False, False], "who is served")
        check(is_served(pair.two, OTHER), "another client is not served")


@test()
def ban_at_one_is_a_ban_at_all(t):
    """a client banned for what it did at both is refused at both, listed once, and lifted for both"""
    pair = Pair(t)
    limits = "max_connections_per_client = 1\n" + BAN
    with t.daemon(pair.config(limits=limits, one="limits = all\ndeny = 127.0.0.7\n")) as daemon:
        with session(pair.one):
            offend(pair.one, 2)
            offend(pair.two, 1)
        t.eventually(lambda: daemon.counts("listen one ")["sessions"] == 0, "its connection has ended")
        offend(pair.one, 1)
        offend(pair.two, 1)
        row, = pair.bans()
        check_equal({key: row[key] for key in ("client", "listener", "limits", "offence", "refused", "dry_run")},
                    {"client": OFFENDER, "listener": None, "limits": "all", "offence": "limit", "refused": 2,
                     "dry_run": False}, "the ban")
        check_equal(len(daemon.log_lines(f"listen two: client {OFFENDER}: banned for 3600 s at all listeners with "
                                         "limits = all: offences: 3, the last: limit")), 1, "log lines")
        check_equal([len(pair.bans(query)) for query in ("?listener=one", "?listener=two", "?limits=all")], [1, 1, 1],
                    "bans of each, and of the limits")
        check_equal(daemon.counts("limits all ")["clients_banned"], 1, "bans in force")
        check(is_served(pair.one, OTHER), "another client is not served")
        check_equal(post(pair.admin, "/v1/bans/lift", {"client": OFFENDER, "listener": "one"}).json, {"lifted": 1},
                    "the lift")
        both_serve(t, daemon, pair, "lifted")
        for query in ("?limits=none", "?listener=all"):
            check_equal(get(pair.admin, f"/v1/bans{query}").status, 404, query)
        check_equal(post(pair.admin, "/v1/bans/lift", {"all": True, "limits": "none"}).status, 404, "a lift of none")
        offend(pair.one, 3, "127.0.0.7")
        check_equal(net.sent_away(from_host, "127.0.0.7", pair.two), "reset", "where it was not denied")
        check_equal(post(pair.admin, "/v1/bans/lift", {"all": True, "limits": "all"}).json, {"lifted": 1}, "the lift")
        check(is_served(pair.two, "127.0.0.7"), "not served after the lift")


@test()
def interface_names_what_is_shared(t):
    """/v1/listeners, /v1/limits, metrics and reactorctl name the limits of a listener, and count their bans once"""
    pair = Pair(t)
    with t.daemon(pair.config(limits=TWO + BAN, two="deny = all\nban = 1h after 1 in 1h\n")):
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                stack.enter_context(session(pair.one))
            offend(pair.one, 3)
            offend(pair.two, 1, OTHER)
            check_equal({row["name"]: row["limits"] for row in get(pair.admin, "/v1/listeners").json["listeners"]},
                        {"one": "all", "two": None}, "limits of the listeners")
            check_equal(get(pair.admin, "/v1/limits").json["limits"],
                        [{"name": "all", "clients_known": 1, "clients_banned": 1}], "the limits")
            metrics = get(pair.admin, "/metrics").body
            text = metrics.decode() if isinstance(metrics, bytes) else metrics
            wanted = ['reactord_limits_clients_known{limits="all"} 1', 'reactord_limits_clients_banned{limits="all"} 1',
                      'reactord_listener_clients_banned{listener="two"} 1']
            check_equal([line for line in wanted if line not in text.splitlines()], [], "metrics that are missing")
            check('reactord_listener_clients_banned{listener="one"}' not in text, "the shared bans count twice")

            def run(*words):
                finished = t.reactorctl("-s", pair.admin, *words)
                return finished.code, finished.out, finished.err

            lines = [line.split() for line in run("bans")[1].splitlines()]
            titles = [lines[0].index(title) for title in ("CLIENT", "LISTENER", "LIMITS")]
            check_equal([[line[i] for i in titles] for line in lines[1:]],
                        [[OTHER, "two", "-"], [OFFENDER, "-", "all"]], "the table")
            check_equal([row["client"] for row in json.loads(run("bans", "--json", "--limits", "all")[1])["bans"]],
                        [OFFENDER], "the JSON")
            check_equal(run("bans", "--limit", "1")[2], "reactorctl: 1 of 2 bans; --limit shows more\n", "what is left out")
            check_equal(run("lift", "all", "--limits", "all"), (0, "lifted 1 ban\n", ""), "a lift")
            titles, first, _ = [line.split() for line in run("listeners")[1].splitlines()]
            check_equal((first[titles.index("LIMITS")], first[0]), ("all", "one"), "reactorctl listeners")


@test()
def bans_are_listed_page_by_page(t):
    """/v1/bans answers the newest first, and `next` asks for more; none is missing or twice"""
    pair = Pair(t)
    hosts = [f"127.0.0.{i}" for i in range(20, 27)]
    with t.daemon(pair.config(limits="ban = 1h after 1 in 1h\n", one="limits = all\ndeny = all\n")):
        for host in hosts:
            offend(pair.one, 1, host)
        seen, query = [], "?limit=3"
        while query:
            answer = get(pair.admin, f"/v1/bans{query}").json
            check_equal(answer["matched"], len(hosts), "matched")
            seen.append([row["client"] for row in answer["bans"]])
            query = answer["next"] and f"?limit=3&after={answer['next']}"
        check_equal([len(page) for page in seen], [3, 3, 1], "rows of the pages")
        check_equal([client for page in seen for client in page], hosts[::-1], "clients")
        check_equal(get(pair.admin, "/v1/bans?after=x").status, 400, "a wrong cursor")


@test(timeout=60)
def reload_counts_open_connections_once(t):
    """over each change of what is shared a client with two open connections is above two, and gives both back once"""
    pair = Pair(t)
    own = "max_connections_per_client = 1\n"
    with t.daemon(pair.config(own, own)) as daemon:
        with session(pair.one), session(pair.two):
            for what, config in (
                    ("appears", pair.config(limits=TWO)),
                    ("other values", pair.config(limits=TWO + "connection_rate_per_client = 1000/s\n")),
                    ("another table", pair.config(limits=TWO + "client_table_size = 100\n")),
                    ("another prefix", pair.config(limits=TWO + "client_prefix_v4 = 31\n")),
                    ("renamed", pair.config("limits = other\n", "limits = other\n", TWO, "other")),
                    ("one leaves", pair.config(own, "limits = other\n", own, "other")),
                    ("both in two", pair.config("limits = all\n", "limits = other\n", own) + "[limits other]\n" + own),
                    ("together again", pair.config(limits=TWO)),
                    ("disappears", pair.config(own, own)),
                    ("appears again", pair.config(limits=TWO))):
                daemon.reload(config)
                both_refuse(t, pair, what)
        both_serve(t, daemon, pair, "the end")
        t.eventually(lambda: daemon.counts("listen two ")["sessions"] == 0, "all have left")
        with session(pair.one), session(pair.one):
            both_refuse(t, pair, "as many as before")
        check_equal(daemon.log_lines("bug:"), [], "bugs")


@test()
def reload_without_limits_frees_all(t):
    """the limits go while connections are open, and come back: none is counted twice"""
    pair = Pair(t)
    with t.daemon(pair.config(limits=TWO)) as daemon:
        with session(pair.one), session(pair.two):
            daemon.reload(pair.config("", ""))
            for address in (pair.one, pair.two, pair.one, pair.two):
                check(is_served(address), "a limit that is gone")
            with session(pair.one):
                daemon.reload(pair.config(limits=TWO))
                both_refuse(t, pair, "limits again")
            both_refuse(t, pair, "still two")
        both_serve(t, daemon, pair, "the end")


@test()
def bans_go_with_a_listener_over_reloads(t):
    """bans stay when limits are shared, renamed, split and removed; those of a listener that joins hold for all"""
    pair = Pair(t)
    denied = "deny = 127.0.0.9\n"
    own = BAN + denied
    with t.daemon(pair.config(own, BAN)) as daemon:
        offend(pair.one, 3)
        check(is_served(pair.two), "the other listener has no ban yet")
        steps = (
            ("shared", pair.config("limits = all\n", limits=BAN), True),
            ("renamed", pair.config("limits = other\n", "limits = other\n", BAN, "other"), True),
            ("another table", pair.config("limits = other\n", "limits = other\n", BAN + "client_table_size = 99\n", "other"),
             True),
            ("split", pair.config(BAN, "limits = other\n", BAN, "other"), True),
            ("own again", pair.config(BAN, BAN), True),
            ("no bans", pair.config("", ""), False))
        for what, config, is_banned in steps:
            daemon.reload(config)
            check_equal([is_served(pair.one), is_served(pair.two)], [not is_banned] * 2, f"{what}: served")
            if what in ("shared", "renamed", "another table"):
                check_equal(len(pair.bans()), 1, f"{what}: bans")
        check_equal(daemon.log_lines("bans ended"), [], "bans that ended early")


@test(timeout=60)
def bans_stay_over_an_upgrade(t):
    """an upgrade keeps the bans that listeners share, also one whose file renames or splits the limits"""
    pair = Pair(t)
    with Chain(t, pair.config("limits = all\ndeny = 127.0.0.9\n", limits=BAN)) as chain:
        offend(pair.one, 4)
        before, = pair.bans()
        becomes(t, chain, pair.config(limits=BAN))
        offend(pair.two, 1)
        after, = pair.bans()
        check_equal((after["limits"], after["refused"]), ("all", before["refused"] + 1), "the ban")
        check(after["left_s"] < before["left_s"], "the ban began anew")
        becomes(t, chain, pair.config("limits = other\n", "limits = other\n", BAN, "other"))
        check_equal([row["limits"] for row in pair.bans()], ["other"], "bans of the renamed limits")
        becomes(t, chain, pair.config(BAN, "limits = other\n", BAN, "other"))
        check_equal(sorted((row["listener"] or "", row["limits"] or "") for row in pair.bans()),
                    [("", "other"), ("one", "")], "bans of both")
        offend(pair.one, 1)
        offend(pair.two, 1)
        check_equal(chain.lines("bans ended", chain.pid), [], "bans that ended")


@test()
def dry_run_leaves_no_bans(t):
    """bans and offences of a dry run are never enforced: they end with it; real bans go on after one"""
    pair = Pair(t)
    limits = "max_connections_per_client = 1\n" + BAN
    dry = pair.config(limits=limits + "over_limit = log\n")
    with t.daemon(pair.config(limits=limits)) as daemon:
        with session(pair.one, OTHER):
            offend(pair.two, 3, OTHER)
        daemon.reload(dry)
        check(is_served(pair.one, OTHER), "a banned client is not served in a dry run")
        with contextlib.ExitStack() as stack:
            for address in (pair.one, pair.two, pair.two, pair.two):
                stack.enter_context(session(address))
            check_equal({row["client"]: row["dry_run"] for row in pair.bans()}, {OFFENDER: True, OTHER: False}, "bans")
            for address in (pair.one, pair.two, pair.two):  # two offences
                stack.enter_context(session(address, "127.0.0.7"))
            check_equal(daemon.log_lines("refused: "), daemon.log_lines(f"client {OTHER}.*refused: "), "refusals")
            daemon.reload(pair.config(limits=limits + "over_limit = close\n"))
            check_equal([row["client"] for row in pair.bans()], [OTHER], "bans after the dry run")
            check_equal(len(daemon.log_lines("listen one: 1 bans ended: they are of the dry run")), 1, "log lines")
            check_equal(net.sent_away(from_host, OTHER, pair.one), "reset", "the real ban")
        both_serve(t, daemon, pair, "the dry run is over")


@test(timeout=60)
def dry_run_over_an_upgrade(t):
    """an upgrade that ends a dry run ends its bans, one that does not keeps them dry"""
    pair = Pair(t)
    limits = "max_connections_per_client = 1\nban = 1h after 1 in 1h\n"
    config = pair.config(limits=limits + "over_limit = log\n")
    with Chain(t, config) as chain:
        with session(pair.one), session(pair.two):
            pass
        check_equal([row["dry_run"] for row in pair.bans()], [True], "bans of the dry run")
        becomes(t, chain, config)
        check_equal([row["dry_run"] for row in pair.bans()], [True], "bans after the upgrade")
        becomes(t, chain, pair.config(limits=limits))
        check_equal(pair.bans(), [], "bans after the dry run")
        check(is_served(pair.one), "a ban of a dry run is enforced")


@test()
def proxy_of_one_listener_is_banned_at_none(t):
    """what one listener trusts as a proxy is not banned at the others, whatever it does there"""
    pair = Pair(t)
    one = "limits = all\naccept_proxy = required\ntrusted_proxies = 127.0.0.1\ndeny = 192.0.2.7\n"
    with t.daemon(pair.config(one, "limits = all\ndeny = 127.0.0.1, 192.0.2.7\n", BAN)):
        offend(pair.two, 4, "127.0.0.1")
        check_equal(pair.bans(), [], "bans of the proxy")
        for _ in range(3):
            check_equal(net.sent_away(from_host, "127.0.0.1", pair.one, says=v2("192.0.2.7")), "reset", "a client")
        check_equal([row["client"] for row in pair.bans()], ["192.0.2.7"], "bans")
        with from_host("127.0.0.1", pair.one) as s:
            s.sendall(v2("198.51.100.7"))
            check_equal(net.exchange(s, b"hello"), b"hello", "the echo of another client")


CONTRADICTIONS = ("ban = 1m after 1 in 1s", "ban_exempt = 10.0.0.1", "max_connections_per_client = 1",
                  "connection_rate_per_client = 1/s", "client_prefix_v4 = 24", "client_prefix_v6 = 48",
                  "client_table_size = 100")


@test(each={"case": [
    ("limits = some", TWO, "limits = some", "[listen one] limits: there is no [limits some] (did you mean 'same'?)"),
    ("limits = a b", TWO, "limits = a b", "[listen one] limits: 'a b' is not a name"),
    ("limits = same\nlimits = same", TWO, "limits = same", "[listen one] limits: is set twice"),
    ("limits = same", "max_connections = 1\n", "max_connections = 1", "[limits same] max_connections: unknown option here"),
    ("limits = same", "over_limit = wait\n", "over_limit = wait", "[limits same] over_limit: "),
    ("limits = same", "ban_exempt = 10.0.0.1\n", "ban_exempt = 10.0.0.1",
     "[limits same] ban_exempt: has no effect: no client is banned"),
    ("limits = same", BAN + "ban_exempt = 0.0.0.0/0\n", "ban_exempt = 0.0.0.0/0", "[limits same] ban_exempt: "),
    ("limits = same", TWO + "client_prefix_v4 = 0\n", "client_prefix_v4 = 0", "[limits same] client_prefix_v4: "),
    ("limits = same", TWO + "client_table_size = 0\n", "client_table_size = 0", "[limits same] client_table_size: "),
    ("limits = same", "ban = 1m\n", "ban = 1m", "[limits same] ban: "),
    ("limits = same", TWO + "[limits same]\n" + TWO, "[limits same]", "[limits same] is defined twice"),
    ("limits = same", TWO + "[limits a:b]\n" + TWO, "[limits a:b]", "[limits a:b]"),
    ("limits = same", TWO + "[limits]\n" + TWO, "[limits]", "[limits] needs a name"),
    *[(f"limits = same\n{line}", TWO, line, f"{line.split()[0]}: has no effect beside limits") for line in CONTRADICTIONS],
]})
def wrong_values(t, case):
    """what is wrong or contradicts is refused with its file and line: {case[0]}, {case[1]}"""
    one, limits, bad, text = case
    config = Pair(t).config(one + "\n", "", limits, "same")
    path = t.write("wrong.ini", config)
    finished = t.reactord("-t", "-c", path)
    said = finished.err + finished.out
    check(finished.code != 0, f"it is accepted: {said}")
    line = len(config.splitlines()) - config.splitlines()[::-1].index(bad)
    check(any(f"{path}:{line}: " in part and text in part for part in said.splitlines()), f"line {line}: {said}")


@test(each={"case": [
    ("limits = all\n", TWO + "[limits spare]\n" + TWO, "[limits spare] has no effect: no listener names it"),
    ("limits = all\n", "client_table_size = 9\n", "[limits all] has no effect: it sets no limit and no ban"),
    ("limits = all\n", "# nothing\n", "[limits all] has no effect: it sets no limit and no ban"),
    ("limits = all\n", NONE, "[limits all] has no effect: it sets no limit and no ban")]})
def sections_without_effect_are_told(t, case):
    """a section that no listener names, or that limits nothing, is accepted with a warning: {case[1]}"""
    one, limits, text = case
    path = t.write("warned.ini", Pair(t).config(one, "", limits))
    finished = t.reactord("-t", "-c", path)
    check_equal(finished.code, 0, f"the exit code: {finished.err}")
    check(text in finished.err + finished.out, finished.err + finished.out)


@test()
def defaults_and_dump(t):
    """[defaults listen] may name the limits, a listener may decline them, and --dump-config shows all values"""
    pair = Pair(t)
    text = "[defaults listen]\nlimits = all\n" + pair.config("", "limits =\nban = 1m after 9 in 9s\n", BAN + TWO)
    path = t.write("defaults.ini", text)
    dumped = t.reactord("--dump-config", "-c", path)
    check_equal(dumped.code, 0, f"the exit code: {dumped.err}")
    part = dumped.out[dumped.out.index("[limits all]"):]
    for line in ("max_connections_per_client = 2", "ban = 1h after 3 in 1h", "over_limit = reset",
                 "client_table_size = 65536"):
        check(line in part, f"{line}: {part}")
    again = t.write("dumped.ini", dumped.out)
    check_equal(t.reactord("-t", "-c", again).code, 0, "what is dumped is not accepted")
    with t.daemon(text):
        with session(pair.one), session(pair.one):
            check(not is_served(pair.one), "the limits of [defaults listen] do not hold")
            check(is_served(pair.two), "a listener that declines them is limited")
