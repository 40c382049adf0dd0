#!/usr/bin/env python3
"""Integration tests: the real daemon, real clients, real sockets.

    python3 tests/integration/run.py --reactord build/reactord [-k WORD]... [-v] [--jobs N] [--most N]
                                     [--keep] [--slowest N] [--part K/N] [--long] [--sanitized] [--allow-missing]
                                     [--list]

Each test_THEME.py holds the tests of one theme as functions with @test; a test's doc string is the
sentence that is printed for it. A theme of more than one idea has a file for each, test_THEME_IDEA.py,
which says THEME = "...". ORDER below puts first what everything after it needs, so that of many failures
the first one printed is the one to look at.

A test runs in a process group of its own with a directory of its own. What it leaves behind is killed
with the group; its directory goes too, unless the test fails or --keep is given. When a test fails, the
configuration and the log of its daemons are printed. Nothing but the loopback interface is used. The
programs are copied first, to where any user may run them: no test depends on the folder of the clone.
--jobs tests run at a time; up to --most of them while a processor is idle, since most tests wait.
--slowest prints the tests that took longest, and the processor time of all. --part K/N runs every N-th
test from the K-th on.

A test whose client program is not installed fails; with --allow-missing it is skipped. --sanitized
(found out by itself for gcc's and clang's sanitisers) gives everything more time, asks nothing about
memory, leaves out the tests that are marked plain_only, and takes one set of a test's arguments; with
ThreadSanitizer only the themes that more than one thread has a part in. A program whose workers accept
unless it is told otherwise (make test-accepting) is found out, too. The last lines name each reason
for which tests were skipped, with their number, and then `integration: N passed, N failed, N skipped`;
the exit code is 1 if any failed.
"""

import argparse
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
from pathlib import Path

from support.case import CASES, Context, Options, Skipped, missing_programs

ORDER = ("start", "bare", "echo", "listen", "inherited", "config", "defaults", "broken", "proxy", "splice", "upstream", "checks",
         "down", "failback", "balance", "balance_hash", "balance_key", "balance_nodes", "balance_time", "ejection", "retry", "waiting", "waiting_ends", "spare",
         "spare_limits",
         "names", "names_addresses", "moves", "zones", "resolvers", "sockets", "socket_options", "socket_sources", "socket_absent", "socket_namespaces",
         "programs", "timeouts", "ends", "reasons", "limits",
         "limits_clients", "limits_shared", "bans", "bandwidth", "server_words", "agent", "overload", "access", "proxyproto", "proxyproto_servers", "proxyproto_trust",
         "route", "route_conditions", "route_after", "told", "pipeline", "faults", "mirror", "pause", "pause_servers", "stop", "reload",
         "reload_refused", "reload_listeners", "reload_servers", "reload_tls", "watch", "upgrade", "upgrade_fails",
         "upgrade_old", "upgrade_sessions", "upgrade_records", "upgrade_stages", "upgrade_kills", "upgrade_lessons", "admin", "admin_requests", "admin_actions", "history", "history_upgrade", "page", "page_history", "metrics", "metrics_prometheus",
         "control", "session_moves", "rebalance", "resize_moves", "set_workers", "control_servers", "control_edits", "edits_busy", "control_pause", "tls", "tls_postgres", "tls_config", "tls_sections",
         "tls_upstream", "tls_abuse", "tls_late", "check_kinds", "check_steps", "check_programs", "tls_programs", "tls_servers", "tls_nodes", "threads", "accepting_workers", "call_count", "idle", "hang", "backend",
         "process_faults", "call_faults", "fault_plan", "logs", "container", "kubernetes", "accesslog", "accesslog_targets", "accesslog_several", "accesslog_syslog", "confine", "everything", "night",
         "examples", "examples_services", "examples_beside", "ctl", "ctl_top", "ctl_actions", "ctl_nodes", "ctl_real", "pair")
