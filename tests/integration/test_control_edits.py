"""control: servers that are added at run time, and removed."""

import http.client
import json
import signal
import socket

from support import net
from support.admin import get, post, request, section, write_request
from support.case import check, check_equal, test
from support.chain import Chain
from support.control_place import Place, is_alive
from support.health import Talker, greeted
from support.name_records import DNSMASQ
from support.names import NameServer, RESOLVER
from support.own_network import own_names, own_network
from support.server import Counted
from support.upstreams import config, statistics
from test_checks import checked

THEME = "control"


def check_in(part, text, what):
    check(part in text, f"{what}: {text!r} is without {part!r}")


def edit(place, method, status=200, **body):
    answer = request(place.admin, method, "/v1/server", body)
    check_equal(answer.status, status, f"the status of {method} {body}: {answer.body}")
    return answer.json


def add(place, server, line, status=200):
    return edit(place, "PUT", status, server=server, line=line)


def remove(place, server, status=200):
    return edit(place, "DELETE", status, server=server)


def running(place):
    """The server lines of the running configuration."""
    text = get(place.admin, "/v1/config").body.decode()
    return {line.split(" = ")[0].removeprefix("server."): line.split(" = ")[1]
            for line in text.splitlines() if line.startswith("server.")}


def served(place, n, extra):
    """As place.served(), with a server that is not in the configuration."""
    before = extra.total
    return {**place.served(n), "new": extra.total - before}


@test()
def come_and_go(t):
    """a server that is added gets sessions at once; one that is removed gets no more, and those it has go on;
    added again, it is the same one"""
    with Place(t) as place, Counted(t.address(), greets=True) as new:
        check_equal(add(place, "back/new", f"{new.address} weight=2"),
                    {"server": "back/new", "state": "added", "servers": {"up": 3, "used": 3}}, "the answer")
        check_equal(served(place, 8, new), {"a": 2, "b": 2, "new": 4}, "clients")
        clients = place.clients(4)
        for name, n in (("new", "2"), ("a", "1")):
            t.eventually(lambda: statistics(place.daemon, f"server back/{name}")["sessions"] == n,
                         f"only those of the clients are left at {name}")
        check_equal(remove(place, "back/new"), {"server": "back/new", "state": "removed", "sessions": 2,
                                                "servers": {"up": 2, "used": 2}}, "the answer")
        check_equal(remove(place, "back/a")["sessions"], 1, "sessions of a")
        check_equal(served(place, 4, new), {"a": 0, "b": 4, "new": 0}, "clients then")
        check(all(is_alive(client) for client in clients), "one has ended")
        check_equal(add(place, "back/new", f"{new.address} weight=2")["state"], "added", "the answer")
        check_equal(statistics(place.daemon, "server back/new")["sessions"], "2", "sessions of one that is back")
        check(all(is_alive(client) for client in clients), "one has ended")
        for line in (r"notice \S+: upstream back: server new: added, by an administrator; servers up: 3 of 3",
                     r"notice \S+: upstream back: server a: removed, by an administrator; servers up: 1 of 1"):
            check_equal(len(place.daemon.log_lines(line)), 1, line)


@test()
def refused(t):
    """what is wrong is refused with its reason, as in the file, and changes nothing"""
    with Place(t) as place:
        before = get(place.admin, "/v1/config").body
        for server, line, status, why in (
                ("nobody/x", "127.0.0.1:1", 404, "upstream 'nobody' does not exist"),
                ("back/a", "127.0.0.1:1", 409, "server 'back/a' exists already"),
                ("back/X", "127.0.0.1:1", 400, "the ID 'X' has upper case"),
                ("back/x y", "127.0.0.1:1", 400, "the ID 'x y' is not a name of 1 to 32"),
                ("back/" + 33 * "x", "127.0.0.1:1", 400, "is not a name of 1 to 32"),
                ("back/x/y", "127.0.0.1:1", 400, "the ID 'x/y' is not a name"),
                ("back", "127.0.0.1:1", 400, "'server' is not UPSTREAM/SERVER"),
                ("back/x", " ", 400, "server.x: the value is blank"),
                ("back/x", "127.0.0.1", 400, "server.x: '127.0.0.1' "),
                ("back/x", "127.0.0.1:1 weigth=2", 400, "'weigth=2' is not known (ADDRESS [weight="),
                ("back/x", "127.0.0.1:1 weight=257", 400, "'257' is not a weight from 0 to 256"),
                ("back/x", "127.0.0.1:1 rise=2", 400, "rise has no effect without health checks"),
                ("back/x", "127.0.0.1:1 backup backup", 400, "'backup' is given twice"),
                ("back/x", "127.0.0.1:1\nserver.y = 127.0.0.1:2", 400, "has a control character"),
                ("back/x", "127.0.0.1:1 " + 1000 * "x", 400, "is longer than 98"),
                ("back/x", place.front, 400, "is where [listen front] listens: a proxy loop")):
            check_in(why, add(place, server, line, status)["error"], f"{server} {line}")
        for server, status, why in (("nobody/x", 404, "upstream 'nobody' does not exist"),
                                    ("back/x", 404, "server 'back/x' does not exist")):
            check_in(why, remove(place, server, status)["error"], server)
        remove(place, "back/b")
        check_in("'back/a' is the last server of its upstream", remove(place, "back/a", 400)["error"], "the last")
        add(place, "back/b", place.servers["b"].address)
        check_equal(get(place.admin, "/v1/config").body, before, "the configuration")
        check_equal(place.served(4), {"a": 2, "b": 2}, "clients")
        answer = request(place.admin, "PATCH", "/v1/server")
        check_equal((answer.status, answer.headers["allow"]), (405, "POST, PUT, DELETE"), "another method")


