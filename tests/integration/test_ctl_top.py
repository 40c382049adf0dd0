"""ctl: reactorctl top: what it shows, its keys and its end."""

import signal
import sys

from support.admin_mock import AdminMock, LISTENERS
from support.case import Failed, check, check_equal, test
from support.ctl_runs import done, pages
from support.screen import Screen

THEME = "ctl"


# top

def top_routes(status_of=None):
    """A daemon whose counters grow by 100 with each sample."""
    samples = [0]

    def listeners(_):
        samples[0] += 1
        return {"listeners": [{**LISTENERS["listeners"][0], "sessions_total": 100 * samples[0]}]}

    return {**pages(12), ("GET", "/v1/listeners"): listeners, **({("GET", "/v1/status"): status_of} if status_of else {})}


def top(t, mock, *arguments, columns=80, rows=24):
    return Screen([t.reactorctl_path, "-s", mock.address, "top", *arguments], columns, rows)


def shows(t, screen, *words):
    """Wait until the screen has these words; returns its text."""
    try:
        t.eventually(lambda: all(word in screen.text() for word in words) and not screen.unknown,
                     f"{words} on the screen, and nothing that does not fit", 10)
    except Failed:
        print(screen.text(), screen.unknown)
        raise
    return screen.text()


@test(each=[{"option": []}, {"option": ["--once"]}])
def top_once(t, option):
    """top {option} without a terminal writes plain text once, with the rates of two samples"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock:
        out = done(t, mock, " ".join(["top", "--interval", "200ms", *option]))
    for title in ("LOOP ", "LISTENER ", "SERVER ", "CLIENT "):
        check(f"\n\n{title}" in out, f"no {title} in {out}")
    check("\033" not in out, "control sequences")
    rate = next(line for line in out.splitlines() if line.startswith("front ")).split()[3]
    check(50 < float(rate) <= 500, f"100 in 200 ms or a little more: {rate}/s")


@test(each=[{"columns": 80, "rows": 24}, {"columns": 40, "rows": 10}, {"columns": 200, "rows": 60},
            {"columns": 20, "rows": 3}, {"columns": 3, "rows": 1}])
def top_fits(t, columns, rows):
    """top fits a terminal of {columns}x{rows}: nothing wraps or scrolls; q ends it and restores the terminal"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock, top(t, mock, columns=columns, rows=rows) as screen:
        t.eventually(lambda: len(mock.requests) >= 10 and "r" in screen.text(), "two samples", 15)
        check("1049" in screen.modes and "25" not in screen.modes, f"modes {screen.modes}")
        check_equal(screen.unknown, [], "wraps and scrolls")
        screen.type("q")
        check_equal(screen.wait(10 * t.scale), 0, "exit code")
        check(screen.is_restored(), f"the terminal is not as it was: {screen.modes}")


@test()
def top_keys(t):
    """top: s changes the order, p pauses, a resize is followed at once"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock, top(t, mock) as screen:
        text = shows(t, screen, "reactord 0.1.0", "by bytes", "wrkr-2-1", "back/b", "192.0.2.1:1 ")
        check("LISTENER" in text and "STALLS" in text.splitlines()[1], text)
        screen.type("s")
        shows(t, screen, "by age")
        check("sort=age" in mock.requests[-1].query, mock.requests[-1].query)
        screen.type("p")
        shows(t, screen, "paused")
        asked = len(mock.requests)
        screen.resize(50, 12)
        shows(t, screen, "paused", "back/b")
        check_equal(len(mock.requests), asked, "requests while paused")
        screen.type("p")
        t.eventually(lambda: len(mock.requests) > asked, "it goes on", 10)
        screen.type("q")
        check_equal(screen.wait(10 * t.scale), 0, "exit code")


@test(each={"number": [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT]})
def top_signals(t, number):
    """top restores the terminal and ends by the signal: {number!r}"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock, top(t, mock) as screen:
        shows(t, screen, "by bytes")
        screen.process.send_signal(number)
        check_equal(screen.wait(10 * t.scale), -number, "exit code")
        check(screen.is_restored(), f"the terminal is not as it was: {screen.modes}")


# As a shell does: the program has a group of its own, which can be stopped, and continues when a file appears.
JOB = """
import os, signal, sys, time
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[2], sys.argv[2:])
status = os.waitpid(pid, os.WUNTRACED)[1]
if os.WIFSTOPPED(status):
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    os.kill(pid, signal.SIGCONT)
    status = os.waitpid(pid, 0)[1]
sys.exit(os.waitstatus_to_exitcode(status))
"""


@test()
def top_stops(t):
    """top restores the terminal while Ctrl-Z stops it, and draws again when it continues"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock:
        with Screen([sys.executable, "-c", JOB, t.path("go on"), t.reactorctl_path, "-s", mock.address, "top"]) as screen:
            shows(t, screen, "by bytes")
            screen.type("\x1a")
            t.eventually(screen.is_restored, "the terminal as it was", 10)
            t.write("go on", "")
            t.eventually(lambda: screen.text() and "1049" in screen.modes, "the full screen", 10)
            shows(t, screen, "by bytes")
            screen.type("q")
            check_equal(screen.wait(10 * t.scale), 0, "exit code")
            check(screen.is_restored(), "the terminal is not as it was")


@test()
def top_without_a_daemon(t):
    """top: a daemon that ends is named in the first line, the figures stay; without one at the start there is no screen"""
    with AdminMock(t.path("a.sock"), top_routes()) as mock:
        with top(t, mock, "--interval", "100ms", columns=100) as screen:
            shows(t, screen, "by bytes", "back/b")
            mock.raw = b"nonsense"
            shows(t, screen, "not reactord's", "back/b")
            mock.raw = None
            shows(t, screen, "by bytes")
            mock.hangs = True
            t.eventually(lambda: mock.waiting, "a request that hangs", 10)
            screen.type("q")
            check_equal(screen.wait(10 * t.scale), 0, "exit code while the daemon hangs")
            check(screen.is_restored(), "the terminal is not as it was")
    with top(t, mock) as screen:
        check_equal(screen.wait(10 * t.scale), 2, "exit code")
        check(screen.is_restored(), "the terminal is not as it was")
        check(b"Is reactord running" in screen.process.stderr.read(), "no word about it")
