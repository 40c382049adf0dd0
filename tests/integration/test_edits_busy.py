"""edits busy: servers that are added and removed while the process is stopped, is being replaced, or does it already."""

import contextlib
import os
import signal

from support import net
from support.admin import read_answer, request, write_request
from support.case import check, check_equal, test
from support.chain import Chain
from support.control_place import Place, is_alive
from support.server import Counted
from support.spare_servers import hold
from test_control_edits import add, edit, remove, running, served

THEME = "control"


@test(timeout=60)
def during_an_upgrade(t):
    """servers are neither added nor removed while an upgrade is under way; when it has failed, they are"""
    place = Place(t)
    with place.servers["a"], place.servers["b"], Counted(t.address(), greets=True) as new, \
            Chain(t, place.config().replace("[reactord]\n", "", 1)) as chain:
        chain.becomes("exec sleep 100\n")
        started = chain.begin()
        for method, body in (("PUT", {"server": "back/new", "line": new.address}), ("DELETE", {"server": "back/a"})):
            check_equal(edit(place, method, 409, **body), {"error": "an upgrade is under way"}, method)
        check_equal(request(place.admin, "POST", "/v1/reset", {}).status, 409, "the status of a reset")
        check_equal(sorted(running(place)), ["a", "b"], "servers")
        os.kill(started, signal.SIGKILL)
        chain.wait_line("upgrade: failed", chain.pid)
        add(place, "back/new", new.address)
        remove(place, "back/a")
        check_equal(served(place, 4, new), {"a": 0, "b": 2, "new": 2}, "clients")
        chain.becomes_reactord()
        chain.upgrade()
        chain.wait_gone(chain.old[-1])
        check_equal(sorted(running(place)), ["b", "new"], "servers after an upgrade")


@test()
def while_stopped(t):
    """what is asked while the process is stopped (SIGSTOP) is done when it goes on"""
    with Place(t) as place, Counted(t.address(), greets=True) as new, contextlib.ExitStack() as stack:
        client = place.client()
        hold(t, place.daemon)
        asked = []
        for method, body in (("PUT", {"server": "back/new", "line": new.address}),
                             ("PUT", {"server": "back/x", "line": "127.0.0.1:1"}), ("DELETE", {"server": "back/a"})):
            asked.append(stack.enter_context(net.connect(place.admin)))
            write_request(asked[-1], method, "/v1/server", body)
        place.daemon.send_signal(signal.SIGCONT)
        check_equal([read_answer(s).status for s in asked], [200, 200, 200], "statuses")
        check_equal(sorted(running(place)), ["b", "new", "x"], "servers")
        remove(place, "back/x")
        check_equal(served(place, 4, new), {"a": 0, "b": 2, "new": 2}, "clients")
        check(is_alive(client), "one has ended")


@test()
def twice(t):
    """of ten that add the same server at once one does, as of ten that remove it"""
    with Place(t) as place, Counted(t.address(), greets=True) as new:
        for method, body, why in (("PUT", {"server": "back/new", "line": new.address}, (409, "server 'back/new' exists already")),
                                  ("DELETE", {"server": "back/new"}, (404, "server 'back/new' does not exist"))):
            tasks = [net.Task(request, place.admin, method, "/v1/server", body) for _ in range(10)]
            answers = [task.result() for task in tasks]
            check_equal(len([answer for answer in answers if answer.status == 200]), 1, f"done by {method}")
            check_equal({(answer.status, answer.error) for answer in answers if answer.status != 200}, {why}, method)
        check_equal(sorted(running(place)), ["a", "b"], "servers")
