"""crowd: many clients of one listener."""

import select

from support import net
from support.case import check_equal


def echo(address, options=""):
    return f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n"


class Crowd:
    """Clients of a daemon that has descriptors for fewer."""

    def __init__(self, address, count=100):
        self.clients = [net.connect(address) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()

    def served(self, seconds):
        """Those that get an answer, until there was none for that time."""
        for client in self.clients:
            client.sendall(b"?")
        return self.answered(seconds)

    def leave(self, clients):
        """These have been served."""
        for client in clients:
            client.close()
        self.clients = [c for c in self.clients if c not in clients]

    def answered(self, seconds):
        """Those that asked before and get their answer, until there was none for that time."""
        answered, quiet = set(), 0
        while len(answered) < len(self.clients) and quiet < seconds / 0.1:
            waiting = [c for c in self.clients if c not in answered]
            quiet += 1
            for client in select.select(waiting, [], [], 0.1)[0]:
                check_equal(client.recv(16)[:1], b"?", "the echo")
                answered.add(client)
                quiet = 0
        return [c for c in self.clients if c in answered]