@test()
def cut(t):
    """a request that is cut anywhere changes nothing"""
    with Place(t) as place:
        body = json.dumps({"server": "back/x", "line": "127.0.0.1:1"}).encode()
        whole = b"PUT /v1/server HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        for n in range(1, len(whole)):
            with net.connect(place.admin) as s:
                s.sendall(whole[:n])
        check_equal(sorted(running(place)), ["a", "b"], "servers")
        for text in (b"", b"{", b'{"server":"back/x"}', b'{"line":"127.0.0.1:1"}', b'{"server":1,"line":"127.0.0.1:1"}',
                     b'{"server":"back/x","line":"127.0.0.1:1","more":1}'):
            check_equal(request(place.admin, "PUT", "/v1/server", text).status, 400, text)
        check_equal(sorted(running(place)), ["a", "b"], "servers")
        add(place, "back/x", "127.0.0.1:1")


@test()
def no_server_is_left(t):
    """that no server is left that gets clients is told as a warning, in the answer and in the log"""
    with Place(t) as place:
        place.act("/v1/server", server="back/b", state="disable")
        check_equal(remove(place, "back/a"), {"server": "back/a", "state": "removed", "sessions": 0,
                                              "servers": {"up": 0, "used": 0},
                                              "warning": "no server is left that gets clients"}, "the answer")
        check_equal(len(place.daemon.log_lines(
            r"warning \S+: upstream back: server a: removed, by an administrator: "
            r"no server is left that gets clients; servers up: 0 of 0")), 1, "log lines")


@test()
def written_out(t):
    """the running configuration has added servers, not removed ones, and can be used as the file"""
    with Place(t) as place, Counted(t.address(), greets=True) as new:
        add(place, "back/new", f"  {new.address}  weight=2 ")
        remove(place, "back/a")
        check_equal(list(running(place)), ["b", "new"], "servers")
        saved = get(place.admin, "/v1/config").body.decode()
        place.daemon.reload(saved)
        check_equal(served(place, 3, new), {"a": 0, "b": 1, "new": 2}, "clients")
        check_equal(len(place.daemon.log_lines("not so any more")), 0, "log lines")
        post(place.admin, "/v1/reset", {})
        check_equal(list(running(place)), ["b", "new"], "servers of the file, after a reset")


