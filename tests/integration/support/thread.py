"""thread: the threads of a daemon: where they may run, and one of them held in the middle of what it does."""

import contextlib
import ctypes
import os
import platform
import time

from support.case import Skipped

# From linux/ptrace.h and asm/unistd.h.
PTRACE_DETACH, PTRACE_SYSCALL = 17, 24
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_GET_SYSCALL_INFO = 0x4206, 0x4207, 0x420e
PTRACE_O_TRACESYSGOOD = 1
INFO_ENTRY = 1
WALL = 0x40000000
EPOLL_WAITS = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def ids(pid):
    """The threads of a process: their numbers by their names."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm", encoding="ascii") as f:
            found[f.read().rstrip("\n")] = int(task)
    return found


def processors(pid, thread):
    """Where it may run, as in /proc: `0-3,8`."""
    with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("Cpus_allowed_list:"):
                return line.split()[1]
    raise KeyError("Cpus_allowed_list")


def _ptrace(request, thread, address=0, data=None):
    result = _libc.ptrace(request, thread, address, data)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def _system_call(thread):
    """The number of the system call that a stopped thread is about to make, or None."""
    info = (ctypes.c_uint64 * 16)()
    _ptrace(PTRACE_GET_SYSCALL_INFO, thread, ctypes.sizeof(info), info)
    return info[3] if info[0] & 0xff == INFO_ENTRY else None


def _run_into_a_turn(thread):
    """From a stop anywhere to the first system call that is no wait for events."""
    while True:
        _ptrace(PTRACE_SYSCALL, thread)
        _, status = os.waitpid(thread, WALL)
        if not os.WIFSTOPPED(status):
            raise ChildProcessError(f"thread {thread} ended with status {status}")
        if _system_call(thread) not in (None, *EPOLL_WAITS[platform.machine()]):
            return


@contextlib.contextmanager
def held(pid, thread, provoke):
    """Hold a thread of a process in the turn that it begins because of provoke(). All others go on."""
    if platform.machine() not in EPOLL_WAITS:
        raise Skipped("the numbers of system calls are not known here")
    while not asleep(pid):  # it may have a lock that others need
        time.sleep(0.01)
    try:
        _ptrace(PTRACE_SEIZE, thread, data=PTRACE_O_TRACESYSGOOD)
    except PermissionError:
        raise Skipped("ptrace is not permitted here") from None
    try:
        _ptrace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, WALL)
        provoke()
        _run_into_a_turn(thread)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            _ptrace(PTRACE_DETACH, thread)


def wait_end(thread):
    """Wait until a thread that is held was killed: its process has no end before."""
    os.waitpid(thread, WALL)


def _state(pid, task):
    with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as f:
        return f.read().rpartition(")")[2].split()[0]


def asleep(pid):
    """Do all threads of a process wait, with nothing on its way from one to another?"""
    # Who hands something over wakes the other before it sleeps: the second look sees that awake.
    return all(_state(pid, task) == "S" for _ in range(2)
               for task in os.listdir(f"/proc/{pid}/task"))
