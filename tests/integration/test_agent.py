"""agent_check: an agent of each server says how it is, in the words of HAProxy."""

import contextlib
import json
import re

from support import net
from support.admin import get, post
from support.case import check, check_equal, test
from support.health import Talker
from support.server import Counted
from test_checks import INTERVAL_S, checked
from test_ejection import moody
from test_upgrade import Chain
from test_upstream import config, who

ADMIN = "[admin]\naddress = {}\n"
AGENT = {"agent_interval": f"{INTERVAL_S * 1000:.0f}ms"}


def one(admin, name="a"):
    """A server in the JSON of /v1/upstreams."""
    return next(s for s in one_upstream(admin)["servers"] if s["name"] == name)


def one_upstream(admin):
    return json.loads(get(admin, "/v1/upstreams").body)["upstreams"][0]


def text(front, admin, servers, **options):
    lines = "\n".join(f"{key} = {value}" for key, value in {**AGENT, **options}.items())
    return ADMIN.format(admin) + "[worker]\nthreads = 1\n" + config(front, servers, lines)


def lines(a, b, agent, weight=100):
    return {"a": f"{a.address} agent_check={agent.address} weight={weight}", "b": f"{b.address} weight=100"}


def says(t, talker, admin, words, **wanted):
    """The agent says that, and the figures of the server become so."""
    talker.becomes((words.encode(), "ends"))
    t.eventually(lambda: all(one(admin)[key] == value for key, value in wanted.items()),
                 f"{words!r} counts: {wanted}", within=10)


@test()
def words(t):
    """each word of an agent has its effect, and what a line does not say stays"""
    front, admin = t.address(), t.path("admin.sock")
    with moody(t, "ab") as (a, b), Talker("agent", t.address(), (b"up\n", "ends")) as agent:
        with t.daemon(text(front, admin, lines(a, b, agent), agent_send="a\\n")) as daemon:
            says(t, agent, admin, "up\n", agent="up", state="up", weight=100)
            check_equal(set(agent.got), {b"a\n"}, "what the agent was told")
            says(t, agent, admin, "75%\n", weight=75, state="up")
            says(t, agent, admin, "maxconn:30\r\n", max_connections=30, weight=75)
            for word in ("down#disk full", "fail", "stopped"):
                says(t, agent, admin, f"{word}\n", agent=word, state="down", down_reason="its agent said down")
                check_equal({who(front) for _ in range(4)}, {"b"}, "the servers")
                says(t, agent, admin, "up\n", state="up", weight=75)
            check(daemon.log_lines("warning .*server a: down: its agent says 'down#disk full'; servers up: 1 of 2$"), "a log line")
            says(t, agent, admin, "drain\n", state="draining")
            check_equal({who(front) for _ in range(4)}, {"b"}, "the servers while a drains")
            says(t, agent, admin, "ready 100%\n", state="up", weight=100)
            says(t, agent, admin, "MAINT\n", state="disabled")
            says(t, agent, admin, "up, ready\tmaxconn:0\n", state="up", max_connections=0)
            check_equal({who(front) for _ in range(8)}, {"a", "b"}, "the servers in the end")
            says(t, agent, admin, "0%\n", state="drained", weight=0)


BAD = {"an unknown word": ((b"upp\n", "ends"), "a word that is not known: 'upp'"),
       "a line without a word": ((b"\n", "ends"), "no word: ''"),
       "nothing": ((b"", "ends"), "closed before the answer"),
       "a line without its end": ((b"down", "ends"), "the answer is no line of text: 'down'"),
       "bytes": ((b"down\0\n", "ends"), "the answer is no line of text"),
       "64 KiB": ((b"d" * 65536, "stays"), "the line is too long: 'd"),
       "a line that does not end": ((b"down", "stays"), "timed out waiting for the answer"),
       "a reset": ((b"", "resets"), "connection reset")}


