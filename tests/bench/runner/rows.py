"""rows: what is measured. A row is one load on one service; the table has one line for each."""

from dataclasses import dataclass

MICROSECONDS = "us/op"
SECONDS_PER_GB = "s/GB"
KILOBYTES = "kB/conn"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    key: str  # what --rows selects
    title: str
    service: str  # echo | proxy
    mode: str  # of loadgen
    connections: int
    size_bytes: int
    unit: str
    yardstick: str  # the bare contender this row is measured against
    target_ratio: float | None = None  # to the yardstick
    target_value: float | None = None  # in the row's unit
    rounds_factor: float = 1.0  # of --rounds
    max_seconds: float = 1000.0

    @property
    def upstream(self):
        """The program behind a proxy in this row, None for echo."""
        if self.service == "echo":
            return None
        return "sink_server" if self.mode == "stream" else "bare_echo"

    def rounds(self, rounds):
        """How many rounds of this row when the user asks for ${rounds}."""
        return max(1, round(rounds * self.rounds_factor))

    @property
    def has_ratio(self):
        """Whether a ratio says anything: a bare connection costs next to no memory."""
        return self.unit != KILOBYTES

    @property
    def target(self):
        """The target in words."""
        if self.target_ratio:
            return f"{self.target_ratio:.2f}x"
        if self.target_value:
            return f"{self.target_value:.1f} {self.unit}"
        return "-"

    def value(self, result):
        """The figure of this row in a result of loadgen."""
        if self.unit == MICROSECONDS:
            return result["cpu_us_per_op"]
        if self.unit == SECONDS_PER_GB:
            return result["cpu_s_per_gb"]
        return result["rss_bytes_per_connection"] / 1000


def _trips(key, service, connections, size_bytes, yardstick, target_ratio):
    size = f"{size_bytes} B" if size_bytes < 1024 else f"{size_bytes // 1024} KiB"
    title = f"{service} {size}, {connections} conns"
    return Row(key, title, service, "pingpong", connections, size_bytes, MICROSECONDS, yardstick,
               target_ratio=target_ratio)


def _idle(key, title, service, yardstick, target_kb):
    # Memory hardly varies from run to run: few rounds, and only so long that freeing shows.
    return Row(key, title, service, "idle", 9000, 64, KILOBYTES, yardstick,
               target_value=target_kb, rounds_factor=0.4, max_seconds=1.0)


ROWS = [
    _trips("echo50", "echo", 50, 64, "bare-echo", 1.05),
    _trips("echo2000", "echo", 2000, 64, "bare-echo", 1.10),
    _trips("proxy50", "proxy", 50, 64, "bare-copy", 1.07),
    _trips("proxy500", "proxy", 500, 64, "bare-copy", 1.15),
    _trips("proxy2000", "proxy", 2000, 64, "bare-copy", 1.20),
    _trips("proxy16k", "proxy", 50, 16384, "bare-splice", 1.08),
    # No row varies more: which side's CPU transmits (at write, or at the ack) settles by chance.
    Row("bulk", "proxy bulk, 4 streams", "proxy", "stream", 4, 65536, SECONDS_PER_GB,
        "bare-splice", target_ratio=1.08, rounds_factor=2.0),
    Row("churn", "proxy connect, trip, reset", "proxy", "churn", 50, 64, MICROSECONDS,
        "bare-copy"),
    _idle("idle-echo", "memory, idle echo conn", "echo", "bare-echo", 1.0),
    _idle("idle-pair", "memory, idle proxied pair", "proxy", "bare-copy", 2.0),
]
