#!/usr/bin/env python3
"""A soak that knows every byte: streams through a daemon of random configuration, beside random actions.

    python3 tests/soak/run.py --reactord build/reactord [--duration 60] [--seed N] [--streams 40] [--minimise]

The seed gives the configuration and the plan of actions: reloads, upgrades, kills, pauses, commands, limits, servers that
come and go. Each end of a stream must be explained by an action (see excuses.py); bytes are compared at both
ends. At the end the daemon must serve, with no session and no descriptor left, and counters that add up.

A failure prints the seed, the actions and what led to it. --only 1,4,7 repeats it with some of the actions only;
--minimise looks for few that suffice. See README.md in this folder.
"""

import argparse
import contextlib
import datetime
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "integration"))

from support import admin, descriptors, net  # noqa: E402
from support.case import Context, Options  # noqa: E402
from support.daemon import alive  # noqa: E402

import actions  # noqa: E402
from excuses import Excuses  # noqa: E402
from load import Load  # noqa: E402
from place import NAMED_HOSTS, Place  # noqa: E402
from service import Service  # noqa: E402

OTHER_SOCKETS = 2  # of the service manager and the admin interface
PACE_S = {"life": 2.5, "admin": 0.6, "world": 1.5}


def plan_of(seed, duration, pace=1.0):
    """[(when, lane, name, seed)], in order; pace: how much longer between two actions."""
    draw, plan = random.Random(f"{seed} plan"), []
    for lane in PACE_S:
        pace_s = PACE_S[lane] * pace
        weights, functions = zip(*actions.LANES[lane])
        at = draw.uniform(0, 2 * pace_s)
        while at < duration:
            plan.append((at, lane, draw.choices(functions, weights)[0].__name__, draw.random()))
            at += draw.uniform(0, 2 * pace_s)
    return sorted(plan)