# What a connection does on its own loop, and what main does alone: nothing for ThreadSanitizer.
ON_ONE_THREAD = ("bare", "listen", "inherited", "config", "defaults", "broken", "splice", "zones", "resolvers", "sockets", "socket_options", "socket_sources", "socket_absent", "socket_namespaces", "programs", "timeouts", "ends",
                 "reasons",
                 "bandwidth", "access", "proxyproto", "route", "route_conditions", "route_after", "told", "faults", "mirror", "confine", "container", "kubernetes", "examples")
HERE = Path(__file__).resolve().parent
PASSED, FAILED, SKIPPED = 0, 1, 2
WORDS = {PASSED: "ok", FAILED: "FAILED", SKIPPED: "skipped"}
UNWIND_S = 20  # from a test's timeout, which it may still report itself, to its end by force


class TimedOut(Exception):
    """The test took longer than it may."""


def _on_alarm(*_):
    raise TimedOut("the test took longer than it may")


def _attempt(case, context):
    """Run the test here, in its process; what it prints is its report."""
    signal.signal(signal.SIGALRM, _on_alarm)
    signal.setitimer(signal.ITIMER_REAL, case.timeout_s * context.scale)
    try:
        case.function(context, **case.arguments)
        return PASSED
    except Skipped as reason:
        print(reason)
        return SKIPPED
    except BaseException as error:  # whatever it is, the run goes on with the next test
        where = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in where if HERE in Path(frame.filename).parents
                and frame.filename != __file__]
        for frame in ours:
            print(f"{Path(frame.filename).name}:{frame.lineno}: {frame.line}")
        print(f"{type(error).__name__}: {error}")
        if not isinstance(error, Exception) or not ours:
            traceback.print_exc(file=sys.stdout)
        return FAILED
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.flush()


