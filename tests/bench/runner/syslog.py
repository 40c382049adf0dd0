"""syslog: a socket for log messages, which are read or not: python3 syslog.py PATH read|wait."""

import signal
import socket
import sys


def main():
    path, what = sys.argv[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        if what == "wait":
            signal.pause()
        while True:
            s.recv(65536)


if __name__ == "__main__":
    main()