class Run:
    """One run."""

    def __init__(self, t, options):
        self.t, self.options = t, options
        self.excuses = Excuses(t.scale)
        self.place = Place(t, options.seed, self.excuses)
        self.load = Load(self.place, self.excuses, options.seed, t.scale)
        self.fail = self.load.fail
        self.service = Service(t, self.place, self.excuses, self.fail)
        self.began, self.over = time.monotonic(), threading.Event()
        self.did, self.drains, self.is_short, self.extra_gone = [], [], 0, None
        self.taken = t.address()
        self._taken = net.listen(self.taken)
        self.has_tsan = has_sanitizer(options.reactord, "tsan")
        self._later, self._lock = [], threading.Lock()

    def later(self, seconds, function, *arguments):
        with self._lock:
            self._later.append((time.monotonic() + seconds, function, arguments))

    def enough(self):
        self.is_short -= 1

    def _run_later(self, everything=False):
        with self._lock:
            now = time.monotonic()
            due = [x for x in self._later if everything or x[0] <= now]
            self._later = [x for x in self._later if x not in due]
        for _, function, arguments in due:
            function(*arguments)

    def _lane(self, plan, done):
        """A daemon that this thread has started ends with it: see PR_SET_PDEATHSIG in support/daemon."""
        try:
            self._act(plan)
        finally:
            done.set()
        self.over.wait()

    def _act(self, plan):
        for number, (at, _, name, seed) in plan:
            while time.monotonic() - self.began < at:
                if self.over.wait(min(0.1, max(0.001, at - time.monotonic() + self.began))):
                    return
            if self.over.is_set():
                return
            began = time.monotonic() - self.began
            entry = [number, began, None, name, ""]
            self.did.append(entry)
            try:
                entry[4] = actions.find(name)(self, random.Random(seed))
            except Exception:  # of the test itself
                self.fail(None, traceback.format_exc())
            entry[2] = time.monotonic() - self.began
            if self.options.verbose:
                print(tell(entry), flush=True)

    def _ticks(self):
        while not self.over.is_set():
            self.service.tick()
            for old, excuse in list(self.drains):
                if not alive(old):
                    excuse.end()
            time.sleep(0.03)

    def _laters(self):
        while not self.over.is_set():
            self._run_later()
            time.sleep(0.03)

    def run(self):
        """True: nothing was wrong."""
        plan = list(enumerate(plan_of(self.options.seed, self.options.duration, self.options.pace)))
        if self.options.only is not None:
            plan = [item for item in plan if item[0] in self.options.only]
        self.place.open(self.load)
        self.load.start()
        self.service.start()
        threading.Thread(target=self._ticks, daemon=True).start()
        threading.Thread(target=self._laters, daemon=True).start()
        self.began = time.monotonic()
        self.load.wanted = self.options.streams
        lanes = [threading.Event() for _ in PACE_S]
        for name, done in zip(PACE_S, lanes):
            threading.Thread(target=self._lane, args=([i for i in plan if i[1][1] == name], done), daemon=True).start()
        while time.monotonic() < self.began + self.options.duration and not self.load.failures:
            time.sleep(0.05)
        if not self.load.failures:
            for lane in lanes:
                lane.wait(120)
            self._end()
        else:
            time.sleep(0.7)  # until the daemon has said what it did
        self.over.set()
        return not self.load.failures

    # The end

    def _end(self):
        """All streams come to their end; then nothing may be left."""
        self._run_later(everything=True)
        self.load.wanted = 0
        self._wait(lambda: not self.load.streams, "the streams come to their end", 300)
        if self.load.failures:
            return
        if not self.service.main:
            self.fail(None, "no process serves at the end")
            return
        self.place.state.update(self.base_state)
        self.place.names.hosts = list(NAMED_HOSTS)
        actions.ask(self, "POST", "/v1/reset", {})
        actions.reload(self, self.place.config())
        self._wait(lambda: len(self.service.alive()) == 1, "replaced processes end", 30)
        self._wait(self._adds_up, "no session is left, and counters add up", 20)
        used = min(len(self._describe_sockets()) for _ in range(10) if not time.sleep(0.3))
        self.used = self._describe_sockets()
        self._look_at_log()
        self.service.at_end = True
        main = self.service.main
        os.kill(main, 15)
        self._wait(lambda: not alive(main), "the daemon ends", 30)
        self.service.tick()
        self._compare_with_new(used)

    def _compare_with_new(self, used):
        """A process that has done nothing has as many sockets, once it has its spare connections."""
        self.service.start()
        self._wait(lambda: self._sockets() >= used - OTHER_SOCKETS,
                   f"{used} sockets after all streams, more than a new process has ({self.used})", 10)
        self.service.at_end = True
        os.kill(self.service.main, 15)
        self._wait(lambda: not self.service.alive(), "the daemon ends", 30)
        self.over.set()
        self.service.tick()

    def _wait(self, probe, what, within_s):
        end = time.monotonic() + within_s * self.t.scale
        while not (value := probe()):
            if self.load.failures:
                return
            if time.monotonic() > end:
                self.fail(None, f"not within {within_s * self.t.scale} s: {what}: {self._state()}")
                return
            time.sleep(0.05)
        del value

    def _state(self):
        streams = [f"{s.listener.name} {s.kind} {s.client}; {s.server}" for s in list(self.load.streams.values())[:5]]
        return f"{self.service.alive()}, {self._describe_sockets()}, {streams}, {self._odd_rows()}"

    def _sockets(self):
        return len(self._describe_sockets())

    def _describe_sockets(self):
        """Those that do not listen: addresses and state of TCP, in hexadecimal. After changes of threads there may
        be more that listen than at a start."""
        inodes = {}
        for table in ("tcp", "tcp6"):
            with open(f"/proc/net/{table}", encoding="ascii") as f:
                for fields in map(str.split, f):
                    inodes[fields[9]] = " ".join(fields[1:4])
        with open("/proc/net/unix", encoding="ascii", errors="replace") as f:
            for fields in map(str.split, f):
                inodes[fields[6]] = "0A" if fields[3] == "00010000" else "unix"
        pid, found = self.service.main or 0, []
        for fd, link in descriptors.of_process(pid).items():
            if "socket" in link:
                with contextlib.suppress(OSError):
                    kind = os.getxattr(f"/proc/{pid}/fd/{fd}", "system.sockprotoname").decode()
                    found.append(inodes.get(link[8:-1], f"{kind[:-1]} in no table"))
        return sorted(what for what in found if not what.endswith("0A"))

    def _odd_rows(self):
        """Listeners that do not add up; upstreams and servers with sessions."""
        rows = admin.get(self.place.admin, "/v1/listeners").json["listeners"]
        upstreams = admin.get(self.place.admin, "/v1/upstreams").json["upstreams"]
        return [row for row in rows if row["sessions"] or row["sessions_total"] != sum(row["ended"].values())] + \
            [up for up in upstreams if up["sessions"] or any(s["sessions"] for s in up["servers"])]

    def _adds_up(self):
        return not self._odd_rows()

    def _look_at_log(self):
        for log in self.service.logs:
            for line in log.lines:
                if re.search(r"\] error ", line) and not self._explains(line):
                    self.fail(None, f"the log has: {line}")

    def _explains(self, line):
        if re.search(KNOWN_ERRORS, line):
            return True
        at = datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00")).timestamp() - time.time() + time.monotonic()
        return bool(re.search(LACK, line) and self.excuses.find("lack", None, at, at))

    # What is told

    def report(self):
        counts = ", ".join(f"{n} {name}" for name, n in self.load.counts.items())
        took = time.monotonic() - self.began
        print(f"soak: seed {self.options.seed}, {took:.0f} s, {len(self.did)} actions; streams: {counts}; "
              f"any reset would be excused in {self.excuses.share(self.began):.0f} % of the time; the load was up to "
              f"{self.load.latest_s:.1f} s late; the kernel dropped {self.excuses.n_dropped} connections", flush=True)
        if not self.load.failures:
            return
        print("\n".join(tell(entry) for entry in sorted(self.did)[-60:]))
        for at, what, stream in self.load.failures[:5]:
            print(f"FAILED at {at - self.began:.2f} s (seed {self.options.seed}, "
                  f"{time.strftime('%H:%M:%S', time.gmtime(time.time() - time.monotonic() + at))}): {what}")
            if stream is not None:
                ports = [e.port for e in (stream.client, stream.server) if e and ":" in e.port and e.is_client]
                for log in self.service.logs:
                    print("\n".join("    " + line for line in log.grep(ports)) if ports else "")
        pace = f" SOAK_FLAGS=\"--pace {self.options.pace}\"" if self.options.pace != 1 else ""
        print(f"repeat: make soak SEED={self.options.seed} DURATION={self.options.duration:.0f}{pace}; files: {self.t.dir}")