@test()
def a_reload_keeps_them(t):
    """servers that were added or removed stay so over a reload, unless it has another line for them"""
    with Place(t, "abc") as place, Counted(t.address(), greets=True) as new, \
            Counted(t.address(), greets=True) as other:
        lines = {name: server.address for name, server in place.servers.items()}
        add(place, "back/new", new.address)
        remove(place, "back/a")
        remove(place, "back/c")
        add(place, "back/c", f"{lines['c']} weight=2")
        client = place.client()
        place.act("/v1/server", server="back/new", state="drain")
        place.daemon.reload(place.config(options="connect_timeout = 3s"))
        check_equal(running(place), {"b": lines["b"], "new": new.address, "c": f"{lines['c']} weight=2"}, "servers")
        check_equal(served(place, 3, new), {"a": 0, "b": 1, "c": 2, "new": 0}, "clients")
        check_equal(len(place.daemon.log_lines("not so any more")), 0, "log lines")
        place.daemon.reload(place.config(lines={**lines, "a": f"{lines['a']} backup", "new": other.address}))
        check_equal(running(place), {"a": f"{lines['a']} backup", "b": lines["b"], "new": other.address,
                                     "c": f"{lines['c']} weight=2"}, "servers, of which the file changed two")
        check(is_alive(client), "a client has ended")
        check_equal(len(place.daemon.log_lines("server (a: removed|new: added) by an administrator: not so any more")),
                    2, "log lines")
        place.daemon.reload(place.config(lines={name: lines[name] for name in "ab"}))
        check_equal(running(place), {"a": lines["a"], "b": lines["b"]}, "servers, of which the file dropped two")
        post(place.admin, "/v1/reset", {})
        check_equal(running(place), {"a": lines["a"], "b": lines["b"]}, "servers after a reset")


def by_hand(place):
    """The servers that are marked, and the number of edits."""
    servers = get(place.admin, "/v1/upstreams").json["upstreams"][0]["servers"]
    check_equal({type(server["by_hand"]) for server in servers}, {bool}, "marks")
    return sorted(server["name"] for server in servers if server["by_hand"]), get(place.admin, "/v1/status").json["edits"]


@test()
def marked(t):
    """servers that are added, or have another line, are marked until the file has their lines, or until a reset"""
    with Place(t, "abc") as place, Counted(t.address(), greets=True) as new:
        lines = {name: server.address for name, server in place.servers.items()}
        check_equal(by_hand(place), ([], 0), "marks")
        add(place, "back/new", new.address)
        add(place, "back/more", new.address)
        remove(place, "back/c")
        check_equal(by_hand(place), (["more", "new"], 3), "marks")
        remove(place, "back/a")
        add(place, "back/a", f"{lines['a']} weight=2")
        check_equal(by_hand(place), (["a", "more", "new"], 4), "marks")
        place.daemon.reload(place.config(lines={**lines, "new": new.address}))
        check_equal(by_hand(place), (["a", "more"], 3), "marks, with one of the lines in the file")
        place.daemon.reload(place.config(lines={**lines, "new": new.address, "a": f"{lines['a']} weight=2"}))
        check_equal(by_hand(place), (["more"], 2), "marks, with two")
        listed = t.reactorctl("-s", place.admin, "upstreams").out.splitlines()
        at = listed[0].index("BY HAND")
        check_equal({line.split()[0]: line[at:].split()[0] for line in listed[1:] if "/" in line.split()[0]},
                    {"back/a": "no", "back/b": "no", "back/new": "no", "back/more": "yes"}, "in the table")
        check("edits          2" in t.reactorctl("-s", place.admin, "status").out, "in the status")
        post(place.admin, "/v1/reset", {})
        check_equal(by_hand(place), ([], 0), "marks after a reset")


@test()
def what_fits_no_more(t):
    """a server that is added with a word that the new configuration makes useless is dropped, and this is said"""
    with Place(t, options="check = tcp\n") as place:
        add(place, "back/x", "127.0.0.1:1 rise=2")
        place.daemon.reload(place.config(options=""))
        check_equal(sorted(running(place)), ["a", "b"], "servers")
        check_equal(len(place.daemon.log_lines(
            "reload: upstream back: server x: added by an administrator: not so any more: .* "
            "rise has no effect without health checks")), 1, "log lines")
        check_equal(place.served(4), {"a": 2, "b": 2}, "clients")


@test()
def reset_forgets_them(t):
    """reset undoes all additions and removals"""
    with Place(t) as place, Counted(t.address(), greets=True) as new:
        before = get(place.admin, "/v1/config").body
        add(place, "back/new", new.address)
        remove(place, "back/a")
        client = place.client()
        check_equal(place.act("/v1/reset"), {}, "the answer")
        check_equal(get(place.admin, "/v1/config").body, before, "the configuration")
        check_equal(served(place, 4, new), {"a": 2, "b": 2, "new": 0}, "clients")
        check(is_alive(client), "one has ended")