class Run:
    """A test in its own process."""

    def __init__(self, case, context):
        self.case = case
        self.context = context
        self.report_path = context.dir / "report"
        self.started = time.monotonic()
        self.took_s = self.cpu_s = 0
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            self._child()
        self.kill_at = self.started + case.timeout_s * context.scale + UNWIND_S

    def _child(self):
        code = FAILED
        try:
            report = os.open(self.report_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(report, 1)
            os.dup2(report, 2)
            os.close(report)
            code = _attempt(self.case, self.context)
            if code == FAILED:
                for daemon in self.context.daemons:
                    print(daemon.describe(), flush=True)
        finally:
            os._exit(code)

    def finished(self):
        """The outcome, or None while it runs."""
        late = time.monotonic() > self.kill_at
        # Not reaped yet: its number stands for its group as long as it is a zombie.
        if not late and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        code = self.kill()
        return code if code in WORDS else FAILED

    def kill(self):
        """End the test, if it still runs, and what it left behind; returns its exit code."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(self.pid, signal.SIGKILL)  # it did not get to setsid()
        _, status, usage = os.wait4(self.pid, 0)
        self.took_s = time.monotonic() - self.started
        self.cpu_s = usage.ru_utime + usage.ru_stime
        return os.waitstatus_to_exitcode(status)

    def times(self):
        """What it took, its daemons' and clients' processor time among it, and how busy the machine is."""
        return f"{self.took_s:.1f} s, {self.cpu_s:.1f} s of processor time, load {os.getloadavg()[0]:.0f}"

    def report(self):
        try:
            return self.report_path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""


class Idleness:
    """Whether processors have had nothing to do, or only what is less urgent, since the last look."""

    LOOK_S = 0.2
    IDLE_SHARE = 0.3  # of all processors

    def __init__(self):
        self.looked_at = time.monotonic()
        self.total, self.free = self._read()

    @staticmethod
    def _read():
        with open("/proc/stat", encoding="ascii") as f:
            ticks = [int(word) for word in f.readline().split()[1:9]]
        less_urgent = ticks[1] if os.nice(0) <= 0 else 0
        return sum(ticks), less_urgent + ticks[3] + ticks[4]  # nice, idle, iowait

    def look(self):
        """True at most once in a while: who then begins something sees at the next look what it takes."""
        now = time.monotonic()
        if now - self.looked_at < self.LOOK_S:
            return False
        total, free = self._read()
        share = (free - self.free) / max(total - self.total, 1)
        self.looked_at, self.total, self.free = now, total, free
        return share > self.IDLE_SHARE


class Runner:
    """Runs the cases, a few at a time, and counts."""

    def __init__(self, arguments, options, directory):
        self.arguments = arguments
        self.options = options
        self.directory = directory
        self.counts = dict.fromkeys(WORDS, 0)
        self.skipped = {}  # reason: titles
        self.ended = []

    def all(self, cases):
        waiting, running = list(enumerate(cases)), []
        try:
            self._loop(waiting, running)
        finally:
            for run in running:  # only when the loop was interrupted
                run.kill()

    def _loop(self, waiting, running):
        idleness = Idleness()
        while waiting or running:
            while waiting and (len(running) < self.arguments.jobs
                               or len(running) < self.arguments.most and idleness.look()):
                run = self._begin(*waiting.pop(0))
                if run:
                    running.append(run)
            for run in list(running):
                code = run.finished()
                if code is not None:
                    running.remove(run)
                    self._end(run, code)
            time.sleep(0.005)

    def _begin(self, number, case):
        missing = missing_programs(case)
        if missing:
            self._line(case, SKIPPED if self.arguments.allow_missing else FAILED,
                       f"not installed: {', '.join(missing)}")
            return None
        directory = Path(self.directory, f"{number:03}")
        directory.mkdir()
        directory.chmod(0o755)  # servers and the daemon may run as another user
        return Run(case, Context(self.options, directory))

    def _end(self, run, code):
        report = run.report()
        self.ended.append(run)
        if code == FAILED and not report:
            report = "the test's process died"
        self._line(run.case, code, report, run)
        if code == FAILED:
            print(f"    its files: {run.context.dir}\n    it took {run.times()}", flush=True)
        elif not self.arguments.keep:
            shutil.rmtree(run.context.dir)

    def slowest(self, count):
        """The tests that took longest, one a line, below what all took of the processor."""
        ended = sorted(self.ended, key=lambda run: run.took_s, reverse=True)
        lines = [f"{run.took_s:6.1f} s, {run.cpu_s:5.1f} s of processor time: {run.case.title}" for run in ended[:count]]
        return "\n".join([f"all: {sum(run.cpu_s for run in ended):.1f} s of processor time", *lines])

    def _line(self, case, code, report, run=None):
        self.counts[code] += 1
        if code == SKIPPED:
            self.skipped.setdefault(report.strip(), []).append(case.title)
        timed = f" ({run.times()})" if self.arguments.verbose and run else ""
        print(f"{WORDS[code]} {case.title}{timed}", flush=True)
        if report and (code != PASSED or self.arguments.verbose):
            print(textwrap.indent(report.rstrip(), "    "), flush=True)


def _copy_programs(program, directory):
    """Copy the daemon and reactorctl to where any user may run them; returns the daemon's path."""
    target = Path(directory, "bin")
    target.mkdir()
    target.chmod(0o755)
    for name in ("reactord", "reactorctl"):
        shutil.copy(Path(program).with_name(name) if name != "reactord" else program, target / name)
        (target / name).chmod(0o755)
    return str(target / "reactord")


def _load_cases():
    found = {path.stem.removeprefix("test_") for path in HERE.glob("test_*.py")}
    if found != set(ORDER):
        sys.exit(f"run.py: ORDER and the files differ in {sorted(found ^ set(ORDER))}")
    for name in ORDER:
        importlib.import_module(f"test_{name}")
    return CASES


def _sanitizers(program):
    content = Path(program).read_bytes()
    return {name for name in ("asan_init", "tsan_init", "ubsan_handle") if f"__{name}".encode() in content}


def _part(text):
    first, _, step = text.partition("/")
    if not 1 <= int(first) <= int(step):
        raise ValueError(text)
    return slice(int(first) - 1, None, int(step))


def _workers_accept(program):
    """Is threads = 0 the default of [boss]?"""
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as f:
        f.write("[listen echo]\naddress = @echo\nservice = echo\n")
        f.flush()
        dump = subprocess.run([program, "--dump-config", "-c", f.name], stdout=subprocess.PIPE, check=True).stdout
    return re.search(rb"\[boss\]\s+threads\s*=\s*0\n", dump) is not None


def _parse_arguments():
    parser = argparse.ArgumentParser(description="reactord's integration tests")
    parser.add_argument("--reactord", default="build/reactord", help="the program (%(default)s)")
    parser.add_argument("-k", metavar="WORD", action="append", default=[],
                        help="only tests with that in their line; may be given again, for more")
    parser.add_argument("-v", "--verbose", action="store_true", help="times, and what tests print")
    parser.add_argument("--jobs", type=int, default=1, help="tests at a time (%(default)s)")
    parser.add_argument("--most", type=int, default=0,
                        help="tests at a time while a processor is idle (as --jobs)")
    parser.add_argument("--slowest", metavar="N", type=int, help="at the end, name those that took longest")
    parser.add_argument("--keep", action="store_true", help="keep the tests' directories")
    parser.add_argument("--part", metavar="K/N", type=_part, default=slice(None),
                        help="every N-th test, from the K-th on")
    parser.add_argument("--long", action="store_true", help="load for half a minute, not seconds")
    parser.add_argument("--sanitized", action="store_true", help="more time, no memory limits")
    parser.add_argument("--allow-missing", action="store_true",
                        help="skip tests whose client program is not installed")
    parser.add_argument("--list", action="store_true", help="print the tests, run none")
    return parser.parse_args()


def _one_of_each(cases):
    """What differs in threads or memory, and not in values: the middle case of each function."""
    families = {}
    for case in cases:
        families.setdefault(case.function, []).append(case)
    return [family[len(family) // 2] for family in families.values()]


def main():
    arguments = _parse_arguments()
    words = [word.lower() for word in arguments.k] or [""]
    cases = [case for case in _load_cases() if any(word in case.names.lower() for word in words)]
    if arguments.list:
        print("\n".join(case.title for case in cases))
        return 0
    program = os.path.abspath(arguments.reactord)
    if not os.access(program, os.X_OK):
        sys.exit(f"run.py: {program}: not a program; build it first")
    sanitizers = _sanitizers(program)
    sanitized = arguments.sanitized or bool(sanitizers)
    if sanitized:
        cases = _one_of_each([case for case in cases if not case.plain_only])
    if "tsan_init" in sanitizers:
        cases = [case for case in cases if case.theme not in ON_ONE_THREAD]
    cases = cases[arguments.part]
    directory = tempfile.mkdtemp(prefix="reactord-it-")
    os.chmod(directory, 0o755)
    options = Options(_copy_programs(program, directory), HERE.parent.parent, sanitized, arguments.long,
                      _workers_accept(program))
    runner = Runner(arguments, options, directory)
    try:
        runner.all(cases)
    finally:
        if os.listdir(directory) == ["bin"]:
            shutil.rmtree(directory)
    counts = runner.counts
    if arguments.slowest:
        print(runner.slowest(arguments.slowest))
    for reason, titles in runner.skipped.items():
        print(f"skipped {len(titles)}: {reason}: {'; '.join(titles[:2])}{' ...' if len(titles) > 2 else ''}")
    print(f"integration: {counts[PASSED]} passed, {counts[FAILED]} failed, "
          f"{counts[SKIPPED]} skipped")
    return 1 if counts[FAILED] or not any(counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
