"""Runs a program where it can do little harm: own network, processes and mounts, all files read-only, memory and time
limited. A mutant may kill, unlink or loop for ever.
"""
import os
import signal
import subprocess
import time
from dataclasses import dataclass

PASSED, FAILED, LATE = "passed", "failed", "time limit"

# $1: a directory that stays writable, or empty. $2: address space in KiB, or unlimited. The rest: the command. The shell stays
# process 1, so that the program is an ordinary process.
SETUP = r"""
set -e
ip link set lo up
writable=$1 memory=$2
shift 2
[ -z "$writable" ] || mount --bind "$writable" "$writable"
for at in $(awk '$5 !~ "^/(proc|sys|dev)(/|$)" && $6 ~ "^rw" { print $5 }' /proc/self/mountinfo); do
    [ "$at" = "$writable" ] || mount -o remount,bind,ro "$at" 2>/dev/null || [ "$at" != / ]
done
for at in /tmp /run /dev/shm; do mount -t tmpfs -o size=512m,mode=1777 tmpfs "$at"; done
ulimit -f 1048576
ulimit -v "$memory"
set +e
"$@"
exit $?
"""
MEMORY_KIB = 16 << 20
UNSHARE = ["unshare", "--net", "--pid", "--mount", "--ipc", "--fork", "--kill-child", "--mount-proc"]


@dataclass(frozen=True)
class Outcome:
    result: str
    seconds: float
    output: str


class Process:
    """A command that runs in the sandbox."""

    def __init__(self, command, limit_s, tree, writable="", environment=None, sanitized=False):
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        memory = "unlimited" if sanitized else str(MEMORY_KIB)
        self.started, self.limit_s = time.monotonic(), limit_s
        self.output = os.memfd_create("output")
        self.process = subprocess.Popen(
            UNSHARE + user + ["sh", "-c", SETUP, "sandbox", str(writable), memory] + [str(word) for word in command],
            cwd=tree, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output, start_new_session=True,
            env=dict(os.environ, TMPDIR="/tmp", **(environment or {})))

    def poll(self):
        """The outcome, or None while it runs."""
        late = time.monotonic() - self.started > self.limit_s
        if not late and self.process.poll() is None:
            return None
        if late:
            self.kill()
        result = LATE if late else PASSED if self.process.returncode == 0 else FAILED
        size = os.fstat(self.output).st_size
        text = os.pread(self.output, 65536, max(0, size - 65536)).decode(errors="replace")
        os.close(self.output)
        return Outcome(result, time.monotonic() - self.started, text)

    def kill(self):
        """End everything in the sandbox: its process 1 dies with unshare."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def run(command, limit_s, tree, **options):
    """Run one command to its end."""
    process = Process(command, limit_s, tree, **options)
    while (outcome := process.poll()) is None:
        time.sleep(0.01)
    return outcome


def run_until_failure(starts, jobs):
    """Start the functions of (name, function) that return a Process, jobs at a time, until one fails.

    Returns the name, the outcome and the function of the first that failed, or None.
    """
    waiting, running = list(starts), []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name, start = waiting.pop(0)
                running.append((name, start, start()))
            for entry in list(running):
                outcome = entry[2].poll()
                if outcome is not None:
                    running.remove(entry)
                    if outcome.result != PASSED:
                        return entry[0], outcome, entry[1]
            time.sleep(0.01)
    finally:
        for entry in running:
            entry[2].kill()
            os.close(entry[2].output)
    return None
