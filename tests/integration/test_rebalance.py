"""rebalance: sessions of a busy worker loop move to loops with less load, light ones stay, and nothing moves otherwise."""

import contextlib
import os
import re
import signal
import threading
import time

from support import net
from support.admin import get, post, section
from support.case import check, check_equal, test
from support.chain import Chain
from support.daemon import alive

WORKERS = 4
LOOPS = [f"work-2-{i}" for i in range(1, WORKERS + 1)]

# With so low a goal a loop with streams of 64 KiB is busy, on any machine.
AUTO = "rebalance = auto\nturn_goal = 100us\n"

LOGGED = (r"loop (work-2-\d): rebalanced: (\d+) sessions? moved to ((?:work-2-\d \(\d+\)(?:, )?)+): "
          r"(.+); before: busy \d+ %, loop work-2-\d \d+ %; now: \d+ % and \d+ %")


def config(admin, address, worker=AUTO):
    return (f"[reactord]\n[worker]\nthreads = {WORKERS}\n{worker}" + section(admin)
            + f"[listen echo]\naddress = {address}\nservice = echo\n")


class Streams:
    """Clients that send and receive without pause, at first all on one loop; each checks every byte."""

    def __init__(self, admin, address, n):
        self.admin, self.address, self.stop = admin, address, threading.Event()
        self.sockets = [net.connect(address) for _ in range(n)]
        for s in self.sockets:
            net.exchange(s, b"x")
        self.gather()

    def gather(self):
        answer = post(self.admin, "/v1/sessions/move", {"all": True, "to": LOOPS[0]})
        check_equal(answer.status, 200, answer.body)

    def spread(self):
        """One on each loop."""
        for row, loop in zip(sessions(self.admin), LOOPS, strict=True):
            post(self.admin, "/v1/sessions/move", {"id": row["id"], "to": loop})

    def __enter__(self):
        self.tasks = [net.Task(self.stream, s, i) for i, s in enumerate(self.sockets)]
        return self

    def __exit__(self, *_):
        self.stop.set()
        for task in self.tasks:
            task.result()
        for s in self.sockets:
            s.close()

    def stream(self, s, i):
        block = bytes((i + n) % 251 for n in range(256 * 1024))
        while not self.stop.is_set():
            sender = net.Task(s.sendall, block)
            check(net.read_exactly(s, len(block)) == block, f"stream {i} is not what was sent")
            sender.result()


def figures(admin):
    """The figures by name, from the metrics."""
    return {name: int(value) for name, value
            in re.findall(r"^reactord_rebalance_(\w+)_total (\d+)$", get(admin, "/metrics").body.decode(), re.M)}


def sessions(admin):
    return get(admin, "/v1/sessions?limit=1000").json["sessions"]


def loops_of(admin):
    return {row["loop"] for row in sessions(admin)}


@contextlib.contextmanager
def skewed(t, n=6, worker=AUTO):
    admin, address = t.path("admin.sock"), t.address()
    conf = config(admin, address, worker)
    with t.daemon(conf) as daemon, Streams(admin, address, n) as streams:
        yield daemon, admin, streams


@test(timeout=60)
def under_skew(t):
    """streams on one loop spread over all, each moves once at most, and a log line and the figures tell it"""
    with skewed(t) as (daemon, admin, _):
        t.eventually(lambda: len(loops_of(admin)) > 1, "sessions move")
        t.eventually(lambda: daemon.log_lines(LOGGED), "a log line")
        line = re.search(LOGGED, daemon.log_lines(LOGGED)[0])
        check_equal(line[1], LOOPS[0], "the loop that gave sessions up")
        check_equal(sum(map(int, re.findall(r"\((\d+)\)", line[3]))), int(line[2]), f"the sum of {line[3]}")
        check("turn_goal" in line[4] or "of the time" in line[4], f"why: {line[4]}")
        now = figures(admin)
        check(int(line[2]) <= now["moved"] <= 6, f"a session moved twice: {now}")
        check(now["episodes"] >= 1 and now["looks"] >= 3, f"figures: {now}")
        check_equal(daemon.counts("rebalance").keys(), now.keys(), "figures in the log")


@test(timeout=60)
def alone(t):
    """the only session of a loop stays there, however busy it is"""
    with skewed(t, n=WORKERS, worker="") as (daemon, admin, streams):
        streams.spread()
        daemon.reload(config(admin, streams.address, AUTO))
        t.eventually(lambda: figures(admin)["looks"] >= 5, "looks")
        check_equal((figures(admin)["moved"], loops_of(admin)), (0, set(LOOPS)), "sessions moved, and their loops")


