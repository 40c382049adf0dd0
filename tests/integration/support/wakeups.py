"""How often the threads of a process have gone to sleep of their own accord."""

import contextlib
import os
import time

QUIET_S = 6  # longer than any interval of the daemon that is not named in a configuration


def count(pid):
    """Voluntary context switches so far: {number of the thread: count}."""
    counts = {}
    for number in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError), \
                open(f"/proc/{pid}/task/{number}/status", encoding="ascii") as status:
            counts[number] = int(status.read().partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return counts


def until_none(t, daemon, seconds=QUIET_S):
    """Wait until no thread has woken up for so long."""
    seen, since = None, 0

    def quiet():
        nonlocal seen, since
        now = count(daemon.pid)
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    t.eventually(quiet, f"{seconds} s without a wake-up", within=40)
