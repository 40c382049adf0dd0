"""set_workers: an administrator, or the load, changes the number of worker loops, and clients notice nothing."""

import contextlib
import os
import re
import resource
import signal
import threading
import time

from support import net
from support.admin import get, post
from support.case import check, check_equal, test
from support.chain import Chain, exchange_once
from test_resize_moves import KINDS, SIZES, Resized, stream

AUTO = "rebalance = auto\nturn_goal = 100us\n"  # streams of 64 KiB make any loop busy


def rebalance(r):
    """Its figures."""
    return get(r.admin, "/v1/status").json["rebalance"]


@contextlib.contextmanager
def open_files(pid, most):
    """The process ${pid} may have so many."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def streaming(r):
    """Byte-verified streams and visits through every listener of ${r}; at the end none was cut."""
    stop = threading.Event()
    tasks = [net.Task(stream, address, stop) for address in r.addresses.values() for _ in range(2)]
    tasks += [net.Task(net.visit_until, stop, address) for address in r.addresses.values()]
    try:
        yield
    finally:
        stop.set()
        done = [task.result() for task in tasks]
    check(all(n > 0 for n in done), f"nothing was done: {done}")


@test(timeout=60, each={"boss": [1, 0]})
def under_load(t, boss):
    """workers come and go at an administrator's word, bosses: {boss}: no stream is cut, each visit is answered, and the
    status and the log have the number"""
    with Resized(t, list(KINDS), boss=boss).running(2) as r, streaming(r):
        for workers in SIZES * 2:
            check_equal(r.set(workers), {"workers": workers}, "the answer")
            now = r.workers()
            check_equal((now["threads"], now["set"]), (workers, workers), "the status")
            time.sleep(0.2)
        t.eventually(lambda: sum(r.connections()[SIZES[-1]:]) == 0, "no session is left on a parked loop", within=20)
        check(r.daemon.log_lines("workers: 2 -> 4 threads, by an administrator"), "a log line")


@test(timeout=60, each={"boss": [1, 0]})
def while_rebalancing(t, boss):
    """sessions move to loops with less load while loops come and go, bosses: {boss}: no byte is lost"""
    with Resized(t, list(KINDS), boss=boss, worker=AUTO).running(4) as r, streaming(r):
        before = rebalance(r)["looks"]
        for turn in range(40):
            r.set(SIZES[turn % len(SIZES)])
            if turn % 4 == 0:
                post(r.admin, "/v1/sessions/move", {"all": True, "to": "work-2-1"})
            time.sleep(0.2)
        t.eventually(lambda: rebalance(r)["looks"] >= before + 3, "looks")
        r.set(4)
        post(r.admin, "/v1/sessions/move", {"all": True, "to": "work-2-1"})
        t.eventually(lambda: rebalance(r)["moved"] > 0, "sessions are rebalanced", within=30)
        r.set(1)
        t.eventually(lambda: sum(r.connections()[1:]) == 0, "no session is left on a parked loop", within=20)


@test(each=[{"workers": 0, "why": "not a number from 1 to 256"}, {"workers": 257, "why": "not a number from 1 to 256"},
            {"workers": "many", "why": "not a number"}])
def bad_number(t, workers, why):
    """{workers} is refused, with the reason, and changes nothing"""
    with Resized(t).running(2) as r:
        check(why in r.set(workers, status=400)["error"], "the error")
        check_equal((r.workers()["threads"], r.workers()["set"]), (2, None), "the status")
        run = t.reactorctl("-s", r.admin, "set", "workers", str(workers))
        check(run.code != 0 and "number" in run.err, f"{run.code}: {run.err}")


@test()
def without_descriptors(t):
    """more workers than descriptors allow are refused, with the reason; clients are served on, and fewer can be had"""
    with Resized(t).running(2) as r, net.connect(r.addresses["echo"]) as client:
        net.exchange(client, b"hello")
        open_now = len(os.listdir(f"/proc/{r.daemon.pid}/fd"))
        with open_files(r.daemon.pid, open_now + 20):
            check("too few descriptors" in r.set(200, status=409)["error"], "the error")
        check_equal((r.workers()["threads"], r.workers()["set"]), (2, None), "the status")
        t.eventually(lambda: len(os.listdir(f"/proc/{r.daemon.pid}/fd")) <= open_now, "as many descriptors as before")
        check_equal(net.exchange(client, b"again"), b"again", "the echo")
        r.set(3)


@test()
def while_draining(t):
    """a process that drains refuses another number"""
    with Resized(t).running(2) as r, net.connect(r.addresses["echo"]) as client:
        net.exchange(client, b"hello")
        os.kill(r.daemon.pid, signal.SIGTERM)
        t.eventually(lambda: get(r.admin, "/v1/status").json["state"] == "draining", "it drains")
        check_equal(r.set(3, status=409), {"error": "draining"}, "the answer")
        check_equal(r.workers()["threads"], 2, "workers")


@test()
def until_a_reload_says_otherwise(t):
    """a reload keeps the number unless it has another `threads`; reset goes back to that of the file"""
    with Resized(t).running(2) as r:
        r.set(4)
        r.options = "idle_timeout = 30m\n"
        r.resize(2)
        check_equal((r.workers()["threads"], r.workers()["set"]), (4, 4), "after a reload of something else")
        r.resize(3)
        check_equal((r.workers()["threads"], r.workers()["set"]), (3, None), "after a reload of threads")
        run = t.reactorctl("-s", r.admin, "set", "workers", "1")
        check_equal((run.code, run.out), (0, "workers = 1\n"), run.err)
        check_equal(post(r.admin, "/v1/reset", {}).status, 200, "reset")
        check_equal((r.workers()["threads"], r.workers()["set"]), (3, None), "after a reset")


@test(timeout=60)
def an_upgrade_keeps_it(t):
    """the number holds in the process that replaces this one, from its start, with workers that accept"""
    r = Resized(t, boss=0)
    with Chain(t, r.config(2)) as chain:
        r.set(4)
        chain.upgrade()
        t.eventually(lambda: chain.lines("1 settings made by an administrator stay in force", chain.pid), "a log line")
        check_equal((r.workers()["threads"], r.workers()["set"]), (4, 4), "the status")
        with contextlib.ExitStack() as stack:
            for i in range(40):
                client = stack.enter_context(net.connect(r.addresses["echo"]))
                check_equal(net.exchange(client, b"%02d" % i), b"%02d" % i, "the echo")
            check(all(r.connections()), f"a worker has no client: {r.connections()}")


@test(timeout=60)
def fewer_without_load(t):
    """threads = auto: without load a worker goes after ten seconds, its clients move, and log and status tell why; a
    number that an administrator sets holds instead, until reset"""
    with Resized(t).running("auto 2-3") as r, contextlib.ExitStack() as stack:
        r.resize("auto 3-3")
        clients = [stack.enter_context(net.connect(r.addresses["echo"])) for _ in range(9)]
        for s in clients:
            net.exchange(s, b"hello")
        check_equal(r.workers()["auto"], {"min": 3, "max": 3}, "the limits")
        r.set(3)
        r.resize("auto 2-3")
        check_equal((r.workers()["set"], r.workers()["auto"]), (None, {"min": 2, "max": 3}), "other limits")
        t.eventually(lambda: r.workers()["threads"] == 2, "one has gone", within=30)
        line = r.daemon.log_lines("workers: 3 -> 2 threads: busy")[0]
        check(re.search(r"busy for \d+ % of the last 1\d s, little enough for fewer$", line), line)
        t.eventually(lambda: r.connections()[2:] == [0], "its clients have moved")
        for s in clients:
            check_equal(net.exchange(s, b"again"), b"again", "the echo")
        now = r.workers()
        check_equal((now["scaled_up"], now["scaled_down"]), (0, 1), "the status")
        r.set(1)
        check_equal((r.workers()["threads"], r.workers()["auto"]), (1, None), "an administrator's number")
        post(r.admin, "/v1/reset", {})
        check_equal((r.workers()["threads"], r.workers()["auto"]), (2, {"min": 2, "max": 3}), "after a reset")


@test(each=[{"value": value} for value in ("auto 0-4", "auto 4-1", "auto 1-257", "auto 3", "auto1-3", "automatic", "auto 1-x", "auto -3")])
def bad_limits(t, value):
    """threads = {value} is refused, and the allowed values are told"""
    done = t.reactord("-t", "-c", t.write("c.ini", Resized(t).config(value)))
    check_equal(done.code, 1, f"exit code ({done.err})")
    check("threads" in done.err and "auto N-M" in done.err, done.err)


FRAMES = b"\1?" * 20_000  # each passes the handlers by itself: more work for the worker than for its client
LOADS = 4


def frames(address, stop):
    """Exchange frames of a byte until ${stop}; how many."""
    n = 0
    with net.connect(address) as s:
        while not stop.is_set():
            check_equal(net.exchange(s, FRAMES), FRAMES, "the frames")
            n += len(FRAMES) // 2
    return n


@test(timeout=120, each={"boss": [1, 0]})
def more_under_load(t, boss):
    """threads = auto: workers come when one is busy, bosses: {boss}: the sessions spread, no frame is lost, and log and
    status tell why"""
    options = "pipeline = frame\nframe_length_width = 1\n"
    with Resized(t, options=options, boss=boss).running(1) as r:
        r.resize("auto 1-3")
        check_equal(r.workers()["threads"], 1, "workers without load")
        stop = threading.Event()
        tasks = [net.Task(frames, r.addresses["echo"], stop) for _ in range(LOADS)]
        try:
            t.eventually(lambda: r.workers()["threads"] > 1, "another worker", within=60)
            t.eventually(lambda: sum(r.connections()[1:]) > 0, "it has sessions", within=60)
        finally:
            stop.set()
            served = [task.result() for task in tasks]
        check(min(served) > 0, f"frames: {served}")
        line = r.daemon.log_lines("workers: 1 -> [23] threads: busy")[0]
        check(re.search(r"busy for (7[1-9]|[89]\d|100) % of the last \d+ s, too much$", line), line)
        now = r.workers()
        check(now["scaled_up"] > 0 and now["auto"] == {"min": 1, "max": 3}, f"the status: {now}")


@test(timeout=60, each={"boss": [1, 0]})
def an_upgrade_keeps_what_the_load_has_set(t, boss):
    """threads = auto: the process that replaces this one begins with as many workers, bosses: {boss}, within its own
    limits, if it has any"""
    r = Resized(t, boss=boss)
    with Chain(t, r.config(1)) as chain:
        chain.rewrite(r.config("auto 1-8"))
        os.kill(chain.pid, signal.SIGHUP)
        t.eventually(lambda: r.workers()["auto"] == {"min": 1, "max": 8}, "the limits")
        for threads, wanted in (("auto 1-8", 1), ("auto 3-8", 3), ("auto 1-8", 3), ("auto 1-2", 2), (4, 4)):
            chain.rewrite(r.config(threads))
            chain.upgrade()
            check_equal((r.workers()["threads"], r.workers()["set"]), (wanted, None), f"workers with {threads}")
            exchange_once(r.addresses["echo"])
        check_equal(chain.lines("made by an administrator"), [], "lines about settings")