@test()
def a_revert_keeps_them(t):
    """a reload that is not confirmed is reverted without what was added or removed meanwhile"""
    with Place(t) as place, Counted(t.address(), greets=True) as new:
        lines = {name: server.address for name, server in place.servers.items()}
        place.daemon.config_path.write_text(place.config(lines={**lines, "b": f"{lines['b']} weight=2"}),
                                            encoding="utf-8")
        check_equal(post(place.admin, "/v1/reload", {"confirm": "10m"}).status, 200, "the status")
        add(place, "back/new", new.address)
        remove(place, "back/a")
        check_equal(post(place.admin, "/v1/revert", {}).status, 200, "the status")
        check_equal(running(place), {"b": lines["b"], "new": new.address}, "servers")
        check_equal(served(place, 4, new), {"a": 0, "b": 2, "new": 2}, "clients")


@test(timeout=60)
def an_upgrade_keeps_them(t):
    """added and removed servers stay so in the process that replaces this one, from its start, unless its
    configuration has another line for them"""
    place = Place(t, "abc")
    with place.servers["a"], place.servers["b"], place.servers["c"], Counted(t.address(), greets=True) as new, \
            Chain(t, place.config().replace("[reactord]\n", "", 1)) as chain:
        lines = {name: server.address for name, server in place.servers.items()}
        add(place, "back/new", new.address)
        add(place, "back/x", "127.0.0.1:1 weight=0")
        remove(place, "back/a")
        place.act("/v1/server", server="back/new", weight=2)
        chain.upgrade()
        chain.wait_gone(chain.old[-1])  # clients are the new one's alone
        check_equal(served(place, 4, new), {"a": 0, "b": 1, "c": 1, "new": 2}, "clients after the upgrade")
        chain.wait_line("servers that stay added or removed by an administrator: 3", chain.pid)
        check_equal(by_hand(place), (["new", "x"], 3), "marks")
        chain.daemon.config_path.write_text(
            f"[reactord]\npid_file = {chain.pid_path}\n"
            + place.config(lines={**lines, "a": f"{lines['a']} weight=3"}).replace("[reactord]\n", "", 1),
            encoding="utf-8")
        chain.upgrade()
        chain.wait_gone(chain.old[-1])
        check_equal(served(place, 7, new), {"a": 3, "b": 1, "c": 1, "new": 2}, "clients after the line of a was changed")
        chain.wait_line("upgrade: upstream back: server a: removed by an administrator: not so any more", chain.pid)


@test()
def checks_come_first(t):
    """an added server with health checks gets clients when they pass"""
    front, admin = t.address(), t.path("admin.sock")
    options = {"check_send": r"PING\r\n", "check_expect": r"PONG\r\n", "fall": 1, "rise": 1,
               "initial_state": "checked"}
    with Talker("a", t.address(), b"+PONG\r\n") as a, Talker("x", t.address(), b"-LOADING\r\n") as x:
        with t.daemon(section(admin) + checked(front, {"a": a.address}, **options)) as daemon:
            t.eventually(lambda: statistics(daemon, "server back/a")["state"] == "up", "a is up")
            answer = request(admin, "PUT", "/v1/server", {"server": "back/x", "line": x.address})
            check_equal(answer.json["servers"], {"up": 1, "used": 2}, "servers")
            t.eventually(lambda: daemon.log_lines("server x: down: its first check failed"), "x is checked, and down")
            x.becomes((b"+PONG\r\n", "answers"))
            t.eventually(lambda: statistics(daemon, "server back/x")["state"] == "up", "x is up")


@test()
def while_draining(t):
    """servers are neither added nor removed in a process that drains, but in an upstream that is paused"""
    with Place(t) as place, Counted(t.address(), greets=True) as new:
        place.act("/v1/pause", upstream="back", **{"for": "10m"})
        add(place, "back/new", new.address)
        remove(place, "back/a")
        remove(place, "back/b")
        with net.connect(place.front) as client:
            place.act("/v1/resume", upstream="back")
            greeted(client)
            check_equal(new.total, 1, "clients of the new server")
            place.daemon.reload(place.config(options="connect_timeout = 3s")
                                .replace("drain_timeout = 500ms", "drain_timeout = 0"))
            place.daemon.send_signal(signal.SIGTERM)
            t.eventually(lambda: place.daemon.log_lines("draining: accepts no more clients"), "it drains")
            check_in("draining", remove(place, "back/new", 409)["error"], "the error")
            check_in("draining", add(place, "back/x", "127.0.0.1:1", 409)["error"], "the error")