# Of files and upgrades that the actions have made bad, and of a busy machine; and while a limit is low.
KNOWN_ERRORS = r"reload: |upgrade|the watchdog's task|listen x: .*Address already in use"
LACK = r"Too many open files|Cannot allocate memory|no memory for"


def tell(entry):
    number, began, ended, name, what = entry
    return f"  {number:4} {began:7.2f} s {f'+{ended - began:.2f}' if ended else '...':>6} {name}: {what.strip()}"


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(description="A soak that knows every byte.")
    parser.add_argument("--reactord", required=True)
    parser.add_argument("--duration", type=float, default=60, help="s")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--streams", type=int, default=40, help="at a time")
    parser.add_argument("--pace", type=float, default=1, help="of the actions; 0.3: three times as many")
    parser.add_argument("--only", type=lambda text: {int(n) for n in text.split(",") if n}, help="numbers of actions")
    parser.add_argument("--minimise", action="store_true", help="look for a few actions that fail")
    parser.add_argument("--tries", type=int, default=2, help="runs of each smaller plan")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell each action")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = time.time_ns() % 1_000_000
    return options


def has_sanitizer(program, *names):
    content = Path(program).read_bytes()
    return any(f"__{name}_init".encode() in content for name in names)


def minimise(options):
    """Leave out halves, quarters ... of the actions as long as it still fails."""
    def fails(numbers):
        command = [sys.executable, __file__, "--reactord", options.reactord, "--duration", str(options.duration),
                   "--seed", str(options.seed), "--streams", str(options.streams), "--pace", str(options.pace),
                   "--only", ",".join(map(str, numbers)) or ","]
        return any(subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 1
                   for _ in range(options.tries))

    left = sorted(options.only or range(len(plan_of(options.seed, options.duration, options.pace))))
    size = max(len(left) // 2, 1)
    while size:
        at = 0
        while at < len(left):
            fewer = left[:at] + left[at + size:]
            if fails(fewer):
                left = fewer
                print(f"fails with {len(left)} actions: --only {','.join(map(str, left))}", flush=True)
            else:
                at += size
        size //= 2
    print(f"minimal: --seed {options.seed} --duration {options.duration:.0f} --pace {options.pace} --only {','.join(map(str, left))}")


def main():
    """Exit code 1: something was wrong."""
    options = read_options()
    if options.minimise:
        minimise(options)
        return 0
    sys.setswitchinterval(0.0002)  # the load gives the interpreter away with each call of a socket
    directory = Path(tempfile.mkdtemp(prefix="reactord-soak-"))
    t = Context(Options(os.path.abspath(options.reactord), HERE.parent.parent, has_sanitizer(options.reactord, "asan", "tsan")), directory)
    run = Run(t, options)
    run.base_state = dict(run.place.state)
    try:
        is_right = run.run()
        run.report()
    finally:
        for pid in run.service.alive():
            os.kill(pid, 9)
    if is_right:
        subprocess.run(["rm", "-r", str(directory)], check=False)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main())
