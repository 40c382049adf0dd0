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
    flags: tuple = ()  # more arguments of loadgen
    certificate: str = ""  # of certificates.KEYS; "": plain
    max_seconds: float = 1000.0

    @property
    def upstream(self):
        """The program behind a proxy in this row, None for echo."""
        if self.service in ("echo", "tls-echo"):
            return None
        return {"stream": "sink_server", "fetch": "source_server"}.get(self.mode, "bare_echo")

    def rounds(self, rounds):
        """How many rounds of this row when the user asks for ${rounds}."""
        return max(1, round(rounds * self.rounds_factor))

    @property
    def has_ratio(self):
        """Whether a ratio says anything: a bare plain connection costs next to no memory."""
        return self.unit != KILOBYTES or bool(self.certificate)

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
        return result["pss_bytes_per_connection"] / 1000


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
    _trips("proxy1000", "proxy", 1000, 64, "bare-copy", 1.15),
    # Delayed acknowledgements decide about the cost here, see README.md: 2,000 connections.
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


def _tls(key, title, mode, connections, unit, target_ratio, **more):
    service = more.pop("service", "tls")
    flags = ("--tls",) + more.pop("flags", ())
    return Row(key, title, service, mode, connections, more.pop("size_bytes", 64), unit,
               "bare-" + service, target_ratio=target_ratio, flags=flags,
               certificate=more.pop("certificate", "p256"), **more)


# A handshake is a client that connects, makes one 64 B trip and resets.
TLS_ROWS = [
    _tls("tls-p256", "full handshake, P-256", "churn", 50, MICROSECONDS, 1.15),
    _tls("tls-rsa", "full handshake, RSA-2048", "churn", 50, MICROSECONDS, 1.15,
         certificate="rsa2048"),
    _tls("tls-resumed", "resumed handshake", "churn", 50, MICROSECONDS, 1.15,
         flags=("--resume",)),
    _tls("tls-trip", "64 B, 50 conns", "pingpong", 50, MICROSECONDS, 1.0),
    _tls("tls-trip500", "64 B, 500 conns", "pingpong", 500, MICROSECONDS, 1.0),
    _tls("tls-fetch", "bulk to the client, 4 streams", "fetch", 4, SECONDS_PER_GB, 0.9,
         size_bytes=65536, rounds_factor=2.0),
    _tls("tls-bulk", "bulk from the client, 4 streams", "stream", 4, SECONDS_PER_GB, 0.9,
         size_bytes=65536, rounds_factor=2.0),
    _tls("tls-idle", "memory, idle proxied pair", "idle", 2000, KILOBYTES, 1.3,
         rounds_factor=0.4, max_seconds=1.0),
    _tls("tls-echo-p256", "echo: full handshake, P-256", "churn", 50, MICROSECONDS, 1.15,
         service="tls-echo"),
    _tls("tls-echo-trip", "echo: 64 B, 50 conns", "pingpong", 50, MICROSECONDS, 1.0,
         service="tls-echo"),
    _tls("tls-echo-idle", "echo: memory, idle conn", "idle", 2000, KILOBYTES, 1.3,
         service="tls-echo", rounds_factor=0.4, max_seconds=1.0),
]