@test(timeout=60)
def when_not_busy(t):
    """sessions that are all on one loop stay while it is not busy: there is no look"""
    admin, address = t.path("admin.sock"), t.address()
    with t.daemon(config(admin, address, "rebalance = auto\nturn_goal = 0\n")), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(net.connect(address)) for _ in range(20)]
        for client in clients:
            net.exchange(client, b"x")
        post(admin, "/v1/sessions/move", {"all": True, "to": LOOPS[0]})
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for client in clients:
                net.exchange(client, b"x")
            time.sleep(0.05)
        check_equal((figures(admin)["moved"], loops_of(admin)), (0, {LOOPS[0]}), "sessions moved, and their loops")


@test(timeout=60)
def reloaded(t):
    """off: nothing moves; a reload to auto moves sessions, one to off ends the looks"""
    with skewed(t, worker="rebalance = off\nturn_goal = 100us\n") as (daemon, admin, streams):
        time.sleep(1)
        check_equal(figures(admin)["looks"], 0, "looks while it is off")
        daemon.reload(config(admin, streams.address))
        t.eventually(lambda: figures(admin)["moved"] > 0, "sessions move")
        daemon.reload(config(admin, streams.address, "rebalance = off\n"))
        seen = None

        def rests():
            nonlocal seen
            before, seen = seen, figures(admin)["looks"]
            time.sleep(1.2)
            return before == seen

        t.eventually(rests, "the looks end")


@test(each=[{"line": "rebalance = on", "allowed": "off or auto"}, {"line": "turn_goal = 1us", "allowed": "100us to 10s"},
            {"line": "turn_goal = 11s", "allowed": "100us to 10s"}])
def bad_value(t, line, allowed):
    """{line} is refused, and the allowed values are told"""
    done = t.reactord("-t", "-c", t.write("c.ini", config(t.path("a.sock"), t.address(), line + "\n")))
    check_equal(done.code, 1, f"exit code ({done.err})")
    check(line.partition(" ")[0] in done.err and allowed in done.err, done.err)


@test(timeout=60, each={"how": ["drain", "upgrade"]})
def on_the_way_out(t, how):
    """{how} while sessions are about to move: every byte arrives, nothing moves any more, and the process ends"""
    admin, address = t.path("admin.sock"), t.address()
    with Chain(t, config(admin, address).replace("[reactord]\n", "drain_timeout = 30s\n")) as chain:
        pid = chain.pid
        with Streams(admin, address, 6):
            t.eventually(lambda: figures(admin)["looks"] >= 2, "looks")
            if how == "drain":
                os.kill(pid, signal.SIGTERM)
            else:
                check_equal(chain.upgrade(), pid, "the process that is replaced")
            time.sleep(1.5)
            check(alive(pid), "it ended before its sessions")
        t.eventually(lambda: not alive(pid), "it ends")


@test(timeout=60)
def at_request(t):
    """off: reactorctl rebalance moves sessions once, `sessions` and `top` show their loads, and calm loops keep theirs"""
    with skewed(t, worker="rebalance = off\n") as (daemon, admin, _):
        t.eventually(lambda: sum(row["load"] or 0 for row in sessions(admin)) > 0, "loads are measured")
        check("LOAD" in t.reactorctl("-s", admin, "sessions", "--sort", "load").out, "no column LOAD")
        loads = [row["load"] for row in get(admin, "/v1/sessions?sort=load").json["sessions"]]
        check_equal(loads, sorted(loads, reverse=True), "loads, the heaviest first")
        top = t.reactorctl("-s", admin, "top").out
        check("LOAD" in top and LOOPS[0] in top, f"no load in top: {top}")
        run = t.reactorctl("-s", admin, "rebalance")
        check_equal((run.code, run.err), (0, ""), "exit code and stderr")
        check(re.match(r"moved [1-6] sessions? from work-2-1 \(busy ", run.out), run.out)
        check(len(loops_of(admin)) > 1, "the loops of all")
        t.eventually(lambda: daemon.log_lines(LOGGED.replace("(.+)", "(at an administrator's request)")), "a log line")
    with t.daemon(config(t.path("calm.sock"), t.address(), "")):
        calm = post(t.path("calm.sock"), "/v1/rebalance").json
        check_equal((calm["from"], calm["moved"]), (None, 0), "without any load")
