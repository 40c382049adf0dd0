"""descriptors: what a process has open, from /proc."""

import contextlib
import os


def of_process(pid):
    """What each of its descriptors is, by number; one that is closed meanwhile is left out, all if it has ended."""
    found, folder = {}, f"/proc/{pid}/fd"
    with contextlib.suppress(FileNotFoundError):
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                found[int(fd)] = os.readlink(f"{folder}/{fd}")
    return found
