"""preload: system calls of a running daemon that go wrong when the test says so.

The libraries are in tests/integration/preload; a test compiles the one it needs, and plans faults in
a file that it shares with the daemon. A plan is for threads whose names begin so, "" for all.
"""

import mmap
import os
import struct
import subprocess
from pathlib import Path

from support.case import Failed

SOURCES = Path(__file__).resolve().parent.parent / "preload"

# As in preload/plan.h.
VARIABLE = "REACTORD_TEST_PLAN"
PLAN_BYTES = 4096
ALWAYS = 0xffffffff
FAULT = struct.Struct("=IIIi16sI")
TIMES = struct.Struct("=I")
TIMES_AT = 4
VALUE = struct.Struct("=i")
VALUE_AT = 12

# As in preload/backend_fault.c and preload/hang.c.
WAIT_FAILS, WAIT_EMPTY, INSTANCE_GONE, ADD_FAILS, CREATE_FAILS = range(5)
SEND_HANGS, RECV_HANGS = range(2)


class Preload:
    """A library for daemons of this test, and its plan."""

    def __init__(self, t, name):
        self.library = t.path(f"{name}.so")
        _compile(SOURCES / f"{name}.c", self.library)
        self.path = t.write(f"{name}.plan", bytes(PLAN_BYTES))
        with open(self.path, "r+b") as f:
            self.plan_map = mmap.mmap(f.fileno(), PLAN_BYTES)

    def environment(self):
        """For the daemon. AddressSanitizer would refuse to have a library before its own."""
        asan = os.environ.get("ASAN_OPTIONS", "").split(":") + ["verify_asan_link_order=0"]
        return {"LD_PRELOAD": self.library, VARIABLE: self.path,
                "ASAN_OPTIONS": ":".join(filter(None, asan))}

    def plan(self, fault, times=ALWAYS, value=0, skip=0, thread="", per_mille=0):
        """Let so many calls pass and the next ones go wrong, or so many of each thousand."""
        self.stop(fault)
        FAULT.pack_into(self.plan_map, fault * FAULT.size, skip, 0, 0, value, thread.encode(), per_mille)
        self._set_times(fault, times)

    def stop(self, fault):
        """From now on the calls are what they were."""
        self._set_times(fault, 0)

    def stop_all(self):
        """Nothing goes wrong any more."""
        for fault in range(PLAN_BYTES // FAULT.size):
            self.stop(fault)

    def clear(self):
        """No fault is planned, and nothing was counted."""
        self.plan_map[:] = bytes(PLAN_BYTES)

    def release(self, fault):
        """A call that hangs, planned with a value of 0, returns."""
        VALUE.pack_into(self.plan_map, fault * FAULT.size + VALUE_AT, 1)

    def struck(self, fault):
        """How many calls have gone wrong since plan()."""
        return FAULT.unpack_from(self.plan_map, fault * FAULT.size)[2]

    def left(self, fault):
        """How many calls still pass before the first one goes wrong."""
        return FAULT.unpack_from(self.plan_map, fault * FAULT.size)[0]

    def _set_times(self, fault, times):
        TIMES.pack_into(self.plan_map, fault * FAULT.size + TIMES_AT, times)


def _compile(source, library):
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC",
               "-shared", "-o", library, str(source), "-ldl"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        raise Failed(f"{source.name} does not compile: {done.stderr.decode(errors='replace')}")