@test(each={"what": list(BAD)})
def bad_answers(t, what):
    """an agent that answers {what} changes nothing; the reason is in the log and in the figures"""
    answer, why = BAD[what]
    front, admin = t.address(), t.path("admin.sock")
    with moody(t, "ab") as (a, b), Talker("agent", t.address(), (b"up 50%\n", "ends")) as agent:
        with t.daemon(text(front, admin, lines(a, b, agent), agent_send="x")) as daemon:
            says(t, agent, admin, "up 50%\n", weight=50)
            agent.becomes(answer)
            t.eventually(lambda: why in one(admin)["agent"], f"the figures say {why}")
            begun = len(agent.accepted)
            t.eventually(lambda: len(agent.accepted) > begun + 3, "it is asked again")
            check(1 <= len(daemon.log_lines("its agent has no valid answer: ")) <= 2, "log lines")  # one for becomes()
            check_equal([one(admin)[key] for key in ("state", "weight")], ["up", 50], "the server")
            says(t, agent, admin, "up\n", agent="up")
            check(daemon.log_lines("its agent answers again"), "a log line of its return")


@test()
def with_checks(t):
    """a server is up if neither its checks nor its agent say otherwise; an agent that is gone leaves
    it as it was"""
    front, admin = t.address(), t.path("admin.sock")
    with moody(t, "ab") as (a, b), Talker("agent", t.address(), (b"up\n", "ends")) as agent:
        options = {"agent_check": agent.address.rpartition(":")[2], "eject_failures": 0, "agent_send": "x", **AGENT}
        servers = {"a": a.address, "b": f"{b.address} agent_check=off"}
        with t.daemon(ADMIN.format(admin) + checked(front, servers, **options)) as daemon:
            says(t, agent, admin, "up\n", state="up")
            says(t, agent, admin, "down\n", state="down")
            a.becomes("refuses")
            t.eventually(lambda: daemon.log_lines("server a: down: (its first check|checks) failed"), "the checks find it down")
            agent.becomes((b"up\n", "ends"))
            t.eventually(lambda: one(admin)["agent"] == "up", "the agent says up")
            check(daemon.log_lines("server a: down by its checks alone: its agent says 'up'"), "a log line")
            check_equal(one(admin)["state"], "down", "the state by the checks")
            a.becomes("works")
            says(t, agent, admin, "up\n", state="up")
            says(t, agent, admin, "down\n", state="down")
            agent.open.close()
            t.eventually(lambda: "refused" in one(admin)["agent"], "it is gone", within=10)
            check_equal(one(admin)["state"], "down", "the state without an agent")
            check_equal(one(admin, "b")["agent"], None, "the server without an agent")


@test()
def overruled(t):
    """an administrator enables a server whose agent said down and is gone"""
    front, admin = t.address(), t.path("admin.sock")
    with moody(t, "ab") as (a, b), Talker("agent", t.address(), (b"up\n", "ends")) as agent:
        with t.daemon(text(front, admin, lines(a, b, agent), agent_send="x")):
            says(t, agent, admin, "down\n", state="down")
            agent.becomes((b"", "resets"))
            t.eventually(lambda: "down" not in one(admin)["agent"], "it is gone", within=10)
            check_equal(post(admin, "/v1/server", {"server": "back/a", "state": "enable"}).status, 200, "status")
            check_equal(one(admin)["state"], "up", "the state")
            t.eventually(lambda: who(front) == "a", "a gets clients")
            says(t, agent, admin, "down\n", state="down")


@test(each={"how": ["an administrator enables it", "a reload takes its agent away"]})
def served_at_once(t, how):
    """a client that waits for a full server gets one whose agent had said down when {how}"""
    front, admin = t.address(), t.path("admin.sock")
    with Counted(t.address()) as a, Counted(t.address()) as b, Talker("agent", t.address(), (b"up\n", "ends")) as agent:
        servers = {"a": a.address, "b": f"{b.address} agent_check=off max_connections=1"}
        options = {"agent_check": agent.address.rpartition(":")[2], "agent_send": "x", "queue_timeout": "1m"}
        with t.daemon(text(front, admin, servers, **options)) as daemon, contextlib.ExitStack() as stack:
            says(t, agent, admin, "down\n", state="down")
            agent.becomes((b"", "resets"))
            t.eventually(lambda: "down" not in one(admin)["agent"], "the agent is gone", within=10)
            net.exchange(stack.enter_context(net.connect(front)), b"x")
            client = stack.enter_context(net.connect(front))
            t.eventually(lambda: one_upstream(admin)["waiting"] == 1, "the second client waits")
            if "reload" in how:
                daemon.reload(ADMIN.format(admin) + "[worker]\nthreads = 1\n" + config(front, servers, "queue_timeout = 1m"))
            else:
                check_equal(post(admin, "/v1/server", {"server": "back/a", "state": "enable"}).status, 200, "status")
            net.exchange(client, b"x")
            check_equal((a.total, b.total), (1, 1), "connections of a and b")


