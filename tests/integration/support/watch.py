"""watch: how long something takes, on a machine that may not run us for seconds."""

import threading
import time

from support.case import check

NAP_S = 0.01


class _Napper(threading.Thread):
    """Naps again and again. A nap counts as no more than twice its length: the rest is not ours."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ran_s = 0
        self.start()

    def run(self):
        before = time.monotonic()
        while True:
            time.sleep(NAP_S)
            now = time.monotonic()
            self.ran_s += min(now - before, 2 * NAP_S)
            before = now


_napper = None


class Watch:
    """Two times since it was made: that of the clock, and the one in which the machine ran us.

    What must not come early is asked of the clock, what must not come late of the other: on a quiet machine
    they are the same. Make it before what is timed begins.
    """

    def __init__(self):
        global _napper
        _napper = _napper or _Napper()
        self._began, self._ran = time.monotonic(), _napper.ran_s

    def times(self):
        return time.monotonic() - self._began, _napper.ran_s - self._ran

    def expect(self, least, most, what):
        """So long has it taken until now."""
        clock, ran = self.times()
        check(clock >= least, f"{what} after {clock:.3f} s, not {least} s or more")
        check(ran <= most, f"{what} after {ran:.3f} s (by the clock {clock:.3f} s), not {most} s or less")
