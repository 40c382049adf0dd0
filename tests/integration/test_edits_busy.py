"""edits busy: servers that are added and removed while the process is stopped, is being replaced, or does it already."""

import contextlib
import os
import select
import signal
import time

from support import net, preload
from support.admin import get, read_answer, request, section, write_request
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


UNSETTLED = 64  # UPSTREAM_CHANGE_WAITS in upstream/upstream_change.c


def hung(t, faults):
    """A configuration of two workers, and how to hang the first of them."""
    front, admin, server = t.address(), t.path("admin.sock"), t.address()
    text = (section(admin) + "[worker]\nthreads = 2\nchooser = round_robin\n[listen front]\n"
            f"address = {front}\nservice = proxy\nupstream = back\n[upstream back]\nserver.a = {server}\n")
    return front, admin, server, t.daemon(text, environment=faults.environment())


def waits_for_logs(t, daemon, admin):
    """Is an edit that cannot be made yet refused, and do SIGUSR1 and SIGRTMIN wait for that?"""
    before = len(daemon.log_lines("stats end"))
    with net.connect(admin) as asked:
        write_request(asked, "PUT", "/v1/server", {"server": "back/more", "line": "127.0.0.1:1"})
        time.sleep(0.2)
        daemon.send_signal(signal.SIGUSR1)
        daemon.send_signal(signal.SIGRTMIN)
        t.eventually(lambda: len(daemon.log_lines("stats end")) > before, "the statistics")
        waits = select.select([asked], [], [], 0)[0] != []
        answer = read_answer(asked)
        check_equal((answer.status, answer.error.split(" (")[0]), (503, "too many changes under way"), "the answer")
    return waits


@test(needs=("cc",), timeout=90, plain_only=True)
def beside_a_worker_that_hangs(t):
    """while a worker hangs, servers are added until too many changes wait for it; then they are refused after a while,
    for which neither SIGUSR1 nor SIGRTMIN waits; when it goes on, servers are added again"""
    faults = preload.Preload(t, "hang")
    front, admin, server, process = hung(t, faults)
    with Counted(server, greets=True), process as daemon, net.connect(front) as held:
        net.read_exactly(held, 1)
        faults.plan(preload.RECV_HANGS, 1, value=0, thread="work-2-1")
        held.sendall(b"x")
        for n in range(UNSETTLED + 1):
            done = request(admin, "PUT", "/v1/server", {"server": f"back/s{n}", "line": f"127.0.0.1:{n + 1}"})
            if done.status != 200:
                break
        check_equal((done.status, n), (503, UNSETTLED), f"the first refused: {done.error}")
        check(not all(waits_for_logs(t, daemon, admin) for _ in range(3)), "the signals wait")
        faults.release(preload.RECV_HANGS)
        t.eventually(lambda: request(admin, "PUT", "/v1/server", {"server": "back/last", "line": "127.0.0.1:1"}).status in (200, 409),
                     "a server is added", within=20)
        check_equal(get(admin, "/v1/status").json["edits"], UNSETTLED + 1, "edits")