@test()
def reload(t):
    """what an agent said lasts over a reload, and ends when the server has no agent any more"""
    front, admin = t.address(), t.path("admin.sock")
    with moody(t, "ab") as (a, b), Talker("agent", t.address(), (b"up\n", "ends")) as agent:
        servers = lines(a, b, agent)
        with t.daemon(text(front, admin, servers, agent_send="x")) as daemon:
            says(t, agent, admin, "down drain 50% maxconn:7\n", state="down", weight=0, max_connections=7)
            agent.becomes((b"", "resets"))
            daemon.reload(text(front, admin, servers, agent_send="x", retries=1))
            seen = one(admin)
            check_equal([seen[key] for key in ("state", "weight", "max_connections")], ["down", 0, 7], "a afterwards")
            check_equal({who(front) for _ in range(4)}, {"b"}, "the servers")
            says(t, agent, admin, "up ready\n", state="up", weight=50, max_connections=7)
            says(t, agent, admin, "down\n", state="down")
            daemon.reload(ADMIN.format(admin) + config(front, {"a": f"{a.address} weight=100", "b": b.address}))
            check_equal([one(admin)[key] for key in ("state", "weight", "agent")], ["up", 100, None], "a without an agent")
            t.eventually(lambda: who(front) == "a", "a gets clients")


@test(timeout=60)
def upgrade(t):
    """what an agent said lasts over an upgrade, until it says something else"""
    front, admin = t.address(), t.path("admin.sock")
    with moody(t, "ab") as (a, b), Talker("agent", t.address(), (b"up\n", "ends")) as agent, \
            Chain(t, text(front, admin, lines(a, b, agent), agent_send="x")) as chain:
        says(t, agent, admin, "down drain 50% maxconn:7\n", state="down", weight=0, max_connections=7)
        agent.becomes((b"", "resets"))
        chain.upgrade()
        seen = one(admin)
        check_equal([seen[key] for key in ("state", "weight", "max_connections")], ["down", 0, 7], "a afterwards")
        check_equal({who(front) for _ in range(4)}, {"b"}, "the servers")
        says(t, agent, admin, "up ready\n", state="up", weight=50, max_connections=7)


# Server lines before and after a reload, where A, B, C are addresses, and does the section say agent_check?
RELOADS = {"a changed line": ({"a": "A"}, {"a": "A weight=2"}, True),
           "the line of the server": ({"a": "A"}, {"a": "A agent_check=AGENT"}, False),
           "a new server": ({"b": "B"}, {"a": "A", "b": "B"}, True),
           "a new server with an agent": ({"b": "B"}, {"a": "A agent_check=AGENT", "b": "B"}, False),
           "an enabled server": ({"a": "A", "b": "B disabled"}, {"a": "A", "b": "B"}, True)}


@test(each={"what": list(RELOADS)})
def reloads(t, what):
    """a reload that adds agents to servers with checks: {what}"""
    front, admin = t.address(), t.path("admin.sock")
    before, after, is_for_all = RELOADS[what]
    checks = {"check": "tcp", "check_interval": AGENT["agent_interval"]}
    with moody(t, "ab") as (a, b), Talker("agent", t.address(), (b"drain\n", "ends")) as agent:
        def with_servers(servers, **options):
            for name, value in (("AGENT", agent.address), ("A", a.address), ("B", b.address)):
                servers = {key: re.sub(rf"\b{name}\b", value, line) for key, line in servers.items()}
            lines_ = "\n".join(f"{key} = {value}" for key, value in {**checks, **options}.items())
            return ADMIN.format(admin) + config(front, servers, lines_)

        agents = {**AGENT, "agent_send": "x"}
        if is_for_all:
            agents["agent_check"] = agent.address.rpartition(":")[2]
        with t.daemon(with_servers(before)) as daemon:
            t.eventually(lambda: who(front) in "ab", "it serves")
            daemon.reload(with_servers(after, **agents))
            t.eventually(lambda: one(admin)["state"] == "draining", "the agent of a is asked", within=10)
