"""machine: how much of it others used, and how to come before them."""

import os
import resource
import time
from contextlib import contextmanager

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
AUTOGROUP = "/proc/self/autogroup"
BEFORE_ALL = -20


def _busy_s():
    """What all CPUs have worked since they started, for whomever."""
    with open("/proc/stat", encoding="ascii") as f:
        ticks = [int(word) for word in f.readline().split()[1:9]]
    idle, iowait = 3, 4
    return (sum(ticks) - ticks[idle] - ticks[iowait]) * TICK_S


def _own_s():
    mine = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime


class Others:
    """What share of the machine others have used since this was made."""

    def __init__(self):
        self.begun_at, self.busy_s, self.own_s = time.monotonic(), _busy_s(), _own_s()

    def percent(self):
        """In percent of all CPUs; children count when they have ended."""
        took_s = (time.monotonic() - self.begun_at) * os.cpu_count()
        others_s = (_busy_s() - self.busy_s) - (_own_s() - self.own_s)
        return max(0.0, 100 * others_s / took_s)


@contextmanager
def before_others():
    """Come before all other sessions while the block runs; needs to be root."""
    with open(AUTOGROUP, encoding="ascii") as f:
        usual = f.read().split()[-1]
    with open(AUTOGROUP, "w", encoding="ascii") as f:
        f.write(str(BEFORE_ALL))
    try:
        yield
    finally:
        with open(AUTOGROUP, "w", encoding="ascii") as f:
            f.write(usual)