class Changer:
    """Adds and removes a server of its own, over one connection."""

    def __init__(self, place, name, line):
        self.place, self.name, self.line, self.done = place, name, line, 0

    def run(self, n):
        with net.connect(self.place.admin) as s:
            for turn in range(n):
                body = {"server": f"back/{self.name}"} | ({} if turn % 2 else {"line": self.line})
                write_request(s, "DELETE" if turn % 2 else "PUT", "/v1/server", body)
                response = http.client.HTTPResponse(s)
                response.begin()
                text = response.read()
                check_equal(response.status, 200, f"the status of {body}: {text}")
                self.done += 1


@test(timeout=60)
def many_at_once(t):
    """many changes at a time are all carried out, and no client fails"""
    with Place(t) as place, Counted(t.address(), greets=True) as new:
        clients = place.clients(4)
        changers = [Changer(place, f"n{i}", new.address) for i in range(8)]
        tasks = [net.Task(changer.run, 100) for changer in changers]
        while any(task.is_alive() for task in tasks):
            place.served(2)
            check(all(is_alive(client) for client in clients), "one has ended")
        for task in tasks:
            task.result()
        check_equal([changer.done for changer in changers], 8 * [100], "changes")
        check_equal(sorted(running(place)), ["a", "b"], "servers")
        check_equal(place.served(4), {"a": 2, "b": 2}, "clients")


@test(timeout=60)
def ten_thousand(t):
    """one of 10,000 servers is removed, and another added"""
    n = 2000 if t.sanitized else 10000
    with Place(t) as place:
        place.daemon.reload(place.config(lines={f"s{i}": f"{place.servers['a'].address} weight={1 + i % 9}"
                                                for i in range(n)}))
        check_equal(remove(place, "back/s77")["servers"]["used"], n - 1, "servers")
        check_equal(add(place, "back/more", place.servers["b"].address)["servers"]["used"], n, "servers")
        check("more" in running(place) and "s77" not in running(place), "the configuration")
        check(is_alive(place.client()), "a client is served")


@test()
def while_reloading(t):
    """servers are neither added nor removed during a reload"""
    front, admin, silent = t.address(), t.path("admin.sock"), t.address()
    options = {"check_send": r"PING\r\n", "check_expect": r"PONG\r\n", "fall": 1, "initial_state": "checked",
               "check_timeout": "1m", "check_interval": "1m"}
    host, port = silent.split(":")
    with Talker("a", t.address(), b"+PONG\r\n") as a, socket.create_server((host, int(port))):
        with t.daemon(section(admin) + checked(front, {"a": a.address}, **options)) as daemon:
            text = section(admin) + checked(front, {"a": a.address, "b": silent}, **options)
            daemon.config_path.write_text(text, encoding="utf-8")
            daemon.send_signal(signal.SIGHUP)  # it waits for the first check of b
            t.eventually(lambda: get(admin, "/v1/status").json["reload"]["state"] == "applying", "it reloads")
            for method, body in (("PUT", {"server": "back/x", "line": "127.0.0.1:1"}),
                                 ("DELETE", {"server": "back/a"})):
                answer = request(admin, method, "/v1/server", body)
                check_equal((answer.status, answer.error), (409, "a reload is under way"), method)
            check_equal(request(admin, "POST", "/v1/reset", {}).status, 409, "the status of a reset")


@test(needs=DNSMASQ)
def added_names(t):
    """an added server with a name gets clients at its addresses; with resolve_required one that does not
    resolve is refused, and what is changed with it is done"""
    front, admin = t.address(), t.path("admin.sock")
    own_network()
    own_names(t, "dns", servers=RESOLVER)
    with NameServer(t, [("here.test", "127.0.1.1"), ("here.test", "127.0.1.2")]), Counted(t.address()) as a:
        port = a.address.split(":")[1]
        with t.daemon(section(admin) + config(front, {"a": a.address}, "resolve_required = yes")) as daemon:
            lines = [("here", f"here.test:{port}"), ("nowhere", f"nowhere.test:{port}"), ("b", a.address)]
            tasks = [net.Task(request, admin, "PUT", "/v1/server", {"server": f"back/{name}", "line": line})
                     for name, line in lines]
            answers = [task.result() for task in tasks]
            check_equal([answer.status for answer in answers], [200, 409, 200], f"{answers}")
            check_in("its name has no address", answers[1].error, "the error")
            check(daemon.log_lines(r"server nowhere \(nowhere.test:\d+\): the name has no address yet"), "the log")
            for address in ("127.0.1.1", "127.0.1.2"):
                check_equal(len(daemon.statistics(f"server back/here@{address}:{port} state")), 1, address)
            check_equal(len(daemon.statistics("server back/nowhere")), 0, "servers of nowhere.test")
