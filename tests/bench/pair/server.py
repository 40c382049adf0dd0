#!/usr/bin/env python3
"""server.py PORT: an echo server of one thread."""

import selectors
import socket
import sys


def main():
    """Serve for good."""
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("", int(sys.argv[1])), backlog=4096)
    print("listening", flush=True)
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            s = key.fileobj
            if s is listener:
                s = listener.accept()[0]
                s.setblocking(False)
                selector.register(s, selectors.EVENT_READ)
                continue
            try:
                data = s.recv(65536)
                if data:
                    s.sendall(data)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                selector.unregister(s)
                s.close()


if __name__ == "__main__":
    main()
