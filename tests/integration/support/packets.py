"""packets: the TCP packets that go over an interface, seen by a socket of its own."""

import socket
import struct
from dataclasses import dataclass

from support.case import Skipped

ETH_P_ALL = 3  # linux/if_ether.h
SYN, RST, ACK = 0x02, 0x04, 0x10
OPTION_MSS, OPTION_FASTOPEN, OPTION_MPTCP = 2, 34, 30  # IANA, TCP option kinds
SO_RCVBUFFORCE = 33


@dataclass
class Packet:
    """A segment, and what its headers say."""
    source: str
    target: str
    source_port: int
    target_port: int
    tos: int
    flags: int
    options: dict  # by kind
    data: bytes

    @property
    def mss(self):
        """The MSS option, or None."""
        return struct.unpack("!H", self.options[OPTION_MSS])[0] if OPTION_MSS in self.options else None


def _options(raw):
    found = {}
    while raw and raw[0]:
        if raw[0] == 1:  # NOP
            raw = raw[1:]
            continue
        found[raw[0]], raw = raw[2:raw[1]], raw[raw[1]:]
    return found


def _packet(raw):
    """The TCP segment of an Ethernet frame, or None."""
    kind, ip = struct.unpack("!H", raw[12:14])[0], raw[14:]
    if kind == 0x0800 and ip[9] == socket.IPPROTO_TCP:
        tos, tcp = ip[1], ip[4 * (ip[0] & 15):struct.unpack("!H", ip[2:4])[0]]
        source, target = (socket.inet_ntop(socket.AF_INET, ip[at:at + 4]) for at in (12, 16))
    elif kind == 0x86DD and ip[6] == socket.IPPROTO_TCP:
        tos, tcp = struct.unpack("!H", ip[:2])[0] >> 4 & 255, ip[40:40 + struct.unpack("!H", ip[4:6])[0]]
        source, target = (socket.inet_ntop(socket.AF_INET6, ip[at:at + 16]) for at in (8, 24))
    else:
        return None
    source_port, target_port = struct.unpack("!HH", tcp[:4])
    length = 4 * (tcp[12] >> 4)
    return Packet(source, target, source_port, target_port, tos, tcp[13], _options(tcp[20:length]), tcp[length:])


class Packets:
    """What goes over an interface of the network that this process is in, from now on."""

    def __init__(self, interface):
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        except PermissionError as error:
            raise Skipped(f"no packet socket: {error}") from None
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 22)
        self._socket.bind((interface, 0))
        self._socket.setblocking(False)
        self._seen = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def seen(self, flags=None, **wanted):
        """The packets so far with these ${flags} of SYN, RST and ACK, and these other fields."""
        while True:
            try:
                raw = self._socket.recv(65536)
            except BlockingIOError:
                break
            packet = _packet(raw)
            if packet:
                self._seen.append(packet)
        return [p for p in self._seen
                if (flags is None or p.flags & (SYN | RST | ACK) == flags)
                and all(getattr(p, name) == value for name, value in wanted.items())]

    def wait(self, t, what, flags=None, **wanted):
        """The first such packet, once there is one."""
        return t.eventually(lambda: self.seen(flags, **wanted), what)[0]
