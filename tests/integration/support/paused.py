"""paused: a daemon that is stopped for a while, and goes on."""

import contextlib
import signal
import time

from support.spare_servers import hold

PAUSE_S = 3  # longer than every timeout
PING = b"12345678"


def echo(address, options=""):
    return f"[listen echo]\naddress = {address}\nservice = echo\n{options}\n"


@contextlib.contextmanager
def paused(t, daemon, seconds=PAUSE_S):
    """What happens while the process is stopped; it goes on behind this."""
    hold(t, daemon)
    began = time.monotonic()
    yield
    time.sleep(max(began + seconds - time.monotonic(), 0))
    daemon.send_signal(signal.SIGCONT)
