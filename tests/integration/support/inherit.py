#!/usr/bin/env python3
"""inherit: hands descriptors over as a service manager does, then becomes the program.

    inherit.py NAME=FD[,NAME=FD]... PROGRAM [ARGUMENT]...

FD -1: the number of that descriptor stays closed.
"""

import fcntl
import os
import sys

FIRST = 3  # SD_LISTEN_FDS_START
OUT_OF_THE_WAY = 64


def main():
    pairs = [pair.rpartition("=") for pair in sys.argv[1].split(",")]
    aside = []
    for _, _, fd in pairs:
        if int(fd) < 0:
            aside.append(None)
            continue
        aside.append(fcntl.fcntl(int(fd), fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY))
        os.close(int(fd))
    for number, fd in enumerate(aside, FIRST):
        if fd is None:
            os.closerange(number, number + 1)
        else:
            os.dup2(fd, number)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(pairs)),
                      LISTEN_FDNAMES=":".join(name for name, _, _ in pairs))
    os.execvp(sys.argv[2], sys.argv[2:])


main()
