"""night: what an operator does at night, by reactorctl, while clients come all the time.

NIGHT=FILE in the environment: write what was typed, and what was said, to FILE.
"""

import contextlib
import os
import re
import select
import socket

from support import net
from support.admin import section
from support.case import check, check_equal, test
from support.chain import Chain
from support.health import greeted
from support.server import Counted
from support.upstreams import config


class Night:
    """A terminal of the operator, and its transcript."""

    def __init__(self, t, admin):
        self.t, self.admin, self.lines = t, admin, []

    def say(self, what):
        self.lines.append(f"\n# {what}")

    def type(self, command, code=0):
        finished = self.t.reactorctl("-s", self.admin, *command.split())
        self.lines += [f"$ reactorctl {command}"] + [line.rstrip() for line in (finished.out + finished.err).splitlines()]
        check_equal(finished.code, code, f"exit code of {command}: {finished.err}")
        return finished.out

    def write(self):
        if os.environ.get("NIGHT"):
            with open(os.environ["NIGHT"], "w", encoding="utf-8") as f:
                f.write("\n".join(self.lines).strip() + "\n")


def visit(front, n):
    """Clients that are served and leave."""
    for _ in range(n):
        with net.connect(front) as s:
            greeted(s)


def sessions_of_servers(top):
    """{server: sessions} in what `top` writes."""
    table = re.search(r"^(SERVER .*?)(?:\n\n|\Z)", top, re.M | re.S)[1].splitlines()
    at = table[0].split().index("SESSIONS")
    return {row.split()[0]: int(row.split()[at]) for row in table[1:] if row.split()[0].startswith("back/")}


def a_slow_server(t, night, front, slow):
    """Server c takes connections and says nothing: its sessions pile up; it is found, drained and shed."""
    night.say("clients complain: some wait for ever")
    waiting = [net.connect(front) for _ in range(12)]
    served = [s for s in waiting if s not in stuck(t, waiting, 4)]
    for s in served:
        s.close()
    held = [s for s in waiting if s not in served]
    night.type("status")
    most = max((found := sessions_of_servers(night.type("top --once --interval 200ms"))), key=found.get)
    check_equal(most, "back/c", f"the server that has the most sessions of {found}")
    night.say("server c answers nobody")
    night.type("drain back/c")
    visit(front, 6)
    night.type("shed back/c --percent 100 --over 1s")
    night.type("drain back/c --wait")
    check_equal([net.ending(s) for s in held], ["fin"] * 4, "how those ended that c did not answer")
    visit(front, 6)
    slow.close()


def stuck(t, clients, n):
    """Those that get nothing from their server, when all others were greeted."""
    def silent():
        readable = select.select(clients, [], [], 0)[0]
        return [s for s in clients if s not in readable]
    t.eventually(lambda: len(silent()) == n, f"{n} clients that are not answered")
    return silent()


def a_restart(night, front, servers):
    """The servers restart behind a paused listener, and no client is refused."""
    night.say("a and b get another version: no client may notice")
    night.type("pause listener:front --for 1m")
    for server in servers:
        server.__exit__()
    waiting = [net.connect(front) for _ in range(5)]
    for server in servers:
        server.__enter__()
    night.type("resume listener:front")
    for s in waiting:
        greeted(s)
        s.shutdown(socket.SHUT_RDWR)  # the servers were forked with it
        s.close()


def a_bad_reload(t, night, chain, good, bad, front):
    """A configuration that serves nobody goes by itself."""
    night.say("a new configuration, with a mistake in the addresses of the servers")
    path = chain.daemon.config_path
    path.write_text(bad, encoding="utf-8")
    night.type("reload --dry-run")
    night.type("reload --confirm 2s")
    t.eventually(lambda: net.fate(front) == "reset", "no server can be reached")
    night.type("status")
    night.say("no confirm: the configuration before comes back")
    chain.wait_line("not confirmed in time")
    visit(front, 6)
    path.write_text(good, encoding="utf-8")


@test(timeout=60)
def night(t):
    """an operator's night: a server slows down, is found, drained and shed; the others restart behind a pause;
    a bad configuration goes by itself; the program is replaced; and only clients of the slow server notice"""
    front, admin = t.address(), t.path("admin.sock")
    servers = [Counted(t.address(), greets=True) for _ in range(2)]
    lines = {"a": servers[0].address, "b": servers[1].address, "c": t.address()}

    def text(of):
        return f"{section(admin)}{config(front, of, 'connect_timeout = 1s')}"

    with contextlib.ExitStack() as stack:
        slow = stack.enter_context(net.listen(lines["c"], 64))
        for server in servers:
            stack.enter_context(server)
        chain = stack.enter_context(Chain(t, text(lines)))
        good = chain.daemon.config_path.read_text(encoding="utf-8")
        operator = Night(t, admin)
        stack.callback(operator.write)
        a_slow_server(t, operator, front, slow)
        a_restart(operator, front, servers)
        a_bad_reload(t, operator, chain, good, good.replace(lines["a"], t.address()).replace(lines["b"], t.address()),
                     front)
        operator.say("the new version of reactord is installed")
        operator.type("upgrade")
        new = chain.started()[-1]
        chain.wait_line("upgrade: took over", new)
        chain.old.append(chain.pid)
        chain.pid = new
        visit(front, 6)
        t.eventually(lambda: f"{new}" in operator.t.reactorctl("-s", admin, "status").out, "the new process answers")
        shown = operator.type("upstreams")
        check(re.search(r"back/c\s+.*drain", shown), "c is not drained any more")
        chain.stop()
