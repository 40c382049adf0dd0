"""excuses: what explains how streams end. An end without an excuse is a fault of the daemon.

Kinds: `refused` (ended before anything came), `reset` (visibly broken), `cut` (an orderly end too early: only
a killed process and a drained echo may), `wait` (no progress for long); `lack`: errors of the log.
"""

import threading
import time
from pathlib import Path

GRACE_S = 2.5  # from what is done until its effect is seen


def dropped_by_kernel():
    """Connections that the kernel has dropped so far because all TCP together had too much memory (tcp_mem)."""
    names, values = (line.split() for line in Path("/proc/net/netstat").read_text(encoding="ascii").splitlines()[:2])
    return int(values[names.index("TCPAbortOnMemory")])


class Excuse:
    """From `since` to `until` (None: still), for the streams that `concerns` is true of; None: all."""

    def __init__(self, text, kinds, concerns):
        self.text, self.kinds, self.concerns = text, kinds, concerns
        self.since, self.until = time.monotonic(), None

    def end(self):
        if self.until is None:
            self.until = time.monotonic()


class Excuses:
    """All of a run. `lag_s`: how late the load may see something, by its own fault."""

    def __init__(self, scale):
        self.grace_s = GRACE_S * min(scale, 2)
        self.lag_s = self.n_dropped = 0
        self._all = []
        self._lock = threading.Lock()
        self._dropped, self._looked_at = dropped_by_kernel(), time.monotonic()

    def begin(self, text, kinds, concerns=None):
        excuse = Excuse(text, set(kinds.split()), concerns)
        with self._lock:
            self._all.append(excuse)
        return excuse

    def once(self, text, kinds, concerns=None):
        self.begin(text, kinds, concerns).end()

    def look_at_kernel(self):
        """Other programs of the machine may have taken all memory of TCP; the log of the kernel says so."""
        dropped, now = dropped_by_kernel(), time.monotonic()
        if dropped != self._dropped:
            excuse = Excuse(f"the kernel drops connections for lack of memory: {dropped - self._dropped}",
                            {"refused", "reset", "cut"}, None)
            excuse.since, excuse.until = self._looked_at, now
            self.n_dropped += dropped - self._dropped
            with self._lock:
                self._all.append(excuse)
        self._dropped, self._looked_at = dropped, now

    def find(self, kind, stream, since, until):
        """One that explains it for the stream, in this time."""
        self.look_at_kernel()
        late = self.grace_s + self.lag_s
        with self._lock:
            return next((e for e in self._all if kind in e.kinds and e.since <= until
                         and (e.until is None or since <= e.until + late)
                         and (e.concerns is None or e.concerns(stream))), None)

    def share(self, began, kind="reset"):
        """The share of the time since then in which any stream might have ended so, in percent."""
        now, at, covered = time.monotonic(), began, 0.0
        whole = [e for e in self._all if kind in e.kinds and e.concerns is None]
        for e in sorted(whole, key=lambda e: e.since):
            until = min(now, now if e.until is None else e.until + self.grace_s)
            covered += max(0.0, until - max(at, e.since))
            at = max(at, until)
        return 100 * covered / max(now - began, 0.001)
