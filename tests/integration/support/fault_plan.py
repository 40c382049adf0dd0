"""fault_plan: which call fails, with what, when and how often: a plan of runs, drawn from a seed.

In the environment: FAULT_SEED=7 repeats a run; FAULT="write EINTR 3" is the only fault, of the call behind three
others; FAULT="write EINTR 50 of 1000" the only one, of so many calls.
"""

import errno
import os
import random
import re
import time
from dataclasses import dataclass

from support.preload import SOURCES

CALLS = re.findall(r"^    FAULT_(\w+),$", (SOURCES / "any_fault.c").read_text(encoding="utf-8"), re.M)

NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
# What each call may fail with while nothing is wrong with its arguments.
ERRORS = {
    "socket": (*NO_DESCRIPTOR, errno.ENOBUFS),
    "accept4": (*NO_DESCRIPTOR, errno.ENOBUFS, errno.ECONNABORTED, errno.EINTR, errno.EPERM),
    "connect": (errno.EADDRNOTAVAIL, errno.ENETUNREACH, errno.ENOBUFS, errno.ECONNREFUSED),
    "bind": (errno.EADDRINUSE, errno.EACCES, errno.ENOMEM),
    "listen": (errno.EADDRINUSE,),
    "shutdown": (errno.ENOTCONN,),
    "setsockopt": (errno.ENOMEM, errno.ENOBUFS),
    "getsockopt": (errno.ENOBUFS,),
    "getsockname": (errno.ENOBUFS,),
    "ioctl": (errno.ENOMEM,),
    "fcntl": (errno.EMFILE,),
    "recv": (errno.ECONNRESET, errno.ENOMEM, errno.EINTR, errno.EAGAIN, errno.ETIMEDOUT),
    "send": (errno.EPIPE, errno.ECONNRESET, errno.ENOBUFS, errno.ENOMEM, errno.EINTR, errno.EAGAIN),
    "recvmsg": (errno.ENOMEM, errno.EINTR, errno.EAGAIN),
    "sendmsg": (errno.ENOBUFS, errno.ENOMEM, errno.EINTR, errno.EPIPE),
    "read": (errno.EINTR, errno.EIO, errno.ENOMEM),
    "write": (errno.EINTR, errno.EIO, errno.ENOSPC),
    "eventfd_read": (errno.EINTR, errno.EAGAIN),
    "pread": (errno.EIO,),
    "readv": (errno.ECONNRESET, errno.ENOMEM, errno.EINTR),
    "writev": (errno.EPIPE, errno.ECONNRESET, errno.ENOBUFS, errno.EINTR, errno.ENOSPC),
    "splice": (errno.ENOMEM, errno.EINTR, errno.ECONNRESET),
    "open": (*NO_DESCRIPTOR, errno.EIO),
    "openat": (*NO_DESCRIPTOR, errno.EIO),
    "fopen": (*NO_DESCRIPTOR, errno.EIO),
    "epoll_ctl": (errno.ENOMEM, errno.ENOSPC),
    "epoll_wait": (errno.EINTR,),
    "poll": (errno.EINTR,),
    "ppoll": (errno.EINTR, errno.ENOMEM),
    "timerfd_settime": (errno.ECANCELED,),
    "inotify_add_watch": (errno.ENOSPC, errno.ENOMEM),
    "fork": (errno.EAGAIN, errno.ENOMEM),
    "pthread_create": (errno.EAGAIN,),
    **{call: (errno.ENOMEM,) for call in ("mmap", "malloc", "calloc", "realloc", "posix_memalign")},
}
PER_MILLE = (5, 50, 300)
SHARE = 10  # of the plan in one run of all tests


@dataclass
class Fault:
    """One run: of `call`, in each thousand so many fail, or the one behind `skip` others."""
    call: str
    error: int
    skip: int = 0
    per_mille: int = 0

    def begin(self, faults):
        if self.per_mille:
            faults.plan(CALLS.index(self.call), value=self.error, per_mille=self.per_mille)
        else:
            faults.plan(CALLS.index(self.call), 1, value=self.error, skip=self.skip)

    def end(self, faults):
        """How often it has struck."""
        faults.stop(CALLS.index(self.call))
        return faults.struck(CALLS.index(self.call))

    def __str__(self):
        when = f"{self.per_mille} of 1000" if self.per_mille else str(self.skip)
        return f'FAULT="{self.call} {errno.errorcode[self.error]} {when}"'


# What was found once, in each run: the phase, and the fault.
KNOWN = {
    "start": [Fault("pread", errno.EIO, 0), Fault("pthread_create", errno.EAGAIN, 1)],
    "serve": [Fault("malloc", errno.ENOMEM, per_mille=20)] * 3 +
             [Fault("malloc", errno.ENOMEM, skip) for skip in (28, 34)],  # record layers of OpenSSL 3.5
    "upgrade": [Fault("write", errno.EINTR, 2), Fault("pthread_create", errno.EAGAIN, per_mille=300)],
}


def seed_of():
    """FAULT_SEED repeats a run; another one each time."""
    return int(os.environ.get("FAULT_SEED", time.time_ns() % 1_000_000))


def plan(phase, is_long, n_skips):
    """(the seed, the faults of a phase): all, or a tenth of them that another seed changes."""
    if os.environ.get("FAULT"):
        call, error, count, *rest = os.environ["FAULT"].split()
        n = int(count)
        return None, [Fault(call, getattr(errno, error), *((0, n) if rest else (n, 0)))]
    seed = seed_of()
    draw = random.Random(f"{seed} {phase}")
    faults = []
    for call in CALLS:
        for skip in draw.sample(range(4 * n_skips), n_skips):
            faults.append(Fault(call, draw.choice(ERRORS.get(call, NO_DESCRIPTOR)), skip=skip))
        faults += [Fault(call, draw.choice(ERRORS.get(call, NO_DESCRIPTOR)), per_mille=rate) for rate in PER_MILLE]
    draw.shuffle(faults)
    return seed, KNOWN.get(phase, []) + (faults if is_long else faults[:len(faults) // SHARE])
