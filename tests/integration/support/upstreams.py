"""upstreams: a proxy in front of an upstream, and what its daemon says of the servers."""

from support import net


def config(front, servers, options=""):
    lines = "".join(f"server.{name} = {rest}\n" for name, rest in servers.items())
    return (f"[listen front]\naddress = {front}\nservice = proxy\nupstream = back\n"
            f"[upstream back]\n{lines}{options}\n")


def who(front):
    """The name of the server that a new client gets."""
    with net.connect(front) as client:
        return net.read_to_end(client).decode()


def statistics(daemon, what):
    """All that there is about `server back/a` or the like, as words."""
    words = " ".join(line.removeprefix(what) for line in daemon.statistics(f"{what} "))
    return dict(word.split("=") for word in words.split())
